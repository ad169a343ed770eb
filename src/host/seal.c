/* Writes heads to the ledger, many with one sync. */
#include "host/seal.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void sealer_start(struct sealer *sl);

static void sealer_work(uv_work_t *work) {
  struct sealer *sl = work->data;
  sl->failed = !ledger_append(sl->store, sl->flying, sl->flying_count, &sl->err);
}

static void sealer_over(struct sealer *sl) {
  if (sl->failed)
    log_warn("%s: sessions that ended stay unsealed until they are seen again", sl->err.text);
  free(sl->flying);
  sl->flying = NULL;
  sl->flying_count = 0;
}

static void after_seal(uv_work_t *work, int status) {
  struct sealer *sl = work->data;
  assert(status == 0); /* work is never cancelled */
  sealer_over(sl);
  sealer_start(sl);
}

static void sealer_take(struct sealer *sl) {
  assert(sl->flying == NULL);
  sl->flying = sl->waiting;
  sl->flying_count = sl->waiting_count;
  sl->waiting = NULL;
  sl->waiting_count = 0;
  sl->begun_ms = uv_now(sl->loop);
  sl->work.data = sl;
}

static void on_seal_timer(uv_timer_t *timer) {
  sealer_start(timer->data);
}

static void sealer_start(struct sealer *sl) {
  if (sl->waiting_count == 0 || sl->flying != NULL)
    return;
  uint64_t passed = uv_now(sl->loop) - sl->begun_ms;
  if (sl->begun_ms != 0 && passed < LIMIT_LEDGER_SYNC_MS) {
    uv_timer_start(sl->timer, on_seal_timer, LIMIT_LEDGER_SYNC_MS - passed, 0);
    return;
  }
  sealer_take(sl);
  loop_work(sl->loop, &sl->work, sealer_work, after_seal);
}

void sealer_add(struct sealer *sl, const struct ledger_entry *entry, bool now) {
  assert(sl->store != NULL);
  sl->waiting = xrealloc(sl->waiting, (sl->waiting_count + 1) * sizeof *sl->waiting);
  sl->waiting[sl->waiting_count++] = *entry;
  if (!now || sl->flying != NULL || sl->begun_ms != 0) {
    sealer_start(sl);
    return;
  }
  sealer_take(sl);
  sealer_work(&sl->work);
  sealer_over(sl);
}

void sealer_add_late(struct sealer *sl, const struct heads *heads, const struct brief *b,
                     bool now) {
  const struct ledger_entry *last = heads_last(heads, b->session);
  struct ledger_entry entry = {.late = true, .seq = b->seq};
  bool stopped = brief_is_stopped(b);
  if (strcmp(b->status, "running") == 0 || strlen(b->hash) != SHA256_HEX - 1 ||
      strlen(b->session) != STORE_ID_BYTES - 1 || (last != NULL && last->seq >= b->seq))
    return;
  entry.kind = stopped ? LEDGER_STOP : LEDGER_END;
  memcpy(entry.session, b->session, sizeof entry.session);
  memcpy(entry.hash, b->hash, sizeof entry.hash);
  sealer_add(sl, &entry, now);
}

static void on_seal_timer_closed(uv_handle_t *handle) {
  free(handle);
}

void sealer_init(struct sealer *sl, uv_loop_t *loop, struct store *store) {
  *sl = (struct sealer){.loop = loop, .store = store, .timer = xmalloc(sizeof *sl->timer)};
  uv_timer_init(loop, sl->timer);
  sl->timer->data = sl;
}

void sealer_deinit(struct sealer *sl) {
  assert(sl->flying == NULL);
  if (sl->waiting_count > 0 && !ledger_append(sl->store, sl->waiting, sl->waiting_count, &sl->err))
    log_warn("%s: sessions that ended stay unsealed until they are seen again", sl->err.text);
  free(sl->waiting);
  uv_close((uv_handle_t *)sl->timer, on_seal_timer_closed);
}
