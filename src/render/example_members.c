/* Makes arrays and objects for examples: one item, every field; fewer where that does not fit. */
#include "format/json_value.h"
#include "render/example_internal.h"
#include "render/pattern_sample.h"

#include <stdio.h>

/* --- arrays --- */

struct array_wanted {
  size_t least, most;
  size_t prefix;
  bool unique;
};

static struct array_wanted array_wanted(const struct outline *outline) {
  struct array_wanted w = {.most = SIZE_MAX, .prefix = outline_prefix_count(outline)};
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code == OP_MIN_ITEMS && op->u.count > w.least)
      w.least = (size_t)op->u.count;
    if (op->code == OP_MAX_ITEMS && op->u.count < w.most)
      w.most = (size_t)op->u.count;
    w.unique |= op->code == OP_UNIQUE;
  }
  return w;
}

static bool members_hold(const json_t *array, const json_t *value) {
  for (size_t i = 0, n = json_array_size(array); i < n; i++)
    if (json_same(json_array_get(array, i), value))
      return true;
  return false;
}

/* Makes an item; one that is not in the array yet, if they must differ. */
static json_t *make_item(struct maker *m, struct place place, const json_t *array, bool unique,
                         unsigned variant) {
  json_t *item = NULL;
  for (unsigned i = 0; m->walk.status == SCHEMA_OK; i++) {
    item = example_place(m, place, variant + i);
    if (!item || !unique || !members_hold(array, item) || i > json_array_size(array))
      break;
    json_decref(item);
    item = NULL;
    if (i == 0) /* the others are taken by the items before, most likely */
      i = json_array_size(array) > 1 ? (unsigned)json_array_size(array) - 2 : 0;
  }
  return item;
}

struct members_filling {
  struct maker *m;
  const struct outline *outline;
  struct array_wanted wanted;
  json_t *array;
  uint32_t contains;  /* index of the op whose items are being made */
  uint64_t contained; /* how many of them so far */
  unsigned *variant;
};

static const struct contains_op *next_contains(struct members_filling *f) {
  for (; f->contains < f->outline->op_count; f->contains++) {
    const struct op *op = f->outline->ops[f->contains];
    if (op->code == OP_CONTAINS && f->contained < op->u.contains->min)
      return op->u.contains;
    f->contained = 0;
  }
  return NULL;
}

/* Makes the next item, with what the array must contain if that fits there. */
static json_t *next_item(struct members_filling *f, bool needed) {
  struct maker *m = f->m;
  size_t index = json_array_size(f->array);
  struct place place = outline_item(&m->walk, f->outline, index);
  const struct contains_op *contains = next_contains(f);
  bool strict = m->strict;
  json_t *item = NULL;
  if (contains) {
    struct place both = outline_join(&m->walk, place, outline_place(&m->walk, contains->node));
    item = make_item(m, both, f->array, f->wanted.unique, 0);
    if (item)
      f->contained++;
  }
  if (item)
    return item;
  m->strict = strict || !needed;
  if (*f->variant && !f->wanted.unique) {
    item = make_item(m, place, f->array, false, *f->variant);
    *f->variant = item ? 0 : *f->variant;
  }
  if (!item)
    item = make_item(m, place, f->array, f->wanted.unique, f->wanted.unique ? *f->variant : 0);
  if (item && f->wanted.unique)
    *f->variant = 0;
  m->strict = strict;
  return item;
}

/* Makes an array of `count` items, or of more if what it must contain needs them. */
static json_t *members_fill(struct maker *m, const struct outline *outline,
                            struct array_wanted wanted, size_t count, unsigned *variant) {
  struct members_filling f = {m, outline, wanted, json_array(), 0, 0, variant};
  while (m->walk.status == SCHEMA_OK) {
    size_t have = json_array_size(f.array);
    if (have >= wanted.most || have >= EXAMPLE_ITEMS_MAX || (have >= count && !next_contains(&f)))
      break;
    json_t *item = next_item(&f, have < wanted.least);
    if (!item)
      break;
    json_array_append_new(f.array, item);
  }
  return f.array;
}

json_t *example_array(struct maker *m, struct place place, const struct outline *outline,
                      unsigned variant) {
  struct array_wanted w = array_wanted(outline);
  size_t usual = w.prefix > 1 ? w.prefix : 1;
  size_t counts[] = {w.least > usual ? w.least : usual, w.prefix, w.least, w.least + 1, 2};
  if (w.least > w.most || w.least > EXAMPLE_ITEMS_MAX)
    return NULL;
  for (size_t i = 0; i < sizeof counts / sizeof *counts && m->walk.status == SCHEMA_OK; i++) {
    unsigned left = variant;
    json_t *array = members_fill(m, outline, w, counts[i], &left);
    json_t *value = array ? example_keep(m, place, array, &left) : NULL;
    if (value)
      return value;
  }
  return NULL;
}

/* --- objects --- */

enum { EVERY_FIELD = -1, NEEDED_FIELDS = -2, FIELDS_LEFT_OUT = 24 };

struct members_building {
  struct maker *m;
  const struct outline *outline;
  json_t *object;
  size_t least, most;
  unsigned variant;
  int without; /* the field left out, or one of the above */
};

static bool members_allow_name(struct members_building *b, const char *name, size_t length) {
  struct walk *walk = &b->m->walk;
  bool ok = true;
  json_t *value = json_stringn(name, length);
  if (!value) /* not UTF-8 */
    return false;
  for (uint32_t i = 0; ok && i < b->outline->op_count; i++) {
    const struct op *op = b->outline->ops[i];
    if (op->code == OP_OBJECT && op->u.object->names != NODE_NONE)
      ok = outline_accepts(walk, outline_place(walk, op->u.object->names), value);
  }
  json_decref(value);
  return ok;
}

/* Adds a member. Returns false if it could not be made; nothing was added then. */
static bool add_member(struct members_building *b, const char *name, size_t length,
                       struct place place, bool needed) {
  struct maker *m = b->m;
  bool strict = m->strict;
  json_t *value = NULL;
  if (m->walk.status != SCHEMA_OK || (!needed && m->made > EXAMPLE_VALUES_USUAL) ||
      !members_allow_name(b, name, length))
    return false;
  m->strict = strict || !needed;
  if (b->variant) {
    value = example_place(m, place, b->variant);
    b->variant = value ? 0 : b->variant;
  }
  if (!value)
    value = example_place(m, place, 0);
  m->strict = strict;
  if (!value)
    return false;
  json_object_setn_new(b->object, name, length, value);
  return m->walk.status == SCHEMA_OK;
}

static bool has_member(const struct members_building *b, const char *name, size_t length) {
  return json_object_getn(b->object, name, length) != NULL;
}

static bool members_add_fields(struct members_building *b) {
  const struct outline *o = b->outline;
  size_t needed = 0;
  for (uint32_t i = 0; i < o->field_count; i++)
    needed += o->fields[i].required;
  for (uint32_t i = 0; i < o->field_count; i++) {
    const struct outline_field *field = &o->fields[i];
    bool room = json_object_size(b->object) + needed < b->most;
    bool wanted = field->required || (b->without != NEEDED_FIELDS && b->without != (int)i && room);
    needed -= field->required;
    if (wanted && !add_member(b, field->name, field->length, field->place, field->required) &&
        field->required)
      return false;
  }
  return true;
}

/* Adds what the members that are there make necessary. */
static bool add_dependent(struct members_building *b) {
  struct walk *walk = &b->m->walk;
  for (bool added = true; added && walk->status == SCHEMA_OK;) {
    added = false;
    for (uint32_t i = 0; i < b->outline->op_count; i++) {
      const struct op *op = b->outline->ops[i];
      const struct dependency_op *d = op->u.dependency;
      if (op->code != OP_DEPENDENT_REQUIRED || !has_member(b, d->name, d->length))
        continue;
      for (uint32_t k = 0; k < d->count; k++) {
        const char *name = d->required[k].text;
        size_t length = d->required[k].length;
        if (has_member(b, name, length))
          continue;
        if (!add_member(b, name, length, outline_member(walk, b->outline, name, length), true))
          return false;
        added = true;
      }
    }
  }
  return walk->status == SCHEMA_OK;
}

/* Adds a member whose name matches a pattern. */
static bool add_matching(struct members_building *b, const struct pattern_property *p) {
  struct walk *walk = &b->m->walk;
  struct buf name = {0};
  bool added = false;
  for (uint32_t seed = 0; !added && seed < 20 && walk->status == SCHEMA_OK; seed++) {
    name.n = 0;
    buf_append(&name, "", 0);
    if (!pattern_sample(p->text, strlen(p->text), seed, 0, 1000, &name))
      continue;
    if (!has_member(b, name.p, name.n))
      added =
          add_member(b, name.p, name.n, outline_member(walk, b->outline, name.p, name.n), false);
  }
  buf_deinit(&name);
  return added;
}

/* Adds a member with a name of no meaning: "<key>", or one that the schema of names admits. */
static bool add_other(struct members_building *b, unsigned number) {
  struct walk *walk = &b->m->walk;
  char plain[32];
  struct place names = {NULL, 0};
  snprintf(plain, sizeof plain, number ? "<key %u>" : "<key>", number + 1);
  for (uint32_t i = 0; i < b->outline->op_count; i++)
    if (b->outline->ops[i]->code == OP_OBJECT)
      names = outline_join(walk, names, outline_place(walk, b->outline->ops[i]->u.object->names));
  if (!names.count || members_allow_name(b, plain, strlen(plain)))
    return add_member(b, plain, strlen(plain),
                      outline_member(walk, b->outline, plain, strlen(plain)), false);
  for (unsigned i = 0; i < 40 && walk->status == SCHEMA_OK; i++) {
    json_t *name = example_place(b->m, names, i);
    const char *text = json_string_value(name);
    size_t length = json_string_length(name);
    bool fresh = text && !has_member(b, text, length);
    bool added =
        fresh && add_member(b, text, length, outline_member(walk, b->outline, text, length), false);
    json_decref(name);
    if (added)
      return true;
    if (!text)
      return false;
  }
  return false;
}

/* Adds one member for each kind of name that the schema describes, if it names no field; and as
 * many as there must be. */
static void add_others(struct members_building *b) {
  const struct outline *o = b->outline;
  bool describe = !o->field_count && b->without == EVERY_FIELD;
  for (uint32_t i = 0; i < o->op_count; i++) {
    if (o->ops[i]->code != OP_OBJECT)
      continue;
    const struct object_op *object = o->ops[i]->u.object;
    for (uint32_t k = 0; k < object->pattern_count; k++)
      if ((describe || json_object_size(b->object) < b->least) &&
          json_object_size(b->object) < b->most)
        add_matching(b, &object->patterns[k]);
    struct place other = outline_place(&b->m->walk, object->additional);
    if (describe && other.count && !json_object_size(b->object) && b->most)
      add_other(b, 0);
  }
  for (unsigned i = 0; i < EXAMPLE_ITEMS_MAX && b->m->walk.status == SCHEMA_OK; i++)
    if (json_object_size(b->object) >= b->least || (!add_other(b, i) && i > 2))
      break;
}

static json_t *members_build(struct maker *m, const struct outline *outline, int without,
                             unsigned *variant) {
  struct members_building b = {m, outline, json_object(), 0, SIZE_MAX, *variant, without};
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code == OP_MIN_PROPERTIES && op->u.count > b.least)
      b.least = (size_t)op->u.count;
    if (op->code == OP_MAX_PROPERTIES && op->u.count < b.most)
      b.most = (size_t)op->u.count;
  }
  bool ok = b.least <= EXAMPLE_ITEMS_MAX && members_add_fields(&b) && add_dependent(&b);
  if (ok)
    add_others(&b);
  if (!ok) {
    json_decref(b.object);
    return NULL;
  }
  *variant = b.variant;
  return b.object;
}

json_t *example_object(struct maker *m, struct place place, const struct outline *outline,
                       unsigned variant) {
  int last = outline->field_count < FIELDS_LEFT_OUT ? (int)outline->field_count : FIELDS_LEFT_OUT;
  for (int i = EVERY_FIELD - 1; i < last && m->walk.status == SCHEMA_OK; i++) {
    int without = i;
    if (i == EVERY_FIELD - 1)
      without = EVERY_FIELD;
    else if (i == EVERY_FIELD)
      without = NEEDED_FIELDS;
    unsigned left = variant;
    if (i >= 0 && outline->fields[i].required)
      continue;
    json_t *object = members_build(m, outline, without, &left);
    json_t *value = object ? example_keep(m, place, object, &left) : NULL;
    if (value)
      return value;
  }
  return NULL;
}
