/* Tells of a merge that is under way, and undoes one that was cut off. */
#include "cli/trees/underway.h"

#include "base/log.h"
#include "cli/trees/trees.h"
#include "os/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_state(struct underway *u) {
  char line[128] = "";
  rewind(u->file);
  if (fgets(line, sizeof line, u->file) == NULL)
    return;
  line[strcspn(line, "\n")] = '\0';
  if (strcmp(line, "conflict") == 0)
    u->state = UNDERWAY_CONFLICT;
  else if (strncmp(line, LIT("merging ")) == 0)
    u->state = UNDERWAY_MERGING;
  (void)snprintf(u->tip, sizeof u->tip, "%.64s", u->state == UNDERWAY_MERGING ? line + 8 : "");
}

bool underway_open(struct underway *u, const char *folder, struct err *err) {
  *u = (struct underway){.folder = folder};
  u->git_dir = trees_line(folder, err, "rev-parse", "--absolute-git-dir", NULL);
  if (u->git_dir == NULL)
    return false;
  struct buf path = {0};
  buf_printf(&path, "%s/" GIT_SEGUE_MERGE, u->git_dir);
  u->path = buf_take(&path);
  u->file = fopen(u->path, "a+e");
  if (u->file == NULL)
    return err_set_errno(err, errno, "cannot write %.300s", u->path);
  if (!fs_lock(fileno(u->file))) {
    (void)fclose(u->file);
    u->file = NULL;
    return err_set(err, ERR_LOCKED, "another segue integrate is running in %.300s", folder);
  }
  read_state(u);
  return true;
}

bool underway_say(struct underway *u, enum underway_state state, const char *tip, struct err *err) {
  u->state = state;
  bool ok = ftruncate(fileno(u->file), 0) == 0;
  if (state == UNDERWAY_MERGING)
    ok = ok && fprintf(u->file, "merging %s\n", tip) > 0;
  else if (state == UNDERWAY_CONFLICT)
    ok = ok && fputs(GIT_SEGUE_MERGE_CONFLICT, u->file) >= 0;
  ok = ok && fflush(u->file) == 0 && fsync(fileno(u->file)) == 0;
  return ok || err_set_errno(err, errno, "cannot write %.300s", u->path);
}

static void drop_git_lock(const struct underway *u, const char *name) {
  struct buf lock = {0};
  buf_printf(&lock, "%s/%s.lock", u->git_dir, name);
  (void)unlink(buf_c(&lock));
  buf_deinit(&lock);
}

/* Removes the files that the merge was to add: none of them existed before, or git would have
 * refused. */
static bool drop_added(const struct underway *u, struct err *err) {
  struct git_answer added;
  char *top = trees_line(u->folder, err, "rev-parse", "--show-toplevel", NULL);
  if (top == NULL || !trees_git(u->folder, &added, err, "diff", "--name-only", "--no-renames",
                                "--diff-filter=A", "-z", "--no-ext-diff", "HEAD", u->tip, NULL)) {
    free(top);
    return false;
  }
  for (size_t at = 0; added.exit == 0 && at < added.out.n;) {
    const char *name = added.out.p + at;
    struct buf path = {0};
    buf_printf(&path, "%s/%s", top, name);
    (void)unlink(buf_c(&path));
    buf_deinit(&path);
    at += strnlen(name, added.out.n - at) + 1;
  }
  git_answer_deinit(&added);
  free(top);
  return true;
}

bool underway_undo(struct underway *u, struct err *err) {
  bool own = getenv("SEGUE_SESSION") != NULL && strstr(u->git_dir, "/worktrees/") != NULL;
  if (!own)
    return err_set(err, ERR_USAGE,
                   "a merge by segue integrate was interrupted in %.200s: undo it (git reset "
                   "--hard, if no change there is yours) and remove %.200s",
                   u->folder, u->path);
  drop_git_lock(u, "index");
  drop_git_lock(u, "HEAD");
  char *said = trees_line(u->folder, err, "reset", "--hard", "--quiet", NULL);
  bool ok = said != NULL && drop_added(u, err) && underway_say(u, UNDERWAY_NONE, NULL, err);
  free(said);
  return ok;
}

void underway_close(struct underway *u) {
  if (u->file != NULL && u->state == UNDERWAY_NONE)
    (void)unlink(u->path);
  if (u->file != NULL)
    (void)fclose(u->file);
  free(u->path);
  free(u->git_dir);
  *u = (struct underway){0};
}
