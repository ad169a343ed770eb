/* replay.h - runs the replies of a log through today's code, to see whether the verdict would be
 * the same.
 *
 *   replay = replay_new(&err);
 *   replay_log(replay, &ref, on_turn, ctx, &err)     any number of times; adds to replay->counts
 *   replay_free(replay)
 *
 * Each judged turn is judged again from the first stage, with the recorded replies in the order in
 * which today's chain asks for them. Nobody is asked: a question without a recorded reply ends the
 * turn (REPLAY_ASKS). A person's verdict is not judged again. */
#ifndef SEGUE_AUDIT_REPLAY_H
#define SEGUE_AUDIT_REPLAY_H

#include "base/err.h"
#include "store/store.h"

enum replay_kind {
  REPLAY_SAME,
  REPLAY_METHOD, /* the same rule (or none, as before) by another stage */
  REPLAY_RULE,   /* another rule, or a rule instead of none, or none instead of a rule */
  REPLAY_ASKS,   /* today's chain asks a question that was not asked */
  REPLAY_HUMAN,  /* a person's verdict */
  REPLAY_OLDER,  /* an older reader judged it, and today's would differ */
  REPLAY_KIND_COUNT
};
const char *replay_kind_name(enum replay_kind kind); /* same, method, rule, asks, human, older */

struct replay_turn { /* words are valid during the call */
  long turn;
  const char *session, *movement;
  enum replay_kind kind;
  long rule, rule_now;             /* 0: none */
  const char *method, *method_now; /* NULL: none; with REPLAY_ASKS the stage that asks */
  const char *why;                 /* why there is no rule now, or ""  */
};
typedef void (*replay_fn)(void *ctx, const struct replay_turn *turn);

struct replay;
struct replay *replay_new(struct err *err);
/* Replays a log. False: it is not sound to its end, or cannot be opened; judgments before the bad
 * place were reported. */
bool replay_log(struct replay *r, const struct store_ref *ref, replay_fn on_turn, void *ctx,
                struct err *err) MUST_CHECK;
uint64_t replay_count(const struct replay *r, enum replay_kind kind);
void replay_free(struct replay *r);

#endif
