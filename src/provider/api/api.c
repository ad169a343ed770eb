/* Makes the requests of calls to model APIs, registers the APIs as providers, and asks whether they
 * are there. */
#include "provider/api/api.h"

#include "base/file.h"
#include "base/head_tail.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "provider/agent/program_version.h"
#include "provider/api/internal.h"
#include "provider/api/rejected_parameter.h"
#include "provider/api/reply.h"
#include "provider/child.h"
#include "provider/schema_prompt.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- keys that programs print: preset.h has the others ---
 *
 * A program, such as `pass show NAME`, runs in the home folder, with segue's own environment and no
 * input; the first line that it prints is the key, kept for as long as segue runs. All waiters with
 * the same command share one program. After a failure the next call asks again. */

struct key_waiter {
  struct key_waiter *next;
  /* Is called once. err: why there is no key; NULL: the key is known now. */
  void (*done)(struct key_waiter *waiter, const struct err *err);
  bool left;
};

/* Holds a key by its list of words; the configuration may have changed since. */
struct key_entry {
  struct key_entry *next;
  struct api *api;
  struct buf words; /* each with its NUL */
  long wall_ms;
  struct buf key; /* empty: unknown */
  struct process *process;
  struct key_waiter *waiters; /* for the process, or for its end */
  bool is_late;               /* `late` reports from the loop that it could not be started */
  struct soon late;
  struct err err;
};

static void key_argv_words(const struct api_config *config, struct buf *out) {
  for (size_t i = 0; config->key_command[i]; i++)
    buf_append(out, config->key_command[i], strlen(config->key_command[i]) + 1);
}

static struct key_entry *find_entry(const struct api *api, const struct api_config *config) {
  buf_auto_t words = {0};
  struct key_entry *entry = api->keys;
  key_argv_words(config, &words);
  while (entry != NULL && !str_eq(buf_view(&entry->words), buf_view(&words)))
    entry = entry->next;
  return entry;
}

/* Tells those who have left, or all of them. */
static void tell_waiters(struct key_entry *entry, const struct err *err, bool left_only) {
  struct key_waiter *waiting = entry->waiters, *next;
  entry->waiters = NULL;
  for (; waiting != NULL; waiting = next) {
    next = waiting->next;
    if (left_only && !waiting->left) {
      waiting->next = entry->waiters;
      entry->waiters = waiting;
    } else {
      waiting->done(waiting, err);
    }
  }
}

/* Keeps the first line: some programs print more about the key after it. */
static void keep_first_line(struct key_entry *entry, struct buf *printed) {
  struct str rest = str_trim(buf_view(printed)), text = str_trim(str_next_line(&rest));
  if (text.n > LIMIT_HTTP_KEY_BYTES)
    return;
  api_key_wipe(&entry->key);
  buf_reserve(&entry->key, LIMIT_HTTP_KEY_BYTES);
  buf_str(&entry->key, text);
}

/* Reports why there is no key. Names the program alone: its arguments may be as secret as what it
 * prints. */
static void say_why(struct key_entry *entry, const struct process_result *p) {
  buf_auto_t said = {0};
  char why[160];
  struct str line = str_trim(buf_view(&p->err));
  line.n = line.n < 200 ? line.n : 200;
  buf_safe(&said, line, false);
  if (p->why == PROCESS_END_EXEC_FAILED) {
    process_why_not(p, entry->words.p, "/", why, sizeof why);
    err_set(&entry->err, ERR_NOT_FOUND, "cannot run it: %s", why);
  } else if (p->why == PROCESS_END_WALL_LIMIT) {
    err_set(&entry->err, ERR_LIMIT, "it printed no key within %ld ms (key_ms)", entry->wall_ms);
  } else if (p->why == PROCESS_END_EXITED && p->exit_code == 0) {
    err_set(&entry->err, ERR_INVALID, "it printed no key");
  } else if (p->why == PROCESS_END_EXITED && p->signal == 0) {
    err_set(&entry->err, ERR_INVALID, "it ended with status %d%s%s", p->exit_code,
            said.n ? ": " : "", buf_c(&said));
  } else {
    err_set(&entry->err, ERR_IO, "it was ended (%s)", process_end_name(p->why));
  }
  err_wrap(&entry->err, "key_command \"%.120s\"", entry->words.p);
}

static void tell_late(void *ctx) {
  struct key_entry *entry = ctx;
  entry->is_late = false;
  tell_waiters(entry, &entry->err, false);
}

/* Copies the user's whole environment: a store of passwords may need any of it. */
static const char *const *whole_environment(struct arena *arena, struct err *err) {
  size_t n = str_count((const char *const *)environ);
  const char **names = arena_array(arena, n + 1, sizeof *names);
  for (size_t i = 0, k = 0; i < n; i++) {
    size_t length = strcspn(environ[i], "=");
    if (length > 0)
      names[k++] = arena_strndup(arena, environ[i], length);
  }
  return process_env_build(arena, NULL, names, NULL, err);
}

static void key_program_ended(void *ctx, struct process_result *p);

static void start_key_program(struct key_entry *entry) {
  const char *argv[LIMIT_KEY_COMMAND_WORDS + 1] = {NULL};
  struct arena arena = {0};
  size_t n = 0;
  for (size_t at = 0; at < entry->words.n; at += strlen(entry->words.p + at) + 1)
    argv[n++] = entry->words.p + at;
  const char *home = getenv("HOME");
  const struct process_spec spec = {
      .argv = argv,
      .cwd = home != NULL && access(home, X_OK) == 0 ? home : "/",
      .envp = whole_environment(&arena, &entry->err),
      .stdout_max = 2 * LIMIT_HTTP_KEY_BYTES,
      .stderr_max = LIMIT_HTTP_KEY_BYTES,
      .wall_ms = (uint64_t)entry->wall_ms,
  };
  if (entry->api->processes == NULL)
    err_set(&entry->err, ERR_INVALID, "key_command: no program is run here");
  else if (spec.envp != NULL)
    entry->process =
        process_start(entry->api->processes, &spec, NULL, key_program_ended, entry, &entry->err);
  arena_deinit(&arena);
  entry->is_late = entry->process == NULL;
  if (entry->is_late)
    soon_start(&entry->late, entry->api->loop, tell_late, entry);
}

static void key_program_ended(void *ctx, struct process_result *p) {
  struct key_entry *entry = ctx;
  entry->process = NULL;
  if (p->why == PROCESS_END_EXITED && p->exit_code == 0)
    keep_first_line(entry, &p->out);
  if (p->out.cap > 0)
    explicit_bzero(p->out.p, p->out.cap);
  if (p->why == PROCESS_END_CANCELLED) { /* all had left, but others may have come since */
    err_set(&entry->err, ERR_IO, "cancelled");
    tell_waiters(entry, &entry->err, true);
    if (entry->waiters != NULL && entry->process == NULL && !entry->is_late)
      start_key_program(entry);
    return;
  }
  if (entry->key.n == 0)
    say_why(entry, p);
  tell_waiters(entry, entry->key.n > 0 ? NULL : &entry->err, false);
}

/* Appends the key and returns true if a program has printed it before. */
static bool key_command_known(const struct api *api, const struct api_config *config,
                              struct buf *out) {
  const struct key_entry *entry = find_entry(api, config);
  if (entry == NULL || entry->key.n == 0)
    return false;
  buf_reserve(out, entry->key.n);
  buf_str(out, buf_view(&entry->key));
  return true;
}

/* waiter->done comes from the loop, once. */
static void key_command_ask(struct api *api, const struct api_config *config,
                            struct key_waiter *waiter) {
  assert(waiter->done != NULL);
  struct key_entry *entry = find_entry(api, config);
  if (entry == NULL) {
    entry = xcalloc(1, sizeof *entry);
    entry->api = api;
    key_argv_words(config, &entry->words);
    entry->next = api->keys;
    api->keys = entry;
  }
  entry->wall_ms = config->key_ms;
  waiter->left = false;
  waiter->next = entry->waiters;
  entry->waiters = waiter;
  if (entry->process == NULL && !entry->is_late)
    start_key_program(entry);
}

static struct key_waiter **waiter_place(struct key_entry *entry, const struct key_waiter *waiter) {
  struct key_waiter **at = &entry->waiters;
  while (*at != NULL && *at != waiter)
    at = &(*at)->next;
  return *at != NULL ? at : NULL;
}

/* True: done does not come; false: it will, soon. */
static bool key_command_leave(struct api *api, struct key_waiter *waiter) {
  struct key_entry *entry = api->keys;
  while (entry != NULL && waiter_place(entry, waiter) == NULL)
    entry = entry->next;
  assert(entry != NULL); /* it is waiting */
  waiter->left = true;
  const struct key_waiter *other = entry->waiters;
  while (other != NULL && other->left)
    other = other->next;
  if (other == NULL && entry->process != NULL)
    process_cancel(entry->process); /* nobody wants it any more */
  if (other != NULL)
    *waiter_place(entry, waiter) = waiter->next;
  return other != NULL;
}

/* A server refused it: the next call asks again. */
static void key_command_forget(struct api *api, const struct api_config *config, struct str key) {
  struct key_entry *entry = find_entry(api, config);
  if (entry != NULL && str_eq(buf_view(&entry->key), key))
    api_key_wipe(&entry->key);
}

static void key_commands_free(struct api *api) {
  for (struct key_entry *entry = api->keys, *next; entry != NULL; entry = next) {
    next = entry->next;
    assert(entry->process == NULL && entry->waiters == NULL);
    api_key_wipe(&entry->key);
    buf_deinit(&entry->words);
    free(entry);
  }
  api->keys = NULL;
}

/* --- what all calls share --- */

struct api *api_new(uv_loop_t *loop, struct process_table *processes) {
  struct api *api = xcalloc(1, sizeof *api);
  api->loop = loop;
  api->processes = processes;
  api->http = http_new(loop);
  api->schemas = api_schemas_new();
  api->memo = json_object();
  return api;
}

void api_free(struct api *api) {
  if (api == NULL)
    return;
  http_free(api->http);
  key_commands_free(api);
  api_schemas_free(api->schemas);
  json_decref(api->memo);
  free(api);
}

static char *memo_key(const char *what, const char *name, const char *model) {
  char *key = NULL;
  if (asprintf(&key, "%s %s %s", what, name, model ? model : "") < 0)
    BUG("out of memory");
  return key;
}

/* Returns what was learnt, borrowed; NULL: nothing. model: NULL if none is named. */
static json_t *api_recall(const struct api *api, const char *what, const char *name,
                          const char *model) {
  char_auto_t *key = memo_key(what, name, model);
  return json_object_get(api->memo, key);
}

static void api_remember(struct api *api, const char *what, const char *name, const char *model,
                         json_t *owned_value) {
  assert(owned_value != NULL);
  char_auto_t *key = memo_key(what, name, model);
  if (json_object_size(api->memo) >= LIMIT_HTTP_MEMO_COUNT)
    json_object_clear(api->memo); /* it is learnt again */
  json_object_set_new_nocheck(api->memo, key, owned_value);
}

/* Returns the text, or the value of the variable that it names. */
static const char *own_value(const json_t *text) {
  const char *value = json_string_value(text);
  const char *found = value[0] == '$' ? getenv(value + 1) : value;
  return found != NULL ? found : "";
}

/* Returns the request's URL below the base URL of `config`; free() it. */
static char *api_url(const struct api_config *config, const char *path) {
  struct buf url = {0};
  bool first = strchr(path, '?') == NULL;
  buf_printf(&url, "%s%s", config->base_url, path);
  JSON_MEMBERS(config->query, name, value) {
    buf_putc(&url, first ? '?' : '&');
    wire_encoded(&url, str_from(name));
    buf_putc(&url, '=');
    wire_encoded(&url, str_from(own_value(value)));
    first = false;
  }
  return buf_take(&url);
}

/* Adds the values of the user's own headers to the secrets, and those of the query that come from
 * variables. */
static void api_own_secrets(const struct api_config *config, struct secrets *secrets) {
  const char *name;
  json_t *value;
  json_object_foreach(config->headers, name, value)
    secrets_add(secrets, name, str_from(own_value(value)));
  json_object_foreach(config->query, name, value) {
    if (json_string_value(value)[0] == '$') /* others are written in the file, such as a version */
      secrets_add(secrets, name, str_from(own_value(value)));
  }
}

/* Returns the version of the API to ask for: the user's, or the newest known. */
static const char *api_version(const struct api_config *config) {
  return config->version ? config->version : "2026-10-21";
}

static void api_own_headers(const struct api_config *config, struct wire *wire) {
  JSON_MEMBERS(config->headers, name, value)
    wire_header(wire, name, str_from(own_value(value)));
}

static void api_fill_request(struct api *api, const struct api_config *config,
                             struct http_request *request) {
  assert(config->concurrency > 0);
  request->lane = http_lane(api->http, config->name, config->concurrency);
  request->ca_file = config->ca_file;
  request->allow_http = config->allow_http;
  request->connect_ms = (uint64_t)config->connect_ms;
  request->stall_ms = (uint64_t)config->stall_ms;
  request->max_bytes = LIMIT_HTTP_BODY_BYTES;
}

enum error_class api_end_class(enum http_end_kind kind) {
  switch (kind) {
  case HTTP_END_COMPLETE:
    return CLASS_NONE;
  case HTTP_END_CANCELLED:
    return CLASS_CANCELLED;
  case HTTP_END_NETWORK:
  case HTTP_END_CUT:
  case HTTP_END_CONNECT_LIMIT:
    return CLASS_NETWORK;
  case HTTP_END_STALL_LIMIT:
  case HTTP_END_TOTAL_LIMIT:
    return CLASS_TIMEOUT;
  case HTTP_END_REFUSED:
    return CLASS_BAD_REQUEST;
  case HTTP_END_STOPPED:
  case HTTP_END_TOO_LARGE:
  case HTTP_END_TLS:
  case HTTP_END_PROTOCOL:
    return CLASS_PROTOCOL;
  }
  BUG("an exchange has no end");
}

/* Returns false if it needs a model, but neither the call nor the user's settings name one. */
static bool api_has_model(const struct api_config *config, struct str model, struct err *err) {
  return model.n > 0 || config->model != NULL || !config->dialect->model_needed ||
         err_set(err, ERR_INVALID,
                 "provider %s needs a model: write model: NAME in the workflow, --model NAME, or "
                 "model in providers.%s of your config.yaml",
                 config->name, config->name);
}

/* --- the requests of one call, one after the other, and its result ---
 *
 * DESIGN, the requests of a call. Usually there is one. Before it, for Ollama with thinking and a
 * schema, the server's version may be asked for, and an answer without any form (RUN_STATE_THINK).
 * After it comes one more on the next rung, if the server refused the schema or did not keep to
 * it. */

/* A call has this life; X(state, the states it may move to). */
#define RUN_STATES(X)                                                                              \
  /* nothing was sent */                                                                           \
  X(NEW, RS(KEY) | RS(REFUSED) | RS(VERSION) | RS(THINK) | RS(ANSWER))                             \
  /* a program is asked for the key */                                                             \
  X(KEY, RS(REFUSED) | RS(VERSION) | RS(THINK) | RS(ANSWER) | RS(ENDED))                           \
  /* no request can be made: the loop tells why, start must not */                                 \
  X(REFUSED, RS(ENDED))                                                                            \
  /* the server is asked for its version */                                                        \
  X(VERSION, RS(THINK) | RS(ANSWER) | RS(ENDED))                                                   \
  /* the model is asked to think, without any form */                                              \
  X(THINK, RS(KEY) | RS(THINK) | RS(ANSWER) | RS(REFUSED) | RS(ENDED))                             \
  /* the model is asked for the answer; the next rung begins anew */                               \
  X(ANSWER, RS(KEY) | RS(VERSION) | RS(THINK) | RS(ANSWER) | RS(REFUSED) | RS(ENDED))              \
  X(ENDED, 0)

enum run_state {
#define RS_ENUM(name, next) RUN_STATE_##name,
  RUN_STATES(RS_ENUM)
#undef RS_ENUM
};

/* Says how thinking is combined with the form of an answer. */
enum run_thinking {
  RUN_THINKING_PLAIN,  /* not needed, or thinking was asked for separately and none came */
  RUN_THINKING_SERVER, /* the server does both by itself */
  RUN_THINKING_CAME    /* RUN_STATE_THINK brought some */
};

struct api_run {
  struct provider_run base;
  struct api *api;
  const struct api_config *config;
  const struct call_request *request;
  struct provider_sink sink;
  struct http_exchange *exchange; /* under way, or NULL */
  struct soon soon;               /* reports what could not even be sent */
  enum run_state state;
  struct buf key, prompt;
  struct key_waiter waiter; /* for KEY */
  bool key_was_kept;        /* a program printed it before this call */
  char *model;
  struct secrets *secrets;
  struct wire wire;
  struct reply reply;   /* for THINK and ANSWER; without a dialect: none is read */
  struct buf version;   /* reply of VERSION */
  struct buf thoughts;  /* text of THINK */
  struct buf reasoning; /* reasoning of the present reply, as far as a log keeps it */
  json_t *requests;     /* requests and answers so far, see call_result */
  struct api_schema *schema;
  unsigned rungs;
  enum rung first_rung, rung;
  enum run_thinking thinking;
  long room;      /* tokens that the answer may have, otherwise than the call says; 0: as it says */
  long cut_at;    /* an answer was cut off at so many; 0: none was */
  bool lowered;   /* the model gives no more than `room` */
  bool remember;  /* remember the present rung, once the server takes it */
  bool cancelled; /* no further request may begin */
  json_t *without; /* names of parameters that are left out; or NULL */
  json_t *notes;   /* reported with the first callback: start reports nothing */
  json_t *usage;   /* sum over its requests so far; or NULL */
  uint64_t started_ms;
  uint64_t content_ms; /* time of the present reply's last content */
  struct call_result result;
};

static void run_set_state(struct api_run *run, enum run_state state) {
#define RS(name)            (1u << RUN_STATE_##name)
#define RS_NEXT(name, next) [RUN_STATE_##name] = (next),
  static const unsigned next[] = {RUN_STATES(RS_NEXT)};
#undef RS_NEXT
#undef RS
  assert(run->exchange == NULL);
  assert(next[run->state] & (1u << state));
  run->state = state;
}

/* --- telling --- */

static void tell_notes(struct api_run *run) {
  json_t *notes = run->notes;
  run->notes = NULL;
  JSON_EACH(notes, i, note)
    provider_tell(&run->sink, NEWS_NOTE, STR(""), json_incref(note));
  json_decref(notes);
}

PRINTF_LIKE(2, 3) static void run_note(struct api_run *run, const char *fmt, ...) {
  char text[600];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (run->notes == NULL)
    run->notes = json_array();
  json_array_append_new(run->notes, json_pack("{so}", "text", json_text(str_from(text))));
}

static void run_on_piece(void *ctx, bool thinking, struct str piece) {
  struct api_run *run = ctx;
  run->content_ms = uv_now(run->api->loop);
  if (thinking)
    buf_str(&run->reasoning, piece);
  provider_tell(&run->sink, thinking || run->state == RUN_STATE_THINK ? NEWS_THINKING : NEWS_TEXT,
                piece, NULL);
}

/* Frees what belongs to one request. */
static void run_end_request(struct api_run *run) {
  if (run->reply.dialect != NULL)
    reply_deinit(&run->reply);
  run->reply.dialect = NULL;
  wire_deinit(&run->wire);
}

/* Gives the result to the caller; the run is gone. */
static void run_finish(void *ctx) {
  struct api_run *run = ctx;
  const struct provider_sink sink = run->sink;
  struct call_result result = run->result;
  run_set_state(run, RUN_STATE_ENDED);
  tell_notes(run);
  result.duration_ms = (int64_t)(uv_now(run->api->loop) - run->started_ms);
  result.usage = run->usage;
  if (result.usage == NULL && result.class == CLASS_NONE)
    result.usage = json_pack("{ss}", "told", "none");
  if (json_array_size(run->requests) > 1)
    result.requests = run->requests;
  else
    json_decref(run->requests);
  run_end_request(run);
  api_key_wipe(&run->key);
  buf_deinit(&run->prompt);
  buf_deinit(&run->version);
  buf_deinit(&run->thoughts);
  buf_deinit(&run->reasoning);
  secrets_free(run->secrets);
  api_schema_unref(run->schema);
  json_decref(run->without);
  free(run->model);
  free(run);
  sink.done(sink.ctx, &result);
}

/* --- what is logged of several requests --- */

/* Returns a text if a log keeps it inline, and both ends of a longer one. */
static json_t *logged_text(struct str text) {
  return text_needs_blob(text) ? text_render(text) : json_text(text);
}

/* Notes the finished request: what followed the call's prompt, and what came back. */
static void note_request(struct api_run *run) {
  const struct reply *r = &run->reply;
  size_t own = run->request->prompt.n;
  json_t *usage = reply_usage_json(r);
  json_t *o =
      json_pack("{ss so}", "asked", run->state == RUN_STATE_THINK ? "think" : "answer", "text",
                logged_text(buf_view(r->text.n == 0 && r->has_tool ? &r->tool : &r->text)));
  if (run->prompt.n > own)
    json_object_set_new(o, "appended",
                        logged_text((struct str){run->prompt.p + own, run->prompt.n - own}));
  if (run->schema != NULL && run->state == RUN_STATE_ANSWER)
    json_object_set_new(o, "enforced", json_string(rung_name(run->rung)));
  if (run->reasoning.n > 0)
    json_object_set_new(o, "reasoning", logged_text(buf_view(&run->reasoning)));
  if (usage != NULL)
    json_object_set_new(o, "usage", usage);
  if (run->result.class != CLASS_NONE)
    json_object_set_new(o, "error", json_text(str_from(run->result.message)));
  if (run->requests == NULL)
    run->requests = json_array();
  json_array_append_new(run->requests, o);
  buf_clear(&run->reasoning);
}

/* --- asking --- */

/* Returns how many tokens the answer may have; 0: as many as the model can give. */
static long run_room(const struct api_run *run) {
  const json_t *said = json_object_get(run->request->options, "max_tokens");
  if (run->room > 0 || said != NULL)
    return run->room > 0 ? run->room : (long)json_integer_value(said);
  return run->config->stream ? run->config->dialect->max_tokens : 0;
}

static const json_t *wanted_thinking(const struct api_run *run) {
  if (run->config->think != NULL)
    return run->config->think;
  if (run->config->dialect != &dialect_ollama)
    return NULL;
  return json_object_get(run->request->options, "effort");
}

static bool run_wants_thinking(const struct api_run *run) {
  const json_t *think = wanted_thinking(run);
  return think != NULL && !json_is_false(think);
}

static const json_t *think_to_send(const struct api_run *run) {
  /* One request may ask for thinking and the form, or there is no form. */
  if (run->state == RUN_STATE_THINK || !run_wants_thinking(run) || run->schema == NULL ||
      run->rung == RUNG_PROMPT || run->config->think_mode == THINK_MODE_SERVER ||
      run->thinking == RUN_THINKING_SERVER ||
      (run->config->think_mode == THINK_MODE_AUTO && run->config->dialect != &dialect_ollama))
    return wanted_thinking(run);
  return json_false();
}

/* Returns true if the schema goes into the prompt, since the backend enforces none of it. */
static bool shows_schema(const struct api_run *run) {
  return run->schema != NULL && run->state == RUN_STATE_ANSWER && run->rung >= RUNG_JSON;
}

static struct str make_prompt(struct api_run *run) {
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
    schema_prompt_append(&run->prompt, run->request);
  return buf_view(&run->prompt);
}

static bool run_on_body(void *ctx, struct str bytes) {
  struct api_run *run = ctx;
  if (run->state == RUN_STATE_VERSION) {
    run->version.max = LIMIT_HTTP_ERROR_BYTES;
    buf_str(&run->version, bytes);
    return !run->version.cut;
  }
  size_t before = run->reply.tool.n;
  bool was_over = run->reply.over, more = reply_body(&run->reply, bytes);
  uint64_t now = uv_now(run->api->loop);
  if (run->reply.tool.n > before)
    run->content_ms = now;
  if (more && !run->reply.over && now - run->content_ms > (uint64_t)run->config->idle_ms) {
    reply_fail(&run->reply, CLASS_TIMEOUT, "signs of life, but no content for %ld ms",
               run->config->idle_ms);
    return false;
  }
  if (run->reply.over && !was_over && run->exchange != NULL)
    http_hasten(run->exchange, LIMIT_HTTP_TAIL_MS);
  return more;
}

static bool run_on_head(void *ctx, int status) {
  struct api_run *run = ctx;
  if (run->state != RUN_STATE_VERSION)
    reply_head(&run->reply, status);
  return true;
}

static void run_on_header(void *ctx, struct str name, struct str value) {
  struct api_run *run = ctx;
  if (run->state != RUN_STATE_VERSION)
    reply_header(&run->reply, name, value);
}

static void run_on_done(void *ctx, const struct http_end *end);

static void run_send_request(struct api_run *run, struct http_request *request, const char *path,
                             const char *const *headers) {
  const struct http_sink sink = {run_on_header, run_on_head, run_on_body, run_on_done, run};
  char_auto_t *url = api_url(run->config, path);
  uint64_t spent = uv_now(run->api->loop) - run->started_ms, all = run->request->timeout_ms;
  api_fill_request(run->api, run->config, request);
  request->url = url;
  run->content_ms = uv_now(run->api->loop);
  request->headers = headers;
  if (all > 0 && (request->total_ms == 0 || request->total_ms > all - spent))
    request->total_ms = all > spent ? all - spent : 1;
  run->exchange = http_start(run->api->http, request, &sink);
}

/* Makes a request. False: it cannot be made; the result says why. */
static bool run_ask(struct api_run *run, enum run_state state) {
  const struct api_config *config = run->config;
  struct err err;
  assert(state == RUN_STATE_THINK || state == RUN_STATE_ANSWER);
  run_set_state(run, state);
  if (run->cancelled) {
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
    return false;
  }
  bool formed = run->schema != NULL && state == RUN_STATE_ANSWER;
  const json_t *schema = run->schema ? run->request->schema : NULL;
  if (formed && (run->rung == RUNG_NATIVE || run->rung == RUNG_TOOL))
    schema = api_schema_adapted(run->schema);
  struct str prompt = make_prompt(run), grammar = STR("");
  const json_t *think = think_to_send(run);
  if (formed && run->rung == RUNG_GRAMMAR)
    grammar = api_schema_grammar(run->schema, think != NULL && !json_is_false(think),
                                 !(config->quirks & QUIRK_GENERATE));
  json_auto_t *options = NULL;
  if (run->room > 0) {
    options = run->request->options ? json_clone_top(run->request->options) : json_object();
    json_object_set_new(options, "max_tokens", json_integer(run->room));
  }
  const struct ask question = {
      .model = str_from(run->model),
      .prompt = prompt,
      .head_n = ask_shared_head(run->request, prompt),
      .family = str_from(run->request->session),
      .options = options ? options : run->request->options,
      .extra = config->extra,
      .schema = formed ? schema : NULL,
      .rung = run->rung,
      .grammar = grammar,
      .think = think,
      .keep_alive = config->keep_alive,
      .key = buf_view(&run->key),
      .quirks = config->quirks,
      .stream = config->stream,
      .version = api_version(config),
      .without = run->without,
  };
  if (!config->dialect->build(&question, &run->wire, &err)) {
    call_result_fail(&run->result, CLASS_BAD_REQUEST, "%s", err.text);
    return false;
  }
  api_own_headers(config, &run->wire);
  const char *headers[WIRE_HEADERS + 3] = {"Content-Type: application/json"};
  size_t n = 1;
  for (size_t i = 0; run->wire.headers[i]; i++)
    headers[n++] = run->wire.headers[i];
  reply_init(&run->reply, config->dialect, clock_real_ms(), run_on_piece, run);
  reply_redact(&run->reply, run->secrets);
  struct http_request request = {.post = true, .body = buf_view(&run->wire.body)};
  run_send_request(run, &request, buf_c(&run->wire.path), headers);
  return true;
}

/* Makes the first request that this call needs. */
static bool run_ask_first(struct api_run *run) {
  const struct api_config *config = run->config;
  bool apart = run->schema != NULL && run->rung != RUNG_PROMPT && run_wants_thinking(run);
  if (!apart || config->think_mode == THINK_MODE_FIELD || config->think_mode == THINK_MODE_SERVER ||
      run->thoughts.n > 0)
    return run_ask(run, RUN_STATE_ANSWER);
  if (config->think_mode == THINK_MODE_TWO_REQUESTS)
    return run_ask(run, RUN_STATE_THINK);
  if (config->dialect != &dialect_ollama)
    return run_ask(run, RUN_STATE_ANSWER);
  if (config->quirks & QUIRK_GENERATE)
    return run_ask(run, RUN_STATE_THINK);
  const json_t *version = api_recall(run->api, "version", config->base_url, "");
  if (version == NULL && !run->cancelled) {
    struct http_request request = {.total_ms = LIMIT_HTTP_PROBE_MS};
    run_set_state(run, RUN_STATE_VERSION);
    wire_bearer(&run->wire, buf_view(&run->key));
    run_send_request(run, &request, "/api/version", (const char *const *)run->wire.headers);
    return true;
  }
  /* From 0.12.5 on /api/chat thinks first and constrains what follows. */
  const char *number = json_string_value(version);
  if (strspn(number, "0123456789") == 0 || version_older(number, "0.12.5"))
    return run_ask(run, RUN_STATE_THINK);
  run->thinking = RUN_THINKING_SERVER;
  return run_ask(run, RUN_STATE_ANSWER);
}

/* --- rungs --- */

/* Makes another request in place of the last one: the same, or from the call's beginning. */
static void ask_anew(struct api_run *run, enum run_state state) {
  run->result.class = CLASS_NONE;
  run->result.message[0] = '\0';
  run->result.elsewhere = false;
  run_end_request(run);
  if (!(state == RUN_STATE_NEW ? run_ask_first(run) : run_ask(run, state)))
    run_finish(run);
}

/* Steps down one rung, and from there to the last one, since each costs a request. Returns false if
 * there is none. */
static bool run_step_down(struct api_run *run, const char *why) {
  enum rung below = run->rung == run->first_rung ? run->rung + 1 : RUNG_PROMPT;
  enum rung next = run->rung < below ? rung_at_or_below(run->rungs, below) : RUNG_COUNT;
  if (next == RUNG_COUNT)
    return false;
  run_note(run, "%s: the schema goes as %s instead of %s", why, rung_name(next),
           rung_name(run->rung));
  run->rung = next;
  ask_anew(run, RUN_STATE_NEW);
  return true;
}

/* --- keys --- */

static bool run_take_key(struct api_run *run) {
  const struct api_config *config = run->config;
  struct err err = {0};
  if (!api_key_read(config, &run->key, &err)) {
    call_result_fail(&run->result, CLASS_AUTH, "%s", err.text);
    return false;
  }
  secrets_add(run->secrets, config->key_env ? config->key_env : config->name, buf_view(&run->key));
  return run_ask_first(run);
}

static void run_on_key(struct key_waiter *waiter, const struct err *err) {
  struct api_run *run = (struct api_run *)((char *)waiter - offsetof(struct api_run, waiter));
  bool known = err == NULL && key_command_known(run->api, run->config, &run->key);
  if (run->cancelled)
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
  else if (!known)
    call_result_fail(&run->result, CLASS_AUTH, "provider %s has no key: %s", run->config->name,
                     err ? err->text : "its program printed no key");
  if (run->cancelled || !known || !run_take_key(run))
    run_finish(run);
}

static void ask_program(struct api_run *run) {
  run_set_state(run, RUN_STATE_KEY);
  run->waiter.done = run_on_key;
  key_command_ask(run->api, run->config, &run->waiter);
}

/* A server refused a kept key: asks the program for another one. False: the key was not a kept
 * one. */
static bool run_ask_key_again(struct api_run *run) {
  if (!run->key_was_kept || run->cancelled)
    return false;
  run_note(run, "%.300s: key_command is asked for another key", run->result.message);
  run->result.class = CLASS_NONE;
  run->result.message[0] = '\0';
  run->key_was_kept = false;
  key_command_forget(run->api, run->config, buf_view(&run->key));
  api_key_wipe(&run->key);
  run_end_request(run);
  ask_program(run);
  return true;
}

/* --- what was refused --- */

/* Leaves out these names from requests, and the known ones once more: the provider may have learnt
 * from other sessions, this session from its own log. */
static void run_leave_out(struct api_run *run, const json_t *names) {
  if (run->without == NULL && json_array_size(names) > 0)
    run->without = json_array();
  JSON_EACH(names, i, name) {
    const struct ask known = {.without = run->without};
    if (json_is_string(name) && !ask_lacks(&known, json_string_value(name)))
      json_array_append(run->without, (json_t *)name);
  }
}

/* Asks once more with twice the room, where the answer was cut for want of it. Returns false if it
 * was not. */
static bool run_ask_with_room(struct api_run *run) {
  long room = run_room(run);
  if (run->result.class != CLASS_LENGTH || run->state != RUN_STATE_ANSWER || run->cut_at > 0 ||
      room <= 0 || room > LIMIT_USAGE_TOKENS / 2)
    return false;
  run->cut_at = room;
  run->room = room * 2;
  run_note(run, "%.300s: it is asked again with max_tokens %ld", run->result.message, run->room);
  ask_anew(run, RUN_STATE_ANSWER);
  return true;
}

/* Asks for as many tokens as the model can give, where it refused to give more. Returns false if
 * that is not why. */
static bool run_ask_with_less(struct api_run *run) {
  const struct reply *r = &run->reply;
  long most =
      rejected_parameter_most(&(struct rejected_parameter){r->param, r->message}, run_room(run));
  if (!r->elsewhere || run->lowered || most == 0)
    return false;
  if (run->cut_at > 0 && most <= run->cut_at) {
    call_result_fail(&run->result, CLASS_LENGTH,
                     "%s: the answer was cut off after %ld tokens, and the model gives no more",
                     run->config->name, run->cut_at);
    return false;
  }
  run_note(run, "%.300s: it is asked for %ld", run->result.message, most);
  run->room = most;
  run->lowered = true;
  ask_anew(run, run->state);
  return true;
}

/* Makes the same request without a parameter that the server named. Returns false if it named
 * none. */
static bool drop_parameter(struct api_run *run, const struct rejected_parameter *refusal) {
  json_t *body = json_loadb(buf_c(&run->wire.body), run->wire.body.n, 0, NULL);
  const char *name = rejected_parameter_parameter(refusal, body, run->config->dialect->needed);
  json_t *names = name ? json_pack("[s]", name) : NULL;
  run->result.elsewhere = run->reply.elsewhere && !rejected_parameter_is_about_content(refusal);
  json_decref(body);
  if (names == NULL || json_array_size(run->without) >= LIMIT_REFUSED_COUNT) {
    json_decref(names);
    return false;
  }
  run_note(run, "%.300s: %s is left out from now on", run->result.message,
           json_string_value(json_array_get(names, 0)));
  json_object_set(json_array_get(run->notes, json_array_size(run->notes) - 1), "refused",
                  json_array_get(names, 0));
  run_leave_out(run, names);
  json_decref(names);
  api_remember(run->api, "without", run->config->name, run->model, json_clone(run->without));
  ask_anew(run, run->state);
  return true;
}

/* Makes a refused request again, without a parameter or on the next rung. Returns false if it stays
 * refused. */
static bool run_ask_otherwise(struct api_run *run) {
  const struct reply *r = &run->reply;
  const struct rejected_parameter refusal = {.param = r->param, .message = r->message};
  char why[480];
  if (r->status == 403 && run->config->stream && strcasestr(r->message, "stream") != NULL) {
    size_t n = strlen(run->result.message);
    print_into(run->result.message + n, sizeof run->result.message - n,
               ": stream: false in providers.%s of your config.yaml asks without",
               run->config->name);
  }
  if (run->result.class == CLASS_AUTH && run_ask_key_again(run))
    return true;
  if ((run->config->quirks & QUIRK_REQUIRE_PARAMETERS) && r->status == 404 &&
      strcasestr(r->message, "parameters") != NULL && /* no host behind it knows them all */
      drop_parameter(run, &(struct rejected_parameter){.param = "reasoning", .message = ""}))
    return true;
  if (run->result.class != CLASS_BAD_REQUEST || (r->status != 400 && r->status != 422))
    return false;
  if (run_ask_with_less(run) ||
      (run->result.class == CLASS_BAD_REQUEST && drop_parameter(run, &refusal)))
    return true;
  bool formed = run->state == RUN_STATE_ANSWER && run->schema != NULL && run->rung != RUNG_PROMPT;
  if (formed && rejected_parameter_is_about_schema(&refusal)) {
    print_into(why, sizeof why, "%.450s", run->result.message);
    run->remember = true;
    if (run_step_down(run, why))
      return true;
  }
  return false;
}

/* Returns true if the session asks for a correction of what does not fit. */
static bool run_is_corrected(const struct api_run *run) {
  enum call_purpose purpose = run->request->purpose;
  return purpose == PURPOSE_EXECUTE ||
         (purpose == PURPOSE_REASK && run->request->stage == STAGE_COUNT);
}

/* Chooses the rung to begin with; false: the result says why there is none. */
static bool run_choose_rung(struct api_run *run) {
  const struct api_config *config = run->config;
  const json_t *known;
  const char *why;
  if (run->request->schema == NULL)
    return true;
  run->schema = api_schema_get(run->api->schemas, run->request->schema, config->preset,
                               config->think_mode == THINK_MODE_FIELD && run_wants_thinking(run));
  run->rungs = api_schema_rungs(run->schema, config->rungs, &why);
  known = api_recall(run->api, "rung", config->name, run->model);
  run->rung = known ? (enum rung)json_integer_value(known) : RUNG_NATIVE;
  /* Engines make a grammar of a schema that begins with the first token; ours has a place for
   * thoughts. */
  if (known == NULL && config->think_mode == THINK_MODE_AUTO && run_wants_thinking(run) &&
      (run->rungs & RUNG_BIT(RUNG_GRAMMAR)))
    run->rung = RUNG_GRAMMAR;
  run->rung = rung_at_or_below(run->rungs, run->rung);
  run->first_rung = run->rung;
  known = api_recall(run->api, "correction", run->request->session, run->model);
  if (run->request->purpose == PURPOSE_REASK && run_is_corrected(run) && known != NULL) {
    run->rung = rung_at_or_below(run->rungs, (enum rung)json_integer_value(known));
    run->remember = config->local;
  }
  if (run->rung == RUNG_COUNT) {
    call_result_fail(&run->result, CLASS_BAD_REQUEST, "%s: schema_mode allows one way only, and %s",
                     config->name, why ? why : "it is not possible here");
    return false;
  }
  if (why != NULL)
    run_note(run, "%s: it goes as %s", why, rung_name(run->rung));
  return true;
}

/* --- what came --- */

/* Adds the request's cost to that of the ones before. */
static void add_usage(struct api_run *run) {
  json_t *usage = reply_usage_json(&run->reply);
  if (run->usage == NULL) {
    run->usage = usage;
    return;
  }
  JSON_MEMBERS(usage, name, value) {
    const json_t *before = json_object_get(run->usage, name);
    double sum = json_number_value(before) + json_number_value(value);
    json_object_set_new(run->usage, name,
                        json_is_real(value) ? json_real(sum) : json_integer((json_int_t)sum));
  }
  json_decref(usage);
}

/* An answer that will be corrected was not kept to the schema: the correction goes on the next
 * rung. */
static void run_note_loose(struct api_run *run, const char *why) {
  enum rung below = run->rung == run->first_rung ? run->rung + 1 : RUNG_PROMPT;
  enum rung next = rung_at_or_below(run->rungs, below);
  if (next == RUNG_COUNT)
    return;
  run_note(run, "%s: a correction goes as %s", why, rung_name(next));
  api_remember(run->api, "correction", run->request->session, run->model, json_integer(next));
}

/* Reads the structured value. Returns false if another request was sent. */
static bool read_structured(struct api_run *run) {
  struct reply *r = &run->reply;
  struct api_value found = {.fit = API_FIT_LOOSE};
  if (run->rung != RUNG_TOOL || r->has_tool)
    api_schema_find(run->schema, run->rung, buf_view(r->has_tool ? &r->tool : &r->text), &found);
  if (found.fit == API_FIT_LOOSE && run->rung != RUNG_PROMPT) {
    char why[120];
    print_into(why, sizeof why, "the answer was not kept to the schema (%s)", rung_name(run->rung));
    /* A server on this machine will always behave like this; a vendor's model may do better next
     * time. */
    run->remember = run->config->local;
    if (run_is_corrected(run))
      run_note_loose(run, why);
    else if (run->rung == run->first_rung && run_step_down(run, why)) {
      json_decref(found.value);
      return false;
    }
  }
  run->result.structured = found.value;
  return true;
}

/* Takes what the exchange itself has to say if the reply says nothing. */
static void run_read_end(struct api_run *run, const struct http_end *end) {
  struct reply *r = &run->reply;
  bool whole = end->kind == HTTP_END_COMPLETE || end->kind == HTTP_END_STOPPED;
  const char *hint = "";
  if (end->status >= 200)
    reply_end(r, whole);
  bool answered = end->status >= 200 && r->class == CLASS_NONE && r->over;
  if (whole || answered) {
    if (r->class != CLASS_NONE)
      call_result_fail(&run->result, r->class, "%s: %s", run->config->name, r->message);
    run->result.elsewhere = r->elsewhere && r->class == CLASS_BAD_REQUEST;
    run->result.retry_after_ms = r->retry_after_ms;
    return;
  }
  if (end->status >= 400 && end->kind != HTTP_END_CANCELLED) { /* cut within an error's body */
    call_result_fail(&run->result, r->class, "%s: %s", run->config->name, r->message);
    return;
  }
  if (end->kind == HTTP_END_NETWORK && run->config->local)
    hint = ": is the server running?";
  call_result_fail(&run->result, api_end_class(end->kind), "%s (%s): %s%s", run->config->name,
                   run->config->base_url, end->message, hint);
}

static bool wanted_but_not_thought(const struct api_run *run) {
  const json_t *sent = think_to_send(run);
  return sent != NULL && !json_is_false(sent) && !run->reply.thought &&
         run->config->dialect != &dialect_openai_responses && run->state == RUN_STATE_ANSWER &&
         run->thinking != RUN_THINKING_CAME;
}

/* Settles a finished reply of RUN_STATE_THINK or RUN_STATE_ANSWER. */
static void run_settle(struct api_run *run, const struct http_end *end) {
  struct reply *r = &run->reply;
  run_read_end(run, end);
  add_usage(run);
  note_request(run);
  enum error_class class = run->result.class;
  if (run->state == RUN_STATE_ANSWER && run->schema != NULL)
    run->result.enforced = rung_name(run->rung);
  if (run_ask_otherwise(run) || run_ask_with_room(run))
    return;
  size_t sent = make_prompt(run).n;
  if (class == CLASS_NONE && r->dialect == &dialect_ollama && r->input > 0 &&
      sent > 2 * LIMIT_OLLAMA_WINDOW && (uint64_t)r->input * 8 < sent)
    run_note(run, "the server read %lld tokens of a prompt of %zu bytes: its window is too small",
             (long long)r->input, sent);
  if (run->state == RUN_STATE_ANSWER && run->schema != NULL && run->remember &&
      run->rung != run->first_rung && class != CLASS_BAD_REQUEST)
    api_remember(run->api, "rung", run->config->name, run->model, json_integer(run->rung));
  if (class == CLASS_NONE && run->state == RUN_STATE_THINK) {
    run->thinking = r->thought ? RUN_THINKING_CAME : RUN_THINKING_PLAIN;
    if (!r->thought)
      run_note(run, "thinking was asked for and none came");
    buf_str(&run->thoughts, buf_view(&r->text));
    run_end_request(run);
    if (!run_ask(run, RUN_STATE_ANSWER))
      run_finish(run);
    return;
  }
  if (class == CLASS_NONE && wanted_but_not_thought(run))
    run_note(run, "thinking was asked for and none came");
  if (class == CLASS_NONE && json_is_false(wanted_thinking(run)) &&
      (r->thought || r->reasoning > 0))
    run_note(run, "think: false was asked for, and it thought all the same");
  if (class == CLASS_NONE && run->schema != NULL && !read_structured(run))
    return;
  if (r->mended)
    print_into(run->result.note, sizeof run->result.note,
               "its reply had bytes that are not UTF-8: they are U+FFFD here");
  struct buf *from = r->text.n == 0 && r->has_tool ? &r->tool : &r->text;
  struct call_result *result = &run->result;
  result->dropped_bytes = from->dropped;
  result->text.bytes = *from;
  result->text.bytes.max = 0;
  buf_say_cut(&result->text.bytes);
  *from = (struct buf){0};
  run_finish(run);
}

static void run_on_done(void *ctx, const struct http_end *end) {
  struct api_run *run = ctx;
  run->exchange = NULL;
  tell_notes(run);
  if (run->state != RUN_STATE_VERSION) {
    run_settle(run, end);
    return;
  }
  if (end->kind != HTTP_END_CANCELLED) {
    json_t *doc = NULL;
    if (end->kind == HTTP_END_COMPLETE && end->status == 200)
      doc = json_loadb(buf_c(&run->version), run->version.n, 0, NULL);
    const char *version = json_string_value(json_object_get(doc, "version"));
    api_remember(run->api, "version", run->config->base_url, "",
                 json_string(version ? version : "unknown"));
    json_decref(doc);
    wire_deinit(&run->wire);
    if (run_ask_first(run))
      return;
  } else {
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
  }
  run_finish(run);
}

/* --- start and cancel --- */

static bool run_begin(struct api_run *run, const struct provider_env *env) {
  const struct api_config *config = run->config;
  const struct call_request *request = run->request;
  struct err err = {0};
  if (request->model.n > 0)
    run->model = xstrndup(request->model.p, request->model.n);
  else if (config->model != NULL)
    run->model = xstrdup(config->model);
  if (!api_has_model(config, request->model, &err)) {
    run->result.elsewhere = true;
    call_result_fail(&run->result, CLASS_BAD_REQUEST, "%s", err.text);
    return false;
  }
  run->secrets = secrets_new();
  api_own_secrets(config, run->secrets);
  call_env_hide(run->secrets, env);
  run_leave_out(run, api_recall(run->api, "without", config->name, run->model));
  run_leave_out(run, request->refused);
  if (!run_choose_rung(run))
    return false;
  run->key_was_kept = config->key_command != NULL && key_command_known(run->api, config, &run->key);
  if (config->key_command == NULL || run->key_was_kept)
    return run_take_key(run);
  ask_program(run);
  return true;
}

/* Ends the run from the loop, with the result it has. */
static void run_finish_soon(struct api_run *run) {
  run_set_state(run, RUN_STATE_REFUSED);
  soon_start(&run->soon, run->api->loop, run_finish, run);
}

static struct provider_run *api_start(const struct provider *self, const struct provider_env *env,
                                      const struct call_request *request,
                                      const struct provider_sink *sink) {
  assert(env->api != NULL);
  assert(sink->done != NULL);
  struct api_run *run = xcalloc(1, sizeof *run);
  run->api = env->api;
  run->config = self->data;
  run->request = request;
  run->sink = *sink;
  run->reasoning.max = LIMIT_INLINE_TEXT_BYTES;
  run->started_ms = uv_now(env->loop);
  if (!run_begin(run, env))
    run_finish_soon(run);
  run->base.provider = self;
  return &run->base;
}

static void api_cancel(struct provider_run *base) {
  struct api_run *run = (struct api_run *)base;
  assert(base->provider->ops->cancel == api_cancel);
  run->cancelled = true;
  if (run->exchange != NULL)
    http_cancel(run->exchange);
  else if (run->state == RUN_STATE_REFUSED || run->state == RUN_STATE_KEY)
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
  if (run->state == RUN_STATE_KEY && key_command_leave(run->api, &run->waiter))
    run_finish_soon(run);
}

static const struct provider_ops api_ops = {.start = api_start, .cancel = api_cancel};

/* --- providers --- */

bool api_ready(const struct provider *provider, struct str model, struct err *err) {
  const struct api_config *config = provider->data;
  struct buf key = {0};
  if (provider->ops != &api_ops)
    return true;
  struct err missing, other;
  bool has_model = api_has_model(config, model, err),
       has_key = config->key_command != NULL || api_key_read(config, &key, &missing);
  api_key_wipe(&key);
  if (has_model && !has_key)
    *err = missing;
  else if (!has_key)
    other = *err, err_set(err, ERR_INVALID, "%.350s; %.350s", missing.text, other.text);
  return has_model && has_key;
}

static const struct held api_holds = {.edits = false, .run = HELD_RUN_NONE};

static bool api_add(struct provider_registry *registry, const struct preset *preset,
                    const char *name, const json_t *settings, struct err *err) {
  struct api_config *config = api_config_new(preset, name, settings, err);
  if (config == NULL)
    return false;
  const struct provider provider = {.capability = {.name = config->name,
                                                   .summary = config->summary,
                                                   .options = config->dialect->options,
                                                   .can_judge = true,
                                                   .held = &api_holds,
                                                   .takes_model = true,
                                                   .structured = "native",
                                                   .judge_effort = config->dialect->judge_effort},
                                    .ops = &api_ops,
                                    .data = config};
  registry_keep(registry, config, api_config_free);
  return registry_add(registry, &provider, err);
}

/* Reports an unknown type. Only a model API has a base URL. */
static bool unknown_type(const char *name, const char *type, struct err *err) {
  buf_auto_t names = {0};
  for (const struct preset *p = presets; p->name; p++)
    buf_printf(&names, "%s%s", names.n ? ", " : "", p->name);
  err_set(err, ERR_FILE, "providers.%s: %s%.40s%s: use one of %s", name,
          type ? "type \"" : "it has a base_url and no type", type ? type : "",
          type ? "\" is unknown" : "", buf_c(&names));
  return false;
}

bool api_has_preset(struct str name) {
  return preset_find(name) != NULL;
}

bool api_register(struct provider_registry *registry, const json_t *settings, struct err *err) {
  for (const struct preset *p = presets; p->name; p++) {
    const json_t *of_name = json_object_get(settings, p->name);
    const struct preset *named = p->lends_name ? preset_find(json_view_at(of_name, "type")) : NULL;
    if (registry_find(registry, str_from(p->name)) == NULL &&
        !api_add(registry, named ? named : p, p->name, of_name, err))
      return false;
  }
  JSON_MEMBERS(settings, name, own) {
    const char *type = json_string_value(json_object_get(own, "type"));
    bool is_preset = api_has_preset(str_from(name));
    if (registry_find(registry, str_from(name)) != NULL && !is_preset)
      continue; /* it belongs to an agent */
    if (is_preset) {
      if (type != NULL && str_from(type).n > 0 && !str_eq_c(str_from(type), name) &&
          !(preset_find(str_from(name))->lends_name && preset_find(str_from(type)) != NULL))
        return err_set(err, ERR_FILE,
                       "providers.%s: this name means %s: give your own another name", name, name);
      continue;
    }
    const struct preset *preset = preset_find(str_from(type));
    if (preset == NULL && (type != NULL || json_object_get(own, "base_url") != NULL))
      return unknown_type(name, type, err);
    if (preset == NULL) {
      /* Reports an unknown name: settings that nobody would read are typos. */
      struct buf names = {0};
      registry_names(registry, &names);
      err_set(err, ERR_FILE,
              "providers.%s: there is no such provider: an API of your own needs a type and a "
              "base_url, an agent a profile providers/%s.yaml; or use one of %s",
              name, name, buf_c(&names));
      buf_deinit(&names);
      return false;
    }
    if (!api_add(registry, preset, name, own, err))
      return false;
  }
  return true;
}

/* --- whether one is there: a short GET; for Ollama and llama.cpp another for its models --- */

struct probe {
  struct api *api;
  const struct api_config *config;
  api_probe_fn done;
  void *ctx;
  struct buf key, body;
  struct reply reply; /* for its class and message */
  struct wire wire;
  const char *path;
  struct soon soon;
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

static void api_probe_finish(void *ctx) {
  struct probe *p = ctx;
  p->done(p->ctx, &p->result);
  json_decref(p->result.models);
  api_key_wipe(&p->key);
  buf_deinit(&p->body);
  free(p);
}

/* Reads {"data": [{"id"}]}, {"models": [{"name"}]} or {"version"}. */
static void api_probe_read_document(struct probe *p) {
  json_auto_t *doc = json_loadb(buf_c(&p->body), p->body.n, 0, NULL);
  const json_t *list = json_object_get(doc, "data");
  const char *version = json_string_value(json_object_get(doc, "version"));
  if (!json_is_array(list))
    list = json_object_get(doc, "models");
  if (version != NULL)
    print_into(p->result.version, sizeof p->result.version, "%s", version);
  if (json_is_array(list)) {
    p->result.model_count = (long)json_array_size(list);
    if (p->result.models == NULL)
      p->result.models = json_array();
  }
  JSON_EACH((json_t *)list, i, model) {
    const json_t *name = json_object_get(model, "id");
    if (!json_is_string(name))
      name = json_object_get(model, "name");
    if (json_is_string(name) && json_array_size(p->result.models) < LIMIT_PROBE_MODELS)
      json_array_append(p->result.models, (json_t *)name);
  }
  if (doc == NULL && p->path == p->config->preset->probe_path)
    api_probe_say(p, CLASS_PROTOCOL, "%s%s answers, but not with JSON: is base_url right?",
                  p->result.base_url, p->path);
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
  char_auto_t *url = api_url(c, path);
  p->path = path;
  p->result.keyed = p->key.n > 0;
  reply_init(&p->reply, c->dialect, 0, NULL, NULL);
  if (c->dialect == &dialect_anthropic)
    anthropic_headers(&p->wire, api_version(c), buf_view(&p->key));
  else if (p->key.n > 0 && c->dialect == &dialect_gemini)
    wire_header(&p->wire, "x-goog-api-key", buf_view(&p->key));
  else
    wire_key(&p->wire, c->quirks, buf_view(&p->key));
  api_own_headers(c, &p->wire);
  api_fill_request(p->api, c, &request);
  request.url = url;
  request.headers = (const char *const *)p->wire.headers;
  request.connect_ms = LIMIT_HTTP_PROBE_MS;
  request.stall_ms = 0;
  request.total_ms = LIMIT_HTTP_PROBE_MS;
  request.max_bytes = LIMIT_STRUCTURED_BYTES * 4;
  (void)http_start(p->api->http, &request, &sink);
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
  p->result.model_count = -1;
  p->body.max = LIMIT_STRUCTURED_BYTES * 4;
  print_into(p->result.base_url, sizeof p->result.base_url, "%s", p->config->base_url);
  if (p->config->key_command && !key_command_known(api, p->config, &p->key)) {
    p->waiter.done = api_probe_on_key;
    key_command_ask(api, p->config, &p->waiter);
  } else if (api_key_read(p->config, &p->key, &err)) {
    api_probe_send_request(p, p->config->preset->probe_path);
  } else {
    api_probe_say(p, CLASS_AUTH, "%.250s", err.text);
    soon_start(&p->soon, api->loop, api_probe_finish, p);
  }
  return true;
}
