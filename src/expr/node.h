/* node.h - the tree of an expression and its parser, which expr.c, lex.c, ref.c and call.c share;
 * internal. */
#ifndef SEGUE_EXPR_NODE_H
#define SEGUE_EXPR_NODE_H

#include "expr/expr.h"
#include "expr/number.h"

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
/* Returns NULL if there is none of that name. An alias gives the row of its canonical name. */
const struct function *expr_function(const char *name, size_t n);
bool expr_in_when(const struct function *function); /* when(...) has it, too */
const char *const *expr_function_names(void);       /* NULL-ended */

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

/* Sets the error and returns NULL. */
void *expr_fail(struct expr_parser *p, enum expr_code code, size_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
struct expr *expr_node(struct expr_parser *p, enum node_kind kind, size_t at);

/* Lexing (expr/lex.c). Names and excerpts are views of the text. */
void expr_skip_space(struct expr_parser *p);
bool expr_looking_at(const struct expr_parser *p, const char *word);
bool expr_accept(struct expr_parser *p, const char *word);      /* after white space */
bool expr_accept_word(struct expr_parser *p, const char *word); /* not as a part of a longer name */
bool expr_name_byte(const struct expr_parser *p, char c, bool first);
struct str expr_take_name(struct expr_parser *p);
struct expr *expr_parse_number(struct expr_parser *p);
bool expr_parse_string(struct expr_parser *p, struct str *out);
/* Holds at most 120 bytes, safe to print. */
struct excerpt {
  char text[128];
};
struct excerpt expr_excerpt(const char *text, size_t n);
struct excerpt
expr_found(const struct expr_parser *p); /* what stands at the cursor, or "the end" */
/* Returns the nearest of `names` (NULL-terminated), or NULL. */
const char *expr_nearest(struct str word, const char *const *names);

struct expr *expr_parse_or(struct expr_parser *p); /* expr.c */
bool expr_need_condition(struct expr_parser *p, const struct expr *e);
struct expr *
expr_parse_operand(struct expr_parser *p); /* expr/ref.c: literals, references, calls */
struct expr *expr_parse_call(struct expr_parser *p, const struct function *function, size_t at,
                             struct expr *receiver); /* expr/call.c: behind the ( */

#endif
