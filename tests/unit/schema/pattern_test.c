/* ECMA-262 patterns: what matches, what is refused and where; that none takes too long. */
#include <string.h>

#include "schema/pattern.h"
#include "support/test.h"

static int match(const char *pattern, size_t pattern_length, const char *text, size_t length) {
  struct pattern *compiled;
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  enum pattern_status status = pattern_compile(pattern, pattern_length, &compiled, NULL);
  if (status != PATTERN_OK)
    return -1;
  enum pattern_result plain = pattern_match(compiled, &scratch, text, length);
  pattern_speed_up(compiled);
  enum pattern_result fast = pattern_match(compiled, &scratch, text, length);
  assert_int_equal(plain, fast);
  pattern_free(compiled);
  return (int)fast;
}

enum { YES = PATTERN_MATCH, NO = PATTERN_NO_MATCH, HARD = PATTERN_TOO_COMPLEX, BAD = -1 };

TEST(as_ecma_262_says) {
  static const struct {
    const char *pattern, *text;
    int result;
  } cases[] = {
      {"", "", YES},
      {".*", "\n", YES},
      {"^x-", "x-y", YES},
      {"^x-", "ax-", NO},
      {"b", "abc", YES},
      {"bc$", "abc", YES},
      {"^abc$", "abc", YES},
      {"^abc$", "abc\n", NO},
      {"c$", "abc\n", NO},
      {"^$", "", YES},
      {"^$", "x", NO},
      {"^[a-z]+$", "abc", YES},
      {"^.$", "\r", NO},
      {"^.$", "\xe2\x80\xa8", NO},
      {"^.$", "\xf0\x9f\x98\x80", YES},
      {"^\\s$", "\xc2\xa0", YES},
      {"^\\s$", "\xef\xbb\xbf", YES},
      {"^\\S$", "\xc2\xa0", NO},
      {"^[\\s]$", "\xe2\x80\xa8", YES},
      {"^[^\\s]$", "\xe2\x80\xa8", NO},
      {"^[\\S]$", "x", YES},
      {"^[\\S]$", "\xe3\x80\x80", NO},
      {"^\\d$", "\xd9\xa0", NO},
      {"^[\\d]$", "\xd9\xa0", NO},
      {"^\\w$", "\xc3\xa9", NO},
      {"^\\W$", "\xc3\xa9", YES},
      {"^\\u0041\\x42\\u{43}$", "ABC", YES},
      {"^\\uD83D\\uDE00$", "\xf0\x9f\x98\x80", YES},
      {"^[\\u{1F600}-\\u{1F610}]$", "\xf0\x9f\x98\x80", YES},
      {"^\\cA$", "\x01", YES},
      {"^\\p{Letter}+$", "a\xc3\xa9", YES},
      {"^\\p{L}$", "1", NO},
      {"^\\P{L}$", "1", YES},
      {"^[\\p{Lu}\\p{General_Category=Decimal_Number}]+$", "A1", YES},
      {"^\\p{Script=Greek}$", "\xce\xb1", YES},
      {"^\\p{ASCII}+$", "ab", YES},
      {"[]", "a", NO},
      {"^[^]$", "\n", YES},
      {"^[[:alpha:]]$", "a]", YES}, /* a class of [ : a l p h, then ] */
      {"^[:alpha:]$", ":", YES},
      {"^[a^]$", "^", YES},
      {"^[\\b]$", "\b", YES},
      {"^[a\\-z]$", "-", YES},
      {"^[a\\-z]$", "m", NO},
      {"^[\\w-]+$", "a-b", YES},
      {"^[+-/]$", ",", YES},
      {"^(a)\\1$", "aa", YES},
      {"^(?:(a)|b)\\1$", "b", YES}, /* an unset group matches nothing */
      {"^(?<x>a)\\k<x>$", "aa", YES},
      {"^a(?=b)", "ab", YES},
      {"(?<=a)b", "ab", YES},
      {"(?<!a)b", "ab", NO},
      {"^a{2}$", "aa", YES},
      {"^a{,2}$", "a{,2}", YES},
      {"^{x}$", "{x}", YES},
      {"^a+?$", "aaa", YES},
      {"^\\/\\-\\@$", "/-@", YES},
      {"a\\Z", "", BAD},
      {"\\A", "", BAD},
      {"\\a", "", BAD},
      {"\\Q", "", BAD},
      {"(?i)a", "", BAD},
      {"(?>a)", "", BAD},
      {"(?#x)", "", BAD},
      {"(*UTF)a", "", BAD},
      {"(*LIMIT_MATCH=1)a", "", BAD},
      {"a++", "", BAD},
      {"a*+", "", BAD},
      {"a{1}{2}", "", BAD},
      {"*a", "", BAD},
      {"^*", "", BAD},
      {"(?=a)*", "", BAD},
      {"(", "", BAD},
      {")", "", BAD},
      {"[a", "", BAD},
      {"a\\", "", BAD},
      {"\\1", "", BAD},
      {"\\01", "", BAD},
      {"\\p{Nothing}", "", BAD},
      {"\\p{L", "", BAD},
      {"\\pL", "", BAD},
      {"\\u{110000}", "", BAD},
      {"\\u{}", "", BAD},
      {"\\uD800", "", BAD},
      {"\\xg", "", BAD},
      {"[z-a]", "", BAD},
      {"(?<a>x)(?<a>y)", "", BAD},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int got =
        match(cases[i].pattern, strlen(cases[i].pattern), cases[i].text, strlen(cases[i].text));
    if (got != cases[i].result)
      fail_msg("/%s/ on \"%s\": %d, not %d", cases[i].pattern, cases[i].text, got, cases[i].result);
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
