/* The table of keys as it meets outside data: a value of each type that no file could have. */
#include "core/keys.h"

#include "base/limits.h"
#include "core/workflow.h"
#include "render/describe.h"
#include "structured/invariant.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

#define RULES    "'rules':[{'condition':'done','next':'COMPLETE'}]"
#define M(more)  "{'name':'w','movements':[{'name':'a'," more "," RULES "}]}"
#define W(more)  "{'name':'w'," more ",'movements':[{'name':'a'," RULES "}]}"
#define SO(more) M("'structured_output':{'schema':{'type':'object'},'on_failure':'error'," more "}")

/* Each is refused with the path and with what must stand there. */
TEST(every_type_of_key_is_checked) {
  static const struct {
    const char *doc, *error;
  } cases[] = {
      {W("'outputs':7"), "outputs: must be an object of at most 64 names"},
      {W("'outputs':{'x':7}"), "outputs: must hold texts"},
      {W("'outputs':{'':'x'}"), "outputs: must hold texts"},
      {W("'workspace':'worktree','branch':'a b'"), "branch: must be the name of a branch"},
      {W("'budget':{'tokens':0}"), "budget.tokens: must be a whole number from 1"},
      {W("'budget':{'cost':'1'}"), "budget.cost: must be a number from 0"},
      {W("'budget':{'call':[]}"), "budget.call: must be an object"},
      {W("'budget':{'on_exceed':'wait'}"), "budget.on_exceed: must be finish or stop"},
      {W("'loop_monitors':7"), "loop_monitors"},
      {M("'for_each':7,'parallel':[{'name':'x','rules':[{'condition':'r'}]}]"),
       "for_each: must be a list with at least one item"},
      {M("'for_each':[],'parallel':[{'name':'x','rules':[{'condition':'r'}]}]"),
       "for_each: must be a list with at least one item"},
      {M("'cwd':'../x'"), "cwd: leaves the session's working directory"},
      {M("'timeout':'soon'"), "timeout: must be a duration"},
      {M("'run':['a','']"), "run: must be a list of 1 to 32 programs"},
      {M("'command':['a',7]"), "command: must be texts without NUL"},
      {M("'command':['a','b\\u0000c']"), "command: must be texts without NUL"},
      {M("'secrets':['1X']"), "secrets: must be a list of names of variables"},
      {M("'judge':{'panel':['a','b',7]}"), "judge.panel: must be a list of 2 to 7"},
      {M("'output_contracts':{'report':[]}"), "output_contracts.report: must be a list of 1"},
      {M("'output_contracts':{'report':[{'name':'../x'}]}"), "output_contracts.report[0].name"},
      {SO("'max_reasks':1.5"), "structured_output.max_reasks: must be a whole number"},
      {SO("'example':'yes'"), "structured_output.example: must be true or false"},
      {SO("'on_failure':'hope'"), "structured_output.on_failure: must be "},
      {M("'provider':7"), "provider: must be a text"},
      {M("'provider':''"), "provider: must be a text of one line, not empty"},
      {M("'fallback':'x'"), "fallback: must be a list of providers"},
      {W("'protect':['']"), "protect: must be a list of texts, not too many"},
      {W("'protect':{}"), "protect: must be a list of texts, not too many"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    json_auto_t *doc = data_json(cases[i].doc);
    struct workflow *wf = workflow_build(doc, &err);
    if (wf != NULL || strstr(err.text, cases[i].error) == NULL)
      fail_msg("%s: %s", cases[i].doc, wf ? "taken" : err.text);
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
  static const struct {
    const char *doc, *error;
  } cases[] = {
      {M("'gate':true"), "gate: is for a movement with command"},
      {M("'workspace':'worktree'"), "workspace: is for the workflow or for a child"},
      {M("'for_each':'nowhere.list','parallel':[{'name':'x','rules':[{'condition':'r'}]}]"),
       "for_each: names no movement"},
      {M("'structured_output':{'schema':{'type':'nothing'},'on_failure':'error'}"),
       "structured_output.schema"},
      {SO("'invariants':['1 +']"), "structured_output.invariants"},
      {M("'report':'a.md','output_contracts':{'report':[{'name':'A.md'}]}"),
       "two reports are called A.md"},
      {M("'command':['x'],'output_contracts':{'report':[{'name':'a.md'}]}"),
       "output_contracts: a command writes no reports"},
      {M("'parallel':[{'name':'x','report':'r.md','rules':[{'condition':'r'}]},"
         "{'name':'y','report':'r.md','rules':[{'condition':'r'}]}]"),
       "parallel: two children write the same report"},
      {M("'for_each':[1,2],'parallel':[{'name':'x','report':'r.md','rules':[{'condition':'r'}]}]"),
       "parallel: the runs of for_each would write the same report"},
      {"{'name':'w','movements':[{'name':'g','parallel':[{'name':'x','rules':[{'condition':'r',"
       "'requires_user_input':true}]}],'rules':[{'condition':'d','next':'COMPLETE',"
       "'requires_user_input':true}]}]}",
       "needs a movement that does the work"},
      {"{'name':'w','movements':[{'name':'a','rules':[{'condition':'d','next':'nowhere',"
       "'requires_user_input':true}]}]}",
       "next: names no movement"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct err err = {0};
    json_auto_t *doc = data_json(cases[i].doc);
    struct workflow *wf = workflow_build(doc, &err);
    if (wf != NULL || strstr(err.text, cases[i].error) == NULL)
      fail_msg("%s: %s", cases[i].doc, wf ? "taken" : err.text);
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
