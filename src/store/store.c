/* Does what does not depend on where logs live, and leaves the rest to the back end. */
#include "store/store.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "os/clock.h"
#include "store/backend.h"
#include "store/postgres/url.h"
#include "store/reader.h"
#include "store/record_line.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 4096 }; /* allocated at once: most batches need no more */

unsigned store_pool_threads(bool many_sessions) {
  unsigned threads = many_sessions ? LIMIT_POOL_THREADS_MAX : 2 * uv_available_parallelism();
  if (threads < LIMIT_POOL_THREADS_MIN)
    return LIMIT_POOL_THREADS_MIN;
  return threads > LIMIT_POOL_THREADS_MAX ? LIMIT_POOL_THREADS_MAX : threads;
}

/* --- stores --- */

static const struct store_ops *ops_for(const char *where) {
  return url_is_shared(where) ? &postgres_ops : &files_ops;
}

bool store_is_address(const char *where) {
  return url_is_shared(where);
}

const char *store_folder(const struct store *store) {
  return store != NULL && !store_is_address(store->where) ? store->where : NULL;
}

const char *store_shown(const char *where, char out[STORE_SHOWN_BYTES]) {
  struct url_options options;
  struct err ignored = {0};
  static_assert((int)STORE_SHOWN_BYTES == (int)URL_SHOWN_BYTES, "url_read fills it");
  if (!url_is_shared(where))
    return where;
  if (!url_read(where, &options, out, &ignored) && out[0] == '\0')
    print_into(out, STORE_SHOWN_BYTES, "the shared store");
  url_deinit(&options);
  return out;
}

void store_at(struct store *store, const char *where) {
  *store = (struct store){.ops = ops_for(where)};
  print_into(store->where, sizeof store->where, "%s", where);
}

bool store_open(struct store *store, const char *where, struct err *err) {
  store_at(store, where);
  if (strlen(where) >= sizeof store->where - 80)
    return err_set(err, ERR_LIMIT, "the path of the log folder is too long");
  return store->ops->open(store, err);
}

bool store_exists(const struct store *store) {
  return store->ops->exists(store);
}

bool store_list(const struct store *store, struct store_id **ids, size_t *count, struct err *err) {
  *ids = NULL;
  *count = 0;
  return store->ops->list(store, ids, count, err);
}

bool store_each(const struct store *store, void *ctx,
                void (*each)(void *ctx, const struct store_ref *ref), struct err *err) {
  struct store_id *ids = NULL;
  size_t count = 0;
  if (!store_list(store, &ids, &count, err))
    return false;
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    each(ctx, &ref);
  }
  free(ids);
  return true;
}

int store_hold(const struct store *store, const char *right, struct err *err) {
  return store->ops->hold(store, right, err);
}

void store_yield(int held) {
  if (held >= 0)
    files_ops.yield(held);
}

bool store_is_held(const struct store *store, const char *right) {
  return store->ops->is_held(store, right);
}

/* --- references --- */

void store_ref(const struct store *store, const char *id, struct store_ref *ref) {
  store->ops->ref(store, id, ref);
}

bool store_ref_named(const char *name, struct store_ref *ref) {
  ref->ops = ops_for(name);
  return snprintf(ref->name, sizeof ref->name, "%s", name) < (int)sizeof ref->name;
}

bool store_find(const struct store *store, const char *word, struct store_ref *ref,
                struct err *err) {
  return store->ops->find(store, word, ref, err);
}

void store_of(const struct store_ref *ref, struct store *store) {
  *store = (struct store){.ops = ref->ops};
  ref->ops->of(ref, store);
}

void store_ref_id(const struct store_ref *ref, char id[STORE_ID_BYTES]) {
  ref->ops->ref_id(ref, id);
}

bool store_ref_suits(const struct store_ref *ref, const char *session, struct err *err) {
  char id[STORE_ID_BYTES];
  store_ref_id(ref, id);
  return id[0] == '\0' || strcmp(id, session) == 0 ||
         err_set(err, ERR_CORRUPT, "it begins session %.36s, but the file's name has another id",
                 session);
}

bool store_ref_is_copy(const struct store_ref *ref, const char *session, struct err *err) {
  struct store store;
  struct store_ref own;
  struct err why;
  bool is_id = strlen(session) == STORE_ID_BYTES - 1 &&
               strspn(session, "0123456789abcdef-") == STORE_ID_BYTES - 1;
  if (!is_id || store_ref_suits(ref, session, &why))
    return false;
  store_of(ref, &store);
  store_ref(&store, session, &own);
  if (!store_is_there(&own))
    return false;
  *err = why;
  return true;
}

bool store_is_there(const struct store_ref *ref) {
  return ref->ops->is_there(ref);
}

bool store_is_owned(const struct store_ref *ref) {
  return ref->ops->is_owned(ref);
}

bool store_bytes(const struct store_ref *ref, uint64_t *bytes) {
  return ref->ops->bytes(ref, bytes);
}

uint64_t store_written(const struct store_ref *ref) {
  return ref->ops->written != NULL ? ref->ops->written(ref) : 0;
}

void store_remove(const struct store_ref *ref) {
  ref->ops->remove(ref);
}

/* --- logs --- */

void store_log_init(struct store_log *log, struct store *store, const char *name) {
  log->ops = store->ops;
  log->store = store;
  log->name = xstrdup(name);
  memcpy(log->hash, record_line_first_hash, SHA256_HEX);
}

struct store_log *store_create(struct store *store, const char *id, struct err *err) {
  assert(strlen(id) == STORE_ID_BYTES - 1);
  return store->ops->create(store, id, err);
}

struct store_log *store_create_later(struct store *store, const char *id, struct err *err) {
  assert(strlen(id) == STORE_ID_BYTES - 1);
  if (store->ops->create_later == NULL)
    return store->ops->create(store, id, err);
  return store->ops->create_later(store, id);
}

struct store_log *store_attach(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                               void *ctx, struct store_mend *mend, struct err *err) {
  *mend = (struct store_mend){.cut = mend->cut};
  return store->ops->attach(store, ref, fold, ctx, mend, err);
}

static void compose_batch(struct store_log *log, uint64_t expected_seq,
                          struct record *const *records, size_t n) {
  assert(n > 0);
  assert(expected_seq == log->seq + 1);
  assert(log->batch.n == 0);
  memcpy(log->batch_hash, log->hash, SHA256_HEX);
  buf_reserve(&log->batch, BATCH_BYTES);
  for (size_t i = 0; i < n; i++)
    record_line_compose(records[i], &log->batch, log->batch_hash);
  log->batch_seq = log->seq + n;
}

/* Takes over the outcome of an append, on the loop. The batch's bytes go to the caller. */
static struct buf take_batch(struct store_log *log, enum store_result result) {
  struct buf batch = log->batch;
  if (result == STORE_OK) {
    log->bytes += batch.n;
    log->seq = log->batch_seq;
    memcpy(log->hash, log->batch_hash, SHA256_HEX);
    log->batch = (struct buf){0};
  } else if (result == STORE_IO) {
    log->broken = true;
  }
  return batch;
}

void store_append_over(struct store_log *log, enum store_result result, const struct err *err) {
  assert(log->in_flight);
  log->in_flight = false;
  struct buf batch = take_batch(log, result);
  log->done(log->done_ctx, result, buf_view(&batch), result == STORE_OK ? NULL : err);
  if (result == STORE_OK)
    buf_deinit(&batch);
}

void store_append_again(struct store_log *log, uv_loop_t *loop, store_done_fn done, void *ctx) {
  assert(log->batch.n > 0);
  assert(!log->in_flight);
  assert(!log->broken);
  log->in_flight = true;
  log->done = done;
  log->done_ctx = ctx;
  log->ops->append(log, loop);
}

void store_append(struct store_log *log, uv_loop_t *loop, uint64_t expected_seq,
                  struct record *const *records, size_t n, store_done_fn done, void *ctx) {
  compose_batch(log, expected_seq, records, n);
  store_append_again(log, loop, done, ctx);
}

enum store_result store_append_now(struct store_log *log, uint64_t expected_seq,
                                   struct record *const *records, size_t n, struct buf *lines,
                                   struct err **err) {
  struct err why = {0};
  assert(!log->in_flight);
  assert(!log->broken);
  compose_batch(log, expected_seq, records, n);
  enum store_result result = log->ops->append_now(log, &why);
  struct buf batch = take_batch(log, result);
  *err = NULL;
  if (result == STORE_OK) {
    *lines = batch;
  } else {
    *err = xmalloc(sizeof why);
    **err = why;
  }
  return result;
}

const char *store_log_name(const struct store_log *log) {
  return log->name;
}

uint64_t store_log_seq(const struct store_log *log) {
  return log->seq;
}

const char *store_log_hash(const struct store_log *log) {
  return log->hash;
}

uint64_t store_log_bytes(const struct store_log *log) {
  return log->bytes;
}

bool store_log_settle(struct store_log *log, struct err *err) {
  assert(!log->in_flight);
  return log->ops->settle == NULL || log->ops->settle(log, err);
}

void store_close(struct store_log *log) {
  if (log == NULL)
    return;
  assert(!log->in_flight);
  buf_deinit(&log->batch);
  free(log->name);
  log->ops->close(log);
}

json_t *store_read(struct store_log *log, uint64_t seq, struct err *err) {
  return log->ops->read(log, seq, err);
}

/* --- the ledger --- */

const char *ledger_kind_name(enum ledger_kind kind) {
  static const char *const names[] = {"end", "stop", "cut", "removed", "held"};
  return names[kind];
}

bool ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                   struct err *err) {
  assert(n > 0);
  return store->ops->ledger_append(store, entries, n, err);
}

bool ledger_read(const struct store *store,
                 void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                 struct ledger_end *end, struct err *err) {
  return store->ops->ledger_read(store, each, ctx, end, err);
}

/* --- labels --- */

bool labels_append(const struct store *store, const struct label *labels, size_t n,
                   struct err *err) {
  assert(n > 0);
  return store->ops->labels_append(store, labels, n, err);
}

bool labels_read(const struct store *store, label_fn each, void *ctx, struct err *err) {
  return store->ops->labels_read(store, each, ctx, err);
}

/* --- reports --- */

bool store_report_put(const struct store *store, const char *session, const char *file,
                      struct str bytes, struct err *err) {
  return store->ops->report_put(store, session, file, bytes, err);
}

bool store_report_sha256(const struct store *store, const char *session, const char *file,
                         char sha256[SHA256_HEX]) {
  return store->ops->report_sha256(store, session, file, sha256);
}

void store_report_folder(const struct store *store, const char *session,
                         char out[STORE_NAME_BYTES]) {
  store->ops->report_folder(store, session, out);
}

/* --- blobs --- */

bool store_blob_put(const struct store *store, struct str bytes, char sha256[SHA256_HEX],
                    struct err *err) {
  sha256_hex(bytes.p, bytes.n, NULL, 0, sha256);
  return store->ops->blob_put(store, bytes, sha256, err);
}

bool store_blob_get(const struct store *store, const char *sha256, struct buf *out,
                    struct err *err) {
  if (strspn(sha256, "0123456789abcdef") != 64 || sha256[64] != '\0')
    return err_set(err, ERR_CORRUPT, "\"%.80s\" is not the name of a blob", sha256);
  return store->ops->blob_get(store, sha256, out, err);
}

void store_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]) {
  store->ops->blob_name(store, sha256, out);
}

/* --- reading --- */

enum { CHUNK_BYTES = 64 * 1024, LONG_BYTES = 1024 * 1024 };

static _Thread_local bool reads_nothing;

void store_reads_nothing(bool nothing) {
  reads_nothing = nothing;
}

bool reader_open(struct log_reader *r, const struct store_ref *ref, struct err *err) {
#ifdef SEGUE_FAULTS /* only in a test build: others would rather wait than end */
  assert(!reads_nothing);
#endif
  *r = (struct log_reader){
      .ops = ref->ops, .raw = ref->ops->raw_open(ref, err), .max = LIMIT_LOG_LINE_BYTES};
  return r->raw != NULL;
}

/* Reads more. Lines already returned make room only when it is needed, not at every line. */
static bool read_more(struct log_reader *r) {
  if (r->line_at > 0) {
    memmove(r->buffer.p, r->buffer.p + r->line_at, r->buffer.n - r->line_at);
    r->buffer.n -= r->line_at;
    r->line_at = r->start = 0;
  }
  buf_reserve(&r->buffer, CHUNK_BYTES);
  ssize_t n = reader_read(r, r->offset + r->buffer.n, r->buffer.p + r->buffer.n, CHUNK_BYTES);
  if (n < 0)
    r->error = errno;
  if (n > 0)
    r->buffer.n += (size_t)n;
  r->eof = n <= 0;
  return n > 0;
}

uint64_t reader_line_end(const struct log_reader *r, uint64_t at, uint64_t until) {
  char_auto_t *chunk = xmalloc(CHUNK_BYTES);
  while (at < until) {
    uint64_t want = until - at < CHUNK_BYTES ? until - at : CHUNK_BYTES;
    ssize_t n = reader_read(r, at, chunk, (size_t)want);
    const char *nl = n > 0 ? memchr(chunk, '\n', (size_t)n) : NULL;
    if (n <= 0)
      break;
    at += (uint64_t)(nl != NULL ? nl - chunk : n);
    if (nl != NULL)
      break;
  }
  return at;
}

bool reader_next(struct log_reader *r, struct str *line) {
  size_t scanned = 0;
  bool looked = false;
  assert(r->raw != NULL && r->start >= r->line_at);
  r->offset += r->start - r->line_at;
  r->line_at = r->start;
  for (;;) {
    size_t n = r->buffer.n - r->line_at; /* from the start of the line */
    const char *begin = n > 0 ? r->buffer.p + r->line_at : NULL;
    const char *nl = n > scanned ? memchr(begin + scanned, '\n', n - scanned) : NULL;
    if (nl != NULL) {
      *line = (struct str){begin, (size_t)(nl - begin)};
      r->start = r->line_at + line->n + 1;
      r->whole = true;
      return true;
    }
    scanned = n;
    /* Whether the line exceeds the maximum is checked before there is memory for it. */
    if (scanned > r->max ||
        (!looked && scanned > LONG_BYTES &&
         reader_line_end(r, r->offset + n, r->offset + r->max + 1) > r->offset + r->max)) {
      r->too_long = true;
      return false;
    }
    looked = scanned > LONG_BYTES;
    if (!r->eof && read_more(r))
      continue;
    if (n == 0)
      return false;
    *line = (struct str){r->buffer.p + r->line_at, n};
    r->start = r->buffer.n;
    r->whole = false;
    return true;
  }
}

void reader_from(struct log_reader *r, uint64_t at) {
  buf_clear(&r->buffer);
  r->offset = at;
  r->start = r->line_at = 0;
  r->eof = false;
}

bool reader_again(struct log_reader *r) {
  bool replaced;
  if (!r->ops->raw_again(r->raw, &replaced))
    return false;
  r->eof = false;
  if (!r->whole) /* half of the line was returned: now it comes whole */
    r->start = r->line_at;
  if (replaced)
    reader_from(r, r->offset + r->start - r->line_at);
  return true;
}

void reader_free_buffer(struct log_reader *r) {
  reader_from(r, r->offset + (r->whole ? r->start - r->line_at : 0));
  buf_deinit(&r->buffer);
}

bool reader_is_owned(const struct log_reader *r) {
  return r->ops->raw_is_owned(r->raw);
}

bool reader_due(const struct log_reader *r, struct reader_due *due) {
  return r->ops->raw_due != NULL && r->ops->raw_due(r->raw, due);
}

void reader_close(struct log_reader *r) {
  if (r->raw != NULL)
    r->ops->raw_close(r->raw);
  buf_deinit(&r->buffer);
  *r = (struct log_reader){0};
}

uint64_t reader_bytes(const struct log_reader *r) {
  return r->ops->raw_bytes(r->raw);
}

ssize_t reader_read(const struct log_reader *r, uint64_t at, char *out, size_t max) {
  return r->ops->raw_read(r->raw, at, out, max);
}

bool reader_read_all(const struct log_reader *r, uint64_t at, char *out, size_t n) {
  while (n > 0) {
    ssize_t got = reader_read(r, at, out, n);
    if (got <= 0)
      return false;
    out += got;
    at += (uint64_t)got;
    n -= (size_t)got;
  }
  return true;
}

const char *reader_held(const struct log_reader *r, uint64_t at, size_t n) {
  uint64_t from = r->offset - r->line_at; /* of the buffer, in the log */
  bool held = r->buffer.n > 0 && at >= from && at + n <= from + r->buffer.n;
  return held ? r->buffer.p + (at - from) : NULL;
}

void reader_skip(const struct log_reader *r, struct reader_place *place, uint64_t seq,
                 uint64_t end) {
  char_auto_t *chunk = xmalloc(CHUNK_BYTES);
  while (place->seq <= seq && place->at < end) {
    ssize_t n = reader_read(r, place->at, chunk, CHUNK_BYTES);
    if (n <= 0)
      break;
    const char *stop = chunk + n, *from = chunk;
    while (place->seq <= seq && from < stop) {
      const char *nl = memchr(from, '\n', (size_t)(stop - from));
      from = nl ? nl + 1 : stop;
      place->seq += nl != NULL;
    }
    place->at += (uint64_t)(from - chunk);
  }
}

/* --- blobs that no log names --- */

bool store_next_blob(struct str *line, char sha256[SHA256_HEX]) {
  static const char member[] = "blob\":\"";
  const char *found;
  while ((found = memmem(line->p, line->n, member, sizeof member - 1)) != NULL) {
    size_t n = (size_t)(found - line->p) + sizeof member - 1;
    *line = (struct str){line->p + n, line->n - n};
    if (line->n < SHA256_HEX || line->p[SHA256_HEX - 1] != '"')
      continue;
    print_into(sha256, SHA256_HEX, "%.*s", SHA256_HEX - 1, line->p);
    if (strspn(sha256, "0123456789abcdef") == SHA256_HEX - 1)
      return true;
  }
  return false;
}

/* Puts the blobs of a log into the set, or takes them out of it. Returns false if the log was not
 * read to its end. */
static bool read_blobs(const struct store_ref *ref, json_t *set, bool puts) {
  struct log_reader r;
  struct str line;
  struct err err;
  char sha256[SHA256_HEX];
  if (!reader_open(&r, ref, &err))
    return !store_is_there(ref);
  while (reader_next(&r, &line))
    while (store_next_blob(&line, sha256))
      if (puts)
        json_object_set_new(set, sha256, json_true());
      else
        json_object_del(set, sha256);
  bool whole = r.error == 0 && !r.too_long;
  reader_close(&r);
  return whole;
}

void store_blobs_named(const struct store_ref *ref, json_t *named) {
  (void)read_blobs(ref, named, true);
}

/* Spares the blobs that other logs name. *busy: somebody may have put a blob whose record is still
 * to come. */
static bool spare_used(const struct store *store, json_t *named, bool *busy, struct err *err) {
  struct store_id *ids = NULL;
  size_t count = 0;
  bool ok = store_list(store, &ids, &count, err);
  *busy = store_is_held(store, "daemon");
  for (size_t i = 0; ok && i < count && json_object_size(named) > 0; i++) {
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    *busy = *busy || store_is_owned(&ref);
    ok = read_blobs(&ref, named, false) ||
         err_set(err, ERR_CORRUPT, "%.300s cannot be read to its end: blobs stay", ref.name);
  }
  free(ids);
  return ok;
}

void store_blobs_tidy(const struct store *store, json_t *found) {
  if (store->ops->blobs_tidy != NULL)
    store->ops->blobs_tidy(store, found);
}

bool store_blobs_sweep(const struct store *store, json_t *named, size_t *kept, struct err *err) {
  enum { QUIET_S = 2, BUSY_S = 60 };
  bool busy;
  *kept = 0;
  store_blobs_tidy(store, named);
  if (json_object_size(named) == 0)
    return true;
  time_t since = (time_t)(clock_real_ms() / 1000);
  if (!spare_used(store, named, &busy, err))
    return false;
  since -= busy ? BUSY_S : QUIET_S;
  JSON_MEMBERS(named, sha256, value)
    *kept += !store->ops->blob_drop(store, sha256, since);
  return true;
}
