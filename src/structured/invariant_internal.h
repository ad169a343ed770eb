/* invariant_internal.h - a compiled list, shared by the files that make and check it. */
#ifndef SEGUE_STRUCTURED_INVARIANT_INTERNAL_H
#define SEGUE_STRUCTURED_INVARIANT_INTERNAL_H

#include "expr/expr.h"
#include "schema/run.h"
#include "structured/invariant.h"

#define INVARIANT_KEYWORD "invariant"

struct list_entry {
  struct invariant is;
  const struct expr *expr; /* INVARIANT_EXPR */
};

struct invariants {
  struct arena arena;
  struct list_entry *items;
  size_t count;
};

#endif
