/* Makes, takes and appends to the logs of a shared store, under the fence of each session.
 *
 * DESIGN, durability. A batch is one call of segue.append, which writes all of it or nothing and
 * checks fence and seq. A lost reply says nothing, so the same call is repeated: it answers ok if
 * the batch is already there, and writes it otherwise; if a statement of the lost connection is
 * still running, the call waits for it. Once the worker's lease cannot be trusted, nothing is
 * appended and no answer counts. */
#include "store/postgres/session_log.h"

#include "base/fault.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"
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

enum { TYPE_BYTES = 160, NOW_TRY_MS = 1000, DAMAGED_PAUSE_MS = 300000, APPEND_ARGS = 7 };

static const char append_sql[] = "SELECT * FROM segue.append($1, $2, $3, $4, $5, $6, $7)";

/* Holds a batch as the arguments of segue.append, and owns their texts. */
struct append_call {
  char fence[ARG_NUMBER_BYTES], seq[ARG_NUMBER_BYTES];
  struct buf lines;
  struct conn_arg args[APPEND_ARGS];
};

static struct shared_log *shared_log_new(struct store *store, struct pg_base *pg, const char *id) {
  struct shared_log *log = xcalloc(1, sizeof *log);
  struct store_ref ref;
  base_ref(store, id, &ref);
  store_log_init(&log->base, store, ref.name);
  log->pg = pg;
  log->term = heartbeat_term(pg);
  memcpy(log->id, id, STORE_ID_BYTES);
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->open, &log->in_open);
  (void)pthread_mutex_unlock(&pg->lock);
  return log;
}

/* --- where a session stands --- */

/* Looks for the type in the first bytes: only v, seq and ts come before it. Each record of each
 * session passes here on its way to the server, so the few that matter are found without parsing
 * the others. A nested member of that name costs a needless parse and changes nothing. */
static bool line_is(struct str line, const char *type) {
  struct str head = {line.p, line.n < TYPE_BYTES ? line.n : TYPE_BYTES};
  return str_has(head, type);
}

static bool shared_tells_rest(struct str line) {
  return line_is(line, "\"type\":\"session_") || line_is(line, "\"type\":\"answer\"");
}

static void shared_feed(struct summary *summary, const json_t *record) {
  struct record_draft d;
  record_read(&d, record);
  summary_feed(summary, &d.record);
  record_drop(&d);
}

void shared_feed_line(struct summary *summary, struct str line) {
  json_auto_t *record =
      shared_tells_rest(line) ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
  if (record != NULL)
    shared_feed(summary, record);
}

const char *shared_rest_of(const struct summary *summary) {
  if (summary_is_over(summary))
    return "ended";
  return summary_goes_on(summary, true) ? "ready" : "idle";
}

static const char *shared_rest(const struct shared_log *log) {
  return log->in_transit ? "idle" : shared_rest_of(&log->summary);
}

/* --- the batch --- */

/* Feeds the batch to log->summary, once: a batch that the server did not take is sent again, and
 * its turns and stops must not count twice. */
static void shared_scan_batch(struct shared_log *log) {
  struct str rest = buf_view(&log->base.batch);
  if (log->told_seq == log->base.batch_seq)
    return;
  log->told_seq = log->base.batch_seq;
  log->turn_over = false;
  while (rest.n > 0) {
    struct str line = str_next_line(&rest);
    log->turn_over = log->turn_over || line_is(line, "\"type\":\"turn_end\"") ||
                     line_is(line, "\"type\":\"session_resume\",\"reason\":\"user\"");
    shared_feed_line(&log->summary, line);
  }
}

/* The row has to say more after the batch than the lines do. That is computed here, and goes to the
 * server in the same statement as they do: the row and the log cannot differ. */
static void append_call_init(struct append_call *call, struct shared_log *log) {
  const struct store_log *base = &log->base;
  *call = (struct append_call){0};
  shared_scan_batch(log);
  conn_list_begin(&call->lines, ARG_BYTES_LIST);
  for (struct str rest = buf_view(&base->batch); rest.n > 0;)
    conn_list_bytes(&call->lines, str_next_line(&rest));
  call->args[0] = arg_text(log->pg->heartbeat.word);
  call->args[1] = arg_text(log->id);
  call->args[2] = arg_number(call->fence, log->held.fence);
  call->args[3] = arg_number(call->seq, base->seq);
  call->args[4] = arg_text(shared_rest(log));
  call->args[5] = arg_text(log->turn_over ? "t" : "f");
  call->args[6] = arg_list(ARG_BYTES_LIST, &call->lines);
}

/* Returns whether the answer that the batch is already there counts. asked: the session's request
 * from elsewhere, or "". */
static enum store_result shared_append_is_there(struct shared_log *log, const char *asked,
                                                struct err *err) {
  if (!heartbeat_trusts(log->pg, log->term, err)) /* written, but it may now be another's */
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

/* Tries once. *lost: there was no answer. The lease is looked at before the request and after its
 * answer (shared_append_is_there): a program that was stopped in between would otherwise take for
 * its own what another worker has continued. */
static enum store_result append_once(struct shared_log *log, const struct append_call *call,
                                     bool *lost, struct err *err) {
  enum conn_failure failure = CONN_FINE;
  enum store_result result = STORE_IO;
  *lost = false;
  if (!heartbeat_trusts(log->pg, log->term, err))
    return STORE_FENCED;
  if (fault_fails("write")) {
    result = errno == ENOSPC ? STORE_FULL : STORE_IO;
    err_set_errno(err, errno, "cannot write to the store %s", log->pg->shown);
    return result;
  }
  struct conn *conn = base_take(log->pg, &failure, err);
  PGresult *answer = NULL;
  FAULT_POINT("append_before");
  if (conn != NULL)
    answer = conn_ask(conn, append_sql, base_limit_ms(call->lines.n), call->args, APPEND_ARGS,
                      false, &failure, err);
  FAULT_POINT("append_after");
  if (answer != NULL && fault_fails("sync")) { /* as if the reply were lost or the disk full */
    failure = errno == ENOSPC ? CONN_FULL : CONN_LOST;
    conn_free(answer);
    answer = NULL;
    conn_close(conn);
    conn = NULL;
    err_set(err, ERR_IO, "the store %s does not answer", log->pg->shown);
  }
  base_give(log->pg, conn);
  *lost = failure == CONN_LOST;
  if (answer != NULL)
    result = append_call_over(log, answer, err);
  else if (failure == CONN_FULL)
    result = STORE_FULL;
  conn_free(answer);
  return result;
}

static void shared_put_after(const struct summary *b, struct buf *out) {
  JSON_EACH(b->after, i, id) {
    buf_printf(out, "%c%.40s", i > 0 ? ',' : '{', json_string_value(id));
  }
  buf_putc(out, '}');
}

/* Makes the row of a log that was made with store_create_later, before its first append. Repeated
 * after a lost answer, segue.make finds its own row and says ok again: the fence is still 1. */
static bool shared_make(struct shared_log *log, struct err *err) {
  struct pg_base *pg = log->pg;
  const char *id = log->id;
  char result[BASE_WORD_BYTES];
  if (!heartbeat_begin(pg, err))
    return false;
  log->term = heartbeat_term(pg);
  shared_scan_batch(log);
  buf_auto_t after = {0};
  if (summary_waits(&log->summary))
    shared_put_after(&log->summary, &after);
  const struct conn_arg args[] = {arg_text(pg->heartbeat.word), arg_text(id),
                                  arg_text(log->needs ? log->needs : pg->heartbeat.needs),
                                  arg_text(after.n > 0 ? buf_c(&after) : NULL),
                                  arg_text(log->summary.after_any_end ? "t" : "f")};
  bool answered = base_ask_word(pg, "SELECT segue.make($1, $2, $3, $4, $5)", args, ARRAY_LEN(args),
                                result, err);
  bool ok = strcmp(result, "ok") == 0 && shared_open_count(pg, id) == 1;
  if (strcmp(result, "there") == 0 || shared_open_count(pg, id) > 1)
    err_set(err, ERR_IO, "there already is a session %s at the store %s", id, pg->shown);
  else if (answered && !ok)
    (void)heartbeat_trusts(pg, log->term + 1, err);
  log->held.fence = ok ? 1 : 0; /* never release another worker's session */
  log->unmade = !ok;
  return ok;
}

/* Appends one batch, trying until it is settled. STORE_FULL: nothing has answered for `try_ms`, and
 * the caller keeps the batch and tries again. */
static enum store_result shared_append_alone(struct shared_log *log, uint64_t try_ms,
                                             struct err *err) {
  struct append_call call;
  enum store_result result;
  struct base_tries tries = {.until = clock_mono_ms() + try_ms};
  bool lost;
  if (log->unmade && !shared_make(log, err))
    return STORE_IO;
  append_call_init(&call, log);
  do
    result = append_once(log, &call, &lost, err);
  while (lost && base_again(&tries, NULL));
  if (lost)
    result = STORE_FULL;
  buf_deinit(&call.lines);
  log->base.syncs++;
  return result;
}

enum store_result shared_append_now(struct store_log *base, struct err *err) {
  return shared_append_alone((struct shared_log *)base, NOW_TRY_MS, err);
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

enum { ALL_ARGS = 8, BEGIN_ARGS = 6, ALL_COLUMNS = 5, BEGIN_COLUMNS = 3 };

/* Holds the arguments of segue.append_all, or of segue.begin_all. */
struct all_call {
  bool begins; /* which of them */
  int count;
  int places[LIMIT_STORE_PIPELINE_COUNT]; /* of its sessions in the flight */
  struct buf columns[ALL_COLUMNS];        /* one value per session, as SQL arrays */
  struct buf of, lines;
  struct conn_arg args[ALL_ARGS];
};

struct commit_flight { /* one pipeline */
  struct pg_base *pg;
  struct shared_log *logs[LIMIT_STORE_PIPELINE_COUNT];
  struct base_claim *leaves[LIMIT_STORE_PIPELINE_COUNT];
  int count, leave_count;
  bool taken[LIMIT_STORE_PIPELINE_COUNT]; /* the server wrote it */
  struct all_call begins, appends;
};

static const char all_sql[] = "SELECT * FROM segue.append_all($1, $2, $3, $4, $5, $6, $7, $8)";
static const char begin_sql[] = "SELECT * FROM segue.begin_all($1, $2, $3, $4, $5, $6)";

/* --- many at once: the call --- */

static void all_put_log(struct all_call *call, struct shared_log *log) {
  const struct store_log *base = &log->base;
  struct buf *column = call->columns;
  const char *comma = call->count > 1 ? "," : "{";
  buf_printf(column++, "%s%s", comma, log->id);
  if (call->begins) {
    if (column->n == 0)
      buf_putc(column, '{');
    base_put_label(column++, "", log->needs ? log->needs : log->pg->heartbeat.needs);
  } else {
    buf_printf(column++, "%s%" PRIu64, comma, log->held.fence);
    buf_printf(column++, "%s%" PRIu64, comma, base->seq);
  }
  buf_printf(column++, "%s%s", comma, shared_rest(log));
  if (!call->begins)
    buf_printf(column++, "%s%c", comma, log->turn_over ? 't' : 'f');
  for (struct str rest = buf_view(&base->batch); rest.n > 0;) {
    conn_list_number(&call->of, (uint64_t)call->count);
    conn_list_bytes(&call->lines, str_next_line(&rest));
  }
}

/* Takes the sessions of the flight that begin with it, or the others. */
static void all_call_init(struct all_call *call, const struct commit_flight *f, bool begins) {
  size_t columns = begins ? BEGIN_COLUMNS : ALL_COLUMNS;
  struct conn_arg *arg = call->args;
  *call = (struct all_call){.begins = begins};
  conn_list_begin(&call->of, ARG_NUMBER_LIST);
  conn_list_begin(&call->lines, ARG_BYTES_LIST);
  for (int i = 0; i < f->count; i++)
    if (f->logs[i]->unmade == begins) {
      call->places[call->count++] = i;
      shared_scan_batch(f->logs[i]);
      all_put_log(call, f->logs[i]);
    }
  *arg++ = arg_text(f->pg->heartbeat.word);
  for (size_t i = 0; i < columns; i++) {
    buf_putc(&call->columns[i], '}');
    *arg++ = arg_text(buf_c(&call->columns[i]));
  }
  *arg++ = arg_list(ARG_NUMBER_LIST, &call->of);
  *arg = arg_list(ARG_BYTES_LIST, &call->lines);
}

static bool all_call_send(const struct all_call *call, struct conn *conn) {
  return call->count == 0 || conn_send(conn, call->begins ? begin_sql : all_sql, call->args,
                                       call->begins ? BEGIN_ARGS : ALL_ARGS);
}

static void all_call_deinit(struct all_call *call) {
  for (size_t i = 0; i < ARRAY_LEN(call->columns); i++)
    buf_deinit(&call->columns[i]);
  buf_deinit(&call->of);
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
  struct err err;
  struct conn *conn = base_take(f->pg, NULL, &err);
  bool ok = conn != NULL;
  all_call_init(&f->begins, f, true);
  all_call_init(&f->appends, f, false);
  ok = ok && all_call_send(&f->begins, conn) && all_call_send(&f->appends, conn);
  for (int i = 0; ok && i < f->leave_count; i++) {
    struct leave_call leave;
    leave_call_init(&leave, f->pg, f->leaves[i]);
    ok = conn_send(conn, SHARED_RELEASE_SQL, leave.args, LEAVE_ARGS);
  }
  size_t bytes = f->begins.lines.n + f->appends.lines.n;
  FAULT_POINT("append_before");
  ok = ok && conn_sync(conn, base_limit_ms(bytes), flight_answer, f, &err);
  FAULT_POINT("append_after");
  all_call_deinit(&f->begins);
  all_call_deinit(&f->appends);
  base_give(f->pg, conn);
  return ok;
}

/* Tries for longer than an append on the loop's own thread may: here the loop goes on meanwhile. */
static void fly_alone(struct shared_log *log) {
  log->result = shared_append_alone(log, LIMIT_STORE_TRY_MS, &log->err);
}

/* Returns whether the log can be made and written in a pipeline with others. segue.begin_all makes
 * rows that are held, so a session that is over with its first batch goes alone; so does one
 * whose id is open here twice, which shared_make refuses. */
static bool may_begin_together(struct shared_log *log) {
  shared_scan_batch(log);
  log->term = heartbeat_term(log->pg);
  return shared_open_count(log->pg, log->id) == 1 && strcmp(shared_rest(log), "ended") != 0;
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
               heartbeat_trusts(f->pg, f->logs[i]->term, &f->logs[i]->err);
  together = together && fly_together(f);
  for (int i = 0; i < f->count; i++) {
    if (together && f->taken[i]) {
      f->logs[i]->base.syncs++;
      if (f->logs[i]->unmade)
        f->logs[i]->held.fence = 1;
      f->logs[i]->unmade = false;
    } else
      fly_alone(f->logs[i]);
  }
  for (int i = 0; i < f->leave_count; i++)
    if (together)
      shared_claim_free(f->leaves[i]);
    else
      shared_release(f->pg, f->leaves[i]);
  f->count = f->leave_count = 0;
}

/* Cuts what has gathered into pipelines of bounded size, releases first: others wait for those. */
static void commit_work(uv_work_t *work) {
  struct commit_slot *slot = work->data;
  struct commit_flight *f = xcalloc(1, sizeof *f);
  size_t bytes = 0;
  f->pg = slot->pg;
  LIST_EACH(struct base_claim, leave, in_base, &slot->leaves) {
    list_remove(&slot->leaves, &leave->in_base);
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
  slot->flies = false;
  while (flown.first != NULL) { /* a callback may append again */
    struct shared_log *log = LIST_ITEM(flown.first, struct shared_log, in_base);
    list_remove(&flown, &log->in_base);
    struct err err = log->err;
    store_append_over(&log->base, log->result, &err);
  }
  commit_begin(pg, loop);
}

/* With more than two commits under way each would have fewer records in it, and the server would
 * sync more often for the same records. */
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

/* A batch that is larger than a pipeline would make all the sessions in it wait for its bytes. */
static void large_work(uv_work_t *work) {
  fly_alone(work->data);
}

static void large_over(uv_work_t *work, int status) {
  struct shared_log *log = work->data;
  struct err err = log->err;
  assert(status == 0);
  store_append_over(&log->base, log->result, &err);
}

/* On another loop than the watcher's, a first batch goes alone: making the row registers this
 * program as a worker, which may take long, and those in the pipeline would wait for it. So does
 * that of a session that waits for others, which segue.make looks at. */
void shared_append(struct store_log *base, uv_loop_t *loop) {
  struct shared_log *log = (struct shared_log *)base;
  log->err = (struct err){0};
  bool waits = log->unmade && str_has(buf_view(&base->batch), "\"after\":[");
  if ((log->unmade && log->pg->loop != loop) || waits ||
      base->batch.n > LIMIT_STORE_PIPELINE_BYTES) {
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
  if (pg == NULL || !heartbeat_begin(pg, err))
    return NULL;
  struct shared_log *log = shared_log_new(store, pg, id);
  if (shared_make(log, err))
    return &log->base;
  store_close(&log->base);
  return NULL;
}

/* A damaged log is released for a long while: every worker that took it would find the same damage,
 * and without a pause they would hand it around for ever. */
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

/* Reads the log of a session that was taken, and checks that it is what its row says. */
static bool shared_fold(struct shared_log *log, const struct store_ref *ref, store_fold_fn fold,
                        void *ctx, struct err *err) {
  const struct base_held *held = &log->held;
  struct log_reader reader;
  struct str line;
  if (!reader_open(&reader, ref, err))
    return false;
  bool ok = true;
  while (ok && reader_next(&reader, &line))
    ok = fold_one(log, &reader, line, fold, ctx, err);
  if (ok && reader.error != 0)
    ok = err_set_errno(err, reader.error, "cannot read %s", ref->name);
  reader_close(&reader);
  if (!ok || (log->base.seq > 0 && log->base.seq == held->seq && log->base.bytes == held->bytes &&
              strcmp(log->base.hash, held->hash) == 0))
    return ok;
  if (log->base.seq == 0 && held->seq == 0)
    return err_set(err, ERR_CORRUPT, "%s has no records: the session had not started; run it again",
                   log->base.name);
  log->pause_ms = DAMAGED_PAUSE_MS;
  return err_set(err, ERR_CORRUPT,
                 "the store %s says that session %s has %llu records, but its log has %llu: segue "
                 "store check says more",
                 log->pg->shown, log->id, (unsigned long long)held->seq,
                 (unsigned long long)log->base.seq);
}

struct store_log *shared_attach(struct store *store, const struct store_ref *ref,
                                store_fold_fn fold, void *ctx, struct store_mend *mend,
                                struct err *err) {
  char id[STORE_ID_BYTES];
  struct pg_base *pg = base_of_ref(ref, id, err);
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
  if (!heartbeat_join(pg, err))
    return NULL;
  struct shared_log *log = shared_log_new(store, pg, id);
  bool ok = shared_take(pg, id, store->lock_wait_ms, &log->held, err) &&
            shared_fold(log, ref, fold, ctx, err);
  shared_end_claim(pg, id);
  if (ok)
    return &log->base;
  store_close(&log->base);
  return NULL;
}

/* On the loop's thread the release goes with the next commit, so that the loop does not wait for
 * it. */
static void let_go_of(struct shared_log *log) {
  struct pg_base *pg = log->pg;
  struct base_claim *leave = shared_claim_new(log->id, log->held.fence, log->term);
  leave->pause_ms = log->pause_ms;
  leave->why = shared_pause_why(pg, log->id);
  leave->refuses = log->refuses;
  (void)pthread_mutex_lock(&pg->lock);
  bool later = pg->loop != NULL && pthread_equal(pg->loop_thread, pthread_self());
  if (later)
    list_push_back(&pg->leaving, &leave->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  if (later)
    commit_begin(pg, pg->loop);
  else
    shared_release(pg, leave);
}

/* A session that ended was released with its last record. One that was taken under a lease that is
 * over is not released, since it may have another owner; the fence would refuse it anyway. */
void shared_close(struct store_log *base) {
  struct shared_log *log = (struct shared_log *)base;
  struct err err;
  assert(log->in_base.list == NULL);
  if (log->held.fence > 0 && !log->ended && heartbeat_trusts(log->pg, log->term, &err))
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
 * ended. A move arrives only after its source was set aside: a program that is killed in between
 * leaves a session that continues nowhere until the move is repeated, but never one that continues
 * in two places. */

/* Takes the row, and reads what is already there of the log. */
static bool move_in(struct shared_log *log, const struct store_move *move, struct err *err) {
  struct store_ref ref;
  char bytes[ARG_NUMBER_BYTES];
  const struct conn_arg args[] = {arg_text(log->pg->heartbeat.word), arg_text(log->id),
                                  arg_text(log->needs ? log->needs : log->pg->heartbeat.needs),
                                  arg_number(bytes, move->bytes),
                                  arg_text(move->begins ? "t" : "f")};
  PGresult *answer =
      base_ask(log->pg, "SELECT m.*, NULL, 0, NULL, NULL FROM segue.move_in($1, $2, $3, $4, $5) m",
               args, ARRAY_LEN(args), err);
  if (answer == NULL)
    return false;
  const char *result = conn_text(answer, 0, 0);
  log->in_transit = strcmp(result, "ok") == 0;
  if (log->in_transit) /* otherwise its fence is another worker's, whose session it is */
    shared_held_read(answer, 0, &log->held);
  else if (strcmp(result, "there") == 0)
    err_set(err, ERR_LOCKED, "session %s of the store %s is not as it was a moment ago", log->id,
            log->pg->shown);
  else
    (void)heartbeat_trusts(log->pg, log->term + 1, err);
  conn_free(answer);
  base_ref(log->base.store, log->id, &ref);
  return log->in_transit && (log->held.seq == 0 || shared_fold(log, &ref, NULL, NULL, err));
}

struct store_log *shared_move_in(struct store *store, const char *id, const struct store_move *move,
                                 struct err *err) {
  struct pg_base *pg = base_of(store->where, err);
  if (pg == NULL || !heartbeat_begin(pg, err))
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
  char fence[ARG_NUMBER_BYTES], done[BASE_WORD_BYTES];
  const struct conn_arg args[] = {arg_text(log->pg->heartbeat.word), arg_text(log->id),
                                  arg_number(fence, log->held.fence), arg_text(what)};
  if (!base_ask_word(log->pg, sql, args, ARRAY_LEN(args), done, err))
    return false;
  return done[0] == 't' || err_set(err, ERR_LOCKED, "another worker has session %s of the store %s",
                                   log->id, log->pg->shown);
}

bool shared_set_aside(struct store_log *base, const char *to, struct err *err) {
  FAULT_POINT("aside_before");
  bool ok = ask_moved((struct shared_log *)base, "SELECT segue.set_aside($1, $2, $3, $4)", to, err);
  FAULT_POINT("aside_after");
  return ok;
}

bool shared_arrive(struct store_log *base, struct err *err) {
  struct shared_log *log = (struct shared_log *)base;
  FAULT_POINT("arrive_before");
  bool ok =
      ask_moved(log, "SELECT segue.arrive($1, $2, $3, $4)", shared_rest_of(&log->summary), err);
  FAULT_POINT("arrive_after");
  log->in_transit = !ok;
  return ok;
}
