/* fold.h - defines one step of the fold, a record and the state it changes; internal.
 *
 * apply.c dispatches by type; fork_state.c handles the beginning of a forked session, human.c
 * questions and answers. Each returns false with fold_bad's message if the record cannot follow. */
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

bool fold_bad(const struct fold *f, const char *what); /* false, with err set */
/* Takes the bytes of a text, from the record or from its blob (the next member). */
bool fold_take_text(const struct fold *f, enum member key, struct buf *out);
/* Returns the record's turn; NULL if it is not open (err is set). */
struct turn *fold_turn(const struct fold *f);

bool apply_carried(const struct fold *f);

bool apply_question(const struct fold *f);
bool apply_answer(const struct fold *f);

#endif
