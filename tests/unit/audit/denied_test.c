/* Reads refusals out of lines that programs print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/denied.h"
#include "base/log.h"

#include <string.h>

static void each_line_is_read(void **state) {
  static const struct {
    const char *line, *path; /* path NULL: no refusal */
    enum denied_kind kind;
  } rows[] = {
      {"cat: /home/x/.ssh/id: Permission denied", "/home/x/.ssh/id", DENIED_ACCESS},
      {"touch: cannot touch '/opt/x': Permission denied", "/opt/x", DENIED_WRITE},
      {"sh: 1: cannot create ../beside: Permission denied", "../beside", DENIED_WRITE},
      {"bash: line 1: /root/x: Permission denied", "/root/x", DENIED_ACCESS},
      {"Error: EACCES: permission denied, open '/root/.npmrc'", "/root/.npmrc", DENIED_ACCESS},
      {"Error: EACCES: permission denied, mkdir '/root/a b'", "/root/a b", DENIED_WRITE},
      {"PermissionError: [Errno 13] Permission denied: '/x/y'", "/x/y", DENIED_ACCESS},
      {"/bin/x: open(/etc/y): Operation not permitted", "/etc/y", DENIED_ACCESS},
      {"mkdir: cannot create directory '/usr/q': Read-only file system", "/usr/q", DENIED_WRITE},
      {"Error: connect EACCES 1.2.3.4:443", "", DENIED_NETWORK},
      {"socket: Permission denied", "", DENIED_NETWORK},
      {"make: permission denied", NULL, DENIED_ACCESS},
      {"cat: /x: No such file or directory", NULL, DENIED_ACCESS},
      {"cat: /home/x/.ssh/id: No such file or directory", "/home/x/.ssh/id", DENIED_HIDDEN},
      {"Error: ENOENT: no such file, open '/srv/x/.aws/config'", "/srv/x/.aws/config",
       DENIED_HIDDEN},
      {"make: *** No such file or directory", NULL, DENIED_ACCESS},
      {"connect: Network is unreachable", "", DENIED_NETWORK},
      {"curl: (6) Could not resolve host: example.com", "", DENIED_NETWORK},
      {"'", NULL, DENIED_ACCESS},
      {"EACCES '", NULL, DENIED_ACCESS},
      {"", NULL, DENIED_ACCESS},
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct str rest = str_from(rows[i].line), path = STR("");
    enum denied_kind kind = DENIED_ACCESS;
    bool found = denied_next(&rest, &path, &kind);
    if (found != (rows[i].path != NULL))
      fail_msg("%s: %s", rows[i].line, found ? "found" : "not found");
    if (found && (!str_eq_c(path, rows[i].path) || kind != rows[i].kind))
      fail_msg("%s: %.*s, %d", rows[i].line, (int)path.n, path.p, kind);
  }
}

static void lines_come_one_after_the_other(void **state) {
  struct str rest = STR("ok\ncat: /a: Permission denied\nls: /b: Permission denied\r\nend"), path;
  enum denied_kind kind;
  (void)state;
  assert_true(denied_next(&rest, &path, &kind));
  assert_true(str_eq_c(path, "/a"));
  assert_true(denied_next(&rest, &path, &kind));
  assert_true(str_eq_c(path, "/b"));
  assert_false(denied_next(&rest, &path, &kind));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_line_is_read),
      cmocka_unit_test(lines_come_one_after_the_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
