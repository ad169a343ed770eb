/* profiles.h - all profiles of this run: the shipped ones and those in the user's folder.
 *
 * A file NAME.yaml in that folder is the provider NAME, and replaces a shipped one of that name.
 * Names are a letter, then letters, digits, - and _. */
#ifndef SEGUE_PROVIDER_PROFILE_PROFILES_H
#define SEGUE_PROVIDER_PROFILE_PROFILES_H

#include "provider/profile/profile.h"

struct profiles;

/* `folder` may be NULL or not exist. A file with a mistake is in the list as a `broken` profile; so
 * is a file whose name cannot be a provider's, under its file name. NULL: the folder cannot be
 * read; errors were added, each with its place. */
struct profiles *profiles_load(const char *folder, struct err_list *errors);
void profiles_free(struct profiles *profiles); /* NULL is fine */

/* In the order of the names, the shipped ones first; NULL after the last. It is perhaps not made
 * yet (profile_ready), but its capability, program, file and broken are there. */
const struct profile *profiles_peek(const struct profiles *profiles, size_t i);
const struct profile *profiles_find(const struct profiles *profiles, struct str name);

#endif
