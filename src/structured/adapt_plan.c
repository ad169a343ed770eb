/* Values from shape to shape, along the plans. */
#include "structured/adapt_internal.h"

#include <stdlib.h>
#include <string.h>

struct turn { /* one value being turned */
  const struct adapted *adapted;
  long work;
  unsigned depth;
  enum adapt_status status;
};

static json_t *turn_back(struct turn *t, uint32_t plan, const json_t *value);
static json_t *turn_forth(struct turn *t, uint32_t plan, const json_t *value);
typedef json_t *turn_fn(struct turn *t, uint32_t plan, const json_t *value);

static bool stopped(const struct turn *t) {
  return t->status != ADAPT_OK;
}

static json_t *keep(const json_t *value) {
  return json_incref((json_t *)value);
}

/* What could not be made or set is out of memory. Takes `value`. */
static void put(struct turn *t, json_t *object, const char *key, json_t *value) {
  if (json_object_set_new_nocheck(object, key, value) != 0 && !stopped(t))
    t->status = ADAPT_OUT_OF_MEMORY;
}
static void append(struct turn *t, json_t *array, json_t *value) {
  if (json_array_append_new(array, value) != 0 && !stopped(t))
    t->status = ADAPT_OUT_OF_MEMORY;
}

static json_t *each_item(struct turn *t, uint32_t plan, const json_t *value, turn_fn *turn) {
  json_t *out = json_array(), *one;
  size_t i;
  json_array_foreach((json_t *)value, i, one) {
    if (stopped(t))
      break;
    append(t, out, turn(t, plan, one));
  }
  return out;
}

static const struct plan_member *member_of(const struct plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (!strcmp(plan->members[i].name, name))
      return &plan->members[i];
  return NULL;
}

/* --- back --- */

/* Pairs into an object; false if it is no list of pairs. */
static bool pairs_back(struct turn *t, uint32_t plan, const json_t *pairs, json_t *out) {
  const json_t *pair;
  size_t i;
  if (!json_is_array(pairs))
    return false;
  json_array_foreach((json_t *)pairs, i, pair) {
    if (!json_is_string(json_object_get(pair, "key")) || !json_object_get(pair, "value"))
      return false;
    const char *key = json_string_value(json_object_get(pair, "key"));
    if (strlen(key) != json_string_length(json_object_get(pair, "key")))
      return false;
  }
  json_array_foreach((json_t *)pairs, i, pair) {
    if (stopped(t))
      break;
    put(t, out, json_string_value(json_object_get(pair, "key")),
        turn_back(t, plan, json_object_get(pair, "value")));
  }
  return true;
}

static json_t *object_back(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *out = json_object();
  for (void *at = json_object_iter((json_t *)value); at && !stopped(t);
       at = json_object_iter_next((json_t *)value, at)) {
    const char *name = json_object_iter_key(at);
    const json_t *one = json_object_iter_value(at);
    const struct plan_member *member = member_of(plan, name);
    if (member && (member->added || (member->null_absent && json_is_null(one))))
      continue;
    if (!member && plan->extra && !strcmp(name, plan->extra) && pairs_back(t, plan->rest, one, out))
      continue;
    if (member)
      put(t, out, name, turn_back(t, member->plan, one));
    else if (plan->rest != PLAN_NONE && !plan->extra)
      put(t, out, name, turn_back(t, plan->rest, one));
    else
      put(t, out, name, keep(one));
  }
  return out;
}

static json_t *tuple_back(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *out = json_array(), *one;
  uint32_t count = plan->count;
  const json_t *rest = plan->extra ? json_object_get(value, plan->extra) : NULL;
  for (; count > 0; count--) { /* the last ones may have been left out */
    const struct plan_member *last = &plan->members[count - 1];
    const json_t *item = json_object_get(value, last->name);
    if (json_array_size(rest) > 0 || (item && !(last->null_absent && json_is_null(item))))
      break;
  }
  for (uint32_t i = 0; i < count && !stopped(t); i++) {
    const json_t *item = json_object_get(value, plan->members[i].name);
    append(t, out, item ? turn_back(t, plan->members[i].plan, item) : json_null());
  }
  size_t i;
  json_array_foreach((json_t *)rest, i, one) {
    if (stopped(t))
      break;
    append(t, out, turn_back(t, plan->rest, one));
  }
  return out;
}

static json_t *text_back(struct turn *t, const json_t *value) {
  json_error_t error;
  json_t *out = json_loadb(json_string_value(value), json_string_length(value),
                           JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
  if (!out && json_error_code(&error) == json_error_out_of_memory)
    t->status = ADAPT_OUT_OF_MEMORY;
  return out ? out : keep(value);
}

static json_t *enum_back(struct turn *t, const struct plan *plan, const json_t *value) {
  size_t i;
  json_t *one;
  json_array_foreach(plan->texts, i, one) {
    size_t length = json_dumpb(one, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    if (length != json_string_length(value))
      continue;
    char *text = schema_alloc(length + 1);
    if (!text) {
      t->status = ADAPT_OUT_OF_MEMORY;
      return NULL;
    }
    json_dumpb(one, text, length, JSON_COMPACT | JSON_ENCODE_ANY);
    bool same = !memcmp(text, json_string_value(value), length);
    schema_release(text);
    if (same)
      return json_deep_copy(one);
  }
  return keep(value);
}

/* Sticks if the check itself failed. */
static bool holds(struct turn *t, enum schema_status status) {
  if (status == SCHEMA_OUT_OF_MEMORY && !stopped(t))
    t->status = ADAPT_OUT_OF_MEMORY;
  else if (status == SCHEMA_TOO_COMPLEX && !stopped(t))
    t->status = ADAPT_TOO_COMPLEX;
  return status == SCHEMA_OK;
}

static bool accepted(struct turn *t, const struct plan_branch *branch, const json_t *value) {
  return holds(t, adapt_sum_check(t->adapted, &branch->sum, value));
}

static bool shape_fits(struct turn *t, const struct plan_branch *branch, const json_t *value) {
  if (!t->adapted->shapes || branch->node == NODE_NONE)
    return false;
  struct schema from = *t->adapted->shapes;
  from.root = branch->node;
  return holds(t, schema_check(&from, value, NULL));
}

/* The first branch that has the value's shape and gives what its part of the canonical schema
 * accepts; else the first that has its shape; else one that gives what is accepted. */
static json_t *union_back(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *first = NULL;
  uint32_t fitting = 0, last = 0;
  for (uint32_t i = 0; i < plan->count; i++)
    if (shape_fits(t, &plan->branches[i], value)) {
      fitting++;
      last = i;
    }
  if (fitting == 1)
    return turn_back(t, plan->branches[last].plan, value);
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const struct plan_branch *branch = &plan->branches[i];
    if (fitting && !shape_fits(t, branch, value))
      continue;
    json_t *back = turn_back(t, branch->plan, value);
    if (back && accepted(t, branch, back)) {
      json_decref(first);
      return back;
    }
    if (!first && fitting)
      first = back;
    else
      json_decref(back);
  }
  return first ? first : keep(value);
}

/* False and a status, when this is too much. */
static bool enter(struct turn *t) {
  if (stopped(t))
    return false;
  if (t->work-- <= 0 || t->depth > 2 * ADAPT_ANSWER_DEPTH_MAX)
    t->status = ADAPT_TOO_COMPLEX;
  t->depth++;
  return !stopped(t);
}

static json_t *turn_back(struct turn *t, uint32_t index, const json_t *value) {
  if (index == PLAN_NONE)
    return keep(value);
  const struct plan *plan = &t->adapted->plans[index];
  json_t *out = NULL;
  if (!enter(t))
    return NULL;
  switch (plan->kind) {
  case PLAN_OPEN:
  case PLAN_SAME:
    out = keep(value);
    break;
  case PLAN_OBJECT:
    out = json_is_object(value) ? object_back(t, plan, value) : keep(value);
    break;
  case PLAN_ARRAY:
    out = json_is_array(value) ? each_item(t, plan->rest, value, turn_back) : keep(value);
    break;
  case PLAN_PAIRS:
    out = json_object();
    if (out && !pairs_back(t, plan->rest, value, out)) {
      json_decref(out);
      out = keep(value);
    }
    break;
  case PLAN_TUPLE:
    out = json_is_object(value) ? tuple_back(t, plan, value) : keep(value);
    break;
  case PLAN_TEXT:
    out = json_is_string(value) ? text_back(t, value) : keep(value);
    break;
  case PLAN_ENUM:
    out = json_is_string(value) ? enum_back(t, plan, value) : keep(value);
    break;
  case PLAN_UNION:
    out = union_back(t, plan, value);
    break;
  }
  t->depth--;
  if (!out && !stopped(t))
    t->status = ADAPT_OUT_OF_MEMORY;
  return out;
}

/* --- forth --- */

static void pair_append(struct turn *t, json_t *pairs, const char *key, json_t *value) {
  json_t *pair = json_object();
  put(t, pair, "key", json_string_nocheck(key));
  put(t, pair, "value", value);
  append(t, pairs, pair);
}

static json_t *object_forth(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *out = json_object(), *pairs = plan->extra ? json_array() : NULL;
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const struct plan_member *member = &plan->members[i];
    const json_t *one = json_object_get(value, member->name);
    if (member->added)
      put(t, out, member->name, json_string(""));
    else if (one)
      put(t, out, member->name, turn_forth(t, member->plan, one));
    else if (t->adapted->dialect->flags & ADAPT_ALL_REQUIRED)
      put(t, out, member->name, json_null());
  }
  for (void *at = json_object_iter((json_t *)value); at && !stopped(t);
       at = json_object_iter_next((json_t *)value, at)) {
    const char *name = json_object_iter_key(at);
    const json_t *one = json_object_iter_value(at);
    if (member_of(plan, name))
      continue;
    if (plan->extra)
      pair_append(t, pairs, name, turn_forth(t, plan->rest, one));
    else if (!(t->adapted->dialect->flags & ADAPT_CLOSED))
      put(t, out, name, plan->rest != PLAN_NONE ? turn_forth(t, plan->rest, one) : keep(one));
  }
  if (plan->extra)
    put(t, out, plan->extra, pairs);
  return out;
}

static json_t *pairs_forth(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *pairs = json_array();
  for (void *at = json_object_iter((json_t *)value); at && !stopped(t);
       at = json_object_iter_next((json_t *)value, at))
    pair_append(t, pairs, json_object_iter_key(at),
                turn_forth(t, plan->rest, json_object_iter_value(at)));
  return pairs;
}

static json_t *tuple_forth(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *out = json_object(), *rest = plan->extra ? json_array() : NULL;
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const json_t *item = json_array_get(value, i);
    put(t, out, plan->members[i].name,
        item ? turn_forth(t, plan->members[i].plan, item) : json_null());
  }
  for (size_t i = plan->count; plan->extra && i < json_array_size(value) && !stopped(t); i++)
    append(t, rest, turn_forth(t, plan->rest, json_array_get(value, i)));
  if (plan->extra)
    put(t, out, plan->extra, rest);
  return out;
}

static json_t *text_forth(struct turn *t, const json_t *value) {
  size_t length = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
  char *text = schema_alloc(length + 1);
  if (!text || length == 0) {
    schema_release(text);
    t->status = ADAPT_OUT_OF_MEMORY;
    return NULL;
  }
  json_dumpb(value, text, length, JSON_COMPACT | JSON_ENCODE_ANY);
  json_t *out = json_stringn(text, length);
  schema_release(text);
  return out;
}

/* The text of the value as it stands in the enum. */
static json_t *enum_forth(struct turn *t, const struct plan *plan, const json_t *value) {
  size_t i;
  const json_t *one;
  json_array_foreach(plan->texts, i, one) {
    int64_t work = ADAPT_WORK_MAX;
    if (schema_value_equal(one, value, &work))
      return text_forth(t, one);
  }
  return keep(value);
}

static json_t *union_forth(struct turn *t, const struct plan *plan, const json_t *value) {
  json_t *first = NULL;
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const struct plan_branch *branch = &plan->branches[i];
    if (!accepted(t, branch, value))
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
  return first ? first : keep(value);
}

static json_t *turn_forth(struct turn *t, uint32_t index, const json_t *value) {
  if (index == PLAN_NONE)
    return keep(value);
  const struct plan *plan = &t->adapted->plans[index];
  json_t *out = NULL;
  if (!enter(t))
    return NULL;
  switch (plan->kind) {
  case PLAN_OPEN:
  case PLAN_SAME:
    out = keep(value);
    break;
  case PLAN_OBJECT:
    out = json_is_object(value) ? object_forth(t, plan, value) : keep(value);
    break;
  case PLAN_ARRAY:
    out = json_is_array(value) ? each_item(t, plan->rest, value, turn_forth) : keep(value);
    break;
  case PLAN_PAIRS:
    out = json_is_object(value) ? pairs_forth(t, plan, value) : keep(value);
    break;
  case PLAN_TUPLE:
    out = json_is_array(value) ? tuple_forth(t, plan, value) : keep(value);
    break;
  case PLAN_TEXT:
    out = text_forth(t, value);
    break;
  case PLAN_ENUM:
    out = enum_forth(t, plan, value);
    break;
  case PLAN_UNION:
    out = union_forth(t, plan, value);
    break;
  }
  t->depth--;
  if (!out && !stopped(t))
    t->status = ADAPT_OUT_OF_MEMORY;
  return out;
}

static enum adapt_status finish(struct turn *t, json_t *made, json_t **out) {
  *out = NULL;
  if (stopped(t)) {
    json_decref(made);
    return t->status;
  }
  *out = made;
  return ADAPT_OK;
}

/* What is in the object that was put around the root; an answer without it is left as it is. */
static const json_t *unwrap(const struct adapted *adapted, const json_t *answer) {
  const json_t *inner = adapted->wrap ? json_object_get(answer, adapted->wrap) : NULL;
  size_t own = adapted->lead && json_object_get(answer, adapted->lead) ? 2 : 1;
  return inner && json_object_size(answer) == own ? inner : answer;
}

enum adapt_status adapt_reverse(const struct adapted *adapted, const json_t *answer,
                                json_t **value) {
  struct turn t = {adapted, ADAPT_WORK_MAX, 0, ADAPT_OK};
  json_t *made = NULL;
  if (schema_value_too_deep(answer, ADAPT_ANSWER_DEPTH_MAX))
    t.status = ADAPT_TOO_COMPLEX;
  else
    made = turn_back(&t, adapted->root, unwrap(adapted, answer));
  return finish(&t, made, value);
}

enum adapt_status adapt_forward(const struct adapted *adapted, const json_t *value,
                                json_t **image) {
  struct turn t = {adapted, ADAPT_WORK_MAX, 0, ADAPT_OK};
  json_t *made = NULL;
  if (schema_value_too_deep(value, ADAPT_ANSWER_DEPTH_MAX))
    t.status = ADAPT_TOO_COMPLEX;
  else
    made = turn_forth(&t, adapted->root, value);
  if (adapted->wrap && !stopped(&t)) {
    json_t *outer = json_object();
    if (adapted->lead)
      put(&t, outer, adapted->lead, json_string(""));
    put(&t, outer, adapted->wrap, made);
    made = outer;
  }
  return finish(&t, made, image);
}

/* --- telling branches apart --- */

/* The number in "/anyOf/12" below the root; SIZE_MAX if the entry is none of these. */
static size_t branch_index(const struct schema *shapes, size_t entry) {
  static const char under[] = "/anyOf/";
  const struct entry *e = &shapes->entries[entry];
  if (entry == 0 || e->parent != 0 || strncmp(e->suffix, under, sizeof under - 1) != 0)
    return SIZE_MAX;
  const char *digits = e->suffix + sizeof under - 1;
  return digits[strspn(digits, "0123456789")] ? SIZE_MAX : strtoul(digits, NULL, 10);
}

bool adapt_shapes_compile(struct adapter *a) {
  struct adapted *out = a->out;
  json_t *all = adapt_array(a), *doc = adapt_object(a), *definitions;
  enum schema_status status = SCHEMA_OK;
  for (size_t i = 0; i < out->plan_count; i++)
    for (uint32_t k = 0; out->plans[i].kind == PLAN_UNION && k < out->plans[i].count; k++)
      adapt_append(a, all, json_incref(out->plans[i].branches[k].shape));
  bool any = json_array_size(all) > 0;
  adapt_put(a, doc, "anyOf", all);
  definitions = json_object_get(out->schema, "$defs");
  if (definitions)
    adapt_put(a, doc, "$defs", json_incref(definitions));
  if (any && !adapter_stopped(a)) {
    out->shapes = schema_compile(doc, NULL, NULL, &status);
    if (status == SCHEMA_OUT_OF_MEMORY)
      adapt_no_memory(a);
    else if (!out->shapes)
      adapt_fail(a, ADAPT_TOO_COMPLEX, NODE_NONE, "", "the alternatives are too many");
  }
  json_decref(doc);
  if (!any || adapter_stopped(a))
    return !adapter_stopped(a);
  const struct schema *shapes = out->shapes;
  size_t branches = 0, next = 0;
  for (size_t i = 0; i < shapes->entry_count; i++)
    branches += branch_index(shapes, i) != SIZE_MAX;
  uint32_t *nodes = schema_alloc(branches * sizeof *nodes);
  if (!nodes)
    return adapt_no_memory(a);
  for (size_t i = 0; i < shapes->entry_count; i++) {
    size_t index = branch_index(shapes, i);
    if (index < branches)
      nodes[index] = shapes->entries[i].node;
  }
  for (size_t i = 0; i < out->plan_count; i++)
    for (uint32_t k = 0; out->plans[i].kind == PLAN_UNION && k < out->plans[i].count; k++, next++)
      out->plans[i].branches[k].node = next < branches ? nodes[next] : NODE_NONE;
  schema_release(nodes);
  return true;
}
