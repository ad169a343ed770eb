/* Where a text was first logged: places, growth, and what is too short to keep. */
#include "core/interning.h"

#include "base/err.h"
#include "base/limits.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char long_text[] = "a text that is long enough to be worth a reference, and then some";

TEST(places_by_field) {
  static const struct {
    enum text_field field;
    uint32_t index;
    const char *place;
  } cases[] = {
      {TEXT_PART, 3, "12#/prompt/3"},
      {TEXT_PERSONA, 2, "12#/workflow/movements/2/persona"},
      {TEXT_POLICY, 0, "12#/workflow/movements/0/policy"},
      {TEXT_KNOWLEDGE, 999, "12#/workflow/movements/999/knowledge"},
      {TEXT_INSTRUCTION, 1, "12#/workflow/movements/1/instruction"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(texts_deinit) struct texts texts = {0};
    char place[TEXTS_PLACE_BYTES];
    assert_false(texts_find(&texts, STR(long_text), place));
    texts_add(&texts, STR(long_text), 12, cases[i].field, cases[i].index);
    assert_true(texts_find(&texts, STR(long_text), place));
    assert_string_equal(place, cases[i].place);
  }
}

TEST(the_first_place_wins_and_short_texts_have_none) {
  AUTO(texts_deinit) struct texts texts = {0};
  char place[TEXTS_PLACE_BYTES], edge[LIMIT_REF_TEXT_BYTES];
  memset(edge, 'x', sizeof edge);
  texts_add(&texts, STR(long_text), 5, TEXT_PART, 4);
  texts_add(&texts, STR(long_text), 6, TEXT_PART, 0);
  assert_int_equal(texts.count, 1);
  assert_true(texts_find(&texts, STR(long_text), place));
  assert_string_equal(place, "5#/prompt/4");
  texts_add(&texts, STR("short"), 7, TEXT_PART, 0);
  texts_add(&texts, (struct str){edge, sizeof edge - 1}, 8, TEXT_PART, 0);
  assert_int_equal(texts.count, 1);
  assert_false(texts_find(&texts, (struct str){edge, sizeof edge - 1}, place));
  texts_add(&texts, (struct str){edge, sizeof edge}, 9, TEXT_PART, 0);
  assert_true(texts_find(&texts, (struct str){edge, sizeof edge}, place));
  assert_string_equal(place, "9#/prompt/0");
}

TEST(many_texts) {
  AUTO(texts_deinit) struct texts texts = {0};
  char text[128], place[TEXTS_PLACE_BYTES], wanted[TEXTS_PLACE_BYTES];
  for (unsigned i = 1; i <= 5000; i++) {
    int n = snprintf(text, sizeof text, "%u is the number of this text, which is long enough.", i);
    texts_add(&texts, (struct str){text, (size_t)n}, i, TEXT_PART, 0);
  }
  assert_int_equal(texts.count, 5000);
  assert_true(texts.cap >= 5000 && texts.cap < 20000);
  for (unsigned i = 1; i <= 5000; i++) {
    int n = snprintf(text, sizeof text, "%u is the number of this text, which is long enough.", i);
    assert_true(texts_find(&texts, (struct str){text, (size_t)n}, place));
    print_into(wanted, sizeof wanted, "%u#/prompt/0", i);
    assert_string_equal(place, wanted);
  }
}
