/* Warns of what a well-formed workflow can still get wrong. */
#include "workflow/load.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "judge/rule.h"
#include "workflow/lint_part.h"
#include "workflow/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Works on the document, not on a built workflow: a file whose rules lead nowhere cannot be built.
 * It may come from a log, so nothing in it is taken for granted. */

const char *lint_text(const json_t *object, const char *key, const char *otherwise) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : otherwise;
}

void lint_report(struct lint *l, struct err_list *list, const char *path, const char *fmt, ...) {
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

static const char *rule_path(const struct lint *l, char path[DOC_PATH_BYTES], size_t movement,
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
  bool any, other; /* a reference; one to anything but numbers that every run has */
};

static void note_root(void *ctx, const struct str *names, size_t n) {
  struct roots *roots = ctx;
  const struct str root = {names[0].p, names[0].n};
  roots->any = true;
  roots->other = roots->other || n != 1 ||
                 !(str_eq_c(root, "exit") || str_eq_c(root, "last_exit") ||
                   str_eq_c(root, "iteration") || str_eq_c(root, "movement_iteration"));
}

/* Evaluates an expression in which nothing but a run's own numbers stands; else EXPR_FALSE. */
static enum expr_value try_out(const struct expr *when, bool *constant, struct expr_error *why) {
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
         try_out(r->rule.when, &constant, &why) == EXPR_TRUE && constant;
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

/* The children of one group, by their full names. */
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

/* --- where rules lead --- */

static void check_next(struct lint *l) {
  char path[DOC_PATH_BYTES];
  for (size_t i = 0; i < l->count; i++)
    for (size_t k = 0; k < l->movements[i].rule_count; k++) {
      if (l->movements[i].rules[k].next != TO_NOWHERE || l->movements[i].group != LINT_NO_GROUP)
        continue;
      const json_t *rule = json_array_get(json_object_get(l->movements[i].object, "rules"), k);
      const char *next = lint_text(rule, "next", "");
      if (*next == '\0')
        continue; /* said while the file was read */
      lint_report(l, l->errors, rule_path(l, path, i, k, "next"), "there is no movement %s: %s",
                  next,
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
  l->names[l->count] = NULL; /* the ends are no place to start */
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

/* The judge of a loop that can be entered is reached, too. */
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

static void lint_reach(struct lint *l) {
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
  for (size_t i = l->top_count; i < l->first_loop; i++) /* children go with their group */
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

/* A rule that is hidden while nobody takes part is no way out. A rule to nowhere is an error of its
 * own and counts as one here. */
static bool has_way_out(const struct lint *l, const struct lint_movement *m) {
  for (size_t k = 0; k < m->rule_count; k++) {
    long next = m->rules[k].next;
    if (!m->rules[k].rule.interactive_only && m->rules[k].behind == 0 &&
        (next < 0 || l->movements[next].ends))
      return true;
  }
  return false;
}

/* The judge of a loop that begins with it leads out. */
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

/* --- rules of one movement --- */

enum { REF_NAMES_MAX = 32 }; /* of one reference; what is behind them is not looked at */

struct refs {
  struct lint *l;
  size_t movement, rule;
};

/* tests.passed is of this movement, checks.NAME.exit of any that has a command. */
static void check_tests_ref(struct lint *l, size_t movement, const char *place,
                            const struct str *path, size_t n) {
  bool own = str_eq_c(path[0], "tests");
  bool counts = own || (n > 2 && (str_eq_c(path[2], "passed") || str_eq_c(path[2], "failed") ||
                                  str_eq_c(path[2], "skipped")));
  size_t i = own ? movement : 0;
  while (!own && i < l->count && !str_eq_c(path[1], l->names[i]))
    i++;
  bool runs = i < l->count && l->movements[i].is_command;
  if (!runs && own)
    lint_report(l, l->errors, place,
                "tests are those of a command, and this movement runs none: give it command: and "
                "tests:");
  else if (!runs)
    lint_report(l, l->errors, place,
                "no movement %.*s runs a command, so checks has nothing of it: name one that has "
                "command:",
                (int)(path[1].n < LIMIT_NAME_BYTES ? path[1].n : LIMIT_NAME_BYTES), path[1].p);
  else if (counts && json_object_get(l->movements[i].object, "tests") == NULL)
    lint_report(l, l->errors, place,
                "the tests of \"%s\" are not counted: give it tests:, such as tests: pytest",
                l->names[i]);
}

static void check_ref(void *ctx, const struct str *names, size_t n) {
  struct refs *r = ctx;
  struct str path[REF_NAMES_MAX] = {{"", 0}, {"", 0}};
  struct lint *l = r->l;
  char place[DOC_PATH_BYTES];
  for (size_t i = 0; i < n && i < ARRAY_LEN(path); i++)
    path[i] = (struct str){names[i].p, names[i].n};
  rule_path(l, place, r->movement, r->rule, "condition");
  if (str_eq_c(path[0], "exit") && !l->movements[r->movement].is_command)
    lint_report(
        l, l->errors, place,
        "exit is a command's exit status, and this movement runs none: give it command:, or use "
        "a label");
  if (str_eq_c(path[0], "tests") || str_eq_c(path[0], "checks"))
    check_tests_ref(l, r->movement, place, path, n);
  if (l->movements[r->movement].rules[r->rule].rule.aggregate == NULL &&
      (str_eq_c(path[0], "votes") || str_eq_c(path[0], "parts")))
    lint_votes(l, place, r->movement, path[0], n > 1 ? path[1] : STR(""));
  if (!str_eq_c(path[0], "structured") || n < 2)
    return;
  for (size_t i = 0; i < l->count; i++)
    if (str_eq_c(path[1], l->names[i])) {
      lint_member(l, place, i, path + 2, (n < ARRAY_LEN(path) ? n : ARRAY_LEN(path)) - 2);
      return;
    }
  size_t n_shown = path[1].n > LIMIT_NAME_BYTES ? LIMIT_NAME_BYTES : path[1].n;
  const char *name = arena_strndup(&l->arena, path[1].p, utf8_floor(path[1].p, n_shown));
  l->names[l->count] = NULL;
  lint_report(l, l->errors, place, "there is no movement %s, so structured.%s has no value: %s",
              name, name, lint_suggestion(l, name, l->names, "write structured.MOVEMENT.FIELD"));
  l->names[l->count] = "COMPLETE";
}

static void check_shadowed(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  for (size_t i = 0; i < m->rule_count; i++) {
    size_t behind = m->rules[i].behind;
    if (behind > 0)
      lint_report(l, l->warnings, rule_path(l, path, movement, i, "condition"),
                  "rule %zu can never win: rule %zu always holds and stands before it; put that "
                  "one last or remove one",
                  i + 1, behind);
    for (size_t k = 0; k < i && behind == 0; k++) {
      const struct rule *first = &m->rules[k].rule, *second = &m->rules[i].rule;
      if (!m->rules[k].parsed || !m->rules[i].parsed || first->kind != RULE_LABEL ||
          !str_eq(first->label, second->label) ||
          (first->interactive_only && !second->interactive_only))
        continue;
      lint_report(l, l->warnings, rule_path(l, path, movement, i, "condition"),
                  "rule %zu can never win: rule %zu takes the same label without a when(); put the "
                  "guarded rule first or remove one",
                  i + 1, k + 1);
      break;
    }
  }
}

static void check_value(struct lint *l, size_t movement, size_t rule) {
  const struct expr *when = l->movements[movement].rules[rule].rule.when;
  struct expr_error why;
  bool constant;
  char path[DOC_PATH_BYTES];
  if (try_out(when, &constant, &why) == EXPR_ERROR)
    lint_report(l, l->errors, rule_path(l, path, movement, rule, "condition"), "%s", why.text);
}

static void check_rules(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  size_t selectable = 0;
  for (size_t k = 0; k < m->rule_count; k++) {
    struct refs refs = {l, movement, k};
    selectable += !m->rules[k].rule.interactive_only;
    if (m->rules[k].parsed && m->rules[k].rule.when) {
      expr_each_ref(m->rules[k].rule.when, check_ref, &refs);
      check_value(l, movement, k);
    }
  }
  lint_group(l, movement);
  if (selectable == 0 && m->rule_count > 0)
    lint_report(l, l->errors, lint_path(l, path, movement, "rules"),
                "every rule is interactive_only, so none can be selected: add a rule without it");
  check_shadowed(l, movement);
}

/* --- providers --- */

const struct capability *lint_provider(struct lint *l, const char *path, const char *name) {
  const char *names[65];
  size_t n = 0;
  const struct capability *found = capability_find(l->env->providers, str_from(name));
  if (found != NULL)
    return found;
  for (const struct capability *c = l->env->providers; c->name && n < ARRAY_LEN(names) - 1; c++)
    names[n++] = c->name;
  names[n] = NULL;
  struct buf all = {0};
  for (size_t i = 0; i < n; i++)
    buf_printf(&all, "%s%s", i ? ", " : "use one of ", names[i]);
  const char *list = arena_strdup(&l->arena, buf_c(&all));
  buf_deinit(&all);
  lint_report(l, l->errors, path, "there is no provider %s: %s", name,
              lint_suggestion(l, name, names, list));
  return NULL;
}

/* Where a value that may be inherited stands: text, and the path of the key. */
struct setting {
  const char *text; /* NULL: nowhere in the file */
  char path[DOC_PATH_BYTES];
};

static void check_options(struct lint *l, const json_t *options, const char *path,
                          const char *provider) {
  const struct capability *c = capability_find(l->env->providers, str_from(provider));
  for (size_t i = 0; c && option_names[i]; i++) {
    char option_path[DOC_PATH_BYTES];
    if (json_object_get(options, option_names[i]) == NULL || (c->options & (1u << i)) != 0)
      continue;
    doc_path_member(option_path, path, option_names[i]);
    lint_report(l, l->errors, option_path, "provider %s takes no %s: remove it", c->name,
                option_names[i]);
  }
}

/* The movement's own `section.key`, else the workflow's; section may be empty. */
static struct setting setting_of(struct lint *l, size_t movement, const char *section,
                                 const char *key) {
  struct setting s = {0};
  const json_t *holders[] = {l->movements[movement].object, l->doc};
  for (size_t i = 0; i < 2; i++) {
    const json_t *holder = *section ? json_object_get(holders[i], section) : holders[i];
    if ((s.text = lint_text(holder, key, NULL)) == NULL)
      continue;
    doc_path_member(s.path, i == 0 ? lint_path(l, s.path, movement, "") : "", section);
    doc_path_member(s.path, s.path, key);
    return s;
  }
  return s;
}

static const json_t *lint_options_of(struct lint *l, size_t movement, const char *section,
                                     char path[DOC_PATH_BYTES]) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *own = *section ? json_object_get(m->object, section) : m->object;
  const json_t *all = *section ? json_object_get(l->doc, section) : l->doc;
  const json_t *options = json_object_get(own, "options");
  doc_path_member(path, options ? lint_path(l, path, movement, "") : "", section);
  doc_path_member(path, path, "options");
  return options ? options : json_object_get(all, "options");
}

/* The agent's side; returns who works on the movement, "" when the file does not say. */
static const char *check_worker(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  const json_t *options = lint_options_of(l, movement, "", path);
  if (m->is_command) { /* the workflow's options are for agents: only its own count */
    if (json_object_get(m->object, "options") != NULL)
      check_options(l, options, path, "command");
    return "command";
  }
  struct setting provider = setting_of(l, movement, "", "provider");
  if (l->env->chosen.n > 0)
    provider.text = arena_strndup(&l->arena, l->env->chosen.p, l->env->chosen.n);
  else if (provider.text == NULL)
    provider.text = arena_strndup(&l->arena, l->env->provider.n > 0 ? l->env->provider.p : "",
                                  l->env->provider.n);
  else if (strcmp(provider.text, "command") == 0)
    lint_report(
        l, l->errors, provider.path,
        "provider command runs what a movement's command names, and movement %s has none: write "
        "command: [program, argument, ...] in it, or another provider",
        l->names[movement]);
  else
    (void)lint_provider(l, provider.path, provider.text);
  check_options(l, options, path, provider.text);
  return provider.text;
}

/* Those to fall back to, of whoever names them: `path` is the place of its provider key. */
static void check_fallback(struct lint *l, const json_t *holder, const char *path, bool judges) {
  size_t i;
  json_t *name;
  json_array_foreach(json_object_get(holder, "fallback"), i, name) {
    const char *word = json_string_value(name);
    const struct capability *c = strcmp(word, "command") == 0 ? NULL : lint_provider(l, path, word);
    if (strcmp(word, "command") == 0)
      lint_report(
          l, l->errors, path,
          "provider command runs a movement's own program: it cannot take over from another");
    else if (c != NULL && judges && !c->can_judge)
      lint_report(l, l->errors, path, "provider %s cannot judge: leave it out of judge.provider",
                  c->name);
  }
}

/* The judges that vote, each as whoever judges alone. */
static void check_panel(struct lint *l, const json_t *judge, const char *path) {
  const json_t *panel = json_object_get(judge, "panel");
  size_t i;
  json_t *name;
  json_array_foreach((json_t *)panel, i, name) {
    const struct capability *c = lint_provider(l, path, json_string_value(name));
    if (c != NULL && !c->can_judge)
      lint_report(l, l->errors, path, "provider %s cannot judge: leave it out of judge.panel",
                  c->name);
  }
  if (json_is_array(panel) &&
      json_integer_value(json_object_get(judge, "agree")) > (json_int_t)json_array_size(panel))
    lint_report(l, l->errors, path, "agree is more than the panel has judges: %zu",
                json_array_size(panel));
}

static bool calls_no_model(struct lint *l, size_t movement) {
  const json_t *stages =
      json_object_get(json_object_get(l->movements[movement].object, "judge"), "stages");
  if (stages == NULL)
    stages = json_object_get(json_object_get(l->doc, "judge"), "stages");
  const char *only = json_string_value(json_array_get(stages, 0));
  return json_array_size(stages) == 1 && only && strcmp(only, "phase1_tag") == 0;
}

static size_t visible_labels(const struct lint_movement *m) {
  size_t count = 0;
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *rule = &m->rules[i].rule;
    bool fresh = rule->label.n > 0 && !rule->interactive_only;
    for (size_t k = 0; k < i && fresh; k++)
      fresh = m->rules[k].rule.interactive_only || !str_eq(m->rules[k].rule.label, rule->label);
    count += fresh;
  }
  return count;
}

static bool has_panel(const struct lint *l, size_t movement) {
  const json_t *own = json_object_get(l->movements[movement].object, "judge");
  const json_t *panel = json_object_get(own, "panel");
  if (panel == NULL)
    panel = json_object_get(json_object_get(l->doc, "judge"), "panel");
  return json_is_array(panel);
}

static void check_judge(struct lint *l, size_t movement, const char *worker) {
  const struct lint_movement *m = &l->movements[movement];
  struct setting judge = setting_of(l, movement, "judge", "provider");
  bool needed = visible_labels(m) >= 2 && !calls_no_model(l, movement);
  const char *name = judge.text ? judge.text : worker;
  char path[DOC_PATH_BYTES];
  if (judge.text == NULL && has_panel(l, movement))
    return; /* looked at where it stands */
  if (judge.text == NULL && m->is_command) {
    if (needed)
      lint_report(
          l, l->errors, lint_path(l, path, movement, "rules"),
          "movement %s runs a command, which cannot judge its labels: write when(exit == 0) "
          "rules, or set judge.provider",
          m->name);
    return;
  }
  const struct capability *c;
  if (judge.text)
    c = lint_provider(l, judge.path, judge.text);
  else
    c = capability_find(l->env->providers, str_from(name));
  if (c != NULL && !c->can_judge && (judge.text || needed))
    lint_report(l, l->errors, judge.text ? judge.path : lint_path(l, path, movement, "rules"),
                "provider %s cannot judge: name another in judge.provider", c->name);
  const json_t *options = lint_options_of(l, movement, "judge", path);
  check_options(l, options, path, name);
  struct setting effort = setting_of(l, movement, "judge", "effort");
  c = capability_find(l->env->providers, str_from(name));
  if (effort.text != NULL && c != NULL && (c->options & OPTION_EFFORT) == 0)
    lint_report(l, l->errors, effort.path, "provider %s takes no effort: remove it", name);
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

/* The permission of a movement is said once. */
static void check_permission(struct lint *l, size_t movement) {
  const json_t *own = l->movements[movement].object;
  const char *said = lint_text(own, "permission", NULL);
  const char *floor = lint_text(own, "required_permission_mode", NULL);
  const json_t *edit = json_object_get(own, "edit");
  char path[DOC_PATH_BYTES];
  bool reads = said != NULL ? strcmp(said, "readonly") == 0 : !json_is_true(edit);
  if (said != NULL && edit != NULL && json_is_true(edit) == reads)
    lint_report(l, l->errors, lint_path(l, path, movement, "edit"),
                "edit: %s says something else than permission: %s: remove it",
                json_is_true(edit) ? "true" : "false", said);
  reads = reads && (floor == NULL || strcmp(floor, "readonly") == 0);
  if (json_object_get(own, "run") != NULL && reads)
    lint_report(l, l->errors, lint_path(l, path, movement, "run"),
                "readonly runs nothing that may write: write permission: edit, or remove run");
}

void workflow_lint(const json_t *doc, const struct workflow_marks *marks,
                   const struct lint_env *env, struct err_list *errors, struct err_list *warnings) {
  struct lint l = {.doc = doc, .marks = marks, .env = env, .errors = errors, .warnings = warnings};
  const char *provider = lint_text(doc, "provider", NULL);
  read_movements(&l);
  check_next(&l);
  check_rejects(&l);
  check_global_next(&l);
  lint_loops(&l);
  check_reachable(&l);
  check_ends(&l);
  if (provider != NULL && env->chosen.n == 0)
    (void)lint_provider(&l, "provider", provider);
  check_fallback(&l, doc, "provider", false);
  check_fallback(&l, json_object_get(doc, "judge"), "judge.provider", true);
  check_panel(&l, json_object_get(doc, "judge"), "judge.panel");
  for (size_t i = 0; i < l.count; i++) {
    char path[DOC_PATH_BYTES];
    const json_t *own = l.movements[i].object;
    check_fallback(&l, own, lint_path(&l, path, i, "provider"), false);
    check_fallback(&l, json_object_get(own, "judge"), lint_path(&l, path, i, "judge.provider"),
                   true);
    check_panel(&l, json_object_get(own, "judge"), lint_path(&l, path, i, "judge.panel"));
    check_permission(&l, i);
    check_rules(&l, i);
    check_judge(&l, i, check_worker(&l, i));
    lint_structured(&l, i);
  }
  for (size_t i = 0; marks != NULL && i < marks->notes.count; i++)
    err_list_add(warnings, &marks->notes.items[i]);
  sort_by_place(errors);
  sort_by_place(warnings);
  arena_deinit(&l.arena);
}
