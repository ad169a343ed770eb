/* The size of a JSON value is told before its text is read. */
#include "format/json_write.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

TEST(texts_are_measured) {
  DATA_ROWS("format/json_size/texts_are_measured.yaml", c, text, depth, values) {
    struct json_size size = json_size(str_from(c.text), 100, 100);
    if (size.depth != (size_t)data_number(c.depth) || size.values != (size_t)data_number(c.values))
      fail_msg("%s: %zu levels, %zu values", c.text, size.depth, size.values);
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
