/* forward.h - the way out of a network namespace: passes connections to a port of 127.0.0.1 inside
 * it on to a Unix socket of segue's; there segue decides where they may go (http/proxy.h). */
#ifndef SEGUE_SHIM_FORWARD_H
#define SEGUE_SHIM_FORWARD_H

/* `words`: SOCKET BYPASS PROGRAM [ARG...], NULL-ended. Listens at a free port of 127.0.0.1, starts
 * the program with the variables that name it as its proxy (for all hosts but those of BYPASS,
 * which may be empty), carries bytes until it ends, and exits as it did. Signals that end a program
 * are passed on to it. */
__attribute__((noreturn)) void forward(char **words);

#endif
