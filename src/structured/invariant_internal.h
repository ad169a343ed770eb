/* Internal: a compiled list, shared by the files that make and check it. */
#ifndef SEGUE_STRUCTURED_INVARIANT_INTERNAL_H
#define SEGUE_STRUCTURED_INVARIANT_INTERNAL_H

#include "structured/expr.h"
#include "structured/invariant.h"
#include "structured/schema_run.h"

#define INVARIANT_KEYWORD "invariant"

struct list_entry {
  struct invariant is;
  const struct expr *expr; /* INVARIANT_EXPR */
};

struct invariants {
  struct schema_arena arena;
  struct list_entry *items;
  size_t count;
};

#endif
