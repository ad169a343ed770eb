/* Finds out who is at the other end of a Unix socket. */
#include "os/peer.h"

#include "shim/protocol.h"

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

/* Reads the name of a process. Returns false if it is gone. */
static bool peer_name(pid_t pid, char name[32]) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, name, 31) : -1;
  if (fd >= 0)
    (void)close(fd);
  if (n <= 0)
    return false;
  name[n] = '\0';
  name[strcspn(name, "\n")] = '\0';
  return true;
}

bool peer_is_held(int fd) {
  enum { ABOVE = 256 }; /* the most ancestors that are followed */
  const pid_t own = getpid();
  pid_t pid = (pid_t)peer_process(fd);
  char name[32];
  for (int i = 0; pid > 1 && pid != own; i++) {
    if (i == ABOVE || !peer_name(pid, name) || strcmp(name, SHIM_HOLDS) == 0)
      return true;
    pid = shim_parent_of(pid);
  }
  return false;
}

int peer_accept(int listener) {
  return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
