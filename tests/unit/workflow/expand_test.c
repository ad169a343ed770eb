/* Workflows made of workflows: what they become, and what is refused with both places. */
#include "workflow/load.h"

#include "base/limits.h"
#include "core/workflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/data.h"
#include "support/folder.h"
#include "support/load.h"
#include "support/test.h"

static char *dir;

static int set_up(void **state) {
  (void)state;
  dir = folder_make();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static void put(const char *name, const char *text) {
  folder_put(dir, name, str_from(text));
}

static json_t *load_with(const char *name, const json_t *inputs, bool starts,
                         struct err_list *errors) {
  const char *const folders[] = {"", "", NULL};
  const struct workflow_source source = {.path = folder_path(dir, name),
                                         .named_by_user = true,
                                         .workflows = folders,
                                         .inputs = inputs,
                                         .starts = starts};
  return workflow_load(&source, errors);
}

static json_t *loads(const char *name) {
  struct err_list errors = {0};
  json_t *doc = load_with(name, NULL, false, &errors);
  if (doc == NULL)
    fail_msg("%s:%d: %s", errors.items[0].file, errors.items[0].line, errors.items[0].text);
  struct err err;
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  workflow_unref(wf);
  return doc;
}

/* The value given to a started workflow is refused with this text. */
static void input_is_refused(const char *name, const char *inputs, const char *words) {
  AUTO(err_list_deinit) struct err_list errors = {0};
  json_auto_t *given = json_loads(inputs, 0, NULL);
  assert_non_null(given);
  assert_null(load_with(name, given, true, &errors));
  assert_true(errors.count > 0);
  if (strstr(errors.items[0].text, words) == NULL)
    fail_msg("%s: %s", inputs, errors.items[0].text);
}

/* One of its errors stands at that place of that file and says that. */
static void is_refused(const char *name, const char *file, int line, const char *words) {
  AUTO(err_list_deinit) struct err_list errors = {0};
  json_auto_t *doc = load_with(name, NULL, true, &errors);
  if (doc != NULL)
    fail_msg("it loads, and not \"%s\" is said", words);
  bool found = false;
  for (size_t i = 0; i < errors.count; i++) {
    const struct err *e = &errors.items[i];
    found =
        found || (str_ends(str_from(e->file), file) && e->line == line && strstr(e->text, words));
  }
  if (!found)
    fail_msg("not \"%s\" at %s:%d but %s:%d: %s", words, file, line, errors.items[0].file,
             errors.items[0].line, errors.items[0].text);
}

static const json_t *movement(const json_t *doc, const char *name) {
  JSON_EACH(json_object_get(doc, "movements"), i, v) {
    if (strcmp(json_string_value(json_object_get(v, "name")), name) == 0)
      return v;
  }
  fail_msg("there is no movement %s", name);
  return NULL;
}

static const char *text_of(const json_t *doc, const char *name, const char *key) {
  return json_string_value(json_object_get(movement(doc, name), key));
}

static const json_t *rule(const json_t *doc, const char *name, size_t i) {
  return json_array_get(json_object_get(movement(doc, name), "rules"), i);
}

static const char *leads(const json_t *doc, const char *name, size_t i) {
  return json_string_value(json_object_get(rule(doc, name, i), "next"));
}

#define END  "  rules: [{condition: x, next: COMPLETE}]\n"
#define DONE "  rules: [{condition: COMPLETE, next: COMPLETE}]\n"

static void put_review(void) {
  put("sub/review.yaml",
      "name: review\nprovider: other\nmodel: m1\njudge: {timeout_ms: 5, model: j}\n"
      "params:\n  target: {description: what}\n  style: soft\nreturns: [approved, rejected]\n"
      "movements:\n"
      "- name: look\n  persona: reviewer\n  session_key: k\n"
      "  instruction: |\n    {input:target} {input:style} {response:deep} {structured:look.v} "
      "{?structured:look.v}y"
      "{/structured:look.v}\n"
      "  judge: {timeout_ms: 9}\n"
      "  structured_output: {schema: {type: object}, on_failure: error}\n"
      "  rules:\n"
      "  - {condition: 'good structured.look && when(structured.look.v == \"structured.look\" "
      "&& checks[\"dig\"].exit == 0)', return: approved}\n"
      "  - {condition: bad, return: rejected}\n"
      "  - {condition: odd, next: COMPLETE}\n"
      "  - {condition: no, next: ABORT}\n"
      "  - {condition: again, next: deep}\n"
      "- name: deep\n  call: deeper.yaml\n  args: {t: '{input:target}'}\n"
      "  rules: [{condition: COMPLETE, return: approved}]\n");
  put("sub/deeper.yaml",
      "name: deeper\nparams: {t: }\ninitial_movement: dig\nmovements:\n"
      "- name: other\n  provider: own\n  on_error: dig\n" END
      "- name: human\n  ask: {question: '{input:t}?'}\n" END
      "- name: asked\n  command: ['true']\n  approve: {on_reject: dig}\n  on_error: [{to: "
      "dig}]\n" END
      "- name: each\n  for_each: dig.list\n  parallel:\n  - {name: one, instruction: 'Do {item}', "
      "rules: [{condition: ok}]}\n" END
      "- name: dig\n  command: [echo, '{input:t}']\n  instruction: '{input:t}'\n"
      "  rules: [{condition: 'when(checks.dig.exit == 0)', next: COMPLETE},"
      " {condition: 'when(exit != 0)', next: dig}]\n");
  put("sub/personas/reviewer.md", "strict {input:style}\n{{include:partials/tail}}\n");
  put("sub/partials/tail.md", "the end\n");
}

static void put_main(void) {
  put_review();
  put("main.yaml",
      "name: main\nmodel: m0\noutputs: {o: 'of {input:file}'}\nparams: {file: , mode: "
      "hard}\ninitial_movement: check\nmovements:\n"
      "- name: plan\n  instruction: '{input:file}'\n  rules: [{condition: r, next: check}]\n"
      "- name: check\n  call: sub/review.yaml\n"
      "  args: {target: 'T {input:file} {structured:plan.x}', style: '{input:mode}'}\n"
      "  rules:\n  - {condition: approved, next: COMPLETE}\n"
      "  - {condition: rejected, next: plan}\n  - {condition: COMPLETE, next: check}\n");
}

TEST_WITH(set_up, tear_down, calls_become_movements) {
  put_main();
  json_auto_t *doc = loads("main.yaml");
  assert_int_equal(json_array_size(json_object_get(doc, "movements")), 7);
  assert_string_equal(json_string_value(json_object_get(doc, "initial_movement")), "check/look");
  assert_string_equal(leads(doc, "plan", 0), "check/look");
  assert_string_equal(leads(doc, "check/look", 0), "COMPLETE");
  assert_string_equal(leads(doc, "check/look", 1), "plan");
  assert_string_equal(leads(doc, "check/look", 2), "check/look");
  assert_string_equal(leads(doc, "check/look", 3), "ABORT");
  assert_string_equal(leads(doc, "check/look", 4), "check/deep/dig");
  assert_string_equal(leads(doc, "check/deep/dig", 0), "COMPLETE"); /* approved, two files up */
  assert_string_equal(leads(doc, "check/deep/dig", 1), "check/deep/dig");
}

TEST_WITH(set_up, tear_down, names_are_those_of_their_file) {
  put_main();
  json_auto_t *doc = loads("main.yaml");
  assert_string_equal(text_of(doc, "plan", "instruction"), "{input:file}");
  assert_string_equal(text_of(doc, "check/look", "instruction"),
                      "T {input:file} {structured:plan.x} {input:mode} {response:check/deep} "
                      "{structured:check/look.v} "
                      "{?structured:check/look.v}y{/structured:check/look.v}");
  assert_string_equal(text_of(doc, "check/look", "session_key"), "check/k");
  assert_string_equal(json_string_value(json_object_get(
                          json_object_get(movement(doc, "check/deep/human"), "ask"), "question")),
                      "T {input:file} {structured:plan.x}?");
  assert_string_equal(
      json_string_value(json_object_get(
          json_object_get(movement(doc, "check/deep/asked"), "approve"), "on_reject")),
      "check/deep/dig");
  static const char *const fails[] = {"check/deep/other", "check/deep/asked"};
  for (size_t i = 0; i < ARRAY_LEN(fails); i++) {
    const json_t *ways = json_object_get(movement(doc, fails[i]), "on_error");
    assert_string_equal(json_string_value(json_object_get(json_array_get(ways, 0), "to")),
                        "check/deep/dig");
  }
  assert_string_equal(text_of(doc, "check/deep/each", "for_each"), "check/deep/dig.list");
  assert_string_equal(text_of(doc, "check/look", "persona"), "strict hard\nthe end");
  assert_string_equal(
      json_string_value(json_object_get(rule(doc, "check/look", 0), "condition")),
      "good structured.look && when(structured[\"check/look\"].v == \"structured.look\" "
      "&& checks[\"check/dig\"].exit == 0)");
  assert_string_equal(
      json_string_value(json_object_get(rule(doc, "check/deep/dig", 0), "condition")),
      "when(checks[\"check/deep/dig\"].exit == 0)");
}

TEST_WITH(set_up, tear_down, a_called_file_keeps_its_own_settings) {
  put_main();
  json_auto_t *doc = loads("main.yaml");
  assert_string_equal(text_of(doc, "check/look", "provider"), "other");
  assert_string_equal(text_of(doc, "check/look", "model"), "m1");
  const json_t *judge = json_object_get(movement(doc, "check/look"), "judge");
  assert_int_equal(json_integer_value(json_object_get(judge, "timeout_ms")), 9);
  assert_string_equal(json_string_value(json_object_get(judge, "model")), "j");
  assert_string_equal(text_of(doc, "check/deep/other", "provider"), "own");
  assert_null(json_object_get(movement(doc, "check/deep/other"), "model"));
  assert_null(json_object_get(movement(doc, "check/deep/dig"), "provider"));
  assert_null(json_object_get(movement(doc, "plan"), "provider"));
}

TEST_WITH(set_up, tear_down, what_comes_from_outside_is_data) {
  struct err_list errors = {0};
  put_main();
  json_auto_t *inputs = json_pack("{ss}", "file", "{task} {input:mode} $(x)");
  json_auto_t *doc = load_with("main.yaml", inputs, true, &errors);
  assert_non_null(doc);
  assert_string_equal(text_of(doc, "plan", "instruction"), "{input:file}");
  const json_t *argv = json_object_get(movement(doc, "check/deep/dig"), "command");
  assert_string_equal(json_string_value(json_array_get(argv, 1)),
                      "T {task} {input:mode} $(x) {structured:plan.x}");
  assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "outputs"), "o")),
                      "of {input:file}");
  const json_t *kept = json_object_get(doc, "inputs");
  assert_string_equal(json_string_value(json_object_get(kept, "mode")), "hard");
  assert_string_equal(json_string_value(json_object_get(kept, "file")), "{task} {input:mode} $(x)");
}

TEST_WITH(set_up, tear_down, fragments_lie_under_a_movement) {
  put("fragments/worker.yaml",
      "params: {what: }\nname: dropped\nuses: ../base.yaml\nedit: true\ninstruction: Do "
      "{input:what}.\n"
      "judge: {model: a, timeout_ms: 3}\n"
      "rules: [{condition: done, next: go}, {condition: stuck, next: ABORT}]\n");
  put("use.yaml",
      "name: w\nparams: {f: x}\nmovements:\n"
      "- name: go\n  uses: worker\n  with: {what: 'all of {input:f}'}\n  persona: a one\n"
      "  judge: {model: b}\n"
      "- name: both\n  parallel:\n  - uses: fragments/child.yaml\n"
      "  rules: [{condition: any(\"ok\"), next: go}]\n");
  put("fragments/child.yaml", "instruction: Look at it.\nrules: [{condition: ok}]\n");
  is_refused("use.yaml", "fragments/worker.yaml", 3, "leads out of");
  put("fragments/worker.yaml",
      "params: {what: }\nname: dropped\nedit: true\ninstruction: Do {input:what}.\n"
      "judge: {model: a, timeout_ms: 3}\n"
      "rules: [{condition: done, next: go}, {condition: stuck, next: ABORT}]\n");
  json_auto_t *doc = loads("use.yaml");
  assert_string_equal(text_of(doc, "go", "instruction"), "Do all of {input:f}.");
  assert_string_equal(text_of(doc, "go", "persona"), "a one");
  const json_t *judge = json_object_get(movement(doc, "go"), "judge");
  assert_string_equal(json_string_value(json_object_get(judge, "model")), "b");
  assert_int_equal(json_integer_value(json_object_get(judge, "timeout_ms")), 3);
  assert_string_equal(leads(doc, "go", 0), "go");
  const json_t *child = json_array_get(json_object_get(movement(doc, "both"), "parallel"), 0);
  assert_string_equal(json_string_value(json_object_get(child, "name")), "child");
}

TEST_WITH(set_up, tear_down, what_is_wrong_is_said_at_both_places) {
  put_review();
#define RULES                                                                                      \
  "  rules:\n  - {condition: approved, next: COMPLETE}\n  - {condition: rejected, next: COMPLETE}" \
  "\n  - {condition: COMPLETE, next: COMPLETE}\n"
  struct buf large = {0};
  while (large.n <= LIMIT_WORKFLOW_BYTES)
    buf_puts(&large, "# a long comment, a long comment, a long comment, a long comment\n");
  put("large.yaml", buf_c(&large));
  buf_deinit(&large);
  assert_int_equal(symlink("/etc/passwd", folder_path(dir, "away.yaml")), 0);
  put("bad.yaml", "name: b\n\nmvements: []\n");
  put("list.yaml", "- a\n");
  put("loop.yaml", "name: l\nmovements:\n- name: c\n  call: w.yaml\n" END);
  put("self.yaml", "uses: self.yaml\nrules: [{condition: x, next: COMPLETE}]\n");
  DATA_ROWS("workflow/expand/what_is_wrong_is_said_at_both_places.yaml", row, text, file, line,
            words) {
    put("w.yaml", row.text);
    is_refused("w.yaml", row.file, (int)data_number(row.line), row.words);
  }
}

TEST_WITH(set_up, tear_down, inputs_are_checked_against_the_params) {
  put("none.yaml", "name: m\nmovements:\n- name: c\n" END);
  put("one.yaml", "name: m\nparams: {target: , mode: x}\nmovements:\n- name: c\n" END);
  input_is_refused("none.yaml", "{\"a\": \"b\"}", "takes no input a");
  input_is_refused("one.yaml", "{\"mode\": \"b\"}", "give --input target=VALUE");
  input_is_refused("one.yaml", "{\"target\": \"b\", \"targe\": \"b\"}", "did you mean target");
  input_is_refused("one.yaml", "{\"target\": \"b\", \"zzzzzz\": \"b\"}", "takes no input zzzzzz");
  input_is_refused("one.yaml", "{\"target\": 1}", "target");
  struct buf long_one = {0};
  buf_puts(&long_one, "{\"target\": \"");
  while (long_one.n <= LIMIT_INPUT_BYTES + 20)
    buf_puts(&long_one, "0123456789abcdef");
  buf_puts(&long_one, "\"}");
  input_is_refused("one.yaml", buf_c(&long_one), "target");
  buf_clear(&long_one);
  buf_puts(&long_one, "name: m\nparams: {target: ");
  while (long_one.n <= LIMIT_INPUT_BYTES + 40)
    buf_puts(&long_one, "0123456789abcdef");
  buf_puts(&long_one, "}\nmovements:\n- name: c\n" END);
  put("long.yaml", buf_c(&long_one));
  buf_deinit(&long_one);
  is_refused("long.yaml", "long.yaml", 2, "a param's value is at most");
}

TEST_WITH(set_up, tear_down, includes_are_bounded) {
  struct buf big = {0};
  put("policies/a.md", "{{include:policies/b}}");
  put("policies/b.md", "b {{include:policies/a}}");
  for (int i = 0; i < 20; i++) {
    char name[32], text[64];
    print_into(name, sizeof name, "policies/d%d.md", i);
    print_into(text, sizeof text, "{{include:policies/d%d}}", i + 1);
    put(name, text);
  }
  while (big.n < 200 * 1024)
    buf_puts(&big, "a line of a text that is long\n");
  put("policies/leaf.md", buf_c(&big));
  buf_clear(&big);
  for (int i = 0; i < 50; i++)
    buf_puts(&big, "{{include:policies/leaf}}");
  put("policies/big.md", buf_c(&big));
  buf_deinit(&big);
  DATA_ROWS("workflow/expand/includes_are_bounded.yaml", row, text, words) {
    char text[256];
    print_into(text, sizeof text, "name: m\nmovements:\n- name: c\n  policy: '%s and more'\n" END,
               row.text);
    put("w.yaml", text);
    is_refused("w.yaml", "w.yaml", 4, row.words);
  }
}

/* Two calls a file, sixteen files deep, are 65,536 movements; deeper is refused. */
TEST_WITH(set_up, tear_down, depth_and_size_are_bounded) {
  for (int i = 0; i < 20; i++) {
    char name[32], text[512];
    print_into(name, sizeof name, "n%d.yaml", i);
    print_into(text, sizeof text,
               "name: n\nmovements:\n- name: a\n  call: n%d.yaml\n" DONE
               "- name: b\n  call: n%d.yaml\n" DONE,
               i + 1, i + 1);
    put(name, text);
  }
  put("n15.yaml", "name: n\nmovements:\n- name: a\n" END);
  is_refused("n0.yaml", "n13.yaml", 3, "more than 1000 calls");
  put("n15.yaml", "name: n\nmovements:\n- name: a\n  call: n16.yaml\n" DONE);
  put("n16.yaml", "name: n\nmovements:\n- name: a\n  call: n17.yaml\n" DONE);
  put("n17.yaml", "name: n\nmovements:\n- name: a\n" END);
  is_refused("n0.yaml", "n16.yaml", 4, "nested deeper than 16");
}

TEST_WITH(set_up, tear_down, a_hundred_calls_take_no_time) {
  struct buf text = {0};
  struct timespec from, to;
  put_review();
  buf_puts(&text, "name: m\nmovements:\n");
  for (int i = 0; i < 100; i++)
    buf_printf(&text, "- name: c%d\n  call: sub/review.yaml\n  args: {target: all of %d}\n" RULES,
               i, i);
  put("w.yaml", buf_c(&text));
  buf_deinit(&text);
  double best = 1e9;
  for (int i = 0; i < 5; i++) {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    json_t *doc = loads("w.yaml");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_int_equal(json_array_size(json_object_get(doc, "movements")), 600);
    json_decref(doc);
    double ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    best = ms < best ? ms : best;
  }
  print_message("100 calls: %.1f ms\n", best);
  assert_true(best < 200); /* ten times the figure: under a sanitizer too */
}
