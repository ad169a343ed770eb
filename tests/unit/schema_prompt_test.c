/* The end of a prompt for a backend without an option for schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/resource.h"
#include "provider/schema_prompt.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *prompt, *schema;
  const char *before, *root; /* NULL: nothing is added */
} cases[] = {
    {"Do it.", "{\"type\":\"object\"}", "Do it.\n\n---\n\n", "object"},
    {"List them.\n", "{\"type\":\"array\"}", "List them.\n\n---\n\n", "array"},
    {"Say {root} and {schema}.", "{\"minimum\":1,\"title\":\"{root}\"}",
     "Say {root} and {schema}.\n\n---\n\n", "value"},
    {"The schema:\n{\"type\":\"object\"}\nMend it.", "{\"type\":\"object\"}", NULL, NULL},
};

/* The words of the template, with what stands for its names. */
static void put_words(struct buf *out, const char *root, const char *schema) {
  const struct resource *r = resource_find("prompts/en/schema.md");
  assert_non_null(r);
  const char *at = strstr(r->p, "---\n\n");
  assert_non_null(at);
  for (at += 5; *at != '\0'; at++)
    if (strncmp(at, "{root}", 6) == 0) {
      buf_puts(out, root);
      at += 5;
    } else if (strncmp(at, "{schema}", 8) == 0) {
      buf_puts(out, schema);
      at += 7;
    } else {
      buf_putc(out, *at);
    }
}

static void the_schema_stands_there_once(void **state) {
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct buf prompt = {0}, wanted = {0};
    json_t *schema = json_loads(cases[i].schema, 0, NULL);
    buf_puts(&prompt, cases[i].prompt);
    schema_prompt_append(&prompt, schema);
    buf_puts(&wanted, cases[i].before ? cases[i].before : cases[i].prompt);
    if (cases[i].before != NULL)
      put_words(&wanted, cases[i].root, cases[i].schema);
    assert_string_equal(buf_c(&prompt), buf_c(&wanted));
    buf_deinit(&wanted);
    buf_deinit(&prompt);
    json_decref(schema);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_schema_stands_there_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
