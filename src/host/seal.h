/* seal.h - enters the heads of sessions that stop or end in the ledger of their store.
 *
 *   sealer_init(&sl, loop, store)        store NULL: nothing is kept
 *   sealer_add(&sl, &entry, now)         after the record is durable; now: on this thread, at once
 *   sealer_deinit(&sl)                   nothing is under way: the loop has ended
 *
 * One sync covers everything gathered since the last one, and syncs begin at least
 * LIMIT_LEDGER_SYNC_MS apart. The loop stays alive until everything is written. An entry that
 * cannot be written is reported once and made late: when the session is opened again, or the next
 * daemon starts. */
#ifndef SEGUE_HOST_SEAL_H
#define SEGUE_HOST_SEAL_H

#include "store/brief.h"
#include "store/heads.h"

#include <uv.h>

struct sealer {
  uv_loop_t *loop;
  struct store *store;
  struct ledger_entry *waiting, *flying;
  size_t waiting_count, flying_count;
  uint64_t begun_ms; /* when the last sync began; 0: there was none */
  bool failed;
  struct err err;
  uv_work_t work;
  uv_timer_t *timer; /* allocated by itself: it closes after the sealer is gone */
};

void sealer_init(struct sealer *sl, uv_loop_t *loop, struct store *store);
void sealer_deinit(struct sealer *sl);
void sealer_add(struct sealer *sl, const struct ledger_entry *entry, bool now);

/* Adds a session that is over but whose last record the ledger lacks. */
void sealer_add_late(struct sealer *sl, const struct heads *heads, const struct brief *b, bool now);

#endif
