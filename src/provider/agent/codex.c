/* Drives codex natively: `codex app-server`, JSON-RPC lines without "jsonrpc". One thread, one
 * turn with its output schema, and the end of stdin. */
#include "provider/agent/driver.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "provider/agent/classify.h"
#include "provider/agent/permission_policy.h"
#include "provider/agent/rpc.h"
#include "provider/agent/stream.h"

#include <stdlib.h>
#include <string.h>

enum codex_method {
  CODEX_INITIALIZE,
  CODEX_START,
  CODEX_RESUME,
  CODEX_TURN,
  CODEX_INTERRUPT,
  CODEX_STEER,
  CODEX_METHOD_COUNT
};
static const char *const methods[] = {"initialize", "thread/start",   "thread/resume",
                                      "turn/start", "turn/interrupt", "turn/steer",
                                      NULL};
_Static_assert(sizeof methods / sizeof *methods == CODEX_METHOD_COUNT + 1, "one name a method");

struct codex {
  struct driver *d;
  struct rpc rpc;
  char thread[128], turn[128]; /* "": not yet known */
  bool rested;                 /* the thread went to rest after the last message of its turn */
  json_t *before; /* tokens of the thread before this turn, as it reported them; or NULL */
  json_t *said;   /* by a person before the turn had a name: [key, text, ...]; or NULL */
};

static struct codex *codex_of(struct driver *d) {
  return d->own;
}

static void codex_request(struct codex *c, enum codex_method method, json_t *params) {
  if (!rpc_request(&c->rpc, (int)method, params))
    stream_fail(c->d, CLASS_PROTOCOL, "codex stopped reading its standard input");
}

/* --- steps --- */

static void on_thread(struct codex *c, const json_t *result) {
  struct str id = json_view_at(json_object_get(result, "thread"), "id");
  if (id.n == 0 || id.n >= sizeof c->thread) {
    stream_fail(c->d, CLASS_PROTOCOL, "codex did not name a thread");
    return;
  }
  print_into(c->thread, sizeof c->thread, STR_FMT, STR_ARG(id));
  stream_session(c->d, id);
  const struct agent_call *call = c->d->call;
  json_t *effort = json_object_get(call->request->options, "effort");
  json_t *params = json_pack("{s:s, s:[{s:s, s:o}]}", "threadId", c->thread, "input", "type",
                             "text", "text", json_text(call->prompt));
  if (call->schema != NULL)
    json_object_set(params, "outputSchema", (json_t *)call->schema);
  if (json_is_string(effort))
    json_object_set(params, "effort", effort);
  codex_request(c, CODEX_TURN, params);
}

static const char steer_id[] = "segue-";

/* Codex gives it to the model with its next request, or makes one for it in the same turn. */
static void codex_steer(struct driver *d, uint64_t key, struct str text) {
  struct codex *c = codex_of(d);
  char id[40];
  if (d->end != STREAM_END_NONE)
    return;
  if (c->turn[0] == '\0') {
    c->said = c->said ? c->said : json_array();
    json_array_append_new(c->said, json_integer((json_int_t)key));
    json_array_append_new(c->said, json_text(text));
    return;
  }
  print_into(id, sizeof id, "%s%llu", steer_id, (unsigned long long)key);
  codex_request(c, CODEX_STEER,
                json_pack("{s:s, s:s, s:s, s:[{s:s, s:o}]}", "threadId", c->thread,
                          "expectedTurnId", c->turn, "clientUserMessageId", id, "input", "type",
                          "text", "text", json_text(text)));
}

static void note_turn(struct codex *c, const json_t *turn) {
  struct str id = json_view_at(turn, "id");
  if (id.n > 0 && id.n < sizeof c->turn)
    print_into(c->turn, sizeof c->turn, STR_FMT, STR_ARG(id));
  json_auto_t *said = c->turn[0] != '\0' ? c->said : NULL;
  if (said != NULL)
    c->said = NULL;
  for (size_t i = 0; i + 1 < json_array_size(said); i += 2)
    codex_steer(c->d, (uint64_t)json_integer_value(json_array_get(said, i)),
                json_view(json_array_get(said, i + 1)));
}

/* --- errors --- */

/* Returns the status that an error names, else `status`. */
static int codex_status(const json_t *error, int status) {
  json_t *detail;
  const char *name;
  json_object_foreach(json_object_get(error, "codexErrorInfo"), name, detail) {
    json_int_t code = json_int_at(detail, "httpStatusCode");
    status = code >= 400 && code < 600 ? (int)code : status;
  }
  return status;
}

/* Notes an error such as "unauthorized" or {"responseTooManyFailedAttempts": {"httpStatusCode":
 * 429}}. */
static void codex_note_error(struct codex *c, const json_t *error) {
  struct str message = json_view_at(error, "message"),
             more = json_view_at(error, "additionalDetails");
  json_t *info = json_object_get(error, "codexErrorInfo"), *detail;
  buf_auto_t text = {.max = LIMIT_EVIDENCE_BYTES};
  const char *name;
  buf_str(&text, message);
  if (more.n > 0)
    buf_printf(&text, ": " STR_FMT, STR_ARG(more));
  json_object_foreach(info, name, detail) {
    stream_kind(c->d, str_from(name));
    if (json_int_at(detail, "httpStatusCode") == 0) /* it did not get as far as a status */
      stream_kind(c->d, STR("network"));
  }
  if (json_is_string(info))
    stream_kind(c->d, json_view_at(error, "codexErrorInfo"));
  stream_trouble(c->d, codex_status(error, 0), buf_view(&text));
}

/* --- what it tells --- */

static bool is_tool(struct str type) {
  static const char not_tools[] =
      "userMessage agentMessage reasoning plan error hookPrompt enteredReviewMode "
      "exitedReviewMode contextCompaction";
  return type.n > 0 && !str_among(type, not_tools);
}

static const json_t *codex_first(const json_t *item, const char *a, const char *b, const char *c) {
  const char *const names[] = {a, b, c};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    const json_t *value = json_object_get(item, names[i]);
    if (value != NULL && !json_is_null(value))
      return value;
  }
  return NULL;
}

static void codex_on_item(struct codex *c, const json_t *item, bool completed) {
  struct str type = json_view_at(item, "type"), status = json_view_at(item, "status");
  struct str name = json_view_at(item, "tool");
  struct str said = json_view_at(item, "clientId");
  if (!completed && str_starts(said, steer_id)) {
    stream_read_steer(c->d, strtoull(said.p + strlen(steer_id), NULL, 10));
  } else if (completed && str_eq_c(type, "agentMessage")) {
    stream_tell_rest(c->d, json_view_at(item, "text"));
    stream_end_message(c->d, json_view_at(item, "id"));
  } else if (is_tool(type)) {
    struct tool_summary tool = {.name = name.n > 0 ? name : type,
                                .id = json_view_at(item, "id"),
                                .state = completed ? "end" : "start",
                                .failed = -1};
    if (completed) {
      tool.failed = str_eq_c(status, "failed") || str_eq_c(status, "declined");
      tool.output = codex_first(item, "aggregatedOutput", "error", "result");
      tool.exit = json_object_get(item, "exitCode");
    } else {
      tool.input = codex_first(item, "command", "changes", "arguments");
    }
    stream_tool(c->d, &tool);
    if (str_eq_c(type, "commandExecution")) /* a turn may end while it runs on */
      stream_task(c->d, tool.id, json_view_at(item, "command"),
                  completed ? STR("end") : STR("start"));
  }
}

static json_t *codex_counts(const json_t *told) {
  static const char *const names[] = {"inputTokens", "outputTokens", "cachedInputTokens",
                                      "reasoningOutputTokens", "cacheWriteInputTokens"};
  static const char *const ours[] = {"input", "output", "cached", "reasoning", "cache_write"};
  json_t *out = json_object();
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    const json_t *value = json_object_get(told, names[i]);
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= LIMIT_USAGE_TOKENS)
      json_object_set_new(out, ours[i], json_integer(json_integer_value(value)));
  }
  return out;
}

/* Takes the thread's tokens. A resumed thread first reports those of its earlier turns, before this
 * turn has begun. If neither that nor our log knows them, they are the total less the turn's first
 * request. */
static void on_usage(struct codex *c, const json_t *usage) {
  json_t *total = codex_counts(json_object_get(usage, "total"));
  if (c->d->resumed && c->turn[0] != '\0' && c->d->before == NULL) {
    json_t *last = codex_counts(json_object_get(usage, "last"));
    c->before = stream_usage_added(total, last, -1);
    c->d->before = c->before;
    json_decref(last);
  }
  if (c->d->resumed && c->turn[0] == '\0') {
    json_decref(c->before);
    c->before = total;
    c->d->before = total;
  } else {
    stream_usage_total(c->d, total);
  }
}

static void codex_on_error(struct codex *c, const json_t *params) {
  const json_t *error = json_object_get(params, "error");
  if (json_is_true(json_object_get(params, "willRetry"))) {
    json_t *data = json_object();
    struct str message = json_view_at(error, "message");
    int status = codex_status(error, classify_status(message));
    if (status > 0)
      json_object_set_new(data, "status", json_integer(status));
    stream_retry(c->d, data, message);
  } else {
    codex_note_error(c, error);
  }
}

static void on_tell(struct codex *c, const struct rpc_message *m) {
  struct str thread = json_view_at(m->params, "threadId");
  const json_t *item = json_object_get(m->params, "item");
  const json_t *turn = json_object_get(m->params, "turn");
  if (thread.n > 0 && c->thread[0] != '\0' && !str_eq_c(thread, c->thread))
    return; /* it is about an agent of its own */
  if (strcmp(m->name, "item/agentMessage/delta") == 0) {
    stream_tell_piece(c->d, json_view_at(m->params, "delta"));
  } else if (strcmp(m->name, "item/reasoning/summaryTextDelta") == 0 ||
             strcmp(m->name, "item/reasoning/textDelta") == 0) {
    stream_tell_thinking(c->d, json_view_at(m->params, "delta"));
  } else if (strcmp(m->name, "item/started") == 0) {
    c->rested = false;
    codex_on_item(c, item, false);
  } else if (strcmp(m->name, "item/completed") == 0) {
    codex_on_item(c, item, true);
  } else if (strcmp(m->name, "thread/tokenUsage/updated") == 0) {
    on_usage(c, json_object_get(m->params, "tokenUsage"));
  } else if (strcmp(m->name, "thread/status/changed") == 0) {
    c->rested = str_eq_c(json_view_at(json_object_get(m->params, "status"), "type"), "idle") &&
                c->d->last.n > 0 && c->d->told.n == 0;
  } else if (strcmp(m->name, "turn/started") == 0) {
    note_turn(c, turn);
  } else if (strcmp(m->name, "turn/completed") == 0) {
    struct str status = json_view_at(turn, "status");
    const json_t *error = json_object_get(turn, "error");
    if (c->d->end == STREAM_END_NONE) {
      if (str_eq_c(status, "completed")) {
        stream_over(c->d, STREAM_END_OK);
      } else if (str_eq_c(status, "interrupted")) {
        stream_fail(c->d, CLASS_CANCELLED, "interrupted");
      } else {
        if (json_is_object(error))
          codex_note_error(c, error);
        stream_over(c->d, STREAM_END_ERROR);
      }
    }
  } else if (strcmp(m->name, "error") == 0) {
    codex_on_error(c, m->params);
  } else if (strcmp(m->name, "warning") == 0 || strcmp(m->name, "configWarning") == 0) {
    struct str text = json_view_at(m->params, "message");
    stream_note(c->d, text.n > 0 ? text : json_view_at(m->params, "summary"));
  }
}

/* --- what it asks --- */

/* Answers a question. With approvalPolicy "never" none should come, but the user's own rules may
 * cause one all the same. */
static void on_ask(struct codex *c, const struct rpc_message *m) {
  static const struct {
    const char *method, *yes, *no;
    enum ask_kind kind;
  } asks[] = {
      {"item/commandExecution/requestApproval", "accept", "decline", ASK_EXECUTE},
      {"item/fileChange/requestApproval", "accept", "decline", ASK_EDIT},
      {"execCommandApproval", "approved", "denied", ASK_EXECUTE},
      {"applyPatchApproval", "approved", "denied", ASK_EDIT},
  };
  for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
    if (strcmp(m->name, asks[i].method) != 0)
      continue;
    json_t *paths = json_array(), *changes = json_object_get(m->params, "fileChanges"), *change;
    const char *path;
    json_object_foreach(changes, path, change)
      json_array_append_new(paths, json_string(path));
    if (json_view_at(m->params, "grantRoot").n > 0)
      json_array_append(paths, json_object_get(m->params, "grantRoot"));
    struct str title = json_view_at(m->params, "command");
    const struct permission_policy_ask ask = {
        .kind = asks[i].kind, .paths = paths, .command = title};
    struct question question = {
        .tool = str_from(asks[i].kind == ASK_EDIT ? "fileChange" : "commandExecution"),
        .title = title.n > 0 ? title : json_view_at(m->params, "reason")};
    question.allowed = driver_allows(c->d->call, &ask, &question.reason);
    question_ask(c->d, m->id, &question);
    (void)rpc_reply(&c->rpc, m->id,
                    json_pack("{s:s}", "decision", question.allowed ? asks[i].yes : asks[i].no));
    json_decref(paths);
    return;
  }
  (void)rpc_refuse(&c->rpc, m->id, -32601, "not supported");
}

static void codex_on_answer(struct codex *c, const struct rpc_message *m) {
  if (c->d->end != STREAM_END_NONE)
    return;
  if (m->error != NULL) {
    struct str message = json_view_at(m->error, "message");
    if (m->method != CODEX_INTERRUPT && m->method != CODEX_STEER) { /* its turn was over */
      stream_trouble(c->d, 0, message);
      if (m->method == CODEX_RESUME && classify_of_words(message) == CLASS_NONE)
        c->d->trouble.class = CLASS_NOT_FOUND; /* the thread asked for */
      stream_over(c->d, STREAM_END_ERROR);
    }
    return;
  }
  switch ((enum codex_method)(m->method < 0 ? CODEX_METHOD_COUNT : m->method)) {
  case CODEX_INITIALIZE:
    if (!rpc_replays(&c->rpc)) {
      (void)rpc_notify(&c->rpc, "initialized", NULL);
      static const char *const sandboxes[] = {"read-only", "workspace-write", "danger-full-access"};
      const struct agent_call *call = c->d->call;
      json_t *params = json_pack("{s:s, s:s, s:s}", "cwd", call->cwd, "approvalPolicy", "never",
                                 "sandbox", sandboxes[profile_told(c->d->profile, call)]);
      if (call->request->model.n > 0)
        json_object_set_new(params, "model", json_text(call->request->model));
      if (call->session[0] != '\0')
        json_object_set_new(params, "threadId", json_string(call->session));
      codex_request(c, call->session[0] != '\0' ? CODEX_RESUME : CODEX_START, params);
    }
    break;
  case CODEX_START:
  case CODEX_RESUME:
    on_thread(c, m->result);
    break;
  case CODEX_TURN:
    note_turn(c, json_object_get(m->result, "turn"));
    break;
  case CODEX_METHOD_COUNT: /* the recording lacks what was sent */
    if (json_object_get(m->result, "thread") != NULL)
      on_thread(c, m->result);
    break;
  case CODEX_INTERRUPT:
  case CODEX_STEER:
    break;
  }
}

static void codex_value(struct driver *d, const json_t *value) {
  struct codex *c = codex_of(d);
  struct rpc_message m = rpc_read(&c->rpc, value);
  switch (m.kind) {
  case RPC_ANSWER:
    codex_on_answer(c, &m);
    break;
  case RPC_ASK:
    on_ask(c, &m);
    break;
  case RPC_TELL:
    if (d->end == STREAM_END_NONE)
      on_tell(c, &m);
    break;
  case RPC_NOISE:
    break;
  }
}

/* --- the driver --- */

static struct driver *codex_open(const struct profile *profile, const struct agent_call *call,
                                 const struct driver_host *host) {
  struct driver *d = stream_open(profile, call, host);
  struct codex *c = xcalloc(1, sizeof *c);
  d->own = c;
  d->value = codex_value;
  d->is_text = d->ends_by_exit = d->text_of_all = false;
  c->d = d;
  c->rpc = (struct rpc){.host = &d->host, .methods = methods};
  codex_request(c, CODEX_INITIALIZE,
                json_pack("{s:{s:s, s:s, s:s}}", "clientInfo", "name", "segue", "title", "segue",
                          "version", SEGUE_VERSION));
  return d;
}

static void codex_sent(struct driver *d, struct str line) {
  struct codex *c = codex_of(d);
  json_auto_t *value = rpc_sent(&c->rpc, line);
  struct str decision = json_view_at(json_object_get(value, "result"), "decision");
  d->questions.recorded = true;
  if (json_object_get(json_object_get(value, "params"), "outputSchema") != NULL)
    d->schema_asked = true;
  if (decision.n > 0)
    question_answered(d, json_object_get(value, "id"),
                      str_starts(decision, "accept") || str_starts(decision, "approved"));
}

static bool codex_interrupt(struct driver *d) {
  struct codex *c = codex_of(d);
  if (d->end != STREAM_END_NONE || c->turn[0] == '\0')
    return false;
  return rpc_request(&c->rpc, CODEX_INTERRUPT,
                     json_pack("{s:s, s:s}", "threadId", c->thread, "turnId", c->turn));
}

static void codex_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct codex *c = codex_of(d);
  stream_take_rest(d);
  if (d->end == STREAM_END_NONE && c->rested && !d->trouble.there && p->why == PROCESS_END_EXITED &&
      p->exit_code == 0)
    d->end = STREAM_END_OK; /* it left after its work, before it said so */
  stream_end(d, p, r);
}

static void codex_close(struct driver *d) {
  json_decref(codex_of(d)->before);
  json_decref(codex_of(d)->said);
  stream_close(d);
}

const struct driver_ops driver_codex = {.name = "codex",
                                        .transport = TRANSPORT_NATIVE,
                                        .keeps_stdin = true,
                                        .open = codex_open,
                                        .output = stream_output,
                                        .sent = codex_sent,
                                        .steer = codex_steer,
                                        .interrupt = codex_interrupt,
                                        .end = codex_end,
                                        .close = codex_close};
