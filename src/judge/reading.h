/* reading.h - a judge's reply to a checked value: the backend's own structured value, or what the
 * extractor finds in the text, and what the whole schema says of it.
 *
 *   reading_init(&r, schema, structured, text)   r.value NULL: nothing there, r.missing says so
 *   reading_deinit(&r) */
#ifndef SEGUE_JUDGE_READING_H
#define SEGUE_JUDGE_READING_H

#include "base/str.h"
#include "structured/schema.h"
#include "structured/tag.h"

#include <jansson.h>

struct reading {
  json_t *value; /* owned; the valid one, else the nearest for naming errors, else NULL */
  bool valid;
  const char *where;   /* native, direct, code_block, brace; NULL with no value */
  const char *missing; /* what to say when there is no value */
  struct schema_errors errors;
};

/* `key` is the member that names the rule: it tells the nearest of several refused values. */
void reading_init(struct reading *r, const struct schema *schema, const char *key,
                  const json_t *structured, struct str text);
void reading_deinit(struct reading *r);

#endif
