/* fault.h - named places where a test can end the process or make a call fail.
 *
 * Compiled in only with SEGUE_FAULTS (test builds); in a release every FAULT_POINT is nothing and
 * every fault_fails is false. The environment variable SEGUE_FAULT says what happens:
 *   exit:N        _exit(99) at the N-th point met (1-based), whatever its name
 *   exit:NAME:N   the same, counting only points of that name
 *   stop:N        SIGSTOP at that point (stop:NAME:N too), so that a test can kill it there
 *   fail:NAME:N   the N-th call of that name fails with EIO (fail:NAME:N:ENOSPC for "no space")
 *   fail:NAME:N+  that one and all later ones; fail:NAME:N-M  those from the N-th to the M-th
 * Calls that can fail: create, attach, claim, open, read, list, write, sync, lock, blob, ledger
 *   release and slot (store), spawn (os/process), thread, descriptor (os/loop), watch (http/curl).
 * Points: append_before, append_after, sync_before, sync_after, spawn_before, spawn_after,
 *   ledger_before, ledger_after, aside_before, aside_noted, aside_after, arrive_before,
 *   arrive_after. */
#ifndef SEGUE_BASE_FAULT_H
#define SEGUE_BASE_FAULT_H

#include <stdbool.h>

#ifdef SEGUE_FAULTS
void fault_point(const char *name);
/* true: the call must fail, errno is set */
bool fault_fails(const char *name);
#define FAULT_POINT(name) fault_point(name)
#else
#define FAULT_POINT(name) ((void)0)
static inline bool fault_fails(const char *name) {
  (void)name;
  return false;
}
#endif

#endif
