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
 *   shared_counted_read(url, ...), shared_counted_keep(url, ...)
 *                                            what an audit read of logs before, one value for each
 *
 * url: see postgres/url.h for what may stand in it. Blocking. */
#ifndef SEGUE_STORE_SHARED_H
#define SEGUE_STORE_SHARED_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "store/store.h"

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

/* Holds what an audit read of one log (audit/aggregate_shared.c knows its form). */
struct shared_counted {
  char id[STORE_ID_BYTES];
  struct str judgments; /* borrowed; reading: p NULL if all are older than since_ms */
  /* Only keeping: the last record that was read, its hash, and the time of the newest judgment. */
  uint64_t seq;
  char hash[SHA256_HEX];
  int64_t last_ms;
  /* Only reading: whether the log still ends as it did then, otherwise there are no judgments; its
   * bytes; and whether a worker has the session now. */
  bool kept;
  uint64_t bytes;
  bool owned;
};
/* Passes on every session, the newest first, with what is kept of it in that format. *keeps: this
 * login may keep more. Tables that keep nothing give ERR_NOT_FOUND before anything is passed on. */
bool shared_counted_read(const char *url, int format, int64_t since_ms, bool *keeps,
                         void (*each)(void *ctx, const struct shared_counted *counted), void *ctx,
                         struct err *err) MUST_CHECK;
/* Keeps what was read of n logs; of those that have grown since, nothing. */
bool shared_counted_keep(const char *url, int format, const struct shared_counted *items, size_t n,
                         struct err *err) MUST_CHECK;

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
