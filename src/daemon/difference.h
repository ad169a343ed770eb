/* difference.h - the lines that a session changed in its files, as git tells them now.
 *
 *   difference_take(&rs, processes, r, &ref, done, ctx)    the request is kept
 *     done(ctx, r, &difference)    from the loop: answers it; not called if the client has left
 *
 * The log is read in the pool, git runs beside the loop, as a tree of `processes`
 * (NULL: it cannot be run). */
#ifndef SEGUE_DAEMON_DIFFERENCE_H
#define SEGUE_DAEMON_DIFFERENCE_H

#include "daemon/reading.h"
#include "os/process.h"
#include "store/store.h"

struct difference {
  struct str diff; /* bytes of files, as they are */
  bool cut;        /* there is more of it */
  const char *why; /* git could not be asked; or NULL */
};

typedef void (*difference_done)(void *ctx, struct server_request *r,
                                const struct difference *difference);

void difference_take(struct readings *rs, struct process_table *processes, struct server_request *r,
                     const struct store_ref *ref, difference_done done, void *ctx);

#endif
