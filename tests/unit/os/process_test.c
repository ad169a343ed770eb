/* Runs real children (fake_agent) through the real shim; nothing here waits for a time to pass but
 * for what a child says, and the limits under test are the only clocks. */

#include "base/limits.h"
#include "base/memory.h"
#include "os/process_internal.h"
#include "os/tmpdir.h"
#include "os/tree_work.h"
#include "shim/protocol.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FAKE SEGUE_BUILD_DIR "/helpers/fake_agent"

enum { BIG_BYTES = 3 * 1024 * 1024 };

struct fixture {
  uv_loop_t loop;
  struct process_table *table;
  struct arena arena;
  const char *const *envp;
  char *dir; /* private, removed at the end */
  size_t fds_before;
};

/* The outcome of one run, kept beyond its on_end. */
struct run {
  struct fixture *fixture;
  struct process *process;
  const char *cancel_on; /* output after which it is cancelled */
  const char *kill_on;   /* output after which its shim is killed */
  bool stop_shim;        /* SIGSTOP to it before the cancel */
  int ended;
  size_t streamed; /* bytes seen by on_output */
  struct process_result result;
  struct run *then; /* started in on_end */
};

static size_t count_fds(void) {
  size_t n = 0;
  DIR *dir = opendir("/proc/self/fd");
  while (readdir(dir) != NULL)
    n++;
  (void)closedir(dir);
  return n;
}

static int setup(void **state) {
  /* A folder of the tester's PATH that may not be searched would turn ENOENT into EACCES. */
  static const char *const plain_path[] = {"PATH=/usr/bin:/bin", NULL};
  struct fixture *f = calloc(1, sizeof *f);
  struct err err;
  f->fds_before = count_fds();
  assert_int_equal(setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1), 0);
  assert_int_equal(uv_loop_init(&f->loop), 0);
  f->table = process_table_new(&f->loop, &err);
  if (f->table == NULL)
    fail_msg("%s", err.text);
  f->dir = folder_make();
  f->envp = process_env_build(&f->arena, f->dir, NULL, plain_path, &err);
  assert_non_null(f->envp);
  *state = f;
  return 0;
}

/* libuv's signal pipe is opened once and stays. */
static int warm_up(void **state) {
  uv_loop_t loop;
  (void)state;
  return uv_loop_init(&loop) != 0 || uv_loop_close(&loop) != 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(f->table->processes.count, 0);
  process_table_free(f->table);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->loop), 0);
  arena_deinit(&f->arena);
  folder_remove(f->dir);
  assert_int_equal(count_fds(), f->fds_before);
  free(f);
  return 0;
}

static void run_start(struct run *run, struct fixture *f, struct process_spec *spec);

static bool says(const struct process_result *r, const char *text) {
  return text != NULL && strstr(buf_c(&r->out), text) != NULL;
}

static void on_output(void *ctx, int fd, struct str bytes) {
  struct run *run = ctx;
  assert_true(fd == 1 || fd == 2);
  run->streamed += bytes.n;
  if (run->cancel_on != NULL && bytes.n >= strlen(run->cancel_on) &&
      memcmp(bytes.p, run->cancel_on, strlen(run->cancel_on)) == 0) {
    if (run->stop_shim)
      assert_int_equal(kill(run->process->shim, SIGSTOP), 0);
    process_cancel(run->process);
    process_cancel(run->process);
  }
  if (run->kill_on != NULL && str_starts(bytes, run->kill_on))
    assert_int_equal(kill(run->process->shim, SIGKILL), 0);
}

static const char *const again[] = {FAKE, "both", NULL};

static void on_end(void *ctx, struct process_result *result) {
  struct run *run = ctx;
  run->ended++;
  run->result = *result; /* the buffers are ours now */
  result->out = result->err = (struct buf){0};
  if (run->then != NULL) {
    struct process_spec spec = {.argv = again, .envp = run->fixture->envp};
    run_start(run->then, run->fixture, &spec);
  }
}

static void run_start(struct run *run, struct fixture *f, struct process_spec *spec) {
  struct err err = {0};
  run->fixture = f;
  run->process = process_start(f->table, spec, on_output, on_end, run, &err);
  if (run->process == NULL)
    fail_msg("%s", err.text);
}

static void run_free(struct run *run) {
  buf_deinit(&run->result.out);
  buf_deinit(&run->result.err);
}

/* Whether a lock on the marker can be had: nobody who holds it is alive. */
static bool nobody_holds(const char *marker) {
  int fd = open(marker, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool free_now = flock(fd, LOCK_EX | LOCK_NB) == 0;
  (void)close(fd);
  return free_now;
}

/* --- one child, one row --- */

static const struct row {
  const char *name;
  const char *argv[4]; /* "MARKER" is replaced by a path */
  size_t stdin_n;      /* bytes of 'a' */
  size_t stdout_max;
  uint64_t wall_ms, stall_ms;
  const char *cancel_on, *kill_on;
  /* expected */
  enum process_end why;
  int exit_code, signal, exec_errno;
  const char *out;
  size_t out_n; /* 0 = not checked */
  size_t bytes; /* printed, of which only both ends are kept; 0 = all is kept */
  bool pipes_held, stdin_unread, not_started;
  uint64_t least_ms;
} rows[] = {
    {"exit 0", {FAKE, "exit", "0"}, .exit_code = 0},
    {"exit 7", {FAKE, "exit", "7"}, .exit_code = 7},
    {"stdout and stderr", {FAKE, "both"}, .out = "to stdout\n", .out_n = 10},
    {"small stdin", {FAKE, "echo"}, .stdin_n = 1000, .out_n = 1000},
    {"stdin of exactly a pipe", {FAKE, "echo"}, .stdin_n = 65536, .out_n = 65536},
    {"no stdin is end of file", {FAKE, "echo"}, .out = ""},
    {"3 MB stdin", {FAKE, "echo"}, .stdin_n = BIG_BYTES, .out_n = BIG_BYTES},
    {"exits before reading",
     {FAKE, "exit", "3"},
     .stdin_n = BIG_BYTES,
     .exit_code = 3,
     .stdin_unread = true},
    {"20 MB, 1 MB kept",
     {FAKE, "print", "20"},
     .stdout_max = 1024 * 1024,
     .bytes = 20 * 1024 * 1024},
    {"17 MB, default limit", {FAKE, "print", "17"}, .bytes = 17 * 1024 * 1024},
    {"binary", {FAKE, "binary"}, .out_n = 258},
    {"dies by KILL", {FAKE, "signal", "9"}, .exit_code = -1, .signal = SIGKILL},
    {"dies by ABRT", {FAKE, "signal", "6"}, .exit_code = -1, .signal = SIGABRT},
    {"dies by TERM of its own", {FAKE, "signal", "15"}, .exit_code = -1, .signal = SIGTERM},
    {"found in PATH", {"true"}, .exit_code = 0},
    {"no such program",
     {"/nonexistent/agent"},
     .why = PROCESS_END_EXEC_FAILED,
     .exit_code = -1,
     .exec_errno = ENOENT,
     .not_started = true},
    {"not in PATH",
     {"no-such-agent-anywhere"},
     .why = PROCESS_END_EXEC_FAILED,
     .exit_code = -1,
     .exec_errno = ENOENT,
     .not_started = true},
    {"not executable",
     {"/dev/null"},
     .why = PROCESS_END_EXEC_FAILED,
     .exit_code = -1,
     .exec_errno = EACCES,
     .not_started = true},
    {"not executable, with stdin",
     {"/dev/null"},
     .stdin_n = BIG_BYTES,
     .why = PROCESS_END_EXEC_FAILED,
     .exit_code = -1,
     .exec_errno = EACCES,
     .not_started = true,
     .stdin_unread = true},
    {"stalls",
     {FAKE, "stall"},
     .stall_ms = 300,
     .why = PROCESS_END_STALL_LIMIT,
     .exit_code = -1,
     .signal = SIGTERM,
     .out = "one line\n",
     .least_ms = 300},
    {"never stalls, too long",
     {FAKE, "tick"},
     .stall_ms = 5000,
     .wall_ms = 300,
     .why = PROCESS_END_WALL_LIMIT,
     .exit_code = -1,
     .signal = SIGTERM,
     .out = ".",
     .least_ms = 300},
    {"within its limits", {FAKE, "both"}, .stall_ms = UINT64_MAX, .wall_ms = UINT64_MAX},
    {"hangs after its final line",
     {FAKE, "final"},
     .cancel_on = "the final",
     .why = PROCESS_END_CANCELLED,
     .exit_code = -1,
     .signal = SIGTERM,
     .out = "the final line\n"},
    {"cleans up at TERM",
     {FAKE, "polite"},
     .cancel_on = "ready",
     .why = PROCESS_END_CANCELLED,
     .exit_code = 7,
     .out = "ready\nbye\n"},
    {"ignores TERM",
     {FAKE, "stubborn"},
     .cancel_on = "ready",
     .why = PROCESS_END_CANCELLED,
     .exit_code = -1,
     .signal = SIGKILL,
     .least_ms = LIMIT_TERM_GRACE_MS},
    {"tree, cancelled",
     {FAKE, "tree", "MARKER"},
     .cancel_on = "ready",
     .why = PROCESS_END_CANCELLED,
     .exit_code = -1,
     .signal = SIGKILL,
     .least_ms = LIMIT_TERM_GRACE_MS},
    {"tree left behind", {FAKE, "tree-exit", "MARKER"}, .out = "ready\n"},
    {"tree left behind, holding stdout",
     {FAKE, "tree-hold", "MARKER"},
     .out = "ready\n",
     .pipes_held = true},
    {"shim killed",
     {FAKE, "stall"},
     .kill_on = "one line",
     .why = PROCESS_END_SHIM_LOST,
     .exit_code = -1,
     .out = "one line\n"},
    {"shim killed, tree",
     {FAKE, "tree", "MARKER"},
     .kill_on = "ready",
     .why = PROCESS_END_SHIM_LOST,
     .exit_code = -1,
     .out = "ready\n"},
    {"shim killed while the pipes are held",
     {FAKE, "tree-hold", "MARKER"},
     .kill_on = "ready",
     .why = PROCESS_END_SHIM_LOST,
     .exit_code = -2,
     .out = "ready\n"},
    {"shim killed, 3 MB stdin not read",
     {FAKE, "stall"},
     .stdin_n = BIG_BYTES,
     .kill_on = "one line",
     .why = PROCESS_END_SHIM_LOST,
     .exit_code = -1,
     .stdin_unread = true},
};

static void test_row(struct fixture *f, const struct row *row, const char *big) {
  char marker[512];
  const char *argv[4];
  struct run run = {.cancel_on = row->cancel_on, .kill_on = row->kill_on};
  print_into(marker, sizeof marker, "%s/marker", f->dir);
  for (size_t i = 0; i < ARRAY_LEN(argv); i++)
    argv[i] = row->argv[i] && strcmp(row->argv[i], "MARKER") == 0 ? marker : row->argv[i];
  struct process_spec spec = {.argv = argv,
                              .cwd = f->dir,
                              .envp = f->envp,
                              .stdin_bytes = big,
                              .stdin_n = row->stdin_n,
                              .stdout_max = row->stdout_max,
                              .wall_ms = row->wall_ms,
                              .stall_ms = row->stall_ms};
  uint64_t before = uv_hrtime();
  run_start(&run, f, &spec);
  assert_int_equal(run.ended, 0);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  const struct process_result *r = &run.result;
  print_message("         %-40s %s, exit %d, signal %d, %llu ms\n", row->name,
                process_end_name(r->why), r->exit_code, r->signal,
                (unsigned long long)r->duration_ms);
  assert_int_equal(run.ended, 1);
  assert_string_equal(process_end_name(r->why), process_end_name(row->why));
  assert_int_equal(r->started, !row->not_started);
  if (row->exit_code != -2) /* -2: either is right, the kill and the exit race */
    assert_int_equal(r->exit_code, row->exit_code);
  if (row->why != PROCESS_END_SHIM_LOST)
    assert_int_equal(r->signal, row->signal);
  assert_int_equal(r->exec_errno, row->exec_errno);
  assert_int_equal(r->pipes_held, row->pipes_held);
  assert_int_equal(r->stdin_unread, row->stdin_unread);
  assert_false(r->survivors);
  if (row->out != NULL)
    assert_true(says(r, row->out));
  if (row->out_n != 0)
    assert_int_equal(r->out.n, row->out_n);
  assert_int_equal(r->out.cut, row->bytes > 0);
  if (row->bytes > 0) {
    size_t max = row->stdout_max ? row->stdout_max : LIMIT_OUTPUT_BYTES;
    const char *line = memmem(r->out.p, r->out.n, "[... ", 5);
    assert_true(r->out.n <= max && r->out.n > max - 16384);
    assert_int_equal(run.streamed, row->bytes);
    assert_non_null(line);
    assert_int_equal(strtoull(line + 5, NULL, 10), r->out.dropped);
  } else {
    assert_int_equal(run.streamed, r->out.n + r->err.n);
  }
  if (strcmp(argv[0], FAKE) == 0 && strcmp(argv[1], "echo") == 0 && row->stdin_n > 0)
    assert_memory_equal(r->out.p, big, row->stdin_n);
  assert_true(r->duration_ms >= row->least_ms);
  assert_true(r->duration_ms <= (uv_hrtime() - before) / 1000000 + 1);
  assert_true(nobody_holds(marker));
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, alive or dead */
  run_free(&run);
}

TEST_WITH(setup, teardown, rows_test) {
  char_auto_t *big = malloc(BIG_BYTES);
  for (size_t i = 0; i < BIG_BYTES; i++)
    big[i] = (char)('a' + i % 23);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    test_row(*state, &rows[i], big);
}

/* --- what the child was given --- */

TEST_WITH(setup, teardown, self_test) {
  static const char *const argv[] = {FAKE, "self", NULL};
  struct fixture *f = *state;
  char cwd[4200], real[4096];
  struct process_spec spec = {.argv = argv, .cwd = f->dir, .envp = f->envp};
  struct run run = {0};
  /* A descriptor that was not made close-on-exec must not reach the child, nor a signal setting. */
  int leak = fcntl(0, F_DUPFD, 50);
  sigset_t usr1, old;
  (void)sigemptyset(&usr1);
  (void)sigaddset(&usr1, SIGUSR1);
  (void)sigprocmask(SIG_BLOCK, &usr1, &old);
  void (*before)(int) = signal(SIGHUP, SIG_IGN);
  run_start(&run, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  (void)signal(SIGHUP, before);
  (void)sigprocmask(SIG_SETMASK, &old, NULL);
  (void)close(leak);
  assert_non_null(realpath(f->dir, real));
  print_into(cwd, sizeof cwd, "session=1 core=0 nnp=1 cwd=%s\n", real);
  assert_true(says(&run.result, cwd));
  assert_true(says(&run.result, "SigBlk:\t0000000000000000\n"));
  const char *ignored = strstr(buf_c(&run.result.out), "SigIgn:");
  assert_non_null(ignored); /* 32 and 33 are the C library's own: posix_spawn ignores them */
  assert_int_equal(strtoull(ignored + strlen("SigIgn:"), NULL, 16) & ~(3ULL << 31), 0);
  assert_true(says(&run.result, "fds: 0 1 2\n"));
  run_free(&run);
}

/* --- many, nested, cancelled at odd moments --- */

TEST_WITH(setup, teardown, many_test) {
  enum { COUNT = 100 };
  static const char *const argv[] = {FAKE, "echo", NULL};
  struct fixture *f = *state;
  struct run *runs = calloc(COUNT, sizeof *runs);
  char texts[COUNT][16];
  for (int i = 0; i < COUNT; i++) {
    print_into(texts[i], sizeof texts[i], "%d", i);
    struct process_spec spec = {
        .argv = argv, .envp = f->envp, .stdin_bytes = texts[i], .stdin_n = strlen(texts[i])};
    run_start(&runs[i], f, &spec);
  }
  assert_int_equal(f->table->processes.count, COUNT);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(runs[i].ended, 1);
    assert_int_equal(runs[i].result.exit_code, 0);
    assert_string_equal(buf_c(&runs[i].result.out), texts[i]);
    run_free(&runs[i]);
  }
  free(runs);
}

/* Shims of several trees are killed at once while others go on untouched. */
TEST_WITH(setup, teardown, lost_among_living_test) {
  enum { COUNT = 20 };
  static const char *const echo[] = {FAKE, "echo", NULL};
  struct fixture *f = *state;
  char marker[512], *text = calloc(1, BIG_BYTES);
  struct run *runs = calloc(COUNT, sizeof *runs);
  print_into(marker, sizeof marker, "%s/marker", f->dir);
  const char *const tree[] = {FAKE, "tree", marker, NULL};
  for (int i = 0; i < COUNT; i++) {
    bool doomed = i % 2 == 0;
    struct process_spec spec = {.argv = doomed ? tree : echo,
                                .envp = f->envp,
                                .stdin_bytes = text,
                                .stdin_n = doomed ? 0 : BIG_BYTES};
    runs[i].kill_on = doomed ? "ready" : NULL;
    run_start(&runs[i], f, &spec);
  }
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(runs[i].ended, 1);
    assert_int_equal(runs[i].result.why, i % 2 == 0 ? PROCESS_END_SHIM_LOST : PROCESS_END_EXITED);
    if (i % 2 != 0)
      assert_int_equal(runs[i].result.out.n, BIG_BYTES);
    run_free(&runs[i]);
  }
  assert_true(nobody_holds(marker));
  free(runs);
  free(text);
}

/* A shim that cannot act (stopped) is killed, and its tree is ended by us. Takes 13 s. */
TEST_ON(struct fixture *f, setup, teardown, stopped_shim_test) {
  struct run run = {.cancel_on = "ready", .stop_shim = true};
  char marker[512];
  const char *long_run = getenv("SEGUE_LONG");
  if (long_run == NULL || strcmp(long_run, "1") != 0)
    skip();
  print_into(marker, sizeof marker, "%s/marker", f->dir);
  const char *const argv[] = {FAKE, "tree", marker, NULL};
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  run_start(&run, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(run.ended, 1);
  assert_int_equal(run.result.why, PROCESS_END_CANCELLED);
  assert_false(run.result.survivors);
  assert_true(nobody_holds(marker));
  run_free(&run);
}

TEST_WITH(setup, teardown, inherited_child_lives_test) {
  static const char *const argv[] = {FAKE, "stall", NULL};
  struct fixture *f = *state;
  struct run run = {.kill_on = "one line"};
  struct err err;
  int hold[2];
  char byte;
  assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
  process_table_free(f->table);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  pid_t child = fork(); /* one that was there before the table */
  if (child == 0) {
    (void)close(hold[1]);
    _exit(read(hold[0], &byte, 1) == 1 ? 42 : 43);
  }
  f->table = process_table_new(&f->loop, &err);
  assert_non_null(f->table);
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  run_start(&run, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(run.result.why, PROCESS_END_SHIM_LOST);
  run_free(&run);
  int status = 0;
  assert_int_equal(write(hold[1], "x", 1), 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 42);
  (void)close(hold[0]);
  (void)close(hold[1]);
}

TEST_WITH(setup, teardown, start_in_on_end_test) {
  static const char *const argv[] = {FAKE, "exit", "0", NULL};
  struct fixture *f = *state;
  struct run second = {0}, first = {.then = &second};
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  run_start(&first, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(second.ended, 1);
  assert_true(says(&second.result, "to stdout"));
  assert_string_equal(buf_c(&second.result.err), "to stderr\n");
  run_free(&first);
  run_free(&second);
}

/* Before the shim said a word, with stdin in flight, twice. */
TEST_WITH(setup, teardown, cancel_at_once_test) {
  static const char *const argv[] = {FAKE, "echo", NULL};
  struct fixture *f = *state;
  struct run run = {0};
  char_auto_t *text = calloc(1, BIG_BYTES);
  struct process_spec spec = {
      .argv = argv, .envp = f->envp, .stdin_bytes = text, .stdin_n = BIG_BYTES};
  run_start(&run, f, &spec);
  process_cancel(run.process);
  assert_int_equal(run.process->state, PROCESS_STATE_ENDING);
  process_cancel(run.process);
  assert_int_equal(run.ended, 0);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(run.ended, 1);
  assert_int_equal(run.result.why, PROCESS_END_CANCELLED);
  run_free(&run);
}

/* A cancelled program that could not be executed stays cancelled. */
TEST_WITH(setup, teardown, cancel_then_exec_failed_test) {
  static const char *const argv[] = {"/nonexistent/agent", NULL};
  struct fixture *f = *state;
  struct run run = {0};
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  run_start(&run, f, &spec);
  process_cancel(run.process);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(run.result.why, PROCESS_END_CANCELLED);
  assert_int_equal(run.result.exec_errno, ENOENT);
  assert_false(run.result.started);
  run_free(&run);
}

/* With our own 0, 1 and 2 closed the pipes get low numbers, which the shim's must not overwrite. */
TEST_WITH(setup, teardown, low_descriptors_test) {
  static const char *const argv[] = {FAKE, "echo", NULL};
  struct fixture *f = *state;
  struct run run = {0};
  struct process_spec spec = {.argv = argv, .envp = f->envp, .stdin_bytes = "low", .stdin_n = 3};
  int kept[3];
  for (int fd = 0; fd < 3; fd++) {
    kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    (void)close(fd);
  }
  run_start(&run, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  for (int fd = 0; fd < 3; fd++) {
    if (kept[fd] < 0)
      continue;
    (void)dup2(kept[fd], fd);
    (void)close(kept[fd]);
  }
  assert_string_equal(buf_c(&run.result.out), "low");
  assert_int_equal(run.result.exit_code, 0);
  run_free(&run);
}

/* --- what cannot start --- */

static void never(void *ctx, struct process_result *result) {
  (void)ctx;
  (void)result;
  fail_msg("on_end of a process that was not started");
}

/* posix_spawn's child tells its error through shared memory, which valgrind does not share. */
static bool spawn_tells(void) {
  char name[] = "none", *argv[] = {name, NULL}, *envp[] = {NULL};
  pid_t pid;
  if (posix_spawn(&pid, "/nonexistent", NULL, NULL, argv, envp) != 0)
    return true;
  (void)waitpid(pid, NULL, 0);
  return false;
}

TEST_WITH(setup, teardown, bad_cwd_test) {
  static const char *const argv[] = {FAKE, "exit", "0", NULL};
  struct fixture *f = *state;
  struct err err = {0};
  char file[600];
  print_into(file, sizeof file, "%s/file", f->dir);
  int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  (void)close(fd);
  const struct {
    const char *cwd, *text;
  } bad[] = {{"/nonexistent/dir", "No such file or directory"}, {file, "Not a directory"}};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    struct process_spec spec = {.argv = argv, .cwd = bad[i].cwd, .envp = f->envp};
    assert_null(process_start(f->table, &spec, NULL, never, NULL, &err));
    assert_non_null(strstr(err.text, "working directory"));
    assert_non_null(strstr(err.text, bad[i].cwd));
    assert_non_null(strstr(err.text, bad[i].text));
  }
  if (geteuid() != 0 && spawn_tells()) { /* root may enter anything */
    print_into(file, sizeof file, "%s/locked", f->dir);
    assert_int_equal(mkdir(file, 0600), 0);
    struct process_spec spec = {.argv = argv, .cwd = file, .envp = f->envp};
    assert_null(process_start(f->table, &spec, NULL, never, NULL, &err));
    assert_non_null(strstr(err.text, "working directory"));
    assert_non_null(strstr(err.text, "Permission denied"));
  }
  assert_int_equal(f->table->processes.count, 0);
}

TEST_WITH(setup, teardown, too_long_test) {
  if (!spawn_tells())
    skip();
  struct fixture *f = *state;
  struct err err = {0};
  char_auto_t *huge = malloc(BIG_BYTES);
  memset(huge, 'x', BIG_BYTES);
  huge[BIG_BYTES - 1] = '\0';
  const char *argv[] = {FAKE, huge, NULL};
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  assert_null(process_start(f->table, &spec, NULL, never, NULL, &err));
  assert_int_equal(err.code, ERR_LIMIT);
}

TEST_WITH(setup, teardown, no_descriptors_test) {
  static const char *const argv[] = {FAKE, "exit", "0", NULL};
  enum { MANY = 256 };
  struct fixture *f = *state;
  struct err err = {0};
  struct process_spec spec = {.argv = argv, .envp = f->envp, .stdin_bytes = "x", .stdin_n = 1};
  int fds[MANY];
  struct rlimit limit, low;
  (void)getrlimit(RLIMIT_NOFILE, &limit);
  low = limit;
  low.rlim_cur = MANY;
  (void)setrlimit(RLIMIT_NOFILE, &low);
  int n = 0;
  while (n < MANY && (fds[n] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0)
    n++;
  bool started = false;
  for (int left = 0; left < 8 && n > 0; left++) { /* with 0, 1, 2 ... left: each pipe fails once */
    started = process_start(f->table, &spec, NULL, never, NULL, &err) != NULL;
    assert_false(started);
    assert_non_null(strstr(err.text, "Too many open files"));
    (void)close(fds[--n]);
  }
  while (n > 0)
    (void)close(fds[--n]);
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_ON(struct fixture *f, setup, teardown, no_shim_test) {
  struct err err = {0};
  process_table_free(f->table);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(setenv("SEGUE_SHIM", "/nonexistent/shim", 1), 0);
  assert_null(process_table_new(&f->loop, &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "segue-shim"));
  assert_int_equal(setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1), 0);
  f->table = process_table_new(&f->loop, &err);
  assert_non_null(f->table);
}

TEST_WITH(setup, teardown, spawn_fault_test) {
#ifdef SEGUE_FAULTS
  static const char *const argv[] = {FAKE, "exit", "0", NULL};
  struct fixture *f = *state;
  struct err err = {0};
  struct run run = {0};
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  assert_int_equal(setenv("SEGUE_FAULT", "fail:spawn:1", 1), 0);
  assert_null(process_start(f->table, &spec, NULL, never, NULL, &err));
  assert_int_equal(err.code, ERR_IO);
  run_start(&run, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
  assert_int_equal(run.result.exit_code, 0);
  run_free(&run);
#else
  skip();
#endif
}

/* --- listing children --- */

struct pids {
  pid_t pid[8];
  size_t n;
};

static void note_pid(void *ctx, pid_t pid) {
  struct pids *pids = ctx;
  if (pids->n < ARRAY_LEN(pids->pid))
    pids->pid[pids->n++] = pid;
}

TEST_WITH(setup, teardown, children_test) {
  struct pids by_thread = {0}, by_scan = {0};
  int hold[2];
  char byte;
  assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
  for (int i = 0; i < 3; i++) {
    if (fork() == 0) {
      (void)close(hold[1]);
      _exit((int)read(hold[0], &byte, 1));
    }
  }
  if (!shim_children_of_thread(getpid(), note_pid, &by_thread))
    print_message("         this kernel has no children files\n");
  else
    assert_int_equal(by_thread.n, 3);
  assert_true(shim_children_by_scan(note_pid, &by_scan));
  assert_int_equal(by_scan.n, 3);
  for (size_t i = 0; i < by_thread.n; i++) {
    bool found = false;
    for (size_t j = 0; j < by_scan.n; j++)
      found = found || by_scan.pid[j] == by_thread.pid[i];
    assert_true(found);
  }
  (void)close(hold[0]);
  (void)close(hold[1]);
  for (size_t i = 0; i < by_scan.n; i++)
    assert_int_equal(waitpid(by_scan.pid[i], NULL, 0), by_scan.pid[i]);
  assert_int_equal(shim_parent_of(getpid()), getppid());
}

/* --- environment --- */

static const char *env_get(const char *const *envp, const char *name, size_t *count) {
  const char *value = NULL;
  *count = 0;
  for (; *envp != NULL; envp++)
    if (strncmp(*envp, name, strlen(name)) == 0 && (*envp)[strlen(name)] == '=') {
      value = *envp + strlen(name) + 1;
      ++*count;
    }
  return value;
}

TEST(only_absolute_folders_are_searched) {
  buf_auto_t path = {0};
  DATA_ROWS("os/process/only_absolute_folders_are_searched.yaml", c, given, searched) {
    process_search_path(c.given, &path);
    assert_string_equal(buf_c(&path), c.searched);
  }
}

TEST_WITH(setup, teardown, env_test) {
  static const char *const ours[][2] = {
      {"SEGUE_TEST_SECRET", "s"}, {"NOTIFY_SOCKET", "@n"}, {"LISTEN_FDS", "3"}, {"TZ", "UTC"},
      {"AGENT_KEY", "k"},         {"UNDECLARED_KEY", "u"}, {"TERM", "xterm"},   {"EMPTY_VAR", ""}};
  static const char *const extra[] = {
      "AGENT_KEY",        "SEGUE_TEST_SECRET", "NOTIFY_SOCKET", "LISTEN_FDS",
      "NOT_SET_ANYWHERE", "EMPTY_VAR",         "AGENT_KEY",     NULL};
  static const char *const assigned[] = {"HOME=/own/home", "AGENT_MODE=a=b", "SEGUE_DEPTH=1",
                                         "AGENT_MODE=c=d", "NOTHING=",       NULL};
  AUTO(arena_deinit) struct arena arena = {0};
  struct err err = {0};
  size_t count;
  for (size_t i = 0; i < ARRAY_LEN(ours); i++)
    assert_int_equal(setenv(ours[i][0], ours[i][1], 1), 0);
  const char *const *envp = process_env_build(&arena, "/own/tmp", extra, assigned, &err);
  assert_non_null(envp);
  DATA_ROWS("os/process/env_test.yaml", c, name, value) {
    const char *value = env_get(envp, c.name, &count);
    if (c.value == NULL) {
      assert_null(value);
      continue;
    }
    assert_non_null(value);
    assert_string_equal(value, c.value);
    assert_int_equal(count, 1);
  }
  assert_non_null(env_get(envp, "PATH", &count));
  envp = process_env_build(&arena, NULL, NULL, NULL, &err);
  assert_non_null(envp);
  assert_null(env_get(envp, "TMPDIR", &count));
  assert_null(env_get(envp, "AGENT_KEY", &count));

  static const char *const bad_names[][2] = {{"", NULL}, {"A=b", NULL}};
  static const char *const bad_assignments[][2] = {{"A", NULL}, {"=b", NULL}, {"", NULL}};
  for (size_t i = 0; i < ARRAY_LEN(bad_names); i++) {
    assert_null(process_env_build(&arena, NULL, bad_names[i], NULL, &err));
    assert_int_equal(err.code, ERR_INVALID);
  }
  for (size_t i = 0; i < ARRAY_LEN(bad_assignments); i++) {
    assert_null(process_env_build(&arena, NULL, NULL, bad_assignments[i], &err));
    assert_int_equal(err.code, ERR_INVALID);
  }
  for (size_t i = 0; i < ARRAY_LEN(ours); i++)
    (void)unsetenv(ours[i][0]);
}

/* The child sees exactly what was built. */
TEST_WITH(setup, teardown, env_arrives_test) {
  static const char *const argv[] = {FAKE, "env", NULL};
  struct fixture *f = *state;
  struct run run = {0};
  buf_auto_t all = {0};
  for (size_t i = 0; f->envp[i] != NULL; i++) {
    buf_puts(&all, f->envp[i]);
    buf_putc(&all, '\n');
  }
  struct process_spec spec = {.argv = argv, .envp = f->envp};
  run_start(&run, f, &spec);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_string_equal(buf_c(&run.result.out), buf_c(&all));
  run_free(&run);
}

/* --- tmpdir --- */

/* A name that others may write in, or made before us, is left alone. */
TEST_ON(struct fixture *f, setup, teardown, tmpdir_of_others_test) {
  struct err err = {0};
  struct stat st;
  char name[600];
  const char *old = getenv("TMPDIR");
  char_auto_t *saved = old != NULL ? strdup(old) : NULL;
  assert_int_equal(setenv("TMPDIR", f->dir, 1), 0);
  print_into(name, sizeof name, "%s/segue-%ld.tmp", f->dir, (long)geteuid());
  for (int i = 0; i < 3; i++) {
    if (i == 0) {
      assert_int_equal(symlink("/", name), 0);
    } else if (i == 1) {
      assert_int_equal(mkdir(name, 0700), 0);
      assert_int_equal(chmod(name, 0777), 0);
    }
    char *path = tmpdir_make_named("segue-mine", &err);
    assert_non_null(path);
    assert_int_equal(strncmp(path, name, strlen(name)) == 0, i == 2);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_true(tmpdir_remove(path, &err));
    free(path);
    if (i < 2)
      assert_int_equal(i == 0 ? unlink(name) : rmdir(name), 0);
  }
  tmpdir_leave();
  assert_int_equal(lstat(name, &st), -1);
  assert_int_equal(saved != NULL ? setenv("TMPDIR", saved, 1) : unsetenv("TMPDIR"), 0);
}

static void make_file(int dir, const char *name) {
  int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  (void)close(fd);
}

TEST_ON(struct fixture *f, setup, teardown, tmpdir_test) {
  struct err err = {0};
  struct stat st;
  char outside[600];
  const char *old = getenv("TMPDIR");
  char_auto_t *saved = old != NULL ? strdup(old) : NULL;
  assert_int_equal(setenv("TMPDIR", f->dir, 1), 0);
  char *path = tmpdir_make(&err);
  assert_non_null(path);
  assert_int_equal(strncmp(path, f->dir, strlen(f->dir)), 0);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0700);

  /* The folder above has one name of ours in it, whatever is made and removed. */
  char *other = tmpdir_make_named("segue-other", &err), above[600];
  assert_non_null(other);
  print_into(above, sizeof above, "%s/segue-%ld.tmp", f->dir, (long)geteuid());
  assert_int_equal(strncmp(path, above, strlen(above)), 0);
  assert_int_equal(strncmp(other, above, strlen(above)), 0);
  tmpdir_leave();
  assert_int_equal(stat(path, &st), 0); /* it is in use */
  assert_true(tmpdir_remove(other, &err));
  free(other);

  /* Files that may not be touched, and links to it from inside. */
  print_into(outside, sizeof outside, "%s/outside", f->dir);
  assert_int_equal(mkdir(outside, 0700), 0);
  int out = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  make_file(out, "precious");
  int in = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal(symlinkat(outside, in, "link-to-dir"), 0);
  assert_int_equal(symlinkat("/nonexistent", in, "dangling"), 0);
  assert_int_equal(linkat(out, "precious", in, "hard-link", 0), 0);
  make_file(in, "file");
  assert_int_equal(mkdirat(in, "deep", 0700), 0);
  int deep = openat(in, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  make_file(deep, "inside");
  assert_int_equal(mkfifoat(in, "fifo", 0600), 0);
  assert_int_equal(mkdirat(in, "locked", 0700), 0);
  int locked = openat(in, "locked", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  make_file(locked, "unreachable");
  assert_int_equal(fchmod(locked, 0), 0);
  assert_int_equal(fchmod(deep, 0500), 0);
  (void)close(deep);
  (void)close(locked);
  (void)close(in);
  if (!tmpdir_remove(path, &err))
    fail_msg("%s", err.text);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(faccessat(out, "precious", F_OK, 0), 0);
  (void)close(out);
  assert_true(tmpdir_remove(path, &err)); /* gone already: fine */
  free(path);

  /* A link in the place of the directory is not followed. */
  char link[600];
  print_into(link, sizeof link, "%s/link", f->dir);
  assert_int_equal(symlink(outside, link), 0);
  assert_false(tmpdir_remove(link, &err));
  assert_int_equal(access(outside, F_OK), 0);

  assert_int_equal(setenv("TMPDIR", "/nonexistent/tmp", 1), 0);
  assert_null(tmpdir_make(&err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "/nonexistent/tmp"));
  assert_int_equal(saved != NULL ? setenv("TMPDIR", saved, 1) : unsetenv("TMPDIR"), 0);
}

TEST_ON(struct fixture *f, setup, teardown, tmpdir_deep_test) {
  struct err err = {0};
  int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int at = fd;
  for (unsigned i = 0; i < 5 * LIMIT_TMPDIR_DEPTH; i++) {
    assert_int_equal(mkdirat(at, "d", 0700), 0);
    int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(next >= 0);
    make_file(next, "beside");
    assert_int_equal(mkdirat(next, "segue-deep-0", 0), 0); /* the name of one that was moved */
    if (at != fd)
      (void)close(at);
    at = next;
  }
  (void)close(at);
  (void)close(fd);
  if (!tmpdir_remove(f->dir, &err))
    fail_msg("%s", err.text);
  assert_int_equal(mkdir(f->dir, 0700), 0); /* teardown wants it */
}

/* --- a stall is the program's own silence --- */

struct frozen {
  struct run run;
  uv_timer_t timer;
  uint64_t sleep_ms; /* we do not run for so long; 0: the program is continued */
};

static void on_frozen(uv_timer_t *timer) {
  struct frozen *frozen = timer->data;
  struct tree_work work;
  if (frozen->sleep_ms > 0) {
    (void)usleep((useconds_t)frozen->sleep_ms * 1000);
  } else {
    process_measure(frozen->run.process, &work);
    assert_int_equal(work.stopped, 1);
    char path[64], line[64] = {0};
    print_into(path, sizeof path, "/proc/%d/task/%d/children", (int)frozen->run.process->shim,
               (int)frozen->run.process->shim);
    FILE *children = fopen(path, "r");
    assert_non_null(children);
    assert_non_null(fgets(line, sizeof line, children));
    (void)fclose(children);
    assert_int_equal(kill((pid_t)strtol(line, NULL, 10), SIGCONT), 0);
  }
  uv_close((uv_handle_t *)timer, NULL);
}

/* The whole tree was stopped, or we were: neither is the program's silence. */
TEST_WITH(setup, teardown, a_frozen_tree_does_not_stall) {
  static const struct {
    const char *program;
    uint64_t stall_ms, at_ms, sleep_ms;
  } cases[] = {{"echo $$; kill -STOP $$; echo back", 1500, 4000, 0},
               {"echo a line; sleep 3.6; echo back", 2000, 100, 3200}};
  struct fixture *f = *state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const char *const argv[] = {"/bin/sh", "-c", cases[i].program, NULL};
    struct process_spec spec = {
        .argv = argv, .cwd = f->dir, .envp = f->envp, .stall_ms = cases[i].stall_ms};
    struct frozen frozen = {.sleep_ms = cases[i].sleep_ms};
    run_start(&frozen.run, f, &spec);
    frozen.timer.data = &frozen;
    assert_int_equal(uv_timer_init(&f->loop, &frozen.timer), 0);
    assert_int_equal(uv_timer_start(&frozen.timer, on_frozen, cases[i].at_ms, 0), 0);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_string_equal(process_end_name(frozen.run.result.why), "exited");
    assert_true(says(&frozen.run.result, "back\n"));
    run_free(&frozen.run);
  }
}

TEST_GROUP(warm_up, NULL)
