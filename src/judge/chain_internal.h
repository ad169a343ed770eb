/* chain_internal.h - internal to the chain. chain.c says what comes next, chain_stage.c judges a
 * stage, chain_answer.c judges what a model said, chain_schemas.c makes the schemas of the answers.
 * Stage objects are as in chain.h. */
#ifndef SEGUE_JUDGE_CHAIN_INTERNAL_H
#define SEGUE_JUDGE_CHAIN_INTERNAL_H

#include "judge/chain.h"

/* --- rules: chain.c --- */

/* Returns true unless the rule is hidden: interactive_only rules are hidden unless somebody is
 * there. */
bool chain_shows(const struct chain_spec *spec, const struct rule *rule);
/* Returns whether this is the number of a rule that is offered to a model. */
bool chain_offers(const struct chain_spec *spec, long number);

/* --- stage objects: chain_stage.c --- */

json_t *stage_object_new(enum judge_stage stage, enum stage_outcome outcome);
void stage_object_error(json_t *object, const char *text, size_t n);
/* STAGE_COUNT and OUTCOME_COUNT if the object says something else. */
enum judge_stage stage_object_stage(const json_t *object);
enum stage_outcome stage_object_outcome(const json_t *object);
/* Returns the object of a stage, not of a vote in it; or NULL. */
const json_t *stage_object_find(const json_t *stages, enum judge_stage stage);

bool stage_object_is_vote(const json_t *object); /* chain_panel.c */

/* Goes on with a stage that asks one judge: chain.c. Hands out a stage's object. */
void chain_call_stage(const struct chain_spec *spec, enum judge_stage stage, const json_t *stages,
                      const struct chain_reply *replies, size_t n, struct chain_step *step);
void chain_yield(struct chain_step *step, json_t *object);
/* Goes on with a stage that asks a panel: the next vote, or their joint decision. */
void chain_panel(const struct chain_spec *spec, enum judge_stage stage, const json_t *stages,
                 const struct chain_reply *replies, size_t n, struct chain_step *step);

/* Evaluates the when() rules [0, end) in file order. */
json_t *chain_when(const struct chain_spec *spec, size_t end);
/* After `chosen` was picked: the rule that wins in file order with that label fixed, NULL when no
 * guard holds. *failed is set when an expression cannot be evaluated. */
const struct rule *chain_walk(const struct chain_spec *spec, const struct rule *chosen,
                              bool *failed, char *reason, size_t reason_bytes);

/* --- what a model said: chain_answer.c --- */

/* Judges a stage by a tag in `text`. `stages`: earlier ones, whose "none holds" still counts. */
json_t *chain_tag(const struct chain_spec *spec, const json_t *stages, enum judge_stage stage,
                  struct str text);
/* Judges a stage by the value of a reply. */
json_t *chain_value(const struct chain_spec *spec, enum judge_stage stage,
                    const struct chain_reply *reply);

#endif
