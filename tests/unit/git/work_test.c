/* Where a session's work is, after what agents do to branches; and that none of it gets lost. */

#include "base/memory.h"
#include "format/json_object.h"
#include "git/run.h"
#include "git/work.h"
#include "os/tmpdir.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID "0198c000-0000-7000-8000-000000000001"
#define CASE                                                                                       \
  "rm -rf m w x; git init -q m; cd m; git config user.name a; git config user.email a@b; "         \
  "echo 1 >a; git add a; git commit -qm first; git branch user; "                                  \
  "git worktree add -q -b segue/" ID " ../w; cd ../w; "                                            \
  "c() { echo $1 >>$1; git add $1; git commit -qm $1; }; B=segue/" ID                              \
  "; S='-c sequence.editor=true'; "

static char *root;

static int setup(void **state) {
  struct err err;
  (void)state;
  root = tmpdir_make(&err);
  setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1);
  setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
  setenv("GIT_CONFIG_COUNT", "1", 1);
  setenv("GIT_CONFIG_KEY_0", "init.defaultBranch", 1);
  setenv("GIT_CONFIG_VALUE_0", "main", 1);
  return root == NULL || chdir(root) != 0;
}

static int teardown(void **state) {
  struct err err;
  (void)state;
  assert_int_equal(chdir("/"), 0);
  assert_true(tmpdir_remove(root, &err));
  free(root);
  return 0;
}

TEST_GROUP(setup, teardown)

static void sh(const char *command) {
  buf_auto_t text = buf_of("exec >out 2>&1; set -e; %s", command);
  if (system(buf_c(&text)) != 0) {
    (void)!system("cat out");
    fail_msg("%s", command);
  }
}

/* Puts a commit by its subject. */
static void put_subject(struct buf *out, const char *word, const char *commit) {
  struct err err;
  char_auto_t *subject = git_line("m", &err, "log", "-1", "--format=%s", commit, NULL);
  buf_printf(out, " %s %s", word, subject ? subject : commit);
}

static void put_work(struct buf *out, const struct work *w) {
  buf_printf(out, "%s", work_state_name(w->state));
  if (w->head[0])
    put_subject(out, "head", w->head);
  const char *on = w->on[0] ? w->on : "-";
  buf_printf(out, " on %s", strncmp(on, LIT("segue/")) == 0 ? "branch" : on);
  if (w->lacks[0])
    put_subject(out, "lacks", w->lacks);
  JSON_EACH(w->others, i, one)
    buf_printf(out, " other %s", json_word_at(one, "branch"));
  JSON_EACH(w->old, i, one)
    put_subject(out, "old", json_string_value(one));
  buf_puts(out, w->dirty ? " dirty" : "");
}

/* The count of commits that no ref holds. */
static long unreachable(void) {
  sh("git -C m fsck --unreachable --no-reflogs | grep -c commit >n || true");
  FILE *f = fopen("n", "r");
  long n = -1;
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld", &n), 1);
  (void)fclose(f);
  return n;
}

static void is_kept(struct work_where *where, struct work *w) {
  struct err err = {0};
  json_auto_t *kept = json_array(), *again = json_array();
  if (!work_keep(where, w, kept, &err))
    fail_msg("%s", err.text);
  sh("git -C m worktree remove --force --force ../w 2>/dev/null || true; git -C m worktree prune; "
     "git -C m update-ref -d refs/heads/segue/" ID);
  assert_int_equal(unreachable(), 0);
  work_deinit(w);
  assert_true(work_find(where, w, &err));
  assert_int_equal(w->state, WORK_GONE);
  assert_true(work_keep(where, w, again, &err));
  assert_int_equal(json_array_size(again), 0);
}

TEST(each_thing_that_an_agent_does) {
  static const struct {
    const char *does, *finds;
  } cases[] = {
      {"true", "on_branch head first on branch"},
      {"c A; c B; echo x >new", "on_branch head B on branch dirty"},
      {"git checkout -qb mine; c A; c B", "ahead head B on mine"},
      {"git checkout -qb mine; echo x >a", "on_branch head first on mine dirty"},
      {"c A; git branch -m feature/renamed; c B", "ahead head B on feature/renamed"},
      {"c A; git checkout -q --detach; c B; c C", "ahead head C on -"},
      {"git branch -m x; git checkout -q --detach; git branch -D x; c A", "ahead head A on -"},
      /* rewritten */
      {"c A; git commit -q --amend -m A2", "rewritten head A2 on branch old A"},
      {"c A; echo x >a; git commit -qa --amend -m A2; git commit -q --amend -m A3",
       "rewritten head A3 on branch old A2 old A"},
      {"c A; c B; git -C ../m commit -q --allow-empty -m M; git rebase -q main",
       "rewritten head B on branch old B"},
      {"c A; c B; git reset -q --soft HEAD~2; git commit -qm squash",
       "rewritten head squash on branch old B"},
      {"c A; c B; GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -qi HEAD~2; c C",
       "rewritten head C on branch old B"},
      {"c A; git checkout -qb mine HEAD~1; c M; git cherry-pick $B",
       "rewritten head A on mine old A"},
      {"c A; git checkout -q --detach; git commit -q --amend -m A2",
       "rewritten head A2 on - old A"},
      {"git checkout -qb t; c A; git checkout -q $B; git merge -q --squash t; git commit -qm S; "
       "git branch -D t",
       "rewritten head S on branch old A"},
      /* left behind */
      {"c A; git checkout -q user", "left_behind head first on user lacks A"},
      {"c A; c B; git reset -q --hard HEAD~2", "left_behind head first on branch lacks B"},
      {"c A; git commit -q --amend -m A2; git reset -q --hard HEAD~1; c B",
       "left_behind head B on branch lacks A2"},
      {"git checkout -q --detach; c A; git checkout -q $B",
       "left_behind head first on branch lacks A"},
      {"c A; git checkout -q --orphan o; git commit -qm O; git rm -qf a; git commit -qm O2",
       "left_behind head O2 on o lacks A"},
      {"c A; echo x >a; git commit -qam B; git checkout -q user; echo y >a; git commit -qam U; "
       "git checkout -q $B; git rebase user || true",
       "left_behind head A on - lacks B dirty"},
      /* others, and what is held */
      {"git checkout -qb mine; c A; git checkout -q $B; c B",
       "on_branch head B on branch other mine"},
      {"c A; git branch saved; git reset -q --hard HEAD~1",
       "on_branch head first on branch other saved"},
      {"c A; git tag saved; git reset -q --hard HEAD~1", "on_branch head first on branch"},
      {"git -C ../m checkout -q user; cd ../m; c U; cd ../w; git checkout -q --detach user; "
       "git checkout -q $B",
       "on_branch head first on branch"},
      {"git -C ../m checkout -q user; cd ../m; c U; cd ../w; git merge -q user; c A",
       "on_branch head A on branch"},
      {"c A; git checkout -qb t; c T; git checkout -q $B; git merge -q --no-ff t -m M; git branch "
       "-d t",
       "on_branch head M on branch"},
      /* the folder */
      {"git checkout -qb mine; c A; git checkout -q --detach; c B; rm -rf ../w",
       "ahead head B on -"},
      {"c A; git worktree remove --force ../w", "on_branch on -"},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t text = {0}, found = {0}, repo = {0}, tree = {0};
    struct work w = {0};
    struct err err = {0};
    buf_printf(&text, CASE "%s", cases[i].does);
    sh(buf_c(&text));
    buf_printf(&repo, "%s/m", root);
    buf_printf(&tree, "%s/w", root);
    char_auto_t *base = git_line("m", &err, "rev-parse", "main^{/first}", NULL);
    struct work_where where = {.session = ID,
                               .repo = buf_c(&repo),
                               .worktree = buf_c(&tree),
                               .branch = "segue/" ID,
                               .base = base};
    if (!work_find(&where, &w, &err))
      fail_msg("%s: %s", cases[i].does, err.text);
    put_work(&found, &w);
    if (strcmp(buf_c(&found), cases[i].finds) != 0)
      fail_msg("%s:\n%s\n%s", cases[i].does, buf_c(&found), cases[i].finds);
    if (i % 2 == 0 && w.state != WORK_LEFT_BEHIND) { /* else none is adopted, and all is kept */
      char_auto_t *was = w.head[0] ? xstrdup(w.head) : xstrdup(w.tip);
      if (!work_adopt(&where, &w, &err))
        fail_msg("%s: %s", cases[i].does, err.text);
      assert_int_equal(json_array_size(w.kept), json_array_size(w.old));
      work_deinit(&w);
      assert_true(work_find(&where, &w, &err));
      assert_int_equal(w.state, WORK_ON_BRANCH);
      assert_string_equal(w.tip, was);
    }
    is_kept(&where, &w);
    work_deinit(&w);
  }
}
