/* A lease of programs: a shim kills its tree when it is over, and that is no end of the program's
 * own, also where the lease is prolonged just then. */

#include "os/clock.h"
#include "os/lease.h"
#include "os/orphans.h"
#include "os/process.h"
#include "support/test.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(void *ctx, struct process_result *result) {
  struct process_result *out = ctx;
  *out = *result;
  *result = (struct process_result){0};
}

/* lives: for so long the lease does, beside a program that ends at once or never. */
static enum process_end end_of(const char *line, uint64_t lives_ms) {
  const char *const argv[] = {"/bin/sh", "-c", line, NULL}, *const envp[] = {"PATH=/usr/bin:/bin",
                                                                             NULL};
  const struct process_spec spec = {.argv = argv, .envp = envp};
  struct process_result result = {0};
  struct process_table *table;
  struct err err;
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  table = process_table_new(&loop, &err);
  assert_non_null(table);
  lease_begin(clock_boot_ms() + lives_ms);
  assert_non_null(process_start(table, &spec, NULL, on_end, &result, &err));
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  assert_false(result.survivors);
  buf_deinit(&result.out);
  buf_deinit(&result.err);
  process_table_free(table);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
  return result.why;
}

TEST(a_lease_that_ends_is_no_exit) {
  struct err err;
  assert_true(lease_open(&err));
  assert_int_equal(end_of("exit 3", 3600000), PROCESS_END_EXITED);
  assert_int_equal(end_of("sleep 600 & sleep 600", 300), PROCESS_END_SHIM_LOST);
}

/* Waits until a spawned program has its environment: it is started before that is in place. */
static void has_environment(pid_t pid) {
  char path[64];
  size_t n = 0;
  print_into(path, sizeof path, "/proc/%ld/environ", (long)pid);
  while (n == 0) {
    char first;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    n = fread(&first, 1, 1, f);
    (void)fclose(f);
  }
}

/* After the lease a process of the session may be its new owner's. */
TEST(leftovers_of_an_ended_lease_stay) {
  char session[64], variable[128];
  struct err err;
  pid_t pid;
  int status;
  assert_true(lease_open(&err));
  print_into(session, sizeof session, "lease-test-%ld", (long)getpid());
  print_into(variable, sizeof variable, ORPHAN_VARIABLE "=%s", session);
  char *argv[] = {"sleep", "600", NULL}, *envp[] = {variable, NULL};
  assert_int_equal(posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, envp), 0);
  has_environment(pid);
  lease_begin(clock_boot_ms());
  assert_int_equal(orphan_end(session), 0);
  assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
  lease_begin(clock_boot_ms() + 3600000);
  uint64_t term = lease_term();
  assert_false(lease_is_over(term));
  assert_int_equal(orphan_end(session), 1);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  lease_begin(clock_boot_ms() + 3600000);
  assert_true(lease_is_over(term)); /* though time is left */
}

static int shim_is_known(void **state) {
  (void)state;
  return setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1);
}

TEST_GROUP(shim_is_known, NULL)
