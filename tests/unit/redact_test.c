/* Declared variables' values never stay in a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "provider/redact.h"

#include <stdlib.h>

static const char *const names[] = {"REDACT_TEST_KEY", "REDACT_TEST_PIN", "REDACT_TEST_UNSET",
                                    NULL};

static void test_replaces(void **state) {
  static const struct {
    const char *in, *out;
    size_t count;
  } cases[] = {
      {"", "", 0},
      {"nothing here", "nothing here", 0},
      {"sk-12345678", "\xC2\xABsecret:REDACT_TEST_KEY\xC2\xBB", 1},
      {"a sk-12345678sk-12345678 b",
       "a \xC2\xABsecret:REDACT_TEST_KEY\xC2\xBB\xC2\xABsecret:REDACT_TEST_KEY\xC2\xBB b", 2},
      {"sk-1234567", "sk-1234567", 0},
      {"pin 1234", "pin 1234", 0}, /* too short to be told from other text */
  };
  (void)state;
  setenv("REDACT_TEST_KEY", "sk-12345678", 1);
  setenv("REDACT_TEST_PIN", "1234", 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct buf text = {0};
    buf_puts(&text, cases[i].in);
    assert_int_equal(redact(&text, names, false), cases[i].count);
    assert_string_equal(buf_c(&text), cases[i].out);
    assert_int_equal(redact(&text, names, false), 0);
    buf_deinit(&text);
  }
}

static void test_cut(void **state) {
  static const struct {
    const char *in, *out;
  } cases[] = {
      {"abc sk-123", "abc "}, {"abc s", "abc "}, {"abc", "abc"}, {"sk-1234567", ""}, {"", ""},
  };
  (void)state;
  setenv("REDACT_TEST_KEY", "sk-12345678", 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct buf text = {0};
    buf_puts(&text, cases[i].in);
    (void)redact(&text, names, true);
    assert_string_equal(buf_c(&text), cases[i].out);
    buf_deinit(&text);
  }
}

static void test_no_names(void **state) {
  struct buf text = {0};
  (void)state;
  buf_puts(&text, "sk-12345678");
  assert_int_equal(redact(&text, NULL, true), 0);
  buf_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replaces),
      cmocka_unit_test(test_cut),
      cmocka_unit_test(test_no_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
