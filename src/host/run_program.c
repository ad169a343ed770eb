/* Runs one program without a session. */
#include "host/run_program.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/loop.h"
#include "os/process.h"
#include "os/tmpdir.h"
#include "provider/sandbox_policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct running {
  const char *program;
  uint64_t wall_ms;
  struct run_program_result *result;
  struct err *err;
  bool ok;
};

static void on_end(void *ctx, struct process_result *p) {
  struct running *r = ctx;
  char why[160];
  r->result->out = p->out;
  r->result->err = p->err;
  p->out = p->err = (struct buf){0};
  r->result->exit_status = p->signal > 0 ? 128 + p->signal : p->exit_code;
  switch (p->why) {
  case PROCESS_END_EXITED:
    r->ok = true;
    return;
  case PROCESS_END_EXEC_FAILED:
    (void)process_why_not(p, r->program, NULL, why, sizeof why);
    err_set(r->err, ERR_NOT_FOUND, "cannot run %.300s: %s", r->program, why);
    return;
  case PROCESS_END_SPAWN_FAILED:
    err_set_errno(r->err, p->exec_errno, "no process could be started for %.300s", r->program);
    return;
  case PROCESS_END_WALL_LIMIT:
  case PROCESS_END_STALL_LIMIT:
    err_set(r->err, ERR_LIMIT, "%.300s was still running after %llu s and was ended", r->program,
            (unsigned long long)(r->wall_ms / 1000));
    return;
  case PROCESS_END_CANCELLED:
  case PROCESS_END_SHIM_LOST:
    err_set(r->err, ERR_IO, "%.300s was ended from outside", r->program);
    return;
  }
}

/* Runs it within what holds it, in a private folder, with the environment of a session's. */
static void run_held(const struct run_program_spec *spec, const struct process_spec *how,
                     uv_loop_t *loop, struct process_table *table, struct running *r) {
  struct arena arena = {0};
  struct confined held = {0};
  const struct provider_env env = {.loop = loop,
                                   .processes = table,
                                   .cwd = spec->folder,
                                   .sandbox = json_object_get(spec->config, "sandbox")};
  const struct call_request request = {
      .session = "", .argv = spec->argv, .edit = true, .sandbox = spec->held};
  struct provider_sink sink = {.ctx = r};
  struct sandbox_policy_spec wanted = {
      .env = &env, .request = &request, .cwd = spec->folder, .argv = spec->argv, .sink = &sink};
  struct arena_list names = {0};
  struct err left;
  size_t i;
  const json_t *name;
  json_array_foreach(json_object_get(spec->config, "env"), i, name)
    arena_list_add(&arena, &names, str_from(json_string_value(name)));
  char *tmpdir = tmpdir_make(r->err);
  wanted.tmpdir = tmpdir;
  if (tmpdir != NULL)
    wanted.envp = process_env_build(&arena, tmpdir, names.items, NULL, r->err);
  if (wanted.envp != NULL &&
      sandbox_policy_start(&wanted, how, NULL, on_end, r, &held, r->err) != NULL)
    (void)uv_run(loop, UV_RUN_DEFAULT);
  sandbox_policy_end(&held);
  if (r->ok && r->result->exit_status != 0 &&
      !sandbox_policy_denied(&wanted, buf_view(&r->result->err), &r->result->denied))
    (void)sandbox_policy_denied(&wanted, buf_view(&r->result->out), &r->result->denied);
  if (tmpdir != NULL && !tmpdir_remove(tmpdir, &left))
    log_warn("%s", left.text);
  free(tmpdir);
  arena_deinit(&arena);
}

bool run_program_run(const struct run_program_spec *spec, struct run_program_result *result,
                     struct err *err) {
  struct running r = {.program = spec->argv[0],
                      .wall_ms = spec->wall_ms ? spec->wall_ms : LIMIT_INVARIANT_WALL_MS,
                      .result = result,
                      .err = err};
  const struct process_spec process = {.argv = spec->argv,
                                       .cwd = spec->folder,
                                       .envp = (const char *const *)environ,
                                       .stdin_bytes = spec->input.p,
                                       .stdin_n = spec->input.n,
                                       .stdout_max = LIMIT_INVARIANT_OUTPUT_BYTES,
                                       .stderr_max = LIMIT_INVARIANT_OUTPUT_BYTES,
                                       .wall_ms = r.wall_ms};
  uv_loop_t loop;
  memset(result, 0, sizeof *result);
  if (!loop_init(&loop, err))
    return false;
  struct process_table *table = process_table_new(&loop, err);
  if (table != NULL) {
    if (spec->held != NULL)
      run_held(spec, &process, &loop, table, &r);
    else if (process_start(table, &process, NULL, on_end, &r, err) != NULL)
      (void)uv_run(&loop, UV_RUN_DEFAULT);
    process_table_free(table);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
  }
  (void)uv_loop_close(&loop);
  return r.ok;
}

void run_program_result_deinit(struct run_program_result *result) {
  buf_deinit(&result->out);
  buf_deinit(&result->err);
  buf_deinit(&result->denied);
}
