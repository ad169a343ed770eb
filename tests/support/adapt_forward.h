/* adapt_forward.h - gives a canonical value the shape that an adapted schema asks for: the way back
 * of adapt_reverse, which only tests need. `value` has to be valid. Members come in the order of
 * the schema; what the adapted schema has no place for (see ADAPT_NARROWED) is left out. */
#ifndef SEGUE_TESTS_ADAPT_FORWARD_H
#define SEGUE_TESTS_ADAPT_FORWARD_H

#include "adapt/internal.h"
#include "base/memory.h"
#include "format/json_object.h"

#include <stdlib.h>
#include <string.h>

struct turning { /* one value being turned */
  const struct adapted *adapted;
  long work;
  unsigned depth;
  enum adapt_status status;
};

static json_t *turn_forth(struct turning *t, uint32_t plan, const json_t *value);

static bool stopped(const struct turning *t) {
  return t->status != ADAPT_OK;
}

static json_t *turn_keep(const json_t *value) {
  return json_incref((json_t *)value);
}

static const struct plan_member *member_of(const struct adapt_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (!strcmp(plan->members[i].name, name))
      return &plan->members[i];
  return NULL;
}

/* Sticks if the check itself failed. */
static bool branch_holds(struct turning *t, enum schema_status status) {
  if (status == SCHEMA_TOO_COMPLEX && !stopped(t))
    t->status = ADAPT_TOO_COMPLEX;
  return status == SCHEMA_OK;
}

static bool branch_accepts(struct turning *t, const struct plan_branch *branch,
                           const json_t *value) {
  return branch_holds(t, adapt_sum_check(t->adapted, &branch->sum, value));
}

static bool shape_fits(struct turning *t, const struct plan_branch *branch, const json_t *value) {
  if (!t->adapted->shapes || branch->node == NODE_NONE)
    return false;
  struct schema from = *t->adapted->shapes;
  from.root = branch->node;
  return branch_holds(t, schema_check(&from, value, NULL));
}

/* False and a status, when this is too much. */
static bool enter(struct turning *t) {
  if (stopped(t))
    return false;
  if (t->work-- <= 0 || t->depth > 2 * ADAPT_ANSWER_DEPTH_MAX)
    t->status = ADAPT_TOO_COMPLEX;
  t->depth++;
  return !stopped(t);
}

static json_t *array_forth(struct turning *t, uint32_t plan, const json_t *value) {
  json_t *out = json_array();
  JSON_EACH(value, i, one) {
    if (stopped(t))
      break;
    json_array_append_new(out, turn_forth(t, plan, one));
  }
  return out;
}

static void pair_append(json_t *pairs, const char *key, json_t *value) {
  json_t *pair = json_object();
  adapt_put(pair, "key", json_string_nocheck(key));
  adapt_put(pair, "value", value);
  json_array_append_new(pairs, pair);
}

static json_t *object_forth(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *out = json_object(), *pairs = plan->extra ? json_array() : NULL;
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const struct plan_member *member = &plan->members[i];
    const json_t *one = json_object_get(value, member->name);
    if (member->added)
      adapt_put(out, member->name, json_string(""));
    else if (one)
      adapt_put(out, member->name, turn_forth(t, member->plan, one));
    else if (t->adapted->dialect->flags & ADAPT_ALL_REQUIRED)
      adapt_put(out, member->name, json_null());
  }
  for (void *at = json_object_iter((json_t *)value); at && !stopped(t);
       at = json_object_iter_next((json_t *)value, at)) {
    const char *name = json_object_iter_key(at);
    const json_t *one = json_object_iter_value(at);
    if (member_of(plan, name))
      continue;
    if (plan->extra)
      pair_append(pairs, name, turn_forth(t, plan->rest, one));
    else if (!(t->adapted->dialect->flags & ADAPT_CLOSED))
      adapt_put(out, name,
                plan->rest != PLAN_NONE ? turn_forth(t, plan->rest, one) : turn_keep(one));
  }
  if (plan->extra)
    adapt_put(out, plan->extra, pairs);
  return out;
}

static json_t *pairs_forth(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *pairs = json_array();
  for (void *at = json_object_iter((json_t *)value); at && !stopped(t);
       at = json_object_iter_next((json_t *)value, at))
    pair_append(pairs, json_object_iter_key(at),
                turn_forth(t, plan->rest, json_object_iter_value(at)));
  return pairs;
}

static json_t *tuple_forth(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *out = json_object(), *rest = plan->extra ? json_array() : NULL;
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const json_t *item = json_array_get(value, i);
    adapt_put(out, plan->members[i].name,
              item ? turn_forth(t, plan->members[i].plan, item) : json_null());
  }
  for (size_t i = plan->count; plan->extra && i < json_array_size(value) && !stopped(t); i++)
    json_array_append_new(rest, turn_forth(t, plan->rest, json_array_get(value, i)));
  if (plan->extra)
    adapt_put(out, plan->extra, rest);
  return out;
}

static json_t *text_forth(const json_t *value) {
  size_t length;
  char_auto_t *text = adapt_json_text(value, &length);
  return json_stringn(text, length);
}

/* The text of the value as it stands in the enum. */
static json_t *enum_forth(const struct adapt_plan *plan, const json_t *value) {
  JSON_EACH(plan->texts, i, one) {
    int64_t work = ADAPT_WORK_MAX;
    if (schema_value_equal(one, value, &work))
      return text_forth(one);
  }
  return turn_keep(value);
}

static json_t *union_forth(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *first = NULL;
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const struct plan_branch *branch = &plan->branches[i];
    if (!branch_accepts(t, branch, value))
      continue;
    json_t *image = turn_forth(t, branch->plan, value);
    if (image && shape_fits(t, branch, image)) {
      json_decref(first);
      return image;
    }
    if (first)
      json_decref(image);
    else
      first = image;
  }
  return first ? first : turn_keep(value);
}

static json_t *turn_forth(struct turning *t, uint32_t index, const json_t *value) {
  if (index == PLAN_NONE)
    return turn_keep(value);
  const struct adapt_plan *plan = &t->adapted->plans[index];
  json_t *out = NULL;
  if (!enter(t))
    return NULL;
  switch (plan->kind) {
  case PLAN_OPEN:
  case PLAN_SAME:
    out = turn_keep(value);
    break;
  case PLAN_OBJECT:
    out = json_is_object(value) ? object_forth(t, plan, value) : turn_keep(value);
    break;
  case PLAN_ARRAY:
    out = json_is_array(value) ? array_forth(t, plan->rest, value) : turn_keep(value);
    break;
  case PLAN_PAIRS:
    out = json_is_object(value) ? pairs_forth(t, plan, value) : turn_keep(value);
    break;
  case PLAN_TUPLE:
    out = json_is_array(value) ? tuple_forth(t, plan, value) : turn_keep(value);
    break;
  case PLAN_TEXT:
    out = text_forth(value);
    break;
  case PLAN_ENUM:
    out = enum_forth(plan, value);
    break;
  case PLAN_UNION:
    out = union_forth(t, plan, value);
    break;
  }
  t->depth--;
  return out;
}

static enum adapt_status adapt_forward(const struct adapted *adapted, const json_t *value,
                                       json_t **image) {
  struct turning t = {adapted, ADAPT_WORK_MAX, 0, ADAPT_OK};
  json_t *made = NULL;
  if (schema_value_too_deep(value, ADAPT_ANSWER_DEPTH_MAX))
    t.status = ADAPT_TOO_COMPLEX;
  else
    made = turn_forth(&t, adapted->root, value);
  if (adapted->wrap && !stopped(&t)) {
    json_t *outer = json_object();
    if (adapted->lead)
      adapt_put(outer, adapted->lead, json_string(""));
    adapt_put(outer, adapted->wrap, made);
    made = outer;
  }
  *image = made;
  if (!stopped(&t))
    return ADAPT_OK;
  json_decref(made);
  *image = NULL;
  return t.status;
}

#endif
