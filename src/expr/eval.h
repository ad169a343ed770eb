/* eval.h - evaluates an expression; internal. Values are views of the JSON, or live in the
 * evaluation's memory, which is freed at its end. A function that fails returns false with x->error
 * set. */
#ifndef SEGUE_EXPR_EVAL_H
#define SEGUE_EXPR_EVAL_H

#include "expr/node.h"
#include "schema/validate.h"

enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_TEXT, VALUE_LIST, VALUE_OBJECT };

struct value {
  enum value_kind kind;
  bool boolean;
  struct number number;
  struct str text;
  const json_t *json;          /* OBJECT; a LIST that is in the JSON, else NULL */
  const json_t *const *picked; /* LIST: members of what stands in the JSON, or ... */
  const struct value *made;    /* ... values made here */
  size_t n;                    /* LIST: items */
};

/* The value whose members names refer to: the whole value at level 0, then the item of each call on
 * items. */
struct eval_frame {
  const struct eval_frame *outer;
  struct value value;
  unsigned level;
  bool placed;                   /* the path is known */
  const struct path_step *place; /* NULL: "$" */
};

struct compiled_pattern {
  struct compiled_pattern *next;
  const struct expr *node;
  struct pattern *pattern;
};

enum { EVAL_LEVELS = EXPR_DEPTH_MAX + 2 };

struct eval {
  enum expr_dialect dialect;
  struct expr_error *error;
  struct arena arena;
  size_t memory;
  int64_t work;
  struct compiled_pattern *patterns;
  struct pattern_scratch scratch;
  size_t failed_item[EVAL_LEVELS]; /* after an error: of the call on items at that level */
  const struct expr *failed_call;  /* the call whose item itself is wrong */
};

void *expr_eval_get(struct eval *x, size_t bytes); /* zeroed; NULL with the error set */
bool expr_eval_work(struct eval *x, const struct expr *at, size_t steps);

bool expr_get(struct eval *x, const struct eval_frame *f, const struct expr *e, struct value *out);
/* Evaluates to a value that must be true or false. */
bool expr_get_condition(struct eval *x, const struct eval_frame *f, const struct expr *e,
                        bool *out);
const struct eval_frame *expr_frame(const struct eval_frame *f, unsigned level);
/* The frame where a reference starts, unless that is another expression; *from is the first of its
 * parts to go from there. */
const struct eval_frame *expr_base(const struct eval_frame *f, const struct expr *e, size_t *from);

struct value expr_value_of(const json_t *json); /* NULL gives VALUE_NULL */
struct value expr_list_at(const struct value *list, size_t i);
void expr_value_text(const struct value *value, struct buf *out); /* shortened */

struct duplicate {
  bool found;
  size_t first, second;
  struct value value;
};
bool expr_find_duplicate(struct eval *x, const struct eval_frame *f, const struct expr *e,
                         const struct value *list, struct duplicate *out);

#endif
