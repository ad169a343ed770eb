/* segue mcp: lets a client of the Model Context Protocol submit, watch and read sessions. */
#include "cli/capture.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "format/json_write.h"
#include "os/fs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes segue a server of the Model Context Protocol on standard input and output, in both
 * of its eras: up to 2025-11-25 with a handshake, and 2026-07-28 without one
 * (modelcontextprotocol.io, specification).
 *
 * A tool is a command of segue with its words (mcp_tools.c): the same program runs it, so a client
 * sees exactly what a person would. */

enum mcp_place { MCP_WORD, MCP_OPTION, MCP_REPEATED, MCP_FLAG, MCP_INPUT, MCP_FILE };

struct mcp_param {
  const char *name; /* NULL ends the list */
  enum mcp_place place;
  const char *type;   /* string, integer, boolean, object */
  const char *option; /* for MCP_OPTION, MCP_REPEATED, MCP_FLAG, MCP_FILE: without dashes */
  bool required;
  const char *description;
};

struct mcp_tool {
  const char *name; /* NULL ends the table */
  const char *title, *description;
  const char *command[6]; /* its first words */
  bool reads;             /* changes nothing */
  const struct mcp_param *params;
};

extern const struct mcp_tool mcp_tools[];

/* --- the tools --- */

static const struct mcp_param submit_params[] = {
    {"workflow", MCP_WORD, "string", NULL, true, "a file, or the name of a workflow"},
    {"task", MCP_INPUT, "string", NULL, false, "what to do"},
    {"cwd", MCP_OPTION, "string", "--cwd", false, "where agents work"},
    {"provider", MCP_OPTION, "string", "--provider", false, "the backend of all agent movements"},
    {"model", MCP_OPTION, "string", "--model", false, "the model of all agent movements"},
    {0},
};
static const struct mcp_param list_params[] = {
    {"status", MCP_OPTION, "string", "--status", false,
     "running, waiting, stopped, complete, ...; several, separated by commas"},
    {"workflow", MCP_OPTION, "string", "--workflow", false, "sessions of this workflow"},
    {"since", MCP_OPTION, "string", "--since", false, "90m, 12h or 3d ago, or a date"},
    {"number", MCP_OPTION, "integer", "--number", false, "how many to list at most (default 50)"},
    {0},
};
static const struct mcp_param show_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id, a prefix of it, or last"},
    {"movement", MCP_WORD, "string", NULL, false,
     "one judgment in full: the movement's name, or NAME#N for its run N"},
    {"full", MCP_FLAG, "boolean", "--full", false, "do not shorten texts"},
    {0},
};
static const struct mcp_param id_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id, a prefix of it, or last"},
    {0},
};
static const struct mcp_param cancel_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id"},
    {0},
};
static const struct mcp_param watch_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id, a prefix of it, or last"},
    {"seconds", MCP_INPUT, "integer", NULL, false, "how long to wait at most (default 30)"},
    {0},
};
static const struct mcp_param answer_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session that asks"},
    {"movement", MCP_WORD, "string", NULL, false, "which movement, where several ask"},
    {"text", MCP_FILE, "string", "--file", false, "the answer as text"},
    {"choice", MCP_OPTION, "integer", "--choice", false, "the number of one of the choices"},
    {0},
};
static const struct mcp_param judge_params[] = {
    {"text", MCP_INPUT, "string", NULL, true, "the report to judge"},
    {"rules", MCP_REPEATED, "string", "--rule", true,
     "the conditions, in order; the first is rule 1"},
    {"provider", MCP_OPTION, "string", "--provider", false, "who judges"},
    {"model", MCP_OPTION, "string", "--model", false, "the judge's model"},
    {"stages", MCP_OPTION, "string", "--stages", false,
     "the ways to judge: structured_output, phase3_tag, phase1_tag, ai_judge; separated by commas"},
    {0},
};
static const struct mcp_param extract_params[] = {
    {"text", MCP_INPUT, "string", NULL, true, "what a model said"},
    {"schema", MCP_FILE, "object", "--schema", false, "the JSON Schema that the value must pass"},
    {0},
};

const struct mcp_tool mcp_tools[] = {
    {"submit",
     "Start a session",
     "Hands a workflow to segue's daemon, which runs it in the background, even after this client "
     "has exited. Returns the session.",
     {"submit", "--json"},
     false,
     submit_params},
    {"list",
     "List sessions",
     "Lists sessions with their status, newest first, one JSON object per line.",
     {"ls", "--json"},
     true,
     list_params},
    {"show",
     "Read a session",
     "Shows what ran, turn by turn, and why it led where it did; with a movement, one judgment in "
     "full.",
     {"show"},
     true,
     show_params},
    {"watch",
     "Wait for a session",
     "Waits until a session ends or stops, or the time is over, and lists its turns.",
     {"show", "--follow"},
     true,
     watch_params},
    {"answer",
     "Answer a question",
     "Answers a question of a session that is waiting for a person. Pass on only what the person "
     "said.",
     {"answer", "--name", "a client of MCP"}, /* the log must not say that a person answered */
     false,
     answer_params},
    {"cancel",
     "Cancel a session",
     "Ends a session for good.",
     {"cancel", "--json"},
     false,
     cancel_params},
    {"judge",
     "Judge a text",
     "Judges which of the rules holds for a report: by structured output, then by a tag, then by "
     "an AI. Returns the judgment with its method.",
     {"judge", "--json"},
     true,
     judge_params},
    {"extract",
     "Read JSON out of a text",
     "Finds the JSON value in what a model said, repairs it where that is safe, and checks it.",
     {"extract", "--json"},
     true,
     extract_params},
    {"verify",
     "Check a log",
     "Checks whether a session's log is what was written.",
     {"verify", "--json"},
     true,
     id_params},
    {0},
};

/* --- the protocol --- */

/* These are error codes of JSON-RPC 2.0, section 5.1. */
enum { RPC_INVALID_REQUEST = -32600, RPC_NO_METHOD = -32601, RPC_INVALID_PARAMS = -32602 };
enum { MCP_NO_SUCH_VERSION = -32022 }; /* MCP 2026-07-28, UnsupportedProtocolVersionError */
enum { MCP_WATCH_S = 30, MCP_WATCH_MAX_S = 600, MCP_WORDS_MAX = 128, MCP_SESSIONS = 50 };

static const char *const eras[] = {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26",
                                   "2024-11-05"};

/* Returns the version that each request of the era without a handshake carries, NULL for a request
 * of the other era. */
static const json_t *modern_version(const json_t *params) {
  return json_object_get(json_object_get(params, "_meta"),
                         "io.modelcontextprotocol/protocolVersion");
}

static bool is_known_version(const json_t *version) {
  const char *name = json_string_value(version);
  for (size_t i = 0; name != NULL && i < ARRAY_LEN(eras); i++)
    if (strcmp(name, eras[i]) == 0)
      return true;
  return false;
}

static json_t *mcp_result(const json_t *message, json_t *result) {
  if (modern_version(json_object_get(message, "params")) != NULL)
    json_object_set_new(result, "resultType", json_string("complete"));
  return json_pack("{sssOso}", "jsonrpc", "2.0", "id", json_object_get(message, "id"), "result",
                   result);
}

static json_t *mcp_error(const json_t *id, int code, const char *text) {
  return json_pack("{sssOs{siso}}", "jsonrpc", "2.0", "id", id ? id : json_null(), "error", "code",
                   code, "message", json_io_string(text));
}

/* ---- what there is ---- */

static json_t *schema_of(const struct mcp_tool *tool) {
  json_t *properties = json_object(), *required = json_array();
  for (const struct mcp_param *p = tool->params; p->name; p++) {
    json_t *value = NULL;
    if (p->place == MCP_REPEATED)
      value = json_pack("{sss{ss}siss}", "type", "array", "items", "type", p->type, "minItems", 1,
                        "description", p->description);
    else
      value = json_pack("{ssss}", "type", p->type, "description", p->description);
    json_object_set_new(properties, p->name, value);
    if (p->required)
      json_array_append_new(required, json_string(p->name));
  }
  return json_pack("{sssososb}", "type", "object", "properties", properties, "required", required,
                   "additionalProperties", 0);
}

static json_t *tools_list(void) {
  json_t *tools = json_array();
  for (const struct mcp_tool *t = mcp_tools; t->name; t++)
    json_array_append_new(tools, json_pack("{sssssssos{sbsb}}", "name", t->name, "title", t->title,
                                           "description", t->description, "inputSchema",
                                           schema_of(t), "annotations", "readOnlyHint", t->reads,
                                           "openWorldHint", !t->reads));
  return json_pack("{so}", "tools", tools);
}

static json_t *server_info(void) {
  return json_pack("{ssssss}", "name", "segue", "title", "segue", "version", SEGUE_VERSION);
}

static json_t *capabilities(void) {
  return json_pack("{s{}s{}}", "tools", "resources");
}

static json_t *initialize(const json_t *params) {
  const char *asked = cli_text(params, "protocolVersion"), *version = eras[1];
  for (size_t i = 1; i < ARRAY_LEN(eras); i++)
    if (asked != NULL && strcmp(asked, eras[i]) == 0)
      version = eras[i];
  return json_pack("{sssososs}", "protocolVersion", version, "capabilities", capabilities(),
                   "serverInfo", server_info(), "instructions",
                   "segue runs coding agents through workflows and judges each step. submit "
                   "starts a session, watch waits for it, show explains each judgment.");
}

/* ---- a tool is run ---- */

struct mcp_run {
  const char *words[MCP_WORDS_MAX];
  size_t count;
  struct buf input;
  char *kept[MCP_WORDS_MAX]; /* numbers as texts */
  size_t kept_count;
  char file[4096]; /* the file of an MCP_FILE argument; "": none */
  unsigned timeout_s;
};

static void mcp_word(struct mcp_run *run, const char *word) {
  if (run->count + 1 < ARRAY_LEN(run->words))
    run->words[run->count++] = word;
}

/* Returns a string or a number as text, which is kept until the run is over. */
static const char *mcp_text(struct mcp_run *run, const json_t *value) {
  if (json_is_string(value))
    return json_string_value(value);
  if (run->kept_count == ARRAY_LEN(run->kept))
    return "";
  char *text = json_dump_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
  run->kept[run->kept_count++] = text;
  return text ? text : "";
}

static bool mcp_file(struct mcp_run *run, const struct mcp_param *p, const json_t *value,
                     struct err *err) {
  const char *text = mcp_text(run, value), *folder = getenv("TMPDIR");
  if (snprintf(run->file, sizeof run->file, "%s/segue-mcp-XXXXXX", folder ? folder : "/tmp") >=
      (int)sizeof run->file) {
    run->file[0] = '\0';
    return err_set(err, ERR_IO, "TMPDIR is too long");
  }
  int fd = mkstemp(run->file);
  size_t n = strlen(text);
  if (fd < 0 || write(fd, text, n) != (ssize_t)n) {
    if (fd >= 0)
      close(fd);
    return err_set(err, ERR_IO, "cannot keep %s", p->name);
  }
  close(fd);
  mcp_word(run, p->option);
  mcp_word(run, run->file);
  return true;
}

static bool is_of_type(const json_t *value, const struct mcp_param *p) {
  if (p->place == MCP_REPEATED)
    return json_is_array(value);
  if (strcmp(p->type, "string") == 0)
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
  if (strcmp(p->type, "integer") == 0)
    return json_is_integer(value);
  return strcmp(p->type, "boolean") == 0 ? json_is_boolean(value) : json_is_object(value);
}

static bool mcp_place(struct mcp_run *run, const struct mcp_param *p, const json_t *value,
                      struct err *err) {
  size_t i;
  const json_t *item;
  switch (p->place) {
  case MCP_WORD: /* goes after "--", and options come before that: see mcp_words */
    return true;
  case MCP_OPTION:
    mcp_word(run, p->option);
    mcp_word(run, mcp_text(run, value));
    return true;
  case MCP_REPEATED:
    json_array_foreach(value, i, item) {
      if (!json_is_string(item))
        return err_set(err, ERR_USAGE, "%s must be texts", p->name);
      mcp_word(run, p->option);
      mcp_word(run, json_string_value(item));
    }
    return run->count + 2 < ARRAY_LEN(run->words) ||
           err_set(err, ERR_USAGE, "%s are too many", p->name);
  case MCP_FLAG:
    if (json_is_true(value))
      mcp_word(run, p->option);
    return true;
  case MCP_INPUT:
    if (json_is_string(value))
      buf_append(&run->input, json_string_value(value), json_string_length(value));
    else
      run->timeout_s = (unsigned)json_integer_value(value);
    return true;
  case MCP_FILE:
    return mcp_file(run, p, value, err);
  }
  BUG("a place that does not exist");
}

static const struct mcp_param *mcp_param(const struct mcp_tool *tool, const char *name) {
  for (const struct mcp_param *p = tool->params; p->name; p++)
    if (strcmp(p->name, name) == 0)
      return p;
  return NULL;
}

/* Builds the words of the command: options, then "--", then the rest, so that no text of a model is
 * read as an option. */
static bool mcp_words(struct mcp_run *run, const struct mcp_tool *tool, const json_t *arguments,
                      struct err *err) {
  const char *name;
  const json_t *value;
  for (size_t i = 0; tool->command[i]; i++)
    mcp_word(run, tool->command[i]);
  json_object_foreach((json_t *)(size_t)arguments, name, value) {
    const struct mcp_param *p = mcp_param(tool, name);
    if (p == NULL)
      return err_set(err, ERR_USAGE, "%s has no argument \"%.60s\"", tool->name, name);
    if (!is_of_type(value, p))
      return err_set(err, ERR_USAGE, "%s must be of type %s", name,
                     p->place == MCP_REPEATED ? "array" : p->type);
    if (!mcp_place(run, p, value, err))
      return false;
  }
  bool takes_task = strcmp(tool->name, "submit") == 0 && json_object_get(arguments, "task");
  if (takes_task) {
    mcp_word(run, "--task-file");
    mcp_word(run, "-");
  }
  mcp_word(run, "--");
  for (const struct mcp_param *p = tool->params; p->name; p++) {
    value = json_object_get(arguments, p->name);
    if (p->required && value == NULL)
      return err_set(err, ERR_USAGE, "%s needs %s", tool->name, p->name);
    if (p->place == MCP_WORD && value != NULL)
      mcp_word(run, json_string_value(value));
  }
  return true;
}

static json_t *text_result(struct str text, bool failed) {
  buf_auto_t safe = {0};
  buf_safe(&safe, text, true);
  json_t *result = json_pack("{s[{ssss%}]sb}", "content", "type", "text", "text", buf_c(&safe),
                             safe.n, "isError", failed);
  return result;
}

/* Returns what the program printed, and after a failure its errors too. A single JSON object is
 * also returned as such. */
static json_t *told_result(const struct program *p) {
  buf_auto_t text = {0};
  bool failed = p->status != 0 && !p->timed_out;
  buf_append(&text, p->out.p, p->out.n);
  if (failed || p->out.n == 0)
    buf_append(&text, p->errors.p, p->errors.n);
  if (p->timed_out)
    buf_puts(&text, "(it is still running: call watch again)\n");
  if (p->cut)
    buf_puts(&text, "(there is more)\n");
  if (text.n == 0)
    buf_puts(&text, "(nothing)\n");
  json_t *result = text_result(buf_view(&text), failed);
  json_t *value =
      failed || p->out.n == 0 ? NULL : json_loadb(buf_view(&p->out).p, p->out.n, 0, NULL);
  if (json_is_object(value))
    json_object_set(result, "structuredContent", value);
  json_decref(value);
  return result;
}

/* Runs segue with these words. Returns NULL if it could not be run. */
static json_t *run_segue(struct mcp_run *run, json_t *(*tell)(const struct program *),
                         struct err *err) {
  char program[4096], *argv[MCP_WORDS_MAX + 2];
  if (!fs_own_program(program, sizeof program))
    return err_set(err, ERR_IO, "segue cannot find its own program"), NULL;
  argv[0] = program;
  for (size_t i = 0; i < run->count; i++)
    argv[i + 1] = (char *)(size_t)run->words[i];
  argv[run->count + 1] = NULL;
  struct program p = {.argv = argv, .input = buf_view(&run->input), .timeout_s = run->timeout_s};
  json_t *result = program_run(&p, err) ? tell(&p) : NULL;
  buf_deinit(&p.out);
  buf_deinit(&p.errors);
  return result;
}

static void run_deinit(struct mcp_run *run) {
  if (run->file[0] != '\0')
    (void)unlink(run->file);
  for (size_t i = 0; i < run->kept_count; i++)
    free(run->kept[i]);
  buf_deinit(&run->input);
}

static json_t *tools_call(const json_t *message) {
  const json_t *params = json_object_get(message, "params");
  const char *name = cli_text(params, "name");
  const struct mcp_tool *tool = mcp_tools;
  struct err err = {0};
  while (tool->name && (name == NULL || strcmp(tool->name, name) != 0))
    tool++;
  if (tool->name == NULL)
    return mcp_error(json_object_get(message, "id"), RPC_INVALID_PARAMS, "there is no such tool");
  struct mcp_run run = {0};
  bool watches = strcmp(tool->name, "watch") == 0;
  bool ok = mcp_words(&run, tool, json_object_get(params, "arguments"), &err);
  if (watches && (run.timeout_s < 1 || run.timeout_s > MCP_WATCH_MAX_S))
    run.timeout_s = MCP_WATCH_S;
  json_t *result = ok ? run_segue(&run, told_result, &err) : NULL;
  run_deinit(&run);
  return mcp_result(message, result ? result : text_result(str_from(err.text), true));
}

/* ---- logs as resources ---- */

#define MCP_SCHEME "segue://session/"

static json_t *sessions_told(const struct program *p) {
  json_t *resources = json_array();
  struct str rest = buf_view(&p->out);
  while (rest.n > 0) {
    struct str line = str_next_line(&rest);
    json_auto_t *session = json_loadb(line.p, line.n, 0, NULL);
    const char *id = cli_text(session, "id"), *status = cli_text(session, "status");
    char uri[100];
    if (id != NULL && strlen(id) < 40) {
      print_into(uri, sizeof uri, MCP_SCHEME "%s", id);
      json_array_append_new(resources,
                            json_pack("{ssssss*ss}", "uri", uri, "name", id, "description", status,
                                      "mimeType", "application/x-ndjson"));
    }
  }
  return json_pack("{so}", "resources", resources);
}

static json_t *records_told(const struct program *p) {
  buf_auto_t safe = {0};
  if (p->status != 0)
    return NULL;
  buf_safe(&safe, buf_view(&p->out), true);
  json_t *result = json_pack("{s[{ssssss%}]}", "contents", "uri", "", "mimeType",
                             "application/x-ndjson", "text", buf_c(&safe), safe.n);
  return result;
}

static json_t *resources_read(const json_t *message) {
  const json_t *params = json_object_get(message, "params"), *id = json_object_get(message, "id");
  const char *uri = cli_text(params, "uri");
  struct err err;
  if (uri == NULL || strncmp(uri, MCP_SCHEME, strlen(MCP_SCHEME)) != 0)
    return mcp_error(id, RPC_INVALID_PARAMS, "the address of a log is " MCP_SCHEME "ID");
  struct mcp_run run = {.words = {"show", "--json", "--", uri + strlen(MCP_SCHEME)}, .count = 4};
  json_t *result = run_segue(&run, records_told, &err);
  run_deinit(&run);
  if (result == NULL)
    return mcp_error(id, RPC_INVALID_PARAMS, "there is no such session");
  json_object_set_new(json_array_get(json_object_get(result, "contents"), 0), "uri",
                      json_io_string(uri));
  return mcp_result(message, result);
}

/* Returns the answer to one message as a new reference; NULL for a notification, which has none. */
static json_t *mcp_answer(const json_t *message) {
  const json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
  const char *method = cli_text(message, "method");
  if (method == NULL && json_is_object(message) && id != NULL &&
      (json_object_get(message, "result") || json_object_get(message, "error")))
    return NULL; /* it answers nothing that we asked */
  if (method == NULL)
    return mcp_error(id, RPC_INVALID_REQUEST, "a message must have a method");
  if (id == NULL)
    return NULL;
  const json_t *version = modern_version(params);
  if (version != NULL && !is_known_version(version)) {
    /* The answer names the versions that are known: the client takes one of them. */
    json_t *answer =
        mcp_error(id, MCP_NO_SUCH_VERSION, "this version of the protocol is not supported");
    const char *asked = json_string_value(version);
    json_object_set_new(json_object_get(answer, "error"), "data",
                        json_pack("{s[ss]so}", "supported", eras[0], eras[1], "requested",
                                  json_io_string(asked ? asked : "")));
    return answer;
  }
  if (strcmp(method, "server/discover") == 0)
    return mcp_result(message, json_pack("{s[ss]sososiss}", "supportedVersions", eras[0], eras[1],
                                         "capabilities", capabilities(), "serverInfo",
                                         server_info(), "ttlMs", 0, "cacheScope", "private"));
  if (strcmp(method, "initialize") == 0)
    return mcp_result(message, initialize(params));
  if (strcmp(method, "ping") == 0)
    return mcp_result(message, json_object());
  if (strcmp(method, "tools/list") == 0)
    return mcp_result(message, tools_list());
  if (strcmp(method, "tools/call") == 0)
    return tools_call(message);
  if (strcmp(method, "resources/list") == 0) {
    struct mcp_run run = {.words = {"ls", "--json"}, .count = 2};
    struct err err;
    json_t *result = run_segue(&run, sessions_told, &err);
    run_deinit(&run);
    return mcp_result(message, result ? result : json_pack("{s[]}", "resources"));
  }
  if (strcmp(method, "resources/templates/list") == 0)
    return mcp_result(message, json_pack("{s[{ssssssss}]}", "resourceTemplates", "uriTemplate",
                                         MCP_SCHEME "{id}", "name", "session log", "description",
                                         "every record of a session, one JSON object per line",
                                         "mimeType", "application/x-ndjson"));
  if (strcmp(method, "resources/read") == 0)
    return resources_read(message);
  return mcp_error(id, RPC_NO_METHOD, "there is no such method");
}

/* --- the command --- */

enum { MCP_LINE_BYTES = 16 * 1024 * 1024, MCP_CALLS_MAX = 16 };

/* A watch may wait for minutes while the client asks other things, so calls run in threads. */
static pthread_mutex_t mcp_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mcp_ended = PTHREAD_COND_INITIALIZER;
static unsigned mcp_open_calls;

static void send_answer(json_t *answer) {
  char_auto_t *text = answer ? json_dump_text(answer, JSON_COMPACT) : NULL;
  (void)pthread_mutex_lock(&mcp_lock);
  if (text != NULL) {
    puts(text);
    (void)fflush(stdout);
  }
  (void)pthread_mutex_unlock(&mcp_lock);
  json_decref(answer);
}

static void *call_thread(void *given) {
  json_auto_t *message = given;
  send_answer(mcp_answer(message));
  (void)pthread_mutex_lock(&mcp_lock);
  mcp_open_calls--;
  (void)pthread_cond_signal(&mcp_ended);
  (void)pthread_mutex_unlock(&mcp_lock);
  return NULL;
}

static void wait_for_calls(unsigned most) {
  (void)pthread_mutex_lock(&mcp_lock);
  while (mcp_open_calls > most)
    (void)pthread_cond_wait(&mcp_ended, &mcp_lock);
  (void)pthread_mutex_unlock(&mcp_lock);
}

/* Answers a message in a thread of its own. Takes the reference. */
static void answer_beside(json_t *message) {
  pthread_t thread;
  wait_for_calls(MCP_CALLS_MAX - 1);
  (void)pthread_mutex_lock(&mcp_lock);
  mcp_open_calls++;
  (void)pthread_mutex_unlock(&mcp_lock);
  if (pthread_create(&thread, NULL, call_thread, message) == 0)
    (void)pthread_detach(thread);
  else
    (void)call_thread(message);
}

/* Answers with a parse error (JSON-RPC 2.0, section 5.1), which belongs to no known request. */
static void send_unreadable(const char *why) {
  send_answer(
      json_pack("{sssns{siss}}", "jsonrpc", "2.0", "id", "error", "code", -32700, "message", why));
}

/* Takes a line. It may hold half a character, as texts cut by UTF-16 units do: JSON.stringify
 * writes it. */
static void mcp_take_line(const char *line, size_t n) {
  struct err err;
  json_t *message = json_io_parse("line", str_trim((struct str){line, n}), &err);
  if (message == NULL) {
    send_unreadable("this line is not JSON");
    return;
  }
  const char *method = cli_text(message, "method");
  bool runs =
      method && (strcmp(method, "tools/call") == 0 || strstr(method, "resources/") == method);
  if (runs) {
    answer_beside(message);
    return;
  }
  send_answer(mcp_answer(message));
  json_decref(message);
}

static int mcp_run(const struct cli_args *args) {
  (void)args;
  char_auto_t *line = NULL;
  size_t room = 0;
  ssize_t n;
  while ((n = getline(&line, &room, stdin)) >= 0) {
    if (n > MCP_LINE_BYTES)
      send_unreadable("this line is longer than 16 MiB");
    else if (str_trim((struct str){line, (size_t)n}).n > 0)
      mcp_take_line(line, (size_t)n);
  }
  wait_for_calls(0);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_mcp = {
    .name = "mcp",
    .arguments = "",
    .summary = "serve the Model Context Protocol on standard input and output",
    .help = "Lets agents drive workflows: its tools are submit, list, show, watch, answer, "
            "cancel, judge, extract and verify; session logs are resources.\n"
            "\n"
            "  claude mcp add segue -- segue mcp\n"
            "  codex mcp add segue -- segue mcp\n"
            "Sessions are submitted to this user's daemon (segue serve), and continue when the "
            "client exits.",
    .run = mcp_run,
};
