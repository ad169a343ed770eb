#include "cli/asking.h"

#include "base/log.h"
#include "cli/json_io.h"
#include "host/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static json_int_t number(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

/* --- what records tell --- */

static json_t *call_entry(struct ask_job *job, json_int_t call) {
  char key[32];
  (void)snprintf(key, sizeof key, "%lld", (long long)call);
  return json_object_get(job->calls, key);
}

static void on_call_start(struct ask_job *job, const json_t *record) {
  const char *purpose = word(record, "purpose");
  char key[32];
  if (strcmp(purpose, "execute") != 0 && strcmp(purpose, "reask") != 0)
    return;
  (void)snprintf(key, sizeof key, "%lld", (long long)number(record, "call"));
  if (json_object_get(job->calls, key) == NULL)
    json_object_set_new(job->calls, key, json_object());
  if (job->asking->delta)
    job->asking->delta(job->asking->ctx, job, (struct str){NULL, 0});
}

static void on_call_end(struct ask_job *job, const json_t *record) {
  json_t *entry = call_entry(job, number(record, "call"));
  const json_t *usage = json_object_get(record, "usage");
  job->tokens += number(usage, "input") + number(usage, "output");
  job->duration_ms += number(record, "duration_ms");
  if (entry == NULL)
    return;
  json_object_set(entry, "text", json_object_get(record, "text"));
  json_object_set(entry, "error", json_object_get(record, "error"));
}

static json_t *body_of(const json_t *record) {
  static const char *const common[] = {"v", "seq", "ts", "type", "turn", "hash"};
  json_t *body = json_copy((json_t *)record);
  for (size_t i = 0; i < ARRAY_LEN(common); i++)
    json_object_del(body, common[i]);
  return body;
}

static void on_record(void *ctx, const json_t *record, struct str line) {
  struct ask_job *job = ctx;
  const char *type = word(record, "type");
  (void)line;
  if (strcmp(type, "call_start") == 0) {
    on_call_start(job, record);
  } else if (strcmp(type, "call_end") == 0) {
    on_call_end(job, record);
  } else if (strcmp(type, "check") == 0) {
    json_array_append_new(job->checks, body_of(record));
  } else if (strcmp(type, "structured") == 0) {
    json_decref(job->structured);
    job->structured = json_incref((json_t *)record);
  } else if (strcmp(type, "session_stop") == 0 || strcmp(type, "session_end") == 0) {
    json_decref(job->stop);
    job->stop = json_incref((json_t *)record);
  }
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
  if (!thinking && job->asking->delta && call_entry(job, call) != NULL)
    job->asking->delta(job->asking->ctx, job, text);
}

/* --- the result --- */

/* What the last answer said, or the one that gave the value. */
static const json_t *raw_of(const struct ask_job *job) {
  const json_t *raw = NULL;
  const char *key;
  json_t *entry;
  char wanted[32];
  (void)snprintf(wanted, sizeof wanted, "%lld", (long long)number(job->structured, "call"));
  json_object_foreach(job->calls, key, entry) {
    const json_t *text = json_object_get(entry, "text");
    if (text != NULL && (raw == NULL || strcmp(key, wanted) != 0))
      raw = text;
    if (strcmp(key, wanted) == 0 && text != NULL)
      return text;
  }
  return raw;
}

static const char *outcome_of(const struct ask_job *job) {
  if (job->structured != NULL)
    return word(job->structured, "outcome");
  return session_broken(job->session) != NULL || word(job->stop, "class")[0] ? "error" : "stopped";
}

/* Why there is neither a value nor a verdict on it: the backend, a signal, the disk. */
static void add_stop(json_t *result, const struct ask_job *job) {
  const struct err *broken = session_broken(job->session);
  json_t *error = json_object();
  const char *reason = word(job->stop, "reason");
  json_object_set_new(error, "class",
                      json_string(broken                        ? "log"
                                  : word(job->stop, "class")[0] ? word(job->stop, "class")
                                  : reason[0]                   ? reason
                                                                : "stopped"));
  json_object_set_new(error, "message",
                      json_io_string(broken ? broken->text : word(job->stop, "message")));
  json_object_set_new(result, "error", error);
}

static const json_t *text_of(const struct ask_job *job, const json_t *check) {
  char key[32];
  (void)snprintf(key, sizeof key, "%lld", (long long)number(check, "call"));
  return json_object_get(json_object_get(job->calls, key), "text");
}

/* Each answer with what it said and what came of it. */
static json_t *checks_of(const struct ask_job *job) {
  json_t *list = json_array(), *check;
  size_t i;
  json_array_foreach(job->checks, i, check) {
    json_t *item = json_copy(check);
    const json_t *text = text_of(job, check);
    json_object_set_new(item, "raw", text ? json_incref((json_t *)text) : json_null());
    json_array_append_new(list, item);
  }
  return list;
}

json_t *ask_result(const struct ask_job *job) {
  static const char *const copied[] = {"first_pass", "failures", "reason", "message"};
  const json_t *value = json_object_get(job->structured, "value"), *raw = raw_of(job);
  const json_t *last = json_array_get(job->checks, json_array_size(job->checks) - 1);
  bool unchecked = job->structured == NULL && raw != NULL && text_of(job, last) != raw;
  const json_t *errors = unchecked ? NULL : json_object_get(last, "errors");
  json_t *result = json_object();
  json_object_set_new(result, "value", value ? json_incref((json_t *)value) : json_null());
  json_object_set_new(result, "raw", raw ? json_incref((json_t *)raw) : json_null());
  json_object_set_new(result, "attempts", json_integer((json_int_t)json_array_size(job->checks)));
  json_object_set_new(result, "outcome", json_string(outcome_of(job)));
  for (size_t i = 0; i < ARRAY_LEN(copied); i++)
    if (json_object_get(job->structured, copied[i]) != NULL)
      json_object_set(result, copied[i], json_object_get(job->structured, copied[i]));
  if (job->structured == NULL)
    add_stop(result, job);
  json_object_set_new(result, "errors", errors ? json_incref((json_t *)errors) : json_array());
  json_object_set_new(result, "checks", checks_of(job));
  if (job->tokens > 0)
    json_object_set_new(result, "tokens", json_integer(job->tokens));
  json_object_set_new(result, "duration_ms", json_integer(job->duration_ms));
  return result;
}

/* --- the loop --- */

static void job_free(struct ask_job *job) {
  session_free(job->session);
  json_decref(job->calls);
  json_decref(job->checks);
  json_decref(job->structured);
  json_decref(job->stop);
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
  job->calls = json_object();
  job->checks = json_array();
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
