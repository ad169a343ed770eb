/* protect.h - guards paths that no movement may change.
 *
 * Pure. A pattern is a path below the session's folder: * and ? stay within one of its parts, **
 * crosses them. Without a slash it is a name anywhere; with a slash at the end it is everything
 * below. A turn's changes come from its call_end; without them this module cannot judge. A turn
 * that changed such a path halts before it is judged (reason protected), and a resume means that a
 * person accepts the change. */
#ifndef SEGUE_CORE_PROTECT_H
#define SEGUE_CORE_PROTECT_H

#include "base/buf.h"
#include "core/state.h"

bool protect_matches(struct str pattern, struct str path);
/* Returns true if the turn changed such a path and nobody accepted it; says which. */
bool protect_refuses(const struct core *core, const struct turn *turn, struct buf *why);

#endif
