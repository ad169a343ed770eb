/* Keeps blobs in a shared store, in parts of 1 MiB that are written in one transaction.
 *
 * DESIGN. Many sessions name the same blob, such as their workflow, and each puts it first. A row
 * that all of them write would be locked by one after the other, so a put only looks whether the
 * blob is there, and not even that if this program put or saw it a second ago. A server that took
 * over from another may have lost blobs: with each new connection, nothing is taken to be there. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void shared_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]) {
  (void)snprintf(out, STORE_NAME_BYTES, "%s#blob=%s", store->where, sha256);
}

/* --- blobs that are there --- */

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

/* --- putting --- */

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
    (void)snprintf(number, sizeof number, "%d", part++);
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
  char size[24];
  bool is_there = false, is_new = false;
  (void)snprintf(size, sizeof size, "%zu", bytes.n);
  const struct conn_arg args[] = {arg_text(sha256), arg_text(size)};
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
  struct pg_base *pg = shared_base(store, err);
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
  char number[16];
  enum conn_failure failure;
  (void)snprintf(number, sizeof number, "%d", part);
  const struct conn_arg args[] = {arg_text(sha256), arg_text(number)};
  PGresult *answer =
      base_ask(pg,
               "SELECT b.bytes::text, p.data FROM segue.blob b LEFT JOIN segue.blob_part p "
               "ON p.sha256 = b.sha256 AND p.part = $2::int WHERE b.sha256 = decode($1, 'hex')",
               args, 2, true, &failure, err);
  bool there = answer != NULL && conn_rows(answer) == 1;
  if (answer != NULL && !there)
    (void)err_set(err, ERR_NOT_FOUND, "there is no blob %s at the store %s", sha256, pg->shown);
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
  struct pg_base *pg = shared_base(store, &err);
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
  struct pg_base *pg = shared_base(store, err);
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
