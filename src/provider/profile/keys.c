/* Holds the table of the keys of a profile. */
#include "provider/profile/keys.h"

#include "base/limits.h"

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
static const char *const usage_scopes[] = {"call", "request", "conversation", NULL};
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
    {"of", PROFILE_CHOICE, .words = usage_scopes,
     .description = "What the numbers cover. call (default). request: each event reports one "
                    "request, and they are added up. conversation: the total of all calls of the "
                    "conversation so far, from which the earlier ones are subtracted."},
    {0},
};
static const struct profile_key_set usage_keys = {"usage", "usage", usage_list};

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
const struct profile_key_set profile_permission_keys = {"a permission", "permission",
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
static const struct profile_key_set notice_keys = {"a notice", "notice", notice_list};

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
    {"notices", PROFILE_SET_LIST, .set = &notice_keys, .max = 100,
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
const struct profile_key_set profile_keys = {"a profile", "profile", profile_list};

const struct profile_key_set *const profile_key_sets[] = {
    &env_keys,     &switch_keys,       &schema_keys, &mode_keys,          &profile_permission_keys,
    &version_keys, &login_keys,        &native_keys, &native_schema_keys, &acp_keys,
    &notice_keys,  &pattern_keys,      &stderr_keys, &holds_keys,         &gap_keys,
    &rule_keys,    &tool_keys,         &usage_keys,  &retry_keys,         &asked_keys,
    &error_keys,   &project_file_keys, NULL};
