/* load.h - files to the immutable workflow: YAML, facets, lint, in that order.
 *
 *   struct workflow_source src = {.path = "review.yaml", ...};
 *   json_t *doc = workflow_load_marked(&src, &errors, &marks);
 *                                                    parse + keys + facets -> resolved document
 *   workflow_lint(...)                               what a well-formed file can still get wrong
 *   workflow_build(doc, &err)                        core/workflow.h
 *
 * Every error is file:line:column: what is wrong: what to write instead; all errors of a file are
 * reported in one go. The table of keys (core/keys.h) is what parser, lint and
 * schemas/workflow.json come from. */
#ifndef SEGUE_WORKFLOW_LOAD_H
#define SEGUE_WORKFLOW_LOAD_H

#include "base/err.h"
#include "core/capability.h"

#include <jansson.h>

/* Names the place of `replace` in errors. */
#define WORKFLOW_REPLACED "the command line"

struct facets_more;

struct workflow_source {
  const char *path; /* path of the workflow file; relative facet paths start at its folder */
  const char *text; /* NULL: read from path; else n bytes, path only names it in messages */
  size_t n;
  const json_t *facets;       /* with a text: its facets by kind and name; then no folder is read */
  const char *project_facets; /* PROJECT/.segue/facets or NULL */
  const char *home_facets;    /* HOME/.segue/facets or NULL */
  const char *user_facets;    /* CONFIG/segue/facets or NULL */
  /* Further folders; those of takt and segue have one of each language below. Ends with a NULL
   * folder; or NULL. */
  const struct facets_more *more_facets;
  /* Two folders in which workflows are looked for that are called by name ("" is none); or
   * NULL. */
  const char *const *workflows;
  const json_t *inputs;  /* values for the file's params: name -> text; or NULL; borrowed */
  const json_t *replace; /* keys of a workflow that a person gave beside the file; or NULL */
  bool starts;           /* a session will be made from it: each param needs a value */
  json_t *facet_files;   /* an array: where facets came from (facets.h); or NULL; borrowed */
  bool named_by_user;    /* false: merely found, so command: movements are refused */
};

/* The params of a file: [{"name", "description", "default"}], in its order; a new reference. Empty
 * for a file that cannot be read: loading says why. */
json_t *workflow_params(const char *path);

/* Places of parts of a document, kept from loading, so that lint can point at them. */
struct workflow_marks;
/* The resolved document (core/workflow.h) or NULL; errors has at least one entry then. A document
 * may come back beside errors, so that lint can report the rest of the file in one go: never build
 * that one. Messages name file, line and column; cli_print_file_error draws the line. */
json_t *workflow_load_marked(const struct workflow_source *source, struct err_list *errors,
                             struct workflow_marks **marks);
void workflow_marks_free(struct workflow_marks *marks);

/* Says which movements a session can reach: an array with one entry for each movement. free()
 * it. */
bool *workflow_reachable(const json_t *doc);

/* Unreachable movements, unknown next, movements that cannot end, a judge that cannot judge, an
 * option a provider has no such thing for, unknown providers, exit in a movement without command,
 * structured.X of an unknown movement. Errors make a run impossible; warnings do not. */
struct lint_env {
  const struct capability *providers; /* ends with a NULL name */
  struct str provider;                /* the user's default, if the file names none; or empty */
  struct str chosen;  /* --provider: for all agent movements, over the file; or empty */
  struct str execute; /* the user's own template of an agent's prompt; or empty */
};
void workflow_lint(const json_t *doc, const struct workflow_marks *marks,
                   const struct lint_env *env, struct err_list *errors, struct err_list *warnings);

#endif
