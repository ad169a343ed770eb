/* segue worktrees: lists the worktrees of sessions, with size and age. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "core/worktree.h"
#include "host/config.h"
#include "host/paths.h"
#include "os/clock.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct cli_option options[] = {
    {"json", 0, NULL, "print one JSON object per line", false},
    {"logs", 'l', "DIR", "where session logs are", false},
    {0},
};

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
  char_auto_t *branch = trees_line(path, &err, "rev-parse", "--abbrev-ref", "HEAD", NULL);
  bool dirty = trees_is_dirty(&t, path);
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

static int worktrees_run(const struct cli_args *args) {
  AUTO(config_deinit) struct config user = {0};
  struct err err = {0};
  struct dirent **names = NULL;
  char folder[PATHS_BYTES], id[STORE_ID_BYTES];
  bool any = false;
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

const struct cli_command cmd_worktrees = {
    .name = "worktrees",
    .arguments = "[options]",
    .summary = "list the worktrees of sessions, with size and age",
    .help = "STATUS is the session's; unknown means that its log is not in the log folder. segue "
            "discard ID removes a worktree, segue rm ID the session with it.",
    .options = options,
    .run = worktrees_run,
};
