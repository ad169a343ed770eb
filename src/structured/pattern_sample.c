#include "structured/pattern_sample.h"

enum { RANGES_MAX = 64, GROUPS_MAX = 32, LEVELS_MAX = PATTERN_NESTING_MAX + 2, STEPS_MAX = 200000 };

struct range {
  uint32_t low, high;
};
struct set {
  struct range ranges[RANGES_MAX];
  size_t count;
  bool negated;
};
struct group {
  size_t from, length; /* in the sample */
};

struct sampler {
  const char *p, *end;
  uint32_t seed, state;
  size_t extra, most;
  struct text *out;
  struct group groups[GROUPS_MAX];
  unsigned group_count;
  int level;
  size_t steps; /* parts still to be read: nested repetitions of nothing take no room */
  bool silent;  /* a part is read over, nothing is put */
};

static bool sample_choice(struct sampler *s);

/* A number below `n`: 0 for seed 0, else the next of a sequence that the seed begins. */
static uint32_t pick(struct sampler *s, uint32_t n) {
  if (!s->seed || n < 2)
    return 0;
  s->state = s->state * 1664525u + 1013904223u;
  return (s->state >> 8) % n;
}

static bool put(struct sampler *s, uint32_t c) {
  char bytes[4];
  size_t n = 0;
  if (s->silent)
    return true;
  if (c < 0x80) {
    bytes[n++] = (char)c;
  } else {
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    bytes[n++] = (char)(leads[more] | c >> 6 * more);
    while (more--)
      bytes[n++] = (char)(0x80 | (c >> 6 * more & 0x3f));
  }
  schema_text_add(s->out, bytes, n);
  return s->out->length <= s->most;
}

/* --- sets of characters --- */

static void set_add(struct set *set, uint32_t low, uint32_t high) {
  if (set->count < RANGES_MAX)
    set->ranges[set->count++] = (struct range){low, high};
}

static bool set_has(const struct set *set, uint32_t c) {
  bool in = false;
  for (size_t i = 0; i < set->count; i++)
    in = in || (c >= set->ranges[i].low && c <= set->ranges[i].high);
  return in != set->negated;
}

static bool put_of(struct sampler *s, const struct set *set) {
  static const char usual[] = "aA0xZ9-_ .,:/bCdEf1234@#+!";
  enum { USUAL = sizeof usual - 1, TRIES = 200 };
  uint32_t from = pick(s, USUAL);
  if (set->count && !set->negated && pick(s, 2)) { /* anywhere in its ranges */
    const struct range *r = &set->ranges[pick(s, (uint32_t)set->count)];
    uint32_t c = r->low + pick(s, r->high - r->low + 1);
    if (c < 0xd800 || c > 0xdfff)
      return put(s, c);
  }
  for (uint32_t i = 0; i < USUAL; i++) {
    uint32_t c = (unsigned char)usual[(from + i) % USUAL];
    if (set_has(set, c))
      return put(s, c);
  }
  for (size_t i = 0; !set->negated && i < set->count; i++)
    if (set->ranges[i].low < 0xd800 || set->ranges[i].low > 0xdfff)
      return put(s, set->ranges[i].low);
  for (uint32_t c = 0x21; set->negated && c < 0x21 + TRIES; c++)
    if (set_has(set, c))
      return put(s, c);
  return s->silent;
}

static void add_spaces(struct set *set) {
  set_add(set, ' ', ' ');
  set_add(set, '\t', '\r');
}

static void add_word(struct set *set) {
  set_add(set, 'a', 'z');
  set_add(set, 'A', 'Z');
  set_add(set, '0', '9');
  set_add(set, '_', '_');
}

static void add_outside(struct set *set, const struct range *ranges, size_t n) {
  uint32_t low = 0;
  for (size_t i = 0; i < n; i++) {
    if (ranges[i].low > low)
      set_add(set, low, ranges[i].low - 1);
    low = ranges[i].high + 1;
  }
  set_add(set, low, 0x10ffff);
}

/* After \p: a guess by the first letter of the property's name; the check says if it was right. */
static bool add_property(struct sampler *s, bool negated, struct set *set) {
  const char *close =
      s->p < s->end && *s->p == '{' ? memchr(s->p, '}', (size_t)(s->end - s->p)) : NULL;
  if (!close)
    return false;
  const char *name = s->p + 1, *equals = memchr(name, '=', (size_t)(close - name));
  size_t n;
  name = equals ? equals + 1 : name;
  n = (size_t)(close - name);
  s->p = close + 1;
#define IS(word) (n == sizeof(word) - 1 && !memcmp(name, word, sizeof(word) - 1))
  if (negated) {
    set_add(set, IS("L") || IS("Letter") ? '0' : 'a', IS("L") || IS("Letter") ? '9' : 'z');
    set_add(set, ' ', '/');
  } else if (IS("Lu") || IS("Uppercase_Letter") || IS("Uppercase")) {
    set_add(set, 'A', 'Z');
  } else if (name[0] == 'N' || IS("digit") || IS("Decimal_Number")) {
    set_add(set, '0', '9');
  } else if (name[0] == 'P' && n <= 2) {
    set_add(set, '!', '#');
    set_add(set, '-', '-');
    set_add(set, '_', '_');
    set_add(set, '(', ')');
  } else if (name[0] == 'Z' || IS("Separator")) {
    set_add(set, ' ', ' ');
  } else if (IS("Hiragana")) {
    set_add(set, 0x3042, 0x3093);
  } else if (IS("Katakana")) {
    set_add(set, 0x30a2, 0x30f3);
  } else if (IS("Han")) {
    set_add(set, 0x4e00, 0x4eff);
  } else if (IS("Greek")) {
    set_add(set, 0x3b1, 0x3c9);
  } else if (IS("Cyrillic")) {
    set_add(set, 0x430, 0x44f);
  } else if (name[0] == 'S') {
    set_add(set, '$', '$');
    set_add(set, '+', '+');
  } else if (name[0] == 'E') {
    set_add(set, 0x1f600, 0x1f64f);
  } else {
    set_add(set, 'a', 'z');
  }
#undef IS
  return true;
}

/* \d \w \s \p and their opposites; 0 if `c` is none of them, -1 if it cannot be read. */
static int add_escape_set(struct sampler *s, char c, struct set *set) {
  static const struct range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const struct range white[] = {{'\t', '\r'}, {' ', ' '}, {0xa0, 0xa0}};
  switch (c) {
  case 'd':
    set_add(set, '0', '9');
    return 1;
  case 'D':
    add_outside(set, word, 1);
    return 1;
  case 'w':
    add_word(set);
    return 1;
  case 'W':
    add_outside(set, word, 4);
    return 1;
  case 's':
    add_spaces(set);
    return 1;
  case 'S':
    add_outside(set, white, 3);
    return 1;
  case 'p':
  case 'P':
    return add_property(s, c == 'P', set) ? 1 : -1;
  default:
    return 0;
  }
}

static uint32_t hex_digits(struct sampler *s, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count && s->p < s->end; i++, s->p++) {
    char c = *s->p;
    value = value * 16 + (uint32_t)(c >= 'a'   ? c - 'a' + 10
                                    : c >= 'A' ? c - 'A' + 10
                                               : c - '0') %
                             16;
  }
  return value;
}

/* The character that an escape stands for; the pattern is known to be sound. */
static uint32_t escaped(struct sampler *s, char c) {
  uint32_t value = (unsigned char)c;
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
    return s->p < s->end ? (unsigned char)*s->p++ % 32u : 0;
  case 'x':
    return hex_digits(s, 2);
  case 'u':
    if (s->p < s->end && *s->p == '{') {
      s->p++;
      for (value = 0; s->p < s->end && *s->p != '}' && value <= 0x10ffff;)
        value = value * 16 + hex_digits(s, 1);
      s->p += s->p < s->end;
      return value;
    }
    value = hex_digits(s, 4);
    if (value >= 0xd800 && value < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\') {
      s->p += 2;
      uint32_t low = hex_digits(s, 4);
      return 0x10000 + ((value - 0xd800) << 10) + ((low - 0xdc00) & 0x3ff);
    }
    return value;
  default:
    return value;
  }
}

static uint32_t next_character(struct sampler *s) {
  unsigned char c = (unsigned char)*s->p++;
  if (c < 0xc0)
    return c;
  int more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
  uint32_t value = c & (0x3fu >> more);
  while (more-- && s->p < s->end)
    value = value << 6 | ((unsigned char)*s->p++ & 0x3fu);
  return value;
}

/* One member of a class; `is_set`: it was \d or the like, and is in the set already. */
static bool class_member(struct sampler *s, struct set *set, uint32_t *c, bool *is_set) {
  *is_set = false;
  if (*s->p != '\\') {
    *c = next_character(s);
    return true;
  }
  if (++s->p == s->end)
    return false;
  char letter = *s->p++;
  int found = add_escape_set(s, letter, set);
  *is_set = found > 0;
  if (!found)
    *c = letter == 'b' ? 8 : escaped(s, letter);
  return found >= 0;
}

static bool sample_class(struct sampler *s) {
  struct set set = {.count = 0};
  s->p++;
  if (s->p < s->end && *s->p == '^') {
    set.negated = true;
    s->p++;
  }
  while (s->p < s->end && *s->p != ']') {
    uint32_t low, high;
    bool is_set;
    if (!class_member(s, &set, &low, &is_set))
      return false;
    if (is_set)
      continue;
    high = low;
    if (s->end - s->p >= 2 && s->p[0] == '-' && s->p[1] != ']') {
      s->p++;
      if (!class_member(s, &set, &high, &is_set))
        return false;
      if (is_set) {
        set_add(&set, '-', '-');
        high = low;
      }
    }
    set_add(&set, low, high);
  }
  if (s->p == s->end)
    return false;
  s->p++;
  return put_of(s, &set);
}

/* --- parts --- */

static bool put_group_again(struct sampler *s, unsigned number) {
  if (!number || number > s->group_count || number > GROUPS_MAX || s->silent)
    return true;
  struct group g = s->groups[number - 1];
  struct text copy = {0};
  if (g.from + g.length > s->out->length)
    return true;
  schema_text_add(&copy, s->out->bytes + g.from, g.length);
  schema_text_add(s->out, copy.bytes ? copy.bytes : "", copy.length);
  s->out->failed |= copy.failed;
  schema_text_deinit(&copy);
  return s->out->length <= s->most;
}

static bool sample_escape(struct sampler *s) {
  struct set set = {.count = 0};
  if (++s->p == s->end)
    return false;
  char c = *s->p++;
  if (c == 'b' || c == 'B')
    return true;
  if (c == 'k') {
    const char *close = memchr(s->p, '>', (size_t)(s->end - s->p));
    s->p = close ? close + 1 : s->end;
    return put_group_again(s, 1);
  }
  if (c >= '1' && c <= '9') {
    unsigned number = (unsigned)(c - '0');
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9' && number < 1000)
      number = number * 10 + (unsigned)(*s->p++ - '0');
    return put_group_again(s, number);
  }
  int found = add_escape_set(s, c, &set);
  return found < 0 ? false : found ? put_of(s, &set) : put(s, escaped(s, c));
}

static bool sample_group(struct sampler *s) {
  bool captures = true, looks = false, silent = s->silent;
  unsigned number = 0;
  s->p++;
  if (s->p < s->end && *s->p == '?') {
    char kind = s->end - s->p > 1 ? s->p[1] : ':';
    char after = s->end - s->p > 2 ? s->p[2] : ' ';
    captures = kind == '<' && after != '=' && after != '!';
    looks = kind == '=' || kind == '!' || (kind == '<' && !captures);
    if (captures) {
      const char *close = memchr(s->p, '>', (size_t)(s->end - s->p));
      s->p = close ? close + 1 : s->end;
    } else {
      s->p += kind == '<' ? 3 : 2;
    }
  }
  if (s->p > s->end || ++s->level > LEVELS_MAX)
    return false;
  if (captures)
    number = ++s->group_count;
  if (looks)
    s->silent = true; /* what it asks for is met by chance, or not */
  size_t from = s->out->length;
  bool ok = sample_choice(s);
  s->silent = silent;
  s->level--;
  if (number && number <= GROUPS_MAX)
    s->groups[number - 1] = (struct group){from, s->out->length - from};
  if (!ok || s->p == s->end || *s->p != ')')
    return false;
  s->p++;
  return true;
}

static bool sample_atom(struct sampler *s) {
  static const struct set any = {
      .ranges = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, .count = 3, .negated = true};
  switch (*s->p) {
  case '(':
    return sample_group(s);
  case '[':
    return sample_class(s);
  case '\\':
    return sample_escape(s);
  case '.':
    s->p++;
    return put_of(s, &any);
  case '^':
  case '$':
    s->p++;
    return true;
  default:
    return put(s, next_character(s));
  }
}

struct times {
  size_t least, most; /* most: SIZE_MAX without an end */
};

static bool read_number(struct sampler *s, size_t *value) {
  const char *from = s->p;
  for (*value = 0; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
    if (*value < 1000000)
      *value = *value * 10 + (size_t)(*s->p - '0');
  return s->p > from;
}

static struct times read_times(struct sampler *s) {
  struct times once = {1, 1}, times = once;
  const char *from = s->p;
  if (s->p == s->end)
    return once;
  char c = *s->p;
  if (c == '*' || c == '+' || c == '?') {
    s->p++;
    times = (struct times){c == '+', c == '?' ? 1 : SIZE_MAX};
  } else if (c == '{') {
    s->p++;
    bool ok = read_number(s, &times.least);
    times.most = times.least;
    if (ok && s->p < s->end && *s->p == ',') {
      s->p++;
      if (!read_number(s, &times.most))
        times.most = SIZE_MAX;
    }
    if (!ok || s->p == s->end || *s->p != '}') {
      s->p = from;
      return once;
    }
    s->p++;
  } else {
    return once;
  }
  s->p += s->p < s->end && *s->p == '?';
  return times;
}

/* An atom as often as its quantifier and the seed say. Read once over to find the quantifier. */
static bool sample_repeated(struct sampler *s) {
  const char *from = s->p;
  bool silent = s->silent;
  unsigned groups = s->group_count;
  uint32_t state = s->state;
  if (!s->steps--)
    return false;
  s->silent = true;
  if (!sample_atom(s))
    return false;
  s->silent = silent;
  const char *atom_end = s->p;
  struct times times = read_times(s);
  const char *after = s->p;
  if (silent)
    return true;
  size_t n = times.least;
  s->state = state;
  if (times.most > times.least)
    n += s->extra < times.most - times.least ? s->extra : times.most - times.least;
  if (times.most > n)
    n += pick(s, times.most - n < 4 ? (uint32_t)(times.most - n) + 1 : 4);
  for (size_t i = 0; i < n; i++) {
    size_t before = s->out->length;
    s->p = from;
    s->group_count = groups;
    if (!sample_atom(s) || s->p != atom_end || s->out->length > s->most || s->out->failed)
      return false;
    if (s->out->length == before)
      break; /* again would be nothing again */
  }
  s->p = after;
  return true;
}

static bool sample_sequence(struct sampler *s) {
  while (s->p < s->end && *s->p != '|' && *s->p != ')')
    if (!sample_repeated(s))
      return false;
  return true;
}

/* Alternatives: all are read, one is put. */
static bool sample_choice(struct sampler *s) {
  const char *from = s->p;
  bool silent = s->silent;
  unsigned groups = s->group_count;
  uint32_t count = 1, state = s->state;
  s->silent = true;
  while (sample_sequence(s) && s->p < s->end && *s->p == '|') {
    s->p++;
    count++;
  }
  const char *end = s->p;
  unsigned all_groups = s->group_count;
  s->silent = silent;
  s->state = state;
  if (silent)
    return true;
  uint32_t chosen = pick(s, count);
  s->p = from;
  s->group_count = groups;
  for (uint32_t i = 0; i <= chosen; i++) {
    s->silent = i < chosen;
    if (!sample_sequence(s))
      return false;
    s->p += i < chosen;
  }
  s->silent = false;
  s->p = end;
  s->group_count = all_groups;
  return true;
}

bool pattern_sample(const char *pattern, size_t length, uint32_t seed, size_t extra, size_t most,
                    struct text *out) {
  struct sampler s = {.p = pattern,
                      .end = pattern + length,
                      .seed = seed,
                      .state = seed * 2654435761u,
                      .extra = extra,
                      .most = most,
                      .steps = STEPS_MAX,
                      .out = out};
  bool ok = sample_choice(&s) && s.p == s.end;
  return ok && !out->failed;
}
