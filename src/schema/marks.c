/* Marks which members of an object or array were evaluated, for unevaluatedProperties and
 * unevaluatedItems. */
#include "schema/run.h"

void schema_marks_init(struct vm *vm, struct marks *marks, const json_t *value) {
  *marks = (struct marks){0};
  marks->count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
  if (marks->count <= 64)
    return;
  size_t words = (marks->count + 63) / 64;
  vm->work -= (int64_t)(words / 8);
  marks->many = xcalloc(words, sizeof *marks->many);
}

void schema_marks_deinit(struct marks *marks) {
  free(marks->many);
  marks->many = NULL;
}

void schema_marks_merge(struct marks *into, const struct marks *from) {
  into->all = into->all || from->all;
  into->few |= from->few;
  if (into->many)
    for (size_t i = 0; i < (into->count + 63) / 64; i++)
      into->many[i] |= from->many[i];
}
