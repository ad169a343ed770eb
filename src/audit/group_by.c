/* Counts rows in groups. */
#include "audit/group_by.h"

#include "base/limits.h"
#include "base/log.h"
#include "judge/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int64_t day_ms = (int64_t)24 * 3600 * 1000;

static const char *const key_names[GROUP_BY_KEY_COUNT] = {
    [GROUP_BY_METHOD] = "method",
    [GROUP_BY_MATCH_METHOD] = "match_method",
    [GROUP_BY_MOVEMENT] = "movement",
    [GROUP_BY_WORKFLOW] = "workflow",
    [GROUP_BY_PROVIDER] = "provider",
    [GROUP_BY_MODEL] = "model",
    [GROUP_BY_WORKER] = "worker",
    [GROUP_BY_WORKER_MODEL] = "worker_model",
    [GROUP_BY_SCHEMA] = "schema",
    [GROUP_BY_OUTCOME] = "outcome",
    [GROUP_BY_BASIS] = "basis",
    [GROUP_BY_RULE] = "rule",
    [GROUP_BY_MARK] = "mark",
    [GROUP_BY_DAY] = "day",
    [GROUP_BY_STAGE] = "stage",
    [GROUP_BY_REASON] = "reason",
    [GROUP_BY_TO] = "to",
};

const char *group_by_key_name(enum group_by_key key) {
  assert(key < GROUP_BY_KEY_COUNT);
  return key_names[key];
}

bool group_by_key_from_name(struct str name, enum group_by_key *key) {
  int i = str_index(name, key_names, GROUP_BY_KEY_COUNT);
  if (i >= 0)
    *key = (enum group_by_key)i;
  return i >= 0;
}

bool group_by_stage(const struct group_by_table *t) {
  for (size_t i = 0; i < t->key_count; i++)
    if (t->keys[i] >= GROUP_BY_STAGE)
      return true;
  return t->askings;
}

/* --- keys --- */

static uint32_t key_of(enum group_by_key key, const struct group_by_unit *u) {
  const struct row *row = u->row;
  const struct row_stage *stage = u->stage;
  switch (key) {
  case GROUP_BY_METHOD:
    return row->method;
  case GROUP_BY_MATCH_METHOD:
    return row->match_method;
  case GROUP_BY_MOVEMENT:
    return row->movement;
  case GROUP_BY_WORKFLOW:
    return row->workflow;
  case GROUP_BY_PROVIDER:
    return stage ? stage->provider : row->provider;
  case GROUP_BY_MODEL:
    return stage ? stage->model : row->model;
  case GROUP_BY_WORKER:
    return row->worker;
  case GROUP_BY_WORKER_MODEL:
    return row->worker_model;
  case GROUP_BY_SCHEMA:
    return row->schema;
  case GROUP_BY_OUTCOME:
    return row->outcome;
  case GROUP_BY_BASIS:
    return row->basis;
  case GROUP_BY_RULE:
    return row->rule;
  case GROUP_BY_MARK:
    return row->mark;
  case GROUP_BY_DAY:
    return row->time_ms > 0 ? (uint32_t)(row->time_ms / day_ms % UINT32_MAX) : 0;
  case GROUP_BY_STAGE:
    return stage->stage;
  case GROUP_BY_REASON:
    return stage->reason;
  case GROUP_BY_TO:
    return u->to;
  case GROUP_BY_KEY_COUNT:
    break;
  }
  return DICTIONARY_NONE;
}

static struct group_by_row *group_of(struct group_by_table *t, const struct group_by_unit *u) {
  uint32_t keys[GROUP_BY_KEYS_MAX] = {0}, at = (uint32_t)t->count;
  struct str bytes = {(const char *)keys, sizeof keys};
  for (size_t i = 0; i < t->key_count; i++)
    keys[i] = key_of(t->keys[i], u);
  if (t->last < t->count && memcmp(t->groups[t->last].keys, keys, sizeof keys) == 0)
    return &t->groups[t->last];
  if (map_get(&t->map, bytes, &at)) {
    t->last = at;
    return &t->groups[at];
  }
  if (*t->memory > LIMIT_AUDIT_GROUP_BYTES) {
    t->left_out++;
    return NULL;
  }
  map_put(&t->map, &t->arena, bytes, at);
  if ((t->count & (t->count - 1)) == 0)
    t->groups = xrealloc(t->groups, (t->count ? t->count * 2 : 1) * sizeof *t->groups);
  t->groups[t->count] = (struct group_by_row){0};
  memcpy(t->groups[t->count].keys, keys, sizeof keys);
  /* the list, which doubles, plus the table and the keys */
  *t->memory += 2 * sizeof *t->groups + 128;
  t->last = t->count;
  return &t->groups[t->count++];
}

/* --- counting --- */

static void count_use(struct group_by_table *t, struct group_by_row *g,
                      const struct group_by_unit *u) {
  size_t before = g->ms.bytes + g->tokens.bytes + g->cost.bytes;
  row_use_add(&g->use, &u->use);
  row_use_add(&g->unsure_use, &u->unsure_use);
  row_use_add(&g->again_use, &u->again_use);
  percentiles_add(&g->ms, u->use.ms);
  percentiles_add(&g->tokens, u->use.input + u->use.output);
  if (u->use.unpriced == 0)
    percentiles_add(&g->cost, u->use.cost_nano);
  *t->memory += g->ms.bytes + g->tokens.bytes + g->cost.bytes - before;
}

static void count_reading(struct group_by_row *g, const struct row_stage *stage) {
  size_t more = stage->call_count > 0 ? stage->call_count - 1u : 0;
  g->again += stage->asked && more > 0;
  if (!stage->asked || stage->outcome == OUTCOME_ERROR)
    return;
  g->readings++;
  if (!stage->readable)
    return;
  if (more == 0)
    g->reading_first_pass++;
  else
    g->reading_mended[more < GROUP_BY_MENDED_COUNT ? more : GROUP_BY_MENDED_COUNT - 1]++;
}

/* Sums what would not have been asked if the first stage that reads words had decided at once. */
static struct row_use doubt_of(const struct row *row, const struct row_stage *stage) {
  size_t first = 0;
  if (!group_by_is_unsure(row))
    return (struct row_use){0};
  while (row->stages[first].machine)
    first++;
  return row->stages[first].stage == stage->stage ? stage->corrections : stage->use;
}

bool group_by_is_unsure(const struct row *row) {
  bool unsure = false;
  for (size_t i = 0; i < row->stage_count; i++)
    unsure |= !row->stages[i].vote && row->stages[i].outcome != OUTCOME_MATCHED &&
              !row->stages[i].machine;
  return unsure;
}

static void count_judgment(struct group_by_row *g, const struct row *row) {
  g->judgments++;
  g->ambiguous += row->ambiguous;
  g->no_rule += row->rule == 0;
  g->unsure += group_by_is_unsure(row);
  g->marks[row->mark]++;
}

static void add_judgment(struct group_by_table *t, const struct row *row) {
  struct group_by_unit u = {.row = row};
  struct group_by_row *g = group_of(t, &u);
  if (g == NULL)
    return;
  for (size_t i = 0; i < row->stage_count; i++) {
    const struct row_stage *stage = &row->stages[i];
    const struct row_use doubt = doubt_of(row, stage);
    row_use_add(&u.use, &stage->use);
    row_use_add(&u.unsure_use, &doubt);
    row_use_add(&u.again_use, &stage->corrections);
    count_reading(g, stage);
    if (!stage->vote)
      g->outcomes[stage->outcome]++;
  }
  g->units++;
  g->decided += row->rule > 0;
  row_use_add(&g->work, &row->work);
  count_judgment(g, row);
  count_use(t, g, &u);
}

static void add_stage(void *ctx, const struct group_by_unit *u) {
  struct group_by_table *t = ctx;
  struct group_by_row *g = group_of(t, u);
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

static void each_stage(const struct group_by_table *t, const struct row *row, void *ctx,
                       void (*each)(void *ctx, const struct group_by_unit *u)) {
  struct row_use use = {0}, unsure_use = {0}, again_use = {0};
  for (size_t i = 0; i < row->stage_count; i++) {
    struct row_stage stage = row->stages[i];
    struct group_by_unit u = {.row = row, .stage = &stage};
    const struct row_use doubt = doubt_of(row, &stage);
    size_t next = i + 1;
    row_use_add(&use, &stage.use);
    row_use_add(&unsure_use, &doubt);
    row_use_add(&again_use, &stage.corrections);
    if (t->askings ? !stage.asked : stage.vote) /* a vote's use counts with what it decides */
      continue;
    u.use = use;
    u.unsure_use = unsure_use;
    u.again_use = again_use;
    use = unsure_use = again_use = (struct row_use){0};
    for (size_t k = next; t->askings && k < row->stage_count; k++)
      if (row->stages[k].shares && row->stages[k].vote == stage.vote)
        stage.outcome = row->stages[k].outcome; /* what came of the reply in the end */
    while (next < row->stage_count && row->stages[next].vote)
      next++;
    if (next < row->stage_count)
      u.to = row->stages[next].stage;
    each(ctx, &u);
  }
}

/* Adds the calls that no judgment has, which are no units. */
static void group_by_rest(struct group_by_table *t, const struct row *row) {
  for (size_t i = 0; i < row->rest_count; i++) {
    const struct group_by_unit u = {.row = row, .stage = &row->stages[row->stage_count + i]};
    struct group_by_row *g = group_of(t, &u);
    if (g != NULL)
      row_use_add(&g->use, &u.stage->use);
  }
  const struct group_by_unit u = {.row = row};
  struct group_by_row *g =
      row->kind == ROW_REST && row->work.calls > 0 && !group_by_stage(t) ? group_of(t, &u) : NULL;
  if (g != NULL)
    row_use_add(&g->work, &row->work);
}

void group_by_units(const struct group_by_table *t, const struct row *row, void *ctx,
                    void (*each)(void *ctx, const struct group_by_unit *u)) {
  const struct group_by_unit u = {.row = row};
  assert(row->kind == ROW_JUDGMENT);
  if (group_by_stage(t))
    each_stage(t, row, ctx, each);
  else
    each(ctx, &u);
}

static void group_by_value(struct group_by_table *t, const struct row *row) {
  const struct group_by_unit u = {.row = row};
  for (size_t i = 0; i < t->key_count; i++)
    if (!(t->keys[i] == GROUP_BY_MOVEMENT || t->keys[i] == GROUP_BY_WORKFLOW ||
          t->keys[i] == GROUP_BY_WORKER || t->keys[i] == GROUP_BY_WORKER_MODEL ||
          t->keys[i] == GROUP_BY_SCHEMA || t->keys[i] == GROUP_BY_OUTCOME ||
          t->keys[i] == GROUP_BY_BASIS || t->keys[i] == GROUP_BY_DAY))
      return;
  struct group_by_row *g = t->askings ? NULL : group_of(t, &u);
  if (g == NULL)
    return;
  size_t more = row->answers > 0 ? row->answers - 1 : 0;
  g->values++;
  g->value_first_pass += row->first_pass;
  g->value_none += !row->value;
  g->value_repaired += row->mended;
  if (row->value && more > 0)
    g->value_mended[more < GROUP_BY_MENDED_COUNT ? more : GROUP_BY_MENDED_COUNT - 1]++;
}

void group_by_add(struct group_by_table *t, const struct row *row) {
  assert(t->memory != NULL);
  assert(t->key_count <= GROUP_BY_KEYS_MAX);
  t->row++;
  if (row->kind == ROW_VALUE)
    group_by_value(t, row);
  else if (row->kind == ROW_JUDGMENT && group_by_stage(t))
    each_stage(t, row, t, add_stage);
  else if (row->kind == ROW_JUDGMENT)
    add_judgment(t, row);
  group_by_rest(t, row);
}

size_t group_by_row_of(const struct group_by_table *t, const struct row *row) {
  const struct group_by_unit u = {.row = row};
  uint32_t keys[GROUP_BY_KEYS_MAX] = {0}, at;
  struct str bytes = {(const char *)keys, sizeof keys};
  assert(!group_by_stage(t));
  for (size_t i = 0; i < t->key_count; i++)
    keys[i] = key_of(t->keys[i], &u);
  return map_get(&t->map, bytes, &at) ? at : SIZE_MAX;
}

/* --- output --- */

static void put_key_text(enum group_by_key key, uint32_t n, const struct name_list *names,
                         struct buf *out) {
  if (key == GROUP_BY_RULE) {
    if (n > 0)
      buf_printf(out, "%u", (unsigned)n);
  } else if (key == GROUP_BY_MARK) {
    if (n > TAG_UNASKED && n < TAG_MARK_COUNT)
      buf_puts(out, tag_mark_name((enum tag_mark)n));
  } else if (key == GROUP_BY_DAY) {
    time_t s = (time_t)n * 24 * 3600;
    struct tm tm;
    char text[32];
    if (n > 0 && gmtime_r(&s, &tm) != NULL && strftime(text, sizeof text, "%Y-%m-%d", &tm) > 0)
      buf_puts(out, text);
  } else {
    struct str word = dictionary_text(names, n);
    if (word.p != NULL)
      buf_str(out, word);
  }
}

void group_by_key_text(const struct group_by_table *t, const struct group_by_row *g, size_t key,
                       const struct name_list *names, struct buf *out) {
  assert(key < t->key_count);
  put_key_text(t->keys[key], g->keys[key], names, out);
}

void group_by_key_words(const struct group_by_table *t, const struct group_by_row *g, size_t key,
                        const struct name_list *names, struct buf *out) {
  enum group_by_key of = t->keys[key];
  buf_auto_t text = {0};
  group_by_key_text(t, g, key, names, &text);
  bool named = of == GROUP_BY_METHOD || of == GROUP_BY_MATCH_METHOD || of == GROUP_BY_STAGE ||
               of == GROUP_BY_TO;
  struct str words = named ? judge_stage_words(buf_view(&text)) : buf_view(&text);
  buf_str(out, words.n > 0 ? words : STR("-"));
}

void group_by_unit_text(const struct group_by_table *t, const struct group_by_unit *u, size_t key,
                        const struct name_list *names, struct buf *out) {
  assert(key < t->key_count);
  put_key_text(t->keys[key], key_of(t->keys[key], u), names, out);
}

struct order {
  const struct group_by_table *t;
  const struct name_list *names;
};

static int group_by_order(const void *a, const void *b, void *ctx) {
  const struct group_by_row *x = a, *y = b;
  const struct order *order = ctx;
  if (x->units != y->units)
    return x->units < y->units ? 1 : -1;
  for (size_t i = 0; i < order->t->key_count; i++) {
    buf_auto_t left = {0}, right = {0};
    group_by_key_text(order->t, x, i, order->names, &left);
    group_by_key_text(order->t, y, i, order->names, &right);
    int c = strcmp(buf_c(&left), buf_c(&right));
    if (c != 0)
      return c;
  }
  return 0;
}

void group_by_sort(struct group_by_table *t, const struct name_list *names) {
  struct order order = {t, names};
  if (t->count > 1)
    qsort_r(t->groups, t->count, sizeof *t->groups, group_by_order, &order);
}

void group_by_deinit(struct group_by_table *t) {
  for (size_t i = 0; i < t->count; i++) {
    percentiles_deinit(&t->groups[i].ms);
    percentiles_deinit(&t->groups[i].tokens);
    percentiles_deinit(&t->groups[i].cost);
  }
  free(t->groups);
  map_deinit(&t->map);
  arena_deinit(&t->arena);
  *t = (struct group_by_table){0};
}
