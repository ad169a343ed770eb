/* Says how a call failed whose program was never started, or was ended by somebody else. */
#include "provider/ended.h"

#include <assert.h>
#include <string.h>

void ended_fail(struct call_result *r, const struct process_result *p) {
  if (p->why == PROCESS_END_SPAWN_FAILED) {
    call_result_fail(r, CLASS_OVERLOADED, "no process could be started: %s",
                     strerror(p->exec_errno));
  } else if (p->why == PROCESS_END_CANCELLED) {
    call_result_fail(r, CLASS_CANCELLED, "cancelled");
  } else {
    assert(p->why == PROCESS_END_SHIM_LOST);
    call_result_fail(
        r, CLASS_CRASHED,
        "the shim that held the program is gone: it was killed, or the lease was over");
  }
}
