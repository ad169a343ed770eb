/* Holds a grammar as a tree: nodes, rules by name, those that every grammar may use, and the
 * text. */
#include "gbnf/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- bounds, notes and lists --- */

void gb_too_complex(struct gb *g, const char *limit) {
  if (g->status == GBNF_OK) {
    g->status = GBNF_TOO_COMPLEX;
    g->limit = limit;
  }
}

bool gb_spend(struct gb *g, int64_t work) {
  g->work += work;
  if (g->work > GB_WORK_MAX)
    gb_too_complex(g, "the schema takes too much work");
  return g->status == GBNF_OK;
}

void *gb_get(struct gb *g, size_t size) {
  g->bytes += size;
  if (g->bytes > GB_MEMORY_BYTES_MAX)
    gb_too_complex(g, "the schema takes too much memory");
  return arena_alloc(&g->arena, size);
}

static void note_add(struct gb *g, char *pointer, const char *keyword, const char *why) {
  g->notes = xgrow(g->notes, &g->note_capacity, g->note_count + 1, sizeof *g->notes);
  g->notes[g->note_count++] = (struct gbnf_note){pointer, keyword, why};
}

void gb_note(struct gb *g, uint32_t entry, const char *keyword, const char *why) {
  assert(keyword && why);
  buf_auto_t key = {0};
  uint32_t known = 1;
  g->missed = g->missed || g->quiet;
  if (g->quiet || g->note_count > GBNF_NOTES_MAX)
    return;
  if (g->note_count == GBNF_NOTES_MAX) {
    note_add(g, xstrdup(""), "", "and others: the list ends here");
    return;
  }
  if (entry != NODE_NONE)
    schema_entry_text(g->compiler.schema, entry, &key);
  size_t pointer = key.n;
  buf_printf(&key, "\n%s", keyword);
  if (map_add(&g->noted, &g->arena, buf_view(&key), &known))
    note_add(g, xstrndup(key.p, pointer), keyword, why);
}

size_t gb_link_count(const struct gb_link *list) {
  size_t n = 0;
  for (; list; list = list->next)
    n++;
  return n;
}

const struct gb_link **gb_links(struct gb *g, const struct gb_link *list, size_t *count) {
  *count = gb_link_count(list);
  const struct gb_link **links = gb_get(g, (*count + 1) * sizeof *links);
  for (size_t i = *count; list; list = list->next)
    links[--i] = list;
  return links;
}

enum { COMPARED_MAX = 1000 }; /* alternatives that are compared, to leave out equal ones */

/* --- nodes --- */

const struct gb_node gb_never = {.kind = GB_NEVER};
const struct gb_node gb_empty = {.kind = GB_SEQ};

static struct gb_node *gb_node_new(struct gb *g, enum gb_kind kind) {
  struct gb_node *node = gb_get(g, sizeof *node);
  node->kind = kind;
  return node;
}

const struct gb_node *gb_literal(struct gb *g, const char *text, size_t length) {
  struct gb_node *node = gb_node_new(g, GB_LITERAL);
  node->text = arena_strndup(&g->arena, text, length);
  node->length = length;
  return node;
}

const struct gb_node *gb_word(struct gb *g, const char *text) {
  return gb_literal(g, text, strlen(text));
}

const struct gb_node *gb_class(struct gb *g, const char *text) {
  struct gb_node *node = gb_node_new(g, GB_CLASS);
  node->length = strlen(text);
  node->text = arena_strndup(&g->arena, text, node->length);
  return node;
}

const struct gb_node *gb_ref(struct gb *g, uint32_t rule) {
  assert(rule < g->rule_count);
  struct gb_node *node = gb_node_new(g, GB_REF);
  node->rule = rule;
  return node;
}

static bool gb_nodes_equal(const struct gb_node *a, const struct gb_node *b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || a->count != b->count || a->rule != b->rule || a->min != b->min ||
      a->max != b->max || a->length != b->length)
    return false;
  if (a->length && memcmp(a->text, b->text, a->length) != 0)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!gb_nodes_equal(a->kids[i], b->kids[i]))
      return false;
  return true;
}

static bool alternative_is_new(const struct gb_node *list, const struct gb_node *node) {
  for (uint32_t i = 0; i < list->count; i++)
    if (gb_nodes_equal(list->kids[i], node))
      return false;
  return true;
}

const struct gb_node *gb_list(struct gb *g, enum gb_kind kind, const struct gb_node *const *kids,
                              size_t count) {
  assert(kind == GB_SEQ || kind == GB_ALT);
  size_t room = 0;
  for (size_t i = 0; i < count; i++) {
    if (kind == GB_SEQ && kids[i]->kind == GB_NEVER)
      return &gb_never;
    room += kids[i]->kind == kind ? kids[i]->count : 1;
  }
  if (g->status != GBNF_OK) /* no more memory is used */
    return &gb_never;
  struct gb_node *node = gb_node_new(g, kind);
  node->kids = gb_get(g, room * sizeof *node->kids);
  for (size_t i = 0; i < count; i++) {
    bool flat = kids[i]->kind == kind;
    const struct gb_node *const *from = flat ? kids[i]->kids : &kids[i];
    for (size_t k = 0, n = flat ? kids[i]->count : 1; k < n; k++) {
      if (kind == GB_ALT && (from[k]->kind == GB_NEVER ||
                             (room <= COMPARED_MAX && !alternative_is_new(node, from[k]))))
        continue;
      node->kids[node->count++] = from[k];
    }
  }
  if (kind == GB_ALT && !node->count)
    return &gb_never;
  return node->count == 1 ? node->kids[0] : node;
}

/* --- rules --- */

static uint32_t rule_add(struct gb *g, const char *name, const struct gb_node *node) {
  if (g->rule_count >= GBNF_RULES_MAX) {
    gb_too_complex(g, "the grammar has too many rules");
    return 0;
  }
  g->rules = xgrow(g->rules, &g->rule_capacity, g->rule_count + 1, sizeof *g->rules);
  g->rules[g->rule_count] = (struct gb_rule){.name = name, .node = node};
  return (uint32_t)g->rule_count++;
}

uint32_t gb_rule_new(struct gb *g, const char *name, const struct gb_node *node) {
  char unique[80];
  uint32_t known = 0;
  if (map_get(&g->names, str_from(name), &known)) {
    do
      snprintf(unique, sizeof unique, "%.60s-%u", name, (unsigned)++known);
    while (map_get(&g->names, str_from(unique), &(uint32_t){0}));
    map_put(&g->names, &g->arena, str_from(name), known);
    name = unique;
  }
  map_put(&g->names, &g->arena, str_from(name), 1);
  return rule_add(g, arena_strdup(&g->arena, name), node);
}

const struct gb_node *gb_named(struct gb *g, const char *name, const struct gb_node *node) {
  if (node->kind == GB_NEVER || node->kind == GB_REF || node->kind == GB_CLASS ||
      node->kind == GB_LITERAL)
    return node;
  return gb_ref(g, gb_rule_new(g, name, node));
}

/* --- repetitions --- */

static const struct gb_node *repeat_plain(struct gb *g, const struct gb_node *kid, uint64_t min,
                                          uint64_t max) {
  if (max == 0)
    return &gb_empty;
  if (min == 1 && max == 1)
    return kid;
  struct gb_node *node = gb_node_new(g, GB_REPEAT);
  node->kids = gb_get(g, sizeof *node->kids);
  node->kids[0] = kid;
  node->count = 1;
  node->min = min;
  node->max = max;
  return node;
}

/* Repeats exactly `count` times: blocks of a block's length, and the rest. */
static const struct gb_node *repeat_exactly(struct gb *g, const char *name,
                                            const struct gb_node *kid, uint64_t count) {
  if (count <= GBNF_REPEAT_MAX)
    return repeat_plain(g, kid, count, count);
  const uint64_t block = 1000;
  const struct gb_node *one = gb_named(g, name, repeat_plain(g, kid, block, block));
  return gb_seq(g, repeat_plain(g, one, count / block, count / block),
                repeat_plain(g, kid, count % block, count % block));
}

/* Repeats up to `count` times, so that each number has one derivation, or two while a block is
 * open: k whole blocks, then less than a block. */
static const struct gb_node *repeat_up_to(struct gb *g, const char *name, const struct gb_node *kid,
                                          uint64_t count) {
  if (count <= GBNF_REPEAT_MAX)
    return repeat_plain(g, kid, 0, count);
  const uint64_t block = 1000;
  uint64_t blocks = (count + 1) / block, rest = (count + 1) % block;
  const struct gb_node *one = gb_named(g, name, repeat_plain(g, kid, block, block));
  const struct gb_node *most = gb_seq(g, repeat_plain(g, one, 0, blocks - 1),
                                      gb_named(g, name, repeat_plain(g, kid, 0, block - 1)));
  if (!rest)
    return most;
  const struct gb_node *all = gb_seq(g, repeat_plain(g, one, blocks, blocks),
                                     gb_named(g, name, repeat_plain(g, kid, 0, rest - 1)));
  return gb_named(g, name, gb_alt(g, most, all));
}

/* Returns true if the node is fit to be a group: no counts inside. */
static bool is_small(const struct gb_node *node) {
  if (node->kind != GB_SEQ || node->count > 8 || !node->count)
    return false;
  for (uint32_t i = 0; i < node->count; i++)
    if (node->kids[i]->kind != GB_REF && node->kids[i]->kind != GB_LITERAL &&
        node->kids[i]->kind != GB_CLASS)
      return false;
  return true;
}

const struct gb_node *gb_repeat(struct gb *g, const char *name, const struct gb_node *kid,
                                uint64_t min, uint64_t max) {
  assert(name);
  bool simple = max == 1 || (max == UINT64_MAX && min <= 1);
  if (kid->kind == GB_SEQ && !kid->count)
    return kid;
  if (!simple || !is_small(kid))
    kid = gb_named(g, name, kid);
  if (kid->kind == GB_NEVER)
    return min ? &gb_never : &gb_empty;
  if (min > max)
    return &gb_never;
  const struct gb_node *node;
  if ((max == UINT64_MAX ? min : max) <= GBNF_REPEAT_MAX) {
    node = repeat_plain(g, kid, min, max);
  } else {
    const struct gb_node *least = repeat_exactly(g, name, kid, min);
    if (max == UINT64_MAX)
      node = gb_seq(g, least, repeat_plain(g, kid, 0, UINT64_MAX));
    else
      node = gb_seq(g, least, repeat_up_to(g, name, kid, max - min));
  }
  /* A count within a group that is itself repeated multiplies; in a rule of its own it does not. */
  bool counted = max != UINT64_MAX ? max > 1 : min > 1;
  return counted ? gb_named(g, name, node) : node;
}

const struct gb_node *gb_maybe(struct gb *g, const char *name, const struct gb_node *kid) {
  return gb_repeat(g, name, kid, 0, 1);
}

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

const struct gb_node *gb_string_literal(struct gb *g, const char *text, size_t length) {
  buf_auto_t raw = {0}, ascii = {0};
  bool foreign = false;
  buf_puts(&raw, "\"");
  escape(&raw, text, length, false, &foreign);
  buf_puts(&raw, "\"");
  buf_puts(&ascii, "\"");
  if (foreign)
    escape(&ascii, text, length, true, &foreign);
  buf_puts(&ascii, "\"");
  const struct gb_node *node = gb_literal(g, raw.p, raw.n);
  if (foreign)
    node = gb_alt(g, node, gb_literal(g, ascii.p, ascii.n));
  return node;
}

/* Makes a number. A model might spell it in many ways that are equal; the grammar has the shortest
 * decimals only, and for an integer also ".0". */
static const struct gb_node *number_literal(struct gb *g, const json_t *value, bool integers) {
  char text[STR_REAL_BYTES];
  double real = json_real_value(value);
  if (json_is_integer(value))
    str_from_number(text, json_integer_value(value));
  else if (schema_value_is_integral(value) && fabs(real) < 1e15)
    snprintf(text, sizeof text, "%.0f", real == 0 ? 0.0 : real);
  else
    str_from_real(text, real);
  const struct gb_node *node = gb_word(g, text);
  /* It is exact as a double, too. */
  bool exact = !json_is_integer(value) || (json_integer_value(value) <= 9007199254740992 &&
                                           json_integer_value(value) >= -9007199254740992);
  if (!integers && exact && !strpbrk(text, ".eE"))
    node = gb_seq(g, node, gb_maybe(g, "zero", gb_word(g, ".0")));
  return node;
}

struct literal_member {
  const char *name;
  size_t length;
  const json_t *value;
};

static const struct gb_node *object_in_order(struct gb *g, const struct literal_member *members,
                                             const size_t *order, size_t n, bool integers) {
  const struct gb_node *node = gb_seq(g, gb_word(g, "{"), gb_space(g));
  for (size_t i = 0; i < n; i++) {
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
  for (void *at = json_object_iter((json_t *)value); at;
       at = json_object_iter_next((json_t *)value, at), i++) {
    members[i] = (struct literal_member){json_object_iter_key(at), json_object_iter_key_len(at),
                                         json_object_iter_value(at)};
    order[i] = i;
  }
  const struct gb_node *node = object_in_order(g, members, order, n, integers);
  size_t orders_count = n == 2 || n == 3 ? n * (n - 1) : 1;
  for (size_t k = 1; k < orders_count; k++)
    node = gb_alt(g, node, object_in_order(g, members, orders[k], n, integers));
  return node;
}

const struct gb_node *gb_value_literal(struct gb *g, const json_t *value, bool integers) {
  if (!gb_spend(g, 1))
    return &gb_never;
  switch (json_typeof(value)) {
  case JSON_STRING:
    return gb_string_literal(g, json_string_value(value), json_string_length(value));
  case JSON_INTEGER:
  case JSON_REAL:
    return number_literal(g, value, integers);
  case JSON_ARRAY: {
    size_t n = json_array_size(value);
    const struct gb_node *node = gb_seq(g, gb_word(g, "["), gb_space(g));
    for (size_t i = 0; i < n; i++) {
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
  return &gb_never;
}

/* --- rules that every grammar may use --- */

static const struct {
  const char *name, *body; /* GBNF */
  const char *uses[6];     /* the rules that it names */
} primitives[] = {
    {"ws", "| \" \" | \"\\n\" [ \\t]{0,40}", {NULL}},
    {"hex", "[0-9a-fA-F]", {NULL}},
    {"char",
     "[^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9A-CE-Fa-ce-f] hex hex hex | "
     "[Dd] "
     "[0-7] hex hex | [Dd] [89ABab] hex hex \"\\\\u\" [Dd] [C-Fc-f] hex hex))",
     {"hex"}},
    {"string", "\"\\\"\" char* \"\\\"\"", {"char"}},
    {"integer", "\"-\"? (\"0\" | [1-9] [0-9]{0,15})", {NULL}},
    {"exponent", "[eE] [-+]? ([0-9] | [1-9] [0-9] | \"1\" [0-9] [0-9])", {NULL}},
    {"unsigned", "(\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,20})? exponent?", {"exponent"}},
    {"number", "\"-\"? unsigned", {"unsigned"}},
    {"boolean", "\"true\" | \"false\"", {NULL}},
    {"null", "\"null\"", {NULL}},
    {"name-char", /* of a member's name: without U+0000, which many readers refuse there */
     "[^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" (\"000\" [1-9a-fA-F] | \"00\" "
     "[1-9a-fA-F] hex | \"0\" [1-9a-fA-F] hex hex | [1-9A-CE-Fa-ce-f] hex hex hex | [Dd] [0-7] "
     "hex hex | [Dd] [89ABab] hex hex \"\\\\u\" [Dd] [C-Fc-f] hex hex))",
     {"hex"}},
    {"name", "\"\\\"\" name-char* \"\\\"\"", {"name-char"}},
    {"member", "name ws \":\" ws value ws", {"name", "value", "ws"}},
    {"object", "\"{\" ws (member (\",\" ws member)*)? \"}\"", {"member", "ws"}},
    {"array", "\"[\" ws (value ws (\",\" ws value ws)*)? \"]\"", {"value", "ws"}},
    {"value",
     "object | array | string | number | boolean | null",
     {"object", "array", "string", "number", "boolean", "null"}},
};

void gb_primitives_reserve(struct gb *g) {
  for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
    map_put(&g->names, &g->arena, str_from(primitives[i].name), 1);
}

/* Makes a primitive's rule. Its text is written as it is (GB_CLASS), followed by the rules that it
 * names. */
const struct gb_node *gb_primitive(struct gb *g, const char *name) {
  size_t i = 0;
  uint32_t rule;
  if (map_get(&g->primitives, str_from(name), &rule))
    return gb_ref(g, rule);
  while (strcmp(primitives[i].name, name) != 0)
    i++;
  struct gb_node *node = (struct gb_node *)gb_class(g, primitives[i].body);
  rule = rule_add(g, primitives[i].name, node);
  map_put(&g->primitives, &g->arena, str_from(name), rule);
  node->kids = gb_get(g, 6 * sizeof *node->kids);
  for (; node->count < 6 && primitives[i].uses[node->count]; node->count++)
    node->kids[node->count] = gb_primitive(g, primitives[i].uses[node->count]);
  return gb_ref(g, rule);
}

const struct gb_node *gb_space(struct gb *g) {
  return gb_primitive(g, "ws");
}

/* --- the text, without rules that derive nothing or are never reached --- */

static bool productive(const struct gb *g, const struct gb_node *node) {
  switch (node->kind) {
  case GB_NEVER:
    return false;
  case GB_LITERAL:
  case GB_CLASS:
    return true;
  case GB_REF:
    return g->rules[node->rule].productive;
  case GB_SEQ:
    for (uint32_t i = 0; i < node->count; i++)
      if (!productive(g, node->kids[i]))
        return false;
    return true;
  case GB_ALT:
    for (uint32_t i = 0; i < node->count; i++)
      if (productive(g, node->kids[i]))
        return true;
    return false;
  case GB_REPEAT:
    return !node->min || productive(g, node->kids[0]);
  }
  return false;
}

/* Returns the node without the parts that derive nothing; the node is productive. */
static const struct gb_node *prune(struct gb *g, const struct gb_node *node) {
  if (node->kind == GB_REF) {
    /* It is what the node refers to, past rules that only name another one. */
    for (size_t i = 0; i < g->rule_count && node->kind == GB_REF; i++) {
      const struct gb_node *to = g->rules[node->rule].node;
      if (!to || to->kind != GB_REF)
        break;
      node = to;
    }
    return node;
  }
  if (node->kind == GB_REPEAT && !productive(g, node->kids[0]))
    return &gb_empty;
  if (node->kind != GB_SEQ && node->kind != GB_ALT && node->kind != GB_REPEAT)
    return node;
  struct gb_node *copy = gb_get(g, sizeof *copy);
  *copy = *node;
  copy->count = 0;
  copy->kids = gb_get(g, node->count * sizeof *copy->kids);
  for (uint32_t i = 0; i < node->count; i++) {
    if (node->kind == GB_ALT && !productive(g, node->kids[i]))
      continue;
    const struct gb_node *kid = prune(g, node->kids[i]);
    if (node->kind == GB_SEQ && kid->kind == GB_SEQ && !kid->count)
      continue;
    copy->kids[copy->count++] = kid;
  }
  return copy->count == 1 && node->kind != GB_REPEAT ? copy->kids[0] : copy;
}

static void reach(struct gb *g, uint32_t root) {
  uint32_t *stack = xmalloc(g->rule_count * sizeof *stack);
  size_t depth = 0, count = 0, capacity = 0;
  const struct gb_node **todo = NULL;
  stack[depth++] = root;
  g->rules[root].reached = true;
  while (depth && g->status == GBNF_OK) {
    struct gb_rule *rule = &g->rules[stack[--depth]];
    rule->node = prune(g, rule->node);
    todo = xgrow(todo, &capacity, 1, sizeof *todo);
    todo[count++] = rule->node;
    while (count) {
      const struct gb_node *node = todo[--count];
      if (node->kind == GB_REF && !g->rules[node->rule].reached) {
        g->rules[node->rule].reached = true;
        stack[depth++] = node->rule;
      }
      todo = xgrow(todo, &capacity, count + node->count, sizeof *todo);
      for (uint32_t i = 0; i < node->count; i++)
        todo[count++] = node->kids[i];
    }
  }
  free(stack);
  free(todo);
}

static void write_literal(struct buf *out, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c == '\n')
      buf_puts(out, "\\n");
    else if (c < 0x20 || c == 0x7f)
      buf_printf(out, "\\x%02X", c);
    else
      buf_append(out, text + i, 1);
  }
}

enum place { PLACE_RULE, PLACE_ALTERNATIVE, PLACE_ITEM };

static void write_node(const struct gb *g, const struct gb_node *node, enum place place,
                       struct buf *out);

static void write_seq(const struct gb *g, const struct gb_node *node, struct buf *out) {
  if (!node->count)
    buf_puts(out, "\"\"");
  for (uint32_t i = 0; i < node->count; i++) {
    const struct gb_node *kid = node->kids[i];
    if (i && node->kids[i - 1]->kind == GB_LITERAL && kid->kind == GB_LITERAL) {
      out->n--; /* one literal of neighbours */
      write_literal(out, kid->text, kid->length);
      buf_puts(out, "\"");
      continue;
    }
    if (i)
      buf_puts(out, " ");
    write_node(g, kid, PLACE_ITEM, out);
  }
}

static void write_node(const struct gb *g, const struct gb_node *node, enum place place,
                       struct buf *out) {
  bool grouped =
      place == PLACE_ITEM && (node->kind == GB_ALT || node->kind == GB_SEQ) && node->count > 0;
  buf_puts(out, grouped ? "(" : "");
  switch (node->kind) {
  case GB_NEVER: /* cut away before */
    break;
  case GB_LITERAL:
    buf_puts(out, "\"");
    write_literal(out, node->text, node->length);
    buf_puts(out, "\"");
    break;
  case GB_CLASS:
    buf_append(out, node->text, node->length);
    break;
  case GB_REF:
    buf_puts(out, g->rules[node->rule].name);
    break;
  case GB_SEQ:
    write_seq(g, node, out);
    break;
  case GB_ALT:
    for (uint32_t i = 0; i < node->count; i++) {
      if (i)
        buf_puts(out, " | ");
      write_node(g, node->kids[i], PLACE_ALTERNATIVE, out);
    }
    break;
  case GB_REPEAT:
    write_node(g, node->kids[0], PLACE_ITEM, out);
    if (node->min == 0 && node->max == 1)
      buf_puts(out, "?");
    else if (node->min <= 1 && node->max == UINT64_MAX)
      buf_puts(out, node->min ? "+" : "*");
    else if (node->max == UINT64_MAX)
      buf_printf(out, "{%u,}", (unsigned)node->min);
    else if (node->min == node->max)
      buf_printf(out, "{%u}", (unsigned)node->min);
    else
      buf_printf(out, "{%u,%u}", (unsigned)node->min, (unsigned)node->max);
    break;
  }
  buf_puts(out, grouped ? ")" : "");
}

void gb_write(struct gb *g, uint32_t root, struct buf *out) {
  /* The rules that derive something are marked first. Rules are mostly made after those that refer
   * to them, so this goes from the last. */
  for (bool again = true; again;) {
    again = false;
    for (size_t i = g->rule_count; i-- > 0;)
      if (!g->rules[i].productive && g->rules[i].node && productive(g, g->rules[i].node))
        again = g->rules[i].productive = true;
  }
  if (!g->rules[root].productive)
    g->status = GBNF_UNSATISFIABLE;
  else
    reach(g, root);
  for (size_t i = 0; i < g->rule_count && g->status == GBNF_OK; i++) {
    if (!g->rules[i].reached)
      continue;
    buf_printf(out, "%s ::= ", g->rules[i].name);
    write_node(g, g->rules[i].node, PLACE_RULE, out);
    buf_puts(out, "\n");
    if (out->n > GBNF_TEXT_BYTES_MAX)
      gb_too_complex(g, "the grammar is too long");
  }
}
