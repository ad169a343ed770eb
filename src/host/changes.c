/* Takes a look at a working tree through its steps: in the pool, and with git. */
#include "host/changes.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/checks.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "os/loop.h"
#include "git/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum changes_job { JOB_BEGIN, JOB_AGAIN, JOB_LISTED, JOB_BLOBS };

struct changes {
  uv_loop_t *loop;
  struct process_table *processes;
  char *cwd, *name;
  char *own_folders[4];
  struct tree *tree;
  enum changes_job job; /* the work in progress */
  enum tree_step step;  /* the result of the last one */
  bool busy;            /* between begin and on_ready, or end and on_done */
  bool ok;              /* the program ended with status 0 */
  struct buf output;    /* output of the program */
  void (*then)(void *ctx);
  void *ctx;
};

static void changes_on_work(void *ctx) {
  struct changes *c = ctx;
  switch (c->job) {
  case JOB_BEGIN:
    c->tree = tree_new(c->cwd, c->name, (const char *const *)c->own_folders);
    c->step = tree_begin(c->tree);
    break;
  case JOB_AGAIN:
    c->step = tree_again(c->tree);
    break;
  case JOB_LISTED:
    c->step = tree_listed(c->tree, buf_view(&c->output), c->ok);
    break;
  case JOB_BLOBS:
    c->step = tree_blobs(c->tree, buf_view(&c->output), c->ok);
    break;
  }
}

static void changes_after_work(void *ctx);

static void do_job(struct changes *c, enum changes_job job) {
  c->job = job;
  loop_do(c->loop, changes_on_work, changes_after_work, c);
}

static void changes_go_on(struct changes *c) {
  do_job(c, c->step == TREE_LIST ? JOB_LISTED : JOB_BLOBS);
}

static void on_git(void *ctx, struct process_result *result) {
  struct changes *c = ctx;
  static const char unread[] = "could not open directory"; /* git goes on without it */
  const char *at = memmem(buf_c(&result->err), result->err.n, unread, strlen(unread));
  if (at != NULL && c->tree->problem.code == ERR_NONE)
    err_set(&c->tree->problem, ERR_INVALID, "git %.*s", (int)strcspn(at, "\n"), at);
  c->ok = result->why == PROCESS_END_EXITED && result->exit_code == 0 && !result->out.cut;
  buf_deinit(&c->output);
  c->output = result->out;
  result->out = (struct buf){0};
  changes_go_on(c);
}

/* Runs git. A program that could not be started counts as one that failed. */
static void run_git(struct changes *c) {
  static const char *const copied[] = {"XDG_CONFIG_HOME", NULL};
  const struct tree *t = tree_asks(c->tree);
  struct arena arena = {0};
  struct err err;
  const char *assignments[16];
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(t->env); i++)
    assignments[n++] = t->env[i];
  for (size_t i = 0; tree_environment[i] != NULL; i++)
    assignments[n++] = tree_environment[i];
  assert(n < ARRAY_LEN(assignments));
  assignments[n] = NULL;
  const char *const *envp = process_env_build(&arena, NULL, copied, assignments, &err);
  const struct process_spec spec = {.argv = t->argv,
                                    .cwd = t->top,
                                    .envp = envp,
                                    .stdin_bytes = t->ask.p,
                                    .stdin_n = c->step == TREE_BLOBS ? t->ask.n : 0,
                                    .stdout_max = LIMIT_TREE_LIST_BYTES,
                                    .wall_ms = LIMIT_TREE_GIT_MS};
  bool started = envp != NULL && process_start(c->processes, &spec, NULL, on_git, c, &err) != NULL;
  arena_deinit(&arena);
  if (started)
    return;
  c->ok = false;
  buf_clear(&c->output);
  changes_go_on(c);
}

static void changes_after_work(void *ctx) {
  struct changes *c = ctx;
  if (c->step == TREE_LIST || c->step == TREE_BLOBS) {
    run_git(c);
    return;
  }
  buf_deinit(&c->output);
  c->busy = false;
  c->then(c->ctx);
}

struct changes *changes_begin(const struct changes_spec *spec, void (*on_ready)(void *ctx),
                              void *ctx) {
  struct changes *c = xcalloc(1, sizeof *c);
  c->loop = spec->loop;
  c->processes = spec->processes;
  c->cwd = xstrdup(spec->cwd);
  c->name = xstrdup(spec->name);
  for (size_t i = 0; spec->own_folders[i] != NULL && i + 1 < ARRAY_LEN(c->own_folders); i++)
    c->own_folders[i] = xstrdup(spec->own_folders[i]);
  c->then = on_ready;
  c->ctx = ctx;
  c->busy = true;
  do_job(c, JOB_BEGIN);
  return c;
}

const char *changes_problem(const struct changes *c) {
  return c->step == TREE_FAILED ? c->tree->problem.text : NULL;
}

void changes_unknown(struct call_result *result, const char *problem) {
  size_t n = strlen(result->note);
  print_into(result->note + n, sizeof result->note - n,
             "%sit is not known which files changed: %.100s", n > 0 ? "; " : "", problem);
  print_into(result->files_unknown, sizeof result->files_unknown, "%s", problem);
}

void changes_end(struct changes *c, void (*on_done)(void *ctx)) {
  assert(!c->busy && changes_problem(c) == NULL);
  c->then = on_done;
  c->busy = true;
  do_job(c, JOB_AGAIN);
}

/* If there are very many, those that protect_needs come first. */
void changes_take(struct changes *c, const struct workflow *wf, struct call_result *result) {
  assert(!c->busy);
  const json_t *all = c->tree->changed, *file;
  size_t i, n = json_array_size(all);
  if (c->tree->problem.code != ERR_NONE)
    changes_unknown(result, c->tree->problem.text);
  if (c->step != TREE_DONE || all == NULL)
    return;
  json_decref(result->files);
  result->files = json_array();
  for (int pass = 0; pass < 2; pass++)
    json_array_foreach((json_t *)all, i, file) {
      bool first = n <= LIMIT_TREE_TOLD || protect_needs(wf, json_view(json_at(file, "path")));
      if (first == (pass == 0) && json_array_size(result->files) < LIMIT_TREE_TOLD)
        json_array_append(result->files, (json_t *)file);
    }
  result->files_more = n - json_array_size(result->files);
}

void changes_free(struct changes *c) {
  if (c == NULL)
    return;
  assert(!c->busy);
  tree_free(c->tree);
  for (size_t i = 0; i < ARRAY_LEN(c->own_folders); i++)
    free(c->own_folders[i]);
  buf_deinit(&c->output);
  free(c->name);
  free(c->cwd);
  free(c);
}
