/* Enters the heads of sessions in the ledger, with one sync for all that gathered meanwhile. */
#include "host/ledger_writer.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void ledger_writer_start(struct ledger_writer *sl);

static void ledger_writer_work(void *ctx) {
  struct ledger_writer *sl = ctx;
  sl->failed = !ledger_append(sl->store, sl->flying, sl->flying_count, &sl->err);
}

static void ledger_writer_over(struct ledger_writer *sl) {
  if (sl->failed)
    log_warn("%s: sessions that ended stay unsealed until they are seen again", sl->err.text);
  free(sl->flying);
  sl->flying = NULL;
  sl->flying_count = 0;
}

static void after_seal(void *ctx) {
  struct ledger_writer *sl = ctx;
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
  loop_do(sl->loop, ledger_writer_work, after_seal, sl);
}

void ledger_writer_add(struct ledger_writer *sl, const struct ledger_entry *entry, bool now) {
  assert(sl->store != NULL);
  sl->waiting = xrealloc(sl->waiting, (sl->waiting_count + 1) * sizeof *sl->waiting);
  sl->waiting[sl->waiting_count++] = *entry;
  if (!now || sl->flying != NULL || sl->begun_ms != 0) {
    ledger_writer_start(sl);
    return;
  }
  ledger_writer_take(sl);
  ledger_writer_work(sl);
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

void ledger_writer_init(struct ledger_writer *sl, uv_loop_t *loop, struct store *store) {
  *sl = (struct ledger_writer){.loop = loop, .store = store, .timer = xmalloc(sizeof *sl->timer)};
  uv_timer_init(loop, sl->timer);
  sl->timer->data = sl;
}

void ledger_writer_deinit(struct ledger_writer *sl) {
  assert(sl->flying == NULL);
  if (sl->waiting_count > 0 && !ledger_append(sl->store, sl->waiting, sl->waiting_count, &sl->err))
    log_warn("%s: sessions that ended stay unsealed until they are seen again", sl->err.text);
  free(sl->waiting);
  uv_close((uv_handle_t *)sl->timer, loop_free);
}
