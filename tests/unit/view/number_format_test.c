/* Numbers in words, and texts that are cut. */
#include "view/number_format.h"

#include "support/test.h"
#include "view/session_list.h"
#include "view/session_view.h"

#include <string.h>

struct words_case {
  int64_t n;
  const char *words;
};

static void put_all(void (*put)(struct buf *out, int64_t n), const struct words_case *cases,
                    size_t count) {
  for (size_t i = 0; i < count; i++) {
    buf_auto_t out = {0};
    buf_puts(&out, "<");
    put(&out, cases[i].n); /* it appends */
    assert_string_equal(buf_c(&out) + 1, cases[i].words);
  }
}

TEST(times) {
  static const struct words_case took[] = {
      {0, "0.0 s"},           {1, "0.0 s"},           {8049, "8.0 s"},
      {99999, "100.0 s"},     {100000, "1 min 40 s"}, {3599999, "59 min 59 s"},
      {3600000, "1 h 0 min"}, {7500000, "2 h 5 min"},
  };
  static const struct words_case ages[] = {
      {-5, "0 s"},      {59999, "59 s"},     {60000, "1 min"},      {3599999, "59 min"},
      {3600000, "1 h"}, {172799999, "47 h"}, {172800000, "2 days"},
  };
  static const struct words_case whens[] = {
      {0, "-"}, {-1, "-"}, {INT64_C(1770802200000), "2026-02-11 09:30:00 UTC"}};
  put_all(view_put_time, took, ARRAY_LEN(took));
  put_all(view_put_age, ages, ARRAY_LEN(ages));
  put_all(view_put_when, whens, ARRAY_LEN(whens));
}

TEST(costs) {
  static const struct {
    struct spend spend;
    const char *words;
  } cases[] = {
      {{0}, ""},
      {{.priced = 1, .cost_nano = 12300000}, "$0.0123"},
      {{.priced = 1, .unpriced = 2, .cost_nano = 12300000}, "$0.0123+"},
      {{.unpriced = 2}, "?"},
      {{.priced = 1}, "$0.0000"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t out = {0};
    view_put_cost(&out, &cases[i].spend);
    assert_string_equal(buf_c(&out), cases[i].words);
  }
}

TEST(proofs) {
  static const struct {
    struct verify_result result;
    const char *words;
  } cases[] = {
      {{.state = VERIFY_COMPLETE, .records = 73, .seal = VERIFY_SEALED},
       "verified: 73 records, complete, sealed"},
      {{.state = VERIFY_OPEN, .records = 1}, "verified: 1 record, open, not sealed"},
      {{.state = VERIFY_TORN, .records = 5, .torn_bytes = 9},
       "verified up to record 5; a torn tail of 9 bytes follows"},
      {{.state = VERIFY_BAD, .bad_record = 6, .why = {.text = "its hash differs"}},
       "bad: record 6 is not what was written (its hash differs); it and all that follows "
       "cannot be trusted"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t out = {0};
    view_put_proof(&out, &cases[i].result);
    assert_string_equal(buf_c(&out), cases[i].words);
  }
}

TEST(cuts) {
  static const struct {
    const char *text;
    size_t max;
    const char *cut;
  } cases[] = {
      {"", 0, ""},
      {"short", 5, "short"},
      {"longer", 5, "longe... (1 bytes left out)"},
      {"\xE8\xA9\xA6\xE9\xA8\x93", 5, "\xE8\xA9\xA6... (3 bytes left out)"},
      {"\xE8\xA9\xA6", 2, "... (3 bytes left out)"},
  };
  AUTO(arena_deinit) struct arena arena = {0};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct str text = str_from(cases[i].text);
    struct str cut = view_cut(&arena, text, cases[i].max);
    assert_true(str_eq_c(cut, cases[i].cut));
    assert_true(text.n == 0 || cut.p != text.p); /* it lives in the arena */
    assert_true(view_fitting(text, cases[i].max) <= cases[i].max);
  }
}

TEST(names) {
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    assert_true(view_class_name((enum view_class)i)[0] != '\0');
  for (int i = 0; i < VIEW_SPAN_KINDS; i++)
    assert_true(view_span_name((enum view_span_kind)i)[0] != '\0');
  assert_string_equal(view_class_name(VIEW_CLASS_COUNT), "");
  assert_string_equal(view_span_name(VIEW_SPAN_KINDS), "");
  assert_string_equal(view_chain_name(VIEW_BAD), "bad");
}
