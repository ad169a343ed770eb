/* Estimates how often verdicts are wrong. */
#include "audit/error_rate.h"

#include "base/log.h"
#include "format/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- counting --- */

static size_t rate_find(struct error_rate *e, char kind, size_t a, size_t b, size_t c, size_t at) {
  char key[64];
  uint32_t found = (uint32_t)at;
  int n = snprintf(key, sizeof key, "%c%zu %zu %zu", kind, a, b, c);
  (void)map_add(&e->map, &e->arena, (struct str){key, (size_t)n}, &found);
  return found;
}

static size_t rate_cell(struct error_rate *e, size_t group, const struct row *row,
                        enum rejudged_says says) {
  size_t at = rate_find(e, 'c', group, row->rule, says, e->cell_count);
  if (at == e->cell_count) {
    e->cells = xrealloc(e->cells, (at + 1) * sizeof *e->cells);
    e->cells[e->cell_count++] = (struct error_rate_cell){group, row->rule, says, 0};
  }
  e->cells[at].population++;
  return at;
}

static size_t rate_person(struct error_rate *e, const char *name) {
  size_t i = 0;
  while (i < e->person_count && strcmp(e->persons[i], name) != 0)
    i++;
  if (i == e->person_count) {
    e->persons = xrealloc(e->persons, (i + 1) * sizeof(char *));
    e->persons[e->person_count++] = xstrndup(name, strlen(name));
  }
  return i;
}

static void rate_label_of(struct error_rate *e, size_t cell, const struct agree_rating *label) {
  size_t person = rate_person(e, label->rater + strlen("label "));
  size_t at = rate_find(e, 't', cell, person, 0, e->tally_count);
  if (at == e->tally_count) {
    e->tallies = xrealloc(e->tallies, (at + 1) * sizeof *e->tallies);
    e->tallies[e->tally_count++] = (struct error_rate_tally){.cell = cell, .person = person};
  }
  struct error_rate_tally *t = &e->tallies[at];
  t->labels++;
  t->n += label->weight;
  t->squares += label->weight * label->weight;
  t->called[kappa_category(label->rule)] += label->weight;
}

/* The second judge is known only when what is beside the first store's logs was read. */
static enum rejudged_says rate_second(struct error_rate *e, const struct row *row) {
  const struct rejudged *again = &e->agree->again;
  if (!e->has_second && e->err.code == ERR_NONE)
    e->has_second = rejudged_second(again, e->second_named, &e->second, &e->err);
  if (e->second == DICTIONARY_NONE)
    return REJUDGED_NOTHING;
  return rejudged_says(again, e->second, e->agree->rows.session.id, row->turn, (long)row->rule);
}

static void rate_on_turn(void *ctx, const struct row *row, const struct agree_rating *ratings,
                         size_t n) {
  struct error_rate *e = ctx;
  struct group_by_table *groups = &e->aggregate->tables[AGGREGATE_BY];
  if (!aggregate_needs_judge(row) || n == 0 || strcmp(ratings[0].rater, "verdict") != 0)
    return;
  group_by_add(groups, row);
  size_t group = group_by_row_of(groups, row);
  if (group == SIZE_MAX)
    return;
  size_t cell = rate_cell(e, group, row, rate_second(e, row));
  for (size_t i = 1; i < n; i++)
    if (ratings[i].weight > 0)
      rate_label_of(e, cell, &ratings[i]);
}

struct error_rate *error_rate_new(struct aggregate *aggregate, const char *second) {
  struct error_rate *e = xcalloc(1, sizeof *e);
  e->aggregate = aggregate;
  e->second_named = second;
  e->agree = agree_new(aggregate);
  e->agree->on_rated = rate_on_turn;
  e->agree->ctx = e;
  return e;
}

/* --- estimating --- */

struct rate_group { /* the cells of one group, and one person's labels in them */
  size_t count;
  size_t *cells;
  struct exact_cell *labels;
  const struct error_rate_tally **tallies; /* NULL: no label there */
};

/* Estimates in how many judgments `rule` is right; UINT32_MAX: in how many the verdict is wrong. */
static struct exact rate_of(const struct error_rate *e, const struct rate_group *g, uint32_t rule) {
  for (size_t i = 0; i < g->count; i++) {
    const struct error_rate_tally *t = g->tallies[i];
    bool wrong = rule == UINT32_MAX;
    long of = wrong ? e->cells[g->cells[i]].rule : rule;
    double called = t != NULL ? t->called[kappa_category(of)] : 0;
    g->labels[i].hits = wrong ? fmax(0, g->labels[i].n - called) : called;
  }
  return exact_cells(g->labels, g->count);
}

static struct exact rate_alone(const struct rate_group *g) {
  struct exact_cell all = {0};
  for (size_t i = 0; i < g->count; i++) {
    all.population += g->labels[i].population;
    all.n += g->labels[i].n;
    all.hits += g->labels[i].hits;
    all.squares += g->labels[i].squares;
  }
  return exact_cells(&all, 1);
}

static void rate_rules(const struct error_rate *e, const struct rate_group *g,
                       struct error_rate_result *r) {
  for (size_t i = 0; i < g->count; i++) {
    const struct error_rate_cell *cell = &e->cells[g->cells[i]];
    size_t k = 0;
    while (k < r->rule_count && r->rules[k].rule < cell->rule)
      k++;
    if (k == r->rule_count || r->rules[k].rule != cell->rule) {
      r->rules = xrealloc(r->rules, (r->rule_count + 1) * sizeof *r->rules);
      memmove(&r->rules[k + 1], &r->rules[k], (r->rule_count++ - k) * sizeof *r->rules);
      r->rules[k] = (struct error_rate_rule){.rule = cell->rule};
    }
    r->rules[k].named += cell->population / r->judgments;
  }
  for (size_t k = 0; k < r->rule_count; k++)
    r->rules[k].right = rate_of(e, g, r->rules[k].rule);
}

static void rate_result(struct error_rate *e, const struct rate_group *g, const char *person,
                        size_t group) {
  struct error_rate_result r = {.group = group, .person = person, .next = SIZE_MAX};
  for (size_t i = 0; i < g->count; i++) {
    r.judgments += g->labels[i].population;
    r.labels += g->tallies[i] != NULL ? g->tallies[i]->labels : 0;
  }
  if (g->count > 0 && r.labels > 0)
    rate_rules(e, g, &r);
  r.wrong = rate_of(e, g, UINT32_MAX);
  r.alone = rate_alone(g);
  size_t next = exact_next(g->labels, g->count);
  if (next < g->count) {
    r.next = g->cells[next];
    r.next_labels = g->tallies[next] != NULL ? g->tallies[next]->labels : 0;
  }
  e->results = xrealloc(e->results, (e->count + 1) * sizeof *e->results);
  e->results[e->count++] = r;
}

/* Gathers a group's cells and a person's labels in them. Returns whether the person has any. */
static bool rate_gather(const struct error_rate *e, size_t group, size_t person,
                        struct rate_group *g) {
  bool any = false;
  g->count = 0;
  for (size_t i = 0; i < e->cell_count; i++) {
    if (e->cells[i].group != group)
      continue;
    const struct error_rate_tally *t = NULL;
    for (size_t k = 0; k < e->tally_count && t == NULL; k++)
      if (e->tallies[k].cell == i && e->tallies[k].person == person)
        t = &e->tallies[k];
    any = any || t != NULL;
    g->cells[g->count] = i;
    g->tallies[g->count] = t;
    g->labels[g->count++] = (struct exact_cell){.population = e->cells[i].population,
                                                .n = t != NULL ? t->n : 0,
                                                .squares = t != NULL ? t->squares : 0};
  }
  return any;
}

bool error_rate_end(struct error_rate *e, struct err *err) {
  size_t groups = e->aggregate->tables[AGGREGATE_BY].count;
  struct rate_group g = {.cells = xcalloc(e->cell_count + 1, sizeof *g.cells),
                         .labels = xcalloc(e->cell_count + 1, sizeof *g.labels),
                         .tallies = xcalloc(e->cell_count + 1, sizeof *g.tallies)};
  for (size_t i = 0; i < groups; i++) {
    bool any = false;
    for (size_t person = 0; person < e->person_count; person++)
      if (rate_gather(e, i, person, &g)) {
        rate_result(e, &g, e->persons[person], i);
        any = true;
      }
    if (!any) {
      (void)rate_gather(e, i, SIZE_MAX, &g);
      rate_result(e, &g, NULL, i);
    }
  }
  free(g.cells);
  free(g.labels);
  free(g.tallies);
  *err = e->err;
  return e->err.code == ERR_NONE;
}

/* --- output --- */

void error_rate_group(const struct error_rate *e, const struct error_rate_result *r,
                      struct buf *out) {
  const struct group_by_table *t = &e->aggregate->tables[AGGREGATE_BY];
  for (size_t i = 0; i < t->key_count; i++) {
    buf_printf(out, "%s%s=", i > 0 ? ", " : "", group_by_key_name(t->keys[i]));
    group_by_key_text(t, &t->groups[r->group], i, &e->aggregate->names, out);
  }
}

void error_rate_next(const struct error_rate *e, const struct error_rate_result *r,
                     struct buf *out) {
  static const char *const says[] = {"says nothing", "says the same", "says another rule"};
  if (e->second == DICTIONARY_NONE)
    buf_puts(out, "with a second judge the same labels tell more (segue rejudge --provider P); ");
  if (r->next == SIZE_MAX) {
    buf_puts(out, "all are labelled");
    return;
  }
  const struct error_rate_cell *cell = &e->cells[r->next];
  buf_printf(out, "label next: verdicts of rule %u", cell->rule);
  if (e->second != DICTIONARY_NONE)
    buf_printf(out, " of which %s %s", dictionary_text(&e->aggregate->names, e->second).p,
               says[cell->says]);
  buf_printf(out, " (%lu of %.0f labelled)", r->next_labels, cell->population);
}

static json_t *text_or_null(struct str text) {
  return text.n > 0 ? json_text(text) : json_null();
}

static json_t *rate_json(const struct exact *x) {
  return json_pack("[fff]", x->share, x->low, x->high);
}

json_t *error_rate_json(const struct error_rate *e, const struct error_rate_result *r) {
  const struct group_by_table *t = &e->aggregate->tables[AGGREGATE_BY];
  buf_auto_t next = {0};
  json_t *group = json_object(), *rules = json_array();
  for (size_t i = 0; i < t->key_count; i++) {
    buf_auto_t text = {0};
    group_by_key_text(t, &t->groups[r->group], i, &e->aggregate->names, &text);
    json_object_set_new(group, group_by_key_name(t->keys[i]), json_text(buf_view(&text)));
  }
  for (size_t i = 0; i < r->rule_count; i++)
    json_array_append_new(rules,
                          json_pack("{sI sf so}", "rule", (json_int_t)r->rules[i].rule, "named",
                                    r->rules[i].named, "right", rate_json(&r->rules[i].right)));
  error_rate_next(e, r, &next);
  return json_pack("{so so so sI sI so so so so}", "group", group, "person",
                   text_or_null(str_from(r->person)), "second",
                   text_or_null(dictionary_text(&e->aggregate->names, e->second)), "judgments",
                   (json_int_t)r->judgments, "labels", (json_int_t)r->labels, "wrong",
                   r->labels > 0 ? rate_json(&r->wrong) : json_null(), "alone",
                   r->labels > 0 ? rate_json(&r->alone) : json_null(), "rules", rules, "next",
                   json_text(buf_view(&next)));
}

void error_rate_free(struct error_rate *e) {
  if (e == NULL)
    return;
  agree_free(e->agree);
  for (size_t i = 0; i < e->person_count; i++)
    free(e->persons[i]);
  for (size_t i = 0; i < e->count; i++)
    free(e->results[i].rules);
  free(e->persons);
  free(e->cells);
  free(e->tallies);
  free(e->results);
  map_deinit(&e->map);
  arena_deinit(&e->arena);
  free(e);
}
