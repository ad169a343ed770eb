/* changes.h - finds out, without blocking the loop, what calls changed in a working tree
 * (git/tree.h).
 *
 *   c = changes_begin(&spec, on_ready, ctx)   start the call once on_ready came, or at once if
 *                                             changes_ready(c)
 *   changes_end(c, on_done)                   after its end; false: it is not waited for
 *   changes_take(c, wf, result)               then: puts them, or why they are unknown, into its
 *                                             result
 *   changes_free(c)                           not between begin and on_ready, or end and on_done
 *
 * A look belongs to the tree, not to the call. All calls of all sessions that work below one folder
 * share its tree in the host's list (spec->trees), and one look is for all who wait for one. What
 * was seen at a call's end is what stands before the next one that begins in the same step.
 * A call that begins beside another of its session takes over what stood before that
 * one, without a look: nobody can tell whose changes are whose.
 *
 * Each session keeps what was seen last for it (struct changes_seen): what differs when its next
 * call begins was changed between the two, by something else.
 *
 * Files are read in the loop's pool, git runs as any program does (os/process.h), with a time
 * limit. Callbacks come from the loop, once each, never from within begin or end. */
#ifndef SEGUE_HOST_CHANGES_H
#define SEGUE_HOST_CHANGES_H

#include "base/list.h"
#include "core/call.h"
#include "core/workflow.h"
#include "os/process.h"

#include <uv.h>

struct changes;
struct changes_tree;
struct changes_picture;

struct changes_seen { /* a zeroed one is empty */
  struct changes_tree *tree;
  struct changes_picture *picture;
};

struct changes_spec { /* borrowed for changes_begin, except the first three */
  uv_loop_t *loop;
  struct process_table *processes;
  struct list *trees;             /* the host's */
  const char *cwd;                /* absolute */
  const char *session;            /* its id, for the name of a private folder */
  const char *const *own_folders; /* NULL-terminated: segue's own, where writes do not count */
  const json_t *protect;          /* the workflow's; or NULL */
  bool follows;                   /* it begins in the step in which another of its session ended */
  const void *owner;              /* the session */
  struct changes_seen *seen; /* the session's of this folder, or NULL; borrowed until the end */
};

struct changes *changes_begin(const struct changes_spec *spec, void (*on_ready)(void *ctx),
                              void *ctx);
bool changes_ready(const struct changes *c);
/* They are known so far. False: others of its session are at work there, the last of whom tells;
 * on_done will not come. */
bool changes_end(struct changes *c, void (*on_done)(void *ctx));
/* Accepts NULL. If there are very many, those that the workflow's protect needs come first. */
void changes_take(struct changes *c, const struct workflow *wf, struct call_result *result);
/* Returns why the call's changes are not known; NULL: they are. */
const char *changes_problem(const struct changes *c);
/* Notes in a result why the call's changes are not known, or not all. */
void changes_unknown(struct call_result *result, const char *problem);
void changes_free(struct changes *c); /* accepts NULL */
/* Looks at all below .segue of a folder, which no call may change: a text, to be freed. git may
 * ignore it. tell: the result names .segue unless that is as it was `before` (NULL: nobody looked),
 * or its files are named already. */
char *changes_own_folder(const char *top);
void changes_own_tell(const char *top, const char *before, struct call_result *result);
/* Something begins that may write and is not looked at, such as segue's own git. */
void changes_expect(const struct list *trees);
/* At the session's end, and when it told its changes itself. */
void changes_forget(struct changes_seen *seen);

#endif
