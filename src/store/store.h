/* store.h - where sessions live: one folder, one append-only log a session, blobs beside them.
 *
 *   store_open(&store, dir, &err)
 *   log = store_create(&store, id, &err)                 a new session
 *   log = store_attach(&store, path, fold, ctx, &err)    an old one: every sound record is handed to
 *                                                        fold in order, a torn tail is cut off
 *   store_append(log, expected_seq, records, n, done, ctx)   one write and one sync; one in flight
 *   store_close(log)                                     not while an append is in flight
 *
 * The owner of a log holds a lock on the file (open file description lock) that dies with it.
 *
 * DESIGN, durability. A batch is written behind the last durable byte and synced; only then `done`
 * says STORE_OK. No space: the file is cut back to the last durable byte, the caller keeps the batch
 * and comes again. A failed sync: what reached the disk is unknown and the descriptor is not trusted
 * again; the file is reopened, its chain compared up to the last durable record, and prefix and
 * batch go to a new file that replaces the old one. So they do when the file was removed under its
 * owner (a cleaned folder); one that another file replaced is an error. Appending runs in the loop's pool: a work
 * touches only its own log. */
#ifndef SEGUE_STORE_STORE_H
#define SEGUE_STORE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/record.h"

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

enum { STORE_PATH_BYTES = 1024, STORE_ID_BYTES = 37 };

struct store {
  char dir[STORE_PATH_BYTES];
  bool blobs_made;
};

enum store_result {
  STORE_OK,
  STORE_FENCED,   /* another owner took over (shared stores) */
  STORE_CONFLICT, /* expected_seq is not the next one */
  STORE_FULL,     /* no space; nothing of the batch is there */
  STORE_IO        /* the log cannot be trusted or written any more */
};

struct store_log;

/* Threads that the loop's pool should have for appends: two a processor. Measured with 16 sessions on
 * two processors: with 4, a thread that is done finds the next append; with more, most sleep and
 * each append has to wake one, at a third more processor time a turn (with 5 at times, with 16
 * always). */
unsigned store_pool_threads(void);

/* Makes the folder (0700) when it is missing and checks that it can be written, and that locks work
 * there: a log must never have two owners. */
bool store_open(struct store *store, const char *dir, struct err *err) MUST_CHECK;

struct store_log *store_create(struct store *store, const char *id, struct err *err);

typedef bool (*store_fold_fn)(void *ctx, const json_t *record, struct err *err);
/* *notice is set when a torn tail was cut off (static text or ""). ERR_LOCKED: it has an owner. */
struct store_log *store_attach(struct store *store, const char *path, store_fold_fn fold, void *ctx,
                               char *notice, size_t notice_bytes, struct err *err);

/* The lines of the batch as they are now in the file come with `done`, split by newlines; err is
 * NULL with STORE_OK. */
typedef void (*store_done_fn)(void *ctx, enum store_result result, struct str lines,
                              const struct err *err);
/* Takes the batch; `done` comes from the loop. The records' seq must follow expected_seq. */
void store_append(struct store_log *log, uv_loop_t *loop, uint64_t expected_seq,
                  struct record *const *records, size_t n, store_done_fn done, void *ctx);
/* The same batch once more, after STORE_FULL. */
void store_append_again(struct store_log *log, uv_loop_t *loop, store_done_fn done, void *ctx);

/* The same at once, on the calling thread, where nothing else waits for it: one session on its own
 * loop saves two thread switches a sync. STORE_OK: `lines` holds the batch, yours to deinit.
 * STORE_FULL: go on with store_append_again. */
enum store_result store_append_now(struct store_log *log, uint64_t expected_seq,
                                   struct record *const *records, size_t n, struct buf *lines,
                                   struct err **err); /* NULL, or the reason: free() it */

const char *store_log_path(const struct store_log *log);
uint64_t store_log_seq(const struct store_log *log); /* of the last durable record */
uint64_t
store_log_bytes(const struct store_log *log); /* durable ones: where the next line begins */
uint64_t store_log_syncs(const struct store_log *log); /* counted for the benchmark */
void store_close(struct store_log *log);

/* One record of an attached log by its seq: recovery reads prompts back. New reference. */
json_t *store_read(struct store_log *log, uint64_t seq, struct err *err);

/* Blobs: blobs/<sha256>, written and synced before the record that names them. Blocking: call them
 * from the pool (put) or in recovery (get). */
bool store_blob_put(const struct store *store, struct str bytes, char sha256[SHA256_HEX],
                    struct err *err) MUST_CHECK;
bool store_blob_get(const char *dir, const char *sha256, struct buf *out,
                    struct err *err) MUST_CHECK;

#endif
