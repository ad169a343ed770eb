/* Notices that nobody was told are found again after a crash, and what was told is not. */

#include "base/buf.h"
#include "base/limits.h"
#include "os/clock.h"
#include "store/notification.h"
#include "store/notification_cursor.h"
#include "support/folder.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char first[] = "01990000-0000-7000-8000-00000000aaaa";
static const char second[] = "01990000-0000-7000-8000-00000000bbbb";
static char *dir;
static struct store store;
static struct buf seen; /* "aaaa:3:question aaaa:4:end ", by each notice */

static int setup(void **state) {
  struct err err;
  (void)state;
  dir = folder_make();
  assert_true(store_open(&store, dir, &err));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  buf_deinit(&seen);
  folder_remove(dir);
  return 0;
}

/* A session that asks (record 3), is answered and ends (record 5), as old as said. */
static void compose(const char *id, bool submitted, int64_t age_ms) {
  char ts[RECORD_TIME_BYTES], name[64];
  buf_auto_t text = {0};
  record_time(clock_real_ms() - age_ms, ts);
  buf_printf(&text,
             "{\"v\":1,\"seq\":1,\"ts\":\"%s\",\"type\":\"session_start\",\"session\":\"%s\","
             "\"workflow\":{\"name\":\"w\"},\"config\":{%s}}\n",
             ts, id, submitted ? "\"submitted\":true" : "");
  buf_printf(&text,
             "{\"seq\":2,\"ts\":\"%s\",\"type\":\"turn_start\",\"turn\":1,\"movement\":\"m\"}\n"
             "{\"seq\":3,\"ts\":\"%s\",\"type\":\"question\",\"turn\":1,\"movement\":\"m\","
             "\"question\":{\"kind\":\"ask\",\"text\":\"why?\",\"choices\":[\"a\\u0007\"]}}\n"
             "{\"seq\":4,\"ts\":\"%s\",\"type\":\"answer\",\"turn\":1}\n"
             "{\"seq\":5,\"ts\":\"%s\",\"type\":\"session_end\",\"outcome\":\"complete\"}\n",
             ts, ts, ts, ts);
  print_into(name, sizeof name, "%s.ndjson", id);
  folder_put(dir, name, buf_view(&text));
}

static void each(void *ctx, const char *id, json_t *notification, uint64_t seq) {
  struct notification_cursor *n = ctx;
  buf_printf(&seen, "%s:%d:%s ", id + 32, (int)seq,
             json_string_value(json_object_get(notification, "event")));
  if (n != NULL)
    notification_cursor_expect(n, id, seq);
}

static void missed(struct notification_cursor *n, const char *wanted) {
  buf_clear(&seen);
  notification_cursor_missed(n, &store, each, n);
  assert_string_equal(buf_c(&seen), wanted);
}

static void save(struct notification_cursor *n) {
  struct err err;
  assert_true(notification_cursor_save(n, &store, clock_real_ms(), &err));
}

TEST_WITH(setup, teardown, without_a_file_nothing_is_missed) {
  struct notification_cursor n;
  compose(first, true, 0);
  notification_cursor_load(&n, &store);
  missed(&n, "");
  save(&n);
  notification_cursor_deinit(&n);
  notification_cursor_load(&n, &store); /* its log may have been written since */
  missed(&n, "aaaa:3:question aaaa:5:end ");
  notification_cursor_deinit(&n);
}

TEST_WITH(setup, teardown, told_up_to_a_record) {
  struct notification_cursor n;
  notification_cursor_load(&n, &store);
  save(&n);
  compose(first, true, 0);
  compose(second, true, 0);
  notification_cursor_expect(&n, first, 3);
  notification_cursor_expect(&n, first, 5);
  notification_cursor_told(&n, first, 3, 5, clock_real_ms());
  notification_cursor_expect(&n, second, 3);
  notification_cursor_told(&n, second, 3, 0, clock_real_ms());
  save(&n);
  notification_cursor_deinit(&n);
  notification_cursor_load(&n, &store);
  missed(&n, "aaaa:5:end bbbb:5:end ");
  notification_cursor_told(&n, first, 5, 0, clock_real_ms());
  notification_cursor_told(&n, second, 5, 0, clock_real_ms());
  save(&n);
  missed(&n, "");
  notification_cursor_deinit(&n);
}

TEST_WITH(setup, teardown, those_of_a_terminal_and_old_ones) {
  AUTO(notification_cursor_deinit) struct notification_cursor n;
  notification_cursor_load(&n, &store);
  save(&n);
  compose(first, false, 0);
  compose(second, true, 2 * 3600 * 1000);
  missed(&n, "");
}

/* An hour after all was told a session is forgotten. */
TEST_WITH(setup, teardown, forgotten) {
  struct notification_cursor n;
  notification_cursor_load(&n, &store);
  notification_cursor_expect(&n, first, 3);
  notification_cursor_told(&n, first, 3, 0, clock_real_ms() - 2 * 3600 * 1000);
  notification_cursor_expect(&n, second, 3);
  save(&n);
  assert_int_equal(json_object_size(n.sessions), 1);
  assert_non_null(json_object_get(n.sessions, second));
  notification_cursor_deinit(&n);
  notification_cursor_forget(&store);
  notification_cursor_load(&n, &store);
  assert_int_equal(json_object_size(n.sessions), 0);
  assert_int_equal(n.saved_ms, 0);
  notification_cursor_deinit(&n);
}

TEST_WITH(setup, teardown, a_file_that_is_no_json) {
  AUTO(notification_cursor_deinit) struct notification_cursor n;
  folder_put(dir, "notified", STR("{\"v\":1,\"sess"));
  compose(first, true, 0);
  notification_cursor_load(&n, &store);
  missed(&n, "aaaa:3:question aaaa:5:end ");
}

TEST(texts_are_safe) {
  AUTO(summary_deinit) struct summary b = {0};
  struct record_draft d;
  json_t *record, *list = json_array();
  static const char *const lines[] = {
      "{\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\",\"session\":\"s\","
      "\"workflow\":{\"name\":\"w\\u001b\"},\"config\":{}}",
      "{\"seq\":2,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"question\",\"turn\":1,"
      "\"movement\":\"m\\nTo: you\",\"question\":{\"kind\":\"approve\",\"text\":\"\\u001b[31m\"}}"};
  for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
    record = json_loads(lines[i], 0, NULL);
    assert_non_null(record);
    record_read(&d, record);
    summary_feed(&b, &d.record);
    notification_of(&b, &d.record, list);
    record_drop(&d);
    json_decref(record);
  }
  assert_int_equal(json_array_size(list), 1);
  const json_t *notification = json_array_get(list, 0);
  const char *title = json_string_value(json_object_get(notification, "title"));
  assert_null(strpbrk(title, "\n\x1b"));
  assert_non_null(strstr(title, "asks for approval: m"));
  assert_null(strchr(json_string_value(json_object_get(notification, "text")), '\x1b'));
  json_decref(list);
}

/* However many attempts an outage has, and however long their pauses are, it is one notice. */
TEST(an_outage_is_told_once) {
  AUTO(summary_deinit) struct summary b = {0};
  json_auto_t *list = json_array();
  for (int i = 0; i < 30; i++) {
    struct record_draft d;
    json_auto_t *record =
        json_pack("{si si ss ss si si si s{ss ss} si s{ss ss ss si}}", "v", 1, "seq", i + 1, "ts",
                  "2026-01-01T00:02:00.000Z", "type", "call_end", "turn", 1, "call", 1, "attempt",
                  i + 1, "error", "class", "network", "message", "no", "retry_in_ms", 120000,
                  "outage", "provider", "p", "since", "2026-01-01T00:00:00.000Z", "until",
                  "2026-01-01T01:00:00.000Z", "tries", i + 1);
    assert_non_null(record);
    record_read(&d, record);
    b.partial = true;
    summary_feed(&b, &d.record);
    notification_of(&b, &d.record, list);
    record_drop(&d);
    assert_int_equal(json_array_size(list), i + 1 >= LIMIT_NOTICE_OUTAGE);
  }
  const json_t *notification = json_array_get(list, 0);
  assert_string_equal(json_string_value(json_object_get(notification, "event")), "limit");
  assert_string_equal(json_string_value(json_object_get(notification, "until")),
                      "2026-01-01T01:00:00.000Z");
}
