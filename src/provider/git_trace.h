/* git_trace.h - learns in which working trees the git programs of a call worked, and what they did.
 *
 *   git_trace_variables(arena, tmpdir, out)   of the program's environment: git then writes what it
 *                                             does to a file of the call's private folder
 *   git_trace_read(tmpdir, &result)           after its end, before that folder goes; blocking
 *
 * It is git's own trace2 (git help api-trace2, since 2.22). Only the working tree and the name of
 * the command are taken from it. A program may well go around it; it tells whether somebody meant
 * to change a tree, and forbids nothing. */
#ifndef SEGUE_PROVIDER_GIT_TRACE_H
#define SEGUE_PROVIDER_GIT_TRACE_H

#include "base/arena.h"
#include "core/call.h"

enum { GIT_TRACE_VARIABLES = 2 };

/* Returns how many it put. tmpdir: NULL is fine. */
size_t git_trace_variables(struct arena *a, const char *tmpdir,
                           const char *out[GIT_TRACE_VARIABLES]);
/* Sets the result's git_seen; NULL if there is too much to read. */
void git_trace_read(const char *tmpdir, struct call_result *result);

#endif
