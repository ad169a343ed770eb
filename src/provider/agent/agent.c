/* Runs a call to an agent: a folder for it, its program under the shim, a driver that reads it, and
 * for that driver what it may not do by itself. */
#include "provider/agent/agent.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/sse.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/random.h"
#include "os/tmpdir.h"
#include "os/tree_work.h"
#include "provider/agent/classify.h"
#include "provider/agent/driver.h"
#include "provider/agent/program_version.h"
#include "provider/agent/project_files.h"
#include "provider/agent/schema_delivery.h"
#include "provider/api/internal.h"
#include "provider/child.h"
#include "provider/git_trace.h"
#include "provider/sandbox_policy.h"
#include "provider/secret_find.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct agent_run {
  struct provider_run base;
  const struct provider *self;
  const struct provider_env *env;
  const struct profile *profile;
  const struct driver_ops *ops;
  struct driver *driver;
  struct provider_sink sink;
  struct agent_call call;
  struct agent_command command;
  const char *const *envp;
  struct secrets *secrets;        /* those in envp and the command line */
  struct kept err;                /* its stderr */
  struct process *process;        /* NULL: not started, or gone */
  struct confined held;           /* confines it */
  struct process_result ended_as; /* a server's end, while its last replies are still read */
  struct agent_server *server;    /* NULL: its program is no server */
  char *password;                 /* the server's */
  uv_timer_t timer;               /* reports a start that failed; then the grace after the answer */
  uv_work_t cleanup;
  struct call_result result;
  struct schema_delivery schema;
  struct arena arena;
  char *tmpdir;
  uint64_t stall_ms, idle_ms;  /* limits without output; with output but no content */
  uint64_t content_ms;         /* time of the last content */
  bool idled;                  /* it was ended for lack of content */
  bool ended;                  /* the process is gone */
  struct buf first;            /* bytes that the driver wrote before there was a process */
  uint64_t background_ms;      /* limit of what it does after its final event */
  uint64_t background_idle_ms; /* limit of that while it does nothing at all */
  uint64_t until_ms;           /* the end of that, on the loop's clock; 0: it does nothing */
  bool in_turn;                /* it is in another turn: it waits for its model */
  struct tree_work work;       /* done when the idle limit was set */
  bool background_idled;       /* it was ended for that */
  bool outlived;               /* it was ended for that, or at the end of its time */
  bool cancelled, last_word;   /* asked to stop; its stdin was closed as well */
  bool restarted;              /* restarted with a conversation that was there already */
  bool asks_version;           /* the process is --version, not the agent */
};

/* --- what a driver may do --- */

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
  run->last_word = true;
  if (run->process != NULL)
    process_close_stdin(run->process);
}

/* Is called by run->timer when the time for a last word is over. */
static void agent_on_grace_over(uv_timer_t *timer) {
  struct agent_run *run = timer->data;
  if (run->process == NULL)
    return;
  if (!run->last_word && run->ops->keeps_stdin) {
    host_close_stdin(run);
    uv_timer_start(&run->timer, agent_on_grace_over, LIMIT_AGENT_FINAL_GRACE_MS, 0);
  } else if (run->cancelled) {
    process_cancel(run->process);
  } else {
    process_finish_early(run->process);
  }
}

static void host_awaits(void *ctx, bool turn);

static void host_answered(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL && !run->cancelled)
    uv_timer_start(&run->timer, agent_on_grace_over, LIMIT_AGENT_FINAL_GRACE_MS, 0);
}

/* Looks at what the client does in the background: it ends when its time is over, or when it has
 * done nothing for a while, such as a server that waits for requests. */
static void agent_on_background(uv_timer_t *timer) {
  struct agent_run *run = timer->data;
  struct tree_work now;
  if (run->process == NULL)
    return;
  process_measure(run->process, &now);
  run->background_idled =
      !run->in_turn && tree_work_idles(&run->work, &now, run->background_idle_ms);
  run->outlived = run->background_idled || uv_now(run->env->loop) >= run->until_ms;
  if (run->outlived)
    agent_on_grace_over(timer);
  else
    host_awaits(run, run->in_turn);
}

static void host_awaits(void *ctx, bool turn) {
  struct agent_run *run = ctx;
  uint64_t now = uv_now(run->env->loop);
  if (run->until_ms == 0)
    run->until_ms = now + run->background_ms;
  if (run->process == NULL || run->cancelled)
    return;
  run->in_turn = turn;
  uint64_t left = run->until_ms > now ? run->until_ms - now : 0;
  process_measure(run->process, &run->work);
  uv_timer_start(&run->timer, agent_on_background,
                 left < run->background_idle_ms ? left : run->background_idle_ms, 0);
}

static void host_give_up(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL)
    process_finish_early(run->process);
}

static void host_progress(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL)
    process_note_progress(run->process);
}

/* --- an agent that is an HTTP server on this machine ---
 *
 * Its driver asks by host_request, any number at once, as soon as the port is known, and is told
 * from the loop only, never from within its own functions or libcurl's: it may ask for more at any
 * time. Requests carry the password (Basic, user `opencode`) and go to loopback without any proxy;
 * connections are not kept, since the program ends with its call. What is asked after its end is
 * asked in vain. */

/* Holds one request. What libcurl's callbacks deliver is kept here until the loop gets to it
 * (`soon`). */
struct server_asked {
  struct server_asked *next;
  struct agent_server *server;
  struct http_exchange *exchange; /* NULL: it is over */
  int id;
  bool events, begun, begun_told, over;
  int status;
  struct buf body;  /* what we send */
  struct buf bytes; /* what came: a whole reply, or the unread part of a stream */
  struct sse sse;
  enum error_class class;
  char message[256];
};

struct agent_server {
  struct http *http;
  struct http_lane *lane;
  struct agent_run *run;
  struct server_asked *asked; /* those not yet reported to their end */
  unsigned port;
  struct buf authorization; /* a header with the password */
  uv_timer_t soon, wake;
  unsigned handles;
  bool closing;
};

static void on_server_closed(struct agent_run *run);

static void agent_server_tell(struct server_asked *x, bool begun) {
  struct agent_server *s = x->server;
  const struct driver_reply reply = {.id = x->id,
                                     .class = x->class,
                                     .status = x->status,
                                     .begun = begun,
                                     .body = begun ? (struct str){0} : buf_view(&x->bytes),
                                     .message = x->class ? x->message : NULL};
  s->run->ops->reply(s->run->driver, &reply);
}

static bool agent_server_on_event(void *ctx, struct str type, struct str data) {
  struct server_asked *x = ctx;
  (void)type;
  const struct agent_run *run = x->server->run;
  run->ops->event(run->driver, data);
  return true;
}

static void agent_server_read_stream(struct server_asked *x) {
  struct buf bytes = x->bytes;
  x->bytes = (struct buf){.max = bytes.max};
  if (!x->begun_told) {
    x->begun_told = true;
    agent_server_tell(x, true);
  }
  bool more = sse_feed(&x->sse, buf_view(&bytes));
  if (more && x->over)
    more = sse_end(&x->sse);
  buf_deinit(&bytes);
  if (more || x->class != CLASS_NONE)
    return;
  x->class = CLASS_PROTOCOL;
  print_into(x->message, sizeof x->message, "an event is larger than %u bytes",
             LIMIT_AGENT_LINE_BYTES);
  if (x->exchange != NULL)
    http_cancel(x->exchange);
}

static void agent_server_on_handle_closed(uv_handle_t *handle) {
  struct agent_server *s = handle->data;
  if (--s->handles > 0)
    return;
  struct agent_run *run = s->run;
  explicit_bzero(s->authorization.p, s->authorization.n);
  buf_deinit(&s->authorization);
  free(s);
  on_server_closed(run);
}

/* Tells what has come. New requests are put at the front, so they wait for the next round. */
static void agent_server_on_soon(uv_timer_t *timer) {
  struct agent_server *s = timer->data;
  for (struct server_asked *x = s->asked, *next; x != NULL; x = next) {
    next = x->next;
    if (x->events && x->begun && (x->bytes.n > 0 || !x->begun_told || x->over))
      agent_server_read_stream(x);
    if (x->over) {
      agent_server_tell(x, false);
      CHAIN_REMOVE(x->server->asked, x);
      if (x->events)
        sse_deinit(&x->sse);
      buf_deinit(&x->body);
      buf_deinit(&x->bytes);
      free(x);
    }
  }
  if (s->closing && s->asked == NULL && !uv_is_closing((uv_handle_t *)&s->soon)) {
    uv_close((uv_handle_t *)&s->soon, agent_server_on_handle_closed);
    uv_close((uv_handle_t *)&s->wake, agent_server_on_handle_closed);
  }
}

static void tell_later(struct agent_server *s) {
  uv_timer_start(&s->soon, agent_server_on_soon, 0, 0);
}

static bool agent_server_on_head(void *ctx, int status) {
  struct server_asked *x = ctx;
  x->status = status;
  x->begun = x->events && status == 200;
  if (x->events && !x->begun)
    x->bytes.max = LIMIT_HTTP_ERROR_BYTES;
  tell_later(x->server);
  return true;
}

static bool agent_server_on_body(void *ctx, struct str bytes) {
  struct server_asked *x = ctx;
  buf_str(&x->bytes, bytes);
  if (x->begun)
    tell_later(x->server);
  return true;
}

static void agent_server_on_done(void *ctx, const struct http_end *end) {
  struct server_asked *x = ctx;
  x->exchange = NULL;
  x->over = true;
  x->status = end->status;
  if (x->class == CLASS_NONE)
    x->class = api_end_class(end->kind);
  if (x->message[0] == '\0')
    print_into(x->message, sizeof x->message, "%.255s", end->message);
  tell_later(x->server);
}

static void on_wake(uv_timer_t *timer) {
  struct agent_server *s = timer->data;
  if (!s->closing) {
    s->run->ops->woke(s->run->driver);
    return;
  }
  for (struct server_asked *x = s->asked; x != NULL; x = x->next) /* its grace is over */
    if (x->exchange != NULL)
      http_cancel(x->exchange);
}

static void host_request(void *ctx, const struct driver_request *request) {
  const struct agent_run *run = ctx;
  struct agent_server *s = run->server;
  assert(request->path[0] == '/');
  if (s == NULL || s->port == 0)
    return;
  const char *const headers[] = {
      buf_c(&s->authorization),
      request->events ? "Accept: text/event-stream" : "Content-Type: application/json", NULL};
  char url[LIMIT_HTTP_URL_BYTES];
  struct server_asked *x = xcalloc(1, sizeof *x);
  const struct http_sink sink = {NULL, agent_server_on_head, agent_server_on_body,
                                 agent_server_on_done, x};
  x->next = s->asked;
  s->asked = x;
  x->server = s;
  x->id = request->id;
  x->events = request->events;
  if (request->body.p != NULL)
    buf_str(&x->body, request->body);
  if (x->events)
    sse_init(&x->sse, LIMIT_AGENT_LINE_BYTES, agent_server_on_event, x);
  print_into(url, sizeof url, "http://127.0.0.1:%u%s", s->port, request->path);
  const struct http_request out = {.lane = s->lane,
                                   .url = url,
                                   .post = request->body.p != NULL,
                                   .headers = headers,
                                   .body = buf_view(&x->body),
                                   .alone = true,
                                   .max_bytes = x->events ? SIZE_MAX : LIMIT_AGENT_LINE_BYTES};
  x->exchange = http_start(s->http, &out, &sink);
}

static void host_wake(void *ctx, uint64_t ms) {
  const struct agent_run *run = ctx;
  struct agent_server *s = run->server;
  if (s == NULL)
    return;
  (void)uv_timer_stop(&s->wake);
  if (ms > 0)
    uv_timer_start(&s->wake, on_wake, ms, 0);
}

/* Sends no more requests, since the program is gone. Replies that are under way and complete within
 * grace_ms are still passed on; then on_server_closed comes from the loop. */
static void agent_server_close(struct agent_run *run, uint64_t grace_ms) {
  struct agent_server *s = run->server;
  run->server = NULL;
  s->closing = true;
  uv_timer_start(&s->wake, on_wake, grace_ms, 0);
  tell_later(s);
}

static void host_serves_at(void *ctx, unsigned port) {
  const struct agent_run *run = ctx;
  assert(port > 0);
  assert(port < 65536);
  if (run->server != NULL)
    run->server->port = port;
}

/* Makes the client's side for a program that is a server, with a new password; does nothing for
 * others. */
static bool agent_make_server(struct agent_run *run, struct err *err) {
  unsigned char random[LIMIT_SERVER_SECRET_BYTES];
  char pair[2 * LIMIT_SERVER_SECRET_BYTES + 16];
  struct api *api = run->env->api;
  if (run->ops->password_env == NULL)
    return true;
  if (api == NULL)
    return err_set(err, ERR_INVALID, "nothing is asked over HTTP here");
  run->password = xmalloc(2 * sizeof random + 1);
  random_fill(random, sizeof random);
  for (size_t i = 0; i < sizeof random; i++)
    print_into(run->password + 2 * i, 3, "%02x", random[i]);
  explicit_bzero(random, sizeof random);
  struct agent_server *s = run->server = xcalloc(1, sizeof *s);
  s->run = run;
  s->http = api->http;
  s->lane = http_lane(api->http, "servers of agents", LIMIT_SERVER_LANE_COUNT);
  print_into(pair, sizeof pair, "opencode:%s", run->password);
  buf_reserve(&s->authorization, 2 * sizeof pair); /* no copy is left behind while it grows */
  buf_puts(&s->authorization, "Authorization: Basic ");
  buf_base64(&s->authorization, str_from(pair));
  explicit_bzero(pair, sizeof pair);
  uv_timer_init(api->loop, &s->soon);
  uv_timer_init(api->loop, &s->wake);
  s->soon.data = s->wake.data = s;
  s->handles = 2;
  return true;
}

/* --- all of it --- */

static struct driver_host agent_host_of(struct agent_run *run) {
  struct driver_host host = {.news = host_news,
                             .write = host_write,
                             .close_stdin = host_close_stdin,
                             .answered = host_answered,
                             .awaits = host_awaits,
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

/* --- the end --- */

static void agent_cleanup_work(uv_work_t *work) {
  struct agent_run *run = work->data;
  struct err err;
  git_trace_read(run->tmpdir, &run->result);
  if (!tmpdir_remove(run->tmpdir, &err))
    log_warn("%s", err.text);
}

static void agent_cleanup_after(uv_work_t *work, int status) {
  struct agent_run *run = work->data;
  (void)status;
  classify_settle(&run->result, clock_real_ms());
  if (run->result.class == CLASS_NONE && run->result.usage == NULL)
    run->result.usage = json_pack("{ss}", "told", "none");
  run->sink.done(run->sink.ctx, &run->result);
  json_decref((json_t *)run->call.request->conversation);
  schema_delivery_deinit(&run->schema);
  kept_deinit(&run->err);
  secrets_free(run->secrets);
  arena_deinit(&run->arena);
  buf_deinit(&run->first);
  if (run->password != NULL)
    explicit_bzero(run->password, strlen(run->password));
  free(run->password);
  free(run->tmpdir);
  free(run);
}

static void agent_on_timer_closed(uv_handle_t *handle) {
  struct agent_run *run = handle->data;
  run->cleanup.data = run;
  sandbox_policy_tried(&run->sink, run->tmpdir);
  if (run->tmpdir == NULL)
    agent_cleanup_after(&run->cleanup, 0);
  else
    loop_work(handle->loop, &run->cleanup, agent_cleanup_work, agent_cleanup_after);
}

static void agent_finish(struct agent_run *run) {
  if (run->server != NULL) { /* nothing was started, so nothing is in progress */
    agent_server_close(run, 0);
    return;
  }
  if (run->driver != NULL)
    run->ops->close(run->driver);
  run->driver = NULL;
  uv_close((uv_handle_t *)&run->timer, agent_on_timer_closed);
}

/* --- the process --- */

static void agent_on_output(void *ctx, int fd, struct str bytes) {
  struct agent_run *run = ctx;
  if (fd == 2)
    (void)kept_push(&run->err, bytes);
  if (run->driver == NULL)
    return;
  run->ops->output(run->driver, fd, bytes);
  if (!run->asks_version && run->process != NULL && !run->idled &&
      uv_now(run->env->loop) - run->content_ms > run->idle_ms) {
    run->idled = true;
    process_finish_early(run->process);
  }
}

/* Returns true if the program stopped before a driver could say anything; the result says why. */
static bool never_ran(struct agent_run *run, const struct process_result *p) {
  struct call_result *r = &run->result;
  const char *name = run->self->capability.name, *program = run->command.argv[0];
  const char *install = profile_install(run->profile, run->ops->transport);
  char why[160];
  bool is_there = process_why_not(p, program, run->env->cwd, why, sizeof why);
  if (p->why == PROCESS_END_SPAWN_FAILED)
    call_result_fail(r, CLASS_OVERLOADED, "no process could be started: %s",
                     strerror(p->exec_errno));
  else if (p->why == PROCESS_END_EXEC_FAILED && p->exec_errno == ENOENT && !is_there)
    call_result_fail(
        r, CLASS_NOT_FOUND,
        "the program %s is not installed%s%s; %ssay where it is: providers: {%s: {program: "
        "/PATH}} in config.yaml",
        program, install ? ": " : "", install ? install : "", install ? "or " : "", name);
  else if (p->why == PROCESS_END_EXEC_FAILED)
    call_result_fail(r, CLASS_NOT_FOUND, "cannot run %s: %s", program, why);
  else
    return sandbox_policy_engine_failed(run->held.contained, p, run->call.request, r);
  return true;
}

/* Returns true if the id that we chose already belongs to a conversation: this call repeats one
 * that had begun, and continues there. A server names its conversations itself. */
static bool is_in_use(const struct agent_run *run) {
  const char *text = buf_c(&run->result.error_text.bytes);
  return run->call.new_session[0] != '\0' && run->call.session[0] == '\0' && !run->restarted &&
         run->password == NULL && !run->cancelled && run->result.class != CLASS_NONE &&
         run->result.text.bytes.n == 0 &&
         (strstr(text, "already in use") != NULL || strstr(text, "already exists") != NULL);
}

static bool start_process(struct agent_run *run, struct err *err);

static bool restart(struct agent_run *run) {
  struct err err = {0};
  struct driver_host host = agent_host_of(run);
  enum error_class class;
  run->restarted = true;
  run->last_word = false;
  run->until_ms = 0;
  run->call.session = run->call.new_session;
  if (!profile_command(run->profile, run->ops->transport, &run->call, &run->arena, &run->command,
                       &class, &err))
    return false;
  call_result_deinit(&run->result);
  run->result = (struct call_result){.enforced = run->result.enforced};
  run->ops->close(run->driver);
  run->ended = false;
  buf_clear(&run->first);
  run->driver = run->ops->open(run->profile, &run->call, &host);
  provider_tell(
      &run->sink, NEWS_NOTE, STR(""),
      json_pack("{s:s}", "text", "the conversation of this call already existed: it is continued"));
  if (run->cancelled) { /* cancelled by whoever was told */
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
    return false;
  }
  if (start_process(run, &err))
    return true;
  call_result_fail(&run->result, CLASS_NOT_FOUND, "%s", err.text);
  return false;
}

/* --- an old program --- */

/* Returns true for a failure that an old program would explain: it does not know our words, or we
 * do not know its. */
static bool may_be_old(const struct agent_run *run, const struct process_result *p) {
  enum error_class class = run->result.class;
  return p->started && p->why == PROCESS_END_EXITED && !run->cancelled &&
         run->ops->transport != TRANSPORT_ACP && version_minimum(run->profile) != NULL &&
         (class == CLASS_PROTOCOL || class == CLASS_CRASHED || class == CLASS_BAD_REQUEST);
}

static void agent_on_version(void *ctx, struct process_result *p) {
  struct agent_run *run = ctx;
  const char *minimum = version_minimum(run->profile);
  const char *install = profile_install(run->profile, run->ops->transport);
  char version[64];
  run->process = NULL;
  if (run->cancelled)
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
  else if (version_read(p, version, sizeof version) && version_older(version, minimum))
    call_result_fail(&run->result, CLASS_NOT_FOUND,
                     "%s is version %s, which is too old: %s or newer is needed%s%s",
                     run->command.argv[0], version, minimum, install ? ": " : "",
                     install ? install : "");
  agent_finish(run);
}

static bool agent_ask_version(struct agent_run *run) {
  struct err err;
  const struct process_spec spec = {
      .argv = version_words(run->profile, run->command.argv[0], run->self->settings, &run->arena),
      .cwd = run->tmpdir, /* away from any project's configuration */
      .envp = run->envp,
      .stdout_max = LIMIT_VERSION_BYTES,
      .stderr_max = LIMIT_VERSION_BYTES,
      .wall_ms = LIMIT_PROBE_WALL_MS};
  run->asks_version = true;
  run->process = process_start(run->env->processes, &spec, NULL, agent_on_version, run, &err);
  return run->process != NULL;
}

/* Judges the call once the process is gone and a server's last replies have been read. */
static void judge(struct agent_run *run, const struct process_result *p) {
  struct call_result *r = &run->result;
  if (!never_ran(run, p))
    run->ops->end(run->driver, p, r);
  if (run->idled && r->class != CLASS_NONE)
    call_result_fail(r, CLASS_TIMEOUT, "it printed signs of life, but no content for %llu ms",
                     (unsigned long long)run->idle_ms);
  if (r->class == CLASS_TIMEOUT && (run->idled || p->why == PROCESS_END_STALL_LIMIT))
    r->silent_ms = (int64_t)(run->idled ? run->idle_ms : run->stall_ms);
  if (run->outlived)
    r->outlived = json_incref(r->unfinished);
  if (run->background_idled && json_array_size(r->outlived) > 0)
    print_into(r->note, sizeof r->note,
               "a background task did nothing for %llu s, so it was ended: %s",
               (unsigned long long)(run->background_idle_ms + 999) / 1000,
               json_string_value(json_array_get(r->outlived, 0)));
  r->structured = schema_delivery_value(&run->schema, r->structured);
  if (r->class != CLASS_NONE) { /* else the answer had come already */
    char said[400];
    print_into(said, sizeof said, "%.399s", r->message);
    said[utf8_floor(said, strlen(said))] = '\0';
    if (p->why == PROCESS_END_STALL_LIMIT)
      call_result_fail(r, r->class, "no output for %llu ms: %s", (unsigned long long)run->stall_ms,
                       said);
    else if (p->why == PROCESS_END_WALL_LIMIT)
      call_result_fail(r, r->class, "still running after %llu ms: %s",
                       (unsigned long long)run->call.request->timeout_ms, said);
  }
  if (run->cancelled && r->class != CLASS_NONE)
    call_result_fail(r, CLASS_CANCELLED, "cancelled");
  if (is_in_use(run) && restart(run))
    return;
  ended_note(r, p);
  if (!may_be_old(run, p) || !agent_ask_version(run))
    agent_finish(run);
}

static void on_server_closed(struct agent_run *run) {
  if (run->ended)
    judge(run, &run->ended_as);
  else
    agent_finish(run);
}

static void agent_on_end(void *ctx, struct process_result *p) {
  struct agent_run *run = ctx;
  struct call_result *r = &run->result;
  run->process = NULL;
  run->ended = true;
  sandbox_policy_end(&run->held);
  (void)uv_timer_stop(&run->timer);
  kept_take(&run->err, &r->error_text, &r->error_dropped_bytes);
  r->duration_ms = (int64_t)p->duration_ms;
  if (run->server == NULL) {
    judge(run, p);
    return;
  }
  run->ended_as = *p;
  run->ended_as.out = (struct buf){0};
  agent_server_close(run, LIMIT_SERVER_LOST_MS);
}

/* Returns false for a server that requests could not reach, in a network of its own. */
static bool can_be_asked(const struct agent_run *run, struct err *err) {
  const json_t *words = run->call.request->sandbox;
  if (run->server == NULL || json_object_get(words, "network") == NULL)
    return true;
  return err_set(err, ERR_INVALID,
                 "transport: native of %s is a server that segue talks to over the network, which "
                 "network: %s cuts off: write providers: {%s: {transport: exec}} in config.yaml",
                 run->profile->capability.name,
                 json_string_value(json_object_get(words, "network")),
                 run->profile->capability.name);
}

static bool start_process(struct agent_run *run, struct err *err) {
  const struct sandbox_policy_spec wanted = {.env = run->env,
                                             .request = run->call.request,
                                             .cwd = run->env->cwd,
                                             .tmpdir = run->tmpdir,
                                             .argv = run->command.argv,
                                             .envp = run->envp,
                                             .state = json_object_get(run->profile->keys, "state"),
                                             .hosts = json_object_get(run->profile->keys, "hosts"),
                                             .sink = &run->sink};
  struct str in = run->ops->keeps_stdin ? buf_view(&run->first) : run->command.stdin_bytes;
  const struct process_spec spec = {.stdin_bytes = in.p,
                                    .stdin_n = in.n,
                                    .stdin_open = run->ops->keeps_stdin,
                                    .keep_nothing = true, /* the driver keeps what matters */
                                    .wall_ms = run->call.request->timeout_ms,
                                    .stall_ms = run->stall_ms,
                                    /* a server does not answer there */
                                    .closed_ms = run->server ? 0 : LIMIT_AGENT_FINAL_GRACE_MS};
  if (can_be_asked(run, err))
    run->process =
        sandbox_policy_start(&wanted, &spec, agent_on_output, agent_on_end, run, &run->held, err);
  return run->process != NULL;
}

/* --- starting --- */

static const char *const *agent_join(struct arena *a, const char *const *x, const char *const *y) {
  size_t n = str_count(x), m = str_count(y);
  const char **out = arena_array(a, n + m + 1, sizeof *out);
  if (n > 0)
    memcpy(out, x, n * sizeof *out);
  if (m > 0)
    memcpy(out + n, y, m * sizeof *out);
  return out;
}

static bool build_environment(struct agent_run *run, struct err *err) {
  const struct call_request *request = run->call.request;
  char *password = NULL;
  if (run->password != NULL) { /* if a name is there twice, the last one counts: ours */
    password = arena_printf(&run->arena, "%s=%s", run->ops->password_env, run->password);
  }
  run->envp =
      process_env_build(&run->arena, run->tmpdir,
                        agent_join(&run->arena, call_env_names(&run->arena, run->env, request),
                                   run->command.pass_env),
                        agent_join(&run->arena, run->command.assignments,
                                   call_env_own(&run->arena, request, run->tmpdir, password)),
                        err);
  if (run->envp == NULL)
    return false;
  run->secrets = secrets_new();
  secrets_find_in_environment(run->secrets, run->envp, run->env->pass_env);
  secrets_find_in_words(run->secrets, run->command.argv);
  call_env_hide(run->secrets, run->env);
  kept_init(&run->err, run->secrets, LIMIT_STDERR_BYTES);
  return true;
}

static uint64_t setting_ms(const json_t *settings, const char *name, uint64_t otherwise) {
  const json_t *value = json_object_get(settings, name);
  return json_is_integer(value) ? (uint64_t)json_integer_value(value) : otherwise;
}

static bool prepare_run(struct agent_run *run, struct err *err) {
  const struct call_request *request = run->call.request;
  enum error_class class = CLASS_BAD_REQUEST;
  enum transport transport;
  char name[80];
  if (run->profile->broken != NULL) {
    const struct err *why = run->profile->broken;
    call_result_fail(&run->result, CLASS_NOT_FOUND, "%s:%d:%d: %s", why->file, why->line,
                     why->column, why->text);
    return false;
  }
  if (!profile_check_settings(run->profile, run->self->settings, err) ||
      !driver_transport(run->profile, run->self->settings, &transport, err))
    goto fail;
  class = CLASS_AUTH;
  if (!project_files_check(run->profile, transport, run->self->settings, run->env->cwd, err))
    goto fail;
  class = CLASS_NOT_FOUND;
  run->ops = driver_find(run->profile, transport, err);
  schema_delivery(&run->schema, run->profile, transport, request);
  run->call.schema = run->schema.sent;
  run->call.prompt = run->schema.prompt;
  run->result.enforced = run->schema.enforced;
  print_into(name, sizeof name, "segue-%s-%ld", request->session, request->call);
  run->tmpdir = tmpdir_make_named(name, err);
  run->call.tmpdir = run->tmpdir;
  bool ok =
      run->tmpdir != NULL && agent_make_server(run, err) &&
      profile_command(run->profile, transport, &run->call, &run->arena, &run->command, &class, err);
  for (size_t i = 0; ok && i < run->command.file_count; i++)
    ok = file_write_new(run->command.files[i].path, run->command.files[i].content, err);
  ok = ok && build_environment(run, err);
  if (ok) {
    const struct driver_host host = agent_host_of(run);
    run->driver = run->ops->open(run->profile, &run->call, &host);
    ok = start_process(run, err);
  }
  if (ok)
    return true;
fail:
  call_result_fail(&run->result, class, "%s", err->text);
  return false;
}

static void agent_on_soon(uv_timer_t *timer) {
  agent_finish(timer->data);
}

static struct provider_run *agent_start(const struct provider *self, const struct provider_env *env,
                                        const struct call_request *request,
                                        const struct provider_sink *sink) {
  assert(env->processes != NULL);
  assert(sink->done != NULL);
  struct agent_run *run = xcalloc(1, sizeof *run);
  const struct profile *profile = provider_profile(self);
  struct err err = {0};
  bool judge = request->purpose == PURPOSE_JUDGE || request->purpose == PURPOSE_REASK;
  struct call_request *own = arena_alloc(&run->arena, sizeof *own);
  *own = *request;
  if (own->model.n == 0) /* the user's for this provider */
    own->model = str_from(json_string_value(json_object_get(self->settings, "model")));
  json_incref((json_t *)own->conversation); /* the call's own end replaces it */
  run->self = self;
  run->env = env;
  run->profile = profile;
  run->sink = *sink;
  if (judge)
    run->stall_ms = setting_ms(self->settings, "judge_stall_ms", profile->judge_stall_ms);
  else
    run->stall_ms = setting_ms(self->settings, "stall_ms", profile->stall_ms);
  if (request->stall_ms > 0)
    run->stall_ms = request->stall_ms;
  run->idle_ms = setting_ms(self->settings, "idle_ms", LIMIT_AGENT_IDLE_MS);
  run->background_ms =
      setting_ms(self->settings, "background_ms",
                 request->background_ms > 0 ? request->background_ms : LIMIT_AGENT_BACKGROUND_MS);
  run->background_idle_ms =
      setting_ms(self->settings, "background_idle_ms", LIMIT_AGENT_BACKGROUND_IDLE_MS);
  run->content_ms = uv_now(env->loop);
  run->call = (struct agent_call){
      .request = own,
      .cwd = env->cwd,
      .session = arena_str(&run->arena, request->provider_session).p,
      .new_session = json_is_string(request->token) ? json_string_value(request->token) : "",
      .prompt = request->prompt,
      .permission = request->permission,
      .held = sandbox_policy_holds(request),
      .tools = json_object_get(self->settings, "tools"),
      .max_turns = (long)setting_ms(self->settings, "max_turns", (uint64_t)profile->max_turns),
      .settings = self->settings};
  uv_timer_init(env->loop, &run->timer);
  run->timer.data = run;
  if (!prepare_run(run, &err))
    uv_timer_start(&run->timer, agent_on_soon, 0, 0);
  run->base.provider = self;
  return &run->base;
}

static void agent_cancel(struct provider_run *base) {
  struct agent_run *run = (struct agent_run *)base;
  assert(base->provider->ops->cancel == agent_cancel);
  if (run->cancelled)
    return;
  run->cancelled = true;
  if (run->process == NULL) /* it is over, or is about to be started again */
    return;
  if (!run->asks_version && run->ops->interrupt != NULL && run->ops->interrupt(run->driver))
    uv_timer_start(&run->timer, agent_on_grace_over, LIMIT_AGENT_INTERRUPT_MS, 0);
  else
    process_cancel(run->process);
}

static bool agent_can_steer(const struct provider *self) {
  const struct profile *profile = provider_profile(self);
  enum transport transport;
  struct err err;
  return profile->broken == NULL && driver_transport(profile, self->settings, &transport, &err) &&
         driver_find(profile, transport, &err)->steer != NULL;
}

static void agent_steer(struct provider_run *base, uint64_t key, struct str text) {
  struct agent_run *run = (struct agent_run *)base;
  if (run->driver != NULL && run->ops->steer != NULL && !run->ended && !run->cancelled)
    run->ops->steer(run->driver, key, text);
}

/* Makes a UUID (version 4) from the call's random bytes: the id of a new conversation. */
static json_t *agent_prepare(const struct provider *self, const struct provider_env *env,
                             const struct call_request *request, const json_t *token_counts,
                             const unsigned char entropy[16]) {
  const struct profile *profile = provider_profile(self);
  unsigned char b[16];
  enum transport transport;
  struct err err;
  (void)env;
  (void)request;
  (void)token_counts;
  if (!profile->chooses_session || !driver_transport(profile, self->settings, &transport, &err) ||
      transport == TRANSPORT_ACP) /* its session/new chooses the id */
    return NULL;
  memcpy(b, entropy, sizeof b);
  b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
  b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
  return json_sprintf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                      b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                      b[13], b[14], b[15]);
}

static const struct provider_ops agent_ops = {.prepare = agent_prepare,
                                              .start = agent_start,
                                              .cancel = agent_cancel,
                                              .can_steer = agent_can_steer,
                                              .steer = agent_steer};

struct provider provider_of_profile(const struct profile *profile) {
  return (struct provider){.capability = profile->capability, .ops = &agent_ops, .data = profile};
}

const struct profile *provider_profile(const struct provider *provider) {
  return provider->ops == &agent_ops ? profile_ready(provider->data) : NULL;
}
