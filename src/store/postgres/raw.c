/* Reads the bytes of a shared store's log, one window at a time. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "store/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shared_raw {
  struct pg_base *pg;
  char id[STORE_ID_BYTES];
  uint64_t at; /* where the window begins */
  struct buf window;
  struct reader_due due; /* as the row had it when the log was opened; records 0: not known */
  bool whole; /* the window is the whole log, just claimed; true until its end has been read once */
};

bool shared_look(struct pg_base *pg, const char *id, uint64_t *bytes, bool *owned, bool *begun) {
  enum conn_failure failure;
  struct err err;
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = base_ask(pg,
                              "SELECT bytes, state = 'held' AND segue.has_lease(owner), seq > 0 "
                              "FROM segue.session WHERE id = $1",
                              args, 1, false, &failure, &err);
  bool there = answer != NULL && conn_rows(answer) == 1;
  if (there) {
    *bytes = conn_number(answer, 0, 0);
    *owned = conn_text(answer, 0, 1)[0] == 't';
    *begun = conn_text(answer, 0, 2)[0] == 't';
  } else if (answer == NULL) {
    log_warn("%s", err.text);
  }
  conn_free(answer);
  return there;
}

/* Asks for a window of the log from byte `at` on. */
static PGresult *raw_ask(const struct shared_raw *raw, uint64_t at, const char *sql,
                         enum conn_failure *failure, struct err *err) {
  char from[24], most[24];
  (void)snprintf(from, sizeof from, "%llu", (unsigned long long)at);
  (void)snprintf(most, sizeof most, "%d", LIMIT_STORE_WINDOW_BYTES);
  const struct conn_arg args[] = {arg_text(raw->id), arg_text(from), arg_text(most)};
  return base_ask(raw->pg, sql, args, ARRAY_LEN(args), true, failure, err);
}

struct store_raw *shared_raw_open(const struct store_ref *ref, struct err *err) {
  char id[STORE_ID_BYTES];
  enum conn_failure failure;
  struct pg_base *pg = shared_of(ref, id, err);
  if (pg == NULL)
    return NULL;
  if (fault_fails("open")) {
    (void)err_set_errno(err, errno, "cannot open %s", ref->name);
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
                             &failure, err);
  bool there = answer != NULL && conn_rows(answer) == 1;
  if (answer != NULL && !there)
    (void)err_set(err, ERR_NOT_FOUND, "there is no session %s at the store %s", id, pg->shown);
  if (there) {
    buf_str(&raw->window, conn_bytes(answer, 0, 0));
    raw->due.records = conn_number(answer, 0, 1);
    (void)snprintf(raw->due.hash, sizeof raw->due.hash, "%s", conn_text(answer, 0, 2));
  }
  conn_free(answer);
  if (there)
    return (struct store_raw *)raw;
  free(raw);
  return NULL;
}

/* Fills the window from byte `at` on. False: errno says why. */
static bool raw_fetch(struct shared_raw *raw, uint64_t at) {
  enum conn_failure failure;
  struct err err;
  PGresult *answer = raw_ask(raw, at, "SELECT segue.read($1, $2, $3)", &failure, &err);
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

ssize_t shared_raw_read(struct store_raw *base, uint64_t at, char *out, size_t max) {
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

uint64_t shared_raw_bytes(const struct store_raw *base) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  uint64_t bytes = 0;
  bool owned, begun;
  if (raw->whole)
    return raw->window.n;
  (void)shared_look(raw->pg, raw->id, &bytes, &owned, &begun);
  return bytes;
}

bool shared_raw_again(struct store_raw *base, bool *replaced) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  uint64_t bytes;
  bool owned, begun;
  *replaced = false;
  return shared_look(raw->pg, raw->id, &bytes, &owned, &begun);
}

bool shared_raw_is_owned(const struct store_raw *base) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  uint64_t bytes;
  bool owned = false, begun;
  return shared_look(raw->pg, raw->id, &bytes, &owned, &begun) && owned;
}

bool shared_raw_due(const struct store_raw *base, struct reader_due *due) {
  const struct shared_raw *raw = (const struct shared_raw *)base;
  *due = raw->due;
  return due->records > 0;
}

void shared_raw_close(struct store_raw *base) {
  struct shared_raw *raw = (struct shared_raw *)base;
  buf_deinit(&raw->window);
  free(raw);
}

json_t *shared_read(struct store_log *base, uint64_t seq, struct err *err) {
  const struct shared_log *log = (const struct shared_log *)base;
  enum conn_failure failure = CONN_FINE;
  char number[24];
  json_t *record = NULL;
  (void)snprintf(number, sizeof number, "%llu", (unsigned long long)seq);
  const struct conn_arg args[] = {arg_text(log->id), arg_text(number)};
  if (fault_fails("read")) {
    (void)err_set_errno(err, errno, "cannot read record %llu of %s", (unsigned long long)seq,
                        base->name);
    return NULL;
  }
  PGresult *answer =
      base_ask(log->pg, "SELECT line FROM segue.line WHERE session = $1 AND seq = $2", args,
               ARRAY_LEN(args), true, &failure, err);
  if (answer != NULL && conn_rows(answer) == 1) {
    struct str line = conn_bytes(answer, 0, 0);
    record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  }
  if (answer != NULL && record == NULL)
    (void)err_set(err, ERR_CORRUPT, "record %llu of %s cannot be read back",
                  (unsigned long long)seq, base->name);
  conn_free(answer);
  return record;
}
