/* preflight.h - what is checked before a session starts, whoever starts it: the workflow's file and
 * its facets, and that every movement has a backend that can do what is asked of it. */
#ifndef SEGUE_HOST_PREFLIGHT_H
#define SEGUE_HOST_PREFLIGHT_H

#include "core/workflow.h"
#include "provider/registry.h"
#include "workflow/load.h"

/* Loads, lints and builds; facets also come from the project around cwd and from the user's folder.
 * source: path, text and inline facets; the rest is filled in. NULL: errors says why. */
struct workflow *preflight_load(struct workflow_source source, const char *cwd,
                                const json_t *config, const struct provider_registry *registry,
                                struct err_list *errors, struct err_list *warnings);

/* Warns also those who do not want to see all of lint: of facets of the project that stand in for
 * the user's own, and of a .segue that was passed over. files: as source.facet_files. */
void preflight_warn(const json_t *files, const char *cwd, struct err_list *warnings);

/* config: as session_start records it, with the user's defaults in it. */
bool preflight_check(const struct workflow *workflow, const json_t *config,
                     const struct provider_registry *registry, bool has_scenario,
                     struct err *err) MUST_CHECK;

#endif
