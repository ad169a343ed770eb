/* Any bytes as a rule's condition; what parses is evaluated. */
#include "judge/rule.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, const struct str *path, size_t n) {
  (void)ctx;
  if (n == 0 || path[0].n == 0)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena arena = {0};
  struct err err = {0};
  struct rule rule = {0};
  struct str text = {(const char *)data, size};
  size_t where = 0;
  json_auto_t *env =
      json_loads("{\"exit\":1,\"iteration\":2,\"movement_iteration\":1,\"structured\":"
                 "{\"a\":{\"b\":[{\"c\":1,\"d\":[true]},{\"c\":\"x\"}],\"ok\":true}}}",
                 0, NULL);
  bool ok = rule_parse(&arena, text, &rule, &where, &err);
  const struct expr *expr = ok ? rule.when : expr_parse(&arena, text, &where, &err);
  if (!ok && where > size)
    abort();
  if (expr != NULL) {
    expr_each_ref(expr, ignore, NULL);
    (void)expr_eval(expr, env, &err);
  }
  arena_deinit(&arena);
  return 0;
}
