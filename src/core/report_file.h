/* report_file.h - makes a movement's reports, one after the other, once its own work is done and
 * before it is judged: a small machine beside the judge chain and reask; internal to the core.
 *
 *   call_end (its work) -> for each contract: call_start, call_end (purpose report) -> report
 *
 * The next step follows from the turn's calls and reports so far: ask for the next report, in the
 * agent's conversation if possible; ask again in a new one that is told what the agent said; keep
 * it as a record; or stop, resumably. A report that is the answer itself is just a record. The log
 * holds its bytes: the host writes the file after the record, and again if it is missing after a
 * crash. */
#ifndef SEGUE_CORE_REPORT_FILE_H
#define SEGUE_CORE_REPORT_FILE_H

#include "core/fold.h"
#include "core/step.h"

enum report_action {
  REPORT_ASK,   /* make a call; fresh: in a new conversation */
  REPORT_WAIT,  /* a call is under way */
  REPORT_KEEP,  /* make a record: the call's answer, or the turn's if `call` is NULL */
  REPORT_FAILED /* the call brought no report, and another would not help */
};

struct report_step {
  enum report_action action;
  const struct contract *contract;
  bool fresh;
  const struct call *call;
};

/* Says what comes next. The turn's phase is TURN_REPORTING. */
void report_next(const struct movement *m, const struct turn *turn, struct report_step *step);

/* --- the fold --- */

/* Returns which of the movement's reports the record's call is for, from 1; 0: none. */
int report_number(const struct fold *f, const struct turn *turn);
bool report_may_call(const struct fold *f, const struct turn *turn);
bool apply_report(const struct fold *f);

#endif
