/* The size of a JSON value is told before its text is read. */
#include "format/json_write.h"

#include "support/test.h"

#include <string.h>

TEST(texts_are_measured) {
  static const struct {
    const char *text;
    size_t depth, values;
  } rows[] = {
      {"", 0, 1},
      {"7", 0, 1},
      {"[]", 1, 2},
      {"[1]", 1, 2},
      {"[1,2,3]", 1, 4},
      {"{\"a\": 1, \"b\": [2, {\"c\": 3}]}", 3, 6},
      {"\"[[[,,,{{{\"", 0, 1},
      {"[\"a\\\"[,\", \"\\\\\", [\"]\"]]", 2, 5},
      {"\"never ended [[,,", 0, 1},
      {"\"ends in a backslash\\", 0, 1},
      {"]]]][[", 2, 3}, /* no JSON, but no harm either */
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct json_size size = json_size(str_from(rows[i].text), 100, 100);
    if (size.depth != rows[i].depth || size.values != rows[i].values)
      fail_msg("%s: %zu levels, %zu values", rows[i].text, size.depth, size.values);
  }
}

/* Just passed, and no further: what is hostile costs nothing. */
TEST(it_stops_at_a_limit) {
  enum { BYTES = 64 * 1024 };
  static char text[BYTES];
  memset(text, '[', sizeof text);
  assert_int_equal(json_size((struct str){text, sizeof text}, 10, BYTES * 2).depth, 11);
  memset(text, ',', sizeof text);
  assert_int_equal(json_size((struct str){text, sizeof text}, 10, 500).values, 501);
  assert_int_equal(json_size((struct str){text, 499}, 10, 500).values, 500);
}
