/* A working tree before and after: with git on its stand-in, and without. */

#include "format/json_object.h"
#include "git/tree.h"
#include "os/tmpdir.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *root;

static int setup(void **state) {
  struct err err;
  (void)state;
  root = tmpdir_make(&err);
  return root == NULL || chdir(root) != 0 || mkdir("work", 0755) != 0 || mkdir("own", 0755) != 0 ||
         chdir("work") != 0;
}

static int teardown(void **state) {
  struct err err;
  (void)state;
  assert_int_equal(chdir("/"), 0);
  assert_true(tmpdir_remove(root, &err));
  free(root);
  return 0;
}

static void put(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

static void sh(const char *command) {
  int status = system(command);
  assert_int_equal(status, 0);
}

#define GIT "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main "

/* Runs what the tree asks for, as the host does, but blocking. */
static bool run(const struct tree *whole, enum tree_step step, struct buf *out) {
  const struct tree *t = tree_asks(whole);
  buf_auto_t line = {0};
  put("../ask", step == TREE_BLOBS ? buf_c(&t->ask) : "");
  buf_printf(&line, "cd %s && env -i PATH=/usr/bin:/bin HOME=/nowhere", t->top);
  for (size_t i = 0; i < ARRAY_LEN(t->env); i++)
    buf_printf(&line, " %s", t->env[i]);
  for (size_t i = 0; tree_environment[i]; i++)
    buf_printf(&line, " %s", tree_environment[i]);
  for (size_t i = 0; t->argv[i]; i++)
    buf_printf(&line, " '%s'", t->argv[i]);
  buf_printf(&line, " < %s/ask 2>%s/err", root, root);
  FILE *f = popen(buf_c(&line), "r");
  assert_non_null(f);
  for (int c; (c = fgetc(f)) != EOF;)
    buf_putc(out, (char)c);
  return pclose(f) == 0;
}

static enum tree_step drive(struct tree *t, enum tree_step step) {
  while (step == TREE_LIST || step == TREE_BLOBS) {
    buf_auto_t out = {0};
    bool ok = run(t, step, &out);
    step =
        step == TREE_LIST ? tree_listed(t, buf_view(&out), ok) : tree_blobs(t, buf_view(&out), ok);
  }
  return step;
}

static struct tree *tree_of(const char *dir, const json_t *protect, const struct tree *older) {
  char own[256], name[64];
  print_into(own, sizeof own, "%s/own", root);
  print_into(name, sizeof name, "segue-test-tree-%ld%s", (long)getpid(), older ? "-2" : "");
  const char *const own_folders[] = {own, NULL};
  return tree_new(&(struct tree_spec){dir, name, own_folders, protect, older});
}

static struct tree_picture *look(struct tree *t, const struct tree_picture *last) {
  assert_int_equal(drive(t, tree_look(t, last)), TREE_DONE);
  return tree_take(t);
}

/* Compares two pictures and gives what changed as text. */
static void expect_between(struct tree *t, const struct tree_picture *before,
                           const struct tree_picture *after, const char *expected) {
  assert_int_equal(drive(t, tree_compare(t, before, after)), TREE_DONE);
  buf_auto_t text = {0};
  JSON_EACH(t->changed, i, file) {
    const json_t *added = json_object_get(file, "added");
    buf_printf(&text, "%s%s", i ? ", " : "", json_string_value(json_object_get(file, "path")));
    if (added)
      buf_printf(&text, " +%d -%d", (int)json_integer_value(added),
                 (int)json_integer_value(json_object_get(file, "removed")));
  }
  assert_string_equal(buf_c(&text), expected);
}

static void expect_protected(const char *dir, const json_t *protect, const char *command,
                             const char *expected) {
  struct tree *t = tree_of(dir, protect, NULL);
  struct tree_picture *before = look(t, NULL);
  sh(command);
  struct tree_picture *after = look(t, before);
  expect_between(t, before, after, expected);
  tree_picture_free(before);
  tree_picture_free(after);
  tree_free(t);
}

/* Compares `dir` around a shell command. */
static void expect_change(const char *dir, const char *command, const char *expected) {
  expect_protected(dir, NULL, command, expected);
}

TEST_WITH(setup, teardown, test_without_git) {
  put("a", "one\ntwo\n");
  put("gone", "x\n");
  sh("mkdir -p sub/deep && ln -s a link && printf 'a\\0b' > binary");
  expect_change(".", ":", "");
  expect_change(".", "touch a", "");
  expect_change(".", "echo three >> a; rm gone; echo new > sub/deep/n; ln -sf sub link",
                "a +1 -0, gone +0 -1, link +1 -1, sub/deep/n +1 -0");
  expect_change(".", "printf 'a\\0c' > binary", "binary");
  expect_change(".", "chmod +x a", "a +0 -0");
}

/* A large tree is not kept: a change is seen, its lines are not counted. */
TEST_WITH(setup, teardown, test_large_without_git) {
  sh("i=0; while [ $i -lt 1100 ]; do echo x > f$i; i=$((i+1)); done");
  expect_change(".", "echo y >> f7; echo z > new; rm f8", "f7, f8, new +1 -0");
}

TEST_WITH(setup, teardown, test_own_files) {
  char dir[256];
  print_into(dir, sizeof dir, "%s", root);
  put("../own/log", "x");
  expect_change(dir, "echo more >> ../own/log; echo new > ../own/new", "");
  expect_change(dir, "mkdir ../owner; echo new > ../owner/new", "owner/new +1 -0");
}

static void repository(void) {
  put("a", "one\ntwo\n");
  put("b", "b\n");
  put("c", "c\n");
  sh("mkdir sub && echo s > sub/s && echo '*.o' > .gitignore && " GIT "init -q . && " GIT
     "add -A && " GIT "commit -qm first");
}

TEST_WITH(setup, teardown, test_repository) {
  repository();
  expect_change(".", ":", "");
  expect_change(".", "touch a", "");
  expect_change(".", "echo three >> a; rm b; echo n > new; echo o > x.o",
                "a +1 -0, b +0 -1, new +1 -0");
  /* changed before the call: compared with what it was then */
  expect_change(".", ":", "");
  expect_change(".", "echo four >> a; echo m >> new", "a +1 -0, new +1 -0");
  expect_change(".", "git checkout -q a b; rm new", "a +0 -2, b +1 -0, new +0 -2");
}

/* An agent may stage, commit and ignore as it likes: files are what counts. */
TEST_WITH(setup, teardown, test_commits) {
  repository();
  expect_change(".", "echo x >> a; " GIT "commit -qam second", "a +1 -0");
  expect_change(".", "echo y >> a; git add a", "a +1 -0");
  expect_change(".", "git commit -q -m y --author 'a <a@b>' 2>/dev/null || true", "");
  put("noise", "n\n");
  expect_change(".", "echo noise >> .gitignore", ".gitignore +1 -0");
}

TEST_WITH(setup, teardown, test_below_and_above) {
  char dir[256];
  repository();
  print_into(dir, sizeof dir, "%s/work/sub", root);
  expect_change(dir, "echo t >> sub/s; echo u >> a", "../a +1 -0, s +1 -0");
}

/* Nothing that stands in the repository's configuration is run, and its index stays. */
TEST_WITH(setup, teardown, test_runs_nothing) {
  repository();
  sh("printf '#!/bin/sh\\necho ran >> %s/ran\\ncat\\n' \"$(cd .. && pwd)\" > ../spy && chmod +x "
     "../spy && S=$(cd .. && pwd)/spy && git config filter.f.clean $S && git config "
     "filter.f.smudge $S && git config core.fsmonitor $S && git config diff.d.textconv $S && "
     "echo '* filter=f diff=d' > .git/info/attributes && cp .git/info/attributes .gitattributes");
  sh("for h in post-index-change post-checkout pre-commit; do cp ../spy .git/hooks/$h; done; "
     "rm -f ../ran; cp -p .git/index ../index");
  expect_change(".", "echo x >> a; echo y > b; touch c", "a +1 -0, b +1 -1");
  sh("cmp .git/index ../index && test ! -e ../ran");
}

/* Where git cannot read the index, every file is one that it does not know. */
TEST_WITH(setup, teardown, test_bad_index) {
  repository();
  put(".git/index", "broken");
  put("x.o", "ignored\n");
  expect_change(".", "echo x >> a; echo o >> x.o", "a +1 -0");
}

TEST_WITH(setup, teardown, test_linked_work_tree) {
  repository();
  sh(GIT "worktree add -q ../other");
  expect_change("../other", "echo x >> ../other/a; echo n > ../other/n", "a +1 -0, n +1 -0");
}

TEST_WITH(setup, teardown, test_fresh_repository) {
  sh(GIT "init -q . && echo u > u");
  expect_change(".", "echo v >> u; echo w > w", "u +1 -0, w +1 -0");
}

/* Git lists nothing of a submodule or a clone for the repository around it. */
TEST_WITH(setup, teardown, test_nested) {
  sh("(mkdir ../other && cd ../other && git init -q . && echo one > f && echo '*.o' > .gitignore &&"
     " git add . && " GIT "commit -qm f)");
  sh("git init -q . && echo one > a && git add a && git -c protocol.file.allow=always submodule "
     "--quiet add ../other module && " GIT "commit -qm a && git clone -q ../other clone");
  expect_change(".", ":", "");
  expect_change(".", "echo two >> a; echo two >> module/f; echo n > module/n; echo o > module/x.o",
                "a +1 -0, module/f +1 -0, module/n +1 -0");
  expect_change(".", "rm module/n; echo two >> clone/f", "clone/f +1 -0, module/n +0 -1");
  expect_change("module", "echo three >> module/f; echo b > b", "f +1 -0");
  expect_change("clone", "git init -q clone/deep; echo d > clone/deep/d", "deep");
  expect_change(".", "echo e > clone/deep/d; echo e >> clone/deep/e",
                "clone/deep/d +1 -1, clone/deep/e +1 -0");
  expect_change(".", "(cd module && git add -A && " GIT "commit -qm m)", "");
  expect_change(".", "(cd module && git reset -q --hard HEAD~1)", "module/f +0 -2");
  expect_change(".", "git clone -q ../other second", "second");
  expect_change(".", "rm -rf clone second", "clone, second");
  put(".gitmodules", "[submodule \"x\"]\n\tpath = ../other\n\tpath =\n\tpath = link\n");
  sh("ln -s ../other link");
  expect_change(".", "echo two >> ../other/f", "");
}

/* Git may ignore it: protected files are looked at, but not in folders that it ignored before. */
TEST_WITH(setup, teardown, test_protected) {
  json_auto_t *both = json_pack("[sss]", "tests/**", "conftest.py", "x/[*]"),
              *one = json_pack("[s]", "s*");
  repository();
  sh("mkdir -p tests/cache x/y && echo t > tests/t && echo cache > .gitignore && git add -A && " GIT
     "commit -qm tests");
  expect_protected(".", both, "echo c > tests/cache/c; echo o > x.o; echo cache >> x.o",
                   "x.o +2 -0");
  expect_protected(".", both,
                   "echo '*.py' >> .gitignore; echo c > tests/a.py; echo c > conftest.py"
                   "; echo c > b.py; rm x.o",
                   ".gitignore +1 -0, conftest.py +1 -0, tests/a.py +1 -0, x.o +0 -2");
  expect_protected(".", both,
                   "echo d >> tests/a.py; echo d > '[a].py'; echo '[*' >> .gitignore; echo "
                   "d > 'x/[a]'; echo d > x/a",
                   ".gitignore +1 -0, tests/a.py +1 -0, x/[a] +1 -0, x/a +1 -0");
  expect_protected(".", both,
                   "echo /tests/new/ >> .gitignore; mkdir tests/new; echo n > "
                   "tests/new/n; echo c >> tests/cache/c",
                   ".gitignore +1 -0, tests/new/n +1 -0");
  expect_protected("sub", one,
                   "echo s > .gitignore; echo '*' >> .gitignore; echo z > sub/z; echo z > "
                   "sub/s2; mkdir sub/s3; echo z > sub/s3/z",
                   "../.gitignore +2 -4, s2 +1 -0, s3/z +1 -0");
}

/* Many looks with one stand-in: each is compared with any before it, as long as that is current. */
TEST_WITH(setup, teardown, test_many_looks) {
  repository();
  struct tree *t = tree_of(".", NULL, NULL);
  struct tree_picture *pictures[4];
  static const char *const since_first[] = {"", "a +1 -0, n +1 -0", "n +1 -0", "a +1 -0"};
  static const char *const commands[] = {":", "echo three >> a; echo n > n", "git checkout -q a",
                                         "echo four >> a; rm n; git commit -qm x --allow-empty"};
  for (size_t i = 0; i < 4; i++) {
    sh(commands[i]);
    pictures[i] = look(t, i > 0 ? pictures[i - 1] : NULL);
    if (i > 0)
      expect_between(t, pictures[0], pictures[i], since_first[i]);
    if (i > 1)
      expect_between(t, pictures[i - 1], pictures[i], i == 2 ? "a +0 -1" : "a +1 -0, n +0 -1");
  }
  assert_true(tree_is_current(t, pictures[3]));
  sh("echo f > f; git add f");
  assert_false(tree_is_current(t, pictures[3]));
  for (size_t i = 0; i < 4; i++)
    tree_picture_free(pictures[i]);
  tree_free(t);
}

/* Where too many files differ, tracked and protected ones are compared all the same. */
TEST_WITH(setup, teardown, test_flood) {
  json_auto_t *protect = json_pack("[s]", "sub/**");
  repository();
  struct tree *t = tree_of(".", protect, NULL);
  struct tree_picture *before = look(t, NULL);
  assert_true(before->guarded && before->problem.code == ERR_NONE);
  sh("mkdir j; cd j; seq -f f%g 100001 | xargs touch; cd ..; echo x >> a; echo n > sub/n; echo o > "
     "sub/x.o");
  struct tree_picture *after = look(t, before);
  expect_between(t, before, after, "a +1 -0, sub/n +1 -0, sub/x.o +1 -0");
  assert_true(t->guarded && t->problem.code == ERR_LIMIT);
  assert_int_equal(t->more, LIMIT_TREE_FILES - 3);
  sh("rm sub/n; echo s > sub/s2; echo k > k");
  struct tree_picture *third = look(t, after);
  expect_between(t, after, third, "sub/n +0 -1, sub/s2 +1 -0");
  assert_int_equal(t->more, 0);
  tree_picture_free(before);
  tree_picture_free(after);
  tree_picture_free(third);
  tree_free(t);
}
