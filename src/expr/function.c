/* Evaluates calls: quantors, totals, functions. */
#include "expr/eval.h"

static struct value number_value(struct number number) {
  return (struct value){.kind = VALUE_NUMBER, .number = number};
}

static bool get_items(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      struct value *out) {
  const struct expr *list = e->parts;
  struct excerpt shown = expr_excerpt(list->source.p, list->source.n);
  if (!expr_get(x, f, list, out))
    return false;
  if (out->kind == VALUE_LIST)
    return true;
  if (out->kind == VALUE_NULL && x->dialect == EXPR_INVARIANT)
    return expr_eval_fail(x, EXPR_NO_VALUE, list, "%s is missing or null: %s needs a list",
                          shown.text, e->function->name);
  return expr_eval_fail(x, EXPR_WRONG_TYPE, list, "%s is %s: %s needs a list", shown.text,
                        x->dialect == EXPR_WHEN ? expr_kind_name(out) : expr_described(out).text,
                        e->function->name);
}

bool expr_get_of_item(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      const struct value *list, size_t i, struct value *out) {
  struct eval_frame inner = {.outer = f, .value = expr_list_at(list, i), .level = f->level + 1};
  x->failed_item[inner.level] = i;
  if (!expr_eval_work(x, e, 1))
    return false;
  if (e->parts->next)
    return expr_get(x, &inner, e->parts->next, out);
  *out = inner.value;
  return true;
}

/* Reports a fault of item i: "items[].price is a text at item 2: sum needs numbers". */
static bool bad_item(struct eval *x, const struct expr *e, size_t i, const struct value *v,
                     const char *needs) {
  const struct expr *what = e->parts->next ? e->parts->next : e->parts;
  struct excerpt shown = expr_excerpt(what->source.p, what->source.n);
  x->failed_call = e->parts->next ? NULL : e;
  return expr_eval_fail(x, v->kind == VALUE_NULL ? EXPR_NO_VALUE : EXPR_WRONG_TYPE, what,
                        "%s is %s at item %zu: %s needs %s", shown.text,
                        v->kind == VALUE_NULL ? "missing or null" : expr_described(v).text, i,
                        e->function->name, needs);
}

static bool quantor(struct eval *x, const struct eval_frame *f, const struct expr *e,
                    struct value *out) {
  enum function_id id = e->function->id;
  struct value list, v;
  size_t held = 0;
  if (!get_items(x, f, e, &list))
    return false;
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (v.kind != VALUE_BOOL)
      return bad_item(x, e, i, &v, "true or false");
    held += v.boolean;
    if ((id == FN_ANY && v.boolean) || (id == FN_NO && v.boolean) || (id == FN_ALL && !v.boolean))
      break; /* decided */
  }
  if (id == FN_COUNT)
    *out = number_value(number_integer((json_int_t)held));
  else if (id == FN_ALL)
    out->boolean = held == list.n;
  else if (id == FN_ANY)
    out->boolean = held > 0;
  else
    out->boolean = held == (id == FN_ONE);
  return true;
}

static bool range_error(struct eval *x, const struct expr *e) {
  return expr_eval_fail(x, EXPR_NUMBER_RANGE, e, "%s is beyond what a number can be here",
                        expr_excerpt(e->source.p, e->source.n).text);
}

static bool total(struct eval *x, const struct eval_frame *f, const struct expr *e,
                  struct value *out) {
  struct number sum = number_integer(0), n;
  struct value list, v;
  if (!get_items(x, f, e, &list))
    return false;
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (v.kind != VALUE_NUMBER)
      return bad_item(x, e, i, &v, "numbers");
    if (number_add(&sum, &v.number, &n) != NUMBER_OK)
      return range_error(x, e);
    sum = n;
  }
  *out = number_value(sum);
  if (e->function->id == FN_SUM)
    return true;
  if (list.n == 0) {
    out->kind = VALUE_NULL;
    return true;
  }
  n = number_integer((json_int_t)list.n);
  return number_divide(&sum, &n, &out->number) == NUMBER_OK || range_error(x, e);
}

static bool extreme(struct eval *x, const struct eval_frame *f, const struct expr *e,
                    struct value *out) {
  const struct expr *what = e->parts->next ? e->parts->next : e->parts;
  struct value list, v;
  int order = 0;
  if (!get_items(x, f, e, &list))
    return false;
  out->kind = VALUE_NULL;
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (v.kind != VALUE_NUMBER && v.kind != VALUE_TEXT)
      return bad_item(x, e, i, &v, "numbers or texts");
    if (i > 0 && v.kind != out->kind)
      return bad_item(x, e, i, &v, "all numbers or all texts");
    if (i > 0 && !expr_order(x, e, what, &v, what, out, &order))
      return false;
    if (i == 0 || (order != 0 && (order > 0) == (e->function->id == FN_MAX)))
      *out = v;
  }
  return true;
}

static bool unique(struct eval *x, const struct eval_frame *f, const struct expr *e,
                   struct value *out) {
  struct value list;
  struct duplicate duplicate;
  if (!get_items(x, f, e, &list) || !expr_find_duplicate(x, f, e, &list, &duplicate))
    return false;
  out->boolean = !duplicate.found;
  return true;
}

/* Makes a list: for filter, the items that fulfil the condition; for map, the expression on each
 * item. */
static bool derived(struct eval *x, const struct eval_frame *f, const struct expr *e,
                    struct value *out) {
  bool map = e->function->id == FN_MAP;
  struct value list, v, *made = NULL;
  const json_t **picked = NULL;
  if (!get_items(x, f, e, &list))
    return false;
  if (map || list.made)
    made = expr_eval_get(x, (list.n + 1) * sizeof *made);
  else
    picked = expr_eval_get(x, (list.n + 1) * sizeof *picked);
  if (made == NULL && picked == NULL)
    return false;
  *out = (struct value){.kind = VALUE_LIST, .picked = picked, .made = made};
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (!map && v.kind != VALUE_BOOL)
      return bad_item(x, e, i, &v, "true or false");
    if (!map && !v.boolean)
      continue;
    if (picked)
      picked[out->n++] = list.picked ? list.picked[i] : json_array_get(list.json, i);
    else
      made[out->n++] = map ? v : list.made[i];
  }
  return true;
}

static bool length(struct eval *x, const struct expr *e, const struct value *v, struct value *out) {
  const struct expr *what = e->parts;
  struct excerpt shown = expr_excerpt(what->source.p, what->source.n);
  size_t n = v->n;
  switch (v->kind) {
  case VALUE_TEXT:
    n = utf8_count(v->text.p, v->text.n);
    break;
  case VALUE_OBJECT:
    n = json_object_size(v->json);
    break;
  case VALUE_LIST:
    break;
  case VALUE_NULL:
    return expr_eval_fail(x, EXPR_NO_VALUE, what, "%s is missing or null: it has no length",
                          shown.text);
  case VALUE_BOOL:
  case VALUE_NUMBER:
    return expr_eval_fail(x, EXPR_WRONG_TYPE, what, "%s is %s: it has no length", shown.text,
                          expr_described(v).text);
  }
  *out = number_value(number_integer((json_int_t)n));
  return expr_eval_work(x, e, v->kind == VALUE_TEXT ? v->text.n / 64 : 1);
}

static bool need(struct eval *x, const struct expr *e, const struct expr *what,
                 const struct value *v, enum value_kind kind) {
  struct excerpt shown = expr_excerpt(what->source.p, what->source.n);
  if (v->kind == kind)
    return true;
  const char *needs = kind == VALUE_NUMBER ? "a number" : "a text";
  if (v->kind == VALUE_NULL)
    return expr_eval_fail(x, EXPR_NO_VALUE, what, "%s is missing or null: %s needs %s", shown.text,
                          e->function->name, needs);
  return expr_eval_fail(x, EXPR_WRONG_TYPE, what, "%s is %s: %s needs %s", shown.text,
                        expr_described(v).text, e->function->name, needs);
}

static bool rounded(struct eval *x, const struct expr *e, const struct value *v,
                    const struct value *digits, struct value *out) {
  enum { PLACES_MAX = 30 };
  enum number_rounding how = ROUND_HALF_AWAY;
  int places = 0;
  if (e->function->id == FN_FLOOR)
    how = ROUND_DOWN;
  else if (e->function->id == FN_CEIL)
    how = ROUND_UP;
  if (!need(x, e, e->parts, v, VALUE_NUMBER))
    return false;
  if (e->parts->next) {
    const struct number *n = &digits->number;
    if (!need(x, e, e->parts->next, digits, VALUE_NUMBER))
      return false;
    if (n->kind != NUMBER_INTEGER || n->integer < -PLACES_MAX || n->integer > PLACES_MAX)
      return expr_eval_fail(x, EXPR_WRONG_TYPE, e->parts->next,
                            "the digits of round are an integer from -%d to %d", PLACES_MAX,
                            PLACES_MAX);
    places = (int)n->integer;
  }
  *out = number_value(number_round(&v->number, places, how));
  return true;
}

static bool compiled(struct eval *x, const struct expr *e, const struct pattern **out) {
  const struct expr *text = e->parts->next;
  for (struct compiled_pattern *p = x->patterns; p; p = p->next)
    if (p->node == e) {
      *out = p->pattern;
      return true;
    }
  struct compiled_pattern *p = expr_eval_get(x, sizeof *p);
  if (p == NULL)
    return false;
  if (pattern_compile(text->string.p, text->string.n, &p->pattern, NULL) != PATTERN_OK)
    BUG("a pattern that was sound when parsed");
  p->node = e;
  p->next = x->patterns;
  x->patterns = p;
  *out = p->pattern;
  return true;
}

static bool text_matches(struct eval *x, const struct expr *e, const struct value *v,
                         struct value *out) {
  const struct pattern *pattern = NULL;
  if (!compiled(x, e, &pattern))
    return false;
  uint64_t before = x->scratch.cost;
  enum pattern_result result = pattern_match(pattern, &x->scratch, v->text.p, v->text.n);
  if (result == PATTERN_TOO_COMPLEX)
    return expr_eval_fail(x, EXPR_TOO_COMPLEX, e, "the pattern takes too many steps on this text");
  out->boolean = result == PATTERN_MATCH;
  return expr_eval_work(x, e, (size_t)((x->scratch.cost - before) / 2));
}

static bool on_texts(struct eval *x, const struct expr *e, const struct value *a,
                     const struct value *b, struct value *out) {
  struct str text = a->text, piece = b->text;
  if (!need(x, e, e->parts, a, VALUE_TEXT) || !need(x, e, e->parts->next, b, VALUE_TEXT))
    return false;
  if (e->function->id == FN_MATCHES)
    return text_matches(x, e, a, out);
  size_t from = e->function->id == FN_ENDS && text.n > piece.n ? text.n - piece.n : 0;
  out->boolean = text.n >= piece.n && memcmp(text.p + from, piece.p, piece.n) == 0;
  return expr_eval_work(x, e, piece.n / 64);
}

/* Calls functions of one or two values, which are evaluated first. */
static bool on_values(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      struct value *out) {
  struct value a, b = {0};
  if (!expr_get(x, f, e->parts, &a))
    return false;
  if (e->function->id == FN_DEFAULT) {
    *out = a;
    return a.kind != VALUE_NULL || expr_get(x, f, e->parts->next, out);
  }
  if (e->parts->next && !expr_get(x, f, e->parts->next, &b))
    return false;
  switch (e->function->id) {
  case FN_CONTAINS:
    return expr_contains(x, e, e->parts, &a, &b, &out->boolean);
  case FN_HAS:
    out->boolean = a.kind != VALUE_NULL;
    return true;
  case FN_LENGTH:
    return length(x, e, &a, out);
  case FN_ABS:
    if (!need(x, e, e->parts, &a, VALUE_NUMBER))
      return false;
    *out = number_value(number_magnitude(&a.number));
    return true;
  case FN_ROUND:
  case FN_FLOOR:
  case FN_CEIL:
    return rounded(x, e, &a, &b, out);
  case FN_STARTS:
  case FN_ENDS:
  case FN_MATCHES:
    return on_texts(x, e, &a, &b, out);
  case FN_IS_DATE: {
    struct instant instant;
    out->boolean = a.kind == VALUE_TEXT && expr_instant(a.text, &instant);
    return expr_eval_work(x, e, a.kind == VALUE_TEXT ? a.text.n / 64 : 1);
  }
  case FN_DEFAULT:
  case FN_ALL:
  case FN_ANY:
  case FN_NO:
  case FN_ONE:
  case FN_SUM:
  case FN_AVG:
  case FN_MIN:
  case FN_MAX:
  case FN_COUNT:
  case FN_UNIQUE:
  case FN_FILTER:
  case FN_MAP:
    break;
  }
  return true;
}

bool expr_get_call(struct eval *x, const struct eval_frame *f, const struct expr *e,
                   struct value *out) {
  switch (e->function->id) {
  case FN_COUNT:
    if (e->parts->next == NULL) {
      struct value list;
      if (!get_items(x, f, e, &list))
        return false;
      *out = number_value(number_integer((json_int_t)list.n));
      return true;
    }
    return quantor(x, f, e, out);
  case FN_ALL:
  case FN_ANY:
  case FN_NO:
  case FN_ONE:
    return quantor(x, f, e, out);
  case FN_SUM:
  case FN_AVG:
    return total(x, f, e, out);
  case FN_MIN:
  case FN_MAX:
    return extreme(x, f, e, out);
  case FN_UNIQUE:
    return unique(x, f, e, out);
  case FN_FILTER:
  case FN_MAP:
    return derived(x, f, e, out);
  case FN_LENGTH:
  case FN_CONTAINS:
  case FN_HAS:
  case FN_DEFAULT:
  case FN_ABS:
  case FN_ROUND:
  case FN_FLOOR:
  case FN_CEIL:
  case FN_STARTS:
  case FN_ENDS:
  case FN_MATCHES:
  case FN_IS_DATE:
    return on_values(x, f, e, out);
  }
  return true;
}
