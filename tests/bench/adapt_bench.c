/* How long adapt takes: a schema of some 50 KB for every dialect, and an answer turned back. */
#include "structured/adapt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static json_t *schema_of(size_t bytes) {
  static const char one[] =
      "{\"type\":\"object\",\"description\":\"One entry of "
      "many\",\"properties\":{\"name\":{\"type\":"
      "\"string\",\"minLength\":1},\"kind\":{\"enum\":[\"a\",\"b\",\"c\"]},\"size\":{\"type\":"
      "\"integer\",\"minimum\":0},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
      "\"extra\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}},\"next\":{"
      "\"anyOf\":[{\"type\":\"object\",\"properties\":{\"to\":{\"$ref\":\"#/$defs/id\"}},"
      "\"required\":[\"to\"]},{\"type\":\"null\"}]}},\"required\":[\"name\"]}";
  json_t *properties = json_object();
  for (size_t i = 0; i * sizeof one < bytes; i++) {
    char name[32];
    snprintf(name, sizeof name, "entry_%zu", i);
    json_object_set_new(properties, name, json_loads(one, 0, NULL));
  }
  return json_pack("{s:s, s:o, s:{s:{s:s, s:s}}}", "type", "object", "properties", properties,
                   "$defs", "id", "type", "string", "pattern", "^[a-z]+$");
}

int main(void) {
  json_t *doc = schema_of(50000);
  const struct adapt_dialect *dialect;
  char *text = json_dumps(doc, JSON_COMPACT);
  printf("schema of %zu bytes\n%-12s %10s %12s %12s\n", strlen(text), "dialect", "adapt ms",
         "forward ms", "reverse ms");
  free(text);
  json_t *value = json_object();
  const json_t *properties = json_object_get(doc, "properties");
  for (void *at = json_object_iter((json_t *)properties); at;
       at = json_object_iter_next((json_t *)properties, at))
    json_object_set_new(value, json_object_iter_key(at),
                        json_pack("{s:s, s:s, s:{s:i, s:i}, s:{s:s}}", "name", "n", "kind", "b",
                                  "extra", "x", 1, "y", 2, "next", "to", "abc"));
  for (size_t i = 0; (dialect = adapt_dialect_at(i)); i++) {
    double best[3] = {1e9, 1e9, 1e9};
    struct adapt_error error;
    for (int run = 0; run < 10; run++) {
      json_t *image = NULL, *back = NULL;
      double times[4] = {now_ms()};
      struct adapted *adapted = adapt(doc, dialect, NULL, &error);
      times[1] = now_ms();
      if (!adapted)
        break;
      if (adapt_forward(adapted, value, &image) != ADAPT_OK)
        return 1;
      times[2] = now_ms();
      if (adapt_reverse(adapted, image, &back) != ADAPT_OK)
        return 1;
      times[3] = now_ms();
      for (int k = 0; k < 3; k++)
        if (times[k + 1] - times[k] < best[k])
          best[k] = times[k + 1] - times[k];
      json_decref(image);
      json_decref(back);
      adapted_free(adapted);
    }
    if (error.status != ADAPT_OK)
      printf("%-12s refused: %s\n", adapt_dialect_name(dialect), error.message);
    else
      printf("%-12s %10.2f %12.2f %12.2f\n", adapt_dialect_name(dialect), best[0], best[1],
             best[2]);
  }
  json_decref(value);
  json_decref(doc);
  return 0;
}
