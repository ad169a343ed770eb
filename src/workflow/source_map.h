/* source_map.h - where the values of a workflow document are in its file.
 *
 * A value is named by its path in the document, such as movements[2].rules[0].next; the document
 * itself is "". The file's tree is kept, and paths are followed only when something is reported,
 * since most files have no mistakes. */
#ifndef SEGUE_WORKFLOW_SOURCE_MAP_H
#define SEGUE_WORKFLOW_SOURCE_MAP_H

#include "base/arena.h"
#include "base/err.h"
#include "format/yaml.h"

struct workflow_marks {
  char *file;
  struct arena arena; /* holds the tree */
  const struct yaml_node *root;
  struct err_list notes; /* keys that were read and do nothing: warnings of lint */
};

/* Finds the place of a path; 0:0 if it has none. Returns the file that contains it: the workflow's
 * own, or a called one. "" without marks, which may be NULL. */
const char *source_map_place(const struct workflow_marks *marks, const char *path, int *line,
                             int *column);

enum { DOC_PATH_BYTES = 128 }; /* the longest is half of it; what does not fit is cut */

/* PATH.KEY; `path` may be `out`, an empty key adds nothing. Written by hand: lint names every value
 * it looks at, and printf would take a third of its time. */
void doc_path_member(char out[DOC_PATH_BYTES], const char *path, const char *key);
/* PATH[INDEX]; `path` may be `out`. */
void doc_path_item(char out[DOC_PATH_BYTES], const char *path, size_t index);

#endif
