/* listener.h - the port of the window: which addresses it may have, and who is let in.
 *
 *   listener_listen(address, &fd, host, &err)  host: what a browser must say in Host: "127.0.0.1:N"
 *   listener_accept_any(fd)                       accepts any peer: a reverse proxy of another user
 *   listener_origin(text, host, &err)             "https://HOST" of a proxy: its host, checked
 *   listener_accept(fd)                           as server_door.accept: EPERM for another user
 *   listener_allows(r, host, changes)             does the request come from our own page? */
#ifndef SEGUE_DAEMON_WINDOW_LISTENER_H
#define SEGUE_DAEMON_WINDOW_LISTENER_H

#include "daemon/server.h"

enum { LISTENER_HOST_BYTES = 64 };

bool listener_listen(const char *address, int *fd, char host[LISTENER_HOST_BYTES],
                     struct err *err) MUST_CHECK;
int listener_accept(int fd);
int listener_accept_any(int fd);
bool listener_origin(const char *text, char host[LISTENER_HOST_BYTES], struct err *err) MUST_CHECK;
/* host: from listener_listen, or from listener_origin with `secure` set, and then Origin begins
 * with https. */
bool listener_allows(const struct server_request *r, const char *host, bool secure, bool changes);
extern const char *const listener_headers[]; /* for every answer: name, value, ..., NULL */

#endif
