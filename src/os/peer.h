/* peer.h - who is at the other end of a Unix socket, or of a TCP connection on this machine. */
#ifndef SEGUE_OS_PEER_H
#define SEGUE_OS_PEER_H

#include <stdbool.h>

/* Did a process of this program's own effective user connect, or listen, there? The kernel says so:
 * it noted it when the connection was made. */
bool peer_is_own_user(int fd);
/* The same of a TCP connection, by the kernel's table of them. A connection whose other end is not
 * on this machine is nobody's. */
bool peer_tcp_is_own_user(int fd);
/* The number of the process that connected; 0: not known. */
long peer_process(int fd);
/* Is it a program in a sandbox, or gone? Its shim is above it, which no program of its own can have
 * renamed; whatever a connection is passed on to, the kernel notes who made it. */
bool peer_is_held(int fd);
/* A connection that waits, close-on-exec and non-blocking; -1 with errno. */
int peer_accept(int listener);

#endif
