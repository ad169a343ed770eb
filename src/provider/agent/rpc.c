/* Speaks JSON-RPC over lines, as a client. */
#include "provider/agent/rpc.h"

#include "base/buf.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

bool rpc_replays(const struct rpc *rpc) {
  return rpc->host->write == NULL;
}

bool rpc_write_line(const struct driver_host *host, json_t *value) {
  buf_auto_t line = {0};
  bool ok = true;
  if (host->write != NULL) {
    json_write(value, &line);
    buf_putc(&line, '\n');
    ok = host->write(host->ctx, buf_view(&line));
  }
  json_decref(value);
  return ok;
}

static json_t *message(const struct rpc *rpc) {
  return rpc->versioned ? json_pack("{s:s}", "jsonrpc", "2.0") : json_object();
}

static void note_open(struct rpc *rpc, json_int_t id, int method) {
  if (rpc->open_count == ARRAY_LEN(rpc->open)) { /* the oldest will no longer be answered */
    memmove(&rpc->open[0], &rpc->open[1], sizeof rpc->open - sizeof rpc->open[0]);
    rpc->open_count--;
  }
  rpc->open[rpc->open_count].id = id;
  rpc->open[rpc->open_count++].method = method;
}

bool rpc_request(struct rpc *rpc, int method, json_t *params) {
  assert(method >= 0);
  if (rpc_replays(rpc)) {
    json_decref(params);
    return true;
  }
  json_t *out = message(rpc);
  json_object_set_new(out, "id", json_integer(++rpc->last_id));
  json_object_set_new(out, "method", json_string(rpc->methods[method]));
  json_object_set_new(out, "params", params);
  note_open(rpc, rpc->last_id, method);
  return rpc_write_line(rpc->host, out);
}

bool rpc_notify(struct rpc *rpc, const char *method, json_t *params) {
  json_t *out = message(rpc);
  json_object_set_new(out, "method", json_string(method));
  if (params != NULL)
    json_object_set_new(out, "params", params);
  return rpc_write_line(rpc->host, out);
}

bool rpc_reply(struct rpc *rpc, const json_t *id, json_t *result) {
  json_t *out = message(rpc);
  json_object_set(out, "id", (json_t *)id);
  json_object_set_new(out, "result", result);
  return rpc_write_line(rpc->host, out);
}

bool rpc_refuse(struct rpc *rpc, const json_t *id, int code, const char *text) {
  json_t *out = message(rpc);
  json_object_set(out, "id", (json_t *)id);
  json_object_set_new(out, "error", json_pack("{s:i, s:s}", "code", code, "message", text));
  return rpc_write_line(rpc->host, out);
}

static int take_open(struct rpc *rpc, const json_t *id) {
  for (size_t i = 0; json_is_integer(id) && i < rpc->open_count; i++)
    if (rpc->open[i].id == json_integer_value(id)) {
      int method = rpc->open[i].method;
      rpc->open_count--;
      memmove(&rpc->open[i], &rpc->open[i + 1], (rpc->open_count - i) * sizeof rpc->open[0]);
      return method;
    }
  return -1;
}

struct rpc_message rpc_read(struct rpc *rpc, const json_t *value) {
  struct rpc_message m = {.kind = RPC_NOISE, .method = -1};
  const json_t *error = json_object_get(value, "error");
  m.id = json_object_get(value, "id");
  m.name = json_string_value(json_object_get(value, "method"));
  m.params = json_object_get(value, "params");
  if (m.name != NULL) {
    m.kind = m.id != NULL && !json_is_null(m.id) ? RPC_ASK : RPC_TELL;
  } else if (m.id != NULL && (json_object_get(value, "result") != NULL || error != NULL)) {
    m.kind = RPC_ANSWER;
    m.method = take_open(rpc, m.id);
    m.error = error != NULL && !json_is_null(error) ? error : NULL;
    m.result = json_object_get(value, "result");
  }
  return m;
}

json_t *rpc_sent(struct rpc *rpc, struct str line) {
  json_t *value = json_loadb(line.p ? line.p : "", line.n, JSON_ALLOW_NUL, NULL);
  const json_t *id = json_object_get(value, "id");
  const char *name = json_string_value(json_object_get(value, "method"));
  for (int i = 0; name != NULL && json_is_integer(id) && rpc->methods[i] != NULL; i++)
    if (strcmp(rpc->methods[i], name) == 0)
      note_open(rpc, json_integer_value(id), i);
  return value;
}
