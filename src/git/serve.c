/* Hands git's work from threads to the loop, and waits for it. */
#include "git/serve.h"

#include "base/list.h"
#include "base/log.h"
#include "git/git.h"
#include "os/loop.h"

#include <assert.h>
#include <stdlib.h>

struct served_job {
  struct list_node in_queue;
  json_t *sandbox;
  void (*run)(void *ctx), (*done)(void *ctx);
  void *ctx;
};

/* A served_question of the thread that runs; there is never more than one. */
struct served_question {
  struct git git;
  const struct git_ask *ask;
  struct git_answer *answer;
  struct err *err;
  bool ok;
  uv_sem_t over;
};

static struct {
  uv_loop_t *loop; /* NULL: nobody serves */
  struct process_table *processes;
  uv_thread_t thread; /* the loop's */
  uv_async_t *wake;
  struct list queue; /* the first one runs */
  struct served_question *question;
} server;

/* --- the loop's side --- */

static void on_served(void *ctx, struct git_answer *answer) {
  struct served_question *q = ctx;
  *q->answer = *answer;
  *answer = (struct git_answer){0};
  git_deinit(&q->git);
  uv_sem_post(&q->over);
}

static void serve_on_wake(uv_async_t *wake) {
  struct served_question *q = server.question;
  (void)wake;
  if (q == NULL)
    return;
  server.question = NULL;
  git_begin(&q->git, server.processes);
  LIST_EACH(struct served_job, job, in_queue, &server.queue) {
    q->git.sandbox = job->sandbox;
    break;
  }
  q->ok = git_ask(&q->git, q->ask, on_served, q, q->err);
  if (!q->ok) {
    git_deinit(&q->git);
    uv_sem_post(&q->over);
  }
}

static void run_first(void *ctx) {
  struct served_job *job = ctx;
  job->run(job->ctx);
}

static void start_first(void);

static void first_done(void *ctx) {
  struct served_job *job = ctx;
  list_remove(&server.queue, &job->in_queue);
  start_first();
  job->done(job->ctx);
  json_decref(job->sandbox);
  free(job);
}

static void start_first(void) {
  LIST_EACH(struct served_job, job, in_queue, &server.queue) {
    loop_do(server.loop, run_first, first_done, job);
    return;
  }
}

void git_serve_do(const json_t *sandbox, void (*run)(void *ctx), void (*done)(void *ctx),
                  void *ctx) {
  struct served_job *job = xcalloc(1, sizeof *job);
  assert(server.loop != NULL);
  *job = (struct served_job){
      .sandbox = json_incref((json_t *)sandbox), .run = run, .done = done, .ctx = ctx};
  list_push_back(&server.queue, &job->in_queue);
  if (server.queue.count == 1)
    start_first();
}

/* --- a thread's side --- */

static bool git_served(const struct git_ask *ask, struct git_answer *answer, struct err *err) {
  const uv_thread_t self = uv_thread_self();
  struct served_question q = {.ask = ask, .answer = answer, .err = err};
  *answer = (struct git_answer){0};
  if (uv_thread_equal(&self, &server.thread)) /* no thread could be made */
    return err_set(err, ERR_LIMIT, "there is no thread in which to wait for git");
  if (uv_sem_init(&q.over, 0) != 0)
    return err_set(err, ERR_LIMIT, "there is no semaphore to wait for git");
  server.question = &q;
  (void)uv_async_send(server.wake);
  uv_sem_wait(&q.over);
  uv_sem_destroy(&q.over);
  if (q.ok && !answer->ran) {
    q.ok = err_set(err, ERR_IO, "%.400s", buf_c(&answer->err));
    git_answer_deinit(answer);
    *answer = (struct git_answer){0};
  }
  return q.ok;
}

/* --- its life --- */

void git_serve_begin(uv_loop_t *loop, struct process_table *processes) {
  assert(server.loop == NULL);
  server.loop = loop;
  server.processes = processes;
  server.thread = uv_thread_self();
  server.wake = xcalloc(1, sizeof *server.wake);
  if (uv_async_init(loop, server.wake, serve_on_wake) != 0)
    BUG("the loop takes no async handle");
  uv_unref((uv_handle_t *)server.wake);
  git_now_instead = git_served;
}

void git_serve_end(void) {
  if (server.loop == NULL)
    return;
  assert(server.queue.count == 0);
  uv_close((uv_handle_t *)server.wake, loop_free);
  server.loop = NULL;
  git_now_instead = NULL;
}
