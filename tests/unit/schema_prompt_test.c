/* The end of a prompt for a backend without an option for schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "provider/schema_prompt.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *prompt, *schema, *wanted;
} cases[] = {
    {"Do it.", "{\"type\":\"object\"}",
     "Do it.\n\n---\n\nReply with a single JSON object that is valid against this JSON Schema, and "
     "with nothing else: no words before or after it, no "
     "comments.\n\n```json\n{\"type\":\"object\"}"
     "\n```\n"},
    {"List them.\n", "{\"type\":\"array\"}",
     "List them.\n\n---\n\nReply with a single JSON array that is valid against this JSON Schema, "
     "and "
     "with nothing else: no words before or after it, no comments.\n\n```json\n{\"type\":\"array\"}"
     "\n```\n"},
    {"The schema:\n{\"type\":\"object\"}\nMend it.", "{\"type\":\"object\"}",
     "The schema:\n{\"type\":\"object\"}\nMend it."},
};

static void the_schema_stands_there_once(void **state) {
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct buf prompt = {0};
    json_t *schema = json_loads(cases[i].schema, 0, NULL);
    buf_puts(&prompt, cases[i].prompt);
    schema_prompt_append(&prompt, schema);
    assert_string_equal(buf_c(&prompt), cases[i].wanted);
    buf_deinit(&prompt);
    json_decref(schema);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_schema_stands_there_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
