/* Drives Claude Code by stream-json both ways. Its output is read by the profile's events, as in a
 * one-shot run. Beside that it speaks the control protocol: it asks before it uses a tool, and can
 * be interrupted. The prompt is one line of stdin; after the last result, stdin is closed. */
#include "provider/agent/driver.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "provider/agent/permission_policy.h"
#include "provider/agent/rpc.h"
#include "provider/agent/stream.h"

#include <stdlib.h>

struct claude {
  bool closed; /* its result has come: stdin is closed */
};

static struct claude *claude_of(struct driver *d) {
  return d->own;
}

/* --- questions --- */

static const struct ask_words tools[] = {
    {"Read Glob Grep LS NotebookRead TodoWrite TaskCreate TaskUpdate TaskList TaskGet ToolSearch "
     "ExitPlanMode StructuredOutput",
     ASK_READ},
    {"Edit MultiEdit Write NotebookEdit", ASK_EDIT},
    {"Bash BashOutput KillShell Monitor", ASK_EXECUTE},
    {"WebFetch WebSearch", ASK_FETCH},
    {NULL, ASK_OTHER}};

static bool claude_decide(const struct agent_call *call, const json_t *request,
                          const char **reason) {
  struct str tool = json_view_at(request, "tool_name");
  json_auto_t *paths = json_array();
  permission_policy_add_paths(paths, json_object_get(request, "input"));
  if (json_is_string(json_object_get(request, "blocked_path")))
    json_array_append(paths, json_object_get(request, "blocked_path"));
  const struct permission_policy_ask ask = {
      .kind = ask_kind_of(tools, tool),
      .tool = tool,
      .paths = paths,
      .command = json_view_at(json_object_get(request, "input"), "command")};
  bool allowed = driver_allows(call, &ask, reason);
  if (str_eq_c(tool, "AskUserQuestion")) {
    allowed = false;
    *reason = "nobody is there to answer: decide yourself";
  }
  return allowed;
}

/* Tells in a line what the agent wants to do: the command, the file, or the tool's name. */
static struct str claude_title_of(const json_t *request) {
  static const char *const names[] = {"command", "file_path", "path", "url", "notebook_path"};
  const json_t *input = json_object_get(request, "input");
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (json_view_at(input, names[i]).n > 0)
      return json_view_at(input, names[i]);
  return json_view_at(request, "tool_name");
}

static void on_request(struct driver *d, const json_t *value) {
  const json_t *id = json_object_get(value, "request_id");
  const json_t *request = json_object_get(value, "request");
  if (!json_is_string(id))
    return;
  if (!str_eq_c(json_view_at(request, "subtype"), "can_use_tool")) {
    json_t *inner = json_pack("{s:s, s:O, s:s}", "subtype", "error", "request_id", (json_t *)id,
                              "error", "not supported");
    (void)rpc_write_line(&d->host,
                         json_pack("{s:s, s:o}", "type", "control_response", "response", inner));
    return;
  }
  struct question question = {.tool = json_view_at(request, "tool_name"),
                              .title = claude_title_of(request)};
  json_t *input = json_object_get(request, "input");
  question.allowed = claude_decide(d->call, request, &question.reason);
  question_ask(d, id, &question);
  json_t *answer = json_pack("{s:s}", "behavior", question.allowed ? "allow" : "deny");
  if (!question.allowed)
    json_object_set_new(answer, "message", json_string(question.reason));
  else
    json_object_set_new(answer, "updatedInput",
                        json_is_object(input) ? json_incref(input) : json_object());
  json_t *inner = json_pack("{s:s, s:O, s:o}", "subtype", "success", "request_id", (json_t *)id,
                            "response", answer);
  (void)rpc_write_line(&d->host,
                       json_pack("{s:s, s:o}", "type", "control_response", "response", inner));
}

/* --- what a person says --- */

/* Makes the id of a message, by which the client says that it was read: the session's, with the key
 * in the middle, since other sessions may go on with this conversation. */
static void claude_steer_id(const struct driver *d, uint64_t key, char out[40]) {
  const char *session = d->call->request->session;
  if (strlen(session) != 36)
    session = "00000000-0000-4000-8000-000000000000";
  print_into(out, 40, "%.8s-%04x-4%03x%s", session, (unsigned)(key >> 12 & 0xFFFF),
             (unsigned)(key & 0xFFF), session + 18);
}

/* Takes a message of ours that the client repeats when it gives it to the model. */
static void claude_on_replay(struct driver *d, const json_t *value) {
  struct str id = json_view_at(value, "uuid");
  char wanted[40];
  if (id.n != 36 || d->unread == 0)
    return;
  uint64_t key = (strtoull(id.p + 9, NULL, 16) << 12) | strtoull(id.p + 15, NULL, 16);
  claude_steer_id(d, key, wanted);
  if (str_eq_c(id, wanted))
    stream_read_steer(d, key);
}

/* The client gives it to the model with the next result of a tool. If there is none any more, it
 * begins another turn with it, whose result follows: so its stdin stays open until then. */
static void claude_steer(struct driver *d, uint64_t key, struct str text) {
  char id[40];
  if (claude_of(d)->closed || d->over || d->end == STREAM_END_ERROR)
    return;
  claude_steer_id(d, key, id);
  json_t *message = json_pack("{s:s, s:[{s:s, s:o}]}", "role", "user", "content", "type", "text",
                              "text", json_text(text));
  d->steered = true;
  d->unread += rpc_write_line(
      &d->host, json_pack("{s:s, s:s, s:o}", "type", "user", "uuid", id, "message", message));
}

static void claude_value(struct driver *d, const json_t *value) {
  struct claude *c = claude_of(d);
  struct str type = json_view_at(value, "type");
  if (str_eq_c(type, "control_request")) {
    on_request(d, value);
    return;
  }
  if (str_eq_c(type, "control_response") || str_eq_c(type, "control_cancel_request"))
    return;
  if (str_eq_c(type, "user") && json_is_true(json_object_get(value, "isReplay")))
    claude_on_replay(d, value);
  else
    stream_event(d, value);
  if (!d->over || c->closed) /* else it may still ask for permissions */
    return;
  c->closed = true;
  if (d->host.close_stdin != NULL)
    d->host.close_stdin(d->host.ctx);
}

/* --- the driver --- */

static bool control(struct driver *d, const char *id, const char *subtype) {
  return rpc_write_line(&d->host, json_pack("{s:s, s:s, s:{s:s}}", "type", "control_request",
                                            "request_id", id, "request", "subtype", subtype));
}

static struct driver *claude_open(const struct profile *profile, const struct agent_call *call,
                                  const struct driver_host *host) {
  struct driver *d = stream_open(profile, call, host);
  d->own = xcalloc(1, sizeof(struct claude));
  d->value = claude_value;
  json_t *message = json_pack("{s:s, s:[{s:s, s:o}]}", "role", "user", "content", "type", "text",
                              "text", json_text(call->prompt));
  if (!control(d, "segue-1", "initialize") ||
      !rpc_write_line(&d->host, json_pack("{s:s, s:o}", "type", "user", "message", message)))
    stream_trouble(d, 0, STR("the prompt cannot be written"));
  return d;
}

static void claude_sent(struct driver *d, struct str line) {
  json_auto_t *value = json_loadb(line.p ? line.p : "", line.n, JSON_ALLOW_NUL, NULL);
  const json_t *response = json_object_get(value, "response");
  d->questions.recorded = true;
  if (str_eq_c(json_view_at(value, "type"), "control_response"))
    question_answered(
        d, json_object_get(response, "request_id"),
        str_eq_c(json_view_at(json_object_get(response, "response"), "behavior"), "allow"));
}

static bool claude_interrupt(struct driver *d) {
  return d->end == STREAM_END_NONE && control(d, "segue-2", "interrupt");
}

const struct driver_ops driver_claude = {.name = "claude",
                                         .transport = TRANSPORT_NATIVE,
                                         .keeps_stdin = true,
                                         .open = claude_open,
                                         .output = stream_output,
                                         .sent = claude_sent,
                                         .steer = claude_steer,
                                         .interrupt = claude_interrupt,
                                         .end = stream_end,
                                         .close = stream_close};
