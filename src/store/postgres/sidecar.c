/* Keeps what a shared store has beside its logs: two chains of lines (the ledger of heads, and
 * labels), and blobs, in parts of 1 MiB that are written in one transaction.
 *
 * DESIGN, blobs. Many sessions name the same blob, such as their workflow, and each puts it first.
 * A row that all of them write would be locked by one after the other, so a put only looks whether
 * the blob is there, and not even that if this program put or saw it a second ago. A server that
 * took over from another may have lost blobs: with each new connection, nothing is taken to be
 * there. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"
#include "store/record_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- chains --- */

enum { CHAIN_TRIES = 20, CHAIN_PAGE = 1000 };

/* Finds the number and hash of the last line. */
static bool chain_last(struct pg_base *pg, const char *name, uint64_t *number,
                       char hash[SHA256_HEX], struct err *err) {
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(name)};
  PGresult *answer =
      base_ask(pg, "SELECT line FROM segue.chain WHERE name = $1 ORDER BY n DESC LIMIT 1", args, 1,
               true, &failure, err);
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

/* Writes the lines from `number` on. *taken is false if another worker was quicker. */
static bool chain_put(struct pg_base *pg, const char *name, uint64_t number, struct str lines,
                      size_t n, bool *taken, struct err *err) {
  char first[ARG_NUMBER_BYTES];
  enum conn_failure failure;
  struct buf list = {0};
  conn_list_begin(&list, ARG_BYTES_LIST, n);
  while (lines.n > 0)
    conn_list_bytes(&list, str_next_line(&lines));
  const struct conn_arg args[] = {arg_text(name),
                                  arg_number(first, number),
                                  {.kind = ARG_BYTES_LIST, .bytes = buf_view(&list)}};
  PGresult *answer =
      base_ask(pg, "SELECT segue.chain_put($1, $2, $3)", args, 3, false, &failure, err);
  *taken = answer != NULL && conn_text(answer, 0, 0)[0] == 't';
  conn_free(answer);
  buf_deinit(&list);
  return answer != NULL;
}

static bool chain_append(const struct store *store, const char *name, const void *items, size_t n,
                         chain_fn compose, struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  for (int tries = 0; pg != NULL && tries < CHAIN_TRIES; tries++) {
    struct buf lines = {0};
    char hash[SHA256_HEX];
    uint64_t number;
    bool taken = false;
    bool ok = chain_last(pg, name, &number, hash, err);
    for (size_t i = 0; ok && i < n; i++)
      compose(items, i, number + 1 + i, &lines, hash);
    ok = ok && chain_put(pg, name, number + 1, buf_view(&lines), n, &taken, err);
    buf_deinit(&lines);
    if (!ok || taken)
      return ok;
  }
  return pg != NULL &&
         err_set(err, ERR_LOCKED, "others are writing to the %s of the store %s: try again", name,
                 pg->shown);
}

/* Passes the lines to `each` in order, until it returns false. */
static bool chain_read(struct pg_base *pg, const char *name, bool (*each)(void *ctx, struct str),
                       void *ctx, struct err *err) {
  uint64_t from = 0;
  for (int n = CHAIN_PAGE; n == CHAIN_PAGE;) {
    char number[ARG_NUMBER_BYTES];
    enum conn_failure failure;
    const struct conn_arg args[] = {arg_text(name), arg_number(number, from)};
    PGresult *answer = base_ask(pg,
                                "SELECT line FROM segue.chain WHERE name = $1 AND n > $2::bigint "
                                "ORDER BY n LIMIT 1000",
                                args, 2, true, &failure, err);
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

bool shared_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                          struct err *err) {
  return chain_append(store, "heads", entries, n, ledger_compose, err);
}

bool shared_ledger_read(const struct store *store,
                        void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                        struct ledger_end *end, struct err *err) {
  struct ledger_reading r = {each, ctx, end};
  struct pg_base *pg = base_of(store->where, err);
  *end = (struct ledger_end){0};
  memcpy(end->hash, record_line_first_hash, SHA256_HEX);
  return pg != NULL && chain_read(pg, "heads", on_entry, &r, err);
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

bool shared_labels_append(const struct store *store, const struct label *labels, size_t n,
                          struct err *err) {
  return chain_append(store, "labels", labels, n, label_compose, err);
}

bool shared_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err) {
  struct label_reading r = {.each = each, .ctx = ctx, .err = err, .ok = true};
  struct pg_base *pg = base_of(store->where, err);
  memcpy(r.hash, record_line_first_hash, SHA256_HEX);
  return pg != NULL && chain_read(pg, "labels", on_label, &r, err) && r.ok;
}

/* --- blobs --- */

void shared_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]) {
  print_into(out, STORE_NAME_BYTES, "%s#blob=%s", store->where, sha256);
}

static bool blob_is_known(struct pg_base *pg, const char *sha256) {
  uint64_t now = clock_boot_ms();
  bool known = false;
  (void)pthread_mutex_lock(&pg->lock);
  for (size_t i = 0; i < ARRAY_LEN(pg->blobs); i++)
    known = known || (pg->blobs[i].until_ms > now && strcmp(pg->blobs[i].sha256, sha256) == 0);
  (void)pthread_mutex_unlock(&pg->lock);
  return known;
}

/* Takes the place of the same blob, or of the one that was noted first. */
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
    const struct conn_arg args[] = {arg_text(sha256), arg_text(number),
                                    arg_bytes((struct str){bytes.p + at, n})};
    ok = blob_step(conn, "SELECT segue.blob_part_put($1, $2, $3)", args, 3, n, NULL, failure, err);
  }
  return ok;
}

/* Finds a blob that was put within the hour: nobody drops it within a day. */
static const char there_sql[] =
    "SELECT EXISTS (SELECT FROM segue.blob WHERE sha256 = decode($1, 'hex') AND bytes = $2::bigint "
    "AND put_at > clock_timestamp() - interval '1 hour')";

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

bool shared_blob_put(const struct store *store, struct str bytes, const char *sha256,
                     struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  uint64_t until = clock_mono_ms() + LIMIT_STORE_TRY_MS;
  if (pg == NULL)
    return false;
  if (fault_fails("write"))
    return err_set_errno(err, errno, "cannot keep a blob at the store %s", pg->shown);
  if (blob_is_known(pg, sha256))
    return true;
  for (unsigned tries = 0;; tries++) {
    enum conn_failure failure = CONN_FINE;
    uint64_t asked_ms = clock_boot_ms();
    if (put_once(pg, bytes, sha256, &failure, err)) {
      blob_note(pg, sha256, asked_ms);
      return true;
    }
    if (failure != CONN_LOST || !base_pause(tries, until))
      return false;
  }
}

/* Appends one more part: with the first comes the total length. */
static bool get_part(struct pg_base *pg, const char *sha256, int part, struct buf *out,
                     uint64_t *bytes, struct err *err) {
  char number[ARG_NUMBER_BYTES];
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(sha256), arg_number(number, (uint64_t)part)};
  PGresult *answer =
      base_ask(pg,
               "SELECT b.bytes::text, p.data FROM segue.blob b LEFT JOIN segue.blob_part p "
               "ON p.sha256 = b.sha256 AND p.part = $2::int WHERE b.sha256 = decode($1, 'hex')",
               args, 2, true, &failure, err);
  bool there = answer != NULL && conn_rows(answer) == 1;
  if (answer != NULL && !there)
    err_set(err, ERR_NOT_FOUND, "there is no blob %s at the store %s", sha256, pg->shown);
  struct str data = there ? conn_bytes(answer, 0, 1) : (struct str){0};
  if (there)
    *bytes = data.n > 0 ? conn_number(answer, 0, 0) : 0; /* a part is missing: no more is asked */
  buf_str(out, data);
  conn_free(answer);
  return there;
}

bool shared_blob_drop(const struct store *store, const char *sha256, time_t since) {
  struct err err;
  enum conn_failure failure;
  struct pg_base *pg = base_of(store->where, &err);
  const struct conn_arg args[] = {arg_text(sha256)};
  PGresult *answer = NULL;
  (void)since; /* other machines are at work, so the server waits a day by its own clock */
  if (pg != NULL)
    answer = base_ask(pg, "SELECT segue.blob_drop($1)", args, 1, false, &failure, &err);
  if (answer == NULL)
    log_warn("%s", err.text);
  bool gone = answer != NULL && conn_text(answer, 0, 0)[0] == 't';
  conn_free(answer);
  return gone;
}

bool shared_blob_get(const struct store *store, const char *sha256, struct buf *out,
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
