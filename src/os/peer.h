/* peer.h - who is at the other end of a Unix socket, or of a TCP connection on this machine. */
#ifndef SEGUE_OS_PEER_H
#define SEGUE_OS_PEER_H

#include <stdbool.h>

/* Did a process of this program's own effective user connect, or listen, there? The kernel says so:
 * it noted it when the connection was made. */
bool peer_is_own_user(int fd);
/* The same for a TCP connection, by the kernel's table. If the other end is not on this machine,
 * the answer is no. */
bool peer_tcp_is_own_user(int fd);
/* The number of the process that connected; 0: not known. */
long peer_process(int fd);
/* Is the peer a sandboxed program, or gone? It is recognized by the shim above it, which no program
 * below can rename; even if a connection is passed on, the kernel remembers who made it. */
bool peer_is_held(int fd);
/* A connection that waits, close-on-exec and non-blocking; -1 with errno. */
int peer_accept(int listener);

#endif
