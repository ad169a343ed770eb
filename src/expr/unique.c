/* Finds two equal items of a list: by keys, so that it takes one pass; lists and objects are
 * compared in pairs. */
#include "expr/eval.h"

/* Makes the key of an item: equal values have equal keys. Returns false if there is no key. */
static bool item_key(const struct value *v, struct buf *key) {
  struct instant instant;
  switch (v->kind) {
  case VALUE_TEXT:
    if (expr_instant(v->text, &instant)) {
      buf_printf(key, "i%lld.", (long long)instant.seconds);
      buf_append(key, instant.fraction.p, instant.fraction.n);
    } else {
      buf_puts(key, "t");
      buf_append(key, v->text.p, v->text.n);
    }
    return true;
  case VALUE_NUMBER:
    buf_puts(key, "n");
    number_text(&v->number, key);
    return true;
  case VALUE_NULL:
  case VALUE_BOOL:
    if (v->kind == VALUE_NULL)
      buf_puts(key, "null");
    else
      buf_puts(key, v->boolean ? "true" : "false");
    return true;
  case VALUE_LIST:
  case VALUE_OBJECT:
    break;
  }
  return false;
}

struct seen {
  struct arena arena; /* keys */
  struct map map;
  struct value *items;
  size_t *pairwise; /* indices of lists and objects */
  size_t pairwise_count;
};

static bool item_look(struct eval *x, const struct expr *e, struct seen *seen, size_t i,
                      struct duplicate *out) {
  const struct value *v = &seen->items[i];
  struct buf key = {0};
  uint32_t before;
  bool ok = true;
  if (item_key(v, &key)) {
    ok = expr_eval_work(x, e, 1 + key.n / 16);
    if (ok && map_get(&seen->map, buf_view(&key), &before))
      *out = (struct duplicate){true, before, i, *v};
    else if (ok)
      map_put(&seen->map, &seen->arena, buf_view(&key), (uint32_t)i);
    buf_deinit(&key);
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

bool expr_find_duplicate(struct eval *x, const struct eval_frame *f, const struct expr *e,
                         const struct value *list, struct duplicate *out) {
  struct seen seen = {.items = expr_eval_get(x, (list->n + 1) * sizeof *seen.items)};
  *out = (struct duplicate){0};
  if (seen.items)
    seen.pairwise = expr_eval_get(x, (list->n + 1) * sizeof *seen.pairwise);
  bool ok = seen.pairwise != NULL;
  for (size_t i = 0; ok && i < list->n && !out->found; i++)
    ok = expr_get_of_item(x, f, e, list, i, &seen.items[i]) && item_look(x, e, &seen, i, out);
  map_deinit(&seen.map);
  arena_deinit(&seen.arena);
  return ok;
}
