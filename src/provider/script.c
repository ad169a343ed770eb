/* Replies from a scenario file, as the script provider. It is for demos, tests and rehearsals of a
 * workflow, and answers in the shapes of real backends, errors and delays included. */
#include "provider/provider.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "extract/tag.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/linediff.h"
#include "os/clock.h"
#include "os/fs.h"
#include "provider/agent/tool_summary.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct script_run {
  struct provider_run base;
  uv_timer_t timer;
  uv_idle_t pause; /* before the timer starts: see begin */
  bool pausing;
  int handles; /* not closed yet */
  const struct provider_env *env;
  const json_t *reply;           /* NULL: the scenario has no reply left */
  char mark[TAG_MARK_BYTES + 1]; /* of the question; "": none was asked */
  struct call_result result;
  struct provider_sink sink;
  bool finished;
  uint64_t wait_ms, started;
};

static json_t *script_prepare(const struct provider *self, const struct provider_env *env,
                              const struct call_request *request, const json_t *token_counts,
                              const unsigned char entropy[16]) {
  (void)self;
  (void)entropy;
  long index =
      env->scenario ? scenario_pick(env->scenario, request, token_counts, env->scenario_used) : -1;
  return index < 0 ? NULL : json_integer(index);
}

/* --- files --- */

/* Returns true if one of its parts is "..". The kernel refuses it too, but this says why. */
static bool has_parent(const char *path) {
  for (const char *at = path; at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
    if (str_eq_c((struct str){at, strcspn(at, "/")}, ".."))
      return true;
  return false;
}

/* Returns true if the path leads into git's folder: git runs what lies there. */
static bool enters_git(const char *path) {
  for (const char *at = path; at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
    if (strncasecmp(at, LIT(".git")) == 0 && (at[4] == '/' || at[4] == '\0'))
      return true;
  return false;
}

/* Makes the folders of a path. Each is opened beneath `dir` before anything is made in it: a link
 * may lead to a folder inside, none leads out. */
static bool make_parents(int dir, const char *path) {
  char part[1024];
  int folder = dir;
  if (strlen(path) >= sizeof part) {
    errno = ENAMETOOLONG;
    return false;
  }
  print_into(part, sizeof part, "%s", path);
  char *name = part;
  for (char *end = strchr(part, '/'); end && folder >= 0; end = strchr(name, '/')) {
    *end = '\0';
    int next = fs_open_folder_beneath(dir, part);
    if (next < 0 && errno == ENOENT && mkdirat(folder, name, 0755) == 0)
      next = fs_open_folder_beneath(dir, part);
    int number = errno;
    if (folder != dir)
      close(folder);
    errno = number;
    folder = next;
    *end = '/';
    name = end + 1;
  }
  if (folder >= 0 && folder != dir)
    close(folder);
  return folder >= 0;
}

static bool script_write_file(int dir, const char *path, struct str content, json_t *files,
                              struct err *err) {
  struct buf before = {0};
  long added, removed;
  if (path[0] == '/' || has_parent(path))
    return err_set(err, ERR_INVALID, "write: %s leaves the working directory", path);
  if (enters_git(path))
    return err_set(err, ERR_INVALID, "write: %s is git's own: scenarios do not write there", path);
  int fd = fs_open_beneath(dir, path, O_RDONLY);
  if (fd >= 0) {
    struct stat st;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (!ok) /* a pipe would block the whole loop */
      err_set(err, ERR_INVALID, "write: %s is not a regular file", path);
    ok = ok && file_read_fd(fd, path, LIMIT_SCENARIO_BYTES, &before, err);
    close(fd);
    if (!ok) {
      buf_deinit(&before);
      return false;
    }
  }
  linediff_count(buf_view(&before), content, &added, &removed);
  buf_deinit(&before);
  fd = make_parents(dir, path) ? fs_open_beneath(dir, path, O_WRONLY | O_CREAT | O_TRUNC) : -1;
  if (fd < 0 && errno == EXDEV)
    return err_set(err, ERR_INVALID, "write: %s leaves the working directory", path);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot write %s", path);
  bool ok = write(fd, content.p, content.n) == (ssize_t)content.n;
  fs_close(fd);
  if (!ok)
    return err_set_errno(err, errno, "cannot write %s", path);
  json_array_append_new(files, json_pack("{ss sI sI}", "path", path, "added", (json_int_t)added,
                                         "removed", (json_int_t)removed));
  return true;
}

static bool write_files(const struct provider_env *env, const json_t *write, json_t **files,
                        struct err *err) {
  if (write == NULL)
    return true;
  int dir = open(env->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return err_set_errno(err, errno, "cannot use the working directory %s", env->cwd);
  bool ok = true;
  *files = json_array();
  JSON_MEMBERS(write, path, content)
    if (ok)
      ok = script_write_file(dir, path, json_view(content), *files, err);
  close(dir);
  return ok;
}

/* --- replying --- */

/* Puts a text of the scenario, with the question's mark where it says {mark}, unless the reply says
 * `mark: false`. Where none was asked it says nothing, and the space before it goes too. */
static void script_put_text(const struct script_run *run, struct buf *out, struct str text) {
  const struct str here = STR("{mark}");
  const char *at;
  while (!json_is_false(json_at(run->reply, "mark")) &&
         (at = memmem(text.p, text.n, here.p, here.n)) != NULL) {
    size_t n = (size_t)(at - text.p);
    buf_append(out, text.p, n - (run->mark[0] == '\0' && n > 0 && at[-1] == ' '));
    buf_puts(out, run->mark);
    text = (struct str){at + here.n, text.n - n - here.n};
  }
  buf_str(out, text);
}

static void build_result(struct script_run *run) {
  struct call_result *result = &run->result;
  const json_t *error = json_at(run->reply, "error"), *text = json_at(run->reply, "text");
  const json_t *structured = json_at(run->reply, "structured");
  const char *session = json_string_value(json_at(run->reply, "provider_session"));
  struct err err;
  if (run->reply == NULL)
    return; /* reported at the start */
  if (session != NULL)
    print_into(result->provider_session, sizeof result->provider_session, "%s", session);
  if (text)
    script_put_text(run, &result->text.bytes, json_view(text));
  JSON_EACH(json_at(run->reply, "chunks"), i, chunk)
    script_put_text(run, &result->text.bytes, json_view(chunk));
  if (json_at(run->reply, "usage") != NULL)
    result->usage = json_clone_top(json_at(run->reply, "usage"));
  if (json_at(run->reply, "cost") != NULL) {
    if (result->usage == NULL)
      result->usage = json_object();
    json_object_set_new(result->usage, "cost_usd",
                        json_real(json_number_value(json_at(run->reply, "cost"))));
  }
  if (error != NULL) {
    const json_t *message = json_at(error, "message");
    const char *words = json_string_value(message);
    call_result_fail(result, CLASS_PROTOCOL, "%s", words ? words : "error of the scenario");
    (void)error_class_from_name(str_from(json_string_value(json_at(error, "class"))),
                                &result->class);
    result->retry_after_ms = json_integer_value(json_at(error, "retry_after_ms"));
    return;
  }
  if (!write_files(run->env, json_at(run->reply, "write"), &result->files, &err)) {
    call_result_fail(result, CLASS_BAD_REQUEST, "%s", err.text);
    return;
  }
  if (structured) {
    result->structured = json_incref((json_t *)structured);
    result->enforced = "native";
    if (result->text.bytes.n == 0) {
      char *dump = json_dump_text(structured, JSON_COMPACT | JSON_ENCODE_ANY);
      buf_puts(&result->text.bytes, dump);
      free(dump);
    }
  }
}

static void script_on_closed(uv_handle_t *handle) {
  struct script_run *run = handle->data;
  if (--run->handles == 0)
    free(run);
}

static void end_pause(struct script_run *run) {
  if (run->pausing)
    uv_close((uv_handle_t *)&run->pause, script_on_closed);
  run->pausing = false;
}

/* Reports the tools that the reply says were used, each from start to end. */
static void tell_tools(const struct script_run *run) {
  static const char *const states[] = {"start", "end"};
  JSON_EACH(json_at(run->reply, "tools"), i, name) {
    for (int k = 0; k < 2; k++) {
      const json_t *exit = json_at(name, "exit");
      const struct tool_summary tool = {
          .name = json_view(json_is_object(name) ? json_at(name, "name") : name),
          .state = states[k],
          .failed = k == 1 && json_integer_value(exit) != 0 ? 1 : -1,
          .input = k == 0 ? json_at(name, "argument") : NULL,
          .output = k == 1 ? json_at(name, "output") : NULL,
          .exit = k == 1 ? exit : NULL};
      provider_tell(&run->sink, NEWS_TOOL, STR(""), tool_summary_data(&tool));
    }
  }
}

static void script_on_timer(uv_timer_t *timer) {
  struct script_run *run = timer->data;
  if (run->result.class != CLASS_CANCELLED)
    build_result(run);
  struct call_result result = run->result;
  run->finished = true;
  result.duration_ms = (int64_t)(uv_now(run->env->loop) - run->started);
  end_pause(run);
  uv_close((uv_handle_t *)&run->timer, script_on_closed);
  run->sink.done(run->sink.ctx, &result);
}

/* Reports all pieces at once; the end of the answer comes after its delay. */
static void on_begin(uv_timer_t *timer) {
  struct script_run *run = timer->data;
  tell_tools(run);
  JSON_EACH(json_at(run->reply, "chunks"), i, chunk) {
    buf_auto_t text = {0};
    script_put_text(run, &text, json_view(chunk));
    provider_tell(&run->sink, NEWS_TEXT, buf_view(&text), NULL);
  }
  json_t *usage = json_at(run->reply, "usage_so_far");
  if (usage != NULL)
    provider_tell(&run->sink, NEWS_USAGE, STR(""), json_incref(usage));
  if (run->result.class != CLASS_CANCELLED) /* cancelled by whoever was told */
    uv_timer_start(&run->timer, script_on_timer, run->wait_ms, 0);
}

static void script_begin(struct script_run *run) {
  bool tells = json_at(run->reply, "chunks") != NULL || json_at(run->reply, "tools") != NULL ||
               json_at(run->reply, "usage_so_far") != NULL;
  uv_timer_start(&run->timer, tells ? on_begin : script_on_timer, tells ? 0 : run->wait_ms, 0);
}

static void on_pause(uv_idle_t *pause) {
  struct script_run *run = pause->data;
  end_pause(run);
  if (run->result.class != CLASS_CANCELLED) /* otherwise its timer is already running */
    script_begin(run);
}

static struct provider_run *script_start(const struct provider *self,
                                         const struct provider_env *env,
                                         const struct call_request *request,
                                         const struct provider_sink *sink) {
  assert(sink->done != NULL);
  struct script_run *run = xcalloc(1, sizeof *run);
  run->env = env;
  run->sink = *sink;
  run->started = uv_now(env->loop);
  print_into(run->mark, sizeof run->mark, "%.*s", (int)request->mark.n, request->mark.p);
  if (json_is_integer(request->token) && env->scenario)
    run->reply = json_array_get(env->scenario->replies, (size_t)json_integer_value(request->token));
  if (run->reply == NULL)
    print_into(
        run->result.message, sizeof run->result.message, "%s for movement %.*s, purpose %s%s%s",
        env->scenario ? "the scenario (--scenario) has no reply left" : "no --scenario was given",
        (int)request->movement.n, request->movement.p, call_purpose_name(request->purpose),
        request->stage == STAGE_COUNT ? "" : ", stage ",
        request->stage == STAGE_COUNT ? "" : judge_stage_name(request->stage));
  run->result.class = run->reply ? CLASS_NONE : CLASS_NOT_FOUND;
  json_int_t delay = json_integer_value(json_at(run->reply, "delay_ms"));
  uint64_t wait = delay > 0 ? (uint64_t)delay : 0;
  if (request->timeout_ms > 0 && wait > request->timeout_ms) {
    wait = request->timeout_ms;
    run->reply = NULL;
    call_result_fail(&run->result, CLASS_TIMEOUT, "no answer within the time limit");
  }
  uv_timer_init(env->loop, &run->timer);
  run->timer.data = run;
  run->handles = 1;
  run->wait_ms = wait;
  /* Timers have held the loop for too long. A timer without a delay that another
   * one starts runs before the loop looks at anything else: answers that take no time would keep it
   * from signals and sockets for as long as they last. */
  if (clock_mono_ms() > uv_now(env->loop) + LIMIT_LOOP_HOLD_MS) {
    uv_idle_init(env->loop, &run->pause);
    run->pause.data = run;
    run->handles++;
    run->pausing = true;
    uv_idle_start(&run->pause, on_pause);
  } else {
    script_begin(run);
  }
  run->base.provider = self;
  return &run->base;
}

static void script_cancel(struct provider_run *base) {
  struct script_run *run = (struct script_run *)base;
  assert(base->provider->ops->cancel == script_cancel);
  if (run->finished)
    return;
  call_result_fail(&run->result, CLASS_CANCELLED, "cancelled");
  uv_timer_start(&run->timer, script_on_timer, 0, 0);
}

static const struct provider_ops ops = {
    .prepare = script_prepare, .start = script_start, .cancel = script_cancel};

const struct provider provider_script = {
    .capability = {.name = "script",
                   .summary = "replies from a scenario file (--scenario), for demos and tests",
                   .options = OPTION_ALL,
                   .can_judge = true,
                   .takes_model = true,
                   .sessions = true,
                   .forks = true,
                   .structured = "native"},
    .ops = &ops};
