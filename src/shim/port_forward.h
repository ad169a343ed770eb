/* port_forward.h - the way out of a network namespace: carries connections from a port of 127.0.0.1
 * inside it to a Unix socket of segue's, which decides where they may go (http/proxy.h). */
#ifndef SEGUE_SHIM_PORT_FORWARD_H
#define SEGUE_SHIM_PORT_FORWARD_H

/* `words` is SOCKET BYPASS PROGRAM [ARG...], NULL-terminated. Listens on a free port of 127.0.0.1
 * and starts the program with the variables that name this port as its proxy (for all hosts but
 * those of BYPASS, which may be empty). Carries bytes until the program ends, and exits as it did.
 * Signals that would end a program are passed on to it. */
__attribute__((noreturn)) void port_forward(char **words);

#endif
