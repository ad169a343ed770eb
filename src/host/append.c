/* Makes batches durable with one write and one sync, then runs their effects. Waits while a disk is
 * full. */
#include "host/session.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void records_clear(struct session_batch *b) {
  for (size_t i = 0; i < b->record_count; i++)
    record_free(b->records[i]);
  free(b->records);
  b->records = NULL;
  b->record_count = 0;
}

void batch_clear(struct session_batch *b) {
  records_clear(b);
  free(b->effects);
  *b = (struct session_batch){0};
}

/* Gives free memory back to the system: many sessions in one wave leave holes in the heap. */
static void give_back_memory(struct host *host, size_t logged) {
  host->logged_since_trim += logged;
  if (host->logged_since_trim < LIMIT_TRIM_BYTES)
    return;
  host->logged_since_trim = 0;
  memory_give_back(64 * 1024);
}

void session_head(const struct session *s, enum ledger_kind kind, struct ledger_entry *head) {
  *head = (struct ledger_entry){.kind = kind, .seq = store_log_seq(s->log)};
  memcpy(head->session, s->core.session, sizeof head->session);
  memcpy(head->hash, store_log_hash(s->log), sizeof head->hash);
}

static void seal(struct session *s, const struct ledger_entry *head) {
  sealer_add(&s->host->sealer, head, s->host->sync_now);
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
  give_back_memory(s->host, lines.n);
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
    (void)snprintf(text, sizeof text, "%s: waiting for %s", err->text, full ? "space" : "it");
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

void session_flush_soon(struct session *s) {
  if (s->life == LIFE_RUNNING)
    uv_timer_start(&s->soon, on_gathered, 0, 0);
  else
    session_flush(s);
}

static uint64_t first_seq(const struct session_batch *b) {
  return b->records[0]->seq;
}

/* Syncs on the loop's own thread while that is fast; a slow disk goes back to the pool. */
static void append_now(struct session *s) {
  uint64_t start_us = clock_mono_us();
  s->now_result = store_append_now(s->log, first_seq(&s->flying), s->flying.records,
                                   s->flying.record_count, &s->now_lines, &s->now_err);
  if (clock_mono_us() - start_us > LIMIT_SYNC_NOW_MS * 1000ull)
    s->pool_appends = LIMIT_SYNC_POOL_COUNT;
}

void session_flush(struct session *s) {
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
    append_now(s);
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
