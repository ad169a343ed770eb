/* Runs several sessions on one loop. */
#include "host/several.h"

static void several_on_soon(uv_timer_t *timer) {
  struct several *s = timer->data;
  s->turn(s->ctx);
}

static void several_on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct several *s = ctx;
  s->stop(s->ctx, reason, message, cancel);
  several_wake(s);
}

bool several_init(struct several *s, const char *logs, const struct provider_registry *registry,
                  bool sync_now, struct err *err) {
  *s = (struct several){0};
  if (!solo_init(&s->solo, logs, registry, err))
    return false;
  s->solo.host.sync_now = sync_now;
  s->solo.on_stop = several_on_stop;
  s->solo.stop_ctx = s;
  uv_timer_init(&s->solo.loop, &s->soon);
  s->soon.data = s;
  return true;
}

int several_run(struct several *s) {
  several_wake(s);
  return solo_run(&s->solo, NULL, NULL);
}

void several_wake(struct several *s) {
  if (!s->closed)
    uv_timer_start(&s->soon, several_on_soon, 0, 0);
}

void several_close(struct several *s) {
  if (s->closed)
    return;
  s->closed = true;
  uv_close((uv_handle_t *)&s->soon, NULL);
  if (s->has_input)
    uv_close((uv_handle_t *)&s->input, NULL);
  solo_finished(&s->solo);
}

void several_deinit(struct several *s) {
  several_close(s);
  solo_deinit(&s->solo);
}

void several_end(struct session *session, const char *reason, const char *message, bool cancel) {
  if (cancel)
    host_cancel(session, message);
  else
    host_stop(session, reason, message);
}

static void on_input(uv_poll_t *poll, int status, int events) {
  struct several *s = poll->data;
  (void)status;
  (void)events;
  uv_poll_stop(poll);
  s->input_ready = true;
  several_wake(s);
}

bool several_input(struct several *s, int fd) {
  bool ready = s->input_ready;
  s->input_ready = false;
  if (ready)
    return true;
  if (!s->has_input) {
    s->has_input = uv_poll_init(&s->solo.loop, &s->input, fd) == 0; /* not for regular files */
    s->input.data = s;
  }
  return !s->has_input || uv_poll_start(&s->input, UV_READABLE | UV_DISCONNECT, on_input) != 0;
}
