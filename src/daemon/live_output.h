/* live_output.h - the words of a session's agents, piece by piece, from the daemon that runs it;
 * for the command line. Reading never blocks.
 *
 *   live_output_init(&l, socket, session, on_words, ctx)
 *       socket: --socket or NULL; both are borrowed
 *   live_output_hear(&l, seen_seq)      call repeatedly: connects if there is no connection, tells
 *                                what came since; seen_seq is the record that was read last
 *   poll(l.fd, POLLIN)           -1: no daemon, or nothing more will come
 *   live_output_deinit(&l)
 *
 * A piece comes at most once, and some may be lost: the record with the whole answer follows. */
#ifndef SEGUE_DAEMON_LIVE_OUTPUT_H
#define SEGUE_DAEMON_LIVE_OUTPUT_H

#include "base/str.h"
#include "format/sse.h"

#include <stdint.h>

typedef void (*live_output_fn)(void *ctx, long turn, long call, bool thinking, struct str text);

struct listening {
  const char *socket, *session;
  live_output_fn on_words;
  void *ctx;
  int fd;
  bool in_body;      /* the head of the answer was read */
  struct buf head;   /* of the answer, while it comes */
  struct sse sse;    /* its body */
  uint64_t again_ms; /* when it is tried next (monotonic) */
};

void live_output_init(struct listening *l, const char *socket, const char *session,
                      live_output_fn on_words, void *ctx);
void live_output_hear(struct listening *l, uint64_t seen_seq);
void live_output_deinit(struct listening *l);

#endif
