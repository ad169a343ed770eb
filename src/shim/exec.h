/* exec.h - how a child of the shim becomes the program of a call.
 *
 *   pid = program_execute(argv, held, limits)   returns when it is executed, or never will be
 *
 *   pid = program_prepare(held, &begun)     at once: the child takes on its sandbox, and waits
 *   shim_program comes on SHIM_FD_CONTROL   the child takes it, and writes the term to `begun`
 *   `begun` ends                            the program is executed, or never will be
 *
 *   program_failure()                       then: why it is not, if the child could say
 *
 * held: of enum shim_held. limits: ":MEMORY:PIDS:CPUS" or nothing. Both return -1 with errno set if
 * there is no child. Without heap or streams, like all of the shim. */
#ifndef SEGUE_SHIM_EXEC_H
#define SEGUE_SHIM_EXEC_H

#include <sys/types.h>

struct program_failure {
  int exec_errno, held_errno; /* 0: nothing failed there */
};

pid_t program_execute(char **argv, unsigned held, const char *limits);
pid_t program_prepare(unsigned held, int *begun);
struct program_failure program_failure(void);

#endif
