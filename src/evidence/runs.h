/* runs.h - runs a check on up to four trees, and says what that shows about the work.
 *
 *   runs_begin(&r, &spec)
 *   while ((step = runs_next(&r)) != RUNS_DONE)
 *     RUNS_PREPARE  runs_prepare(&r, &err)    blocks: git; for the command line or a pool thread.
 *                                             False: nothing can be done, err says why
 *     RUNS_CHECK    run r.argv in r.cwd, under whatever the check is to be confined by, with
 *                   standard input at its end; then runs_ended(&r, ...)
 *   r.evidence, r.facts, r.changes ... are the result
 *   runs_deinit(&r)                           accepts a zeroed one; removes the copies
 *
 * It keeps nothing between two steps but what is in `r`, starts no process but git, and never
 * touches the repository's working tree: each run has a new copy (base.h) in the private folder, so
 * nothing that a check writes reaches the next one. The trees:
 *
 *   now        the work                         always
 *   before     the base                         always
 *   old check  the work, with the check's       if files of the check changed, or ignored ones
 *              files as they were
 *   new check  the base, with the check's       if files of the check changed, and others, and the
 *              files as they are now            old check passes
 *
 * A run that somebody has made already (a session's own check, the one before its work) is put into
 * r.facts.runs after runs_begin, with no_old_check, and is not made again.
 *
 * Trees that are the same are run once. If the old check fails, it is run once more: a check that
 * passes then is flaky, and said to be. */
#ifndef SEGUE_EVIDENCE_RUNS_H
#define SEGUE_EVIDENCE_RUNS_H

#include "evidence/base.h"
#include "evidence/verdict.h"

#include <jansson.h>

struct runs_spec {           /* all borrowed until runs_deinit */
  const char *folder;        /* where the check runs: in a repository's working tree */
  const char *private_dir;   /* for trees and copies: base_open */
  const char *command;       /* a line for sh */
  const char *from, *to;     /* commits; to NULL: the files as they are */
  const char *from_tree;     /* in place of `from`: what base_take_all gave before */
  const json_t *add, *leave; /* see check_files.h */
  const json_t *links;       /* array of paths, from the top, that copies get as links; or NULL */
  enum test_format format;   /* TESTS_NONE: counts_find */
  const char *report;        /* TESTS_JUNIT: the check's report, below `folder` */
  bool base_only;            /* only the check before the work is run; `folder` is not looked at */
  bool ignored_changed;      /* the caller has seen that a file changed that git ignores */
};

enum runs_step { RUNS_PREPARE, RUNS_CHECK, RUNS_DONE };
enum { RUNS_LAST_BYTES = 2000 };

struct evidence_runs {
  const struct runs_spec *spec;
  struct base base;
  char trees[RUNS_COUNT][BASE_TREE_BYTES];
  struct file_listing before, now;
  enum check_file *why_before, *why_now; /* of their files */
  json_t *changes;                       /* array of {path, added, removed, check?: why, new?} */
  struct evidence_facts facts;
  enum evidence evidence;
  struct err problem;           /* why it is unknown, if that is known */
  struct buf last[RUNS_COUNT];  /* the end of what the check printed */
  enum runs_which at;           /* what is prepared, or running */
  bool opened, prepared, again; /* again: the run at hand repeats one that failed */
  bool repeated;
  unsigned copies;
  const char *argv[6]; /* of RUNS_CHECK */
  char *copy, *cwd;
};

void runs_begin(struct evidence_runs *r, const struct runs_spec *spec);
enum runs_step runs_next(struct evidence_runs *r);
bool runs_prepare(struct evidence_runs *r, struct err *err) MUST_CHECK;
/* output: both streams of the check. why: of CHECK_NOT_STARTED; or NULL. Reads its report. */
void runs_ended(struct evidence_runs *r, enum check_end end, int exit, struct str output,
                uint64_t ms, const char *why);
void runs_deinit(struct evidence_runs *r);

const char *runs_words(enum runs_which which); /* "the check as it was, on the work" */
/* Reads back one run of a result. */
void runs_read_run(const json_t *value, struct check_run *run);
/* One run as JSON, and the result: new references. */
json_t *runs_run_json(const struct check_run *run);
json_t *runs_result(const struct evidence_runs *r);

#endif
