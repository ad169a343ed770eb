/* Places the JSON Schema of a call: with the client, or in the prompt. */
#include "provider/agent/schema_delivery.h"

#include "adapt/adapt.h"
#include "base/limits.h"
#include "format/json_value.h"
#include "provider/schema_prompt.h"

#include <string.h>

/* Takes the schema in the client's dialect. Without a dialect only $schema is removed: claude, for
 * one, refuses a schema that names a draft. Returns false if the dialect cannot hold it. */
static bool place_take(struct schema_delivery *place, const char *name, const json_t *schema) {
  const struct adapt_dialect *dialect = name ? adapt_dialect_find(name) : NULL;
  if (dialect != NULL) {
    place->adapted = adapt(schema, dialect, NULL, NULL);
    place->sent = place->adapted ? adapted_schema(place->adapted) : NULL;
    return place->sent != NULL;
  }
  place->plain = json_clone_top(schema);
  json_object_del(place->plain, "$schema");
  place->sent = place->plain;
  return true;
}

/* Returns the profile's own word for the native protocol, NULL if it is as for a one-shot run. */
static const json_t *own_schema(const struct profile *profile, enum transport transport) {
  return transport == TRANSPORT_NATIVE ? json_object_get(profile->native, "schema") : NULL;
}

const char *schema_delivery_enforced(const struct profile *profile, enum transport transport) {
  const json_t *own = own_schema(profile, transport);
  bool by_client = profile->schema_by != SCHEMA_BY_NONE;
  if (own != NULL)
    return json_string_value(json_object_get(own, "enforced"));
  if (transport == TRANSPORT_ACP)
    by_client = json_object_get(profile->acp, "schema") != NULL;
  return by_client ? profile->capability.structured : "prompt";
}

void schema_delivery(struct schema_delivery *place, const struct profile *profile,
                     enum transport transport, const struct call_request *request) {
  const json_t *schema = request->schema;
  *place = (struct schema_delivery){.prompt = request->prompt};
  if (schema == NULL)
    return;
  const json_t *own = own_schema(profile, transport);
  const char *dialect =
      own ? json_string_value(json_object_get(own, "dialect")) : profile->schema_dialect;
  place->enforced = schema_delivery_enforced(profile, transport);
  bool fits = strcmp(place->enforced, "prompt") != 0 && place_take(place, dialect, schema) &&
              json_dumpb(place->sent, NULL, 0, JSON_COMPACT) <= LIMIT_SCHEMA_SENT_BYTES;
  if (fits)
    return;
  schema_delivery_deinit(place);
  buf_str(&place->text, request->prompt);
  schema_prompt_append(&place->text, request);
  place->prompt = buf_view(&place->text);
  place->enforced = "prompt";
}

json_t *schema_delivery_value(const struct schema_delivery *place, json_t *claimed) {
  json_t *value = NULL;
  if (place->adapted == NULL || claimed == NULL ||
      adapt_reverse(place->adapted, claimed, &value) != ADAPT_OK)
    return claimed;
  json_decref(claimed);
  return value;
}

void schema_delivery_deinit(struct schema_delivery *place) {
  adapted_free(place->adapted);
  json_decref(place->plain);
  buf_deinit(&place->text);
  *place = (struct schema_delivery){0};
}
