/* Finds every subschema of a document with its resource, anchors and place, and follows references
 * to other documents. */
#include "base/resource.h"
#include "base/str.h"
#include "format/json_value.h"
#include "schema/validate.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- URIs, RFC 3986 --- */

/* A reference has five parts (RFC 3986, appendix B); `p` is NULL where a part is absent. */
struct part {
  const char *p;
  size_t n;
};
struct uri {
  struct part scheme, authority, path, query, fragment;
};

static bool scheme_char(char c, bool first) {
  if (str_is_letter(c))
    return true;
  return !first && (str_is_digit(c) || c == '+' || c == '-' || c == '.');
}

static struct uri uri_split(const char *s) {
  struct uri uri = {0};
  size_t n = 0;
  while (scheme_char(s[n], n == 0))
    n++;
  if (n && s[n] == ':') {
    uri.scheme = (struct part){s, n};
    s += n + 1;
  }
  if (s[0] == '/' && s[1] == '/') {
    s += 2;
    uri.authority = (struct part){s, strcspn(s, "/?#")};
    s += uri.authority.n;
  }
  uri.path = (struct part){s, strcspn(s, "?#")};
  s += uri.path.n;
  if (*s == '?') {
    s++;
    uri.query = (struct part){s, strcspn(s, "#")};
    s += uri.query.n;
  }
  if (*s == '#')
    uri.fragment = (struct part){s + 1, strlen(s + 1)};
  return uri;
}

/* Applies RFC 3986 5.2.4 to `out` from `start` on. */
static void remove_dot_segments(struct buf *out, size_t start) {
  char *path = out->p + start;
  size_t n = out->n - start, write = 0, read = 0;
  bool absolute = n && path[0] == '/';
  while (read < n) {
    size_t from = read;
    if (path[read] == '/')
      read++;
    size_t name = read;
    while (read < n && path[read] != '/')
      read++;
    size_t length = read - name;
    bool last = read == n;
    bool dot = length == 1 && path[name] == '.';
    bool dots = length == 2 && path[name] == '.' && path[name + 1] == '.';
    if (!dot && !dots) {
      memmove(path + write, path + from, read - from);
      write += read - from;
      continue;
    }
    if (dots) {
      while (write && path[write - 1] != '/')
        write--;
      if (write)
        write--;
    }
    if (last && (absolute || write))
      path[write++] = '/';
  }
  out->n = start + write;
  path[write] = '\0';
}

static void add_part(struct buf *out, const char *before, struct part part, const char *after) {
  if (!part.p)
    return;
  buf_puts(out, before);
  buf_append(out, part.p, part.n);
  buf_puts(out, after);
}

/* Resolves `reference` against `base`, with its fragment, into *out. */
static void schema_uri_resolve(const char *base_text, const char *reference, struct buf *out) {
  struct uri base = uri_split(base_text), ref = uri_split(reference), to = ref;
  bool merge = false;
  buf_append(out, "", 0);
  if (!ref.scheme.p) {
    to.scheme = base.scheme;
    if (!ref.authority.p) {
      to.authority = base.authority;
      if (!ref.path.n) {
        to.path = base.path;
        if (!ref.query.p)
          to.query = base.query;
      } else {
        merge = ref.path.p[0] != '/';
      }
    }
  }
  add_part(out, "", to.scheme, ":");
  add_part(out, "//", to.authority, "");
  size_t start = out->n;
  if (merge) {
    size_t keep = base.path.n;
    while (keep && base.path.p[keep - 1] != '/')
      keep--;
    if (!keep && base.authority.p)
      buf_puts(out, "/");
    buf_append(out, base.path.p, keep);
  }
  buf_append(out, to.path.p, to.path.n);
  if (ref.path.n && (to.authority.p || merge || ref.path.p[0] == '/'))
    remove_dot_segments(out, start);
  add_part(out, "?", to.query, "");
  add_part(out, "#", ref.fragment, "");
}

/* Returns the length up to the '#', or all of it. */
static size_t schema_uri_without_fragment(const char *uri) {
  return strcspn(uri, "#");
}

/* --- documents by URI --- */

struct schema_registry {
  struct arena arena;
  struct map uris; /* -> index into docs */
  json_t **docs;   /* owned */
  size_t count, capacity;
  schema_load_fn load;
  void *load_arg;
};

struct schema_registry *schema_registry_new(void) {
  return xcalloc(1, sizeof(struct schema_registry));
}

void schema_registry_free(struct schema_registry *registry) {
  if (!registry)
    return;
  for (size_t i = 0; i < registry->count; i++)
    json_decref(registry->docs[i]);
  free(registry->docs);
  map_deinit(&registry->uris);
  arena_deinit(&registry->arena);
  free(registry);
}

static void add_name(struct schema_registry *registry, const char *uri, uint32_t index) {
  struct str name = {uri, schema_uri_without_fragment(uri)};
  map_add(&registry->uris, &registry->arena, name, &index);
}

void schema_registry_add(struct schema_registry *registry, const char *uri, json_t *doc) {
  assert(uri && doc);
  uint32_t index = (uint32_t)registry->count;
  registry->docs =
      xgrow(registry->docs, &registry->capacity, registry->count + 1, sizeof *registry->docs);
  registry->docs[registry->count++] = json_incref(doc);
  const char *id = json_string_value(json_object_get(doc, "$id"));
  add_name(registry, uri, index);
  if (id && strstr(id, "://"))
    add_name(registry, id, index);
}

void schema_registry_set_loader(struct schema_registry *registry, schema_load_fn load, void *arg) {
  registry->load = load;
  registry->load_arg = arg;
}

/* Returns a new reference, or NULL. */
static json_t *schema_registry_find(const struct schema_registry *registry, const char *uri) {
  uint32_t index;
  if (!registry)
    return NULL;
  if (map_get(&registry->uris, str_from(uri), &index))
    return json_incref(registry->docs[index]);
  return registry->load ? registry->load(registry->load_arg, uri) : NULL;
}

/* --- what is wrong with a schema --- */

bool schema_compile_stopped(const struct compiler *c) {
  return c->status == SCHEMA_TOO_COMPLEX;
}

/* Reads one token of a JSON Pointer into *out, unescaped; returns the rest. */
static const char *pointer_token(const char *p, struct buf *out) {
  out->n = 0;
  buf_append(out, "", 0);
  for (p++; *p && *p != '/'; p++) {
    if (*p == '~' && (p[1] == '0' || p[1] == '1'))
      buf_append(out, *++p == '0' ? "~" : "/", 1);
    else
      buf_append(out, p, 1);
  }
  return p;
}

/* Turns "/properties/a b/0" into "$.properties[\"a b\"][0]". */
static char *path_of_pointer(const char *pointer) {
  struct buf out = {0}, token = {0};
  buf_puts(&out, "$");
  for (const char *p = pointer; *p == '/';) {
    p = pointer_token(p, &token);
    bool digits = token.n && token.n < 10 && strspn(token.p, "0123456789") == token.n;
    struct path_step step = {NULL, token.p, token.n};
    if (digits)
      buf_printf(&out, "[%s]", token.p);
    else
      schema_step_text(&step, &out);
  }
  buf_deinit(&token);
  return buf_take(&out);
}

static void error_at(struct compiler *c, uint32_t entry, const char *suffix, const char *keyword,
                     char *message) {
  struct buf place = {0};
  schema_entry_text(c->schema, entry, &place);
  buf_puts(&place, suffix);
  const char *pointer = buf_c(&place);
  bool foreign = *pointer != '\0' && *pointer != '/';
  char *path = foreign ? xstrdup(pointer) : path_of_pointer(pointer);
  char *copy = xstrdup(pointer);
  schema_errors_add(c->errors, path, copy, buf_take(&place), keyword, message);
}

bool schema_compile_error(struct compiler *c, uint32_t entry, const char *suffix,
                          const char *keyword, const char *format, ...) {
  char line[400];
  va_list args;
  if (schema_compile_stopped(c))
    return false;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  c->status = SCHEMA_INVALID_SCHEMA;
  error_at(c, entry, suffix, keyword, xstrdup(line));
  return false;
}

bool schema_compile_too_complex(struct compiler *c, const char *what) {
  if (schema_compile_stopped(c))
    return false;
  c->status = SCHEMA_TOO_COMPLEX;
  error_at(c, NODE_NONE, "", "", xstrdup(what));
  return false;
}

/* --- subschemas, and the shape of their keywords --- */

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
  buf_auto_t text = {0};
  add_token(&text, keyword);
  if (member)
    add_token(&text, member);
  return arena_strndup(&c->schema->arena, text.p, text.n);
}

struct pattern *schema_compile_pattern(struct compiler *c, uint32_t entry, const char *suffix,
                                       const char *keyword, const char *text, size_t length) {
  struct schema *s = c->schema;
  struct pattern_error error = {0};
  uint32_t index;
  if (map_get(&c->patterns, (struct str){text, length}, &index))
    return s->patterns[index];
  struct pattern *pattern = NULL;
  if (pattern_compile(text, length, &pattern, &error) != PATTERN_OK) {
    schema_compile_error(c, entry, suffix, keyword, "not a regular expression: %s at byte %zu",
                         error.text, error.offset);
    return NULL;
  }
  s->pattern_bytes += pattern_bytes(pattern);
  if (s->pattern_bytes > SCHEMA_PATTERN_BYTES_MAX) {
    pattern_free(pattern);
    schema_compile_too_complex(c, "the patterns of the schema take more than 64 MiB, compiled");
    return NULL;
  }
  if (s->pattern_bytes <= SCHEMA_QUICK_BYTES_MAX) {
    s->pattern_bytes -= pattern_bytes(pattern);
    pattern_speed_up(pattern);
    s->pattern_bytes += pattern_bytes(pattern);
  }
  s->patterns = xgrow(s->patterns, &s->pattern_capacity, s->pattern_count + 1, sizeof *s->patterns);
  index = (uint32_t)s->pattern_count++;
  s->patterns[index] = pattern;
  map_put(&c->patterns, &s->arena, (struct str){text, length}, index);
  return pattern;
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
  const char *name = keyword->name, *wanted = shape_wrong(keyword->shape, value);
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

/* --- references from a URI to an entry, loading and indexing documents on the way --- */

enum { DIALECT_LEVELS_MAX = 8 }; /* metaschemas may describe metaschemas this deep */

/* Returns a metaschema of draft 07, 2019-09 or 2020-12, NULL if the URI names none. They are
 * compiled in as published at json-schema.org (AFL 2.1 or BSD 3-clause), without white space. */
static json_t *metaschema(const char *uri) {
  char name[128];
  if (strcmp(uri, "http://json-schema.org/draft-07/schema") != 0 &&
      strncmp(uri, LIT("https://json-schema.org/draft/")) != 0)
    return NULL;
  print_into(name, sizeof name, "schema/metaschemas/%s.json",
             strstr(uri, ".org/") + strlen(".org/"));
  const struct resource *file = resource_find(name);
  return file ? json_loadb(file->p, file->n, 0, NULL) : NULL;
}

static json_t *document_find(struct compiler *c, const char *uri) {
  const struct schema_registry *registry = c->opts ? c->opts->registry : NULL;
  json_t *known = metaschema(uri);
  if (known)
    return known;
  json_t *found = schema_registry_find(registry, uri);
  if (!found)
    return NULL;
  if (!json_is_object(found) && !json_is_boolean(found)) {
    json_decref(found);
    return NULL;
  }
  if (schema_value_too_deep(found, SCHEMA_NESTING_MAX)) {
    json_decref(found);
    schema_compile_too_complex(c, "a schema document is nested too deeply");
    return NULL;
  }
  json_t *copy = json_clone(found); /* in a copy no value occurs at two places */
  json_decref(found);
  assert(copy); /* its depth was checked */
  return copy;
}

static const struct {
  const char *uri;
  uint8_t dialect;
} drafts[] = {
    {"http://json-schema.org/draft-06/schema", DIALECT_07},
    {"https://json-schema.org/draft-06/schema", DIALECT_07},
    {"http://json-schema.org/draft-07/schema", DIALECT_07},
    {"https://json-schema.org/draft-07/schema", DIALECT_07},
    {"https://json-schema.org/draft/2019-09/schema", DIALECT_2019},
    {"http://json-schema.org/draft/2019-09/schema", DIALECT_2019},
    {"https://json-schema.org/draft/2020-12/schema", DIALECT_2020},
    {"http://json-schema.org/draft/2020-12/schema", DIALECT_2020},
};

static const struct {
  const char *name; /* what follows ".../vocab/" */
  uint8_t vocabulary;
} vocabularies_known[] = {
    {"core", VOCAB_CORE},
    {"applicator", VOCAB_APPLICATOR},
    {"unevaluated", VOCAB_UNEVALUATED},
    {"validation", VOCAB_VALIDATION},
    {"meta-data", VOCAB_ANNOTATION},
    {"content", VOCAB_ANNOTATION},
    {"format", VOCAB_ANNOTATION},
    {"format-annotation", VOCAB_ANNOTATION},
    {"format-assertion", VOCAB_FORMAT_ASSERTION},
};

/* Reads the vocabularies. False: an unknown one is required. */
static bool vocabularies_read(const json_t *list, uint8_t dialect, uint8_t *vocabularies) {
  const char *prefix = "https://json-schema.org/draft/2020-12/vocab/";
  if (dialect == DIALECT_2019)
    prefix = "https://json-schema.org/draft/2019-09/vocab/";
  unsigned found = VOCAB_CORE;
  for (void *at = json_object_iter((json_t *)list); at;
       at = json_object_iter_next((json_t *)list, at)) {
    const char *uri = json_object_iter_key(at);
    unsigned one = 0;
    if (!strncmp(uri, prefix, strlen(prefix)))
      for (size_t i = 0; i < sizeof vocabularies_known / sizeof *vocabularies_known; i++)
        if (!strcmp(uri + strlen(prefix), vocabularies_known[i].name))
          one = vocabularies_known[i].vocabulary;
    if (!one && json_is_true(json_object_iter_value(at)))
      return false;
    found |= one;
  }
  if (dialect == DIALECT_2019 && found & VOCAB_APPLICATOR)
    found |= VOCAB_UNEVALUATED; /* 2019-09 has one vocabulary for both */
  *vocabularies = (uint8_t)found;
  return true;
}

bool schema_dialect_find(struct compiler *c, const char *uri, uint8_t *dialect,
                         uint8_t *vocabularies, unsigned level) {
  size_t length = schema_uri_without_fragment(uri);
  for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
    if (strlen(drafts[i].uri) == length && !memcmp(uri, drafts[i].uri, length)) {
      *dialect = drafts[i].dialect;
      *vocabularies = VOCAB_ALL;
      return true;
    }
  if (level >= DIALECT_LEVELS_MAX || uri[length] != '\0')
    return false;
  json_auto_t *document = document_find(c, uri);
  const char *above = json_string_value(json_object_get(document, "$schema"));
  bool ok = above && strcmp(above, uri) != 0 &&
            schema_dialect_find(c, above, dialect, vocabularies, level + 1);
  const json_t *list = json_object_get(document, "$vocabulary");
  if (ok && json_is_object(list) && *dialect != DIALECT_07)
    ok = vocabularies_read(list, *dialect, vocabularies);
  return ok;
}

/* Finds the resource of an absolute URI without fragment. NODE_NONE: there is none, or it
 * failed. */
static uint32_t ref_resource(struct compiler *c, const char *uri,
                             const struct schema_resource *from) {
  uint32_t resource;
  if (map_get(&c->uris, str_from(uri), &resource))
    return resource;
  if (!*uri)
    return NODE_NONE;
  uint8_t dialect = from->dialect, vocabularies = from->vocabularies;
  json_t *document = document_find(c, uri);
  if (!document || !schema_index_document(c, document, uri, dialect, vocabularies, &resource))
    return NODE_NONE;
  return resource;
}

static const json_t *ref_member(const json_t *value, const struct buf *token) {
  if (json_is_object(value))
    return json_object_getn(value, token->p, token->n);
  if (!json_is_array(value) || !token->n || token->n > 9 ||
      strspn(token->p, "0123456789") != token->n || (token->p[0] == '0' && token->n > 1))
    return NULL;
  return json_array_get(value, strtoul(token->p, NULL, 10));
}

/* Follows `pointer` from entry `from`. A target that no known keyword leads to is indexed now. */
static bool pointer_find(struct compiler *c, uint32_t from, const char *pointer, uint32_t *entry) {
  const json_t *at = c->schema->entries[from].schema;
  const char *rest = pointer; /* the part of the pointer below the entry `from` */
  buf_auto_t token = {0};
  const char *p = pointer;
  while (at && *p == '/') {
    p = pointer_token(p, &token);
    at = ref_member(at, &token);
    uint32_t known;
    if (json_is_object(at) && schema_index_find(c, at, &known)) {
      from = known;
      rest = p;
    }
  }
  if (!at || *p)
    return false;
  if (!*rest) {
    *entry = from;
    return true;
  }
  char *suffix = arena_strdup(&c->schema->arena, rest);
  return schema_index_schema(c, at, from, suffix, c->schema->entries[from].resource, entry);
}

static bool target_find(struct compiler *c, const struct schema_resource *from,
                        const char *absolute, struct target *target) {
  struct schema *s = c->schema;
  size_t length = schema_uri_without_fragment(absolute);
  buf_auto_t base = {0}, fragment = {0};
  const char *raw = absolute[length] ? absolute + length + 1 : "";
  buf_append(&base, absolute, length);
  buf_percent_decoded(&fragment, str_from(raw));
  bool ok = true;
  uint32_t resource = ref_resource(c, base.p, from);
  if (resource == NODE_NONE) {
    ok = false;
  } else if (!fragment.n) {
    target->entry = s->resources[resource].entry;
  } else if (fragment.p[0] == '/') {
    ok = pointer_find(c, s->resources[resource].entry, fragment.p, &target->entry);
  } else {
    uint32_t dynamic;
    ok = schema_anchor_find(&c->anchors, resource, fragment.p, fragment.n, &target->entry);
    if (ok && schema_anchor_find(&c->dynamic_anchors, resource, fragment.p, fragment.n, &dynamic))
      target->dynamic_name = arena_strndup(&s->arena, fragment.p, fragment.n);
  }
  return ok;
}

bool schema_ref_resolve(struct compiler *c, uint32_t entry, const char *keyword,
                        const char *reference, struct target *target) {
  assert(entry < c->schema->entry_count && reference);
  struct schema *s = c->schema;
  struct schema_resource from = s->resources[s->entries[entry].resource];
  buf_auto_t absolute = {0};
  enum schema_status before = c->status;
  *target = (struct target){0, NULL};
  schema_uri_resolve(from.uri, reference, &absolute);
  bool ok = target_find(c, &from, absolute.p, target);
  uint32_t dynamic;
  if (ok && !strcmp(keyword, "$recursiveRef") &&
      schema_anchor_find(&c->dynamic_anchors, s->entries[target->entry].resource, "", 0,
                         &dynamic) &&
      dynamic == target->entry)
    target->dynamic_name = "";
  if (!ok && c->status == before && !schema_compile_stopped(c)) {
    char suffix[24] = "/";
    strncat(suffix, keyword, sizeof suffix - 2);
    return schema_compile_error(c, entry, suffix, keyword, "\"%.200s\" leads nowhere", reference);
  }
  return ok;
}
