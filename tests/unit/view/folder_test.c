/* Filters and orders of many sessions, as a person writes them. */
#include "view/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void words(void **state) {
  static const struct {
    const char *text, *words[8];
  } cases[] = {
      {"", {NULL}},
      {"   ", {NULL}},
      {"one", {"one"}},
      {"  one  two ", {"one", "two"}},
      {"1 2 3 4 5 6 7", {"1", "2", "3", "4", "5", "6", "7"}},
  };
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct view_filter f = {0};
    struct err err = {0};
    assert_true(view_filter_words(&f, cases[i].text, &err));
    for (size_t k = 0; k < 8; k++) {
      if (cases[i].words[k] == NULL) {
        assert_null(f.words[k]);
        break;
      }
      assert_string_equal(f.words[k], cases[i].words[k]);
    }
  }
}

static void filters(void **state) {
  struct view_filter f;
  struct err err = {0};
  (void)state;
  assert_true(view_filter_read(&f, "status:running workflow:demo an ant", 1000000, &err));
  assert_string_equal(f.words[0], "an");
  assert_string_equal(f.words[1], "ant");
  assert_null(f.words[2]);
}

static void refused(void **state) {
  static const char *const filters_of[] = {"status:odd", "since:never"};
  char longer[600];
  const char *const texts[] = {"1 2 3 4 5 6 7 8", longer};
  struct view_filter f;
  struct err err = {0};
  (void)state;
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  for (size_t i = 0; i < ARRAY_LEN(filters_of); i++) {
    if (view_filter_read(&f, filters_of[i], 1000000, &err))
      fail_msg("\"%s\" is taken", filters_of[i]);
    assert_true(err.text[0] != '\0');
  }
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    f = (struct view_filter){0};
    assert_false(view_filter_words(&f, texts[i], &err));
    assert_false(view_filter_read(&f, texts[i], 1000000, &err));
  }
}

static void orders(void **state) {
  enum view_sort sort;
  bool least_first;
  (void)state;
  for (int i = 0; i < VIEW_SORT_COUNT; i++) {
    char word[40];
    (void)snprintf(word, sizeof word, "-%s", view_sort_name((enum view_sort)i));
    assert_true(view_sort_read(word + 1, &sort, &least_first));
    assert_int_equal(sort, i);
    assert_false(least_first);
    assert_true(view_sort_read(word, &sort, &least_first));
    assert_true(least_first);
  }
  assert_false(view_sort_read("odd", &sort, &least_first));
  assert_false(view_sort_read("--cost", &sort, &least_first));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(filters),
                                     cmocka_unit_test(refused), cmocka_unit_test(orders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
