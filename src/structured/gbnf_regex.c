/* ECMA-262 patterns as trees. What is read here has been compiled before (pattern.h), so its syntax
 * is right; what no automaton can hold is refused. */
#include "structured/gbnf_internal.h"

struct list {
  const struct gb_regex **items;
  size_t count, capacity;
};
struct parser {
  struct gb *g;
  struct gb_language *l;
  const char *p, *end;
  const char *why; /* static: what cannot be held */
  unsigned nesting;
};

static const struct gb_regex *regex(struct parser *s, struct gb_regex what) {
  struct gb_regex *node = gb_get(s->g, sizeof *node);
  if (node)
    *node = what;
  return node;
}

static const struct gb_regex *refuse(struct parser *s, const char *why) {
  s->why = why;
  return NULL;
}

/* A balanced tree: as deep as the logarithm of the count. */
static const struct gb_regex *combine(struct parser *s, enum gb_regex_kind kind,
                                      const struct gb_regex *const *items, size_t count) {
  if (!count)
    return regex(s, (struct gb_regex){.kind = RX_EMPTY});
  if (count == 1)
    return items[0];
  const struct gb_regex *left = combine(s, kind, items, count / 2);
  const struct gb_regex *right = combine(s, kind, items + count / 2, count - count / 2);
  return left && right ? regex(s, (struct gb_regex){.kind = kind, .left = left, .right = right})
                       : NULL;
}

static bool list_add(struct parser *s, struct list *list, const struct gb_regex *item) {
  if (!item)
    return false;
  if (!schema_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items))
    return gb_no_memory(s->g);
  list->items[list->count++] = item;
  return true;
}

static const struct gb_regex *chars_of(struct parser *s, struct gb_range *ranges, size_t count,
                                       bool inverted) {
  struct gb_language *l = s->l;
  uint32_t index;
  const struct gb_chars *chars = gb_chars_new(s->g, ranges, count, inverted);
  if (!chars)
    return NULL;
  size_t size = chars->count * sizeof *chars->ranges;
  if (!schema_map_get(&l->known, chars->ranges, size, &index)) {
    index = (uint32_t)l->chars_count;
    if (!schema_map_put(&l->known, &s->g->arena, chars->ranges, size, index) ||
        !schema_grow((void **)&l->chars, &l->chars_capacity, l->chars_count + 1,
                     sizeof *l->chars)) {
      gb_no_memory(s->g);
      return NULL;
    }
    l->chars[l->chars_count++] = chars;
  }
  return regex(s, (struct gb_regex){.kind = RX_CHARS, .chars = index});
}

static uint32_t code_point(struct parser *s) {
  unsigned char c = (unsigned char)*s->p++;
  unsigned more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
  uint32_t value = more ? c & (0x3fu >> more) : c;
  while (more-- && s->p < s->end)
    value = value << 6 | ((unsigned char)*s->p++ & 0x3f);
  return value;
}

static uint32_t hex(struct parser *s, int digits) {
  uint32_t value = 0;
  for (; digits-- && s->p < s->end; s->p++) {
    char c = *s->p;
    value = value * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return value;
}

/* Behind a backslash: one character. */
static uint32_t escaped_char(struct parser *s) {
  char c = *s->p++;
  uint32_t value = 0;
  switch (c) {
  case 't':
    return '\t';
  case 'n':
    return '\n';
  case 'v':
    return '\v';
  case 'f':
    return '\f';
  case 'r':
    return '\r';
  case '0':
    return 0;
  case 'c':
    return s->p < s->end ? (uint32_t)*s->p++ % 32 : 0;
  case 'x':
    return hex(s, 2);
  case 'u':
    if (s->p < s->end && *s->p == '{') {
      for (s->p++; s->p < s->end && *s->p != '}';)
        value = value * 16 + hex(s, 1);
      s->p += s->p < s->end;
      return value;
    }
    value = hex(s, 4);
    if (value >= 0xd800 && value < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' &&
        s->p[1] == 'u') {
      s->p += 2;
      value = 0x10000 + ((value - 0xd800) << 10) + (hex(s, 4) - 0xdc00);
    }
    return value;
  default:
    s->p--;
    return code_point(s);
  }
}

struct ranges {
  struct gb_range *items;
  size_t count, capacity;
};

static bool ranges_add(struct parser *s, struct ranges *r, uint32_t low, uint32_t high) {
  if (!schema_grow((void **)&r->items, &r->capacity, r->count + 1, sizeof *r->items))
    return gb_no_memory(s->g);
  r->items[r->count++] = (struct gb_range){low, high};
  return true;
}

/* \d, \w, \s and their opposites. */
static bool set_add(struct parser *s, struct ranges *r, char letter) {
  static const struct gb_range digits[] = {{'0', '9'}};
  static const struct gb_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const struct gb_range blanks[] = {
      {9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
      {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
  char kind = (char)(letter | 32);
  const struct gb_range *from = kind == 'd' ? digits : kind == 'w' ? words : blanks;
  size_t n = kind == 'd' ? 1 : kind == 'w' ? 4 : sizeof blanks / sizeof *blanks;
  struct gb_range copy[sizeof blanks / sizeof *blanks];
  memcpy(copy, from, n * sizeof *copy);
  const struct gb_chars *chars = gb_chars_new(s->g, copy, n, letter != kind);
  if (!chars)
    return false;
  for (size_t i = 0; i < chars->count; i++)
    if (!ranges_add(s, r, chars->ranges[i].low, chars->ranges[i].high))
      return false;
  return true;
}

static bool is_set(char c) {
  return c && strchr("dDwWsS", c);
}

/* One member of a class: a set, added, or a character in *value. */
static bool class_member(struct parser *s, struct ranges *r, bool *set, uint32_t *value) {
  *set = false;
  if (*s->p != '\\') {
    *value = code_point(s);
    return true;
  }
  s->p++;
  if (s->p < s->end && (*s->p == 'p' || *s->p == 'P')) {
    refuse(s, "the pattern has a Unicode property");
    return false;
  }
  if (s->p < s->end && is_set(*s->p)) {
    *set = true;
    return set_add(s, r, *s->p++);
  }
  if (s->p < s->end && *s->p == 'b') {
    s->p++;
    *value = 8;
    return true;
  }
  *value = s->p < s->end ? escaped_char(s) : '\\';
  return true;
}

static bool class_members(struct parser *s, struct ranges *r) {
  while (s->p < s->end && *s->p != ']') {
    uint32_t low, high;
    bool low_set, high_set;
    if (!class_member(s, r, &low_set, &low))
      return false;
    if (low_set)
      continue;
    if (s->end - s->p < 2 || s->p[0] != '-' || s->p[1] == ']') {
      if (!ranges_add(s, r, low, low))
        return false;
      continue;
    }
    s->p++;
    if (!class_member(s, r, &high_set, &high))
      return false;
    if (high_set ? !ranges_add(s, r, low, low) || !ranges_add(s, r, '-', '-')
                 : !ranges_add(s, r, low, high))
      return false;
  }
  s->p += s->p < s->end;
  return true;
}

static const struct gb_regex *class_of(struct parser *s) {
  struct ranges r = {0};
  bool inverted = s->p < s->end && *s->p == '^';
  s->p += inverted;
  const struct gb_regex *node =
      class_members(s, &r) ? chars_of(s, r.items, r.count, inverted) : NULL;
  schema_release(r.items);
  return node;
}

static const struct gb_regex *alternatives(struct parser *s);

static const struct gb_regex *group(struct parser *s) {
  if (++s->nesting > PATTERN_NESTING_MAX)
    return refuse(s, "the groups of the pattern are nested too deeply");
  if (s->end - s->p >= 2 && s->p[0] == '?') {
    bool behind = s->end - s->p >= 3 && s->p[1] == '<' && (s->p[2] == '=' || s->p[2] == '!');
    if (behind || s->p[1] == '=' || s->p[1] == '!')
      return refuse(s, "the pattern looks around, elsewhere than at its beginning");
    if (s->p[1] == ':')
      s->p += 2;
    else
      while (s->p < s->end && *s->p++ != '>')
        ;
  }
  const struct gb_regex *node = alternatives(s);
  s->nesting--;
  s->p += s->p < s->end;
  return node;
}

static const struct gb_regex *escape(struct parser *s) {
  char c = s->p < s->end ? *s->p : '\0';
  if (c == 'b' || c == 'B')
    return refuse(s, "the pattern asks for the edge of a word");
  if (c == 'k' || (c >= '1' && c <= '9'))
    return refuse(s, "the pattern refers back to a group");
  if (c == 'p' || c == 'P')
    return refuse(s, "the pattern has a Unicode property");
  if (is_set(c)) {
    struct ranges r = {0};
    s->p++;
    const struct gb_regex *node = set_add(s, &r, c) ? chars_of(s, r.items, r.count, false) : NULL;
    schema_release(r.items);
    return node;
  }
  uint32_t value = s->p < s->end ? escaped_char(s) : '\\';
  return chars_of(s, &(struct gb_range){value, value}, 1, false);
}

static uint32_t number(struct parser *s) {
  uint32_t n = 0;
  for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
    n = n < 10000000 ? n * 10 + (uint32_t)(*s->p - '0') : n;
  return n;
}

/* A quantifier at p, if there is one. */
static bool quantifier(struct parser *s, uint32_t *min, uint32_t *max) {
  const char *from = s->p;
  char c = s->p < s->end ? *s->p : '\0';
  if (c == '*' || c == '+' || c == '?') {
    s->p++;
    *min = c == '+';
    *max = c == '?' ? 1 : UINT32_MAX;
  } else if (c == '{' && s->end - s->p > 1 && s->p[1] >= '0' && s->p[1] <= '9') {
    s->p++;
    *min = *max = number(s);
    if (s->p < s->end && *s->p == ',') {
      s->p++;
      *max = s->p < s->end && *s->p == '}' ? UINT32_MAX : number(s);
    }
    if (s->p == s->end || *s->p != '}') {
      s->p = from;
      return false;
    }
    s->p++;
  } else {
    return false;
  }
  s->p += s->p < s->end && *s->p == '?'; /* lazy: the same strings */
  return true;
}

static const struct gb_regex *term(struct parser *s) {
  static const struct gb_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  struct gb_range ranges[3];
  uint32_t min, max, value;
  const struct gb_regex *node;
  char c = *s->p;
  if (c == '^' || c == '$') {
    s->p++;
    node = regex(s, (struct gb_regex){.kind = c == '^' ? RX_BEGIN : RX_END});
  } else if (c == '(') {
    s->p++;
    node = group(s);
  } else if (c == '[') {
    s->p++;
    node = class_of(s);
  } else if (c == '.') {
    s->p++;
    memcpy(ranges, line_ends, sizeof ranges);
    node = chars_of(s, ranges, 3, true);
  } else if (c == '\\') {
    s->p++;
    node = escape(s);
  } else {
    value = code_point(s);
    node = chars_of(s, &(struct gb_range){value, value}, 1, false);
  }
  if (node && quantifier(s, &min, &max))
    node = regex(s, (struct gb_regex){.kind = RX_REPEAT, .min = min, .max = max, .left = node});
  return node;
}

static const struct gb_regex *alternatives(struct parser *s) {
  struct list choices = {0}, terms = {0};
  bool ok = true;
  while (ok) {
    terms.count = 0;
    while (ok && s->p < s->end && *s->p != '|' && *s->p != ')')
      ok = list_add(s, &terms, term(s));
    ok = ok && list_add(s, &choices, combine(s, RX_SEQ, terms.items, terms.count));
    if (!ok || s->p == s->end || *s->p != '|')
      break;
    s->p++;
  }
  const struct gb_regex *node = ok ? combine(s, RX_ALT, choices.items, choices.count) : NULL;
  schema_release(choices.items);
  schema_release(terms.items);
  return node;
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

/* "^(?=...)(?!...)rest": each look-ahead is a pattern of its own, anchored at the beginning. */
static enum gb_added look_ahead(struct parser *s, bool must) {
  bool negated = s->p[2] == '!';
  const struct gb_regex *begin = regex(s, (struct gb_regex){.kind = RX_BEGIN});
  s->p += 3;
  s->nesting = 1;
  const struct gb_regex *inner = begin ? alternatives(s) : NULL;
  s->nesting = 0;
  s->p += s->p < s->end;
  const struct gb_regex *both =
      inner ? regex(s, (struct gb_regex){.kind = RX_SEQ, .left = begin, .right = inner}) : NULL;
  return part_add(s, both, negated, must);
}

static bool at_look_ahead(const struct parser *s) {
  return s->end - s->p > 3 && s->p[0] == '(' && s->p[1] == '?' &&
         (s->p[2] == '=' || s->p[2] == '!');
}

enum gb_added gb_language_pattern(struct gb *g, struct gb_language *l, const char *text,
                                  size_t length, bool negated, bool must, const char **why) {
  struct parser s = {.g = g, .l = l, .p = text, .end = text + length};
  size_t before = l->part_count;
  enum gb_added added = GB_ADDED;
  bool looks = length && *text == '^';
  s.p += looks;
  looks = looks && at_look_ahead(&s);
  if (!looks)
    s.p = text;
  while (looks && added == GB_ADDED && at_look_ahead(&s))
    added = negated ? GB_ADDED_NOT : look_ahead(&s, must);
  if (added == GB_ADDED) {
    const struct gb_regex *node = alternatives(&s);
    if (looks && node && node->kind == RX_ALT)
      node = refuse(&s, "the pattern looks around, elsewhere than at its beginning");
    const struct gb_regex *begin =
        node && looks ? regex(&s, (struct gb_regex){.kind = RX_BEGIN}) : NULL;
    if (begin)
      node = regex(&s, (struct gb_regex){.kind = RX_SEQ, .left = begin, .right = node});
    added = part_add(&s, node, negated, must);
  }
  if (added == GB_ADDED_NOT)
    l->part_count = before;
  *why = s.why ? s.why : "the pattern looks around";
  return g->status == GBNF_OK ? added : GB_ADDED_FAILED;
}

enum gb_added gb_language_texts(struct gb *g, struct gb_language *l,
                                const struct gb_link *const *names, size_t count, bool negated) {
  struct parser s = {.g = g, .l = l};
  struct list texts = {0}, chars = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < count; i++) {
    s.p = names[i]->name;
    s.end = s.p + names[i]->length;
    chars.count = 0;
    while (ok && s.p < s.end) {
      uint32_t value = code_point(&s);
      ok = list_add(&s, &chars, chars_of(&s, &(struct gb_range){value, value}, 1, false));
    }
    ok = ok && list_add(&s, &texts, combine(&s, RX_SEQ, chars.items, chars.count));
  }
  const struct gb_regex *parts[3] = {
      regex(&s, (struct gb_regex){.kind = RX_BEGIN}),
      ok ? combine(&s, RX_ALT, texts.items, texts.count) : NULL,
      regex(&s, (struct gb_regex){.kind = RX_END}),
  };
  ok = ok && parts[0] && parts[1] && parts[2];
  schema_release(texts.items);
  schema_release(chars.items);
  return part_add(&s, ok ? combine(&s, RX_SEQ, parts, 3) : NULL, negated, true);
}

void gb_language_deinit(struct gb_language *l) {
  schema_release(l->chars);
  schema_map_deinit(&l->known);
  *l = (struct gb_language){0};
}
