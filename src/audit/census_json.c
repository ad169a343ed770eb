/* Writes a census as JSON. */
#include "audit/census.h"
#include "format/json_write.h"

#include <stdio.h>
#include <string.h>

static const double nano = 1e9;

static void census_put(json_t *out, const char *key, json_t *value) {
  json_object_set_new_nocheck(out, key, value);
}

static json_t *count_json(uint64_t n) {
  return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *word_json(const struct name_list *names, uint32_t number) {
  struct str word = names_text(names, number);
  return word.p != NULL ? json_text(word) : json_null();
}

static json_t *use_json(const struct row_use *use) {
  json_t *out = json_object();
  census_put(out, "calls", json_integer(use->calls));
  census_put(out, "duration_ms", json_integer(use->ms));
  census_put(out, "input", json_integer(use->input));
  census_put(out, "output", json_integer(use->output));
  census_put(out, "cost_usd", json_real((double)use->cost_nano / nano));
  if (use->unpriced > 0)
    census_put(out, "unpriced", json_integer(use->unpriced));
  return out;
}

/* Writes a spread as JSON. unit: the divisor of its numbers. */
static json_t *spread_json(const struct spread *m, double unit) {
  static const int percents[] = {50, 90, 99};
  json_t *out = json_object();
  for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
    char name[8];
    uint64_t value = spread_at(m, percents[i]);
    (void)snprintf(name, sizeof name, "p%d", percents[i]);
    census_put(out, name, unit > 1 ? json_real((double)value / unit) : count_json(value));
  }
  return out;
}

static json_t *mended_json(const uint64_t mended[TALLY_MENDED_COUNT]) {
  json_t *out = json_object();
  for (size_t i = 1; i < TALLY_MENDED_COUNT; i++) {
    char name[8];
    (void)snprintf(name, sizeof name, "%zu", i);
    if (mended[i] > 0)
      census_put(out, name, count_json(mended[i]));
  }
  return out;
}

static json_t *outcomes_json(const struct tally_group *g) {
  json_t *out = json_object();
  for (int i = 0; i < OUTCOME_COUNT; i++)
    if (g->outcomes[i] > 0)
      census_put(out, stage_outcome_name((enum stage_outcome)i), count_json(g->outcomes[i]));
  if (g->outcomes[OUTCOME_COUNT] > 0)
    census_put(out, "unknown", count_json(g->outcomes[OUTCOME_COUNT]));
  return out;
}

static void put_answers(json_t *out, const struct tally_group *g) {
  if (g->readings > 0)
    census_put(out, "readings",
               json_pack("{so so so}", "answers", count_json(g->readings), "first_pass",
                         count_json(g->reading_first_pass), "after",
                         mended_json(g->reading_mended)));
  if (g->values > 0)
    census_put(out, "values",
               json_pack("{so so so so so}", "asked", count_json(g->values), "first_pass",
                         count_json(g->value_first_pass), "after", mended_json(g->value_mended),
                         "repaired", count_json(g->value_repaired), "none",
                         count_json(g->value_none)));
}

/* Writes counts, use and percentiles of a group, without its keys. */
static void put_numbers(json_t *out, const struct census *c, const struct tally_table *t,
                        const struct tally_group *g) {
  census_put(out, "judgments", count_json(g->judgments));
  census_put(out, "share", json_real(census_share(c, g->judgments)));
  if (tally_by_stage(t))
    census_put(out, "stages", count_json(g->units));
  census_put(out, "decided", count_json(g->decided));
  census_put(out, "no_rule", count_json(g->no_rule));
  census_put(out, "ambiguous", count_json(g->ambiguous));
  census_put(out, "unsure", count_json(g->unsure));
  census_put(out, "outcomes", outcomes_json(g));
  census_put(out, "use", use_json(&g->use));
  census_put(out, "unsure_use", use_json(&g->unsure_use));
  if (!tally_by_stage(t))
    census_put(out, "work", use_json(&g->work));
  census_put(out, "duration_ms", spread_json(&g->ms, 1));
  census_put(out, "tokens", spread_json(&g->tokens, 1));
  census_put(out, "cost_usd", spread_json(&g->cost, nano));
  put_answers(out, g);
}

static void put_keys(json_t *out, const struct census *c, const struct tally_table *t,
                     const struct tally_group *g) {
  for (size_t i = 0; i < t->key_count; i++) {
    struct buf text = {0};
    tally_key_text(t, g, i, &c->names, &text);
    if (text.n == 0)
      census_put(out, tally_key_name(t->keys[i]), json_null());
    else if (t->keys[i] == TALLY_RULE)
      census_put(out, tally_key_name(t->keys[i]), json_integer((json_int_t)g->keys[i]));
    else
      census_put(out, tally_key_name(t->keys[i]), json_text(buf_view(&text)));
    buf_deinit(&text);
  }
}

static json_t *group_json(const struct census *c, enum census_table table, size_t i) {
  const struct tally_table *t = &c->tables[table];
  json_t *group = json_object();
  put_keys(group, c, t, &t->groups[i]);
  put_numbers(group, c, t, &t->groups[i]);
  return group;
}

static json_t *table_json(const struct census *c, enum census_table table) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->tables[table].count && i < LIMIT_AUDIT_LIST_COUNT; i++)
    json_array_append_new(list, group_json(c, table, i));
  return list;
}

/* Lists stages that did not decide, where that led, and why. */
static json_t *falls_json(const struct census *c) {
  const struct tally_table *t = &c->tables[CENSUS_FALLS];
  json_t *list = json_array();
  for (size_t i = 0; i < t->count && json_array_size(list) < LIMIT_AUDIT_LIST_COUNT; i++) {
    const struct tally_group *g = &t->groups[i];
    if (g->units == g->decided)
      continue;
    json_t *fall = json_object();
    put_keys(fall, c, t, g);
    census_put(fall, "count", count_json(g->units - g->decided));
    census_put(fall, "use", use_json(&g->use));
    json_array_append_new(list, fall);
  }
  return list;
}

static json_t *methods_json(const struct census *c) {
  const struct tally_table *t = &c->tables[CENSUS_METHODS];
  json_t *out = json_object();
  for (size_t i = 0; i < t->count; i++) {
    struct buf text = {0};
    tally_key_text(t, &t->groups[i], 0, &c->names, &text);
    if (text.n > 0)
      census_put(out, buf_c(&text), count_json(t->groups[i].judgments));
    buf_deinit(&text);
  }
  return out;
}

static json_t *logs_json(const struct census *c) {
  json_t *out = json_object(), *apart = json_array();
  uint64_t read = 0;
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    read += c->logs[i];
  census_put(out, "read", count_json(read));
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    census_put(out, rows_log_name((enum rows_log)i), count_json(c->logs[i]));
  census_put(out, "bytes", count_json(c->rows.bytes));
  for (size_t i = 0; i < c->apart_count; i++) {
    const struct census_apart *a = &c->apart[i];
    json_t *item = json_object();
    census_put(item, "log", json_text(str_from(a->log)));
    census_put(item, "state", json_string(rows_log_name(a->state)));
    if (a->why[0] != '\0')
      census_put(item, "why", json_text(str_from(a->why)));
    json_array_append_new(apart, item);
  }
  census_put(out, "apart", apart);
  return out;
}

static json_t *sessions_json(const struct census *c) {
  json_t *out = json_object();
  for (size_t i = 0; i < c->outcome_count; i++) {
    struct str word = names_text(&c->names, c->outcomes[i].word);
    char key[LIMIT_AUDIT_NAME_BYTES + 1];
    (void)snprintf(key, sizeof key, STR_FMT, STR_ARG(word));
    census_put(out, key, count_json(c->outcomes[i].count));
  }
  return json_pack("{so so so}", "counted", count_json(c->sessions), "outcomes", out,
                   "judge_unavailable", count_json(c->unavailable));
}

static json_t *causes_json(const struct census *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->cause_count; i++)
    json_array_append_new(list,
                          json_pack("{so so so}", "cause", word_json(&c->names, c->causes[i].cause),
                                    "count", count_json(c->causes[i].count), "example",
                                    json_text(str_from(c->causes[i].example))));
  return list;
}

static enum census_table census_groups(const struct census *c) {
  return c->tables[CENSUS_BY].key_count > 0 ? CENSUS_BY : CENSUS_METHODS;
}

json_t *census_group_json(const struct census *c, size_t i) {
  enum census_table table = census_groups(c);
  return i < c->tables[table].count ? group_json(c, table, i) : NULL;
}

json_t *census_totals_json(const struct census *c) {
  static const struct tally_group nothing;
  const struct tally_table *all = &c->tables[CENSUS_ALL], *by = &c->tables[CENSUS_BY];
  json_t *totals = json_object();
  put_numbers(totals, c, all, all->count > 0 ? &all->groups[0] : &nothing);
  census_put(totals, "rule_no_match", count_json(c->no_match));
  census_put(totals, "match_methods", methods_json(c));
  census_put(totals, "sessions", sessions_json(c));
  census_put(totals, "logs", logs_json(c));
  census_put(totals, "by_stage", table_json(c, CENSUS_STAGES));
  census_put(totals, "fall_through", falls_json(c));
  census_put(totals, "movements", table_json(c, CENSUS_MOVEMENTS));
  census_put(totals, "judges", table_json(c, CENSUS_JUDGES));
  census_put(totals, "failures", causes_json(c));
  if (by->left_out > 0)
    census_put(totals, "left_out", count_json(by->left_out));
  return totals;
}
