/* Makes, takes and appends to the logs of a shared store, under the fence of each session.
 *
 * DESIGN, durability. A batch is one call of segue.append, which writes all of it or nothing and
 * checks fence and seq. A lost reply says nothing, so the same call is repeated: it answers ok if
 * the batch is already there, and writes it otherwise; if a statement of the lost connection is
 * still running, the call waits for it. Once the worker's lease cannot be trusted, nothing is
 * appended and no answer counts. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "core/record.h"
#include "os/clock.h"
#include "store/line.h"
#include "store/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  TYPE_BYTES = 160,
  NOW_TRY_MS = 1000,
  DAMAGED_PAUSE_MS = 300000,
  HELD_LOOK_MS = 50,
  APPEND_ARGS = 10
};

static const char append_sql[] =
    "SELECT * FROM segue.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const char shared_release_sql[] = "SELECT segue.release($1, $2, $3, $4, $5)";

/* Holds a batch as the arguments of segue.append, and owns their texts. */
struct append_call {
  char fence[24], seq[24], next[24], bytes[24];
  struct buf ats, lines;
  struct conn_arg args[APPEND_ARGS];
};

struct shared_log *shared_log_new(struct store *store, struct pg_base *pg, const char *id) {
  struct shared_log *log = xcalloc(1, sizeof *log);
  struct store_ref ref;
  shared_ref(store, id, &ref);
  store_log_init(&log->base, store, ref.name);
  log->pg = pg;
  log->term = base_term(pg);
  memcpy(log->id, id, STORE_ID_BYTES);
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->open, &log->in_open);
  (void)pthread_mutex_unlock(&pg->lock);
  return log;
}

unsigned shared_open_count(struct pg_base *pg, const char *id) {
  unsigned count = 0;
  (void)pthread_mutex_lock(&pg->lock);
  LIST_EACH(struct shared_log, log, in_open, &pg->open)
    count += strcmp(log->id, id) == 0;
  (void)pthread_mutex_unlock(&pg->lock);
  return count;
}

/* --- where a session stands --- */

/* Looks for the type in the first bytes: only v, seq and ts come before it. */
static bool line_is(struct str line, const char *type) {
  struct str head = {line.p, line.n < TYPE_BYTES ? line.n : TYPE_BYTES};
  return str_has(head, type);
}

bool shared_tells_rest(struct str line) {
  return line_is(line, "\"type\":\"session_") || line_is(line, "\"type\":\"answer\"");
}

void shared_feed(struct brief *brief, const json_t *record) {
  struct record_draft d;
  record_read(&d, record);
  brief_feed(brief, &d.record);
  record_drop(&d);
}

const char *shared_rest_of(const struct brief *brief) {
  if (brief_is_over(brief))
    return "ended";
  return brief_goes_on(brief) ? "ready" : "idle";
}

const char *shared_rest(const struct shared_log *log) {
  return log->in_transit ? "idle" : shared_rest_of(&log->brief);
}

/* --- the batch --- */

void shared_scan_batch(struct shared_log *log) {
  struct str rest = buf_view(&log->base.batch);
  if (log->told_seq == log->base.batch_seq)
    return;
  log->told_seq = log->base.batch_seq;
  log->line_count = 0;
  log->turn_over = false;
  while (rest.n > 0) {
    struct str line = str_next_line(&rest);
    log->line_count++;
    log->turn_over = log->turn_over || line_is(line, "\"type\":\"turn_end\"") ||
                     line_is(line, "\"type\":\"session_resume\",\"reason\":\"user\"");
    json_t *record =
        shared_tells_rest(line) ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
    if (record != NULL)
      shared_feed(&log->brief, record);
    json_decref(record);
  }
}

static const char *count_text(char out[24], uint64_t n) {
  (void)snprintf(out, 24, "%llu", (unsigned long long)n);
  return out;
}

static void append_call_init(struct append_call *call, struct shared_log *log) {
  const struct store_log *base = &log->base;
  uint64_t at = base->bytes;
  *call = (struct append_call){0};
  shared_scan_batch(log);
  conn_list_begin(&call->ats, ARG_NUMBER_LIST, log->line_count);
  conn_list_begin(&call->lines, ARG_BYTES_LIST, log->line_count);
  for (struct str rest = buf_view(&base->batch); rest.n > 0;) {
    struct str line = str_next_line(&rest);
    conn_list_number(&call->ats, at);
    conn_list_bytes(&call->lines, line);
    at += line.n + 1;
  }
  call->args[0] = arg_text(log->id);
  call->args[1] = arg_text(count_text(call->fence, log->fence));
  call->args[2] = arg_text(count_text(call->seq, base->seq));
  call->args[3] = arg_text(count_text(call->next, base->batch_seq));
  call->args[4] = arg_text(count_text(call->bytes, base->bytes + base->batch.n));
  call->args[5] = arg_text(base->batch_hash);
  call->args[6] = arg_text(shared_rest(log));
  call->args[7] = arg_text(log->turn_over ? "t" : "f");
  call->args[8] = (struct conn_arg){.kind = ARG_NUMBER_LIST, .bytes = buf_view(&call->ats)};
  call->args[9] = (struct conn_arg){.kind = ARG_BYTES_LIST, .bytes = buf_view(&call->lines)};
}

static void append_call_deinit(struct append_call *call) {
  buf_deinit(&call->ats);
  buf_deinit(&call->lines);
}

void leave_call_init(struct leave_call *call, const struct base_leave *leave) {
  call->args[0] = arg_text(leave->id);
  call->args[1] = arg_text(count_text(call->fence, leave->fence));
  call->args[2] = arg_text(count_text(call->pause, leave->pause_ms));
  call->args[3] = arg_text(leave->why);
  call->args[4] = arg_text(leave->refuses ? "t" : "f");
}

static enum store_result say_conflict(const struct shared_log *log, const PGresult *answer,
                                      struct err *err) {
  uint64_t seq = conn_number(answer, 0, 1);
  if (seq < log->base.seq)
    (void)err_set(err, ERR_CORRUPT,
                  "the store %s has lost records of session %s that it had confirmed: it ends with "
                  "record %llu, and %llu were safe. Nothing is written over it",
                  log->pg->shown, log->id, (unsigned long long)seq,
                  (unsigned long long)log->base.seq);
  else
    (void)err_set(err, ERR_CORRUPT,
                  "record %llu of session %s at the store %s is not what this program wrote",
                  (unsigned long long)seq, log->id, log->pg->shown);
  return STORE_CONFLICT;
}

enum store_result shared_append_is_there(struct shared_log *log, const char *asked,
                                         struct err *err) {
  if (!base_trusts(log->pg, log->term, err)) /* written, but it may now be another's */
    return STORE_FENCED;
  if (asked[0] != '\0')
    base_tell(log->pg, WORKER_ASKED, log->id, asked);
  log->ended = brief_is_over(&log->brief);
  return STORE_OK;
}

static enum store_result append_call_over(struct shared_log *log, const PGresult *answer,
                                          struct err *err) {
  const char *result = conn_text(answer, 0, 0);
  if (strcmp(result, "ok") == 0)
    return shared_append_is_there(log, conn_text(answer, 0, 3), err);
  if (strcmp(result, "conflict") == 0)
    return say_conflict(log, answer, err);
  if (strcmp(result, "gone") == 0)
    (void)err_set(err, ERR_LOCKED, "session %s was removed from the store %s", log->id,
                  log->pg->shown);
  else
    (void)err_set(err, ERR_LOCKED, "another worker has continued session %s of the store %s",
                  log->id, log->pg->shown);
  return STORE_FENCED;
}

/* Returns STORE_OK unless a test asks for a fault. */
static enum store_result append_fault(const struct shared_log *log, struct err *err) {
  if (!fault_fails("write"))
    return STORE_OK;
  bool full = errno == ENOSPC;
  (void)err_set_errno(err, errno, "cannot write to the store %s", log->pg->shown);
  return full ? STORE_FULL : STORE_IO;
}

/* Tries once. *lost: there was no answer. */
static enum store_result append_once(struct shared_log *log, const struct append_call *call,
                                     bool *lost, struct err *err) {
  enum conn_failure failure = CONN_FINE;
  *lost = false;
  if (!base_trusts(log->pg, log->term, err))
    return STORE_FENCED;
  enum store_result fault = append_fault(log, err);
  if (fault != STORE_OK)
    return fault;
  struct conn *conn = base_take(log->pg, &failure, err);
  PGresult *answer = NULL;
  FAULT_POINT("append_before");
  if (conn != NULL)
    answer = conn_ask(conn, append_sql, base_limit_ms(call->lines.n), call->args, APPEND_ARGS,
                      false, &failure, err);
  FAULT_POINT("append_after");
  if (answer != NULL && fault_fails("sync")) { /* as if the reply were lost or the disk full */
    *lost = errno != ENOSPC;
    conn_free(answer);
    conn_close(conn);
    (void)err_set(err, ERR_IO, "the store %s does not answer", log->pg->shown);
    return *lost ? STORE_IO : STORE_FULL;
  }
  base_give(log->pg, conn);
  enum store_result result = failure == CONN_FULL ? STORE_FULL : STORE_IO;
  *lost = failure == CONN_LOST;
  if (answer != NULL)
    result = append_call_over(log, answer, err);
  conn_free(answer);
  return result;
}

/* Makes the row of a log that was made with store_create_later, before its first append. */
static bool shared_make(struct shared_log *log, struct err *err) {
  enum conn_failure failure;
  struct pg_base *pg = log->pg;
  const char *id = log->id;
  if (!base_enter(pg, err))
    return false;
  log->term = base_term(pg);
  const struct conn_arg args[] = {arg_text(pg->keeper.worker), arg_text(id),
                                  arg_text(log->needs ? log->needs : pg->keeper.needs)};
  PGresult *answer =
      base_ask(pg, "SELECT segue.make($1, $2, $3)", args, ARRAY_LEN(args), false, &failure, err);
  const char *result = answer ? conn_text(answer, 0, 0) : "";
  bool ok = strcmp(result, "ok") == 0 && shared_open_count(pg, id) == 1;
  if (strcmp(result, "there") == 0 || shared_open_count(pg, id) > 1)
    (void)err_set(err, ERR_IO, "there already is a session %s at the store %s", id, pg->shown);
  else if (answer != NULL && !ok)
    (void)base_trusts(pg, log->term + 1, err);
  conn_free(answer);
  log->fence = ok ? 1 : 0; /* never release another worker's session */
  log->unmade = !ok;
  return ok;
}

enum store_result shared_append_alone(struct shared_log *log, uint64_t try_ms, struct err *err) {
  struct append_call call;
  enum store_result result;
  uint64_t until = clock_mono_ms() + try_ms;
  bool lost;
  if (log->unmade && !shared_make(log, err))
    return STORE_IO;
  append_call_init(&call, log);
  for (unsigned tries = 0;; tries++) {
    result = append_once(log, &call, &lost, err);
    if (!lost)
      break;
    if (!base_pause(tries, until)) { /* the caller keeps the batch and tries again */
      result = STORE_FULL;
      break;
    }
  }
  append_call_deinit(&call);
  log->base.syncs++;
  return result;
}

enum store_result shared_append_now(struct store_log *base, struct err *err) {
  return shared_append_alone((struct shared_log *)base, NOW_TRY_MS, err);
}

/* Has nothing to do: whoever takes the session next finds out by the hash whether a failed append
 * was written. */
bool shared_settle(struct store_log *base, struct err *err) {
  (void)base;
  (void)err;
  return true;
}

/* --- making and taking --- */

struct store_log *shared_create_later(struct store *store, const char *id) {
  struct err ignored;
  struct shared_log *log = shared_log_new(store, shared_base(store, &ignored), id);
  log->unmade = true;
  return &log->base;
}

struct store_log *shared_create(struct store *store, const char *id, struct err *err) {
  if (fault_fails("create")) {
    (void)err_set_errno(err, errno, "cannot make session %s", id);
    return NULL;
  }
  struct pg_base *pg = shared_base(store, err);
  if (pg == NULL || !base_enter(pg, err))
    return NULL;
  struct shared_log *log = shared_log_new(store, pg, id);
  if (shared_make(log, err))
    return &log->base;
  store_close(&log->base);
  return NULL;
}

/* Explains why segue.hold did not give us the session. */
static bool say_held(const struct pg_base *pg, const char *id, const PGresult *answer,
                     struct err *err) {
  const char *result = conn_text(answer, 0, 0), *to = conn_text(answer, 0, 9);
  bool is_said = to[0] != '\0';
  if (strcmp(result, "held") == 0)
    return err_set(
        err, ERR_LOCKED,
        "worker %.80s of the store %s has session %s: wait for it, or stop it first; if it "
        "died, until its lease is over",
        conn_text(answer, 0, 5), pg->shown, id);
  if (strcmp(result, "moved") == 0)
    return err_set(
        err, ERR_INVALID,
        "session %s was moved from the store %s to %.300s; if it is not there, run segue "
        "store export --move again",
        id, pg->shown, is_said ? to : "another one");
  if (strcmp(result, "moving") == 0)
    return err_set(err, ERR_INVALID,
                   "session %s was being copied to the store %s: repeat that segue store import "
                   "with the same options",
                   id, pg->shown);
  if (strcmp(result, "gone") == 0)
    return err_set(err, ERR_NOT_FOUND, "there is no session %s at the store %s", id, pg->shown);
  return base_trusts(pg, base_term(pg) + 1, err);
}

/* Waits until the session is free or wait_ms is over. Returns the answer, or NULL. */
static PGresult *hold_within(struct pg_base *pg, const char *id, unsigned wait_ms,
                             struct err *err) {
  enum conn_failure failure;
  uint64_t until = clock_mono_ms() + wait_ms;
  const struct conn_arg args[] = {arg_text(pg->keeper.worker), arg_text(id)};
  for (;;) {
    bool ours = shared_open_count(pg, id) > 1; /* the store would give it to us again */
    PGresult *answer = NULL;
    if (!ours)
      answer = base_ask(pg, "SELECT * FROM segue.hold($1, $2)", args, ARRAY_LEN(args), false,
                        &failure, err);
    if (ours)
      (void)err_set(err, ERR_LOCKED, "this program already has session %s of the store %s", id,
                    pg->shown);
    else if (answer == NULL || strcmp(conn_text(answer, 0, 0), "ok") == 0)
      return answer;
    else
      (void)say_held(pg, id, answer, err);
    conn_free(answer);
    if (err->code != ERR_LOCKED || clock_mono_ms() >= until)
      return NULL;
    (void)usleep(HELD_LOOK_MS * 1000);
  }
}

static void held_read(struct base_held *held, const PGresult *answer) {
  *held = (struct base_held){.fence = conn_number(answer, 0, 1),
                             .seq = conn_number(answer, 0, 2),
                             .bytes = conn_number(answer, 0, 3),
                             .deaths = (unsigned)conn_number(answer, 0, 6)};
  (void)snprintf(held->hash, sizeof held->hash, "%s", conn_text(answer, 0, 4));
  (void)snprintf(held->died, sizeof held->died, "%s", conn_text(answer, 0, 7));
  (void)snprintf(held->asked, sizeof held->asked, "%s", conn_text(answer, 0, 8));
}

/* Reads the row of a claimed session whose log did not come with the claim. */
static PGresult *hold_claimed(struct pg_base *pg, const char *id, uint64_t fence, struct err *err) {
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(id)};
  PGresult *answer = base_ask(pg,
                              "SELECT 'ok', fence, seq, bytes, encode(hash, 'hex'), NULL, "
                              "deaths, died, asked FROM "
                              "segue.session WHERE id = $1 AND state = 'held'",
                              args, 1, false, &failure, err);
  if (answer != NULL && (conn_rows(answer) == 0 || conn_number(answer, 0, 1) != fence)) {
    conn_free(answer);
    (void)err_set(err, ERR_LOCKED, "another worker of the store %s has session %s", pg->shown, id);
    return NULL;
  }
  return answer;
}

/* Takes the session for this worker, unless a claim already did. */
static bool hold(const struct store *store, struct shared_log *log, const struct base_claim *claim,
                 struct base_held *held, struct err *err) {
  if (claim != NULL && claim->log.n > 0) {
    *held = claim->held;
    return true;
  }
  PGresult *answer = NULL;
  if (claim != NULL)
    answer = hold_claimed(log->pg, log->id, claim->held.fence, err);
  /* A claim that only waits to be given back may have been given back, its answer lost. */
  if (claim == NULL || (answer == NULL && err->code == ERR_LOCKED))
    answer = hold_within(log->pg, log->id, store->lock_wait_ms, err);
  if (answer != NULL)
    held_read(held, answer);
  conn_free(answer);
  return answer != NULL;
}

static bool fold_damaged(struct shared_log *log, const struct err *why, struct err *err) {
  log->pause_ms = DAMAGED_PAUSE_MS;
  return err_set(err, ERR_CORRUPT, "record %llu of %s is damaged: %s",
                 (unsigned long long)log->base.seq + 1, log->base.name, why->text);
}

static bool fold_one(struct shared_log *log, const struct log_reader *r, struct str line,
                     store_fold_fn fold, void *ctx, struct err *err) {
  struct err why = {.text = "it has no end"};
  char hash[SHA256_HEX];
  memcpy(hash, log->base.hash, SHA256_HEX);
  json_t *record = r->whole ? line_parse(line, hash, &why) : NULL;
  if (record == NULL)
    return fold_damaged(log, &why, err);
  bool ok = fold == NULL || fold(ctx, record, err);
  if (ok && shared_tells_rest(line))
    shared_feed(&log->brief, record);
  json_decref(record);
  memcpy(log->base.hash, hash, SHA256_HEX);
  log->base.seq++;
  log->base.bytes = r->offset + line.n + 1;
  return ok;
}

/* Checks that the row and the lines agree. */
static bool fold_agrees(struct shared_log *log, const struct base_held *held, struct err *err) {
  if (log->base.seq == 0 && held->seq == 0)
    return err_set(err, ERR_CORRUPT, "%s has no records: the session had not started; run it again",
                   log->base.name);
  if (log->base.seq == held->seq && log->base.bytes == held->bytes &&
      strcmp(log->base.hash, held->hash) == 0)
    return true;
  log->pause_ms = DAMAGED_PAUSE_MS;
  return err_set(err, ERR_CORRUPT,
                 "the store %s says that session %s has %llu records, but its log has %llu: segue "
                 "store check says more",
                 log->pg->shown, log->id, (unsigned long long)held->seq,
                 (unsigned long long)log->base.seq);
}

bool shared_fold(struct shared_log *log, const struct store_ref *ref, const struct base_held *held,
                 store_fold_fn fold, void *ctx, struct err *err) {
  struct log_reader reader;
  struct str line;
  if (!reader_open(&reader, ref, err))
    return false;
  bool ok = true;
  while (ok && reader_next(&reader, &line))
    ok = fold_one(log, &reader, line, fold, ctx, err);
  if (ok && reader.error != 0)
    ok = err_set_errno(err, reader.error, "cannot read %s", ref->name);
  ok = ok && fold_agrees(log, held, err);
  reader_close(&reader);
  return ok;
}

struct store_log *shared_attach(struct store *store, const struct store_ref *ref,
                                store_fold_fn fold, void *ctx, struct store_mend *mend,
                                struct err *err) {
  char id[STORE_ID_BYTES];
  struct base_held held;
  struct pg_base *pg = shared_of(ref, id, err);
  if (pg == NULL)
    return NULL;
  if (fault_fails("attach")) {
    (void)err_set_errno(err, errno, "cannot take %s", ref->name);
    return NULL;
  }
  if (mend->cut) {
    (void)err_set(err, ERR_USAGE, "--cut is for logs in files: a store keeps all records");
    return NULL;
  }
  if (!base_join(pg, err))
    return NULL;
  struct base_claim *claim = shared_take_claim(pg, id);
  struct shared_log *log = shared_log_new(store, pg, id);
  bool ok = hold(store, log, claim, &held, err);
  if (ok) {
    log->fence = held.fence;
    log->deaths = held.deaths;
    memcpy(log->died, held.died, sizeof log->died);
    memcpy(log->asked, held.asked, sizeof log->asked);
  }
  ok = ok && shared_fold(log, ref, &held, fold, ctx, err);
  shared_end_claim(pg, claim);
  if (ok)
    return &log->base;
  store_close(&log->base);
  return NULL;
}

/* Retries on another connection: after a lost request the session would stay held for as long as
 * this worker lives. If it was already released, the answer is "fenced", which does no harm. */
bool shared_release(struct pg_base *pg, const struct base_leave *leave) {
  uint64_t until = clock_mono_ms() + NOW_TRY_MS;
  enum conn_failure failure = CONN_FINE;
  struct err err;
  struct leave_call call;
  bool answered = false;
  leave_call_init(&call, leave);
  for (unsigned tries = 0; !answered; tries++) {
    PGresult *answer = NULL;
    struct conn *conn = base_take(pg, &failure, &err);
    if (conn != NULL)
      answer = conn_ask(conn, shared_release_sql, NOW_TRY_MS, call.args, LEAVE_ARGS, false,
                        &failure, &err);
    if (answer != NULL && fault_fails("release")) { /* as if the reply were lost */
      conn_free(answer);
      answer = NULL;
      failure = CONN_LOST;
    }
    base_give(pg, conn);
    answered = answer != NULL;
    conn_free(answer);
    if (failure != CONN_LOST || !base_pause(tries, until))
      break;
  }
  return answered;
}

void shared_release_later(struct pg_base *pg, const struct base_leave *leave) {
  struct base_claim *claim = xcalloc(1, sizeof *claim);
  memcpy(claim->id, leave->id, sizeof claim->id);
  claim->held.fence = leave->fence;
  claim->term = leave->term;
  (void)pthread_mutex_lock(&pg->lock);
  list_push_front(&pg->claimed, &claim->in_base); /* at_ms 0: the oldest */
  (void)pthread_mutex_unlock(&pg->lock);
}

/* On the loop's thread the release is queued, so that the loop does not wait for it. */
static void let_go_of(struct shared_log *log) {
  struct pg_base *pg = log->pg;
  struct base_leave *leave = xcalloc(1, sizeof *leave);
  memcpy(leave->id, log->id, sizeof leave->id);
  leave->fence = log->fence;
  leave->pause_ms = log->pause_ms;
  leave->why = base_pause_why(pg, log->id);
  leave->refuses = log->refuses;
  leave->term = log->term;
  (void)pthread_mutex_lock(&pg->lock);
  bool later = pg->loop != NULL && pthread_equal(pg->loop_thread, pthread_self());
  (void)pthread_mutex_unlock(&pg->lock);
  if (later) {
    shared_leave(pg, leave);
    return;
  }
  if (!shared_release(pg, leave))
    shared_release_later(pg, leave);
  free(leave->why);
  free(leave);
}

void shared_close(struct store_log *base) {
  struct shared_log *log = (struct shared_log *)base;
  struct err err;
  assert(log->in_base.list == NULL);
  if (log->fence > 0 && !log->ended && base_trusts(log->pg, log->term, &err))
    let_go_of(log);
  (void)pthread_mutex_lock(&log->pg->lock);
  list_remove(&log->pg->open, &log->in_open);
  (void)pthread_mutex_unlock(&log->pg->lock);
  brief_deinit(&log->brief);
  free(log->needs);
  free(log);
}
