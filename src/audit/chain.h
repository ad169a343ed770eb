/* chain.h - checks the hashes of a log in a thread beside the one that reads its records. Half of
 * what it takes to prove a long log is SHA-256, and each line's hash stands at its end, so the two
 * need nothing of each other.
 *
 *   chain_start(&c, &ref)     false: no thread is to be had, or the log cannot be opened
 *   chain_join(&c)            waits; then c.records lines are chained, in the order of the log
 * It reads the log by itself, and stops at its end or at the first line that is not chained. */
#ifndef SEGUE_AUDIT_CHAIN_H
#define SEGUE_AUDIT_CHAIN_H

#include "store/reader.h"

#include <pthread.h>

struct chain {
  struct log_reader reader;
  pthread_t thread;
  uint64_t records;
};

bool chain_start(struct chain *c, const struct store_ref *ref);
void chain_join(struct chain *c);

#endif
