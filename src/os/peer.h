/* peer.h - who is at the other end of a Unix socket. */
#ifndef SEGUE_OS_PEER_H
#define SEGUE_OS_PEER_H

#include <stdbool.h>

/* Did a process of this program's own effective user connect, or listen, there? The kernel says so:
 * it noted it when the connection was made. */
bool peer_is_own_user(int fd);
/* The number of the process that connected; 0: not known. */
long peer_process(int fd);
/* A connection that waits, close-on-exec and non-blocking; -1 with errno. */
int peer_accept(int listener);

#endif
