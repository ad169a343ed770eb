/* leftover.h - ends processes of a session whose owner and shim were both killed.
 *
 * Nobody inherits their tree then. What they still have is their environment: each program that is
 * started for a session has SEGUE_SESSION in it, and so has what it starts, unless that is taken
 * out; and the session's mark, a limit that limits nothing (shim_mark_of in shim/protocol.h). */
#ifndef SEGUE_OS_LEFTOVER_H
#define SEGUE_OS_LEFTOVER_H

#include <stddef.h>

#define LEFTOVER_VARIABLE "SEGUE_SESSION"

/* Ends every process of this user that has either, and all that descend from them; not
 * this process and those that it descends from. Only where nobody else runs the session (its log is
 * ours). Waits for their end, LIMIT_LEFTOVER_WAIT_MS at most. Returns how many there were. */
size_t leftover_end(const char *session);

#endif
