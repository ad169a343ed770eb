/* Warns about what a well-formed workflow can still get wrong. */
#include "workflow/load.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/prompt.h"
#include "core/value_ref.h"
#include "extract/schema_check.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/template.h"
#include "judge/rule.h"
#include "schema/schema_lint.h"
#include "structured/reask.h"
#include "workflow/foreign_keys.h"
#include "workflow/parse.h"
#include "workflow/scope.h"
#include "workflow/source_map.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TO_COMPLETE = -1, TO_ABORT = -2, TO_NOWHERE = -3 };

struct lint_rule {
  struct rule rule; /* label empty when there is none */
  bool parsed;
  size_t behind; /* the number of a rule before it that always holds, so that it never can; or 0 */
  long next;
};

struct lint_movement {
  const json_t *object;
  const char *name;
  size_t group, child; /* for a child: its group's place and its own there; else LINT_NO_GROUP */
  size_t first_child, child_count; /* for a group: its children stand together */
  long reject;                     /* where approve.on_reject leads, as the next of a rule */
  long *errors;                    /* likewise of on_error */
  size_t error_count;
  bool is_command, reachable, ends;
  struct lint_rule *rules;
  size_t rule_count;
};

struct lint {
  const json_t *doc, *loops; /* loop_monitors */
  const struct workflow_marks *marks;
  const struct lint_env *env;
  struct err_list *errors, *warnings;
  struct arena arena;
  const char **names;                  /* the movements', then NULL */
  const char **places;                 /* the movements' and the ends', then NULL */
  struct lint_movement *movements;     /* the children behind all others */
  struct lint_movement globals;        /* global_rules, as the rules of no movement */
  size_t count, top_count, first_loop; /* the judges of loops are the last of all */
};

#define LINT_NO_GROUP ((size_t)-1)

/* Returns a member's text, `otherwise` if it has none. Lint works on the document, not on a built
 * workflow: a file whose rules lead nowhere cannot be built. The document may come from a log, so
 * nothing in it is taken for granted. */

static const char *lint_text(const json_t *object, const char *key, const char *otherwise) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : otherwise;
}

/* Reports each finding once: an inherited key would be found again for every movement. */
PRINTF_LIKE(4, 5)
static void lint_report(struct lint *l, struct err_list *list, const char *path, const char *fmt,
                        ...) {
  assert(list == l->errors || list == l->warnings);
  assert(path != NULL);
  struct err err = {0};
  char text[sizeof err.text];
  int line, column;
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  const char *file = source_map_place(l->marks, path, &line, &column);
  err_set_at(&err, ERR_FILE, file, line, column, "%s", text);
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].line == line && list->items[i].column == column &&
        strcmp(list->items[i].text, err.text) == 0)
      return;
  err_list_add(list, &err);
}

#define lint_error(l, ...)   lint_report((l), (l)->errors, __VA_ARGS__)
#define lint_warning(l, ...) lint_report((l), (l)->warnings, __VA_ARGS__)

/* Returns the path of a movement's key, "" for the movement itself. It is in the arena, like all
 * paths here. */
static const char *lint_path(struct lint *l, size_t movement, const char *key) {
  assert(movement < l->count);
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  if (movement >= l->first_loop) {
    doc_path_item(path, "loop_monitors", movement - l->first_loop);
    doc_path_member(path, path, "judge");
  } else {
    doc_path_item(path, "movements", m->group == LINT_NO_GROUP ? movement : m->group);
    if (m->group != LINT_NO_GROUP) {
      doc_path_member(path, path, "parallel");
      doc_path_item(path, path, m->child);
    }
  }
  doc_path_member(path, path, key);
  return arena_strdup(&l->arena, path);
}

/* Returns the path of `key` in the index-th item of the list at `list`. */
static const char *lint_item_path(struct lint *l, const char *list, size_t index, const char *key) {
  char path[DOC_PATH_BYTES];
  doc_path_item(path, list, index);
  doc_path_member(path, path, key);
  return arena_strdup(&l->arena, path);
}

static const char *lint_condition_path(struct lint *l, size_t movement, size_t rule) {
  return lint_item_path(l, lint_path(l, movement, "rules"), rule, "condition");
}

/* Finds a movement by its name among the first `n`; l->count if it is none of them. */
static size_t lint_find(const struct lint *l, struct str name, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (str_eq_c(name, l->names[i]))
      return i;
  return l->count;
}

static const char *lint_suggestion(struct lint *l, const char *word, const char *const *names,
                                   const char *otherwise) {
  const char *near = NULL;
  for (size_t i = 0; names[i] && near == NULL; i++)
    if (strcasecmp(word, names[i]) == 0)
      near = names[i];
  if (near == NULL)
    near = str_nearest(str_from(word), names);
  if (near == NULL)
    return otherwise;
  return arena_printf(&l->arena, "did you mean %s?", near);
}

/* --- loops: the judge of each is a movement, behind all others --- */

/* Returns the movement of that place in the cycle of a loop; l->count if there is none. */
static size_t lint_cycle(const struct lint *l, size_t loop, size_t place) {
  assert(loop >= l->first_loop);
  assert(loop < l->count);
  const json_t *cycle = json_object_get(json_array_get(l->loops, loop - l->first_loop), "cycle");
  return lint_find(l, json_view(json_array_get(cycle, place)), l->top_count);
}

static void lint_read_loops(struct lint *l) {
  l->first_loop = l->count;
  JSON_EACH(l->loops, i, loop) {
    struct lint_movement *m = &l->movements[l->count];
    const json_t *cycle = json_object_get(loop, "cycle");
    const char *first = json_string_value(json_array_get(cycle, 0)),
               *last = json_string_value(json_array_get(cycle, json_array_size(cycle) - 1));
    *m = (struct lint_movement){.object = json_object_get(loop, "judge"), .group = LINT_NO_GROUP};
    m->name = l->names[l->count++] =
        arena_printf(&l->arena, "_loop_judge_%s_%s", first ? first : "", last ? last : "");
  }
}

static void check_loop_names(struct lint *l, size_t loop, const char *key) {
  const json_t *list = json_object_get(json_array_get(l->loops, loop), key);
  const char *list_path = lint_item_path(l, "loop_monitors", loop, key);
  JSON_EACH(list, i, v) {
    const char *name = json_string_value(v) ? json_string_value(v) : "";
    const char *place = lint_item_path(l, list_path, i, "");
    if (lint_find(l, str_from(name), l->top_count) == l->count)
      lint_error(l, place, "there is no movement %s: %s", name,
                 lint_suggestion(l, name, l->places, "write the name of a movement"));
    for (size_t k = 0; k < i; k++)
      if (json_same(json_array_get(list, k), v))
        lint_error(l, place, "%s is listed twice: a loop has each movement once", name);
  }
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

static void note_ref(void *ctx, const struct str *names, size_t n) {
  (void)names;
  *(bool *)ctx = n > 0;
}

static bool always_holds(const struct lint_rule *r) {
  struct expr_error why;
  bool asks = false;
  if (!r->parsed || r->rule.kind != RULE_WHEN || r->rule.interactive_only)
    return false;
  expr_each_ref(r->rule.when, note_ref, &asks);
  return !asks && expr_eval(r->rule.when, NULL, &why) == EXPR_TRUE;
}

static void read_rule_list(struct lint *l, struct lint_movement *m, const json_t *list,
                           const json_t *by_name) {
  size_t holds = 0;
  m->rules = arena_array(&l->arena, json_array_size(list), sizeof *m->rules);
  m->rule_count = json_array_size(list);
  JSON_EACH(list, i, v) {
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

static struct lint_movement read_movement(const json_t *object) {
  return (struct lint_movement){.object = object,
                                .name = lint_text(object, "name", ""),
                                .group = LINT_NO_GROUP,
                                .is_command = json_object_get(object, "command") != NULL};
}

/* Reads the children of one group, under their full names. */
static void read_children(struct lint *l, size_t group) {
  struct lint_movement *parent = &l->movements[group];
  const json_t *list = json_object_get(parent->object, "parallel");
  parent->first_child = l->count;
  parent->child_count = json_array_size(list);
  JSON_EACH(list, i, v) {
    struct lint_movement *m = &l->movements[l->count];
    *m = read_movement(v);
    m->group = group;
    m->child = i;
    m->name = l->names[l->count++] = arena_printf(&l->arena, "%s.%s", parent->name, m->name);
  }
}

static void read_movements(struct lint *l) {
  const json_t *list = json_object_get(l->doc, "movements"), *v;
  json_auto_t *by_name = json_object();
  l->loops = json_object_get(l->doc, "loop_monitors");
  size_t i, most = json_array_size(list) + json_array_size(l->loops);
  json_array_foreach(list, i, v)
    most += json_array_size(json_object_get(v, "parallel"));
  l->movements = arena_array(&l->arena, most, sizeof *l->movements);
  l->names = arena_array(&l->arena, most + 1, sizeof *l->names);
  l->places = arena_array(&l->arena, most + 3, sizeof *l->places);
  l->count = l->top_count = json_array_size(list);
  json_array_foreach(list, i, v) {
    l->movements[i] = read_movement(v);
    l->names[i] = l->movements[i].name;
    json_object_set_new(by_name, l->names[i], json_integer((json_int_t)i));
  }
  for (i = 0; i < l->top_count; i++)
    read_children(l, i);
  lint_read_loops(l);
  l->places[l->count] = "COMPLETE";
  l->places[l->count + 1] = "ABORT";
  for (i = 0; i < l->count; i++) {
    struct lint_movement *m = &l->movements[i];
    l->places[i] = l->names[i];
    read_rule_list(l, m, json_object_get(m->object, "rules"), by_name);
    const json_t *approve = json_object_get(m->object, "approve");
    m->reject = next_of(by_name, lint_text(approve, "on_reject", "ABORT"));
    const json_t *ways = json_object_get(m->object, "on_error");
    m->error_count = json_array_size(ways);
    m->errors = arena_array(&l->arena, m->error_count, sizeof *m->errors);
    for (size_t k = 0; k < m->error_count; k++)
      m->errors[k] = next_of(by_name, lint_text(json_array_get(ways, k), "to", ""));
  }
  read_rule_list(l, &l->globals, json_object_get(l->doc, "global_rules"), by_name);
}

/* --- flow: where rules lead --- */

static void lint_report_next(struct lint *l, const char *path, const char *next) {
  if (*next != '\0')
    lint_error(l, path, "there is no movement %s: %s", next,
               lint_suggestion(l, next, l->places, "write a movement's name, COMPLETE or ABORT"));
}

/* Checks where errors lead, and that each entry can be the first that fits. */
static void check_errors(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *ways = json_object_get(m->object, "on_error");
  const char *list = lint_path(l, movement, "on_error");
  if (ways != NULL && (m->group != LINT_NO_GROUP || json_object_get(m->object, "ask") != NULL))
    lint_error(l, list,
               "on_error is for a movement that works by itself: of a child that failed, its "
               "group's rules say any(\"error\")");
  JSON_EACH(ways, i, way) {
    const char *class = lint_text(way, "class", NULL);
    if (m->errors[i] == TO_COMPLETE)
      lint_error(l, lint_item_path(l, list, i, "to"),
                 "an error leads to no COMPLETE, since it shows nothing: write a movement's name, "
                 "or ABORT");
    if (m->errors[i] == TO_NOWHERE)
      lint_report_next(l, lint_item_path(l, list, i, "to"), lint_text(way, "to", ""));
    for (size_t k = 0; k < i; k++) {
      const char *before = lint_text(json_array_get(ways, k), "class", NULL);
      if (before == NULL || (class != NULL && strcmp(before, class) == 0)) {
        lint_warning(l, lint_item_path(l, list, i, ""),
                     "on_error's entry %zu never counts, since entry %zu fits first: remove it, or "
                     "move it up",
                     i + 1, k + 1);
        break;
      }
    }
  }
}

/* Checks where rules and rejections lead. A rule without `next` was reported while the file was
 * read. */
static void check_next(struct lint *l) {
  for (size_t i = 0; i < l->count; i++) {
    const struct lint_movement *m = &l->movements[i];
    const json_t *rules = json_object_get(m->object, "rules");
    for (size_t k = 0; k < m->rule_count && m->group == LINT_NO_GROUP; k++)
      if (m->rules[k].next == TO_NOWHERE)
        lint_report_next(l, lint_item_path(l, lint_path(l, i, "rules"), k, "next"),
                         lint_text(json_array_get(rules, k), "next", ""));
    if (m->reject == TO_NOWHERE && m->group == LINT_NO_GROUP)
      lint_report_next(l, lint_path(l, i, "approve.on_reject"),
                       lint_text(json_object_get(m->object, "approve"), "on_reject", ""));
    check_errors(l, i);
  }
  for (size_t k = 0; k < l->globals.rule_count; k++)
    if (l->globals.rules[k].next == TO_NOWHERE)
      lint_report_next(
          l, lint_item_path(l, "global_rules", k, "next"),
          lint_text(json_array_get(json_object_get(l->doc, "global_rules"), k), "next", ""));
}

static size_t initial_of(const struct lint *l) {
  size_t found = lint_find(l, str_from(lint_text(l->doc, "initial_movement", "")), l->top_count);
  return found < l->count ? found : 0;
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
  for (size_t k = 0; k < m->error_count; k++)
    reach_next(l, m->errors[k], queue, tail);
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

/* Marks what can be reached, and reports nothing. */
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
  for (size_t i = l->top_count; i < l->first_loop; i++) /* children are reached with their group */
    l->movements[i].reachable = l->movements[l->movements[i].group].reachable;
}

static void check_reachable(struct lint *l) {
  const char *initial = lint_text(l->doc, "initial_movement", NULL);
  if (initial != NULL && l->count > 0 && strcmp(l->names[initial_of(l)], initial) != 0)
    lint_error(l, "initial_movement", "there is no movement %s: %s", initial,
               lint_suggestion(l, initial, l->names, "write the name of a movement"));
  lint_reach(l);
  for (size_t i = 0; i < l->top_count; i++)
    if (!l->movements[i].reachable)
      lint_warning(l, lint_path(l, i, "name"),
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
          l, endless ? l->errors : l->warnings, lint_path(l, i, "name"),
          "from the movement %s no rules lead to COMPLETE or ABORT, so only %s ends it: add a "
          "rule that leads out",
          l->names[i], endless ? "a person" : "max_movements");
}

/* --- who works and who judges --- */

/* Returns the backend of that name; NULL and an error if there is none. */
static const struct capability *lint_provider(struct lint *l, const char *path, const char *name) {
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
  lint_error(l, path, "there is no provider %s: %s", name, lint_suggestion(l, name, names, list));
  return NULL;
}

/* Holds a value that may be inherited: its text, and the path of its key. */
struct setting {
  const json_t *value; /* NULL: nowhere in the file */
  const char *text;    /* NULL: the value is no text */
  const char *path;
};

static void check_options(struct lint *l, const json_t *options, const char *path,
                          const char *provider) {
  const struct capability *c = capability_find(l->env->providers, str_from(provider));
  for (size_t i = 0; c && option_names[i]; i++)
    if (json_object_get(options, option_names[i]) != NULL && (c->options & (1u << i)) == 0) {
      char option_path[DOC_PATH_BYTES];
      doc_path_member(option_path, path, option_names[i]);
      lint_error(l, option_path, "provider %s takes no %s: remove it", c->name, option_names[i]);
    }
}

/* Returns the movement's own `section.key`, else the workflow's; section may be empty. */
static struct setting setting_of(struct lint *l, size_t movement, const char *section,
                                 const char *key) {
  const json_t *holders[] = {l->movements[movement].object, l->doc};
  for (size_t i = 0; i < 2; i++) {
    const json_t *holder = *section ? json_object_get(holders[i], section) : holders[i];
    const json_t *value = json_object_get(holder, key);
    char path[DOC_PATH_BYTES];
    if (value == NULL)
      continue;
    doc_path_member(path, i == 0 ? lint_path(l, movement, section) : section, key);
    return (struct setting){value, json_string_value(value), arena_strdup(&l->arena, path)};
  }
  return (struct setting){0};
}

/* Checks the agent's side. Returns who works on the movement, "" if the file does not say. */
static const char *check_worker(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  struct setting options = setting_of(l, movement, "", "options");
  if (m->is_command) { /* the workflow's options are for agents: only its own count */
    if (json_object_get(m->object, "options") != NULL)
      check_options(l, options.value, options.path, "command");
    return "command";
  }
  struct setting provider = setting_of(l, movement, "", "provider");
  if (l->env->chosen.n > 0)
    provider.text = arena_strndup(&l->arena, l->env->chosen.p, l->env->chosen.n);
  else if (provider.text == NULL)
    provider.text = arena_strndup(&l->arena, l->env->provider.n > 0 ? l->env->provider.p : "",
                                  l->env->provider.n);
  else if (strcmp(provider.text, "command") == 0)
    lint_error(
        l, provider.path,
        "provider command runs what a movement's command names, and movement %s has none: write "
        "command: [program, argument, ...] in it, or another provider",
        l->names[movement]);
  else
    (void)lint_provider(l, provider.path, provider.text);
  check_options(l, options.value, options.path, provider.text);
  return provider.text;
}

/* Checks the providers to fall back to. `path` is the place of the provider key beside them. */
static void check_fallback(struct lint *l, const json_t *holder, const char *path, bool judges) {
  JSON_EACH(json_object_get(holder, "fallback"), i, name) {
    const char *word = json_string_value(name);
    const struct capability *c = strcmp(word, "command") == 0 ? NULL : lint_provider(l, path, word);
    if (strcmp(word, "command") == 0)
      lint_error(
          l, path,
          "provider command runs a movement's own program: it cannot take over from another");
    else if (c != NULL && judges && !c->can_judge)
      lint_error(l, path, "provider %s cannot judge: leave it out of judge.provider", c->name);
  }
}

/* Checks each judge that votes as if it judged alone. */
static void check_panel(struct lint *l, const json_t *judge, const char *path) {
  const json_t *panel = json_object_get(judge, "panel");
  JSON_EACH((json_t *)panel, i, name) {
    const struct capability *c = lint_provider(l, path, json_string_value(name));
    if (c != NULL && !c->can_judge)
      lint_error(l, path, "provider %s cannot judge: leave it out of judge.panel", c->name);
  }
  if (json_is_array(panel) && json_int_at(judge, "agree") > (json_int_t)json_array_size(panel))
    lint_error(l, path, "agree is more than the number of judges on the panel: %zu",
               json_array_size(panel));
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

/* Warns of a prompt that shows no mark though the agent's own tag is to decide. */
static void check_mark(struct lint *l, size_t movement, const json_t *stages) {
  const struct lint_movement *m = &l->movements[movement];
  bool first = str_eq_c(json_view(json_array_get(stages, 0)), "phase1_tag");
  bool own = json_is_true(setting_of(l, movement, "judge", "own_tag").value);
  bool bare = json_is_true(json_object_get(m->object, "bare_prompt"));
  struct str text = json_view(json_object_get(m->object, "instruction"));
  struct str shown = bare ? text : l->env->execute;
  if (m->is_command || visible_labels(m) < 2 || (!first && !own) || (!bare && shown.n == 0) ||
      template_uses(shown, "mark") || template_uses(shown, "sign") || template_uses(text, "mark") ||
      template_uses(text, "sign"))
    return;
  lint_warning(l, lint_path(l, movement, "instruction"),
               "the prompt of %s shows no mark, so no tag of its agent decides: add {sign}",
               m->name);
}

static void check_judge(struct lint *l, size_t movement, const char *worker) {
  const struct lint_movement *m = &l->movements[movement];
  struct setting judge = setting_of(l, movement, "judge", "provider");
  const json_t *stages = setting_of(l, movement, "judge", "stages").value;
  bool by_tag = json_array_size(stages) == 1 &&
                str_eq_c(json_view(json_array_get(stages, 0)), "phase1_tag"); /* calls no model */
  bool needed = visible_labels(m) >= 2 && !by_tag;
  check_mark(l, movement, stages);
  const char *name = judge.text ? judge.text : worker;
  if (judge.text == NULL && json_is_array(setting_of(l, movement, "judge", "panel").value))
    return; /* checked in its own place */
  if (judge.text == NULL && m->is_command) {
    if (needed)
      lint_error(l, lint_path(l, movement, "rules"),
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
    lint_error(l, judge.text ? judge.path : lint_path(l, movement, "rules"),
               "provider %s cannot judge: name another in judge.provider", c->name);
  struct setting options = setting_of(l, movement, "judge", "options");
  check_options(l, options.value, options.path, name);
  struct setting effort = setting_of(l, movement, "judge", "effort");
  c = capability_find(l->env->providers, str_from(name));
  if (effort.text != NULL && c != NULL && (c->options & OPTION_EFFORT) == 0)
    lint_error(l, effort.path, "provider %s takes no effort: remove it", name);
}

static void lint_backends(struct lint *l) {
  const char *provider = lint_text(l->doc, "provider", NULL);
  const json_t *judge = json_object_get(l->doc, "judge");
  if (provider != NULL && l->env->chosen.n == 0)
    (void)lint_provider(l, "provider", provider);
  check_fallback(l, l->doc, "provider", false);
  check_fallback(l, judge, "judge.provider", true);
  check_panel(l, judge, "judge.panel");
}

static void lint_backends_of(struct lint *l, size_t movement) {
  const json_t *own = l->movements[movement].object, *judge = json_object_get(own, "judge");
  check_fallback(l, own, lint_path(l, movement, "provider"), false);
  check_fallback(l, judge, lint_path(l, movement, "judge.provider"), true);
  check_panel(l, judge, lint_path(l, movement, "judge.panel"));
  check_judge(l, movement, check_worker(l, movement));
}

/* --- reports and answers that are referred to --- */

struct names {
  struct lint *l;
  size_t movement;
  const char *key; /* the key of the text that names them */
};

static json_t *reports_of(const json_t *object) {
  return json_object_get(json_object_get(object, "output_contracts"), "report");
}

/* Appends the files that a movement writes; returns the new count. */
static size_t lint_add_files(const struct lint *l, size_t movement, const char **files, size_t n) {
  const json_t *object = l->movements[movement].object;
  if (lint_text(object, "report", NULL) != NULL)
    files[n++] = lint_text(object, "report", "");
  JSON_EACH(reports_of(object), k, item)
    files[n++] = lint_text(item, "name", "");
  return n;
}

/* Makes room for the files of these movements, from `first` to before `end`. */
static const char **new_files(struct lint *l, size_t first, size_t end) {
  size_t most = 1;
  for (size_t i = first; i < end; i++)
    most += 1 + json_array_size(reports_of(l->movements[i].object));
  return arena_array(&l->arena, most, sizeof(const char *));
}

/* Checks that a movement writes each file once, and no child another's: children run at once. */
static void lint_check_files(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  size_t before = 0, n, first = movement;
  if (m->group != LINT_NO_GROUP) /* its siblings stand in front of it */
    first = l->movements[m->group].first_child;
  const char **files = new_files(l, first, movement + 1);
  for (size_t i = first; i < movement; i++)
    before = lint_add_files(l, i, files, before);
  n = lint_add_files(l, movement, files, before);
  if (n > before && m->group != LINT_NO_GROUP &&
      json_object_get(l->movements[m->group].object, "for_each") != NULL)
    lint_error(l, lint_path(l, movement, reports_of(m->object) ? "output_contracts" : "report"),
               "the runs of a for_each would all write %.128s: let a movement after it write one",
               files[before]);
  for (size_t i = before; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (strcasecmp(files[i], files[k]) == 0)
        lint_error(l, lint_path(l, movement, reports_of(m->object) ? "output_contracts" : "report"),
                   "%s writes %.128s, and so does %s: capitals do not count, so rename one",
                   m->name, files[i], k < before ? "a child beside it" : "another of its reports");
}

static void check_report(void *ctx, struct str name) {
  const struct names *names = ctx;
  struct lint *l = names->l;
  size_t skip = strlen(PROMPT_REPORT);
  const char **files = new_files(l, 0, l->count);
  const char *file = arena_strndup(&l->arena, name.p + skip, name.n - skip);
  size_t n = 0;
  for (size_t i = 0; i < l->count; i++)
    n = lint_add_files(l, i, files, n);
  files[n] = NULL;
  if (str_is_one(str_from(file), files))
    return;
  lint_warning(l, lint_path(l, names->movement, names->key),
               "{report:%.80s}: no movement writes that report: %s", file,
               lint_suggestion(l, file, files, "name a file of output_contracts or report"));
}

static void check_response(void *ctx, struct str name) {
  const struct names *names = ctx;
  struct lint *l = names->l;
  size_t skip = strlen(PROMPT_RESPONSE);
  const char *word = arena_strndup(&l->arena, name.p + skip, name.n - skip);
  if (lint_find(l, str_from(word), l->count) == l->count)
    lint_error(l, lint_path(l, names->movement, names->key),
               "{response:%.80s}: there is no such movement: %s", word,
               lint_suggestion(l, word, l->names, "write {response:MOVEMENT}"));
}

static bool has_worktrees(const struct lint *l, const struct lint_movement *group) {
  for (size_t i = 0; i < group->child_count; i++)
    if (strcmp(lint_text(l->movements[group->first_child + i].object, "workspace", ""),
               "worktree") == 0)
      return true;
  return false;
}

static void check_branches(void *ctx, struct str name) {
  const struct names *names = ctx;
  struct lint *l = names->l;
  size_t skip = strlen(PROMPT_BRANCHES);
  const char *word = arena_strndup(&l->arena, name.p + skip, name.n - skip);
  const json_t *argv = json_object_get(l->movements[names->movement].object, "command");
  const char *verb = json_string_value(json_array_get(argv, 1));
  bool made = verb != NULL && strcmp(verb, "integrate") == 0; /* see integrate.h */
  const char *place = lint_path(l, names->movement, made ? "integrate" : names->key);
  size_t i = lint_find(l, str_from(word), l->count);
  if (i == l->count)
    lint_error(l, place, "there is no movement %.80s whose branches these could be: %s", word,
               lint_suggestion(l, word, l->names, "name a movement with parallel"));
  else if (!has_worktrees(l, &l->movements[i]))
    lint_error(l, place,
               "%.80s has no branches: write workspace: worktree into its child of parallel", word);
}

static void lint_check_names(struct lint *l, size_t movement, const char *key, const char *text) {
  struct names names = {l, movement, key};
  template_names(str_from(text), PROMPT_REPORT, check_report, &names);
  template_names(str_from(text), PROMPT_RESPONSE, check_response, &names);
  template_names(str_from(text), PROMPT_BRANCHES, check_branches, &names);
}

static void lint_reports(struct lint *l, size_t movement) {
  const json_t *object = l->movements[movement].object;
  lint_check_names(l, movement, "instruction", lint_text(object, "instruction", ""));
  lint_check_files(l, movement);
  JSON_EACH(reports_of(object), i, item) {
    lint_check_names(l, movement, "output_contracts", lint_text(item, "format", ""));
    lint_check_names(l, movement, "output_contracts", lint_text(item, "order", ""));
  }
}

/* --- structured output, and references to it --- */

static const json_t *structured_of(const struct lint *l, size_t movement) {
  return json_object_get(l->movements[movement].object, "structured_output");
}

/* Returns a piece of the file for a message, NUL-terminated. */
static const char *shown(struct lint *l, struct str s) {
  size_t n = s.n > LIMIT_NAME_BYTES ? LIMIT_NAME_BYTES : s.n;
  return arena_strndup(&l->arena, s.p, utf8_floor(s.p, n));
}

/* --- members of values --- */

/* Returns a schema's properties if they are all there is to know about an object: nothing elsewhere
 * adds to them. */
static const json_t *plain_properties(const json_t *schema) {
  static const char others[] =
      "allOf anyOf oneOf if $ref $dynamicRef $recursiveRef patternProperties dependentSchemas";
  JSON_MEMBERS((json_t *)schema, key, value)
    if (str_among(str_from(key), others))
      return NULL;
  return json_object_get(schema, "properties");
}

static void unknown_member(struct lint *l, const char *place, size_t movement, struct str name,
                           const json_t *properties, bool closed) {
  const char *names[LIMIT_RULE_COUNT + 1];
  size_t n = 0;
  JSON_MEMBERS(properties, key, value)
    if (n < LIMIT_RULE_COUNT)
      names[n++] = key;
  names[n] = NULL;
  buf_auto_t all = {.max = 200};
  for (size_t i = 0; i < n; i++)
    buf_printf(&all, "%s%s", i ? ", " : "it has ", names[i]);
  const char *word = shown(l, name);
  lint_report(
      l, closed ? l->errors : l->warnings, place, "the schema of %s has no member %s: %s",
      l->names[movement], word,
      lint_suggestion(l, word, names,
                      arena_strndup(&l->arena, buf_c(&all), utf8_floor(buf_c(&all), all.n))));
}

/* Checks a reference to a member of a movement's value, as it stands at `place`: follows names as
 * far as the schema knows them. Below an array a name means a member of its items. Returns the
 * schema of that member; NULL: not known. */
static const json_t *lint_member(struct lint *l, const char *place, size_t movement,
                                 const struct str *names, size_t count) {
  const json_t *so = structured_of(l, movement), *doc = json_object_get(so, "schema");
  const json_t *schema = extract_schema_root(doc);
  if (so == NULL || (count > 0 && str_eq_c(names[0], "sentinel")))
    return NULL;
  for (size_t i = 0; i < count; i++) {
    if (str_eq_c(names[i], "length"))
      return NULL;
    long index;
    bool is_index = str_to_long(names[i], &index);
    while (json_is_object(json_object_get(schema, "items")))
      schema = json_object_get(schema, "items");
    if (is_index)
      continue;
    const json_t *properties = plain_properties(schema);
    if (properties == NULL)
      return NULL;
    const json_t *member = json_object_getn(properties, names[i].p, names[i].n);
    if (member == NULL) {
      unknown_member(l, place, movement, names[i], properties,
                     json_is_false(json_object_get(schema, "additionalProperties")));
      return NULL;
    }
    schema = member;
  }
  return schema;
}

/* --- {structured:...} --- */

/* Reports what is wrong with a reference MOVEMENT.FIELD to a value; it stands between two words. */
static void lint_reference(struct lint *l, const char *place, struct str path, const char *before,
                           const char *after) {
  enum { PARTS_MAX = 16 };
  struct str parts[PARTS_MAX], rest;
  struct prompt_ref ref;
  bool is_index;
  size_t count = 0;
  if (!prompt_ref_split(path, l->names, &ref)) {
    size_t n = strcspn(shown(l, path), ".[");
    const char *word = shown(l, (struct str){path.p, n});
    const char *form = arena_printf(&l->arena, "write %sMOVEMENT.FIELD%s", before, after);
    lint_error(l, place, "%s%s%s: there is no movement %s: %s", before, shown(l, path), after, word,
               lint_suggestion(l, word, l->names, form));
    return;
  }
  size_t target = lint_find(l, ref.movement, l->count);
  rest = ref.rest;
  while (rest.n > 0 && count < PARTS_MAX) {
    if (!prompt_ref_next(&rest, &parts[count++], &is_index)) {
      lint_error(l, place, "%s%s%s: write members as .name and items as [0]", before,
                 shown(l, path), after);
      return;
    }
  }
  if (structured_of(l, target) != NULL)
    lint_member(l, place, target, parts, count);
  else if (!l->movements[target].is_command &&
           json_object_get(l->movements[target].object, "ask") == NULL)
    lint_warning(l, place, "%s%s%s: movement %s has no structured_output, so there may be no value",
                 before, shown(l, path), after, l->names[target]);
}

static void lint_structured_check_name(void *ctx, struct str name) {
  const struct names *names = ctx;
  const size_t n = strlen(PROMPT_STRUCTURED);
  lint_reference(names->l, lint_path(names->l, names->movement, names->key),
                 (struct str){name.p + n, name.n - n}, "{" PROMPT_STRUCTURED, "}");
}

/* --- structured_output --- */

static void check_reask(struct lint *l, size_t movement, const json_t *so) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *reasks = json_object_get(so, "max_reasks");
  const char *provider = lint_text(json_object_get(so, "reask"), "provider", NULL);
  if (json_integer_value(reasks) > REASK_WARN_COUNT)
    lint_warning(l, lint_path(l, movement, "structured_output.max_reasks"),
                 "each correction is another call, and what %d of them did not fix, more of them "
                 "rarely do: improve the prompt or the schema",
                 REASK_WARN_COUNT);
  if (m->is_command && provider == NULL && json_integer_value(reasks) > 0)
    lint_error(l, lint_path(l, movement, "structured_output.max_reasks"),
               "movement %s runs a command, which cannot correct its output: set reask.provider, "
               "or max_reasks: 0",
               m->name);
  if (provider == NULL)
    return;
  const char *path = lint_path(l, movement, "structured_output.reask.provider");
  const struct capability *cap = lint_provider(l, path, provider);
  if (cap != NULL && !cap->can_judge)
    lint_error(l, path, "provider %s cannot correct an answer: name another", provider);
}

static void check_tag_stage(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *stages = json_object_get(json_object_get(m->object, "judge"), "stages");
  JSON_EACH(stages, i, stage) {
    const char *name = json_string_value(stage);
    if (name != NULL && strcmp(name, "phase1_tag") == 0)
      lint_warning(
          l, lint_path(l, movement, "judge.stages"),
          "phase1_tag looks for a tag in the agent's answer, which is JSON alone here: use "
          "when(structured.%s...) rules, or another stage",
          m->name);
  }
}

static bool is_of_item(struct str name) {
  return str_eq_c(name, "item") || str_eq_c(name, "index") || str_starts(name, "item.") ||
         str_starts(name, "item[");
}

/* Reports {input:NAME} of a workflow that declares no such param. */
static void check_input(void *ctx, struct str name) {
  const struct names *names = ctx;
  struct lint *l = names->l;
  struct str own = {name.p + strlen(PROMPT_INPUT), name.n - strlen(PROMPT_INPUT)};
  if (scope_is_param(own) &&
      json_object_getn(json_object_get(l->doc, "inputs"), own.p, own.n) == NULL)
    lint_warning(
        l, lint_path(l, names->movement, names->key),
        "{%s} names no param and stays as it is: declare it below params:", shown(l, name));
}

/* Reports a typo such as {previous_respons}, which would reach the prompt as it is. */
static void check_variable(void *ctx, struct str name) {
  const struct names *names = ctx;
  struct lint *l = names->l;
  const char *foreign = foreign_keys_variable(name);
  const char *place = lint_path(l, names->movement, names->key);
  size_t group = l->movements[names->movement].group;
  bool has_items =
      group != LINT_NO_GROUP && json_object_get(l->movements[group].object, "for_each") != NULL;
  if (is_of_item(name) && !has_items)
    lint_warning(l, place, "{%s} stays as it is: only the child of a for_each has items",
                 shown(l, name));
  if (foreign != NULL)
    lint_warning(l, place, "{%s} is not filled in and stays as it is: %s", shown(l, name), foreign);
  if (is_of_item(name) || str_is_one(name, prompt_variable_names))
    return;
  const char *near = str_nearest(name, prompt_variable_names);
  if (near != NULL)
    lint_warning(l, place, "{%s} is no variable and stays as it is: did you mean {%s}?",
                 shown(l, name), near);
}

static void lint_structured(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *so = structured_of(l, movement);
  const char *instruction = lint_text(m->object, "instruction", "");
  struct names names = {l, movement, "instruction"};
  template_names(str_from(instruction), PROMPT_STRUCTURED, lint_structured_check_name, &names);
  template_names(str_from(instruction), PROMPT_INPUT, check_input, &names);
  template_names(str_from(instruction), "", check_variable, &names);
  lint_reports(l, movement);
  if (so == NULL)
    return;
  /* A schema that is sound but asks for trouble when a model has to fill it is a warning. */
  struct schema_errors found = {0};
  const char *path = lint_path(l, movement, "structured_output.schema");
  schema_lint(json_object_get(so, "schema"), json_object_get(so, "invariants") != NULL, &found);
  for (size_t i = 0; i < found.count; i++)
    lint_warning(l, path, "%s: %s", found.items[i].path, found.items[i].message);
  schema_errors_deinit(&found);
  check_reask(l, movement, so);
  /* The judge is asked about invariants. */
  const json_t *invariants = json_object_get(so, "invariants");
  bool asks = false;
  for (size_t i = 0; i < json_array_size(invariants); i++)
    asks |= json_object_get(json_array_get(invariants, i), "ai") != NULL;
  if (m->is_command && asks && setting_of(l, movement, "judge", "provider").value == NULL)
    lint_error(l, lint_path(l, movement, "structured_output.invariants"),
               "movement %s runs a command, which cannot answer a question: set judge.provider",
               m->name);
  check_tag_stage(l, movement);
}

/* --- groups: children, and aggregates over them --- */

/* Returns all labels that children of the group can get, NULL-ended. */
static const char **labels_of(struct lint *l, const struct lint_movement *group) {
  size_t n = 2, most = 3;
  for (size_t i = 0; i < group->child_count; i++)
    most += l->movements[group->first_child + i].rule_count;
  const char **labels = arena_array(&l->arena, most, sizeof *labels);
  labels[0] = ALL_ANY_ERROR;
  labels[1] = ALL_ANY_NONE;
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
  if (str_is_one(label, labels))
    return;
  lint_error(l, place, "no child of %s has a rule \"%.80s\": %s", group->name, name,
             lint_suggestion(l, name, labels, "write a label of the children's rules"));
}

/* Checks votes.LABEL or parts in a condition of a movement, as it stands at `place`. */
static void lint_votes(struct lint *l, const char *place, size_t movement, struct str root,
                       struct str label) {
  const struct lint_movement *group = &l->movements[movement];
  if (group->child_count == 0)
    lint_error(l, place,
               "%.5s is about the children of a movement, and this one has none: give it parallel:",
               root.p);
  else if (label.n > 0 && str_eq_c(root, "votes"))
    check_label(l, place, group, label);
}

static void check_aggregates(struct lint *l, size_t movement) {
  const struct lint_movement *group = &l->movements[movement];
  for (size_t i = 0; i < group->rule_count; i++) {
    const struct all_any *aggregate = group->rules[i].rule.aggregate;
    if (!group->rules[i].parsed || aggregate == NULL)
      continue;
    const char *place = lint_condition_path(l, movement, i);
    if (group->child_count == 0) {
      lint_error(l, place,
                 "all(...) and any(...) are about the children of a movement, and this one has "
                 "none: write a label or when(...)");
      continue;
    }
    for (size_t k = 0; k < aggregate->count; k++)
      check_label(l, place, group, aggregate->labels[k]);
    bool has_items = json_object_get(group->object, "for_each") != NULL;
    if (aggregate->all && aggregate->count > 1 && !has_items &&
        aggregate->count != group->child_count)
      lint_warning(l, place,
                   "all(...) names %zu labels for %zu children, so it is never true: write one "
                   "label for all, or one for each",
                   aggregate->count, group->child_count);
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

/* Checks that no two children edit one tree at once: they would overwrite each other's work. */
static void check_editors(struct lint *l, size_t movement) {
  const struct lint_movement *group = &l->movements[movement], *first = NULL;
  const json_t *concurrency = json_object_get(group->object, "concurrency");
  if (json_integer_value(concurrency) == 1)
    return;
  if (json_object_get(group->object, "for_each") != NULL && group->child_count == 1) {
    const struct lint_movement *child = &l->movements[group->first_child];
    const char *key = editing_key(child->object);
    if (key != NULL)
      lint_error(l, lint_path(l, group->first_child, key),
                 "%s may change the same files for several items at once: write workspace: "
                 "worktree into it, or concurrency: 1",
                 child->name);
    return;
  }
  for (size_t i = 0; i < group->child_count; i++) {
    const struct lint_movement *m = &l->movements[group->first_child + i];
    const char *key = editing_key(m->object);
    if (key == NULL)
      continue;
    if (first != NULL) {
      lint_error(l, lint_path(l, group->first_child + i, key),
                 "%s and %s may change the same files at once: let one of them edit, give them "
                 "workspace: worktree, or write concurrency: 1",
                 first->name, m->name);
      return;
    }
    first = m;
  }
}

/* --- rules of one movement --- */

enum { REF_NAMES_MAX = 32 }; /* names in one reference; any beyond these are ignored */

struct refs {
  struct lint *l;
  size_t movement;
  const struct rule *rule;
  const char *place;
};

/* Checks a reference to tests: tests.passed is the movement's own, checks.NAME.exit any movement's
 * that has a command. */
static void check_tests_ref(struct lint *l, size_t movement, const char *place,
                            const struct str *path, size_t n) {
  bool own = str_eq_c(path[0], "tests");
  bool counts = own || (n > 2 && (str_eq_c(path[2], "passed") || str_eq_c(path[2], "failed") ||
                                  str_eq_c(path[2], "skipped")));
  size_t i = own ? movement : lint_find(l, path[1], l->count);
  bool runs = i < l->count && l->movements[i].is_command;
  if (!runs && own)
    lint_error(
        l, place,
        "tests come from a command, and this movement runs none: give it command: and tests:");
  else if (!runs)
    lint_error(l, place,
               "no movement %.*s runs a command, so checks knows nothing about it: name one that "
               "has command:",
               (int)(path[1].n < LIMIT_NAME_BYTES ? path[1].n : LIMIT_NAME_BYTES), path[1].p);
  else if (counts && json_object_get(l->movements[i].object, "tests") == NULL)
    lint_error(l, place,
               "the tests of \"%s\" are not counted: give it tests:, such as tests: pytest",
               l->names[i]);
}

static void check_ref(void *ctx, const struct str *names, size_t n) {
  struct refs *r = ctx;
  struct str path[REF_NAMES_MAX] = {{"", 0}, {"", 0}};
  struct lint *l = r->l;
  const char *place = r->place;
  for (size_t i = 0; i < n && i < ARRAY_LEN(path); i++)
    path[i] = (struct str){names[i].p, names[i].n};
  if (str_eq_c(path[0], "exit") && !l->movements[r->movement].is_command)
    lint_error(
        l, place,
        "exit is a command's exit status, and this movement runs none: give it command:, or use "
        "a label");
  if (str_eq_c(path[0], "tests") || str_eq_c(path[0], "checks"))
    check_tests_ref(l, r->movement, place, path, n);
  if (r->rule->aggregate == NULL && (str_eq_c(path[0], "votes") || str_eq_c(path[0], "parts")))
    lint_votes(l, place, r->movement, path[0], n > 1 ? path[1] : STR(""));
  if (!str_eq_c(path[0], "structured") || n < 2)
    return;
  size_t movement = lint_find(l, path[1], l->count);
  if (movement < l->count) {
    lint_member(l, place, movement, path + 2, (n < ARRAY_LEN(path) ? n : ARRAY_LEN(path)) - 2);
    return;
  }
  const char *name = shown(l, path[1]);
  lint_error(l, place, "there is no movement %s, so structured.%s has no value: %s", name, name,
             lint_suggestion(l, name, l->names, "write structured.MOVEMENT.FIELD"));
}

/* Reports what stands for a condition and is known to be neither true nor false. */
static void check_condition(void *ctx, const struct str *path, size_t n) {
  const struct refs *r = ctx;
  struct lint *l = r->l;
  bool list = (str_eq_c(path[0], "files") || str_eq_c(path[0], "parts")) &&
              !str_eq_c(path[n - 1], "length");
  const char *type = list ? "array" : "number";
  buf_auto_t name = {.max = LIMIT_NAME_BYTES};
  if (str_eq_c(path[0], "structured") || str_eq_c(path[n - 1], "stale"))
    type = NULL;
  size_t i = str_eq_c(path[0], "structured") ? lint_find(l, path[1], l->count) : l->count;
  if (i < l->count)
    type = lint_text(lint_member(l, r->place, i, path + 2, n - 2), "type", NULL);
  if (type == NULL || strcmp(type, "boolean") == 0)
    return;
  for (size_t k = 0; k < n; k++)
    buf_printf(&name, "%s" STR_FMT, k > 0 ? "." : "", STR_ARG(path[k]));
  const char *what = "a list or an object", *how = ".length > 0";
  if (strcmp(type, "number") == 0 || strcmp(type, "integer") == 0)
    what = "a number", how = " > 0";
  else if (strcmp(type, "string") == 0)
    what = "a text", how = " == \"...\"";
  lint_error(l, r->place, "%s is %s, neither true nor false: compare it, as in when(%s%s)",
             buf_c(&name), what, buf_c(&name), how);
}

static void check_shadowed(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  for (size_t i = 0; i < m->rule_count; i++) {
    size_t behind = m->rules[i].behind;
    if (behind > 0)
      lint_warning(
          l, lint_condition_path(l, movement, i),
          "rule %zu can never win: rule %zu always holds and comes before it; put that one "
          "last or remove one",
          i + 1, behind);
    for (size_t k = 0; k < i && behind == 0; k++) {
      const struct rule *first = &m->rules[k].rule, *second = &m->rules[i].rule;
      if (!m->rules[k].parsed || !m->rules[i].parsed || first->kind != RULE_LABEL ||
          !str_eq(first->label, second->label) ||
          (first->interactive_only && !second->interactive_only))
        continue;
      lint_warning(
          l, lint_condition_path(l, movement, i),
          "rule %zu can never win: rule %zu takes the same label without a when(); put the "
          "guarded rule first or remove one",
          i + 1, k + 1);
      break;
    }
  }
}

/* Reports a comparison without when(...), which is a label. A model would be asked about it; if it
 * stands alone, nobody would be asked and it would always hold. */
static void check_bare_comparison(struct lint *l, size_t movement, size_t rule) {
  struct str text = l->movements[movement].rules[rule].rule.label;
  struct expr_error why;
  bool compares = false;
  if (str_starts(text, "when "))
    text = str_trim((struct str){text.p + 5, text.n - 5});
  for (size_t i = 0; i < text.n && !compares; i++)
    compares = text.p[i] == '=' || text.p[i] == '<' || text.p[i] == '>';
  if (compares && expr_parse(&l->arena, text.p, text.n, EXPR_WHEN, &why) != NULL)
    lint_error(l, lint_condition_path(l, movement, rule),
               "without when(...) this is a label, for a model to judge: write when(" STR_FMT ")",
               STR_ARG(text));
}

static void lint_rules(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  size_t selectable = 0;
  for (size_t k = 0; k < m->rule_count; k++) {
    struct refs refs = {l, movement, &m->rules[k].rule, lint_condition_path(l, movement, k)};
    selectable += !m->rules[k].rule.interactive_only;
    if (m->rules[k].parsed && m->rules[k].rule.label.n > 0)
      check_bare_comparison(l, movement, k);
    struct str label = m->rules[k].parsed ? m->rules[k].rule.label : STR("");
    if (m->group != LINT_NO_GROUP &&
        (str_eq_c(label, ALL_ANY_ERROR) || str_eq_c(label, ALL_ANY_NONE)))
      lint_error(l, refs.place,
                 "error and none stand for children without a verdict: write another label");
    if (m->rules[k].parsed && m->rules[k].rule.when) {
      expr_each_ref(m->rules[k].rule.when, check_ref, &refs);
      expr_each_condition(m->rules[k].rule.when, check_condition, &refs);
    }
  }
  const json_t *items = json_object_get(m->object, "for_each");
  if (json_is_string(items))
    lint_reference(l, lint_path(l, movement, "for_each"), json_view(items), "for_each: ", "");
  check_aggregates(l, movement);
  check_editors(l, movement);
  if (selectable == 0 && m->rule_count > 0)
    lint_error(l, lint_path(l, movement, "rules"),
               "every rule is interactive_only, so none can be selected: add a rule without it");
  check_shadowed(l, movement);
}

/* --- the whole --- */

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
  bool reads = said != NULL ? strcmp(said, "readonly") == 0 : !json_is_true(edit);
  if (said != NULL && edit != NULL && json_is_true(edit) == reads)
    lint_error(l, lint_path(l, movement, "edit"), "edit: %s contradicts permission: %s: remove it",
               json_is_true(edit) ? "true" : "false", said);
  reads = reads && (floor == NULL || strcmp(floor, "readonly") == 0);
  if (json_object_get(own, "run") != NULL && reads)
    lint_error(l, lint_path(l, movement, "run"),
               "readonly runs nothing that may write: write permission: edit, or remove run");
}

void workflow_lint(const json_t *doc, const struct workflow_marks *marks,
                   const struct lint_env *env, struct err_list *errors, struct err_list *warnings) {
  struct lint l = {.doc = doc, .marks = marks, .env = env, .errors = errors, .warnings = warnings};
  read_movements(&l);
  check_next(&l);
  for (size_t i = 0; i < json_array_size(l.loops); i++) {
    check_loop_names(&l, i, "cycle");
    check_loop_names(&l, i, "ignore");
  }
  check_reachable(&l);
  check_ends(&l);
  lint_backends(&l);
  for (size_t i = 0; i < l.count; i++) {
    check_permission(&l, i);
    lint_rules(&l, i);
    lint_backends_of(&l, i);
    lint_structured(&l, i);
  }
  for (size_t k = 0; k < l.globals.rule_count; k++) {
    const struct rule *rule = &l.globals.rules[k].rule;
    struct refs refs = {&l, 0, rule, lint_item_path(&l, "global_rules", k, "condition")};
    if (l.globals.rules[k].parsed && rule->when != NULL)
      expr_each_condition(rule->when, check_condition, &refs);
  }
  for (size_t i = 0; marks != NULL && i < marks->notes.count; i++)
    err_list_add(warnings, &marks->notes.items[i]);
  sort_by_place(errors);
  sort_by_place(warnings);
  arena_deinit(&l.arena);
}
