/* queue.h - why a session that was submitted does not run yet: its daemon knows, or its shared
 * store. */
#ifndef SEGUE_CLI_QUEUE_H
#define SEGUE_CLI_QUEUE_H

#include "base/buf.h"

struct store;

enum { QUEUE_STATUS_BYTES = 24 };

/* Asks the daemon that has the session for its status, and what it says about it (nothing or a
 * sentence). socket: NULL for the usual one. Returns false if the daemon cannot be asked. */
bool queue_ask_daemon(const char *socket, const char *session, char status[QUEUE_STATUS_BYTES],
                      struct buf *message);
/* Puts why no worker of a shared store takes the session from the queue. Returns false if one has
 * it, or if that is not known. */
bool queue_why(const struct store *store, const char *session, struct buf *why);
/* Prints what it means for `segue show`, and why, on stderr. */
void queue_say(const char *what, const struct buf *why);

#endif
