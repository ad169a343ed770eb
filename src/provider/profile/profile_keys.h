/* profile_keys.h - checks a profile by schemas/provider-profile.json: its properties are the keys,
 * and what a $ref names in $defs is a type of value or a set of keys, whose title messages use. */
#ifndef SEGUE_PROVIDER_PROFILE_PROFILE_KEYS_H
#define SEGUE_PROVIDER_PROFILE_PROFILE_KEYS_H

#include "base/err.h"
#include "format/yaml.h"

/* Checks a document, except which keys its top level must have. False: errors
 * were added. */
bool profile_check(const char *file, const struct yaml_node *root, struct err_list *errors);

#endif
