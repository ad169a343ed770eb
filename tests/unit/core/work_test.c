/* A movement's value, event by event: generations, checks, corrections, and what comes without
 * one. */
#include "base/memory.h"
#include "support/play.h"
#include "support/test.h"

/* extra: more members of structured_output; rules that look at the value. */
#define WORKFLOW(extra)                                                                            \
  "{'name':'w','movements':["                                                                      \
  "{'name':'mood','instruction':'How does it sound? {task}','structured_output':{'schema':"        \
  "{'type':'object','properties':{'mood':{'enum':['good','bad']},'level':{'type':'integer',"       \
  "'maximum':9}},'required':['mood','level'],'additionalProperties':false}," extra "},"            \
  "'rules':[{'condition':'when(structured.mood.sentinel)',"                                        \
  "'next':'ABORT'},{'condition':'done','next':'tell'}]},"                                          \
  "{'name':'tell','instruction':'It is {structured:mood.mood} ({structured:mood.level}"            \
  "{structured:mood.none}{?structured:mood.level}!{/structured:mood.level}): "                     \
  "{structured:mood}','rules':[{'condition':'done','next':'COMPLETE'}]}]}"

#define GOOD "{\\'mood\\': \\'good\\', \\'level\\': 3}"
#define BAD  "{\\'mood\\': \\'so so\\', \\'level\\': 30}"

/* ' inside of texts is a quote there too: data_json knows no other. */
static void init(struct play *p, const char *title, const char *workflow, const char *script) {
  buf_auto_t w = {0}, s = {0};
  for (const char *c = workflow; *c; c++) {
    if (*c == '\\' && c[1] == '\'')
      buf_puts(&w, "\\\""), c++;
    else
      buf_putc(&w, *c);
  }
  for (const char *c = script; *c; c++) {
    if (*c == '\\' && c[1] == '\'')
      buf_puts(&s, "\\\""), c++;
    else
      buf_putc(&s, *c);
  }
  play_init(p, title, w.p, NULL, s.p);
}

static void expect_types(const struct play *p, size_t from, const char *wanted) {
  char_auto_t *got = play_types(p, from);
  if (strcmp(got, wanted) != 0)
    fail_msg("%s:\n%s\nwanted\n%s", p->title, got, wanted);
}

static void expect_prompt(const struct play *p, const char *piece) {
  if (strstr(buf_c(&p->last_prompt), piece) == NULL)
    fail_msg("%s: not in the prompt: %s\n%s", p->title, piece, buf_c(&p->last_prompt));
}

static json_int_t number(const json_t *record, const char *key) {
  return json_integer_value(json_object_get(record, key));
}

static void expect_structured(const struct play *p, const char *outcome, const char *reason,
                              int attempts) {
  const json_t *record = play_find(p, "structured", -1);
  if (record == NULL || !str_eq_c(data_get(record, "outcome"), outcome) ||
      !str_eq_c(data_get(record, "reason"), reason) || number(record, "attempts") != attempts)
    fail_msg("%s: outcome " STR_FMT ", reason " STR_FMT ", %d attempts", p->title,
             STR_ARG(data_get(record, "outcome")), STR_ARG(data_get(record, "reason")),
             (int)number(record, "attempts"));
}

TEST(a_good_answer_is_the_value_of_later_movements) {
  AUTO(play_deinit) struct play p;
  init(&p, "good", WORKFLOW("'on_failure':'error'"), "{'mood':'So: " GOOD "','tell':'ok'}");
  play_start(&p);
  expect_prompt(&p, "How does it sound? Mend the queue");
  expect_prompt(&p, "\n---\n");
  expect_prompt(&p, "- mood: string [one of: \"good\", \"bad\"] (required)");
  play_run(&p);
  expect_types(&p, 0,
               "session_start turn_start call_start call_end check structured stage stage judgment "
               "turn_end turn_start call_start call_end stage judgment turn_end session_end");
  const json_t *check = play_find(&p, "check", 0);
  assert_true(json_is_true(json_object_get(check, "first_pass")));
  assert_true(str_eq_c(data_get(check, "extract_stage"), "brace"));
  expect_structured(&p, "value", "", 1);
  expect_prompt(&p, "It is good (3!): {\"mood\":\"good\",\"level\":3}");
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

TEST(a_wrong_answer_is_corrected_in_a_new_conversation) {
  AUTO(play_deinit) struct play p;
  init(&p, "corrected",
       WORKFLOW("'on_failure':'error','reask':{'provider':'other','model':'mender'}"),
       "{'mood':'" BAD "','mood/reask':'" GOOD "','tell':'ok'}");
  play_start(&p);
  play_decide_next(&p); /* the wrong answer */
  play_commit(&p);
  const json_t *start = play_find(&p, "call_start", -1);
  assert_true(str_eq_c(data_get(start, "purpose"), "reask"));
  assert_true(str_eq_c(data_get(start, "provider"), "other"));
  assert_true(str_eq_c(data_get(start, "model"), "mender"));
  assert_null(json_object_get(start, "stage"));
  assert_true(str_eq_c(data_get(json_object_get(start, "schema"), "ref"), "3#/schema"));
  const char *prompt = buf_c(&p.last_prompt);
  const char *order[] = {"- mood: string [one of: \"good\", \"bad\"]", "How does it sound?",
                         "\"so so\", \"level\"",
                         ("- $.level: 30 is greater than the maximum 9\n"
                          "- $.mood: \"so so\" is not one of \"good\", \"bad\"\n\n")};
  for (size_t i = 0; i < ARRAY_LEN(order); i++) {
    const char *at = strstr(prompt, order[i]);
    if (at == NULL)
      fail_msg("not in this order: %s\n%s", order[i], buf_c(&p.last_prompt));
    prompt = at;
  }
  assert_string_equal(prompt, order[3]); /* errors last */
  play_run(&p);
  expect_structured(&p, "value", "", 2);
  assert_int_equal(number(json_object_get(play_find(&p, "structured", 0), "failures"), "schema"),
                   1);
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

TEST(without_a_value_the_session_fails) {
  AUTO(play_deinit) struct play p;
  init(&p, "error", WORKFLOW("'on_failure':'error','max_reasks':1"),
       "{'mood':'" BAD "','mood/reask':'no idea'}");
  play_to_end(&p);
  expect_structured(&p, "failed", "exhausted", 2);
  const json_t *end = play_find(&p, "session_stop", 0);
  assert_true(str_eq_c(data_get(end, "reason"), "failed"));
  assert_true(str_eq_c(data_get(json_object_get(end, "error"), "class"), "structured_output"));
  assert_true(str_eq_c(data_get(json_object_get(end, "error"), "reason"), "exhausted"));
  assert_true(str_eq_c(data_get(end, "message"),
                       "no valid value after 2 attempts: no correction was left: $: the text holds "
                       "no JSON value"));
  const json_t *record = play_find(&p, "structured", 0);
  assert_int_equal(json_array_size(json_object_get(record, "errors")), 1);
  assert_int_equal(number(record, "call"), 2); /* whose answer is the last */
}

TEST(a_sentinel_goes_on) {
  AUTO(play_deinit) struct play p;
  init(&p, "sentinel", WORKFLOW("'on_failure':'sentinel','max_reasks':0"), "{'mood':'no idea'}");
  play_to_end(&p);
  expect_structured(&p, "sentinel", "exhausted", 1);
  assert_int_equal(p.core.outcome, END_ABORT); /* the rule saw it */
  const json_t *value = json_object_get(play_find(&p, "structured", 0), "value");
  assert_int_equal(json_object_size(value), 1);
  assert_int_equal(number(json_object_get(value, "sentinel"), "attempts"), 1);
}

TEST(a_refusal_is_not_corrected) {
  AUTO(play_deinit) struct play p;
  init(&p, "refused", WORKFLOW("'on_failure':'sentinel'"),
       "{'mood':{'error':'refused','message':'I cannot'},'tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "sentinel", "refused", 1);
  assert_int_equal(play_count(&p, "call_start"), 1);
}

TEST(a_cut_raises_the_limit_once) {
  struct play p;
  init(&p, "cut", WORKFLOW("'on_failure':'error'"),
       "{'mood':[{'error':'length','message':'cut','text':'{'},'" GOOD "'],'tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "value", "", 2);
  const json_t *second = play_find(&p, "call_start", 1);
  assert_true(str_eq_c(data_get(second, "purpose"), "execute"));
  assert_int_equal(number(json_object_get(second, "options"), "max_tokens"), LIMIT_RAISED_TOKENS);
  play_deinit(&p);
  init(&p, "cut twice",
       "{'name':'w','options':{'max_tokens':100},'movements':[{'name':'mood','structured_output':{"
       "'schema':{'type':'object'},'on_failure':'escalate'},'rules':[{'condition':'done',"
       "'next':'COMPLETE'}]}]}",
       "{'mood':{'error':'length','message':'cut'}}");
  play_to_end(&p);
  expect_structured(&p, "escalated", "length", 2);
  assert_int_equal(number(json_object_get(play_find(&p, "call_start", 1), "options"), "max_tokens"),
                   200);
  assert_true(str_eq_c(data_get(play_find(&p, "session_stop", 0), "reason"), "escalated"));
  play_deinit(&p);
  init(&p, "a limit that cannot be doubled",
       "{'name':'w','options':{'max_tokens':1000000000},'movements':[{'name':'mood',"
       "'structured_output':{'schema':{'type':'object'},'on_failure':'error'},'rules':[{"
       "'condition':'done','next':'COMPLETE'}]}]}",
       "{'mood':[{'error':'length','message':'cut'},'{}']}");
  play_to_end(&p);
  assert_int_equal(number(json_object_get(play_find(&p, "call_start", 1), "options"), "max_tokens"),
                   LIMIT_OPTION_TOKENS);
  play_deinit(&p);
}

TEST(an_escalation_stops_and_a_resume_tries_on) {
  AUTO(play_deinit) struct play p;
  init(&p, "escalated", WORKFLOW("'on_failure':'escalate','max_reasks':1"),
       "{'mood':'" BAD "','mood/reask':['" BAD "','" GOOD "'],'tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "escalated", "exhausted", 2);
  const json_t *stop = play_find(&p, "session_stop", 0);
  const json_t *question = json_object_get(stop, "question");
  assert_true(str_eq_c(data_get(stop, "reason"), "escalated"));
  assert_non_null(strstr(data_get(question, "text").p, "the movement \"mood\""));
  assert_int_equal(number(question, "call"), 2);
  assert_int_equal(json_array_size(json_object_get(question, "errors")), 2);
  size_t from = play_lines(&p);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  expect_types(&p, from,
               "session_resume check call_start call_end check structured stage stage judgment "
               "turn_end turn_start call_start call_end stage judgment turn_end session_end");
  expect_structured(&p, "value", "", 2);
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

/* Dies before the stop is written: the escalation is not forgotten. */
TEST(an_escalation_survives_a_crash) {
  AUTO(play_deinit) struct play p;
  init(&p, "crashed", WORKFLOW("'on_failure':'escalate','max_reasks':0"), "{'mood':'" BAD "'}");
  play_start(&p);
  play_decide_next(&p);
  assert_int_equal(p.out.record_count, 5); /* call_end check structured question session_stop */
  play_crash(&p, 3);
  struct event ev = play_event(&p, EVENT_RESUME);
  ev.reason = "crash";
  play_decide(&p, &ev);
  play_commit(&p);
  assert_int_equal(p.core.status, SESSION_STOPPED);
  assert_true(str_eq_c(buf_view(&p.core.stop_reason), "escalated"));
  assert_int_equal(play_count(&p, "structured"), 1);
}

TEST(trouble_of_the_backend_is_no_failure_of_the_value) {
  AUTO(play_deinit) struct play p;
  init(&p, "trouble", WORKFLOW("'on_failure':'error'"),
       "{'mood':'" BAD "','mood/reask':[{'error':'auth','message':'who are you?'},'" GOOD
       "'],'tell':'ok'}");
  play_to_end(&p);
  assert_int_equal(p.core.status, SESSION_STOPPED);
  assert_true(str_eq_c(data_get(play_find(&p, "session_stop", 0), "reason"), "provider_error"));
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  expect_structured(&p, "value", "", 2);
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

TEST(invariants_are_run_and_told) {
  AUTO(play_deinit) struct play p;
  init(&p, "invariants",
       WORKFLOW("'on_failure':'error','max_reasks':3,'invariants':['level > 1',"
                "{'command':['./check']},{'ai':'Is it so?'}]"),
       "{'mood':'{\\'mood\\': \\'bad\\', \\'level\\': 1}','mood/reask':["
       "'{\\'mood\\': \\'bad\\', \\'level\\': 2}','{\\'mood\\': \\'bad\\', \\'level\\': 4}','" GOOD
       "'],"
       "'mood/check/command':[{'text':'','stderr':'two is odd','exit':1},{'exit':0,'text':'fine'}],"
       "'mood/check/sim':["
       "'{\\'reason\\': \\'it is good\\', \\'holds\\': false}',"
       "'{\\'reason\\': \\'yes\\', \\'holds\\': true}'],'tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "value", "", 4);
  const json_t *failures = json_object_get(play_find(&p, "structured", 0), "failures");
  assert_int_equal(number(failures, "invariant"), 3);
  const json_t *check = play_find(&p, "check", 1);
  const json_t *error = json_array_get(json_object_get(check, "errors"), 0);
  assert_non_null(strstr(data_get(error, "message").p, "two is odd"));
  assert_int_equal(json_array_size(json_object_get(check, "runs")), 1);
  check = play_find(&p, "check", 2);
  assert_int_equal(json_array_size(json_object_get(check, "runs")), 2);
  error = json_array_get(json_object_get(check, "errors"), 0);
  assert_non_null(strstr(data_get(error, "message").p, "it is good"));
  const json_t *run = NULL;
  for (int i = 0; (run = play_find(&p, "call_start", i)) != NULL; i++) {
    bool checks = str_eq_c(data_get(run, "purpose"), "check");
    assert_true(checks == (json_object_get(run, "invariant") != NULL));
    if (checks)
      assert_true(
          str_eq_c(data_get(run, "provider"), number(run, "invariant") == 2 ? "command" : "sim"));
  }
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

/* Its stderr stands in a blob beside an stdout that stands in the log. */
TEST(a_long_complaint_of_a_command_is_told) {
  AUTO(play_deinit) struct play p;
  buf_auto_t script = {0}, words = {0};
  while (words.n <= LIMIT_INLINE_TEXT_BYTES)
    buf_puts(&words, "words and words ");
  buf_printf(&script,
             "{'mood':'" GOOD "','mood/reask':'" GOOD
             "','mood/check/command':[{'text':'','exit':1,'stderr':'two is odd; %s'},"
             "{'text':'','exit':0}],'tell':'ok'}",
             buf_c(&words));
  init(&p, "long stderr", WORKFLOW("'on_failure':'error','invariants':[{'command':['true']}]"),
       buf_c(&script));
  play_to_end(&p);
  expect_structured(&p, "value", "", 2);
  const json_t *error = json_array_get(json_object_get(play_find(&p, "check", 0), "errors"), 0);
  assert_non_null(strstr(data_get(error, "message").p, "two is odd"));
  assert_non_null(json_object_get(play_find(&p, "call_end", 1), "stderr_blob"));
}

TEST(an_unreadable_verdict_on_an_invariant_is_none) {
  AUTO(play_deinit) struct play p;
  init(&p, "unreadable", WORKFLOW("'on_failure':'error','invariants':[{'ai':'Is it so?'}]"),
       "{'mood':'" GOOD
       "','mood/check/sim':['who knows','{\\'reason\\': \\'yes\\', \\'holds\\': true}'],"
       "'tell':'ok'}");
  play_to_end(&p);
  assert_int_equal(p.core.status, SESSION_STOPPED);
  assert_true(str_eq_c(data_get(play_find(&p, "session_stop", 0), "reason"), "check_unavailable"));
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  expect_structured(&p, "value", "", 1);
  assert_int_equal(play_count(&p, "call_start"), 4);
}

TEST(a_killed_command_says_nothing_of_an_invariant) {
  AUTO(play_deinit) struct play p;
  init(&p, "killed", WORKFLOW("'on_failure':'error','invariants':[{'command':['true']}]"),
       "{'mood':'" GOOD "','mood/check/command':[{'text':'','exit':137},{'text':'','exit':0}],"
       "'tell':'ok'}");
  play_to_end(&p);
  assert_int_equal(p.core.status, SESSION_STOPPED);
  const json_t *stop = play_find(&p, "session_stop", 0);
  assert_true(str_eq_c(data_get(stop, "reason"), "check_unavailable"));
  assert_non_null(strstr(data_get(stop, "message").p, "137"));
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  expect_structured(&p, "value", "", 1);
}

/* A log of a program that took it for a verdict: what its check says stays. */
TEST(a_killed_command_that_was_judged_stays_so) {
  AUTO(play_deinit) struct play p;
  init(&p, "judged", WORKFLOW("'on_failure':'error','invariants':[{'command':['true']}]"),
       "{'mood':'" GOOD "','mood/check/command':[{'text':'','exit':1},{'text':'','exit':0}],"
       "'mood/reask':'" GOOD "','tell':'ok'}");
  play_start(&p);
  for (int i = 0; i < 2; i++) { /* the answer; what the command says of it */
    play_step(&p);
  }
  assert_int_equal(play_count(&p, "check"), 1);
  struct core *const cores[] = {&p.core, &p.shadow};
  for (size_t i = 0; i < ARRAY_LEN(cores); i++) {
    struct call *call = cores[i]->turns->calls;
    while (call->invariant == 0)
      call = call->next;
    call->exit = 137;
  }
  play_run(&p);
  expect_structured(&p, "value", "", 2);
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

TEST(budgets_end_it) {
  struct play p;
  init(&p, "tokens", WORKFLOW("'on_failure':'sentinel','max_reasks':5,'token_budget':100"),
       "{'mood':{'text':'" BAD
       "','tokens':60},'mood/reask':{'text':'{}','tokens':60},'tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "sentinel", "tokens", 2);
  play_deinit(&p);
  init(&p, "uncounted", WORKFLOW("'on_failure':'sentinel','max_reasks':5,'token_budget':5"),
       "{'mood':'" BAD "','tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "sentinel", "tokens", 1);
  play_deinit(&p);
  init(&p, "time", WORKFLOW("'on_failure':'sentinel','max_reasks':5,'time_budget_ms':1000"),
       "{'mood':{'text':'" BAD "','ms':600},'mood/reask':{'text':'{}','ms':600},'tell':'ok'}");
  play_start(&p);
  assert_int_equal(number(play_find(&p, "call_start", 0), "timeout_ms"), 1000);
  play_run(&p);
  expect_structured(&p, "sentinel", "time", 2);
  assert_true(number(play_find(&p, "call_start", 1), "timeout_ms") < 400);
  play_deinit(&p);
}

/* A call that the budget ends is no trouble of the backend: trying again would end the same way. */
TEST(time_that_runs_out_during_a_call_ends_it) {
  struct play p;
  init(&p, "late", WORKFLOW("'on_failure':'sentinel','time_budget_ms':1000"),
       "{'mood':{'text':'" BAD "','ms':600},"
       "'mood/reask':{'error':'timeout','message':'late','ms':400},'tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "sentinel", "time", 1);
  assert_int_equal(p.core.outcome, END_ABORT);
  play_deinit(&p);
  init(&p, "never", WORKFLOW("'on_failure':'error','time_budget_ms':1000"),
       "{'mood':{'error':'timeout','message':'late','ms':1000}}");
  play_to_end(&p);
  expect_structured(&p, "failed", "time", 0);
  play_deinit(&p);
  init(&p, "stalled", WORKFLOW("'on_failure':'error','time_budget_ms':9000"),
       "{'mood':{'error':'timeout','message':'no byte','ms':1000}}");
  play_to_end(&p);
  assert_int_equal(play_count(&p, "structured"), 0);
  assert_true(str_eq_c(data_get(play_find(&p, "session_stop", 0), "reason"), "provider_error"));
  play_deinit(&p);
}

TEST(a_new_round_has_new_budgets) {
  AUTO(play_deinit) struct play p;
  init(&p, "round", WORKFLOW("'on_failure':'escalate','token_budget':5"),
       "{'mood':'" BAD "','mood/reask':'" GOOD "','tell':'ok'}");
  play_to_end(&p);
  expect_structured(&p, "escalated", "tokens", 1);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  expect_structured(&p, "value", "", 2);
}

TEST(a_command_makes_a_value_too) {
  AUTO(play_deinit) struct play p;
  init(&p, "command",
       "{'name':'w','movements':[{'name':'mood','command':['count'],'structured_output':{"
       "'schema':{'type':'object','required':['n']},'on_failure':'error',"
       "'reask':{'provider':'sim'}},'rules':[{'condition':'when(exit == 3)','next':'COMPLETE'}]}]}",
       "{'mood':{'text':'n = 4','exit':3},'mood/reask':'{\\'n\\': 4}'}");
  play_to_end(&p);
  expect_structured(&p, "value", "", 2);
  assert_int_equal(p.core.outcome, END_COMPLETE);
}

TEST(a_backend_that_enforces_gets_the_schema_apart) {
  static const struct capability native[] = {{.name = "sim",
                                              .summary = "test",
                                              .options = OPTION_ALL,
                                              .can_judge = true,
                                              .takes_model = true,
                                              .structured = "native"},
                                             {.name = NULL}};
  AUTO(play_deinit) struct play p;
  init(&p, "native", WORKFLOW("'on_failure':'error'"),
       "{'mood':{'text':'','structured':{'mood':'bad','level':9}},'tell':'ok'}");
  p.env.providers = native;
  play_start(&p);
  assert_null(strstr(buf_c(&p.last_prompt), "- mood: string"));
  assert_non_null(json_object_get(play_find(&p, "call_start", 0), "schema"));
  play_run(&p);
  assert_true(str_eq_c(data_get(play_find(&p, "check", 0), "extract_stage"), "native"));
  expect_prompt(&p, "It is bad (9!): {\"mood\":\"bad\",\"level\":9}");
  expect_prompt(&p, "{\"mood\":\"bad\",\"level\":9}\n"); /* the text before, from the value */
}

/* Dies at every record of a session with all of it, and goes on to the same end. */
TEST(every_crash_leads_to_the_same_value) {
  static const char workflow[] =
      WORKFLOW("'on_failure':'error','max_reasks':3,'invariants':[{'command':['./check']},"
               "{'ai':'Is it so?'}]");
  static const char script[] =
      "{'mood':[{'error':'length','message':'cut'},{'error':'network','message':'gone'},'" BAD
      "'],'mood/reask':['{\\'mood\\': \\'bad\\', \\'level\\': 2}','" GOOD "'],"
      "'mood/check/command':[{'text':'','exit':1},{'exit':0,'text':''}],"
      "'mood/check/sim':['{\\'reason\\': \\'yes\\', \\'holds\\': true}'],'tell':'ok'}";
  struct play whole;
  init(&whole, "undisturbed", workflow, script);
  play_start(&whole);
  play_run(&whole);
  expect_structured(&whole, "value", "", 4);
  const json_t *value = json_object_get(play_find(&whole, "structured", 0), "value");
  for (size_t at = 1; at < play_lines(&whole); at++) {
    struct play p;
    char title[64];
    bool crashed = false;
    print_into(title, sizeof title, "crash behind record %zu", at);
    init(&p, title, workflow, script);
    play_decide_start(&p);
    for (int i = 0; p.core.status != SESSION_ENDED || p.out.record_count > 0; i++) {
      size_t after = play_lines(&p) + p.out.record_count;
      assert_true(i < 100);
      if (!crashed && after >= at) {
        play_crash(&p, at - play_lines(&p));
        crashed = true;
        if (p.core.status == SESSION_ENDED)
          break;
        struct event ev = play_event(&p, EVENT_RESUME);
        ev.reason = "crash";
        play_decide(&p, &ev);
      }
      play_commit(&p);
      if (p.pending_count > 0)
        play_decide_next(&p);
    }
    expect_structured(&p, "value", "", 4);
    assert_true(json_equal(value, json_object_get(play_find(&p, "structured", 0), "value")));
    assert_int_equal(play_count(&p, "check"), 4);
    assert_int_equal(p.core.outcome, END_COMPLETE);
    play_deinit(&p);
  }
  play_deinit(&whole);
}

TEST(a_check_that_cannot_run_is_an_error) {
  struct play p;
  play_init(&p, "no check",
            "{'name':'w','movements':[{'name':'mood','on_error':[{'class':'crashed','to':'ABORT'}],"
            "'structured_output':{'schema':{'type':'integer'},'on_failure':'error','invariants':[{'"
            "command':["
            "'true']}]},'rules':[{'condition':'x','next':'COMPLETE'}]}]}",
            NULL, "{'mood':'1','mood/check/command':[{'text':'','exit':137}]}");
  play_start(&p);
  play_run(&p);
  assert_int_equal(p.core.outcome, END_ABORT);
  assert_true(str_eq_c(data_get(play_find(&p, "turn_end", 0), "class"), "crashed"));
  play_deinit(&p);
}

TEST_GROUP(NULL, play_over)
