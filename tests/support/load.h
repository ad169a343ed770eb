/* load.h - loads a workflow file as a command does, in one call. */
#ifndef SEGUE_TESTS_LOAD_H
#define SEGUE_TESTS_LOAD_H

#include "workflow/load.h"

/* A document without errors, or NULL. */
static json_t *workflow_load(const struct workflow_source *source, struct err_list *errors) {
  struct workflow_marks *marks;
  size_t before = errors->count + errors->dropped;
  json_t *doc = workflow_load_marked(source, errors, &marks);
  workflow_marks_free(marks);
  if (errors->count + errors->dropped == before)
    return doc;
  json_decref(doc);
  return NULL;
}

#endif
