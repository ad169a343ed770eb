/* Streams the records of a log to those who watch it. */
#include "daemon/events.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "os/loop.h"
#include "store/reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- changes of all sessions --- */

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

enum { TICK_MS = 1000, HEAD_BYTES = 64 };

struct stream { /* one watcher */
  struct stream *next;
  struct feed *feed;
  struct server_request *request;
  struct reader_place place;
  uint64_t seen;          /* records up to here are passed over */
  bool in_record;         /* its head was sent, its end not yet */
  char extra[HEAD_BYTES]; /* the framing around a record */
  unsigned extra_at, extra_n;
  struct buf deltas; /* whole events that wait */
  size_t deltas_at;
  uint64_t sent_ms; /* when bytes were last taken */
  bool beat;        /* a heartbeat is due */
};

enum { LATER = -2 }; /* the bytes are being fetched */

/* A window of a log in a store that may be slow: it is read in the pool, once for all watchers. */
struct fetch {
  struct feed *feed; /* NULL: nobody wants it any more */
  struct store_ref ref;
  struct log_reader reader;
  bool open, runs, failed;
  uint64_t at;
  struct buf bytes;
};

struct feed {
  struct feed *next;
  struct fetch *fetch; /* or NULL: the log is read at once */
  struct events *events;
  struct store_ref ref;
  struct log_reader reader;
  bool open; /* the reader */
  uint64_t bytes;
  bool over;
  struct stream *streams;
  void (*emptied)(void *ctx);
  void *ctx;
};

/* --- reading --- */

/* The log's owner may replace it after a failed sync; both files hold everything durable. */
static void close_log(struct feed *feed) {
  if (feed->open)
    reader_close(&feed->reader);
  feed->open = false;
}

static void wake_all(struct feed *feed);

static void fetch_free(struct fetch *f) {
  if (f->open)
    reader_close(&f->reader);
  buf_deinit(&f->bytes);
  free(f);
}

static void fetch_work(void *ctx) {
  struct fetch *f = ctx;
  struct err ignored;
  char_auto_t *out = xmalloc(LIMIT_API_FETCH_BYTES);
  if (!f->open)
    f->open = reader_open(&f->reader, &f->ref, &ignored);
  ssize_t n = f->open ? reader_read(&f->reader, f->at, out, LIMIT_API_FETCH_BYTES) : -1;
  if (n > 0)
    buf_append(&f->bytes, out, (size_t)n);
  f->failed = n <= 0;
  if (f->failed && f->open)
    reader_close(&f->reader);
  f->open = f->open && !f->failed;
}

static void fetch_over(void *ctx) {
  struct fetch *f = ctx;
  f->runs = false;
  if (f->feed == NULL)
    fetch_free(f);
  else
    wake_all(f->feed);
}

/* Copies bytes from the window, and starts fetching those that it does not have. */
static ssize_t fetch_read(struct fetch *f, char *out, size_t max, uint64_t at) {
  if (f->runs)
    return LATER;
  bool inside = at >= f->at && at < f->at + f->bytes.n;
  if (!inside && f->failed && f->at == at) {
    f->failed = false; /* a later attempt may succeed */
    return -1;
  }
  if (!inside) {
    buf_clear(&f->bytes);
    f->at = at;
    f->runs = true;
    loop_do(f->feed->events->loop, fetch_work, fetch_over, f);
    return LATER;
  }
  size_t skip = (size_t)(at - f->at), n = f->bytes.n - skip;
  n = n < max ? n : max;
  memcpy(out, f->bytes.p + skip, n);
  return (ssize_t)n;
}

static ssize_t read_log(struct feed *feed, char *out, size_t max, uint64_t at) {
  if (feed->fetch != NULL)
    return fetch_read(feed->fetch, out, max, at);
  for (int attempt = 0; attempt < 2; attempt++) {
    struct err ignored;
    if (!feed->open)
      feed->open = reader_open(&feed->reader, &feed->ref, &ignored);
    ssize_t n = feed->open ? reader_read(&feed->reader, at, out, max) : -1;
    if (n > 0)
      return n;
    close_log(feed);
  }
  return -1;
}

static void set_extra(struct stream *s, const char *text) {
  s->extra_at = 0;
  s->extra_n = (unsigned)snprintf(s->extra, sizeof s->extra, "%s", text);
}

/* Reads bytes of the current record, without its newline. Returns -1 if the log is unreadable. */
static ssize_t read_record(struct stream *s, char *out, size_t max) {
  uint64_t left = s->feed->bytes - s->place.at;
  ssize_t n = read_log(s->feed, out, left < max ? (size_t)left : max, s->place.at);
  if (n == LATER)
    return 0;
  if (n <= 0)
    return -1;
  const char *nl = memchr(out, '\n', (size_t)n);
  if (nl == NULL) {
    s->place.at += (uint64_t)n;
    return n;
  }
  s->place.at += (uint64_t)(nl - out) + 1;
  s->place.seq++;
  s->in_record = false;
  set_extra(s, "\n\n");
  return nl - out;
}

/* Skips records that the watcher has seen. Returns 1 if it advanced, else as read_piece does. */
static ssize_t events_pass_over(struct stream *s) {
  char bytes[4096];
  uint64_t left = s->feed->bytes - s->place.at;
  ssize_t n =
      read_log(s->feed, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, s->place.at);
  if (n <= 0)
    return n == LATER ? 0 : -1;
  const char *nl = memchr(bytes, '\n', (size_t)n);
  s->place.at += nl != NULL ? (uint64_t)(nl - bytes) + 1 : (uint64_t)n;
  s->place.seq += nl != NULL;
  return 1;
}

static size_t read_extra(struct stream *s, char *out, size_t max) {
  size_t n = s->extra_n - s->extra_at;
  n = n < max ? n : max;
  memcpy(out, s->extra + s->extra_at, n);
  s->extra_at += (unsigned)n;
  return n;
}

static size_t read_deltas(struct stream *s, char *out, size_t max) {
  size_t n = s->deltas.n - s->deltas_at;
  n = n < max ? n : max;
  memcpy(out, s->deltas.p + s->deltas_at, n);
  s->deltas_at += n;
  if (s->deltas_at == s->deltas.n) {
    buf_deinit(&s->deltas);
    s->deltas_at = 0;
  }
  return n;
}

/* Reads one piece of what comes next. Returns 0 for nothing yet, -1 for nothing ever again. */
static ssize_t read_piece(struct stream *s, char *out, size_t max) {
  if (s->extra_at < s->extra_n)
    return (ssize_t)read_extra(s, out, max);
  if (s->in_record)
    return read_record(s, out, max);
  if (s->deltas.n > 0)
    return (ssize_t)read_deltas(s, out, max);
  while (s->place.at < s->feed->bytes && s->place.seq <= s->seen) {
    ssize_t passed = events_pass_over(s);
    if (passed <= 0)
      return passed;
  }
  if (s->place.at < s->feed->bytes) {
    char head[HEAD_BYTES];
    print_into(head, sizeof head,
               "id: %llu\nevent: record\ndata: ", (unsigned long long)s->place.seq);
    set_extra(s, head);
    s->in_record = true;
    return (ssize_t)read_extra(s, out, max);
  }
  if (s->feed->over)
    return -1;
  if (s->beat) {
    s->beat = false;
    set_extra(s, ":\n\n");
    return (ssize_t)read_extra(s, out, max);
  }
  return 0;
}

static ssize_t events_on_read(void *ctx, char *out, size_t max) {
  struct stream *s = ctx;
  size_t n = 0;
  while (n < max) {
    ssize_t got = read_piece(s, out + n, max - n);
    if (got < 0 && n == 0)
      return -1;
    if (got < 0 || (got == 0 && s->extra_at == s->extra_n))
      break;
    n += (size_t)got; /* the end of an empty record gives 0; more may follow */
  }
  if (n > 0) {
    s->beat = false;
    s->sent_ms = uv_now(s->feed->events->loop);
  }
  return (ssize_t)n;
}

static void events_on_closed(void *ctx) {
  struct stream *s = ctx;
  struct feed *feed = s->feed;
  CHAIN_REMOVE(feed->streams, s);
  buf_deinit(&s->deltas);
  free(s);
  if (feed->streams == NULL)
    feed->emptied(feed->ctx);
}

static const struct server_stream_ops stream_ops = {events_on_read, events_on_closed};

/* --- feeds --- */

struct feed *feed_new(struct events *ev, const struct store_ref *ref, void (*emptied)(void *ctx),
                      void *ctx) {
  struct feed *feed = xcalloc(1, sizeof *feed);
  *feed =
      (struct feed){.next = ev->feeds, .events = ev, .ref = *ref, .emptied = emptied, .ctx = ctx};
  if (store_is_address(ref->name)) {
    feed->fetch = xcalloc(1, sizeof *feed->fetch);
    feed->fetch->feed = feed;
    feed->fetch->ref = *ref;
  }
  ev->feeds = feed;
  return feed;
}

void feed_free(struct feed *feed) {
  if (feed == NULL)
    return;
  assert(feed->streams == NULL);
  CHAIN_REMOVE(feed->events->feeds, feed);
  close_log(feed);
  if (feed->fetch != NULL && feed->fetch->runs)
    feed->fetch->feed = NULL;
  else if (feed->fetch != NULL)
    fetch_free(feed->fetch);
  free(feed);
}

bool feed_watched(const struct feed *feed) {
  return feed != NULL && feed->streams != NULL;
}

static void wake_all(struct feed *feed) {
  for (struct stream *s = feed->streams; s; s = s->next)
    server_wake(s->request);
}

void feed_grow(struct feed *feed, uint64_t bytes) {
  if (bytes <= feed->bytes)
    return;
  feed->bytes = bytes;
  wake_all(feed);
}

void feed_over(struct feed *feed) {
  feed->over = true;
  wake_all(feed);
}

void feed_again(struct feed *feed) {
  feed->over = false;
}

void feed_delta(struct feed *feed, long turn, long call, bool thinking, struct str text) {
  if (feed->streams == NULL || text.n == 0 || !utf8_valid(text.p, text.n))
    return;
  json_t *data = json_pack("{sI sI ss ss%}", "turn", (json_int_t)turn, "call", (json_int_t)call,
                           "kind", thinking ? "thinking" : "text", "text", text.p, text.n);
  buf_auto_t event = {0};
  buf_puts(&event, "event: delta\ndata: ");
  json_write(data, &event);
  buf_puts(&event, "\n\n");
  json_decref(data);
  for (struct stream *s = feed->streams; s; s = s->next) {
    bool behind = s->place.at < feed->bytes || s->in_record;
    if (behind || s->deltas.n + event.n > LIMIT_API_DELTA_BYTES)
      continue; /* pieces may be lost: the record with the whole text follows */
    buf_str(&s->deltas, buf_view(&event));
    server_wake(s->request);
  }
}

void feed_watch(struct feed *feed, struct server_request *r, uint64_t last_seq) {
  struct stream *s = xcalloc(1, sizeof *s);
  *s = (struct stream){.next = feed->streams,
                       .feed = feed,
                       .request = r,
                       .place = {.seq = 1},
                       .beat = true, /* it carries the headers out */
                       .sent_ms = uv_now(feed->events->loop)};
  feed->streams = s;
  char first;
  if (feed->fetch != NULL)
    s->seen = last_seq;
  else if (last_seq > 0 && feed->bytes > 0 && read_log(feed, &first, 1, 0) > 0)
    reader_skip(&feed->reader, &s->place, last_seq, feed->bytes);
  server_stream(r, "text/event-stream", &stream_ops, s);
}

/* --- heartbeats --- */

static void events_on_tick(uv_timer_t *timer) {
  struct events *ev = timer->data;
  uint64_t now = uv_now(ev->loop);
  for (struct feed *feed = ev->feeds; feed; feed = feed->next)
    for (struct stream *s = feed->streams; s; s = s->next)
      if (now - s->sent_ms >= LIMIT_API_HEARTBEAT_MS) {
        s->beat = true;
        server_wake(s->request);
      }
}

void events_init(struct events *ev, uv_loop_t *loop) {
  *ev = (struct events){.loop = loop};
  uv_timer_init(loop, &ev->ticker);
  ev->ticker.data = ev;
  uv_timer_start(&ev->ticker, events_on_tick, TICK_MS, TICK_MS);
}

void events_close(struct events *ev) {
  assert(ev->feeds == NULL);
  uv_close((uv_handle_t *)&ev->ticker, NULL);
}
