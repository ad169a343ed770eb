/* seal.h - brings the heads of sessions that stop and end into the ledger of their store.
 *
 *   sealer_init(&sl, loop, store)        store NULL: nothing is kept
 *   sealer_add(&sl, &entry, now)         after the record is durable; now: on this thread, at once
 *   sealer_deinit(&sl)                   nothing is under way: the loop has come to its end
 *
 * One sync takes all that gathered since the last one, and they begin at least LIMIT_LEDGER_SYNC_MS
 * apart. The loop goes on until everything is written. What cannot be written is said once and
 * comes late: when the session is opened again, or the next daemon starts. */
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
  uv_timer_t *timer; /* its own memory: it closes after the sealer is gone */
};

void sealer_init(struct sealer *sl, uv_loop_t *loop, struct store *store);
void sealer_deinit(struct sealer *sl);
void sealer_add(struct sealer *sl, const struct ledger_entry *entry, bool now);

/* A session that is over, and of which the ledger knows nothing, or nothing so late. */
void sealer_add_late(struct sealer *sl, const struct heads *heads, const struct brief *b, bool now);

#endif
