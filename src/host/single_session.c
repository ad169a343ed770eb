/* Runs one session on a loop of its own. */
#include "host/single_session.h"

#include "base/limits.h"
#include "os/loop.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130 };

static void single_session_on_signal(uv_signal_t *handle, int number) {
  struct single_session *solo = handle->data;
  if (++solo->signals > 1)
    _exit(EXIT_INTERRUPTED);
  const char *reason = number == SIGINT ? "interrupted" : "terminated";
  const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
  if (number == SIGHUP)
    name = "SIGHUP";
  if (solo->on_stop != NULL)
    solo->on_stop(solo->stop_ctx, reason, name, false);
  else if (solo->session != NULL)
    host_stop(solo->session, reason, name);
}

static void on_quit(uv_signal_t *handle, int number) {
  struct single_session *solo = handle->data;
  (void)number;
  if (solo->on_stop != NULL)
    solo->on_stop(solo->stop_ctx, NULL, "SIGQUIT", true);
  else if (solo->session != NULL)
    host_cancel(solo->session, "SIGQUIT");
}

static volatile sig_atomic_t signalled;
static void (*to_loop[NSIG])(int);

static void note_signal(int number) {
  signalled = 1;
  to_loop[number](number);
}

/* Sets a flag as well: the loop's handler only writes to a pipe of the loop, which does not help
 * code that never gets back to the loop. */
static void note_also(int number) {
  struct sigaction action;
  if (sigaction(number, NULL, &action) != 0 || action.sa_handler == note_signal ||
      action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
    return;
  to_loop[number] = action.sa_handler;
  action.sa_handler = note_signal;
  (void)sigaction(number, &action, NULL);
}

bool single_session_signalled(void) {
  return signalled != 0;
}

/* Takes news from a shared store: what others ask of the session, and that it has been lost. */
static void single_session_on_news(void *ctx, enum worker_news news, const char *id,
                                   const char *what) {
  struct single_session *solo = ctx;
  struct session *s = solo->session;
  if (news == WORKER_SEATS)
    call_queue_seats(&solo->host.gate);
  if (s == NULL)
    return;
  if (news == WORKER_LOST)
    host_lost(s, "this worker's lease expired: another one may continue the session");
  else if (news != WORKER_ASKED || strcmp(session_core(s)->session, id) != 0)
    return;
  else if (strcmp(what, "steer") == 0)
    host_hear(s);
  else if (strcmp(what, "cancel") == 0 && session_core(s)->status != SESSION_ENDED)
    host_cancel(s, "cancelled by request");
}

/* Listens to signals. This comes before the first record is written: from then on a signal is a
 * stop that the log records. */
static void listen_to_signals(struct single_session *solo) {
  static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  uv_signal_start(&solo->sigint, single_session_on_signal, SIGINT);
  uv_signal_start(&solo->sigterm, single_session_on_signal, SIGTERM);
  /* If it is ignored, as under nohup, the session is to outlive the terminal. */
  struct sigaction now;
  if (sigaction(SIGHUP, NULL, &now) != 0 || now.sa_handler != SIG_IGN)
    uv_signal_start(&solo->sighup, single_session_on_signal, SIGHUP);
  uv_signal_start(&solo->sigquit, on_quit, SIGQUIT);
  for (size_t i = 0; i < ARRAY_LEN(all); i++)
    note_also(all[i]);
}

bool single_session_init_to_submit(struct single_session *solo, const char *logs,
                                   const struct provider_registry *registry, struct err *err) {
  *solo = (struct single_session){0};
  if (logs != NULL && !store_open(&solo->store, logs, err))
    return false;
  solo->store.lock_wait_ms = LIMIT_LOCK_WAIT_MS; /* nobody else has to wait meanwhile */
  if (!loop_init(&solo->loop, err))
    return false;
  if (!host_init(&solo->host, &solo->loop, logs ? &solo->store : NULL, registry, err)) {
    uv_loop_close(&solo->loop);
    return false;
  }
  solo->host.sync_now = true;
  uv_signal_init(&solo->loop, &solo->sigint);
  uv_signal_init(&solo->loop, &solo->sigterm);
  uv_signal_init(&solo->loop, &solo->sighup);
  uv_signal_init(&solo->loop, &solo->sigquit);
  uv_timer_init(&solo->loop, &solo->ticker);
  solo->sigint.data = solo->sigterm.data = solo->sighup.data = solo->sigquit.data =
      solo->ticker.data = solo;
  listen_to_signals(solo);
  return true;
}

bool single_session_init(struct single_session *solo, const char *logs,
                         const struct provider_registry *registry, struct err *err) {
  if (!single_session_init_to_submit(solo, logs, registry, err))
    return false;
  if (logs == NULL || worker_watch(&solo->store, &solo->loop, single_session_on_news, solo, err))
    return true;
  single_session_deinit(solo);
  return false;
}

void single_session_finished(struct single_session *solo) {
  if (solo->closed)
    return;
  solo->closed = true;
  worker_unwatch(&solo->store);
  uv_close((uv_handle_t *)&solo->sigint, NULL);
  uv_close((uv_handle_t *)&solo->sigterm, NULL);
  uv_close((uv_handle_t *)&solo->sighup, NULL);
  uv_close((uv_handle_t *)&solo->sigquit, NULL);
  uv_close((uv_handle_t *)&solo->ticker, NULL);
}

static void single_session_on_tick(uv_timer_t *timer) {
  struct single_session *solo = timer->data;
  solo->tick(solo->tick_ctx, uv_now(&solo->loop));
}

int single_session_run(struct single_session *solo, void (*tick)(void *ctx, uint64_t now_ms),
                       void *ctx) {
  solo->tick = tick;
  solo->tick_ctx = ctx;
  if (tick != NULL && !solo->closed)
    uv_timer_start(&solo->ticker, single_session_on_tick, LIMIT_SPINNER_MS, LIMIT_SPINNER_MS);
  uv_run(&solo->loop, UV_RUN_DEFAULT);
  return solo->signals;
}

void single_session_deinit(struct single_session *solo) {
  session_free(solo->session);
  single_session_finished(solo);
  host_deinit(&solo->host);
  uv_run(&solo->loop, UV_RUN_DEFAULT);
  int left = uv_loop_close(&solo->loop);
  assert(left == 0);
  (void)left;
}
