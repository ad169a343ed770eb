/* ledger.h - the heads of sessions, kept beside their logs: which record was the last one when a
 * session stopped or ended, and its hash.
 *
 *   ledger_append(&store, entries, n, &err)    durable; blocking: call it from the pool
 *   ledger_read(&store, each, ctx, &end, &err)
 *
 * A log's own chain cannot show that the log is gone, that its end is cut off, or that all of it
 * was written anew. The ledger can: its entries are chained like the records of a log, so that
 * whoever changes a log must change the ledger from there on too, and with it every head that
 * somebody keeps elsewhere (segue heads). An entry is written once its record is durable; one that
 * a crash prevented is written later, and marked as late. With files it is ledger/heads.log. */
#ifndef SEGUE_STORE_LEDGER_H
#define SEGUE_STORE_LEDGER_H

#include "store/store.h"

enum ledger_kind {
  LEDGER_END,
  LEDGER_STOP,
  LEDGER_CUT,    /* seq is the last record that a person left: later ones no longer count */
  LEDGER_REMOVED /* the log is not missing: a person removed it */
};

struct ledger_entry {
  char session[STORE_ID_BYTES];
  enum ledger_kind kind;
  bool late; /* written when the session was seen again: by then its log may have been changed */
  uint64_t seq;
  char hash[SHA256_HEX]; /* of record seq */
  uint64_t number;       /* when read: of the entry, from 1 */
  char self[SHA256_HEX]; /* when read: of the entry itself */
};

struct ledger_end {
  uint64_t entries;      /* sound ones */
  char hash[SHA256_HEX]; /* of the last of them */
  bool damaged;          /* the next one is not what was written; `why` says more */
  struct err why;
};

const char *ledger_kind_name(enum ledger_kind kind); /* end, stop, cut, removed */

bool ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                   struct err *err) MUST_CHECK;
/* Visits every sound entry in order; a ledger that does not exist yet has none. False: it cannot be
 * read. */
bool ledger_read(const struct store *store,
                 void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                 struct ledger_end *end, struct err *err) MUST_CHECK;

#endif
