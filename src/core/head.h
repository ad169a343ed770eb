/* head.h - where a call left HEAD: what is told of it, and when a session stops for it.
 *
 * The member `head` of a call_end: {"branch" (null: detached), "commit", "was"?, "work"?, "lacks"?,
 * "main"?, "main_was"?, "main_by_call"?}. `was` is where it stood before the call, if that is
 * another place or the first that is known. `work` is what became of the session's work if HEAD is
 * not on its branch, or lacks what it had (git/work.h): ahead, rewritten or left_behind; `lacks` is
 * the commit that it lacks then. `main` is the repository's own tree, if that was moved meanwhile,
 * `main_by_call` by git programs of the call itself.
 *
 * Work that is ahead or rewritten is adopted: the session's branch is moved there before its next
 * commit or movement. If commits are left behind, or the call changed the repository's own tree,
 * the session stops before the turn is judged (reason head_moved); a resume means that a person
 * accepts where HEAD is. Pure. */
#ifndef SEGUE_CORE_HEAD_H
#define SEGUE_CORE_HEAD_H

#include "base/buf.h"

#include <jansson.h>

struct core;
struct turn;

/* Appends in words what changed; nothing if HEAD is where it was, or went on on its branch. */
void head_tell(const json_t *head, struct buf *out);
/* Returns true if the session stops for it; then why says what to do. */
bool head_refuses(const struct core *core, const struct turn *turn, struct buf *why);
/* Takes the member of a call_end of that turn into the state. head: NULL is fine. */
void head_take(struct core *core, struct turn *turn, const json_t *head);

#endif
