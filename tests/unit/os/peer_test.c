/* Who is at the other end of a TCP connection: by the kernel's answer, by its table where there is
 * none, for IPv4, IPv6 and one through the other; another user, a client that is gone. */

#include "os/peer.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

struct place {
  struct sockaddr_storage address;
  socklen_t n;
};

static struct place place_of(int family, const char *text, uint16_t port) {
  struct place p = {0};
  struct sockaddr_in *in = (struct sockaddr_in *)&p.address;
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&p.address;
  bool ipv4 = family == AF_INET;
  void *to = &in6->sin6_addr;
  if (ipv4)
    to = &in->sin_addr;
  p.address.ss_family = (sa_family_t)family;
  *(ipv4 ? &in->sin_port : &in6->sin6_port) = htons(port);
  assert_int_equal(inet_pton(family, text, to), 1);
  p.n = ipv4 ? sizeof *in : sizeof *in6;
  return p;
}

/* Returns -1 where the machine has no such address. */
static int peer_listen(int family, const char *text, uint16_t *port) {
  struct place p = place_of(family, text, 0);
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  if (bind(fd, (struct sockaddr *)&p.address, p.n) != 0 || listen(fd, 8) != 0) {
    (void)close(fd);
    return -1;
  }
  assert_int_equal(getsockname(fd, (struct sockaddr *)&p.address, &p.n), 0);
  *port = ntohs(((struct sockaddr_in *)&p.address)->sin_port); /* where IPv6 has it, too */
  return fd;
}

static int peer_connect(int family, const char *text, uint16_t port) {
  struct place p = place_of(family, text, port);
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&p.address, p.n) != 0)
    return -1;
  return fd;
}

static const struct route {
  const char *name;
  int listens;
  const char *at;
  int connects;
  const char *to;
} routes[] = {{"IPv4", AF_INET, "127.0.0.1", AF_INET, "127.0.0.1"},
              {"IPv6", AF_INET6, "::1", AF_INET6, "::1"},
              {"IPv4 from an IPv6 socket", AF_INET, "127.0.0.1", AF_INET6, "::ffff:127.0.0.1"},
              {"IPv6 listener for both", AF_INET6, "::", AF_INET, "127.0.0.1"}};

static bool kernel_answers(void) {
  int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 4 /* NETLINK_SOCK_DIAG */);
  if (fd >= 0)
    (void)close(fd);
  return fd >= 0;
}

TEST(our_own_end_is_known_in_both_ways) {
  for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
    uint16_t port = 0;
    int listener = peer_listen(routes[i].listens, routes[i].at, &port);
    int client = listener < 0 ? -1 : peer_connect(routes[i].connects, routes[i].to, port);
    if (client < 0) {
      print_message("no %s here\n", routes[i].name);
      continue;
    }
    int fd = accept(listener, NULL, NULL);
    print_message("%s\n", routes[i].name);
    assert_true(fd >= 0);
    assert_true(peer_tcp_is_own_user(fd));
    assert_int_equal(peer_tcp_ask(fd, PEER_READ_TABLE), PEER_OWN);
    if (kernel_answers())
      assert_int_equal(peer_tcp_ask(fd, PEER_ASK_KERNEL), PEER_OWN);
    (void)close(fd);
    (void)close(client);
    (void)close(listener);
  }
}

/* The client has sent what it wanted and is gone before anybody asks: its socket belongs to nobody,
 * which the kernel reports as root. */
TEST(a_client_that_is_gone_is_nobody) {
  uint16_t port = 0;
  int listener = peer_listen(AF_INET, "127.0.0.1", &port);
  int client = peer_connect(AF_INET, "127.0.0.1", port);
  assert_int_equal(send(client, "x", 1, 0), 1);
  (void)close(client);
  int fd = accept(listener, NULL, NULL);
  struct pollfd ended = {.fd = fd, .events = POLLRDHUP};
  assert_int_equal(poll(&ended, 1, 10000), 1);
  assert_false(peer_tcp_is_own_user(fd));
  assert_int_not_equal(peer_tcp_ask(fd, PEER_ASK_KERNEL), PEER_OWN);
  assert_int_not_equal(peer_tcp_ask(fd, PEER_READ_TABLE), PEER_OWN);
  (void)close(fd);
  (void)close(listener);
}

TEST(a_listener_is_no_peer) {
  uint16_t port = 0;
  int listener = peer_listen(AF_INET, "127.0.0.1", &port);
  assert_false(peer_tcp_is_own_user(listener));
  (void)close(listener);
}

TEST(another_user_is_refused) {
  uint16_t port = 0;
  int listener = peer_listen(AF_INET, "127.0.0.1", &port);
  char byte;
  if (geteuid() != 0)
    skip();
  pid_t pid = fork();
  if (pid == 0) {
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
      _exit(1);
    int client = peer_connect(AF_INET, "127.0.0.1", port);
    (void)recv(client, &byte, 1, 0); /* until it is let go */
    _exit(0);
  }
  int fd = accept(listener, NULL, NULL);
  assert_false(peer_tcp_is_own_user(fd));
  assert_int_equal(peer_tcp_ask(fd, PEER_READ_TABLE), PEER_OTHER);
  if (kernel_answers())
    assert_int_equal(peer_tcp_ask(fd, PEER_ASK_KERNEL), PEER_OTHER);
  (void)close(fd);
  (void)close(listener);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool refuse_netlink(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {ARRAY_LEN(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A sandbox that gives no netlink socket: 0: the table was read instead. */
static int without_netlink(void) {
  uint16_t port = 0;
  if (!refuse_netlink())
    return 77;
  int listener = peer_listen(AF_INET, "127.0.0.1", &port);
  int client = peer_connect(AF_INET, "127.0.0.1", port);
  int fd = accept(listener, NULL, NULL);
  if (client < 0 || fd < 0 || kernel_answers())
    return 1;
  if (peer_tcp_ask(fd, PEER_ASK_KERNEL) != PEER_UNKNOWN)
    return 2;
  return peer_tcp_is_own_user(fd) ? 0 : 3;
}

TEST(without_netlink_the_table_is_read) {
  int status = 0;
  pid_t pid = fork();
  if (pid == 0)
    _exit(without_netlink());
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}
