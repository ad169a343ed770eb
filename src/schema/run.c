/* Interprets a program: checks a value against a node. */
#include "schema/run.h"

#include <assert.h>

/* Notes that a limit was reached; `limit` (static) says which. Returns false. */
static bool schema_run_trouble(struct vm *vm, const char *limit) {
  if (vm->trouble == SCHEMA_OK) {
    vm->trouble = SCHEMA_TOO_COMPLEX;
    vm->limit = limit;
  }
  vm->work = -1; /* every further node gives up at once */
  return false;
}

bool schema_run_pattern(struct vm *vm, const struct pattern *pattern, const char *text,
                        size_t length) {
  uint64_t before = vm->scratch.cost;
  enum pattern_result result = pattern_match(pattern, &vm->scratch, text, length);
  vm->work -= (int64_t)(vm->scratch.cost - before);
  switch (result) {
  case PATTERN_MATCH:
    return true;
  case PATTERN_NO_MATCH:
    return false;
  case PATTERN_TOO_COMPLEX:
    return schema_run_trouble(vm, "a pattern takes too many steps on this text");
  }
  return false;
}

static bool enum_has_string(struct vm *vm, const struct enum_op *o, const json_t *value) {
  const char *text = json_string_value(value);
  size_t length = json_string_length(value);
  if (!o->table) {
    for (uint32_t i = 0; i < o->string_count; i++)
      if (o->strings[i].length == length && !memcmp(o->strings[i].text, text, length))
        return true;
    return false;
  }
  for (uint32_t at = bytes_hash(text, length) & o->table_mask; o->table[at];
       at = (at + 1) & o->table_mask) {
    const struct enum_string *s = &o->strings[o->table[at] - 1];
    if (s->length == length && !memcmp(s->text, text, length))
      return true;
    vm->work--;
  }
  return false;
}

static bool enum_has(struct vm *vm, const struct enum_op *o, const json_t *value) {
  switch (json_typeof(value)) {
  case JSON_STRING:
    return enum_has_string(vm, o, value);
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    return o->simple >> json_typeof(value) & 1;
  case JSON_INTEGER: {
    json_int_t n = json_integer_value(value);
    for (uint32_t i = 0; i < o->integer_count; i++)
      if (o->integers[i] == n)
        return true;
    vm->work -= o->integer_count / 8;
    if (o->integer_count == o->other_count)
      return false; /* the rest holds no real, array or object */
    break;
  }
  case JSON_REAL:
  case JSON_OBJECT:
  case JSON_ARRAY:
    break;
  }
  for (uint32_t i = 0; i < o->other_count; i++)
    if (schema_value_equal(o->others[i], value, &vm->work))
      return true;
  return false;
}

static bool check_length(const struct op *op, const json_t *value) {
  size_t bytes = json_string_length(value);
  if (op->code == OP_MIN_LENGTH) {
    if (bytes < op->u.count)
      return false;
    return bytes / 4 >= op->u.count || utf8_count(json_string_value(value), bytes) >= op->u.count;
  }
  return bytes <= op->u.count || utf8_count(json_string_value(value), bytes) <= op->u.count;
}

static bool run_dynamic(struct vm *vm, const struct op *op, const json_t *value,
                        struct marks *marks) {
  const struct schema *s = vm->schema;
  uint32_t node = op->node;
  const struct scope *scope = vm->scope;
  /* the outermost scope with the anchor wins */
  for (int64_t n = 1; scope; scope = scope->outer, n++) {
    uint32_t found = s->dynamic[op->index * s->resource_count + scope->resource];
    if (found != NODE_NONE)
      node = found;
    vm->work -= n & 1;
  }
  return schema_run_node(vm, node, value, marks);
}

/* Runs ops that look at the value itself, not at its parts. */
static bool run_plain(struct vm *vm, const struct op *op, const json_t *value) {
  size_t first, second;
  switch ((int)op->code) {
  case OP_ENUM:
    return enum_has(vm, op->u.options, value);
  case OP_MINIMUM:
    return schema_value_compare(value, op->u.value) >= 0;
  case OP_MAXIMUM:
    return schema_value_compare(value, op->u.value) <= 0;
  case OP_EXCLUSIVE_MINIMUM:
    return schema_value_compare(value, op->u.value) > 0;
  case OP_EXCLUSIVE_MAXIMUM:
    return schema_value_compare(value, op->u.value) < 0;
  case OP_MULTIPLE_OF:
    return schema_value_multiple_of(value, op->u.value);
  case OP_MIN_LENGTH:
  case OP_MAX_LENGTH:
    return check_length(op, value);
  case OP_PATTERN:
    return schema_run_pattern(vm, op->u.pattern, json_string_value(value),
                              json_string_length(value));
  case OP_FORMAT:
    vm->work -= 4 + (int64_t)(json_string_length(value) / 8);
    return op->u.format(json_string_value(value), json_string_length(value));
  case OP_MIN_ITEMS:
    return json_array_size(value) >= op->u.count;
  case OP_MAX_ITEMS:
    return json_array_size(value) <= op->u.count;
  case OP_MIN_PROPERTIES:
    return json_object_size(value) >= op->u.count;
  case OP_MAX_PROPERTIES:
    return json_object_size(value) <= op->u.count;
  case OP_UNIQUE:
    return schema_value_unique(value, &first, &second, &vm->work);
  default:
    assert(op->code == OP_FALSE);
    return false;
  }
}

static bool run_op(struct vm *vm, const struct node *node, const struct op *op, const json_t *value,
                   struct marks *marks) {
  bool ok = true;
  switch ((enum op_code)op->code) {
  case OP_ITEMS:
  case OP_CONTAINS:
  case OP_UNEVALUATED_ITEMS:
    return schema_run_array(vm, node, op, value, marks);
  case OP_OBJECT:
  case OP_DEPENDENT_REQUIRED:
  case OP_UNEVALUATED_PROPERTIES:
    return schema_run_object(vm, node, op, value, marks);
  case OP_DEPENDENT_SCHEMA:
    if (!json_object_getn(value, op->u.dependency->name, op->u.dependency->length))
      return true;
    return schema_run_node(vm, op->node, value, marks);
  case OP_REF:
    return schema_run_node(vm, op->node, value, marks);
  case OP_DYNAMIC_REF:
    return run_dynamic(vm, op, value, marks);
  case OP_ALL_OF:
  case OP_ANY_OF:
  case OP_ONE_OF:
  case OP_NOT:
  case OP_IF:
    return schema_run_combination(vm, node, op, value, marks);
  case OP_FALSE:
  case OP_ENUM:
  case OP_MINIMUM:
  case OP_MAXIMUM:
  case OP_EXCLUSIVE_MINIMUM:
  case OP_EXCLUSIVE_MAXIMUM:
  case OP_MULTIPLE_OF:
  case OP_MIN_LENGTH:
  case OP_MAX_LENGTH:
  case OP_PATTERN:
  case OP_FORMAT:
  case OP_MIN_ITEMS:
  case OP_MAX_ITEMS:
  case OP_MIN_PROPERTIES:
  case OP_MAX_PROPERTIES:
  case OP_UNIQUE:
    ok = run_plain(vm, op, value);
    break;
  }
  if (!ok && vm->errors)
    schema_report(vm, node, op, value);
  return ok;
}

static bool run_ops(struct vm *vm, const struct node *node, const json_t *value,
                    struct marks *marks) {
  const struct op *op = &vm->schema->ops[node->first], *end = op + node->count;
  unsigned type = 1u << json_typeof(value);
  bool ok = true;
  for (; op < end; op++)
    if (op->applies & type && !run_op(vm, node, op, value, marks)) {
      if (!vm->errors)
        return false;
      ok = false;
    }
  return ok;
}

/* Runs a node with marks of its own, for unevaluated*; they are passed up only if the value is
 * valid. */
static bool run_tracked(struct vm *vm, const struct node *node, const json_t *value,
                        struct marks *outer) {
  struct marks marks;
  schema_marks_init(vm, &marks, value);
  bool ok = run_ops(vm, node, value, &marks);
  if (ok && outer)
    schema_marks_merge(outer, &marks);
  schema_marks_deinit(&marks);
  return ok;
}

static bool run_entered(struct vm *vm, const struct node *node, const json_t *value,
                        struct marks *marks) {
  if (node->tracks && (json_is_object(value) || json_is_array(value)))
    return run_tracked(vm, node, value, marks);
  return run_ops(vm, node, value, marks);
}

bool schema_run_node(struct vm *vm, uint32_t index, const json_t *value, struct marks *marks) {
  const struct node *node = &vm->schema->nodes[index];
  unsigned types = node->types;
  if (!(types >> json_typeof(value) & 1) &&
      !(types & TYPE_INTEGRAL && schema_value_is_integral(value))) {
    if (vm->errors && vm->work >= 0)
      schema_report(vm, node, NULL, value);
    return false;
  }
  if (!node->count)
    return true;
  if (--vm->work < 0)
    return schema_run_trouble(vm, "the check takes too much work");
  if (vm->depth >= SCHEMA_DEPTH_MAX)
    return schema_run_trouble(vm, "schemas apply each other too deeply");
  vm->depth++;
  bool ok;
  if (vm->schema->dynamic && (!vm->scope || vm->scope->resource != node->resource)) {
    struct scope scope = {vm->scope, node->resource};
    vm->scope = &scope;
    ok = run_entered(vm, node, value, marks);
    vm->scope = scope.outer;
  } else {
    ok = run_entered(vm, node, value, marks);
  }
  vm->depth--;
  return ok;
}

bool schema_run_member(struct vm *vm, uint32_t index, const json_t *value, const char *key,
                       size_t n) {
  struct path_step step = {vm->path, key, n};
  vm->path = &step;
  bool ok = schema_run_node(vm, index, value, NULL);
  vm->path = step.up;
  return ok;
}

static enum schema_status run_schema(const struct schema *schema, const json_t *value,
                                     struct schema_errors *errors, const char **limit) {
  struct vm vm; /* not initialised as a whole: the scratch is large */
  *limit = "the check takes too much work";
  if (!value)
    return SCHEMA_INVALID;
  vm.schema = schema;
  vm.errors = errors;
  vm.path = NULL;
  vm.scope = NULL;
  vm.work = SCHEMA_WORK_MAX;
  vm.depth = 0;
  vm.trouble = SCHEMA_OK;
  vm.scratch.match_data = vm.scratch.match_context = NULL;
  vm.scratch.used = 0;
  vm.scratch.cost = 0;
  bool ok = schema_run_node(&vm, schema->root, value, NULL);
  pattern_scratch_deinit(&vm.scratch);
  if (vm.trouble != SCHEMA_OK) {
    *limit = vm.limit;
    return vm.trouble;
  }
  if (vm.work < 0)
    return SCHEMA_TOO_COMPLEX;
  return ok ? SCHEMA_OK : SCHEMA_INVALID;
}

bool schema_valid(const struct schema *schema, const json_t *value) {
  assert(schema);
  const char *limit;
  return run_schema(schema, value, NULL, &limit) == SCHEMA_OK;
}

/* Adds an error about the value as a whole. */
static void add_plain_error(struct schema_errors *errs, const char *message) {
  schema_errors_add(errs, xstrdup("$"), xstrdup(""), xstrdup(""), "", xstrdup(message));
}

enum schema_status schema_check(const struct schema *schema, const json_t *value,
                                struct schema_errors *errs) {
  assert(schema);
  const char *limit;
  enum schema_status status = run_schema(schema, value, NULL, &limit);
  if (!errs)
    return status;
  if (status == SCHEMA_INVALID) {
    size_t before = errs->count, dropped = errs->dropped;
    run_schema(schema, value, errs, &limit);
    schema_errors_sort(errs, before);
    if (errs->count == before &&
        errs->dropped == dropped) /* reporting took more work than deciding, and hit the bound */
      add_plain_error(errs, value ? "does not match the schema" : "there is no value");
  } else if (status == SCHEMA_TOO_COMPLEX) {
    add_plain_error(errs, limit);
  }
  return status;
}
