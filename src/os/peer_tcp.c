/* Finds out who is at the other end of a TCP connection on this machine. */
#include "os/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Writes an address as the kernel's tables do: words in the host's byte order, in hex. */
static bool put_end(const struct sockaddr_storage *a, char out[64]) {
  if (a->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)a;
    (void)snprintf(out, 64, "%08X:%04X", in->sin_addr.s_addr, ntohs(in->sin_port));
    return true;
  }
  if (a->ss_family != AF_INET6)
    return false;
  const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)a;
  uint32_t words[4];
  memcpy(words, &in->sin6_addr, sizeof words);
  (void)snprintf(out, 64, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
                 ntohs(in->sin6_port));
  return true;
}

bool peer_tcp_is_own_user(int fd) {
  struct sockaddr_storage here = {0}, there = {0};
  socklen_t n = sizeof here, m = sizeof there;
  char mine[64], theirs[64], line[512], local[64], remote[64];
  unsigned long uid = 0;
  bool own = false;
  if (getsockname(fd, (struct sockaddr *)&here, &n) != 0 ||
      getpeername(fd, (struct sockaddr *)&there, &m) != 0 || !put_end(&here, mine) ||
      !put_end(&there, theirs))
    return false;
  FILE *table = fopen(here.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
  if (table == NULL)
    return false;
  /* "sl: local remote state queues timer retransmits uid ...": the other end's row is the one whose
   * local address is our remote one. */
  while (!own && fgets(line, sizeof line, table) != NULL)
    own = sscanf(line, " %*[^:]: %63s %63s %*s %*s %*s %*s %lu", local, remote, &uid) == 3 &&
          strcmp(local, theirs) == 0 && strcmp(remote, mine) == 0 &&
          uid == (unsigned long)geteuid();
  fclose(table);
  return own;
}
