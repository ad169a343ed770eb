/* A session's view: whole, while its log grows, and of a log that is damaged. */
#include "view/session_view.h"

#include "base/memory.h"
#include "support/log_book.h"
#include "support/test.h"
#include "view/record_index.h"

static char *view_text(const struct view_session *v) {
  json_auto_t *json = view_session_json(v);
  char *text = json_dumps(json, JSON_SORT_KEYS);
  assert_non_null(text);
  return text;
}

static void read_view(struct view_session *v, const char *path) {
  struct err err = {0};
  if (!view_session_read(v, log_ref(path), &err))
    fail_msg("%s", err.text);
}

TEST(whole) {
  static const struct {
    const char *movement, *leads_to;
    long rule, failed_calls, files;
    bool failed;
  } turns[] = {
      {"check", "review", 2, 0, 0, false},
      {"review", "fix", 2, 1, 0, true}, /* a judge's first attempt met an overloaded backend */
      {"fix", "review", 1, 0, 1, false},
      {"review", "COMPLETE", 1, 1, 0, true}, /* its judge was not logged in */
  };
  AUTO(view_session_deinit) struct view_session v;
  read_view(&v, drive.path);
  assert_string_equal(v.id, DRIVE_SESSION);
  assert_true(str_eq_c(v.status, "complete") && str_eq_c(v.workflow, "review-loop"));
  assert_true(str_eq_c(v.task, "Mend the queue.\nIt loses its oldest item when it is full."));
  assert_int_equal(v.task_more_bytes, 0);
  assert_int_equal(v.task_seq, 1);
  assert_int_equal(v.chain, VIEW_SOUND);
  assert_int_equal(v.records, json_array_size(drive.records));
  assert_int_equal(v.turn_count, ARRAY_LEN(turns));
  for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
    const struct view_turn *t = &v.turns[i];
    assert_int_equal(t->turn, i + 1);
    assert_true(str_eq_c(t->movement, turns[i].movement));
    assert_true(str_eq_c(t->leads_to, turns[i].leads_to));
    assert_true(t->over && t->judged && !t->unproven && !t->ambiguous);
    assert_int_equal(t->rule, turns[i].rule);
    assert_int_equal(t->failed_calls, turns[i].failed_calls);
    assert_int_equal(t->files, turns[i].files);
    assert_int_equal(view_turn_failed(t), turns[i].failed);
  }
  assert_int_equal(v.movement_count, 3);
  assert_int_equal(v.movements[1].runs, 2);
  assert_int_equal(v.movements[1].rules[0].taken, 1);
  assert_int_equal(v.movements[1].rules[1].taken, 1);
}

TEST(failed_or_not) {
  static const struct {
    struct view_turn turn;
    bool failed;
  } cases[] = {
      {{.over = true, .judged = true, .leads_to = STR_INIT("next")}, false},
      {{.over = true, .judged = true, .leads_to = STR_INIT("ABORT")}, true},
      {{.over = true, .judged = true, .leads_to = STR_INIT("next"), .failed_calls = 1}, true},
      {{.over = true, .method = STR_INIT("rule_no_match")}, true},
      {{.over = true, .method = STR_INIT("error")}, true},
      {{.over = true, .method = STR_INIT("cancelled")}, false},
      {{.over = false, .leads_to = STR_INIT("working")}, false},
      {{.over = false, .failed_calls = 2}, true},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    assert_int_equal(view_turn_failed(&cases[i].turn), cases[i].failed);
}

/* Record by record, the kept view is what a view made anew says. */
TEST(grows) {
  char path[200];
  struct err err = {0};
  print_into(path, sizeof path, "%s/grows.ndjson", drive.dir);
  folder_write(path, STR(""));
  struct record_index *track = record_index_new(log_ref(path));
  assert_false(record_index_read(track, &err)); /* no session yet */
  for (size_t i = 0; i < drive.log.n; i++) {
    struct view_session v;
    if (drive.log.p[i] != '\n')
      continue;
    folder_write(path, (struct str){drive.log.p, i + 1});
    if (!record_index_read(track, &err))
      fail_msg("%s", err.text);
    read_view(&v, path);
    char_auto_t *kept = view_text(&track->view), *anew = view_text(&v);
    assert_string_equal(kept, anew);
    assert_true(record_index_bytes(track) > 0);
    view_session_deinit(&v);
  }
  record_index_free(track);
}

/* Wherever one record is changed: what is sound and what is not is told, and all of it is shown. */
TEST(damaged) {
  char path[200];
  size_t line = 0;
  print_into(path, sizeof path, "%s/damaged.ndjson", drive.dir);
  for (size_t i = 0; i < drive.log.n; i++) {
    struct view_session v;
    buf_auto_t log = {0};
    if (i > 0 && drive.log.p[i - 1] != '\n')
      continue;
    line++;
    buf_append(&log, drive.log.p, drive.log.n);
    char *ts = strstr(log.p + i, "\"ts\":\"");
    assert_non_null(ts);
    ts[6] = '1'; /* the year 1027, say */
    folder_write(path, buf_view(&log));
    read_view(&v, path);
    assert_int_equal(v.chain, VIEW_BAD);
    assert_int_equal(v.records, line - 1);
    assert_true(v.damage.n > 0);
    assert_int_equal(v.turn_count, 4);
    assert_true(v.turns[3].unproven || line > json_array_size(drive.records) / 2);
    view_session_deinit(&v);
  }
  assert_int_equal(line, json_array_size(drive.records));
}

TEST(torn) {
  AUTO(view_session_deinit) struct view_session v;
  char path[200];
  print_into(path, sizeof path, "%s/torn.ndjson", drive.dir);
  folder_write(path, (struct str){drive.log.p, drive.log.n - 4});
  read_view(&v, path);
  assert_int_equal(v.chain, VIEW_TORN);
  assert_int_equal(v.records, json_array_size(drive.records) - 1);
  assert_true(v.torn_bytes > 0);
}

/* A long task is cut between two characters, and how much is missing is told. */
TEST(long_task) {
  AUTO(drive_deinit) struct drive d;
  buf_auto_t task = {0};
  AUTO(view_session_deinit) struct view_session v;
  buf_puts(&task, "ab");
  for (int i = 0; i < 30000; i++)
    buf_puts(&task, "\xE8\xA9\xA6");
  drive_init(&d);
  drive_start(&d, drive_workflow, buf_c(&task), drive_config());
  drive_write(&d);
  read_view(&v, d.path);
  assert_int_equal(v.task.n, 65534); /* 2 + 3 * 21844; the limit is two more */
  assert_int_equal(v.task.n + v.task_more_bytes, task.n);
  json_auto_t *json = view_session_json(&v);
  assert_int_equal(json_integer_value(json_object_get(json, "task_more_bytes")), v.task_more_bytes);
}

TEST(no_session) {
  struct view_session v;
  struct err err = {0};
  char path[200];
  print_into(path, sizeof path, "%s/none.ndjson", drive.dir);
  assert_false(view_session_read(&v, log_ref(path), &err));
  folder_write(path, STR("{\"no\":\"log\"}\n"));
  assert_false(view_session_read(&v, log_ref(path), &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
}

TEST_GROUP(log_book_setup, log_book_teardown)
