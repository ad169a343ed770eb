/* Turns values from one shape into the other, following the plans. */
#include "adapt/internal.h"

#include "format/json_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct turning { /* one value being turned */
  const struct adapted *adapted;
  long work;
  unsigned depth;
  enum adapt_status status;
};

static json_t *turn_back(struct turning *t, uint32_t plan, const json_t *value);

static bool stopped(const struct turning *t) {
  return t->status != ADAPT_OK;
}

static json_t *turn_keep(const json_t *value) {
  return json_incref((json_t *)value);
}

/* Appends the items of a list to `out`, which it returns. */
static json_t *items_back(struct turning *t, uint32_t plan, const json_t *value, json_t *out) {
  json_t *one;
  size_t i;
  json_array_foreach((json_t *)value, i, one) {
    if (stopped(t))
      break;
    json_array_append_new(out, turn_back(t, plan, one));
  }
  return out;
}

static const struct plan_member *member_of(const struct adapt_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (!strcmp(plan->members[i].name, name))
      return &plan->members[i];
  return NULL;
}

/* --- back --- */

/* Puts a member; one whose name is taken gets U+0000 behind it. */
static void plan_put(json_t *out, const char *name, json_t *value) {
  size_t n = strlen(name) + (json_object_get(out, name) != NULL);
  json_object_setn_new_nocheck(out, name, n, value);
}

/* Turns pairs into an object. Returns false if it is no list of pairs. */
static bool pairs_back(struct turning *t, uint32_t plan, const json_t *pairs, json_t *out) {
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
    plan_put(out, json_string_value(json_object_get(pair, "key")),
             turn_back(t, plan, json_object_get(pair, "value")));
  }
  return true;
}

static json_t *object_back(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
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
      plan_put(out, name, turn_back(t, member->plan, one));
    else if (plan->rest != PLAN_NONE && !plan->extra)
      adapt_put(out, name, turn_back(t, plan->rest, one));
    else
      plan_put(out, name, turn_keep(one));
  }
  return out;
}

static json_t *tuple_back(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *out = json_array();
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
    json_array_append_new(out, item ? turn_back(t, plan->members[i].plan, item) : json_null());
  }
  return items_back(t, plan->rest, rest, out);
}

static json_t *text_back(const json_t *value) {
  json_error_t error;
  json_t *out = json_loadb(json_string_value(value), json_string_length(value),
                           JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
  if (out == NULL && json_error_code(&error) == json_error_duplicate_key) {
    out = json_object();
    json_object_setn_new_nocheck(out, "", 1, turn_keep(value));
  }
  return out ? out : turn_keep(value);
}

static json_t *enum_back(const struct adapt_plan *plan, const json_t *value) {
  size_t i;
  json_t *one;
  json_array_foreach(plan->texts, i, one) {
    size_t length;
    char *text = adapt_json_text(one, &length);
    bool same =
        length == json_string_length(value) && memcmp(text, json_string_value(value), length) == 0;
    free(text);
    if (same)
      return json_clone(one);
  }
  return turn_keep(value);
}

/* Returns true if the branch holds. If the check itself failed, that sticks. */
static bool branch_holds(struct turning *t, enum schema_status status) {
  if (status == SCHEMA_TOO_COMPLEX && !stopped(t))
    t->status = ADAPT_TOO_COMPLEX;
  return status == SCHEMA_OK;
}

static bool shape_fits(struct turning *t, const struct plan_branch *branch, const json_t *value) {
  if (!t->adapted->shapes || branch->node == NODE_NONE)
    return false;
  struct schema from = *t->adapted->shapes;
  from.root = branch->node;
  return branch_holds(t, schema_check(&from, value, NULL));
}

/* Picks the first branch that has the value's shape and gives something its part of the canonical
 * schema accepts; else the first with its shape; else one whose result is accepted. */
static json_t *union_back(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
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
    if (back && branch_holds(t, adapt_sum_check(t->adapted, &branch->sum, back))) {
      json_decref(first);
      return back;
    }
    if (!first && fitting)
      first = back;
    else
      json_decref(back);
  }
  return first ? first : turn_keep(value);
}

/* Returns false, with a status, if this exceeds a bound. */
static bool enter(struct turning *t) {
  if (stopped(t))
    return false;
  if (t->work-- <= 0 || t->depth > 2 * ADAPT_ANSWER_DEPTH_MAX)
    t->status = ADAPT_TOO_COMPLEX;
  t->depth++;
  return !stopped(t);
}

static json_t *turn_back(struct turning *t, uint32_t index, const json_t *value) {
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
    out = json_is_object(value) ? object_back(t, plan, value) : turn_keep(value);
    break;
  case PLAN_ARRAY:
    out = json_is_array(value) ? items_back(t, plan->rest, value, json_array()) : turn_keep(value);
    break;
  case PLAN_PAIRS:
    out = json_object();
    if (!pairs_back(t, plan->rest, value, out)) {
      json_decref(out);
      out = turn_keep(value);
    }
    break;
  case PLAN_TUPLE:
    out = json_is_object(value) ? tuple_back(t, plan, value) : turn_keep(value);
    break;
  case PLAN_TEXT:
    out = json_is_string(value) ? text_back(value) : turn_keep(value);
    break;
  case PLAN_ENUM:
    out = json_is_string(value) ? enum_back(plan, value) : turn_keep(value);
    break;
  case PLAN_UNION:
    out = union_back(t, plan, value);
    break;
  }
  t->depth--;
  return out;
}

/* --- the whole --- */

/* Removes the object that was put around the root; an answer without it is left alone. */
static const json_t *unwrap(const struct adapted *adapted, const json_t *answer) {
  const json_t *inner = adapted->wrap ? json_object_get(answer, adapted->wrap) : NULL;
  size_t own = adapted->lead && json_object_get(answer, adapted->lead) ? 2 : 1;
  return inner && json_object_size(answer) == own ? inner : answer;
}

enum adapt_status adapt_reverse(const struct adapted *adapted, const json_t *answer,
                                json_t **value) {
  assert(adapted != NULL && value != NULL);
  struct turning t = {adapted, ADAPT_WORK_MAX, 0, ADAPT_OK};
  json_t *made = NULL;
  assert(answer != NULL);
  if (schema_value_too_deep(answer, ADAPT_ANSWER_DEPTH_MAX))
    t.status = ADAPT_TOO_COMPLEX;
  else
    made = turn_back(&t, adapted->root, unwrap(adapted, answer));
  *value = NULL;
  if (stopped(&t)) {
    json_decref(made);
    return t.status;
  }
  *value = made;
  return ADAPT_OK;
}

/* --- telling branches apart --- */

/* Returns the number in "/anyOf/12" below the root, SIZE_MAX if the entry is none of these. */
static size_t branch_index(const struct schema *shapes, size_t entry) {
  static const char under[] = "/anyOf/";
  const struct schema_entry *e = &shapes->entries[entry];
  if (entry == 0 || e->parent != 0 || strncmp(e->suffix, under, sizeof under - 1) != 0)
    return SIZE_MAX;
  const char *digits = e->suffix + sizeof under - 1;
  return digits[strspn(digits, "0123456789")] ? SIZE_MAX : strtoul(digits, NULL, 10);
}

bool adapt_shapes_compile(struct adapter *a) {
  struct adapted *out = a->out;
  json_t *all = json_array(), *doc = json_object(), *definitions;
  for (size_t i = 0; i < out->plan_count; i++)
    for (uint32_t k = 0; out->plans[i].kind == PLAN_UNION && k < out->plans[i].count; k++)
      json_array_append(all, out->plans[i].branches[k].shape);
  bool any = json_array_size(all) > 0;
  adapt_put(doc, "anyOf", all);
  definitions = json_object_get(out->schema, "$defs");
  if (definitions)
    adapt_put(doc, "$defs", json_incref(definitions));
  if (any && !adapter_stopped(a)) {
    out->shapes = schema_compile(doc, NULL, NULL, NULL);
    if (!out->shapes)
      adapt_fail(a, ADAPT_TOO_COMPLEX, NODE_NONE, "", "the alternatives are too many");
  }
  json_decref(doc);
  if (!any || adapter_stopped(a))
    return !adapter_stopped(a);
  const struct schema *shapes = out->shapes;
  size_t branches = 0, next = 0;
  for (size_t i = 0; i < shapes->entry_count; i++)
    branches += branch_index(shapes, i) != SIZE_MAX;
  uint32_t *nodes = xmalloc(branches * sizeof *nodes);
  for (size_t i = 0; i < shapes->entry_count; i++) {
    size_t index = branch_index(shapes, i);
    if (index < branches)
      nodes[index] = shapes->entries[i].node;
  }
  for (size_t i = 0; i < out->plan_count; i++)
    for (uint32_t k = 0; out->plans[i].kind == PLAN_UNION && k < out->plans[i].count; k++, next++)
      out->plans[i].branches[k].node = next < branches ? nodes[next] : NODE_NONE;
  free(nodes);
  return true;
}
