/* watch.h - pages that are told when what they show has changed: server-sent events without
 * content, for a page asks for itself anew.
 *
 *   watches_init(&ws, loop, &store)
 *   watch_take(&ws, request, browser, id)   id: of a session, or "" for all
 *   watches_changed(&ws)                    some log of this process grew
 *   watches_said(&ws, id, ...)              a running call of it said something: who looks at that
 *                                           session is told the words
 *   watches_close(&ws, closed, ctx)         after the server has ended; closed(ctx) comes from the
 *                                           loop
 *
 * Logs that other processes write are looked at each LIMIT_WINDOW_LOOK_MS: their size and owner,
 * never their bytes. Of one browser LIMIT_WINDOW_STREAM_COUNT streams stay; when there is one more,
 * the oldest is told to rest: its page asks now and then by itself. */
#ifndef SEGUE_DAEMON_WINDOW_WATCH_H
#define SEGUE_DAEMON_WINDOW_WATCH_H

#include "base/list.h"
#include "daemon/server.h"
#include "store/store.h"

struct watches {
  const struct store *store;
  uv_loop_t *loop;
  uv_timer_t look, soon;
  unsigned looks; /* so far */
  struct list all;
  bool told; /* watches_changed, since `soon` was set */
  int open_handles;
  void (*closed)(void *ctx);
  void *ctx;
};

void watches_init(struct watches *ws, uv_loop_t *loop, const struct store *store);
void watch_take(struct watches *ws, struct server_request *r, unsigned browser, const char *id);
void watches_changed(struct watches *ws);
/* end: bytes of that kind that the call has said so far. */
void watches_said(struct watches *ws, const char *id, long call, bool thinking, uint64_t end,
                  struct str text);
void watches_close(struct watches *ws, void (*closed)(void *ctx), void *ctx);

#endif
