/* Builds objects: named properties, and those that have no name in the schema. */
#include "adapt/internal.h"

#include <stdio.h>
#include <string.h>

struct object_build {
  struct adapter *a;
  const struct adapt_view *view;
  struct adapt_words *words;
  json_t *schema, *properties, *required, *ordering; /* owned */
  json_t *additional;                                /* owned; additionalProperties, or NULL */
  struct plan_member *members;
  uint32_t member_count;
  bool changed; /* a value of the object is not the same in both shapes */
};

static void put_property(struct object_build *o, const char *name, json_t *schema, bool required) {
  adapt_put(o->properties, name, schema);
  json_array_append_new(o->ordering, json_string_nocheck(name));
  if (required)
    json_array_append_new(o->required, json_string_nocheck(name));
}

/* Returns false if there can be no such object. */
static bool property_of(struct object_build *o, const struct view_property *property) {
  struct adapter *a = o->a;
  size_t recursions = a->recursions;
  a->descents++;
  struct built built = adapt_build(a, &property->sum);
  a->descents--;
  if (!built.schema)
    return !property->required;
  struct plan_member *member = &o->members[o->member_count++];
  *member = (struct plan_member){
      .name = property->name, .plan = built.plan, .optional = !property->required};
  bool required = property->required;
  if (!required && adapt_has(a, ADAPT_ALL_REQUIRED)) {
    bool value = adapt_sum_accepts(a, &property->sum, json_null());
    member->null_absent = !value;
    required = true;
    built.schema = adapt_nullable(a, built.schema);
    if (value)
      adapt_changed(a, property->entry, "required", property->name, ADAPT_NARROWED,
                    "null is a value here, so the property cannot be left out");
    else
      adapt_changed(a, property->entry, "required", property->name, ADAPT_REWRITTEN,
                    "null stands for left out");
  } else if (required && a->dialect->recursion == RECURSION_OPTIONAL &&
             a->recursions > recursions) {
    required = false;
    adapt_changed(a, property->entry, "required", NULL, ADAPT_DROPPED,
                  "recursion is taken only below properties that are not required");
  }
  o->changed = o->changed || member->null_absent || !adapt_plan_same(a, built.plan);
  put_property(o, property->name, built.schema, required);
  return true;
}

/* Builds the schema of values whose properties have no name of their own. */
static struct built extra_value(struct object_build *o) {
  struct adapter *a = o->a;
  const struct adapt_view *view = o->view, silent = {0};
  struct built built = {NULL, PLAN_NONE};
  struct adapt_words words = {0};
  bool rest = view->extra.count > 0 && !view->extra.never && !view->extra_closed;
  a->descents++;
  if (view->pattern_count) {
    struct sum sums[ADAPT_BRANCHES_MAX + 1];
    uint32_t count = view->pattern_count;
    memcpy(sums, view->patterns, count * sizeof *sums);
    if (rest)
      sums[count++] = view->extra;
    built = adapt_union(a, sums, count, &silent, &words);
  } else {
    built = adapt_build(a, &view->extra);
  }
  a->descents--;
  buf_deinit(&words.text);
  return built;
}

/* Returns the only pattern that names must match, if the dialect takes patterns; else NULL. */
static const char *key_pattern(const struct object_build *o) {
  const struct adapter *a = o->a;
  if (o->view->pattern_count != 1 || !o->view->extra_closed ||
      !(a->dialect->keeps & KEEP(K_PATTERN)) || a->opts->words_only)
    return NULL;
  for (uint32_t i = 0; i < o->view->flat.count; i++) {
    const json_t *schema = a->out->canonical->entries[o->view->flat.items[i].entry].schema;
    json_t *list = json_object_get(schema, "patternProperties");
    if (json_object_size(list) == 1)
      return json_object_iter_key(json_object_iter(list));
  }
  return NULL;
}

/* Builds a list of {"key","value"} objects; takes `value`. */
static json_t *pairs_of(struct object_build *o, json_t *value) {
  json_t *pairs = json_object(), *pair = json_object(), *key = json_object();
  json_t *properties = json_object(), *required = json_array();
  const char *pattern = key_pattern(o);
  adapt_put(key, "type", json_string_nocheck("string"));
  if (pattern)
    adapt_put(key, "pattern", json_string_nocheck(pattern));
  adapt_put(properties, "key", key);
  adapt_put(properties, "value", value);
  json_array_append_new(required, json_string_nocheck("key"));
  json_array_append_new(required, json_string_nocheck("value"));
  adapt_put(pair, "type", json_string_nocheck("object"));
  adapt_put(pair, "properties", properties);
  adapt_put(pair, "required", required);
  adapt_put(pair, "additionalProperties", json_false());
  adapt_put(pairs, "type", json_string_nocheck("array"));
  adapt_put(pairs, "items", pair);
  return pairs;
}

static void pattern_words(struct object_build *o) {
  for (uint32_t i = 0; i < o->view->flat.count; i++) {
    uint32_t entry = o->view->flat.items[i].entry;
    const json_t *list =
        json_object_get(o->a->out->canonical->entries[entry].schema, "patternProperties");
    for (void *at = json_object_iter((json_t *)list); at;
         at = json_object_iter_next((json_t *)list, at))
      adapt_words_add(o->words, "names match the regular expression %s", json_object_iter_key(at));
    static const char *const concerned[] = {"patternProperties", "additionalProperties",
                                            "unevaluatedProperties"};
    for (size_t k = 0; k < 3; k++)
      if (json_object_get(o->a->out->canonical->entries[entry].schema, concerned[k]))
        adapt_changed(o->a, entry, concerned[k], NULL, ADAPT_DESCRIBED,
                      "which names there may be is not enforced");
  }
}

static const char *extra_name(struct object_build *o) {
  char name[64] = "additional_properties";
  for (unsigned i = 2; json_object_get(o->properties, name); i++)
    (void)snprintf(name, sizeof name, "additional_properties_%u", i);
  return arena_strdup(&o->a->out->arena, name);
}

enum extra { EXTRA_NONE, EXTRA_NATIVE, EXTRA_PAIRS, EXTRA_ONLY_PAIRS };

static enum extra extra_kind(const struct object_build *o) {
  const struct adapt_view *view = o->view;
  bool some = view->pattern_count || (!view->extra_closed && view->extra.count);
  if (!some && !(view->extra_open && !view->property_count))
    return EXTRA_NONE;
  if (o->a->dialect->keeps & KEEP(K_ADDITIONAL_PROPERTIES))
    return EXTRA_NATIVE;
  /* beside an array, a bare list of pairs could not be told from one */
  return view->property_count || view->types & T_ARRAY ? EXTRA_PAIRS : EXTRA_ONLY_PAIRS;
}

/* Turns counts of properties into counts of pairs, where pairs are all there is. */
static void count_pairs(struct object_build *o, json_t *pairs) {
  for (size_t i = 0; i < o->view->word_count; i++) {
    struct view_word word = o->view->words[i];
    if (word.id != K_MIN_PROPERTIES && word.id != K_MAX_PROPERTIES)
      continue;
    bool least = word.id == K_MIN_PROPERTIES;
    struct view_word items = {least ? K_MIN_ITEMS : K_MAX_ITEMS,
                              schema_keyword_find(least ? "minItems" : "maxItems", DIALECT_2020),
                              word.value, word.entry};
    size_t before = json_object_size(pairs);
    struct adapt_words none = {0};
    adapt_keyword(o->a, pairs, &none, &items, T_ARRAY);
    buf_deinit(&none.text);
    if (json_object_size(pairs) == before)
      adapt_words_keyword(o->a, o->words, &word, "the keyword is not supported");
    else
      adapt_changed(o->a, word.entry, word.keyword->name, NULL, ADAPT_DESCRIBED,
                    "counts the pairs: a name that stands twice counts twice");
  }
}

static struct built only_pairs(struct object_build *o, struct built value) {
  struct adapter *a = o->a;
  json_t *pairs = pairs_of(o, value.schema);
  struct built built = {pairs, adapt_plan_new(a, PLAN_PAIRS)};
  if (built.plan != PLAN_NONE)
    a->out->plans[built.plan].rest = value.plan;
  count_pairs(o, pairs);
  adapt_words_add(o->words, "a list of the names and values of an object");
  adapt_changed(a, o->view->extra_entry, "additionalProperties", NULL, ADAPT_REWRITTEN,
                "names and values as a list of pairs");
  return built;
}

/* Adds unnamed members to an object that has named ones. */
static void extras(struct object_build *o, enum extra kind, struct adapt_plan *plan) {
  struct adapter *a = o->a;
  const struct adapt_view *view = o->view;
  if (kind == EXTRA_NONE) {
    if (adapt_has(a, ADAPT_CLOSED) || view->extra_closed)
      o->additional = json_false();
    if (adapt_has(a, ADAPT_CLOSED) && view->extra_open)
      adapt_changed(a, view->flat.count ? view->flat.items[0].entry : 0, "additionalProperties",
                    NULL, ADAPT_NARROWED, "properties that are not named cannot be given");
    return;
  }
  bool any = kind == EXTRA_NATIVE && !view->pattern_count && !view->extra.count;
  struct built value = any ? (struct built){json_true(), PLAN_NONE} : extra_value(o);
  if (!value.schema) {
    o->additional = json_false();
  } else if (kind == EXTRA_NATIVE) {
    o->additional = value.schema;
    plan->rest = value.plan;
    o->changed = o->changed || (value.plan != PLAN_NONE && !adapt_plan_same(a, value.plan));
  } else {
    plan->extra = extra_name(o);
    plan->rest = value.plan;
    o->changed = true;
    if (plan->extra)
      put_property(o, plan->extra, pairs_of(o, value.schema), true);
    else
      json_decref(value.schema);
    o->additional = json_false();
    adapt_changed(a, view->extra_entry, "additionalProperties", NULL, ADAPT_REWRITTEN,
                  "names and values as a list of pairs, in one more property");
  }
}

/* Finishes the object. Consumes `o`. */
static struct built object_finish(struct object_build *o, const struct adapt_plan *plan) {
  struct adapter *a = o->a;
  bool required = adapt_has(a, ADAPT_ALL_REQUIRED) || json_array_size(o->required) > 0;
  bool same = !o->changed && !adapt_has(a, ADAPT_CLOSED);
  struct built built = {o->schema, adapt_plan_new(a, same ? PLAN_SAME : PLAN_OBJECT)};
  if (json_object_size(o->properties) || adapt_has(a, ADAPT_CLOSED))
    adapt_put(o->schema, "properties", json_incref(o->properties));
  if (required)
    adapt_put(o->schema, "required", json_incref(o->required));
  if (o->additional)
    adapt_put(o->schema, "additionalProperties", o->additional);
  if (adapt_has(a, ADAPT_ORDERING) && json_object_size(o->properties))
    adapt_put(o->schema, "propertyOrdering", json_incref(o->ordering));
  if (built.plan != PLAN_NONE && !same) {
    struct adapt_plan *to = &a->out->plans[built.plan];
    *to = *plan;
    to->members = o->members;
    to->count = o->member_count;
  }
  json_decref(o->properties);
  json_decref(o->required);
  json_decref(o->ordering);
  return built;
}

struct built adapt_object_of(struct adapter *a, const struct adapt_view *view,
                             struct adapt_words *words) {
  struct built none = {NULL, PLAN_NONE};
  struct object_build o = {.a = a, .view = view, .words = words};
  enum extra kind = extra_kind(&o);
  if (view->pattern_count && view->extra_open)
    adapt_changed(a, view->extra_entry, "additionalProperties", NULL, ADAPT_NARROWED,
                  "values whose names match no pattern are of the same kind as the others");
  if (view->pattern_count && (kind == EXTRA_NATIVE || !key_pattern(&o)))
    pattern_words(&o);
  if (kind == EXTRA_ONLY_PAIRS) {
    struct built value = extra_value(&o);
    for (size_t i = 0; i < view->word_count; i++)
      if (adapt_keyword_types(view->words[i].id) == T_OBJECT &&
          view->words[i].id != K_MIN_PROPERTIES && view->words[i].id != K_MAX_PROPERTIES)
        adapt_words_keyword(a, words, &view->words[i], "the keyword is not supported");
    if (value.schema)
      return only_pairs(&o, value);
    if (adapter_stopped(a))
      return none;
    kind = EXTRA_NONE; /* no member is possible */
  }
  o.members = arena_array(&a->out->arena, view->property_count + 1, sizeof *o.members);
  struct adapt_plan plan = {.kind = PLAN_OBJECT, .rest = PLAN_NONE};
  o.schema = json_object();
  o.properties = json_object();
  o.required = json_array();
  o.ordering = json_array();
  adapt_put(o.schema, "type", json_string_nocheck("object"));
  bool possible = true;
  for (size_t i = 0; i < view->property_count && possible && !adapter_stopped(a); i++)
    possible = property_of(&o, &view->properties[i]);
  if (possible && !adapter_stopped(a))
    extras(&o, kind, &plan);
  for (size_t i = 0; i < view->word_count && possible && !adapter_stopped(a); i++)
    if (adapt_keyword_types(view->words[i].id) == T_OBJECT)
      adapt_keyword(a, o.schema, words, &view->words[i], T_OBJECT);
  struct built built = object_finish(&o, &plan);
  if (!possible) {
    json_decref(built.schema);
    built = none;
  }
  return built;
}
