/* scope.h - what the names in a file's texts mean: the values of its params, and whose movements it
 * refers to.
 *
 * {input:NAME} is a param. For a called file, its values are texts of the caller's file; they are
 * inserted once, when the file is loaded, and never read as templates again. For the file that a
 * session is made from, its values come from outside. In an instruction these stay variables, which
 * a prompt fills in as data (core/prompt.h), so that no input is read as a template; elsewhere they
 * are inserted too. {structured:M.F} and structured.M.F in when() get the prefix that M has in the
 * flat workflow. {{include:KIND/NAME}} in a facet is that file's text, read in the scope of the
 * same file.
 *
 * Everything in a scope is borrowed. */
#ifndef SEGUE_WORKFLOW_SCOPE_H
#define SEGUE_WORKFLOW_SCOPE_H

#include "base/arena.h"
#include "core/value_ref.h"
#include "format/template.h"
#include "format/yaml.h"
#include "workflow/facets.h"

struct name_scope {
  struct str prefix;         /* "child/", or empty */
  const char *const *params; /* all that the file declares, NULL-ended */
  /* Those with a value, as input:NAME, ended by an empty name: with what came from outside put in,
   * and with it as variables. */
  const struct template_var *texts, *templates;
  bool outside; /* the values come from outside */
};

extern const struct name_scope scope_none; /* for a file that declares nothing */

/* Describes a called file at the place that calls it. */
struct origin {
  struct yaml_origin base; /* the first member: yaml_node.origin points to it */
  struct facets facets;    /* where its own are looked for */
  struct name_scope scope;
};
static inline const struct origin *origin_of(const struct yaml_node *node) {
  return (const struct origin *)node->origin;
}

enum scope_place {
  SCOPE_TEXT,       /* used as it is */
  SCOPE_PATH,       /* a template of {structured:...} alone: cwd */
  SCOPE_INSTRUCTION /* a template */
};

/* Returns whether it can be a param's name: letters, digits, _ and -, at most 64. */
bool scope_is_param(struct str name);
/* Appends the text with its names replaced; scope may be NULL. False: it names no param. */
bool scope_text(const struct name_scope *scope, enum scope_place place, struct str text,
                struct buf *out, struct err *err) MUST_CHECK;
/* Does the same for a rule's condition, in the arena. */
bool scope_condition(const struct name_scope *scope, struct arena *arena, struct str condition,
                     struct str *out, struct err *err) MUST_CHECK;
/* Does the same for a facet's value: finds it (facets.h), inserts its includes, and replaces its
 * names. */
bool scope_facet(const struct name_scope *scope, const struct facets *facets, enum facet_kind kind,
                 struct str value, struct buf *out, struct err *err) MUST_CHECK;

#endif
