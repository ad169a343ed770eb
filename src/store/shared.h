/* shared.h - looks after a shared store: its tables, its state, and how its rows compare with its
 * logs.
 *
 *   shared_init(url, dry_run, &out, &err)    makes the tables, or brings them up to date; out: what
 *                                            was done, or with dry_run the SQL that would be run
 *   status = shared_status(url, &err)        a JSON object: version, workers, sessions, bytes
 *   places = shared_places(url, &err)        who has each session that has not ended, or why nobody
 *   shared_limit(url, provider, slots, &err) so many calls at once over all workers; 0: no limit
 *   shared_check(url, mend, each, ctx, &err) each row against its log
 *   shared_tidy(url, &err)                   lines that a removal which was interrupted left
 *   set = shared_unused_blobs(url, &err)     blobs that nobody put for a day, for store_blobs_sweep
 *
 * url: see postgres/url.h for what may stand in it. Blocking. */
#ifndef SEGUE_STORE_SHARED_H
#define SEGUE_STORE_SHARED_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

/* Returns the version of libpq, such as "15.10", and loads it first; NULL if it cannot be loaded.
 * Not to be freed. */
const char *store_library(void);

/* Two may run at once: one waits for the other. */
bool shared_init(const char *url, bool dry_run, struct buf *out, struct err *err) MUST_CHECK;

/* Returns a new reference, or NULL. */
json_t *shared_status(const char *url, struct err *err);

/* Returns ID -> {"worker", "lease_age_s"} for a session that a worker holds, or {"waits"} for one
 * in the queue: a sentence for people on why nobody takes it; with {"moved_to"} for one that
 * continues elsewhere. A new reference, or NULL. */
json_t *shared_places(const char *url, struct err *err);

bool shared_limit(const char *url, const char *provider, unsigned slots,
                  struct err *err) MUST_CHECK;
bool shared_tidy(const char *url, struct err *err) MUST_CHECK;
/* Returns a new object whose keys are their hashes, or NULL. */
json_t *shared_unused_blobs(const char *url, struct err *err);

struct shared_finding {
  const char *session;
  uint64_t records;    /* sound records of the log */
  const char *problem; /* NULL: there is no problem */
  bool mended;         /* the row now says what the log says */
};
/* Checks every session. mend: rewrites a row that contradicts its intact log, but never a log.
 * Returns false if the store cannot be read. */
bool shared_check(const char *url, bool mend,
                  void (*each)(void *ctx, const struct shared_finding *finding), void *ctx,
                  struct err *err) MUST_CHECK;

#endif
