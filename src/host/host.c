/* Starts, opens and ends sessions, and hands events to the core. */
#include "host/host.h"

#include "base/log.h"
#include "core/answer.h"
#include "core/apply.h"
#include "format/json_value.h"
#include "host/reports.h"
#include "host/session.h"
#include "host/workflow_cache.h"
#include "os/clock.h"
#include "os/leftover.h"
#include "os/random.h"
#include "provider/api/api.h"
#include "store/recall.h"
#include "store/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- events --- */

/* Fills in the time and random bytes, which are fetched for many events at once and used once. */
static void fill_event(struct host *host, struct event *ev) {
  ev->time_ms = clock_real_ms();
  if (host->entropy_left < sizeof ev->entropy) {
    random_fill(host->entropy, sizeof host->entropy);
    host->entropy_left = sizeof host->entropy;
  }
  host->entropy_left -= sizeof ev->entropy;
  memcpy(ev->entropy, host->entropy + host->entropy_left, sizeof ev->entropy);
}

static json_t *host_prepare(void *ctx, const struct call_request *request,
                            const json_t *token_counts, const unsigned char entropy[16]) {
  const struct session *s = ctx;
  const struct provider *p = registry_find(s->registry, request->provider);
  return p && p->ops->prepare ? p->ops->prepare(p, &s->env, request, token_counts, entropy) : NULL;
}

static bool host_day_refuses(void *ctx, struct str provider, bool begun, struct budget_hit *hit) {
  const struct session *s = ctx;
  return day_book_refuses(&s->host->day, day_set_of(s->registry), provider, begun, hit);
}

static bool host_day_notes(void *ctx, struct str provider, struct budget_hit *hit) {
  const struct session *s = ctx;
  return day_book_near(&s->host->day, day_set_of(s->registry), provider, hit);
}

static void host_day_count(void *ctx, struct str provider, const struct spend *spend) {
  const struct session *s = ctx;
  const int64_t used[BUDGET_UNITS] = {[BUDGET_TOKENS] = spend->input + spend->output,
                                      [BUDGET_COST] = spend->cost_nano,
                                      [BUDGET_TIME] = spend->duration_ms,
                                      [BUDGET_CALLS] = spend->begun};
  day_book_add(&s->host->day, provider, used);
}

static void core_env_of(struct session *s, struct core_env *env) {
  *env = (struct core_env){.providers = registry_capabilities(s->registry),
                           .schemas = &s->host->schemas,
                           .templates = s->host->templates,
                           .prepare = host_prepare,
                           .day_refuses = day_set_of(s->registry) ? host_day_refuses : NULL,
                           .day_count = day_set_of(s->registry) ? host_day_count : NULL,
                           .day_notes = day_set_of(s->registry) ? host_day_notes : NULL,
                           .ctx = s,
                           .attended = s->host->attended,
                           .draining = s->host->draining};
}

/* Takes a decision's outcome into the batch that is being filled. */
static void host_gather(struct session *s, struct core_out *out) {
  struct session_batch *b = &s->filling;
  if (out->record_count > 0) {
    b->records = xrealloc(b->records, (b->record_count + out->record_count) * sizeof *b->records);
    memcpy(b->records + b->record_count, out->records, out->record_count * sizeof *b->records);
    b->record_count += out->record_count;
  }
  if (out->effect_count > 0) {
    b->effects = xrealloc(b->effects, (b->effect_count + out->effect_count) * sizeof *b->effects);
    memcpy(b->effects + b->effect_count, out->effects, out->effect_count * sizeof *b->effects);
    b->effect_count += out->effect_count;
  }
  free(out->records);
  free(out->effects);
  *out = (struct core_out){0};
}

static const unsigned next_lives[] = {
#define SL(name)            (1u << LIFE_##name)
#define SL_NEXT(name, next) next,
    SESSION_LIVES(SL_NEXT)
#undef SL_NEXT
};

void session_set_life(struct session *s, enum session_life life) {
  assert(next_lives[s->life] & (1u << life));
  s->life = life;
}

bool session_is_leaving(const struct session *s) {
  return s->life == LIFE_FINISHING || s->life == LIFE_BROKEN || s->life == LIFE_FINISHED;
}

void session_event(struct session *s, struct event *ev) {
  struct core_env env;
  struct core_out out;
  if (s->life == LIFE_BROKEN || s->life == LIFE_FINISHED)
    return;
  fill_event(s->host, ev);
  core_env_of(s, &env);
  core_decide(&s->core, ev, &env, &out);
  host_gather(s, &out);
  if (ev->kind == EVENT_CALL_END && s->calls.count > 0)
    session_flush_soon(s);
  else
    session_flush(s);
}

void session_maybe_finish(struct session *s) {
  if (!session_is_leaving(s) || s->life == LIFE_FINISHED || s->in_flight || s->delivering ||
      s->calls.count > 0 || s->waits.count > 0 || s->jobs.count > 0 || s->filling.record_count > 0)
    return;
  session_give_folder(s);
  process_table_forget(s->host->processes, s->core.session);
  session_set_life(s, LIFE_FINISHED);
  if (s->watcher && s->watcher->finished)
    s->watcher->finished(s->watcher_ctx, s);
}

/* --- sessions --- */

bool host_init(struct host *host, uv_loop_t *loop, struct store *store,
               const struct provider_registry *registry, struct err *err) {
  *host = (struct host){.loop = loop,
                        .store = store,
                        .registry = registry,
                        .disk_full_wait_ms = LIMIT_DISK_FULL_WAIT_MS,
                        .workflows = workflow_cache_new()};
  if (chain_schemas_init(&host->schemas, err)) {
    host->processes = process_table_new(loop, err);
    if (host->processes != NULL) {
      host->api = api_new(loop, host->processes);
      host->templates = prompt_templates_new();
      sealer_init(&host->sealer, loop, store);
      gate_init(&host->gate, loop, registry, store, session_on_gate);
      day_book_init(&host->day);
      folder_queue_init(&host->folders, loop);
      return true;
    }
    chain_schemas_deinit(&host->schemas);
  }
  workflow_cache_free(host->workflows);
  return false;
}

void host_deinit(struct host *host) {
  assert(host->session_count == 0);
  day_book_deinit(&host->day);
  sealer_deinit(&host->sealer);
  gate_deinit(&host->gate);
  folder_queue_deinit(&host->folders);
  api_free(host->api);
  process_table_free(host->processes);
  prompt_templates_free(host->templates);
  chain_schemas_deinit(&host->schemas);
  workflow_cache_free(host->workflows);
  *host = (struct host){0};
}

/* Makes a new id. Within a millisecond (and while the clock is behind) a counter of 12 bits keeps
 * the order. */
void session_id_new(struct host *host, char out[STORE_ID_BYTES]) {
  enum { COUNTS = 1 << 12 };
  unsigned char b[16];
  uint64_t ms = (uint64_t)clock_real_ms();
  random_fill(b, sizeof b);
  if (ms > host->id_ms) {
    host->id_ms = ms;
    host->id_count = b[7]; /* it starts low, so that there is room to count up */
  } else if (++host->id_count == COUNTS) {
    host->id_ms++;
    host->id_count = 0;
  }
  for (int i = 0; i < 6; i++)
    b[i] = (unsigned char)(host->id_ms >> (40 - 8 * i));
  b[6] = (unsigned char)(0x70 | (host->id_count >> 8));
  b[7] = (unsigned char)(host->id_count & 0xFF);
  b[8] = (unsigned char)(0x80 | (b[8] & 0x3F));
  char *p = out;
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *p++ = '-';
    p += snprintf(p, 3, "%02x", b[i]);
  }
}

void session_ids_after(struct host *host, const char *id) {
  unsigned long long high, low, count;
  if (sscanf(id, "%8llx-%4llx-7%3llx-", &high, &low, &count) != 3)
    return;
  uint64_t ms = high << 16 | low;
  if (ms < host->id_ms || (ms == host->id_ms && count < host->id_count))
    return;
  host->id_ms = ms;
  host->id_count = (unsigned)count;
}

static void on_handle_closed(uv_handle_t *handle) {
  struct session *s = handle->data;
  if (--s->open_handles == 0)
    free(s);
}

struct session *session_new(struct host *host, const struct watcher *watcher, void *ctx) {
  struct session *s = xcalloc(1, sizeof *s);
  s->host = host;
  s->registry = host->registry;
  s->watcher = watcher;
  s->watcher_ctx = ctx;
  core_init(&s->core);
  uv_timer_init(host->loop, &s->disk_timer);
  uv_timer_init(host->loop, &s->soon);
  s->disk_timer.data = s->soon.data = s;
  s->open_handles = 2;
  host->session_count++;
  return s;
}

void session_free(struct session *s) {
  if (s == NULL)
    return;
  session_leave_gate(s, 0);
  session_give_folder(s);
  assert(s->calls.count == 0 && s->waits.count == 0 && s->jobs.count == 0 && !s->in_flight);
  store_close(s->log);
  batch_clear(&s->filling);
  batch_clear(&s->flying);
  buf_deinit(&s->now_lines);
  free(s->now_err);
  free(s->broken_err);
  json_decref(s->cut);
  free(s->paused);
  free(s->unseen);
  json_decref(s->reports_written);
  for (struct work_place *place = s->places, *next; place; place = next) {
    next = place->next;
    free(place->cwd);
    free(place);
  }
  core_deinit(&s->core);
  s->host->session_count--;
  uv_close((uv_handle_t *)&s->disk_timer, on_handle_closed);
  uv_close((uv_handle_t *)&s->soon, on_handle_closed);
}

static void use_setup(struct session *s, const struct session_setup *setup) {
  s->scenario_used = 0;
  s->own_folders[0] = s->host->store ? s->host->store->where : NULL;
  s->env = (struct provider_env){.loop = s->host->loop,
                                 .processes = s->host->processes,
                                 .cwd = setup->cwd,
                                 .pass_env = setup->pass_env,
                                 .scenario = setup->scenario,
                                 .scenario_used = &s->scenario_used,
                                 .api = s->host->api};
}

/* Returns the configuration for the first record. In a shared store it also says who may take the
 * session. */
static json_t *config_of(const struct host *host, const struct session_params *params,
                         const char *id) {
  json_t *config = reports_config(host, params->workflow, id, params->config);
  json_t *home = NULL;
  if (host->store != NULL && json_object_get(config, "on") == NULL)
    home = worker_home(host->store);
  if (home == NULL)
    return config;
  json_t *own = config != NULL ? json_clone_top(config) : json_object();
  json_object_set_new(own, "on", home);
  json_decref(config);
  return own;
}

struct session *host_start(struct host *host, const struct session_params *params,
                           const struct watcher *watcher, void *ctx, struct err *err) {
  struct session *s = session_new(host, watcher, ctx);
  struct event ev = {.kind = EVENT_RESUME};
  struct core_env env;
  struct core_out out;
  char id[STORE_ID_BYTES];
  struct text task = {0};
  session_id_new(host, id);
  use_setup(s, &params->setup);
  buf_str(&task.bytes, params->task);
  bool ok = true;
  if (params->task_blob != NULL && params->task_blob[0])
    memcpy(task.blob, params->task_blob, SHA256_HEX);
  else if (host->store != NULL && text_needs_blob(params->task))
    ok = store_blob_put(host->store, params->task, task.blob, err);
  if (ok && host->store != NULL) {
    const json_t *on = json_object_get(params->config, "on");
    if (host->sync_now && on == NULL)
      s->log = store_create(host->store, id, err);
    else /* elsewhere, not on the loop that many share */
      s->log = store_create_later(host->store, id, err);
    ok = s->log != NULL;
    if (ok)
      worker_place(s->log, on);
  }
  if (!ok) {
    text_deinit(&task);
    session_free(s);
    return NULL;
  }
  json_t *config = config_of(host, params, id);
  const struct core_params core_params = {.session = id,
                                          .workflow = params->workflow,
                                          .workflow_path = params->workflow_path,
                                          .task = &task,
                                          .config = config,
                                          .hold = params->hold,
                                          .facets = params->facets,
                                          .parent = params->parent};
  fill_event(host, &ev);
  core_env_of(s, &env);
  core_start(&s->core, &core_params, &ev, &env, &out);
  text_deinit(&task);
  json_decref(config);
  host_gather(s, &out);
  session_flush(s);
  reports_write(s); /* for a fork, the ones that it takes over */
  session_set_life(s, LIFE_RUNNING);
  return s;
}

/* Ends what was started for a call and outlived its shim, before the call is repeated or the
 * session ends. */
static void end_leftovers(struct session *s) {
  char text[128];
  size_t n = s->may_have_leftovers ? leftover_end(s->core.session) : 0;
  s->may_have_leftovers = false;
  if (n == 0)
    return;
  (void)snprintf(text, sizeof text, "%zu process%s of its last run %s ended", n, n == 1 ? "" : "es",
                 n == 1 ? "was" : "were");
  session_trouble(s, text);
}

bool host_go(struct session *s, setup_fn choose, void *choose_ctx, const char *reason,
             const struct core_steer *steer, struct err *err) {
  if (s->life == LIFE_FINISHED)
    return true;
  const json_t *config = steer && steer->config ? steer->config : s->core.config;
  if (!choose(choose_ctx, config, &s->setup, err) || !session_recall(s, err))
    return false;
  use_setup(s, &s->setup);
  end_leftovers(s);
  session_set_life(s, LIFE_OPENING);
  reports_recover(s);
  struct event ev = {.kind = EVENT_RESUME,
                     .reason = s->core.status == SESSION_RUNNING ? "crash" : reason,
                     .steer = steer,
                     .cut = s->cut,
                     .worker = worker_json(s->log)};
  bool begins = s->core.seq == (s->core.carried ? 2 : 1);
  if (begins && s->cut == NULL && (steer == NULL || json_object_size(steer->changed) == 0) &&
      json_is_true(json_object_get(s->core.config, "submitted")))
    ev.kind = EVENT_BEGIN;
  session_event(s, &ev);
  json_decref(ev.worker);
  session_set_life(s, LIFE_RUNNING);
  return true;
}

void host_begin(struct session *s) {
  struct event ev = {.kind = EVENT_BEGIN};
  session_event(s, &ev);
}

void host_accept(struct session *s, const char *reason, const struct core_steer *steer) {
  struct event ev = {.kind = EVENT_ACCEPT, .reason = reason, .steer = steer};
  session_set_life(s, LIFE_STOPPING); /* somebody is waiting for the answer */
  session_event(s, &ev);
}

bool host_reply(struct session *s, struct core_answer *answer, uint64_t *question,
                struct err *err) {
  bool goes = s->env.loop != NULL;
  bool stopped = goes && s->core.status == SESSION_STOPPED; /* the answer comes behind its stop */
  struct event ev = {.kind = EVENT_ANSWER, .answer = answer, .hold = !goes || stopped};
  bool leaves = session_is_leaving(s) && s->core.status != SESSION_ENDED;
  bool ok = !leaves || err_set(err, ERR_LOCKED, "it is stopping right now: try again");
  ok = ok && core_answer_settle(&s->core, answer, clock_real_ms(), err);
  if (ok)
    *question = core_turn(&s->core, answer->turn)->question_seq;
  if (ok && !goes) /* somebody is waiting for it */
    session_set_life(s, LIFE_STOPPING);
  if (ok)
    session_event(s, &ev);
  core_answer_deinit(answer);
  return ok;
}

void host_drain(struct session *s) {
  struct event ev = {.kind = EVENT_DRAIN};
  session_event(s, &ev);
  if (s->calls.count == 0 &&
      s->jobs.count == 0) /* all of them have left, or it only waits for space on the disk */
    host_stop(s, "shutdown", "the program that ran it was stopped");
}

void host_stop(struct session *s, const char *reason, const char *message) {
  struct event ev = {.kind = EVENT_STOP, .reason = reason, .message = message};
  if (s->life == LIFE_RUNNING)
    session_set_life(s, LIFE_STOPPING);
  session_event(s, &ev);
  if (s->full_since != 0 && uv_is_active((uv_handle_t *)&s->disk_timer)) {
    struct err err;
    uv_timer_stop(&s->disk_timer);
    (void)err_set(&err, ERR_FULL, "stopped while the disk was full");
    session_break(s, &err, true);
  }
}

bool host_stop_poison(struct session *s) {
  char message[512];
  const char *died;
  unsigned deaths = worker_deaths(s->log, &died);
  if (deaths < LIMIT_STORE_DEATHS || s->core.status != SESSION_RUNNING)
    return false;
  (void)snprintf(
      message, sizeof message,
      "%u workers died while they had it, and no turn ended between; the last was %.300s", deaths,
      died);
  end_leftovers(s);
  host_stop(s, "poison", message);
  return true;
}

void host_lost(struct session *s, const char *why) {
  struct err err;
  bool waits = s->full_since != 0 && uv_is_active((uv_handle_t *)&s->disk_timer);
  if (s->life == LIFE_FINISHED || s->life == LIFE_BROKEN || s->log == NULL)
    return;
  if (waits)
    uv_timer_stop(&s->disk_timer);
  (void)err_set(&err, ERR_LOCKED, "%s", why);
  session_break(s, &err, waits);
}

void host_cancel(struct session *s, const char *message) {
  struct event ev = {.kind = EVENT_CANCEL, .message = message};
  end_leftovers(s);
  session_event(s, &ev);
}

void host_answer_with(struct session *s, struct call_result *result) {
  for (struct turn *turn = s->core.turns; turn; turn = turn->next) {
    const struct call *call = turn_execute_call(turn);
    if (call == NULL || call->state != CALL_RUNNING)
      continue;
    session_call_done(session_open_call(s, call->id), result);
    return;
  }
}

void host_answer(struct session *s, struct str text) {
  struct call_result result = {0};
  buf_str(&result.text.bytes, text);
  host_answer_with(s, &result);
  call_result_deinit(&result);
}

const struct core *session_core(const struct session *s) {
  return &s->core;
}

void session_refuse(struct session *s) {
  if (s->log != NULL)
    worker_refuse(s->log);
}

const char *session_asked(const struct session *s) {
  return worker_asked(s->log);
}

const char *session_log_name(const struct session *s) {
  return s->log ? store_log_name(s->log) : "";
}

const struct err *session_broken(const struct session *s) {
  return s->broken_err;
}

const char *session_paused(const struct session *s) {
  return s->paused;
}

uint64_t session_log_bytes(const struct session *s) {
  return s->log ? store_log_bytes(s->log) : 0;
}

bool session_settle(struct session *s, struct err *err) {
  return s->log == NULL || store_log_settle(s->log, err);
}

uint64_t session_recovered(const struct session *s) {
  return s->recovered_seq;
}
