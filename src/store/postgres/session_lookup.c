/* Finds sessions of a shared store by what a person writes, and puts the back end together. A log's
 * name is ADDRESS#ID. Reports and rights are kept in files on this machine. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "store/reader.h"
#include "store/sidecar.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_CHARS = STORE_ID_BYTES - 1 };

/* --- references --- */

void shared_ref(const struct store *store, const char *id, struct store_ref *ref) {
  ref->ops = store->ops;
  print_into(ref->name, sizeof ref->name, "%s#%s", store->where, id);
}

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

struct pg_base *shared_of(const struct store_ref *ref, char id[STORE_ID_BYTES], struct err *err) {
  struct store store;
  shared_ref_id(ref, id);
  if (id[0] == '\0') {
    err_set(err, ERR_NOT_FOUND, "\"%.80s\" names no session: write an id after the #",
            strchr(ref->name, '#') ? strchr(ref->name, '#') : "");
    return NULL;
  }
  shared_store_of(ref, &store);
  return base_of(store.where, err);
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
};

static struct row_look shared_look(struct pg_base *pg, const char *id) {
  enum conn_failure failure;
  struct err err;
  struct row_look look = {0};
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = base_ask(pg,
                              "SELECT bytes, state = 'held' AND segue.has_lease(owner), seq > 0 "
                              "FROM segue.session WHERE id = $1",
                              args, 1, false, &failure, &err);
  if (answer != NULL && conn_rows(answer) == 1)
    look = (struct row_look){.there = true,
                             .owned = conn_text(answer, 0, 1)[0] == 't',
                             .begun = conn_text(answer, 0, 2)[0] == 't',
                             .bytes = conn_number(answer, 0, 0)};
  else if (answer == NULL)
    log_warn("%s", err.text);
  conn_free(answer);
  return look;
}

static struct row_look shared_look_at(const struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  struct err err;
  struct pg_base *pg = shared_of(ref, id, &err);
  return pg != NULL ? shared_look(pg, id) : (struct row_look){0};
}

/* Asks for a window of the log from byte `at` on. */
static PGresult *raw_ask(const struct shared_raw *raw, uint64_t at, const char *sql,
                         enum conn_failure *failure, struct err *err) {
  char from[24], most[ARG_NUMBER_BYTES];
  print_into(from, sizeof from, "%llu", (unsigned long long)at);
  const struct conn_arg args[] = {arg_text(raw->id), arg_text(from),
                                  arg_number(most, LIMIT_STORE_WINDOW_BYTES)};
  return base_ask(raw->pg, sql, args, ARRAY_LEN(args), true, failure, err);
}

static struct store_raw *shared_raw_open(const struct store_ref *ref, struct err *err) {
  char id[STORE_ID_BYTES];
  enum conn_failure failure;
  struct pg_base *pg = shared_of(ref, id, err);
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
                             &failure, err);
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
  enum conn_failure failure = CONN_FINE;
  char number[ARG_NUMBER_BYTES];
  json_t *record = NULL;
  const struct conn_arg args[] = {arg_text(log->id), arg_number(number, seq)};
  if (fault_fails("read")) {
    err_set_errno(err, errno, "cannot read record %llu of %s", (unsigned long long)seq, base->name);
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

bool shared_remove_lines(struct pg_base *pg, const char *id, struct err *err) {
  const struct conn_arg args[] = {arg_text(id)};
  enum conn_failure failure;
  long removed = 1;
  while (removed > 0) {
    PGresult *answer = base_ask(pg, "SELECT segue.remove_lines($1)", args, 1, false, &failure, err);
    if (answer == NULL)
      return false;
    removed = (long)conn_number(answer, 0, 0);
    conn_free(answer);
  }
  return true;
}

static void shared_remove(const struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  struct err err;
  enum conn_failure failure;
  struct pg_base *pg = shared_of(ref, id, &err);
  const struct conn_arg args[] = {arg_text(id)};
  const struct row_look look = pg != NULL ? shared_look(pg, id) : (struct row_look){0};
  if (!look.there)
    return;
  PGresult *answer =
      base_ask(pg, look.begun ? "SELECT segue.remove($1)" : "SELECT segue.forget($1)", args, 1,
               false, &failure, &err);
  if (answer == NULL || (look.begun && !shared_remove_lines(pg, id, &err)))
    log_warn("%s", err.text);
  conn_free(answer);
}

static bool shared_open(struct store *store, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = base_of(store->where, err);
  PGresult *answer = NULL;
  if (pg != NULL)
    answer = base_ask(pg, "SELECT version FROM segue.meta", NULL, 0, false, &failure, err);
  conn_free(answer);
  return answer != NULL;
}

static bool shared_exists(const struct store *store) {
  (void)store;
  return true; /* the next request shows whether it answers */
}

static bool shared_list(const struct store *store, struct store_id **ids, size_t *count,
                        struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL)
    return false;
  if (fault_fails("list"))
    return err_set_errno(err, errno, "cannot list the sessions of %s", pg->shown);
  PGresult *answer = base_ask(pg, "SELECT id FROM segue.session WHERE seq > 0 ORDER BY id DESC",
                              NULL, 0, false, &failure, err);
  if (answer == NULL)
    return false;
  *count = (size_t)conn_rows(answer);
  *ids = xcalloc(*count + 1, sizeof **ids);
  for (size_t i = 0; i < *count; i++)
    print_into((*ids)[i].id, STORE_ID_BYTES, "%.36s", conn_text(answer, (int)i, 0));
  conn_free(answer);
  return true;
}

/* --- finding --- */

/* Finds the least and the greatest id with this prefix. False: no id can have it. */
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
  enum conn_failure failure;
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
  PGresult *answer = base_ask(pg, last ? newest : within, args, last ? 0 : 2, false, &failure, err);
  if (answer == NULL)
    return false;
  int n = conn_rows(answer);
  if (n == 1)
    shared_ref(store, conn_text(answer, 0, 0), ref);
  conn_free(answer);
  if (n == 0)
    return found_none(pg, word, err);
  return n == 1 || err_set(err, ERR_INVALID,
                           "%d%s sessions at the store %s begin with \"%s\": write more of the id",
                           n, n == 100 ? " or more" : "", pg->shown, word);
}

/* --- kept on this machine --- */

static int shared_hold(const struct store *store, const char *right, struct err *err) {
  struct store local;
  return base_local(store, &local, err) ? files_ops.hold(&local, right, err) : -1;
}

static bool shared_is_held(const struct store *store, const char *right) {
  struct store local;
  struct err err;
  return base_local(store, &local, &err) && files_ops.is_held(&local, right);
}

static void shared_yield(int held) {
  files_ops.yield(held);
}

static bool shared_report_put(const struct store *store, const char *session, const char *file,
                              struct str bytes, struct err *err) {
  struct store local;
  return base_local(store, &local, err) && files_report_put(&local, session, file, bytes, err);
}

static bool shared_report_sha256(const struct store *store, const char *session, const char *file,
                                 char sha256[SHA256_HEX]) {
  struct store local;
  struct err err;
  return base_local(store, &local, &err) && files_report_sha256(&local, session, file, sha256);
}

static void shared_report_folder(const struct store *store, const char *session,
                                 char out[STORE_NAME_BYTES]) {
  struct store local;
  struct err err;
  out[0] = '\0';
  if (base_local(store, &local, &err))
    files_report_folder(&local, session, out);
}

const struct store_ops postgres_ops = {
    .open = shared_open,
    .exists = shared_exists,
    .list = shared_list,
    .hold = shared_hold,
    .yield = shared_yield,
    .is_held = shared_is_held,
    .ref = shared_ref,
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
    .settle = shared_settle,
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
