/* Copies and moves sessions. In transit a row is `moved` and not ended, so nobody takes it. Set
 * aside it is `moved` and ended. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PGresult *ask_move_in(const struct shared_log *log, const struct store_move *move,
                             struct err *err) {
  enum conn_failure failure;
  char bytes[24];
  (void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)move->bytes);
  const struct conn_arg args[] = {arg_text(log->pg->keeper.worker), arg_text(log->id),
                                  arg_text(log->needs ? log->needs : log->pg->keeper.needs),
                                  arg_text(bytes), arg_text(move->begins ? "t" : "f")};
  return base_ask(log->pg, "SELECT * FROM segue.move_in($1, $2, $3, $4, $5)", args, ARRAY_LEN(args),
                  false, &failure, err);
}

/* Takes the row, and reads what is already there of the log. */
static bool move_in(struct shared_log *log, const struct store_move *move, struct err *err) {
  struct store_ref ref;
  struct base_held held = {0};
  PGresult *answer = ask_move_in(log, move, err);
  if (answer == NULL)
    return false;
  const char *result = conn_text(answer, 0, 0);
  bool ok = strcmp(result, "ok") == 0;
  if (strcmp(result, "there") == 0)
    (void)err_set(err, ERR_LOCKED, "session %s of the store %s is not as it was a moment ago",
                  log->id, log->pg->shown);
  else if (!ok)
    (void)base_trusts(log->pg, log->term + 1, err);
  held.seq = conn_number(answer, 0, 2);
  held.bytes = conn_number(answer, 0, 3);
  (void)snprintf(held.hash, sizeof held.hash, "%s", conn_text(answer, 0, 4));
  log->fence = ok ? conn_number(answer, 0, 1) : 0; /* never release another worker's session */
  log->in_transit = ok;
  conn_free(answer);
  shared_ref(log->base.store, log->id, &ref);
  return ok && (held.seq == 0 || shared_fold(log, &ref, &held, NULL, NULL, err));
}

struct store_log *shared_move_in(struct store *store, const char *id, const struct store_move *move,
                                 struct err *err) {
  struct pg_base *pg = shared_base(store, err);
  if (pg == NULL || !base_enter(pg, err))
    return NULL;
  struct shared_log *log = shared_log_new(store, pg, id);
  if (move->on != NULL)
    worker_place(&log->base, move->on);
  if (move_in(log, move, err))
    return &log->base;
  store_close(&log->base);
  return NULL;
}

static bool ask_moved(struct shared_log *log, const char *sql, const char *what, struct err *err) {
  enum conn_failure failure;
  char fence[24];
  (void)snprintf(fence, sizeof fence, "%llu", (unsigned long long)log->fence);
  const struct conn_arg args[] = {arg_text(log->id), arg_text(fence), arg_text(what)};
  PGresult *answer = base_ask(log->pg, sql, args, ARRAY_LEN(args), false, &failure, err);
  bool ok = answer != NULL && conn_text(answer, 0, 0)[0] == 't';
  if (answer != NULL && !ok)
    (void)err_set(err, ERR_LOCKED, "another worker has session %s of the store %s", log->id,
                  log->pg->shown);
  conn_free(answer);
  return ok;
}

bool shared_set_aside(struct store_log *base, const char *to, struct err *err) {
  FAULT_POINT("aside_before");
  bool ok = ask_moved((struct shared_log *)base, "SELECT segue.set_aside($1, $2, $3)", to, err);
  FAULT_POINT("aside_after");
  return ok;
}

bool shared_arrive(struct store_log *base, struct err *err) {
  struct shared_log *log = (struct shared_log *)base;
  FAULT_POINT("arrive_before");
  bool ok = ask_moved(log, "SELECT segue.arrive($1, $2, $3)", shared_rest_of(&log->brief), err);
  FAULT_POINT("arrive_after");
  log->in_transit = !ok;
  return ok;
}

/* --- how it stands --- */

static PGresult *ask_stand(const struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  struct err err;
  enum conn_failure failure;
  struct pg_base *pg = shared_of(ref, id, &err);
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = NULL;
  if (pg != NULL)
    answer = base_ask(pg,
                      "SELECT moved, moved AND state = 'ended', moved_to FROM segue.session "
                      "WHERE id = $1 AND seq > 0",
                      args, 1, false, &failure, &err);
  if (answer == NULL)
    log_warn("%s", err.text);
  if (answer == NULL || conn_rows(answer) == 1)
    return answer;
  conn_free(answer);
  return NULL;
}

enum store_stand shared_stand(const struct store_ref *ref) {
  enum store_stand stand = STAND_NONE;
  PGresult *answer = ask_stand(ref);
  if (answer != NULL && conn_text(answer, 0, 1)[0] == 't')
    stand = STAND_SET_ASIDE;
  else if (answer != NULL)
    stand = conn_text(answer, 0, 0)[0] == 't' ? STAND_IN_TRANSIT : STAND_GOES_ON;
  conn_free(answer);
  return stand;
}

bool shared_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
                         char to[STORE_NAME_BYTES]) {
  PGresult *answer = ask_stand(ref);
  bool is_aside = answer != NULL && conn_text(answer, 0, 1)[0] == 't';
  if (is_aside) {
    *aside = *ref;
    (void)snprintf(to, STORE_NAME_BYTES, "%s", conn_text(answer, 0, 2));
  }
  conn_free(answer);
  return is_aside;
}

void shared_place(const struct store *store, char out[STORE_NAME_BYTES]) {
  struct err err;
  const struct pg_base *pg = shared_base(store, &err);
  (void)snprintf(out, STORE_NAME_BYTES, "%s", pg != NULL ? pg->shown : store->where);
}
