/* git.h - runs git's own program beside the loop, with an environment made from nothing.
 *
 *   git_begin(&git, processes)
 *   git_ask(&git, &ask, done, ctx, &err)    one at a time; `done` comes from the loop
 *   git_cancel(&git)                        what runs is ended; `done` comes all the same
 *   git_deinit(&git)                        nothing runs
 *
 * No hook, monitor, filter, merge driver or signer that a repository's configuration names is run,
 * unless `programs` is set: an agent may have written that. Which filters and drivers there are is
 * asked of git first (GIT_DRIVERS, git_take_drivers). git never asks anybody anything, and speaks
 * English. */
#ifndef SEGUE_HOST_GIT_H
#define SEGUE_HOST_GIT_H

#include "base/buf.h"
#include "base/err.h"
#include "os/process.h"

#include <jansson.h>

enum { GIT_WORDS = 80 };

/* A file in git's folder: segue's own merge is under way there, see cli/trees/underway.h. */
#define GIT_SEGUE_MERGE          "SEGUE_MERGE"
#define GIT_SEGUE_MERGE_CONFLICT "conflict\n"

struct git_ask {
  const char *folder;           /* absolute; borrowed for git_ask */
  const char *words[GIT_WORDS]; /* NULL-ended, without "git"; borrowed for git_ask */
  struct str input;             /* borrowed until `done` */
  const char *extra[6];         /* NULL-ended: more of the environment */
  bool other;                   /* words[0] is a program by itself */
  const char *const *pass;      /* NULL-ended: names of variables that it gets besides; or NULL */
  const json_t *settings;       /* array of [key, value], in front of all files' ones; or NULL */
};

struct git_answer {
  bool ran; /* else `err` says why not, in words for a person */
  int exit;
  struct buf out, err; /* borrowed for `done`; err without its last newline */
};

typedef void (*git_done)(void *ctx, struct git_answer *answer);

struct git {
  struct process_table *processes;
  struct process *process;
  bool programs;
  json_t *drivers; /* names of settings that would run something */
  git_done done;
  void *ctx;
};

void git_begin(struct git *git, struct process_table *processes);
void git_deinit(struct git *git);
/* False: it could not be started, `done` does not come. */
bool git_ask(struct git *git, const struct git_ask *ask, git_done done, void *ctx,
             struct err *err) MUST_CHECK;
void git_cancel(struct git *git);

/* The words that ask for all settings that run something, and what to do with the answer. */
#define GIT_DRIVERS                                                                                \
  "config", "--null", "--name-only", "--get-regexp",                                               \
      "^(filter\\..*\\.(clean|smudge|process|required)|merge\\..*\\.driver)$"
void git_take_drivers(struct git *git, const struct git_answer *answer);

/* The same in a program without a loop of its own: waits for the answer, which is the caller's:
 * git_answer_deinit. */
bool git_now(const struct git_ask *ask, struct git_answer *answer, struct err *err) MUST_CHECK;
void git_answer_deinit(struct git_answer *answer);
/* git_complaint appends what git said, on one line: without "fatal:" and its like. */
void git_complaint(const struct git_answer *answer, struct buf *out);

#endif
