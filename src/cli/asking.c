#include "cli/asking.h"

#include "base/log.h"
#include "cli/json_io.h"
#include "host/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_record(void *ctx, const struct record *record, struct str line) {
  struct ask_job *job = ctx;
  long call = (long)record_number(record, MEMBER_CALL);
  json_t *json = record_json(record);
  (void)line;
  ask_told_feed(&job->told, json);
  json_decref(json);
  if (job->asking->delta && record->type == RECORD_CALL_START &&
      ask_told_generates(&job->told, call))
    job->asking->delta(job->asking->ctx, job, (struct str){NULL, 0});
}

static void on_trouble(void *ctx, const char *message) {
  const struct ask_job *job = ctx;
  fprintf(stderr, "segue %s: ", job->asking->command);
  cli_put_safe(stderr, message);
  fputc('\n', stderr);
}

static void on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct ask_job *job = ctx;
  (void)turn;
  if (!thinking && job->asking->delta && ask_told_generates(&job->told, call))
    job->asking->delta(job->asking->ctx, job, text);
}

json_t *ask_result(const struct ask_job *job) {
  return ask_told_result(&job->told, session_broken(job->session));
}

/* --- the loop --- */

static void job_free(struct ask_job *job) {
  session_free(job->session);
  ask_told_deinit(&job->told);
  free(job);
}

/* Takes what is over, asks for more, or ends. */
static void on_turn(void *ctx) {
  struct asking *a = ctx;
  for (struct ask_job **at = &a->jobs; *at != NULL;) {
    struct ask_job *job = *at;
    if (!job->finished) {
      at = &job->next;
      continue;
    }
    *at = job->next;
    a->active--;
    a->answered(a->ctx, job);
    job_free(job);
  }
  if (!a->closing && !a->stopped)
    a->room(a->ctx);
  if (a->active == 0 && (a->closing || a->stopped))
    several_close(&a->several);
}

static void on_finished(void *ctx, struct session *s) {
  struct ask_job *job = ctx;
  (void)s;
  job->finished = true;
  several_wake(&job->asking->several);
}

static void on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct asking *a = ctx;
  a->stopped = true;
  for (struct ask_job *job = a->jobs; job != NULL; job = job->next) {
    if (job->finished)
      continue;
    if (cancel)
      host_cancel(job->session, message);
    else
      host_stop(job->session, reason, message);
  }
}

bool asking_init(struct asking *a, const char *command, const struct setup *setup, const char *logs,
                 size_t jobs, struct err *err) {
  char dir[PATHS_BYTES];
  *a = (struct asking){
      .command = command,
      .setup = setup,
      .max = jobs,
      .watcher = {
          .record = on_record, .trouble = on_trouble, .delta = on_delta, .finished = on_finished}};
  if ((logs && !paths_logs(logs, dir, err)) ||
      !several_init(&a->several, logs ? dir : NULL, setup->registry, jobs == 1, err))
    return false;
  a->several.ctx = a;
  a->several.turn = on_turn;
  a->several.stop = on_stop;
  return true;
}

int asking_run(struct asking *a) {
  return several_run(&a->several);
}

void asking_deinit(struct asking *a) {
  several_deinit(&a->several);
}

size_t asking_room(const struct asking *a) {
  return a->closing || a->stopped ? 0 : a->max - a->active;
}

bool asking_start(struct asking *a, struct workflow *workflow, struct str prompt, size_t index,
                  struct err *err) {
  const struct setup *setup = a->setup;
  struct ask_job *job = xcalloc(1, sizeof *job);
  const struct session_params params = {
      .setup = {.cwd = setup->cwd,
                .pass_env = setup->user.env,
                .scenario = setup->has_scenario ? &setup->scenario : NULL},
      .workflow = workflow,
      .task = prompt,
      .config = setup->config};
  job->asking = a;
  job->index = index;
  job->session = host_start(&a->several.solo.host, &params, &a->watcher, job, err);
  if (job->session == NULL) {
    job_free(job);
    return false;
  }
  job->next = a->jobs;
  a->jobs = job;
  a->active++;
  return true;
}

void asking_close(struct asking *a) {
  a->closing = true;
}

bool asking_input(struct asking *a, int fd) {
  return several_input(&a->several, fd);
}
