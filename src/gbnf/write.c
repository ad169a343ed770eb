/* Writes nodes as the text of a grammar, without rules that derive nothing or are never reached. */
#include "gbnf/internal.h"

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

/* Marks the rules that derive something. Rules are mostly made after those that refer to them, so
 * this goes from the last. */
static void mark_productive(struct gb *g) {
  bool again = true;
  while (again) {
    again = false;
    for (size_t i = g->rule_count; i-- > 0;)
      if (!g->rules[i].productive && g->rules[i].node && productive(g, g->rules[i].node))
        again = g->rules[i].productive = true;
  }
}

/* Returns what a node refers to, past rules that only name another one. */
static const struct gb_node *follow_names(const struct gb *g, const struct gb_node *node) {
  for (size_t i = 0; i < g->rule_count && node->kind == GB_REF; i++) {
    const struct gb_node *to = g->rules[node->rule].node;
    if (!to || to->kind != GB_REF)
      break;
    node = to;
  }
  return node;
}

/* Returns the node without the parts that derive nothing; the node is productive. */
static const struct gb_node *prune(struct gb *g, const struct gb_node *node) {
  if (node->kind == GB_REF)
    return follow_names(g, node);
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
  uint32_t *stack = xmalloc(g->rule_count * sizeof *stack);
  size_t depth = 0, count = 0, capacity = 0;
  const struct gb_node **todo = NULL;
  bool ok = true;
  stack[depth++] = root;
  g->rules[root].reached = true;
  while (ok && depth) {
    struct gb_rule *rule = &g->rules[stack[--depth]];
    rule->node = prune(g, rule->node);
    ok = rule->node != NULL;
    todo = xgrow(todo, &capacity, 1, sizeof *todo);
    count = 0;
    if (ok)
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
  return ok;
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

static void write_alt(const struct gb *g, const struct gb_node *node, struct buf *out) {
  for (uint32_t i = 0; i < node->count; i++) {
    if (i)
      buf_puts(out, " | ");
    write_node(g, node->kids[i], PLACE_ALTERNATIVE, out);
  }
}

static void write_count(const struct gb_node *node, struct buf *out) {
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
    write_alt(g, node, out);
    break;
  case GB_REPEAT:
    write_node(g, node->kids[0], PLACE_ITEM, out);
    write_count(node, out);
    break;
  }
  buf_puts(out, grouped ? ")" : "");
}

bool gb_write(struct gb *g, uint32_t root, struct buf *out) {
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
    buf_puts(out, g->rules[i].name);
    buf_puts(out, " ::= ");
    write_node(g, g->rules[i].node, PLACE_RULE, out);
    buf_puts(out, "\n");
    if (out->n > GBNF_TEXT_BYTES_MAX)
      return gb_too_complex(g, "the grammar is too long");
  }
  return true;
}
