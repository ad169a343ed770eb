/* several.h - a loop for several sessions at once, on which `segue ask` runs.
 *
 *   several_init(&s, logs, registry, sync_now, &err)   logs NULL: nothing is kept; then set turn,
 *                                                      stop and ctx
 *   host_start(&s.solo.host, ...) any number of times; several_wake from its watcher's `finished`
 *   signals = several_run(&s)     calls turn() once at its begin, and after each several_wake
 *   several_close(&s)             from turn(): every session is freed, several_run returns
 *   several_deinit(&s)
 *
 * The first signal calls stop(), which asks each session to stop and is answered by their
 * `finished`; the second ends the program. */
#ifndef SEGUE_HOST_SEVERAL_H
#define SEGUE_HOST_SEVERAL_H

#include "host/solo.h"

struct several {
  struct solo solo;
  uv_timer_t soon;
  uv_poll_t input;
  bool has_input, input_ready, closed;
  void *ctx;
  void (*turn)(void *ctx); /* never from within a watcher: sessions may be freed here */
  /* Stops them for good (cancel), or resumably with the reason. */
  void (*stop)(void *ctx, const char *reason, const char *message, bool cancel);
};

bool several_init(struct several *s, const char *logs, const struct provider_registry *registry,
                  bool sync_now, struct err *err) MUST_CHECK;
int several_run(struct several *s); /* returns how many signals came */
void several_wake(struct several *s);
/* Ends one of its sessions as stop() says. */
void several_end(struct session *session, const char *reason, const char *message, bool cancel);
void several_close(struct several *s);
void several_deinit(struct several *s);

/* True if the next read of fd will not block, or if that cannot be known. Otherwise turn() is
 * called once there is something to read. One fd only. */
bool several_input(struct several *s, int fd);

#endif
