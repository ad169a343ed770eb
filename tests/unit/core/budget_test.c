/* Budgets: which sum stands against which limit, what a person adds, and what is told. */
#include "core/budget.h"

#include "base/memory.h"
#include "core/state.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define DONE "'rules':[{'condition':'done','next':'COMPLETE'}]"

static const char workflow[] =
    "{'name':'w','budget':{'tokens':1000,'cost':2,'time':'10m','calls':5,'movements':3},"
    "'movements':["
    "{'name':'a','budget':{'tokens':500,'movements':2,'on_exceed':'stop',"
    "'call':{'tokens':100,'cost':0.5,'time':'1m'}}," DONE "},"
    "{'name':'g','budget':{'tokens':300,'time':'5m'},'parallel':["
    "{'name':'x','rules':[{'condition':'r'}]},{'name':'y','rules':[{'condition':'r'}]}]," DONE "},"
    "{'name':'free'," DONE "}]}";

/* A session with one open turn and its call. */
struct bed {
  struct core core;
  struct turn turn;
  struct call call;
};

static void bed_begin(struct bed *b, const char *text, const char *movement) {
  json_auto_t *doc = data_json(text);
  struct err err = {0};
  *b = (struct bed){.turn = {.id = 1, .calls = &b->call},
                    .call = {.id = 1, .state = CALL_RUNNING, .provider = (char *)(size_t) "p"}};
  core_init(&b->core);
  b->core.workflow = workflow_build(doc, &err);
  if (b->core.workflow == NULL)
    fail_msg("%s", err.text);
  b->core.movement_counts = calloc(b->core.workflow->movement_count, sizeof(long));
  b->core.turns = &b->turn;
  b->turn.movement = (size_t)workflow_find(b->core.workflow, str_from(movement));
}

static void bed_end(struct bed *b) {
  b->core.turns = NULL;
  core_deinit(&b->core);
}

static void use(struct bed *b, const char *movement, long tokens, double usd, int64_t ms) {
  json_auto_t *usage = json_pack("{sI sf}", "input", (json_int_t)tokens, "cost_usd", usd);
  spends_add(&b->core.spends, PURPOSE_EXECUTE, str_from(movement), STR("p"), usage, ms);
}

static void same_json(const char *what, json_t *owned_got, const char *want) {
  json_auto_t *wanted = data_json(want);
  char_auto_t *text = owned_got ? json_dumps(owned_got, JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
  if (owned_got == NULL || !json_equal(owned_got, wanted))
    fail_msg("%s: %s, not %s", what, text ? text : "nothing", want);
  json_decref(owned_got);
}

TEST(amounts_are_read_as_people_write_them) {
  static const struct {
    const char *object;
    enum budget_unit unit;
    int64_t limit, call;
  } cases[] = {
      {"{}", BUDGET_TOKENS, -1, -1},
      {"{'tokens':7,'call':{'tokens':3}}", BUDGET_TOKENS, 7, 3},
      {"{'tokens':7.5}", BUDGET_TOKENS, -1, -1},
      {"{'cost':0.25,'call':{'cost':1}}", BUDGET_COST, 250000000, 1000000000},
      {"{'cost':-1,'call':{'cost':'1'}}", BUDGET_COST, -1, -1},
      {"{'cost':1e300}", BUDGET_COST, -1, -1},
      {"{'time':'2m','call':{'time':'10s'}}", BUDGET_TIME, 120000, 10000},
      {"{'time':5,'call':{'time':'soon'}}", BUDGET_TIME, -1, -1},
      {"{'calls':4}", BUDGET_CALLS, 4, -1},
      {"{'movements':2}", BUDGET_MOVEMENTS, 2, -1},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *object = data_json(cases[i].object);
    struct budget budget;
    budget_read(object, &budget);
    if (budget.limit[cases[i].unit] != cases[i].limit ||
        budget.call[cases[i].unit] != cases[i].call)
      fail_msg("%s: %lld %lld", cases[i].object, (long long)budget.limit[cases[i].unit],
               (long long)budget.call[cases[i].unit]);
    assert_false(budget.stops);
  }
}

/* One more than the limit's predecessor decides. */
TEST(a_call_is_refused_at_a_limit_and_not_before) {
  static const struct {
    const char *movement, *spender; /* whose turn wants a call, and who spent */
    long tokens;
    double usd;
    int64_t ms;
    const char *hit; /* NULL: it may start */
  } cases[] = {
      {"free", "a", 999, 0, 0, NULL},
      {"free", "a", 1000, 0, 0, "{'of':'session','unit':'tokens','used':1000,'limit':1000}"},
      {"free", "a", 0, 1.99, 0, NULL},
      {"free", "a", 0, 2, 0, "{'of':'session','unit':'cost','used':2.0,'limit':2.0}"},
      {"free", "a", 0, 0, 599999, NULL},
      {"free", "a", 0, 0, 600000, "{'of':'session','unit':'time','used':600000,'limit':600000}"},
      {"free", "a", 500, 0, 0, NULL}, /* another's budget */
      {"a", "a", 499, 0, 0, NULL},
      {"a", "a", 500, 0, 0,
       "{'of':'movement','movement':'a','unit':'tokens','used':500,'limit':500}"},
      {"g.y", "g.x", 299, 0, 0, NULL},
      {"g.y", "g.x", 300, 0, 0,
       "{'of':'movement','movement':'g','unit':'tokens','used':300,'limit':300}"},
      {"g.y", "g.x", 0, 0, 300000,
       "{'of':'movement','movement':'g','unit':'time','used':300000,'limit':300000}"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct bed b;
    struct budget_hit hit;
    bed_begin(&b, workflow, cases[i].movement);
    use(&b, cases[i].spender, cases[i].tokens, cases[i].usd, cases[i].ms);
    bool refused = budget_refuses_call(&b.core, &b.turn, NULL, &hit);
    if (refused != (cases[i].hit != NULL))
      fail_msg("case %zu: %d", i, refused);
    if (refused)
      same_json(cases[i].movement, budget_json(&hit), cases[i].hit);
    bed_end(&b);
  }
}

/* A call that was begun already is not counted again when it is repeated. */
TEST(begun_calls_bound_new_ones_only) {
  struct bed b;
  struct budget_hit hit;
  bed_begin(&b, workflow, "free");
  for (int i = 0; i < 5; i++) {
    assert_false(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
    spends_begin(&b.core.spends, STR("free"), STR("p"));
  }
  assert_true(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  assert_int_equal(hit.unit, BUDGET_CALLS);
  assert_false(budget_refuses_call(&b.core, &b.turn, &b.call, &hit));
  bed_end(&b);
}

TEST(all_attempts_of_one_call_have_its_limit) {
  static const struct {
    int64_t tokens, cost_nano, ms;
    enum budget_unit unit; /* BUDGET_UNITS: it may go on */
  } cases[] = {
      {99, 499999999, 59999, BUDGET_UNITS},
      {100, 0, 0, BUDGET_TOKENS},
      {0, 500000000, 0, BUDGET_COST},
      {0, 0, 60000, BUDGET_TIME},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct bed b;
    struct budget_hit hit = {.unit = BUDGET_UNITS};
    bed_begin(&b, workflow, "a");
    b.call.spent.tokens = cases[i].tokens;
    b.call.spent.cost_nano = cases[i].cost_nano;
    b.call.spent.ms = cases[i].ms;
    assert_int_equal(budget_refuses_call(&b.core, &b.turn, &b.call, &hit),
                     cases[i].unit != BUDGET_UNITS);
    assert_int_equal(hit.unit, cases[i].unit);
    if (cases[i].unit != BUDGET_UNITS)
      assert_int_equal(hit.of, BUDGET_OF_CALL);
    assert_false(budget_refuses_call(&b.core, &b.turn, NULL, &hit)); /* a new one is another */
    bed_end(&b);
  }
}

TEST(movements_are_counted_when_they_are_entered) {
  struct bed b;
  struct budget_hit hit;
  bed_begin(&b, workflow, "a");
  size_t a = b.turn.movement, other = (size_t)workflow_find(b.core.workflow, STR("free"));
  b.core.movement_counts[a] = 1;
  b.core.iteration_count = 2;
  assert_false(budget_refuses_turn(&b.core, a, &hit));
  b.core.movement_counts[a] = 2;
  assert_true(budget_refuses_turn(&b.core, a, &hit));
  same_json("a", budget_json(&hit),
            "{'of':'movement','movement':'a','unit':'movements','used':2,'limit':2}");
  assert_false(budget_refuses_turn(&b.core, other, &hit));
  b.core.iteration_count = 3;
  assert_true(budget_refuses_turn(&b.core, other, &hit));
  assert_int_equal(hit.of, BUDGET_OF_SESSION);
  bed_end(&b);
}

/* Only with on_exceed: stop, and only once the limit is passed. */
TEST(a_call_that_runs_is_ended_past_its_limit) {
  static const struct {
    const char *movement;
    int64_t before, tokens, cost_nano; /* tokens of the movement, then what the call tells */
    bool ends;
    enum budget_of of;
    enum budget_unit unit;
  } cases[] = {
      {"a", 450, 50, 0, false, BUDGET_OF_SESSION, BUDGET_TOKENS},
      {"a", 450, 51, 0, true, BUDGET_OF_MOVEMENT, BUDGET_TOKENS},
      {"a", 0, 100, 0, false, BUDGET_OF_SESSION, BUDGET_TOKENS},
      {"a", 0, 101, 0, true, BUDGET_OF_CALL, BUDGET_TOKENS},
      {"a", 0, 0, 500000001, true, BUDGET_OF_CALL, BUDGET_COST},
      {"free", 0, 5000, 0, false, BUDGET_OF_SESSION, BUDGET_TOKENS}, /* it is finished */
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct bed b;
    struct budget_hit hit;
    bed_begin(&b, workflow, cases[i].movement);
    use(&b, cases[i].movement, cases[i].before, 0, 0);
    b.call.told.tokens = cases[i].tokens;
    b.call.told.cost_nano = cases[i].cost_nano;
    bool ends = budget_must_end_call(&b.core, &b.turn, &b.call, &hit);
    if (ends != cases[i].ends || (ends && (hit.of != cases[i].of || hit.unit != cases[i].unit)))
      fail_msg("case %zu: %d %d %d", i, ends, (int)hit.of, (int)hit.unit);
    bed_end(&b);
  }
}

/* A sibling's running call counts for the group, and for no other movement. */
TEST(what_runs_beside_it_counts) {
  struct bed b;
  struct budget_hit hit;
  struct call told = {.id = 2, .state = CALL_RUNNING, .told = {.tokens = 300}};
  bed_begin(&b, workflow, "g.x");
  struct turn sibling = {.id = 2, .calls = &told};
  sibling.movement = (size_t)workflow_find(b.core.workflow, STR("g.y"));
  b.turn.next = &sibling;
  assert_true(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  assert_int_equal(hit.used, 300);
  told.state = CALL_WAITING; /* what it told is in the sums by now */
  assert_false(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  told.state = CALL_RUNNING;
  sibling.movement = (size_t)workflow_find(b.core.workflow, STR("free"));
  assert_false(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  bed_end(&b);
}

TEST(time_left_is_the_least_that_is_left) {
  static const char timed[] =
      "{'name':'w','budget':{'time':'10m','on_exceed':'stop'},'movements':["
      "{'name':'a','budget':{'call':{'time':'1m'},'on_exceed':'stop'}," DONE "},"
      "{'name':'b','budget':{'time':'1s'}," DONE "}]}";
  static const struct {
    const char *movement;
    int64_t used;
    uint64_t most, left;
  } cases[] = {
      {"b", 0, 1000000, 600000},     /* its own does not stop calls */
      {"b", 599000, 1000000, 1000},  /* what is left of the session's */
      {"b", 600000, 1000000, 1},     /* never 0, which would mean for ever */
      {"b", 700000, 1000000, 1},     /* nor below */
      {"a", 0, 1000000, 60000},      /* one call's */
      {"a", 580000, 1000000, 20000}, /* the session's is less */
      {"a", 0, 5, 5},                /* the call's own bound is the least */
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct bed b;
    bed_begin(&b, timed, cases[i].movement);
    use(&b, cases[i].movement, 0, 0, cases[i].used);
    assert_int_equal(budget_time_left(&b.core, &b.turn, cases[i].most), cases[i].left);
    bed_end(&b);
  }
}

TEST(a_refusal_says_who_used_it) {
  struct bed b;
  buf_auto_t told = {0};
  struct budget_hit hit;
  bed_begin(&b, workflow, "free");
  use(&b, "free", 500, 0, 0);
  use(&b, "a", 600, 0.5, 0);
  json_auto_t *usage = json_pack("{si}", "input", 40);
  spends_add(&b.core.spends, PURPOSE_JUDGE, STR("g"), STR("p"), usage, 1);
  assert_true(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  budget_tell(&b.core, &hit, &told);
  assert_string_equal(buf_c(&told),
                      "the session's budget is used up: 1140 of 1000 tokens (140 over)"
                      "; a 600, free 500, g 40; judging 40 of it");
  buf_clear(&told);
  hit = (struct budget_hit){.of = BUDGET_OF_CALL,
                            .movement = STR("a"),
                            .unit = BUDGET_COST,
                            .used = 500000000,
                            .limit = 500000000};
  budget_tell(&b.core, &hit, &told);
  assert_string_equal(buf_c(&told), "the budget of a call of \"a\" is used up: $0.5000 of $0.5000");
  buf_clear(&told);
  hit = (struct budget_hit){
      .of = BUDGET_OF_MOVEMENT, .movement = STR("a"), .unit = BUDGET_TIME, .used = 2, .limit = 1};
  budget_tell(&b.core, &hit, &told);
  assert_string_equal(buf_c(&told), "the budget of \"a\" is used up: 0.0s of 0.0s (0.0s over)");
  bed_end(&b);
}

/* Movements that used as much as another are each told once, in the workflow's order. */
TEST(four_movements_are_told_at_most) {
  static const char many[] = "{'name':'w','budget':{'tokens':10},'movements':["
                             "{'name':'a'," DONE "},{'name':'b'," DONE "},{'name':'c'," DONE "},"
                             "{'name':'d'," DONE "},{'name':'e'," DONE "}]}";
  struct bed b;
  buf_auto_t told = {0};
  struct budget_hit hit;
  bed_begin(&b, many, "a");
  use(&b, "e", 7, 0, 0);
  for (const char *name = "abcd"; *name; name++)
    use(&b, (char[]){*name, '\0'}, 5, 0, 0);
  assert_true(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  budget_tell(&b.core, &hit, &told);
  assert_string_equal(buf_c(&told), "the session's budget is used up: 27 of 10 tokens (17 over)"
                                    "; e 7, a 5, b 5, c 5");
  bed_end(&b);
}

/* At four fifths, in the end that crosses them, and in no other. */
TEST(four_fifths_are_said_once) {
  struct bed b;
  json_auto_t *usage = data_json("{'input':100,'cost_usd':0}");
  bed_begin(&b, workflow, "free");
  use(&b, "free", 699, 0, 0);
  assert_null(budget_notes(&b.core, &b.turn, &b.call, usage, 1, true));
  use(&b, "free", 1, 0, 0);
  same_json("800", budget_notes(&b.core, &b.turn, &b.call, usage, 1, true),
            "[{'of':'session','unit':'tokens','used':800,'limit':1000,'level':'soft'}]");
  use(&b, "free", 100, 0, 0);
  assert_null(budget_notes(&b.core, &b.turn, &b.call, usage, 1, true));
  b.core.iteration_count = 1;
  assert_null(budget_count_notes(&b.core, b.turn.movement, BUDGET_MOVEMENTS));
  b.core.iteration_count = 2;
  same_json("3", budget_count_notes(&b.core, b.turn.movement, BUDGET_MOVEMENTS),
            "[{'of':'session','unit':'movements','used':3,'limit':3,'level':'soft'}]");
  bed_end(&b);
}

/* Once a provider; a command has no tokens, and nobody has to be told so. */
TEST(what_a_limit_cannot_see_is_said_once) {
  static const char unknown[] = "[{'provider':'p','unit':'tokens','level':'unknown'},"
                                "{'provider':'p','unit':'cost','level':'unknown'}]";
  struct bed b;
  bed_begin(&b, workflow, "free");
  same_json("none", budget_notes(&b.core, &b.turn, &b.call, NULL, 1, true), unknown);
  assert_null(budget_notes(&b.core, &b.turn, &b.call, NULL, 1, false)); /* it failed */
  json_auto_t *unpriced = data_json("{'input':5,'output':1}");
  same_json("unpriced", budget_notes(&b.core, &b.turn, &b.call, unpriced, 1, true),
            "[{'provider':'p','unit':'cost','level':'unknown'}]");
  spends_silent(&b.core.spends, STR("p"));
  assert_null(budget_notes(&b.core, &b.turn, &b.call, NULL, 1, true));
  b.call.provider = (char *)(size_t) "command";
  assert_null(budget_notes(&b.core, &b.turn, &b.call, NULL, 1, true));
  bed_end(&b);
  bed_begin(&b, "{'name':'w','movements':[{'name':'a'," DONE "}]}", "a");
  assert_null(budget_notes(&b.core, &b.turn, &b.call, NULL, 1, true));
  bed_end(&b);
}

/* A log may hold any number. */
TEST(notes_are_lines_for_people) {
  static const struct {
    const char *note, *line;
  } cases[] = {
      {"{'of':'session','unit':'tokens','used':820,'limit':1000}",
       "budget: 820 of 1000 tokens are used"},
      {"{'of':'movement','movement':'a','unit':'cost','used':0.8,'limit':1}",
       "budget of a: $0.8000 of $1.0000 are used"},
      {"{'unit':'time','used':1500,'limit':-3}", "budget: 1.5s of 0.0s are used"},
      {"{'unit':'calls','used':1e300,'limit':'x'}", "budget: 0 of 0 calls are used"},
      {"{'provider':'p','unit':'cost'}",
       "budget: the cost of p are not known, its calls count for nothing"},
      {"{'provider':'p','unit':'tokens'}",
       "budget: the tokens of p are not known, its calls count for nothing"},
      {"{'unit':'wishes'}", ""},
      {"7", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *note = data_json(cases[i].note);
    buf_auto_t line = {0};
    budget_note_tell(note, &line);
    assert_string_equal(buf_c(&line), cases[i].line);
  }
}

TEST(a_person_adds_to_what_is_bounded) {
  static const struct {
    const char *added, *error; /* NULL: it is taken */
  } cases[] = {
      {"{}", NULL},
      {"{'tokens':1,'cost':0.5,'time':'30m','calls':1,'movements':1}", NULL},
      {"{'a.tokens':5}", NULL},
      {"{'wishes':3}", "knows no \"wishes\""},
      {"{'nowhere.tokens':3}", "knows no \"nowhere.tokens\""},
      {"{'.tokens':3}", "knows no \".tokens\""},
      {"{'a.wishes':3}", "knows no \"a.wishes\""},
      {"{'tokens':0}", "must be a number above 0"},
      {"{'tokens':'5'}", "must be a number above 0"},
      {"{'tokens':9000000000000000000}", "must be a number above 0"},
      {"{'time':30}", "must be a duration, such as 30m"},
      {"{'a.cost':3}", "no budget of a.cost to add to"},
      {"{'free.tokens':3}", "no budget of free.tokens to add to"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct bed b;
    struct err err = {0};
    json_auto_t *added = data_json(cases[i].added);
    bed_begin(&b, workflow, "a");
    bool ok = budget_added_check(b.core.workflow, added, &err);
    if (ok != (cases[i].error == NULL) || (!ok && strstr(err.text, cases[i].error) == NULL))
      fail_msg("%s: %s", cases[i].added, ok ? "taken" : err.text);
    bed_end(&b);
  }
}

/* Sums of additions stay bounded, and what a log names that is not there adds nothing. */
TEST(what_is_added_moves_the_limit) {
  struct bed b;
  struct budget_hit hit;
  json_auto_t *added = data_json("{'tokens':100,'a.tokens':10,'nowhere.tokens':7,'a.wishes':1}");
  json_auto_t *huge = data_json("{'tokens':1099511627776}");
  bed_begin(&b, workflow, "a");
  budget_added_take(&b.core, NULL);
  assert_null(b.core.added);
  budget_added_take(&b.core, added);
  use(&b, "a", 509, 0, 0);
  assert_false(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  use(&b, "a", 1, 0, 0);
  assert_true(budget_refuses_call(&b.core, &b.turn, NULL, &hit));
  assert_int_equal(hit.limit, 510);
  assert_int_equal(b.core.added[0][BUDGET_TOKENS], 100);
  for (int i = 0; i < 5; i++)
    budget_added_take(&b.core, huge);
  assert_int_equal(b.core.added[0][BUDGET_TOKENS], ((int64_t)1 << 40) + 100);
  bed_end(&b);
}

TEST(a_resume_says_how_much_is_needed) {
  static const struct {
    const char *stop, *added, *error; /* NULL: it goes on */
  } cases[] = {
      {"{'of':'session','unit':'tokens'}", "{}", "give --add-budget tokens=N with more than 200"},
      {"{'of':'session','unit':'tokens'}", "{'tokens':200}", "more than 200"},
      {"{'of':'session','unit':'tokens'}", "{'tokens':201}", NULL},
      {"{'of':'session','unit':'cost'}", "{}", NULL},
      {"{'of':'movement','movement':'a','unit':'tokens'}", "{'tokens':9999}",
       "give --add-budget a.tokens=N with more than 700"},
      {"{'of':'movement','movement':'a','unit':'tokens'}", "{'a.tokens':701}", NULL},
      {"{'of':'movement','movement':'nowhere','unit':'tokens'}", "{}", NULL},
      {"{'of':'movement','movement':'free','unit':'tokens'}", "{}", NULL},
      {"{'of':'call','movement':'a','unit':'tokens'}", "{}", NULL},
      {"{'of':'session','unit':'wishes'}", "{}", NULL},
      {"null", "{}", NULL},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct bed b;
    struct err err = {0};
    json_auto_t *added = data_json(cases[i].added);
    bed_begin(&b, workflow, "a");
    use(&b, "a", 1200, 0, 0);
    b.core.stop_budget = data_json(cases[i].stop);
    bool still = budget_still_used_up(&b.core, added, &err);
    if (still != (cases[i].error != NULL) || (still && strstr(err.text, cases[i].error) == NULL))
      fail_msg("%s %s: %s", cases[i].stop, cases[i].added, still ? err.text : "goes on");
    bed_end(&b);
  }
}
