/* Makes arrays: tuples, then items that are all alike. */
#include "gbnf/internal.h"

enum { CONTAINS_MAX = 20 };

static bool covers(const struct gb_link *spec, size_t index) {
  return spec->kind == SPEC_MEMBERS &&
         (index < json_array_size(spec->patterns) || spec->additional);
}

/* Returns true if the item is unevaluated: no schema within the scope of `spec` says anything about
 * it. Beside `contains` none is: nobody knows yet which items that will match. */
static bool array_unevaluated(struct gb *g, const struct gb_shape *s, const struct gb_link *spec,
                              size_t index) {
  if (s->contains)
    return false;
  for (const struct gb_link *other = s->items; other; other = other->next) {
    if (other == spec || !gb_scope_within(g, other->scope, spec->scope))
      continue;
    if (covers(other, index) || (other->kind == SPEC_UNEVALUATED && other->scope != spec->scope))
      return false;
  }
  return true;
}

/* Returns the set that item `index` must match, with `also`, if that is an entry. */
static struct gb_set item_set(struct gb *g, const struct gb_shape *s, size_t index, uint32_t also) {
  struct gb_set never = {.never = true};
  size_t count = 0;
  uint32_t *entries = gb_get(g, (gb_link_count(s->items) + 1) * sizeof *entries);
  if (!entries)
    return never;
  for (const struct gb_link *spec = s->items; spec; spec = spec->next) {
    const json_t *schema = spec->additional;
    uint32_t entry;
    if (spec->kind == SPEC_UNEVALUATED && !array_unevaluated(g, s, spec, index))
      schema = NULL;
    if (spec->kind != SPEC_UNEVALUATED && index < json_array_size(spec->patterns))
      schema = json_array_get(spec->patterns, index);
    if (!schema)
      continue;
    if (!gb_child(g, schema, &entry))
      return never;
    if (entry != NODE_NONE)
      entries[count++] = entry;
  }
  if (also != NODE_NONE)
    entries[count++] = also;
  return gb_set_of(entries, count);
}

struct tuple { /* that of the array being written */
  const struct gb_shape *shape;
  const char *name;
  size_t prefix;
  uint64_t min, max;
};

static const struct gb_node *item_node(struct gb *g, const struct tuple *t, size_t index,
                                       uint32_t also) {
  struct gb_set set = item_set(g, t->shape, index, also);
  if (g->status != GBNF_OK)
    return NULL;
  const struct gb_node *node = gb_set_node(g, &set, "item");
  return node && node->kind != GB_NEVER ? gb_seq(g, node, gb_space(g)) : node;
}

static const struct gb_node *comma(struct gb *g, const struct gb_node *item) {
  return item && item->kind == GB_NEVER ? item : gb_seq(g, gb_word(g, ","), gb_space(g), item);
}

static const struct gb_node *items_node(struct gb *g, const struct tuple *t) {
  size_t fixed = t->prefix < t->max ? t->prefix : (size_t)t->max;
  const struct gb_node *rest = item_node(g, t, t->prefix, NODE_NONE);
  const struct gb_node *tail = &gb_empty;
  if (!rest)
    return NULL;
  if (t->max > fixed && fixed == t->prefix) {
    uint64_t before = fixed ? fixed : 1; /* items before the tail of commas */
    uint64_t more = t->max == UINT64_MAX ? UINT64_MAX : t->max - before;
    tail = gb_repeat(g, t->name, comma(g, rest), t->min > before ? t->min - before : 0, more);
  }
  for (size_t i = fixed; tail && i-- > 1;) {
    tail = gb_seq(g, comma(g, item_node(g, t, i, NODE_NONE)), tail);
    if (t->min <= i)
      tail = gb_maybe(g, t->name, tail);
  }
  const struct gb_node *first = fixed ? item_node(g, t, 0, NODE_NONE) : rest;
  const struct gb_node *all = t->max ? gb_seq(g, first, tail) : &gb_never;
  return t->min ? all : gb_maybe(g, t->name, all);
}

/* Makes "... c ... c ...": at least `count` items match `entry`, others may stand before and after
 * them. */
static const struct gb_node *containing(struct gb *g, const struct tuple *t, uint32_t entry,
                                        uint64_t count) {
  const struct gb_node *any = item_node(g, t, 0, NODE_NONE);
  const struct gb_node *one = item_node(g, t, 0, entry);
  if (!any || !one)
    return NULL;
  const struct gb_node *before =
      gb_repeat(g, t->name, gb_seq(g, any, gb_word(g, ","), gb_space(g)), 0, UINT64_MAX);
  const struct gb_node *next = gb_seq(g, before, one);
  return gb_seq(g, next, gb_repeat(g, t->name, comma(g, next), count - 1, count - 1),
                gb_repeat(g, t->name, comma(g, any), 0, UINT64_MAX));
}

static bool uses_unevaluated(const struct gb_shape *s) {
  for (const struct gb_link *spec = s->items; spec; spec = spec->next)
    if (spec->kind == SPEC_UNEVALUATED)
      return true;
  return false;
}

/* Chooses the one `contains` that can be held: an entry, else NODE_NONE; the others are listed. */
static void hold_contains(struct gb *g, const struct tuple *t, uint32_t *entry, uint64_t *count) {
  const struct gb_shape *s = t->shape;
  *entry = NODE_NONE;
  *count = 0;
  for (const struct gb_link *c = s->contains; c; c = c->next) {
    const json_t *have[KEYWORD_COUNT];
    uint32_t child;
    schema_entry_keywords(g->compiler.schema, c->entry, have);
    uint64_t min = have[K_MIN_CONTAINS] ? gb_count_of(have[K_MIN_CONTAINS]) : 1;
    bool possible = gb_child(g, c->value, &child);
    if (!min && !have[K_MAX_CONTAINS])
      continue;
    bool simple = possible && child != NODE_NONE && !t->prefix && t->max == UINT64_MAX &&
                  *entry == NODE_NONE && min && min <= CONTAINS_MAX && t->min <= min &&
                  !uses_unevaluated(s);
    if (simple) {
      *entry = child;
      *count = min;
    }
    if (!simple || have[K_MAX_CONTAINS])
      gb_note(g, c->entry, simple ? "maxContains" : "contains",
              "how many items match is counted by the validator only");
  }
}

static void array_note_rest(struct gb *g, const struct gb_shape *s, uint64_t max) {
  for (const struct gb_link *u = max > 1 ? s->unique : NULL; u; u = u->next)
    gb_note(g, u->entry, "uniqueItems", "a grammar cannot compare items");
  for (const struct gb_link *n = s->not_values; n; n = n->next)
    if (json_is_array(n->value))
      gb_note(g, n->entry, n->keyword, "a single array is kept out by the validator only");
  if (s->contains && uses_unevaluated(s))
    for (const struct gb_link *spec = s->items; spec; spec = spec->next)
      if (spec->kind == SPEC_UNEVALUATED)
        gb_note(g, spec->entry, "unevaluatedItems", "items that `contains` matched count");
}

const struct gb_node *gb_array(struct gb *g, const struct gb_shape *s, const char *name) {
  struct tuple t = {s, name, 0, s->min_items.value, s->max_items.value};
  uint32_t entry;
  uint64_t count;
  for (const struct gb_link *spec = s->items; spec; spec = spec->next)
    if (json_array_size(spec->patterns) > t.prefix)
      t.prefix = json_array_size(spec->patterns);
  for (size_t i = 0; i <= t.prefix && i < t.max; i++) {
    struct gb_set set = item_set(g, s, i, NODE_NONE);
    if (g->status != GBNF_OK || !gb_spend(g, 1))
      return NULL;
    if (set.never)
      t.max = i;
  }
  if (t.max > GB_COUNT_MAX && t.max != UINT64_MAX) {
    gb_note(g, s->max_items.entry, "maxItems", "more than 1,000,000 items");
    t.max = UINT64_MAX;
  }
  if (t.min > GB_COUNT_MAX) {
    gb_note(g, s->min_items.entry, "minItems", "more than 1,000,000 items");
    t.min = GB_COUNT_MAX;
  }
  if (t.min > t.max)
    return &gb_never;
  array_note_rest(g, s, t.max);
  hold_contains(g, &t, &entry, &count);
  if (entry == NODE_NONE && !s->items && !t.min && t.max == UINT64_MAX)
    return gb_primitive(g, "array");
  const struct gb_node *inner =
      entry != NODE_NONE ? containing(g, &t, entry, count) : items_node(g, &t);
  return gb_seq(g, gb_word(g, "["), gb_space(g), inner, gb_word(g, "]"));
}
