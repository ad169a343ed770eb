/* Estimates how often verdicts are wrong. */
#include "audit/error_rate.h"

#include "audit/exact.h"
#include "base/log.h"
#include "format/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rate_cell {
  size_t group;
  uint32_t rule;
  enum rejudged_says says;
  double population;
};

struct rate_tally { /* labels of one person in one cell */
  size_t cell, person;
  unsigned long labels;
  double n, squares, called[KAPPA_CATEGORIES]; /* sums of weights */
};

struct rate_part { /* of the group and person that are looked at */
  const struct rate_cell *cell;
  const struct rate_tally *tally; /* NULL: no label there */
};

struct error_rate {
  struct aggregate *aggregate;
  struct agree *agree;
  const char *second_named;
  uint32_t second;
  bool has_second; /* it was looked for */
  struct err err;
  struct rate_cell *cells;
  struct rate_tally *tallies;
  struct name_list persons;
  size_t cell_count, tally_count, part_count;
  struct rate_part *parts;
  struct exact_cell *labels; /* of the parts */
  struct map map;
  struct arena arena;
};

/* --- counting --- */

/* Returns the place of what has these numbers; `at`: it is new, and gets this place. */
static size_t rate_find(struct error_rate *e, char kind, size_t a, size_t b, size_t c, size_t at) {
  char key[80];
  uint32_t found = (uint32_t)at;
  int n = snprintf(key, sizeof key, "%c%zu %zu %zu", kind, a, b, c);
  (void)map_add(&e->map, &e->arena, (struct str){key, (size_t)n}, &found);
  return found;
}

static size_t rate_cell_of(struct error_rate *e, size_t group, const struct row *row) {
  enum rejudged_says says = REJUDGED_NOTHING;
  /* The second judge is known only when what is beside the first store's logs was read. */
  if (!e->has_second && e->err.code == ERR_NONE)
    e->has_second = rejudged_second(&e->agree->again, e->second_named, &e->second, &e->err);
  if (e->second != DICTIONARY_NONE)
    says = rejudged_says(&e->agree->again, e->second, e->agree->rows.session.id, row->turn,
                         (long)row->rule);
  size_t at = rate_find(e, 'c', group, row->rule, says, e->cell_count);
  if (at == e->cell_count) {
    e->cells = xrealloc(e->cells, (at + 1) * sizeof *e->cells);
    e->cells[e->cell_count++] = (struct rate_cell){group, row->rule, says, 0};
  }
  e->cells[at].population++;
  return at;
}

static void rate_label_of(struct error_rate *e, size_t cell, const struct agree_rating *label) {
  size_t person = dictionary_add(&e->persons, str_from(label->rater + strlen("label ")));
  size_t at = rate_find(e, 't', cell, person, 0, e->tally_count);
  if (at == e->tally_count) {
    e->tallies = xrealloc(e->tallies, (at + 1) * sizeof *e->tallies);
    e->tallies[e->tally_count++] = (struct rate_tally){.cell = cell, .person = person};
  }
  struct rate_tally *t = &e->tallies[at];
  t->labels++;
  t->n += label->weight;
  t->squares += label->weight * label->weight;
  t->called[kappa_category(label->rule)] += label->weight;
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
  size_t cell = rate_cell_of(e, group, row);
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

struct agree *error_rate_agree(struct error_rate *e) {
  return e->agree;
}

/* --- estimating --- */

/* Gathers a group's cells and a person's labels in them. Returns the number of labels. */
static unsigned long rate_gather(struct error_rate *e, size_t group, size_t person) {
  unsigned long labels = 0;
  e->part_count = 0;
  for (size_t i = 0; i < e->cell_count; i++) {
    const struct rate_tally *t = NULL;
    if (e->cells[i].group != group)
      continue;
    for (size_t k = 0; k < e->tally_count && t == NULL; k++)
      if (e->tallies[k].cell == i && e->tallies[k].person == person)
        t = &e->tallies[k];
    e->labels[e->part_count] = (struct exact_cell){.population = e->cells[i].population};
    if (t != NULL) {
      e->labels[e->part_count].n = t->n;
      e->labels[e->part_count].squares = t->squares;
      labels += t->labels;
    }
    e->parts[e->part_count++] = (struct rate_part){&e->cells[i], t};
  }
  return labels;
}

/* Estimates in how many judgments `rule` is right; -1: in how many the verdict is wrong. */
static json_t *rate_of(const struct error_rate *e, long rule) {
  for (size_t i = 0; i < e->part_count; i++) {
    const struct rate_part *p = &e->parts[i];
    size_t of = kappa_category(rule < 0 ? (long)p->cell->rule : rule);
    double called = p->tally != NULL ? p->tally->called[of] : 0;
    e->labels[i].hits = rule < 0 ? fmax(0, e->labels[i].n - called) : called;
  }
  struct exact x = exact_cells(e->labels, e->part_count);
  return json_pack("[fff]", x.share, x.low, x.high);
}

static json_t *rate_rules(const struct error_rate *e, double judgments) {
  json_t *list = json_array();
  for (uint32_t rule = 0; rule < KAPPA_CATEGORIES; rule++) {
    double named = 0;
    for (size_t i = 0; i < e->part_count; i++)
      named += e->parts[i].cell->rule == rule ? e->parts[i].cell->population : 0;
    if (named > 0)
      json_array_append_new(list, json_pack("{sI sf so}", "rule", (json_int_t)rule, "named",
                                            named / judgments, "right", rate_of(e, (long)rule)));
  }
  return list;
}

/* Appends what to label next, or that a second judge is missing. */
static void rate_next(const struct error_rate *e, struct buf *out) {
  static const char *const says[] = {"nothing", "the same", "another rule"};
  size_t next = exact_next(e->labels, e->part_count);
  if (e->second == DICTIONARY_NONE)
    buf_puts(out, "with a second judge the same labels tell more (segue rejudge --provider P); ");
  if (next == e->part_count) {
    buf_puts(out, "all are labelled");
    return;
  }
  const struct rate_part *p = &e->parts[next];
  buf_printf(out, "label next: verdicts of rule %u", p->cell->rule);
  if (e->second != DICTIONARY_NONE)
    buf_printf(out, " of which %s says %s", dictionary_text(&e->aggregate->names, e->second).p,
               says[p->cell->says]);
  buf_printf(out, " (%lu of %.0f labelled)", p->tally != NULL ? p->tally->labels : 0,
             p->cell->population);
}

static json_t *rate_word(const struct name_list *names, uint32_t word) {
  return word != DICTIONARY_NONE ? json_text(dictionary_text(names, word)) : json_null();
}

static json_t *rate_json(struct error_rate *e, size_t group, uint32_t person) {
  const struct group_by_table *t = &e->aggregate->tables[AGGREGATE_BY];
  unsigned long labels = rate_gather(e, group, person);
  double judgments = (double)t->groups[group].judgments;
  json_t *keys = json_object(), *wrong = labels > 0 ? rate_of(e, -1) : json_null();
  buf_auto_t next = {0};
  for (size_t i = 0; i < t->key_count; i++) {
    buf_auto_t text = {0};
    group_by_key_text(t, &t->groups[group], i, &e->aggregate->names, &text);
    json_object_set_new(keys, group_by_key_name(t->keys[i]), json_text(buf_view(&text)));
  }
  rate_next(e, &next);
  return json_pack(
      "{so so so sI sI so so so}", "group", keys, "person", rate_word(&e->persons, person),
      "second", rate_word(&e->aggregate->names, e->second), "judgments", (json_int_t)judgments,
      "labels", (json_int_t)labels, "wrong", wrong, "rules",
      labels > 0 ? rate_rules(e, judgments) : json_array(), "next", json_text(buf_view(&next)));
}

json_t *error_rate_json(struct error_rate *e, struct err *err) {
  const struct group_by_table *t = &e->aggregate->tables[AGGREGATE_BY];
  json_t *list = json_array();
  e->parts = xcalloc(e->cell_count + 1, sizeof *e->parts);
  e->labels = xcalloc(e->cell_count + 1, sizeof *e->labels);
  for (size_t i = 0; i < t->count; i++) {
    size_t before = json_array_size(list);
    for (uint32_t p = 0; p < e->persons.count; p++)
      if (rate_gather(e, i, p + 2) > 0) /* as dictionary.h numbers words */
        json_array_append_new(list, rate_json(e, i, p + 2));
    if (json_array_size(list) == before)
      json_array_append_new(list, rate_json(e, i, DICTIONARY_NONE));
  }
  if (e->err.code == ERR_NONE)
    return list;
  *err = e->err;
  json_decref(list);
  return NULL;
}

void error_rate_free(struct error_rate *e) {
  agree_free(e->agree);
  dictionary_deinit(&e->persons);
  free(e->cells);
  free(e->tallies);
  free(e->parts);
  free(e->labels);
  map_deinit(&e->map);
  arena_deinit(&e->arena);
  free(e);
}
