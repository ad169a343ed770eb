/* watch.h - tells pages when what they show has changed, by server-sent events without content: a
 * page then fetches itself again.
 *
 *   watches_init(&ws, loop, &store)
 *   watch_take(&ws, request, browser, id)   id: of a session, or "" for all
 *   watches_changed(&ws, id)                the log of a session of this process grew; NULL: what
 *                                           else there is changed
 *   watches_said(&ws, id, ...)              a running call said something: viewers of that session
 *                                           get the words
 *   watches_close(&ws, closed, ctx)         after the server has ended; closed(ctx) comes from the
 *                                           loop
 *
 * Logs that other processes write are checked every LIMIT_WINDOW_LOOK_MS: their size and owner,
 * never their bytes. A browser keeps LIMIT_WINDOW_STREAM_COUNT streams; with one more, the oldest
 * is told to rest, and its page polls now and then. So it is with all browsers together,
 * which keep less than their connections. */
#ifndef SEGUE_DAEMON_WINDOW_WATCH_H
#define SEGUE_DAEMON_WINDOW_WATCH_H

#include "base/list.h"
#include "daemon/server.h"
#include "store/store.h"

struct marking;
struct watches {
  const struct store *store;
  uv_loop_t *loop;
  uv_timer_t look, soon;
  unsigned looks; /* so far */
  struct list all;
  struct marking *marking; /* what a shared store has is looked at in the pool; or NULL */
  uint64_t soon_ms;        /* when `soon` goes off; uv_now */
  int open_handles;
  void (*closed)(void *ctx);
  void *ctx;
};

void watches_init(struct watches *ws, uv_loop_t *loop, const struct store *store);
void watch_take(struct watches *ws, struct server_request *r, unsigned browser, const char *id);
void watches_changed(struct watches *ws, const char *id);
/* end: how many bytes of that kind the call has produced so far. */
void watches_said(struct watches *ws, const char *id, long call, bool thinking, uint64_t end,
                  struct str text);
void watches_close(struct watches *ws, void (*closed)(void *ctx), void *ctx);

#endif
