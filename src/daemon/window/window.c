/* Serves the window's pages. */
#include "daemon/window/window.h"
#include "daemon/session_api.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/resource.h"
#include "daemon/server.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/peer.h"
#include "web/auth.h"
#include "web/sanitize.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- pages that watch ---
 *
 * Tells pages when what they show has changed, by server-sent events without content: a
 * page then fetches itself again.
 *
 *   watches_init(&ws, loop, &store)
 *   watch_take(&ws, request, browser, id)   id: of a session, or "" for all
 *   watches_changed(&ws, id)                the log of a session of this process grew; NULL: what
 *                                           else there is changed
 *   watches_said(&ws, id, ...)              a running call said something: viewers of that session
 *                                           get the words
 *
 * Logs that other processes write are checked every LIMIT_WINDOW_LOOK_MS: their size and owner,
 * never their bytes. A browser keeps LIMIT_WINDOW_STREAM_COUNT streams; with one more, the oldest
 * is told to rest, and its page polls now and then. So it is with all browsers together,
 * which keep less than their connections. */

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
  void *owner; /* the window: it is freed when all handles are closed */
};

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
  buf_auto_t cleaned = {0};
  sanitize_text(&cleaned, text);
  return json_text(buf_view(&cleaned));
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
  struct watches *ws;
  size_t count;
  struct marked *all; /* one for each watch; some may be of the same session */
};

static void marking_work(void *ctx) {
  struct marking *m = ctx;
  for (size_t i = 0; i < m->count; i++)
    m->all[i].mark = m->all[i].id[0] != '\0' ? mark_of(m->ws, m->all[i].id) : mark_of_all(m->ws);
}

static void watches_let_go(struct watches *ws) {
  if (--ws->open_handles == 0)
    free(ws->owner);
}

static void marking_over(void *ctx) {
  struct marking *m = ctx;
  struct watches *ws = m->ws;
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
  ws->marking = m;
  ws->open_handles++;
  loop_do(ws->loop, marking_work, marking_over, m);
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

static void watches_changed(struct watches *ws, const char *id) {
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
/* `end`: how many bytes of that kind the call has produced so far. */
static void watches_said(struct watches *ws, const char *id, long call, bool thinking, uint64_t end,
                         struct str text) {
  buf_auto_t event = {0};
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

/* `browser`: 0: of all of them. */
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

static void watch_take(struct watches *ws, struct server_request *r, unsigned browser,
                       const char *id) {
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

static void watches_init(struct watches *ws, uv_loop_t *loop, const struct store *store) {
  *ws = (struct watches){.store = store, .loop = loop, .open_handles = 2};
  uv_timer_init(loop, &ws->look);
  uv_timer_init(loop, &ws->soon);
  ws->look.data = ws->soon.data = ws;
}

static void watches_on_closed(uv_handle_t *handle) {
  watches_let_go(handle->data);
}

/* --- the listener ---
 *
 * The port of the window: which addresses it may have, and who is let in.
 *
 *   listener_listen(address, &fd, host, &err)  host: what a browser must say in Host: "127.0.0.1:N"
 *   listener_accept_any(fd)                       accepts any peer: a reverse proxy of another user
 *   listener_origin(text, host, &err)             "https://HOST" of a proxy: its host, checked
 *   listener_accept(fd)                           as server_door.accept: EPERM for another user
 *   listener_allows(r, host, changes)             does the request come from our own page? */

enum { LISTENER_HOST_BYTES = 64 };
extern const char *const listener_headers[]; /* for every answer: name, value, ..., NULL */

const char *const listener_headers[] = {
    "Content-Security-Policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "X-Content-Type-Options",
    "nosniff",
    "Referrer-Policy",
    "no-referrer",
    "Cross-Origin-Opener-Policy",
    "same-origin",
    "Cross-Origin-Resource-Policy",
    "same-origin",
    "Cache-Control",
    "no-store",
    NULL};

union listener_address {
  struct sockaddr any;
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
};

/* Reads numeric addresses only: a name could mean another machine tomorrow. */
static bool read_address(const char *text, union listener_address *out, struct err *err) {
  const char *colon = strrchr(text, ':');
  char host[INET6_ADDRSTRLEN + 2] = "";
  long port = -1;
  bool numbered = colon != NULL && str_to_long(str_from(colon + 1), &port);
  if (numbered && (port < 0 || port > 65535))
    return err_set(err, ERR_USAGE, "%ld is not a port: write 1 to 65535, or 0 for any that is free",
                   port);
  bool shaped = numbered && (size_t)(colon - text) < sizeof host;
  if (shaped)
    memcpy(host, text, (size_t)(colon - text));
  *out = (union listener_address){.in = {.sin_family = AF_INET}};
  size_t n = strlen(host);
  if (shaped && inet_pton(AF_INET, host, &out->in.sin_addr) == 1) {
    out->in.sin_port = htons((uint16_t)port);
    if ((ntohl(out->in.sin_addr.s_addr) >> 24) == 127)
      return true;
  } else if (shaped && n > 2 && host[0] == '[' && host[n - 1] == ']') {
    host[n - 1] = '\0';
    out->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET6, host + 1, &out->in6.sin6_addr) == 1 &&
        IN6_IS_ADDR_LOOPBACK(&out->in6.sin6_addr))
      return true;
  }
  return err_set(err, ERR_USAGE,
                 "the window opens on addresses of this machine only: write 127.0.0.1:PORT or "
                 "[::1]:PORT instead of %.80s; from another machine use ssh -L",
                 text);
}

static bool name_host(int fd, char host[LISTENER_HOST_BYTES], struct err *err) {
  union listener_address a;
  char text[INET6_ADDRSTRLEN];
  socklen_t n = sizeof a;
  if (getsockname(fd, &a.any, &n) != 0)
    return err_set_errno(err, errno, "cannot open the window's port");
  if (a.any.sa_family == AF_INET6)
    print_into(host, LISTENER_HOST_BYTES, "[::1]:%u", ntohs(a.in6.sin6_port));
  else
    print_into(host, LISTENER_HOST_BYTES, "%s:%u",
               inet_ntop(AF_INET, &a.in.sin_addr, text, sizeof text), ntohs(a.in.sin_port));
  return true;
}

/* Says that the port is taken, and names one that is free. */
static bool offer_another(union listener_address a, socklen_t n, const char *taken,
                          struct err *err) {
  char host[LISTENER_HOST_BYTES] = "0";
  int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  a.in.sin_port = 0; /* in6 has it at the same place */
  if (fd >= 0 && bind(fd, &a.any, n) == 0)
    (void)name_host(fd, host, err);
  if (fd >= 0)
    (void)close(fd);
  return err_set(err, ERR_LOCKED,
                 "another program uses the port of %.80s: take another, such as %s", taken, host);
}

static bool listener_listen(const char *address, int *fd, char host[LISTENER_HOST_BYTES],
                            struct err *err) {
  union listener_address a;
  int on = 1, first_byte_s = LIMIT_WINDOW_FIRST_BYTE_S;
  if (!read_address(address, &a, err))
    return false;
  bool six = a.any.sa_family == AF_INET6;
  socklen_t n = six ? sizeof a.in6 : sizeof a.in;
  *fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*fd < 0)
    return err_set_errno(err, errno, "cannot open the window's port");
  (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  /* With this, a connection's first request is there to look at when it is accepted. */
  (void)setsockopt(*fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &first_byte_s, sizeof first_byte_s);
  if (bind(*fd, &a.any, n) == 0 && listen(*fd, LIMIT_API_BACKLOG_COUNT) == 0 &&
      name_host(*fd, host, err))
    return true;
  int error = errno;
  close(*fd);
  *fd = -1;
  if (error == EADDRINUSE)
    return offer_another(a, n, address, err);
  return err_set_errno(err, error, "cannot open the window on %.80s", address);
}

static int listener_accept(int fd) {
  int peer = peer_accept(fd);
  if (peer >= 0 && !peer_tcp_is_own_user(peer)) {
    close(peer);
    errno = EPERM;
    return -1;
  }
  return peer;
}

static int listener_accept_any(int fd) {
  return peer_accept(fd);
}

/* A browser's Host header has only letters, digits, dots, dashes, and a port. */
static bool listener_origin(const char *text, char host[LISTENER_HOST_BYTES], struct err *err) {
  static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789.-:[]";
  static const char scheme[] = "https://";
  size_t n = strlen(text), head = sizeof scheme - 1;
  if (n <= head || strncmp(text, scheme, head) != 0 || n - head >= LISTENER_HOST_BYTES ||
      strspn(text + head, good) != n - head)
    return err_set(err, ERR_USAGE,
                   "--http-origin is what a browser shows before the path, in small letters: "
                   "https://HOST or https://HOST:PORT, not %.80s",
                   text);
  memcpy(host, text + head, n - head + 1);
  return true;
}

static bool is_origin(const char *origin, const char *host, bool secure) {
  const char *scheme = secure ? "https://" : "http://";
  size_t n = strlen(scheme);
  return origin != NULL && strncmp(origin, scheme, n) == 0 && strcmp(origin + n, host) == 0;
}

/* `host`: from listener_listen, or from listener_origin with `secure` set, and then Origin begins
 * with https. */
static bool listener_allows(const struct server_request *r, const char *host, bool secure,
                            bool changes) {
  const char *said = server_header(r, "Host"), *site = server_header(r, "Sec-Fetch-Site");
  const char *origin = server_header(r, "Origin");
  if (said == NULL || strcasecmp(said, host) != 0)
    return false;
  if (site == NULL || (strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0))
    return false;
  if (origin != NULL && !is_origin(origin, host, secure))
    return false;
  return !changes || (origin != NULL && strcmp(site, "same-origin") == 0 &&
                      server_header(r, "X-Segue") != NULL);
}

/* --- window --- */

enum { END_LOOK_MS = 20, IDLE_LOOK_MS = 60000 };

struct window {
  struct window_options options;
  struct store store;
  char host[LISTENER_HOST_BYTES];
  struct auth_pass pass;
  struct server_door door;
  struct server *http;
  struct read_jobs readings;
  struct watches watches;
  struct view_cache *own_shelf; /* or NULL */
  struct view_cache *view_cache;
  uv_timer_t end;   /* runs until all reads have finished */
  int64_t asked_ms; /* when a browser with a cookie last asked */
};

static int64_t window_now(void) {
  return (int64_t)(clock_mono_us() / 1000);
}

/* --- who may come in --- */

static struct auth_browser *who(struct window *w, const struct server_request *r) {
  return auth_pass_know(&w->pass, server_header(r, "Cookie"), window_now());
}

/* Without a cookie one gets only the page that posts a code, and what that page loads. */
static bool is_outside(const char *method, const char *rest) {
  bool posts = strcmp(method, "POST") == 0;
  return str_among(str_from(rest), posts ? "enter" : "enter.mjs style.css");
}

/* Another page (an opened file, a mail) may link here: it gets an empty page, which then asks again
 * from here. */
static bool is_led_here(const struct window *w, const struct server_request *r, const char *method,
                        const char *rest) {
  const char *host = server_header(r, "Host"), *mode = server_header(r, "Sec-Fetch-Mode");
  return strcmp(method, "GET") == 0 && rest[0] == '\0' && host != NULL &&
         strcasecmp(host, w->host) == 0 && mode != NULL && strcmp(mode, "navigate") == 0 &&
         server_header(r, "Origin") == NULL;
}

static const char enter_path[] = "enter-page";

static bool on_enter(void *ctx, struct server_request *r, const char *method, const char **path) {
  struct window *w = ctx;
  size_t n = strlen(w->pass.path);
  bool changes = strcmp(method, "POST") == 0;
  if (strncmp(*path, w->pass.path, n) != 0)
    return false;
  const char *rest = *path + n;
  bool allowed = (changes || strcmp(method, "GET") == 0) &&
                 listener_allows(r, w->host, w->options.origin != NULL, changes);
  struct auth_browser *browser = allowed ? who(w, r) : NULL;
  if (browser != NULL)
    w->asked_ms = window_now();
  if (browser != NULL || (allowed && is_outside(method, rest)))
    *path = rest;
  else if (is_led_here(w, r, method, rest))
    *path = enter_path;
  else
    return false;
  return !(changes && browser != NULL && browser->read_only);
}

static void on_refuse(void *ctx, struct server_request *r) {
  (void)ctx;
  server_reply(r, 404, "text/plain; charset=utf-8", STR("There is nothing here.\n"));
}

/* --- pages --- */

struct page_job { /* the ask comes first: both have the same address */
  struct page_ask ask;
  const struct window_options *options;
  void *about;
};

static void page_drop(void *what) {
  struct page_job *job = what;
  struct page_ask *ask = &job->ask;
  if (job->about != NULL)
    job->options->about_drop(job->about);
  json_decref(ask->about);
  json_decref(ask->day);
  for (size_t i = 0; i < ask->said_count; i++) {
    free(ask->said[i].text);
    free(ask->said[i].thinking);
  }
  free(ask->said);
  free(ask->live);
  free(job);
}

static void page_work(void *what, struct read_job_answer *answer) {
  answer->type = "text/html; charset=utf-8";
  struct page_job *job = what;
  if (job->about != NULL)
    job->ask.about = job->options->about_read(job->about);
  answer->status = page_write(&job->ask, &answer->body);
  if (answer->status == 200 &&
      (job->ask.kind == PAGE_AUDIT_CSV || job->ask.kind == PAGE_BEHIND_CSV))
    answer->type = "text/csv; charset=utf-8";
  else if (answer->status == 200 &&
           (job->ask.kind == PAGE_AUDIT_JSON || job->ask.kind == PAGE_BEHIND_JSON))
    answer->type = "application/json";
}

static void take_query(const struct server_request *r, const char *name, char *out, size_t n) {
  const char *given = server_query(r, name);
  print_into(out, n, "%s", given ? given : "");
}

/* Checks an id before it becomes part of a log's name. Returns false if it has answered. */
static bool take_id(struct window *w, struct server_request *r, char id[STORE_ID_BYTES]) {
  const char *word = server_part(r);
  if (strlen(word) == STORE_ID_BYTES - 1 &&
      strspn(word, "0123456789abcdef-") == STORE_ID_BYTES - 1) {
    memcpy(id, word, STORE_ID_BYTES);
    return true;
  }
  on_refuse(w, r);
  return false;
}

static bool is_of_session(enum page_kind kind) {
  return kind == PAGE_SESSION || kind == PAGE_JUDGMENT || kind == PAGE_INTEGRITY ||
         kind == PAGE_RECORDS || kind == PAGE_TEXT || kind == PAGE_FIND || kind == PAGE_WORKFLOW;
}

/* Returns NULL if the page needs none, or there is no such log. */
static struct view_cache_item *shelf_item_of(struct window *w, struct page_ask *ask) {
  struct store_ref ref;
  store_ref(&w->store, ask->id, &ref);
  if (ask->kind == PAGE_INTEGRITY || (!store_is_address(ref.name) && !store_is_there(&ref)))
    return NULL;
  struct view_cache_item *item = view_cache_find(w->view_cache, &ref);
  ask->track = item->track;
  return item;
}

/* With a shared store, finds out first whether there is such a session. True: that is under way. */
static bool is_looked_for(struct window *w, struct server_request *r) {
  if (!store_is_address(w->store.where) || server_is_again(r))
    return false;
  read_job_find(&w->readings, r, &w->store);
  return true;
}

/* A route's `what` is the kind of its page. */
static void get_page(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  enum page_kind kind = (enum page_kind)server_what(r);
  const struct auth_browser *browser = who(w, r);
  struct page_job *job = xcalloc(1, sizeof *job);
  struct page_ask *ask = &job->ask;
  job->options = &w->options;
  if (kind == PAGE_PROVIDERS && w->options.about != NULL)
    job->about = w->options.about(w->options.ctx);
  ask->daemon = w->options.act != NULL;
  ask->kind = kind;
  ask->store = w->store;
  ask->now_ms = clock_real_ms();
  ask->acts = w->options.act != NULL && browser != NULL && !browser->read_only;
  if (w->options.live != NULL)
    ask->live_count = w->options.live(w->options.ctx, &ask->live);
  print_into(ask->root, sizeof ask->root, "%s", w->pass.path);
  take_query(r, "q", ask->q, sizeof ask->q);
  take_query(r, "before", ask->before, sizeof ask->before);
  take_query(r, "sort", ask->sort, sizeof ask->sort);
  take_query(r, "from", ask->from, sizeof ask->from);
  take_query(r, "ref", ask->ref, sizeof ask->ref);
  take_query(r, "of", ask->of, sizeof ask->of);
  take_query(r, "what", ask->what, sizeof ask->what);
  take_query(r, "k1", ask->keys[0], sizeof ask->keys[0]);
  take_query(r, "k2", ask->keys[1], sizeof ask->keys[1]);
  take_query(r, "k3", ask->keys[2], sizeof ask->keys[2]);
  if (kind == PAGE_COMPARE) /* its path is compare/A_B */
    (void)sscanf(server_part(r), "%36[0-9a-f-]_%36[0-9a-f-]", ask->a, ask->b);
  ask->only_failed = server_query(r, "failed") != NULL;
  ask->all = server_query(r, "all") != NULL;
  print_into(ask->turn, sizeof ask->turn, "%s", server_part2(r));
  if (is_of_session(kind) && (!take_id(w, r, ask->id) || is_looked_for(w, r))) {
    page_drop(job);
    return;
  }
  if (kind == PAGE_SESSION && w->options.said != NULL)
    ask->said_count = w->options.said(w->options.ctx, ask->id, &ask->said);
  if (kind == PAGE_SESSION && w->options.day != NULL)
    ask->day = w->options.day(w->options.ctx);
  struct view_cache_item *item = is_of_session(kind) ? shelf_item_of(w, ask) : NULL;
  read_job_take_of(&w->readings, r, item, page_work, page_drop, job);
}

/* Where in the changes a page begins. */
static size_t changes_from(const struct server_request *r) {
  const char *given = server_query(r, "from");
  long from = 0;
  return given != NULL && str_to_long(str_from(given), &from) && from > 0 ? (size_t)from : 0;
}

static void window_on_changes(void *ctx, struct server_request *r,
                              const struct session_diff *difference) {
  struct window *w = ctx;
  struct page_ask ask = {.kind = PAGE_CHANGES,
                         .now_ms = clock_real_ms(),
                         .daemon = w->options.act != NULL,
                         .diff = difference->diff,
                         .all = server_query(r, "all") != NULL,
                         .diff_bytes = difference->bytes,
                         .diff_from = changes_from(r),
                         .diff_more_files = difference->more_files,
                         .diff_why = difference->why,
                         .sound = difference->sound,
                         .damage = difference->damage};
  buf_auto_t page = {0};
  print_into(ask.root, sizeof ask.root, "%s", w->pass.path);
  print_into(ask.id, sizeof ask.id, "%s", server_part(r));
  unsigned status = page_write(&ask, &page);
  server_reply(r, status, "text/html; charset=utf-8", buf_view(&page));
}

/* Returns false if it has answered the request. */
static bool take_log(struct window *w, struct server_request *r, char id[STORE_ID_BYTES],
                     struct store_ref *ref) {
  if (!take_id(w, r, id) || is_looked_for(w, r))
    return false;
  store_ref(&w->store, id, ref);
  if (server_is_again(r) || store_is_there(ref))
    return true;
  on_refuse(w, r);
  return false;
}

static void get_changes(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  char id[STORE_ID_BYTES];
  struct store_ref ref;
  const struct session_diff_ask ask = {.processes = w->options.processes,
                                       .all = server_query(r, "all") != NULL,
                                       .from = changes_from(r),
                                       .checks = true,
                                       .done = window_on_changes,
                                       .ctx = w};
  if (take_log(w, r, id, &ref))
    session_diff_take(&w->readings, &ask, r, &ref);
}

static void get_enter(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  struct page_ask ask = {.kind = PAGE_ENTER};
  buf_auto_t page = {0};
  print_into(ask.root, sizeof ask.root, "%s", w->pass.path);
  (void)page_write(&ask, &page);
  server_reply(r, 200, "text/html; charset=utf-8", buf_view(&page));
}

enum window_file { FILE_STYLE, FILE_PAGE, FILE_IDIOMORPH, FILE_ENTER };

static void get_file(void *ctx, struct server_request *r) {
  static const char *const names[] = {[FILE_STYLE] = "web/style.css",
                                      [FILE_PAGE] = "web/page.mjs",
                                      [FILE_IDIOMORPH] = "web/vendor/idiomorph.min.js",
                                      [FILE_ENTER] = "web/enter.mjs"};
  const struct resource *file = resource_find(names[server_what(r)]);
  const char *type =
      server_what(r) == FILE_STYLE ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
  (void)ctx;
  assert(file != NULL);
  server_reply(r, 200, type, (struct str){file->p, file->n});
}

/* --- changes --- */

static void post_enter(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  char cookie[AUTH_COOKIE_BYTES], header[SERVER_VALUE_BYTES];
  json_auto_t *body = json_loadb(server_body(r).p, server_body(r).n, JSON_REJECT_DUPLICATES, NULL);
  const char *code = json_string_value(json_object_get(body, "code"));
  unsigned number = code != NULL ? auth_pass_enter(&w->pass, code, window_now(), cookie) : 0;
  if (number == 0) {
    server_problem(r, 404, NULL, "this code is no longer valid: run segue web again");
    return;
  }
  print_into(header, sizeof header, "segue=%s; Path=%s; Max-Age=%d; HttpOnly; SameSite=Strict%s",
             cookie, w->pass.path, LIMIT_WINDOW_IDLE_MS / 1000,
             w->options.origin != NULL ? "; Secure" : "");
  w->asked_ms = window_now();
  server_set_header(r, "Set-Cookie", header);
  server_reply(r, 204, NULL, STR(""));
}

enum window_act {
  ACT_ANSWER,
  ACT_APPROVE,
  ACT_REJECT,
  ACT_CANCEL,
  ACT_RESUME,
  ACT_STEER,
  ACT_DISMISS,
  ACT_FORK,
  ACT_START,
  ACT_PLAN
};

static void post_act(void *ctx, struct server_request *r) {
  static const char *const words[] = {
      [ACT_ANSWER] = "answer",   [ACT_APPROVE] = "approve", [ACT_REJECT] = "reject",
      [ACT_CANCEL] = "cancel",   [ACT_RESUME] = "resume",   [ACT_STEER] = "steer",
      [ACT_DISMISS] = "dismiss", [ACT_FORK] = "fork",       [ACT_START] = "start",
      [ACT_PLAN] = "plan"};
  struct window *w = ctx;
  char id[STORE_ID_BYTES] = "";
  const struct auth_browser *browser = who(w, r);
  server_set_browser(r, browser != NULL ? browser->number : 0);
  if (w->options.act == NULL)
    server_problem(r, 409, NULL, "no daemon is running here: this page cannot change anything");
  else if (server_what(r) >= ACT_START || take_id(w, r, id))
    w->options.act(w->options.ctx, r, id, words[server_what(r)]);
}

static void take_watch(struct window *w, struct server_request *r, const char *id) {
  const struct auth_browser *browser = who(w, r);
  watch_take(&w->watches, r, browser != NULL ? browser->number : 0, id);
}

static void get_events(void *ctx, struct server_request *r) {
  take_watch(ctx, r, "");
}

static void get_session_events(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  char id[STORE_ID_BYTES];
  struct store_ref ref;
  if (take_log(w, r, id, &ref))
    take_watch(w, r, id);
}

static const char *const sessions_query[] = {"q", "before", "sort", NULL};
static const char *const audit_query[] = {"q", NULL};
static const char *const behind_query[] = {"of", "what", "k1", "k2", "k3", "q", "from", NULL};
static const char *const session_query[] = {"from", "failed", NULL};
static const char *const whole_query[] = {"all", NULL};
static const char *const changes_query[] = {"all", "from", NULL};
static const char *const records_query[] = {"from", NULL};
static const char *const text_query[] = {"ref", "from", NULL};
static const char *const find_query[] = {"q", NULL};

static const struct server_route window_routes[] = {
    {"GET", "", "sessions", TAKES_NOTHING, sessions_query, get_page, PAGE_SESSIONS},
    {"GET", "compare/{pair}", "two sessions", TAKES_NOTHING, whole_query, get_page, PAGE_COMPARE},
    {"GET", "inbox", "what waits for a person", TAKES_NOTHING, NULL, get_page, PAGE_INBOX},
    {"GET", "s/{id}/", "a session", TAKES_NOTHING, session_query, get_page, PAGE_SESSION},
    {"GET", "s/{id}/integrity", "verify its log", TAKES_NOTHING, NULL, get_page, PAGE_INTEGRITY},
    {"GET", "s/{id}/changes", "the lines it changed", TAKES_NOTHING, changes_query, get_changes, 0},
    {"GET", "s/{id}/records", "its records", TAKES_NOTHING, records_query, get_page, PAGE_RECORDS},
    {"GET", "s/{id}/text", "one text of it", TAKES_NOTHING, text_query, get_page, PAGE_TEXT},
    {"GET", "s/{id}/find", "find a text in it", TAKES_NOTHING, find_query, get_page, PAGE_FIND},
    {"GET", "s/{id}/workflow", "its workflow and configuration", TAKES_NOTHING, whole_query,
     get_page, PAGE_WORKFLOW},
    {"GET", "s/{id}/events", "its changes", TAKES_NOTHING, NULL, get_session_events, 0},
    {"GET", "s/{id}/{turn}", "a judgment", TAKES_NOTHING, whole_query, get_page, PAGE_JUDGMENT},
    {"POST", "s/{id}/answer", "answer a question", TAKES_JSON, NULL, post_act, ACT_ANSWER},
    {"POST", "s/{id}/approve", "let it go on", TAKES_JSON, NULL, post_act, ACT_APPROVE},
    {"POST", "s/{id}/reject", "do not let it", TAKES_JSON, NULL, post_act, ACT_REJECT},
    {"POST", "s/{id}/cancel", "end it", TAKES_JSON, NULL, post_act, ACT_CANCEL},
    {"POST", "s/{id}/resume", "go on with it", TAKES_JSON, NULL, post_act, ACT_RESUME},
    {"POST", "s/{id}/steer", "say something to it", TAKES_JSON, NULL, post_act, ACT_STEER},
    {"POST", "s/{id}/dismiss", "do not list it", TAKES_JSON, NULL, post_act, ACT_DISMISS},
    {"POST", "s/{id}/fork", "run again from a turn", TAKES_JSON, NULL, post_act, ACT_FORK},
    {"POST", "start", "start a workflow", TAKES_JSON, NULL, post_act, ACT_START},
    {"POST", "plan", "plan it", TAKES_JSON, NULL, post_act, ACT_PLAN},
    {"GET", "workflows", "workflows with their last runs", TAKES_NOTHING, NULL, get_page,
     PAGE_WORKFLOWS},
    {"GET", "audit", "judgments counted", TAKES_NOTHING, audit_query, get_page, PAGE_AUDIT},
    {"GET", "audit.csv", "the same", TAKES_NOTHING, audit_query, get_page, PAGE_AUDIT_CSV},
    {"GET", "audit.json", "the same", TAKES_NOTHING, audit_query, get_page, PAGE_AUDIT_JSON},
    {"GET", "judgments", "what a number counts", TAKES_NOTHING, behind_query, get_page,
     PAGE_BEHIND},
    {"GET", "judgments.csv", "the same", TAKES_NOTHING, behind_query, get_page, PAGE_BEHIND_CSV},
    {"GET", "judgments.json", "the same", TAKES_NOTHING, behind_query, get_page, PAGE_BEHIND_JSON},
    {"GET", "providers", "providers and the daemon", TAKES_NOTHING, NULL, get_page, PAGE_PROVIDERS},
    {"GET", "events", "changes of all", TAKES_NOTHING, NULL, get_events, 0},
    {"GET", "style.css", "style", TAKES_NOTHING, NULL, get_file, FILE_STYLE},
    {"GET", "page.mjs", "script", TAKES_NOTHING, NULL, get_file, FILE_PAGE},
    {"GET", "idiomorph.js", "script", TAKES_NOTHING, NULL, get_file, FILE_IDIOMORPH},
    {"GET", "enter.mjs", "script", TAKES_NOTHING, NULL, get_file, FILE_ENTER},
    {"GET", "enter-page", "for a browser without the cookie", TAKES_NOTHING, NULL, get_enter, 0},
    {"POST", "enter", "exchange a code for a cookie", TAKES_JSON, NULL, post_enter, 0},
    {0},
};

/* --- the window --- */

static void on_idle_look(uv_timer_t *timer) {
  struct window *w = timer->data;
  if (window_now() - w->asked_ms >= LIMIT_WINDOW_IDLE_MS)
    w->options.idle(w->options.ctx);
}

struct window *window_new(const struct window_options *options, struct err *err) {
  struct window *w = xcalloc(1, sizeof *w);
  const char *address = options->address != NULL ? options->address : "127.0.0.1:0";
  w->options = *options;
  w->store = *options->store;
  w->asked_ms = window_now();
  w->door =
      (struct server_door){.fd = -1,
                           .accept = options->any_peer ? listener_accept_any : listener_accept,
                           .connection_bytes = LIMIT_WINDOW_CONNECTION_BYTES,
                           .short_bytes = LIMIT_WINDOW_SHORT_BYTES,
                           .short_head_bytes = LIMIT_WINDOW_SHORT_HEAD_BYTES,
                           .header_bytes = LIMIT_WINDOW_HEADER_BYTES,
                           .body_bytes = LIMIT_WINDOW_BODY_BYTES,
                           .headers = listener_headers,
                           .enter = on_enter,
                           .refuse = on_refuse};
  auth_pass_init(&w->pass);
  read_jobs_init(&w->readings, options->loop);
  if (listener_listen(address, &w->door.fd, w->host, err) &&
      (options->origin == NULL || listener_origin(options->origin, w->host, err)))
    w->http = server_new(options->loop, NULL, &w->door, window_routes, w,
                         LIMIT_WINDOW_CONNECTION_COUNT, err);
  if (w->http == NULL) {
    if (w->door.fd >= 0)
      close(w->door.fd);
    free(w);
    return NULL;
  }
  watches_init(&w->watches, options->loop, &w->store);
  if (options->view_cache == NULL)
    w->own_shelf = view_cache_new(options->loop);
  w->view_cache = options->view_cache != NULL ? options->view_cache : w->own_shelf;
  uv_timer_init(options->loop, &w->end);
  w->end.data = w;
  if (options->idle != NULL)
    uv_timer_start(&w->end, on_idle_look, IDLE_LOOK_MS, IDLE_LOOK_MS);
  return w;
}

void window_url(const struct window *w, char url[WINDOW_URL_BYTES]) {
  print_into(url, WINDOW_URL_BYTES, "http%s://%s%s", w->options.origin != NULL ? "s" : "", w->host,
             w->pass.path);
}

void window_code(struct window *w, bool read_only, char code[WINDOW_CODE_BYTES]) {
  static_assert((int)WINDOW_CODE_BYTES >= (int)AUTH_CODE_BYTES, "a code fits");
  auth_pass_code(&w->pass, read_only, window_now(), code);
}

void window_revoke(struct window *w) {
  auth_pass_revoke(&w->pass);
}

void window_changed(struct window *w, const char *id) {
  watches_changed(&w->watches, id);
}

void window_said(struct window *w, const char *id, long call, bool thinking, uint64_t end,
                 struct str text) {
  watches_said(&w->watches, id, call, thinking, end, text);
}

size_t window_busy(const struct window *w) {
  return read_jobs_busy(&w->readings);
}

static void on_end_closed(uv_handle_t *handle) {
  struct window *w = handle->data;
  view_cache_free(w->own_shelf);
  w->watches.owner = w;
  uv_close((uv_handle_t *)&w->watches.look, watches_on_closed);
  uv_close((uv_handle_t *)&w->watches.soon, watches_on_closed);
}

/* Pages still being read write into the window, so it waits for them. */
static void window_on_end(uv_timer_t *timer) {
  struct window *w = timer->data;
  if (read_jobs_busy(&w->readings) == 0)
    uv_close((uv_handle_t *)&w->end, on_end_closed);
}

void window_free(struct window *w) {
  if (w == NULL)
    return;
  server_free(w->http);
  close(w->door.fd);
  uv_timer_start(&w->end, window_on_end, 0, END_LOOK_MS);
}
