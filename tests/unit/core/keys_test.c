/* The table of keys as it meets outside data: a value of each type that no file could have. */
#include "core/keys.h"

#include "base/limits.h"
#include "core/workflow.h"
#include "render/describe.h"
#include "structured/invariant.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

#define RULES   "'rules':[{'condition':'done','next':'COMPLETE'}]"
#define M(more) "{'name':'w','movements':[{'name':'a'," more "," RULES "}]}"
/* Each is refused with the path and with what must stand there. */
TEST(every_type_of_key_is_checked) {
  DATA_ROWS("core/keys/every_type_of_key_is_checked.yaml", c, doc, error) {
    struct err err = {0};
    json_auto_t *doc = data_json(c.doc);
    struct workflow *wf = workflow_build(doc, &err);
    if (wf != NULL || strstr(err.text, c.error) == NULL)
      fail_msg("%s: %s", c.doc, wf ? "taken" : err.text);
  }
}

/* The schema writes out what code has as a constant, and the words of a choice that it has names
 * for. */
TEST(bounds_and_words_are_those_of_the_code) {
  static const struct {
    const struct key_set *set;
    const char *key;
    double max;
    const char *const *words;
  } rows[] = {
      {&options_keys, "max_tokens", LIMIT_OPTION_TOKENS, NULL},
      {&judge_keys, "timeout_ms", LIMIT_CALL_WALL_MS, NULL},
      {&judge_keys, "max_reasks", LIMIT_REASK_COUNT, NULL},
      {&judge_keys, "panel", LIMIT_PANEL_COUNT, NULL},
      {&judge_keys, "provider", LIMIT_FALLBACK_COUNT, NULL},
      {&ask_keys, "choices", LIMIT_CHOICE_COUNT, NULL},
      {&structured_output_keys, "invariants", INVARIANTS_MAX, NULL},
      {&structured_output_keys, "token_budget", LIMIT_TOKEN_BUDGET, NULL},
      {&contracts_keys, "report", LIMIT_CONTRACT_COUNT, NULL},
      {&budget_keys, "tokens", LIMIT_BUDGET_TOKENS, NULL},
      {&budget_keys, "cost", LIMIT_COST_USD, NULL},
      {&budget_keys, "calls", LIMIT_BUDGET_CALLS, NULL},
      {&budget_keys, "movements", LIMIT_MOVEMENTS, NULL},
      {&limits_keys, "cpus", LIMIT_CALL_CPUS, NULL},
      {&limits_keys, "pids", LIMIT_CALL_PIDS, NULL},
      {&guards_keys, "same_tool", LIMIT_GUARD_TIMES, NULL},
      {&gate_keys, "stall_retries", LIMIT_STALL_RETRY_MAX, NULL},
      {&movement_keys, "command", LIMIT_ARGV_COUNT, NULL},
      {&movement_keys, "gates", LIMIT_GATE_COUNT, NULL},
      {&movement_keys, "run", LIMIT_RUN_COUNT, NULL},
      {&movement_keys, "secrets", LIMIT_SECRET_COUNT, NULL},
      {&movement_keys, "parallel", LIMIT_GROUP_COUNT, NULL},
      {&movement_keys, "for_each", LIMIT_ITEM_COUNT, NULL},
      {&movement_keys, "rules", LIMIT_RULE_COUNT, NULL},
      {&movement_keys, "on_error", LIMIT_ERROR_WAY_COUNT, NULL},
      {&monitor_keys, "cycle", LIMIT_CYCLE_COUNT, NULL},
      {&workflow_keys, "returns", LIMIT_RULE_COUNT, NULL},
      {&setup_keys, "run", LIMIT_SETUP_COUNT, NULL},
      {&workflow_keys, "protect", LIMIT_PROTECT_COUNT, NULL},
      {&workflow_keys, "loop_monitors", LIMIT_MONITOR_COUNT, NULL},
      {&workflow_keys, "movements", LIMIT_MOVEMENT_COUNT, NULL},
      {&movement_keys, "permission", 0, permission_names},
      {&movement_keys, "sandbox", 0, sandbox_level_names},
      {&movement_keys, "network", 0, sandbox_network_names},
      {&workflow_keys, "schema_as", 0, describe_form_names},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    const struct key *k = key_find(rows[i].set, str_from(rows[i].key));
    if (k->max != rows[i].max)
      fail_msg("%s of %s: %.0f, not %.0f", k->name, rows[i].set->what, k->max, rows[i].max);
    for (size_t w = 0; rows[i].words != NULL && (w == 0 || k->words[w - 1] != NULL); w++)
      assert_true(rows[i].words[w] == k->words[w] || strcmp(rows[i].words[w], k->words[w]) == 0);
  }
}

/* Keys that contradict each other are beyond the table. */
TEST(keys_that_contradict_each_other_are_refused) {
  DATA_ROWS("core/keys/keys_that_contradict_each_other_are_refused.yaml", c, doc, error) {
    struct err err = {0};
    json_auto_t *doc = data_json(c.doc);
    struct workflow *wf = workflow_build(doc, &err);
    if (wf != NULL || strstr(err.text, c.error) == NULL)
      fail_msg("%s: %s", c.doc, wf ? "taken" : err.text);
  }
}

/* With those of the workflow: each rule has a number, and a log holds no more. */
TEST(rules_are_counted_with_those_of_the_workflow) {
  for (int own = 99; own <= 100; own++) {
    buf_auto_t text = {0};
    struct err err = {0};
    buf_puts(&text, "{'name':'w','global_rules':[{'condition':'stop','next':'ABORT'}],"
                    "'movements':[{'name':'a','rules':[");
    for (int i = 0; i < own; i++)
      buf_printf(&text, "%s{'condition':'r%d','next':'COMPLETE'}", i > 0 ? "," : "", i);
    buf_puts(&text, "]}]}");
    json_auto_t *doc = data_json(buf_c(&text));
    struct workflow *wf = workflow_build(doc, &err);
    if ((wf != NULL) != (own == 99))
      fail_msg("%d: %s", own, err.text);
    assert_true(wf || strstr(err.text, "rules: are more than 100 with those of the workflow"));
    workflow_unref(wf);
  }
}

/* One more than the bound. */
TEST(a_bound_holds_for_lists) {
  buf_auto_t text = {0};
  struct err err = {0};
  buf_puts(&text, "{'name':'w','outputs':{");
  for (int i = 0; i < 65; i++)
    buf_printf(&text, "%s'n%d':'x'", i > 0 ? "," : "", i);
  buf_puts(&text, "},'movements':[{'name':'a'," RULES "}]}");
  json_auto_t *doc = data_json(buf_c(&text));
  assert_null(workflow_build(doc, &err));
  assert_non_null(strstr(err.text, "outputs: must be an object of at most 64 names"));
}
