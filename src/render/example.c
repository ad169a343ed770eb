/* Makes an example: which kinds of value to try at a place, and the whole. */
#include "format/json_value.h"
#include "render/describe_words.h"
#include "render/example_internal.h"
#include "render/text.h"

#include <assert.h>
#include <stdio.h>

enum {
  ATTEMPTS_MAX = 20000, /* choices of forms in one example */
  FORMS_TRIED = 64,     /* in one anyOf or oneOf */
  INSIDE_ITSELF = 3     /* how often a structure may stand inside itself, where it must */
};

json_t *example_keep(struct maker *m, struct place place, json_t *value, unsigned *variant) {
  if (outline_accepts(&m->walk, place, value)) {
    if (!*variant)
      return value;
    --*variant;
  }
  json_decref(value);
  return NULL;
}

/* --- fixed values --- */

static const struct op *fixed_op(const struct outline *outline) {
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_ENUM)
      return outline->ops[i];
  return NULL;
}

static json_t *keep_copy(struct maker *m, struct place place, const json_t *value,
                         unsigned *variant) {
  if (m->walk.status != SCHEMA_OK)
    return NULL;
  return example_keep(m, place, json_clone(value), variant);
}

static json_t *make_fixed(struct maker *m, struct place place, const struct op *op,
                          unsigned *variant) {
  const json_t *all = op->u.options->all;
  json_t *value = NULL;
  if (!strcmp(op->keyword, "const"))
    return keep_copy(m, place, all, variant);
  for (size_t i = 0, n = json_array_size(all); !value && i < n; i++)
    value = keep_copy(m, place, json_array_get(all, i), variant);
  return value;
}

/* Takes what the schema's author gave as an example, where nothing could be made. */
static json_t *make_given(struct maker *m, struct place place, const struct outline *outline) {
  json_t *value = NULL;
  unsigned none = 0;
  for (uint32_t i = 0; !value && i < outline->flat.count; i++) {
    const json_t *examples = outline_raw(&m->walk, outline->flat.nodes[i], "examples");
    const json_t *preset = outline_raw(&m->walk, outline->flat.nodes[i], "default");
    for (size_t k = 0, n = json_array_size(examples); !value && k < n && k < FORMS_TRIED; k++)
      value = keep_copy(m, place, json_array_get(examples, k), &none);
    if (!value && preset)
      value = keep_copy(m, place, preset, &none);
  }
  return value;
}

/* --- types --- */

enum { KINDS = 6 };
static const struct kind {
  const char *name;
  unsigned types;
} kinds[KINDS] = {{"object", 1 << JSON_OBJECT}, {"array", 1 << JSON_ARRAY},
                  {"string", 1 << JSON_STRING}, {"number", TYPE_NUMBER},
                  {"boolean", TYPE_BOOLEAN},    {"null", 1 << JSON_NULL}};

/* Returns the place of a kind among those that `type` lists; null comes last. */
static int listed_at(const struct maker *m, const struct outline *outline, size_t kind) {
  for (uint32_t i = 0; i < outline->flat.count; i++) {
    const json_t *list = outline_raw(&m->walk, outline->flat.nodes[i], "type");
    for (size_t k = 0, n = json_array_size(list); k < n; k++) {
      const char *name = json_string_value(json_array_get(list, k));
      bool integer = kind == 3 && name && !strcmp(name, "integer");
      if (name && kind != KINDS - 1 && (integer || !strcmp(name, kinds[kind].name)))
        return (int)k;
    }
    if (json_is_array(list))
      return 100;
  }
  return (int)kind;
}

/* Orders the kinds to try: what the keywords hint at, then the order of `type`. */
static size_t order_kinds(const struct maker *m, const struct outline *outline,
                          size_t order[KINDS]) {
  unsigned hint = outline->types == TYPE_ANY ? outline_hint(outline) : 0;
  int rank[KINDS];
  size_t n = 0;
  for (size_t kind = 0; kind < KINDS; kind++) {
    if (!(outline->types & kinds[kind].types))
      continue;
    rank[kind] = listed_at(m, outline, kind);
    if (outline->types == TYPE_ANY) {
      rank[kind] = kinds[kind].types == 1 << JSON_STRING ? -1 : (int)kind; /* shows that best */
      if (hint & kinds[kind].types)
        rank[kind] = -10 + (int)kind;
    }
    size_t at = n++;
    for (; at > 0 && rank[order[at - 1]] > rank[kind]; at--)
      order[at] = order[at - 1];
    order[at] = kind;
  }
  return n;
}

static json_t *make_boolean(struct maker *m, struct place place, unsigned variant) {
  json_t *value = example_keep(m, place, json_false(), &variant);
  return value ? value : example_keep(m, place, json_true(), &variant);
}

static json_t *make_kind(struct maker *m, struct place place, const struct outline *outline,
                         size_t kind, unsigned variant) {
  switch (kind) {
  case 0:
    return example_object(m, place, outline, variant);
  case 1:
    return example_array(m, place, outline, variant);
  case 2:
    return example_string(m, place, outline, variant);
  case 3:
    return example_number(m, place, outline, !(outline->types & 1 << JSON_REAL), variant);
  case 4:
    return make_boolean(m, place, variant);
  default:
    return example_keep(m, place, json_null(), &variant);
  }
}

static json_t *make_types(struct maker *m, struct place place, const struct outline *outline,
                          unsigned variant) {
  size_t order[KINDS] = {0};
  size_t n = order_kinds(m, outline, order);
  const struct op *fixed = fixed_op(outline);
  json_t *value = NULL;
  if (fixed)
    return make_fixed(m, place, fixed, &variant);
  for (size_t i = 0; !value && i < n && m->walk.status == SCHEMA_OK; i++)
    value = make_kind(m, place, outline, order[i], variant);
  return value;
}

/* --- forms --- */

struct decided { /* ops for which a form was chosen */
  const struct op *op;
  const struct decided *up;
};

/* Returns the first op that leaves a choice and is not decided yet. */
static const struct op *next_choice(const struct outline *outline, const struct decided *decided) {
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    const struct decided *d = decided;
    if (op->code != OP_ANY_OF && op->code != OP_ONE_OF && op->code != OP_IF &&
        op->code != OP_DEPENDENT_SCHEMA)
      continue;
    while (d && d->op != op)
      d = d->up;
    if (!d)
      return op;
  }
  return NULL;
}

/* Sets the k-th way in which a value can satisfy `op`, as what else applies to it. Returns false if
 * there is none. */
static bool choice(struct maker *m, const struct op *op, uint32_t k, struct place *more) {
  struct walk *walk = &m->walk;
  *more = (struct place){NULL, 0};
  if (op->code == OP_ANY_OF || op->code == OP_ONE_OF) {
    if (k < op->u.list->count && k < FORMS_TRIED)
      *more = outline_place(walk, op->u.list->nodes[k]);
    return k < op->u.list->count && k < FORMS_TRIED;
  }
  if (op->code == OP_DEPENDENT_SCHEMA) {
    if (k == 0)
      *more = outline_place(walk, op->node);
    return k < 2;
  }
  const struct if_op *o = op->u.branch;
  if (k == 0)
    *more =
        outline_join(walk, outline_place(walk, o->condition), outline_place(walk, o->then_node));
  else if (k == 1)
    *more = outline_place(walk, o->else_node);
  return k < 3;
}

static bool any_fixed(struct maker *m, struct place place, const struct op *op) {
  const json_t *all = op->u.options->all;
  if (!strcmp(op->keyword, "const"))
    return outline_accepts(&m->walk, place, all);
  for (size_t i = 0, n = json_array_size(all); i < n && m->walk.status == SCHEMA_OK; i++)
    if (outline_accepts(&m->walk, place, json_array_get(all, i)))
      return true;
  return false;
}

/* Returns false if the forms chosen so far cannot go together: a field that must be there has no
 * type or no fixed value left. Without this look ahead ten `if`s are 3^10 ways. */
static bool example_plausible(struct maker *m, struct place place, const struct outline *outline) {
  const struct op *fixed = fixed_op(outline);
  if (outline->never || (fixed && !any_fixed(m, place, fixed)))
    return false;
  for (uint32_t i = 0; i < outline->field_count; i++) {
    struct outline field;
    if (!outline->fields[i].required)
      continue;
    if (!outline_of(&m->walk, outline->fields[i].place, &field))
      return false;
    fixed = fixed_op(&field);
    if (field.never || (fixed && !any_fixed(m, outline->fields[i].place, fixed)))
      return false;
  }
  return true;
}

/* Makes a value. `whole` is what it must satisfy, `place` that and the forms chosen so far. */
static json_t *make_chosen(struct maker *m, struct place whole, struct place place,
                           const struct decided *decided, unsigned variant, int choices) {
  struct outline outline;
  json_t *value = NULL;
  if (choices > EXAMPLE_LEVELS_MAX || !outline_of(&m->walk, place, &outline) || outline.never ||
      (decided && !example_plausible(m, place, &outline)))
    return NULL;
  const struct op *op = next_choice(&outline, decided);
  if (!op)
    return make_types(m, whole, &outline, variant);
  struct decided now = {op, decided};
  struct place more;
  for (uint32_t k = 0; !value && m->attempts && choice(m, op, k, &more); k++, m->attempts--)
    value = make_chosen(m, whole, outline_join(&m->walk, place, more), &now, variant, choices + 1);
  return value;
}

/* --- places --- */

static uint8_t *active_at(struct maker *m, uint32_t identity) {
  if (identity == NODE_NONE)
    return NULL;
  m->active = xgrow(m->active, &m->active_capacity, (size_t)identity + 1, 1);
  while (m->active_count <= identity)
    m->active[m->active_count++] = 0;
  return &m->active[identity];
}

static void note_trouble(struct maker *m, struct place place, const struct outline *outline) {
  struct buf where = {0};
  if (m->level < m->trouble_level || !place.count || m->strict)
    return;
  uint32_t at = m->walk.origin[place.nodes[0]];
  schema_entry_text(m->walk.schema, at, &where);
  m->trouble_level = m->level;
  snprintf(m->trouble->pointer, sizeof m->trouble->pointer, "%s", where.n ? where.p : "");
  const char *why = "no value was found that fits here";
  if (outline->never)
    why = "the schema admits no value here";
  snprintf(m->trouble->message, sizeof m->trouble->message, "%s", why);
  buf_deinit(&where);
}

/* Makes a structure inside itself, if possible so that it is not needed again further in. */
static json_t *make_again(struct maker *m, struct place place, unsigned variant) {
  json_t *value;
  m->strict = true;
  value = make_chosen(m, place, place, NULL, variant, 0);
  m->strict = false;
  if (value || m->walk.status != SCHEMA_OK)
    return value;
  return make_chosen(m, place, place, NULL, variant, 0);
}

json_t *example_place(struct maker *m, struct place place, unsigned variant) {
  struct outline outline;
  json_t *value;
  uint32_t identity = outline_identity(&m->walk, place);
  uint8_t *active = active_at(m, identity);
  uint8_t times = active ? *active : 0;
  if (m->walk.status != SCHEMA_OK || times >= INSIDE_ITSELF || (times && m->strict) ||
      m->level >= EXAMPLE_LEVELS_MAX || !walk_spend(&m->walk, 1))
    return NULL;
  if (active)
    ++*active;
  m->level++;
  m->made++;
  value = times ? make_again(m, place, variant) : make_chosen(m, place, place, NULL, variant, 0);
  if (!value && !times && !variant && outline_of(&m->walk, place, &outline)) {
    value = make_given(m, place, &outline);
    if (!value)
      note_trouble(m, place, &outline);
  }
  m->level--;
  if (active) /* the array may have moved */
    m->active[identity]--;
  return value;
}

/* --- the whole --- */

static enum example_status outcome(struct maker *m, const struct schema *schema, json_t **value) {
  enum schema_status status = m->walk.status;
  if (status == SCHEMA_OK && *value)
    status = schema_check(schema, *value, NULL);
  else if (status == SCHEMA_OK)
    status = SCHEMA_INVALID;
  if (status == SCHEMA_OK)
    return EXAMPLE_OK;
  json_decref(*value);
  *value = NULL;
  return status == SCHEMA_TOO_COMPLEX ? EXAMPLE_TOO_COMPLEX : EXAMPLE_NONE;
}

enum example_status example_make(const struct schema *schema, json_t **value,
                                 struct example_trouble *trouble) {
  assert(schema != NULL && value != NULL);
  struct example_trouble unused;
  struct maker m = {.attempts = ATTEMPTS_MAX, .trouble = trouble ? trouble : &unused};
  assert(schema != NULL);
  *value = NULL;
  *m.trouble = (struct example_trouble){"", ""};
  if (walk_init(&m.walk, schema))
    *value = example_place(&m, outline_root(&m.walk), 0);
  enum example_status status = outcome(&m, schema, value);
  if (status == EXAMPLE_TOO_COMPLEX)
    *m.trouble = (struct example_trouble){"", "the search for an example takes too much work"};
  else if (status == EXAMPLE_NONE && !*m.trouble->message)
    *m.trouble = (struct example_trouble){"", "no value was found that fits"};
  free(m.active);
  walk_deinit(&m.walk);
  return status;
}

enum example_status example_anchor(const struct schema *schema, enum describe_language language,
                                   char **text) {
  json_t *value;
  struct buf out = {0};
  enum example_status status = example_make(schema, &value, NULL);
  *text = NULL;
  if (status != EXAMPLE_OK)
    return status;
  describe_say(language, WORD_EXAMPLE, "", &out);
  buf_puts(&out, "\n");
  render_json(value, false, &out);
  buf_puts(&out, "\n");
  json_decref(value);
  *text = buf_take(&out);
  return EXAMPLE_OK;
}

const char *example_status_name(enum example_status status) {
  switch (status) {
  case EXAMPLE_OK:
    return "ok";
  case EXAMPLE_NONE:
    return "no_example";
  case EXAMPLE_TOO_COMPLEX:
    return "too_complex";
  }
  return "?";
}
