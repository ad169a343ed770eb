/* Makes texts that match a pattern, by walking its tree. */
#include "render/pattern_sample.h"

#include "base/utf8.h"
#include "schema/ecma.h"

#include <assert.h>
#include <string.h>

enum { RANGES_MAX = 64, GROUPS_MAX = 32, STEPS_MAX = 200000 };

struct sample_set {
  struct ecma_range ranges[RANGES_MAX];
  size_t count;
  bool negated;
};

struct sampler {
  uint32_t seed, state;
  size_t extra, most;
  struct buf *out;
  struct {
    size_t from, length; /* in the sample */
  } groups[GROUPS_MAX];
  size_t steps; /* parts still to be taken: nested repetitions of nothing take no room */
};

/* Returns a number below `n`: 0 for seed 0, else the next of a sequence that the seed begins. */
static uint32_t sample_pick(struct sampler *s, uint32_t n) {
  if (!s->seed || n < 2)
    return 0;
  s->state = s->state * 1664525u + 1013904223u;
  return (s->state >> 8) % n;
}

static bool sample_put(struct sampler *s, uint32_t c) {
  char bytes[UTF8_BYTES_MAX];
  buf_append(s->out, bytes, utf8_put(bytes, c));
  return s->out->n <= s->most;
}

/* --- sets of characters --- */

static void set_add(struct sample_set *set, uint32_t low, uint32_t high) {
  if (set->count < RANGES_MAX)
    set->ranges[set->count++] = (struct ecma_range){low, high};
}

static bool set_has(const struct sample_set *set, uint32_t c) {
  bool in = false;
  for (size_t i = 0; i < set->count; i++)
    in = in || (c >= set->ranges[i].low && c <= set->ranges[i].high);
  return in != set->negated;
}

/* Puts one character of the set, if possible a usual one. */
static bool put_one_of(struct sampler *s, const struct sample_set *set) {
  static const char usual[] = "aA0xZ9-_ .,:/bCdEf1234@#+!";
  enum { USUAL = sizeof usual - 1, TRIES = 200 };
  uint32_t from = sample_pick(s, USUAL);
  if (set->count && !set->negated && sample_pick(s, 2)) { /* anywhere in its ranges */
    const struct ecma_range *r = &set->ranges[sample_pick(s, (uint32_t)set->count)];
    uint32_t c = r->low + sample_pick(s, r->high - r->low + 1);
    if (!utf8_is_surrogate(c))
      return sample_put(s, c);
  }
  for (uint32_t i = 0; i < USUAL; i++) {
    uint32_t c = (unsigned char)usual[(from + i) % USUAL];
    if (set_has(set, c))
      return sample_put(s, c);
  }
  for (size_t i = 0; !set->negated && i < set->count; i++)
    if (!utf8_is_surrogate(set->ranges[i].low))
      return sample_put(s, set->ranges[i].low);
  for (uint32_t c = 0x21; set->negated && c < 0x21 + TRIES; c++)
    if (set_has(set, c))
      return sample_put(s, c);
  return false;
}

/* Guesses by the property's name; the check says if that was right. */
static void add_property(const struct ecma_member *member, struct sample_set *set) {
  static const struct {
    const char *name; /* NULL: any that begins with `initial` */
    char initial;
    struct ecma_range ranges[4];
  } guesses[] = {{"Lu", 0, {{'A', 'Z'}}},
                 {"Uppercase_Letter", 0, {{'A', 'Z'}}},
                 {"Uppercase", 0, {{'A', 'Z'}}},
                 {"digit", 0, {{'0', '9'}}},
                 {"Decimal_Number", 0, {{'0', '9'}}},
                 {"Hiragana", 0, {{0x3042, 0x3093}}},
                 {"Katakana", 0, {{0x30a2, 0x30f3}}},
                 {"Han", 0, {{0x4e00, 0x4eff}}},
                 {"Greek", 0, {{0x3b1, 0x3c9}}},
                 {"Cyrillic", 0, {{0x430, 0x44f}}},
                 {NULL, 'N', {{'0', '9'}}},
                 {NULL, 'P', {{'!', '#'}, {'-', '-'}, {'_', '_'}, {'(', ')'}}},
                 {NULL, 'Z', {{' ', ' '}}},
                 {NULL, 'S', {{'$', '$'}, {'+', '+'}}},
                 {NULL, 'E', {{0x1f600, 0x1f64f}}},
                 {NULL, '\0', {{'a', 'z'}}}};
  if (member->set == 'P') {
    bool letters = str_eq_c(member->name, "L") || str_eq_c(member->name, "Letter");
    set_add(set, letters ? '0' : 'a', letters ? '9' : 'z');
    set_add(set, ' ', '/');
    return;
  }
  size_t i = 0;
  for (; guesses[i].name || guesses[i].initial; i++)
    if (guesses[i].initial == member->name.p[0] ||
        (guesses[i].name && str_eq_c(member->name, guesses[i].name)))
      break;
  for (size_t k = 0; k < 4 && guesses[i].ranges[k].high; k++)
    set_add(set, guesses[i].ranges[k].low, guesses[i].ranges[k].high);
}

static bool sample_class(struct sampler *s, const struct ecma_node *node) {
  struct sample_set set = {.negated = node->negated};
  struct ecma_range ranges[ECMA_MEMBER_RANGES];
  const struct ecma_member *m = node->members;
  if (m && !m->next && !m->set && !node->negated && m->range.low == m->range.high)
    return sample_put(s, m->range.low);
  for (; m; m = m->next) {
    size_t n = ecma_member_ranges(m, ranges);
    for (size_t i = 0; i < n; i++)
      set_add(&set, ranges[i].low, ranges[i].high);
    if (n == 0)
      add_property(m, &set);
  }
  return put_one_of(s, &set);
}

/* --- parts --- */

static bool sample_node(struct sampler *s, const struct ecma_node *node);

static bool put_again(struct sampler *s, uint32_t number) {
  if (number > GROUPS_MAX)
    return true;
  size_t from = s->groups[number - 1].from, length = s->groups[number - 1].length;
  assert(from + length <= s->out->n);
  buf_reserve(s->out, length); /* what is copied must not move */
  buf_append(s->out, s->out->p + from, length);
  return s->out->n <= s->most;
}

static bool sample_group(struct sampler *s, const struct ecma_node *node) {
  size_t from = s->out->n;
  if (!sample_node(s, node->kids))
    return false;
  if (node->number <= GROUPS_MAX) {
    s->groups[node->number - 1].from = from;
    s->groups[node->number - 1].length = s->out->n - from;
  }
  return true;
}

/* Repeats a part as often as its bounds and the seed say. */
static bool sample_repeat(struct sampler *s, const struct ecma_node *node) {
  size_t n = node->min, more = SIZE_MAX;
  if (node->max != ECMA_NO_END)
    more = node->max - node->min;
  size_t extra = s->extra < more ? s->extra : more;
  n += extra;
  more -= extra;
  if (more)
    n += sample_pick(s, more < 4 ? (uint32_t)more + 1 : 4);
  for (size_t i = 0; i < n; i++) {
    size_t before = s->out->n;
    if (!sample_node(s, node->kids))
      return false;
    if (s->out->n == before)
      break; /* again would be nothing again */
  }
  return true;
}

static bool sample_choice(struct sampler *s, const struct ecma_node *node) {
  const struct ecma_node *kid = node->kids;
  uint32_t count = 0;
  for (; kid; kid = kid->next)
    count++;
  kid = node->kids;
  for (uint32_t chosen = sample_pick(s, count); chosen > 0; chosen--)
    kid = kid->next;
  return sample_node(s, kid);
}

static bool sample_node(struct sampler *s, const struct ecma_node *node) {
  if (s->steps == 0)
    return false;
  s->steps--;
  switch (node->kind) {
  case ECMA_SEQ:
    for (const struct ecma_node *kid = node->kids; kid; kid = kid->next)
      if (!sample_node(s, kid))
        return false;
    return true;
  case ECMA_ALT:
    return sample_choice(s, node);
  case ECMA_CLASS:
    return sample_class(s, node);
  case ECMA_REPEAT:
    return sample_repeat(s, node);
  case ECMA_GROUP:
    return sample_group(s, node);
  case ECMA_BACK:
    return put_again(s, node->number);
  case ECMA_LOOK: /* what these ask for is met by chance, or not */
  case ECMA_BEGIN:
  case ECMA_END:
  case ECMA_EDGE:
    return true;
  }
  return false;
}

bool pattern_sample(const char *pattern, size_t length, uint32_t seed, size_t extra, size_t most,
                    struct buf *out) {
  assert(pattern != NULL && out != NULL);
  struct sampler s = {.seed = seed,
                      .state = seed * 2654435761u,
                      .extra = extra,
                      .most = most,
                      .steps = STEPS_MAX,
                      .out = out};
  struct arena arena = {0};
  struct ecma_error error;
  const struct ecma_node *root = ecma_parse((struct str){pattern, length}, &arena, &error);
  bool ok = root && sample_node(&s, root);
  arena_deinit(&arena);
  return ok;
}
