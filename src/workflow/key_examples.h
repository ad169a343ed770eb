/* key_examples.h - an example of each key of a workflow, for help and for editors.
 *
 * It is one table beside core/keys.h; tests check that every key has a valid example. */
#ifndef SEGUE_WORKFLOW_KEY_EXAMPLES_H
#define SEGUE_WORKFLOW_KEY_EXAMPLES_H

#include "core/keys.h"

/* Returns the value of that key as YAML, on one line; NULL for keys without one, such as keys that
 * are only noted. */
const char *key_example(const struct key_set *set, const struct key *key);

#endif
