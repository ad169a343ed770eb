/* Builds the environment of a program from nothing. */
#include "os/process.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

struct env {
  struct arena *arena;
  const char **entries;
  size_t count;
};

void process_search_path(const char *given, struct buf *out) {
  struct str rest = str_from(given);
  buf_clear(out);
  while (rest.n > 0) {
    const char *colon = memchr(rest.p, ':', rest.n);
    struct str part = {rest.p, colon ? (size_t)(colon - rest.p) : rest.n};
    if (str_starts(part, "/"))
      buf_printf(out, "%s" STR_FMT, out->n > 0 ? ":" : "", STR_ARG(part));
    rest = colon ? (struct str){colon + 1, rest.n - part.n - 1} : (struct str){NULL, 0};
  }
  if (out->n == 0)
    buf_puts(out, "/usr/local/bin:/usr/bin:/bin");
}

static void env_put(struct env *env, const char *name, size_t name_n, const char *value) {
  struct buf path = {0};
  if (str_eq_c((struct str){name, name_n}, "PATH")) {
    process_search_path(value, &path);
    value = buf_c(&path);
  }
  size_t value_n = strlen(value);
  char *entry = arena_alloc(env->arena, name_n + 1 + value_n + 1);
  memcpy(entry, name, name_n);
  entry[name_n] = '=';
  memcpy(entry + name_n + 1, value, value_n + 1);
  size_t i = 0;
  while (i < env->count && strncmp(env->entries[i], entry, name_n + 1) != 0)
    i++;
  env->entries[i] = entry;
  env->count = i < env->count ? env->count : env->count + 1;
  buf_deinit(&path);
}

static void env_copy(struct env *env, const char *name, const char *otherwise) {
  const char *value = getenv(name);
  if (value == NULL)
    value = otherwise;
  if (value != NULL)
    env_put(env, name, strlen(name), value);
}

/* Returns true for variables meant for us, not for a child: our settings, the service manager's
 * sockets. */
static bool env_is_ours(const char *name) {
  static const char *const ours[] = {"NOTIFY_SOCKET",  "LISTEN_PID",    "LISTEN_FDS",
                                     "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID"};
  for (size_t i = 0; i < ARRAY_LEN(ours); i++)
    if (strcmp(name, ours[i]) == 0)
      return true;
  return strncmp(name, "SEGUE_", strlen("SEGUE_")) == 0;
}

static size_t list_count(const char *const *list) {
  size_t n = 0;
  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

const char *const *process_env_build(struct arena *a, const char *tmpdir,
                                     const char *const *extra_names, const char *const *assignments,
                                     struct err *err) {
  static const char *const base[] = {"HOME", "USER",   "LOGNAME",  "SHELL",
                                     "LANG", "LC_ALL", "LC_CTYPE", "TZ"};
  size_t extra_count = list_count(extra_names), assignment_count = list_count(assignments);
  struct env env = {.arena = a};
  env.entries =
      arena_array(a, ARRAY_LEN(base) + 3 + extra_count + assignment_count + 1, sizeof *env.entries);
  env_copy(&env, "PATH", "");
  for (size_t i = 0; i < ARRAY_LEN(base); i++)
    env_copy(&env, base[i], NULL);
  env_put(&env, "TERM", strlen("TERM"), "dumb");
  if (tmpdir != NULL)
    env_put(&env, "TMPDIR", strlen("TMPDIR"), tmpdir);
  for (size_t i = 0; i < extra_count; i++) {
    if (extra_names[i][0] == '\0' || strchr(extra_names[i], '=') != NULL) {
      (void)err_set(err, ERR_INVALID, "'%s' is not the name of an environment variable",
                    extra_names[i]);
      return NULL;
    }
    if (!env_is_ours(extra_names[i]))
      env_copy(&env, extra_names[i], NULL);
  }
  for (size_t i = 0; i < assignment_count; i++) {
    const char *equals = strchr(assignments[i], '=');
    if (equals == NULL || equals == assignments[i]) {
      (void)err_set(err, ERR_INVALID, "'%s' is not an assignment: write NAME=value",
                    assignments[i]);
      return NULL;
    }
    env_put(&env, assignments[i], (size_t)(equals - assignments[i]), equals + 1);
  }
  return env.entries;
}
