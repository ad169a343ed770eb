/* Asks git about the worktrees of a session. */
#include "cli/trees/session_trees.h"

#include "base/file.h"
#include "cli/cli.h"
#include "cli/trees/merging.h"
#include "format/json_object.h"
#include "git/submodules.h"

#include <stdlib.h>
#include <string.h>

char *trees_tip(const char *repo, const char *branch, struct err *err) {
  char ref[512];
  print_into(ref, sizeof ref, "refs/heads/%.450s", branch);
  return git_line(repo, err, "rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL);
}

bool trees_is_clean(const char *folder, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!git_run(folder, &answer, err, "status", "--porcelain", "--untracked-files=no", NULL))
    return false;
  if (answer.exit != 0)
    return git_complain(folder, &answer, err);
  return answer.out.n == 0 ||
         err_set(err, ERR_USAGE, "%.300s has uncommitted changes: commit or stash them first%s",
                 folder, getenv("SEGUE_SESSION") ? "; in a workflow, commit: movement does" : "");
}

/* --- where the work is --- */

/* Names a commit of a child that neither the session's branch nor the target has. */
static bool tell_child(const struct trees *t, const struct tree_item *child, const char *target,
                       const char *branch, const char *commit, struct err *err) {
  if (commit[0] == '\0')
    return true;
  char_auto_t *more = git_line(t->cwd, err, "rev-list", "--max-count=1", commit, "--not", target,
                               trees_own(t, err)->branch, child->base, NULL);
  if (more != NULL && more[0] != '\0')
    cli_say(stderr, "segue: %s (%.10s) has work of its child %s, which is left alone\n", branch,
            commit, child->movement);
  return more != NULL;
}

/* Tells of the children of the session, and of those that it goes on from. */
static bool tell_children(const struct trees *t, const struct trees *of, const char *target,
                          struct err *err) {
  bool ok = true;
  for (size_t i = 0; ok && i < of->count; i++) {
    const struct tree_item *child = &of->items[i];
    AUTO(work_deinit) struct work w = {0};
    struct work_where where;
    trees_where(of, child, &where);
    where.commits_only = true;
    if (child->turn == 0)
      continue;
    ok = work_find(&where, &w, err) &&
         tell_child(t, child, target, w.on[0] ? w.on : "a detached HEAD", w.head, err) &&
         (strcmp(w.tip, w.head) == 0 || tell_child(t, child, target, child->branch, w.tip, err));
    JSON_EACH(w.others, k, other)
      ok = ok && tell_child(t, child, target, json_word_at(other, "branch"),
                            json_word_at(other, "commit"), err);
  }
  AUTO(trees_deinit) struct trees parent = {0};
  return ok && (!trees_read_parent(of, &parent) || tell_children(t, &parent, target, err));
}

bool trees_is_settled(const struct trees *t, const char *target, FILE *out, struct err *err) {
  struct work_where where;
  const struct tree_item *own = trees_own(t, err);
  if (own == NULL)
    return false;
  if (t->owned)
    return err_set(err, ERR_LOCKED, "session %s is running: wait for its end, or segue cancel it",
                   t->session);
  if (work_is_dirty(own->path, t->left_out))
    return err_set(err, ERR_USAGE,
                   "its worktree has uncommitted work: git -C %.300s add and commit it first",
                   own->path);
  trees_where(t, own, &where);
  where.commits_only = true;
  return merging_adopt(&where, target, out, err) &&
         tell_children(t, t, target ? target : own->branch, err);
}

bool trees_may_go(const struct trees *t, struct err *err) {
  for (size_t i = 0; i < t->count; i++)
    if (work_is_dirty(t->items[i].path, t->left_out))
      return err_set(err, ERR_USAGE, "%.300s has uncommitted work: commit it, or give --force",
                     t->items[i].path);
  return true;
}

bool trees_keep_commits(const struct trees *t, const struct tree_item *item, bool branch_goes,
                        struct err *err) {
  AUTO(work_deinit) struct work w = {0};
  json_auto_t *kept = json_array();
  struct work_where where;
  trees_where(t, item, &where);
  where.commits_only = true;
  if (!work_find(&where, &w, err))
    return false;
  where.branch = branch_goes ? where.branch : NULL;
  if (!work_keep(&where, &w, kept, err))
    return false;
  if (w.on[0] != '\0' && strcmp(w.on, item->branch) != 0)
    cli_say(stderr, "segue: this branch stays, on which its worktree stands: %s\n", w.on);
  JSON_EACH(w.others, i, one)
    if (strcmp(json_word_at(one, "branch"), w.on) != 0)
      cli_say(stderr, "segue: this branch stays, which has work of it: %s\n",
              json_word_at(one, "branch"));
  JSON_EACH(kept, i, one)
    cli_say(stderr, "segue: %.10s is on no other branch and stays as %s\n",
            json_word_at(one, "commit"), json_word_at(one, "ref"));
  return true;
}

bool trees_keep_submodules(const struct trees *t, bool force, struct err *err) {
  json_auto_t *kept = json_array();
  bool ok = true;
  for (size_t i = 0; ok && i < t->count; i++) {
    const struct tree_item *item = &t->items[i];
    const struct submodules_where where = {t->session, t->cwd, item->path, item->base};
    ok = submodules_keep(&where, kept, err);
    if (!ok && force) {
      cli_say(stderr, "segue: %s\n", err->text);
      ok = true;
    }
  }
  JSON_EACH(kept, i, one)
    cli_say(stderr, "segue: submodule %s keeps %.10s as %s\n", json_view_at(one, "submodule").p,
            json_view_at(one, "commit").p, json_view_at(one, "ref").p);
  return ok;
}

void trees_diff(const struct store_ref *ref, struct buf *out, bool *cut) {
  static const char *const options[] = {"--no-color", NULL};
  AUTO(trees_deinit) struct trees t = {0};
  AUTO(tree_diff_deinit) struct tree_diff d = {0};
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err ignored;
  *cut = false;
  if (trees_read(&t, ref, &ignored) && tree_diff_begin(&d, &t, &ignored) &&
      tree_diff_now(&d, options, &answer, &ignored))
    *cut = trees_take_diff(&answer, 0, LIMIT_TREE_DIFF_BYTES, out) || t.more_paths || d.more;
}

void trees_sign_as_nobody(struct git_ask *ask) {
  struct err err;
  char_auto_t *mail = git_line(ask->folder, &err, "config", "user.email", NULL);
  if (mail == NULL)
    git_sign_as_nobody(ask);
}

static bool git_lists(const struct trees *t, const char *path) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t entry = {0};
  struct err ignored;
  if (!git_run(t->cwd, &answer, &ignored, "worktree", "list", "--porcelain", "-z", NULL))
    return false;
  buf_printf(&entry, "worktree %s", path);
  for (size_t at = 0; at < answer.out.n; at += strlen(answer.out.p + at) + 1)
    if (strcmp(answer.out.p + at, buf_c(&entry)) == 0)
      return true;
  return false;
}

/* Removes a worktree, also one of which a killed git, or an agent, has left a part: git refuses
 * that, but forgets it once its files are gone. A log alone is no reason to remove a folder: it
 * must be named after the session, and git must know it. */
static bool remove_worktree(const struct trees *t, const char *path, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  const struct git_ask files = {
      .folder = "/", .words = {"rm", "-rf", "--", path, NULL}, .other = true};
  const char *last = strrchr(path, '/');
  size_t n = strlen(t->session);
  struct err ignored;
  if (last == NULL || n == 0 || strncmp(last + 1, t->session, n) != 0)
    return err_set(err, ERR_INVALID, "%.300s is no worktree of session %s", path, t->session);
  if (git_did(t->cwd, err, "worktree", "remove", "--force", "--force", path, NULL) ||
      !file_is_folder(path))
    return true;
  if (!git_lists(t, path) || !git_now(&files, &answer, err))
    return false;
  (void)git_did(t->cwd, &ignored, "worktree", "remove", "--force", "--force", path, NULL);
  return !file_is_folder(path);
}

bool trees_discard(const struct trees *t, bool branches, struct err *err) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->count; i++) {
    const struct tree_item *item = &t->items[i];
    struct err why;
    ok = trees_keep_commits(t, item, branches, err) && remove_worktree(t, item->path, err);
    if (ok && branches &&
        !git_did(t->cwd, &why, "branch", "-D", "--quiet", "--", item->branch, NULL) &&
        strstr(why.text, "checked out") != NULL)
      cli_say(stderr, "segue: its branch stays: %s\n", why.text);
  }
  return ok;
}
