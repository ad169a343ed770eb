/* Packs counts into bytes and unpacks them. */
#include "audit/packed.h"

#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 64, SPREAD_ROWS = SPREAD_POWERS + 1 }; /* as in spread.c */

void packed_put(struct buf *out, const void *bytes, size_t n) {
  buf_append(out, bytes, n);
}

void packed_put_number(struct buf *out, uint64_t n) {
  packed_put(out, &n, sizeof n);
}

static void packed_put_text(struct buf *out, struct str text) {
  packed_put_number(out, text.n);
  packed_put(out, text.p ? text.p : "", text.n);
}

void packed_take(struct packed *in, void *bytes, size_t n) {
  if (in->bad || n > in->rest.n) {
    in->bad = true;
    memset(bytes, 0, n);
    return;
  }
  memcpy(bytes, in->rest.p, n);
  in->rest.p += n;
  in->rest.n -= n;
}

uint64_t packed_take_number(struct packed *in) {
  uint64_t n;
  packed_take(in, &n, sizeof n);
  return n;
}

static struct str packed_take_text(struct packed *in) {
  uint64_t n = packed_take_number(in);
  struct str text = {in->rest.p, (size_t)n};
  if (in->bad || n > in->rest.n) {
    in->bad = true;
    return (struct str){"", 0};
  }
  in->rest.p += n;
  in->rest.n -= (size_t)n;
  return text;
}

/* --- words --- */

void packed_put_names(struct buf *out, const struct name_list *names) {
  packed_put_number(out, names->count);
  for (uint32_t i = 0; i < names->count; i++)
    packed_put_text(out, names->words[i]);
}

uint32_t *packed_take_names(struct packed *in, struct name_list *names, uint32_t *count) {
  uint64_t n = packed_take_number(in);
  in->bad = in->bad || n > LIMIT_AUDIT_NAME_COUNT;
  *count = in->bad ? 2 : (uint32_t)n + 2;
  uint32_t *map = xcalloc(*count, sizeof *map);
  map[NAMES_OTHER] = NAMES_OTHER;
  for (uint32_t i = 2; i < *count; i++)
    map[i] = names_add(names, packed_take_text(in));
  return map;
}

/* --- numbers of many --- */

static void put_spread(struct buf *out, const struct spread *m) {
  packed_put_number(out, m->count);
  packed_put_number(out, (uint64_t)m->sum);
  if (m->buckets == NULL) {
    packed_put(out, m->exact ? m->exact : (const uint64_t *)"", m->count * sizeof *m->exact);
    return;
  }
  for (size_t row = 0; row < SPREAD_ROWS; row++) {
    packed_put_number(out, m->buckets[row] != NULL);
    if (m->buckets[row] != NULL)
      packed_put(out, m->buckets[row], STEPS * sizeof **m->buckets);
  }
}

static void take_buckets(struct packed *in, struct spread *m) {
  m->buckets = xcalloc(SPREAD_ROWS, sizeof *m->buckets);
  m->bytes = SPREAD_ROWS * sizeof *m->buckets;
  for (size_t row = 0; row < SPREAD_ROWS && !in->bad; row++) {
    if (packed_take_number(in) == 0)
      continue;
    m->buckets[row] = xcalloc(STEPS, sizeof **m->buckets);
    m->bytes += STEPS * sizeof **m->buckets;
    packed_take(in, m->buckets[row], STEPS * sizeof **m->buckets);
  }
}

static void take_spread(struct packed *in, struct spread *m) {
  uint64_t count = packed_take_number(in);
  int64_t sum = (int64_t)packed_take_number(in);
  *m = (struct spread){0};
  for (uint64_t i = 0; count <= SPREAD_EXACT_COUNT && i < count && !in->bad; i++)
    spread_add(m, (int64_t)packed_take_number(in));
  if (count > SPREAD_EXACT_COUNT)
    take_buckets(in, m);
  m->count = count;
  m->sum = sum;
}

/* --- tables --- */

static bool is_a_word(enum tally_key key) {
  return key != TALLY_RULE && key != TALLY_DAY;
}

void packed_put_table(struct buf *out, const struct tally_table *t) {
  packed_put_number(out, t->count);
  for (size_t i = 0; i < t->count; i++) {
    struct tally_group g = t->groups[i];
    g.ms = g.tokens = g.cost = (struct spread){0};
    g.last_row = 0;
    packed_put(out, &g, sizeof g);
    put_spread(out, &t->groups[i].ms);
    put_spread(out, &t->groups[i].tokens);
    put_spread(out, &t->groups[i].cost);
  }
}

static void take_group(struct packed *in, struct tally_table *t, const uint32_t *map,
                       uint32_t count) {
  struct tally_group g;
  packed_take(in, &g, sizeof g);
  g.ms = g.tokens = g.cost = (struct spread){0};
  for (size_t k = 0; k < t->key_count; k++)
    if (is_a_word(t->keys[k])) {
      in->bad = in->bad || g.keys[k] >= count;
      g.keys[k] = in->bad ? 0 : map[g.keys[k]];
    }
  take_spread(in, &g.ms);
  take_spread(in, &g.tokens);
  take_spread(in, &g.cost);
  if ((t->count & (t->count - 1)) == 0)
    t->groups = xrealloc(t->groups, (t->count ? t->count * 2 : 1) * sizeof *t->groups);
  map_put(&t->map, &t->arena, (struct str){(const char *)g.keys, sizeof g.keys},
          (uint32_t)t->count);
  *t->memory += 2 * sizeof g + 128 + g.ms.bytes + g.tokens.bytes + g.cost.bytes;
  t->groups[t->count++] = g;
}

void packed_take_table(struct packed *in, struct tally_table *t, const uint32_t *map,
                       uint32_t count) {
  uint64_t n = packed_take_number(in);
  for (uint64_t i = 0; i < n && !in->bad; i++)
    take_group(in, t, map, count);
}
