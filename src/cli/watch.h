/* watch.h - one screen of sessions that redraws itself, with keys to open, answer and cancel them.
 *
 * The caller lists sessions and lays out rows; this owns the terminal while it runs: it leaves it
 * as it was, whatever ends it. A key starts segue itself with the session's id, on the same
 * terminal, so that what a key does is what the command does, with all that it asks and refuses. */
#ifndef SEGUE_CLI_WATCH_H
#define SEGUE_CLI_WATCH_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

struct watch_ops {
  json_t *(*list)(void *ctx, struct err *err); /* sessions as objects; NULL: it failed */
  /* Appends the head, or with `session` its row, for a terminal of so many columns. */
  void (*row)(void *ctx, const json_t *session, int columns, struct buf *out);
  const char *const *where; /* options of the commands that keys run, such as --socket P; or NULL */
  void *ctx;
};

/* Runs until q. False: it has no terminal, or the first list failed. */
bool watch_run(const struct watch_ops *ops, struct err *err) MUST_CHECK;

#endif
