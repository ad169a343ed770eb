/* One call of a model API: its requests, one after the other, and its result.
 *
 * DESIGN, the requests of a call. Usually one. Before it, for Ollama with thinking and a schema, the
 * server's version may be asked for, and an answer without any form (PHASE_THINK). After it, one more
 * on the next rung, when the server refused the schema or did not keep to it. `phase` says which one
 * is under way. */
#include "provider/api_internal.h"

#include "base/head_tail.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "provider/api_key.h"
#include "provider/http/reply.h"
#include "provider/schema_prompt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum phase { PHASE_FAILED, PHASE_VERSION, PHASE_THINK, PHASE_ANSWER };

struct provider_run {
  struct api *api;
  const struct api_config *config;
  const struct call_request *request;
  struct provider_sink sink;
  struct http_exchange *exchange; /* under way, or NULL */
  uv_timer_t soon;                /* reports what could not even be sent */
  enum phase phase;
  struct buf key, prompt;
  char *model;
  struct secrets *secrets;
  struct wire wire;
  struct reply reply;
  struct buf version;  /* the reply to PHASE_VERSION */
  struct buf thoughts; /* the text of PHASE_THINK */
  struct api_schema *schema;
  unsigned rungs;
  enum rung rung;
  bool refused_once; /* one rung down already */
  bool remember;     /* the rung under way, once the server takes it */
  bool reading, thought, cancelled;
  bool two_passes; /* the server thinks and forms by itself */
  json_t *notes;   /* told with the first callback: start tells nothing */
  int64_t input, output, cached;
  uint64_t started_ms;
  struct call_result result;
};

/* --- telling --- */

static void tell_notes(struct provider_run *run) {
  size_t i;
  json_t *note, *notes = run->notes;
  run->notes = NULL;
  json_array_foreach(notes, i, note) {
    const struct provider_news news = {.kind = NEWS_NOTE, .data = note};
    if (run->sink.news)
      run->sink.news(run->sink.ctx, &news);
  }
  json_decref(notes);
}

static void add_note(struct provider_run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_note(struct provider_run *run, const char *fmt, ...) {
  char text[600];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (run->notes == NULL)
    run->notes = json_array();
  json_array_append_new(run->notes, json_pack("{so}", "text", json_text(str_from(text))));
}

static void fail(struct provider_run *run, enum error_class class, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void fail(struct provider_run *run, enum error_class class, const char *fmt, ...) {
  va_list ap;
  run->result.class = class;
  va_start(ap, fmt);
  (void)vsnprintf(run->result.message, sizeof run->result.message, fmt, ap);
  va_end(ap);
}

static void on_piece(void *ctx, bool thinking, struct str piece) {
  struct provider_run *run = ctx;
  const struct provider_news news = {
      .kind = thinking || run->phase == PHASE_THINK ? NEWS_THINKING : NEWS_TEXT, .text = piece};
  if (run->sink.news)
    run->sink.news(run->sink.ctx, &news);
}

static void end_request(struct provider_run *run) {
  if (run->reading)
    reply_deinit(&run->reply);
  run->reading = false;
  wire_deinit(&run->wire);
}

/* The result goes to the caller; the run is gone. */
static void finish(struct provider_run *run) {
  const struct provider_sink sink = run->sink;
  struct call_result result = run->result;
  tell_notes(run);
  result.duration_ms = (int64_t)(uv_now(run->api->loop) - run->started_ms);
  if (run->input >= 0 || run->output >= 0) {
    result.usage = json_object();
    if (run->input >= 0)
      json_object_set_new(result.usage, "input", json_integer(run->input));
    if (run->output >= 0)
      json_object_set_new(result.usage, "output", json_integer(run->output));
    if (run->cached >= 0)
      json_object_set_new(result.usage, "cached", json_integer(run->cached));
  }
  end_request(run);
  api_key_wipe(&run->key);
  buf_deinit(&run->prompt);
  buf_deinit(&run->version);
  buf_deinit(&run->thoughts);
  secrets_free(run->secrets);
  api_schema_unref(run->schema);
  free(run->model);
  free(run);
  sink.done(sink.ctx, &result);
}

/* --- asking --- */

static const json_t *wanted_thinking(const struct provider_run *run) {
  if (run->config->think != NULL)
    return run->config->think;
  return run->config->dialect == &dialect_ollama ? json_object_get(run->request->options, "effort")
                                                 : NULL;
}

static bool wants_thinking(const struct provider_run *run) {
  const json_t *think = wanted_thinking(run);
  return think != NULL && !json_is_false(think);
}

/* May thinking and the form be asked for at once? */
static bool thinks_and_forms(const struct provider_run *run) {
  return run->schema == NULL || run->rung == RUNG_PROMPT ||
         run->config->think_mode == THINK_MODE_SERVER || run->two_passes ||
         (run->config->think_mode == THINK_MODE_AUTO && run->config->dialect != &dialect_ollama);
}

static const json_t *think_to_send(const struct provider_run *run) {
  if (run->phase == PHASE_THINK || !wants_thinking(run) || thinks_and_forms(run))
    return wanted_thinking(run);
  return json_false();
}

/* Where the backend enforces nothing of it, the schema stands in the prompt. */
static bool shows_schema(const struct provider_run *run) {
  return run->schema != NULL && run->phase == PHASE_ANSWER && run->rung >= RUNG_JSON;
}

static struct str make_prompt(struct provider_run *run) {
  buf_clear(&run->prompt);
  if (run->thoughts.n == 0 && !shows_schema(run))
    return run->request->prompt;
  buf_str(&run->prompt, run->request->prompt);
  if (run->thoughts.n > 0) {
    buf_puts(&run->prompt, "\n\nYou have thought about it and come to this:\n\n");
    buf_str(&run->prompt, buf_view(&run->thoughts));
    buf_puts(&run->prompt, "\n\nNow give exactly that result in the form that was asked for.");
  }
  if (shows_schema(run))
    schema_prompt_append(&run->prompt, run->request->schema);
  return buf_view(&run->prompt);
}

static bool on_body(void *ctx, struct str bytes) {
  struct provider_run *run = ctx;
  if (run->phase == PHASE_VERSION) {
    run->version.max = LIMIT_HTTP_ERROR_BYTES;
    buf_str(&run->version, bytes);
    return !run->version.cut;
  }
  bool was_over = run->reply.over, more = reply_body(&run->reply, bytes);
  if (run->reply.over && !was_over && run->exchange != NULL)
    http_hasten(run->exchange, LIMIT_HTTP_TAIL_MS);
  return more;
}

static bool on_head(void *ctx, int status) {
  struct provider_run *run = ctx;
  if (run->phase != PHASE_VERSION)
    reply_head(&run->reply, status);
  return true;
}

static void on_header(void *ctx, struct str name, struct str value) {
  struct provider_run *run = ctx;
  if (run->phase != PHASE_VERSION)
    reply_header(&run->reply, name, value);
}

static void on_done(void *ctx, const struct http_end *end);

static void send_request(struct provider_run *run, struct http_request *request, const char *path,
                         const char *const *headers) {
  const struct http_sink sink = {on_header, on_head, on_body, on_done, run};
  char *url = api_url(run->config, path);
  uint64_t spent = uv_now(run->api->loop) - run->started_ms, all = run->request->timeout_ms;
  api_fill_request(run->api, run->config, request);
  request->url = url;
  request->headers = headers;
  if (all > 0 && (request->total_ms == 0 || request->total_ms > all - spent))
    request->total_ms = all > spent ? all - spent : 1;
  run->exchange = http_start(run->api->http, request, &sink);
  free(url);
}

static int64_t wall_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False: it cannot be asked, the result says why. */
static bool ask(struct provider_run *run, enum phase phase) {
  const struct api_config *config = run->config;
  struct err err;
  run->phase = phase;
  if (run->cancelled) {
    fail(run, CLASS_CANCELLED, "cancelled");
    return false;
  }
  bool formed = run->schema != NULL && phase == PHASE_ANSWER;
  const struct ask ask = {
      .model = str_from(run->model),
      .prompt = make_prompt(run),
      .options = run->request->options,
      .extra = config->extra,
      .schema = !formed ? NULL
                : run->rung <= RUNG_TOOL && run->rung != RUNG_GRAMMAR
                    ? api_schema_adapted(run->schema)
                    : run->request->schema,
      .rung = run->rung,
      .grammar = formed && run->rung == RUNG_GRAMMAR ? api_schema_grammar(run->schema) : STR(""),
      .think = think_to_send(run),
      .keep_alive = config->keep_alive,
      .key = buf_view(&run->key),
      .quirks = config->quirks,
      .stream = config->stream,
  };
  if (!config->dialect->build(&ask, &run->wire, &err)) {
    fail(run, CLASS_BAD_REQUEST, "%s", err.text);
    return false;
  }
  const char *headers[WIRE_HEADERS + 3] = {"Content-Type: application/json"};
  size_t n = 1;
  for (size_t i = 0; run->wire.headers[i]; i++)
    headers[n++] = run->wire.headers[i];
  reply_init(&run->reply, config->dialect, wall_ms(), on_piece, run);
  reply_redact(&run->reply, run->secrets);
  run->reading = true;
  struct http_request request = {.post = true, .body = buf_view(&run->wire.body)};
  send_request(run, &request, buf_c(&run->wire.path), headers);
  return true;
}

static void ask_version(struct provider_run *run) {
  struct http_request request = {.total_ms = LIMIT_HTTP_PROBE_MS};
  run->phase = PHASE_VERSION;
  wire_bearer(&run->wire, buf_view(&run->key));
  send_request(run, &request, "/api/version", (const char *const *)run->wire.headers);
}

/* From 0.12.5 on /api/chat thinks first and constrains what follows. */
static bool has_two_passes(const char *version) {
  int major = 0, minor = 0, patch = 0;
  if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) < 2)
    return false;
  return major > 0 || minor > 12 || (minor == 12 && patch >= 5);
}

/* The first request that this call needs. */
static bool ask_first(struct provider_run *run) {
  const struct api_config *config = run->config;
  bool apart = run->schema != NULL && run->rung != RUNG_PROMPT && wants_thinking(run);
  if (!apart || config->think_mode == THINK_MODE_FIELD || config->think_mode == THINK_MODE_SERVER ||
      run->thoughts.n > 0)
    return ask(run, PHASE_ANSWER);
  if (config->think_mode == THINK_MODE_TWO_REQUESTS)
    return ask(run, PHASE_THINK);
  if (config->dialect != &dialect_ollama)
    return ask(run, PHASE_ANSWER);
  if (config->quirks & QUIRK_GENERATE)
    return ask(run, PHASE_THINK);
  const json_t *version = api_recall(run->api, "version", config->base_url, "");
  if (version == NULL && !run->cancelled) {
    ask_version(run);
    return true;
  }
  run->two_passes = has_two_passes(json_string_value(version));
  return ask(run, run->two_passes ? PHASE_ANSWER : PHASE_THINK);
}

/* --- what came --- */

static void add_up(int64_t *sum, int64_t n) {
  if (n >= 0)
    *sum = (*sum > 0 ? *sum : 0) + n;
}

static void read_version(struct provider_run *run, const struct http_end *end) {
  json_t *doc = end->kind == HTTP_END_COMPLETE && end->status == 200
                    ? json_loadb(buf_c(&run->version), run->version.n, 0, NULL)
                    : NULL;
  const char *version = json_string_value(json_object_get(doc, "version"));
  api_remember(run->api, "version", run->config->base_url, "",
               json_string(version ? version : "unknown"));
  json_decref(doc);
}

static const char *rung_key_model(const struct provider_run *run) {
  return run->model ? run->model : "";
}

/* One rung down; false when there is none, or one was gone down already. */
static bool step_down(struct provider_run *run, const char *why) {
  enum rung next = rung_at_or_below(run->rungs, run->rung + 1);
  if (run->refused_once || next == RUNG_COUNT)
    return false;
  add_note(run, "%s: the schema goes as %s instead of %s", why, rung_name(next),
           rung_name(run->rung));
  run->refused_once = true;
  run->rung = next;
  run->result.class = CLASS_NONE;
  run->result.message[0] = '\0';
  end_request(run);
  if (!ask_first(run))
    finish(run);
  return true;
}

/* Reads the structured value. False: another request was sent. */
static bool read_structured(struct provider_run *run) {
  struct reply *r = &run->reply;
  struct api_value found = {.fit = API_FIT_LOOSE};
  if (run->rung != RUNG_TOOL || r->has_tool)
    api_schema_find(run->schema, run->rung, buf_view(r->has_tool ? &r->tool : &r->text), &found);
  if (found.fit == API_FIT_LOOSE && run->rung != RUNG_PROMPT) {
    char why[120];
    (void)snprintf(why, sizeof why, "the answer was not kept to the schema (%s)",
                   rung_name(run->rung));
    /* Of a server on this machine it is a property; a vendor's model may do better next time. */
    run->remember = run->config->local;
    if (step_down(run, why)) {
      json_decref(found.value);
      return false;
    }
  }
  run->result.structured = found.value;
  return true;
}

static void take_text(struct provider_run *run) {
  struct reply *r = &run->reply;
  struct buf *from = r->text.n == 0 && r->has_tool ? &r->tool : &r->text;
  struct call_result *result = &run->result;
  result->dropped_bytes = from->dropped;
  result->text.bytes = *from;
  result->text.bytes.max = 0;
  buf_say_cut(&result->text.bytes);
  *from = (struct buf){0};
}

/* What the exchange itself has to say, where the reply does not. */
static void read_end(struct provider_run *run, const struct http_end *end) {
  struct reply *r = &run->reply;
  bool whole = end->kind == HTTP_END_COMPLETE || end->kind == HTTP_END_STOPPED;
  const char *hint = "";
  if (end->status >= 200)
    reply_end(r, whole);
  bool answered = end->status >= 200 && r->class == CLASS_NONE && r->over;
  if (whole || answered) {
    if (r->class != CLASS_NONE)
      fail(run, r->class, "%s: %s", run->config->name, r->message);
    run->result.retry_after_ms = r->retry_after_ms;
    return;
  }
  if (end->status >= 400 && end->kind != HTTP_END_CANCELLED) { /* cut within an error's body */
    fail(run, r->class, "%s: %s", run->config->name, r->message);
    return;
  }
  if (end->kind == HTTP_END_NETWORK && run->config->local)
    hint = ": is the server running?";
  fail(run, api_end_class(end->kind), "%s (%s): %s%s", run->config->name, run->config->base_url,
       end->message, hint);
}

static bool wanted_but_not_thought(const struct provider_run *run) {
  const json_t *sent = think_to_send(run);
  return sent != NULL && !json_is_false(sent) && !run->reply.thought &&
         run->config->dialect != &dialect_openai_responses && run->phase == PHASE_ANSWER &&
         !run->thought;
}

/* The reply of PHASE_THINK or PHASE_ANSWER is over. */
static void settle(struct provider_run *run, const struct http_end *end) {
  struct reply *r = &run->reply;
  read_end(run, end);
  add_up(&run->input, r->input);
  add_up(&run->output, r->output);
  add_up(&run->cached, r->cached);
  enum error_class class = run->result.class;
  bool refused = class == CLASS_BAD_REQUEST && (r->status == 400 || r->status == 422);
  if (run->phase == PHASE_ANSWER && run->schema != NULL) {
    run->result.enforced = rung_name(run->rung);
    if (refused && run->rung != RUNG_PROMPT) {
      char why[480];
      (void)snprintf(why, sizeof why, "%.450s", run->result.message);
      run->remember = true;
      if (step_down(run, why))
        return;
    }
    if (run->remember && run->refused_once && class != CLASS_BAD_REQUEST)
      api_remember(run->api, "rung", run->config->name, rung_key_model(run),
                   json_integer(run->rung));
  }
  if (class == CLASS_NONE && run->phase == PHASE_THINK) {
    run->thought = r->thought;
    if (!r->thought)
      add_note(run, "thinking was asked for and none came");
    buf_str(&run->thoughts, buf_view(&r->text));
    end_request(run);
    if (!ask(run, PHASE_ANSWER))
      finish(run);
    return;
  }
  if (class == CLASS_NONE && wanted_but_not_thought(run))
    add_note(run, "thinking was asked for and none came");
  if (class == CLASS_NONE && run->schema != NULL && !read_structured(run))
    return;
  if (r->mended)
    (void)snprintf(run->result.note, sizeof run->result.note,
                   "its reply had bytes that are not UTF-8: they are U+FFFD here");
  take_text(run);
  finish(run);
}

static void on_done(void *ctx, const struct http_end *end) {
  struct provider_run *run = ctx;
  run->exchange = NULL;
  tell_notes(run);
  if (run->phase == PHASE_VERSION && end->kind != HTTP_END_CANCELLED) {
    read_version(run, end);
    wire_deinit(&run->wire);
    if (!ask_first(run))
      finish(run);
    return;
  }
  if (run->phase == PHASE_VERSION) {
    fail(run, CLASS_CANCELLED, "cancelled");
    finish(run);
    return;
  }
  settle(run, end);
}

/* --- start and cancel --- */

static bool choose_rung(struct provider_run *run) {
  const struct api_config *config = run->config;
  const json_t *known;
  const char *why;
  if (run->request->schema == NULL)
    return true;
  run->schema = api_schema_get(run->api->schemas, run->request->schema, config->preset,
                               config->think_mode == THINK_MODE_FIELD && wants_thinking(run));
  run->rungs = api_schema_rungs(run->schema, config->rungs, &why);
  known = api_recall(run->api, "rung", config->name, rung_key_model(run));
  run->rung = rung_at_or_below(run->rungs, known ? (enum rung)json_integer_value(known) : 0);
  if (run->rung == RUNG_COUNT) {
    fail(run, CLASS_BAD_REQUEST, "%s: schema_mode allows one way only, and %s", config->name,
         why ? why : "it is not possible here");
    return false;
  }
  if (why != NULL)
    add_note(run, "%s: it goes as %s", why, rung_name(run->rung));
  return true;
}

static bool begin(struct provider_run *run, const struct provider_env *env) {
  const struct api_config *config = run->config;
  const struct call_request *request = run->request;
  struct err err = {0};
  if (request->model.n > 0)
    run->model = xstrndup(request->model.p, request->model.n);
  else if (config->model != NULL)
    run->model = xstrdup(config->model);
  if (run->model == NULL && config->dialect->model_needed) {
    fail(run, CLASS_BAD_REQUEST,
         "provider %s needs a model: write model: NAME in the workflow, --model NAME, or model in "
         "providers.%s of your config.yaml",
         config->name, config->name);
    return false;
  }
  if (!api_key_read(config, &run->key, &err)) {
    fail(run, CLASS_AUTH, "%s", err.text);
    return false;
  }
  run->secrets = secrets_new();
  secrets_add(run->secrets, config->key_file || !config->key_env ? config->name : config->key_env,
              buf_view(&run->key));
  secrets_add_env(run->secrets, env->pass_env);
  return choose_rung(run) && ask_first(run);
}

static void on_soon_closed(uv_handle_t *handle) {
  finish(handle->data);
}

static void on_soon(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, on_soon_closed);
}

static struct provider_run *api_start(const struct provider *self, const struct provider_env *env,
                                      const struct call_request *request,
                                      const struct provider_sink *sink) {
  struct provider_run *run = xcalloc(1, sizeof *run);
  run->api = env->api;
  run->config = self->data;
  run->request = request;
  run->sink = *sink;
  run->input = run->output = run->cached = -1;
  run->started_ms = uv_now(env->loop);
  if (!begin(run, env)) {
    run->phase = PHASE_FAILED;
    uv_timer_init(env->loop, &run->soon);
    run->soon.data = run;
    uv_timer_start(&run->soon, on_soon, 0, 0);
  }
  return run;
}

static void api_cancel(struct provider_run *run) {
  run->cancelled = true;
  if (run->exchange != NULL)
    http_cancel(run->exchange);
  else if (run->phase == PHASE_FAILED)
    fail(run, CLASS_CANCELLED, "cancelled");
}

const struct provider_ops api_ops = {.start = api_start, .cancel = api_cancel};
