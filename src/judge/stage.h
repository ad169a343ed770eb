/* stage.h - the names of the ways to judge, one enum for files, logs, prompts and messages.
 *
 * method = the stage that decided. match_method = the word for it in logs and audits: both tag
 * stages are "tag_fallback", both AI stages "ai_judge", the others keep their name. People read
 * words for them (judge_stage_words); files, logs and --json keep the names. */
#ifndef SEGUE_JUDGE_STAGE_H
#define SEGUE_JUDGE_STAGE_H

#include "base/str.h"

#include <stdbool.h>

enum judge_stage {
  STAGE_AUTO_SELECT,       /* one selectable rule: nothing to judge */
  STAGE_AGGREGATE,         /* all() / any() over sub-steps (no files use it yet) */
  STAGE_WHEN,              /* a deterministic expression decided */
  STAGE_STRUCTURED_OUTPUT, /* call 1: {step, reason} by schemas/judgment.json */
  STAGE_PHASE3_TAG,        /* call 2: one line, one tag */
  STAGE_PHASE1_TAG,        /* no call: a tag in the agent's own last message */
  STAGE_AI_JUDGE,          /* call 3: which condition holds, schemas/evaluation.json */
  STAGE_AI_JUDGE_FALLBACK, /* reserved name */
  STAGE_HUMAN,             /* a person said so (resume --rule) */
  STAGE_COUNT
};

enum stage_outcome {
  OUTCOME_MATCHED,
  OUTCOME_NO_MATCH,     /* a readable answer that names no rule (0, or no tag) */
  OUTCOME_UNREADABLE,   /* an answer without a value or tag in it */
  OUTCOME_INVALID,      /* a value that the schema refuses */
  OUTCOME_OUT_OF_RANGE, /* a number that no rule has */
  OUTCOME_HIDDEN,       /* a rule that was not offered */
  OUTCOME_ERROR,        /* no answer: the call failed; the stage's class says how */
  OUTCOME_AMBIGUOUS,    /* its evidence names two rules: it decides nothing */
  OUTCOME_SKIPPED,      /* not tried: the provider's auth or quota error made it pointless */
  OUTCOME_COUNT
};

const char *judge_stage_name(enum judge_stage stage);
const char *judge_stage_match_method(enum judge_stage stage);
/* Returns what screens say for a stage, a match method or the reason for no rule, at most 24
 * columns; for methods and reasons at most 17. Other words come back as they are. */
struct str judge_stage_words(struct str name);
const char *stage_outcome_name(enum stage_outcome outcome);
bool judge_stage_from_name(struct str name, enum judge_stage *out);
bool stage_outcome_from_name(struct str name, enum stage_outcome *out);
/* Stages a file may list in judge.stages. */
bool judge_stage_is_listable(enum judge_stage stage);

#endif
