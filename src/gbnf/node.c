/* Makes grammar nodes, rules by name, and the rules that every grammar may use. */
#include "gbnf/internal.h"

#include <assert.h>
#include <stdio.h>

enum { COMPARED_MAX = 1000 }; /* alternatives that are compared, to leave out equal ones */

const struct gb_node gb_never = {.kind = GB_NEVER};
const struct gb_node gb_empty = {.kind = GB_SEQ};

static struct gb_node *gb_node_new(struct gb *g, enum gb_kind kind) {
  struct gb_node *node = gb_get(g, sizeof *node);
  if (node)
    node->kind = kind;
  return node;
}

const struct gb_node *gb_literal(struct gb *g, const char *text, size_t length) {
  struct gb_node *node = gb_node_new(g, GB_LITERAL);
  if (!node)
    return NULL;
  node->text = arena_strndup(&g->arena, text, length);
  node->length = length;
  return node;
}

const struct gb_node *gb_word(struct gb *g, const char *text) {
  return gb_literal(g, text, strlen(text));
}

const struct gb_node *gb_class(struct gb *g, const char *text) {
  const struct gb_node *node = gb_word(g, text);
  if (node)
    ((struct gb_node *)node)->kind = GB_CLASS;
  return node;
}

const struct gb_node *gb_ref(struct gb *g, uint32_t rule) {
  assert(rule < g->rule_count);
  struct gb_node *node = gb_node_new(g, GB_REF);
  if (node)
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
    if (!kids[i])
      return NULL;
    if (kind == GB_SEQ && kids[i]->kind == GB_NEVER)
      return &gb_never;
    room += kids[i]->kind == kind ? kids[i]->count : 1;
  }
  struct gb_node *node = gb_node_new(g, kind);
  if (!node)
    return NULL;
  node->kids = gb_get(g, (room ? room : 1) * sizeof *node->kids);
  if (!node->kids)
    return NULL;
  for (size_t i = 0; i < count; i++) {
    bool flat = kids[i]->kind == kind;
    const struct gb_node *const *from = flat ? kids[i]->kids : &kids[i];
    for (size_t k = 0, n = flat ? kids[i]->count : 1; k < n; k++) {
      if (kind == GB_ALT && from[k]->kind == GB_NEVER)
        continue;
      if (kind == GB_ALT && room <= COMPARED_MAX && !alternative_is_new(node, from[k]))
        continue;
      node->kids[node->count++] = from[k];
    }
  }
  if (kind == GB_ALT && !node->count)
    return &gb_never;
  return node->count == 1 ? node->kids[0] : node;
}

static bool rule_add(struct gb *g, const char *name, const struct gb_node *node, uint32_t *rule) {
  if (g->rule_count >= GBNF_RULES_MAX)
    return gb_too_complex(g, "the grammar has too many rules");
  g->rules = xgrow(g->rules, &g->rule_capacity, g->rule_count + 1, sizeof *g->rules);
  g->rules[g->rule_count] = (struct gb_rule){.name = name, .node = node};
  *rule = (uint32_t)g->rule_count++;
  return true;
}

bool gb_rule_new(struct gb *g, const char *name, const struct gb_node *node, uint32_t *rule) {
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
  return rule_add(g, arena_strdup(&g->arena, name), node, rule);
}

const struct gb_node *gb_named(struct gb *g, const char *name, const struct gb_node *node) {
  uint32_t rule;
  if (!node || node->kind == GB_NEVER || node->kind == GB_REF || node->kind == GB_CLASS ||
      node->kind == GB_LITERAL)
    return node;
  return gb_rule_new(g, name, node, &rule) ? gb_ref(g, rule) : NULL;
}

static const struct gb_node *repeat_plain(struct gb *g, const struct gb_node *kid, uint64_t min,
                                          uint64_t max) {
  if (max == 0)
    return &gb_empty;
  if (min == 1 && max == 1)
    return kid;
  struct gb_node *node = gb_node_new(g, GB_REPEAT);
  if (!node)
    return NULL;
  node->kids = gb_get(g, sizeof *node->kids);
  if (!node->kids)
    return NULL;
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
  return gb_seq(g, one ? repeat_plain(g, one, count / block, count / block) : NULL,
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
  const struct gb_node *most = gb_seq(g, one ? repeat_plain(g, one, 0, blocks - 1) : NULL,
                                      gb_named(g, name, repeat_plain(g, kid, 0, block - 1)));
  if (!rest)
    return most;
  const struct gb_node *all = gb_seq(g, one ? repeat_plain(g, one, blocks, blocks) : NULL,
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
  if (!kid)
    return NULL;
  if (kid->kind == GB_SEQ && !kid->count)
    return kid;
  if (!simple || !is_small(kid))
    kid = gb_named(g, name, kid);
  if (!kid)
    return NULL;
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

static const struct {
  const char *name, *body; /* GBNF; rules that it uses are after '|' in `uses` */
  const char *uses[6];
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
    {"name", /* a member's: a string without U+0000, which many readers refuse there */
     "\"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" (\"000\" [1-9a-fA-F] | "
     "\"00\" "
     "[1-9a-fA-F] hex | \"0\" [1-9a-fA-F] hex hex | [1-9A-CE-Fa-ce-f] hex hex hex | [Dd] [0-7] "
     "hex hex | [Dd] [89ABab] hex hex \"\\\\u\" [Dd] [C-Fc-f] hex hex)))* \"\\\"\"",
     {"hex"}},
    {"member", "name ws \":\" ws value ws", {"name", "value", "ws"}},
    {"object", "\"{\" ws (member (\",\" ws member)*)? \"}\"", {"member", "ws"}},
    {"array", "\"[\" ws (value ws (\",\" ws value ws)*)? \"]\"", {"value", "ws"}},
    {"value",
     "object | array | string | number | boolean | null",
     {"object", "array", "string", "number", "boolean", "null"}},
};

/* Makes a primitive's rule. Its text is written as it is (GB_CLASS), followed by the rules that it
 * names. */
static bool primitive_rule(struct gb *g, const char *name, uint32_t *rule) {
  size_t i = 0;
  if (map_get(&g->primitives, str_from(name), rule))
    return true;
  while (strcmp(primitives[i].name, name) != 0)
    i++;
  if (!rule_add(g, primitives[i].name, NULL, rule))
    return false;
  map_put(&g->primitives, &g->arena, str_from(name), *rule);
  struct gb_node *node = (struct gb_node *)gb_class(g, primitives[i].body);
  if (!node)
    return false;
  g->rules[*rule].node = node;
  node->kids = gb_get(g, 6 * sizeof *node->kids);
  if (!node->kids)
    return false;
  for (size_t k = 0; k < 6 && primitives[i].uses[k]; k++) {
    uint32_t used;
    if (!primitive_rule(g, primitives[i].uses[k], &used))
      return false;
    node->kids[k] = gb_ref(g, used);
    if (!node->kids[k])
      return false;
    node->count++;
  }
  return true;
}

const struct gb_node *gb_primitive(struct gb *g, const char *name) {
  uint32_t rule;
  return primitive_rule(g, name, &rule) ? gb_ref(g, rule) : NULL;
}

const struct gb_node *gb_space(struct gb *g) {
  return gb_primitive(g, "ws");
}
