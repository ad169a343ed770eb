/* spawn_bench - what one provider call costs: spawn and collect through os/process against a bare
 * probe, and the time the loop is stopped by a start.
 *
 * The bare probe does the least that anybody must do with the same shim: the same pipes, the same
 * posix_spawn, poll and waitid, nothing kept. Both sides take turns in small batches, so that a
 * noisy neighbour hits both. */
#include "base/limits.h"
#include "bench.h"
#include "os/process.h"
#include "shim/protocol.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

enum { BATCH = 25, ROUNDS = 81, AT_ONCE_MAX = 8, STARTS = 500, BALLAST_MB = 500 };

static const char *const true_argv[] = {"/bin/true", NULL};
static char shim_path[] = SEGUE_BUILD_DIR "/segue-shim";

static struct {
  uv_loop_t loop;
  struct process_table *table;
  const char *const *envp;
  int left, failed; /* of this batch: still to start; of all */
} bench;

/* --- through os/process --- */

static void on_end(void *ctx, struct process_result *result);

static void start_one(void) {
  const struct process_spec spec = {.argv = true_argv, .cwd = "/", .envp = bench.envp};
  struct err err;
  bench_try(process_start(bench.table, &spec, NULL, on_end, NULL, &err) != NULL, &err);
}

static void on_end(void *ctx, struct process_result *result) {
  (void)ctx;
  bench.failed += result->exit_code != 0;
  if (bench.left > 0) {
    bench.left--;
    start_one();
  }
}

static void ours(int at_once, int count) {
  bench.left = count - at_once;
  for (int i = 0; i < at_once; i++)
    start_one();
  (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
}

/* --- the bare probe --- */

enum { BARE_OUT, BARE_ERR, BARE_STATUS, BARE_CONTROL, BARE_PIPES };
struct bare {
  pid_t pid;           /* 0 = free */
  int fds[BARE_PIPES]; /* our ends; -1 = closed */
};

static struct bare bare_start(void) {
  static const int shim_fds[] = {1, 2, SHIM_FD_STATUS, SHIM_FD_CONTROL};
  const char *argv[] = {SHIM_PROTOCOL, "0", true_argv[0], NULL};
  struct bare job;
  int theirs[BARE_PIPES];
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, all;
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawnattr_init(&attr);
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  for (int i = 0; i < BARE_PIPES; i++) {
    int ends[2], our_end = i == BARE_CONTROL;
    bench_must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    theirs[i] =
        fcntl(ends[!our_end], F_DUPFD_CLOEXEC, 10); /* out of the way of the shim's numbers */
    (void)close(ends[!our_end]);
    job.fds[i] = ends[our_end];
    (void)posix_spawn_file_actions_adddup2(&actions, theirs[i], shim_fds[i]);
  }
  (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_addclosefrom_np(&actions, SHIM_FD_STATUS + 1);
  (void)posix_spawn_file_actions_addchdir_np(&actions, "/");
  (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  (void)posix_spawnattr_setsigdefault(&attr, &all);
  (void)posix_spawnattr_setsigmask(&attr, &none);
  bench_must(posix_spawn(&job.pid, shim_path, &actions, &attr, (char *const *)argv,
                         (char *const *)bench.envp) == 0,
             "posix_spawn");
  (void)posix_spawn_file_actions_destroy(&actions);
  (void)posix_spawnattr_destroy(&attr);
  for (int i = 0; i < BARE_PIPES; i++)
    (void)close(theirs[i]);
  return job;
}

static void bare_close(struct bare *job, int i) {
  if (job->fds[i] >= 0)
    (void)close(job->fds[i]);
  job->fds[i] = -1;
}

/* Reads what is there; true when the job is over and reaped. */
static bool bare_step(struct bare *job, const struct pollfd *ready) {
  static char bytes[LIMIT_PIPE_PIECE_BYTES];
  const struct shim_message *m = (const void *)bytes;
  siginfo_t info;
  for (int i = BARE_OUT; i <= BARE_STATUS; i++) {
    if (job->fds[i] < 0 || ready[i].revents == 0)
      continue;
    ssize_t n = read(job->fds[i], bytes, sizeof bytes);
    if (n <= 0)
      bare_close(job, i);
    else if (i == BARE_STATUS && m[(size_t)n / sizeof *m - 1].type != SHIM_STARTED)
      bare_close(job, BARE_CONTROL); /* it exited: sweep */
  }
  if (job->fds[BARE_STATUS] >= 0)
    return false;
  bench_must(waitid(P_PID, (id_t)job->pid, &info, WEXITED) == 0, "waitid");
  for (int i = 0; i < BARE_PIPES; i++)
    bare_close(job, i);
  job->pid = 0;
  return true;
}

static void bare(int at_once, int count) {
  struct bare jobs[AT_ONCE_MAX] = {0};
  struct pollfd fds[AT_ONCE_MAX * BARE_CONTROL];
  int left = count, done = 0;
  while (done < count) {
    for (int j = 0; j < at_once; j++) {
      if (jobs[j].pid == 0 && left-- > 0)
        jobs[j] = bare_start();
      for (int i = 0; i < BARE_CONTROL; i++)
        fds[j * BARE_CONTROL + i] =
            (struct pollfd){.fd = jobs[j].pid != 0 ? jobs[j].fds[i] : -1, .events = POLLIN};
    }
    bench_must(poll(fds, (nfds_t)(at_once * BARE_CONTROL), -1) > 0, "poll");
    for (int j = 0; j < at_once; j++)
      if (jobs[j].pid != 0)
        done += bare_step(&jobs[j], &fds[j * BARE_CONTROL]);
  }
}

static double seconds_of(void (*side)(int, int), int at_once) {
  double begin = bench_now_s();
  side(at_once, BATCH * at_once);
  return (bench_now_s() - begin) / (BATCH * at_once);
}

static void throughput(int at_once) {
  double took[2][ROUNDS], ratios[ROUNDS];
  size_t rounds = (size_t)(ROUNDS / at_once);
  (void)seconds_of(bare, at_once); /* warm */
  for (size_t i = 0; i < rounds; i++) {
    size_t first = i % 2;
    took[first][i] = seconds_of(first ? ours : bare, at_once);
    took[!first][i] = seconds_of(first ? bare : ours, at_once);
    ratios[i] = took[0][i] / took[1][i];
  }
  printf("spawn+collect, %d in flight: ours %.0f/s, bare probe %.0f/s, ratio %.3f (goal 0.90)\n",
         at_once, 1 / bench_quantile(took[1], rounds, 0.5),
         1 / bench_quantile(took[0], rounds, 0.5), bench_quantile(ratios, rounds, 0.5));
}

static void latency(const char *with) {
  static double start_ms[STARTS];
  for (int i = 0; i < STARTS; i++) {
    double begin = bench_now_s();
    start_one();
    start_ms[i] = (bench_now_s() - begin) * 1e3;
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
  }
  printf("loop stopped by a start, %s: p50 %.2f ms, p99 %.2f ms (goals 1.5, 5)\n", with,
         bench_quantile(start_ms, STARTS, 0.5), bench_quantile(start_ms, STARTS, 0.99));
}

int main(void) {
  struct arena arena = {0};
  struct err err;
  (void)setenv("SEGUE_SHIM", shim_path, 1);
  (void)setvbuf(stdout, NULL, _IOLBF, 0);
  bench_must(uv_loop_init(&bench.loop) == 0, "uv_loop_init");
  bench.table = process_table_new(&bench.loop, &err);
  bench.envp = process_env_build(&arena, NULL, NULL, NULL, &err);
  bench_try(bench.table != NULL && bench.envp != NULL, &err);
  throughput(1);
  throughput(AT_ONCE_MAX);
  latency("as it is");
  char *ballast = memset(xmalloc((size_t)BALLAST_MB << 20), 1, (size_t)BALLAST_MB << 20);
  latency("500 MB resident");
  free(ballast);
  process_table_free(bench.table);
  (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
  arena_deinit(&arena);
  bench_must(bench.failed == 0 && uv_loop_close(&bench.loop) == 0, "end");
  return 0;
}
