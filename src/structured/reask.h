/* reask.h - the loop from a model to a value that code can trust: validate, ask again.
 *
 * A pure machine: it calls nothing, waits for nothing and keeps nothing between two questions. Each
 * time it is given everything that has happened, so after a crash the same records give the same
 * answer.
 *
 *   checks = [];  replies = {};  runs = {}
 *   reask_next(&spec, checks, replies, n, runs, m, &step)
 *     REASK_GENERATE  ask for the value (step.raise: with a higher limit on the length of the
 *                     answer); come back with the reply appended to `replies`
 *     REASK_CORRECT   the same in a new conversation whose role is to correct the output of
 *                     replies[step.reply]: schema, original task, that output, step.errors, last
 *     REASK_RUN       run the outside invariant step.invariant on step.value; come back with its
 *                     outcome appended to `runs`
 *     REASK_CHECKED   replies[step.reply] is read: append step.object to `checks`, record it, come
 *                     back
 *     REASK_VALUE     step.value, from replies[step.reply], is what was asked for
 *     REASK_FAILED    there will be none: step.reason says why
 *   reask_step_deinit(&step)                       after each
 *   body = reask_close(checks, &step)              of VALUE and FAILED: how it went, for the record
 *
 * Rules, in this order: a reply that passes schema and invariants is the value. Nothing more is
 * asked after a refusal, or when time ran out during a call. After a stop at the length limit the
 * limit is raised once, which does not count as a correction; a second stop is a failure. A
 * correction is asked for while corrections, tokens and time are left, unless the last one brought
 * back the very errors it was to fix.
 *
 * Invariants that are expressions are evaluated here, when the schema is satisfied; those that must
 * be run outside (a command, a model) follow in order, up to the first that does not hold.
 *
 * With keep_valid, an item of a list that was right stays as it was: of a correction, only the
 * items that errors named are taken, from their places in its list, or in their order if it holds
 * no more than those. The value that is made so is checked like an answer.
 *
 * An answer is `unenforced` that no constraint could have let through although there was one:
 * without a value, with another root, with a member missing or too many.
 *
 * A check object: {"number", "call", "outcome", "unenforced"?, "ambiguous"?, "extract_stage"?,
 * "repaired"?, "repairs"?, "truncated"?, "first_pass"?, "runs"?: [call ids], "errors": [..],
 * "errors_dropped"?}; errors as in reply_check.h. The number counts replies from 1. */
#ifndef SEGUE_STRUCTURED_REASK_H
#define SEGUE_STRUCTURED_REASK_H

#include "structured/invariant.h"
#include "structured/reply_check.h"

#include <stdint.h>

enum {
  REASK_DEFAULT_COUNT = 2, /* corrections asked for when nobody says how many */
  REASK_WARN_COUNT = 3,    /* more corrections than this are rarely worth their price */
  REASK_ERRORS_SHOWN = 5   /* errors that a correction is told */
};

enum reask_outcome {
  REASK_OUTCOME_VALID,
  REASK_OUTCOME_PARSE,     /* no value in it, or a broken one */
  REASK_OUTCOME_SCHEMA,    /* the schema refuses the value */
  REASK_OUTCOME_INVARIANT, /* an invariant does not hold */
  REASK_OUTCOME_REFUSED,   /* the model would not answer */
  REASK_OUTCOME_LENGTH,    /* cut at the length limit */
  REASK_OUTCOME_COUNT
};

enum reask_end { REASK_ANSWERED, REASK_REFUSED, REASK_CUT };

struct reask_reply { /* one generation that is over; borrowed */
  long call;
  enum reask_end end;
  const char *text;
  size_t n;
  const json_t *structured; /* value from the backend, or NULL */
  bool enforced;            /* the backend was to keep it to the schema, in whatever way */
  int64_t duration_ms, tokens;
};

struct reask_run { /* one outside invariant that was run; borrowed */
  long call;
  size_t reply, invariant; /* indexes */
  const json_t *errors;    /* in the form of reply_check.h; empty or NULL: it holds */
  int64_t duration_ms, tokens;
};

struct reask_spec { /* all borrowed */
  struct answer_spec answer;
  const struct invariants *invariants; /* or NULL */
  int max_reasks;
  bool keep_valid;
  bool can_raise;             /* the backend takes a limit on the length of its answer */
  int64_t max_ms, max_tokens; /* for all replies and runs together; 0: no limit */
  bool out_of_time;           /* the last call was ended by max_ms and brought nothing */
};

enum reask_action {
  REASK_GENERATE,
  REASK_CORRECT,
  REASK_RUN,
  REASK_CHECKED,
  REASK_VALUE,
  REASK_FAILED
};

enum reask_reason {
  REASK_REASON_EXHAUSTED, /* no correction is left */
  REASK_REASON_REPEATED,  /* a correction brought the same errors back */
  REASK_REASON_REFUSED,
  REASK_REASON_LENGTH, /* cut, and the limit was raised already or cannot be */
  REASK_REASON_TOKENS,
  REASK_REASON_TIME,
  REASK_REASON_COUNT
};
const char *reask_reason_name(enum reask_reason reason); /* "exhausted", "repeated", ... */
/* One sentence: "no correction was left". */
const char *reask_reason_words(enum reask_reason reason);

struct reask_step {
  enum reask_action action;
  size_t reply;
  size_t invariant; /* index in spec.invariants */
  bool raise;
  /* owned. CORRECT: what is to be corrected, where that is not the reply alone; or NULL */
  json_t *value;
  json_t *object; /* owned */
  json_t *errors; /* owned. CORRECT: at most REASK_ERRORS_SHOWN; FAILED: those of the last reply */
  size_t more;    /* CORRECT: errors that are not among them */
  enum reask_reason reason;
};

/* `checks` is an array of check objects, one a reply that was read. */
void reask_next(const struct reask_spec *spec, const json_t *checks,
                const struct reask_reply *replies, size_t reply_count, const struct reask_run *runs,
                size_t run_count, struct reask_step *step);
void reask_step_deinit(struct reask_step *step);

/* A new object {"attempts", "first_pass", "failures": {"parse": n, ...}, "reason"?, "errors"?: of a
 * failure}. */
json_t *reask_close(const json_t *checks, const struct reask_step *step)
    __attribute__((warn_unused_result));

#endif
