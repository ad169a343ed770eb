/* Puts errors into words, for a person and for a model that has to correct its output. */
#include "schema/validate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what was meant: names that look alike, and the member that tells alternatives apart --- */

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

uint32_t schema_branches_meant(struct vm *vm, const struct list_op *list, const json_t *value,
                               bool *meant) {
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

/* --- errors in words --- */

static void error_deinit(struct schema_error *error) {
  free(error->path);
  free(error->pointer);
  free(error->schema_path);
  free(error->message);
}

void schema_errors_deinit(struct schema_errors *errs) {
  for (size_t i = 0; i < errs->count; i++)
    error_deinit(&errs->items[i]);
  free(errs->items);
  *errs = (struct schema_errors){0};
}

bool schema_errors_add(struct schema_errors *errors, char *path, char *pointer, char *schema_path,
                       const char *keyword, char *message) {
  struct schema_error error = {path, pointer, schema_path, keyword, message};
  assert(path && pointer && schema_path && keyword && message);
  for (size_t i = 0; i < errors->count; i++)
    if (!strcmp(errors->items[i].pointer, pointer) && !strcmp(errors->items[i].message, message)) {
      error_deinit(&error); /* two parts of a schema may require the same */
      return true;
    }
  if (errors->count == SCHEMA_ERRORS_MAX) {
    error_deinit(&error);
    errors->dropped++;
    return true;
  }
  if (!errors->items)
    errors->items = xmalloc(SCHEMA_ERRORS_MAX * sizeof *errors->items);
  errors->items[errors->count++] = error;
  return true;
}

static bool error_is_digit(char c) {
  return c >= '0' && c <= '9';
}

int schema_pointer_order(const char *a, const char *b) {
  while (*a && *b) {
    if (error_is_digit(*a) && error_is_digit(*b)) {
      size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
      if (na != nb)
        return na < nb ? -1 : 1;
      int order = memcmp(a, b, na);
      if (order != 0)
        return order;
      a += na;
      b += nb;
      continue;
    }
    if (*a == '/' && *b != '/')
      return -1;
    if (*a != '/' && *b == '/')
      return 1;
    if (*a != *b)
      return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
    a++;
    b++;
  }
  return (*a != '\0') - (*b != '\0');
}

void schema_errors_sort(struct schema_errors *errors, size_t from) {
  for (size_t i = from + 1; i < errors->count; i++) {
    struct schema_error moved = errors->items[i];
    size_t at = i;
    for (; at > from && schema_pointer_order(errors->items[at - 1].pointer, moved.pointer) > 0;
         at--)
      errors->items[at] = errors->items[at - 1];
    errors->items[at] = moved;
  }
}

static bool plain_name(const char *key, size_t n) {
  if (!n || (key[0] >= '0' && key[0] <= '9'))
    return false;
  for (size_t i = 0; i < n; i++) {
    char c = key[i];
    if (!(c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
          (c >= 'A' && c <= 'Z')))
      return false;
  }
  return true;
}

/* A path has as many levels as the value; if there are absurdly many, only the innermost are
 * kept. */
enum { PATH_LEVELS_MAX = 300 };

static size_t path_levels(const struct path_step *path, const struct path_step **levels) {
  size_t n = 0;
  for (; path && n < PATH_LEVELS_MAX; path = path->up)
    levels[n++] = path;
  return n;
}

void schema_path_text(const struct path_step *path, struct buf *out) {
  const struct path_step *levels[PATH_LEVELS_MAX];
  size_t n = path_levels(path, levels);
  buf_puts(out, n && levels[n - 1]->up ? "$..." : "$");
  while (n--) {
    const struct path_step *step = levels[n];
    if (!step->key) {
      buf_printf(out, "[%zu]", step->n);
    } else if (plain_name(step->key, step->n)) {
      buf_puts(out, ".");
      buf_append(out, step->key, step->n);
    } else {
      buf_puts(out, "[");
      schema_quote_text(step->key, step->n, out);
      buf_puts(out, "]");
    }
  }
}

void schema_pointer_text(const struct path_step *path, struct buf *out) {
  const struct path_step *levels[PATH_LEVELS_MAX];
  size_t n = path_levels(path, levels);
  buf_append(out, "", 0);
  while (n--) {
    const struct path_step *step = levels[n];
    buf_puts(out, "/");
    if (!step->key)
      buf_printf(out, "%zu", step->n);
    for (size_t i = 0; step->key && i < step->n; i++) {
      char c = step->key[i];
      if (c == '~' || c == '/')
        buf_puts(out, c == '~' ? "~0" : "~1");
      else
        buf_append(out, &c, 1);
    }
  }
}

void schema_entry_text(const struct schema *schema, uint32_t entry, struct buf *out) {
  enum { LEVELS = SCHEMA_NESTING_MAX + 2 };
  const char *levels[LEVELS];
  size_t n = 0;
  buf_append(out, "", 0);
  if (entry >= schema->entry_count)
    return;
  uint32_t document = schema->resources[schema->entries[entry].resource].document;
  for (; schema->entries[entry].parent != entry && n < LEVELS;
       entry = schema->entries[entry].parent)
    levels[n++] = schema->entries[entry].suffix;
  if (document) {
    buf_puts(out, schema->documents[document].uri);
    buf_puts(out, "#");
  }
  while (n--)
    buf_puts(out, levels[n]);
}

void schema_quote_text(const char *bytes, size_t length, struct buf *out) {
  size_t shown = length;
  if (length > SCHEMA_MESSAGE_VALUE_BYTES)
    shown = utf8_floor(bytes, SCHEMA_MESSAGE_VALUE_BYTES);
  buf_puts(out, "\"");
  for (size_t i = 0; i < shown; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c == '"' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c == '\n')
      buf_puts(out, "\\n");
    else if (c == '\t')
      buf_puts(out, "\\t");
    else if (c < 0x20 || c == 0x7f)
      buf_printf(out, "\\u%04x", c);
    else
      buf_append(out, bytes + i, 1);
  }
  buf_puts(out, shown < length ? "...\"" : "\"");
}

static void shown_number(const json_t *value, struct buf *out) {
  char text[40];
  if (json_is_integer(value)) {
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, json_real_value(value));
      if (strtod(text, NULL) == json_real_value(value))
        break;
    }
  }
  buf_puts(out, text);
  if (json_is_real(value) && !strpbrk(text, ".en"))
    buf_puts(out, ".0");
}

static void add_value(const json_t *value, struct buf *out, size_t start, int levels) {
  bool full = out->n - start > SCHEMA_MESSAGE_VALUE_BYTES || !levels;
  switch (json_typeof(value)) {
  case JSON_OBJECT: {
    const char *before = "{";
    for (void *at = json_object_iter((json_t *)value); at && !full;
         at = json_object_iter_next((json_t *)value, at)) {
      buf_puts(out, before);
      schema_quote_text(json_object_iter_key(at), json_object_iter_key_len(at), out);
      buf_puts(out, ":");
      add_value(json_object_iter_value(at), out, start, levels - 1);
      before = ",";
      full = out->n - start > SCHEMA_MESSAGE_VALUE_BYTES;
    }
    if (*before == '{')
      buf_puts(out, "{");
    buf_puts(out, full ? "...}" : "}");
    return;
  }
  case JSON_ARRAY: {
    buf_puts(out, "[");
    for (size_t i = 0, n = json_array_size(value); i < n && !full; i++) {
      buf_puts(out, i ? "," : "");
      add_value(json_array_get(value, i), out, start, levels - 1);
      full = out->n - start > SCHEMA_MESSAGE_VALUE_BYTES;
    }
    buf_puts(out, full ? "...]" : "]");
    return;
  }
  case JSON_STRING:
    schema_quote_text(json_string_value(value), json_string_length(value), out);
    return;
  case JSON_INTEGER:
  case JSON_REAL:
    shown_number(value, out);
    return;
  case JSON_TRUE:
    buf_puts(out, "true");
    return;
  case JSON_FALSE:
    buf_puts(out, "false");
    return;
  case JSON_NULL:
    buf_puts(out, "null");
    return;
  }
}

void schema_value_text(const json_t *value, struct buf *out) {
  add_value(value, out, out->n, 4);
}

void schema_types_text(unsigned types, struct buf *out) {
  static const struct {
    unsigned bits;
    const char *name;
  } names[] = {{1 << JSON_OBJECT, "object"},   {1 << JSON_ARRAY, "array"},
               {1 << JSON_STRING, "string"},   {TYPE_NUMBER, "number"},
               {1 << JSON_INTEGER, "integer"}, {1 << JSON_REAL, "number"},
               {TYPE_BOOLEAN, "boolean"},      {1 << JSON_TRUE, "boolean"},
               {1 << JSON_FALSE, "boolean"},   {1 << JSON_NULL, "null"}};
  bool first = true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if ((types & names[i].bits) == names[i].bits) {
      types &= ~names[i].bits;
      buf_puts(out, first ? "" : " or ");
      buf_puts(out, names[i].name);
      first = false;
    }
  if (first)
    buf_puts(out, "nothing");
}

void schema_found_text(const json_t *value, struct buf *out) {
  schema_types_text(json_is_number(value) ? TYPE_NUMBER : 1u << json_typeof(value), out);
  if (json_is_null(value))
    return;
  buf_puts(out, " ");
  schema_value_text(value, out);
}

void schema_report_text(struct vm *vm, const struct node *node, const char *suffix,
                        const char *keyword, struct buf *message) {
  struct buf path = {0}, pointer = {0}, place = {0};
  schema_path_text(vm->path, &path);
  schema_pointer_text(vm->path, &pointer);
  schema_entry_text(vm->schema, node->entry, &place);
  buf_puts(&place, suffix);
  schema_errors_add(vm->errors, buf_take(&path), buf_take(&pointer), buf_take(&place), keyword,
                    buf_take(message));
}

static void options_text(const json_t *options, const char *keyword, struct buf *out) {
  enum { OPTIONS_SHOWN = 24 };
  if (!strcmp(keyword, "const")) {
    buf_puts(out, " is not ");
    schema_value_text(options, out);
    return;
  }
  size_t n = json_array_size(options);
  buf_puts(out, n == 1 ? " is not " : " is not one of ");
  for (size_t i = 0; i < n; i++) {
    buf_puts(out, i ? ", " : "");
    if (i == OPTIONS_SHOWN) {
      buf_puts(out, "...");
      break;
    }
    schema_value_text(json_array_get(options, i), out);
  }
}

static void count_message(const json_t *value, const struct op *op, struct buf *out) {
  static const char *const units[3][2] = {
      {"character", "characters"}, {"item", "items"}, {"property", "properties"}};
  bool least = op->keyword[1] == 'i'; /* minLength, minItems, minProperties */
  size_t has = json_object_size(value), kind = 2;
  if (json_is_string(value)) {
    has = utf8_count(json_string_value(value), json_string_length(value));
    kind = 0;
    schema_value_text(value, out);
    buf_puts(out, " ");
  } else if (json_is_array(value)) {
    has = json_array_size(value);
    kind = 1;
  }
  buf_printf(out, "has %zu %s, %s %zu %s %s", has, units[kind][has != 1],
             least ? "at least" : "at most", (size_t)op->u.count, op->u.count == 1 ? "is" : "are",
             least ? "needed" : "allowed");
}

static void number_message(const json_t *value, const char *is, const json_t *wanted,
                           struct buf *out) {
  schema_value_text(value, out);
  buf_puts(out, is);
  schema_value_text(wanted, out);
}

static void message_text(struct vm *vm, const struct op *op, const json_t *value, struct buf *out) {
  size_t first = 0, second = 0;
  int64_t work = vm->work;
  switch ((int)op->code) {
  case OP_FALSE:
    if (!vm->path)
      buf_puts(out, "no value is allowed");
    else
      buf_puts(out, vm->path->key ? "the property is not allowed" : "the item is not allowed");
    return;
  case OP_ENUM:
    schema_value_text(value, out);
    options_text(op->u.options->all, op->keyword, out);
    return;
  case OP_MINIMUM:
    number_message(value, " is less than the minimum ", op->u.value, out);
    return;
  case OP_MAXIMUM:
    number_message(value, " is greater than the maximum ", op->u.value, out);
    return;
  case OP_EXCLUSIVE_MINIMUM:
    number_message(value, " is not greater than ", op->u.value, out);
    return;
  case OP_EXCLUSIVE_MAXIMUM:
    number_message(value, " is not less than ", op->u.value, out);
    return;
  case OP_MULTIPLE_OF:
    number_message(value, " is not a multiple of ", op->u.value, out);
    return;
  case OP_PATTERN:
    schema_value_text(value, out);
    buf_puts(out, " does not match the pattern ");
    buf_puts(out, op->text);
    return;
  case OP_FORMAT:
    schema_value_text(value, out);
    buf_printf(out, " is not a valid %s (%s)", op->text, schema_format_form(op->text));
    return;
  case OP_UNIQUE:
    schema_value_unique(value, &first, &second, &work);
    buf_printf(out, "the items %zu and %zu are equal", first, second);
    return;
  case OP_NOT:
    schema_value_text(value, out);
    buf_puts(out, " matches what is forbidden by \"not\"");
    return;
  default:
    count_message(value, op, out);
    return;
  }
}

void schema_report(struct vm *vm, const struct node *node, const struct op *op,
                   const json_t *value) {
  struct buf message = {0};
  if (vm->work < 0)
    return;
  if (!op) {
    buf_puts(&message, "expected ");
    schema_types_text(node->types & ~(unsigned)TYPE_INTEGRAL, &message);
    buf_puts(&message, ", found ");
    schema_found_text(value, &message);
    schema_report_text(vm, node, "/type", "type", &message);
    return;
  }
  char suffix[40];
  snprintf(suffix, sizeof suffix, "%s%s", *op->keyword ? "/" : "", op->keyword);
  message_text(vm, op, value, &message);
  schema_report_text(vm, node, suffix, op->keyword, &message);
}
