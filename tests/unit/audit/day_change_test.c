/* Changes that an audit by day tells. */
#include "audit/day_change.h"

#include "support/test.h"

static const int64_t day_ms = (int64_t)24 * 3600 * 1000;
enum { FIRST_DAY = 20764 }; /* 2026-11-07 */

/* Counts judgments of one day, the first `none` of them without a rule. */
static void count_day(struct aggregate *c, const char *movement, int day, int all, int none) {
  for (int i = 0; i < all; i++) {
    const struct row row = {.kind = ROW_JUDGMENT,
                            .movement = dictionary_add(&c->names, str_from(movement)),
                            .rule = i < none ? 0 : 1,
                            .turn = i + 1,
                            .time_ms = (FIRST_DAY + day) * day_ms + i};
    aggregate_take_row(c, &row);
  }
}

static struct aggregate *by(const char *keys) {
  struct err err;
  struct aggregate *c = aggregate_new();
  assert_true(aggregate_by(c, keys, &err));
  return c;
}

static const char *word(const json_t *list, const char *name) {
  return json_string_value(json_object_get(json_array_get(list, 0), name));
}

TEST(a_share_that_rose_is_dated) {
  struct aggregate *c = by("day");
  for (int day = 9; day >= 0; day--) /* in no order */
    count_day(c, "review", day, 100, day < 5 ? 2 : 30);
  aggregate_sort(c);
  json_auto_t *list = day_changes(c);
  assert_int_equal(json_array_size(list), 1);
  assert_string_equal(
      word(list, "text"),
      "without a rule rose from 2 % (10 of 500) to 30 % (150 of 500) since 12 November 2026");
  assert_string_equal(word(list, "day"), "2026-11-12");
  assert_string_equal(word(list, "figure"), "no_rule");
  aggregate_free(c);
}

TEST(each_combination_of_other_keys_is_a_series) {
  struct aggregate *c = by("movement,day");
  for (int day = 0; day < 10; day++) {
    count_day(c, "fix", day, 80, 8);
    count_day(c, "review", day, 80, day < 6 ? 20 : 0);
  }
  json_auto_t *list = day_changes(c);
  assert_int_equal(json_array_size(list), 1);
  assert_string_equal(word(list, "text"),
                      "movement=review: without a rule fell from 25 % (120 of 480) to 0 % (0 of "
                      "320) since 13 November 2026");
  aggregate_free(c);
}

/* Little is known, nothing changed, or there are no days: nothing is said. */
TEST(nothing_is_said) {
  static const struct {
    const char *keys;
    int all, before, since;
  } rows[] = {
      {"day", 10, 0, 2}, {"day", 100, 5, 6}, {"movement", 100, 0, 50}, {"day,stage", 90, 0, 50}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct aggregate *c = by(rows[i].keys);
    for (int day = 0; day < 6; day++)
      count_day(c, "review", day, rows[i].all, day < 3 ? rows[i].before : rows[i].since);
    json_auto_t *list = day_changes(c);
    assert_int_equal(json_array_size(list), 0);
    aggregate_free(c);
  }
}
