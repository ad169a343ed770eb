/* expr.h - expressions over a JSON value: parsed once, then evaluated any number of times. There
 * are two dialects of one grammar: the inside of a workflow's when(...), and invariants, which say
 * what a schema cannot: how the fields of one value relate.
 *
 *   expr = expr_parse(&arena, text, n, EXPR_INVARIANT, &error);    NULL: error says where and why
 *   switch (expr_eval(expr, value, &error)) { ... }                 or expr_explain, see there
 *
 * No I/O and no clock. Depth, size, work and memory are bounded. An expression never changes once
 * parsed and may be shared between threads.
 *
 * BOTH DIALECTS Clauses joined by && and then ||; `!` before a clause (`!a == b` is `!(a == b)`);
 * parentheses. A clause is true, false, a reference or call that is true or false when it is
 * evaluated, or A op B with == != >= <= > <. Evaluation stops as soon as the result is known.
 * Literals: null, true, false, numbers, "texts" with \" and \\. References: a name, then .name,
 * [index], ["any name"], .length (characters of a text, items of a list). Applied to a list, .name
 * gives the list of that member of each item. Only a value's own members count. contains(list,
 * value); exists(list, condition on item); is_date(x): true for a text that is an RFC 3339 date or
 * date-time. Equality converts nothing.
 *
 * EXPR_WHEN
 * A name may contain '-'. The root names are exit, last_exit, iteration, movement_iteration,
 * changed (a number), files (a list of {path, added, removed}), tests.passed and its like,
 * checks.MOVEMENT.exit and its like, and structured.MOVEMENT.FIELD. A movement with children has
 * votes.LABEL too (how many got it), and parts, a list of {name, label} in their order. The
 * operands are literals and references; numbers have 15 digits at most. < <= > >= need numbers,
 * nothing else. A missing reference is an error, never false.
 *
 * EXPR_INVARIANT: all of that, and
 *   names      members of the checked value; $ (or root, unless there is a member root) is the
 *              value itself: total, $.total, root.total, address.zip, items[0], items[-1] (the
 *              last), ["odd name"]
 *   []         each item: items[].price, orders[].lines[].price (one flat list); items.price and
 *              items[*].price are the same as items[].price
 *   numbers    + - * / % and unary minus; * / % bind tighter than + -, which bind tighter than the
 *              comparisons. / does not cut (7 / 2 is 3.5), % has the sign of its left side
 *   order      < <= > >= compare two numbers or two texts. Texts that are both RFC 3339 dates or
 *              date-times (a date is its first instant in UTC) compare as instants, with == and !=
 *              too; other texts by code point
 *   in         x in [1, 2], x in list, "part" in text, "name" in object; also: x not in ...
 *   text       "..." or '...', escapes \" \' \\ \n \t \r \/ \uXXXX; r"..." takes \ as it is;
 *              + joins two texts
 *   lists      [a, b, ...]
 *   quantors   all(list, condition), any, none, one; in the condition names are
 *              members of the item, item (or @) is the item itself, $ the whole value. With a name
 *              between, names keep their meaning: all(items, i, i.price <= limit). every is
 *              all; exists and some are any; exists_one is one
 *   totals     sum(list), avg, min, max, and of an expression on each item: sum(items, price * n).
 *              count(list), count(list, condition). Of nothing: sum and count are 0, all and none
 *              true, any and one false, min, max and avg null
 *   functions  length(x) (size, len), contains(text or list, x), unique(list), filter(list,
 *              condition), map(list, expression), has(x),
 *              default(x, otherwise), abs(n), round(n, digits), floor(n), ceil(n),
 *              startsWith(text, x), endsWith(text, x), matches(text, "pattern") (ECMA-262, as
 *              `pattern` in a schema: found anywhere unless anchored); is_date(x) is false of what
 *              is missing, too
 *   calls      f(x, y) may be written x.f(y): items.all(i, i.price > 0)
 *
 * Null: a missing value is null. null equals null and nothing else, has(x) is x != null,
 * is_date(null) is false; every other use of null is an error (EXPR_NO_VALUE), and the invariant
 * does not hold: write `discount == null || discount < price` for a field that may be missing.
 *
 * Numbers: values that are only read compare exactly, as in the validator. Arithmetic is decimal
 * with 34 digits on the numbers as written: 0.1 + 0.2 == 0.3. A result made of integers alone is
 * exact and compares exactly. Any other result compares with a tolerance of one part in 10^15 (so
 * 10 / 3 * 3 == 10, and a total of 0.30000000000000004 is 0.1 + 0.2), which keeps cents exact up to
 * ten trillion. < and > are false within it. */
#ifndef SEGUE_EXPR_EXPR_H
#define SEGUE_EXPR_EXPR_H

#include "base/arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
  EXPR_LENGTH_MAX = 64 * 1024,        /* bytes of an expression */
  EXPR_DEPTH_MAX = 32,                /* nesting */
  EXPR_NODES_MAX = 256,               /* operators, operands and calls */
  EXPR_WORK_MAX = 4000000,            /* steps of one evaluation, each some 50 ns */
  EXPR_MEMORY_MAX = 32 * 1024 * 1024, /* bytes: lists and texts made during one evaluation */
  EXPR_ERROR_BYTES = 600,             /* length of a message, including its NUL */
  EXPR_ITEMS_NAMED = 5                /* items of a list that an explanation names */
};

enum expr_dialect { EXPR_WHEN, EXPR_INVARIANT };

enum expr_code {
  EXPR_OK,
  EXPR_SYNTAX,           /* parsing: not an expression */
  EXPR_LIMIT,            /* parsing: too long, too deep or too many parts */
  EXPR_NO_VALUE,         /* a reference is missing, or null where a value is needed */
  EXPR_UNKNOWN,          /* changed or files, where the value says why they are not known */
  EXPR_WRONG_TYPE,       /* a text where a number is needed, ... */
  EXPR_DIVISION_BY_ZERO, /* also of % */
  EXPR_NUMBER_RANGE,     /* a result beyond 10^6144 */
  EXPR_TOO_COMPLEX       /* a bound on work, memory or pattern effort was hit: no verdict */
};

struct expr_error {
  enum expr_code code;
  size_t offset; /* bytes into the expression: where it is wrong, or the part that failed */
  char text[EXPR_ERROR_BYTES];
};

struct expr;

/* Parses an expression, which lives in `arena`; the text is copied. NULL on error. */
const struct expr *expr_parse(struct arena *arena, const char *text, size_t n,
                              enum expr_dialect dialect, struct expr_error *error);

enum expr_value { EXPR_FALSE, EXPR_TRUE, EXPR_ERROR };

/* `root`: the value, or with EXPR_WHEN an object whose members are the roots; EXPR_WHY among them
 * says why there is no `changed` or no `files`. `error` is set with EXPR_ERROR. */
#define EXPR_WHY "why is not known what changed" /* no name that an expression can have */
enum expr_value expr_eval(const struct expr *expr, const json_t *root, struct expr_error *error);

/* The same and, if it is not true, what a reader needs to mend the value. The strings belong to the
 * caller, for free(); they are NULL after EXPR_TRUE. */
struct expr_finding {
  char *path, *pointer; /* the place that the failing part is about: "$.total", "/total" */
  char *text;           /* "30 is not 25"; with EXPR_ERROR the error's text */
};
enum expr_value expr_explain(const struct expr *expr, const json_t *root,
                             struct expr_finding *finding, struct expr_error *error);

/* Visits every reference that starts at the root, in order, without its indices; for lint. `path`
 * has `n` names, e.g. structured, test, ok. */
void expr_each_ref(const struct expr *expr, void (*fn)(void *ctx, const struct str *path, size_t n),
                   void *ctx);
/* Visits those among them that must be true or false themselves. */
void expr_each_condition(const struct expr *expr,
                         void (*fn)(void *ctx, const struct str *path, size_t n), void *ctx);

#endif
