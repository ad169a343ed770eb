/* Makes one deterministic automaton of patterns: each part becomes an NFA and a DFA over groups of
 * characters that no part tells apart; then all parts and the length run side by side. */
#include "gbnf/internal.h"

#include <assert.h>
#include <stdlib.h>

enum move_kind { MOVE_SPLIT, MOVE_CHARS, MOVE_BEGIN, MOVE_END, MOVE_MATCH };
struct move {
  enum move_kind op;
  uint32_t chars, a, b;
};
struct nfa {
  struct move *steps;
  size_t count, capacity;
};
struct dfa {
  uint32_t *next; /* [state * atoms + atom] */
  uint8_t *flags;
  size_t count, capacity_next, capacity_flags;
};
enum { MATCHED = 1, MATCHES_AT_END = 2, CAN_HOLD = 4, CAN_FAIL = 8 };
struct builder {
  struct gb *g;
  const struct gb_language *l;
  size_t atoms;
  uint8_t *member; /* [set * atoms + atom] */
  struct dfa dfas[GB_PARTS_MAX];
  bool too_large;
  struct arena scratch; /* what is needed until the automaton stands */
  size_t scratch_bytes;
};

static bool large(struct builder *b) {
  b->too_large = true;
  return false;
}

static bool scratch_room(struct builder *b, size_t size) {
  b->scratch_bytes += size;
  return b->scratch_bytes <= GB_SCRATCH_BYTES_MAX || large(b);
}

/* Returns room, NULL if the automaton becomes too large. */
static void *scratch_get(struct builder *b, size_t size) {
  return scratch_room(b, size) ? arena_alloc(&b->scratch, size) : NULL;
}

static bool scratch_map(struct builder *b, struct map *map, struct str key, uint32_t value) {
  if (!scratch_room(b, key.n))
    return false;
  map_put(map, &b->scratch, key, value);
  return true;
}

/* --- groups of characters --- */

static int by_code(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint64_t atom_mix(uint64_t h) {
  h = (h ^ h >> 31) * 0x7fb5d329728ea185u;
  return (h ^ h >> 27) * 0x81dadef4bc2dd44du;
}

static bool in(const struct gb_chars *chars, uint32_t c) {
  size_t low = 0, high = chars->count;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (chars->ranges[mid].high < c)
      low = mid + 1;
    else
      high = mid;
  }
  return low < chars->count && chars->ranges[low].low <= c;
}

/* Finds where sets begin and end, sorted, each once; *count of them. Returns NULL if there are too
 * many. */
static uint32_t *find_borders(struct builder *b, size_t *count) {
  enum { BORDERS_MAX = 20000 };
  static const uint32_t fixed[] = {0, 0xd800, 0xe000, UTF8_LAST + 1};
  const struct gb_language *l = b->l;
  size_t n = sizeof fixed / sizeof *fixed;
  for (size_t i = 0; i < l->chars_count; i++)
    n += 2 * l->chars[i]->count;
  uint32_t *borders = n <= BORDERS_MAX ? scratch_get(b, n * sizeof *borders) : NULL;
  *count = 0;
  if (!borders) {
    large(b);
    return NULL;
  }
  memcpy(borders, fixed, sizeof fixed);
  n = sizeof fixed / sizeof *fixed;
  for (size_t i = 0; i < l->chars_count; i++)
    for (size_t k = 0; k < l->chars[i]->count; k++) {
      borders[n++] = l->chars[i]->ranges[k].low;
      borders[n++] = l->chars[i]->ranges[k].high + 1;
    }
  qsort(borders, n, sizeof *borders, by_code);
  for (size_t i = 0; i < n; i++)
    if (!*count || borders[*count - 1] != borders[i])
      borders[(*count)++] = borders[i];
  return borders;
}

/* Numbers the atoms: intervals between borders that are in the same sets are one. */
static bool number_atoms(struct builder *b, const uint32_t *borders, size_t count,
                         uint32_t *atom_of) {
  const struct gb_language *l = b->l;
  struct map seen = {0};
  bool ok = true;
  for (size_t i = 0; ok && i + 1 < count; i++) {
    uint64_t key[2] = {1, 2};
    atom_of[i] = GB_DEAD;
    if (utf8_is_surrogate(borders[i]))
      continue;
    for (size_t k = 0; k < l->chars_count; k++)
      if (in(l->chars[k], borders[i])) {
        key[0] = atom_mix(key[0] + k);
        key[1] = atom_mix(key[1] ^ (k << 20 | 0x5bd1));
      }
    if (!map_get(&seen, MAP_KEY(key), &atom_of[i])) {
      atom_of[i] = (uint32_t)b->atoms++;
      ok = scratch_map(b, &seen, MAP_KEY(key), atom_of[i]);
    }
  }
  map_deinit(&seen);
  return ok && (b->atoms <= GB_ATOMS_MAX || large(b));
}

static bool make_atoms(struct builder *b, struct gb_automaton *out) {
  struct gb *g = b->g;
  const struct gb_language *l = b->l;
  size_t count;
  uint32_t *borders = find_borders(b, &count);
  uint32_t *atom_of = borders ? scratch_get(b, count * sizeof *atom_of) : NULL;
  if (!atom_of || !gb_spend(g, (int64_t)(count * l->chars_count / 50)) ||
      !number_atoms(b, borders, count, atom_of))
    return false;
  out->atoms = b->atoms;
  out->sets = gb_get(g, b->atoms * sizeof *out->sets);
  b->member = scratch_get(b, (l->chars_count + 1) * b->atoms);
  struct gb_range *ranges = gb_get(g, count * sizeof *ranges);
  if (!out->sets || !b->member || !ranges)
    return false;
  for (size_t atom = 0, used = 0; atom < b->atoms; atom++) {
    out->sets[atom].ranges = ranges + used;
    for (size_t i = 0; i + 1 < count; i++) {
      if (atom_of[i] != atom)
        continue;
      ranges[used++] = (struct gb_range){borders[i], borders[i + 1] - 1};
      out->sets[atom].count++;
    }
    for (size_t k = 0; k < l->chars_count; k++)
      b->member[k * b->atoms + atom] = in(l->chars[k], out->sets[atom].ranges[0].low);
  }
  return true;
}

/* --- NFA --- */

static bool step_add(struct builder *b, struct nfa *n, struct move step, uint32_t *at) {
  if (n->count >= GB_NFA_MAX)
    return large(b);
  n->steps = xgrow(n->steps, &n->capacity, n->count + 1, sizeof *n->steps);
  *at = (uint32_t)n->count;
  n->steps[n->count++] = step;
  return gb_spend(b->g, 1);
}

/* Makes the steps that match `node` and go on at `then`, from the end. Sets *from to the first. */
static bool steps_of(struct builder *b, struct nfa *n, const struct gb_regex *node, uint32_t then,
                     uint32_t *from) {
  switch (node->kind) {
  case RX_EMPTY:
    *from = then;
    return true;
  case RX_CHARS:
    return step_add(b, n, (struct move){MOVE_CHARS, node->chars, then, 0}, from);
  case RX_BEGIN:
  case RX_END:
    return step_add(b, n, (struct move){node->kind == RX_BEGIN ? MOVE_BEGIN : MOVE_END, 0, then, 0},
                    from);
  case RX_SEQ: {
    uint32_t middle;
    return steps_of(b, n, node->right, then, &middle) && steps_of(b, n, node->left, middle, from);
  }
  case RX_ALT: {
    uint32_t left, right;
    return steps_of(b, n, node->left, then, &left) && steps_of(b, n, node->right, then, &right) &&
           step_add(b, n, (struct move){MOVE_SPLIT, 0, left, right}, from);
  }
  case RX_REPEAT: {
    uint32_t at = then, copy;
    if (node->max == UINT32_MAX) {
      uint32_t loop;
      if (!step_add(b, n, (struct move){MOVE_SPLIT, 0, then, then}, &loop) ||
          !steps_of(b, n, node->left, loop, &copy))
        return false;
      n->steps[loop].a = copy;
      at = loop;
    } else {
      for (uint32_t i = node->min; i < node->max; i++)
        if (!steps_of(b, n, node->left, at, &copy) ||
            !step_add(b, n, (struct move){MOVE_SPLIT, 0, copy, then}, &at))
          return false;
    }
    for (uint32_t i = 0; i < node->min; i++) {
      if (!steps_of(b, n, node->left, at, &copy))
        return false;
      if (copy == at) /* a repetition of nothing */
        break;
      at = copy;
    }
    *from = at;
    return true;
  }
  }
  return false;
}

/* --- DFA of one part --- */

struct subset {
  uint32_t *items; /* steps of MOVE_CHARS, MOVE_END, MOVE_MATCH */
  size_t count;
  uint32_t *key;  /* room for one in `known` */
  uint32_t *mark; /* per step: the round in which it was seen */
  uint32_t round;
  uint32_t *stack;
};

static void close_over(const struct nfa *n, struct subset *s, uint32_t step, bool begin, bool end,
                       bool *matched) {
  size_t depth = 0;
  s->stack[depth++] = step;
  while (depth) {
    uint32_t at = s->stack[--depth];
    if (s->mark[at] == s->round)
      continue;
    s->mark[at] = s->round;
    switch (n->steps[at].op) {
    case MOVE_SPLIT:
      s->stack[depth++] = n->steps[at].a;
      s->stack[depth++] = n->steps[at].b;
      break;
    case MOVE_BEGIN:
      if (begin)
        s->stack[depth++] = n->steps[at].a;
      break;
    case MOVE_END:
      s->items[s->count++] = at;
      if (end)
        s->stack[depth++] = n->steps[at].a;
      break;
    case MOVE_MATCH:
      *matched = true;
      break;
    case MOVE_CHARS:
      s->items[s->count++] = at;
      break;
    }
  }
}

static void dfa_reserve(struct dfa *d, size_t atoms) {
  d->next = xgrow(d->next, &d->capacity_next, (d->count + 1) * atoms, sizeof *d->next);
  d->flags = xgrow(d->flags, &d->capacity_flags, d->count + 1, sizeof *d->flags);
}

struct subsets {
  uint32_t **items; /* count, then steps */
  size_t count, capacity;
  struct map known;
};

static bool subset_state(struct builder *b, const struct nfa *n, struct subset *s,
                         struct subsets *all, struct dfa *d, bool matched, bool begin,
                         uint32_t *state) {
  if (matched)
    s->count = 0; /* found: whatever follows */
  qsort(s->items, s->count, sizeof *s->items, by_code);
  uint32_t *key = s->key;
  key[0] = (uint32_t)s->count;
  if (s->count)
    memcpy(key + 1, s->items, s->count * sizeof *key);
  key[s->count + 1] = matched;
  size_t size = (s->count + 2) * sizeof *key;
  struct str name = {(const char *)key, size};
  if (map_get(&all->known, name, state))
    return true;
  if (d->count >= 2 * GB_STATES_MAX)
    return large(b);
  *state = (uint32_t)d->count;
  if (!scratch_map(b, &all->known, name, *state))
    return false;
  all->items = xgrow(all->items, &all->capacity, all->count + 1, sizeof *all->items);
  uint32_t *kept = scratch_get(b, size);
  if (!kept)
    return false;
  memcpy(kept, key, size);
  all->items[all->count++] = kept;
  dfa_reserve(d, b->atoms);
  bool at_end = matched;
  if (!matched) {
    s->round++;
    s->count = 0;
    for (uint32_t i = 0; i < key[0]; i++)
      if (n->steps[key[1 + i]].op == MOVE_END)
        close_over(n, s, n->steps[key[1 + i]].a, begin, true, &at_end);
  }
  d->flags[d->count++] = (uint8_t)((matched ? MATCHED : 0) | (at_end ? MATCHES_AT_END : 0));
  return gb_spend(b->g, (int64_t)(s->count / 16 + b->atoms / 8 + 1));
}

static bool fill_dfa(struct builder *b, const struct nfa *n, uint32_t first, struct dfa *d,
                     struct subset *s, struct subsets *all) {
  bool matched = false;
  uint32_t state;
  s->round++;
  close_over(n, s, first, true, false, &matched);
  if (!subset_state(b, n, s, all, d, matched, true, &state))
    return false;
  for (size_t at = 0; at < d->count; at++) {
    for (size_t atom = 0; atom < b->atoms; atom++) {
      const uint32_t *key = all->items[at];
      matched = d->flags[at] & MATCHED;
      s->count = 0;
      s->round++;
      for (uint32_t i = 0; i < key[0] && !matched; i++) {
        const struct move *step = &n->steps[key[1 + i]];
        if (step->op == MOVE_CHARS && b->member[step->chars * b->atoms + atom])
          close_over(n, s, step->a, false, false, &matched);
      }
      if (!matched) /* a match may begin anywhere */
        close_over(n, s, first, false, false, &matched);
      if (!gb_spend(b->g, key[0] / 64) || !subset_state(b, n, s, all, d, matched, false, &state))
        return false;
      d->next[at * b->atoms + atom] = state;
    }
  }
  return true;
}

/* Marks which states can still hold, and which can still fail. */
static void mark_outcomes(const struct builder *b, struct dfa *d, bool negated) {
  for (size_t i = 0; i < d->count; i++) {
    bool holds = ((d->flags[i] & MATCHES_AT_END) != 0) != negated;
    d->flags[i] |= holds ? CAN_HOLD : CAN_FAIL;
  }
  for (bool again = true; again;) {
    again = false;
    for (size_t i = d->count; i-- > 0;)
      for (size_t atom = 0; atom < b->atoms; atom++) {
        uint8_t more = d->flags[d->next[i * b->atoms + atom]] & (CAN_HOLD | CAN_FAIL);
        if (more & ~d->flags[i]) {
          d->flags[i] |= more;
          again = true;
        }
      }
  }
}

static bool build_dfa(struct builder *b, size_t part) {
  struct nfa n = {0};
  struct subset s = {0};
  struct subsets all = {0};
  uint32_t match, first;
  bool ok = step_add(b, &n, (struct move){MOVE_MATCH, 0, 0, 0}, &match) &&
            steps_of(b, &n, b->l->parts[part].regex, match, &first);
  if (ok) {
    s.items = scratch_get(b, (n.count + 1) * sizeof *s.items);
    s.key = scratch_get(b, (n.count + 2) * sizeof *s.key);
    s.mark = scratch_get(b, n.count * sizeof *s.mark);
    s.stack = scratch_get(b, (2 * n.count + 2) * sizeof *s.stack);
    ok = s.items && s.key && s.mark && s.stack && fill_dfa(b, &n, first, &b->dfas[part], &s, &all);
  }
  if (ok)
    mark_outcomes(b, &b->dfas[part], b->l->parts[part].negated);
  free(n.steps);
  free(all.items);
  map_deinit(&all.known);
  return ok;
}

/* --- all parts at once --- */

struct product {
  struct builder *b;
  struct gb_automaton *out;
  uint32_t (*tuples)[GB_PARTS_MAX + 1];
  size_t capacity, next_capacity, accepts_capacity;
  struct map known;
  uint64_t min, max;
  uint32_t count_to; /* lengths beyond are all the same */
};

static bool product_state(struct product *p, const uint32_t *tuple, uint32_t *state) {
  struct builder *b = p->b;
  size_t parts = b->l->part_count, size = (parts + 1) * sizeof *tuple;
  struct str key = {(const char *)tuple, size};
  for (size_t i = 0; i < parts; i++)
    if (b->l->parts[i].must && !(b->dfas[i].flags[tuple[i]] & CAN_HOLD)) {
      *state = GB_DEAD;
      return true;
    }
  if (map_get(&p->known, key, state))
    return true;
  if (p->out->states >= GB_STATES_MAX)
    return large(b);
  *state = (uint32_t)p->out->states;
  if (!scratch_map(b, &p->known, key, *state))
    return false;
  struct gb_automaton *out = p->out;
  size_t n = out->states + 1;
  p->tuples = xgrow(p->tuples, &p->capacity, n, sizeof *p->tuples);
  out->next = xgrow(out->next, &p->next_capacity, n * b->atoms, sizeof *out->next);
  out->accepts = xgrow(out->accepts, &p->accepts_capacity, n, sizeof *out->accepts);
  memcpy(p->tuples[p->out->states], tuple, size);
  uint32_t accepts = tuple[parts] >= p->min ? GB_LENGTH_BIT : 0;
  for (size_t i = 0; i < parts; i++)
    if (((b->dfas[i].flags[tuple[i]] & MATCHES_AT_END) != 0) != b->l->parts[i].negated)
      accepts |= UINT32_C(1) << i;
  p->out->accepts[p->out->states++] = accepts;
  return gb_spend(b->g, (int64_t)(b->atoms / 8 + 1));
}

static bool fill_product(struct product *p) {
  struct builder *b = p->b;
  uint32_t tuple[GB_PARTS_MAX + 1] = {0}, state;
  size_t parts = b->l->part_count;
  if (!product_state(p, tuple, &state))
    return false;
  for (size_t at = 0; at < p->out->states; at++)
    for (size_t atom = 0; atom < b->atoms; atom++) {
      for (size_t i = 0; i < parts; i++)
        tuple[i] = b->dfas[i].next[p->tuples[at][i] * b->atoms + atom];
      uint32_t length = p->tuples[at][parts];
      state = GB_DEAD;
      tuple[parts] = length < p->count_to ? length + 1 : length;
      if (length < p->max && !product_state(p, tuple, &state))
        return false;
      p->out->next[at * b->atoms + atom] = state;
    }
  return true;
}

/* Copies the arrays to the arena, so that nobody has to release them. */
static bool keep_product(struct product *p) {
  struct gb *g = p->b->g;
  size_t next = p->out->states * p->out->atoms * sizeof *p->out->next;
  size_t accepts = p->out->states * sizeof *p->out->accepts;
  uint32_t *copies[2] = {gb_get(g, next + 1), gb_get(g, accepts + 1)};
  if (!copies[0] || !copies[1])
    return false;
  if (p->out->states) {
    memcpy(copies[0], p->out->next, next);
    memcpy(copies[1], p->out->accepts, accepts);
  }
  free(p->out->next);
  free(p->out->accepts);
  p->out->next = copies[0];
  p->out->accepts = copies[1];
  return true;
}

enum gb_built gb_automaton_build(struct gb *g, const struct gb_language *l, uint64_t min_length,
                                 uint64_t max_length, struct gb_automaton *out) {
  assert(l->part_count <= GB_PARTS_MAX);
  struct builder b = {.g = g, .l = l};
  *out = (struct gb_automaton){0};
  bool bounded = max_length != UINT64_MAX;
  if (min_length > GB_STATES_MAX || (bounded && max_length > GB_STATES_MAX))
    return GB_BUILT_TOO_LARGE;
  struct product p = {.b = &b,
                      .out = out,
                      .min = min_length,
                      .max = max_length,
                      .count_to = (uint32_t)(bounded ? max_length : min_length)};
  bool ok = make_atoms(&b, out);
  for (size_t i = 0; ok && i < l->part_count; i++)
    ok = build_dfa(&b, i);
  ok = ok && fill_product(&p) && keep_product(&p);
  for (size_t i = 0; i < l->part_count; i++) {
    free(b.dfas[i].next);
    free(b.dfas[i].flags);
  }
  free(p.tuples);
  map_deinit(&p.known);
  arena_deinit(&b.scratch);
  if (!ok) {
    free(out->next);
    free(out->accepts);
    *out = (struct gb_automaton){0};
  }
  if (g->status != GBNF_OK)
    return GB_BUILT_FAILED;
  return ok ? GB_BUILT : GB_BUILT_TOO_LARGE;
}
