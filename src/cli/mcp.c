/* Answers messages of the Model Context Protocol. */
#include "cli/mcp.h"

#include "base/log.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/program.h"
#include "format/json_write.h"
#include "os/fs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static json_t *discover(void) {
  return json_pack("{s[ss]sososiss}", "supportedVersions", eras[0], eras[1], "capabilities",
                   capabilities(), "serverInfo", server_info(), "ttlMs", 0, "cacheScope",
                   "private");
}

/* Refuses a version that is not known, and names those that are: the client takes one of them. */
static json_t *version_refused(const json_t *id, const json_t *version) {
  json_t *answer =
      mcp_error(id, MCP_NO_SUCH_VERSION, "this version of the protocol is not supported");
  const char *asked = json_string_value(version);
  json_object_set_new(json_object_get(answer, "error"), "data",
                      json_pack("{s[ss]so}", "supported", eras[0], eras[1], "requested",
                                json_io_string(asked ? asked : "")));
  return answer;
}

static json_t *initialize(const json_t *params) {
  const char *asked = json_string_value(json_object_get(params, "protocolVersion"));
  const char *version = eras[1];
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
  struct buf safe = {0};
  buf_safe(&safe, text, true);
  json_t *result = json_pack("{s[{ssss%}]sb}", "content", "type", "text", "text", buf_c(&safe),
                             safe.n, "isError", failed);
  buf_deinit(&safe);
  return result;
}

/* Returns what the program printed, and after a failure its errors too. A single JSON object is
 * also returned as such. */
static json_t *told_result(const struct program *p) {
  struct buf text = {0};
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
  buf_deinit(&text);
  return result;
}

/* Runs segue with these words. Returns NULL if it could not be run. */
static json_t *run_segue(struct mcp_run *run, json_t *(*tell)(const struct program *),
                         struct err *err) {
  char program[4096];
  char *argv[MCP_WORDS_MAX + 2];
  if (!fs_own_program(program, sizeof program))
    return (void)err_set(err, ERR_IO, "segue cannot find its own program"), NULL;
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
  const char *name = json_string_value(json_object_get(params, "name"));
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
    const char *end = memchr(rest.p, '\n', rest.n);
    size_t n = end ? (size_t)(end - rest.p) : rest.n;
    json_t *session = json_loadb(rest.p, n, 0, NULL);
    const char *id = json_string_value(json_object_get(session, "id"));
    const char *status = json_string_value(json_object_get(session, "status"));
    char uri[100];
    if (id != NULL && strlen(id) < 40) {
      (void)snprintf(uri, sizeof uri, MCP_SCHEME "%s", id);
      json_array_append_new(resources,
                            json_pack("{ssssss*ss}", "uri", uri, "name", id, "description", status,
                                      "mimeType", "application/x-ndjson"));
    }
    json_decref(session);
    n += end != NULL;
    rest.p += n;
    rest.n -= n;
  }
  return json_pack("{so}", "resources", resources);
}

static json_t *resources_list(const json_t *message) {
  struct mcp_run run = {.words = {"ls", "--json"}, .count = 2};
  struct err err;
  json_t *result = run_segue(&run, sessions_told, &err);
  run_deinit(&run);
  return mcp_result(message, result ? result : json_pack("{s[]}", "resources"));
}

static json_t *records_told(const struct program *p) {
  struct buf safe = {0};
  if (p->status != 0)
    return NULL;
  buf_safe(&safe, buf_view(&p->out), true);
  json_t *result = json_pack("{s[{ssssss%}]}", "contents", "uri", "", "mimeType",
                             "application/x-ndjson", "text", buf_c(&safe), safe.n);
  buf_deinit(&safe);
  return result;
}

static json_t *resources_read(const json_t *message) {
  const json_t *params = json_object_get(message, "params"), *id = json_object_get(message, "id");
  const char *uri = json_string_value(json_object_get(params, "uri"));
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

static json_t *templates_list(void) {
  return json_pack("{s[{ssssssss}]}", "resourceTemplates", "uriTemplate", MCP_SCHEME "{id}", "name",
                   "session log", "description",
                   "every record of a session, one JSON object per line", "mimeType",
                   "application/x-ndjson");
}

json_t *mcp_answer(const json_t *message) {
  const json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
  const char *method = json_string_value(json_object_get(message, "method"));
  if (method == NULL && json_is_object(message) && id != NULL &&
      (json_object_get(message, "result") || json_object_get(message, "error")))
    return NULL; /* it answers nothing that we asked */
  if (method == NULL)
    return mcp_error(id, RPC_INVALID_REQUEST, "a message must have a method");
  if (id == NULL)
    return NULL;
  const json_t *version = modern_version(params);
  if (version != NULL && !is_known_version(version))
    return version_refused(id, version);
  if (strcmp(method, "server/discover") == 0)
    return mcp_result(message, discover());
  if (strcmp(method, "initialize") == 0)
    return mcp_result(message, initialize(params));
  if (strcmp(method, "ping") == 0)
    return mcp_result(message, json_object());
  if (strcmp(method, "tools/list") == 0)
    return mcp_result(message, tools_list());
  if (strcmp(method, "tools/call") == 0)
    return tools_call(message);
  if (strcmp(method, "resources/list") == 0)
    return resources_list(message);
  if (strcmp(method, "resources/templates/list") == 0)
    return mcp_result(message, templates_list());
  if (strcmp(method, "resources/read") == 0)
    return resources_read(message);
  return mcp_error(id, RPC_NO_METHOD, "there is no such method");
}
