/* Keeps in a shared store what an aggregate reads of its logs, and counts that instead of them.
 *
 * DESIGN. What one log adds up to is one value: its words, its session, its rows. Words are numbers
 * of the value's own list, so that it needs nothing beside itself: many workers write such values
 * at once, and a list for all of them would be a row that all of them lock. Numbers have seven bits
 * a byte. Whether a session that has not ended is open or running depends on who has it now, so
 * that is not kept. */
#include "audit/aggregate_shared.h"

#include "base/log.h"
#include "store/shared.h"

#include <stdlib.h>
#include <string.h>

enum { FORMAT = 4 }; /* raise it with whatever rows.c reads otherwise than before */
enum { BATCH_COUNT = 256, BATCH_BYTES = 4 * 1024 * 1024, VALUE_BYTES = 16 * 1024 * 1024 };

struct aggregate_shared {
  struct aggregate *aggregate;
  const struct store *store;
  struct aggregate_cache_told *told;
  bool keeps;
  uint32_t open, running; /* words of the aggregate */
  uint32_t *words;        /* of the value at hand: number n is words[n - 1] of the aggregate */
  size_t word_count, word_room;
  struct row_stage *stages;
  size_t stage_room;
  struct shared_counted logs[BATCH_COUNT]; /* were read, and wait to be kept together */
  size_t log_count;
  struct buf pending; /* their judgments */
  /* of the log that is being read */
  struct buf rows, session;
  bool spoiled;
  int64_t last_ms; /* time of its last row */
};

/* --- values as bytes --- */

struct counted_coder { /* writes to `out`; reads `in` if that is NULL */
  struct aggregate_shared *k;
  struct buf *out;
  struct str in;
  bool bad; /* what it reads is not what was written */
};

/* Each `code` writes a value, or reads it into its place. */
static void counted_code_number(struct counted_coder *c, int64_t *n) {
  uint64_t bits = ((uint64_t)*n << 1) ^ (uint64_t)(*n >> 63);
  if (c->out != NULL) {
    for (; bits >= 0x80; bits >>= 7)
      buf_putc(c->out, (char)(bits | 0x80));
    buf_putc(c->out, (char)bits);
    return;
  }
  unsigned shift = 0;
  unsigned char byte = 0x80;
  /* Eight bytes at most: then a few of the numbers, whoever wrote them, add up without overflow. */
  for (bits = 0; byte >= 0x80 && shift < 56 && c->in.n > 0; shift += 7) {
    byte = (unsigned char)*c->in.p++;
    c->in.n--;
    bits |= (uint64_t)(byte & 0x7f) << shift;
  }
  c->bad = c->bad || byte >= 0x80;
  *n = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
}

#define COUNTED(c, place)                                                                          \
  do {                                                                                             \
    int64_t code_n = (int64_t)(place);                                                             \
    counted_code_number(c, &code_n);                                                               \
    (place) = (__typeof__(place))code_n;                                                           \
  } while (0)

/* Returns the number of a word in the value. A log has few, so they are looked through. */
static int64_t counted_word_number(struct aggregate_shared *k, uint32_t word) {
  if (word == DICTIONARY_NONE)
    return 0;
  k->spoiled = k->spoiled || word == DICTIONARY_OTHER; /* nobody knows which word it was */
  for (size_t i = 0; i < k->word_count; i++)
    if (k->words[i] == word)
      return (int64_t)i + 1;
  k->words = xgrow(k->words, &k->word_room, k->word_count + 1, sizeof *k->words);
  k->words[k->word_count++] = word;
  return (int64_t)k->word_count;
}

static void counted_code_word(struct counted_coder *c, uint32_t *word) {
  struct aggregate_shared *k = c->k;
  int64_t n = 0;
  if (c->out != NULL)
    n = counted_word_number(k, *word);
  counted_code_number(c, &n);
  if (c->out != NULL)
    return;
  c->bad = c->bad || n < 0 || (uint64_t)n > k->word_count;
  *word = c->bad || n == 0 ? DICTIONARY_NONE : k->words[n - 1];
}

static void counted_code_use(struct counted_coder *c, struct row_use *use) {
  static const struct row_use none;
  int64_t any = memcmp(use, &none, sizeof none) != 0;
  counted_code_number(c, &any);
  if (any == 0)
    return;
  COUNTED(c, use->calls);
  COUNTED(c, use->ms);
  COUNTED(c, use->input);
  COUNTED(c, use->output);
  COUNTED(c, use->cost_nano);
  COUNTED(c, use->unpriced);
}

static void counted_code_stage(struct counted_coder *c, struct row_stage *stage) {
  int64_t bits = stage->asked | stage->readable << 1 | stage->machine << 2 | stage->shares << 3 |
                 stage->outcome << 4;
  counted_code_number(c, &bits);
  stage->asked = bits & 1;
  stage->readable = bits & 2;
  stage->machine = bits & 4;
  stage->shares = bits & 8;
  c->bad = c->bad || bits < 0 || bits >> 4 > OUTCOME_COUNT;
  stage->outcome = (uint8_t)(bits >> 4);
  counted_code_word(c, &stage->stage);
  counted_code_word(c, &stage->reason);
  counted_code_word(c, &stage->provider);
  counted_code_word(c, &stage->model);
  COUNTED(c, stage->call_count);
  COUNTED(c, stage->rule);
  COUNTED(c, stage->vote);
  counted_code_use(c, &stage->use);
  counted_code_use(c, &stage->corrections);
}

/* Codes what an aggregate counts of a row, but for its stages and what its session says. */
static void counted_code_row(struct counted_coder *c, struct row *row) {
  int64_t bits = row->ambiguous | row->undecided << 1 | row->value << 2 | row->first_pass << 3 |
                 row->mended << 4 | (int)row->kind << 5 | row->mark << 7;
  counted_code_number(c, &bits);
  row->ambiguous = bits & 1;
  row->undecided = bits & 2;
  row->value = bits & 4;
  row->first_pass = bits & 8;
  row->mended = bits & 16;
  c->bad = c->bad || bits < 0 || (bits >> 5 & 3) > ROW_REST || bits >> 7 >= TAG_MARK_COUNT;
  row->kind = (enum row_kind)(bits >> 5 & 3);
  row->mark = (uint8_t)(c->bad ? TAG_UNASKED : bits >> 7);
  uint32_t *const words[] = {&row->movement,     &row->method, &row->match_method,
                             &row->provider,     &row->model,  &row->worker,
                             &row->worker_model, &row->schema, &row->failure};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    counted_code_word(c, words[i]);
  COUNTED(c, row->rule);
  COUNTED(c, row->turn);
  COUNTED(c, row->time_ms);
  COUNTED(c, row->answers);
  counted_code_use(c, &row->work);
  COUNTED(c, row->stage_count);
  COUNTED(c, row->rest_count);
}

static void counted_code_session(struct counted_coder *c, struct row_session *session) {
  counted_code_word(c, &session->workflow);
  counted_code_word(c, &session->folder);
  counted_code_word(c, &session->user);
  counted_code_word(c, &session->outcome);
  counted_code_word(c, &session->cause);
  COUNTED(c, session->time_ms);
  COUNTED(c, session->unavailable_stops);
}

/* --- reading a log --- */

static void counted_on_row(void *ctx, const struct row *row) {
  struct aggregate_shared *k = ctx;
  struct counted_coder c = {.k = k, .out = &k->rows};
  struct row copy = *row;
  int64_t more = 1;
  k->spoiled = k->spoiled || k->rows.n > VALUE_BYTES;
  if (!k->spoiled) {
    counted_code_number(&c, &more);
    counted_code_row(&c, &copy);
  }
  for (size_t i = 0; !k->spoiled && i < row->stage_count + row->rest_count; i++) {
    struct row_stage stage = row->stages[i];
    counted_code_stage(&c, &stage);
  }
  if (row->time_ms > k->last_ms)
    k->last_ms = row->time_ms;
  aggregate_take_row(k->aggregate, row);
}

static void counted_on_session(void *ctx, const struct row_session *session) {
  struct aggregate_shared *k = ctx;
  struct counted_coder c = {.k = k, .out = &k->session};
  struct row_session copy = *session;
  if (copy.outcome == k->open || copy.outcome == k->running)
    copy.outcome = DICTIONARY_NONE;
  counted_code_session(&c, &copy);
  if (session->time_ms > k->last_ms)
    k->last_ms = session->time_ms;
  aggregate_take_session(k->aggregate, session);
}

/* Keeps what was read. A store that does not take it, such as one whose disk is full, does not stop
 * the audit: it goes on without. */
static void counted_keep(struct aggregate_shared *k) {
  struct err err;
  const char *at = k->pending.p;
  for (size_t i = 0; i < k->log_count; i++) {
    k->logs[i].judgments.p = at;
    at += k->logs[i].judgments.n;
  }
  k->keeps = k->log_count == 0 ||
             shared_counted_keep(k->store->where, FORMAT, k->logs, k->log_count, &err);
  k->log_count = 0;
  buf_clear(&k->pending);
}

static void counted_put_log(struct aggregate_shared *k, const char *id) {
  const struct rows *rows = &k->aggregate->rows;
  struct counted_coder c = {.k = k, .out = &k->pending};
  struct shared_counted *log = &k->logs[k->log_count++];
  size_t before = k->pending.n;
  int64_t n = (int64_t)k->word_count, none = 0;
  *log = (struct shared_counted){.seq = rows->records, .last_ms = k->last_ms};
  print_into(log->id, sizeof log->id, "%s", id);
  print_into(log->hash, sizeof log->hash, "%s", rows->hash);
  counted_code_number(&c, &n);
  for (size_t i = 0; i < k->word_count; i++) {
    struct str word = dictionary_text(&k->aggregate->names, k->words[i]);
    n = (int64_t)word.n;
    counted_code_number(&c, &n);
    buf_str(&k->pending, word);
  }
  buf_str(&k->pending, buf_view(&k->session));
  buf_str(&k->pending, buf_view(&k->rows));
  counted_code_number(&c, &none);
  log->judgments.n = k->pending.n - before;
  if (k->log_count == BATCH_COUNT || k->pending.n > BATCH_BYTES)
    counted_keep(k);
}

static void counted_read_log(struct aggregate_shared *k, const char *id) {
  struct rows *rows = &k->aggregate->rows;
  const struct rows saved = *rows;
  struct store_ref ref;
  store_ref(k->store, id, &ref);
  if (!k->keeps) {
    (void)aggregate_read(k->aggregate, &ref);
    return;
  }
  buf_clear(&k->rows);
  buf_clear(&k->session);
  k->word_count = 0;
  k->spoiled = false;
  k->last_ms = 0;
  rows->sink = (struct rows_sink){counted_on_row, counted_on_session};
  rows->ctx = k;
  rows->wants_schema = true;
  enum rows_log state = aggregate_read(k->aggregate, &ref);
  rows->sink = saved.sink;
  rows->ctx = saved.ctx;
  rows->wants_schema = saved.wants_schema;
  if (state == ROWS_SOUND && !k->spoiled && strcmp(rows->session.id, id) == 0)
    counted_put_log(k, id);
}

/* --- counting what is kept --- */

/* Counts a value, or with takes = false only looks whether it is whole: a worker may have written
 * anything there, and half of a log must not count. */
static bool counted_count(struct aggregate_shared *k, const struct shared_counted *counted,
                          bool takes) {
  struct counted_coder c = {.k = k, .in = counted->judgments};
  struct row_session session = {0};
  int64_t words = 0, n = 0, more = 0;
  k->word_count = 0;
  for (counted_code_number(&c, &words); !c.bad && words > 0; words--) {
    counted_code_number(&c, &n);
    c.bad = c.bad || n < 1 || (uint64_t)n > c.in.n;
    if (c.bad)
      break;
    k->words = xgrow(k->words, &k->word_room, k->word_count + 1, sizeof *k->words);
    uint32_t *word = &k->words[k->word_count++];
    *word = DICTIONARY_OTHER;
    if (takes)
      *word = dictionary_add(&k->aggregate->names, (struct str){c.in.p, (size_t)n});
    c.in = (struct str){c.in.p + n, c.in.n - (size_t)n};
  }
  counted_code_session(&c, &session);
  if (session.outcome == DICTIONARY_NONE)
    session.outcome = counted->owned ? k->running : k->open;
  print_into(session.id, sizeof session.id, "%s", counted->id);
  for (counted_code_number(&c, &more); more == 1 && !c.bad; counted_code_number(&c, &more)) {
    struct row row = {0};
    rows_of_session(&k->aggregate->names, &session, &row);
    counted_code_row(&c, &row);
    c.bad = c.bad || row.stage_count > c.in.n || row.rest_count > c.in.n;
    size_t stages = c.bad ? 0 : row.stage_count + row.rest_count;
    k->stages = xgrow(k->stages, &k->stage_room, stages, sizeof *k->stages);
    for (size_t i = 0; i < stages; i++) {
      k->stages[i] = (struct row_stage){0};
      counted_code_stage(&c, &k->stages[i]);
    }
    row.stages = k->stages;
    if (takes)
      aggregate_take_row(k->aggregate, &row);
  }
  if (takes)
    aggregate_take_session(k->aggregate, &session);
  return !c.bad && c.in.n == 0;
}

static void counted_on_log(void *ctx, const struct shared_counted *counted) {
  struct aggregate_shared *k = ctx;
  bool old = counted->judgments.p == NULL; /* than what the filters want */
  if (!counted->kept || !(old || counted_count(k, counted, false))) {
    k->told->read++;
    counted_read_log(k, counted->id);
    return;
  }
  if (!old)
    (void)counted_count(k, counted, true);
  k->told->known++;
  k->aggregate->logs[ROWS_SOUND]++;
  k->aggregate->rows.bytes += counted->bytes;
}

bool aggregate_shared_read(struct aggregate *c, const struct store *store,
                           struct aggregate_cache_told *told, struct err *err) {
  struct aggregate_shared *k = xcalloc(1, sizeof *k);
  k->aggregate = c;
  k->store = store;
  k->told = told;
  k->open = dictionary_add(&c->names, STR("open"));
  k->running = dictionary_add(&c->names, STR("running"));
  bool ok =
      shared_counted_read(store->where, FORMAT, c->since_ms, &k->keeps, counted_on_log, k, err);
  counted_keep(k);
  buf_deinit(&k->pending);
  buf_deinit(&k->rows);
  buf_deinit(&k->session);
  free(k->words);
  free(k->stages);
  free(k);
  return ok;
}
