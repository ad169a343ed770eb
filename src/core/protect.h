/* protect.h - guards paths that no movement may change.
 *
 * Pure. A pattern is a path below the session's folder: * and ? stay within one of its parts, **
 * crosses them. Without a slash it is a name anywhere; with a slash at the end it is everything
 * below. A turn's changes come from its call_end. A turn that changed such a path, or may have
 * because not all its changes are known, halts before it is judged (reason protected), and a resume
 * means that a person accepts the change. */
#ifndef SEGUE_CORE_PROTECT_H
#define SEGUE_CORE_PROTECT_H

#include "base/buf.h"
#include "core/state.h"

bool protect_matches(struct str pattern, struct str path);
/* Returns true if the turn changed such a path, or may have, and nobody accepted it; says which. */
bool protect_refuses(const struct core *core, const struct turn *turn, struct buf *why);
/* Returns true for a file that no list may leave out: it is protected, or a command names it. */
bool protect_needs(const struct workflow *wf, struct str path);
/* Appends a changed file: "src/a.c +1 -1", or "logo.png" where the lines are not known. A name that
 * is not plain stands in quotes, so that it cannot pass for anything else; a long one is cut. */
void protect_put_file(const json_t *file, struct buf *out);

#endif
