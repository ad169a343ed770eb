/* ruleset_cache.h - keeps rulesets of what may be read, for later calls that ask for the same.
 *
 *   kept = ruleset_cache_new(table)        one for a process table, which owns it
 *   s = sandbox_again(kept, key, ...)     sandbox.h: NULL: nothing kept holds, so make a new one
 *   ruleset_cache_free(kept)               its memory goes with the next turn of the loop
 *
 * A ruleset allows what existed when it was made. So it is used again only while each listed folder
 * has the same times and each named path the same inode, and nothing was mounted since: then a new
 * one would be the same. If anything changed less than 50 ms before, the ruleset is not kept,
 * because file times are no finer than a clock tick.
 *
 * The ruleset of what may be written contains the call's own folder and cannot drop it, so it is
 * never used twice. Once a session has asked for the same again, a shim with rules of its own, made
 * from the files that the stamps name, stands by for its next call (warm_shim.h). It is right as
 * long as the stamps are.
 *
 * A ruleset pins the files that it names, even removed ones, so kept rulesets are dropped
 * LIMIT_SANDBOX_KEPT_MS after their last use. */
#ifndef SEGUE_OS_RULESET_CACHE_H
#define SEGUE_OS_RULESET_CACHE_H

#include "base/str.h"
#include "os/sandbox.h"
#include "os/sandbox_rules.h"

#include <uv.h>

struct ruleset_cache;

struct process_table;
struct ruleset_cache *ruleset_cache_new(struct process_table *table);
void ruleset_cache_free(struct ruleset_cache *k); /* NULL is fine */

/* The session needs nothing to stand by any more. */
void ruleset_cache_forget(struct ruleset_cache *k, const char *session);

struct sandbox_wish { /* the arguments of sandbox_again */
  struct str key;
  const char *own, *session;
};

/* For sandbox.c. begin: before rules are made, so that a mount meanwhile is seen. find: the
 * ruleset, borrowed, and `plan` with what may be written, or -1; `standby` is the caller's, or
 * NULL. put: copies what it is given. */
void ruleset_cache_begin(struct ruleset_cache *k);
int ruleset_cache_find(struct ruleset_cache *k, const struct sandbox_wish *wish,
                       struct sandbox_plan *plan, struct warm_shim **warm_shim);
void ruleset_cache_put(struct ruleset_cache *k, struct str key, const struct sandbox_plan *plan,
                       int reads, struct sandbox_stamps *taken);

#endif
