/* Writes an aggregate as JSON. */
#include "audit/aggregate.h"
#include "format/json_write.h"

#include <string.h>

static const double nano = 1e9;

static void aggregate_put(json_t *out, const char *key, json_t *value) {
  json_object_set_new_nocheck(out, key, value);
}

static json_t *count_json(uint64_t n) {
  return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *word_json(const struct name_list *names, uint32_t number) {
  struct str word = dictionary_text(names, number);
  return word.p != NULL ? json_text(word) : json_null();
}

static json_t *use_json(const struct row_use *use) {
  json_t *out = json_object();
  aggregate_put(out, "calls", json_integer(use->calls));
  aggregate_put(out, "duration_ms", json_integer(use->ms));
  aggregate_put(out, "input", json_integer(use->input));
  aggregate_put(out, "output", json_integer(use->output));
  aggregate_put(out, "cost_usd", json_real((double)use->cost_nano / nano));
  if (use->unpriced > 0)
    aggregate_put(out, "unpriced", json_integer(use->unpriced));
  return out;
}

/* Writes a spread as JSON. unit: the divisor of its numbers. */
static json_t *spread_json(const struct percentiles *m, double unit) {
  static const int percents[] = {50, 90, 99};
  json_t *out = json_object();
  for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
    char name[8];
    uint64_t value = percentiles_at(m, percents[i]);
    print_into(name, sizeof name, "p%d", percents[i]);
    aggregate_put(out, name, unit > 1 ? json_real((double)value / unit) : count_json(value));
  }
  return out;
}

static json_t *mended_json(const uint64_t mended[GROUP_BY_MENDED_COUNT]) {
  json_t *out = json_object();
  for (size_t i = 1; i < GROUP_BY_MENDED_COUNT; i++) {
    char name[8];
    print_into(name, sizeof name, "%zu", i);
    if (mended[i] > 0)
      aggregate_put(out, name, count_json(mended[i]));
  }
  return out;
}

static json_t *outcomes_json(const struct group_by_row *g) {
  json_t *out = json_object();
  for (int i = 0; i < OUTCOME_COUNT; i++)
    if (g->outcomes[i] > 0)
      aggregate_put(out, stage_outcome_name((enum stage_outcome)i), count_json(g->outcomes[i]));
  if (g->outcomes[OUTCOME_COUNT] > 0)
    aggregate_put(out, "unknown", count_json(g->outcomes[OUTCOME_COUNT]));
  return out;
}

static void put_answers(json_t *out, const struct group_by_row *g) {
  if (g->readings > 0)
    aggregate_put(out, "readings",
                  json_pack("{so so so}", "answers", count_json(g->readings), "first_pass",
                            count_json(g->reading_first_pass), "after",
                            mended_json(g->reading_mended)));
  if (g->values > 0)
    aggregate_put(out, "values",
                  json_pack("{so so so so so}", "asked", count_json(g->values), "first_pass",
                            count_json(g->value_first_pass), "after", mended_json(g->value_mended),
                            "repaired", count_json(g->value_repaired), "none",
                            count_json(g->value_none)));
}

/* Writes counts, use and percentiles of a group, without its keys. */
static void put_numbers(json_t *out, const struct aggregate *c, const struct group_by_table *t,
                        const struct group_by_row *g) {
  aggregate_put(out, "judgments", count_json(g->judgments));
  aggregate_put(out, "share", json_real(aggregate_share(c, g->judgments)));
  if (group_by_stage(t))
    aggregate_put(out, "stages", count_json(g->units));
  aggregate_put(out, "decided", count_json(g->decided));
  aggregate_put(out, "no_rule", count_json(g->no_rule));
  aggregate_put(out, "ambiguous", count_json(g->ambiguous));
  aggregate_put(out, "unsure", count_json(g->unsure));
  aggregate_put(out, "outcomes", outcomes_json(g));
  aggregate_put(out, "use", use_json(&g->use));
  aggregate_put(out, "unsure_use", use_json(&g->unsure_use));
  if (!group_by_stage(t))
    aggregate_put(out, "work", use_json(&g->work));
  aggregate_put(out, "duration_ms", spread_json(&g->ms, 1));
  aggregate_put(out, "tokens", spread_json(&g->tokens, 1));
  aggregate_put(out, "cost_usd", spread_json(&g->cost, nano));
  put_answers(out, g);
}

static void put_keys(json_t *out, const struct aggregate *c, const struct group_by_table *t,
                     const struct group_by_row *g) {
  for (size_t i = 0; i < t->key_count; i++) {
    struct buf text = {0};
    group_by_key_text(t, g, i, &c->names, &text);
    if (text.n == 0)
      aggregate_put(out, group_by_key_name(t->keys[i]), json_null());
    else if (t->keys[i] == GROUP_BY_RULE)
      aggregate_put(out, group_by_key_name(t->keys[i]), json_integer((json_int_t)g->keys[i]));
    else
      aggregate_put(out, group_by_key_name(t->keys[i]), json_text(buf_view(&text)));
    buf_deinit(&text);
  }
}

static json_t *group_json(const struct aggregate *c, enum aggregate_table table, size_t i) {
  const struct group_by_table *t = &c->tables[table];
  json_t *group = json_object();
  put_keys(group, c, t, &t->groups[i]);
  put_numbers(group, c, t, &t->groups[i]);
  return group;
}

static json_t *table_json(const struct aggregate *c, enum aggregate_table table) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->tables[table].count && i < LIMIT_AUDIT_LIST_COUNT; i++)
    json_array_append_new(list, group_json(c, table, i));
  return list;
}

/* Lists stages that did not decide, where that led, and why. */
static json_t *falls_json(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_FALLS];
  json_t *list = json_array();
  for (size_t i = 0; i < t->count && json_array_size(list) < LIMIT_AUDIT_LIST_COUNT; i++) {
    const struct group_by_row *g = &t->groups[i];
    if (g->units == g->decided)
      continue;
    json_t *fall = json_object();
    put_keys(fall, c, t, g);
    aggregate_put(fall, "count", count_json(g->units - g->decided));
    aggregate_put(fall, "use", use_json(&g->use));
    json_array_append_new(list, fall);
  }
  return list;
}

static json_t *methods_json(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_METHODS];
  json_t *out = json_object();
  for (size_t i = 0; i < t->count; i++) {
    struct buf text = {0};
    group_by_key_text(t, &t->groups[i], 0, &c->names, &text);
    if (text.n > 0)
      aggregate_put(out, buf_c(&text), count_json(t->groups[i].judgments));
    buf_deinit(&text);
  }
  return out;
}

static json_t *logs_json(const struct aggregate *c) {
  json_t *out = json_object(), *apart = json_array();
  uint64_t read = 0;
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    read += c->logs[i];
  aggregate_put(out, "read", count_json(read));
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    aggregate_put(out, rows_log_name((enum rows_log)i), count_json(c->logs[i]));
  aggregate_put(out, "bytes", count_json(c->rows.bytes));
  for (size_t i = 0; i < c->apart_count; i++) {
    const struct aggregate_apart *a = &c->apart[i];
    json_t *item = json_object();
    aggregate_put(item, "log", json_text(str_from(a->log)));
    aggregate_put(item, "state", json_string(rows_log_name(a->state)));
    if (a->why[0] != '\0')
      aggregate_put(item, "why", json_text(str_from(a->why)));
    json_array_append_new(apart, item);
  }
  aggregate_put(out, "apart", apart);
  return out;
}

static json_t *sessions_json(const struct aggregate *c) {
  json_t *out = json_object();
  for (size_t i = 0; i < c->outcome_count; i++) {
    struct str word = dictionary_text(&c->names, c->outcomes[i].word);
    char key[LIMIT_AUDIT_NAME_BYTES + 1];
    print_into(key, sizeof key, STR_FMT, STR_ARG(word));
    aggregate_put(out, key, count_json(c->outcomes[i].count));
  }
  return json_pack("{so so so}", "counted", count_json(c->sessions), "outcomes", out,
                   "judge_unavailable", count_json(c->unavailable));
}

static json_t *causes_json(const struct aggregate *c) {
  json_t *list = json_array();
  for (size_t i = 0; i < c->cause_count; i++)
    json_array_append_new(list,
                          json_pack("{so so so}", "cause", word_json(&c->names, c->causes[i].word),
                                    "count", count_json(c->causes[i].count), "example",
                                    json_text(str_from(c->causes[i].example))));
  return list;
}

static enum aggregate_table aggregate_groups(const struct aggregate *c) {
  return c->tables[AGGREGATE_BY].key_count > 0 ? AGGREGATE_BY : AGGREGATE_METHODS;
}

json_t *aggregate_group_json(const struct aggregate *c, size_t i) {
  enum aggregate_table table = aggregate_groups(c);
  return i < c->tables[table].count ? group_json(c, table, i) : NULL;
}

json_t *aggregate_totals_json(const struct aggregate *c) {
  static const struct group_by_row nothing;
  const struct group_by_table *all = &c->tables[AGGREGATE_ALL], *by = &c->tables[AGGREGATE_BY];
  json_t *totals = json_object();
  put_numbers(totals, c, all, all->count > 0 ? &all->groups[0] : &nothing);
  aggregate_put(totals, "rule_no_match", count_json(c->no_match));
  aggregate_put(totals, "match_methods", methods_json(c));
  aggregate_put(totals, "sessions", sessions_json(c));
  aggregate_put(totals, "logs", logs_json(c));
  aggregate_put(totals, "by_stage", table_json(c, AGGREGATE_STAGES));
  aggregate_put(totals, "fall_through", falls_json(c));
  aggregate_put(totals, "movements", table_json(c, AGGREGATE_MOVEMENTS));
  aggregate_put(totals, "judges", table_json(c, AGGREGATE_JUDGES));
  aggregate_put(totals, "failures", causes_json(c));
  if (by->left_out > 0)
    aggregate_put(totals, "left_out", count_json(by->left_out));
  return totals;
}
