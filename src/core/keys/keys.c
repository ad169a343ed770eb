/* Lists the keys of a workflow, its movements and its loops, and finds a key by its name. */
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
     .description =
         "Another workflow, run in place of this movement: a path below this file's folder, or the "
         "name of a workflow beside it, of the user's or of segue's. Its movements become "
         "NAME/THEIRS; the conditions of the rules are its returns, COMPLETE and ABORT."},
    {.name = "args",
     .type = KEY_ARGS,
     .description = "Texts for the params of the workflow that is called."},
    {.name = "uses",
     .type = KEY_LINE,
     .description = "A file with keys of a movement, which this movement's own keys override: a "
                    "path, or NAME for fragments/NAME.yaml in the folders of facets."},
    {.name = "with",
     .type = KEY_ARGS,
     .description = "Texts for the params of the fragment that is used."},
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description = "The provider that works on this movement (default: the workflow's provider). "
                    "In a list, the others are fallbacks, in that order."},
    {.name = "model", .type = KEY_LINE, .description = "The model for this movement."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Sampling options; they replace the workflow's as a whole."},
    {.name = "command",
     .type = KEY_ARGV,
     .description = "A program and its arguments, run (without a shell) instead of an agent; the "
                    "instruction is its standard input, and exit is its exit status. If the "
                    "program is segue, it is the one that runs the session."},
    {.name = "integrate",
     .type = KEY_NAME,
     .description =
         "The group whose branches are merged, one after another, into what the session stands on; "
         "its child must have workspace: worktree. Exit 0: all are merged. Exit 1: the files in "
         "conflict are in the tree with git's markers; once they are resolved, run it again."},
    {.name = "tests",
     .type = KEY_LINE,
     .check = limits_check_tests,
     .description =
         "How the command reports its tests: ctest, pytest, go, cargo, jest, tap or junit:PATH (a "
         "report, or a folder of reports). when() can use tests.passed, tests.failed and "
         "tests.skipped; exit status 0 without a passed test, or with a failed one, counts as 1."},
    {.name = "timeout",
     .type = KEY_LINE,
     .check = limits_check_duration,
     .description = "The longest time that one call of this movement may take, such as 90s, 15m or "
                    "2h (default 1h)."},
    {.name = "stall",
     .type = KEY_LINE,
     .check = limits_check_duration,
     .description = "The longest time that its command or agent may show no sign of life during a "
                    "call (default: 15m for a command; for an agent, as its profile says)."},
    {.name = "cwd",
     .type = KEY_LINE,
     .check = limits_check_cwd,
     .description = "The folder, below the session's, that its command or agent works in; "
                    "{structured:MOVEMENT.FIELD} is a value from an earlier movement."},
    {.name = "budget",
     .type = KEY_SET,
     .set = &budget_keys,
     .description = "What all turns of this movement may use together; a group's budget includes "
                    "its children."},
    {.name = "gates",
     .type = KEY_SET_LIST,
     .set = &gate_keys,
     .max = LIMIT_GATE_COUNT,
     .description =
         "Commands that must pass, in this order, before the rules lead on (except to ABORT). On a "
         "failure this movement runs again, with the command's output as the previous response."},
    {.name = "gate_runs",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_GUARD_TIMES,
     .description = "How often each gate may run in a session (default 10). If its last run fails, "
                    "the session waits for a person."},
    {.name = "gate",
     .type = KEY_BOOL,
     .description = "Whether this command is a gate: its output then includes stderr, and after "
                    "exit status 0 the previous response stays as it was (default false)."},
    {.name = "guards",
     .type = KEY_SET,
     .set = &guards_keys,
     .description = "Guards for this movement, on top of the workflow's."},
    {.name = "persona",
     .type = KEY_FACET,
     .facet = FACET_PERSONA,
     .description = "Who the agent is: the name of a persona, a path, or the text itself."},
    {.name = "policy",
     .type = KEY_FACET,
     .facet = FACET_POLICY,
     .description = "What the agent must follow: a name, a path, a text, or a list of them."},
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
     .description = "Whether the prompt is only the instruction, without the task, the previous "
                    "answer and segue's own text (default false)."},
    {.name = "permission",
     .type = KEY_CHOICE,
     .words = permission_words,
     .description = "What the agent may do. readonly (default): read, and run nothing that writes. "
                    "edit: change files below the working directory, and run the programs of "
                    "`run`. full: anything."},
    {.name = "run",
     .type = KEY_RUN,
     .max = LIMIT_RUN_COUNT,
     .description = "The programs that the agent may run with permission edit, each optionally "
                    "with its first arguments: [make, ./dev, npm test] (default none)."},
    {.name = "edit", .type = KEY_BOOL, .description = "true: another word for permission: edit."},
    {.name = "sandbox",
     .type = KEY_CHOICE,
     .words = sandbox_words,
     .description = "What the kernel lets this movement's programs do. guard (default for agents): "
                    "read everything except secrets, and write the working directory, their own "
                    "state and caches. strict: of the home folder, use only the working directory "
                    "and their own state. container: run in an image, with nothing of the machine "
                    "but these two. off (default for commands): no restriction."},
    {.name = "image",
     .type = KEY_LINE,
     .description = "The image that sandbox: container runs its programs in; it must already "
                    "exist. Default: sandbox.image in the user's configuration."},
    {.name = "network",
     .type = KEY_CHOICE,
     .words = network_words,
     .description = "What its sandboxed programs can reach on the network. open (default): "
                    "everything. api: the hosts that their backend needs, by name. none: nothing."},
    {.name = "limits",
     .type = KEY_SET,
     .set = &limits_keys,
     .description =
         "How much of the machine its programs may use, all programs of a call together. Where the "
         "user's configuration sets a lower limit, that one counts."},
    {.name = "secrets",
     .type = KEY_VARIABLES,
     .description =
         "Variables, listed in `secrets` of the user's configuration, that this movement's agent "
         "or command gets; judges and other movements do not get them."},
    {.name = "required_permission_mode",
     .alias = "permission_mode",
     .type = KEY_CHOICE,
     .words = permission_words,
     .description = "The least that the agent must be allowed to do: readonly, edit or full; it "
                    "counts where it is more than `edit` gives."},
    {.name = "session",
     .type = KEY_CHOICE,
     .words = session_words,
     .description =
         "continue (default): the agent continues its conversation from an earlier run with the "
         "same session_key, if the backend can. refresh: each run starts a new conversation."},
    {.name = "session_key",
     .type = KEY_NAME,
     .description = "Movements with the same key share the agent's conversation (default: those "
                    "with the same persona, else the movement alone)."},
    {.name = "pass_previous_response",
     .type = KEY_BOOL,
     .description = "Whether the prompt includes the previous movement's answer (default true)."},
    {.name = "structured_output",
     .type = KEY_SET,
     .set = &structured_keys,
     .description = "The answer must be a JSON value that fits a schema; it is checked, and "
                    "corrections are asked for. Later movements see it as "
                    "{structured:MOVEMENT.FIELD} and structured.MOVEMENT.FIELD in when()."},
    {.name = "report",
     .type = KEY_NAME,
     .check = contract_check_name,
     .description = "Saves the answer itself as this file, such as plan.md, in the session's "
                    "report folder; later movements get its text as {report:plan.md}."},
    {.name = "output_contracts",
     .type = KEY_SET,
     .set = &contracts_keys,
     .description = "Reports that the agent is asked for when its work is done, with one call each "
                    "that continues its conversation. segue writes the files; later movements get "
                    "the text as {report:FILE}."},
    {.name = "ask",
     .type = KEY_SET,
     .set = &ask_keys,
     .description = "A person answers instead of an agent. The session waits without occupying a "
                    "place; segue inbox lists open questions, and segue answer answers them."},
    {.name = "approve",
     .type = KEY_SET,
     .set = &approve_keys,
     .or_true = true,
     .description =
         "Before the movement begins, a person sees what would be run and approves or rejects it."},
    {.name = "judge",
     .type = KEY_SET,
     .set = &judge_keys,
     .description = "How this movement is judged; its keys override the workflow's judge."},
    {.name = "provider_options",
     .type = KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration, sampling in options"},
    {.name = "capabilities",
     .type = KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration"},
    {.name = "mcp_servers",
     .type = KEY_NOTED,
     .description = "an agent program reads its MCP servers from its own configuration"},
    {.name = "tags", .type = KEY_NOTED, .description = "each movement names its provider itself"},
    {.name = "allowed_tools",
     .type = KEY_NOTED,
     .description = "write permission and run instead; of this list only Edit and Write count (as "
                    "permission: edit, unless the movement says otherwise) and Bash(make *) (as "
                    "run: [make])"},
    {.name = "parallel",
     .type = KEY_SET_LIST,
     .set = &movement_keys,
     .max = LIMIT_GROUP_COUNT,
     .description = "Movements that run at the same time, in place of an agent. Their answers, "
                    "joined under their names, are this movement's answer; its rules may use "
                    "all(\"label\"), any(\"label\") and when(votes.label >= 2)."},
    {.name = "concurrency",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_GROUP_COUNT,
     .description = "How many children of parallel run at once (default: all; with for_each: 4)."},
    {.name = "for_each",
     .type = KEY_ITEMS,
     .max = LIMIT_ITEM_COUNT,
     .description = "Runs the only child of parallel once for each item of this list, or of the "
                    "list MOVEMENT.FIELD from a structured_output. Its instruction can use {item}, "
                    "{item.FIELD} and {index} (from 1)."},
    {.name = "stop_on",
     .type = KEY_CHOICE,
     .words = stop_words,
     .description = "error: if a child fails, its siblings are ended without a verdict (default: "
                    "they continue, and their work is kept)."},
    {.name = "workspace",
     .type = KEY_CHOICE,
     .words = workspace_words,
     .description =
         "Where a child works. worktree: in its own git worktree, on its own branch that starts "
         "where the session stands. here (default): where the session works."},
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
     .description = "The provider that judges the loop (default: the workflow's provider). In a "
                    "list, the others are fallbacks."},
    {.name = "model", .type = KEY_LINE, .description = "The judge's model."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "The judge's sampling options; they replace the workflow's as a whole."},
    {.name = "persona",
     .type = KEY_FACET,
     .facet = FACET_PERSONA,
     .description = "Who the judge is: the name of a persona, a path, or the text itself."},
    {.name = "policy",
     .type = KEY_FACET,
     .facet = FACET_POLICY,
     .description = "What the judge must follow: a name, a path, a text, or a list of them."},
    {.name = "knowledge",
     .type = KEY_FACET,
     .facet = FACET_KNOWLEDGE,
     .description = "What the judge should know: a name, a path, a text, or a list of them."},
    {.name = "instruction",
     .alias = "instruction_template",
     .type = KEY_FACET,
     .facet = FACET_INSTRUCTION,
     .description = "What to judge (default: whether the rounds make progress). Variables: those "
                    "of a movement, and {cycle} and {cycle_count}."},
    {.name = "judge",
     .type = KEY_SET,
     .set = &judge_keys,
     .description = "How the judge's answer is judged; its keys override the workflow's judge."},
    {.name = "rules",
     .type = KEY_SET_LIST,
     .required = true,
     .set = &rule_keys,
     .max = LIMIT_RULE_COUNT,
     .description = "Where to go next, instead of into the cycle's next round."},
    {0},
};
const struct key_set loop_judge_keys = {"a loop's judge", "loop_judge", loop_judge_list};

static const struct key monitor_list[] = {
    {.name = "cycle",
     .type = KEY_NAMES,
     .required = true,
     .min = 2,
     .max = LIMIT_CYCLE_COUNT,
     .description = "The movements of the loop, in order, each once."},
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
     .description =
         "How many times in a row the cycle may run before the judge is asked (default 3)."},
    {.name = "judge",
     .type = KEY_SET,
     .required = true,
     .set = &loop_judge_keys,
     .description = "The judge that is asked when the cycle would be entered once more."},
    {0},
};
const struct key_set monitor_keys = {"a loop monitor", "monitor", monitor_list};

static const struct key workflow_list[] = {
    {.name = "name", .type = KEY_NAME, .required = true, .description = "The workflow's name."},
    {.name = "description", .type = KEY_TEXT, .description = "What the workflow is for."},
    {.name = "params",
     .type = KEY_PARAMS,
     .description =
         "The inputs of the workflow: NAME: default, or NAME: {description: .., default: ..}; an "
         "input without a default must be given. {input:NAME} is its value, from args where the "
         "workflow is called, or from --input NAME=VALUE where it is run."},
    {.name = "returns",
     .type = KEY_LABELS,
     .description = "The labels that the workflow can end with when it is called, besides COMPLETE "
                    "and ABORT; a rule with return: LABEL ends it that way."},
    {.name = "outputs",
     .type = KEY_OUTPUTS,
     .description =
         "What a complete session returns: NAME: text, with the variables of an instruction. A "
         "text that consists of one {structured:MOVEMENT.FIELD} is that value."},
    {.name = "language",
     .type = KEY_CHOICE,
     .words = languages,
     .description = "The language of the prompts that segue writes (default en)."},
    {.name = "schema_as",
     .type = KEY_CHOICE,
     .words = describe_form_names,
     .description = "How a schema is described to a backend that has no schema mode: one line for "
                    "each field (prompt, the default), as types, or as the JSON Schema itself."},
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
     .description = "The most movements in one session, or infinite (default 10)."},
    {.name = "budget",
     .type = KEY_SET,
     .set = &budget_keys,
     .description =
         "What a session may use: once a total has reached its limit, no call starts and no "
         "movement is entered. The session stops, and segue resume --add-budget continues it."},
    {.name = "protect",
     .type = KEY_TEXTS,
     .max = LIMIT_PROTECT_COUNT,
     .description = "Paths that no movement may change, such as tests/** or *.lock. If one does, "
                    "the session stops; resuming it is a person's consent to the change."},
    {.name = "guards",
     .type = KEY_SET,
     .set = &guards_keys,
     .description = "What to do about agents and movements that go in circles: see its keys."},
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description = "The provider for movements that name none. In a list, the others are "
                    "fallbacks, in that order."},
    {.name = "model", .type = KEY_LINE, .description = "The model that goes with the provider."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Sampling options for agent movements that set none."},
    {.name = "judge",
     .type = KEY_SET,
     .set = &judge_keys,
     .description = "How movements are judged."},
    {.name = "workspace",
     .type = KEY_CHOICE,
     .words = workspace_words,
     .description =
         "Where a session works. here (default): in the working directory, which one session at a "
         "time may edit. worktree: in its own git worktree, on its own branch."},
    {.name = "commit",
     .type = KEY_CHOICE,
     .words = commit_words,
     .description = "When the work is committed: off (default with here), after each movement, or "
                    "at the session's end (default with worktree)."},
    {.name = "branch",
     .type = KEY_LINE,
     .check = worktree_check_branch,
     .description = "The name of a worktree's branch; {id} is the session's id, {workflow} its "
                    "workflow's name (default segue/{id})."},
    {.name = "personas",
     .type = KEY_SECTION,
     .facet = FACET_PERSONA,
     .description = "Personas of this file, each a name with a path or a text."},
    {.name = "policies",
     .type = KEY_SECTION,
     .facet = FACET_POLICY,
     .description = "Policies of this file, each a name with a path or a text."},
    {.name = "knowledge",
     .type = KEY_SECTION,
     .facet = FACET_KNOWLEDGE,
     .description = "Knowledge of this file, each a name with a path or a text."},
    {.name = "instructions",
     .type = KEY_SECTION,
     .facet = FACET_INSTRUCTION,
     .description = "Instructions of this file, each a name with a path or a text."},
    {.name = "output_contracts",
     .alias = "report_formats",
     .type = KEY_SECTION,
     .facet = FACET_OUTPUT_CONTRACT,
     .description = "Output contracts of this file, each a name with a path or a text."},
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
     .description = "a provider's settings belong in segue's configuration, sampling in options"},
    {.name = "capabilities",
     .type = KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration"},
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
     .description = "Rules that every movement has, placed and numbered before its own. A when() "
                    "that refers to something a movement does not have is false there; a label is "
                    "judged wherever the movement has labels of its own."},
    {.name = "loop_monitors",
     .type = KEY_SET_LIST,
     .set = &monitor_keys,
     .max = LIMIT_MONITOR_COUNT,
     .description = "Loops to watch: a judge decides whether another round is worth it."},
    {.name = "movements",
     .alias = "steps",
     .type = KEY_SET_LIST,
     .required = true,
     .set = &movement_keys,
     .max = LIMIT_MOVEMENT_COUNT,
     .description = "The units of work; the rules of each say where to go next."},
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
