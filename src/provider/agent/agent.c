/* Runs a call to an agent: a folder for it, its program under the shim, a driver that reads it, and
 * for that driver what it may not do by itself. */
#include "provider/agent/agent.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/tmpdir.h"
#include "provider/agent/agent_server.h"
#include "provider/agent/driver.h"
#include "provider/agent/program_version.h"
#include "provider/agent/project_files.h"
#include "provider/agent/schema_delivery.h"
#include "provider/agent/subscription.h"
#include "provider/api/api.h"
#include "provider/child.h"
#include "provider/sandbox_policy.h"
#include "provider/secret_find.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  struct confined held;           /* confines it; its sandbox is freed */
  struct process_result ended_as; /* a server's end, while its last replies are still read */
  struct agent_server *server;    /* NULL: its program is no server */
  char *password;                 /* the server's */
  uv_timer_t timer;               /* reports a start that failed; then the grace after the answer */
  uv_work_t cleanup;
  struct call_result result;
  struct schema_delivery schema;
  struct arena arena;
  char *tmpdir;
  uint64_t stall_ms, idle_ms; /* limits without output; with output but no content */
  uint64_t content_ms;        /* time of the last content */
  bool idled;                 /* it was ended for lack of content */
  bool ended;                 /* the process is gone */
  struct buf first;           /* bytes that the driver wrote before there was a process */
  uint64_t background_ms;     /* limit of what it does after its final event */
  uint64_t until_ms;          /* the end of that, on the loop's clock; 0: it does nothing */
  bool cancelled, last_word;  /* asked to stop; its stdin was closed as well */
  bool restarted;             /* restarted with a conversation that was there already */
  bool asks_version;          /* the process is --version, not the agent */
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

static void host_answered(void *ctx) {
  struct agent_run *run = ctx;
  if (run->process != NULL && !run->cancelled)
    uv_timer_start(&run->timer, agent_on_grace_over, LIMIT_AGENT_FINAL_GRACE_MS, 0);
}

static void host_awaits(void *ctx) {
  struct agent_run *run = ctx;
  uint64_t now = uv_now(run->env->loop);
  if (run->until_ms == 0)
    run->until_ms = now + run->background_ms;
  if (run->process != NULL && !run->cancelled)
    uv_timer_start(&run->timer, agent_on_grace_over, run->until_ms > now ? run->until_ms - now : 0,
                   0);
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

/* Makes the client's side for a program that is a server, with its password; does nothing for
 * others. */
static bool agent_make_server(struct agent_run *run, struct err *err) {
  const struct agent_server_sink sink = {on_reply, agent_host_on_event, on_woke, run};
  if (run->ops->password_env == NULL)
    return true;
  if (run->env->api == NULL)
    return err_set(err, ERR_INVALID, "nothing is asked over HTTP here");
  run->password = agent_server_password();
  run->server = agent_server_new(api_http(run->env->api), run->env->loop, run->password, &sink);
  return true;
}

/* --- the end --- */

static void agent_cleanup_work(uv_work_t *work) {
  struct agent_run *run = work->data;
  struct err err;
  if (!tmpdir_remove(run->tmpdir, &err))
    log_warn("%s", err.text);
}

static void agent_cleanup_after(uv_work_t *work, int status) {
  struct agent_run *run = work->data;
  (void)status;
  subscription_check(&run->result, clock_real_ms());
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

static void on_server_closed(void *ctx);

static void agent_finish(struct agent_run *run) {
  if (run->server != NULL) { /* nothing was started, so nothing is in progress */
    struct agent_server *server = run->server;
    run->server = NULL;
    agent_server_close(server, 0, on_server_closed, run);
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
    kept_push(&run->err, bytes);
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
  json_t *data =
      json_pack("{s:s}", "text", "the conversation of this call already existed: it is continued");
  const struct provider_news news = {.kind = NEWS_NOTE, .data = data};
  run->restarted = true;
  run->last_word = false;
  run->until_ms = 0;
  run->call.session = run->call.new_session;
  if (!profile_command(run->profile, run->ops->transport, &run->call, &run->arena, &run->command,
                       &class, &err)) {
    json_decref(data);
    return false;
  }
  call_result_deinit(&run->result);
  run->result = (struct call_result){.enforced = run->result.enforced};
  run->ops->close(run->driver);
  run->ended = false;
  buf_clear(&run->first);
  run->driver = run->ops->open(run->profile, &run->call, &host);
  run->sink.news(run->sink.ctx, &news);
  json_decref(data);
  if (run->cancelled) { /* cancelled by whoever was told */
    call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
    return false;
  }
  if (start_process(run, &err))
    return true;
  call_result_fail(&run->result, CLASS_NOT_FOUND, "%s", err.text);
  return false;
}

static void add_limit(struct agent_run *run, const struct process_result *p) {
  enum error_class class = run->result.class;
  char said[400];
  if (class == CLASS_NONE) /* the answer had come already */
    return;
  print_into(said, sizeof said, "%.399s", run->result.message);
  said[utf8_floor(said, strlen(said))] = '\0';
  if (p->why == PROCESS_END_STALL_LIMIT)
    call_result_fail(&run->result, class, "no output for %llu ms: %s",
                     (unsigned long long)run->stall_ms, said);
  else if (p->why == PROCESS_END_WALL_LIMIT)
    call_result_fail(&run->result, class, "still running after %llu ms: %s",
                     (unsigned long long)run->call.request->timeout_ms, said);
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
  r->structured = schema_delivery_value(&run->schema, r->structured);
  add_limit(run, p);
  if (run->cancelled && r->class != CLASS_NONE)
    call_result_fail(r, CLASS_CANCELLED, "cancelled");
  if (is_in_use(run) && restart(run))
    return;
  if (p->memory_reached && r->note[0] == '\0')
    print_into(r->note, sizeof r->note,
               "its limit of memory was reached: the kernel killed a process of it");
  if (p->pipes_held && r->note[0] == '\0')
    print_into(r->note, sizeof r->note,
               "a descendant held the output open after the exit; it was killed");
  if (!may_be_old(run, p) || !agent_ask_version(run))
    agent_finish(run);
}

static void on_server_closed(void *ctx) {
  struct agent_run *run = ctx;
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
  struct agent_server *server = run->server;
  run->ended_as = *p;
  run->ended_as.out = (struct buf){0};
  run->server = NULL;
  agent_server_close(server, LIMIT_SERVER_LOST_MS, on_server_closed, run);
}

static void agent_on_refused(void *ctx, const char *where) {
  const struct agent_run *run = ctx;
  sandbox_policy_denied(&run->sink, where);
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
                                             .refused = agent_on_refused,
                                             .ctx = run};
  struct confined held;
  if (!can_be_asked(run, err) || !sandbox_policy_call(&wanted, &held, err))
    return false;
  struct str in = run->ops->keeps_stdin ? buf_view(&run->first) : run->command.stdin_bytes;
  const struct process_spec spec = {.argv = run->command.argv,
                                    .cwd = run->env->cwd,
                                    .envp = run->envp,
                                    .sandbox = held.sandbox,
                                    .limits = sandbox_policy_limits(run->call.request),
                                    .stdin_bytes = in.p,
                                    .stdin_n = in.n,
                                    .stdin_open = run->ops->keeps_stdin,
                                    .keep_nothing = true, /* the driver keeps what matters */
                                    .wall_ms = run->call.request->timeout_ms,
                                    .stall_ms = run->stall_ms,
                                    /* a server does not answer there */
                                    .closed_ms = run->server ? 0 : LIMIT_AGENT_FINAL_GRACE_MS};
  run->process = process_start(run->env->processes, &spec, agent_on_output, agent_on_end, run, err);
  sandbox_free(held.sandbox);
  held.sandbox = NULL;
  run->held = held;
  if (run->process == NULL)
    sandbox_policy_end(&run->held);
  return run->process != NULL;
}

/* --- starting --- */

static bool agent_write_file(const char *path, struct str content, struct err *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  size_t done = 0;
  if (fd < 0)
    return err_set_errno(err, errno, "cannot write %s", path);
  while (done < content.n) {
    ssize_t n = write(fd, content.p + done, content.n - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += (size_t)n;
  }
  int number = errno;
  close(fd);
  return done == content.n || err_set_errno(err, number, "cannot write %s", path);
}

static const char *const *agent_join(struct arena *a, const char *const *x, const char *const *y,
                                     const char *const *z) {
  const char *const *lists[] = {x, y, z};
  size_t count = 0;
  for (size_t l = 0; l < ARRAY_LEN(lists); l++)
    for (size_t i = 0; lists[l] != NULL && lists[l][i] != NULL; i++)
      count++;
  const char **out = arena_array(a, count + 1, sizeof *out);
  count = 0;
  for (size_t l = 0; l < ARRAY_LEN(lists); l++)
    for (size_t i = 0; lists[l] != NULL && lists[l][i] != NULL; i++)
      out[count++] = lists[l][i];
  return out;
}

static bool build_environment(struct agent_run *run, struct err *err) {
  const struct call_request *request = run->call.request;
  char session[96], call[64], attempt[32], key[128], *password = NULL;
  print_into(session, sizeof session, "SEGUE_SESSION=%s", request->session);
  /* Lets what the program does outside be idempotent: a repeat of the call has the same key. */
  print_into(call, sizeof call, "SEGUE_CALL=%ld.%ld", request->turn, request->call);
  print_into(attempt, sizeof attempt, "SEGUE_ATTEMPT=%d", request->attempt);
  print_into(key, sizeof key, "SEGUE_IDEMPOTENCY_KEY=%s/%ld/%ld", request->session, request->turn,
             request->call);
  if (run->password != NULL) { /* if a name is there twice, the last one counts: ours */
    size_t n = strlen(run->ops->password_env) + strlen(run->password) + 2;
    password = arena_alloc(&run->arena, n);
    print_into(password, n, "%s=%s", run->ops->password_env, run->password);
  }
  const char *const own[] = {session, call, attempt, key, password, NULL};
  run->envp =
      process_env_build(&run->arena, run->tmpdir,
                        agent_join(&run->arena, call_env_names(&run->arena, run->env, request),
                                   run->command.pass_env, NULL),
                        agent_join(&run->arena, run->command.assignments, own, NULL), err);
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

bool agent_transport(const struct profile *profile, const json_t *settings, enum transport *out,
                     struct err *err) {
  const char *wanted = json_string_value(json_object_get(settings, "transport"));
  *out = profile->preferred;
  if (wanted != NULL && strcmp(wanted, "auto") != 0 && !transport_from_name(str_from(wanted), out))
    return err_set(err, ERR_FILE, "providers.%s.transport must be auto, exec, native or acp",
                   profile->capability.name);
  return driver_find(profile, *out, err) != NULL;
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
      !agent_transport(run->profile, run->self->settings, &transport, err)) {
    call_result_fail(&run->result, CLASS_BAD_REQUEST, "%s", err->text);
    return false;
  }
  if (!project_files_check(run->profile, transport, run->self->settings, run->env->cwd, err)) {
    call_result_fail(&run->result, CLASS_AUTH, "%s", err->text);
    return false;
  }
  run->ops = driver_find(run->profile, transport, err);
  schema_delivery(&run->schema, run->profile, transport, request);
  run->call.schema = run->schema.sent;
  run->call.prompt = run->schema.prompt;
  run->result.enforced = run->schema.enforced;
  print_into(name, sizeof name, "segue-%s-%ld", request->session, request->call);
  run->tmpdir = tmpdir_make_named(name, err);
  run->call.tmpdir = run->tmpdir;
  bool ok = run->tmpdir != NULL && agent_make_server(run, err);
  if (ok && !profile_command(run->profile, transport, &run->call, &run->arena, &run->command,
                             &class, err)) {
    call_result_fail(&run->result, class, "%s", err->text);
    return false;
  }
  for (size_t i = 0; ok && i < run->command.file_count; i++)
    ok = agent_write_file(run->command.files[i].path, run->command.files[i].content, err);
  ok = ok && build_environment(run, err);
  if (ok) {
    const struct driver_host host = agent_host_of(run);
    run->driver = run->ops->open(run->profile, &run->call, &host);
    ok = start_process(run, err);
  }
  if (!ok)
    call_result_fail(&run->result, CLASS_NOT_FOUND, "%s", err->text);
  return ok;
}

static void agent_on_soon(uv_timer_t *timer) {
  agent_finish(timer->data);
}

/* Returns the request with its own model, else with the user's for this provider. */
static struct call_request with_model(const struct call_request *request, const json_t *settings) {
  struct call_request out = *request;
  if (out.model.n == 0)
    out.model = str_from(json_string_value(json_object_get(settings, "model")));
  return out;
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
  *own = with_model(request, self->settings);
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
  run->background_ms = setting_ms(self->settings, "background_ms", LIMIT_AGENT_BACKGROUND_MS);
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
  if (!profile->chooses_session || !agent_transport(profile, self->settings, &transport, &err) ||
      transport == TRANSPORT_ACP) /* its session/new chooses the id */
    return NULL;
  memcpy(b, entropy, sizeof b);
  b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
  b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
  return json_sprintf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                      b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                      b[13], b[14], b[15]);
}

static const struct provider_ops agent_ops = {
    .prepare = agent_prepare, .start = agent_start, .cancel = agent_cancel};

struct provider provider_of_profile(const struct profile *profile) {
  return (struct provider){.capability = profile->capability, .ops = &agent_ops, .data = profile};
}

const struct profile *provider_profile(const struct provider *provider) {
  return provider->ops == &agent_ops ? profile_ready(provider->data) : NULL;
}
