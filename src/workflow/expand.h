/* expand.h - workflows made of workflows: puts several files together into one flat tree.
 *
 * A movement with `call` becomes the movements of the called file, CALLER/NAME; its rules say where
 * each of the file's `returns`, COMPLETE and ABORT lead. A movement with `uses` is laid over the
 * map of a fragment's file. Nothing after the parser knows of either: core and log see only
 * movements.
 *
 * A called workflow is a path below the calling file's folder, or a name: NAME.yaml beside the
 * calling file, in the user's folder of workflows, among those that come with segue. A fragment is
 * such a path, or fragments/NAME.yaml where facets are looked for. Its movements inherit provider,
 * model, options and judge from their own file or, if that does not set them, from the calling one.
 *
 * Depth, calls, movements and nodes are bounded by limits.h; a call that leads back is an error. */
#ifndef SEGUE_WORKFLOW_EXPAND_H
#define SEGUE_WORKFLOW_EXPAND_H

#include "workflow/parse.h"

/* The flat tree: the same tree when there is nothing to put together. Errors are in p->errors. The
 * values of the params of the file itself go to *inputs (a new reference; NULL: it declares none).
 */
const struct yaml_node *expand_workflow(struct parse *p, const struct yaml_node *root,
                                        json_t **inputs);

/* The tree with these keys of a workflow in place of its own, as a person gave them beside the
 * file; words may be NULL. file: the place that errors name. */
const struct yaml_node *expand_replace(struct parse *p, const struct yaml_node *root,
                                       const json_t *words, const char *file);

/* The params of a file: [{"name", "description", "default"}], in its order; a new reference. */
json_t *expand_params(struct parse *p, const struct yaml_node *root);

#endif
