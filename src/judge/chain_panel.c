/* Judges one stage by a panel: one vote each, until enough agree or no longer can. */
#include "base/buf.h"
#include "format/json_object.h"
#include "judge/chain_internal.h"

#include <assert.h>
#include <stdio.h>

bool stage_object_is_vote(const json_t *object) {
  return json_at(object, "vote") != NULL;
}

/* Counts the votes of a stage so far. */
struct tally {
  int votes;         /* recorded */
  int none;          /* said that no rule holds */
  int most;          /* that said the same */
  long rule;         /* the rule they named; 0: none holds */
  const char *class; /* why the last one without an answer failed; NULL: all answered */
  json_t *said;      /* {"rule", "vote", "provider"?} of each that said something; owned */
};

static void count_rule(struct tally *t, long rule) {
  size_t i;
  json_t *other;
  int same = 0;
  json_array_foreach(t->said, i, other) {
    same += json_integer_value(json_at(other, "rule")) == rule;
  }
  if (same > t->most) {
    t->most = same;
    t->rule = rule;
  }
}

static void count_vote(struct tally *t, const json_t *vote) {
  enum stage_outcome outcome = stage_object_outcome(vote);
  bool none = json_is_true(json_at(vote, "none"));
  t->votes++;
  if (outcome == OUTCOME_ERROR)
    t->class = json_string_value(json_at(vote, "class"));
  if (outcome != OUTCOME_MATCHED && !(outcome == OUTCOME_NO_MATCH && none))
    return;
  json_int_t rule = outcome == OUTCOME_MATCHED ? json_integer_value(json_at(vote, "rule")) : 0;
  json_t *said = json_pack("{sI sO}", "rule", rule, "vote", json_at(vote, "vote"));
  if (json_at(vote, "provider") != NULL)
    json_put(said, "provider", json_incref(json_at(vote, "provider")));
  json_array_append_new(t->said, said);
  count_rule(t, (long)rule);
}

static struct tally tally_votes(const json_t *stages, enum judge_stage stage) {
  struct tally t = {.said = json_array()};
  size_t i;
  json_t *object;
  json_array_foreach(stages, i, object) {
    if (stage_object_is_vote(object) && stage_object_stage(object) == stage)
      count_vote(&t, object);
  }
  return t;
}

/* Builds the stage's own object from its votes. */
static json_t *panel_decide(const struct chain_spec *spec, enum judge_stage stage,
                            struct tally *t) {
  struct buf line = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_t *object;
  buf_printf(&line, "%d of %d votes", t->most, t->votes);
  if (t->most >= spec->agree && t->rule > 0) {
    object = stage_object_new(stage, OUTCOME_MATCHED);
    json_put(object, "rule", json_integer(t->rule));
    json_put(object, "reason", json_stringn_nocheck(line.p, line.n));
  } else if (t->most >= spec->agree) {
    object = stage_object_new(stage, OUTCOME_NO_MATCH);
    buf_puts(&line, " say that no rule holds");
    stage_object_error(object, line.p, line.n);
    json_put(object, "none", json_true());
  } else if (t->most > 0) {
    object = stage_object_new(stage, OUTCOME_AMBIGUOUS);
    buf_printf(&line, " agree at most, %d must", spec->agree);
    stage_object_error(object, line.p, line.n);
    json_put(object, "candidates", json_incref(t->said));
  } else if (t->class != NULL) {
    object = stage_object_new(stage, OUTCOME_ERROR);
    json_put(object, "class", json_string_nocheck(t->class));
    stage_object_error(object, "no vote could be read", 21);
  } else {
    object = stage_object_new(stage, OUTCOME_UNREADABLE);
    stage_object_error(object, "no vote could be read", 21);
  }
  buf_deinit(&line);
  return object;
}

/* Counts the replies of one vote. They stand together: a stage's votes are asked for one after the
 * other. */
static size_t replies_of(enum judge_stage stage, int vote, const struct chain_reply *replies,
                         size_t n, const struct chain_reply **first) {
  size_t from = 0, count = 0;
  while (from < n && (replies[from].stage != stage || replies[from].vote != vote))
    from++;
  while (from + count < n && replies[from + count].stage == stage &&
         replies[from + count].vote == vote)
    count++;
  *first = NULL;
  if (n > 0)
    *first = from < n ? &replies[from] : replies;
  return count;
}

void chain_panel(const struct chain_spec *spec, enum judge_stage stage, const json_t *stages,
                 const struct chain_reply *replies, size_t n, struct chain_step *step) {
  struct tally t = tally_votes(stages, stage);
  int left = spec->panel - t.votes;
  assert(spec->panel > 0 && spec->agree > 0);
  if (left <= 0 || t.most >= spec->agree || t.most + left < spec->agree) {
    chain_yield(step, panel_decide(spec, stage, &t));
  } else {
    const struct chain_reply *own;
    size_t count = replies_of(stage, t.votes + 1, replies, n, &own);
    struct chain_spec one = *spec; /* the chain of one judge with one stage */
    one.panel = 0;
    one.stages = &stage;
    one.stage_count = 1;
    chain_call_stage(&one, stage, NULL, own, count, step);
    step->vote = t.votes + 1;
    if (step->action == CHAIN_STAGE)
      json_put(step->object, "vote", json_integer(step->vote));
  }
  json_decref(t.said);
}
