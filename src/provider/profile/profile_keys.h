/* profile_keys.h - the one table of the keys of a profile: the checks of a profile and
 * schemas/provider-profile.json come from it. */
#ifndef SEGUE_PROVIDER_PROFILE_PROFILE_KEYS_H
#define SEGUE_PROVIDER_PROFILE_PROFILE_KEYS_H

#include "base/err.h"
#include "format/yaml.h"

/* Checks a document against the table, except which keys its top level must have. False: errors
 * were added. */
bool profile_check(const char *file, const struct yaml_node *root, struct err_list *errors);

#endif
