/* files_internal.h - shared by the parts of the back end `files`: files.c makes, locks and appends,
 * files_ledger.c keeps the ledger, attach.c reads a log back and repairs its end, files_name.c
 * handles names and folders, files_raw.c reads, files_move.c moves, blob.c keeps texts too long for
 * a line, files_report.c reports, and files_fresh.c replaces what is kept for speed. */
#ifndef SEGUE_STORE_FILES_INTERNAL_H
#define SEGUE_STORE_FILES_INTERNAL_H

#include "store/backend.h"

struct files_log {
  struct store_log base; /* its name is a path */
  int fd;                /* -1: its first append makes the file */
  bool sync_dir;         /* the file is new: its name is not durable yet */
  uint64_t *offsets;     /* by seq - 1, of an attached log: for files_read */
  size_t offset_count;
  uint64_t folded_bytes; /* where the last folded record ends */
  uv_work_t work;
  enum store_result result;
  struct err *err; /* error of the work, NULL when it went well */
};

struct files_log *files_log_new(struct store *store, const char *path, int fd);
void files_path(const struct store *store, const char *id, char *out, size_t room);
#define FILES_MOVING ".moving" /* behind the name of a log in transit */
#define FILES_MOVED  ".moved"  /* behind that of a log that was set aside */

/* The lock dies with the descriptor, so with its owner. */
bool files_lock(int fd, unsigned wait_ms, const char *path, struct err *err) MUST_CHECK;
/* Writes all of it from byte `at` on; false: errno says why. */
bool files_write_all(int fd, const char *p, size_t n, uint64_t at) MUST_CHECK;
bool files_sync_dir(const char *dir) MUST_CHECK;

/* Opens an empty file that is to replace `name` in the folder `dir`. -1: it cannot be made, or
 * another program is writing one just now. */
int files_fresh_open(int dir, const char *name);
/* Puts the written file in the place of `name`, or removes it if it is not whole; closes it. */
bool files_fresh_put(int dir, const char *name, int fd, bool whole);

/* These are the functions of files_ops, by file. */
bool files_open(struct store *store, struct err *err);
struct store_log *files_create(struct store *store, const char *id, struct err *err);
struct store_log *files_create_later(struct store *store, const char *id);
void files_append(struct store_log *log, uv_loop_t *loop);
enum store_result files_append_now(struct store_log *log, struct err *err);
bool files_settle(struct store_log *log, struct err *err);
struct store_log *files_move_in(struct store *store, const char *id, const struct store_move *move,
                                struct err *err);
bool files_arrive(struct store_log *log, struct err *err);
bool files_set_aside(struct store_log *log, const char *to, struct err *err);
bool files_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
                        char to[STORE_NAME_BYTES]);
enum store_stand files_stand(const struct store_ref *ref);
void files_place(const struct store *store, char out[STORE_NAME_BYTES]);
void files_close(struct store_log *log);

struct store_log *files_attach(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                               void *ctx, struct store_mend *mend, struct err *err);
/* Does the same, also for a log in transit. */
struct store_log *files_take(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                             void *ctx, struct store_mend *mend, struct err *err);
/* Returns false, with err, for the name of a file that is in transit or was set aside. */
bool files_move_check(const char *name, struct err *err) MUST_CHECK;
json_t *files_read(struct store_log *log, uint64_t seq, struct err *err);

struct store_raw *files_raw_open(const struct store_ref *ref, struct err *err);
ssize_t files_raw_read(struct store_raw *raw, uint64_t at, char *out, size_t max);
uint64_t files_raw_bytes(const struct store_raw *raw);
bool files_raw_again(struct store_raw *raw, bool *replaced);
bool files_raw_is_owned(const struct store_raw *raw);
void files_raw_close(struct store_raw *raw);

/* Opens a chain of lines beside the logs, such as "ledger/heads.log", and locks it; makes it and
 * its folder if missing. -1: err says why. Also gives the place of the next line, and the number
 * and hash of the last. */
int files_chain_open(const struct store *store, const char *name, struct err *err);
bool files_chain_end(int fd, uint64_t *at, uint64_t *number, char hash[SHA256_HEX]);

bool files_labels_append(const struct store *store, const struct label *labels, size_t n,
                         struct err *err);
bool files_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err);

bool files_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                         struct err *err);
bool files_ledger_read(const struct store *store,
                       void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                       struct ledger_end *end, struct err *err);

bool files_report_put(const struct store *store, const char *session, const char *file,
                      struct str bytes, struct err *err);
bool files_report_sha256(const struct store *store, const char *session, const char *file,
                         char sha256[SHA256_HEX]);
void files_report_folder(const struct store *store, const char *session,
                         char out[STORE_NAME_BYTES]);
/* Removes the reports of a log that is removed. */
void files_reports_remove(const struct store_ref *ref);

bool files_blob_put(const struct store *store, struct str bytes, const char *sha256,
                    struct err *err);
bool files_blob_drop(const struct store *store, const char *sha256, time_t since);
void files_blobs_tidy(const struct store *store, json_t *found);
bool files_blob_get(const struct store *store, const char *sha256, struct buf *out,
                    struct err *err);
void files_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]);

#endif
