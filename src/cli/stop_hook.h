/* stop_hook.h - decides whether a coding agent may end its turn: runs a gate and judges its last
 * answer.
 *
 * Claude Code calls a Stop hook with an object on standard input and takes {"decision": "block",
 * "reason"} as a no (code.claude.com/docs, hooks). The judging is a session like any other, with a
 * log: a movement that runs the gate, and one whose report is the agent's last answer. */
#ifndef SEGUE_CLI_STOP_HOOK_H
#define SEGUE_CLI_STOP_HOOK_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct stop_hook {
  const char *gate;                 /* a command line for sh; or NULL */
  const char *gate_timeout;         /* such as 10m */
  const char *const *rules;         /* NULL-terminated; the first lets it stop */
  const char *judge, *model, *logs; /* or NULL */
  unsigned most;                    /* after this many refusals in a row it may stop anyway */
};

enum stop_verdict { STOP_MAY, STOP_MUST_GO_ON, STOP_UNKNOWN };

/* Judges whether the agent may stop. `event`: what the client wrote. why: for the agent (continue)
 * or the person (unknown). False: this is no such event, or no session could be run. */
bool stop_hook_judge(const struct stop_hook *hook, const json_t *event, enum stop_verdict *verdict,
                     struct buf *why, struct err *err) MUST_CHECK;

#endif
