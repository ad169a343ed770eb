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
    {"id", PROFILE_VALUE, .description = "Of this use of it."},
    {"state", PROFILE_VALUE, .description = "start or end."},
    {"failed", PROFILE_VALUE, .description = "Where true, or an error, stands after a failure."},
    {"input", PROFILE_VALUE, .description = "Its argument, such as the command; said once."},
    {"output", PROFILE_VALUE, .description = "Its output, in any shape."},
    {"exit", PROFILE_VALUE, .description = "Its exit status, a whole number."},
    {0},
};
static const struct profile_key_set tool_keys = {"a tool", "tool", tool_list};

static const struct profile_key usage_list[] = {
    {"input", PROFILE_VALUE, .description = "Tokens read, those from a cache too; added up."},
    {"output", PROFILE_VALUE, .description = "Tokens written; added up."},
    {"cached", PROFILE_VALUE, .description = "Of the input: tokens from a cache; added up."},
    {"reasoning", PROFILE_VALUE, .description = "Of the output: tokens of reasoning; added up."},
    {"cost", PROFILE_VALUE, .description = "US dollars, where the client knows a real price."},
    {"of", PROFILE_CHOICE, .words = usage_scopes,
     .description = "call (default); request: each event tells of one, and they are added up; or "
                    "conversation: the sum of all its calls so far, of which those before are "
                    "taken away."},
    {0},
};
static const struct profile_key_set usage_keys = {"usage", "usage", usage_list};

static const struct profile_key retry_list[] = {
    {"attempt", PROFILE_VALUE, .description = "Which try failed."},
    {"of", PROFILE_VALUE, .description = "How many the client makes."},
    {"delay_ms", PROFILE_VALUE, .description = "Milliseconds until the next."},
    {"status", PROFILE_VALUE, .description = "HTTP status of the failure."},
    {"reason", PROFILE_VALUE, .description = "What the client says of it."},
    {0},
};
static const struct profile_key_set retry_keys = {"a retry", "retry", retry_list};

static const struct profile_key asked_list[] = {
    {"tool", PROFILE_VALUE, .description = "What it wanted to use."},
    {"answer", PROFILE_VALUE, .description = "denied or allowed."},
    {"message", PROFILE_VALUE, .description = "What was said of it."},
    {0},
};
static const struct profile_key_set asked_keys = {"a permission", "asked", asked_list};

static const struct profile_key error_list[] = {
    {"status", PROFILE_VALUE, .description = "HTTP status."},
    {"kind", PROFILE_VALUE, .description = "Words that `classes` knows; all that are there count."},
    {"message", PROFILE_VALUE, .description = "What a person reads."},
    {"retry_after_ms", PROFILE_VALUE, .description = "When the service wants to be asked again."},
    {"log", PROFILE_VALUE,
     .description = "A word, such as a number of the error: the line of stderr that has it tells "
                    "more, in its key `error` (logfmt) or as a whole."},
    {0},
};
static const struct profile_key_set error_keys = {"an error", "error", error_list};

static const struct profile_key rule_list[] = {
    {"when", PROFILE_MATCHES,
     .description =
         "Fits lines in which all of these stand: a value, a list of values of which one "
         "must stand there, ~PATTERN for a text, * for anything, null for nothing."},
    {"unless", PROFILE_MATCHES, .description = "Does not fit lines in which all of these stand."},
    {"each", PROFILE_POINTER,
     .description = "Look at each item of the array there; pointers below start at the item."},
    {"where", PROFILE_MATCHES, .description = "Only items in which all of these stand."},
    {"session", PROFILE_VALUE, .description = "The client's own id of the conversation."},
    {"delta", PROFILE_VALUE, .description = "A piece of the answer."},
    {"cumulative", PROFILE_VALUE, .description = "The message as far as it has come."},
    {"thinking", PROFILE_VALUE, .description = "A piece of its reasoning."},
    {"message", PROFILE_VALUE, .description = "A whole message; pieces told before count once."},
    {"message_id", PROFILE_VALUE, .description = "Messages of one id are one text."},
    {"tool", PROFILE_SET, .set = &tool_keys, .description = "A tool is used, or was."},
    {"usage", PROFILE_SET, .set = &usage_keys, .description = "Tokens."},
    {"retry", PROFILE_SET, .set = &retry_keys, .description = "The client tries again by itself."},
    {"permission", PROFILE_SET, .set = &asked_keys,
     .description = "It asked whether it may do something."},
    {"error", PROFILE_SET, .set = &error_keys, .description = "What went wrong."},
    {"note", PROFILE_VALUE, .description = "Anything else that an auditor should know."},
    {"text", PROFILE_VALUE, .description = "The final text."},
    {"structured", PROFILE_VALUE, .description = "The value that the client claims to be checked."},
    {"end", PROFILE_CHOICE, .words = ends, .description = "The final event: it went well, or not."},
    {0},
};
static const struct profile_key_set rule_keys = {"an event", "event", rule_list};

static const struct profile_key pattern_list[] = {
    {"match", PROFILE_PATTERN, .required = true,
     .description = "Regular expression for messages of errors and for stderr."},
    {"class", PROFILE_CLASS, .required = true, .description = "What it means."},
    {0},
};
static const struct profile_key_set pattern_keys = {"a pattern", "pattern", pattern_list};

static const struct profile_key stderr_list[] = {
    {"match", PROFILE_PATTERN, .required = true, .description = "Fits a line of stderr."},
    {"is", PROFILE_CHOICE, .required = true, .words = stderr_kinds,
     .description = "What it tells."},
    {"after", PROFILE_LINE,
     .description = "What a person reads begins behind this text; default: the whole line."},
    {0},
};
static const struct profile_key_set stderr_keys = {"a line of stderr", "stderr", stderr_list};

static const struct profile_key switch_list[] = {
    {"by", PROFILE_LINE, .required = true,
     .description = "The variable that switches it: set, and not 0 or false."},
    {"pass", PROFILE_VARIABLES, .required = true, .description = "Passed only then."},
    {0},
};
static const struct profile_key_set switch_keys = {"a switch", "switch", switch_list};

static const struct profile_key env_list[] = {
    {"pass", PROFILE_VARIABLES,
     .description = "Variables that the program gets where they are set. Values that are secrets, "
                    "by their names (KEY, TOKEN, SECRET, PASSWORD ...) or their form, never enter "
                    "a log; those of `set` neither."},
    {"switches", PROFILE_SET_LIST, .set = &switch_keys, .max = 16,
     .description = "Variables that the program gets only where another one is set, too."},
    {"set", PROFILE_TEXTS, .description = "Variables and their values; {placeholders} work."},
    {0},
};
static const struct profile_key_set env_keys = {"env", "env", env_list};

static const struct profile_key permission_list[] = {
    {"readonly", PROFILE_PERMISSION, .description = "It may read."},
    {"edit", PROFILE_PERMISSION, .description = "It may change files in the working directory."},
    {"full", PROFILE_PERMISSION, .description = "It may do anything."},
    {"judge", PROFILE_PERMISSION,
     .description = "Of judges' calls, which need nothing but their prompt (default: readonly)."},
    {0},
};
static const struct profile_key_set mode_keys = {"permission", "modes", permission_list};

static const struct profile_key one_permission_list[] = {
    {"argv", PROFILE_ARGV, .description = "Words that {permission} becomes."},
    {"set", PROFILE_TEXTS, .description = "Variables and their values."},
    {0},
};
const struct profile_key_set profile_permission_keys = {"a permission", "permission",
                                                        one_permission_list};

static const struct profile_key schema_list[] = {
    {"by", PROFILE_CHOICE, .required = true, .words = schema_ways,
     .description =
         "text: {schema} is the JSON Schema; file: {schema_file} is a file with it; none: "
         "it stands at the end of the prompt."},
    {"enforced", PROFILE_CHOICE, .words = enforcements,
     .description = "How the client sees to it: native, tool, grammar."},
    {"dialect", PROFILE_CHOICE, .words = schema_dialects,
     .description = "Which part of JSON Schema it takes: what it lacks is rewritten, and the value "
                    "turned back."},
    {"value", PROFILE_CHOICE, .words = (const char *const[]){"event", "text", NULL},
     .description = "Where the value is: in an event (structured), or the final text itself."},
    {0},
};
static const struct profile_key_set schema_keys = {"schema", "schema", schema_list};

static const struct profile_key version_list[] = {
    {"argv", PROFILE_ARGV, .description = "Words after the program's name; default --version."},
    {"minimum", PROFILE_LINE, .description = "The oldest version that this profile fits."},
    {0},
};
static const struct profile_key_set version_keys = {"version", "version", version_list};

static const struct profile_key login_list[] = {
    {"env", PROFILE_VARIABLES, .description = "One of these being set is enough."},
    {"files", PROFILE_NAMES,
     .description = "One of these being there is enough; it is not read. ~ is the home folder."},
    {"how", PROFILE_LINE, .description = "What to do when there is none."},
    {0},
};
static const struct profile_key_set login_keys = {"login", "login", login_list};

static const struct profile_key gap_list[] = {
    {"readonly", PROFILE_LINE, .description = "Of reading, and running nothing that writes."},
    {"edit", PROFILE_LINE,
     .description = "Of changing files below the working directory, and running what is named."},
    {"full", PROFILE_LINE, .description = "Of doing anything."},
    {0},
};
static const struct profile_key_set gap_keys = {"but", "gaps", gap_list};

static const struct profile_key holds_list[] = {
    {"looks", PROFILE_BOOL, .required = true,
     .description = "Whether it may run programs that only read, where it may run no others."},
    {"run", PROFILE_CHOICE, .required = true, .words = held_runs,
     .description = "With edit: named (those of the movement's run), any, or none."},
    {"served", PROFILE_BOOL,
     .description = "It is a server that segue asks over the machine's network, so it cannot run "
                    "with network: none or api."},
    {"but", PROFILE_SET, .set = &gap_keys,
     .description = "What it does else than these words say, each the end of a sentence on it."},
    {0},
};
static const struct profile_key_set holds_keys = {"holds", "holds", holds_list};
#define HOLDS_KEY                                                                                  \
  {                                                                                                \
    "holds", PROFILE_SET,                                                                          \
        .set = &holds_keys,                                                                        \
        .description = "How it holds the words readonly, edit and full; default: nobody knows."    \
  }

static const struct profile_key native_schema_list[] = {
    {"enforced", PROFILE_CHOICE, .required = true, .words = enforcements,
     .description = "How the client sees to it: native, tool, grammar."},
    {"dialect", PROFILE_CHOICE, .words = schema_dialects,
     .description = "Which part of JSON Schema it takes, as in `schema`."},
    {0},
};
static const struct profile_key_set native_schema_keys = {"a native schema", "native_schema",
                                                          native_schema_list};

static const struct profile_key native_list[] = {
    {"driver", PROFILE_CHOICE, .required = true, .words = native_drivers,
     .description = "Which of segue's drivers speaks it."},
    {"argv", PROFILE_ARGV, .required = true, .description = "Words after the program's name."},
    {"permission", PROFILE_SET, .set = &mode_keys,
     .description = "What it may do unasked, where that differs from a one-shot run."},
    HOLDS_KEY,
    {"schema", PROFILE_SET, .set = &native_schema_keys,
     .description =
         "How its protocol takes a JSON Schema, where that differs from a one-shot run."},
    {0},
};
static const struct profile_key_set native_keys = {"native", "native", native_list};

static const struct profile_key notice_list[] = {
    {"match", PROFILE_PATTERN, .required = true,
     .description = "Fits a piece of text that carries no message id."},
    {"is", PROFILE_CHOICE, .required = true, .words = notice_kinds,
     .description = "retry, note, or error: the run failed, if no answer follows it."},
    {0},
};
static const struct profile_key_set notice_keys = {"a notice", "notice", notice_list};

static const struct profile_key acp_list[] = {
    {"program", PROFILE_LINE, .description = "Another program than the profile's."},
    {"install", PROFILE_LINE, .description = "How to install that one."},
    {"argv", PROFILE_ARGV, .required = true, .description = "Words after the program's name."},
    {"auth", PROFILE_LINE,
     .description = "The id of the method to authenticate with, when it says that it must."},
    {"modes", PROFILE_TEXTS, .description = "Its session modes for readonly, edit and full."},
    {"usage", PROFILE_CHOICE, .words = (const char *const[]){"partial", NULL},
     .description = "partial: the tokens that it tells are those of its last request only."},
    {"permission", PROFILE_SET, .set = &mode_keys,
     .description = "What it may do unasked, where that differs from a one-shot run."},
    HOLDS_KEY,
    {"notices", PROFILE_SET_LIST, .set = &notice_keys, .max = 100,
     .description = "Pieces of text that are the client's own words, not the model's."},
    {"schema", PROFILE_LINE,
     .description = "The name below _meta of session/new where it takes options.outputFormat, a "
                    "JSON Schema; default: the schema stands in the prompt."},
    {"meta", PROFILE_OBJECT, .description = "What _meta of session/new is, beside a schema."},
    {"command", PROFILE_CHOICE, .words = (const char *const[]){"title", NULL},
     .description = "title: the title of a question to run a program is the command line itself, "
                    "where rawInput has none."},
    {"judge_meta", PROFILE_OBJECT, .description = "What is added to it for judges' calls."},
    {0},
};
static const struct profile_key_set acp_keys = {"acp", "acp", acp_list};

static const struct profile_key project_file_list[] = {
    {"path", PROFILE_PATH, .required = true, .description = "Below the working directory."},
    {"above", PROFILE_CHOICE, .words = (const char *const[]){"repository", "root", NULL},
     .description =
         "In every folder above it, too: up to the repository's, or to the root of the "
         "file system. The home folder is never looked at: what is there is the user's."},
    {"transports", PROFILE_NAMES, .words = transports,
     .description = "Which of its transports it steers; default: all."},
    {"allowed", PROFILE_POINTERS,
     .description = "It is JSON and may be there when it sets only what is at these places."},
    {"refused", PROFILE_POINTERS,
     .description = "It is JSON and may be there when it sets nothing at these places."},
    {"refused_variables", PROFILE_PATTERN,
     .description = "It has lines NAME=value and may be there when no name fits this."},
    {"does", PROFILE_LINE, .required = true,
     .description = "What the client would do, as the end of a sentence: run its hooks."},
    {0},
};
static const struct profile_key_set project_file_keys = {"a file of a project", "project_file",
                                                         project_file_list};

static const struct profile_key profile_list[] = {
    {"extends", PROFILE_LINE,
     .description = "Another profile: its keys count where this file does not write its own."},
    {"summary", PROFILE_LINE, .required = true, .description = "One line for people."},
    {"program", PROFILE_LINE,
     .description =
         "The program: a name to be looked up in PATH, or an absolute path. Without it the "
         "user's settings say (providers: {NAME: {program: ...}})."},
    {"argv", PROFILE_ARGV,
     .description = "Words after the program's name. {model}, {session}, {new_session}, {schema}, "
                    "{schema_file}, {prompt_file}, {max_turns}, {tools}, {effort}, {cwd}, {tmpdir} "
                    "are filled in; {permission} and {args} become any number of words. A list "
                    "within is a group: it is left out when one of its placeholders is empty, and "
                    "with {run} stands there for each program that the movement may run; "
                    "{?NAME} in it only asks whether NAME is there ({?judge}: a judge's call; "
                    "{?report}: a report's; "
                    "{?fork}: {session} is another's, go on with a copy)."},
    {"stdin", PROFILE_CHOICE, .words = stdins,
     .description = "prompt (default): the prompt is its standard input."},
    {"prompt_max_chars", PROFILE_INTEGER, .min = 1, .max = LIMIT_PROMPT_BYTES,
     .description = "A longer prompt is refused before the program is started."},
    {"each_run", PROFILE_LINE,
     .description = "What {runs} is, for each program that the movement may run ({run}): where "
                    "variables or files list them."},
    {"env", PROFILE_SET, .set = &env_keys, .description = "Its environment beside the standard."},
    {"files", PROFILE_TEXTS,
     .description = "Files written to {tmpdir} before the start: name to content."},
    {"output", PROFILE_CHOICE, .words = dialects,
     .description = "json-lines (default): a JSON value a line; json: one document; text; acp."},
    {"text", PROFILE_CHOICE, .words = text_ways,
     .description = "The final text, where no event says it: the last message (default) or all."},
    {"ends", PROFILE_CHOICE, .words = end_ways,
     .description = "event: an event says that it is over; exit: none does, which is the default "
                    "where no event has end: ok."},
    {"empty", PROFILE_CLASS,
     .description = "What an answer without text and value is; default: protocol."},
    {"schema", PROFILE_SET, .set = &schema_keys, .description = "How a JSON Schema is enforced."},
    {"permission", PROFILE_SET, .set = &mode_keys, .description = "What it may do unasked."},
    HOLDS_KEY,
    {"chooses_session", PROFILE_BOOL,
     .description = "{new_session} gives a new conversation an id (a UUID) before it starts."},
    {"options", PROFILE_NAMES, .words = option_words,
     .description = "Options that it takes: effort, as {effort}."},
    {"judge_effort", PROFILE_LINE,
     .description = "The effort of judges' calls where the workflow says none."},
    {"max_turns", PROFILE_INTEGER, .min = 1, .max = 100000,
     .description = "What {max_turns} is: tool rounds of one call."},
    {"client_retries", PROFILE_INTEGER, .min = 0, .max = 1000,
     .description = "How often it may try the same request again by itself, as it tells. Told once "
                    "more, and why, it is ended with the class of that: segue's own retries and "
                    "fallbacks take over. Default: as often as it likes."},
    {"max_requests", PROFILE_INTEGER, .min = 1, .max = 1000000,
     .description = "The most requests to the model of one call, where it tells each (usage of: "
                    "request); then it is ended."},
    {"stall_ms", PROFILE_INTEGER, .min = 100, .max = LIMIT_CALL_WALL_MS,
     .description = "Milliseconds without output after which it is ended: class timeout."},
    {"judge_stall_ms", PROFILE_INTEGER, .min = 100, .max = LIMIT_CALL_WALL_MS,
     .description = "The same for judges' calls, which are short."},
    {"state", PROFILE_NAMES,
     .description = "What it keeps of its own between calls and so may write in a sandbox: ~/PATH, "
                    "$VARIABLE/PATH or /PATH; a folder that ends with / is made where it is not "
                    "there."},
    {"hosts", PROFILE_NAMES,
     .description = "The hosts that it asks its model at, and logs in at: NAME, *.NAME, NAME:PORT, "
                    "or $VARIABLE, the host of the URL in it. With network: api it reaches these "
                    "and no others."},
    {"own_sandbox", PROFILE_BOOL,
     .description = "It has a sandbox of its own, which cannot be set within segue's: where segue "
                    "holds it, it is told full and does not set its own."},
    {"version", PROFILE_SET, .set = &version_keys, .description = "How to ask for the version."},
    {"login", PROFILE_SET, .set = &login_keys, .description = "Signs of a key or a login."},
    {"install", PROFILE_LINE, .description = "How to install it."},
    {"transport", PROFILE_CHOICE, .words = transports,
     .description = "What `transport: auto` means (default exec)."},
    {"native", PROFILE_SET, .set = &native_keys, .description = "Its own protocol, as a driver."},
    {"acp", PROFILE_SET, .set = &acp_keys, .description = "The Agent Client Protocol, version 1."},
    {"project_files", PROFILE_SET_LIST, .set = &project_file_keys, .max = 100,
     .description =
         "Files of a project that would steer the client, and that it cannot be told to "
         "leave alone: while one is there, its calls are refused with class auth, unless "
         "the user's settings say trust_project."},
    {"classes", PROFILE_CLASSES,
     .description = "Words that error.kind finds, and HTTP statuses, to error classes."},
    {"exits", PROFILE_CLASSES,
     .description = "Exit statuses to error classes: looked at last, when nothing else is known."},
    {"patterns", PROFILE_SET_LIST, .set = &pattern_keys, .max = 100,
     .description = "Messages and stderr to error classes, in this order."},
    {"stderr", PROFILE_SET_LIST, .set = &stderr_keys, .max = 100,
     .description = "Lines of stderr that tell something."},
    {"events", PROFILE_SET_LIST, .set = &rule_keys, .max = LIMIT_PROFILE_RULE_COUNT,
     .description = "What lines of output mean; every entry that fits counts, in this order."},
    {0},
};
const struct profile_key_set profile_keys = {"a profile", "profile", profile_list};

const struct profile_key_set *const profile_key_sets[] = {
    &env_keys,     &switch_keys,       &schema_keys, &mode_keys,          &profile_permission_keys,
    &version_keys, &login_keys,        &native_keys, &native_schema_keys, &acp_keys,
    &notice_keys,  &pattern_keys,      &stderr_keys, &holds_keys,         &gap_keys,
    &rule_keys,    &tool_keys,         &usage_keys,  &retry_keys,         &asked_keys,
    &error_keys,   &project_file_keys, NULL};
