/* Tests how a report may be called, what stands in its file, and which step comes next. */
#include "core/keys.h"
#include "core/report_file.h"

#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

TEST(names_are_files_without_a_folder) {
  static const char *const good[] = {"plan.md", "00-plan.md", "a b", "計画.md", "x"};
  static const char *const bad[] = {"",      ".",    "..",         ".hidden", "a/b.md",
                                    "..\\x", "a\nb", "plan.",      " a.md",   "a ",
                                    "a:b",   "a*",   "/etc/passwd"};
  struct err err;
  char longest[200];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (!key_check_file(str_from(good[i]), &err))
      fail_msg("refused: %s", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (key_check_file(str_from(bad[i]), &err))
      fail_msg("taken: %s", bad[i]);
  memset(longest, 'a', sizeof longest);
  assert_true(key_check_file((struct str){longest, 128}, &err));
  assert_false(key_check_file((struct str){longest, 129}, &err));
  assert_false(key_check_file((struct str){"a\0b", 3}, &err));
}

TEST(a_file_is_the_trimmed_answer) {
  buf_auto_t content = {0};
  char sha256[SHA256_HEX], wanted[SHA256_HEX];
  contract_content(STR("\n\n # Plan\n\ntext \n"), &content);
  assert_string_equal(buf_c(&content), "# Plan\n\ntext\n");
  contract_sha256(STR("\n\n # Plan\n\ntext \n"), sha256);
  sha256_hex(content.p, content.n, NULL, 0, wanted);
  assert_string_equal(sha256, wanted);
}

static const struct next_case {
  const char *what;
  size_t kept;          /* reports that are there */
  struct call calls[2]; /* of the next one; report 0: not there */
  enum report_action action;
  bool fresh;
} next_cases[] = {
    {"the answer itself needs no call", 0, {{0}}, REPORT_KEEP, false},
    {"nobody was asked", 1, {{0}}, REPORT_ASK, false},
    {"it is under way", 1, {{.report = 2, .state = CALL_RUNNING}}, REPORT_WAIT, false},
    {"it waits for another attempt", 1, {{.report = 2, .state = CALL_WAITING}}, REPORT_WAIT, false},
    {"it is there", 1, {{.report = 2, .state = CALL_DONE}}, REPORT_KEEP, false},
    {"the conversation brought none",
     1,
     {{.report = 2, .state = CALL_FAILED, .resumed = true}},
     REPORT_ASK,
     true},
    {"nor did a new one",
     1,
     {{.report = 2, .state = CALL_FAILED, .resumed = true}, {.report = 2, .state = CALL_FAILED}},
     REPORT_FAILED,
     false},
    {"a new one was all there could be",
     1,
     {{.report = 2, .state = CALL_FAILED}},
     REPORT_FAILED,
     false},
    {"the call of another report counts for nothing",
     2,
     {{.report = 2, .state = CALL_DONE}},
     REPORT_ASK,
     false},
};

TEST(steps_follow_from_calls_and_reports) {
  static const char *const names[] = {"answer.md", "a.md", "b.md"};
  struct contract contracts[3] = {{.is_answer = true}, {.judged = true}, {.judged = true}};
  const struct movement m = {.contracts = contracts, .contract_count = 3};
  for (size_t i = 0; i < ARRAY_LEN(next_cases); i++) {
    const struct next_case *c = &next_cases[i];
    struct call calls[2] = {c->calls[0], c->calls[1]};
    struct turn turn = {.phase = TURN_REPORTING};
    struct report_step step;
    for (size_t k = 0; k < c->kept; k++)
      (void)kept_put(&turn.reports, str_from(names[k]));
    if (calls[0].report > 0)
      turn.calls = &calls[0];
    if (calls[1].report > 0)
      calls[0].next = &calls[1];
    report_next(&m, &turn, &step);
    if (step.action != c->action || step.fresh != c->fresh || step.contract != &contracts[c->kept])
      fail_msg("%s", c->what);
    kept_free(&turn.reports);
  }
}

TEST(newer_texts_take_the_place_of_older_ones) {
  struct kept_text *list = NULL, *turn = NULL;
  struct kept_text *kept = kept_put(&list, STR("a"));
  buf_puts(&kept->text, "one");
  strcpy(kept->sha256, "1");
  (void)kept_put(&list, STR("b"));
  kept = kept_put(&turn, STR("a"));
  buf_puts(&kept->text, "two");
  strcpy(kept->sha256, "2");
  kept_move(&list, &turn);
  assert_null(turn);
  assert_string_equal(buf_c(&list->text), "two");
  assert_string_equal(list->sha256, "2");
  assert_string_equal(list->before, "1");
  assert_string_equal(list->next->name, "b");
  assert_null(list->next->next);
  kept_free(&list);
  assert_null(list);
}

/* --- in a session --- */

static const char reporting[] =
    "{'name':'w','movements':[{'name':'a','report':'answer.md','output_contracts':{"
    "'report':[{'name':'b.md','format':'List it.'}]},"
    "'rules':[{'condition':'when(true)','next':'COMPLETE'}]}]}";

/* The call of the report, where the log has it. */
static const json_t *report_call(const struct play *p, int k) {
  for (size_t i = 0; i < play_lines(p); i++)
    if (str_eq_c(data_get(play_record(p, i), "type"), "call_start") &&
        str_eq_c(data_get(play_record(p, i), "purpose"), "report") && k-- == 0)
      return play_record(p, i);
  return NULL;
}

/* In the conversation that did the work, where there is one; once more alone, where it is lost. */
TEST(a_report_is_asked_for_where_the_work_was_done) {
  static const struct {
    const char *replies, *session; /* of the first call for a report; NULL: it begins anew */
    size_t asked;
    bool complete;
  } cases[] = {
      {"[{'text':'worked','session':'s1'},'the list']", "s1", 1, true},
      {"['worked','the list']", NULL, 1, true},
      {"[{'text':'worked','session':'s1'},{'error':'bad_request','message':'no'},'the list']", "s1",
       2, true},
      {"[{'text':'worked','session':'s1'},{'error':'bad_request','message':'no'}]", "s1", 2, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t script = {0};
    AUTO(play_deinit) struct play p;
    buf_printf(&script, "{'a':%s}", cases[i].replies);
    play_all(&p, cases[i].replies, reporting, NULL, buf_c(&script));
    assert_int_equal(p.core.outcome == END_COMPLETE, cases[i].complete);
    const json_t *session = json_object_get(report_call(&p, 0), "session");
    bool resumed = json_is_true(json_object_get(session, "resumed"));
    if (resumed != (cases[i].session != NULL))
      fail_msg("%s: %s", cases[i].replies, resumed ? "resumed" : "anew");
    assert_true(!resumed || str_eq_c(data_get(session, "id"), cases[i].session));
    assert_true((report_call(&p, (int)cases[i].asked - 1) != NULL) &&
                report_call(&p, (int)cases[i].asked) == NULL);
    assert_int_equal(play_count(&p, "report"), cases[i].complete ? 2 : 1);
  }
}

TEST(a_changed_log_brings_no_other_report) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "log", reporting, NULL, "{'a':['worked','the list']}");
  assert_int_equal(p.core.outcome, END_COMPLETE);
  DATA_ROWS("core/report_file/a_changed_log_brings_no_other_report.yaml", c, type, k, changes,
            error)
    play_refuses(&p, play_index(&p, c.type, (int)data_number(c.k)), c.changes, c.error);
}

TEST_GROUP(NULL, play_over)
