/* Checks loop_monitors: their cycles, and their judges as movements. */
#include "workflow/lint/part.h"

#include "format/json_value.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const json_t *loops_of(const struct lint *l) {
  return json_object_get(l->doc, "loop_monitors");
}

size_t lint_count_loops(const struct lint *l) {
  return json_array_size(loops_of(l));
}

static size_t loops_find(const struct lint *l, const char *name) {
  for (size_t i = 0; name != NULL && i < l->top_count; i++)
    if (strcmp(l->names[i], name) == 0)
      return i;
  return l->count;
}

size_t lint_cycle(const struct lint *l, size_t loop, size_t place) {
  assert(loop >= l->first_loop);
  assert(loop < l->count);
  const json_t *cycle = json_object_get(json_array_get(loops_of(l), loop - l->first_loop), "cycle");
  return loops_find(l, json_string_value(json_array_get(cycle, place)));
}

void lint_read_loops(struct lint *l) {
  size_t i;
  const json_t *loop;
  l->first_loop = l->count;
  json_array_foreach((json_t *)loops_of(l), i, loop) {
    struct lint_movement *m = &l->movements[l->count];
    const json_t *cycle = json_object_get(loop, "cycle");
    const char *first = json_string_value(json_array_get(cycle, 0)),
               *last = json_string_value(json_array_get(cycle, json_array_size(cycle) - 1));
    struct buf name = {0};
    buf_printf(&name, "_loop_judge_%s_%s", first ? first : "", last ? last : "");
    *m = (struct lint_movement){.object = json_object_get(loop, "judge"), .group = LINT_NO_GROUP};
    m->name = l->names[l->count++] = arena_strdup(&l->arena, buf_c(&name));
    buf_deinit(&name);
  }
}

static void check_loop_names(struct lint *l, size_t loop, const char *key) {
  const json_t *list = json_object_get(json_array_get(loops_of(l), loop), key), *v;
  char place[DOC_PATH_BYTES];
  size_t i;
  json_array_foreach((json_t *)list, i, v) {
    const char *name = json_string_value(v) ? json_string_value(v) : "";
    doc_path_item(place, "loop_monitors", loop);
    doc_path_member(place, place, key);
    doc_path_item(place, place, i);
    if (loops_find(l, name) == l->count)
      lint_report(l, l->errors, place, "there is no movement %s: %s", name,
                  lint_suggestion(l, name, l->names, "write the name of a movement"));
    for (size_t k = 0; k < i; k++)
      if (json_same(json_array_get(list, k), v))
        lint_report(l, l->errors, place, "%s is listed twice: a loop has each movement once", name);
  }
}

void lint_loops(struct lint *l) {
  for (size_t i = 0; i < lint_count_loops(l); i++) {
    check_loop_names(l, i, "cycle");
    check_loop_names(l, i, "ignore");
  }
}
