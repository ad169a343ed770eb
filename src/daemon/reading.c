/* Answers requests from logs, in the pool. */
#include "daemon/reading.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/loop.h"
#include "os/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct reading_job {
  struct list_node in_readings;
  struct readings *all;
  struct server_request *request; /* NULL: its client has left */
  reading_work work;
  void (*drop)(void *what);
  void *what;
  struct shelf_item *item; /* or NULL */
  struct reading_answer answer;
  bool runs;
  uv_work_t in_pool;
};

static void readings_start(struct readings *rs);

static void reading_free(struct reading_job *job) {
  list_remove(&job->all->jobs, &job->in_readings);
  buf_deinit(&job->answer.body);
  if (job->drop != NULL)
    job->drop(job->what);
  if (job->item != NULL)
    shelf_let_go(job->item);
  free(job);
}

static void reading_run(uv_work_t *work) {
  struct reading_job *job = work->data;
  size_t before = job->item != NULL ? track_bytes(job->item->track) : 0;
  job->work(job->what, &job->answer);
  if (job->item != NULL && track_bytes(job->item->track) > before + LIMIT_SHELF_TRIM_BYTES)
    memory_give_back(0); /* much was read for little that stays */
}

static void reading_hand_on(struct reading_job *job) {
  struct server_request *r = job->request;
  job->request = NULL;
  job->drop = NULL;
  job->answer.hand_on(job->what, r);
}

static void reading_over(uv_work_t *work, int status) {
  struct reading_job *job = work->data;
  struct readings *rs = job->all;
  struct reading_answer *a = &job->answer;
  assert(status == 0); /* work is never cancelled */
  rs->running--;
  if (job->item != NULL)
    job->item->busy = false;
  if (job->request != NULL && a->err.code != ERR_NONE)
    server_problem(job->request, a->status, NULL, "%s", a->err.text);
  else if (job->request != NULL && a->hand_on != NULL)
    reading_hand_on(job);
  else if (job->request != NULL)
    server_reply(job->request, a->status, a->type, buf_view(&a->body));
  reading_free(job);
  readings_start(rs);
}

static void readings_start(struct readings *rs) {
  LIST_EACH(struct reading_job, job, in_readings, &rs->jobs) {
    if (rs->running == LIMIT_API_READING_COUNT)
      return;
    if (job->runs || (job->item != NULL && job->item->busy))
      continue;
    job->runs = true;
    if (job->item != NULL)
      job->item->busy = true;
    rs->running++;
    job->in_pool.data = job;
    loop_work(rs->loop, &job->in_pool, reading_run, reading_over);
  }
}

/* The client has left, or the daemon is ending. */
static void reading_on_gone(void *ctx) {
  struct reading_job *job = ctx;
  job->request = NULL;
  if (!job->runs)
    reading_free(job);
}

void reading_take(struct readings *rs, struct server_request *r, reading_work work,
                  void (*drop)(void *what), void *what) {
  reading_take_of(rs, r, NULL, work, drop, what);
}

void reading_take_of(struct readings *rs, struct server_request *r, struct shelf_item *item,
                     reading_work work, void (*drop)(void *what), void *what) {
  if (rs->jobs.count >= LIMIT_API_READING_WAIT_COUNT) {
    drop(what);
    if (item != NULL)
      shelf_let_go(item);
    server_set_header(r, "Retry-After", "1");
    server_problem(r, 503, NULL, "too many requests that read logs: try again");
    return;
  }
  struct reading_job *job = xcalloc(1, sizeof *job);
  job->all = rs;
  job->request = r;
  job->work = work;
  job->drop = drop;
  job->what = what;
  job->item = item;
  job->answer.status = 200;
  job->answer.type = "application/json";
  list_push_back(&rs->jobs, &job->in_readings);
  server_keep(r, reading_on_gone, job);
  readings_start(rs);
}

struct word_job {
  const struct store *store;
  char word[SERVER_PART_BYTES];
  char id[STORE_ID_BYTES];
};

static void word_again(void *what, struct server_request *r) {
  struct word_job *f = what;
  server_handle_again(r, f->id);
  free(f);
}

static void word_work(void *what, struct reading_answer *answer) {
  struct word_job *f = what;
  answer->hand_on = word_again;
  if (!snapshot_find(f->store, f->word, f->id, &answer->err))
    answer->status = answer->err.code == ERR_IO ? 503 : 404;
}

void reading_find(struct readings *rs, struct server_request *r, const struct store *store) {
  struct word_job *f = xcalloc(1, sizeof *f);
  f->store = store;
  memcpy(f->word, server_part(r), strlen(server_part(r)) + 1);
  reading_take(rs, r, word_work, free, f);
}

size_t readings_busy(const struct readings *rs) {
  return rs->jobs.count + rs->more;
}

void readings_begin_more(struct readings *rs) {
  rs->more++;
}

void readings_end_more(struct readings *rs) {
  assert(rs->more > 0);
  rs->more--;
}

void readings_init(struct readings *rs, uv_loop_t *loop) {
  *rs = (struct readings){.loop = loop};
}
