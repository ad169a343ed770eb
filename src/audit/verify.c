/* Proves a log: chain, schema, order, references. */
#include "audit/verify.h"

#include "audit/ahead.h"
#include "audit/book.h"
#include "audit/links.h"
#include "audit/report_files.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "core/apply.h"
#include "format/json_write.h"
#include "schema/schema.h"
#include "schema/text.h"
#include "store/heads.h"
#include "store/line.h"
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An owner may be writing, so a torn end is looked at again before it counts. */
enum { TORN_LOOK_COUNT = 5, TORN_WAIT_MS = 20, IDLE_COUNT = 16 };

enum { LEARNED_WORKFLOWS = 4 }; /* many logs of a folder have one of a few */

/* Holds a workflow as a log had it, and built. */
struct learned_workflow {
  struct buf text;
  struct workflow *built; /* or NULL */
};

/* Holds what has been learned from some logs and serves the next one. */
struct learned {
  struct schema_reader *reader;
  struct learned_workflow workflows[LEARNED_WORKFLOWS];
  size_t oldest;    /* the one to forget next */
  struct buf texts; /* empty, but with the memory that the last log needed */
  struct book_memory book;
};

/* Keeps what no thread uses now. */
struct idle_readers {
  pthread_mutex_t lock;
  struct learned *items[IDLE_COUNT];
  size_t count;
};

struct verifier {
  struct schema *schema;
  uint64_t beside;
  struct idle_readers *idle;
};

struct verifier *verifier_new(struct err *err) {
  const struct resource *r = resource_find("schemas/session-log.json");
  json_t *doc = r ? line_read(str_trim((struct str){r->p, r->n}), NULL) : NULL;
  struct schema *schema = doc ? schema_compile(doc, NULL, NULL, NULL) : NULL;
  json_decref(doc);
  if (schema == NULL) {
    (void)err_set(err, ERR_INVALID, "the built-in schemas/session-log.json does not compile");
    return NULL;
  }
  struct verifier *v = xcalloc(1, sizeof *v);
  v->schema = schema;
  v->beside = UINT64_MAX;
  v->idle = xcalloc(1, sizeof *v->idle);
  (void)pthread_mutex_init(&v->idle->lock, NULL);
  return v;
}

static void learned_free(struct learned *known) {
  schema_reader_free(known->reader);
  for (size_t i = 0; i < LEARNED_WORKFLOWS; i++) {
    buf_deinit(&known->workflows[i].text);
    workflow_unref(known->workflows[i].built);
  }
  buf_deinit(&known->texts);
  book_memory_free(&known->book);
  free(known);
}

static struct learned *learned_take(const struct verifier *v) {
  struct idle_readers *idle = v->idle;
  struct learned *known = NULL;
  (void)pthread_mutex_lock(&idle->lock);
  if (idle->count > 0)
    known = idle->items[--idle->count];
  (void)pthread_mutex_unlock(&idle->lock);
  if (known == NULL) {
    known = xcalloc(1, sizeof *known);
    known->reader = schema_reader_new(v->schema);
  }
  return known;
}

static void learned_give_back(const struct verifier *v, struct learned *known) {
  struct idle_readers *idle = v->idle;
  (void)pthread_mutex_lock(&idle->lock);
  bool room = idle->count < IDLE_COUNT;
  if (room)
    idle->items[idle->count++] = known;
  (void)pthread_mutex_unlock(&idle->lock);
  if (!room)
    learned_free(known);
}

void verifier_beside(struct verifier *v, uint64_t bytes) {
  v->beside = bytes;
}

void verifier_free(struct verifier *v) {
  if (v == NULL)
    return;
  while (v->idle->count > 0)
    learned_free(v->idle->items[--v->idle->count]);
  (void)pthread_mutex_destroy(&v->idle->lock);
  free(v->idle);
  schema_free(v->schema);
  free(v);
}

const char *verify_state_name(enum verify_state state) {
  switch (state) {
  case VERIFY_COMPLETE:
    return "complete";
  case VERIFY_OPEN:
    return "open";
  case VERIFY_EMPTY:
    return "empty";
  case VERIFY_TORN:
    return "torn";
  case VERIFY_BAD:
    return "bad";
  }
  return "?";
}

static bool check_schema(const struct verifier *v, const json_t *record, struct err *err) {
  struct schema_errors errors = {0};
  if (json_integer_value(json_object_get(record, "v")) > RECORD_VERSION)
    return err_set(err, ERR_CORRUPT, "its version is newer than this program reads");
  enum schema_status status = schema_check(v->schema, record, &errors);
  if (status != SCHEMA_OK) {
    char more[48] = "";
    size_t others = errors.count + errors.dropped;
    if (others > 1)
      (void)snprintf(more, sizeof more, " (and %zu more)", others - 1);
    (void)err_set(err, ERR_CORRUPT, "schema: %s: %s%s", errors.count ? errors.items[0].path : "$",
                  errors.count ? errors.items[0].message : schema_status_name(status), more);
  }
  schema_errors_deinit(&errors);
  return status == SCHEMA_OK;
}

enum phase { NEW, RUNNING, STOPPED, ENDED };

/* Holds everything known while one log is read. */
struct verify_pass {
  struct book book;
  struct core core;
  struct links links;
  enum phase phase;
  struct report_files reports;
  char blob_name[SHA256_HEX]; /* last blob read; "": none */
  struct buf blob;
  struct learned *known;     /* NULL with ahead */
  struct str workflow_text;  /* in the text of session_start, until the next record */
  struct ahead *ahead;       /* reads the log in several threads, or NULL */
  struct record_draft draft; /* the record being checked */
  struct buf texts;          /* its texts, if no tree was built */
  json_t *json;              /* otherwise its tree */
};

/* Reads a blob; one that several records in a row name is read and hashed once. The bytes are
 * borrowed until the next call. */
static bool verify_blob(struct verify_pass *r, const char *name, struct str *bytes,
                        struct err *err) {
  if (strcmp(r->blob_name, name) != 0) {
    buf_clear(&r->blob);
    r->blob_name[0] = '\0';
    if (!store_blob_get(&r->book.store, name, &r->blob, err))
      return false;
    (void)snprintf(r->blob_name, sizeof r->blob_name, "%s", name);
  }
  *bytes = buf_view(&r->blob);
  return true;
}

/* Checks every member "<key>_blob": its blob must exist, with the hash and the size given in the
 * member after it. */
static bool check_blobs(struct verify_pass *r, struct err *err) {
  static const enum member blobs[] = {MEMBER_TASK_BLOB, MEMBER_TEXT_BLOB, MEMBER_STDERR_BLOB};
  const struct record *record = &r->draft.record;
  for (size_t i = 0; i < ARRAY_LEN(blobs); i++) {
    const char *name = record_text_c(record, blobs[i]);
    int64_t bytes = record_number(record, (enum member)(blobs[i] + 1));
    struct str blob;
    if (record_get(record, blobs[i]) == NULL)
      continue;
    bool ok = verify_blob(r, name, &blob, err);
    if (ok && (int64_t)blob.n != bytes)
      ok = err_set(err, ERR_CORRUPT, "its %s has %zu bytes, not %lld", record_member_name(blobs[i]),
                   blob.n, (long long)bytes);
    if (!ok) {
      err->code = ERR_CORRUPT; /* a missing blob is a damaged log, not a missing log */
      return false;
    }
  }
  return true;
}

/* Returns the workflow that is built already, if the session begins with one of those. */
static struct workflow *known_workflow(const struct verify_pass *r) {
  const json_t *doc = record_tree(&r->draft.record, MEMBER_WORKFLOW);
  for (size_t i = 0; r->known != NULL && i < LEARNED_WORKFLOWS; i++) {
    struct workflow *built = r->known->workflows[i].built;
    if (built != NULL && built->doc == doc)
      return built;
  }
  return NULL;
}

static void learn_workflow(struct verify_pass *r) {
  struct learned *known = r->known;
  if (known == NULL || r->workflow_text.n == 0 || r->workflow_text.n > LIMIT_LENT_BYTES ||
      known_workflow(r) != NULL)
    return;
  struct learned_workflow *learned = &known->workflows[known->oldest++ % LEARNED_WORKFLOWS];
  workflow_unref(learned->built);
  learned->built = workflow_ref(r->core.workflow);
  buf_clear(&learned->text);
  buf_str(&learned->text, r->workflow_text);
}

static bool check_workflow(const struct verify_pass *r, struct err *err) {
  const struct record *record = &r->draft.record;
  struct workflow *known = known_workflow(r);
  char sha256[SHA256_HEX];
  if (known != NULL) {
    workflow_hash(known, sha256);
  } else {
    char *text =
        json_dump_text(record_tree(record, MEMBER_WORKFLOW), JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
      return err_set(err, ERR_CORRUPT, "it has no workflow");
    sha256_hex(text, strlen(text), NULL, 0, sha256);
    free(text);
  }
  return str_eq_c(record_text(record, MEMBER_WORKFLOW_SHA256), sha256) ||
         err_set(err, ERR_CORRUPT, "its workflow_sha256 does not match its workflow");
}

/* Checks the order of the session's own records: a start, then stops and resumes in turn, an
 * end. */
static bool check_order(enum phase *phase, enum record_type type, struct err *err) {
  bool starts = type == RECORD_SESSION_START, resumes = type == RECORD_SESSION_RESUME;
  if (*phase == ENDED)
    return err_set(err, ERR_CORRUPT, "it comes after session_end");
  if (*phase == NEW && !starts)
    return err_set(err, ERR_CORRUPT, "a log begins with session_start");
  if (*phase != NEW && starts)
    return err_set(err, ERR_CORRUPT, "a second session_start");
  if (*phase == STOPPED && type == RECORD_ANSWER)
    return true;
  if (*phase == STOPPED && !resumes)
    return err_set(err, ERR_CORRUPT, "a stopped session goes on with session_resume");
  *phase = type == RECORD_SESSION_STOP ? STOPPED : RUNNING;
  if (type == RECORD_SESSION_END)
    *phase = ENDED;
  return true;
}

static bool blob_of(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  struct str bytes;
  if (!verify_blob(ctx, sha256, &bytes, err))
    return false;
  buf_append(out, bytes.p, bytes.n);
  return true;
}

/* Folds the record, and so finds what a resume would: the end of a call that never began, a rule
 * that the workflow does not have. */
static bool check_fold(struct verify_pass *r, struct err *err) {
  const struct core_source source = {.ctx = r, .blob = blob_of};
  bool starts = r->draft.record.type == RECORD_SESSION_START;
  if (core_apply(&r->core, &r->draft.record, starts ? known_workflow(r) : NULL, &source, err)) {
    if (starts)
      learn_workflow(r);
    return true;
  }
  struct err raw = *err;
  const char *why =
      strstr(raw.text, "): "); /* "record 7 (stage): why": its number is reported anyway */
  return err_set(err, ERR_CORRUPT, "%s", why && raw.text[0] == 'r' ? why + 3 : raw.text);
}

static struct str text_of_workflow(const struct schema_member *members, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (str_eq_c(members[i].key, "workflow"))
      return members[i].value;
  return STR("");
}

/* Finds the workflow that has this text and is built already; its tree is NULL if there is none. */
static struct record_workflow workflow_of_text(const struct learned *known, struct str text) {
  for (size_t i = 0; known != NULL && text.n > 0 && i < LEARNED_WORKFLOWS; i++)
    if (str_eq(buf_view(&known->workflows[i].text), text))
      return (struct record_workflow){text, known->workflows[i].built->doc};
  return (struct record_workflow){STR(""), NULL};
}

static bool take_members(struct verify_pass *r, const struct schema_member *members, size_t n) {
  r->workflow_text = r->phase == NEW ? text_of_workflow(members, n) : STR("");
  const struct record_workflow known = workflow_of_text(r->known, r->workflow_text);
  if (record_read_members(&r->draft, members, n, known.tree ? &known : NULL, &r->texts))
    return true;
  r->book.state = BOOK_DAMAGED;
  return err_set(&r->book.damage, ERR_CORRUPT, "it is not JSON");
}

/* Reads the next record into the draft. Nearly all are valid, and their text is enough to see that.
 * For any other record a tree is built, to say what is wrong. False: the book says why, unless the
 * log was read ahead. */
static bool next_record(struct verify_pass *r) {
  struct book *b = &r->book;
  struct ahead_line line = {.members = NULL};
  buf_clear(&r->texts);
  if (r->ahead != NULL) {
    if (!ahead_next(r->ahead, &line))
      return false;
    book_accept(b, line.text, line.offset);
  } else if (!book_line(b)) {
    return false;
  } else if (schema_reader_takes(r->known->reader, b->line)) {
    line.members = schema_reader_members(r->known->reader, &line.count);
  }
  if (line.members == NULL) {
    r->json = book_build(b);
    if (r->json == NULL)
      return false;
    record_read(&r->draft, r->json);
  } else if (!take_members(r, line.members, line.count)) {
    return false;
  }
  return book_keep(b, &r->draft.record);
}

static void drop_record(struct verify_pass *r) {
  record_drop(&r->draft);
  json_decref(r->json);
  r->json = NULL;
}

static bool check_record(const struct verifier *v, struct verify_pass *r,
                         struct verify_result *out) {
  struct err *err = &out->why;
  const struct record *record = &r->draft.record;
  if ((r->json != NULL && !check_schema(v, r->json, err)) ||
      !check_order(&r->phase, record->type, err) || !check_blobs(r, err))
    return false;
  if (record->type == RECORD_SESSION_START) {
    (void)snprintf(out->session, sizeof out->session, "%s", record_text_c(record, MEMBER_SESSION));
    if (!check_workflow(r, err) || !store_ref_suits(&r->book.ref, out->session, err))
      return false;
  }
  return links_check(&r->links, &r->book, &r->core, record, err) && check_fold(r, err);
}

/* Checks every known head of the session: its record must be there and be the same. */
static bool check_heads(const struct heads *const *heads, size_t n, const struct book *b,
                        struct verify_result *out) {
  for (size_t i = 0; i < n; i++) {
    size_t count;
    const struct ledger_entry *entry = heads_of(heads[i], out->session, &count);
    for (size_t k = 0; k < count; k++) {
      if (entry[k].seq != b->records || entry[k].kind == LEDGER_REMOVED)
        continue;
      if (strcmp(entry[k].hash, b->hash) != 0)
        return err_set(&out->why, ERR_CORRUPT,
                       "the ledger has another record: the log was rewritten");
    }
  }
  return true;
}

/* Checks the last heads once the log has ended. */
static bool check_last_heads(const struct heads *const *heads, size_t n,
                             struct verify_result *out) {
  for (size_t i = 0; i < n; i++) {
    const struct ledger_entry *last = heads_last(heads[i], out->session);
    if (last == NULL || last->kind == LEDGER_REMOVED)
      continue;
    if (last->seq > out->records)
      return err_set(&out->why, ERR_CORRUPT,
                     "it is missing: the ledger has record %llu, so the end was cut off",
                     (unsigned long long)last->seq);
    if (last->seq == out->records && last->kind != LEDGER_CUT)
      out->seal = last->late && out->seal != VERIFY_SEALED ? VERIFY_SEALED_LATE : VERIFY_SEALED;
  }
  return true;
}

/* Compares the log with what the store keeps of it elsewhere, which knows of a record that is
 * missing at the end and of a log that was rewritten as a whole; the chain cannot tell. */
static bool check_due(const struct book *b, struct verify_result *out) {
  struct reader_due due;
  if (!reader_due(&b->reader, &due) || due.records != b->records)
    return true;
  return strcmp(due.hash, b->hash) == 0 ||
         err_set(&out->why, ERR_CORRUPT, "the store's row has another hash: the log was rewritten");
}

static bool check_last_due(const struct book *b, struct verify_result *out) {
  struct reader_due due;
  return !reader_due(&b->reader, &due) || due.records <= out->records ||
         err_set(&out->why, ERR_CORRUPT,
                 "it is missing: the store's row says %llu records, so the end was cut off",
                 (unsigned long long)due.records);
}

static void look_at_reports(struct verify_pass *r, struct verify_result *out) {
  struct buf told = {.max = sizeof out->reports - 1};
  report_files_look(&r->reports, &r->book.store, out->session);
  out->reports_changed = r->reports.changed;
  out->reports_missing = r->reports.missing;
  report_files_told(&r->reports, false, &told);
  (void)snprintf(out->reports, sizeof out->reports, "%s", buf_c(&told));
  buf_deinit(&told);
}

static void wait_ms(long ms) {
  const struct timespec time = {0, ms * 1000000};
  (void)nanosleep(&time, NULL);
}

struct verify_heads {
  const struct heads *const *items;
  size_t count;
};

/* Reads records and checks each by those before it. False: one is not sound, and out says why. */
static bool check_records(const struct verifier *v, struct verify_pass *r,
                          const struct verify_heads *heads, struct verify_result *out) {
  struct book *b = &r->book;
  int looks = 0;
  for (;;) {
    bool more = next_record(r);
    if (!more)
      drop_record(r);
    if (!more && b->state == BOOK_TORN && looks++ < TORN_LOOK_COUNT && book_owned(b)) {
      wait_ms(TORN_WAIT_MS);
      if (book_again(b))
        continue;
    }
    if (!more)
      return true;
    bool sound = check_record(v, r, out) && check_heads(heads->items, heads->count, b, out) &&
                 check_due(b, out);
    report_files_take(&r->reports, &r->draft.record);
    drop_record(r);
    if (!sound)
      return false;
    out->records++;
  }
}

static void conclude(struct verify_pass *r, bool sound, const struct verify_heads *heads,
                     struct verify_result *out) {
  struct book *b = &r->book;
  if (sound && b->state == BOOK_DAMAGED)
    out->why = b->damage;
  if (sound && b->state == BOOK_TORN && r->phase == ENDED)
    sound = err_set(&out->why, ERR_CORRUPT, "%llu bytes stand behind session_end",
                    (unsigned long long)b->torn_bytes);
  if (sound && b->state != BOOK_DAMAGED)
    sound = check_last_heads(heads->items, heads->count, out) && check_last_due(b, out);
  if (!sound || b->state == BOOK_DAMAGED) {
    out->state = VERIFY_BAD;
    out->bad_record = out->records + 1;
  } else if (b->state == BOOK_TORN) {
    out->state = VERIFY_TORN;
    out->torn_bytes = b->torn_bytes;
  } else {
    out->state = r->phase == ENDED ? VERIFY_COMPLETE : VERIFY_OPEN;
    if (r->phase == NEW)
      out->state = VERIFY_EMPTY;
  }
  if (out->state != VERIFY_BAD)
    look_at_reports(r, out);
}

/* Lends the pass the memory of the last one: one log would free what the next one needs. */
static void take_learned(const struct verifier *v, struct verify_pass *r) {
  r->known = learned_take(v);
  book_lend(&r->book, &r->known->book);
  r->texts = r->known->texts;
  r->known->texts = (struct buf){0};
}

static void give_learned_back(const struct verifier *v, struct verify_pass *r) {
  book_take_back(&r->book, &r->known->book);
  if (r->texts.cap > LIMIT_LENT_BYTES)
    buf_deinit(&r->texts);
  buf_clear(&r->texts);
  r->known->texts = r->texts;
  r->texts = (struct buf){0};
  learned_give_back(v, r->known);
}

/* Makes a pass over the log and closes the book. False: it was read ahead, and something in it is
 * not as it should be. */
static bool run_pass(const struct verifier *v, struct verify_pass *r,
                     const struct verify_heads *heads, struct verify_result *out) {
  *out = (struct verify_result){0};
  if (r->ahead == NULL)
    take_learned(v, r);
  core_init(&r->core);
  r->core.proves = true;
  bool sound = check_records(v, r, heads, out);
  bool whole = r->ahead == NULL || (sound && ahead_is_whole(r->ahead));
  if (whole)
    conclude(r, sound, heads, out);
  whole = whole && (r->ahead == NULL || out->state != VERIFY_BAD);
  report_files_deinit(&r->reports);
  if (r->known != NULL)
    give_learned_back(v, r);
  buf_deinit(&r->blob);
  buf_deinit(&r->texts);
  core_deinit(&r->core);
  ahead_free(r->ahead);
  book_close(&r->book);
  return whole;
}

bool verify_log(const struct verifier *v, const struct store_ref *ref,
                const struct heads *const *heads, size_t heads_count, struct verify_result *out,
                struct err *err) {
  const struct verify_heads known = {heads, heads_count};
  struct verify_pass r = {.phase = NEW};
  if (!book_open(&r.book, ref, true, err))
    return false;
  if (v->beside < UINT64_MAX && reader_bytes(&r.book.reader) >= v->beside)
    r.ahead = ahead_new(v->schema, ref);
  if (r.ahead != NULL) {
    if (run_pass(v, &r, &known, out))
      return true;
    r = (struct verify_pass){.phase = NEW}; /* finds the first bad record in order */
    if (!book_open(&r.book, ref, true, err))
      return false;
  }
  (void)run_pass(v, &r, &known, out);
  return true;
}
