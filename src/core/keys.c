/* Lists the keys of a workflow, of its movements and loops and of all that they hold; finds a key
 * by its name, and checks the values of a document that was resolved. */
#include "core/keys.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/movement_limits.h"
#include "core/run.h"
#include "core/workflow.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "render/describe.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* How a key is written here: what a value must be that the parser can tell from the text alone
 * stands in the key's line, so that the parser, the schema for editors and the check of a log
 * agree without asking each other. What only means something together with other keys, such as a
 * name of a movement, is checked in core/workflow.c and told earlier by workflow/lint.c.
 * Descriptions say the default, because nobody looks for it elsewhere. Help and editors show the
 * examples as they stand, and a test checks each against the schema, so none can rot. */

/* --- checks of texts --- */

/* The reports of a session lie side by side, on whatever file system its user has: a name that
 * Windows would refuse is refused here too, since logs are copied. */
bool key_check_file(struct str name, struct err *err) {
  static const char refused[] = "/\\:*?\"<>|";
  bool ok = name.n > 0 && name.n <= LIMIT_NAME_BYTES && name.p[0] != '.' && name.p[0] != ' ' &&
            name.p[name.n - 1] != '.' && name.p[name.n - 1] != ' ' && !str_has_control(name);
  for (size_t i = 0; ok && i < name.n; i++)
    ok = strchr(refused, name.p[i]) == NULL;
  return ok || err_set(err, ERR_INVALID,
                       "must be a file's name such as plan.md: no folder, no dot in front, none of "
                       "\\ : * ? \" < > |");
}

/* Refuses what git refuses in a branch's name, so that a session does not fail at its first
 * worktree; a dash in front would be an option of git's commands, and refs/heads/main a branch that
 * looks like another one. */
bool key_check_branch(struct str text, struct err *err) {
  static const char *const refused[] = {"..", "//", "@{", "/.", "~", "^",     ":",
                                        "?",  "*",  "[",  "\\", " ", ".lock/"};
  bool ok = text.n > 0 && text.p[0] != '-' && text.p[0] != '/' && text.p[0] != '.' &&
            text.p[text.n - 1] != '/' && text.p[text.n - 1] != '.' && !str_ends(text, ".lock") &&
            !str_starts(text, "refs/") && !str_among(text, "@ HEAD") && !str_has_control(text);
  for (size_t i = 0; ok && i < ARRAY_LEN(refused); i++)
    ok = memmem(text.p, text.n, refused[i], strlen(refused[i])) == NULL;
  return ok || err_set(err, ERR_INVALID,
                       "must be the name of a branch, in which {id} is the session's and "
                       "{workflow} its workflow's, such as segue/{id}");
}

/* --- judging --- */

/* The other stages are no choice: segue comes to them by itself (auto_select, when, aggregate),
 * or a person does (human). */
const char *const stage_words[] = {"structured_output", "phase3_tag", "phase1_tag", "ai_judge",
                                   NULL};

/* Each may be null, since a file could not get rid of what the user's defaults set otherwise: a
 * model that refuses `temperature` refuses it at any value. The seed's range is one that a
 * double holds exactly, for whoever reads it as one. */
static const struct key option_list[] = {
    {"temperature", KEY_NUMBER, .or_null = true, .max = 2, .example = "0.2",
     .description = "The sampling temperature, 0 to 2; sent only if it is set. null removes an "
                    "inherited one."},
    {"seed", KEY_INTEGER, .or_null = true, .min = -1e15, .max = 1e15, .example = "7",
     .description = "The sampling seed, if the backend takes one."},
    {"max_tokens", KEY_INTEGER, .or_null = true, .min = 1, .max = LIMIT_OPTION_TOKENS,
     .example = "8000", .description = "The most tokens in one answer."},
    {"effort", KEY_LINE, .or_null = true, .example = "low",
     .description = "How hard the model thinks: low, medium, high, or the backend's own word."},
    {0},
};
const struct key_set options_keys = {"options", "options", option_list};

static const char *const no_words[] = {"none", NULL};
static const char *const order_words[] = {"rotate", "fixed", NULL};
static const char *const split_words[] = {"next", "ask", NULL};

static const struct key judge_list[] = {
    {"stages", KEY_STAGES, .words = stage_words, .example = "[phase1_tag, ai_judge]",
     .description = "The ways to judge, in order; the next one is tried when one yields no rule. "
                    "[phase1_tag] alone calls no model."},
    {"provider", KEY_PROVIDERS, .example = "[claude, codex]",
     .description = "The provider that judges (default: the movement's provider). In a list, the "
                    "others are fallbacks."},
    {"model", KEY_LINE, .example = "claude-opus-5-5", .description = "The judge's model."},
    {"options", KEY_SET, .set = &options_keys, .example = "{temperature: 0, max_tokens: 8000}",
     .description = "Sampling options for the judge's calls."},
    {"effort", KEY_LINE, .or_null = true, .example = "low",
     .description = "How hard judges think (default low, for models known to take an effort); "
                    "null: the backend's default."},
    {"timeout_ms", KEY_INTEGER, .min = 1, .max = LIMIT_CALL_WALL_MS, .example = "60000",
     .description = "The most milliseconds that one judge call may take (default 600000)."},
    {"max_reasks", KEY_INTEGER, .max = LIMIT_REASK_COUNT, .example = "2",
     .description =
         "How often a stage asks again after an answer that does not fit the schema (default 0)."},
    {"panel", KEY_PANEL, .max = LIMIT_PANEL_COUNT, .words = no_words,
     .example = "[claude, codex, claude]",
     .description = "Two to seven providers that vote in each stage that calls a model; the same "
                    "one may be listed several times. none removes the workflow's panel."},
    {"agree", KEY_INTEGER, .min = 1, .max = LIMIT_PANEL_COUNT, .example = "2",
     .description = "How many votes must agree (default: more than half)."},
    {"order", KEY_CHOICE, .words = order_words, .example = "fixed",
     .description = "rotate (default): each voter gets the rules in a different order, with their "
                    "numbers kept. fixed: all get them in the file's order."},
    {"else", KEY_CHOICE, .words = split_words, .example = "ask",
     .description = "What happens when too few agree: next (default) tries the next stage; ask "
                    "asks a person which rule holds, see segue inbox."},
    {0},
};
const struct key_set judge_keys = {"judge", "judge", judge_list};

/* `next` is not required here: whether a rule must have one depends on where it stands, in a
 * group's child or not, which the parser knows. */
static const struct key rule_list[] = {
    {"condition", KEY_CONDITION, .required = true,
     .example = "\"the fault was mended && when(last_exit == 0)\"",
     .description = "When the rule holds: a label for a judge, when(EXPR) on exit, last_exit, "
                    "iteration, movement_iteration, changed, files, tests, checks and "
                    "structured.MOVEMENT.FIELD, or label && when(EXPR)."},
    {"next", KEY_NAME, .example = "review",
     .description = "Where the rule leads: a movement's name, COMPLETE or ABORT. Every rule needs "
                    "it, except those of a child in parallel, which cannot have it."},
    {"return", KEY_LINE, .example = "approved",
     .description =
         "Used instead of next in a workflow that others call: the label from `returns` that it "
         "ends with. If the workflow is run by itself, the session is complete."},
    {"appendix", KEY_TEXT, .example = "Only after every failing test was read.",
     .description = "A text shown together with the rule."},
    {"interactive_only", KEY_BOOL, .example = "true",
     .description =
         "The rule exists only while a person takes part in the session (default false)."},
    {"requires_user_input", KEY_BOOL, .example = "true",
     .description =
         "When the rule holds, a person is asked what the answer asks, and the same movement runs "
         "again with the person's reply; next is not followed (default false)."},
    {0},
};
const struct key_set rule_keys = {"a rule", "rule", rule_list};

/* --- what people are asked --- */

/* The words of the default alone; `segue approve` and `reject` are commands. */
static const char *const verdict_words[] = {"approve", "reject", NULL};

/* A deadline is not a duration of a call: a person may take days, hence a check of its own. */
static const struct key ask_list[] = {
    {"question", KEY_TEXT, .required = true, .example = "Which of the two ways?",
     .description = "What a person is asked; the variables of an instruction can be used."},
    {"choices", KEY_CHOICES, .max = LIMIT_CHOICE_COUNT, .example = "[the first, the second]",
     .description = "The answers that a person can choose from (default: any text is an answer). A "
                    "rule whose condition is the chosen answer holds without a judge."},
    {"schema", KEY_SCHEMA, .example = "schemas/review.json",
     .description = "JSON Schema of the answer: the name of a ready one, a path relative to this "
                    "file, or the schema itself."},
    {"default", KEY_TEXT, .example = "the first",
     .description = "The answer when the deadline passes."},
    {"deadline", KEY_LINE, .check = limits_check_deadline, .example = "8h",
     .description =
         "How long a person has to answer, such as 30m, 8h or 3d; then the default is taken."},
    {0},
};
const struct key_set ask_keys = {"ask", "ask", ask_list};

static const struct key approve_list[] = {
    {"question", KEY_TEXT, .example = "Which of the two ways?",
     .description = "What a person is asked, in addition to being shown what would be run."},
    {"deadline", KEY_LINE, .check = limits_check_deadline, .example = "8h",
     .description =
         "How long a person has to answer, such as 30m, 8h or 3d; then the default is taken."},
    {"default", KEY_CHOICE, .words = verdict_words,
     .description = "What counts when the deadline passes (default reject)."},
    {"on_reject", KEY_NAME, .example = "ABORT",
     .description = "Where a rejection leads: a movement's name, COMPLETE or ABORT (default "
                    "ABORT). The reason is then this movement's answer."},
    {0},
};
const struct key_set approve_keys = {"approve", "approve", approve_list};

/* --- what a movement hands over: a checked value, and reports --- */

/* There is no default for it: what happens without a value is a decision that a file must show. */
const char *const on_failure_words[] = {"error", "escalate", "sentinel", NULL};

static const struct key reask_list[] = {
    {"provider", KEY_LINE, .example = "claude",
     .description = "The provider that corrects (default: the movement's provider)."},
    {"model", KEY_LINE, .example = "claude-opus-5-5", .description = "The model that corrects."},
    {0},
};
const struct key_set reask_keys = {"reask", "reask", reask_list};

static const struct key structured_list[] = {
    {"schema", KEY_SCHEMA, .required = true, .example = "schemas/review.json",
     .description = "The JSON Schema of the value: the name of a built-in one, a path relative to "
                    "this file, or the schema itself."},
    {"invariants", KEY_INVARIANTS,
     .example = "[\"sum(items[].price) == total\", {command: [sh, check.sh]}]",
     .description = "What must hold beyond the schema: expressions such as sum(items[].price) == "
                    "total, {command: [..]} with the value on standard input, or {ai: question}."},
    {"on_failure", KEY_CHOICE, .required = true, .words = on_failure_words, .example = "escalate",
     .description =
         "What happens without a valid value: error fails the session; escalate stops it resumably "
         "with a question; sentinel continues with {sentinel: {reason, attempts, errors}} as the "
         "value, which when(structured.MOVEMENT.sentinel) detects."},
    {"max_reasks", KEY_INTEGER, .max = LIMIT_REASK_COUNT, .example = "2",
     .description = "How many corrections are asked for at most (default 2; for a command 0)."},
    {"example", KEY_BOOL, .example = "true",
     .description = "Whether the prompt shows an example of the schema's shape, with placeholders "
                    "(default false)."},
    {"assert_format", KEY_BOOL, .example = "true",
     .description = "Whether format (date, email, uri, ...) is checked in the value, not only "
                    "noted (default false)."},
    {"repair", KEY_BOOL, .example = "true",
     .description = "Whether broken JSON may be repaired (default false)."},
    {"reask", KEY_SET, .set = &reask_keys, .example = "{provider: claude}",
     .description = "Who corrects, if not the one who answered."},
    {"token_budget", KEY_INTEGER, .min = 1, .max = LIMIT_TOKEN_BUDGET, .example = "50000",
     .description = "No further correction is asked for once all calls for the value have used "
                    "this many tokens."},
    {"time_budget_ms", KEY_INTEGER, .min = 1, .max = LIMIT_CALL_WALL_MS, .example = "600000",
     .description = "The most milliseconds that all calls for the value may take together."},
    {0},
};
const struct key_set structured_keys = {"structured_output", "structured_output", structured_list};

static const struct key contract_list[] = {
    {"name", KEY_NAME, .required = true, .check = key_check_file, .example = "review.md",
     .description = "The file's name, such as plan.md, without a folder."},
    {"label", KEY_LINE, .example = "Review", .description = "What the report is called."},
    {"format", KEY_FACET, .facet = FACET_OUTPUT_CONTRACT, .example = "output-contracts/review.md",
     .description = "What the report must look like: the name of an output contract, a path, or "
                    "the text itself. The variables of an instruction are filled in."},
    {"order", KEY_FACET, .facet = FACET_OUTPUT_CONTRACT, .example = "instructions/report.md",
     .description = "How to write the report, placed before the format: a name, a path or a text."},
    {"use_judge", KEY_BOOL, .example = "false",
     .description =
         "Whether the judge reads the report as well as the agent's answer (default true)."},
    {0},
};
const struct key_set contract_keys = {"a report", "contract", contract_list};

static const struct key contracts_list[] = {
    {"report", KEY_REPORTS, .required = true, .set = &contract_keys, .max = LIMIT_CONTRACT_COUNT,
     .example = "[{name: review.md, format: review}]",
     .description = "The reports, in this order: {name, format, ...}, or LABEL: FILE."},
    {0},
};
const struct key_set contracts_keys = {"output_contracts", "contracts", contracts_list};

/* --- bounds of a session: budgets, limits, guards, gates --- */

/* To finish is the default: a call that is ended has used its tokens for nothing. */
static const char *const on_exceed[] = {"finish", "stop", NULL};

/* A whole budget and the budget of one call share these, and no more: one call is one call, and it
 * enters no movement. */
#define BUDGET_AMOUNTS                                                                             \
  {"tokens",                                                                                       \
   KEY_INTEGER,                                                                                    \
   .min = 1,                                                                                       \
   .max = LIMIT_BUDGET_TOKENS,                                                                     \
   .example = "2000000",                                                                           \
   .description = "The most tokens, input and output together."},                                  \
      {"cost", KEY_NUMBER, .max = LIMIT_COST_USD, .example = "20",                                 \
       .description = "The most US dollars."},                                                     \
  {                                                                                                \
    "time", KEY_LINE,                                                                              \
        .check = limits_check_duration, .example = "8h",                                           \
        .description =                                                                             \
            "The longest time that all calls together may take, such as 90m; waiting for "         \
            "limits or people does not count."                                                     \
  }

static const struct key call_list[] = {BUDGET_AMOUNTS, {0}};
const struct key_set budget_call_keys = {"a budget's call", "budget_call", call_list};

static const struct key budget_list[] = {
    BUDGET_AMOUNTS,
    {"calls", KEY_INTEGER, .min = 1, .max = LIMIT_BUDGET_CALLS, .example = "200",
     .description = "The most calls, including those to judges and for corrections; a repeated "
                    "call counts once."},
    {"movements", KEY_INTEGER, .min = 1, .max = LIMIT_MOVEMENTS, .example = "40",
     .description = "The most turns; in a movement, how often it may be entered."},
    {"call", KEY_SET, .set = &budget_call_keys, .example = "{cost: 1}",
     .description = "What one call may use at most, with all its attempts."},
    {"on_exceed", KEY_CHOICE, .words = on_exceed,
     .description = "finish (default): a call that is running when the limit is reached may "
                    "finish. stop: it is ended once its usage exceeds the limit."},
    {0},
};
const struct key_set budget_keys = {"a budget", "budget", budget_list};

/* The least values leave a program room to start: with less, its failure would look like its own
 * fault and not like the limit. */
static const struct key limits_list[] = {
    {"memory", KEY_LINE, .check = limits_check_memory, .example = "4G",
     .description = "The most memory, such as 4G."},
    {"cpus", KEY_NUMBER, .min = 0.1, .max = LIMIT_CALL_CPUS, .example = "2",
     .description = "The most processors at once, such as 2 or 0.5."},
    {"pids", KEY_INTEGER, .min = 8, .max = LIMIT_CALL_PIDS, .example = "512",
     .description = "The most processes and threads at once."},
    {0},
};
const struct key_set limits_keys = {"limits", "limits", limits_list};

static const struct key setup_list[] = {
    {"run", KEY_TEXTS, .required = true, .max = LIMIT_SETUP_COUNT, .example = "[npm ci, make gen]",
     .description = "The commands, each a line for sh, one after the other at the worktree's top."},
    {"key", KEY_TEXTS, .max = LIMIT_SETUP_COUNT, .example = "[package-lock.json]",
     .description = "Files that git has, as paths or patterns: while they and the commands are the "
                    "same, what `keep` names is brought back instead of running them again."},
    {"keep", KEY_TEXTS, .max = LIMIT_SETUP_COUNT, .example = "[node_modules]",
     .description = "Files and folders that the commands make and git does not have; they are kept "
                    "for later worktrees, and never in segue's commits."},
    {"timeout", KEY_LINE, .check = limits_check_duration, .example = "15m",
     .description = "The longest time that one command may take, such as 15m (default 30m)."},
    {0},
};
const struct key_set setup_keys = {"setup", "setup", setup_list};

static const char *const actions[] = {"stop", "warn", "ignore", NULL};

/* From 2 on, since one use, failure or turn is no repetition. */
static const struct key guards_list[] = {
    {"same_tool", KEY_INTEGER, .min = 2, .max = LIMIT_GUARD_TIMES, .example = "10",
     .description = "If an agent uses one tool this many times in a row with the same argument, "
                    "its call is ended (class looping)."},
    {"on_same_tool", KEY_CHOICE, .words = actions,
     .description = "What happens then: stop (default), warn (a note in the log) or ignore."},
    {"same_failure", KEY_INTEGER, .min = 2, .max = LIMIT_GUARD_TIMES, .example = "3",
     .description = "If a command's movement fails this many times with the same output (digits "
                    "aside) and no file has changed meanwhile, the session stops."},
    {"on_same_failure", KEY_CHOICE, .words = actions,
     .description = "What happens then: stop (default), warn or ignore."},
    {"same_movement", KEY_INTEGER, .min = 2, .max = LIMIT_GUARD_TIMES, .example = "5",
     .description = "If a movement has been entered this many times in a row, the session stops "
                    "before it is entered again."},
    {"on_same_movement", KEY_CHOICE, .words = actions,
     .description = "What happens then: stop (default), warn or ignore."},
    {0},
};
const struct key_set guards_keys = {"guards", "guards", guards_list};

/* Without those that only a person can mend: error_class_is_for_person. */
static const char *const error_words[] = {"network", "overloaded", "rate_limit",  "timeout",
                                          "refused", "length",     "bad_request", "not_found",
                                          "crashed", "protocol",   "looping",     NULL};

static const struct key error_list[] = {
    {"class", KEY_CHOICE, .words = error_words, .example = "timeout",
     .description = "The kind of error (default: any)."},
    {"to", KEY_NAME, .required = true, .example = "fix",
     .description = "The movement that is next then, or ABORT."},
    {0},
};
const struct key_set error_keys = {"an error's way", "error", error_list};

/* A gate becomes a movement of its own when the file is loaded (workflow/load.c), so its keys are a
 * movement's, with the same checks. */
static const struct key gate_list[] = {
    {"name", KEY_NAME, .example = "tests",
     .description = "The gate's name (default: gate1, gate2, ...)."},
    {"command", KEY_ARGV, .required = true, .example = "[make, test]",
     .description = "The program and its arguments (no shell); exit status 0 is a pass."},
    {"tests", KEY_LINE, .check = limits_check_tests, .example = "pytest",
     .description = "How it reports its tests, as in a movement: exit status 0 without a passed "
                    "test is not a pass."},
    {"timeout", KEY_LINE, .check = limits_check_duration, .example = "15m",
     .description = "The longest time that one run may take, such as 10m (default 1h)."},
    {"stall_retries", KEY_INTEGER, .min = 0, .max = LIMIT_STALL_RETRY_MAX, .example = "0",
     .description = "How often an agent that showed no sign of life for that long is ended and "
                    "started again, in the same conversation if it can (default 2), before a "
                    "fallback takes over or the session stops."},
    {"cwd", KEY_LINE, .check = limits_check_cwd, .example = "packages/core",
     .description = "The folder, below the session's, that it runs in."},
    {0},
};
const struct key_set gate_keys = {"a gate", "gate", gate_list};

/* --- movements, loops, the workflow --- */

static const char *const languages[] = {"en", "ja", NULL};
static const char *const infinite[] = {"infinite", NULL};

static const char *const stop_words[] = {"error", NULL};
const char *const workspace_words[] = {"here", "worktree", NULL};
const char *const commit_words[] = {"off", "movement", "end", NULL};
static const char *const session_words[] = {"continue", "refresh", NULL};

/* In the order in which a reader asks: what it is, who works, what is run, what it may touch, what
 * it hands over, how it is judged, and where it leads. The help and the schema keep this order.
 * Keys of other runners are listed as noted, so that their files load with a hint and not with an
 * error. */
static const struct key integrate_list[] = {
    {"group", KEY_NAME, .required = true, .example = "parts",
     .description =
         "The group whose branches are merged; its child must have workspace: worktree."},
    {"check", KEY_ARGV, .example = "[make, test]",
     .description = "A program and its arguments, run (without a shell) in the merged tree after "
                    "each branch. If it does not exit with 0, that branch is put back and said, "
                    "with the last lines of the output; the others go on."},
    {0},
};
const struct key_set integrate_keys = {"integrate", "integrate", integrate_list};

static const struct key movement_list[] = {
    {"name", KEY_NAME, .required = true, .example = "implement",
     .description = "The movement's name, unique in the file; its tag is [NAME:N] in capitals."},
    {"description", KEY_TEXT, .example = "mends a fault until the tests pass, then has it reviewed",
     .description = "What the movement is for."},
    {"call", KEY_LINE, .example = "review",
     .description =
         "Another workflow, run in place of this movement: a path below this file's folder, or the "
         "name of a workflow beside it, of the user's or of segue's. Its movements become "
         "NAME/THEIRS; the conditions of the rules are its returns, COMPLETE and ABORT."},
    {"args", KEY_ARGS, .example = "{range: main...HEAD}",
     .description = "Texts for the params of the workflow that is called."},
    {"uses", KEY_LINE, .example = "check",
     .description = "A file with keys of a movement, which this movement's own keys override: a "
                    "path, or NAME for fragments/NAME.yaml in the folders of facets."},
    {"with", KEY_ARGS, .example = "{command: make test}",
     .description = "Texts for the params of the fragment that is used."},
    {"provider", KEY_PROVIDERS, .example = "[claude, codex]",
     .description = "The provider that works on this movement (default: the workflow's provider). "
                    "In a list, the others are fallbacks, in that order."},
    {"model", KEY_LINE, .example = "claude-opus-5-5",
     .description = "The model for this movement."},
    {"options", KEY_SET, .set = &options_keys, .example = "{temperature: 0, max_tokens: 8000}",
     .description = "Sampling options; they replace the workflow's as a whole."},
    {"command", KEY_ARGV, .example = "[make, test]",
     .description = "A program and its arguments, run (without a shell) instead of an agent; the "
                    "instruction is its standard input, and exit is its exit status. If the "
                    "program is segue, it is the one that runs the session."},
    {"integrate", KEY_SET, .set = &integrate_keys, .or_member = "group",
     .example = "{group: parts, check: [make, test]}",
     .description =
         "The group whose branches are merged, one after another, into what the session stands on. "
         "Exit 0: all are merged. Exit 1: the files in conflict are in the tree with git's "
         "markers; once they are resolved, run it again. Exit 3: all but those that did not pass "
         "the check. Exit 2: anything else; the answer says what."},
    {"tests", KEY_LINE, .check = limits_check_tests, .example = "pytest",
     .description =
         "How the command reports its tests: ctest, pytest, go, cargo, jest, tap or junit:PATH (a "
         "report, or a folder of reports). when() can use tests.passed, tests.failed and "
         "tests.skipped; exit status 0 without a passed test, or with a failed one, counts as 1."},
    {"timeout", KEY_LINE, .check = limits_check_duration, .example = "15m",
     .description = "The longest time that one call of this movement may take, such as 90s, 15m or "
                    "2h (default 1h)."},
    {"stall", KEY_LINE, .check = limits_check_duration, .example = "5m",
     .description = "The longest time that its command or agent may show no sign of life during a "
                    "call (default: 15m for a command; for an agent, as its profile says)."},
    {"cwd", KEY_LINE, .check = limits_check_cwd, .example = "packages/core",
     .description = "The folder, below the session's, that its command or agent works in; "
                    "{structured:MOVEMENT.FIELD} is a value from an earlier movement."},
    {"budget", KEY_SET, .set = &budget_keys, .example = "{cost: 20, time: 8h, on_exceed: stop}",
     .description = "What all turns of this movement may use together; a group's budget includes "
                    "its children."},
    {"gates", KEY_SET_LIST, .set = &gate_keys, .max = LIMIT_GATE_COUNT,
     .example = "[{name: tests, command: [make, test], tests: ctest}]",
     .description =
         "Commands that must pass, in this order, before the rules lead on (except to ABORT). On a "
         "failure this movement runs again, with the command's output as the previous response."},
    {"gate_runs", KEY_INTEGER, .min = 1, .max = LIMIT_GUARD_TIMES, .example = "5",
     .description = "How often each gate may run in a session (default 10). If its last run fails, "
                    "the session waits for a person."},
    {"gate", KEY_BOOL, .example = "true",
     .description = "Whether this command is a gate: its output then includes stderr, and after "
                    "exit status 0 the previous response stays as it was (default false)."},
    {"guards", KEY_SET, .set = &guards_keys, .example = "{same_tool: 10, same_movement: 5}",
     .description = "Guards for this movement, on top of the workflow's."},
    {"persona", KEY_FACET, .facet = FACET_PERSONA, .example = "coder",
     .description = "Who the agent is: the name of a persona, a path, or the text itself."},
    {"policy", KEY_FACET, .facet = FACET_POLICY, .example = "[small, security]",
     .description = "What the agent must follow: a name, a path, a text, or a list of them."},
    {"knowledge", KEY_FACET, .facet = FACET_KNOWLEDGE, .example = "docs/layout.md",
     .description = "What the agent should know: a name, a path, a text, or a list of them."},
    {"instruction", KEY_FACET, .alias = "instruction_template", .facet = FACET_INSTRUCTION,
     .example = "\"Mend what the tests show: {previous_response}\"",
     .description = "What to do: a name, a path, a text, or a list of them. Variables: {task}, "
                    "{iteration}, {max_movements}, {movement_iteration}, {previous_response}, "
                    "{user_inputs}, {error}, {response:MOVEMENT}, {structured:MOVEMENT.FIELD}, "
                    "{report:FILE}, {report_dir}, {branches:GROUP}."},
    {"bare_prompt", KEY_BOOL, .example = "true",
     .description = "Whether the prompt is only the instruction, without the task, the previous "
                    "answer and segue's own text (default false)."},
    {"permission", KEY_CHOICE, .words = permission_names, .example = "edit",
     .description = "What the agent may do. readonly (default): read, and run nothing that writes. "
                    "edit: change files below the working directory, and run the programs of "
                    "`run`. full: anything."},
    {"run", KEY_RUN, .max = LIMIT_RUN_COUNT, .example = "[make, npm test]",
     .description = "The programs that the agent may run with permission edit, each optionally "
                    "with its first arguments: [make, ./dev, npm test] (default none)."},
    {"edit", KEY_BOOL, .example = "true",
     .description = "true: another word for permission: edit."},
    {"sandbox", KEY_CHOICE, .words = sandbox_level_names,
     .description = "What the kernel lets this movement's programs do. guard (default for agents): "
                    "read everything except secrets, and write the working directory, their own "
                    "state and caches. strict: of the home folder, use only the working directory "
                    "and their own state. container: run in an image, with nothing of the machine "
                    "but these two. off (default for commands): no restriction."},
    {"image", KEY_LINE, .example = "localhost/agents",
     .description = "The image that sandbox: container runs its programs in; it must already "
                    "exist. Default: sandbox.image in the user's configuration."},
    {"network", KEY_CHOICE, .words = sandbox_network_names,
     .description = "What its sandboxed programs can reach on the network. open (default): "
                    "everything. api: the hosts that their backend needs, by name. none: nothing."},
    {"limits", KEY_SET, .set = &limits_keys, .example = "{memory: 4G, cpus: 2, pids: 512}",
     .description =
         "How much of the machine its programs may use, all programs of a call together. Where the "
         "user's configuration sets a lower limit, that one counts."},
    {"secrets", KEY_VARIABLES, .example = "[DEPLOY_TOKEN]",
     .description =
         "Variables, listed in `secrets` of the user's configuration, that this movement's agent "
         "or command gets; judges and other movements do not get them."},
    {"required_permission_mode", KEY_CHOICE, .alias = "permission_mode", .words = permission_names,
     .example = "edit",
     .description = "The least that the agent must be allowed to do: readonly, edit or full; it "
                    "counts where it is more than `edit` gives."},
    {"session", KEY_CHOICE, .words = session_words, .example = "refresh",
     .description =
         "continue (default): the agent continues its conversation from an earlier run with the "
         "same session_key, if the backend can. refresh: each run starts a new conversation."},
    {"session_key", KEY_NAME, .example = "coder",
     .description = "Movements with the same key share the agent's conversation (default: those "
                    "with the same persona, else the movement alone)."},
    {"pass_previous_response", KEY_BOOL, .example = "false",
     .description = "Whether the prompt includes the previous movement's answer (default true)."},
    {"structured_output", KEY_SET, .set = &structured_keys,
     .example = "{schema: schemas/review.json, on_failure: error}",
     .description = "The answer must be a JSON value that fits a schema; it is checked, and "
                    "corrections are asked for. Later movements see it as "
                    "{structured:MOVEMENT.FIELD} and structured.MOVEMENT.FIELD in when()."},
    {"report", KEY_NAME, .check = key_check_file, .example = "plan.md",
     .description = "Saves the answer itself as this file, such as plan.md, in the session's "
                    "report folder; later movements get its text as {report:plan.md}."},
    {"output_contracts", KEY_SET, .set = &contracts_keys,
     .example = "{report: [{name: review.md, format: review}]}",
     .description = "Reports that the agent is asked for when its work is done, with one call each "
                    "that continues its conversation. segue writes the files; later movements get "
                    "the text as {report:FILE}."},
    {"ask", KEY_SET, .set = &ask_keys,
     .example = "{question: Which of the two ways?, choices: [the first, the second]}",
     .description = "A person answers instead of an agent. The session waits without occupying a "
                    "place; segue inbox lists open questions, and segue answer answers them."},
    {"approve", KEY_SET, .set = &approve_keys, .or_true = true,
     .example = "{question: Shall this be deployed?, deadline: 8h, on_reject: ABORT}",
     .description =
         "Before the movement begins, a person sees what would be run and approves or rejects it."},
    {"judge", KEY_SET, .set = &judge_keys,
     .example = "{stages: [structured_output, ai_judge], provider: claude, timeout_ms: 60000}",
     .description = "How this movement is judged; its keys override the workflow's judge."},
    {"provider_options", KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration, sampling in options"},
    {"capabilities", KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration"},
    {"mcp_servers", KEY_NOTED,
     .description = "an agent program reads its MCP servers from its own configuration"},
    {"tags", KEY_NOTED, .description = "each movement names its provider itself"},
    {"allowed_tools", KEY_NOTED,
     .description =
         "write permission and run instead; of this list only Edit and Write count (as permission: "
         "edit, unless the movement says otherwise) and Bash(make *) (as run: [make])"},
    {"parallel", KEY_SET_LIST, .set = &movement_keys, .max = LIMIT_GROUP_COUNT,
     .example = "[{name: a, rules: [{condition: fine}]}, {name: b, rules: [{condition: fine}]}]",
     .description = "Movements that run at the same time, in place of an agent. Their answers, "
                    "joined under their names, are this movement's answer; its rules may use "
                    "all(\"label\"), any(\"label\") and when(votes.label >= 2)."},
    {"concurrency", KEY_INTEGER, .min = 1, .max = LIMIT_GROUP_COUNT, .example = "4",
     .description = "How many children of parallel run at once (default: all; with for_each: 4)."},
    {"for_each", KEY_ITEMS, .max = LIMIT_ITEM_COUNT, .example = "plan.parts",
     .description = "Runs the only child of parallel once for each item of this list, or of the "
                    "list MOVEMENT.FIELD from a structured_output. Its instruction can use {item}, "
                    "{item.FIELD} and {index} (from 1)."},
    {"stop_on", KEY_CHOICE, .words = stop_words, .example = "error",
     .description = "error: if a child fails, its siblings are ended without a verdict (default: "
                    "they continue, and their work is kept)."},
    {"workspace", KEY_CHOICE, .words = workspace_words, .example = "worktree",
     .description =
         "Where a child works. worktree: in its own git worktree, on its own branch that starts "
         "where the session stands. here (default): where the session works."},
    {"rules", KEY_SET_LIST, .required = true, .set = &rule_keys, .max = LIMIT_RULE_COUNT,
     .example =
         "[{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: fix}]",
     .description = "Where to go next, numbered from 1 in this order."},
    {"on_error", KEY_SET_LIST, .set = &error_keys, .or_member = "to", .max = LIMIT_ERROR_WAY_COUNT,
     .example = "[{class: timeout, to: fix}, {to: give-up}]",
     .description =
         "Where to go when a call fails for good (after retries, fallbacks and waiting) or a "
         "command cannot run: a movement, perhaps this one, or ABORT; or a list by class, whose "
         "first fit counts. The next prompt and judge are told, see {error}. Without a fit, for a "
         "login, quota or budget that a person must see to, and after 10 errors in a row the "
         "session stops."},
    {0},
};
const struct key_set movement_keys = {"a movement", "movement", movement_list};

/* The judge of a loop is a movement that does nothing but judge: it has the keys of one that say
 * who asks what, and none that change files. */
static const struct key loop_judge_list[] = {
    {"provider", KEY_PROVIDERS, .example = "[claude, codex]",
     .description = "The provider that judges the loop (default: the workflow's provider). In a "
                    "list, the others are fallbacks."},
    {"model", KEY_LINE, .example = "claude-opus-5-5", .description = "The judge's model."},
    {"options", KEY_SET, .set = &options_keys, .example = "{temperature: 0, max_tokens: 8000}",
     .description = "The judge's sampling options; they replace the workflow's as a whole."},
    {"persona", KEY_FACET, .facet = FACET_PERSONA, .example = "coder",
     .description = "Who the judge is: the name of a persona, a path, or the text itself."},
    {"policy", KEY_FACET, .facet = FACET_POLICY, .example = "[small, security]",
     .description = "What the judge must follow: a name, a path, a text, or a list of them."},
    {"knowledge", KEY_FACET, .facet = FACET_KNOWLEDGE, .example = "docs/layout.md",
     .description = "What the judge should know: a name, a path, a text, or a list of them."},
    {"instruction", KEY_FACET, .alias = "instruction_template", .facet = FACET_INSTRUCTION,
     .example = "\"Mend what the tests show: {previous_response}\"",
     .description = "What to judge (default: whether the rounds make progress). Variables: those "
                    "of a movement, and {cycle} and {cycle_count}."},
    {"judge", KEY_SET, .set = &judge_keys,
     .example = "{stages: [structured_output, ai_judge], provider: claude, timeout_ms: 60000}",
     .description = "How the judge's answer is judged; its keys override the workflow's judge."},
    {"rules", KEY_SET_LIST, .required = true, .set = &rule_keys, .max = LIMIT_RULE_COUNT,
     .example =
         "[{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: fix}]",
     .description = "Where to go next, instead of into the cycle's next round."},
    {0},
};
const struct key_set loop_judge_keys = {"a loop's judge", "loop_judge", loop_judge_list};

/* A cycle of one movement is no loop but a repetition, for which there are guards. */
static const struct key monitor_list[] = {
    {"cycle", KEY_NAMES, .required = true, .min = 2, .max = LIMIT_CYCLE_COUNT,
     .example = "[review, fix]", .description = "The movements of the loop, in order, each once."},
    {"ignore", KEY_NAMES, .alias = "ignore_steps", .min = 1, .max = LIMIT_CYCLE_COUNT,
     .example = "[check]", .description = "Movements between them that do not break the loop."},
    {"threshold", KEY_INTEGER, .min = 1, .max = LIMIT_MOVEMENTS, .example = "3",
     .description =
         "How many times in a row the cycle may run before the judge is asked (default 3)."},
    {"judge", KEY_SET, .required = true, .set = &loop_judge_keys,
     .example = "{persona: supervisor, rules: [{condition: it helps, next: fix}]}",
     .description = "The judge that is asked when the cycle would be entered once more."},
    {0},
};
const struct key_set monitor_keys = {"a loop monitor", "monitor", monitor_list};

/* `movements` is last, as in the files that people write: what is above it holds for all of them.
 * The sections of facets are read before everything else, and are gone afterwards. */
static const struct key workflow_list[] = {
    {"name", KEY_NAME, .required = true, .example = "mend-and-review",
     .description = "The workflow's name."},
    {"description", KEY_TEXT, .example = "mends a fault until the tests pass, then has it reviewed",
     .description = "What the workflow is for."},
    {"params", KEY_PARAMS, .example = "{target: {description: what to look at}, style: strict}",
     .description =
         "The inputs of the workflow: NAME: default, or NAME: {description: .., default: ..}; an "
         "input without a default must be given. {input:NAME} is its value, from args where the "
         "workflow is called, or from --input NAME=VALUE where it is run."},
    {"returns", KEY_LABELS, .example = "[approved, must change]",
     .description = "The labels that the workflow can end with when it is called, besides COMPLETE "
                    "and ABORT; a rule with return: LABEL ends it that way."},
    {"outputs", KEY_OUTPUTS,
     .example = "{verdict: \"{structured:review.verdict}\", words: \"{previous_response}\"}",
     .description =
         "What a complete session returns: NAME: text, with the variables of an instruction. A "
         "text that consists of one {structured:MOVEMENT.FIELD} is that value."},
    {"language", KEY_CHOICE, .words = languages, .example = "ja",
     .description = "The language of the prompts that segue writes (default en)."},
    {"schema_as", KEY_CHOICE, .words = describe_form_names, .example = "types",
     .description = "How a schema is described to a backend that has no schema mode: one line for "
                    "each field (prompt, the default), as types, or as the JSON Schema itself."},
    {"initial_movement", KEY_NAME, .alias = "initial_step", .example = "plan",
     .description = "Where to start (default: the first movement)."},
    {"max_movements", KEY_COUNT, .alias = "max_steps", .older = "max_iterations", .min = 1,
     .max = LIMIT_MOVEMENTS, .words = infinite, .example = "30",
     .description = "The most movements in one session, or infinite (default 10)."},
    {"wait_for_outage", KEY_LINE, .check = limits_check_wait, .example = "6h",
     .description = "How long a provider is waited for that cannot be reached or is overloaded, or "
                    "off (default: as the user's configuration says, 6h)."},
    {"wait_for_background", KEY_LINE, .check = limits_check_duration, .example = "30m",
     .description = "How long a client is waited for that works on in the background after its "
                    "answer (default: as the user's configuration says, 30m)."},
    {"budget", KEY_SET, .set = &budget_keys, .example = "{cost: 20, time: 8h, on_exceed: stop}",
     .description =
         "What a session may use: once a total has reached its limit, no call starts and no "
         "movement is entered. The session stops, and segue resume --add-budget continues it."},
    {"protect", KEY_TEXTS, .max = LIMIT_PROTECT_COUNT, .example = "[tests/**, \"*.lock\"]",
     .description = "Paths that no movement may change, such as tests/** or *.lock. If one does, "
                    "the session stops; resuming it is a person's consent to the change."},
    {"guards", KEY_SET, .set = &guards_keys, .example = "{same_tool: 10, same_movement: 5}",
     .description = "What to do about agents and movements that go in circles: see its keys."},
    {"provider", KEY_PROVIDERS, .example = "[claude, codex]",
     .description = "The provider for movements that name none. In a list, the others are "
                    "fallbacks, in that order."},
    {"model", KEY_LINE, .example = "claude-opus-5-5",
     .description = "The model that goes with the provider."},
    {"options", KEY_SET, .set = &options_keys, .example = "{temperature: 0, max_tokens: 8000}",
     .description = "Sampling options for agent movements that set none."},
    {"judge", KEY_SET, .set = &judge_keys,
     .example = "{stages: [structured_output, ai_judge], provider: claude, timeout_ms: 60000}",
     .description = "How movements are judged."},
    {"workspace", KEY_CHOICE, .words = workspace_words, .example = "worktree",
     .description =
         "Where a session works. here (default): in the working directory, which one session at a "
         "time may edit. worktree: in its own git worktree, on its own branch."},
    {"commit", KEY_CHOICE, .words = commit_words, .example = "movement",
     .description = "When the work is committed: off (default with here), after each movement, or "
                    "at the session's end (default with worktree)."},
    {"branch", KEY_LINE, .check = key_check_branch, .example = "\"segue/{id}\"",
     .description = "The name of a worktree's branch; {id} is the session's id, {workflow} its "
                    "workflow's name (default segue/{id})."},
    {"setup", KEY_SET, .set = &setup_keys, .or_member = "run",
     .example = "{run: [npm ci], key: [package-lock.json], keep: [node_modules]}",
     .description =
         "How a new worktree, a child's too, is set up before its first call: commands, "
         "which run in the agents' sandbox (default: as the user's configuration says)."},
    {"personas", KEY_SECTION, .facet = FACET_PERSONA,
     .example = "{coder: personas/coder.md, reviewer: You review changes.}",
     .description = "Personas of this file, each a name with a path or a text."},
    {"policies", KEY_SECTION, .facet = FACET_POLICY,
     .example = "{small: policies/small-changes.md}",
     .description = "Policies of this file, each a name with a path or a text."},
    {"knowledge", KEY_SECTION, .facet = FACET_KNOWLEDGE, .example = "{layout: docs/layout.md}",
     .description = "Knowledge of this file, each a name with a path or a text."},
    {"instructions", KEY_SECTION, .facet = FACET_INSTRUCTION,
     .example = "{plan: instructions/plan.md}",
     .description = "Instructions of this file, each a name with a path or a text."},
    {"output_contracts", KEY_SECTION, .alias = "report_formats", .facet = FACET_OUTPUT_CONTRACT,
     .example = "{review: output-contracts/review.md}",
     .description = "Output contracts of this file, each a name with a path or a text."},
    {"piece_config", KEY_NOTED,
     .description =
         "providers and models are set in segue's configuration, or by provider and model here"},
    {"workflow_config", KEY_NOTED,
     .description =
         "providers and models are set in segue's configuration, or by provider and model here"},
    {"provider_options", KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration, sampling in options"},
    {"capabilities", KEY_NOTED,
     .description = "a provider's settings belong in segue's configuration"},
    {"mcp_servers", KEY_NOTED,
     .description = "an agent program reads its MCP servers from its own configuration"},
    {"tags", KEY_NOTED, .description = "each movement names its provider itself"},
    {"interactive_mode", KEY_NOTED, .description = "the task comes from --task"},
    {"answer_agent", KEY_NOTED, .description = "segue answers no questions of agents"},
    {"global_rules", KEY_SET_LIST, .set = &rule_keys, .max = LIMIT_RULE_COUNT,
     .example = "[{condition: when(iteration > 20), next: ABORT}]",
     .description = "Rules that every movement has, placed and numbered before its own. A when() "
                    "that refers to something a movement does not have is false there; a label is "
                    "judged wherever the movement has labels of its own."},
    {"loop_monitors", KEY_SET_LIST, .set = &monitor_keys, .max = LIMIT_MONITOR_COUNT,
     .example = "[{cycle: [review, fix], judge: {rules: [{condition: it helps, next: fix}]}}]",
     .description = "Loops to watch: a judge decides whether another round is worth it."},
    {"movements", KEY_SET_LIST, .alias = "steps", .required = true, .set = &movement_keys,
     .max = LIMIT_MOVEMENT_COUNT,
     .example = "[{name: work, rules: [{condition: it is done, next: COMPLETE}]}]",
     .description = "The units of work; the rules of each say where to go next."},
    {0},
};
const struct key_set workflow_keys = {"a workflow", "workflow", workflow_list};

/* --- finding a key --- */

bool key_is(const struct key *k, struct str name) {
  return str_eq_c(name, k->name) || (k->alias && str_eq_c(name, k->alias)) ||
         (k->older && str_eq_c(name, k->older));
}

const struct key *key_find(const struct key_set *set, struct str name) {
  for (const struct key *k = set->keys; k->name; k++)
    if (key_is(k, name))
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

const char *key_example(const struct key *k) {
  return k->example == NULL && k->type == KEY_CHOICE ? k->words[0] : k->example;
}

/* --- the check of a resolved document --- */

enum { PATH_MAX_BYTES = 200 };

struct key_check {
  struct buf path; /* "movements[0].judge" */
  struct err *err;
};

static bool keys_check_set(struct key_check *c, const struct key_set *set, const json_t *object);

static void path_cut(struct key_check *c, size_t length) {
  if (c->path.n > length)
    c->path.p[c->path.n = length] = '\0';
}

/* Says what the value at the path must be. Returns false. */
PRINTF_LIKE(2, 3)
static bool keys_refuse(struct key_check *c, const char *fmt, ...) {
  char what[sizeof c->err->text];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  return err_set(c->err, ERR_INVALID, "%s%s%s", buf_c(&c->path), c->path.n > 0 ? ": " : "", what);
}

static bool keys_check_text(struct key_check *c, const struct key *k, const json_t *v) {
  if (!json_is_string(v))
    return keys_refuse(c, "must be a text");
  struct str text = json_view(v);
  bool line = text.n > 0 && !str_has_control(text);
  if (k->type == KEY_NAME && (!line || text.n > LIMIT_NAME_BYTES))
    return keys_refuse(c, "must be a name of 1 to 128 bytes without control characters");
  struct err why;
  if (line && k->check != NULL && !k->check(text, &why))
    return keys_refuse(c, "%s", why.text);
  return (k->type != KEY_LINE && k->type != KEY_PROVIDERS) || line ||
         keys_refuse(c, "must be a text of one line, not empty");
}

static bool keys_is_word(const struct key *k, const json_t *v) {
  return k->words && json_is_string(v) && str_is_one(json_view(v), k->words);
}

static bool keys_check_number(struct key_check *c, const struct key *k, const json_t *v) {
  double n = json_number_value(v);
  bool whole = k->type != KEY_NUMBER, fits = whole ? json_is_integer(v) : json_is_number(v);
  struct buf words = {0};
  if (keys_is_word(k, v) || (fits && n >= k->min && n <= k->max))
    return true;
  if (k->words) {
    buf_puts(&words, ", or ");
    key_words(k, &words);
  }
  keys_refuse(c, "must be a %snumber from %.0f to %.0f%s", whole ? "whole " : "", k->min, k->max,
              buf_c(&words));
  buf_deinit(&words);
  return false;
}

static bool keys_check_choice(struct key_check *c, const struct key *k, const json_t *v) {
  struct buf words = {0};
  if (keys_is_word(k, v))
    return true;
  key_words(k, &words);
  keys_refuse(c, "must be %s", buf_c(&words));
  buf_deinit(&words);
  return false;
}

/* Checks a list of texts that are not empty. fault: returns what is wrong with one of them, NULL if
 * nothing is; or NULL. */
static bool keys_check_texts(struct key_check *c, const json_t *list, size_t least, size_t most,
                             const char *what, const char *(*fault)(struct str text)) {
  size_t i, n = json_array_size(list);
  const json_t *v;
  if (!json_is_array(list) || n < least || n > most)
    return keys_refuse(c, "%s", what);
  json_array_foreach((json_t *)list, i, v) {
    const char *wrong = what;
    if (json_string_length(v) > 0)
      wrong = fault != NULL ? fault(json_view(v)) : NULL;
    if (wrong != NULL)
      return keys_refuse(c, "%s", wrong);
  }
  return true;
}

static const char variables_must[] = "must be a list of names of variables";

static const char *variable_fault(struct str text) {
  return str_is_variable(text) ? NULL : variables_must;
}

static bool keys_check_argv(struct key_check *c, const json_t *list) {
  size_t i, n = json_array_size(list);
  const json_t *v;
  if (!json_is_array(list) || n == 0 || n > LIMIT_ARGV_COUNT)
    return keys_refuse(c, "must be a list of 1 to 256 texts: the program, its arguments");
  json_array_foreach((json_t *)list, i, v) {
    const char *text = json_string_value(v);
    if (text == NULL || strlen(text) != json_string_length(v) || (i == 0 && text[0] == '\0'))
      return keys_refuse(c, "must be texts without NUL, the first not empty");
  }
  return true;
}

static bool keys_check_choices(struct key_check *c, const struct key *k, const json_t *list) {
  static const char what[] = "must be a list of 2 to 20 different answers, each of one line";
  size_t i;
  const json_t *v;
  if (!keys_check_texts(c, list, 2, (size_t)k->max, what, NULL))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    if (json_string_length(v) > LIMIT_CHOICE_BYTES || str_has_control(json_view(v)))
      return keys_refuse(c, "%s", what);
    for (size_t j = 0; j < i; j++)
      if (json_same(v, json_array_get(list, j)))
        return keys_refuse(c, "%s", what);
  }
  return true;
}

static bool keys_check_outputs(struct key_check *c, const json_t *map) {
  const char *name;
  const json_t *v;
  if (!json_is_object(map) || json_object_size(map) > LIMIT_PARAM_COUNT)
    return keys_refuse(c, "must be an object of at most 64 names");
  json_object_foreach((json_t *)map, name, v) {
    if (!json_is_string(v) || name[0] == '\0')
      return keys_refuse(c, "must hold texts");
  }
  return true;
}

static bool keys_check_stages(struct key_check *c, const struct key *k, const json_t *list) {
  size_t i;
  const json_t *v;
  if (!json_is_array(list) || json_array_size(list) == 0)
    return keys_refuse(c, "must be a list with at least one stage");
  json_array_foreach((json_t *)list, i, v) {
    if (!keys_check_choice(c, k, v))
      return false;
    for (size_t j = 0; j < i; j++)
      if (json_same(v, json_array_get(list, j)))
        return keys_refuse(c, "names a stage twice");
  }
  return true;
}

static bool keys_check_list(struct key_check *c, const struct key *k, const json_t *list) {
  size_t i, n = json_array_size(list), length = c->path.n;
  const json_t *v;
  if (!json_is_array(list) || n == 0 || (double)n > k->max)
    return keys_refuse(c, "must be a list of 1 to %.0f %s", k->max, k->name);
  json_array_foreach((json_t *)list, i, v) {
    buf_printf(&c->path, "[%zu]", i);
    if (!keys_check_set(c, k->set, v))
      return false;
    path_cut(c, length);
  }
  return true;
}

static bool keys_check_items(struct key_check *c, const struct key *k, const json_t *v) {
  if (json_is_string(v))
    return keys_check_text(c, k, v);
  return (json_is_array(v) && json_array_size(v) > 0 && (double)json_array_size(v) <= k->max) ||
         keys_refuse(c, "must be a list with at least one item, or MOVEMENT.FIELD");
}

static bool keys_check_value(struct key_check *c, const struct key *k, const json_t *v) {
  switch (k->type) {
  case KEY_NAME:
  case KEY_LINE:
  case KEY_TEXT:
  case KEY_FACET:
  case KEY_CONDITION:
  case KEY_PROVIDERS:
    return keys_check_text(c, k, v);
  case KEY_BOOL:
    return json_is_boolean(v) || keys_refuse(c, "must be true or false");
  case KEY_INTEGER:
  case KEY_NUMBER:
  case KEY_COUNT:
    return keys_check_number(c, k, v);
  case KEY_CHOICE:
    return keys_check_choice(c, k, v);
  case KEY_NOTED:
  case KEY_PARAMS:
  case KEY_ARGS:
  case KEY_LABELS:
  case KEY_SECTION:
    return true; /* nothing reads them */
  case KEY_ARGV:
    return keys_check_argv(c, v);
  case KEY_RUN:
    return keys_check_texts(c, v, 1, (size_t)k->max, "must be a list of 1 to 32 programs",
                            run_fault);
  case KEY_CHOICES:
    return keys_check_choices(c, k, v);
  case KEY_NAMES:
    return keys_check_texts(c, v, (size_t)k->min, (size_t)k->max,
                            "must be a list of movements' names", NULL);
  case KEY_TEXTS:
    return keys_check_texts(c, v, 1, (size_t)k->max, "must be a list of texts, not too many", NULL);
  case KEY_VARIABLES:
    return keys_check_texts(c, v, 1, LIMIT_SECRET_COUNT, variables_must, variable_fault);
  case KEY_PANEL:
    return keys_is_word(k, v) ||
           keys_check_texts(c, v, 2, (size_t)k->max, "must be a list of 2 to 7 providers, or none",
                            NULL);
  case KEY_STAGES:
    return keys_check_stages(c, k, v);
  case KEY_SCHEMA:
    return json_is_object(v) || keys_refuse(c, "must be a JSON Schema");
  case KEY_ITEMS:
    return keys_check_items(c, k, v);
  case KEY_INVARIANTS:
    return json_is_array(v) || keys_refuse(c, "must be a list");
  case KEY_OUTPUTS:
    return keys_check_outputs(c, v);
  case KEY_SET:
    return keys_check_set(c, k->set, v);
  case KEY_REPORTS:
  case KEY_SET_LIST:
    return keys_check_list(c, k, v);
  }
  BUG("no such type of key: %d", (int)k->type);
}

static bool keys_check_key(struct key_check *c, const struct key *k, const json_t *object) {
  const json_t *v = json_object_get(object, k->name);
  size_t length = c->path.n;
  if (v == NULL && !k->required && k->type != KEY_PROVIDERS)
    return true; /* this is so for most keys */
  buf_puts(&c->path, length > 0 ? "." : "");
  buf_puts(&c->path, k->name);
  if (v == NULL && k->required)
    return keys_refuse(c, "is missing");
  bool is_removed = k->or_null && json_is_null(v);
  if (v != NULL && !is_removed && !keys_check_value(c, k, v))
    return false;
  path_cut(c, length);
  if (k->type != KEY_PROVIDERS || (v = json_at(object, "fallback")) == NULL)
    return true;
  buf_printf(&c->path, "%sfallback", length > 0 ? "." : "");
  if (!keys_check_texts(c, v, 0, LIMIT_FALLBACK_COUNT, "must be a list of providers", NULL))
    return false;
  path_cut(c, length);
  return true;
}

static bool keys_check_set(struct key_check *c, const struct key_set *set, const json_t *object) {
  if (!json_is_object(object))
    return keys_refuse(c, "must be an object");
  for (const struct key *k = set->keys; k->name; k++)
    if (!keys_check_key(c, k, object))
      return false;
  return true;
}

bool key_check_setup(const json_t *setup, struct err *err) {
  const char *key;
  json_t *value;
  size_t i;
  bool ok = key_set_check(&setup_keys, setup, err);
  json_object_foreach((json_t *)setup, key, value) {
    if (ok && key_find(&setup_keys, str_from(key)) == NULL)
      ok = err_set(err, ERR_INVALID, "has no key \"%.40s\": they are run, key, keep and timeout",
                   key);
  }
  json_array_foreach(json_object_get(setup, "keep"), i, value) {
    ok = ok && limits_check_cwd(json_view(value), err);
  }
  if (ok && json_at(setup, "keep") != NULL && json_at(setup, "key") == NULL)
    ok = err_set(err, ERR_INVALID, "has keep but no key: name the files that decide what is made");
  return ok;
}

bool key_set_check(const struct key_set *set, const json_t *object, struct err *err) {
  struct key_check c = {.path = {.max = PATH_MAX_BYTES}, .err = err};
  assert(set != NULL && err != NULL);
  bool ok = keys_check_set(&c, set, object);
  buf_deinit(&c.path);
  return ok;
}
