/* proxy.h - the way out for a program without a network of its own: an HTTP proxy on a Unix socket
 * that lets it reach named hosts and nothing else.
 *
 *   p = proxy_new(&(struct proxy_spec){...}, &err)    listens at FOLDER/PROXY_SOCKET
 *   proxy_free(p)     closes what is open; `refused` is no longer called; its memory is freed in
 *                     later turns of the loop
 *
 * It takes CONNECT by name and passes the bytes on without looking at them: nothing is intercepted.
 * A plain request (GET http://HOST/...) is passed to its host in the same way, on a connection for
 * that host alone. Names are looked up here, so its users need no DNS. An address is not a name: it
 * is let through only if the list contains exactly that address. The resolved address decides where
 * a name may lead (address.h), and is the one that is connected to: never a link-local one; one of
 * this machine only under a loopback name; one of this machine or of a private network also if the
 * list contains that address.
 *
 * If segue itself must use a proxy (`upstream`), CONNECTs to other machines use it too. */
#ifndef SEGUE_HTTP_PROXY_H
#define SEGUE_HTTP_PROXY_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <uv.h>

#define PROXY_SOCKET ".segue-net"

struct proxy_spec {
  uv_loop_t *loop;
  const char *folder;       /* where the socket is made; nobody else may have access to it */
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

/* HOST and HOST:PORT, [ADDRESS]:PORT; false: it is neither. `port` is unchanged if none is given.
 * The host is borrowed, without brackets. Pure. */
bool proxy_split(struct str text, struct str *host, unsigned *port);

/* True when a name can only mean this machine: localhost, 127.0.0.1, ::1 and what is below them. */
bool proxy_is_loopback(struct str host);

/* Splits http://[USER:WORD@]HOST:PORT into HOST:PORT and the login in base64, or NULL; both belong
 * to the caller. For another kind (socks5://) both are NULL. */
void proxy_read_upstream(struct str url, char **where, char **credentials);

#endif
