/* Loads a workflow: file, facets, schemas, document, lint, in this order. */
#include "workflow/load.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "workflow/expand.h"
#include "workflow/parse.h"
#include "workflow/source_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- gates, and movements that integrate --- */

enum { GATE_RUNS_DEFAULT = 10 };

static json_t *gate_rule(const char *condition, struct str next) {
  return json_pack("{ss so}", "condition", condition, "next", json_text(next));
}

/* Names a gate: "build.gate2", and "build.gate2 > review" for a second place that the rules lead
 * to. */
static void gate_name(struct str movement, const json_t *gate, size_t number, struct str target,
                      bool first_target, struct buf *out) {
  struct str own = json_view_at(gate, "name");
  buf_set(out, movement);
  if (own.n > 0)
    buf_printf(out, "." STR_FMT, STR_ARG(own));
  else
    buf_printf(out, ".gate%zu", number + 1);
  if (!first_target)
    buf_printf(out, " > " STR_FMT, STR_ARG(target));
}

static json_t *gate_as_movement(const json_t *gate, const struct buf *name, struct str next,
                                const json_t *movement, json_int_t runs) {
  static const char *const kept[] = {"command",  "timeout",     "cwd",     "tests",
                                     "evidence", "check_files", "together"};
  buf_auto_t again = {0};
  json_t *m = json_object(), *rules = json_array();
  json_object_set_new(m, "name", json_text(buf_view(name)));
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    if (json_object_get(gate, kept[i]) != NULL)
      json_object_set(m, kept[i], json_object_get(gate, kept[i]));
  json_object_set_new(m, "gate", json_true());
  json_array_append_new(rules, gate_rule("when(exit == 0)", next));
  buf_printf(&again, "when(movement_iteration < %" JSON_INTEGER_FORMAT ")", runs);
  json_array_append_new(rules, gate_rule(buf_c(&again), json_view_at(movement, "name")));
  json_object_set_new(m, "rules", rules);
  json_object_set(m, "on_error", json_object_get(movement, "on_error"));
  return m;
}

static bool is_place(const json_t *movements, struct str name) {
  if (str_eq_c(name, "COMPLETE"))
    return true;
  for (size_t i = 0; i < json_array_size(movements); i++)
    if (str_eq(json_view_at(json_array_get(movements, i), "name"), name))
      return true;
  return false; /* this is reported as an error of its own */
}

/* Puts the chain before one place, and the name of its first movement into `first`. */
static void put_chain(json_t *made, const json_t *movement, const json_t *gates, struct str target,
                      bool first_target, struct buf *first) {
  struct str own = json_view_at(movement, "name");
  const json_t *bound = json_object_get(movement, "gate_runs");
  json_int_t runs = bound ? json_integer_value(bound) : GATE_RUNS_DEFAULT;
  buf_auto_t name = {0}, next = {0};
  buf_str(&next, target);
  for (size_t i = json_array_size(gates); i-- > 0;) {
    gate_name(own, json_array_get(gates, i), i, target, first_target, &name);
    json_array_append_new(
        made, gate_as_movement(json_array_get(gates, i), &name, buf_view(&next), movement, runs));
    buf_set(&next, buf_view(&name));
  }
  buf_set(first, buf_view(&next));
}

static void expand_one(json_t *movement, const json_t *movements, json_t *made) {
  json_auto_t *gates = json_incref(json_object_get(movement, "gates"));
  const json_t *rules = json_object_get(movement, "rules");
  buf_auto_t entries = {0};
  json_t *places = json_object(); /* a place -> the gate before it */
  JSON_EACH((json_t *)rules, i, rule) {
    struct str next = json_view_at(rule, "next");
    if (!is_place(movements, next) || str_eq(next, json_view_at(movement, "name")))
      continue;
    if (json_object_getn(places, next.p, next.n) == NULL) {
      put_chain(made, movement, gates, next, json_object_size(places) == 0, &entries);
      json_object_setn_new(places, next.p, next.n, json_text(buf_view(&entries)));
    }
    json_t *entry = json_incref(json_object_getn(places, next.p, next.n));
    json_object_set_new(rule, "next", entry);
  }
  json_object_del(movement, "gates");
  json_object_del(movement, "gate_runs");
  json_decref(places);
}

/* Makes `gates:` of movements into command movements behind them. Before each place where the rules
 * of a movement lead (except ABORT and itself) comes a chain of movements NAME.GATE. Exit 0 leads
 * on; any other status leads back to the movement, which gets the gate's output as the previous
 * response. After `gate_runs` runs no rule is left, and the session waits for a person. The
 * resolved document has no `gates` left: core and log see only movements. The document may have
 * errors; anything that is not a gate is left alone. */
static void gates_expand(json_t *doc) {
  assert(doc == NULL || json_is_object(doc));
  json_t *movements = json_object_get(doc, "movements"), *made = json_array();
  JSON_EACH(movements, i, movement)
    if (json_array_size(json_object_get(movement, "gates")) > 0 &&
        json_array_size(made) < LIMIT_MOVEMENT_COUNT)
      expand_one(movement, movements, made);
  if (json_array_size(made) > 0)
    json_array_extend(movements, made);
  json_decref(made);
}

/* Makes `integrate: GROUP` of movements into a command: it runs `segue integrate`, which gets the
 * branches of the group's last run on standard input. The document may have errors. */
static void integrate_expand(json_t *doc) {
  assert(doc == NULL || json_is_object(doc));
  JSON_EACH(json_object_get(doc, "movements"), i, movement) {
    const json_t *integrate = json_object_get(movement, "integrate");
    const json_t *group = json_object_get(integrate, "group");
    const json_t *check = json_object_get(integrate, "check");
    struct buf branches = {0}, quoted = {0};
    if (!json_is_string(group))
      continue;
    buf_printf(&branches, "{" PROMPT_BRANCHES STR_FMT "}", STR_ARG(json_view(group)));
    for (size_t k = 0; k < json_array_size(check); k++) {
      buf_puts(&quoted, k > 0 ? " " : "");
      buf_quoted(&quoted, json_view(json_array_get(check, k)));
    }
    json_t *command = json_pack("[ss]", "segue", "integrate");
    if (check != NULL) {
      json_array_append_new(command, json_string("--check"));
      json_array_append_new(command, json_text(buf_view(&quoted)));
    }
    json_object_set_new(movement, "command", command);
    buf_deinit(&quoted);
    json_object_set_new(movement, "instruction", json_text(buf_view(&branches)));
    json_object_set_new(movement, "edit", json_true());
    json_object_del(movement, "integrate");
    buf_deinit(&branches);
  }
}

/* --- loading --- */

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

void workflow_marks_free(struct workflow_marks *marks) {
  if (marks == NULL)
    return;
  free(marks->file);
  err_list_deinit(&marks->notes);
  arena_deinit(&marks->arena);
  free(marks);
}

static bool is_foreign_key(const struct key_set *set, struct str name) {
  const struct key *k = key_find(set, name);
  return k != NULL && (k->type == KEY_NOTED || !str_eq_c(name, k->name));
}

/* Returns whether the file says something that only takt's files do. */
static bool is_foreign(const char *file, const struct yaml_node *root) {
  const struct yaml_node *movements =
      parse_member(root, key_find(&workflow_keys, STR("movements")));
  bool found = strstr(file, ".takt/") != NULL;
  for (size_t i = 0; root->kind == YAML_MAP && i < root->count && !found; i++)
    found = is_foreign_key(&workflow_keys, root->pairs[i].key->text);
  for (size_t i = 0; movements != NULL && movements->kind == YAML_LIST && i < movements->count; i++)
    for (size_t k = 0; movements->items[i]->kind == YAML_MAP && k < movements->items[i]->count; k++)
      found = found || is_foreign_key(&movement_keys, movements->items[i]->pairs[k].key->text);
  return found;
}

/* Sets the further folders of facets, in the file's language. */
static void more_facets(struct parse *p, const struct facets_more *given,
                        const struct yaml_node *root) {
  const struct yaml_node *language = parse_member(root, key_find(&workflow_keys, STR("language")));
  bool ja = language != NULL && str_eq_c(language->text, "ja");
  size_t n = 0;
  while (given != NULL && given[n].folder != NULL)
    n++;
  struct facets_more *more = arena_array(p->arena, n + 1, sizeof *more);
  for (size_t i = 0; i < n; i++) {
    more[i] = given[i];
    if (strcmp(given[i].from, "takt") == 0)
      more[i].folder = arena_printf(p->arena, "%s/%s/facets", given[i].folder, ja ? "ja" : "en");
    else if (strcmp(given[i].from, "segue") == 0)
      more[i].folder = arena_printf(p->arena, "%s/%s", given[i].folder, ja ? "ja" : "en");
  }
  more[n] = (struct facets_more){0};
  p->facets.more = more;
  p->facets.foreign = is_foreign(p->file, root);
}

static json_t *load_text(const struct workflow_source *source, struct str text,
                         struct err_list *errors, struct workflow_marks *marks) {
  struct arena *arena = &marks->arena;
  marks->root = yaml_parse(arena, source->path, text, LIMIT_WORKFLOW_BYTES, errors);
  if (marks->root == NULL)
    return NULL;
  struct facet_memo memo = {0};
  struct parse parse = {.arena = arena,
                        .file = marks->file, /* it lives as long as the tree */
                        .named_by_user = source->named_by_user,
                        .facets = {.given = source->facets,
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
  if (source->facets == NULL)
    facets_beside(&parse.facets, arena, source->path);
  more_facets(&parse, source->more_facets, marks->root);
  marks->root = expand_workflow(&parse, marks->root, &inputs);
  marks->root = expand_replace(&parse, marks->root, source->replace, WORKFLOW_REPLACED);
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
  const json_t *movements = json_object_get(doc, "movements");
  JSON_EACH(movements, i, movement)
    if (!json_is_string(json_object_get(movement, "name")))
      return false;
  return json_array_size(movements) > 0;
}

json_t *workflow_load_marked(const struct workflow_source *source, struct err_list *errors,
                             struct workflow_marks **marks) {
  struct buf file = {0};
  struct err err;
  size_t before = errors->count + errors->dropped;
  json_t *doc = NULL;
  *marks = xcalloc(1, sizeof **marks);
  (*marks)->file = xstrdup(source->path);
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
  buf_auto_t file = {0};
  struct err err;
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list unwanted = {0};
  json_t *params = NULL;
  if (file_read(path, LIMIT_WORKFLOW_BYTES, &file, &err)) {
    struct parse parse = {.arena = &arena, .file = path, .errors = &unwanted};
    const struct yaml_node *root =
        yaml_parse(&arena, path, buf_view(&file), LIMIT_WORKFLOW_BYTES, &unwanted);
    params = root != NULL && root->kind == YAML_MAP ? expand_params(&parse, root) : NULL;
  }
  return params ? params : json_array();
}
