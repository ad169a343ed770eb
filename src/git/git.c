/* Runs git's own program, without anything in a repository's configuration that would run
 * another. */
#include "git/git.h"

#include "base/limits.h"
#include "git/serve.h"
#include "os/loop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void git_begin(struct git *git, struct process_table *processes) {
  *git = (struct git){.processes = processes};
}

void git_deinit(struct git *git) {
  assert(git->process == NULL);
  json_decref(git->drivers);
  *git = (struct git){0};
}

/* --- the environment --- */

struct git_env {
  struct arena arena;
  const char *entries[5 * LIMIT_GIT_DRIVER_COUNT];
  size_t count, settings;
};

/* Adds an entry to the environment. Takes the text. */
static void git_put(struct git_env *env, struct buf *text) {
  assert(env->count + 1 < ARRAY_LEN(env->entries));
  env->entries[env->count++] = arena_str(&env->arena, buf_view(text)).p;
  buf_deinit(text);
}

static void put_setting(struct git_env *env, const char *key, const char *value) {
  struct buf text = {0};
  buf_printf(&text, "GIT_CONFIG_KEY_%zu=%s", env->settings, key);
  git_put(env, &text);
  buf_printf(&text, "GIT_CONFIG_VALUE_%zu=%s", env->settings, value);
  git_put(env, &text);
  env->settings++;
}

static bool git_ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* Returns what replaces a setting: git's own merge for a merge driver, nothing for a filter. */
static const char *instead_of(const char *key) {
  if (git_ends_with(key, ".driver"))
    return "git merge-file --marker-size=%L %A %O %B";
  return git_ends_with(key, ".required") ? "false" : "";
}

static void put_settings(struct git_env *env, const struct git *git, const struct git_ask *ask) {
  static const char *const always[][2] = {{"gc.auto", "0"},
                                          {"maintenance.auto", "false"},
                                          {"core.quotePath", "false"},
                                          {"advice.detachedHead", "false"}};
  static const char *const quiet[][2] = {
      {"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"commit.gpgSign", "false"}};
  size_t i;
  const json_t *key;
  for (i = 0; i < ARRAY_LEN(always); i++)
    put_setting(env, always[i][0], always[i][1]);
  for (i = 0; !git->programs && i < ARRAY_LEN(quiet); i++)
    put_setting(env, quiet[i][0], quiet[i][1]);
  json_array_foreach(git->drivers, i, key) {
    put_setting(env, json_string_value(key), instead_of(json_string_value(key)));
  }
  json_array_foreach((json_t *)ask->settings, i, key) {
    put_setting(env, json_string_value(json_array_get(key, 0)),
                json_string_value(json_array_get(key, 1)));
  }
}

static const char *const *git_environment(struct git_env *env, const struct git *git,
                                          const struct git_ask *ask, struct err *err) {
  static const char *const copied[] = {"XDG_CONFIG_HOME", "SSH_AUTH_SOCK", NULL};
  static const char *const fixed[] = {
      "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true",     "SSH_ASKPASS=true", "GIT_PAGER=cat",
      "GIT_EDITOR=false",      "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C.UTF-8"};
  struct buf count = {0};
  for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
    env->entries[env->count++] = fixed[i];
  for (size_t i = 0; ask->extra[i] != NULL; i++)
    env->entries[env->count++] = ask->extra[i];
  put_settings(env, git, ask);
  buf_printf(&count, "GIT_CONFIG_COUNT=%zu", env->settings);
  git_put(env, &count);
  env->entries[env->count] = NULL;
  return process_env_build(&env->arena, NULL, ask->pass ? ask->pass : copied, env->entries, err);
}

/* --- asking --- */

static void git_on_end(void *ctx, struct process_result *result) {
  struct git *git = ctx;
  struct git_answer answer = {.exit = result->exit_code};
  git->process = NULL;
  answer.ran = result->why == PROCESS_END_EXITED && result->exit_code >= 0;
  if (result->why == PROCESS_END_EXEC_FAILED)
    buf_puts(&answer.err, "git is not installed, or not in PATH");
  else if (!answer.ran)
    buf_printf(&answer.err, "git was ended: %s", process_end_name(result->why));
  else
    buf_str(&answer.err, str_trim(buf_view(&result->err)));
  answer.out = result->out;
  result->out = (struct buf){0};
  git->done(git->ctx, &answer);
  git_answer_deinit(&answer);
}

bool git_ask(struct git *git, const struct git_ask *ask, git_done done, void *ctx,
             struct err *err) {
  const char *argv[GIT_WORDS + 1];
  size_t n = 0;
  struct git_env env = {0};
  assert(git->process == NULL);
  if (!ask->other)
    argv[n++] = "git";
  for (size_t i = 0; ask->words[i] != NULL; i++)
    argv[n++] = ask->words[i];
  argv[n] = NULL;
  const char *const *envp = git_environment(&env, git, ask, err);
  const struct process_spec spec = {.argv = argv,
                                    .cwd = ask->folder,
                                    .envp = envp,
                                    .stdin_bytes = ask->input.p,
                                    .stdin_n = ask->input.n,
                                    .stdout_max = LIMIT_TREE_LIST_BYTES,
                                    .wall_ms = LIMIT_GIT_MS};
  git->done = done;
  git->ctx = ctx;
  if (envp != NULL)
    git->process = process_start(git->processes, &spec, NULL, git_on_end, git, err);
  arena_deinit(&env.arena);
  return git->process != NULL;
}

void git_cancel(struct git *git) {
  if (git->process != NULL)
    process_cancel(git->process);
}

void git_take_drivers(struct git *git, const struct git_answer *answer) {
  json_decref(git->drivers);
  git->drivers = json_array();
  for (size_t at = 0; at < answer->out.n;) {
    const char *key = answer->out.p + at;
    size_t n = strnlen(key, answer->out.n - at);
    json_t *name = json_stringn(key, n); /* NULL: it is not UTF-8 */
    if (name != NULL && json_array_size(git->drivers) < LIMIT_GIT_DRIVER_COUNT)
      json_array_append_new(git->drivers, name);
    else
      json_decref(name);
    at += n + 1;
  }
}

void git_answer_deinit(struct git_answer *answer) {
  buf_deinit(&answer->out);
  buf_deinit(&answer->err);
}

void git_complaint(const struct git_answer *answer, struct buf *out) {
  static const char *const heads[] = {"fatal: ", "error: "};
  struct str rest = buf_view(&answer->err), line = str_trim(str_next_line(&rest));
  for (size_t i = 0; i < ARRAY_LEN(heads); i++)
    if (str_starts(line, heads[i]))
      line = (struct str){line.p + strlen(heads[i]), line.n - strlen(heads[i])};
  if (line.n == 0 && answer->ran)
    buf_printf(out, "git exited with %d", answer->exit);
  else
    buf_str(out, line);
}

void git_drop_lock(const char *folder, const char *name) {
  struct buf lock = {0};
  buf_printf(&lock, "%s/%s.lock", folder, name);
  (void)unlink(buf_c(&lock));
  buf_deinit(&lock);
}

/* --- without a loop --- */

static void now_done(void *ctx, struct git_answer *answer) {
  struct git_answer *kept = ctx;
  *kept = *answer;
  *answer = (struct git_answer){0};
}

static bool now_step(struct git *git, uv_loop_t *loop, const struct git_ask *ask,
                     struct git_answer *answer, struct err *err) {
  *answer = (struct git_answer){0};
  if (!git_ask(git, ask, now_done, answer, err))
    return false;
  uv_run(loop, UV_RUN_DEFAULT);
  return true;
}

bool git_now(const struct git_ask *ask, struct git_answer *answer, struct err *err) {
  const struct git_ask drivers = {.folder = ask->folder, .words = {GIT_DRIVERS}};
  uv_loop_t loop;
  struct git git;
  *answer = (struct git_answer){0};
  if (git_is_served())
    return git_served(ask, answer, err);
  if (!loop_init(&loop, err))
    return false;
  struct process_table *processes = process_table_new(&loop, err);
  bool ok = processes != NULL;
  git_begin(&git, processes);
  if (ok && !ask->other) {
    ok = now_step(&git, &loop, &drivers, answer, err);
    git_take_drivers(&git, answer);
    git_answer_deinit(answer);
  }
  ok = ok && now_step(&git, &loop, ask, answer, err);
  git_deinit(&git);
  process_table_free(processes);
  uv_run(&loop, UV_RUN_DEFAULT);
  int left = uv_loop_close(&loop);
  assert(left == 0);
  (void)left;
  if (ok && !answer->ran) {
    ok = err_set(err, ERR_IO, "%.400s", buf_c(&answer->err));
    git_answer_deinit(answer);
    *answer = (struct git_answer){0};
  }
  return ok;
}
