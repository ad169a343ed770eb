/* process_driver - runs many programs through os/process, for process_tree_test.py and the bench of
 * spawning.
 *
 *   process_driver FAKE DIR COUNT AT_ONCE exit|cancel|wait
 * exit: each fake leaves its tree behind and exits; cancel: each is cancelled once its tree is
 * there; wait: prints "shim PID" for each tree and waits for its end, however it comes.
 * Each fake holds DIR/N locked. The moment its on_end comes, that lock must be free: else the tree
 * survived. The last line is a JSON summary.
 *
 *   process_driver PROGRAM MEGABYTES COUNT AT_ONCE plain
 * runs a program that leaves nothing behind, with so much memory of our own in use; the summary
 * tells how long it all took, and each start. */
#include "base/err.h"
#include "base/log.h"
#include "os/process_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>

enum { MAX_TIMED = 10000 };

struct driver {
  struct process_table *table;
  const char *fake, *dir, *action;
  bool plain;
  const char *const *envp;
  int left, next;
  int ended, survivors, unexpected;
  int why[PROCESS_END_SHIM_LOST + 1];
  uint64_t start_ns[MAX_TIMED];
};

struct job {
  struct driver *driver;
  struct process *process;
  char marker[512];
};

static void start(struct driver *d);

static void on_output(void *ctx, int fd, struct str bytes) {
  struct job *job = ctx;
  if (fd != 1 || !str_starts(bytes, "ready"))
    return;
  if (strcmp(job->driver->action, "cancel") == 0) {
    process_cancel(job->process);
  } else if (strcmp(job->driver->action, "wait") == 0) {
    printf("shim %d\n", (int)job->process->shim);
    (void)fflush(stdout);
  }
}

/* Counts a tree that outlived its call, and an answer that a fake does not give. */
static void check_tree(struct driver *d, const struct job *job,
                       const struct process_result *result) {
  int fd = open(job->marker, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || result->survivors)
    d->survivors++;
  (void)close(fd);
  d->unexpected += !str_starts(buf_view(&result->out), "ready");
}

static void on_end(void *ctx, struct process_result *result) {
  struct job *job = ctx;
  struct driver *d = job->driver;
  if (d->plain)
    d->unexpected += result->exit_code != 0;
  else
    check_tree(d, job, result);
  d->ended++;
  d->why[result->why]++;
  free(job);
  start(d);
}

static void start(struct driver *d) {
  struct err err;
  if (d->left == 0)
    return;
  d->left--;
  struct job *job = calloc(1, sizeof *job);
  job->driver = d;
  print_into(job->marker, sizeof job->marker, "%s/%d", d->dir, d->next);
  const char *argv[] = {d->fake, strcmp(d->action, "exit") == 0 ? "tree-exit" : "tree", job->marker,
                        NULL};
  struct process_spec spec = {.argv = argv, .envp = d->envp};
  if (d->plain)
    argv[1] = NULL;
  uint64_t begin = uv_hrtime();
  job->process = process_start(d->table, &spec, on_output, on_end, job, &err);
  if (d->next < MAX_TIMED)
    d->start_ns[d->next] = uv_hrtime() - begin;
  d->next++;
  if (job->process == NULL) {
    fprintf(stderr, "process_driver: %s\n", err.text);
    exit(1);
  }
}

static void say_times(const struct driver *d, uint64_t took_ns) {
  printf(", \"seconds\": %.6f, \"start_ms\": [", (double)took_ns / 1e9);
  for (int i = 0; i < d->next && i < MAX_TIMED; i++)
    printf("%s%.4f", i == 0 ? "" : ", ", (double)d->start_ns[i] / 1e6);
  printf("]");
}

int main(int argc, char **argv) {
  static struct driver d;
  AUTO(arena_deinit) struct arena arena = {0};
  struct err err;
  uv_loop_t loop;
  if (argc != 6)
    return 2;
  d.fake = argv[1];
  d.dir = argv[2];
  d.left = atoi(argv[3]);
  d.action = argv[5];
  d.plain = strcmp(d.action, "plain") == 0;
  size_t held = d.plain ? (size_t)atoi(d.dir) << 20 : 0;
  void *memory = memset(xmalloc(held + 1), 1, held + 1);
  (void)uv_loop_init(&loop);
  d.table = process_table_new(&loop, &err);
  d.envp = process_env_build(&arena, NULL, NULL, NULL, &err);
  if (d.table == NULL || d.envp == NULL) {
    fprintf(stderr, "process_driver: %s\n", err.text);
    return 1;
  }
  uint64_t begin = uv_hrtime();
  for (int i = atoi(argv[4]); i > 0; i--)
    start(&d);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  uint64_t took_ns = uv_hrtime() - begin;
  /* nothing may be left over as a child of ours, alive or dead */
  int adopted = waitpid(-1, NULL, WNOHANG) >= 0;
  process_table_free(d.table);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  int close_rc = uv_loop_close(&loop);
  printf("{\"ended\": %d, \"survivors\": %d, \"adopted\": %d, \"unexpected\": %d, \"loop\": %d",
         d.ended, d.survivors, adopted, d.unexpected, close_rc);
  for (enum process_end why = 0; why <= PROCESS_END_SHIM_LOST; why++)
    printf(", \"%s\": %d", process_end_name(why), d.why[why]);
  if (d.plain)
    say_times(&d, took_ns);
  printf("}\n");
  free(memory);
  return 0;
}
