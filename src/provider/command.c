/* Runs one of the workflow's own programs as a provider. Prompt on stdin, answer = stdout, `exit` =
 * its status (128 + signal when killed). A status other than 0 is an answer, not an error. */
#include "provider/provider.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "os/fs.h"
#include "os/loop.h"
#include "os/tmpdir.h"
#include "provider/child.h"
#include "provider/git_trace.h"
#include "provider/sandbox_policy.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct command_run {
  struct provider_run base;
  struct process *process; /* NULL: it could not be started */
  struct confined held;    /* what confines it */
  struct soon soon;        /* then this reports it from the loop */
  uv_loop_t *loop;
  uv_work_t cleanup;
  struct call_result result;
  char *tmpdir;
  struct provider_sink sink;
  bool gates; /* see call_request */
  const struct call_request *request;
  const struct provider_env *env;
  uint64_t wall_ms, stall_ms;
  const char *cwd;         /* the environment's */
  struct secrets *secrets; /* see call_env.h */
  struct kept out, err;
  char program[128]; /* for messages */
};

static void command_cleanup_work(uv_work_t *work) {
  struct command_run *run = work->data;
  struct err err;
  git_trace_read(run->tmpdir, &run->result);
  if (!tmpdir_remove(run->tmpdir, &err))
    log_warn("%s", err.text);
}

static void command_cleanup_after(uv_work_t *work, int status) {
  struct command_run *run = work->data;
  (void)status;
  run->sink.done(run->sink.ctx, &run->result);
  kept_deinit(&run->out);
  kept_deinit(&run->err);
  secrets_free(run->secrets);
  free(run->tmpdir);
  free(run);
}

static void command_finish(void *ctx) {
  struct command_run *run = ctx;
  sandbox_policy_end(&run->held);
  sandbox_policy_tried(&run->sink, run->tmpdir);
  run->cleanup.data = run;
  if (run->tmpdir == NULL)
    command_cleanup_after(&run->cleanup, 0);
  else
    loop_work(run->loop, &run->cleanup, command_cleanup_work, command_cleanup_after);
}

/* Returns a value for when(structured.X...), but only if all of stdout is one JSON object. */
static json_t *whole_object(struct str text) {
  struct str trimmed = str_trim(text);
  if (trimmed.n == 0 || trimmed.p[0] != '{' || trimmed.n > LIMIT_INLINE_TEXT_BYTES)
    return NULL;
  return json_loadb(trimmed.p, trimmed.n, JSON_REJECT_DUPLICATES, NULL);
}

/* Tells those who watch what the program prints, at most the end of each piece. */
static void command_tell(const struct command_run *run, struct str piece) {
  struct buf shown = {0};
  if (piece.n > LIMIT_LIVE_TEXT_BYTES) {
    piece.p += piece.n - LIMIT_LIVE_TEXT_BYTES;
    piece.n = LIMIT_LIVE_TEXT_BYTES;
  }
  if (!utf8_valid(piece.p, piece.n)) { /* also where a character is cut */
    buf_safe(&shown, piece, true);
    piece = buf_view(&shown);
  }
  if (piece.n > 0)
    provider_tell(&run->sink, NEWS_TEXT, piece, NULL);
  buf_deinit(&shown);
}

static void command_on_output(void *ctx, int fd, struct str bytes) {
  struct command_run *run = ctx;
  command_tell(run, kept_push(fd == 1 || run->gates ? &run->out : &run->err, bytes));
}

/* Says why the program was ended. For a gate that is a failure like any other, and the worker is
 * told of it. */
static void command_too_long(struct command_run *run, const char *what, uint64_t ms) {
  enum { STATUS_TIMED_OUT = 124 }; /* as timeout(1) has it */
  struct call_result *r = &run->result;
  if (!run->gates) {
    call_result_fail(r, CLASS_TIMEOUT, "%s %llu ms", what, (unsigned long long)ms);
    return;
  }
  r->has_exit = true;
  r->exit = STATUS_TIMED_OUT;
  buf_printf(&r->text.bytes, "%s%s: %s %llu ms, so it was ended\n",
             r->text.bytes.n > 0 && r->text.bytes.p[r->text.bytes.n - 1] != '\n' ? "\n" : "",
             run->program, what, (unsigned long long)ms);
}

/* Fails the call if its program failed because of its sandbox, as far as can be told: that is no
 * failure of the work. */
static void command_look_for_denial(struct command_run *run) {
  static const char *const none[] = {NULL};
  struct call_result *r = &run->result;
  const struct sandbox_policy_spec spec = {.env = run->env,
                                           .request = run->request,
                                           .cwd = run->cwd,
                                           .tmpdir = run->tmpdir,
                                           .argv = run->request->argv,
                                           .envp = none};
  buf_auto_t why = {0};
  bool inherits = json_object_get(run->request->sandbox, "from") != NULL;
  if (r->exit != 0 && inherits &&
      (sandbox_policy_denied(&spec, buf_view(&r->error_text.bytes), &why) ||
       sandbox_policy_denied(&spec, buf_view(&r->text.bytes), &why)))
    call_result_fail(r, CLASS_DENIED, "%s: %s", run->program, buf_c(&why));
}

static void command_on_end(void *ctx, struct process_result *p) {
  struct command_run *run = ctx;
  struct call_result *r = &run->result;
  char why[160];
  run->process = NULL;
  kept_take(&run->out, &r->text, &r->dropped_bytes);
  kept_take(&run->err, &r->error_text, &r->error_dropped_bytes);
  r->duration_ms = (int64_t)p->duration_ms;
  ended_note(r, p);
  switch (p->why) {
  case PROCESS_END_EXITED:
    if (sandbox_policy_engine_failed(run->held.contained, p, run->request, r))
      break;
    r->has_exit = true;
    r->exit = p->signal > 0 ? 128 + p->signal : p->exit_code;
    r->signal = p->signal;
    r->structured = whole_object(buf_view(&r->text.bytes));
    command_look_for_denial(run);
    break;
  case PROCESS_END_EXEC_FAILED:
    process_why_not(p, run->program, run->cwd, why, sizeof why);
    call_result_fail(r, CLASS_NOT_FOUND, "cannot run %s: %s", run->program, why);
    break;
  case PROCESS_END_WALL_LIMIT:
    command_too_long(run, "still running after", run->wall_ms);
    break;
  case PROCESS_END_STALL_LIMIT:
    command_too_long(run, "no output for", run->stall_ms);
    break;
  case PROCESS_END_SPAWN_FAILED:
  case PROCESS_END_CANCELLED:
  case PROCESS_END_SHIM_LOST:
    ended_fail(r, p);
    break;
  }
  command_finish(run);
}

/* Returns the words to run. A program named segue is this one, wherever PATH leads: otherwise a
 * session would do its work with another version. */
static const char *const *own_argv(struct arena *arena, const char *const *argv) {
  char program[PATH_MAX];
  size_t n = str_count(argv);
  if (strcmp(argv[0], "segue") != 0 || !fs_own_program(program, sizeof program))
    return argv;
  const char **own = arena_array(arena, n + 1, sizeof *own);
  memcpy(own, argv, (n + 1) * sizeof *own);
  own[0] = arena_str(arena, str_from(program)).p;
  return own;
}

/* A `segue integrate` merges with segue's own git, which no workspace's sandbox lets work. So not
 * it is held, but its check, which it starts itself (cli/trees/merging.h). Returns what is left to
 * hold of it, its limits; NULL: it is another program. */
static json_t *integrate_apart(const struct provider_env *env, const struct call_request *request,
                               struct arena *arena, const char **variable) {
  if (strcmp(request->argv[0], "segue") != 0 || request->argv[1] == NULL ||
      strcmp(request->argv[1], "integrate") != 0)
    return NULL;
  json_t *words = env->sandbox ? json_clone(env->sandbox) : json_object();
  json_t *names = json_array(), *secret = json_array();
  if (sandbox_policy_holds(request))
    json_object_set(words, "inherited", (json_t *)request->sandbox);
  for (size_t i = 0; env->own_folders != NULL && env->own_folders[i] != NULL; i++)
    json_array_append_new(secret, json_text(str_from(env->own_folders[i])));
  json_array_extend(secret, json_object_get(words, "secret"));
  json_object_set_new(words, "secret", secret);
  for (size_t i = 0; env->pass_env != NULL && env->pass_env[i] != NULL; i++)
    json_array_append_new(names, json_text(str_from(env->pass_env[i])));
  json_auto_t *config = json_pack("{so so}", "sandbox", words, "env", names);
  char_auto_t *text = json_dump_text(config, JSON_COMPACT);
  *variable = arena_printf(arena, SANDBOX_POLICY_CHECK "=%s", text);
  return json_pack("{ss sO*}", "level", sandbox_level_name(SANDBOX_OFF), "limits",
                   json_object_get(request->sandbox, "limits"));
}

static struct command_run *command_run_new(const struct provider *self,
                                           const struct provider_env *env,
                                           const struct call_request *request,
                                           const struct provider_sink *sink) {
  struct command_run *run = xcalloc(1, sizeof *run);
  run->base.provider = self;
  run->sink = *sink;
  run->gates = request->gates;
  run->request = request;
  run->env = env;
  run->loop = env->loop;
  run->wall_ms = request->timeout_ms;
  run->stall_ms = request->stall_ms > 0 ? request->stall_ms : LIMIT_CALL_STALL_MS;
  run->cwd = env->cwd;
  run->secrets = secrets_new();
  call_env_hide(run->secrets, env);
  kept_init(&run->out, run->secrets, LIMIT_OUTPUT_BYTES);
  kept_init(&run->err, run->secrets, LIMIT_STDERR_BYTES);
  print_into(run->program, sizeof run->program, "%s", request->argv[0]);
  return run;
}

static struct provider_run *command_start(const struct provider *self,
                                          const struct provider_env *env,
                                          const struct call_request *request,
                                          const struct provider_sink *sink) {
  assert(env->processes != NULL);
  assert(sink->done != NULL);
  struct command_run *run = command_run_new(self, env, request, sink);
  struct arena arena = {0};
  struct err err = {0};
  char tmpdir[80];
  print_into(tmpdir, sizeof tmpdir, "segue-%s-%ld", request->session, request->call);
  run->tmpdir = tmpdir_make_named(tmpdir, &err);
  const char *const *argv = own_argv(&arena, request->argv), *const *envp = NULL;
  const char *variable = NULL;
  json_auto_t *apart = integrate_apart(env, request, &arena, &variable);
  struct call_request started = *request;
  if (apart != NULL)
    started.sandbox = apart;
  if (run->tmpdir != NULL)
    envp = process_env_build(&arena, run->tmpdir, call_env_names(&arena, env, request),
                             call_env_own(&arena, request, run->tmpdir, variable), &err);
  const struct sandbox_policy_spec wanted = {.env = env,
                                             .request = &started,
                                             .cwd = env->cwd,
                                             .tmpdir = run->tmpdir,
                                             .argv = argv,
                                             .envp = envp,
                                             .sink = &run->sink};
  const struct process_spec spec = {.stdin_bytes = request->prompt.p,
                                    .stdin_n = request->prompt.n,
                                    .keep_nothing = true,
                                    .wall_ms = request->timeout_ms,
                                    .stall_ms = run->stall_ms};
  if (envp != NULL)
    run->process = sandbox_policy_start(&wanted, &spec, command_on_output, command_on_end, run,
                                        &run->held, &err);
  arena_deinit(&arena);
  if (run->process == NULL) {
    call_result_fail(&run->result, CLASS_NOT_FOUND, "%s", err.text);
    soon_start(&run->soon, env->loop, command_finish, run);
  }
  return &run->base;
}

static void command_cancel(struct provider_run *base) {
  struct command_run *run = (struct command_run *)base;
  assert(base->provider->ops->cancel == command_cancel);
  if (run->process != NULL)
    process_cancel(run->process);
}

static const struct provider_ops ops = {.start = command_start, .cancel = command_cancel};

const struct provider provider_command = {
    .capability = {.name = "command",
                   .summary = "a program of the workflow: command: [argv...]",
                   .options = 0,
                   .can_judge = false,
                   .takes_model = false,
                   .touches_files = true,
                   .structured = "none"},
    .ops = &ops};
