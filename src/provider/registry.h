/* registry.h - the backends of this run, by name: those built in and those made from data.
 *
 *   registry_new(settings)     the built-in ones; settings is the user's `providers:` or NULL
 *   registry_add(...)          profiles, presets of the configuration
 *   registry_find(...)         from then on: nothing is added while sessions run
 *   registry_free(reg) */
#ifndef SEGUE_PROVIDER_REGISTRY_H
#define SEGUE_PROVIDER_REGISTRY_H

#include "provider/provider.h"

struct provider_registry;

struct provider_registry *registry_new(const json_t *settings); /* takes a reference */
void registry_free(struct provider_registry *reg);              /* NULL is fine */

/* Copies `provider`; its name, summary and data are borrowed for the registry's life. False: the
 * name is taken, or there are too many. */
bool registry_add(struct provider_registry *reg, const struct provider *provider,
                  struct err *err) MUST_CHECK;

/* Memory that is freed with the registry: the data that providers were given. */
void registry_keep(struct provider_registry *reg, void *owned, void (*release)(void *owned));

/* Finds what was kept with this release function, or NULL. */
void *registry_kept(const struct provider_registry *reg, void (*release)(void *owned));

/* NULL when there is none of that name. */
const struct provider *registry_find(const struct provider_registry *reg, struct str name);
/* Returns the i-th in the order of addition; NULL after the last. */
const struct provider *registry_at(const struct provider_registry *reg, size_t i);
/* The capabilities of all, ending with a NULL name: for lint, help and the core. */
const struct capability *registry_capabilities(const struct provider_registry *reg);
/* "script, command, ...": what a message offers. */
void registry_names(const struct provider_registry *reg, struct buf *out);
/* Sets an error that there is none of that name, with the likely one or all there are. Always
 * false. */
bool registry_unknown(const struct provider_registry *reg, struct str name, struct err *err);

#endif
