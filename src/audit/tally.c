/* Counts rows in groups. */
#include "audit/tally.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int64_t day_ms = (int64_t)24 * 3600 * 1000;

static const char *const key_names[TALLY_KEY_COUNT] = {
    [TALLY_METHOD] = "method",
    [TALLY_MATCH_METHOD] = "match_method",
    [TALLY_MOVEMENT] = "movement",
    [TALLY_WORKFLOW] = "workflow",
    [TALLY_PROVIDER] = "provider",
    [TALLY_MODEL] = "model",
    [TALLY_WORKER] = "worker",
    [TALLY_WORKER_MODEL] = "worker_model",
    [TALLY_SCHEMA] = "schema",
    [TALLY_OUTCOME] = "outcome",
    [TALLY_RULE] = "rule",
    [TALLY_DAY] = "day",
    [TALLY_STAGE] = "stage",
    [TALLY_REASON] = "reason",
    [TALLY_TO] = "to",
};

const char *tally_key_name(enum tally_key key) {
  assert(key < TALLY_KEY_COUNT);
  return key_names[key];
}

bool tally_key_from_name(struct str name, enum tally_key *key) {
  for (int i = 0; i < TALLY_KEY_COUNT; i++)
    if (str_eq_c(name, key_names[i])) {
      *key = (enum tally_key)i;
      return true;
    }
  return false;
}

bool tally_by_stage(const struct tally_table *t) {
  for (size_t i = 0; i < t->key_count; i++)
    if (t->keys[i] >= TALLY_STAGE)
      return true;
  return t->askings;
}

/* --- keys --- */

static uint32_t day_of(int64_t time_ms) {
  return time_ms > 0 ? (uint32_t)(time_ms / day_ms % UINT32_MAX) : 0;
}

static uint32_t key_of(enum tally_key key, const struct tally_unit *u) {
  const struct row *row = u->row;
  const struct row_stage *stage = u->stage;
  switch (key) {
  case TALLY_METHOD:
    return row->method;
  case TALLY_MATCH_METHOD:
    return row->match_method;
  case TALLY_MOVEMENT:
    return row->movement;
  case TALLY_WORKFLOW:
    return row->workflow;
  case TALLY_PROVIDER:
    return stage ? stage->provider : row->provider;
  case TALLY_MODEL:
    return stage ? stage->model : row->model;
  case TALLY_WORKER:
    return row->worker;
  case TALLY_WORKER_MODEL:
    return row->worker_model;
  case TALLY_SCHEMA:
    return row->schema;
  case TALLY_OUTCOME:
    return row->outcome;
  case TALLY_RULE:
    return row->rule;
  case TALLY_DAY:
    return day_of(row->time_ms);
  case TALLY_STAGE:
    return stage->stage;
  case TALLY_REASON:
    return stage->reason;
  case TALLY_TO:
    return u->to;
  case TALLY_KEY_COUNT:
    break;
  }
  return NAMES_NONE;
}

static struct tally_group *group_of(struct tally_table *t, const struct tally_unit *u) {
  uint32_t keys[TALLY_KEYS_MAX] = {0}, at = (uint32_t)t->count;
  struct str bytes = {(const char *)keys, sizeof keys};
  for (size_t i = 0; i < t->key_count; i++)
    keys[i] = key_of(t->keys[i], u);
  if (map_get(&t->map, bytes, &at))
    return &t->groups[at];
  if (*t->memory > LIMIT_AUDIT_GROUP_BYTES) {
    t->left_out++;
    return NULL;
  }
  map_put(&t->map, &t->arena, bytes, at);
  if ((t->count & (t->count - 1)) == 0)
    t->groups = xrealloc(t->groups, (t->count ? t->count * 2 : 1) * sizeof *t->groups);
  t->groups[t->count] = (struct tally_group){0};
  memcpy(t->groups[t->count].keys, keys, sizeof keys);
  /* the list, which doubles, plus the table and the keys */
  *t->memory += 2 * sizeof *t->groups + 128;
  return &t->groups[t->count++];
}

/* --- counting --- */

static int64_t tokens_of(const struct row_use *use) {
  return use->input + use->output;
}

static void count_use(struct tally_table *t, struct tally_group *g, const struct tally_unit *u) {
  size_t before = g->ms.bytes + g->tokens.bytes + g->cost.bytes;
  row_use_add(&g->use, &u->use);
  row_use_add(&g->unsure_use, &u->unsure_use);
  spread_add(&g->ms, u->use.ms);
  spread_add(&g->tokens, tokens_of(&u->use));
  if (u->use.unpriced == 0)
    spread_add(&g->cost, u->use.cost_nano);
  *t->memory += g->ms.bytes + g->tokens.bytes + g->cost.bytes - before;
}

static void count_reading(struct tally_group *g, const struct row_stage *stage) {
  size_t more = stage->call_count > 0 ? stage->call_count - 1u : 0;
  if (!stage->asked || stage->outcome == OUTCOME_ERROR)
    return;
  g->readings++;
  if (!stage->readable)
    return;
  if (more == 0)
    g->reading_first_pass++;
  else
    g->reading_mended[more < TALLY_MENDED_COUNT ? more : TALLY_MENDED_COUNT - 1]++;
}

static bool stage_fell(const struct row_stage *stage) {
  return !stage->vote && stage->outcome != OUTCOME_MATCHED;
}

bool tally_is_unsure(const struct row *row) {
  bool unsure = false;
  for (size_t i = 0; i < row->stage_count; i++)
    unsure |= stage_fell(&row->stages[i]) && !row->stages[i].machine;
  return unsure;
}

static void count_judgment(struct tally_group *g, const struct row *row) {
  g->judgments++;
  g->ambiguous += row->ambiguous;
  g->no_rule += row->rule == 0;
  g->unsure += tally_is_unsure(row);
}

static void add_judgment(struct tally_table *t, const struct row *row) {
  struct tally_unit u = {.row = row};
  struct row_use part = {0};
  struct tally_group *g = group_of(t, &u);
  if (g == NULL)
    return;
  for (size_t i = 0; i < row->stage_count; i++) {
    const struct row_stage *stage = &row->stages[i];
    row_use_add(&u.use, &stage->use);
    row_use_add(&part, &stage->use);
    count_reading(g, stage);
    if (stage->vote) /* the cost of votes is counted with what they decide */
      continue;
    g->outcomes[stage->outcome]++;
    if (stage->outcome != OUTCOME_MATCHED)
      row_use_add(&u.unsure_use, &part);
    part = (struct row_use){0};
  }
  g->units++;
  g->decided += row->rule > 0;
  row_use_add(&g->work, &row->work);
  count_judgment(g, row);
  count_use(t, g, &u);
}

static void add_stage(void *ctx, const struct tally_unit *u) {
  struct tally_table *t = ctx;
  struct tally_group *g = group_of(t, u);
  if (g == NULL)
    return;
  g->units++;
  g->decided += u->stage->outcome == OUTCOME_MATCHED;
  g->outcomes[u->stage->outcome]++;
  count_reading(g, u->stage);
  if (g->last_row != t->row) {
    g->last_row = t->row;
    count_judgment(g, u->row);
  }
  count_use(t, g, u);
}

static void each_stage(const struct tally_table *t, const struct row *row, void *ctx,
                       void (*each)(void *ctx, const struct tally_unit *u)) {
  struct row_use votes = {0};
  for (size_t i = 0; i < row->stage_count; i++) {
    const struct row_stage *stage = &row->stages[i];
    struct tally_unit u = {.row = row, .stage = stage, .use = stage->use};
    size_t next = i + 1;
    if (t->askings ? !stage->asked : stage->vote) {
      row_use_add(&votes, &stage->use);
      continue;
    }
    if (!t->askings)
      row_use_add(&u.use, &votes);
    votes = (struct row_use){0};
    while (next < row->stage_count && row->stages[next].vote)
      next++;
    if (next < row->stage_count)
      u.to = row->stages[next].stage;
    if (stage->outcome != OUTCOME_MATCHED)
      u.unsure_use = u.use;
    each(ctx, &u);
  }
}

void tally_units(const struct tally_table *t, const struct row *row, void *ctx,
                 void (*each)(void *ctx, const struct tally_unit *u)) {
  const struct tally_unit u = {.row = row};
  assert(row->kind == ROW_JUDGMENT);
  if (tally_by_stage(t))
    each_stage(t, row, ctx, each);
  else
    each(ctx, &u);
}

static bool is_of_value(enum tally_key key) {
  return key == TALLY_MOVEMENT || key == TALLY_WORKFLOW || key == TALLY_WORKER ||
         key == TALLY_WORKER_MODEL || key == TALLY_SCHEMA || key == TALLY_OUTCOME ||
         key == TALLY_DAY;
}

static void tally_value(struct tally_table *t, const struct row *row) {
  const struct tally_unit u = {.row = row};
  for (size_t i = 0; i < t->key_count; i++)
    if (!is_of_value(t->keys[i]))
      return;
  struct tally_group *g = t->askings ? NULL : group_of(t, &u);
  if (g == NULL)
    return;
  size_t more = row->answers > 0 ? row->answers - 1 : 0;
  g->values++;
  g->value_first_pass += row->first_pass;
  g->value_none += !row->value;
  g->value_repaired += row->mended;
  if (row->value && more > 0)
    g->value_mended[more < TALLY_MENDED_COUNT ? more : TALLY_MENDED_COUNT - 1]++;
}

void tally_add(struct tally_table *t, const struct row *row) {
  assert(t->memory != NULL);
  assert(t->key_count <= TALLY_KEYS_MAX);
  t->row++;
  if (row->kind == ROW_VALUE)
    tally_value(t, row);
  else if (tally_by_stage(t))
    each_stage(t, row, t, add_stage);
  else
    add_judgment(t, row);
}

size_t tally_group_of(const struct tally_table *t, const struct row *row) {
  const struct tally_unit u = {.row = row};
  uint32_t keys[TALLY_KEYS_MAX] = {0}, at;
  struct str bytes = {(const char *)keys, sizeof keys};
  assert(!tally_by_stage(t));
  for (size_t i = 0; i < t->key_count; i++)
    keys[i] = key_of(t->keys[i], &u);
  return map_get(&t->map, bytes, &at) ? at : SIZE_MAX;
}

/* --- output --- */

static void put_key_text(enum tally_key key, uint32_t n, const struct name_list *names,
                         struct buf *out) {
  if (key == TALLY_RULE) {
    if (n > 0)
      buf_printf(out, "%u", (unsigned)n);
  } else if (key == TALLY_DAY) {
    time_t s = (time_t)n * 24 * 3600;
    struct tm tm;
    char text[32];
    if (n > 0 && gmtime_r(&s, &tm) != NULL && strftime(text, sizeof text, "%Y-%m-%d", &tm) > 0)
      buf_puts(out, text);
  } else {
    struct str word = names_text(names, n);
    if (word.p != NULL)
      buf_str(out, word);
  }
}

void tally_key_text(const struct tally_table *t, const struct tally_group *g, size_t key,
                    const struct name_list *names, struct buf *out) {
  assert(key < t->key_count);
  put_key_text(t->keys[key], g->keys[key], names, out);
}

void tally_unit_text(const struct tally_table *t, const struct tally_unit *u, size_t key,
                     const struct name_list *names, struct buf *out) {
  assert(key < t->key_count);
  put_key_text(t->keys[key], key_of(t->keys[key], u), names, out);
}

struct order {
  const struct tally_table *t;
  const struct name_list *names;
};

static int tally_order(const void *a, const void *b, void *ctx) {
  const struct tally_group *x = a, *y = b;
  const struct order *order = ctx;
  if (x->units != y->units)
    return x->units < y->units ? 1 : -1;
  for (size_t i = 0; i < order->t->key_count; i++) {
    struct buf left = {0}, right = {0};
    tally_key_text(order->t, x, i, order->names, &left);
    tally_key_text(order->t, y, i, order->names, &right);
    int c = strcmp(buf_c(&left), buf_c(&right));
    buf_deinit(&left);
    buf_deinit(&right);
    if (c != 0)
      return c;
  }
  return 0;
}

void tally_sort(struct tally_table *t, const struct name_list *names) {
  struct order order = {t, names};
  if (t->count > 1)
    qsort_r(t->groups, t->count, sizeof *t->groups, tally_order, &order);
}

void tally_deinit(struct tally_table *t) {
  for (size_t i = 0; i < t->count; i++) {
    spread_deinit(&t->groups[i].ms);
    spread_deinit(&t->groups[i].tokens);
    spread_deinit(&t->groups[i].cost);
  }
  free(t->groups);
  map_deinit(&t->map);
  arena_deinit(&t->arena);
  *t = (struct tally_table){0};
}
