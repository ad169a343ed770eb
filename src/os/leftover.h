/* leftover.h - ends processes of a session whose owner and shim were both killed.
 *
 * Nobody inherits their tree then, but they can be recognized: every program started for a session
 * has SEGUE_SESSION in its environment, as do its descendants unless they remove it, and carries
 * the session's mark, a resource limit that limits nothing (shim_mark_of in shim/protocol.h). */
#ifndef SEGUE_OS_LEFTOVER_H
#define SEGUE_OS_LEFTOVER_H

#include <stddef.h>

#define LEFTOVER_VARIABLE "SEGUE_SESSION"

/* Ends every process of this user that has either, and its descendants, except this process and its
 * ancestors. Call it only when nobody else runs the session (its log is ours); where that is leased
 * (os/lease.h), it stops when the lease is over. Waits for their end, at most
 * LIMIT_LEFTOVER_WAIT_MS. Returns how many there were. */
size_t leftover_end(const char *session);

#endif
