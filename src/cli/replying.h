/* replying.h - gives an answer from the command line to the daemon that keeps the session or,
 * without one, writes it to the session's log. */
#ifndef SEGUE_CLI_REPLYING_H
#define SEGUE_CLI_REPLYING_H

#include "cli/cli.h"

#include <jansson.h>

/* Sends an answer. action: answer, approve or reject; body: as in its request. Prints the result
 * and returns the exit status. */
int replying_run(const struct cli_args *args, const char *action, const json_t *body);

/* All three have these options. */
#define REPLYING_OPTIONS                                                                           \
  {"name", 0, "NAME", "who is answering (default: your user name)", false},                        \
      {"question", 0, "N", "answer only if this is the question: its record (from inbox --json)",  \
       false},                                                                                     \
      {"resume", 'r', NULL, "continue it here if no daemon does", false},                          \
      {"json", 0, NULL, "print the session, or the error, as one line of JSON", false},            \
      {"logs", 'l', "DIR", "the session's log folder", false},                                     \
      {"store", 0, "URL", "use this shared store instead: postgres://HOST/DATABASE", false}, {     \
    "socket", 'S', "PATH", "the daemon's control socket", false                                    \
  }

#endif
