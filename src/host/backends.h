/* backends.h - sets up the backends of this run: the built-in ones and what the user's
 * configuration adds. */
#ifndef SEGUE_HOST_BACKENDS_H
#define SEGUE_HOST_BACKENDS_H

#include "host/config.h"
#include "provider/profile/profile.h"
#include "provider/registry.h"

/* Makes the registry, which registry_free frees. It keeps only references to parts of `config`.
 * NULL: err names the file or the key that is wrong. */
struct provider_registry *backends_new(const struct config *config, struct err *err) MUST_CHECK;

/* Warns of each profile with a mistake in its file; work that does not need the profile continues.
 * Commands that list backends report this in their own way. */
void backends_warn(const struct provider_registry *reg);

/* Returns the profile of that name, even if a model API has taken the name in this run; or NULL. */
const struct profile *backends_profile(const struct provider_registry *reg, const char *name);

/* Remembers that the provider has answered with the settings that it has now: one that never did is
 * more likely set up wrongly than away. `answered/` in the user's state folder has a file for each
 * provider, named by the hash of its name, with the hash of its settings. */
void backends_note_answer(const struct provider *provider);
bool backends_answered(const struct provider *provider);

#endif
