/* rule.h - one rule of a movement: a condition and where it leads.
 *
 * Condition forms: a plain label; when(EXPR); label && when(EXPR); with children also all(...),
 * any(...), alone or before && when(EXPR). The text is trimmed. A text that begins with when(,
 * all(, any( or ai( but is not well formed is an error, never a label. Clauses are split on &&
 * outside quotes and parentheses. Numbers are 1-based, in file order. */
#ifndef SEGUE_JUDGE_RULE_H
#define SEGUE_JUDGE_RULE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "expr/expr.h"

enum rule_kind { RULE_LABEL, RULE_WHEN, RULE_LABEL_WHEN };

struct rule {
  int number;
  enum rule_kind kind;
  struct str condition; /* as written, trimmed: what logs and messages show */
  struct str label;     /* text that a model is shown; empty for RULE_WHEN */
  struct str when_text; /* EXPR as written; empty for RULE_LABEL */
  const struct expr *when;
  const struct all_any *aggregate; /* for all(...) and any(...), which are RULE_WHEN; or NULL */
  struct str next;                 /* movement name, COMPLETE or ABORT */
  struct str appendix;             /* shown with the rule; may be empty */
  bool is_global;                  /* from the workflow: what it cannot see here is false */
  bool interactive_only;           /* hidden while the session is not interactive */
  bool asks;                       /* a person answers, then the movement runs again */
};

/* Fills kind, condition, label, when_text, when from the condition text; the caller sets the rest.
 * *error_offset: the byte in `condition` where it went wrong. Memory from the arena. */
bool rule_parse(struct arena *arena, struct str condition, struct rule *out, size_t *error_offset,
                struct err *err) MUST_CHECK;

/* Returns the name of a child's rule for all(), any() and votes: its label, or its when() as
 * written. */
struct str rule_vote(const struct rule *rule);

/* Appends the tag that stands for a rule: [NAME:N], ASCII letters of the movement's name in upper
 * case. The one form for prompts, logs and messages; extract/tag.h reads it. */
void rule_tag(struct str movement, int number, struct buf *out);

/* --- all and any --- */

#define ALL_ANY_ERROR "error"
#define ALL_ANY_NONE  "none"

struct all_any {
  bool all; /* else any */
  struct str *labels;
  size_t count;
};

#endif
