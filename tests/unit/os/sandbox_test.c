/* Holds children of this test (through the real shim) to plans: what can they still do?
 * Skipped where the kernel has no Landlock. */

#include "os/loop.h"
#include "os/process.h"
#include "os/sandbox.h"
#include "os/sandbox_rules.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSION "0197f6a0-1c2d-7e3f-8a4b-5c6d7e8f9012"

struct fixture {
  uv_loop_t loop;
  struct process_table *table;
  struct ruleset_cache *kept;
  char *dir;
  struct process_result result;
};

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err;
  (void)setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1);
  if (!loop_init(&f->loop, &err) || (f->table = process_table_new(&f->loop, &err)) == NULL)
    return -1;
  f->kept = ruleset_cache_new(f->table);
  f->dir = folder_make();
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  ruleset_cache_free(f->kept);
  process_table_free(f->table);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  int left = uv_loop_close(&f->loop);
  folder_remove(f->dir);
  free(f);
  return left;
}

static void on_end(void *ctx, struct process_result *result) {
  struct fixture *f = ctx;
  f->result = *result;
  result->out = result->err = (struct buf){0};
}

/* The exit status of a shell's line in a sandbox, which it takes; D is the folder. */
static int run_in(struct fixture *f, struct sandbox *sandbox, const char *line) {
  char variable[300];
  struct err err;
  print_into(variable, sizeof variable, "D=%s", f->dir);
  const char *const argv[] = {"/bin/sh", "-c", line, NULL};
  const char *const envp[] = {"PATH=/usr/bin:/bin", variable, NULL};
  const struct process_spec spec = {.argv = argv, .envp = envp, .sandbox = sandbox};
  assert_non_null(process_start(f->table, &spec, NULL, on_end, f, &err));
  sandbox_free(sandbox);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  int status = f->result.exit_code;
  assert_int_equal(f->result.why, PROCESS_END_EXITED);
  buf_deinit(&f->result.out);
  buf_deinit(&f->result.err);
  return status;
}

static int run(struct fixture *f, const struct sandbox_plan *plan, const char *line) {
  struct err err;
  struct sandbox *sandbox = plan ? sandbox_new(NULL, STR(""), plan, &err) : NULL;
  if (plan != NULL && sandbox == NULL)
    fail_msg("%s", err.text);
  return run_in(f, sandbox, line);
}

static const char *const devices[] = {"/dev/null", NULL};

TEST_ON(struct fixture *f, setup, teardown, what_is_not_allowed_is_denied) {
  char secret[300], kept[300], own[300];
  print_into(secret, sizeof secret, "%s/secret", f->dir);
  print_into(kept, sizeof kept, "%s/secret/but/this", f->dir);
  print_into(own, sizeof own, "%s/own", f->dir);
  assert_int_equal(run(f, NULL,
                       "mkdir -p $D/secret/but/this $D/open $D/own && echo x > $D/secret/a &&"
                       " echo x > $D/secret/but/this/b && echo x > $D/open/c"),
                   0);
  const char *const reads[] = {"/", kept, "/nowhere/at/all", NULL};
  const char *const hides[] = {secret, "/nowhere", NULL};
  const char *const writes[] = {own, devices[0], NULL};
  const struct sandbox_plan plan = {
      .reads = reads, .hides = hides, .writes = writes, .lists = true};
  DATA_ROWS("os/sandbox/what_is_not_allowed_is_denied.yaml", c, line, can) {
    char line[300];
    print_into(line, sizeof line, "(%s) 2>/dev/null", c.line);
    if ((run(f, &plan, line) == 0) != data_true(c.can))
      fail_msg("%s: %s", c.line, data_true(c.can) ? "it could not" : "it could");
  }
}

TEST_ON(struct fixture *f, setup, teardown, without_lists_nothing_is_named) {
  const char *const reads[] = {"/usr", "/bin", "/lib", "/lib64", "/etc", NULL};
  const struct sandbox_plan plan = {.reads = reads, .writes = devices};
  assert_int_equal(run(f, &plan, "ls /usr >/dev/null"), 0);
  assert_int_not_equal(run(f, &plan, "ls / >/dev/null 2>&1"), 0);
  assert_int_not_equal(run(f, &plan, "ls $D >/dev/null 2>&1"), 0);
}

/* As root, who may list all, this is the path of any other home. */
TEST_ON(struct fixture *f, setup, teardown, a_home_below_an_unlisted_folder_is_read) {
  char home[300], hidden[320];
  print_into(home, sizeof home, "%s/shut/home", f->dir);
  print_into(hidden, sizeof hidden, "%s/secret", home);
  assert_int_equal(run(f, NULL,
                       "mkdir -p $D/shut/home/secret && chmod 0311 $D/shut &&"
                       " echo x > $D/shut/home/a && echo x > $D/shut/home/secret/b"),
                   0);
  const char *const reads[] = {"/", home, NULL}, *const hides[] = {hidden, NULL};
  const struct sandbox_plan plan = {.reads = reads, .hides = hides, .writes = devices};
  assert_int_equal(run(f, &plan, "cat $D/shut/home/a >/dev/null"), 0);
  assert_int_not_equal(run(f, &plan, "cat $D/shut/home/secret/b >/dev/null 2>&1"), 0);
  assert_int_equal(run(f, NULL, "chmod 0700 $D/shut"), 0);
}

/* A folder that holds a hidden one is opened up at the start: what comes later is not readable. */
TEST_ON(struct fixture *f, setup, teardown, a_mixed_folder_is_listed_once) {
  char hidden[300];
  print_into(hidden, sizeof hidden, "%s/hidden", f->dir);
  assert_int_equal(run(f, NULL, "mkdir $D/hidden; echo x > $D/before"), 0);
  const char *const reads[] = {"/", NULL}, *const hides[] = {hidden, NULL};
  const struct sandbox_plan plan = {.reads = reads, .hides = hides, .writes = devices};
  struct err err;
  struct sandbox *sandbox = sandbox_new(NULL, STR(""), &plan, &err);
  assert_non_null(sandbox);
  assert_int_equal(run(f, NULL, "echo x > $D/after"), 0);
  const char *const argv[] = {"/bin/sh", "-c", "cat \"$0/before\" && ! cat \"$0/after\"", f->dir,
                              NULL};
  const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
  const struct process_spec spec = {.argv = argv, .envp = envp, .sandbox = sandbox};
  assert_non_null(process_start(f->table, &spec, NULL, on_end, f, &err));
  sandbox_free(sandbox);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(f->result.exit_code, 0);
  buf_deinit(&f->result.out);
  buf_deinit(&f->result.err);
}

struct keeping {
  struct fixture *f;
  struct sandbox_plan plan;
  char secret[300], own[300], next[300];
};

/* Makes rules until they are kept: folders must have had their times for a moment. */
static struct sandbox *keep(const struct keeping *k, struct str key) {
  struct sandbox *again = NULL;
  struct err err;
  while (again == NULL) {
    sandbox_free(sandbox_new(k->f->kept, key, &k->plan, &err));
    again = sandbox_again(k->f->kept, key, k->next, SESSION);
  }
  return again;
}

TEST_WITH(setup, teardown, rules_serve_again_while_all_is_as_it_was) {
  struct keeping k = {.f = *state};
  print_into(k.secret, sizeof k.secret, "%s/home/secret", k.f->dir);
  print_into(k.own, sizeof k.own, "%s/tmp/1", k.f->dir);
  print_into(k.next, sizeof k.next, "%s/tmp/2", k.f->dir);
  const char *const reads[] = {"/usr", "/bin", "/lib", "/lib64", k.f->dir, NULL};
  const char *const hides[] = {k.secret, NULL};
  k.plan = (struct sandbox_plan){
      .reads = reads, .hides = hides, .writes = devices, .own = k.own, .lists = true};
  assert_int_equal(run(k.f, NULL, "mkdir -p $D/home/x $D/tmp/1 $D/tmp/2; echo x > $D/home/a"), 0);

  struct sandbox *s = keep(&k, STR("key"));
  assert_null(sandbox_again(k.f->kept, STR("other key"), k.next, SESSION));
  assert_int_equal(run_in(k.f, s,
                          "cat $D/home/a && echo y > $D/tmp/2/own && cat $D/tmp/2/own &&"
                          " ! (echo y > $D/tmp/1/own) 2>/dev/null"),
                   0);
  /* A name that comes, a secret that comes, one that is another's now: made anew each time. */
  static const char *const changes[] = {"echo x > $D/home/b", "echo x > $D/home/secret",
                                        "mv $D/home/b $D/home/a", "rm $D/home/a"};
  for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
    sandbox_free(keep(&k, STR("key")));
    assert_int_equal(run(k.f, NULL, changes[i]), 0);
    assert_null(sandbox_again(k.f->kept, STR("key"), k.next, SESSION));
  }
  s = keep(&k, STR("key"));
  assert_int_equal(run_in(k.f, s, "! cat $D/home/secret 2>/dev/null"), 0);
}

/* Each call has what is written by all, and its own folder, but not that of the one before. */
TEST_WITH(setup, teardown, a_ruleset_of_writes_is_made_for_the_next_call) {
  struct keeping k = {.f = *state};
  char shared[300];
  print_into(shared, sizeof shared, "%s/shared", k.f->dir);
  print_into(k.secret, sizeof k.secret, "%s/home/secret", k.f->dir);
  print_into(k.own, sizeof k.own, "%s/tmp/1", k.f->dir);
  print_into(k.next, sizeof k.next, "%s/tmp/2", k.f->dir);
  const char *const reads[] = {"/usr", "/bin", "/lib", "/lib64", k.f->dir, NULL};
  const char *const hides[] = {k.secret, NULL}, *const writes[] = {shared, devices[0], NULL};
  k.plan = (struct sandbox_plan){
      .reads = reads, .hides = hides, .writes = writes, .own = k.own, .lists = true};
  assert_int_equal(run(k.f, NULL, "mkdir -p $D/home $D/shared $D/tmp/1 $D/tmp/2"), 0);
  sandbox_free(keep(&k, STR("key")));
  static const char *const lines[] = {"echo y > $D/shared/a && echo y > $D/tmp/2/a &&"
                                      " ! (echo y > $D/tmp/1/a || echo y > $D/home/a) 2>/dev/null",
                                      "echo y > $D/shared/a && echo y > $D/tmp/1/a &&"
                                      " ! (echo y > $D/tmp/2/a || echo y > $D/home/a) 2>/dev/null"};
  for (int i = 0; i < 4; i++) { /* the loop runs with each program */
    struct sandbox *s = sandbox_again(k.f->kept, STR("key"), i % 2 ? k.own : k.next, SESSION);
    assert_non_null(s);
    assert_int_equal(run_in(k.f, s, lines[i % 2]), 0);
  }
}

/* Whoever puts another folder in a path's place while it is made gains nothing. */
TEST_ON(struct fixture *f, setup, teardown, a_ruleset_made_beforehand_names_only_what_was_stamped) {
  char shared[300], own[300];
  AUTO(sandbox_stamps_deinit) struct sandbox_stamps stamps = {0};
  print_into(shared, sizeof shared, "%s/shared", f->dir);
  print_into(own, sizeof own, "%s/tmp/1", f->dir);
  const char *const reads[] = {f->dir, NULL}, *const writes[] = {shared, NULL};
  const struct sandbox_plan plan = {.reads = reads, .writes = writes, .own = own};
  assert_int_equal(run(f, NULL, "mkdir -p $D/shared $D/other $D/tmp/1"), 0);
  int fd = sandbox_rules_reads(&plan, &stamps);
  assert_true(fd >= 0);
  assert_int_equal(close(fd), 0);
  fd = sandbox_rules_spare(&plan, &stamps);
  assert_true(fd >= 0);
  assert_int_equal(close(fd), 0);
  assert_int_equal(run(f, NULL, "mv $D/shared $D/away && ln -s other $D/shared"), 0);
  assert_int_equal(sandbox_rules_spare(&plan, &stamps), -1);
  assert_int_equal(run(f, NULL, "rm $D/shared"), 0);
  assert_int_equal(sandbox_rules_spare(&plan, &stamps), -1);
}

/* Rules that name the call's own folder are no other call's. */
TEST_ON(struct fixture *f, setup, teardown, rules_of_a_hidden_own_folder_are_not_kept) {
  char own[300];
  struct err err;
  print_into(own, sizeof own, "%s/tmp/1", f->dir);
  assert_int_equal(run(f, NULL, "mkdir -p $D/tmp/1"), 0);
  const char *const reads[] = {"/usr", "/bin", "/lib", "/lib64", NULL};
  const struct sandbox_plan plan = {.reads = reads, .writes = devices, .own = own};
  struct sandbox *s = sandbox_new(f->kept, STR("key"), &plan, &err);
  assert_int_equal(run_in(f, s, "echo y > $D/tmp/1/own && cat $D/tmp/1/own"), 0);
  assert_null(sandbox_again(f->kept, STR("key"), own, SESSION));
}

static int needs_kernel(void **state) {
  (void)state;
  if (sandbox_version() < 6 || !sandbox_filters()) {
    (void)printf("skipped: this kernel's Landlock (version %d) does not hold it all\n",
                 sandbox_version());
    exit(0);
  }
  return 0;
}

TEST_GROUP(needs_kernel, NULL)
