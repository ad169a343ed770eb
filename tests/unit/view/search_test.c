/* Finds texts where they stand, whatever JSON makes of them in a line. */
#include "view/search.h"

#include "support/log_book.h"
#include "support/test.h"

TEST(places) {
  static const struct {
    const char *needle, *type, *place, *that;
    size_t offset;
  } cases[] = {
      {"oldest ITEM", "session_start", "/task", "oldest item", 29},
      {"5 of 5 pass", "call_end", "/text", "5 of 5 pass", 0},
      {"queue.\nIt", "session_start", "/task", "queue. It",
       9}, /* a line break is an escape there */
      {"`[REVIEW:1]`", "call_end", "/text", "`[REVIEW:1]`", 14},
      {"\033[31m", "call_end", "/text", "\033[31m", 48},
      {"\xE2\x80\xAE", "call_end", "/text", "\xE2\x80\xAE", 0},
      {"not logged in", "call_end", "/error/message", "not logged in", 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(view_search_deinit) struct view_search found;
    struct err err;
    assert_true(view_search_read(&found, &log_book, str_from(cases[i].needle), 100, &err));
    if (found.count == 0)
      fail_msg("\"%s\" is not found", cases[i].needle);
    const struct view_hit *hit = &found.hits[0];
    assert_true(str_eq_c(hit->type, cases[i].type));
    assert_true(str_eq_c(hit->place, cases[i].place));
    assert_true(str_eq_c(hit->that, cases[i].that));
    if (cases[i].offset > 0)
      assert_int_equal(hit->offset, cases[i].offset);
    assert_false(found.more);
  }
}

/* Keys and what segue adds are no texts of the session. */
TEST(nowhere) {
  static const char *const needles[] = {"no such words", "\"type\":\"turn_start\"", "oldest  item"};
  for (size_t i = 0; i < ARRAY_LEN(needles); i++) {
    AUTO(view_search_deinit) struct view_search found;
    struct err err;
    assert_true(view_search_read(&found, &log_book, str_from(needles[i]), 100, &err));
    assert_int_equal(found.count, 0);
  }
}

TEST(at_most) {
  AUTO(view_search_deinit) struct view_search found;
  struct err err;
  assert_true(view_search_read(&found, &log_book, STR("e"), 3, &err));
  assert_int_equal(found.count, 3);
  assert_true(found.more);
  json_auto_t *json = view_search_json(&found);
  assert_int_equal(json_array_size(json_object_iter_value(json_object_iter(json))), 3);
}

TEST_GROUP(log_book_setup, log_book_teardown)
