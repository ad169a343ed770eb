/* Holds the table of functions, and parses their calls. */
#include "expr/node.h"
#include "schema/pattern.h"

#include <string.h>

static const struct function functions[] = {
    {"all", FN_ALL, 1, 2, true, true, true, "all(list, condition)"},
    {"every", FN_ALL, 1, 2, true, true, true, "all(list, condition)"},
    {"any", FN_ANY, 1, 2, true, true, true, "any(list, condition)"},
    {"exists", FN_ANY, 1, 2, true, true, true, "exists(list, condition)"},
    {"some", FN_ANY, 1, 2, true, true, true, "any(list, condition)"},
    {"none", FN_NO, 1, 2, true, true, true, "none(list, condition)"},
    {"one", FN_ONE, 1, 2, true, true, true, "one(list, condition)"},
    {"exists_one", FN_ONE, 1, 2, true, true, true, "one(list, condition)"},
    {"sum", FN_SUM, 1, 2, true, false, false, "sum(list) or sum(list, number of each)"},
    {"avg", FN_AVG, 1, 2, true, false, false, "avg(list) or avg(list, number of each)"},
    {"min", FN_MIN, 1, 2, true, false, false, "min(list) or min(list, value of each)"},
    {"max", FN_MAX, 1, 2, true, false, false, "max(list) or max(list, value of each)"},
    {"count", FN_COUNT, 1, 2, true, true, false, "count(list) or count(list, condition)"},
    {"length", FN_LENGTH, 1, 1, false, false, false, "length(text or list)"},
    {"size", FN_LENGTH, 1, 1, false, false, false, "length(text or list)"},
    {"len", FN_LENGTH, 1, 1, false, false, false, "length(text or list)"},
    {"contains", FN_CONTAINS, 2, 2, false, false, true, "contains(list, value)"},
    {"unique", FN_UNIQUE, 1, 2, true, false, true, "unique(list) or unique(list, value of each)"},
    {"filter", FN_FILTER, 2, 2, true, true, false, "filter(list, condition)"},
    {"map", FN_MAP, 2, 2, true, false, false, "map(list, expression)"},
    {"has", FN_HAS, 1, 1, false, false, true, "has(reference)"},
    {"default", FN_DEFAULT, 2, 2, false, false, true, "default(reference, otherwise)"},
    {"abs", FN_ABS, 1, 1, false, false, false, "abs(number)"},
    {"round", FN_ROUND, 1, 2, false, false, false, "round(number) or round(number, digits)"},
    {"floor", FN_FLOOR, 1, 1, false, false, false, "floor(number)"},
    {"ceil", FN_CEIL, 1, 1, false, false, false, "ceil(number)"},
    {"startsWith", FN_STARTS, 2, 2, false, false, true, "startsWith(text, start)"},
    {"starts_with", FN_STARTS, 2, 2, false, false, true, "startsWith(text, start)"},
    {"endsWith", FN_ENDS, 2, 2, false, false, true, "endsWith(text, end)"},
    {"ends_with", FN_ENDS, 2, 2, false, false, true, "endsWith(text, end)"},
    {"matches", FN_MATCHES, 2, 2, false, false, true, "matches(text, \"pattern\")"},
    {"is_date", FN_IS_DATE, 1, 1, false, false, true, "is_date(text)"},
    {"isDate", FN_IS_DATE, 1, 1, false, false, true, "is_date(text)"},
};

const struct function *expr_function(const char *name, size_t n) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (str_eq_c((struct str){name, n}, functions[i].name))
      return &functions[i];
  return NULL;
}

bool expr_in_when(const struct function *function) {
  static const char *const names[] = {"contains", "exists", "is_date", NULL};
  for (size_t i = 0; names[i]; i++)
    if (strcmp(function->name, names[i]) == 0)
      return true;
  return false;
}

const char *const *expr_function_names(void) {
  static const char *const names[] = {
      "all",        "any",      "exists",  "none",    "one",      "sum",    "avg",
      "min",        "max",      "count",   "length",  "contains", "unique", "filter",
      "map",        "has",      "default", "abs",     "round",    "floor",  "ceil",
      "startsWith", "endsWith", "matches", "is_date", NULL};
  return names;
}

/* Takes a bare name and a comma after it: x in all(list, x, x.price > 0). */
static struct str take_variable(struct expr_parser *p) {
  expr_skip_space(p);
  size_t from = p->at;
  struct str name = expr_take_name(p);
  if (name.n > 0 && expr_accept(p, ","))
    return name;
  p->at = from;
  return (struct str){0};
}

static struct expr *parse_item_argument(struct expr_parser *p, const struct function *function) {
  struct items_scope scope = {0};
  if (p->scope_count >= EXPR_DEPTH_MAX)
    return expr_fail(p, EXPR_LIMIT, p->at, "the expression is nested more than %d deep",
                     EXPR_DEPTH_MAX);
  if (p->dialect == EXPR_INVARIANT)
    scope.variable = take_variable(p);
  p->scopes[p->scope_count++] = scope;
  struct expr *e = expr_parse_or(p);
  p->scope_count--;
  return e && function->condition && !expr_need_condition(p, e) ? NULL : e;
}

static struct expr *parse_argument(struct expr_parser *p, const struct function *function,
                                   unsigned index) {
  if (function->on_items && index == 1)
    return parse_item_argument(p, function);
  expr_skip_space(p);
  size_t from = p->at;
  /* In when(...) an argument is a literal or a reference, and a list is a reference. */
  struct expr *e = p->dialect == EXPR_WHEN ? expr_parse_operand(p) : expr_parse_or(p);
  if (e && p->dialect == EXPR_WHEN && index == 0 && e->kind != NODE_REF)
    return expr_fail(p, EXPR_SYNTAX, from,
                     "%s needs a reference%s first, like structured.MOVEMENT.FIELD", function->name,
                     function->id == FN_IS_DATE ? "" : " to a list");
  return e;
}

/* Compiles a pattern for its errors; matching compiles it again, once in an evaluation. */
static bool call_check_pattern(struct expr_parser *p, const struct expr *argument) {
  struct pattern *pattern = NULL;
  struct pattern_error why;
  if (argument->kind != NODE_STRING)
    return expr_fail(p, EXPR_SYNTAX, argument->at,
                     "the pattern of matches must be a text written here, like r\"^[A-Z]+$\"") !=
           NULL;
  if (pattern_compile(argument->string.p, argument->string.n, &pattern, &why) != PATTERN_OK)
    return expr_fail(p, EXPR_SYNTAX, argument->at, "not a regular expression: %s at byte %zu of it",
                     why.text, why.offset) != NULL;
  pattern_free(pattern);
  return true;
}

struct expr *expr_parse_call(struct expr_parser *p, const struct function *function, size_t at,
                             struct expr *receiver) {
  size_t open = p->at;
  unsigned count = 0;
  struct expr *e = expr_node(p, NODE_CALL, at), **last = e ? &e->parts : NULL;
  if (e == NULL)
    return NULL;
  e->function = function;
  if (receiver) {
    *last = receiver;
    last = &receiver->next;
    count++;
  }
  expr_skip_space(p);
  bool ended = p->at < p->n && p->text[p->at] == ')' && p->dialect == EXPR_INVARIANT;
  for (; !ended && count < function->most; count++) {
    if ((*last = parse_argument(p, function, count)) == NULL)
      return NULL;
    last = &(*last)->next;
    if (count + 1u == function->most || !expr_accept(p, ","))
      ended = true;
  }
  if (p->dialect == EXPR_WHEN && count < 2 && function->id != FN_IS_DATE)
    return expr_fail(p, EXPR_SYNTAX, p->at, "%s needs a comma after the list, found %s",
                     function->name, expr_found(p).text);
  if (!expr_accept(p, ")")) {
    if (expr_looking_at(p, ","))
      return expr_fail(p, EXPR_SYNTAX, p->at, "%s takes no more: write %s", function->name,
                       function->needs);
    return expr_fail(p, EXPR_SYNTAX, p->at < p->n ? p->at : open, "%s( has no closing ): found %s",
                     function->name, expr_found(p).text);
  }
  if (count < function->least)
    return expr_fail(p, EXPR_SYNTAX, at, "%s needs more: write %s", function->name,
                     function->needs);
  e->source = (struct str){p->text + at, p->at - at};
  return function->id == FN_MATCHES && !call_check_pattern(p, e->parts->next) ? NULL : e;
}
