/* Why an expression is not true: the failing part, the values it found, the place it speaks of. */
#include "structured/expr_eval.h"

#include <stdio.h>

enum { TEXT_ENOUGH = 1200, PARTS_TOLD = 4 }; /* bytes; clauses of a chain */

struct finder {
  struct eval *x;
  struct text out;
  bool placed;
  const struct step *place;
};

/* --- places --- */

static struct step *new_step(struct eval *x, const struct step *up, const char *key, size_t n) {
  struct step *step = expr_eval_get(x, sizeof *step);
  if (step)
    *step = (struct step){up, key, n};
  return step;
}

/* How far a reference names one place: *end is the number of parts that do, *value what is there. */
static bool place_of(struct eval *x, const struct frame *f, const struct expr *e,
                     const struct step **place, size_t *end, struct value *value) {
  if (e->kind != NODE_REF || e->start == REF_BASE)
    return false;
  const struct frame *base = expr_frame(f, e->level);
  struct value v = base->value;
  size_t i = 0;
  if (e->maybe_whole && !(v.kind == VALUE_OBJECT && json_object_get(v.json, "root"))) {
    base = expr_frame(f, 0);
    v = base->value;
    i = 1;
  }
  if (!base->placed)
    return false;
  *place = base->place;
  for (; i < e->ref_count; i++) {
    const struct ref_part *part = &e->ref[i];
    struct step *step = NULL;
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

/* The place of item i of the list that `e` gives: a list that stands somewhere, or one member of
 * each item of such a list. */
static bool place_of_item(struct eval *x, const struct frame *f, const struct expr *e, size_t n,
                          size_t i, const struct step **place) {
  size_t end;
  struct value at;
  if (!place_of(x, f, e, place, &end, &at) || at.kind != VALUE_LIST || at.n != n)
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

static bool set_place(struct finder *w, const struct step *place) {
  w->place = place;
  w->placed = true;
  return true;
}

/* The place of a reference; `exact`: only if it names one. */
static bool place_ref(struct finder *w, const struct frame *f, const struct expr *e, bool exact) {
  const struct step *place;
  struct value at;
  size_t end;
  if (w->placed || !place_of(w->x, f, e, &place, &end, &at))
    return w->placed;
  bool length = end + 1 == e->ref_count && e->ref[end].kind == PART_NAME &&
                expr_name_is(e->ref[end].name, "length");
  return exact && end < e->ref_count && !length ? false : set_place(w, place);
}

/* The first reference below `e` that names a place at all. */
static bool place_below(struct finder *w, const struct frame *f, const struct expr *e) {
  if (place_ref(w, f, e, false))
    return true;
  for (const struct expr *part = e->parts; part; part = part->next) {
    bool on_item = e->kind == NODE_CALL && e->function->on_items && part != e->parts;
    if (!on_item && place_below(w, f, part))
      return true;
  }
  return false;
}

/* A plain reference before a calculated value, the left before the right. */
static void place_operands(struct finder *w, const struct frame *f, const struct expr *left,
                           const struct expr *right) {
  (void)(place_ref(w, f, left, true) || place_ref(w, f, right, true) || place_below(w, f, left) ||
         place_below(w, f, right));
}

/* --- words --- */

static void put_value(struct finder *w, const struct value *v) {
  expr_value_text(v, &w->out);
}

static void put_source(struct finder *w, const struct expr *e) {
  schema_text_puts(&w->out, expr_excerpt(e->source.p, e->source.n).text);
}

static void put_no_member(struct finder *w, const struct value *object, struct expr_name name) {
  json_t *json = (json_t *)(uintptr_t)object->json;
  const char *best = NULL;
  size_t best_n = 0, best_distance = 0, distance, looked = 0;
  for (void *at = json_object_iter(json); at && looked < EXPR_NODES_MAX;
       at = json_object_iter_next(json, at), looked++) {
    const char *key = json_object_iter_key(at);
    size_t n = json_object_iter_key_len(at);
    if (expr_near(name, key, n, &distance) && (!best || distance < best_distance)) {
      best = key;
      best_n = n;
      best_distance = distance;
    }
  }
  schema_text_puts(&w->out, " (there is no ");
  schema_text_puts(&w->out, expr_excerpt(name.p, name.n).text);
  if (best) {
    schema_text_puts(&w->out, ": did you mean ");
    schema_text_puts(&w->out, expr_excerpt(best, best_n).text);
    schema_text_puts(&w->out, "?");
  }
  schema_text_puts(&w->out, ")");
}

/* " (there is no totl: did you mean total?)" behind a reference to nothing; over a list, of its
 * item i. */
static void put_missing(struct finder *w, const struct frame *f, const struct expr *e, size_t i) {
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

static bool explain(struct finder *w, const struct frame *f, const struct expr *e, bool wanted);

static const char *order_words(enum node_op op, bool wanted, bool texts) {
  switch (op) {
  case CMP_GE:
    return texts ? (wanted ? " is before " : " is not before ")
                 : (wanted ? " is less than " : " is not less than ");
  case CMP_LE:
    return texts ? (wanted ? " is after " : " is not after ")
                 : (wanted ? " is greater than " : " is not greater than ");
  case CMP_GT:
    return texts ? (wanted ? " is not after " : " is after ")
                 : (wanted ? " is not greater than " : " is greater than ");
  case CMP_LT:
    return texts ? (wanted ? " is not before " : " is before ")
                 : (wanted ? " is not less than " : " is less than ");
  case CMP_EQ:
    return wanted ? " is not " : " is ";
  case CMP_NE:
    return wanted ? " is " : " is not ";
  case CMP_IN:
    return wanted ? " is not in " : " is in ";
  case CMP_NOT_IN:
    return wanted ? " is in " : " is not in ";
  case CALC_ADD:
  case CALC_SUBTRACT:
  case CALC_MULTIPLY:
  case CALC_DIVIDE:
  case CALC_REMAINDER:
    break;
  }
  return " ";
}

static bool explain_compare(struct finder *w, const struct frame *f, const struct expr *e,
                            bool wanted) {
  const struct expr *left = e->parts, *right = left->next;
  struct value a, b;
  if (!expr_get(w->x, f, left, &a) || !expr_get(w->x, f, right, &b))
    return false;
  place_operands(w, f, left, right);
  if (left->kind == NODE_REF && e->op == CMP_NE && wanted) {
    put_source(w, left);
    schema_text_puts(&w->out, " is ");
    put_value(w, &b);
    return true;
  }
  put_value(w, &a);
  schema_text_puts(&w->out, order_words(e->op, wanted, a.kind == VALUE_TEXT));
  put_value(w, &b);
  if (a.kind == VALUE_NULL)
    put_missing(w, f, left, SIZE_MAX);
  else if (b.kind == VALUE_NULL)
    put_missing(w, f, right, SIZE_MAX);
  return true;
}

static bool explain_chain(struct finder *w, const struct frame *f, const struct expr *e,
                          bool wanted) {
  bool all_fail = (e->kind == NODE_OR) == wanted, holds;
  unsigned told = 0;
  for (const struct expr *part = e->parts; part; part = part->next) {
    if (!expr_get_condition(w->x, f, part, &holds))
      return false;
    if (holds == wanted)
      continue;
    if (told > 0)
      schema_text_puts(&w->out, ", and ");
    if (told == PARTS_TOLD || w->out.length > TEXT_ENOUGH) {
      schema_text_puts(&w->out, "...");
      return true;
    }
    if (!explain(w, f, part, wanted))
      return false;
    told++;
    if (!all_fail)
      return true; /* one is enough: the later ones were not looked at either */
  }
  return true;
}

/* --- calls on items --- */

static bool item_frame(struct eval *x, const struct frame *f, const struct expr *e,
                       const struct value *list, size_t i, struct frame *inner) {
  *inner = (struct frame){.outer = f, .value = expr_list_at(list, i), .level = f->level + 1};
  inner->placed = place_of_item(x, f, e->parts, list->n, i, &inner->place);
  return expr_eval_work(x, e, 1);
}

/* The items for which the condition is `held`: the first is explained, the next are named. */
static bool explain_items(struct finder *w, const struct frame *f, const struct expr *e,
                          const struct value *list, bool held) {
  const struct expr *condition = e->parts->next;
  size_t found = 0;
  for (size_t i = 0; i < list->n; i++) {
    struct frame inner;
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
      if (condition && !explain(w, &inner, condition, !held))
        return false;
      if (condition == NULL)
        schema_text_puts(&w->out, held ? "it is true" : "it is false");
      if (!w->placed && inner.placed)
        (void)set_place(w, inner.place);
      if (!known)
        schema_text_printf(&w->out, " at item %zu", i);
    } else if (found <= EXPR_ITEMS_NAMED) {
      schema_text_printf(&w->out, "%s%zu", found == 2 ? " (so too at item " : ", ", i);
    }
  }
  if (found > EXPR_ITEMS_NAMED)
    schema_text_printf(&w->out, " and %zu more", found - EXPR_ITEMS_NAMED);
  schema_text_puts(&w->out, found > 1 ? ")" : "");
  return true;
}

static bool explain_number(struct finder *w, const struct frame *f, const struct expr *e,
                           const struct value *list) {
  const struct expr *condition = e->parts->next ? e->parts->next : e->parts;
  struct value v;
  size_t held = 0;
  (void)place_below(w, f, e->parts);
  for (size_t i = 0; i < list->n; i++) {
    struct frame inner;
    if (!item_frame(w->x, f, e, list, i, &inner))
      return false;
    v = inner.value;
    if (e->parts->next && !expr_get(w->x, &inner, condition, &v))
      return false;
    held += v.kind == VALUE_BOOL && v.boolean;
  }
  if (list->n == 0) {
    put_source(w, e->parts);
    schema_text_puts(&w->out, " is empty");
    return true;
  }
  schema_text_printf(&w->out, "%zu of %zu items %s ", held, list->n,
                     held == 1 ? "fulfils" : "fulfil");
  put_source(w, condition);
  return true;
}

static bool explain_unique(struct finder *w, const struct frame *f, const struct expr *e,
                           const struct value *list) {
  struct duplicate d;
  const struct step *place;
  if (!expr_find_duplicate(w->x, f, e, list, &d))
    return false;
  if (!d.found) {
    schema_text_puts(&w->out, "all items differ");
    return true;
  }
  if (place_of_item(w->x, f, e->parts, list->n, d.second, &place))
    (void)set_place(w, place);
  schema_text_printf(&w->out, "items %zu and %zu are both ", d.first, d.second);
  put_value(w, &d.value);
  return true;
}

static bool explain_on_items(struct finder *w, const struct frame *f, const struct expr *e,
                             bool wanted) {
  struct value list;
  if (!expr_get(w->x, f, e->parts, &list))
    return false;
  switch ((int)e->function->id) {
  case FN_UNIQUE:
    return explain_unique(w, f, e, &list);
  case FN_ALL:
    return wanted ? explain_items(w, f, e, &list, false) : explain_number(w, f, e, &list);
  case FN_NO:
    return wanted ? explain_items(w, f, e, &list, true) : explain_number(w, f, e, &list);
  case FN_ANY:
    return wanted ? explain_number(w, f, e, &list) : explain_items(w, f, e, &list, true);
  default:
    return explain_number(w, f, e, &list);
  }
}

static const char *function_words(enum function_id id, bool wanted) {
  switch ((int)id) {
  case FN_CONTAINS:
    return wanted ? " does not contain " : " contains ";
  case FN_STARTS:
    return wanted ? " does not start with " : " starts with ";
  case FN_ENDS:
    return wanted ? " does not end with " : " ends with ";
  case FN_MATCHES:
    return wanted ? " does not match " : " matches ";
  default:
    return NULL;
  }
}

static bool explain_call(struct finder *w, const struct frame *f, const struct expr *e,
                         bool wanted) {
  const char *words = function_words(e->function->id, wanted);
  struct value a, b;
  if (e->function->on_items)
    return explain_on_items(w, f, e, wanted);
  if (words) {
    if (!expr_get(w->x, f, e->parts, &a) || !expr_get(w->x, f, e->parts->next, &b))
      return false;
    place_operands(w, f, e->parts, e->parts->next);
    put_value(w, &a);
    schema_text_puts(&w->out, words);
    put_value(w, &b);
    return true;
  }
  (void)place_below(w, f, e);
  if (e->function->id == FN_HAS) {
    put_source(w, e->parts);
    schema_text_puts(&w->out, wanted ? " is missing or null" : " is there");
    put_missing(w, f, e->parts, SIZE_MAX);
    return true;
  }
  put_source(w, e);
  schema_text_puts(&w->out, wanted ? " is false" : " is true");
  return true;
}

/* `e` is true or false and is not what is wanted. */
static bool explain(struct finder *w, const struct frame *f, const struct expr *e, bool wanted) {
  switch (e->kind) {
  case NODE_NOT:
    return explain(w, f, e->parts, !wanted);
  case NODE_OR:
  case NODE_AND:
    return explain_chain(w, f, e, wanted);
  case NODE_COMPARE:
    return explain_compare(w, f, e, wanted);
  case NODE_CALL:
    return explain_call(w, f, e, wanted);
  case NODE_REF:
  case NODE_BOOL:
  case NODE_NULL:
  case NODE_NUMBER:
  case NODE_STRING:
  case NODE_LIST:
  case NODE_BINARY:
  case NODE_NEGATE:
    break;
  }
  (void)place_below(w, f, e);
  put_source(w, e);
  schema_text_puts(&w->out, wanted ? " is false" : " is true");
  return true;
}

/* --- errors --- */

/* To the part that failed: the smallest that holds the error's offset. */
static void locate(struct finder *w, const struct frame *f, const struct expr *e, size_t offset) {
  struct value list;
  const struct step *place;
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
      struct frame inner;
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

bool expr_find(struct eval *x, const struct frame *whole, const struct expr *expr,
               enum expr_value verdict, struct expr_finding *finding) {
  struct finder w = {.x = x};
  struct expr_error *error = x->error, second = {0};
  struct text path = {0}, pointer = {0};
  x->error = &second;
  if (verdict == EXPR_FALSE) {
    if (!explain(&w, whole, expr, true) && second.code != EXPR_OUT_OF_MEMORY)
      schema_text_puts(&w.out, w.out.length ? "" : "it is false");
    finding->text = schema_text_take(&w.out);
  } else {
    schema_text_puts(&w.out, error->text);
    if (error->code == EXPR_NO_VALUE || error->code == EXPR_WRONG_TYPE ||
        error->code == EXPR_DIVISION_BY_ZERO)
      locate(&w, whole, expr, error->offset);
    finding->text = schema_text_take(&w.out);
  }
  x->error = error;
  schema_path_text(w.placed ? w.place : NULL, &path);
  schema_pointer_text(w.placed ? w.place : NULL, &pointer);
  finding->path = schema_text_take(&path);
  finding->pointer = schema_text_take(&pointer);
  schema_text_deinit(&w.out);
  if (second.code != EXPR_OUT_OF_MEMORY && finding->text && finding->path && finding->pointer)
    return true;
  error->code = EXPR_OUT_OF_MEMORY;
  (void)snprintf(error->text, sizeof error->text, "out of memory");
  return false;
}

void expr_finding_deinit(struct expr_finding *finding) {
  schema_release(finding->path);
  schema_release(finding->pointer);
  schema_release(finding->text);
  *finding = (struct expr_finding){0};
}
