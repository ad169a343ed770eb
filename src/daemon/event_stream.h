/* event_stream.h - GET /v1/events: one stream of the changes of all sessions, which a client can
 * resume.
 *
 *   event_stream_init(&n, loop)
 *   event_stream_add(&n, id, status, seq)  a session began, got to another turn, stopped, ended ...
 *   event_stream_watch(&n, request, last)         last: of Last-Event-ID, or NULL: from now on
 *
 * Its owner closes `beat`, runs the loop once more, and frees `ring` when no stream is left.
 *
 * An event's id names this start of the daemon and a count. A client that returns with an id of
 * another start, or one no longer kept (LIMIT_CHANGE_COUNT), first gets `reset`: it must list
 * again. Nothing is kept before the first stream. */
#ifndef SEGUE_DAEMON_EVENT_STREAM_H
#define SEGUE_DAEMON_EVENT_STREAM_H

#include "base/list.h"
#include "daemon/server.h"
#include "store/store.h"

struct event_stream_change;
struct event_stream {
  uv_timer_t beat;
  struct event_stream_change *ring; /* or NULL */
  uint64_t count;                   /* so far */
  char start[20];
  struct list streams;
};

void event_stream_init(struct event_stream *n, uv_loop_t *loop);
void event_stream_add(struct event_stream *n, const char *id, const char *status, uint64_t seq);
void event_stream_watch(struct event_stream *n, struct server_request *r, const char *last);

#endif
