/* ask.h - builds from the document what a person is asked: `ask` and `approve` of a movement.
 *
 *   ask_build(arena, object, m, &why)      m->ask and m->approve; the caller resolves on_reject
 *   ask_deinit(m)                          what the arena does not free
 *
 * The keys are in core/keys.c. */
#ifndef SEGUE_CORE_ASK_H
#define SEGUE_CORE_ASK_H

#include "core/workflow.h"

/* Builds both. On false `why` says what is wrong, and `key` where below the movement
 * ("ask.default"). */
bool ask_build(struct arena *arena, const json_t *object, struct movement *m, const char **key,
               struct err *why) MUST_CHECK;
void ask_deinit(struct movement *m);

/* Returns the number of the choice that a text names, from 1; 0: none. */
long ask_choice(const json_t *choices, struct str text);
/* Returns the rule that a choice means: the first whose condition is a label of the same words. 0:
 * none. */
int ask_rule(const struct movement *m, struct str text);
/* Returns true if every possible choice means a rule, so that nothing is left to judge. */
bool ask_needs_no_judge(const struct movement *m);
/* Returns the value of an answer that fits the schema: the text as JSON, or else the text itself. A
 * new reference, or NULL with the first error. */
json_t *ask_read(const struct schema *schema, const json_t *document, struct str text,
                 struct err *err);

#endif
