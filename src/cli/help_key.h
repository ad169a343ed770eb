/* help_key.h - explains a key of a workflow, from the one table of keys (core/keys.h). */
#ifndef SEGUE_CLI_HELP_KEY_H
#define SEGUE_CLI_HELP_KEY_H

#include "base/buf.h"

#include <stdbool.h>

/* Appends the help for the key, for each place with a key of this name. False: there is none; *near
 * (unless near is NULL) is then a similar name, or NULL. */
bool help_key(struct buf *out, const char *name, const char **near) MUST_CHECK;

/* Returns the key of that name in the spelling of its page; NULL: there is none. */
const char *help_key_of_name(const char *name);
/* Finds the last "KEY:" in a workflow's line that begins at or before byte `at`, such as an error's
 * place; for a misspelt key it gives the one that was meant. NULL: there is none. Points into the
 * table of keys. */
const char *help_key_of_line(struct str line, size_t at);

#endif
