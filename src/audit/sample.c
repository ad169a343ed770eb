/* Draws judgments by strata. */
#include "audit/sample.h"

#include "audit/exact.h"
#include "base/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MOST = 400000 }; /* turns, 72 bytes each */
enum { SAYS_COUNT = REJUDGED_OTHER + 1 };

static int sample_order(const void *a, const void *b) {
  const struct sample_turn *x = a, *y = b;
  if (x->order != y->order)
    return x->order < y->order ? -1 : 1;
  int c = strcmp(x->session, y->session);
  return c != 0 ? c : (x->turn > y->turn) - (x->turn < y->turn);
}

/* Orders by a hash: it makes the choice of turns random, but the same each time. */
static uint64_t sample_order_of(const struct sample *d, const char *session, long turn) {
  buf_auto_t text = {0};
  char hash[SHA256_HEX];
  uint64_t order = 0;
  buf_printf(&text, "%s\n%s\n%ld", d->seed, session, turn);
  sha256_hex(text.p, text.n, NULL, 0, hash);
  (void)sscanf(hash, "%16" SCNx64, &order);
  return order;
}

/* Keeps only the first `want` of a stratum: no others can be drawn. */
static void list_prune(struct sample *d, struct sample_list *list) {
  if (list->count > 1)
    qsort(list->items, list->count, sizeof *list->items, sample_order);
  if (list->count > d->want) {
    d->kept -= list->count - d->want;
    list->count = d->want;
  }
}

static void sample_on_row(void *ctx, const struct row *row) {
  struct sample *d = ctx;
  const char *session = d->rows.session.id;
  if (row->kind != ROW_JUDGMENT || !aggregate_wants_row(d->aggregate, row) ||
      !aggregate_needs_judge(row) || strlen(session) != STORE_ID_BYTES - 1)
    return;
  group_by_add(&d->strata, row);
  size_t at = group_by_row_of(&d->strata, row);
  if (at == SIZE_MAX || d->kept >= KEPT_MOST)
    return;
  at *= SAYS_COUNT;
  if (d->again != NULL && d->second != DICTIONARY_NONE)
    at += rejudged_says(d->again, d->second, session, row->turn, (long)row->rule);
  if (at >= d->list_count) {
    d->lists = xrealloc(d->lists, (at + 1) * sizeof *d->lists);
    for (; d->list_count <= at; d->list_count++)
      d->lists[d->list_count] = (struct sample_list){0};
  }
  struct sample_turn turn = {.turn = row->turn,
                             .rule = (long)row->rule,
                             .movement = row->movement,
                             .method = row->method,
                             .stratum = (uint32_t)at,
                             .order = sample_order_of(d, session, row->turn)};
  memcpy(turn.session, session, sizeof turn.session);
  d->lists[at].population++;
  if (d->lists[at].count >= 2 * d->want)
    list_prune(d, &d->lists[at]);
  d->lists[at].items = xgrow(d->lists[at].items, &d->lists[at].room, d->lists[at].count + 1,
                             sizeof *d->lists[at].items);
  d->lists[at].items[d->lists[at].count++] = turn;
  d->kept++;
}

/* Reads the keys of strata with an aggregate, as for --by. */
static bool sample_keys(struct sample *d, const char *by, struct err *err) {
  struct aggregate *c = aggregate_new();
  bool ok = aggregate_by(c, by, err);
  memcpy(d->strata.keys, c->tables[AGGREGATE_BY].keys, sizeof d->strata.keys);
  d->strata.key_count = c->tables[AGGREGATE_BY].key_count;
  if (ok && group_by_stage(&d->strata))
    ok = err_set(err, ERR_USAGE,
                 "--by: a sample takes judgments; stage, reason and to belong to "
                 "their stages");
  aggregate_free(c);
  return ok;
}

bool sample_init(struct sample *d, struct aggregate *aggregate, const char *by, size_t want,
                 const char *seed, struct err *err) {
  assert(want > 0);
  assert(want <= SAMPLE_MOST);
  *d = (struct sample){.aggregate = aggregate, .seed = seed, .want = want};
  d->strata.memory = &d->memory;
  d->rows = (struct rows){.names = &aggregate->names, .sink = {sample_on_row, NULL}, .ctx = d};
  bool ok = by[0] == '\0' || sample_keys(d, by, err);
  for (size_t i = 0; i < d->strata.key_count; i++)
    d->rows.wants_schema |= d->strata.keys[i] == GROUP_BY_SCHEMA;
  return ok;
}

void sample_read(void *sample, const struct store_ref *ref) {
  struct sample *d = sample;
  enum rows_log state = rows_read(&d->rows, ref);
  d->unsound += state != ROWS_SOUND && state != ROWS_TORN && state != ROWS_EMPTY;
}

/* Takes from each stratum what it is to give, the first of its list. */
static void allot_by_doubt(struct sample *d) {
  static const double doubt[SAYS_COUNT] = {
      [REJUDGED_NOTHING] = 0.3, [REJUDGED_SAME] = 0.3, [REJUDGED_OTHER] = 0.5};
  double *population = xcalloc(d->list_count + 1, sizeof *population);
  double *doubts = xcalloc(d->list_count + 1, sizeof *doubts);
  size_t *gives = xcalloc(d->list_count + 1, sizeof *gives);
  for (size_t i = 0; i < d->list_count; i++) {
    population[i] = (double)d->lists[i].population;
    doubts[i] = doubt[i % SAYS_COUNT];
  }
  exact_allot(population, doubts, d->list_count, d->want, gives);
  for (size_t i = 0; i < d->list_count; i++)
    for (size_t k = 0; k < gives[i]; k++)
      d->turns[d->count++] = d->lists[i].items[k];
  free(population);
  free(doubts);
  free(gives);
}

/* Takes one judgment of each stratum in turn, until there are enough. */
static void allot_equally(struct sample *d) {
  for (size_t round = 0; d->count < d->want; round++) {
    size_t before = d->count;
    for (size_t i = 0; i < d->list_count && d->count < d->want; i++)
      if (round < d->lists[i].count)
        d->turns[d->count++] = d->lists[i].items[round];
    if (d->count == before)
      return;
  }
}

bool sample_end(struct sample *d, struct err *err) {
  if (d->strata.left_out > 0 || d->kept >= KEPT_MOST)
    return err_set(err, ERR_USAGE, "there are too many strata: take fewer keys, or filter");
  size_t strata = d->strata.count;
  if (d->again == NULL && strata > d->want)
    return err_set(err, ERR_USAGE,
                   "%zu strata need at least %zu turns: --sample %zu, or fewer keys", strata,
                   strata, strata);
  for (size_t i = 0; i < d->list_count; i++)
    list_prune(d, &d->lists[i]);
  d->turns = xcalloc(d->want, sizeof *d->turns);
  if (d->again != NULL)
    allot_by_doubt(d);
  else
    allot_equally(d);
  if (d->count > 1)
    qsort(d->turns, d->count, sizeof *d->turns, sample_order);
  return true;
}

uint64_t sample_stratum(const struct sample *d, const struct sample_turn *turn, struct buf *out) {
  static const char *const says[SAYS_COUNT] = {"nothing", "the same", "another"};
  const struct group_by_row *g = &d->strata.groups[turn->stratum / SAYS_COUNT];
  if (d->strata.key_count == 0)
    buf_puts(out, "all");
  for (size_t i = 0; i < d->strata.key_count; i++) {
    buf_printf(out, "%s%s=", i > 0 ? "," : "", group_by_key_name(d->strata.keys[i]));
    group_by_key_text(&d->strata, g, i, &d->aggregate->names, out);
  }
  if (d->again != NULL && d->second != DICTIONARY_NONE)
    buf_printf(out, ",%s says %s", dictionary_text(&d->aggregate->names, d->second).p,
               says[turn->stratum % SAYS_COUNT]);
  return d->lists[turn->stratum].population;
}

void sample_deinit(struct sample *d) {
  for (size_t i = 0; i < d->list_count; i++)
    free(d->lists[i].items);
  free(d->lists);
  free(d->turns);
  group_by_deinit(&d->strata);
  rows_deinit(&d->rows);
  *d = (struct sample){0};
}
