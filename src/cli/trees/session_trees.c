/* Asks git about the worktrees of a session. */
#include "cli/trees/session_trees.h"

#include "cli/cli.h"
#include "format/json_object.h"
#include "git/submodules.h"
#include "host/paths.h"

#include <stdlib.h>
#include <string.h>

char *trees_tip(const char *repo, const char *branch, struct err *err) {
  char ref[512];
  print_into(ref, sizeof ref, "refs/heads/%.450s", branch);
  return trees_line(repo, err, "rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL);
}

static bool is_left_out(const struct trees *t, struct str name) {
  const json_t *entry;
  size_t i;
  json_array_foreach(t->left_out, i, entry)
    if (str_eq(json_view(entry), name))
      return true;
  return false;
}

bool trees_is_dirty(const struct trees *t, const char *folder) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err err;
  if (!trees_is_there(folder) || !trees_git(folder, &answer, &err, "status", "--porcelain", "-z",
                                            "--untracked-files=normal", NULL))
    return false;
  bool dirty = answer.exit != 0;
  for (size_t at = 0; !dirty && at < answer.out.n; at += strlen(answer.out.p + at) + 1) {
    const char *entry = answer.out.p + at;
    size_t n = strlen(entry);
    dirty = strncmp(entry, LIT("?? ")) != 0;
    if (!dirty) /* a folder has a slash at its end */
      dirty = !is_left_out(t, (struct str){entry + 3, n - 3 - (entry[n - 1] == '/')});
  }
  return dirty;
}

bool trees_is_clean(const char *folder, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!trees_git(folder, &answer, err, "status", "--porcelain", "--untracked-files=no", NULL))
    return false;
  bool clean = answer.exit == 0 && answer.out.n == 0;
  if (answer.exit != 0)
    (void)trees_complain(folder, &answer, err);
  else if (!clean)
    err_set(err, ERR_USAGE, "%.300s has uncommitted changes: commit or stash them first%s", folder,
            getenv("SEGUE_SESSION") ? "; in a workflow, commit: movement does" : "");
  return clean;
}

/* --- where worktrees stand --- */

/* Returns the commit of a worktree's HEAD, new, and sets the branch that it is on, if any: as the
 * worktree itself has them or, if its folder is gone, the repository. NULL: there is none, or err
 * says that git could not be run. */
static char *stood_at(const char *repo, const char *path, char branch[256], struct err *err) {
  char name[PATHS_BYTES] = "HEAD", *head = NULL;
  const char *last = strrchr(path, '/');
  bool there = trees_is_there(path);
  *err = (struct err){0};
  if (!there)
    print_into(name, sizeof name, "worktrees%s/HEAD", last ? last : "/");
  if (there || trees_is_there(repo))
    head =
        trees_line(there ? path : repo, err, "rev-parse", name, "--symbolic-full-name", name, NULL);
  if (err->code != ERR_IO)
    *err = (struct err){0};
  char *on = head ? strstr(head, "\nrefs/heads/") : NULL;
  print_into(branch, 256, "%s", on ? on + strlen("\nrefs/heads/") : "");
  if (head != NULL)
    head[strcspn(head, "\n")] = '\0';
  return head;
}

bool trees_is_on_branch(const char *repo, const char *path, const char *branch, const char *target,
                        struct err *err) {
  char on[256], *head = stood_at(repo, path, on, err), *tip = NULL, *more = NULL;
  bool ok = head == NULL ? err->code == ERR_NONE : strcmp(on, branch) == 0;
  if (!ok && head != NULL)
    tip = trees_tip(repo, branch, err);
  if (!ok && head != NULL && err->code != ERR_IO) {
    more = trees_line(repo, err, "rev-list", "--max-count=1", head, "--not", tip ? tip : head,
                      target, NULL);
    ok = tip != NULL && more != NULL && more[0] == '\0';
    if (!ok && err->code != ERR_IO)
      err_set(err, ERR_INVALID,
              "%.100s %s: its worktree stands on %.80s (%.10s): git -C %.120s push . "
              "%.10s:refs/heads/%.200s",
              branch, tip ? "lacks commits" : "is gone", on[0] ? on : "a detached HEAD", head, repo,
              head, branch);
  }
  free(head);
  free(tip);
  free(more);
  return ok;
}

bool trees_is_settled(const struct trees *t, const char *target, struct err *err) {
  const struct tree_item *own = trees_own(t, err);
  if (own == NULL)
    return false;
  if (t->owned)
    return err_set(err, ERR_LOCKED, "session %s is running: wait for its end, or segue cancel it",
                   t->session);
  if (trees_is_dirty(t, own->path))
    return err_set(err, ERR_USAGE,
                   "its worktree has uncommitted work: git -C %.300s add and commit it first",
                   own->path);
  return trees_is_on_branch(t->cwd, own->path, own->branch, target, err);
}

/* Checks that something else than HEAD holds the commits of a worktree; tells what. */
static bool keeps_commits(const struct trees *t, const struct tree_item *item, bool force,
                          struct err *err) {
  char on[256], *count = NULL, *head = stood_at(t->cwd, item->path, on, err);
  bool held = head == NULL ? err->code == ERR_NONE : on[0] != '\0';
  if (on[0] != '\0' && strcmp(on, item->branch) != 0)
    cli_say(stderr, "segue: this branch stays, on which its worktree stands: %s\n", on);
  if (!held && head != NULL) {
    count = trees_line(t->cwd, err, "rev-list", "--count", head, "--not", "--glob=refs/*", NULL);
    held = count != NULL && strcmp(count, "0") == 0;
  }
  if (!held && count != NULL)
    err_set(err, ERR_USAGE,
            "no branch has %.10s commit%s of %.150s, up to %s: git -C %.150s branch "
            "NAME %.10s keeps them%s",
            count, strcmp(count, "1") == 0 ? "" : "s", item->path, head, t->cwd, head,
            force ? "" : ", --force does not");
  if (!held && force)
    cli_say(stderr, "segue: %s\n", err->text);
  free(count);
  free(head);
  return held || force;
}

bool trees_may_go(const struct trees *t, bool force, struct err *err) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->count; i++)
    if (!force && trees_is_dirty(t, t->items[i].path))
      ok = err_set(err, ERR_USAGE, "%.300s has uncommitted work: commit it, or give --force",
                   t->items[i].path);
    else
      ok = keeps_commits(t, &t->items[i], force, err);
  return ok;
}

bool trees_keep_submodules(const struct trees *t, bool force, struct err *err) {
  json_auto_t *kept = json_array();
  const json_t *one;
  bool ok = true;
  size_t i;
  for (i = 0; ok && i < t->count; i++) {
    const struct tree_item *item = &t->items[i];
    const struct submodules_where where = {t->session, t->cwd, item->path, item->base};
    ok = submodules_keep(&where, kept, err);
    if (!ok && force) {
      cli_say(stderr, "segue: %s\n", err->text);
      ok = true;
    }
  }
  json_array_foreach(kept, i, one)
    cli_say(stderr, "segue: submodule %s keeps %.10s as %s\n", json_view_at(one, "submodule").p,
            json_view_at(one, "commit").p, json_view_at(one, "ref").p);
  return ok;
}

void trees_diff(const struct store_ref *ref, struct buf *out, bool *cut) {
  AUTO(trees_deinit) struct trees t = {0};
  struct err ignored;
  struct git_ask ask;
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  *cut = false;
  if (!trees_read(&t, ref, &ignored))
    return;
  if (trees_ask_diff(&t, &ask) && git_now(&ask, &answer, &ignored))
    *cut = trees_take_diff(&answer, 0, LIMIT_TREE_DIFF_BYTES, out) || t.more_paths;
}

void trees_sign_as_nobody(struct git_ask *ask) {
  static const char *const nobody[] = {"GIT_AUTHOR_NAME=segue", "GIT_AUTHOR_EMAIL=segue@localhost",
                                       "GIT_COMMITTER_NAME=segue",
                                       "GIT_COMMITTER_EMAIL=segue@localhost"};
  struct err err;
  char_auto_t *mail = trees_line(ask->folder, &err, "config", "user.email", NULL);
  for (size_t i = 0; mail == NULL && i < ARRAY_LEN(nobody); i++)
    ask->extra[i] = nobody[i];
}

bool trees_discard(const struct trees *t, bool branches, struct err *err) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->count; i++) {
    const struct tree_item *item = &t->items[i];
    struct err ignored;
    /* git may still know one whose folder is gone */
    ok = trees_did(t->cwd, err, "worktree", "remove", "--force", "--force", item->path, NULL) ||
         !trees_is_there(item->path);
    if (ok && branches)
      (void)trees_did(t->cwd, &ignored, "branch", "-D", "--quiet", "--", item->branch, NULL);
  }
  return ok;
}
