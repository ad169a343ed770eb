/* Makes the shapes of a set of schemas: what their keywords say about each type is merged, and
 * choices are made one after the other, until plain shapes are left. */
#include "gbnf/internal.h"

#include <assert.h>

enum { SHAPES_MAX = 256 }; /* in one set */
enum choice_kind {
  CHOICE_ANY,
  CHOICE_ONE,
  CHOICE_IF,
  CHOICE_LACKS,
  CHOICE_REQUIRED,
  CHOICE_SCHEMA
};

/* --- lists and types --- */

static bool link_add(struct gb *g, const struct gb_link **list, struct gb_link link) {
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

static unsigned type_of(const json_t *value) {
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

static unsigned named_types(const json_t *type, bool *integral) {
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

/* --- merging: what a schema says about the value, references followed --- */

static bool merge(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t scope);

/* Merges a subschema that applies to the same value; NULL: there is none. */
static bool merge_one(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t scope) {
  uint32_t entry;
  if (!schema)
    return true;
  if (!gb_child(g, schema, &entry)) {
    shape->types = 0;
    return true;
  }
  return entry == NODE_NONE || merge(g, shape, entry, scope);
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
    types |= type_of(value);
    if (!gb_spend(g, 1) || !link_add(g, &kept, (struct gb_link){.value = value}))
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
    unsigned types = named_types(have[K_TYPE], &integral);
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
      ok = link_add(g, lists[i].list,
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
    ok = link_add(g, &shape->items,
                  (struct gb_link){.entry = entry,
                                   .scope = scope,
                                   .kind = SPEC_MEMBERS,
                                   .patterns = prefix,
                                   .additional = rest});
  if (ok && have[K_UNEVALUATED_ITEMS])
    ok = link_add(g, &shape->items,
                  (struct gb_link){.entry = entry,
                                   .scope = scope,
                                   .kind = SPEC_UNEVALUATED,
                                   .additional = have[K_UNEVALUATED_ITEMS]});
  if (ok && (have[K_PROPERTIES] || have[K_PATTERN_PROPERTIES] || have[K_ADDITIONAL_PROPERTIES]))
    ok = link_add(g, &shape->members,
                  (struct gb_link){.entry = entry,
                                   .scope = scope,
                                   .kind = SPEC_MEMBERS,
                                   .value = have[K_PROPERTIES],
                                   .patterns = have[K_PATTERN_PROPERTIES],
                                   .additional = have[K_ADDITIONAL_PROPERTIES]});
  if (ok && have[K_UNEVALUATED_PROPERTIES])
    ok = link_add(g, &shape->members,
                  (struct gb_link){.entry = entry,
                                   .scope = scope,
                                   .kind = SPEC_UNEVALUATED,
                                   .additional = have[K_UNEVALUATED_PROPERTIES]});
  for (size_t i = 0, n = json_array_size(have[K_REQUIRED]); ok && i < n; i++) {
    const json_t *name = json_array_get(have[K_REQUIRED], i);
    ok = link_add(g, &shape->required,
                  (struct gb_link){.entry = entry,
                                   .name = json_string_value(name),
                                   .length = json_string_length(name)});
  }
  return ok;
}

/* Finds the target of a dynamic reference, which is the anchor of the outermost resource on the
 * way: that of the root, else the only one there is. */
static bool dynamic_target(struct gb *g, const char *name, uint32_t *entry) {
  struct compiler *c = &g->compiler;
  const struct schema *s = c->schema;
  uint32_t root = s->entries[s->nodes[s->root].entry].resource, other;
  if (schema_anchor_find(&c->dynamic_anchors, root, name, strlen(name), entry))
    return true;
  *entry = NODE_NONE;
  for (uint32_t r = 0; r < s->resource_count; r++) {
    if (!s->resources[r].used ||
        !schema_anchor_find(&c->dynamic_anchors, r, name, strlen(name), &other))
      continue;
    if (*entry != NODE_NONE)
      return false;
    *entry = other;
  }
  return *entry != NODE_NONE;
}

/* Adds a schema that must not match. It is `keyword` of `entry` that wants it so. */
static bool keep_apart(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t entry,
                       const char *keyword) {
  return link_add(g, &shape->others,
                  (struct gb_link){.entry = entry, .value = schema, .keyword = keyword});
}

/* Merges a schema that must not match. One keyword by itself can be turned round, if it is about
 * types, required members or values. */
static bool merge_not(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t entry,
                      const char *keyword) {
  const json_t *have[KEYWORD_COUNT];
  uint32_t child;
  bool integral = false;
  int only = KEYWORD_COUNT, count = 0;
  if (!gb_child(g, schema, &child))
    return true;
  if (child == NODE_NONE) {
    shape->types = 0;
    return true;
  }
  schema_entry_keywords(g->compiler.schema, child, have);
  for (int id = 0; id < KEYWORD_COUNT; id++)
    if (have[id] && id != K_COMMENT) {
      only = id;
      count++;
    }
  if (!count) /* annotations: all match */
    shape->types = 0;
  if (count != 1)
    only = KEYWORD_COUNT;
  if (only == K_TYPE) {
    unsigned types = named_types(have[K_TYPE], &integral);
    if (!integral) {
      shape->types &= ~types;
      return true;
    }
  }
  if (only == K_REQUIRED) {
    shape->types &= T_OBJECT;
    return link_add(
        g, &shape->choices,
        (struct gb_link){
            .kind = CHOICE_LACKS, .entry = entry, .value = have[K_REQUIRED], .keyword = keyword});
  }
  if (only != K_CONST && only != K_ENUM)
    return keep_apart(g, shape, schema, entry, keyword);
  size_t n = only == K_CONST ? 1 : json_array_size(have[K_ENUM]);
  for (size_t i = 0; i < n; i++) {
    const json_t *value = only == K_CONST ? have[K_CONST] : json_array_get(have[K_ENUM], i);
    unsigned type = type_of(value);
    if (type & (T_NULL | T_TRUE | T_FALSE))
      shape->types &= ~type;
    else if (!link_add(g, &shape->not_values,
                       (struct gb_link){.value = value, .entry = entry, .keyword = keyword}))
      return false;
  }
  return true;
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
    if (!merge(g, shape, target.entry, scope))
      return false;
  }
  return true;
}

static bool merge_dependencies(struct gb *g, struct gb_shape *shape, const json_t *map,
                               uint32_t entry, uint32_t scope) {
  for (void *at = json_object_iter((json_t *)map); at;
       at = json_object_iter_next((json_t *)map, at)) {
    const json_t *what = json_object_iter_value(at);
    if (!link_add(g, &shape->choices,
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
    if (!merge_one(g, shape, json_array_get(have[K_ALL_OF], i), scope))
      return false;
  const struct {
    bool there;
    enum choice_kind kind;
    const json_t *value;
  } choices[] = {{have[K_ANY_OF] != NULL, CHOICE_ANY, have[K_ANY_OF]},
                 {have[K_ONE_OF] != NULL, CHOICE_ONE, have[K_ONE_OF]},
                 {have[K_IF] && (have[K_THEN] || have[K_ELSE] || scope != GB_NO_SCOPE), CHOICE_IF,
                  have[K_IF]}};
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (choices[i].there && !link_add(g, &shape->choices,
                                      (struct gb_link){.kind = (uint8_t)choices[i].kind,
                                                       .entry = entry,
                                                       .scope = scope,
                                                       .value = choices[i].value,
                                                       .patterns = have[K_THEN],
                                                       .additional = have[K_ELSE]}))
      return false;
  if (have[K_NOT] && !merge_not(g, shape, have[K_NOT], entry, "not"))
    return false;
  if (!(shape->types & T_OBJECT))
    return true;
  return merge_dependencies(g, shape, have[K_DEPENDENT_REQUIRED], entry, scope) &&
         merge_dependencies(g, shape, have[K_DEPENDENT_SCHEMAS], entry, scope) &&
         merge_dependencies(g, shape, have[K_DEPENDENCIES], entry, scope);
}

static bool merge(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t scope) {
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
  if (!link_add(g, &shape->merged, (struct gb_link){.entry = entry, .scope = scope}))
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

/* --- choices --- */

static bool set_is_never(struct gb *g, const struct gb_set *set, unsigned levels);
/* Returns true if nothing can match. This looks at the first levels only: `false` may mean that it
 * is unknown. */
static bool shape_is_never(struct gb *g, const struct gb_shape *shape, unsigned levels);

/* Removes types by contradictions that show without looking further down. Returns false if none is
 * left. */
static bool alive(struct gb_shape *shape) {
  if (shape->minimum && shape->maximum) {
    int order = schema_value_compare(shape->minimum, shape->maximum);
    if (order > 0 || (!order && (shape->minimum_exclusive || shape->maximum_exclusive)))
      shape->types &= ~(unsigned)T_NUMBER;
  }
  if (shape->min_length.value > shape->max_length.value)
    shape->types &= ~(unsigned)T_STRING;
  if (shape->min_items.value > shape->max_items.value)
    shape->types &= ~(unsigned)T_ARRAY;
  if (shape->min_members.value > shape->max_members.value)
    shape->types &= ~(unsigned)T_OBJECT;
  for (const struct gb_link *r = shape->required; r && shape->types & T_OBJECT; r = r->next)
    for (const struct gb_link *f = shape->forbidden; f; f = f->next)
      if (r->length == f->length && !memcmp(r->name, f->name, r->length))
        shape->types &= ~(unsigned)T_OBJECT;
  if (shape->finite) {
    unsigned types = 0;
    for (const struct gb_link *v = shape->values; v; v = v->next)
      types |= type_of(v->value);
    shape->types &= types;
  }
  return shape->types != 0;
}

static size_t branches(const struct gb_link *choice) {
  switch ((enum choice_kind)choice->kind) {
  case CHOICE_ANY:
  case CHOICE_ONE:
  case CHOICE_LACKS:
    return json_array_size(choice->value);
  case CHOICE_IF:
  case CHOICE_REQUIRED:
  case CHOICE_SCHEMA:
    return 2;
  }
  return 0;
}

static const char *choice_keyword(const struct gb_link *choice) {
  switch ((enum choice_kind)choice->kind) {
  case CHOICE_ANY:
    return "anyOf";
  case CHOICE_ONE:
    return "oneOf";
  case CHOICE_IF:
    return "if";
  case CHOICE_LACKS:
    return choice->keyword;
  case CHOICE_REQUIRED:
    return "dependentRequired";
  case CHOICE_SCHEMA:
    return "dependentSchemas";
  }
  return "";
}

/* Adds a member that must be there, or must not. */
static bool choice_name_add(struct gb *g, const struct gb_link **list, const struct gb_link *choice,
                            const char *name, size_t length) {
  return link_add(g, list,
                  (struct gb_link){.entry = choice->entry,
                                   .name = name,
                                   .length = length,
                                   .keyword = choice_keyword(choice)});
}

static bool make_choice(struct gb *g, struct gb_shape *shape, const struct gb_link *choice,
                        size_t branch) {
  const json_t *name;
  switch ((enum choice_kind)choice->kind) {
  case CHOICE_ANY:
  case CHOICE_ONE:
    for (size_t i = 0, n = json_array_size(choice->value); i < n && choice->kind == CHOICE_ONE; i++)
      if (i != branch &&
          !keep_apart(g, shape, json_array_get(choice->value, i), choice->entry, "oneOf"))
        return false;
    return merge_one(g, shape, json_array_get(choice->value, branch), choice->scope);
  case CHOICE_IF:
    if (branch == 0)
      return merge_one(g, shape, choice->value, choice->scope) &&
             merge_one(g, shape, choice->patterns, choice->scope);
    return merge_not(g, shape, choice->value, choice->entry, "if") &&
           merge_one(g, shape, choice->additional, choice->scope);
  case CHOICE_LACKS:
    name = json_array_get(choice->value, branch);
    return choice_name_add(g, &shape->forbidden, choice, json_string_value(name),
                           json_string_length(name));
  case CHOICE_REQUIRED:
  case CHOICE_SCHEMA:
    if (branch == 0)
      return choice_name_add(g, &shape->forbidden, choice, choice->name, choice->length);
    shape->types &= T_OBJECT;
    if (choice->kind == CHOICE_SCHEMA && !merge_one(g, shape, choice->value, choice->scope))
      return false;
    for (size_t i = 0, n = json_array_size(choice->value); i < n; i++) {
      name = json_array_get(choice->value, i);
      if (!choice_name_add(g, &shape->required, choice, json_string_value(name),
                           json_string_length(name)))
        return false;
    }
    return choice_name_add(g, &shape->required, choice, choice->name, choice->length);
  }
  return true;
}

/* Takes the oldest choice out of the list: an object's members keep the order of the schema. */
static bool choice_take(struct gb *g, struct gb_shape *shape, const struct gb_link **choice) {
  size_t n;
  const struct gb_link **links = gb_links(g, shape->choices, &n);
  if (!links)
    return false;
  *choice = links[0];
  shape->choices = NULL;
  for (size_t i = 1; i < n; i++)
    if (!link_add(g, &shape->choices, *links[i]))
      return false;
  return true;
}

/* Lists what the shape may match although it must not: `oneOf`, `not` or `if` of a schema that it
 * is not apart from by itself. */
static bool note_others(struct gb *g, const struct gb_shape *shape) {
  for (const struct gb_link *other = shape->others; other && !shape->finite; other = other->next) {
    struct gb_shape both = *shape;
    bool quiet = g->quiet, apart = false;
    both.choices = both.others = NULL;
    g->quiet = true;
    if (merge_one(g, &both, other->value, GB_NO_SCOPE)) {
      for (const struct gb_link *r = both.required; r && both.types == T_OBJECT; r = r->next)
        apart = apart || gb_closed_to(shape, r->name, r->length);
      apart = apart || shape_is_never(g, &both, 2);
    }
    g->quiet = quiet;
    if (g->status != GBNF_OK)
      return false;
    if (!apart)
      gb_note(g, other->entry, other->keyword,
              "what must not match is kept out by the validator only");
  }
  return true;
}

struct expansion {
  struct gb_shapes *out;
  size_t max;
  bool overflow;
};

static bool expand(struct gb *g, struct gb_shape *shape, struct expansion *e, unsigned level) {
  const struct gb_link *choice;
  if (!gb_spend(g, 1))
    return false;
  while (alive(shape) && shape->choices) {
    if (!choice_take(g, shape, &choice))
      return false;
    if (g->loose && level) {
      gb_note(g, choice->entry, choice_keyword(choice),
              "too many combinations with other choices: kept by the validator only");
      continue;
    }
    size_t n = branches(choice);
    if (e->out->count + n > e->max || level > 30) {
      e->overflow = true;
      return true;
    }
    for (size_t i = 0; i < n && !e->overflow; i++) {
      struct gb_shape copy = *shape;
      if (!make_choice(g, &copy, choice, i) || !expand(g, &copy, e, level + 1))
        return false;
    }
    return true;
  }
  if (!shape->types || shape_is_never(g, shape, 2))
    return g->status == GBNF_OK;
  if (e->out->count >= e->max) {
    e->overflow = true;
    return true;
  }
  if (!note_others(g, shape))
    return false;
  e->out->items = xgrow(e->out->items, &e->out->capacity, e->out->count + 1, sizeof *e->out->items);
  e->out->items[e->out->count++] = *shape;
  return true;
}

static bool merge_set(struct gb *g, const struct gb_set *set, struct gb_shape *shape) {
  *shape = (struct gb_shape){.types = T_ALL,
                             .max_length = {UINT64_MAX, NODE_NONE},
                             .max_items = {UINT64_MAX, NODE_NONE},
                             .max_members = {UINT64_MAX, NODE_NONE}};
  for (size_t i = 0; i < set->count; i++)
    if (!merge(g, shape, set->entries[i], GB_NO_SCOPE))
      return false;
  return true;
}

static bool shape_is_never(struct gb *g, const struct gb_shape *shape, unsigned levels) {
  struct gb_shape own = *shape;
  if (!alive(&own))
    return true;
  if (!levels || !gb_spend(g, 1))
    return false;
  if (own.choices && gb_link_count(own.choices) <= 4) {
    const struct gb_link *choice;
    if (!choice_take(g, &own, &choice))
      return false;
    size_t n = choice->kind == CHOICE_ONE ? 0 : branches(choice);
    bool never = n > 0 && n <= 12;
    for (size_t i = 0; i < n && never; i++) {
      struct gb_shape copy = own;
      never = make_choice(g, &copy, choice, i) && shape_is_never(g, &copy, levels - 1);
    }
    if (never)
      return true;
  }
  if (own.types != T_OBJECT || own.finite)
    return false;
  for (const struct gb_link *r = own.required; r; r = r->next) {
    struct gb_set set = gb_member_set(g, &own, r->name, r->length);
    if (g->status != GBNF_OK)
      return false;
    if (set.never || set_is_never(g, &set, levels - 1))
      return true;
  }
  return false;
}

static bool set_is_never(struct gb *g, const struct gb_set *set, unsigned levels) {
  struct gb_shape shape;
  bool quiet = g->quiet;
  if (set->never)
    return true;
  g->quiet = true;
  bool never = merge_set(g, set, &shape) && shape_is_never(g, &shape, levels);
  g->quiet = quiet;
  return never;
}

bool gb_shapes_of(struct gb *g, const struct gb_set *set, struct gb_shapes *out) {
  for (int attempt = 0; attempt < 2; attempt++) {
    struct gb_shape shape;
    struct expansion e = {out, attempt ? 10 * SHAPES_MAX : SHAPES_MAX, false};
    out->count = 0;
    g->loose = attempt > 0;
    bool ok = merge_set(g, set, &shape) && expand(g, &shape, &e, 0);
    g->loose = false;
    if (!ok || !e.overflow)
      return ok && g->status == GBNF_OK;
  }
  return gb_too_complex(g, "a schema has too many alternatives");
}
