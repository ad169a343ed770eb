/* Hands events to the core, makes what it decides durable with one write and one sync a batch, and
 * then runs the effects: calls to providers through the gate, waits, and what comes back. */
#include "host/session.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/answer.h"
#include "core/apply.h"
#include "core/checks.h"
#include "core/movement_limits.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/serve.h"
#include "host/backends.h"
#include "host/changes.h"
#include "host/check_paths.h"
#include "host/evidence_job.h"
#include "host/folder_lock.h"
#include "host/head_watch.h"
#include "host/hidden_tests.h"
#include "host/prices.h"
#include "host/report_files.h"
#include "host/session_budget.h"
#include "host/test_reports.h"
#include "host/worktree.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/loop.h"
#include "os/memory.h"
#include "os/random.h"
#include "os/sandbox.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sends the batch that is being filled, unless one is in flight. */
static void session_flush(struct session *s);
/* Does the same once the loop has reported what else ended at this moment, so that siblings share a
 * sync. */
static void session_flush_soon(struct session *s);
static void session_run_effects(struct session *s, const struct session_batch *b);
static void session_begin_finish(struct session *s);

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
                           .day_refuses = day_set_of(s->registry) ? session_budget_refuses : NULL,
                           .day_count = day_set_of(s->registry) ? session_budget_count : NULL,
                           .day_notes = day_set_of(s->registry) ? session_budget_notes : NULL,
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

/* --- appending --- */

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

void session_head(const struct session *s, enum ledger_kind kind, struct ledger_entry *head) {
  *head = (struct ledger_entry){.kind = kind, .seq = store_log_seq(s->log)};
  memcpy(head->session, s->core.session, sizeof head->session);
  memcpy(head->hash, store_log_hash(s->log), sizeof head->hash);
}

/* Seals the log after its decision's last record, if that is a stop or an end. What others may
 * take, also when it has got its first records here: then its loss is seen although it never
 * stopped. */
static void seal_end(struct session *s) {
  struct ledger_entry head;
  bool over = s->core.status == SESSION_ENDED || s->core.status == SESSION_STOPPED;
  if (s->log == NULL)
    return;
  if (s->cut != NULL)
    ledger_writer_add(&s->host->sealer, &s->cut_head, s->host->sync_now);
  json_decref(s->cut);
  s->cut = NULL;
  uint64_t seq = store_log_seq(s->log);
  bool taken = !over && s->sealed_seq == 0 && store_is_address(s->host->store->where);
  if ((!over || s->core.seq != seq || s->sealed_seq == seq) && !taken)
    return;
  s->sealed_seq = seq;
  session_head(s, s->core.status == SESSION_ENDED ? LEDGER_END : LEDGER_STOP, &head);
  if (taken)
    head.kind = LEDGER_HELD;
  ledger_writer_add(&s->host->sealer, &head, s->host->sync_now && !taken);
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
  s->follows = done.follows;
  session_run_effects(s, &done);
  s->in_flight = s->follows = false;
  batch_clear(&done);
  s->host->logged_since_trim += lines.n;
  if (s->host->logged_since_trim >= LIMIT_TRIM_BYTES) {
    s->host->logged_since_trim = 0;
    memory_give_back(64 * 1024); /* many sessions in one wave leave holes in the heap */
  }
  session_flush(s);
  session_maybe_finish(s);
}

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

static void session_end_pause(struct session *s) {
  bool full = s->paused == NULL || s->paused_full;
  free(s->paused);
  s->paused = NULL;
  session_trouble(s, full ? "there is space again: continuing" : "the store answers: continuing");
}

/* Begins a pause, because the disk is full or a shared store does not answer, and reports it once.
 * Returns false if it has lasted too long. */
static bool session_begin_pause(struct session *s, const struct err *err, uint64_t *full_since) {
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

/* --- results of calls --- */

/* Gives back the call's place, and notes what the provider's gate knows then. */
static void leave_gate(struct open_call *call, const struct call_result *result) {
  struct call_queue *gate = &call->session->host->gate;
  const struct admission_away *away = admission_away_of(&gate->admission, call->request.provider);
  const struct admission_end end = {.class = result->class,
                                    .retry_after_ms = result->retry_after_ms,
                                    .probe = call->probe,
                                    .real_ms = clock_real_ms()};
  call->away.held = away != NULL && away->class == CLASS_AUTH && result->class == CLASS_AUTH &&
                    !(call->probe && call->direct);
  call_queue_leave(gate, call->session, call->request.provider, &end);
  if (away != NULL && away->class != CLASS_NONE) {
    call->away.since_ms = away->since_ms;
    call->away.tries = away->tries;
  }
  call->admitted = call->probe = false;
}

static void free_call(struct open_call *call) {
  call_result_deinit(&call->result);
  changes_free(call->changes);
  free(call->own_folder);
  head_watch_free(call->head);
  free(call->blob_err);
  free(call->provider_session);
  free(call);
}

static void drop_call(struct open_call *call) {
  list_remove(&call->session->calls, &call->in_session);
  free_call(call);
}

static void deliver(struct open_call *call) {
  struct session *s = call->session;
  struct event ev = {
      .kind = EVENT_CALL_END, .call = call->call, .result = &call->result, .away = call->away};
  list_remove(&call->session->calls,
              &call->in_session); /* what this leads to may start the next call at once */
  s->delivering++;
  session_event(s, &ev);
  s->filling.follows |= call->changes != NULL;
  s->delivering--;
  free_call(call);
  session_maybe_finish(s);
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

static void blob_work(void *ctx) {
  struct open_call *call = ctx;
  put_blob(call, &call->result.text);
  put_blob(call, &call->result.error_text);
}

static void write_blobs(struct open_call *call);

static void on_blob_timer_closed(uv_handle_t *handle) {
  write_blobs(handle->data);
}

static void on_blob_timer(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, on_blob_timer_closed);
}

static void blob_after(void *ctx) {
  struct open_call *call = ctx;
  struct session *s = call->session;
  if (call->blob_err == NULL) {
    if (call->full_since != 0)
      session_end_pause(s);
    deliver(call);
  } else if (s->life == LIFE_STOPPING ||
             session_is_leaving(s)) { /* nobody wants the answer any more */
    drop_call(call);
    session_maybe_finish(s);
  } else if (call->blob_err->code == ERR_FULL &&
             session_begin_pause(s, call->blob_err, &call->full_since)) {
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
  loop_do(call->session->host->loop, blob_work, blob_after, call);
}

struct open_call *session_open_call(struct session *s, long id) {
  struct open_call *open = xcalloc(1, sizeof *open);
  open->session = s;
  open->call = id;
  list_push_front(&s->calls, &open->in_session);
  return open;
}

/* Leaves out a structured value that a record could not hold or a reader of the log could not
 * parse; the text that it came with stays. */
static void bound_structured(struct call_result *result) {
  if (result->structured == NULL)
    return;
  bool deep = json_depth(result->structured, LIMIT_STRUCTURED_DEPTH) > LIMIT_STRUCTURED_DEPTH;
  size_t bytes = deep ? 0 : json_dumpb(result->structured, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
  if (!deep && bytes <= LIMIT_STRUCTURED_BYTES)
    return;
  json_decref(result->structured);
  result->structured = NULL;
  print_into(result->note, sizeof result->note, "its structured value is %s %u %s and was left out",
             deep ? "nested over" : "over", deep ? LIMIT_STRUCTURED_DEPTH : LIMIT_STRUCTURED_BYTES,
             deep ? "levels" : "bytes");
}

/* Returns what the call has used with its cost by a list of prices, if the backend told none. A new
 * reference. */
static json_t *price_call(const struct open_call *call, const json_t *usage) {
  const struct session *s = call->session;
  return prices_of_usage(s->registry, s->core.config, call->request.provider, call->request.model,
                         usage);
}

/* Passes pieces of text to whoever watches, and makes records of the rest. */
static void on_news(void *ctx, const struct provider_news *news) {
  struct open_call *call = ctx;
  struct session *s = call->session;
  bool thinking = news->kind == NEWS_THINKING;
  /* A text may be an agent's own, about an error. */
  bool answers = thinking || news->kind == NEWS_TOOL ||
                 (news->kind == NEWS_USAGE && json_int_at(news->data, "output") > 0);
  if (call->probe && answers) {
    call->probe = false;
    call_queue_reached(&s->host->gate, call->request.provider);
  }
  if (thinking || news->kind == NEWS_TEXT) {
    if (s->watcher && s->watcher->delta)
      s->watcher->delta(s->watcher_ctx, call->request.turn, call->call, thinking, news->text);
    return;
  }
  json_auto_t *used = news->kind == NEWS_USAGE ? price_call(call, news->data) : NULL;
  struct event ev = {.kind = EVENT_CALL_NEWS,
                     .call = call->call,
                     .news_kind = provider_news_name(news->kind),
                     .news = used != NULL ? used : news->data};
  session_event(s, &ev);
}

/* Makes a text readable where it is not UTF-8, which is all that a record holds. */
static void make_readable(struct buf *text) {
  struct buf readable = {0};
  if (utf8_valid(buf_c(text), text->n))
    return;
  buf_safe(&readable, buf_view(text), true);
  buf_deinit(text);
  *text = readable;
}

/* Delivers a result, but puts what a log cannot hold inline into blobs first. Without a store, that
 * is made readable instead. */
static void keep_result(struct open_call *call) {
  const struct session *s = call->session;
  bool big = text_needs_blob(buf_view(&call->result.text.bytes)) ||
             text_needs_blob(buf_view(&call->result.error_text.bytes));
  if (!big || s->life == LIFE_BROKEN) {
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

/* Notes that a tree is too large or unreadable; it is not examined again. */
static void note_unseen(struct open_call *call) {
  struct session *s = call->session;
  if (s->unseen == NULL)
    s->unseen = xstrdup(changes_problem(call->changes));
}

static void on_head(void *ctx) {
  struct open_call *call = ctx;
  call->result.head = head_watch_take(call->head);
  keep_result(call);
}

/* Looks where the call left HEAD, after its changes. */
static void see_head(void *ctx) {
  struct open_call *call = ctx;
  struct turn *turn = NULL;
  struct session *s = call->session;
  changes_own_tell(call->top, call->own_folder, &call->result);
  (void)core_call(&s->core, call->call, &turn);
  if (call->head != NULL && !session_is_leaving(s))
    head_watch_end(call->head, &s->core, turn, s->env.cwd, call->result.git_seen, on_head);
  else
    keep_result(call);
}

static void mark_work(void *ctx) {
  struct open_call *call = ctx;
  check_paths_mark(call->top ? call->top : call->session->env.cwd, call->session->core.workflow,
                   call->result.files);
}

/* Says of changed files which are of a check, where its movement may not touch all of them. */
static void see_touches(struct open_call *call) {
  struct turn *turn = NULL;
  const struct session *s = call->session;
  if (core_call(&s->core, call->call, &turn) != NULL &&
      core_movement(&s->core, turn)->touches != TOUCHES_ANY && !session_is_leaving(s) &&
      json_array_size(call->result.files) > 0)
    git_serve_do(json_object_get(s->core.config, "sandbox"), mark_work, see_head, call);
  else
    see_head(call);
}

static void on_changes(void *ctx) {
  struct open_call *call = ctx;
  changes_take(call->changes, call->session->core.workflow, &call->result);
  if (changes_problem(call->changes) != NULL)
    note_unseen(call);
  see_touches(call);
}

/* Looks at the call's folder as the call left it, or leaves that to others at work there. */
static void see_changes(struct open_call *call) {
  const struct session *s = call->session;
  if (call->changes != NULL && !session_is_leaving(s) && changes_end(call->changes, on_changes))
    return;
  changes_take(call->changes, s->core.workflow, &call->result);
  if (call->changes == NULL && call->looks && s->unseen != NULL)
    changes_unknown(&call->result, s->unseen);
  else if (call->tells && call->result.files == NULL)
    call->result.files = json_array();
  else if (call->tells)
    changes_forget(&call->session->seen);
  see_touches(call);
}

static void count_tests(void *ctx) {
  struct open_call *call = ctx;
  test_reports_count(call->request.tests, call->env->cwd, call->started_ms, &call->result);
}

static void after_tests(void *ctx) {
  see_changes(ctx);
}

void session_call_done(void *ctx, struct call_result *result) {
  struct open_call *call = ctx;
  struct session *s = call->session;
  call->run = NULL;
  if (call->admitted)
    leave_gate(call, result);
  if (result->class == CLASS_NONE) {
    /* That the provider answers is noted once in a session that would wait for it. */
    const struct core *core = &call->session->core;
    if (call->provider != NULL &&
        !json_is_false(json_object_get(core->config, "wait_for_outage")) &&
        !json_is_true(json_object_get(core->reached, call->provider->capability.name)))
      backends_note_answer(call->provider);
  }
  if (call->ends_as != CLASS_NONE && result->class == CLASS_CANCELLED)
    result->class = call->ends_as;
  call->result = *result;
  *result = (struct call_result){0};
  json_t *used = price_call(call, call->result.usage);
  json_decref(call->result.usage);
  call->result.usage = used;
  bound_structured(&call->result);
  if (call->request.tests.n > 0 && call->result.has_exit && call->result.class == CLASS_NONE) {
    loop_do(s->host->loop, count_tests, after_tests, call);
  } else {
    see_changes(call);
  }
}

/* --- sessions that wait for their folder ---
 *
 * Sessions that only read need no right (folder_lock.h); any other holds it from the first movement
 * that may edit onwards, whatever it runs in between. Rights of other processes are polled every
 * LIMIT_FOLDER_POLL_MS. */

struct folder_waiter {
  struct list_node in_queue;
  struct session *session;
  long call;
  unsigned round;               /* the round in which it was last asked for */
  uint64_t since_ms;            /* loop time of its beginning */
  uint64_t look_ms;             /* loop time of the next look at what is kept */
  char told_of[STORE_ID_BYTES]; /* whom its session was told to wait for; "": nobody yet */
};

static void folder_on_timer(uv_timer_t *timer);

static void folder_arm(struct folder_queue *q, uint64_t ms) {
  if (q->waiters.count == 0)
    uv_timer_stop(q->timer);
  else
    uv_timer_start(q->timer, folder_on_timer, ms, 0);
}

enum folder_answer { FOLDER_MINE, FOLDER_TAKEN, FOLDER_SOON };

/* Asks for the right to the folder. If there is no place for rights, the session goes on and is
 * told so once. */
static enum folder_answer folder_ask_for(struct session *s, struct folder_holder *holder) {
  struct err err = {0};
  char *real = realpath(s->env.cwd, NULL);
  const struct folder_ask ask = {.session = s->core.session,
                                 .path = real ? real : s->env.cwd,
                                 .logs = s->host->store ? s->host->store->where : NULL};
  s->folder = folder_take(&ask, holder, &err);
  free(real);
  if (s->folder != NULL)
    return FOLDER_MINE;
  if (holder->session[0] != '\0')
    return FOLDER_TAKEN;
  if (err.code == ERR_LOCKED)
    return FOLDER_SOON;
  char text[LIMIT_ERROR_TEXT_BYTES];
  print_into(text, sizeof text,
             "cannot keep other sessions from editing here at the same time: %.300s", err.text);
  session_trouble(s, text);
  s->folder_free = true;
  return FOLDER_MINE;
}

static void tell_folder(struct session *s, long call, enum admission_answer answer,
                        const char *message) {
  struct event ev = {.kind = EVENT_ADMISSION,
                     .call = call,
                     .admission = answer,
                     .reason = "folder",
                     .message = message};
  session_event(s, &ev);
}

static void tell_wait(struct session *s, long call, const struct folder_holder *holder) {
  char text[LIMIT_ERROR_TEXT_BYTES];
  print_into(text, sizeof text, "session %s %s %.300s", holder->session,
             holder->kept ? "has stopped and keeps" : "edits", holder->path);
  tell_folder(s, call, ADMISSION_WAIT, text);
}

/* True: the session stops, since whoever keeps its folder does not let go by itself. */
static bool gives_up_waiting(struct session *s, const struct folder_holder *holder,
                             uint64_t since_ms) {
  uint64_t bound = s->host->wait_for_kept_ms;
  if (!holder->kept || uv_now(s->host->loop) - since_ms < bound)
    return false;
  char text[LIMIT_ERROR_TEXT_BYTES];
  print_into(text, sizeof text,
             "session %s has stopped and keeps %.300s: go on with it, or let it go: segue resume "
             "%s --release",
             holder->session, holder->path, holder->session);
  struct event ev = {.kind = EVENT_STOP, .reason = "folder", .message = text};
  session_event(s, &ev);
  return true;
}

/* Asks once more for one that waits, which this may free. */
static void ask_again(struct folder_queue *q, struct folder_waiter *w) {
  struct folder_holder holder = {0};
  struct session *s = w->session;
  long call = w->call;
  enum folder_answer answer = FOLDER_MINE;
  if (s->folder == NULL && !s->folder_free)
    answer = folder_ask_for(s, &holder);
  if (answer == FOLDER_MINE) {
    bool told = w->told_of[0] != '\0';
    list_remove(&q->waiters, &w->in_queue);
    free(w);
    struct effect start = {.kind = EFFECT_START_CALL, .call = call};
    const struct session_batch batch = {.effects = &start, .effect_count = 1};
    if (told)
      tell_folder(s, call, ADMISSION_ADMITTED, NULL);
    else
      session_run_effects(s, &batch);
  } else if (answer == FOLDER_TAKEN && !gives_up_waiting(s, &holder, w->since_ms)) {
    uint64_t now_ms = uv_now(s->host->loop);
    if (holder.kept && now_ms >= w->look_ms && folder_look(&q->look, &holder, s->host->loop))
      w->look_ms = now_ms + LIMIT_FOLDER_LOOK_MS;
    if (strcmp(w->told_of, holder.session) != 0) {
      memcpy(w->told_of, holder.session, sizeof w->told_of);
      tell_wait(s, call, &holder);
    }
  }
}

/* Asks for each waiter's folder. A session may do anything when told, so the list is searched from
 * its start each time. */
static void folder_on_timer(uv_timer_t *timer) {
  struct folder_queue *q = timer->data;
  bool more = true;
  q->round++;
  while (more) {
    more = false;
    LIST_EACH(struct folder_waiter, w, in_queue, &q->waiters)
      if (w->round != q->round) {
        w->round = q->round;
        ask_again(q, w);
        more = true;
        break;
      }
  }
  folder_arm(q, LIMIT_FOLDER_POLL_MS);
}

static void folder_on_freed(void *ctx) {
  folder_arm(ctx, 0);
}

/* True: the call may go on. Else its session was told whom it waits for, and the call is started
 * again once the folder is free. */
static bool session_takes_folder(struct session *s, long call) {
  struct folder_queue *q = &s->host->folders;
  struct folder_holder holder = {0};
  /* only a session that edits here and was not told to ignore others needs it */
  if (!s->core.edits || s->folder != NULL || s->folder_free || s->env.cwd == NULL ||
      s->core.worktree.made || json_is_false(json_at(s->core.config, "lock")))
    return true;
  enum folder_answer answer = folder_ask_for(s, &holder);
  if (answer == FOLDER_MINE)
    return true;
  uint64_t now_ms = uv_now(s->host->loop);
  if (answer == FOLDER_TAKEN && gives_up_waiting(s, &holder, now_ms))
    return false;
  struct folder_waiter *w = xcalloc(1, sizeof *w);
  *w = (struct folder_waiter){.session = s, .call = call, .round = q->round, .since_ms = now_ms};
  list_push_back(&q->waiters, &w->in_queue);
  q->look.freed = folder_on_freed;
  q->look.ctx = q;
  folder_arm(q, answer == FOLDER_SOON ? LIMIT_FOLDER_SOON_MS : LIMIT_FOLDER_POLL_MS);
  if (answer == FOLDER_TAKEN) {
    memcpy(w->told_of, holder.session, sizeof w->told_of);
    tell_wait(s, call, &holder);
  }
  return false;
}

/* That call (0: each) stops waiting. */
static void session_leave_folder(struct session *s, long call) {
  struct folder_queue *q = &s->host->folders;
  LIST_EACH(struct folder_waiter, w, in_queue, &q->waiters)
    if (w->session == s && (call == 0 || w->call == call)) {
      list_remove(&q->waiters, &w->in_queue);
      free(w);
    }
  if (q->timer != NULL && q->waiters.count == 0)
    uv_timer_stop(q->timer);
}

/* A session that stopped keeps its folder for an open question or for changes that it has left
 * there, but not if it was stopped on purpose. */
static enum folder_keep keeps_folder(const struct session *s) {
  struct str reason = buf_view(&s->core.stop_reason);
  if (s->core.status != SESSION_STOPPED || s->host->store == NULL ||
      str_among(reason, "interrupted terminated shutdown folder"))
    return FOLDER_KEEP_NOT;
  if (core_question_count(&s->core) > 0)
    return FOLDER_KEEP_QUESTION;
  const json_t *touched = s->core.touched;
  bool changed = json_object_size(json_at(touched, "files")) > 0 || json_at(touched, "unknown");
  return changed ? FOLDER_KEEP_CHANGES : FOLDER_KEEP_NOT;
}

/* At the session's end or stop; one that keeps it says so. */
static void session_give_folder(struct session *s) {
  if (s->folder == NULL)
    return;
  enum folder_keep keep = keeps_folder(s);
  folder_give(s->folder, keep);
  s->folder = NULL;
  if (keep != FOLDER_KEEP_NOT) {
    char text[LIMIT_ERROR_TEXT_BYTES];
    const char *how_long = "until its changes are committed or it goes on";
    if (keep == FOLDER_KEEP_QUESTION)
      how_long = "while it waits for you";
    print_into(text, sizeof text,
               "this session keeps %.300s %s; segue resume %s --release releases it", s->env.cwd,
               how_long, s->core.session);
    session_trouble(s, text);
  }
  folder_arm(&s->host->folders, 0);
}

/* --- effects --- */

/* Reports a call that could not even be started. This comes from the loop, as for all calls. */
static void on_late_closed(uv_handle_t *handle) {
  deliver(handle->data);
}

static void on_late(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, on_late_closed);
}

static void report_late(struct open_call *open, const struct call_result *result) {
  struct turn *turn;
  const struct call *call = core_call(&open->session->core, open->call, &turn);
  open->result = *result;
  if (call != NULL && call->purpose == PURPOSE_EXECUTE) /* it did nothing */
    open->result.files = json_array();
  open->late.data = open;
  uv_timer_init(open->session->host->loop, &open->late);
  uv_timer_start(&open->late, on_late, 0, 0);
}

static void start_failed(struct open_call *open, const struct call_result *result) {
  const struct call_result nothing = {.class = CLASS_CANCELLED};
  if (open->admitted)
    leave_gate(open, &nothing);
  report_late(open, result);
}

static bool is_open(const struct session *s, long id) {
  LIST_EACH(struct open_call, open, in_session, &s->calls)
    if (open->call == id)
      return true;
  return false;
}

static void tell_admission(struct session *s, long id, enum admission_answer answer,
                           const struct admission_why *why) {
  struct event ev = {.kind = EVENT_ADMISSION,
                     .call = id,
                     .admission = answer,
                     .reason = why->reason,
                     .away = {.since_ms = why->away.since_ms,
                              .tries = why->away.tries,
                              .waited_ms = why->waited_ms}};
  uint64_t now = uv_now(s->host->loop);
  int64_t now_ms = clock_real_ms();
  struct turn *turn = NULL;
  const struct call *call = core_call(&s->core, id, &turn);
  char text[LIMIT_ERROR_TEXT_BYTES];
  if (why->until_ms > 0)
    ev.until_ms = now_ms + (why->until_ms > now ? (int64_t)(why->until_ms - now) : 0);
  if (answer == ADMISSION_WAIT && why->away.class == CLASS_AUTH && call != NULL) {
    print_into(text, sizeof text, "%s refuses the login: run segue doctor %s", call->provider,
               call->provider);
    ev.message = text;
  }
  session_event(s, &ev);
  call = core_call(&s->core, id, &turn);
  if (answer == ADMISSION_WAIT && call != NULL && call->outage.until_ms > 0)
    call_queue_gives_up(&s->host->gate, s, id, call->outage.until_ms - now_ms);
}

static void drop_grant(struct session *s, struct grant *grant) {
  list_remove(&s->grants, &grant->in_session);
  free(grant->provider);
  free(grant);
}

static struct grant *grant_of(const struct session *s, long call) {
  LIST_EACH(struct grant, grant, in_session, &s->grants)
    if (grant->call == call)
      return grant;
  return NULL;
}

/* Starts a call that waited at the gate and was admitted, or reports that it must go elsewhere. */
void session_on_gate(void *owner, long id, enum admission_answer answer,
                     const struct admission_why *why) {
  struct session *s = owner;
  struct turn *turn = NULL;
  const struct call *call = core_call(&s->core, id, &turn);
  assert(call != NULL); /* a session that is over has dropped its calls */
  if (answer == ADMISSION_ADMITTED) {
    struct grant *grant = xcalloc(1, sizeof *grant);
    *grant = (struct grant){.call = id,
                            .provider = xstrdup(call->provider),
                            .probe = why->probe,
                            .gave_up = why->gave_up};
    list_push_front(&s->grants, &grant->in_session);
  }
  if (why->awaited) { /* its next attempt begins, wherever it goes */
    struct event ev = {.kind = EVENT_TIMER, .call = id, .away = {.waited_ms = why->waited_ms}};
    session_event(s, &ev);
    return;
  }
  if (why->at_once || why->gave_up != CLASS_NONE) { /* no record says that it waited */
    struct effect start = {.kind = EFFECT_START_CALL, .call = id};
    const struct session_batch batch = {.effects = &start, .effect_count = 1};
    session_run_effects(s, &batch);
    return;
  }
  tell_admission(s, id, answer, why);
}

static struct admission_call admission_of(struct session *s, const struct turn *turn,
                                          const struct call *call) {
  return (struct admission_call){.owner = s,
                                 .call = call->id,
                                 .provider = str_from(call->provider),
                                 .session = s->core.session,
                                 .has_fallback = core_next_backend(&s->core, turn, call).n > 0,
                                 .patient = core_waits_for_outage(&s->core, call)};
}

static struct admission_away away_of(const struct call *call, int64_t delay_ms) {
  return (struct admission_away){.class = call->class,
                                 .since_ms = call->outage.since_ms,
                                 .tries = call->outage.tries,
                                 .next_ms = delay_ms > 0 ? (uint64_t)delay_ms : 0};
}

/* Returns true if the call has a place; otherwise the session has been told what the gate said. */
static bool pass_gate(struct session *s, const struct turn *turn, const struct call *call,
                      struct grant *given) {
  struct call_queue *gate = &s->host->gate;
  struct admission_why why;
  struct grant *grant = grant_of(s, call->id);
  *given = (struct grant){0};
  if (grant != NULL) {
    *given = *grant;
    drop_grant(s, grant);
    given->provider = NULL;
    return true;
  }
  const struct admission_call ask = admission_of(s, turn, call);
  if (s->recovered_seq > 0 && call->outage.tries > 0 && ask.patient) {
    const struct admission_away away = away_of(call, 0); /* it waited when its last owner ended */
    call_queue_doubt(gate, ask.provider, &away);
  }
  if (s->hurries)
    call_queue_hurry(gate, ask.provider);
  s->hurries = false;
  enum admission_answer answer = call_queue_ask(gate, &ask, &why);
  given->probe = why.probe;
  if (answer == ADMISSION_ADMITTED)
    return true;
  if (answer != ADMISSION_WAIT || why.reason != NULL) /* otherwise it may not have to wait */
    tell_admission(s, call->id, answer, &why);
  return false;
}

/* Has a call that failed wait for its provider: not for a time alone, but for its turn to try, or
 * until another call has an answer. Returns false if the call waits for something else. */
static bool await_provider(struct session *s, const struct effect *e) {
  struct turn *turn = NULL;
  const struct call *call = core_call(&s->core, e->call, &turn);
  if (call == NULL || call->state != CALL_WAITING || call->outage.tries == 0)
    return false;
  if (s->core.status != SESSION_RUNNING || session_is_leaving(s))
    return true;
  const struct admission_call ask = admission_of(s, turn, call);
  int64_t left_ms = call->wait_until_ms - clock_real_ms(); /* it took a while to record the wait */
  const struct admission_away away = away_of(call, left_ms < e->delay_ms ? left_ms : e->delay_ms);
  call_queue_await(&s->host->gate, &ask, &away);
  if (call->outage.until_ms > 0)
    call_queue_gives_up(&s->host->gate, s, call->id, call->outage.until_ms - clock_real_ms());
  return true;
}

/* Gives up all places that this session (or one of its calls) waits for or holds unused. */
static void session_leave_gate(struct session *s, long call) {
  call_queue_drop(&s->host->gate, s, call);
  session_leave_folder(s, call);
  LIST_EACH(struct grant, grant, in_session, &s->grants) {
    if (call != 0 && grant->call != call)
      continue;
    const struct admission_end end = {.class = CLASS_CANCELLED, .probe = grant->probe};
    if (grant->gave_up == CLASS_NONE)
      call_queue_leave(&s->host->gate, s, str_from(grant->provider), &end);
    drop_grant(s, grant);
  }
}

/* Tells the call's backend, in order, what a person said to it; one that has not started yet, when
 * it does. */
static void session_steer(const struct session *s, long id) {
  const json_t *said;
  LIST_EACH(struct open_call, open, in_session, &s->calls)
    while (open->call == id && open->run != NULL && open->provider->ops->steer != NULL &&
           (said = core_steer_next(&s->core, id, open->steered)) != NULL) {
      open->steered = (uint64_t)json_integer_value(json_object_get(said, "said"));
      open->provider->ops->steer(open->run, open->steered, json_view_at(said, "text"));
    }
}

static void start_provider(struct open_call *open) {
  const struct provider_sink sink = {on_news, session_call_done, open};
  open->env->secrets = json_object_get(open->session->core.config, "secrets");
  open->env->sandbox = json_object_get(open->session->core.config, "sandbox");
  open->env->links = core_worktree_setting(open->session->core.config, "link");
  open->env->own_folders = open->session->own_folders;
  open->started_ms = clock_real_ms();
  if (open->changes == NULL)
    changes_expect(&open->session->host->trees);
  if (open->looks)
    open->own_folder = changes_own_folder(open->top);
  open->run = open->provider->ops->start(open->provider, open->env, &open->request, &sink);
  session_steer(open->session, open->call);
}

/* Goes on after the tree has been examined. Meanwhile the call may have become unwanted. */
static void on_looked(void *ctx) {
  struct open_call *open = ctx;
  struct call_result cancelled = {0};
  if (open->changes != NULL && changes_problem(open->changes) != NULL) {
    note_unseen(open);
    changes_free(open->changes);
    open->changes = NULL;
  }
  if (!open->cancelled && !session_is_leaving(open->session)) {
    start_provider(open);
    return;
  }
  changes_take(open->changes, open->session->core.workflow, &cancelled);
  changes_free(open->changes);
  open->changes = NULL;
  open->looks = false;
  open->tells = true; /* it did nothing */
  call_result_fail(&cancelled, CLASS_CANCELLED, "cancelled");
  session_call_done(open, &cancelled);
}

/* Returns true if the tree is to be examined around the call, as for programs that work in it.
 * Other backends touch nothing, or say what they touch. */
static bool wants_changes(struct open_call *open) {
  const struct session *s = open->session;
  bool works = open->request.purpose == PURPOSE_EXECUTE && s->host->store != NULL;
  open->looks = works && open->provider->capability.touches_files && s->env.cwd != NULL;
  open->tells = works && !open->provider->capability.touches_files;
  return open->looks;
}

static void look_first(void *ctx) {
  struct open_call *open = ctx;
  struct session *s = open->session;
  if (s->unseen != NULL) { /* it is not looked at again */
    on_looked(open);
    return;
  }
  const char *const own[] = {s->host->store->where, NULL};
  const struct changes_spec spec = {.loop = s->host->loop,
                                    .processes = s->host->processes,
                                    .trees = &s->host->trees,
                                    .cwd = open->top,
                                    .session = s->core.session,
                                    .own_folders = own,
                                    .protect = s->core.workflow->protect,
                                    .follows = open->follows,
                                    .owner = s,
                                    .seen = open->top == s->env.cwd ? &s->seen : NULL};
  open->changes = changes_begin(&spec, on_looked, open);
  if (changes_ready(open->changes))
    on_looked(open);
}

/* Returns true if the named folder, which lies below the top one, can be used. */
static bool can_use_folder(const char *top_path, const char *name, struct call_result *cannot) {
  struct err err;
  bool ok = name == NULL || limits_check_cwd(str_from(name), &err);
  int top = ok ? fs_open_folder(top_path) : -1, fd = top;
  if (ok && top >= 0 && name != NULL)
    fd = fs_open_folder_beneath(top, name);
  if (ok && fd < 0)
    err_set_errno(&err, errno, "names a folder that cannot be used");
  if (fd >= 0 && fd != top)
    (void)close(fd);
  if (top >= 0)
    (void)close(top);
  if (fd < 0 && name != NULL)
    call_result_fail(cannot, CLASS_BAD_REQUEST, "cwd: \"%s\" %s", name, err.text);
  else if (fd < 0)
    call_result_fail(cannot, CLASS_NOT_FOUND, "the worktree %s cannot be used: it is gone",
                     top_path);
  return fd >= 0;
}

/* Gives the call the environment of the folder that its movement works in. Returns false if that
 * folder cannot be used. */
static bool use_folder(struct open_call *open, const struct turn *turn,
                       struct call_result *cannot) {
  struct session *s = open->session;
  const char *name = open->request.cwd, *own = core_turn_folder(&s->core, turn);
  open->env = &s->env;
  open->top = own ? own : s->env.cwd;
  if (name == NULL && own == NULL)
    return true;
  if (!can_use_folder(open->top, name, cannot))
    return false;
  struct buf path = {0};
  buf_puts(&path, open->top);
  if (name != NULL)
    buf_printf(&path, "/%s", name);
  struct work_place *place = s->places;
  while (place != NULL && strcmp(place->cwd, buf_c(&path)) != 0)
    place = place->next;
  if (place == NULL) {
    place = xcalloc(1, sizeof *place);
    *place = (struct work_place){s->places, buf_take(&path), s->env};
    place->env.cwd = place->cwd;
    s->places = place;
  }
  buf_deinit(&path);
  open->env = &place->env;
  return true;
}

static void start_in_folder(struct open_call *open, const struct turn *turn) {
  struct call_result cannot = {0};
  if (!use_folder(open, turn, &cannot))
    start_failed(open, &cannot);
  else if (wants_changes(open))
    open->head = head_watch_begin(open->session->host->loop, open->top, look_first, open);
  else
    start_provider(open);
}

/* Goes on with the calls that waited for that worktree. ev NULL: the session is over. */
static void on_tree_again(struct session *s, struct event *ev) {
  LIST_EACH(struct open_call, open, in_session, &s->calls) {
    struct call_result cannot = {0};
    struct turn *turn = NULL;
    if (!open->awaits_tree || (ev != NULL && ev->call != open->tree))
      continue;
    open->awaits_tree = false;
    if (ev == NULL || open->cancelled || session_is_leaving(s) ||
        core_call(&s->core, open->call, &turn) == NULL)
      call_result_fail(&cannot, CLASS_CANCELLED, "cancelled");
    else if (ev->message != NULL)
      call_result_fail(&cannot, CLASS_NOT_FOUND, "its worktree is gone: %s", ev->message);
    if (cannot.class != CLASS_NONE)
      start_failed(open, &cannot);
    else
      start_in_folder(open, turn);
  }
  session_maybe_finish(s);
}

/* Returns true if the call's worktree was removed meanwhile, and is made again first. */
static bool awaits_tree(struct open_call *open, const struct turn *turn) {
  struct session *s = open->session;
  const struct worktree *own = core_worktree(&s->core, turn->id);
  struct stat st;
  bool under_way = false;
  if (own == NULL || !own->made)
    own = s->core.worktree.made ? &s->core.worktree : NULL;
  if (own == NULL || lstat(own->path, &st) == 0 || errno != ENOENT)
    return false;
  LIST_EACH(struct open_call, other, in_session, &s->calls)
    under_way = under_way || (other->awaits_tree && other->tree == own->turn);
  open->awaits_tree = true;
  open->tree = own->turn;
  if (!under_way)
    worktree_again(s, own->turn, on_tree_again);
  return true;
}

/* Begins the call in its folder, once its worktree is there, unless a day's budget is used up. */
static void start_in_tree(struct open_call *open, const char *refused) {
  struct session *s = open->session;
  struct call_result cannot = {0};
  struct turn *turn = NULL;
  if (refused != NULL)
    call_result_fail(&cannot, CLASS_BUDGET, "%s", refused);
  else if (open->cancelled || session_is_leaving(s) ||
           core_call(&s->core, open->call, &turn) == NULL)
    call_result_fail(&cannot, CLASS_CANCELLED, "cancelled");
  if (cannot.class != CLASS_NONE)
    start_failed(open, &cannot);
  else if (!awaits_tree(open, turn))
    start_in_folder(open, turn);
}

static void start_call(struct session *s, long id) {
  struct call_result cannot = {0};
  struct turn *turn = NULL;
  struct call *call = core_call(&s->core, id, &turn);
  struct grant grant;
  if (call == NULL || call->state != CALL_RUNNING || s->core.status != SESSION_RUNNING ||
      session_is_leaving(s) || s->host->draining || is_open(s, id))
    return; /* the session stopped or is stopping, or the answer was given */
  if (!session_takes_folder(s, id) || !pass_gate(s, turn, call, &grant))
    return;
  struct open_call *open = session_open_call(s, id);
  open->admitted = grant.gave_up == CLASS_NONE;
  open->probe = grant.probe;
  open->direct = grant.call == 0;
  open->follows = s->follows;
  core_request(&s->core, turn, call, &open->request);
  open->provider_session =
      xstrndup(open->request.provider_session.p, open->request.provider_session.n);
  open->request.provider_session.p = open->provider_session;
  open->provider = registry_find(s->registry, open->request.provider);
  if (open->provider == NULL) {
    struct call_result result = {.class = CLASS_NOT_FOUND};
    print_into(result.message, sizeof result.message, "there is no provider \"%.*s\"",
               (int)open->request.provider.n, open->request.provider.p);
    start_failed(open, &result);
    return;
  }
  if (grant.gave_up != CLASS_NONE) {
    call_result_fail(&cannot, grant.gave_up, "it is still away, as others have found");
    start_failed(open, &cannot);
  } else {
    session_budget_ask(open, grant.call != 0, start_in_tree);
  }
}

static void cancel_call(struct session *s, long id) {
  struct call_result cancelled = {0};
  session_leave_gate(s, id);
  if (id != 0 && s->core.status == SESSION_RUNNING && !is_open(s, id)) { /* it waited there */
    call_result_fail(&cancelled, CLASS_CANCELLED, "cancelled");
    report_late(session_open_call(s, id), &cancelled);
    return;
  }
  LIST_EACH(struct open_call, c, in_session, &s->calls)
    if ((id == 0 || c->call == id) && c->run != NULL)
      c->provider->ops->cancel(c->run);
    else if (id == 0 || c->call == id)
      c->cancelled = true;
}

static void end_call(struct session *s, long id, enum error_class class) {
  LIST_EACH(struct open_call, c, in_session, &s->calls)
    if (c->call == id)
      c->ends_as = class;
  cancel_call(s, id);
}

static void on_wait_closed(uv_handle_t *handle) {
  struct wait *wait = handle->data;
  struct session *s = wait->session;
  list_remove(&s->waits, &wait->in_session);
  free(wait);
  session_maybe_finish(s);
}

static void on_wait(uv_timer_t *timer) {
  struct wait *wait = timer->data;
  struct session *s = wait->session;
  struct event ev = {.kind = EVENT_TIMER, .call = wait->call};
  uv_close((uv_handle_t *)timer, on_wait_closed);
  session_event(s, &ev);
}

static void start_wait(struct session *s, long call, int64_t delay_ms) {
  struct wait *wait = xcalloc(1, sizeof *wait);
  wait->session = s;
  wait->call = call;
  list_push_front(&s->waits, &wait->in_session);
  uv_timer_init(s->host->loop, &wait->timer);
  wait->timer.data = wait;
  uv_timer_start(&wait->timer, on_wait, delay_ms > 0 ? (uint64_t)delay_ms : 0, 0);
}

/* Cancels what runs and drops what waits. */
static void session_begin_finish(struct session *s) {
  if (!session_is_leaving(s))
    session_set_life(s, LIFE_FINISHING);
  cancel_call(s, 0);
  worktree_cancel(s);
  hidden_tests_cancel(s);
  evidence_cancel(s);
  LIST_EACH(struct wait, w, in_session, &s->waits)
    if (!uv_is_closing((uv_handle_t *)&w->timer))
      uv_close((uv_handle_t *)&w->timer, on_wait_closed);
}

/* ev: EVENT_WORKTREE, EVENT_EVIDENCE or EVENT_HIDDEN; NULL: the work was cancelled. */
static void on_worktree(struct session *s, struct event *ev) {
  s->delivering++;
  if (ev != NULL)
    session_event(s, ev);
  s->delivering--;
  session_maybe_finish(s);
}

static void session_run_effects(struct session *s, const struct session_batch *b) {
  for (size_t i = 0; i < b->effect_count; i++) {
    const struct effect *e = &b->effects[i];
    switch (e->kind) {
    case EFFECT_START_CALL:
      start_call(s, e->call);
      break;
    case EFFECT_CANCEL_CALL:
      cancel_call(s, e->call);
      break;
    case EFFECT_END_CALL:
      end_call(s, e->call, e->class);
      break;
    case EFFECT_STEER:
      session_steer(s, e->call);
      break;
    case EFFECT_TIMER:
      if (!await_provider(s, e))
        start_wait(s, e->call, e->delay_ms);
      break;
    case EFFECT_WORKTREE:
      if (!session_is_leaving(s))
        worktree_start(s, e->call, on_worktree);
      break;
    case EFFECT_HIDDEN:
      if (!session_is_leaving(s))
        hidden_tests_start(s, on_worktree);
      break;
    case EFFECT_EVIDENCE:
      if (!session_is_leaving(s))
        evidence_start(s, e->call, on_worktree);
      break;
    case EFFECT_REPORTS:
      reports_write(s);
      break;
    case EFFECT_FINISHED:
      session_begin_finish(s);
      evidence_clean(s, on_worktree);
      break;
    }
  }
}

/* --- a session's beginning and end --- */

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
  changes_forget(&s->seen);
  free(s->heard);
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

void session_begin(struct session *s, const struct core_params *params) {
  struct event ev = {.kind = EVENT_RESUME};
  struct core_env env;
  struct core_out out;
  fill_event(s->host, &ev);
  core_env_of(s, &env);
  core_start(&s->core, params, &ev, &env, &out);
  host_gather(s, &out);
  session_flush(s);
  reports_write(s); /* for a fork, the ones that it takes over */
  session_set_life(s, LIFE_RUNNING);
}

void session_maybe_finish(struct session *s) {
  if (!session_is_leaving(s) || s->life == LIFE_FINISHED || s->in_flight || s->delivering ||
      s->calls.count > 0 || s->waits.count > 0 || s->jobs.count > 0 || s->evidence != NULL ||
      s->hidden != NULL || s->filling.record_count > 0)
    return;
  session_give_folder(s);
  changes_forget(&s->seen);
  ruleset_cache_forget(s->host->sandboxes, s->core.session);
  session_set_life(s, LIFE_FINISHED);
  if (s->watcher && s->watcher->finished)
    s->watcher->finished(s->watcher_ctx, s);
}
