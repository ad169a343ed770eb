/* Loads a workflow: file, facets, schemas, document, lint, in this order. */
#include "workflow/load.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "workflow/expand.h"
#include "workflow/gates.h"
#include "workflow/integrate.h"
#include "workflow/marks.h"
#include "workflow/parse/part.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b) {
  const struct err *x = a, *y = b;
  int file = strcmp(x->file, y->file);
  if (file != 0)
    return file;
  if (x->line != y->line)
    return x->line < y->line ? -1 : 1;
  if (x->column != y->column)
    return x->column < y->column ? -1 : 1;
  return strcmp(x->text, y->text);
}

void sort_by_place(struct err_list *list) {
  size_t kept = 0;
  if (list->count < 2)
    return;
  qsort(list->items, list->count, sizeof *list->items, by_place);
  for (size_t i = 0; i < list->count; i++) /* an alias repeats its anchor's errors */
    if (kept == 0 || by_place(&list->items[kept - 1], &list->items[i]) != 0)
      list->items[kept++] = list->items[i];
  list->count = kept;
}

static struct workflow_marks *marks_new(const char *file) {
  struct workflow_marks *marks = xcalloc(1, sizeof *marks);
  marks->file = xstrdup(file);
  return marks;
}

void workflow_marks_free(struct workflow_marks *marks) {
  if (marks == NULL)
    return;
  free(marks->file);
  err_list_deinit(&marks->notes);
  arena_deinit(&marks->arena);
  free(marks);
}

/* Returns the folder of a file, "." for a bare name. */
static char *load_folder_of(struct arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL)
    return arena_strdup(arena, ".");
  return arena_strndup(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

static json_t *load_text(const struct workflow_source *source, struct str text,
                         struct err_list *errors, struct workflow_marks *marks) {
  struct arena *arena = &marks->arena;
  marks->root = yaml_parse(arena, source->path, text, LIMIT_WORKFLOW_BYTES, errors);
  if (marks->root == NULL)
    return NULL;
  char *folder = source->facets ? NULL : load_folder_of(arena, source->path);
  char *above = folder ? facets_above(arena, folder) : NULL, *above_facets = NULL;
  if (above != NULL) {
    size_t n = strlen(above) + sizeof "/facets";
    above_facets = arena_alloc(arena, n);
    (void)snprintf(above_facets, n, "%s/facets", above);
  }
  struct facet_memo memo = {0};
  struct parse parse = {.arena = arena,
                        .file = marks->file, /* it lives as long as the tree */
                        .named_by_user = source->named_by_user,
                        .facets = {.folder = folder,
                                   .above = above,
                                   .above_facets = above_facets,
                                   .given = source->facets,
                                   .project = source->project_facets,
                                   .home = source->home_facets,
                                   .user = source->user_facets,
                                   .files = source->facet_files,
                                   .memo = &memo},
                        .called = source->workflows,
                        .inputs = source->inputs,
                        .starts = source->starts,
                        .errors = errors,
                        .notes = &marks->notes};
  json_t *inputs;
  marks->root = expand_workflow(&parse, marks->root, &inputs);
  json_t *doc = parse_workflow(&parse, marks->root);
  gates_expand(doc);
  integrate_expand(doc);
  facet_memo_deinit(&memo);
  parse_put(doc, "inputs", inputs);
  return doc;
}

/* Returns true if a document with errors is worth linting: if its movements can be told apart.
 * Otherwise what lint finds would merely follow from the first errors. */
static bool is_worth_lint(const json_t *doc) {
  size_t i;
  json_t *movement;
  const json_t *movements = json_object_get(doc, "movements");
  json_array_foreach(movements, i, movement) {
    if (!json_is_string(json_object_get(movement, "name")))
      return false;
  }
  return json_array_size(movements) > 0;
}

json_t *workflow_load_marked(const struct workflow_source *source, struct err_list *errors,
                             struct workflow_marks **marks) {
  struct buf file = {0};
  struct err err;
  size_t before = errors->count + errors->dropped;
  json_t *doc = NULL;
  *marks = marks_new(source->path);
  if (source->text != NULL)
    doc = load_text(source, (struct str){source->text, source->n}, errors, *marks);
  else if (file_read(source->path, LIMIT_WORKFLOW_BYTES, &file, &err))
    doc = load_text(source, buf_view(&file), errors, *marks);
  else
    err_list_add(errors, &err);
  buf_deinit(&file);
  sort_by_place(errors);
  if (doc != NULL && (errors->count + errors->dropped == before || is_worth_lint(doc)))
    return doc;
  json_decref(doc);
  workflow_marks_free(*marks);
  *marks = NULL;
  return NULL;
}

json_t *workflow_params(const char *path) {
  struct buf file = {0};
  struct err err;
  struct arena arena = {0};
  struct err_list unwanted = {0};
  json_t *params = NULL;
  if (file_read(path, LIMIT_WORKFLOW_BYTES, &file, &err)) {
    struct parse parse = {.arena = &arena, .file = path, .errors = &unwanted};
    const struct yaml_node *root =
        yaml_parse(&arena, path, buf_view(&file), LIMIT_WORKFLOW_BYTES, &unwanted);
    params = root != NULL && root->kind == YAML_MAP ? expand_params(&parse, root) : NULL;
  }
  err_list_deinit(&unwanted);
  arena_deinit(&arena);
  buf_deinit(&file);
  return params ? params : json_array();
}
