/* Writes an automaton as grammar rules: one for each state to which several ways lead, and runs of
 * one set of characters as repetitions. */
#include "gbnf/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { INLINE_MAX = 24 }; /* states inside of one rule's nested groups */

struct writer {
  struct gb *g;
  const struct gb_automaton *a;
  const char *name;
  uint32_t *leader;  /* the state that stands for it */
  uint8_t *good;     /* reaches the end */
  uint8_t *ends;     /* a string may end here */
  uint32_t *ways_in; /* from other states */
  uint32_t *rules;   /* GB_DEAD: none */
  uint32_t *queue;
  size_t queued;
  uint32_t *stamps; /* per state: the round in which it was met */
  uint32_t round;
};

static uint32_t target(const struct writer *w, uint32_t state, size_t atom) {
  uint32_t to = w->a->next[state * w->a->atoms + atom];
  return to == GB_DEAD || !w->good[to] ? GB_DEAD : w->leader[to];
}

static void find_good(struct writer *w) {
  for (bool again = true; again;) {
    again = false;
    for (size_t s = w->a->states; s-- > 0;) {
      bool good = w->good[s];
      for (size_t atom = 0; atom < w->a->atoms && !good; atom++) {
        uint32_t to = w->a->next[s * w->a->atoms + atom];
        good = to != GB_DEAD && w->good[to];
      }
      again = again || good != w->good[s];
      w->good[s] = good;
    }
  }
}

/* Gives one leader to the states that no string tells apart. */
static bool minimise(struct writer *w) {
  size_t n = w->a->states, atoms = w->a->atoms, classes = 0;
  if (n > GB_MINIMISE_MAX)
    return true;
  uint32_t *class_of = gb_get(w->g, n * sizeof *class_of);
  uint32_t *next_class = gb_get(w->g, n * sizeof *next_class);
  uint32_t *key = gb_get(w->g, (atoms + 1) * sizeof *key);
  if (!class_of || !next_class || !key)
    return false;
  for (size_t s = 0; s < n; s++)
    class_of[s] = w->ends[s];
  for (;;) {
    struct arena arena = {0};
    struct map known = {0};
    size_t found = 0;
    for (size_t s = 0; s < n; s++) {
      if (!w->good[s])
        continue;
      key[atoms] = class_of[s];
      for (size_t atom = 0; atom < atoms; atom++) {
        uint32_t to = target(w, (uint32_t)s, atom);
        key[atom] = to == GB_DEAD ? GB_DEAD : class_of[to];
      }
      next_class[s] = (uint32_t)found;
      struct str name = {(const char *)key, (atoms + 1) * sizeof *key};
      found += map_add(&known, &arena, name, &next_class[s]);
    }
    map_deinit(&known);
    arena_deinit(&arena);
    memcpy(class_of, next_class, n * sizeof *class_of);
    if (found == classes)
      break;
    classes = found;
  }
  for (size_t s = 0; s < n; s++)
    for (size_t t = 0; t <= s; t++)
      if (w->good[s] && w->good[t] && class_of[s] == class_of[t]) {
        w->leader[s] = (uint32_t)t;
        break;
      }
  return true;
}

/* Returns true once in a round for each state. */
static bool first_time(struct writer *w, uint32_t state) {
  bool first = w->stamps[state] != w->round;
  w->stamps[state] = w->round;
  return first;
}

static void count_ways(struct writer *w) {
  for (size_t s = 0; s < w->a->states; s++) {
    if (!w->good[s] || w->leader[s] != s)
      continue;
    w->round++;
    for (size_t atom = 0; atom < w->a->atoms; atom++) {
      uint32_t to = target(w, (uint32_t)s, atom);
      if (to != GB_DEAD && to != s && first_time(w, to))
        w->ways_in[to]++;
    }
  }
  w->ways_in[w->leader[0]]++;
}

/* Makes the characters that lead from one state to another. */
static const struct gb_node *way_node(struct writer *w, uint32_t from, uint32_t to) {
  size_t n = 0;
  for (size_t atom = 0; atom < w->a->atoms; atom++)
    n += target(w, from, atom) == to ? w->a->sets[atom].count : 0;
  struct gb_range *ranges = gb_get(w->g, (n + 1) * sizeof *ranges);
  if (!ranges)
    return NULL;
  n = 0;
  for (size_t atom = 0; atom < w->a->atoms; atom++) {
    const struct gb_chars *set = &w->a->sets[atom];
    if (target(w, from, atom) != to)
      continue;
    memcpy(ranges + n, set->ranges, set->count * sizeof *ranges);
    n += set->count;
  }
  const struct gb_chars *chars = gb_chars_new(w->g, ranges, n, false);
  return chars ? gb_chars_node(w->g, chars) : NULL;
}

static bool same_way(const struct writer *w, uint32_t a, uint32_t a_to, uint32_t b, uint32_t b_to) {
  for (size_t atom = 0; atom < w->a->atoms; atom++)
    if ((target(w, a, atom) == a_to) != (target(w, b, atom) == b_to))
      return false;
  return true;
}

/* Returns the only state that follows, GB_DEAD if there is none, another one, or itself. */
static uint32_t only_target(const struct writer *w, uint32_t state) {
  uint32_t only = GB_DEAD;
  for (size_t atom = 0; atom < w->a->atoms; atom++) {
    uint32_t to = target(w, state, atom);
    if (to == GB_DEAD || to == only)
      continue;
    if (only != GB_DEAD || to == state)
      return GB_DEAD;
    only = to;
  }
  return only;
}

static bool has_target(const struct writer *w, uint32_t state) {
  for (size_t atom = 0; atom < w->a->atoms; atom++)
    if (target(w, state, atom) != GB_DEAD)
      return true;
  return false;
}

static const struct gb_node *state_node(struct writer *w, uint32_t state, unsigned level);

/* Makes c{n} or c{0,n} of several states in a row, each with one way on, over the same
 * characters. */
static const struct gb_node *run_node(struct writer *w, uint32_t state, unsigned level) {
  uint32_t to = only_target(w, state), at = to;
  uint64_t length = 1;
  if (to == GB_DEAD)
    return NULL;
  for (;;) {
    uint32_t on = only_target(w, at);
    if (on == GB_DEAD || w->ends[at] != w->ends[state] || w->ways_in[at] != 1 ||
        w->rules[at] != GB_DEAD || !same_way(w, state, to, at, on))
      break;
    at = on;
    length++;
  }
  const struct gb_node *chars = way_node(w, state, to);
  if (!w->ends[state])
    return gb_seq(w->g, gb_repeat(w->g, w->name, chars, length, length),
                  state_node(w, at, level + 1));
  if (w->ends[at] && !has_target(w, at) && (w->ways_in[at] == 1 || length == 1))
    return gb_repeat(w->g, w->name, chars, 0, length);
  return NULL;
}

static const struct gb_node *body(struct writer *w, uint32_t state, unsigned level) {
  struct gb *g = w->g;
  const struct gb_node *run = run_node(w, state, level);
  if (run || g->status != GBNF_OK)
    return run;
  const struct gb_node *node = w->ends[state] ? &gb_empty : &gb_never, *loop = NULL;
  size_t n = 0;
  uint32_t *targets = gb_get(g, w->a->atoms * sizeof *targets);
  if (!targets)
    return NULL;
  w->round++;
  for (size_t atom = 0; atom < w->a->atoms; atom++) {
    uint32_t to = target(w, state, atom);
    if (to != GB_DEAD && first_time(w, to))
      targets[n++] = to;
  }
  const struct gb_node **kids = gb_get(g, (n + 1) * sizeof *kids);
  if (!kids || !gb_spend(g, (int64_t)(n * w->a->atoms / 64 + 1)))
    return NULL;
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    const struct gb_node *chars = way_node(w, state, targets[i]);
    if (!chars)
      return NULL;
    if (targets[i] == state)
      loop = gb_repeat(g, w->name, chars, 0, UINT64_MAX);
    else
      kids[count++] = gb_seq(g, chars, state_node(w, targets[i], level + 1));
  }
  kids[count++] = node;
  node = gb_list(g, GB_ALT, kids, count);
  return loop ? gb_seq(g, loop, node) : node;
}

static const struct gb_node *state_node(struct writer *w, uint32_t state, unsigned level) {
  if (w->rules[state] == GB_DEAD && w->ends[state] && !has_target(w, state))
    return &gb_empty;
  if (w->rules[state] == GB_DEAD && (w->ways_in[state] != 1 || level > INLINE_MAX)) {
    if (!gb_rule_new(w->g, w->name, NULL, &w->rules[state]))
      return NULL;
    w->queue[w->queued++] = state;
  }
  return w->rules[state] == GB_DEAD ? body(w, state, level) : gb_ref(w->g, w->rules[state]);
}

const struct gb_node *gb_automaton_node(struct gb *g, const struct gb_automaton *a, uint32_t mask,
                                        uint32_t wanted, const char *name) {
  assert((wanted & ~mask) == 0);
  size_t n = a->states;
  if (!n)
    return &gb_never;
  struct writer w = {.g = g,
                     .a = a,
                     .name = name,
                     .leader = gb_get(g, n * sizeof(uint32_t)),
                     .good = gb_get(g, n),
                     .ends = gb_get(g, n),
                     .ways_in = gb_get(g, n * sizeof(uint32_t)),
                     .rules = gb_get(g, n * sizeof(uint32_t)),
                     .queue = gb_get(g, n * sizeof(uint32_t)),
                     .stamps = gb_get(g, n * sizeof(uint32_t))};
  if (!w.stamps || !w.leader || !w.good || !w.ends || !w.ways_in || !w.rules || !w.queue)
    return NULL;
  for (size_t s = 0; s < n; s++) {
    w.leader[s] = (uint32_t)s;
    w.rules[s] = GB_DEAD;
    w.good[s] = w.ends[s] = (a->accepts[s] & mask) == wanted;
  }
  find_good(&w);
  if (!w.good[0])
    return &gb_never;
  if (!minimise(&w))
    return NULL;
  count_ways(&w);
  const struct gb_node *node = state_node(&w, w.leader[0], 0);
  for (size_t i = 0; node && i < w.queued; i++) {
    const struct gb_node *made = body(&w, w.queue[i], 0);
    if (!made)
      return NULL;
    g->rules[w.rules[w.queue[i]]].node = made;
  }
  return node;
}
