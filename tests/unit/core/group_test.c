/* Movements with children: what they bring, how it is judged, and that no timing changes it. */
#include "base/memory.h"
#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

#define CHILD(name, more)                                                                          \
  "{'name':'" name "'," more "'rules':[{'condition':'approved'},{'condition':'needs fix'}]}"

/* Three children under the rules that are given; phase1_tag alone, so no judge is called. */
static char *group_of(const char *rules, const char *more) {
  char *text = NULL;
  assert_true(
      asprintf(&text,
               "{'name':'w','provider':'sim','judge':{'stages':['phase1_tag']},'movements':["
               "{'name':'review',%s'parallel':[" CHILD("a", "") "," CHILD("b", "") "," CHILD(
                   "c", "") "],'rules':[%s]},"
                            "{'name':'fix','rules':[{'condition':'done','next':'COMPLETE'}]}]}",
               more, rules) > 0);
  return text;
}

static int64_t listed_delay(struct play *p) { /* ctx: delays of the calls in the order they start */
  const int64_t *delays = p->ctx;
  long n = p->started - 1;
  return n < 8 ? delays[n] : 1;
}

static void play_group(struct play *p, const char *title, const char *rules, const char *more,
                       const char *script) {
  char_auto_t *workflow = group_of(rules, more);
  play_init(p, title, workflow, NULL, script);
}

static void run_group(struct play *p) {
  play_start(p);
  play_run(p);
}

static const json_t *group_judgment(const struct play *p) {
  const json_t *judgment = NULL;
  for (size_t i = 0; i < play_lines(p); i++)
    if (str_eq_c(data_get(play_record(p, i), "type"), "judgment") &&
        str_eq_c(data_get(play_record(p, i), "movement"), "review"))
      judgment = play_record(p, i);
  return judgment;
}

/* Rule 0 is none. The conditions stand in JSON, so their labels are bare. */
TEST(aggregates_choose_the_first_that_holds) {
  DATA_ROWS("core/group/aggregates_choose_the_first_that_holds.yaml", row, title, rules, a, b, c,
            rule) {
    AUTO(play_deinit) struct play p;
    char script[300];
    print_into(script, sizeof script,
               "{'review.a':'%s','review.b':'%s','review.c':'%s','fix':'[FIX:1]'}", row.a, row.b,
               row.c);
    play_group(&p, row.title, row.rules, "", script);
    run_group(&p);
    const json_t *judgment = group_judgment(&p);
    assert_non_null(judgment);
    json_int_t rule = json_integer_value(json_object_get(judgment, "rule"));
    if (rule != (int)data_number(row.rule))
      fail_msg("%s: rule %d, wanted %d", row.title, (int)rule, (int)data_number(row.rule));
    if (rule == 0)
      assert_string_equal(buf_c(&p.core.stop_reason), "rule_no_match");
    else
      assert_true(p.core.status == SESSION_ENDED && p.core.outcome == END_COMPLETE);
  }
}

#define ALL_OR_ERROR                                                                               \
  "{'condition':'all(approved)','next':'COMPLETE'},{'condition':'any(error)','next':'fix'}"
#define ALL_ONLY "{'condition':'all(approved)','next':'COMPLETE'}"

TEST(a_child_that_failed_is_data) {
  AUTO(play_deinit) struct play p;
  play_group(&p, "error", ALL_OR_ERROR, "",
             "{'review.a':'[A:1]','review.b':{'error':'auth','message':'no key'},"
             "'review.c':'[C:1]','fix':'[FIX:1]'}");
  run_group(&p);
  assert_true(p.core.status == SESSION_ENDED && p.core.outcome == END_COMPLETE);
  assert_int_equal(json_integer_value(json_object_get(group_judgment(&p), "rule")), 2);
  const json_t *end = NULL;
  for (size_t i = 0; i < play_lines(&p); i++)
    if (json_object_get(play_record(&p, i), "outcome") &&
        str_eq_c(data_get(play_record(&p, i), "type"), "turn_end"))
      end = play_record(&p, i);
  assert_true(str_eq_c(data_get(end, "outcome"), "error"));
  assert_true(str_eq_c(data_get(end, "class"), "auth"));
  assert_true(str_eq_c(data_get(end, "message"), "no key"));
}

/* Nothing takes the failure: the session stops behind what its siblings brought, and a resume asks
 * the one that failed alone. */
TEST(what_runs_is_settled_before_a_stop) {
  static int64_t delays[8] = {1, 5, 9};
  AUTO(play_deinit) struct play p;
  play_group(&p, "settled", ALL_ONLY, "",
             "{'review.a':[{'error':'auth','message':'no key'},'[A:1]'],'review.b':'[B:1]',"
             "'review.c':'[C:1]'}");
  p.delay_ms = listed_delay;
  p.ctx = delays;
  run_group(&p);
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "rule_no_match");
  assert_int_equal(play_count(&p, "call_end"), 3);
  assert_int_equal(p.cancelled, 0);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  assert_true(p.core.status == SESSION_ENDED && p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "call_start"), 4);
}

TEST(all_failed_is_no_answer_to_judge) {
  AUTO(play_deinit) struct play p;
  play_group(
      &p, "all failed", ALL_ONLY ",{'condition':'else','next':'fix'}", "",
      "{'review.a':{'error':'auth'},'review.b':{'error':'auth'},'review.c':{'error':'auth'}}");
  run_group(&p);
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "rule_no_match");
  assert_non_null(strstr(buf_c(&p.core.stop_message), "every child failed"));
}

/* A group has no agent of its own: the last line of its last child is no tag of the group's. */
TEST(a_child_does_not_decide_for_its_group) {
  AUTO(play_deinit) struct play p;
  play_group(
      &p, "a child's word",
      "{'condition':'good','next':'COMPLETE'},{'condition':'bad','next':'fix'}", "",
      "{'review.a':'[A:1]','review.b':'[B:2]','review.c':'[C:1]\\n\\n[REVIEW:1]','fix':'x'}");
  run_group(&p);
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "rule_no_match");
}

/* A judge of the group that only repeats what a child said gives no verdict either. */
TEST(an_echo_of_a_child_is_no_verdict) {
  static const char workflow[] =
      "{'name':'w','provider':'sim','judge':{'stages':['structured_output']},'movements':["
      "{'name':'g','parallel':[{'name':'a','rules':[{'condition':'fine'}]}],'rules':["
      "{'condition':'good','next':'COMPLETE'},{'condition':'bad','next':'ABORT'}]}]}";
  AUTO(play_deinit) struct play p;
  play_init(&p, "echo", workflow, NULL, "{}");
  json_object_set_new(p.script, "g.a",
                      json_string("Say {\"step\": 1, \"reason\": \"all is well\"}"));
  json_object_set_new(p.script, "g/structured_output",
                      json_string("{\"step\": 1, \"reason\": \"all is well\"}"));
  run_group(&p);
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "rule_no_match");
}

TEST(only_so_many_run_at_once) {
  AUTO(play_deinit) struct play p;
  play_group(&p, "concurrency", ALL_ONLY, "'concurrency':2,",
             "{'review.a':'[A:1]','review.b':'[B:1]','review.c':'[C:1]'}");
  play_start(&p);
  assert_int_equal(p.pending_count, 2);
  play_step(&p);
  assert_int_equal(p.pending_count, 2);
  play_run(&p);
  assert_true(p.core.outcome == END_COMPLETE);
}

/* Children count for no limit: the group is one turn, what follows the next. */
TEST(children_are_no_iterations) {
  AUTO(play_deinit) struct play p;
  play_group(&p, "iterations", "{'condition':'any(approved)','next':'fix'}", "",
             "{'review.a':'[A:1]','review.b':'[B:1]','review.c':'[C:1]','fix':'[FIX:1]'}");
  json_object_set_new(p.config, "max_movements", json_integer(2));
  run_group(&p);
  assert_true(p.core.outcome == END_COMPLETE);
  const json_t *last = play_find(&p, "turn_start", -1);
  assert_int_equal(json_integer_value(json_object_get(last, "turn")), 5);
  assert_int_equal(json_integer_value(json_object_get(last, "iteration")), 2);
}

#define LONG_WORDS                                                                                 \
  "These are the words of one child, and there are so many of them that the log would rather "     \
  "name the place where it holds them already than write them down once more. "

/* The next prompt holds the answers in the workflow's order, without the lines that sign them: so
 * the log has each of them twice. */
TEST(answers_join_in_order) {
  static int64_t delays[8] = {9, 5, 1};
  AUTO(play_deinit) struct play p;
  play_group(&p, "joined", "{'condition':'any(approved)','next':'fix'}", "",
             "{'review.a':'A " LONG_WORDS "\\n[A:1]','review.b':'B " LONG_WORDS "\\n[B:1]',"
             "'review.c':'C " LONG_WORDS "\\n[C:1]','fix':'[FIX:1]'}");
  p.delay_ms = listed_delay;
  p.ctx = delays;
  run_group(&p);
  assert_true(p.core.outcome == END_COMPLETE);
  const char *prompt = buf_c(&p.last_prompt);
  const char *a = strstr(prompt, "## a\n\nA These"), *b = strstr(prompt, "## b\n\nB These");
  const char *c = strstr(prompt, "## c\n\nC These");
  assert_true(a != NULL && b > a && c > b);
  size_t times = 0;
  for (size_t i = 0; i < play_lines(&p); i++)
    for (const char *at = json_string_value(json_array_get(p.log, i));
         (at = strstr(at, "B These")) != NULL; at++)
      times++;
  assert_int_equal(times, 2);
  assert_null(strstr(prompt, "[B:1]"));
}

/* Siblings with one persona get a conversation each, and the log says why. */
TEST(siblings_share_no_conversation) {
  static const char workflow[] =
      "{'name':'w','provider':'sim','judge':{'stages':['phase1_tag']},'movements':["
      "{'name':'review','parallel':[" CHILD("a", "'persona':'You are strict.',") "," CHILD(
          "b", "'persona':'You are strict.',") "],'rules':["
                                               "{'condition':'all(approved)','next':'COMPLETE'},{'"
                                               "condition':'any(needs fix)','next':"
                                               "'review'}]}]}";
  AUTO(play_deinit) struct play p;
  play_init(&p, "conversations", workflow, NULL,
            "{'review.a':[{'text':'[A:2]','session':'sa'},{'text':'[A:1]','session':'sa'}],"
            "'review.b':[{'text':'[B:2]','session':'sb'},{'text':'[B:1]','session':'sb'}]}");
  run_group(&p);
  assert_true(p.core.outcome == END_COMPLETE);
  static const char *const ids[] = {NULL, NULL, "sa", "sb"};
  for (int i = 0; i < 4; i++) {
    const json_t *session = json_object_get(play_find(&p, "call_start", i), "session");
    if (ids[i] == NULL)
      assert_non_null(strstr(data_get(session, "reason").p, "sibling"));
    else
      assert_true(str_eq_c(data_get(session, "id"), ids[i]));
  }
}

#define AFTER_A_PLAN(provider)                                                                     \
  "{'name':'w','provider':'" provider "','judge':{'stages':['phase1_tag']},'movements':["          \
  "{'name':'plan','persona':'You are strict.','rules':[{'condition':'planned','next':'review'}]}," \
  "{'name':'review','concurrency':1,'parallel':[" CHILD(                                           \
      "a",                                                                                         \
      "'persona':'You are strict.',") "," CHILD("b",                                               \
                                                "'persona':'You are strict.',") "],'rules':["      \
                                                                                "{'condition':'"   \
                                                                                "all(approved)','" \
                                                                                "next':'COMPLETE'" \
                                                                                "},{'condition':'" \
                                                                                "any(needs "       \
                                                                                "fix)','next':'"   \
                                                                                "review'}"         \
                                                                                "]}]}"
#define FORK_SCRIPT                                                                                \
  "{'plan':{'text':'x','session':'base'},"                                                         \
  "'review.a':[{'text':'[A:2]','session':'sa'},{'text':'[A:1]','session':'sa'}],"                  \
  "'review.b':[{'text':'[B:2]','session':'sb'},{'text':'[B:1]','session':'sb'}]}"

static void expect_session(const struct play *p, int call, const char *id, bool forked) {
  const json_t *session = json_object_get(play_find(p, "call_start", call), "session");
  if (!str_eq_c(data_get(session, "id"), id) ||
      json_is_true(json_object_get(session, "forked")) != forked)
    fail_msg("%s: call %d: %s", p->title, call, json_dumps(session, JSON_ENCODE_ANY));
}

/* Where the backend can, each goes on with a copy of what was said before the group, and later with
 * its own; a call that was cut off before its copy had an id copies anew. */
TEST(siblings_fork_a_conversation) {
  struct play p;
  play_init(&p, "fork", AFTER_A_PLAN("sim"), NULL, FORK_SCRIPT);
  play_start(&p);
  while (play_count(&p, "call_start") < 2)
    play_step(&p);
  play_crash(&p, 0);
  play_send_and_run(&p, EVENT_RESUME, "crash", NULL);
  assert_true(p.core.outcome == END_COMPLETE);
  expect_session(&p, 1, "base", true);
  expect_session(&p, 2, "base", true);
  expect_session(&p, 3, "base", true);
  expect_session(&p, 4, "sa", false);
  expect_session(&p, 5, "sb", false);
  play_deinit(&p);
  play_init(&p, "no fork", AFTER_A_PLAN("other"), NULL, FORK_SCRIPT);
  run_group(&p);
  assert_true(p.core.outcome == END_COMPLETE);
  const json_t *session = json_object_get(play_find(&p, "call_start", 1), "session");
  assert_non_null(strstr(data_get(session, "reason").p, "cannot fork"));
  play_deinit(&p);
}

/* A judge that is down for one child stops the session once the others are settled, and the resume
 * judges that child alone. */
TEST(a_judge_that_is_down_stops_its_own_turn) {
  static const char workflow[] =
      "{'name':'w','provider':'sim','judge':{'stages':['structured_output']},'movements':["
      "{'name':'review','parallel':[" CHILD("a", "") "," CHILD(
          "b", "") "],'rules':["
                   "{'condition':'all(approved)','next':'COMPLETE'}]}]}";
  AUTO(play_deinit) struct play p;
  play_init(
      &p, "judge down", workflow, NULL,
      "{'review.a':'x','review.b':'y',"
      "'review.a/structured_output':[{'error':'quota'},{'structured':{'step':1,'reason':'r'}}],"
      "'review.b/structured_output':{'structured':{'step':1,'reason':'r'}}}");
  run_group(&p);
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "judge_unavailable");
  assert_int_equal(play_count(&p, "judgment"), 1);
  assert_int_equal(play_count(&p, "call_end"), 4);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  assert_true(p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "call_start"), 5);
}

/* Commands of children set the last exit together, in the workflow's order, when the group is over;
 * siblings with one key share no conversation either, and commands have none. */
TEST(commands_of_children_are_checks) {
  static const char workflow[] =
      "{'name':'w','provider':'sim','movements':["
      "{'name':'check','parallel':["
      "{'name':'a','command':['x'],'rules':[{'condition':'when(exit == 0)'},"
      "{'condition':'when(exit != 0)'}]},"
      "{'name':'b','command':['y'],'rules':[{'condition':'when(exit == 0)'},"
      "{'condition':'when(exit != 0)'}]}],'rules':["
      "{'condition':'any(when(exit != 0)) && when(last_exit == 0)','next':'ABORT'},"
      "{'condition':'any(when(exit != 0))','next':'after'}]},"
      "{'name':'after','rules':[{'condition':'when(last_exit == 3)','next':'COMPLETE'}]}]}";
  AUTO(play_deinit) struct play p;
  play_init(&p, "commands", workflow, NULL,
            "{'check.a':{'text':'','exit':0},'check.b':{'text':'','exit':3},'after':'x'}");
  run_group(&p);
  assert_true(p.core.status == SESSION_STOPPED); /* in the group itself none was known yet */
  assert_string_equal(buf_c(&p.core.stop_reason), "failed");
}

/* An expression of a child that cannot be evaluated is that child's failure. */
TEST(a_child_whose_rule_fails_is_an_error) {
  static const char workflow[] =
      "{'name':'w','provider':'sim','movements':[{'name':'g','parallel':["
      "{'name':'a','rules':[{'condition':'when(last_exit == 0)'}]},"
      "{'name':'b','rules':[{'condition':'fine'}]}],'rules':["
      "{'condition':'all(error, fine)','next':'COMPLETE'}]}]}";
  AUTO(play_deinit) struct play p;
  play_init(&p, "rule fails", workflow, NULL, "{'g.a':'x','g.b':'y'}");
  run_group(&p);
  assert_true(p.core.status == SESSION_ENDED && p.core.outcome == END_COMPLETE);
}

/* A drain lets the child that runs end, and begins no other; a resume begins those. */
TEST(a_drain_begins_no_child) {
  AUTO(play_deinit) struct play p;
  play_group(&p, "drain", ALL_ONLY, "'concurrency':1,",
             "{'review.a':'[A:1]','review.b':'[B:1]','review.c':'[C:1]'}");
  play_start(&p);
  p.env.draining = true;
  play_send_and_run(&p, EVENT_DRAIN, NULL, NULL);
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "shutdown");
  assert_int_equal(play_count(&p, "call_end"), 1);
  p.env.draining = false;
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  assert_true(p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "call_start"), 3);
}

static void refuse(const struct play *p, size_t records, const char *record, const char *why) {
  AUTO(core_deinit) struct core core;
  struct err err = {0};
  struct core_source source = {(void *)p, play_blob};
  core_init(&core);
  for (size_t i = 0; i < records; i++)
    if (!core_apply_json(&core, play_record(p, i), NULL, &source, &err))
      fail_msg("record %zu: %s", i, err.text);
  json_auto_t *json = data_json(record);
  json_object_set_new(json, "v", json_integer(1));
  json_object_set_new(json, "seq", json_integer((json_int_t)records + 1));
  json_object_set_new(json, "ts", json_string("2026-01-01T00:00:00.000Z"));
  bool ok = core_apply_json(&core, json, NULL, &source, &err);
  if (ok || strstr(err.text, why) == NULL)
    fail_msg("%s: %s", record, ok ? "taken" : err.text);
}

/* A log that somebody edited: each record is held against what is open. */
TEST(records_of_groups_are_outside_data) {
  AUTO(play_deinit) struct play p;
  play_group(&p, "hostile", ALL_ONLY, "",
             "{'review.a':'[A:1]','review.b':'hm','review.c':'[C:1]'}");
  run_group(&p);
#define START(movement, turn, parent)                                                              \
  "{'type':'turn_start','movement':'" movement "','turn':" turn parent ",'iteration':1,"           \
  "'movement_iteration':1}"
  refuse(&p, 1, START("review", "1", ",'parent_turn':1"), "its movement is no child");
  refuse(&p, 1, START("review.a", "1", ""), "its group is not open");
  refuse(&p, 2, START("review.a", "2", ",'parent_turn':7"), "its group is not open");
  refuse(&p, 3, START("review.a", "3", ",'parent_turn':1"), "runs already, or has ended");
  refuse(&p, 3, START("review.b", "9", ",'parent_turn':1"), "not the next one");
  refuse(&p, 3, "{'type':'turn_end','turn':2,'parent_turn':1,'rule':1}",
         "not the one that was judged");
  refuse(&p, 3, "{'type':'turn_end','turn':2,'parent_turn':1,'outcome':'none'}",
         "not the one that was judged");
  size_t called = 0;
  while (!str_eq_c(data_get(play_record(&p, called), "type"), "call_start"))
    called++;
  refuse(&p, called + 1, "{'type':'admission','turn':2,'call':99,'answer':'wait'}",
         "is not running");
  refuse(&p, called + 1, "{'type':'admission','turn':2,'call':1,'answer':'odd'}", "is unknown");
  refuse(&p, called + 1, "{'type':'call_event','turn':2,'call':99,'event':'note'}",
         "is not running");
  refuse(&p, called + 1, "{'type':'call_end','turn':9,'call':1,'attempt':1}", "is not open");
  refuse(&p, called + 1, "{'type':'call_end','turn':2,'call':1,'attempt':7}", "not running");
  size_t judged = 0;
  while (!str_eq_c(data_get(play_record(&p, judged), "movement"), "review.b") ||
         !str_eq_c(data_get(play_record(&p, judged), "type"), "judgment"))
    judged++;
  refuse(&p, judged + 1, "{'type':'turn_end','turn':3,'parent_turn':1,'outcome':'odd'}",
         "its outcome is unknown");
  refuse(&p, judged + 1, "{'type':'turn_end','turn':3,'parent_turn':1,'rule':2}",
         "not the one that was judged");
#undef START
}

/* --- timing --- */

/* The verdicts of a log: movement, run and rule of each judgment, in the order of movements. */
static char *verdicts_of(const struct play *p) {
  json_auto_t *found = json_object();
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *r = play_record(p, i);
    if (str_eq_c(data_get(r, "type"), "judgment")) {
      json_t *list = json_object_get(found, data_get(r, "movement").p);
      if (list == NULL) {
        list = json_array();
        json_object_set_new(found, data_get(r, "movement").p, list);
      }
      json_array_append(list, json_object_get(r, "rule"));
    }
  }
  return json_dumps(found, JSON_SORT_KEYS | JSON_COMPACT);
}

TEST(no_order_of_ends_changes_a_verdict) {
  static const int orders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                   {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
  char *first = NULL;
  for (int i = 0; i < 36; i++) {
    int64_t delays[8];
    AUTO(play_deinit) struct play p;
    for (int k = 0; k < 3; k++) {
      delays[k] = orders[i / 6][k];
      delays[3 + k] = orders[i % 6][k];
    }
    play_group(
        &p, "order",
        "{'condition':'all(approved)','next':'COMPLETE'},"
        "{'condition':'any(needs fix) && when(last_exit == 0)','next':'fix'},"
        "{'condition':'any(needs fix)','next':'review'}",
        "",
        "{'review.a':['[A:1]','[A:1]'],'review.b':['[B:2]','[B:1]'],'review.c':['no','[C:1]']}");
    p.delay_ms = listed_delay;
    p.ctx = delays;
    run_group(&p);
    char *verdicts = verdicts_of(&p);
    if (first != NULL && strcmp(first, verdicts) != 0)
      fail_msg("order %d: %s, but %s", i, verdicts, first);
    free(first);
    first = verdicts;
  }
  assert_non_null(first);
  free(first);
}

static unsigned dice(unsigned *seed, unsigned n) {
  *seed = *seed * 1103515245u + 12345u;
  return (*seed >> 16) % n;
}

static int64_t random_delay(struct play *p) {
  return 1 + dice(p->ctx, 20);
}

static void put_random_reply(struct buf *script, const char *name, char letter, unsigned *seed) {
  static const char *const replies[] = {"'[%c:1]'",
                                        "'[%c:2]'",
                                        "'no tag of %c'",
                                        "{'error':'auth','message':'%c'}",
                                        "{'error':'network','message':'%c'}",
                                        "''"};
  buf_printf(script, "%s'review.%s':[", script->n > 1 ? "," : "", name);
  for (int i = 0; i < 6; i++) {
    char reply[64];
    const char *form = replies[dice(seed, ARRAY_LEN(replies))];
    char *at = strstr(strcpy(reply, form), "%c");
    if (at != NULL) {
      at[0] = letter;
      memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
    buf_printf(script, "%s%s", i > 0 ? "," : "", reply);
  }
  buf_putc(script, ']');
}

/* Random answers, failures, crashes and cancels: the session always ends or stops for a reason that
 * has a name, and no label is chosen for what a deterministic rule decides. The harness folds each
 * log into the same state. */
TEST(random_groups_come_to_an_end) {
  for (unsigned round = 1; round <= 400; round++) {
    unsigned seed = round;
    struct buf script = {0};
    AUTO(play_deinit) struct play p;
    char title[32], concurrency[40];
    print_into(title, sizeof title, "round %u", round);
    print_into(concurrency, sizeof concurrency, "'concurrency':%u,%s", 1 + dice(&seed, 3),
               round % 3 == 0 ? "'stop_on':'error'," : "");
    buf_putc(&script, '{');
    put_random_reply(&script, "a", 'A', &seed);
    put_random_reply(&script, "b", 'B', &seed);
    put_random_reply(&script, "c", 'C', &seed);
    buf_puts(&script, ",'fix':'[FIX:1]'}");
    play_group(&p, title,
               "{'condition':'all(approved)','next':'COMPLETE'},"
               "{'condition':'any(needs fix)','next':'review'},"
               "{'condition':'any(none)','next':'fix'}",
               concurrency, buf_c(&script));
    buf_deinit(&script);
    p.delay_ms = random_delay;
    p.ctx = &seed;
    play_start(&p);
    for (int step = 0; step < 500 && p.pending_count > 0; step++) {
      play_step(&p);
      unsigned event = dice(&seed, 40);
      if (event == 0 && p.core.status == SESSION_RUNNING) {
        play_crash(&p, 0);
        play_send(&p, EVENT_RESUME, "crash", NULL);
      } else if (event == 1 && p.core.status == SESSION_STOPPED) {
        play_send(&p, EVENT_RESUME, "user", NULL);
      } else if (event == 2 && p.core.status == SESSION_RUNNING) {
        play_send(&p, EVENT_CANCEL, NULL, "enough");
      }
    }
    bool stopped = p.core.status == SESSION_STOPPED && p.core.stop_reason.n > 0;
    bool ended = p.core.status == SESSION_ENDED && p.core.outcome != END_NONE;
    if (!stopped && !ended)
      fail_msg("%s: status %d", p.title, (int)p.core.status);
    const json_t *judgment = group_judgment(&p);
    if (judgment != NULL && json_is_integer(json_object_get(judgment, "rule")))
      assert_true(str_eq_c(data_get(judgment, "method"), "aggregate"));
  }
}

struct chosen {
  unsigned char ids[3][16];
  size_t count;
};

static json_t *note_entropy(void *ctx, const struct call_request *request,
                            const json_t *token_counts, const unsigned char entropy[16]) {
  struct chosen *chosen = ((struct play *)ctx)->ctx;
  (void)request;
  (void)token_counts;
  assert_true(chosen->count < ARRAY_LEN(chosen->ids));
  memcpy(chosen->ids[chosen->count++], entropy, 16);
  return NULL;
}

/* Children begin with one event. Clients that are told the id of a new conversation get it from
 * these bytes: with the same ones two calls would be one conversation. */
TEST(calls_of_one_event_have_random_bytes_of_their_own) {
  AUTO(play_deinit) struct play p;
  struct chosen chosen = {0};
  play_group(&p, "random bytes", "{'condition':'all(approved)','next':'COMPLETE'}", "",
             "{'review.a':['[A:1]'],'review.b':['[B:1]'],'review.c':['[C:1]']}");
  p.ctx = &chosen;
  p.env.prepare = note_entropy;
  play_start(&p);
  assert_int_equal(chosen.count, 3);
  for (int i = 0; i < 3; i++)
    assert_memory_not_equal(chosen.ids[i], chosen.ids[(i + 1) % 3], 16);
}

TEST_GROUP(NULL, play_over)
