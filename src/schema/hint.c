/* Guesses what was meant: names that look alike, and the member that tells alternatives apart. */
#include "schema/run.h"

#include <stdio.h>

enum { ALIKE_BYTES_MAX = 40, NAMES_LOOKED_AT = 64 };

/* Keeps lower-case letters, digits and everything beyond ASCII, so that firstName and first_name
 * are one name. Returns 0 if it is too long. */
static size_t plain_of(struct str name, char out[ALIKE_BYTES_MAX]) {
  size_t n = 0;
  for (size_t i = 0; i < name.n; i++) {
    char c = name.p[i];
    bool capital = c >= 'A' && c <= 'Z';
    bool kept =
        capital || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
    if (kept && n == ALIKE_BYTES_MAX)
      return 0;
    if (kept)
      out[n++] = (char)(capital ? c | 32 : c);
  }
  return n;
}

static size_t lesser(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Counts the letters to change, omit, insert or swap with a neighbour. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m) {
  size_t rows[3][ALIKE_BYTES_MAX + 1]; /* this row of the matrix and the two before */
  for (size_t k = 0; k <= m; k++)
    rows[0][k] = k;
  for (size_t i = 1; i <= n; i++) {
    size_t *row = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t k = 1; k <= m; k++) {
      row[k] = lesser(before[k - 1] + (a[i - 1] != b[k - 1]), lesser(before[k], row[k - 1]) + 1);
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        row[k] = lesser(row[k], earlier[k - 2] + 1);
    }
  }
  return rows[n % 3][m];
}

static bool names_alike(struct vm *vm, struct str a, struct str b) {
  char x[ALIKE_BYTES_MAX], y[ALIKE_BYTES_MAX];
  size_t n = plain_of(a, x), m = plain_of(b, y);
  vm->work -= 1 + (int64_t)(n * m / 8);
  if (n == 0 || m == 0)
    return false;
  size_t shorter = lesser(n, m);
  return edit_distance(x, n, y, m) <= (shorter < 3 ? 0 : 1 + shorter / 6);
}

/* Returns false for errors that are only counted: nobody reads their hints. */
static bool wants_hints(const struct vm *vm) {
  return vm->errors && vm->errors->count < SCHEMA_ERRORS_MAX && vm->work >= 0;
}

const struct property *schema_missing_like(struct vm *vm, const struct object_op *o,
                                           const json_t *value, struct str name) {
  for (uint32_t i = 0; i < o->count && i < NAMES_LOOKED_AT && wants_hints(vm); i++) {
    const struct property *p = &o->properties[i];
    if (names_alike(vm, name, (struct str){p->name, p->length}) &&
        !json_object_getn(value, p->name, p->length))
      return p;
  }
  return NULL;
}

static bool is_declared(const struct object_op *o, struct str name) {
  for (uint32_t i = 0; i < o->count; i++)
    if (str_eq(name, (struct str){o->properties[i].name, o->properties[i].length}))
      return true;
  return false;
}

struct str schema_unknown_like(struct vm *vm, const struct object_op *o, const json_t *value,
                               struct str name) {
  json_t *object = (json_t *)value;
  int left = NAMES_LOOKED_AT;
  for (void *at = json_object_iter(object); at && left > 0 && wants_hints(vm);
       at = json_object_iter_next(object, at), left--) {
    struct str key = {json_object_iter_key(at), json_object_iter_key_len(at)};
    if (names_alike(vm, name, key) && !is_declared(o, key))
      return key;
  }
  return (struct str){NULL, 0};
}

/* --- discriminators --- */

enum { FOLLOWED_MAX = 8, KINDS_SHOWN = 24 };

/* Finds the OP_ENUM that fixes the values of a node or of its target; NULL if there is none. */
static const struct op *fixed_values(const struct schema *s, uint32_t index, int levels) {
  if (index == NODE_NONE || levels == 0)
    return NULL;
  const struct node *node = &s->nodes[index];
  for (uint32_t i = 0; i < node->count; i++) {
    const struct op *op = &s->ops[node->first + i];
    if (op->code == OP_ENUM)
      return op;
    if (op->code == OP_REF)
      return fixed_values(s, op->node, levels - 1);
  }
  return NULL;
}

struct discriminator { /* a member of a branch that has fixed values */
  struct str name;
  const struct op *values;
  bool required;
};

/* Finds the first discriminator of a branch, or the one called `name` (p NULL: any). */
static bool find_discriminator(struct vm *vm, uint32_t index, struct str name, int levels,
                               struct discriminator *found) {
  const struct schema *s = vm->schema;
  const struct node *node = &s->nodes[index];
  for (uint32_t i = 0; i < node->count && levels > 0 && vm->work >= 0; i++) {
    const struct op *op = &s->ops[node->first + i];
    if (op->code == OP_REF && find_discriminator(vm, op->node, name, levels - 1, found))
      return true;
    for (uint32_t k = 0; op->code == OP_ALL_OF && k < op->u.list->count; k++)
      if (find_discriminator(vm, op->u.list->nodes[k], name, levels - 1, found))
        return true;
    for (uint32_t k = 0; op->code == OP_OBJECT && k < op->u.object->count; k++) {
      const struct property *p = &op->u.object->properties[k];
      struct str own = {p->name, p->length};
      vm->work--;
      if (name.p && !str_eq(name, own))
        continue;
      const struct op *values = fixed_values(s, p->node, FOLLOWED_MAX);
      *found = (struct discriminator){own, values, p->required_bit != 0};
      if (values)
        return true;
    }
  }
  return false;
}

struct kinds { /* collects the values of all branches, each once */
  const json_t *shown[KINDS_SHOWN];
  size_t count;
  bool more;
  bool has_member;
};

static void kinds_add(struct vm *vm, struct kinds *kinds, const json_t *value,
                      const json_t *member) {
  if (member && schema_value_equal(member, value, &vm->work))
    kinds->has_member = true;
  if (kinds->more)
    return;
  for (size_t i = 0; i < kinds->count; i++)
    if (schema_value_equal(kinds->shown[i], value, &vm->work))
      return;
  if (kinds->count == KINDS_SHOWN)
    kinds->more = true;
  else
    kinds->shown[kinds->count++] = value;
}

static void kinds_add_all(struct vm *vm, struct kinds *kinds, const struct op *values,
                          const json_t *member) {
  const json_t *all = values->u.options->all;
  if (!strcmp(values->keyword, "const")) {
    kinds_add(vm, kinds, all, member);
    return;
  }
  for (size_t i = 0; i < json_array_size(all) && vm->work >= 0; i++)
    kinds_add(vm, kinds, json_array_get(all, i), member);
}

static void kinds_text(const struct kinds *kinds, struct buf *out) {
  for (size_t i = 0; i < kinds->count; i++) {
    buf_puts(out, i ? ", " : "");
    schema_value_text(kinds->shown[i], out);
  }
  buf_puts(out, kinds->more ? ", ..." : "");
}

bool schema_report_discriminator(struct vm *vm, const struct node *node, const struct op *op,
                                 const json_t *value) {
  const struct schema *s = vm->schema;
  const struct list_op *list = op->u.list;
  struct discriminator first = {.name = {NULL, 0}}, other;
  struct kinds kinds = {.count = 0};
  const json_t *member = NULL;
  bool required = true;
  for (uint32_t i = 0; i < list->count && wants_hints(vm); i++) {
    if (!(s->nodes[list->nodes[i]].types & 1 << JSON_OBJECT))
      continue;
    if (!find_discriminator(vm, list->nodes[i], first.name, FOLLOWED_MAX, &other))
      return false;
    if (first.name.p == NULL) {
      first = other;
      member = json_object_getn(value, first.name.p, first.name.n);
    }
    required = required && other.required;
    kinds_add_all(vm, &kinds, other.values, member);
  }
  if (first.name.p == NULL || kinds.has_member || (!member && !required) || !wants_hints(vm))
    return false;
  struct buf message = {0};
  struct path_step step = {vm->path, first.name.p, first.name.n};
  char suffix[40];
  if (member) {
    vm->path = &step;
    schema_value_text(member, &message);
    buf_puts(&message, kinds.count == 1 ? " is not " : " is not one of ");
    kinds_text(&kinds, &message);
  } else {
    buf_puts(&message, "the required property ");
    schema_quote_text(first.name.p, first.name.n, &message);
    buf_puts(&message, " is missing (one of ");
    kinds_text(&kinds, &message);
    buf_puts(&message, ")");
  }
  snprintf(suffix, sizeof suffix, "/%s", op->keyword);
  schema_report_text(vm, node, suffix, op->keyword, &message);
  vm->path = step.up;
  return true;
}
