/* orphans.h - recognizes processes of a session: to end those whose owner and shim were both
 * killed, and to tell what a program asks for from what a person does.
 *
 * Nobody inherits the tree of a killed shim, but it can be recognized: every program started
 * for a session has SEGUE_SESSION in its environment, as do its descendants unless they remove it,
 * and carries the session's mark, a resource limit that limits nothing (shim_mark_of in
 * shim/protocol.h). */
#ifndef SEGUE_OS_ORPHANS_H
#define SEGUE_OS_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>

#define ORPHAN_VARIABLE "SEGUE_SESSION"

/* Ends every process of this user that has either, and its descendants, except this process and its
 * ancestors. Call it only when nobody else runs the session (its log is ours); where that is leased
 * (os/lease.h), it stops when the lease is over. Waits for their end, at most
 * LIMIT_LEFTOVER_WAIT_MS. Returns how many there were. */
size_t orphan_end(const char *session);

/* Returns NULL for a process that is no session's; otherwise the private folder of its call, "" if
 * that is not known, to be freed. `held`: it is in a sandbox, or gone. It is recognized by a shim
 * above it, which takes in orphans and which no program below can rename, by the mark of itself or
 * of one above it, by its environment and by its control group. Not by what another service of the
 * machine started for it (cron, systemd, sshd, docker, a terminal server). */
char *orphan_program(long process, bool *held);

/* Ends what holds the process by ptrace, if it descends from it: a program without a sandbox that
 * keeps its shim from ending it. */
void orphan_end_tracer(long process);

/* Is a program whose name begins so at work below the folder, or has any process that we may see
 * this file open? file: NULL if that is not asked. */
struct stat;
bool orphan_at_work(const char *folder, const char *program, const struct stat *file);

#endif
