/* rejudge.h - restores recorded turns as they stood when they were judged, to be judged once more.
 *
 *   reading = rejudge_open(&ref, turns, n, &as, &err)     n turns of one log, ascending
 *   while (rejudge_next(reading, &case, &err) && case != NULL)      in the log's order
 *     host_start with case->core.workflow and rejudge_parent(case); host_answer_with(&case->answer)
 *     rejudge_case_free(case)
 *   rejudge_close(reading)
 *
 * A log is read no further than its next case, so that a long one needs no more memory than a short
 * one. `turns` and `as` must stay until the end.
 *
 * A case is a workflow of one movement: the recorded movement's name, rules and judge, or another
 * judge. The result of the turn's own work (text, exit, tests, files) is the answer, and earlier
 * checks are carried over, so that a stage gets the prompt it would have got then. Expressions in
 * rules are replaced by their value then, true or false. Nothing is asked or written here. */
#ifndef SEGUE_AUDIT_REJUDGE_H
#define SEGUE_AUDIT_REJUDGE_H

#include "core/decide.h"
#include "store/store.h"

struct rejudge_as {     /* changes to make; each may be NULL */
  const char *provider; /* if set, the judge's model, panel and options are this provider's own */
  const char *model, *language;
  const json_t *stages, *panel, *options;
  int agree, max_reasks; /* -1: as recorded */
};

struct rejudge_case {
  size_t index;          /* index into `turns` */
  struct core core;      /* the state to carry, with the workflow */
  char hash[SHA256_HEX]; /* hash of the last record before its judgment */
  struct text text;      /* stays empty */
  struct core_parent parent;
  struct call_result answer; /* result of its work */
  struct buf task;           /* the session's, which no stage is shown */
};

struct rejudge_reading;
/* Returns NULL if the log cannot be opened. */
struct rejudge_reading *rejudge_open(const struct store_ref *ref, const long *turns, size_t n,
                                     const struct rejudge_as *as, struct err *err);
/* Reads up to the next case and gives it away; NULL after the last. False: the log is not sound up
 * to there, or lacks one of the judgments. */
bool rejudge_next(struct rejudge_reading *r, struct rejudge_case **out, struct err *err) MUST_CHECK;
void rejudge_close(struct rejudge_reading *r);
const struct core_parent *rejudge_parent(struct rejudge_case *c);
/* Copies the result of the turn's work, for another session. */
void rejudge_answer(const struct rejudge_case *c, struct call_result *out);
void rejudge_case_free(struct rejudge_case *c);

#endif
