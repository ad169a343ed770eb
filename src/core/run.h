/* run.h - the programs that a movement with `permission: edit` may run: its `run:` list.
 *
 * An entry is a program and perhaps its first arguments: `make`, `./dev`, `npm test`. It allows a
 * command line whose words begin so, nothing else being on the line: no other command, no pipe,
 * no redirection but 2>&1. Entries are plain words, so that every client can be told them in its
 * own form. */
#ifndef SEGUE_CORE_RUN_H
#define SEGUE_CORE_RUN_H

#include "base/str.h"

/* NULL, or what is wrong with this entry, to stand behind its name. */
const char *run_fault(struct str entry);

/* Does this entry allow this command line? */
bool run_covers(struct str entry, struct str command);

#endif
