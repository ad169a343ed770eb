/* Turns a plan into the command line of podman or docker. */
#include "os/sandbox_container.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/process_internal.h"
#include "os/sandbox_internal.h"
#include "shim/protocol.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const char *const sandbox_engines[] = {SANDBOX_PODMAN, SANDBOX_DOCKER, NULL};

enum {
  WORDS_BYTES = 300,
  NPROC_MOST = 32768, /* podman limits itself to that and cannot give more */
};

struct volume {
  char *path;
  bool written;
};

struct containing {
  const struct sandbox_container *spec;
  struct arena *arena;
  struct arena_list words;
  const char **envp; /* NULL-ended */
  size_t envp_count;
  struct volume *volumes;
  size_t volume_count, volume_room;
  const char *odd; /* a path that cannot be mounted; or NULL */
};

static bool engine_look(const char *name, char *path, size_t size) {
  static const char *const places[] = {"/usr/bin", "/bin", "/usr/local/bin"};
  for (size_t i = 0; i < ARRAY_LEN(places); i++)
    if (snprintf(path, size, "%s/%s", places[i], name) < (int)size && access(path, X_OK) == 0)
      return true;
  return false;
}

bool sandbox_find_engine(const char *name, char *path, size_t size) {
  static _Thread_local struct {
    uint64_t until_ms;
    bool found;
    char path[64];
  } last[ARRAY_LEN(sandbox_engines)]; /* looked up for each session that is submitted */
  for (size_t i = 0; sandbox_engines[i] != NULL; i++) {
    if (strcmp(name, sandbox_engines[i]) != 0)
      continue;
    if (clock_mono_ms() >= last[i].until_ms) {
      last[i].found = engine_look(name, last[i].path, sizeof last[i].path);
      last[i].until_ms = clock_mono_ms() + LIMIT_LOOK_UP_MS;
    }
    return last[i].found && snprintf(path, size, "%s", last[i].path) < (int)size;
  }
  return engine_look(name, path, size);
}

/* docker's very last lines only lead to its manual. */
struct str sandbox_engine_words(struct str errors) {
  struct str words = STR("");
  while (errors.n > 0) {
    struct str line = str_trim(str_next_line(&errors));
    if (line.n > 0 && !str_starts(line, "Run '") && !str_starts(line, "See '"))
      words = line;
  }
  if (words.n > WORDS_BYTES)
    words.n = utf8_floor(words.p, WORDS_BYTES);
  return words;
}

static void engine_say(struct containing *c, const char *text) {
  arena_list_add(c->arena, &c->words, str_from(text));
}

static void engine_say_two(struct containing *c, const char *option, const char *value) {
  engine_say(c, option);
  engine_say(c, value);
}

/* --- what is mounted --- */

static void volume_put(struct containing *c, const char *path, bool written) {
  char real[PATH_MAX];
  if (realpath(path, real) == NULL || strncmp(real, LIT("/dev")) == 0 ||
      strncmp(real, LIT("/proc")) == 0 || strcmp(real, "/") == 0)
    return;
  c->volumes = xgrow(c->volumes, &c->volume_room, c->volume_count + 1, sizeof *c->volumes);
  c->volumes[c->volume_count++] = (struct volume){arena_strdup(c->arena, real), written};
}

static void volume_put_all(struct containing *c, const char *const *paths, bool written) {
  for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
    volume_put(c, paths[i], written);
}

/* Says what is mounted. The last entry of a path counts; within a folder mounted the same way it is
 * not needed. */
static void say_volumes(struct containing *c) {
  /* Folders come before their contents; entries of one path keep their order. */
  for (size_t i = 1; i < c->volume_count; i++) {
    struct volume one = c->volumes[i];
    size_t k = i;
    for (; k > 0 && strcmp(c->volumes[k - 1].path, one.path) > 0; k--)
      c->volumes[k] = c->volumes[k - 1];
    c->volumes[k] = one;
  }
  for (size_t i = 0; i < c->volume_count; i++) {
    const struct volume *v = &c->volumes[i];
    struct buf text = {0};
    if (i + 1 < c->volume_count && strcmp(v->path, v[1].path) == 0)
      continue;
    if (strpbrk(v->path, ",\"\n") != NULL) /* these separate the option's parts */
      c->odd = v->path;
    buf_printf(&text, "type=bind,source=%s,destination=%s%s", v->path, v->path,
               v->written ? "" : ",readonly");
    engine_say_two(c, "--mount", buf_c(&text));
    buf_deinit(&text);
  }
}

/* --- variables --- */

static const char *variable_name(const char *assignment, size_t *n) {
  *n = strcspn(assignment, "=");
  return assignment;
}

static bool variable_is_in(const char *assignment, const char *const *names) {
  size_t n;
  const char *name = variable_name(assignment, &n);
  for (size_t i = 0; names[i] != NULL; i++)
    if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
      return true;
  return false;
}

/* Passes variables by name only: their values must not show in a list of processes. The image has a
 * PATH of its own. */
static void say_variables(struct containing *c) {
  static const char *const machine[] = {"PATH", "SHELL", "USER", "LOGNAME", NULL};
  static const char *const engine[] = {/* where podman and docker keep things */
                                       "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
                                       "XDG_CACHE_HOME", "DBUS_SESSION_BUS_ADDRESS",
                                       /* their own */
                                       "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
                                       "STORAGE_DRIVER", "DOCKER_HOST", "DOCKER_CONFIG",
                                       "DOCKER_CONTEXT", NULL};
  const char *const *envp = c->spec->envp;
  size_t n, count = str_count(envp);
  c->envp = arena_array(c->arena, count + ARRAY_LEN(engine) + 2, sizeof *c->envp);
  for (size_t i = 0; i < count; i++) {
    char name[256];
    (void)variable_name(envp[i], &n);
    c->envp[c->envp_count++] = arena_strdup(c->arena, envp[i]);
    if (!variable_is_in(envp[i], machine) && n < sizeof name) {
      print_into(name, sizeof name, "%.*s", (int)n, envp[i]);
      engine_say_two(c, "--env", name);
    }
  }
  for (size_t i = 0; engine[i] != NULL; i++) {
    const char *value = getenv(engine[i]), *const one[] = {engine[i], NULL};
    bool there = value == NULL;
    for (size_t k = 0; !there && k < count; k++)
      there = variable_is_in(envp[k], one);
    struct buf text = {0};
    buf_printf(&text, "%s=%s", engine[i], value ? value : "");
    if (!there)
      c->envp[c->envp_count++] = arena_strdup(c->arena, buf_c(&text));
    buf_deinit(&text);
  }
}

/* --- who --- */

/* Returns true if podman may give this user more numbers, so that it can keep its own inside. */
static bool has_more_numbers(void) {
  const struct passwd *user = getpwuid(geteuid());
  char number[16], line[256];
  bool found = false;
  FILE *file = fopen("/etc/subuid", "re");
  print_into(number, sizeof number, "%u", (unsigned)geteuid());
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, ":")] = '\0';
    found = strcmp(line, number) == 0 || (user != NULL && strcmp(line, user->pw_name) == 0);
  }
  if (file != NULL)
    (void)fclose(file);
  return found;
}

/* Chooses the user inside, so that files made in the workspace belong to the user, as without a
 * container: either under the same number, or as root of a namespace where that means the user. */
static void say_user(struct containing *c, bool podman) {
  char text[48];
  if (podman && geteuid() != 0) {
    if (has_more_numbers())
      engine_say_two(c, "--userns", "keep-id");
    return;
  }
  print_into(text, sizeof text, "%u:%u", (unsigned)geteuid(), (unsigned)getegid());
  engine_say_two(c, "--user", text);
}

static void say_limit(struct containing *c, const char *name, __rlimit_resource_t what,
                      rlim_t most) {
  struct rlimit now;
  char text[80];
  if (getrlimit(what, &now) != 0)
    return;
  rlim_t hard = now.rlim_max < most ? now.rlim_max : most;
  rlim_t soft = now.rlim_cur < hard ? now.rlim_cur : hard;
  print_into(text, sizeof text, "%s=%llu:%llu", name, (unsigned long long)soft,
             (unsigned long long)hard);
  engine_say_two(c, "--ulimit", text);
}

/* Says the limits, which are up to docker's daemon. podman's processes are ours: a control group
 * limits them like others. Without one the limits begin inside, since podman itself would not start
 * with what a small program may use. */
static void say_limits(struct containing *c, bool podman) {
  const struct process_limits *limits = &c->spec->limits;
  char text[48];
  if (podman) {
    rlim_t tasks = limits->pids + process_threads_of_user();
    bool born = !limits->by_group;
    say_limit(c, "nofile", RLIMIT_NOFILE, RLIM_INFINITY);
    say_limit(c, "nproc", RLIMIT_NPROC, born && limits->pids > 0 ? tasks : NPROC_MOST);
    if (born && limits->memory_bytes > 0)
      say_limit(c, "data", RLIMIT_DATA, limits->memory_bytes);
    return;
  }
  if (limits->memory_bytes > 0) {
    print_into(text, sizeof text, "%llu", (unsigned long long)limits->memory_bytes);
    engine_say_two(c, "--memory", text);
    engine_say_two(c, "--memory-swap", text);
  }
  if (limits->milli_cpus > 0) {
    print_into(text, sizeof text, "%u.%03u", limits->milli_cpus / 1000, limits->milli_cpus % 1000);
    engine_say_two(c, "--cpus", text);
  }
  if (limits->pids > 0) {
    print_into(text, sizeof text, "%u", limits->pids);
    engine_say_two(c, "--pids-limit", text);
  }
}

/* --- the whole line --- */

static void name_container(struct containing *c) {
  static unsigned started;
  char name[160];
  const char *own = c->spec->plan->own ? strrchr(c->spec->plan->own, '/') : NULL;
  print_into(name, sizeof name, SHIM_CONTAINER "=%.100s-%ld-%u", own ? own + 1 : "segue",
             (long)getpid(), ++started);
  c->envp[c->envp_count++] = arena_strdup(c->arena, name);
  c->envp[c->envp_count] = NULL;
  engine_say_two(c, "--name", name + sizeof SHIM_CONTAINER);
}

static void put_volumes(struct containing *c, const char *shim) {
  const struct sandbox_plan *plan = c->spec->plan;
  volume_put_all(c, plan->wholes, false);
  volume_put_all(c, plan->writes, true);
  volume_put_all(c, plan->kept, false);
  if (plan->own != NULL)
    volume_put(c, plan->own, true);
  if (plan->way_out != NULL)
    volume_put(c, shim, false);
  say_volumes(c);
}

struct sandbox *sandbox_container_new(const struct sandbox_container *spec, struct err *err) {
  const bool podman = strcmp(spec->engine, SANDBOX_PODMAN) == 0;
  struct containing c = {.spec = spec};
  char path[PATH_MAX], shim[PATH_MAX];
  if (!sandbox_find_engine(spec->engine, path, sizeof path)) {
    err_set(err, ERR_NOT_FOUND, "%s is not installed: it was not started", spec->engine);
    return NULL;
  }
  if (!process_find_shim(shim, sizeof shim, err))
    return NULL;
  struct sandbox *s = sandbox_without_rules(SHIM_CONTAINED);
  c.arena = &s->arena;
  static const char *const always[] = {/* it is there already, and goes when it has ended */
                                       "run", "--rm", "--interactive", "--pull", "never", "--init",
                                       /* and gives nobody more rights */
                                       "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
                                       "--security-opt", "label=disable"};
  engine_say(&c, path);
  for (size_t i = 0; i < ARRAY_LEN(always); i++)
    if (strcmp(always[i], "--init") != 0 || !podman) /* podman's init is a package of its own */
      engine_say(&c, always[i]);
  if (podman) {
    engine_say_two(&c, "--cgroups", "disabled"); /* they stay in the call's own group */
    /* Its programs write to our pipes themselves: what podman passes on can lack all of a short
     * program's output (4.3: one of 160). */
    engine_say_two(&c, "--log-driver", "passthrough");
  }
  engine_say_two(&c, "--network", spec->plan->no_internet ? "none" : "host");
  say_user(&c, podman);
  say_limits(&c, podman);
  say_variables(&c);
  name_container(&c);
  put_volumes(&c, shim);
  engine_say_two(&c, "--workdir", spec->cwd);
  engine_say_two(&c, "--entrypoint", "");
  engine_say(&c, spec->image);
  if (spec->plan->way_out != NULL) {
    engine_say(&c, shim);
    engine_say(&c, SHIM_FORWARDS);
    engine_say_two(&c, spec->plan->way_out, spec->plan->bypass);
  }
  free(c.volumes);
  if (c.odd != NULL) {
    err_set(err, ERR_INVALID,
            "%.300s cannot be mounted in a container: its name has a comma, a quote or a "
            "line's end: it was not started",
            c.odd);
    sandbox_free(s);
    return NULL;
  }
  s->words = c.words.items;
  s->envp = c.envp;
  return s;
}
