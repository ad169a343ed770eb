/* Warns about what a movement with children can get wrong. */
#include "base/limits.h"
#include "format/json_object.h"
#include "workflow/lint/part.h"

#include <assert.h>
#include <string.h>

static bool is_reserved(struct str label) {
  return str_eq_c(label, AGGREGATE_ERROR) || str_eq_c(label, AGGREGATE_NONE);
}

/* Returns all labels that children of the group can get, NULL-ended. */
static const char **labels_of(struct lint *l, const struct lint_movement *group) {
  size_t n = 2, most = 3;
  for (size_t i = 0; i < group->child_count; i++)
    most += l->movements[group->first_child + i].rule_count;
  const char **labels = arena_array(&l->arena, most, sizeof *labels);
  labels[0] = AGGREGATE_ERROR;
  labels[1] = AGGREGATE_NONE;
  for (size_t i = 0; i < group->child_count; i++) {
    const struct lint_movement *m = &l->movements[group->first_child + i];
    for (size_t k = 0; k < m->rule_count; k++)
      if (m->rules[k].parsed) {
        struct str label = rule_vote(&m->rules[k].rule);
        labels[n++] = arena_strndup(&l->arena, label.p, label.n);
      }
  }
  labels[n] = NULL;
  return labels;
}

static void check_label(struct lint *l, const char *place, const struct lint_movement *group,
                        struct str label) {
  const char **labels = labels_of(l, group), *name = arena_strndup(&l->arena, label.p, label.n);
  for (size_t i = 0; labels[i]; i++)
    if (str_eq_c(label, labels[i]))
      return;
  lint_report(l, l->errors, place, "no child of %s has a rule \"%.80s\": %s", group->name, name,
              lint_suggestion(l, name, labels, "write a label of the children's rules"));
}

void lint_votes(struct lint *l, const char *place, size_t movement, struct str root,
                struct str label) {
  const struct lint_movement *group = &l->movements[movement];
  if (group->child_count == 0)
    lint_report(
        l, l->errors, place,
        "%.5s is about the children of a movement, and this one has none: give it parallel:",
        root.p);
  else if (label.n > 0 && str_eq_c(root, "votes"))
    check_label(l, place, group, label);
}

static void check_aggregates(struct lint *l, size_t movement) {
  const struct lint_movement *group = &l->movements[movement];
  for (size_t i = 0; i < group->rule_count; i++) {
    const struct aggregate *aggregate = group->rules[i].rule.aggregate;
    char place[DOC_PATH_BYTES];
    if (!group->rules[i].parsed || aggregate == NULL)
      continue;
    doc_path_item(place, lint_path(l, place, movement, "rules"), i);
    doc_path_member(place, place, "condition");
    if (group->child_count == 0) {
      lint_report(l, l->errors, place,
                  "all(...) and any(...) are about the children of a movement, and this one has "
                  "none: write a label or when(...)");
      continue;
    }
    for (size_t k = 0; k < aggregate->count; k++)
      check_label(l, place, group, aggregate->labels[k]);
    bool has_items = json_object_get(group->object, "for_each") != NULL;
    if (aggregate->all && aggregate->count > 1 && !has_items &&
        aggregate->count != group->child_count)
      lint_report(l, l->warnings, place,
                  "all(...) names %zu labels for %zu children, so it is never true: write one "
                  "label for all, or one for each",
                  aggregate->count, group->child_count);
  }
}

static void check_reserved(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  for (size_t i = 0; i < m->rule_count; i++) {
    char place[DOC_PATH_BYTES];
    if (!m->rules[i].parsed || !is_reserved(m->rules[i].rule.label))
      continue;
    doc_path_item(place, lint_path(l, place, movement, "rules"), i);
    doc_path_member(place, place, "condition");
    lint_report(l, l->errors, place,
                "error and none stand for children without a verdict: write another label");
  }
}

/* Returns the key that lets a movement change files in its siblings' tree, NULL if it cannot. */
static const char *editing_key(const json_t *object) {
  static const char *const keys[] = {"permission", "required_permission_mode"};
  if (strcmp(lint_text(object, "workspace", ""), "worktree") == 0)
    return NULL;
  if (json_is_true(json_object_get(object, "edit")))
    return "edit";
  for (size_t i = 0; i < ARRAY_LEN(keys); i++)
    if (strcmp(lint_text(object, keys[i], "readonly"), "readonly") != 0)
      return keys[i];
  return NULL;
}

static void check_item_editor(struct lint *l, size_t movement) {
  const size_t child = l->movements[movement].first_child;
  const char *key = editing_key(l->movements[child].object);
  char place[DOC_PATH_BYTES];
  if (key != NULL)
    lint_report(l, l->errors, lint_path(l, place, child, key),
                "%s may change the same files for several items at once: write workspace: "
                "worktree into it, or concurrency: 1",
                l->movements[child].name);
}

/* Checks that no two children edit one tree at once: they would overwrite each other's work. */
static void check_editors(struct lint *l, size_t movement) {
  const struct lint_movement *group = &l->movements[movement], *first = NULL;
  const json_t *concurrency = json_object_get(group->object, "concurrency");
  if (json_integer_value(concurrency) == 1)
    return;
  if (json_object_get(group->object, "for_each") != NULL && group->child_count == 1) {
    check_item_editor(l, movement);
    return;
  }
  for (size_t i = 0; i < group->child_count; i++) {
    const struct lint_movement *m = &l->movements[group->first_child + i];
    char place[DOC_PATH_BYTES];
    const char *key = editing_key(m->object);
    if (key == NULL)
      continue;
    if (first != NULL) {
      lint_report(l, l->errors, lint_path(l, place, group->first_child + i, key),
                  "%s and %s may change the same files at once: let one of them edit, give them "
                  "workspace: worktree, or write concurrency: 1",
                  first->name, m->name);
      return;
    }
    first = m;
  }
}

static void check_for_each(struct lint *l, size_t movement) {
  const struct lint_movement *group = &l->movements[movement];
  const json_t *items = json_object_get(group->object, "for_each");
  char place[DOC_PATH_BYTES];
  if (json_is_string(items))
    lint_reference(l, lint_path(l, place, movement, "for_each"), json_view(items),
                   "for_each: ", "");
}

void lint_group(struct lint *l, size_t movement) {
  assert(movement < l->count);
  check_for_each(l, movement);
  check_aggregates(l, movement);
  check_editors(l, movement);
  if (l->movements[movement].group != LINT_NO_GROUP)
    check_reserved(l, movement);
}
