/* Works on sets of characters, and spells them as JSON does. */
#include "gbnf/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAST = 0x10ffff, BMP_LAST = 0xffff, ESCAPED_RANGES_MAX = 12 };

static int by_low(const void *a, const void *b) {
  const struct gb_range *x = a, *y = b;
  return x->low < y->low ? -1 : x->low > y->low;
}

const struct gb_chars *gb_chars_new(struct gb *g, struct gb_range *ranges, size_t count,
                                    bool inverted) {
  struct gb_chars *chars = gb_get(g, sizeof *chars);
  struct gb_range *out = gb_get(g, (count * 2 + 3) * sizeof *out);
  size_t n = 0;
  if (!chars || !out)
    return NULL;
  if (count)
    qsort(ranges, count, sizeof *ranges, by_low);
  size_t joined = 0;
  for (size_t i = 0; i < count; i++) {
    if (joined && ranges[i].low <= ranges[joined - 1].high + 1) {
      if (ranges[i].high > ranges[joined - 1].high)
        ranges[joined - 1].high = ranges[i].high;
    } else {
      ranges[joined++] = ranges[i];
    }
  }
  uint32_t from = 0;
  for (size_t i = 0; i <= joined; i++) {
    struct gb_range r = i < joined ? ranges[i] : (struct gb_range){LAST + 1, LAST + 1};
    if (inverted) {
      struct gb_range gap = {from, r.low - 1};
      from = r.high + 1;
      if (!r.low || gap.low > gap.high || gap.low > LAST)
        continue;
      r = gap;
    } else if (i == joined) {
      break;
    }
    if (r.low < 0xd800 && r.high >= 0xd800) { /* surrogates are no characters */
      out[n++] = (struct gb_range){r.low, 0xd7ff};
      r.low = 0xe000;
    }
    if (r.low >= 0xd800 && r.low < 0xe000)
      r.low = 0xe000;
    if (r.low <= r.high)
      out[n++] = r;
  }
  *chars = (struct gb_chars){out, n};
  return chars;
}

struct str gb_chars_key(const struct gb_chars *chars) {
  return (struct str){(const char *)chars->ranges, chars->count * sizeof *chars->ranges};
}

static bool has(const struct gb_chars *chars, uint32_t c) {
  for (size_t i = 0; i < chars->count; i++)
    if (c >= chars->ranges[i].low && c <= chars->ranges[i].high)
      return true;
  return false;
}

static bool has_all(const struct gb_chars *chars, uint32_t low, uint32_t high) {
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
  struct buf out = {0};
  size_t count = 0;
  uint32_t single = 0;
  const struct gb_node *node = &gb_never;
  buf_puts(&out, "[");
  for (size_t i = 0; i < chars->count; i++) {
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
      uint32_t low = chars->ranges[i].low > plain[k].low ? chars->ranges[i].low : plain[k].low;
      uint32_t high = chars->ranges[i].high < plain[k].high ? chars->ranges[i].high : plain[k].high;
      if (low > high)
        continue;
      put_char(&out, low);
      if (high > low + 1)
        buf_puts(&out, "-");
      if (high > low)
        put_char(&out, high);
      count += high - low + 1 > 1 ? 2 : 1;
      single = low;
    }
  }
  buf_puts(&out, "]");
  if (count == 1 && single < 0x80) {
    char c = (char)single;
    node = gb_literal(g, &c, 1);
  } else if (count) {
    node = gb_class(g, out.p);
  }
  buf_deinit(&out);
  return node;
}

static const struct gb_node *hex_class(struct gb *g, unsigned low, unsigned high) {
  char text[40];
  size_t n = 0;
  if (low == 0 && high == 15)
    return gb_class(g, "[0-9A-Fa-f]");
  text[n++] = '[';
  if (low <= 9)
    n += (size_t)snprintf(text + n, sizeof text - n, low == high || low == 9 ? "%u" : "%u-%u", low,
                          high < 9 ? high : 9);
  if (high >= 10) {
    unsigned from = low > 10 ? low : 10;
    char letters[2] = {(char)('A' + from - 10), (char)('A' + high - 10)};
    for (int small = 0; small < 2; small++) {
      char first = (char)(letters[0] | small << 5), last = (char)(letters[1] | small << 5);
      n += (size_t)snprintf(text + n, sizeof text - n, first == last ? "%c" : "%c-%c", first, last);
    }
  }
  snprintf(text + n, sizeof text - n, "]");
  return gb_class(g, text);
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
  static const char shorts[][2] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                                   {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};
  char letters[16] = "[";
  size_t n = 1, foreign = 0;
  for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++) {
    if (!has(chars, (unsigned char)shorts[i][0]))
      continue;
    if (shorts[i][1] == '\\')
      letters[n++] = '\\';
    letters[n++] = shorts[i][1];
  }
  const struct gb_node *one = &gb_never, *codes = &gb_never;
  if (n == 2 || (n == 3 && letters[1] == '\\')) {
    one = gb_literal(g, &letters[n - 1], 1);
  } else if (n > 1) {
    letters[n] = ']';
    letters[n + 1] = '\0';
    one = gb_class(g, letters);
  }
  for (size_t i = 0; i < chars->count; i++)
    foreign += chars->ranges[i].high >= 0x80;
  for (size_t i = 0; i < chars->count; i++) {
    struct gb_range r = chars->ranges[i];
    if (r.low < 0x20)
      codes = gb_alt(g, codes, hex_range(g, r.low, r.high < 0x1f ? r.high : 0x1f, 4));
    r.low = r.low < 0x80 ? 0x80 : r.low;
    r.high = r.high > BMP_LAST ? BMP_LAST : r.high;
    if (r.low <= r.high && foreign <= ESCAPED_RANGES_MAX)
      codes = gb_alt(g, codes, hex_range(g, r.low, r.high, 4));
  }
  if (has_all(chars, 0x10000, LAST))
    codes = gb_alt(g, codes,
                   gb_seq(g, hex_range(g, 0xd800, 0xdbff, 4), gb_word(g, "\\u"),
                          hex_range(g, 0xdc00, 0xdfff, 4)));
  const struct gb_node *node = gb_alt(g, one, gb_seq(g, gb_word(g, "u"), codes));
  return gb_seq(g, gb_word(g, "\\"), node);
}

/* Makes a rule for each set of characters that have escapes: many sets share one. */
static const struct gb_node *escaped(struct gb *g, const struct gb_chars *chars) {
  static const struct gb_range with_escapes[] = {
      {0, 0x1f}, {'"', '"'}, {'/', '/'}, {'\\', '\\'}, {0x80, LAST}};
  enum { N = sizeof with_escapes / sizeof *with_escapes };
  struct gb_range *ranges = gb_get(g, chars->count * N * sizeof *ranges + sizeof *ranges);
  size_t n = 0;
  uint32_t rule;
  if (!ranges)
    return NULL;
  for (size_t i = 0; i < chars->count; i++)
    for (size_t k = 0; k < N; k++) {
      struct gb_range r = chars->ranges[i], e = with_escapes[k];
      r.low = r.low > e.low ? r.low : e.low;
      r.high = r.high < e.high ? r.high : e.high;
      if (r.low <= r.high)
        ranges[n++] = r;
    }
  struct gb_chars subset = {ranges + 1, n};
  memmove(ranges + 1, ranges, n * sizeof *ranges);
  ranges[0] = (struct gb_range){UINT32_MAX, 0}; /* no set of characters begins so */
  struct str key = {(const char *)ranges, (n + 1) * sizeof *ranges};
  if (map_get(&g->classes, key, &rule))
    return gb_ref(g, rule);
  const struct gb_node *node = n ? escapes_of(g, &subset) : &gb_never;
  if (!node || node->kind == GB_NEVER || node->kind == GB_LITERAL || n < 3)
    return node;
  if (!gb_rule_new(g, "escape", node, &rule))
    return NULL;
  map_put(&g->classes, &g->arena, key, rule);
  return gb_ref(g, rule);
}

const struct gb_node *gb_chars_node(struct gb *g, const struct gb_chars *chars) {
  uint32_t rule;
  struct str key = gb_chars_key(chars);
  if (chars->count == 2 && chars->ranges[0].low == 0 && chars->ranges[0].high == 0xd7ff &&
      chars->ranges[1].low == 0xe000 && chars->ranges[1].high == LAST)
    return gb_primitive(g, "char");
  if (map_get(&g->classes, key, &rule))
    return gb_ref(g, rule);
  const struct gb_node *as_is = raw(g, chars), *escapes = escaped(g, chars);
  const struct gb_node *node = gb_alt(g, as_is, escapes);
  if (!node || node->kind == GB_LITERAL || node->kind == GB_CLASS || node->kind == GB_NEVER)
    return node;
  if (!gb_rule_new(g, "c", node, &rule))
    return NULL;
  map_put(&g->classes, &g->arena, key, rule);
  return gb_ref(g, rule);
}
