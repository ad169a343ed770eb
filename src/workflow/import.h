/* import.h - workflow files of takt to files of segue's own, with a word about every key.
 *
 *   struct import import = {.takt = ".takt", ..., .project = "."};
 *   import_begin(&import);
 *   for each workflow: import_workflow(&import, path);
 *   ... import.files, import.lines ...
 *   import_deinit(&import);
 *
 * Shared steps (uses, with), params ($param), facet pools and rules of all steps are written out
 * where they count; a called workflow becomes a file of its own, once for each set of arguments.
 * Facets become files with their includes in place. Nothing is written to disk: `files` has what
 * belongs below PROJECT/.segue. A name that is taken there by another text gets a number: nothing
 * is overwritten, and the same import gives the same files. Paths lead nowhere out of their folder;
 * a file that cannot be read is a line of the report. Depth and number of calls are bounded. */
#ifndef SEGUE_WORKFLOW_IMPORT_H
#define SEGUE_WORKFLOW_IMPORT_H

#include "base/arena.h"
#include "workflow/facets.h"

#include <jansson.h>

struct import {
  const char *takt;     /* the .takt folder, or the folder of a single file */
  const char *home;     /* HOME/.takt */
  const char *builtins; /* of an installed takt, in the language; "": none */
  const char *own;      /* segue's facets of takt's names, in the language */
  const char *project;  /* what is in its .segue stays */
  bool japanese;

  /* Results, made by import_begin: */
  json_t *files; /* path below .segue -> text */
  /* [{"from", "to"}]: a workflow and its file below .segue, without those that are only called */
  json_t *workflows;
  /* file -> [{"line", "column", "in", "key", "result", "why"}]: result is same, changed or
   * impossible; `in` is the movement ("" at the top), `why` is missing where it is the same. */
  json_t *lines;

  struct arena arena; /* private, as the rest */
  size_t call_count, depth;
};

void import_begin(struct import *i);
void import_deinit(struct import *i);
/* Reads a workflow and all that it calls, and adds the files that it becomes. */
void import_workflow(struct import *i, const char *path);

#endif
