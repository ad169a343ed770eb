/* A reader of llama.cpp grammars for tests: knows nothing of the converter.
 *
 * grammar_new reads a grammar as llama.cpp does and refuses what it refuses: repetitions of 2,000
 * rules and more, rules that are not there, left recursion. Then any number of grammar_match (does
 * the whole text derive?) and grammar_derive (a random text, seeded). Code points, not bytes, are
 * matched. Rules from: llama.cpp, grammars/README.md and src/llama-grammar.cpp. */
#ifndef TESTS_GBNF_GRAMMAR_H
#define TESTS_GBNF_GRAMMAR_H

#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum gel_kind { GEL_END, GEL_ALT, GEL_RULE, GEL_CHARS };
struct gel { /* an element of a rule */
  uint8_t kind;
  bool inverted;
  uint32_t value; /* rule, or first range */
  uint32_t count; /* ranges */
};
struct grule {
  char *name;
  struct gel *items;
  size_t count, capacity;
  bool defined;
  uint32_t height; /* of its smallest derivation */
  bool nullable;
};
struct grange {
  uint32_t low, high;
};
struct gstack { /* what is still to match: an element, and what is below */
  const struct gel *at;
  struct gstack *below;
  size_t seen; /* the step in which it was met last */
};
struct grammar {
  struct grule *rules;
  size_t rule_count, rule_capacity;
  struct grange *ranges;
  size_t range_count, range_capacity;
  uint32_t *names; /* hash table: rule + 1 */
  size_t name_mask;
  uint32_t root;
  const char *p;
  char error[160];
  size_t peak; /* most stacks at once, over all matches */
};

static inline void *grow_to(void *items, size_t *capacity, size_t need, size_t size) {
  if (need <= *capacity)
    return items;
  while (*capacity < need)
    *capacity = *capacity ? *capacity * 2 : 8;
  void *bigger = realloc(items, *capacity * size);
  if (!bigger)
    abort();
  return bigger;
}

static inline bool grammar_fail(struct grammar *g, const char *what) {
  if (!g->error[0])
    snprintf(g->error, sizeof g->error, "%s at \"%.60s\"", what, g->p);
  return false;
}

static inline uint32_t grammar_decode(const char **p) {
  uint32_t c = (unsigned char)**p;
  size_t n = utf8_decode(*p, strnlen(*p, UTF8_BYTES_MAX), &c);
  *p += n ? n : 1;
  return c;
}

static inline void grammar_space(struct grammar *g, bool newlines) {
  while (*g->p == ' ' || *g->p == '\t' || *g->p == '#' ||
         (newlines && (*g->p == '\n' || *g->p == '\r'))) {
    if (*g->p == '#')
      while (*g->p && *g->p != '\n' && *g->p != '\r')
        g->p++;
    else
      g->p++;
  }
}

static inline bool grammar_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

static inline uint32_t grammar_rule_add(struct grammar *g, const char *name, size_t length) {
  g->rules = grow_to(g->rules, &g->rule_capacity, g->rule_count + 1, sizeof *g->rules);
  char *copy = malloc(length + 1);
  if (!copy)
    abort();
  memcpy(copy, name, length);
  copy[length] = '\0';
  g->rules[g->rule_count] = (struct grule){.name = copy};
  return (uint32_t)g->rule_count++;
}

static inline uint32_t grammar_rule_named(struct grammar *g, const char *name, size_t length) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < length; i++)
    h = (h ^ (unsigned char)name[i]) * 1099511628211u;
  size_t at = (size_t)(h ^ h >> 29) & g->name_mask;
  while (g->names[at]) {
    const struct grule *rule = &g->rules[g->names[at] - 1];
    if (strlen(rule->name) == length && !memcmp(rule->name, name, length))
      return g->names[at] - 1;
    at = (at + 1) & g->name_mask;
  }
  uint32_t rule = grammar_rule_add(g, name, length);
  g->names[at] = rule + 1;
  return rule;
}

static inline void grammar_put(struct grammar *g, uint32_t rule, struct gel item) {
  struct grule *r = &g->rules[rule];
  r->items = grow_to(r->items, &r->capacity, r->count + 1, sizeof *r->items);
  r->items[r->count++] = item;
}

static inline bool grammar_hex(struct grammar *g, int digits, uint32_t *value) {
  *value = 0;
  for (int i = 0; i < digits; i++, g->p++) {
    char c = *g->p;
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c ? strchr(hex, c) : NULL;
    unsigned d = found ? (unsigned)(found - hex) % 16 : 16;
    if (d == 16)
      return grammar_fail(g, "hexadecimal digits are missing");
    *value = *value * 16 + d;
  }
  return true;
}

static inline bool grammar_char(struct grammar *g, uint32_t *c) {
  if (!*g->p)
    return grammar_fail(g, "unexpected end");
  if (*g->p != '\\') {
    *c = grammar_decode(&g->p);
    return true;
  }
  char e = g->p[1];
  g->p += 2;
  switch (e) {
  case 'x':
    return grammar_hex(g, 2, c);
  case 'u':
    return grammar_hex(g, 4, c);
  case 'U':
    return grammar_hex(g, 8, c);
  case 't':
    *c = '\t';
    return true;
  case 'r':
    *c = '\r';
    return true;
  case 'n':
    *c = '\n';
    return true;
  case '\\':
  case '"':
  case '[':
  case ']':
    *c = (uint32_t)e;
    return true;
  default:
    return grammar_fail(g, "unknown escape");
  }
}

static inline void grammar_range(struct grammar *g, uint32_t low, uint32_t high) {
  g->ranges = grow_to(g->ranges, &g->range_capacity, g->range_count + 1, sizeof *g->ranges);
  g->ranges[g->range_count++] = (struct grange){low, high};
}

static bool grammar_alternatives(struct grammar *g, uint32_t rule, bool nested);

static inline bool grammar_number(struct grammar *g, unsigned long *n) {
  if (*g->p < '0' || *g->p > '9')
    return grammar_fail(g, "a number is missing");
  char *end;
  *n = strtoul(g->p, &end, 10);
  g->p = end;
  return true;
}

/* Repeats what begins at `start`; `rules`: how many rules it stands for. */
static bool grammar_repeat(struct grammar *g, uint32_t rule, size_t start, size_t *rules,
                           unsigned long min, unsigned long max, bool endless) {
  size_t n = g->rules[rule].count - start;
  if (!n)
    return grammar_fail(g, "nothing to repeat");
  unsigned long total = min ? min : 1;
  if (!endless && max)
    total = max;
  if (*rules * total >= 2000)
    return grammar_fail(g, "too many repetitions");
  *rules *= total;
  struct gel *copy = malloc(n * sizeof *copy);
  if (!copy)
    abort();
  memcpy(copy, g->rules[rule].items + start, n * sizeof *copy);
  g->rules[rule].count = start;
  for (unsigned long i = 0; i < min; i++)
    for (size_t k = 0; k < n; k++)
      grammar_put(g, rule, copy[k]);
  uint32_t last = 0;
  unsigned long optional = max > min ? max - min : 0;
  if (endless)
    optional = 1;
  for (unsigned long i = 0; i < optional; i++) {
    uint32_t more = grammar_rule_add(g, "_", 1);
    for (size_t k = 0; k < n; k++)
      grammar_put(g, more, copy[k]);
    if (i || endless)
      grammar_put(g, more, (struct gel){GEL_RULE, false, endless ? more : last, 0});
    grammar_put(g, more, (struct gel){.kind = GEL_ALT});
    grammar_put(g, more, (struct gel){.kind = GEL_END});
    g->rules[more].defined = true;
    last = more;
  }
  if (optional)
    grammar_put(g, rule, (struct gel){GEL_RULE, false, last, 0});
  free(copy);
  return true;
}

static bool grammar_class(struct grammar *g, uint32_t rule, bool nested) {
  g->p++;
  struct gel item = {GEL_CHARS, *g->p == '^', (uint32_t)g->range_count, 0};
  g->p += item.inverted;
  while (*g->p != ']') {
    uint32_t low, high;
    if (!grammar_char(g, &low))
      return false;
    high = low;
    if (g->p[0] == '-' && g->p[1] != ']') {
      g->p++;
      if (!grammar_char(g, &high))
        return false;
      if (high < low)
        return grammar_fail(g, "a range upside down");
    }
    grammar_range(g, low, high);
    item.count++;
  }
  if (!item.count)
    return grammar_fail(g, "an empty class");
  g->p++;
  grammar_put(g, rule, item);
  grammar_space(g, nested);
  return true;
}

static bool grammar_sequence(struct grammar *g, uint32_t rule, bool nested) {
  size_t start = g->rules[rule].count, rules = 1;
  while (*g->p) {
    char c = *g->p;
    unsigned long min, max;
    if (c == '"') {
      start = g->rules[rule].count;
      rules = 1;
      for (g->p++; *g->p != '"';) {
        uint32_t value;
        if (!grammar_char(g, &value))
          return false;
        grammar_put(g, rule, (struct gel){GEL_CHARS, false, (uint32_t)g->range_count, 1});
        grammar_range(g, value, value);
      }
      g->p++;
      grammar_space(g, nested);
    } else if (c == '[') {
      start = g->rules[rule].count;
      rules = 1;
      if (!grammar_class(g, rule, nested))
        return false;
    } else if (grammar_word(c)) {
      const char *from = g->p;
      while (grammar_word(*g->p))
        g->p++;
      start = g->rules[rule].count;
      rules = 1;
      grammar_put(
          g, rule,
          (struct gel){GEL_RULE, false, grammar_rule_named(g, from, (size_t)(g->p - from)), 0});
      grammar_space(g, nested);
    } else if (c == '(') {
      size_t before = g->rule_count;
      g->p++;
      grammar_space(g, true);
      uint32_t group = grammar_rule_add(g, "_", 1);
      if (!grammar_alternatives(g, group, true))
        return false;
      if (*g->p != ')')
        return grammar_fail(g, "a ) is missing");
      g->p++;
      start = g->rules[rule].count;
      rules = g->rule_count - before;
      grammar_put(g, rule, (struct gel){GEL_RULE, false, group, 0});
      grammar_space(g, nested);
    } else if (c == '.') {
      start = g->rules[rule].count;
      rules = 1;
      grammar_put(g, rule, (struct gel){GEL_CHARS, false, (uint32_t)g->range_count, 1});
      grammar_range(g, 0, 0x10ffff);
      g->p++;
      grammar_space(g, nested);
    } else if (c == '*' || c == '+' || c == '?') {
      g->p++;
      grammar_space(g, nested);
      if (!grammar_repeat(g, rule, start, &rules, c == '+', 1, c != '?'))
        return false;
    } else if (c == '{') {
      bool endless = false;
      g->p++;
      grammar_space(g, nested);
      if (!grammar_number(g, &min))
        return false;
      max = min;
      grammar_space(g, nested);
      if (*g->p == ',') {
        g->p++;
        grammar_space(g, nested);
        endless = *g->p == '}';
        if (!endless && !grammar_number(g, &max))
          return false;
        grammar_space(g, nested);
      }
      if (*g->p != '}')
        return grammar_fail(g, "a } is missing");
      g->p++;
      grammar_space(g, nested);
      if (min > 2000 || (!endless && max > 2000) ||
          !grammar_repeat(g, rule, start, &rules, min, max, endless))
        return grammar_fail(g, "too many repetitions");
    } else {
      break;
    }
  }
  return true;
}

static bool grammar_alternatives(struct grammar *g, uint32_t rule, bool nested) {
  if (!grammar_sequence(g, rule, nested))
    return false;
  while (*g->p == '|') {
    g->p++;
    grammar_put(g, rule, (struct gel){.kind = GEL_ALT});
    grammar_space(g, true);
    if (!grammar_sequence(g, rule, nested))
      return false;
  }
  grammar_put(g, rule, (struct gel){.kind = GEL_END});
  g->rules[rule].defined = true;
  return true;
}

static bool grammar_read_rule(struct grammar *g) {
  const char *from = g->p;
  while (grammar_word(*g->p))
    g->p++;
  if (g->p == from)
    return grammar_fail(g, "a name is missing");
  uint32_t rule = grammar_rule_named(g, from, (size_t)(g->p - from));
  if (g->rules[rule].defined)
    return grammar_fail(g, "a rule is there twice");
  grammar_space(g, false);
  if (strncmp(g->p, "::=", 3) != 0)
    return grammar_fail(g, "::= is missing");
  g->p += 3;
  grammar_space(g, true);
  if (!grammar_alternatives(g, rule, false))
    return false;
  if (*g->p && *g->p != '\n' && *g->p != '\r')
    return grammar_fail(g, "a line goes on");
  grammar_space(g, true);
  return true;
}

/* Heights and what can be empty, to a fixed point. */
static void grammar_measure(struct grammar *g) {
  for (size_t i = 0; i < g->rule_count; i++)
    g->rules[i].height = UINT32_MAX;
  for (bool again = true; again;) {
    again = false;
    for (size_t i = g->rule_count; i-- > 0;) {
      struct grule *r = &g->rules[i];
      uint32_t best = r->height, height = 0;
      bool nullable = r->nullable, empty = true;
      for (size_t k = 0; k < r->count; k++) {
        const struct gel *e = &r->items[k];
        if (e->kind == GEL_ALT || e->kind == GEL_END) {
          if (height != UINT32_MAX && height + 1 < best)
            best = height + 1;
          nullable = nullable || empty;
          height = 0;
          empty = true;
        } else if (e->kind == GEL_RULE) {
          uint32_t h = g->rules[e->value].height;
          height = h > height ? h : height;
          empty = empty && g->rules[e->value].nullable;
        } else {
          empty = false;
        }
      }
      if (best != r->height || nullable != r->nullable) {
        r->height = best;
        r->nullable = nullable;
        again = true;
      }
    }
  }
}

static bool grammar_left_recursive(struct grammar *g, uint32_t rule, uint8_t *state, int depth) {
  if (state[rule] == 2)
    return false;
  if (state[rule] == 1 || depth > 100000)
    return true;
  state[rule] = 1;
  const struct grule *r = &g->rules[rule];
  bool leading = true;
  for (size_t k = 0; k < r->count; k++) {
    const struct gel *e = &r->items[k];
    if (e->kind == GEL_ALT || e->kind == GEL_END) {
      leading = true;
    } else if (e->kind == GEL_CHARS) {
      leading = false;
    } else if (leading) {
      if (grammar_left_recursive(g, e->value, state, depth + 1))
        return true;
      leading = g->rules[e->value].nullable;
    }
  }
  state[rule] = 2;
  return false;
}

static void grammar_free(struct grammar *g) {
  if (!g)
    return;
  for (size_t i = 0; i < g->rule_count; i++) {
    free(g->rules[i].name);
    free(g->rules[i].items);
  }
  free(g->rules);
  free(g->ranges);
  free(g->names);
  free(g);
}

/* NULL: *error says why. */
static struct grammar *grammar_new(const char *text, char error[160]) {
  struct grammar *g = calloc(1, sizeof *g);
  if (!g)
    abort();
  g->name_mask = 65535;
  g->names = calloc(g->name_mask + 1, sizeof *g->names);
  if (!g->names)
    abort();
  g->p = text;
  bool ok = true;
  grammar_space(g, true);
  while (ok && *g->p)
    ok = grammar_read_rule(g);
  for (size_t i = 0; ok && i < g->rule_count; i++)
    if (!g->rules[i].defined) {
      g->p = g->rules[i].name;
      ok = grammar_fail(g, "no such rule");
    }
  size_t before = g->rule_count;
  if (ok) {
    g->root = grammar_rule_named(g, "root", 4);
    if (g->rule_count != before)
      ok = grammar_fail(g, "there is no root");
  }
  if (ok) {
    uint8_t *state = calloc(g->rule_count, 1);
    grammar_measure(g);
    for (uint32_t i = 0; ok && i < g->rule_count; i++)
      if (grammar_left_recursive(g, i, state, 0)) {
        g->p = g->rules[i].name;
        ok = grammar_fail(g, "left recursion");
      }
    if (ok && g->rules[g->root].height == UINT32_MAX)
      ok = grammar_fail(g, "the root derives nothing");
    free(state);
  }
  if (ok)
    return g;
  snprintf(error, 160, "%s", g->error);
  grammar_free(g);
  return NULL;
}

/* --- matching --- */

struct gmatch {
  const struct grammar *g;
  struct gstack **nodes; /* hash table of stacks: equal ones are one */
  size_t node_count, mask;
  struct gstack **live, **next, **todo;
  size_t live_count, live_capacity, next_count, next_capacity, todo_count, todo_capacity;
  size_t step;   /* from 1: one for each character, and one before the first */
  bool end_seen; /* in this step, what has nothing more to match was met */
};

static size_t gstack_hash(const struct gel *at, const struct gstack *below) {
  uint64_t h = (uint64_t)(uintptr_t)at * 0x9e3779b97f4a7c15u ^
               ((uint64_t)(uintptr_t)below * 0xc4ceb9fe1a85ec53u);
  return (size_t)(h ^ h >> 29);
}

static struct gstack *gstack_get(struct gmatch *m, const struct gel *at, struct gstack *below) {
  if ((m->node_count + 1) * 2 > m->mask + 1) {
    size_t mask = (m->mask + 1) * 2 - 1;
    struct gstack **wider = calloc(mask + 1, sizeof *wider);
    if (!wider)
      abort();
    for (size_t i = 0; i <= m->mask; i++)
      if (m->nodes[i]) {
        size_t k = gstack_hash(m->nodes[i]->at, m->nodes[i]->below) & mask;
        while (wider[k])
          k = (k + 1) & mask;
        wider[k] = m->nodes[i];
      }
    free(m->nodes);
    m->nodes = wider;
    m->mask = mask;
  }
  size_t k = gstack_hash(at, below) & m->mask;
  while (m->nodes[k]) {
    if (m->nodes[k]->at == at && m->nodes[k]->below == below)
      return m->nodes[k];
    k = (k + 1) & m->mask;
  }
  struct gstack *node = malloc(sizeof *node);
  if (!node)
    abort();
  *node = (struct gstack){at, below, 0};
  m->nodes[k] = node;
  m->node_count++;
  return node;
}

/* Returns true if it was met before in this step. */
static bool gstack_again(struct gmatch *m, struct gstack *s) {
  bool again = s ? s->seen == m->step : m->end_seen;
  if (s)
    s->seen = m->step;
  else
    m->end_seen = true;
  return again;
}

/* The stack of what may come after `rest` (an element, or an alternative's end), on `below`. */
static struct gstack *gstack_rest(struct gmatch *m, const struct gel *rest, struct gstack *below) {
  return rest->kind == GEL_END || rest->kind == GEL_ALT ? below : gstack_get(m, rest, below);
}

static void grammar_advance(struct gmatch *m, struct gstack *start) {
  m->todo_count = 0;
  m->todo = grow_to(m->todo, &m->todo_capacity, 1, sizeof *m->todo);
  m->todo[m->todo_count++] = start;
  while (m->todo_count) {
    struct gstack *s = m->todo[--m->todo_count];
    if (gstack_again(m, s))
      continue;
    if (!s || s->at->kind == GEL_CHARS) {
      m->next = grow_to(m->next, &m->next_capacity, m->next_count + 1, sizeof *m->next);
      m->next[m->next_count++] = s;
      continue;
    }
    struct gstack *below = gstack_rest(m, s->at + 1, s->below);
    const struct gel *e = m->g->rules[s->at->value].items;
    for (;;) {
      m->todo = grow_to(m->todo, &m->todo_capacity, m->todo_count + 1, sizeof *m->todo);
      m->todo[m->todo_count++] = gstack_rest(m, e, below);
      while (e->kind != GEL_ALT && e->kind != GEL_END)
        e++;
      if (e++->kind == GEL_END)
        break;
    }
  }
}

static bool gel_has(const struct grammar *g, const struct gel *e, uint32_t c) {
  bool found = false;
  for (uint32_t i = 0; i < e->count && !found; i++)
    found = c >= g->ranges[e->value + i].low && c <= g->ranges[e->value + i].high;
  return found != e->inverted;
}

static bool grammar_match(struct grammar *g, const char *text, size_t length) {
  struct gmatch m = {.g = g, .mask = 1023, .step = 1};
  m.nodes = calloc(m.mask + 1, sizeof *m.nodes);
  if (!m.nodes)
    abort();
  const struct gel root[2] = {{GEL_RULE, false, g->root, 0}, {.kind = GEL_END}};
  grammar_advance(&m, gstack_get(&m, root, NULL));
  for (const char *p = text, *end = text + length; p < end && m.next_count;) {
    uint32_t c = grammar_decode(&p);
    struct gstack **swap = m.live;
    size_t capacity = m.live_capacity;
    m.live = m.next;
    m.live_count = m.next_count;
    m.live_capacity = m.next_capacity;
    m.next = swap;
    m.next_capacity = capacity;
    m.next_count = 0;
    m.step++;
    m.end_seen = false;
    if (m.live_count > g->peak)
      g->peak = m.live_count;
    for (size_t i = 0; i < m.live_count; i++)
      if (m.live[i] && gel_has(g, m.live[i]->at, c))
        grammar_advance(&m, gstack_rest(&m, m.live[i]->at + 1, m.live[i]->below));
  }
  bool ok = false;
  for (size_t i = 0; i < m.next_count; i++)
    ok |= m.next[i] == NULL;
  for (size_t i = 0; i <= m.mask; i++)
    free(m.nodes[i]);
  free(m.nodes);
  free(m.live);
  free(m.next);
  free(m.todo);
  return ok;
}

/* --- deriving --- */

static inline uint64_t grammar_random(uint64_t *seed) {
  uint64_t z = *seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static uint32_t gel_pick(const struct grammar *g, const struct gel *e, uint64_t *seed) {
  if (!e->inverted) {
    const struct grange *r = &g->ranges[e->value + grammar_random(seed) % e->count];
    uint32_t span = r->high - r->low + 1;
    if (span > 128 && grammar_random(seed) % 4) /* mostly the lower end */
      span = 64;
    uint32_t c = r->low + (uint32_t)(grammar_random(seed) % span);
    return c >= 0xd800 && c < 0xe000 ? r->low : c;
  }
  for (;;) {
    static const uint32_t some[] = {0xe9, 0x3042, 0x1f600, 0x7f, 0x2028};
    uint64_t r = grammar_random(seed);
    uint32_t c = r % 16 ? 32 + (uint32_t)(r >> 8) % 95 : some[(r >> 8) % 5];
    if (gel_has(g, e, c))
      return c;
  }
}

/* A random text, malloc'ed, NUL-terminated. After `budget` choices each takes the shortest way. */
static char *grammar_derive(const struct grammar *g, uint64_t *seed, size_t budget,
                            size_t *length) {
  const struct gel **stack = NULL;
  size_t depth = 0, capacity = 0, room = 0, n = 0, choices = 0;
  char *out = NULL;
  const struct gel root[2] = {{GEL_RULE, false, g->root, 0}, {.kind = GEL_END}};
  stack = grow_to(stack, &capacity, 1, sizeof *stack);
  stack[depth++] = root;
  while (depth) {
    const struct gel *e = stack[depth - 1];
    if (e->kind == GEL_END || e->kind == GEL_ALT) {
      depth--;
      continue;
    }
    stack[depth - 1]++;
    if (e->kind == GEL_CHARS) {
      out = grow_to(out, &room, n + 5, 1);
      n += utf8_put(out + n, gel_pick(g, e, seed));
      continue;
    }
    const struct grule *rule = &g->rules[e->value];
    size_t alternatives = 1, wanted, best = 0;
    uint32_t best_height = UINT32_MAX, height = 0;
    for (size_t k = 0, alternative = 0; k < rule->count; k++) {
      const struct gel *item = &rule->items[k];
      if (item->kind == GEL_RULE && g->rules[item->value].height > height)
        height = g->rules[item->value].height;
      if (item->kind != GEL_ALT && item->kind != GEL_END)
        continue;
      if (height < best_height) {
        best_height = height;
        best = alternative;
      }
      height = 0;
      alternative++;
      alternatives = alternative;
    }
    wanted = ++choices > budget ? best : grammar_random(seed) % alternatives;
    const struct gel *from = rule->items;
    for (size_t k = 0; k < wanted; from++)
      k += from->kind == GEL_ALT;
    stack = grow_to(stack, &capacity, depth + 1, sizeof *stack);
    stack[depth++] = from;
  }
  free(stack);
  out = grow_to(out, &room, n + 1, 1);
  out[n] = '\0';
  *length = n;
  return out;
}

#endif
