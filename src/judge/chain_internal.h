/* chain_internal.h - inside the chain: chain.c says what comes next, chain_stage.c judges one stage,
 * chain_schemas.c makes the schemas of the answers. Stage objects are as in chain.h. */
#ifndef SEGUE_JUDGE_CHAIN_INTERNAL_H
#define SEGUE_JUDGE_CHAIN_INTERNAL_H

#include "judge/chain.h"
#include "structured/tag.h"

/* --- rules: chain.c --- */

/* Not hidden: interactive_only rules are, unless somebody is there. */
bool chain_shows(const struct chain_spec *spec, const struct rule *rule);
/* Is it the number of a rule that is offered to a model? */
bool chain_offers(const struct chain_spec *spec, long number);
/* The place of the first rule with a label; rule_count: there is none. */
size_t chain_first_label(const struct chain_spec *spec);

/* --- stage objects: chain_stage.c --- */

json_t *stage_object_new(enum judge_stage stage, enum stage_outcome outcome);
void stage_object_error(json_t *object, const char *text, size_t n);
/* STAGE_COUNT and OUTCOME_COUNT of an object that says something else. */
enum judge_stage stage_object_stage(const json_t *object);
enum stage_outcome stage_object_outcome(const json_t *object);
const json_t *stage_object_find(const json_t *stages, enum judge_stage stage); /* or NULL */

/* Evaluates the when() rules [0, end) in file order. */
json_t *chain_when(const struct chain_spec *spec, size_t end);
/* After `chosen` was picked: the rule that wins in file order with that label fixed, NULL when no
 * guard holds. *failed is set when an expression cannot be evaluated. */
const struct rule *chain_walk(const struct chain_spec *spec, const struct rule *chosen,
                              bool *failed, char *reason, size_t reason_bytes);
/* A stage decided by a tag in `text`. */
json_t *chain_tag(const struct chain_spec *spec, enum judge_stage stage, struct str text);
bool chain_find_tag(const struct chain_spec *spec, struct str text, enum judge_stage stage,
                    struct tag_result *tag);
/* A stage decided by the value of a reply. */
json_t *chain_value(const struct chain_spec *spec, enum judge_stage stage,
                    const struct chain_reply *reply);

#endif
