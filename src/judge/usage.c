/* Sums the tokens of calls, and their cost as long as all of it is known. */
#include "judge/usage.h"

#include "format/json_object.h"

#include <assert.h>

static const json_int_t most_tokens = (json_int_t)1 << 40;

static json_int_t usage_tokens_of(const json_t *usage, const char *key) {
  json_int_t n = json_int_at(usage, key);
  return n < 0 || n > most_tokens ? most_tokens : n;
}

static void add_tokens(json_t *sum, const json_t *more, const char *key) {
  if (!json_is_integer(json_object_get(more, key)))
    return;
  json_int_t n = usage_tokens_of(sum, key) + usage_tokens_of(more, key);
  json_object_set_new(sum, key, json_integer(n > most_tokens ? most_tokens : n));
}

void usage_add(json_t **sum, const json_t *more) {
  assert(sum != NULL);
  if (!json_is_object(more))
    return;
  const json_t *cost = json_at(more, "cost_usd"), *before = json_at(*sum, "cost_usd");
  bool known = json_is_number(cost) && (*sum == NULL || json_is_number(before));
  double total = json_number_value(before) + json_number_value(cost);
  if (*sum == NULL)
    *sum = json_object();
  add_tokens(*sum, more, "input");
  add_tokens(*sum, more, "output");
  add_tokens(*sum, more, "cached");
  add_tokens(*sum, more, "reasoning");
  add_tokens(*sum, more, "cache_write");
  if (known && total >= 0 && total < 1e9)
    json_object_set_new(*sum, "cost_usd", json_real(total));
  else
    json_object_del(*sum, "cost_usd");
}
