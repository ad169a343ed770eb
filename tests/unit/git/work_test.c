/* Where a session's work is, after what agents do to branches; and that none of it gets lost. */

#include "base/memory.h"
#include "format/json_object.h"
#include "git/run.h"
#include "git/work.h"
#include "os/tmpdir.h"
#include "support/data.h"
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
  DATA_ROWS("git/work/each_thing_that_an_agent_does.yaml", c, does, finds) {
    buf_auto_t text = {0}, found = {0}, repo = {0}, tree = {0};
    struct work w = {0};
    struct err err = {0};
    buf_printf(&text, CASE "%s", c.does);
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
      fail_msg("%s: %s", c.does, err.text);
    put_work(&found, &w);
    if (strcmp(buf_c(&found), c.finds) != 0)
      fail_msg("%s:\n%s\n%s", c.does, buf_c(&found), c.finds);
    if (c.at % 2 == 1 && w.state != WORK_LEFT_BEHIND) { /* else none is adopted, and all is kept */
      char_auto_t *was = w.head[0] ? xstrdup(w.head) : xstrdup(w.tip);
      if (!work_adopt(&where, &w, &err))
        fail_msg("%s: %s", c.does, err.text);
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
