/* ledger.h - keeps the heads of sessions beside their logs: the last record when a session stopped
 * or ended, or a worker took it, and its hash.
 *
 *   ledger_append(&store, entries, n, &err)    durable; blocking: call it from the pool
 *   ledger_read(&store, each, ctx, &end, &err)
 *
 * A log's own chain cannot show that the log is gone, that its end is cut off, or that all of it
 * was rewritten. The ledger can: its entries are chained like the records of a log, so whoever
 * changes a log must also change the ledger from there on, and every head that somebody keeps
 * elsewhere (segue heads). An entry is written once its record is durable; if a crash prevents
 * that, it is written later and marked as late. With files the ledger is ledger/heads.log. */
#ifndef SEGUE_STORE_LEDGER_H
#define SEGUE_STORE_LEDGER_H

#include "store/store.h"

enum ledger_kind {
  LEDGER_END,
  LEDGER_STOP,
  LEDGER_CUT,     /* seq is the last record that a person kept: later ones no longer count */
  LEDGER_REMOVED, /* the log is not missing: a person removed it */
  LEDGER_HELD     /* a worker of a shared store took it, and wrote its first records */
};

struct ledger_entry {
  char session[STORE_ID_BYTES];
  enum ledger_kind kind;
  bool late; /* written when the session was seen again; its log may have been changed by then */
  uint64_t seq;
  char hash[SHA256_HEX]; /* hash of record seq */
  uint64_t number;       /* set when read: number of the entry, from 1 */
  char self[SHA256_HEX]; /* set when read: hash of the entry itself */
};

struct ledger_end {
  uint64_t entries;      /* number of sound entries */
  char hash[SHA256_HEX]; /* hash of the last sound entry */
  bool damaged;          /* the next entry was changed; `why` says more */
  struct err why;
};

const char *ledger_kind_name(enum ledger_kind kind); /* end, stop, cut, removed, held */

bool ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                   struct err *err) MUST_CHECK;
/* Visits every sound entry in order; a ledger that does not exist yet has none. Returns false if it
 * cannot be read. */
bool ledger_read(const struct store *store,
                 void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                 struct ledger_end *end, struct err *err) MUST_CHECK;

#endif
