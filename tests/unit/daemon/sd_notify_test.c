/* The service manager hears what it must, and nothing is left in the environment. */

#include "daemon/serve.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int listener(const char *name, size_t n) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, name, n);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
  assert_int_equal(bind(fd, (const struct sockaddr *)&address, length), 0);
  return fd;
}

static void hears(int fd, const char *wanted) {
  char got[512] = "";
  ssize_t n = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);
  assert_true(n > 0);
  assert_string_equal(got, wanted);
}

TEST(a_path_and_an_abstract_name) {
  char path[64], abstract[64];
  struct sd_notify n;
  print_into(path, sizeof path, "/tmp/segue-notify-%ld", (long)getpid());
  print_into(abstract, sizeof abstract, "@segue-notify-%ld", (long)getpid());
  const char *const names[] = {path, abstract};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    char bound[64];
    memcpy(bound, names[i], strlen(names[i]));
    if (bound[0] == '@')
      bound[0] = '\0';
    int fd = listener(bound, strlen(names[i]));
    setenv("NOTIFY_SOCKET", names[i], 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    sd_notify_init(&n);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    assert_int_equal(n.watchdog_ms, 0); /* meant for another process */
    sd_notify_send(&n, "READY=1\nSTATUS=%d", 7);
    hears(fd, "READY=1\nSTATUS=7");
    sd_notify_deinit(&n);
    close(fd);
  }
  (void)unlink(path);
}

TEST(without_a_manager_nothing_happens) {
  static const char *const names[] = {NULL, "", "relative", "/none/of/that"};
  struct sd_notify n;
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    if (names[i])
      setenv("NOTIFY_SOCKET", names[i], 1);
    sd_notify_init(&n);
    sd_notify_send(&n, "READY=1");
    sd_notify_deinit(&n);
  }
}

TEST(the_watchdog) {
  static const struct {
    const char *usec;
    uint64_t ms;
  } rows[] = {{"30000000", 30000}, {"0", 0}, {"-5", 0}, {"x", 0}, {"1500", 1}};
  struct sd_notify n;
  char pid[32];
  print_into(pid, sizeof pid, "%ld", (long)getpid());
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    setenv("WATCHDOG_USEC", rows[i].usec, 1);
    if (i > 0)
      setenv("WATCHDOG_PID", pid, 1);
    sd_notify_init(&n);
    assert_int_equal(n.watchdog_ms, rows[i].ms);
    sd_notify_deinit(&n);
  }
}
