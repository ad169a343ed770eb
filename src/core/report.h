/* report.h - internal to the core: the reports of a movement, one after the other, once its own
 * work is done and before it is judged. A small machine beside the judge chain and reask.
 *
 *   call_end (its work) -> for each contract: call_start, call_end (purpose report) -> report
 *
 * What comes next follows from the turn's calls and reports so far: ask for the next report, in the
 * agent's conversation if possible; ask again in a new one that is told what the agent said; keep
 * it as a record; or stop, resumably. A report that is the answer itself is just a record. The log
 * holds its bytes: the host writes the file after the record, and again if it is missing after a
 * crash. */
#ifndef SEGUE_CORE_REPORT_H
#define SEGUE_CORE_REPORT_H

#include "core/fold.h"
#include "core/step.h"

enum report_action {
  REPORT_ASK,   /* a call; fresh: it does not go on with a conversation */
  REPORT_WAIT,  /* one is under way */
  REPORT_KEEP,  /* a record: call's answer, or the turn's where call is NULL */
  REPORT_FAILED /* the call brought none, and another is not worthwhile */
};

struct report_step {
  enum report_action action;
  const struct contract *contract;
  bool fresh;
  const struct call *call;
};

/* The turn's phase is TURN_REPORTING. */
void report_next(const struct movement *m, const struct turn *turn, struct report_step *step);

/* --- the fold --- */

/* Which of the movement's reports the record's call is for, from 1; 0: none. */
int report_number(const struct fold *f, const struct turn *turn);
bool report_may_call(const struct fold *f, const struct turn *turn);
bool apply_report(const struct fold *f);

#endif
