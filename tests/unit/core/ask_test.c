/* Tests questions to people: what may be asked, and which answer means which question. */

#include "base/memory.h"
#include "core/answer.h"
#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

#define BY   "{'uid':1000,'name':'ann'}"
#define DONE "'rules':[{'condition':'done','next':'COMPLETE'}]"

/* --- what a workflow may ask --- */

TEST(what_cannot_be_asked_is_refused) {
  DATA_ROWS("core/ask/what_cannot_be_asked_is_refused.yaml", c, movement, error) {
    buf_auto_t text = {0};
    struct err err = {0};
    buf_printf(&text, "{'name':'w','movements':[{'name':'a',%s," DONE "}]}", c.movement);
    json_auto_t *doc = data_json(buf_c(&text));
    struct workflow *wf = workflow_build(doc, &err);
    if (wf != NULL || strstr(err.text, c.error) == NULL)
      fail_msg("%s: %s", c.movement, wf ? "taken" : err.text);
  }
}

TEST(a_default_over_the_bound_is_refused) {
  json_auto_t *doc = data_json("{'name':'w','movements':[{'name':'a','ask':{'question':'?',"
                               "'deadline':'1h'}," DONE "}]}");
  json_t *ask = json_object_get(json_array_get(json_object_get(doc, "movements"), 0), "ask");
  char_auto_t *text = malloc(LIMIT_ANSWER_BYTES + 1);
  memset(text, 'x', LIMIT_ANSWER_BYTES + 1);
  for (size_t over = 0; over < 2; over++) {
    struct err err = {0};
    json_object_set_new(ask, "default", json_stringn(text, LIMIT_ANSWER_BYTES + over));
    struct workflow *wf = workflow_build(doc, &err);
    assert_int_equal(wf == NULL, over);
    assert_true(!over || strstr(err.text, "ask.default: is over 65536 bytes"));
    workflow_unref(wf);
  }
}

TEST(choices_mean_rules_by_their_words) {
  static const struct {
    const char *choices;
    bool no_judge;
  } cases[] = {
      {"'choices':['ship','wait'],", true}, {"'choices':['ship','never'],", false}, {"", false}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t text = {0};
    struct err err = {0};
    buf_printf(&text,
               "{'name':'w','movements':[{'name':'a','ask':{%s'question':'?'},'rules':["
               "{'condition':'when(iteration > 9)','next':'ABORT'},"
               "{'condition':'ship','next':'COMPLETE'},{'condition':'wait','next':'a'}]}]}",
               cases[i].choices);
    json_auto_t *doc = data_json(buf_c(&text));
    struct workflow *wf = workflow_build(doc, &err);
    assert_non_null(wf);
    const struct movement *m = &wf->movements[0];
    assert_int_equal(ask_needs_no_judge(m), cases[i].no_judge);
    assert_int_equal(ask_rule(m, STR("wait")), 3);
    assert_int_equal(ask_rule(m, STR("when(iteration > 9)")), 0);
    assert_int_equal(ask_rule(m, STR("Wait")), 0);
    workflow_unref(wf);
  }
  json_auto_t *choices = data_json("['ship','wait']");
  assert_int_equal(ask_choice(choices, STR("wait")), 2);
  assert_int_equal(ask_choice(choices, STR("wai")), 0);
  assert_int_equal(ask_choice(NULL, STR("wait")), 0);
}

/* --- which question, and is it an answer? --- */

/* Two movements of a group ask at once, then one is asked for approval. */
static const char two[] = "{'name':'w','movements':["
                          "{'name':'g','parallel':["
                          "{'name':'x','ask':{'question':'Which?','choices':['ship','wait']},"
                          "'rules':[{'condition':'ship'},{'condition':'wait'}]},"
                          "{'name':'y','ask':{'question':'How many?','schema':{'type':'integer'}},"
                          "'rules':[{'condition':'when(true)'}]}],"
                          "'rules':[{'condition':'when(true)','next':'c'}]},"
                          "{'name':'c','command':['deploy'],'approve':{'deadline':'1h'},"
                          "'rules':[{'condition':'when(true)','next':'COMPLETE'}]}]}";
static const char script[] = "{'c':{'text':'deployed','exit':0}}";

/* Gives the answer to the session; NULL: it took it, else why not. */
static const char *say(struct play *p, struct core_answer answer) {
  static struct err err;
  json_auto_t *by = data_json(BY);
  struct event ev = play_event(p, EVENT_ANSWER);
  err = (struct err){0};
  answer.by = by;
  if (!core_answer_settle(&p->core, &answer, p->now_ms, &err)) {
    assert_null(answer.value);
    return err.text;
  }
  ev.answer = &answer;
  ev.hold = p->core.status == SESSION_STOPPED; /* a resume goes on */
  play_decide(p, &ev);
  play_commit(p);
  core_answer_deinit(&answer);
  return NULL;
}

static void refused(struct play *p, struct core_answer answer, const char *error) {
  const char *why = say(p, answer);
  if (why == NULL || strstr(why, error) == NULL)
    fail_msg("%s, not %s", why ? why : "taken", error);
}

static struct core_answer words(const char *movement, const char *text) {
  return (struct core_answer){.movement = movement, .text = str_from(text)};
}

static void resume(struct play *p) {
  play_send(p, EVENT_RESUME, NULL, NULL);
  play_run(p);
}

TEST(an_answer_finds_its_question) {
  AUTO(play_deinit) struct play p;
  char_auto_t *long_text = malloc(LIMIT_ANSWER_BYTES + 2);
  memset(long_text, '7', LIMIT_ANSWER_BYTES + 1);
  long_text[LIMIT_ANSWER_BYTES + 1] = '\0';
  play_all(&p, "answers", two, NULL, script);
  assert_int_equal(p.core.status, SESSION_STOPPED);
  assert_int_equal(core_question_count(&p.core), 2);
  refused(&p, words(NULL, "ship"), "several movements ask: name the one to answer: g.x, g.y");
  refused(&p, words("c", "ship"), "c asks nothing: what is open is asked by g.");
  refused(&p, (struct core_answer){.question = 1, .text = STR("ship")},
          "that question asks nothing: what is open is asked by");
  refused(&p, words("x", "sink"), "the answer must be one of its choices: ship, wait");
  refused(&p, (struct core_answer){.movement = "x", .says = SAYS_CHOICE, .choice = 3},
          "there is no choice 3: use 1 to 2");
  refused(&p, (struct core_answer){.movement = "x", .says = SAYS_CHOICE}, "there is no choice 0");
  refused(&p, (struct core_answer){.movement = "y", .says = SAYS_CHOICE, .choice = 1},
          "the question has no choices");
  refused(&p, (struct core_answer){.movement = "x", .says = SAYS_APPROVE},
          "it asks for an answer: segue answer");
  refused(&p, words("y", "many"), "the answer does not fit the schema: ");
  refused(&p, words("y", " "), "the answer is empty");
  refused(&p, words("y", long_text), "an answer has at most 65536 bytes");
  assert_null(say(&p, (struct core_answer){.movement = "g.x", .says = SAYS_CHOICE, .choice = 2}));
  refused(&p, words("x", "ship"), "g.x was answered already, by ann (uid 1000) at ");
  assert_null(say(&p, words(NULL, "7"))); /* the only one that is left */
  resume(&p);
  assert_int_equal(json_integer_value(json_object_get(p.core.structured, "g.y")), 7);
  refused(&p, (struct core_answer){.text = STR("ship")}, "it asks for approval: segue approve");
  const struct turn *turn = p.core.turns;
  assert_true(turn->until_ms == turn->asked_ms + 3600000);
  refused(&p, (struct core_answer){.says = SAYS_REJECT, .text = {long_text, LIMIT_WHY_BYTES + 1}},
          "a reason has at most 4096 bytes");
  p.now_ms = turn->until_ms;
  refused(&p, (struct core_answer){.says = SAYS_APPROVE}, "its deadline passed at 20");
  p.now_ms = turn->until_ms - 1;
  assert_null(say(&p, (struct core_answer){.question = turn->question_seq, .says = SAYS_APPROVE}));
  resume(&p);
  assert_int_equal(p.core.status, SESSION_ENDED);
  assert_int_equal(p.core.outcome, END_COMPLETE);
  refused(&p, (struct core_answer){.says = SAYS_APPROVE}, "c was answered already");
}

TEST(who_asks_nothing_says_so) {
  AUTO(play_deinit) struct play p;
  play_init(&p, "nothing", "{'name':'w','movements':[{'name':'a','command':['x']," DONE "}]}", NULL,
            "{}");
  play_start(&p);
  refused(&p, words(NULL, "yes"), "it asks nothing");
  refused(&p, words("a", "yes"), "it asks nothing");
}

/* A schema of texts takes the words as they are, one of others what they mean as JSON. */
TEST(an_answer_is_json_or_a_text) {
  static const struct {
    const char *schema, *text, *value; /* NULL: it does not fit */
  } cases[] = {
      {"{'type':'string'}", "plain words", "'plain words'"},
      {"{'type':'string','maxLength':3}", "plain words", NULL},
      {"{'type':'integer'}", " 42 ", "42"},
      {"{'type':'object','required':['n']}", "{\"n\":1}", "{'n':1}"},
      {"{'type':'object','required':['n']}", "{\"m\":1}", NULL},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    json_auto_t *document = data_json(cases[i].schema);
    struct schema *schema = schema_compile(document, NULL, NULL, NULL);
    json_auto_t *value = ask_read(schema, document, str_from(cases[i].text), &err);
    json_auto_t *wanted = cases[i].value ? data_json(cases[i].value) : NULL;
    if ((value != NULL) != (wanted != NULL) || (value != NULL && !json_equal(value, wanted)))
      fail_msg("case %zu: %s", i, err.text);
    assert_int_equal(err.code == ERR_USAGE, value == NULL);
    schema_free(schema);
  }
}

/* --- deadlines, rejections --- */

TEST(a_deadline_takes_the_default) {
  DATA_ROWS("core/ask/a_deadline_takes_the_default.yaml", c, movement, text, outcome) {
    buf_auto_t text = {0};
    AUTO(play_deinit) struct play p;
    buf_printf(&text,
               "{'name':'w','movements':[{'name':'a',%s,"
               "'rules':[{'condition':'when(true)','next':'COMPLETE'}]},"
               "{'name':'b','command':['y'],'rules':[{'condition':'when(true)','next':'COMPLETE'}]}"
               "]}",
               c.movement);
    play_all(&p, c.movement, buf_c(&text), NULL,
             "{'a':{'text':'','exit':0},'b':{'text':'','exit':0}}");
    assert_int_equal(p.core.status, SESSION_STOPPED);
    int64_t until = p.core.turns->until_ms;
    p.now_ms = until - 1; /* nothing is taken before its time, whoever resumes */
    play_send(&p, EVENT_RESUME, NULL, NULL);
    assert_int_equal(core_question_count(&p.core), 1);
    p.now_ms = until;
    resume(&p);
    const json_t *given = json_array_get(p.core.answers, 0);
    assert_string_equal(json_string_value(json_object_get(given, "text")), c.text);
    assert_null(json_object_get(given, "by"));
    assert_int_equal(p.core.outcome, data_among(c.outcome, "none complete abort"));
    assert_int_equal(play_count(&p, "answer"), 1);
  }
}

TEST(a_rejected_child_has_failed) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "child",
           "{'name':'w','movements':[{'name':'g','parallel':["
           "{'name':'x','command':['x'],'approve':{},'rules':[{'condition':'r'}]}],"
           "'rules':[{'condition':'any(error)','next':'ABORT'},"
           "{'condition':'when(true)','next':'COMPLETE'}]}]}",
           NULL, "{}");
  assert_null(say(&p, (struct core_answer){.says = SAYS_REJECT, .text = STR("too early")}));
  resume(&p);
  assert_int_equal(p.core.outcome, END_ABORT);
  assert_int_equal(play_count(&p, "call_start"), 0);
  refused(&p, (struct core_answer){.says = SAYS_APPROVE}, "g.x was answered already, by ann");
}

TEST(a_changed_question_or_answer_is_refused) {
  AUTO(play_deinit) struct play p;
  play_all(&p, "log", two, NULL, script);
  assert_null(say(&p, words("x", "ship")));
  assert_null(say(&p, words("y", "7")));
  resume(&p);
  assert_null(say(&p, (struct core_answer){.says = SAYS_APPROVE}));
  resume(&p);
  DATA_ROWS("core/ask/a_changed_question_or_answer_is_refused.yaml", c, type, changes, error, k)
    play_refuses(&p, play_index(&p, c.type, (int)data_number(c.k)), c.changes, c.error);
}

TEST_GROUP(NULL, play_over)
