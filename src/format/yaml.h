/* yaml.h - YAML text to a tree of nodes that know their place in it.
 *
 *   struct arena arena = {0};
 *   const struct yaml_node *root = yaml_parse(&arena, "review.yaml", text, LIMIT, &errors);
 *   if (root == NULL || errors.count > 0) ...
 *
 * One document, UTF-8, YAML's core schema: only plain (unquoted) scalars have a type other than
 * text, and only null, ~, true, false, integers and decimals do: no, yes, on and off are texts. A
 * duplicate key, a << merge key, a tag other than !!str and a number that JSON cannot hold are
 * errors. Anchors and aliases work; what they expand to is bounded in nodes, depth and bytes. JSON
 * is accepted, being a subset of YAML; JSON that libyaml cannot read (surrogate pairs as \u
 * escapes) is read by jansson, and all its nodes are then at 1:1.
 *
 * Lines and columns are 1-based; a column counts characters. An aliased node is where its anchor
 * is. Nodes live in the arena and are shared where aliases share them. */
#ifndef SEGUE_FORMAT_YAML_H
#define SEGUE_FORMAT_YAML_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

enum yaml_kind {
  YAML_NULL,
  YAML_BOOL,
  YAML_INTEGER,
  YAML_REAL,
  YAML_TEXT,
  YAML_LIST,
  YAML_MAP,
};

struct yaml_pair;

/* Says where a node came from, in a tree made from several files. */
struct yaml_origin {
  const char *file; /* for messages */
};

struct yaml_node {
  enum yaml_kind kind;
  int line, column;
  int text_shift;  /* column of the text's first byte minus column; -1: no such simple place */
  struct str text; /* for any scalar; NUL-terminated, holds no NUL */
  bool boolean;
  long long integer;
  double real;
  size_t count; /* number of items or pairs */
  const struct yaml_node **items;
  /* in file order; keys are scalars, distinguished by their text */
  struct yaml_pair *pairs;
  const struct yaml_origin *origin;    /* NULL: the one file that was parsed */
  size_t all_nodes, all_bytes, height; /* of the whole subtree, aliases expanded */
};

struct yaml_pair {
  const struct yaml_node *key, *value;
};

/* NULL if no tree can be made; a tree may also come with errors (all that were found). `file` only
 * names the text in messages. Every error has its place. */
const struct yaml_node *yaml_parse(struct arena *arena, const char *file, struct str text,
                                   size_t max_bytes, struct err_list *errors);

/* Returns the value of a key, NULL if `map` is no map or has no such key. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/* Sets an error of the file (ERR_FILE) at the node, and returns false. */
bool yaml_wrong(struct err *err, const char *file, const struct yaml_node *at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Does so for a key that is not known: `what` says of what, such as "notify has no key". near: the
 * known key that was probably meant, or NULL: then `all` says what there is. */
bool yaml_unknown(struct err *err, const char *file, const struct yaml_node *key, const char *what,
                  const char *near, const char *all);

/* Returns a word for messages: a text, a number, a list, ... */
const char *yaml_kind_name(enum yaml_kind kind);

/* Finds the place of the byte at `offset` of a scalar's text, or the scalar's start if escapes or
 * several lines make that unclear. */
void yaml_place(const struct yaml_node *node, size_t offset, int *line, int *column);

/* Returns a new reference, never NULL: the tree was checked by yaml_parse. */
json_t *yaml_to_json(const struct yaml_node *node);

/* Both in one, for files whose reader works on JSON (scenarios, configuration): a new reference, or
 * NULL with the first error. */
json_t *yaml_load(const char *file, struct str text, size_t max_bytes, struct err *err);

#endif
