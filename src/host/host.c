/* Starts, opens and ends sessions, and answers for them. */
#include "host/host.h"

#include "git/serve.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/answer.h"
#include "core/apply.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "host/report_files.h"
#include "host/session.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/orphans.h"
#include "os/random.h"
#include "os/sandbox.h"
#include "provider/api/api.h"
#include "store/resolve_text.h"
#include "store/worker.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- workflows that sessions share --- */

struct cached {
  struct cached *next;
  char sha256[SHA256_HEX];
  struct workflow *workflow;
};

struct workflow_cache {
  pthread_mutex_t lock;
  struct cached *entries;
};

struct workflow_cache *workflow_cache_new(void) {
  struct workflow_cache *cache = xcalloc(1, sizeof *cache);
  (void)pthread_mutex_init(&cache->lock, NULL);
  return cache;
}

/* Frees the workflows that only the cache holds; with `all`, every one. */
static void cache_sweep(struct workflow_cache *cache, bool all) {
  struct cached **at = &cache->entries;
  while (*at) {
    struct cached *e = *at;
    if (!all && e->workflow->references > 1) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    workflow_unref(e->workflow);
    free(e);
  }
}

void workflow_cache_free(struct workflow_cache *cache) {
  if (cache == NULL)
    return;
  cache_sweep(cache, true);
  (void)pthread_mutex_destroy(&cache->lock);
  free(cache);
}

static struct workflow *cache_find(const struct workflow_cache *cache, const char *sha256,
                                   const json_t *doc) {
  for (const struct cached *e = cache->entries; e; e = e->next)
    if (strcmp(e->sha256, sha256) == 0 &&
        (e->workflow->doc == doc || json_same(e->workflow->doc, doc)))
      return e->workflow;
  return NULL;
}

static void cache_put(struct workflow_cache *cache, const char *sha256, struct workflow *wf) {
  cache_sweep(cache, false);
  struct cached *e = xcalloc(1, sizeof *e);
  memcpy(e->sha256, sha256, SHA256_HEX - 1);
  e->workflow = workflow_ref(wf);
  e->next = cache->entries;
  cache->entries = e;
}

/* Returns the hash that the record names, "" if it has none. */
static const char *cache_hash_of(const json_t *start) {
  const json_t *sha256 = json_object_get(start, "workflow_sha256");
  return json_string_length(sha256) == SHA256_HEX - 1 ? json_string_value(sha256) : "";
}

struct workflow *workflow_cache_find(struct workflow_cache *cache, const json_t *start) {
  const char *sha256 = cache_hash_of(start);
  struct workflow *found = NULL;
  (void)pthread_mutex_lock(&cache->lock);
  if (sha256[0])
    found = cache_find(cache, sha256, json_object_get(start, "workflow"));
  if (found != NULL)
    found = workflow_ref(found);
  (void)pthread_mutex_unlock(&cache->lock);
  return found;
}

void workflow_cache_put(struct workflow_cache *cache, const json_t *start, struct workflow *wf) {
  const char *sha256 = cache_hash_of(start);
  (void)pthread_mutex_lock(&cache->lock);
  if (sha256[0])
    cache_put(cache, sha256, wf);
  (void)pthread_mutex_unlock(&cache->lock);
}

struct workflow *workflow_cache_share(struct workflow_cache *cache, struct workflow *wf) {
  char sha256[SHA256_HEX];
  workflow_hash(wf, sha256);
  (void)pthread_mutex_lock(&cache->lock);
  struct workflow *known = cache_find(cache, sha256, wf->doc);
  if (known == NULL)
    cache_put(cache, sha256, wf);
  else
    known = workflow_ref(known);
  (void)pthread_mutex_unlock(&cache->lock);
  if (known == NULL)
    return wf;
  workflow_unref(wf);
  return known;
}

/* --- sessions --- */

bool host_init(struct host *host, uv_loop_t *loop, struct store *store,
               const struct provider_registry *registry, struct err *err) {
  *host = (struct host){.loop = loop,
                        .store = store,
                        .registry = registry,
                        .disk_full_wait_ms = LIMIT_DISK_FULL_WAIT_MS,
                        .wait_for_kept_ms = UINT64_MAX,
                        .workflows = workflow_cache_new()};
  if (chain_schemas_init(&host->schemas, err)) {
    host->processes = process_table_new(loop, err);
    if (host->processes != NULL) {
      git_serve_begin(loop, host->processes);
      host->sandboxes = ruleset_cache_new(host->processes);
      host->api = api_new(loop, host->processes);
      host->templates = prompt_templates_new();
      ledger_writer_init(&host->sealer, loop, store);
      call_queue_init(&host->gate, loop, registry, store, session_on_gate);
      daily_usage_init(&host->day);
      host->folders.timer = xcalloc(1, sizeof *host->folders.timer);
      uv_timer_init(loop, host->folders.timer);
      host->folders.timer->data = &host->folders;
      git_begin(&host->folders.look.git, host->processes);
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
  ledger_writer_deinit(&host->sealer);
  call_queue_deinit(&host->gate);
  assert(host->folders.waiters.count == 0);
  folder_look_end(&host->folders.look, host->loop);
  uv_close((uv_handle_t *)host->folders.timer, loop_free);
  api_free(host->api);
  ruleset_cache_free(host->sandboxes);
  git_serve_end();
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
  char id[STORE_ID_BYTES];
  AUTO(text_deinit) struct text task = {0};
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
    if (host->sync_now && on == NULL && json_object_get(params->config, "after") == NULL)
      s->log = store_create(host->store, id, err);
    else /* elsewhere, not on the loop that many share */
      s->log = store_create_later(host->store, id, err);
    ok = s->log != NULL;
    if (ok)
      worker_place(s->log, on);
  }
  if (!ok) {
    session_free(s);
    return NULL;
  }
  json_auto_t *config = config_of(host, params, id);
  const struct core_params core_params = {.session = id,
                                          .workflow = params->workflow,
                                          .workflow_path = params->workflow_path,
                                          .task = &task,
                                          .config = config,
                                          .hold = params->hold,
                                          .facets = params->facets,
                                          .parent = params->parent};
  session_begin(s, &core_params);
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
      json_auto_t *record = store_read(s->log, call->prompt_seq, err);
      bool ok = record != NULL &&
                resolve_parts(&recall, json_object_get(record, "prompt"), &call->prompt, err);
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
  size_t said = s->core.turn_count == 0 ? json_array_size(s->core.said) : 0; /* while it waited */
  bool begins = s->core.seq == (s->core.carried ? 2 : 1) + said;
  if (begins && s->cut == NULL && (steer == NULL || json_object_size(steer->changed) == 0) &&
      json_is_true(json_object_get(s->core.config, "submitted")))
    ev.kind = EVENT_BEGIN;
  s->hurries = s->core.status == SESSION_STOPPED || s->core.resumed;
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

/* --- what is said to it elsewhere --- */

/* Returns the running call whose backend can be told what a person says; 0: there is none. */
static long steered_call(const struct session *s) {
  struct turn *turn;
  const struct call *call = core_steer_call(&s->core, &turn);
  const struct provider *p = call ? registry_find(s->registry, str_from(call->provider)) : NULL;
  return p != NULL && p->ops->can_steer != NULL && p->ops->can_steer(p) ? call->id : 0;
}

/* Another daemon keeps it in the shared store, from where it is fetched, recorded, and only then
 * forgotten: its key says whether it was recorded before. */
struct hearing {
  struct session *session;
  char *heard;
  struct buf lines;
  bool ok;
  struct err err;
};

static void hearing_work(void *ctx) {
  struct hearing *h = ctx;
  h->ok = worker_said(h->session->log, h->heard, &h->lines, &h->err);
}

static void hear_line(struct session *s, struct str line) {
  enum { KEY = STORE_ID_BYTES - 1 };
  char key[STORE_ID_BYTES] = "";
  struct err err;
  if (line.n <= KEY)
    return;
  memcpy(key, line.p, KEY);
  json_auto_t *said = json_loadb(line.p + KEY, line.n - KEY, 0, NULL);
  struct event ev = {.kind = EVENT_STEER,
                     .call = steered_call(s),
                     .reason = key,
                     .message = json_string_value(json_object_get(said, "text")),
                     .by = json_object_get(said, "by")};
  if (!core_steer_has(&s->core, key) && ev.message != NULL && json_is_object(ev.by) &&
      core_steer_text_check(&s->core, str_from(ev.message), &err))
    session_event(s, &ev);
  free(s->heard);
  s->heard = xstrndup(line.p, line.n);
  s->heard_seq = s->core.seq;
}

static void hearing_over(void *ctx) {
  struct hearing *h = ctx;
  struct session *s = h->session;
  struct str rest = buf_view(&h->lines);
  while (h->ok && rest.n > 0 && s->life == LIFE_RUNNING)
    hear_line(s, str_next_line(&rest));
  s->hears = false;
  s->delivering--;
  session_maybe_finish(s);
  free(h->heard);
  buf_deinit(&h->lines);
  free(h);
}

void host_hear(struct session *s) {
  if (s->hears || s->life != LIFE_RUNNING || s->log == NULL)
    return;
  struct hearing *h = xcalloc(1, sizeof *h);
  bool recorded = s->heard != NULL && store_log_seq(s->log) >= s->heard_seq;
  h->session = s;
  h->heard = xstrdup(recorded ? s->heard : "");
  s->hears = true;
  s->delivering++;
  loop_do(s->host->loop, hearing_work, hearing_over, h);
}

/* --- answers, stops --- */

bool host_reply(struct session *s, struct core_answer *answer, uint64_t *question,
                struct err *err) {
  bool goes = s->env.loop != NULL;
  bool stopped = goes && s->core.status == SESSION_STOPPED; /* the answer comes behind its stop */
  struct event ev = {.kind = EVENT_ANSWER, .answer = answer, .hold = !goes || stopped};
  bool leaves = session_is_leaving(s) && s->core.status != SESSION_ENDED;
  bool ok = !leaves || err_set(err, ERR_LOCKED, "it is stopping right now: try again");
  if (answer->says == SAYS_STEER) {
    ok = ok && core_steer_text_check(&s->core, answer->text, err);
    ev = (struct event){.kind = EVENT_STEER, .message = answer->text.p, .by = answer->by};
    ev.call = goes ? steered_call(s) : 0;
    *question = s->core.seq + 1;
  } else {
    ok = ok && core_answer_settle(&s->core, answer, clock_real_ms(), err);
    if (ok)
      *question = core_turn(&s->core, answer->turn)->question_seq;
  }
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
  AUTO(call_result_deinit) struct call_result result = {0};
  buf_str(&result.text.bytes, text);
  host_answer_with(s, &result);
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
  struct session *s;
  struct store_ref ref;
  struct store_mend mend;
  struct err err;
  bool ok;
  host_opened_fn opened;
};

static void opening_work(void *ctx) {
  struct opening *o = ctx;
  struct err ignored; /* whoever goes on with it asks again, and is told */
  o->ok = open_read(o->s, &o->ref, &o->mend, &o->err);
  if (o->ok && o->s->core.status != SESSION_ENDED && !session_recall(o->s, &ignored))
    o->s->recalled = false;
}

static void opening_over(void *opening) {
  struct opening *o = opening;
  struct session *s = o->s;
  void *ctx = s->watcher_ctx;
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
  loop_do(host->loop, opening_work, opening_over, o);
}
