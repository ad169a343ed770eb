/* Tells pages that something changed. */
#include "daemon/window/watch.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/loop.h"
#include "web/sanitize.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
  APART_MS = 2,      /* changes closer together count as one */
  LIST_GAP_MS = 500, /* between two events to a page that shows many sessions */
  LEAST_GAP_MS = 20, /* to one of a session; more while it changes all the time */
  MOST_GAP_MS = 320,
  BUSY_MS = 10,                                         /* more than one change in so long */
  MOST_STREAMS = LIMIT_WINDOW_CONNECTION_COUNT * 5 / 8, /* the others answer requests */
  LIST_LOOKS = 8,  /* the folder is listed once in so many looks */
  LIST_NEWEST = 64 /* sessions whose size is checked for the list */
};

struct watch {
  struct list_node in_watches;
  struct watches *all;
  struct server_request *request;
  unsigned browser;
  char id[STORE_ID_BYTES];
  uint64_t mark;    /* of what was last sent; 0: not known */
  uint64_t sent_ms; /* uv_now */
  uint64_t gap_ms;  /* to the next event */
  uint64_t stirred_ms;
  unsigned stirs;   /* since then, each at another time */
  bool beat;        /* a heartbeat is due: else nobody notices that a browser has gone */
  bool rests;       /* the page hears so, and the stream ends */
  struct buf words; /* whole events with calls' words, waiting to be sent */
  size_t words_at;
  bool due, wants; /* send an event now; send one when the gap is over */
  bool stirred;    /* look at it when the gap is over */
};

/* --- marks of what there is --- */

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

static json_t *clean_json(struct str text) {
  struct buf cleaned = {0};
  sanitize_text(&cleaned, text);
  json_t *value = json_text(buf_view(&cleaned));
  buf_deinit(&cleaned);
  return value;
}

static void on_soon(uv_timer_t *timer);

static void watches_soon(struct watches *ws, uint64_t at_ms) {
  uint64_t now = uv_now(ws->loop);
  if (uv_is_active((uv_handle_t *)&ws->soon) && ws->soon_ms <= at_ms)
    return;
  ws->soon_ms = at_ms;
  uv_timer_start(&ws->soon, on_soon, at_ms > now ? at_ms - now : 0, 0);
}

/* A page is told at once of a change now and then. Of one after the other it is told less often:
 * each time it fetches all that it shows. */
static void watch_set_gap(struct watch *w, uint64_t now) {
  bool busy = w->stirs * BUSY_MS > now - w->sent_ms;
  if (w->id[0] == '\0')
    return;
  w->gap_ms = busy ? 2 * w->gap_ms : w->gap_ms / 2;
  if (w->gap_ms < LEAST_GAP_MS)
    w->gap_ms = LEAST_GAP_MS;
  if (w->gap_ms > MOST_GAP_MS)
    w->gap_ms = MOST_GAP_MS;
}

static void watch_tell(struct watch *w) {
  uint64_t now = uv_now(w->all->loop);
  w->wants = now - w->sent_ms < w->gap_ms;
  if (w->wants) {
    watches_soon(w->all, w->sent_ms + w->gap_ms);
    return;
  }
  watch_set_gap(w, now);
  w->stirs = 0;
  w->sent_ms = now;
  w->due = true;
  server_wake(w->request);
}

static void watch_set_mark(struct watch *w, uint64_t mark) {
  if ((mark != w->mark && w->mark != 0) || w->wants)
    watch_tell(w);
  w->mark = mark;
}

static void watch_look(struct watch *w, bool lists, uint64_t all) {
  if (w->id[0] == '\0' && !lists)
    return;
  watch_set_mark(w, w->id[0] != '\0' ? mark_of(w->all, w->id) : all);
}

/* --- the same with a shared store, in the pool --- */

struct marked {
  char id[STORE_ID_BYTES]; /* "": all */
  uint64_t mark;
};

struct marking {
  uv_work_t work;
  struct watches *ws;
  size_t count;
  struct marked *all; /* one for each watch; some may be of the same session */
};

static void marking_work(uv_work_t *work) {
  struct marking *m = work->data;
  for (size_t i = 0; i < m->count; i++)
    m->all[i].mark = m->all[i].id[0] != '\0' ? mark_of(m->ws, m->all[i].id) : mark_of_all(m->ws);
}

static void watches_let_go(struct watches *ws) {
  if (--ws->open_handles == 0)
    ws->closed(ws->ctx);
}

static void marking_over(uv_work_t *work, int status) {
  struct marking *m = work->data;
  struct watches *ws = m->ws;
  assert(status == 0);
  ws->marking = NULL;
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    for (size_t i = 0; i < m->count; i++)
      if (strcmp(m->all[i].id, w->id) == 0) {
        watch_set_mark(w, m->all[i].mark);
        break;
      }
  }
  free(m->all);
  free(m);
  watches_let_go(ws);
}

static void watches_look_later(struct watches *ws, bool lists) {
  if (ws->marking != NULL)
    return;
  struct marking *m = xcalloc(1, sizeof *m);
  m->ws = ws;
  m->all = xcalloc(ws->all.count + 1, sizeof *m->all);
  LIST_EACH(struct watch, w, in_watches, &ws->all)
    if (w->id[0] != '\0' || lists)
      memcpy(m->all[m->count++].id, w->id, sizeof w->id);
  m->work.data = m;
  ws->marking = m;
  ws->open_handles++;
  loop_work(ws->loop, &m->work, marking_work, marking_over);
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
  bool shared = store_is_address(ws->store->where);
  uint64_t all = lists && !shared ? mark_of_all(ws) : 0;
  if (shared)
    watches_look_later(ws, lists);
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    if (!shared)
      watch_look(w, lists, all);
    if (ws->looks % (LIMIT_API_HEARTBEAT_MS / LIMIT_WINDOW_LOOK_MS) == 0) {
      w->beat = true;
      server_wake(w->request);
    }
  }
}

static void on_soon(uv_timer_t *timer) {
  struct watches *ws = timer->data;
  uint64_t now = uv_now(ws->loop);
  bool shared = store_is_address(ws->store->where), later = false;
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    bool one = w->id[0] != '\0', stirred = w->stirred;
    if (!stirred && !w->wants)
      continue;
    if (now - w->sent_ms < w->gap_ms) {
      watches_soon(ws, w->sent_ms + w->gap_ms);
      continue;
    }
    w->stirred = false;
    if (one && !shared)
      watch_set_mark(w, mark_of(ws, w->id));
    else if (!one || w->wants)
      watch_tell(w);
    later = later || (one && stirred);
  }
  if (shared && later)
    watches_look_later(ws, false);
}

void watches_changed(struct watches *ws, const char *id) {
  uint64_t now = uv_now(ws->loop);
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    if (w->id[0] != '\0' && (id == NULL || strcmp(w->id, id) != 0))
      continue;
    if (now - w->stirred_ms >= APART_MS) {
      w->stirred_ms = now;
      w->stirs++;
    }
    if (w->stirred)
      continue;
    w->stirred = true;
    watches_soon(ws, w->sent_ms + w->gap_ms); /* or when this turn of the loop has ended */
  }
}

/* A page too slow for the words reloads itself, and gets the last of them that way. */
void watches_said(struct watches *ws, const char *id, long call, bool thinking, uint64_t end,
                  struct str text) {
  struct buf event = {0};
  LIST_EACH(struct watch, w, in_watches, &ws->all) {
    if (w->id[0] == '\0' || strcmp(w->id, id) != 0)
      continue;
    if (event.n == 0) {
      json_t *data =
          json_pack("{sI sb sI sI so}", "call", (json_int_t)call, "thinking", thinking, "at",
                    (json_int_t)(end - text.n), "end", (json_int_t)end, "text", clean_json(text));
      buf_puts(&event, "event: said\ndata: ");
      json_write(data, &event);
      buf_puts(&event, "\n\n");
      json_decref(data);
    }
    if (w->words.n + event.n > LIMIT_API_DELTA_BYTES)
      w->due = true;
    else
      buf_str(&w->words, buf_view(&event));
    server_wake(w->request);
  }
  buf_deinit(&event);
}

/* --- streams --- */

static size_t watch_words(struct watch *w, char *out, size_t max) {
  size_t n = w->words.n - w->words_at;
  n = n < max ? n : max;
  memcpy(out, w->words.p + w->words_at, n);
  w->words_at += n;
  if (w->words_at == w->words.n) {
    buf_deinit(&w->words);
    w->words_at = 0;
  }
  return n;
}

static ssize_t watch_on_read(void *ctx, char *out, size_t max) {
  static const char event[] = "event: change\ndata:\n\n", rest[] = "event: rest\ndata:\n\n";
  struct watch *w = ctx;
  if (w->words.n > 0)
    return (ssize_t)watch_words(w, out, max);
  if (w->rests && w->browser == 0)
    return -1;
  if (w->rests && max >= sizeof rest) {
    w->browser = 0; /* it no longer counts */
    memcpy(out, rest, sizeof rest - 1);
    return sizeof rest - 1;
  }
  if (!w->due && w->beat && max >= 3) {
    w->beat = false;
    memcpy(out, LIT(":\n\n"));
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
  buf_deinit(&w->words);
  free(w);
  if (ws->all.count == 0)
    uv_timer_stop(&ws->look);
}

static const struct server_stream_ops watch_ops = {watch_on_read, watch_on_closed};

/* browser: 0: of all of them. */
static void rest_oldest(struct watches *ws, unsigned browser, unsigned most) {
  struct watch *oldest = NULL;
  unsigned open = 0;
  LIST_EACH(struct watch, other, in_watches, &ws->all) {
    if ((browser != 0 && other->browser != browser) || other->rests)
      continue;
    oldest = oldest != NULL ? oldest : other;
    open++;
  }
  if (oldest == NULL || open < most)
    return;
  oldest->rests = true;
  server_wake(oldest->request);
}

void watch_take(struct watches *ws, struct server_request *r, unsigned browser, const char *id) {
  rest_oldest(ws, browser, LIMIT_WINDOW_STREAM_COUNT);
  rest_oldest(ws, 0, MOST_STREAMS);
  struct watch *w = xcalloc(1, sizeof *w);
  w->all = ws;
  w->request = r;
  w->browser = browser;
  w->gap_ms = id[0] != '\0' ? LEAST_GAP_MS : LIST_GAP_MS;
  w->due = true; /* something may have changed between the page and this request */
  memcpy(w->id, id, strlen(id) + 1);
  if (!store_is_address(ws->store->where)) /* else the next look brings it */
    w->mark = id[0] != '\0' ? mark_of(ws, id) : mark_of_all(ws);
  list_push_back(&ws->all, &w->in_watches);
  if (ws->all.count == 1)
    uv_timer_start(&ws->look, on_look, LIMIT_WINDOW_LOOK_MS, LIMIT_WINDOW_LOOK_MS);
  server_stream(r, "text/event-stream", &watch_ops, w);
}

/* --- beginning and ending --- */

void watches_init(struct watches *ws, uv_loop_t *loop, const struct store *store) {
  *ws = (struct watches){.store = store, .loop = loop, .open_handles = 2};
  uv_timer_init(loop, &ws->look);
  uv_timer_init(loop, &ws->soon);
  ws->look.data = ws->soon.data = ws;
}

static void watches_on_closed(uv_handle_t *handle) {
  watches_let_go(handle->data);
}

void watches_close(struct watches *ws, void (*closed)(void *ctx), void *ctx) {
  ws->closed = closed;
  ws->ctx = ctx;
  uv_close((uv_handle_t *)&ws->look, watches_on_closed);
  uv_close((uv_handle_t *)&ws->soon, watches_on_closed);
}
