/* spawn_bench - what one provider call costs: spawn and collect through os/process against a bare
 * probe; the time the loop is stopped by a start; and the same in a sandbox, with guard, in a home
 * folder of 1,000 entries, against a start without one, and by how much bwrap makes it longer.
 *
 * The bare probe does the least that anybody must do with the same shim: the same pipes, the same
 * posix_spawn, poll and waitid, nothing kept. What is compared takes turns in small batches, so
 * that a noisy neighbour hits both. */
#include "base/limits.h"
#include "bench.h"
#include "os/process.h"
#include "os/sandbox_bwrap.h"
#include "provider/confine.h"
#include "shim/protocol.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>

enum { BATCH = 25, ROUND_COUNT = 81, AT_ONCE_MAX = 8, LATENCY_COUNT = 500, BALLAST_MB = 500 };

static const char *const true_argv[] = {"/bin/true", NULL};
static char shim_path[] = SEGUE_BUILD_DIR "/segue-shim";

struct bench {
  uv_loop_t loop;
  struct process_table *table;
  struct arena arena;
  const char *const *envp;
  char home[64], cwd[80], tmpdir[80]; /* of calls in a sandbox */
  json_t *words;                      /* of a call_start: its sandbox */
  bool held;                          /* the next ones start in it */
  int at_once;
  int left; /* still to start in this batch */
  int failed;
};

/* --- through os/process --- */

static void start_one(struct bench *b);

static void on_end(void *ctx, struct process_result *result) {
  struct bench *b = ctx;
  b->failed += result->exit_code != 0;
  start_one(b);
}

static void start_one(struct bench *b) {
  struct err err;
  struct confined confined = {0};
  const struct provider_env env = {.loop = &b->loop, .processes = b->table, .cwd = b->cwd};
  const struct call_request request = {
      .argv = true_argv, .edit = true, .sandbox = b->held ? b->words : NULL};
  const struct confine_spec spec = {.env = &env,
                                    .request = &request,
                                    .cwd = b->cwd,
                                    .tmpdir = b->tmpdir,
                                    .argv = true_argv,
                                    .envp = b->envp};
  if (b->left == 0)
    return;
  b->left--;
  bench_try(b->words == NULL || confine_call(&spec, &confined, &err), &err);
  const struct process_spec start = {
      .argv = true_argv, .cwd = b->cwd, .envp = b->envp, .sandbox = confined.sandbox};
  bench_try(process_start(b->table, &start, NULL, on_end, b, &err) != NULL, &err);
  sandbox_free(confined.sandbox);
}

/* Seconds of one program. */
static double ours_s(struct bench *b) {
  int batch = BATCH * b->at_once;
  double begin = bench_now_s();
  b->left = batch;
  for (int i = 0; i < b->at_once; i++)
    start_one(b);
  (void)uv_run(&b->loop, UV_RUN_DEFAULT);
  return (bench_now_s() - begin) / batch;
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
    bench_must(pipe2(ends[i], O_CLOEXEC) == 0, "pipe2");
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
  bench_must(rc == 0, "posix_spawn");
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
  bench_must(waitid(P_PID, (id_t)job->pid, &info, WEXITED) == 0, "waitid");
  for (int i = 0; i < BARE_PIPES; i++)
    if (job->fds[i] >= 0)
      (void)close(job->fds[i]);
  job->pid = 0;
  return 1;
}

/* Seconds of one program. */
static double bare_s(const struct bench *b) {
  int at_once = b->at_once;
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
    bench_must(poll(fds, (nfds_t)(at_once * BARE_PIPES), -1) > 0, "poll");
    for (int j = 0; j < at_once; j++)
      if (jobs[j].pid != 0)
        done += bare_step(&jobs[j], &fds[j * BARE_PIPES]);
  }
  return (bench_now_s() - begin) / batch;
}

static double bare_or_ours(void *ctx, int side) {
  return side == 0 ? bare_s(ctx) : ours_s(ctx);
}

static void throughput(struct bench *b, int at_once) {
  b->at_once = at_once;
  const struct bench_pair p = bench_pairs(ROUND_COUNT / at_once, bare_or_ours, b);
  printf(
      "spawn+collect, %d in flight: ours %.0f/s, bare probe %.0f/s, ratio %.3f (wanted >= 0.90)\n",
      at_once, 1 / p.side[1], 1 / p.side[0], p.ratio);
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
    bench_must(p != NULL, "process_start");
    (void)uv_run(&b->loop, UV_RUN_DEFAULT);
  }
  printf("loop stopped by a start, %s: p50 %.2f ms, p99 %.2f ms (wanted < 1.5, < 5)\n", with,
         bench_quantile(start_ms, LATENCY_COUNT, 0.5),
         bench_quantile(start_ms, LATENCY_COUNT, 0.99));
}

/* --- in a sandbox --- */

static double held_or_off(void *ctx, int side) {
  struct bench *b = ctx;
  b->held = side == 0;
  return ours_s(b);
}

static void compare(struct bench *b, const char *what, const char *mechanism) {
  b->at_once = 1;
  b->words = json_pack("{ssss}", "level", "guard", "mechanism", mechanism);
  const struct bench_pair p = bench_pairs(ROUND_COUNT, held_or_off, b);
  printf("%s: off %.2f ms, guard by %s %.2f ms, ", what, p.side[1] * 1e3, mechanism,
         p.side[0] * 1e3);
  if (strcmp(mechanism, SANDBOX_BWRAP) == 0)
    printf("%.2f ms more (wanted <= 15)\n", (p.side[0] - p.side[1]) * 1e3);
  else
    printf("ratio %.3f (wanted <= 1.15)\n", p.ratio);
  json_decref(b->words);
}

static void sandboxes(struct bench *b) {
  char why_not[256];
  if (sandbox_version() == 0 || !sandbox_filters()) {
    printf("sandboxes skipped: this kernel has no Landlock\n");
    return;
  }
  bench_folder(b->home, sizeof b->home, "/var/tmp");
  bench_folder(b->tmpdir, sizeof b->tmpdir, "/tmp");
  (void)snprintf(b->cwd, sizeof b->cwd, "%s/work", b->home);
  bench_must(setenv("HOME", b->home, 1) == 0, "setenv");
  bench_shell(b->home, "mkdir -m 700 work .ssh .config .cache");
  compare(b, "a small home folder", SANDBOX_LANDLOCK);
  bench_shell(b->home, "mkdir $(seq -f folder-%g 500) && touch $(seq -f file-%g 500)");
  compare(b, "a home folder of 1,000 entries", SANDBOX_LANDLOCK);
  if (sandbox_bwrap_why_not(why_not, sizeof why_not) == NULL)
    compare(b, "the same", SANDBOX_BWRAP);
  bench_remove(b->home);
  bench_remove(b->tmpdir);
}

int main(void) {
  struct bench b = {.cwd = "/"};
  struct err err;
  (void)setenv("SEGUE_SHIM", shim_path, 1);
  (void)setvbuf(stdout, NULL, _IOLBF, 0);
  bench_must(uv_loop_init(&b.loop) == 0, "uv_loop_init");
  b.table = process_table_new(&b.loop, &err);
  b.envp = process_env_build(&b.arena, NULL, NULL, NULL, &err);
  bench_try(b.table != NULL && b.envp != NULL, &err);
  throughput(&b, 1);
  throughput(&b, AT_ONCE_MAX);
  latency(&b, "as it is");
  char *ballast = memset(xmalloc((size_t)BALLAST_MB << 20), 1, (size_t)BALLAST_MB << 20);
  latency(&b, "500 MB resident");
  free(ballast);
  sandboxes(&b);
  process_table_free(b.table);
  (void)uv_run(&b.loop, UV_RUN_DEFAULT);
  arena_deinit(&b.arena);
  bench_must(b.failed == 0 && uv_loop_close(&b.loop) == 0, "end");
  return 0;
}
