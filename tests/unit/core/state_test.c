/* Tests the state: reasons to stop, turns that wait for a rule, references, outputs, loops. */
#include "core/state.h"

#include "base/limits.h"
#include "base/memory.h"
#include "core/monitor.h"
#include "core/step.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define DONE "'rules':[{'condition':'done','next':'COMPLETE'}]"

static struct workflow *build(const char *text) {
  json_auto_t *doc = data_json(text);
  struct err err = {0};
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  return wf;
}

/* A daemon that starts goes on with the others by itself; an inbox shows those that ask. */
TEST(a_stop_says_who_goes_on) {
  DATA_ROWS("core/state/a_stop_says_who_goes_on.yaml", c, reason, class, status, for_person) {
    struct str reason = str_from(c.reason);
    assert_string_equal(session_stop_status(reason, str_from(c.class)), c.status);
    if (session_stop_is_for_person(reason) != data_true(c.for_person))
      fail_msg("%s", c.reason);
  }
}

TEST(a_rule_is_named_for_the_turn_that_waits_for_one) {
  static const struct {
    struct turn turn;
    bool waits;
  } cases[] = {
      {{.phase = TURN_EXECUTING}, false},
      {{.phase = TURN_EXECUTING, .escalated = true}, true}, /* its value is a person's */
      {{.phase = TURN_REPORTING}, false},
      {{.phase = TURN_JUDGING}, true},
      {{.phase = TURN_JUDGED, .rule = 2}, false},
      {{.phase = TURN_JUDGED}, true},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct turn turn = cases[i].turn, first = {.phase = TURN_EXECUTING, .next = &turn};
    struct core core = {.turns = &first};
    assert_ptr_equal(core_unjudged_turn(&core), cases[i].waits ? &turn : NULL);
  }
  assert_null(core_unjudged_turn(&(struct core){0}));
}

TEST(a_resume_may_raise_the_most_movements) {
  static const struct {
    const char *config;
    long most, count;
    int next;
    bool has_next, at_max;
  } cases[] = {
      {"{}", 5, 4, 0, true, false},
      {"{}", 5, 5, 0, true, true},
      {"{}", 5, 5, 0, false, false},            /* nothing is to be entered */
      {"{}", 5, 5, NEXT_COMPLETE, true, false}, /* an end is no movement */
      {"{'max_movements':7}", 7, 6, 0, true, false},
      {"{'max_movements':7}", 7, 7, 0, true, true},
      {"{'max_movements':'infinite'}", MOVEMENTS_INFINITE, 99, 0, true, false},
  };
  struct workflow *wf = build("{'name':'w','max_movements':5,'movements':[{'name':'a'," DONE "}]}");
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *config = data_json(cases[i].config);
    struct core core = {.workflow = wf,
                        .config = config,
                        .next = cases[i].next,
                        .has_next = cases[i].has_next,
                        .iteration_count = cases[i].count};
    assert_int_equal(core_max_movements(&core), cases[i].most);
    assert_int_equal(core_is_at_max(&core), cases[i].at_max);
  }
  workflow_unref(wf);
}

/* --- values that texts refer to --- */

TEST(a_reference_names_a_part_of_a_value) {
  static const struct {
    const char *path, *value; /* NULL: it is no reference, or not there */
  } cases[] = {
      {"plan", "{'a':[{'b':7}],'n':null}"},
      {"plan.a[0].b", "7"},
      {"plan.a[1].b", NULL},
      {"plan.a[-1]", NULL},
      {"plan.a[x]", NULL},
      {"plan.a[0", NULL},
      {"plan.a.b", NULL},
      {"plan.", NULL},
      {"plan.a[0]b", NULL},
      {"plan.n", "null"},
      {"planet", NULL},
      {"other.a", NULL},
  };
  json_auto_t *value = data_json(cases[0].value);
  struct workflow *wf = build("{'name':'w','movements':[{'name':'plan'," DONE "}]}");
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct prompt_ref ref;
    const json_t *part = NULL;
    json_auto_t *wanted = cases[i].value ? data_json(cases[i].value) : NULL;
    if (prompt_ref_parse(str_from(cases[i].path), wf, &ref))
      part = prompt_ref_value(&ref, value);
    if ((part != NULL) != (wanted != NULL) || (part != NULL && !json_equal(part, wanted)))
      fail_msg("%s", cases[i].path);
  }
  workflow_unref(wf);
}

/* --- what a session returns --- */

static json_t *outputs_of(const char *outputs, const json_t *values) {
  buf_auto_t text = buf_of("{'name':'w',%s'movements':[{'name':'a'," DONE "}]}", outputs);
  struct workflow *wf = build(buf_c(&text));
  struct prompt_view view = {.workflow = wf,
                             .movement = &wf->movements[0],
                             .task = STR("the task"),
                             .values = values,
                             .max_movements = 5};
  json_t *out = outputs_make(&view);
  workflow_unref(wf);
  return out;
}

TEST(outputs_are_values_or_texts) {
  json_auto_t *values = data_json("{'a':{'n':[1,2]}}");
  json_auto_t *wanted = data_json("{'v':[1,2],'s':'n is [1,2]','none':null,'t':'the task',"
                                  "'other':'{structured:b.n}'}");
  json_auto_t *out =
      outputs_of("'outputs':{'v':' {structured:a.n} ','s':'n is {structured:a.n}',"
                 "'none':'{structured:a.m}','t':'{task}','other':'{structured:b.n}'},",
                 values);
  JSON_MEMBERS(wanted, name, value) {
    bool same = json_equal(json_object_get(out, name), value);
    if (!same && strcmp(name, "other") != 0)
      fail_msg("%s", name);
  }
  assert_true(json_is_null(json_object_get(out, "other"))); /* no such movement */
  assert_null(outputs_of("", values));
}

/* Each is kept with the session's row: a text is cut, a value is whole or none. */
TEST(outputs_are_bounded) {
  char_auto_t *text = malloc(LIMIT_RETURN_BYTES + 1);
  memset(text, 'x', LIMIT_RETURN_BYTES);
  for (size_t n = LIMIT_RETURN_BYTES - 2; n <= LIMIT_RETURN_BYTES - 1; n++) {
    json_auto_t *values = json_pack("{s{ss#}}", "a", "t", text, n);
    json_auto_t *whole = outputs_of("'outputs':{'v':'{structured:a.t}'},", values);
    json_auto_t *cut = outputs_of("'outputs':{'v':'xxx{structured:a.t}'},", values);
    const json_t *value = json_object_get(whole, "v");
    assert_int_equal(json_is_null(value), n == LIMIT_RETURN_BYTES - 1); /* with its quotes */
    assert_int_equal(json_string_length(json_object_get(cut, "v")), LIMIT_RETURN_BYTES);
  }
  json_auto_t *values = json_pack("{s{ss#}}", "a", "t", text, LIMIT_RETURN_BYTES - 2);
  json_auto_t *out = outputs_of("'outputs':{'a':'{structured:a.t}','b':'{structured:a.t}',"
                                "'c':'{structured:a.t}','d':'small'},",
                                values);
  assert_true(json_is_string(json_object_get(out, "b")));
  assert_true(json_is_null(json_object_get(out, "c"))); /* together they are full */
  assert_true(json_is_null(json_object_get(out, "d")));
}

/* --- loops --- */

static const char looping[] =
    "{'name':'w','movements':[{'name':'a','rules':[{'condition':'x','next':'b'}]},"
    "{'name':'b','rules':[{'condition':'x','next':'a'}]},"
    "{'name':'c'," DONE "}],'loop_monitors':[{'cycle':['a','b'],'ignore':['c'],'threshold':2,"
    "'judge':{'rules':[{'condition':'on','next':'a'},{'condition':'off','next':'ABORT'}]}}]}";

TEST(a_cycle_counts_when_it_was_gone_through) {
  static const struct {
    const char *way;
    long times;
    size_t at;
  } cases[] = {
      {"", 0, 0},    {"a", 0, 1},    {"ab", 1, 0},
      {"aba", 1, 1}, {"abab", 2, 0}, {"acb", 1, 0}, /* c is passed over */
      {"aab", 1, 0},                                /* it begins again */
      {"abb", 0, 0},                                /* and is left */
  };
  struct workflow *wf = build(looping);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct loop_count count = {0};
    struct core core = {.workflow = wf, .loops = &count};
    for (const char *at = cases[i].way; *at; at++)
      monitor_note(&core, (size_t)workflow_find(wf, (struct str){at, 1}));
    if (count.times != cases[i].times || count.at != cases[i].at)
      fail_msg("%s: %ld at %zu", cases[i].way, count.times, count.at);
    assert_int_equal(monitor_count(&core, &wf->movements[3]), cases[i].times);
    assert_int_equal(monitor_count(&core, &wf->movements[0]), 0);
  }
  workflow_unref(wf);
}

/* A forked session takes them from a log. */
TEST(counts_of_loops_are_outside_data) {
  static const struct {
    const char *counts;
    bool ok;
  } cases[] = {
      {"[[3,1]]", true},   {"[]", true},       {"null", true},      {"[[0,0],[0,0]]", false},
      {"[[-1,0]]", false}, {"[[0,2]]", false}, {"[[0,-1]]", false}, {"[[1000000000000,0]]", false},
  };
  struct workflow *wf = build(looping);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct loop_count count = {0};
    struct core core = {.workflow = wf, .loops = &count};
    json_auto_t *counts = data_json(cases[i].counts);
    if (monitor_take(&core, counts) != cases[i].ok)
      fail_msg("%s", cases[i].counts);
  }
  workflow_unref(wf);
}

TEST(loops_are_built_from_what_is_there) {
  static const struct {
    const char *monitor, *error;
  } cases[] = {
      {"'cycle':['a','nowhere']", "loop_monitors[0].cycle: names no movement"},
      {"'cycle':['a','b','a']", "loop_monitors[0].cycle: names a movement twice"},
      {"'cycle':['a','b'],'ignore':['nowhere']", "loop_monitors[0].ignore: names no movement"},
      {"'cycle':['a','b'],'threshold':0", "loop_monitors[0].threshold: must be a whole number"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t text = {0};
    struct err err = {0};
    buf_printf(&text,
               "{'name':'w','movements':[{'name':'a'," DONE "},{'name':'b'," DONE "}],"
               "'loop_monitors':[{%s,'judge':{" DONE "}}]}",
               cases[i].monitor);
    json_auto_t *doc = data_json(buf_c(&text));
    struct workflow *wf = workflow_build(doc, &err);
    if (wf != NULL || strstr(err.text, cases[i].error) == NULL)
      fail_msg("%s: %s", cases[i].monitor, wf ? "taken" : err.text);
  }
}
