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
  DATA_ROWS("provider/denials/a_hint_names_a_setting.yaml", c, text, hint, hides) {
    buf_auto_t out = {0};
    bool found = denial_hint(str_from(c.text), "/home/x/work", data_true(c.hides), &out);
    if (found != (c.hint != NULL) || (found && strstr(out.p, c.hint) == NULL))
      fail_msg("%s: %s", c.text, buf_c(&out));
  }
}
