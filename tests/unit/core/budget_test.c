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
  DATA_ROWS("core/budget/amounts_are_read_as_people_write_them.yaml", c, object, unit, limit,
            call) {
    json_auto_t *object = data_json(c.object);
    struct budget budget;
    enum budget_unit unit = data_among(c.unit, "tokens cost time calls movements");
    budget_read(object, &budget);
    if (budget.limit[unit] != (int64_t)data_number(c.limit) ||
        budget.call[unit] != (int64_t)data_number(c.call))
      fail_msg("%s: %lld %lld", c.object, (long long)budget.limit[unit],
               (long long)budget.call[unit]);
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
  DATA_ROWS("core/budget/a_call_that_runs_is_ended_past_its_limit.yaml", c, movement, before,
            tokens, cost_nano, ends, of, unit) {
    struct bed b;
    struct budget_hit hit;
    bed_begin(&b, workflow, c.movement);
    use(&b, c.movement, (int64_t)data_number(c.before), 0, 0);
    b.call.told.tokens = (int64_t)data_number(c.tokens);
    b.call.told.cost_nano = (int64_t)data_number(c.cost_nano);
    bool ends = budget_must_end_call(&b.core, &b.turn, &b.call, &hit);
    if (ends != data_true(c.ends) ||
        (ends && (hit.of != data_among(c.of, "session movement call") ||
                  hit.unit != data_among(c.unit, "tokens cost"))))
      fail_msg("case %zu: %d %d %d", c.at, ends, (int)hit.of, (int)hit.unit);
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
  DATA_ROWS("core/budget/time_left_is_the_least_that_is_left.yaml", c, movement, used, most, left) {
    struct bed b;
    bed_begin(&b, timed, c.movement);
    use(&b, c.movement, 0, 0, (int64_t)data_number(c.used));
    assert_int_equal(budget_time_left(&b.core, &b.turn, (uint64_t)data_number(c.most)),
                     (uint64_t)data_number(c.left));
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
  DATA_ROWS("core/budget/notes_are_lines_for_people.yaml", c, note, line) {
    json_auto_t *note = data_json(c.note);
    buf_auto_t line = {0};
    budget_note_tell(note, &line);
    assert_string_equal(buf_c(&line), c.line);
  }
}

TEST(a_person_adds_to_what_is_bounded) {
  DATA_ROWS("core/budget/a_person_adds_to_what_is_bounded.yaml", c, added, error) {
    struct bed b;
    struct err err = {0};
    json_auto_t *added = data_json(c.added);
    bed_begin(&b, workflow, "a");
    bool ok = budget_added_check(b.core.workflow, added, &err);
    if (ok != (c.error == NULL) || (!ok && strstr(err.text, c.error) == NULL))
      fail_msg("%s: %s", c.added, ok ? "taken" : err.text);
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
  DATA_ROWS("core/budget/a_resume_says_how_much_is_needed.yaml", c, stop, added, error) {
    struct bed b;
    struct err err = {0};
    json_auto_t *added = data_json(c.added);
    bed_begin(&b, workflow, "a");
    use(&b, "a", 1200, 0, 0);
    b.core.stop_budget = data_json(c.stop);
    bool still = budget_still_used_up(&b.core, added, &err);
    if (still != (c.error != NULL) || (still && strstr(err.text, c.error) == NULL))
      fail_msg("%s %s: %s", c.stop, c.added, still ? err.text : "goes on");
    bed_end(&b);
  }
}
