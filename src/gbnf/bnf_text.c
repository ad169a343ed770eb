/* Makes strings: free ones by their length, others by the one pattern that is written; what else a
 * schema says about a string is listed, unless it follows. */
#include "gbnf/internal.h"
#include "schema/ecma.h"
#include "schema/format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum { LAST = 0x10ffff, BMP_LAST = 0xffff, ESCAPED_RANGES_MAX = 12 };

/* --- sets of characters, as JSON spells them --- */

struct gb_range {
  uint32_t low, high;
};
struct gb_chars { /* sorted, apart from each other, without surrogates */
  struct gb_range *ranges;
  size_t count;
};

static int by_low(const void *a, const void *b) {
  const struct gb_range *x = a, *y = b;
  return x->low < y->low ? -1 : x->low > y->low;
}

static void range_add(const struct gb *g, struct gb_chars *chars, uint32_t low, uint32_t high) {
  struct gb_range *last = chars->count ? &chars->ranges[chars->count - 1] : NULL;
  if (low < 0xd800 && high >= 0xd800) { /* surrogates are no characters */
    range_add(g, chars, low, 0xd7ff);
    low = 0xe000;
  }
  if (utf8_is_surrogate(low))
    low = 0xe000;
  if (!low && g->naming)
    low = 1;
  if (low > high)
    return;
  if (last && last->high + 1 == low)
    last->high = high;
  else
    chars->ranges[chars->count++] = (struct gb_range){low, high};
}

/* Makes a set of ranges in any order, or of what is in none of them. */
static void chars_new(struct gb *g, struct gb_range *ranges, size_t count, bool inverted,
                      struct gb_chars *out) {
  uint32_t next = 0; /* all below is decided */
  *out = (struct gb_chars){gb_get(g, (2 * count + 4) * sizeof *ranges), 0};
  if (count)
    qsort(ranges, count, sizeof *ranges, by_low);
  for (size_t i = 0; i < count; i++) {
    struct gb_range r = ranges[i];
    if (inverted && r.low > next)
      range_add(g, out, next, r.low - 1);
    r.low = r.low < next ? next : r.low;
    if (!inverted && r.low <= r.high)
      range_add(g, out, r.low, r.high);
    next = r.high >= next ? r.high + 1 : next;
  }
  if (inverted && next <= LAST)
    range_add(g, out, next, LAST);
}

/* Returns the part of a set that is within `n` sorted ranges. */
static struct gb_chars chars_within(struct gb *g, const struct gb_chars *chars,
                                    const struct gb_range *within, size_t n) {
  struct gb_chars out = {gb_get(g, (chars->count * n + 1) * sizeof *out.ranges), 0};
  for (size_t i = 0; i < chars->count; i++)
    for (size_t k = 0; k < n; k++) {
      struct gb_range r = chars->ranges[i], w = within[k];
      r.low = r.low > w.low ? r.low : w.low;
      r.high = r.high < w.high ? r.high : w.high;
      if (r.low <= r.high)
        out.ranges[out.count++] = r;
    }
  return out;
}

static bool chars_have(const struct gb_chars *chars, uint32_t low, uint32_t high) {
  for (size_t i = 0; i < chars->count; i++)
    if (chars->ranges[i].low <= low && chars->ranges[i].high >= high)
      return true;
  return false;
}

static void put_char(struct buf *out, uint32_t c) {
  if (c > BMP_LAST)
    buf_printf(out, "\\U%08X", (unsigned)c);
  else if (c >= 0x80)
    buf_printf(out, "\\u%04X", (unsigned)c);
  else if (c <= 0x20 || c == 0x7f || strchr("\"\\[]^-", (int)c))
    buf_printf(out, "\\x%02X", (unsigned)c);
  else
    buf_printf(out, "%c", (char)c);
}

/* Makes the characters that stand for themselves in a JSON string. */
static const struct gb_node *raw(struct gb *g, const struct gb_chars *chars) {
  static const struct gb_range plain[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, LAST}};
  struct gb_chars own = chars_within(g, chars, plain, sizeof plain / sizeof *plain);
  if (!own.count)
    return &gb_never;
  struct gb_range first = own.ranges[0];
  if (own.count == 1 && first.low == first.high && first.low < 0x80)
    return gb_literal(g, &(char){(char)first.low}, 1);
  buf_auto_t out = {0};
  buf_puts(&out, "[");
  for (size_t i = 0; i < own.count; i++) {
    struct gb_range r = own.ranges[i];
    put_char(&out, r.low);
    if (r.high > r.low + 1)
      buf_puts(&out, "-");
    if (r.high > r.low)
      put_char(&out, r.high);
  }
  buf_puts(&out, "]");
  const struct gb_node *node = gb_class(g, out.p);
  return node;
}

static const struct gb_node *hex_class(struct gb *g, unsigned low, unsigned high) {
  buf_auto_t text = {0};
  unsigned letter = low > 10 ? low : 10;
  buf_puts(&text, "[");
  if (low <= 9)
    buf_printf(&text, "%u-%u", low, high < 9 ? high : 9);
  if (high >= 10)
    buf_printf(&text, "%X-%X%x-%x", letter, high, letter, high);
  buf_puts(&text, "]");
  const struct gb_node *node = gb_class(g, buf_c(&text));
  return node;
}

/* Makes the last `digits` hexadecimal digits of low..high, which share the digits before. */
static const struct gb_node *hex_range(struct gb *g, uint32_t low, uint32_t high, int digits) {
  if (!digits)
    return &gb_empty;
  int shift = 4 * (digits - 1);
  uint32_t mask = ((uint32_t)1 << shift) - 1;
  unsigned first = low >> shift & 15, last = high >> shift & 15;
  if (first == last)
    return gb_seq(g, hex_class(g, first, first), hex_range(g, low & mask, high & mask, digits - 1));
  const struct gb_node *node = &gb_never;
  if ((low & mask) != 0) {
    node = gb_seq(g, hex_class(g, first, first), hex_range(g, low & mask, mask, digits - 1));
    first++;
  }
  bool part = (high & mask) != mask;
  if (first + part <= last)
    node = gb_alt(g, node,
                  gb_seq(g, hex_class(g, first, last - part), hex_range(g, 0, mask, digits - 1)));
  if (part)
    node = gb_alt(g, node,
                  gb_seq(g, hex_class(g, last, last), hex_range(g, 0, high & mask, digits - 1)));
  return node;
}

/* Makes the escapes: what must be escaped, the slash, and what other writers escape beyond
 * ASCII. */
static const struct gb_node *escapes_of(struct gb *g, const struct gb_chars *chars) {
  static const char shorts[][3] = {"\"\"", "\\\\", "//", "\bb", "\ff", "\nn", "\rr", "\tt"};
  const struct gb_node *one = &gb_never, *codes = &gb_never;
  size_t foreign = 0;
  for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
    if (chars_have(chars, (unsigned char)shorts[i][0], (unsigned char)shorts[i][0]))
      one = gb_alt(g, one, gb_literal(g, &shorts[i][1], 1));
  for (size_t i = 0; i < chars->count; i++)
    foreign += chars->ranges[i].high >= 0x80;
  for (size_t i = 0; i < chars->count; i++) {
    struct gb_range r = chars->ranges[i];
    if (r.low < 0x20 || (r.low >= 0x80 && r.low <= BMP_LAST && foreign <= ESCAPED_RANGES_MAX))
      codes = gb_alt(g, codes, hex_range(g, r.low, r.high < BMP_LAST ? r.high : BMP_LAST, 4));
  }
  if (chars_have(chars, 0x10000, LAST) || chars_have(chars, 0xe000, LAST))
    codes = gb_alt(g, codes,
                   gb_seq(g, hex_range(g, 0xd800, 0xdbff, 4), gb_word(g, "\\u"),
                          hex_range(g, 0xdc00, 0xdfff, 4)));
  return gb_seq(g, gb_word(g, "\\"), gb_alt(g, one, gb_seq(g, gb_word(g, "u"), codes)));
}

/* Makes a rule for each set of characters that have escapes: many sets share one. */
static const struct gb_node *escaped(struct gb *g, const struct gb_chars *chars) {
  static const struct gb_range with_escapes[] = {
      {0, 0x1f}, {'"', '"'}, {'/', '/'}, {'\\', '\\'}, {0x80, LAST}};
  struct gb_chars own =
      chars_within(g, chars, with_escapes, sizeof with_escapes / sizeof *with_escapes);
  uint32_t rule;
  buf_auto_t key = {0};
  buf_puts(&key, "escapes"); /* no set of characters begins so */
  buf_append(&key, (const char *)own.ranges, own.count * sizeof *own.ranges);
  bool known = map_get(&g->classes, buf_view(&key), &rule);
  const struct gb_node *node = known ? gb_ref(g, rule) : &gb_never;
  if (!known && own.count)
    node = escapes_of(g, &own);
  if (!known && own.count >= 3) {
    rule = gb_rule_new(g, "escape", node);
    map_put(&g->classes, &g->arena, buf_view(&key), rule);
    node = gb_ref(g, rule);
  }
  return node;
}

static const struct gb_node *any_char(struct gb *g) {
  return gb_primitive(g, g->naming ? "name-char" : "char");
}

static const struct gb_node *any_chars(struct gb *g) {
  return gb_repeat(g, "any", any_char(g), 0, UINT64_MAX);
}

/* Makes one character of a set, in its JSON spellings. */
static const struct gb_node *chars_node(struct gb *g, const struct gb_chars *chars) {
  uint32_t rule;
  struct str key = {(const char *)chars->ranges, chars->count * sizeof *chars->ranges};
  if (chars->count == 2 && chars->ranges[0].low == g->naming && chars->ranges[0].high == 0xd7ff &&
      chars_have(chars, 0xe000, LAST))
    return any_char(g);
  if (map_get(&g->classes, key, &rule))
    return gb_ref(g, rule);
  const struct gb_node *node = gb_alt(g, raw(g, chars), escaped(g, chars));
  if (node->kind == GB_LITERAL || node->kind == GB_CLASS || node->kind == GB_NEVER)
    return node;
  rule = gb_rule_new(g, "c", node);
  map_put(&g->classes, &g->arena, key, rule);
  return gb_ref(g, rule);
}

static const struct gb_node *quoted(struct gb *g, const struct gb_node *body) {
  return gb_seq(g, gb_word(g, "\""), body, gb_word(g, "\""));
}

/* --- all texts but a few --- */

static int by_text(const void *a, const void *b) {
  const struct str *x = a, *y = b;
  int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
  return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Makes what follows `depth` bytes that all of the sorted texts begin with. */
static const struct gb_node *except_rest(struct gb *g, const struct str *texts, size_t count,
                                         size_t depth) {
  enum { BYTES_A_RULE = 24 };
  const struct gb_node **kids = gb_get(g, (count + 2) * sizeof *kids);
  struct gb_range *firsts = gb_get(g, (count + 1) * sizeof *firsts);
  struct gb_chars set;
  size_t n = 0, i = 0;
  while (i < count && texts[i].n == depth)
    i++;
  bool may_end = i == 0;
  while (i < count) {
    uint32_t c;
    size_t from = i, size = utf8_decode(texts[i].p + depth, texts[i].n - depth, &c);
    assert(size);
    while (i < count && !memcmp(texts[i].p + depth, texts[from].p + depth, size))
      i++;
    chars_new(g, &(struct gb_range){c, c}, 1, false, &set);
    firsts[n] = (struct gb_range){c, c};
    kids[n++] =
        gb_seq(g, chars_node(g, &set), except_rest(g, texts + from, i - from, depth + size));
  }
  chars_new(g, firsts, n, true, &set);
  kids[n++] = gb_seq(g, chars_node(g, &set), any_chars(g));
  if (may_end)
    kids[n++] = &gb_empty;
  const struct gb_node *node = gb_list(g, GB_ALT, kids, n);
  return depth % BYTES_A_RULE == BYTES_A_RULE - 1 ? gb_named(g, "other", node) : node;
}

const struct gb_node *gb_except(struct gb *g, struct str *texts, size_t count) {
  enum { BYTES_MAX = 3000 };
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++)
    bytes += texts[i].n;
  if (bytes > BYTES_MAX)
    return NULL;
  if (!count)
    return gb_primitive(g, g->naming ? "name" : "string");
  qsort(texts, count, sizeof *texts, by_text);
  return gb_named(g, "other", quoted(g, except_rest(g, texts, count, 0)));
}

/* --- patterns --- */

/* A pattern is read as a number of ways, each a list of items in which no anchor is left. */
enum { WAYS_MAX = 64, TRIES_MAX = 2000, ANCHORS_MAX = 200 };
#define ENDLESS UINT64_MAX

struct regex_reading {
  struct gb *g;
  struct gb_pattern *pattern;
  const struct ecma_node **items; /* of the way that is being read */
  size_t capacity;
  const struct gb_node *ways[WAYS_MAX];
  size_t way_count;
  unsigned tries;
};
struct way {
  size_t from, count; /* the items before `from` match the empty text, before the beginning */
  bool begin, end;    /* anchored there */
  unsigned anchors;   /* items with anchors so far */
};
struct regex_pending { /* what is to be read: nodes in a row, then those further up */
  const struct ecma_node *node;
  const struct regex_pending *up;
};

static bool pattern_refuse(struct regex_reading *r, const char *why) {
  r->pattern->why = why;
  return false;
}

/* Returns true if the node asks about its place in the text. */
static bool is_placed(const struct ecma_node *node) {
  if (node->kind == ECMA_BEGIN || node->kind == ECMA_END || node->kind == ECMA_EDGE ||
      node->kind == ECMA_LOOK || node->kind == ECMA_BACK)
    return true;
  for (const struct ecma_node *kid = node->kids; kid; kid = kid->next)
    if (is_placed(kid))
      return true;
  return false;
}

/* Counts the characters that a node without anchors can match. */
static void measure(const struct ecma_node *node, uint64_t *low, uint64_t *high) {
  enum { MANY = 1000000000 };
  bool alternatives = node->kind == ECMA_ALT;
  *low = *high = node->kind == ECMA_CLASS;
  if (alternatives)
    *low = ENDLESS;
  for (const struct ecma_node *kid = node->kids; kid; kid = kid->next) {
    uint64_t least, most;
    measure(kid, &least, &most);
    if (alternatives) {
      *low = least < *low ? least : *low;
      *high = most > *high ? most : *high;
    } else {
      *low += least;
      *high = most == ENDLESS ? most : *high + most;
    }
  }
  if (node->kind == ECMA_REPEAT) {
    *low *= node->min;
    if (*high)
      *high = *high == ENDLESS || node->max == ECMA_NO_END ? ENDLESS : *high * node->max;
  }
  *low = *low > MANY ? MANY : *low;
  *high = *high > MANY ? ENDLESS : *high;
}

static bool can_be_empty(const struct ecma_node *node) {
  uint64_t low, high;
  measure(node, &low, &high);
  return low == 0;
}

static const struct gb_node *class_node(struct regex_reading *r, const struct ecma_node *node) {
  struct ecma_range members[ECMA_MEMBER_RANGES];
  struct gb_range *ranges = NULL;
  size_t count = 0, capacity = 0;
  struct gb_chars chars;
  for (const struct ecma_member *m = node->members; m; m = m->next) {
    size_t n = ecma_member_ranges(m, members);
    if (n == 0)
      pattern_refuse(r, "the pattern has a Unicode property");
    ranges = xgrow(ranges, &capacity, count + n, sizeof *ranges);
    for (size_t i = 0; i < n; i++)
      ranges[count++] = (struct gb_range){members[i].low, members[i].high};
  }
  chars_new(r->g, ranges, count, node->negated, &chars);
  free(ranges);
  return r->pattern->why ? &gb_never : chars_node(r->g, &chars);
}

static const struct gb_node *regex_node(struct regex_reading *r, const struct ecma_node *node,
                                        bool not_empty);

/* Makes all kids in a row. A row that is not empty has a first kid that is not: the kids before it
 * are, and those behind it are free. */
static const struct gb_node *row_node(struct regex_reading *r, const struct ecma_node *node,
                                      bool not_empty) {
  struct gb *g = r->g;
  const struct gb_node *rows = &gb_never;
  if (not_empty && can_be_empty(node)) {
    for (const struct ecma_node *first = node->kids; first; first = first->next) {
      const struct gb_node *row = regex_node(r, first, true);
      for (const struct ecma_node *kid = first->next; kid; kid = kid->next)
        row = gb_seq(g, row, regex_node(r, kid, false));
      rows = gb_alt(g, rows, row);
    }
    return rows;
  }
  size_t count = 0, n = 0;
  for (const struct ecma_node *kid = node->kids; kid; kid = kid->next)
    count++;
  const struct gb_node **kids = gb_get(g, (count + 1) * sizeof *kids);
  for (const struct ecma_node *kid = node->kids; kid; kid = kid->next)
    kids[n++] = regex_node(r, kid, false);
  return gb_list(g, GB_SEQ, kids, n);
}

/* Makes what a node without anchors matches; `not_empty`: without the empty text. llama.cpp takes
 * an endless repetition of what can be empty for a left recursion. */
static const struct gb_node *regex_node(struct regex_reading *r, const struct ecma_node *node,
                                        bool not_empty) {
  struct gb *g = r->g;
  if (r->pattern->why || !gb_spend(g, 1))
    return &gb_never;
  switch (node->kind) {
  case ECMA_CLASS:
    return class_node(r, node);
  case ECMA_SEQ:
    return row_node(r, node, not_empty);
  case ECMA_GROUP:
    return regex_node(r, node->kids, not_empty);
  case ECMA_ALT: {
    const struct gb_node *all = &gb_never;
    for (const struct ecma_node *kid = node->kids; kid; kid = kid->next)
      all = gb_alt(g, all, regex_node(r, kid, not_empty));
    return all;
  }
  case ECMA_REPEAT: { /* lazy or not: the same texts */
    bool kid_empty = can_be_empty(node->kids);
    uint64_t min = kid_empty ? 0 : node->min;
    const struct gb_node *kid = regex_node(r, node->kids, kid_empty);
    if (not_empty && !min)
      min = 1;
    return gb_repeat(g, r->pattern->name, kid, min, node->max == ECMA_NO_END ? ENDLESS : node->max);
  }
  case ECMA_BACK:
  case ECMA_LOOK:
  case ECMA_BEGIN:
  case ECMA_END:
  case ECMA_EDGE:
    break; /* read_placed has them all */
  }
  assert(false); /* an item asks about its place */
  return &gb_never;
}

struct fit {                        /* how the length that is asked for goes together with a way */
  bool never;                       /* nothing on the way has that length */
  bool held;                        /* all that is written has it */
  bool counted;                     /* ... because the one flexible part is counted to it: */
  const struct ecma_node *flexible; /* NULL: what comes before the pattern, or behind it */
  uint64_t min, max;                /* how often that part is repeated */
};

/* A length can be held if one part alone is flexible and repeats single characters. */
static struct fit fit_way(const struct regex_reading *r, const struct way *way) {
  const struct gb_pattern *p = r->pattern;
  struct fit fit = {.max = ENDLESS};
  uint64_t low = 0, high = way->begin && way->end ? 0 : ENDLESS, least, most;
  int parts = !way->begin + !way->end;
  for (size_t i = way->from; i < way->count; i++) {
    measure(r->items[i], &least, &most);
    low += least;
    high = most == ENDLESS || high == ENDLESS ? ENDLESS : high + most;
    parts += least != most;
    fit.flexible = least != most ? r->items[i] : fit.flexible;
  }
  fit.never = p->max < low || p->min > high;
  fit.held = p->min <= low && p->max >= high;
  if (fit.held || fit.never || parts != 1 || p->min > GB_COUNT_MAX ||
      (p->max != ENDLESS && p->max > GB_COUNT_MAX))
    return fit;
  if (fit.flexible) {
    if (fit.flexible->kind != ECMA_REPEAT || fit.flexible->kids->kind != ECMA_CLASS)
      return fit;
    fit.min = fit.flexible->min;
    fit.max = fit.flexible->max == ECMA_NO_END ? ENDLESS : fit.flexible->max;
  }
  uint64_t fixed = low - fit.min;
  if (p->min > low)
    fit.min = p->min - fixed;
  if (p->max != ENDLESS && p->max - fixed < fit.max)
    fit.max = p->max - fixed;
  fit.held = fit.counted = true;
  return fit;
}

static bool write_way(struct regex_reading *r, const struct way *way) {
  struct gb *g = r->g;
  const char *name = r->pattern->name;
  struct fit fit = fit_way(r, way);
  if (fit.never)
    return true;
  if (r->way_count == WAYS_MAX)
    return pattern_refuse(r, "the pattern has anchors in too many alternatives");
  const struct gb_node **kids = gb_get(g, (way->count - way->from + 2) * sizeof *kids);
  const struct gb_node *around = any_chars(g);
  size_t n = 0;
  r->pattern->fits = r->pattern->fits && fit.held;
  if (fit.counted && !fit.flexible)
    around = gb_repeat(g, name, any_char(g), fit.min, fit.max);
  if (!way->begin)
    kids[n++] = around;
  for (size_t i = way->from; i < way->count; i++) {
    const struct ecma_node *item = r->items[i];
    if (fit.counted && item == fit.flexible)
      kids[n++] = gb_repeat(g, name, regex_node(r, item->kids, false), fit.min, fit.max);
    else
      kids[n++] = regex_node(r, item, false);
  }
  if (!way->end)
    kids[n++] = around;
  r->ways[r->way_count++] = gb_list(g, GB_SEQ, kids, n);
  return !r->pattern->why && g->status == GBNF_OK;
}

static bool read_placed(struct regex_reading *r, struct way way, const struct ecma_node *item,
                        const struct regex_pending *rest);

/* Behind the end of the text an item can only match the empty one. Returns false if it cannot. */
static bool way_add(struct regex_reading *r, struct way *way, const struct ecma_node *item) {
  if (way->end)
    return can_be_empty(item);
  r->items = xgrow(r->items, &r->capacity, way->count + 1, sizeof *r->items);
  r->items[way->count++] = item;
  return true;
}

static bool read_pending(struct regex_reading *r, struct way way, struct regex_pending pending) {
  for (;;) {
    while (!pending.node && pending.up)
      pending = *pending.up;
    if (!pending.node)
      return write_way(r, &way);
    const struct ecma_node *item = pending.node;
    pending.node = item->next;
    if (!gb_spend(r->g, 1))
      return false;
    if (is_placed(item))
      return read_placed(r, way, item, &pending);
    if (!way_add(r, &way, item))
      return true;
  }
}

static bool read_alternative(struct regex_reading *r, struct way way, const struct ecma_node *item,
                             const struct regex_pending *rest) {
  if (is_placed(item))
    return read_placed(r, way, item, rest);
  return !way_add(r, &way, item) || read_pending(r, way, *rest);
}

/* Reads an item that asks about its place, then the rest. What comes before the beginning of the
 * text can only be empty, too. */
static bool read_placed(struct regex_reading *r, struct way way, const struct ecma_node *item,
                        const struct regex_pending *rest) {
  if (++r->tries > TRIES_MAX || ++way.anchors > ANCHORS_MAX)
    return pattern_refuse(r, "the pattern has anchors in too many places");
  switch (item->kind) {
  case ECMA_BEGIN:
    for (size_t i = way.from; i < way.count; i++)
      if (!can_be_empty(r->items[i]))
        return true;
    way.from = way.count;
    way.begin = true;
    return read_pending(r, way, *rest);
  case ECMA_END:
    way.end = true;
    return read_pending(r, way, *rest);
  case ECMA_SEQ:
    return read_pending(r, way, (struct regex_pending){item->kids, rest});
  case ECMA_GROUP:
  case ECMA_ALT:
    for (const struct ecma_node *kid = item->kids; kid; kid = kid->next)
      if (!read_alternative(r, way, kid, rest))
        return false;
    return true;
  case ECMA_REPEAT:
    if (item->max > 1)
      return pattern_refuse(r, "the pattern repeats an anchor");
    if (!item->min && !read_pending(r, way, *rest))
      return false;
    return !item->max || read_placed(r, way, item->kids, rest);
  case ECMA_BACK:
    return pattern_refuse(r, "the pattern refers back to a group");
  case ECMA_LOOK:
    return pattern_refuse(r, "the pattern looks around");
  case ECMA_EDGE:
    return pattern_refuse(r, "the pattern asks for the edge of a word");
  case ECMA_CLASS:
    break;
  }
  assert(false); /* a class has no place */
  return false;
}

static const struct gb_node *pattern_body(struct gb *g, struct gb_pattern *p) {
  AUTO(arena_deinit) struct arena arena = {0};
  struct ecma_error error;
  struct regex_reading r = {.g = g, .pattern = p};
  const struct gb_node *node = NULL;
  const struct ecma_node *root = ecma_parse((struct str){p->text, p->length}, &arena, &error);
  p->fits = true;
  p->why = root ? NULL : "the pattern is not one of ECMA-262";
  if (root && read_pending(&r, (struct way){0}, (struct regex_pending){root, NULL}) && !p->why)
    node = quoted(g, gb_list(g, GB_ALT, r.ways, r.way_count));
  free(r.items);
  return node;
}

/* The same pattern and lengths make the same rule. */
const struct gb_node *gb_pattern_node(struct gb *g, struct gb_pattern *p) {
  buf_auto_t key = buf_of("%d %" PRIu64 " %" PRIu64 " ", g->naming, p->min, p->max);
  uint32_t known;
  buf_append(&key, p->text, p->length);
  const struct gb_node *node = NULL;
  if (map_get(&g->patterns, buf_view(&key), &known)) {
    p->fits = known & 1;
    node = gb_ref(g, known >> 1);
  } else {
    node = pattern_body(g, p);
    if (node && node->kind != GB_NEVER) {
      uint32_t rule = gb_rule_new(g, p->name, node);
      map_put(&g->patterns, &g->arena, buf_view(&key), rule << 1 | p->fits);
      node = gb_ref(g, rule);
    }
  }
  return node;
}

/* --- formats, as patterns: whatever one matches, the asserting validator takes --- */

#define TIME                                                                                       \
  "(([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"             \
  "|23:59:60(\\.\\d{1,9})?Z)"
#define LEAP_YEAR "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE                                                                                       \
  "(\\d{4}-(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|\\d{4}-(0[469]|11)-(0[1-9]|[12]\\d|30)"         \
  "|\\d{4}-02-(0[1-9]|1\\d|2[0-8])|" LEAP_YEAR "-02-29)"
#define N     "\\d{1,10}"
#define CLOCK "(" N "H(" N "M(" N "S)?)?|" N "M(" N "S)?|" N "S)"
#define LABEL "[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
#define HOST  LABEL "(\\." LABEL ")*"
#define ATOM  "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
/* These follow RFC 3986, without addresses in brackets. X is what else a character may be. */
#define ESCAPED      "%[0-9A-Fa-f]{2}"
#define NAME(X)      "([A-Za-z0-9._~!$&'()*+,;=" X "-]|" ESCAPED ")"
#define PCHAR(X)     NAME(":@" X)
#define REST(X)      "(/" PCHAR(X) "*)*"
#define AUTHORITY(X) "//(" NAME(":" X) "*@)?" NAME(X) "*(:\\d*)?" REST(X)
#define TAIL(X)      "(\\?(" PCHAR(X) "|[/?])*)?(#(" PCHAR(X) "|[/?])*)?"
#define ROOTED(X)    "/(" PCHAR(X) "+" REST(X) ")?"
#define URI(X)                                                                                     \
  "[A-Za-z][A-Za-z0-9+.-]*:(" AUTHORITY(X) "|" ROOTED(X) "|" PCHAR(X) "+" REST(X) ")?" TAIL(X)
#define RELATIVE(X) "(" AUTHORITY(X) "|" ROOTED(X) "|" NAME("@" X) "+" REST(X) ")?" TAIL(X)
#define FOREIGN     "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF"
#define POINTER     "(/([^/~]|~[01])*)*"

static const struct format_pattern {
  const char *format, *pattern;
  bool whole; /* it covers all that the validator checks */
} formats[] = {
    {"date", "^" DATE "$", true},
    {"time", "^" TIME "$", true},
    {"date-time", "^" DATE "T" TIME "$", true},
    {"duration",
     "^P(" N "W|(" N "Y(" N "M(" N "D)?)?|" N "M(" N "D)?|" N "D)(T" CLOCK ")?|T" CLOCK ")$", true},
    {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", true},
    {"ipv4", "^" FORMAT_IPV4 "$", true},
    {"ipv6", "^" FORMAT_IPV6 "$", true},
    {"hostname", "^" HOST "$", false},
    {"email", "^" ATOM "(\\." ATOM ")*@" HOST "$", false},
    {"uri", "^" URI("") "$", true},
    {"uri-reference", "^(" URI("") "|" RELATIVE("") ")$", true},
    {"iri", "^" URI(FOREIGN) "$", true},
    {"iri-reference", "^(" URI(FOREIGN) "|" RELATIVE(FOREIGN) ")$", true},
    {"json-pointer", "^" POINTER "$", true},
    {"relative-json-pointer", "^(0|[1-9]\\d*)(#|" POINTER ")$", true},
};

static const struct format_pattern *format_find(const char *format) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (!strcmp(format, formats[i].format))
      return &formats[i];
  return NULL;
}

/* --- strings --- */

static const struct gb_node *by_length(struct gb *g, const struct gb_shape *s, const char *name) {
  uint64_t min = s->min_length.value, max = s->max_length.value;
  if (!min && max == UINT64_MAX)
    return gb_primitive(g, g->naming ? "name" : "string");
  if (min > GB_COUNT_MAX) {
    gb_note(g, s->min_length.entry, "minLength", "more than 1,000,000 characters");
    min = GB_COUNT_MAX;
  }
  if (max > GB_COUNT_MAX && max != UINT64_MAX) {
    gb_note(g, s->max_length.entry, "maxLength", "more than 1,000,000 characters");
    max = UINT64_MAX;
  }
  return quoted(g, gb_repeat(g, name, any_char(g), min, max));
}

/* Makes the first pattern that can be written, and lists the others. NULL: there is none. */
static const struct gb_node *by_pattern(struct gb *g, const struct gb_shape *s,
                                        struct gb_pattern *p) {
  const struct gb_node *node = NULL;
  size_t count;
  const struct gb_link **patterns = gb_links(g, s->patterns, &count);
  for (size_t i = 0; i < count && g->status == GBNF_OK; i++) {
    const char *why = "another pattern is written; kept by the validator only";
    if (!node) {
      p->text = json_string_value(patterns[i]->value);
      p->length = json_string_length(patterns[i]->value);
      node = gb_pattern_node(g, p);
      why = node ? NULL : p->why;
    }
    if (why)
      gb_note(g, patterns[i]->entry, "pattern", why);
  }
  return node;
}

/* Makes a format beside `node`, what was made before. It is held if the schema names the type, or
 * its vocabulary asserts formats. */
static const struct gb_node *by_format(struct gb *g, const struct gb_shape *s,
                                       const struct gb_link *f, const struct gb_node *node,
                                       struct gb_pattern *p) {
  const char *format = json_string_value(f->value);
  const struct schema *schema = g->compiler.schema;
  bool asserted =
      schema->resources[schema->entries[f->entry].resource].vocabularies & VOCAB_FORMAT_ASSERTION;
  if (!schema_format_known(format))
    return node;
  const struct format_pattern *known = format_find(format);
  const char *why = NULL;
  if (!asserted && !(s->named & T_STRING)) {
    why = "without a type it is taken as an annotation";
  } else if (!known) {
    why = "this format is kept by the validator only";
  } else if (node) {
    why = "a pattern is written; kept by the validator only";
  } else {
    p->text = known->pattern;
    p->length = strlen(p->text);
    p->name = format;
    node = gb_pattern_node(g, p);
    if (!node)
      why = p->why;
    else if (!known->whole)
      why = "limits on lengths are kept by the validator only";
  }
  if (why)
    gb_note(g, f->entry, "format", why);
  return node;
}

/* Leaves out the texts that must not be: of a string that is free otherwise, else they are
 * listed. */
static const struct gb_node *without_values(struct gb *g, const struct gb_shape *s,
                                            const struct gb_node *node, bool free_otherwise) {
  struct str *texts = gb_get(g, (gb_link_count(s->not_values) + 1) * sizeof *texts);
  size_t count = 0;
  for (const struct gb_link *v = s->not_values; v; v = v->next)
    if (json_is_string(v->value))
      texts[count++] = (struct str){json_string_value(v->value), json_string_length(v->value)};
  const struct gb_node *others = count && free_otherwise ? gb_except(g, texts, count) : NULL;
  if (others || !count)
    return others ? others : node;
  for (const struct gb_link *v = s->not_values; v; v = v->next)
    if (json_is_string(v->value))
      gb_note(g, v->entry, v->keyword, "a single text is kept out by the validator only");
  return node;
}

const struct gb_node *gb_string(struct gb *g, const struct gb_shape *s, const char *name) {
  struct gb_pattern p = {.name = name, .min = s->min_length.value, .max = s->max_length.value};
  const struct gb_node *node = by_pattern(g, s, &p);
  for (const struct gb_link *f = s->formats; f && g->status == GBNF_OK; f = f->next)
    node = by_format(g, s, f, node, &p);
  if (node && !p.fits) {
    static const char why[] = "together with a pattern or format it is kept by the validator only";
    if (s->min_length.value)
      gb_note(g, s->min_length.entry, "minLength", why);
    if (s->max_length.value != UINT64_MAX)
      gb_note(g, s->max_length.entry, "maxLength", why);
  }
  bool is_free = !node && !p.min && p.max == UINT64_MAX;
  return without_values(g, s, node ? node : by_length(g, s, name), is_free);
}
