/* yaml_scalar.h - the parts of the YAML reader that do not depend on libyaml: the core schema's
 * types of plain scalars, and trees made from JSON. */
#ifndef SEGUE_FORMAT_YAML_SCALAR_H
#define SEGUE_FORMAT_YAML_SCALAR_H

#include "format/yaml.h"

/* Sets kind and value of a plain scalar from its text. NULL, or what is wrong with it (static). */
const char *yaml_scalar_resolve(struct yaml_node *node);

/* Returns the tree of a JSON text that jansson accepts, within yaml.h's limits; otherwise NULL. */
const struct yaml_node *yaml_json_tree(struct arena *arena, struct str text, size_t max_bytes);

#endif
