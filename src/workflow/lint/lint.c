/* Warns about what a well-formed workflow can still get wrong. */
#include "workflow/load.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "judge/rule.h"
#include "workflow/lint/part.h"
#include "workflow/parse.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Returns a member's text, `otherwise` if it has none. Lint works on the document, not on a built
 * workflow: a file whose rules lead nowhere cannot be built. The document may come from a log, so
 * nothing in it is taken for granted. */

const char *lint_text(const json_t *object, const char *key, const char *otherwise) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : otherwise;
}

void lint_report(struct lint *l, struct err_list *list, const char *path, const char *fmt, ...) {
  assert(list == l->errors || list == l->warnings);
  assert(path != NULL);
  struct err err = {0};
  char text[sizeof err.text];
  int line, column;
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  marks_place(l->marks, path, &line, &column);
  (void)err_set_at(&err, ERR_FILE, marks_file(l->marks, path), line, column, "%s", text);
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].line == line && list->items[i].column == column &&
        strcmp(list->items[i].text, err.text) == 0)
      return;
  err_list_add(list, &err);
}

const char *lint_path(const struct lint *l, char path[DOC_PATH_BYTES], size_t movement,
                      const char *key) {
  assert(movement < l->count);
  const struct lint_movement *m = &l->movements[movement];
  if (movement >= l->first_loop) {
    doc_path_item(path, "loop_monitors", movement - l->first_loop);
    doc_path_member(path, path, "judge");
    doc_path_member(path, path, key);
    return path;
  }
  doc_path_item(path, "movements", m->group == LINT_NO_GROUP ? movement : m->group);
  if (m->group != LINT_NO_GROUP) {
    doc_path_member(path, path, "parallel");
    doc_path_item(path, path, m->child);
  }
  doc_path_member(path, path, key);
  return path;
}

const char *lint_rule_path(const struct lint *l, char path[DOC_PATH_BYTES], size_t movement,
                           size_t rule, const char *key) {
  doc_path_item(path, lint_path(l, path, movement, "rules"), rule);
  doc_path_member(path, path, key);
  return path;
}

const char *lint_suggestion(struct lint *l, const char *word, const char *const *names,
                            const char *otherwise) {
  const char *near = NULL;
  for (size_t i = 0; names[i] && near == NULL; i++)
    if (strcasecmp(word, names[i]) == 0)
      near = names[i];
  if (near == NULL)
    near = str_nearest(str_from(word), names);
  if (near == NULL)
    return otherwise;
  struct buf b = {0};
  buf_printf(&b, "did you mean %s?", near);
  const char *copy = arena_strdup(&l->arena, buf_c(&b));
  buf_deinit(&b);
  return copy;
}

/* --- reading the document --- */

static long next_of(const json_t *by_name, const char *next) {
  const json_t *index = json_object_get(by_name, next);
  if (strcmp(next, "COMPLETE") == 0)
    return TO_COMPLETE;
  if (strcmp(next, "ABORT") == 0)
    return TO_ABORT;
  return index ? (long)json_integer_value(index) : TO_NOWHERE;
}

struct roots {
  bool any, other; /* has a reference; has one to anything but numbers that every run has */
};

static void note_root(void *ctx, const struct str *names, size_t n) {
  struct roots *roots = ctx;
  const struct str root = {names[0].p, names[0].n};
  roots->any = true;
  roots->other = roots->other || n != 1 ||
                 !(str_eq_c(root, "exit") || str_eq_c(root, "last_exit") ||
                   str_eq_c(root, "iteration") || str_eq_c(root, "movement_iteration"));
}

enum expr_value lint_try_out(const struct expr *when, bool *constant, struct expr_error *why) {
  struct roots roots = {0};
  json_auto_t *run = json_pack("{si si si si}", "exit", 0, "last_exit", 0, "iteration", 1,
                               "movement_iteration", 1);
  expr_each_ref(when, note_root, &roots);
  *constant = !roots.any;
  return roots.other ? EXPR_FALSE : expr_eval(when, run, why);
}

static bool always_holds(const struct lint_rule *r) {
  struct expr_error why;
  bool constant;
  return r->parsed && r->rule.kind == RULE_WHEN && !r->rule.interactive_only &&
         lint_try_out(r->rule.when, &constant, &why) == EXPR_TRUE && constant;
}

static void read_rule_list(struct lint *l, struct lint_movement *m, const json_t *list,
                           const json_t *by_name) {
  const json_t *v;
  size_t i, holds = 0;
  m->rules = arena_array(&l->arena, json_array_size(list), sizeof *m->rules);
  m->rule_count = json_array_size(list);
  json_array_foreach(list, i, v) {
    struct lint_rule *r = &m->rules[i];
    struct err err;
    r->rule.label = STR("");
    r->parsed =
        rule_parse(&l->arena, str_from(lint_text(v, "condition", "")), &r->rule, NULL, &err);
    r->rule.interactive_only = json_is_true(json_object_get(v, "interactive_only"));
    r->next = next_of(by_name, lint_text(v, "next", ""));
    r->behind = holds;
    if (holds == 0 && always_holds(r))
      holds = i + 1;
  }
}

static void read_rules(struct lint *l, struct lint_movement *m, const json_t *by_name) {
  read_rule_list(l, m, json_object_get(m->object, "rules"), by_name);
  const char *reject = lint_text(json_object_get(m->object, "approve"), "on_reject", "ABORT");
  m->reject = next_of(by_name, reject);
}

static size_t lint_count_children(const json_t *movements) {
  size_t n = 0, i;
  const json_t *v;
  json_array_foreach((json_t *)movements, i, v) {
    n += json_array_size(json_object_get(v, "parallel"));
  }
  return n;
}

static struct lint_movement read_movement(const json_t *object) {
  return (struct lint_movement){.object = object,
                                .name = lint_text(object, "name", ""),
                                .group = LINT_NO_GROUP,
                                .is_command = json_object_get(object, "command") != NULL};
}

/* Reads the children of one group, under their full names. */
static void read_children(struct lint *l, size_t group) {
  struct lint_movement *parent = &l->movements[group];
  const json_t *list = json_object_get(parent->object, "parallel"), *v;
  size_t i;
  parent->first_child = l->count;
  parent->child_count = json_array_size(list);
  json_array_foreach((json_t *)list, i, v) {
    struct lint_movement *m = &l->movements[l->count];
    struct buf full = {0};
    *m = read_movement(v);
    m->group = group;
    m->child = i;
    buf_printf(&full, "%s.%s", parent->name, m->name);
    m->name = l->names[l->count++] = arena_strdup(&l->arena, buf_c(&full));
    buf_deinit(&full);
  }
}

static void read_movements(struct lint *l) {
  const json_t *list = json_object_get(l->doc, "movements"), *v;
  json_auto_t *by_name = json_object();
  size_t i, most = json_array_size(list) + lint_count_children(list) + lint_count_loops(l);
  l->movements = arena_array(&l->arena, most, sizeof *l->movements);
  l->names = arena_array(&l->arena, most + 3, sizeof *l->names);
  l->count = l->top_count = json_array_size(list);
  json_array_foreach(list, i, v) {
    l->movements[i] = read_movement(v);
    l->names[i] = l->movements[i].name;
    json_object_set_new(by_name, l->names[i], json_integer((json_int_t)i));
  }
  for (i = 0; i < l->top_count; i++)
    read_children(l, i);
  lint_read_loops(l);
  l->names[l->count] = "COMPLETE";
  l->names[l->count + 1] = "ABORT";
  for (i = 0; i < l->count; i++)
    read_rules(l, &l->movements[i], by_name);
  read_rule_list(l, &l->globals, json_object_get(l->doc, "global_rules"), by_name);
}

bool *workflow_reachable(const json_t *doc) {
  struct lint l = {.doc = doc};
  read_movements(&l);
  lint_reach(&l);
  bool *out = xcalloc(l.count + 1, sizeof *out);
  for (size_t i = 0; i < l.count; i++)
    out[i] = l.movements[i].reachable;
  arena_deinit(&l.arena);
  return out;
}

/* Checks that a movement's permission, edit and run agree. */
static void check_permission(struct lint *l, size_t movement) {
  const json_t *own = l->movements[movement].object;
  const char *said = lint_text(own, "permission", NULL);
  const char *floor = lint_text(own, "required_permission_mode", NULL);
  const json_t *edit = json_object_get(own, "edit");
  char path[DOC_PATH_BYTES];
  bool reads = said != NULL ? strcmp(said, "readonly") == 0 : !json_is_true(edit);
  if (said != NULL && edit != NULL && json_is_true(edit) == reads)
    lint_report(l, l->errors, lint_path(l, path, movement, "edit"),
                "edit: %s contradicts permission: %s: remove it",
                json_is_true(edit) ? "true" : "false", said);
  reads = reads && (floor == NULL || strcmp(floor, "readonly") == 0);
  if (json_object_get(own, "run") != NULL && reads)
    lint_report(l, l->errors, lint_path(l, path, movement, "run"),
                "readonly runs nothing that may write: write permission: edit, or remove run");
}

void workflow_lint(const json_t *doc, const struct workflow_marks *marks,
                   const struct lint_env *env, struct err_list *errors, struct err_list *warnings) {
  struct lint l = {.doc = doc, .marks = marks, .env = env, .errors = errors, .warnings = warnings};
  read_movements(&l);
  lint_flow(&l);
  lint_backends(&l);
  for (size_t i = 0; i < l.count; i++) {
    check_permission(&l, i);
    lint_rules(&l, i);
    lint_backends_of(&l, i);
    lint_structured(&l, i);
  }
  for (size_t i = 0; marks != NULL && i < marks->notes.count; i++)
    err_list_add(warnings, &marks->notes.items[i]);
  sort_by_place(errors);
  sort_by_place(warnings);
  arena_deinit(&l.arena);
}
