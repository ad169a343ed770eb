/* folder_lock.h - the right to edit a folder, which only one session has at a time, in any process.
 *
 *   folder_drop_unneeded(path)        before a program that runs one session begins
 *   folder_look(&look, &holder, loop) the same while a session waits for that folder
 *   right = folder_take(&ask, &holder, &err)
 *   folder_give(right, keep)          at the session's end or stop
 *   folder_release(session, &err)     a person releases what a stopped session keeps
 *
 * Two folders conflict when, by their real paths, they are the same or one lies in the other. A
 * right is a file of the session in locks/ of the user's state folder, with a lock that dies with
 * its process; a kept right is that file without a lock, and counts as long as the session's log
 * says that it is stopped. Blocks only to read a few small files: where that log is in a shared
 * store, a kept right counts until the next folder_look has asked there. */
#ifndef SEGUE_HOST_FOLDER_LOCK_H
#define SEGUE_HOST_FOLDER_LOCK_H

#include "base/err.h"
#include "git/git.h"
#include "store/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

struct folder_right;

struct folder_ask { /* borrowed */
  const char *session;
  const char *path; /* absolute */
  const char *logs; /* the folder of its log */
};

struct folder_holder {
  char session[STORE_ID_BYTES];
  char path[STORE_PATH_BYTES];
  bool kept; /* by a stopped session */
};

/* Takes a folder. NULL with holder->session set: it is taken. NULL with err set: ERR_LOCKED, ask
 * again in a moment; any other code, there can be no rights here. */
struct folder_right *folder_take(const struct folder_ask *ask, struct folder_holder *holder,
                                 struct err *err);
/* Says why nobody else edits the folder while its session is stopped: it has an open question, or
 * has left changes. */
enum folder_keep { FOLDER_KEEP_NOT, FOLDER_KEEP_QUESTION, FOLDER_KEEP_CHANGES };
void folder_give(struct folder_right *owned_right, enum folder_keep keep);
/* Gives up rights in this folder or around it that are kept for nothing by now: git finds the
 * changes committed, or the session goes on no more. Waits for git and the store, before there is a
 * process table. */
void folder_drop_unneeded(const char *path);
/* Looks beside the loop whether that is so of the right in the way, and if so gives it up and calls
 * `freed`. One at a time: false, it is not yet time. */
struct folder_look {
  struct git git; /* its owner begins it, and sets `freed` */
  void (*freed)(void *ctx);
  void *ctx;
  char *file;   /* the right; NULL: no look is under way */
  json_t *said; /* its contents then */
  uv_work_t store_asked;
  bool needless, ending;
  uint64_t next_ms;
};
bool folder_look(struct folder_look *look, const struct folder_holder *holder, uv_loop_t *loop);
/* Ends a look that is under way, and waits for that. Not from a callback. */
void folder_look_end(struct folder_look *look, uv_loop_t *loop);
/* Gives up the right kept by a session that is not running. False: it kept none. */
bool folder_release(const char *session, struct err *err) MUST_CHECK;

#endif
