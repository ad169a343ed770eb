/* ended.h - says how a call failed whose program was never started, or was ended by somebody else:
 * in the same words for every backend that runs programs. */
#ifndef SEGUE_PROVIDER_ENDED_H
#define SEGUE_PROVIDER_ENDED_H

#include "core/call.h"
#include "os/process.h"

/* Fails the call. p->why must be SPAWN_FAILED, CANCELLED or SHIM_LOST. */
void ended_fail(struct call_result *r, const struct process_result *p);

#endif
