/* The fold as a reader of outside data: what does not hold together is refused, never asserted. */
#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

static const char workflow[] =
    "{'name':'w','judge':{'max_reasks':1},'movements':["
    "{'name':'a','rules':[{'condition':'x','next':'b'},{'condition':'y','next':'a'}]},"
    "{'name':'b','rules':[{'condition':'z','next':'COMPLETE'}]}]}";
static const char script[] = "{'a':{'text':'did','structured':{'n':1},'exit':0},"
                             "'b':[{'error':'network','message':'no'},'did'],"
                             "'a/structured_output':'?','a/structured_output/reask':'?',"
                             "'a/phase3_tag':'[A:1]'}";

static void play_log(struct play *p) {
  play_all(p, "log", workflow, NULL, script);
  assert_int_equal(p->core.status, SESSION_ENDED);
}

TEST(what_is_out_of_order_is_refused) {
  AUTO(play_deinit) struct play p;
  play_log(&p);
  DATA_ROWS("core/apply/what_is_out_of_order_is_refused.yaml", c, type, k, changes, error)
    play_refuses(&p, play_index(&p, c.type, (int)data_number(c.k)), c.changes, c.error);
}

TEST(a_carried_state_is_outside_data) {
  DATA_ROWS("core/apply/a_carried_state_is_outside_data.yaml", c, changes, error) {
    AUTO(core_deinit) struct core core;
    struct err err = {0};
    json_auto_t *start =
        data_json("{'v':1,'seq':1,'ts':'2026-01-01T00:00:00.000Z','type':'session_start',"
                  "'session':'s','task':'t','carries':true,'config':{},'workflow':{'name':'w',"
                  "'movements':[{'name':'a','rules':[{'condition':'x','next':'COMPLETE'}]}]}}");
    json_auto_t *carried =
        data_json("{'v':1,'seq':2,'type':'carried','movement':'a','text':'t',"
                  "'state':{'turns':3,'iterations':3,'runs':{'a':2},'tokens':{'sim':[1,2]}}}");
    json_auto_t *changes = data_json(c.changes);
    json_object_update(carried, changes);
    core_init(&core);
    assert_true(core_apply_json(&core, start, NULL, NULL, &err));
    json_auto_t *turn = data_json("{'v':1,'seq':2,'type':'turn_start','movement':'a','turn':1}");
    assert_false(core_apply_json(&core, turn, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "has not taken over"));
    bool ok = core_apply_json(&core, carried, NULL, NULL, &err);
    if (ok != (c.error == NULL) || (!ok && strstr(err.text, c.error) == NULL))
      fail_msg("%s: %s", c.changes, ok ? "taken" : err.text);
    assert_int_equal(core.carried, ok);
  }
}

TEST(nothing_follows_the_end_and_a_stop_is_resumed) {
  AUTO(play_deinit) struct play p;
  struct core core;
  struct err err = {0};
  play_log(&p);
  size_t n = play_lines(&p);
  play_fold_to(&p, &core, n);
  json_t *more = json_pack("{sI ss}", "seq", (json_int_t)n + 1, "type", "session_resume");
  assert_false(core_apply_json(&core, more, NULL, NULL, &err));
  assert_non_null(strstr(err.text, "nothing follows session_end"));
  json_decref(more);
  core_deinit(&core);
  play_fold_to(&p, &core, 2);
  more = data_json("{'seq':3,'type':'session_stop','reason':'signal'}");
  assert_true(core_apply_json(&core, more, NULL, NULL, &err));
  json_object_set_new(more, "seq", json_integer(4));
  assert_false(core_apply_json(&core, more, NULL, NULL, &err));
  assert_non_null(strstr(err.text, "goes on with session_resume"));
  json_object_set_new(more, "type", json_string("session_resume"));
  assert_true(core_apply_json(&core, more, NULL, NULL, &err));
  assert_int_equal(core.status, SESSION_RUNNING);
  json_decref(more);
  core_deinit(&core);
}

/* A budget of tokens is not made longer by a number that cannot be. */
TEST(tokens_that_cannot_be_count_as_the_most) {
  static const struct {
    const char *usage;
    int64_t tokens;
  } cases[] = {
      {"{'input':3,'output':5}", 8},
      {"{'input':3}", 3},
      {"{'input':3,'output':-5}", 3 + (1ll << 40)},
      {"{'input':-3,'output':5}", 5 + (1ll << 40)},
      {"{'input':1099511627777,'output':0}", 1ll << 40},
      {"{'input':0,'output':9223372036854775807}", 1ll << 40},
  };
  AUTO(play_deinit) struct play p;
  play_log(&p);
  size_t at = play_index(&p, "call_end", 0);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(core_deinit) struct core core;
    struct err err = {0};
    json_auto_t *record = json_deep_copy(play_record(&p, at));
    play_fold_to(&p, &core, at);
    json_object_set_new(record, "usage", data_json(cases[i].usage));
    assert_true(core_apply_json(&core, record, NULL, NULL, &err));
    assert_int_equal(core.turns->calls->tokens, cases[i].tokens);
  }
}

/* A log that was folded is decided on: that must hold too, whatever the log said. */
static void go_on(struct play *p, struct core *core) {
  AUTO(core_out_deinit) struct core_out out;
  struct event ev = play_event(p, EVENT_RESUME);
  ev.reason = "test";
  core_decide(core, &ev, &p->env, &out);
}

TEST(every_other_order_is_refused_or_survived) {
  AUTO(play_deinit) struct play p;
  size_t refused = 0;
  play_log(&p);
  size_t n = play_lines(&p);
  for (size_t at = 0; at < n; at++)
    for (size_t other = 0; other < n; other++) {
      AUTO(core_deinit) struct core core;
      struct err err = {0};
      json_auto_t *record = json_deep_copy(play_record(&p, other));
      json_object_set_new(record, "seq", json_integer((json_int_t)at + 1));
      play_fold_to(&p, &core, at);
      bool taken = core_apply_json(&core, record, NULL, NULL, &err);
      assert_true(taken || err.text[0] != '\0');
      assert_true(taken || other != at);
      if (taken)
        go_on(&p, &core);
      refused += !taken;
    }
  assert_true(refused > n * n / 2);
}

TEST(every_member_may_be_anything) {
  static const char *const values[] = {
      "null", "true", "0",  "-1",     "9223372036854775807", "1.5", "''",
      "'x'",  "[]",   "{}", "[null]", "{'ref':'1#/x'}"};
  AUTO(play_deinit) struct play p;
  play_log(&p);
  for (size_t at = 0; at < play_lines(&p); at++) {
    json_t *original = play_record(&p, at);
    JSON_MEMBERS(original, key, ignored) {
      for (size_t v = 0; v <= ARRAY_LEN(values); v++) {
        AUTO(core_deinit) struct core core;
        struct err err = {0};
        json_auto_t *record = json_deep_copy(original);
        if (v == ARRAY_LEN(values))
          json_object_del(record, key);
        else
          json_object_set_new(record, key, data_json(values[v]));
        play_fold_to(&p, &core, at);
        if (core_apply_json(&core, record, NULL, NULL, &err))
          go_on(&p, &core);
      }
    }
  }
}

TEST(no_turn_asks_its_judge_for_ever) {
  struct play p;
  struct core core;
  struct err err = {0};
  long call = 2, seq;
  play_log(&p);
  size_t at = play_index(&p, "call_start", 1);
  play_fold_to(&p, &core, at);
  seq = (long)at;
  for (;; call++) {
    json_t *start =
        json_pack("{sI ss sI sI si ss ss ss}", "seq", (json_int_t)++seq, "type", "call_start",
                  "turn", (json_int_t)1, "call", (json_int_t)call, "attempt", 1, "purpose", "judge",
                  "stage", "ai_judge", "provider", "sim");
    bool taken = core_apply_json(&core, start, NULL, NULL, &err);
    json_decref(start);
    if (!taken)
      break;
    json_t *end =
        json_pack("{sI ss sI sI si ss}", "seq", (json_int_t)++seq, "type", "call_end", "turn",
                  (json_int_t)1, "call", (json_int_t)call, "attempt", 1, "text", "?");
    assert_true(core_apply_json(&core, end, NULL, NULL, &err));
    json_decref(end);
    assert_true(call < 1000);
  }
  assert_non_null(strstr(err.text, "its stage asked often enough"));
  go_on(&p, &core);
  core_deinit(&core);
  play_deinit(&p);
}

TEST_GROUP(NULL, play_over)
