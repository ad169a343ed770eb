/* backends.h - the backends of this run: the built-in ones and what the user's configuration adds.
 * */
#ifndef SEGUE_HOST_BACKENDS_H
#define SEGUE_HOST_BACKENDS_H

#include "host/config.h"
#include "provider/profile/profile.h"
#include "provider/registry.h"

/* NULL: err names the file or the key that is wrong. registry_free; keeps nothing of `config` that
 * is not counted. */
struct provider_registry *backends_new(const struct config *config, struct err *err) MUST_CHECK;

/* Warns of each profile with a mistake in its file: work that does not need it goes on. Commands
 * that show the backends say it in their own way. */
void backends_warn(const struct provider_registry *reg);

/* The profile of a name, also where a model API has the name in this run; NULL. */
const struct profile *backends_profile(const struct provider_registry *reg, const char *name);

#endif
