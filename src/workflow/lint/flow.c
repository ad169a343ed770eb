/* Follows where rules lead and reports names of nothing, movements that nothing reaches, paths that
 * never end. */
#include "workflow/lint/part.h"

#include <string.h>

static void check_next(struct lint *l) {
  char path[DOC_PATH_BYTES];
  for (size_t i = 0; i < l->count; i++)
    for (size_t k = 0; k < l->movements[i].rule_count; k++) {
      if (l->movements[i].rules[k].next != TO_NOWHERE || l->movements[i].group != LINT_NO_GROUP)
        continue;
      const json_t *rule = json_array_get(json_object_get(l->movements[i].object, "rules"), k);
      const char *next = lint_text(rule, "next", "");
      if (*next == '\0')
        continue; /* reported while the file was read */
      lint_report(l, l->errors, lint_rule_path(l, path, i, k, "next"),
                  "there is no movement %s: %s", next,
                  lint_suggestion(l, next, l->names, "write a movement's name, COMPLETE or ABORT"));
    }
}

static void check_rejects(struct lint *l) {
  char path[DOC_PATH_BYTES];
  for (size_t i = 0; i < l->count; i++) {
    if (l->movements[i].reject != TO_NOWHERE || l->movements[i].group != LINT_NO_GROUP)
      continue;
    const char *next =
        lint_text(json_object_get(l->movements[i].object, "approve"), "on_reject", "");
    (void)lint_path(l, path, i, "approve");
    doc_path_member(path, path, "on_reject");
    lint_report(l, l->errors, path, "there is no movement %s: %s", next,
                lint_suggestion(l, next, l->names, "write a movement's name, COMPLETE or ABORT"));
  }
}

static void check_global_next(struct lint *l) {
  char path[DOC_PATH_BYTES];
  for (size_t k = 0; k < l->globals.rule_count; k++) {
    const json_t *rule = json_array_get(json_object_get(l->doc, "global_rules"), k);
    const char *next = lint_text(rule, "next", "");
    if (l->globals.rules[k].next != TO_NOWHERE || *next == '\0')
      continue;
    doc_path_item(path, "global_rules", k);
    doc_path_member(path, path, "next");
    lint_report(l, l->errors, path, "there is no movement %s: %s", next,
                lint_suggestion(l, next, l->names, "write a movement's name, COMPLETE or ABORT"));
  }
}

static size_t initial_of(const struct lint *l) {
  const char *initial = lint_text(l->doc, "initial_movement", NULL);
  for (size_t i = 0; initial && i < l->top_count; i++)
    if (strcmp(l->names[i], initial) == 0)
      return i;
  return 0;
}

static void check_initial(struct lint *l) {
  const char *initial = lint_text(l->doc, "initial_movement", NULL);
  if (initial == NULL || l->count == 0 || strcmp(l->names[initial_of(l)], initial) == 0)
    return;
  l->names[l->count] = NULL; /* the ends are no place to begin */
  lint_report(l, l->errors, "initial_movement", "there is no movement %s: %s", initial,
              lint_suggestion(l, initial, l->names, "write the name of a movement"));
  l->names[l->count] = "COMPLETE";
}

static void reach_next(struct lint *l, long next, size_t *queue, size_t *tail) {
  if (next < 0 || l->movements[next].reachable)
    return;
  l->movements[next].reachable = true;
  queue[(*tail)++] = (size_t)next;
}

static void add_reached(struct lint *l, const struct lint_movement *m, size_t *queue,
                        size_t *tail) {
  for (size_t k = 0; k < m->rule_count; k++)
    if (m->rules[k].behind == 0)
      reach_next(l, m->rules[k].next, queue, tail);
  if (json_object_get(m->object, "approve") != NULL)
    reach_next(l, m->reject, queue, tail);
}

/* Adds the judge of a loop that can be entered: it is reached, too. */
static bool next_loop(struct lint *l, size_t *queue, size_t *tail) {
  for (size_t i = l->first_loop; i < l->count; i++) {
    size_t first = lint_cycle(l, i, 0);
    if (l->movements[i].reachable || first == l->count || !l->movements[first].reachable)
      continue;
    l->movements[i].reachable = true;
    queue[(*tail)++] = i;
    return true;
  }
  return false;
}

void lint_reach(struct lint *l) {
  size_t *queue = arena_array(&l->arena, l->count, sizeof *queue), head = 0, tail = 0;
  if (l->count == 0)
    return;
  queue[tail] = initial_of(l);
  l->movements[queue[tail++]].reachable = true;
  while (head < tail || next_loop(l, queue, &tail)) {
    const struct lint_movement *m = &l->movements[queue[head++]];
    add_reached(l, m, queue, &tail);
    add_reached(l, &l->globals, queue, &tail);
  }
  for (size_t i = l->top_count; i < l->first_loop; i++) /* children are reached with their group */
    l->movements[i].reachable = l->movements[l->movements[i].group].reachable;
}

static void check_reachable(struct lint *l) {
  char path[DOC_PATH_BYTES];
  check_initial(l);
  lint_reach(l);
  for (size_t i = 0; i < l->top_count; i++)
    if (!l->movements[i].reachable)
      lint_report(l, l->warnings, lint_path(l, path, i, "name"),
                  "no rule leads to the movement %s: let a rule's next name it, or remove it",
                  l->names[i]);
}

/* Returns true if a rule leads out. A rule that is hidden while nobody takes part does not. A rule
 * to nowhere counts as a way out here, since it is an error of its own. */
static bool has_way_out(const struct lint *l, const struct lint_movement *m) {
  for (size_t k = 0; k < m->rule_count; k++) {
    long next = m->rules[k].next;
    if (!m->rules[k].rule.interactive_only && m->rules[k].behind == 0 &&
        (next < 0 || l->movements[next].ends))
      return true;
  }
  return false;
}

/* Returns true if the judge of a loop that begins with the movement leads out. */
static bool is_let_out(const struct lint *l, size_t movement) {
  for (size_t i = l->first_loop; i < l->count; i++)
    if (lint_cycle(l, i, 0) == movement && has_way_out(l, &l->movements[i]))
      return true;
  return false;
}

static void check_ends(struct lint *l) {
  char path[DOC_PATH_BYTES];
  const char *max = lint_text(l->doc, "max_movements", "");
  bool endless = strcmp(max, "infinite") == 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = l->top_count; i-- > 0;)
      if (!l->movements[i].ends &&
          (has_way_out(l, &l->movements[i]) || is_let_out(l, i) || has_way_out(l, &l->globals)))
        l->movements[i].ends = changed = true;
  }
  for (size_t i = 0; i < l->top_count; i++)
    if (l->movements[i].reachable && !l->movements[i].ends)
      lint_report(
          l, endless ? l->errors : l->warnings, lint_path(l, path, i, "name"),
          "from the movement %s no rules lead to COMPLETE or ABORT, so only %s ends it: add a "
          "rule that leads out",
          l->names[i], endless ? "a person" : "max_movements");
}

void lint_flow(struct lint *l) {
  check_next(l);
  check_rejects(l);
  check_global_next(l);
  lint_loops(l);
  check_reachable(l);
  check_ends(l);
}
