/* capture.h - runs a program to its end and keeps its output; for commands that wait for it. */
#ifndef SEGUE_CLI_CAPTURE_H
#define SEGUE_CLI_CAPTURE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct program {
  char *const *argv;      /* NULL-terminated; argv[0] is looked for in PATH */
  struct str input;       /* its standard input */
  unsigned timeout_s;     /* then it gets SIGTERM; 0: none */
  struct buf out, errors; /* set by program_run: at most PROGRAM_OUTPUT_BYTES of each. buf_deinit */
  int status;             /* its exit status, 128 + N after a signal */
  bool timed_out, cut;    /* cut: there was more output */
};

enum { PROGRAM_OUTPUT_BYTES = 4 * 1024 * 1024 };

/* Runs the program. False: it could not be run. Safe from several threads. */
bool program_run(struct program *p, struct err *err) MUST_CHECK;

#endif
