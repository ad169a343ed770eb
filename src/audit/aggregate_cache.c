/* Keeps the rows that an aggregate reads, and counts them instead of the logs. */
#include "audit/aggregate_cache.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/index.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* DESIGN. The rows of a log are one value of `aggregate`: a checksum, KEPT_FORMAT, then numbers of
 * seven bits a byte, and words by their number in `words`. A number of a word never changes. */
enum { KEPT_FORMAT = 1 }; /* raise it with whatever rows.c reads otherwise than before */
enum { KEPT_SUM_BYTES = 8, KEPT_MOST_BYTES = 64 * 1024 * 1024, HEAD_BYTES = 16 };

struct aggregate_cache {
  struct aggregate *aggregate;
  struct sqlite *s; /* NULL: nothing is kept */
  int dir;          /* of the logs */
  bool writes;      /* it has the right to, and keeps what it reads */
  size_t unsaved;
  struct sqlite3_stmt *rows, *put, *put_word, *drop;
  bool met;               /* the log that `rows` is at is in the store */
  struct name_list words; /* the number of a word is that in `words` */
  uint32_t *census_words; /* its number in the aggregate; 0: not used yet */
  size_t census_room;
  struct row_stage *stages;
  size_t stage_room;
  /* of the log that is being read */
  struct buf packed;
  bool spoiled;
  bool over, ended;
  int64_t last_ms; /* time of its last row */
};

static uint64_t aggregate_cache_sum(struct str bytes) {
  uint64_t sum = bytes.n;
  for (size_t i = 0; i < bytes.n; i += sizeof sum) {
    uint64_t word = 0;
    size_t n = bytes.n - i < sizeof word ? bytes.n - i : sizeof word;
    memcpy(&word, bytes.p + i, n);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  return sum;
}

/* --- rows as bytes --- */

struct coder { /* writes to k->packed, or reads `in` */
  struct aggregate_cache *k;
  bool writes;
  bool bad; /* what it reads is not what was written */
  struct str in;
};

/* Each `code` writes a value, or reads it into its place. */
static void code_number(struct coder *c, int64_t *n) {
  uint64_t bits = ((uint64_t)*n << 1) ^ (uint64_t)(*n >> 63);
  if (c->writes) {
    for (; bits >= 0x80; bits >>= 7)
      buf_putc(&c->k->packed, (char)(bits | 0x80));
    buf_putc(&c->k->packed, (char)bits);
    return;
  }
  if (c->in.n > 0 && (*c->in.p & 0x80) == 0) { /* most are small */
    bits = (unsigned char)*c->in.p++;
    c->in.n--;
    *n = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return;
  }
  unsigned shift = 0;
  unsigned char byte = 0x80;
  for (bits = 0; byte >= 0x80 && shift < 64 && c->in.n > 0; shift += 7) {
    byte = (unsigned char)*c->in.p++;
    c->in.n--;
    bits |= (uint64_t)(byte & 0x7f) << shift;
  }
  c->bad = c->bad || byte >= 0x80;
  *n = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
}

#define CODE(c, place)                                                                             \
  do {                                                                                             \
    int64_t code_n = (int64_t)(place);                                                             \
    code_number(c, &code_n);                                                                       \
    (place) = (__typeof__(place))code_n;                                                           \
  } while (0)

static uint32_t aggregate_cache_word_of(struct aggregate_cache *k, uint32_t aggregate_word) {
  uint32_t before = k->words.count;
  if (aggregate_word == DICTIONARY_NONE)
    return DICTIONARY_NONE;
  uint32_t number = DICTIONARY_OTHER;
  if (aggregate_word != DICTIONARY_OTHER)
    number = dictionary_add(&k->words, dictionary_text(&k->aggregate->names, aggregate_word));
  k->spoiled = k->spoiled || number == DICTIONARY_OTHER; /* then nobody knows which word it was */
  if (k->words.count > before) {
    struct str word = dictionary_text(&k->words, number);
    (void)k->s->api->bind_int64(k->put_word, 1, number);
    (void)k->s->api->bind_blob(k->put_word, 2, word.p, (int)word.n, NULL);
    (void)sqlite_put(k->s, k->put_word);
  }
  return number;
}

static uint32_t aggregate_cache_audit_word(struct coder *c, int64_t number) {
  struct aggregate_cache *k = c->k;
  if (number < 2 || (uint64_t)number - 2 >= k->words.count) {
    c->bad = c->bad || number != DICTIONARY_NONE;
    return DICTIONARY_NONE;
  }
  if ((size_t)number >= k->census_room) {
    size_t room = k->words.count + 64;
    k->census_words = xrealloc(k->census_words, room * sizeof *k->census_words);
    memset(k->census_words + k->census_room, 0, (room - k->census_room) * sizeof *k->census_words);
    k->census_room = room;
  }
  uint32_t *word = &k->census_words[number];
  if (*word == DICTIONARY_NONE)
    *word = dictionary_add(&k->aggregate->names, dictionary_text(&k->words, (uint32_t)number));
  return *word;
}

static void code_word(struct coder *c, uint32_t *word) {
  int64_t n = c->writes ? aggregate_cache_word_of(c->k, *word) : 0;
  code_number(c, &n);
  if (!c->writes)
    *word = aggregate_cache_audit_word(c, n);
}

static void code_use(struct coder *c, struct row_use *use) {
  static const struct row_use none;
  int64_t any = memcmp(use, &none, sizeof none) != 0;
  code_number(c, &any);
  if (any == 0)
    return;
  CODE(c, use->calls);
  CODE(c, use->ms);
  CODE(c, use->input);
  CODE(c, use->output);
  CODE(c, use->cost_nano);
  CODE(c, use->unpriced);
}

static void code_stage(struct coder *c, struct row_stage *stage) {
  int64_t bits = stage->asked | stage->readable << 1 | stage->machine << 2 | stage->shares << 3 |
                 stage->outcome << 4;
  code_number(c, &bits);
  stage->asked = bits & 1;
  stage->readable = bits & 2;
  stage->machine = bits & 4;
  stage->shares = bits & 8;
  c->bad = c->bad || bits >> 4 > OUTCOME_COUNT;
  stage->outcome = (uint8_t)(c->bad ? OUTCOME_COUNT : bits >> 4);
  code_word(c, &stage->stage);
  code_word(c, &stage->reason);
  code_word(c, &stage->provider);
  code_word(c, &stage->model);
  CODE(c, stage->call_count);
  CODE(c, stage->rule);
  CODE(c, stage->vote);
  code_use(c, &stage->use);
  code_use(c, &stage->corrections);
}

/* Codes what an aggregate counts of a row, but for its stages. */
static void code_row(struct coder *c, struct row *row) {
  int64_t bits = row->ambiguous | row->undecided << 1 | row->value << 2 | row->first_pass << 3 |
                 row->mended << 4 | (int)row->kind << 5;
  code_number(c, &bits);
  row->ambiguous = bits & 1;
  row->undecided = bits & 2;
  row->value = bits & 4;
  row->first_pass = bits & 8;
  row->mended = bits & 16;
  c->bad = c->bad || bits >> 5 > ROW_REST;
  row->kind = c->bad ? ROW_REST : (enum row_kind)(bits >> 5);
  uint32_t *const words[] = {&row->workflow, &row->movement, &row->method, &row->match_method,
                             &row->provider, &row->model,    &row->worker, &row->worker_model,
                             &row->schema,   &row->outcome,  &row->failure};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    code_word(c, words[i]);
  CODE(c, row->rule);
  CODE(c, row->turn);
  CODE(c, row->time_ms);
  CODE(c, row->answers);
  code_use(c, &row->work);
  CODE(c, row->stage_count);
  CODE(c, row->rest_count);
}

static void code_session(struct coder *c, struct row_session *session) {
  code_word(c, &session->workflow);
  code_word(c, &session->outcome);
  code_word(c, &session->cause);
  CODE(c, session->time_ms);
  CODE(c, session->unavailable_stops);
}

/* --- reading a log, and keeping it --- */

static void aggregate_cache_see_time(struct aggregate_cache *k, int64_t time_ms) {
  k->last_ms = time_ms > k->last_ms ? time_ms : k->last_ms;
}

static void aggregate_cache_on_row(void *ctx, const struct row *row) {
  struct aggregate_cache *k = ctx;
  struct coder c = {.k = k, .writes = true};
  struct row copy = *row;
  int64_t more = 1;
  if (k->packed.n > KEPT_MOST_BYTES)
    k->spoiled = true;
  if (!k->spoiled) {
    code_number(&c, &more);
    code_row(&c, &copy);
  }
  for (size_t i = 0; !k->spoiled && i < row->stage_count + row->rest_count; i++) {
    struct row_stage stage = row->stages[i];
    code_stage(&c, &stage);
  }
  aggregate_cache_see_time(k, row->time_ms);
  aggregate_take_row(k->aggregate, row);
}

static void aggregate_cache_on_session(void *ctx, const struct row_session *session) {
  struct aggregate_cache *k = ctx;
  struct coder c = {.k = k, .writes = true};
  struct row_session copy = *session;
  struct str outcome = dictionary_text(&k->aggregate->names, session->outcome);
  int64_t more = 0;
  k->over = !str_eq_c(outcome, "open") && !str_eq_c(outcome, "running");
  k->ended =
      str_eq_c(outcome, "complete") || str_eq_c(outcome, "abort") || str_eq_c(outcome, "cancelled");
  code_number(&c, &more);
  code_session(&c, &copy);
  aggregate_cache_see_time(k, session->time_ms);
  aggregate_take_session(k->aggregate, session);
}

static void aggregate_cache_put(struct aggregate_cache *k, const char *id, uint64_t bytes,
                                int64_t time_ns) {
  const struct sqlite_api *api = k->s->api;
  const struct rows *rows = &k->aggregate->rows;
  struct str packed = buf_view(&k->packed);
  uint64_t sum =
      aggregate_cache_sum((struct str){packed.p + KEPT_SUM_BYTES, packed.n - KEPT_SUM_BYTES});
  memcpy(k->packed.p, &sum, sizeof sum);
  (void)api->bind_text(k->put, 1, id, -1, NULL);
  (void)api->bind_int64(k->put, 2, (int64_t)bytes);
  (void)api->bind_int64(k->put, 3, time_ns);
  (void)api->bind_int64(k->put, 4, (int64_t)rows->records);
  (void)api->bind_text(k->put, 5, rows->hash, HEAD_BYTES, NULL);
  (void)api->bind_int64(k->put, 6, k->ended);
  (void)api->bind_int64(k->put, 7, k->last_ms);
  (void)api->bind_blob(k->put, 8, packed.p, (int)packed.n, NULL);
  k->writes = k->s->error == SQLITE_CODE_OK && sqlite_put(k->s, k->put);
  if (k->writes && ++k->unsaved == LIMIT_INDEX_STEP_COUNT) {
    /* Saved from time to time: a killed audit has not read all in vain. */
    k->unsaved = 0;
    k->writes = sqlite_run(k->s, "COMMIT") && sqlite_run(k->s, "BEGIN IMMEDIATE");
  }
}

/* Reads a log. Its size and time are taken before, so that a later append makes it read again. */
static void aggregate_cache_read_log(struct aggregate_cache *k, const struct store *store,
                                     const char *id) {
  struct rows *rows = &k->aggregate->rows;
  const struct rows saved = *rows;
  uint64_t bytes, before = rows->bytes;
  int64_t time_ns;
  struct store_ref ref;
  store_ref(store, id, &ref);
  if (!k->writes || !index_stat(k->dir, id, &bytes, &time_ns)) {
    aggregate_read(k->aggregate, &ref);
    return;
  }
  buf_clear(&k->packed);
  buf_append(&k->packed, "\0\0\0\0\0\0\0", KEPT_SUM_BYTES);
  buf_putc(&k->packed, KEPT_FORMAT);
  k->over = k->ended = k->spoiled = false;
  k->last_ms = 0;
  rows->sink = (struct rows_sink){aggregate_cache_on_row, aggregate_cache_on_session};
  rows->ctx = k;
  rows->wants_schema = true;
  enum rows_log state = aggregate_read(k->aggregate, &ref);
  rows->sink = saved.sink;
  rows->ctx = saved.ctx;
  rows->wants_schema = saved.wants_schema;
  if (state == ROWS_SOUND && k->over && !k->spoiled && rows->bytes - before == bytes &&
      strcmp(rows->session.id, id) == 0)
    aggregate_cache_put(k, id, bytes, time_ns);
}

/* --- counting what is kept --- */

enum aggregate_cache_column { KEPT_ID, KEPT_BYTES, KEPT_TIME, KEPT_ENDED, KEPT_ROWS };

/* Counts the rows of a log. in: NULL if none can pass the filters. */
static void aggregate_cache_count(struct aggregate_cache *k, const char *id, struct str in) {
  struct aggregate *aggregate = k->aggregate;
  struct coder c = {.k = k, .in = in};
  struct row_session session = {0};
  int64_t more = 0;
  for (code_number(&c, &more); more == 1 && !c.bad; code_number(&c, &more)) {
    struct row row = {0};
    code_row(&c, &row);
    size_t count = row.stage_count + row.rest_count;
    if (c.bad || row.stage_count > c.in.n || row.rest_count > c.in.n)
      return;
    k->stages = xgrow(k->stages, &k->stage_room, count, sizeof *k->stages);
    for (size_t i = 0; i < count; i++) {
      k->stages[i] = (struct row_stage){0};
      code_stage(&c, &k->stages[i]);
    }
    row.stages = k->stages;
    aggregate_take_row(aggregate, &row);
  }
  code_session(&c, &session);
  print_into(session.id, sizeof session.id, "%s", id);
  if (!c.bad)
    aggregate_take_session(aggregate, &session);
}

/* Counts the log that the query is at, if it is as it was. */
static bool aggregate_cache_take(struct aggregate_cache *k, const char *id) {
  const struct sqlite_api *api = k->s->api;
  uint64_t bytes = (uint64_t)api->column_int64(k->rows, KEPT_BYTES), is_bytes;
  int64_t time_ns = api->column_int64(k->rows, KEPT_TIME), is_ns;
  bool same = api->column_int64(k->rows, KEPT_ENDED) ||
              (index_stat(k->dir, id, &is_bytes, &is_ns) && is_bytes == bytes && is_ns == time_ns);
  const char *p = api->column_blob(k->rows, KEPT_ROWS);
  size_t n = (size_t)api->column_bytes(k->rows, KEPT_ROWS);
  struct str in = {p + KEPT_SUM_BYTES, n - KEPT_SUM_BYTES};
  uint64_t sum;
  if (!same || (p != NULL && n <= KEPT_SUM_BYTES))
    return false;
  if (p != NULL) {
    memcpy(&sum, p, sizeof sum);
    if (sum != aggregate_cache_sum(in) || in.p[0] != KEPT_FORMAT)
      return false;
    aggregate_cache_count(k, id, (struct str){in.p + 1, in.n - 1});
  }
  k->aggregate->logs[ROWS_SOUND]++;
  k->aggregate->rows.bytes += bytes;
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

/* --- the file --- */

static bool aggregate_cache_load_words(struct aggregate_cache *k) {
  struct sqlite3_stmt *q = sqlite_ask(k->s, "SELECT number, word FROM words ORDER BY number");
  bool ok = q != NULL;
  while (ok && sqlite_next(k->s, q)) {
    struct str word = {k->s->api->column_blob(q, 1), (size_t)k->s->api->column_bytes(q, 1)};
    ok = word.n > 0 && dictionary_add(&k->words, word) == k->s->api->column_int64(q, 0);
  }
  k->s->api->finalize(q);
  if (!ok && k->s->error == SQLITE_CODE_OK)
    k->s->error = SQLITE_CODE_CORRUPT;
  return k->s->error == SQLITE_CODE_OK;
}

/* Opens the index; without one, or while another process is writing, all logs are read, or none of
 * them kept. */
static void aggregate_cache_open(struct aggregate_cache *k, struct aggregate *c,
                                 const struct store *store) {
  *k = (struct aggregate_cache){.aggregate = c, .dir = -1};
  k->s = index_file_open(store, true);
  if (k->s == NULL)
    return;
  k->dir = index_folder(store);
  k->writes = sqlite_run(k->s, "BEGIN IMMEDIATE");
  if (!k->writes) {
    k->s->error = SQLITE_CODE_OK;
    (void)sqlite_run(k->s, "BEGIN"); /* words and rows of one moment */
  }
  if (!aggregate_cache_load_words(k)) {
    k->writes = false;
    return;
  }
  k->put_word = sqlite_ask(k->s, "INSERT INTO words VALUES (?1, ?2)");
  k->put = sqlite_ask(k->s, "INSERT OR REPLACE INTO census VALUES (?1,?2,?3,?4,?5,?6,?7,?8)");
  k->drop = sqlite_ask(k->s, "DELETE FROM census WHERE session = ?1");
  k->rows = sqlite_ask(k->s, "SELECT session, bytes, time_ns, ended,"
                             " CASE WHEN last_ms >= ?1 THEN rows END"
                             " FROM census ORDER BY session DESC");
  if (k->rows != NULL)
    (void)k->s->api->bind_int64(k->rows, 1, c->since_ms);
  if (!sqlite_next(k->s, k->rows)) {
    k->s->api->finalize(k->rows);
    k->rows = NULL;
  }
}

static void aggregate_cache_close(struct aggregate_cache *k) {
  if (k->s != NULL) {
    k->s->api->finalize(k->rows);
    k->s->api->finalize(k->put);
    k->s->api->finalize(k->put_word);
    k->s->api->finalize(k->drop);
    (void)sqlite_run(k->s, k->s->error == SQLITE_CODE_OK ? "COMMIT" : "ROLLBACK");
  }
  index_file_close(k->s);
  if (k->dir >= 0)
    close(k->dir);
  dictionary_deinit(&k->words);
  buf_deinit(&k->packed);
  free(k->census_words);
  free(k->stages);
}

bool aggregate_cache_read(struct aggregate *c, const struct store *store,
                          struct aggregate_cache_told *told, struct err *err) {
  struct store_id *ids;
  size_t count;
  struct aggregate_cache k;
  if (!store_list(store, &ids, &count, err))
    return false;
  aggregate_cache_open(&k, c, store);
  for (size_t i = 0; i < count; i++) /* the newest first, as the query */
    if (aggregate_cache_find(&k, ids[i].id) && aggregate_cache_take(&k, ids[i].id)) {
      told->known++;
    } else {
      told->read++;
      aggregate_cache_read_log(&k, store, ids[i].id);
    }
  aggregate_cache_close(&k);
  free(ids);
  return true;
}

void aggregate_cache_refresh(const struct store *store, size_t budget, bool *more) {
  struct aggregate_cache k;
  char(*ids)[STORE_ID_BYTES] = xcalloc(budget + 1, sizeof *ids);
  size_t count = 0;
  *more = false;
  struct aggregate *c = aggregate_new();
  aggregate_cache_open(&k, c, store);
  struct sqlite3_stmt *q = NULL;
  if (k.writes)
    q = sqlite_ask(k.s, "SELECT id FROM sessions AS s LEFT JOIN census AS j ON j.session = s.id"
                        " WHERE s.status <> 'running' AND (j.session IS NULL OR"
                        " j.bytes <> s.bytes OR j.time_ns <> s.time_ns)");
  while (!*more && sqlite_next(k.s, q)) {
    *more = count == budget;
    if (!*more)
      print_into(ids[count++], sizeof *ids, "%s", (const char *)k.s->api->column_text(q, 0));
  }
  if (k.s != NULL)
    k.s->api->finalize(q);
  for (size_t i = 0; i < count; i++)
    aggregate_cache_read_log(&k, store, ids[i]);
  (void)(k.writes && sqlite_run(k.s, "DELETE FROM census WHERE session NOT IN"
                                     " (SELECT id FROM sessions)"));
  aggregate_cache_close(&k);
  aggregate_free(c);
  free(ids);
}
