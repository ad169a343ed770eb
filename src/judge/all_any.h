/* all_any.h - all("X"), any("X"): a rule of a movement with children about their verdicts.
 *
 *   all("X")        every child's label is X, and there is one
 *   all("X", "Y")   as many children as labels, the first X, the second Y
 *   any("X", "Y")   some child's label is one of them
 * A label may be quoted, with \" and \\, or bare. `error` is a child that failed, `none` a child
 * without a verdict. The rule becomes an expression over `parts`, so that the evaluator of when()
 * handles it too. The forms are those of takt 0.39.0. */
#ifndef SEGUE_JUDGE_ALL_ANY_H
#define SEGUE_JUDGE_ALL_ANY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define ALL_ANY_ERROR "error"
#define ALL_ANY_NONE  "none"

struct all_any {
  bool all; /* else any */
  struct str *labels;
  size_t count;
};

/* Reads `text`, all(...) or any(...) from its first byte to its last. *error_offset: the byte where
 * it went wrong. Labels are in the arena. */
bool all_any_parse(struct arena *arena, struct str text, struct all_any *out, size_t *error_offset,
                   struct err *err) MUST_CHECK;

/* Appends the expression over parts[].label that is true if the aggregate holds. */
void all_any_expression(const struct all_any *aggregate, struct buf *out);

#endif
