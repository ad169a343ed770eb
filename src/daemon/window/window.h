/* window.h - the web page for sessions: a TCP port on this machine, behind a door of its own.
 *
 *   w = window_new(&options, &err)       listens
 *   window_code(w, read_only, &code)     opens it, once, within a minute
 *   window_changed(w)                    some session moved on: pages that show it are told
 *   window_busy(w)                       how many requests are being read
 *   window_free(w)                       then the loop runs once more
 *
 * Off by default: nobody but `segue web` and `segue serve --http` makes one. A request gets in only
 * if the other end runs as our user (os/peer.h), the Host is ours, the browser says that our own
 * page asks (Sec-Fetch-Site, and Origin for changes), and it carries the cookie of this start
 * (web/auth.h). Everybody else gets the same 404, except a page that posts the code below the
 * random path. GET changes nothing. */
#ifndef SEGUE_DAEMON_WINDOW_WINDOW_H
#define SEGUE_DAEMON_WINDOW_WINDOW_H

#include "daemon/read_job.h"
#include "store/store.h"
#include "web/pages.h"

#include <uv.h>

struct window_options {
  uv_loop_t *loop;
  const struct store *store;
  struct view_cache *view_cache; /* tracks shared with others; NULL: the window has its own */
  const char *address; /* "127.0.0.1:PORT", "[::1]:PORT"; PORT 0: any; NULL: 127.0.0.1:0 */
  const char *origin;  /* "https://HOST": where a reverse proxy serves it; NULL: no proxy */
  struct process_table *processes; /* for git */
  bool any_peer;                   /* the other end may be another user's: the proxy's */
  /* Answers, or keeps, a request of a browser that changes something; NULL: there is no daemon. */
  void (*act)(void *ctx, struct server_request *r, const char *id, const char *what);
  /* Lists the daemon's sessions for a page: *list is malloc'd; NULL: there is no daemon. */
  size_t (*live)(void *ctx, struct page_live **list);
  /* Copies what running calls of a session said last: *list is malloc'd; or NULL. */
  size_t (*said)(void *ctx, const char *id, struct page_said **list);
  /* The answer of GET /v1/providers: begun on the loop, read in the pool, dropped on the loop; or
   * NULL. */
  void *(*about)(void *ctx);
  json_t *(*about_read)(void *about);
  void (*about_drop)(void *about);
  /* How much of the limits for all sessions of a day is used: a new list; NULL: no limits. */
  json_t *(*day)(void *ctx);
  void (*idle)(void *ctx); /* nobody asked for LIMIT_WINDOW_IDLE_MS; or NULL */
  void *ctx;
};

enum { WINDOW_URL_BYTES = 160, WINDOW_CODE_BYTES = 40 };

struct window;
/* ERR_USAGE: not an address of this machine. ERR_LOCKED: the port is taken. */
struct window *window_new(const struct window_options *options, struct err *err) MUST_CHECK;
/* The address, without and with the code after its #. */
void window_url(const struct window *w, char url[WINDOW_URL_BYTES]);
void window_code(struct window *w, bool read_only, char code[WINDOW_CODE_BYTES]);
void window_revoke(struct window *w);
/* A log of this session grew, or its state is another one; NULL: of none. */
void window_changed(struct window *w, const char *id);
/* A running call said something; end: bytes of that kind that it has said so far. */
void window_said(struct window *w, const char *id, long call, bool thinking, uint64_t end,
                 struct str text);
size_t window_busy(const struct window *w);
void window_free(struct window *w); /* NULL is fine */

#endif
