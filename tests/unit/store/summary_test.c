/* A brief says what is in a log, however long it is and wherever it is cut off. */

#include "base/buf.h"
#include "base/memory.h"
#include "store/summary.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/log_ref.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char id[] = "01990000-0000-7000-8000-00000000aaaa";
static char *dir, path[512];

static int setup(void **state) {
  (void)state;
  dir = folder_make();
  print_into(path, sizeof path, "%s/%s.ndjson", dir, id);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static void put(const struct buf *text) {
  folder_write(path, buf_view(text));
}

/* session_start with a workflow of so many bytes, then turns whose answers have so many. */
static void compose(struct buf *out, size_t head, int turns, size_t answer, bool submitted) {
  char_auto_t *filler = calloc(1, (head > answer ? head : answer) + 1);
  memset(filler, 'x', head);
  int seq = 1;
  buf_printf(
      out,
      "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\","
      "\"session\":\"%s\",\"workflow\":{\"name\":\"w\",\"description\":\"%s\"},\"config\":{%s}}\n",
      id, filler, submitted ? "\"submitted\":true" : "");
  memset(filler, 0, head);
  memset(filler, 'y', answer);
  for (int i = 1; i <= turns; i++) {
    buf_printf(out, "{\"seq\":%d,\"type\":\"turn_start\",\"turn\":%d,\"movement\":\"m%d\"}\n",
               ++seq, i, i);
    buf_printf(out,
               "{\"seq\":%d,\"ts\":\"2026-01-01T00:00:0%d.000Z\",\"type\":\"call_end\",\"turn\":%d,"
               "\"text\":\"%s\"}\n",
               ++seq, i % 10, i, filler);
  }
}

TEST_WITH(setup, teardown, sizes) {
  static const struct {
    size_t head;
    int turns;
    size_t answer;
  } rows[] = {{10, 0, 0},     {10, 1, 10},    {40000, 3, 100},   {300000, 9, 50},
              {10, 40, 5000}, {10, 3, 60000}, {20000, 2, 700000}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    buf_auto_t text = {0};
    AUTO(summary_deinit) struct summary b;
    struct err err;
    compose(&text, rows[i].head, rows[i].turns, rows[i].answer, i % 2 == 0);
    size_t whole = text.n;
    if (i % 3 == 0)
      buf_puts(&text, "{\"seq\":99,\"type\":\"session_end\""); /* on its way to the disk */
    put(&text);
    if (!summary_read(&b, log_ref(path), &err))
      fail_msg("row %zu: %s", i, err.text);
    assert_string_equal(b.session, id);
    assert_string_equal(b.workflow, "w");
    assert_string_equal(b.status, "running");
    assert_int_equal(b.turns, rows[i].turns);
    assert_int_equal(b.seq, 1 + 2 * rows[i].turns);
    assert_int_equal(b.bytes, whole);
    assert_int_equal(b.submitted, i % 2 == 0);
    assert_int_equal(summary_goes_on(&b, false), i % 2 == 0);
    if (rows[i].turns > 0) {
      char movement[16];
      print_into(movement, sizeof movement, "m%d", rows[i].turns);
      assert_string_equal(b.movement, movement);
    } else {
      assert_null(b.movement);
    }
  }
}

TEST_WITH(setup, teardown, endings) {
  DATA_ROWS("store/summary/endings.yaml", c, record, status, message, goes_on) {
    buf_auto_t text = {0};
    AUTO(summary_deinit) struct summary b;
    struct err err;
    compose(&text, 10, 1, 10, true);
    buf_printf(&text, "%s\n", c.record);
    put(&text);
    assert_true(summary_read(&b, log_ref(path), &err));
    assert_string_equal(b.status, c.status);
    assert_string_equal(b.message ? b.message : "", c.message ? c.message : "");
    assert_int_equal(summary_goes_on(&b, false), data_true(c.goes_on));
  }
}

/* The last record says what the next call waits for; any record after it ends the waiting. */
TEST_WITH(setup, teardown, waits) {
  DATA_ROWS("store/summary/waits.yaml", c, tail, status, json) {
    buf_auto_t text = {0};
    AUTO(summary_deinit) struct summary b;
    struct err err;
    compose(&text, 10, 1, 10, true);
    buf_puts(&text, c.tail);
    put(&text);
    assert_true(summary_read(&b, log_ref(path), &err));
    assert_string_equal(summary_status(&b), c.status);
    json_auto_t *session = summary_json(&b, id, path, summary_status(&b), NULL, 0);
    json_auto_t *expected = c.json ? json_loads(c.json, 0, NULL) : NULL;
    const json_t *got = json_object_get(session, "waiting");
    assert_true(got == NULL ? expected == NULL : json_equal(got, expected));
    assert_true(json_is_string(json_object_get(session, "message")) == (expected != NULL));
  }
}

TEST_WITH(setup, teardown, what_is_no_log) {
  static const char *const texts[] = {
      "", "{", "\n", "x\n", "{\"type\":\"turn_start\"}\n", "[]\n", "{\"type\":\"session_start\"}"};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    buf_auto_t text = {0};
    struct summary b;
    struct err err = {0};
    buf_puts(&text, texts[i]);
    put(&text);
    assert_false(summary_read(&b, log_ref(path), &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
  }
}

/* Readers count on times: a damaged one is not handed on. */
TEST_WITH(setup, teardown, times) {
  buf_auto_t text = {0};
  struct summary b;
  struct err err;
  compose(&text, 10, 1, 10, true);
  buf_puts(&text,
           "{\"seq\":4,\"ts\":\"2026-01-0#T00:00:00.000Z\",\"type\":\"admission\",\"call\":1,"
           "\"provider\":\"p\",\"answer\":\"wait\",\"reason\":\"cooldown\"}\n");
  put(&text);
  assert_true(summary_read(&b, log_ref(path), &err));
  assert_string_equal(b.updated, "2026-01-01T00:00:00.000Z");
  assert_null(b.wait);
  summary_deinit(&b);
  *strstr(text.p, "-01T") = '#'; /* of the first record */
  put(&text);
  assert_true(summary_read(&b, log_ref(path), &err));
  assert_string_equal(b.started, "2025-08-31T12:00:24.064Z"); /* what its id says */
  assert_string_equal(b.updated, b.started);
  summary_deinit(&b);
}

TEST_WITH(setup, teardown, lists) {
  static const char *const names[] = {
      "01990000-0000-7000-8000-00000000cccc.ndjson", "01990000-0000-7000-8000-00000000bbbb.ndjson",
      "01990000-0000-7000-8000-00000000bbbb.ndjson.torn", "daemon.lock", "notes.ndjson"};
  struct store store;
  struct store_id *ids;
  size_t count;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    char file[512];
    print_into(file, sizeof file, "%s/%s", dir, names[i]);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  store_at(&store, dir);
  assert_true(store_list(&store, &ids, &count, &err));
  assert_int_equal(count, 2);
  assert_memory_equal(ids[0].id, names[0], 36);
  assert_memory_equal(ids[1].id, names[1], 36);
  free(ids);
  store_at(&store, "/none");
  assert_false(store_list(&store, &ids, &count, &err));
}

/* Lines of which no tree is built say the same as those of which one is. */
TEST_WITH(setup, teardown, glances) {
  static const struct {
    const char *name, *movement, *last; /* the last: of a line that is taken at a glance, or not */
  } rows[] = {
      {"w", "m",
       "{\"seq\":3,\"ts\":\"2026-01-01T00:00:07.000Z\",\"type\":\"stage\",\"turn\":4,"
       "\"errors\":[{\"seq\":9,\"turn\":99}],\"hash\":\"abc\"}"},
      {"a \\\"b\\\" \\u00fc", "x \\\\ y",
       "{\"seq\":3,\"ts\":\"2026-01-01T00:00:07.000Z\",\"type\":\"turn_end\",\"turn\":4,\"hash\":"
       "\"abc\"}"},
      {"w", "m",
       "{ \"seq\" : 3, \"ts\":\"2026-01-01T00:00:07.000Z\", \"type\":\"t\\u0065ll\","
       "\"turn\":4,\"hash\":\"abc\"}"},
  };
  static const char *const told[] = {"w", "a \"b\" \u00fc", "w"}, *const moved[] = {"m", "x \\ y",
                                                                                    "m"};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    buf_auto_t text = {0};
    struct summary b;
    struct err err;
    buf_printf(&text,
               "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\","
               "\"session\":\"%s\",\"workflow\":{\"steps\":[{\"name\":\"no\"}],\"name\":\"%s\"},"
               "\"config\":{\"deep\":{\"submitted\":false},\"submitted\":true},\"hash\":\"h\"}\n",
               id, rows[i].name);
    put(&text);
    assert_true(summary_read(&b, log_ref(path), &err)); /* of one line only */
    assert_string_equal(b.hash, "h");
    assert_string_equal(b.session, id);
    assert_string_equal(b.workflow, told[i]);
    assert_true(b.submitted);
    assert_int_equal(b.seq, 1);
    summary_deinit(&b);
    buf_printf(&text,
               "{\"seq\":2,\"ts\":\"2026-01-01T00:00:06.000Z\",\"type\":\"turn_start\",\"turn\":3,"
               "\"movement\":\"%s\",\"hash\":\"i\"}\n%s\n",
               rows[i].movement, rows[i].last);
    put(&text);
    assert_true(summary_read(&b, log_ref(path), &err));
    assert_string_equal(b.hash, "abc");
    assert_string_equal(b.movement, moved[i]);
    assert_string_equal(b.started, "2026-01-01T00:00:00.000Z");
    assert_string_equal(b.updated, "2026-01-01T00:00:07.000Z");
    assert_int_equal(b.seq, 3);
    assert_int_equal(b.turns, 4);
    assert_string_equal(b.status, "running");
    summary_deinit(&b);
  }
}
