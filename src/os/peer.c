/* Who is at the other end of a Unix socket. */
#include "os/peer.h"

#include <sys/socket.h>
#include <unistd.h>

bool peer_is_own_user(int fd) {
  struct ucred peer;
  socklen_t n = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

long peer_process(int fd) {
  struct ucred peer;
  socklen_t n = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 ? (long)peer.pid : 0;
}

int peer_accept(int listener) {
  return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
