/* sandbox_kept.h - keeps rulesets of what may be read, for later calls that ask for the same.
 *
 *   kept = sandbox_kept_new(table)        one for a process table, which owns it
 *   s = sandbox_again(kept, key, ...)     sandbox.h: NULL: nothing kept holds, so make a new one
 *   sandbox_kept_free(kept)               its memory goes with the next turn of the loop
 *
 * A ruleset allows what existed when it was made. So it is used again only while each listed folder
 * has the same times and each named path the same inode, and nothing was mounted since: then a new
 * one would be the same. If anything changed less than 50 ms before, the ruleset is not kept,
 * because file times are no finer than a clock tick.
 *
 * The ruleset of what may be written contains the call's own folder and cannot drop it, so it is
 * never used twice. Once a session has asked for the same again, a shim with rules of its own, made
 * from the files that the stamps name, stands by for its next call (standby.h). It is right as long
 * as the stamps are.
 *
 * A ruleset pins the files that it names, even removed ones, so kept rulesets are dropped
 * LIMIT_SANDBOX_KEPT_MS after their last use. */
#ifndef SEGUE_OS_SANDBOX_KEPT_H
#define SEGUE_OS_SANDBOX_KEPT_H

#include "base/str.h"
#include "os/sandbox.h"
#include "os/sandbox_rules.h"

#include <uv.h>

struct sandbox_kept;

struct process_table;
struct sandbox_kept *sandbox_kept_new(struct process_table *table);
void sandbox_kept_free(struct sandbox_kept *k); /* NULL is fine */

/* The session needs nothing to stand by any more. */
void sandbox_kept_forget(struct sandbox_kept *k, const char *session);

struct sandbox_wish { /* the arguments of sandbox_again */
  struct str key;
  const char *own, *session;
};

/* For sandbox.c. begin: before rules are made, so that a mount meanwhile is seen. find: the
 * ruleset, borrowed, and `plan` with what may be written, or -1; `standby` is the caller's, or
 * NULL. put: copies what it is given. */
void sandbox_kept_begin(struct sandbox_kept *k);
int sandbox_kept_find(struct sandbox_kept *k, const struct sandbox_wish *wish,
                      struct sandbox_plan *plan, struct standby **standby);
void sandbox_kept_put(struct sandbox_kept *k, struct str key, const struct sandbox_plan *plan,
                      int reads, struct sandbox_stamps *taken);

#endif
