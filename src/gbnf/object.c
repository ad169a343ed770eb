/* Makes objects: the members that a schema names, in its order, then further ones. */
#include "gbnf/internal.h"

struct object_member {
  const char *name;
  size_t length;
  bool required;
  const struct gb_node *node; /* name, colon and value */
};
struct object {
  const struct gb_shape *shape;
  const char *rule;
  struct object_member *members;
  size_t count;
  const struct gb_node *other; /* a further member; gb_never: none */
  uint64_t min, max;
  uint64_t count_to; /* members are counted up to here; 0: not at all */
};

static bool same(const struct gb_link *link, const char *name, size_t length) {
  return link->length == length && !memcmp(link->name, name, length);
}

static bool is_required(const struct gb_shape *s, const char *name, size_t length) {
  for (const struct gb_link *r = s->required; r; r = r->next)
    if (same(r, name, length))
      return true;
  return false;
}

/* Collects names in the order in which schemas bring them up; last come required ones that none
 * describes. */
static bool collect_names(struct gb *g, const struct gb_shape *s, const struct gb_link ***names,
                          size_t *count) {
  size_t spec_count, required_count, room = 0;
  const struct gb_link **specs = gb_links(g, s->members, &spec_count);
  const struct gb_link **required = gb_links(g, s->required, &required_count);
  struct map known = {0};
  if (!specs || !required)
    return false;
  for (size_t i = 0; i < spec_count; i++)
    room += json_object_size(specs[i]->value);
  room += required_count + gb_link_count(s->forbidden);
  *names = gb_get(g, (room + 1) * sizeof **names);
  struct gb_link *links = gb_get(g, (room + 1) * sizeof *links);
  bool ok = *names && links;
  *count = 0;
  for (size_t i = 0; ok && i < spec_count + required_count; i++) {
    const struct gb_link *from = i < spec_count ? specs[i] : required[i - spec_count];
    json_t *map = i < spec_count && from->kind == SPEC_MEMBERS ? (json_t *)from->value : NULL;
    void *at = json_object_iter(map);
    bool single = i >= spec_count;
    while (ok && (at || single)) {
      struct gb_link link = {.entry = from->entry,
                             .name = single ? from->name : json_object_iter_key(at),
                             .length = single ? from->length : json_object_iter_key_len(at)};
      uint32_t index = (uint32_t)*count;
      if (map_add(&known, &g->arena, (struct str){link.name, link.length}, &index)) {
        links[*count] = link;
        (*names)[*count] = &links[*count];
        ok = gb_spend(g, 1);
        ++*count;
      }
      at = single ? NULL : json_object_iter_next(map, at);
      single = false;
    }
  }
  map_deinit(&known);
  return ok;
}

static const struct gb_node *member_node(struct gb *g, const struct gb_node *name,
                                         const struct gb_set *set, const char *rule) {
  const struct gb_node *value = gb_set_node(g, set, rule);
  if (value && value->kind == GB_NEVER)
    return value;
  return gb_seq(g, name, gb_space(g), gb_word(g, ":"), gb_space(g), value, gb_space(g));
}

/* Makes the members. Returns false also if a required member is impossible: o->count is 0 then and
 * *never is set. */
static bool make_members(struct gb *g, struct object *o, const struct gb_link *const *names,
                         size_t count, bool *never) {
  o->members = gb_get(g, (count + 1) * sizeof *o->members);
  if (!o->members)
    return false;
  for (size_t i = 0; i < count; i++) {
    struct object_member m = {names[i]->name, names[i]->length,
                              is_required(o->shape, names[i]->name, names[i]->length), NULL};
    struct gb_set set = gb_member_set(g, o->shape, m.name, m.length);
    if (g->status != GBNF_OK || !gb_spend(g, 2))
      return false;
    m.node = &gb_never;
    if (!set.never)
      m.node = member_node(g, gb_string_literal(g, m.name, m.length), &set, m.name);
    if (!m.node)
      return false;
    if (m.node->kind == GB_NEVER) {
      *never = *never || m.required;
      continue;
    }
    char rule[GB_NAME_BYTES];
    gb_rule_name(rule, m.name);
    size_t n = strlen(rule);
    (void)snprintf(rule + n, sizeof rule - n, "-kv");
    m.node = gb_named(g, rule, m.node);
    if (!m.node)
      return false;
    o->members[o->count++] = m;
  }
  return true;
}

/* Returns true if an object is closed. Objects of a named type whose properties are listed have no
 * others, where the schema says nothing about others. */
static bool is_closed(const struct gb_shape *s, size_t declared) {
  bool lists = false;
  if (!(s->named & T_OBJECT) || s->names || s->min_members.value > declared)
    return false;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next) {
    if (spec->kind == SPEC_UNEVALUATED || spec->patterns || spec->additional)
      return false;
    lists = lists || (spec->kind == SPEC_MEMBERS && spec->value);
  }
  return lists;
}

static bool make_other(struct gb *g, struct object *o, const struct gb_link **names, size_t count) {
  struct gb_names kinds;
  o->other = &gb_never;
  if (is_closed(o->shape, o->count))
    return true;
  for (const struct gb_link *f = o->shape->forbidden; f; f = f->next) {
    bool known = false;
    for (size_t i = 0; i < count && !known; i++)
      known = same(f, names[i]->name, names[i]->length);
    if (!known)
      names[count++] = f;
  }
  if (!gb_names_of(g, o->shape, names, count, o->rule, &kinds))
    return false;
  for (size_t i = 0; i < kinds.count; i++) {
    o->other =
        gb_alt(g, o->other, member_node(g, kinds.kinds[i].name, &kinds.kinds[i].set, "other"));
    if (!o->other)
      return false;
  }
  o->other = gb_named(g, o->rule, o->other);
  return o->other != NULL;
}

static void set_counts(struct gb *g, struct object *o) {
  const struct gb_shape *s = o->shape;
  bool open = o->other->kind != GB_NEVER;
  uint64_t required = 0;
  for (size_t i = 0; i < o->count; i++)
    required += o->members[i].required;
  o->min = s->min_members.value > required ? s->min_members.value : 0;
  o->max = open || s->max_members.value < o->count ? s->max_members.value : UINT64_MAX;
  uint64_t to = o->max != UINT64_MAX ? o->max : o->min;
  uint64_t positions = o->count + 1;
  bool too_many = to > GB_MEMBERS_MAX;
  if (o->count) /* the first comparison keeps the product small */
    too_many = to > GB_COUNTED_STATES_MAX || positions * (to + 1) > GB_COUNTED_STATES_MAX;
  if (too_many) {
    static const char why[] = "so many properties are counted by the validator only";
    if (o->min)
      gb_note(g, s->min_members.entry, "minProperties", why);
    if (o->max != UINT64_MAX)
      gb_note(g, s->max_members.entry, "maxProperties", why);
    o->min = 0;
    o->max = UINT64_MAX;
  }
  if (open && o->min > required + 1)
    gb_note(g, s->min_members.entry, "minProperties", "a further name may come twice");
  o->count_to = o->max != UINT64_MAX ? o->max : o->min;
}

static const struct gb_node *others(struct gb *g, const struct object *o, uint64_t before) {
  uint64_t max = o->max == UINT64_MAX ? UINT64_MAX : o->max - before;
  return gb_repeat(g, o->rule, gb_seq(g, gb_word(g, ","), gb_space(g), o->other),
                   o->min > before ? o->min - before : 0, max);
}

/* Makes the members that may follow, from the last one on: commas[k] if k members have been
 * written. */
static const struct gb_node *chain(struct gb *g, const struct object *o) {
  size_t width = (size_t)(o->count ? o->count_to : 0) + 1;
  const struct gb_node **commas = gb_get(g, width * sizeof *commas);
  const struct gb_node **next = gb_get(g, width * sizeof *next);
  const struct gb_node **firsts = gb_get(g, (o->count + 2) * sizeof *firsts);
  if (!commas || !next || !firsts)
    return NULL;
  bool full = o->max != UINT64_MAX; /* the last count is the most that may be */
  for (size_t k = 0; k < width; k++) {
    bool enough = k >= o->min || (!o->count && !o->min);
    commas[k] = enough ? &gb_empty : &gb_never;
    if (o->other->kind != GB_NEVER)
      commas[k] = others(g, o, k);
    if (!commas[k])
      return NULL;
  }
  size_t first_count = 0;
  if (o->other->kind != GB_NEVER && o->max)
    firsts[first_count++] =
        gb_seq(g, o->other, o->count && width > 1 ? commas[1] : others(g, o, 1));
  for (size_t i = o->count; i-- > 0;) {
    const struct object_member *m = &o->members[i];
    size_t after_one = width > 1 ? 1 : 0;
    if (m->required)
      first_count = 0;
    if (o->max)
      firsts[first_count++] = gb_seq(g, m->node, commas[after_one]);
    for (size_t k = 0; k < width; k++) {
      bool may = !(full && k + 1 == width) || !o->count_to;
      const struct gb_node *on = commas[k + 1 < width ? k + 1 : k];
      const struct gb_node *with =
          may ? gb_seq(g, gb_word(g, ","), gb_space(g), m->node) : &gb_never;
      if (m->required)
        next[k] = gb_seq(g, with, on);
      else if (width == 1)
        next[k] = gb_seq(g, gb_maybe(g, o->rule, with), on);
      else
        next[k] = gb_alt(g, gb_seq(g, with, on), commas[k]);
      if (next[k] && !m->required)
        next[k] = gb_named(g, o->rule, next[k]);
      if (!next[k])
        return NULL;
    }
    memcpy(commas, next, width * sizeof *commas);
  }
  for (size_t i = 0; i < first_count; i++)
    if (!firsts[i])
      return NULL;
  for (size_t i = 0; i < first_count / 2; i++) { /* the order of the schema */
    const struct gb_node *swap = firsts[i];
    firsts[i] = firsts[first_count - 1 - i];
    firsts[first_count - 1 - i] = swap;
  }
  return gb_list(g, GB_ALT, firsts, first_count);
}

static void object_note_rest(struct gb *g, const struct gb_shape *s) {
  for (const struct gb_link *n = s->not_values; n; n = n->next)
    if (json_is_object(n->value))
      gb_note(g, n->entry, n->keyword, "a single object is kept out by the validator only");
}

const struct gb_node *gb_object(struct gb *g, const struct gb_shape *s, const char *name) {
  struct object o = {.shape = s, .rule = name};
  const struct gb_link **names;
  size_t count;
  bool never = false;
  if (!s->members && !s->required && !s->forbidden && !s->names && !s->min_members.value &&
      s->max_members.value == UINT64_MAX && !s->not_values)
    return gb_primitive(g, "object");
  object_note_rest(g, s);
  if (!collect_names(g, s, &names, &count) || !make_members(g, &o, names, count, &never))
    return NULL;
  if (never)
    return &gb_never;
  if (!make_other(g, &o, names, count))
    return NULL;
  set_counts(g, &o);
  const struct gb_node *members = chain(g, &o);
  bool may_be_empty = !s->min_members.value;
  for (size_t i = 0; i < o.count; i++)
    may_be_empty = may_be_empty && !o.members[i].required;
  if (members && may_be_empty)
    members = members->kind == GB_NEVER ? &gb_empty : gb_maybe(g, name, members);
  return gb_seq(g, gb_word(g, "{"), gb_space(g), members, gb_word(g, "}"));
}
