/* Serves the backends that run programs: variables, what is kept of the output, failed starts. */
#include "provider/child.h"

#include "format/json_object.h"
#include "format/json_value.h"
#include "provider/git_trace.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool may_have(const struct provider_env *env, const json_t *name) {
  bool may = false;
  for (size_t i = 0; json_is_string(name) && i < json_array_size(env->secrets); i++)
    may = may || json_same(json_array_get(env->secrets, i), name);
  return may;
}

const char *const *call_env_names(struct arena *a, const struct provider_env *env,
                                  const struct call_request *request) {
  size_t n = str_count(env->pass_env);
  const char **names = arena_array(a, n + json_array_size(request->secrets) + 1, sizeof *names);
  if (n > 0)
    memcpy(names, env->pass_env, n * sizeof *names);
  JSON_EACH(request->secrets, i, name)
    if (may_have(env, name))
      names[n++] = json_string_value(name);
  return names;
}

const char *const *call_env_own(struct arena *a, const struct call_request *request,
                                const char *tmpdir, const char *more) {
  const char **own = arena_array(a, 7 + GIT_TRACE_VARIABLES, sizeof *own);
  own[0] = arena_printf(a, "SEGUE_SESSION=%s", request->session);
  own[1] = arena_printf(a, "SEGUE_CALL=%ld.%ld", request->turn, request->call);
  own[2] = arena_printf(a, "SEGUE_ATTEMPT=%d", request->attempt);
  own[3] = arena_printf(a, "SEGUE_IDEMPOTENCY_KEY=%s/%ld/%ld", request->session, request->turn,
                        request->call);
  size_t n = 4;
  if (request->mark.n > 0)
    own[n++] = arena_printf(a, "SEGUE_MARK=" STR_FMT, STR_ARG(request->mark));
  own[n + git_trace_variables(a, tmpdir, own + n)] = more;
  return own;
}

void call_env_hide(struct secrets *secrets, const struct provider_env *env) {
  secrets_add_env(secrets, env->pass_env);
  JSON_EACH(env->secrets, i, name) {
    const char *const names[] = {json_string_value(name), NULL};
    secrets_add_env(secrets, names);
  }
}

/* --- what is kept of the output --- */

void kept_init(struct kept *k, const struct secrets *secrets, size_t max) {
  *k = (struct kept){0};
  redactor_init(&k->redactor, secrets);
  head_tail_init(&k->bytes, max);
}

struct str kept_push(struct kept *k, struct str piece) {
  if (!secrets_are_empty(k->redactor.secrets)) {
    buf_clear(&k->piece);
    redactor_push(&k->redactor, piece, &k->piece);
    piece = buf_view(&k->piece);
  }
  head_tail_append(&k->bytes, piece);
  return piece;
}

void kept_take(struct kept *k, struct text *text, uint64_t *dropped) {
  buf_clear(&k->piece);
  redactor_flush(&k->redactor, &k->piece);
  head_tail_append(&k->bytes, buf_view(&k->piece));
  buf_clear(&k->piece);
  text->bytes = head_tail_finish(&k->bytes);
  *dropped = text->bytes.dropped;
}

void kept_deinit(struct kept *k) {
  redactor_deinit(&k->redactor);
  buf_deinit(&k->piece);
  head_tail_deinit(&k->bytes);
}

void ended_fail(struct call_result *r, const struct process_result *p) {
  if (p->why == PROCESS_END_SPAWN_FAILED) {
    call_result_fail(r, CLASS_OVERLOADED, "no process could be started: %s",
                     strerror(p->exec_errno));
  } else if (p->why == PROCESS_END_CANCELLED) {
    call_result_fail(r, CLASS_CANCELLED, "cancelled");
  } else {
    assert(p->why == PROCESS_END_SHIM_LOST);
    call_result_fail(
        r, CLASS_CRASHED,
        "the shim that held the program is gone: it was killed, or the lease was over");
  }
}

void ended_note(struct call_result *r, const struct process_result *p) {
  if (p->memory_reached && r->note[0] == '\0')
    print_into(r->note, sizeof r->note,
               "its limit of memory was reached: the kernel killed a process of it");
  else if (p->pipes_held && r->note[0] == '\0')
    print_into(r->note, sizeof r->note,
               "a descendant held the output open after the exit; it was killed");
}

/* --- where a program is --- */

static bool is_program(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool program_find(const char *name, char *out, size_t size) {
  buf_auto_t path = {0};
  bool found = false;
  if (strchr(name, '/') != NULL)
    return snprintf(out, size, "%s", name) < (int)size && is_program(out);
  process_search_path(getenv("PATH"), &path);
  for (struct str rest = buf_view(&path); !found && rest.p != NULL;) {
    struct str part = str_cut(&rest, ':');
    found =
        snprintf(out, size, "%.*s/%s", (int)part.n, part.p, name) < (int)size && is_program(out);
  }
  if (!found)
    out[0] = '\0';
  return found;
}

/* --- from the loop --- */

static void soon_closed(uv_handle_t *handle) {
  struct soon *soon = handle->data;
  soon->done(soon->ctx);
}

static void soon_over(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, soon_closed);
}

void soon_start(struct soon *soon, uv_loop_t *loop, void (*done)(void *ctx), void *ctx) {
  soon->done = done;
  soon->ctx = ctx;
  uv_timer_init(loop, &soon->timer);
  soon->timer.data = soon;
  uv_timer_start(&soon->timer, soon_over, 0, 0);
}
