/* Finds changes in an audit by day. */
#include "audit/day_change.h"

#include "base/log.h"
#include "format/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t unsure_of(const struct group_by_row *g) {
  return g->unsure;
}

static uint64_t ambiguous_of(const struct group_by_row *g) {
  return g->ambiguous;
}

static uint64_t no_rule_of(const struct group_by_row *g) {
  return g->no_rule;
}

static const struct {
  const char *name, *words;
  uint64_t (*of)(const struct group_by_row *g);
} figures[] = {{"unsure", "unsure", unsure_of},
               {"ambiguous", "ambiguous", ambiguous_of},
               {"no_rule", "without a rule", no_rule_of}};

/* --- series --- */

static size_t day_key(const struct group_by_table *t) {
  size_t i = 0;
  while (i < t->key_count && t->keys[i] != GROUP_BY_DAY)
    i++;
  return i;
}

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

struct day_changes {
  const struct group_by_table *table;
  size_t series; /* with each figure its own */
  struct exact_day *days;
  struct day_change *list;
  size_t count;
};

static void change_of_series(struct day_changes *d, const size_t *groups, size_t n) {
  size_t day = day_key(d->table);
  for (size_t f = 0; f < ARRAY_LEN(figures); f++) {
    struct day_change found = {.figure = figures[f].name, .group = groups[0]};
    for (size_t i = 0; i < n; i++) {
      const struct group_by_row *g = &d->table->groups[groups[i]];
      d->days[i] = (struct exact_day){g->keys[day], figures[f].of(g), g->judgments};
    }
    if (!exact_change(d->days, n, d->series, &found.change))
      continue;
    d->list = xrealloc(d->list, (d->count + 1) * sizeof *d->list);
    d->list[d->count++] = found;
  }
}

struct day_change *day_changes(const struct aggregate *c, size_t *count) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  struct day_changes d = {.table = t, .series = ARRAY_LEN(figures)};
  *count = 0;
  if (day_key(t) == t->key_count || group_by_stage(t) || t->count == 0)
    return NULL;
  size_t *order = xcalloc(t->count, sizeof *order);
  for (size_t i = 0; i < t->count; i++)
    order[i] = i;
  qsort_r(order, t->count, sizeof *order, day_order, (void *)t);
  for (size_t i = 1; i < t->count; i++)
    d.series += series_order(t, order[i - 1], order[i]) != 0 ? ARRAY_LEN(figures) : 0;
  d.days = xcalloc(t->count, sizeof *d.days);
  for (size_t from = 0, to = 0; from < t->count; from = to) {
    while (to < t->count && series_order(t, order[from], order[to]) == 0)
      to++;
    change_of_series(&d, order + from, to - from);
  }
  free(d.days);
  free(order);
  *count = d.count;
  return d.list;
}

/* --- output --- */

static void change_put_side(struct buf *out, const struct exact_day *side) {
  double percent = 100 * (double)side->hits / (double)side->all;
  buf_printf(out, "%.*f %% (%llu of %llu)", percent > 0 && percent < 1 ? 1 : 0, percent,
             (unsigned long long)side->hits, (unsigned long long)side->all);
}

static struct tm day_date(uint32_t day) {
  time_t at = (time_t)day * 24 * 3600;
  struct tm tm = {0};
  (void)gmtime_r(&at, &tm);
  return tm;
}

void day_change_text(const struct aggregate *c, const struct day_change *change, struct buf *out) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  const struct exact_day *before = &change->change.before, *since = &change->change.since;
  bool rose = (double)since->hits * (double)before->all > (double)before->hits * (double)since->all;
  const struct tm tm = day_date(since->day);
  char date[32] = "";
  for (size_t k = 0, n = 0; k < t->key_count; k++) {
    if (t->keys[k] == GROUP_BY_DAY)
      continue;
    buf_printf(out, "%s%s=", n++ > 0 ? ", " : "", group_by_key_name(t->keys[k]));
    group_by_key_text(t, &t->groups[change->group], k, &c->names, out);
  }
  buf_puts(out, t->key_count > 1 ? ": " : "");
  for (size_t f = 0; f < ARRAY_LEN(figures); f++)
    if (strcmp(figures[f].name, change->figure) == 0)
      buf_puts(out, figures[f].words);
  buf_puts(out, rose ? " rose from " : " fell from ");
  change_put_side(out, before);
  buf_puts(out, " to ");
  change_put_side(out, since);
  (void)strftime(date, sizeof date, "%e %B %Y", &tm);
  buf_printf(out, " since %s", date + strspn(date, " "));
}

static json_t *change_side_json(const struct exact_day *side) {
  return json_pack("{sI sI}", "count", (json_int_t)side->hits, "judgments", (json_int_t)side->all);
}

json_t *day_change_json(const struct aggregate *c, const struct day_change *change) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  buf_auto_t text = {0};
  const struct tm tm = day_date(change->change.since.day);
  char date[32] = "";
  json_t *group = json_object();
  for (size_t k = 0; k < t->key_count; k++) {
    buf_auto_t key = {0};
    group_by_key_text(t, &t->groups[change->group], k, &c->names, &key);
    if (t->keys[k] != GROUP_BY_DAY)
      json_object_set_new(group, group_by_key_name(t->keys[k]), json_text(buf_view(&key)));
  }
  (void)strftime(date, sizeof date, "%Y-%m-%d", &tm);
  day_change_text(c, change, &text);
  return json_pack("{so ss ss so so so}", "group", group, "figure", change->figure, "day", date,
                   "before", change_side_json(&change->change.before), "since",
                   change_side_json(&change->change.since), "text", json_text(buf_view(&text)));
}
