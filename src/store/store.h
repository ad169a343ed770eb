/* store.h - where sessions live: one append-only log a session, blobs beside them. Only this room
 * knows what a log is made of; everybody else has a reference, a log of their own, or a reader.
 *
 *   store_open(&store, where, &err)                      to write; where: a folder, or the address
 *                                                        of a shared store (postgres://HOST/DB)
 *   store_at(&store, where)                              to read only: nothing is made or checked
 *   log = store_create(&store, id, &err)                 a new session
 *   log = store_attach(&store, &ref, fold, ctx, &mend, &err)   an old one: every sound record is
 *                                                        handed to fold, a torn tail set aside
 *   store_append(log, expected_seq, records, n, done, ctx)   one batch, durable; one in flight
 *   store_close(log)                                     not while an append is in flight
 *
 * A reference (struct store_ref) names a log without owning it: store_ref for a session's id,
 * store_ref_named for a log by the name that a person gave, store_find for what a person means.
 * Reading is reader.h; how a session stands is summary.h.
 *
 * The owner of a log holds a lock on it that dies with the process. Every back end (backend.h)
 * promises the same; files.c says how files keep the promise. */
#ifndef SEGUE_STORE_STORE_H
#define SEGUE_STORE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/record.h"

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

enum { STORE_PATH_BYTES = 1024, STORE_ID_BYTES = 37, STORE_NAME_BYTES = 2048 };

struct store_ops;

struct store {
  const struct store_ops *ops;
  char where[STORE_PATH_BYTES]; /* as it was given; messages: store_shown */
  unsigned lock_wait_ms;        /* how long store_attach waits for an owner that is going; 0: not */
};

/* Refers to a log by a name that a person can see and give back. */
struct store_ref {
  const struct store_ops *ops;
  char name[STORE_NAME_BYTES];
};

/* --- stores --- */

/* Makes the store if it is missing, and checks that it can be written and that locks work there: a
 * log must never have two owners. */
bool store_open(struct store *store, const char *where, struct err *err) MUST_CHECK;
void store_at(struct store *store, const char *where);
/* Returns whether `where` is the address of a shared store, not a folder. */
bool store_is_address(const char *where);
/* Returns the folder of a store of files; NULL for any other, or none. */
const char *store_folder(const struct store *store);
/* Returns what messages call it: a folder by its path, a shared store by host, port and database
 * (in `out`), since the rest of an address is nobody else's business. */
enum { STORE_SHOWN_BYTES = 320 };
const char *store_shown(const char *where, char out[STORE_SHOWN_BYTES]);
bool store_exists(const struct store *store);

/* store_list gives the ids of the sessions, newest first; free() the array. False: they cannot be
 * read. */
struct store_id {
  char id[STORE_ID_BYTES];
};
bool store_list(const struct store *store, struct store_id **ids, size_t *count,
                struct err *err) MUST_CHECK;
/* Calls back for each session of the store, newest first. */
bool store_each(const struct store *store, void *ctx,
                void (*each)(void *ctx, const struct store_ref *ref), struct err *err) MUST_CHECK;

/* Takes a right that only one process has at a time in a store, such as "daemon". -1: failed; with
 * ERR_LOCKED another process has it. It ends with store_yield or the process. */
int store_hold(const struct store *store, const char *right, struct err *err);
void store_yield(int held); /* -1 is fine */
bool store_is_held(const struct store *store, const char *right);

/* --- references --- */

void store_ref(const struct store *store, const char *id, struct store_ref *ref);
/* Returns false if the name is too long for any log. */
bool store_ref_named(const char *name, struct store_ref *ref);
/* Finds the log that a person means: a name, a whole id, a unique prefix of one, or `last`. A word
 * with a slash, or that ends with .ndjson, is a name; any other word is a name if no id begins with
 * it. */
bool store_find(const struct store *store, const char *word, struct store_ref *ref,
                struct err *err) MUST_CHECK;
/* Gives the store that holds the log; its blobs are there. */
void store_of(const struct store_ref *ref, struct store *store);
/* Gives the session id that is in the log's name; "" if there is none. */
void store_ref_id(const struct store_ref *ref, char id[STORE_ID_BYTES]);
/* Returns false for a log with the name of another session than the one that it begins. */
bool store_ref_suits(const struct store_ref *ref, const char *session, struct err *err) MUST_CHECK;
/* Returns true, and says so, if such a log stands beside the session's own: it is a copy. */
bool store_ref_is_copy(const struct store_ref *ref, const char *session,
                       struct err *err) MUST_CHECK;
bool store_is_there(const struct store_ref *ref); /* and can be read */
/* True while a process owns the log. */
bool store_is_owned(const struct store_ref *ref);
bool store_bytes(const struct store_ref *ref, uint64_t *bytes) MUST_CHECK;
/* Returns a number that changes when somebody writes to the log or replaces it; 0 if only segue
 * can. */
uint64_t store_written(const struct store_ref *ref);
/* Removes the log of a session that never began, or that a person wants gone. */
void store_remove(const struct store_ref *ref);

/* --- logs --- */

enum store_result {
  STORE_OK,
  STORE_FENCED,   /* another owner took over (shared stores) */
  STORE_CONFLICT, /* expected_seq is not the next one */
  STORE_FULL,     /* no space; nothing of the batch was kept */
  STORE_IO        /* the log cannot be trusted or written any more */
};

struct store_log;

/* Returns how many threads the loop's pool should have for appends. A sync waits for the device's
 * flush, and those of other threads at that moment share it: a bare loop of 1,000 logs of five
 * syncs each took 0.2 to 0.3 s from 16 threads, 0.7 s from 4 and 22 s from one (ext4, two
 * processors). So a process with many sessions takes as many threads as it may, and one with few
 * sessions two for each processor: there, more threads would mostly sleep, and each append would
 * have to wake one. */
unsigned store_pool_threads(bool many_sessions);
/* While set for a thread, opening a log there is a bug, and test builds abort. It is for an event
 * loop, for which others wait. */
void store_reads_nothing(bool nothing);

struct store_log *store_create(struct store *store, const char *id, struct err *err);
/* Makes a log as store_create does; if the back end can, only the first append makes it, or
 * fails. */
struct store_log *store_create_later(struct store *store, const char *id, struct err *err);

/* A crash may leave something after the last record; it is set aside automatically. Whole records
 * that were changed are not: the log is refused unless a person says `cut`. */
struct store_mend {
  bool cut;
  char notification[STORE_NAME_BYTES + 128]; /* what was set aside, or "" */
  uint64_t cut_bytes;                        /* bytes that only `cut` took off; 0: none */
  uint64_t cut_records;                      /* number of lines among them */
  char cut_sha256[SHA256_HEX];
};

typedef bool (*store_fold_fn)(void *ctx, const json_t *record, struct err *err);
/* Takes a log over. fold: NULL receives nothing. ERR_LOCKED: the log has an owner. */
struct store_log *store_attach(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                               void *ctx, struct store_mend *mend, struct err *err);

/* Gets the lines of the batch as they are now in the log, separated by newlines; err is NULL with
 * STORE_OK. */
typedef void (*store_done_fn)(void *ctx, enum store_result result, struct str lines,
                              const struct err *err);
/* Takes the batch and calls `done` from the loop. The records' seq must follow expected_seq. */
void store_append(struct store_log *log, uv_loop_t *loop, uint64_t expected_seq,
                  struct record *const *records, size_t n, store_done_fn done, void *ctx);
/* Appends the same batch once more, after STORE_FULL. */
void store_append_again(struct store_log *log, uv_loop_t *loop, store_done_fn done, void *ctx);

/* Appends at once on the calling thread, for when nothing else waits for it: one session on its own
 * loop saves two thread switches a sync. STORE_OK: `lines` holds the batch, yours to deinit.
 * STORE_FULL: continue with store_append_again. */
enum store_result store_append_now(struct store_log *log, uint64_t expected_seq,
                                   struct record *const *records, size_t n, struct buf *lines,
                                   struct err **err); /* NULL, or why it failed: free() it */

const char *store_log_name(const struct store_log *log);
uint64_t store_log_seq(const struct store_log *log);     /* seq of the last durable record */
const char *store_log_hash(const struct store_log *log); /* hash of that record */
/* Returns the durable bytes: the next line begins there. */
uint64_t store_log_bytes(const struct store_log *log);
/* Cuts off what is not certainly durable. Call it after a failed append, before closing. */
bool store_log_settle(struct store_log *log, struct err *err) MUST_CHECK;
void store_close(struct store_log *log);

/* Returns one record of an attached log by its seq, as a new reference: recovery reads prompts
 * back. */
json_t *store_read(struct store_log *log, uint64_t seq, struct err *err);

/* --- reports --- */

/* Reports are files of a session beside its log, for agents and people. The log holds their bytes:
 * they are written after it, whole or not at all, and not synced. They are removed with the log.
 * file: a name without a folder, as core/report_file.h has it. */
bool store_report_put(const struct store *store, const char *session, const char *file,
                      struct str bytes, struct err *err) MUST_CHECK;
/* Hashes the file as it is now; false: it is missing, empty (as a crash may leave it) or
 * unreadable. */
bool store_report_sha256(const struct store *store, const char *session, const char *file,
                         char sha256[SHA256_HEX]) MUST_CHECK;
/* Returns the path that agents are given. */
void store_report_folder(const struct store *store, const char *session,
                         char out[STORE_NAME_BYTES]);

/* --- blobs --- */

/* Blobs are named by their SHA-256 and durable before the record that names them. Blocking: call
 * these from the pool (put) or in recovery (get). */
bool store_blob_put(const struct store *store, struct str bytes, char sha256[SHA256_HEX],
                    struct err *err) MUST_CHECK;
bool store_blob_get(const struct store *store, const char *sha256, struct buf *out,
                    struct err *err) MUST_CHECK;
/* These serve to remove logs: the first collects in a set (an object) the blobs that a log names;
 * the second removes those in the set that no log of the store names any more. kept: how many stay
 * because they were used a moment ago and their record may still come. */
void store_blobs_named(const struct store_ref *ref, json_t *named);
bool store_blobs_sweep(const struct store *store, json_t *named, size_t *kept,
                       struct err *err) MUST_CHECK;
/* Removes what processes left that were killed while they wrote a blob, never what a live one is
 * writing. Restores blobs whose removal was interrupted, and adds them to the set `found`, if any.
 * store_blobs_sweep begins with it. */
void store_blobs_tidy(const struct store *store, json_t *found);
/* Names the blob's place for a person. */
void store_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]);

#endif
