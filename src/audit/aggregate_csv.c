/* Writes the groups of an aggregate as CSV (RFC 4180). */
#include "audit/aggregate.h"

#include <string.h>

/* A spreadsheet takes a cell that begins like this for a formula. */
static bool is_formula(struct str text) {
  return text.n > 1 && strchr("=+-@", text.p[0]) != NULL;
}

void aggregate_csv_cell(struct buf *out, struct str text) {
  struct buf safe = {0};
  if (is_formula(text))
    buf_putc(&safe, '\'');
  buf_safe(&safe, text, false);
  bool quoted = memchr(buf_c(&safe), '"', safe.n) != NULL || memchr(buf_c(&safe), ',', safe.n);
  if (quoted)
    buf_putc(out, '"');
  for (size_t i = 0; i < safe.n; i++) {
    if (safe.p[i] == '"')
      buf_putc(out, '"');
    buf_putc(out, safe.p[i]);
  }
  if (quoted)
    buf_putc(out, '"');
  buf_deinit(&safe);
}

static void csv_use(struct buf *out, const struct row_use *use) {
  buf_printf(out, ",%lld,%lld,%lld,%lld,%.9f", (long long)use->calls, (long long)use->ms,
             (long long)use->input, (long long)use->output, (double)use->cost_nano / 1e9);
}

static void csv_measure(struct buf *out, const struct percentiles *m, double unit) {
  static const int percents[] = {50, 90, 99};
  for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
    uint64_t value = percentiles_at(m, percents[i]);
    if (unit > 1)
      buf_printf(out, ",%.9f", (double)value / unit);
    else
      buf_printf(out, ",%llu", (unsigned long long)value);
  }
}

void aggregate_csv(const struct aggregate *c, struct buf *out) {
  enum aggregate_table table =
      c->tables[AGGREGATE_BY].key_count > 0 ? AGGREGATE_BY : AGGREGATE_METHODS;
  const struct group_by_table *t = &c->tables[table];
  for (size_t k = 0; k < t->key_count; k++)
    buf_printf(out, "%s,", group_by_key_name(t->keys[k]));
  buf_printf(
      out, "judgments,share,stages,decided,no_rule,ambiguous,unsure,calls,duration_ms,input,output,"
           "cost_usd,unsure_calls,unsure_duration_ms,unsure_input,unsure_output,unsure_cost_usd,"
           "duration_ms_p50,duration_ms_p90,duration_ms_p99,tokens_p50,tokens_p90,tokens_p99,"
           "cost_usd_p50,cost_usd_p90,cost_usd_p99,answers,answers_first_pass,values,"
           "values_first_pass\r\n");
  for (size_t i = 0; i < t->count; i++) {
    const struct group_by_row *g = &t->groups[i];
    for (size_t k = 0; k < t->key_count; k++) {
      struct buf text = {0};
      group_by_key_text(t, g, k, &c->names, &text);
      aggregate_csv_cell(out, buf_view(&text));
      buf_putc(out, ',');
      buf_deinit(&text);
    }
    buf_printf(out, "%llu,%.6f,%llu,%llu,%llu,%llu,%llu", (unsigned long long)g->judgments,
               aggregate_share(c, g->judgments),
               group_by_stage(t) ? (unsigned long long)g->units : 0ull,
               (unsigned long long)g->decided, (unsigned long long)g->no_rule,
               (unsigned long long)g->ambiguous, (unsigned long long)g->unsure);
    csv_use(out, &g->use);
    csv_use(out, &g->unsure_use);
    csv_measure(out, &g->ms, 1);
    csv_measure(out, &g->tokens, 1);
    csv_measure(out, &g->cost, 1e9);
    buf_printf(out, ",%llu,%llu,%llu,%llu\r\n", (unsigned long long)g->readings,
               (unsigned long long)g->reading_first_pass, (unsigned long long)g->values,
               (unsigned long long)g->value_first_pass);
  }
}
