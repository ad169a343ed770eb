/* Interprets a program: checks a value against a node. */
#include "schema/validate.h"

#include <assert.h>
#include <string.h>

/* --- which members were evaluated, for unevaluatedProperties and unevaluatedItems --- */

static void schema_marks_init(struct vm *vm, struct marks *marks, const json_t *value) {
  *marks = (struct marks){0};
  marks->count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
  if (marks->count <= 64)
    return;
  size_t words = (marks->count + 63) / 64;
  vm->work -= (int64_t)(words / 8);
  marks->many = xcalloc(words, sizeof *marks->many);
}

static void schema_marks_deinit(struct marks *marks) {
  free(marks->many);
  marks->many = NULL;
}

static void schema_marks_merge(struct marks *into, const struct marks *from) {
  into->all = into->all || from->all;
  into->few |= from->few;
  if (into->many)
    for (size_t i = 0; i < (into->count + 63) / 64; i++)
      into->many[i] |= from->many[i];
}

/* --- what was meant: names that look alike, and the member that tells alternatives apart --- */

enum { ALIKE_BYTES_MAX = 40, NAMES_LOOKED_AT = 64 };

/* Keeps lower-case letters, digits and everything beyond ASCII, so that firstName and first_name
 * are one name. Returns 0 if it is too long. */
static size_t plain_of(struct str name, char out[ALIKE_BYTES_MAX]) {
  size_t n = 0;
  for (size_t i = 0; i < name.n; i++) {
    char c = name.p[i];
    bool capital = c >= 'A' && c <= 'Z';
    bool kept = capital || (c >= 'a' && c <= 'z') || str_is_digit(c) || (unsigned char)c >= 0x80;
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

/* Returns a property that `value` lacks and that `name` may have meant, a letter or two apart or
 * spelled with other separators; NULL: none. */
static const struct property *schema_missing_like(struct vm *vm, const struct object_op *o,
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

/* Does the same for a missing `name`, among the undeclared members; p NULL: none. */
static struct str schema_unknown_like(struct vm *vm, const struct object_op *o, const json_t *value,
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
  bool more, has_member;
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

/* Reports the values that the branches of anyOf or oneOf allow for one member, if no branch holds,
 * all fix that member's value, and the member has none of them. */
static bool schema_report_discriminator(struct vm *vm, const struct node *node, const struct op *op,
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
  schema_report_text(vm, node, op->keyword, &message);
  vm->path = step.up;
  return true;
}

enum { PLACES_MAX = 16 }; /* discriminators looked at in one value */

struct fixed_members { /* members of the value that branches fix */
  struct fixed_member {
    const json_t *object;
    struct str name;
    uint32_t weight; /* twice the branches that fix it, and 1 for a const */
  } items[PLACES_MAX];
  size_t count;
  uint32_t branch_count;
  enum fixed { FIXED_NOT, FIXED_SO, FIXED_OTHERWISE } * of; /* [place * branch_count + branch] */
};

static void place_add(struct vm *vm, struct fixed_members *places, uint32_t branch,
                      const json_t *object, const struct property *p, const struct op *values) {
  struct fixed_member new = {object, {p->name, p->length}, 0};
  size_t at = 0;
  while (at < places->count &&
         (places->items[at].object != object || !str_eq(places->items[at].name, new.name)))
    at++;
  if (at == PLACES_MAX)
    return;
  if (at == places->count)
    places->items[places->count++] = new;
  enum fixed *fixed = &places->of[at * places->branch_count + branch];
  places->items[at].weight += *fixed == FIXED_NOT ? 2 : 0;
  places->items[at].weight |= strcmp(values->keyword, "const") == 0;
  struct schema_errors *errors = vm->errors;
  vm->errors = NULL;
  bool so = schema_run_node(vm, p->node, json_object_getn(object, p->name, p->length), NULL);
  vm->errors = errors;
  *fixed = so && *fixed != FIXED_OTHERWISE ? FIXED_SO : FIXED_OTHERWISE;
}

static void places_of(struct vm *vm, struct fixed_members *places, uint32_t branch, uint32_t index,
                      const json_t *object, int levels) {
  const struct node *node = &vm->schema->nodes[index];
  for (uint32_t i = 0; i < node->count && levels > 0 && --vm->work >= 0; i++) {
    const struct op *op = &vm->schema->ops[node->first + i];
    if (op->code == OP_REF)
      places_of(vm, places, branch, op->node, object, levels - 1);
    for (uint32_t k = 0; op->code == OP_ALL_OF && k < op->u.list->count; k++)
      places_of(vm, places, branch, op->u.list->nodes[k], object, levels - 1);
    for (uint32_t k = 0; op->code == OP_OBJECT && k < op->u.object->count; k++) {
      const struct property *p = &op->u.object->properties[k];
      const json_t *member = json_object_getn(object, p->name, p->length);
      const struct op *values = member ? fixed_values(vm->schema, p->node, FOLLOWED_MAX) : NULL;
      vm->work--;
      if (values)
        place_add(vm, places, branch, object, p, values);
      else if (json_is_object(member) && p->node != NODE_NONE)
        places_of(vm, places, branch, p->node, member, levels - 1);
    }
  }
}

/* Keeps of the branches with meant[i] set those that the values of discriminators name: members of
 * `value`, or of objects in it, for which branches fix values. Those that most branches fix come
 * first; one that would leave no branch says nothing. Returns how many branches are left. */
static uint32_t schema_branches_meant(struct vm *vm, const struct list_op *list,
                                      const json_t *value, bool *meant) {
  struct fixed_members places = {.branch_count = list->count};
  uint32_t left = 0;
  places.of = xcalloc((size_t)PLACES_MAX * list->count, sizeof *places.of);
  for (uint32_t i = 0; i < list->count; i++) {
    left += meant[i];
    if (meant[i])
      places_of(vm, &places, i, list->nodes[i], value, FOLLOWED_MAX);
  }
  for (size_t round = 0; round < places.count; round++) {
    size_t best = 0;
    for (size_t i = 1; i < places.count; i++)
      best = places.items[i].weight > places.items[best].weight ? i : best;
    const enum fixed *of = &places.of[best * list->count];
    uint32_t named = 0;
    for (uint32_t i = 0; i < list->count; i++)
      named += meant[i] && of[i] == FIXED_SO;
    for (uint32_t i = 0; named > 0 && i < list->count; i++)
      meant[i] = meant[i] && of[i] == FIXED_SO;
    left = named > 0 ? named : left;
    places.items[best].weight = 0;
  }
  free(places.of);
  return left;
}

/* Counts the members that a branch requires and the object has, and those that it has not. */
static void count_required(struct vm *vm, uint32_t index, const json_t *object, int levels,
                           uint32_t *there, uint32_t *missing) {
  const struct node *node = &vm->schema->nodes[index];
  for (uint32_t i = 0; i < node->count && levels > 0 && --vm->work >= 0; i++) {
    const struct op *op = &vm->schema->ops[node->first + i];
    if (op->code == OP_REF)
      count_required(vm, op->node, object, levels - 1, there, missing);
    for (uint32_t k = 0; op->code == OP_ALL_OF && k < op->u.list->count; k++)
      count_required(vm, op->u.list->nodes[k], object, levels - 1, there, missing);
    for (uint32_t k = 0; op->code == OP_OBJECT && k < op->u.object->count; k++) {
      const struct property *p = &op->u.object->properties[k];
      bool has = p->required_bit && json_object_getn(object, p->name, p->length);
      *there += has;
      *missing += p->required_bit && !has;
      vm->work--;
    }
  }
}

/* If the object has all members that some of the branches require, those are meant, and none of
 * the branches that miss one: {"get": ...} against {"put": ...}. Returns how many are left. */
static uint32_t keep_with_required(struct vm *vm, const struct list_op *list, const json_t *object,
                                   bool *meant) {
  enum { MISSES, HAS, NEEDS_NONE } *of = xcalloc(list->count, sizeof *of);
  uint32_t left = 0, having = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    uint32_t there = 0, missing = 0;
    if (meant[i])
      count_required(vm, list->nodes[i], object, FOLLOWED_MAX, &there, &missing);
    if (missing == 0)
      of[i] = there > 0 ? HAS : NEEDS_NONE;
    having += meant[i] && of[i] == HAS;
  }
  for (uint32_t i = 0; i < list->count; i++) {
    meant[i] = meant[i] && (having == 0 || of[i] != MISSES);
    left += meant[i];
  }
  free(of);
  return left;
}

/* --- allOf, anyOf, oneOf, not and if ---
 *
 * They apply several schemas to one value, and explain why they do not agree. */

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

enum {
  BRANCHES_SHOWN = 16,      /* alternatives examined for an explanation, whatever the work */
  EXPLAIN_WORK_MAX = 200000 /* units of work for examining more of them */
};

struct closest {
  uint32_t branch;
  size_t errors;
  struct buf line;
  uint32_t fitting; /* branches that accept the members with fixed values (const, enum) */
  uint32_t fitting_branch;
};

static void try_branch(struct vm *vm, const struct list_op *list, uint32_t i, const json_t *value,
                       struct closest *closest) {
  struct schema_errors *outer = vm->errors, inner = {0};
  vm->errors = &inner;
  schema_run_node(vm, list->nodes[i], value, NULL);
  vm->errors = outer;
  bool fits = true;
  for (size_t k = 0; k < inner.count; k++)
    fits = fits && !str_among(str_from(inner.items[k].keyword), "const enum type");
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
  int64_t work = vm->work;
  bool *meant = xcalloc(list->count, sizeof *meant);
  for (uint32_t i = 0; i < list->count; i++) {
    const struct node *branch = &vm->schema->nodes[list->nodes[i]];
    meant[i] = branch->types & type;
    candidates += meant[i];
    types |= meant[i] ? 0 : branch->types;
  }
  struct buf message = {0};
  if (!candidates) {
    buf_puts(&message, "expected ");
    schema_types_text(types, &message);
    buf_puts(&message, ", found ");
    schema_found_text(value, &message);
    schema_report_text(vm, node, op->keyword, &message);
    free(meant);
    return;
  }
  struct closest closest = {0};
  if (candidates > 1 && json_is_object(value) && schema_report_discriminator(vm, node, op, value)) {
    free(meant);
    return;
  }
  if (candidates > 1 && json_is_object(value))
    candidates = schema_branches_meant(vm, list, value, meant);
  if (candidates > 1 && json_is_object(value))
    candidates = keep_with_required(vm, list, value, meant);
  for (uint32_t i = 0, tried = 0; i < list->count; i++) {
    if (!meant[i])
      continue;
    last = i;
    if (candidates > 1 && (tried++ < BRANCHES_SHOWN || work - vm->work < EXPLAIN_WORK_MAX))
      try_branch(vm, list, i, value, &closest);
  }
  free(meant);
  if (candidates == 1 || closest.fitting == 1) {
    schema_run_node(vm, list->nodes[candidates == 1 ? last : closest.fitting_branch], value, NULL);
  } else {
    buf_printf(&message, "matches none of the %u alternatives", (unsigned)list->count);
    if (closest.line.n) {
      buf_puts(&message, "; closest is number ");
      buf_append(&message, closest.line.p, closest.line.n);
    }
    schema_report_text(vm, node, op->keyword, &message);
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
      struct buf message = buf_of("matches the alternatives %u and %u, but must match exactly one",
                                  (unsigned)first + 1, (unsigned)i + 1);
      schema_report_text(vm, node, "oneOf", &message);
    }
    return false;
  }
  if (!found && vm->errors && vm->work >= 0)
    explain_none(vm, node, op, value);
  return found == 1;
}

static bool if_holds(struct vm *vm, const struct if_op *o, const json_t *value,
                     struct marks *marks) {
  if (o->key == NULL || marks != NULL || !json_is_object(value))
    return run_branch(vm, o->condition, value, marks);
  const json_t *member = json_object_get(value, o->key);
  return json_is_string(member) &&
         str_eq((struct str){json_string_value(member), json_string_length(member)}, o->word);
}

static bool schema_run_combination(struct vm *vm, const struct node *node, const struct op *op,
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

/* --- ops that walk over the members of an object or the items of an array --- */

const struct property *schema_find_property(const struct object_op *o, const char *key,
                                            size_t length, int64_t *work) {
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
    --*work;
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
  schema_report_text(vm, node, "required", &message);
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
  buf_puts(&message, "the property ");
  schema_quote_text(key.p, key.n, &message);
  buf_puts(&message, " is not allowed");
  if (o)
    add_allowed(vm, o, value, key, &message);
  schema_report_text(vm, node, keyword, &message);
}

static bool check_member_name(struct vm *vm, const struct node *node, const struct object_op *o,
                              const char *key, size_t n) {
  struct schema_errors *outer = vm->errors, inner = {0};
  json_auto_t *name = json_stringn_nocheck(key, n);
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
    schema_report_text(vm, node, "propertyNames", &message);
  }
  schema_errors_deinit(&inner);
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

/* Notes that a limit was reached; `limit` (static) says which. Returns false. */
static bool schema_run_trouble(struct vm *vm, const char *limit) {
  if (vm->trouble == SCHEMA_OK) {
    vm->trouble = SCHEMA_TOO_COMPLEX;
    vm->limit = limit;
  }
  vm->work = -1; /* every further node gives up at once */
  return false;
}

static bool schema_run_pattern(struct vm *vm, const struct pattern *pattern, const char *text,
                               size_t length) {
  uint64_t before = vm->scratch.cost;
  if (vm->work < 0) /* all keys and texts share the limit of the whole check */
    return schema_run_trouble(vm, "the check takes too much work");
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
    const struct property *p = schema_find_property(o, key, length, &vm->work);
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
    buf_puts(&message, "the property ");
    schema_quote_text(o->required[i].text, o->required[i].length, &message);
    buf_puts(&message, " is required where there is ");
    schema_quote_text(o->name, o->length, &message);
    schema_report_text(vm, node, op->keyword, &message);
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

static bool schema_run_object(struct vm *vm, const struct node *node, const struct op *op,
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
  schema_report_text(vm, node, keyword, &message);
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

/* --- the program --- */

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
  const char *text = json_string_value(value);
  size_t first, second, bytes = json_string_length(value);
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
  case OP_MIN_LENGTH: /* a character has one to four bytes */
    return bytes / 4 >= op->u.count ||
           (bytes >= op->u.count && utf8_count(text, bytes) >= op->u.count);
  case OP_MAX_LENGTH:
    return bytes <= op->u.count || utf8_count(text, bytes) <= op->u.count;
  case OP_PATTERN:
    return schema_run_pattern(vm, op->u.pattern, text, bytes);
  case OP_FORMAT:
    vm->work -= 4 + (int64_t)(bytes / 8);
    return schema_format_valid(op->u.format, text, bytes);
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
    return check_items(vm, op->u.items, value, marks);
  case OP_CONTAINS:
    return check_contains(vm, node, op->u.contains, value, marks);
  case OP_UNEVALUATED_ITEMS:
    return check_unevaluated_items(vm, op, value, marks);
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
  AUTO(schema_marks_deinit) struct marks marks;
  schema_marks_init(vm, &marks, value);
  bool ok = run_ops(vm, node, value, &marks);
  if (ok && outer)
    schema_marks_merge(outer, &marks);
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
