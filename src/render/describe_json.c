/* Renders a schema as compact JSON, with or without its annotations. */
#include "render/describe.h"
#include "render/text.h"
#include "schema/program.h"

#include <assert.h>

static const char *const annotations[] = {"title",      "description", "default",   "examples",
                                          "deprecated", "readOnly",    "writeOnly", "$comment"};

struct compact {
  struct buf *out;
  bool annotated;
  unsigned dialect;
};

static void compact_schema(const struct compact *c, const json_t *schema);

static bool is_annotation(const char *name) {
  for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++)
    if (!strcmp(name, annotations[i]))
      return true;
  return false;
}

static void put_key(struct buf *out, bool *first, void *at) {
  buf_puts(out, *first ? "" : ",");
  *first = false;
  render_quoted(json_object_iter_key(at), json_object_iter_key_len(at), out);
  buf_puts(out, ":");
}

/* Puts members that are schemas; others (the lists of `dependencies`) stay as they are. */
static void put_map(const struct compact *c, const json_t *map) {
  bool first = true;
  buf_puts(c->out, "{");
  for (void *at = json_object_iter((json_t *)map); at;
       at = json_object_iter_next((json_t *)map, at)) {
    put_key(c->out, &first, at);
    compact_schema(c, json_object_iter_value(at));
  }
  buf_puts(c->out, "}");
}

static void put_list(const struct compact *c, const json_t *list) {
  buf_puts(c->out, "[");
  for (size_t i = 0, n = json_array_size(list); i < n; i++) {
    buf_puts(c->out, i ? "," : "");
    compact_schema(c, json_array_get(list, i));
  }
  buf_puts(c->out, "]");
}

static void compact_value(const struct compact *c, const struct keyword *keyword,
                          const json_t *value) {
  enum shape_kind { PLAIN, SCHEMA, MAP, LIST } kind = PLAIN;
  switch (keyword ? (enum shape)keyword->shape : SHAPE_ANY) {
  case SHAPE_SCHEMA:
    kind = SCHEMA;
    break;
  case SHAPE_SCHEMA_LIST:
    kind = LIST;
    break;
  case SHAPE_SCHEMA_OR_LIST:
    kind = json_is_array(value) ? LIST : SCHEMA;
    break;
  case SHAPE_SCHEMA_MAP:
  case SHAPE_PATTERN_MAP:
  case SHAPE_DEPENDENCIES:
    kind = MAP;
    break;
  case SHAPE_ANY:
  case SHAPE_TYPE:
  case SHAPE_LIST:
  case SHAPE_NUMBER:
  case SHAPE_POSITIVE:
  case SHAPE_COUNT:
  case SHAPE_STRING:
  case SHAPE_PATTERN:
  case SHAPE_BOOL:
  case SHAPE_STRING_LIST:
  case SHAPE_STRING_LIST_MAP:
    break;
  }
  if (kind == SCHEMA)
    compact_schema(c, value);
  else if (kind == MAP)
    put_map(c, value);
  else if (kind == LIST)
    put_list(c, value);
  else
    render_json(value, false, c->out);
}

static void compact_schema(const struct compact *c, const json_t *schema) {
  bool first = true;
  if (!json_is_object(schema)) {
    render_json(schema, false, c->out);
    return;
  }
  buf_puts(c->out, "{");
  for (void *at = json_object_iter((json_t *)schema); at;
       at = json_object_iter_next((json_t *)schema, at)) {
    const char *name = json_object_iter_key(at);
    if (!c->annotated && is_annotation(name))
      continue;
    put_key(c->out, &first, at);
    compact_value(c, schema_keyword_find(name, c->dialect), json_object_iter_value(at));
  }
  buf_puts(c->out, "}");
}

enum schema_status describe_json(const struct schema *schema, bool keep, char **text) {
  assert(schema != NULL && text != NULL);
  struct buf out = {0};
  struct compact c = {&out, keep, schema->resources[0].dialect};
  compact_schema(&c, schema->documents[0].root);
  buf_puts(&out, "\n");
  *text = buf_take(&out);
  return SCHEMA_OK;
}
