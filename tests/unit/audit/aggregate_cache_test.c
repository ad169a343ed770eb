/* Aggregates from what was read before: they say what the logs say, whether these end, go on or are
 * damaged in the index; and the views call outcomes by their names. */
#include "support/audit_log.h"

#include "audit/aggregate_cache.h"
#include "store/index.h"
#include "support/test.h"

static char *totals_text(const struct aggregate *c) {
  json_auto_t *totals = aggregate_totals_json(c);
  return json_dump_text(totals, JSON_COMPACT);
}

/* The aggregate is that of the logs, and so many of them were not read. */
static void expect_known(const struct drive *d, uint64_t known, uint64_t read) {
  struct aggregate_cache_told told = {0};
  struct store store;
  struct err err;
  store_at(&store, d->dir);
  struct aggregate *kept = aggregate_new(), *whole = aggregate_new();
  if (!aggregate_cache_read(kept, &store, &told, &err) ||
      !aggregate_read_store(whole, &store, &err))
    fail_msg("%s", err.text);
  aggregate_sort(kept);
  aggregate_sort(whole);
  char *ours = totals_text(kept), *theirs = totals_text(whole);
  assert_string_equal(ours, theirs);
  assert_int_equal(told.known, known);
  assert_int_equal(told.read, read);
  free(ours);
  free(theirs);
  aggregate_free(kept);
  aggregate_free(whole);
}

static struct sqlite *file_of(const struct drive *d) {
  struct store store;
  store_at(&store, d->dir);
  struct sqlite *s = index_file_open(&store, true);
  assert_non_null(s);
  return s;
}

TEST(a_log_is_read_when_it_changed) {
  AUTO(drive_deinit) struct drive d;
  drive_init(&d);
  drive_start(&d, drive_workflow, "Mend the queue.", drive_config());
  drive_exit(&d, 0, "5 of 5 pass\n");
  drive_write(&d);
  expect_known(&d, 0, 1);
  expect_known(&d, 1, 0); /* it has not ended */
  drive_first_review(&d);
  drive_write(&d);
  expect_known(&d, 0, 1);
  expect_known(&d, 1, 0);
  drive_fix(&d);
  drive_second_review(&d);
  drive_write(&d);
  expect_known(&d, 0, 1);
  expect_known(&d, 1, 0);
  assert_int_equal(unlink(d.path), 0);
  expect_known(&d, 0, 0);
  drive_write(&d);
  expect_known(&d, 0, 1); /* the row went with the log */
}

TEST(a_damaged_row_is_none) {
  static const char *const damages[] = {"log_rows SET bytes = bytes + 1",
                                        "log_rows SET time_ns = 0",
                                        "log_rows SET ended = 0",
                                        "log_rows SET kind = kind + 1",
                                        "log_rows SET time_ms = time_ms - 1",
                                        "log_rows SET unavailable_stops = 9",
                                        "log_rows SET last_ms = -1",
                                        "log_rows SET started_ms = 1",
                                        "log_rows SET cost_nano = cost_nano + 1",
                                        "log_rows SET rows_sum = 7",
                                        "log_rows SET rows = NULL",
                                        "log_rows SET rows = replace(rows, '7', '8')",
                                        "log_rows SET rows = '[['",
                                        "session_kinds SET outcome = 'abort'",
                                        "row_kinds SET movement = 'other'",
                                        "row_kinds SET rule = rule + 1",
                                        "stage_kinds SET number = number + 1000",
                                        "stage_kinds SET flags = 0"};
  AUTO(drive_deinit) struct drive d;
  drive_everything(&d);
  drive_write(&d);
  expect_known(&d, 0, 1);
  for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
    char text[200];
    print_into(text, sizeof text, "UPDATE %s", damages[i]);
    struct sqlite *s = file_of(&d);
    assert_true(sqlite_run(s, text));
    index_file_close(s);
    expect_known(&d, 0, 1);
    if (damages[i][0] != 'l') /* a fault in kinds has the file emptied */
      expect_known(&d, 0, 1);
    expect_known(&d, 1, 0);
  }
}

TEST(views_have_the_names_of_outcomes) {
  AUTO(drive_deinit) struct drive d;
  drive_everything(&d);
  drive_write(&d);
  expect_known(&d, 0, 1);
  struct sqlite *s = file_of(&d);
  for (int i = 0; i < OUTCOME_COUNT; i++) {
    char text[80];
    print_into(text, sizeof text, "UPDATE stage_kinds SET outcome = %d", i);
    assert_true(sqlite_run(s, text));
    struct sqlite3_stmt *q = sqlite_ask(s, "SELECT DISTINCT outcome FROM stages");
    assert_true(sqlite_next(s, q));
    assert_string_equal(s->api->column_text(q, 0), stage_outcome_name((enum stage_outcome)i));
    assert_false(sqlite_next(s, q));
    s->api->finalize(q);
  }
  index_file_close(s);
}

static int needs_sqlite(void **state) {
  struct err err;
  (void)state;
  if (sqlite_load(&err) != NULL)
    return 0;
  print_message("skipped: %s\n", err.text);
  exit(77);
}

TEST_GROUP(needs_sqlite, NULL)
