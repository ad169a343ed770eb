/* Builds arrays and tuples. */
#include "adapt/internal.h"

#include "format/json_value.h"

#include <stdio.h>
#include <string.h>

static struct built item_of(struct adapter *a, const struct sum *sum) {
  a->descents++;
  struct built built = adapt_build(a, sum);
  a->descents--;
  return built;
}

static void array_words(struct adapter *a, const struct adapt_view *view, json_t *schema,
                        struct adapt_words *words, uint64_t except) {
  for (size_t i = 0; i < view->word_count && !adapter_stopped(a); i++)
    if (adapt_keyword_types(view->words[i].id) == T_ARRAY && !(except & KEEP(view->words[i].id)))
      adapt_keyword(a, schema, words, &view->words[i], T_ARRAY);
}

static json_t *array_schema(void) {
  json_t *schema = json_object();
  adapt_put(schema, "type", json_string_nocheck("array"));
  return schema;
}

/* Builds a place where only [] is valid. */
static struct built empty_array(struct adapter *a, const struct adapt_view *view,
                                struct adapt_words *words) {
  struct built built = {NULL, PLAN_NONE};
  uint64_t least = 0;
  json_t *items = json_object();
  if (!adapt_view_count(view, K_MIN_ITEMS, &least) || least == 0) {
    built = (struct built){array_schema(), adapt_plan_new(a, PLAN_SAME)};
    adapt_put(items, "type", json_string_nocheck("null"));
    adapt_put(built.schema, "items", json_incref(items));
    uint32_t entry = view->flat.count ? view->flat.items[0].entry : 0;
    if (a->dialect->keeps & KEEP(K_MAX_ITEMS)) {
      adapt_put(built.schema, "maxItems", json_integer(0));
      adapt_changed(a, entry, "items", NULL, ADAPT_REWRITTEN, "no items: at most 0");
    } else {
      adapt_words_add(words, "always empty");
      adapt_changed(a, entry, "items", NULL, ADAPT_DESCRIBED, "the keyword is not supported");
    }
  }
  json_decref(items);
  return built;
}

static struct built array_list(struct adapter *a, const struct adapt_view *view,
                               struct adapt_words *words) {
  uint64_t most = 1;
  if (view->items_closed || (adapt_view_count(view, K_MAX_ITEMS, &most) && most == 0))
    return empty_array(a, view, words);
  struct built item = item_of(a, &view->items);
  if (!item.schema)
    return adapter_stopped(a) ? item : empty_array(a, view, words);
  bool same = adapt_plan_same(a, item.plan);
  struct built built = {array_schema(), adapt_plan_new(a, same ? PLAN_SAME : PLAN_ARRAY)};
  adapt_put(built.schema, "items", item.schema);
  if (built.plan != PLAN_NONE)
    a->out->plans[built.plan].rest = item.plan;
  array_words(a, view, built.schema, words, 0);
  return built;
}

struct adapt_tuple {
  uint32_t count; /* positions that can be there */
  uint64_t least; /* how many of them must be */
  bool closed;    /* nothing beyond */
};

/* Returns false if no array has enough items. */
static bool tuple_measure(const struct adapt_view *view, struct built *items,
                          struct adapt_tuple *tuple) {
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

/* Builds {"type":"array","prefixItems":[...]}, if it means the same in the dialect. */
static struct built tuple_native(struct adapter *a, const struct adapt_view *view,
                                 struct built *items, const struct adapt_tuple *tuple,
                                 struct adapt_words *words) {
  struct built built = {array_schema(), PLAN_NONE};
  json_t *list = json_array();
  for (uint32_t i = 0; i < tuple->count; i++)
    json_array_append_new(list, json_incref(items[i].schema));
  adapt_put(built.schema, "prefixItems", list);
  if (adapt_has(a, ADAPT_GRAMMAR)) { /* its tuples have one length, but it takes no `false` */
    adapt_put(built.schema, "minItems", json_integer(tuple->count));
    adapt_put(built.schema, "maxItems", json_integer(tuple->count));
  } else if (view->items_closed || tuple->count < view->prefix_count) {
    adapt_put(built.schema, "items", json_false());
  }
  built.plan = adapt_plan_new(a, PLAN_SAME);
  array_words(a, view, built.schema, words,
              adapt_has(a, ADAPT_GRAMMAR) ? KEEP(K_MIN_ITEMS) | KEEP(K_MAX_ITEMS) : 0);
  return built;
}

static void tuple_rest(struct adapter *a, const struct adapt_view *view,
                       const struct adapt_tuple *tuple, json_t *properties, json_t *required,
                       struct adapt_plan *plan) {
  struct built item = item_of(a, &view->items);
  if (!item.schema)
    return;
  json_t *rest = array_schema();
  adapt_put(rest, "items", item.schema);
  uint64_t most;
  if (adapt_view_count(view, K_MAX_ITEMS, &most) && a->dialect->keeps & KEEP(K_MAX_ITEMS) &&
      !a->opts->words_only)
    adapt_put(rest, "maxItems", json_integer((json_int_t)(most - tuple->count)));
  adapt_put(properties, "rest", rest);
  json_array_append_new(required, json_string_nocheck("rest"));
  plan->extra = "rest";
  plan->rest = item.plan;
}

static struct built tuple_object(struct adapter *a, const struct adapt_view *view,
                                 struct built *items, const struct adapt_tuple *tuple,
                                 struct adapt_words *words) {
  struct built built = {json_object(), adapt_plan_new(a, PLAN_TUPLE)};
  json_t *properties = json_object(), *required = json_array();
  struct adapt_plan plan = {.kind = PLAN_TUPLE, .count = tuple->count, .rest = PLAN_NONE};
  bool loose = false;
  plan.members = arena_array(&a->out->arena, tuple->count + 1, sizeof *plan.members);
  for (uint32_t i = 0; i < tuple->count; i++) {
    char name[32];
    int n = snprintf(name, sizeof name, "item_%u", (unsigned)i);
    struct plan_member *member = &plan.members[i];
    member->name = arena_strndup(&a->out->arena, name, (size_t)n);
    member->plan = items[i].plan;
    member->optional = i >= tuple->least;
    member->null_absent = member->optional && !adapt_sum_accepts(a, &view->prefix[i], json_null());
    loose = loose || member->optional;
    json_t *schema = json_incref(items[i].schema);
    adapt_put(properties, name, member->optional ? adapt_nullable(a, schema) : schema);
    json_array_append_new(required, json_string_nocheck(name));
  }
  if (!tuple->closed)
    tuple_rest(a, view, tuple, properties, required, &plan);
  adapt_put(built.schema, "type", json_string_nocheck("object"));
  adapt_put(built.schema, "properties", properties);
  adapt_put(built.schema, "required", required);
  adapt_put(built.schema, "additionalProperties", json_false());
  if (adapt_has(a, ADAPT_ORDERING))
    adapt_put(built.schema, "propertyOrdering", json_clone_top(required));
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

struct built adapt_array_of(struct adapter *a, const struct adapt_view *view,
                            struct adapt_words *words) {
  struct built built = {NULL, PLAN_NONE};
  if (!view->prefix_count)
    return array_list(a, view, words);
  struct built *items = arena_array(&a->out->arena, view->prefix_count, sizeof *items);
  bool same = true;
  for (uint32_t i = 0; i < view->prefix_count && !adapter_stopped(a); i++) {
    items[i] = item_of(a, &view->prefix[i]);
    same = same && (!items[i].schema || adapt_plan_same(a, items[i].plan));
  }
  struct adapt_tuple tuple;
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
