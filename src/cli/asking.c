/* Runs questions as sessions on one loop. */
#include "cli/asking.h"

#include "base/log.h"
#include "host/paths.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void asking_on_record(void *ctx, const struct record *record, struct str line) {
  struct ask_job *job = ctx;
  long call = (long)record_number(record, MEMBER_CALL);
  json_t *json = record_json(record);
  (void)line;
  ask_trace_feed(&job->told, json);
  json_decref(json);
  if (job->asking->delta && record->type == RECORD_CALL_START &&
      ask_trace_generates(&job->told, call))
    job->asking->delta(job->asking->ctx, job, (struct str){NULL, 0});
}

static void asking_on_trouble(void *ctx, const char *message) {
  const struct ask_job *job = ctx;
  fprintf(stderr, "segue %s: ", job->asking->command);
  cli_put_safe(stderr, message);
  fputc('\n', stderr);
}

static void asking_on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct ask_job *job = ctx;
  (void)turn;
  if (!thinking && job->asking->delta && ask_trace_generates(&job->told, call))
    job->asking->delta(job->asking->ctx, job, text);
}

json_t *ask_result(const struct ask_job *job) {
  assert(job->finished);
  return ask_trace_result(&job->told, session_broken(job->session));
}

/* --- the loop --- */

static void asking_job_free(struct ask_job *job) {
  session_free(job->session);
  ask_trace_deinit(&job->told);
  free(job);
}

/* Collects finished jobs, asks for more, or ends. */
static void on_turn(void *ctx) {
  struct asking *a = ctx;
  LIST_EACH(struct ask_job, job, in_jobs, &a->jobs) {
    if (!job->finished)
      continue;
    list_remove(&a->jobs, &job->in_jobs);
    a->answered(a->ctx, job);
    asking_job_free(job);
  }
  if (!a->closing && !a->stopped)
    a->room(a->ctx);
  if (a->jobs.count == 0 && (a->closing || a->stopped))
    session_pool_close(&a->several);
}

static void asking_on_finished(void *ctx, struct session *s) {
  struct ask_job *job = ctx;
  (void)s;
  job->finished = true;
  session_pool_wake(&job->asking->several);
}

static void asking_on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct asking *a = ctx;
  a->stopped = true;
  LIST_EACH(struct ask_job, job, in_jobs, &a->jobs) {
    if (!job->finished)
      session_pool_end(job->session, reason, message, cancel);
  }
}

bool asking_init(struct asking *a, const char *command, const struct setup *setup, const char *logs,
                 size_t jobs, struct err *err) {
  assert(setup != NULL);
  assert(jobs > 0 && jobs <= ASKING_JOBS_MAX);
  char dir[PATHS_BYTES];
  *a = (struct asking){.command = command,
                       .setup = setup,
                       .max = jobs,
                       .watcher = {.record = asking_on_record,
                                   .trouble = asking_on_trouble,
                                   .delta = asking_on_delta,
                                   .finished = asking_on_finished}};
  if ((logs && !paths_logs(logs, dir, err)) ||
      !session_pool_init(&a->several, logs ? dir : NULL, setup->registry, jobs == 1, err))
    return false;
  a->several.ctx = a;
  a->several.turn = on_turn;
  a->several.stop = asking_on_stop;
  return true;
}

int asking_run(struct asking *a) {
  assert(a->room != NULL);
  assert(a->answered != NULL);
  return session_pool_run(&a->several);
}

void asking_deinit(struct asking *a) {
  session_pool_deinit(&a->several);
}

size_t asking_room(const struct asking *a) {
  assert(a->jobs.count <= a->max);
  return a->closing || a->stopped ? 0 : a->max - a->jobs.count;
}

bool asking_start(struct asking *a, struct workflow *workflow, struct str prompt, size_t index,
                  struct err *err) {
  assert(workflow != NULL);
  assert(asking_room(a) > 0);
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
    asking_job_free(job);
    return false;
  }
  list_push_front(&a->jobs, &job->in_jobs);
  return true;
}

void asking_close(struct asking *a) {
  a->closing = true;
}

bool asking_input(struct asking *a, int fd) {
  return session_pool_input(&a->several, fd);
}

void asking_complain(const char *command, const json_t *result) {
  assert(json_is_object(result));
  const char *message = json_string_value(json_object_get(result, "message"));
  const json_t *error = json_object_get(result, "error"), *raw = json_object_get(result, "raw");
  const json_t *errors = json_object_get(result, "errors"), *item;
  struct buf text = {0}, safe = {0};
  size_t i;
  if (error != NULL)
    buf_printf(&text, "segue %s: %s: %s\n", command,
               json_string_value(json_object_get(error, "class")),
               json_string_value(json_object_get(error, "message")));
  else
    buf_printf(&text, "segue %s: %s\n", command, message ? message : "no value");
  if (json_array_size(errors) > 0)
    buf_puts(&text, "errors of the last answer:\n");
  json_array_foreach(errors, i, item) {
    const char *path = json_string_value(json_object_get(item, "path"));
    buf_printf(&text, "  %s: %s\n", path ? path : "$",
               json_string_value(json_object_get(item, "message")));
  }
  if (json_is_string(raw) && json_string_length(raw) > 0) {
    buf_puts(&text, "the last answer:\n");
    buf_append(&text, json_string_value(raw), json_string_length(raw));
    buf_putc(&text, '\n');
  }
  buf_safe(&safe, buf_view(&text), true);
  fputs(buf_c(&safe), stderr);
  buf_deinit(&text);
  buf_deinit(&safe);
}
