/* Runs allOf, anyOf, oneOf, not and if: applies several schemas to one value, and explains why they
 * do not agree. */
#include "schema/run.h"

#include <stdio.h>
#include <string.h>

/* Runs a branch without reporting errors; its marks count only if it is valid. */
static bool run_branch(struct vm *vm, uint32_t node, const json_t *value, struct marks *marks) {
  struct schema_errors *errors = vm->errors;
  vm->errors = NULL;
  bool ok;
  if (!marks) {
    ok = schema_run_node(vm, node, value, NULL);
  } else {
    struct marks own;
    schema_marks_init(vm, &own, value);
    ok = schema_run_node(vm, node, value, &own);
    if (ok)
      schema_marks_merge(marks, &own);
    schema_marks_deinit(&own);
  }
  vm->errors = errors;
  return ok;
}

enum { BRANCHES_SHOWN = 16 }; /* alternatives examined for an explanation */

struct closest {
  uint32_t branch;
  size_t errors;
  struct buf line;
  uint32_t fitting; /* branches that accept the members with fixed values (const, enum) */
  uint32_t fitting_branch;
};

static bool names_a_kind(const struct schema_error *error) {
  return !strcmp(error->keyword, "const") || !strcmp(error->keyword, "enum") ||
         !strcmp(error->keyword, "type");
}

static void try_branch(struct vm *vm, const struct list_op *list, uint32_t i, const json_t *value,
                       struct closest *closest) {
  struct schema_errors *outer = vm->errors, inner = {0};
  vm->errors = &inner;
  schema_run_node(vm, list->nodes[i], value, NULL);
  vm->errors = outer;
  bool fits = true;
  for (size_t k = 0; k < inner.count; k++)
    fits = fits && !names_a_kind(&inner.items[k]);
  if (fits && inner.count) {
    closest->fitting++;
    closest->fitting_branch = i;
  }
  size_t count = inner.count + inner.dropped;
  if (inner.count && (!closest->errors || count < closest->errors)) {
    closest->errors = count;
    closest->branch = i;
    closest->line.n = 0;
    buf_printf(&closest->line, "%u: ", (unsigned)i + 1);
    buf_puts(&closest->line, inner.items[0].path);
    buf_puts(&closest->line, ": ");
    buf_puts(&closest->line, inner.items[0].message);
  }
  schema_errors_deinit(&inner);
}

/* Explains why no branch matches. If only one can have been meant, its own errors say it best. */
static void explain_none(struct vm *vm, const struct node *node, const struct op *op,
                         const json_t *value) {
  const struct list_op *list = op->u.list;
  unsigned types = 0, type = 1u << json_typeof(value);
  uint32_t candidates = 0, last = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const struct node *branch = &vm->schema->nodes[list->nodes[i]];
    if (branch->types & type) {
      candidates++;
      last = i;
    } else {
      types |= branch->types;
    }
  }
  struct buf message = {0};
  char suffix[40];
  snprintf(suffix, sizeof suffix, "/%s", op->keyword);
  if (!candidates) {
    buf_puts(&message, "expected ");
    schema_types_text(types, &message);
    buf_puts(&message, ", found ");
    schema_found_text(value, &message);
    schema_report_text(vm, node, suffix, op->keyword, &message);
    return;
  }
  struct closest closest = {0};
  if (candidates > 1 && json_is_object(value) && schema_report_discriminator(vm, node, op, value))
    return;
  if (candidates > 1)
    for (uint32_t i = 0; i < list->count && i < BRANCHES_SHOWN; i++)
      if (vm->schema->nodes[list->nodes[i]].types & type)
        try_branch(vm, list, i, value, &closest);
  if (candidates == 1 || closest.fitting == 1) {
    schema_run_node(vm, list->nodes[candidates == 1 ? last : closest.fitting_branch], value, NULL);
  } else {
    buf_printf(&message, "matches none of the %u alternatives", (unsigned)list->count);
    if (closest.line.n) {
      buf_puts(&message, "; closest is number ");
      buf_append(&message, closest.line.p, closest.line.n);
    }
    schema_report_text(vm, node, suffix, op->keyword, &message);
  }
  buf_deinit(&closest.line);
}

static bool any_of(struct vm *vm, const struct node *node, const struct op *op, const json_t *value,
                   struct marks *marks) {
  const struct list_op *list = op->u.list;
  bool found = false;
  for (uint32_t i = 0; i < list->count && (!found || marks); i++)
    found |= run_branch(vm, list->nodes[i], value, marks);
  if (!found && vm->errors && vm->work >= 0)
    explain_none(vm, node, op, value);
  return found;
}

static bool one_of(struct vm *vm, const struct node *node, const struct op *op, const json_t *value,
                   struct marks *marks) {
  const struct list_op *list = op->u.list;
  uint32_t found = 0, first = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    if (!run_branch(vm, list->nodes[i], value, marks))
      continue;
    if (!found++) {
      first = i;
      continue;
    }
    if (vm->errors) {
      struct buf message = {0};
      buf_printf(&message, "matches the alternatives %u and %u, but must match exactly one",
                 (unsigned)first + 1, (unsigned)i + 1);
      schema_report_text(vm, node, "/oneOf", "oneOf", &message);
    }
    return false;
  }
  if (!found && vm->errors && vm->work >= 0)
    explain_none(vm, node, op, value);
  return found == 1;
}

static bool is_const_word(const json_t *value, struct str word) {
  return json_is_string(value) &&
         str_eq((struct str){json_string_value(value), json_string_length(value)}, word);
}

static bool if_holds(struct vm *vm, const struct if_op *o, const json_t *value,
                     struct marks *marks) {
  if (o->key != NULL && marks == NULL && json_is_object(value))
    return is_const_word(json_object_get(value, o->key), o->word);
  return run_branch(vm, o->condition, value, marks);
}

bool schema_run_combination(struct vm *vm, const struct node *node, const struct op *op,
                            const json_t *value, struct marks *marks) {
  switch ((int)op->code) {
  case OP_ALL_OF: {
    const struct list_op *list = op->u.list;
    bool good = true;
    for (uint32_t i = 0; i < list->count; i++)
      if (!schema_run_node(vm, list->nodes[i], value, marks)) {
        if (!vm->errors)
          return false;
        good = false;
      }
    return good;
  }
  case OP_ANY_OF:
    return any_of(vm, node, op, value, marks);
  case OP_ONE_OF:
    return one_of(vm, node, op, value, marks);
  case OP_NOT: {
    bool ok = !run_branch(vm, op->node, value, NULL);
    if (!ok && vm->errors)
      schema_report(vm, node, op, value);
    return ok;
  }
  default: {
    const struct if_op *o = op->u.branch;
    uint32_t next = if_holds(vm, o, value, marks) ? o->then_node : o->else_node;
    return next == NODE_NONE || schema_run_node(vm, next, value, marks);
  }
  }
}
