/* Counts the judgments of many logs. */
#include "audit/aggregate.h"
#include "format/json_object.h"

#include "base/log.h"
#include "core/state.h"
#include "format/json_write.h"
#include "store/filter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the request --- */

static const struct {
  enum aggregate_table table;
  enum group_by_key keys[GROUP_BY_KEYS_MAX];
  size_t count;
} tables[] = {
    {AGGREGATE_METHODS, {GROUP_BY_MATCH_METHOD}, 1},
    {AGGREGATE_STAGES, {GROUP_BY_STAGE}, 1},
    {AGGREGATE_FALLS, {GROUP_BY_STAGE, GROUP_BY_TO, GROUP_BY_REASON}, 3},
    {AGGREGATE_MOVEMENTS, {GROUP_BY_WORKFLOW, GROUP_BY_MOVEMENT}, 2},
    {AGGREGATE_JUDGES, {GROUP_BY_PROVIDER, GROUP_BY_MODEL}, 2},
    {AGGREGATE_MARKS, {GROUP_BY_WORKER, GROUP_BY_WORKER_MODEL}, 2},
};

static void aggregate_row(void *ctx, const struct row *row) {
  aggregate_take_row(ctx, row);
}

static void aggregate_session(void *ctx, const struct row_session *session) {
  aggregate_take_session(ctx, session);
}

struct aggregate *aggregate_new(void) {
  /* words that must not be crowded out by a log full of others */
  static const char *const kept[] = {"complete",  "abort",   "rule_no_match", "max_movements",
                                     "cancelled", "failed",  "stopped",       "needs_input",
                                     "open",      "running", "none",          "tag_fallback"};
  struct aggregate *c = xcalloc(1, sizeof *c);
  c->rows = (struct rows){.names = &c->names, .sink = {aggregate_row, aggregate_session}, .ctx = c};
  for (size_t i = 0; i < AGGREGATE_TABLE_COUNT; i++)
    c->tables[i].memory = &c->memory;
  for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
    struct group_by_table *t = &c->tables[tables[i].table];
    memcpy(t->keys, tables[i].keys, sizeof t->keys);
    t->key_count = tables[i].count;
  }
  c->tables[AGGREGATE_JUDGES].askings = true;
  for (int i = 0; i < STAGE_COUNT; i++)
    (void)dictionary_add(&c->names, str_from(judge_stage_name((enum judge_stage)i)));
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    (void)dictionary_add(&c->names, str_from(kept[i]));
  c->no_match_word = dictionary_add(&c->names, STR("rule_no_match"));
  return c;
}

static bool next_word(struct str *rest, struct str *word) {
  if (rest->p == NULL)
    return false;
  const char *comma = memchr(rest->p, ',', rest->n);
  size_t n = comma ? (size_t)(comma - rest->p) : rest->n;
  *word = str_trim((struct str){rest->p, n});
  *rest = comma ? (struct str){comma + 1, rest->n - n - 1} : (struct str){NULL, 0};
  return true;
}

const char *aggregate_word_name(enum aggregate_word word) {
  static const char *const names[AGGREGATE_WORD_COUNT] = {
      "workflow", "movement", "method", "provider", "model", "worker", "outcome"};
  assert(word < AGGREGATE_WORD_COUNT);
  return names[word];
}

/* Checks a word of a list: none is empty, and methods and outcomes are a few fixed words, of which
 * another would count nothing. */
static bool word_is_known(enum aggregate_word what, struct str word, struct err *err) {
  enum { KNOWN_MOST = STAGE_COUNT + END_COUNT + 5 };
  const char *known[KNOWN_MOST] = {NULL};
  size_t n = 0;
  if (what == AGGREGATE_METHOD) {
    for (int i = 0; i < STAGE_COUNT; i++)
      known[n++] = judge_stage_name((enum judge_stage)i);
    known[n++] = judge_stage_match_method(STAGE_PHASE1_TAG);
  } else if (what == AGGREGATE_OUTCOME) {
    for (int i = END_NONE + 1; i < END_COUNT; i++)
      known[n++] = session_outcome_name((enum session_outcome)i);
    known[n++] = "stopped";
    known[n++] = "needs_input";
    known[n++] = "open";
    known[n++] = "running";
  }
  for (size_t i = 0; i < n; i++)
    if (str_eq_c(word, known[i]))
      return true;
  if (n > 0)
    return err_no_such(err, aggregate_word_name(what), word, known);
  return word.n > 0 ||
         err_set(err, ERR_USAGE, "%s: an empty word is no name: write NAME or NAME,NAME",
                 aggregate_word_name(what));
}

bool aggregate_filter(struct aggregate *c, enum aggregate_word what, const char *words,
                      struct err *err) {
  assert(what < AGGREGATE_WORD_COUNT);
  struct str rest = str_from(words), word;
  size_t n = 0;
  if (words == NULL)
    return true;
  free(c->wanted[what]);
  c->wanted[what] = xcalloc(strlen(words) / 2 + 2, sizeof **c->wanted);
  while (next_word(&rest, &word)) {
    if (!word_is_known(what, word, err))
      return false;
    c->wanted[what][n++] = dictionary_add(&c->names, word);
  }
  return true;
}

bool aggregate_filter_rules(struct aggregate *c, const char *words, struct err *err) {
  struct str rest = str_from(words), word;
  long rule;
  while (words != NULL && next_word(&rest, &word)) {
    if (!str_to_long(word, &rule) || rule < 0 || rule > 63)
      return err_set(err, ERR_USAGE, "rule: " STR_FMT ": write numbers from 1 to 63, or 0 for none",
                     STR_ARG(word));
    c->rules |= (uint64_t)1 << rule;
  }
  return true;
}

/* value NULL: the word has none. */
static bool filter_word(struct aggregate *c, const char *name, const char *value, int64_t now_ms,
                        struct err *err) {
  long n;
  if (value == NULL && strcmp(name, "ambiguous") == 0) {
    c->ambiguous = true;
    return true;
  }
  if (value != NULL && strcmp(name, "since") == 0)
    return filter_since(value, now_ms, &c->since_ms, err);
  if (value != NULL && strcmp(name, "min-stages") == 0) {
    if (!str_to_long(str_from(value), &n) || n < 1)
      return err_set(err, ERR_USAGE, "min-stages:%.40s: write a number from 1", value);
    c->min_stages = n;
    return true;
  }
  if (value != NULL && strcmp(name, "rule") == 0)
    return aggregate_filter_rules(c, value, err);
  for (int i = 0; value != NULL && i < AGGREGATE_WORD_COUNT; i++)
    if (strcmp(name, aggregate_word_name((enum aggregate_word)i)) == 0)
      return aggregate_filter(c, (enum aggregate_word)i, value, err);
  return err_set(err, ERR_USAGE,
                 "\"%.80s\" is not a filter: use since:7d, workflow:, movement:, method:, "
                 "provider:, model:, worker:, outcome:, rule:, min-stages: or ambiguous",
                 name);
}

/* Takes a word up to a blank that is not between quotation marks, without the marks. */
static char *next_filter_word(char **at) {
  char *word = *at, *end = word;
  bool quoted = false;
  for (; **at != '\0' && (quoted || **at != ' '); ++*at) {
    if (**at == '"')
      quoted = !quoted;
    else
      *end++ = **at;
  }
  *at += **at == ' ';
  *end = '\0';
  return word;
}

bool aggregate_filter_text(struct aggregate *c, const char *text, int64_t now_ms, struct err *err) {
  char *copy = xstrndup(text, strlen(text)), *at = copy;
  bool ok = true;
  while (ok && *at != '\0') {
    char *word = next_filter_word(&at), *value = strchr(word, ':');
    if (value != NULL)
      *value++ = '\0';
    ok = word[0] == '\0' || filter_word(c, word, value, now_ms, err);
  }
  free(copy);
  return ok;
}

static bool tally_has_key(const struct group_by_table *t, enum group_by_key key) {
  for (size_t i = 0; i < (size_t)t->key_count; i++)
    if (t->keys[i] == key)
      return true;
  return false;
}

bool aggregate_by(struct aggregate *c, const char *keys, struct err *err) {
  struct group_by_table *t = &c->tables[AGGREGATE_BY];
  struct str rest = str_from(keys), word;
  const char *names[GROUP_BY_KEY_COUNT + 1] = {NULL};
  buf_auto_t list = {0};
  t->key_count = 0;
  for (int i = 0; i < GROUP_BY_KEY_COUNT; i++) {
    names[i] = group_by_key_name((enum group_by_key)i);
    buf_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  bool ok = true;
  while (ok && next_word(&rest, &word)) {
    enum group_by_key key;
    const char *near = str_nearest(word, names);
    if (!group_by_key_from_name(word, &key))
      ok = err_set(err, ERR_USAGE, "--by " STR_FMT ": %s%s%swrite up to %d of %s", STR_ARG(word),
                   near ? "did you mean " : "", near ? near : "", near ? "? " : "",
                   GROUP_BY_KEYS_MAX, buf_c(&list));
    else if (t->key_count == GROUP_BY_KEYS_MAX)
      ok = err_set(err, ERR_USAGE, "--by takes up to %d keys", GROUP_BY_KEYS_MAX);
    else if (tally_has_key(t, key))
      ok = err_set(err, ERR_USAGE, "--by: " STR_FMT " is written twice", STR_ARG(word));
    else
      t->keys[t->key_count++] = key;
    c->rows.wants_schema |= ok && key == GROUP_BY_SCHEMA;
  }
  return ok;
}

/* --- counting --- */

static bool is_wanted(const struct aggregate *c, enum aggregate_word what, uint32_t name) {
  const uint32_t *w = c->wanted[what];
  if (w == NULL)
    return true;
  for (; *w != DICTIONARY_NONE; w++)
    if (*w == name)
      return true;
  return false;
}

bool aggregate_wants(const struct aggregate *c, enum aggregate_word what, const char *word) {
  uint32_t name = DICTIONARY_NONE;
  if (c->wanted[what] == NULL)
    return true;
  return word != NULL && map_get(&c->names.map, str_from(word), &name) && is_wanted(c, what, name);
}

static int64_t stages_tried(const struct row *row) {
  int64_t n = 0;
  for (size_t i = 0; i < row->stage_count; i++)
    n += !row->stages[i].vote && row->stages[i].outcome != OUTCOME_SKIPPED;
  return n;
}

bool aggregate_wants_row(const struct aggregate *c, const struct row *row) {
  if (row->time_ms < c->since_ms || !is_wanted(c, AGGREGATE_WORKFLOW, row->workflow) ||
      !is_wanted(c, AGGREGATE_MOVEMENT, row->movement) ||
      !is_wanted(c, AGGREGATE_WORKER, row->worker) ||
      !is_wanted(c, AGGREGATE_OUTCOME, row->outcome))
    return false;
  if (row->kind != ROW_JUDGMENT)
    return !(c->wanted[AGGREGATE_METHOD] != NULL || c->wanted[AGGREGATE_PROVIDER] != NULL ||
             c->wanted[AGGREGATE_MODEL] != NULL || c->rules > 0 || c->min_stages > 0 ||
             c->ambiguous);
  return (is_wanted(c, AGGREGATE_METHOD, row->method) ||
          is_wanted(c, AGGREGATE_METHOD, row->match_method)) &&
         is_wanted(c, AGGREGATE_PROVIDER, row->provider) &&
         is_wanted(c, AGGREGATE_MODEL, row->model) &&
         (c->rules == 0 || (row->rule < 64 && (c->rules >> row->rule & 1))) &&
         (row->ambiguous || !c->ambiguous) &&
         (c->min_stages == 0 || stages_tried(row) >= c->min_stages);
}

bool aggregate_needs_judge(const struct row *row) {
  for (size_t i = 0; i < row->stage_count; i++)
    if (!row->stages[i].machine)
      return true;
  return false;
}

bool aggregate_wants_session(const struct aggregate *c, const struct row_session *session) {
  return session->time_ms >= c->since_ms && is_wanted(c, AGGREGATE_WORKFLOW, session->workflow) &&
         is_wanted(c, AGGREGATE_OUTCOME, session->outcome);
}

uint32_t aggregate_cause_of(const struct aggregate *c, const struct row_session *session) {
  struct str cause =
      session->cause != DICTIONARY_NONE ? dictionary_text(&c->names, session->cause) : STR("");
  bool complete = str_eq_c(cause, "complete") || str_starts(cause, "complete:");
  return complete ? DICTIONARY_NONE : session->cause;
}

void aggregate_take_row(struct aggregate *c, const struct row *row) {
  if (!aggregate_wants_row(c, row))
    return;
  if (row->kind == ROW_JUDGMENT)
    c->no_match += row->failure == c->no_match_word;
  for (size_t i = 0; i < AGGREGATE_TABLE_COUNT; i++)
    if (i == AGGREGATE_BY ? c->tables[i].key_count > 0 : i == AGGREGATE_ALL || !c->only_by)
      group_by_add(&c->tables[i], row);
}

/* Counts a session below a word; the last place of a full list is that of all other words. */
static void count_word(struct aggregate_count *list, size_t *count, uint32_t word, const char *id) {
  size_t i = 0;
  while (i < *count && list[i].word != word)
    i++;
  if (i == LIMIT_AUDIT_CAUSE_COUNT)
    list[--i].word = DICTIONARY_OTHER;
  else if (i == *count) {
    list[(*count)++] = (struct aggregate_count){.word = word};
    print_into(list[i].example, sizeof list[i].example, "%s", id);
  }
  list[i].count++;
}

void aggregate_take_session(struct aggregate *c, const struct row_session *session) {
  if (!aggregate_wants_session(c, session))
    return;
  c->sessions++;
  c->unavailable += (uint64_t)session->unavailable_stops;
  count_word(c->outcomes, &c->outcome_count, session->outcome, session->id);
  if (aggregate_cause_of(c, session) != DICTIONARY_NONE)
    count_word(c->causes, &c->cause_count, session->cause, session->id);
}

/* --- reading --- */

enum rows_log aggregate_read(struct aggregate *c, const struct store_ref *ref) {
  enum rows_log state = rows_read(&c->rows, ref);
  c->logs[state]++;
  if (state == ROWS_SOUND || state == ROWS_EMPTY || c->apart_count == LIMIT_AUDIT_APART_COUNT)
    return state;
  struct aggregate_apart *apart = &c->apart[c->apart_count++];
  *apart = (struct aggregate_apart){.state = state, .log = xstrndup(ref->name, strlen(ref->name))};
  if (state != ROWS_TORN)
    print_into(apart->why, sizeof apart->why, "%.*s", (int)sizeof apart->why - 1, c->rows.err.text);
  return state;
}

void aggregate_on_log(void *aggregate, const struct store_ref *ref) {
  (void)aggregate_read(aggregate, ref);
}

bool aggregate_read_store(struct aggregate *c, const struct store *store, struct err *err) {
  return store_each(store, c, aggregate_on_log, err);
}

/* --- order --- */

double aggregate_share(const struct aggregate *c, uint64_t judgments) {
  const struct group_by_table *all = &c->tables[AGGREGATE_ALL];
  uint64_t of = all->count > 0 ? all->groups[0].judgments : 0;
  return of > 0 ? (double)judgments / (double)of : 0;
}

double aggregate_unsure(const struct group_by_row *g) {
  return g->judgments > 0 ? (double)g->unsure / (double)g->judgments : 0;
}

double aggregate_unreadable(const struct group_by_row *g) {
  return g->units > 0 ? (double)g->outcomes[OUTCOME_UNREADABLE] / (double)g->units : 0;
}

uint64_t aggregate_marked(const struct group_by_row *g) {
  uint64_t sum = 0;
  for (int i = TAG_UNASKED + 1; i < TAG_MARK_COUNT; i++)
    sum += g->marks[i];
  return sum;
}

bool aggregate_next_client(const struct aggregate *c, size_t *at, struct aggregate_client *out) {
  const struct group_by_table *t = &c->tables[AGGREGATE_MARKS];
  for (*out = (struct aggregate_client){0}; *at < t->count && out->turns == 0; ++*at) {
    uint32_t worker = t->groups[*at].keys[0];
    out->name = dictionary_text(&c->names, worker);
    bool seen = worker == DICTIONARY_NONE || str_eq_c(out->name, "script") ||
                str_eq_c(out->name, "command");
    for (size_t i = 0; i < *at; i++)
      seen |= t->groups[i].keys[0] == worker;
    for (size_t i = *at; !seen && i < t->count; i++)
      if (t->groups[i].keys[0] == worker) {
        out->turns += aggregate_marked(&t->groups[i]);
        out->present += t->groups[i].marks[TAG_PRESENT];
      }
  }
  return out->turns > 0;
}

void aggregate_client_text(const struct aggregate_client *client, struct buf *out) {
  double percent = 100 * (double)client->present / (double)client->turns;
  buf_safe(out, client->name, false);
  buf_printf(out, ": %llu of the %d turns that are wanted, %.1f %% with their mark of %d %%",
             (unsigned long long)client->turns, AGGREGATE_TURNS_WANTED, percent,
             AGGREGATE_PERCENT_WANTED);
  if (client->turns >= AGGREGATE_TURNS_WANTED && percent >= AGGREGATE_PERCENT_WANTED)
    buf_puts(out, ": judge: {fallback: own_tag} may trust it");
}

static int by_count(double x, double y) {
  return (x < y) - (x > y);
}

static int by_unsure(const void *a, const void *b) {
  return by_count(aggregate_unsure(a), aggregate_unsure(b));
}

static int by_unreadable(const void *a, const void *b) {
  return by_count(aggregate_unreadable(a), aggregate_unreadable(b));
}

static int by_cause(const void *a, const void *b) {
  const struct aggregate_count *x = a, *y = b;
  return (x->count < y->count) - (x->count > y->count);
}

/* The C library's qsort keeps the order of equals, set by group_by_sort, as long as it has
 * memory. */
void aggregate_sort(struct aggregate *c) {
  for (size_t i = 0; i < AGGREGATE_TABLE_COUNT; i++)
    group_by_sort(&c->tables[i], &c->names);
  struct group_by_table *movements = &c->tables[AGGREGATE_MOVEMENTS],
                        *judges = &c->tables[AGGREGATE_JUDGES];
  if (movements->count > 1)
    qsort(movements->groups, movements->count, sizeof *movements->groups, by_unsure);
  if (judges->count > 1)
    qsort(judges->groups, judges->count, sizeof *judges->groups, by_unreadable);
  qsort(c->causes, c->cause_count, sizeof *c->causes, by_cause);
  qsort(c->outcomes, c->outcome_count, sizeof *c->outcomes, by_cause);
}

void aggregate_free(struct aggregate *c) {
  if (c == NULL)
    return;
  for (size_t i = 0; i < AGGREGATE_TABLE_COUNT; i++)
    group_by_deinit(&c->tables[i]);
  for (size_t i = 0; i < AGGREGATE_WORD_COUNT; i++)
    free(c->wanted[i]);
  for (size_t i = 0; i < c->apart_count; i++)
    free(c->apart[i].log);
  rows_deinit(&c->rows);
  dictionary_deinit(&c->names);
  free(c);
}

/* --- as JSON --- */

static const double nano = 1e9;

static json_t *count_json(uint64_t n) {
  return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *use_json(const struct row_use *use) {
  json_t *out = json_object();
  json_put(out, "calls", json_integer(use->calls));
  json_put(out, "duration_ms", json_integer(use->ms));
  json_put(out, "input", json_integer(use->input));
  json_put(out, "output", json_integer(use->output));
  json_put(out, "cost_usd", json_real((double)use->cost_nano / nano));
  json_put_count(out, "unpriced", use->unpriced);
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
    json_object_set_new_nocheck(out, name,
                                unit > 1 ? json_real((double)value / unit) : count_json(value));
  }
  return out;
}

static json_t *mended_json(const uint64_t mended[GROUP_BY_MENDED_COUNT]) {
  json_t *out = json_object();
  for (size_t i = 1; i < GROUP_BY_MENDED_COUNT; i++) {
    char name[8];
    print_into(name, sizeof name, "%zu", i);
    if (mended[i] > 0)
      json_object_set_new_nocheck(out, name, count_json(mended[i]));
  }
  return out;
}

/* Puts what became of marks, and what was asked again. */
static void put_mark_counts(json_t *out, const struct group_by_row *g) {
  json_t *marks = json_object();
  for (int i = TAG_UNASKED + 1; i < TAG_MARK_COUNT; i++)
    json_object_set_new_nocheck(marks, tag_mark_name((enum tag_mark)i), count_json(g->marks[i]));
  if (aggregate_marked(g) > 0)
    json_put(out, "marks", json_incref(marks));
  json_decref(marks);
  if (g->again > 0)
    json_put(
        out, "asked_again",
        json_pack("{so so}", "questions", count_json(g->again), "use", use_json(&g->again_use)));
}

static void put_answers(json_t *out, const struct group_by_row *g) {
  if (g->readings > 0)
    json_put(out, "readings",
             json_pack("{so so so}", "answers", count_json(g->readings), "first_pass",
                       count_json(g->reading_first_pass), "after", mended_json(g->reading_mended)));
  if (g->values > 0)
    json_put(out, "values",
             json_pack("{so so so so so}", "asked", count_json(g->values), "first_pass",
                       count_json(g->value_first_pass), "after", mended_json(g->value_mended),
                       "repaired", count_json(g->value_repaired), "none",
                       count_json(g->value_none)));
}

/* Writes counts, use and percentiles of a group, without its keys. */
static void put_numbers(json_t *out, const struct aggregate *c, const struct group_by_table *t,
                        const struct group_by_row *g) {
  json_put(out, "judgments", count_json(g->judgments));
  json_put(out, "share", json_real(aggregate_share(c, g->judgments)));
  if (group_by_stage(t))
    json_put(out, "stages", count_json(g->units));
  json_put(out, "decided", count_json(g->decided));
  json_put(out, "no_rule", count_json(g->no_rule));
  json_put(out, "ambiguous", count_json(g->ambiguous));
  json_put(out, "unsure", count_json(g->unsure));
  json_t *outcomes = json_object();
  for (int i = 0; i < OUTCOME_COUNT; i++)
    if (g->outcomes[i] > 0)
      json_object_set_new_nocheck(outcomes, stage_outcome_name((enum stage_outcome)i),
                                  count_json(g->outcomes[i]));
  if (g->outcomes[OUTCOME_COUNT] > 0)
    json_put(outcomes, "unknown", count_json(g->outcomes[OUTCOME_COUNT]));
  json_put(out, "outcomes", outcomes);
  json_put(out, "use", use_json(&g->use));
  json_put(out, "unsure_use", use_json(&g->unsure_use));
  if (!group_by_stage(t))
    json_put(out, "work", use_json(&g->work));
  json_put(out, "duration_ms", spread_json(&g->ms, 1));
  json_put(out, "tokens", spread_json(&g->tokens, 1));
  json_put(out, "cost_usd", spread_json(&g->cost, nano));
  put_answers(out, g);
  put_mark_counts(out, g);
}

static void put_keys(json_t *out, const struct aggregate *c, const struct group_by_table *t,
                     const struct group_by_row *g) {
  for (size_t i = 0; i < t->key_count; i++) {
    buf_auto_t text = {0};
    group_by_key_text(t, g, i, &c->names, &text);
    if (text.n == 0)
      json_object_set_new_nocheck(out, group_by_key_name(t->keys[i]), json_null());
    else if (t->keys[i] == GROUP_BY_RULE)
      json_object_set_new_nocheck(out, group_by_key_name(t->keys[i]),
                                  json_integer((json_int_t)g->keys[i]));
    else
      json_object_set_new_nocheck(out, group_by_key_name(t->keys[i]), json_text(buf_view(&text)));
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
    json_put(fall, "count", count_json(g->units - g->decided));
    json_put(fall, "use", use_json(&g->use));
    json_array_append_new(list, fall);
  }
  return list;
}

static json_t *clients_json(const struct aggregate *c) {
  struct aggregate_client client;
  json_t *list = json_array();
  for (size_t at = 0; aggregate_next_client(c, &at, &client);)
    json_array_append_new(list,
                          json_pack("{so so so si}", "worker", json_text(client.name), "turns",
                                    count_json(client.turns), "present", count_json(client.present),
                                    "wanted", AGGREGATE_TURNS_WANTED));
  return list;
}

static json_t *logs_json(const struct aggregate *c) {
  json_t *out = json_object(), *apart = json_array();
  uint64_t read = 0;
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    read += c->logs[i];
  json_put(out, "read", count_json(read));
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    json_object_set_new_nocheck(out, rows_log_name((enum rows_log)i), count_json(c->logs[i]));
  json_put(out, "bytes", count_json(c->rows.bytes));
  for (size_t i = 0; i < c->apart_count; i++) {
    const struct aggregate_apart *a = &c->apart[i];
    json_t *item = json_object();
    json_put(item, "log", json_text(str_from(a->log)));
    json_put(item, "state", json_string(rows_log_name(a->state)));
    json_put_text(item, "why", str_from(a->why));
    json_array_append_new(apart, item);
  }
  json_put(out, "apart", apart);
  return out;
}

static json_t *sessions_json(const struct aggregate *c) {
  json_t *out = json_object();
  for (size_t i = 0; i < c->outcome_count; i++) {
    struct str word = dictionary_text(&c->names, c->outcomes[i].word);
    char key[LIMIT_AUDIT_NAME_BYTES + 1];
    print_into(key, sizeof key, STR_FMT, STR_ARG(word));
    json_object_set_new_nocheck(out, key, count_json(c->outcomes[i].count));
  }
  return json_pack("{so so so}", "counted", count_json(c->sessions), "outcomes", out,
                   "judge_unavailable", count_json(c->unavailable));
}

json_t *aggregate_group_json(const struct aggregate *c, size_t i) {
  enum aggregate_table table =
      c->tables[AGGREGATE_BY].key_count > 0 ? AGGREGATE_BY : AGGREGATE_METHODS;
  return i < c->tables[table].count ? group_json(c, table, i) : NULL;
}

json_t *aggregate_totals_json(const struct aggregate *c) {
  static const struct group_by_row nothing;
  const struct group_by_table *all = &c->tables[AGGREGATE_ALL], *by = &c->tables[AGGREGATE_BY];
  json_t *totals = json_object();
  put_numbers(totals, c, all, all->count > 0 ? &all->groups[0] : &nothing);
  json_put(totals, "rule_no_match", count_json(c->no_match));
  const struct group_by_table *t = &c->tables[AGGREGATE_METHODS];
  json_t *out = json_object();
  for (size_t i = 0; i < t->count; i++) {
    buf_auto_t text = {0};
    group_by_key_text(t, &t->groups[i], 0, &c->names, &text);
    if (text.n > 0)
      json_object_set_new_nocheck(out, buf_c(&text), count_json(t->groups[i].judgments));
  }
  json_put(totals, "match_methods", out);
  json_put(totals, "sessions", sessions_json(c));
  json_put(totals, "logs", logs_json(c));
  json_put(totals, "by_stage", table_json(c, AGGREGATE_STAGES));
  json_put(totals, "fall_through", falls_json(c));
  json_put(totals, "movements", table_json(c, AGGREGATE_MOVEMENTS));
  json_put(totals, "judges", table_json(c, AGGREGATE_JUDGES));
  json_put(totals, "workers", table_json(c, AGGREGATE_MARKS));
  json_put(totals, "clients", clients_json(c));
  json_t *list = json_array();
  for (size_t i = 0; i < c->cause_count; i++)
    json_array_append_new(list, json_pack("{so so so}", "cause",
                                          json_text(dictionary_text(&c->names, c->causes[i].word)),
                                          "count", count_json(c->causes[i].count), "example",
                                          json_text(str_from(c->causes[i].example))));
  json_put(totals, "failures", list);
  if (by->left_out > 0)
    json_put(totals, "left_out", count_json(by->left_out));
  return totals;
}

/* --- as CSV --- */

void aggregate_csv_cell(struct buf *out, struct str text) {
  buf_auto_t safe = {0};
  /* A spreadsheet takes a cell that begins like this for a formula. */
  if (text.n > 1 && strchr("=+-@", text.p[0]) != NULL)
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
           "values_first_pass,mark_present,mark_elsewhere,mark_wrong,mark_missing,asked_again,"
           "asked_again_calls,asked_again_duration_ms,asked_again_input,asked_again_output,"
           "asked_again_cost_usd\r\n");
  for (size_t i = 0; i < t->count; i++) {
    const struct group_by_row *g = &t->groups[i];
    for (size_t k = 0; k < t->key_count; k++) {
      buf_auto_t text = {0};
      group_by_key_text(t, g, k, &c->names, &text);
      aggregate_csv_cell(out, buf_view(&text));
      buf_putc(out, ',');
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
    const uint64_t last[] = {g->readings,         g->reading_first_pass, g->values,
                             g->value_first_pass, g->marks[TAG_PRESENT], g->marks[TAG_ELSEWHERE],
                             g->marks[TAG_WRONG], g->marks[TAG_MISSING], g->again};
    for (size_t k = 0; k < ARRAY_LEN(last); k++)
      buf_printf(out, ",%llu", (unsigned long long)last[k]);
    csv_use(out, &g->again_use);
    buf_puts(out, "\r\n");
  }
}
