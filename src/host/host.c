/* Starts, opens and ends sessions, hands events to the core, and makes what it decides durable with
 * one write and one sync a batch, before the effects run. */
#include "host/host.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/answer.h"
#include "core/apply.h"
#include "format/json_value.h"
#include "host/backends.h"
#include "host/session.h"
#include "host/workflow_cache.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/memory.h"
#include "os/orphans.h"
#include "os/random.h"
#include "os/sandbox.h"
#include "provider/api/api.h"
#include "store/resolve_text.h"
#include "store/worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the ledger writer ---
 *
 * Enters the heads of sessions that stop or end in the ledger of their store.
 *
 *   ledger_writer_init(&sl, loop, store)        store NULL: nothing is kept
 *   ledger_writer_add(&sl, &entry, now)  after the record is durable; now: on this thread, at once
 *   ledger_writer_deinit(&sl)                   nothing is under way: the loop has ended
 *
 * One sync covers everything gathered since the last one, and syncs begin at least
 * LIMIT_LEDGER_SYNC_MS apart. The loop stays alive until everything is written. An entry that
 * cannot be written is reported once and made late: when the session is opened again, or the next
 * daemon starts. */

static void ledger_writer_start(struct ledger_writer *sl);

static void ledger_writer_work(uv_work_t *work) {
  struct ledger_writer *sl = work->data;
  sl->failed = !ledger_append(sl->store, sl->flying, sl->flying_count, &sl->err);
}

static void ledger_writer_over(struct ledger_writer *sl) {
  if (sl->failed)
    log_warn("%s: sessions that ended stay unsealed until they are seen again", sl->err.text);
  free(sl->flying);
  sl->flying = NULL;
  sl->flying_count = 0;
}

static void after_seal(uv_work_t *work, int status) {
  struct ledger_writer *sl = work->data;
  assert(status == 0); /* work is never cancelled */
  ledger_writer_over(sl);
  ledger_writer_start(sl);
}

static void ledger_writer_take(struct ledger_writer *sl) {
  assert(sl->flying == NULL);
  sl->flying = sl->waiting;
  sl->flying_count = sl->waiting_count;
  sl->waiting = NULL;
  sl->waiting_count = 0;
  sl->begun_ms = uv_now(sl->loop);
  sl->work.data = sl;
}

static void on_seal_timer(uv_timer_t *timer) {
  ledger_writer_start(timer->data);
}

static void ledger_writer_start(struct ledger_writer *sl) {
  if (sl->waiting_count == 0 || sl->flying != NULL)
    return;
  uint64_t passed = uv_now(sl->loop) - sl->begun_ms;
  if (sl->begun_ms != 0 && passed < LIMIT_LEDGER_SYNC_MS) {
    uv_timer_start(sl->timer, on_seal_timer, LIMIT_LEDGER_SYNC_MS - passed, 0);
    return;
  }
  ledger_writer_take(sl);
  loop_work(sl->loop, &sl->work, ledger_writer_work, after_seal);
}

static void ledger_writer_add(struct ledger_writer *sl, const struct ledger_entry *entry,
                              bool now) {
  assert(sl->store != NULL);
  sl->waiting = xrealloc(sl->waiting, (sl->waiting_count + 1) * sizeof *sl->waiting);
  sl->waiting[sl->waiting_count++] = *entry;
  if (!now || sl->flying != NULL || sl->begun_ms != 0) {
    ledger_writer_start(sl);
    return;
  }
  ledger_writer_take(sl);
  ledger_writer_work(&sl->work);
  ledger_writer_over(sl);
}

void ledger_writer_add_late(struct ledger_writer *sl, const struct heads *heads,
                            const struct summary *b, bool now) {
  const struct ledger_entry *last = heads_last(heads, b->session);
  struct ledger_entry entry = {.late = true, .seq = b->seq};
  bool stopped = summary_is_stopped(b);
  if (strcmp(b->status, "running") == 0 || strlen(b->hash) != SHA256_HEX - 1 ||
      strlen(b->session) != STORE_ID_BYTES - 1 || (last != NULL && last->seq >= b->seq))
    return;
  entry.kind = stopped ? LEDGER_STOP : LEDGER_END;
  memcpy(entry.session, b->session, sizeof entry.session);
  memcpy(entry.hash, b->hash, sizeof entry.hash);
  ledger_writer_add(sl, &entry, now);
}

static void on_seal_timer_closed(uv_handle_t *handle) {
  free(handle);
}

static void ledger_writer_init(struct ledger_writer *sl, uv_loop_t *loop, struct store *store) {
  *sl = (struct ledger_writer){.loop = loop, .store = store, .timer = xmalloc(sizeof *sl->timer)};
  uv_timer_init(loop, sl->timer);
  sl->timer->data = sl;
}

/* --- host --- */

/* Sends the batch that is being filled, unless one is in flight. */
static void session_flush(struct session *s);
/* Does the same once the loop has reported what else ended at this moment, so that siblings share a
 * sync. */
static void session_flush_soon(struct session *s);

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
  return daily_usage_refuses(&s->host->day, day_set_of(s->registry), provider, begun, hit);
}

static bool host_day_notes(void *ctx, struct str provider, struct budget_hit *hit) {
  const struct session *s = ctx;
  return daily_usage_near(&s->host->day, day_set_of(s->registry), provider, hit);
}

static void host_day_count(void *ctx, struct str provider, const struct spend *spend) {
  const struct session *s = ctx;
  const int64_t used[BUDGET_UNITS] = {[BUDGET_TOKENS] = spend->input + spend->output,
                                      [BUDGET_COST] = spend->cost_nano,
                                      [BUDGET_TIME] = spend->duration_ms,
                                      [BUDGET_CALLS] = spend->begun};
  daily_usage_add(&s->host->day, provider, used);
}

static bool host_has_answered(void *ctx, struct str provider) {
  const struct session *s = ctx;
  const struct provider *p = registry_find(s->registry, provider);
  return p != NULL && backends_answered(p);
}

static void core_env_of(struct session *s, struct core_env *env) {
  *env = (struct core_env){.providers = registry_capabilities(s->registry),
                           .schemas = &s->host->schemas,
                           .templates = s->host->templates,
                           .prepare = host_prepare,
                           .day_refuses = day_set_of(s->registry) ? host_day_refuses : NULL,
                           .day_count = day_set_of(s->registry) ? host_day_count : NULL,
                           .day_notes = day_set_of(s->registry) ? host_day_notes : NULL,
                           .has_answered = host_has_answered,
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
  ruleset_cache_forget(s->host->sandboxes, s->core.session);
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
      host->sandboxes = ruleset_cache_new(host->processes);
      host->api = api_new(loop, host->processes);
      host->templates = prompt_templates_new();
      ledger_writer_init(&host->sealer, loop, store);
      call_queue_init(&host->gate, loop, registry, store, session_on_gate);
      daily_usage_init(&host->day);
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
  daily_usage_deinit(&host->day);
  struct ledger_writer *sl = &host->sealer;
  assert(sl->flying == NULL);
  if (sl->waiting_count > 0 && !ledger_append(sl->store, sl->waiting, sl->waiting_count, &sl->err))
    log_warn("%s: sessions that ended stay unsealed until they are seen again", sl->err.text);
  free(sl->waiting);
  uv_close((uv_handle_t *)sl->timer, on_seal_timer_closed);
  call_queue_deinit(&host->gate);
  folder_queue_deinit(&host->folders);
  api_free(host->api);
  ruleset_cache_free(host->sandboxes);
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

static struct session *session_new(struct host *host, const struct watcher *watcher, void *ctx) {
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

static void records_clear(struct session_batch *b) {
  for (size_t i = 0; i < b->record_count; i++)
    record_free(b->records[i]);
  free(b->records);
  b->records = NULL;
  b->record_count = 0;
}

static void batch_clear(struct session_batch *b) {
  records_clear(b);
  free(b->effects);
  *b = (struct session_batch){0};
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
                                 .sandboxes = s->host->sandboxes,
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
  size_t n = s->may_have_leftovers ? orphan_end(s->core.session) : 0;
  s->may_have_leftovers = false;
  if (n == 0)
    return;
  print_into(text, sizeof text, "%zu process%s of its last run %s ended", n, n == 1 ? "" : "es",
             n == 1 ? "was" : "were");
  session_trouble(s, text);
}

static json_t *read_back(void *ctx, uint64_t seq, struct err *err) {
  return store_read(ctx, seq, err);
}

/* Reads the prompts of calls from before the recovery back into memory: prepare and the provider
 * need them. */
static bool session_recall(struct session *s, struct err *err) {
  const struct resolve recall = {s->log, read_back, s->host->store};
  if (s->recalled)
    return true;
  s->recalled = true;
  for (struct turn *turn = s->core.turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next) {
      if (call->state == CALL_DONE)
        continue;
      json_t *record = store_read(s->log, call->prompt_seq, err);
      bool ok = record != NULL &&
                resolve_parts(&recall, json_object_get(record, "prompt"), &call->prompt, err);
      json_decref(record);
      if (!ok)
        return err_wrap(err, "the prompt of call %ld cannot be read back", call->id);
    }
  return true;
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
    err_set(&err, ERR_FULL, "stopped while the disk was full");
    session_break(s, &err, true);
  }
}

bool host_stop_poison(struct session *s) {
  char message[512];
  const char *died;
  unsigned deaths = worker_deaths(s->log, &died);
  if (deaths < LIMIT_STORE_DEATHS || s->core.status != SESSION_RUNNING)
    return false;
  print_into(message, sizeof message,
             "%u workers died while they had it, and no turn ended between; the last was %.300s",
             deaths, died);
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
  err_set(&err, ERR_LOCKED, "%s", why);
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

/* --- appending --- */

/* Gives the durable record that its log ends with. */
static void session_head(const struct session *s, enum ledger_kind kind,
                         struct ledger_entry *head) {
  *head = (struct ledger_entry){.kind = kind, .seq = store_log_seq(s->log)};
  memcpy(head->session, s->core.session, sizeof head->session);
  memcpy(head->hash, store_log_hash(s->log), sizeof head->hash);
}

static void seal(struct session *s, const struct ledger_entry *head) {
  ledger_writer_add(&s->host->sealer, head, s->host->sync_now);
}

/* Seals the log after its decision's last record, if that is a stop or an end. */
static void seal_end(struct session *s) {
  struct ledger_entry head;
  bool over = s->core.status == SESSION_ENDED || s->core.status == SESSION_STOPPED;
  if (s->log == NULL)
    return;
  if (s->cut != NULL)
    seal(s, &s->cut_head);
  json_decref(s->cut);
  s->cut = NULL;
  uint64_t seq = store_log_seq(s->log);
  if (!over || s->core.seq != seq || s->sealed_seq == seq)
    return;
  s->sealed_seq = seq;
  session_head(s, s->core.status == SESSION_ENDED ? LEDGER_END : LEDGER_STOP, &head);
  seal(s, &head);
}

const double host_append_bounds_ms[HOST_APPEND_BUCKETS] = {0.5, 1,  2.5, 5,   10,
                                                           25,  50, 100, 250, 1000};

static void count_append(struct session *s) {
  struct host_appends *a = &s->host->appends;
  uint64_t us = clock_mono_us() - s->append_us;
  size_t i = 0;
  while (i < HOST_APPEND_BUCKETS && (double)us > host_append_bounds_ms[i] * 1000)
    i++;
  a->buckets[i]++;
  a->count++;
  a->sum_us += us;
}

static void finish_durable_batch(struct session *s, struct str lines) {
  struct session_batch done = s->flying;
  /* The batch is in flight until its effects have run; what is decided meanwhile waits. */
  s->flying = (struct session_batch){0};
  struct str rest = lines;
  for (size_t i = 0; i < done.record_count; i++) {
    struct str line = {"", 0};
    if (rest.p != NULL && rest.n > 0) {
      line = str_next_line(&rest);
      line.n++; /* its newline */
    }
    if (s->watcher && s->watcher->record)
      s->watcher->record(s->watcher_ctx, done.records[i], line);
  }
  seal_end(s);
  session_run_effects(s, &done);
  s->in_flight = false;
  batch_clear(&done);
  s->host->logged_since_trim += lines.n;
  if (s->host->logged_since_trim >= LIMIT_TRIM_BYTES) {
    s->host->logged_since_trim = 0;
    memory_give_back(64 * 1024); /* many sessions in one wave leave holes in the heap */
  }
  session_flush(s);
  session_maybe_finish(s);
}

/* Breaks the session: from now on nothing leaves it, and the log is all there is. `append_over`
 * says that no append will call back. */
void session_break(struct session *s, const struct err *err, bool append_over) {
  if (s->life != LIFE_BROKEN) {
    s->broken_err = xmalloc(sizeof *err);
    *s->broken_err = *err;
    session_set_life(s, LIFE_BROKEN);
  }
  if (append_over)
    s->in_flight = false;
  if (!s->in_flight)
    batch_clear(&s->flying);
  batch_clear(&s->filling);
  session_begin_finish(s);
  session_maybe_finish(s);
}

static void on_appended(void *ctx, enum store_result result, struct str lines,
                        const struct err *err);

static void on_disk_timer(uv_timer_t *timer) {
  struct session *s = timer->data;
  store_append_again(s->log, s->host->loop, on_appended, s);
}

void session_trouble(const struct session *s, const char *message) {
  if (s->watcher && s->watcher->trouble)
    s->watcher->trouble(s->watcher_ctx, message);
}

void session_end_pause(struct session *s) {
  bool full = s->paused == NULL || s->paused_full;
  free(s->paused);
  s->paused = NULL;
  session_trouble(s, full ? "there is space again: continuing" : "the store answers: continuing");
}

bool session_begin_pause(struct session *s, const struct err *err, uint64_t *full_since) {
  uint64_t now = uv_now(s->host->loop);
  if (*full_since == 0) {
    char text[sizeof err->text + 64];
    bool full = err->code == ERR_FULL; /* else a shared store does not answer */
    *full_since = now ? now : 1;
    print_into(text, sizeof text, "%s: waiting for %s", err->text, full ? "space" : "it");
    free(s->paused);
    s->paused = xstrdup(text);
    s->paused_full = full;
    session_trouble(s, text);
  }
  return now - *full_since < s->host->disk_full_wait_ms;
}

/* Keeps the batch and tries again, as long as that makes sense. */
static bool wait_for_space(struct session *s, const struct err *err) {
  if (store_log_seq(s->log) == 0 || s->life != LIFE_RUNNING)
    return false; /* nothing would be lost, and the session is leaving */
  if (!session_begin_pause(s, err, &s->full_since))
    return false;
  uv_timer_start(&s->disk_timer, on_disk_timer, LIMIT_DISK_RETRY_MS, 0);
  return true;
}

static void on_appended(void *ctx, enum store_result result, struct str lines,
                        const struct err *err) {
  struct session *s = ctx;
  if (result == STORE_FULL && s->life != LIFE_BROKEN && wait_for_space(s, err))
    return;
  if (result != STORE_OK || s->life == LIFE_BROKEN) {
    session_break(s, err, true);
    return;
  }
  if (s->full_since != 0)
    session_end_pause(s);
  s->full_since = 0;
  if (s->flying.record_count > 0 && s->log != NULL)
    count_append(s);
  finish_durable_batch(s, lines);
}

/* Reports an append that finished at once, or that there was nothing to append. */
static void report_now(struct session *s) {
  struct buf lines = s->now_lines;
  s->now_lines = (struct buf){0};
  struct err *err = s->now_err;
  s->now_err = NULL;
  on_appended(s, s->now_result, buf_view(&lines), err);
  buf_deinit(&lines);
  free(err);
}

static void append_on_soon(uv_timer_t *timer) {
  report_now(timer->data);
}

static void on_gathered(uv_timer_t *timer) {
  session_flush(timer->data);
}

static void session_flush_soon(struct session *s) {
  if (s->life == LIFE_RUNNING)
    uv_timer_start(&s->soon, on_gathered, 0, 0);
  else
    session_flush(s);
}

static uint64_t first_seq(const struct session_batch *b) {
  return b->records[0]->seq;
}

static void session_flush(struct session *s) {
  if (s->in_flight || s->life == LIFE_BROKEN ||
      (s->filling.record_count == 0 && s->filling.effect_count == 0))
    return;
  s->flying = s->filling;
  s->filling = (struct session_batch){0};
  s->in_flight = true;
  s->now_result = STORE_OK;
  s->append_us = clock_mono_us();
  bool append = s->log != NULL && s->flying.record_count > 0;
  bool over = !append || (s->host->sync_now && s->pool_appends == 0);
  if (append && over) {
    /* Syncs on the loop's own thread while that is fast; a slow disk goes back to the pool. */
    uint64_t start_us = clock_mono_us();
    s->now_result = store_append_now(s->log, first_seq(&s->flying), s->flying.records,
                                     s->flying.record_count, &s->now_lines, &s->now_err);
    if (clock_mono_us() - start_us > LIMIT_SYNC_NOW_MS * 1000ull)
      s->pool_appends = LIMIT_SYNC_POOL_COUNT;
  } else if (append) {
    s->pool_appends -= s->pool_appends > 0;
    store_append(s->log, s->host->loop, first_seq(&s->flying), s->flying.records,
                 s->flying.record_count, on_appended, s);
  }
  if (s->watcher == NULL || s->watcher->record == NULL)
    records_clear(&s->flying);
  if (over && s->life == LIFE_OPENING)
    uv_timer_start(&s->soon, append_on_soon, 0, 0);
  else if (over)
    report_now(s);
}

/* --- opening --- */

struct folding {
  struct session *s;
  struct core_source source;
};

static bool fold_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct session *s = ctx;
  return store_blob_get(s->host->store, sha256, out, err);
}

static bool fold_record(void *ctx, const json_t *record, struct err *err) {
  struct folding *f = ctx;
  struct core *core = &f->s->core;
  struct workflow_cache *cache = f->s->host->workflows;
  bool first = core->status == SESSION_NEW;
  struct workflow *known = first ? workflow_cache_find(cache, record) : NULL;
  bool ok = core_apply_json(core, record, known, &f->source, err);
  if (ok && first && known == NULL)
    workflow_cache_put(cache, record, core->workflow);
  workflow_unref(known);
  return ok;
}

/* Reads the log into the session, which has none yet. */
static bool open_read(struct session *s, const struct store_ref *ref, struct store_mend *mend,
                      struct err *err) {
  struct folding folding = {s, {.ctx = s, .blob = fold_blob}};
  s->log = store_attach(s->host->store, ref, fold_record, &folding, mend, err);
  return s->log != NULL;
}

static void open_over(struct session *s, const struct store_mend *mend) {
  s->recovered_seq = s->core.seq;
  s->may_have_leftovers = s->core.seq > 1;
  if (mend->notification[0])
    session_trouble(s, mend->notification);
  if (mend->cut_bytes > 0)
    session_head(s, LEDGER_CUT, &s->cut_head);
  if (mend->cut_bytes > 0)
    s->cut =
        json_pack("{sI sI ss ss}", "records", (json_int_t)mend->cut_records, "bytes",
                  (json_int_t)mend->cut_bytes, "sha256", mend->cut_sha256, "by", s->host->cut_by);
  session_set_life(s, s->core.status == SESSION_ENDED ? LIFE_FINISHED : LIFE_RUNNING);
}

struct session *host_open(struct host *host, const struct store_ref *ref,
                          const struct watcher *watcher, void *ctx, struct err *err) {
  struct session *s = session_new(host, watcher, ctx);
  struct store_mend mend = {.cut = host->cut_by != NULL};
  assert(host->store != NULL);
  if (!open_read(s, ref, &mend, err)) {
    session_free(s);
    return NULL;
  }
  open_over(s, &mend);
  return s;
}

/* --- opening: in the pool --- */

/* DESIGN. Work in the pool touches only the session that is being opened, which nobody else has
 * yet, and the cache of workflows, which has a lock. */

struct opening {
  uv_work_t work;
  struct session *s;
  struct store_ref ref;
  struct store_mend mend;
  struct err err;
  bool ok;
  host_opened_fn opened;
};

static void opening_work(uv_work_t *work) {
  struct opening *o = work->data;
  struct err ignored; /* whoever goes on with it asks again, and is told */
  o->ok = open_read(o->s, &o->ref, &o->mend, &o->err);
  if (o->ok && o->s->core.status != SESSION_ENDED && !session_recall(o->s, &ignored))
    o->s->recalled = false;
}

static void opening_over(uv_work_t *work, int status) {
  struct opening *o = work->data;
  struct session *s = o->s;
  void *ctx = s->watcher_ctx;
  assert(status == 0);
  if (o->ok) {
    open_over(s, &o->mend);
  } else {
    session_free(s);
    s = NULL;
  }
  o->opened(ctx, s, &o->err);
  free(o);
}

void host_open_later(struct host *host, const struct store_ref *ref, const struct watcher *watcher,
                     void *ctx, host_opened_fn opened) {
  struct opening *o = xcalloc(1, sizeof *o);
  assert(host->store != NULL);
  o->s = session_new(host, watcher, ctx);
  o->ref = *ref;
  o->opened = opened;
  o->work.data = o;
  loop_work(host->loop, &o->work, opening_work, opening_over);
}
