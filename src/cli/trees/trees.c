/* Asks git about the worktrees of a session. */
#include "cli/trees/trees.h"

#include "base/log.h"
#include "cli/cli.h"
#include "host/paths.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool worked_on(const struct store_ref *ref, const char *branch) {
  struct trees t;
  struct err err;
  if (!trees_read(&t, ref, &err))
    return false;
  const struct tree_item *own = trees_own(&t, &err);
  bool is = own != NULL && strcmp(own->branch, branch) == 0;
  trees_deinit(&t);
  return is;
}

bool trees_find_branch(const char *branch, const char *logs, struct store_ref *ref,
                       struct err *err) {
  char where[PATHS_BYTES];
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  bool found = false;
  if (!paths_logs(logs, where, err))
    return false;
  store_at(&store, where);
  if (store_exists(&store) && !store_list(&store, &ids, &count, err))
    return false;
  for (int named = 1; named >= 0 && !found; named--) /* first those whose id it holds */
    for (size_t i = 0; i < count && !found; i++)
      if ((strstr(branch, ids[i].id) != NULL) == (named == 1)) {
        store_ref(&store, ids[i].id, ref);
        found = worked_on(ref, branch);
      }
  free(ids);
  return found || err_set(err, ERR_NOT_FOUND, "no session worked on branch %.200s", branch);
}

/* --- git --- */

static bool ask_git(const char *folder, struct git_answer *answer, struct err *err, va_list words) {
  struct git_ask ask = {.folder = folder};
  const char *word;
  size_t n = 0;
  while ((word = va_arg(words, const char *)) != NULL) {
    assert(n + 1 < GIT_WORDS);
    ask.words[n++] = word;
  }
  return git_now(&ask, answer, err);
}

bool trees_git(const char *folder, struct git_answer *answer, struct err *err, ...) {
  va_list words;
  va_start(words, err);
  bool ok = ask_git(folder, answer, err, words);
  va_end(words);
  return ok;
}

char *trees_line(const char *folder, struct err *err, ...) {
  struct git_answer answer;
  va_list words;
  char *line = NULL;
  va_start(words, err);
  bool ok = ask_git(folder, &answer, err, words);
  va_end(words);
  if (!ok)
    return NULL;
  if (answer.exit == 0) {
    struct str text = str_trim(buf_view(&answer.out));
    line = xstrndup(text.p ? text.p : "", text.n);
  } else {
    struct buf why = {0};
    git_complaint(&answer, &why);
    (void)err_set(err, ERR_INVALID, "git: %.400s", buf_c(&why));
    buf_deinit(&why);
  }
  git_answer_deinit(&answer);
  return line;
}

bool trees_is_dirty(const char *folder) {
  struct git_answer answer;
  struct err err;
  if (!trees_is_there(folder) || !trees_git(folder, &answer, &err, "status", "--porcelain", NULL))
    return false;
  bool dirty = answer.exit == 0 && answer.out.n > 0;
  git_answer_deinit(&answer);
  return dirty;
}

void trees_diff(const struct store_ref *ref, struct buf *out, bool *cut) {
  struct trees t = {0};
  struct err ignored;
  struct git_ask ask;
  struct git_answer answer;
  *cut = false;
  if (!trees_read(&t, ref, &ignored))
    return;
  if (trees_ask_diff(&t, &ask) && git_now(&ask, &answer, &ignored)) {
    *cut = trees_take_diff(&answer, 0, LIMIT_TREE_DIFF_BYTES, out) || t.more_paths;
    git_answer_deinit(&answer);
  }
  trees_deinit(&t);
}

void trees_sign_as_nobody(struct git_ask *ask) {
  static const char *const nobody[] = {"GIT_AUTHOR_NAME=segue", "GIT_AUTHOR_EMAIL=segue@localhost",
                                       "GIT_COMMITTER_NAME=segue",
                                       "GIT_COMMITTER_EMAIL=segue@localhost"};
  struct err err;
  char *mail = trees_line(ask->folder, &err, "config", "user.email", NULL);
  for (size_t i = 0; mail == NULL && i < ARRAY_LEN(nobody); i++)
    ask->extra[i] = nobody[i];
  free(mail);
}

int trees_merge(const char *folder, const char *commit, const char *branch,
                struct git_answer *answer, struct err *err) {
  char message[512];
  struct git_ask ask = {.folder = folder,
                        .words = {"merge", "--no-ff", "--no-edit", "--no-verify",
                                  "--no-verify-signatures", "--quiet", "--no-stat", "-m", message,
                                  commit, NULL}};
  (void)snprintf(message, sizeof message, "Merge %.450s", branch);
  trees_sign_as_nobody(&ask);
  return git_now(&ask, answer, err) ? 0 : -1;
}

bool trees_commit(const char *folder, struct err *err, ...) {
  struct git_ask ask = {.folder = folder, .words = {"commit", "--quiet", "--no-verify"}};
  struct git_answer answer;
  const char *word;
  size_t n = 3;
  va_list words;
  va_start(words, err);
  while ((word = va_arg(words, const char *)) != NULL) {
    assert(n + 1 < GIT_WORDS);
    ask.words[n++] = word;
  }
  va_end(words);
  trees_sign_as_nobody(&ask);
  if (!git_now(&ask, &answer, err))
    return false;
  bool ok = answer.exit == 0;
  struct buf why = {0};
  git_complaint(&answer, &why);
  if (!ok)
    (void)err_set(err, ERR_INVALID, "git commit: %.400s", buf_c(&why));
  buf_deinit(&why);
  git_answer_deinit(&answer);
  return ok;
}

bool trees_discard(const struct trees *t, bool branches, struct err *err) {
  bool ok = true;
  for (size_t i = 0; ok && i < t->count; i++) {
    const struct tree_item *item = &t->items[i];
    char *said = NULL;
    if (trees_is_there(item->path)) {
      said = trees_line(t->cwd, err, "worktree", "remove", "--force", "--force", item->path, NULL);
      ok = said != NULL;
      free(said);
    } else { /* git may still know it */
      free(trees_line(t->cwd, err, "worktree", "prune", NULL));
    }
    struct err ignored;
    if (ok && branches)
      free(trees_line(t->cwd, &ignored, "branch", "-D", "--quiet", "--", item->branch, NULL));
  }
  return ok;
}

/* Removes the item's branch if something else holds its tip, too; each holder is one line of the
 * list, the branch included. */
bool trees_drop_branch(const struct trees *t, const struct tree_item *item) {
  char ref[512];
  struct err err;
  (void)snprintf(ref, sizeof ref, "refs/heads/%.450s", item->branch);
  char *tip =
      trees_line(t->cwd, &err, "rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL);
  if (tip == NULL)
    return true; /* it is gone */
  char *holders = trees_line(t->cwd, &err, "for-each-ref", "--contains", tip, "--format=x",
                             "refs/heads", "refs/remotes", "refs/tags", NULL);
  bool others = holders != NULL && strchr(holders, '\n') != NULL;
  free(holders);
  free(tip);
  if (others)
    free(trees_line(t->cwd, &err, "branch", "-D", "--quiet", "--", item->branch, NULL));
  return others;
}

bool trees_sure(const char *question, bool yes, struct err *err) {
  char answer[16] = "";
  if (yes)
    return true;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return err_set(err, ERR_USAGE, "there is nobody to ask: give --yes");
  fputs(question, stderr);
  fputs(" [y/N] ", stderr);
  bool said = fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
  return said || err_set(err, ERR_USAGE, "nothing was done");
}
