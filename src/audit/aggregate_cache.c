/* Keeps the rows that an aggregate reads, and counts them instead of the logs. */
#include "audit/aggregate_cache.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/index.h"
#include "store/label.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* DESIGN. What a log adds up to is one row of `log_rows`, whose `rows` is JSON that holds only
 * numbers: an array for each row, and in it one for each stage (store/index.c has their order). The
 * words and marks that many of them share are written once, as a kind: a row, a stage and a session
 * name theirs by its number, which never changes. Thus 100,000 logs are read within a moment, and
 * SQLite can take the same apart for a person (the views `judgments`, `stages`, `calls`, `turns`).
 *
 * A log that has not ended is open, or running if a process owns it: that is asked anew each
 * time. `sum` is a checksum of the numbers before it, `rows_sum` of the rows: a damaged row is as
 * none. */
enum { KEPT_FORMAT = 5 }; /* raise it with whatever rows.c reads otherwise than before */
enum { KEPT_LOG_BYTES = 16 * 1024 * 1024, KEPT_PENDING_BYTES = 4 * 1024 * 1024, HEAD_BYTES = 16 };

/* --- kinds --- */

enum kind_of { KIND_SESSION, KIND_ROW, KIND_STAGE, KIND_OF_COUNT };
enum { KIND_FIELD_MOST = 13, KIND_MOST_COUNT = 20000 };

static const struct {
  size_t words, fields; /* fields: words, then numbers */
  const char *load, *put;
} kinds_are[KIND_OF_COUNT] = {
    [KIND_SESSION] = {5, 5, "SELECT * FROM session_kinds ORDER BY number",
                      "INSERT INTO session_kinds VALUES (?1,?2,?3,?4,?5,?6,?7)"},
    [KIND_ROW] = {9, 13, "SELECT * FROM row_kinds ORDER BY number",
                  "INSERT INTO row_kinds VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,"
                  "?15)"},
    [KIND_STAGE] = {4, 9, "SELECT * FROM stage_kinds ORDER BY number",
                    "INSERT INTO stage_kinds VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"},
};
struct kind {
  uint32_t kept[KIND_FIELD_MOST]; /* words are numbers of `words` */
  uint32_t here[KIND_FIELD_MOST]; /* words are numbers of the aggregate's */
  bool is_here;                   /* only what is used takes room there */
};

struct kind_list {
  struct kind *items; /* number n is items[n - 1] */
  size_t count, room;
  struct map map;
  struct sqlite3_stmt *put;
};

/* `sum` covers these, in the order of the columns. FACT_LAST_MS: time of the last row; FACT_USE:
 * what all calls used, a struct row_use. */
enum { USE_COUNT = 6 };
_Static_assert(sizeof(struct row_use) == USE_COUNT * sizeof(int64_t), "a use is its numbers");
enum fact {
  FACT_BYTES,
  FACT_TIME_NS,
  FACT_ENDED,
  FACT_KIND,
  FACT_SESSION_MS,
  FACT_UNAVAILABLE,
  FACT_LAST_MS,
  FACT_STARTED_MS,
  FACT_USE,
  FACT_ROWS_SUM = FACT_USE + USE_COUNT,
  FACT_COUNT
};

struct kept_log { /* what was read and is not written yet */
  char id[STORE_ID_BYTES], head[HEAD_BYTES + 1];
  uint64_t seq;
  size_t at, n; /* its rows in `pending` */
  int64_t facts[FACT_COUNT];
};

struct aggregate_cache {
  struct aggregate *aggregate;
  const struct store *store;
  struct sqlite *s;   /* NULL: nothing is kept */
  int dir;            /* of the logs */
  bool writes;        /* it has the right to, and keeps what it reads */
  uint64_t left, odd; /* sound logs that are not kept, see aggregate_cache_told */
  struct sqlite3_stmt *rows, *put, *drop;
  bool met; /* the log that `rows` is at is in the store */
  struct name_list words;
  struct kind_list kinds[KIND_OF_COUNT];
  struct arena arena; /* of the kinds' maps */
  struct row_stage *stages;
  size_t stage_room;
  uint32_t open, running; /* words of the aggregate */
  struct kept_log *logs;
  size_t log_count, log_room;
  struct buf pending;
  /* of the log that is being read */
  bool spoiled;
  struct kept_log log;
};

static uint64_t aggregate_cache_sum(uint64_t sum, const void *bytes, size_t n) {
  sum ^= n;
  for (size_t i = 0; i < n; i += sizeof sum) {
    uint64_t word = 0;
    memcpy(&word, (const char *)bytes + i, n - i < sizeof word ? n - i : sizeof word);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  return sum;
}

static int64_t kind_sum(const struct aggregate_cache *k, enum kind_of of, size_t number,
                        const uint32_t *kept) {
  size_t words = kinds_are[of].words;
  uint64_t sum =
      aggregate_cache_sum(number, kept + words, (kinds_are[of].fields - words) * sizeof *kept);
  for (size_t i = 0; i < words; i++) {
    struct str word = dictionary_text(&k->words, kept[i]);
    sum = aggregate_cache_sum(sum, word.p != NULL ? word.p : "", word.n);
  }
  return (int64_t)sum;
}

static void kind_add(struct aggregate_cache *k, enum kind_of of, const uint32_t *kept) {
  struct kind_list *list = &k->kinds[of];
  struct str key = {(const char *)kept, kinds_are[of].fields * sizeof *kept};
  list->items = xgrow(list->items, &list->room, list->count + 1, sizeof *list->items);
  list->items[list->count] = (struct kind){0};
  memcpy(list->items[list->count++].kept, kept, key.n);
  map_put(&list->map, &k->arena, key, (uint32_t)list->count);
}

static void kind_put(struct aggregate_cache *k, enum kind_of of, const uint32_t *kept) {
  const struct sqlite_api *api = k->s->api;
  struct sqlite3_stmt *put = k->kinds[of].put;
  size_t number = k->kinds[of].count;
  (void)api->bind_int64(put, 1, (int64_t)number);
  (void)api->bind_int64(put, 2, kind_sum(k, of, number, kept));
  for (size_t i = 0; i < kinds_are[of].fields; i++) {
    if (i < kinds_are[of].words) {
      struct str word = dictionary_text(&k->words, kept[i]); /* NULL for no word */
      (void)api->bind_text(put, (int)i + 3, word.p, (int)word.n, NULL);
    } else {
      (void)api->bind_int64(put, (int)i + 3, kept[i]);
    }
  }
  (void)sqlite_put(k->s, put);
}

/* Returns the number of a kind, whose words are the aggregate's. 0: it has none, and the log is
 * spoiled. */
static uint32_t kind_number(struct aggregate_cache *k, enum kind_of of, const uint32_t *here) {
  uint32_t kept[KIND_FIELD_MOST], number;
  size_t n = kinds_are[of].fields;
  memcpy(kept, here, n * sizeof *kept);
  for (size_t i = 0; i < kinds_are[of].words; i++) {
    if (here[i] > DICTIONARY_OTHER)
      kept[i] = dictionary_add(&k->words, dictionary_text(&k->aggregate->names, here[i]));
    k->spoiled = k->spoiled || kept[i] == DICTIONARY_OTHER; /* nobody knows which word it was */
  }
  if (k->spoiled)
    return 0;
  if (map_get(&k->kinds[of].map, (struct str){(const char *)kept, n * sizeof *kept}, &number))
    return number;
  k->spoiled = k->kinds[of].count == KIND_MOST_COUNT;
  if (k->spoiled)
    return 0;
  kind_add(k, of, kept);
  kind_put(k, of, kept);
  return (uint32_t)k->kinds[of].count;
}

/* Returns the fields of a kind, with the aggregate's words. NULL: there is no such kind. */
static const uint32_t *kind_fields(struct aggregate_cache *k, enum kind_of of, int64_t number) {
  if (number < 1 || (uint64_t)number > k->kinds[of].count)
    return NULL;
  struct kind *kind = &k->kinds[of].items[number - 1];
  if (!kind->is_here) {
    memcpy(kind->here, kind->kept, sizeof kind->here);
    for (size_t i = 0; i < kinds_are[of].words; i++)
      kind->here[i] =
          dictionary_add(&k->aggregate->names, dictionary_text(&k->words, kind->kept[i]));
    kind->is_here = true;
  }
  return kind->here;
}

static bool kinds_load(struct aggregate_cache *k, enum kind_of of) {
  const struct sqlite_api *api = k->s->api;
  struct sqlite3_stmt *q = sqlite_ask(k->s, kinds_are[of].load);
  bool ok = q != NULL;
  while (ok && sqlite_next(k->s, q)) {
    uint32_t kept[KIND_FIELD_MOST] = {0};
    for (size_t i = 0; i < kinds_are[of].fields; i++) {
      int column = (int)i + 2;
      const char *p = i < kinds_are[of].words ? (const char *)api->column_text(q, column) : NULL;
      if (i >= kinds_are[of].words)
        kept[i] = (uint32_t)api->column_int64(q, column);
      else if (p != NULL)
        kept[i] = dictionary_add(&k->words, (struct str){p, (size_t)api->column_bytes(q, column)});
    }
    kind_add(k, of, kept);
    ok = (uint64_t)api->column_int64(q, 0) == k->kinds[of].count &&
         api->column_int64(q, 1) == kind_sum(k, of, k->kinds[of].count, kept);
  }
  api->finalize(q);
  if (!ok && k->s->error == SQLITE_CODE_OK)
    k->s->error = SQLITE_CODE_CORRUPT;
  return k->s->error == SQLITE_CODE_OK;
}

/* --- rows as numbers --- */

enum { ROW_NUMBERS = 3 + USE_COUNT, STAGE_NUMBERS = 1 + 2 * USE_COUNT };

static void write_numbers(struct buf *out, const int64_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = numbers[i] < 0 ? -(uint64_t)numbers[i] : (uint64_t)numbers[i];
    do
      *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (numbers[i] < 0)
      *--at = '-';
    if (i > 0)
      *--at = ',';
    buf_append(out, at, (size_t)(digits + sizeof digits - at));
  }
}

/* Reads "[1,2,3" and passes over a comma behind it. Returns how many numbers there are, up to
 * `most`. */
static size_t read_numbers(struct str *in, int64_t *numbers, size_t most) {
  const char *p = in->p, *end = in->p + in->n;
  size_t count = 0;
  p += p < end; /* the bracket */
  while (p < end && count < most && *p != '[' && *p != ']') {
    uint64_t n = 0;
    bool negative = *p == '-';
    for (p += negative; p < end && *p >= '0' && *p <= '9'; p++)
      n = n * 10 + (uint64_t)(*p - '0');
    p += p < end && *p == ',';
    numbers[count++] = (int64_t)(negative ? -n : n);
  }
  *in = (struct str){p, (size_t)(end - p)};
  return count;
}

static bool take_char(struct str *in, char c) {
  bool is = in->n > 0 && in->p[0] == c;
  *in = (struct str){in->p + is, in->n - is};
  return is;
}

static void sum_use(struct aggregate_cache *k, const struct row_use *use) {
  struct row_use sum;
  memcpy(&sum, &k->log.facts[FACT_USE], sizeof sum);
  row_use_add(&sum, use);
  memcpy(&k->log.facts[FACT_USE], &sum, sizeof sum);
}

static void write_stage(struct aggregate_cache *k, const struct row_stage *stage, bool rest) {
  const uint32_t flags = (uint32_t)(stage->asked | stage->readable << 1 | stage->machine << 2 |
                                    stage->shares << 3 | rest << 4);
  const uint32_t fields[] = {stage->stage, stage->reason,  stage->provider,
                             stage->model, stage->outcome, stage->call_count,
                             stage->rule,  stage->vote,    flags};
  int64_t numbers[STAGE_NUMBERS] = {kind_number(k, KIND_STAGE, fields)};
  size_t count = STAGE_NUMBERS;
  memcpy(numbers + 1, &stage->use, sizeof stage->use);
  memcpy(numbers + 1 + USE_COUNT, &stage->corrections, sizeof stage->corrections);
  sum_use(k, &stage->use);
  while (count > 1 && numbers[count - 1] == 0)
    count--;
  buf_puts(&k->pending, ",[");
  write_numbers(&k->pending, numbers, count);
  buf_putc(&k->pending, ']');
}

static void write_row(struct aggregate_cache *k, const struct row *row) {
  const uint32_t flags = (uint32_t)(row->ambiguous | row->undecided << 1 | row->value << 2 |
                                    row->first_pass << 3 | row->mended << 4 | row->mark << 5);
  const uint32_t fields[] = {row->movement, row->method, row->match_method, row->provider,
                             row->model,    row->worker, row->worker_model, row->schema,
                             row->failure,  row->kind,   row->rule,         row->answers,
                             flags};
  int64_t numbers[ROW_NUMBERS] = {row->turn, kind_number(k, KIND_ROW, fields), row->time_ms};
  if (row->kind != ROW_VALUE) { /* the turn's other row has the work */
    memcpy(numbers + 3, &row->work, sizeof row->work);
    sum_use(k, &row->work);
  }
  buf_puts(&k->pending, k->pending.n > k->log.at + 1 ? ",[" : "[");
  write_numbers(&k->pending, numbers, ROW_NUMBERS);
  for (size_t i = 0; i < row->stage_count + row->rest_count; i++)
    write_stage(k, &row->stages[i], i >= row->stage_count);
  buf_putc(&k->pending, ']');
}

static bool read_stage(struct aggregate_cache *k, struct str *in, struct row *row) {
  int64_t numbers[STAGE_NUMBERS] = {0};
  bool ok = read_numbers(in, numbers, STAGE_NUMBERS) > 0 && take_char(in, ']');
  const uint32_t *f = kind_fields(k, KIND_STAGE, numbers[0]);
  if (!ok || f == NULL)
    return false;
  (void)take_char(in, ',');
  size_t count = row->stage_count + row->rest_count;
  k->stages = xgrow(k->stages, &k->stage_room, count + 1, sizeof *k->stages);
  struct row_stage *stage = &k->stages[count];
  *stage = (struct row_stage){.stage = f[0],
                              .reason = f[1],
                              .provider = f[2],
                              .model = f[3],
                              .outcome = (uint8_t)f[4],
                              .call_count = (uint8_t)f[5],
                              .rule = f[6],
                              .vote = (uint8_t)f[7],
                              .asked = f[8] & 1,
                              .readable = f[8] & 2,
                              .machine = f[8] & 4,
                              .shares = f[8] & 8};
  memcpy(&stage->use, numbers + 1, sizeof stage->use);
  memcpy(&stage->corrections, numbers + 1 + USE_COUNT, sizeof stage->corrections);
  if (f[8] & 16)
    row->rest_count++;
  else
    row->stage_count++;
  return true;
}

static bool read_row(struct aggregate_cache *k, struct str *in, struct row *row) {
  int64_t numbers[ROW_NUMBERS];
  const uint32_t *f = NULL;
  if (read_numbers(in, numbers, ROW_NUMBERS) == ROW_NUMBERS)
    f = kind_fields(k, KIND_ROW, numbers[1]);
  if (f == NULL)
    return false;
  *row = (struct row){.movement = f[0],
                      .method = f[1],
                      .match_method = f[2],
                      .provider = f[3],
                      .model = f[4],
                      .worker = f[5],
                      .worker_model = f[6],
                      .schema = f[7],
                      .failure = f[8],
                      .kind = (enum row_kind)f[9],
                      .rule = f[10],
                      .answers = f[11],
                      .ambiguous = f[12] & 1,
                      .undecided = f[12] & 2,
                      .value = f[12] & 4,
                      .first_pass = f[12] & 8,
                      .mended = f[12] & 16,
                      .mark = (uint8_t)((f[12] >> 5) % TAG_MARK_COUNT),
                      .turn = (long)numbers[0],
                      .time_ms = numbers[2]};
  memcpy(&row->work, numbers + 3, sizeof row->work);
  while (!take_char(in, ']'))
    if (!read_stage(k, in, row))
      return false;
  (void)take_char(in, ',');
  row->stages = k->stages;
  return true;
}

/* --- reading a log, and keeping it --- */

static void aggregate_cache_see_time(struct aggregate_cache *k, int64_t time_ms) {
  if (time_ms > k->log.facts[FACT_LAST_MS])
    k->log.facts[FACT_LAST_MS] = time_ms;
}

static void aggregate_cache_on_row(void *ctx, const struct row *row) {
  struct aggregate_cache *k = ctx;
  k->spoiled = k->spoiled || k->pending.n - k->log.at > KEPT_LOG_BYTES;
  if (!k->spoiled)
    write_row(k, row);
  aggregate_cache_see_time(k, row->time_ms);
  aggregate_take_row(k->aggregate, row);
}

static void aggregate_cache_on_session(void *ctx, const struct row_session *session) {
  struct aggregate_cache *k = ctx;
  int64_t *facts = k->log.facts;
  struct str outcome = dictionary_text(&k->aggregate->names, session->outcome);
  bool goes_on = session->outcome == k->open || session->outcome == k->running;
  const uint32_t fields[] = {session->workflow, goes_on ? DICTIONARY_NONE : session->outcome,
                             session->cause, session->folder, session->user};
  facts[FACT_ENDED] =
      str_eq_c(outcome, "complete") || str_eq_c(outcome, "abort") || str_eq_c(outcome, "cancelled");
  facts[FACT_KIND] = kind_number(k, KIND_SESSION, fields);
  facts[FACT_SESSION_MS] = session->time_ms;
  facts[FACT_UNAVAILABLE] = session->unavailable_stops;
  facts[FACT_STARTED_MS] = session->started_ms;
  aggregate_cache_see_time(k, session->time_ms);
  aggregate_take_session(k->aggregate, session);
}

static int64_t facts_sum(const int64_t facts[FACT_COUNT]) {
  return (int64_t)aggregate_cache_sum(KEPT_FORMAT, facts, FACT_COUNT * sizeof *facts);
}

static int by_id(const void *a, const void *b) {
  const struct kept_log *x = a, *y = b;
  return strcmp(x->id, y->id);
}

/* Returns a number that changes when another process has written. */
static int64_t aggregate_cache_version(struct aggregate_cache *k) {
  struct sqlite3_stmt *q = sqlite_ask(k->s, "PRAGMA data_version");
  int64_t version = sqlite_next(k->s, q) ? k->s->api->column_int64(q, 0) : 0;
  k->s->api->finalize(q);
  return version;
}

/* Writes what waits, by rising ids: the file is half as large as by falling ones. */
static void aggregate_cache_flush(struct aggregate_cache *k) {
  const struct sqlite_api *api = k->s->api;
  if (k->log_count > 1)
    qsort(k->logs, k->log_count, sizeof *k->logs, by_id);
  size_t kept = 0;
  for (size_t i = 0; i < k->log_count && k->writes; i++) {
    struct kept_log *log = &k->logs[i];
    const char *rows = k->pending.p + log->at;
    log->facts[FACT_ROWS_SUM] = (int64_t)aggregate_cache_sum(0, rows, log->n);
    (void)api->bind_text(k->put, 1, log->id, -1, NULL);
    (void)api->bind_int64(k->put, 2, (int64_t)log->seq);
    (void)api->bind_text(k->put, 3, log->head, -1, NULL);
    for (int f = 0; f < FACT_COUNT; f++)
      (void)api->bind_int64(k->put, 4 + f, log->facts[f]);
    (void)api->bind_int64(k->put, 4 + FACT_COUNT, facts_sum(log->facts));
    (void)api->bind_text(k->put, 5 + FACT_COUNT, rows, (int)log->n, NULL);
    k->writes = k->s->error == SQLITE_CODE_OK && sqlite_put(k->s, k->put);
    kept += k->writes;
  }
  k->left += k->log_count - kept;
  k->log_count = 0;
  buf_clear(&k->pending);
  /* Saved from time to time: a killed audit has not read all in vain. If another process has
   * written meanwhile, its kinds are not known here. */
  int64_t before = aggregate_cache_version(k);
  k->writes = k->writes && sqlite_run(k->s, "COMMIT") && sqlite_run(k->s, "BEGIN IMMEDIATE") &&
              aggregate_cache_version(k) == before;
}

/* Reads a log. Its size and time are taken before, so that a later append makes it read again. */
static void aggregate_cache_read_log(struct aggregate_cache *k, const char *id) {
  struct rows *rows = &k->aggregate->rows;
  const struct rows saved = *rows;
  uint64_t bytes;
  struct store_ref ref;
  store_ref(k->store, id, &ref);
  k->log = (struct kept_log){.at = k->pending.n};
  k->spoiled = false;
  if (!k->writes || !index_stat(k->dir, id, &bytes, &k->log.facts[FACT_TIME_NS])) {
    k->left += aggregate_read(k->aggregate, &ref) == ROWS_SOUND;
    return;
  }
  k->log.facts[FACT_BYTES] = (int64_t)bytes;
  buf_putc(&k->pending, '[');
  rows->sink = (struct rows_sink){aggregate_cache_on_row, aggregate_cache_on_session};
  rows->ctx = k;
  rows->wants_schema = true;
  enum rows_log state = aggregate_read(k->aggregate, &ref);
  rows->sink = saved.sink;
  rows->ctx = saved.ctx;
  rows->wants_schema = saved.wants_schema;
  if (state != ROWS_SOUND || k->spoiled || rows->end != bytes ||
      strcmp(rows->session.id, id) != 0) {
    k->pending.n = k->log.at;
    k->odd += state == ROWS_SOUND;
    return;
  }
  buf_putc(&k->pending, ']');
  print_into(k->log.id, sizeof k->log.id, "%s", id);
  print_into(k->log.head, sizeof k->log.head, "%.*s", HEAD_BYTES, rows->hash);
  k->log.seq = rows->records;
  k->log.n = k->pending.n - k->log.at;
  k->logs = xgrow(k->logs, &k->log_room, k->log_count + 1, sizeof *k->logs);
  k->logs[k->log_count++] = k->log;
  if (k->log_count == LIMIT_INDEX_STEP_COUNT || k->pending.n > KEPT_PENDING_BYTES)
    aggregate_cache_flush(k);
}

/* --- counting what is kept --- */

enum kept_column { KEPT_ID, KEPT_FACTS, KEPT_SUM = KEPT_FACTS + FACT_COUNT, KEPT_ROWS };

/* Counts the rows of a log. Their sum was right, so they are what was written. */
static void aggregate_cache_count(struct aggregate_cache *k, const char *id,
                                  const int64_t facts[FACT_COUNT], struct str in) {
  const uint32_t *f = kind_fields(k, KIND_SESSION, facts[FACT_KIND]);
  struct row row;
  if (f == NULL)
    return;
  struct row_session session = {.workflow = f[0],
                                .outcome = f[1],
                                .cause = f[2],
                                .folder = f[3],
                                .user = f[4],
                                .time_ms = facts[FACT_SESSION_MS],
                                .unavailable_stops = facts[FACT_UNAVAILABLE]};
  if (session.outcome == DICTIONARY_NONE) {
    struct store_ref ref;
    store_ref(k->store, id, &ref);
    session.outcome = store_is_owned(&ref) ? k->running : k->open;
  }
  print_into(session.id, sizeof session.id, "%s", id);
  (void)take_char(&in, '[');
  while (in.n > 1 && read_row(k, &in, &row)) {
    rows_of_session(&k->aggregate->names, &session, &row);
    aggregate_take_row(k->aggregate, &row);
  }
  aggregate_take_session(k->aggregate, &session);
}

/* Counts the log that the query is at, if it is as it was. */
static bool aggregate_cache_take(struct aggregate_cache *k, const char *id) {
  const struct sqlite_api *api = k->s->api;
  int64_t facts[FACT_COUNT], time_ns;
  uint64_t bytes;
  for (int f = 0; f < FACT_COUNT; f++)
    facts[f] = api->column_int64(k->rows, KEPT_FACTS + f);
  if (facts_sum(facts) != api->column_int64(k->rows, KEPT_SUM))
    return false;
  if (!facts[FACT_ENDED] &&
      (!index_stat(k->dir, id, &bytes, &time_ns) || bytes != (uint64_t)facts[FACT_BYTES] ||
       time_ns != facts[FACT_TIME_NS]))
    return false;
  const char *p = (const char *)api->column_text(k->rows, KEPT_ROWS);
  struct str rows = {p, (size_t)api->column_bytes(k->rows, KEPT_ROWS)};
  bool wanted = facts[FACT_LAST_MS] >= k->aggregate->since_ms;
  if (wanted &&
      (p == NULL || (int64_t)aggregate_cache_sum(0, rows.p, rows.n) != facts[FACT_ROWS_SUM]))
    return false;
  if (wanted)
    aggregate_cache_count(k, id, facts, rows);
  k->aggregate->logs[ROWS_SOUND]++;
  k->aggregate->rows.bytes += (uint64_t)facts[FACT_BYTES];
  return true;
}

/* Moves the query, whose ids fall, to an id. Returns whether it is there. */
static bool aggregate_cache_find(struct aggregate_cache *k, const char *id) {
  while (k->rows != NULL) {
    const char *at = (const char *)k->s->api->column_text(k->rows, KEPT_ID);
    int order = at != NULL ? strcmp(at, id) : 1;
    if (order <= 0) {
      k->met = order == 0;
      return k->met;
    }
    if (!k->met && at != NULL && k->writes) {
      (void)k->s->api->bind_text(k->drop, 1, at, -1, NULL);
      k->writes = sqlite_put(k->s, k->drop);
    }
    k->met = false;
    if (!sqlite_next(k->s, k->rows)) {
      k->s->api->finalize(k->rows);
      k->rows = NULL;
    }
  }
  return false;
}

/* --- labels --- */

static void copy_label(void *ctx, const struct label *label) {
  struct aggregate_cache *k = ctx;
  const struct sqlite_api *api = k->s->api;
  if (label->dismissed > 0)
    return;
  struct sqlite3_stmt *put =
      sqlite_ask(k->s, "INSERT INTO label_rows VALUES (?1,?2,?3,nullif(?4, 0),?5,?6,?7,?8)");
  if (put == NULL)
    return;
  (void)api->bind_int64(put, 1, (int64_t)label->number);
  (void)api->bind_text(put, 2, label->session, -1, NULL);
  (void)api->bind_int64(put, 3, label->turn);
  (void)api->bind_int64(put, 4, label->rule);
  (void)api->bind_text(put, 5, label->by, -1, NULL);
  (void)api->bind_int64(put, 6, label->blind);
  (void)api->bind_text(put, 7, label->population > 0 ? label->stratum : NULL, -1, NULL);
  (void)api->bind_int64(put, 8, (int64_t)label->population);
  (void)sqlite_put(k->s, put);
  api->finalize(put);
}

/* Copies the labels of people again when their file is another than before. */
static void aggregate_cache_copy_labels(struct aggregate_cache *k) {
  char was[64] = "", is[64] = "";
  struct stat st;
  struct err ignored; /* up to one that somebody changed; then they are read again each time */
  if (fstatat(k->dir, "labels/labels.log", &st, 0) != 0)
    return;
  print_into(is, sizeof is, "%lld %lld.%09ld", (long long)st.st_size, (long long)st.st_mtim.tv_sec,
             st.st_mtim.tv_nsec);
  struct sqlite3_stmt *q = sqlite_ask(k->s, "SELECT state FROM label_log");
  if (sqlite_next(k->s, q))
    print_into(was, sizeof was, "%s", (const char *)k->s->api->column_text(q, 0));
  k->s->api->finalize(q);
  if (strcmp(was, is) == 0 || !sqlite_run(k->s, "DELETE FROM label_rows; DELETE FROM label_log"))
    return;
  if (!labels_read(k->store, copy_label, k, &ignored))
    return;
  q = sqlite_ask(k->s, "INSERT INTO label_log VALUES (?1)");
  if (q != NULL)
    (void)k->s->api->bind_text(q, 1, is, -1, NULL);
  (void)sqlite_put(k->s, q);
  k->s->api->finalize(q);
}

/* --- the file --- */

/* Opens the index; without one, or while another process is writing, all logs are read, or none of
 * them kept. */
static void aggregate_cache_open(struct aggregate_cache *k, struct aggregate *c,
                                 const struct store *store, int wait_ms) {
  *k = (struct aggregate_cache){.aggregate = c, .store = store, .dir = -1};
  k->open = dictionary_add(&c->names, STR("open"));
  k->running = dictionary_add(&c->names, STR("running"));
  k->s = index_file_open(store, true);
  if (k->s == NULL)
    return;
  (void)k->s->api->busy_timeout(k->s->db, wait_ms);
  k->dir = index_folder(store);
  k->writes = sqlite_run(k->s, "BEGIN IMMEDIATE");
  if (!k->writes) {
    k->s->error = SQLITE_CODE_OK;
    (void)sqlite_run(k->s, "BEGIN"); /* kinds and rows of one moment */
  }
  for (int i = 0; i < KIND_OF_COUNT; i++) {
    if (!kinds_load(k, (enum kind_of)i)) {
      k->writes = false;
      return;
    }
    k->kinds[i].put = sqlite_ask(k->s, kinds_are[i].put);
  }
  if (k->writes)
    aggregate_cache_copy_labels(k);
  k->put = sqlite_ask(k->s, "INSERT OR REPLACE INTO log_rows VALUES"
                            " (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,"
                            "?20)");
  k->drop = sqlite_ask(k->s, "DELETE FROM log_rows WHERE session = ?1");
  k->rows = sqlite_ask(
      k->s, "SELECT session, bytes, time_ns, ended, kind, time_ms,"
            " unavailable_stops, last_ms, started_ms, calls, call_ms, input, output, cost_nano,"
            " unpriced, rows_sum, sum, CASE WHEN last_ms >= ?1 THEN rows END"
            " FROM log_rows ORDER BY session DESC");
  if (k->rows != NULL)
    (void)k->s->api->bind_int64(k->rows, 1, c->since_ms);
  if (!sqlite_next(k->s, k->rows)) {
    k->s->api->finalize(k->rows);
    k->rows = NULL;
  }
}

static void aggregate_cache_close(struct aggregate_cache *k) {
  if (k->s != NULL) {
    if (k->log_count > 0)
      aggregate_cache_flush(k);
    k->s->api->finalize(k->rows);
    k->s->api->finalize(k->put);
    k->s->api->finalize(k->drop);
    for (int i = 0; i < KIND_OF_COUNT; i++)
      k->s->api->finalize(k->kinds[i].put);
    (void)sqlite_run(k->s, k->s->error == SQLITE_CODE_OK ? "COMMIT" : "ROLLBACK");
  }
  index_file_close(k->s);
  if (k->dir >= 0)
    close(k->dir);
  for (int i = 0; i < KIND_OF_COUNT; i++) {
    map_deinit(&k->kinds[i].map);
    free(k->kinds[i].items);
  }
  arena_deinit(&k->arena);
  dictionary_deinit(&k->words);
  buf_deinit(&k->pending);
  free(k->logs);
  free(k->stages);
}

bool aggregate_cache_read(struct aggregate *c, const struct store *store,
                          struct aggregate_cache_told *told, struct err *err) {
  struct store_id *ids;
  size_t count;
  struct aggregate_cache k;
  if (!store_list(store, &ids, &count, err))
    return false;
  aggregate_cache_open(&k, c, store, told->wait_ms);
  for (size_t i = 0; i < count; i++) /* the newest first, as the query */
    if (aggregate_cache_find(&k, ids[i].id) && aggregate_cache_take(&k, ids[i].id)) {
      told->known++;
    } else {
      told->read++;
      aggregate_cache_read_log(&k, ids[i].id);
    }
  (void)aggregate_cache_find(&k, ""); /* drops the rows behind the last log */
  aggregate_cache_close(&k);
  told->left = k.left;
  told->odd = k.odd;
  free(ids);
  return true;
}

void aggregate_cache_refresh(const struct store *store, size_t budget, bool *more) {
  struct aggregate_cache k;
  char(*ids)[STORE_ID_BYTES] = xcalloc(budget + 1, sizeof *ids);
  size_t count = 0;
  *more = false;
  struct aggregate *c = aggregate_new();
  aggregate_cache_open(&k, c, store, 0);
  struct sqlite3_stmt *q = NULL;
  if (k.writes)
    q = sqlite_ask(k.s, "SELECT id FROM list_rows AS s LEFT JOIN log_rows AS l ON l.session = s.id"
                        " WHERE s.status <> 'running' AND (l.session IS NULL OR"
                        " l.bytes <> s.bytes OR l.time_ns <> s.time_ns)");
  while (!*more && sqlite_next(k.s, q)) {
    *more = count == budget;
    if (!*more)
      print_into(ids[count++], sizeof *ids, "%s", (const char *)k.s->api->column_text(q, 0));
  }
  if (k.s != NULL)
    k.s->api->finalize(q);
  for (size_t i = 0; i < count; i++)
    aggregate_cache_read_log(&k, ids[i]);
  (void)(k.writes && sqlite_run(k.s, "DELETE FROM log_rows WHERE session NOT IN"
                                     " (SELECT id FROM list_rows)"));
  aggregate_cache_close(&k);
  aggregate_free(c);
  free(ids);
}
