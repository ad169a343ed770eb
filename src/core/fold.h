/* fold.h - defines one step of the fold, a record and the state it changes; internal.
 *
 * apply.c dispatches by type and handles the session and its turns, apply_call.c calls,
 * apply_value.c the use of an answer (checks, value, judgment), and carry.c the beginning of a
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

bool fold_bad(const struct fold *f, const char *what); /* false, with err set */
/* Takes the bytes of a text, from the record or from its blob (the next member). */
bool fold_take_text(const struct fold *f, enum member key, struct buf *out);
void fold_set_json(json_t **slot, const json_t *value); /* null and NULL: none */
/* Returns the record's turn; NULL if it is not open (err is set). */
struct turn *fold_turn(const struct fold *f);
const struct structured_config *fold_structured(const struct fold *f, const struct turn *turn);
/* Ends the movement's own work: its reports follow, or its judgment. */
void fold_worked(const struct fold *f, struct turn *turn);
/* Makes the answer the turn's; the call keeps none. */
void fold_take_answer(struct turn *turn, struct call *call);

bool apply_carried(const struct fold *f);

bool apply_call_start(const struct fold *f);
bool apply_admission(const struct fold *f);
bool apply_call_event(const struct fold *f);
bool apply_call_end(const struct fold *f);

bool apply_question(const struct fold *f);
bool apply_answer(const struct fold *f);

bool apply_check(const struct fold *f);
bool apply_structured(const struct fold *f);
bool apply_stage(const struct fold *f);
bool apply_judgment(const struct fold *f);

#endif
