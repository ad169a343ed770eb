/* Turns patterns into trees over the character sets of one language; refuses what no automaton can
 * express. */
#include "gbnf/internal.h"
#include "schema/ecma.h"

struct parser {
  struct gb *g;
  struct gb_language *l;
  const char *why; /* static: what cannot be held */
};

static const struct gb_regex *regex(struct parser *s, struct gb_regex what) {
  struct gb_regex *node = gb_get(s->g, sizeof *node);
  if (node)
    *node = what;
  return node;
}

static const struct gb_regex *regex_refuse(struct parser *s, const char *why) {
  s->why = why;
  return NULL;
}

/* Makes a balanced tree, as deep as the logarithm of the count. */
static const struct gb_regex *combine(struct parser *s, enum gb_regex_kind kind,
                                      const struct gb_regex *const *items, size_t count) {
  if (!count)
    return regex(s, (struct gb_regex){.kind = RX_EMPTY});
  if (count == 1)
    return items[0];
  const struct gb_regex *left = combine(s, kind, items, count / 2);
  const struct gb_regex *right = combine(s, kind, items + count / 2, count - count / 2);
  if (!left || !right)
    return NULL;
  return regex(s, (struct gb_regex){.kind = kind, .left = left, .right = right});
}

static const struct gb_regex *chars_of(struct parser *s, struct gb_range *ranges, size_t count,
                                       bool inverted) {
  struct gb_language *l = s->l;
  uint32_t index;
  const struct gb_chars *chars = gb_chars_new(s->g, ranges, count, inverted);
  if (!chars)
    return NULL;
  index = (uint32_t)l->chars_count;
  if (map_add(&l->known, &s->g->arena, gb_chars_key(chars), &index)) {
    l->chars = xgrow(l->chars, &l->chars_capacity, l->chars_count + 1, sizeof *l->chars);
    l->chars[l->chars_count++] = chars;
  }
  return regex(s, (struct gb_regex){.kind = RX_CHARS, .chars = index});
}

static const struct gb_regex *regex_character(struct parser *s, uint32_t c) {
  return chars_of(s, &(struct gb_range){c, c}, 1, false);
}

static const struct gb_regex *regex_class(struct parser *s, const struct ecma_node *node) {
  struct ecma_range members[ECMA_MEMBER_RANGES];
  struct gb_range *ranges = NULL;
  size_t count = 0, capacity = 0;
  const struct gb_regex *made = NULL;
  for (const struct ecma_member *m = node->members; m; m = m->next) {
    size_t n = ecma_member_ranges(m, members);
    if (n == 0) {
      regex_refuse(s, "the pattern has a Unicode property");
      free(ranges);
      return NULL;
    }
    ranges = xgrow(ranges, &capacity, count + n, sizeof *ranges);
    for (size_t i = 0; i < n; i++)
      ranges[count++] = (struct gb_range){members[i].low, members[i].high};
  }
  made = chars_of(s, ranges, count, node->negated);
  free(ranges);
  return made;
}

static const struct gb_regex *regex_of(struct parser *s, const struct ecma_node *node);

/* Combines the kids from `kid` on, after `first` if there is one. */
static const struct gb_regex *regex_list(struct parser *s, enum gb_regex_kind kind,
                                         const struct gb_regex *first,
                                         const struct ecma_node *kid) {
  const struct gb_regex **items = NULL, *made = NULL;
  size_t count = 0, capacity = 0;
  if (first) {
    items = xgrow(items, &capacity, 1, sizeof *items);
    items[count++] = first;
  }
  for (; kid; kid = kid->next) {
    const struct gb_regex *item = regex_of(s, kid);
    if (!item)
      break;
    items = xgrow(items, &capacity, count + 1, sizeof *items);
    items[count++] = item;
  }
  if (!kid)
    made = combine(s, kind, items, count);
  free(items);
  return made;
}

static const struct gb_regex *regex_of(struct parser *s, const struct ecma_node *node) {
  const struct gb_regex *kid;
  switch (node->kind) {
  case ECMA_SEQ:
    return regex_list(s, RX_SEQ, NULL, node->kids);
  case ECMA_ALT:
    return regex_list(s, RX_ALT, NULL, node->kids);
  case ECMA_CLASS:
    return regex_class(s, node);
  case ECMA_REPEAT: /* lazy or not: the same strings */
    kid = regex_of(s, node->kids);
    if (!kid)
      return NULL;
    return regex(
        s, (struct gb_regex){.kind = RX_REPEAT, .min = node->min, .max = node->max, .left = kid});
  case ECMA_GROUP:
    return regex_of(s, node->kids);
  case ECMA_BACK:
    return regex_refuse(s, "the pattern refers back to a group");
  case ECMA_LOOK:
    return regex_refuse(s, "the pattern looks around, elsewhere than at its beginning");
  case ECMA_BEGIN:
  case ECMA_END:
    return regex(s, (struct gb_regex){.kind = node->kind == ECMA_BEGIN ? RX_BEGIN : RX_END});
  case ECMA_EDGE:
    return regex_refuse(s, "the pattern asks for the edge of a word");
  }
  return NULL;
}

static enum gb_added part_add(struct parser *s, const struct gb_regex *node, bool negated,
                              bool must) {
  if (s->g->status != GBNF_OK)
    return GB_ADDED_FAILED;
  if (!node)
    return GB_ADDED_NOT;
  if (s->l->part_count == GB_PARTS_MAX) {
    s->why = "too many patterns meet";
    return GB_ADDED_NOT;
  }
  s->l->parts[s->l->part_count++] = (struct gb_part){node, negated, must};
  return GB_ADDED;
}

/* Reads "^(?=...)(?!...)rest": each look-ahead is a pattern of its own, anchored at the beginning.
 * *kid moves on to what follows them. */
static enum gb_added look_aheads(struct parser *s, const struct ecma_node **kid, bool negated,
                                 bool must) {
  enum gb_added added = GB_ADDED;
  for (; added == GB_ADDED && *kid && (*kid)->kind == ECMA_LOOK && !(*kid)->behind;
       *kid = (*kid)->next) {
    if (negated)
      return GB_ADDED_NOT;
    const struct gb_regex *begin = regex(s, (struct gb_regex){.kind = RX_BEGIN});
    const struct gb_regex *both = begin ? regex_list(s, RX_SEQ, begin, (*kid)->kids) : NULL;
    added = part_add(s, both, (*kid)->negated, must);
  }
  return added;
}

enum gb_added gb_language_pattern(struct gb *g, struct gb_language *l, const char *text,
                                  size_t length, bool negated, bool must, const char **why) {
  struct parser s = {.g = g, .l = l};
  struct arena arena = {0};
  struct ecma_error error;
  size_t before = l->part_count;
  enum gb_added added = GB_ADDED;
  const struct ecma_node *root = ecma_parse((struct str){text, length}, &arena, &error);
  const struct gb_regex *node = NULL;
  if (!root) {
    added = GB_ADDED_NOT;
    s.why = "the pattern is not one of ECMA-262";
  } else if (root->kind == ECMA_SEQ && root->kids && root->kids->kind == ECMA_BEGIN) {
    const struct ecma_node *rest = root->kids->next;
    added = look_aheads(&s, &rest, negated, must);
    const struct gb_regex *begin = regex(&s, (struct gb_regex){.kind = RX_BEGIN});
    if (added == GB_ADDED && begin)
      node = regex_list(&s, RX_SEQ, begin, rest);
  } else {
    node = regex_of(&s, root);
  }
  if (added == GB_ADDED)
    added = part_add(&s, node, negated, must);
  arena_deinit(&arena);
  if (added == GB_ADDED_NOT)
    l->part_count = before;
  *why = s.why ? s.why : "the pattern looks around";
  return g->status == GBNF_OK ? added : GB_ADDED_FAILED;
}

static const struct gb_regex *regex_text(struct parser *s, const struct gb_link *name) {
  const struct gb_regex **chars = NULL, *made = NULL;
  size_t count = 0, capacity = 0, at = 0;
  while (at < name->length) {
    uint32_t c;
    size_t n = utf8_decode(name->name + at, name->length - at, &c);
    const struct gb_regex *item = n ? regex_character(s, c) : NULL;
    if (!item)
      break;
    chars = xgrow(chars, &capacity, count + 1, sizeof *chars);
    chars[count++] = item;
    at += n;
  }
  if (at == name->length)
    made = combine(s, RX_SEQ, chars, count);
  free(chars);
  return made;
}

enum gb_added gb_language_texts(struct gb *g, struct gb_language *l,
                                const struct gb_link *const *names, size_t count, bool negated) {
  struct parser s = {.g = g, .l = l};
  const struct gb_regex **texts = gb_get(g, (count + 1) * sizeof *texts);
  bool ok = texts != NULL;
  for (size_t i = 0; ok && i < count; i++) {
    texts[i] = regex_text(&s, names[i]);
    ok = texts[i] != NULL;
  }
  const struct gb_regex *parts[3] = {
      regex(&s, (struct gb_regex){.kind = RX_BEGIN}),
      ok ? combine(&s, RX_ALT, texts, count) : NULL,
      regex(&s, (struct gb_regex){.kind = RX_END}),
  };
  ok = parts[0] && parts[1] && parts[2];
  return part_add(&s, ok ? combine(&s, RX_SEQ, parts, 3) : NULL, negated, true);
}

void gb_language_deinit(struct gb_language *l) {
  free(l->chars);
  map_deinit(&l->known);
  *l = (struct gb_language){0};
}
