/* schemas.h - from a schema's name, path or own keys to its document.
 *
 * A text that holds neither a slash nor a dot is the name of a ready schema
 * (schemas/presets/NAME.json, compiled in); any other text is a path relative to the workflow file,
 * JSON or YAML, and never leads out of its folder; a map is the schema itself. */
#ifndef SEGUE_WORKFLOW_SCHEMAS_H
#define SEGUE_WORKFLOW_SCHEMAS_H

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

/* Returns the built-in schema of that name, a new reference; NULL if there is none. */
json_t *preset_schema(struct str name);
/* Returns what must hold of a built-in schema's values and no keyword says, static; or NULL. */
const char *preset_invariant(struct str name);
/* "address, entities, ...", static. */
const char *preset_names(void);
/* Returns true for a text that can only be a preset's name. */
bool preset_is_name(struct str text);

/* Reads the schema in a file below `folder`: a new reference, or NULL with the error, which names
 * the file and, if known, the place. */
json_t *schema_load_beneath(const char *folder, const char *path, struct err *err) MUST_CHECK;

#endif
