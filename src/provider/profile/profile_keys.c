/* Holds the table of the keys of a profile, checks a profile's YAML by it (each error has its place
 * and what to write), and writes its JSON Schema. */
#include "provider/profile/profile_keys.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/call.h"
#include "format/pointer.h"
#include "provider/profile/profile.h"
#include "schema/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum profile_key_type {
  PROFILE_LINE, /* a text of one line, not empty */
  PROFILE_BOOL,
  PROFILE_INTEGER,    /* min to max */
  PROFILE_CHOICE,     /* one of words */
  PROFILE_ARGV,       /* list of texts, and of lists of texts: groups */
  PROFILE_NAMES,      /* list of texts of one line */
  PROFILE_VARIABLES,  /* list of names of environment variables */
  PROFILE_TEXTS,      /* map of names to texts */
  PROFILE_OBJECT,     /* a map of anything */
  PROFILE_POINTER,    /* a JSON Pointer */
  PROFILE_POINTERS,   /* a list of them */
  PROFILE_PATH,       /* a path below a folder: no / in front, no .. */
  PROFILE_VALUE,      /* a JSON Pointer, a list of them, or another text: itself */
  PROFILE_MATCHES,    /* map of JSON Pointers to the values required there */
  PROFILE_CLASSES,    /* map of words to error classes */
  PROFILE_PATTERN,    /* a regular expression (ECMA-262) */
  PROFILE_CLASS,      /* an error class */
  PROFILE_PERMISSION, /* an ARGV, or a map {argv, set} */
  PROFILE_SET,        /* a map with the keys of `set` */
  PROFILE_SET_LIST,   /* a list of such maps */
};

struct profile_key_set;

struct profile_key {
  const char *name;
  enum profile_key_type type;
  bool required; /* of sets within the document; of the whole: once `extends` is filled in */
  long min, max;
  const char *const *words; /* NULL-ended */
  const struct profile_key_set *set;
  const char *description;
};

struct profile_key_set {
  const char *what;               /* "a profile": for messages */
  const char *id;                 /* name below $defs in the schema */
  const struct profile_key *keys; /* ends with a NULL name */
};

static const char *const dialects[] = {"json-lines", "json", "text", "acp", NULL};
static const char *const transports[] = {"exec", "native", "acp", NULL};
static const char *const native_drivers[] = {"claude", "codex", "opencode", NULL};
static const char *const notice_kinds[] = {"retry", "note", "error", NULL};
static const char *const stdins[] = {"prompt", "none", NULL};
static const char *const schema_ways[] = {"text", "file", "none", NULL};

static const char *const schema_dialects[] = {
    "openai",   "openai-chat", "codex", "openrouter", "anthropic", "gemini",   "ollama",
    "llamacpp", "lmstudio",    "vllm",  "claude",     "qwen",      "opencode", NULL};
static const char *const enforcements[] = {"native", "tool", "grammar", "prompt", NULL};
static const char *const text_ways[] = {"last", "all", NULL};
static const char *const end_ways[] = {"event", "exit", NULL};
static const char *const ends[] = {"ok", "error", NULL};
static const char *const usage_scopes[] = {"call", "request", "conversation", "turn", NULL};
static const char *const held_runs[] = {"named", "any", "none", NULL};
static const char *const option_words[] = {"temperature", "seed", "max_tokens", "effort", NULL};
static const char *const stderr_kinds[] = {"retry", "permission", "note", NULL};

static const struct profile_key tool_list[] = {
    {"name", PROFILE_VALUE, .description = "What the tool is called."},
    {"id", PROFILE_VALUE, .description = "The id of this use of the tool."},
    {"state", PROFILE_VALUE, .description = "start or end."},
    {"failed", PROFILE_VALUE, .description = "Where a failure is marked, by true or an error."},
    {"input", PROFILE_VALUE, .description = "Its argument, such as the command; it is given once."},
    {"output", PROFILE_VALUE, .description = "Its output, in any shape."},
    {"exit", PROFILE_VALUE, .description = "Its exit status, a whole number."},
    {0},
};
static const struct profile_key_set tool_keys = {"a tool", "tool", tool_list};

static const struct profile_key usage_list[] = {
    {"input", PROFILE_VALUE,
     .description = "Input tokens, including those from a cache; added up."},
    {"output", PROFILE_VALUE, .description = "Output tokens; added up."},
    {"cached", PROFILE_VALUE, .description = "Input tokens that came from a cache; added up."},
    {"reasoning", PROFILE_VALUE, .description = "Output tokens spent on reasoning; added up."},
    {"cost", PROFILE_VALUE, .description = "US dollars, if the client knows a real price."},
    {"all_input", PROFILE_VALUE,
     .description = "With of: turn, the input tokens that `cost` covers, to see what it covers."},
    {"all_output", PROFILE_VALUE, .description = "The same of output tokens."},
    {"of", PROFILE_CHOICE, .words = usage_scopes,
     .description = "What the numbers cover. call (default). request: each event reports one "
                    "request, and they are added up. conversation: the total of all calls of the "
                    "conversation so far, from which the earlier ones are subtracted. turn: "
                    "each event reports the tokens of a turn, which are added up; the last cost "
                    "covers the call or, if the numbers show that, the conversation."},
    {0},
};
static const struct profile_key_set usage_keys = {"usage", "usage", usage_list};

static const struct profile_key background_list[] = {
    {"id", PROFILE_VALUE, .description = "The id of the task; with `all`, in each item."},
    {"what", PROFILE_VALUE, .description = "What it does; with `all`, in each item."},
    {"state", PROFILE_VALUE,
     .description = "start, end, or stopped (before its end); turn: the client begins another "
                    "turn, as it does when a task has ended."},
    {"all", PROFILE_VALUE, .description = "The array of all tasks that are running."},
    {0},
};
static const struct profile_key_set task_keys = {"background", "background", background_list};

static const struct profile_key retry_list[] = {
    {"attempt", PROFILE_VALUE, .description = "Which attempt failed."},
    {"of", PROFILE_VALUE, .description = "How many attempts the client makes."},
    {"delay_ms", PROFILE_VALUE, .description = "Milliseconds until the next attempt."},
    {"status", PROFILE_VALUE, .description = "The HTTP status of the failure."},
    {"reason", PROFILE_VALUE, .description = "What the client says about the failure."},
    {0},
};
static const struct profile_key_set retry_keys = {"a retry", "retry", retry_list};

static const struct profile_key asked_list[] = {
    {"tool", PROFILE_VALUE, .description = "The tool that the client wanted to use."},
    {"answer", PROFILE_VALUE, .description = "denied or allowed."},
    {"message", PROFILE_VALUE, .description = "What was said about it."},
    {0},
};
static const struct profile_key_set asked_keys = {"a permission", "asked", asked_list};

static const struct profile_key error_list[] = {
    {"status", PROFILE_VALUE, .description = "The HTTP status."},
    {"kind", PROFILE_VALUE, .description = "Words from `classes`; all that are present count."},
    {"message", PROFILE_VALUE, .description = "The message for people."},
    {"retry_after_ms", PROFILE_VALUE,
     .description = "Milliseconds after which the service may be asked again."},
    {"log", PROFILE_VALUE,
     .description = "A word, such as the error's number. The line of stderr that contains it has "
                    "the details, in its key `error` (logfmt) or in the whole line."},
    {0},
};
static const struct profile_key_set error_keys = {"an error", "error", error_list};

static const struct profile_key rule_list[] = {
    {"when", PROFILE_MATCHES,
     .description = "Matches lines that have all of these: a value, a list of possible values, "
                    "~PATTERN for a text, * for anything, null for nothing."},
    {"unless", PROFILE_MATCHES, .description = "Does not match lines that have all of these."},
    {"each", PROFILE_POINTER,
     .description =
         "Looks at each item of the array at this place; the pointers below start at the item."},
    {"where", PROFILE_MATCHES, .description = "Only items that have all of these."},
    {"session", PROFILE_VALUE, .description = "The client's own id of the conversation."},
    {"delta", PROFILE_VALUE, .description = "A piece of the answer."},
    {"cumulative", PROFILE_VALUE, .description = "The message so far."},
    {"thinking", PROFILE_VALUE, .description = "A piece of the model's reasoning."},
    {"message", PROFILE_VALUE,
     .description = "A whole message; pieces that were already reported are not counted twice."},
    {"message_id", PROFILE_VALUE, .description = "Messages with the same id form one text."},
    {"tool", PROFILE_SET, .set = &tool_keys,
     .description = "A tool is being used, or has been used."},
    {"background", PROFILE_SET, .set = &task_keys,
     .description = "The client's own tasks. While one runs, its final event may not be the last."},
    {"usage", PROFILE_SET, .set = &usage_keys, .description = "The tokens used."},
    {"retry", PROFILE_SET, .set = &retry_keys, .description = "The client is retrying on its own."},
    {"permission", PROFILE_SET, .set = &asked_keys,
     .description = "The client asked for permission."},
    {"error", PROFILE_SET, .set = &error_keys, .description = "What went wrong."},
    {"note", PROFILE_VALUE, .description = "Anything else that an auditor should know."},
    {"text", PROFILE_VALUE, .description = "The final text."},
    {"structured", PROFILE_VALUE,
     .description = "The value that the client claims to have checked."},
    {"end", PROFILE_CHOICE, .words = ends, .description = "The final event: success or failure."},
    {0},
};
static const struct profile_key_set rule_keys = {"an event", "event", rule_list};

static const struct profile_key pattern_list[] = {
    {"match", PROFILE_PATTERN, .required = true,
     .description = "A regular expression for error messages and stderr."},
    {"class", PROFILE_CLASS, .required = true, .description = "The error class that it means."},
    {0},
};
static const struct profile_key_set pattern_keys = {"a pattern", "pattern", pattern_list};

static const struct profile_key stderr_list[] = {
    {"match", PROFILE_PATTERN, .required = true,
     .description = "A regular expression that matches a line of stderr."},
    {"is", PROFILE_CHOICE, .required = true, .words = stderr_kinds,
     .description = "What the line reports."},
    {"after", PROFILE_LINE,
     .description = "The message for people begins after this text; default: the whole line."},
    {0},
};
static const struct profile_key_set stderr_keys = {"a line of stderr", "stderr", stderr_list};

static const struct profile_key switch_list[] = {
    {"by", PROFILE_LINE, .required = true,
     .description = "The variable that switches it on: it must be set, and not be 0 or false."},
    {"pass", PROFILE_VARIABLES, .required = true,
     .description = "Variables that are passed only then."},
    {0},
};
static const struct profile_key_set switch_keys = {"a switch", "switch", switch_list};

static const struct profile_key env_list[] = {
    {"pass", PROFILE_VARIABLES,
     .description = "Variables that the program gets if they are set. Values that look secret by "
                    "their names (KEY, TOKEN, SECRET, PASSWORD ...) or their form never enter a "
                    "log; nor do those in `set`."},
    {"switches", PROFILE_SET_LIST, .set = &switch_keys, .max = 16,
     .description = "Variables that the program gets only if another one is set as well."},
    {"set", PROFILE_TEXTS, .description = "Variables and their values; {placeholders} work."},
    {0},
};
static const struct profile_key_set env_keys = {"env", "env", env_list};

static const struct profile_key permission_list[] = {
    {"readonly", PROFILE_PERMISSION, .description = "It may read."},
    {"edit", PROFILE_PERMISSION, .description = "It may change files in the working directory."},
    {"full", PROFILE_PERMISSION, .description = "It may do anything."},
    {"judge", PROFILE_PERMISSION,
     .description = "For judges' calls, which need nothing but their prompt (default: readonly)."},
    {0},
};
static const struct profile_key_set mode_keys = {"permission", "modes", permission_list};

static const struct profile_key one_permission_list[] = {
    {"argv", PROFILE_ARGV, .description = "The words that {permission} becomes."},
    {"set", PROFILE_TEXTS, .description = "Variables and their values."},
    {0},
};

static const struct profile_key_set profile_permission_keys = {"a permission", "permission",
                                                               one_permission_list};

static const struct profile_key schema_list[] = {
    {"by", PROFILE_CHOICE, .required = true, .words = schema_ways,
     .description = "text: {schema} is the JSON Schema. file: {schema_file} is a file that "
                    "contains it. none: it is put at the end of the prompt."},
    {"enforced", PROFILE_CHOICE, .words = enforcements,
     .description = "How the client enforces it: native, tool, grammar."},
    {"dialect", PROFILE_CHOICE, .words = schema_dialects,
     .description = "Which part of JSON Schema it supports: the rest is rewritten, and the value "
                    "is converted back."},
    {"value", PROFILE_CHOICE, .words = (const char *const[]){"event", "text", NULL},
     .description = "Where the value is: in an event (structured), or the final text itself."},
    {0},
};
static const struct profile_key_set schema_keys = {"schema", "schema", schema_list};

static const struct profile_key version_list[] = {
    {"argv", PROFILE_ARGV, .description = "Words after the program's name (default: --version)."},
    {"minimum", PROFILE_LINE, .description = "The oldest version that this profile works with."},
    {0},
};
static const struct profile_key_set version_keys = {"version", "version", version_list};

static const struct profile_key login_list[] = {
    {"env", PROFILE_VARIABLES, .description = "It is enough that one of these is set."},
    {"files", PROFILE_NAMES,
     .description = "It is enough that one of these exists; it is not read. ~ is the home folder."},
    {"how", PROFILE_LINE, .description = "What to do if there is none."},
    {0},
};
static const struct profile_key_set login_keys = {"login", "login", login_list};

static const struct profile_key gap_list[] = {
    {"readonly", PROFILE_LINE, .description = "About reading, and running nothing that writes."},
    {"edit", PROFILE_LINE,
     .description = "About changing files below the working directory, and running what is named."},
    {"full", PROFILE_LINE, .description = "About doing anything."},
    {0},
};
static const struct profile_key_set gap_keys = {"but", "gaps", gap_list};

static const struct profile_key holds_list[] = {
    {"looks", PROFILE_BOOL, .required = true,
     .description = "Whether it may run programs that only read, even if it may run no others."},
    {"run", PROFILE_CHOICE, .required = true, .words = held_runs,
     .description = "What it may run with permission edit: named (the programs in the movement's "
                    "run), any, or none."},
    {"served", PROFILE_BOOL,
     .description = "Whether it is a server that segue talks to over the machine's network; it "
                    "then cannot run with network: none or api."},
    {"but", PROFILE_SET, .set = &gap_keys,
     .description =
         "Where it does not do what these words say; each text is the end of a sentence about it."},
    {0},
};
static const struct profile_key_set holds_keys = {"holds", "holds", holds_list};

#define HOLDS_KEY                                                                                  \
  {                                                                                                \
    "holds", PROFILE_SET,                                                                          \
        .set = &holds_keys,                                                                        \
        .description = "How well it keeps to readonly, edit and full; default: unknown."           \
  }

static const struct profile_key native_schema_list[] = {
    {"enforced", PROFILE_CHOICE, .required = true, .words = enforcements,
     .description = "How the client enforces it: native, tool, grammar."},
    {"dialect", PROFILE_CHOICE, .words = schema_dialects,
     .description = "Which part of JSON Schema it takes, as in `schema`."},
    {0},
};

static const struct profile_key_set native_schema_keys = {"a native schema", "native_schema",
                                                          native_schema_list};

static const struct profile_key native_list[] = {
    {"driver", PROFILE_CHOICE, .required = true, .words = native_drivers,
     .description = "Which of segue's drivers speaks the protocol."},
    {"argv", PROFILE_ARGV, .required = true, .description = "Words after the program's name."},
    {"permission", PROFILE_SET, .set = &mode_keys,
     .description = "What it may do without asking, if that differs from a one-shot run."},
    HOLDS_KEY,
    {"schema", PROFILE_SET, .set = &native_schema_keys,
     .description = "How its protocol takes a JSON Schema, if that differs from a one-shot run."},
    {0},
};
static const struct profile_key_set native_keys = {"native", "native", native_list};

static const struct profile_key notice_list[] = {
    {"match", PROFILE_PATTERN, .required = true,
     .description = "A regular expression that matches a piece of text without a message id."},
    {"is", PROFILE_CHOICE, .required = true, .words = notice_kinds,
     .description = "retry, note, or error: the run has failed unless an answer follows."},
    {0},
};
static const struct profile_key_set notify_config_keys = {"a notice", "notice", notice_list};

static const struct profile_key acp_list[] = {
    {"program", PROFILE_LINE, .description = "The program, if it is not the profile's."},
    {"install", PROFILE_LINE, .description = "How to install this program."},
    {"argv", PROFILE_ARGV, .required = true, .description = "Words after the program's name."},
    {"auth", PROFILE_LINE,
     .description = "The id of the authentication method to use, if it requires one."},
    {"modes", PROFILE_TEXTS, .description = "Its session modes for readonly, edit and full."},
    {"usage", PROFILE_CHOICE, .words = (const char *const[]){"partial", NULL},
     .description = "partial: the tokens that it reports are those of its last request only."},
    {"permission", PROFILE_SET, .set = &mode_keys,
     .description = "What it may do without asking, if that differs from a one-shot run."},
    HOLDS_KEY,
    {"notices", PROFILE_SET_LIST, .set = &notify_config_keys, .max = 100,
     .description = "Pieces of text that come from the client itself, not from the model."},
    {"schema", PROFILE_LINE,
     .description =
         "The name below _meta of session/new under which it takes options.outputFormat, a JSON "
         "Schema; default: the schema is put in the prompt."},
    {"meta", PROFILE_OBJECT, .description = "The value of _meta in session/new, besides a schema."},
    {"command", PROFILE_CHOICE, .words = (const char *const[]){"title", NULL},
     .description = "title: when it asks to run a program and rawInput has no command line, the "
                    "question's title is the command line."},
    {"judge_meta", PROFILE_OBJECT, .description = "What is added to meta for judges' calls."},
    {0},
};
static const struct profile_key_set acp_keys = {"acp", "acp", acp_list};

static const struct profile_key project_file_list[] = {
    {"path", PROFILE_PATH, .required = true,
     .description = "The file's path below the working directory."},
    {"above", PROFILE_CHOICE, .words = (const char *const[]){"repository", "root", NULL},
     .description =
         "Also looks in every folder above: up to the repository's, or to the root of the file "
         "system. The home folder is never searched, because what is there is the user's."},
    {"transports", PROFILE_NAMES, .words = transports,
     .description = "Which of the client's transports the file affects; default: all."},
    {"allowed", PROFILE_POINTERS,
     .description = "The file is JSON, and is allowed if it sets nothing except at these places."},
    {"refused", PROFILE_POINTERS,
     .description = "The file is JSON, and is allowed if it sets nothing at these places."},
    {"refused_variables", PROFILE_PATTERN,
     .description = "The file has lines NAME=value, and is allowed if no name matches this."},
    {"does", PROFILE_LINE, .required = true,
     .description = "What the client would do, as the end of a sentence, such as: run its hooks."},
    {0},
};

static const struct profile_key_set project_file_keys = {"a file of a project", "project_file",
                                                         project_file_list};

static const struct profile_key profile_list[] = {
    {"extends", PROFILE_LINE,
     .description = "Another profile, whose keys count wherever this file does not set its own."},
    {"summary", PROFILE_LINE, .required = true, .description = "One line for people."},
    {"program", PROFILE_LINE,
     .description = "The program: a name to look up in PATH, or an absolute path. Without it, the "
                    "user's settings name it (providers: {NAME: {program: ...}})."},
    {"argv", PROFILE_ARGV,
     .description =
         "Words after the program's name. {model}, {session}, {new_session}, {schema}, "
         "{schema_file}, {prompt_file}, {max_turns}, {tools}, {effort}, {cwd}, {tmpdir} are filled "
         "in; {permission} and {args} become any number of words. A nested list is a group: it is "
         "omitted if one of its placeholders is empty, and repeated for each program that the "
         "movement may run if it contains {run}. {?NAME} in a group only tests whether NAME is set "
         "({?judge}: a judge's call; {?report}: a call for a report; {?fork}: {session} belongs to "
         "another turn, so continue with a copy)."},
    {"stdin", PROFILE_CHOICE, .words = stdins,
     .description = "What it gets on standard input. prompt (default): the prompt."},
    {"prompt_max_chars", PROFILE_INTEGER, .min = 1, .max = LIMIT_PROMPT_BYTES,
     .description = "Longer prompts are refused before the program is started."},
    {"each_run", PROFILE_LINE,
     .description = "What {runs} contains for each program that the movement may run ({run}), for "
                    "use in variables or files that list them."},
    {"env", PROFILE_SET, .set = &env_keys,
     .description = "Its environment, besides the standard variables."},
    {"files", PROFILE_TEXTS,
     .description = "Files to write to {tmpdir} before the start: each name with its content."},
    {"output", PROFILE_CHOICE, .words = dialects,
     .description =
         "json-lines (default): one JSON value on each line; json: one document; text; acp."},
    {"text", PROFILE_CHOICE, .words = text_ways,
     .description = "The final text, if no event gives it: the last message (default) or all."},
    {"ends", PROFILE_CHOICE, .words = end_ways,
     .description = "event: an event marks the end. exit: the program's exit does; this is the "
                    "default if no event has end: ok."},
    {"empty", PROFILE_CLASS,
     .description = "The error class of an answer with neither text nor value; default: protocol."},
    {"schema", PROFILE_SET, .set = &schema_keys, .description = "How a JSON Schema is enforced."},
    {"permission", PROFILE_SET, .set = &mode_keys, .description = "What it may do without asking."},
    HOLDS_KEY,
    {"chooses_session", PROFILE_BOOL,
     .description =
         "Whether {new_session} gives a new conversation its id (a UUID) before it starts."},
    {"options", PROFILE_NAMES, .words = option_words,
     .description = "The options that it takes, such as effort, as {effort}."},
    {"judge_effort", PROFILE_LINE,
     .description = "The effort for judges' calls if the workflow sets none."},
    {"max_turns", PROFILE_INTEGER, .min = 1, .max = 100000,
     .description = "The value of {max_turns}: how many rounds of tools one call may have."},
    {"client_retries", PROFILE_INTEGER, .min = 0, .max = 1000,
     .description = "How often it may retry the same request on its own, as far as it reports "
                    "that. At the next reported retry it is ended with the class of the reported "
                    "cause, and segue's own retries and fallbacks take over. Default: no limit."},
    {"max_requests", PROFILE_INTEGER, .min = 1, .max = 1000000,
     .description = "The most requests to the model in one call, if it reports each one (usage of: "
                    "request); after that it is ended."},
    {"no_background", PROFILE_TEXTS,
     .description = "Variables that keep the client from work in the background, and their "
                    "values: for `background: forbid` in the user's settings."},
    {"stall_ms", PROFILE_INTEGER, .min = 100, .max = LIMIT_CALL_WALL_MS,
     .description = "Milliseconds without output after which it is ended, with class timeout."},
    {"judge_stall_ms", PROFILE_INTEGER, .min = 100, .max = LIMIT_CALL_WALL_MS,
     .description = "The same for judges' calls, which are short."},
    {"state", PROFILE_NAMES,
     .description = "The files and folders that it keeps between calls, and may therefore write in "
                    "a sandbox: ~/PATH, $VARIABLE/PATH or /PATH; a path that ends with / is a "
                    "folder, created if it does not exist."},
    {"hosts", PROFILE_NAMES,
     .description =
         "The hosts where it reaches its model and logs in: NAME, *.NAME, NAME:PORT, or $VARIABLE "
         "for the host of the URL in that variable. With network: api it can reach only these."},
    {"own_sandbox", PROFILE_BOOL,
     .description =
         "Whether it has its own sandbox, which cannot be set up inside segue's. If segue confines "
         "it, it is started with permission full and does not set up its own."},
    {"version", PROFILE_SET, .set = &version_keys, .description = "How to ask for its version."},
    {"login", PROFILE_SET, .set = &login_keys, .description = "Signs of a key or a login."},
    {"install", PROFILE_LINE, .description = "How to install it."},
    {"transport", PROFILE_CHOICE, .words = transports,
     .description = "What `transport: auto` means (default: exec)."},
    {"native", PROFILE_SET, .set = &native_keys,
     .description = "Its own protocol, spoken by a driver."},
    {"acp", PROFILE_SET, .set = &acp_keys, .description = "The Agent Client Protocol, version 1."},
    {"project_files", PROFILE_SET_LIST, .set = &project_file_keys, .max = 100,
     .description = "Files in a project that would influence the client, and that it cannot be "
                    "told to ignore. While one is present, its calls are refused with class auth, "
                    "unless the user's settings say trust_project."},
    {"classes", PROFILE_CLASSES,
     .description = "Maps the words found by error.kind, and HTTP statuses, to error classes."},
    {"exits", PROFILE_CLASSES,
     .description = "Maps exit statuses to error classes; used last, if nothing else is known."},
    {"patterns", PROFILE_SET_LIST, .set = &pattern_keys, .max = 100,
     .description = "Maps error messages and stderr to error classes, in this order."},
    {"stderr", PROFILE_SET_LIST, .set = &stderr_keys, .max = 100,
     .description = "Lines of stderr that carry information."},
    {"events", PROFILE_SET_LIST, .set = &rule_keys, .max = LIMIT_PROFILE_RULE_COUNT,
     .description = "What lines of output mean; every entry that matches counts, in this order."},
    {0},
};
static const struct profile_key_set profile_keys = {"a profile", "profile", profile_list};

/* Every other set, for the schema. */
static const struct profile_key_set *const profile_key_sets[] = {
    &env_keys,   &switch_keys,        &schema_keys,       &mode_keys,   &profile_permission_keys,
    &task_keys,  &version_keys,       &login_keys,        &native_keys, &native_schema_keys,
    &acp_keys,   &notify_config_keys, &pattern_keys,      &stderr_keys, &holds_keys,
    &gap_keys,   &rule_keys,          &tool_keys,         &usage_keys,  &retry_keys,
    &asked_keys, &error_keys,         &project_file_keys, NULL};

/* --- checking --- */

struct check {
  const char *file;
  struct err_list *errors;
  bool ok;
};

typedef void check_fn(struct check *c, const struct yaml_node *node, const struct profile_key *key);
static check_fn check_key;

PRINTF_LIKE(3, 4)
static void profile_check_wrong(struct check *c, const struct yaml_node *at, const char *fmt, ...) {
  char text[512];
  struct err err;
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  err_set_at(&err, ERR_FILE, c->file, at->line, at->column, "%s", text);
  err_list_add(c->errors, &err);
  c->ok = false;
}

static bool is_scalar(const struct yaml_node *node) {
  return node->kind != YAML_LIST && node->kind != YAML_MAP;
}

static bool is_line(const struct yaml_node *node) {
  return is_scalar(node) && node->kind != YAML_NULL && node->text.n > 0 &&
         memchr(node->text.p, '\n', node->text.n) == NULL;
}

/* `name` must be `what`. */
static void check_wrong_kind(struct check *c, const struct yaml_node *node, const char *name,
                             const char *what) {
  profile_check_wrong(c, node, "%s must be %s, not %s", name, what, yaml_kind_name(node->kind));
}

static void check_line(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  if (!is_line(node))
    check_wrong_kind(c, node, key->name, "a text of one line");
}

static void check_word(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  const char *const *words = key->words;
  if (is_scalar(node) && str_is_one(node->text, words))
    return;
  struct buf list = {0};
  for (size_t i = 0; words[i] != NULL; i++) {
    if (i > 0)
      buf_puts(&list, words[i + 1] ? ", " : " or ");
    buf_puts(&list, words[i]);
  }
  profile_check_wrong(c, node, "%s must be %s", key->name, buf_c(&list));
  buf_deinit(&list);
}

/* Checks placeholders: a misspelt one would pass as a word and be found much later. */
static void check_placeholders(struct check *c, const struct yaml_node *node) {
  static const char *const known[] = {
      "model",  "session", "new_session", "schema", "schema_file", "prompt_file", "max_turns",
      "tools",  "effort",  "cwd",         "tmpdir", "permission",  "args",        "judge",
      "report", "run",     "runs",        "fork",   NULL};
  struct str text = node->text;
  for (size_t i = 0; i + 1 < text.n; i++) {
    size_t from = i + 1 + (text.p[i + 1] == '?'), to = from;
    if (text.p[i] != '{')
      continue;
    while (to < text.n && ((text.p[to] >= 'a' && text.p[to] <= 'z') || text.p[to] == '_'))
      to++;
    if (to == from || to == text.n || text.p[to] != '}')
      continue; /* JSON, for one */
    struct str name = {text.p + from, to - from};
    if (!str_is_one(name, known)) {
      const char *near = str_nearest(name, known);
      profile_check_wrong(c, node, "there is no placeholder {" STR_FMT "}%s%s%s", STR_ARG(name),
                          near ? ": did you mean {" : "", near ? near : "", near ? "}?" : "");
    }
  }
}

static void check_argv(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  static const struct profile_key group = {.name = "a group"};
  if (node->count > LIMIT_ARGV_COUNT)
    profile_check_wrong(c, node, "%s has too many words: the limit is %u", key->name,
                        LIMIT_ARGV_COUNT);
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (item->kind == YAML_LIST && key != &group)
      check_argv(c, item, &group);
    else if (!is_scalar(item) || item->kind == YAML_NULL)
      profile_check_wrong(c, item, "a word of %s must be a text, not %s", key->name,
                          yaml_kind_name(item->kind));
    else
      check_placeholders(c, item);
  }
}

static void profile_check_names(struct check *c, const struct yaml_node *node,
                                const struct profile_key *key) {
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (key->words != NULL)
      check_word(c, item, key);
    else if (key->type == PROFILE_VARIABLES && (!is_scalar(item) || !str_is_variable(item->text)))
      profile_check_wrong(c, item, "%s takes names of variables only", key->name);
    else
      check_line(c, item, key);
  }
}

static void check_texts(struct check *c, const struct yaml_node *node,
                        const struct profile_key *key_of_all) {
  const char *name = key_of_all->name;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key, *value = node->pairs[i].value;
    bool files = strcmp(name, "files") == 0;
    if (files && (memchr(key->text.p, '/', key->text.n) != NULL || key->text.p[0] == '.'))
      profile_check_wrong(c, key, "a file's name must not contain / or begin with a dot");
    else if (strcmp(name, "set") == 0 && !str_is_variable(key->text))
      profile_check_wrong(c, key, "this is not a name of a variable");
    if (!is_scalar(value) || value->kind == YAML_NULL)
      profile_check_wrong(c, value, "it must be a text, not %s: write quotes around it",
                          yaml_kind_name(value->kind));
    else
      check_placeholders(c, value);
  }
}

static void check_pointer(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  if (!is_scalar(node) || node->kind == YAML_NULL || !pointer_valid(node->text))
    profile_check_wrong(c, node, "%s must be a JSON Pointer, such as /message/text", key->name);
}

static void check_path(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  bool ok = is_line(node) && node->text.p[0] != '/' && node->text.p[node->text.n - 1] != '/' &&
            node->text.n < LIMIT_NAME_BYTES * 2;
  for (struct str rest = node->text; ok && rest.n > 0;) {
    struct str step = str_cut(&rest, '/');
    ok = step.n > 0 && !str_eq_c(step, "..") && !str_eq_c(step, ".");
  }
  if (!ok)
    profile_check_wrong(c, node, "%s must be a path below the project: no / in front, no .. in it",
                        key->name);
}

static void check_pointers(struct check *c, const struct yaml_node *node,
                           const struct profile_key *key) {
  for (size_t i = 0; i < node->count; i++)
    check_pointer(c, node->items[i], key);
}

static void profile_check_value(struct check *c, const struct yaml_node *node,
                                const struct profile_key *key) {
  if (node->kind == YAML_LIST && node->count > 0)
    check_pointers(c, node, key);
  else if (node->kind == YAML_LIST)
    profile_check_wrong(c, node, "%s must name a place", key->name);
  else if (is_scalar(node) && node->text.n > 0 && node->text.p[0] == '/')
    check_pointer(c, node, key);
  else
    check_line(c, node, key);
}

static void profile_check_regex(struct check *c, const struct yaml_node *node, struct str text) {
  struct pattern *pattern = NULL;
  struct pattern_error error = {0};
  if (!is_scalar(node) || pattern_compile(text.p, text.n, &pattern, &error) != PATTERN_OK)
    profile_check_wrong(c, node, "this is not a regular expression: %s",
                        error.text[0] ? error.text : "it must be a text");
  pattern_free(pattern);
}

static void profile_check_pattern(struct check *c, const struct yaml_node *node,
                                  const struct profile_key *key) {
  (void)key;
  profile_check_regex(c, node, node->text);
}

static void check_matches(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key_of_all) {
  static const struct profile_key place = {.name = "what must stand somewhere"};
  (void)key_of_all;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key, *value = node->pairs[i].value;
    check_pointer(c, key, &place);
    if (value->kind == YAML_MAP)
      profile_check_wrong(c, value, "it must be a value or a list of values");
    else if (value->kind == YAML_TEXT && value->text.n > 1 && value->text.p[0] == '~')
      profile_check_regex(c, value, (struct str){value->text.p + 1, value->text.n - 1});
  }
}

static void check_class(struct check *c, const struct yaml_node *node,
                        const struct profile_key *key) {
  enum error_class class;
  const char *names[CLASS_COUNT];
  (void)key;
  if (is_scalar(node) && error_class_from_name(node->text, &class) && class != CLASS_NONE)
    return;
  size_t n = 0;
  for (int i = CLASS_NONE + 1; i <= CLASS_CANCELLED; i++) /* not the ends that we cause */
    names[n++] = error_class_name((enum error_class)i);
  names[n] = NULL;
  check_word(c, node, &(struct profile_key){.name = "an error class", .words = names});
}

static void check_classes(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  long number;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *word = node->pairs[i].key;
    if (strcmp(key->name, "exits") == 0 &&
        (!str_to_long(word->text, &number) || number < 0 || number > 255))
      profile_check_wrong(c, word, "an exit status is a number from 0 to 255");
    check_class(c, node->pairs[i].value, key);
  }
}

static void check_integer(struct check *c, const struct yaml_node *node,
                          const struct profile_key *key) {
  if (node->kind != YAML_INTEGER || node->integer < key->min || node->integer > key->max)
    profile_check_wrong(c, node, "%s must be an integer from %ld to %ld", key->name, key->min,
                        key->max);
}

static void check_bool(struct check *c, const struct yaml_node *node,
                       const struct profile_key *key) {
  if (node->kind != YAML_BOOL)
    profile_check_wrong(c, node, "%s must be true or false", key->name);
}

static void check_set_of(struct check *c, const struct yaml_node *node,
                         const struct profile_key_set *set, bool required) {
  if (node->kind != YAML_MAP) {
    check_wrong_kind(c, node, set->what, "a map");
    return;
  }
  for (size_t i = 0; i < node->count; i++) {
    struct str name = node->pairs[i].key->text;
    const struct profile_key *key = set->keys;
    const char *names[64] = {NULL};
    for (; key->name != NULL && !str_eq_c(name, key->name); key++)
      names[key - set->keys] = key->name;
    if (key->name != NULL) {
      check_key(c, node->pairs[i].value, key);
      continue;
    }
    profile_check_wrong(c, node->pairs[i].key, "%s has no key \"" STR_FMT "\"%s", set->what,
                        STR_ARG(name), str_hint(name, names).text);
  }
  for (const struct profile_key *k = set->keys; required && k->name != NULL; k++)
    if (k->required && yaml_get(node, k->name) == NULL)
      profile_check_wrong(c, node, "%s needs %s", set->what, k->name);
}

static void check_set(struct check *c, const struct yaml_node *node,
                      const struct profile_key *key) {
  check_set_of(c, node, key->set, true);
}

static void check_set_list(struct check *c, const struct yaml_node *node,
                           const struct profile_key *key) {
  if ((long)node->count > key->max)
    profile_check_wrong(c, node, "%s has too many entries: the limit is %ld", key->name, key->max);
  for (size_t i = 0; i < node->count; i++)
    check_set(c, node->items[i], key);
}

static void profile_check_permission(struct check *c, const struct yaml_node *node,
                                     const struct profile_key *key) {
  if (node->kind == YAML_MAP)
    check_set_of(c, node, &profile_permission_keys, true);
  else
    check_key(c, node, &(struct profile_key){.name = key->name, .type = PROFILE_ARGV});
}

static void check_key(struct check *c, const struct yaml_node *node,
                      const struct profile_key *key) {
  static const struct {
    check_fn *check;
    const char *what; /* "a list of words": the kind that it must have, if it is one of these */
  } types[] = {
      [PROFILE_LINE] = {check_line, NULL},
      [PROFILE_BOOL] = {check_bool, NULL},
      [PROFILE_INTEGER] = {check_integer, NULL},
      [PROFILE_CHOICE] = {check_word, NULL},
      [PROFILE_ARGV] = {check_argv, "a list of words"},
      [PROFILE_NAMES] = {profile_check_names, "a list"},
      [PROFILE_VARIABLES] = {profile_check_names, "a list"},
      [PROFILE_TEXTS] = {check_texts, "a map"},
      [PROFILE_OBJECT] = {NULL, "a map"},
      [PROFILE_POINTER] = {check_pointer, NULL},
      [PROFILE_POINTERS] = {check_pointers, "a list of JSON Pointers"},
      [PROFILE_PATH] = {check_path, NULL},
      [PROFILE_VALUE] = {profile_check_value, NULL},
      [PROFILE_MATCHES] = {check_matches, "a map"},
      [PROFILE_CLASSES] = {check_classes, "a map"},
      [PROFILE_PATTERN] = {profile_check_pattern, NULL},
      [PROFILE_CLASS] = {check_class, NULL},
      [PROFILE_PERMISSION] = {profile_check_permission, NULL},
      [PROFILE_SET] = {check_set, NULL},
      [PROFILE_SET_LIST] = {check_set_list, "a list"},
  };
  const char *what = types[key->type].what;
  if (what != NULL && node->kind != (str_starts(str_from(what), "a map") ? YAML_MAP : YAML_LIST))
    check_wrong_kind(c, node, key->name, what);
  else if (types[key->type].check != NULL)
    types[key->type].check(c, node, key);
}

bool profile_check(const char *file, const struct yaml_node *root, struct err_list *errors) {
  struct check c = {.file = file, .errors = errors, .ok = true};
  check_set_of(&c, root, &profile_keys, false);
  return c.ok;
}

/* --- the JSON Schema --- */

/* Puts a value that was packed: a mistake in its format makes it NULL, and all around it. */
static void profile_schema_put(json_t *object, const char *name, json_t *value) {
  if (json_object_set_new(object, name, value) != 0)
    BUG("the schema cannot be made");
}

static json_t *profile_schema_words_of(const char *const *words) {
  json_t *list = json_array();
  for (; *words; words++)
    json_array_append_new(list, json_string(*words));
  return list;
}

static json_t *class_names(void) {
  json_t *list = json_array();
  for (int i = CLASS_NONE + 1; i <= CLASS_CANCELLED; i++) /* not the ends that we cause */
    json_array_append_new(list, json_string(error_class_name((enum error_class)i)));
  return list;
}

/* Returns the schema of a value that YAML may read as another type than text: 1, true. */
static json_t *scalar(void) {
  return json_pack("{s:[s,s,s,s]}", "type", "string", "number", "boolean", "null");
}

static json_t *argv_schema(void) {
  return json_pack("{s:s, s:{s:[{s:[s,s,s]}, {s:s, s:{s:[s,s,s]}}]}}", "type", "array", "items",
                   "anyOf", "type", "string", "number", "boolean", "type", "array", "items", "type",
                   "string", "number", "boolean");
}

static json_t *profile_schema_reference(const struct profile_key_set *set) {
  return json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", set->id));
}

static json_t *profile_schema_list_of(json_t *items) {
  return json_pack("{s:s, s:o}", "type", "array", "items", items);
}

static json_t *pointer_schema(void) {
  return json_pack("{s:s, s:s}", "type", "string", "pattern", "^(/.*)?$");
}

static json_t *profile_schema_type_of(const struct profile_key *k) {
  switch (k->type) {
  case PROFILE_LINE:
  case PROFILE_PATTERN:
    return json_pack("{s:[s,s], s:i}", "type", "string", "number", "minLength", 1);
  case PROFILE_BOOL:
    return json_pack("{s:s}", "type", "boolean");
  case PROFILE_INTEGER:
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)k->min, "maximum",
                     (json_int_t)k->max);
  case PROFILE_CHOICE:
    return json_pack("{s:o}", "enum", profile_schema_words_of(k->words));
  case PROFILE_ARGV:
    return argv_schema();
  case PROFILE_NAMES:
    if (k->words != NULL)
      return profile_schema_list_of(json_pack("{s:o}", "enum", profile_schema_words_of(k->words)));
    return profile_schema_list_of(json_pack("{s:s, s:i}", "type", "string", "minLength", 1));
  case PROFILE_VARIABLES:
    return profile_schema_list_of(
        json_pack("{s:s, s:s}", "type", "string", "pattern", "^[A-Za-z_][A-Za-z0-9_]*$"));
  case PROFILE_TEXTS:
    return json_pack("{s:s, s:{s:[s,s,s]}}", "type", "object", "additionalProperties", "type",
                     "string", "number", "boolean");
  case PROFILE_POINTER:
    return pointer_schema();
  case PROFILE_OBJECT:
    return json_pack("{s:s}", "type", "object");
  case PROFILE_POINTERS:
    return profile_schema_list_of(pointer_schema());
  case PROFILE_PATH:
    return json_pack("{s:s, s:s}", "type", "string", "pattern",
                     "^(?!/)(?!(.*/)?\\.\\.?(/|$)).*[^/]$");
  case PROFILE_VALUE:
    return json_pack("{s:[{s:[s,s,s]}, {s:s, s:o, s:i}]}", "anyOf", "type", "string", "number",
                     "boolean", "type", "array", "items", pointer_schema(), "minItems", 1);
  case PROFILE_MATCHES:
    return json_pack("{s:s, s:o, s:{s:[o, o]}}", "type", "object", "propertyNames",
                     pointer_schema(), "additionalProperties", "anyOf", scalar(),
                     profile_schema_list_of(scalar()));
  case PROFILE_CLASSES:
    return json_pack("{s:s, s:{s:o}}", "type", "object", "additionalProperties", "enum",
                     class_names());
  case PROFILE_CLASS:
    return json_pack("{s:o}", "enum", class_names());
  case PROFILE_PERMISSION:
    return json_pack("{s:[o, o]}", "anyOf", argv_schema(),
                     profile_schema_reference(&profile_permission_keys));
  case PROFILE_SET:
    return profile_schema_reference(k->set);
  case PROFILE_SET_LIST:
    return json_pack("{s:s, s:o, s:I}", "type", "array", "items", profile_schema_reference(k->set),
                     "maxItems", (json_int_t)k->max);
  }
  BUG("no such type of key: %d", (int)k->type);
}

static void profile_schema_describe(json_t *schema, const struct profile_key_set *set) {
  json_t *properties = json_object(), *required = json_array();
  profile_schema_put(schema, "type", json_string("object"));
  for (const struct profile_key *k = set->keys; k->name != NULL; k++) {
    json_t *type = profile_schema_type_of(k);
    profile_schema_put(type, "description", json_string(k->description));
    profile_schema_put(properties, k->name, type);
    if (k->required && set != &profile_keys)
      json_array_append_new(required, json_string(k->name));
  }
  profile_schema_put(schema, "properties", properties);
  if (json_array_size(required) > 0)
    profile_schema_put(schema, "required", json_incref(required));
  json_decref(required);
  profile_schema_put(schema, "additionalProperties", json_false());
}

json_t *profile_schema(void) {
  json_t *schema = json_object(), *defs = json_object();
  profile_schema_put(schema, "$schema",
                     json_string("https://json-schema.org/draft/2020-12/schema"));
  profile_schema_put(schema, "title", json_string("segue provider profile"));
  profile_schema_put(
      schema, "description",
      json_string("How segue runs an agent's program, and what the program's output means."));
  profile_schema_describe(schema, &profile_keys);
  for (size_t i = 0; profile_key_sets[i] != NULL; i++) {
    json_t *def = json_object();
    profile_schema_describe(def, profile_key_sets[i]);
    profile_schema_put(defs, profile_key_sets[i]->id, def);
  }
  profile_schema_put(schema, "$defs", defs);
  json_t *either = json_pack("[{s:[s,s]}, {s:[s,s]}, {s:[s]}]", "required", "summary", "argv",
                             "required", "summary", "acp", "required", "extends");
  profile_schema_put(schema, "anyOf", either);
  return schema;
}
