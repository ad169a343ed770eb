/* run.h - checks programs against the `run:` list of a movement with `permission: edit`.
 *
 * An entry is a program and perhaps its first arguments: `make`, `./dev`, `npm test`. It allows a
 * command line that begins with these words and holds nothing else: no other command, no pipe, no
 * redirection but 2>&1. Entries are plain words, so that they can be put in every client's own
 * form. */
#ifndef SEGUE_CORE_RUN_H
#define SEGUE_CORE_RUN_H

#include "base/str.h"

/* Returns what is wrong with this entry, in words that follow its name; NULL: nothing. */
const char *run_fault(struct str entry);

/* Returns whether this entry allows this command line. */
bool run_covers(struct str entry, struct str command);

#endif
