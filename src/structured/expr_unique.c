/* Two equal items of a list: by keys, so that it takes one pass; lists and objects are compared in
 * pairs. */
#include "structured/expr_eval.h"

/* Equal values have equal keys; false if there is no key. */
static bool key_of(const struct value *v, struct text *key) {
  struct instant instant;
  switch (v->kind) {
  case VALUE_TEXT:
    if (expr_instant(v->text, &instant)) {
      schema_text_printf(key, "i%lld.", (long long)instant.seconds);
      schema_text_add(key, instant.fraction.p, instant.fraction.n);
    } else {
      schema_text_puts(key, "t");
      schema_text_add(key, v->text.p, v->text.n);
    }
    return true;
  case VALUE_NUMBER:
    schema_text_puts(key, "n");
    number_text(&v->number, key);
    return true;
  case VALUE_NULL:
  case VALUE_BOOL:
    schema_text_puts(key, v->kind == VALUE_NULL ? "null" : v->boolean ? "true" : "false");
    return true;
  case VALUE_LIST:
  case VALUE_OBJECT:
    break;
  }
  return false;
}

struct seen {
  struct schema_arena arena; /* keys */
  struct map map;
  struct value *items;
  size_t *pairwise; /* indices of lists and objects */
  size_t pairwise_count;
};

static bool look(struct eval *x, const struct expr *e, struct seen *seen, size_t i,
                 struct duplicate *out) {
  const struct value *v = &seen->items[i];
  struct text key = {0};
  uint32_t before;
  bool ok = true;
  if (key_of(v, &key)) {
    ok = !key.failed && expr_eval_work(x, e, 1 + key.length / 16);
    if (ok && schema_map_get(&seen->map, key.bytes, key.length, &before))
      *out = (struct duplicate){true, before, i, *v};
    else if (ok && !schema_map_put(&seen->map, &seen->arena, key.bytes, key.length, (uint32_t)i))
      ok = expr_eval_fail(x, EXPR_OUT_OF_MEMORY, e, "out of memory");
    if (key.failed)
      ok = expr_eval_fail(x, EXPR_OUT_OF_MEMORY, e, "out of memory");
    schema_text_deinit(&key);
    return ok;
  }
  for (size_t k = 0; ok && k < seen->pairwise_count && !out->found; k++) {
    ok = expr_equal(x, e, v, &seen->items[seen->pairwise[k]], &out->found);
    if (out->found)
      *out = (struct duplicate){true, seen->pairwise[k], i, *v};
  }
  seen->pairwise[seen->pairwise_count++] = i;
  return ok;
}

bool expr_find_duplicate(struct eval *x, const struct frame *f, const struct expr *e,
                         const struct value *list, struct duplicate *out) {
  struct seen seen = {.items = expr_eval_get(x, (list->n + 1) * sizeof *seen.items)};
  *out = (struct duplicate){0};
  if (seen.items)
    seen.pairwise = expr_eval_get(x, (list->n + 1) * sizeof *seen.pairwise);
  bool ok = seen.pairwise != NULL;
  for (size_t i = 0; ok && i < list->n && !out->found; i++)
    ok = expr_get_of_item(x, f, e, list, i, &seen.items[i]) && look(x, e, &seen, i, out);
  schema_map_deinit(&seen.map);
  schema_arena_deinit(&seen.arena);
  return ok;
}
