/* Makes nonterminals: sets of schemas that one value must match. */
#include "gbnf/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- single values --- */

/* Writes a string as JSON; with `ascii`, all beyond ASCII as \u escapes. Sets *foreign if there was
 * some. */
static void escape(struct buf *out, const char *text, size_t length, bool ascii, bool *foreign) {
  const char *short_forms = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (size_t i = 0, n; i < length; i += n) {
    const char *found = NULL;
    uint32_t c;
    n = utf8_decode(text + i, length - i, &c);
    assert(n); /* JSON strings are well-formed */
    for (const char *s = short_forms; *s && !found; s += 2)
      found = (uint32_t)*s == c ? s : NULL;
    if (found) {
      buf_printf(out, "\\%c", found[1]);
    } else if (c < 0x20) {
      buf_printf(out, "\\u%04x", (unsigned)c);
    } else if (c < 0x80 || !ascii) {
      buf_append(out, text + i, n);
    } else if (c < 0x10000) {
      buf_printf(out, "\\u%04x", (unsigned)c);
    } else {
      buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                 (unsigned)(0xdc00 + (c & 0x3ff)));
    }
    *foreign = *foreign || c >= 0x80;
  }
}

/* Gbnf/literal.c: a string or any value as JSON. `integers`: no "1.0" for 1. */
static const struct gb_node *gb_string_literal(struct gb *g, const char *text, size_t length) {
  struct buf raw = {0}, ascii = {0};
  bool foreign = false;
  buf_puts(&raw, "\"");
  escape(&raw, text, length, false, &foreign);
  buf_puts(&raw, "\"");
  buf_puts(&ascii, "\"");
  if (foreign)
    escape(&ascii, text, length, true, &foreign);
  buf_puts(&ascii, "\"");
  const struct gb_node *node = gb_literal(g, raw.p, raw.n);
  if (node && foreign)
    node = gb_alt(g, node, gb_literal(g, ascii.p, ascii.n));
  buf_deinit(&raw);
  buf_deinit(&ascii);
  return node;
}

/* Makes a number. A model might spell it in many ways that are equal; the grammar has the shortest
 * decimals only, and for an integer also ".0". */
static const struct gb_node *number_literal(struct gb *g, const json_t *value, bool integers) {
  char text[64];
  if (json_is_integer(value)) {
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  } else {
    double real = json_real_value(value);
    if (schema_value_is_integral(value) && fabs(real) < 1e15) {
      snprintf(text, sizeof text, "%.0f", real == 0 ? 0.0 : real);
    } else {
      for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
          break;
      }
    }
  }
  const struct gb_node *node = gb_word(g, text);
  /* It is exact as a double, too. */
  bool exact = !json_is_integer(value) || (json_integer_value(value) <= 9007199254740992 &&
                                           json_integer_value(value) >= -9007199254740992);
  if (!integers && exact && !strpbrk(text, ".eE"))
    node = gb_seq(g, node, gb_maybe(g, "zero", gb_word(g, ".0")));
  return node;
}

static const struct gb_node *gb_value_literal(struct gb *g, const json_t *value, bool integers);

struct literal_member {
  const char *name;
  size_t length;
  const json_t *value;
};

static const struct gb_node *object_in_order(struct gb *g, const struct literal_member *members,
                                             const size_t *order, size_t n, bool integers) {
  const struct gb_node *node = gb_seq(g, gb_word(g, "{"), gb_space(g));
  for (size_t i = 0; node && i < n; i++) {
    const struct literal_member *m = &members[order[i]];
    node = gb_seq(g, node, gb_string_literal(g, m->name, m->length), gb_space(g), gb_word(g, ":"),
                  gb_space(g), gb_value_literal(g, m->value, integers), gb_space(g));
    if (i + 1 < n)
      node = gb_seq(g, node, gb_word(g, ","), gb_space(g));
  }
  return gb_seq(g, node, gb_word(g, "}"));
}

/* Makes an object. Nobody can know in which order a model writes the members of a fixed value: if
 * there are only a few, any order will do. */
static const struct gb_node *object_literal(struct gb *g, const json_t *value, bool integers) {
  static const size_t orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                      {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
  size_t n = json_object_size(value), i = 0;
  struct literal_member *members = gb_get(g, (n + 1) * sizeof *members);
  size_t *order = gb_get(g, (n + 1) * sizeof *order);
  if (!members || !order)
    return NULL;
  for (void *at = json_object_iter((json_t *)value); at;
       at = json_object_iter_next((json_t *)value, at), i++) {
    members[i] = (struct literal_member){json_object_iter_key(at), json_object_iter_key_len(at),
                                         json_object_iter_value(at)};
    order[i] = i;
  }
  const struct gb_node *node = object_in_order(g, members, order, n, integers);
  size_t orders_count = n == 2 || n == 3 ? n * (n - 1) : 1;
  for (size_t k = 1; node && k < orders_count; k++)
    node = gb_alt(g, node, object_in_order(g, members, orders[k], n, integers));
  return node;
}

static const struct gb_node *gb_value_literal(struct gb *g, const json_t *value, bool integers) {
  if (!gb_spend(g, 1))
    return NULL;
  switch (json_typeof(value)) {
  case JSON_STRING:
    return gb_string_literal(g, json_string_value(value), json_string_length(value));
  case JSON_INTEGER:
  case JSON_REAL:
    return number_literal(g, value, integers);
  case JSON_ARRAY: {
    size_t n = json_array_size(value);
    const struct gb_node *node = gb_seq(g, gb_word(g, "["), gb_space(g));
    for (size_t i = 0; node && i < n; i++) {
      node = gb_seq(g, node, gb_value_literal(g, json_array_get(value, i), integers), gb_space(g));
      if (i + 1 < n)
        node = gb_seq(g, node, gb_word(g, ","), gb_space(g));
    }
    return gb_seq(g, node, gb_word(g, "]"));
  }
  case JSON_OBJECT:
    return object_literal(g, value, integers);
  case JSON_TRUE:
    return gb_word(g, "true");
  case JSON_FALSE:
    return gb_word(g, "false");
  case JSON_NULL:
    return gb_word(g, "null");
  }
  return NULL;
}

/* --- arrays --- */

enum { CONTAINS_MAX = 20 };

/* Returns true if the item is unevaluated: no schema within the scope of `spec` says anything about
 * it. Beside `contains` none is: nobody knows yet which items that will match. */
static bool array_unevaluated(struct gb *g, const struct gb_shape *s, const struct gb_link *spec,
                              size_t index) {
  if (s->contains)
    return false;
  for (const struct gb_link *other = s->items; other; other = other->next) {
    if (other == spec || !gb_scope_within(g, other->scope, spec->scope))
      continue;
    if ((other->kind == SPEC_MEMBERS &&
         (index < json_array_size(other->patterns) || other->additional)) ||
        (other->kind == SPEC_UNEVALUATED && other->scope != spec->scope))
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

static const struct gb_node *gb_array(struct gb *g, const struct gb_shape *s, const char *name) {
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
  for (const struct gb_link *u = t.max > 1 ? s->unique : NULL; u; u = u->next)
    gb_note(g, u->entry, "uniqueItems", "a grammar cannot compare items");
  for (const struct gb_link *n = s->not_values; n; n = n->next)
    if (json_is_array(n->value))
      gb_note(g, n->entry, n->keyword, "a single array is kept out by the validator only");
  if (s->contains && uses_unevaluated(s))
    for (const struct gb_link *spec = s->items; spec; spec = spec->next)
      if (spec->kind == SPEC_UNEVALUATED)
        gb_note(g, spec->entry, "unevaluatedItems", "items that `contains` matched count");
  hold_contains(g, &t, &entry, &count);
  if (entry == NODE_NONE && !s->items && !t.min && t.max == UINT64_MAX)
    return gb_primitive(g, "array");
  const struct gb_node *inner =
      entry != NODE_NONE ? containing(g, &t, entry, count) : items_node(g, &t);
  return gb_seq(g, gb_word(g, "["), gb_space(g), inner, gb_word(g, "]"));
}

/* --- sets --- */

static int by_entry(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

struct gb_set gb_set_of(uint32_t *entries, size_t count) {
  struct gb_set set = {entries, 0, false};
  if (count)
    qsort(entries, count, sizeof *entries, by_entry);
  for (size_t i = 0; i < count; i++)
    if (!set.count || entries[set.count - 1] != entries[i])
      entries[set.count++] = entries[i];
  return set;
}

/* Makes a name of letters, digits and dashes similar to `name`, with room for a suffix. */
static void gb_rule_name(char out[GB_NAME_BYTES], const char *name) {
  size_t n = 0;
  for (const char *p = name; *p && n < GB_NAME_BYTES - 10; p++) {
    bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
    if (plain || (n && out[n - 1] != '-'))
      out[n++] = plain ? *p : '-';
  }
  while (n && out[n - 1] == '-')
    n--;
  out[n] = '\0';
  if (!n)
    memcpy(out, "item", 5);
}

const struct gb_node *gb_set_node(struct gb *g, const struct gb_set *set, const char *name) {
  assert(set->never || set->count == 0 || set->entries);
  char plain[GB_NAME_BYTES];
  uint32_t rule;
  if (set->never)
    return &gb_never;
  if (!set->count)
    return gb_primitive(g, "value");
  struct str text = {(const char *)set->entries, set->count * sizeof *set->entries};
  if (map_get(&g->sets, text, &rule))
    return gb_ref(g, rule);
  gb_rule_name(plain, name);
  if (!gb_rule_new(g, plain, NULL, &rule))
    return NULL;
  map_put(&g->sets, &g->arena, text, rule);
  g->jobs = xgrow(g->jobs, &g->job_capacity, g->job_count + 1, sizeof *g->jobs);
  g->jobs[g->job_count++] = (struct gb_job){*set, rule};
  return gb_ref(g, rule);
}

static bool gb_matches(struct gb *g, const struct gb_set *set, const json_t *value) {
  const struct schema *s = g->compiler.schema;
  for (size_t i = 0; i < set->count; i++) {
    uint32_t node = s->entries[set->entries[i]].node;
    struct vm vm = {.schema = s, .work = SCHEMA_WORK_MAX / 20};
    if (node == NODE_NONE)
      continue;
    bool ok = schema_run_node(&vm, node, value, NULL);
    pattern_scratch_deinit(&vm.scratch);
    if (!gb_spend(g, (SCHEMA_WORK_MAX / 20 - vm.work) / 8 + 1))
      return false;
    if (vm.trouble != SCHEMA_OK || vm.work < 0)
      return gb_too_complex(g, "a value takes too much work to check");
    if (!ok)
      return false;
  }
  return true;
}

/* --- objects --- */

enum { COUNTED_MAX = 3000 }; /* positions times counts of an object with member counts */

static bool same(const struct gb_link *link, const char *name, size_t length) {
  return link->length == length && !memcmp(link->name, name, length);
}

static bool link_has(const struct gb_link *list, const char *name, size_t length) {
  for (; list; list = list->next)
    if (same(list, name, length))
      return true;
  return false;
}

/* --- what the value of a member must match --- */

/* A member in question has a known name, or is a further one: its name matches one pattern and
 * nobody knows which others, or it matches none. */
struct member_question {
  const char *name;           /* NULL: a further one */
  const struct gb_link *spec; /* that has the pattern */
  const char *pattern;        /* a key of it; NULL: none */
  size_t length;              /* of the name, or the pattern */
};
struct member_answer {
  uint32_t *entries; /* malloc'ed */
  size_t count, capacity;
  bool never;
};
enum cover { COVER_NO, COVER_YES, COVER_UNKNOWN };

static void answer_take(struct gb *g, struct member_answer *answer, const json_t *schema) {
  uint32_t entry;
  if (!answer)
    return;
  if (!gb_child(g, schema, &entry))
    answer->never = true;
  if (entry == NODE_NONE)
    return;
  answer->entries =
      xgrow(answer->entries, &answer->capacity, answer->count + 1, sizeof *answer->entries);
  answer->entries[answer->count++] = entry;
}

static bool pattern_has(struct gb *g, const char *pattern, size_t pattern_length, const char *name,
                        size_t length) {
  const struct compiler *c = &g->compiler;
  struct pattern_scratch scratch = {0};
  uint32_t index;
  if (!map_get(&c->patterns, (struct str){pattern, pattern_length}, &index))
    return false;
  enum pattern_result result = pattern_match(c->schema->patterns[index], &scratch, name, length);
  pattern_scratch_deinit(&scratch);
  if (!gb_spend(g, (int64_t)(scratch.cost / 8 + 1)))
    return false;
  if (result == PATTERN_TOO_COMPLEX)
    return gb_too_complex(g, "a pattern takes too much work");
  return result == PATTERN_MATCH;
}

/* Adds what one schema says; with `answer` NULL it only tells whether it says something. */
static enum cover ask(struct gb *g, const struct member_question *q, const struct gb_link *spec,
                      struct member_answer *answer) {
  json_t *patterns = (json_t *)spec->patterns;
  const json_t *known = q->name ? json_object_getn(spec->value, q->name, q->length) : NULL;
  enum cover cover = COVER_NO;
  if (known) {
    cover = COVER_YES;
    answer_take(g, answer, known);
  }
  if (q->pattern && spec != q->spec && json_object_size(patterns)) {
    if (!json_is_false(spec->additional) || json_object_size(patterns) > 1)
      return COVER_UNKNOWN;
    answer_take(g, answer, json_object_iter_value(json_object_iter(patterns)));
    return COVER_YES; /* its only pattern is the only way in */
  }
  for (void *at = json_object_iter(patterns); at; at = json_object_iter_next(patterns, at)) {
    const char *key = json_object_iter_key(at);
    bool has = q->spec == spec && q->pattern == key;
    if (q->name)
      has = pattern_has(g, key, json_object_iter_key_len(at), q->name, q->length);
    if (!has)
      continue;
    cover = COVER_YES;
    answer_take(g, answer, json_object_iter_value(at));
  }
  if (cover == COVER_NO && spec->additional) {
    cover = COVER_YES;
    answer_take(g, answer, spec->additional);
  }
  return cover;
}

/* Returns true if no schema within the scope of `spec` says anything about the member. */
static bool member_unevaluated(struct gb *g, const struct member_question *q,
                               const struct gb_shape *s, const struct gb_link *spec) {
  for (const struct gb_link *other = s->members; other; other = other->next) {
    if (other == spec || !gb_scope_within(g, other->scope, spec->scope))
      continue;
    bool says = other->scope != spec->scope;
    if (other->kind == SPEC_MEMBERS)
      says = ask(g, q, other, NULL) != COVER_NO;
    if (says)
      return false;
  }
  return true;
}

static struct gb_set question_answer(struct gb *g, const struct member_question *q,
                                     const struct gb_shape *s) {
  struct member_answer answer = {0};
  struct gb_set set = {.never = true};
  for (const struct gb_link *spec = s->members; spec && g->status == GBNF_OK; spec = spec->next) {
    if (spec->kind == SPEC_MEMBERS)
      ask(g, q, spec, &answer);
    else if (member_unevaluated(g, q, s, spec))
      answer_take(g, &answer, spec->additional);
  }
  uint32_t *kept = g->status == GBNF_OK ? gb_get(g, (answer.count + 1) * sizeof *kept) : NULL;
  if (kept) {
    if (answer.count)
      memcpy(kept, answer.entries, answer.count * sizeof *kept);
    set = gb_set_of(kept, answer.count);
    set.never = answer.never;
  }
  free(answer.entries);
  return set;
}

/* Returns true if the name matches all of propertyNames. */
static bool name_allowed(struct gb *g, const struct gb_shape *s, const char *name, size_t length) {
  if (link_has(s->forbidden, name, length))
    return false;
  for (const struct gb_link *n = s->names; n; n = n->next) {
    uint32_t entry;
    if (!gb_child(g, n->value, &entry))
      return false;
    if (entry == NODE_NONE)
      continue;
    json_t *value = json_stringn_nocheck(name, length);
    assert(value);
    bool ok = gb_matches(g, &(struct gb_set){&entry, 1, false}, value);
    json_decref(value);
    if (!ok)
      return false;
  }
  return true;
}

struct gb_set gb_member_set(struct gb *g, const struct gb_shape *shape, const char *name,
                            size_t length) {
  struct member_question q = {.name = name, .length = length};
  if (!name_allowed(g, shape, name, length))
    return (struct gb_set){.never = true};
  return question_answer(g, &q, shape);
}

/* --- the members that a schema names --- */

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
                             .keyword = single ? NULL : "properties",
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
                              link_has(o->shape->required, names[i]->name, names[i]->length), NULL};
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
    print_into(rule + n, sizeof rule - n, "-kv");
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
    lists = lists || spec->value;
  }
  return lists;
}

bool gb_closed_to(const struct gb_shape *shape, const char *name, size_t length) {
  if (!is_closed(shape, 0) || link_has(shape->required, name, length))
    return false;
  for (const struct gb_link *spec = shape->members; spec; spec = spec->next)
    if (json_object_getn(spec->value, name, length))
      return false;
  return true;
}

/* --- further members --- */

struct others { /* the further members of an object */
  struct object *object;
  const struct gb_link **taken; /* names that are written separately, or never */
  size_t taken_count;
  const struct gb_node *name; /* of those under no pattern: any that is not taken */
  struct gb_shapes names;     /* what propertyNames wants */
  bool any_name;              /* it wants nothing */
  bool too_many;              /* names are taken: `name` has them, too */
};

/* Lists what says which names there may be, other than patterns. */
static void note_names(struct gb *g, const struct gb_shape *s, const char *why) {
  for (const struct gb_link *spec = s->members; spec; spec = spec->next)
    if (spec->additional)
      gb_note(g, spec->entry,
              spec->kind == SPEC_UNEVALUATED ? "unevaluatedProperties" : "additionalProperties",
              why);
}

/* Lists a taken name that may be written as a further one all the same. */
static void note_taken(struct gb *g, const struct gb_link *taken) {
  if (taken->keyword)
    gb_note(g, taken->entry, taken->keyword,
            "a further property may have the name of one that is described");
}

static bool other_add(struct gb *g, struct others *o, const struct gb_node *name,
                      const struct gb_set *set) {
  const struct gb_node *member = set->never ? &gb_never : member_node(g, name, set, "other");
  o->object->other = gb_alt(g, o->object->other, member);
  return o->object->other != NULL;
}

/* Makes the strings that propertyNames wants. */
static const struct gb_node *wanted_name(struct gb *g, const struct others *o) {
  const struct gb_node *name = &gb_never;
  for (size_t i = 0; i < o->names.count; i++) {
    const struct gb_shape *s = &o->names.items[i];
    if (s->types & T_STRING && !s->finite)
      name = gb_alt(g, name, gb_string(g, s, o->object->rule));
    for (const struct gb_link *v = s->finite ? s->values : NULL; v; v = v->next)
      if (json_is_string(v->value))
        name =
            gb_alt(g, name,
                   gb_string_literal(g, json_string_value(v->value), json_string_length(v->value)));
  }
  return name;
}

static bool make_name(struct gb *g, struct others *o) {
  struct str *texts = gb_get(g, (o->taken_count + 1) * sizeof *texts);
  if (!texts)
    return false;
  for (size_t i = 0; i < o->taken_count; i++)
    texts[i] = (struct str){o->taken[i]->name, o->taken[i]->length};
  o->name = o->any_name ? gb_except(g, texts, o->taken_count) : wanted_name(g, o);
  o->too_many = !o->name && g->status == GBNF_OK;
  if (o->too_many)
    o->name = gb_primitive(g, "name");
  o->name = gb_named(g, o->object->rule, o->name);
  return o->name != NULL;
}

/* Makes members whose names match a pattern. Names that match several, or that have a description
 * of their own, are not told apart. */
static bool pattern_member(struct gb *g, struct others *o, const struct member_question *q,
                           bool alone, bool one_schema) {
  const struct gb_shape *s = o->object->shape;
  struct gb_pattern p = {
      .text = q->pattern, .length = q->length, .name = o->object->rule, .max = UINT64_MAX};
  struct gb_set set = question_answer(g, q, s);
  const struct gb_node *name = gb_pattern_node(g, &p);
  if (g->status != GBNF_OK)
    return false;
  if (!name) {
    gb_note(g, q->spec->entry, "patternProperties", p.why);
    note_names(g, s, p.why);
    name = o->name;
  } else if (!set.never) {
    for (size_t i = 0; i < o->taken_count; i++)
      if (pattern_has(g, p.text, p.length, o->taken[i]->name, o->taken[i]->length))
        note_taken(g, o->taken[i]);
  }
  static const char why[] = "names of several patterns, or of none, are not told apart";
  if (!alone)
    gb_note(g, q->spec->entry, "patternProperties", why);
  if (!one_schema)
    note_names(g, s, why);
  for (const struct gb_link *n = set.never || o->any_name ? NULL : s->names; n; n = n->next)
    gb_note(g, n->entry, "propertyNames",
            "beside patternProperties it is kept by the validator only");
  return g->status == GBNF_OK && other_add(g, o, name, &set);
}

/* Makes the members under each pattern, then those under none. */
static bool pattern_members(struct gb *g, struct others *o) {
  const struct gb_shape *s = o->object->shape;
  size_t patterns = 0, schemas = 0;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next) {
    patterns += json_object_size(spec->patterns);
    schemas += json_object_size(spec->patterns) > 0;
  }
  struct gb_set rest = question_answer(g, &(struct member_question){0}, s);
  if (g->status != GBNF_OK)
    return false;
  for (const struct gb_link *spec = s->members; spec; spec = spec->next)
    for (void *at = json_object_iter((json_t *)spec->patterns); at;
         at = json_object_iter_next((json_t *)spec->patterns, at)) {
      struct member_question q = {.spec = spec,
                                  .pattern = json_object_iter_key(at),
                                  .length = json_object_iter_key_len(at)};
      if (!pattern_member(g, o, &q, patterns == 1 && rest.never, schemas == 1))
        return false;
    }
  return other_add(g, o, o->name, &rest);
}

/* Makes the members whose names propertyNames lists, each by itself. */
static bool listed_members(struct gb *g, struct others *o) {
  for (size_t i = 0; i < o->names.count; i++)
    for (const struct gb_link *v = o->names.items[i].values; v; v = v->next) {
      const char *name = json_string_value(v->value);
      size_t length = json_string_length(v->value);
      bool taken = !name;
      for (size_t k = 0; k < o->taken_count && !taken; k++)
        taken = same(o->taken[k], name, length);
      if (taken)
        continue;
      struct gb_set set = gb_member_set(g, o->object->shape, name, length);
      if (g->status != GBNF_OK || !other_add(g, o, gb_string_literal(g, name, length), &set))
        return false;
    }
  return true;
}

/* Finds the shapes of the names that propertyNames wants. */
static bool find_names(struct gb *g, struct others *o) {
  const struct gb_shape *s = o->object->shape;
  uint32_t *entries = gb_get(g, (gb_link_count(s->names) + 1) * sizeof *entries);
  size_t count = 0;
  bool never = false;
  if (!entries)
    return false;
  for (const struct gb_link *n = s->names; n; n = n->next) {
    never = !gb_child(g, n->value, &entries[count]) || never;
    count += entries[count] != NODE_NONE;
  }
  o->any_name = !never && !count;
  struct gb_set set = gb_set_of(entries, count);
  if (!count || never)
    return true;
  if (!gb_shapes_of(g, &set, &o->names))
    return false;
  for (size_t i = 0; i < o->names.count; i++) {
    const struct gb_shape *n = &o->names.items[i];
    o->any_name = o->any_name ||
                  (n->types & T_STRING && !n->finite && !n->patterns && !n->formats &&
                   !n->not_values && !n->min_length.value && n->max_length.value == UINT64_MAX);
  }
  return true;
}

/* Makes further members. What propertyNames says beyond single strings is listed there, not where
 * its own keywords stand. */
static bool make_others(struct gb *g, struct others *o) {
  const struct gb_shape *s = o->object->shape;
  bool quiet = g->quiet, missed = g->missed;
  g->quiet = true;
  g->missed = false;
  bool ok = find_names(g, o), listed = !o->any_name;
  for (size_t i = 0; i < o->names.count; i++)
    listed = listed && (o->names.items[i].finite || !(o->names.items[i].types & T_STRING));
  ok = ok && (listed || make_name(g, o));
  g->quiet = quiet;
  for (const struct gb_link *n = g->missed && !listed ? s->names : NULL; n; n = n->next)
    gb_note(g, n->entry, "propertyNames", "names of this kind are kept by the validator only");
  g->missed = missed;
  for (size_t i = 0; ok && !listed && i < o->taken_count; i++)
    if (o->too_many || (!o->any_name && name_allowed(g, s, o->taken[i]->name, o->taken[i]->length)))
      note_taken(g, o->taken[i]);
  return ok && (listed ? listed_members(g, o) : pattern_members(g, o));
}

static bool make_other(struct gb *g, struct object *object, const struct gb_link **names,
                       size_t count) {
  struct others o = {.object = object, .taken = names, .taken_count = count};
  object->other = &gb_never;
  if (is_closed(object->shape, object->count))
    return true;
  for (const struct gb_link *f = object->shape->forbidden; f; f = f->next) {
    bool known = false;
    for (size_t i = 0; i < o.taken_count && !known; i++)
      known = same(f, names[i]->name, names[i]->length);
    if (!known)
      names[o.taken_count++] = f;
  }
  g->naming = true;
  bool ok = make_others(g, &o);
  g->naming = false;
  free(o.names.items);
  object->other = ok ? gb_named(g, object->rule, object->other) : NULL;
  return object->other != NULL;
}

/* --- the whole --- */

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
  bool too_many = to > GB_COUNT_MAX;
  if (o->count) /* the first comparison keeps the product small */
    too_many = to > COUNTED_MAX || positions * (to + 1) > COUNTED_MAX;
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

static const struct gb_node *gb_object(struct gb *g, const struct gb_shape *s, const char *name) {
  struct object o = {.shape = s, .rule = name};
  const struct gb_link **names;
  size_t count;
  bool never = false;
  if (!s->members && !s->required && !s->forbidden && !s->names && !s->min_members.value &&
      s->max_members.value == UINT64_MAX && !s->not_values)
    return gb_primitive(g, "object");
  for (const struct gb_link *n = s->not_values; n; n = n->next)
    if (json_is_object(n->value))
      gb_note(g, n->entry, n->keyword, "a single object is kept out by the validator only");
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

/* --- the rules of sets --- */

static const struct gb_node *shape_node(struct gb *g, const struct gb_shape *shape,
                                        const char *name) {
  const struct gb_node *kids[8];
  size_t n = 0;
  if (shape->types == T_ALL && !shape->integral && !shape->minimum && !shape->maximum &&
      !shape->min_length.value && shape->max_length.value == UINT64_MAX &&
      !shape->min_items.value && shape->max_items.value == UINT64_MAX &&
      !shape->min_members.value && shape->max_members.value == UINT64_MAX && !shape->finite &&
      !shape->not_values && !shape->patterns && !shape->formats && !shape->items &&
      !shape->members && !shape->required && !shape->forbidden && !shape->names &&
      !shape->multiples && !shape->unique && !shape->contains)
    return gb_primitive(g, "value");
  if (shape->types & T_OBJECT)
    kids[n++] = gb_object(g, shape, name);
  if (shape->types & T_ARRAY)
    kids[n++] = gb_array(g, shape, name);
  if (shape->types & T_STRING)
    kids[n++] = gb_string(g, shape, name);
  if (shape->types & T_NUMBER)
    kids[n++] = gb_number(g, shape);
  if ((shape->types & (T_TRUE | T_FALSE)) == (T_TRUE | T_FALSE))
    kids[n++] = gb_primitive(g, "boolean");
  else if (shape->types & (T_TRUE | T_FALSE))
    kids[n++] = gb_word(g, shape->types & T_TRUE ? "true" : "false");
  if (shape->types & T_NULL)
    kids[n++] = gb_primitive(g, "null");
  return gb_list(g, GB_ALT, kids, n);
}

/* Makes all values of all shapes that the set as a whole accepts: no keyword is left to the
 * validator. */
static const struct gb_node *values_node(struct gb *g, const struct gb_set *set,
                                         const struct gb_shapes *shapes, size_t *done) {
  struct map seen = {0};
  size_t count = 0, room = 0;
  for (size_t i = 0; i < shapes->count; i++)
    room += shapes->items[i].finite ? gb_link_count(shapes->items[i].values) : 0;
  const struct gb_node **kids = gb_get(g, (room + 1) * sizeof *kids);
  for (size_t i = 0; kids && i < shapes->count; i++) {
    const struct gb_shape *shape = &shapes->items[i];
    *done += shape->finite;
    for (const struct gb_link *v = shape->finite ? shape->values : NULL; v; v = v->next) {
      uint32_t known = 1;
      if (!map_add(&seen, &g->arena, MAP_KEY(v->value), &known))
        continue;
      if (g->status == GBNF_OK && gb_matches(g, set, v->value))
        kids[count++] = gb_value_literal(g, v->value, shape->integral);
      if (g->status != GBNF_OK)
        break;
    }
  }
  map_deinit(&seen);
  return kids && g->status == GBNF_OK ? gb_list(g, GB_ALT, kids, count) : NULL;
}

static const struct gb_node *set_body(struct gb *g, const struct gb_set *set,
                                      const struct gb_shapes *shapes, const char *name) {
  size_t finite = 0, count = 0;
  const struct gb_node **kids = gb_get(g, (shapes->count + 1) * sizeof *kids);
  if (!kids)
    return NULL;
  kids[count++] = values_node(g, set, shapes, &finite);
  for (size_t i = 0; i < shapes->count && g->status == GBNF_OK; i++)
    if (!shapes->items[i].finite)
      kids[count++] = shape_node(g, &shapes->items[i], name);
  return g->status == GBNF_OK ? gb_list(g, GB_ALT, kids, count) : NULL;
}

bool gb_sets_build(struct gb *g) {
  struct gb_shapes shapes = {0};
  while (g->status == GBNF_OK && g->job_done < g->job_count) {
    struct gb_job job = g->jobs[g->job_done++];
    if (!gb_shapes_of(g, &job.set, &shapes))
      break;
    const struct gb_node *node = set_body(g, &job.set, &shapes, g->rules[job.rule].name);
    if (!node)
      break;
    g->rules[job.rule].node = node;
  }
  free(shapes.items);
  assert(g->status != GBNF_OK || g->job_done == g->job_count);
  return g->status == GBNF_OK;
}
