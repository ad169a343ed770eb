/* heads.h - what a ledger, or a list of heads kept elsewhere, says of each session.
 *
 *   heads_load(&h, &store, anchor, &err)     from the ledger
 *   heads_parse(&h, text, &anchor, &err)     from lines as `segue heads` prints them
 *   entry = heads_of(&h, id, &n)             entries of one session, in the order of their records
 *   heads_deinit(&h)                         accepts a zeroed one
 *   heads_once(&lazy, &store)                loads them when they are first needed; then
 *   heads_once_free(&lazy)
 *
 * Entries whose records no longer count, because a person cut them off or removed the log, are left
 * out. */
#ifndef SEGUE_STORE_HEADS_H
#define SEGUE_STORE_HEADS_H

#include "store/ledger.h"

struct heads {
  struct ledger_entry *items; /* sorted by session */
  size_t count;
  struct ledger_end end; /* end of the ledger */
  bool anchored;         /* the ledger has the entry that `anchor` names, with that hash */
};

/* Loads the ledger. anchor: number and hash of an entry that must be there, or NULL. */
bool heads_load(struct heads *h, const struct store *store, const struct ledger_end *anchor,
                struct err *err) MUST_CHECK;
bool heads_parse(struct heads *h, struct str text, struct ledger_end *anchor,
                 struct err *err) MUST_CHECK;
const struct ledger_entry *heads_of(const struct heads *h, const char *session, size_t *n);
/* Returns the session's last entry, or NULL. */
const struct ledger_entry *heads_last(const struct heads *h, const char *session);
/* Returns whether the session has ended, which is final: its log need not be read to know that. */
bool heads_ended(const struct heads *h, const char *session);
void heads_deinit(struct heads *h);

/* Never returns NULL; a ledger that cannot be read says nothing of any session. */
const struct heads *heads_once(struct heads **lazy, const struct store *store);
void heads_once_free(struct heads **lazy); /* accepts NULL in it */

#endif
