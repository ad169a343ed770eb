/* sidecar.h - what a folder of logs keeps beside them: the ledger, people's labels, reports, blobs.
 * These are the functions of files_ops for that; store.h, ledger.h and label.h say what each does.
 * A worker of a shared store keeps its reports the same way. files.c writes logs with the first
 * two. */
#ifndef SEGUE_STORE_SIDECAR_H
#define SEGUE_STORE_SIDECAR_H

#include "store/backend.h"

/* Writes all of it from byte `at` on; false: errno says why. */
bool files_write_all(int fd, const char *p, size_t n, uint64_t at) MUST_CHECK;
bool files_sync_dir(const char *dir) MUST_CHECK;

bool files_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                         struct err *err);
bool files_ledger_read(const struct store *store,
                       void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                       struct ledger_end *end, struct err *err);

bool files_labels_append(const struct store *store, const struct label *labels, size_t n,
                         struct err *err);
bool files_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err);

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
