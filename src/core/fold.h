/* fold.h - defines one step of the fold, a record and the state it changes; internal.
 *
 * apply.c dispatches by type; group.c handles turns with children, fork_state.c the beginning of a
 * forked session. Each returns false with fold_bad's message if the record cannot follow. */
#ifndef SEGUE_CORE_FOLD_H
#define SEGUE_CORE_FOLD_H

#include "core/apply.h"

struct fold {
  struct core *core;
  const struct record *record;
  struct workflow *workflow;
  const struct core_source *source;
  struct err *err;
};

/* Return members of the record. */
static inline struct str fold_text(const struct fold *f, enum member key) {
  return record_text(f->record, key);
}

static inline int64_t fold_number(const struct fold *f, enum member key) {
  return record_number(f->record, key);
}

static inline json_t *fold_tree(const struct fold *f, enum member key) {
  return record_tree(f->record, key);
}

static inline bool fold_has(const struct fold *f, enum member key) {
  return record_get(f->record, key) != NULL;
}

/* Returns false, with err set. */
static inline bool fold_bad(const struct fold *f, const char *what) {
  return err_set(f->err, ERR_CORRUPT, "record %lld (" STR_FMT "): %s", (long long)f->record->seq,
                 STR_ARG(f->record->type_name), what);
}

/* Takes the bytes of a text, from the record or from its blob (the next member). */
static inline bool fold_take_text(const struct fold *f, enum member key, struct buf *out) {
  struct str blob = fold_text(f, key + 1);
  buf_clear(out);
  if (blob.n > 0 && f->source == NULL)
    return fold_bad(f, "its text is in a blob that is not at hand");
  if (blob.n > 0)
    return f->source->blob(f->source->ctx, blob.p, out, f->err);
  buf_str(out, fold_text(f, key));
  return true;
}

bool apply_carried(const struct fold *f);
/* Returns what a fork takes over from this session, for its record `carried`. New. */
json_t *fork_state(const struct core *core);

#endif
