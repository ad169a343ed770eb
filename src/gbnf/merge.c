/* Merges schemas into a shape: what their keywords say about each type, references followed. */
#include "gbnf/internal.h"

#include <assert.h>

bool gb_link_add(struct gb *g, const struct gb_link **list, struct gb_link link) {
  struct gb_link *copy = gb_get(g, sizeof *copy);
  if (!copy)
    return false;
  *copy = link;
  copy->next = *list;
  *list = copy;
  return true;
}

size_t gb_link_count(const struct gb_link *list) {
  size_t n = 0;
  for (; list; list = list->next)
    n++;
  return n;
}

const struct gb_link **gb_links(struct gb *g, const struct gb_link *list, size_t *count) {
  *count = gb_link_count(list);
  const struct gb_link **links = gb_get(g, (*count + 1) * sizeof *links);
  for (size_t i = *count; links && list; list = list->next)
    links[--i] = list;
  return links;
}

bool gb_scope_within(const struct gb *g, uint32_t scope, uint32_t outer) {
  assert(scope == GB_NO_SCOPE || scope < g->scope_count);
  while (scope != GB_NO_SCOPE && scope != outer)
    scope = g->scopes[scope];
  return scope == outer;
}

uint64_t gb_count_of(const json_t *value) {
  if (json_is_integer(value))
    return (uint64_t)json_integer_value(value);
  return json_real_value(value) < 9e18 ? (uint64_t)json_real_value(value) : UINT64_MAX;
}

unsigned gb_type_of(const json_t *value) {
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    return T_OBJECT;
  case JSON_ARRAY:
    return T_ARRAY;
  case JSON_STRING:
    return T_STRING;
  case JSON_INTEGER:
  case JSON_REAL:
    return T_NUMBER;
  case JSON_TRUE:
    return T_TRUE;
  case JSON_FALSE:
    return T_FALSE;
  case JSON_NULL:
    return T_NULL;
  }
  return 0;
}

static unsigned type_named(const char *name, bool *integer) {
  static const struct {
    const char *name;
    unsigned type;
  } types[] = {{"null", T_NULL},     {"boolean", T_TRUE | T_FALSE},
               {"number", T_NUMBER}, {"string", T_STRING},
               {"array", T_ARRAY},   {"object", T_OBJECT}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i].name, name))
      return types[i].type;
  *integer = true;
  return 0;
}

unsigned gb_types_of(const json_t *type, bool *integral) {
  bool integer = false;
  unsigned mask = 0;
  if (json_is_string(type))
    mask = type_named(json_string_value(type), &integer);
  for (size_t i = 0, n = json_array_size(type); i < n; i++)
    mask |= type_named(json_string_value(json_array_get(type, i)), &integer);
  *integral = integer && !(mask & T_NUMBER);
  return integer ? mask | T_NUMBER : mask;
}

bool gb_child(struct gb *g, const json_t *schema, uint32_t *entry) {
  *entry = NODE_NONE;
  if (json_is_object(schema) && json_object_size(schema))
    schema_index_find(&g->compiler, schema, entry);
  return !json_is_false(schema);
}

/* Merges a subschema that applies to the same value. */
static bool merge_child(struct gb *g, struct gb_shape *shape, const json_t *schema,
                        uint32_t scope) {
  uint32_t entry;
  if (!gb_child(g, schema, &entry)) {
    shape->types = 0;
    return true;
  }
  return entry == NODE_NONE || gb_merge(g, shape, entry, scope);
}

static bool keep_values(struct gb *g, struct gb_shape *shape, const json_t *values, bool is_const) {
  const struct gb_link *kept = NULL, *before = shape->values;
  unsigned types = 0;
  size_t n = is_const ? 1 : json_array_size(values);
  for (size_t i = n; i-- > 0;) {
    const json_t *value = is_const ? values : json_array_get(values, i);
    bool known = !shape->finite;
    for (const struct gb_link *at = before; at && !known; at = at->next) {
      int64_t work = 100000;
      known = schema_value_equal(at->value, value, &work);
      if (!gb_spend(g, 1))
        return false;
    }
    if (!known)
      continue;
    types |= gb_type_of(value);
    if (!gb_spend(g, 1) || !gb_link_add(g, &kept, (struct gb_link){.value = value}))
      return false;
  }
  shape->values = kept;
  shape->finite = true;
  shape->types &= types;
  return true;
}

static void limit_raise(struct gb_limit *limit, const json_t *value, uint32_t entry) {
  if (value && gb_count_of(value) > limit->value)
    *limit = (struct gb_limit){gb_count_of(value), entry};
}

static void limit_lower(struct gb_limit *limit, const json_t *value, uint32_t entry) {
  if (value && gb_count_of(value) < limit->value)
    *limit = (struct gb_limit){gb_count_of(value), entry};
}

static void merge_bounds(struct gb_shape *shape, const json_t *const *have, uint32_t entry) {
  for (int exclusive = 0; exclusive < 2; exclusive++) {
    const json_t *low = have[exclusive ? K_EXCLUSIVE_MINIMUM : K_MINIMUM];
    const json_t *high = have[exclusive ? K_EXCLUSIVE_MAXIMUM : K_MAXIMUM];
    int order = low && shape->minimum ? schema_value_compare(low, shape->minimum) : 1;
    if (low && order >= 0) {
      shape->minimum_exclusive = exclusive || (!order && shape->minimum_exclusive);
      shape->minimum = low;
      shape->number_entry = entry;
    }
    order = high && shape->maximum ? schema_value_compare(high, shape->maximum) : -1;
    if (high && order <= 0) {
      shape->maximum_exclusive = exclusive || (!order && shape->maximum_exclusive);
      shape->maximum = high;
      shape->number_entry = entry;
    }
  }
}

/* Merges keywords that say something about one type each. */
static bool merge_plain(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                        uint32_t entry, uint32_t scope) {
  bool integral = false, ok = true;
  if (have[K_TYPE]) {
    unsigned types = gb_types_of(have[K_TYPE], &integral);
    shape->types &= types;
    shape->named |= types;
    shape->integral = shape->integral || integral;
  }
  if (have[K_ENUM])
    ok = keep_values(g, shape, have[K_ENUM], false);
  if (ok && have[K_CONST])
    ok = keep_values(g, shape, have[K_CONST], true);
  merge_bounds(shape, have, entry);
  limit_raise(&shape->min_length, have[K_MIN_LENGTH], entry);
  limit_lower(&shape->max_length, have[K_MAX_LENGTH], entry);
  limit_raise(&shape->min_items, have[K_MIN_ITEMS], entry);
  limit_lower(&shape->max_items, have[K_MAX_ITEMS], entry);
  limit_raise(&shape->min_members, have[K_MIN_PROPERTIES], entry);
  limit_lower(&shape->max_members, have[K_MAX_PROPERTIES], entry);
  const struct {
    const json_t *value;
    const struct gb_link **list;
  } lists[] = {{have[K_PATTERN], &shape->patterns},
               {have[K_FORMAT], &shape->formats},
               {have[K_MULTIPLE_OF], &shape->multiples},
               {have[K_CONTAINS], &shape->contains},
               {json_is_true(have[K_UNIQUE_ITEMS]) ? have[K_UNIQUE_ITEMS] : NULL, &shape->unique},
               {have[K_PROPERTY_NAMES], &shape->names}};
  for (size_t i = 0; ok && i < sizeof lists / sizeof *lists; i++)
    if (lists[i].value)
      ok = gb_link_add(g, lists[i].list,
                       (struct gb_link){.entry = entry, .scope = scope, .value = lists[i].value});
  return ok;
}

static bool merge_containers(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                             uint32_t entry, uint32_t scope) {
  unsigned dialect =
      g->compiler.schema->resources[g->compiler.schema->entries[entry].resource].dialect;
  const json_t *prefix = have[K_PREFIX_ITEMS], *rest = have[K_ITEMS];
  bool ok = true;
  if (dialect != DIALECT_2020) {
    prefix = NULL;
    if (json_is_array(rest)) {
      prefix = rest;
      rest = have[K_ADDITIONAL_ITEMS];
    }
  }
  if (prefix || rest)
    ok = gb_link_add(g, &shape->items,
                     (struct gb_link){.entry = entry,
                                      .scope = scope,
                                      .kind = SPEC_MEMBERS,
                                      .patterns = prefix,
                                      .additional = rest});
  if (ok && have[K_UNEVALUATED_ITEMS])
    ok = gb_link_add(g, &shape->items,
                     (struct gb_link){.entry = entry,
                                      .scope = scope,
                                      .kind = SPEC_UNEVALUATED,
                                      .additional = have[K_UNEVALUATED_ITEMS]});
  if (ok && (have[K_PROPERTIES] || have[K_PATTERN_PROPERTIES] || have[K_ADDITIONAL_PROPERTIES]))
    ok = gb_link_add(g, &shape->members,
                     (struct gb_link){.entry = entry,
                                      .scope = scope,
                                      .kind = SPEC_MEMBERS,
                                      .value = have[K_PROPERTIES],
                                      .patterns = have[K_PATTERN_PROPERTIES],
                                      .additional = have[K_ADDITIONAL_PROPERTIES]});
  if (ok && have[K_UNEVALUATED_PROPERTIES])
    ok = gb_link_add(g, &shape->members,
                     (struct gb_link){.entry = entry,
                                      .scope = scope,
                                      .kind = SPEC_UNEVALUATED,
                                      .additional = have[K_UNEVALUATED_PROPERTIES]});
  for (size_t i = 0, n = json_array_size(have[K_REQUIRED]); ok && i < n; i++) {
    const json_t *name = json_array_get(have[K_REQUIRED], i);
    ok = gb_link_add(g, &shape->required,
                     (struct gb_link){.entry = entry,
                                      .name = json_string_value(name),
                                      .length = json_string_length(name)});
  }
  return ok;
}

/* Finds the target of a dynamic reference, which is the anchor of the outermost resource on the
 * way. That is known if the way always begins there: at the root, or after the bare references that
 * the root is. */
static bool dynamic_target(struct gb *g, const char *name, uint32_t *entry) {
  struct compiler *c = &g->compiler;
  const struct schema *s = c->schema;
  uint32_t at = s->nodes[s->root].entry, found = NODE_NONE;
  for (unsigned step = 0; step < 20; step++) {
    const json_t *have[KEYWORD_COUNT];
    struct target target;
    if (schema_anchor_find(&c->dynamic_anchors, s->entries[at].resource, name, strlen(name), entry))
      return true;
    schema_entry_keywords(s, at, have);
    if (!have[K_REF] || !schema_ref_resolve(c, at, "$ref", json_string_value(have[K_REF]), &target))
      break;
    for (size_t k = K_ALL_OF; k < KEYWORD_COUNT; k++)
      if (have[k])
        at = NODE_NONE;
    if (at == NODE_NONE)
      break;
    at = target.entry;
  }
  for (uint32_t r = 0; r < s->resource_count; r++) {
    uint32_t other;
    if (!s->resources[r].used ||
        !schema_anchor_find(&c->dynamic_anchors, r, name, strlen(name), &other))
      continue;
    if (found != NODE_NONE)
      return false;
    found = other;
  }
  *entry = found;
  return found != NODE_NONE;
}

static bool merge_references(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                             uint32_t entry, uint32_t scope) {
  static const struct {
    enum keyword_id id;
    const char *keyword;
  } kinds[] = {{K_REF, "$ref"}, {K_DYNAMIC_REF, "$dynamicRef"}, {K_RECURSIVE_REF, "$recursiveRef"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct target target;
    const json_t *reference = have[kinds[i].id];
    if (!reference)
      continue;
    if (!schema_ref_resolve(&g->compiler, entry, kinds[i].keyword, json_string_value(reference),
                            &target)) {
      g->status = GBNF_INVALID_SCHEMA;
      return false;
    }
    if (kinds[i].id != K_REF && target.dynamic_name &&
        !dynamic_target(g, target.dynamic_name, &target.entry)) {
      gb_note(g, entry, kinds[i].keyword, "where it leads depends on the way to it");
      continue;
    }
    if (!gb_merge(g, shape, target.entry, scope))
      return false;
  }
  return true;
}

static bool choice_add(struct gb *g, struct gb_shape *shape, struct gb_link choice) {
  return gb_link_add(g, &shape->choices, choice);
}

static bool merge_dependencies(struct gb *g, struct gb_shape *shape, const json_t *map,
                               uint32_t entry, uint32_t scope) {
  for (void *at = json_object_iter((json_t *)map); at;
       at = json_object_iter_next((json_t *)map, at)) {
    const json_t *what = json_object_iter_value(at);
    if (!choice_add(g, shape,
                    (struct gb_link){.kind = json_is_array(what) ? CHOICE_REQUIRED : CHOICE_SCHEMA,
                                     .entry = entry,
                                     .scope = scope,
                                     .value = what,
                                     .name = json_object_iter_key(at),
                                     .length = json_object_iter_key_len(at)}))
      return false;
  }
  return true;
}

static bool merge_combinations(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                               uint32_t entry, uint32_t scope) {
  if (!merge_references(g, shape, have, entry, scope))
    return false;
  for (size_t i = 0, n = json_array_size(have[K_ALL_OF]); i < n; i++)
    if (!merge_child(g, shape, json_array_get(have[K_ALL_OF], i), scope))
      return false;
  const struct {
    bool there;
    enum gb_choice kind;
    const json_t *value;
  } choices[] = {{have[K_ANY_OF] != NULL, CHOICE_ANY, have[K_ANY_OF]},
                 {have[K_ONE_OF] != NULL, CHOICE_ONE, have[K_ONE_OF]},
                 {have[K_IF] && (have[K_THEN] || have[K_ELSE] || scope != GB_NO_SCOPE), CHOICE_IF,
                  have[K_IF]}};
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (choices[i].there && !choice_add(g, shape,
                                        (struct gb_link){.kind = (uint8_t)choices[i].kind,
                                                         .entry = entry,
                                                         .scope = scope,
                                                         .value = choices[i].value,
                                                         .patterns = have[K_THEN],
                                                         .additional = have[K_ELSE]}))
      return false;
  if (have[K_NOT]) {
    uint32_t child;
    if (!gb_child(g, have[K_NOT], &child))
      return true;
    if (child == NODE_NONE) {
      shape->types = 0;
      return true;
    }
    if (!gb_merge_not(g, shape, child, entry, "not"))
      return false;
  }
  if (!(shape->types & T_OBJECT))
    return true;
  return merge_dependencies(g, shape, have[K_DEPENDENT_REQUIRED], entry, scope) &&
         merge_dependencies(g, shape, have[K_DEPENDENT_SCHEMAS], entry, scope) &&
         merge_dependencies(g, shape, have[K_DEPENDENCIES], entry, scope);
}

bool gb_merge(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t scope) {
  assert(entry < g->compiler.schema->entry_count);
  const json_t *have[KEYWORD_COUNT];
  const json_t *schema = g->compiler.schema->entries[entry].schema;
  if (!gb_spend(g, 1))
    return false;
  if (json_is_boolean(schema)) {
    shape->types = json_is_true(schema) ? shape->types : 0;
    return true;
  }
  for (const struct gb_link *at = shape->merged; at; at = at->next)
    if (at->entry == entry && at->scope == scope)
      return true;
  if (g->depth >= GB_DEPTH_MAX)
    return gb_too_complex(g, "schemas apply each other too deeply");
  if (!gb_link_add(g, &shape->merged, (struct gb_link){.entry = entry, .scope = scope}))
    return false;
  schema_entry_keywords(g->compiler.schema, entry, have);
  if (have[K_UNEVALUATED_ITEMS] || have[K_UNEVALUATED_PROPERTIES]) {
    g->scopes = xgrow(g->scopes, &g->scope_capacity, g->scope_count + 1, sizeof *g->scopes);
    g->scopes[g->scope_count] = scope;
    scope = (uint32_t)g->scope_count++;
  }
  g->depth++;
  bool ok = merge_plain(g, shape, have, entry, scope) &&
            merge_containers(g, shape, have, entry, scope) &&
            merge_combinations(g, shape, have, entry, scope);
  g->depth--;
  return ok;
}
