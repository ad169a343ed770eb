/* Calls: the names of purposes and classes, which errors pass, texts that a log cannot hold whole.
 */
#include "core/call.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(names_go_there_and_back) {
  enum call_purpose purpose;
  enum error_class class;
  for (int i = 0; i < PURPOSE_COUNT; i++) {
    assert_true(
        call_purpose_from_name(str_from(call_purpose_name((enum call_purpose)i)), &purpose));
    assert_int_equal(purpose, i);
  }
  for (int i = CLASS_NONE + 1; i < CLASS_COUNT; i++) {
    assert_true(error_class_from_name(str_from(error_class_name((enum error_class)i)), &class));
    assert_int_equal(class, i);
  }
  assert_false(error_class_from_name(STR("ok"), &class));
  assert_false(error_class_from_name(STR(""), &class));
  assert_false(call_purpose_from_name(STR("Judge"), &purpose));
}

TEST(some_errors_pass) {
  for (int i = 0; i < CLASS_COUNT; i++)
    assert_int_equal(error_class_is_transient((enum error_class)i),
                     i == CLASS_NETWORK || i == CLASS_OVERLOADED || i == CLASS_RATE_LIMIT);
}

TEST(short_texts_are_rendered_readable) {
  static const struct {
    const char *text, *rendered;
    bool blob;
  } cases[] = {
      {"", "", false},
      {"plain 日本 \n\t\x1b[0m", "plain 日本 \n\t\x1b[0m", false},
      {"bad \xff\xc3(", "bad \\xff\\xc3(", true},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80", true},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *json = text_render(str_from(cases[i].text));
    assert_string_equal(json_string_value(json), cases[i].rendered);
    assert_int_equal(text_needs_blob(str_from(cases[i].text)), cases[i].blob);
  }
}

TEST(long_texts_keep_head_and_tail) {
  buf_auto_t text = {0};
  buf_puts(&text, "HEAD ");
  while (text.n < LIMIT_INLINE_TEXT_BYTES)
    buf_puts(&text, "日本語");
  buf_puts(&text, " TAIL");
  for (size_t cut = 0; cut < 4; cut++) { /* the cut falls on every byte of a sequence */
    struct str s = {text.p + cut, text.n - cut};
    json_auto_t *json = text_render(s);
    const char *p = json_string_value(json);
    size_t n = json_string_length(json);
    assert_true(n <= LIMIT_RENDER_BYTES + 64 && utf8_valid(p, n));
    assert_null(strstr(p, "\\x")); /* no sequence was cut */
    assert_non_null(strstr(p, " bytes ...]"));
    assert_string_equal(p + n - 5, " TAIL");
    assert_memory_equal(p, &"HEAD "[cut], 5 - cut);
  }
  assert_true(text_needs_blob(buf_view(&text)));
  assert_false(text_needs_blob((struct str){text.p, 5}));
  memset(text.p, 'x', text.n);
  assert_false(text_needs_blob((struct str){text.p, LIMIT_INLINE_TEXT_BYTES}));
  assert_true(text_needs_blob((struct str){text.p, LIMIT_INLINE_TEXT_BYTES + 1}));
}

TEST(a_result_is_given_back_whole) {
  struct call_result result = {.class = CLASS_TIMEOUT,
                               .structured = json_object(),
                               .files = json_array(),
                               .usage = json_object()};
  buf_puts(&result.text.bytes, "x");
  buf_puts(&result.error_text.bytes, "y");
  call_result_deinit(&result);
  assert_null(result.structured);
  call_result_deinit(&result);
}
