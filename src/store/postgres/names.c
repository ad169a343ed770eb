/* Finds sessions of a shared store by what a person writes, and puts the back end together. A log's
 * name is ADDRESS#ID. Reports and rights are kept in files on this machine. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "store/files_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_CHARS = STORE_ID_BYTES - 1 };

/* --- references --- */

void shared_ref(const struct store *store, const char *id, struct store_ref *ref) {
  ref->ops = store->ops;
  (void)snprintf(ref->name, sizeof ref->name, "%s#%s", store->where, id);
}

static void shared_store_of(const struct store_ref *ref, struct store *store) {
  (void)snprintf(store->where, sizeof store->where, "%.*s", (int)strcspn(ref->name, "#"),
                 ref->name);
}

static bool is_id(const char *id) {
  return strlen(id) == ID_CHARS && strspn(id, "0123456789abcdef-") == ID_CHARS && id[8] == '-' &&
         id[13] == '-' && id[18] == '-' && id[23] == '-';
}

static void shared_ref_id(const struct store_ref *ref, char id[STORE_ID_BYTES]) {
  const char *hash = strchr(ref->name, '#');
  (void)snprintf(id, STORE_ID_BYTES, "%.36s", hash && is_id(hash + 1) ? hash + 1 : "");
}

struct pg_base *shared_base(const struct store *store, struct err *err) {
  return base_of(store->where, err);
}

struct pg_base *shared_of(const struct store_ref *ref, char id[STORE_ID_BYTES], struct err *err) {
  struct store store;
  shared_ref_id(ref, id);
  if (id[0] == '\0') {
    (void)err_set(err, ERR_NOT_FOUND, "\"%.80s\" names no session: write an id after the #",
                  strchr(ref->name, '#') ? strchr(ref->name, '#') : "");
    return NULL;
  }
  shared_store_of(ref, &store);
  return base_of(store.where, err);
}

/* --- listing --- */

static bool shared_is_there(const struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  struct err err;
  uint64_t bytes;
  bool owned, begun;
  struct pg_base *pg = shared_of(ref, id, &err);
  return pg != NULL && shared_look(pg, id, &bytes, &owned, &begun);
}

static bool shared_is_owned(const struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  struct err err;
  uint64_t bytes;
  bool owned = false, begun;
  struct pg_base *pg = shared_of(ref, id, &err);
  return pg != NULL && shared_look(pg, id, &bytes, &owned, &begun) && owned;
}

static bool shared_bytes(const struct store_ref *ref, uint64_t *bytes) {
  char id[STORE_ID_BYTES];
  struct err err;
  bool owned, begun;
  struct pg_base *pg = shared_of(ref, id, &err);
  return pg != NULL && shared_look(pg, id, bytes, &owned, &begun);
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
  uint64_t bytes;
  bool owned, begun;
  if (pg == NULL || !shared_look(pg, id, &bytes, &owned, &begun))
    return;
  PGresult *answer = base_ask(pg, begun ? "SELECT segue.remove($1)" : "SELECT segue.forget($1)",
                              args, 1, false, &failure, &err);
  if (answer == NULL || (begun && !shared_remove_lines(pg, id, &err)))
    log_warn("%s", err.text);
  conn_free(answer);
}

static bool shared_open(struct store *store, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = shared_base(store, err);
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
  struct pg_base *pg = shared_base(store, err);
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
    (void)snprintf((*ids)[i].id, STORE_ID_BYTES, "%.36s", conn_text(answer, (int)i, 0));
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
  struct pg_base *pg = shared_base(store, err);
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
  struct pg_base *pg = shared_base(store, err);
  if (pg == NULL || !base_local(pg, &local, err))
    return -1;
  return files_ops.hold(&local, right, err);
}

static bool shared_is_held(const struct store *store, const char *right) {
  struct store local;
  struct err err;
  struct pg_base *pg = shared_base(store, &err);
  return pg != NULL && base_local(pg, &local, &err) && files_ops.is_held(&local, right);
}

static void shared_yield(int held) {
  files_ops.yield(held);
}

static bool shared_report_put(const struct store *store, const char *session, const char *file,
                              struct str bytes, struct err *err) {
  struct store local;
  const struct pg_base *pg = shared_base(store, err);
  return pg != NULL && base_local(pg, &local, err) &&
         files_report_put(&local, session, file, bytes, err);
}

static bool shared_report_sha256(const struct store *store, const char *session, const char *file,
                                 char sha256[SHA256_HEX]) {
  struct store local;
  struct err err;
  const struct pg_base *pg = shared_base(store, &err);
  return pg != NULL && base_local(pg, &local, &err) &&
         files_report_sha256(&local, session, file, sha256);
}

static void shared_report_folder(const struct store *store, const char *session,
                                 char out[STORE_NAME_BYTES]) {
  struct store local;
  struct err err;
  const struct pg_base *pg = shared_base(store, &err);
  out[0] = '\0';
  if (pg != NULL && base_local(pg, &local, &err))
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
