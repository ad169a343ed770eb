/* Runs several sessions on one loop. */
#include "host/session_pool.h"

static void session_pool_on_soon(uv_timer_t *timer) {
  struct session_pool *s = timer->data;
  s->turn(s->ctx);
}

static void session_pool_on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct session_pool *s = ctx;
  s->stop(s->ctx, reason, message, cancel);
  session_pool_wake(s);
}

bool session_pool_init(struct session_pool *s, const char *logs,
                       const struct provider_registry *registry, bool sync_now, struct err *err) {
  *s = (struct session_pool){0};
  if (!single_session_init(&s->solo, logs, registry, err))
    return false;
  s->solo.host.sync_now = sync_now;
  s->solo.on_stop = session_pool_on_stop;
  s->solo.stop_ctx = s;
  uv_timer_init(&s->solo.loop, &s->soon);
  s->soon.data = s;
  return true;
}

int session_pool_run(struct session_pool *s) {
  session_pool_wake(s);
  return single_session_run(&s->solo, NULL, NULL);
}

void session_pool_wake(struct session_pool *s) {
  if (!s->closed)
    uv_timer_start(&s->soon, session_pool_on_soon, 0, 0);
}

void session_pool_close(struct session_pool *s) {
  if (s->closed)
    return;
  s->closed = true;
  uv_close((uv_handle_t *)&s->soon, NULL);
  if (s->has_input)
    uv_close((uv_handle_t *)&s->input, NULL);
  single_session_finished(&s->solo);
}

void session_pool_deinit(struct session_pool *s) {
  session_pool_close(s);
  single_session_deinit(&s->solo);
}

void session_pool_end(struct session *session, const char *reason, const char *message,
                      bool cancel) {
  if (cancel)
    host_cancel(session, message);
  else
    host_stop(session, reason, message);
}

static void on_input(uv_poll_t *poll, int status, int events) {
  struct session_pool *s = poll->data;
  (void)status;
  (void)events;
  uv_poll_stop(poll);
  s->input_ready = true;
  session_pool_wake(s);
}

bool session_pool_input(struct session_pool *s, int fd) {
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
