/* The pure core, event by event: a provider in memory, virtual time, the log as it would be. */
#include "base/memory.h"
#include "support/play.h"
#include "support/test.h"

static const char two_movements[] =
    "{'name':'w','movements':["
    "{'name':'fix','instruction':'Fix it.','rules':[{'condition':'done','next':'review'}]},"
    "{'name':'review','rules':[{'condition':'approved','next':'COMPLETE'},"
    "{'condition':'needs fix','next':'fix'},{'condition':'hopeless','next':'ABORT'}]}]}";

static const char tag_only[] =
    "{'name':'w','judge':{'stages':['phase1_tag']},'max_movements':%s,'movements':["
    "{'name':'a','rules':[{'condition':'go on','next':'a'},{'condition':'done','next':'COMPLETE'},"
    "{'condition':'no','next':'ABORT'}]}]}";

static void expect_types(const struct play *p, size_t from, const char *wanted) {
  char_auto_t *got = play_types(p, from);
  if (strcmp(got, wanted) != 0)
    fail_msg("%s:\n%s\nwanted\n%s", p->title, got, wanted);
}

static void expect_end(const struct play *p, enum session_outcome outcome) {
  const json_t *last = play_record(p, play_lines(p) - 1);
  bool stops =
      outcome == END_RULE_NO_MATCH || outcome == END_MAX_MOVEMENTS || outcome == END_FAILED;
  if (p->core.status != (stops ? SESSION_STOPPED : SESSION_ENDED) || p->core.outcome != outcome)
    fail_msg("%s: status %d, outcome %s", p->title, (int)p->core.status,
             session_outcome_name(p->core.outcome));
  assert_true(str_eq_c(data_get(last, "type"), stops ? "session_stop" : "session_end"));
  assert_true(
      str_eq_c(data_get(last, stops ? "reason" : "outcome"), session_outcome_name(outcome)));
  assert_int_equal(p->finished, 1);
}

static void expect_stop(const struct play *p, const char *reason, const char *class) {
  const json_t *last = play_record(p, play_lines(p) - 1);
  if (p->core.status != SESSION_STOPPED)
    fail_msg("%s: status %d", p->title, (int)p->core.status);
  assert_true(str_eq_c(data_get(last, "type"), "session_stop"));
  if (!str_eq_c(data_get(last, "reason"), reason) || !str_eq_c(data_get(last, "class"), class))
    fail_msg("%s: reason " STR_FMT ", class " STR_FMT, p->title, STR_ARG(data_get(last, "reason")),
             STR_ARG(data_get(last, "class")));
  assert_true(json_is_true(json_object_get(last, "resumable")));
}

/* The agent claims that all pass and its judge believes it; the exit status of the check before
 * does not, and the guard is about that. */
TEST(a_guard_catches_a_judge_that_believes) {
  static const char workflow[] =
      "{'name':'w','provider':'sim','max_movements':9,'movements':["
      "{'name':'check','command':['make'],'rules':[{'condition':'when(true)','next':'work'}]},"
      "{'name':'work','judge':{'stages':['structured_output']},'rules':["
      "{'condition':'done && when(last_exit == 0)','next':'COMPLETE'},"
      "{'condition':'done && when(last_exit != 0)','next':'check'},"
      "{'condition':'stuck','next':'ABORT'}]}]}";
  AUTO(play_deinit) struct play p;
  play_all(&p, "believes", workflow, NULL,
           "{'check':[{'text':'2 fail','exit':1},{'text':'ok','exit':0}],'work':'All pass.',"
           "'work/structured_output':{'structured':{'step':1,'reason':'It says so.'}}}");
  expect_end(&p, END_COMPLETE);
  const json_t *first = play_find(&p, "judgment", 1), *second = play_find(&p, "judgment", 3);
  assert_int_equal(json_integer_value(json_object_get(first, "rule")), 2);
  assert_int_equal(json_integer_value(json_object_get(second, "rule")), 1);
}

TEST(a_judgment_says_who_judged) {
  AUTO(play_deinit) struct play p;
  char sha256[SHA256_HEX];
  play_all(&p, "who", two_movements, NULL,
           "{'fix':'I did it.','review':'fine','review/structured_output':"
           "{'structured':{'step':0,'reason':'r'},'tokens':7},'review/phase3_tag':"
           "[{'error':'overloaded','message':'later'},{'text':'[REVIEW:1]','tokens':5}]}");
  const json_t *judgment = play_find(&p, "judgment", 1), *stage = play_find(&p, "stage", 2);
  const json_t *start = play_find(&p, "call_start", 3);
  assert_true(str_eq_c(data_get(stage, "stage"), "phase3_tag"));
  assert_true(str_eq_c(data_get(stage, "provider"), "sim"));
  assert_int_equal(json_integer_value(json_object_get(json_object_get(stage, "usage"), "output")),
                   5);
  assert_true(
      json_equal(json_object_get(stage, "prompt_sha256"), json_object_get(start, "prompt_sha256")));
  assert_true(str_eq_c(data_get(judgment, "provider"), "sim"));
  assert_true(json_equal(json_object_get(judgment, "prompt_sha256"),
                         json_object_get(start, "prompt_sha256")));
  assert_int_equal(
      json_integer_value(json_object_get(json_object_get(judgment, "usage"), "output")), 12);
  buf_auto_t prompt = {0};
  JSON_EACH(json_object_get(start, "prompt"), i, part) {
    struct str place = data_get(part, "ref");
    buf_str(&prompt, place.n > 0 ? play_place(&p, place.p) : data_str(part));
  }
  const char *line = memmem(prompt.p, prompt.n, LIT("\n----- "));
  assert_non_null(line);
  char fence[17];
  buf_auto_t bare = {0};
  print_into(fence, sizeof fence, "%.16s", line + strlen("\n----- "));
  for (const char *at = prompt.p, *next = at; next != NULL; at = next + strlen(fence)) {
    next = strstr(at, fence);
    buf_append(&bare, at, next ? (size_t)(next - at) : strlen(at));
    if (next == NULL)
      break;
  }
  sha256_hex(bare.p, bare.n, NULL, 0, sha256); /* without what is new for each turn */
  assert_true(str_eq_c(data_get(start, "prompt_sha256"), sha256));
}

TEST(a_session_from_start_to_end) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "whole", two_movements, NULL,
           "{'fix':'I did it.','review':['Two fail. [REVIEW:1]','fine'],"
           "'review/structured_output':[{'structured':{'step':2,'reason':'two fail'}},"
           "'{\\'reason\\':\\'all pass\\',\\'step\\':1}']}");
  expect_end(&p, END_COMPLETE);
  expect_types(&p, 0,
               "session_start "
               "turn_start call_start call_end stage judgment turn_end "
               "turn_start call_start call_end call_start call_end stage judgment turn_end "
               "turn_start call_start call_end stage judgment turn_end "
               "turn_start call_start call_end call_start call_end stage judgment turn_end "
               "session_end");
  const json_t *judgment = play_find(&p, "judgment", 1);
  assert_int_equal(json_integer_value(json_object_get(judgment, "rule")), 2);
  assert_true(str_eq_c(data_get(judgment, "movement"), "review"));
  assert_true(str_eq_c(data_get(judgment, "condition"), "needs fix"));
  assert_true(str_eq_c(data_get(judgment, "next"), "fix"));
  assert_true(str_eq_c(data_get(judgment, "tag"), "[REVIEW:2]"));
  assert_true(str_eq_c(data_get(judgment, "method"), "structured_output"));
  assert_int_equal(json_array_size(json_object_get(judgment, "stages")), 1);
  const json_t *turn = play_find(&p, "turn_start", 2);
  assert_int_equal(json_integer_value(json_object_get(turn, "iteration")), 3);
  assert_int_equal(json_integer_value(json_object_get(turn, "movement_iteration")), 2);
  const json_t *end = play_find(&p, "session_end", 0);
  json_auto_t *methods = data_json("{'auto_select':2,'structured_output':2}");
  assert_true(json_equal(json_object_get(end, "methods"), methods));
}

struct end_case {
  const char *title, *workflow, *script;
  enum session_outcome outcome;
  const char *message; /* a piece of session_end's, or NULL */
};

#define ONE(rules)                                                                                 \
  "{'name':'w','judge':{'stages':['phase1_tag']},'movements':[{'name':'a','rules':[" rules "]}]}"

static const struct end_case end_cases[] = {
    {"complete", ONE("{'condition':'done','next':'COMPLETE'}"), "{'a':'x'}", END_COMPLETE, NULL},
    {"abort", ONE("{'condition':'done','next':'ABORT'}"), "{'a':'x'}", END_ABORT, NULL},
    {"no rule", ONE("{'condition':'x','next':'ABORT'},{'condition':'y','next':'COMPLETE'}"),
     "{'a':'no tag'}", END_RULE_NO_MATCH, "no stage named a rule"},
    {"a guard", ONE("{'condition':'x && when(exit == 0)','next':'COMPLETE'}"),
     "{'a':{'text':'x','exit':3}}", END_RULE_NO_MATCH, "its guard"},
    {"an expression", ONE("{'condition':'when(exit == 0)','next':'COMPLETE'}"), "{'a':'no exit'}",
     END_FAILED, "exit == 0"},
    {"its own value", ONE("{'condition':'when(structured.a.ok)','next':'COMPLETE'}"),
     "{'a':{'text':'x','structured':{'ok':true}}}", END_COMPLETE, NULL},
    {"the value of an earlier run of its own",
     ONE("{'condition':'when(iteration == 1)','next':'a'},"
         "{'condition':'when(structured.a.ok)','next':'COMPLETE'}"),
     "{'a':[{'text':'x','structured':{'ok':true}},'plain']}", END_FAILED, "structured.a.ok"},
    {"an exit status", ONE("{'condition':'when(exit == 3)','next':'COMPLETE'}"),
     "{'a':{'text':'x','exit':3}}", END_COMPLETE, NULL},
};

TEST(ways_to_end) {
  for (size_t i = 0; i < ARRAY_LEN(end_cases); i++) {
    const struct end_case *c = &end_cases[i];
    AUTO(play_deinit) struct play p;
    play_all(&p, c->title, c->workflow, NULL, c->script);
    expect_end(&p, c->outcome);
    if (c->message && strstr(buf_c(&p.core.stop_message), c->message) == NULL)
      fail_msg("%s: %s", c->title, buf_c(&p.core.stop_message));
  }
}

TEST(the_value_of_an_earlier_movement) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "values",
           "{'name':'w','movements':[{'name':'a','rules':[{'condition':'x','next':'b'}]},"
           "{'name':'b','rules':[{'condition':'when(structured.a.n == 2 && iteration == 2)',"
           "'next':'COMPLETE'}]}]}",
           NULL, "{'a':{'text':'x','structured':{'n':2}},'b':'y'}");
  expect_end(&p, END_COMPLETE);
}

TEST(max_movements_is_checked_before_a_movement) {
  static const struct {
    const char *max, *script;
    enum session_outcome outcome;
    int turns;
  } cases[] = {
      {"1", "{'a':'[A:1]'}", END_MAX_MOVEMENTS, 1},
      {"3", "{'a':'[A:1]'}", END_MAX_MOVEMENTS, 3},
      {"1", "{'a':'[A:2]'}", END_COMPLETE, 1},
      {"2", "{'a':['[A:1]','[A:2]']}", END_COMPLETE, 2},
      {"2", "{'a':['[A:1]','[A:3]']}", END_ABORT, 2},
      {"'infinite'",
       "{'a':['[A:1]','[A:1]','[A:1]','[A:1]','[A:1]','[A:1]','[A:1]','[A:1]','[A:1]','[A:1]',"
       "'[A:1]','[A:2]']}",
       END_COMPLETE, 12},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(play_deinit) struct play p;
    char workflow[512];
    const char *at = strstr(tag_only, "%s");
    print_into(workflow, sizeof workflow, "%.*s%s%s", (int)(at - tag_only), tag_only, cases[i].max,
               at + 2);
    play_all(&p, cases[i].script, workflow, NULL, cases[i].script);
    expect_end(&p, cases[i].outcome);
    assert_int_equal(play_count(&p, "turn_start"), cases[i].turns);
    assert_int_equal(play_count(&p, "turn_end"), cases[i].turns);
    if (cases[i].outcome == END_MAX_MOVEMENTS)
      assert_non_null(strstr(buf_c(&p.core.stop_message), "\"a\" would have been next"));
  }
}

struct retry_case {
  const char *title, *replies;
  int attempts;
  const char *class; /* of the stop; NULL: it completes */
};

#define FAIL(class) "{'error':'" class "','message':'no'}"

static const struct retry_case retry_cases[] = {
    {"once", "[" FAIL("network") ",'ok']", 2, NULL},
    {"three times", "[" FAIL("network") "," FAIL("overloaded") "," FAIL("rate_limit") ",'ok']", 4,
     NULL},
    {"the budget", FAIL("network"), LIMIT_CALL_ATTEMPT_COUNT, "network"},
    {"rate limit for ever", FAIL("rate_limit"), LIMIT_CALL_ATTEMPT_COUNT, "rate_limit"},
    {"a wait of hours", "[{'error':'rate_limit','message':'no','retry_after_ms':18000000},'ok']", 2,
     NULL},
    {"a wait of a week and more",
     "[{'error':'rate_limit','message':'no','retry_after_ms':691200000},'ok']", 2, NULL},
    {"a wait that is too long",
     "[{'error':'rate_limit','message':'no','retry_after_ms':691200001},'ok']", 1, "rate_limit"},
    {"then something worse", "[" FAIL("network") "," FAIL("crashed") ",'ok']", 2, "crashed"},
    {"auth", "[" FAIL("auth") ",'ok']", 1, "auth"},
    {"quota", "[" FAIL("quota") ",'ok']", 1, "quota"},
    {"timeout", "[" FAIL("timeout") ",'ok']", 1, "timeout"},
    {"refused", "[" FAIL("refused") ",'ok']", 1, "refused"},
    {"length", "[" FAIL("length") ",'ok']", 1, "length"},
    {"bad_request", "[" FAIL("bad_request") ",'ok']", 1, "bad_request"},
    {"not_found", "[" FAIL("not_found") ",'ok']", 1, "not_found"},
    {"crashed", "[" FAIL("crashed") ",'ok']", 1, "crashed"},
    {"protocol", "[" FAIL("protocol") ",'ok']", 2, NULL},
    {"protocol for ever", FAIL("protocol"), LIMIT_SILENT_ATTEMPT_COUNT, "protocol"},
    {"an empty answer", "['','ok']", 2, NULL},
    {"white space for an answer", "[' \\n','ok']", 2, NULL},
    {"reasoning for an answer", "['<think>fine</think>\\n','ok']", 2, NULL},
    {"nothing but empty answers", "['','','ok']", 2, "protocol"},
    {"cancelled", "[" FAIL("cancelled") ",'ok']", 1, "cancelled"},
};

TEST(errors_are_retried_by_class) {
  for (size_t i = 0; i < ARRAY_LEN(retry_cases); i++) {
    const struct retry_case *c = &retry_cases[i];
    AUTO(play_deinit) struct play p;
    char script[512];
    print_into(script, sizeof script, "{'a':%s}", c->replies);
    play_all(&p, c->title, ONE("{'condition':'done','next':'COMPLETE'}"),
             "{'default_provider':'sim','wait_for_outage':false}", script);
    if (c->class)
      expect_stop(&p, "provider_error", c->class);
    else
      expect_end(&p, END_COMPLETE);
    if (play_count(&p, "call_start") != c->attempts)
      fail_msg("%s: %d attempts", c->title, play_count(&p, "call_start"));
  }
}

/* Who is asked, in order: providers of the call_start records. */
static void expect_providers(const struct play *p, const char *wanted) {
  buf_auto_t got = {0};
  for (int i = 0; i < play_count(p, "call_start"); i++)
    buf_printf(&got, "%s" STR_FMT, i ? " " : "",
               STR_ARG(data_get(play_find(p, "call_start", i), "provider")));
  if (strcmp(buf_c(&got), wanted) != 0)
    fail_msg("%s: %s, wanted %s", p->title, buf_c(&got), wanted);
}

static const struct {
  const char *title, *providers, *config, *replies, *asked;
  const char *class; /* of the stop; NULL: it completes */
} fallback_cases[] = {
    {"no money", "'provider':'sim','fallback':['other']", NULL, "[" FAIL("quota") ",'ok']",
     "sim other", NULL},
    {"empty answers", "'provider':'sim','fallback':['other']", NULL, "['',' ','ok']",
     "sim sim other", NULL},
    {"down for long", "'provider':'sim','fallback':['other']", NULL,
     "[" FAIL("overloaded") "," FAIL("overloaded") "," FAIL("overloaded") "," FAIL(
         "overloaded") ",'ok']",
     "sim sim sim sim other", NULL},
    {"limited for hours", "'provider':'sim','fallback':['other']", NULL,
     "[{'error':'rate_limit','message':'no','retry_after_ms':18000000},'ok']", "sim other", NULL},
    {"one after the other", "'provider':'sim','fallback':['other','third']", NULL,
     "[" FAIL("auth") "," FAIL("not_found") ",'ok']", "sim other third", NULL},
    {"all of them", "'provider':'sim','fallback':['other']", NULL,
     "[" FAIL("auth") "," FAIL("quota") ",'ok']", "sim other", "quota"},
    {"new attempts at the next", "'provider':'sim','fallback':['other']", NULL,
     "[" FAIL("crashed") "," FAIL("network") "," FAIL("network") ",'ok']", "sim other other other",
     NULL},
    {"what the request brought about", "'provider':'sim','fallback':['other']", NULL,
     "[" FAIL("refused") ",'ok']", "sim", "refused"},
    {"the user's list", "'provider':'sim'", "{'fallback':{'sim':['third']}}",
     "[" FAIL("quota") ",'ok']", "sim third", NULL},
    {"the file's list goes first", "'provider':'sim','fallback':['other']",
     "{'fallback':{'sim':['third']}}", "[" FAIL("quota") ",'ok']", "sim other", NULL},
    {"who is named twice is asked once", "'provider':'sim'",
     "{'fallback':{'sim':['other','sim','other','third']}}",
     "[" FAIL("quota") "," FAIL("quota") "," FAIL("quota") ",'ok']", "sim other third", "quota"},
    {"a flag leaves the file's list", "'provider':'sim','fallback':['other']",
     "{'provider':'third'}", "[" FAIL("quota") ",'ok']", "third", "quota"},
};

TEST(another_provider_takes_over) {
  for (size_t i = 0; i < ARRAY_LEN(fallback_cases); i++) {
    AUTO(play_deinit) struct play p;
    char script[512], workflow[512];
    print_into(script, sizeof script, "{'a':%s}", fallback_cases[i].replies);
    print_into(workflow, sizeof workflow,
               "{'name':'w',%s,'options':{'seed':7,'effort':'high'},'model':'m','movements':[{"
               "'name':'a','rules':[{'condition':'done','next':'COMPLETE'}]}]}",
               fallback_cases[i].providers);
    play_all(&p, fallback_cases[i].title, workflow, fallback_cases[i].config, script);
    expect_providers(&p, fallback_cases[i].asked);
    if (fallback_cases[i].class)
      expect_stop(&p, "provider_error", fallback_cases[i].class);
    else
      expect_end(&p, END_COMPLETE);
  }
}

/* Once taken over, a provider is asked again when its cooldown is over, and by a resume. */
TEST(a_provider_taken_over_stays_behind) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "behind",
           "{'name':'w','provider':'sim','fallback':['other'],'judge':{'stages':["
           "'structured_output']},'movements':[{'name':'a','rules':[{'condition':'again','next':"
           "'a'},{'condition':'done','next':'COMPLETE'}]}]}",
           NULL,
           "{'a':[" FAIL("auth") ",'one','two'],'a/structured_output':[{'structured':{'step':1,"
                                 "'reason':'r'}},{'structured':{'step':2,'reason':'r'}}]}");
  expect_providers(&p, "sim other other other other");
  expect_end(&p, END_COMPLETE);
}

TEST(a_fallback_gets_what_it_takes) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "taken",
           "{'name':'w','provider':'sim','fallback':['third'],'model':'m','options':{'seed':7,"
           "'effort':'high'},'movements':[{'name':'a','rules':[{'condition':'done',"
           "'next':'COMPLETE'}]}]}",
           "{'provider_models':{'third':'small'}}", "{'a':[" FAIL("quota") ",'ok']}");
  const json_t *second = play_find(&p, "call_start", 1);
  json_auto_t *seed = data_json("{'seed':7}");
  assert_true(str_eq_c(data_get(second, "model"), "small"));
  assert_true(json_equal(json_object_get(second, "options"), seed));
  assert_int_equal(json_integer_value(json_object_get(second, "attempt")), 2);
  assert_non_null(json_object_get(second, "prompt_of"));
  assert_true(str_eq_c(data_get(play_find(&p, "call_end", 0), "fallback"), "third"));
}

/* When nobody could answer, a resume asks the first again, with its own model and options. */
TEST(a_resume_begins_with_the_first) {
  AUTO(play_deinit) struct play p;
  play_init(
      &p, "resume",
      "{'name':'w','provider':'sim','fallback':['other','third'],'model':'m','options':{'seed':7},"
      "'movements':[{'name':'a','rules':[{'condition':'done','next':'COMPLETE'}]}]}",
      NULL, "{'a':[" FAIL("quota") "," FAIL("quota") "," FAIL("quota") "," FAIL("quota") ",'ok']}");
  play_to_end(&p);
  expect_stop(&p, "provider_error", "quota");
  play_send_and_run(&p, EVENT_RESUME, "resume", NULL);
  expect_providers(&p, "sim other third sim other");
  const json_t *again = play_find(&p, "call_start", 3);
  assert_true(str_eq_c(data_get(again, "model"), "m"));
  assert_true(json_equal(json_object_get(again, "options"),
                         json_object_get(play_find(&p, "call_start", 0), "options")));
  assert_null(json_object_get(play_find(&p, "call_start", 1), "options"));
  assert_non_null(json_object_get(play_find(&p, "call_start", 2), "options")); /* it takes a seed */
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

TEST(nobody_takes_over_a_command) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "command",
           "{'name':'w','movements':[{'name':'a','command':['make'],"
           "'rules':[{'condition':'when(exit == 0)','next':'COMPLETE'}]}]}",
           "{'fallback':{'command':['sim']}}", "{'a':[" FAIL("not_found") "]}");
  expect_providers(&p, "command");
  expect_stop(&p, "provider_error", "not_found");
}

static const json_t *session_of(const struct play *p, int k) {
  return json_object_get(play_find(p, "call_start", k), "session");
}

static const char sessions_workflow[] =
    "{'name':'w','max_movements':4,'judge':{'stages':['phase1_tag']},'movements':[{'name':'a',%s"
    "'rules':[{'condition':'again','next':'a'},{'condition':'done','next':'COMPLETE'}]}]}";

TEST(a_conversation_goes_on) {
  struct play p;
  char workflow[512];
  print_into(workflow, sizeof workflow, sessions_workflow, "");
  play_all(&p, "continue", workflow, NULL,
           "{'a':[{'text':'[A:1]','session':'s1'},{'error':'not_found','message':'gone'},"
           "{'text':'[A:1]','session':'s2'},'[A:2]']}");
  expect_end(&p, END_COMPLETE);
  assert_null(session_of(&p, 0)); /* there was none */
  assert_true(str_eq_c(data_get(session_of(&p, 1), "id"), "s1"));
  assert_true(json_is_true(json_object_get(session_of(&p, 1), "resumed")));
  assert_true(json_is_false(json_object_get(session_of(&p, 2), "resumed"))); /* lost: once more */
  assert_non_null(strstr(data_get(session_of(&p, 2), "reason").p, "lost"));
  assert_true(str_eq_c(data_get(session_of(&p, 3), "id"), "s2"));
  assert_int_equal(play_count(&p, "call_start"), 4);
  play_deinit(&p);

  print_into(workflow, sizeof workflow, sessions_workflow, "'session':'refresh',");
  play_all(&p, "refresh", workflow, NULL, "{'a':[{'text':'[A:1]','session':'s1'},'[A:2]']}");
  assert_true(json_is_false(json_object_get(session_of(&p, 1), "resumed")));
  assert_non_null(strstr(data_get(session_of(&p, 1), "reason").p, "refresh"));
  play_deinit(&p);
}

TEST(conversations_are_shared_by_key) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "keys",
           "{'name':'w','movements':["
           "{'name':'a','session_key':'k','rules':[{'condition':'on','next':'b'}]},"
           "{'name':'b','rules':[{'condition':'on','next':'c'}]},"
           "{'name':'c','session_key':'k','rules':[{'condition':'on','next':'d'}]},"
           "{'name':'d','session_key':'k','provider':'other',"
           "'rules':[{'condition':'on','next':'COMPLETE'}]}]}",
           NULL, "{'a':{'text':'x','session':'s1'},'b':'x','c':'x','d':'x'}");
  expect_end(&p, END_COMPLETE);
  assert_null(session_of(&p, 1));
  assert_true(str_eq_c(data_get(session_of(&p, 2), "id"), "s1"));
  assert_null(session_of(&p, 3)); /* another provider's conversation is none */
}

TEST(a_repeat_after_a_crash_resumes) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "crash", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, "{'a':'ok'}");
  play_start(&p);
  json_auto_t *id = json_pack("{ss}", "provider_session", "abc");
  struct event ev = play_event(&p, EVENT_CALL_NEWS);
  ev.call = 1;
  ev.news_kind = "session";
  ev.news = id;
  play_decide(&p, &ev);
  play_commit(&p);
  play_crash(&p, 0);
  play_send(&p, EVENT_RESUME, "crash", NULL);
  assert_true(str_eq_c(data_get(session_of(&p, 1), "id"), "abc"));
  assert_int_equal(json_integer_value(json_object_get(play_find(&p, "call_start", 1), "repeats")),
                   1);
  play_run(&p);
  expect_end(&p, END_COMPLETE);
}

/* Work done before an error is not done twice. */
TEST(a_retry_goes_on_with_its_conversation) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "retry", ONE("{'condition':'done','next':'COMPLETE'}"), NULL,
            "{'a':[{'error':'overloaded','message':'no'},'ok']}");
  play_start(&p);
  json_auto_t *id = json_pack("{ss}", "provider_session", "abc");
  struct event ev = play_event(&p, EVENT_CALL_NEWS);
  ev.call = 1;
  ev.news_kind = "session";
  ev.news = id;
  play_decide(&p, &ev);
  play_commit(&p);
  play_run(&p);
  expect_end(&p, END_COMPLETE);
  assert_true(str_eq_c(data_get(session_of(&p, 1), "id"), "abc"));
}

static void admit(struct play *p, enum admission_answer answer, const char *reason,
                  int64_t until_ms) {
  struct event ev = play_event(p, EVENT_ADMISSION);
  ev.call = 1;
  ev.admission = answer;
  ev.reason = reason;
  ev.until_ms = until_ms;
  play_decide(p, &ev);
  play_commit(p);
}

/* wait_for_reset: off */
TEST(a_limit_of_hours_can_stop) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "no wait", two_movements, "{'default_provider':'sim','wait_for_reset':false}",
           "{'fix':[{'error':'rate_limit','message':'no','retry_after_ms':3600000},'ok']}");
  expect_stop(&p, "provider_error", "rate_limit");
}

TEST(the_hosts_answers_are_records) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "admission",
            "{'name':'w','provider':'sim','fallback':['other'],'movements':[{'name':'a','rules':[{"
            "'condition':'done','next':'COMPLETE'}]}]}",
            NULL, "{'a':'ok'}");
  play_start(&p);
  admit(&p, ADMISSION_WAIT, "cooldown", p.now_ms + 1000);
  const json_t *record = play_find(&p, "admission", 0);
  assert_true(str_eq_c(data_get(record, "answer"), "wait"));
  assert_true(str_eq_c(data_get(record, "reason"), "cooldown"));
  assert_int_equal(data_get(record, "until").n, 24);
  p.pending_count = 0; /* what the effect of the first start had begun */
  admit(&p, ADMISSION_FALLBACK, "cooldown", 0);
  assert_true(str_eq_c(data_get(play_find(&p, "admission", 1), "fallback"), "other"));
  expect_providers(&p, "sim other");
  play_run(&p);
  expect_end(&p, END_COMPLETE);
  size_t lines = play_lines(&p);
  admit(&p, ADMISSION_ADMITTED, NULL, 0); /* too late */
  assert_int_equal(play_lines(&p), lines);
}

TEST(waits_grow_and_a_named_one_is_kept) {
  AUTO(play_deinit) struct play p;
  int64_t waited = 0;
  play_init(&p, "waits", ONE("{'condition':'done','next':'COMPLETE'}"),
            "{'default_provider':'sim','wait_for_outage':false}",
            "{'a':[" FAIL("network") "," FAIL(
                "network") ","
                           "{'error':'rate_limit','message':'no','retry_after_ms':7000},'ok']}");
  int64_t start = p.now_ms;
  play_to_end(&p);
  for (int i = 0, base = LIMIT_RETRY_BASE_MS; i < 3; i++, base *= 2) {
    const json_t *end = play_find(&p, "call_end", i);
    json_int_t wait = json_integer_value(json_object_get(end, "retry_in_ms"));
    waited += wait;
    if (i < 2)
      assert_true(wait >= base / 2 && wait <= base);
    else
      assert_int_equal(wait, 7000);
    assert_int_equal(json_integer_value(json_object_get(end, "attempt")), i + 1);
  }
  assert_true(p.now_ms - start >= waited);
  expect_end(&p, END_COMPLETE);
}

/* --- outages: a provider that is away is waited for by time --- */

/* For how long, from the first call that meets it, whom. */
struct outage {
  const char *provider, *class;
  int64_t from_ms, ms, retry_after_ms;
  const char *key; /* it begins with the first call of that purpose or movement; NULL: any */
};

static void outage_reply(struct play *p, const struct call_request *request,
                         struct call_result *out) {
  struct outage *o = p->ctx;
  bool meets = o->key == NULL || str_eq_c(request->movement, o->key) ||
               (request->purpose == PURPOSE_JUDGE && strcmp(o->key, "judge") == 0);
  if (meets && o->from_ms == 0)
    o->from_ms = p->now_ms;
  out->duration_ms = 1;
  if (meets && p->now_ms - o->from_ms < o->ms && str_eq_c(request->provider, o->provider)) {
    (void)error_class_from_name(str_from(o->class), &out->class);
    print_into(out->message, sizeof out->message, "away");
    out->retry_after_ms = o->retry_after_ms;
    return;
  }
  buf_puts(&out->text.bytes, request->purpose == PURPOSE_EXECUTE ? "worked, I think.\n[A:1]" : "x");
  if (request->schema != NULL && request->purpose == PURPOSE_JUDGE)
    out->structured = json_pack("{si ss}", "step", 1, "reason", "so");
}

static bool has_answered(void *ctx, struct str provider) {
  (void)ctx;
  return str_eq_c(provider, "sim");
}

static void outage_play(struct play *p, const char *title, const char *workflow, const char *config,
                        struct outage *o, bool known) {
  play_init(p, title, workflow, config, NULL);
  p->reply = outage_reply;
  p->ctx = o;
  if (known)
    p->env.has_answered = has_answered;
}

/* Time of the k-th record of a type. */
static int64_t time_of(const struct play *p, const char *type, int k) {
  int64_t ms = 0;
  assert_true(record_time_parse(data_get(play_find(p, type, k), "ts").p, &ms));
  return ms;
}

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };
#define MOST(time) "{'default_provider':'sim','wait_for_outage':'" time "'}"

static const struct {
  const char *title, *class, *config;
  bool known;
  int64_t away_ms, retry_after_ms;
  int64_t waits_ms; /* until it stops; 0: it completes */
} outage_cases[] = {
    {"40 s, never answered", "overloaded", NULL, false, 40 * SECOND, 0, 0},
    {"59 s, never answered", "network", NULL, false, 59 * SECOND, 0, 0},
    {"for ever, never answered", "network", NULL, false, 600 * MINUTE, 0, MINUTE},
    {"14 min", "overloaded", NULL, true, 14 * MINUTE, 0, 0},
    {"5 hours", "rate_limit", NULL, true, 5 * HOUR, 0, 0},
    {"for ever", "rate_limit", NULL, true, 600 * MINUTE, 0, 6 * HOUR},
    {"a time named, again and again", "rate_limit", NULL, true, 600 * MINUTE, 1000, 6 * HOUR},
    {"a time named, for a while", "overloaded", NULL, true, 10 * MINUTE, 90 * SECOND, 0},
    {"a bound of the user's", "network", MOST("20m"), true, 600 * MINUTE, 0, 20 * MINUTE},
    {"a short one", "network", MOST("7s"), false, 600 * MINUTE, 0, 7 * SECOND},
    {"a long one, never answered", "network", MOST("8h"), false, 600 * MINUTE, 0, MINUTE},
    {"a long one", "network", MOST("8h"), true, 600 * MINUTE, 0, 8 * HOUR},
};

TEST(an_outage_is_waited_for_by_time) {
  for (size_t i = 0; i < ARRAY_LEN(outage_cases); i++) {
    AUTO(play_deinit) struct play p;
    struct outage o = {
        "sim", outage_cases[i].class, 0, outage_cases[i].away_ms, outage_cases[i].retry_after_ms,
        NULL};
    outage_play(&p, outage_cases[i].title, ONE("{'condition':'done','next':'COMPLETE'}"),
                outage_cases[i].config, &o, outage_cases[i].known);
    play_to_end(&p);
    int tries = play_count(&p, "call_end");
    if (outage_cases[i].waits_ms == 0) {
      expect_end(&p, END_COMPLETE);
      assert_true(p.now_ms - o.from_ms < outage_cases[i].away_ms + 6 * MINUTE);
    } else {
      expect_stop(&p, "provider_error", outage_cases[i].class);
      int64_t waited = time_of(&p, "call_end", -1) - o.from_ms, named = 3 * o.retry_after_ms;
      if (waited < outage_cases[i].waits_ms || waited > outage_cases[i].waits_ms + named + SECOND)
        fail_msg("%s: it was waited for %ld ms", p.title, (long)waited);
    }
    if (tries < 3 || tries > 10 + outage_cases[i].away_ms / MINUTE)
      fail_msg("%s: %d attempts", p.title, tries);
  }
}

TEST(pauses_of_an_outage_grow) {
  AUTO(play_deinit) struct play p;
  struct outage o = {"sim", "network", 0, 600 * MINUTE, 0, NULL};
  outage_play(&p, "pauses", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
  play_to_end(&p);
  int64_t began = time_of(&p, "call_end", 0), base = LIMIT_OUTAGE_PAUSE_MS, at = 0;
  int last = play_count(&p, "call_end") - 1;
  for (int i = 0; i < last; i++) {
    const json_t *end = play_find(&p, "call_end", i), *outage = json_object_get(end, "outage");
    json_int_t pause = json_integer_value(json_object_get(end, "retry_in_ms"));
    assert_true(pause <= base && (pause >= base / 2 || i == last - 1));
    assert_true(str_eq_c(data_get(outage, "provider"), "sim"));
    assert_int_equal(json_integer_value(json_object_get(outage, "tries")), i + 1);
    assert_true(record_time_parse(data_get(outage, "since").p, &at));
    assert_int_equal(at, began);
    assert_true(record_time_parse(data_get(outage, "until").p, &at));
    assert_int_equal(at, began + 6 * HOUR);
    base = base * 2 < LIMIT_OUTAGE_MAX_MS ? base * 2 : LIMIT_OUTAGE_MAX_MS;
  }
  assert_null(json_object_get(play_find(&p, "call_end", -1), "outage"));
}

/* A provider that answered in this session is waited for longer than a minute. An attempt that
 * failed in an outage is none of the call's: a silent answer after it is asked for once more. */
TEST(an_answer_in_the_log_makes_a_provider_known) {
  struct play p;
  struct outage o = {"sim", "overloaded", 0, 30 * MINUTE, 0, "review"};
  outage_play(&p, "known", two_movements, NULL, &o, false);
  play_to_end(&p);
  assert_true(p.core.status == SESSION_ENDED);
  assert_true(play_count(&p, "call_end") > 8);
  play_deinit(&p);
  play_all(&p, "silent", ONE("{'condition':'done','next':'COMPLETE'}"), NULL,
           "{'a':[" FAIL("network") "," FAIL("network") "," FAIL("network") "," FAIL(
               "network") ",'','ok']}");
  expect_end(&p, END_COMPLETE);
  play_deinit(&p);
}

TEST(another_provider_takes_over_an_outage_at_once) {
  static const char flow[] = "{'name':'w','provider':'sim','fallback':['other'],'movements':[{"
                             "'name':'a','rules':[{'condition':'done','next':'COMPLETE'}]}]}";
  struct play p;
  struct outage o = {"sim", "network", 0, 600 * MINUTE, 0, NULL};
  outage_play(&p, "takes over", flow, NULL, &o, true);
  play_to_end(&p);
  expect_end(&p, END_COMPLETE);
  expect_providers(&p, "sim sim sim sim other");
  assert_true(p.now_ms - o.from_ms < 5 * SECOND);
  play_deinit(&p);
  play_init(
      &p, "the last one is waited for", flow, NULL,
      "{'a':[" FAIL("auth") "," FAIL("network") "," FAIL("network") "," FAIL("network") ",'ok']}");
  play_to_end(&p);
  expect_end(&p, END_COMPLETE);
  expect_providers(&p, "sim other other other other");
  assert_int_equal(p.core.turn_count, 1);
  assert_true(p.now_ms - time_of(&p, "call_end", 0) > 3 * LIMIT_OUTAGE_PAUSE_MS);
  play_deinit(&p);
}

/* While a judge is away no other stage is tried, and the agent's own tag decides nothing; once it
 * was waited for in vain, the stages behind it do not wait again. */
TEST(a_judges_stage_waits_as_well) {
  static const char flow[] =
      "{'name':'w','provider':'sim','movements':[{'name':'a','judge':{'provider':'other','own_tag':"
      "true},"
      "'rules':[{'condition':'done','next':'COMPLETE'},{'condition':'not','next':'ABORT'}]}]}";
  for (int longer = 0; longer < 2; longer++) {
    AUTO(play_deinit) struct play p;
    struct outage o = {"other", "overloaded", 0, longer ? 600 * MINUTE : 50 * SECOND, 0, "judge"};
    outage_play(&p, longer ? "in vain" : "in time", flow, NULL, &o, true);
    play_to_end(&p);
    expect_end(&p, END_COMPLETE);
    const json_t *judgment = play_find(&p, "judgment", 0);
    if (!longer) {
      assert_true(str_eq_c(data_get(judgment, "method"), "structured_output"));
      assert_int_equal(play_count(&p, "stage"), 1);
    } else {
      assert_true(str_eq_c(data_get(judgment, "method"), "phase1_tag"));
      assert_true(time_of(&p, "stage", 1) - o.from_ms >= MINUTE);
      assert_true(p.now_ms - time_of(&p, "stage", 1) < 30 * SECOND);
    }
  }
}

/* Runs until an outage has had so many attempts. */
static void run_into_outage(struct play *p, int tries) {
  play_start(p);
  while (play_count(p, "call_end") < tries) {
    play_decide_next(p);
    play_commit(p);
  }
}

/* Tells call 1 what the host's gate says. */
static void gate_says(struct play *p, enum admission_answer answer, const char *class,
                      const struct event_away *away) {
  struct event ev = play_event(p, EVENT_ADMISSION);
  ev.call = 1;
  ev.admission = answer;
  ev.reason = class;
  ev.away = *away;
  play_decide(p, &ev);
  play_commit(p);
}

static void call_fails(struct play *p, enum error_class class, const struct event_away *away) {
  AUTO(call_result_deinit) struct call_result result = {.class = class};
  struct event ev = play_event(p, EVENT_CALL_END);
  print_into(result.message, sizeof result.message, "away");
  ev.call = 1;
  ev.result = &result;
  ev.away = *away;
  play_decide(p, &ev);
  play_commit(p);
}

/* A call that meets a shut gate is told since when it is shut, has all of its own time, and loses
 * none of it when nobody waits or the clock is set: the host's own clock counts. */
TEST(a_wait_behind_others_is_the_calls_own) {
  static const int64_t jumps[] = {0, -24 * HOUR, 8 * HOUR};
  for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
    struct play p;
    struct outage o = {"sim", "network", 0, 0, 0, NULL};
    int64_t since = 0, until = 0, waited = 5 * HOUR;
    outage_play(&p, "behind others", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
    play_start(&p);
    p.pending_count = 0; /* the call is not sent */
    int64_t began = p.now_ms;
    const struct event_away shut = {.since_ms = began - HOUR, .tries = 9};
    gate_says(&p, ADMISSION_WAIT, "network", &shut);
    const json_t *outage = json_object_get(play_find(&p, "admission", 0), "outage");
    assert_true(record_time_parse(data_get(outage, "since").p, &since));
    assert_true(record_time_parse(data_get(outage, "until").p, &until));
    assert_int_equal(since, began - HOUR);
    assert_int_equal(until, began + 6 * HOUR);
    p.now_ms += waited + jumps[i];
    const struct event_away open = {.waited_ms = waited};
    gate_says(&p, ADMISSION_ADMITTED, "network", &open);
    assert_int_equal(p.core.away.ms, waited);
    p.pending_count = 0;
    call_fails(&p, CLASS_NETWORK, &shut);
    outage = json_object_get(play_find(&p, "call_end", 0), "outage");
    assert_true(record_time_parse(data_get(outage, "until").p, &until));
    assert_int_equal(until, p.now_ms + HOUR);
    assert_int_equal(p.core.turns->calls->failures, 0);
    assert_int_equal(json_integer_value(json_object_get(outage, "tries")), 9 + 1);
    play_crash(&p, 0);
    play_deinit(&p);
  }
}

/* Somebody was told that the login is refused: such a probe ends no session, and has no bound. */
TEST(a_held_login_is_waited_for) {
  struct play p;
  struct outage o = {"sim", "network", 0, 0, 0, NULL};
  const struct event_away held = {.since_ms = 1, .tries = 2, .held = true}, nothing = {0};
  outage_play(&p, "held", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
  play_start(&p);
  p.pending_count = 0;
  call_fails(&p, CLASS_AUTH, &held);
  const json_t *end = play_find(&p, "call_end", 0), *outage = json_object_get(end, "outage");
  assert_null(json_object_get(outage, "until"));
  assert_int_equal(json_integer_value(json_object_get(end, "retry_in_ms")), LIMIT_OUTAGE_MAX_MS);
  assert_int_equal(p.core.away.ms, 0);
  play_run(&p);
  expect_end(&p, END_COMPLETE);
  play_deinit(&p);
  outage_play(&p, "met", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
  play_start(&p);
  p.pending_count = 0;
  call_fails(&p, CLASS_AUTH, &nothing);
  expect_stop(&p, "provider_error", "auth");
  assert_true(str_eq_c(data_get(play_find(&p, "session_stop", 0), "provider"), "sim"));
  play_deinit(&p);
}

/* A crash, a night without power, a machine that slept, a clock that is set: the wait goes on from
 * where it was, for as long as was left of it. */
TEST(an_outage_goes_on_where_it_was) {
  static const struct {
    const char *title;
    int64_t jump_ms;
    bool crash;
  } jumps[] = {{"a crash", SECOND, true},
               {"a night without power", 8 * 60 * MINUTE, true},
               {"asleep", 8 * 60 * MINUTE, false},
               {"the clock set back", -24 * 60 * MINUTE, false},
               {"set back, and a crash", -24 * 60 * MINUTE, true}};
  for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
    AUTO(play_deinit) struct play p;
    struct outage o = {"sim", "network", 0, (int64_t)1 << 50, 0, NULL};
    outage_play(&p, jumps[i].title, ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
    run_into_outage(&p, 12);
    int64_t before = time_of(&p, "call_end", 11) - time_of(&p, "call_end", 0);
    assert_true(before > 5 * MINUTE && before < 60 * MINUTE);
    o.from_ms += jumps[i].jump_ms < 0 ? jumps[i].jump_ms : 0; /* away all the same */
    p.now_ms += jumps[i].jump_ms;
    if (jumps[i].crash) {
      play_crash(&p, 0);
      play_send(&p, EVENT_RESUME, "crash", NULL);
    } else {
      p.pending[0].due_ms += jumps[i].jump_ms; /* a timer has a clock of its own */
    }
    int64_t from = p.now_ms;
    play_run(&p);
    expect_stop(&p, "provider_error", "network");
    int64_t after = time_of(&p, "call_end", -1) - from;
    if (before + after < 6 * HOUR - 6 * MINUTE || before + after > 6 * HOUR + 6 * MINUTE)
      fail_msg("%s: %ld ms before, %ld after", p.title, (long)before, (long)after);
  }
}

/* An attempt that a crash interrupted is not charged with the time in which nothing ran. */
TEST(a_crash_during_an_attempt_of_an_outage) {
  AUTO(play_deinit) struct play p;
  struct outage o = {"sim", "network", 0, 600 * MINUTE, 0, NULL};
  outage_play(&p, "in an attempt", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
  play_start(&p);
  while (play_count(&p, "call_start") < 6)
    play_step(&p);
  p.now_ms += 8 * 60 * MINUTE;
  play_crash(&p, 0);
  play_send(&p, EVENT_RESUME, "crash", NULL);
  play_step(&p);
  assert_non_null(json_object_get(play_find(&p, "call_start", -1), "repeats"));
  assert_non_null(json_object_get(play_find(&p, "call_end", -1), "outage"));
  o.ms = 0;
  play_run(&p);
  expect_end(&p, END_COMPLETE);
}

/* Stopped by a person while it waits, it is cancelled or goes on; after a wait in vain, a resume
 * waits anew. */
TEST(an_outage_can_be_left) {
  for (int cancels = 0; cancels < 2; cancels++) {
    AUTO(play_deinit) struct play p;
    struct outage o = {"sim", "network", 0, 24 * HOUR, 0, NULL};
    outage_play(&p, "left", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, &o, true);
    run_into_outage(&p, 3);
    p.pending_count = 0; /* the host closes its timers */
    play_send(&p, cancels ? EVENT_CANCEL : EVENT_STOP, cancels ? NULL : "interrupted", NULL);
    if (cancels) {
      expect_end(&p, END_CANCELLED);
    } else {
      expect_stop(&p, "interrupted", "");
      play_send_and_run(&p, EVENT_RESUME, "user", NULL);
      expect_stop(&p, "provider_error", "network");
      int64_t began = p.now_ms;
      play_send_and_run(&p, EVENT_RESUME, "user", NULL);
      expect_stop(&p, "provider_error", "network");
      assert_true(p.now_ms - began >= 6 * HOUR && p.now_ms - began < 6 * HOUR + MINUTE);
    }
  }
}

/* Children wait each for themselves and together: a group does not add its children's hours up. */
TEST(children_wait_for_one_outage) {
  static const char flow[] =
      "{'name':'w','provider':'sim','movements':[{'name':'g','concurrency':2,'parallel':["
      "{'name':'a','rules':[{'condition':'done'}]},{'name':'b','rules':[{'condition':'done'}]},"
      "{'name':'c','rules':[{'condition':'done'}]},{'name':'d','rules':[{'condition':'done'}]}],"
      "'rules':[{'condition':'all(done)','next':'COMPLETE'},{'condition':'any(error)','next':"
      "'ABORT'}]}]}";
  for (int longer = 0; longer < 2; longer++) {
    AUTO(play_deinit) struct play p;
    struct outage o = {"sim", "network", 0, longer ? 600 * MINUTE : 20 * MINUTE, 0, NULL};
    outage_play(&p, longer ? "in vain" : "in time", flow, NULL, &o, true);
    play_to_end(&p);
    int64_t waited = p.now_ms - o.from_ms;
    if (!longer)
      expect_end(&p, END_COMPLETE);
    else if (p.core.status == SESSION_RUNNING || waited < 6 * HOUR ||
             waited > 6 * HOUR + 10 * MINUTE)
      fail_msg("%s: %ld ms", p.title, (long)waited);
  }
}

/* The workflow's word counts before the user's, but none where somebody asks once. */
TEST(a_workflow_says_how_long_it_waits) {
  static const struct {
    const char *own, *config;
    int64_t waits_ms;
  } says[] = {{"30m", NULL, 30 * MINUTE},
              {"30m", MOST("2h"), 30 * MINUTE},
              {"off", MOST("2h"), 0},
              {"30m", "{'default_provider':'sim','wait_for_outage':false}", 0}};
  for (size_t i = 0; i < ARRAY_LEN(says); i++) {
    AUTO(play_deinit) struct play p;
    struct outage o = {"sim", "network", 0, 600 * MINUTE, 0, NULL};
    char flow[256];
    print_into(flow, sizeof flow,
               "{'name':'w','wait_for_outage':'%s','judge':{'stages':['phase1_tag']},'movements':"
               "[{'name':'a','rules':[{'condition':'done','next':'COMPLETE'}]}]}",
               says[i].own);
    outage_play(&p, says[i].own, flow, says[i].config, &o, true);
    play_to_end(&p);
    expect_stop(&p, "provider_error", "network");
    int64_t waited = p.now_ms - o.from_ms;
    if (waited < says[i].waits_ms || waited > says[i].waits_ms + MINUTE)
      fail_msg("%s: %ld ms", says[i].own, (long)waited);
  }
}

static int64_t minutes_long(struct play *p) {
  (void)p;
  return 4 * MINUTE;
}

/* Away for 10 of every 10 hours and 20 minutes. */
static void now_and_then(struct play *p, const struct call_request *request,
                         struct call_result *out) {
  struct outage *o = p->ctx;
  if (p->now_ms - o->from_ms > o->ms + 20 * MINUTE)
    o->from_ms = p->now_ms;
  outage_reply(p, request, out);
}

/* All outages of a session together have a bound, which a person's resume begins anew. */
TEST(outages_together_are_bounded) {
  static const char flow[] =
      "{'name':'w','provider':'sim','max_movements':'infinite','judge':{'stages':['phase1_tag']},"
      "'movements':[{'name':'a','rules':[{'condition':'again','next':'a'}]}]}";
  AUTO(play_deinit) struct play p;
  struct outage o = {"sim", "network", 1, 10 * HOUR, 0, NULL};
  outage_play(&p, "together", flow, MOST("12h"), &o, true);
  p.reply = now_and_then;
  p.delay_ms = minutes_long;
  o.from_ms = p.now_ms;
  for (int round = 0; round < 2; round++) {
    if (round == 0)
      play_start(&p);
    else
      play_send(&p, EVENT_RESUME, "user", NULL);
    int64_t began = p.now_ms, waited = 0;
    int from = play_count(&p, "call_end");
    play_run(&p);
    expect_stop(&p, "provider_error", "network");
    for (int i = from; i < play_count(&p, "call_end"); i++)
      waited += json_integer_value(json_object_get(play_find(&p, "call_end", i), "retry_in_ms"));
    if (waited > LIMIT_OUTAGE_TOTAL_MS || waited < LIMIT_OUTAGE_TOTAL_MS - MINUTE)
      fail_msg("it waited for %ld ms", (long)waited);
    assert_true(p.now_ms - began >= waited);
  }
}

/* --- stalls: an agent that says nothing is ended and tried again --- */

struct stall {
  int times; /* how often it says nothing */
  const char *session;
  struct buf prompts; /* beginnings of those of the work, a line each */
};

static void stall_reply(struct play *p, const struct call_request *request,
                        struct call_result *out) {
  struct stall *stall = p->ctx;
  struct str first = request->prompt;
  struct str line = str_next_line(&first);
  buf_str(&stall->prompts, line);
  buf_putc(&stall->prompts, '\n');
  out->duration_ms = 4000;
  print_into(out->provider_session, sizeof out->provider_session, "%s", stall->session);
  if (stall->times-- > 0 && str_eq_c(request->provider, "sim")) {
    call_result_fail(out, CLASS_TIMEOUT, "no output for 4000 ms");
    out->silent_ms = 4000;
    return;
  }
  buf_puts(&out->text.bytes, "worked\n[A:1]");
}

TEST(a_call_that_says_nothing_is_tried_again) {
  static const char flow[] =
      "{'name':'w','provider':'sim'%s,'judge':{'stages':['phase1_tag']},'movements':[{'name':'a',"
      "'bare_prompt':true,'instruction':'Do it.'%s,'rules':[{'condition':'done','next':"
      "'COMPLETE'}]}]}";
  static const struct {
    const char *title, *more, *own;
    int times, attempts;
    const char *stopped; /* NULL: it completes */
  } cases[] = {{"once", "", "", 1, 2, NULL},
               {"twice", "", "", 2, 3, NULL},
               {"always", "", "", 9, 3, "timeout"},
               {"not tried again", "", ",'stall_retries':0", 9, 1, "timeout"},
               {"tried often", "", ",'stall_retries':5", 5, 6, NULL},
               {"then another", ",'fallback':['other']", "", 9, 4, NULL}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(play_deinit) struct play p;
    struct stall stall = {.times = cases[i].times, .session = ""};
    char text[512];
    print_into(text, sizeof text, flow, cases[i].more, cases[i].own);
    play_init(&p, cases[i].title, text, NULL, NULL);
    p.reply = stall_reply;
    p.ctx = &stall;
    play_to_end(&p);
    if (cases[i].stopped != NULL)
      expect_stop(&p, "provider_error", cases[i].stopped);
    else
      expect_end(&p, END_COMPLETE);
    if (play_count(&p, "call_end") != cases[i].attempts)
      fail_msg("%s: %d attempts", p.title, play_count(&p, "call_end"));
    struct str prompts = buf_view(&stall.prompts);
    for (int k = 0; k < cases[i].attempts; k++) {
      struct str line = str_next_line(&prompts);
      bool says = str_starts(line, "Your last run printed nothing for 4 s");
      if (says != (k > 0)) /* it stays for who takes over */
        fail_msg("%s: attempt %d: %.*s", p.title, k + 1, (int)line.n, line.p);
    }
    buf_deinit(&stall.prompts);
  }
}

TEST(a_judge_that_fails_is_retried_within_its_stage) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "judge", two_movements, NULL,
           "{'fix':'x','review':'y','review/structured_output':[" FAIL(
               "network") ","
                          "{'structured':{'step':3,'reason':'r'}}]}");
  expect_end(&p, END_ABORT);
  assert_int_equal(play_count(&p, "stage"), 2);
  const json_t *call = play_find(&p, "call_start", -1);
  assert_int_equal(json_integer_value(json_object_get(call, "attempt")), 2);
  assert_non_null(json_object_get(call, "prompt_of"));
  assert_true(str_eq_c(data_get(call, "stage"), "structured_output"));
}

TEST(a_judge_without_money_stops_and_resume_judges_anew) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "money", two_movements, NULL,
           "{'fix':'x','review':'y','review/structured_output':[" FAIL("quota") "," FAIL(
               "quota") ","
                        "{'structured':{'step':1,'reason':'r'}}]}");
  for (int i = 0; i < 2; i++) {
    size_t from = play_lines(&p);
    expect_stop(&p, "judge_unavailable", "");
    assert_int_equal(json_integer_value(json_object_get(play_record(&p, from - 1), "turn")), 2);
    assert_int_equal(play_count(&p, "judgment"), 1);
    assert_int_equal(p.pending_count, 0);
    play_send(&p, EVENT_RESUME, "user", NULL);
    assert_int_equal(json_array_size(p.core.turns->stages), 0);
    play_run(&p);
    if (i == 0)
      expect_types(&p, from,
                   "session_resume call_start call_end stage stage stage stage session_stop");
  }
  assert_true(p.core.status == SESSION_ENDED && p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "judgment"), 2);
  const json_t *judgment = play_find(&p, "judgment", -1);
  assert_int_equal(json_array_size(json_object_get(judgment, "stages")), 1);
}

TEST(a_provider_error_stops_and_resume_tries_again) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "again", ONE("{'condition':'done','next':'COMPLETE'}"), NULL,
           "{'a':[" FAIL("auth") "," FAIL("network") ",'ok']}");
  expect_stop(&p, "provider_error", "auth");
  assert_string_equal(buf_c(&p.core.stop_message), "no");
  size_t from = play_lines(&p);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  expect_types(&p, from,
               "session_resume call_start call_end call_start call_end stage judgment turn_end "
               "session_end");
  assert_int_equal(p.core.call_count, 1);
}

static const char with_a_way[] =
    "{'name':'w','max_movements':'infinite',%s'judge':{'stages':['phase1_tag']},"
    "'movements':["
    "{'name':'a','on_error':%s,'rules':[{'condition':'done','next':'b'}]},"
    "{'name':'b','on_error':[{'class':'refused','to':'a'}],'rules':["
    "{'condition':'done','next':'COMPLETE'},{'condition':'no','next':'ABORT'}]}]}";

TEST(an_error_leads_on) {
#define ANY         "[{'to':'b'}]"
#define TWO_REFUSED FAIL("refused") "," FAIL("refused")
#define FIVE        TWO_REFUSED "," TWO_REFUSED "," FAIL("refused")
#define FIN         "'b':['[B:1]']"
  static const struct {
    const char *title, *ways, *script, *class; /* class NULL: it is complete, else it stops */
    int turns;
    const char *protect;
  } cases[] = {
      {"to another", ANY, "{'a':[" FAIL("timeout") "]," FIN "}", NULL, 2, ""},
      {"by class", "[{'class':'crashed','to':'ABORT'},{'class':'refused','to':'b'}]",
       "{'a':[" FAIL("refused") "]," FIN "}", NULL, 2, ""},
      {"not of that class", "[{'class':'crashed','to':'b'}]", "{'a':[" FAIL("refused") "]}",
       "refused", 1, ""},
      {"a login is a person's", ANY, "{'a':[" FAIL("auth") "]}", "auth", 1, ""},
      {"it again", "[{'to':'a'}]", "{'a':[" FAIL("refused") "," FAIL("refused") ",'ok']," FIN "}",
       NULL, 4, ""},
      {"an answer between errors", ANY, "{'a':['one','two'],'b':[" FAIL("refused") ",'[B:1]']}",
       NULL, 4, ""},
      {"no end of errors", "[{'to':'a'}]", "{'a':[" FIVE "," FIVE "," FAIL("refused") "]}",
       "refused", LIMIT_ERRORS_IN_ROW + 1, ""},
      {"what is protected", ANY,
       "{'a':[{'error':'refused','message':'no','files':[{'path':'p'}]}]}", "refused", 1,
       "'protect':['p'],"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct play p;
    buf_auto_t workflow = buf_of(with_a_way, cases[i].protect, cases[i].ways);
    play_init(&p, cases[i].title, buf_c(&workflow), NULL, cases[i].script);
    play_start(&p);
    play_run(&p);
    if (cases[i].class != NULL)
      expect_stop(&p, "provider_error", cases[i].class);
    else
      expect_end(&p, END_COMPLETE);
    if (play_count(&p, "turn_start") != cases[i].turns)
      fail_msg("%s: %d turns", cases[i].title, play_count(&p, "turn_start"));
    play_deinit(&p);
  }
}

/* The next turn is told, its judge as well, and what was answered before is still there. */
TEST(an_error_is_told) {
  static const struct {
    const char *changes, *error;
  } changed[] = {
      {"{'next':'a'}", "its error does not lead there"},
      {"{'class':'auth'}", "its error does not lead there"},
      {"{'turn':1}", "its turn is not open"},
  };
  struct play p;
  play_init(&p, "told",
            "{'name':'w','judge':{'stages':['ai_judge']},'movements':["
            "{'name':'a','rules':[{'condition':'x','next':'b'}]},"
            "{'name':'b','on_error':[{'to':'c'}],'rules':[{'condition':'x','next':'ABORT'}]},"
            "{'name':'c','rules':[{'condition':'x','next':'COMPLETE'},{'condition':'y','next':"
            "'d'}]},"
            "{'name':'d','rules':[{'condition':'x','next':'COMPLETE'}]}]}",
            NULL,
            "{'a':['an answer'],'b':["
            "{'error':'crashed','message':'no\\n- Its tests: 9 passed'}"
            "],'c':['mended'],'c/ai_judge':"
            "['[JUDGE:2]'],'d':['ok']}");
  play_start(&p);
  while (p.pending_count > 0) {
    int calls = play_count(&p, "call_start");
    const char *prompt = buf_c(&p.last_prompt);
    bool told = strstr(prompt, "b (crashed): no") != NULL;
    assert_null(strstr(prompt, "\n- Its tests"));
    assert_int_equal(told, calls == 3 || calls == 4); /* of c, and of its judge */
    assert_true(calls != 3 || strstr(prompt, "an answer") != NULL);
    play_decide_next(&p);
    play_commit(&p);
  }
  expect_end(&p, END_COMPLETE);
  for (size_t i = 0; i < ARRAY_LEN(changed); i++)
    play_refuses(&p, play_index(&p, "turn_end", 1), changed[i].changes, changed[i].error);
  play_refuses(&p, play_index(&p, "turn_end", 0),
               "{'rule':null,'outcome':'error','class':'crashed'}", "its turn did not fail");
  play_deinit(&p);
}

/* A file that several attempts changed counts once; an attempt of which nothing is known makes the
 * number one that is only known not to be 0. */
TEST(files_of_attempts_add_up) {
#define ATTEMPT(files) "{'error':'network','message':'no','files':[" files "],'more':2}"
#define TWO            "{'path':'x','added':1,'removed':0},{'path':'y','added':2,'removed':2}"
  static const struct {
    const char *title, *replies, *rule;
    bool holds;
  } cases[] = {
      {"once a file", "[" ATTEMPT("{'path':'x'}") ",{'text':'ok','files':[" TWO "]}]",
       "changed == 4", true},
      {"not all are named", "[" ATTEMPT("{'path':'x'}") ",{'text':'ok','files':[" TWO "]}]",
       "contains(files.path, \\\"y\\\")", false},
      {"all are named", "[{'text':'ok','files':[" TWO "]}]", "contains(files.path, \\\"y\\\")",
       true},
      {"not all are known, but that is not asked",
       "[{'text':'ok','files':[" TWO "],'files_unknown':'a folder'}]", "changed > 0", true},
      {"not all are known", "[{'text':'ok','files':[" TWO "],'files_unknown':'a folder'}]",
       "files.length == 2", false},
      {"first nothing",
       "[{'error':'network','message':'no','files':[]},{'text':'ok','files':[" TWO "]}]",
       "changed == 2", true},
      {"lost, but something",
       "[{'text':'','error':'network','message':'no','files':[" TWO "]},"
       "{'text':'ok'}]",
       "changed == 2", true},
      {"known to be none", "[{'text':'ok','files':[]}]", "changed == 0", true},
      {"not known", "[{'text':'ok'}]", "changed == 0", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    char workflow[400], script[500];
    AUTO(play_deinit) struct play p;
    print_into(workflow, sizeof workflow,
               "{'name':'w','provider':'sim','movements':[{'name':'a','rules':["
               "{'condition':'when(%s)','next':'COMPLETE'}]}]}",
               cases[i].rule);
    print_into(script, sizeof script, "{'a':%s}", cases[i].replies);
    play_all(&p, cases[i].title, workflow, NULL, script);
    if (cases[i].holds != (p.core.outcome == END_COMPLETE))
      fail_msg("%s: outcome %s, %s", cases[i].title, session_outcome_name(p.core.outcome),
               buf_c(&p.core.stop_message));
  }
}

/* Accepted first, resumed when its turn comes, with or without a crash in between: one record of
 * it. */
TEST(an_accepted_resume_is_recorded_once) {
  for (int crash = 0; crash < 2; crash++) {
    AUTO(play_deinit) struct play p;
    play_all(&p, "accepted", ONE("{'condition':'done','next':'COMPLETE'}"), NULL,
             "{'a':[" FAIL("auth") ",'ok']}");
    expect_stop(&p, "provider_error", "auth");
    size_t from = play_lines(&p);
    play_send(&p, EVENT_ACCEPT, "user", NULL);
    expect_types(&p, from, "session_resume");
    play_send(&p, EVENT_ACCEPT, "user", NULL);
    expect_types(&p, from, "session_resume");
    assert_true(p.core.status == SESSION_RUNNING && p.pending_count == 0);
    if (crash)
      play_crash(&p, 0);
    play_send_and_run(&p, EVENT_RESUME, "crash", NULL);
    expect_types(&p, from,
                 "session_resume call_start call_end stage judgment turn_end session_end");
  }
}

/* It begins, is stopped because it waits in vain, or is let go by a person. */
TEST(a_session_waits_for_others) {
  for (int how = 0; how < 4; how++) {
    struct play p;
    play_init(&p, "after", ONE("{'condition':'done','next':'COMPLETE'}"),
              "{'default_provider':'sim','submitted':true,'after':['x']}", "{'a':['ok']}");
    p.holds = true;
    play_start(&p);
    expect_types(&p, 0, "session_start");
    assert_true(core_waits(&p.core));
    play_send(&p, EVENT_ACCEPT, "user", NULL); /* nothing is said */
    expect_types(&p, 0, "session_start");
    if (how == 0) {
      play_send(&p, EVENT_BEGIN, NULL, NULL);
    } else if (how == 1) {
      play_send(&p, EVENT_STOP, "after", "in vain");
      expect_stop(&p, "after", NULL);
      assert_true(session_stop_is_for_person(STR("after")));
    } else {
      json_auto_t *changed = json_pack("{s[]}", "after");
      json_auto_t *config =
          json_pack("{sssbs[]}", "default_provider", "sim", "submitted", 1, "after");
      json_auto_t *by = json_pack("{siss}", "uid", 1, "name", "p");
      const struct core_steer steer = {.by = by, .changed = changed, .config = config};
      struct event ev = play_event(&p, EVENT_ACCEPT);
      ev.reason = "user";
      ev.steer = &steer;
      play_decide(&p, &ev);
      play_commit(&p);
      expect_types(&p, 0, "session_start session_resume");
      if (how == 3)
        play_crash(&p, 0);
      play_send(&p, EVENT_RESUME, "crash", NULL);
    }
    assert_false(core_waits(&p.core));
    play_run(&p);
    if (how != 1)
      expect_end(&p, END_COMPLETE);
    play_deinit(&p);
  }
}

TEST(cancelling_is_final) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "cancel", two_movements, NULL, "{'fix':'x'}");
  play_start(&p);
  play_send(&p, EVENT_CANCEL, NULL, "no longer wanted");
  expect_end(&p, END_CANCELLED);
  assert_int_equal(p.cancelled, 1);
  assert_string_equal(buf_c(&p.core.stop_message), "no longer wanted");
  size_t lines = play_lines(&p);
  struct call_result late = {0};
  struct event ev = play_event(&p, EVENT_CALL_END);
  ev.call = 1;
  ev.result = &late;
  play_decide(&p, &ev); /* its answer comes all the same */
  play_commit(&p);
  play_send(&p, EVENT_TIMER, NULL, NULL);
  play_send(&p, EVENT_STOP, "signal", NULL);
  play_send(&p, EVENT_RESUME, "user", NULL);
  play_send(&p, EVENT_CANCEL, NULL, NULL);
  assert_int_equal(play_lines(&p), lines);
}

TEST(a_stop_in_the_middle_of_a_call) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "stop", two_movements, NULL,
            "{'fix':'x','review':'y','review/structured_output':{'structured':{'step':1,"
            "'reason':'r'}}}");
  play_start(&p);
  play_step(&p); /* review runs */
  play_send(&p, EVENT_STOP, "signal", "SIGINT");
  expect_stop(&p, "signal", "");
  assert_int_equal(p.cancelled, 1);
  size_t from = play_lines(&p);
  play_send(&p, EVENT_STOP, "signal", NULL); /* nothing more to stop */
  assert_int_equal(play_lines(&p), from);
  play_send(&p, EVENT_RESUME, "user", NULL);
  const json_t *call = play_find(&p, "call_start", -1), *first = play_find(&p, "call_start", 1);
  assert_int_equal(json_integer_value(json_object_get(call, "repeats")), 1);
  assert_int_equal(json_integer_value(json_object_get(call, "attempt")), 2);
  assert_true(json_equal(json_object_get(call, "token"), json_object_get(first, "token")));
  assert_true(json_equal(json_object_get(call, "call"), json_object_get(first, "call")));
  play_run(&p);
  assert_true(p.core.outcome == END_COMPLETE);
}

TEST(a_stopped_session_can_be_cancelled) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "cancel after a stop", two_movements, NULL, "{'fix':'x'}");
  play_start(&p);
  play_send(&p, EVENT_STOP, "signal", NULL);
  size_t from = play_lines(&p);
  p.finished = 0;
  play_send(&p, EVENT_CANCEL, NULL, "not wanted");
  expect_types(&p, from, "session_resume session_end");
  expect_end(&p, END_CANCELLED);
}

/* No new call: what runs may end, then the session stops where it can go on. */
TEST(a_drain_waits_for_the_call) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "drain", two_movements, NULL,
            "{'fix':'x','review':'y','review/structured_output':{'structured':{'step':1,"
            "'reason':'r'}}}");
  play_start(&p);
  p.env.draining = true;
  size_t from = play_lines(&p);
  play_send(&p, EVENT_DRAIN, NULL, NULL);
  assert_int_equal(play_lines(&p), from);
  play_step(&p);
  expect_types(&p, from, "call_end stage judgment turn_end session_stop");
  expect_stop(&p, "shutdown", "");
  assert_int_equal(p.cancelled, 0);
  p.env.draining = false;
  play_send(&p, EVENT_RESUME, "restart", NULL);
  play_decide_next(&p); /* the answer of review comes, and the judge would be asked */
  p.env.draining = true;
  from = play_lines(&p);
  play_commit(&p);
  play_send(&p, EVENT_DRAIN, NULL, NULL);
  p.env.draining = false;
  if (p.core.status == SESSION_STOPPED)
    play_send(&p, EVENT_RESUME, "restart", NULL);
  play_run(&p);
  assert_true(p.core.outcome == END_COMPLETE);
  for (size_t i = 0; i < play_lines(&p); i++)
    assert_null(json_object_get(play_record(&p, i), "repeats"));
}

TEST(a_drain_asks_no_judge) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "drain before judging", two_movements, NULL,
            "{'fix':'x','review':'y','review/structured_output':{'structured':{'step':1,"
            "'reason':'r'}}}");
  play_start(&p);
  while (play_count(&p, "turn_start") < 2)
    play_step(&p);
  p.env.draining = true;
  size_t from = play_lines(&p);
  play_decide_next(&p); /* the answer of review comes */
  play_commit(&p);
  expect_types(&p, from, "call_end session_stop");
}

/* A provider that answers twice, or one that was given up: the call waits for its next attempt. */
TEST(an_answer_that_comes_late_is_dropped) {
  AUTO(play_deinit) struct play p;
  struct call_result result = {0};
  play_init(&p, "late", ONE("{'condition':'done','next':'COMPLETE'}"), NULL,
            "{'a':[" FAIL("network") ",'ok']}");
  play_start(&p);
  play_step(&p);
  size_t from = play_lines(&p);
  struct event ev = play_event(&p, EVENT_CALL_END);
  ev.call = 1;
  ev.result = &result;
  play_decide(&p, &ev);
  play_commit(&p);
  assert_int_equal(play_lines(&p), from);
  play_run(&p);
  expect_end(&p, END_COMPLETE);
}

/* A clock that was set back must not make a session wait for years. */
TEST(a_wait_is_bounded_after_a_jump_of_the_clock) {
  for (int outage = 0; outage < 2; outage++) {
    AUTO(play_deinit) struct play p;
    static const char *const scripts[] = {
        "{'a':[{'error':'rate_limit','message':'no','retry_after_ms':9},'ok']}",
        "{'a':[" FAIL("network") ",'ok']}"};
    play_init(&p, "clock", ONE("{'condition':'done','next':'COMPLETE'}"), NULL, scripts[outage]);
    play_start(&p);
    play_step(&p);
    play_crash(&p, 0);
    p.now_ms -= 2 * LIMIT_RESET_WAIT_MS;
    int64_t now = p.now_ms;
    play_send(&p, EVENT_RESUME, "restart", NULL);
    assert_int_equal(p.pending_count, 1);
    assert_int_equal(p.pending[0].due_ms,
                     now + (outage ? LIMIT_OUTAGE_MAX_MS : LIMIT_RESET_WAIT_MS));
    play_run(&p);
    expect_end(&p, END_COMPLETE);
  }
}

TEST(a_drain_does_not_wait_for_a_retry) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "drain while it waits", two_movements, NULL,
            "{'fix':[{'error':'overloaded'},'x']}");
  play_start(&p);
  play_step(&p);
  p.env.draining = true;
  play_send(&p, EVENT_DRAIN, NULL, NULL);
  expect_stop(&p, "shutdown", "");
}

/* Nobody is asked anew in a drain, whoever would take over; the resume asks. */
TEST(a_drain_does_not_go_elsewhere) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "drain and fallback",
            "{'name':'w','provider':'sim','fallback':['other'],'movements':[{'name':'a','rules':[{"
            "'condition':'done','next':'COMPLETE'}]}]}",
            NULL, "{'a':[" FAIL("quota") ",'ok']}");
  play_start(&p);
  p.env.draining = true;
  play_step(&p);
  expect_stop(&p, "shutdown", "");
  expect_providers(&p, "sim");
  p.env.draining = false;
  play_send_and_run(&p, EVENT_RESUME, "restart", NULL);
  expect_providers(&p, "sim other");
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

/* One prompt for all who may be asked: of a tool it speaks only when all of them have one. */
TEST(a_prompt_suits_whoever_takes_over) {
  static const struct {
    const char *fallback;
    bool by_tool;
  } cases[] = {
      {"", true}, {"'fallback':['tooled'],", true}, {"'fallback':['tooled','sim'],", false}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    AUTO(play_deinit) struct play p;
    char workflow[512];
    print_into(workflow, sizeof workflow,
               "{'name':'w','provider':'tooled',%s'judge':{'stages':['structured_output']},"
               "'movements':[{'name':'a','rules':[{'condition':'done','next':'COMPLETE'},"
               "{'condition':'not done','next':'ABORT'}]}]}",
               cases[i].fallback);
    play_all(&p, "by tool", workflow, NULL,
             "{'a':'x','a/structured_output':{'structured':{'step':1,'reason':'r'}}}");
    expect_end(&p, END_COMPLETE);
    bool speaks = strstr(buf_c(&p.last_prompt), "through the tool") != NULL;
    if (speaks != cases[i].by_tool)
      fail_msg("%s: %s", cases[i].fallback, buf_c(&p.last_prompt));
  }
}

static void tell(struct play *p, const struct event *ev) {
  play_decide(p, ev);
  play_commit(p);
}

TEST(news_of_a_running_call_are_records) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "news", two_movements, NULL,
            "{'fix':'x','review':'y','review/structured_output':{'structured':{'step':1,"
            "'reason':'r'}}}");
  play_start(&p);
  json_auto_t *id = json_pack("{ss}", "provider_session", "abc");
  struct event ev = play_event(&p, EVENT_CALL_NEWS);
  ev.call = 1;
  ev.news_kind = "session";
  ev.news = id;
  tell(&p, &ev);
  const json_t *record = play_record(&p, play_lines(&p) - 1);
  assert_true(str_eq_c(data_get(record, "type"), "call_event"));
  assert_true(json_equal(json_object_get(record, "data"), id));
  assert_string_equal(p.core.turns->calls->provider_session, "abc");
  struct core again; /* a reader of the log knows the same */
  core_init(&again);
  play_fold(&p, &again, 0);
  assert_string_equal(again.turns->calls->provider_session, "abc");
  core_deinit(&again);

  size_t before = play_lines(&p);
  ev.call = 7; /* not running: an attempt that is over, a late word */
  tell(&p, &ev);
  assert_int_equal(play_lines(&p), before);
  ev.call = 1;
  ev.news_kind = "note";
  char_auto_t *big = malloc(LIMIT_CALL_EVENT_BYTES + 1);
  memset(big, 'x', LIMIT_CALL_EVENT_BYTES);
  big[LIMIT_CALL_EVENT_BYTES] = '\0';
  json_auto_t *note = json_pack("{ss}", "text", big);
  ev.news = note;
  tell(&p, &ev);
  assert_int_equal(play_lines(&p), before);
  ev.news = NULL;
  for (unsigned i = 0; i < LIMIT_CALL_EVENT_COUNT + 5; i++)
    tell(&p, &ev);
  assert_int_equal(play_count(&p, "call_event"), LIMIT_CALL_EVENT_COUNT);
  play_run(&p);
  expect_end(&p, END_COMPLETE);
}

/* A parameter that a model would not take is known to the session's later calls, and to a reader of
 * its log. */
TEST(refused_parameters_are_remembered) {
  AUTO(play_deinit) struct play p;
  AUTO(core_deinit) struct core again;
  struct turn *turn;
  struct call_request r;
  play_init(&p, "refused", two_movements, NULL, "{'fix':'x'}");
  play_start(&p);
  json_auto_t *data = json_pack("{ssss}", "text", "no", "refused", "temperature");
  struct event ev = play_event(&p, EVENT_CALL_NEWS);
  ev.call = 1;
  ev.news_kind = "note";
  ev.news = data;
  tell(&p, &ev);
  tell(&p, &ev); /* once is enough */
  core_init(&again);
  play_fold(&p, &again, 0);
  struct call *call = core_call(&again, 1, &turn);
  core_request(&again, turn, call, &r);
  json_auto_t *names = json_pack("[s]", "temperature");
  assert_true(json_equal(r.refused, names));
  assert_null(core_refused(&again, STR("sim"), STR("another model")));
}

TEST(a_crash_while_a_call_waits) {
  for (int late = 0; late < 2; late++) {
    AUTO(play_deinit) struct play p;
    play_init(&p, late ? "late" : "early", ONE("{'condition':'done','next':'COMPLETE'}"), NULL,
              "{'a':[{'error':'rate_limit','message':'no','retry_after_ms':9000},'ok']}");
    play_start(&p);
    play_step(&p);
    int64_t due = p.now_ms + 9000;
    p.now_ms += late ? 20000 : 4000;
    play_crash(&p, 0);
    play_send(&p, EVENT_RESUME, "crash", NULL);
    assert_int_equal(p.pending_count, 1);
    assert_int_equal(p.pending[0].kind, late ? PLAY_CALL : PLAY_TIMER);
    if (!late)
      assert_int_equal(p.pending[0].due_ms, due);
    play_run(&p);
    expect_end(&p, END_COMPLETE);
    assert_int_equal(play_count(&p, "call_start"), 2);
    assert_null(json_object_get(play_find(&p, "call_start", -1), "repeats"));
    assert_int_equal(p.prompts_missing, 0);
  }
}

TEST(the_same_events_give_the_same_bytes) {
  static const char script[] =
      "{'fix':'I did it, and it took a while to see what was wrong with it.','review':'hm',"
      "'review/structured_output':[" FAIL(
          "network") ",'no idea','still none'],"
                     "'review/structured_output/reask':'none',"
                     "'review/phase3_tag':'none','review/ai_judge':'[JUDGE:1]'}";
  struct play a, b;
  play_init(&a, "first", two_movements, NULL, script);
  play_init(&b, "second", two_movements, NULL, script);
  play_start(&a);
  play_run(&a);
  play_start(&b);
  play_run(&b);
  expect_end(&a, END_COMPLETE);
  assert_true(json_equal(a.log, b.log)); /* the lines as texts */
  play_deinit(&a);
  play_deinit(&b);
}

TEST(a_text_too_long_for_a_line) {
  AUTO(play_deinit) struct play p;
  buf_auto_t text = {0};
  for (int i = 0; i < 9000; i++)
    buf_printf(&text, "line %d\n", i);
  buf_puts(&text, "[FIX:1]");
  play_init(&p, "blob", two_movements, NULL,
            "{'review':'y','review/structured_output':{'structured':{'step':1,'reason':'r'}}}");
  json_object_set_new(p.script, "fix", json_stringn(text.p, text.n));
  play_to_end(&p);
  expect_end(&p, END_COMPLETE);
  const json_t *end = play_find(&p, "call_end", 0);
  assert_true(str_eq_c(data_get(end, "text_blob"), p.blob_sha256));
  assert_int_equal(json_integer_value(json_object_get(end, "text_bytes")), text.n);
  assert_true(json_string_length(json_object_get(end, "text")) < 2 * LIMIT_RENDER_BYTES);
  const json_t *prompt = json_object_get(play_find(&p, "call_start", 1), "prompt"), *part;
  size_t i;
  bool referred = false;
  json_array_foreach(prompt, i, part) { /* the next prompt refers to it */
    referred |= json_object_get(part, "ref") != NULL &&
                strstr(json_string_value(json_object_get(part, "ref")), "#/text") != NULL;
    assert_true(json_string_length(part) < LIMIT_INLINE_TEXT_BYTES);
  }
  assert_true(referred);
}

TEST(judge_calls_are_read_only) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "request",
            "{'name':'w','options':{'temperature':1},'movements':[{'name':'a','edit':true,"
            "'rules':[{'condition':'x','next':'COMPLETE'},{'condition':'y','next':'ABORT'}]}]}",
            "{'default_provider':'sim','options':{'seed':4}}",
            "{'a':'t','a/structured_output':{'structured':{'step':1,'reason':'r'}}}");
  play_start(&p);
  struct turn *turn;
  struct call_request r;
  struct call *call = core_call(&p.core, 1, &turn);
  core_request(&p.core, turn, call, &r);
  assert_true(r.edit);
  assert_null(r.schema);
  assert_int_equal(json_integer_value(json_object_get(r.options, "temperature")), 1);
  assert_int_equal(json_integer_value(json_object_get(r.options, "seed")), 4);
  play_step(&p);
  call = core_call(&p.core, 2, &turn);
  core_request(&p.core, turn, call, &r);
  assert_int_equal(r.purpose, PURPOSE_JUDGE);
  assert_int_equal(r.stage, STAGE_STRUCTURED_OUTPUT);
  assert_false(r.edit);
  assert_int_equal(r.timeout_ms, LIMIT_JUDGE_WALL_MS);
  assert_null(r.options); /* nobody asked for any */
  json_auto_t *numbers = data_json("[0,1,2]");
  assert_true(json_equal(
      json_object_get(json_object_get(json_object_get(r.schema, "properties"), "step"), "enum"),
      numbers));
  play_run(&p);
  expect_end(&p, END_COMPLETE);
}

/* The effort of the first judge's call; "": none. */
static void expect_effort(const char *model, const char *judge, const char *expected) {
  AUTO(play_deinit) struct play p;
  struct turn *turn;
  struct call_request r;
  char workflow[400];
  print_into(workflow, sizeof workflow,
             "{'name':'w','judge':%s,'movements':[{'name':'a','rules':["
             "{'condition':'x','next':'COMPLETE'},{'condition':'y','next':'ABORT'}]}]}",
             judge);
  char config[200];
  print_into(config, sizeof config, "{'default_provider':'sim','provider_models':{'tooled':'%s'}}",
             model);
  play_init(&p, "effort", workflow, config,
            "{'a':'t','a/structured_output':{'structured':{'step':1,'reason':'r'}}}");
  play_start(&p);
  play_step(&p);
  struct call *call = core_call(&p.core, 2, &turn);
  core_request(&p.core, turn, call, &r);
  assert_int_equal(r.purpose, PURPOSE_JUDGE);
  const char *effort = json_string_value(json_object_get(r.options, "effort"));
  assert_string_equal(effort ? effort : "", expected);
}

TEST(judges_think_little_unless_told) {
  expect_effort("think-1", "{'provider':'tooled'}", "low");
  expect_effort("plain-1", "{'provider':'tooled'}", "low"); /* whatever its name */
  expect_effort("plain-1", "{'provider':'tooled','model':'think-2'}", "low");
  expect_effort("think-1", "{'provider':'tooled','effort':'high'}", "high");
  expect_effort("plain-1", "{'provider':'tooled','effort':'high'}", "high");
  expect_effort("think-1", "{'provider':'tooled','effort':null}", "");
  expect_effort("think-1", "{'provider':'tooled','options':{'effort':'medium'}}", "medium");
  expect_effort("think-1", "{'provider':'tooled','options':{'effort':null}}", "");
  expect_effort("think-1", "{'provider':'tooled','effort':'high','options':{'effort':null}}",
                "high");
  expect_effort("think-1", "{'provider':'sim'}", ""); /* this one says nothing by itself */
}

TEST(schemas_are_logged_once) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "schemas",
           "{'name':'w','judge':{'stages':['structured_output'],'max_reasks':2},'movements':["
           "{'name':'a','rules':[{'condition':'x','next':'COMPLETE'},{'condition':'y','next':"
           "'a'}]}]}",
           NULL,
           "{'a':'t','a/structured_output':'?','a/structured_output/reask':['?',"
           "{'structured':{'step':1,'reason':'r'}}]}");
  expect_end(&p, END_COMPLETE);
  const json_t *first = play_find(&p, "call_start", 1), *second = play_find(&p, "call_start", 2);
  assert_non_null(json_object_get(json_object_get(first, "schema"), "properties"));
  assert_non_null(json_object_get(json_object_get(second, "schema"), "ref"));
  assert_true(str_eq_c(data_get(second, "purpose"), "reask"));
  assert_true(str_eq_c(data_get(second, "stage"), "structured_output"));
  const json_t *stage = play_find(&p, "stage", 0);
  assert_int_equal(json_array_size(json_object_get(stage, "calls")), 3);
}

/* --- a panel --- */

static const char panel_workflow[] =
    "{'name':'w','provider':'sim','movements':[{'name':'a','judge':{'stages':"
    "['structured_output','ai_judge'],'panel':['sim','other','third']%s},'rules':["
    "{'condition':'one','next':'COMPLETE'},{'condition':'two','next':'ABORT'},"
    "{'condition':'three','next':'ABORT'}]}]}";

#define SAYS(n) "{'structured':{'step':" #n ",'reason':'r'},'tokens':3}"
#define AI(n)   "{'structured':{'matched_index':" #n ",'reason':'r'}}"

static const struct {
  const char *title, *keys, *votes, *ai;
  int rule;            /* 0: none */
  const char *stages;  /* stage records, in order: vote and outcome */
  const char *stopped; /* NULL: it ended */
} panel_cases[] = {
    {"two of three", "", SAYS(1) "," SAYS(2) "," SAYS(1), "'?'", 1,
     "1 matched 2 matched 3 matched 0 matched", NULL},
    {"two that agree are enough", "", SAYS(2) "," SAYS(2), "'?'", 2,
     "1 matched 2 matched 0 matched", NULL},
    {"all must agree", ",'agree':3", SAYS(1) "," SAYS(2), AI(3), 3,
     "1 matched 2 matched 0 ambiguous 1 matched 2 matched 3 matched 0 matched", NULL},
    {"a split, then the next stage", "", SAYS(1) "," SAYS(2) "," SAYS(3), AI(2), 2,
     "1 matched 2 matched 3 matched 0 ambiguous 1 matched 2 matched 0 matched", NULL},
    {"a split asks a person", ",'else':'ask'", SAYS(1) "," SAYS(2) "," SAYS(3), "'?'", 0,
     "1 matched 2 matched 3 matched 0 ambiguous", "question"},
    {"none holds", "", SAYS(0) "," SAYS(1) "," SAYS(0), AI(1), 1,
     "1 no_match 2 matched 3 no_match 0 no_match 1 matched 2 matched 0 matched", NULL},
    {"one that is down does not vote", "", FAIL("auth") "," SAYS(1) "," SAYS(1), "'?'", 1,
     "1 error 2 matched 3 matched 0 matched", NULL},
    {"all are down", "", FAIL("auth"), FAIL("auth"), 0,
     "1 error 2 error 0 error 1 error 2 error 0 error", "judge_unavailable"},
};

TEST(a_panel_votes) {
  for (size_t i = 0; i < ARRAY_LEN(panel_cases); i++) {
    AUTO(play_deinit) struct play p;
    buf_auto_t workflow = {0}, script = {0}, got = {0};
    for (const char *at = panel_workflow; *at; at++)
      if (strncmp(at, "%s", 2) == 0)
        buf_puts(&workflow, panel_cases[i].keys), at++;
      else
        buf_putc(&workflow, *at);
    buf_printf(&script, "{'a':'done','a/structured_output':[%s],'a/ai_judge':%s}",
               panel_cases[i].votes, panel_cases[i].ai);
    play_all(&p, panel_cases[i].title, workflow.p, NULL, script.p);
    for (int k = 0; k < play_count(&p, "stage"); k++) {
      const json_t *stage = play_find(&p, "stage", k);
      buf_printf(&got, "%s%d " STR_FMT, k ? " " : "",
                 (int)json_integer_value(json_object_get(stage, "vote")),
                 STR_ARG(data_get(stage, "outcome")));
    }
    if (strcmp(buf_c(&got), panel_cases[i].stages) != 0)
      fail_msg("%s: %s", panel_cases[i].title, buf_c(&got));
    if (panel_cases[i].stopped != NULL) {
      expect_stop(&p, panel_cases[i].stopped,
                  strcmp(panel_cases[i].stopped, "judge_unavailable") == 0 ? "auth" : NULL);
    } else {
      const json_t *judgment = play_find(&p, "judgment", 0);
      assert_int_equal(json_integer_value(json_object_get(judgment, "rule")), panel_cases[i].rule);
    }
  }
}

/* Each vote is another provider's, asked with the rules in another order; numbers stay. */
TEST(votes_are_asked_in_turned_order) {
  static const char *const first_rule[] = {
      "1. one\n2. two\n3. three\n", "2. two\n3. three\n1. one\n", "3. three\n1. one\n2. two\n"};
  struct play p;
  for (int fixed = 0; fixed < 2; fixed++) {
    buf_auto_t workflow = {0};
    for (const char *at = panel_workflow; *at; at++)
      if (strncmp(at, "%s", 2) == 0)
        buf_puts(&workflow, fixed ? ",'order':'fixed'" : ""), at++;
      else
        buf_putc(&workflow, *at);
    play_all(&p, "order", workflow.p, NULL,
             "{'a':'done','a/structured_output':[" SAYS(1) "," SAYS(2) "," SAYS(1) "]}");
    expect_providers(&p, "sim sim other third");
    for (int vote = 1; vote <= 3; vote++) {
      const json_t *start = play_find(&p, "call_start", vote);
      buf_auto_t prompt = {0};
      assert_int_equal(json_integer_value(json_object_get(start, "vote")), vote);
      JSON_EACH(json_object_get(start, "prompt"), i, part) {
        struct str place = data_get(part, "ref");
        buf_str(&prompt, place.n > 0 ? play_place(&p, place.p) : data_str(part));
      }
      assert_non_null(strstr(prompt.p, first_rule[fixed ? 0 : vote - 1]));
    }
    play_deinit(&p);
  }
}

TEST_GROUP(NULL, play_over)
