#include "host/host.h"

#include "base/log.h"
#include "core/apply.h"
#include "format/json_write.h"
#include "host/workflow_cache.h"
#include "provider/api.h"
#include "store/recall.h"

#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* A decision's records and the effects that wait for them. */
struct batch {
  json_t **records; /* in flight only kept for a watcher: the store has their lines */
  size_t record_count;
  struct effect *effects;
  size_t effect_count;
};

struct open_call { /* a call that was started */
  struct open_call *next;
  struct session *session;
  long call;
  struct provider_run *run;
  const struct provider *provider;
  bool admitted; /* holds a place at the gate */
  struct call_request request;
  char *provider_session; /* the request's: the state's may change while the call runs */
  uv_work_t blob_work;
  uv_timer_t late;
  struct call_result result; /* while its blobs are written */
  struct err *blob_err;      /* why a blob could not be written */
  uint64_t full_since;       /* as the session's, for its blobs */
};

struct grant { /* the gate let a queued call in; it starts when the record of that is durable */
  struct grant *next;
  long call;
  char *provider;
};

struct wait { /* a timer for a call's next attempt */
  struct wait *next;
  struct session *session;
  long call;
  uv_timer_t timer;
};

struct session {
  struct host *host;
  struct core core;
  uint64_t recovered_seq; /* of the last record that was read back; 0 in a new session */
  struct store_log *log;  /* NULL: not kept */
  struct session_setup setup;
  const struct provider_registry *registry;
  struct provider_env env;
  size_t scenario_used;
  const struct watcher *watcher;
  void *watcher_ctx;
  struct batch filling, flying;
  bool in_flight;
  uint64_t full_since; /* uv_now when the disk was first found full; 0: it is not */
  char *paused;        /* what was said then */
  struct open_call *calls;
  struct wait *waits;
  struct grant *grants;
  uv_timer_t disk_timer;        /* the next try on a full disk */
  uv_timer_t soon;              /* reports from the loop what was over while starting */
  enum store_result now_result; /* of an append on the loop's thread, until `soon` */
  struct buf now_lines;
  struct err *now_err;
  unsigned pool_appends; /* so many more go to the pool: the disk was slow */
  int open_handles;
  unsigned delivering; /* calls that ended and are being told */
  bool starting;       /* within host_start or host_resume: nobody is told anything yet */
  bool stopping, finishing, finished;
  bool broken;
  struct err *broken_err; /* why */
};

static void flush(struct session *s);
static void maybe_finish(struct session *s);

/* --- events --- */

static int64_t wall_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Random bytes are fetched for many events at once and used once. */
static void fill_event(struct host *host, struct event *ev) {
  ev->time_ms = wall_ms();
  if (host->entropy_left < sizeof ev->entropy) {
    if (getrandom(host->entropy, sizeof host->entropy, 0) != (ssize_t)sizeof host->entropy)
      BUG("no random bytes");
    host->entropy_left = sizeof host->entropy;
  }
  host->entropy_left -= sizeof ev->entropy;
  memcpy(ev->entropy, host->entropy + host->entropy_left, sizeof ev->entropy);
}

static json_t *prepare(void *ctx, const struct call_request *request, const json_t *token_counts,
                       const unsigned char entropy[16]) {
  const struct session *s = ctx;
  const struct provider *p = registry_find(s->registry, request->provider);
  return p && p->ops->prepare ? p->ops->prepare(p, &s->env, request, token_counts, entropy) : NULL;
}

static void core_env_of(struct session *s, struct core_env *env) {
  *env = (struct core_env){.providers = registry_capabilities(s->registry),
                           .schemas = &s->host->schemas,
                           .prepare = prepare,
                           .ctx = s,
                           .draining = s->host->draining};
}

/* Takes a decision's outcome into the batch that is being filled. */
static void gather(struct session *s, struct core_out *out) {
  struct batch *b = &s->filling;
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

static void host_event(struct session *s, struct event *ev) {
  struct core_env env;
  struct core_out out;
  if (s->broken || s->finished)
    return;
  fill_event(s->host, ev);
  core_env_of(s, &env);
  core_decide(&s->core, ev, &env, &out);
  gather(s, &out);
  flush(s);
}

/* --- calls --- */

static void unlink_call(struct open_call *call) {
  struct open_call **at = &call->session->calls;
  while (*at != call)
    at = &(*at)->next;
  *at = call->next;
}

static void free_call(struct open_call *call) {
  call_result_deinit(&call->result);
  free(call->blob_err);
  free(call->provider_session);
  free(call);
}

static void drop_call(struct open_call *call) {
  unlink_call(call);
  free_call(call);
}

static void deliver(struct open_call *call) {
  struct session *s = call->session;
  struct event ev = {.kind = EVENT_CALL_END, .call = call->call, .result = &call->result};
  unlink_call(call); /* what it leads to may start the next one at once */
  s->delivering++;
  host_event(s, &ev);
  s->delivering--;
  free_call(call);
  maybe_finish(s);
}

static void put_blob(struct open_call *call, struct text *text) {
  const struct store *store = call->session->host->store;
  struct err err;
  if (call->blob_err != NULL || !text_needs_blob(buf_view(&text->bytes)) ||
      store_blob_put(store, buf_view(&text->bytes), text->blob, &err))
    return;
  call->blob_err = xmalloc(sizeof err);
  *call->blob_err = err;
}

static void blob_work(uv_work_t *work) {
  struct open_call *call = work->data;
  put_blob(call, &call->result.text);
  put_blob(call, &call->result.error_text);
}

static void session_break(struct session *s, const struct err *err, bool append_over);
static bool may_wait(struct session *s, const struct err *err, uint64_t *full_since);
static void trouble(const struct session *s, const char *message);
static void space_again(struct session *s);
static void write_blobs(struct open_call *call);

static void on_blob_timer_closed(uv_handle_t *handle) {
  write_blobs(handle->data);
}

static void on_blob_timer(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, on_blob_timer_closed);
}

static void blob_after(uv_work_t *work, int status) {
  struct open_call *call = work->data;
  struct session *s = call->session;
  (void)status;
  if (call->blob_err == NULL) {
    if (call->full_since != 0)
      space_again(s);
    deliver(call);
  } else if (s->stopping || s->finishing || s->broken) { /* nobody wants the answer any more */
    drop_call(call);
    maybe_finish(s);
  } else if (call->blob_err->code == ERR_FULL && may_wait(s, call->blob_err, &call->full_since)) {
    call->late.data = call;
    uv_timer_init(s->host->loop, &call->late);
    uv_timer_start(&call->late, on_blob_timer, LIMIT_DISK_RETRY_MS, 0);
  } else {
    struct err err = *call->blob_err;
    drop_call(call);
    session_break(s, &err, false);
  }
}

static void write_blobs(struct open_call *call) {
  free(call->blob_err);
  call->blob_err = NULL;
  call->blob_work.data = call;
  if (uv_queue_work(call->session->host->loop, &call->blob_work, blob_work, blob_after) != 0)
    BUG("the pool takes no work");
}

static struct open_call *open_new(struct session *s, long id) {
  struct open_call *open = xcalloc(1, sizeof *open);
  open->session = s;
  open->call = id;
  open->next = s->calls;
  s->calls = open;
  return open;
}

/* A structured value that a record could not hold, or that a reader of the log could not parse, is
 * left out; the text that it came with stays. */
static void bound_structured(struct call_result *result) {
  if (result->structured == NULL)
    return;
  bool deep = json_depth(result->structured, LIMIT_STRUCTURED_DEPTH) > LIMIT_STRUCTURED_DEPTH;
  size_t bytes = deep ? 0 : json_dumpb(result->structured, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
  if (!deep && bytes <= LIMIT_STRUCTURED_BYTES)
    return;
  json_decref(result->structured);
  result->structured = NULL;
  (void)snprintf(result->note, sizeof result->note,
                 deep ? "its structured value is nested over %u levels and was left out"
                      : "its structured value is over %u bytes and was left out",
                 deep ? LIMIT_STRUCTURED_DEPTH : LIMIT_STRUCTURED_BYTES);
}

/* Pieces of text go to whoever watches; the rest becomes records. */
static void on_news(void *ctx, const struct provider_news *news) {
  struct open_call *call = ctx;
  struct session *s = call->session;
  bool thinking = news->kind == NEWS_THINKING;
  if (thinking || news->kind == NEWS_TEXT) {
    if (s->watcher && s->watcher->delta)
      s->watcher->delta(s->watcher_ctx, call->request.turn, call->call, thinking, news->text);
    return;
  }
  struct event ev = {.kind = EVENT_CALL_NEWS,
                     .call = call->call,
                     .news_kind = provider_news_name(news->kind),
                     .news = news->data};
  host_event(s, &ev);
}

/* A record holds UTF-8 only. */
static void make_readable(struct buf *text) {
  struct buf readable = {0};
  if (utf8_valid(buf_c(text), text->n))
    return;
  buf_safe(&readable, buf_view(text), true);
  buf_deinit(text);
  *text = readable;
}

/* What a log cannot hold inline goes to blobs first; without a store it is rendered readable. */
static void on_done(void *ctx, struct call_result *result) {
  struct open_call *call = ctx;
  struct session *s = call->session;
  call->run = NULL;
  if (call->admitted)
    gate_leave(&s->host->gate, s, call->request.provider, result->class, result->retry_after_ms);
  call->admitted = false;
  call->result = *result;
  *result = (struct call_result){0};
  bound_structured(&call->result);
  bool big = text_needs_blob(buf_view(&call->result.text.bytes)) ||
             text_needs_blob(buf_view(&call->result.error_text.bytes));
  if (!big || s->broken) {
    deliver(call);
    return;
  }
  if (s->host->store == NULL) {
    make_readable(&call->result.text.bytes);
    make_readable(&call->result.error_text.bytes);
    deliver(call);
    return;
  }
  write_blobs(call);
}

/* --- prompts of recovered calls, read back from the log --- */

static json_t *read_back(void *ctx, uint64_t seq, struct err *err) {
  return store_read(ctx, seq, err);
}

/* Calls from before the recovery have no prompt in memory; prepare and the provider need it. */
static bool recall_prompts(struct session *s, struct err *err) {
  const struct recall recall = {s->log, read_back, s->host->store->dir};
  for (struct turn *turn = s->core.turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next) {
      if (call->state == CALL_DONE)
        continue;
      json_t *record = store_read(s->log, call->prompt_seq, err);
      bool ok = record != NULL &&
                recall_parts(&recall, json_object_get(record, "prompt"), &call->prompt, err);
      json_decref(record);
      if (!ok)
        return err_wrap(err, "the prompt of call %ld cannot be read back", call->id);
    }
  return true;
}

/* --- effects --- */

/* A call that could not even be started reports from the loop, as all do. */
static void on_late_closed(uv_handle_t *handle) {
  deliver(handle->data);
}

static void on_late(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, on_late_closed);
}

static void start_failed(struct open_call *open, const struct call_result *result) {
  gate_leave(&open->session->host->gate, open->session, open->request.provider, CLASS_NONE, 0);
  open->admitted = false;
  open->result = *result;
  open->late.data = open;
  uv_timer_init(open->session->host->loop, &open->late);
  uv_timer_start(&open->late, on_late, 0, 0);
}

static bool is_open(const struct session *s, long id) {
  const struct open_call *open = s->calls;
  while (open != NULL && open->call != id)
    open = open->next;
  return open != NULL;
}

static void tell_admission(struct session *s, long call, enum admission_answer answer,
                           const struct admission_why *why) {
  struct event ev = {
      .kind = EVENT_ADMISSION, .call = call, .admission = answer, .reason = why->reason};
  uint64_t now = uv_now(s->host->loop);
  if (why->until_ms > 0)
    ev.until_ms = wall_ms() + (why->until_ms > now ? (int64_t)(why->until_ms - now) : 0);
  host_event(s, &ev);
}

static void drop_grant(struct session *s, struct grant *grant) {
  struct grant **at = &s->grants;
  while (*at != grant)
    at = &(*at)->next;
  *at = grant->next;
  free(grant->provider);
  free(grant);
}

static struct grant *grant_of(const struct session *s, long call) {
  struct grant *grant = s->grants;
  while (grant != NULL && grant->call != call)
    grant = grant->next;
  return grant;
}

/* A call that waited at the gate was let in, or is to go elsewhere. */
static void on_gate(void *owner, long id, enum admission_answer answer,
                    const struct admission_why *why) {
  struct session *s = owner;
  struct turn *turn = NULL;
  const struct call *call = core_call(&s->core, id, &turn);
  assert(call != NULL); /* a session that is over has dropped its calls */
  if (answer == ADMISSION_ADMITTED) {
    struct grant *grant = xcalloc(1, sizeof *grant);
    *grant = (struct grant){.next = s->grants, .call = id, .provider = xstrdup(call->provider)};
    s->grants = grant;
  }
  tell_admission(s, id, answer, why);
}

/* True: the call has a place. Else the session was told what the gate said. */
static bool pass_gate(struct session *s, const struct turn *turn, const struct call *call) {
  struct admission_why why;
  struct grant *grant = grant_of(s, call->id);
  if (grant != NULL) {
    drop_grant(s, grant);
    return true;
  }
  enum admission_answer answer = gate_ask(&s->host->gate, s, call->id, str_from(call->provider),
                                          core_next_backend(&s->core, turn, call).n > 0, &why);
  if (answer == ADMISSION_ADMITTED)
    return true;
  tell_admission(s, call->id, answer, &why);
  return false;
}

/* Nothing of this session (or of one call of it) waits for a place, or holds one unused. */
static void leave_gate(struct session *s, long call) {
  gate_drop(&s->host->gate, s, call);
  for (struct grant *grant = s->grants, *next; grant; grant = next) {
    next = grant->next;
    if (call != 0 && grant->call != call)
      continue;
    gate_leave(&s->host->gate, s, str_from(grant->provider), CLASS_CANCELLED, 0);
    drop_grant(s, grant);
  }
}

static void start_call(struct session *s, long id) {
  struct turn *turn = NULL;
  struct call *call = core_call(&s->core, id, &turn);
  if (call == NULL || call->state != CALL_RUNNING || s->core.status != SESSION_RUNNING ||
      s->finishing || s->host->draining || is_open(s, id))
    return; /* the session stopped or stops meanwhile, or its answer was given */
  if (!pass_gate(s, turn, call))
    return;
  struct open_call *open = open_new(s, id);
  open->admitted = true;
  core_request(&s->core, turn, call, &open->request);
  open->provider_session =
      xstrndup(open->request.provider_session.p, open->request.provider_session.n);
  open->request.provider_session.p = open->provider_session;
  open->provider = registry_find(s->registry, open->request.provider);
  if (open->provider == NULL) {
    struct call_result result = {.class = CLASS_NOT_FOUND};
    (void)snprintf(result.message, sizeof result.message, "there is no provider \"%.*s\"",
                   (int)open->request.provider.n, open->request.provider.p);
    start_failed(open, &result);
    return;
  }
  const struct provider_sink sink = {on_news, on_done, open};
  open->run = open->provider->ops->start(open->provider, &s->env, &open->request, &sink);
}

static void cancel_call(struct session *s, long id) {
  leave_gate(s, id);
  for (struct open_call *c = s->calls; c; c = c->next)
    if ((id == 0 || c->call == id) && c->run != NULL)
      c->provider->ops->cancel(c->run);
}

static void on_wait_closed(uv_handle_t *handle) {
  struct wait *wait = handle->data;
  struct session *s = wait->session;
  struct wait **at = &s->waits;
  while (*at != wait)
    at = &(*at)->next;
  *at = wait->next;
  free(wait);
  maybe_finish(s);
}

static void on_wait(uv_timer_t *timer) {
  struct wait *wait = timer->data;
  struct session *s = wait->session;
  struct event ev = {.kind = EVENT_TIMER, .call = wait->call};
  uv_close((uv_handle_t *)timer, on_wait_closed);
  host_event(s, &ev);
}

static void start_wait(struct session *s, long call, int64_t delay_ms) {
  struct wait *wait = xcalloc(1, sizeof *wait);
  wait->session = s;
  wait->call = call;
  wait->next = s->waits;
  s->waits = wait;
  uv_timer_init(s->host->loop, &wait->timer);
  wait->timer.data = wait;
  uv_timer_start(&wait->timer, on_wait, delay_ms > 0 ? (uint64_t)delay_ms : 0, 0);
}

static void begin_finish(struct session *s) {
  s->finishing = true;
  cancel_call(s, 0);
  for (struct wait *w = s->waits; w; w = w->next)
    if (!uv_is_closing((uv_handle_t *)&w->timer))
      uv_close((uv_handle_t *)&w->timer, on_wait_closed);
}

static void run_effects(struct session *s, const struct batch *b) {
  for (size_t i = 0; i < b->effect_count; i++) {
    const struct effect *e = &b->effects[i];
    switch (e->kind) {
    case EFFECT_START_CALL:
      start_call(s, e->call);
      break;
    case EFFECT_CANCEL_CALL:
      cancel_call(s, e->call);
      break;
    case EFFECT_TIMER:
      start_wait(s, e->call, e->delay_ms);
      break;
    case EFFECT_FINISHED:
      begin_finish(s);
      break;
    }
  }
}

/* --- appending --- */

static void records_clear(struct batch *b) {
  for (size_t i = 0; i < b->record_count; i++)
    json_decref(b->records[i]);
  free(b->records);
  b->records = NULL;
  b->record_count = 0;
}

static void batch_clear(struct batch *b) {
  records_clear(b);
  free(b->effects);
  *b = (struct batch){0};
}

/* Many sessions in one wave leave holes in the heap; what is free goes back to the system. */
static void give_back_memory(struct host *host, size_t logged) {
  host->logged_since_trim += logged;
  if (host->logged_since_trim < LIMIT_TRIM_BYTES)
    return;
  host->logged_since_trim = 0;
  (void)malloc_trim(64 * 1024);
}

static void durable(struct session *s, struct str lines) {
  struct batch done = s->flying;
  s->flying = (struct batch){0}; /* in flight until its effects ran: what is decided waits */
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
  run_effects(s, &done);
  s->in_flight = false;
  batch_clear(&done);
  give_back_memory(s->host, lines.n);
  flush(s);
  maybe_finish(s);
}

/* Nothing more leaves the session; what is in the log is all there is. append_over: no append will
 * call back. */
static void session_break(struct session *s, const struct err *err, bool append_over) {
  if (!s->broken) {
    s->broken_err = xmalloc(sizeof *err);
    *s->broken_err = *err;
  }
  s->broken = true;
  if (append_over)
    s->in_flight = false;
  if (!s->in_flight)
    batch_clear(&s->flying);
  batch_clear(&s->filling);
  begin_finish(s);
  maybe_finish(s);
}

static void on_appended(void *ctx, enum store_result result, struct str lines,
                        const struct err *err);

static void on_disk_timer(uv_timer_t *timer) {
  struct session *s = timer->data;
  store_append_again(s->log, s->host->loop, on_appended, s);
}

static void trouble(const struct session *s, const char *message) {
  if (s->watcher && s->watcher->trouble)
    s->watcher->trouble(s->watcher_ctx, message);
}

static void space_again(struct session *s) {
  free(s->paused);
  s->paused = NULL;
  trouble(s, "there is space again: going on");
}

/* Says once that the disk is full; false when it was so for long enough. */
static bool may_wait(struct session *s, const struct err *err, uint64_t *full_since) {
  uint64_t now = uv_now(s->host->loop);
  if (*full_since == 0) {
    char text[sizeof err->text + 64];
    *full_since = now ? now : 1;
    (void)snprintf(text, sizeof text, "%s: waiting for space", err->text);
    free(s->paused);
    s->paused = xstrdup(text);
    trouble(s, text);
  }
  return now - *full_since < s->host->disk_full_wait_ms;
}

/* Keeps the batch and comes again, as long as that makes sense. */
static bool wait_for_space(struct session *s, const struct err *err) {
  if (store_log_seq(s->log) == 0 || s->stopping)
    return false; /* nothing would be lost; somebody wants to leave */
  if (!may_wait(s, err, &s->full_since))
    return false;
  uv_timer_start(&s->disk_timer, on_disk_timer, LIMIT_DISK_RETRY_MS, 0);
  return true;
}

static void on_appended(void *ctx, enum store_result result, struct str lines,
                        const struct err *err) {
  struct session *s = ctx;
  if (result == STORE_FULL && !s->broken && wait_for_space(s, err))
    return;
  if (result != STORE_OK || s->broken) {
    session_break(s, err, true);
    return;
  }
  if (s->full_since != 0)
    space_again(s);
  s->full_since = 0;
  durable(s, lines);
}

/* Reports an append that was over at once, or that there was none to make. */
static void report_now(struct session *s) {
  struct buf lines = s->now_lines;
  s->now_lines = (struct buf){0};
  struct err *err = s->now_err;
  s->now_err = NULL;
  on_appended(s, s->now_result, buf_view(&lines), err);
  buf_deinit(&lines);
  free(err);
}

static void on_soon(uv_timer_t *timer) {
  report_now(timer->data);
}

static uint64_t first_seq(const struct batch *b) {
  return (uint64_t)json_integer_value(json_object_get(b->records[0], "seq"));
}

/* Syncs on the loop's own thread while that is fast; a slow disk goes back to the pool. */
static void append_now(struct session *s) {
  uint64_t start = uv_hrtime();
  s->now_result = store_append_now(s->log, first_seq(&s->flying), s->flying.records,
                                   s->flying.record_count, &s->now_lines, &s->now_err);
  if (uv_hrtime() - start > LIMIT_SYNC_NOW_MS * 1000000ull)
    s->pool_appends = LIMIT_SYNC_POOL_COUNT;
}

static void flush(struct session *s) {
  if (s->in_flight || s->broken || (s->filling.record_count == 0 && s->filling.effect_count == 0))
    return;
  s->flying = s->filling;
  s->filling = (struct batch){0};
  s->in_flight = true;
  s->now_result = STORE_OK;
  bool append = s->log != NULL && s->flying.record_count > 0;
  bool over = !append || (s->host->sync_now && s->pool_appends == 0);
  if (append && over) {
    append_now(s);
  } else if (append) {
    s->pool_appends -= s->pool_appends > 0;
    store_append(s->log, s->host->loop, first_seq(&s->flying), s->flying.records,
                 s->flying.record_count, on_appended, s);
  }
  if (s->watcher == NULL || s->watcher->record == NULL)
    records_clear(&s->flying);
  if (over && s->starting)
    uv_timer_start(&s->soon, on_soon, 0, 0);
  else if (over)
    report_now(s);
}

static void maybe_finish(struct session *s) {
  if (!s->finishing || s->finished || s->in_flight || s->delivering || s->calls || s->waits ||
      s->filling.record_count > 0)
    return;
  s->finished = true;
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
      host->api = api_new(loop);
      gate_init(&host->gate, loop, registry, on_gate);
      return true;
    }
    chain_schemas_deinit(&host->schemas);
  }
  workflow_cache_free(host->workflows);
  return false;
}

void host_deinit(struct host *host) {
  assert(host->session_count == 0);
  gate_deinit(&host->gate);
  api_free(host->api);
  process_table_free(host->processes);
  chain_schemas_deinit(&host->schemas);
  workflow_cache_free(host->workflows);
  *host = (struct host){0};
}

/* Within a millisecond (and while the clock is behind) a counter of 12 bits makes the order. */
void session_id_new(struct host *host, char out[STORE_ID_BYTES]) {
  enum { COUNTS = 1 << 12 };
  unsigned char b[16];
  uint64_t ms = (uint64_t)wall_ms();
  if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
    BUG("no random bytes");
  if (ms > host->id_ms) {
    host->id_ms = ms;
    host->id_count = b[7]; /* low: there is room to count up */
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
  s->starting = true;
  host->session_count++;
  return s;
}

void session_free(struct session *s) {
  if (s == NULL)
    return;
  leave_gate(s, 0);
  assert(s->calls == NULL && s->waits == NULL && !s->in_flight);
  store_close(s->log);
  batch_clear(&s->filling);
  batch_clear(&s->flying);
  buf_deinit(&s->now_lines);
  free(s->now_err);
  free(s->broken_err);
  free(s->paused);
  core_deinit(&s->core);
  s->host->session_count--;
  uv_close((uv_handle_t *)&s->disk_timer, on_handle_closed);
  uv_close((uv_handle_t *)&s->soon, on_handle_closed);
}

static void use_setup(struct session *s, const struct session_setup *setup) {
  s->scenario_used = 0;
  s->env = (struct provider_env){.loop = s->host->loop,
                                 .processes = s->host->processes,
                                 .cwd = setup->cwd,
                                 .pass_env = setup->pass_env,
                                 .scenario = setup->scenario,
                                 .scenario_used = &s->scenario_used,
                                 .api = s->host->api};
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
  if (host->store != NULL && text_needs_blob(params->task))
    ok = store_blob_put(host->store, params->task, task.blob, err);
  if (ok && host->store != NULL) {
    s->log = store_create(host->store, id, err);
    ok = s->log != NULL;
  }
  if (!ok) {
    text_deinit(&task);
    session_free(s);
    return NULL;
  }
  const struct core_params core_params = {.session = id,
                                          .workflow = params->workflow,
                                          .workflow_path = params->workflow_path,
                                          .task = &task,
                                          .config = params->config,
                                          .hold = params->hold};
  fill_event(host, &ev);
  core_env_of(s, &env);
  core_start(&s->core, &core_params, &ev, &env, &out);
  text_deinit(&task);
  gather(s, &out);
  flush(s);
  s->starting = false;
  return s;
}

struct folding {
  struct session *s;
  struct core_source source;
};

static bool fold_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct session *s = ctx;
  return store_blob_get(s->host->store->dir, sha256, out, err);
}

static bool fold_record(void *ctx, const json_t *record, struct err *err) {
  struct folding *f = ctx;
  struct core *core = &f->s->core;
  struct workflow_cache *cache = f->s->host->workflows;
  bool first = core->status == SESSION_NEW;
  struct workflow *known = first ? workflow_cache_find(cache, record) : NULL;
  if (!core_apply(core, record, known, &f->source, err))
    return false;
  if (first && known == NULL)
    workflow_cache_put(cache, record, core->workflow);
  return true;
}

struct session *host_open(struct host *host, const char *path, const struct watcher *watcher,
                          void *ctx, struct err *err) {
  struct session *s = session_new(host, watcher, ctx);
  struct folding folding = {s, {s, fold_blob}};
  char notice[STORE_PATH_BYTES + 128];
  assert(host->store != NULL);
  s->log = store_attach(host->store, path, fold_record, &folding, notice, sizeof notice, err);
  if (s->log == NULL) {
    session_free(s);
    return NULL;
  }
  s->recovered_seq = s->core.seq;
  if (notice[0])
    trouble(s, notice);
  s->starting = false;
  if (s->core.status == SESSION_ENDED)
    s->finishing = s->finished = true;
  return s;
}

bool host_go(struct session *s, setup_fn choose, void *choose_ctx, const char *reason,
             struct err *err) {
  if (s->finished)
    return true;
  if (!choose(choose_ctx, s->core.config, &s->setup, err) || !recall_prompts(s, err))
    return false;
  use_setup(s, &s->setup);
  s->starting = true;
  struct event ev = {.kind = EVENT_RESUME,
                     .reason = s->core.status == SESSION_RUNNING ? "crash" : reason};
  if (s->core.seq == 1 && json_is_true(json_object_get(s->core.config, "submitted")))
    ev.kind = EVENT_BEGIN;
  host_event(s, &ev);
  s->starting = false;
  return true;
}

struct session *host_resume(struct host *host, const char *path, setup_fn choose, void *choose_ctx,
                            const char *reason, const struct watcher *watcher, void *ctx,
                            struct err *err) {
  struct session *s = host_open(host, path, watcher, ctx, err);
  if (s != NULL && !host_go(s, choose, choose_ctx, reason, err)) {
    session_free(s);
    return NULL;
  }
  return s;
}

void host_begin(struct session *s) {
  struct event ev = {.kind = EVENT_BEGIN};
  host_event(s, &ev);
}

void host_drain(struct session *s) {
  struct event ev = {.kind = EVENT_DRAIN};
  host_event(s, &ev);
  if (s->core.status == SESSION_RUNNING && s->calls == NULL) /* its calls have not left yet */
    host_stop(s, "shutdown", "the program that ran it was stopped");
}

void host_stop(struct session *s, const char *reason, const char *message) {
  struct event ev = {.kind = EVENT_STOP, .reason = reason, .message = message};
  s->stopping = true;
  host_event(s, &ev);
  if (s->full_since != 0 && uv_is_active((uv_handle_t *)&s->disk_timer)) {
    struct err err;
    uv_timer_stop(&s->disk_timer);
    (void)err_set(&err, ERR_FULL, "stopped while the disk was full");
    session_break(s, &err, true);
  }
}

void host_cancel(struct session *s, const char *message) {
  struct event ev = {.kind = EVENT_CANCEL, .message = message};
  host_event(s, &ev);
}

void host_answer(struct session *s, struct str text) {
  struct call_result result = {0};
  for (struct turn *turn = s->core.turns; turn; turn = turn->next) {
    const struct call *call = turn_execute_call(turn);
    if (call == NULL || call->state != CALL_RUNNING)
      continue;
    buf_str(&result.text.bytes, text);
    on_done(open_new(s, call->id), &result);
    return;
  }
}

const struct core *session_core(const struct session *s) {
  return &s->core;
}

const char *session_path(const struct session *s) {
  return s->log ? store_log_path(s->log) : "";
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

uint64_t session_syncs(const struct session *s) {
  return s->log ? store_log_syncs(s->log) : 0;
}

uint64_t session_recovered(const struct session *s) {
  return s->recovered_seq;
}
