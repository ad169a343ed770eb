#include "structured/schema_support.h"

#include <string.h>

struct schema_registry {
  struct schema_arena arena;
  struct map uris; /* -> index into docs */
  json_t **docs;   /* owned */
  size_t count, capacity;
  schema_load_fn load;
  void *load_arg;
};

struct schema_registry *schema_registry_new(void) {
  struct schema_registry *registry = schema_alloc(sizeof *registry);
  if (registry)
    *registry = (struct schema_registry){0};
  return registry;
}

void schema_registry_free(struct schema_registry *registry) {
  if (!registry)
    return;
  for (size_t i = 0; i < registry->count; i++)
    json_decref(registry->docs[i]);
  schema_release(registry->docs);
  schema_map_deinit(&registry->uris);
  schema_arena_deinit(&registry->arena);
  schema_release(registry);
}

static bool add_name(struct schema_registry *registry, const char *uri, uint32_t index) {
  uint32_t known;
  size_t length = schema_uri_without_fragment(uri);
  return schema_map_get(&registry->uris, uri, length, &known) ||
         schema_map_put(&registry->uris, &registry->arena, uri, length, index);
}

bool schema_registry_add(struct schema_registry *registry, const char *uri, json_t *doc) {
  uint32_t index = (uint32_t)registry->count;
  if (!schema_grow((void **)&registry->docs, &registry->capacity, registry->count + 1,
                   sizeof *registry->docs))
    return false;
  registry->docs[registry->count++] = json_incref(doc);
  const char *id = json_string_value(json_object_get(doc, "$id"));
  return add_name(registry, uri, index) &&
         (!id || !strstr(id, "://") || add_name(registry, id, index));
}

void schema_registry_set_loader(struct schema_registry *registry, schema_load_fn load, void *arg) {
  registry->load = load;
  registry->load_arg = arg;
}

json_t *schema_registry_find(const struct schema_registry *registry, const char *uri) {
  uint32_t index;
  if (!registry)
    return NULL;
  if (schema_map_get(&registry->uris, uri, strlen(uri), &index))
    return json_incref(registry->docs[index]);
  return registry->load ? registry->load(registry->load_arg, uri) : NULL;
}
