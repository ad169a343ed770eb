/* segue mcp: lets a client of the Model Context Protocol submit, watch and read sessions. */
#include "base/resource.h"
#include "cli/capture.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "daemon/socket.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/config.h"
#include "host/paths.h"
#include "os/fs.h"
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes segue a server of the Model Context Protocol on standard input and output, in both
 * of its eras: up to 2025-11-25 with a handshake, and 2026-07-28 without one
 * (modelcontextprotocol.io, specification).
 *
 * A tool is a command of segue with its words: the same program runs it, so a client sees exactly
 * what a person would. cli/mcp_tools.json is the list of them as clients get it, with the words of
 * each command, and of each parameter where it goes: a word, the value of an option (repeated for
 * each item; a flag has none), the input, or a file that an option names. An answer has a name,
 * because the log must not say that a person answered. */

/* --- the protocol --- */

/* These are error codes of JSON-RPC 2.0, section 5.1. */
enum { RPC_INVALID_REQUEST = -32600, RPC_NO_METHOD = -32601, RPC_INVALID_PARAMS = -32602 };
enum { MCP_NO_SUCH_VERSION = -32022 }; /* MCP 2026-07-28, UnsupportedProtocolVersionError */
enum { MCP_WATCH_S = 30, MCP_WATCH_MAX_S = 600, MCP_WORDS_MAX = 128, MCP_SESSIONS = 50 };
enum { MCP_TOOLS_MS = 3600000 };

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

static json_t *server_info(void) {
  return json_pack("{ssssss}", "name", "segue", "title", "segue", "version", SEGUE_VERSION);
}

/* Says what the era without a handshake requires: of each result who gave it, of what can be kept
 * how long. Only the list of tools stays the same while this program runs. */
static void mcp_complete(const char *method, json_t *result) {
  bool kept = str_is_one(str_from(method),
                         (const char *const[]){"server/discover", "tools/list", "resources/list",
                                               "resources/templates/list", "resources/read", NULL});
  bool stays = strcmp(method, "tools/list") == 0;
  json_object_set_new(result, "resultType", json_string("complete"));
  json_object_set_new(result, "_meta",
                      json_pack("{so}", "io.modelcontextprotocol/serverInfo", server_info()));
  if (kept) {
    json_object_set_new(result, "ttlMs", json_integer(stays ? MCP_TOOLS_MS : 0));
    json_object_set_new(result, "cacheScope", json_string(stays ? "public" : "private"));
  }
}

static json_t *mcp_result(const json_t *message, json_t *result) {
  if (modern_version(json_object_get(message, "params")) != NULL)
    mcp_complete(cli_text(message, "method"), result);
  return json_pack("{sssOso}", "jsonrpc", "2.0", "id", json_object_get(message, "id"), "result",
                   result);
}

static json_t *mcp_error(const json_t *id, int code, const char *text) {
  return json_pack("{sssOs{siso}}", "jsonrpc", "2.0", "id", id ? id : json_null(), "error", "code",
                   code, "message", json_io_string(text));
}

/* ---- what there is ---- */

/* Returns the tools as in their file. */
static json_t *mcp_tools(void) {
  const struct resource *r = resource_find("cli/mcp_tools.json");
  json_t *tools = json_loadb(r->p, r->n, 0, NULL);
  if (tools == NULL)
    BUG("the list of tools cannot be read");
  return tools;
}

static json_t *mcp_properties(const json_t *tool) {
  return json_object_get(json_object_get(tool, "inputSchema"), "properties");
}

static json_t *tools_list(void) {
  json_t *tools = mcp_tools();
  JSON_EACH(tools, i, tool) {
    json_object_del(tool, "command");
    JSON_MEMBERS(mcp_properties(tool), name, param) {
      json_object_del(param, "at");
      json_object_del(param, "option");
    }
  }
  return json_pack("{so}", "tools", tools);
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

/* ---- where sessions are ---- */

/* A client hands on HOME and PATH only: without a word of where sessions are, they are where the
 * daemon that was noted has them. */
static void mcp_follow_daemon(void) {
  char path[SOCKET_PATH_BYTES], logs[PATHS_BYTES], found[SOCKET_PATH_BYTES];
  struct err ignored;
  bool chosen =
      getenv("SEGUE_LOGS") != NULL || getenv("XDG_STATE_HOME") != NULL || config_store()[0] != '\0';
  if (!chosen && socket_noted(path, logs) && socket_find(NULL, found, &ignored) &&
      strcmp(path, found) == 0 && socket_may_ask(path, &ignored))
    (void)setenv("SEGUE_LOGS", logs, 1);
}

/* ---- a tool is run ---- */

struct mcp_run {
  const char *words[MCP_WORDS_MAX];
  size_t count;
  struct buf input;
  char *kept[MCP_WORDS_MAX]; /* numbers as texts */
  size_t kept_count;
  char file[4096]; /* the file of an argument; "": none */
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

static bool mcp_file(struct mcp_run *run, const char *name, const char *option, const json_t *value,
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
    return err_set(err, ERR_IO, "cannot keep %s", name);
  }
  close(fd);
  mcp_word(run, option);
  mcp_word(run, run->file);
  return true;
}

static bool is_of_type(const json_t *value, const char *type) {
  if (strcmp(type, "array") == 0)
    return json_is_array(value);
  if (strcmp(type, "string") == 0)
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
  if (strcmp(type, "integer") == 0)
    return json_is_integer(value);
  return strcmp(type, "boolean") == 0 ? json_is_boolean(value) : json_is_object(value);
}

/* Places an argument, except a word: it goes after "--", see mcp_words. */
static bool mcp_place(struct mcp_run *run, const char *name, const json_t *param,
                      const json_t *value, struct err *err) {
  const char *option = cli_text(param, "option");
  struct str at = json_view_at(param, "at");
  if (str_eq_c(at, "file"))
    return mcp_file(run, name, option, value, err);
  if (str_eq_c(at, "option")) {
    mcp_word(run, option);
    mcp_word(run, mcp_text(run, value));
  } else if (str_eq_c(at, "flag") && json_is_true(value)) {
    mcp_word(run, option);
  } else if (str_eq_c(at, "input") && json_is_string(value)) {
    buf_append(&run->input, json_string_value(value), json_string_length(value));
  } else if (str_eq_c(at, "input")) {
    run->timeout_s = (unsigned)json_integer_value(value);
  } else if (str_eq_c(at, "repeated")) {
    JSON_EACH(value, i, item) {
      if (!json_is_string(item))
        return err_set(err, ERR_USAGE, "%s must be texts", name);
      mcp_word(run, option);
      mcp_word(run, json_string_value(item));
    }
    return run->count + 2 < ARRAY_LEN(run->words) ||
           err_set(err, ERR_USAGE, "%s are too many", name);
  }
  return true;
}

/* Builds the words of the command: options, then "--", then the rest, so that no text of a model is
 * read as an option. */
static bool mcp_words(struct mcp_run *run, const json_t *tool, const json_t *arguments,
                      struct err *err) {
  const char *name, *tool_name = cli_text(tool, "name");
  const json_t *value, *param;
  size_t i;
  json_array_foreach(json_object_get(tool, "command"), i, value)
    mcp_word(run, json_string_value(value));
  json_object_foreach((json_t *)(size_t)arguments, name, value) {
    param = json_object_get(mcp_properties(tool), name);
    if (param == NULL)
      return err_set(err, ERR_USAGE, "%s has no argument \"%.60s\"", tool_name, name);
    if (!is_of_type(value, cli_text(param, "type")))
      return err_set(err, ERR_USAGE, "%s must be of type %s", name, cli_text(param, "type"));
    if (!mcp_place(run, name, param, value, err))
      return false;
  }
  bool takes_task = strcmp(tool_name, "submit") == 0 && json_object_get(arguments, "task");
  if (takes_task) {
    mcp_word(run, "--task-file");
    mcp_word(run, "-");
  }
  mcp_word(run, "--");
  json_array_foreach(json_object_get(json_object_get(tool, "inputSchema"), "required"), i, value)
    if (json_object_get(arguments, json_string_value(value)) == NULL)
      return err_set(err, ERR_USAGE, "%s needs %s", tool_name, json_string_value(value));
  json_object_foreach(mcp_properties(tool), name, param) {
    value = json_object_get(arguments, name);
    if (value != NULL && str_eq_c(json_view_at(param, "at"), "word"))
      mcp_word(run, json_string_value(value));
  }
  return true;
}

static json_t *text_result(struct str text, bool failed) {
  buf_auto_t safe = {0};
  buf_safe(&safe, text, true);
  return json_pack("{s[{ssss%}]sb}", "content", "type", "text", "text", buf_c(&safe), safe.n,
                   "isError", failed);
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

/* Says of an empty list where it looked. */
static json_t *listed_result(const struct program *p) {
  char where[PATHS_BYTES];
  struct err ignored;
  buf_auto_t text = {0};
  if (p->status != 0 || p->out.n > 0 || !paths_logs(NULL, where, &ignored))
    return told_result(p);
  buf_printf(&text, "no session fits in %s (SEGUE_LOGS in this server's env names another place)\n",
             store_is_address(where) ? "the shared store" : where);
  return text_result(buf_view(&text), false);
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
  json_auto_t *tools = mcp_tools();
  const json_t *tool = NULL;
  struct err err = {0};
  size_t i;
  json_array_foreach(tools, i, tool)
    if (name != NULL && strcmp(cli_text(tool, "name"), name) == 0)
      break;
  if (i == json_array_size(tools))
    return mcp_error(json_object_get(message, "id"), RPC_INVALID_PARAMS, "there is no such tool");
  AUTO(run_deinit) struct mcp_run run = {0};
  bool watches = strcmp(name, "watch") == 0;
  bool ok = mcp_words(&run, tool, json_object_get(params, "arguments"), &err);
  if (watches && (run.timeout_s < 1 || run.timeout_s > MCP_WATCH_MAX_S))
    run.timeout_s = MCP_WATCH_S;
  bool lists = strcmp(name, "list") == 0;
  json_t *result = NULL;
  if (ok)
    result = run_segue(&run, lists ? listed_result : told_result, &err);
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
  return json_pack("{s[{ssssss%}]}", "contents", "uri", "", "mimeType", "application/x-ndjson",
                   "text", buf_c(&safe), safe.n);
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
    return mcp_result(message,
                      json_pack("{s[ss]soso}", "supportedVersions", eras[0], eras[1],
                                "capabilities", capabilities(), "serverInfo", server_info()));
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
  mcp_follow_daemon();
  while ((n = getline(&line, &room, stdin)) >= 0) {
    if (n > MCP_LINE_BYTES)
      send_unreadable("this line is longer than 16 MiB");
    else if (str_trim((struct str){line, (size_t)n}).n > 0)
      mcp_take_line(line, (size_t)n);
  }
  wait_for_calls(0);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_mcp = {COMMAND_MCP, .run = mcp_run};
