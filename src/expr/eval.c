/* Evaluates expressions: references and operators. Calls are in expr/function.c. */
#include "expr/eval.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

bool expr_eval_fail(struct eval *x, enum expr_code code, const struct expr *at, const char *format,
                    ...) {
  va_list args;
  x->error->code = code;
  x->error->offset = at->at;
  va_start(args, format);
  (void)vsnprintf(x->error->text, sizeof x->error->text, format, args);
  va_end(args);
  return false;
}

void *expr_eval_get(struct eval *x, size_t bytes) {
  if (bytes > EXPR_MEMORY_MAX || (x->memory += bytes) > EXPR_MEMORY_MAX) {
    x->error->code = EXPR_TOO_COMPLEX;
    (void)snprintf(x->error->text, sizeof x->error->text,
                   "the expression needs more than %d MiB of memory", EXPR_MEMORY_MAX >> 20);
    return NULL;
  }
  return arena_alloc(&x->arena, bytes);
}

bool expr_eval_work(struct eval *x, const struct expr *at, size_t steps) {
  if (steps < EXPR_WORK_MAX)
    x->work -= (int64_t)steps;
  else
    x->work = -1;
  return x->work >= 0 || expr_eval_fail(x, EXPR_TOO_COMPLEX, at,
                                        "the expression takes more than %d steps", EXPR_WORK_MAX);
}

const struct eval_frame *expr_frame(const struct eval_frame *f, unsigned level) {
  while (f->level > level)
    f = f->outer;
  assert(f->level == level); /* the parser knows no other */
  return f;
}

/* --- references --- */

struct ref_walk {
  struct eval *x;
  const struct expr *ref;
  struct value value;
  bool projected; /* the value is the items of a list so far, not a list that stands somewhere */
};

static bool missing(struct ref_walk *w, const struct ref_part *part) {
  struct excerpt source = expr_excerpt(w->ref->source.p, w->ref->source.n);
  if (w->x->dialect == EXPR_INVARIANT) {
    w->value = (struct value){.kind = VALUE_NULL};
    return true;
  }
  if (part->kind == PART_INDEX)
    return expr_eval_fail(w->x, EXPR_NO_VALUE, w->ref,
                          "%s has no value: there is no [%" JSON_INTEGER_FORMAT "]", source.text,
                          part->index);
  return expr_eval_fail(w->x, EXPR_NO_VALUE, w->ref, "%s has no value: there is no %s", source.text,
                        expr_excerpt(part->name.p, part->name.n).text);
}

/* These count and collect the members of a list, with lists among them opened. */
enum { OPEN_LEVELS = 64 };

static size_t count_opened(const json_t *json, int levels) {
  size_t n = 0;
  if (!json_is_array(json) || levels == 0)
    return 1;
  for (size_t i = 0; i < json_array_size(json); i++)
    n += count_opened(json_array_get(json, i), levels - 1);
  return n;
}

static void pick_opened(const json_t *json, int levels, const json_t **to, size_t *n) {
  if (!json_is_array(json) || levels == 0) {
    to[(*n)++] = json;
    return;
  }
  for (size_t i = 0; i < json_array_size(json); i++)
    pick_opened(json_array_get(json, i), levels - 1, to, n);
}

static const json_t *item_json(const struct value *list, size_t i) {
  return list->picked ? list->picked[i] : json_array_get(list->json, i);
}

/* Opens the items of a list as they stand in the JSON, each list among them `levels` times. */
static bool open_items(struct ref_walk *w, int levels) {
  const struct value list = w->value;
  size_t n = 0, at = 0;
  if (list.made)
    return expr_eval_fail(w->x, EXPR_WRONG_TYPE, w->ref, "[] and .name need a list of the value");
  for (size_t i = 0; i < list.n; i++)
    n += count_opened(item_json(&list, i), levels);
  if (!expr_eval_work(w->x, w->ref, n))
    return false;
  const json_t **to = expr_eval_get(w->x, (n + 1) * sizeof *to);
  if (to == NULL)
    return false;
  for (size_t i = 0; i < list.n; i++)
    pick_opened(item_json(&list, i), levels, to, &at);
  w->value = (struct value){.kind = VALUE_LIST, .picked = to, .n = n};
  return true;
}

/* Applies .name to each item of a list, with null where there is none. */
static bool project(struct ref_walk *w, const struct ref_part *part) {
  if (!open_items(w, w->x->dialect == EXPR_WHEN ? 0 : OPEN_LEVELS))
    return false;
  const json_t **to = (const json_t **)(uintptr_t)w->value.picked; /* ours, made just now */
  for (size_t i = 0; i < w->value.n; i++) {
    to[i] = json_object_getn(to[i], part->name.p, part->name.n);
    if (to[i] == NULL && w->x->dialect == EXPR_WHEN)
      return missing(w, part);
  }
  w->projected = true;
  return true;
}

static bool step_name(struct ref_walk *w, const struct ref_part *part) {
  const struct value v = w->value;
  bool length = str_eq_c(part->name, "length");
  if (v.kind == VALUE_OBJECT) {
    const json_t *member = json_object_getn(v.json, part->name.p, part->name.n);
    if (member == NULL)
      return missing(w, part);
    w->value = expr_value_of(member);
  } else if (v.kind == VALUE_TEXT && length) {
    w->value = (struct value){.kind = VALUE_NUMBER,
                              .number = number_integer((json_int_t)utf8_count(v.text.p, v.text.n))};
    return expr_eval_work(w->x, w->ref, v.text.n / 64);
  } else if (v.kind == VALUE_LIST && length) {
    w->value = (struct value){.kind = VALUE_NUMBER, .number = number_integer((json_int_t)v.n)};
  } else if (v.kind == VALUE_LIST) {
    return project(w, part);
  } else {
    return missing(w, part);
  }
  return true;
}

static bool step_index(struct ref_walk *w, const struct ref_part *part) {
  const struct value v = w->value;
  json_int_t i = part->index < 0 ? (json_int_t)v.n + part->index : part->index;
  w->projected = false;
  if (v.kind != VALUE_LIST || i < 0 || (size_t)i >= v.n)
    return missing(w, part);
  w->value = expr_list_at(&v, (size_t)i);
  return true;
}

static bool step_each(struct ref_walk *w) {
  struct excerpt source = expr_excerpt(w->ref->source.p, w->ref->source.n);
  if (w->value.kind == VALUE_NULL)
    return expr_eval_fail(w->x, EXPR_NO_VALUE, w->ref, "%s: the list before [] is missing or null",
                          source.text);
  if (w->value.kind != VALUE_LIST)
    return expr_eval_fail(w->x, EXPR_WRONG_TYPE, w->ref, "%s: what stands before [] is %s, no list",
                          source.text, expr_described(&w->value).text);
  if (!w->projected) {
    w->projected = true;
    return true;
  }
  for (size_t i = 0; i < w->value.n; i++) {
    struct value item = expr_list_at(&w->value, i);
    if (item.kind != VALUE_LIST)
      return expr_eval_fail(
          w->x, item.kind == VALUE_NULL ? EXPR_NO_VALUE : EXPR_WRONG_TYPE, w->ref,
          "%s: what stands before the last [] is %s at item %zu, no list", source.text,
          item.kind == VALUE_NULL ? "missing or null" : expr_described(&item).text, i);
  }
  return open_items(w, 1);
}

static bool ref_step(struct ref_walk *w, const struct ref_part *part) {
  switch (part->kind) {
  case PART_NAME:
    return step_name(w, part);
  case PART_EACH:
    return step_each(w);
  case PART_INDEX:
    break;
  }
  return step_index(w, part);
}

static bool expr_get_ref(struct eval *x, const struct eval_frame *f, const struct expr *e,
                         struct value *out) {
  struct ref_walk w = {.x = x, .ref = e};
  size_t i = 0;
  if (e->start == REF_BASE) {
    if (!expr_get(x, f, e->parts, &w.value))
      return false;
  } else {
    w.value = expr_frame(f, e->level)->value;
    if (e->maybe_whole &&
        !(w.value.kind == VALUE_OBJECT && json_object_get(w.value.json, "root"))) {
      w.value = expr_frame(f, 0)->value;
      i = 1;
    }
  }
  for (; i < e->ref_count; i++) {
    const struct ref_part *part = &e->ref[i];
    if (!expr_eval_work(x, e, 1))
      return false;
    if (!ref_step(&w, part))
      return false;
  }
  *out = w.value;
  return true;
}

/* --- operators --- */

static bool compare(struct eval *x, const struct eval_frame *f, const struct expr *e, bool *out) {
  const struct expr *left = e->parts, *right = left->next;
  struct value a, b;
  int order = 0;
  if (!expr_get(x, f, left, &a) || !expr_get(x, f, right, &b))
    return false;
  if (e->op == CMP_EQ || e->op == CMP_NE) {
    if (!expr_equal(x, e, &a, &b, out))
      return false;
    *out = *out == (e->op == CMP_EQ);
    return true;
  }
  if (e->op == CMP_IN || e->op == CMP_NOT_IN) {
    if (!expr_contains(x, e, right, &b, &a, out))
      return false;
    *out = *out == (e->op == CMP_IN);
    return true;
  }
  if (!expr_order(x, e, left, &a, right, &b, &order))
    return false;
  if (e->op == CMP_GE || e->op == CMP_LE)
    *out = order == 0 || (order > 0) == (e->op == CMP_GE);
  else
    *out = order != 0 && (order > 0) == (e->op == CMP_GT);
  return true;
}

static bool texts_join(struct eval *x, const struct value *a, const struct value *b,
                       struct value *out) {
  char *to = expr_eval_get(x, a->text.n + b->text.n + 1);
  if (to == NULL)
    return false;
  memcpy(to, a->text.p, a->text.n);
  memcpy(to + a->text.n, b->text.p, b->text.n);
  *out = (struct value){.kind = VALUE_TEXT, .text = {to, a->text.n + b->text.n}};
  return true;
}

static bool need_number(struct eval *x, const struct expr *e, const struct value *v,
                        const char *what) {
  struct excerpt shown = expr_excerpt(e->source.p, e->source.n);
  if (v->kind == VALUE_NUMBER)
    return true;
  if (v->kind == VALUE_NULL)
    return expr_eval_fail(x, EXPR_NO_VALUE, e, "%s is missing or null: %s needs a number",
                          shown.text, what);
  if (v->kind == VALUE_LIST)
    return expr_eval_fail(x, EXPR_WRONG_TYPE, e,
                          "%s is a list: %s needs a number; to calculate with each item write "
                          "sum(list, a %s b)",
                          shown.text, what, what);
  return expr_eval_fail(x, EXPR_WRONG_TYPE, e, "%s is %s: %s needs a number", shown.text,
                        expr_described(v).text, what);
}

static bool calculate(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      struct value *out) {
  static const char *const signs[] = {"+", "-", "*", "/", "%"};
  const struct expr *left = e->parts, *right = left->next;
  enum number_status status = NUMBER_OK;
  struct value a, b;
  if (!expr_get(x, f, left, &a) || !expr_get(x, f, right, &b))
    return false;
  if (e->op == CALC_ADD && a.kind == VALUE_TEXT && b.kind == VALUE_TEXT)
    return texts_join(x, &a, &b, out);
  const char *sign = signs[e->op - CALC_ADD];
  if (!need_number(x, left, &a, sign) || !need_number(x, right, &b, sign))
    return false;
  out->kind = VALUE_NUMBER;
  if (e->op == CALC_ADD)
    status = number_add(&a.number, &b.number, &out->number);
  else if (e->op == CALC_SUBTRACT)
    status = number_subtract(&a.number, &b.number, &out->number);
  else if (e->op == CALC_MULTIPLY)
    status = number_multiply(&a.number, &b.number, &out->number);
  else if (e->op == CALC_DIVIDE)
    status = number_divide(&a.number, &b.number, &out->number);
  else
    status = number_remainder(&a.number, &b.number, &out->number);
  if (status == NUMBER_BY_ZERO)
    return expr_eval_fail(x, EXPR_DIVISION_BY_ZERO, right, "division by zero: %s is 0",
                          expr_excerpt(right->source.p, right->source.n).text);
  return status == NUMBER_OK ||
         expr_eval_fail(x, EXPR_NUMBER_RANGE, e, "%s is beyond what a number can be here",
                        expr_excerpt(e->source.p, e->source.n).text);
}

static bool get_list(struct eval *x, const struct eval_frame *f, const struct expr *e,
                     struct value *out) {
  size_t n = 0;
  for (const struct expr *part = e->parts; part; part = part->next)
    n++;
  struct value *made = expr_eval_get(x, (n + 1) * sizeof *made);
  if (made == NULL)
    return false;
  *out = (struct value){.kind = VALUE_LIST, .made = made};
  for (const struct expr *part = e->parts; part; part = part->next)
    if (!expr_get(x, f, part, &made[out->n++]))
      return false;
  return true;
}

bool expr_get_condition(struct eval *x, const struct eval_frame *f, const struct expr *e,
                        bool *out) {
  struct value v;
  if (!expr_get(x, f, e, &v))
    return false;
  *out = v.boolean;
  if (v.kind == VALUE_BOOL)
    return true;
  struct excerpt shown = expr_excerpt(e->source.p, e->source.n);
  if (v.kind == VALUE_NULL && x->dialect == EXPR_INVARIANT)
    return expr_eval_fail(x, EXPR_NO_VALUE, e, "%s is missing or null, not true or false",
                          shown.text);
  return expr_eval_fail(x, EXPR_WRONG_TYPE, e, "%s is %s, not true or false: compare it",
                        shown.text,
                        x->dialect == EXPR_WHEN ? expr_kind_name(&v) : expr_described(&v).text);
}

static bool logic(struct eval *x, const struct eval_frame *f, const struct expr *e, bool *out) {
  if (e->kind == NODE_NOT) {
    bool holds;
    if (!expr_get_condition(x, f, e->parts, &holds))
      return false;
    *out = !holds;
    return true;
  }
  bool decides = e->kind == NODE_OR;
  for (const struct expr *part = e->parts; part; part = part->next)
    if (!expr_get_condition(x, f, part, out))
      return false;
    else if (*out == decides)
      return true;
  return true;
}

bool expr_get(struct eval *x, const struct eval_frame *f, const struct expr *e, struct value *out) {
  if (!expr_eval_work(x, e, 1))
    return false;
  *out = (struct value){.kind = VALUE_BOOL};
  switch (e->kind) {
  case NODE_OR:
  case NODE_AND:
  case NODE_NOT:
    return logic(x, f, e, &out->boolean);
  case NODE_COMPARE:
    return compare(x, f, e, &out->boolean);
  case NODE_BOOL:
    out->boolean = e->boolean;
    return true;
  case NODE_NULL:
    out->kind = VALUE_NULL;
    return true;
  case NODE_NUMBER:
    out->kind = VALUE_NUMBER;
    out->number = e->number;
    return true;
  case NODE_STRING:
    out->kind = VALUE_TEXT;
    out->text = e->string;
    return true;
  case NODE_LIST:
    return get_list(x, f, e, out);
  case NODE_REF:
    return expr_get_ref(x, f, e, out);
  case NODE_BINARY:
    return calculate(x, f, e, out);
  case NODE_NEGATE: {
    struct value v;
    if (!expr_get(x, f, e->parts, &v) || !need_number(x, e->parts, &v, "-"))
      return false;
    out->kind = VALUE_NUMBER;
    out->number = number_negate(&v.number);
    return true;
  }
  case NODE_CALL:
    return expr_get_call(x, f, e, out);
  }
  return true;
}

/* --- one evaluation --- */

static void eval_init(struct eval *x, const struct expr *expr, struct expr_error *error) {
  *x = (struct eval){.dialect = expr->dialect, .error = error, .work = EXPR_WORK_MAX};
  error->code = EXPR_OK;
  error->offset = 0;
  error->text[0] = '\0';
}

static void eval_deinit(struct eval *x) {
  for (struct compiled_pattern *p = x->patterns; p; p = p->next)
    pattern_free(p->pattern);
  pattern_scratch_deinit(&x->scratch);
  arena_deinit(&x->arena);
}

enum expr_value expr_eval(const struct expr *expr, const json_t *root, struct expr_error *error) {
  assert(expr != NULL);
  return expr_explain(expr, root, NULL, error);
}

enum expr_value expr_explain(const struct expr *expr, const json_t *root,
                             struct expr_finding *finding, struct expr_error *error) {
  assert(expr != NULL);
  struct expr_error unused;
  struct eval x;
  bool holds = false;
  assert(expr != NULL);
  eval_init(&x, expr, error ? error : &unused);
  struct eval_frame whole = {.value = expr_value_of(root), .placed = true};
  enum expr_value verdict = EXPR_ERROR;
  if (expr_get_condition(&x, &whole, expr, &holds))
    verdict = holds ? EXPR_TRUE : EXPR_FALSE;
  if (finding) {
    *finding = (struct expr_finding){0};
    if (verdict != EXPR_TRUE)
      expr_find(&x, &whole, expr, verdict, finding);
  }
  eval_deinit(&x);
  return verdict;
}
