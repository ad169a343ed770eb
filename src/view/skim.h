/* skim.h - reads what a list shows of a session that is at neither end of its log: the first line
 * of its task, how its judgments were decided, and whether another provider took over.
 *
 *   skim_read(&g, &ref)     of a log over LIMIT_SKIM_BYTES only the task, and what its end says
 *   skim_deinit(&g)
 *
 * Nothing is proven: no hash is checked, and lines are walked, not built. Texts are raw. */
#ifndef SEGUE_VIEW_SKIM_H
#define SEGUE_VIEW_SKIM_H

#include "base/buf.h"
#include "judge/stage.h"
#include "store/store.h"

enum { SKIM_NO_RULE = STAGE_COUNT, SKIM_METHODS };

struct skim {
  struct buf task;
  long methods[SKIM_METHODS]; /* judgments by the stage that decided; the last: no stage did */
  bool ambiguous;             /* a judgment, or a stage of one, named two rules */
  bool fell_back;             /* another provider took over a call */
  bool whole;                 /* the whole log was read, not only its last records */
};

void skim_read(struct skim *g, const struct store_ref *ref);
void skim_deinit(struct skim *g);
/* Returns the match method of judgments by this stage; "no rule". */
const char *skim_method_name(int method);

#endif
