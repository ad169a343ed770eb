/* aggregate.h - all("X"), any("X"): a rule of a movement with children about their verdicts.
 *
 *   all("X")        every child's label is X, and there is one
 *   all("X", "Y")   as many children as labels, the first X, the second Y
 *   any("X", "Y")   some child's label is one of them
 * A label may be quoted, with \" and \\, or bare. `error` is a child that failed, `none` a child
 * without a verdict. The rule becomes an expression over `parts`, so that the evaluator of when()
 * handles it too. The forms are those of takt 0.39.0. */
#ifndef SEGUE_JUDGE_AGGREGATE_H
#define SEGUE_JUDGE_AGGREGATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define AGGREGATE_ERROR "error"
#define AGGREGATE_NONE  "none"

struct aggregate {
  bool all; /* else any */
  struct str *labels;
  size_t count;
};

/* Reads `text`, all(...) or any(...) from its first byte to its last. *error_offset: the byte where
 * it went wrong. Labels are in the arena. */
bool aggregate_parse(struct arena *arena, struct str text, struct aggregate *out,
                     size_t *error_offset, struct err *err) MUST_CHECK;

/* Appends the expression over parts[].label that is true if the aggregate holds. */
void aggregate_expression(const struct aggregate *aggregate, struct buf *out);

#endif
