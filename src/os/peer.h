/* peer.h - who is at the other end of a Unix socket, or of a TCP connection on this machine. */
#ifndef SEGUE_OS_PEER_H
#define SEGUE_OS_PEER_H

#include <stdbool.h>

/* Did a process of this program's own effective user connect, or listen, there? The kernel says so:
 * it noted it when the connection was made. */
bool peer_is_own_user(int fd);
/* The same for a TCP connection: the kernel is asked about it (sock_diag), and where that is not to
 * be had, its table is read. If the other end is not on this machine, or nobody holds it any more,
 * the answer is no. */
bool peer_tcp_is_own_user(int fd);
/* Each asks in one of these ways alone. */
enum peer_way { PEER_ASK_KERNEL, PEER_READ_TABLE };
enum peer_answer { PEER_UNKNOWN, PEER_OWN, PEER_OTHER };
enum peer_answer peer_tcp_ask(int fd, enum peer_way way);
/* Returns the number of the process that connected, even if it passed the connection on; 0: it is
 * not known. */
long peer_process(int fd);
/* Accepts a connection that waits, close-on-exec and non-blocking; -1 with errno. */
int peer_accept(int listener);

#endif
