/* Arrays and tuples. */
#include "structured/adapt_internal.h"

#include <stdio.h>
#include <string.h>

static struct built item_of(struct adapter *a, const struct sum *sum) {
  a->descents++;
  struct built built = adapt_build(a, sum);
  a->descents--;
  return built;
}

static void words_of(struct adapter *a, const struct view *view, json_t *schema,
                     struct words *words, uint64_t except) {
  for (size_t i = 0; i < view->word_count && !adapter_stopped(a); i++)
    if (adapt_keyword_types(view->words[i].id) == T_ARRAY && !(except & KEEP(view->words[i].id)))
      adapt_keyword(a, schema, words, &view->words[i], T_ARRAY);
}

static json_t *array_schema(struct adapter *a) {
  json_t *schema = adapt_object(a);
  adapt_put(a, schema, "type", adapt_string(a, "array"));
  return schema;
}

/* Only [] will do. */
static struct built empty_array(struct adapter *a, const struct view *view, struct words *words) {
  struct built built = {NULL, PLAN_NONE};
  uint64_t least = 0;
  json_t *items = adapt_object(a);
  if (!adapt_view_count(view, K_MIN_ITEMS, &least) || least == 0) {
    built = (struct built){array_schema(a), adapt_plan_new(a, PLAN_SAME)};
    adapt_put(a, items, "type", adapt_string(a, "null"));
    adapt_put(a, built.schema, "items", json_incref(items));
    uint32_t entry = view->flat.count ? view->flat.items[0].entry : 0;
    if (a->dialect->keeps & KEEP(K_MAX_ITEMS)) {
      adapt_put(a, built.schema, "maxItems", json_integer(0));
      adapt_changed(a, entry, "items", NULL, ADAPT_REWRITTEN, "no items: at most 0");
    } else {
      adapt_words_add(words, "always empty");
      adapt_changed(a, entry, "items", NULL, ADAPT_DESCRIBED, "the keyword is not supported");
    }
  }
  json_decref(items);
  return built;
}

static struct built list_of(struct adapter *a, const struct view *view, struct words *words) {
  uint64_t most = 1;
  if (view->items_closed || (adapt_view_count(view, K_MAX_ITEMS, &most) && most == 0))
    return empty_array(a, view, words);
  struct built item = item_of(a, &view->items);
  if (!item.schema)
    return adapter_stopped(a) ? item : empty_array(a, view, words);
  bool same = adapt_plan_same(a, item.plan);
  struct built built = {array_schema(a), adapt_plan_new(a, same ? PLAN_SAME : PLAN_ARRAY)};
  adapt_put(a, built.schema, "items", item.schema);
  if (built.plan != PLAN_NONE)
    a->out->plans[built.plan].rest = item.plan;
  words_of(a, view, built.schema, words, 0);
  return built;
}

struct tuple {
  uint32_t count; /* positions that can be there */
  uint64_t least; /* of them that must */
  bool closed;    /* nothing beyond */
};

/* False: no array has enough items. */
static bool tuple_measure(const struct view *view, struct built *items, struct tuple *tuple) {
  uint64_t most;
  tuple->count = view->prefix_count;
  tuple->least = 0;
  adapt_view_count(view, K_MIN_ITEMS, &tuple->least);
  tuple->closed = view->items_closed || (view->items_open && tuple->least <= tuple->count);
  for (uint32_t i = 0; i < tuple->count; i++)
    if (!items[i].schema) {
      tuple->count = i;
      tuple->closed = true;
    }
  if (adapt_view_count(view, K_MAX_ITEMS, &most) && most <= tuple->count) {
    tuple->count = (uint32_t)most;
    tuple->closed = true;
  }
  return tuple->least <= tuple->count || !tuple->closed;
}

/* {"type":"array","prefixItems":[...]}, where the dialect means by it what we do. */
static struct built tuple_native(struct adapter *a, const struct view *view, struct built *items,
                                 const struct tuple *tuple, struct words *words) {
  struct built built = {array_schema(a), PLAN_NONE};
  json_t *list = adapt_array(a);
  for (uint32_t i = 0; i < tuple->count; i++)
    adapt_append(a, list, json_incref(items[i].schema));
  adapt_put(a, built.schema, "prefixItems", list);
  if (adapt_has(a, ADAPT_GRAMMAR)) { /* its tuples have one length, but it takes no `false` */
    adapt_put(a, built.schema, "minItems", json_integer(tuple->count));
    adapt_put(a, built.schema, "maxItems", json_integer(tuple->count));
  } else if (view->items_closed || tuple->count < view->prefix_count) {
    adapt_put(a, built.schema, "items", json_false());
  }
  built.plan = adapt_plan_new(a, PLAN_SAME);
  words_of(a, view, built.schema, words,
           adapt_has(a, ADAPT_GRAMMAR) ? KEEP(K_MIN_ITEMS) | KEEP(K_MAX_ITEMS) : 0);
  return built;
}

static void tuple_rest(struct adapter *a, const struct view *view, const struct tuple *tuple,
                       json_t *properties, json_t *required, struct plan *plan) {
  struct built item = item_of(a, &view->items);
  if (!item.schema)
    return;
  json_t *rest = array_schema(a);
  adapt_put(a, rest, "items", item.schema);
  uint64_t most;
  if (adapt_view_count(view, K_MAX_ITEMS, &most) && a->dialect->keeps & KEEP(K_MAX_ITEMS) &&
      !a->opts->words_only)
    adapt_put(a, rest, "maxItems", json_integer((json_int_t)(most - tuple->count)));
  adapt_put(a, properties, "rest", rest);
  adapt_append(a, required, adapt_string(a, "rest"));
  plan->extra = "rest";
  plan->rest = item.plan;
}

static struct built tuple_object(struct adapter *a, const struct view *view, struct built *items,
                                 const struct tuple *tuple, struct words *words) {
  struct built built = {adapt_object(a), adapt_plan_new(a, PLAN_TUPLE)};
  json_t *properties = adapt_object(a), *required = adapt_array(a);
  struct plan plan = {.kind = PLAN_TUPLE, .count = tuple->count, .rest = PLAN_NONE};
  bool loose = false;
  plan.members = schema_arena_get(&a->out->arena, (tuple->count + 1) * sizeof *plan.members);
  for (uint32_t i = 0; plan.members && i < tuple->count; i++) {
    char name[32];
    int n = snprintf(name, sizeof name, "item_%u", (unsigned)i);
    struct plan_member *member = &plan.members[i];
    member->name = schema_arena_copy(&a->out->arena, name, (size_t)n);
    member->plan = items[i].plan;
    member->optional = i >= tuple->least;
    member->null_absent = member->optional && !adapt_sum_accepts(a, &view->prefix[i], json_null());
    loose = loose || member->optional;
    json_t *schema = json_incref(items[i].schema);
    adapt_put(a, properties, name, member->optional ? adapt_nullable(a, schema) : schema);
    adapt_append(a, required, adapt_string(a, name));
    if (!member->name)
      adapt_no_memory(a);
  }
  if (!plan.members)
    adapt_no_memory(a);
  if (!tuple->closed)
    tuple_rest(a, view, tuple, properties, required, &plan);
  adapt_put(a, built.schema, "type", adapt_string(a, "object"));
  adapt_put(a, built.schema, "properties", properties);
  adapt_put(a, built.schema, "required", required);
  adapt_put(a, built.schema, "additionalProperties", json_false());
  if (adapt_has(a, ADAPT_ORDERING))
    adapt_put(a, built.schema, "propertyOrdering", json_copy(required));
  if (built.plan != PLAN_NONE)
    a->out->plans[built.plan] = plan;
  adapt_changed(a, view->prefix_entry, "prefixItems", NULL, ADAPT_REWRITTEN,
                "positions are properties");
  if (loose)
    adapt_changed(a, view->prefix_entry, "prefixItems", NULL, ADAPT_DROPPED,
                  "that only the last positions can be left out is not enforced");
  for (size_t i = 0; i < view->word_count && !adapter_stopped(a); i++) {
    const struct view_word *word = &view->words[i];
    bool met =
        (word->id == K_MIN_ITEMS && tuple->least <= tuple->count) ||
        (word->id == K_MAX_ITEMS && (tuple->closed || a->dialect->keeps & KEEP(K_MAX_ITEMS)));
    if (adapt_keyword_types(word->id) == T_ARRAY && !met)
      adapt_words_keyword(a, words, word, "positions are properties");
  }
  return built;
}

struct built adapt_array_of(struct adapter *a, const struct view *view, struct words *words) {
  struct built built = {NULL, PLAN_NONE};
  if (!view->prefix_count)
    return list_of(a, view, words);
  struct built *items = schema_arena_get(&a->out->arena, view->prefix_count * sizeof *items);
  if (!items) {
    adapt_no_memory(a);
    return built;
  }
  bool same = true;
  for (uint32_t i = 0; i < view->prefix_count && !adapter_stopped(a); i++) {
    items[i] = item_of(a, &view->prefix[i]);
    same = same && (!items[i].schema || adapt_plan_same(a, items[i].plan));
  }
  struct tuple tuple;
  if (!adapter_stopped(a) && tuple_measure(view, items, &tuple)) {
    bool exact = tuple.count == view->prefix_count && tuple.closed && tuple.least >= tuple.count &&
                 view->items_closed;
    if (tuple.count == 0)
      built = empty_array(a, view, words);
    else if (same && a->dialect->keeps & KEEP(K_PREFIX_ITEMS) && tuple.closed &&
             (!adapt_has(a, ADAPT_GRAMMAR) || exact))
      built = tuple_native(a, view, items, &tuple, words);
    else
      built = tuple_object(a, view, items, &tuple, words);
    if (built.schema && view->items_open && tuple.count == view->prefix_count)
      adapt_changed(a, view->prefix_entry, "items", NULL, ADAPT_NARROWED,
                    "items beyond the named positions cannot be given");
  }
  for (uint32_t i = 0; i < view->prefix_count; i++)
    json_decref(items[i].schema);
  return built;
}
