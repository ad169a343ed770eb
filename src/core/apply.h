/* apply.h - the fold: a record changes the state, live and in recovery alike.
 *
 * Nothing else changes a struct core. Records are checked as outside data: a log that does not hold
 * together gives an error (ERR_CORRUPT), never an assert. */
#ifndef SEGUE_CORE_APPLY_H
#define SEGUE_CORE_APPLY_H

#include "core/state.h"

/* Where the exact bytes of a text are that the record only renders. Live: the text that just came
 * in. In recovery: the blob folder. */
struct core_source {
  void *ctx;
  bool (*blob)(void *ctx, const char *sha256, struct buf *out, struct err *err);
  const json_t *body; /* of a stage record: its members beside the common ones; NULL: not at hand */
};

/* workflow: for a session_start whose document is already built; NULL builds it from the record. */
bool core_apply(struct core *core, const json_t *record, struct workflow *workflow,
                const struct core_source *source, struct err *err) MUST_CHECK;

#endif
