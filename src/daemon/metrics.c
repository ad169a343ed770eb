/* Counts records, and prints the counts. */
#include "daemon/metrics.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

/* --- recent failures ---
 *
 * Calls that failed during the last hour, by provider, which is what a person
 * looks at first.
 *
 *   recent_failures_add(&ts, provider, class, message, now_ms)     real time
 *   recent_failures_tell(&ts, provider, now_ms, object)  puts "errors" and "last_error" into it
 *   recent_failures_deinit(&ts)
 * Keeps the last LIMIT_TROUBLE_COUNT; allocates nothing before the first. */

struct failed_call {
  int64_t at_ms;
  char provider[64], class[24], message[160];
};

static void recent_failure_put(char *out, size_t size, struct str text) {
  size_t n = text.n < size ? text.n : utf8_floor(text.p, size - 1);
  memcpy(out, text.p, n);
  out[n] = '\0';
}

static void recent_failures_add(struct recent_failures *ts, struct str provider, struct str class,
                                struct str message, int64_t now_ms) {
  if (ts->ring == NULL)
    ts->ring = xcalloc(LIMIT_TROUBLE_COUNT, sizeof *ts->ring);
  struct failed_call *t = &ts->ring[ts->count++ % LIMIT_TROUBLE_COUNT];
  t->at_ms = now_ms;
  recent_failure_put(t->provider, sizeof t->provider, provider);
  recent_failure_put(t->class, sizeof t->class, class);
  recent_failure_put(t->message, sizeof t->message, message);
}

static json_t *recent_failure_json(const struct failed_call *t) {
  char at[RECORD_TIME_BYTES];
  record_time(t->at_ms, at);
  return json_pack("{so so ss}", "class", json_text(str_from(t->class)), "message",
                   json_text(str_from(t->message)), "at", at);
}

void recent_failures_tell(const struct recent_failures *ts, struct str provider, int64_t now_ms,
                          json_t *object) {
  const struct failed_call *last = NULL;
  json_t *errors = json_object();
  size_t kept = ts->count < LIMIT_TROUBLE_COUNT ? ts->count : LIMIT_TROUBLE_COUNT;
  for (size_t i = 0; i < kept; i++) {
    const struct failed_call *t = &ts->ring[i];
    if (!str_eq_c(provider, t->provider) || now_ms - t->at_ms > LIMIT_TROUBLE_MS)
      continue;
    json_int_t n = json_integer_value(json_object_get(errors, t->class));
    json_object_set_new(errors, t->class, json_integer(n + 1));
    last = last == NULL || t->at_ms >= last->at_ms ? t : last;
  }
  json_put(object, "errors", errors);
  json_put(object, "last_error", last != NULL ? recent_failure_json(last) : json_null());
}

static void recent_failures_deinit(struct recent_failures *ts) {
  free(ts->ring);
  *ts = (struct recent_failures){0};
}

/* --- metrics --- */

enum { PROVIDER_BYTES = 64 };

struct metrics_call {
  const void *owner;
  long call;
  char provider[PROVIDER_BYTES];
};

static const struct {
  const char *name, *type, *help;
} metric_words[METRIC_COUNT] = {
    [METRIC_JUDGMENTS] = {"segue_judgments_total", "counter",
                          "Judgments, by the method that decided; none: no rule was found."},
    [METRIC_STAGES] = {"segue_stages_total", "counter", "Stages of judgments, by outcome."},
    [METRIC_CALLS] = {"segue_calls_total", "counter",
                      "Calls that ended, by provider and class of the error; none: answered."},
    [METRIC_CALL_SECONDS] = {"segue_call_seconds_total", "counter",
                             "Time of calls that ended, by provider."},
    [METRIC_TOKENS] = {"segue_tokens_total", "counter",
                       "Tokens that calls reported, by provider and direction."},
    [METRIC_COST] = {"segue_cost_dollars_total", "counter",
                     "Known cost of calls in US dollars, by provider."},
    [METRIC_WAITS] = {"segue_waits_total", "counter",
                      "Times that a call had to wait, by provider and reason."},
    [METRIC_ENDS] = {"segue_session_ends_total", "counter",
                     "Sessions that ended or stopped, by outcome."},
};

/* --- counting --- */

/* Appends name="value", escaped as the format requires. */
static void put_label(struct buf *out, const char *name, struct str value) {
  if (out->n > 0)
    buf_putc(out, ',');
  buf_puts(out, name);
  buf_puts(out, "=\"");
  for (size_t i = 0; i < value.n && i < PROVIDER_BYTES; i++) {
    unsigned char c = (unsigned char)value.p[i];
    if (c == '"' || c == '\\')
      buf_putc(out, '\\');
    buf_putc(out, c < 0x20 || c >= 0x7F ? '_' : (char)c);
  }
  buf_putc(out, '"');
}

static void count_series(struct metrics *m, enum metric metric, const char *labels, double n) {
  struct metric_series *items = m->counters[metric].items;
  size_t count = m->counters[metric].count;
  for (size_t i = 0; i < count; i++)
    if (strcmp(items[i].labels, labels) == 0) {
      items[i].value += n;
      return;
    }
  if (count == LIMIT_METRIC_SERIES_COUNT)
    labels = "other=\"true\"";
  if (count > LIMIT_METRIC_SERIES_COUNT) { /* the last one counts all others */
    items[count - 1].value += n;
    return;
  }
  items = xrealloc(items, (count + 1) * sizeof *items);
  items[count] = (struct metric_series){xstrdup(labels), n};
  m->counters[metric].items = items;
  m->counters[metric].count++;
}

static void metrics_add(struct metrics *m, enum metric metric, const char *name, struct str value,
                        const char *name2, struct str value2, double n) {
  buf_auto_t labels = {0};
  put_label(&labels, name, value);
  if (name2 != NULL)
    put_label(&labels, name2, value2);
  count_series(m, metric, buf_c(&labels), n);
}

static void call_begins(struct metrics *m, const void *owner, const struct record *record) {
  long call = (long)record_number(record, MEMBER_CALL);
  struct str provider = record_text(record, MEMBER_PROVIDER);
  struct metrics_call *c = NULL;
  for (size_t i = 0; i < m->call_count && c == NULL; i++)
    if (m->calls[i].owner == owner && m->calls[i].call == call)
      c = &m->calls[i];
  if (c == NULL && m->call_count == LIMIT_METRIC_CALL_COUNT)
    return;
  if (c == NULL) {
    m->calls = xrealloc(m->calls, (m->call_count + 1) * sizeof *m->calls);
    c = &m->calls[m->call_count++];
  }
  *c = (struct metrics_call){.owner = owner, .call = call};
  size_t n = provider.n < PROVIDER_BYTES ? provider.n : PROVIDER_BYTES - 1;
  memcpy(c->provider, provider.p, n);
}

static double of_tokens(const json_t *usage, const char *key) {
  json_int_t n = json_integer_value(json_object_get(usage, key));
  return n > 0 ? (double)n : 0;
}

static void call_ends(struct metrics *m, const void *owner, const struct record *record) {
  long call = (long)record_number(record, MEMBER_CALL);
  const json_t *usage = record_tree(record, MEMBER_USAGE);
  struct str class = json_view(json_at(record_tree(record, MEMBER_ERROR), "class"));
  struct str who = STR("unknown");
  size_t i = 0;
  while (i < m->call_count && (m->calls[i].owner != owner || m->calls[i].call != call))
    i++;
  if (i < m->call_count)
    who = str_from(m->calls[i].provider);
  metrics_add(m, METRIC_CALLS, "provider", who, "class", class.n > 0 ? class : STR("none"), 1);
  if (class.n > 0)
    recent_failures_add(&m->troubles, who, class,
                        json_view(json_at(record_tree(record, MEMBER_ERROR), "message")),
                        clock_real_ms());
  int64_t ms = record_number(record, MEMBER_DURATION_MS);
  metrics_add(m, METRIC_CALL_SECONDS, "provider", who, NULL, who, (double)ms / 1000);
  if (usage != NULL) {
    metrics_add(m, METRIC_TOKENS, "provider", who, "direction", STR("input"),
                of_tokens(usage, "input"));
    metrics_add(m, METRIC_TOKENS, "provider", who, "direction", STR("output"),
                of_tokens(usage, "output"));
  }
  const json_t *cost = json_at(usage, "cost_usd");
  if (json_is_number(cost) && json_number_value(cost) >= 0)
    metrics_add(m, METRIC_COST, "provider", who, NULL, who, json_number_value(cost));
  if (i < m->call_count)
    m->calls[i] = m->calls[--m->call_count];
}

static void metrics_judged(struct metrics *m, const struct record *record) {
  const json_t *stages = record_tree(record, MEMBER_STAGES);
  bool decided = record_is_number(record, MEMBER_RULE);
  metrics_add(m, METRIC_JUDGMENTS, "match_method",
              decided ? record_text(record, MEMBER_MATCH_METHOD) : STR("none"), NULL, STR(""), 1);
  JSON_EACH(stages, i, stage) {
    metrics_add(m, METRIC_STAGES, "stage", json_view(json_at(stage, "stage")), "outcome",
                json_view(json_at(stage, "outcome")), 1);
  }
}

void metrics_record(struct metrics *m, const void *owner, const struct record *record) {
  if (record->type == RECORD_CALL_START)
    call_begins(m, owner, record);
  else if (record->type == RECORD_CALL_END)
    call_ends(m, owner, record);
  else if (record->type == RECORD_JUDGMENT)
    metrics_judged(m, record);
  else if (record->type == RECORD_SESSION_END)
    metrics_add(m, METRIC_ENDS, "outcome", record_text(record, MEMBER_OUTCOME), NULL, STR(""), 1);
  else if (record->type == RECORD_SESSION_STOP)
    metrics_add(m, METRIC_ENDS, "outcome", record_text(record, MEMBER_REASON), NULL, STR(""), 1);
  else if (record->type == RECORD_ADMISSION && str_eq_c(record_text(record, MEMBER_ANSWER), "wait"))
    metrics_add(m, METRIC_WAITS, "provider", record_text(record, MEMBER_PROVIDER), "reason",
                record_text(record, MEMBER_REASON), 1);
}

void metrics_forget(struct metrics *m, const void *owner) {
  for (size_t i = m->call_count; i-- > 0;)
    if (m->calls[i].owner == owner)
      m->calls[i] = m->calls[--m->call_count];
}

/* --- printing --- */

static void put_metric_head(struct buf *out, const char *name, const char *type, const char *help) {
  buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Returns how long the oldest session in the queue has waited. */
static double queue_age(const struct sessions *ss) {
  const struct daemon_entry *e = LIST_FIRST(struct daemon_entry, in_state, &ss->lists[LIST_QUEUE]);
  int64_t begun;
  if (e == NULL || !record_time_parse(e->summary.started, &begun))
    return 0;
  int64_t now = clock_real_ms();
  return now > begun ? (double)(now - begun) / 1000 : 0;
}

static void put_sessions(const struct sessions *ss, struct buf *out) {
  size_t after = ss->lists[LIST_AFTER].count, waiting = 0, paused = ss->lists[LIST_BROKEN].count;
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[LIST_RUNNING]) {
    waiting += strcmp(entry_status(e), "waiting") == 0;
    paused += strcmp(entry_status(e), "paused") == 0;
  }
  size_t all = ss->lists[LIST_RUNNING].count + ss->lists[LIST_BROKEN].count;
  const struct {
    const char *state;
    size_t count;
  } states[] = {{"running", all - waiting - paused},
                {"waiting", waiting + after},
                {"paused", paused},
                {"queued", ss->lists[LIST_QUEUE].count + ss->lists[LIST_WRITING].count}};
  put_metric_head(out, "segue_sessions", "gauge", "Sessions that are not over, by state.");
  for (size_t i = 0; i < ARRAY_LEN(states); i++)
    buf_printf(out, "segue_sessions{state=\"%s\"} %zu\n", states[i].state, states[i].count);
  put_metric_head(out, "segue_sessions_max", "gauge", "Sessions that may run at once.");
  buf_printf(out, "segue_sessions_max %zu\n", ss->max_running);
  put_metric_head(out, "segue_queue_age_seconds", "gauge",
                  "How long ago the first session of the queue was submitted.");
  buf_printf(out, "segue_queue_age_seconds %.3f\n", queue_age(ss));
}

static void put_appends(const struct host_appends *a, struct buf *out) {
  uint64_t below = 0;
  put_metric_head(out, "segue_append_seconds", "histogram",
                  "From the decision to write a batch of records to its durability.");
  for (size_t i = 0; i < HOST_APPEND_BUCKETS; i++) {
    below += a->buckets[i];
    buf_printf(out, "segue_append_seconds_bucket{le=\"%g\"} %llu\n",
               host_append_bounds_ms[i] / 1000, (unsigned long long)below);
  }
  buf_printf(out,
             "segue_append_seconds_bucket{le=\"+Inf\"} %llu\nsegue_append_seconds_sum %.6f\n"
             "segue_append_seconds_count %llu\n",
             (unsigned long long)a->count, (double)a->sum_us / 1e6, (unsigned long long)a->count);
}

void metrics_print(const struct metrics *m, const struct sessions *ss, struct buf *out) {
  put_sessions(ss, out);
  for (int k = 0; k < METRIC_COUNT; k++) {
    put_metric_head(out, metric_words[k].name, metric_words[k].type, metric_words[k].help);
    for (size_t i = 0; i < m->counters[k].count; i++)
      buf_printf(out, "%s{%s} %.15g\n", metric_words[k].name, m->counters[k].items[i].labels,
                 m->counters[k].items[i].value);
  }
  put_appends(&ss->host->appends, out);
  put_metric_head(out, "segue_build_info", "gauge", "Always 1, with the version.");
  buf_printf(out, "segue_build_info{version=\"%s\"} 1\n", SEGUE_VERSION);
}

void metrics_deinit(struct metrics *m) {
  for (int k = 0; k < METRIC_COUNT; k++) {
    for (size_t i = 0; i < m->counters[k].count; i++)
      free(m->counters[k].items[i].labels);
    free(m->counters[k].items);
  }
  free(m->calls);
  recent_failures_deinit(&m->troubles);
  *m = (struct metrics){0};
}
