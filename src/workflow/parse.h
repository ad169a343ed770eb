/* parse.h - from the tree of a workflow file to the resolved document, by the table of keys.
 *
 * Finds all errors it can; a document with errors is incomplete. Checks of the whole graph (where
 * rules lead, who can judge) are left to lint. */
#ifndef SEGUE_WORKFLOW_PARSE_H
#define SEGUE_WORKFLOW_PARSE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "core/keys.h"
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
  bool foreign;              /* the file has a word that only another runner's files have */
  size_t facet_bytes;        /* sum over all facets' texts so far */
  const char *const *called; /* two folders of workflows that are called by name; or NULL */
  const json_t *inputs;      /* values for the file's params: name -> text; or NULL */
  bool starts;               /* a session will be made from it: each param needs a value */
};

/* Returns a new reference; NULL if the root is no map. */
json_t *parse_workflow(struct parse *p, const struct yaml_node *root);

/* Reports an error at a node's place. Returns NULL, the value of what is wrong. */
void *parse_report(struct parse *p, const struct yaml_node *node, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
#define REPORT(p, node, ...) parse_report((p), (node), __VA_ARGS__)
/* Returns the file that a node is in. */
const char *parse_file_of(const struct parse *p, const struct yaml_node *node);

/* Returns a piece of the file's text for a message, in the arena. */
const char *parse_shown(struct parse *p, struct str s);

/* Returns the value of a key or its alias, NULL if the map has neither; `map` may be anything. */
const struct yaml_node *parse_member(const struct yaml_node *map, const struct key *key);

/* Reads the sections of facets of a workflow's file and keeps them for the look-ups in `facets`. */
void parse_sections(struct parse *p, struct facets *facets, const struct yaml_node *root);
/* Reads the workflow's own keys in a called file: its movements are read where it is called. */
void parse_called(struct parse *p, const struct yaml_node *root);

/* Ignores a value of NULL: the mistake was already reported. */
static inline void parse_put(json_t *object, const char *name, json_t *value) {
  if (value != NULL && json_object_set_new(object, name, value) != 0)
    BUG("out of memory");
}

static inline void parse_append(json_t *list, json_t *value) {
  if (value != NULL && json_array_append_new(list, value) != 0)
    BUG("out of memory");
}

/* Errors are reported in the order of the file, each once. */
void sort_by_place(struct err_list *list);

#endif
