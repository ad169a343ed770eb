/* Answers requests from logs, in the pool. */
#include "daemon/read_job.h"

#include "base/limits.h"
#include "base/log.h"
#include "daemon/entry.h"
#include "os/loop.h"
#include "os/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the cache of tracks ---
 *
 * The tracks (view/record_index.h) of sessions being looked at, shared by all
 * viewers.
 *
 *   view_cache = view_cache_new(loop)
 *   item = view_cache_find(view_cache, &ref)     made if there is none; held until
 *   view_cache_let_go(item)
 *   view_cache_free(view_cache)                  nothing is held; the loop runs once more
 *
 * From the loop only; a work function of the pool uses item->track while `busy` is its own
 * (read_job.h). A track is dropped when nobody asked for it for LIMIT_SHELF_IDLE_MS; when there are
 * too many, or they are too big together, the least recently used one is dropped. */

static void view_cache_drop(struct view_cache_item *item) {
  assert(item->held == 0);
  list_remove(&item->view_cache->items, &item->in_shelf);
  record_index_free(item->track);
  free(item);
}

/* Drops the least recently used items first, and never one that is held. */
static void view_cache_trim(struct view_cache *s, uint64_t now) {
  size_t bytes = 0, count = 0;
  LIST_EACH(struct view_cache_item, item, in_shelf, &s->items) {
    bytes += item->bytes;
    count++;
    bool old = now - item->used_ms >= LIMIT_SHELF_IDLE_MS;
    bool over = count > LIMIT_SHELF_COUNT || (count > 1 && bytes > LIMIT_SHELF_BYTES);
    if (item->held > 0 || !(old || over))
      continue;
    bytes -= item->bytes;
    count--;
    view_cache_drop(item);
  }
  if (s->items.count == 0)
    uv_timer_stop(&s->idle);
}

static void view_cache_on_idle(uv_timer_t *timer) {
  view_cache_trim(timer->data, uv_now(timer->loop));
}

struct view_cache_item *view_cache_find(struct view_cache *s, const struct store_ref *ref) {
  struct view_cache_item *found = NULL;
  LIST_EACH(struct view_cache_item, item, in_shelf, &s->items)
    if (strcmp(item->track->ref.name, ref->name) == 0)
      found = item;
  if (found != NULL) {
    list_remove(&s->items, &found->in_shelf);
  } else {
    found = xcalloc(1, sizeof *found);
    found->view_cache = s;
    found->track = record_index_new(ref);
  }
  list_push_front(&s->items, &found->in_shelf);
  found->held++;
  if (!uv_is_active((uv_handle_t *)&s->idle))
    uv_timer_start(&s->idle, view_cache_on_idle, LIMIT_SHELF_IDLE_MS / 4, LIMIT_SHELF_IDLE_MS / 4);
  return found;
}

static void view_cache_let_go(struct view_cache_item *item) {
  uint64_t now = uv_now(item->view_cache->idle.loop);
  assert(item->held > 0);
  item->held--;
  item->used_ms = now;
  if (item->held == 0)
    item->bytes = record_index_bytes(item->track);
  view_cache_trim(item->view_cache, now);
}

struct view_cache *view_cache_new(uv_loop_t *loop) {
  struct view_cache *s = xcalloc(1, sizeof *s);
  uv_timer_init(loop, &s->idle);
  s->idle.data = s;
  return s;
}

void view_cache_free(struct view_cache *s) {
  if (s == NULL)
    return;
  LIST_EACH(struct view_cache_item, item, in_shelf, &s->items)
    view_cache_drop(item);
  uv_close((uv_handle_t *)&s->idle, loop_free_data);
}

/* --- read_job --- */

struct read_job {
  struct list_node in_readings;
  struct read_jobs *all;
  struct server_request *request; /* NULL: its client has left */
  read_job_work work;
  void (*drop)(void *what);
  void *what;
  struct view_cache_item *item; /* or NULL */
  struct read_job_answer answer;
  bool runs;
};

static void read_jobs_start(struct read_jobs *rs);

static void read_job_free(struct read_job *job) {
  list_remove(&job->all->jobs, &job->in_readings);
  buf_deinit(&job->answer.body);
  if (job->drop != NULL)
    job->drop(job->what);
  if (job->item != NULL)
    view_cache_let_go(job->item);
  free(job);
}

static void read_job_run(void *ctx) {
  struct read_job *job = ctx;
  size_t before = job->item != NULL ? record_index_bytes(job->item->track) : 0;
  job->work(job->what, &job->answer);
  if (job->item != NULL && record_index_bytes(job->item->track) > before + LIMIT_SHELF_TRIM_BYTES)
    memory_give_back(0); /* much was read for little that stays */
}

static void read_job_over(void *ctx) {
  struct read_job *job = ctx;
  struct read_jobs *rs = job->all;
  struct read_job_answer *a = &job->answer;
  rs->running--;
  if (job->item != NULL)
    job->item->busy = false;
  if (job->request != NULL && a->err.code != ERR_NONE)
    server_problem(job->request, a->status, NULL, "%s", a->err.text);
  else if (job->request != NULL && a->hand_on != NULL) {
    struct server_request *r = job->request;
    job->request = NULL;
    job->drop = NULL;
    job->answer.hand_on(job->what, r);
  } else if (job->request != NULL)
    server_reply(job->request, a->status, a->type, buf_view(&a->body));
  read_job_free(job);
  read_jobs_start(rs);
}

static void read_jobs_start(struct read_jobs *rs) {
  LIST_EACH(struct read_job, job, in_readings, &rs->jobs) {
    if (rs->running == LIMIT_API_READING_COUNT)
      return;
    if (job->runs || (job->item != NULL && job->item->busy))
      continue;
    job->runs = true;
    if (job->item != NULL)
      job->item->busy = true;
    rs->running++;
    loop_do(rs->loop, read_job_run, read_job_over, job);
  }
}

/* The client has left, or the daemon is ending. */
static void read_job_on_gone(void *ctx) {
  struct read_job *job = ctx;
  job->request = NULL;
  if (!job->runs)
    read_job_free(job);
}

void read_job_add(struct read_jobs *rs, struct server_request *r, struct view_cache_item *item,
                  read_job_work work, void (*drop)(void *what), void *what) {
  struct read_job *job = xcalloc(1, sizeof *job);
  job->all = rs;
  job->request = r;
  job->work = work;
  job->drop = drop;
  job->what = what;
  job->item = item;
  job->answer.status = 200;
  job->answer.type = "application/json";
  list_push_back(&rs->jobs, &job->in_readings);
  server_keep(r, read_job_on_gone, job);
  read_jobs_start(rs);
}

void read_job_take_of(struct read_jobs *rs, struct server_request *r, struct view_cache_item *item,
                      read_job_work work, void (*drop)(void *what), void *what) {
  if (rs->jobs.count < LIMIT_API_READING_WAIT_COUNT) {
    read_job_add(rs, r, item, work, drop, what);
    return;
  }
  drop(what);
  if (item != NULL)
    view_cache_let_go(item);
  server_set_header(r, "Retry-After", "1");
  server_problem(r, 503, NULL, "too many requests that read logs: try again");
}

void read_job_take(struct read_jobs *rs, struct server_request *r, read_job_work work,
                   void (*drop)(void *what), void *what) {
  read_job_take_of(rs, r, NULL, work, drop, what);
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

static void word_work(void *what, struct read_job_answer *answer) {
  struct word_job *f = what;
  answer->hand_on = word_again;
  if (!status_snapshot_find(f->store, f->word, f->id, &answer->err))
    answer->status = answer->err.code == ERR_IO ? 503 : 404;
}

void read_job_find(struct read_jobs *rs, struct server_request *r, const struct store *store) {
  struct word_job *f = xcalloc(1, sizeof *f);
  f->store = store;
  memcpy(f->word, server_part(r), strlen(server_part(r)) + 1);
  read_job_take(rs, r, word_work, free, f);
}

size_t read_jobs_busy(const struct read_jobs *rs) {
  return rs->jobs.count + rs->more;
}

void read_jobs_begin_more(struct read_jobs *rs) {
  rs->more++;
}

void read_jobs_end_more(struct read_jobs *rs) {
  assert(rs->more > 0);
  rs->more--;
}

void read_jobs_init(struct read_jobs *rs, uv_loop_t *loop) {
  *rs = (struct read_jobs){.loop = loop};
}
