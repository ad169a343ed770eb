/* run_program.h - runs one program to its end on a loop of its own, for commands that have none;
 * its whole tree ends with it (os/process.h). Not while another loop of ours has processes. */
#ifndef SEGUE_HOST_RUN_PROGRAM_H
#define SEGUE_HOST_RUN_PROGRAM_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

struct run_program_spec {
  /* NULL-terminated, borrowed; looked up in PATH; our environment and folder */
  const char *const *argv;
  const char *folder; /* NULL: ours */
  struct str input;   /* its standard input, borrowed */
  uint64_t wall_ms;   /* 0: LIMIT_INVARIANT_WALL_MS */
  /* Its sandbox, as a call_start says it, and a session's configuration. Then it runs as that
   * session's commands do: in a folder, without input, both its outputs in `out`. NULL: none. */
  const json_t *held, *config;
};

struct run_program_result {
  int exit_status; /* 128 + signal if one killed it */
  struct buf out, err;
  struct buf denied; /* what its sandbox denied to one that failed (provider/sandbox_policy.h) */
};

/* Runs the program. False: it could not be run, or ran too long; err says so. Either way the result
 * belongs to the caller: run_program_result_deinit. */
bool run_program_run(const struct run_program_spec *spec, struct run_program_result *result,
                     struct err *err) MUST_CHECK;
void run_program_result_deinit(struct run_program_result *result);

#endif
