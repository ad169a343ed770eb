/* Follows JSON Pointers, with a star for any member. */
#include "format/pointer.h"

#include "base/limits.h"

#include <string.h>

bool pointer_valid(struct str pointer) {
  size_t steps = 0;
  if (pointer.n == 0)
    return true;
  if (pointer.p[0] != '/')
    return false;
  for (size_t i = 0; i < pointer.n; i++) {
    steps += pointer.p[i] == '/';
    if (pointer.p[i] == '~' &&
        (i + 1 == pointer.n || (pointer.p[i + 1] != '0' && pointer.p[i + 1] != '1')))
      return false;
  }
  return steps <= LIMIT_POINTER_STEPS;
}

/* Returns true if a step, with its ~0 and ~1, names this member. */
static bool step_is(struct str step, const char *key, size_t key_n) {
  size_t at = 0;
  for (size_t i = 0; i < step.n; i++, at++) {
    char c = step.p[i];
    if (c == '~' && i + 1 < step.n)
      c = step.p[++i] == '0' ? '~' : '/';
    if (at >= key_n || key[at] != c)
      return false;
  }
  return at == key_n;
}

static const json_t *pointer_member(const json_t *value, struct str step) {
  if (json_is_array(value)) {
    long index = -1;
    bool plain = step.n == 1 || (step.n > 1 && step.p[0] != '0');
    if (!plain || !str_to_long(step, &index) || index < 0)
      return NULL;
    return json_array_get(value, (size_t)index);
  }
  if (!json_is_object(value))
    return NULL;
  if (memchr(step.p, '~', step.n) == NULL)
    return json_object_getn(value, step.p, step.n);
  void *iter = json_object_iter((json_t *)value);
  for (; iter != NULL; iter = json_object_iter_next((json_t *)value, iter))
    if (step_is(step, json_object_iter_key(iter), json_object_iter_key_len(iter)))
      return json_object_iter_value(iter);
  return NULL;
}

/* Walks a pointer; false if `each` wanted no more. Recursion goes as deep as the pointer has
 * stars. */
static bool pointer_walk(const json_t *value, struct str rest, pointer_fn each, void *ctx) {
  while (rest.n > 0 && value != NULL) {
    const char *end = memchr(rest.p + 1, '/', rest.n - 1);
    struct str step = {rest.p + 1, end ? (size_t)(end - rest.p) - 1 : rest.n - 1};
    rest = (struct str){step.p + step.n, rest.n - 1 - step.n};
    if (!str_eq_c(step, "*")) {
      value = pointer_member(value, step);
      continue;
    }
    for (size_t i = 0; i < json_array_size(value); i++)
      if (!pointer_walk(json_array_get(value, i), rest, each, ctx))
        return false;
    void *iter = json_object_iter((json_t *)value);
    for (; iter != NULL; iter = json_object_iter_next((json_t *)value, iter))
      if (!pointer_walk(json_object_iter_value(iter), rest, each, ctx))
        return false;
    return true;
  }
  return value == NULL || each(ctx, value);
}

void pointer_each(const json_t *root, struct str pointer, pointer_fn each, void *ctx) {
  if (pointer_valid(pointer))
    (void)pointer_walk(root, pointer, each, ctx);
}

static bool take_first(void *ctx, const json_t *value) {
  *(const json_t **)ctx = value;
  return false;
}

const json_t *pointer_get(const json_t *root, struct str pointer) {
  const json_t *found = NULL;
  pointer_each(root, pointer, take_first, &found);
  return found;
}
