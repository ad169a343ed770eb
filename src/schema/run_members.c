/* Runs the ops that walk over the members of an object or the items of an array. */
#include "schema/run.h"

#include <assert.h>
#include <stdio.h>

const struct property *schema_find_property(struct vm *vm, const struct object_op *o,
                                            const char *key, size_t length) {
  if (!o->table) {
    for (uint32_t i = 0; i < o->count; i++)
      if (o->properties[i].length == length && !memcmp(o->properties[i].name, key, length))
        return &o->properties[i];
    return NULL;
  }
  for (uint32_t at = bytes_hash(key, length) & o->table_mask; o->table[at];
       at = (at + 1) & o->table_mask) {
    const struct property *p = &o->properties[o->table[at] - 1];
    if (p->length == length && !memcmp(p->name, key, length))
      return p;
    vm->work--;
  }
  return NULL;
}

static void report_missing(struct vm *vm, const struct node *node, const struct object_op *o,
                           const json_t *value, struct str name) {
  struct buf message = {0};
  struct str like = {NULL, 0};
  buf_puts(&message, "the required property ");
  schema_quote_text(name.p, name.n, &message);
  buf_puts(&message, " is missing");
  if (!o->additional_is_false) /* else the error about the extra member says it */
    like = schema_unknown_like(vm, o, value, name);
  if (like.p) {
    buf_puts(&message, " (is ");
    schema_quote_text(like.p, like.n, &message);
    buf_puts(&message, " meant for it?)");
  }
  schema_report_text(vm, node, "/required", "required", &message);
}

/* Writes " (did you mean "a"? allowed: "a", "b")". */
static void add_allowed(struct vm *vm, const struct object_op *o, const json_t *value,
                        struct str key, struct buf *message) {
  enum { NAMES_SHOWN = 12 };
  uint32_t shown = 0;
  const struct property *meant = schema_missing_like(vm, o, value, key);
  if (meant) {
    buf_puts(message, " (did you mean ");
    schema_quote_text(meant->name, meant->length, message);
    buf_puts(message, "?");
  }
  for (uint32_t i = 0; i < o->count; i++) {
    if (o->properties[i].node == NODE_NONE)
      continue;
    if (shown == NAMES_SHOWN) {
      buf_puts(message, ", ...");
      break;
    }
    if (shown++)
      buf_puts(message, ", ");
    else
      buf_puts(message, meant ? " allowed: " : " (allowed: ");
    schema_quote_text(o->properties[i].name, o->properties[i].length, message);
  }
  buf_puts(message, shown || meant ? ")" : "");
}

/* Reports a member that is not allowed. `o` names the allowed ones; it may be NULL. */
static void report_extra(struct vm *vm, const struct node *node, const struct object_op *o,
                         const json_t *value, const char *keyword, struct str key) {
  struct buf message = {0};
  char suffix[40];
  buf_puts(&message, "the property ");
  schema_quote_text(key.p, key.n, &message);
  buf_puts(&message, " is not allowed");
  if (o)
    add_allowed(vm, o, value, key, &message);
  snprintf(suffix, sizeof suffix, "/%s", keyword);
  schema_report_text(vm, node, suffix, keyword, &message);
}

static bool check_member_name(struct vm *vm, const struct node *node, const struct object_op *o,
                              const char *key, size_t n) {
  struct schema_errors *outer = vm->errors, inner = {0};
  json_t *name = json_stringn_nocheck(key, n);
  assert(name);
  if (outer)
    vm->errors = &inner;
  bool ok = schema_run_node(vm, o->names, name, NULL);
  vm->errors = outer;
  if (!ok && outer && inner.count) {
    struct buf message = {0};
    buf_puts(&message, "the property name ");
    schema_quote_text(key, n, &message);
    buf_puts(&message, " is not allowed: ");
    buf_puts(&message, inner.items[0].message);
    schema_report_text(vm, node, "/propertyNames", "propertyNames", &message);
  }
  schema_errors_deinit(&inner);
  json_decref(name);
  return ok;
}

static bool check_required(struct vm *vm, const struct node *node, const struct object_op *o,
                           const json_t *value, uint64_t seen) {
  bool ok = (seen & o->required_mask) == o->required_mask;
  if (!ok && !vm->errors)
    return false;
  for (uint32_t i = 0; !ok && i < o->count; i++) {
    const struct property *p = &o->properties[i];
    if (p->required_bit && !(seen >> (p->required_bit - 1) & 1))
      report_missing(vm, node, o, value, (struct str){p->name, p->length});
  }
  for (uint32_t i = 0; i < o->required_rest_count; i++) {
    const struct enum_string *name = &o->required_rest[i];
    if (json_object_getn(value, name->text, name->length))
      continue;
    if (!vm->errors)
      return false;
    report_missing(vm, node, o, value, (struct str){name->text, name->length});
    ok = false;
  }
  vm->work -= o->required_rest_count;
  return ok;
}

static bool check_members(struct vm *vm, const struct node *node, const struct object_op *o,
                          const json_t *value, struct marks *marks) {
  json_t *object = (json_t *)value;
  uint64_t seen = 0;
  bool good = true;
  size_t index = 0;
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), index++) {
    const char *key = json_object_iter_key(at);
    size_t length = json_object_iter_key_len(at);
    const json_t *member = json_object_iter_value(at);
    const struct property *p = schema_find_property(vm, o, key, length);
    bool ok = true, evaluated = false;
    if (p) {
      if (p->required_bit)
        seen |= (uint64_t)1 << (p->required_bit - 1);
      if (p->node != NODE_NONE) {
        evaluated = true;
        ok = member_ok(vm, p->node, member, key, length);
      }
    }
    for (uint32_t i = 0; i < o->pattern_count && (ok || vm->errors); i++)
      if (schema_run_pattern(vm, o->patterns[i].pattern, key, length)) {
        evaluated = true;
        ok &= member_ok(vm, o->patterns[i].node, member, key, length);
      }
    if (!evaluated && o->additional != NODE_NONE) {
      evaluated = true;
      if (!o->additional_is_false) {
        ok &= member_ok(vm, o->additional, member, key, length);
      } else {
        ok = false;
        if (vm->errors && vm->work >= 0)
          report_extra(vm, node, o, value, "additionalProperties", (struct str){key, length});
      }
    }
    if (o->names != NODE_NONE && (ok || vm->errors))
      ok &= check_member_name(vm, node, o, key, length);
    if (marks && evaluated)
      marks_set(marks, index);
    if (!ok) {
      if (!vm->errors)
        return false;
      good = false;
    }
  }
  vm->work -= (int64_t)index;
  return check_required(vm, node, o, value, seen) && good;
}

static bool check_dependency(struct vm *vm, const struct node *node, const struct op *op,
                             const json_t *value) {
  const struct dependency_op *o = op->u.dependency;
  bool ok = true;
  if (!json_object_getn(value, o->name, o->length))
    return true;
  for (uint32_t i = 0; i < o->count; i++) {
    if (json_object_getn(value, o->required[i].text, o->required[i].length))
      continue;
    if (!vm->errors)
      return false;
    ok = false;
    struct buf message = {0};
    char suffix[40];
    buf_puts(&message, "the property ");
    schema_quote_text(o->required[i].text, o->required[i].length, &message);
    buf_puts(&message, " is required where there is ");
    schema_quote_text(o->name, o->length, &message);
    snprintf(suffix, sizeof suffix, "/%s", op->keyword);
    schema_report_text(vm, node, suffix, op->keyword, &message);
  }
  vm->work -= o->count;
  return ok;
}

static bool check_unevaluated_members(struct vm *vm, const struct node *node, const struct op *op,
                                      const json_t *value, struct marks *marks) {
  json_t *object = (json_t *)value;
  const struct node *child = &vm->schema->nodes[op->node];
  bool forbids = child->count == 1 && vm->schema->ops[child->first].code == OP_FALSE;
  bool good = true;
  size_t index = 0;
  if (!marks)
    return true;
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at), index++) {
    if (marks_has(marks, index))
      continue;
    const char *key = json_object_iter_key(at);
    size_t length = json_object_iter_key_len(at);
    bool ok = !forbids && member_ok(vm, op->node, json_object_iter_value(at), key, length);
    if (ok)
      continue;
    if (!vm->errors)
      return false;
    if (forbids && vm->work >= 0)
      report_extra(vm, node, NULL, value, "unevaluatedProperties", (struct str){key, length});
    good = false;
  }
  vm->work -= (int64_t)index;
  marks->all = true;
  return good;
}

bool schema_run_object(struct vm *vm, const struct node *node, const struct op *op,
                       const json_t *value, struct marks *marks) {
  if (op->code == OP_DEPENDENT_REQUIRED)
    return check_dependency(vm, node, op, value);
  if (op->code == OP_UNEVALUATED_PROPERTIES)
    return check_unevaluated_members(vm, node, op, value, marks);
  const struct object_op *o = op->u.object;
  if (!o->count && !o->pattern_count && o->additional == NODE_NONE && o->names == NODE_NONE)
    return check_required(vm, node, o, value, 0);
  return check_members(vm, node, o, value, marks);
}

static bool check_items(struct vm *vm, const struct items_op *o, const json_t *value,
                        struct marks *marks) {
  size_t n = json_array_size(value), i = 0;
  bool good = true;
  for (; i < n && i < o->prefix_count; i++)
    if (!member_ok(vm, o->prefix[i], json_array_get(value, i), NULL, i)) {
      if (!vm->errors)
        return false;
      good = false;
    }
  for (size_t k = 0; marks && k < i; k++)
    marks_set(marks, k);
  if (o->rest == NODE_NONE)
    return good;
  for (; i < n; i++)
    if (!member_ok(vm, o->rest, json_array_get(value, i), NULL, i)) {
      if (!vm->errors)
        return false;
      good = false;
    }
  if (marks)
    marks->all = true;
  vm->work -= (int64_t)n;
  return good;
}

static bool check_contains(struct vm *vm, const struct node *node, const struct contains_op *o,
                           const json_t *value, struct marks *marks) {
  struct schema_errors *errors = vm->errors;
  size_t n = json_array_size(value);
  uint64_t found = 0;
  bool all = (marks && o->marks) || o->max != UINT64_MAX;
  vm->errors = NULL; /* an item that does not match is not an error */
  for (size_t i = 0; i < n && (all || found < o->min); i++)
    if (member_ok(vm, o->node, json_array_get(value, i), NULL, i)) {
      found++;
      if (marks && o->marks)
        marks_set(marks, i);
    }
  vm->errors = errors;
  vm->work -= (int64_t)n;
  if (found >= o->min && found <= o->max)
    return true;
  if (!errors || vm->work < 0)
    return false;
  struct buf message = {0};
  bool few = found < o->min;
  if (few && !o->has_min)
    buf_puts(&message, "no item matches what the array must contain");
  else
    buf_printf(&message, "%zu items match what the array must contain, %s %zu are needed",
               (size_t)found, few ? "at least" : "at most", (size_t)(few ? o->min : o->max));
  const char *keyword = "maxContains";
  if (few)
    keyword = o->has_min ? "minContains" : "contains";
  char suffix[40];
  snprintf(suffix, sizeof suffix, "/%s", keyword);
  schema_report_text(vm, node, suffix, keyword, &message);
  return false;
}

static bool check_unevaluated_items(struct vm *vm, const struct op *op, const json_t *value,
                                    struct marks *marks) {
  bool good = true;
  if (!marks)
    return true;
  size_t n = json_array_size(value);
  for (size_t i = 0; i < n; i++) {
    if (marks_has(marks, i) || member_ok(vm, op->node, json_array_get(value, i), NULL, i))
      continue;
    if (!vm->errors)
      return false;
    good = false;
  }
  vm->work -= (int64_t)n;
  marks->all = true;
  return good;
}

bool schema_run_array(struct vm *vm, const struct node *node, const struct op *op,
                      const json_t *value, struct marks *marks) {
  if (op->code == OP_ITEMS)
    return check_items(vm, op->u.items, value, marks);
  if (op->code == OP_CONTAINS)
    return check_contains(vm, node, op->u.contains, value, marks);
  return check_unevaluated_items(vm, op, value, marks);
}
