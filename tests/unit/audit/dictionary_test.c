/* Words keep their numbers, and there is an end to them. */
#include "audit/dictionary.h"

#include "base/limits.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

TEST(keeps_words) {
  AUTO(dictionary_deinit) struct name_list n = {0};
  uint32_t a = dictionary_add(&n, STR("plan")), b = dictionary_add(&n, STR("review"));
  assert_int_equal(dictionary_add(&n, STR("")), DICTIONARY_NONE);
  assert_null(dictionary_text(&n, DICTIONARY_NONE).p);
  assert_int_not_equal(a, b);
  assert_int_equal(dictionary_add(&n, STR("plan")), a);
  assert_true(str_eq_c(dictionary_text(&n, a), "plan"));
  assert_true(str_eq_c(dictionary_text(&n, b), "review"));
}

TEST(is_bounded) {
  AUTO(dictionary_deinit) struct name_list n = {0};
  char text[2 * LIMIT_AUDIT_NAME_BYTES], word[16];
  memset(text, 'x', sizeof text);
  uint32_t cut = dictionary_add(&n, (struct str){text, sizeof text});
  assert_int_equal(dictionary_text(&n, cut).n, LIMIT_AUDIT_NAME_BYTES);
  for (unsigned i = 0; i < LIMIT_AUDIT_NAME_COUNT + 10; i++) {
    print_into(word, sizeof word, "w%u", i);
    uint32_t number = dictionary_add(&n, str_from(word));
    assert_int_equal(number == DICTIONARY_OTHER, i + 1 >= LIMIT_AUDIT_NAME_COUNT);
  }
  assert_int_not_equal(dictionary_add(&n, STR("w7")), DICTIONARY_OTHER);
  assert_true(str_eq_c(dictionary_text(&n, DICTIONARY_OTHER), "(others)"));
}
