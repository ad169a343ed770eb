/* session_pool.h - a loop for several sessions at once, on which `segue ask` runs.
 *
 *   session_pool_init(&s, logs, registry, sync_now, &err)
 *       logs NULL: nothing is kept; then set turn,
 *                                                      stop and ctx
 *   host_start(&s.solo.host, ...) any number of times; session_pool_wake from its watcher's
 *       `finished`
 *   signals = session_pool_run(&s)
 *       calls turn() once at its begin, and after each session_pool_wake
 *   session_pool_close(&s)  from turn(): every session is freed, session_pool_run returns
 *   session_pool_deinit(&s)
 *
 * The first signal calls stop(), which asks each session to stop and is answered by their
 * `finished`; the second ends the program. */
#ifndef SEGUE_HOST_SESSION_POOL_H
#define SEGUE_HOST_SESSION_POOL_H

#include "host/single_session.h"

struct session_pool {
  struct single_session solo;
  uv_timer_t soon;
  uv_poll_t input;
  bool has_input, input_ready, closed;
  void *ctx;
  void (*turn)(void *ctx); /* never from within a watcher: sessions may be freed here */
  /* Stops them for good (cancel), or resumably with the reason. */
  void (*stop)(void *ctx, const char *reason, const char *message, bool cancel);
};

bool session_pool_init(struct session_pool *s, const char *logs,
                       const struct provider_registry *registry, bool sync_now,
                       struct err *err) MUST_CHECK;
int session_pool_run(struct session_pool *s); /* returns how many signals came */
void session_pool_wake(struct session_pool *s);
/* Ends one of its sessions as stop() says. */
void session_pool_end(struct session *session, const char *reason, const char *message,
                      bool cancel);
void session_pool_close(struct session_pool *s);
void session_pool_deinit(struct session_pool *s);

/* True if the next read of fd will not block, or if that cannot be known. Otherwise turn() is
 * called once there is something to read. One fd only. */
bool session_pool_input(struct session_pool *s, int fd);

#endif
