/* Finds out who is at the other end of a Unix socket. */
#include "os/peer.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- of a Unix socket --- */

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

/* --- of a TCP connection on this machine --- */

/* Holds an end of a connection. An IPv4 address is held as IPv6 holds it (::ffff:127.0.0.1),
 * because a program may reach an IPv4 listener through an IPv6 socket. */
struct end {
  uint32_t words[4]; /* in the network's byte order */
  uint16_t port;     /* in the host's */
};

static struct end end_of_ipv4(uint32_t address, uint16_t port) {
  return (struct end){{0, 0, htonl(0xffff), address}, port};
}

static bool end_read(const struct sockaddr_storage *a, struct end *out) {
  if (a->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)a;
    *out = end_of_ipv4(in->sin_addr.s_addr, ntohs(in->sin_port));
    return true;
  }
  if (a->ss_family != AF_INET6)
    return false;
  const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)a;
  memcpy(out->words, &in->sin6_addr, sizeof out->words);
  out->port = ntohs(in->sin6_port);
  return true;
}

static bool end_is_ipv4(const struct end *e) {
  return e->words[0] == 0 && e->words[1] == 0 && e->words[2] == htonl(0xffff);
}

static bool end_eq(const struct end *a, const struct end *b) {
  return memcmp(a->words, b->words, sizeof a->words) == 0 && a->port == b->port;
}

/* Tells whether a socket is this user's. One that nobody holds any more has no inode, and its user
 * is reported as root. */
static enum peer_answer answer_of(unsigned long uid, unsigned long inode) {
  return inode != 0 && uid == (unsigned long)geteuid() ? PEER_OWN : PEER_OTHER;
}

/* --- one question to the kernel --- */

static struct end end_of_diag(int family, const uint32_t words[4], uint16_t port) {
  struct end e = end_of_ipv4(words[0], ntohs(port));
  if (family == AF_INET6)
    memcpy(e.words, words, sizeof e.words);
  return e;
}

/* Receives the kernel's answer. If there is no such connection, the kernel may name a listener. */
static enum peer_answer diag_receive(int fd, const struct end *here, const struct end *there) {
  union {
    struct nlmsghdr head;
    char bytes[4096];
  } m = {0};
  struct inet_diag_msg said;
  ssize_t n = recv(fd, &m, sizeof m, MSG_DONTWAIT);
  if (n < (ssize_t)NLMSG_LENGTH(sizeof said) || m.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return PEER_UNKNOWN;
  memcpy(&said, NLMSG_DATA(&m.head), sizeof said);
  struct end from = end_of_diag(said.idiag_family, said.id.idiag_src, said.id.idiag_sport);
  struct end to = end_of_diag(said.idiag_family, said.id.idiag_dst, said.id.idiag_dport);
  if (!end_eq(&from, there) || !end_eq(&to, here))
    return PEER_UNKNOWN;
  return answer_of(said.idiag_uid, said.idiag_inode);
}

static enum peer_answer ask_kernel(const struct end *here, const struct end *there) {
  enum peer_answer answer = PEER_UNKNOWN;
  int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0)
    return PEER_UNKNOWN;
  struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 ask;
  } m = {.head = {.nlmsg_len = sizeof m,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST},
         .ask = {.sdiag_protocol = IPPROTO_TCP, .idiag_states = UINT32_MAX}};
  bool ipv4 = end_is_ipv4(there) && end_is_ipv4(here);
  size_t from = ipv4 ? 3 : 0, n = ipv4 ? 4 : 16;
  m.ask.sdiag_family = ipv4 ? AF_INET : AF_INET6;
  m.ask.id.idiag_cookie[0] = m.ask.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  m.ask.id.idiag_sport = htons(there->port);
  m.ask.id.idiag_dport = htons(here->port);
  memcpy(m.ask.id.idiag_src, there->words + from, n);
  memcpy(m.ask.id.idiag_dst, here->words + from, n);
  if (send(fd, &m, sizeof m, 0) == (ssize_t)sizeof m)
    answer = diag_receive(fd, here, there);
  (void)close(fd);
  return answer;
}

/* --- the kernel's table --- */

/* Parses an end, which stands there as "0100007F:1F90": words as the host has them, in hex. */
static bool end_parse(const char *text, struct end *out) {
  size_t digits = strspn(text, "0123456789ABCDEF");
  if ((digits != 8 && digits != 32) || text[digits] != ':')
    return false;
  *out = end_of_ipv4(0, (uint16_t)strtoul(text + digits + 1, NULL, 16));
  for (size_t i = 0; i < digits / 8; i++) {
    char word[9] = {0};
    memcpy(word, text + 8 * i, 8);
    out->words[digits == 8 ? 3 : i] = (uint32_t)strtoul(word, NULL, 16);
  }
  return true;
}

/* Parses "sl: local remote state queues timer retransmits uid timeout inode ...". */
static bool row_parse(const char *line, struct end *local, struct end *remote, unsigned long *uid,
                      unsigned long *inode) {
  char from[64], to[64];
  return sscanf(line, " %*[^:]: %63s %63s %*s %*s %*s %*s %lu %*s %lu", from, to, uid, inode) ==
             4 &&
         end_parse(from, local) && end_parse(to, remote);
}

/* Looks for the other end's row: the one whose local address is our remote one. */
static enum peer_answer read_table(const char *path, const struct end *here,
                                   const struct end *there) {
  enum peer_answer answer = PEER_UNKNOWN;
  struct end local, remote;
  unsigned long uid, inode;
  char line[512];
  FILE *table = fopen(path, "re");
  if (table == NULL)
    return PEER_UNKNOWN;
  while (answer == PEER_UNKNOWN && fgets(line, sizeof line, table) != NULL)
    if (row_parse(line, &local, &remote, &uid, &inode) && end_eq(&local, there) &&
        end_eq(&remote, here))
      answer = answer_of(uid, inode);
  (void)fclose(table);
  return answer;
}

/* --- */

enum peer_answer peer_tcp_ask(int fd, enum peer_way way) {
  struct sockaddr_storage a = {0}, b = {0};
  socklen_t n = sizeof a, m = sizeof b;
  struct end here, there;
  if (getsockname(fd, (struct sockaddr *)&a, &n) != 0 ||
      getpeername(fd, (struct sockaddr *)&b, &m) != 0 || !end_read(&a, &here) ||
      !end_read(&b, &there))
    return PEER_UNKNOWN;
  switch (way) {
  case PEER_ASK_KERNEL:
    return ask_kernel(&here, &there);
  case PEER_READ_TABLE: {
    /* An IPv6 socket stands in the second table, whatever it is connected to. */
    enum peer_answer answer = PEER_UNKNOWN;
    if (end_is_ipv4(&there))
      answer = read_table("/proc/net/tcp", &here, &there);
    return answer != PEER_UNKNOWN ? answer : read_table("/proc/net/tcp6", &here, &there);
  }
  }
  BUG("no way to ask: %d", (int)way);
}

bool peer_tcp_is_own_user(int fd) {
  enum peer_answer answer = peer_tcp_ask(fd, PEER_ASK_KERNEL);
  if (answer == PEER_UNKNOWN)
    answer = peer_tcp_ask(fd, PEER_READ_TABLE);
  return answer == PEER_OWN;
}
