/* Prints the items of an array while a model still writes it. */
#include "cli/ask_stream.h"

#include "base/limits.h"
#include "base/log.h"
#include "cli/json_io.h"
#include "extract/schema_check.h"
#include "format/json_value.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Drops the keywords about the array as a whole rather than its items. */
static void without_whole(json_t *schema) {
  static const char *const keys[] = {"minItems",    "maxItems",    "uniqueItems",     "contains",
                                     "minContains", "maxContains", "unevaluatedItems"};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    json_object_del(schema, keys[i]);
}

bool ask_stream_init(struct ask_stream *s, const json_t *schema, bool json, struct err *err) {
  assert(schema != NULL);
  json_t *doc = json_clone(schema);
  json_t *root = (json_t *)extract_schema_root(doc);
  *s = (struct ask_stream){.json = json, .printed = json_array()};
  item_stream_init(&s->items, LIMIT_STRUCTURED_BYTES);
  bool is_array = extract_schema_want(doc) == EXTRACT_WANT_ARRAY;
  s->by_place =
      json_object_get(root, "prefixItems") != NULL || json_is_array(json_object_get(root, "items"));
  without_whole(root);
  if (is_array)
    s->schema = schema_compile(doc, NULL, NULL, NULL);
  json_decref(doc);
  return s->schema != NULL ||
         err_set(err, ERR_USAGE,
                 "--stream prints the items of an array: the schema's root must have type: array");
}

void ask_stream_deinit(struct ask_stream *s) {
  item_stream_deinit(&s->items);
  schema_free(s->schema);
  json_decref(s->printed);
  *s = (struct ask_stream){0};
}

static void print_item(struct ask_stream *s, const json_t *item) {
  if (s->json) {
    json_t *line =
        json_pack("{sI sO}", "index", (json_int_t)json_array_size(s->printed), "item", item);
    json_io_print(line, JSON_IO_COMPACT);
    json_decref(line);
  } else {
    json_io_print(item, JSON_IO_COMPACT);
  }
  (void)fflush(stdout);
  json_array_append(s->printed, (json_t *)item);
}

static bool passes(const struct ask_stream *s, const json_t *item) {
  json_t *array = s->by_place ? json_clone_top(s->printed) : json_array();
  json_array_append(array, (json_t *)item);
  bool valid = schema_valid(s->schema, array);
  json_decref(array);
  return valid;
}

static bool on_item(void *ctx, const json_t *item) {
  struct ask_stream *s = ctx;
  const json_t *before = json_array_get(s->printed, s->items.count);
  if (before != NULL)
    return json_same(before, item);
  if (!passes(s, item))
    return false;
  print_item(s, item);
  return true;
}

void ask_stream_begin(struct ask_stream *s) {
  assert(s->schema != NULL);
  item_stream_deinit(&s->items);
  item_stream_init(&s->items, LIMIT_STRUCTURED_BYTES);
}

void ask_stream_piece(struct ask_stream *s, const char *p, size_t n) {
  assert(s->schema != NULL);
  assert(p != NULL || n == 0);
  item_stream_feed(&s->items, p, n, on_item, s);
}

bool ask_stream_end(struct ask_stream *s, const json_t *value) {
  assert(s->schema != NULL);
  size_t n = json_array_size(s->printed);
  if (!json_is_array(value))
    return n == 0;
  for (size_t i = 0; i < n; i++)
    if (!json_same(json_array_get(s->printed, i), json_array_get(value, i)))
      return false;
  for (size_t i = n; i < json_array_size(value); i++)
    print_item(s, json_array_get(value, i));
  return true;
}
