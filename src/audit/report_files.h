/* report_files.h - compares the reports in a session's log with their files.
 *
 *   struct report_files files = {0};
 *   report_files_note(&files, record)     each record, in order
 *   report_files_look(&files, &store, session)
 *   report_files_told(&files, &out)       "plan.md, scope.md (changed), work.md (missing)"
 *   report_files_deinit(&files)
 *
 * The log is the truth: a changed or missing file does not make it unsound. */
#ifndef SEGUE_AUDIT_REPORT_FILES_H
#define SEGUE_AUDIT_REPORT_FILES_H

#include "base/buf.h"
#include "core/record.h"
#include "store/store.h"

#include <jansson.h>

struct report_files {
  json_t *newest; /* file -> SHA-256 of its last report; later the file's state */
  size_t count, changed, missing;
};

void report_files_note(struct report_files *files, const json_t *record);
void report_files_take(struct report_files *files, const struct record *record); /* the same */
void report_files_look(struct report_files *files, const struct store *store, const char *session);
/* Appends the changed and missing files; all: unchanged files too. */
void report_files_told(const struct report_files *files, bool all, struct buf *out);
void report_files_deinit(struct report_files *files);

#endif
