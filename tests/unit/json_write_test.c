/* The writer against jansson's own: the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/json_write.h"

#include <stdlib.h>

static void same(json_t *value) {
  struct buf out = {0};
  char *wanted = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
  json_write(value, &out);
  assert_string_equal(buf_c(&out), wanted);
  free(wanted);
  buf_deinit(&out);
  json_decref(value);
}

static void test_same_as_jansson(void **state) {
  static const char *const texts[] = {
      "{}",
      "[]",
      "null",
      "true",
      "false",
      "0",
      "-1",
      "9223372036854775807",
      "-9223372036854775808",
      "0.1",
      "1e300",
      "-2.5",
      "1.0",
      "\"\"",
      "\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"",
      "\"h\\u00e9 \\u8a08\\u753b \\ud83d\\ude00\"",
      "{\"b\":1,\"a\":[1,[2,{\"c\":null}],\"x\"],\"\":{}}",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    json_t *value = json_loads(texts[i], JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    same(value);
  }
}

static void test_every_byte(void **state) {
  (void)state;
  for (int c = 0; c < 128; c++) {
    char text[3] = {'x', (char)c, 'y'};
    same(json_stringn(text, 3));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_as_jansson),
      cmocka_unit_test(test_every_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
