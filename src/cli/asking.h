/* asking.h - runs the questions of `segue ask`, whose answers must fit a schema, several at once on
 * one loop. Each is a session of a workflow with one movement, with the same records and recovery
 * as any other.
 *
 *   asking_init(&a, "ask", &setup, logs, jobs, &err)       then set ctx and the callbacks
 *   signals = asking_run(&a)      calls room() until asking_close(); start questions from there
 *   asking_deinit(&a)
 *
 * The first signal stops what runs (answered() comes for each, without a value) and starts nothing
 * more. */
#ifndef SEGUE_CLI_ASKING_H
#define SEGUE_CLI_ASKING_H

#include "audit/ask_trace.h"
#include "base/list.h"
#include "cli/setup.h"
#include "host/session_pool.h"

enum { ASKING_JOBS_DEFAULT = 4, ASKING_JOBS_MAX = 64 };

struct asking;

struct ask_job { /* a question, with what its records told */
  struct list_node in_jobs;
  struct asking *asking;
  size_t index; /* the caller's */
  struct session *session;
  bool finished;
  struct ask_trace told;
};

struct asking {
  const char *command; /* in messages */
  const struct setup *setup;
  struct session_pool several;
  struct watcher watcher;
  struct list jobs;
  size_t max;
  bool closing, stopped;
  void *ctx;
  /* More questions can be started: any number up to asking_room(), none now, or asking_close(). */
  void (*room)(void *ctx);
  void (*answered)(void *ctx, const struct ask_job *job);
  /* Is told that a generation begins (text.p NULL), or that a piece of it came. May be NULL. */
  void (*delta)(void *ctx, const struct ask_job *job, struct str text);
};

/* logs NULL: nothing is kept. */
bool asking_init(struct asking *a, const char *command, const struct setup *setup, const char *logs,
                 size_t jobs, struct err *err) MUST_CHECK;
int asking_run(struct asking *a);
void asking_deinit(struct asking *a);

size_t asking_room(const struct asking *a);
/* Returns false if it could not be started. */
bool asking_start(struct asking *a, struct workflow *workflow, struct str prompt, size_t index,
                  struct err *err) MUST_CHECK;
void asking_close(struct asking *a);
/* True if the next read of fd will not block, or if that cannot be known. Otherwise room() is
 * called once there is something to read. */
bool asking_input(struct asking *a, int fd);

/* Returns the result of ask_trace_result. */
json_t *ask_result(const struct ask_job *job);
/* Prints on stderr why there is no value, with the errors and the last answer. */
void asking_complain(const char *command, const json_t *result);

#endif
