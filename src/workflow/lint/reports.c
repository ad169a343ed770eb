/* Warns about reports and answers that prompts name but no movement provides. */
#include "core/ref.h"
#include "format/template.h"
#include "workflow/lint/part.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

struct report_names {
  struct lint *l;
  size_t movement;
  const char *key; /* the key of the text that names them */
};

static json_t *reports_of(const json_t *object) {
  return json_object_get(json_object_get(object, "output_contracts"), "report");
}

/* Appends the files that a movement writes; returns the new count. */
static size_t lint_add_files(const struct lint *l, size_t movement, const char **files, size_t n) {
  const json_t *object = l->movements[movement].object, *item;
  size_t k;
  if (lint_text(object, "report", NULL) != NULL)
    files[n++] = lint_text(object, "report", "");
  json_array_foreach(reports_of(object), k, item) {
    files[n++] = lint_text(item, "name", "");
  }
  return n;
}

/* Makes room for the files of these movements, from `first` to before `end`. */
static const char **new_files(struct lint *l, size_t first, size_t end) {
  size_t most = 1;
  for (size_t i = first; i < end; i++)
    most += 1 + json_array_size(reports_of(l->movements[i].object));
  return arena_array(&l->arena, most, sizeof(const char *));
}

/* Returns all files that movements write, NULL-ended. */
static const char **files_of(struct lint *l) {
  const char **files = new_files(l, 0, l->count);
  size_t n = 0;
  for (size_t i = 0; i < l->count; i++)
    n = lint_add_files(l, i, files, n);
  files[n] = NULL;
  return files;
}

/* Checks that a movement writes each file once, and no child another's: children run at once. */
static void lint_check_files(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  size_t before = 0, n, first = movement;
  char place[DOC_PATH_BYTES];
  if (m->group != LINT_NO_GROUP) /* its siblings stand in front of it */
    first = l->movements[m->group].first_child;
  const char **files = new_files(l, first, movement + 1);
  for (size_t i = first; i < movement; i++)
    before = lint_add_files(l, i, files, before);
  n = lint_add_files(l, movement, files, before);
  if (n > before && m->group != LINT_NO_GROUP &&
      json_object_get(l->movements[m->group].object, "for_each") != NULL)
    lint_report(
        l, l->errors,
        lint_path(l, place, movement, reports_of(m->object) ? "output_contracts" : "report"),
        "the runs of a for_each would all write %.128s: let a movement after it write one",
        files[before]);
  for (size_t i = before; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (strcasecmp(files[i], files[k]) == 0)
        lint_report(
            l, l->errors,
            lint_path(l, place, movement, reports_of(m->object) ? "output_contracts" : "report"),
            "%s writes %.128s, and so does %s: capitals do not count, so rename one", m->name,
            files[i], k < before ? "a child beside it" : "another of its reports");
}

static bool lint_is_listed(const char *const *list, struct str word) {
  while (*list != NULL && !str_eq_c(word, *list))
    list++;
  return *list != NULL;
}

static void check_report(void *ctx, struct str name) {
  const struct report_names *names = ctx;
  struct lint *l = names->l;
  size_t skip = strlen(PROMPT_REPORT);
  const char **files = files_of(l), *file = arena_strndup(&l->arena, name.p + skip, name.n - skip);
  char place[DOC_PATH_BYTES];
  if (lint_is_listed(files, str_from(file)))
    return;
  lint_report(l, l->warnings, lint_path(l, place, names->movement, names->key),
              "{report:%.80s}: no movement writes that report: %s", file,
              lint_suggestion(l, file, files, "name a file of output_contracts or report"));
}

static void check_response(void *ctx, struct str name) {
  const struct report_names *names = ctx;
  struct lint *l = names->l;
  size_t skip = strlen(PROMPT_RESPONSE);
  const char *word = arena_strndup(&l->arena, name.p + skip, name.n - skip);
  char place[DOC_PATH_BYTES];
  l->names[l->count] = NULL; /* the ends answer nothing */
  if (!lint_is_listed(l->names, str_from(word)))
    lint_report(l, l->errors, lint_path(l, place, names->movement, names->key),
                "{response:%.80s}: there is no such movement: %s", word,
                lint_suggestion(l, word, l->names, "write {response:MOVEMENT}"));
  l->names[l->count] = "COMPLETE";
}

static bool has_worktrees(const struct lint *l, const struct lint_movement *group) {
  for (size_t i = 0; i < group->child_count; i++)
    if (strcmp(lint_text(l->movements[group->first_child + i].object, "workspace", ""),
               "worktree") == 0)
      return true;
  return false;
}

static void check_branches(void *ctx, struct str name) {
  const struct report_names *names = ctx;
  struct lint *l = names->l;
  size_t skip = strlen(PROMPT_BRANCHES), i = 0;
  const char *word = arena_strndup(&l->arena, name.p + skip, name.n - skip);
  char place[DOC_PATH_BYTES];
  const json_t *argv = json_object_get(l->movements[names->movement].object, "command");
  const char *verb = json_string_value(json_array_get(argv, 1));
  bool made = verb != NULL && strcmp(verb, "integrate") == 0; /* see integrate.h */
  (void)lint_path(l, place, names->movement, made ? "integrate" : names->key);
  while (i < l->count && strcmp(l->names[i], word) != 0)
    i++;
  l->names[l->count] = NULL;
  if (i == l->count)
    lint_report(l, l->errors, place, "there is no movement %.80s whose branches these could be: %s",
                word, lint_suggestion(l, word, l->names, "name a movement with parallel"));
  else if (!has_worktrees(l, &l->movements[i]))
    lint_report(l, l->errors, place,
                "%.80s has no branches: write workspace: worktree into its child of parallel",
                word);
  l->names[l->count] = "COMPLETE";
}

static void lint_check_names(struct lint *l, size_t movement, const char *key, const char *text) {
  struct report_names names = {l, movement, key};
  template_names(str_from(text), PROMPT_REPORT, check_report, &names);
  template_names(str_from(text), PROMPT_RESPONSE, check_response, &names);
  template_names(str_from(text), PROMPT_BRANCHES, check_branches, &names);
}

void lint_reports(struct lint *l, size_t movement) {
  assert(movement < l->count);
  const json_t *object = l->movements[movement].object, *item;
  size_t i;
  lint_check_names(l, movement, "instruction", lint_text(object, "instruction", ""));
  lint_check_files(l, movement);
  json_array_foreach(reports_of(object), i, item) {
    lint_check_names(l, movement, "output_contracts", lint_text(item, "format", ""));
    lint_check_names(l, movement, "output_contracts", lint_text(item, "order", ""));
  }
}
