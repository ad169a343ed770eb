/* The keys of a workflow, its movements and its loops; finds a key by its name. */
#include "core/keys.h"

#include "core/contract.h"
#include "core/limits.h"
#include "core/workflow.h"
#include "core/worktree.h"

#include "base/limits.h"
#include "render/describe.h"

#include <stddef.h>

static const char *const languages[] = {"en", "ja", NULL};
static const char *const infinite[] = {"infinite", NULL};

static const char *const permission_words[] = {"readonly", "edit", "full", NULL};
static const char *const stop_words[] = {"error", NULL};
const char *const workspace_words[] = {"here", "worktree", NULL};
const char *const commit_words[] = {"off", "movement", "end", NULL};
static const char *const sandbox_words[] = {"off", "guard", "strict", "container", NULL};
static const char *const network_words[] = {"open", "api", "none", NULL};
static const char *const session_words[] = {"continue", "refresh", NULL};

static const struct key movement_list[] = {
    {.name = "name",
     .type = KEY_NAME,
     .required = true,
     .description = "The movement's name, unique in the file; its tag is [NAME:N] in capitals."},
    {.name = "description", .type = KEY_TEXT, .description = "What the movement is for."},
    {.name = "call",
     .type = KEY_LINE,
     .description = "Another workflow instead of work of its own: a path below this file's folder, "
                    "or the name of one beside it, of the user's or of segue's. Its movements "
                    "become NAME/THEIRS; the conditions of the rules are its returns, COMPLETE "
                    "and ABORT."},
    {.name = "args",
     .type = KEY_ARGS,
     .description = "Texts for the params of the workflow that is called."},
    {.name = "uses",
     .type = KEY_LINE,
     .description = "A file with keys of a movement, on which this movement's keys are laid: a "
                    "path, or NAME for fragments/NAME.yaml where facets are looked for."},
    {.name = "with",
     .type = KEY_ARGS,
     .description = "Texts for the params of the fragment that is used."},
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
                    "instruction is its standard input, exit its exit status. The program segue is "
                    "the one that runs the session."},
    {.name = "integrate",
     .type = KEY_NAME,
     .description = "Merges the branches of this group, whose child says workspace: worktree, one "
                    "behind the other into what the session stands on. Exit 0: all are in. Exit "
                    "1: the files in conflict stand in the tree with git's marks; once they are "
                    "resolved, run it again."},
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
    {.name = "budget",
     .type = KEY_SET,
     .set = &budget_keys,
     .description = "What all turns of this movement may use together; a group's with its "
                    "children's."},
    {.name = "gates",
     .type = KEY_SET_LIST,
     .set = &gate_keys,
     .max = LIMIT_GATE_COUNT,
     .description = "Commands that must pass, in this order, before the rules lead on (but not to "
                    "ABORT): a failure goes back to this movement, with the command's output as "
                    "the previous response."},
    {.name = "gate_runs",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_GUARD_TIMES,
     .description = "How often each gate may run in a session (default 10); with its last failure "
                    "the session waits for a person."},
    {.name = "gate",
     .type = KEY_BOOL,
     .description = "Of a command: it is a gate. Its output holds what it writes to stderr, too, "
                    "and after exit 0 the previous response stays what it was (default false)."},
    {.name = "guards",
     .type = KEY_SET,
     .set = &guards_keys,
     .description = "Guards of this movement, on top of the workflow's."},
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
                    "{user_inputs}, {response:MOVEMENT}, "
                    "{structured:MOVEMENT.FIELD}, {report:FILE}, {report_dir}, "
                    "{branches:GROUP}."},
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
    {.name = "sandbox",
     .type = KEY_CHOICE,
     .words = sandbox_words,
     .description =
         "What the kernel holds the programs of this movement to. guard (default of "
         "agents): read all but secrets, write the working directory, their own state "
         "and caches. strict: of the home folder only the working directory and their "
         "own state. container: nothing of the machine but these, in an image. off (default "
         "of commands): nothing is held."},
    {.name = "image",
     .type = KEY_LINE,
     .description = "The image that sandbox: container runs its programs in; it must be there. "
                    "Default: image of sandbox in the user's configuration."},
    {.name = "network",
     .type = KEY_CHOICE,
     .words = network_words,
     .description =
         "What its sandboxed programs reach of the network: open (default): all. api: the hosts "
         "that their backend needs, by name. none: nothing."},
    {.name = "limits",
     .type = KEY_SET,
     .set = &limits_keys,
     .description = "What its programs may take of the machine, all of a call together. Where the "
                    "user's configuration says less, that counts."},
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
    {.name = "report",
     .type = KEY_NAME,
     .check = contract_check_name,
     .description = "The answer itself is kept as this file, such as plan.md, in the session's "
                    "folder of reports; {report:plan.md} is its text later."},
    {.name = "output_contracts",
     .type = KEY_SET,
     .set = &contracts_keys,
     .description = "Reports that the agent writes when its work is done: a call each that goes "
                    "on with its conversation. segue writes the files; {report:FILE} is the text "
                    "of one later."},
    {.name = "ask",
     .type = KEY_SET,
     .set = &ask_keys,
     .description = "A person answers instead of an agent. The session waits without holding a "
                    "place; segue inbox lists what waits, segue answer says it."},
    {.name = "approve",
     .type = KEY_SET,
     .set = &approve_keys,
     .or_true = true,
     .description = "A person sees what would be run and approves or rejects it before the "
                    "movement begins."},
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
     .description = "Edit and Write in it mean permission: edit where the movement says nothing "
                    "else, Bash(make *) means run: [make]"},
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
     .description = "How many children of parallel run at once (default: all; of for_each: 4)."},
    {.name = "for_each",
     .type = KEY_ITEMS,
     .max = LIMIT_ITEM_COUNT,
     .description =
         "The one child of parallel runs once for each item of this list, or of the list "
         "MOVEMENT.FIELD that a structured_output made. Its instruction knows {item}, "
         "{item.FIELD} and {index} (from 1)."},
    {.name = "stop_on",
     .type = KEY_CHOICE,
     .words = stop_words,
     .description = "error: a child that failed ends its siblings, which get no verdict (default: "
                    "they go on, and their work is kept)."},
    {.name = "workspace",
     .type = KEY_CHOICE,
     .words = workspace_words,
     .description = "Of a child: worktree gives it a git worktree and a branch of its own, from "
                    "where the session stands; here (default): it works where the session does."},
    {.name = "rules",
     .type = KEY_SET_LIST,
     .required = true,
     .set = &rule_keys,
     .max = LIMIT_RULE_COUNT,
     .description = "Where to go next, numbered from 1 in this order."},
    {0},
};
const struct key_set movement_keys = {"a movement", "movement", movement_list};

static const struct key loop_judge_list[] = {
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description = "Who judges the loop; the workflow's provider when it is not set. A list names "
                    "those to fall back to."},
    {.name = "model", .type = KEY_LINE, .description = "Its model."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Its sampling options; they replace the workflow's as a whole."},
    {.name = "persona",
     .type = KEY_FACET,
     .facet = FACET_PERSONA,
     .description = "Who judges: the name of a persona, a path, or the text itself."},
    {.name = "policy",
     .type = KEY_FACET,
     .facet = FACET_POLICY,
     .description = "What the judge must heed: a name, a path, a text, or a list of them."},
    {.name = "knowledge",
     .type = KEY_FACET,
     .facet = FACET_KNOWLEDGE,
     .description = "What the judge should know: a name, a path, a text, or a list of them."},
    {.name = "instruction",
     .alias = "instruction_template",
     .type = KEY_FACET,
     .facet = FACET_INSTRUCTION,
     .description = "What to judge (default: whether the rounds bring progress). Variables: those "
                    "of a movement, {cycle} and {cycle_count}."},
    {.name = "judge",
     .type = KEY_SET,
     .set = &judge_keys,
     .description = "How its answer is judged; its keys go on top of the workflow's judge."},
    {.name = "rules",
     .type = KEY_SET_LIST,
     .required = true,
     .set = &rule_keys,
     .max = LIMIT_RULE_COUNT,
     .description = "Where to go next, in place of the cycle's next round."},
    {0},
};
const struct key_set loop_judge_keys = {"a loop's judge", "loop_judge", loop_judge_list};

static const struct key monitor_list[] = {
    {.name = "cycle",
     .type = KEY_NAMES,
     .required = true,
     .min = 2,
     .max = LIMIT_CYCLE_COUNT,
     .description = "The movements of the loop, in their order, each once."},
    {.name = "ignore",
     .alias = "ignore_steps",
     .type = KEY_NAMES,
     .min = 1,
     .max = LIMIT_CYCLE_COUNT,
     .description = "Movements between them that do not break the loop."},
    {.name = "threshold",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_MOVEMENTS,
     .description = "How many times in a row the cycle is gone through before the judge is asked "
                    "(default 3)."},
    {.name = "judge",
     .type = KEY_SET,
     .required = true,
     .set = &loop_judge_keys,
     .description = "Who is asked when the cycle would be entered once more."},
    {0},
};
const struct key_set monitor_keys = {"a loop monitor", "monitor", monitor_list};

static const struct key workflow_list[] = {
    {.name = "name", .type = KEY_NAME, .required = true, .description = "The workflow's name."},
    {.name = "description", .type = KEY_TEXT, .description = "What the workflow is for."},
    {.name = "params",
     .type = KEY_PARAMS,
     .description = "What the workflow takes: NAME: default, or NAME: {description: .., default: "
                    "..}; without a default it must be given. {input:NAME} is its value: of args "
                    "where the workflow is called, of --input NAME=VALUE where it is run."},
    {.name = "returns",
     .type = KEY_LABELS,
     .description = "Labels with which the workflow can end when it is called, besides COMPLETE "
                    "and ABORT; a rule with return: LABEL ends it so."},
    {.name = "outputs",
     .type = KEY_OUTPUTS,
     .description = "What a complete session returns, NAME: text with the variables of an "
                    "instruction; a text that is one {structured:MOVEMENT.FIELD} is that value."},
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
    {.name = "budget",
     .type = KEY_SET,
     .set = &budget_keys,
     .description = "What a session may use: no call starts and no movement is entered once a sum "
                    "has reached its limit. The session stops, and segue resume --add-budget goes "
                    "on."},
    {.name = "protect",
     .type = KEY_TEXTS,
     .max = LIMIT_PROTECT_COUNT,
     .description = "Paths that no movement may change, such as tests/** or *.lock: one that does "
                    "stops the session, and a resume is a person's word that it may be."},
    {.name = "guards",
     .type = KEY_SET,
     .set = &guards_keys,
     .description = "What goes round and round is stopped, or told: see its keys."},
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
    {.name = "workspace",
     .type = KEY_CHOICE,
     .words = workspace_words,
     .description = "here (default): in the working directory, where one session at a time edits. "
                    "worktree: in a git worktree on a branch of its own."},
    {.name = "commit",
     .type = KEY_CHOICE,
     .words = commit_words,
     .description = "When the work is committed: off (default with here), after each movement, or "
                    "at the session's end (default with worktree)."},
    {.name = "branch",
     .type = KEY_LINE,
     .check = worktree_check_branch,
     .description = "The name of a worktree's branch; {id} is the session's, {workflow} its "
                    "workflow's (default segue/{id})."},
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
    {.name = "global_rules",
     .type = KEY_SET_LIST,
     .set = &rule_keys,
     .max = LIMIT_RULE_COUNT,
     .description = "Rules of every movement, in front of its own and numbered before them. A "
                    "when() that looks at what a movement does not have is false there; a label is "
                    "asked for where the movement has labels of its own."},
    {.name = "loop_monitors",
     .type = KEY_SET_LIST,
     .set = &monitor_keys,
     .max = LIMIT_MONITOR_COUNT,
     .description = "Loops that are watched: a judge says whether another round is worth it."},
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
