/* Streams the changes of all sessions. */
#include "daemon/event_stream.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_BYTES = 256 };

struct event_stream_change {
  char id[STORE_ID_BYTES];
  char status[24];
  uint64_t seq;
};

struct event_stream_client {
  struct list_node in_news;
  struct event_stream *news;
  struct server_request *request;
  uint64_t next; /* of the items */
  bool reset;    /* the client still has to hear that something is missing */
  bool beat;
};

/* --- a stream --- */

static size_t event_stream_event(struct event_stream_client *s, char out[EVENT_BYTES]) {
  struct event_stream *n = s->news;
  int length;
  if (s->next + LIMIT_CHANGE_COUNT < n->count)
    s->reset = true;
  if (s->reset) {
    s->reset = false;
    s->next = n->count;
    length = snprintf(out, EVENT_BYTES, "id: %s-%llu\nevent: reset\ndata: {}\n\n", n->start,
                      (unsigned long long)s->next);
    return (size_t)length;
  }
  if (s->next == n->count)
    return 0;
  const struct event_stream_change *item = &n->ring[s->next++ % LIMIT_CHANGE_COUNT];
  length = snprintf(out, EVENT_BYTES,
                    "id: %s-%llu\nevent: session\n"
                    "data: {\"id\":\"%s\",\"status\":\"%s\",\"seq\":%llu}\n\n",
                    n->start, (unsigned long long)s->next, item->id, item->status,
                    (unsigned long long)item->seq);
  return (size_t)length;
}

static ssize_t event_stream_on_read(void *ctx, char *out, size_t max) {
  struct event_stream_client *s = ctx;
  char event[EVENT_BYTES];
  size_t n = 0;
  while (max - n >= EVENT_BYTES) {
    size_t more = event_stream_event(s, event);
    if (more == 0)
      break;
    memcpy(out + n, event, more);
    n += more;
  }
  if (n == 0 && s->beat && max >= 3) {
    memcpy(out, LIT(":\n\n"));
    n = 3;
  }
  s->beat = false;
  return (ssize_t)n;
}

static void event_stream_on_closed(void *ctx) {
  struct event_stream_client *s = ctx;
  struct event_stream *n = s->news;
  list_remove(&n->streams, &s->in_news);
  free(s);
  if (n->streams.count == 0 && !uv_is_closing((uv_handle_t *)&n->beat))
    uv_timer_stop(&n->beat);
}

static const struct server_stream_ops event_stream_ops = {event_stream_on_read,
                                                          event_stream_on_closed};

static void event_stream_wake(struct event_stream *n, bool beat) {
  LIST_EACH(struct event_stream_client, s, in_news, &n->streams) {
    s->beat = s->beat || beat;
    server_wake(s->request);
  }
}

static void event_stream_on_beat(uv_timer_t *timer) {
  event_stream_wake(timer->data, true);
}

/* Finds where a client that has seen `last` goes on. Returns false if that is no longer known. */
static bool event_stream_place(const struct event_stream *n, const char *last, uint64_t *next) {
  size_t start = strlen(n->start);
  long seen;
  if (strncmp(last, n->start, start) != 0 || last[start] != '-' ||
      !str_to_long(str_from(last + start + 1), &seen) || seen < 0 || (uint64_t)seen > n->count ||
      (uint64_t)seen + LIMIT_CHANGE_COUNT < n->count)
    return false;
  *next = (uint64_t)seen;
  return true;
}

void event_stream_watch(struct event_stream *n, struct server_request *r, const char *last) {
  struct event_stream_client *s = xcalloc(1, sizeof *s);
  *s = (struct event_stream_client){.news = n, .request = r, .next = n->count, .beat = true};
  s->reset = last != NULL && !event_stream_place(n, last, &s->next);
  if (n->ring == NULL)
    n->ring = xcalloc(LIMIT_CHANGE_COUNT, sizeof *n->ring);
  list_push_back(&n->streams, &s->in_news);
  if (n->streams.count == 1)
    uv_timer_start(&n->beat, event_stream_on_beat, LIMIT_API_HEARTBEAT_MS, LIMIT_API_HEARTBEAT_MS);
  server_stream(r, "text/event-stream", &event_stream_ops, s);
}

/* --- all streams --- */

/* The end of a session is reported by its record and by its state, but is one change. */
static bool is_told(const struct event_stream *n, const char *id, const char *status,
                    uint64_t seq) {
  for (uint64_t i = n->count; i > 0 && n->count - i < 16; i--) {
    const struct event_stream_change *c = &n->ring[(i - 1) % LIMIT_CHANGE_COUNT];
    if (strcmp(c->id, id) == 0)
      return c->seq == seq && strcmp(c->status, status) == 0;
  }
  return false;
}

void event_stream_add(struct event_stream *n, const char *id, const char *status, uint64_t seq) {
  if (n->ring == NULL || is_told(n, id, status, seq))
    return;
  struct event_stream_change *item = &n->ring[n->count++ % LIMIT_CHANGE_COUNT];
  memcpy(item->id, id, sizeof item->id);
  print_into(item->status, sizeof item->status, "%s", status);
  item->seq = seq;
  event_stream_wake(n, false);
}

void event_stream_init(struct event_stream *n, uv_loop_t *loop) {
  *n = (struct event_stream){0};
  print_into(n->start, sizeof n->start, "%llx", (unsigned long long)clock_real_ms());
  uv_timer_init(loop, &n->beat);
  n->beat.data = n;
}
