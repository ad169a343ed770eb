/* Keeps the documents, by URI, that references may lead to. */
#include "schema/support.h"

#include <assert.h>
#include <string.h>

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

json_t *schema_registry_find(const struct schema_registry *registry, const char *uri) {
  uint32_t index;
  if (!registry)
    return NULL;
  if (map_get(&registry->uris, str_from(uri), &index))
    return json_incref(registry->docs[index]);
  return registry->load ? registry->load(registry->load_arg, uri) : NULL;
}
