/* Finds sessions of a shared store by what a person writes, and puts the back end together. A log's
 * name is ADDRESS#ID. Reports and rights are kept in files on this machine. */
#include "store/postgres/session_log.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "store/reader.h"
#include "store/record_line.h"
#include "store/shared.h"
#include "store/sidecar.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps what a shared store has beside its logs: two chains of lines (the ledger of heads, and
 * labels), and blobs, in parts of 1 MiB that are written in one transaction.
 *
 * DESIGN, blobs. Many sessions name the same blob, such as their workflow, and each puts it first.
 * A row that all of them write would be locked by one after the other, so a put only looks whether
 * the blob is there, and not even that if this program put or saw it a second ago. A server that
 * took over from another may have lost blobs: with each new connection, nothing is taken to be
 * there. */

/* --- chains --- */

enum { CHAIN_TRIES = 20, CHAIN_PAGE = 1000 };

/* Finds the number and hash of the last line. */
static bool chain_last(struct pg_base *pg, const char *name, uint64_t *number,
                       char hash[SHA256_HEX], struct err *err) {
  const struct conn_arg args[] = {arg_text(name)};
  PGresult *answer = base_ask_bytes(
      pg, "SELECT line FROM segue.chain WHERE name = $1 ORDER BY n DESC LIMIT 1", args, 1, err);
  memcpy(hash, record_line_first_hash, SHA256_HEX);
  *number = 0;
  if (answer != NULL && conn_rows(answer) == 1) {
    struct str line = conn_bytes(answer, 0, 0);
    json_t *json = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    const char *last = json_string_value(json_object_get(json, "hash"));
    if (last != NULL && strlen(last) == SHA256_HEX - 1)
      memcpy(hash, last, SHA256_HEX);
    *number = (uint64_t)json_integer_value(json_object_get(json, "n"));
    json_decref(json);
  }
  conn_free(answer);
  return answer != NULL;
}

/* Each line has the hash of the one before it, so it is composed before it is written, and somebody
 * else may write a line in between. segue.chain_put compares the numbers under an advisory lock of
 * the chain, which makes writers take turns where there is no row yet that they could lock. Whoever
 * was too late composes its lines anew, after the other's. */
static bool chain_append(const struct store *store, const char *name, const void *items, size_t n,
                         chain_fn compose, struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  for (int tries = 0; pg != NULL && tries < CHAIN_TRIES; tries++) {
    struct buf lines = {0}, list = {0};
    char hash[SHA256_HEX], first[ARG_NUMBER_BYTES], taken[BASE_WORD_BYTES];
    uint64_t number;
    if (!chain_last(pg, name, &number, hash, err))
      return false;
    for (size_t i = 0; i < n; i++)
      compose(items, i, number + 1 + i, &lines, hash);
    conn_list_begin(&list, ARG_BYTES_LIST);
    for (struct str rest = buf_view(&lines); rest.n > 0;)
      conn_list_bytes(&list, str_next_line(&rest));
    const struct conn_arg args[] = {arg_text(name), arg_number(first, number + 1),
                                    arg_list(ARG_BYTES_LIST, &list)};
    bool ok =
        base_ask_word(pg, "SELECT segue.chain_put($1, $2, $3)", args, ARRAY_LEN(args), taken, err);
    buf_deinit(&lines);
    buf_deinit(&list);
    if (!ok || taken[0] == 't')
      return ok;
  }
  return pg != NULL &&
         err_set(err, ERR_LOCKED, "others are writing to the %s of the store %s: try again", name,
                 pg->shown);
}

/* Passes the lines to `each` in order, until it returns false. */
static bool chain_read(const struct store *store, const char *name,
                       bool (*each)(void *ctx, struct str), void *ctx, struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  uint64_t from = 0;
  for (int n = CHAIN_PAGE; n == CHAIN_PAGE;) {
    char number[ARG_NUMBER_BYTES];
    const struct conn_arg args[] = {arg_text(name), arg_number(number, from)};
    PGresult *answer =
        base_ask_bytes(pg,
                       "SELECT line FROM segue.chain WHERE name = $1 AND n > $2::bigint "
                       "ORDER BY n LIMIT 1000",
                       args, 2, err);
    if (answer == NULL)
      return false;
    n = conn_rows(answer);
    for (int i = 0; i < n; i++)
      if (!each(ctx, conn_bytes(answer, i, 0)))
        n = 0;
    conn_free(answer);
    from += (uint64_t)n;
  }
  return true;
}

/* --- the ledger --- */

struct ledger_reading {
  void (*each)(void *ctx, const struct ledger_entry *entry);
  void *ctx;
  struct ledger_end *end;
};

static bool on_entry(void *ctx, struct str text) {
  const struct ledger_reading *r = ctx;
  return ledger_next(text, r->end, r->each, r->ctx);
}

static bool shared_ledger_append(const struct store *store, const struct ledger_entry *entries,
                                 size_t n, struct err *err) {
  return chain_append(store, "heads", entries, n, ledger_compose, err);
}

static bool shared_ledger_read(const struct store *store,
                               void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                               struct ledger_end *end, struct err *err) {
  struct ledger_reading r = {each, ctx, end};
  *end = (struct ledger_end){0};
  memcpy(end->hash, record_line_first_hash, SHA256_HEX);
  return chain_read(store, "heads", on_entry, &r, err);
}

/* --- labels --- */

struct label_reading {
  label_fn each;
  void *ctx;
  char hash[SHA256_HEX];
  uint64_t count;
  struct err *err;
  bool ok;
};

static bool on_label(void *ctx, struct str text) {
  struct label_reading *r = ctx;
  r->ok = label_next(text, ++r->count, r->hash, r->each, r->ctx, r->err);
  return r->ok;
}

static bool shared_labels_append(const struct store *store, const struct label *labels, size_t n,
                                 struct err *err) {
  return chain_append(store, "labels", labels, n, label_compose, err);
}

static bool shared_labels_read(const struct store *store, label_fn each, void *ctx,
                               struct err *err) {
  struct label_reading r = {.each = each, .ctx = ctx, .err = err, .ok = true};
  memcpy(r.hash, record_line_first_hash, SHA256_HEX);
  return chain_read(store, "labels", on_label, &r, err) && r.ok;
}

/* --- blobs --- */

static void shared_blob_name(const struct store *store, const char *sha256,
                             char out[STORE_NAME_BYTES]) {
  print_into(out, STORE_NAME_BYTES, "%s#blob=%s", store->where, sha256);
}

/* Takes the place of the same blob, or of the one that was noted first. The time is that of the
 * question, not of the answer: the blob may have been dropped since the server looked. */
static void blob_note(struct pg_base *pg, const char *sha256, uint64_t asked_ms) {
  (void)pthread_mutex_lock(&pg->lock);
  struct base_blob *old = &pg->blobs[0];
  for (size_t i = 0; i < ARRAY_LEN(pg->blobs) && strcmp(old->sha256, sha256) != 0; i++)
    if (pg->blobs[i].until_ms < old->until_ms || strcmp(pg->blobs[i].sha256, sha256) == 0)
      old = &pg->blobs[i];
  memcpy(old->sha256, sha256, SHA256_HEX);
  old->until_ms = asked_ms + LIMIT_STORE_BLOB_MS;
  (void)pthread_mutex_unlock(&pg->lock);
}

static bool blob_step(struct conn *conn, const char *sql, const struct conn_arg *args, int n,
                      size_t bytes, bool *yes, enum conn_failure *failure, struct err *err) {
  PGresult *answer = conn_ask(conn, sql, base_limit_ms(bytes), args, n, false, failure, err);
  if (answer != NULL && yes != NULL)
    *yes = conn_text(answer, 0, 0)[0] == 't';
  conn_free(answer);
  return answer != NULL;
}

static bool put_parts(struct conn *conn, struct str bytes, const char *sha256,
                      enum conn_failure *failure, struct err *err) {
  bool ok = true;
  int part = 0;
  for (size_t at = 0; ok && at < bytes.n; at += LIMIT_STORE_PART_BYTES) {
    char number[16];
    size_t n = bytes.n - at < LIMIT_STORE_PART_BYTES ? bytes.n - at : LIMIT_STORE_PART_BYTES;
    print_into(number, sizeof number, "%d", part++);
    const struct conn_arg args[] = {
        arg_text(sha256), arg_text(number), {.kind = ARG_BYTES, .bytes = {bytes.p + at, n}}};
    ok = blob_step(conn, "SELECT segue.blob_part_put($1, $2, $3)", args, 3, n, NULL, failure, err);
  }
  return ok;
}

/* Finds a blob that was put within the hour: nobody drops it within a day. */
static const char there_sql[] =
    "SELECT EXISTS (SELECT FROM segue.blob WHERE sha256 = decode($1, 'hex') AND bytes = $2::bigint "
    "AND put_at > clock_timestamp() - interval '1 hour')";

/* All parts and the row are one transaction: whoever finds the row finds the whole blob. A
 * connection that failed in the middle is closed, never given back: the next request on it would
 * become part of that transaction. */
static bool put_once(struct pg_base *pg, struct str bytes, const char *sha256,
                     enum conn_failure *failure, struct err *err) {
  char size[ARG_NUMBER_BYTES];
  bool is_there = false, is_new = false;
  const struct conn_arg args[] = {arg_text(sha256), arg_number(size, bytes.n)};
  struct conn *conn = base_take(pg, failure, err);
  if (conn == NULL)
    return false;
  bool ok = blob_step(conn, there_sql, args, 2, 0, &is_there, failure, err);
  if (ok && is_there) {
    base_give(pg, conn);
    return true;
  }
  ok = ok && blob_step(conn, "BEGIN", NULL, 0, 0, NULL, failure, err) &&
       blob_step(conn, "SELECT segue.blob_begin($1, $2)", args, 2, 0, &is_new, failure, err) &&
       (!is_new || put_parts(conn, bytes, sha256, failure, err));
  FAULT_POINT("sync_before");
  if (ok && fault_fails("sync")) {
    *failure = CONN_REFUSED;
    ok = err_set_errno(err, errno, "cannot keep a blob at the store %s", pg->shown);
  }
  ok = ok && blob_step(conn, "COMMIT", NULL, 0, 0, NULL, failure, err);
  FAULT_POINT("sync_after");
  if (ok)
    base_give(pg, conn);
  else
    conn_close(conn); /* this rolls back what it began */
  return ok;
}

static bool shared_blob_put(const struct store *store, struct str bytes, const char *sha256,
                            struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  struct base_tries tries = {.until = clock_mono_ms() + LIMIT_STORE_TRY_MS};
  enum conn_failure failure;
  uint64_t asked_ms = clock_boot_ms();
  if (pg == NULL)
    return false;
  if (fault_fails("write"))
    return err_set_errno(err, errno, "cannot keep a blob at the store %s", pg->shown);
  bool known = false;
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; i < ARRAY_LEN(pg->blobs); i++)
    known = known || (pg->blobs[i].until_ms > asked_ms && strcmp(pg->blobs[i].sha256, sha256) == 0);
  (void)pthread_mutex_unlock(&pg->lock);
  if (known)
    return true;
  bool ok;
  do {
    failure = CONN_FINE;
    asked_ms = clock_boot_ms();
    ok = put_once(pg, bytes, sha256, &failure, err);
  } while (!ok && failure == CONN_LOST && base_again(&tries, NULL));
  if (ok)
    blob_note(pg, sha256, asked_ms);
  return ok;
}

/* Appends one more part: with the first comes the total length. */
static bool get_part(struct pg_base *pg, const char *sha256, int part, struct buf *out,
                     uint64_t *bytes, struct err *err) {
  char number[ARG_NUMBER_BYTES];
  const struct conn_arg args[] = {arg_text(sha256), arg_number(number, (uint64_t)part)};
  PGresult *answer = base_ask_bytes(
      pg,
      "SELECT b.bytes::text, p.data FROM segue.blob b LEFT JOIN segue.blob_part p "
      "ON p.sha256 = b.sha256 AND p.part = $2::int WHERE b.sha256 = decode($1, 'hex')",
      args, 2, err);
  bool there = answer != NULL && conn_rows(answer) == 1;
  if (answer != NULL && !there)
    err_set(err, ERR_NOT_FOUND, "there is no blob %s at the store %s", sha256, pg->shown);
  if (there) {
    struct str data = conn_bytes(answer, 0, 1);
    *bytes = data.n > 0 ? conn_number(answer, 0, 0) : 0; /* a part is missing: no more is asked */
    buf_str(out, data);
  }
  conn_free(answer);
  return there;
}

static bool shared_blob_drop(const struct store *store, const char *sha256, time_t since) {
  struct err err;
  char gone[BASE_WORD_BYTES];
  const struct conn_arg args[] = {arg_text(sha256)};
  (void)since; /* other machines are at work, so the server waits a day by its own clock */
  if (!base_ask_word(base_of(store->where, &err), "SELECT segue.blob_drop($1)", args, 1, gone,
                     &err))
    log_warn("%s", err.text);
  return gone[0] == 't';
}

static bool shared_blob_get(const struct store *store, const char *sha256, struct buf *out,
                            struct err *err) {
  char found[SHA256_HEX];
  struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL)
    return false;
  if (fault_fails("blob"))
    return err_set_errno(err, errno, "cannot read the blob %s", sha256);
  buf_clear(out);
  buf_reserve(out, 1);
  uint64_t bytes = 1;
  for (int part = 0; out->n < bytes; part++)
    if (!get_part(pg, sha256, part, out, &bytes, err))
      return false;
  out->p[out->n] = '\0';
  sha256_hex(out->p, out->n, NULL, 0, found);
  return strcmp(found, sha256) == 0 ||
         err_set(err, ERR_CORRUPT, "the blob %s at the store %s is not what was written", sha256,
                 pg->shown);
}

/* --- session_lookup --- */

enum { ID_CHARS = STORE_ID_BYTES - 1 };

/* --- references --- */

static void shared_store_of(const struct store_ref *ref, struct store *store) {
  print_into(store->where, sizeof store->where, "%.*s", (int)strcspn(ref->name, "#"), ref->name);
}

static bool is_id(const char *id) {
  return strlen(id) == ID_CHARS && strspn(id, "0123456789abcdef-") == ID_CHARS && id[8] == '-' &&
         id[13] == '-' && id[18] == '-' && id[23] == '-';
}

static void shared_ref_id(const struct store_ref *ref, char id[STORE_ID_BYTES]) {
  const char *hash = strchr(ref->name, '#');
  print_into(id, STORE_ID_BYTES, "%.36s", hash && is_id(hash + 1) ? hash + 1 : "");
}

/* --- reading bytes --- */

struct shared_raw {
  struct pg_base *pg;
  char id[STORE_ID_BYTES];
  uint64_t at; /* where the window begins */
  struct buf window;
  struct reader_due due; /* as the row had it when the log was opened; records 0: not known */
  bool whole; /* the window is the whole log, just claimed; true until its end has been read once */
};

/* Says how a session's row stands; `there` is false if there is none, or the store does not
 * answer. */
struct row_look {
  bool there, owned, begun;
  uint64_t bytes;
  enum store_stand stand;
  char to[STORE_NAME_BYTES]; /* where it was moved to */
};

static struct row_look shared_look(struct pg_base *pg, const char *id) {
  struct err err;
  struct row_look look = {.stand = STAND_NONE};
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = base_ask(pg,
                              "SELECT bytes, state = 'held' AND segue.has_lease(owner), seq > 0, "
                              "moved, moved AND state = 'ended', moved_to "
                              "FROM segue.session WHERE id = $1",
                              args, 1, &err);
  if (answer == NULL)
    log_warn("%s", err.text);
  else if (conn_rows(answer) == 1) {
    look.there = true;
    look.bytes = conn_number(answer, 0, 0);
    look.owned = conn_text(answer, 0, 1)[0] == 't';
    look.begun = conn_text(answer, 0, 2)[0] == 't';
    print_into(look.to, sizeof look.to, "%s", conn_text(answer, 0, 5));
    if (look.begun && conn_text(answer, 0, 4)[0] == 't')
      look.stand = STAND_SET_ASIDE;
    else if (look.begun)
      look.stand = conn_text(answer, 0, 3)[0] == 't' ? STAND_IN_TRANSIT : STAND_GOES_ON;
  }
  conn_free(answer);
  return look;
}

static struct row_look shared_look_at(const struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  struct err err;
  struct pg_base *pg = base_of_ref(ref, id, &err);
  return pg != NULL ? shared_look(pg, id) : (struct row_look){0};
}

/* Asks for a window of the log from byte `at` on. Readers ask for small pieces; a request for each
 * would cost a round trip. */
static PGresult *raw_ask(const struct shared_raw *raw, uint64_t at, const char *sql,
                         struct err *err) {
  char from[ARG_NUMBER_BYTES], most[ARG_NUMBER_BYTES];
  const struct conn_arg args[] = {arg_text(raw->id), arg_number(from, at),
                                  arg_number(most, LIMIT_STORE_WINDOW_BYTES)};
  return base_ask_bytes(raw->pg, sql, args, ARRAY_LEN(args), err);
}

/* The row and the first window come from one statement, so from one moment: what the row says of
 * the log's end lets a reader notice that records are missing there. */
static struct store_raw *shared_raw_open(const struct store_ref *ref, struct err *err) {
  char id[STORE_ID_BYTES];
  struct pg_base *pg = base_of_ref(ref, id, err);
  if (pg == NULL)
    return NULL;
  if (fault_fails("open")) {
    err_set_errno(err, errno, "cannot open %s", ref->name);
    return NULL;
  }
  struct shared_raw *raw = xcalloc(1, sizeof *raw);
  raw->pg = pg;
  memcpy(raw->id, id, sizeof raw->id);
  raw->whole = shared_claimed_log(pg, id, &raw->window);
  if (raw->whole)
    return (struct store_raw *)raw;
  PGresult *answer = raw_ask(raw, 0,
                             "SELECT segue.read(id, $2, $3), seq::text, encode(hash, 'hex') "
                             "FROM segue.session WHERE id = $1",
                             err);
  bool there = answer != NULL && conn_rows(answer) == 1;
  if (answer != NULL && !there)
    err_set(err, ERR_NOT_FOUND, "there is no session %s at the store %s", id, pg->shown);
  if (there) {
    buf_str(&raw->window, conn_bytes(answer, 0, 0));
    raw->due.records = conn_number(answer, 0, 1);
    print_into(raw->due.hash, sizeof raw->due.hash, "%s", conn_text(answer, 0, 2));
  }
  conn_free(answer);
  if (there)
    return (struct store_raw *)raw;
  free(raw);
  return NULL;
}

/* Fills the window from byte `at` on. False: errno says why. */
static bool raw_fetch(struct shared_raw *raw, uint64_t at) {
  struct err err;
  PGresult *answer = raw_ask(raw, at, "SELECT segue.read($1, $2, $3)", &err);
  buf_clear(&raw->window);
  raw->at = at;
  if (answer == NULL) {
    log_warn("%s", err.text);
    errno = EIO;
    return false;
  }
  buf_str(&raw->window, conn_bytes(answer, 0, 0));
  conn_free(answer);
  return true;
}

/* A log that came with its claim is known to end where its window does, so its end is told
 * without asking. Only once: a reader that goes on reads what was appended since. */
static ssize_t shared_raw_read(struct store_raw *base, uint64_t at, char *out, size_t max) {
  struct shared_raw *raw = (struct shared_raw *)base;
  assert(max > 0);
  if (fault_fails("read"))
    return -1;
  bool inside = at >= raw->at && at < raw->at + raw->window.n;
  if (!inside && raw->whole) {
    raw->whole = false;
    return 0;
  }
  if (!inside && !raw_fetch(raw, at))
    return -1;
  size_t skip = (size_t)(at - raw->at), n = raw->window.n - skip;
  n = n < max ? n : max;
  if (n > 0)
    memcpy(out, raw->window.p + skip, n);
  return (ssize_t)n;
}

static uint64_t shared_raw_bytes(const struct store_raw *base) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  return raw->whole ? raw->window.n : shared_look(raw->pg, raw->id).bytes;
}

static bool shared_raw_again(struct store_raw *base, bool *replaced) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  *replaced = false;
  return shared_look(raw->pg, raw->id).there;
}

static bool shared_raw_is_owned(const struct store_raw *base) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  return shared_look(raw->pg, raw->id).owned;
}

static bool shared_raw_due(const struct store_raw *base, struct reader_due *due) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  *due = raw->due;
  return due->records > 0;
}

static void shared_raw_close(struct store_raw *base) {
  struct shared_raw *raw = (struct shared_raw *)base;
  buf_deinit(&raw->window);
  free(raw);
}

static json_t *shared_read(struct store_log *base, uint64_t seq, struct err *err) {
  const struct shared_log *log = (const struct shared_log *)base;
  char number[ARG_NUMBER_BYTES];
  json_t *record = NULL;
  const struct conn_arg args[] = {arg_text(log->id), arg_number(number, seq)};
  if (fault_fails("read")) {
    err_set_errno(err, errno, "cannot read record %llu of %s", (unsigned long long)seq, base->name);
    return NULL;
  }
  PGresult *answer =
      base_ask_bytes(log->pg, "SELECT line FROM segue.line WHERE session = $1 AND seq = $2", args,
                     ARRAY_LEN(args), err);
  if (answer != NULL && conn_rows(answer) == 1) {
    struct str line = conn_bytes(answer, 0, 0);
    record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  }
  if (answer != NULL && record == NULL)
    err_set(err, ERR_CORRUPT, "record %llu of %s cannot be read back", (unsigned long long)seq,
            base->name);
  conn_free(answer);
  return record;
}

/* --- listing --- */

static bool shared_is_there(const struct store_ref *ref) {
  return shared_look_at(ref).there;
}

static bool shared_is_owned(const struct store_ref *ref) {
  return shared_look_at(ref).owned;
}

static bool shared_bytes(const struct store_ref *ref, uint64_t *bytes) {
  const struct row_look look = shared_look_at(ref);
  if (look.there)
    *bytes = look.bytes;
  return look.there;
}

/* Lines go in small transactions, so that none of them holds up a vacuum, or a standby, for long.
 */
static bool shared_remove_lines(struct pg_base *pg, const char *id, struct err *err) {
  const struct conn_arg args[] = {arg_text(id)};
  char removed[BASE_WORD_BYTES];
  do
    if (!base_ask_word(pg, "SELECT segue.remove_lines($1)", args, 1, removed, err))
      return false;
  while (strcmp(removed, "0") != 0);
  return true;
}

/* The row goes first: from then on the session is gone for everybody, also if this program ends in
 * the middle of the lines, which shared_tidy removes later. */
static void shared_remove(const struct store_ref *ref) {
  char id[STORE_ID_BYTES], removed[BASE_WORD_BYTES];
  struct err err;
  struct pg_base *pg = base_of_ref(ref, id, &err);
  const struct conn_arg args[] = {arg_text(id), arg_text(pg != NULL ? pg->heartbeat.word : NULL)};
  const struct row_look look = pg != NULL ? shared_look(pg, id) : (struct row_look){0};
  if (!look.there)
    return;
  const char *sql = look.begun ? "SELECT segue.remove($1)" : "SELECT segue.forget($2, $1)";
  if (!base_ask_word(pg, sql, args, look.begun ? 1 : 2, removed, &err) ||
      (look.begun && !shared_remove_lines(pg, id, &err)))
    log_warn("%s", err.text);
}

bool shared_tidy(const char *url, struct err *err) {
  struct pg_base *pg = base_of(url, err);
  char id[BASE_WORD_BYTES];
  do
    if (!base_ask_word(pg, "SELECT segue.left_over()", NULL, 0, id, err) ||
        (id[0] != '\0' && !shared_remove_lines(pg, id, err)))
      return false;
  while (id[0] != '\0');
  return true;
}

static bool shared_open(struct store *store, struct err *err) {
  char version[BASE_WORD_BYTES];
  return base_ask_word(base_of(store->where, err), "SELECT version FROM segue.meta", NULL, 0,
                       version, err);
}

static bool shared_exists(const struct store *store) {
  (void)store;
  return true; /* the next request shows whether it answers */
}

static bool shared_list(const struct store *store, struct store_id **ids, size_t *count,
                        struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL)
    return false;
  if (fault_fails("list"))
    return err_set_errno(err, errno, "cannot list the sessions of %s", pg->shown);
  PGresult *answer =
      base_ask(pg, "SELECT id FROM segue.session WHERE seq > 0 ORDER BY id DESC", NULL, 0, err);
  if (answer == NULL)
    return false;
  *count = (size_t)conn_rows(answer);
  *ids = xcalloc(*count + 1, sizeof **ids);
  for (size_t i = 0; i < *count; i++)
    print_into((*ids)[i].id, STORE_ID_BYTES, "%.36s", conn_text(answer, (int)i, 0));
  conn_free(answer);
  return true;
}

/* --- what audits read before ---
 *
 * One row for each log, bound to the number and hash of its last record: whoever may read can use
 * it, and whoever may write can keep it for all. A log that goes on no longer fits its row. */

enum { COUNTED_PAGE = 1000 };

bool shared_counted_read(const char *url, int format, int64_t since_ms, bool *keeps,
                         void (*each)(void *ctx, const struct shared_counted *counted), void *ctx,
                         struct err *err) {
  static const char may[] =
      "SELECT has_function_privilege(to_regprocedure('segue.keep_counted(uuid[], bigint[], text[], "
      "int, bigint[], bytea[])'), 'EXECUTE') AND current_setting('transaction_read_only') = 'off'";
  static const char sql[] =
      "SELECT s.id::text, (s.state = 'held' AND segue.has_lease(s.owner))::text, s.bytes::text, "
      "CASE WHEN c.session IS NULL THEN 'none' WHEN c.last_ms < $3::bigint THEN 'old' ELSE 'fits' "
      "END, CASE WHEN c.last_ms >= $3::bigint THEN c.judgments END "
      "FROM segue.session s LEFT JOIN segue.counted c ON c.session = s.id AND c.seq = s.seq AND "
      "c.hash = s.hash AND c.format = $2::int WHERE s.seq > 0 AND s.id < $1::uuid "
      "ORDER BY s.id DESC LIMIT 1000";
  struct shared_counted counted = {.id = "ffffffff-ffff-ffff-ffff-ffffffffffff"};
  char word[BASE_WORD_BYTES];
  char number[ARG_NUMBER_BYTES], since[ARG_NUMBER_BYTES];
  struct pg_base *pg = base_of(url, err);
  if (!base_ask_word(pg, may, NULL, 0, word, err))
    return false;
  *keeps = word[0] == 't';
  for (int n = COUNTED_PAGE; n == COUNTED_PAGE;) {
    const struct conn_arg args[] = {arg_text(counted.id), arg_number(number, (uint64_t)format),
                                    arg_number(since, (uint64_t)since_ms)};
    PGresult *answer = base_ask_bytes(pg, sql, args, ARRAY_LEN(args), err);
    if (answer == NULL)
      return false;
    n = conn_rows(answer);
    for (int i = 0; i < n; i++) {
      const char *fits = conn_text(answer, i, 3);
      print_into(counted.id, sizeof counted.id, "%s", conn_text(answer, i, 0));
      counted.owned = conn_text(answer, i, 1)[0] == 't';
      counted.bytes = conn_number(answer, i, 2);
      counted.kept = strcmp(fits, "none") != 0;
      counted.judgments = conn_bytes(answer, i, 4);
      if (strcmp(fits, "fits") != 0)
        counted.judgments.p = NULL;
      each(ctx, &counted);
    }
    conn_free(answer);
  }
  return true;
}

bool shared_counted_keep(const char *url, int format, const struct shared_counted *items, size_t n,
                         struct err *err) {
  buf_auto_t ids = {0}, seqs = {0}, hashes = {0}, times = {0}, judgments = {0};
  char number[ARG_NUMBER_BYTES], word[BASE_WORD_BYTES];
  conn_list_begin(&seqs, ARG_NUMBER_LIST);
  conn_list_begin(&times, ARG_NUMBER_LIST);
  conn_list_begin(&judgments, ARG_BYTES_LIST);
  for (size_t i = 0; i < n; i++) {
    buf_printf(&ids, "%s%s", i > 0 ? "," : "{", items[i].id);
    buf_printf(&hashes, "%s%s", i > 0 ? "," : "{", items[i].hash);
    conn_list_number(&seqs, items[i].seq);
    conn_list_number(&times, (uint64_t)items[i].last_ms);
    conn_list_bytes(&judgments, items[i].judgments);
  }
  buf_putc(&ids, '}');
  buf_putc(&hashes, '}');
  const struct conn_arg args[] = {arg_text(buf_c(&ids)),
                                  arg_list(ARG_NUMBER_LIST, &seqs),
                                  arg_text(buf_c(&hashes)),
                                  arg_number(number, (uint64_t)format),
                                  arg_list(ARG_NUMBER_LIST, &times),
                                  arg_list(ARG_BYTES_LIST, &judgments)};
  return base_ask_word(base_of(url, err), "SELECT segue.keep_counted($1, $2, $3, $4, $5, $6)", args,
                       ARRAY_LEN(args), word, err);
}

/* --- finding --- */

/* Finds the least and the greatest id with this prefix: the index of the ids answers a range of
 * them, and not a comparison of texts. False: no id can have it. */
static bool prefix_range(const char *word, char low[STORE_ID_BYTES], char high[STORE_ID_BYTES]) {
  static const char form[] = "00000000-0000-0000-0000-000000000000";
  size_t n = strlen(word);
  if (n == 0 || n > ID_CHARS)
    return false;
  for (size_t i = 0; i < ID_CHARS; i++) {
    bool dash = form[i] == '-';
    if (i < n && (dash ? word[i] != '-' : strchr("0123456789abcdef", word[i]) == NULL))
      return false;
    low[i] = i < n ? word[i] : form[i];
    high[i] = low[i];
    if (i >= n && !dash)
      high[i] = 'f';
  }
  low[ID_CHARS] = high[ID_CHARS] = '\0';
  return true;
}

static bool find_file(const char *word) {
  size_t n = strlen(word);
  return !url_is_shared(word) &&
         (strchr(word, '/') != NULL || (n > 7 && strcmp(word + n - 7, ".ndjson") == 0));
}

static bool found_none(const struct pg_base *pg, const char *word, struct err *err) {
  if (strcmp(word, "last") == 0)
    return err_set(err, ERR_NOT_FOUND, "there is no session at the store %s", pg->shown);
  return err_set(err, ERR_NOT_FOUND,
                 "there is no session at the store %s whose id begins with \"%.80s\": segue ls "
                 "lists them",
                 pg->shown, word);
}

static bool shared_find(const struct store *store, const char *word, struct store_ref *ref,
                        struct err *err) {
  char low[STORE_ID_BYTES] = "", high[STORE_ID_BYTES] = "";
  bool last = strcmp(word, "last") == 0;
  if (find_file(word))
    return files_ops.find(store, word, ref, err);
  if (url_is_shared(word))
    return store_ref_named(word, ref) || err_set(err, ERR_LIMIT, "the name is too long");
  struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL)
    return false;
  if (fault_fails("list"))
    return err_set_errno(err, errno, "cannot list the sessions of %s", pg->shown);
  if (!last && !prefix_range(word, low, high))
    return found_none(pg, word, err);
  const struct conn_arg args[] = {arg_text(low), arg_text(high)};
  static const char newest[] =
      "SELECT id FROM segue.session WHERE seq > 0 ORDER BY id DESC LIMIT 1";
  static const char within[] = "SELECT id FROM segue.session WHERE seq > 0 AND id BETWEEN $1::uuid "
                               "AND $2::uuid LIMIT 100";
  PGresult *answer = base_ask(pg, last ? newest : within, args, last ? 0 : 2, err);
  if (answer == NULL)
    return false;
  int n = conn_rows(answer);
  if (n == 1)
    base_ref(store, conn_text(answer, 0, 0), ref);
  conn_free(answer);
  if (n == 0)
    return found_none(pg, word, err);
  return n == 1 || err_set(err, ERR_INVALID,
                           "%d%s sessions at the store %s begin with \"%s\": write more of the id",
                           n, n == 100 ? " or more" : "", pg->shown, word);
}

/* --- where a moved session stands --- */

static enum store_stand shared_stand(const struct store_ref *ref) {
  return shared_look_at(ref).stand;
}

static bool shared_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
                                char to[STORE_NAME_BYTES]) {
  const struct row_look look = shared_look_at(ref);
  if (look.stand != STAND_SET_ASIDE)
    return false;
  *aside = *ref;
  print_into(to, STORE_NAME_BYTES, "%s", look.to);
  return true;
}

static void shared_place(const struct store *store, char out[STORE_NAME_BYTES]) {
  struct err err;
  const struct pg_base *pg = base_of(store->where, &err);
  print_into(out, STORE_NAME_BYTES, "%s", pg != NULL ? pg->shown : store->where);
}

/* --- kept on this machine ---
 *
 * Reports are for agents and people here, and rights keep two daemons of one machine apart, so both
 * are files, in a folder of this store. */

/* Gives the store for files of this shared store that stay on this machine. */
static bool local_store(const struct store *store, struct store *local, struct err *err) {
  const struct pg_base *pg = base_of(store->where, err);
  char where[STORE_PATH_BYTES], sha[SHA256_HEX];
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (pg == NULL)
    return false;
  if (base_options()->local != NULL) {
    print_into(where, sizeof where, "%s", base_options()->local);
  } else {
    bool by_state = state != NULL && state[0] == '/';
    sha256_hex(pg->url, strlen(pg->url), NULL, 0, sha);
    if (!by_state && (home == NULL || home[0] != '/'))
      return err_set(err, ERR_NOT_FOUND, "neither XDG_STATE_HOME nor HOME is set: set HOME");
    int n = snprintf(where, sizeof where, "%s%s/segue/shared/%.16s", by_state ? state : home,
                     by_state ? "" : "/.local/state", sha);
    if (n >= (int)sizeof where - 128)
      return err_set(err, ERR_LIMIT, "the path of the state folder is too long");
  }
  return store_open(local, where, err);
}

static int shared_hold(const struct store *store, const char *right, struct err *err) {
  struct store local;
  return local_store(store, &local, err) ? files_ops.hold(&local, right, err) : -1;
}

static bool shared_is_held(const struct store *store, const char *right) {
  struct store local;
  struct err err;
  return local_store(store, &local, &err) && files_ops.is_held(&local, right);
}

static void shared_yield(int held) {
  files_ops.yield(held);
}

static bool shared_report_put(const struct store *store, const char *session, const char *file,
                              struct str bytes, struct err *err) {
  struct store local;
  return local_store(store, &local, err) && files_report_put(&local, session, file, bytes, err);
}

static bool shared_report_sha256(const struct store *store, const char *session, const char *file,
                                 char sha256[SHA256_HEX]) {
  struct store local;
  struct err err;
  return local_store(store, &local, &err) && files_report_sha256(&local, session, file, sha256);
}

static void shared_report_folder(const struct store *store, const char *session,
                                 char out[STORE_NAME_BYTES]) {
  struct store local;
  struct err err;
  out[0] = '\0';
  if (local_store(store, &local, &err))
    files_report_folder(&local, session, out);
}

const struct store_ops postgres_ops = {
    .open = shared_open,
    .exists = shared_exists,
    .list = shared_list,
    .hold = shared_hold,
    .yield = shared_yield,
    .is_held = shared_is_held,
    .ref = base_ref,
    .find = shared_find,
    .of = shared_store_of,
    .ref_id = shared_ref_id,
    .is_there = shared_is_there,
    .is_owned = shared_is_owned,
    .bytes = shared_bytes,
    .remove = shared_remove,
    .create = shared_create,
    .create_later = shared_create_later,
    .attach = shared_attach,
    .append = shared_append,
    .append_now = shared_append_now,
    .move_in = shared_move_in,
    .set_aside = shared_set_aside,
    .arrive = shared_arrive,
    .set_aside_to = shared_set_aside_to,
    .stand = shared_stand,
    .place = shared_place,
    .read = shared_read,
    .close = shared_close,
    .raw_open = shared_raw_open,
    .raw_read = shared_raw_read,
    .raw_bytes = shared_raw_bytes,
    .raw_again = shared_raw_again,
    .raw_is_owned = shared_raw_is_owned,
    .raw_due = shared_raw_due,
    .raw_close = shared_raw_close,
    .ledger_append = shared_ledger_append,
    .ledger_read = shared_ledger_read,
    .labels_append = shared_labels_append,
    .labels_read = shared_labels_read,
    .report_put = shared_report_put,
    .report_sha256 = shared_report_sha256,
    .report_folder = shared_report_folder,
    .blob_put = shared_blob_put,
    .blob_get = shared_blob_get,
    .blob_drop = shared_blob_drop,
    .blob_name = shared_blob_name,
};
