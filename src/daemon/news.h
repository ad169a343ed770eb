/* news.h - GET /v1/events: one stream of the changes of all sessions, which a client can resume.
 *
 *   news_init(&n, loop)
 *   news_add(&n, id, status, seq)         a session began, got to another turn, stopped, ended ...
 *   news_watch(&n, request, last)         last: of Last-Event-ID, or NULL: from now on
 *   news_close(&n); news_deinit(&n)       no stream is left; then the loop runs once more
 *
 * An event's id names this start of the daemon and a count. A client that returns with an id of
 * another start, or one no longer kept (LIMIT_CHANGE_COUNT), first gets `reset`: it must list
 * again. Nothing is kept before the first stream. */
#ifndef SEGUE_DAEMON_NEWS_H
#define SEGUE_DAEMON_NEWS_H

#include "base/list.h"
#include "daemon/server.h"
#include "store/store.h"

struct news_change;
struct news {
  uv_timer_t beat;
  struct news_change *ring; /* or NULL */
  uint64_t count;           /* so far */
  char start[20];
  struct list streams;
};

void news_init(struct news *n, uv_loop_t *loop);
void news_add(struct news *n, const char *id, const char *status, uint64_t seq);
void news_watch(struct news *n, struct server_request *r, const char *last);
void news_close(struct news *n);
void news_deinit(struct news *n);

#endif
