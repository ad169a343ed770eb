/* spawn_bench - what one provider call costs: spawn and collect through os/process against a bare
 * probe; the time the loop is stopped by a start.
 *
 * The bare probe does the least that anybody must do with the same shim: the same pipes, the same
 * posix_spawn, poll and waitid, nothing kept. Both take turns in small batches, so that a noisy
 * neighbour hits both; the ratio is the median of those of neighbouring batches. */
#include "base/limits.h"
#include "bench.h"
#include "os/process.h"
#include "shim/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>

enum { BATCH = 25, ROUND_COUNT = 81, LATENCY_COUNT = 500, BALLAST_MB = 500 };
enum { AT_ONCE_MAX = 8 };

static const char *const true_argv[] = {"/bin/true", NULL};
static char shim_path[] = SEGUE_BUILD_DIR "/segue-shim";

struct bench {
  uv_loop_t loop;
  struct process_table *table;
  struct arena arena;
  const char *const *envp;
  int left; /* still to start in this batch */
  int failed;
};

static void must(int ok, const char *what) {
  if (!ok)
    die("%s: %s", what, strerror(errno));
}

/* --- through os/process --- */

static void start_one(struct bench *b);

static void on_end(void *ctx, struct process_result *result) {
  struct bench *b = ctx;
  b->failed += result->exit_code != 0;
  start_one(b);
}

static void start_one(struct bench *b) {
  struct err err;
  struct process_spec spec = {.argv = true_argv, .cwd = "/", .envp = b->envp};
  if (b->left == 0)
    return;
  b->left--;
  if (process_start(b->table, &spec, NULL, on_end, b, &err) == NULL) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
}

static double ours_per_s(struct bench *b, int at_once) {
  int batch = BATCH * at_once;
  double begin = bench_now_s();
  b->left = batch;
  for (int i = 0; i < at_once; i++)
    start_one(b);
  (void)uv_run(&b->loop, UV_RUN_DEFAULT);
  return batch / (bench_now_s() - begin);
}

/* --- the bare probe --- */

enum { BARE_OUT, BARE_ERR, BARE_STATUS, BARE_PIPES };
struct bare {
  pid_t pid; /* 0 = free */
  int fds[BARE_PIPES], control;
};

static void bare_start(const struct bench *b, struct bare *job) {
  static const int shim_fd[] = {1, 2, SHIM_FD_STATUS, SHIM_FD_CONTROL};
  const char *argv[] = {SHIM_PROTOCOL, "0", true_argv[0], NULL};
  int ends[4][2];
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, all;
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawnattr_init(&attr);
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  for (int i = 0; i < 4; i++)
    must(pipe2(ends[i], O_CLOEXEC) == 0, "pipe2");
  for (int i = 0; i < 4; i++) { /* the child's ends out of the way of the numbers below */
    int *childs = &ends[i][i != 3];
    int high = fcntl(*childs, F_DUPFD_CLOEXEC, 10);
    (void)close(*childs);
    *childs = high;
    (void)posix_spawn_file_actions_adddup2(&actions, high, shim_fd[i]);
  }
  (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_addclosefrom_np(&actions, SHIM_FD_STATUS + 1);
  (void)posix_spawn_file_actions_addchdir_np(&actions, "/");
  (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  (void)posix_spawnattr_setsigdefault(&attr, &all);
  (void)posix_spawnattr_setsigmask(&attr, &none);
  int rc = posix_spawn(&job->pid, shim_path, &actions, &attr, (char *const *)argv,
                       (char *const *)b->envp);
  must(rc == 0, "posix_spawn");
  (void)posix_spawn_file_actions_destroy(&actions);
  (void)posix_spawnattr_destroy(&attr);
  for (int i = 0; i < 4; i++)
    (void)close(ends[i][i != 3]);
  for (int i = 0; i < BARE_PIPES; i++)
    job->fds[i] = ends[i][0];
  job->control = ends[3][1];
}

/* Reads what is there; true when the job is over and reaped. */
static int bare_step(struct bare *job, const struct pollfd *ready) {
  static char bytes[LIMIT_PIPE_PIECE_BYTES];
  siginfo_t info;
  for (int i = 0; i < BARE_PIPES; i++) {
    if (job->fds[i] < 0 || ready[i].revents == 0)
      continue;
    ssize_t n = read(job->fds[i], bytes, sizeof bytes);
    if (n <= 0) {
      (void)close(job->fds[i]);
      job->fds[i] = -1;
    } else if (i == BARE_STATUS && job->control >= 0) {
      const struct shim_message *m = (const void *)bytes;
      if (m[(size_t)n / sizeof *m - 1].type != SHIM_STARTED) { /* it exited: sweep */
        (void)close(job->control);
        job->control = -1;
      }
    }
  }
  if (job->fds[BARE_STATUS] >= 0)
    return 0;
  must(waitid(P_PID, (id_t)job->pid, &info, WEXITED) == 0, "waitid");
  for (int i = 0; i < BARE_PIPES; i++)
    if (job->fds[i] >= 0)
      (void)close(job->fds[i]);
  job->pid = 0;
  return 1;
}

static double bare_per_s(const struct bench *b, int at_once) {
  struct bare jobs[AT_ONCE_MAX] = {0};
  struct pollfd fds[AT_ONCE_MAX * BARE_PIPES];
  int batch = BATCH * at_once, left = batch, done = 0;
  double begin = bench_now_s();
  while (done < batch) {
    for (int j = 0; j < at_once; j++) {
      if (jobs[j].pid == 0 && left > 0) {
        bare_start(b, &jobs[j]);
        left--;
      }
      for (int i = 0; i < BARE_PIPES; i++)
        fds[j * BARE_PIPES + i] =
            (struct pollfd){.fd = jobs[j].pid != 0 ? jobs[j].fds[i] : -1, .events = POLLIN};
    }
    must(poll(fds, (nfds_t)(at_once * BARE_PIPES), -1) > 0, "poll");
    for (int j = 0; j < at_once; j++)
      if (jobs[j].pid != 0)
        done += bare_step(&jobs[j], &fds[j * BARE_PIPES]);
  }
  return batch / (bench_now_s() - begin);
}

static void throughput(struct bench *b, int at_once) {
  double ours[ROUND_COUNT], bare[ROUND_COUNT], ratio[ROUND_COUNT];
  int rounds = ROUND_COUNT / at_once;
  (void)ours_per_s(b, at_once);
  (void)bare_per_s(b, at_once);
  for (int i = 0; i < rounds; i++) { /* take turns in going first */
    if (i % 2 == 0)
      bare[i] = bare_per_s(b, at_once);
    ours[i] = ours_per_s(b, at_once);
    if (i % 2 != 0)
      bare[i] = bare_per_s(b, at_once);
    ratio[i] = ours[i] / bare[i];
  }
  double our = bench_quantile(ours, (size_t)rounds, 0.5),
         their = bench_quantile(bare, (size_t)rounds, 0.5);
  printf(
      "spawn+collect, %d in flight: ours %.0f/s, bare probe %.0f/s, ratio %.3f (wanted >= 0.90)\n",
      at_once, our, their, bench_quantile(ratio, (size_t)rounds, 0.5));
}

/* --- latency of a start --- */

static void latency(struct bench *b, const char *with) {
  static double start_ms[LATENCY_COUNT];
  struct err err;
  struct process_spec spec = {.argv = true_argv, .cwd = "/", .envp = b->envp};
  b->left = 0;
  for (int i = 0; i < LATENCY_COUNT; i++) {
    double begin = bench_now_s();
    struct process *p = process_start(b->table, &spec, NULL, on_end, b, &err);
    start_ms[i] = (bench_now_s() - begin) * 1e3;
    must(p != NULL, "process_start");
    (void)uv_run(&b->loop, UV_RUN_DEFAULT);
  }
  double p50 = bench_quantile(start_ms, LATENCY_COUNT, 0.5),
         p99 = bench_quantile(start_ms, LATENCY_COUNT, 0.99);
  printf("loop stopped by a start, %s: p50 %.2f ms, p99 %.2f ms (wanted < 1.5, < 5)\n", with, p50,
         p99);
}

int main(void) {
  struct bench b = {0};
  struct err err;
  (void)setenv("SEGUE_SHIM", shim_path, 1);
  (void)setvbuf(stdout, NULL, _IOLBF, 0);
  must(uv_loop_init(&b.loop) == 0, "uv_loop_init");
  b.table = process_table_new(&b.loop, &err);
  b.envp = process_env_build(&b.arena, NULL, NULL, NULL, &err);
  if (b.table == NULL || b.envp == NULL) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  throughput(&b, 1);
  throughput(&b, AT_ONCE_MAX);
  latency(&b, "as it is");
  char *ballast = memset(xmalloc((size_t)BALLAST_MB << 20), 1, (size_t)BALLAST_MB << 20);
  latency(&b, "500 MB resident");
  free(ballast);
  process_table_free(b.table);
  (void)uv_run(&b.loop, UV_RUN_DEFAULT);
  arena_deinit(&b.arena);
  must(b.failed == 0 && uv_loop_close(&b.loop) == 0, "end");
  return 0;
}
