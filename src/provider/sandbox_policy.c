/* Finds the paths that a call's program may read and write and the hosts that it may reach, and
 * makes its way out. */
#include "provider/sandbox_policy.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/resource.h"
#include "base/str.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/fs.h"
#include "os/sandbox_bwrap.h"
#include "os/sandbox_container.h"
#include "os/tmpdir.h"
#include "provider/child.h"
#include "provider/denials.h"
#include "provider/placeholder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SANDBOX_POLICY_GIT_FOLDERS = 3 };

/* Segue's own sockets among others', and other people's; the home folder has a table, home.txt. */
static const char *const sandbox_policy_others[] = {"/run/user", "/home", "/root", "/Users", NULL};

/* Only root could read these. */
static const char *const sandbox_policy_root_secrets[] = {
    "/etc/shadow",    "/etc/shadow-",     "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssl/private", "/etc/ssh",     "/boot",         NULL};

/* --- the folders of a repository --- */

static bool git_is_own(const char *path, mode_t type) {
  struct stat st;
  return lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid();
}

/* Reads the first line of a file as far as there is room. */
static bool read_first_line(const char *file, int flags, char *line, size_t size) {
  int fd = open(file, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = fd >= 0 ? read(fd, line, size - 1) : -1;
  fs_close(fd);
  line[n > 0 ? n : 0] = '\0';
  line[strcspn(line, "\n")] = '\0';
  return n > 0;
}

/* Reads the first line of a small file behind `prefix` and resolves the path in it, from `folder`
 * if it is not absolute. */
static bool read_link(const char *file, const char *prefix, const char *folder,
                      char out[PATH_MAX]) {
  char line[PATH_MAX], path[2 * PATH_MAX];
  size_t skip = strlen(prefix);
  if (!read_first_line(file, O_NOFOLLOW, line, sizeof line) || strncmp(line, prefix, skip) != 0 ||
      line[skip] == '\0')
    return false;
  if (line[skip] == '/')
    print_into(path, sizeof path, "%s", line + skip);
  else
    print_into(path, sizeof path, "%s/%s", folder, line + skip);
  return realpath(path, out) != NULL;
}

/* Returns true if the worktree's folder in the repository says that it belongs to this .git file:
 * otherwise any project could name a folder to be opened for it. */
static bool points_back(const char *worktree, const char *dot_git) {
  char file[PATH_MAX + 16], back[PATH_MAX], real[PATH_MAX];
  print_into(file, sizeof file, "%s/gitdir", worktree);
  return realpath(dot_git, real) != NULL && read_link(file, "", worktree, back) &&
         strcmp(real, back) == 0;
}

/* The top of the working tree, the repository's folder and, for a worktree, the one it shares with
 * the others; absolute, in `a`. Only folders that this user owns and git would accept. Returns how
 * many. */
static size_t sandbox_policy_git(const char *cwd, struct arena *a,
                                 const char *out[SANDBOX_POLICY_GIT_FOLDERS]) {
  char folder[PATH_MAX], dot_git[PATH_MAX + 8];
  if (realpath(cwd, folder) == NULL)
    return 0;
  for (bool inner = false;;) { /* a submodule's repository is in the one above, and not named */
    print_into(dot_git, sizeof dot_git, "%s/.git", folder);
    out[0] = arena_strdup(a, folder);
    if (git_is_own(dot_git, S_IFDIR)) {
      out[1] = arena_strdup(a, dot_git);
      return inner ? 1 : 2;
    }
    if (git_is_own(dot_git, S_IFREG)) {
      char own[PATH_MAX], shared[PATH_MAX], file[PATH_MAX + 16];
      if (!read_link(dot_git, "gitdir: ", folder, own) || !git_is_own(own, S_IFDIR))
        return 0;
      inner = inner || !points_back(own, dot_git);
      out[1] = arena_strdup(a, own);
      print_into(file, sizeof file, "%s/commondir", own);
      if (!inner && (!read_link(file, "", own, shared) || !git_is_own(shared, S_IFDIR)))
        return 2;
      out[2] = arena_strdup(a, inner ? "" : shared);
      if (!inner)
        return 3;
    }
    char *slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder)
      return 0;
    *slash = '\0';
  }
}

/* --- the way out --- */

/* Returns a variable of the program's own environment, NULL if it is not set. */
static const char *variable(const char *const *envp, const char *name, size_t n) {
  for (size_t i = 0; envp[i] != NULL; i++)
    if (strncmp(envp[i], name, n) == 0 && envp[i][n] == '=')
      return envp[i] + n + 1;
  return NULL;
}

/* Adds the host of https://USER@HOST:PORT/PATH, with its scheme's port if none is given. */
static void hosts_add_url(struct arena *a, struct arena_list *hosts, const char *url) {
  char text[300];
  const char *scheme = strstr(url, "://"), *begin = scheme ? scheme + 3 : url;
  size_t n = strcspn(begin, "/?#");
  const char *at = memchr(begin, '@', n);
  bool plain = strncasecmp(url, LIT("http://")) == 0;
  unsigned port = plain ? 80 : 443;
  struct str host;
  if (at != NULL) {
    n -= (size_t)(at + 1 - begin);
    begin = at + 1;
  }
  if (!proxy_split((struct str){begin, n}, &host, &port))
    return;
  bool brackets = memchr(host.p, ':', host.n) != NULL;
  int length = snprintf(text, sizeof text, "%s" STR_FMT "%s:%u", brackets ? "[" : "", STR_ARG(host),
                        brackets ? "]" : "", port);
  if (length > 0 && length < (int)sizeof text)
    arena_list_add(a, hosts, (struct str){text, (size_t)length});
}

static void hosts_add_all(struct arena *a, struct arena_list *hosts, const json_t *list,
                          const char *const *envp) {
  JSON_EACH(list, i, entry) {
    const char *text = json_string_value(entry);
    const char *url = text && text[0] == '$' ? variable(envp, text + 1, strlen(text + 1)) : NULL;
    if (url != NULL)
      hosts_add_url(a, hosts, url);
    else if (text != NULL && text[0] != '$')
      arena_list_add(a, hosts, str_from(text));
  }
}

static const char *const *hosts_of(const struct sandbox_policy_spec *spec, struct arena *a) {
  struct arena_list hosts = {0};
  hosts_add_all(a, &hosts, spec->hosts, spec->envp);
  hosts_add_all(a, &hosts, json_object_get(spec->env->sandbox, "hosts"), spec->envp);
  return hosts.items;
}

/* Lists the hosts that a program reaches without the proxy: its own servers, unless the list names
 * this machine. */
static const char *sandbox_policy_bypass(const struct sandbox_policy_spec *spec) {
  AUTO(arena_deinit) struct arena arena = {0};
  const char *const *hosts = hosts_of(spec, &arena);
  bool own = false;
  for (size_t i = 0; hosts != NULL && hosts[i] != NULL; i++) {
    struct str host;
    unsigned port;
    own = own || (proxy_split(str_from(hosts[i]), &host, &port) && proxy_is_loopback(host));
  }
  return own ? "" : "localhost,127.0.0.1,::1";
}

/* Reports a note of which one member says what it is about. */
static void note_of(const struct provider_sink *sink, const char *text, const char *key,
                    const char *about) {
  provider_tell(sink, NEWS_NOTE, STR(""),
                json_pack("{so ss}", "text", json_sprintf("%s%s", text, about), key, about));
}

/* Reports to the log where a program with network: api was refused to go. */
static void proxy_denied(void *ctx, const char *where) {
  const struct provider_sink *sink = ctx;
  note_of(sink, "its sandbox did not let it out to ", "denied", where);
}

void sandbox_policy_tried(const struct provider_sink *sink, const char *tmpdir) {
  char path[PATH_MAX], line[LIMIT_NAME_BYTES];
  buf_auto_t notes = {0};
  for (unsigned i = 0; tmpdir != NULL && i < LIMIT_TMPDIR_NOTE_COUNT; i++) {
    print_into(path, sizeof path, TMPDIR_NOTE, tmpdir, i);
    ssize_t n = readlink(path, line, sizeof line);
    buf_puts(&notes, n > 0 && notes.n > 0 ? ", " : "");
    buf_safe(&notes, (struct str){line, n > 0 ? (size_t)n : 0}, false);
  }
  if (notes.n > 0)
    note_of(sink, "tried to answer for a person: ", "tried", notes.p);
}

enum { PROGRAM_WORDS = 3 }; /* words of a command line that may name a program */

struct confining {
  const struct sandbox_policy_spec *spec;
  struct arena arena;
  const char *home; /* NULL: there is none */
  struct arena_list reads, hides, wholes, writes, caches, kept;
  struct placeholder *stand_ins;
  bool looks;          /* nothing is made for the program: it has ended, or there is none */
  size_t secret_count; /* of hides: what nothing but its own name in the settings opens */
  bool open;           /* home: open */
  bool no_caches;      /* it leaves nothing: those of builds are only read, and no /dev/shm */
  json_t *shown;       /* NULL, or what sandbox_policy_rules returns */
  struct str why;      /* of the next paths in it */
};

/* Writes the home folder without links; NULL: there is none. */
static const char *home_of(char real[PATH_MAX]) {
  const char *home = getenv("HOME");
  bool is = home != NULL && home[0] == '/' && realpath(home, real) != NULL && real[1] != '\0';
  return is ? real : NULL;
}

static void paths_add(struct confining *c, struct arena_list *list, const char *path) {
  const bool writes = list == &c->writes || list == &c->caches;
  const char *access_word = writes ? "write" : "read";
  arena_list_add(&c->arena, list, str_from(path));
  if (list == &c->hides)
    access_word = "closed";
  if (c->shown != NULL && list != &c->kept)
    json_array_append_new(c->shown, json_pack("{ss ss ss% sb}", "path", path, "access", access_word,
                                              "why", c->why.p, c->why.n, "whole",
                                              list == &c->wholes || list == &c->writes));
}

/* Makes ~/PATH, $NAME/PATH or /PATH absolute, without a slash at its end. Returns false if it is
 * nowhere. */
static bool sandbox_policy_expand(const struct confining *c, const char *path, char out[PATH_MAX]) {
  const char *base = "", *rest = path;
  if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
    base = c->home;
    rest = path + 1;
  } else if (path[0] == '$') {
    size_t n = strcspn(path + 1, "/");
    base = variable(c->spec->envp, path + 1, n);
    rest = path + 1 + n;
  }
  if (base == NULL || snprintf(out, PATH_MAX, "%s%s", base, rest) >= PATH_MAX || out[0] != '/')
    return false;
  size_t n = strlen(out);
  while (n > 1 && out[n - 1] == '/')
    out[--n] = '\0';
  return true;
}

/* Adds a path as it is written, and as it really is: either may be asked for. */
static void add(struct confining *c, struct arena_list *list, const char *path) {
  char full[PATH_MAX], real[PATH_MAX];
  if (!sandbox_policy_expand(c, path, full))
    return;
  paths_add(c, list, full);
  if (realpath(full, real) != NULL && strcmp(real, full) != 0)
    paths_add(c, list, real);
}

static void add_all(struct confining *c, struct arena_list *list, const char *const *paths) {
  for (size_t i = 0; paths[i] != NULL; i++)
    add(c, list, paths[i]);
}

static void add_json(struct confining *c, struct arena_list *list, const json_t *paths) {
  JSON_EACH(paths, i, path)
    if (json_is_string(path))
      add(c, list, json_string_value(path));
}

/* Makes a folder and those above it, for this user alone, if it is missing. */
static void sandbox_policy_make_folder(const struct confining *c, const char *path) {
  char part[PATH_MAX];
  if (c->looks || access(path, F_OK) == 0)
    return;
  for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    print_into(part, sizeof part, "%.*s", (int)(slash - path), path);
    (void)mkdir(part, 0700);
  }
  (void)mkdir(path, 0700);
}

/* --- what a program is --- */

static bool holds_home(const struct confining *c, const char *path) {
  return c->home != NULL && fs_below(c->home, path) != NULL;
}

static bool is_below_any(const char *const *paths, const char *path) {
  for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
    if (fs_below(path, paths[i]) != NULL)
      return true;
  return false;
}

/* Opens a path of the home folder for `list`, unless it is not there, was said to be secret, or is
 * the home folder itself. */
static void open_path(struct confining *c, struct arena_list *list, const char *path) {
  char real[PATH_MAX];
  bool secret = access(path, F_OK) != 0 || realpath(path, real) == NULL || holds_home(c, real);
  for (size_t i = 0; i < c->secret_count && !secret; i++)
    secret = fs_below(path, c->hides.items[i]) != NULL || fs_below(real, c->hides.items[i]) != NULL;
  if (secret)
    return;
  paths_add(c, list, path);
  if (strcmp(path, real) != 0)
    paths_add(c, list, real);
}

/* Does a folder with a bin look like one that programs were installed in, and nothing else? */
static bool is_prefix(const char *root) {
  static const char *const beside[] = {"lib", "lib64", "libexec", "share", "pkg", "pyvenv.cfg"};
  char path[PATH_MAX + 16];
  print_into(path, sizeof path, "%s/.git", root);
  bool found = false, own = access(path, F_OK) == 0;
  for (size_t i = 0; i < ARRAY_LEN(beside) && !own && !found; i++) {
    print_into(path, sizeof path, "%s/%s", root, beside[i]);
    found = access(path, F_OK) == 0;
  }
  return found;
}

/* Opens the folder that programs of `folder` were installed in: for .../lib/node_modules/x the
 * modules, for .../node/v20/bin the version. What keeps more than programs (~/.tool, ~/.local, a
 * project) is not opened for its bin: only what is beside that by the usual names. */
static void open_installed(struct confining *c, struct arena_list *list, const char *folder) {
  static const char *const beside[] = {"lib", "lib64", "libexec", "include"};
  char root[PATH_MAX], part[PATH_MAX + 16];
  print_into(root, sizeof root, "%s", folder);
  char *modules = strstr(root, "/node_modules/"), *slash = strrchr(root, '/');
  if (modules != NULL)
    modules[sizeof "/node_modules" - 1] = '\0';
  const bool bin = modules == NULL && slash != NULL && slash != root &&
                   (strcmp(slash, "/bin") == 0 || strcmp(slash, "/shims") == 0);
  if (bin)
    *slash = '\0';
  const char *below = c->home ? fs_below(root, c->home) : NULL;
  const bool of_home = holds_home(c, root), guard = c->secret_count > 0;
  const bool hidden = below != NULL && !of_home && below[1] == '.' && !strchr(below + 1, '/');
  if (!of_home &&
      (!bin || !below || (guard ? !hidden && is_prefix(root) : strcmp(below, "/.local") != 0))) {
    open_path(c, list, root);
    return;
  }
  for (size_t i = 0; bin && !of_home && i < ARRAY_LEN(beside); i++) {
    print_into(part, sizeof part, "%s/%s", root, beside[i]);
    open_path(c, list, part);
  }
  if (!holds_home(c, folder))
    open_path(c, list, folder);
}

/* Opens what one entry of a folder of PATH leads to, where that is in the home folder. */
static void open_linked(struct confining *c, const char *folder, const char *name) {
  char path[PATH_MAX], real[PATH_MAX];
  struct stat st;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return;
  const ssize_t n = readlink(path, real, sizeof real - 1);
  real[n > 0 ? n : 0] = '\0'; /* most lead to what is open, and cost no more than this */
  if ((real[0] == '/' && is_below_any(c->reads.items + 1, real)) || realpath(path, real) == NULL ||
      fs_below(real, c->home) == NULL || is_below_any(c->reads.items + 1, real) ||
      stat(real, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & S_IXUSR) == 0)
    return;
  open_path(c, &c->reads, real);
  *strrchr(real, '/') = '\0';
  const char *last = strrchr(real, '/');
  if (strstr(real, "/node_modules/") != NULL || (last != NULL && strcmp(last, "/bin") == 0))
    open_installed(c, &c->reads, real);
}

/* Opens what the user's PATH has in the home folder. An agent may have written the folders of a
 * project: links in them, or that they are themselves, are not followed. */
static void add_path(struct confining *c) {
  buf_auto_t path = {0};
  char asked[PATH_MAX], folder[2 * PATH_MAX], real[PATH_MAX];
  process_search_path(getenv("PATH"), &path);
  c->why = STR("on your PATH");
  for (struct str rest = buf_view(&path); c->home != NULL && rest.p != NULL;) {
    struct str part = str_cut(&rest, ':');
    print_into(asked, sizeof asked, STR_FMT, STR_ARG(part));
    const char *below = fs_below(asked, getenv("HOME"));
    print_into(folder, sizeof folder, "%s%s", below ? c->home : "", below ? below : asked);
    bool follows = str_starts(part, "/usr/local/") || str_starts(part, "/opt/");
    if (below != NULL)
      follows = below[0] != '\0' && (below[1] == '.' || strcmp(below, "/bin") == 0);
    if (realpath(folder, real) == NULL || is_below_any(c->writes.items, real) ||
        (!follows && strcmp(folder, real) != 0))
      continue;
    if (fs_below(real, c->home) != NULL && !is_below_any(c->reads.items + 1, real))
      open_installed(c, &c->reads, real);
    DIR *dir = follows && !holds_home(c, real) ? opendir(real) : NULL;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
      if (entry->d_type == DT_LNK)
        open_linked(c, real, entry->d_name);
    if (dir != NULL)
      (void)closedir(dir);
  }
}

/* Adds a program and, where it is a script, who runs it. */
static void add_program(struct confining *c, const char *word, int depth) {
  char path[PATH_MAX], real[PATH_MAX], line[256];
  if (depth == 0 || !program_find(word, path, sizeof path) || realpath(path, real) == NULL)
    return;
  struct arena_list *list = c->secret_count > 0 ? &c->reads : &c->wholes;
  char *slash = strrchr(real, '/');
  add(c, list, real);
  *slash = '\0';
  if (!holds_home(c, slash == real ? "/" : real))
    open_installed(c, list, real);
  *slash = '/';
  if (!read_first_line(real, 0, line, sizeof line) || strncmp(line, "#!", 2) != 0)
    return;
  char *rest = NULL, *first = strtok_r(line + 2, " \t", &rest);
  char *second = first ? strtok_r(NULL, " \t", &rest) : NULL;
  if (second != NULL && strcmp(second, "-S") == 0)
    second = strtok_r(NULL, " \t", &rest);
  const char *base = first ? strrchr(first, '/') : NULL;
  if (base != NULL && strcmp(base, "/env") == 0 && second != NULL)
    add_program(c, second, depth - 1);
  else if (first != NULL)
    add_program(c, first, depth - 1);
}

/* --- the lists --- */

/* Adds a path of the table. */
static void add_home_path(struct confining *c, struct str kind, const char *path) {
  if (str_eq_c(kind, "read"))
    open_path(c, &c->reads, path);
  else if (str_eq_c(kind, "write"))
    open_path(c, c->no_caches ? &c->reads : &c->caches, path);
  else
    add(c, &c->hides, path);
}

/* Adds what a row of the table names: an absolute path, or a pattern for several. */
static void add_home_row(struct confining *c, struct str kind, const char *path,
                         struct str program) {
  char found[PATH_MAX], name[LIMIT_NAME_BYTES];
  glob_t paths = {0};
  if (str_eq_c(kind, "secret") && !c->open && !is_below_any(c->reads.items + 1, path))
    return; /* it is closed anyway */
  print_into(name, sizeof name, STR_FMT, STR_ARG(program));
  if (name[0] != '\0' && access(path, F_OK) != 0 && program_find(name, found, sizeof found))
    sandbox_policy_make_folder(c, path);
  if (strchr(path, '*') == NULL)
    add_home_path(c, kind, path);
  else if (glob(path, GLOB_NOSORT, NULL, &paths) == 0)
    for (size_t i = 0; i < paths.gl_pathc; i++)
      add_home_path(c, kind, paths.gl_pathv[i]);
  globfree(&paths);
}

/* Adds the rows of the home folder's table (home.txt), or its secrets, when all else is known. */
static void add_table(struct confining *c, bool secrets) {
  const struct resource *table = resource_find("provider/home.txt");
  struct str rest = {table->p, table->n};
  char full[PATH_MAX], name[LIMIT_NAME_BYTES];
  while (rest.n > 0) {
    struct str line = str_next_line(&rest), whole = line;
    struct str kind = str_cut(&line, ' '), path = str_cut(&line, ' '), below = path;
    struct str base = str_cut(&below, '/');
    if (base.n == 0)
      continue;
    print_into(name, sizeof name, STR_FMT, (int)base.n - 1, base.p + 1);
    const char *at = base.p[0] == '$' ? getenv(name) : c->home;
    if (str_eq_c(kind, "#"))
      c->why = (struct str){whole.p + 2, whole.n - 2};
    else if (at == NULL || at[0] != '/' || str_eq_c(kind, "secret") != secrets)
      continue;
    else if (snprintf(full, sizeof full, below.n > 0 ? "%s/%.*s" : "%s", at, (int)below.n,
                      below.p) < (int)sizeof full)
      add_home_row(c, kind, full, line);
  }
}

static void add_guard(struct confining *c, const json_t *user) {
  char folder[PATH_MAX];
  const char *variables[][2] = {{"XDG_CONFIG_HOME", "segue"}, {"XDG_STATE_HOME", "segue"}};
  const char *run = getenv("XDG_RUNTIME_DIR"), *bus = getenv("DBUS_SESSION_BUS_ADDRESS");
  const json_t *own = json_object_get(c->spec->request->sandbox, "home");
  const char *home = json_string_value(own ? own : json_object_get(user, "home"));
  c->open = home != NULL && strcmp(home, "open") == 0;
  c->why = STR("segue's own");
  for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
    const char *value = getenv(variables[i][0]);
    if (value != NULL && snprintf(folder, sizeof folder, "%s/%s", value, variables[i][1]) > 0)
      add(c, &c->hides, folder);
  }
  for (size_t i = 0; c->spec->env->own_folders != NULL && c->spec->env->own_folders[i]; i++)
    add(c, &c->hides, c->spec->env->own_folders[i]);
  c->why = STR("the sockets of your session's services"); /* segue's among them */
  if (run != NULL && run[0] == '/' && run[1] != '\0')
    add(c, &c->hides, run);
  if (bus != NULL && str_has(str_from(bus), "unix:path=/")) {
    bus = strstr(bus, "unix:path=") + strlen("unix:path=");
    print_into(folder, sizeof folder, "%.*s", (int)strcspn(bus, ",;"), bus);
    add(c, &c->hides, folder);
  }
  c->why = STR("your settings: secret");
  add_json(c, &c->hides, json_object_get(user, "secret"));
  add_json(c, &c->hides, json_object_get(user, "hidden_tests"));
  c->why = STR("a disk's own device, for those whom its mode does not stop");
  add(c, &c->hides, "/dev");
  c->secret_count = c->hides.n;
  c->why = STR("the system");
  paths_add(c, &c->reads, "/");
  c->why = STR("other people's");
  add_all(c, &c->hides, sandbox_policy_others);
  c->why = c->open ? STR("home: open") : STR("the home folder");
  if (c->home != NULL)
    add(c, c->open ? &c->reads : &c->hides, getenv("HOME")); /* as it is written, too */
  add_table(c, false);
  add_path(c);
  add_table(c, true);
}

static bool is_held_by(const struct confining *c, const char *mechanism) {
  const char *by = json_string_value(json_object_get(c->spec->request->sandbox, "mechanism"));
  return by != NULL && strcmp(by, mechanism) == 0;
}

static bool wraps_call(const struct confining *c) {
  return is_held_by(c, SANDBOX_BWRAP);
}

static bool is_contained(const struct confining *c) {
  return is_held_by(c, SANDBOX_PODMAN) || is_held_by(c, SANDBOX_DOCKER);
}

/* Keeps git's own files as they are. Hooks and settings of a repository run programs for whoever
 * uses it next, and `commondir` says where git looks for them. What is missing is made, so that
 * nobody else can: "." is the folder itself, and an empty file sets nothing. */
static void keep_git(struct confining *c, const char *folder) {
  static const char *const names[] = {"hooks", "config", "config.worktree", "commondir", "gitdir"};
  const bool makes = !c->looks && (wraps_call(c) || is_contained(c));
  char path[PATH_MAX];
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path)
      continue;
    if (makes && i == 0)
      (void)mkdir(path, 0755);
    else if (makes && (i == 2 || i == 3))
      placeholder_add(&c->stand_ins, path, i == 3 ? STR(".\n") : STR(""));
    add(c, &c->kept, path);
  }
}

/* Adds the workspace and its repository. With guard its whole tree is read, and what a worktree's
 * links in the main checkout lead to. */
static void add_workspace(struct confining *c, enum sandbox_level level) {
  const struct sandbox_policy_spec *spec = c->spec;
  const char *git[SANDBOX_POLICY_GIT_FOLDERS];
  char path[PATH_MAX];
  struct stat st;
  size_t n = sandbox_policy_git(spec->cwd, &c->arena, git), i;
  json_t *name;
  c->why = STR("the workspace");
  add(c, &c->wholes, spec->cwd);
  if (spec->request->edit)
    add(c, &c->writes, spec->cwd);
  c->why = STR("the workspace's repository");
  for (i = 0; i < n && level == SANDBOX_GUARD; i++)
    if (!holds_home(c, git[i]))
      add(c, &c->wholes, git[i]);
  json_array_foreach((json_t *)spec->env->links, i, name) {
    const bool linked = n == SANDBOX_POLICY_GIT_FOLDERS && level == SANDBOX_GUARD;
    const char *end = linked ? strrchr(git[n - 1], '/') : NULL;
    if (end != NULL && snprintf(path, sizeof path, "%.*s/%s", (int)(end - git[n - 1]), git[n - 1],
                                json_string_value(name)) < (int)sizeof path)
      add(c, &c->wholes, path);
  }
  if (!spec->request->edit)
    return;
  for (i = 1; i < n; i++) {
    add(c, &c->writes, git[i]);
    keep_git(c, git[i]);
  }
  /* A worktree or submodule says in this file where its repository is. */
  if (snprintf(path, sizeof path, "%s/.git", spec->cwd) < (int)sizeof path &&
      lstat(path, &st) == 0 && S_ISREG(st.st_mode))
    add(c, &c->kept, path);
  /* Whoever runs a workflow of the project next runs what is written there. */
  if (snprintf(path, sizeof path, "%s/.segue", spec->cwd) < (int)sizeof path)
    add(c, &c->kept, path);
}

static void sandbox_policy_gather(struct confining *c, enum sandbox_level level) {
  const struct sandbox_policy_spec *spec = c->spec;
  const json_t *user = spec->env->sandbox, *path;
  char full[PATH_MAX];
  size_t i;
  c->no_caches = json_is_false(json_object_get(user, "caches"));
  add_workspace(c, level);
  c->why = STR("the client's own state");
  json_array_foreach((json_t *)c->spec->state, i, path) {
    const char *text = json_string_value(path);
    size_t n = text ? strlen(text) : 0;
    if (n > 0 && text[n - 1] == '/' && sandbox_policy_expand(c, text, full))
      sandbox_policy_make_folder(c, full);
    if (n > 0)
      add(c, &c->writes, text);
  }
  c->why = STR("your settings: write");
  add_json(c, &c->writes, json_object_get(user, "write"));
  const json_t *own = json_object_get(user, "commands"); /* for the workflow's own programs */
  if (spec->request->argv != NULL)
    add_json(c, &c->writes, json_object_get(own, "write"));
  if (level == SANDBOX_GUARD)
    add_guard(c, user);
  c->why = STR("the system");
  if (level != SANDBOX_GUARD)
    add_all(c, &c->reads, sandbox_folders);
  for (i = 0; sandbox_devices[i] != NULL; i++)
    if (!c->no_caches || strcmp(sandbox_devices[i], "/dev/shm") != 0) /* which everybody reads */
      add(c, &c->writes, sandbox_devices[i]);
  c->why = STR("root's own");
  if (geteuid() == 0)
    add_all(c, &c->hides, sandbox_policy_root_secrets);
  c->why = STR("its program");
  if (level != SANDBOX_CONTAINER) { /* an image has programs of its own */
    enum { SCRIPTS = 4 };
    /* The first words may be an interpreter and its script. */
    for (i = 0; i < PROGRAM_WORDS && spec->argv[i] != NULL; i++)
      if (i == 0 || spec->argv[i][0] == '/')
        add_program(c, spec->argv[i], SCRIPTS);
  }
  c->why = STR("your settings: read");
  add_json(c, &c->wholes, json_object_get(user, "read"));
  if (spec->request->argv != NULL)
    add_json(c, &c->wholes, json_object_get(own, "read"));
}

/* Appends a text with its terminator, so that no text runs into the next. */
static void key_put(struct buf *key, const char *text) {
  buf_append(key, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void key_put_json(struct buf *key, const json_t *value) {
  char_auto_t *text = value ? json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  key_put(key, text);
}

/* Writes everything that the lists of a call are made of, except its own folder and what is in the
 * folders: two calls with the same key may share their rules. */
static void sandbox_policy_key(const struct confining *c, struct buf *key,
                               enum sandbox_level level) {
  const struct sandbox_policy_spec *spec = c->spec;
  const json_t *path;
  size_t i;
  buf_printf(key, "%d %d %d", level, spec->request->edit, spec->request->argv != NULL);
  key_put(key, "");
  key_put(key, spec->cwd);
  key_put(key, c->home);
  for (i = 0; i < PROGRAM_WORDS; i++) {
    key_put(key, spec->argv[i]);
    if (spec->argv[i] == NULL)
      break;
  }
  key_put_json(key, spec->request->sandbox);
  key_put_json(key, spec->env->sandbox);
  key_put_json(key, spec->state);
  key_put_json(key, spec->env->links);
  json_array_foreach((json_t *)spec->state, i, path) {
    const char *text = json_string_value(path);
    if (text != NULL && text[0] == '$')
      key_put(key, variable(c->spec->envp, text + 1, strcspn(text + 1, "/")));
  }
}

/* Returns true if nothing confines the call, as requested. */
static bool is_off(const json_t *words, enum sandbox_level *level) {
  const json_t *word = json_object_get(words, "level");
  *level = SANDBOX_OFF;
  if (json_is_string(word) && !sandbox_level_from_name(str_from(json_string_value(word)), level))
    return false; /* a later program's word: the mechanism is unknown, too */
  return *level == SANDBOX_OFF;
}

bool sandbox_policy_holds(const struct call_request *request) {
  enum sandbox_level level;
  return request->sandbox != NULL && !is_off(request->sandbox, &level);
}

static struct process_limits sandbox_policy_limits_said(const struct call_request *request) {
  const json_t *limits = json_object_get(request->sandbox, "limits");
  const char *by = json_string_value(json_object_get(limits, "by"));
  double milli_cpus = json_number_value(json_object_get(limits, "cpus")) * 1000;
  return (struct process_limits){
      .memory_bytes = (uint64_t)json_integer_value(json_object_get(limits, "memory")),
      .pids = (uint32_t)json_integer_value(json_object_get(limits, "pids")),
      .milli_cpus = milli_cpus > 0 && milli_cpus < 1e9 ? (uint32_t)milli_cpus : 0,
      .by_group = by != NULL && strcmp(by, LIMITS_BY_GROUP) == 0};
}

/* Returns the limits of the call's program, as its call_start tells them. */
static struct process_limits sandbox_policy_limits(const struct call_request *request) {
  const json_t *by = json_object_get(json_object_get(request->sandbox, "limits"), "by");
  enum sandbox_level level;
  struct process_limits limits = sandbox_policy_limits_said(request);
  if (json_is_string(by) && strcmp(json_string_value(by), SANDBOX_DOCKER) == 0)
    return (struct process_limits){0}; /* it holds them itself */
  if (!limits.by_group && !is_off(request->sandbox, &level) && level == SANDBOX_CONTAINER)
    limits.memory_bytes = limits.pids = 0; /* held inside: the engine needs more for itself */
  return limits;
}

/* Returns true if the engine failed, as it says: 125 is always its own, 126 and 127 are also what a
 * shell in the container exits with, unless podman names its runtime (OCI), docker its daemon
 * (which a user without its group may not call: 126), or docker's init the program that it cannot
 * run. */
static bool is_engines_own(int exit_code, struct str words) {
  bool podmans = str_starts(words, "Error: ") && str_has(words, "OCI ");
  bool dockers = str_starts(words, "docker: ") && str_has(words, " daemon");
  bool inits = str_starts(words, "[FATAL tini ") && str_has(words, "] exec ");
  return exit_code == SANDBOX_POLICY_ENGINE_FAILED ||
         ((exit_code == 126 || exit_code == 127) && (podmans || dockers || inits));
}

bool sandbox_policy_engine_failed(bool contained, const struct process_result *p,
                                  const struct call_request *request, struct call_result *r) {
  const struct str words = sandbox_engine_words(buf_view(&r->error_text.bytes));
  if (!contained || p->why != PROCESS_END_EXITED || !is_engines_own(p->exit_code, words))
    return false;
  call_result_fail(r, CLASS_NOT_FOUND, "%s could not start a container of %s: " STR_FMT,
                   json_string_value(json_object_get(request->sandbox, "mechanism")),
                   json_string_value(json_object_get(request->sandbox, "image")), STR_ARG(words));
  return true;
}

static enum sandbox_network network_said(const struct call_request *request) {
  const char *word = json_string_value(json_object_get(request->sandbox, "network"));
  enum sandbox_network reach = NETWORK_OPEN;
  if (word != NULL)
    (void)sandbox_network_from_name(str_from(word), &reach);
  return reach;
}

/* Makes the call's proxy, and names the socket where it is asked. */
static bool let_out(struct confining *c, struct confined *held, const char **socket,
                    struct err *err) {
  char path[PATH_MAX];
  if (!wraps_call(c) && !is_contained(c))
    return err_set(err, ERR_INVALID,
                   "network: api needs a network of its own, which its sandbox does not provide: "
                   "it was not started");
  print_into(path, sizeof path, "%s/%s", c->spec->tmpdir, PROXY_SOCKET);
  *socket = arena_strdup(&c->arena, path);
  struct arena arena = {0};
  const char *upstream = getenv("HTTPS_PROXY") ? getenv("HTTPS_PROXY") : getenv("https_proxy");
  const struct proxy_spec wanted = {.loop = c->spec->env->loop,
                                    .folder = c->spec->tmpdir,
                                    .hosts = hosts_of(c->spec, &arena),
                                    .upstream = upstream,
                                    .refused = proxy_denied,
                                    .ctx = c->spec->sink};
  struct proxy *proxy = proxy_new(&wanted, err);
  arena_deinit(&arena);
  held->proxy = proxy;
  return held->proxy != NULL;
}

/* Returns the length of the longest path of the list that holds this one; 0: none does. */
static size_t longest_above(const struct arena_list *list, const char *path) {
  size_t longest = 0;
  for (size_t i = 0; list->items != NULL && list->items[i] != NULL; i++)
    if (fs_below(path, list->items[i]) != NULL && strlen(list->items[i]) > longest)
      longest = strlen(list->items[i]);
  return longest;
}

static bool may_read(const struct confining *c, const char *path) {
  size_t shown = longest_above(&c->reads, path), cached = longest_above(&c->caches, path);
  size_t open = cached > shown ? cached : shown;
  return longest_above(&c->wholes, path) > 0 || longest_above(&c->writes, path) > 0 ||
         (open > 0 && open >= longest_above(&c->hides, path));
}

static bool has_below(const struct arena_list *list, const char *path) {
  for (size_t i = 0; list->items != NULL && list->items[i] != NULL; i++)
    if (fs_below(list->items[i], path) != NULL)
      return true;
  return false;
}

static bool shows_path(const struct confining *c, enum sandbox_level level, const char *path) {
  bool whole = longest_above(&c->wholes, path) > 0 || longest_above(&c->writes, path) > 0 ||
               has_below(&c->wholes, path) || has_below(&c->writes, path);
  if (level == SANDBOX_GUARD)
    return whole || may_read(c, path);
  return whole || (level != SANDBOX_CONTAINER && longest_above(&c->reads, path) > 0);
}

/* A session with hidden tests starts no program that could read them, or its log: that has their
 * counts. */
static bool keeps_hidden(const struct confining *c, enum sandbox_level level, struct err *err) {
  const json_t *hidden = json_object_get(c->spec->env->sandbox, "hidden_tests"), *path;
  const char *const *own = c->spec->env->own_folders;
  char real[PATH_MAX];
  size_t i;
  json_array_foreach((json_t *)hidden, i, path) {
    const char *text = json_string_value(path);
    if (shows_path(c, level, realpath(text, real) != NULL ? real : text))
      return err_set(err, ERR_INVALID,
                     "its sandbox would show it the hidden tests: put them elsewhere than %.300s",
                     text);
  }
  for (i = 0; json_array_size(hidden) > 0 && own != NULL && own[i] != NULL; i++)
    if (shows_path(c, level, realpath(own[i], real) != NULL ? real : own[i]))
      return err_set(err, ERR_INVALID,
                     "its sandbox would show it the log, which says what hidden tests find: keep "
                     "logs elsewhere than %.300s",
                     own[i]);
  return true;
}

/* Landlock lists all folders, or only those that are shown whole: names tell of hidden tests. */
static bool lists_all(const struct confining *c, enum sandbox_level level) {
  const json_t *hidden = json_object_get(c->spec->env->sandbox, "hidden_tests");
  return level == SANDBOX_GUARD && (wraps_call(c) || json_array_size(hidden) == 0);
}

/* Makes all the lists, in the mechanism's own form. */
static struct sandbox *sandbox_policy_make(struct confining *c, enum sandbox_level level,
                                           struct str key, struct confined *held, struct err *err) {
  const struct sandbox_policy_spec *spec = c->spec;
  const enum sandbox_network reach = network_said(spec->request);
  struct ruleset_cache *kept = spec->env->sandboxes;
  const char *way_out = NULL;
  sandbox_policy_gather(c, level);
  if (!keeps_hidden(c, level, err))
    return NULL;
  if (reach == NETWORK_API && !let_out(c, held, &way_out, err))
    return NULL;
  const struct sandbox_plan plan = {
      .reads = c->reads.items,
      .hides = c->hides.items,
      .wholes = c->wholes.items,
      .writes = c->writes.items,
      .caches = c->caches.items,
      .kept = c->kept.items,
      .own = spec->tmpdir,
      .home = c->open ? NULL : c->home,
      .lists = lists_all(c, level),
      .no_internet = reach != NETWORK_OPEN,
      .way_out = way_out,
      .bypass = way_out ? sandbox_policy_bypass(spec) : NULL,
      .no_sockets = level == SANDBOX_STRICT,
      .namespaces = json_is_true(json_object_get(spec->env->sandbox, "namespaces"))};
  if (is_contained(c)) {
    const json_t *words = c->spec->request->sandbox, *image = json_object_get(words, "image");
    const struct sandbox_container wanted = {
        .plan = &plan,
        .engine = json_string_value(json_object_get(words, "mechanism")),
        .image = json_string_value(image),
        .cwd = c->spec->cwd,
        .envp = c->spec->envp,
        .limits = sandbox_policy_limits_said(c->spec->request)};
    if (json_string_length(image) > 0)
      return sandbox_container_new(&wanted, err);
    err_set(err, ERR_INVALID, "sandbox: container needs an image: it was not started");
    return NULL;
  }
  if (wraps_call(c)) {
    char path[PATH_MAX];
    const char *why = sandbox_bwrap_why_not(path, sizeof path);
    if (why == NULL)
      return sandbox_bwrap_new(path, &plan, spec->cwd, err);
    err_set(err, ERR_INVALID, "bwrap cannot sandbox it here: %s: it was not started", why);
    return NULL;
  }
  return sandbox_new(kept, key, &plan, err);
}

/* Makes what confines the call; NULL: nothing does. False: it must not start. */
static bool sandbox_policy_call(const struct sandbox_policy_spec *spec, struct confined *held,
                                struct sandbox **sandbox, struct err *err) {
  const json_t *words = spec->request->sandbox;
  enum sandbox_level level;
  char home[PATH_MAX];
  struct confining c = {.spec = spec, .home = home_of(home)};
  const bool lands = is_held_by(&c, SANDBOX_LANDLOCK);
  *held = (struct confined){.contained = is_contained(&c)};
  assert(spec->cwd != NULL && spec->tmpdir != NULL);
  if (words == NULL || is_off(words, &level))
    return json_array_size(json_object_get(spec->env->sandbox, "hidden_tests")) == 0 ||
           err_set(err, ERR_INVALID,
                   "hidden_tests are set, and it has no sandbox to keep it from them: it was not "
                   "started");
  if (level == SANDBOX_OFF || (level == SANDBOX_CONTAINER) != held->contained ||
      (!lands && !wraps_call(&c) && !held->contained))
    return err_set(
        err, ERR_INVALID,
        "nothing here can enforce sandbox: %.20s (segue doctor says why): it was not started",
        json_string_value(json_object_get(words, "level")));
  struct buf key = {0};
  sandbox_policy_key(&c, &key, level);
  if (lands && network_said(spec->request) != NETWORK_API)
    *sandbox =
        sandbox_again(spec->env->sandboxes, buf_view(&key), spec->tmpdir, spec->request->session);
  if (*sandbox == NULL)
    *sandbox = sandbox_policy_make(&c, level, buf_view(&key), held, err);
  buf_deinit(&key);
  arena_deinit(&c.arena);
  held->stand_ins = c.stand_ins;
  if (*sandbox == NULL)
    sandbox_policy_end(held);
  return *sandbox != NULL;
}

/* --- what it was denied --- */

enum { DENIED_SETTING_BYTES = 200 }; /* of paths in one message */

static bool may_write(const struct confining *c, const char *path) {
  return longest_above(&c->kept, path) == 0 &&
         (longest_above(&c->writes, path) > 0 ||
          longest_above(&c->caches, path) > longest_above(&c->hides, path));
}

/* Resolves a path as the program wrote it, as far as it is there: below what is missing, the folder
 * that is there counts, where it would be made. */
static bool denied_path(const struct confining *c, struct str text, char out[PATH_MAX]) {
  char path[PATH_MAX], full[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s%s" STR_FMT, text.p[0] == '.' ? c->spec->cwd : "",
                   text.p[0] == '.' ? "/" : "", STR_ARG(text));
  if (n >= (int)sizeof path || !sandbox_policy_expand(c, path, full))
    return false;
  for (char *slash; realpath(full, out) == NULL; *slash = '\0')
    if (errno != ENOENT || (slash = strrchr(full, '/')) == NULL || slash == full)
      return false;
  return true;
}

struct denied_lists {
  struct buf read, write;
  bool network;
  bool off; /* no path allows it: git's own files, or what would open the whole home folder */
};

/* Adds a path to "A, B", once and as far as there is room; the first has room. */
static void denied_add(struct buf *list, const char *path) {
  if (list->n > 0 &&
      (list->n + strlen(path) > DENIED_SETTING_BYTES || str_has(buf_view(list), path)))
    return;
  buf_printf(list, "%s%s", list->n > 0 ? ", " : "", path);
}

static void denied_look(const struct confining *c, struct str path, enum denial_kind kind,
                        struct denied_lists *found) {
  char real[PATH_MAX];
  const bool hides = wraps_call(c) || is_contained(c);
  if (kind == DENIAL_NETWORK) {
    found->network |= network_said(c->spec->request) != NETWORK_OPEN;
    return;
  }
  if ((kind == DENIAL_HIDDEN && !hides) || !denied_path(c, path, real) ||
      (c->spec->tmpdir != NULL && fs_below(real, c->spec->tmpdir) != NULL))
    return;
  if (kind != DENIAL_WRITE && !may_read(c, real) && access(real, R_OK) == 0)
    denied_add(&found->read, real);
  else if (kind != DENIAL_HIDDEN && !may_write(c, real) && access(real, W_OK) == 0) {
    found->off |=
        longest_above(&c->kept, real) > 0 || strcmp(real, "/") == 0 || holds_home(c, real);
    denied_add(&found->write, real);
  }
}

/* Looks for a program that did not start for whoever called it by its name, and is in PATH:
 * "sh: 1: cargo: not found". */
static void denied_programs(const struct confining *c, struct str text,
                            struct denied_lists *found) {
  char name[64], path[PATH_MAX], real[PATH_MAX];
  while (text.n > 0) {
    struct str line = str_next_line(&text);
    bool failed = str_has_any(line, "not found|ermission denied|No such file");
    while (failed && line.n > 0) {
      struct str word = str_trim(str_cut(&line, ':'));
      print_into(name, sizeof name, STR_FMT, STR_ARG(word));
      if (word.n > 0 && strpbrk(name, "/ ") == NULL && program_find(name, path, sizeof path) &&
          realpath(path, real) != NULL && !may_read(c, real))
        denied_add(&found->read, path);
    }
  }
}

static void denied_tell(const struct confining *c, const struct denied_lists *found,
                        struct buf *why) {
  const json_t *words = c->spec->request->sandbox;
  const char *read = buf_c(&found->read), *write = buf_c(&found->write), *before = "{";
  buf_printf(why, "its sandbox (%s by %s) denied it, as its output says, what sandbox: {commands: ",
             json_string_value(json_object_get(words, "level")),
             json_string_value(json_object_get(words, "mechanism")));
  if (found->off) {
    buf_printf(why, "off} in config.yaml would allow: to write %s", write);
    return;
  }
  if (read[0] != '\0') {
    buf_printf(why, "%sread: [%s]", before, read);
    before = ", ";
  }
  if (write[0] != '\0') {
    buf_printf(why, "%swrite: [%s]", before, write);
    before = ", ";
  }
  if (found->network)
    buf_printf(why, "%snetwork: open", before);
  buf_puts(why, "}} in config.yaml would allow");
}

bool sandbox_policy_denied(const struct sandbox_policy_spec *spec, struct str text,
                           struct buf *why) {
  char home[PATH_MAX];
  struct confining c = {.spec = spec, .home = home_of(home), .looks = true};
  struct denied_lists found = {0};
  enum sandbox_level level;
  enum denial_kind kind;
  struct str path;
  if (spec->request->sandbox == NULL || is_off(spec->request->sandbox, &level))
    return false;
  sandbox_policy_gather(&c, level);
  denied_programs(&c, text, &found);
  while (denial_next(&text, &path, &kind))
    denied_look(&c, path, kind, &found);
  const bool any = found.read.n > 0 || found.write.n > 0 || found.network;
  if (any)
    denied_tell(&c, &found, why);
  buf_deinit(&found.read);
  buf_deinit(&found.write);
  arena_deinit(&c.arena);
  return any;
}

struct sandbox *sandbox_policy_for_git(const json_t *words, const char *cwd,
                                       const char *const *writes, struct err *err) {
  static const char *const none[] = {NULL};
  const char *by = json_string_value(
      json_object_get(json_object_get(words, "mechanisms"), sandbox_level_name(SANDBOX_GUARD)));
  char home[PATH_MAX];
  enum sandbox_level level;
  if (by == NULL || is_off(words, &level))
    return NULL;
  json_t *mechanism = json_pack("{ss}", "mechanism", by);
  const struct provider_env env = {.sandbox = words};
  const struct call_request request = {.sandbox = mechanism};
  const struct sandbox_policy_spec spec = {
      .env = &env, .request = &request, .cwd = cwd, .argv = none, .envp = none};
  struct confining c = {.spec = &spec, .home = home_of(home)};
  struct sandbox *made = NULL;
  char path[PATH_MAX];
  sandbox_policy_gather(&c, SANDBOX_GUARD);
  add_all(&c, &c.writes, writes);
  const struct sandbox_plan plan = {.reads = c.reads.items,
                                    .hides = c.hides.items,
                                    .wholes = c.wholes.items,
                                    .writes = c.writes.items,
                                    .caches = none,
                                    .kept = none,
                                    .home = c.open ? NULL : c.home,
                                    .lists = lists_all(&c, SANDBOX_GUARD),
                                    .no_internet = true};
  if (!wraps_call(&c))
    made = sandbox_new(NULL, STR(""), &plan, err);
  else if (sandbox_bwrap_why_not(path, sizeof path) == NULL)
    made = sandbox_bwrap_new(path, &plan, cwd, err);
  else
    err_set(err, ERR_INVALID, "bwrap cannot sandbox git's filters here");
  arena_deinit(&c.arena);
  json_decref(mechanism);
  return made;
}

json_t *sandbox_policy_rules(const struct sandbox_policy_spec *spec, enum sandbox_level level,
                             json_t *hosts) {
  char home[PATH_MAX];
  struct confining c = {.spec = spec, .home = home_of(home), .looks = true, .shown = json_array()};
  c.why = STR("sandbox: off");
  if (level == SANDBOX_OFF)
    paths_add(&c, &c.writes, "/");
  else
    sandbox_policy_gather(&c, level);
  const char *const *names = hosts_of(spec, &c.arena);
  for (size_t i = 0; hosts != NULL && names != NULL && names[i] != NULL; i++)
    json_array_append_new(hosts, json_string(names[i]));
  arena_deinit(&c.arena);
  return c.shown;
}

const json_t *sandbox_policy_rule(const json_t *rules, const char *path) {
  const json_t *found = NULL;
  size_t longest = 0;
  bool whole = false;
  JSON_EACH(rules, i, rule) {
    const char *at = json_string_value(json_object_get(rule, "path"));
    const bool is_whole = json_is_true(json_object_get(rule, "whole"));
    if (fs_below(path, at) == NULL || (whole && !is_whole) ||
        (strlen(at) < longest && whole == is_whole))
      continue;
    found = rule;
    whole = is_whole;
    longest = strlen(at);
  }
  return found;
}

struct process *sandbox_policy_start(const struct sandbox_policy_spec *spec,
                                     const struct process_spec *how, process_output_cb on_output,
                                     process_end_cb on_end, void *ctx, struct confined *held,
                                     struct err *err) {
  struct process_spec whole = *how;
  whole.argv = spec->argv;
  whole.cwd = spec->cwd;
  whole.envp = spec->envp;
  whole.limits = sandbox_policy_limits(spec->request);
  struct sandbox *sandbox = NULL;
  if (!sandbox_policy_call(spec, held, &sandbox, err))
    return NULL;
  whole.sandbox = sandbox;
  struct process *process =
      process_start(spec->env->processes, &whole, on_output, on_end, ctx, err);
  sandbox_free(sandbox);
  if (process == NULL)
    sandbox_policy_end(held);
  return process;
}

void sandbox_policy_end(struct confined *held) {
  proxy_free(held->proxy);
  stand_ins_free(held->stand_ins);
  held->proxy = NULL;
  held->stand_ins = NULL;
}
