/* Runs the daemon: starts it, watches its signals, ends it. */
#include "daemon/serve.h"

#include "audit/aggregate_cache.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/control.h"
#include "daemon/server.h"
#include "host/notifier.h"
#include "host/paths.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/memory.h"
#include "store/index.h"
#include "store/notification.h"
#include "store/store.h"
#include "store/worker.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

/* --- telling the service manager --- */

enum { MESSAGE_BYTES = 512 };

/* The manager names the process that it watches; without a name, it watches whichever process got
 * the variable. */
static uint64_t watchdog_ms(void) {
  const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
  long value = 0, wanted = 0;
  if (usec == NULL || !str_to_long(str_from(usec), &value) || value <= 0)
    return 0;
  if (pid != NULL && (!str_to_long(str_from(pid), &wanted) || wanted != (long)getpid()))
    return 0;
  return (uint64_t)value / 1000;
}

void sd_notify_init(struct sd_notify *n) {
  const char *name = getenv("NOTIFY_SOCKET");
  *n = (struct sd_notify){
      .fd = -1, .address = {.sun_family = AF_UNIX}, .watchdog_ms = watchdog_ms()};
  size_t length = name ? strlen(name) : 0;
  if (length > 1 && length < sizeof n->address.sun_path && (name[0] == '/' || name[0] == '@')) {
    memcpy(n->address.sun_path, name, length);
    if (name[0] == '@')
      n->address.sun_path[0] = '\0';
    n->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  (void)unsetenv("NOTIFY_SOCKET");
  (void)unsetenv("WATCHDOG_USEC");
  (void)unsetenv("WATCHDOG_PID");
}

void sd_notify_send(const struct sd_notify *n, const char *fmt, ...) {
  char message[MESSAGE_BYTES];
  va_list ap;
  if (n->fd < 0)
    return;
  va_start(ap, fmt);
  int length = vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  if (length > 0 && length < MESSAGE_BYTES)
    (void)sendto(n->fd, message, (size_t)length, MSG_NOSIGNAL, (const struct sockaddr *)&n->address,
                 n->address_bytes);
}

void sd_notify_deinit(struct sd_notify *n) {
  if (n->fd >= 0)
    close(n->fd);
  n->fd = -1;
}

/* --- the index ---
 *
 * Keeps the index of the log folder (store/index.h) while a daemon runs.
 *
 *   indexer_start(&ix, loop, store)      looks soon
 *   indexer_want(&ix)                    a session was over: looks again after a while
 *   indexer_close(&ix)                   then run the loop once more: a look is not broken off
 *
 * What it reads and writes it does in the loop's pool. */

struct indexer {
  const struct store *store;
  uv_timer_t timer;
  bool busy, wanted, more, closing;
  int failures;
};

enum { SOON_MS = 500, INDEX_TRIES = 3 };

static void indexer_look(void *ctx) {
  struct indexer *ix = ctx;
  bool keeps = index_refresh(ix->store, LIMIT_INDEX_STEP_COUNT, &ix->more);
  ix->failures = keeps ? 0 : ix->failures + 1;
  if (keeps && !ix->more) /* it knows all logs, so what is not among them is gone */
    aggregate_cache_refresh(ix->store, LIMIT_INDEX_STEP_COUNT, &ix->more);
}

static void on_indexer_timer(uv_timer_t *timer);

static void indexer_arm(struct indexer *ix, uint64_t ms) {
  if (!ix->closing && !ix->busy && !uv_is_active((const uv_handle_t *)&ix->timer))
    uv_timer_start(&ix->timer, on_indexer_timer, ms, 0);
}

static void on_indexer_looked(void *ctx) {
  struct indexer *ix = ctx;
  ix->busy = false;
  if (ix->more)
    indexer_arm(ix, 0);
  else if (ix->failures > 0 && ix->failures < INDEX_TRIES) /* perhaps somebody reads the file */
    indexer_arm(ix, (uint64_t)SOON_MS * 4);
  else if (ix->wanted)
    indexer_arm(ix, LIMIT_INDEX_REST_MS);
}

static void on_indexer_timer(uv_timer_t *timer) {
  struct indexer *ix = timer->data;
  ix->wanted = false;
  ix->busy = true;
  loop_do(timer->loop, indexer_look, on_indexer_looked, ix);
}

static void indexer_start(struct indexer *ix, uv_loop_t *loop, const struct store *store) {
  *ix = (struct indexer){.store = store};
  uv_timer_init(loop, &ix->timer);
  ix->timer.data = ix;
  indexer_arm(ix, SOON_MS);
}

/* --- serve --- */

enum { SIGNAL_COUNT = 3, EXIT_NOW = 130, LOCK_LOOK_MS = 50 };

struct daemon {
  const struct serve_options *options;
  uv_loop_t loop;
  struct store store;
  int held; /* the right to be the daemon of the store */
  struct control_socket socket;
  struct host host;
  struct launch_env launch_env;
  struct events events;
  struct sessions sessions;
  struct control api;
  struct indexer indexer;
  struct server *http;
  struct sd_notify notify;
  uv_signal_t signals[SIGNAL_COUNT];
  struct notifier notifications;
  uv_timer_t watchdog, deadline, silence;
  uv_prepare_t check; /* has all ended? */
  int stops;          /* TERM and INT so far */
  bool closed, late;  /* late: running calls have used up their time */
};

static const int signal_numbers[SIGNAL_COUNT] = {SIGTERM, SIGINT, SIGHUP};

/* --- ending --- */

static void serve_close_all(struct daemon *d) {
  d->closed = true;
  server_free(d->http);
  control_close(&d->api);
  sessions_unshare(&d->sessions);
  sessions_close(&d->sessions);
  bool more;
  d->indexer.closing = true;
  if (d->indexer.wanted && !d->indexer.busy) /* so that the next start finds everything in it */
    (void)index_refresh(d->indexer.store, LIMIT_INDEX_STEP_COUNT, &more);
  uv_close((uv_handle_t *)&d->indexer.timer, NULL);
  events_close(&d->events);
  for (int i = 0; i < SIGNAL_COUNT; i++) {
    uv_close((uv_handle_t *)&d->signals[i], NULL);
    (void)signal(signal_numbers[i], SIG_IGN); /* it is ending: one more changes nothing */
  }
  uv_close((uv_handle_t *)&d->watchdog, NULL);
  uv_close((uv_handle_t *)&d->deadline, NULL);
  uv_close((uv_handle_t *)&d->silence, NULL);
  notifier_close(&d->notifications);
  uv_close((uv_handle_t *)&d->check, NULL);
}

static void on_check(uv_prepare_t *check) {
  struct daemon *d = check->data;
  if (d->stops > 0 && !d->closed && sessions_busy(&d->sessions) == 0 && control_idle(&d->api) &&
      (d->notifications.process == NULL || d->late))
    serve_close_all(d);
}

static void on_deadline(uv_timer_t *timer) {
  struct daemon *d = timer->data;
  d->late = true;
  sessions_stop(&d->sessions, "the daemon was stopped while a call was running");
}

static void stop(struct daemon *d) {
  d->stops++;
  if (d->stops > 2)
    _exit(EXIT_NOW); /* shims end running calls; logs end at their last durable record */
  if (d->stops == 2) {
    fprintf(stderr, "segue serve: stopping now\n");
    on_deadline(&d->deadline);
    return;
  }
  sd_notify_send(&d->notify, "STOPPING=1\nSTATUS=waiting for running calls");
  control_drain(&d->api);
  sessions_drain(&d->sessions);
  size_t left = sessions_running(&d->sessions);
  if (left > 0)
    fprintf(stderr,
            "segue serve: stopping: %zu running call%s may end within %llu s; a second signal "
            "stops at once\n",
            left, left == 1 ? "" : "s", (unsigned long long)d->options->drain_ms / 1000);
  uv_timer_start(&d->deadline, on_deadline, d->options->drain_ms, 0);
}

/* --- telling a person --- */

static void serve_on_news(void *ctx, const struct daemon_entry *e, const struct record *record) {
  struct daemon *d = ctx;
  if (e->summary.submitted && e->launch.asks == ASKS_SESSION)
    notifier_on_record(&d->notifications, &e->summary, record);
}

static uint64_t silence_ms(const struct daemon *d) {
  return (uint64_t)json_integer_value(json_object_get(d->notifications.set, "stall_ms"));
}

static void on_silence(uv_timer_t *timer) {
  struct daemon *d = timer->data;
  uint64_t after = silence_ms(d), silence;
  LIST_EACH(struct daemon_entry, e, in_state, &d->sessions.lists[LIST_RUNNING])
    if (entry_is_silent(e, after, &silence))
      notifier_put(&d->notifications, notification_stall(&e->summary, silence, clock_real_ms()));
}

/* Follows the configuration as it is now. */
static void use_notify(struct daemon *d) {
  notifier_use(&d->notifications, d->launch_env.generation->user.notify);
  uint64_t look = silence_ms(d) / 4;
  look = look < LIMIT_NOTICE_LOOK_MS ? look : LIMIT_NOTICE_LOOK_MS;
  if (notifier_wants(&d->notifications, "stall"))
    uv_timer_start(&d->silence, on_silence, look + 1, look + 1);
  else
    uv_timer_stop(&d->silence);
}

/* --- signals --- */

static void reload(struct daemon *d) {
  struct err err = {0};
  sd_notify_send(&d->notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
                 (unsigned long long)clock_mono_us());
  struct generation *fresh = generation_new(&err);
  if (fresh != NULL) {
    generation_unref(d->launch_env.generation);
    d->launch_env.generation = fresh;
    d->host.registry = fresh->registry;
    admission_use(&d->host.gate.admission, fresh->registry);
    use_notify(d);
    fprintf(stderr, "segue serve: the configuration was read again\n");
  } else if (err.line > 0) {
    log_warn("the configuration is wrong, the old one stays: %s:%d:%d: %s", err.file, err.line,
             err.column, err.text);
  } else {
    log_warn("the configuration is wrong, the old one stays: %s", err.text);
  }
  sd_notify_send(&d->notify, "READY=1");
}

static void serve_on_signal(uv_signal_t *handle, int number) {
  struct daemon *d = handle->data;
  if (number == SIGHUP)
    reload(d);
  else
    stop(d);
}

static void on_watchdog(uv_timer_t *timer) {
  const struct daemon *d = timer->data;
  sd_notify_send(&d->notify, "WATCHDOG=1\nSTATUS=%zu running, %zu queued",
                 sessions_running(&d->sessions), sessions_queued(&d->sessions));
}

/* --- beginning --- */

/* A program that a killed daemon was just starting can hold the daemon's locks until its exec. */
static bool take_places(struct daemon *d, const char *path, struct err *err) {
  for (int waited_ms = 0;; waited_ms += LOCK_LOOK_MS) {
    /* A store has one daemon: two would take each other's queue. */
    if (d->held < 0)
      d->held = store_hold(&d->store, "daemon", err);
    if (d->held >= 0 && socket_listen(&d->socket, path, err))
      return true;
    if (err->code != ERR_LOCKED || waited_ms >= LIMIT_LOCK_WAIT_MS)
      return false;
    (void)poll(NULL, 0, LOCK_LOOK_MS);
  }
}

/* Shares out descriptors before anything is promised: sessions first, then connections. */
static void share_descriptors(size_t *max_sessions, unsigned *max_connections) {
  struct rlimit limit;
  *max_connections = LIMIT_API_CONNECTION_COUNT;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  size_t all = limit.rlim_cur > 1u << 20 ? 1u << 20 : (size_t)limit.rlim_cur;
  size_t left = all > LIMIT_OWN_FD_COUNT + 16 ? all - LIMIT_OWN_FD_COUNT : 16;
  size_t sessions = left / 2 / LIMIT_SESSION_FD_COUNT;
  sessions = sessions > 0 ? sessions : 1;
  if (*max_sessions > sessions) {
    log_warn("only %zu sessions can run at once: the limit of open files is %zu", sessions, all);
    *max_sessions = sessions;
  }
  /* A connection may watch a log, which takes a second descriptor. */
  size_t rest = (left - *max_sessions * LIMIT_SESSION_FD_COUNT) / 2;
  if (rest < *max_connections)
    *max_connections = (unsigned)rest;
}

static void init_handles(struct daemon *d) {
  for (int i = 0; i < SIGNAL_COUNT; i++) {
    uv_signal_init(&d->loop, &d->signals[i]);
    d->signals[i].data = d;
    uv_signal_start(&d->signals[i], serve_on_signal, signal_numbers[i]);
  }
  uv_timer_init(&d->loop, &d->watchdog);
  uv_timer_init(&d->loop, &d->deadline);
  uv_prepare_init(&d->loop, &d->check);
  uv_timer_init(&d->loop, &d->silence);
  d->watchdog.data = d->deadline.data = d->silence.data = d->check.data = d;
  uv_prepare_start(&d->check, on_check);
  if (d->notify.watchdog_ms > 0) {
    uint64_t half = d->notify.watchdog_ms / 2;
    uv_timer_start(&d->watchdog, on_watchdog, half, half ? half : 1);
  }
}

/* Finds where sessions are: in a folder, or in a shared store, with this daemon as its worker. */
static bool serve_place(const struct serve_options *options, char logs[PATHS_BYTES],
                        struct err *err) {
  const struct worker_options worker = {
      .lease_ms = options->lease_ms, .labels = options->labels, .local = options->logs};
  if (options->store == NULL)
    return paths_logs(options->logs, logs, err);
  return worker_be(&worker, err) && paths_logs(options->store, logs, err);
}

/* Does everything that may fail, in such an order that only what `undo` names has to be undone. */
static bool begin(struct daemon *d, struct err *err) {
  char logs[PATHS_BYTES], path[SOCKET_PATH_BYTES];
  d->held = d->socket.fd = d->socket.lock_fd = -1;
  d->launch_env.generation = generation_new(err);
  bool placed = d->launch_env.generation != NULL && serve_place(d->options, logs, err) &&
                socket_path(d->options->socket, path, err) && store_open(&d->store, logs, err) &&
                take_places(d, path, err);
  if (placed && !store_is_address(logs)) /* an address may hold a password */
    socket_note(path, logs);
  return placed &&
         host_init(&d->host, &d->loop, &d->store, d->launch_env.generation->registry, err);
}

static void undo(struct daemon *d) {
  socket_close(&d->socket);
  store_yield(d->held);
  generation_unref(d->launch_env.generation);
  sd_notify_deinit(&d->notify);
}

static void on_changed(void *ctx, struct daemon_entry *e) {
  struct daemon *d = ctx;
  if (!entry_is_live(e)) {
    d->indexer.wanted = true;
    indexer_arm(&d->indexer, LIMIT_INDEX_REST_MS);
  }
  control_changed(&d->api, e);
}

static void daemon_run(struct daemon *d, size_t max_sessions, unsigned max_connections,
                       struct err *err) {
  d->host.disk_full_wait_ms = UINT64_MAX;   /* nobody is waiting: wait until there is space */
  d->host.gate.admission.holds_auth = true; /* a person may log in while its sessions wait */
  d->launch_env.store = &d->store;
  d->launch_env.workflows = d->host.workflows;
  events_init(&d->events, &d->loop);
  sessions_init(&d->sessions, &d->host, &d->launch_env, &d->events, max_sessions, on_changed, d);
  control_init(&d->api, &d->sessions);
  d->sessions.news = serve_on_news;
  init_handles(d);
  store_blobs_tidy(&d->store, NULL);
  notifier_init(&d->notifications, &d->loop, d->host.processes, &d->store);
  use_notify(d);
  indexer_start(&d->indexer, &d->loop, &d->store);
  long waiting = sessions_recover(&d->sessions, err);
  if (waiting >= 0)
    d->http = server_new(&d->loop, &d->socket, NULL, control_routes, &d->api, max_connections, err);
  d->api.http = d->http;
  d->api.http_origin = d->options->http_origin;
  d->api.http_any_peer = d->options->http_any_peer;
  if (d->http != NULL && d->options->http != NULL &&
      !control_open_window(&d->api, d->options->http, err)) {
    server_free(d->http);
    d->http = NULL;
  }
  if (d->http == NULL) {
    serve_close_all(d);
  } else {
    sd_notify_send(&d->notify, "READY=1\nSTATUS=%ld sessions wait", waiting);
    notifier_recover(&d->notifications);
    notifier_put(&d->notifications, notification_ready(waiting, (int)getpid(), clock_real_ms()));
    if (d->options->ready)
      d->options->ready(d->socket.path, d->store.where, (size_t)waiting);
  }
  uv_run(&d->loop, UV_RUN_DEFAULT);
}

bool serve(const struct serve_options *options, struct err *err) {
  struct daemon d = {.options = options};
  size_t max_sessions = options->max_sessions;
  unsigned max_connections;
  if (!mhd_load(err)) /* before a socket or a session is touched */
    return false;
  struct rlimit cores;
  if (getrlimit(RLIMIT_CORE, &cores) == 0) {
    cores.rlim_cur = 0; /* a core dump would hold prompts and the values of variables */
    (void)setrlimit(RLIMIT_CORE, &cores);
  }
  memory_map_large(LIMIT_HEAP_PIECE_BYTES); /* bodies and scenarios take megabytes */
  sd_notify_init(&d.notify);
  share_descriptors(&max_sessions, &max_connections);
  if (!loop_init(&d.loop, err))
    return false;
  bool ok = begin(&d, err);
  if (ok) {
    daemon_run(&d, max_sessions, max_connections, err);
    ok = d.http != NULL;
    notifier_deinit(&d.notifications);
    host_deinit(&d.host);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    control_deinit(&d.api);
  }
  undo(&d);
  if (uv_loop_close(&d.loop) != 0)
    BUG("a handle was left open");
  return ok;
}
