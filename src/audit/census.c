/* Counts the judgments of many logs. */
#include "audit/census.h"

#include "base/log.h"
#include "core/state.h"
#include "store/select.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the request --- */

static const struct {
  enum census_table table;
  enum tally_key keys[TALLY_KEYS_MAX];
  size_t count;
} tables[] = {
    {CENSUS_METHODS, {TALLY_MATCH_METHOD}, 1},
    {CENSUS_STAGES, {TALLY_STAGE}, 1},
    {CENSUS_FALLS, {TALLY_STAGE, TALLY_TO, TALLY_REASON}, 3},
    {CENSUS_MOVEMENTS, {TALLY_WORKFLOW, TALLY_MOVEMENT}, 2},
    {CENSUS_JUDGES, {TALLY_PROVIDER, TALLY_MODEL}, 2},
};

static void census_row(void *ctx, const struct row *row);
static void census_session(void *ctx, const struct row_session *session);

struct census *census_new(void) {
  /* words that must not be crowded out by a log full of others */
  static const char *const kept[] = {"complete",  "abort",  "rule_no_match", "max_movements",
                                     "cancelled", "failed", "stopped",       "open",
                                     "running",   "none",   "tag_fallback"};
  struct census *c = xcalloc(1, sizeof *c);
  c->rows = (struct rows){.names = &c->names, .sink = {census_row, census_session}, .ctx = c};
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    c->tables[i].memory = &c->memory;
  for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
    struct tally_table *t = &c->tables[tables[i].table];
    memcpy(t->keys, tables[i].keys, sizeof t->keys);
    t->key_count = tables[i].count;
  }
  c->tables[CENSUS_JUDGES].askings = true;
  for (int i = 0; i < STAGE_COUNT; i++)
    (void)names_add(&c->names, str_from(judge_stage_name((enum judge_stage)i)));
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    (void)names_add(&c->names, str_from(kept[i]));
  c->no_match_word = names_add(&c->names, STR("rule_no_match"));
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

const char *census_word_name(enum census_word word) {
  static const char *const names[CENSUS_WORD_COUNT] = {"workflow", "movement", "method", "provider",
                                                       "model",    "worker",   "outcome"};
  assert(word < CENSUS_WORD_COUNT);
  return names[word];
}

/* Checks a word of a list: none is empty, and methods and outcomes are a few fixed words, of which
 * another would count nothing. */
static bool word_is_known(enum census_word what, struct str word, struct err *err) {
  enum { KNOWN_MOST = STAGE_COUNT + END_COUNT + 4 };
  const char *known[KNOWN_MOST] = {NULL};
  size_t n = 0;
  if (what == CENSUS_METHOD) {
    for (int i = 0; i < STAGE_COUNT; i++)
      known[n++] = judge_stage_name((enum judge_stage)i);
    known[n++] = judge_stage_match_method(STAGE_PHASE1_TAG);
  } else if (what == CENSUS_OUTCOME) {
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
    return err_no_such(err, census_word_name(what), word, known);
  return word.n > 0 ||
         err_set(err, ERR_USAGE, "%s: an empty word is no name: write NAME or NAME,NAME",
                 census_word_name(what));
}

bool census_filter(struct census *c, enum census_word what, const char *words, struct err *err) {
  assert(what < CENSUS_WORD_COUNT);
  struct str rest = str_from(words), word;
  size_t n = 0;
  if (words == NULL)
    return true;
  free(c->wanted[what]);
  c->wanted[what] = xcalloc(strlen(words) / 2 + 2, sizeof **c->wanted);
  while (next_word(&rest, &word)) {
    if (!word_is_known(what, word, err))
      return false;
    c->wanted[what][n++] = names_add(&c->names, word);
  }
  return true;
}

/* value NULL: the word has none. */
static bool filter_word(struct census *c, const char *name, const char *value, int64_t now_ms,
                        struct err *err) {
  long n;
  if (value == NULL && strcmp(name, "ambiguous") == 0) {
    c->ambiguous = true;
    return true;
  }
  if (value != NULL && strcmp(name, "since") == 0)
    return select_since(value, now_ms, &c->since_ms, err);
  if (value != NULL && strcmp(name, "min-stages") == 0) {
    if (!str_to_long(str_from(value), &n) || n < 1)
      return err_set(err, ERR_USAGE, "min-stages:%.40s: write a number from 1", value);
    c->min_stages = n;
    return true;
  }
  for (int i = 0; value != NULL && i < CENSUS_WORD_COUNT; i++)
    if (strcmp(name, census_word_name((enum census_word)i)) == 0)
      return census_filter(c, (enum census_word)i, value, err);
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

bool census_filter_text(struct census *c, const char *text, int64_t now_ms, struct err *err) {
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

static bool tally_has_key(const struct tally_table *t, enum tally_key key) {
  for (size_t i = 0; i < (size_t)t->key_count; i++)
    if (t->keys[i] == key)
      return true;
  return false;
}

bool census_by(struct census *c, const char *keys, struct err *err) {
  struct tally_table *t = &c->tables[CENSUS_BY];
  struct str rest = str_from(keys), word;
  const char *names[TALLY_KEY_COUNT + 1] = {NULL};
  struct buf list = {0};
  t->key_count = 0;
  for (int i = 0; i < TALLY_KEY_COUNT; i++) {
    names[i] = tally_key_name((enum tally_key)i);
    buf_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  bool ok = true;
  while (ok && next_word(&rest, &word)) {
    enum tally_key key;
    const char *near = str_nearest(word, names);
    if (!tally_key_from_name(word, &key))
      ok = err_set(err, ERR_USAGE, "--by " STR_FMT ": %s%s%swrite up to %d of %s", STR_ARG(word),
                   near ? "did you mean " : "", near ? near : "", near ? "? " : "", TALLY_KEYS_MAX,
                   buf_c(&list));
    else if (t->key_count == TALLY_KEYS_MAX)
      ok = err_set(err, ERR_USAGE, "--by takes up to %d keys", TALLY_KEYS_MAX);
    else if (tally_has_key(t, key))
      ok = err_set(err, ERR_USAGE, "--by: " STR_FMT " is written twice", STR_ARG(word));
    else
      t->keys[t->key_count++] = key;
    c->rows.wants_schema |= ok && key == TALLY_SCHEMA;
  }
  buf_deinit(&list);
  return ok;
}

/* --- counting --- */

static bool is_wanted(const struct census *c, enum census_word what, uint32_t name) {
  const uint32_t *w = c->wanted[what];
  if (w == NULL)
    return true;
  for (; *w != NAMES_NONE; w++)
    if (*w == name)
      return true;
  return false;
}

bool census_wants(const struct census *c, enum census_word what, const char *word) {
  uint32_t name = NAMES_NONE;
  if (c->wanted[what] == NULL)
    return true;
  return word != NULL && map_get(&c->names.map, str_from(word), &name) && is_wanted(c, what, name);
}

static bool asks_of_judges(const struct census *c) {
  return c->wanted[CENSUS_METHOD] != NULL || c->wanted[CENSUS_PROVIDER] != NULL ||
         c->wanted[CENSUS_MODEL] != NULL || c->min_stages > 0 || c->ambiguous;
}

static int64_t stages_tried(const struct row *row) {
  int64_t n = 0;
  for (size_t i = 0; i < row->stage_count; i++)
    n += !row->stages[i].vote && row->stages[i].outcome != OUTCOME_SKIPPED;
  return n;
}

bool census_wants_row(const struct census *c, const struct row *row) {
  if (row->time_ms < c->since_ms || !is_wanted(c, CENSUS_WORKFLOW, row->workflow) ||
      !is_wanted(c, CENSUS_MOVEMENT, row->movement) || !is_wanted(c, CENSUS_WORKER, row->worker) ||
      !is_wanted(c, CENSUS_OUTCOME, row->outcome))
    return false;
  if (row->kind == ROW_VALUE)
    return !asks_of_judges(c);
  return (is_wanted(c, CENSUS_METHOD, row->method) ||
          is_wanted(c, CENSUS_METHOD, row->match_method)) &&
         is_wanted(c, CENSUS_PROVIDER, row->provider) && is_wanted(c, CENSUS_MODEL, row->model) &&
         (row->ambiguous || !c->ambiguous) &&
         (c->min_stages == 0 || stages_tried(row) >= c->min_stages);
}

bool census_wants_session(const struct census *c, const struct row_session *session) {
  return session->time_ms >= c->since_ms && is_wanted(c, CENSUS_WORKFLOW, session->workflow) &&
         is_wanted(c, CENSUS_OUTCOME, session->outcome);
}

uint32_t census_cause_of(const struct census *c, const struct row_session *session) {
  bool complete =
      session->cause != NAMES_NONE && str_eq_c(names_text(&c->names, session->cause), "complete");
  return complete ? NAMES_NONE : session->cause;
}

static void census_row(void *ctx, const struct row *row) {
  struct census *c = ctx;
  if (!census_wants_row(c, row))
    return;
  if (row->kind == ROW_JUDGMENT)
    c->no_match += row->failure == c->no_match_word;
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    if (i != CENSUS_BY || c->tables[i].key_count > 0)
      tally_add(&c->tables[i], row);
  for (size_t i = 0; i < c->more_count; i++)
    tally_add(&c->more[i], row);
}

static void count_cause(struct census *c, const struct row_session *session) {
  size_t i = 0;
  uint32_t cause = session->cause;
  while (i < c->cause_count && c->causes[i].cause != cause)
    i++;
  if (i == LIMIT_AUDIT_CAUSE_COUNT)
    c->causes[--i].cause = NAMES_OTHER;
  else if (i == c->cause_count) {
    c->causes[c->cause_count++] = (struct census_cause){.cause = cause};
    (void)snprintf(c->causes[i].example, sizeof c->causes[i].example, "%s", session->id);
  }
  c->causes[i].count++;
}

static void census_count_outcome(struct census *c, uint32_t outcome) {
  size_t i = 0;
  while (i < c->outcome_count && c->outcomes[i].word != outcome)
    i++;
  if (i == LIMIT_AUDIT_CAUSE_COUNT)
    c->outcomes[--i].word = NAMES_OTHER;
  else if (i == c->outcome_count)
    c->outcomes[c->outcome_count++] = (struct census_outcome){.word = outcome};
  c->outcomes[i].count++;
}

static void census_session(void *ctx, const struct row_session *session) {
  struct census *c = ctx;
  if (!census_wants_session(c, session))
    return;
  c->sessions++;
  c->unavailable += (uint64_t)session->unavailable_stops;
  census_count_outcome(c, session->outcome);
  if (census_cause_of(c, session) != NAMES_NONE)
    count_cause(c, session);
}

/* --- reading --- */

void census_read(struct census *c, const struct store_ref *ref) {
  enum rows_log state = rows_read(&c->rows, ref);
  c->logs[state]++;
  if (state == ROWS_SOUND || state == ROWS_EMPTY || c->apart_count == LIMIT_AUDIT_APART_COUNT)
    return;
  struct census_apart *apart = &c->apart[c->apart_count++];
  *apart = (struct census_apart){.state = state, .log = xstrndup(ref->name, strlen(ref->name))};
  if (state != ROWS_TORN)
    (void)snprintf(apart->why, sizeof apart->why, "%.*s", (int)sizeof apart->why - 1,
                   c->rows.err.text);
}

static void census_read_one(void *ctx, const struct store_ref *ref) {
  census_read(ctx, ref);
}

bool census_read_store(struct census *c, const struct store *store, struct err *err) {
  return store_each(store, c, census_read_one, err);
}

/* --- order --- */

double census_share(const struct census *c, uint64_t judgments) {
  const struct tally_table *all = &c->tables[CENSUS_ALL];
  uint64_t of = all->count > 0 ? all->groups[0].judgments : 0;
  return of > 0 ? (double)judgments / (double)of : 0;
}

double census_unsure(const struct tally_group *g) {
  return g->judgments > 0 ? (double)g->unsure / (double)g->judgments : 0;
}

double census_unreadable(const struct tally_group *g) {
  return g->units > 0 ? (double)g->outcomes[OUTCOME_UNREADABLE] / (double)g->units : 0;
}

static int by_count(double x, double y) {
  return (x < y) - (x > y);
}

static int by_unsure(const void *a, const void *b) {
  return by_count(census_unsure(a), census_unsure(b));
}

static int by_unreadable(const void *a, const void *b) {
  return by_count(census_unreadable(a), census_unreadable(b));
}

static int by_cause(const void *a, const void *b) {
  const struct census_cause *x = a, *y = b;
  return (x->count < y->count) - (x->count > y->count);
}

static int by_outcome(const void *a, const void *b) {
  const struct census_outcome *x = a, *y = b;
  return (x->count < y->count) - (x->count > y->count);
}

/* The C library's qsort keeps the order of equals, set by tally_sort, as long as it has memory. */
void census_sort(struct census *c) {
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    tally_sort(&c->tables[i], &c->names);
  struct tally_table *movements = &c->tables[CENSUS_MOVEMENTS], *judges = &c->tables[CENSUS_JUDGES];
  if (movements->count > 1)
    qsort(movements->groups, movements->count, sizeof *movements->groups, by_unsure);
  if (judges->count > 1)
    qsort(judges->groups, judges->count, sizeof *judges->groups, by_unreadable);
  qsort(c->causes, c->cause_count, sizeof *c->causes, by_cause);
  qsort(c->outcomes, c->outcome_count, sizeof *c->outcomes, by_outcome);
}

void census_free(struct census *c) {
  if (c == NULL)
    return;
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    tally_deinit(&c->tables[i]);
  for (size_t i = 0; i < c->more_count; i++)
    tally_deinit(&c->more[i]);
  free(c->more);
  for (size_t i = 0; i < CENSUS_WORD_COUNT; i++)
    free(c->wanted[i]);
  for (size_t i = 0; i < c->apart_count; i++)
    free(c->apart[i].log);
  rows_deinit(&c->rows);
  names_deinit(&c->names);
  free(c);
}
