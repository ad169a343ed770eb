/* apply.h - the fold: a record changes the state, live and in recovery alike.
 *
 * Nothing else changes a struct core. Records are checked as outside data: a log that does not hold
 * together gives an error (ERR_CORRUPT), never an assert. */
#ifndef SEGUE_CORE_APPLY_H
#define SEGUE_CORE_APPLY_H

#include "core/record.h"
#include "core/state.h"

/* Finds the exact bytes of a text that the record only renders: live, the text that just came in;
 * in recovery, the blob folder. */
struct core_source {
  void *ctx;
  bool (*blob)(void *ctx, const char *sha256, struct buf *out, struct err *err);
};

/* Applies a record. workflow: for a session_start whose document is already built; NULL builds it
 * from the record. */
bool core_apply(struct core *core, const struct record *record, struct workflow *workflow,
                const struct core_source *source, struct err *err) MUST_CHECK;
/* Does the same for a record that was read back. */
bool core_apply_json(struct core *core, const json_t *json, struct workflow *workflow,
                     const struct core_source *source, struct err *err) MUST_CHECK;

#endif
