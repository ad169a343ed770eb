/* ledger_writer.h - enters the heads of sessions that stop or end in the ledger of their store.
 *
 *   ledger_writer_init(&sl, loop, store)    store NULL: nothing is kept
 *   ledger_writer_add(&sl, &entry, now)     after the record is durable; now: at once
 *   ledger_writer_deinit(&sl)               nothing is under way: the loop has ended
 *
 * One sync covers everything gathered since the last one, and syncs begin at least
 * LIMIT_LEDGER_SYNC_MS apart. The loop stays alive until everything is written. An entry that
 * cannot be written is reported once and made late: when the session is opened again, or the next
 * daemon starts. */
#ifndef SEGUE_HOST_LEDGER_WRITER_H
#define SEGUE_HOST_LEDGER_WRITER_H

#include "store/heads.h"
#include "store/summary.h"

#include <uv.h>

struct ledger_writer {
  uv_loop_t *loop;
  struct store *store;
  struct ledger_entry *waiting, *flying;
  size_t waiting_count, flying_count;
  uint64_t begun_ms; /* when the last sync began; 0: there was none */
  bool failed;
  struct err err;
  uv_timer_t *timer; /* allocated by itself: it closes after the sealer is gone */
};

void ledger_writer_init(struct ledger_writer *sl, uv_loop_t *loop, struct store *store);
void ledger_writer_add(struct ledger_writer *sl, const struct ledger_entry *entry, bool now);
/* Adds a session that is over but whose last record the ledger lacks. */
void ledger_writer_add_late(struct ledger_writer *sl, const struct heads *heads,
                            const struct summary *b, bool now);
void ledger_writer_deinit(struct ledger_writer *sl);

#endif
