/* segue worktrees: lists the worktrees of sessions, with size and age, and the refs that hold what
 * was removed (git/work.h). */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "git/submodules.h"
#include "host/config.h"
#include "host/paths.h"
#include "os/clock.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t walked_bytes; /* nftw takes no argument for its callback */

static int add_size(const char *path, const struct stat *st, int type, struct FTW *at) {
  (void)path;
  (void)type;
  (void)at;
  walked_bytes += (uint64_t)st->st_blocks * 512;
  return 0;
}

static void put_days(time_t since, char *out, size_t size) {
  long s = (long)(clock_real_ms() / 1000) - (long)since;
  if (s < 7200)
    print_into(out, size, "%ldm", s / 60);
  else if (s < 48L * 3600)
    print_into(out, size, "%ldh", s / 3600);
  else
    print_into(out, size, "%ldd", s / 86400);
}

/* Returns true for ID, or ID-TURN of a child, and sets the id. */
static bool names_worktree(const char *name, char id[STORE_ID_BYTES]) {
  size_t n = strspn(name, "0123456789abcdef-");
  if (n < STORE_ID_BYTES - 1 || name[n] != '\0')
    return false;
  print_into(id, STORE_ID_BYTES, "%.36s", name);
  return name[STORE_ID_BYTES - 1] == '\0' || name[STORE_ID_BYTES - 1] == '-';
}

static void print_tree(const char *path, const char *id, const char *logs, bool json) {
  struct store_ref ref;
  AUTO(trees_deinit) struct trees t = {0};
  struct err err;
  struct stat st;
  char size[16], age[24];
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
    return;
  bool known = resolve_id_session(id, logs, NULL, &ref, &err) && trees_read(&t, &ref, &err);
  const char *status = known ? t.status : "unknown";
  if (known && strcmp(t.status, "running") == 0 && !t.owned)
    status = "open";
  char_auto_t *branch = git_line(path, &err, "rev-parse", "--abbrev-ref", "HEAD", NULL);
  bool dirty = work_is_dirty(path, t.left_out);
  enum { DESCRIPTORS = 16 };
  walked_bytes = 0;
  (void)nftw(path, add_size, DESCRIPTORS, FTW_PHYS | FTW_MOUNT);
  uint64_t bytes = walked_bytes;
  if (json) {
    json_io_put(json_pack("{ss so ss? sI sI sb ss}", "session", id, "path", json_io_string(path),
                          "branch", branch, "bytes", (json_int_t)bytes, "changed",
                          (json_int_t)st.st_mtime, "dirty", dirty, "status", status));
  } else {
    static const char units[] = "KMGT";
    double n = (double)bytes / 1024;
    size_t unit = 0;
    while (n >= 1000 && unit + 2 < sizeof units) {
      n /= 1024;
      unit++;
    }
    print_into(size, sizeof size, n < 10 ? "%.1f%c" : "%.0f%c", n, units[unit]);
    put_days(st.st_mtime, age, sizeof age);
    cli_say(stdout, "%-36s  %-13s  %6s  %4s  %-13s  %s\n", id, status, size, age,
            dirty ? "not committed" : "", resolve_id_shown(path));
  }
}

/* --- refs --- */

/* When it was made: its log says so, for as long as git keeps that; later, its commit's date. */
static long ref_time(const struct git_answer *logs, const char *ref, struct str commit_date) {
  char_auto_t *entry = NULL;
  long at = 0;
  if (asprintf(&entry, "%s@{", ref) < 0)
    BUG("out of memory");
  const char *found = memmem(buf_c(&logs->out), logs->out.n, entry, strlen(entry));
  struct str rest = found ? str_from(found + strlen(entry)) : commit_date;
  (void)str_to_long(str_cut(&rest, found ? '}' : '\n'), &at);
  return at;
}

/* The refs of one repository: the main one, or the store of a submodule. */
struct ref_list {
  const struct cli_args *args;
  const char *folder;
  const char *submodule; /* or NULL */
  int64_t since_ms;
  size_t count;
};

/* Returns false if it could not be removed. */
static bool take_ref(const struct ref_list *list, const char *ref, const char *commit,
                     const char *subject, long at, struct err *err) {
  char age[24];
  bool removes = cli_flag(list->args, "remove");
  const char *in = list->submodule;
  if (removes && !git_did(list->folder, err, "update-ref", "-d", ref, commit, NULL))
    return false;
  put_days(at, age, sizeof age);
  if (cli_flag(list->args, "json"))
    json_io_put(json_pack("{ss so* ss sI so sb}", "ref", ref, "submodule",
                          in ? json_io_string(in) : NULL, "commit", commit, "made", (json_int_t)at,
                          "subject", json_io_string(subject), "removed", removes));
  else
    cli_say(stdout, "%s%s%s%s  %4s  %.10s  %s\n", removes ? "removed: " : "", in ? in : "",
            in ? ": " : "", ref, age, commit, subject);
  return true;
}

static bool list_refs(struct ref_list *list, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer refs = {0}, logs = {0};
  const char *folder = list->folder;
  if (!git_run(folder, &refs, err, "for-each-ref",
               "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)",
               "refs/segue", NULL))
    return false;
  if (refs.exit != 0)
    return git_complain(folder, &refs, err);
  if (refs.out.n > 0 && !git_run(folder, &logs, err, "log", "--walk-reflogs", "--glob=refs/segue/*",
                                 "--date=unix", "--no-show-signature", "--format=%gD", NULL))
    return false;
  struct str rest = buf_view(&refs.out);
  bool ok = true;
  while (ok && rest.n > 0) {
    struct str line = str_next_line(&rest), ref = str_cut(&line, '\0');
    struct str commit = str_cut(&line, '\0'), date = str_cut(&line, '\0');
    char_auto_t *subject = xstrndup(line.n > 0 ? line.p : "", line.n);
    long at = ref_time(&logs, ref.p, date);
    list->count++;
    if (at * 1000 < list->since_ms)
      ok = take_ref(list, ref.p, commit.p, subject, at, err);
  }
  return ok;
}

static bool list_all_refs(const struct cli_args *args, int64_t since_ms, struct err *err) {
  const char *cwd = cli_value_or(args, "cwd", ".");
  char_auto_t *folder = realpath(cwd, NULL);
  if (folder == NULL)
    return err_set_errno(err, errno, "%.300s", cwd);
  struct ref_list list = {.args = args, .folder = folder, .since_ms = since_ms};
  bool ok = list_refs(&list, err);
  json_auto_t *stores = ok ? submodules_stores(folder) : NULL;
  JSON_EACH(stores, i, store) {
    list.submodule = json_string_value(json_array_get(store, 0));
    list.folder = json_string_value(json_array_get(store, 1));
    ok = ok && list_refs(&list, err);
  }
  if (ok && list.count == 0 && !cli_flag(args, "json"))
    fprintf(stderr, "no refs of segue in %s\n", resolve_id_shown(folder));
  return ok;
}

static int refs_run(const struct cli_args *args) {
  struct err err = {0};
  const char *age = cli_value(args, "older-than");
  int64_t since_ms = INT64_MAX;
  if (cli_flag(args, "remove") && age == NULL)
    return cli_refuse("worktrees", "--remove needs --older-than AGE: 0s means all");
  if (!resolve_id_since(age, &since_ms, &err))
    return cli_refuse("worktrees",
                      "--older-than %.60s: write how long ago (90m, 12h, 3d, 2w), or a date", age);
  return cli_done("worktrees", list_all_refs(args, since_ms, &err), &err);
}

/* --- the command --- */

static int worktrees_run(const struct cli_args *args) {
  AUTO(config_deinit) struct config user = {0};
  struct err err = {0};
  struct dirent **names = NULL;
  char folder[PATHS_BYTES], id[STORE_ID_BYTES];
  bool any = false;
  if (cli_flag(args, "refs"))
    return refs_run(args);
  if (!config_load(&user, &err))
    return cli_fail("worktrees", &err);
  const char *set = cli_text(user.workspace, "folder");
  bool ok = set != NULL || paths_state("worktrees", folder, &err);
  if (set != NULL)
    print_into(folder, sizeof folder, "%s", set);
  if (!ok)
    return cli_fail("worktrees", &err);
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char path[PATHS_BYTES + 256];
    print_into(path, sizeof path, "%s/%.255s", folder, names[i]->d_name);
    if (names_worktree(names[i]->d_name, id)) {
      if (!any && !cli_flag(args, "json"))
        printf("%-36s  %-13s  %6s  %4s  %-13s  PATH\n", "SESSION", "STATUS", "SIZE", "AGE", "");
      any = true;
      print_tree(path, id, cli_value(args, "logs"), cli_flag(args, "json"));
    }
    free(names[i]);
  }
  free(names);
  if (!any && !cli_flag(args, "json"))
    fprintf(stderr, "no worktrees in %s\n", resolve_id_shown(folder));
  return STATUS_COMPLETE;
}

const struct cli_command cmd_worktrees = {COMMAND_WORKTREES, .run = worktrees_run};
