/* validate.h - holds the state of one check, shared by its ops, and the wording of errors;
 * internal. */
#ifndef SEGUE_SCHEMA_VALIDATE_H
#define SEGUE_SCHEMA_VALIDATE_H

#include "schema/compiled.h"

/* --- running --- */

struct path_step { /* one level of the path into the instance */
  const struct path_step *up;
  const char *key; /* NULL: an index */
  size_t n;        /* length of the key, or the index */
};
struct scope {
  const struct scope *outer;
  uint32_t resource;
};
struct marks { /* tells which members of one object or array were evaluated */
  uint64_t few;
  uint64_t *many; /* used if there are more than 64 members */
  size_t count;
  bool all;
};
struct vm {
  const struct schema *schema;
  struct schema_errors *errors; /* NULL: stop at the first failure */
  const struct path_step *path;
  const struct scope *scope;
  int64_t work;
  int depth;
  enum schema_status trouble; /* OK or TOO_COMPLEX */
  const char *limit;          /* static: which bound was hit */
  struct pattern_scratch scratch;
};

bool schema_run_node(struct vm *vm, uint32_t index, const json_t *value, struct marks *marks);
bool schema_run_member(struct vm *vm, uint32_t index, const json_t *value, const char *key,
                       size_t n);

static inline bool member_ok(struct vm *vm, uint32_t index, const json_t *value, const char *key,
                             size_t n) {
  const struct node *node = &vm->schema->nodes[index];
  if (!node->count && node->types >> json_typeof(value) & 1)
    return true;
  return schema_run_member(vm, index, value, key, n);
}

static inline void marks_set(struct marks *marks, size_t index) {
  if (marks->count <= 64)
    marks->few |= (uint64_t)1 << index;
  else
    marks->many[index / 64] |= (uint64_t)1 << (index % 64);
}
static inline bool marks_has(const struct marks *marks, size_t index) {
  if (marks->all)
    return true;
  return ((marks->count <= 64 ? marks->few : marks->many[index / 64]) >> (index % 64)) & 1;
}

/* --- errors (schema/error.c) --- */

/* Adds an error, unless it is there already. Takes the four texts. */
bool schema_errors_add(struct schema_errors *errors, char *path, char *pointer, char *schema_path,
                       const char *keyword, char *message);
/* Sorts the errors from `from` on by place; errors of one place keep their order. */
void schema_errors_sort(struct schema_errors *errors, size_t from);
void schema_path_text(const struct path_step *path, struct buf *out);
void schema_step_text(const struct path_step *step, struct buf *out); /* of a key */
void schema_pointer_text(const struct path_step *path, struct buf *out);
void schema_entry_text(const struct schema *schema, uint32_t entry, struct buf *out);
void schema_value_text(const json_t *value, struct buf *out); /* shortened */
void schema_quote_text(const char *bytes, size_t length, struct buf *out);
void schema_types_text(unsigned types, struct buf *out);      /* what was expected */
void schema_found_text(const json_t *value, struct buf *out); /* what is there */

/* Reports a failed check of `op` (NULL: the type) and returns false. Call only with vm->errors set.
 */
void schema_report(struct vm *vm, const struct node *node, const struct op *op,
                   const json_t *value);
/* Reports a message, which it takes, about the node, or about one of its keywords (""). */
void schema_report_text(struct vm *vm, const struct node *node, const char *keyword,
                        struct buf *message);

/* Finds a property by its name, NULL if there is none. Reduces `work` for each other one on the
 * way. */
const struct property *schema_find_property(const struct object_op *o, const char *key,
                                            size_t length, int64_t *work);

#endif
