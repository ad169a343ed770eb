/* forge.h - reaches a repository's issues and pull requests through the forge's own program, gh or
 * glab, which holds the login. segue never sees a token, and no agent comes near one.
 *
 *   forge_find(&f, folder, remote, &err)    which program, which remote
 *   forge_push(&f, branch, to, &err)        then
 *   forge_open(&f, &request, &err)
 *   forge_deinit(&f)
 *
 * Everything here blocks; it is for the command line. What people wrote is data: each line is
 * quoted, invisible characters are made visible, and the length is bounded. */
#ifndef SEGUE_CLI_FORGE_H
#define SEGUE_CLI_FORGE_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"

#include <jansson.h>

enum forge_kind { FORGE_ISSUE, FORGE_PR };

struct forge {
  char *folder;  /* folder of the repository */
  char *remote;  /* its name */
  char *url;     /* address to push to */
  bool is_glab;  /* otherwise gh */
  char *host;    /* of the project; NULL: a name without a dot, which is the user's own */
  char *project; /* its path there: OWNER/NAME; NULL: a folder, which only its own git knows */
  char *owner;   /* of the branches, with gh, if that is another: the project is that of upstream */
  char *empty;   /* where the program runs: it starts a git, which finds no repository there */
};

/* Finds the forge. remote NULL: origin, or the only one. gh has the project of `upstream`, if there
 * is such a remote. */
bool forge_find(struct forge *f, const char *folder, const char *remote,
                struct err *err) MUST_CHECK;
void forge_deinit(struct forge *f);
/* Returns where git would push to; NULL: err is set. */
char *forge_address(const struct forge *f, const char *remote, struct err *err);

struct forge_item {
  enum forge_kind kind;
  long number;
  json_t *title, *body, *author, *url; /* texts, or NULL */
  json_t *head;                        /* a pull request's branch */
  json_t *said;                        /* array of {by, text, place?} */
  json_t *red;                         /* array of the names of checks that failed */
};

void forge_quote(const struct forge_item *item, struct buf *out);

/* Pushes one branch of ours to a branch of the remote, never by force. Nothing in the repository's
 * configuration is run or decides where it goes. */
bool forge_push(const struct forge *f, const char *branch, const char *to,
                struct err *err) MUST_CHECK;
/* Sends the contents behind the branch's pointers of Git LFS, before the branch, to where the
 * remote has them by its address. It wants the user's own git-lfs. */
bool forge_push_lfs(const struct forge *f, const char *branch, struct err *err) MUST_CHECK;

struct forge_request {       /* borrowed */
  const char *branch, *base; /* base may be NULL: the forge's default */
  struct str title, body;
  bool draft;
};

/* Returns the address of the open pull request of that branch; NULL with err->code ERR_NONE: there
 * is none. */
char *forge_opened(const struct forge *f, const char *branch, struct err *err);
/* Opens a pull request and returns its address; NULL: err is set. */
char *forge_open(const struct forge *f, const struct forge_request *request, struct err *err);

/* These make a task from an issue or a pull request: --issue N, --pr N.
 *
 *   forge_task_read(&got, folder, issue, pr, &err)    one of the two is NULL; asks the forge
 *   forge_task_deinit(&got)                           accepts a zeroed one */

struct forge_task {
  struct forge forge;
  struct forge_item item;
  json_t *source;
  struct buf text;
  char *fetched; /* a pull request's commit; or NULL */
};

bool forge_task_read(struct forge_task *got, const char *folder, const char *issue, const char *pr,
                     struct err *err) MUST_CHECK;
void forge_task_deinit(struct forge_task *got);
/* Returns where work on the pull request begins: its commit, or our own branch if that contains it.
 * NULL: neither is known. */
const char *forge_task_base(struct forge_task *got, const char *branch);

/* Takes those options if given: appends to the task, and sets in `config` (or the body of a
 * request) the source and where a worktree begins. */
bool forge_task_take(const struct cli_args *args, struct buf *task, json_t *config,
                     struct err *err) MUST_CHECK;

#endif
