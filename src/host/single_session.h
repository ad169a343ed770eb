/* single_session.h - one session on a loop of its own, for `segue run`, `resume` and `judge`.
 *
 *   single_session_init(&solo, logs, registry, &err)                   logs NULL: nothing is kept
 *   solo.session = host_start(&solo.host, ...) or host_open(...), with single_session_finished as
 *       the
 *                  watcher's `finished` and the solo as its context, or calling it from there
 *   signals = single_session_run(&solo, tick, ctx)   until the session is over
 *   single_session_deinit(&solo)                               frees the session too
 *
 * From single_session_init on the first SIGINT, SIGTERM or SIGHUP stops the session resumably; the
 * second ends the program at once (shims end what still runs; the log ends at its last durable
 * record). SIGQUIT cancels the session for good. A SIGHUP that was ignored when the program started
 * (nohup) stays ignored. */
#ifndef SEGUE_HOST_SINGLE_SESSION_H
#define SEGUE_HOST_SINGLE_SESSION_H

#include "host/host.h"
#include "store/worker.h"

struct single_session {
  uv_loop_t loop;
  struct store store;
  struct host host;
  struct session *session;
  uv_signal_t sigint, sigterm, sighup, sigquit;
  uv_timer_t ticker;
  void (*tick)(void *ctx, uint64_t now_ms);
  void *tick_ctx;
  /* Replaces `session` if there are several: a signal asks to stop them or (cancel) to end them for
   * good. */
  void (*on_stop)(void *ctx, const char *reason, const char *message, bool cancel);
  void *stop_ctx;
  int signals;
  bool closed;
};

bool single_session_init(struct single_session *solo, const char *logs,
                         const struct provider_registry *registry, struct err *err) MUST_CHECK;
/* Does the same for a session that is only begun here and continued by others: requests made
 * elsewhere do not reach it here. */
bool single_session_init_to_submit(struct single_session *solo, const char *logs,
                                   const struct provider_registry *registry,
                                   struct err *err) MUST_CHECK;
/* Notes that the session is over: single_session_run returns when the last handle is closed. */
void single_session_finished(struct single_session *solo);
/* Runs the loop. tick (each LIMIT_SPINNER_MS) may be NULL. Returns how many signals came. */
int single_session_run(struct single_session *solo, void (*tick)(void *ctx, uint64_t now_ms),
                       void *ctx);
/* Returns whether a signal to stop or cancel came, even if the loop does not know yet. For code
 * that waits elsewhere. */
bool single_session_signalled(void);
void single_session_deinit(struct single_session *solo);

#endif
