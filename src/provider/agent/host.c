/* Does for the driver of an agent what it may not do by itself. */
#include "provider/agent/internal.h"

#include "base/limits.h"
#include "provider/api/api.h"

static void host_news(void *ctx, const struct provider_news *news) {
  struct agent_run *run = ctx;
  run->content_ms = uv_now(run->env->loop);
  run->sink.news(run->sink.ctx, news);
}

static bool host_write(void *ctx, struct str bytes) {
  struct agent_run *run = ctx;
  if (run->process == NULL && !run->ended)
    buf_str(&run->first, bytes);
  return run->process != NULL ? process_write(run->process, bytes) : !run->ended;
}

static void host_close_stdin(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL)
    process_close_stdin(run->process);
}

void agent_on_grace_over(uv_timer_t *timer) {
  struct agent_run *run = timer->data;
  if (run->process == NULL)
    return;
  if (run->cancelled && !run->last_word && run->ops->keeps_stdin) {
    run->last_word = true;
    process_close_stdin(run->process);
    uv_timer_start(&run->timer, agent_on_grace_over, LIMIT_AGENT_FINAL_GRACE_MS, 0);
  } else if (run->cancelled) {
    process_cancel(run->process);
  } else {
    process_finish_early(run->process);
  }
}

static void host_answered(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL && !run->cancelled)
    uv_timer_start(&run->timer, agent_on_grace_over, LIMIT_AGENT_FINAL_GRACE_MS, 0);
}

static void host_give_up(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL)
    process_finish_early(run->process);
}

/* --- the same for a server; what is asked after its end is asked in vain --- */

static void host_serves_at(void *ctx, unsigned port) {
  struct agent_run *run = ctx;
  if (run->server != NULL)
    agent_server_at(run->server, port);
}

static void host_request(void *ctx, const struct driver_request *request) {
  struct agent_run *run = ctx;
  if (run->server != NULL)
    agent_server_request(run->server, request);
}

static void host_wake(void *ctx, uint64_t ms) {
  struct agent_run *run = ctx;
  if (run->server != NULL)
    agent_server_wake(run->server, ms);
}

static void host_progress(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL)
    process_note_progress(run->process);
}

static void on_reply(void *ctx, const struct driver_reply *reply) {
  struct agent_run *run = ctx;
  run->ops->reply(run->driver, reply);
}

static void agent_host_on_event(void *ctx, struct str data) {
  struct agent_run *run = ctx;
  run->ops->event(run->driver, data);
}

static void on_woke(void *ctx) {
  struct agent_run *run = ctx;
  run->ops->woke(run->driver);
}

struct driver_host agent_host_of(struct agent_run *run) {
  struct driver_host host = {.news = host_news,
                             .write = host_write,
                             .close_stdin = host_close_stdin,
                             .answered = host_answered,
                             .give_up = host_give_up,
                             .secrets = run->secrets,
                             .ctx = run};
  if (run->server != NULL) {
    host.serves_at = host_serves_at;
    host.request = host_request;
    host.wake = host_wake;
    host.progress = host_progress;
  }
  return host;
}

bool agent_make_server(struct agent_run *run, struct err *err) {
  const struct agent_server_sink sink = {on_reply, agent_host_on_event, on_woke, run};
  if (run->ops->password_env == NULL)
    return true;
  if (run->env->api == NULL)
    return err_set(err, ERR_INVALID, "nothing is asked over HTTP here");
  run->password = agent_server_password();
  run->server = agent_server_new(api_http(run->env->api), run->env->loop, run->password, &sink);
  return true;
}
