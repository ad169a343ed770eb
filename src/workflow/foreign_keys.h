/* foreign_keys.h - words of other runners' workflow files that segue does not have.
 *
 * A file in takt's dialect of February 2026 is read as it is if its words mean something here or
 * can be left out. A word that only configures is a key of type KEY_NOTED in core/keys.h: it loads
 * with one warning. A word that would change where a session goes is refused, and the message says
 * what to write instead: guessing a similar key would mislead. Source of the words: takt 0.13.0 and
 * 0.39.0. */
#ifndef SEGUE_WORKFLOW_FOREIGN_KEYS_H
#define SEGUE_WORKFLOW_FOREIGN_KEYS_H

#include "base/arena.h"
#include "base/str.h"
#include "core/keys.h"

/* Says what to write instead of a key that other runners have; NULL: it is not one
 * of those. */
const char *foreign_keys_advice(const struct key_set *set, struct str key);
/* Returns the key to write instead of a key of other runners; NULL: there is none. */
const char *foreign_keys_instead(struct str key);

/* ai("TEXT"), alone or before && when(...): the condition with TEXT in its place, in the arena.
 * False: the condition is none of these, and `out` is untouched. */
bool foreign_keys_plain_condition(struct arena *arena, struct str condition, struct str *out);

/* Returns true if a movement lets its agent change files. */
bool foreign_keys_may_edit(const json_t *movement);
/* Puts what allowed_tools lets an agent do as permission and run of a movement that does not say it
 * itself: a tool that writes is permission: edit, Bash(PROGRAM *) is a program of run. */
void foreign_keys_take_tools(const json_t *tools, json_t *movement);

/* Says why {name} in a text is left as it is, though another runner would fill it in; NULL: not
 * such a name. */
const char *foreign_keys_variable(struct str name);

#endif
