/* git.h - runs the program git without blocking the loop, with an environment built from nothing.
 *
 *   git_begin(&git, processes)
 *   git_ask(&git, &ask, done, ctx, &err)    one at a time; `done` comes from the loop
 *   git_cancel(&git)                        ends what runs; `done` still comes
 *   git_deinit(&git)                        nothing runs
 *
 * This is the one door: segue starts git nowhere else (tree.h has a stand-in of its own). git works
 * in the repository around the folder, but its configuration, hooks and remotes are those of a
 * stand-in (stand_in.h), because an agent may have written them: nothing runs, and nothing leads
 * elsewhere, unless the user's own configuration says so. With `programs` git runs in the
 * repository as it is: `workspace: {hooks: true}` of the user. Another program whose git is to meet
 * the same stand-in says so (gh). Filters are the user's own, such as Git LFS, and what may run one
 * is held as agents are, without network: content that is not here stays a pointer. No protocol may
 * be used and nothing is fetched lazily, unless the caller's GIT_ALLOW_PROTOCOL says so.
 *
 * diff and status do not look into submodules, whose configuration git would read: they are asked
 * on their own, each with its folder. For the same reason add must leave them out (git_staging).
 * git never prompts, and speaks English. */
#ifndef SEGUE_GIT_GIT_H
#define SEGUE_GIT_GIT_H

#include "base/buf.h"
#include "base/err.h"
#include "git/stand_in.h"
#include "os/process.h"

#include <jansson.h>

enum { GIT_WORDS = 80 };

/* This file in git's folder says that a merge of segue's own is under way, see
 * cli/trees/integrate.c. */
#define GIT_SEGUE_MERGE          "SEGUE_MERGE"
#define GIT_SEGUE_MERGE_CONFLICT "conflict\n"

struct git_ask {
  const char *folder;           /* absolute; borrowed for git_ask */
  const char *words[GIT_WORDS]; /* NULL-terminated, without "git"; borrowed for git_ask */
  struct str input;             /* borrowed until `done` */
  const char *extra[6];         /* NULL-terminated additions to the environment */
  bool other;                   /* words[0] is a program itself, not git's argument */
  bool starts_git;              /* with `other`: its git meets the stand-in, too */
  const char *const *pass;      /* NULL-terminated names of variables to pass on; or NULL */
  /* Array of [key, value], which override those of all files; or NULL. */
  const json_t *settings;
};

struct git_answer {
  bool ran; /* if false, `err` says why, in words for a person */
  int exit;
  struct buf out, err; /* borrowed for `done`; err without its last newline */
};

/* Sets the folder and the words, which end with NULL. */
void git_ask_set(struct git_ask *ask, const char *folder, const char *const *words);
#define GIT_ASK_SET(ask, folder, ...)                                                              \
  git_ask_set(ask, folder, (const char *const[]){__VA_ARGS__, NULL})
/* Names nobody as author, for a user who has no name: goes into `extra`. */
void git_sign_as_nobody(struct git_ask *ask);

typedef void (*git_done)(void *ctx, struct git_answer *answer);

struct git {
  struct process_table *processes;
  struct process *process;
  struct stand_in *stand_in; /* while it runs */
  bool programs;
  const json_t *sandbox; /* a session's `sandbox`, which holds filters; borrowed, or NULL */
  git_done done;
  void *ctx;
};

void git_begin(struct git *git, struct process_table *processes);
void git_deinit(struct git *git);
/* False: it could not be started, and `done` will not come. */
bool git_ask(struct git *git, const struct git_ask *ask, git_done done, void *ctx,
             struct err *err) MUST_CHECK;
void git_cancel(struct git *git);

/* Filters of the user's own configuration get what an agent wrote: git commands that may run one
 * are held by what this makes (main.c sets it), without network. It returns NULL without an error
 * if the words say that nothing holds it. */
typedef struct sandbox *(*git_confine)(const json_t *words, const char *cwd,
                                       const char *const *writes, struct err *err);
/* configure: asked once, before git_now runs something by itself, to call git_now_as; filters: the
 * user's own configuration may name some. */
void git_confine_by(git_confine confine, void (*configure)(bool filters));
/* From here on git_now runs git so: `programs` and `sandbox` of struct git. Takes the words. */
void git_now_as(bool programs, json_t *sandbox);

/* Does the same without a loop: waits for the answer, which belongs to the caller:
 * git_answer_deinit. */
bool git_now(const struct git_ask *ask, struct git_answer *answer, struct err *err) MUST_CHECK;
/* Where another loop has the program's children (git/serve.h), this is done instead. */
typedef bool (*git_waits)(const struct git_ask *ask, struct git_answer *answer, struct err *err);
extern git_waits git_now_instead;
void git_answer_deinit(struct git_answer *answer);
/* Appends git's message on one line, without "fatal:" and the like. */
void git_complaint(const struct git_answer *answer, struct buf *out);
/* Removes a lock that a killed git left in git's folder. */
void git_drop_lock(const char *folder, const char *name);
/* Does the same for a ref, if nobody has the lock open and no git is at work below the folder. */
void git_drop_dead_lock(const char *folder, const char *common, const char *ref);

#endif
