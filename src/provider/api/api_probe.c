/* Asks whether a model API is there: one short GET, for Ollama a second one for its models. */
#include "provider/api/internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "provider/api/key.h"
#include "provider/api/reply.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct probe {
  struct api *api;
  const struct api_config *config;
  api_probe_fn done;
  void *ctx;
  uint64_t started_ms;
  struct buf key, body;
  struct reply reply; /* for its class and message */
  struct wire wire;
  const char *path;
  uv_timer_t soon;
  struct key_waiter waiter; /* for a key that a program prints */
  struct api_probe_result result;
};

PRINTF_LIKE(3, 4)
static void api_probe_say(struct probe *p, enum error_class class, const char *fmt, ...) {
  va_list ap;
  p->result.class = class;
  va_start(ap, fmt);
  (void)vsnprintf(p->result.message, sizeof p->result.message, fmt, ap);
  va_end(ap);
}

static void api_probe_finish(struct probe *p) {
  p->result.elapsed_ms = (long)(uv_now(p->api->loop) - p->started_ms);
  p->done(p->ctx, &p->result);
  json_decref(p->result.models);
  api_key_wipe(&p->key);
  buf_deinit(&p->body);
  free(p);
}

/* Reads {"data": [{"id"}]}, {"models": [{"name"}]} or {"version"}. */
static void api_probe_read_document(struct probe *p) {
  json_t *doc = json_loadb(buf_c(&p->body), p->body.n, 0, NULL), *model;
  const json_t *list = json_object_get(doc, "data");
  const char *version = json_string_value(json_object_get(doc, "version"));
  size_t i;
  if (!json_is_array(list))
    list = json_object_get(doc, "models");
  if (version != NULL)
    print_into(p->result.version, sizeof p->result.version, "%s", version);
  if (json_is_array(list)) {
    p->result.model_count = (long)json_array_size(list);
    if (p->result.models == NULL)
      p->result.models = json_array();
  }
  json_array_foreach((json_t *)list, i, model) {
    const json_t *name = json_object_get(model, "id");
    if (!json_is_string(name))
      name = json_object_get(model, "name");
    if (json_is_string(name) && json_array_size(p->result.models) < LIMIT_PROBE_MODELS)
      json_array_append(p->result.models, (json_t *)name);
  }
  if (doc == NULL && p->path == p->config->preset->probe_path)
    api_probe_say(p, CLASS_PROTOCOL, "%s%s answers, but not with JSON: is base_url right?",
                  p->result.base_url, p->path);
  json_decref(doc);
}

static bool api_probe_on_head(void *ctx, int status) {
  struct probe *p = ctx;
  reply_head(&p->reply, status);
  return true;
}

static void api_probe_on_header(void *ctx, struct str name, struct str value) {
  struct probe *p = ctx;
  reply_header(&p->reply, name, value);
}

static bool api_probe_on_body(void *ctx, struct str bytes) {
  struct probe *p = ctx;
  buf_str(&p->body, bytes);
  if (p->reply.status < 200 || p->reply.status > 299)
    return reply_body(&p->reply, bytes);
  return !p->body.cut;
}

static void api_probe_send_request(struct probe *p, const char *path);

static void api_probe_on_done(void *ctx, const struct http_end *end) {
  struct probe *p = ctx;
  bool first = p->path == p->config->preset->probe_path;
  if (first)
    p->result.status = end->status;
  p->result.reachable |= end->status > 0;
  if (end->status >= 200 && end->status < 300) {
    api_probe_read_document(p);
  } else if (first && end->status > 0) {
    reply_end(&p->reply, true);
    api_probe_say(p, p->reply.class, "%s", p->reply.message);
  } else if (first) {
    bool hint = end->kind == HTTP_END_NETWORK && p->config->local;
    api_probe_say(p, api_end_class(end->kind), "%s%s", end->message,
                  hint ? ": is the server running?" : "");
  }
  reply_deinit(&p->reply);
  wire_deinit(&p->wire);
  buf_clear(&p->body);
  const char *more = NULL;
  if (p->config->dialect == &dialect_ollama)
    more = "/api/tags";
  else if (p->config->dialect == &dialect_llamacpp)
    more = "/v1/models";
  if (first && more != NULL && p->result.class == CLASS_NONE)
    api_probe_send_request(p, more);
  else
    api_probe_finish(p);
}

static void api_probe_send_request(struct probe *p, const char *path) {
  const struct api_config *c = p->config;
  const struct http_sink sink = {api_probe_on_header, api_probe_on_head, api_probe_on_body,
                                 api_probe_on_done, p};
  struct http_request request = {0};
  char *url = api_url(c, path);
  p->path = path;
  p->result.keyed = p->key.n > 0;
  reply_init(&p->reply, c->dialect, 0, NULL, NULL);
  if (c->dialect == &dialect_anthropic)
    anthropic_headers(&p->wire, api_version(c), buf_view(&p->key));
  else if (p->key.n > 0 && c->dialect == &dialect_gemini)
    wire_header(&p->wire, "x-goog-api-key", buf_view(&p->key));
  else
    wire_bearer(&p->wire, buf_view(&p->key));
  api_own_headers(c, &p->wire);
  api_fill_request(p->api, c, &request);
  request.url = url;
  request.headers = (const char *const *)p->wire.headers;
  request.connect_ms = LIMIT_HTTP_PROBE_MS;
  request.stall_ms = 0;
  request.total_ms = LIMIT_HTTP_PROBE_MS;
  request.max_bytes = LIMIT_STRUCTURED_BYTES * 4;
  (void)http_start(p->api->http, &request, &sink);
  free(url);
}

static void api_probe_on_soon_closed(uv_handle_t *handle) {
  api_probe_finish(handle->data);
}

static void api_probe_on_soon(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, api_probe_on_soon_closed);
}

static void api_probe_on_key(struct key_waiter *waiter, const struct err *why) {
  struct probe *p = (struct probe *)((char *)waiter - offsetof(struct probe, waiter));
  struct err err = why ? *why : (struct err){0};
  if (why == NULL && key_command_known(p->api, p->config, &p->key) &&
      api_key_read(p->config, &p->key, &err)) {
    api_probe_send_request(p, p->config->preset->probe_path);
    return;
  }
  api_probe_say(p, CLASS_AUTH, "%.250s", err.text);
  api_probe_finish(p);
}

bool api_probe(struct api *api, const struct provider *provider, api_probe_fn done, void *ctx) {
  assert(done != NULL);
  struct err err = {0};
  if (provider->ops != &api_ops)
    return false;
  struct probe *p = xcalloc(1, sizeof *p);
  p->api = api;
  p->config = provider->data;
  p->done = done;
  p->ctx = ctx;
  p->started_ms = uv_now(api->loop);
  p->result.model_count = -1;
  p->body.max = LIMIT_STRUCTURED_BYTES * 4;
  print_into(p->result.base_url, sizeof p->result.base_url, "%s", p->config->base_url);
  if (p->config->key_command && !key_command_known(api, p->config, &p->key)) {
    p->waiter.done = api_probe_on_key;
    key_command_ask(api, p->config, &p->waiter);
    return true;
  }
  if (api_key_read(p->config, &p->key, &err)) {
    api_probe_send_request(p, p->config->preset->probe_path);
    return true;
  }
  api_probe_say(p, CLASS_AUTH, "%.250s", err.text);
  uv_timer_init(api->loop, &p->soon);
  p->soon.data = p;
  uv_timer_start(&p->soon, api_probe_on_soon, 0, 0);
  return true;
}
