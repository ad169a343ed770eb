/* Holds the one table of keys of a workflow. */
#include "core/keys.h"

#include "core/limits.h"

#include "base/limits.h"
#include "render/describe.h"

#include <stddef.h>

static const char *const languages[] = {"en", "ja", NULL};
static const char *const infinite[] = {"infinite", NULL};
const char *const stage_words[] = {"structured_output", "phase3_tag", "phase1_tag", "ai_judge",
                                   NULL};

static const char *const permission_words[] = {"readonly", "edit", "full", NULL};
static const char *const session_words[] = {"continue", "refresh", NULL};

static const struct key option_list[] = {
    {.name = "temperature",
     .or_null = true,
     .type = KEY_NUMBER,
     .max = 2,
     .description =
         "Sampling temperature, 0 to 2; sent only where it is written. null takes one away."},
    {.name = "seed",
     .or_null = true,
     .type = KEY_INTEGER,
     .min = -1e15,
     .max = 1e15,
     .description = "Seed of the sampling, where the backend has one."},
    {.name = "max_tokens",
     .or_null = true,
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_OPTION_TOKENS,
     .description = "Most tokens of one answer."},
    {.name = "effort",
     .or_null = true,
     .type = KEY_LINE,
     .description = "How hard the model thinks: low, medium, high, or the backend's own word."},
    {0},
};
const struct key_set options_keys = {"options", "options", option_list};

static const char *const no_words[] = {"none", NULL};
static const char *const order_words[] = {"rotate", "fixed", NULL};
static const char *const split_words[] = {"next", "ask", NULL};

static const struct key judge_list[] = {
    {.name = "stages",
     .type = KEY_STAGES,
     .words = stage_words,
     .description = "The ways to judge, in this order; the next is tried when one gives no rule. "
                    "[phase1_tag] alone calls no model."},
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description = "Who judges; the movement's provider when it is not set. A list names those to "
                    "fall back to."},
    {.name = "model", .type = KEY_LINE, .description = "The judge's model."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Sampling options of the judge's calls."},
    {.name = "effort",
     .or_null = true,
     .type = KEY_LINE,
     .description = "How hard judges think (default low, where the model is known to take one); "
                    "null: the backend's own."},
    {.name = "timeout_ms",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_CALL_WALL_MS,
     .description = "Most milliseconds of one judge call (default 600000)."},
    {.name = "max_reasks",
     .type = KEY_INTEGER,
     .max = LIMIT_REASK_COUNT,
     .description = "How often a stage asks again after an answer that breaks the schema "
                    "(default 0)."},
    {.name = "panel",
     .type = KEY_PANEL,
     .max = LIMIT_PANEL_COUNT,
     .words = no_words,
     .description = "Two to seven providers that vote in each stage that calls; the same one may "
                    "stand there several times. none takes the workflow's panel away."},
    {.name = "agree",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_PANEL_COUNT,
     .description = "How many votes must say the same (default: more than half)."},
    {.name = "order",
     .type = KEY_CHOICE,
     .words = order_words,
     .description = "rotate (default): each vote is asked with the rules in another order, their "
                    "numbers kept. fixed: all in the file's."},
    {.name = "else",
     .type = KEY_CHOICE,
     .words = split_words,
     .description = "Not enough agree: next (default) tries the next stage, ask stops the session, "
                    "resumably, for a person."},
    {0},
};
const struct key_set judge_keys = {"judge", "judge", judge_list};

static const struct key rule_list[] = {
    {.name = "condition",
     .type = KEY_CONDITION,
     .required = true,
     .description = "When the rule holds: a label that a judge reads, when(EXPR) on exit, "
                    "last_exit, iteration, movement_iteration, changed, files, tests, checks and "
                    "structured.MOVEMENT.FIELD, or label && when(EXPR)."},
    {.name = "next",
     .type = KEY_NAME,
     .description = "Where it leads: a movement's name, COMPLETE or ABORT. A rule of a child in "
                    "parallel has none, every other one must."},
    {.name = "appendix", .type = KEY_TEXT, .description = "A text shown together with the rule."},
    {.name = "interactive_only",
     .type = KEY_BOOL,
     .description = "The rule exists only while a person takes part in the session "
                    "(default false)."},
    {0},
};
const struct key_set rule_keys = {"a rule", "rule", rule_list};

static const char *const on_failures[] = {"error", "escalate", "sentinel", NULL};

static const struct key reask_list[] = {
    {.name = "provider",
     .type = KEY_LINE,
     .description = "Who corrects; the movement's provider when it is not set."},
    {.name = "model", .type = KEY_LINE, .description = "The model that corrects."},
    {0},
};
const struct key_set reask_keys = {"reask", "reask", reask_list};

static const struct key structured_list[] = {
    {.name = "schema",
     .type = KEY_SCHEMA,
     .required = true,
     .description = "JSON Schema of the value: the name of a ready one, a path relative to this "
                    "file, or the schema itself."},
    {.name = "invariants",
     .type = KEY_INVARIANTS,
     .description = "What must hold beyond the schema: expressions such as sum(items[].price) == "
                    "total, {command: [..]} with the value on standard input, {ai: question}."},
    {.name = "on_failure",
     .type = KEY_CHOICE,
     .required = true,
     .words = on_failures,
     .description = "Without a valid value: error fails the session, escalate stops it resumably "
                    "with a question, sentinel goes on with {sentinel: {reason, attempts, errors}} "
                    "as the value; when(structured.MOVEMENT.sentinel) tells."},
    {.name = "max_reasks",
     .type = KEY_INTEGER,
     .max = LIMIT_REASK_COUNT,
     .description = "Most corrections asked for (default 2; of a command 0)."},
    {.name = "example",
     .type = KEY_BOOL,
     .description = "Whether the prompt shows an example of the schema's shape, with placeholders "
                    "(default false)."},
    {.name = "assert_format",
     .type = KEY_BOOL,
     .description = "Whether format (date, email, uri, ...) is checked in the value, not only "
                    "noted (default false)."},
    {.name = "repair",
     .type = KEY_BOOL,
     .description = "Whether broken JSON may be mended (default false)."},
    {.name = "reask",
     .type = KEY_SET,
     .set = &reask_keys,
     .description = "Who corrects, when it is not who answered."},
    {.name = "token_budget",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_TOKEN_BUDGET,
     .description = "No further correction once all calls for the value took so many tokens."},
    {.name = "time_budget_ms",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_CALL_WALL_MS,
     .description = "Most milliseconds of all calls for the value together."},
    {0},
};
const struct key_set structured_keys = {"structured_output", "structured_output", structured_list};

static const struct key movement_list[] = {
    {.name = "name",
     .type = KEY_NAME,
     .required = true,
     .description = "The movement's name, unique in the file; its tag is [NAME:N] in capitals."},
    {.name = "description", .type = KEY_TEXT, .description = "What the movement is for."},
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description =
         "Who works on this movement; the workflow's provider when it is not set. A list "
         "names those to fall back to, in this order."},
    {.name = "model", .type = KEY_LINE, .description = "The model of this movement."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Sampling options; they replace the workflow's as a whole."},
    {.name = "command",
     .type = KEY_ARGV,
     .description = "Runs this program with these arguments (no shell) instead of an agent; the "
                    "instruction is its standard input, exit its exit status."},
    {.name = "tests",
     .type = KEY_LINE,
     .check = limits_check_tests,
     .description = "How the command tells its tests: ctest, pytest, go, cargo, jest, tap or "
                    "junit:PATH (a report, or a folder of them). when() knows tests.passed, "
                    "tests.failed and tests.skipped; an exit of 0 without a test that passed, or "
                    "with one that failed, counts as 1."},
    {.name = "timeout",
     .type = KEY_LINE,
     .check = limits_check_duration,
     .description = "Longest time of one call of this movement, such as 90s, 15m or 2h "
                    "(default 1h)."},
    {.name = "stall",
     .type = KEY_LINE,
     .check = limits_check_duration,
     .description = "Longest time without a sign of life in a call of its command or agent "
                    "(default: of a command 15m, of an agent as its profile says)."},
    {.name = "cwd",
     .type = KEY_LINE,
     .check = limits_check_cwd,
     .description = "The folder, below the session's, in which its command or agent works; "
                    "{structured:MOVEMENT.FIELD} is a value of an earlier movement."},
    {.name = "persona",
     .type = KEY_FACET,
     .facet = FACET_PERSONA,
     .description = "Who the agent is: the name of a persona, a path, or the text itself."},
    {.name = "policy",
     .type = KEY_FACET,
     .facet = FACET_POLICY,
     .description = "What the agent must heed: a name, a path, a text, or a list of them."},
    {.name = "knowledge",
     .type = KEY_FACET,
     .facet = FACET_KNOWLEDGE,
     .description = "What the agent should know: a name, a path, a text, or a list of them."},
    {.name = "instruction",
     .alias = "instruction_template",
     .type = KEY_FACET,
     .facet = FACET_INSTRUCTION,
     .description = "What to do: a name, a path, a text, or a list of them. Variables: {task}, "
                    "{iteration}, {max_movements}, {movement_iteration}, {previous_response}, "
                    "{structured:MOVEMENT.FIELD}."},
    {.name = "bare_prompt",
     .type = KEY_BOOL,
     .description = "Whether the prompt is the instruction alone, without the task, the previous "
                    "answer and the words around them (default false)."},
    {.name = "permission",
     .type = KEY_CHOICE,
     .words = permission_words,
     .description = "What the agent may do. readonly (default): read, and run nothing that writes. "
                    "edit: change files below the working directory, and run the programs of "
                    "`run`. full: anything."},
    {.name = "run",
     .type = KEY_RUN,
     .max = LIMIT_RUN_COUNT,
     .description = "The programs that the agent may run with permission edit, each a program and "
                    "perhaps its first arguments: [make, ./dev, npm test] (default none)."},
    {.name = "edit", .type = KEY_BOOL, .description = "true: another word for permission: edit."},
    {.name = "secrets",
     .type = KEY_VARIABLES,
     .description = "Variables of `secrets` in the user's configuration that this movement's agent "
                    "or command gets; judges and other movements do not."},
    {.name = "required_permission_mode",
     .alias = "permission_mode",
     .type = KEY_CHOICE,
     .words = permission_words,
     .description = "The least that the agent must be allowed: readonly, edit or full; more than "
                    "`edit` gives when it is higher."},
    {.name = "session",
     .type = KEY_CHOICE,
     .words = session_words,
     .description = "continue: the agent's own conversation of an earlier run with the same "
                    "session_key goes on, where the backend can; refresh: a new one each time "
                    "(default continue)."},
    {.name = "session_key",
     .type = KEY_NAME,
     .description = "Movements with the same key share the agent's conversation (default: those "
                    "with the same persona, else the movement alone)."},
    {.name = "pass_previous_response",
     .type = KEY_BOOL,
     .description = "Whether the prompt holds the previous movement's answer (default true)."},
    {.name = "structured_output",
     .type = KEY_SET,
     .set = &structured_keys,
     .description = "The answer must be a JSON value that fits a schema; it is checked, and "
                    "corrections are asked for. Later movements see it as "
                    "{structured:MOVEMENT.FIELD} and structured.MOVEMENT.FIELD in when()."},
    {.name = "judge",
     .type = KEY_SET,
     .set = &judge_keys,
     .description = "How this movement is judged; its keys go on top of the workflow's judge."},
    {.name = "provider_options",
     .type = KEY_NOTED,
     .description = "a provider's settings stand in segue's configuration, sampling in options"},
    {.name = "capabilities",
     .type = KEY_NOTED,
     .description = "a provider's settings stand in segue's configuration"},
    {.name = "mcp_servers",
     .type = KEY_NOTED,
     .description = "an agent program reads its MCP servers from its own configuration"},
    {.name = "tags", .type = KEY_NOTED, .description = "each movement names its provider itself"},
    {.name = "allowed_tools",
     .type = KEY_NOTED,
     .description = "edit and required_permission_mode say what the agent may do"},
    {.name = "parallel",
     .type = KEY_SET_LIST,
     .set = &movement_keys,
     .max = LIMIT_GROUP_COUNT,
     .description = "Movements that run at once instead of an agent's work. Their answers, joined "
                    "under their names, are this movement's; its rules may be all(\"label\"), "
                    "any(\"label\") and when(votes.label >= 2)."},
    {.name = "concurrency",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_GROUP_COUNT,
     .description = "How many children of parallel run at once (default: all)."},
    {.name = "rules",
     .type = KEY_SET_LIST,
     .required = true,
     .set = &rule_keys,
     .max = LIMIT_RULE_COUNT,
     .description = "Where to go next, numbered from 1 in this order."},
    {0},
};
const struct key_set movement_keys = {"a movement", "movement", movement_list};

static const struct key workflow_list[] = {
    {.name = "name", .type = KEY_NAME, .required = true, .description = "The workflow's name."},
    {.name = "description", .type = KEY_TEXT, .description = "What the workflow is for."},
    {.name = "language",
     .type = KEY_CHOICE,
     .words = languages,
     .description = "Language of the prompts that segue writes (default en)."},
    {.name = "schema_as",
     .type = KEY_CHOICE,
     .words = describe_form_names,
     .description = "How a backend without a schema mode of its own is told a schema: a line a "
                    "field (prompt, the default), types, or the JSON Schema itself."},
    {.name = "initial_movement",
     .alias = "initial_step",
     .type = KEY_NAME,
     .description = "Where to start (default: the first movement)."},
    {.name = "max_movements",
     .alias = "max_steps",
     .type = KEY_COUNT,
     .min = 1,
     .max = LIMIT_MOVEMENTS,
     .words = infinite,
     .description = "Most movements of one session, or infinite (default 10)."},
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description = "Who works on the movements that name no provider. A list names those to fall "
                    "back to, in this order."},
    {.name = "model", .type = KEY_LINE, .description = "The model that goes with the provider."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Sampling options of all agent movements that set none."},
    {.name = "judge",
     .type = KEY_SET,
     .set = &judge_keys,
     .description = "How movements are judged."},
    {.name = "personas",
     .type = KEY_SECTION,
     .facet = FACET_PERSONA,
     .description = "Personas of this file: name to path or text."},
    {.name = "policies",
     .type = KEY_SECTION,
     .facet = FACET_POLICY,
     .description = "Policies of this file: name to path or text."},
    {.name = "knowledge",
     .type = KEY_SECTION,
     .facet = FACET_KNOWLEDGE,
     .description = "Knowledge of this file: name to path or text."},
    {.name = "instructions",
     .type = KEY_SECTION,
     .facet = FACET_INSTRUCTION,
     .description = "Instructions of this file: name to path or text."},
    {.name = "output_contracts",
     .alias = "report_formats",
     .type = KEY_SECTION,
     .facet = FACET_OUTPUT_CONTRACT,
     .description = "Output contracts of this file: name to path or text."},
    {.name = "piece_config",
     .type = KEY_NOTED,
     .description = "providers and models are set in segue's configuration, or by provider and "
                    "model here"},
    {.name = "workflow_config",
     .type = KEY_NOTED,
     .description = "providers and models are set in segue's configuration, or by provider and "
                    "model here"},
    {.name = "provider_options",
     .type = KEY_NOTED,
     .description = "a provider's settings stand in segue's configuration, sampling in options"},
    {.name = "capabilities",
     .type = KEY_NOTED,
     .description = "a provider's settings stand in segue's configuration"},
    {.name = "mcp_servers",
     .type = KEY_NOTED,
     .description = "an agent program reads its MCP servers from its own configuration"},
    {.name = "tags", .type = KEY_NOTED, .description = "each movement names its provider itself"},
    {.name = "interactive_mode", .type = KEY_NOTED, .description = "the task comes from --task"},
    {.name = "answer_agent",
     .type = KEY_NOTED,
     .description = "segue answers no questions of agents"},
    {.name = "movements",
     .alias = "steps",
     .type = KEY_SET_LIST,
     .required = true,
     .set = &movement_keys,
     .max = LIMIT_MOVEMENT_COUNT,
     .description = "The units of work; each says by its rules where to go next."},
    {0},
};
const struct key_set workflow_keys = {"a workflow", "workflow", workflow_list};

const struct key *key_find(const struct key_set *set, struct str name) {
  for (const struct key *k = set->keys; k->name; k++)
    if (str_eq_c(name, k->name) || (k->alias && str_eq_c(name, k->alias)))
      return k;
  return NULL;
}

const char *key_nearest(const struct key_set *set, struct str name) {
  const char *names[2 * (ARRAY_LEN(workflow_list) + ARRAY_LEN(movement_list))];
  size_t n = 0;
  for (const struct key *k = set->keys; k->name; k++) {
    names[n++] = k->name;
    if (k->alias)
      names[n++] = k->alias;
  }
  names[n] = NULL;
  return str_nearest(name, names);
}

void key_words(const struct key *k, struct buf *out) {
  for (size_t i = 0; k->words[i]; i++) {
    if (i > 0)
      buf_puts(out, k->words[i + 1] ? ", " : " or ");
    buf_puts(out, k->words[i]);
  }
}
