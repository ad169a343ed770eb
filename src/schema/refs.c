/* Follows references from a URI to an entry, loading and indexing documents on the way. */
#include "schema/program.h"

#include "format/json_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { DIALECT_LEVELS_MAX = 8 }; /* metaschemas may describe metaschemas this deep */

static json_t *document_find(struct compiler *c, const char *uri) {
  const struct schema_registry *registry = c->opts ? c->opts->registry : NULL;
  const char *text = schema_metaschema_text(uri);
  if (text)
    return json_loads(text, 0, NULL);
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
  json_t *document = document_find(c, uri);
  const char *above = json_string_value(json_object_get(document, "$schema"));
  bool ok = above && strcmp(above, uri) != 0 &&
            schema_dialect_find(c, above, dialect, vocabularies, level + 1);
  const json_t *list = json_object_get(document, "$vocabulary");
  if (ok && json_is_object(list) && *dialect != DIALECT_07)
    ok = vocabularies_read(list, *dialect, vocabularies);
  json_decref(document);
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
  struct buf token = {0};
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
  buf_deinit(&token);
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
  struct buf base = {0}, fragment = {0};
  const char *raw = absolute[length] ? absolute + length + 1 : "";
  buf_append(&base, absolute, length);
  schema_uri_decode(raw, strlen(raw), &fragment);
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
    if (ok && schema_anchor_find(&c->dynamic_anchors, resource, fragment.p, fragment.n, &dynamic)) {
      target->dynamic_name = arena_strndup(&s->arena, fragment.p, fragment.n);
    }
  }
  buf_deinit(&base);
  buf_deinit(&fragment);
  return ok;
}

bool schema_ref_resolve(struct compiler *c, uint32_t entry, const char *keyword,
                        const char *reference, struct target *target) {
  assert(entry < c->schema->entry_count && reference);
  struct schema *s = c->schema;
  struct schema_resource from = s->resources[s->entries[entry].resource];
  struct buf absolute = {0};
  enum schema_status before = c->status;
  *target = (struct target){0, NULL};
  schema_uri_resolve(from.uri, reference, &absolute);
  bool ok = target_find(c, &from, absolute.p, target);
  buf_deinit(&absolute);
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
