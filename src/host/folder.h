/* folder.h - the right to edit a folder: one session has it at a time, whatever process runs it.
 *
 *   right = folder_take(&ask, &holder, &err)    or NULL: `holder` says whose it is, or ERR_LOCKED
 *                                               is set: somebody else is asking, ask again soon
 *   folder_keep(right)     its session waits for a person: the folder stays its own meanwhile
 *   folder_give(right)     frees it; both take the right
 *
 * Two folders are in each other's way when they are the same one or one lies in the other, by their
 * real paths. Who only reads asks nobody. A right is a file of the session in locks/ of the user's
 * state folder, with a lock that dies with its process; one that is kept is that file without a
 * lock, and counts for as long as the session's log says that it waits for a person. Blocks for
 * the reading of a few small files only. */
#ifndef SEGUE_HOST_FOLDER_H
#define SEGUE_HOST_FOLDER_H

#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>

struct folder_right;

struct folder_ask { /* borrowed */
  const char *session;
  const char *path; /* absolute */
  const char *logs; /* the folder of its log */
};

struct folder_holder {
  char session[STORE_ID_BYTES];
  char path[STORE_PATH_BYTES];
  bool kept; /* it waits for a person */
};

/* NULL with holder->session set: it is taken. NULL with err set: ERR_LOCKED, ask again in a
 * moment; any other: nobody can have rights here. */
struct folder_right *folder_take(const struct folder_ask *ask, struct folder_holder *holder,
                                 struct err *err);
void folder_keep(struct folder_right *right);
void folder_give(struct folder_right *right); /* accepts NULL */
/* Gives up what a session keeps that nobody runs. False: it kept nothing. */
bool folder_release(const char *session, struct err *err) MUST_CHECK;

#endif
