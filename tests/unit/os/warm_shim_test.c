/* Starts programs with shims that stood by for them (through the real shim), and asks what becomes
 * of those that nobody needs. Skipped where the kernel has no Landlock. */

#include "base/memory.h"
#include "os/clock.h"
#include "os/lease.h"
#include "os/loop.h"
#include "os/process_internal.h"
#include "os/sandbox.h"
#include "os/sandbox_rules.h"
#include "support/folder.h"
#include "support/test.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SESSION "0197f6a0-1c2d-7e3f-8a4b-5c6d7e8f9012"
#define OTHER   "0197f6a0-1c2d-7e3f-8a4b-5c6d7e8f9013"

static const struct str key = STR("key");

struct fixture {
  uv_loop_t loop;
  struct process_table *table;
  struct ruleset_cache *kept;
  char *dir, *tmp; /* what is confined, and what the table's folders are made in */
  char own[300];   /* the next call's folder */
  struct sandbox_plan plan;
  const char *reads[7], *hides[2], *writes[3];
  struct process_result result;
};

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err;
  char *hidden, *shared;
  (void)setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1);
  f->dir = folder_make();
  f->tmp = strdup(folder_path(f->dir, "tmp"));
  hidden = strdup(folder_path(f->dir, "home/hidden"));
  shared = strdup(folder_path(f->dir, "shared"));
  folder_put(f->dir, "home/a", STR("x"));
  folder_put(f->dir, "tmp/first/a", STR("x"));
  folder_put(f->dir, "shared/a", STR("x"));
  (void)setenv("TMPDIR", f->tmp, 1);
  print_into(f->own, sizeof f->own, "%s/first", f->tmp);
  const char *const reads[] = {"/usr", "/bin", "/lib", "/lib64", "/proc", f->dir, NULL};
  memcpy(f->reads, reads, sizeof reads);
  f->hides[0] = hidden;
  f->writes[0] = shared;
  f->writes[1] = "/dev/null";
  f->plan = (struct sandbox_plan){
      .reads = f->reads, .hides = f->hides, .writes = f->writes, .own = f->own, .lists = true};
  if (!loop_init(&f->loop, &err) || (f->table = process_table_new(&f->loop, &err)) == NULL)
    return -1;
  f->kept = ruleset_cache_new(f->table);
  *state = f;
  return 0;
}

static void end_table(struct fixture *f) {
  ruleset_cache_free(f->kept);
  f->kept = NULL;
  process_table_free(f->table);
  f->table = NULL;
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
}

/* Everything ends with the table: no child lives on, and no folder is left. */
static int teardown(void **state) {
  struct fixture *f = *state;
  end_table(f);
  int left = uv_loop_close(&f->loop);
  while (waitpid(-1, NULL, 0) > 0)
    ; /* orphans of a killed shim */
  tmpdir_leave();
  char *shared = strdup(folder_path(f->tmp, "segue-0.tmp"));
  assert_int_equal(access(shared, F_OK), -1);
  free(shared);
  (void)unsetenv("TMPDIR");
  folder_remove(f->dir);
  free((char *)(uintptr_t)f->hides[0]);
  free((char *)(uintptr_t)f->writes[0]);
  free(f->tmp);
  free(f);
  return left;
}

static struct warm_shim *first(const struct fixture *f) {
  return LIST_FIRST(struct warm_shim, in_table, &f->table->standbys);
}

/* Makes a new own folder for a call, and asks for the sandbox that others had before. */
static struct sandbox *ask(struct fixture *f, const char *session) {
  static unsigned number;
  print_into(f->own, sizeof f->own, "%s/call-%u", f->tmp, number++);
  assert_int_equal(mkdir(f->own, 0700), 0);
  return sandbox_again(f->kept, key, f->own, session);
}

static bool is_waiting(pid_t shim) {
  char path[64], name[32] = "";
  print_into(path, sizeof path, "/proc/%d/comm", (int)shim);
  FILE *file = fopen(path, "r");
  bool read = file != NULL && fgets(name, sizeof name, file) != NULL;
  if (file != NULL)
    (void)fclose(file);
  return read && strcmp(name, "segue-holds\n") == 0;
}

static void on_end(void *ctx, struct process_result *result) {
  struct fixture *f = ctx;
  f->result = *result;
  result->out = result->err = (struct buf){0};
}

static void clear(struct fixture *f) {
  buf_deinit(&f->result.out);
  buf_deinit(&f->result.err);
  f->result = (struct process_result){0};
}

static const char *environment[] = {"PATH=/usr/bin:/bin", "SEGUE_SESSION=" SESSION, NULL, NULL,
                                    NULL};

static struct process *start(struct fixture *f, struct sandbox *owned, struct process_spec *spec,
                             const char *line) {
  static char own[320];
  const char *const argv[] = {"sh", "-c", line, "name", "", "two words", NULL};
  struct err err;
  print_into(own, sizeof own, "OWN=%s", f->own);
  environment[2] = own;
  spec->argv = spec->argv != NULL ? spec->argv : argv;
  spec->envp = environment;
  spec->sandbox = owned;
  struct process *p = process_start(f->table, spec, NULL, on_end, f, &err);
  sandbox_free(owned);
  return p;
}

/* Runs a shell's line; its standard output is in the result. */
static void run(struct fixture *f, struct sandbox *owned, struct process_spec spec,
                const char *line) {
  assert_non_null(start(f, owned, &spec, line));
  while (f->table->processes.count > 0)
    (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_int_equal(f->result.why, PROCESS_END_EXITED);
}

/* Runs a program as the session's last call did, until a shim stands by for the next. */
static pid_t stand_by(struct fixture *f) {
  struct sandbox *s = NULL;
  struct err err;
  while (s == NULL) { /* folders must have had their times for a moment */
    sandbox_free(sandbox_new(f->kept, key, &f->plan, &err));
    s = ask(f, SESSION);
  }
  run(f, s, (struct process_spec){0}, "true");
  clear(f);
  while (first(f) == NULL || first(f)->state != WARM_SHIM_READY || !is_waiting(first(f)->shim))
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
  return first(f)->shim;
}

/* Does it run under this shim? */
static bool ran_under(struct fixture *f, pid_t shim, struct sandbox *owned) {
  char pid[32];
  run(f, owned, (struct process_spec){0}, "echo $PPID");
  print_into(pid, sizeof pid, "%d\n", (int)shim);
  bool same = f->result.out.n == strlen(pid) && memcmp(f->result.out.p, pid, strlen(pid)) == 0;
  clear(f);
  return same;
}

static void told(const struct fixture *f, const char *words) {
  assert_int_equal(f->result.out.n, strlen(words));
  assert_memory_equal(f->result.out.p, words, strlen(words));
  assert_int_equal(f->result.exit_code, 0);
}

TEST_ON(struct fixture *f, setup, teardown, the_next_call_has_a_shim_that_stood_by) {
  for (int i = 0; i < 3; i++) {
    pid_t shim = stand_by(f);
    assert_true(ran_under(f, shim, ask(f, SESSION)));
  }
}

TEST_ON(struct fixture *f, setup, teardown, the_program_gets_all_that_it_is_told) {
  pid_t shim = stand_by(f);
  char *home = strdup(folder_path(f->dir, "home")), ppid[64];
  print_into(ppid, sizeof ppid, "%d ", (int)shim);
  run(f, ask(f, SESSION), (struct process_spec){.cwd = home, .stdin_bytes = "in\n", .stdin_n = 3},
      "echo \"$PPID $# $0 $1 $2 $SEGUE_SESSION $(basename \"$PWD\") $(ls) $(cat)\"; env | wc -l;"
      " ls /proc/self/fd | wc -l; echo told >&2");
  char words[256];
  print_into(words, sizeof words, "%d 2 name  two words %s home a in\n4\n4\n", (int)shim, SESSION);
  told(f, words);
  assert_int_equal(f->result.err.n, sizeof "told\n" - 1);
  clear(f);
  free(home);
}

TEST_ON(struct fixture *f, setup, teardown, it_is_confined_as_any_other) {
  (void)stand_by(f);
  (void)setenv("D", f->dir, 1);
  struct process_spec spec = {.cwd = f->dir};
  run(f, ask(f, SESSION), spec,
      "echo y > $OWN/a && cat $OWN/a && echo y > shared/b && cat home/a &&"
      " for i in home tmp/first .; do ! (echo y > $i/b) || echo $i; done 2>/dev/null &&"
      " ! cat /etc/hostname 2>/dev/null && grep -c 'NoNewPrivs:.1' /proc/self/status &&"
      " grep Seccomp: /proc/self/status | cut -f2");
  told(f, "y\nx1\n2\n");
  clear(f);
}

TEST_ON(struct fixture *f, setup, teardown, it_has_the_limits_of_its_call) {
  pid_t shim = stand_by(f);
  const struct process_spec spec = {
      .limits = {.memory_bytes = 256u << 20, .pids = 100, .milli_cpus = 1000}};
  run(f, ask(f, SESSION), spec, "ulimit -d; nproc; echo $PPID; ulimit -c");
  char words[64];
  print_into(words, sizeof words, "262144\n1\n%d\n0\n", (int)shim);
  told(f, words);
  clear(f);
}

TEST_ON(struct fixture *f, setup, teardown, a_large_environment_is_no_matter) {
  enum { LARGE = 100000 };
  char_auto_t *large = malloc(LARGE + 1);
  (void)stand_by(f);
  memset(large, 'x', LARGE);
  memcpy(large, "L=", 2);
  large[LARGE] = '\0';
  environment[3] = large;
  run(f, ask(f, SESSION), (struct process_spec){0}, "echo ${#L}");
  told(f, "99998\n");
  clear(f);
  environment[3] = NULL;
}

/* How the child says why it did not become the program. */
TEST_ON(struct fixture *f, setup, teardown, a_missing_program_is_told) {
  const char *const argv[] = {"no-such-program-here", NULL};
  char why[160];
  (void)stand_by(f);
  struct process_spec spec = {.argv = argv};
  assert_non_null(start(f, ask(f, SESSION), &spec, NULL));
  while (f->table->processes.count > 0)
    (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_int_equal(f->result.why, PROCESS_END_EXEC_FAILED);
  assert_false(f->result.unheld);
  assert_false(process_why_not(&f->result, argv[0], NULL, why, sizeof why));
  assert_string_equal(why, "there is no such program in PATH");
  clear(f);
}

/* It is refused as posix_spawn would refuse it. */
TEST_ON(struct fixture *f, setup, teardown, words_that_are_too_long_are_told) {
  enum { LONG = 200000 };
  char_auto_t *long_word = malloc(LONG + 1);
  memset(long_word, 'x', LONG);
  long_word[LONG] = '\0';
  const char *const argv[] = {"true", long_word, NULL};
  const struct process_spec plain = {.argv = argv, .envp = environment};
  struct err err, alike;
  (void)stand_by(f);
  struct process_spec spec = plain;
  spec.sandbox = ask(f, SESSION);
  assert_null(process_start(f->table, &spec, NULL, on_end, f, &err));
  sandbox_free(spec.sandbox);
  assert_null(process_start(f->table, &plain, NULL, on_end, f, &alike));
  assert_string_equal(err.text, alike.text);
}

TEST_ON(struct fixture *f, setup, teardown, a_folder_that_is_not_there_is_told) {
  char *cwd = strdup(folder_path(f->dir, "nowhere"));
  (void)stand_by(f);
  struct process_spec spec = {.cwd = cwd};
  assert_null(start(f, ask(f, SESSION), &spec, "true"));
  free(cwd);
}

TEST_ON(struct fixture *f, setup, teardown, a_call_may_be_cancelled_at_once) {
  (void)stand_by(f);
  struct process_spec spec = {0};
  process_cancel(start(f, ask(f, SESSION), &spec, "trap '' TERM; sleep 600"));
  while (f->table->processes.count > 0)
    (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_int_equal(f->result.why, PROCESS_END_CANCELLED);
  clear(f);
}

TEST_ON(struct fixture *f, setup, teardown, another_session_has_no_use_of_it) {
  pid_t shim = stand_by(f);
  assert_false(ran_under(f, shim, ask(f, OTHER)));
  assert_true(ran_under(f, shim, ask(f, SESSION)));
}

TEST_ON(struct fixture *f, setup, teardown, a_call_whose_folder_has_a_file_has_no_use_of_it) {
  pid_t shim = stand_by(f);
  char *file;
  print_into(f->own, sizeof f->own, "%s/first", f->tmp);
  file = strdup(folder_path(f->tmp, "first/a"));
  assert_false(ran_under(f, shim, sandbox_again(f->kept, key, f->own, SESSION)));
  assert_int_equal(access(file, F_OK), 0);
  free(file);
  assert_false(ran_under(f, shim, ask(f, SESSION))); /* and none is made for its kind again */
  while (first(f) != NULL) {
    run(f, NULL, (struct process_spec){0}, "true");
    clear(f);
  }
}

/* Its child has the rules of before: what is a secret since must stay one. */
TEST_ON(struct fixture *f, setup, teardown, a_change_ends_it) {
  pid_t shim = stand_by(f);
  folder_put(f->dir, "home/hidden", STR("x"));
  assert_null(ask(f, SESSION));
  while (first(f) != NULL) { /* the loop runs with each program */
    run(f, NULL, (struct process_spec){0}, "true");
    clear(f);
  }
  assert_int_equal(kill(shim, 0), -1);
}

TEST_ON(struct fixture *f, setup, teardown, it_ends_with_its_session) {
  pid_t shim = stand_by(f);
  ruleset_cache_forget(f->kept, OTHER);
  assert_int_equal(first(f)->state, WARM_SHIM_READY);
  ruleset_cache_forget(f->kept, SESSION);
  assert_true(first(f) == NULL || first(f)->state == WARM_SHIM_ENDING);
  while (first(f) != NULL) {
    run(f, NULL, (struct process_spec){0}, "true");
    clear(f);
  }
  assert_int_equal(kill(shim, 0), -1);
}

TEST_ON(struct fixture *f, setup, teardown, one_that_was_killed_is_not_used) {
  pid_t shim = stand_by(f);
  struct pollfd exited = {.fd = first(f)->pidfd, .events = POLLIN};
  char_auto_t *folder = strdup(first(f)->folder);
  assert_int_equal(kill(shim, SIGKILL), 0);
  assert_int_equal(poll(&exited, 1, -1), 1);
  assert_false(ran_under(f, shim, ask(f, SESSION)));
  assert_int_equal(access(folder, F_OK), -1);
}

TEST_ON(struct fixture *f, setup, teardown, one_that_was_stopped_goes_on) {
  pid_t shim = stand_by(f);
  siginfo_t info;
  assert_int_equal(kill(shim, SIGSTOP), 0);
  assert_int_equal(waitid(P_PID, (id_t)shim, &info, WSTOPPED | WNOWAIT), 0);
  assert_true(ran_under(f, shim, ask(f, SESSION)));
}

/* The shim has its name before it has forked. */
static pid_t child_of(pid_t shim) {
  char path[80];
  int child = 0;
  print_into(path, sizeof path, "/proc/%d/task/%d/children", (int)shim, (int)shim);
  while (child == 0) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    if (fscanf(file, "%d", &child) != 1)
      (void)sched_yield();
    (void)fclose(file);
  }
  return child;
}

TEST_ON(struct fixture *f, setup, teardown, a_child_that_was_stopped_goes_on) {
  pid_t shim = stand_by(f);
  assert_int_equal(kill(child_of(shim), SIGSTOP), 0);
  assert_true(ran_under(f, shim, ask(f, SESSION)));
}

/* A signal that the child keeps would be its program's. */
TEST_ON(struct fixture *f, setup, teardown, a_child_that_was_told_to_end_is_not_used) {
  pid_t shim = stand_by(f);
  struct pollfd exited = {.fd = first(f)->pidfd, .events = POLLIN};
  assert_int_equal(kill(child_of(shim), SIGTERM), 0);
  assert_int_equal(poll(&exited, 1, -1), 1);
  assert_false(ran_under(f, shim, ask(f, SESSION)));
}

/* A renewal after an outage begins a new term; what only waited is not of the old one. */
/* A child of this test has one stand by, and is killed. */
TEST_ON(struct fixture *f, setup, teardown, it_ends_when_segue_is_killed) {
  int ends[2];
  pid_t shim = 0;
  assert_int_equal(pipe(ends), 0);
  end_table(f);
  assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  pid_t pid = fork();
  if (pid == 0) {
    struct err err;
    f->table = loop_init(&f->loop, &err) ? process_table_new(&f->loop, &err) : NULL;
    f->kept = ruleset_cache_new(f->table);
    shim = stand_by(f);
    (void)!write(ends[1], &shim, sizeof shim);
    (void)raise(SIGKILL);
  }
  assert_int_equal(read(ends[0], &shim, sizeof shim), sizeof shim);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  assert_int_equal(waitpid(shim, NULL, 0), shim); /* now ours */
  assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
  assert_int_equal(close(ends[0]), 0);
  assert_int_equal(close(ends[1]), 0);
  struct err err;
  f->table = process_table_new(&f->loop, &err);
  assert_non_null(f->table);
}

TEST_ON(struct fixture *f, setup, teardown, the_table_ends_one_that_is_being_made) {
  (void)stand_by(f);
  struct process_spec spec = {0};
  assert_non_null(start(f, ask(f, SESSION), &spec, "true"));
  while (first(f) == NULL || f->table->processes.count > 0)
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
  clear(f);
}

static int needs_kernel(void **state) {
  (void)state;
  if (sandbox_version() < 6 || !sandbox_filters()) {
    (void)printf("skipped: this kernel's Landlock (version %d) does not hold it all\n",
                 sandbox_version());
    exit(0);
  }
  int pidfd = pidfd_open(getpid(), 0);
  if (pidfd < 0) {
    (void)printf("skipped: no pidfd here, so nothing stands by\n");
    exit(0);
  }
  (void)close(pidfd);
  return 0;
}

/* The last: leases stay. */
TEST_ON(struct fixture *f, setup, teardown, it_is_of_the_term_in_which_it_is_told) {
  struct err err;
  assert_true(lease_open(&err));
  lease_begin(clock_boot_ms() + 3600000);
  pid_t shim = stand_by(f);
  lease_begin(clock_boot_ms() + 3600000);
  assert_true(ran_under(f, shim, ask(f, SESSION)));
  (void)stand_by(f);
  struct process_spec spec = {0};
  lease_begin(clock_boot_ms() + 300);
  assert_non_null(start(f, ask(f, SESSION), &spec, "sleep 600"));
  while (f->table->processes.count > 0)
    (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_int_equal(f->result.why, PROCESS_END_SHIM_LOST);
  clear(f);
}

TEST_GROUP(needs_kernel, NULL)
