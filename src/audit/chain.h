/* chain.h - checks the lines of a log, each by itself, in a thread beside the one that reads its
 * records: the hashes, and what `check` says. That is more than half of the work of proving a long
 * log, and as each line carries its hash at its end, the two threads need nothing from each other.
 *
 *   struct chain c = {.check = check, .ctx = ctx};
 *   chain_start(&c, &ref)     false: no thread could be started, or the log cannot be opened
 *   chain_join(&c)            waits; then c.records lines are sound, in the order of the log
 * It reads the log itself and stops at the end or at the first line that is not sound. */
#ifndef SEGUE_AUDIT_CHAIN_H
#define SEGUE_AUDIT_CHAIN_H

#include "store/reader.h"

#include <pthread.h>

struct chain {
  bool (*check)(void *ctx, struct str line); /* of a line whose hash is right; in the thread */
  void *ctx;
  struct log_reader reader;
  pthread_t thread;
  uint64_t records;
};

bool chain_start(struct chain *c, const struct store_ref *ref);
void chain_join(struct chain *c);

#endif
