/* http/proxy.h - the way out for a program without a network of its own: an HTTP proxy on a Unix
 * socket, which lets through to named hosts and to nothing else.
 *
 *   p = proxy_new(&(struct proxy_spec){...}, &err)    listens at FOLDER/PROXY_SOCKET
 *   proxy_free(p)     closes what is open; `refused` is not called any more; its memory goes with
 *                     later turns of the loop
 *
 * It takes CONNECT, by name, and carries the bytes without looking at them: nothing is
 * intercepted. A plain request (GET http://HOST/...) is carried to its host likewise, as one
 * connection for that host alone. Names are looked up here, so who uses it needs no DNS. An address
 * is no name: it is let through only where the list has that address itself. Where a name leads is
 * asked of the resolved address (address.h): never to link-local ones, and to loopback only by a
 * loopback's name.
 *
 * Where segue itself has to go through a proxy (`upstream`), so do CONNECTs to other machines. */
#ifndef SEGUE_HTTP_PROXY_H
#define SEGUE_HTTP_PROXY_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <uv.h>

#define PROXY_SOCKET ".segue-net"

struct proxy_spec {
  uv_loop_t *loop;
  const char *folder;       /* where the socket is made; others must not get into it */
  const char *const *hosts; /* NULL-ended, copied: see proxy_lets */
  const char *upstream;     /* http://[USER:WORD@]HOST:PORT, a proxy behind this one; or NULL */
  /* Called once for each HOST:PORT that was asked for and refused; LIMIT_PROXY_REFUSALS of them. */
  void (*refused)(void *ctx, const char *where);
  void *ctx;
};

struct proxy;
struct proxy *proxy_new(const struct proxy_spec *spec, struct err *err) MUST_CHECK;
void proxy_free(struct proxy *p); /* NULL is fine */

/* True when one of `hosts` is this: NAME or *.NAME (any name below it) at port 443, or either with
 * :PORT, or an address. Case does not count. Pure. */
bool proxy_lets(const char *const *hosts, struct str host, unsigned port);

/* HOST and HOST:PORT, [ADDRESS]:PORT; false: it is neither. `port` stays where none is said. The
 * host is borrowed, without brackets. Pure. */
bool proxy_split(struct str text, struct str *host, unsigned *port);

/* True when a name can only mean this machine: localhost, 127.0.0.1, ::1 and what is below them. */
bool proxy_is_loopback(struct str host);

/* http://[USER:WORD@]HOST:PORT to HOST:PORT, and what to log in with there in base64, or NULL; both
 * are the caller's. Of another kind (socks5://) both are NULL. */
void proxy_read_upstream(struct str url, char **where, char **credentials);

#endif
