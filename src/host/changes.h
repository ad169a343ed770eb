/* changes.h - finds out, without blocking the loop, what a call changed in the working tree
 * (git/tree.h).
 *
 *   c = changes_begin(&spec, on_ready, ctx)   start the call once on_ready came
 *   changes_end(c, on_done)                   after its end
 *   changes_take(c, wf, result)               then: puts them, or why they are unknown, into its
 *                                             result
 *   changes_free(c)                           not between begin and on_ready, or end and on_done
 *
 * Files are read in the loop's pool, git runs as any program does (os/process.h), with a time
 * limit. Callbacks come from the loop, once each, never from within begin or end. */
#ifndef SEGUE_HOST_CHANGES_H
#define SEGUE_HOST_CHANGES_H

#include "core/call.h"
#include "core/workflow.h"
#include "os/process.h"

#include <uv.h>

struct changes;

struct changes_spec { /* borrowed for changes_begin, except the first two */
  uv_loop_t *loop;
  struct process_table *processes;
  const char *cwd;                /* absolute */
  const char *name;               /* name of a private folder, unique for this call */
  const char *const *own_folders; /* NULL-terminated: segue's own, where writes do not count */
};

struct changes *changes_begin(const struct changes_spec *spec, void (*on_ready)(void *ctx),
                              void *ctx);
/* They are known so far. */
void changes_end(struct changes *c, void (*on_done)(void *ctx));
/* If there are very many, those that the workflow's protect needs come first. */
void changes_take(struct changes *c, const struct workflow *wf, struct call_result *result);
/* Returns why the call's changes are not known; NULL: they are. */
const char *changes_problem(const struct changes *c);
/* Notes in a result why the call's changes are not known, or not all. */
void changes_unknown(struct call_result *result, const char *problem);
void changes_free(struct changes *c); /* accepts NULL */

#endif
