/* Reads refusals out of lines that programs print. */

#include "provider/denials.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(each_line_is_read) {
  DATA_ROWS("provider/denials/each_line_is_read.yaml", c, line, path, kind) {
    struct str rest = str_from(c.line), path = STR("");
    enum denial_kind kind = DENIAL_ACCESS;
    bool found = denial_next(&rest, &path, &kind);
    if (found != (c.path != NULL))
      fail_msg("%s: %s", c.line, found ? "found" : "not found");
    if (found &&
        (!str_eq_c(path, c.path) || kind != data_among(c.kind, "access write network hidden")))
      fail_msg("%s: %.*s, %d", c.line, (int)path.n, path.p, kind);
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
