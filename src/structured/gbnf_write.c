/* From nodes to the text of a grammar: what derives nothing is cut away, what is not reached is
 * left out. */
#include "structured/gbnf_internal.h"

#include <stdio.h>

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

/* Rules are made after the rules that refer to them, more often than not: so from the last. */
static void mark_productive(struct gb *g) {
  bool again = true;
  while (again) {
    again = false;
    for (size_t i = g->rule_count; i-- > 0;)
      if (!g->rules[i].productive && g->rules[i].node && productive(g, g->rules[i].node))
        again = g->rules[i].productive = true;
  }
}

/* A rule that only names another one is left out. */
static const struct gb_node *follow(const struct gb *g, const struct gb_node *node) {
  for (size_t i = 0; i < g->rule_count && node->kind == GB_REF; i++) {
    const struct gb_node *to = g->rules[node->rule].node;
    if (!to || to->kind != GB_REF)
      break;
    node = to;
  }
  return node;
}

/* Without the parts that derive nothing; the node is productive. */
static const struct gb_node *prune(struct gb *g, const struct gb_node *node) {
  if (node->kind == GB_REF)
    return follow(g, node);
  if (node->kind == GB_REPEAT && !productive(g, node->kids[0]))
    return &gb_empty;
  if (node->kind != GB_SEQ && node->kind != GB_ALT && node->kind != GB_REPEAT)
    return node;
  struct gb_node *copy = gb_get(g, sizeof *copy);
  if (!copy)
    return NULL;
  *copy = *node;
  copy->count = 0;
  copy->kids = gb_get(g, (node->count ? node->count : 1) * sizeof *copy->kids);
  if (!copy->kids)
    return NULL;
  for (uint32_t i = 0; i < node->count; i++) {
    if (node->kind == GB_ALT && !productive(g, node->kids[i]))
      continue;
    const struct gb_node *kid = prune(g, node->kids[i]);
    if (!kid)
      return NULL;
    if (node->kind == GB_SEQ && kid->kind == GB_SEQ && !kid->count)
      continue;
    copy->kids[copy->count++] = kid;
  }
  return copy->count == 1 && node->kind != GB_REPEAT ? copy->kids[0] : copy;
}

static bool reach(struct gb *g, uint32_t root) {
  uint32_t *stack = schema_alloc(g->rule_count * sizeof *stack);
  size_t depth = 0;
  bool ok = stack || gb_no_memory(g);
  struct list {
    const struct gb_node **nodes;
    size_t count, capacity;
  } todo = {0};
  if (ok) {
    stack[depth++] = root;
    g->rules[root].reached = true;
  }
  while (ok && depth) {
    struct gb_rule *rule = &g->rules[stack[--depth]];
    rule->node = prune(g, rule->node);
    todo.count = 0;
    ok = rule->node && (schema_grow((void **)&todo.nodes, &todo.capacity, 1, sizeof *todo.nodes) ||
                        gb_no_memory(g));
    if (ok)
      todo.nodes[todo.count++] = rule->node;
    while (ok && todo.count) {
      const struct gb_node *node = todo.nodes[--todo.count];
      if (node->kind == GB_REF && !g->rules[node->rule].reached) {
        g->rules[node->rule].reached = true;
        stack[depth++] = node->rule;
      }
      ok = schema_grow((void **)&todo.nodes, &todo.capacity, todo.count + node->count,
                       sizeof *todo.nodes) ||
           gb_no_memory(g);
      for (uint32_t i = 0; ok && i < node->count; i++)
        todo.nodes[todo.count++] = node->kids[i];
    }
  }
  schema_release(stack);
  schema_release(todo.nodes);
  return ok;
}

static void write_literal(struct text *out, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      schema_text_printf(out, "\\%c", c);
    else if (c == '\n')
      schema_text_puts(out, "\\n");
    else if (c < 0x20 || c == 0x7f)
      schema_text_printf(out, "\\x%02X", c);
    else
      schema_text_add(out, text + i, 1);
  }
}

enum place { PLACE_RULE, PLACE_ALTERNATIVE, PLACE_ITEM };

static void write_node(const struct gb *g, const struct gb_node *node, enum place place,
                       struct text *out) {
  switch (node->kind) {
  case GB_NEVER: /* cut away before */
    return;
  case GB_LITERAL:
    schema_text_puts(out, "\"");
    write_literal(out, node->text, node->length);
    schema_text_puts(out, "\"");
    return;
  case GB_CLASS:
    schema_text_add(out, node->text, node->length);
    return;
  case GB_REF:
    schema_text_puts(out, g->rules[node->rule].name);
    return;
  case GB_SEQ: {
    if (!node->count) {
      schema_text_puts(out, "\"\"");
      return;
    }
    if (place == PLACE_ITEM)
      schema_text_puts(out, "(");
    for (uint32_t i = 0; i < node->count; i++) {
      const struct gb_node *kid = node->kids[i];
      bool follows = i && node->kids[i - 1]->kind == GB_LITERAL && kid->kind == GB_LITERAL;
      if (follows) { /* one literal of neighbours */
        out->length--;
        write_literal(out, kid->text, kid->length);
        schema_text_puts(out, "\"");
        continue;
      }
      if (i)
        schema_text_puts(out, " ");
      write_node(g, kid, PLACE_ITEM, out);
    }
    if (place == PLACE_ITEM)
      schema_text_puts(out, ")");
    return;
  }
  case GB_ALT:
    if (place == PLACE_ITEM)
      schema_text_puts(out, "(");
    for (uint32_t i = 0; i < node->count; i++) {
      if (i)
        schema_text_puts(out, " | ");
      write_node(g, node->kids[i], PLACE_ALTERNATIVE, out);
    }
    if (place == PLACE_ITEM)
      schema_text_puts(out, ")");
    return;
  case GB_REPEAT:
    write_node(g, node->kids[0], PLACE_ITEM, out);
    if (node->min == 0 && node->max == 1)
      schema_text_puts(out, "?");
    else if (node->min <= 1 && node->max == UINT64_MAX)
      schema_text_puts(out, node->min ? "+" : "*");
    else if (node->max == UINT64_MAX)
      schema_text_printf(out, "{%u,}", (unsigned)node->min);
    else if (node->min == node->max)
      schema_text_printf(out, "{%u}", (unsigned)node->min);
    else
      schema_text_printf(out, "{%u,%u}", (unsigned)node->min, (unsigned)node->max);
    return;
  }
}

bool gb_write(struct gb *g, uint32_t root, struct text *out) {
  mark_productive(g);
  if (!g->rules[root].productive) {
    g->status = GBNF_UNSATISFIABLE;
    return false;
  }
  if (!reach(g, root))
    return false;
  for (size_t i = 0; i < g->rule_count; i++) {
    if (!g->rules[i].reached)
      continue;
    schema_text_puts(out, g->rules[i].name);
    schema_text_puts(out, " ::= ");
    write_node(g, g->rules[i].node, PLACE_RULE, out);
    schema_text_puts(out, "\n");
    if (out->failed)
      return gb_no_memory(g);
    if (out->length > GBNF_TEXT_BYTES_MAX)
      return gb_too_complex(g, "the grammar is too long");
  }
  return true;
}
