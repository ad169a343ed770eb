/* Tells pages that something changed. */
#include "daemon/window/watch.h"

#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum {
  SOON_MS = 5,
  LIST_GAP_MS = 500, /* between two words to a page that shows many sessions */
  LIST_LOOKS = 8,    /* every so many looks the folder is listed */
  LIST_NEWEST = 64   /* sessions whose size is looked at for the list */
};

struct watch {
  struct list_node in_watches;
  struct watches *all;
  struct server_request *request;
  unsigned browser;
  char id[STORE_ID_BYTES];
  uint64_t mark;    /* of what was told last */
  uint64_t sent_ms; /* uv_now */
  bool beat;        /* a heartbeat is due: else nobody notices that a browser has gone */
  bool due, wants;  /* an event is to be sent; one is to come when the gap is over */
};

/* --- what there is --- */

static uint64_t mark_of(const struct watches *ws, const char *id) {
  struct store_ref ref;
  uint64_t bytes = 0;
  store_ref(ws->store, id, &ref);
  if (!store_bytes(&ref, &bytes))
    return 1;
  return bytes * 2 + store_is_owned(&ref);
}

static uint64_t mark_of_all(const struct watches *ws) {
  struct store_id *ids;
  size_t count;
  struct err err;
  uint64_t mark = 14695981039346656037u; /* FNV-1a */
  if (!store_exists(ws->store) || !store_list(ws->store, &ids, &count, &err))
    return 0;
  for (size_t i = 0; i < count && i < LIST_NEWEST; i++)
    mark = (mark ^ mark_of(ws, ids[i].id)) * 1099511628211u;
  free(ids);
  return (mark ^ count) * 1099511628211u;
}

/* --- telling --- */

static void watch_tell(struct watch *w) {
  uint64_t now = uv_now(w->all->loop);
  bool early = w->id[0] == '\0' && now - w->sent_ms < LIST_GAP_MS;
  w->wants = early;
  if (early)
    return;
  w->sent_ms = now;
  w->due = true;
  server_wake(w->request);
}

static void watch_look(struct watch *w, bool lists, uint64_t all) {
  if (w->id[0] == '\0' && !lists) {
    if (w->wants)
      watch_tell(w);
    return;
  }
  uint64_t mark = w->id[0] != '\0' ? mark_of(w->all, w->id) : all;
  if (mark != w->mark || w->wants)
    watch_tell(w);
  w->mark = mark;
}

static bool has_list(const struct watches *ws) {
  LIST_EACH(struct watch, w, in_watches, (struct list *)&ws->all)
    if (w->id[0] == '\0')
      return true;
  return false;
}

static void on_look(uv_timer_t *timer) {
  struct watches *ws = timer->data;
  bool lists = ++ws->looks % LIST_LOOKS == 0 && has_list(ws);
  uint64_t all = lists ? mark_of_all(ws) : 0;
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    watch_look(w, lists, all);
    if (ws->looks % (LIMIT_API_HEARTBEAT_MS / LIMIT_WINDOW_LOOK_MS) == 0) {
      w->beat = true;
      server_wake(w->request);
    }
  }
}

static void on_soon(uv_timer_t *timer) {
  struct watches *ws = timer->data;
  ws->told = false;
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    if (w->id[0] == '\0')
      watch_tell(w);
    else
      watch_look(w, false, 0);
  }
}

void watches_changed(struct watches *ws) {
  if (ws->told || ws->all.count == 0)
    return;
  ws->told = true;
  uv_timer_start(&ws->soon, on_soon, SOON_MS, 0);
}

/* --- streams --- */

static ssize_t watch_on_read(void *ctx, char *out, size_t max) {
  static const char event[] = "event: change\ndata:\n\n";
  struct watch *w = ctx;
  if (!w->due && w->beat && max >= 3) {
    w->beat = false;
    memcpy(out, ":\n\n", 3);
    return 3;
  }
  if (!w->due || max < sizeof event)
    return 0;
  w->due = false;
  memcpy(out, event, sizeof event - 1);
  return sizeof event - 1;
}

static void watch_on_closed(void *ctx) {
  struct watch *w = ctx;
  struct watches *ws = w->all;
  list_remove(&ws->all, &w->in_watches);
  free(w);
  if (ws->all.count == 0)
    uv_timer_stop(&ws->look);
}

static const struct server_stream_ops watch_ops = {watch_on_read, watch_on_closed};

void watch_take(struct watches *ws, struct server_request *r, unsigned browser, const char *id) {
  unsigned open = 0;
  LIST_EACH(struct watch, other, in_watches, &ws->all)
    open += other->browser == browser;
  if (open >= LIMIT_WINDOW_STREAM_COUNT) {
    server_reply(r, 204, NULL, STR(""));
    return;
  }
  struct watch *w = xcalloc(1, sizeof *w);
  w->all = ws;
  w->request = r;
  w->browser = browser;
  w->due = true; /* what changed between the page and this request */
  memcpy(w->id, id, strlen(id) + 1);
  w->mark = id[0] != '\0' ? mark_of(ws, id) : mark_of_all(ws);
  list_push_back(&ws->all, &w->in_watches);
  if (ws->all.count == 1)
    uv_timer_start(&ws->look, on_look, LIMIT_WINDOW_LOOK_MS, LIMIT_WINDOW_LOOK_MS);
  server_stream(r, "text/event-stream", &watch_ops, w);
}

/* --- the life --- */

void watches_init(struct watches *ws, uv_loop_t *loop, const struct store *store) {
  *ws = (struct watches){.store = store, .loop = loop, .open_handles = 2};
  uv_timer_init(loop, &ws->look);
  uv_timer_init(loop, &ws->soon);
  ws->look.data = ws->soon.data = ws;
}

static void watches_on_closed(uv_handle_t *handle) {
  struct watches *ws = handle->data;
  if (--ws->open_handles == 0)
    ws->closed(ws->ctx);
}

void watches_close(struct watches *ws, void (*closed)(void *ctx), void *ctx) {
  ws->closed = closed;
  ws->ctx = ctx;
  uv_close((uv_handle_t *)&ws->look, watches_on_closed);
  uv_close((uv_handle_t *)&ws->soon, watches_on_closed);
}
