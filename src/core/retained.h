/* retained.h - lists the texts that a session keeps for its later prompts: reports by their file,
 * answers by their movement. Pure; the lists are part of the state (state.h). */
#ifndef SEGUE_CORE_RETAINED_H
#define SEGUE_CORE_RETAINED_H

#include "core/state.h"

/* The text of that name, NULL when there is none. */
const struct kept_text *kept_find(const struct kept_text *list, struct str name);
/* Appends a new text, or empties the one of that name, which remembers its former hash. */
struct kept_text *kept_put(struct kept_text **list, struct str name);
/* Moves the texts of `from` into `list`, where they replace older ones of the same name. */
void kept_move(struct kept_text **list, struct kept_text **from);
/* Frees the list and empties it. */
void kept_free(struct kept_text **list);

/* Keeps the answer of a finished turn if prompts name its movement. `text` is copied. */
void kept_answer(struct core *core, const struct movement *m, struct str text, uint64_t seq,
                 const struct joined *joined);

/* Visits every report as its file should be: published ones, then those of open turns, which are
 * newer. */
void kept_each_report(const struct core *core, void (*fn)(void *ctx, const struct kept_text *kept),
                      void *ctx);

/* Joins what a judge reads: the turn's judged reports, each under its name, and then its answer.
 * False: there is only the answer, and nothing was made. The caller frees joined->joints. */
bool kept_judged(const struct turn *turn, struct buf *text, struct joined *joined);

#endif
