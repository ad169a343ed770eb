/* The strict scanner against RFC 8259 and against jansson. */
#include "base/memory.h"
#include "support/test.h"
#include "json/scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum jscan_code scan(const char *text, size_t n, struct jscan_result *r) {
  AUTO(jscan_deinit) struct jscan js;
  jscan_init(&js, text, n);
  return jscan_value(&js, 0, r);
}

/* text, code, offset of the failure or of the end */
static const struct {
  const char *text;
  enum jscan_code code;
  size_t offset;
} verdicts[] = {
    {"{}", JSCAN_OK, 2},
    {"[ ] x", JSCAN_OK, 3},
    {"{\"a\":[1,2,{\"b\":null}],\"c\":\"d\"},", JSCAN_OK, 30},
    {"-0.5e+3 ", JSCAN_OK, 7},
    {"true", JSCAN_OK, 4},
    {"tru", JSCAN_TRUNCATED, 3},
    {"trux", JSCAN_SYNTAX, 0},
    {"[1,]", JSCAN_SYNTAX, 3},
    {"[1 2]", JSCAN_SYNTAX, 3},
    {"{,}", JSCAN_SYNTAX, 1},
    {"{\"a\":1,}", JSCAN_SYNTAX, 7},
    {"{\"a\" 1}", JSCAN_SYNTAX, 5},
    {"{\"a\":1]", JSCAN_SYNTAX, 6},
    {"[01]", JSCAN_SYNTAX, 2},
    {"[1.]", JSCAN_SYNTAX, 3},
    {"[.5]", JSCAN_SYNTAX, 1},
    {"[+1]", JSCAN_SYNTAX, 1},
    {"[1e]", JSCAN_SYNTAX, 3},
    {"[NaN]", JSCAN_SYNTAX, 1},
    {"[1e400]", JSCAN_NUMBER_RANGE, 1},
    {"[\"a", JSCAN_TRUNCATED, 3},
    {"[\"\\u12", JSCAN_TRUNCATED, 2},
    {"[1", JSCAN_TRUNCATED, 2},
    {"{\"a\":", JSCAN_TRUNCATED, 5},
    {"[\"\n\"]", JSCAN_CONTROL, 2},
    {"[\"\\x\"]", JSCAN_ESCAPE, 2},
    {"[\"\\u12g4\"]", JSCAN_ESCAPE, 2},
    {"[\"\xC0\xAF\"]", JSCAN_UTF8, 2},
    {"[\"\xED\xA0\x80\"]", JSCAN_UTF8, 2},
    {"[\"\xF4\x90\x80\x80\"]", JSCAN_UTF8, 2},
    {"[\"\xE2\x82\"]", JSCAN_UTF8, 2},
};

TEST(test_verdicts) {
  for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
    struct jscan_result r;
    enum jscan_code code = scan(verdicts[i].text, strlen(verdicts[i].text), &r);
    size_t at = code == JSCAN_OK ? r.end : r.offset;
    if (code != verdicts[i].code || at != verdicts[i].offset)
      fail_msg("%s: %s at %zu", verdicts[i].text, jscan_code_name(code), at);
    json_decref(r.value);
  }
}

static void string_is(const char *text, const char *expected, size_t n) {
  struct jscan_result r;
  assert_int_equal(scan(text, strlen(text), &r), JSCAN_OK);
  const json_t *v = json_array_get(r.value, 0);
  assert_int_equal(json_string_length(v), n);
  assert_memory_equal(json_string_value(v), expected, n);
  json_decref(r.value);
}

TEST(test_strings) {
  string_is("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "\"\\/\b\f\n\r\t", 8);
  string_is("[\"a\\u0000b\"]", "a\0b", 3);
  string_is("[\"\\ud83d\\ude00\"]", "\xF0\x9F\x98\x80", 4);
  string_is("[\"\\ud83dx\"]", "\xEF\xBF\xBDx", 4);
  string_is("[\"\\ude00\\ud83d\"]", "\xEF\xBF\xBD\xEF\xBF\xBD", 6);
  string_is("[\"\\u00e9\\u20ac\"]", "\xC3\xA9\xE2\x82\xAC", 5);
  string_is("[\"0123456789abcdef0123456789abcdef\\n\xC3\xA9\"]",
            "0123456789abcdef0123456789abcdef\n\xC3\xA9", 35);
}

TEST(test_keys) {
  struct jscan_result r;
  static const char text[] =
      "{\"k\\u00e9y\":\"v\\n\",\"d\":1,\"d\":2,\"o\\t\":{\"p\\\\\":\"\\/\"}}";
  assert_int_equal(scan(text, sizeof text - 1, &r), JSCAN_OK);
  assert_string_equal(json_string_value(json_object_get(r.value, "k\xC3\xA9y")), "v\n");
  assert_int_equal(json_integer_value(json_object_get(r.value, "d")), 2);
  assert_string_equal(json_string_value(json_object_get(json_object_get(r.value, "o\t"), "p\\")),
                      "/");
  json_decref(r.value);
}

static json_t *number(const char *text) {
  json_t *v = NULL;
  size_t end;
  assert_int_equal(jscan_number(text, strlen(text), 0, &v, &end), JSCAN_OK);
  assert_int_equal(end, strlen(text));
  return v;
}

TEST(test_numbers) {
  static const struct {
    const char *text;
    json_int_t value;
  } integers[] = {{"0", 0},
                  {"-0", 0},
                  {"42", 42},
                  {"123456789012345678", 123456789012345678},
                  {"9223372036854775807", INT64_MAX},
                  {"-9223372036854775808", INT64_MIN}};
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    json_auto_t *v = number(integers[i].text);
    assert_true(json_is_integer(v));
    assert_true(json_integer_value(v) == integers[i].value);
  }
  /* the same double as strtod, by the fast way and by the slow one */
  static const char *const reals[] = {"0.1",
                                      "1.5e-3",
                                      "123.456",
                                      "1e22",
                                      "1e23",
                                      "9007199254740993.0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "123456789012345678901234567890",
                                      "4.9e-324",
                                      "1e-400",
                                      "1.7976931348623157e308",
                                      "0.30000000000000004",
                                      "2.2250738585072011e-308",
                                      "-1.25E+2"};
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
    json_auto_t *v = number(reals[i]);
    assert_true(json_is_real(v));
    assert_true(json_real_value(v) == strtod(reals[i], NULL));
  }
}

static char *nested(size_t depth) {
  char *text = malloc(2 * depth + 1);
  assert_non_null(text);
  memset(text, '[', depth);
  memset(text + depth, ']', depth);
  text[2 * depth] = '\0';
  return text;
}

TEST(test_depth) {
  struct jscan_result r;
  char *text = nested(JSCAN_DEPTH_MAX);
  assert_int_equal(scan(text, strlen(text), &r), JSCAN_OK);
  json_decref(r.value);
  free(text);
  text = nested(1000000);
  assert_int_equal(scan(text, strlen(text), &r), JSCAN_DEPTH);
  assert_true(r.closed);
  assert_int_equal(r.end, strlen(text));
  assert_int_equal(scan(text, 1500000, &r), JSCAN_DEPTH);
  assert_false(r.closed);
  free(text);
}

/* no read beyond the length given, wherever the text is cut; each cut text is in memory of its
 * exact size */
TEST(test_every_cut) {
  static const char text[] = "{\"a\\u00e9\\ud83d\\ude00\":[-1.5e+10,true,false,null,"
                             "\"\xF0\x9F\x98\x80 0123456789abcdef\"],\"b\":{}}";
  for (size_t n = 1; n < sizeof text - 1; n++) {
    char_auto_t *cut = malloc(n);
    assert_non_null(cut);
    memcpy(cut, text, n);
    struct jscan_result r;
    enum jscan_code code = scan(cut, n, &r);
    assert_true(code == JSCAN_TRUNCATED || code == JSCAN_UTF8);
  }
}

/* Ours accepts all that jansson's reader accepts, with the same value. */
TEST(test_against_jansson) {
  uint32_t x = 88172645;
  static const char *const pieces[] = {"{",     "}",       "[",  "]",           ",",   ":",
                                       "\"a\"", "\"\\n\"", "1",  "-2.5",        "1e3", "true",
                                       "null",  " ",       "\n", "\"\xC3\xA9\""};
  size_t accepted = 0;
  for (size_t round = 0; round < 300000; round++) {
    char text[256] = "";
    size_t n = 0, count = 1 + round % 9;
    for (size_t i = 0; i < count; i++) {
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
      const char *piece =
          i == 0 ? pieces[round % 2 * 2] : pieces[(x >> 8) % (sizeof pieces / sizeof *pieces)];
      memcpy(text + n, piece, strlen(piece));
      n += strlen(piece);
    }
    if (text[0] != '{' && text[0] != '[')
      continue;
    json_error_t error;
    json_auto_t *theirs = json_loadb(text, n, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &error);
    struct jscan_result r;
    enum jscan_code code = scan(text, n, &r);
    if ((theirs != NULL) != (code == JSCAN_OK) || (theirs && !json_equal(theirs, r.value)))
      fail_msg("seed 88172645 round %zu: %s", round, text);
    accepted += theirs != NULL;
    json_decref(r.value);
  }
  assert_true(accepted > 1000);
}
