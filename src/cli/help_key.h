/* help_key.h - what a key of a workflow means, from the one table of keys (core/keys.h). */
#ifndef SEGUE_CLI_HELP_KEY_H
#define SEGUE_CLI_HELP_KEY_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends what is to be said of the key, for each place that has one of this name. False: there is
 * none; *near, when it is not NULL, is one with a name like it then, or NULL. */
bool help_key(struct buf *out, const char *name, const char **near) MUST_CHECK;

/* The last "KEY:" of a workflow's line that begins at or before byte `at`, such as an error points
 * at; a misspelt one is the key that was meant. NULL: there is none. Of the table of keys, so not
 * to be freed. */
const char *help_key_of_line(struct str line, size_t at);

#endif
