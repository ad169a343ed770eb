/* The table of evidence/verdict.h, line by line. */
#include "evidence/verdict.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

/* A run in a few letters: "-" not run, "slow", "gone"; else its exit status, and after a colon how
 * many tests passed, failed and were skipped. */
static struct check_run run_of(const char *text) {
  struct check_run run = {.end = CHECK_EXITED};
  long passed = 0, failed = 0, skipped = 0;
  if (strcmp(text, "-") == 0)
    return (struct check_run){0};
  if (strcmp(text, "slow") == 0)
    return (struct check_run){.end = CHECK_TOO_SLOW};
  if (strcmp(text, "gone") == 0)
    return (struct check_run){.end = CHECK_NOT_STARTED};
  if (sscanf(text, "%d:%ld,%ld,%ld", &run.exit, &passed, &failed, &skipped) > 1)
    run.counts = (struct check_counts){COUNTS_MEASURED, TESTS_PYTEST, {passed, failed, skipped}};
  return run;
}

TEST(the_table_holds) {
  DATA_ROWS("evidence/verdict/the_table_holds.yaml", r, what, before, now, old, fresh, word,
            passes) {
    const struct evidence_facts facts = {.lost = strchr(r.what, 'l') != NULL,
                                         .changed = strpbrk(r.what, "co") != NULL,
                                         .check_changed = strchr(r.what, 'c') != NULL,
                                         .code_changed = strchr(r.what, 'o') != NULL,
                                         .ignored_changed = strchr(r.what, 'i') != NULL,
                                         .no_old_check = strchr(r.what, 'n') != NULL,
                                         .runs = {[RUNS_BEFORE] = run_of(r.before),
                                                  [RUNS_NOW] = run_of(r.now),
                                                  [RUNS_OLD_CHECK] = run_of(r.old),
                                                  [RUNS_NEW_CHECK] = run_of(r.fresh)}};
    enum counts_fall fall;
    const char *word = evidence_name(evidence_of(&facts));
    bool passes = evidence_passes(&facts, &fall);
    if (strcmp(word, r.word) != 0 || passes != data_true(r.passes))
      fail_msg("row %zu (%s, %s > %s): %s, passes %d", r.at, r.what, r.before, r.now, word, passes);
    /* no run that the word does not rest on is asked for */
    if (strcmp(r.fresh, "-") == 0 && r.old[0] != 's')
      assert_false(evidence_needs_new_check(&facts));
  }
}

TEST(runs_are_told) {
  static const struct {
    const char *run, *told;
  } told[] = {{"-", "not run"},
              {"slow", "too slow, and ended"},
              {"gone", "could not be run"},
              {"2", "exit 2, no counts"},
              {"0:3,1", "exit 0, 3 of 4 tests passed"}};
  for (size_t i = 0; i < ARRAY_LEN(told); i++) {
    buf_auto_t out = {0};
    struct check_run run = run_of(told[i].run);
    evidence_put_run(&run, &out);
    assert_string_equal(buf_c(&out), told[i].told);
  }
}
