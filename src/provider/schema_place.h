/* schema_place.h - where the JSON Schema of a call goes: to the client, in the dialect that it takes,
 * or to the end of the prompt; and the claimed value back in the canonical shape.
 *
 *   schema_place(&place, profile, transport, schema, prompt)
 *   ... place.sent, place.prompt, place.enforced ...
 *   value = schema_place_value(&place, claimed)
 *   schema_place_deinit(&place)
 *
 * Whatever comes back is checked against the canonical schema by the core. */
#ifndef SEGUE_PROVIDER_SCHEMA_PLACE_H
#define SEGUE_PROVIDER_SCHEMA_PLACE_H

#include "provider/profile.h"

struct schema_place {
  const json_t *sent;   /* what the client gets; NULL: none */
  struct str prompt;    /* what is asked, with the schema's words where they stand there */
  const char *enforced; /* native, tool, grammar, prompt; NULL: there is no schema */
  struct adapted *adapted;
  json_t *plain;
  struct buf text;
};

/* `schema` may be NULL; it and `prompt` are borrowed until schema_place_deinit. */
void schema_place(struct schema_place *place, const struct profile *profile,
                  enum transport transport, const json_t *schema, struct str prompt);
/* What `enforced` is for schemas that the client can hold. */
const char *schema_place_enforced(const struct profile *profile, enum transport transport);
/* Takes the reference of `claimed` (may be NULL), gives a new one. */
json_t *schema_place_value(const struct schema_place *place, json_t *claimed);
void schema_place_deinit(struct schema_place *place); /* a zeroed one is fine */

#endif
