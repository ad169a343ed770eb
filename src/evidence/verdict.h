/* verdict.h - what the runs of a check show about a piece of work: the one table.
 *
 * Pure: facts that were measured in, a word out. The first line that applies counts:
 *
 *   the base, or what is checked out of it, is not what was recorded   unknown
 *   no file differs                                                    no_change
 *   the check did not come to an end (too slow, cannot be run)         unknown
 *   the old check on the work: fails, counts fewer tests, or none      old_check_fails
 *   only files differ that git ignores                                 no_change
 *   only files of the check differ                                     only_check_changed
 *   the check differs: fails on the old code, and passes on the work   shown
 *                      otherwise                                       not_shown
 *   the check is the same: it failed before the work, and passes now   shown
 *                      otherwise                                       not_shown
 *
 * Where the check's own program was not there before, there is no old check. */
#ifndef SEGUE_EVIDENCE_VERDICT_H
#define SEGUE_EVIDENCE_VERDICT_H

#include "evidence/counts.h"

#include <stdint.h>

enum evidence {
  EVIDENCE_UNKNOWN,
  EVIDENCE_SHOWN,
  EVIDENCE_NOT_SHOWN,
  EVIDENCE_OLD_CHECK_FAILS,
  EVIDENCE_ONLY_CHECK_CHANGED,
  EVIDENCE_NO_CHANGE
};

enum check_end { CHECK_NOT_RUN, CHECK_EXITED, CHECK_TOO_SLOW, CHECK_NOT_STARTED };

struct check_run {
  enum check_end end;
  int exit; /* 128 + N after a signal */
  struct check_counts counts;
  uint64_t ms;
  bool flaky; /* a first run on the same tree failed, and this one passed */
};

enum runs_which { RUNS_NOW, RUNS_BEFORE, RUNS_OLD_CHECK, RUNS_NEW_CHECK, RUNS_COUNT };

struct evidence_facts {
  bool lost;            /* a tree could not be read back as it was recorded */
  bool changed;         /* a file differs */
  bool check_changed;   /* among them files of the check */
  bool code_changed;    /* among them others */
  bool ignored_changed; /* so does a file that git ignores: a clean copy does not have it */
  bool no_old_check;    /* what the command runs was not there before */
  /* the check on the work, before it, as it was on the work, and as it is on the old code */
  struct check_run runs[RUNS_COUNT];
};

enum evidence evidence_of(const struct evidence_facts *facts);
const char *evidence_name(enum evidence evidence);  /* "not_shown" */
const char *evidence_words(enum evidence evidence); /* a sentence for people */

/* Is the check on the work a pass: exit status 0, no test that failed, and no fewer than before? */
bool evidence_passes(const struct evidence_facts *facts, enum counts_fall *fall);
/* Is a run of its own like the check on the work, a pass? */
bool evidence_run_passes(const struct evidence_facts *facts, const struct check_run *run);
/* Which run is the old check on the work: with an unchanged check it is the check's own. */
enum runs_which evidence_old_check(const struct evidence_facts *facts);
/* Is that run needed, by what is known so far? */
bool evidence_needs_new_check(const struct evidence_facts *facts);

/* Appends "exit 1, 2 of 4 tests passed", "too slow" and the like. */
void evidence_put_run(const struct check_run *run, struct buf *out);

#endif
