/* Finds texts where they stand, whatever JSON makes of them in a line. */
#include "view/search.h"

#include "support/data.h"
#include "support/log_book.h"
#include "support/test.h"

TEST(places) {
  DATA_ROWS("view/search/places.yaml", c, needle, type, place, that, offset) {
    AUTO(view_search_deinit) struct view_search found;
    struct err err;
    assert_true(view_search_read(&found, &log_book, str_from(c.needle), 100, &err));
    if (found.count == 0)
      fail_msg("\"%s\" is not found", c.needle);
    const struct view_hit *hit = &found.hits[0];
    assert_true(str_eq_c(hit->type, c.type));
    assert_true(str_eq_c(hit->place, c.place));
    assert_true(str_eq_c(hit->that, c.that));
    if ((size_t)data_number(c.offset) > 0)
      assert_int_equal(hit->offset, (size_t)data_number(c.offset));
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
