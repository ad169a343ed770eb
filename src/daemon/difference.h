/* difference.h - the lines that a session changed in its files, as git tells them now.
 *
 *   difference_take(&rs, &ask, r, &ref)    the request is kept
 *     ask.done(ask.ctx, r, &difference)    from the loop: answers it; not called if the client
 *                                          has left
 *
 * The log is read in the pool; git runs as a process of `processes` (NULL: it cannot be run),
 * without blocking the loop. */
#ifndef SEGUE_DAEMON_DIFFERENCE_H
#define SEGUE_DAEMON_DIFFERENCE_H

#include "daemon/reading.h"
#include "os/process.h"
#include "store/store.h"

struct difference {
  struct str diff;    /* bytes of files, as they are */
  bool cut;           /* there is more of it */
  size_t bytes;       /* of all that git told */
  bool more_files;    /* than git was asked about */
  const char *why;    /* git could not be asked; or NULL */
  uint64_t sound;     /* records of the log, if it was checked */
  const char *damage; /* what is wrong with the next one; NULL: nothing, or not checked */
};

typedef void (*difference_done)(void *ctx, struct server_request *r,
                                const struct difference *difference);

struct difference_ask {
  struct process_table *processes;
  bool all;    /* up to LIMIT_TREE_DIFF_ALL_BYTES of it */
  size_t from; /* so many bytes are left out before it */
  bool checks; /* the log against its chain, which reads all of it */
  difference_done done;
  void *ctx;
};

void difference_take(struct readings *rs, const struct difference_ask *ask,
                     struct server_request *r, const struct store_ref *ref);

#endif
