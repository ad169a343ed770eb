/* Finds changes in an audit by day. */
#include "audit/day_change.h"

#include "audit/exact.h"
#include "base/log.h"
#include "format/json_write.h"

#include <stdlib.h>
#include <time.h>

enum figure { FIGURE_UNSURE, FIGURE_AMBIGUOUS, FIGURE_NO_RULE, FIGURE_COUNT };
static const char *const figure_names[] = {"unsure", "ambiguous", "no_rule"};
static const char *const figure_words[] = {"unsure", "ambiguous", "without a rule"};

/* Returns the place of the day among the keys, or their number. */
static size_t day_key(const struct group_by_table *t) {
  size_t i = 0;
  while (i < t->key_count && t->keys[i] != GROUP_BY_DAY)
    i++;
  return i;
}

/* Compares groups by their keys without the day. */
static int series_order(const struct group_by_table *t, size_t x, size_t y) {
  for (size_t k = 0; k < t->key_count; k++) {
    uint32_t a = t->groups[x].keys[k], b = t->groups[y].keys[k];
    if (t->keys[k] != GROUP_BY_DAY && a != b)
      return a < b ? -1 : 1;
  }
  return 0;
}

static int day_order(const void *a, const void *b, void *ctx) {
  const struct group_by_table *t = ctx;
  size_t x = *(const size_t *)a, y = *(const size_t *)b, day = day_key(t);
  int c = series_order(t, x, y);
  uint32_t i = t->groups[x].keys[day], k = t->groups[y].keys[day];
  return c != 0 ? c : (i > k) - (i < k);
}

/* --- what is said --- */

static json_t *day_side(struct buf *text, const char *before, const struct exact_day *side) {
  double percent = 100 * (double)side->hits / (double)side->all;
  buf_printf(text, "%s%.*f %% (%llu of %llu)", before, percent > 0 && percent < 1 ? 1 : 0, percent,
             (unsigned long long)side->hits, (unsigned long long)side->all);
  return json_pack("{sI sI}", "count", (json_int_t)side->hits, "judgments", (json_int_t)side->all);
}

static json_t *change_json(const struct aggregate *c, size_t group, enum figure figure,
                           const struct exact_change *change) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  const struct exact_day *x = &change->before, *y = &change->since;
  bool rose = (double)y->hits * (double)x->all > (double)x->hits * (double)y->all;
  time_t at = (time_t)y->day * 24 * 3600;
  struct tm tm = {0};
  char date[32] = "", day[16] = "";
  json_t *keys = json_object();
  buf_auto_t text = {0};
  for (size_t k = 0; k < t->key_count; k++) {
    buf_auto_t word = {0};
    if (t->keys[k] == GROUP_BY_DAY)
      continue;
    group_by_key_text(t, &t->groups[group], k, &c->names, &word);
    buf_printf(&text, "%s%s=%s", text.n > 0 ? ", " : "", group_by_key_name(t->keys[k]),
               buf_c(&word));
    json_object_set_new(keys, group_by_key_name(t->keys[k]), json_text(buf_view(&word)));
  }
  buf_printf(&text, "%s%s %s", text.n > 0 ? ": " : "", figure_words[figure],
             rose ? "rose" : "fell");
  json_t *before = day_side(&text, " from ", x), *since = day_side(&text, " to ", y);
  (void)gmtime_r(&at, &tm);
  (void)strftime(date, sizeof date, "%B %Y", &tm);
  (void)strftime(day, sizeof day, "%Y-%m-%d", &tm);
  buf_printf(&text, " since %d %s", tm.tm_mday, date);
  return json_pack("{so ss ss so so so}", "group", keys, "figure", figure_names[figure], "day", day,
                   "before", before, "since", since, "text", json_text(buf_view(&text)));
}

/* --- series --- */

static void change_of_series(const struct aggregate *c, const size_t *groups, size_t n,
                             size_t series, json_t *list) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  struct exact_day *days = xcalloc(n, sizeof *days);
  struct exact_change change;
  for (int f = 0; f < FIGURE_COUNT; f++) {
    for (size_t i = 0; i < n; i++) {
      const struct group_by_row *g = &t->groups[groups[i]];
      const uint64_t hits[] = {g->unsure, g->ambiguous, g->no_rule};
      days[i] = (struct exact_day){g->keys[day_key(t)], hits[f], g->judgments};
    }
    if (exact_change(days, n, series * FIGURE_COUNT, &change))
      json_array_append_new(list, change_json(c, groups[0], (enum figure)f, &change));
  }
  free(days);
}

json_t *day_changes(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  json_t *list = json_array();
  size_t series = 1;
  if (day_key(t) == t->key_count || group_by_stage(t) || t->count == 0)
    return list;
  size_t *order = xcalloc(t->count, sizeof *order);
  for (size_t i = 0; i < t->count; i++)
    order[i] = i;
  qsort_r(order, t->count, sizeof *order, day_order, (void *)t);
  for (size_t i = 1; i < t->count; i++)
    series += series_order(t, order[i - 1], order[i]) != 0;
  for (size_t from = 0, to = 0; from < t->count; from = to) {
    while (to < t->count && series_order(t, order[from], order[to]) == 0)
      to++;
    change_of_series(c, order + from, to - from, series, list);
  }
  free(order);
  return list;
}
