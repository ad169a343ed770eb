/* Commits the appends of many sessions together: whatever arrives while commits are under way goes
 * into the next one, with a single sync.
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
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* --- the call --- */

static void all_put_log(struct all_call *call, struct shared_log *log) {
  const struct store_log *base = &log->base;
  struct buf *column = call->columns;
  const char *comma = call->count > 1 ? "," : "{";
  uint64_t at = base->bytes, seq = base->seq;
  buf_printf(column++, "%s%s", comma, log->id);
  if (call->begins) {
    if (column->n == 0)
      buf_putc(column, '{');
    base_put_label(column++, "", log->needs ? log->needs : log->pg->keeper.needs);
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
    *arg++ = arg_text(f->pg->keeper.worker);
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

/* --- one pipeline --- */

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
    ok = conn_send(conn, shared_release_sql, leave.args, LEAVE_ARGS);
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

/* Returns whether the log can be made and written in a pipeline with others. */
static bool may_begin_together(struct shared_log *log) {
  shared_scan_batch(log);
  log->term = base_term(log->pg);
  return shared_open_count(log->pg, log->id) == 1 && strcmp(shared_rest(log), "ended") != 0;
}

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

/* --- on the loop --- */

static void list_move_all(struct list *to, struct list *from) {
  while (from->first != NULL) {
    struct list_node *node = from->first;
    list_remove(from, node);
    list_push_back(to, node);
  }
}

static void commit_begin(struct pg_base *pg, uv_loop_t *loop);

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

void shared_leave(struct pg_base *pg, struct base_leave *owned_leave) {
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->leaving, &owned_leave->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  commit_begin(pg, pg->loop);
}
