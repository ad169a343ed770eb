/* From an ECMA-262 regular expression, unicode mode, to PCRE2's syntax. Refuses what only PCRE2
 * knows; an escaped punctuation mark and a lone bracket or brace stand for themselves, as browsers
 * have it. */
#include "structured/pattern.h"
#include "structured/schema_support.h"

struct translator {
  const char *p, *end, *start;
  struct text out;
  unsigned groups; /* capture groups in the whole pattern */
  bool named;      /* it has named groups */
  unsigned nesting;
  const char *error; /* static; where it is: p */
};

static bool refuse(struct translator *t, const char *error) {
  if (!t->error)
    t->error = error;
  return false;
}

static void add_code_point(struct translator *t, uint32_t c) {
  schema_text_printf(&t->out, "\\x{%x}", (unsigned)c);
}

/* WhiteSpace and LineTerminator of ECMA-262, and the rest, as members of a class. */
static const char white[] = "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
                            "\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
static const char not_white[] =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-"
    "\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}"
    "\\x{ff00}-\\x{10ffff}";

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

/* At "{...}" after \p or \P. */
static bool property(struct translator *t, char letter) {
  char name[64];
  size_t n = 0;
  if (t->p == t->end || *t->p != '{')
    return refuse(t, "\\p needs a property in braces");
  for (t->p++; t->p < t->end && *t->p != '}'; t->p++) {
    char c = *t->p;
    bool word = c == '_' || c == '=' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                (c >= 'A' && c <= 'Z');
    if (!word || n + 1 == sizeof name)
      return refuse(t, "not the name of a property");
    name[n++] = c;
  }
  if (t->p == t->end || !n)
    return refuse(t, "not the name of a property");
  t->p++;
  name[n] = '\0';
  const char *value = strchr(name, '='), *shown = name, *prefix = "";
  if (value) {
    size_t key = (size_t)(value++ - name);
    shown = value;
    if ((key == 6 && !memcmp(name, "Script", 6)) || (key == 2 && !memcmp(name, "sc", 2)))
      prefix = "sc:";
    else if ((key == 17 && !memcmp(name, "Script_Extensions", 17)) ||
             (key == 3 && !memcmp(name, "scx", 3)))
      prefix = "scx:";
    else if (!(key == 16 && !memcmp(name, "General_Category", 16)) &&
             !(key == 2 && !memcmp(name, "gc", 2)))
      return refuse(t, "not the name of a property");
  }
  if (!*prefix)
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
      if (!strcmp(shown, categories[i][0]))
        shown = categories[i][1];
  schema_text_printf(&t->out, "\\%c{%s%s}", letter, prefix, shown);
  return true;
}

static int hex(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

static bool hex_digits(struct translator *t, int count, uint32_t *value) {
  *value = 0;
  for (int i = 0; i < count; i++, t->p++) {
    if (t->p == t->end || hex(*t->p) < 0)
      return refuse(t, "hexadecimal digits are missing");
    *value = *value * 16 + (uint32_t)hex(*t->p);
  }
  return true;
}

/* After \u: XXXX, a pair of surrogates, or {X...}. */
static bool unicode_escape(struct translator *t, uint32_t *value) {
  if (t->p < t->end && *t->p == '{') {
    *value = 0;
    for (t->p++; t->p < t->end && hex(*t->p) >= 0 && *value <= 0x10ffff; t->p++)
      *value = *value * 16 + (uint32_t)hex(*t->p);
    if (t->p == t->end || *t->p != '}' || t->p[-1] == '{' || *value > 0x10ffff)
      return refuse(t, "not a code point");
    t->p++;
  } else if (!hex_digits(t, 4, value)) {
    return false;
  }
  if (*value >= 0xd800 && *value < 0xdc00 && t->end - t->p >= 6 && t->p[0] == '\\' &&
      t->p[1] == 'u') {
    uint32_t low;
    t->p += 2;
    if (!hex_digits(t, 4, &low))
      return false;
    if (low >= 0xdc00 && low < 0xe000) {
      *value = 0x10000 + ((*value - 0xd800) << 10) + (low - 0xdc00);
      return true;
    }
  }
  if (*value >= 0xd800 && *value < 0xe000)
    return refuse(t, "a lone surrogate can match nothing");
  return true;
}

/* Escapes that stand for one character, in and outside classes. `c` is what follows the backslash.
 */
static bool character_escape(struct translator *t, char c) {
  uint32_t value;
  switch (c) {
  case 't':
    value = '\t';
    break;
  case 'n':
    value = '\n';
    break;
  case 'v':
    value = '\v';
    break;
  case 'f':
    value = '\f';
    break;
  case 'r':
    value = '\r';
    break;
  case '0':
    if (t->p < t->end && *t->p >= '0' && *t->p <= '9')
      return refuse(t, "octal escapes are not allowed");
    value = 0;
    break;
  case 'c': {
    char letter = t->p < t->end ? *t->p : '\0';
    if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')))
      return refuse(t, "\\c needs a letter");
    t->p++;
    value = (uint32_t)letter % 32;
    break;
  }
  case 'x':
    if (!hex_digits(t, 2, &value))
      return false;
    break;
  case 'u':
    if (!unicode_escape(t, &value))
      return false;
    break;
  default: /* a punctuation mark stands for itself */
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (unsigned char)c >= 0x80)
      return refuse(t, "not an escape of ECMA-262");
    value = (unsigned char)c;
  }
  add_code_point(t, value);
  return true;
}

static bool class_escape(struct translator *t, char c, bool in_class) {
  switch (c) {
  case 'd':
    schema_text_puts(&t->out, in_class ? "0-9" : "[0-9]");
    return true;
  case 'w':
  case 'W':
  case 'D':
    schema_text_printf(&t->out, "\\%c", c);
    return true;
  case 's':
  case 'S':
    schema_text_puts(&t->out, in_class ? "" : "[");
    schema_text_puts(&t->out, c == 's' ? white : not_white);
    schema_text_puts(&t->out, in_class ? "" : "]");
    return true;
  case 'p':
  case 'P':
    return property(t, c);
  default:
    return false;
  }
}

static bool translate_class(struct translator *t) {
  t->p++;
  bool negated = t->p < t->end && *t->p == '^';
  t->p += negated;
  if (t->p < t->end && *t->p == ']') {
    t->p++;
    schema_text_puts(&t->out, negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)");
    return true;
  }
  schema_text_puts(&t->out, negated ? "[^" : "[");
  bool set = false; /* the last member was a set, such as \d: it cannot begin a range */
  while (t->p < t->end && *t->p != ']') {
    char c = *t->p++;
    bool was_set = set;
    set = false;
    if (c == '[' || c == '^') {
      schema_text_printf(&t->out, "\\%c", c);
    } else if (c == '-' && (was_set || (t->end - t->p >= 2 && t->p[0] == '\\' &&
                                        memchr("dDsSwWpP", t->p[1], 8)))) {
      schema_text_puts(&t->out, "\\-");
    } else if (c != '\\') {
      schema_text_add(&t->out, &c, 1);
    } else if (t->p == t->end) {
      return refuse(t, "a backslash at the end");
    } else {
      c = *t->p++;
      if (c == 'b') {
        add_code_point(t, 8);
      } else if (class_escape(t, c, true)) {
        set = true;
      } else if (t->error || !character_escape(t, c)) {
        return false;
      }
    }
  }
  if (t->p == t->end)
    return refuse(t, "a class without its ]");
  t->p++;
  schema_text_puts(&t->out, "]");
  return true;
}

static bool name_char(char c) {
  return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/* At "name>". */
static bool group_name(struct translator *t) {
  const char *from = t->p;
  while (t->p < t->end && name_char(*t->p))
    t->p++;
  if (t->p == from || t->p == t->end || *t->p != '>' || (*from >= '0' && *from <= '9') ||
      t->p - from > 30 || memchr(from, '$', (size_t)(t->p - from)))
    return refuse(t, "not the name of a group");
  schema_text_add(&t->out, from, (size_t)(t->p - from));
  schema_text_puts(&t->out, ">");
  t->p++;
  return true;
}

static bool open_group(struct translator *t, bool *assertion) {
  static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!"};
  *assertion = false;
  if (++t->nesting > PATTERN_NESTING_MAX)
    return refuse(t, "groups are nested too deeply");
  if (t->end - t->p < 2 || t->p[1] != '?') {
    if (t->end - t->p >= 2 && t->p[1] == '*')
      return refuse(t, "nothing to repeat");
    t->p++;
    schema_text_puts(&t->out, "(");
    return true;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t n = strlen(kinds[i]);
    if ((size_t)(t->end - t->p) >= n && !memcmp(t->p, kinds[i], n)) {
      t->p += n;
      *assertion = i >= 1;
      schema_text_puts(&t->out, kinds[i]);
      return true;
    }
  }
  if (t->end - t->p >= 3 && t->p[2] == '<') {
    t->p += 3;
    schema_text_puts(&t->out, "(?<");
    return group_name(t);
  }
  return refuse(t, "not a group of ECMA-262");
}

static bool translate_escape(struct translator *t) {
  if (++t->p == t->end)
    return refuse(t, "a backslash at the end");
  char c = *t->p++;
  if (c == 'b' || c == 'B') {
    schema_text_printf(&t->out, "\\%c", c);
    return true;
  }
  if (c == 'k') {
    if (t->p == t->end || *t->p != '<')
      return refuse(t, "\\k needs the name of a group");
    t->p++;
    schema_text_puts(&t->out, "\\k<");
    return group_name(t);
  }
  if (c >= '1' && c <= '9') {
    unsigned n = (unsigned)(c - '0');
    while (t->p < t->end && *t->p >= '0' && *t->p <= '9' && n < 10000)
      n = n * 10 + (unsigned)(*t->p++ - '0');
    if (n > t->groups)
      return refuse(t, "there is no such group");
    schema_text_printf(&t->out, "\\g{%u}", n);
    return true;
  }
  return class_escape(t, c, false) || (!t->error && character_escape(t, c));
}

/* A quantifier, if there is one at p: its length, else 0. */
static size_t quantifier_length(const struct translator *t) {
  const char *p = t->p;
  if (p == t->end)
    return 0;
  if (*p == '*' || *p == '+' || *p == '?')
    return 1;
  if (*p++ != '{')
    return 0;
  const char *digits = p;
  while (p < t->end && *p >= '0' && *p <= '9')
    p++;
  if (p == digits)
    return 0;
  if (p < t->end && *p == ',')
    for (p++; p < t->end && *p >= '0' && *p <= '9';)
      p++;
  return p < t->end && *p == '}' ? (size_t)(p + 1 - t->p) : 0;
}

static bool translate_quantifier(struct translator *t, size_t length, bool repeatable) {
  if (!repeatable)
    return refuse(t, "nothing to repeat");
  schema_text_add(&t->out, t->p, length);
  t->p += length;
  if (t->p < t->end && *t->p == '?') {
    schema_text_puts(&t->out, "?");
    t->p++;
  }
  return !quantifier_length(t) || refuse(t, "nothing to repeat");
}

static void count_groups(struct translator *t) {
  bool in_class = false;
  for (const char *p = t->start; p < t->end; p++) {
    if (*p == '\\')
      p++;
    else if (*p == '[')
      in_class = true;
    else if (*p == ']')
      in_class = false;
    else if (*p == '(' && !in_class &&
             (t->end - p < 3 || p[1] != '?' ||
              (p[2] == '<' && p + 3 < t->end && p[3] != '=' && p[3] != '!')))
      t->groups++;
  }
}

static bool translate(struct translator *t) {
  bool assertion[PATTERN_NESTING_MAX + 2] = {false};
  bool repeatable = false;
  count_groups(t);
  while (t->p < t->end) {
    size_t quantifier = quantifier_length(t);
    char c = *t->p;
    if (quantifier) {
      if (!translate_quantifier(t, quantifier, repeatable))
        return false;
      repeatable = false;
    } else if (c == '\\') {
      char next = t->p + 1 < t->end ? t->p[1] : '\0';
      if (!translate_escape(t))
        return false;
      repeatable = next != 'b' && next != 'B';
    } else if (c == '[') {
      if (!translate_class(t))
        return false;
      repeatable = true;
    } else if (c == '(') {
      bool is_assertion;
      if (!open_group(t, &is_assertion))
        return false;
      assertion[t->nesting] = is_assertion;
      repeatable = false;
    } else if (c == ')') {
      if (!t->nesting)
        return refuse(t, "a ) without its (");
      repeatable = !assertion[t->nesting--];
      schema_text_puts(&t->out, ")");
      t->p++;
    } else if (c == '.') {
      schema_text_puts(&t->out, "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]");
      repeatable = true;
      t->p++;
    } else if (c == '{' || c == '}' || c == ']') {
      schema_text_printf(&t->out, "\\%c", c);
      repeatable = true;
      t->p++;
    } else if (c == '\0') {
      add_code_point(t, 0);
      repeatable = true;
      t->p++;
    } else {
      repeatable = c != '^' && c != '$' && c != '|';
      schema_text_add(&t->out, &c, 1);
      t->p++;
      while (t->p < t->end && ((unsigned char)*t->p & 0xc0) == 0x80) /* the rest of a character */
        schema_text_add(&t->out, t->p++, 1);
    }
  }
  return !t->nesting || refuse(t, "a ( without its )");
}

bool pattern_translate(const char *text, size_t length, struct text *out, const char **error,
                       size_t *offset) {
  struct translator t = {.p = text, .end = text + length, .start = text};
  bool ok = length <= PATTERN_LENGTH_MAX ? translate(&t) : refuse(&t, "the pattern is too long");
  *out = t.out;
  *error = t.error;
  *offset = (size_t)(t.p - text);
  return ok;
}
