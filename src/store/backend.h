/* backend.h - a back end of the store: one table of functions. store.c calls them and does whatever
 * does not depend on where a log lives: names, the chain, the batch.
 *
 * To add one: write the table, let store_at choose it by the form of `where`, and add it to
 * tests/conformance/store_test.c, which runs the same cases on each. */
#ifndef SEGUE_STORE_BACKEND_H
#define SEGUE_STORE_BACKEND_H

#include "store/label.h"
#include "store/ledger.h"
#include "store/store.h"

#include <time.h>

/* store.c knows a log as this; a back end's own struct begins with it. */
struct store_log {
  const struct store_ops *ops;
  struct store *store;
  char *name;
  uint64_t bytes;        /* durable bytes */
  uint64_t seq;          /* seq of the last durable record */
  char hash[SHA256_HEX]; /* hash of the last durable record */
  bool broken;
  bool in_flight;
  uint64_t syncs;
  /* the batch in flight, or kept after STORE_FULL */
  struct buf batch;
  uint64_t batch_seq;
  char batch_hash[SHA256_HEX];
  store_done_fn done;
  void *done_ctx;
};

struct store_move {
  uint64_t bytes;   /* bytes of the log already at the target, sound and the same as the source's */
  const json_t *on; /* labels that it asks of its workers, or NULL */
  /* true: the source may still continue; false: it is set aside, and what is in transit arrives */
  bool begins;
};

enum store_stand { STAND_NONE, STAND_GOES_ON, STAND_IN_TRANSIT, STAND_SET_ASIDE };

struct store_raw; /* a log that is open for reading */
struct reader_due;

struct store_ops {
  bool (*open)(struct store *store, struct err *err);
  bool (*exists)(const struct store *store);
  bool (*list)(const struct store *store, struct store_id **ids, size_t *count, struct err *err);
  int (*hold)(const struct store *store, const char *right, struct err *err);
  void (*yield)(int held);
  bool (*is_held)(const struct store *store, const char *right);

  void (*ref)(const struct store *store, const char *id, struct store_ref *ref);
  bool (*find)(const struct store *store, const char *word, struct store_ref *ref, struct err *err);
  void (*of)(const struct store_ref *ref, struct store *store);
  void (*ref_id)(const struct store_ref *ref, char id[STORE_ID_BYTES]);
  bool (*is_there)(const struct store_ref *ref);
  bool (*is_owned)(const struct store_ref *ref);
  bool (*bytes)(const struct store_ref *ref, uint64_t *bytes);
  uint64_t (*written)(const struct store_ref *ref); /* or NULL */
  void (*remove)(const struct store_ref *ref);

  struct store_log *(*create)(struct store *store, const char *id, struct err *err);
  struct store_log *(*create_later)(struct store *store, const char *id); /* or NULL */
  struct store_log *(*attach)(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                              void *ctx, struct store_mend *mend, struct err *err);
  /* Makes log->batch durable after log->bytes; ends with store_append_over, from the loop. */
  void (*append)(struct store_log *log, uv_loop_t *loop);
  enum store_result (*append_now)(struct store_log *log, struct err *err);
  /* NULL: whoever takes the session next sees by the hash whether a failed append was written. */
  bool (*settle)(struct store_log *log, struct err *err);
  /* Copies in steps: the target takes the log in transit, where nobody can continue it; for a move,
   * the source is set aside, so that nobody can continue it there either; then the log arrives. The
   * same copy again finishes an interrupted one. log->bytes, seq and hash say what the target
   * already has. */
  struct store_log *(*move_in)(struct store *store, const char *id, const struct store_move *move,
                               struct err *err);
  bool (*set_aside)(struct store_log *log, const char *to, struct err *err);
  bool (*arrive)(struct store_log *log, struct err *err);
  /* Returns whether the log was set aside; then also where it is kept, and where it was moved to
   * (place). */
  bool (*set_aside_to)(const struct store_ref *ref, struct store_ref *aside,
                       char to[STORE_NAME_BYTES]);
  enum store_stand (*stand)(const struct store_ref *ref);
  /* Names the store, the same everywhere on this machine. */
  void (*place)(const struct store *store, char out[STORE_NAME_BYTES]);
  /* Lists the sessions with that stand, which `list` leaves out; NULL: `list` leaves none out. */
  bool (*list_stand)(const struct store *store, enum store_stand stand, struct store_id **ids,
                     size_t *count, struct err *err);
  json_t *(*read)(struct store_log *log, uint64_t seq, struct err *err);
  void (*close)(struct store_log *log); /* frees the log and all that is its own */

  struct store_raw *(*raw_open)(const struct store_ref *ref, struct err *err);
  /* Reads up to `max` bytes from byte `at` on. Returns 0 at the end, -1 with errno. */
  ssize_t (*raw_read)(struct store_raw *raw, uint64_t at, char *out, size_t max);
  uint64_t (*raw_bytes)(const struct store_raw *raw);
  /* Follows a log that its owner replaced (*replaced). Returns false if the log is gone. */
  bool (*raw_again)(struct store_raw *raw, bool *replaced);
  bool (*raw_is_owned)(const struct store_raw *raw);
  bool (*raw_due)(const struct store_raw *raw, struct reader_due *due); /* or NULL: never */
  void (*raw_close)(struct store_raw *raw);

  bool (*report_put)(const struct store *store, const char *session, const char *file,
                     struct str bytes, struct err *err);
  bool (*report_sha256)(const struct store *store, const char *session, const char *file,
                        char sha256[SHA256_HEX]);
  void (*report_folder)(const struct store *store, const char *session, char out[STORE_NAME_BYTES]);

  bool (*blob_put)(const struct store *store, struct str bytes, const char *sha256,
                   struct err *err);
  /* Removes the blob, unless somebody put it after `since`. Returns false if it stays. */
  bool (*blob_drop)(const struct store *store, const char *sha256, time_t since);
  /* Does what store_blobs_tidy does; NULL: nothing is ever left over. */
  void (*blobs_tidy)(const struct store *store, json_t *found);
  bool (*blob_get)(const struct store *store, const char *sha256, struct buf *out, struct err *err);
  bool (*ledger_append)(const struct store *store, const struct ledger_entry *entries, size_t n,
                        struct err *err);
  bool (*ledger_read)(const struct store *store,
                      void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                      struct ledger_end *end, struct err *err);
  bool (*labels_append)(const struct store *store, const struct label *labels, size_t n,
                        struct err *err);
  bool (*labels_read)(const struct store *store, label_fn each, void *ctx, struct err *err);
  void (*blob_name)(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]);
};

extern const struct store_ops files_ops, postgres_ops;

/* The chains beside the logs have the same lines in every back end. A chain_fn composes the line of
 * items[i] after the one with that hash. */
typedef void (*chain_fn)(const void *items, size_t i, uint64_t number, struct buf *out,
                         char hash[SHA256_HEX]);
void ledger_compose(const void *entries, size_t i, uint64_t number, struct buf *out,
                    char hash[SHA256_HEX]);
void label_compose(const void *labels, size_t i, uint64_t number, struct buf *out,
                   char hash[SHA256_HEX]);
/* Takes the next line of a ledger that `end` is the end of so far, and passes its entry on. Returns
 * false if it is not the next entry: then `end` is damaged. */
bool ledger_next(struct str text, struct ledger_end *end,
                 void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx);
/* Takes the number-th line of the labels, after the one with that hash. Returns false with err if
 * somebody changed it. */
bool label_next(struct str text, uint64_t number, char hash[SHA256_HEX], label_fn each, void *ctx,
                struct err *err) MUST_CHECK;

/* Finds the next blob that a line names, as the value of a member that ends with blob: within texts
 * such quotes are escaped. */
bool store_next_blob(struct str *line, char sha256[SHA256_HEX]);

/* Begins a back end's log. */
void store_log_init(struct store_log *log, struct store *store, const char *name);
/* Ends an asynchronous append. err says why if the result is not STORE_OK; borrowed. */
void store_append_over(struct store_log *log, enum store_result result, const struct err *err);

#endif
