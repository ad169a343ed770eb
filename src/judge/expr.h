/* expr.h - the expression inside when(...): parsed once, evaluated on a JSON environment.
 *
 * Grammar (facts of the workflow format): OR of ANDs of clauses; a clause is true | false | a
 * reference (which must be boolean when it is evaluated) | A op B with == != >= <= > < |
 * contains(list-ref, value) | exists(list-ref, item.x == v && contains(item.y, v)). `!` and
 * parentheses are allowed around clauses. Operands: true, false, null, -?digits(.digits),
 * "string" with \" and \\ only, references. A reference is a name and then .name, [index],
 * .length; over an array .name projects. Only a value's own members count. Ordering operators need
 * numbers: a non-number literal is a parse error, a non-number value an evaluation error. Equality
 * is strict (no conversion). A missing reference is an evaluation error, never false.
 *
 * Roots a workflow may use: exit, iteration, movement_iteration, structured.MOVEMENT.FIELD. */
#ifndef SEGUE_JUDGE_EXPR_H
#define SEGUE_JUDGE_EXPR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

struct expr;

enum expr_value { EXPR_FALSE, EXPR_TRUE, EXPR_ERROR };

/* NULL on error: err->text says what is wrong and what to write, *error_offset is the byte in
 * `text` where. The result lives in the arena. Bounded by LIMIT_EXPR_DEPTH and _NODE_COUNT. */
struct expr *expr_parse(struct arena *arena, struct str text, size_t *error_offset,
                        struct err *err);

/* env: an object whose members are the roots. EXPR_ERROR sets err. */
enum expr_value expr_eval(const struct expr *expr, const json_t *env, struct err *err);

/* Every reference in it, as written: for lint. `path` has `n` names, e.g. structured, test, ok. */
void expr_each_ref(const struct expr *expr, void (*fn)(void *ctx, const struct str *path, size_t n),
                   void *ctx);

#endif
