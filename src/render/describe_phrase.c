/* Puts the types and constraints of a place into words. */
#include "render/describe_phrase.h"

#include <stdio.h>

bool describe_going(struct describer *d) {
  if (d->walk.status != SCHEMA_OK)
    return false;
  if (d->out.n > DESCRIBE_BYTES_MAX || d->level > DESCRIBE_LEVELS_MAX)
    d->walk.status = SCHEMA_TOO_COMPLEX;
  return d->walk.status == SCHEMA_OK;
}

/* --- types --- */

const struct op *describe_fixed(const struct outline *outline) {
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_ENUM)
      return outline->ops[i];
  return NULL;
}

unsigned describe_shown_types(const struct outline *outline) {
  unsigned types = outline->types & TYPE_ANY, hint = outline_hint(outline);
  if (!describe_fixed(outline))
    return types == TYPE_ANY && hint ? hint : types;
  if (hint & TYPE_NUMBER && types != TYPE_ANY) /* "number [one of: 1, 2]" stays a number */
    hint |= TYPE_NUMBER & types;
  return hint;
}

const struct op *describe_type_forms(const struct outline *outline) {
  const struct op *forms = NULL;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code != OP_ANY_OF && op->code != OP_ONE_OF)
      continue;
    if (forms)
      return NULL;
    forms = op;
  }
  return forms && outline->types == TYPE_ANY && !outline_hint(outline) ? forms : NULL;
}

bool describe_forms_disjoint(struct describer *d, const struct op *forms) {
  unsigned all = 0;
  for (uint32_t i = 0; i < forms->u.list->count && describe_going(d); i++) {
    struct outline outline;
    if (!outline_of(&d->walk, outline_place(&d->walk, forms->u.list->nodes[i]), &outline))
      return false;
    unsigned types = outline.types & TYPE_ANY;
    if (all & types)
      return false;
    all |= types;
  }
  return true;
}

void describe_type_words(struct describer *d, unsigned types, struct buf *out) {
  static const struct {
    unsigned types;
    enum word word;
  } names[] = {{1 << JSON_OBJECT, WORD_OBJECT},   {1 << JSON_ARRAY, WORD_ARRAY},
               {1 << JSON_STRING, WORD_STRING},   {1 << JSON_REAL, WORD_NUMBER},
               {1 << JSON_INTEGER, WORD_INTEGER}, {TYPE_BOOLEAN, WORD_BOOLEAN},
               {1 << JSON_NULL, WORD_NULL}};
  bool first = true;
  types &= TYPE_ANY;
  if (!types || types == TYPE_ANY) {
    describe_say(d->language, types ? WORD_ANY_VALUE : WORD_NOTHING, "", out);
    return;
  }
  if (types & 1 << JSON_REAL)
    types &= ~(1u << JSON_INTEGER);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!(types & names[i].types))
      continue;
    if (!first)
      describe_say(d->language, WORD_OR, "", out);
    first = false;
    describe_say(d->language, names[i].word, "", out);
  }
}

bool describe_admits_null(struct describer *d, struct place place, const struct outline *outline) {
  unsigned types = describe_shown_types(outline);
  return types >> JSON_NULL & 1 && outline_accepts(&d->walk, place, json_null());
}

/* --- constraints --- */

struct listing {
  struct describer *d;
  struct buf *out;
  bool any;
};

static struct buf *item(struct listing *l) {
  if (l->any)
    buf_puts(l->out, ", ");
  l->any = true;
  return l->out;
}

static void list_word(struct listing *l, enum word word, const char *argument) {
  describe_say(l->d->language, word, argument, item(l));
}

static void listing_count(struct listing *l, enum word word, uint64_t count) {
  char number[24];
  snprintf(number, sizeof number, "%llu", (unsigned long long)count);
  list_word(l, word, number);
}

/* Lists a word with its argument, which it takes. */
static void list_text(struct listing *l, enum word word, struct buf *argument) {
  list_word(l, word, argument->p ? argument->p : "");
  buf_deinit(argument);
}

static void list_pattern(struct listing *l, enum word word, const char *pattern) {
  struct buf text = {0};
  render_pattern(pattern, &text);
  list_text(l, word, &text);
}

static void list_name(struct listing *l, enum word word, const char *name, size_t length) {
  struct buf text = {0};
  render_name(name, length, &text);
  list_text(l, word, &text);
}

static void list_values(struct listing *l, const struct op *op) {
  struct buf text = {0};
  const json_t *all = op->u.options->all;
  if (l->d->values_elsewhere)
    return;
  if (!strcmp(op->keyword, "const")) {
    render_json(all, true, &text);
    list_text(l, WORD_CONST, &text);
    return;
  }
  for (size_t i = 0, n = json_array_size(all); i < n; i++) {
    buf_puts(&text, i ? ", " : "");
    render_json(json_array_get(all, i), true, &text);
  }
  list_text(l, WORD_ONE_OF, &text);
}

/* Returns true if the subschema was put into the line. */
static bool list_place(struct listing *l, enum word word, const char *argument, uint32_t node) {
  struct describer *d = l->d;
  struct place place = outline_place(&d->walk, node);
  if (!describe_going(d) || !d->put_inside(d, place, NULL))
    return false;
  describe_say(d->language, word, argument, item(l));
  buf_puts(l->out, ": ");
  return d->put_inside(d, place, l->out);
}

static void list_forms(struct listing *l, const struct op *op) {
  struct describer *d = l->d;
  describe_say(d->language, op->code == OP_ANY_OF ? WORD_FORMS_ANY : WORD_FORMS_ONE, "", item(l));
  for (uint32_t i = 0; i < op->u.list->count && describe_going(d); i++) {
    buf_puts(l->out, i ? " | " : ": ");
    d->put_inside(d, outline_place(&d->walk, op->u.list->nodes[i]), l->out);
  }
}

static void list_object(struct listing *l, const struct object_op *o) {
  struct describer *d = l->d;
  for (uint32_t i = 0; i < o->pattern_count; i++)
    if (outline_is_false(&d->walk, outline_place(&d->walk, o->patterns[i].node)))
      list_pattern(l, WORD_NO_FIELD_MATCHING, o->patterns[i].text);
  if (outline_is_false(&d->walk, outline_place(&d->walk, o->additional)))
    list_word(l, WORD_NO_OTHER_FIELDS, "");
  if (o->names != NODE_NONE && o->names != NODE_TRUE)
    list_place(l, WORD_FIELD_NAMES, "", o->names);
}

static void list_dependency(struct listing *l, const struct op *op) {
  const struct dependency_op *o = op->u.dependency;
  struct describer *d = l->d;
  buf_auto_t name = {0}, names = {0};
  render_name(o->name, o->length, &name);
  if (op->code == OP_DEPENDENT_SCHEMA) {
    if (d->all_inside || outline_is_false(&d->walk, outline_place(&d->walk, op->node)))
      list_place(l, WORD_WITH_FIELD, name.p ? name.p : "", op->node);
    return;
  }
  for (uint32_t i = 0; i < o->count; i++) {
    buf_puts(&names, i ? ", " : "");
    render_name(o->required[i].text, o->required[i].length, &names);
  }
  if (o->count) {
    list_text(l, WORD_WITH_FIELD, &name);
    buf_puts(l->out, ": ");
    l->any = false; /* no comma: one item of the list */
    list_text(l, WORD_WITH_MUST_HAVE, &names);
  }
}

static void list_contains(struct listing *l, const struct contains_op *o) {
  if (o->min > 0 || o->has_min)
    listing_count(l, WORD_MIN_CONTAINS, o->min);
  if (o->max != UINT64_MAX)
    listing_count(l, WORD_MAX_CONTAINS, o->max);
  buf_auto_t inside = {0};
  struct describer *d = l->d;
  struct place place = outline_place(&d->walk, o->node);
  if (place.count && d->put_inside(d, place, NULL)) {
    d->put_inside(d, place, &inside);
    list_text(l, WORD_CONTAINS, &inside);
  }
}

static void list_if(struct listing *l, const struct if_op *o) {
  list_place(l, WORD_IF, "", o->condition);
  if (o->then_node != NODE_NONE)
    list_place(l, WORD_THEN, "", o->then_node);
  if (o->else_node != NODE_NONE)
    list_place(l, WORD_ELSE, "", o->else_node);
}

static void list_condition(struct listing *l, const struct op *op, const struct op *type_forms) {
  if (op->code == OP_NOT)
    list_place(l, WORD_NOT, "", op->node);
  else if (op->code == OP_IF && l->d->all_inside)
    list_if(l, op->u.branch);
  else if (op->code != OP_IF && op != type_forms && l->d->all_inside)
    list_forms(l, op);
}

static void list_bound(struct listing *l, const struct op *op) {
  static const char *const signs[] = {[OP_MINIMUM] = ">= ",
                                      [OP_MAXIMUM] = "<= ",
                                      [OP_EXCLUSIVE_MINIMUM] = "> ",
                                      [OP_EXCLUSIVE_MAXIMUM] = "< "};
  buf_puts(item(l), signs[op->code]);
  render_number(op->u.value, l->out);
}

static void list_multiple(struct listing *l, const json_t *divisor) {
  struct buf number = {0};
  render_number(divisor, &number);
  list_text(l, WORD_MULTIPLE_OF, &number);
}

static void list_size(struct listing *l, const struct op *op) {
  static const enum word words[] = {
      [OP_MIN_LENGTH] = WORD_MIN_LENGTH,     [OP_MAX_LENGTH] = WORD_MAX_LENGTH,
      [OP_MIN_ITEMS] = WORD_MIN_ITEMS,       [OP_MAX_ITEMS] = WORD_MAX_ITEMS,
      [OP_MIN_PROPERTIES] = WORD_MIN_FIELDS, [OP_MAX_PROPERTIES] = WORD_MAX_FIELDS};
  listing_count(l, words[op->code], op->u.count);
}

static void list_unevaluated(struct listing *l, const struct op *op) {
  struct describer *d = l->d;
  bool items = op->code == OP_UNEVALUATED_ITEMS;
  if (outline_is_false(&d->walk, outline_place(&d->walk, op->node)))
    list_word(l, items ? WORD_NO_OTHER_ITEMS : WORD_NO_OTHER_FIELDS, "");
  else if (op->node != NODE_TRUE && d->all_inside)
    list_place(l, items ? WORD_ANY_OTHER_ITEM : WORD_ANY_OTHER_FIELD, "", op->node);
}

/* Lists one op as an item; what has lines of its own elsewhere is left out here. */
static void list_op(struct listing *l, const struct op *op, const struct op *type_forms) {
  switch ((enum op_code)op->code) {
  case OP_FALSE:
  case OP_REF:
  case OP_DYNAMIC_REF:
  case OP_ALL_OF:
  case OP_FORMAT:
    return; /* the outline has taken it in; the last is a hint: list_hints */
  case OP_ENUM:
    list_values(l, op);
    return;
  case OP_MINIMUM:
  case OP_MAXIMUM:
  case OP_EXCLUSIVE_MINIMUM:
  case OP_EXCLUSIVE_MAXIMUM:
    list_bound(l, op);
    return;
  case OP_MULTIPLE_OF:
    list_multiple(l, op->u.value);
    return;
  case OP_MIN_LENGTH:
  case OP_MAX_LENGTH:
  case OP_MIN_ITEMS:
  case OP_MAX_ITEMS:
  case OP_MIN_PROPERTIES:
  case OP_MAX_PROPERTIES:
    list_size(l, op);
    return;
  case OP_PATTERN:
    list_pattern(l, WORD_PATTERN, op->text);
    return;
  case OP_UNIQUE:
    list_word(l, WORD_UNIQUE, "");
    return;
  case OP_ITEMS:
    if (outline_is_false(&l->d->walk, outline_place(&l->d->walk, op->u.items->rest)))
      list_word(l, op->u.items->prefix_count ? WORD_NO_OTHER_ITEMS : WORD_NO_ITEMS, "");
    return;
  case OP_CONTAINS:
    list_contains(l, op->u.contains);
    return;
  case OP_OBJECT:
    list_object(l, op->u.object);
    return;
  case OP_DEPENDENT_REQUIRED:
  case OP_DEPENDENT_SCHEMA:
    list_dependency(l, op);
    return;
  case OP_ANY_OF:
  case OP_ONE_OF:
  case OP_NOT:
  case OP_IF:
    list_condition(l, op, type_forms);
    return;
  case OP_UNEVALUATED_ITEMS:
  case OP_UNEVALUATED_PROPERTIES:
    list_unevaluated(l, op);
    return;
  }
}

/* Lists keywords about strings that are not checked, or not always. */
static void list_hints(struct listing *l, const struct outline *outline) {
  static const struct {
    const char *keyword;
    enum word word;
  } hints[] = {{"format", WORD_FORMAT},
               {"contentEncoding", WORD_ENCODING},
               {"contentMediaType", WORD_MEDIA_TYPE}};
  if (!(describe_shown_types(outline) >> JSON_STRING & 1))
    return;
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    for (uint32_t k = 0; k < outline->flat.count; k++) {
      const json_t *value = outline_raw(&l->d->walk, outline->flat.nodes[k], hints[i].keyword);
      if (json_is_string(value) && json_string_length(value))
        list_name(l, hints[i].word, json_string_value(value), json_string_length(value));
    }
}

bool describe_field_listed(const struct describer *d, const struct outline *outline,
                           const struct outline_field *field, bool bare) {
  if (field->declared)
    return field->required || !outline_is_false(&d->walk, field->place);
  if (field->place.count && !bare)
    return true;
  for (uint32_t i = 0; i < outline->field_count && !bare; i++)
    if (outline->fields[i].declared)
      return true;
  return false;
}

static void list_required(struct listing *l, const struct outline *outline, bool bare) {
  struct buf names[2] = {{0}, {0}};
  for (uint32_t i = 0; i < outline->field_count; i++) {
    const struct outline_field *field = &outline->fields[i];
    if (describe_field_listed(l->d, outline, field, bare))
      continue;
    struct buf *out = &names[!field->required];
    buf_puts(out, out->n ? ", " : "");
    render_name(field->name, field->length, out);
  }
  if (names[0].n)
    list_text(l, WORD_MUST_HAVE, &names[0]);
  if (names[1].n)
    list_text(l, WORD_FORBIDDEN, &names[1]);
  buf_deinit(&names[0]);
  buf_deinit(&names[1]);
}

void describe_constraints(struct describer *d, const struct outline *outline, bool bare,
                          struct buf *out) {
  struct listing l = {.d = d, .out = out};
  unsigned types = describe_shown_types(outline);
  const struct op *type_forms = describe_type_forms(outline);
  if (outline->never)
    return;
  list_hints(&l, outline);
  for (uint32_t i = 0; i < outline->op_count && describe_going(d); i++)
    if (outline->ops[i]->applies & types)
      list_op(&l, outline->ops[i], type_forms);
  if (types >> JSON_OBJECT & 1)
    list_required(&l, outline, bare);
}

/* --- leaves --- */

static bool leaf_node(struct describer *d, uint32_t node, int levels) {
  return node == NODE_NONE || node == NODE_TRUE ||
         (levels > 0 && describe_is_leaf(d, outline_place(&d->walk, node), levels - 1));
}

static bool leaf_op(struct describer *d, const struct op *op, int levels) {
  enum { FORMS_IN_A_LINE = 8 };
  switch ((enum op_code)op->code) {
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
  case OP_UNIQUE:
  case OP_MIN_PROPERTIES:
  case OP_MAX_PROPERTIES:
  case OP_DEPENDENT_REQUIRED:
  case OP_REF:
  case OP_DYNAMIC_REF:
  case OP_ALL_OF:
    return true;
  case OP_ITEMS: {
    struct place rest = outline_place(&d->walk, op->u.items->rest);
    return !op->u.items->prefix_count && (!rest.count || outline_is_false(&d->walk, rest));
  }
  case OP_CONTAINS:
    return leaf_node(d, op->u.contains->node, levels);
  case OP_OBJECT: {
    const struct object_op *o = op->u.object;
    struct place other = outline_place(&d->walk, o->additional);
    for (uint32_t i = 0; i < o->count; i++)
      if (o->properties[i].node != NODE_NONE)
        return false;
    for (uint32_t i = 0; i < o->pattern_count; i++)
      if (!outline_is_false(&d->walk, outline_place(&d->walk, o->patterns[i].node)))
        return false;
    return (!other.count || outline_is_false(&d->walk, other)) && leaf_node(d, o->names, levels);
  }
  case OP_ANY_OF:
  case OP_ONE_OF:
    for (uint32_t i = 0; i < op->u.list->count; i++)
      if (i == FORMS_IN_A_LINE || !leaf_node(d, op->u.list->nodes[i], levels))
        return false;
    return true;
  case OP_NOT:
    return leaf_node(d, op->node, levels);
  case OP_DEPENDENT_SCHEMA:
  case OP_UNEVALUATED_ITEMS:
  case OP_UNEVALUATED_PROPERTIES: {
    struct place other = outline_place(&d->walk, op->node);
    return !other.count || outline_is_false(&d->walk, other);
  }
  case OP_IF:
    return false;
  }
  return false;
}

bool describe_is_leaf(struct describer *d, struct place place, int levels) {
  struct outline outline;
  if (!outline_of(&d->walk, place, &outline))
    return false;
  const struct op *type_forms = describe_type_forms(&outline);
  for (uint32_t i = 0; i < outline.op_count; i++) {
    const struct op *op = outline.ops[i];
    bool forms = op->code == OP_ANY_OF || op->code == OP_ONE_OF;
    if ((forms && op != type_forms) || !leaf_op(d, op, levels))
      return false;
  }
  return true;
}
