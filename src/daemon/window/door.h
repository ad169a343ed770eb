/* door.h - the port of the window: which addresses it may have, and who is let in.
 *
 *   door_listen(address, &fd, host, &err)     host: what a browser must say in Host: "127.0.0.1:N"
 *   door_accept_any(fd)                       accepts any peer: a reverse proxy of another user
 *   door_origin(text, host, &err)             "https://HOST" of a proxy: its host, checked
 *   door_accept(fd)                           as server_door.accept: EPERM for another user
 *   door_allows(r, host, changes)             does the request come from our own page? */
#ifndef SEGUE_DAEMON_WINDOW_DOOR_H
#define SEGUE_DAEMON_WINDOW_DOOR_H

#include "daemon/server.h"

enum { DOOR_HOST_BYTES = 64 };

bool door_listen(const char *address, int *fd, char host[DOOR_HOST_BYTES],
                 struct err *err) MUST_CHECK;
int door_accept(int fd);
int door_accept_any(int fd);
bool door_origin(const char *text, char host[DOOR_HOST_BYTES], struct err *err) MUST_CHECK;
/* host: from door_listen, or from door_origin with `secure` set, and then Origin begins with
 * https. */
bool door_allows(const struct server_request *r, const char *host, bool secure, bool changes);
extern const char *const door_headers[]; /* for every answer: name, value, ..., NULL */

#endif
