/* expr_node.h - the tree of a when() expression: made by expr.c, walked by expr_eval.c. */
#ifndef SEGUE_JUDGE_EXPR_NODE_H
#define SEGUE_JUDGE_EXPR_NODE_H

#include "judge/expr.h"

enum node_kind {
  NODE_OR,  /* parts */
  NODE_AND, /* parts */
  NODE_NOT, /* parts: one */
  NODE_NULL,
  NODE_BOOL,
  NODE_INTEGER,
  NODE_REAL,
  NODE_STRING,
  NODE_REF,
  NODE_COMPARE,  /* parts: two operands */
  NODE_CONTAINS, /* parts: a reference, an operand */
  NODE_EXISTS,   /* parts: a reference, an expression on item */
};

enum compare_op { OP_EQ, OP_NE, OP_GE, OP_LE, OP_GT, OP_LT };

struct ref_part {
  bool is_index;
  size_t index;
  struct str name;
};

struct expr {
  enum node_kind kind;
  struct expr *next;  /* among the parts of one parent */
  struct expr *parts; /* first part */
  enum compare_op op;
  bool boolean;
  long long integer;
  double real;
  struct str text; /* NODE_STRING: unescaped; NODE_REF: as written */
  bool on_item;    /* NODE_REF: starts at exists()'s item */
  struct ref_part *ref;
  size_t ref_count;
};

#endif
