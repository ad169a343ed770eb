/* Runs one program without a session. */
#include "host/run_program.h"

#include "base/arena.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "os/loop.h"
#include "os/process.h"
#include "provider/provider.h"

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

static void on_held_end(void *ctx, struct call_result *result) {
  struct running *r = ctx;
  r->ok = result->has_exit || err_set(r->err, ERR_IO, "%s", result->message);
  r->result->exit_status = result->exit;
  r->result->out = result->text.bytes;
  result->text.bytes = (struct buf){0};
  if (result->class == CLASS_DENIED)
    buf_puts(&r->result->denied, result->message);
  call_result_deinit(result);
}

/* Runs it as a session's command, within what holds it. */
static void run_held(const struct run_program_spec *spec, uv_loop_t *loop,
                     struct process_table *table, struct running *r) {
  char session[48];
  struct arena arena = {0};
  struct arena_list names = {0};
  JSON_EACH(json_object_get(spec->config, "env"), i, name)
    arena_list_add(&arena, &names, str_from(json_string_value(name)));
  const struct provider_env env = {.loop = loop,
                                   .processes = table,
                                   .cwd = spec->folder,
                                   .pass_env = names.items,
                                   .sandbox = json_object_get(spec->config, "sandbox")};
  print_into(session, sizeof session, "check-%ld", (long)getpid());
  const struct call_request request = {.session = session,
                                       .argv = spec->argv,
                                       .edit = true,
                                       .gates = true,
                                       .timeout_ms = r->wall_ms,
                                       .stall_ms = r->wall_ms,
                                       .sandbox = spec->held};
  const struct provider_sink sink = {.done = on_held_end, .ctx = r};
  (void)provider_command.ops->start(&provider_command, &env, &request, &sink);
  (void)uv_run(loop, UV_RUN_DEFAULT);
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
      run_held(spec, &loop, table, &r);
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
