/* Parses ECMA-262 regular expressions into trees, and writes them in PCRE2's syntax. */
#include "schema/ecma.h"

#include "base/utf8.h"
#include "schema/pattern.h"

#include <assert.h>
#include <string.h>

/* --- the parser --- */

struct ecma_name {
  struct ecma_name *next;
  struct ecma_node *node;
  size_t offset;
};

struct ecma_parser {
  struct arena *arena;
  const char *p, *end, *start;
  unsigned nesting;
  uint32_t groups; /* captured so far */
  struct ecma_name *named, *backs;
  struct ecma_error error;
};

static bool ecma_refuse(struct ecma_parser *s, const char *why) {
  if (!s->error.text)
    s->error = (struct ecma_error){why, (size_t)(s->p - s->start)};
  return false;
}

static struct ecma_node *ecma_new(struct ecma_parser *s, enum ecma_kind kind) {
  struct ecma_node *node = arena_alloc(s->arena, sizeof *node);
  node->kind = kind;
  return node;
}

static bool at(const struct ecma_parser *s, const char *word) {
  size_t n = strlen(word);
  return (size_t)(s->end - s->p) >= n && memcmp(s->p, word, n) == 0;
}

static bool take(struct ecma_parser *s, const char *word) {
  bool is = at(s, word);
  s->p += is ? strlen(word) : 0;
  return is;
}

static bool is_word_char(char c) {
  return str_is_letter(c) || str_is_digit(c) || c == '_';
}

/* --- classes and escapes --- */

size_t ecma_member_ranges(const struct ecma_member *member,
                          struct ecma_range out[ECMA_MEMBER_RANGES]) {
  static const struct ecma_range digits[] = {{'0', '9'}};
  static const struct ecma_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  /* WhiteSpace and LineTerminator */
  static const struct ecma_range blanks[] = {
      {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
      {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
  static const struct {
    char small, capital;
    const struct ecma_range *ranges;
    size_t count;
  } sets[] = {{'d', 'D', digits, 1}, {'w', 'W', words, 4}, {'s', 'S', blanks, 10}};
  if (!member->set) {
    out[0] = member->range;
    return 1;
  }
  size_t i = 0, n = 0;
  while (i < 3 && member->set != sets[i].small && member->set != sets[i].capital)
    i++;
  if (i == 3)
    return 0;
  uint32_t low = 0;
  for (size_t k = 0; k < sets[i].count; k++) {
    struct ecma_range r = sets[i].ranges[k];
    if (member->set == sets[i].small)
      out[n++] = r;
    else if (r.low > low)
      out[n++] = (struct ecma_range){low, r.low - 1};
    low = r.high + 1;
  }
  if (member->set == sets[i].capital)
    out[n++] = (struct ecma_range){low, UTF8_LAST};
  return n;
}

/* Parses the "{...}" after \p or \P. */
static bool property(struct ecma_parser *s, struct ecma_member *member) {
  static const struct {
    const char *key, *scheme;
  } keys[] = {{"General_Category=", ""},      {"gc=", ""},     {"Script=", "sc:"}, {"sc=", "sc:"},
              {"Script_Extensions=", "scx:"}, {"scx=", "scx:"}};
  enum { NAME_BYTES_MAX = 63 };
  if (!take(s, "{"))
    return ecma_refuse(s, "\\p needs a property in braces");
  const char *from = s->p;
  member->scheme = "";
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (take(s, keys[i].key)) {
      member->scheme = keys[i].scheme;
      break;
    }
  const char *name = s->p;
  while (s->p < s->end && is_word_char(*s->p))
    s->p++;
  member->name = (struct str){name, (size_t)(s->p - name)};
  if (member->name.n == 0 || s->p - from > NAME_BYTES_MAX || !take(s, "}"))
    return ecma_refuse(s, "not the name of a property");
  return true;
}

static bool ecma_hex_digits(struct ecma_parser *s, int count, uint32_t *value) {
  *value = 0;
  for (int i = 0; i < count; i++, s->p++) {
    if (s->p == s->end || str_hex_digit(*s->p) < 0)
      return ecma_refuse(s, "hexadecimal digits are missing");
    *value = *value * 16 + (uint32_t)str_hex_digit(*s->p);
  }
  return true;
}

/* Parses what follows \u: XXXX, a surrogate pair, or {X...}. */
static bool unicode_escape(struct ecma_parser *s, uint32_t *value) {
  if (take(s, "{")) {
    const char *from = s->p;
    for (*value = 0; s->p < s->end && str_hex_digit(*s->p) >= 0 && *value <= UTF8_LAST; s->p++)
      *value = *value * 16 + (uint32_t)str_hex_digit(*s->p);
    if (s->p == from || *value > UTF8_LAST || !take(s, "}"))
      return ecma_refuse(s, "not a code point");
  } else if (!ecma_hex_digits(s, 4, value)) {
    return false;
  }
  const char *behind = s->p;
  uint32_t low;
  if (utf8_is_surrogate(*value) && take(s, "\\u") && ecma_hex_digits(s, 4, &low) &&
      utf8_join(*value, low, value))
    return true;
  s->p = utf8_is_surrogate(*value) ? behind : s->p;
  return !utf8_is_surrogate(*value) || ecma_refuse(s, "a lone surrogate can match nothing");
}

/* Parses an escape for one character, in a class or outside. `c` follows the backslash. */
static bool character_escape(struct ecma_parser *s, char c, uint32_t *value) {
  static const char names[] = "t\tn\nv\vf\fr\r";
  for (const char *p = names; *p; p += 2)
    if (*p == c) {
      *value = (uint32_t)p[1];
      return true;
    }
  switch (c) {
  case '0':
    *value = 0;
    return s->p == s->end || !str_is_digit(*s->p) ||
           ecma_refuse(s, "octal escapes are not allowed");
  case 'c':
    if (s->p == s->end || !str_is_letter(*s->p))
      return ecma_refuse(s, "\\c needs a letter");
    *value = (uint32_t)*s->p++ % 32;
    return true;
  case 'x':
    return ecma_hex_digits(s, 2, value);
  case 'u':
    return unicode_escape(s, value);
  default: /* a punctuation mark stands for itself */
    *value = (unsigned char)c;
    if (str_is_digit(c) || str_is_letter(c) || *value >= 0x80)
      return ecma_refuse(s, "not an escape of ECMA-262");
    return true;
  }
}

/* Parses one member of a class: a set, or a character in range.low. `in_class`: \b is a
 * backspace. */
static bool ecma_member(struct ecma_parser *s, bool in_class, struct ecma_member *member) {
  *member = (struct ecma_member){0};
  if (!take(s, "\\")) {
    size_t n = utf8_decode(s->p, (size_t)(s->end - s->p), &member->range.low);
    if (n == 0)
      return ecma_refuse(s, "not UTF-8");
    s->p += n;
    return true;
  }
  if (s->p == s->end)
    return ecma_refuse(s, "a backslash at the end");
  char c = *s->p++;
  if (c != '\0' && strchr("dDsSwW", c)) {
    member->set = c;
    return true;
  }
  if (c == 'p' || c == 'P') {
    member->set = c;
    return property(s, member);
  }
  if (c == 'b' && in_class) {
    member->range.low = '\b';
    return true;
  }
  return character_escape(s, c, &member->range.low);
}

static const struct ecma_member **member_add(struct ecma_parser *s, const struct ecma_member **last,
                                             const struct ecma_member *member) {
  struct ecma_member *copy = arena_alloc(s->arena, sizeof *copy);
  *copy = *member;
  copy->next = NULL;
  *last = copy;
  return &copy->next;
}

/* Parses what follows "[". A minus beside a set, or at either end, is a character. */
static bool class_members(struct ecma_parser *s, struct ecma_node *class) {
  const struct ecma_member **last = &class->members;
  class->negated = take(s, "^");
  while (s->p < s->end && !at(s, "]")) {
    struct ecma_member low, high;
    if (!ecma_member(s, true, &low))
      return false;
    low.range.high = low.range.low;
    if (!low.set && s->end - s->p >= 2 && s->p[0] == '-' && s->p[1] != ']') {
      const char *minus = s->p++;
      if (!ecma_member(s, true, &high))
        return false;
      low.range.high = high.set ? low.range.low : high.range.low;
      s->p = high.set ? minus : s->p; /* read the set again as a member of its own */
      if (low.range.high < low.range.low)
        return ecma_refuse(s, "a range whose end comes before its beginning");
      last = member_add(s, last, &low);
      if (high.set) {
        s->p++;
        last = member_add(s, last, &(struct ecma_member){.range = {'-', '-'}});
      }
      continue;
    }
    last = member_add(s, last, &low);
  }
  return take(s, "]") || ecma_refuse(s, "a class without its ]");
}

static struct ecma_node *ecma_class_of(struct ecma_parser *s, const struct ecma_member *member) {
  struct ecma_node *node = ecma_new(s, ECMA_CLASS);
  member_add(s, &node->members, member);
  return node;
}

/* --- groups and references --- */

/* Parses "name>". */
static bool group_name(struct ecma_parser *s, struct str *name) {
  enum { GROUP_NAME_MAX = 30 }; /* PCRE2 takes 32 */
  const char *from = s->p;
  while (s->p < s->end && is_word_char(*s->p))
    s->p++;
  *name = (struct str){from, (size_t)(s->p - from)};
  if (name->n == 0 || name->n > GROUP_NAME_MAX || str_is_digit(*from) || !take(s, ">"))
    return ecma_refuse(s, "not the name of a group");
  return true;
}

static void name_add(struct ecma_parser *s, struct ecma_name **list, struct ecma_node *node) {
  struct ecma_name *name = arena_alloc(s->arena, sizeof *name);
  *name = (struct ecma_name){*list, node, (size_t)(s->p - s->start)};
  *list = name;
}

/* Resolves references last: a group may be named after them. */
static bool resolve_backs(struct ecma_parser *s) {
  for (const struct ecma_name *back = s->backs; back; back = back->next) {
    for (const struct ecma_name *named = s->named; named && back->node->name.n > 0;
         named = named->next)
      if (str_eq(named->node->name, back->node->name))
        back->node->number = named->node->number;
    if (back->node->number == 0 || back->node->number > s->groups) {
      s->p = s->start + back->offset;
      return ecma_refuse(s, "there is no such group");
    }
  }
  return true;
}

static struct ecma_node *ecma_alternatives(struct ecma_parser *s);

/* Parses a group, from its "(" on. */
static struct ecma_node *ecma_group(struct ecma_parser *s) {
  struct ecma_node *node = NULL;
  if (++s->nesting > PATTERN_NESTING_MAX) {
    ecma_refuse(s, "groups are nested too deeply");
    return NULL;
  }
  bool ahead = at(s, "(?=") || at(s, "(?!"), behind = at(s, "(?<=") || at(s, "(?<!");
  if (ahead || behind) {
    node = ecma_new(s, ECMA_LOOK);
    node->behind = behind;
    node->negated = s->p[behind ? 3 : 2] == '!';
    s->p += behind ? 4 : 3;
  } else if (!take(s, "(?:")) {
    node = ecma_new(s, ECMA_GROUP);
    node->number = ++s->groups;
    if (take(s, "(?<")) {
      if (!group_name(s, &node->name))
        return NULL;
      for (const struct ecma_name *other = s->named; other; other = other->next)
        if (str_eq(other->node->name, node->name)) {
          ecma_refuse(s, "two groups have this name");
          return NULL;
        }
      name_add(s, &s->named, node);
    } else if (at(s, "(?") || at(s, "(*")) {
      ecma_refuse(s, s->p[1] == '?' ? "not a group of ECMA-262" : "nothing to repeat");
      return NULL;
    } else {
      s->p++;
    }
  }
  struct ecma_node *inner = ecma_alternatives(s);
  if (!inner || !take(s, ")")) {
    ecma_refuse(s, "a ( without its )");
    return NULL;
  }
  s->nesting--;
  if (!node)
    return inner;
  node->kids = inner;
  return node;
}

/* Parses \b, \B and back references, after the backslash. NULL without an error: it is something
 * else. */
static struct ecma_node *ecma_escape(struct ecma_parser *s) {
  char c = s->end - s->p > 1 ? s->p[1] : '\0';
  struct ecma_node *node = NULL;
  if (c == 'b' || c == 'B') {
    node = ecma_new(s, ECMA_EDGE);
    node->negated = c == 'B';
    s->p += 2;
  } else if (c == 'k' || (c >= '1' && c <= '9')) {
    node = ecma_new(s, ECMA_BACK);
    name_add(s, &s->backs, node);
    s->p++;
    for (; c != 'k' && s->p < s->end && str_is_digit(*s->p) && node->number < 10000; s->p++)
      node->number = node->number * 10 + (uint32_t)(*s->p - '0');
    if (c == 'k' && !take(s, "k<"))
      ecma_refuse(s, "\\k needs the name of a group");
    else if (c == 'k')
      group_name(s, &node->name);
  }
  return node;
}

/* --- terms --- */

static bool ecma_number(struct ecma_parser *s, uint32_t *value) {
  const char *from = s->p;
  for (*value = 0; s->p < s->end && str_is_digit(*s->p); s->p++)
    *value = *value <= ECMA_REPEAT_MAX ? *value * 10 + (uint32_t)(*s->p - '0') : *value;
  return s->p > from;
}

/* Parses a quantifier, if there is one; "{,2}" and "{x}" are not quantifiers. */
static bool ecma_quantifier(struct ecma_parser *s, uint32_t *min, uint32_t *max) {
  const char *from = s->p;
  char c = s->p < s->end ? *s->p : '\0';
  if (c == '*' || c == '+' || c == '?') {
    s->p++;
    *min = c == '+';
    *max = c == '?' ? 1 : (uint32_t)ECMA_NO_END;
    return true;
  }
  if (take(s, "{") && ecma_number(s, min)) {
    *max = *min;
    if (take(s, ",") && !ecma_number(s, max))
      *max = ECMA_NO_END;
    if (take(s, "}"))
      return true;
  }
  s->p = from;
  return false;
}

static bool at_quantifier(struct ecma_parser *s) {
  const char *from = s->p;
  uint32_t min, max;
  bool is = ecma_quantifier(s, &min, &max);
  s->p = from;
  return is;
}

static struct ecma_node *repeated(struct ecma_parser *s, struct ecma_node *node) {
  uint32_t min, max;
  const char *from = s->p;
  if (!ecma_quantifier(s, &min, &max))
    return node;
  const char *wrong = NULL;
  if (node->kind == ECMA_LOOK || node->kind == ECMA_BEGIN || node->kind == ECMA_END ||
      node->kind == ECMA_EDGE)
    wrong = "nothing to repeat";
  else if (min > ECMA_REPEAT_MAX || (max > ECMA_REPEAT_MAX && max != ECMA_NO_END))
    wrong = "a repetition of more than 65,535";
  else if (min > max)
    wrong = "a repetition whose least is more than its most";
  struct ecma_node *repeat = ecma_new(s, ECMA_REPEAT);
  repeat->min = min;
  repeat->max = max;
  repeat->lazy = take(s, "?");
  repeat->kids = node;
  if (wrong) {
    s->p = from;
    ecma_refuse(s, wrong);
  } else if (at_quantifier(s)) {
    ecma_refuse(s, "nothing to repeat");
  }
  return repeat;
}

static struct ecma_node *ecma_atom(struct ecma_parser *s) {
  static const struct ecma_member line_ends[] = {{.next = &line_ends[1], .range = {'\n', '\n'}},
                                                 {.next = &line_ends[2], .range = {'\r', '\r'}},
                                                 {.range = {0x2028, 0x2029}}};
  struct ecma_member member;
  struct ecma_node *node = NULL;
  switch (*s->p) {
  case '(':
    return ecma_group(s);
  case '[':
    s->p++;
    node = ecma_new(s, ECMA_CLASS);
    return class_members(s, node) ? node : NULL;
  case '^':
  case '$':
    return ecma_new(s, *s->p++ == '^' ? ECMA_BEGIN : ECMA_END);
  case '.':
    s->p++;
    node = ecma_new(s, ECMA_CLASS);
    node->negated = true;
    node->members = line_ends;
    return node;
  case '\\':
    node = ecma_escape(s);
    if (node)
      return node;
    break;
  default:
    if (at_quantifier(s)) {
      ecma_refuse(s, "nothing to repeat");
      return NULL;
    }
  }
  if (!ecma_member(s, false, &member))
    return NULL;
  member.range.high = member.range.low;
  return ecma_class_of(s, &member);
}

static struct ecma_node *ecma_sequence(struct ecma_parser *s) {
  struct ecma_node *seq = ecma_new(s, ECMA_SEQ);
  const struct ecma_node **last = &seq->kids;
  while (s->p < s->end && *s->p != '|' && *s->p != ')') {
    struct ecma_node *node = ecma_atom(s);
    node = node && !s->error.text ? repeated(s, node) : NULL;
    if (!node || s->error.text)
      return NULL;
    *last = node;
    last = &node->next;
  }
  return seq;
}

static struct ecma_node *ecma_alternatives(struct ecma_parser *s) {
  struct ecma_node *first = ecma_sequence(s), *alt = NULL;
  const struct ecma_node **last = NULL;
  while (first && take(s, "|")) {
    if (!alt) {
      alt = ecma_new(s, ECMA_ALT);
      alt->kids = first;
      last = &first->next;
    }
    struct ecma_node *next = ecma_sequence(s);
    if (!next)
      return NULL;
    *last = next;
    last = &next->next;
  }
  return alt ? alt : first;
}

const struct ecma_node *ecma_parse(struct str text, struct arena *arena, struct ecma_error *error) {
  struct ecma_parser s = {.arena = arena, .p = text.p, .end = text.p + text.n, .start = text.p};
  const struct ecma_node *root = NULL;
  assert(text.p != NULL);
  if (text.n > PATTERN_LENGTH_MAX)
    ecma_refuse(&s, "the pattern is too long");
  else
    root = ecma_alternatives(&s);
  if (root && s.p < s.end)
    ecma_refuse(&s, "a ) without its (");
  if (!s.error.text)
    resolve_backs(&s);
  *error = s.error;
  return s.error.text ? NULL : root;
}

/* --- in PCRE2's syntax ---
 *
 * Where the two differ (\s, ., names of properties), the result means what ECMA-262 says. */

/* Maps the long names of ECMA-262 to PCRE2's. */
static const char *const categories[][2] = {
    {"Cased_Letter", "L&"},
    {"Close_Punctuation", "Pe"},
    {"Combining_Mark", "M"},
    {"Connector_Punctuation", "Pc"},
    {"Control", "Cc"},
    {"Currency_Symbol", "Sc"},
    {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},
    {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},
    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},
    {"LC", "L&"},
    {"Letter", "L"},
    {"Letter_Number", "Nl"},
    {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},
    {"Mark", "M"},
    {"Math_Symbol", "Sm"},
    {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},
    {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},
    {"Open_Punctuation", "Ps"},
    {"Other", "C"},
    {"Other_Letter", "Lo"},
    {"Other_Number", "No"},
    {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},
    {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},
    {"Punctuation", "P"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},
    {"Surrogate", "Cs"},
    {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},
    {"Unassigned", "Cn"},
    {"Uppercase_Letter", "Lu"},
    {"cntrl", "Cc"},
    {"digit", "Nd"},
    {"punct", "P"},
};

static void pcre_character(uint32_t c, struct buf *out) {
  if (c < 0x80 && (str_is_digit((char)c) || str_is_letter((char)c)))
    buf_putc(out, (char)c);
  else
    buf_printf(out, "\\x{%x}", (unsigned)c);
}

static void pcre_member(const struct ecma_member *member, struct buf *out) {
  struct ecma_range ranges[ECMA_MEMBER_RANGES];
  size_t n = ecma_member_ranges(member, ranges);
  if (n == 0) {
    struct str name = member->name;
    for (size_t i = 0; i < sizeof categories / sizeof *categories && !*member->scheme; i++)
      if (str_eq_c(member->name, categories[i][0]))
        name = str_from(categories[i][1]);
    buf_printf(out, "\\%c{%s" STR_FMT "}", member->set, member->scheme, STR_ARG(name));
    return;
  }
  /* PCRE2 has them too, and matches them faster than ranges */
  if (member->set && strchr("DwW", member->set)) {
    buf_printf(out, "\\%c", member->set);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    pcre_character(ranges[i].low, out);
    if (ranges[i].high == ranges[i].low)
      continue;
    buf_putc(out, '-');
    pcre_character(ranges[i].high, out);
  }
}

static void pcre_class(const struct ecma_node *node, struct buf *out) {
  const struct ecma_member *only = node->members && !node->members->next ? node->members : NULL;
  if (!node->members) {
    buf_puts(out, node->negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)");
    return;
  }
  if (only && !node->negated && !only->set && only->range.low == only->range.high) {
    pcre_character(only->range.low, out);
    return;
  }
  buf_puts(out, node->negated ? "[^" : "[");
  for (const struct ecma_member *member = node->members; member; member = member->next)
    pcre_member(member, out);
  buf_putc(out, ']');
}

static void pcre_node(const struct ecma_node *node, bool repeated, struct buf *out);

static void pcre_kids(const struct ecma_node *node, const char *between, struct buf *out) {
  for (const struct ecma_node *kid = node->kids; kid; kid = kid->next) {
    pcre_node(kid, false, out);
    if (kid->next)
      buf_puts(out, between);
  }
}

/* Writes a node that is alone or inside parentheses: alternatives need none there. */
static void pcre_inside(const struct ecma_node *node, struct buf *out) {
  if (node->kind == ECMA_ALT)
    pcre_kids(node, "|", out);
  else
    pcre_node(node, false, out);
}

static void pcre_group(const char *open, const struct ecma_node *node, struct buf *out) {
  buf_puts(out, open);
  pcre_inside(node, out);
  buf_putc(out, ')');
}

/* Writes a node. `repeated`: it must come out as a single item. */
static void pcre_node(const struct ecma_node *node, bool repeated, struct buf *out) {
  switch (node->kind) {
  case ECMA_SEQ:
    if (repeated)
      pcre_group("(?:", node, out);
    else
      pcre_kids(node, "", out);
    return;
  case ECMA_ALT:
    pcre_group("(?:", node, out);
    return;
  case ECMA_CLASS:
    pcre_class(node, out);
    return;
  case ECMA_REPEAT:
    pcre_node(node->kids, true, out);
    if (node->max == ECMA_NO_END)
      buf_printf(out, "{%u,}", (unsigned)node->min);
    else
      buf_printf(out, "{%u,%u}", (unsigned)node->min, (unsigned)node->max);
    buf_puts(out, node->lazy ? "?" : "");
    return;
  case ECMA_GROUP:
    pcre_group("(", node->kids, out);
    return;
  case ECMA_BACK:
    buf_printf(out, "\\g{%u}", (unsigned)node->number);
    return;
  case ECMA_LOOK:
    if (node->behind)
      pcre_group(node->negated ? "(?<!" : "(?<=", node->kids, out);
    else
      pcre_group(node->negated ? "(?!" : "(?=", node->kids, out);
    return;
  case ECMA_BEGIN:
    buf_putc(out, '^');
    return;
  case ECMA_END:
    buf_putc(out, '$');
    return;
  case ECMA_EDGE:
    buf_puts(out, node->negated ? "\\B" : "\\b");
    return;
  }
}

void ecma_to_pcre(const struct ecma_node *root, struct buf *out) {
  buf_puts(out, "");
  pcre_inside(root, out);
}
