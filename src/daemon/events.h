/* events.h - server-sent events of sessions: their records from the log, then as they become
 * durable, and between them the pieces of text that are not records.
 *
 *   feed = feed_new(&events, &ref)        of one log, shared by all who watch it
 *   feed_grow(feed, bytes)                so many bytes of the log are durable
 *   feed_delta(feed, ...)                 to those who have read everything before it
 *   feed_over(feed)                       nothing more will come: streams end when they are through
 *   feed_watch(feed, request, last_seq)   answers a request with the stream behind that record
 *   feed_free(feed)                       when feed_watched is false
 *
 * A watcher holds no copy of the log, only its place in it. A slow one costs its connection and
 * nothing else; if it takes no byte for LIMIT_API_IDLE_S, the connection is closed. It comes back
 * with Last-Event-ID.
 *
 * --- changes of all sessions ---
 *
 * GET /v1/events: one stream of the changes of all sessions, which a client can
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
#ifndef SEGUE_DAEMON_EVENTS_H
#define SEGUE_DAEMON_EVENTS_H

#include "base/list.h"
#include "base/str.h"
#include "daemon/server.h"
#include "store/store.h"

struct feed;

struct events {
  uv_loop_t *loop;
  uv_timer_t ticker; /* heartbeats */
  struct feed *feeds;
};

void events_init(struct events *ev, uv_loop_t *loop);
void events_close(struct events *ev); /* no feed is left */

/* Borrows nothing. `emptied` is called when the last watcher has gone (feed_free is allowed in
 * it). */
struct feed *feed_new(struct events *ev, const struct store_ref *ref, void (*emptied)(void *ctx),
                      void *ctx);
void feed_free(struct feed *feed); /* NULL is fine */
bool feed_watched(const struct feed *feed);
void feed_grow(struct feed *feed, uint64_t bytes);
void feed_delta(struct feed *feed, long turn, long call, bool thinking, struct str text);
void feed_over(struct feed *feed);
void feed_again(struct feed *feed); /* more will come after all */

/* last_seq: the record that the watcher has seen, 0 for none. */
void feed_watch(struct feed *feed, struct server_request *r, uint64_t last_seq);

/* --- changes of all sessions --- */

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
