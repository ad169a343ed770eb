/* facets.h - from a facet's name, path or own words to its text.
 *
 * Order: the file's section map; a path relative to the workflow file (no white space, and .md or
 * .txt at its end or a slash in it); NAME.md, NAME.txt or NAME in the kind's folder beside the
 * workflow file, in the folder above it when the file lies in a workflows or pieces folder (there
 * also in facets/, and paths may begin with ../), in the project's facets, in the user's, in
 * further folders (those of an installed takt and segue's own only for files of takt's dialect);
 * else the value is the text itself. One line with white space that ends in .md or .txt is a path
 * when there is such a file, else a text. A value that looks like a name (letters, digits, _ . -
 * only) and is found nowhere is an error. No path leaves the folder it starts in, neither by ..
 * nor by a symbolic link. A workflow that came without a file has no folder; its facets can be
 * given with it.
 *
 * With `files` each file that a movement's facet came from is noted there, as session_start has it:
 * {"kind", "from": "workflow" | "project" | "home" | "user" | "config" | "takt" | "segue", "file",
 * "movements": [name, ...]}, and "shadows": the user's own file of this name that a project's
 * stands in for. */
#ifndef SEGUE_WORKFLOW_FACETS_H
#define SEGUE_WORKFLOW_FACETS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/keys.h"
#include "format/yaml.h"

#include <jansson.h>

/* Facets that files gave already: what many movements name is read once. Begins zeroed. */
struct facet_memo {
  json_t *known; /* kind and value -> {"text", "entry"}: its place in `files` */
  json_t *entry; /* for the file noted last; borrowed, or NULL */
};
void facet_memo_deinit(struct facet_memo *memo);

/* A further folder of facets, which is searched after the others. */
struct facets_more {
  const char *from; /* config, takt or segue */
  const char *folder;
};

struct facets {
  const char *folder;               /* folder of the workflow file, or NULL */
  const char *above, *above_facets; /* as facets_beside sets them; NULL = none */
  const json_t *given;              /* {"personas": {NAME: text}, ...}: instead of files; or NULL */
  const char *project, *home, *user; /* folders of facets, in this order; NULL = none */
  const struct facets_more *more;    /* ends with a NULL folder; NULL = none */
  bool foreign;                      /* the file is of takt's dialect: takt's and segue's count */
  const struct yaml_node *sections[FACET_KIND_COUNT]; /* maps, NULL = none */
  json_t *files;                                      /* an array, borrowed; NULL: not wanted */
  struct str movement;     /* the movement whose facet is looked up; empty: nothing is noted */
  struct facet_memo *memo; /* or NULL; of one loading: files do not change meanwhile */
};

/* Sets the folders of the facets beside a workflow file, in the arena: its own and, if that is
 * called workflows or pieces, the one above, as in takt's layout. The latter only if both are the
 * same user's and nobody else may write to the one above. */
void facets_beside(struct facets *facets, struct arena *arena, const char *file);

/* Appends the text, without the line ends at its end. The error has no place. */
bool facet_resolve(const struct facets *facets, enum facet_kind kind, struct str value,
                   struct buf *out, struct err *err) MUST_CHECK;

/* Appends the text of the file at `path` beneath `folder`. */
bool facet_read(const char *folder, const char *path, struct buf *out, struct err *err) MUST_CHECK;

/* Appends the text of the file NAME of a kind, for {{include:KIND/NAME}}. A kind is its folder or
 * its name, or `partials`, which exist only for this. The file is noted under `user`. */
bool facet_include(const struct facets *facets, enum facet_kind user, struct str kind,
                   struct str name, struct buf *out, struct err *err) MUST_CHECK;

/* Folder that facets of this kind live in: personas, ... */
const char *facet_folder(enum facet_kind kind);

/* All facets that a workflow can name, where they are, and which shadows which: the files in the
 * folders of `facets`, kind by kind, each kind by name: [{"kind", "name", "from", "file",
 * "shadowed_by": file or absent}]. Kinds are those of here,
 * partials and fragments. At most LIMIT_FACET_LIST_COUNT. A new reference. */
json_t *facets_list(const struct facets *facets);

#endif
