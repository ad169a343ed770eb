/* The judge's conformance cases: folders of data, a new case needs no C.
 *
 * Every file of tests/data/judge is a list of cases; README.md there says what a case holds. */
#include "format/json_object.h"
#include "support/cases.h"
#include "support/chain_run.h"

#include "base/memory.h"
#include "expr/expr.h"
#include "extract/extract.h"
#include "extract/tag.h"
#include "support/test.h"

#include <limits.h>
#include <string.h>

/* --- tag --- */

static void run_tag(const json_t *c) {
  static const char *const keys[] = {"row",   "name",   "note",      "kind", "movement", "text",
                                     "scope", "number", "ambiguous", "mark", NULL};
  struct str text = data_get(c, "text");
  const json_t *number = json_object_get(c, "number");
  struct tag_query query = {.name = data_get(c, "movement"), .mark = data_get(c, "mark")};
  struct tag_result tag;
  check_keys(c, keys);
  query.scope = str_eq_c(data_get(c, "scope"), "agent") ? TAG_AGENT : TAG_REPLY;
  tag_read(text, &query, &tag);
  bool huge = str_eq_c(data_str(number), "huge");
  if (number == NULL)
    complain("says no number");
  else if (json_is_null(number) && tag.found)
    complain("%ld found, none expected", tag.tag.number);
  else if (!json_is_null(number) && !tag.found)
    complain("no tag found");
  else if (huge ? tag.tag.number < LONG_MAX : tag.tag.number != json_integer_value(number))
    complain("%ld found", tag.tag.number);
  if (tag.ambiguous != json_is_true(json_object_get(c, "ambiguous")))
    complain("ambiguous is %d", tag.ambiguous);
}

/* --- chain --- */

static void check_outcomes(const struct chain_run *run, const json_t *wanted) {
  buf_auto_t got = {0}, want = {0};
  JSON_EACH(run->stages, i, v) {
    buf_printf(&got, "%s%s %s", i ? ", " : "", json_string_value(json_object_get(v, "stage")),
               json_string_value(json_object_get(v, "outcome")));
    const char *class = json_string_value(json_object_get(v, "class"));
    if (class)
      buf_printf(&got, " %s", class);
  }
  JSON_EACH(wanted, i, v)
    buf_printf(&want, "%s%s", i ? ", " : "", json_string_value(v));
  if (strcmp(buf_c(&got), buf_c(&want)) != 0)
    complain("stages: %s", buf_c(&got));
}

static void check_offered(const struct chain_run *run, const json_t *wanted) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(&run->spec, offered);
  bool same = n == json_array_size(wanted);
  for (size_t i = 0; same && i < n; i++)
    same = offered[i]->number == json_integer_value(json_array_get(wanted, i));
  if (!same)
    complain("%zu other rules are offered", n);
}

/* Checks that a stage's object holds the given text. */
static void check_notes(const struct chain_run *run, const json_t *notes) {
  JSON_MEMBERS(notes, stage, text) {
    bool found = false;
    JSON_EACH(run->stages, i, object) {
      if (strcmp(stage, json_string_value(json_object_get(object, "stage"))) != 0)
        continue;
      char_auto_t *dump = json_dumps(object, JSON_COMPACT);
      found |= strstr(dump, json_string_value(text)) != NULL;
      if (!found)
        complain("%s says %s", stage, dump);
    }
  }
}

static void run_chain(const json_t *c) {
  static const char *const keys[] = {"row",     "name",       "note",   "kind",    "movement",
                                     "rules",   "stages",     "text",   "env",     "interactive",
                                     "replies", "max_reasks", "expect", "own_tag", "command",
                                     "unasked", NULL};
  static const char *const expect_keys[] = {"result", "rule",   "method", "match_method",
                                            "calls",  "reasks", "stages", "offered",
                                            "notes",  "reason", NULL};
  const json_t *e = json_object_get(c, "expect");
  const char *result = json_string_value(json_object_get(e, "result"));
  const json_t *rule = json_object_get(e, "rule"), *calls = json_object_get(e, "calls");
  AUTO(chain_run_deinit) struct chain_run run;
  check_keys(c, keys);
  check_keys(e, expect_keys);
  chain_run(&run, c);
  const char *got = chain_action_name(run.action);
  if (run.trouble)
    got = "a call of a stage that no reply is written for";
  if (strcmp(got, result ? result : "verdict") != 0)
    complain("ended in %s %s %s", got, run.trouble ? run.trouble : "", run.reason);
  if (run.rule != json_integer_value(rule))
    complain("rule %d", run.rule);
  if (!json_is_integer(calls) || run.calls != (size_t)json_integer_value(calls))
    complain("%zu calls", run.calls);
  if (run.reasks != (size_t)json_integer_value(json_object_get(e, "reasks")))
    complain("%zu reasks", run.reasks);
  if (run.action == CHAIN_VERDICT) {
    if (!str_eq_c(data_get(e, "method"), judge_stage_name(run.method)))
      complain("method %s", judge_stage_name(run.method));
    if (json_object_get(e, "match_method") &&
        !str_eq_c(data_get(e, "match_method"), judge_stage_match_method(run.method)))
      complain("match method %s", judge_stage_match_method(run.method));
  }
  const char *reason = json_string_value(json_object_get(e, "reason"));
  if (reason && strstr(run.reason, reason) == NULL)
    complain("reason: %s", run.reason);
  check_outcomes(&run, json_object_get(e, "stages"));
  if (json_object_get(e, "offered"))
    check_offered(&run, json_object_get(e, "offered"));
  check_notes(&run, json_object_get(e, "notes"));
}

/* --- extract --- */

static void run_extract(const json_t *c) {
  static const char *const keys[] = {"row", "name", "note", "kind", "text", "value", "where", NULL};
  struct str text = data_get(c, "text");
  const json_t *wanted = json_object_get(c, "value");
  struct extract_opts opts = {.want = EXTRACT_WANT_OBJECT};
  AUTO(extract_result_deinit) struct extract_result found;
  check_keys(c, keys);
  enum extract_status status = extract(text.p, text.n, &opts, &found);
  bool any = status == EXTRACT_OK && found.value != NULL;
  char_auto_t *dump = any ? json_dumps(found.value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  if (wanted == NULL)
    complain("says no value");
  else if (json_is_null(wanted) ? any : !any || !json_equal(found.value, wanted))
    complain("extracted %s", any ? dump : "nothing");
  else if (any && !str_eq_c(data_get(c, "where"), extract_stage_name(found.stage)))
    complain("found by %s", extract_stage_name(found.stage));
}

/* --- expr --- */

static void run_expr(const json_t *c) {
  static const char *const keys[] = {"row", "name",  "note",  "kind",  "condition",
                                     "env", "value", "label", "error", NULL};
  AUTO(arena_deinit) struct arena arena = {0};
  struct rule rule = {0};
  struct err err = {0};
  const json_t *wanted = json_object_get(c, "value");
  const char *error = json_string_value(json_object_get(c, "error"));
  json_auto_t *env =
      json_object_get(c, "env") ? json_incref(json_object_get(c, "env")) : json_object();
  check_keys(c, keys);
  const char *got = "refused";
  if (rule_parse(&arena, data_get(c, "condition"), &rule, NULL, &err)) {
    struct expr_error why = {0};
    got = "label";
    if (rule.when != NULL)
      switch (expr_eval(rule.when, env, &why)) {
      case EXPR_TRUE:
        got = "true";
        break;
      case EXPR_FALSE:
        got = "false";
        break;
      case EXPR_ERROR:
        got = "error";
        err_set(&err, ERR_INVALID, "%s", why.text);
        break;
      }
  }
  const char *want = json_string_value(wanted);
  if (json_is_boolean(wanted))
    want = json_is_true(wanted) ? "true" : "false";
  if (want == NULL || strcmp(got, want) != 0)
    complain("%s %s", got, err.text);
  if (error && strstr(err.text, error) == NULL)
    complain("error: %s", err.text);
  if (json_object_get(c, "label") && !str_eq(rule.label, data_get(c, "label")))
    complain("label " STR_FMT, STR_ARG(rule.label));
}

/* --- files --- */

static const struct {
  const char *kind;
  void (*run)(const json_t *c);
} kinds[] = {{"tag", run_tag}, {"chain", run_chain}, {"extract", run_extract}, {"expr", run_expr}};

static void run_case(const json_t *c) {
  const json_t *row = json_object_get(c, "row");
  struct str kind = data_get(c, "kind");
  size_t k = 0;
  if (row != NULL && !json_is_string(row))
    complain("the row of a case is a text");
  while (k < ARRAY_LEN(kinds) && !str_eq_c(kind, kinds[k].kind))
    k++;
  if (k == ARRAY_LEN(kinds))
    complain("kind is none of tag, chain, extract, expr");
  else
    kinds[k].run(c);
}

TEST(every_case_of_every_file) {
  cases_run("judge", 100, run_case);
}

TEST_GROUP(chain_setup, chain_teardown)
