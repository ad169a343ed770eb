/* Evaluates an expression and explains why it is not true: the failing part, the values it found,
 * the place it is about. */
#include "expr/eval.h"

#include <assert.h>

enum { TEXT_ENOUGH = 1200, PARTS_TOLD = 4 }; /* bytes; clauses of a chain */

struct finder {
  struct eval *x;
  struct buf out;
  bool placed;
  const struct path_step *place;
};

/* --- places --- */

static struct path_step *new_step(struct eval *x, const struct path_step *up, const char *key,
                                  size_t n) {
  struct path_step *step = expr_eval_get(x, sizeof *step);
  if (step)
    *step = (struct path_step){up, key, n};
  return step;
}

/* Finds how far a reference names one place: *end parts of it do, and *value is there. */
static bool expr_place(struct eval *x, const struct eval_frame *f, const struct expr *e,
                       const struct path_step **place, size_t *end, struct value *value) {
  if (e->kind != NODE_REF || e->start == REF_BASE)
    return false;
  size_t i;
  const struct eval_frame *base = expr_base(f, e, &i);
  struct value v = base->value;
  if (!base->placed)
    return false;
  *place = base->place;
  for (; i < e->ref_count; i++) {
    const struct ref_part *part = &e->ref[i];
    struct path_step *step = NULL;
    if (part->kind == PART_NAME && (v.kind == VALUE_OBJECT || v.kind == VALUE_NULL)) {
      step = new_step(x, *place, part->name.p, part->name.n);
      v = expr_value_of(
          v.kind == VALUE_OBJECT ? json_object_getn(v.json, part->name.p, part->name.n) : NULL);
    } else if (part->kind == PART_INDEX && v.kind == VALUE_LIST) {
      json_int_t at = part->index < 0 ? (json_int_t)v.n + part->index : part->index;
      if (at < 0)
        break;
      step = new_step(x, *place, NULL, (size_t)at);
      v = (size_t)at < v.n ? expr_list_at(&v, (size_t)at) : expr_value_of(NULL);
    } else {
      break;
    }
    if (step == NULL)
      return false;
    *place = step;
  }
  *end = i;
  *value = v;
  return true;
}

/* Finds the place of item i of the list that `e` gives: a list that stands somewhere, or one member
 * of each item of such a list. */
static bool place_of_item(struct eval *x, const struct eval_frame *f, const struct expr *e,
                          size_t n, size_t i, const struct path_step **place) {
  size_t end;
  struct value at;
  if (!expr_place(x, f, e, place, &end, &at) || at.kind != VALUE_LIST || at.n != n)
    return false;
  struct value item = expr_list_at(&at, i);
  *place = new_step(x, *place, NULL, i);
  for (size_t k = end; *place && k < e->ref_count; k++) {
    const struct ref_part *part = &e->ref[k];
    if (part->kind == PART_EACH && k == end)
      continue;
    if (part->kind != PART_NAME || (item.kind != VALUE_OBJECT && item.kind != VALUE_NULL))
      return false;
    *place = new_step(x, *place, part->name.p, part->name.n);
    item = expr_value_of(json_object_getn(item.json, part->name.p, part->name.n));
  }
  return *place != NULL;
}

static bool set_place(struct finder *w, const struct path_step *place) {
  w->place = place;
  w->placed = true;
  return true;
}

/* Puts the place of a reference; with `exact`, only if it names one. */
static bool place_ref(struct finder *w, const struct eval_frame *f, const struct expr *e,
                      bool exact) {
  const struct path_step *place;
  struct value at;
  size_t end;
  if (w->placed || !expr_place(w->x, f, e, &place, &end, &at))
    return w->placed;
  bool length = end + 1 == e->ref_count && e->ref[end].kind == PART_NAME &&
                str_eq_c(e->ref[end].name, "length");
  return exact && end < e->ref_count && !length ? false : set_place(w, place);
}

/* Puts the place of the first reference below `e` that names one at all. */
static bool place_below(struct finder *w, const struct eval_frame *f, const struct expr *e) {
  if (place_ref(w, f, e, false))
    return true;
  for (const struct expr *part = e->parts; part; part = part->next) {
    bool on_item = e->kind == NODE_CALL && e->function->on_items && part != e->parts;
    if (!on_item && place_below(w, f, part))
      return true;
  }
  return false;
}

/* Puts the place of an operand: a plain reference before a calculated value, the left before the
 * right. */
static void place_operands(struct finder *w, const struct eval_frame *f, const struct expr *left,
                           const struct expr *right) {
  (void)(place_ref(w, f, left, true) || place_ref(w, f, right, true) || place_below(w, f, left) ||
         place_below(w, f, right));
}

/* --- words --- */

static void told_source(struct finder *w, const struct expr *e) {
  buf_puts(&w->out, expr_excerpt(e->source.p, e->source.n).text);
}

static void put_no_member(struct finder *w, const struct value *object, struct str name) {
  json_t *json = (json_t *)(uintptr_t)object->json;
  const char *best = NULL;
  size_t best_n = 0, best_distance = 0, distance, looked = 0;
  for (void *at = json_object_iter(json); at && looked < EXPR_NODES_MAX;
       at = json_object_iter_next(json, at), looked++) {
    const char *key = json_object_iter_key(at);
    size_t n = json_object_iter_key_len(at);
    if (str_near(name, (struct str){key, n}, &distance) && (!best || distance < best_distance)) {
      best = key;
      best_n = n;
      best_distance = distance;
    }
  }
  buf_puts(&w->out, " (there is no ");
  buf_puts(&w->out, expr_excerpt(name.p, name.n).text);
  if (best) {
    buf_puts(&w->out, ": did you mean ");
    buf_puts(&w->out, expr_excerpt(best, best_n).text);
    buf_puts(&w->out, "?");
  }
  buf_puts(&w->out, ")");
}

/* Puts " (there is no totl: did you mean total?)" after a reference to nothing; over a list, of its
 * item i. */
static void put_missing(struct finder *w, const struct eval_frame *f, const struct expr *e,
                        size_t i) {
  if (e->kind != NODE_REF || e->start == REF_BASE)
    return;
  struct value v = expr_frame(f, e->level)->value;
  for (size_t k = e->maybe_whole; k < e->ref_count; k++) {
    const struct ref_part *part = &e->ref[k];
    if (v.kind == VALUE_LIST && part->kind != PART_INDEX && i < v.n)
      v = expr_list_at(&v, i);
    if (part->kind == PART_EACH)
      continue;
    if (v.kind != VALUE_OBJECT || part->kind != PART_NAME)
      return;
    const json_t *member = json_object_getn(v.json, part->name.p, part->name.n);
    if (member == NULL) {
      put_no_member(w, &v, part->name);
      return;
    }
    v = expr_value_of(member);
  }
}

static bool explain_expr(struct finder *w, const struct eval_frame *f, const struct expr *e,
                         bool wanted);

/* Says how the two sides stand where `op` does not have the outcome that was `wanted`. */
static const char *order_words(enum node_op op, bool wanted, bool texts) {
  static const char *const words[][2] = {
      [CMP_EQ] = {" is ", " is not "},
      [CMP_NE] = {" is not ", " is "},
      [CMP_GE] = {" is not less than ", " is less than "},
      [CMP_LE] = {" is not greater than ", " is greater than "},
      [CMP_GT] = {" is greater than ", " is not greater than "},
      [CMP_LT] = {" is less than ", " is not less than "},
      [CMP_IN] = {" is in ", " is not in "},
      [CMP_NOT_IN] = {" is not in ", " is in "},
  };
  static const char *const words_of_texts[][2] = {
      [CMP_GE] = {" is not before ", " is before "},
      [CMP_LE] = {" is not after ", " is after "},
      [CMP_GT] = {" is after ", " is not after "},
      [CMP_LT] = {" is before ", " is not before "},
  };
  assert(op <= CMP_NOT_IN);
  bool ordered = op >= CMP_GE && op <= CMP_LT;
  return texts && ordered ? words_of_texts[op][wanted] : words[op][wanted];
}

static bool explain_compare(struct finder *w, const struct eval_frame *f, const struct expr *e,
                            bool wanted) {
  const struct expr *left = e->parts, *right = left->next;
  struct value a, b;
  if (!expr_get(w->x, f, left, &a) || !expr_get(w->x, f, right, &b))
    return false;
  place_operands(w, f, left, right);
  if (left->kind == NODE_REF && e->op == CMP_NE && wanted) {
    told_source(w, left);
    buf_puts(&w->out, " is ");
    expr_value_text(&b, &w->out);
    return true;
  }
  expr_value_text(&a, &w->out);
  buf_puts(&w->out, order_words(e->op, wanted, a.kind == VALUE_TEXT));
  expr_value_text(&b, &w->out);
  if (a.kind == VALUE_NULL)
    put_missing(w, f, left, SIZE_MAX);
  else if (b.kind == VALUE_NULL)
    put_missing(w, f, right, SIZE_MAX);
  return true;
}

static bool explain_chain(struct finder *w, const struct eval_frame *f, const struct expr *e,
                          bool wanted) {
  bool all_fail = (e->kind == NODE_OR) == wanted, holds;
  unsigned told = 0;
  for (const struct expr *part = e->parts; part; part = part->next) {
    if (!expr_get_condition(w->x, f, part, &holds))
      return false;
    if (holds == wanted)
      continue;
    if (told > 0)
      buf_puts(&w->out, ", and ");
    if (told == PARTS_TOLD || w->out.n > TEXT_ENOUGH) {
      buf_puts(&w->out, "...");
      return true;
    }
    if (!explain_expr(w, f, part, wanted))
      return false;
    told++;
    if (!all_fail)
      return true; /* one is enough: the later ones were not looked at either */
  }
  return true;
}

/* --- calls on items --- */

static bool item_frame(struct eval *x, const struct eval_frame *f, const struct expr *e,
                       const struct value *list, size_t i, struct eval_frame *inner) {
  *inner = (struct eval_frame){.outer = f, .value = expr_list_at(list, i), .level = f->level + 1};
  inner->placed = place_of_item(x, f, e->parts, list->n, i, &inner->place);
  return expr_eval_work(x, e, 1);
}

/* Explains the items for which the condition is `held`: the first in full, the next by name. */
static bool explain_items(struct finder *w, const struct eval_frame *f, const struct expr *e,
                          const struct value *list, bool held) {
  const struct expr *condition = e->parts->next;
  size_t found = 0;
  for (size_t i = 0; i < list->n; i++) {
    struct eval_frame inner;
    bool holds;
    if (!item_frame(w->x, f, e, list, i, &inner))
      return false;
    if (condition == NULL)
      holds = inner.value.boolean;
    else if (!expr_get_condition(w->x, &inner, condition, &holds))
      return found > 0; /* an item behind it cannot be told */
    if (holds != held)
      continue;
    if (++found == 1) {
      bool known = w->placed || inner.placed;
      if (condition && !explain_expr(w, &inner, condition, !held))
        return false;
      if (condition == NULL)
        buf_puts(&w->out, held ? "it is true" : "it is false");
      if (!w->placed && inner.placed)
        (void)set_place(w, inner.place);
      if (!known)
        buf_printf(&w->out, " at item %zu", i);
    } else if (found <= EXPR_ITEMS_NAMED) {
      buf_printf(&w->out, "%s%zu", found == 2 ? " (so too at item " : ", ", i);
    }
  }
  if (found > EXPR_ITEMS_NAMED)
    buf_printf(&w->out, " and %zu more", found - EXPR_ITEMS_NAMED);
  buf_puts(&w->out, found > 1 ? ")" : "");
  return true;
}

static bool explain_count(struct finder *w, const struct eval_frame *f, const struct expr *e,
                          const struct value *list) {
  const struct expr *condition = e->parts->next ? e->parts->next : e->parts;
  struct value v;
  size_t held = 0;
  (void)place_below(w, f, e->parts);
  for (size_t i = 0; i < list->n; i++) {
    struct eval_frame inner;
    if (!item_frame(w->x, f, e, list, i, &inner))
      return false;
    v = inner.value;
    if (e->parts->next && !expr_get(w->x, &inner, condition, &v))
      return false;
    held += v.kind == VALUE_BOOL && v.boolean;
  }
  if (list->n == 0) {
    told_source(w, e->parts);
    buf_puts(&w->out, " is empty");
    return true;
  }
  buf_printf(&w->out, "%zu of %zu items %s ", held, list->n, held == 1 ? "fulfils" : "fulfil");
  told_source(w, condition);
  return true;
}

static bool explain_on_items(struct finder *w, const struct eval_frame *f, const struct expr *e,
                             bool wanted) {
  enum function_id id = e->function->id;
  struct value list;
  struct duplicate d;
  const struct path_step *place;
  if (!expr_get(w->x, f, e->parts, &list))
    return false;
  if (id != FN_UNIQUE) {
    bool by_item = id == FN_ANY ? !wanted : wanted && (id == FN_ALL || id == FN_NO);
    return by_item ? explain_items(w, f, e, &list, id != FN_ALL) : explain_count(w, f, e, &list);
  }
  if (!expr_find_duplicate(w->x, f, e, &list, &d))
    return false;
  if (!d.found) {
    buf_puts(&w->out, "all items differ");
    return true;
  }
  if (place_of_item(w->x, f, e->parts, list.n, d.second, &place))
    (void)set_place(w, place);
  buf_printf(&w->out, "items %zu and %zu are both ", d.first, d.second);
  expr_value_text(&d.value, &w->out);
  return true;
}

static bool explain_call(struct finder *w, const struct eval_frame *f, const struct expr *e,
                         bool wanted) {
  static const char *const all[][2] = {
      [FN_CONTAINS] = {" contains ", " does not contain "},
      [FN_STARTS] = {" starts with ", " does not start with "},
      [FN_ENDS] = {" ends with ", " does not end with "},
      [FN_MATCHES] = {" matches ", " does not match "},
  };
  enum function_id id = e->function->id;
  const char *words = id < ARRAY_LEN(all) ? all[id][wanted] : NULL;
  struct value a, b;
  if (e->function->on_items)
    return explain_on_items(w, f, e, wanted);
  if (words) {
    if (!expr_get(w->x, f, e->parts, &a) || !expr_get(w->x, f, e->parts->next, &b))
      return false;
    place_operands(w, f, e->parts, e->parts->next);
    expr_value_text(&a, &w->out);
    buf_puts(&w->out, words);
    expr_value_text(&b, &w->out);
    return true;
  }
  (void)place_below(w, f, e);
  if (e->function->id == FN_IS_DATE) {
    if (!expr_get(w->x, f, e->parts, &a))
      return false;
    expr_value_text(&a, &w->out);
    buf_puts(&w->out, wanted ? " is no date like 2026-12-31" : " is a date");
    if (a.kind == VALUE_NULL)
      put_missing(w, f, e->parts, SIZE_MAX);
    return true;
  }
  if (e->function->id == FN_HAS) {
    told_source(w, e->parts);
    buf_puts(&w->out, wanted ? " is missing or null" : " is there");
    put_missing(w, f, e->parts, SIZE_MAX);
    return true;
  }
  told_source(w, e);
  buf_puts(&w->out, wanted ? " is false" : " is true");
  return true;
}

/* Explains why `e`, which is true or false, is not what is wanted. */
static bool explain_expr(struct finder *w, const struct eval_frame *f, const struct expr *e,
                         bool wanted) {
  switch ((int)e->kind) {
  case NODE_NOT:
    return explain_expr(w, f, e->parts, !wanted);
  case NODE_OR:
  case NODE_AND:
    return explain_chain(w, f, e, wanted);
  case NODE_COMPARE:
    return explain_compare(w, f, e, wanted);
  case NODE_CALL:
    return explain_call(w, f, e, wanted);
  default:
    (void)place_below(w, f, e);
    told_source(w, e);
    buf_puts(&w->out, wanted ? " is false" : " is true");
    return true;
  }
}

/* --- errors --- */

/* Goes to the part that failed: the smallest that contains the error's offset. */
static void locate(struct finder *w, const struct eval_frame *f, const struct expr *e,
                   size_t offset) {
  struct value list;
  const struct path_step *place;
  if (e == w->x->failed_call && expr_get(w->x, f, e->parts, &list) &&
      place_of_item(w->x, f, e->parts, list.n, w->x->failed_item[f->level + 1], &place)) {
    (void)set_place(w, place);
    put_missing(w, f, e->parts, w->x->failed_item[f->level + 1]);
    return;
  }
  if (e->kind == NODE_REF && e->at == offset) {
    put_missing(w, f, e, SIZE_MAX);
    (void)place_ref(w, f, e, false);
    return;
  }
  for (const struct expr *part = e->parts; part; part = part->next) {
    if (offset < part->at || offset >= part->at + part->source.n)
      continue;
    if (e->kind == NODE_CALL && e->function->on_items && part != e->parts) {
      struct eval_frame inner;
      size_t i = w->x->failed_item[f->level + 1];
      if (expr_get(w->x, f, e->parts, &list) && list.kind == VALUE_LIST && i < list.n &&
          item_frame(w->x, f, e, &list, i, &inner) && inner.placed)
        locate(w, &inner, part, offset);
    } else {
      locate(w, f, part, offset);
    }
    break;
  }
  if (!w->placed)
    (void)place_below(w, f, e);
}

static void expr_find(struct eval *x, const struct eval_frame *whole, const struct expr *expr,
                      enum expr_value verdict, struct expr_finding *finding) {
  struct finder w = {.x = x};
  struct expr_error *error = x->error, second = {0};
  struct buf path = {0}, pointer = {0};
  x->error = &second;
  if (verdict == EXPR_FALSE) {
    if (!explain_expr(&w, whole, expr, true) && w.out.n == 0)
      buf_puts(&w.out, "it is false");
  } else {
    buf_puts(&w.out, error->text);
    if (error->code == EXPR_NO_VALUE || error->code == EXPR_WRONG_TYPE ||
        error->code == EXPR_DIVISION_BY_ZERO)
      locate(&w, whole, expr, error->offset);
  }
  x->error = error;
  finding->text = buf_take(&w.out);
  schema_path_text(w.placed ? w.place : NULL, &path);
  schema_pointer_text(w.placed ? w.place : NULL, &pointer);
  finding->path = buf_take(&path);
  finding->pointer = buf_take(&pointer);
}

/* --- one evaluation --- */

enum expr_value expr_explain(const struct expr *expr, const json_t *root,
                             struct expr_finding *finding, struct expr_error *error) {
  assert(expr != NULL && error != NULL);
  struct eval x = {.dialect = expr->dialect, .error = error, .work = EXPR_WORK_MAX};
  bool holds = false;
  *error = (struct expr_error){.code = EXPR_OK};
  struct eval_frame whole = {.value = expr_value_of(root), .placed = true};
  enum expr_value verdict = EXPR_ERROR;
  if (expr_get_condition(&x, &whole, expr, &holds))
    verdict = holds ? EXPR_TRUE : EXPR_FALSE;
  if (finding) {
    *finding = (struct expr_finding){0};
    if (verdict != EXPR_TRUE)
      expr_find(&x, &whole, expr, verdict, finding);
  }
  for (struct compiled_pattern *p = x.patterns; p; p = p->next)
    pattern_free(p->pattern);
  pattern_scratch_deinit(&x.scratch);
  arena_deinit(&x.arena);
  return verdict;
}

enum expr_value expr_eval(const struct expr *expr, const json_t *root, struct expr_error *error) {
  return expr_explain(expr, root, NULL, error);
}
