/* Any bytes as a rule's condition, as a when() expression and as an invariant, in which case a line
 * behind it may be the value; what parses is evaluated and explained, what does not has a place. */
#include "judge/rule.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, const struct str *path, size_t n) {
  (void)ctx;
  (void)path;
  if (n == 0)
    abort();
}

static void run(struct arena *arena, const char *text, size_t n, enum expr_dialect dialect,
                const json_t *value) {
  struct expr_error error = {0};
  struct expr_finding found;
  const struct expr *expr = expr_parse(arena, text, n, dialect, &error);
  if (expr == NULL) {
    if (error.code == EXPR_OK || error.offset > n || error.text[0] == '\0')
      abort();
    return;
  }
  expr_each_ref(expr, ignore, NULL);
  enum expr_value plain = expr_eval(expr, value, &error);
  if ((plain == EXPR_ERROR) != (error.code != EXPR_OK))
    abort();
  enum expr_value explained = expr_explain(expr, value, &found, &error);
  if (plain != explained || (found.text != NULL) != (plain != EXPR_TRUE) ||
      (plain == EXPR_FALSE && found.text[0] == '\0'))
    abort();
  free(found.path);
  free(found.pointer);
  free(found.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char env[] =
      "{\"exit\":1,\"iteration\":2,\"movement_iteration\":1,\"structured\":"
      "{\"a\":{\"b\":[{\"c\":1,\"d\":[true]},{\"c\":\"x\"}],\"ok\":true}},"
      "\"items\":[{\"price\":0.1,\"n\":3},{\"price\":2e300,\"n\":null}],\"total\":25,"
      "\"start\":\"2024-01-01\",\"end\":\"2024-01-01T01:00:00+02:00\",\"tags\":[\"a\",\"b\"]}";
  const char *text = (const char *)data, *newline = size ? memchr(text, '\n', size) : NULL;
  AUTO(arena_deinit) struct arena arena = {0};
  struct err err = {0};
  struct rule rule = {0};
  size_t where = 0, n = newline ? (size_t)(newline - text) : size;
  json_auto_t *given =
      newline ? json_loadb(newline + 1, size - n - 1, JSON_DECODE_ANY, NULL) : NULL;
  json_auto_t *value = given ? json_incref(given) : json_loads(env, 0, NULL);
  if (!rule_parse(&arena, (struct str){text, size}, &rule, &where, &err) && where > size)
    abort();
  run(&arena, text, n, EXPR_WHEN, value);
  run(&arena, text, n, EXPR_INVARIANT, value);
  return 0;
}
