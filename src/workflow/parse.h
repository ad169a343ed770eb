/* parse.h - from the tree of a workflow file to the resolved document, by the table of keys.
 *
 * Finds all errors it can; a document with errors is incomplete. Checks of the whole graph (where
 * rules lead, who can judge) are left to lint. */
#ifndef SEGUE_WORKFLOW_PARSE_H
#define SEGUE_WORKFLOW_PARSE_H

#include "base/arena.h"
#include "base/err.h"
#include "format/yaml.h"
#include "workflow/facets.h"
#include "workflow/scope.h"

#include <jansson.h>

struct parse {
  struct arena *arena;
  const char *file;
  bool named_by_user;
  struct facets facets;
  struct err_list *errors, *notes; /* notes: what is read and does nothing; or NULL */
  const struct key *noted[32];     /* keys already noted */
  size_t noted_count;
  const struct key_set *listed[16]; /* sets whose keys a message has already listed */
  size_t listed_count;
  bool in_group;             /* a child of parallel is read */
  size_t facet_bytes;        /* sum over all facets' texts so far */
  const char *const *called; /* two folders of workflows that are called by name; or NULL */
  const json_t *inputs;      /* values for the file's params: name -> text; or NULL */
  bool starts;               /* a session will be made from it: each param needs a value */
};

/* Returns a new reference; NULL if the root is no map. */
json_t *parse_workflow(struct parse *p, const struct yaml_node *root);

/* Errors are reported in the order of the file, each once. */
void sort_by_place(struct err_list *list);

#endif
