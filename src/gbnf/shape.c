/* Makes choices, one after the other, until plain shapes are left. */
#include "gbnf/internal.h"

static bool gb_set_is_never(struct gb *g, const struct gb_set *set, unsigned levels);
/* Returns true if nothing can match. This looks at the first levels only: `false` may mean that it
 * is unknown. */
static bool gb_shape_is_never(struct gb *g, const struct gb_shape *shape, unsigned levels);

/* Removes types by contradictions that show without looking further down. Returns false if none is
 * left. */
static bool alive(struct gb_shape *shape) {
  if (shape->minimum && shape->maximum) {
    int order = schema_value_compare(shape->minimum, shape->maximum);
    if (order > 0 || (!order && (shape->minimum_exclusive || shape->maximum_exclusive)))
      shape->types &= ~(unsigned)T_NUMBER;
  }
  if (shape->min_length.value > shape->max_length.value)
    shape->types &= ~(unsigned)T_STRING;
  if (shape->min_items.value > shape->max_items.value)
    shape->types &= ~(unsigned)T_ARRAY;
  if (shape->min_members.value > shape->max_members.value)
    shape->types &= ~(unsigned)T_OBJECT;
  for (const struct gb_link *r = shape->required; r && shape->types & T_OBJECT; r = r->next)
    for (const struct gb_link *f = shape->forbidden; f; f = f->next)
      if (r->length == f->length && !memcmp(r->name, f->name, r->length))
        shape->types &= ~(unsigned)T_OBJECT;
  if (shape->integral && shape->fractional)
    shape->types &= ~(unsigned)T_NUMBER;
  if (shape->finite) {
    unsigned types = 0;
    for (const struct gb_link *v = shape->values; v; v = v->next)
      types |= gb_type_of(v->value);
    shape->types &= types;
  }
  return shape->types != 0;
}

static size_t branches(struct gb *g, const struct gb_link *choice) {
  switch ((enum gb_choice)choice->kind) {
  case CHOICE_ANY:
  case CHOICE_ONE:
    return json_array_size(choice->value);
  case CHOICE_IF:
  case CHOICE_REQUIRED:
  case CHOICE_SCHEMA:
    return 2;
  case CHOICE_NOT:
    return gb_not_branches(g, choice);
  }
  return 0;
}

static bool merge_one(struct gb *g, struct gb_shape *shape, const json_t *schema, uint32_t scope) {
  uint32_t entry;
  if (!schema)
    return true;
  if (!gb_child(g, schema, &entry)) {
    shape->types = 0;
    return true;
  }
  return entry == NODE_NONE || gb_merge(g, shape, entry, scope);
}

static bool merge_not_one(struct gb *g, struct gb_shape *shape, const json_t *schema,
                          uint32_t reason, const char *keyword) {
  uint32_t entry;
  if (!gb_child(g, schema, &entry))
    return true;
  if (entry == NODE_NONE) {
    shape->types = 0;
    return true;
  }
  return gb_merge_not(g, shape, entry, reason, keyword);
}

/* Excludes the other branches of oneOf: they are left alone if they cannot match as well, else
 * negated. */
static bool exclude_others(struct gb *g, struct gb_shape *shape, const struct gb_link *choice,
                           size_t branch) {
  struct gb_shape base = *shape;
  for (size_t i = 0, n = json_array_size(choice->value); i < n && shape->types; i++) {
    const json_t *other = json_array_get(choice->value, i);
    if (i == branch)
      continue;
    struct gb_shape both = base;
    both.choices = NULL;
    bool quiet = g->quiet;
    g->quiet = true;
    bool ok = merge_one(g, &both, other, GB_NO_SCOPE);
    bool apart = ok && gb_shape_is_never(g, &both, 2);
    g->quiet = quiet;
    if (g->status != GBNF_OK)
      return false;
    if (!apart && !merge_not_one(g, shape, other, choice->entry, "oneOf"))
      return false;
  }
  return true;
}

static bool require(struct gb *g, struct gb_shape *shape, uint32_t entry, const char *name,
                    size_t length) {
  return gb_link_add(g, &shape->required,
                     (struct gb_link){.entry = entry, .name = name, .length = length});
}

static bool make_choice(struct gb *g, struct gb_shape *shape, const struct gb_link *choice,
                        size_t branch) {
  switch ((enum gb_choice)choice->kind) {
  case CHOICE_ANY:
    return merge_one(g, shape, json_array_get(choice->value, branch), choice->scope);
  case CHOICE_ONE:
    return merge_one(g, shape, json_array_get(choice->value, branch), choice->scope) &&
           exclude_others(g, shape, choice, branch);
  case CHOICE_IF:
    if (branch == 0)
      return merge_one(g, shape, choice->value, choice->scope) &&
             merge_one(g, shape, choice->patterns, choice->scope);
    return merge_not_one(g, shape, choice->value, choice->entry, "if") &&
           merge_one(g, shape, choice->additional, choice->scope);
  case CHOICE_NOT:
    return gb_not_branch(g, shape, choice, branch);
  case CHOICE_REQUIRED:
  case CHOICE_SCHEMA:
    if (branch == 0)
      return gb_link_add(
          g, &shape->forbidden,
          (struct gb_link){.entry = choice->entry, .name = choice->name, .length = choice->length});
    shape->types &= T_OBJECT;
    if (choice->kind == CHOICE_SCHEMA && !merge_one(g, shape, choice->value, choice->scope))
      return false;
    if (choice->kind == CHOICE_REQUIRED)
      for (size_t i = 0, n = json_array_size(choice->value); i < n; i++) {
        const json_t *name = json_array_get(choice->value, i);
        if (!require(g, shape, choice->entry, json_string_value(name), json_string_length(name)))
          return false;
      }
    return require(g, shape, choice->entry, choice->name, choice->length);
  }
  return true;
}

static const char *choice_keyword(const struct gb_link *choice) {
  switch ((enum gb_choice)choice->kind) {
  case CHOICE_ANY:
    return "anyOf";
  case CHOICE_ONE:
    return "oneOf";
  case CHOICE_IF:
    return "if";
  case CHOICE_NOT:
    return choice->keyword;
  case CHOICE_REQUIRED:
    return "dependentRequired";
  case CHOICE_SCHEMA:
    return "dependentSchemas";
  }
  return "";
}

/* Takes the oldest choice out of the list: an object's members keep the order of the schema. */
static bool choice_take(struct gb *g, struct gb_shape *shape, const struct gb_link **choice) {
  size_t n;
  const struct gb_link **links = gb_links(g, shape->choices, &n);
  if (!links)
    return false;
  *choice = links[0];
  shape->choices = NULL;
  for (size_t i = 1; i < n; i++)
    if (!gb_link_add(g, &shape->choices, *links[i]))
      return false;
  return true;
}

struct expansion {
  struct gb_shapes *out;
  size_t max;
  bool overflow;
};

static bool expand(struct gb *g, struct gb_shape *shape, struct expansion *e, unsigned level) {
  const struct gb_link *choice;
  if (!gb_spend(g, 1))
    return false;
  while (alive(shape) && shape->choices) {
    if (!choice_take(g, shape, &choice))
      return false;
    uint32_t at = choice->kind == CHOICE_NOT ? choice->scope : choice->entry;
    if (g->loose && level) {
      gb_note(g, at, choice_keyword(choice),
              "too many combinations with other choices: kept by the validator only");
      continue;
    }
    size_t n = branches(g, choice);
    if (e->out->count + n > e->max || level > 30) {
      e->overflow = true;
      return true;
    }
    for (size_t i = 0; i < n && !e->overflow; i++) {
      struct gb_shape copy = *shape;
      if (!make_choice(g, &copy, choice, i) || !expand(g, &copy, e, level + 1))
        return false;
    }
    return true;
  }
  if (!shape->types || gb_shape_is_never(g, shape, 2))
    return g->status == GBNF_OK;
  if (e->out->count >= e->max) {
    e->overflow = true;
    return true;
  }
  e->out->items = xgrow(e->out->items, &e->out->capacity, e->out->count + 1, sizeof *e->out->items);
  e->out->items[e->out->count++] = *shape;
  return true;
}

static struct gb_shape shape_any(void) {
  return (struct gb_shape){.types = T_ALL,
                           .max_length = {UINT64_MAX, NODE_NONE},
                           .max_items = {UINT64_MAX, NODE_NONE},
                           .max_members = {UINT64_MAX, NODE_NONE}};
}

static bool merge_set(struct gb *g, const struct gb_set *set, struct gb_shape *shape) {
  *shape = shape_any();
  for (size_t i = 0; i < set->count; i++) {
    uint32_t entry = set->atoms[i].entry;
    bool ok;
    if (set->atoms[i].negated)
      ok = gb_merge_not(g, shape, entry, set->atoms[i].reason, set->atoms[i].keyword);
    else
      ok = gb_merge(g, shape, entry, GB_NO_SCOPE);
    if (!ok)
      return false;
  }
  return true;
}

static bool gb_shape_is_never(struct gb *g, const struct gb_shape *shape, unsigned levels) {
  struct gb_shape own = *shape;
  if (!alive(&own))
    return true;
  if (!levels || !gb_spend(g, 1))
    return false;
  if (own.choices && gb_link_count(own.choices) <= 4) {
    const struct gb_link *choice;
    if (!choice_take(g, &own, &choice))
      return false;
    size_t n = choice->kind == CHOICE_ONE ? 0 : branches(g, choice);
    bool never = n > 0 && n <= 12;
    for (size_t i = 0; i < n && never; i++) {
      struct gb_shape copy = own;
      never = make_choice(g, &copy, choice, i) && gb_shape_is_never(g, &copy, levels - 1);
    }
    if (never)
      return true;
  }
  if (own.types != T_OBJECT || own.finite)
    return false;
  for (const struct gb_link *r = own.required; r; r = r->next) {
    struct gb_set set = gb_member_set(g, &own, r->name, r->length);
    if (g->status != GBNF_OK)
      return false;
    if (set.never || gb_set_is_never(g, &set, levels - 1))
      return true;
  }
  return false;
}

static bool gb_set_is_never(struct gb *g, const struct gb_set *set, unsigned levels) {
  struct gb_shape shape;
  bool quiet = g->quiet;
  if (set->never)
    return true;
  g->quiet = true;
  bool never = merge_set(g, set, &shape) && gb_shape_is_never(g, &shape, levels);
  g->quiet = quiet;
  return never;
}

bool gb_shapes_of(struct gb *g, const struct gb_set *set, struct gb_shapes *out) {
  for (int attempt = 0; attempt < 2; attempt++) {
    struct gb_shape shape;
    struct expansion e = {out, attempt ? 10 * GB_SHAPES_MAX : GB_SHAPES_MAX, false};
    out->count = 0;
    g->loose = attempt > 0;
    bool ok = merge_set(g, set, &shape) && expand(g, &shape, &e, 0);
    g->loose = false;
    if (!ok || !e.overflow)
      return ok && g->status == GBNF_OK;
  }
  return gb_too_complex(g, "a schema has too many alternatives");
}
