/* protect.h - paths that no movement may change.
 *
 * Pure. A pattern is a path below the session's folder: * and ? stay within one of its parts, **
 * crosses them; one without a slash is a name anywhere; one that ends with a slash is all below it.
 * A turn's changes are known from its call_end; of a turn whose changes are not known nothing can
 * be said. A turn that changed such a path halts before it is judged (reason protected), and a
 * resume is a person's word that it may be. */
#ifndef SEGUE_CORE_PROTECT_H
#define SEGUE_CORE_PROTECT_H

#include "base/buf.h"
#include "core/state.h"

bool protect_matches(struct str pattern, struct str path);
/* The turn changed such a path, and nobody has let it be: says which. */
bool protect_refuses(const struct core *core, const struct turn *turn, struct buf *why);

#endif
