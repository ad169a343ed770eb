/* Says what the runs of a check show. */
#include "evidence/verdict.h"

#include <assert.h>

/* Fewer tests are a failure, and so is one that failed though the exit status is 0, unless it was
 * so before. */
static bool run_passes(const struct check_run *run, const struct check_run *before,
                       enum counts_fall *fall) {
  bool was_so = before->end == CHECK_EXITED && before->exit == 0 &&
                run->counts.tests.failed <= before->counts.tests.failed;
  *fall = before->end == CHECK_EXITED ? counts_compare(&before->counts, &run->counts) : COUNTS_HOLD;
  return run->end == CHECK_EXITED && run->exit == 0 && *fall == COUNTS_HOLD &&
         (run->counts.tests.failed == 0 || was_so);
}

bool evidence_run_passes(const struct evidence_facts *f, const struct check_run *run) {
  enum counts_fall fall;
  return run_passes(run, &f->runs[RUNS_BEFORE], &fall);
}

bool evidence_passes(const struct evidence_facts *f, enum counts_fall *fall) {
  return run_passes(&f->runs[RUNS_NOW], &f->runs[RUNS_BEFORE], fall);
}

enum runs_which evidence_old_check(const struct evidence_facts *f) {
  bool own = !f->no_old_check && (f->check_changed || f->ignored_changed);
  return own ? RUNS_OLD_CHECK : RUNS_NOW;
}

static bool old_check_passes(const struct evidence_facts *f) {
  return f->no_old_check || evidence_run_passes(f, &f->runs[evidence_old_check(f)]);
}

bool evidence_needs_new_check(const struct evidence_facts *f) {
  return f->check_changed && f->code_changed && old_check_passes(f);
}

enum evidence evidence_of(const struct evidence_facts *f) {
  const struct check_run *now = &f->runs[RUNS_NOW], *old = &f->runs[evidence_old_check(f)];
  enum counts_fall fall;
  if (f->lost)
    return EVIDENCE_UNKNOWN;
  if (!f->changed && !f->ignored_changed)
    return EVIDENCE_NO_CHANGE;
  if (now->end != CHECK_EXITED || old->end != CHECK_EXITED)
    return EVIDENCE_UNKNOWN;
  if (!old_check_passes(f))
    return EVIDENCE_OLD_CHECK_FAILS;
  if (!f->changed)
    return EVIDENCE_NO_CHANGE;
  if (f->check_changed && !f->code_changed)
    return EVIDENCE_ONLY_CHECK_CHANGED;
  const struct check_run *without = &f->runs[f->check_changed ? RUNS_NEW_CHECK : RUNS_BEFORE];
  if (without->end != CHECK_EXITED)
    return EVIDENCE_UNKNOWN;
  bool red = without->exit != 0 || without->counts.tests.failed > now->counts.tests.failed;
  return red && evidence_passes(f, &fall) ? EVIDENCE_SHOWN : EVIDENCE_NOT_SHOWN;
}

static const struct {
  const char *name, *words;
} table[] = {
    [EVIDENCE_UNKNOWN] = {"unknown", "Nothing can be said: the check could not be run as it was."},
    [EVIDENCE_SHOWN] = {"shown",
                        "The check fails without the work and passes with it, and so does the "
                        "check as it was."},
    [EVIDENCE_NOT_SHOWN] = {"not_shown", "The check shows nothing about the work."},
    [EVIDENCE_OLD_CHECK_FAILS] = {"old_check_fails",
                                  "The check as it was before the work does not pass on it."},
    [EVIDENCE_ONLY_CHECK_CHANGED] = {"only_check_changed",
                                     "Only files of the check were changed, and they pass on the "
                                     "code from before."},
    [EVIDENCE_NO_CHANGE] = {"no_change", "Nothing was changed."},
};

const char *evidence_name(enum evidence evidence) {
  assert((size_t)evidence < ARRAY_LEN(table));
  return table[evidence].name;
}

const char *evidence_words(enum evidence evidence) {
  assert((size_t)evidence < ARRAY_LEN(table));
  return table[evidence].words;
}

void evidence_put_run(const struct check_run *run, struct buf *out) {
  switch (run->end) {
  case CHECK_NOT_RUN:
    buf_puts(out, "not run");
    return;
  case CHECK_TOO_SLOW:
    buf_puts(out, "too slow, and ended");
    return;
  case CHECK_NOT_STARTED:
    buf_puts(out, "could not be run");
    return;
  case CHECK_EXITED:
    buf_printf(out, "exit %d, ", run->exit);
    counts_put(&run->counts, out);
    if (run->flaky)
      buf_puts(out, " (flaky: it failed the first time)");
    return;
  }
}
