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
#include "os/loop.h"
#include "store/reader.h"
#include "store/record_line.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
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
static const char release_sql[] = "SELECT segue.release($1, $2, $3, $4, $5)";

/* Holds a batch as the arguments of segue.append, and owns their texts. */
struct append_call {
  char fence[ARG_NUMBER_BYTES], seq[ARG_NUMBER_BYTES], next[ARG_NUMBER_BYTES],
      bytes[ARG_NUMBER_BYTES];
  struct buf ats, lines;
  struct conn_arg args[APPEND_ARGS];
};

/* Holds the arguments of segue.release. */
struct leave_call {
  char fence[ARG_NUMBER_BYTES], pause[ARG_NUMBER_BYTES];
  struct conn_arg args[5];
};

enum { LEAVE_ARGS = 5 };

static struct shared_log *shared_log_new(struct store *store, struct pg_base *pg, const char *id) {
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

void shared_feed(struct summary *summary, const json_t *record) {
  struct record_draft d;
  record_read(&d, record);
  summary_feed(summary, &d.record);
  record_drop(&d);
}

const char *shared_rest_of(const struct summary *summary) {
  if (summary_is_over(summary))
    return "ended";
  return summary_goes_on(summary) ? "ready" : "idle";
}

static const char *shared_rest(const struct shared_log *log) {
  return log->in_transit ? "idle" : shared_rest_of(&log->summary);
}

/* --- the batch --- */

/* Feeds the batch to log->brief, once. */
static void shared_scan_batch(struct shared_log *log) {
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
      shared_feed(&log->summary, record);
    json_decref(record);
  }
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
  call->args[1] = arg_number(call->fence, log->fence);
  call->args[2] = arg_number(call->seq, base->seq);
  call->args[3] = arg_number(call->next, base->batch_seq);
  call->args[4] = arg_number(call->bytes, base->bytes + base->batch.n);
  call->args[5] = arg_text(base->batch_hash);
  call->args[6] = arg_text(shared_rest(log));
  call->args[7] = arg_text(log->turn_over ? "t" : "f");
  call->args[8] = (struct conn_arg){.kind = ARG_NUMBER_LIST, .bytes = buf_view(&call->ats)};
  call->args[9] = (struct conn_arg){.kind = ARG_BYTES_LIST, .bytes = buf_view(&call->lines)};
}

static void leave_call_init(struct leave_call *call, const struct base_leave *leave) {
  call->args[0] = arg_text(leave->id);
  call->args[1] = arg_number(call->fence, leave->fence);
  call->args[2] = arg_number(call->pause, leave->pause_ms);
  call->args[3] = arg_text(leave->why);
  call->args[4] = arg_text(leave->refuses ? "t" : "f");
}

/* Returns whether the answer that the batch is already there counts. asked: the session's request
 * from elsewhere, or "". */
static enum store_result shared_append_is_there(struct shared_log *log, const char *asked,
                                                struct err *err) {
  if (!base_trusts(log->pg, log->term, err)) /* written, but it may now be another's */
    return STORE_FENCED;
  if (asked[0] != '\0')
    base_tell(log->pg, WORKER_ASKED, log->id, asked);
  log->ended = summary_is_over(&log->summary);
  return STORE_OK;
}

static enum store_result append_call_over(struct shared_log *log, const PGresult *answer,
                                          struct err *err) {
  const char *result = conn_text(answer, 0, 0);
  if (strcmp(result, "ok") == 0)
    return shared_append_is_there(log, conn_text(answer, 0, 3), err);
  if (strcmp(result, "conflict") == 0) {
    uint64_t seq = conn_number(answer, 0, 1);
    if (seq < log->base.seq)
      err_set(err, ERR_CORRUPT,
              "the store %s has lost records of session %s that it had confirmed: it ends with "
              "record %llu, and %llu were safe. Nothing is written over it",
              log->pg->shown, log->id, (unsigned long long)seq, (unsigned long long)log->base.seq);
    else
      err_set(err, ERR_CORRUPT,
              "record %llu of session %s at the store %s is not what this program wrote",
              (unsigned long long)seq, log->id, log->pg->shown);
    return STORE_CONFLICT;
  }
  if (strcmp(result, "gone") == 0)
    err_set(err, ERR_LOCKED, "session %s was removed from the store %s", log->id, log->pg->shown);
  else
    err_set(err, ERR_LOCKED, "another worker has continued session %s of the store %s", log->id,
            log->pg->shown);
  return STORE_FENCED;
}

/* Returns STORE_OK unless a test asks for a fault. */
static enum store_result append_fault(const struct shared_log *log, struct err *err) {
  if (!fault_fails("write"))
    return STORE_OK;
  bool full = errno == ENOSPC;
  err_set_errno(err, errno, "cannot write to the store %s", log->pg->shown);
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
    err_set(err, ERR_IO, "the store %s does not answer", log->pg->shown);
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
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker), arg_text(id),
                                  arg_text(log->needs ? log->needs : pg->heartbeat.needs)};
  PGresult *answer =
      base_ask(pg, "SELECT segue.make($1, $2, $3)", args, ARRAY_LEN(args), false, &failure, err);
  const char *result = answer ? conn_text(answer, 0, 0) : "";
  bool ok = strcmp(result, "ok") == 0 && shared_open_count(pg, id) == 1;
  if (strcmp(result, "there") == 0 || shared_open_count(pg, id) > 1)
    err_set(err, ERR_IO, "there already is a session %s at the store %s", id, pg->shown);
  else if (answer != NULL && !ok)
    (void)base_trusts(pg, log->term + 1, err);
  conn_free(answer);
  log->fence = ok ? 1 : 0; /* never release another worker's session */
  log->unmade = !ok;
  return ok;
}

/* Appends one batch, trying until it is settled. STORE_FULL: nothing has answered for `try_ms`. */
static enum store_result shared_append_alone(struct shared_log *log, uint64_t try_ms,
                                             struct err *err) {
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
  buf_deinit(&call.ats);
  buf_deinit(&call.lines);
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

/* --- many at once --- */

/* Whatever arrives while commits are under way goes into the next one, with a single sync.
 *
 * DESIGN. The lists belong to the loop; while a commit is under way, its work alone touches the
 * logs and releases in it. Two can be under way at once, so that the server works while the loop
 * reports the results of the other; a session is in at most one of them. A commit is one pipeline:
 * one call of segue.begin_all for the sessions whose first records are in it, one of
 * segue.append_all for the others, and one of segue.release for each session that is given up. No
 * answer counts before the pipeline's sync. If a statement fails, those before it are undone and
 * each goes alone; so does what the server did not write, because segue.make and segue.append say
 * why. They also find what was written although the answer was lost. A batch too large for a
 * pipeline uses a connection of its own and holds up nobody. */

enum { ALL_ARGS = 12, BEGIN_ARGS = 11 };

/* Holds the arguments of segue.append_all, or of segue.begin_all. */
struct all_call {
  bool begins; /* which of them */
  int count;
  int places[LIMIT_STORE_PIPELINE_COUNT]; /* of its sessions in the flight */
  struct buf columns[8];                  /* one value per session, as SQL arrays */
  struct buf of, seqs, ats, lines;
  struct conn_arg args[ALL_ARGS];
};

struct commit_flight { /* one pipeline */
  struct pg_base *pg;
  struct shared_log *logs[LIMIT_STORE_PIPELINE_COUNT];
  struct base_leave *leaves[LIMIT_STORE_PIPELINE_COUNT];
  int count, leave_count;
  bool taken[LIMIT_STORE_PIPELINE_COUNT]; /* the server wrote it */
  struct all_call begins, appends;
};

static const char all_sql[] = "SELECT * FROM segue.append_all($1, $2, $3, $4, $5, $6, $7, $8, $9, "
                              "$10, $11, $12)";
static const char begin_sql[] = "SELECT * FROM segue.begin_all($1, $2, $3, $4, $5, $6, $7, $8, $9, "
                                "$10, $11)";

/* --- many at once: the call --- */

static void all_put_log(struct all_call *call, struct shared_log *log) {
  const struct store_log *base = &log->base;
  struct buf *column = call->columns;
  const char *comma = call->count > 1 ? "," : "{";
  uint64_t at = base->bytes, seq = base->seq;
  buf_printf(column++, "%s%s", comma, log->id);
  if (call->begins) {
    if (column->n == 0)
      buf_putc(column, '{');
    base_put_label(column++, "", log->needs ? log->needs : log->pg->heartbeat.needs);
  } else {
    buf_printf(column++, "%s%" PRIu64, comma, log->fence);
    buf_printf(column++, "%s%" PRIu64, comma, base->seq);
  }
  buf_printf(column++, "%s%" PRIu64, comma, base->batch_seq);
  buf_printf(column++, "%s%" PRIu64, comma, base->bytes + base->batch.n);
  buf_printf(column++, "%s%s", comma, base->batch_hash);
  buf_printf(column++, "%s%s", comma, shared_rest(log));
  if (!call->begins)
    buf_printf(column++, "%s%c", comma, log->turn_over ? 't' : 'f');
  for (struct str rest = buf_view(&base->batch); rest.n > 0;) {
    struct str line = str_next_line(&rest);
    conn_list_number(&call->of, (uint64_t)call->count);
    conn_list_number(&call->seqs, ++seq);
    conn_list_number(&call->ats, at);
    conn_list_bytes(&call->lines, line);
    at += line.n + 1;
  }
}

/* Takes the sessions of the flight that begin with it, or the others. */
static void all_call_init(struct all_call *call, const struct commit_flight *f, bool begins) {
  size_t lines = 0, columns = begins ? 6 : 8;
  *call = (struct all_call){.begins = begins};
  for (int i = 0; i < f->count; i++)
    if (f->logs[i]->unmade == begins) {
      shared_scan_batch(f->logs[i]);
      lines += f->logs[i]->line_count;
    }
  conn_list_begin(&call->of, ARG_NUMBER_LIST, lines);
  conn_list_begin(&call->seqs, ARG_NUMBER_LIST, lines);
  conn_list_begin(&call->ats, ARG_NUMBER_LIST, lines);
  conn_list_begin(&call->lines, ARG_BYTES_LIST, lines);
  for (int i = 0; i < f->count; i++)
    if (f->logs[i]->unmade == begins) {
      call->places[call->count++] = i;
      all_put_log(call, f->logs[i]);
    }
  struct conn_arg *arg = call->args;
  if (begins)
    *arg++ = arg_text(f->pg->heartbeat.worker);
  for (size_t i = 0; i < columns; i++) {
    buf_putc(&call->columns[i], '}');
    *arg++ = arg_text(buf_c(&call->columns[i]));
  }
  const struct buf *lists[] = {&call->of, &call->seqs, &call->ats, &call->lines};
  for (size_t i = 0; i < ARRAY_LEN(lists); i++)
    *arg++ = (struct conn_arg){.kind = i < 3 ? ARG_NUMBER_LIST : ARG_BYTES_LIST,
                               .bytes = buf_view(lists[i])};
}

static bool all_call_send(const struct all_call *call, struct conn *conn) {
  return call->count == 0 || conn_send(conn, call->begins ? begin_sql : all_sql, call->args,
                                       call->begins ? BEGIN_ARGS : ALL_ARGS);
}

static void all_call_deinit(struct all_call *call) {
  for (size_t i = 0; i < ARRAY_LEN(call->columns); i++)
    buf_deinit(&call->columns[i]);
  buf_deinit(&call->of);
  buf_deinit(&call->seqs);
  buf_deinit(&call->ats);
  buf_deinit(&call->lines);
}

/* --- many at once: the pipeline --- */

/* Reads which sessions the server wrote. The others go alone afterwards: their fence or seq did not
 * fit, which only segue.append explains. */
static void flight_answer(void *ctx, int index, PGresult *answer) {
  struct commit_flight *f = ctx;
  bool begins = f->begins.count > 0, appends = f->appends.count > 0;
  const struct all_call *call = index == 0 && begins ? &f->begins : &f->appends;
  if (index >= begins + appends) /* the answer to a release */
    return;
  for (int row = 0; row < conn_rows(answer); row++) {
    uint64_t n = conn_number(answer, row, 0);
    if (n < 1 || n > (uint64_t)call->count)
      continue;
    int place = call->places[n - 1];
    struct shared_log *log = f->logs[place];
    const char *asked = call->begins ? "" : conn_text(answer, row, 1);
    f->taken[place] = true;
    log->result = shared_append_is_there(log, asked, &log->err);
  }
}

/* Sends everything in one pipeline. Returns false if nothing was written, or nobody knows. */
static bool fly_together(struct commit_flight *f) {
  enum conn_failure failure = CONN_FINE;
  struct err err;
  struct conn *conn = base_take(f->pg, &failure, &err);
  bool ok = conn != NULL && conn_begin_pipeline(conn);
  all_call_init(&f->begins, f, true);
  all_call_init(&f->appends, f, false);
  ok = ok && all_call_send(&f->begins, conn) && all_call_send(&f->appends, conn);
  for (int i = 0; ok && i < f->leave_count; i++) {
    struct leave_call leave;
    leave_call_init(&leave, f->leaves[i]);
    ok = conn_send(conn, release_sql, leave.args, LEAVE_ARGS);
  }
  size_t bytes = f->begins.lines.n + f->appends.lines.n;
  FAULT_POINT("append_before");
  ok = ok && conn_sync(conn, base_limit_ms(bytes), flight_answer, f, &failure, &err);
  FAULT_POINT("append_after");
  all_call_deinit(&f->begins);
  all_call_deinit(&f->appends);
  if (ok)
    base_give(f->pg, conn);
  else
    base_drop(f->pg, conn); /* it may contain half a pipeline */
  return ok;
}

static void fly_alone(struct shared_log *log) {
  log->result = shared_append_alone(log, LIMIT_STORE_TRY_MS, &log->err);
}

/* Returns whether the log can be made and written in a pipeline with others. segue.begin_all makes
 * rows that are held, so a session that is over with its first batch goes alone; so does one
 * whose id is open here twice, which shared_make refuses. */
static bool may_begin_together(struct shared_log *log) {
  shared_scan_batch(log);
  log->term = base_term(log->pg);
  return shared_open_count(log->pg, log->id) == 1 && strcmp(shared_rest(log), "ended") != 0;
}

/* Leaves the release to the next look for work: whoever polls has time to wait for the server. */
static void shared_release_later(struct pg_base *pg, const struct base_leave *leave) {
  struct base_claim *claim = xcalloc(1, sizeof *claim);
  memcpy(claim->id, leave->id, sizeof claim->id);
  claim->held.fence = leave->fence;
  claim->term = leave->term;
  (void)pthread_mutex_lock(&pg->lock);
  list_push_front(&pg->claimed, &claim->in_base); /* at_ms 0: the oldest */
  (void)pthread_mutex_unlock(&pg->lock);
}

/* Sends the flight, together if that may pay, and settles every log and release in it. One log by
 * itself needs no pipeline: segue.append says more in the same one answer. */
static void fly(struct commit_flight *f) {
  bool together = f->count + f->leave_count > 1 || (f->count == 1 && f->logs[0]->unmade);
#ifdef SEGUE_FAULTS
  together = together && getenv("SEGUE_FAULT") == NULL; /* faults are counted request by request */
#endif
  for (int i = 0; together && i < f->count; i++)
    together = (!f->logs[i]->unmade || may_begin_together(f->logs[i])) &&
               base_trusts(f->pg, f->logs[i]->term, &f->logs[i]->err);
  together = together && fly_together(f);
  for (int i = 0; i < f->count; i++) {
    if (together && f->taken[i]) {
      f->logs[i]->base.syncs++;
      if (f->logs[i]->unmade)
        f->logs[i]->fence = 1;
      f->logs[i]->unmade = false;
    } else
      fly_alone(f->logs[i]);
  }
  for (int i = 0; !together && i < f->leave_count; i++)
    if (!shared_release(f->pg, f->leaves[i]))
      shared_release_later(f->pg, f->leaves[i]);
  f->count = f->leave_count = 0;
}

/* Cuts what has gathered into pipelines of bounded size, releases first: others wait for those. */
static void commit_work(uv_work_t *work) {
  const struct commit_slot *slot = work->data;
  struct commit_flight *f = xcalloc(1, sizeof *f);
  size_t bytes = 0;
  f->pg = slot->pg;
  LIST_EACH(struct base_leave, leave, in_base, &slot->leaves) {
    f->leaves[f->leave_count++] = leave;
    if (f->leave_count == (int)LIMIT_STORE_PIPELINE_COUNT)
      fly(f);
  }
  LIST_EACH(struct shared_log, log, in_base, &slot->logs) {
    bool fits = f->count < (int)LIMIT_STORE_PIPELINE_COUNT &&
                bytes + log->base.batch.n <= LIMIT_STORE_PIPELINE_BYTES;
    if (f->count > 0 && !fits) {
      fly(f);
      memset(f->taken, 0, sizeof f->taken);
      bytes = 0;
    }
    f->logs[f->count++] = log;
    bytes += log->base.batch.n;
  }
  if (f->count + f->leave_count > 0)
    fly(f);
  free(f);
}

/* --- many at once: on the loop --- */

static void list_move_all(struct list *to, struct list *from) {
  while (from->first != NULL) {
    struct list_node *node = from->first;
    list_remove(from, node);
    list_push_back(to, node);
  }
}

static void commit_begin(struct pg_base *pg, uv_loop_t *loop);

/* Frees the slot before it reports: a callback may append again, which may use this slot at once.
 */
static void commit_over(uv_work_t *work, int status) {
  struct commit_slot *slot = work->data;
  struct pg_base *pg = slot->pg;
  uv_loop_t *loop = work->loop;
  struct list flown = {0};
  assert(status == 0);
  list_move_all(&flown, &slot->logs);
  while (slot->leaves.first != NULL) {
    struct base_leave *leave = LIST_ITEM(slot->leaves.first, struct base_leave, in_base);
    list_remove(&slot->leaves, &leave->in_base);
    free(leave->why);
    free(leave);
  }
  slot->flies = false;
  while (flown.first != NULL) { /* a callback may append again */
    struct shared_log *log = LIST_ITEM(flown.first, struct shared_log, in_base);
    list_remove(&flown, &log->in_base);
    struct err err = log->err;
    store_append_over(&log->base, log->result, &err);
  }
  commit_begin(pg, loop);
}

static struct commit_slot *free_slot(struct pg_base *pg) {
  size_t n = LIMIT_STORE_COMMIT_COUNT;
#ifdef SEGUE_FAULTS
  n = getenv("SEGUE_FAULT") != NULL ? 1 : n; /* keeps them in order */
#endif
  for (size_t i = 0; i < n; i++)
    if (!pg->commits[i].flies)
      return &pg->commits[i];
  return NULL;
}

/* Takes along all that waits, if a slot is free; else the commit that ends next does. */
static void commit_begin(struct pg_base *pg, uv_loop_t *loop) {
  struct commit_slot *slot = free_slot(pg);
  if (slot == NULL)
    return;
  list_move_all(&slot->logs, &pg->waiting);
  (void)pthread_mutex_lock(&pg->lock);
  list_move_all(&slot->leaves, &pg->leaving);
  (void)pthread_mutex_unlock(&pg->lock);
  if (slot->logs.count + slot->leaves.count == 0)
    return;
  slot->pg = pg;
  slot->flies = true;
  slot->work.data = slot;
  loop_work(loop, &slot->work, commit_work, commit_over);
}

static void large_work(uv_work_t *work) {
  fly_alone(work->data);
}

static void large_over(uv_work_t *work, int status) {
  struct shared_log *log = work->data;
  struct err err = log->err;
  assert(status == 0);
  store_append_over(&log->base, log->result, &err);
}

void shared_append(struct store_log *base, uv_loop_t *loop) {
  struct shared_log *log = (struct shared_log *)base;
  log->err = (struct err){0};
  if ((log->unmade && log->pg->loop != loop) || base->batch.n > LIMIT_STORE_PIPELINE_BYTES) {
    log->work.data = log;
    loop_work(loop, &log->work, large_work, large_over);
    return;
  }
  list_push_back(&log->pg->waiting, &log->in_base);
  commit_begin(log->pg, loop);
}

/* --- making and taking --- */

struct store_log *shared_create_later(struct store *store, const char *id) {
  struct err ignored;
  struct shared_log *log = shared_log_new(store, base_of(store->where, &ignored), id);
  log->unmade = true;
  return &log->base;
}

struct store_log *shared_create(struct store *store, const char *id, struct err *err) {
  if (fault_fails("create")) {
    err_set_errno(err, errno, "cannot make session %s", id);
    return NULL;
  }
  struct pg_base *pg = base_of(store->where, err);
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
  const struct conn_arg args[] = {arg_text(pg->heartbeat.worker), arg_text(id)};
  for (;;) {
    bool ours = shared_open_count(pg, id) > 1; /* the store would give it to us again */
    PGresult *answer = NULL;
    if (!ours)
      answer = base_ask(pg, "SELECT * FROM segue.hold($1, $2)", args, ARRAY_LEN(args), false,
                        &failure, err);
    if (ours)
      err_set(err, ERR_LOCKED, "this program already has session %s of the store %s", id,
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
    err_set(err, ERR_LOCKED, "another worker of the store %s has session %s", pg->shown, id);
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
  if (answer != NULL) {
    *held = (struct base_held){.fence = conn_number(answer, 0, 1),
                               .seq = conn_number(answer, 0, 2),
                               .bytes = conn_number(answer, 0, 3),
                               .deaths = (unsigned)conn_number(answer, 0, 6)};
    print_into(held->hash, sizeof held->hash, "%s", conn_text(answer, 0, 4));
    print_into(held->died, sizeof held->died, "%s", conn_text(answer, 0, 7));
    print_into(held->asked, sizeof held->asked, "%s", conn_text(answer, 0, 8));
  }
  conn_free(answer);
  return answer != NULL;
}

static bool fold_one(struct shared_log *log, const struct log_reader *r, struct str line,
                     store_fold_fn fold, void *ctx, struct err *err) {
  struct err why = {.text = "it has no end"};
  char hash[SHA256_HEX];
  memcpy(hash, log->base.hash, SHA256_HEX);
  json_t *record = r->whole ? record_line_parse(line, hash, &why) : NULL;
  if (record == NULL) {
    log->pause_ms = DAMAGED_PAUSE_MS;
    return err_set(err, ERR_CORRUPT, "record %llu of %s is damaged: %s",
                   (unsigned long long)log->base.seq + 1, log->base.name, why.text);
  }
  bool ok = fold == NULL || fold(ctx, record, err);
  if (ok && shared_tells_rest(line))
    shared_feed(&log->summary, record);
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

/* Reads the log of a session that was taken, and checks that it is what its row says. */
static bool shared_fold(struct shared_log *log, const struct store_ref *ref,
                        const struct base_held *held, store_fold_fn fold, void *ctx,
                        struct err *err) {
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
    err_set_errno(err, errno, "cannot take %s", ref->name);
    return NULL;
  }
  if (mend->cut) {
    err_set(err, ERR_USAGE, "--cut is for logs in files: a store keeps all records");
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
      answer =
          conn_ask(conn, release_sql, NOW_TRY_MS, call.args, LEAVE_ARGS, false, &failure, &err);
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
    /* It is released with the next commit. */
    (void)pthread_mutex_lock(&pg->lock);
    list_push_back(&pg->leaving, &leave->in_base);
    (void)pthread_mutex_unlock(&pg->lock);
    commit_begin(pg, pg->loop);
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
  summary_deinit(&log->summary);
  free(log->needs);
  free(log);
}

/* --- moving --- */

/* In transit a row is `moved` and not ended, so nobody takes it. Set aside it is `moved` and
 * ended. */

static PGresult *ask_move_in(const struct shared_log *log, const struct store_move *move,
                             struct err *err) {
  enum conn_failure failure;
  char bytes[24];
  print_into(bytes, sizeof bytes, "%llu", (unsigned long long)move->bytes);
  const struct conn_arg args[] = {arg_text(log->pg->heartbeat.worker), arg_text(log->id),
                                  arg_text(log->needs ? log->needs : log->pg->heartbeat.needs),
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
    err_set(err, ERR_LOCKED, "session %s of the store %s is not as it was a moment ago", log->id,
            log->pg->shown);
  else if (!ok)
    (void)base_trusts(log->pg, log->term + 1, err);
  held.seq = conn_number(answer, 0, 2);
  held.bytes = conn_number(answer, 0, 3);
  print_into(held.hash, sizeof held.hash, "%s", conn_text(answer, 0, 4));
  log->fence = ok ? conn_number(answer, 0, 1) : 0; /* never release another worker's session */
  log->in_transit = ok;
  conn_free(answer);
  shared_ref(log->base.store, log->id, &ref);
  return ok && (held.seq == 0 || shared_fold(log, &ref, &held, NULL, NULL, err));
}

struct store_log *shared_move_in(struct store *store, const char *id, const struct store_move *move,
                                 struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
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
  print_into(fence, sizeof fence, "%llu", (unsigned long long)log->fence);
  const struct conn_arg args[] = {arg_text(log->id), arg_text(fence), arg_text(what)};
  PGresult *answer = base_ask(log->pg, sql, args, ARRAY_LEN(args), false, &failure, err);
  bool ok = answer != NULL && conn_text(answer, 0, 0)[0] == 't';
  if (answer != NULL && !ok)
    err_set(err, ERR_LOCKED, "another worker has session %s of the store %s", log->id,
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
  bool ok = ask_moved(log, "SELECT segue.arrive($1, $2, $3)", shared_rest_of(&log->summary), err);
  FAULT_POINT("arrive_after");
  log->in_transit = !ok;
  return ok;
}

/* --- where a moved session stands --- */

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
    print_into(to, STORE_NAME_BYTES, "%s", conn_text(answer, 0, 2));
  }
  conn_free(answer);
  return is_aside;
}

void shared_place(const struct store *store, char out[STORE_NAME_BYTES]) {
  struct err err;
  const struct pg_base *pg = base_of(store->where, &err);
  print_into(out, STORE_NAME_BYTES, "%s", pg != NULL ? pg->shown : store->where);
}
