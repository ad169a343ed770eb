/* A session's log decides whether those that are to begin after it do. */
#include "store/predecessor.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <string.h>

#define START                                                                                      \
  "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\","             \
  "\"session\":\"%s\",\"workflow\":{\"name\":\"w\"},\"config\":{\"submitted\":true%s%s}}\n"
#define TURN                                                                                       \
  "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-01T00:00:01.000Z\",\"type\":\"turn_start\",\"turn\":1,"     \
  "\"movement\":\"a\"}\n"
#define STOP                                                                                       \
  "{\"v\":1,\"seq\":3,\"ts\":\"2026-01-01T00:00:02.000Z\",\"type\":\"session_stop\",\"reason\":"   \
  "\"%s\"}\n"
#define END                                                                                        \
  "{\"v\":1,\"seq\":3,\"ts\":\"2026-01-01T00:00:02.000Z\",\"type\":\"session_end\",\"outcome\":"   \
  "\"%s\"}\n"
#define AGAIN                                                                                      \
  "{\"v\":1,\"seq\":4,\"ts\":\"2026-01-01T00:00:03.000Z\",\"type\":\"session_resume\",\"reason\":" \
  "\"user\"}\n"

static const char one[] = "01990000-0000-7000-8000-00000000aaaa",
                  two[] = "01990000-0000-7000-8000-00000000bbbb",
                  me[] = "01990000-0000-7000-8000-00000000cccc";
static char *dir;
static struct store store;

static int setup(void **state) {
  (void)state;
  dir = folder_make();
  store_at(&store, dir);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static void put(const char *id, const char *config, const char *rest, const char *word) {
  char path[512];
  buf_auto_t text = {0};
  print_into(path, sizeof path, "%s/%s.ndjson", dir, id);
  buf_printf(&text, START, id, config[0] ? "," : "", config);
  if (strchr(rest, 't') != NULL)
    buf_puts(&text, TURN);
  if (strchr(rest, 's') != NULL)
    buf_printf(&text, STOP, word);
  if (strchr(rest, 'e') != NULL)
    buf_printf(&text, END, word);
  if (strchr(rest, 'r') != NULL)
    buf_puts(&text, AGAIN);
  folder_write(path, buf_view(&text));
}

TEST_WITH(setup, teardown, which_ends_count) {
  char status[24];
  DATA_ROWS("store/predecessor/which_ends_count.yaml", c, records, word, stands, any) {
    put(one, "", c.records, c.word);
    if (predecessor_read(&store, one, false, status) !=
            data_among(c.stands, "pending done never") ||
        predecessor_read(&store, one, true, status) != data_among(c.any, "pending done"))
      fail_msg("%s %s", c.records, c.word);
  }
  assert_int_equal(predecessor_read(&store, two, true, status), PREDECESSOR_NEVER);
  assert_string_equal(status, "removed");
}

static enum predecessor stands(const char *config, struct buf *why) {
  struct store_ref ref;
  struct summary b;
  struct err err;
  put(me, config, "", "");
  store_ref(&store, me, &ref);
  assert_true(summary_read(&b, &ref, &err));
  bool waits = strstr(config, "[]") == NULL;
  assert_int_equal(summary_waits(&b), waits);
  assert_string_equal(summary_idle_status(&b, false), waits ? "waiting" : "open");
  enum predecessor all = predecessors_read(&store, &b, why);
  summary_deinit(&b);
  return all;
}

TEST_WITH(setup, teardown, one_that_never_ends_decides) {
  buf_auto_t why = {0};
  char both[200], self[100];
  print_into(both, sizeof both, "\"after\":[\"%s\",\"%s\"]", one, two);
  print_into(self, sizeof self, "\"after\":[\"%s\"]", me);
  put(one, "", "te", "complete");
  put(two, "", "t", "");
  assert_int_equal(stands(both, &why), PREDECESSOR_PENDING);
  put(two, "", "te", "complete");
  assert_int_equal(stands(both, &why), PREDECESSOR_DONE);
  put(one, "", "t", "");
  put(two, "", "te", "abort");
  assert_int_equal(why.n, 0);
  assert_int_equal(stands(both, &why), PREDECESSOR_NEVER);
  assert_non_null(strstr(buf_c(&why), two));
  assert_non_null(strstr(buf_c(&why), "abort"));
  assert_int_equal(stands(self, &why), PREDECESSOR_PENDING); /* a forged log */
  assert_int_equal(stands("\"after\":[]", &why), PREDECESSOR_DONE);
}

/* Whatever follows the first record, it no longer waits. */
TEST_WITH(setup, teardown, it_waits_until_something_is_written) {
  static const char *const later[] = {"t", "ts", "te", "tsr"};
  char config[100];
  print_into(config, sizeof config, "\"after_any_end\":true,\"after\":[\"%s\"]", one);
  for (size_t i = 0; i < ARRAY_LEN(later); i++) {
    struct store_ref ref;
    struct summary b;
    struct err err;
    put(me, config, later[i], "failed");
    store_ref(&store, me, &ref);
    assert_true(summary_read(&b, &ref, &err));
    assert_true(b.after_any_end);
    assert_false(summary_waits(&b));
    assert_null(b.wait);
    summary_deinit(&b);
  }
}

TEST_WITH(setup, teardown, words_mean_sessions_that_are_there) {
  put(one, "", "", "");
  put(two, "", "", "");
  DATA_ROWS("store/predecessor/words_mean_sessions_that_are_there.yaml", c, words, count) {
    struct err err = {0};
    char text[200];
    print_into(text, sizeof text, "%s", c.words);
    for (char *p = text; *p; p++)
      *p = *p == '\'' ? '"' : *p;
    json_auto_t *words = json_loads(text, 0, NULL);
    json_auto_t *ids = predecessors_find(&store, words, &err);
    if (json_array_size(ids) != (size_t)data_number(c.count) ||
        (ids == NULL) != ((size_t)data_number(c.count) == 0))
      fail_msg("%s: %s", c.words, err.text);
    if (ids == NULL)
      assert_non_null(strstr(err.text, "after"));
  }
}
