/* Compiles indexed entries to a program: writes the ops of each node, then finishes the whole. */
#include "format/json_value.h"
#include "schema/compiled.h"
#include "schema/validate.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- the ops of one node, in the order in which they are checked and reported --- */

enum {
  ON_OBJECT = 1 << JSON_OBJECT,
  ON_ARRAY = 1 << JSON_ARRAY,
  ON_STRING = 1 << JSON_STRING,
  ON_NUMBER = TYPE_NUMBER,
  ON_ANY = TYPE_ANY,
  TABLE_FROM = 8 /* from this many names on a table is used */
};

struct emit {
  struct compiler *c;
  uint32_t entry;
  struct schema_resource resource; /* a copy: the array may move */
  const json_t *have[KEYWORD_COUNT];
};

static void *emit_alloc(struct emit *e, size_t size) {
  return arena_alloc(&e->c->schema->arena, size);
}

static unsigned type_bits(const char *name) {
  switch (name[0]) {
  case 'o':
    return ON_OBJECT;
  case 'a':
    return ON_ARRAY;
  case 's':
    return ON_STRING;
  case 'b':
    return TYPE_BOOLEAN;
  case 'i':
    return 1 << JSON_INTEGER | TYPE_INTEGRAL;
  case 'n':
    return name[2] == 'm' ? (unsigned)TYPE_NUMBER : 1 << JSON_NULL;
  default:
    return 0;
  }
}

static unsigned type_mask(const json_t *type) {
  if (json_is_string(type))
    return type_bits(json_string_value(type));
  unsigned mask = 0;
  for (size_t i = 0, n = json_array_size(type); i < n; i++)
    mask |= type_bits(json_string_value(json_array_get(type, i)));
  return mask & 1 << JSON_REAL ? mask & ~(unsigned)TYPE_INTEGRAL : mask;
}

static uint32_t *table_new(struct emit *e, uint32_t count, uint32_t *mask) {
  uint32_t size = 16;
  while (size < count * 2)
    size *= 2;
  *mask = size - 1;
  return emit_alloc(e, size * sizeof(uint32_t));
}

static void table_put(uint32_t *table, uint32_t mask, const char *name, size_t length,
                      uint32_t index) {
  uint32_t at = bytes_hash(name, length) & mask;
  while (table[at])
    at = (at + 1) & mask;
  table[at] = index + 1;
}

static struct op *schema_compile_op(struct compiler *c, enum op_code code, unsigned applies,
                                    const char *keyword) {
  assert(keyword);
  struct schema *s = c->schema;
  s->ops = xgrow(s->ops, &s->op_capacity, s->op_count + 1, sizeof *s->ops);
  struct op *op = &s->ops[s->op_count++];
  *op = (struct op){
      .code = (uint8_t)code, .applies = (uint8_t)applies, .node = NODE_NONE, .keyword = keyword};
  return op;
}

static void emit_enum(struct emit *e, const json_t *values, bool is_const) {
  size_t n = is_const ? 1 : json_array_size(values);
  struct enum_op *o = emit_alloc(e, sizeof *o);
  o->all = values;
  o->strings = emit_alloc(e, n * sizeof *o->strings);
  o->integers = emit_alloc(e, n * sizeof *o->integers);
  o->others = emit_alloc(e, n * sizeof *o->others);
  for (size_t i = 0; i < n; i++) {
    const json_t *value = is_const ? values : json_array_get(values, i);
    switch (json_typeof(value)) {
    case JSON_STRING:
      o->strings[o->string_count++] =
          (struct enum_string){json_string_value(value), json_string_length(value)};
      break;
    case JSON_INTEGER:
      o->integers[o->integer_count++] = json_integer_value(value);
      o->others[o->other_count++] = value; /* a real may be equal to it */
      break;
    case JSON_REAL:
    case JSON_OBJECT:
    case JSON_ARRAY:
      o->others[o->other_count++] = value;
      break;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
      o->simple = (uint8_t)(o->simple | 1 << json_typeof(value));
      break;
    }
  }
  if (o->string_count > TABLE_FROM) {
    o->table = table_new(e, o->string_count, &o->table_mask);
    for (uint32_t i = 0; i < o->string_count; i++)
      table_put(o->table, o->table_mask, o->strings[i].text, o->strings[i].length, i);
  }
  schema_compile_op(e->c, OP_ENUM, ON_ANY, is_const ? "const" : "enum")->u.options = o;
}

static void emit_value(struct emit *e, enum keyword_id id, enum op_code code, unsigned applies,
                       const char *keyword) {
  if (!e->have[id])
    return;
  schema_compile_op(e->c, code, applies, keyword)->u.value = e->have[id];
}

static void emit_count(struct emit *e, enum keyword_id id, enum op_code code, unsigned applies,
                       const char *keyword) {
  if (!e->have[id])
    return;
  schema_compile_op(e->c, code, applies, keyword)->u.count = schema_value_count(e->have[id]);
}

static void emit_strings(struct emit *e) {
  emit_count(e, K_MIN_LENGTH, OP_MIN_LENGTH, ON_STRING, "minLength");
  emit_count(e, K_MAX_LENGTH, OP_MAX_LENGTH, ON_STRING, "maxLength");
  const json_t *pattern = e->have[K_PATTERN];
  if (pattern) {
    struct pattern *compiled =
        schema_compile_pattern(e->c, e->entry, "/pattern", "pattern", json_string_value(pattern),
                               json_string_length(pattern));
    if (compiled) {
      struct op *op = schema_compile_op(e->c, OP_PATTERN, ON_STRING, "pattern");
      op->u.pattern = compiled;
      op->text = json_string_value(pattern);
    }
  }
  const json_t *format = e->have[K_FORMAT];
  bool asserted = (e->c->opts && e->c->opts->assert_formats) ||
                  e->resource.vocabularies & VOCAB_FORMAT_ASSERTION;
  struct format *known = format && asserted ? schema_format_find(json_string_value(format)) : NULL;
  if (known) {
    struct op *op = schema_compile_op(e->c, OP_FORMAT, ON_STRING, "format");
    op->u.format = known;
    op->text = json_string_value(format);
  }
}

static uint32_t schema_compile_child(struct compiler *c, uint32_t entry, const json_t *schema,
                                     const char *keyword, const char *member);

static struct list_op *emit_list_of(struct emit *e, const json_t *list, const char *keyword) {
  size_t n = json_array_size(list);
  struct list_op *o = emit_alloc(e, sizeof *o + n * sizeof *o->nodes);
  o->count = (uint32_t)n;
  for (size_t i = 0; i < n; i++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    o->nodes[i] = schema_compile_child(e->c, e->entry, json_array_get(list, i), keyword, number);
  }
  return o;
}

static void emit_arrays(struct emit *e) {
  emit_count(e, K_MIN_ITEMS, OP_MIN_ITEMS, ON_ARRAY, "minItems");
  emit_count(e, K_MAX_ITEMS, OP_MAX_ITEMS, ON_ARRAY, "maxItems");
  const json_t *prefix = e->have[K_PREFIX_ITEMS], *rest = e->have[K_ITEMS];
  const char *rest_keyword = "items", *prefix_keyword = "prefixItems";
  if (e->resource.dialect != DIALECT_2020) {
    prefix = NULL;
    if (json_is_array(rest)) {
      prefix = rest;
      prefix_keyword = "items";
      rest = e->have[K_ADDITIONAL_ITEMS];
      rest_keyword = "additionalItems";
    }
  }
  if (prefix || rest) {
    struct items_op *o = emit_alloc(e, sizeof *o);
    struct list_op *list = prefix ? emit_list_of(e, prefix, prefix_keyword) : NULL;
    *o = (struct items_op){list ? list->nodes : NULL, list ? list->count : 0, prefix_keyword,
                           NODE_NONE, rest_keyword};
    if (rest)
      o->rest = schema_compile_child(e->c, e->entry, rest, rest_keyword, NULL);
    schema_compile_op(e->c, OP_ITEMS, ON_ARRAY, rest_keyword)->u.items = o;
  }
  if (e->have[K_CONTAINS]) {
    struct contains_op *o = emit_alloc(e, sizeof *o);
    const json_t *min = e->have[K_MIN_CONTAINS], *max = e->have[K_MAX_CONTAINS];
    o->node = schema_compile_child(e->c, e->entry, e->have[K_CONTAINS], "contains", NULL);
    o->has_min = min != NULL;
    o->min = min ? schema_value_count(min) : 1;
    o->max = max ? schema_value_count(max) : UINT64_MAX;
    o->marks = e->resource.dialect == DIALECT_2020;
    schema_compile_op(e->c, OP_CONTAINS, ON_ARRAY, "contains")->u.contains = o;
  }
  if (json_is_true(e->have[K_UNIQUE_ITEMS]))
    schema_compile_op(e->c, OP_UNIQUE, ON_ARRAY, "uniqueItems");
}

static void add_required(struct emit *e, struct object_op *o, struct map *names,
                         const json_t *required, bool lookup) {
  size_t n = json_array_size(required), bits = 0;
  o->required_rest = emit_alloc(e, n * sizeof *o->required_rest);
  for (size_t i = 0; i < n; i++) {
    const json_t *item = json_array_get(required, i);
    const char *name = json_string_value(item);
    size_t length = json_string_length(item);
    uint32_t index = o->count;
    if (lookup || bits == 64) {
      o->required_rest[o->required_rest_count++] = (struct enum_string){name, length};
      continue;
    }
    if (map_add(names, &e->c->schema->arena, (struct str){name, length}, &index))
      o->properties[o->count++] = (struct property){name, length, NODE_NONE, 0};
    if (!o->properties[index].required_bit) {
      o->required_mask |= (uint64_t)1 << bits;
      o->properties[index].required_bit = (uint8_t)++bits;
    }
  }
}

static void fill_object(struct emit *e, struct object_op *o, struct map *names) {
  const json_t *properties = e->have[K_PROPERTIES], *patterns = e->have[K_PATTERN_PROPERTIES];
  const json_t *required = e->have[K_REQUIRED], *additional = e->have[K_ADDITIONAL_PROPERTIES];
  o->properties = emit_alloc(e, (json_object_size(properties) + json_array_size(required)) *
                                    sizeof *o->properties);
  o->patterns = emit_alloc(e, json_object_size(patterns) * sizeof *o->patterns);
  for (void *at = json_object_iter((json_t *)properties); at;
       at = json_object_iter_next((json_t *)properties, at)) {
    const char *name = json_object_iter_key(at);
    size_t length = json_object_iter_key_len(at);
    uint32_t index = o->count++;
    uint32_t node =
        schema_compile_child(e->c, e->entry, json_object_iter_value(at), "properties", name);
    o->properties[index] = (struct property){name, length, node, 0};
    if (required)
      map_put(names, &e->c->schema->arena, (struct str){name, length}, index);
  }
  for (void *at = json_object_iter((json_t *)patterns); at;
       at = json_object_iter_next((json_t *)patterns, at)) {
    const char *text = json_object_iter_key(at);
    char *suffix = schema_pointer_suffix(e->c, "patternProperties", text);
    struct pattern *pattern = schema_compile_pattern(e->c, e->entry, suffix, "patternProperties",
                                                     text, json_object_iter_key_len(at));
    uint32_t node =
        schema_compile_child(e->c, e->entry, json_object_iter_value(at), "patternProperties", text);
    if (pattern)
      o->patterns[o->pattern_count++] = (struct pattern_property){pattern, text, node};
  }
  o->additional = o->names = NODE_NONE;
  if (additional)
    o->additional = schema_compile_child(e->c, e->entry, additional, "additionalProperties", NULL);
  o->additional_is_false = json_is_false(additional);
  if (e->have[K_PROPERTY_NAMES])
    o->names =
        schema_compile_child(e->c, e->entry, e->have[K_PROPERTY_NAMES], "propertyNames", NULL);
  bool walks = o->count || o->pattern_count || additional || o->names != NODE_NONE;
  add_required(e, o, names, required, !walks);
  if (o->count > TABLE_FROM) {
    o->table = table_new(e, o->count, &o->table_mask);
    for (uint32_t i = 0; i < o->count; i++)
      table_put(o->table, o->table_mask, o->properties[i].name, o->properties[i].length, i);
  }
}

static void emit_object(struct emit *e) {
  if (!e->have[K_PROPERTIES] && !e->have[K_PATTERN_PROPERTIES] && !e->have[K_REQUIRED] &&
      !e->have[K_ADDITIONAL_PROPERTIES] && !e->have[K_PROPERTY_NAMES])
    return;
  AUTO(map_deinit) struct map names = {0};
  struct object_op *o = emit_alloc(e, sizeof *o);
  fill_object(e, o, &names);
  schema_compile_op(e->c, OP_OBJECT, ON_OBJECT, "properties")->u.object = o;
}

static void emit_dependency(struct emit *e, const char *keyword, const char *name, size_t length,
                            const json_t *what) {
  bool names = json_is_array(what);
  size_t n = json_array_size(what);
  struct dependency_op *o = emit_alloc(e, sizeof *o + n * sizeof *o->required);
  o->name = name;
  o->length = length;
  o->count = (uint32_t)n;
  for (size_t i = 0; i < n; i++) {
    const json_t *item = json_array_get(what, i);
    o->required[i] = (struct enum_string){json_string_value(item), json_string_length(item)};
  }
  uint32_t node = names ? NODE_NONE : schema_compile_child(e->c, e->entry, what, keyword, name);
  struct op *op = schema_compile_op(e->c, names ? OP_DEPENDENT_REQUIRED : OP_DEPENDENT_SCHEMA,
                                    ON_OBJECT, keyword);
  op->u.dependency = o;
  op->node = node;
}

static void emit_dependencies(struct emit *e, enum keyword_id id, const char *keyword) {
  json_t *map = (json_t *)e->have[id];
  for (void *at = json_object_iter(map); at; at = json_object_iter_next(map, at))
    emit_dependency(e, keyword, json_object_iter_key(at), json_object_iter_key_len(at),
                    json_object_iter_value(at));
}

static bool dynamic_name(struct compiler *c, const char *name, uint16_t *index) {
  for (size_t i = 0; i < c->dynamic_name_count; i++)
    if (!strcmp(c->dynamic_names[i], name)) {
      *index = (uint16_t)i;
      return true;
    }
  if (c->dynamic_name_count == UINT16_MAX)
    return schema_compile_too_complex(c, "too many dynamic anchors");
  c->dynamic_names = xgrow(c->dynamic_names, &c->dynamic_name_capacity, c->dynamic_name_count + 1,
                           sizeof *c->dynamic_names);
  *index = (uint16_t)c->dynamic_name_count;
  c->dynamic_names[c->dynamic_name_count++] = name;
  return true;
}

static uint32_t node_add(struct compiler *c, uint32_t entry) {
  struct schema *s = c->schema;
  if (s->node_count >= SCHEMA_NODES_MAX) {
    schema_compile_too_complex(c, "too many subschemas");
    return NODE_NONE;
  }
  s->nodes = xgrow(s->nodes, &s->node_capacity, s->node_count + 1, sizeof *s->nodes);
  s->nodes[s->node_count] = (struct node){.types = TYPE_ANY, .entry = entry};
  return (uint32_t)s->node_count++;
}

static uint32_t schema_compile_node_of(struct compiler *c, uint32_t entry) {
  assert(entry < c->schema->entry_count);
  struct schema *s = c->schema;
  struct schema_entry *at = &s->entries[entry];
  if (at->node != NODE_NONE)
    return at->node;
  if (json_is_true(at->schema))
    return at->node = NODE_TRUE;
  c->queue = xgrow(c->queue, &c->queue_capacity, c->queue_count + 1, sizeof *c->queue);
  uint32_t node = node_add(c, entry);
  if (node == NODE_NONE)
    return NODE_NONE;
  s->entries[entry].node = node;
  s->nodes[node].resource = at->resource;
  s->resources[at->resource].used = true;
  c->queue[c->queue_count++] = entry;
  return node;
}

static void emit_reference(struct emit *e, enum keyword_id id, const char *keyword) {
  struct target target;
  uint16_t name = 0;
  if (!e->have[id] ||
      !schema_ref_resolve(e->c, e->entry, keyword, json_string_value(e->have[id]), &target))
    return;
  bool dynamic = id != K_REF && target.dynamic_name;
  if (dynamic && !dynamic_name(e->c, target.dynamic_name, &name))
    return;
  uint32_t node = schema_compile_node_of(e->c, target.entry);
  if (node == NODE_NONE)
    return;
  struct op *op = schema_compile_op(e->c, dynamic ? OP_DYNAMIC_REF : OP_REF, ON_ANY, keyword);
  op->node = node;
  op->index = name;
}

static void emit_list(struct emit *e, enum keyword_id id, enum op_code code, const char *keyword) {
  if (!e->have[id])
    return;
  struct list_op *list = emit_list_of(e, e->have[id], keyword);
  schema_compile_op(e->c, code, ON_ANY, keyword)->u.list = list;
}

static uint32_t child(struct emit *e, enum keyword_id id, const char *keyword) {
  if (!e->have[id])
    return NODE_NONE;
  return schema_compile_child(e->c, e->entry, e->have[id], keyword, NULL);
}

static bool has_keyword(const struct emit *e, const json_t *schema, enum keyword_id id) {
  const json_t *have[KEYWORD_COUNT] = {NULL};
  uint32_t entry;
  if (!schema_index_find(e->c, schema, &entry))
    return false;
  schema_entry_keywords(e->c->schema, entry, have);
  return have[id] != NULL;
}

/* Recognizes {"properties": {K: {"const": WORD}}, "required": [K]}, by which a record's `type`
 * chooses its shape: one member then decides the condition. */
static void note_discriminator(const struct emit *e, struct if_op *o) {
  json_t *condition = (json_t *)e->have[K_IF];
  json_t *properties = json_object_get(condition, "properties");
  const json_t *required = json_object_get(condition, "required");
  const char *key = json_object_iter_key(json_object_iter(properties));
  const json_t *member = key ? json_object_get(properties, key) : NULL;
  const char *word = json_string_value(json_object_get(member, "const"));
  const char *needed = json_string_value(json_array_get(required, 0));
  if (word == NULL || needed == NULL || strcmp(key, needed) != 0 ||
      strlen(word) != json_string_length(json_object_get(member, "const")) ||
      json_object_size(condition) != 2 || json_object_size(properties) != 1 ||
      json_object_size(member) != 1 || json_array_size(required) != 1 ||
      !has_keyword(e, condition, K_PROPERTIES) || !has_keyword(e, condition, K_REQUIRED) ||
      !has_keyword(e, member, K_CONST))
    return;
  o->key = key;
  o->word = str_from(word);
}

static void emit_combinations(struct emit *e) {
  emit_reference(e, K_REF, "$ref");
  emit_reference(e, K_DYNAMIC_REF, "$dynamicRef");
  emit_reference(e, K_RECURSIVE_REF, "$recursiveRef");
  emit_list(e, K_ALL_OF, OP_ALL_OF, "allOf");
  emit_list(e, K_ANY_OF, OP_ANY_OF, "anyOf");
  emit_list(e, K_ONE_OF, OP_ONE_OF, "oneOf");
  if (e->have[K_NOT]) {
    uint32_t node = child(e, K_NOT, "not");
    schema_compile_op(e->c, OP_NOT, ON_ANY, "not")->node = node;
  }
  if (e->have[K_IF]) {
    struct if_op *o = emit_alloc(e, sizeof *o);
    *o = (struct if_op){.condition = child(e, K_IF, "if"),
                        .then_node = child(e, K_THEN, "then"),
                        .else_node = child(e, K_ELSE, "else")};
    note_discriminator(e, o);
    schema_compile_op(e->c, OP_IF, ON_ANY, "if")->u.branch = o;
  }
}

static void emit_unevaluated(struct emit *e, enum keyword_id id, enum op_code code,
                             unsigned applies, const char *keyword) {
  if (!e->have[id])
    return;
  uint32_t node = child(e, id, keyword);
  schema_compile_op(e->c, code, applies, keyword)->node = node;
  e->c->schema->nodes[e->c->schema->entries[e->entry].node].tracks = 1;
}

static void emit_all(struct emit *e) {
  if (e->have[K_ENUM])
    emit_enum(e, e->have[K_ENUM], false);
  if (e->have[K_CONST])
    emit_enum(e, e->have[K_CONST], true);
  emit_value(e, K_MINIMUM, OP_MINIMUM, ON_NUMBER, "minimum");
  emit_value(e, K_EXCLUSIVE_MINIMUM, OP_EXCLUSIVE_MINIMUM, ON_NUMBER, "exclusiveMinimum");
  emit_value(e, K_MAXIMUM, OP_MAXIMUM, ON_NUMBER, "maximum");
  emit_value(e, K_EXCLUSIVE_MAXIMUM, OP_EXCLUSIVE_MAXIMUM, ON_NUMBER, "exclusiveMaximum");
  emit_value(e, K_MULTIPLE_OF, OP_MULTIPLE_OF, ON_NUMBER, "multipleOf");
  emit_strings(e);
  emit_arrays(e);
  emit_count(e, K_MIN_PROPERTIES, OP_MIN_PROPERTIES, ON_OBJECT, "minProperties");
  emit_count(e, K_MAX_PROPERTIES, OP_MAX_PROPERTIES, ON_OBJECT, "maxProperties");
  emit_object(e);
  emit_dependencies(e, K_DEPENDENT_REQUIRED, "dependentRequired");
  emit_dependencies(e, K_DEPENDENT_SCHEMAS, "dependentSchemas");
  emit_dependencies(e, K_DEPENDENCIES, "dependencies");
  emit_combinations(e);
  emit_unevaluated(e, K_UNEVALUATED_ITEMS, OP_UNEVALUATED_ITEMS, ON_ARRAY, "unevaluatedItems");
  emit_unevaluated(e, K_UNEVALUATED_PROPERTIES, OP_UNEVALUATED_PROPERTIES, ON_OBJECT,
                   "unevaluatedProperties");
}

bool schema_names_any(const json_t *names) {
  const char *type = json_string_value(json_object_get(names, "type"));
  return json_object_size(names) == 1 && type != NULL && strcmp(type, "string") == 0;
}

void schema_entry_keywords(const struct schema *s, uint32_t entry,
                           const json_t *have[KEYWORD_COUNT]) {
  const json_t *schema = s->entries[entry].schema;
  const struct schema_resource *resource = &s->resources[s->entries[entry].resource];
  bool only_ref =
      resource->dialect == DIALECT_07 && json_is_string(json_object_get(schema, "$ref"));
  unsigned vocabularies = resource->vocabularies | VOCAB_CORE;
  memset(have, 0, KEYWORD_COUNT * sizeof *have);
  for (void *at = json_object_iter((json_t *)schema); at;
       at = json_object_iter_next((json_t *)schema, at)) {
    const struct keyword *k = schema_keyword_find(json_object_iter_key(at), resource->dialect);
    if (k && (!only_ref || k->id == K_REF) && (k->vocabulary & vocabularies || k->id == K_FORMAT))
      have[k->id] = json_object_iter_value(at);
  }
  if (schema_names_any(have[K_PROPERTY_NAMES]))
    have[K_PROPERTY_NAMES] = NULL;
}

static bool schema_compile_entry(struct compiler *c, uint32_t entry) {
  struct schema *s = c->schema;
  struct emit e = {.c = c, .entry = entry, .resource = s->resources[s->entries[entry].resource]};
  const json_t *schema = s->entries[entry].schema;
  uint32_t node = s->entries[entry].node;
  s->nodes[node].first = (uint32_t)s->op_count;
  if (json_is_false(schema)) {
    schema_compile_op(c, OP_FALSE, ON_ANY, "");
  } else {
    schema_entry_keywords(s, entry, e.have);
    if (e.have[K_TYPE])
      s->nodes[node].types = (uint16_t)type_mask(e.have[K_TYPE]);
    emit_all(&e);
  }
  s->nodes[node].count = (uint32_t)s->op_count - s->nodes[node].first;
  return c->status == SCHEMA_OK;
}

/* --- the queue of nodes --- */

static uint32_t schema_compile_child(struct compiler *c, uint32_t entry, const json_t *schema,
                                     const char *keyword, const char *member) {
  uint32_t child;
  if (json_is_true(schema) || (json_is_object(schema) && !json_object_size(schema)))
    return NODE_TRUE;
  if (json_is_object(schema) && schema_index_find(c, schema, &child))
    return schema_compile_node_of(c, child);
  char *suffix = schema_pointer_suffix(c, keyword, member);
  if (!schema_index_schema(c, schema, entry, suffix, c->schema->entries[entry].resource, &child))
    return NODE_NONE;
  return schema_compile_node_of(c, child);
}

static void compile_queue(struct compiler *c) {
  while (c->queue_done < c->queue_count && !c->misshapen && !schema_compile_stopped(c))
    schema_compile_entry(c, c->queue[c->queue_done++]);
}

/* Compiles all used resources that have the anchor of a dynamic reference, until no new one turns
 * up. */
static bool compile_dynamic(struct compiler *c) {
  struct schema *s = c->schema;
  size_t nodes;
  do {
    nodes = s->node_count;
    if (c->dynamic_name_count * s->resource_count > SCHEMA_DYNAMIC_MAX)
      return schema_compile_too_complex(c, "too many dynamic anchors");
    for (size_t name = 0; name < c->dynamic_name_count; name++)
      for (uint32_t r = 0; r < s->resource_count; r++) {
        const char *text = c->dynamic_names[name];
        uint32_t entry;
        if (s->resources[r].used &&
            schema_anchor_find(&c->dynamic_anchors, r, text, strlen(text), &entry))
          schema_compile_node_of(c, entry);
      }
    compile_queue(c);
  } while (s->node_count != nodes && c->status == SCHEMA_OK);
  if (c->status != SCHEMA_OK || !c->dynamic_name_count)
    return c->status == SCHEMA_OK;
  size_t size = c->dynamic_name_count * s->resource_count;
  s->dynamic = arena_alloc(&s->arena, size * sizeof *s->dynamic);
  for (size_t i = 0; i < size; i++) {
    const char *text = c->dynamic_names[i / s->resource_count];
    uint32_t entry;
    s->dynamic[i] = NODE_NONE;
    if (schema_anchor_find(&c->dynamic_anchors, (uint32_t)(i % s->resource_count), text,
                           strlen(text), &entry))
      s->dynamic[i] = s->entries[entry].node;
  }
  return true;
}

/* Returns the k-th node that `node` always applies to its own value; NODE_NONE after the last. */
static uint32_t unconditional(const struct schema *s, uint32_t node, uint32_t k) {
  for (uint32_t i = 0; i < s->nodes[node].count; i++) {
    const struct op *op = &s->ops[s->nodes[node].first + i];
    if (op->code == OP_REF) {
      if (k-- == 0)
        return op->node;
    } else if (op->code == OP_ALL_OF) {
      if (k < op->u.list->count)
        return op->u.list->nodes[k];
      k -= op->u.list->count;
    }
  }
  return NODE_NONE;
}

/* Refuses a schema that applies itself to the same value: it would never end. */
static bool check_cycles(struct compiler *c) {
  struct schema *s = c->schema;
  size_t n = s->node_count;
  enum { NEW, OPEN, DONE };
  uint32_t *stack = xmalloc(n * sizeof *stack), *next = xmalloc(n * sizeof *next);
  unsigned char *state = xcalloc(n, 1); /* NEW */
  bool ok = true;
  for (uint32_t root = 0; ok && root < n; root++) {
    size_t depth = 0;
    if (state[root] != NEW)
      continue;
    state[root] = OPEN;
    next[root] = 0;
    stack[depth++] = root;
    while (ok && depth) {
      uint32_t node = stack[depth - 1], to = unconditional(s, node, next[node]++);
      if (to == NODE_NONE) {
        state[node] = DONE;
        depth--;
      } else if (state[to] == OPEN) {
        ok = schema_compile_error(c, s->nodes[node].entry, "", "$ref",
                                  "the schema refers to itself without an end");
      } else if (state[to] == NEW) {
        state[to] = OPEN;
        next[to] = 0;
        stack[depth++] = to;
      }
    }
  }
  free(stack);
  free(next);
  free(state);
  return ok;
}

void schema_free(struct schema *schema) {
  if (!schema)
    return;
  for (size_t i = 0; i < schema->pattern_count; i++)
    pattern_free(schema->patterns[i]);
  for (size_t i = 0; i < schema->document_count; i++)
    json_decref(schema->documents[i].root);
  free(schema->patterns);
  free(schema->documents);
  free(schema->entries);
  free(schema->resources);
  free(schema->ops);
  free(schema->nodes);
  arena_deinit(&schema->arena);
  free(schema);
}

static void compile_all(struct compiler *c, const json_t *doc) {
  struct schema *s = c->schema;
  uint8_t dialect = DIALECT_2020, vocabularies = VOCAB_ALL;
  uint32_t resource;
  if (node_add(c, 0) == NODE_NONE)
    return;
  json_t *copy = json_clone(doc);
  assert(copy); /* its depth was checked */
  if (c->opts && c->opts->default_draft &&
      !schema_dialect_find(c, c->opts->default_draft, &dialect, &vocabularies, 0)) {
    json_decref(copy);
    schema_compile_error(c, NODE_NONE, "", "$schema", "\"%.200s\" is not a draft known here",
                         c->opts->default_draft);
    return;
  }
  if (!schema_index_document(c, copy, "", dialect, vocabularies, &resource))
    return;
  s->root = schema_compile_node_of(c, s->resources[resource].entry);
  compile_queue(c);
  if (c->status == SCHEMA_OK && compile_dynamic(c) && check_cycles(c)) {
    /* A node that is only a reference becomes its target. No cycles are left by now. */
    for (size_t i = 1; i < s->node_count; i++) {
      struct node *node = &s->nodes[i];
      while (node->count == 1 && node->types == TYPE_ANY && s->ops[node->first].code == OP_REF) {
        const struct node *target = &s->nodes[s->ops[node->first].node];
        if (s->dynamic && target->resource != node->resource)
          break;
        *node = *target;
      }
    }
  }
}

bool schema_compiler_run(struct compiler *c, const json_t *doc) {
  c->schema = xcalloc(1, sizeof *c->schema);
  if (!doc)
    schema_compile_error(c, NODE_NONE, "", "", "there is no schema");
  else if (schema_value_too_deep(doc, SCHEMA_NESTING_MAX)) /* before the copy, which recurses */
    schema_compile_too_complex(c, "the schema is nested too deeply");
  else
    compile_all(c, doc);
  return c->status == SCHEMA_OK;
}

void schema_compiler_deinit(struct compiler *c) {
  map_deinit(&c->uris);
  map_deinit(&c->anchors);
  map_deinit(&c->dynamic_anchors);
  map_deinit(&c->places);
  map_deinit(&c->patterns);
  free(c->queue);
  free(c->dynamic_names);
  c->queue = NULL;
  c->dynamic_names = NULL;
}

struct schema *schema_compile(const json_t *doc, const struct schema_opts *opts,
                              struct schema_errors *errs, enum schema_status *status) {
  AUTO(schema_errors_deinit) struct schema_errors own = {0};
  struct compiler c = {.opts = opts, .errors = errs ? errs : &own, .status = SCHEMA_OK};
  schema_compiler_run(&c, doc);
  schema_compiler_deinit(&c);
  if (status)
    *status = c.status;
  if (c.status == SCHEMA_OK)
    return c.schema;
  schema_free(c.schema);
  return NULL;
}
