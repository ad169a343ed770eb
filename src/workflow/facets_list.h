/* facets_list.h - all facets that a workflow can name, where they are, and which shadows which. */
#ifndef SEGUE_WORKFLOW_FACETS_LIST_H
#define SEGUE_WORKFLOW_FACETS_LIST_H

#include "workflow/facets.h"

/* The files in the folders of `facets`, kind by kind, each kind by name: [{"kind", "name", "from":
 * "workflow" | "project" | "home" | "user", "file", "shadowed_by": file or absent}]. Kinds are
 * those of facets.h, partials and fragments. At most LIMIT_FACET_LIST_COUNT. A new reference. */
json_t *facets_list(const struct facets *facets);

#endif
