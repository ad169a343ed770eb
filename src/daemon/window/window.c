/* Serves the window's pages. */
#include "daemon/window/window.h"
#include "daemon/session_diff.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "daemon/window/listener.h"
#include "daemon/window/watch.h"
#include "os/clock.h"
#include "web/auth.h"
#include "web/pages.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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
  static const char *const names[] = {"enter.mjs", "style.css"};
  if (strcmp(method, "POST") == 0)
    return strcmp(rest, "enter") == 0;
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (strcmp(rest, names[i]) == 0)
      return true;
  return false;
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

static bool page_is_csv(enum page_kind kind) {
  return kind == PAGE_AUDIT_CSV || kind == PAGE_BEHIND_CSV;
}

static bool page_is_json(enum page_kind kind) {
  return kind == PAGE_AUDIT_JSON || kind == PAGE_BEHIND_JSON;
}

static void page_work(void *what, struct read_job_answer *answer) {
  answer->type = "text/html; charset=utf-8";
  struct page_job *job = what;
  if (job->about != NULL)
    job->ask.about = job->options->about_read(job->about);
  answer->status = page_write(&job->ask, &answer->body);
  if (answer->status == 200 && page_is_csv(job->ask.kind))
    answer->type = "text/csv; charset=utf-8";
  else if (answer->status == 200 && page_is_json(job->ask.kind))
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

static void take_page(struct window *w, struct server_request *r, enum page_kind kind) {
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
  if (kind == PAGE_COMPARE)
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

static void get_sessions(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_SESSIONS);
}

/* The path is compare/A_B. */
static void get_compare(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_COMPARE);
}

static void window_get_inbox(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_INBOX);
}

static void get_session_page(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_SESSION);
}

static void get_judgment(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_JUDGMENT);
}

static void get_integrity(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_INTEGRITY);
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
  struct buf page = {0};
  print_into(ask.root, sizeof ask.root, "%s", w->pass.path);
  print_into(ask.id, sizeof ask.id, "%s", server_part(r));
  unsigned status = page_write(&ask, &page);
  server_reply(r, status, "text/html; charset=utf-8", buf_view(&page));
  buf_deinit(&page);
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

static void get_providers(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_PROVIDERS);
}

static void get_records(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_RECORDS);
}

static void get_text_page(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_TEXT);
}

static void get_find(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_FIND);
}

static void get_workflow(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_WORKFLOW);
}

static void get_audit_page(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_AUDIT);
}

static void get_audit_csv(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_AUDIT_CSV);
}

static void get_audit_json(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_AUDIT_JSON);
}

static void get_behind(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_BEHIND);
}

static void get_behind_csv(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_BEHIND_CSV);
}

static void get_behind_json(void *ctx, struct server_request *r) {
  take_page(ctx, r, PAGE_BEHIND_JSON);
}

static void get_enter(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  struct page_ask ask = {.kind = PAGE_ENTER};
  struct buf page = {0};
  print_into(ask.root, sizeof ask.root, "%s", w->pass.path);
  (void)page_write(&ask, &page);
  server_reply(r, 200, "text/html; charset=utf-8", buf_view(&page));
  buf_deinit(&page);
}

static void reply_file(struct server_request *r, const char *name, const char *type) {
  const struct resource *file = resource_find(name);
  assert(file != NULL);
  server_reply(r, 200, type, (struct str){file->p, file->n});
}

static void get_style(void *ctx, struct server_request *r) {
  (void)ctx;
  reply_file(r, "web/style.css", "text/css; charset=utf-8");
}

static void get_enter_script(void *ctx, struct server_request *r) {
  (void)ctx;
  reply_file(r, "web/enter.mjs", "text/javascript; charset=utf-8");
}

static void get_page_script(void *ctx, struct server_request *r) {
  (void)ctx;
  reply_file(r, "web/page.mjs", "text/javascript; charset=utf-8");
}

static void get_idiomorph(void *ctx, struct server_request *r) {
  (void)ctx;
  reply_file(r, "web/vendor/idiomorph.min.js", "text/javascript; charset=utf-8");
}

/* --- changes --- */

static void post_enter(void *ctx, struct server_request *r) {
  struct window *w = ctx;
  char cookie[AUTH_COOKIE_BYTES], header[SERVER_VALUE_BYTES];
  json_t *body = json_loadb(server_body(r).p, server_body(r).n, JSON_REJECT_DUPLICATES, NULL);
  const char *code = json_string_value(json_object_get(body, "code"));
  unsigned number = code != NULL ? auth_pass_enter(&w->pass, code, window_now(), cookie) : 0;
  json_decref(body);
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

static void post_act(struct window *w, struct server_request *r, const char *what) {
  char id[STORE_ID_BYTES];
  const struct auth_browser *browser = who(w, r);
  server_set_browser(r, browser != NULL ? browser->number : 0);
  if (w->options.act == NULL)
    server_problem(r, 409, NULL, "no daemon is running here: this page cannot change anything");
  else if (take_id(w, r, id))
    w->options.act(w->options.ctx, r, id, what);
}

static void post_cancel(void *ctx, struct server_request *r) {
  post_act(ctx, r, "cancel");
}

static void post_resume(void *ctx, struct server_request *r) {
  post_act(ctx, r, "resume");
}

static void post_answer(void *ctx, struct server_request *r) {
  post_act(ctx, r, "answer");
}

static void post_approve(void *ctx, struct server_request *r) {
  post_act(ctx, r, "approve");
}

static void post_reject(void *ctx, struct server_request *r) {
  post_act(ctx, r, "reject");
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
    {"GET", "", "sessions", TAKES_NOTHING, sessions_query, get_sessions},
    {"GET", "compare/{pair}", "two sessions", TAKES_NOTHING, whole_query, get_compare},
    {"GET", "inbox", "what waits for a person", TAKES_NOTHING, NULL, window_get_inbox},
    {"GET", "s/{id}/", "a session", TAKES_NOTHING, session_query, get_session_page},
    {"GET", "s/{id}/integrity", "verify its log", TAKES_NOTHING, NULL, get_integrity},
    {"GET", "s/{id}/changes", "the lines it changed", TAKES_NOTHING, changes_query, get_changes},
    {"GET", "s/{id}/records", "its records", TAKES_NOTHING, records_query, get_records},
    {"GET", "s/{id}/text", "one text of it", TAKES_NOTHING, text_query, get_text_page},
    {"GET", "s/{id}/find", "find a text in it", TAKES_NOTHING, find_query, get_find},
    {"GET", "s/{id}/workflow", "its workflow and configuration", TAKES_NOTHING, whole_query,
     get_workflow},
    {"GET", "s/{id}/events", "its changes", TAKES_NOTHING, NULL, get_session_events},
    {"GET", "s/{id}/{turn}", "a judgment", TAKES_NOTHING, whole_query, get_judgment},
    {"POST", "s/{id}/answer", "answer a question", TAKES_JSON, NULL, post_answer},
    {"POST", "s/{id}/approve", "let it go on", TAKES_JSON, NULL, post_approve},
    {"POST", "s/{id}/reject", "do not let it", TAKES_JSON, NULL, post_reject},
    {"POST", "s/{id}/cancel", "end it", TAKES_JSON, NULL, post_cancel},
    {"POST", "s/{id}/resume", "go on with it", TAKES_JSON, NULL, post_resume},
    {"GET", "audit", "judgments counted", TAKES_NOTHING, audit_query, get_audit_page},
    {"GET", "audit.csv", "the same", TAKES_NOTHING, audit_query, get_audit_csv},
    {"GET", "audit.json", "the same", TAKES_NOTHING, audit_query, get_audit_json},
    {"GET", "judgments", "what a number counts", TAKES_NOTHING, behind_query, get_behind},
    {"GET", "judgments.csv", "the same", TAKES_NOTHING, behind_query, get_behind_csv},
    {"GET", "judgments.json", "the same", TAKES_NOTHING, behind_query, get_behind_json},
    {"GET", "providers", "providers and the daemon", TAKES_NOTHING, NULL, get_providers},
    {"GET", "events", "changes of all", TAKES_NOTHING, NULL, get_events},
    {"GET", "style.css", "style", TAKES_NOTHING, NULL, get_style},
    {"GET", "page.mjs", "script", TAKES_NOTHING, NULL, get_page_script},
    {"GET", "idiomorph.js", "script", TAKES_NOTHING, NULL, get_idiomorph},
    {"GET", "enter.mjs", "script", TAKES_NOTHING, NULL, get_enter_script},
    {"GET", "enter-page", "for a browser without the cookie", TAKES_NOTHING, NULL, get_enter},
    {"POST", "enter", "exchange a code for a cookie", TAKES_JSON, NULL, post_enter},
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
    w->http = server_new_door(options->loop, &w->door, window_routes, w,
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

static void window_on_gone(void *ctx) {
  free(ctx);
}

static void on_end_closed(uv_handle_t *handle) {
  struct window *w = handle->data;
  view_cache_free(w->own_shelf);
  watches_close(&w->watches, window_on_gone, w);
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
