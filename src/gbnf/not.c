/* Negates schemas that must not match: the ways not to match one are the branches of a choice. */
#include "gbnf/internal.h"

#include <assert.h>

struct way { /* a way not to match: the keyword, and which of its members */
  int id;    /* enum keyword_id; KEYWORD_COUNT: the schema is `false` */
  const char *name;
  size_t length;
  const json_t *value;
};
struct ways {
  struct way items[GB_NOT_BRANCHES_MAX];
  size_t count;
  bool inexact; /* some cannot be followed, or are too many */
};

static void way_add(struct ways *ways, struct way way) {
  if (ways->count == GB_NOT_BRANCHES_MAX)
    ways->inexact = true;
  else
    ways->items[ways->count++] = way;
}

/* Lists the ways to negate keywords. Keywords that say nothing about a value, or only beside
 * another keyword, are left out; what is not in the table cannot be negated. */
enum way_kind { WAY_INEXACT, WAY_LEFT_OUT, WAY_ONE, WAY_MEMBERS, WAY_ITEMS };
static const uint8_t kinds[KEYWORD_COUNT] = {
    [K_ID] = WAY_LEFT_OUT,
    [K_SCHEMA] = WAY_LEFT_OUT,
    [K_ANCHOR] = WAY_LEFT_OUT,
    [K_DYNAMIC_ANCHOR] = WAY_LEFT_OUT,
    [K_RECURSIVE_ANCHOR] = WAY_LEFT_OUT,
    [K_VOCABULARY] = WAY_LEFT_OUT,
    [K_COMMENT] = WAY_LEFT_OUT,
    [K_DEFS] = WAY_LEFT_OUT,
    [K_DEFINITIONS] = WAY_LEFT_OUT,
    [K_THEN] = WAY_LEFT_OUT,
    [K_ELSE] = WAY_LEFT_OUT,
    [K_MAX_CONTAINS] = WAY_LEFT_OUT,
    [K_MIN_CONTAINS] = WAY_LEFT_OUT,
    [K_FORMAT] = WAY_LEFT_OUT,
    [K_CONTENT_ENCODING] = WAY_LEFT_OUT,
    [K_CONTENT_MEDIA_TYPE] = WAY_LEFT_OUT,
    [K_CONTENT_SCHEMA] = WAY_LEFT_OUT,
    [K_REF] = WAY_ONE,
    [K_ANY_OF] = WAY_ONE,
    [K_NOT] = WAY_ONE,
    [K_TYPE] = WAY_ONE,
    [K_ENUM] = WAY_ONE,
    [K_CONST] = WAY_ONE,
    [K_MAXIMUM] = WAY_ONE,
    [K_EXCLUSIVE_MAXIMUM] = WAY_ONE,
    [K_MINIMUM] = WAY_ONE,
    [K_EXCLUSIVE_MINIMUM] = WAY_ONE,
    [K_MAX_LENGTH] = WAY_ONE,
    [K_MIN_LENGTH] = WAY_ONE,
    [K_PATTERN] = WAY_ONE,
    [K_MAX_ITEMS] = WAY_ONE,
    [K_MIN_ITEMS] = WAY_ONE,
    [K_MAX_PROPERTIES] = WAY_ONE,
    [K_MIN_PROPERTIES] = WAY_ONE,
    [K_PROPERTIES] = WAY_MEMBERS,
    [K_ALL_OF] = WAY_ITEMS,
    [K_REQUIRED] = WAY_ITEMS,
};

static void list_ways(const struct gb *g, uint32_t entry, const struct gb_shape *shape,
                      struct ways *ways) {
  const json_t *have[KEYWORD_COUNT];
  const json_t *schema = g->compiler.schema->entries[entry].schema;
  *ways = (struct ways){.count = 0};
  if (json_is_false(schema)) { /* what is never matched is not matched */
    way_add(ways, (struct way){.id = KEYWORD_COUNT});
    return;
  }
  schema_entry_keywords(g->compiler.schema, entry, have);
  for (int id = 0; id < KEYWORD_COUNT; id++) {
    const json_t *value = have[id];
    if (!value)
      continue;
    switch ((enum way_kind)kinds[id]) {
    case WAY_LEFT_OUT:
      if (id == K_FORMAT &&
          g->compiler.schema->resources[g->compiler.schema->entries[entry].resource].vocabularies &
              VOCAB_FORMAT_ASSERTION)
        ways->inexact = true;
      break;
    case WAY_ONE: {
      bool integral = false;
      if (id == K_TYPE && gb_types_of(value, &integral) && integral && shape &&
          shape->types & T_NUMBER && !shape->integral && (shape->minimum || shape->maximum))
        ways->inexact = true; /* numbers with a fraction only, within bounds */
      way_add(ways, (struct way){.id = id, .value = value});
      break;
    }
    case WAY_MEMBERS:
      for (void *at = json_object_iter((json_t *)value); at;
           at = json_object_iter_next((json_t *)value, at))
        if (!json_is_true(json_object_iter_value(at)))
          way_add(ways, (struct way){id, json_object_iter_key(at), json_object_iter_key_len(at),
                                     json_object_iter_value(at)});
      break;
    case WAY_ITEMS:
      for (size_t i = 0, n = json_array_size(value); i < n; i++) {
        const json_t *item = json_array_get(value, i);
        way_add(ways, (struct way){id, json_string_value(item), json_string_length(item), item});
      }
      break;
    case WAY_INEXACT:
      ways->inexact = true;
      break;
    }
  }
}

static bool not_child(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t reason,
                      const char *keyword) {
  uint32_t child;
  if (!gb_child(g, schema, &child))
    return true;
  if (child == NODE_NONE) {
    shape->types = 0;
    return true;
  }
  return gb_merge_not(g, shape, child, reason, keyword);
}

static bool not_values(struct gb *g, struct gb_shape *shape, const json_t *values, bool is_const,
                       uint32_t reason, const char *keyword) {
  for (size_t i = 0, n = is_const ? 1 : json_array_size(values); i < n; i++) {
    const json_t *value = is_const ? values : json_array_get(values, i);
    unsigned type = gb_type_of(value);
    if (type & (T_NULL | T_TRUE | T_FALSE))
      shape->types &= ~type;
    else if (!gb_link_add(g, &shape->not_values,
                          (struct gb_link){.value = value, .entry = reason, .keyword = keyword}))
      return false;
  }
  return true;
}

static void not_bound(struct gb_shape *shape, const json_t *value, bool is_minimum, bool exclusive,
                      uint32_t entry) {
  const json_t **at = is_minimum ? &shape->minimum : &shape->maximum;
  bool *at_exclusive = is_minimum ? &shape->minimum_exclusive : &shape->maximum_exclusive;
  int order = 1;
  if (*at)
    order = is_minimum ? schema_value_compare(value, *at) : schema_value_compare(*at, value);
  if (order < 0)
    return;
  *at_exclusive = exclusive || (!order && *at_exclusive);
  *at = value;
  shape->number_entry = entry;
  shape->types &= T_NUMBER;
}

/* Makes more than, or fewer than, what a limit says. */
static void not_count(struct gb_shape *shape, struct gb_limit *low, struct gb_limit *high,
                      unsigned type, const json_t *value, bool was_minimum, uint32_t entry) {
  uint64_t n = gb_count_of(value);
  shape->types &= type;
  if (was_minimum ? n == 0 : n == UINT64_MAX)
    shape->types = 0;
  else if (was_minimum && n - 1 < high->value)
    *high = (struct gb_limit){n - 1, entry};
  else if (!was_minimum && n + 1 > low->value)
    *low = (struct gb_limit){n + 1, entry};
}

/* Negates bounds, lengths and counts. */
static void follow_limit(struct gb_shape *shape, const struct way *way, uint32_t reason) {
  const json_t *value = way->value;
  switch (way->id) {
  case K_MINIMUM:
  case K_EXCLUSIVE_MINIMUM:
    shape->types &= T_NUMBER;
    not_bound(shape, value, false, way->id == K_MINIMUM, reason);
    return;
  case K_MAXIMUM:
  case K_EXCLUSIVE_MAXIMUM:
    shape->types &= T_NUMBER;
    not_bound(shape, value, true, way->id == K_MAXIMUM, reason);
    return;
  case K_MIN_LENGTH:
  case K_MAX_LENGTH:
    not_count(shape, &shape->min_length, &shape->max_length, T_STRING, value,
              way->id == K_MIN_LENGTH, reason);
    return;
  case K_MIN_ITEMS:
  case K_MAX_ITEMS:
    not_count(shape, &shape->min_items, &shape->max_items, T_ARRAY, value, way->id == K_MIN_ITEMS,
              reason);
    return;
  case K_MIN_PROPERTIES:
  case K_MAX_PROPERTIES:
    not_count(shape, &shape->min_members, &shape->max_members, T_OBJECT, value,
              way->id == K_MIN_PROPERTIES, reason);
    return;
  default: /* KEYWORD_COUNT: the schema was `false` */
    return;
  }
}

/* Follows schemas that must not match either. */
static bool follow_schemas(struct gb *g, struct gb_shape *shape, uint32_t entry,
                           const struct way *way, uint32_t reason, const char *keyword) {
  struct target target;
  uint32_t child;
  if (way->id == K_ALL_OF)
    return not_child(g, shape, way->value, reason, keyword);
  if (way->id == K_NOT) {
    if (!gb_child(g, way->value, &child))
      shape->types = 0;
    return child == NODE_NONE || gb_merge(g, shape, child, GB_NO_SCOPE);
  }
  if (way->id == K_ANY_OF) {
    for (size_t i = 0, n = json_array_size(way->value); i < n; i++)
      if (!not_child(g, shape, json_array_get(way->value, i), reason, keyword))
        return false;
    return true;
  }
  assert(way->id == K_REF);
  if (!schema_ref_resolve(&g->compiler, entry, "$ref", json_string_value(way->value), &target)) {
    g->status = GBNF_INVALID_SCHEMA;
    return false;
  }
  return gb_merge_not(g, shape, target.entry, reason, keyword);
}

static bool follow_way(struct gb *g, struct gb_shape *shape, uint32_t entry, const struct way *way,
                       uint32_t reason, const char *keyword) {
  struct gb_link link = {.entry = reason,
                         .scope = GB_NO_SCOPE,
                         .name = way->name,
                         .length = way->length,
                         .value = way->value,
                         .keyword = keyword,
                         .negated = true};
  bool integral;
  unsigned types;
  switch (way->id) {
  case K_TYPE:
    types = gb_types_of(way->value, &integral);
    shape->types &= ~(integral ? types & ~(unsigned)T_NUMBER : types);
    shape->fractional = shape->fractional || integral;
    return true;
  case K_CONST:
  case K_ENUM:
    return not_values(g, shape, way->value, way->id == K_CONST, reason, keyword);
  case K_PATTERN:
    shape->types &= T_STRING;
    return gb_link_add(g, &shape->patterns, link);
  case K_REQUIRED:
    shape->types &= T_OBJECT;
    return gb_link_add(g, &shape->forbidden, link);
  case K_PROPERTIES:
    shape->types &= T_OBJECT;
    link.kind = SPEC_NOT_MEMBER;
    return gb_link_add(g, &shape->required, link) && gb_link_add(g, &shape->members, link);
  case K_NOT:
  case K_REF:
  case K_ALL_OF:
  case K_ANY_OF:
    return follow_schemas(g, shape, entry, way, reason, keyword);
  default:
    follow_limit(shape, way, reason);
    return true;
  }
}

bool gb_merge_not(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t reason,
                  const char *keyword) {
  struct ways ways;
  if (!gb_spend(g, 1))
    return false;
  list_ways(g, entry, shape, &ways);
  if (ways.inexact || (g->loose && ways.count > 1)) {
    gb_note(g, reason, keyword, "what must not match is kept out by the validator only");
    return true;
  }
  if (!ways.count) {
    shape->types = 0;
    return true;
  }
  if (g->depth >= GB_DEPTH_MAX)
    return gb_too_complex(g, "schemas apply each other too deeply");
  if (ways.count > 1)
    return gb_link_add(
        g, &shape->choices,
        (struct gb_link){.kind = CHOICE_NOT, .entry = entry, .scope = reason, .keyword = keyword});
  g->depth++;
  bool ok = follow_way(g, shape, entry, &ways.items[0], reason, keyword);
  g->depth--;
  return ok;
}

size_t gb_not_branches(struct gb *g, const struct gb_link *choice) {
  struct ways ways;
  list_ways(g, choice->entry, NULL, &ways);
  return ways.count;
}

bool gb_not_branch(struct gb *g, struct gb_shape *shape, const struct gb_link *choice,
                   size_t branch) {
  struct ways ways;
  list_ways(g, choice->entry, NULL, &ways);
  return follow_way(g, shape, choice->entry, &ways.items[branch], choice->scope, choice->keyword);
}
