/* The running calls of a session, as their records tell them. */
#include "view/running.h"

#include "support/audit_log.h"
#include "support/log_ref.h"
#include "support/test.h"

static struct drive drive;

static int setup(void **state) {
  (void)state;
  drive_init(&drive);
  drive_start(&drive, drive_workflow, "x", drive_config());
  drive_exit(&drive, 0, "pass\n");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  drive_deinit(&drive);
  return 0;
}

/* Appends a record that the running call tells something; takes the data. */
static void tell(const char *event, json_t *data) {
  json_int_t seq = (json_int_t)json_array_size(drive.records) + 1;
  json_t *record = json_pack("{si sI ss ss si sI ss so}", "v", 1, "seq", seq, "ts",
                             "2027-01-15T08:00:09.000Z", "type", "call_event", "turn", 2, "call",
                             (json_int_t)drive_running(&drive), "event", event, "data", data);
  assert_non_null(record);
  drive_line(record, &drive.log, drive.hash);
  json_array_append_new(drive.records, record);
}

static struct record_index *read_now(struct view_running *now) {
  struct err err;
  drive_write(&drive);
  struct record_index *track = record_index_new(log_ref(drive.path));
  if (!record_index_read(track, &err) || !view_running_read(now, track, &err))
    fail_msg("%s", err.text);
  return track;
}

TEST(one_call) {
  AUTO(view_running_deinit) struct view_running now;
  struct record_index *track = read_now(&now);
  assert_int_equal(now.count, 1);
  const struct view_call *c = &now.calls[0];
  assert_int_equal(c->turn, 2);
  assert_int_equal(c->attempt, 1);
  assert_true(str_eq_c(c->movement, "review") && str_eq_c(c->provider, "script"));
  assert_true(str_eq_c(c->model, "small") && c->stage.n == 0);
  assert_true(c->started_ms > 0);
  assert_int_equal(c->heard_ms, 0);
  assert_int_equal(c->tool_count, 0);
  record_index_free(track);
}

/* A tool's end replaces its start; a long argument is cut, and its record is named. */
TEST(tools) {
  AUTO(view_running_deinit) struct view_running now;
  buf_auto_t longer = {0};
  for (int i = 0; i < 500; i++)
    buf_puts(&longer, "\xE8\xA9\xA6");
  tell("tool", json_pack("{ss ss ss ss}", "id", "t1", "name", "Bash", "argument", "make", "state",
                         "started"));
  tell("tool", json_pack("{ss ss ss}", "id", "t2", "name", "Read", "argument", buf_c(&longer)));
  uint64_t seq = json_array_size(drive.records);
  tell("tool", json_pack("{ss ss si sb}", "id", "t1", "state", "ended", "exit", 2, "failed", 1));
  tell("usage", json_pack("{si si}", "input", 40, "output", 2));
  struct record_index *track = read_now(&now);
  const struct view_call *c = &now.calls[0];
  assert_int_equal(c->tool_count, 2);
  assert_true(str_eq_c(c->tools[0].name, "Bash") && str_eq_c(c->tools[0].argument, "make"));
  assert_true(str_eq_c(c->tools[0].state, "ended") && c->tools[0].failed && c->tools[0].has_exit);
  assert_int_equal(c->tools[0].exit, 2);
  assert_int_equal(c->tools[0].argument_more_bytes, 0);
  assert_int_equal(c->tools[1].argument.n, 1023); /* whole characters of three bytes */
  assert_int_equal(c->tools[1].argument_more_bytes, 1500 - 1023);
  assert_int_equal(c->tools[1].argument_seq, seq);
  assert_int_equal(c->tokens, 42);
  assert_true(c->heard_ms > c->started_ms);
  record_index_free(track);
}

TEST(many_tools) {
  AUTO(view_running_deinit) struct view_running now;
  char id[24];
  for (int i = 0; i < 30; i++) {
    print_into(id, sizeof id, "n%d", i);
    tell("tool", json_pack("{ss ss}", "id", id, "name", id));
  }
  struct record_index *track = read_now(&now);
  const struct view_call *c = &now.calls[0];
  assert_int_equal(c->tool_count, VIEW_RUNNING_TOOLS);
  assert_true(str_eq_c(c->tools[VIEW_RUNNING_TOOLS - 1].name, "n29"));
  assert_int_equal(c->tools_before, 32 - VIEW_RUNNING_TOOLS); /* with the two from before */
  record_index_free(track);
}

TEST(none) {
  AUTO(drive_deinit) struct drive d;
  AUTO(view_running_deinit) struct view_running now;
  struct err err;
  drive_everything(&d);
  drive_write(&d);
  struct record_index *track = record_index_new(log_ref(d.path));
  assert_true(record_index_read(track, &err) && view_running_read(&now, track, &err));
  assert_int_equal(now.count, 0);
  record_index_free(track);
}

TEST_GROUP(setup, teardown)
