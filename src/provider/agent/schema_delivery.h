/* schema_delivery.h - puts the JSON Schema of a call where the client takes it, in its dialect, or
 * at the end of the prompt; and turns the value in its answer back into the canonical shape.
 *
 *   schema_delivery(&place, profile, transport, request)
 *   ... place.sent, place.prompt, place.enforced ...
 *   value = schema_delivery_value(&place, claimed)
 *   schema_delivery_deinit(&place)
 *
 * The core checks whatever comes back against the canonical schema. */
#ifndef SEGUE_PROVIDER_AGENT_SCHEMA_DELIVERY_H
#define SEGUE_PROVIDER_AGENT_SCHEMA_DELIVERY_H

#include "core/call.h"
#include "provider/profile/profile.h"

struct schema_delivery {
  const json_t *sent;   /* what the client gets; NULL: none */
  struct str prompt;    /* the prompt, with the schema's words if they go there */
  const char *enforced; /* native, tool, grammar, prompt; NULL: there is no schema */
  struct adapted *adapted;
  json_t *plain;
  struct buf text;
};

/* The schema and the prompt of `request` are borrowed until schema_delivery_deinit. */
void schema_delivery(struct schema_delivery *place, const struct profile *profile,
                     enum transport transport, const struct call_request *request);
/* Returns the value of `enforced` for schemas that the client can hold. */
const char *schema_delivery_enforced(const struct profile *profile, enum transport transport);
/* Takes the reference of `claimed` (may be NULL), gives a new one. */
json_t *schema_delivery_value(const struct schema_delivery *place, json_t *claimed);
void schema_delivery_deinit(struct schema_delivery *place); /* a zeroed one is fine */

#endif
