/* Finds every subschema of a document with its resource, anchors and place, and checks the shape of
 * keywords. */
#include "schema/program.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool schema_index_find(const struct compiler *c, const json_t *schema, uint32_t *entry) {
  return map_get(&c->places, MAP_KEY(schema), entry);
}

static size_t anchor_key(char *key, size_t size, uint32_t resource, const char *name,
                         size_t length) {
  int n = snprintf(key, size, "%u#", (unsigned)resource);
  if (length > size - (size_t)n)
    length = size - (size_t)n;
  memcpy(key + n, name, length);
  return (size_t)n + length;
}

enum { ANCHOR_KEY_BYTES = 256, ANCHOR_NAME_BYTES = 200 };

bool schema_anchor_find(const struct map *map, uint32_t resource, const char *name, size_t length,
                        uint32_t *entry) {
  char key[ANCHOR_KEY_BYTES];
  size_t n = anchor_key(key, sizeof key, resource, name, length);
  return map_get(map, (struct str){key, n}, entry);
}

/* Matches "^[A-Za-z_][-A-Za-z0-9._]*$". */
static bool anchor_name(const char *name) {
  static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  return *name && strchr(first, *name) &&
         name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-")] ==
             '\0';
}

static bool anchor_add(struct compiler *c, struct map *map, uint32_t entry, const char *keyword,
                       const char *name) {
  char key[ANCHOR_KEY_BYTES], place[32];
  uint32_t resource = c->schema->entries[entry].resource, known;
  size_t length = strlen(name);
  snprintf(place, sizeof place, "/%s", keyword);
  if ((!strcmp(keyword, "$anchor") || !strcmp(keyword, "$dynamicAnchor")) && !anchor_name(name))
    return schema_compile_error(c, entry, place, keyword, "\"%.200s\" is not the name of an anchor",
                                name);
  if (length > ANCHOR_NAME_BYTES)
    return schema_compile_error(c, entry, place, keyword, "the anchor is longer than %d bytes",
                                (int)ANCHOR_NAME_BYTES);
  size_t n = anchor_key(key, sizeof key, resource, name, length);
  if (map == &c->anchors && map_get(map, (struct str){key, n}, &known) && known != entry)
    return schema_compile_error(c, entry, place, keyword, "two schemas have the anchor \"%s\"",
                                name);
  map_put(map, &c->schema->arena, (struct str){key, n}, entry);
  return true;
}

static void add_token(struct buf *out, const char *token) {
  buf_puts(out, "/");
  for (const char *p = token; *p; p++) {
    if (*p == '~')
      buf_puts(out, "~0");
    else if (*p == '/')
      buf_puts(out, "~1");
    else
      buf_append(out, p, 1);
  }
}

char *schema_pointer_suffix(struct compiler *c, const char *keyword, const char *member) {
  struct buf text = {0};
  add_token(&text, keyword);
  if (member)
    add_token(&text, member);
  char *suffix = arena_strndup(&c->schema->arena, text.p, text.n);
  buf_deinit(&text);
  return suffix;
}

static bool type_known(const json_t *name) {
  static const char *const names[] = {"null",   "boolean", "object", "array",
                                      "number", "string",  "integer"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (json_is_string(name) && !strcmp(json_string_value(name), names[i]))
      return true;
  return false;
}

/* Returns true for the name of a type, or a list of names. */
static bool type_or_types(const json_t *value) {
  if (!json_is_array(value))
    return type_known(value);
  for (size_t i = 0, n = json_array_size(value); i < n; i++)
    if (!type_known(json_array_get(value, i)))
      return false;
  return json_array_size(value) > 0;
}

static bool all_strings(const json_t *list) {
  if (!json_is_array(list))
    return false;
  for (size_t i = 0, n = json_array_size(list); i < n; i++)
    if (!json_is_string(json_array_get(list, i)))
      return false;
  return true;
}

/* Says what the value of a keyword must be; NULL if it already is. Subschemas check themselves. */
static const char *shape_wrong(enum shape shape, const json_t *value) {
  switch (shape) {
  case SHAPE_ANY:
  case SHAPE_SCHEMA:
    return NULL;
  case SHAPE_SCHEMA_OR_LIST:
    return NULL;
  case SHAPE_SCHEMA_LIST:
    return json_is_array(value) && json_array_size(value) ? NULL : "a non-empty array of schemas";
  case SHAPE_SCHEMA_MAP:
  case SHAPE_PATTERN_MAP:
    return json_is_object(value) ? NULL : "an object whose members are schemas";
  case SHAPE_DEPENDENCIES:
    return json_is_object(value) ? NULL : "an object whose members are schemas or arrays of names";
  case SHAPE_TYPE:
    if (type_or_types(value))
      return NULL;
    return "one or more of \"string\", \"number\", \"integer\", \"boolean\", "
           "\"null\", \"object\", \"array\"";
  case SHAPE_LIST:
    return json_is_array(value) ? NULL : "an array";
  case SHAPE_NUMBER:
    return json_is_number(value) ? NULL : "a number";
  case SHAPE_POSITIVE:
    return json_is_number(value) && json_number_value(value) > 0 ? NULL : "a number above 0";
  case SHAPE_COUNT:
    if (schema_value_is_integral(value) && json_number_value(value) >= 0)
      return NULL;
    return "an integer from 0 upwards";
  case SHAPE_STRING:
  case SHAPE_PATTERN:
    return json_is_string(value) ? NULL : "a string";
  case SHAPE_BOOL:
    return json_is_boolean(value) ? NULL : "true or false";
  case SHAPE_STRING_LIST:
    return all_strings(value) ? NULL : "an array of strings";
  case SHAPE_STRING_LIST_MAP:
    if (!json_is_object(value))
      return "an object whose members are arrays of strings";
    for (void *at = json_object_iter((json_t *)value); at;
         at = json_object_iter_next((json_t *)value, at))
      if (!all_strings(json_object_iter_value(at)))
        return "an object whose members are arrays of strings";
    return NULL;
  }
  return NULL;
}

static void index_list(struct compiler *c, uint32_t entry, const char *keyword,
                       const json_t *list) {
  for (size_t i = 0, n = json_array_size(list); i < n && !schema_compile_stopped(c); i++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    char *suffix = schema_pointer_suffix(c, keyword, number);
    schema_index_schema(c, json_array_get(list, i), entry, suffix,
                        c->schema->entries[entry].resource, NULL);
  }
}

static void index_map(struct compiler *c, uint32_t entry, const char *keyword, enum shape shape,
                      const json_t *map) {
  for (void *at = json_object_iter((json_t *)map); at && !schema_compile_stopped(c);
       at = json_object_iter_next((json_t *)map, at)) {
    const char *name = json_object_iter_key(at);
    const json_t *member = json_object_iter_value(at);
    char *suffix = schema_pointer_suffix(c, keyword, name);
    if (shape == SHAPE_DEPENDENCIES && json_is_array(member)) {
      if (!all_strings(member)) {
        c->misshapen = true;
        schema_compile_error(c, entry, suffix, keyword, "must be a schema or an array of strings");
      }
      continue;
    }
    if (shape == SHAPE_PATTERN_MAP && c->schema->document_count == 1)
      schema_compile_pattern(c, entry, suffix, keyword, name, json_object_iter_key_len(at));
    schema_index_schema(c, member, entry, suffix, c->schema->entries[entry].resource, NULL);
  }
}

static void index_keyword(struct compiler *c, uint32_t entry, const struct keyword *keyword,
                          const json_t *value) {
  const char *name = keyword->name;
  const char *wanted = shape_wrong(keyword->shape, value);
  char *suffix = schema_pointer_suffix(c, name, NULL);
  if (wanted) {
    c->misshapen = true;
    schema_compile_error(c, entry, suffix, name, "\"%s\" must be %s", name, wanted);
    return;
  }
  switch ((enum shape)keyword->shape) {
  case SHAPE_SCHEMA_OR_LIST:
    if (json_is_array(value)) {
      index_list(c, entry, name, value);
      return;
    }
    schema_index_schema(c, value, entry, suffix, c->schema->entries[entry].resource, NULL);
    return;
  case SHAPE_SCHEMA:
    if (keyword->id == K_ITEMS && json_is_array(value)) {
      c->misshapen = true;
      schema_compile_error(c, entry, suffix, name,
                           "a list of schemas is a tuple of draft 07: write \"prefixItems\", and "
                           "\"items\" for the rest, or \"$schema\": "
                           "\"http://json-schema.org/draft-07/schema#\"");
      return;
    }
    schema_index_schema(c, value, entry, suffix, c->schema->entries[entry].resource, NULL);
    return;
  case SHAPE_SCHEMA_LIST:
    index_list(c, entry, name, value);
    return;
  case SHAPE_SCHEMA_MAP:
  case SHAPE_PATTERN_MAP:
  case SHAPE_DEPENDENCIES:
    index_map(c, entry, name, keyword->shape, value);
    return;
  case SHAPE_PATTERN:
    if (c->schema->document_count ==
        1) /* checked even if nothing refers to it; other schemas are checked when used */
      schema_compile_pattern(c, entry, suffix, name, json_string_value(value),
                             json_string_length(value));
    return;
  case SHAPE_ANY:
  case SHAPE_TYPE:
  case SHAPE_LIST:
  case SHAPE_NUMBER:
  case SHAPE_POSITIVE:
  case SHAPE_COUNT:
  case SHAPE_STRING:
  case SHAPE_BOOL:
  case SHAPE_STRING_LIST:
  case SHAPE_STRING_LIST_MAP:
    return;
  }
}

static uint32_t resource_add(struct schema *s, const struct schema_resource *resource) {
  s->resources =
      xgrow(s->resources, &s->resource_capacity, s->resource_count + 1, sizeof *s->resources);
  s->resources[s->resource_count] = *resource;
  return (uint32_t)s->resource_count++;
}

static bool uri_add(struct compiler *c, uint32_t entry, const char *uri, uint32_t resource) {
  const struct schema_resource *r = c->schema->resources;
  uint32_t known = resource;
  if (map_add(&c->uris, &c->schema->arena, str_from(uri), &known) || known == resource ||
      r[known].document != r[resource].document || !*uri)
    return true;
  return schema_compile_error(c, entry, "/$id", "$id", "two schemas have the identifier \"%s\"",
                              uri);
}

/* Reads $id: it makes a resource or (draft 07, "#name") an anchor. */
static bool index_id(struct compiler *c, uint32_t entry, const char *id) {
  struct schema *s = c->schema;
  struct schema_resource resource = s->resources[s->entries[entry].resource];
  const json_t *schema = s->entries[entry].schema;
  bool is_root = resource.root == schema && resource.entry == entry;
  size_t plain = schema_uri_without_fragment(id);
  const char *fragment = id[plain] ? id + plain + 1 : "";
  if (resource.dialect != DIALECT_07 && *fragment)
    return schema_compile_error(c, entry, "/$id", "$id", "\"$id\" must have no fragment");
  if (plain) {
    struct buf absolute = {0};
    schema_uri_resolve(resource.uri, id, &absolute);
    char *uri = arena_strndup(&s->arena, absolute.p, schema_uri_without_fragment(absolute.p));
    buf_deinit(&absolute);
    uint32_t index = s->entries[entry].resource;
    resource.uri = uri;
    if (is_root) {
      s->resources[index].uri = uri;
    } else {
      const char *draft = json_string_value(json_object_get(schema, "$schema"));
      resource.root = schema;
      resource.entry = entry;
      resource.used = false;
      if (draft && !schema_dialect_find(c, draft, &resource.dialect, &resource.vocabularies, 0))
        return schema_compile_error(c, entry, "/$schema", "$schema", "\"%.200s\" is not known",
                                    draft);
      index = resource_add(s, &resource);
      s->entries[entry].resource = index;
    }
    if (!uri_add(c, entry, uri, index))
      return false;
  }
  return !*fragment || anchor_add(c, &c->anchors, entry, "$id", fragment);
}

static void index_names(struct compiler *c, uint32_t entry) {
  const json_t *schema = c->schema->entries[entry].schema;
  unsigned dialect = c->schema->resources[c->schema->entries[entry].resource].dialect;
  const char *id = json_string_value(json_object_get(schema, "$id"));
  bool overridden = dialect == DIALECT_07 && json_is_string(json_object_get(schema, "$ref"));
  if (id && !overridden && !index_id(c, entry, id))
    return;
  dialect = c->schema->resources[c->schema->entries[entry].resource].dialect;
  const char *name = json_string_value(json_object_get(schema, "$anchor"));
  if (name && dialect != DIALECT_07)
    anchor_add(c, &c->anchors, entry, "$anchor", name);
  name = json_string_value(json_object_get(schema, "$dynamicAnchor"));
  if (name && dialect == DIALECT_2020) {
    anchor_add(c, &c->anchors, entry, "$dynamicAnchor", name);
    anchor_add(c, &c->dynamic_anchors, entry, "$dynamicAnchor", name);
  }
  if (dialect == DIALECT_2019 && json_is_true(json_object_get(schema, "$recursiveAnchor")))
    anchor_add(c, &c->dynamic_anchors, entry, "$recursiveAnchor", "");
}

bool schema_index_schema(struct compiler *c, const json_t *schema, uint32_t parent,
                         const char *suffix, uint32_t resource, uint32_t *entry_out) {
  assert(schema && suffix && resource < c->schema->resource_count);
  struct schema *s = c->schema;
  bool is_root = suffix[0] == '\0';
  uint32_t entry = (uint32_t)s->entry_count;
  if (!json_is_object(schema) && !json_is_boolean(schema)) {
    c->misshapen = true;
    return schema_compile_error(c, parent, suffix, "", "a schema must be an object, true or false");
  }
  if (json_is_boolean(schema) && !entry_out)
    return true; /* jansson shares true and false: they get a place at each use */
  if (s->entry_count >= SCHEMA_NODES_MAX)
    return schema_compile_too_complex(c, "too many subschemas");
  s->entries = xgrow(s->entries, &s->entry_capacity, s->entry_count + 1, sizeof *s->entries);
  s->entry_count++;
  s->entries[entry] =
      (struct schema_entry){schema, suffix, is_root ? entry : parent, resource, NODE_NONE};
  if (entry_out)
    *entry_out = entry;
  if (is_root)
    s->resources[resource].entry = entry;
  if (json_is_boolean(schema))
    return true;
  map_put(&c->places, &s->arena, MAP_KEY(schema), entry);
  index_names(c, entry);
  resource = s->entries[entry].resource;
  for (void *at = json_object_iter((json_t *)schema); at && !schema_compile_stopped(c);
       at = json_object_iter_next((json_t *)schema, at)) {
    const struct keyword *keyword =
        schema_keyword_find(json_object_iter_key(at), s->resources[resource].dialect);
    if (keyword)
      index_keyword(c, entry, keyword, json_object_iter_value(at));
  }
  return c->status == SCHEMA_OK;
}

bool schema_index_document(struct compiler *c, json_t *root, const char *uri, uint8_t dialect,
                           uint8_t vocabularies, uint32_t *resource) {
  struct schema *s = c->schema;
  char *name = arena_strdup(&s->arena, uri);
  s->documents =
      xgrow(s->documents, &s->document_capacity, s->document_count + 1, sizeof *s->documents);
  struct schema_resource r = {name,    root,         0,    (uint32_t)s->document_count,
                              dialect, vocabularies, false};
  s->documents[s->document_count++] = (struct document){root, name};
  if (s->document_count > SCHEMA_DOCUMENTS_MAX)
    return schema_compile_too_complex(c, "too many documents");
  *resource = resource_add(s, &r);
  uint32_t entry = (uint32_t)s->entry_count;
  const char *draft = json_string_value(json_object_get(root, "$schema"));
  struct schema_resource *at = &s->resources[*resource];
  uint8_t found = dialect, found_vocabularies = vocabularies;
  bool draft_known = !draft || schema_dialect_find(c, draft, &found, &found_vocabularies, 0);
  at->dialect = found;
  at->vocabularies = found_vocabularies;
  if (!uri_add(c, entry, name, *resource))
    return false;
  bool ok = schema_index_schema(c, root, entry, "", *resource, &entry);
  if (!draft_known && !schema_compile_stopped(c))
    return schema_compile_error(c, entry, "/$schema", "$schema",
                                "\"%.200s\" is not a draft known here", draft);
  return ok;
}
