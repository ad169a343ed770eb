/* Counts the judgments of many logs. */
#include "audit/aggregate.h"

#include "base/log.h"
#include "core/state.h"
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
};

static void aggregate_row(void *ctx, const struct row *row);
static void aggregate_session(void *ctx, const struct row_session *session);

struct aggregate *aggregate_new(void) {
  /* words that must not be crowded out by a log full of others */
  static const char *const kept[] = {"complete",  "abort",  "rule_no_match", "max_movements",
                                     "cancelled", "failed", "stopped",       "open",
                                     "running",   "none",   "tag_fallback"};
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
  enum { KNOWN_MOST = STAGE_COUNT + END_COUNT + 4 };
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
  for (int i = 0; value != NULL && i < AGGREGATE_WORD_COUNT; i++)
    if (strcmp(name, aggregate_word_name((enum aggregate_word)i)) == 0)
      return aggregate_filter(c, (enum aggregate_word)i, value, err);
  return err_set(err, ERR_USAGE,
                 "\"%.80s\" is not a filter: use since:7d, workflow:, movement:, method:, "
                 "provider:, model:, worker:, outcome:, min-stages: or ambiguous",
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
    char *word = next_filter_word(&at);
    char *value = strchr(word, ':');
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
  struct buf list = {0};
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
  buf_deinit(&list);
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

static bool asks_of_judges(const struct aggregate *c) {
  return c->wanted[AGGREGATE_METHOD] != NULL || c->wanted[AGGREGATE_PROVIDER] != NULL ||
         c->wanted[AGGREGATE_MODEL] != NULL || c->min_stages > 0 || c->ambiguous;
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
    return !asks_of_judges(c);
  return (is_wanted(c, AGGREGATE_METHOD, row->method) ||
          is_wanted(c, AGGREGATE_METHOD, row->match_method)) &&
         is_wanted(c, AGGREGATE_PROVIDER, row->provider) &&
         is_wanted(c, AGGREGATE_MODEL, row->model) && (row->ambiguous || !c->ambiguous) &&
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
  bool complete = session->cause != DICTIONARY_NONE &&
                  str_eq_c(dictionary_text(&c->names, session->cause), "complete");
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

static void aggregate_row(void *ctx, const struct row *row) {
  aggregate_take_row(ctx, row);
}

static void aggregate_session(void *ctx, const struct row_session *session) {
  aggregate_take_session(ctx, session);
}

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

static void aggregate_read_one(void *ctx, const struct store_ref *ref) {
  (void)aggregate_read(ctx, ref);
}

bool aggregate_read_store(struct aggregate *c, const struct store *store, struct err *err) {
  return store_each(store, c, aggregate_read_one, err);
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
