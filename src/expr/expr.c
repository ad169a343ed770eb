/* Parses expressions: one function per grammar rule, NULL once an error is set. */
#include "expr/node.h"

#include <assert.h>

static bool says_true(const struct expr *e) {
  switch (e->kind) {
  case NODE_OR:
  case NODE_AND:
  case NODE_NOT:
  case NODE_BOOL:
  case NODE_REF:
  case NODE_COMPARE:
    return true;
  case NODE_CALL:
    return e->function->says_true;
  case NODE_NULL:
  case NODE_NUMBER:
  case NODE_STRING:
  case NODE_LIST:
  case NODE_BINARY:
  case NODE_NEGATE:
    return false;
  }
  return false;
}

bool expr_need_condition(struct expr_parser *p, const struct expr *e) {
  if (says_true(e))
    return true;
  return expr_fail(p, EXPR_SYNTAX, e->at,
                   "a number, text or null alone is neither true nor false: compare it, "
                   "like %s == 0",
                   p->dialect == EXPR_WHEN ? "exit" : "total") != NULL;
}

static struct expr *binary(struct expr_parser *p, enum node_kind kind, enum node_op op,
                           struct expr *left, struct expr *right) {
  struct expr *e = expr_node(p, kind, left->at);
  if (e == NULL)
    return NULL;
  e->op = op;
  e->parts = left;
  left->next = right;
  e->source = (struct str){p->text + left->at, p->at - left->at};
  return e;
}

/* --- calculating --- */

static struct expr *parse_unary(struct expr_parser *p) {
  expr_skip_space(p);
  size_t from = p->at;
  if (p->dialect == EXPR_WHEN || !expr_looking_at(p, "-"))
    return expr_parse_operand(p);
  if (p->depth >= EXPR_DEPTH_MAX)
    return expr_fail(p, EXPR_LIMIT, from, "the expression is nested more than %d deep",
                     EXPR_DEPTH_MAX);
  p->at++;
  p->depth++;
  struct expr *inner = parse_unary(p), *e = inner ? expr_node(p, NODE_NEGATE, from) : NULL;
  p->depth--;
  if (e) {
    e->parts = inner;
    e->source = (struct str){p->text + from, p->at - from};
  }
  return e;
}

static bool accept_calculation(struct expr_parser *p, const char *ops, enum node_op first,
                               enum node_op *op) {
  expr_skip_space(p);
  const char *at = p->at < p->n && p->text[p->at] ? strchr(ops, p->text[p->at]) : NULL;
  if (at == NULL || p->dialect == EXPR_WHEN)
    return false;
  *op = (enum node_op)(first + (at - ops));
  p->at++;
  return true;
}

static struct expr *parse_product(struct expr_parser *p) {
  struct expr *left = parse_unary(p);
  enum node_op op;
  while (left && accept_calculation(p, "*/%", CALC_MULTIPLY, &op)) {
    struct expr *right = parse_unary(p);
    left = right ? binary(p, NODE_BINARY, op, left, right) : NULL;
  }
  return left;
}

static struct expr *expr_parse_sum(struct expr_parser *p) {
  struct expr *left = parse_product(p);
  enum node_op op;
  while (left && accept_calculation(p, "+-", CALC_ADD, &op)) {
    struct expr *right = parse_product(p);
    left = right ? binary(p, NODE_BINARY, op, left, right) : NULL;
  }
  return left;
}

/* --- comparing --- */

static bool accept_comparison(struct expr_parser *p, enum node_op *op) {
  static const struct {
    const char *word;
    enum node_op op;
  } ops[] = {{"==", CMP_EQ}, {"!=", CMP_NE}, {">=", CMP_GE},
             {"<=", CMP_LE}, {">", CMP_GT},  {"<", CMP_LT}};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (expr_accept(p, ops[i].word)) {
      *op = ops[i].op;
      return true;
    }
  if (p->dialect == EXPR_WHEN)
    return false;
  size_t from = p->at;
  *op = expr_accept_word(p, "not") ? CMP_NOT_IN : CMP_IN;
  if (expr_accept_word(p, "in"))
    return true;
  p->at = from;
  return false;
}

static bool has_order(const struct expr_parser *p, const struct expr *e) {
  switch (e->kind) {
  case NODE_NUMBER:
  case NODE_REF:
    return true;
  case NODE_STRING:
  case NODE_BINARY:
  case NODE_NEGATE:
    return p->dialect == EXPR_INVARIANT;
  case NODE_CALL:
    return !e->function->says_true;
  case NODE_OR:
  case NODE_AND:
  case NODE_NOT:
  case NODE_NULL:
  case NODE_BOOL:
  case NODE_LIST:
  case NODE_COMPARE:
    return false;
  }
  return false;
}

static struct expr *parse_compare(struct expr_parser *p) {
  enum node_op op;
  struct expr *left = expr_parse_sum(p);
  if (left == NULL)
    return NULL;
  expr_skip_space(p);
  size_t op_at = p->at;
  if (!accept_comparison(p, &op)) {
    if (expr_looking_at(p, "="))
      return expr_fail(p, EXPR_SYNTAX, op_at, "= does not compare: write ==");
    return p->dialect == EXPR_WHEN && !expr_need_condition(p, left) ? NULL : left;
  }
  if (expr_looking_at(p, "="))
    return expr_fail(p, EXPR_SYNTAX, op_at, "there is no operator with one more =: write == or !=");
  struct expr *right = expr_parse_sum(p);
  if (right == NULL)
    return NULL;
  if (op >= CMP_GE && op <= CMP_LT && (!has_order(p, left) || !has_order(p, right)))
    return expr_fail(p, EXPR_SYNTAX, has_order(p, left) ? right->at : left->at,
                     "< <= > >= compare %s: use == or != here",
                     p->dialect == EXPR_WHEN ? "numbers only" : "two numbers or two texts");
  return binary(p, NODE_COMPARE, op, left, right);
}

/* --- conditions --- */

/* Parses a call in when(...), where it is a clause, never an operand. */
static struct expr *parse_when_call(struct expr_parser *p, bool *is_call) {
  size_t from = p->at;
  struct str name = expr_take_name(p);
  const struct function *function = expr_function(name.p, name.n);
  *is_call = function != NULL && expr_in_when(function) && expr_accept(p, "(");
  if (*is_call)
    return expr_parse_call(p, function, from, NULL);
  p->at = from;
  return NULL;
}

static struct expr *parse_clause(struct expr_parser *p) {
  expr_skip_space(p);
  size_t from = p->at;
  if (p->depth >= EXPR_DEPTH_MAX)
    return expr_fail(p, EXPR_LIMIT, from,
                     "the expression is nested more than %d deep: split it into several %s",
                     EXPR_DEPTH_MAX, p->dialect == EXPR_WHEN ? "rules" : "invariants");
  p->depth++;
  bool call = false;
  struct expr *e = p->dialect == EXPR_WHEN ? parse_when_call(p, &call) : NULL;
  if (call) {
    /* it was parsed, or an error is set */
  } else if (p->dialect == EXPR_WHEN && expr_accept(p, "(")) {
    e = expr_parse_or(p);
    if (e && !expr_accept(p, ")"))
      e = expr_fail(p, EXPR_SYNTAX, from, "( has no closing ): add it");
  } else if (expr_accept(p, "!")) {
    e = expr_node(p, NODE_NOT, from);
    if (e && ((e->parts = parse_clause(p)) == NULL || !expr_need_condition(p, e->parts)))
      e = NULL;
    if (e)
      e->source = (struct str){p->text + from, p->at - from};
  } else {
    e = parse_compare(p);
  }
  p->depth--;
  return e;
}

/* Parses one or more `below` with `word` in between: a node of `kind` only if there are two. */
static struct expr *parse_chain(struct expr_parser *p, struct expr *(*below)(struct expr_parser *),
                                const char *word, enum node_kind kind) {
  struct expr *first = below(p), *last = first;
  struct expr *chain = NULL;
  while (last && expr_accept(p, word)) {
    if (chain == NULL) {
      if (!expr_need_condition(p, first) || (chain = expr_node(p, kind, first->at)) == NULL)
        return NULL;
      chain->parts = first;
    }
    last->next = below(p);
    last = last->next;
    if (last && !expr_need_condition(p, last))
      return NULL;
  }
  if (last == NULL || chain == NULL)
    return last;
  chain->source = (struct str){p->text + chain->at, p->at - chain->at};
  return chain;
}

static struct expr *parse_and(struct expr_parser *p) {
  return parse_chain(p, parse_clause, "&&", NODE_AND);
}

struct expr *expr_parse_or(struct expr_parser *p) {
  return parse_chain(p, parse_and, "||", NODE_OR);
}

static struct expr *parse_all(struct expr_parser *p) {
  expr_skip_space(p);
  if (p->at == p->n)
    return expr_fail(p, EXPR_SYNTAX, 0, "the expression is empty: write a condition like %s",
                     p->dialect == EXPR_WHEN ? "exit == 0" : "total >= 0");
  p->at = 0;
  struct expr *e = expr_parse_or(p);
  expr_skip_space(p);
  if (e && p->at < p->n)
    return expr_fail(p, EXPR_SYNTAX, p->at, "unexpected %s: put && or || between conditions",
                     expr_found(p).text);
  return e && expr_need_condition(p, e) ? e : NULL;
}

const struct expr *expr_parse(struct arena *arena, const char *text, size_t n,
                              enum expr_dialect dialect, struct expr_error *error) {
  assert(arena != NULL && text != NULL);
  assert(error != NULL);
  struct expr_error unused;
  assert(arena != NULL && (text != NULL || n == 0));
  struct expr_parser p = {.arena = arena, .dialect = dialect, .error = error ? error : &unused};
  p.error->code = EXPR_OK;
  p.error->offset = 0;
  p.error->text[0] = '\0';
  if (n > EXPR_LENGTH_MAX)
    return expr_fail(&p, EXPR_LIMIT, 0, "the expression is longer than %d KiB",
                     EXPR_LENGTH_MAX / 1024);
  p.text = arena_strndup(arena, text, n);
  p.n = n;
  return parse_all(&p);
}

void expr_each_ref(const struct expr *expr, void (*fn)(void *ctx, const struct str *path, size_t n),
                   void *ctx) {
  assert(fn != NULL);
  if (expr->kind == NODE_REF && expr->start == REF_NAME && expr->level == 0) {
    struct str names[EXPR_NODES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < expr->ref_count; i++)
      if (expr->ref[i].kind == PART_NAME)
        names[n++] = expr->ref[i].name;
    fn(ctx, names, n);
  }
  for (const struct expr *part = expr->parts; part; part = part->next)
    expr_each_ref(part, fn, ctx);
}
