/* node.h - the tree of an expression, and its parser; internal. */
#ifndef SEGUE_EXPR_NODE_H
#define SEGUE_EXPR_NODE_H

#include "expr/decimal.h"
#include "expr/expr.h"

enum node_kind {
  NODE_OR,  /* parts */
  NODE_AND, /* parts */
  NODE_NOT, /* parts: one */
  NODE_NULL,
  NODE_BOOL,
  NODE_NUMBER,
  NODE_STRING,
  NODE_LIST,    /* parts: the items */
  NODE_REF,     /* parts: the base of REF_BASE, else none */
  NODE_COMPARE, /* op, parts: two */
  NODE_BINARY,  /* op, parts: two */
  NODE_NEGATE,  /* parts: one */
  NODE_CALL,    /* function, parts: its arguments */
};

enum node_op {
  CMP_EQ,
  CMP_NE,
  CMP_GE,
  CMP_LE,
  CMP_GT,
  CMP_LT,
  CMP_IN,
  CMP_NOT_IN,
  CALC_ADD,
  CALC_SUBTRACT,
  CALC_MULTIPLY,
  CALC_DIVIDE,
  CALC_REMAINDER
};

enum function_id {
  FN_ALL,
  FN_ANY,
  FN_NO,
  FN_ONE,
  FN_SUM,
  FN_AVG,
  FN_MIN,
  FN_MAX,
  FN_COUNT,
  FN_LENGTH,
  FN_CONTAINS,
  FN_UNIQUE,
  FN_FILTER,
  FN_MAP,
  FN_HAS,
  FN_DEFAULT,
  FN_ABS,
  FN_ROUND,
  FN_FLOOR,
  FN_CEIL,
  FN_STARTS,
  FN_ENDS,
  FN_MATCHES,
  FN_IS_DATE
};

struct function {
  const char *name;
  enum function_id id;
  unsigned char least, most; /* arguments, not counting the name between */
  bool on_items;             /* the second argument is evaluated on each item of the first */
  bool condition;            /* and it must be a condition */
  bool says_true;            /* the result is true or false */
  const char *needs;         /* for messages: "sum(list) or sum(list, expression)" */
};

enum ref_start {
  REF_NAME,  /* the first part is a member of the value at `level` */
  REF_VALUE, /* the value at `level` itself */
  REF_BASE   /* the value of the first part of the tree below */
};

struct ref_part {
  enum { PART_NAME, PART_INDEX, PART_EACH } kind;
  json_int_t index; /* below 0: from the end */
  struct str name;
};

struct expr {
  enum node_kind kind;
  enum expr_dialect dialect;
  struct expr *next;  /* among the parts of one parent */
  struct expr *parts; /* first part */
  size_t at;          /* offset in the expression */
  struct str source;
  enum node_op op;
  bool boolean;
  struct number number;
  struct str string;
  enum ref_start start;
  unsigned level;   /* where a reference starts: 0 the whole value, n the item of the n-th enclosing
                     * call on items */
  bool maybe_whole; /* the name is root: the whole value unless there is such a member */
  struct ref_part *ref;
  size_t ref_count;
  const struct function *function;
};

/* --- parsing --- */

struct items_scope {   /* inside a call on items */
  struct str variable; /* n 0: none, names are members of the item */
};

struct expr_parser {
  struct arena *arena;
  enum expr_dialect dialect;
  const char *text; /* a copy, NUL-terminated */
  size_t n, at;
  unsigned nodes, depth, scope_count;
  struct items_scope scopes[EXPR_DEPTH_MAX];
  struct expr_error *error;
};

/* Holds at most 120 bytes, safe to print. */
struct excerpt {
  char text[128];
};
struct excerpt expr_excerpt(const char *text, size_t n);

#endif
