/* rejudge.h - recorded turns as they stood when they were judged, to be judged once more.
 *
 *   rejudge_read(&ref, turns, n, &as, on_case, ctx, &err)    n turns of one log, in its order
 *   host_start with case->core.workflow and rejudge_parent(case); host_answer_with(&case->answer)
 *   rejudge_case_free(case)
 *
 * A case is a workflow of one movement: the recorded one's name, rules and judge, or another judge.
 * What its own work brought (text, exit, tests, files) is the answer; what the session knew of
 * checks before is carried over, so that a stage gets the prompt that it would have got there.
 * Expressions of rules are put as the true or false that they were. Nobody is asked here, nothing
 * is written. */
#ifndef SEGUE_AUDIT_REJUDGE_H
#define SEGUE_AUDIT_REJUDGE_H

#include "core/decide.h"
#include "store/store.h"

struct rejudge_as {     /* what is other than it was; each may be NULL */
  const char *provider; /* then the judge's model, panel and options are its own */
  const char *model, *language;
  const json_t *stages, *panel, *options;
  int agree, max_reasks; /* -1: as it was */
};

struct rejudge_case {
  size_t index;          /* of `turns` */
  struct core core;      /* the state to carry, with the workflow */
  char hash[SHA256_HEX]; /* of the last record before its judgment */
  struct text text;      /* none */
  struct core_parent parent;
  struct call_result answer; /* of its work */
};

/* The case is the callee's. */
typedef void (*rejudge_fn)(void *ctx, struct rejudge_case *c);

/* False: the log is not sound up to the last of them, or has no such judgment. */
bool rejudge_read(const struct store_ref *ref, const long *turns, size_t n,
                  const struct rejudge_as *as, rejudge_fn on_case, void *ctx,
                  struct err *err) MUST_CHECK;
const struct core_parent *rejudge_parent(struct rejudge_case *c);
/* A copy of what its work brought, for another session. */
void rejudge_answer(const struct rejudge_case *c, struct call_result *out);
void rejudge_case_free(struct rejudge_case *c);

#endif
