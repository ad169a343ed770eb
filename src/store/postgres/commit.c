/* Appends what many sessions gathered in one go: what came while a commit was under way is the next
 * pipeline, with one sync.
 *
 * DESIGN. The lists are the loop's; while a commit is under way its work has those that fly, alone.
 * No answer counts before the pipeline's sync: where a statement fails, those before it are undone,
 * and each goes alone. What is larger than a pipeline may be goes on a connection of its own, so
 * that it holds up nobody. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/loop.h"

#include <assert.h>
#include <stdlib.h>

struct commit_flight { /* one pipeline */
  struct shared_log *logs[LIMIT_STORE_PIPELINE_COUNT];
  struct append_call *calls;
  int count;
};

static struct shared_log *log_of_node(struct list_node *node) {
  return (struct shared_log *)((char *)node - offsetof(struct shared_log, in_base));
}

static void flight_answer(void *ctx, int index, PGresult *answer) {
  struct commit_flight *f = ctx;
  if (index < f->count && conn_rows(answer) == 1)
    f->logs[index]->result = append_call_over(f->logs[index], answer, &f->logs[index]->err);
}

/* False: nothing of it is there, or nobody knows. */
static bool fly_together(struct pg_base *pg, struct commit_flight *f) {
  enum conn_failure failure = CONN_FINE;
  struct err err;
  size_t bytes = 0;
  struct conn *conn = base_take(pg, &failure, &err);
  bool ok = conn != NULL && conn_begin_pipeline(conn);
  for (int i = 0; ok && i < f->count; i++) {
    append_call_init(&f->calls[i], f->logs[i]);
    bytes += f->calls[i].lines.n;
    f->logs[i]->result = STORE_IO;
    ok = conn_send(conn, shared_append_sql, f->calls[i].args, SHARED_ARGS);
  }
  FAULT_POINT("append_before");
  ok = ok && conn_sync(conn, base_limit_ms(bytes), flight_answer, f, &failure, &err);
  FAULT_POINT("append_after");
  for (int i = 0; i < f->count; i++)
    append_call_deinit(&f->calls[i]);
  if (ok)
    base_give(pg, conn);
  else
    conn_close(conn); /* half a pipeline may be in it */
  return ok;
}

static void fly_each(struct commit_flight *f) {
  for (int i = 0; i < f->count; i++)
    f->logs[i]->result = shared_append_alone(f->logs[i], LIMIT_STORE_TRY_MS, &f->logs[i]->err);
}

static void fly(struct pg_base *pg, struct commit_flight *f) {
  bool together = f->count > 1;
#ifdef SEGUE_FAULTS
  together = together && getenv("SEGUE_FAULT") == NULL; /* those are counted one by one */
#endif
  for (int i = 0; together && i < f->count; i++)
    together = base_trusts(pg, f->logs[i]->term, &f->logs[i]->err);
  if (!together || !fly_together(pg, f))
    fly_each(f);
  for (int i = 0; i < f->count; i++)
    f->logs[i]->base.syncs += together;
}

static void commit_work(uv_work_t *work) {
  struct pg_base *pg = work->data;
  struct commit_flight f = {.count = 0};
  size_t bytes = 0;
  f.calls = xcalloc(LIMIT_STORE_PIPELINE_COUNT, sizeof *f.calls);
  for (struct list_node *node = pg->flying.first; node; node = node->next) {
    struct shared_log *log = log_of_node(node);
    if (f.count == (int)LIMIT_STORE_PIPELINE_COUNT ||
        (f.count > 0 && bytes + log->base.batch.n > LIMIT_STORE_PIPELINE_BYTES)) {
      fly(pg, &f);
      f.count = 0;
      bytes = 0;
    }
    f.logs[f.count++] = log;
    bytes += log->base.batch.n;
  }
  if (f.count > 0)
    fly(pg, &f);
  free(f.calls);
}

static void commit_begin(struct pg_base *pg, uv_loop_t *loop);

static void commit_over(uv_work_t *work, int status) {
  struct pg_base *pg = work->data;
  uv_loop_t *loop = work->loop;
  struct list flown = {0};
  assert(status == 0);
  while (pg->flying.first != NULL) {
    struct list_node *node = pg->flying.first;
    list_remove(&pg->flying, node);
    list_push_back(&flown, node);
  }
  pg->commits = false;
  while (flown.first != NULL) { /* an append can be made while these are told */
    struct shared_log *log = log_of_node(flown.first);
    list_remove(&flown, &log->in_base);
    struct err err = log->err;
    store_append_over(&log->base, log->result, &err);
  }
  commit_begin(pg, loop);
}

static void commit_begin(struct pg_base *pg, uv_loop_t *loop) {
  if (pg->commits || pg->waiting.count == 0)
    return;
  pg->commits = true;
  while (pg->waiting.first != NULL) {
    struct list_node *node = pg->waiting.first;
    list_remove(&pg->waiting, node);
    list_push_back(&pg->flying, node);
  }
  pg->commit.data = pg;
  loop_work(loop, &pg->commit, commit_work, commit_over);
}

static void large_work(uv_work_t *work) {
  struct shared_log *log = work->data;
  log->result = shared_append_alone(log, LIMIT_STORE_TRY_MS, &log->err);
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
  if (base->batch.n > LIMIT_STORE_PIPELINE_BYTES) {
    log->work.data = log;
    loop_work(loop, &log->work, large_work, large_over);
    return;
  }
  list_push_back(&log->pg->waiting, &log->in_base);
  commit_begin(log->pg, loop);
}
