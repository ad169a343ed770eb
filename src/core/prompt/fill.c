/* Fills the variables of an instruction. */
#include "core/prompt/internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/kept.h"
#include "core/ref.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <stdlib.h>
#include <string.h>

const char *const prompt_variable_names[] = {"task",
                                             "iteration",
                                             "max_movements",
                                             "max_steps",
                                             "movement_iteration",
                                             "step_iteration",
                                             "previous_response",
                                             "user_inputs",
                                             "item",
                                             "index",
                                             "report_dir",
                                             "cycle",
                                             "cycle_count",
                                             NULL};

/* Holds the variables of an instruction: first the fixed ones, then one for each
 * {structured:...}. */
struct variables {
  struct template_var *items; /* ends with a NULL name */
  size_t count;
  struct arena arena;
  const struct prompt_view *view;
};

static void add_variable(struct variables *v, struct str name, struct str value) {
  if (v->count % 16 == 0)
    v->items = xrealloc(v->items, (v->count + 17) * sizeof *v->items);
  v->items[v->count++] = (struct template_var){name, value};
  v->items[v->count] = (struct template_var){{NULL, 0}, {NULL, 0}};
}

/* Returns a text as it is, null or a missing value as nothing, and any other value as compact
 * JSON. */
static struct str value_text(struct arena *arena, const json_t *value) {
  struct buf text = {0};
  if (value == NULL || json_is_null(value))
    return STR("");
  if (json_is_string(value))
    return (struct str){json_string_value(value), json_string_length(value)};
  json_write(value, &text);
  struct str copy = {arena_strndup(arena, text.p, text.n), text.n};
  buf_deinit(&text);
  return copy;
}

static void on_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  struct str path = {name.p + strlen(PROMPT_STRUCTURED), name.n - strlen(PROMPT_STRUCTURED)};
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  struct prompt_ref ref;
  const json_t *value = NULL;
  if (prompt_ref_parse(path, v->view->workflow, &ref))
    value =
        prompt_ref_value(&ref, json_object_getn(v->view->values, ref.movement.p, ref.movement.n));
  add_variable(v, name, value_text(&v->arena, value));
}

/* Adds a part of the item, such as {item.FIELD} or {item[0].FIELD}. */
static void on_item_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  const struct prompt_ref ref = {STR("item"), {name.p + 4, name.n - 4}};
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  add_variable(v, name, value_text(&v->arena, prompt_ref_value(&ref, v->view->item)));
}

/* Adds a report or an answer. One that does not exist yet is named as missing, because an empty
 * line would mislead. */
static void on_kept_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  const struct kept_text *kept = prompt_kept(v->view, name);
  bool ja = workflow_language(v->view->workflow) == DESCRIBE_JAPANESE;
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  struct str none = ja ? STR("（まだありません）") : STR("(there is none yet)");
  add_variable(v, name, kept ? buf_view(&kept->text) : none);
}

static void on_branches_name(void *ctx, struct str name) {
  static const size_t skip = sizeof PROMPT_BRANCHES - 1;
  struct variables *v = ctx;
  struct buf text = {0};
  worktree_put_branches(v->view->worktrees, v->view->workflow,
                        (struct str){name.p + skip, name.n - skip}, &text);
  add_variable(v, name, arena_str(&v->arena, buf_view(&text)));
  buf_deinit(&text);
}

/* Adds the inputs. They come from outside and are data: they are never read as templates. */
static void add_inputs(struct variables *v) {
  const char *name;
  const json_t *value;
  json_object_foreach((json_t *)v->view->workflow->inputs, name, value) {
    struct str own = str_from(name);
    char *var = arena_alloc(&v->arena, strlen(PROMPT_INPUT) + own.n);
    memcpy(var, PROMPT_INPUT, strlen(PROMPT_INPUT));
    memcpy(var + strlen(PROMPT_INPUT), own.p, own.n);
    add_variable(v, (struct str){var, strlen(PROMPT_INPUT) + own.n}, json_view(value));
  }
}

/* Shows a loop's judge the loop: "review -> fix", 3 times. */
static void add_cycle(struct variables *v) {
  const struct workflow *wf = v->view->workflow;
  const struct monitor *m = v->view->movement->monitor;
  char count[STR_NUMBER_BYTES];
  struct buf text = {0};
  for (size_t i = 0; i < m->cycle_count; i++) {
    struct str name = wf->movements[m->cycle[i]].name;
    buf_printf(&text, "%s" STR_FMT, i > 0 ? " -> " : "", STR_ARG(name));
  }
  add_variable(v, STR("cycle"), arena_str(&v->arena, buf_view(&text)));
  add_variable(v, STR("cycle_count"),
               arena_str(&v->arena, prompt_digits(count, v->view->cycle_count)));
  buf_deinit(&text);
}

void prompt_fill(const struct prompt_view *v, struct str text, struct prompt *out) {
  char iteration[STR_NUMBER_BYTES], maximum[STR_NUMBER_BYTES], own[STR_NUMBER_BYTES],
      index[STR_NUMBER_BYTES];
  struct str max_text = STR("infinite");
  if (v->max_movements != MOVEMENTS_INFINITE)
    max_text = prompt_digits(maximum, v->max_movements);
  struct str own_text = prompt_digits(own, v->movement_iteration);
  struct variables vars = {.view = v};
  add_variable(&vars, STR("task"), v->task);
  add_variable(&vars, STR("iteration"), prompt_digits(iteration, v->iteration));
  add_variable(&vars, STR("max_movements"), max_text);
  add_variable(&vars, STR("max_steps"), max_text);
  add_variable(&vars, STR("movement_iteration"), own_text);
  add_variable(&vars, STR("step_iteration"), own_text);
  add_variable(&vars, STR("previous_response"), v->has_previous ? v->previous : STR(""));
  add_inputs(&vars);
  add_variable(&vars, STR("report_dir"), v->report_dir);
  add_variable(&vars, STR("user_inputs"), v->user_inputs);
  if (v->movement->monitor != NULL)
    add_cycle(&vars);
  template_names(text, PROMPT_STRUCTURED, on_name, &vars);
  if (v->item != NULL) {
    add_variable(&vars, STR("item"), value_text(&vars.arena, v->item));
    add_variable(&vars, STR("index"), prompt_digits(index, v->index));
    template_names(text, "item.", on_item_name, &vars);
    template_names(text, "item[", on_item_name, &vars);
  }
  template_names(text, PROMPT_REPORT, on_kept_name, &vars);
  template_names(text, PROMPT_RESPONSE, on_kept_name, &vars);
  template_names(text, PROMPT_BRANCHES, on_branches_name, &vars);
  struct prompt_sink sink = {out, NULL, v};
  template_render(text, vars.items, prompt_on_piece, &sink);
  free(vars.items);
  arena_deinit(&vars.arena);
}
