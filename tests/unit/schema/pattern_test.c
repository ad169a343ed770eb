/* ECMA-262 patterns: what matches, what is refused and where; that none takes too long. */
#include <string.h>

#include "schema/pattern.h"
#include "support/data.h"
#include "support/test.h"

/* As enum pattern_result; BAD: no pattern. */
enum { YES, NO, HARD, BAD };

static int match(const char *pattern, size_t pattern_length, const char *text, size_t length) {
  struct pattern *compiled;
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  enum pattern_status status = pattern_compile(pattern, pattern_length, &compiled, NULL);
  if (status != PATTERN_OK)
    return BAD;
  enum pattern_result plain = pattern_match(compiled, &scratch, text, length);
  pattern_speed_up(compiled);
  enum pattern_result fast = pattern_match(compiled, &scratch, text, length);
  assert_int_equal(plain, fast);
  pattern_free(compiled);
  return (int)fast;
}

TEST(as_ecma_262_says) {
  DATA_ROWS("schema/pattern/as_ecma_262_says.yaml", c, pattern, text, result) {
    int wanted = (int)data_among(c.result, "yes no hard bad");
    int got = match(c.pattern, strlen(c.pattern), c.text, strlen(c.text));
    if (got != wanted)
      fail_msg("/%s/ on \"%s\": %d, not %d", c.pattern, c.text, got, wanted);
  }
  assert_int_equal(match("^a\0b$", 5, "a\0b", 3), YES);
  assert_int_equal(match("^.$", 3, "\xff", 1), NO); /* not UTF-8 */
}

TEST(bounded) {
  char text[200001];
  memset(text, 'a', sizeof text);
  text[sizeof text - 1] = '!';
  assert_int_equal(match("^(a+)+$", 7, text + sizeof text - 40, 40), HARD);
  assert_int_equal(match("^(a|aa)+$", 9, text, sizeof text), HARD);
  assert_int_equal(match("[ab]*[ab]*[cd]", 14, text, sizeof text),
                   HARD); /* a cubic walk if it were let */
  assert_int_equal(match("^[ab]+!$", 8, text, sizeof text), YES);
  assert_int_equal(match("x", 1, text, sizeof text), NO);

  char deep[300];
  memset(deep, '(', 150);
  memset(deep + 150, ')', 150);
  assert_int_equal(match(deep, sizeof deep, "", 0), BAD);
  const char *blown = "((((a{1,999}){1,999}){1,999}){1,999})";
  assert_int_equal(match(blown, strlen(blown), "", 0), BAD);
}

TEST(says_where) {
  struct pattern *pattern;
  struct pattern_error error;
  assert_int_equal(pattern_compile("ab(?i)", 6, &pattern, &error), PATTERN_INVALID);
  assert_int_equal(error.offset, 2);
  assert_string_equal(error.text, "not a group of ECMA-262");
  pattern_free(NULL);
}
