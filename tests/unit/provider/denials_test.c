/* Reads refusals out of lines that programs print. */

#include "provider/denials.h"
#include "support/test.h"

#include <string.h>

TEST(each_line_is_read) {
  static const struct {
    const char *line, *path; /* path NULL: no refusal */
    enum denial_kind kind;
  } rows[] = {
      {"cat: /home/x/.ssh/id: Permission denied", "/home/x/.ssh/id", DENIAL_ACCESS},
      {"touch: cannot touch '/opt/x': Permission denied", "/opt/x", DENIAL_WRITE},
      {"sh: 1: cannot create ../beside: Permission denied", "../beside", DENIAL_WRITE},
      {"bash: line 1: /root/x: Permission denied", "/root/x", DENIAL_ACCESS},
      {"Error: EACCES: permission denied, open '/root/.npmrc'", "/root/.npmrc", DENIAL_ACCESS},
      {"Error: EACCES: permission denied, mkdir '/root/a b'", "/root/a b", DENIAL_WRITE},
      {"PermissionError: [Errno 13] Permission denied: '/x/y'", "/x/y", DENIAL_ACCESS},
      {"/bin/x: open(/etc/y): Operation not permitted", "/etc/y", DENIAL_ACCESS},
      {"mkdir: cannot create directory '/usr/q': Read-only file system", "/usr/q", DENIAL_WRITE},
      {"Error: connect EACCES 1.2.3.4:443", "", DENIAL_NETWORK},
      {"socket: Permission denied", "", DENIAL_NETWORK},
      {"make: permission denied", NULL, DENIAL_ACCESS},
      {"cat: /x: No such file or directory", NULL, DENIAL_ACCESS},
      {"cat: /home/x/.ssh/id: No such file or directory", "/home/x/.ssh/id", DENIAL_HIDDEN},
      {"Error: ENOENT: no such file, open '/srv/x/.aws/config'", "/srv/x/.aws/config",
       DENIAL_HIDDEN},
      {"make: *** No such file or directory", NULL, DENIAL_ACCESS},
      {"connect: Network is unreachable", "", DENIAL_NETWORK},
      {"curl: (6) Could not resolve host: example.com", "", DENIAL_NETWORK},
      {"'", NULL, DENIAL_ACCESS},
      {"EACCES '", NULL, DENIAL_ACCESS},
      {"", NULL, DENIAL_ACCESS},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct str rest = str_from(rows[i].line), path = STR("");
    enum denial_kind kind = DENIAL_ACCESS;
    bool found = denial_next(&rest, &path, &kind);
    if (found != (rows[i].path != NULL))
      fail_msg("%s: %s", rows[i].line, found ? "found" : "not found");
    if (found && (!str_eq_c(path, rows[i].path) || kind != rows[i].kind))
      fail_msg("%s: %.*s, %d", rows[i].line, (int)path.n, path.p, kind);
  }
}

TEST(lines_come_one_after_the_other) {
  struct str rest = STR("ok\ncat: /a: Permission denied\nls: /b: Permission denied\r\nend"), path;
  enum denial_kind kind;
  assert_true(denial_next(&rest, &path, &kind));
  assert_true(str_eq_c(path, "/a"));
  assert_true(denial_next(&rest, &path, &kind));
  assert_true(str_eq_c(path, "/b"));
  assert_false(denial_next(&rest, &path, &kind));
}

TEST(a_hint_names_a_setting) {
  static const struct {
    const char *text, *hint; /* NULL: none */
    bool hides;
  } rows[] = {
      {"ok\ncat: /home/x/.npmrc: Permission denied", "{read: [/home/x/.npmrc]}", false},
      {"touch: cannot touch '/usr/x': Permission denied", "{write: [/usr/x]}", false},
      {"cat: /home/x/.npmrc: No such file or directory", "{read: [/home/x/.npmrc]}", true},
      {"cat: /home/x/.npmrc: No such file or directory", NULL, false},
      {"cat: /home/x/work/y: Permission denied", NULL, false}, /* in the workspace */
      {"cat: /etc/shadow: Permission denied", NULL, false},    /* the system's own business */
      {"connect: Network is unreachable", NULL, true},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    buf_auto_t out = {0};
    bool found = denial_hint(str_from(rows[i].text), "/home/x/work", rows[i].hides, &out);
    if (found != (rows[i].hint != NULL) || (found && strstr(out.p, rows[i].hint) == NULL))
      fail_msg("%s: %s", rows[i].text, buf_c(&out));
  }
}
