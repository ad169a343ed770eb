/* spawn_bench - what one provider call costs: spawn and collect through os/process against a bare
 * probe, and the time the loop is stopped by a start.
 *
 * The bare probe does the least that anybody must do with the same shim: the same pipes, the same
 * posix_spawn, read and waitid in a thread for each that runs at once, nothing kept. Both sides
 * take turns in small batches, so that a noisy neighbour hits both. */
#include "base/limits.h"
#include "bench.h"
#include "os/process.h"
#include "shim/protocol.h"

#include <pthread.h>
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
  posix_spawnattr_t attr;
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

static void ours(int at_once) {
  bench.left = BATCH * at_once - at_once;
  for (int i = 0; i < at_once; i++)
    start_one();
  (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
}

/* --- the bare probe --- */

enum { BARE_OUT, BARE_ERR, BARE_STATUS, BARE_CONTROL, BARE_PIPES };

/* Returns its pid, and in fds our ends of its pipes. */
static pid_t bare_start(int fds[BARE_PIPES]) {
  static const int shim_fds[] = {1, 2, SHIM_FD_STATUS, SHIM_FD_CONTROL};
  const char *argv[] = {SHIM_PROTOCOL, "0", true_argv[0], NULL};
  int theirs[BARE_PIPES];
  posix_spawn_file_actions_t actions;
  pid_t pid;
  (void)posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < BARE_PIPES; i++) {
    int ends[2], our_end = i == BARE_CONTROL;
    bench_must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    theirs[i] = ends[!our_end];
    fds[i] = ends[our_end];
    (void)posix_spawn_file_actions_adddup2(&actions, theirs[i], shim_fds[i]);
  }
  (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_addclosefrom_np(&actions, SHIM_FD_STATUS + 1);
  (void)posix_spawn_file_actions_addchdir_np(&actions, "/");
  bench_must(posix_spawn(&pid, shim_path, &actions, &bench.attr, (char *const *)argv,
                         (char *const *)bench.envp) == 0,
             "posix_spawn");
  (void)posix_spawn_file_actions_destroy(&actions);
  for (int i = 0; i < BARE_PIPES; i++)
    (void)close(theirs[i]);
  return pid;
}

/* Runs a batch, one after the other. */
static void *bare_batch(void *unused) {
  char bytes[LIMIT_PIPE_PIECE_BYTES];
  struct shim_message m;
  siginfo_t info;
  int fds[BARE_PIPES];
  for (int n = 0; n < BATCH; n++) {
    pid_t pid = bare_start(fds);
    while (read(fds[BARE_STATUS], &m, sizeof m) == sizeof m)
      if (m.type == SHIM_EXITED)
        (void)close(fds[BARE_CONTROL]); /* it sweeps, and ends */
    for (int i = BARE_OUT; i <= BARE_STATUS; i++) {
      while (read(fds[i], bytes, sizeof bytes) > 0)
        ;
      (void)close(fds[i]);
    }
    bench_must(waitid(P_PID, (id_t)pid, &info, WEXITED) == 0, "waitid");
  }
  return unused;
}

static void bare(int at_once) {
  pthread_t threads[AT_ONCE_MAX];
  for (int i = 0; i < at_once; i++)
    bench_must(pthread_create(&threads[i], NULL, bare_batch, NULL) == 0, "pthread_create");
  for (int i = 0; i < at_once; i++)
    pthread_join(threads[i], NULL);
}

/* Spawns are made by threads and by the loop with the same attributes; the shim's numbers are
 * taken, so that no pipe gets one. */
static void prepare(void) {
  sigset_t none, all;
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  (void)posix_spawnattr_init(&bench.attr);
  (void)posix_spawnattr_setflags(&bench.attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                                  POSIX_SPAWN_SETSIGMASK);
  (void)posix_spawnattr_setsigdefault(&bench.attr, &all);
  (void)posix_spawnattr_setsigmask(&bench.attr, &none);
  while (open("/dev/null", O_RDWR | O_CLOEXEC) < SHIM_FD_STATUS)
    ;
}

/* --- both --- */

static void throughput(int at_once) {
  double took[2][ROUNDS], ratios[ROUNDS];
  size_t rounds = (size_t)(ROUNDS / at_once), count = (size_t)(BATCH * at_once);
  bare(at_once); /* warm */
  for (size_t i = 0; i < rounds; i++) {
    for (size_t k = 0; k < 2; k++) {
      bool of_ours = (i + k) % 2;
      took[of_ours][i] = BENCH_BEST(1, (of_ours ? ours : bare)(at_once)) / (double)count;
    }
    ratios[i] = took[0][i] / took[1][i];
  }
  printf("spawn+collect, %d in flight: ours %.0f/s, bare probe %.0f/s, ratio %.3f (goal 0.90)\n",
         at_once, 1 / bench_quantile(took[1], rounds, 0.5),
         1 / bench_quantile(took[0], rounds, 0.5), bench_quantile(ratios, rounds, 0.5));
}

static void latency(const char *with) {
  static double start_ms[STARTS];
  for (int i = 0; i < STARTS; i++) {
    start_ms[i] = BENCH_BEST(1, start_one()) * 1e3;
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
  prepare();
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
  bench_must(bench.failed == 0, "/bin/true");
  return 0;
}
