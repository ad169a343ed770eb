/* session_diff.h - the lines that a session changed in its files, as git tells them now.
 *
 *   session_diff_take(&rs, &ask, r, &ref)    the request is kept
 *     ask.done(ask.ctx, r, &difference)    from the loop: answers it; not called if the client
 *                                          has left
 *
 * The log is read in the pool; git runs as a process of `processes` (NULL: it cannot be run),
 * without blocking the loop. */
#ifndef SEGUE_DAEMON_SESSION_DIFF_H
#define SEGUE_DAEMON_SESSION_DIFF_H

#include "daemon/read_job.h"
#include "os/process.h"
#include "store/store.h"

struct session_diff {
  struct str diff;    /* bytes of files, as they are */
  bool cut;           /* there is more of it */
  size_t bytes;       /* of all that git told */
  bool more_files;    /* than git was asked about */
  const char *why;    /* git could not be asked; or NULL */
  uint64_t sound;     /* records of the log, if it was checked */
  const char *damage; /* what is wrong with the next one; NULL: nothing, or not checked */
};

typedef void (*session_diff_done)(void *ctx, struct server_request *r,
                                  const struct session_diff *difference);

struct session_diff_ask {
  struct process_table *processes;
  bool all;    /* up to LIMIT_TREE_DIFF_ALL_BYTES of it */
  size_t from; /* so many bytes are left out before it */
  bool checks; /* the log against its chain, which reads all of it */
  session_diff_done done;
  void *ctx;
};

void session_diff_take(struct read_jobs *rs, const struct session_diff_ask *ask,
                       struct server_request *r, const struct store_ref *ref);

#endif
