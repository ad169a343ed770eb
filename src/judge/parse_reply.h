/* parse_reply.h - turns a judge's reply into a checked value: the backend's own structured value,
 * or the text itself, if it is one value (extract/whole_reply.h), checked against the whole schema.
 *
 *   parsed_reply_init(&r, schema, key, structured, text, report)
 *   parsed_reply_deinit(&r)
 *
 * r.value NULL: there is no answer, r.missing says why. */
#ifndef SEGUE_JUDGE_PARSE_REPLY_H
#define SEGUE_JUDGE_PARSE_REPLY_H

#include "base/str.h"
#include "extract/whole_reply.h"
#include "schema/schema.h"

#include <jansson.h>

struct parsed_reply {
  json_t *value; /* owned; the valid one, else the refused one for naming errors, else NULL */
  bool valid;
  bool native;    /* the backend's own schema mode gave it */
  bool ambiguous; /* no value: sole.places conflict, or the one there is an echo */
  /* native, direct, code_block, brace: where a value was found, though not taken; or NULL */
  const char *where;
  const char *missing; /* message if there is no value */
  struct schema_errors errors;
  struct whole_reply sole; /* reading of the text; zero for a native value */
};

/* A candidate counts if it fits the schema; the nearest has the members `key` and reason. */
struct parsed_reply_check {
  const struct schema *schema;
  const char *key;
};
/* Borrows `reader`. */
struct extract_check parsed_reply_extract_check(struct parsed_reply_check *reader);

/* `key` is the member that names the rule. `report`: the judged text, an echo of which is not an
 * answer; may be empty. */
void parsed_reply_init(struct parsed_reply *r, const struct schema *schema, const char *key,
                       const json_t *structured, struct str text, struct str report);
void parsed_reply_deinit(struct parsed_reply *r);

#endif
