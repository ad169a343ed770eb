/* expand_part.h - what the parts of expand.h share: expand.c flattens calls, expand_copy.c copies
 * movements into the place where they are called, called.c reads the called files. */
#ifndef SEGUE_WORKFLOW_EXPAND_PART_H
#define SEGUE_WORKFLOW_EXPAND_PART_H

#include "base/limits.h"
#include "workflow/expand.h"

#include <sys/types.h>

struct param {
  const struct yaml_node *at; /* its name */
  struct str name;
  const struct yaml_node *value; /* its default; NULL: it must be given */
  struct str description;
};

/* Describes a called file, or the file that a session is made from. */
struct called {
  dev_t device;
  ino_t inode;
  const char *file;             /* for messages */
  const struct yaml_node *root; /* a map; its nodes know their file */
  struct facets facets;
  struct param *params;
  size_t param_count;
  const struct yaml_node *returns; /* a list of labels, or NULL */
  bool checked;                    /* its own keys, which is done once */
};

struct expand {
  struct parse *p;
  struct called **files;
  size_t file_count, call_count, movement_count, node_count;
  bool full; /* a bound was met and reported */
};

/* Describes a called file at one place that calls it. */
struct instance {
  struct origin origin;
  const struct called *called;
  const struct instance *caller; /* NULL: the session's own file */
  const struct yaml_node *call;  /* the movement there that calls it, as it was read */
  size_t depth;
  bool is_fragment;            /* of a movement of the file that `root` is of; that is: */
  const struct instance *user; /* where it is used; NULL: no fragment; the movement there: */
  const struct yaml_node *used_at;
};

/* --- called.c --- */

/* Returns the file that `node`, a text of `x`, names as a workflow or a fragment. NULL:
 * reported. */
struct called *called_find(struct expand *e, const struct instance *x, const struct yaml_node *node,
                           bool fragment);
/* Its params and returns, from its root. */
void called_declare(struct expand *e, struct called *c);
/* Values for the params of `c`, from the pairs of `args` (or NULL), which is a text of `x`. */
void called_scope(struct expand *e, const struct instance *x, const struct yaml_node *call,
                  const struct yaml_node *args, const struct called *c, struct name_scope *scope);
/* Does the same for the session's own file, from outside. A new reference. */
json_t *called_inputs(struct expand *e, const struct called *c, struct name_scope *scope);

/* --- expand_copy.c --- */

/* Returns a text of `x` with its names replaced, in the arena; reports errors. */
struct str expand_text(struct expand *e, const struct instance *x, const struct yaml_node *node);
/* Returns a movement of `x` under its full name, with what it inherits. */
const struct yaml_node *expand_movement(struct expand *e, const struct instance *x,
                                        const struct yaml_node *movement);
/* Copies a node and all below it unchanged, for this origin. */
const struct yaml_node *expand_plain(struct expand *e, const struct yaml_origin *origin,
                                     const struct yaml_node *node);
/* Returns the root of the session's own file, with these movements instead of its own. */
const struct yaml_node *expand_root(struct expand *e, const struct instance *x,
                                    const struct yaml_node **movements, size_t count);
/* Returns its name: `name`, or else the last part of `uses`; NULL: it has none. */
const struct yaml_node *expand_name(struct expand *e, const struct yaml_node *movement);
/* Returns the value of a key or its alias, NULL if the map has neither. */
const struct yaml_node *expand_get(const struct key_set *set, const struct yaml_node *map,
                                   const char *key);

/* --- expand.c --- */

/* Returns where a rule of `x` leads in the flat workflow. */
struct str expand_target(struct expand *e, const struct instance *x, const struct yaml_node *rule);
/* Returns where a rule begins that goes to the movement of this name in `x`. */
struct str expand_entry(struct expand *e, const struct instance *x, const struct yaml_node *name);
/* Returns false if it is too deep, or a call leads back; reported at `node`. */
bool expand_may_enter(struct expand *e, const struct instance *x, const struct yaml_node *node,
                      const struct called *c);

#endif
