/* sandbox_bench - what it costs to start a program in a sandbox: with guard, in a home folder of
 * 1,000 entries, against the same start without one; and by how much bwrap makes it longer.
 *
 * Both take turns in small batches; the ratio is the median of those of neighbouring batches. */
#include "bench.h"
#include "os/process.h"
#include "os/sandbox_bwrap.h"
#include "provider/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { BATCH = 10, ROUND_COUNT = 61, ENTRY_COUNT = 1000 };

static char shim_path[] = SEGUE_BUILD_DIR "/segue-shim";
static const char *const true_argv[] = {"/bin/true", NULL};

struct bench {
  uv_loop_t loop;
  struct process_table *table;
  struct arena arena;
  const char *const *envp;
  json_t *words; /* of a call_start; NULL: off */
  char home[64], cwd[80], tmpdir[80];
  int left, failed;
  double confine_s;
};

static void must(int ok, const char *what) {
  if (!ok)
    die("%s: %s", what, strerror(errno));
}

static void start_one(struct bench *b);

static void on_end(void *ctx, struct process_result *result) {
  struct bench *b = ctx;
  b->failed += result->exit_code != 0;
  start_one(b);
}

static void start_one(struct bench *b) {
  struct err err;
  struct confined confined;
  const struct provider_env env = {.loop = &b->loop, .processes = b->table, .cwd = b->cwd};
  const struct call_request request = {.argv = true_argv, .edit = true, .sandbox = b->words};
  if (b->left == 0)
    return;
  b->left--;
  double begin = bench_now_s();
  const struct confine_spec held = {.env = &env,
                                    .request = &request,
                                    .cwd = b->cwd,
                                    .tmpdir = b->tmpdir,
                                    .argv = true_argv,
                                    .envp = b->envp};
  if (!confine_call(&held, &confined, &err))
    die("%s", err.text);
  b->confine_s += bench_now_s() - begin;
  const struct process_spec spec = {
      .argv = true_argv, .cwd = b->cwd, .envp = b->envp, .sandbox = confined.sandbox};
  if (process_start(b->table, &spec, NULL, on_end, b, &err) == NULL)
    die("%s", err.text);
  sandbox_free(confined.sandbox);
}

static double batch_s(struct bench *b, json_t *words) {
  double begin = bench_now_s();
  b->words = words;
  b->confine_s = 0;
  b->left = BATCH;
  start_one(b);
  (void)uv_run(&b->loop, UV_RUN_DEFAULT);
  return (bench_now_s() - begin) / BATCH;
}

static void compare(struct bench *b, const char *what, const char *mechanism) {
  double off[ROUND_COUNT], held[ROUND_COUNT], ratio[ROUND_COUNT], made[ROUND_COUNT];
  json_t *words = json_pack("{ssss}", "level", "guard", "mechanism", mechanism);
  (void)batch_s(b, words);
  (void)batch_s(b, NULL);
  for (int i = 0; i < ROUND_COUNT; i++) { /* take turns in going first */
    if (i % 2 == 0)
      off[i] = batch_s(b, NULL);
    held[i] = batch_s(b, words);
    made[i] = b->confine_s / BATCH;
    if (i % 2 != 0)
      off[i] = batch_s(b, NULL);
    ratio[i] = held[i] / off[i];
  }
  json_decref(words);
  if (strcmp(mechanism, SANDBOX_BWRAP) == 0) {
    for (int i = 0; i < ROUND_COUNT; i++)
      ratio[i] = held[i] - off[i];
    printf("%s: off %.2f ms, guard by bwrap %.2f ms, %.2f ms more (wanted <= 15)\n", what,
           bench_quantile(off, ROUND_COUNT, 0.5) * 1e3,
           bench_quantile(held, ROUND_COUNT, 0.5) * 1e3,
           bench_quantile(ratio, ROUND_COUNT, 0.5) * 1e3);
    return;
  }
  printf("%s: off %.2f ms, guard %.2f ms (rules %.2f ms), ratio %.3f (wanted <= 1.15)\n", what,
         bench_quantile(off, ROUND_COUNT, 0.5) * 1e3, bench_quantile(held, ROUND_COUNT, 0.5) * 1e3,
         bench_quantile(made, ROUND_COUNT, 0.5) * 1e3, bench_quantile(ratio, ROUND_COUNT, 0.5));
}

static void fill_home(const char *home, int from, int to) {
  char path[128];
  for (int i = from; i < to; i++) {
    (void)snprintf(path, sizeof path, "%s/entry-%d", home, i);
    if (i % 2 == 0) {
      must(mkdir(path, 0755) == 0, "mkdir");
    } else {
      int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      must(fd >= 0 && close(fd) == 0, "open");
    }
  }
}

static void fresh_home(struct bench *b) {
  static const char *const folders[] = {"work", ".ssh", ".config", ".cache"};
  (void)snprintf(b->home, sizeof b->home, "/var/tmp/sandbox-bench-XXXXXX");
  must(mkdtemp(b->home) != NULL, "mkdtemp");
  (void)snprintf(b->cwd, sizeof b->cwd, "%s/work", b->home);
  (void)snprintf(b->tmpdir, sizeof b->tmpdir, "/tmp/sandbox-bench-XXXXXX");
  must(mkdtemp(b->tmpdir) != NULL, "mkdtemp");
  for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", b->home, folders[i]);
    must(mkdir(path, 0700) == 0, "mkdir");
  }
  must(setenv("HOME", b->home, 1) == 0, "setenv");
}

int main(void) {
  struct bench b = {0};
  struct err err;
  char remove[256];
  (void)setvbuf(stdout, NULL, _IOLBF, 0);
  if (sandbox_version() == 0 || !sandbox_filters()) {
    printf("skipped: this kernel has no Landlock\n");
    return 0;
  }
  fresh_home(&b);
  (void)setenv("SEGUE_SHIM", shim_path, 1);
  must(uv_loop_init(&b.loop) == 0, "uv_loop_init");
  b.table = process_table_new(&b.loop, &err);
  b.envp = process_env_build(&b.arena, NULL, NULL, NULL, &err);
  if (b.table == NULL || b.envp == NULL)
    die("%s", err.text);
  compare(&b, "a small home folder", SANDBOX_LANDLOCK);
  fill_home(b.home, 0, ENTRY_COUNT);
  compare(&b, "a home folder of 1,000 entries", SANDBOX_LANDLOCK);
  if (sandbox_bwrap_why_not(remove, sizeof remove) == NULL)
    compare(&b, "the same", SANDBOX_BWRAP);
  process_table_free(b.table);
  (void)uv_run(&b.loop, UV_RUN_DEFAULT);
  arena_deinit(&b.arena);
  (void)snprintf(remove, sizeof remove, "rm -rf '%s' '%s'", b.home, b.tmpdir);
  must(b.failed == 0 && uv_loop_close(&b.loop) == 0 && system(remove) == 0, "end");
  return 0;
}
