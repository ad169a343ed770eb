/* Makes nonterminals: sets of schemas that one value must match. What the schemas of a set say
 * about each type is merged, and choices are made one after the other, until plain shapes are left;
 * each type of a shape is written by itself. */
#include "gbnf/internal.h"

#include <assert.h>
#include <stdlib.h>

#define NO_SCOPE UINT32_MAX

enum { NAME_BYTES = 40 }; /* of a rule */

struct gb_shapes {
  struct gb_shape *items;
  size_t count, capacity;
};

/* --- shapes: what the schemas of a set say --- */

enum { SHAPES_MAX = 256 }; /* in one set */
enum choice_kind {
  CHOICE_ANY,
  CHOICE_ONE,
  CHOICE_IF,
  CHOICE_LACKS,
  CHOICE_REQUIRED,
  CHOICE_SCHEMA
};

static void link_add(struct gb *g, const struct gb_link **list, struct gb_link link) {
  struct gb_link *copy = gb_get(g, sizeof *copy);
  *copy = link;
  copy->next = *list;
  *list = copy;
}

static bool scope_within(const struct gb *g, uint32_t scope, uint32_t outer) {
  assert(scope == NO_SCOPE || scope < g->scope_count);
  while (scope != NO_SCOPE && scope != outer)
    scope = g->scopes[scope];
  return scope == outer;
}

static unsigned type_of(const json_t *value) {
  static const unsigned types[] = {
      [JSON_OBJECT] = T_OBJECT,  [JSON_ARRAY] = T_ARRAY, [JSON_STRING] = T_STRING,
      [JSON_INTEGER] = T_NUMBER, [JSON_REAL] = T_NUMBER, [JSON_TRUE] = T_TRUE,
      [JSON_FALSE] = T_FALSE,    [JSON_NULL] = T_NULL};
  return types[json_typeof(value)];
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

static bool subschema_at(struct gb *g, const json_t *schema, uint32_t *entry) {
  *entry = NODE_NONE;
  if (json_is_object(schema) && json_object_size(schema))
    schema_index_find(&g->compiler, schema, entry);
  return !json_is_false(schema);
}

/* --- merging: what a schema says about the value, references followed --- */

static void merge(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t scope);

/* Merges a subschema that applies to the same value; NULL: there is none. */
static void merge_one(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t scope) {
  uint32_t entry = NODE_NONE;
  if (schema && !subschema_at(g, schema, &entry))
    shape->types = 0;
  if (entry != NODE_NONE)
    merge(g, shape, entry, scope);
}

static void keep_values(struct gb *g, struct gb_shape *shape, const json_t *values, bool is_const) {
  const struct gb_link *kept = NULL, *before = shape->values;
  unsigned types = 0;
  size_t n = is_const ? 1 : json_array_size(values);
  for (size_t i = n; i-- > 0 && gb_spend(g, 1);) {
    const json_t *value = is_const ? values : json_array_get(values, i);
    bool known = !shape->finite;
    for (const struct gb_link *at = before; at && !known && gb_spend(g, 1); at = at->next) {
      int64_t work = 100000;
      known = schema_value_equal(at->value, value, &work);
    }
    if (!known)
      continue;
    types |= type_of(value);
    link_add(g, &kept, (struct gb_link){.value = value});
  }
  shape->values = kept;
  shape->finite = true;
  shape->types &= types;
}

static void limit_narrow(struct gb_limit *limit, const json_t *value, bool least, uint32_t entry) {
  uint64_t count = value ? schema_value_count(value) : limit->value;
  if (least ? count > limit->value : count < limit->value)
    *limit = (struct gb_limit){count, entry};
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
static void merge_plain(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                        uint32_t entry, uint32_t scope) {
  bool integral = false;
  if (have[K_TYPE]) {
    unsigned types = named_types(have[K_TYPE], &integral);
    shape->types &= types;
    shape->named |= types;
    shape->integral = shape->integral || integral;
  }
  if (have[K_ENUM])
    keep_values(g, shape, have[K_ENUM], false);
  if (have[K_CONST])
    keep_values(g, shape, have[K_CONST], true);
  merge_bounds(shape, have, entry);
  limit_narrow(&shape->min_length, have[K_MIN_LENGTH], true, entry);
  limit_narrow(&shape->max_length, have[K_MAX_LENGTH], false, entry);
  limit_narrow(&shape->min_items, have[K_MIN_ITEMS], true, entry);
  limit_narrow(&shape->max_items, have[K_MAX_ITEMS], false, entry);
  limit_narrow(&shape->min_members, have[K_MIN_PROPERTIES], true, entry);
  limit_narrow(&shape->max_members, have[K_MAX_PROPERTIES], false, entry);
  const struct {
    const json_t *value;
    const struct gb_link **list;
  } lists[] = {{have[K_PATTERN], &shape->patterns},
               {have[K_FORMAT], &shape->formats},
               {have[K_MULTIPLE_OF], &shape->multiples},
               {have[K_CONTAINS], &shape->contains},
               {json_is_true(have[K_UNIQUE_ITEMS]) ? have[K_UNIQUE_ITEMS] : NULL, &shape->unique},
               {have[K_PROPERTY_NAMES], &shape->names}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (lists[i].value)
      link_add(g, lists[i].list,
               (struct gb_link){.entry = entry, .scope = scope, .value = lists[i].value});
}

/* Adds the name of a member that must be there, or must not. */
static void shape_name_add(struct gb *g, const struct gb_link **list, const json_t *name,
                           uint32_t entry, const char *keyword) {
  link_add(g, list,
           (struct gb_link){.entry = entry,
                            .name = json_string_value(name),
                            .length = json_string_length(name),
                            .keyword = keyword});
}

static void merge_containers(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                             uint32_t entry, uint32_t scope) {
  unsigned dialect =
      g->compiler.schema->resources[g->compiler.schema->entries[entry].resource].dialect;
  const json_t *prefix = have[K_PREFIX_ITEMS], *rest = have[K_ITEMS];
  if (dialect != DIALECT_2020) {
    prefix = NULL;
    if (json_is_array(rest)) {
      prefix = rest;
      rest = have[K_ADDITIONAL_ITEMS];
    }
  }
  struct gb_link items[] = {{.patterns = prefix, .additional = rest},
                            {.additional = have[K_UNEVALUATED_ITEMS], .unevaluated = true}};
  struct gb_link members[] = {{.value = have[K_PROPERTIES],
                               .patterns = have[K_PATTERN_PROPERTIES],
                               .additional = have[K_ADDITIONAL_PROPERTIES]},
                              {.additional = have[K_UNEVALUATED_PROPERTIES], .unevaluated = true}};
  for (size_t i = 0; i < 2; i++) {
    items[i].entry = members[i].entry = entry;
    items[i].scope = members[i].scope = scope;
    if (items[i].patterns || items[i].additional)
      link_add(g, &shape->items, items[i]);
    if (members[i].value || members[i].patterns || members[i].additional)
      link_add(g, &shape->members, members[i]);
  }
  for (size_t i = 0, n = json_array_size(have[K_REQUIRED]); i < n; i++)
    shape_name_add(g, &shape->required, json_array_get(have[K_REQUIRED], i), entry, NULL);
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
static void keep_apart(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t entry,
                       const char *keyword) {
  link_add(g, &shape->others,
           (struct gb_link){.entry = entry, .value = schema, .keyword = keyword});
}

/* Merges a schema that must not match. One keyword by itself can be turned round, if it is about
 * types, required members or values. */
static void merge_not(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t entry,
                      const char *keyword) {
  const json_t *have[KEYWORD_COUNT];
  uint32_t child;
  bool integral = false;
  int only = KEYWORD_COUNT, count = 0;
  if (!subschema_at(g, schema, &child))
    return;
  if (child == NODE_NONE) {
    shape->types = 0;
    return;
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
  unsigned types = only == K_TYPE ? named_types(have[K_TYPE], &integral) : 0;
  if (only == K_TYPE && !integral) {
    shape->types &= ~types;
    return;
  }
  if (only == K_REQUIRED) {
    shape->types &= T_OBJECT;
    link_add(
        g, &shape->choices,
        (struct gb_link){
            .kind = CHOICE_LACKS, .entry = entry, .value = have[K_REQUIRED], .keyword = keyword});
    return;
  }
  if (only != K_CONST && only != K_ENUM) {
    keep_apart(g, shape, schema, entry, keyword);
    return;
  }
  size_t n = only == K_CONST ? 1 : json_array_size(have[K_ENUM]);
  for (size_t i = 0; i < n; i++) {
    const json_t *value = only == K_CONST ? have[K_CONST] : json_array_get(have[K_ENUM], i);
    unsigned type = type_of(value);
    if (type & (T_NULL | T_TRUE | T_FALSE))
      shape->types &= ~type;
    else
      link_add(g, &shape->not_values,
               (struct gb_link){.value = value, .entry = entry, .keyword = keyword});
  }
}

static void merge_references(struct gb *g, struct gb_shape *shape, const json_t *const *have,
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
      return;
    }
    if (kinds[i].id != K_REF && target.dynamic_name &&
        !dynamic_target(g, target.dynamic_name, &target.entry)) {
      gb_note(g, entry, kinds[i].keyword, "where it leads depends on the way to it");
      continue;
    }
    merge(g, shape, target.entry, scope);
  }
}

static void merge_dependencies(struct gb *g, struct gb_shape *shape, const json_t *map,
                               uint32_t entry, uint32_t scope) {
  for (void *at = json_object_iter((json_t *)map); at;
       at = json_object_iter_next((json_t *)map, at)) {
    const json_t *what = json_object_iter_value(at);
    link_add(g, &shape->choices,
             (struct gb_link){.kind = json_is_array(what) ? CHOICE_REQUIRED : CHOICE_SCHEMA,
                              .entry = entry,
                              .scope = scope,
                              .value = what,
                              .name = json_object_iter_key(at),
                              .length = json_object_iter_key_len(at)});
  }
}

static void merge_combinations(struct gb *g, struct gb_shape *shape, const json_t *const *have,
                               uint32_t entry, uint32_t scope) {
  merge_references(g, shape, have, entry, scope);
  for (size_t i = 0, n = json_array_size(have[K_ALL_OF]); i < n; i++)
    merge_one(g, shape, json_array_get(have[K_ALL_OF], i), scope);
  bool decides = have[K_THEN] || have[K_ELSE] || scope != NO_SCOPE;
  struct gb_link choices[] = {{.kind = CHOICE_ANY, .value = have[K_ANY_OF]},
                              {.kind = CHOICE_ONE, .value = have[K_ONE_OF]},
                              {.kind = CHOICE_IF,
                               .value = decides ? have[K_IF] : NULL,
                               .patterns = have[K_THEN],
                               .additional = have[K_ELSE]}};
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (choices[i].value) {
      choices[i].entry = entry;
      choices[i].scope = scope;
      link_add(g, &shape->choices, choices[i]);
    }
  if (have[K_NOT])
    merge_not(g, shape, have[K_NOT], entry, "not");
  if (!(shape->types & T_OBJECT))
    return;
  merge_dependencies(g, shape, have[K_DEPENDENT_REQUIRED], entry, scope);
  merge_dependencies(g, shape, have[K_DEPENDENT_SCHEMAS], entry, scope);
  merge_dependencies(g, shape, have[K_DEPENDENCIES], entry, scope);
}

static void merge(struct gb *g, struct gb_shape *shape, uint32_t entry, uint32_t scope) {
  assert(entry < g->compiler.schema->entry_count);
  const json_t *have[KEYWORD_COUNT], *schema = g->compiler.schema->entries[entry].schema;
  if (!gb_spend(g, 1))
    return;
  if (json_is_boolean(schema)) {
    shape->types = json_is_true(schema) ? shape->types : 0;
    return;
  }
  for (const struct gb_link *at = shape->merged; at; at = at->next)
    if (at->entry == entry && at->scope == scope)
      return;
  if (g->depth >= GB_DEPTH_MAX) {
    gb_too_complex(g, "schemas apply each other too deeply");
    return;
  }
  link_add(g, &shape->merged, (struct gb_link){.entry = entry, .scope = scope});
  schema_entry_keywords(g->compiler.schema, entry, have);
  if (have[K_UNEVALUATED_ITEMS] || have[K_UNEVALUATED_PROPERTIES]) {
    g->scopes = xgrow(g->scopes, &g->scope_capacity, g->scope_count + 1, sizeof *g->scopes);
    g->scopes[g->scope_count] = scope;
    scope = (uint32_t)g->scope_count++;
  }
  g->depth++;
  merge_plain(g, shape, have, entry, scope);
  merge_containers(g, shape, have, entry, scope);
  merge_combinations(g, shape, have, entry, scope);
  g->depth--;
}

/* --- sets --- */

static int by_entry(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static struct gb_set set_of(uint32_t *entries, size_t count) {
  struct gb_set set = {entries, 0, false};
  if (count)
    qsort(entries, count, sizeof *entries, by_entry);
  for (size_t i = 0; i < count; i++)
    if (!set.count || entries[set.count - 1] != entries[i])
      entries[set.count++] = entries[i];
  return set;
}

/* Makes a name of letters, digits and dashes similar to `name`, with room for a suffix. */
static void rule_name(char out[NAME_BYTES], const char *name) {
  size_t n = 0;
  for (const char *p = name; *p && n < NAME_BYTES - 10; p++) {
    bool plain = str_is_digit(*p) || str_is_letter(*p);
    if (plain || (n && out[n - 1] != '-'))
      out[n++] = plain ? *p : '-';
  }
  while (n && out[n - 1] == '-')
    n--;
  out[n] = '\0';
  if (!n)
    memcpy(out, "item", 5);
}

static const struct gb_node *set_node(struct gb *g, const struct gb_set *set, const char *name) {
  assert(set->never || set->count == 0 || set->entries);
  char plain[NAME_BYTES];
  uint32_t rule;
  if (set->never)
    return &gb_never;
  if (!set->count)
    return gb_primitive(g, "value");
  struct str text = {(const char *)set->entries, set->count * sizeof *set->entries};
  if (map_get(&g->sets, text, &rule))
    return gb_ref(g, rule);
  rule_name(plain, name);
  rule = gb_rule_new(g, plain, NULL);
  map_put(&g->sets, &g->arena, text, rule);
  g->jobs = xgrow(g->jobs, &g->job_capacity, g->job_count + 1, sizeof *g->jobs);
  g->jobs[g->job_count++] = (struct gb_job){*set, rule};
  return gb_ref(g, rule);
}

static bool set_matches(struct gb *g, const struct gb_set *set, const json_t *value) {
  const struct schema *s = g->compiler.schema;
  for (size_t i = 0; i < set->count; i++) {
    uint32_t node = s->entries[set->entries[i]].node;
    struct vm vm = {.schema = s, .work = SCHEMA_WORK_MAX / 20};
    if (node == NODE_NONE)
      continue;
    bool ok = schema_run_node(&vm, node, value, NULL);
    pattern_scratch_deinit(&vm.scratch);
    if (vm.trouble != SCHEMA_OK || vm.work < 0)
      gb_too_complex(g, "a value takes too much work to check");
    if (!gb_spend(g, (SCHEMA_WORK_MAX / 20 - vm.work) / 8 + 1) || !ok)
      return false;
  }
  return true;
}

static bool same(const struct gb_link *link, const char *name, size_t length) {
  return link->length == length && !memcmp(link->name, name, length);
}

static bool link_has(const struct gb_link *list, const char *name, size_t length) {
  for (; list; list = list->next)
    if (same(list, name, length))
      return true;
  return false;
}

/* --- what the value of a member must match --- */

/* A member in question has a known name, or is a further one: its name matches one pattern and
 * nobody knows which others, or it matches none. */
struct member_question {
  const char *name;           /* NULL: a further one */
  const struct gb_link *spec; /* that has the pattern */
  const char *pattern;        /* a key of it; NULL: none */
  size_t length;              /* of the name, or the pattern */
};
struct member_answer {
  uint32_t *entries; /* malloc'ed */
  size_t count, capacity;
  bool never;
};
enum cover { COVER_NO, COVER_YES, COVER_UNKNOWN };

static void answer_take(struct gb *g, struct member_answer *answer, const json_t *schema) {
  uint32_t entry;
  if (!answer)
    return;
  if (!subschema_at(g, schema, &entry))
    answer->never = true;
  if (entry == NODE_NONE)
    return;
  answer->entries =
      xgrow(answer->entries, &answer->capacity, answer->count + 1, sizeof *answer->entries);
  answer->entries[answer->count++] = entry;
}

static bool pattern_has(struct gb *g, const char *pattern, size_t pattern_length, const char *name,
                        size_t length) {
  const struct compiler *c = &g->compiler;
  struct pattern_scratch scratch = {0};
  uint32_t index;
  if (!map_get(&c->patterns, (struct str){pattern, pattern_length}, &index))
    return false;
  enum pattern_result result = pattern_match(c->schema->patterns[index], &scratch, name, length);
  pattern_scratch_deinit(&scratch);
  if (result == PATTERN_TOO_COMPLEX)
    gb_too_complex(g, "a pattern takes too much work");
  return gb_spend(g, (int64_t)(scratch.cost / 8 + 1)) && result == PATTERN_MATCH;
}

/* Adds what one schema says; with `answer` NULL it only tells whether it says something. */
static enum cover ask(struct gb *g, const struct member_question *q, const struct gb_link *spec,
                      struct member_answer *answer) {
  json_t *patterns = (json_t *)spec->patterns;
  const json_t *known = q->name ? json_object_getn(spec->value, q->name, q->length) : NULL;
  enum cover cover = COVER_NO;
  if (known) {
    cover = COVER_YES;
    answer_take(g, answer, known);
  }
  if (q->pattern && spec != q->spec && json_object_size(patterns)) {
    if (!json_is_false(spec->additional) || json_object_size(patterns) > 1)
      return COVER_UNKNOWN;
    answer_take(g, answer, json_object_iter_value(json_object_iter(patterns)));
    return COVER_YES; /* its only pattern is the only way in */
  }
  for (void *at = json_object_iter(patterns); at; at = json_object_iter_next(patterns, at)) {
    const char *key = json_object_iter_key(at);
    bool has = q->spec == spec && q->pattern == key;
    if (q->name)
      has = pattern_has(g, key, json_object_iter_key_len(at), q->name, q->length);
    if (!has)
      continue;
    cover = COVER_YES;
    answer_take(g, answer, json_object_iter_value(at));
  }
  if (cover == COVER_NO && spec->additional) {
    cover = COVER_YES;
    answer_take(g, answer, spec->additional);
  }
  return cover;
}

/* Returns true if no schema within the scope of `spec` says anything about the member. */
static bool member_unevaluated(struct gb *g, const struct member_question *q,
                               const struct gb_shape *s, const struct gb_link *spec) {
  for (const struct gb_link *other = s->members; other; other = other->next) {
    if (other == spec || !scope_within(g, other->scope, spec->scope))
      continue;
    if (other->unevaluated ? other->scope != spec->scope : ask(g, q, other, NULL) != COVER_NO)
      return false;
  }
  return true;
}

static struct gb_set question_answer(struct gb *g, const struct member_question *q,
                                     const struct gb_shape *s) {
  struct member_answer answer = {0};
  for (const struct gb_link *spec = s->members; spec && g->status == GBNF_OK; spec = spec->next) {
    if (!spec->unevaluated)
      ask(g, q, spec, &answer);
    else if (member_unevaluated(g, q, s, spec))
      answer_take(g, &answer, spec->additional);
  }
  uint32_t *kept = gb_get(g, answer.count * sizeof *kept);
  if (answer.count)
    memcpy(kept, answer.entries, answer.count * sizeof *kept);
  struct gb_set set = set_of(kept, answer.count);
  set.never = answer.never;
  free(answer.entries);
  return set;
}

/* Returns true if the name matches all of propertyNames. */
static bool name_allowed(struct gb *g, const struct gb_shape *s, const char *name, size_t length) {
  if (link_has(s->forbidden, name, length))
    return false;
  for (const struct gb_link *n = s->names; n; n = n->next) {
    uint32_t entry;
    if (!subschema_at(g, n->value, &entry))
      return false;
    if (entry == NODE_NONE)
      continue;
    json_auto_t *value = json_stringn_nocheck(name, length);
    assert(value);
    bool ok = set_matches(g, &(struct gb_set){&entry, 1, false}, value);
    if (!ok)
      return false;
  }
  return true;
}

static struct gb_set member_set(struct gb *g, const struct gb_shape *shape, const char *name,
                                size_t length) {
  struct member_question q = {.name = name, .length = length};
  if (!name_allowed(g, shape, name, length))
    return (struct gb_set){.never = true};
  return question_answer(g, &q, shape);
}

/* Returns true if an object is closed. Objects of a named type whose properties are listed have no
 * others, where the schema says nothing about others. */
static bool is_closed(const struct gb_shape *s, size_t declared) {
  bool lists = false;
  if (!(s->named & T_OBJECT) || s->names || s->min_members.value > declared)
    return false;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next) {
    if (spec->unevaluated || spec->patterns || spec->additional)
      return false;
    lists = lists || spec->value;
  }
  return lists;
}

static bool is_closed_to(const struct gb_shape *shape, const char *name, size_t length) {
  if (!is_closed(shape, 0) || link_has(shape->required, name, length))
    return false;
  for (const struct gb_link *spec = shape->members; spec; spec = spec->next)
    if (json_object_getn(spec->value, name, length))
      return false;
  return true;
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

static void make_choice(struct gb *g, struct gb_shape *shape, const struct gb_link *choice,
                        size_t branch) {
  const char *keyword = choice_keyword(choice);
  struct gb_link own = {
      .entry = choice->entry, .name = choice->name, .length = choice->length, .keyword = keyword};
  switch ((enum choice_kind)choice->kind) {
  case CHOICE_ANY:
  case CHOICE_ONE:
    for (size_t i = 0, n = json_array_size(choice->value); i < n && choice->kind == CHOICE_ONE; i++)
      if (i != branch)
        keep_apart(g, shape, json_array_get(choice->value, i), choice->entry, "oneOf");
    merge_one(g, shape, json_array_get(choice->value, branch), choice->scope);
    return;
  case CHOICE_IF:
    if (branch == 0)
      merge_one(g, shape, choice->value, choice->scope);
    else
      merge_not(g, shape, choice->value, choice->entry, "if");
    merge_one(g, shape, branch == 0 ? choice->patterns : choice->additional, choice->scope);
    return;
  case CHOICE_LACKS:
    shape_name_add(g, &shape->forbidden, json_array_get(choice->value, branch), choice->entry,
                   keyword);
    return;
  case CHOICE_REQUIRED:
  case CHOICE_SCHEMA:
    if (branch == 0) {
      link_add(g, &shape->forbidden, own);
      return;
    }
    shape->types &= T_OBJECT;
    if (choice->kind == CHOICE_SCHEMA)
      merge_one(g, shape, choice->value, choice->scope);
    for (size_t i = 0, n = json_array_size(choice->value); i < n; i++)
      shape_name_add(g, &shape->required, json_array_get(choice->value, i), choice->entry, keyword);
    link_add(g, &shape->required, own);
    return;
  }
}

/* Takes the oldest choice out of the list: an object's members keep the order of the schema. */
static const struct gb_link *choice_take(struct gb *g, struct gb_shape *shape) {
  size_t n;
  const struct gb_link **links = gb_links(g, shape->choices, &n);
  shape->choices = NULL;
  for (size_t i = 1; i < n; i++)
    link_add(g, &shape->choices, *links[i]);
  return links[0];
}

/* Lists what the shape may match although it must not: `oneOf`, `not` or `if` of a schema that it
 * is not apart from by itself. */
static void note_others(struct gb *g, const struct gb_shape *shape) {
  for (const struct gb_link *other = shape->others; other && !shape->finite; other = other->next) {
    struct gb_shape both = *shape;
    bool quiet = g->quiet, apart = false;
    both.choices = both.others = NULL;
    g->quiet = true;
    merge_one(g, &both, other->value, NO_SCOPE);
    for (const struct gb_link *r = both.required; r && both.types == T_OBJECT; r = r->next)
      apart = apart || is_closed_to(shape, r->name, r->length);
    apart = apart || shape_is_never(g, &both, 2);
    g->quiet = quiet;
    if (!apart && g->status == GBNF_OK)
      gb_note(g, other->entry, other->keyword,
              "what must not match is kept out by the validator only");
  }
}

struct expansion {
  struct gb_shapes *out;
  size_t max;
  bool overflow;
};

static void expand(struct gb *g, struct gb_shape *shape, struct expansion *e, unsigned level) {
  while (gb_spend(g, 1) && alive(shape) && shape->choices) {
    const struct gb_link *choice = choice_take(g, shape);
    if (g->loose && level) {
      gb_note(g, choice->entry, choice_keyword(choice),
              "too many combinations with other choices: kept by the validator only");
      continue;
    }
    size_t n = branches(choice);
    if (e->out->count + n > e->max || level > 30)
      e->overflow = true;
    for (size_t i = 0; i < n && !e->overflow; i++) {
      struct gb_shape copy = *shape;
      make_choice(g, &copy, choice, i);
      expand(g, &copy, e, level + 1);
    }
    return;
  }
  if (g->status != GBNF_OK || !shape->types || shape_is_never(g, shape, 2))
    return;
  if (e->out->count >= e->max) {
    e->overflow = true;
    return;
  }
  note_others(g, shape);
  e->out->items = xgrow(e->out->items, &e->out->capacity, e->out->count + 1, sizeof *e->out->items);
  e->out->items[e->out->count++] = *shape;
}

static void merge_set(struct gb *g, const struct gb_set *set, struct gb_shape *shape) {
  *shape = (struct gb_shape){.types = T_ALL,
                             .max_length = {UINT64_MAX, NODE_NONE},
                             .max_items = {UINT64_MAX, NODE_NONE},
                             .max_members = {UINT64_MAX, NODE_NONE}};
  for (size_t i = 0; i < set->count; i++)
    merge(g, shape, set->entries[i], NO_SCOPE);
}

static bool shape_is_never(struct gb *g, const struct gb_shape *shape, unsigned levels) {
  struct gb_shape own = *shape;
  if (!alive(&own))
    return true;
  if (!levels || !gb_spend(g, 1))
    return false;
  if (own.choices && gb_link_count(own.choices) <= 4) {
    const struct gb_link *choice = choice_take(g, &own);
    size_t n = choice->kind == CHOICE_ONE ? 0 : branches(choice);
    bool never = n > 0 && n <= 12;
    for (size_t i = 0; i < n && never; i++) {
      struct gb_shape copy = own;
      make_choice(g, &copy, choice, i);
      never = shape_is_never(g, &copy, levels - 1);
    }
    if (never)
      return true;
  }
  if (own.types != T_OBJECT || own.finite)
    return false;
  for (const struct gb_link *r = own.required; r && g->status == GBNF_OK; r = r->next) {
    struct gb_set set = member_set(g, &own, r->name, r->length);
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
  merge_set(g, set, &shape);
  bool never = shape_is_never(g, &shape, levels);
  g->quiet = quiet;
  return never;
}

/* Breaks a set down into shapes. The caller releases out->items. */
static void shapes_of(struct gb *g, const struct gb_set *set, struct gb_shapes *out) {
  for (int attempt = 0; attempt < 2; attempt++) {
    struct gb_shape shape;
    struct expansion e = {out, attempt ? 10 * SHAPES_MAX : SHAPES_MAX, false};
    out->count = 0;
    g->loose = attempt > 0;
    merge_set(g, set, &shape);
    expand(g, &shape, &e, 0);
    g->loose = false;
    if (!e.overflow)
      return;
  }
  gb_too_complex(g, "a schema has too many alternatives");
}

/* --- arrays --- */

enum { CONTAINS_MAX = 20 };

/* Returns true if the item is unevaluated: no schema within the scope of `spec` says anything about
 * it. Beside `contains` none is: nobody knows yet which items that will match. */
static bool array_unevaluated(struct gb *g, const struct gb_shape *s, const struct gb_link *spec,
                              size_t index) {
  if (s->contains)
    return false;
  for (const struct gb_link *other = s->items; other; other = other->next) {
    if (other == spec || !scope_within(g, other->scope, spec->scope))
      continue;
    if (other->unevaluated && other->scope != spec->scope)
      return false;
    if (!other->unevaluated && (index < json_array_size(other->patterns) || other->additional))
      return false;
  }
  return true;
}

/* Returns the set that item `index` must match, with `also`, if that is an entry. */
static struct gb_set item_set(struct gb *g, const struct gb_shape *s, size_t index, uint32_t also) {
  size_t count = 0;
  uint32_t *entries = gb_get(g, (gb_link_count(s->items) + 1) * sizeof *entries);
  for (const struct gb_link *spec = s->items; spec; spec = spec->next) {
    const json_t *schema = spec->additional;
    uint32_t entry;
    if (spec->unevaluated && !array_unevaluated(g, s, spec, index))
      schema = NULL;
    if (index < json_array_size(spec->patterns))
      schema = json_array_get(spec->patterns, index);
    if (!schema)
      continue;
    if (!subschema_at(g, schema, &entry))
      return (struct gb_set){.never = true};
    if (entry != NODE_NONE)
      entries[count++] = entry;
  }
  if (also != NODE_NONE)
    entries[count++] = also;
  return set_of(entries, count);
}

struct tuple { /* that of the array being written */
  const struct gb_shape *shape;
  const char *name;
  size_t prefix;
  uint64_t min, max;
};

static const struct gb_node *item_node(struct gb *g, const struct tuple *t, size_t index,
                                       uint32_t also) {
  struct gb_set set = item_set(g, t->shape, index, also);
  return gb_seq(g, set_node(g, &set, "item"), gb_space(g));
}

static const struct gb_node *comma(struct gb *g, const struct gb_node *item) {
  return gb_seq(g, gb_word(g, ","), gb_space(g), item);
}

static const struct gb_node *items_node(struct gb *g, const struct tuple *t) {
  size_t fixed = t->prefix < t->max ? t->prefix : (size_t)t->max;
  const struct gb_node *rest = item_node(g, t, t->prefix, NODE_NONE), *tail = &gb_empty;
  if (t->max > fixed && fixed == t->prefix) {
    uint64_t before = fixed ? fixed : 1; /* items before the tail of commas */
    uint64_t more = t->max == UINT64_MAX ? UINT64_MAX : t->max - before;
    tail = gb_repeat(g, t->name, comma(g, rest), t->min > before ? t->min - before : 0, more);
  }
  for (size_t i = fixed; i-- > 1;) {
    tail = gb_seq(g, comma(g, item_node(g, t, i, NODE_NONE)), tail);
    if (t->min <= i)
      tail = gb_maybe(g, t->name, tail);
  }
  const struct gb_node *first = fixed ? item_node(g, t, 0, NODE_NONE) : rest;
  const struct gb_node *all = t->max ? gb_seq(g, first, tail) : &gb_never;
  return t->min ? all : gb_maybe(g, t->name, all);
}

/* Makes "... c ... c ...": at least `count` items match `entry`, others may stand before and after
 * them. */
static const struct gb_node *containing(struct gb *g, const struct tuple *t, uint32_t entry,
                                        uint64_t count) {
  const struct gb_node *any = item_node(g, t, 0, NODE_NONE), *one = item_node(g, t, 0, entry);
  const struct gb_node *before =
      gb_repeat(g, t->name, gb_seq(g, any, gb_word(g, ","), gb_space(g)), 0, UINT64_MAX);
  const struct gb_node *next = gb_seq(g, before, one);
  return gb_seq(g, next, gb_repeat(g, t->name, comma(g, next), count - 1, count - 1),
                gb_repeat(g, t->name, comma(g, any), 0, UINT64_MAX));
}

static bool uses_unevaluated(const struct gb_shape *s) {
  for (const struct gb_link *spec = s->items; spec; spec = spec->next)
    if (spec->unevaluated)
      return true;
  return false;
}

/* Chooses the one `contains` that can be held: an entry, else NODE_NONE; the others are listed. */
static void hold_contains(struct gb *g, const struct tuple *t, uint32_t *entry, uint64_t *count) {
  const struct gb_shape *s = t->shape;
  *entry = NODE_NONE;
  *count = 0;
  for (const struct gb_link *c = s->contains; c; c = c->next) {
    const json_t *have[KEYWORD_COUNT];
    uint32_t child;
    schema_entry_keywords(g->compiler.schema, c->entry, have);
    uint64_t min = have[K_MIN_CONTAINS] ? schema_value_count(have[K_MIN_CONTAINS]) : 1;
    bool possible = subschema_at(g, c->value, &child);
    if (!min && !have[K_MAX_CONTAINS])
      continue;
    bool simple = possible && child != NODE_NONE && !t->prefix && t->max == UINT64_MAX &&
                  *entry == NODE_NONE && min && min <= CONTAINS_MAX && t->min <= min &&
                  !uses_unevaluated(s);
    if (simple) {
      *entry = child;
      *count = min;
    }
    if (!simple || have[K_MAX_CONTAINS])
      gb_note(g, c->entry, simple ? "maxContains" : "contains",
              "how many items match is counted by the validator only");
  }
}

static const struct gb_node *array_node(struct gb *g, const struct gb_shape *s, const char *name) {
  struct tuple t = {s, name, 0, s->min_items.value, s->max_items.value};
  uint32_t entry;
  uint64_t count;
  for (const struct gb_link *spec = s->items; spec; spec = spec->next)
    if (json_array_size(spec->patterns) > t.prefix)
      t.prefix = json_array_size(spec->patterns);
  for (size_t i = 0; i <= t.prefix && i < t.max; i++) {
    if (!gb_spend(g, 1))
      return &gb_never;
    if (item_set(g, s, i, NODE_NONE).never)
      t.max = i;
  }
  if (t.max > GB_COUNT_MAX && t.max != UINT64_MAX) {
    gb_note(g, s->max_items.entry, "maxItems", "more than 1,000,000 items");
    t.max = UINT64_MAX;
  }
  if (t.min > GB_COUNT_MAX) {
    gb_note(g, s->min_items.entry, "minItems", "more than 1,000,000 items");
    t.min = GB_COUNT_MAX;
  }
  if (t.min > t.max)
    return &gb_never;
  for (const struct gb_link *u = t.max > 1 ? s->unique : NULL; u; u = u->next)
    gb_note(g, u->entry, "uniqueItems", "a grammar cannot compare items");
  for (const struct gb_link *n = s->not_values; n; n = n->next)
    if (json_is_array(n->value))
      gb_note(g, n->entry, n->keyword, "a single array is kept out by the validator only");
  if (s->contains && uses_unevaluated(s))
    for (const struct gb_link *spec = s->items; spec; spec = spec->next)
      if (spec->unevaluated)
        gb_note(g, spec->entry, "unevaluatedItems", "items that `contains` matched count");
  hold_contains(g, &t, &entry, &count);
  if (entry == NODE_NONE && !s->items && !t.min && t.max == UINT64_MAX)
    return gb_primitive(g, "array");
  const struct gb_node *inner =
      entry != NODE_NONE ? containing(g, &t, entry, count) : items_node(g, &t);
  return gb_seq(g, gb_word(g, "["), gb_space(g), inner, gb_word(g, "]"));
}

/* --- objects: the members that a schema names --- */

enum { COUNTED_MAX = 3000 }; /* positions times counts of an object with member counts */

struct object_member {
  const char *name;
  size_t length;
  bool required;
  const struct gb_node *node; /* name, colon and value */
};
struct object {
  const struct gb_shape *shape;
  const char *rule;
  struct object_member *members;
  size_t count;
  const struct gb_node *other; /* a further member; gb_never: none */
  uint64_t min, max;
  uint64_t count_to; /* members are counted up to here; 0: not at all */
};

/* Collects names in the order in which schemas bring them up; last come required ones that none
 * describes. */
static const struct gb_link **collect_names(struct gb *g, const struct gb_shape *s, size_t *count) {
  size_t spec_count, required_count, room = 0;
  const struct gb_link **specs = gb_links(g, s->members, &spec_count);
  const struct gb_link **required = gb_links(g, s->required, &required_count);
  AUTO(map_deinit) struct map known = {0};
  for (size_t i = 0; i < spec_count; i++)
    room += json_object_size(specs[i]->value);
  room += required_count + gb_link_count(s->forbidden);
  const struct gb_link **names = gb_get(g, (room + 1) * sizeof *names);
  struct gb_link *links = gb_get(g, (room + 1) * sizeof *links);
  *count = 0;
  for (size_t i = 0; i < spec_count + required_count; i++) {
    const struct gb_link *from = i < spec_count ? specs[i] : required[i - spec_count];
    json_t *map = i < spec_count ? (json_t *)from->value : NULL;
    void *at = json_object_iter(map);
    bool single = i >= spec_count;
    while ((at || single) && gb_spend(g, 1)) {
      struct gb_link link = {.entry = from->entry,
                             .keyword = single ? NULL : "properties",
                             .name = single ? from->name : json_object_iter_key(at),
                             .length = single ? from->length : json_object_iter_key_len(at)};
      uint32_t index = (uint32_t)*count;
      if (map_add(&known, &g->arena, (struct str){link.name, link.length}, &index)) {
        links[*count] = link;
        names[*count] = &links[*count];
        ++*count;
      }
      at = single ? NULL : json_object_iter_next(map, at);
      single = false;
    }
  }
  return names;
}

static const struct gb_node *member_node(struct gb *g, const struct gb_node *name,
                                         const struct gb_set *set, const char *rule) {
  const struct gb_node *value = set_node(g, set, rule);
  return gb_seq(g, name, gb_space(g), gb_word(g, ":"), gb_space(g), value, gb_space(g));
}

/* Makes the members. Returns false if a required one is impossible. */
static bool make_members(struct gb *g, struct object *o, const struct gb_link *const *names,
                         size_t count) {
  bool possible = true;
  o->members = gb_get(g, (count + 1) * sizeof *o->members);
  for (size_t i = 0; i < count && gb_spend(g, 2); i++) {
    struct object_member m = {names[i]->name, names[i]->length,
                              link_has(o->shape->required, names[i]->name, names[i]->length), NULL};
    struct gb_set set = member_set(g, o->shape, m.name, m.length);
    m.node = member_node(g, gb_string_literal(g, m.name, m.length), &set, m.name);
    if (m.node->kind == GB_NEVER) {
      possible = possible && !m.required;
      continue;
    }
    char rule[NAME_BYTES];
    rule_name(rule, m.name);
    size_t n = strlen(rule);
    print_into(rule + n, sizeof rule - n, "-kv");
    m.node = gb_named(g, rule, m.node);
    o->members[o->count++] = m;
  }
  return possible;
}

/* --- further members --- */

struct others { /* the further members of an object */
  struct object *object;
  const struct gb_link **taken; /* names that are written separately, or never */
  size_t taken_count;
  const struct gb_node *name; /* of those under no pattern: any that is not taken */
  struct gb_shapes names;     /* what propertyNames wants */
  bool any_name;              /* it wants nothing */
  bool too_many;              /* names are taken: `name` has them, too */
};

/* Lists what says which names there may be, other than patterns. */
static void note_names(struct gb *g, const struct gb_shape *s, const char *why) {
  for (const struct gb_link *spec = s->members; spec; spec = spec->next)
    if (spec->additional)
      gb_note(g, spec->entry, spec->unevaluated ? "unevaluatedProperties" : "additionalProperties",
              why);
}

/* Lists a taken name that may be written as a further one all the same. */
static void note_taken(struct gb *g, const struct gb_link *taken) {
  if (taken->keyword)
    gb_note(g, taken->entry, taken->keyword,
            "a further property may have the name of one that is described");
}

static void other_add(struct gb *g, struct others *o, const struct gb_node *name,
                      const struct gb_set *set) {
  o->object->other = gb_alt(g, o->object->other, member_node(g, name, set, "other"));
}

/* Makes the strings that propertyNames wants. */
static const struct gb_node *wanted_name(struct gb *g, const struct others *o) {
  const struct gb_node *name = &gb_never;
  for (size_t i = 0; i < o->names.count; i++) {
    const struct gb_shape *s = &o->names.items[i];
    if (s->types & T_STRING && !s->finite)
      name = gb_alt(g, name, gb_string(g, s, o->object->rule));
    for (const struct gb_link *v = s->finite ? s->values : NULL; v; v = v->next)
      if (json_is_string(v->value))
        name =
            gb_alt(g, name,
                   gb_string_literal(g, json_string_value(v->value), json_string_length(v->value)));
  }
  return name;
}

static void make_name(struct gb *g, struct others *o) {
  struct str *texts = gb_get(g, (o->taken_count + 1) * sizeof *texts);
  for (size_t i = 0; i < o->taken_count; i++)
    texts[i] = (struct str){o->taken[i]->name, o->taken[i]->length};
  o->name = o->any_name ? gb_except(g, texts, o->taken_count) : wanted_name(g, o);
  o->too_many = !o->name;
  if (o->too_many)
    o->name = gb_primitive(g, "name");
  o->name = gb_named(g, o->object->rule, o->name);
}

/* Makes members whose names match a pattern. Names that match several, or that have a description
 * of their own, are not told apart. */
static void pattern_member(struct gb *g, struct others *o, const struct member_question *q,
                           bool alone, bool one_schema) {
  const struct gb_shape *s = o->object->shape;
  struct gb_pattern p = {
      .text = q->pattern, .length = q->length, .name = o->object->rule, .max = UINT64_MAX};
  struct gb_set set = question_answer(g, q, s);
  const struct gb_node *name = gb_pattern_node(g, &p);
  if (g->status != GBNF_OK)
    return;
  if (!name) {
    gb_note(g, q->spec->entry, "patternProperties", p.why);
    note_names(g, s, p.why);
    name = o->name;
  } else if (!set.never) {
    for (size_t i = 0; i < o->taken_count; i++)
      if (pattern_has(g, p.text, p.length, o->taken[i]->name, o->taken[i]->length))
        note_taken(g, o->taken[i]);
  }
  static const char why[] = "names of several patterns, or of none, are not told apart";
  if (!alone)
    gb_note(g, q->spec->entry, "patternProperties", why);
  if (!one_schema)
    note_names(g, s, why);
  for (const struct gb_link *n = set.never || o->any_name ? NULL : s->names; n; n = n->next)
    gb_note(g, n->entry, "propertyNames",
            "beside patternProperties it is kept by the validator only");
  other_add(g, o, name, &set);
}

/* Makes the members under each pattern, then those under none. */
static void pattern_members(struct gb *g, struct others *o) {
  const struct gb_shape *s = o->object->shape;
  size_t patterns = 0, schemas = 0;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next) {
    patterns += json_object_size(spec->patterns);
    schemas += json_object_size(spec->patterns) > 0;
  }
  struct gb_set rest = question_answer(g, &(struct member_question){0}, s);
  for (const struct gb_link *spec = s->members; spec; spec = spec->next)
    for (void *at = json_object_iter((json_t *)spec->patterns); at;
         at = json_object_iter_next((json_t *)spec->patterns, at)) {
      struct member_question q = {.spec = spec,
                                  .pattern = json_object_iter_key(at),
                                  .length = json_object_iter_key_len(at)};
      pattern_member(g, o, &q, patterns == 1 && rest.never, schemas == 1);
    }
  other_add(g, o, o->name, &rest);
}

/* Makes the members whose names propertyNames lists, each by itself. */
static void listed_members(struct gb *g, struct others *o) {
  for (size_t i = 0; i < o->names.count; i++)
    for (const struct gb_link *v = o->names.items[i].values; v; v = v->next) {
      const char *name = json_string_value(v->value);
      size_t length = json_string_length(v->value);
      bool taken = !name;
      for (size_t k = 0; k < o->taken_count && !taken; k++)
        taken = same(o->taken[k], name, length);
      if (taken)
        continue;
      struct gb_set set = member_set(g, o->object->shape, name, length);
      other_add(g, o, gb_string_literal(g, name, length), &set);
    }
}

/* Finds the shapes of the names that propertyNames wants. */
static void find_names(struct gb *g, struct others *o) {
  const struct gb_shape *s = o->object->shape;
  uint32_t *entries = gb_get(g, (gb_link_count(s->names) + 1) * sizeof *entries);
  size_t count = 0;
  bool never = false;
  for (const struct gb_link *n = s->names; n; n = n->next) {
    never = !subschema_at(g, n->value, &entries[count]) || never;
    count += entries[count] != NODE_NONE;
  }
  o->any_name = !never && !count;
  struct gb_set set = set_of(entries, count);
  if (count && !never)
    shapes_of(g, &set, &o->names);
  for (size_t i = 0; i < o->names.count; i++) {
    const struct gb_shape *n = &o->names.items[i];
    o->any_name = o->any_name ||
                  (n->types & T_STRING && !n->finite && !n->patterns && !n->formats &&
                   !n->not_values && !n->min_length.value && n->max_length.value == UINT64_MAX);
  }
}

/* Makes further members. What propertyNames says beyond single strings is listed there, not where
 * its own keywords stand. */
static void make_others(struct gb *g, struct others *o) {
  const struct gb_shape *s = o->object->shape;
  bool quiet = g->quiet, missed = g->missed;
  g->quiet = true;
  g->missed = false;
  find_names(g, o);
  bool listed = !o->any_name;
  for (size_t i = 0; i < o->names.count; i++)
    listed = listed && (o->names.items[i].finite || !(o->names.items[i].types & T_STRING));
  if (!listed)
    make_name(g, o);
  g->quiet = quiet;
  for (const struct gb_link *n = g->missed && !listed ? s->names : NULL; n; n = n->next)
    gb_note(g, n->entry, "propertyNames", "names of this kind are kept by the validator only");
  g->missed = missed;
  if (listed) {
    listed_members(g, o);
    return;
  }
  for (size_t i = 0; i < o->taken_count; i++)
    if (o->too_many || (!o->any_name && name_allowed(g, s, o->taken[i]->name, o->taken[i]->length)))
      note_taken(g, o->taken[i]);
  pattern_members(g, o);
}

static void make_other(struct gb *g, struct object *object, const struct gb_link **names,
                       size_t count) {
  struct others o = {.object = object, .taken = names, .taken_count = count};
  object->other = &gb_never;
  if (is_closed(object->shape, object->count))
    return;
  for (const struct gb_link *f = object->shape->forbidden; f; f = f->next) {
    bool known = false;
    for (size_t i = 0; i < o.taken_count && !known; i++)
      known = same(f, names[i]->name, names[i]->length);
    if (!known)
      names[o.taken_count++] = f;
  }
  g->naming = true;
  make_others(g, &o);
  g->naming = false;
  free(o.names.items);
  object->other = gb_named(g, object->rule, object->other);
}

/* --- the whole --- */

static void set_counts(struct gb *g, struct object *o) {
  const struct gb_shape *s = o->shape;
  bool open = o->other->kind != GB_NEVER;
  uint64_t required = 0;
  for (size_t i = 0; i < o->count; i++)
    required += o->members[i].required;
  o->min = s->min_members.value > required ? s->min_members.value : 0;
  o->max = open || s->max_members.value < o->count ? s->max_members.value : UINT64_MAX;
  uint64_t to = o->max != UINT64_MAX ? o->max : o->min;
  uint64_t positions = o->count + 1;
  bool too_many = to > GB_COUNT_MAX;
  if (o->count) /* the first comparison keeps the product small */
    too_many = to > COUNTED_MAX || positions * (to + 1) > COUNTED_MAX;
  if (too_many) {
    static const char why[] = "so many properties are counted by the validator only";
    if (o->min)
      gb_note(g, s->min_members.entry, "minProperties", why);
    if (o->max != UINT64_MAX)
      gb_note(g, s->max_members.entry, "maxProperties", why);
    o->min = 0;
    o->max = UINT64_MAX;
  }
  if (open && o->min > required + 1)
    gb_note(g, s->min_members.entry, "minProperties", "a further name may come twice");
  o->count_to = o->max != UINT64_MAX ? o->max : o->min;
}

static const struct gb_node *others(struct gb *g, const struct object *o, uint64_t before) {
  uint64_t max = o->max == UINT64_MAX ? UINT64_MAX : o->max - before;
  return gb_repeat(g, o->rule, gb_seq(g, gb_word(g, ","), gb_space(g), o->other),
                   o->min > before ? o->min - before : 0, max);
}

/* Makes the members that may follow, from the last one on: commas[k] if k members have been
 * written. */
static const struct gb_node *chain(struct gb *g, const struct object *o) {
  size_t width = (size_t)(o->count ? o->count_to : 0) + 1;
  const struct gb_node **commas = gb_get(g, width * sizeof *commas);
  const struct gb_node **next = gb_get(g, width * sizeof *next);
  const struct gb_node **firsts = gb_get(g, (o->count + 1) * sizeof *firsts);
  bool full = o->max != UINT64_MAX; /* the last count is the most that may be */
  for (size_t k = 0; k < width; k++) {
    bool enough = k >= o->min || (!o->count && !o->min);
    commas[k] = enough ? &gb_empty : &gb_never;
    if (o->other->kind != GB_NEVER)
      commas[k] = others(g, o, k);
  }
  size_t end = o->count + 1, first = end; /* filled from the end: the order of the schema */
  if (o->other->kind != GB_NEVER && o->max)
    firsts[--first] = gb_seq(g, o->other, o->count && width > 1 ? commas[1] : others(g, o, 1));
  for (size_t i = o->count; i-- > 0;) {
    const struct object_member *m = &o->members[i];
    size_t after_one = width > 1 ? 1 : 0;
    if (m->required)
      first = end;
    if (o->max)
      firsts[--first] = gb_seq(g, m->node, commas[after_one]);
    for (size_t k = 0; k < width; k++) {
      bool may = !(full && k + 1 == width) || !o->count_to;
      const struct gb_node *on = commas[k + 1 < width ? k + 1 : k];
      const struct gb_node *with =
          may ? gb_seq(g, gb_word(g, ","), gb_space(g), m->node) : &gb_never;
      if (m->required)
        next[k] = gb_seq(g, with, on);
      else if (width == 1)
        next[k] = gb_seq(g, gb_maybe(g, o->rule, with), on);
      else
        next[k] = gb_alt(g, gb_seq(g, with, on), commas[k]);
      if (!m->required)
        next[k] = gb_named(g, o->rule, next[k]);
    }
    memcpy(commas, next, width * sizeof *commas);
  }
  return gb_list(g, GB_ALT, firsts + first, end - first);
}

static const struct gb_node *object_node(struct gb *g, const struct gb_shape *s, const char *name) {
  struct object o = {.shape = s, .rule = name};
  size_t count;
  if (!s->members && !s->required && !s->forbidden && !s->names && !s->min_members.value &&
      s->max_members.value == UINT64_MAX && !s->not_values)
    return gb_primitive(g, "object");
  for (const struct gb_link *n = s->not_values; n; n = n->next)
    if (json_is_object(n->value))
      gb_note(g, n->entry, n->keyword, "a single object is kept out by the validator only");
  const struct gb_link **names = collect_names(g, s, &count);
  if (!make_members(g, &o, names, count))
    return &gb_never;
  make_other(g, &o, names, count);
  set_counts(g, &o);
  const struct gb_node *members = chain(g, &o);
  bool may_be_empty = !s->min_members.value;
  for (size_t i = 0; i < o.count; i++)
    may_be_empty = may_be_empty && !o.members[i].required;
  if (may_be_empty)
    members = members->kind == GB_NEVER ? &gb_empty : gb_maybe(g, name, members);
  return gb_seq(g, gb_word(g, "{"), gb_space(g), members, gb_word(g, "}"));
}

/* --- the rules of sets --- */

static const struct gb_node *shape_node(struct gb *g, const struct gb_shape *shape,
                                        const char *name) {
  const struct gb_node *kids[8];
  size_t n = 0;
  if (shape->types == T_ALL && !shape->integral && !shape->minimum && !shape->maximum &&
      !shape->min_length.value && shape->max_length.value == UINT64_MAX &&
      !shape->min_items.value && shape->max_items.value == UINT64_MAX &&
      !shape->min_members.value && shape->max_members.value == UINT64_MAX && !shape->finite &&
      !shape->not_values && !shape->patterns && !shape->formats && !shape->items &&
      !shape->members && !shape->required && !shape->forbidden && !shape->names &&
      !shape->multiples && !shape->unique && !shape->contains)
    return gb_primitive(g, "value");
  if (shape->types & T_OBJECT)
    kids[n++] = object_node(g, shape, name);
  if (shape->types & T_ARRAY)
    kids[n++] = array_node(g, shape, name);
  if (shape->types & T_STRING)
    kids[n++] = gb_string(g, shape, name);
  if (shape->types & T_NUMBER)
    kids[n++] = gb_number(g, shape);
  if ((shape->types & (T_TRUE | T_FALSE)) == (T_TRUE | T_FALSE))
    kids[n++] = gb_primitive(g, "boolean");
  else if (shape->types & (T_TRUE | T_FALSE))
    kids[n++] = gb_word(g, shape->types & T_TRUE ? "true" : "false");
  if (shape->types & T_NULL)
    kids[n++] = gb_primitive(g, "null");
  return gb_list(g, GB_ALT, kids, n);
}

/* Makes all values of all shapes that the set as a whole accepts: no keyword is left to the
 * validator. */
static const struct gb_node *values_node(struct gb *g, const struct gb_set *set,
                                         const struct gb_shapes *shapes) {
  AUTO(map_deinit) struct map seen = {0};
  size_t count = 0, room = 0;
  for (size_t i = 0; i < shapes->count; i++)
    room += shapes->items[i].finite ? gb_link_count(shapes->items[i].values) : 0;
  const struct gb_node **kids = gb_get(g, room * sizeof *kids);
  for (size_t i = 0; i < shapes->count; i++) {
    const struct gb_shape *shape = &shapes->items[i];
    for (const struct gb_link *v = shape->finite ? shape->values : NULL; v; v = v->next) {
      uint32_t known = 1;
      if (map_add(&seen, &g->arena, MAP_KEY(v->value), &known) && set_matches(g, set, v->value))
        kids[count++] = gb_value_literal(g, v->value, shape->integral);
    }
  }
  return gb_list(g, GB_ALT, kids, count);
}

static const struct gb_node *set_body(struct gb *g, const struct gb_set *set,
                                      const struct gb_shapes *shapes, const char *name) {
  size_t count = 0;
  const struct gb_node **kids = gb_get(g, (shapes->count + 1) * sizeof *kids);
  kids[count++] = values_node(g, set, shapes);
  for (size_t i = 0; i < shapes->count && g->status == GBNF_OK; i++)
    if (!shapes->items[i].finite)
      kids[count++] = shape_node(g, &shapes->items[i], name);
  return gb_list(g, GB_ALT, kids, count);
}

const struct gb_node *gb_schema_node(struct gb *g, const char *name) {
  uint32_t *entry = gb_get(g, sizeof *entry);
  *entry = g->compiler.schema->resources[0].entry;
  return set_node(g, &(struct gb_set){.entries = entry, .count = 1}, name);
}

void gb_sets_build(struct gb *g) {
  struct gb_shapes shapes = {0};
  while (g->status == GBNF_OK && g->job_done < g->job_count) {
    struct gb_job job = g->jobs[g->job_done++];
    shapes_of(g, &job.set, &shapes);
    const struct gb_node *body = set_body(g, &job.set, &shapes, g->rules[job.rule].name);
    g->rules[job.rule].node = body; /* the rules may have moved */
  }
  free(shapes.items);
  assert(g->status != GBNF_OK || g->job_done == g->job_count);
}
