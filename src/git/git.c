/* Runs git's own program on a stand-in of the repository. */
#include "git/git.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "format/json_object.h"
#include "git/run.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/loop.h"
#include "os/orphans.h"
#include "os/sandbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How the process runs git; set before it does. */
static struct {
  git_confine confine;
  void (*configure)(bool filters);
  bool programs;
  json_t *sandbox;
} manner;

void git_confine_by(git_confine confine, void (*configure)(bool filters)) {
  manner.confine = confine;
  manner.configure = configure;
}

void git_now_as(bool programs, json_t *sandbox) {
  json_decref(manner.sandbox);
  manner.programs = programs;
  manner.sandbox = sandbox;
}

void git_begin(struct git *git, struct process_table *processes) {
  *git = (struct git){.processes = processes};
}

void git_deinit(struct git *git) {
  assert(git->process == NULL);
  *git = (struct git){0};
}

void git_ask_set(struct git_ask *ask, const char *folder, const char *const *words) {
  size_t n = 0;
  ask->folder = folder;
  for (; words[n] != NULL; n++) {
    assert(n + 1 < GIT_WORDS);
    ask->words[n] = words[n];
  }
  ask->words[n] = NULL;
}

void git_sign_as_nobody(struct git_ask *ask) {
  static const char *const nobody[] = {"GIT_AUTHOR_NAME=segue", "GIT_AUTHOR_EMAIL=segue@localhost",
                                       "GIT_COMMITTER_NAME=segue",
                                       "GIT_COMMITTER_EMAIL=segue@localhost"};
  memcpy(ask->extra, nobody, sizeof nobody);
}

/* --- the environment --- */

struct git_env {
  struct arena arena;
  const char **entries;
  size_t count, capacity, settings;
};

static void put_entry(struct git_env *env, const char *entry) {
  env->entries = xgrow(env->entries, &env->capacity, env->count + 2, sizeof *env->entries);
  env->entries[env->count++] = entry;
  env->entries[env->count] = NULL;
}

static void put_setting(struct git_env *env, const char *key, const char *value) {
  buf_auto_t text = buf_of("GIT_CONFIG_KEY_%zu=%s", env->settings, key);
  put_entry(env, arena_str(&env->arena, buf_view(&text)).p);
  buf_clear(&text);
  buf_printf(&text, "GIT_CONFIG_VALUE_%zu=%s", env->settings, value);
  put_entry(env, arena_str(&env->arena, buf_view(&text)).p);
  env->settings++;
}

/* These hold for what git starts in submodules, too. */
static void put_settings(struct git_env *env, const json_t *more, bool programs) {
  static const char *const settings[][2] = {
      {"gc.auto", "0"},
      {"maintenance.auto", "false"},
      {"core.quotePath", "false"},
      {"advice.detachedHead", "false"},
      /* without `programs` */
      {"core.hooksPath", "/dev/null"},
      {"core.fsmonitor", "false"},
      {"commit.gpgSign", "false"},
      {"submodule.recurse", "false"},
      {"diff.submodule", "short"},
      {"lfs.url", "file:///dev/null"}, /* what is not here stays a pointer */
  };
  buf_auto_t count = {0};
  for (size_t i = 0; i < (programs ? 4 : ARRAY_LEN(settings)); i++)
    put_setting(env, settings[i][0], settings[i][1]);
  JSON_EACH(more, i, entry)
    put_setting(env, json_string_value(json_array_get(entry, 0)),
                json_string_value(json_array_get(entry, 1)));
  buf_printf(&count, "GIT_CONFIG_COUNT=%zu", env->settings);
  put_entry(env, arena_str(&env->arena, buf_view(&count)).p);
}

/* An entry replaces those before it. */
static const char *const *git_environment(struct git_env *env, const struct git *git,
                                          const struct git_ask *ask, struct err *err) {
  /* where the user's own configuration is, for git as for the user's own git */
  static const char *const copied[] = {"XDG_CONFIG_HOME",     "SSH_AUTH_SOCK",
                                       "GIT_CONFIG_GLOBAL",   "GIT_CONFIG_SYSTEM",
                                       "GIT_CONFIG_NOSYSTEM", NULL};
  static const char *const fixed[] = {
      "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true",     "SSH_ASKPASS=true", "GIT_PAGER=cat",
      "GIT_EDITOR=false",      "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C.UTF-8"};
  static const char *const closed[] = {"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
                                       "GIT_LFS_SKIP_DOWNLOAD_ERRORS=1", "GIT_ALLOW_PROTOCOL=none"};
  /* git refuses by itself what a submodule's address must not be. */
  size_t n = ARRAY_LEN(closed) - (!ask->other && strcmp(ask->words[0], "submodule") == 0);
  for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
    put_entry(env, fixed[i]);
  for (size_t i = 0; i < n && git->stand_in != NULL; i++)
    put_entry(env, closed[i]);
  for (size_t i = 0; git->stand_in != NULL && git->stand_in->env[i] != NULL; i++)
    put_entry(env, git->stand_in->env[i]);
  for (size_t i = 0; ask->extra[i] != NULL; i++)
    put_entry(env, ask->extra[i]);
  put_settings(env, ask->settings, git->programs);
  return process_env_build(&env->arena, NULL, ask->pass ? ask->pass : copied, env->entries, err);
}

/* --- asking --- */

static void git_on_end(void *ctx, struct process_result *result) {
  struct git *git = ctx;
  AUTO(git_answer_deinit) struct git_answer answer = {.exit = result->exit_code};
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
  if (git->stand_in != NULL && git->stand_in->folder != NULL) /* else it has contents of files */
    stand_in_unmask(git->stand_in, &answer.out);
  stand_in_unmask(git->stand_in, &answer.err);
  stand_in_give(git->stand_in);
  git->stand_in = NULL;
  git->done(git->ctx, &answer);
}

/* Returns true if these words write nothing but the index. */
static bool only_reads(const struct git_ask *ask) {
  return !ask->other &&
         str_among(str_from(ask->words[0]),
                   "rev-parse rev-list log show diff status ls-files ls-tree cat-file merge-base "
                   "for-each-ref show-ref check-ignore check-attr config remote name-rev patch-id "
                   "reflog");
}

/* --- what holds filters --- */

static bool has_filters(const char *folder, const char *name) {
  buf_auto_t path = buf_of("%s%s", folder, name), text = {0};
  struct err none;
  bool read = file_read(buf_c(&path), LIMIT_REPO_CONFIG_BYTES, &text, &none);
  bool found = strcasestr(buf_c(&text), "filter") != NULL || strcasestr(buf_c(&text), "include");
  found |= !read && access(buf_c(&path), F_OK) == 0;
  return found;
}

/* Returns true if the user's own configuration may name a filter. Looks once. */
static bool user_has_filters(void) {
  static const char *const files[][2] = {{"GIT_CONFIG_GLOBAL", ""},
                                         {"GIT_CONFIG_SYSTEM", ""},
                                         {"HOME", "/.gitconfig"},
                                         {"HOME", "/.config/git/config"},
                                         {"XDG_CONFIG_HOME", "/git/config"}};
  static enum { UNKNOWN, NONE, SOME } known;
  bool found = known == UNKNOWN && has_filters("/etc/gitconfig", "");
  for (size_t i = 0; known == UNKNOWN && !found && i < ARRAY_LEN(files); i++) {
    const char *value = getenv(files[i][0]);
    found = value != NULL && has_filters(value, files[i][1]);
  }
  if (known == UNKNOWN)
    known = found ? SOME : NONE;
  return known == SOME;
}

/* Makes what holds this run of git, if it may run a filter; NULL: nothing, or err says why not. */
static struct sandbox *hold_filters(const struct git *git, const struct git_ask *ask,
                                    struct err *err) {
  const struct stand_in *s = git->stand_in;
  *err = (struct err){0};
  if (git->sandbox == NULL || manner.confine == NULL || git->programs || ask->other || s == NULL ||
      s->folder == NULL || !user_has_filters() ||
      !str_among(str_from(ask->words[0]),
                 "add status diff reset checkout merge commit stash read-tree update-index"))
    return NULL;
  buf_auto_t common = {0}, index = {0};
  const char *writes[ARRAY_LEN(s->env) + 3];
  size_t n = 0;
  for (size_t i = 0; s->env[i] != NULL; i++)
    writes[n++] = strchr(s->env[i], '=') + 1;
  buf_printf(&common, "%s/.git", buf_c(&s->real));
  writes[n++] = access(buf_c(&common), F_OK) == 0 ? buf_c(&common) : buf_c(&s->real);
  for (size_t i = 0; ask->extra[i] != NULL; i++)
    if (str_starts(str_from(ask->extra[i]), "GIT_INDEX_FILE=")) /* its folder: git makes a lock */
      buf_set(&index, str_from(strchr(ask->extra[i], '=') + 1));
  if (index.n > 0) {
    *strrchr(index.p, '/') = '\0';
    writes[n++] = index.p;
  }
  writes[n] = NULL;
  struct sandbox *held = manner.confine(git->sandbox, ask->folder, writes, err);
  return held;
}

bool git_ask(struct git *git, const struct git_ask *ask, git_done done, void *ctx,
             struct err *err) {
  const char *argv[GIT_WORDS + 2];
  size_t n = 0;
  struct git_env env = {0};
  assert(git->process == NULL);
  if (!ask->other)
    argv[n++] = "git";
  for (size_t i = 0; ask->words[i] != NULL; i++) {
    argv[n++] = ask->words[i];
    if (i == 0 && !ask->other && !git->programs && str_among(str_from(argv[1]), "diff status"))
      argv[n++] = "--ignore-submodules=dirty";
  }
  argv[n] = NULL;
  if (!git->programs && (git->stand_in = stand_in_take(ask->folder, !only_reads(ask), err)) == NULL)
    return false;
  struct sandbox *held = hold_filters(git, ask, err);
  bool may = held != NULL || err->code == ERR_NONE;
  const char *const *envp = may ? git_environment(&env, git, ask, err) : NULL;
  const struct process_spec spec = {.argv = argv,
                                    .cwd = ask->folder,
                                    .envp = envp,
                                    .stdin_bytes = ask->input.p,
                                    .stdin_n = ask->input.n,
                                    .stdout_max = LIMIT_TREE_LIST_BYTES,
                                    .sandbox = held,
                                    .wall_ms = LIMIT_GIT_MS};
  git->done = done;
  git->ctx = ctx;
  if (envp != NULL)
    git->process = process_start(git->processes, &spec, NULL, git_on_end, git, err);
  arena_deinit(&env.arena);
  free(env.entries);
  sandbox_free(held);
  if (git->process == NULL) {
    stand_in_give(git->stand_in);
    git->stand_in = NULL;
  }
  return git->process != NULL;
}

void git_cancel(struct git *git) {
  if (git->process != NULL)
    process_cancel(git->process);
}

void git_answer_deinit(struct git_answer *answer) {
  buf_deinit(&answer->out);
  buf_deinit(&answer->err);
}

/* Says of a lock that was in git's way how old it is, and whether somebody holds it. */
static bool tell_lock(const struct git_answer *answer, struct buf *out) {
  static const char before[] = "Unable to create '", after[] = ".lock': File exists";
  static const struct {
    long seconds;
    const char *name;
  } units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  const char *at = strstr(buf_c(&answer->err), before), *end = at ? strstr(at, after) : NULL;
  buf_auto_t path = {0};
  struct stat st;
  size_t unit = 0;
  if (end == NULL)
    return false;
  at += strlen(before);
  buf_append(&path, at, (size_t)(end + strlen(".lock") - at));
  buf_printf(out, "%s is in the way", buf_c(&path));
  if (lstat(buf_c(&path), &st) == 0) {
    long age_s = (long)(clock_real_ms() / 1000 - st.st_mtime), pid = fs_holder(buf_c(&path));
    while (unit + 1 < ARRAY_LEN(units) && age_s < 2 * units[unit].seconds)
      unit++;
    buf_printf(out, " and %ld %s old: ", age_s / units[unit].seconds, units[unit].name);
    if (pid > 0)
      buf_printf(out, "process %ld holds it, wait for its end", pid);
    else
      buf_puts(out, "nobody holds it, so if no git is at work there, remove it");
  }
  return true;
}

void git_complaint(const struct git_answer *answer, struct buf *out) {
  static const char *const heads[] = {"fatal: ", "error: "};
  struct str rest = buf_view(&answer->err), line = str_trim(str_next_line(&rest));
  for (size_t i = 0; i < ARRAY_LEN(heads); i++)
    if (str_starts(line, heads[i]))
      line = (struct str){line.p + strlen(heads[i]), line.n - strlen(heads[i])};
  if (tell_lock(answer, out))
    return;
  if (line.n == 0 && answer->ran)
    buf_printf(out, "git exited with %d", answer->exit);
  else
    buf_str(out, line);
}

void git_drop_lock(const char *folder, const char *name) {
  buf_auto_t lock = {0};
  buf_printf(&lock, "%s/%s.lock", folder, name);
  (void)unlink(buf_c(&lock));
}

void git_drop_dead_lock(const char *folder, const char *common, const char *ref) {
  struct stat st;
  buf_auto_t lock = buf_of("%s/%s.lock", common, ref);
  if (lstat(buf_c(&lock), &st) == 0 && !orphan_at_work(folder, GIT_PROGRAM, &st))
    (void)unlink(buf_c(&lock));
}

/* --- without a loop --- */

static void now_done(void *ctx, struct git_answer *answer) {
  struct git_answer *kept = ctx;
  *kept = *answer;
  *answer = (struct git_answer){0};
}

git_waits git_now_instead;

bool git_now(const struct git_ask *ask, struct git_answer *answer, struct err *err) {
  uv_loop_t loop;
  struct git git;
  *answer = (struct git_answer){0};
  if (git_now_instead != NULL)
    return git_now_instead(ask, answer, err);
  if (manner.configure != NULL)
    manner.configure(user_has_filters());
  manner.configure = NULL;
  if (!loop_init(&loop, err))
    return false;
  struct process_table *processes = process_table_new(&loop, err);
  git_begin(&git, processes);
  git.programs = manner.programs;
  git.sandbox = manner.sandbox;
  bool ok = processes != NULL && git_ask(&git, ask, now_done, answer, err);
  if (ok)
    uv_run(&loop, UV_RUN_DEFAULT);
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
