/* The command provider: prompt in, answer out, exit status, its own directory, and no trace left.
 */

#include "base/limits.h"
#include "base/memory.h"
#include "support/call_bed.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state) {
  struct call_bed *bed = calloc(1, sizeof *bed);
  call_bed_init(bed);
  *state = bed;
  return 0;
}

static int teardown(void **state) {
  call_bed_deinit(*state);
  free(*state);
  return 0;
}

static void on_done(void *ctx, struct call_result *result) {
  call_bed_done(ctx, result);
}

static struct provider_run *begin(struct call_bed *bed, const char *const *argv, struct str prompt,
                                  uint64_t timeout_ms) {
  static struct call_request request; /* borrowed until the call is over */
  request = (struct call_request){.session = "0199-test",
                                  .turn = 3,
                                  .call = 7,
                                  .attempt = 2,
                                  .purpose = PURPOSE_EXECUTE,
                                  .stage = STAGE_COUNT,
                                  .movement = STR("go"),
                                  .argv = argv,
                                  .prompt = prompt,
                                  .timeout_ms = timeout_ms};
  const struct provider_sink sink = {NULL, on_done, bed};
  return provider_command.ops->start(&provider_command, &bed->env, &request, &sink);
}

TEST_ON(struct call_bed *bed, setup, teardown, programs_answer) {
  assert_int_equal(setenv("SECRET", "s3cret", 1), 0);
  DATA_ROWS("provider/command/programs_answer.yaml", row, script, prompt, class, exit, out, err,
            structured) {
    const char *const argv[] = {"sh", "-c", row.script, NULL};
    (void)begin(bed, argv, str_from(row.prompt), 60000);
    call_bed_run(bed);
    const struct call_result *r = &bed->result;
    if (r->class != data_class(row.class) || r->has_exit != ((int)data_number(row.exit) >= 0) ||
        (r->has_exit && r->exit != (int)data_number(row.exit)) ||
        strcmp(buf_c(&r->text.bytes), row.out) != 0 ||
        strcmp(buf_c(&r->error_text.bytes), row.err) != 0)
      fail_msg("%s: %s, exit %d, \"%s\", \"%s\"", row.script, error_class_name(r->class), r->exit,
               buf_c(&r->text.bytes), buf_c(&r->error_text.bytes));
    assert_int_equal(r->structured != NULL, row.structured != NULL);
    if (r->structured) {
      char_auto_t *dump = json_dumps(r->structured, JSON_COMPACT);
      assert_string_equal(dump, row.structured);
    }
  }
  assert_int_equal(unsetenv("SECRET"), 0);
}

TEST_WITH(setup, teardown, named_variables_are_passed) {
  static const char *const names[] = {"TEST_NAME_SEEN", "TEST_NAME_UNSET", NULL};
  static const char *const argv[] = {"sh", "-c", "echo $TEST_NAME_SEEN${TEST_NAME_UNSET-!}", NULL};
  struct call_bed *bed = *state;
  assert_int_equal(setenv("TEST_NAME_SEEN", "seen", 1), 0);
  bed->env.pass_env = names;
  (void)begin(bed, argv, STR(""), 60000);
  call_bed_run(bed);
  assert_string_equal(buf_c(&bed->result.text.bytes), "seen!\n");
  assert_int_equal(unsetenv("TEST_NAME_SEEN"), 0);
}

TEST_WITH(setup, teardown, a_program_that_is_not_there) {
  static const char *const missing[] = {"segue-no-such-program", NULL};
  static const char *const folder[] = {"/tmp", NULL};
  struct call_bed *bed = *state;
  (void)begin(bed, missing, STR("x"), 60000);
  call_bed_run(bed);
  assert_int_equal(bed->result.class, CLASS_NOT_FOUND);
  assert_non_null(strstr(bed->result.message, "cannot run "));
  (void)begin(bed, folder, STR("x"), 60000);
  call_bed_run(bed);
  assert_int_equal(bed->result.class, CLASS_NOT_FOUND);
  assert_false(bed->result.has_exit);
}

static const char *const sleeper[] = {"sh", "-c", "echo begun; exec sleep 600", NULL};

TEST_ON(struct call_bed *bed, setup, teardown, a_time_limit_ends_it) {
  (void)begin(bed, sleeper, STR(""), 200);
  call_bed_run(bed);
  assert_int_equal(bed->result.class, CLASS_TIMEOUT);
  assert_string_equal(buf_c(&bed->result.text.bytes), "begun\n");
  assert_non_null(strstr(bed->result.message, "200 ms"));
}

TEST_ON(struct call_bed *bed, setup, teardown, a_cancel_ends_it) {
  struct provider_run *run = begin(bed, sleeper, STR(""), 0);
  provider_command.ops->cancel(run);
  provider_command.ops->cancel(run);
  call_bed_run(bed);
  assert_int_equal(bed->result.class, CLASS_CANCELLED);
  assert_false(bed->result.has_exit);
}

TEST_WITH(setup, teardown, a_prompt_is_read_as_far_as_it_is_wanted) {
  static const char *const counts[] = {"wc", "-c", NULL};
  static const char *const ignores[] = {"true", NULL};
  struct call_bed *bed = *state;
  buf_auto_t big = {0};
  for (int i = 0; i < 400000; i++)
    buf_puts(&big, "line\n");
  (void)begin(bed, counts, buf_view(&big), 60000);
  call_bed_run(bed);
  assert_string_equal(buf_c(&bed->result.text.bytes), "2000000\n");
  (void)begin(bed, ignores, buf_view(&big), 60000);
  call_bed_run(bed);
  assert_int_equal(bed->result.class, CLASS_NONE);
  assert_int_equal(bed->result.exit, 0);
}

TEST_WITH(setup, teardown, bytes_are_kept_as_they_are) {
  static const char *const argv[] = {"printf", "a\\000\\377\\033[31m", NULL};
  struct call_bed *bed = *state;
  (void)begin(bed, argv, STR(""), 60000);
  call_bed_run(bed);
  assert_int_equal(bed->result.text.bytes.n, 8);
  assert_memory_equal(bed->result.text.bytes.p, "a\0\xFF\033[31m", 8);
}

/* The outcome of a test runner stands at its end. */
TEST_WITH(setup, teardown, both_ends_of_a_flood_are_kept) {
  static const char *const argv[] = {
      "sh", "-c",
      "echo first; yes 'a line in the middle' | head -n 1000000; echo '2 failed, 98 passed'\n"
      "exec >&2; echo begun; yes 'a warning' | head -n 100000; echo 'make: *** Error 1'",
      NULL};
  struct call_bed *bed = *state;
  (void)begin(bed, argv, STR(""), 60000);
  call_bed_run(bed);
  const struct call_result *r = &bed->result;
  struct str out = buf_view(&r->text.bytes), err = buf_view(&r->error_text.bytes);
  assert_true(out.n <= LIMIT_OUTPUT_BYTES && out.n > LIMIT_OUTPUT_BYTES - 16384);
  assert_true(err.n <= LIMIT_STDERR_BYTES && err.n > LIMIT_STDERR_BYTES - 16384);
  assert_true(str_starts(out, "first\na line in the middle\n"));
  assert_true(str_starts(err, "begun\na warning\n"));
  assert_string_equal(out.p + out.n - 35, " in the middle\n2 failed, 98 passed\n");
  assert_string_equal(err.p + err.n - 28, "a warning\nmake: *** Error 1\n");
  const char *line = strstr(out.p, "[... ");
  assert_non_null(line);
  assert_int_equal(strtoull(line + 5, NULL, 10), r->dropped_bytes);
  size_t line_n = (size_t)(strchr(line, '\n') - line) + 1;
  assert_int_equal(out.n - line_n + r->dropped_bytes, 6 + 21000000 + 20);
  line = strstr(err.p, "[... ");
  assert_non_null(line);
  assert_int_equal(strtoull(line + 5, NULL, 10), r->error_dropped_bytes);
}

/* Cut anywhere, no part of a value is left. */
TEST_WITH(setup, teardown, a_secret_is_gone_before_a_flood_is_cut) {
  static const char *const names[] = {"TEST_NAME_SEEN", NULL};
  static const char *const argv[] = {
      "sh", "-c",
      "for i in 1 2 3 4 5 6 7 8; do t=$t$TEST_NAME_SEEN; done; t=$t$t$t$t; t=$t$t$t$t; t=$t$t$t$t\n"
      "for i in 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u; do printf %s \"$t\"; "
      "done >&2",
      NULL};
  struct call_bed *bed = *state;
  assert_int_equal(setenv("TEST_NAME_SEEN", "tok-0123456789ABCDEF-0123456789abcdef", 1), 0);
  bed->env.pass_env = names;
  (void)begin(bed, argv, STR(""), 60000);
  call_bed_run(bed);
  struct str err = buf_view(&bed->result.error_text.bytes);
  assert_true(bed->result.error_dropped_bytes > 0);
  assert_null(memmem(err.p, err.n, "345", 3));
  assert_null(memmem(err.p, err.n, "CDEF", 4));
  assert_null(memmem(err.p, err.n, "tok-", 4));
  assert_non_null(memmem(err.p, err.n, "secret:TEST_NAME_SEEN", 21));
  assert_int_equal(unsetenv("TEST_NAME_SEEN"), 0);
}

TEST_WITH(setup, teardown, a_folder_for_tmp_that_is_gone) {
  static const char *const argv[] = {"true", NULL};
  struct call_bed *bed = *state;
  assert_int_equal(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
  (void)begin(bed, argv, STR(""), 60000);
  call_bed_run(bed);
  assert_int_not_equal(bed->result.class, CLASS_NONE);
  assert_true(bed->result.message[0] != '\0');
}
