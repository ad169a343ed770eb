/* Where things are, by environment: in a child's environment of our own making. */

#include "host/paths.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *dir;

static int setup(void **state) {
  (void)state;
  dir = folder_make();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static void set(const char *name, const char *value) {
  assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

TEST_WITH(setup, teardown, places_follow_the_environment) {
  DATA_ROWS("host/paths/places_follow_the_environment.yaml", c, home, state, config, logs, option,
            wanted_logs, wanted_config) {
    char out[PATHS_BYTES];
    struct err err;
    set("HOME", c.home);
    set("XDG_STATE_HOME", c.state);
    set("XDG_CONFIG_HOME", c.config);
    set("SEGUE_LOGS", c.logs);
    bool ok = paths_logs(c.option, out, &err);
    if (ok != (c.wanted_logs != NULL) || (ok && strcmp(out, c.wanted_logs) != 0))
      fail_msg("row %zu: logs %s", c.at, ok ? out : err.text);
    ok = paths_config(out, &err);
    if (ok != (c.wanted_config != NULL) || (ok && strcmp(out, c.wanted_config) != 0))
      fail_msg("row %zu: config %s", c.at, ok ? out : err.text);
    if (!ok) {
      assert_int_equal(err.code, ERR_NOT_FOUND);
      assert_non_null(strstr(err.text, "HOME"));
    }
  }
}

TEST_WITH(setup, teardown, a_relative_folder_is_below_the_current_one) {
  char cwd[PATHS_BYTES], wanted[2 * PATHS_BYTES], out[PATHS_BYTES];
  struct err err;
  assert_non_null(getcwd(cwd, sizeof cwd));
  print_into(wanted, sizeof wanted, "%s/some/logs", cwd);
  assert_true(paths_logs("some/logs", out, &err));
  assert_string_equal(out, wanted);
}

TEST_WITH(setup, teardown, long_paths_are_refused) {
  char long_path[2 * PATHS_BYTES], out[PATHS_BYTES], foreign[PATHS_BYTES];
  struct err err;
  memset(long_path, 'x', sizeof long_path - 1);
  long_path[0] = '/';
  long_path[sizeof long_path - 1] = '\0';
  assert_false(paths_logs(long_path, out, &err));
  assert_int_equal(err.code, ERR_LIMIT);
  set("SEGUE_LOGS", NULL);
  set("XDG_STATE_HOME", long_path);
  set("XDG_CONFIG_HOME", long_path);
  assert_false(paths_logs(NULL, out, &err));
  assert_int_equal(err.code, ERR_LIMIT);
  assert_false(paths_config(out, &err));
  assert_false(paths_read_last(NULL, out));
  paths_note_last("/x", long_path); /* best effort */
  paths_project_facets(long_path, out, foreign);
  assert_string_equal(out, "");
}

TEST_WITH(setup, teardown, facets_of_home) {
  char out[PATHS_BYTES];
  set("HOME", "/home/me");
  paths_home_facets(out);
  assert_string_equal(out, "/home/me/.segue/facets");
  set("HOME", "relative");
  paths_home_facets(out);
  assert_string_equal(out, "");
  set("HOME", NULL);
  paths_home_facets(out);
  assert_string_equal(out, "");
}

static void make(char path[600], const char *below, mode_t mode) {
  print_into(path, 600, "%s/%s", dir, below);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(chmod(path, mode), 0);
}

/* The .segue found from dir/FROM is dir/WANTED/.segue, or none; so is the one passed over. */
static void check_project(const char *from, const char *wanted, const char *passed) {
  char path[600], want[600] = "", over[600] = "", out[PATHS_BYTES], foreign[PATHS_BYTES];
  print_into(path, sizeof path, "%s/%s", dir, from);
  if (wanted)
    print_into(want, sizeof want, "%s%s/.segue/facets", dir, wanted);
  if (passed)
    print_into(over, sizeof over, "%s%s/.segue", dir, passed);
  paths_project_facets(path, out, foreign);
  assert_string_equal(out, want);
  assert_string_equal(foreign, over);
}

TEST_WITH(setup, teardown, the_nearest_project_counts) {
  char path[600];
  set("HOME", NULL);
  make(path, "a", 0700);
  make(path, "a/b", 0700);
  make(path, ".segue", 0700);
  check_project("a/b", NULL, NULL); /* no repository, no home: only the folder itself */
  check_project(".", "", NULL);
  make(path, ".git", 0700);
  check_project("a/b", "", NULL);
  make(path, "a/.segue", 0700);
  check_project("a/b", "/a", NULL);
  make(path, "a/b/.git", 0700); /* a repository within: nothing above it counts */
  check_project("a/b", NULL, NULL);
  assert_int_equal(rmdir(path), 0);
  print_into(path, sizeof path, "%s/a/b", dir);
  set("HOME", path);
  check_project("a/b", NULL, NULL);
  set("HOME", NULL);
}

TEST_WITH(setup, teardown, a_project_that_others_may_write_is_passed_over) {
  char path[600], link[600];
  set("HOME", NULL);
  make(path, ".git", 0700);
  make(path, ".segue", 0700);
  make(path, "a", 0700);
  make(path, "a/.segue", 0777);
  check_project("a", "", "/a");
  assert_int_equal(chmod(path, 0755), 0);
  check_project("a", "/a", NULL);
  if (geteuid() == 0) {
    assert_int_equal(chown(path, 65534, 65534), 0);
    check_project("a", "", "/a");
    assert_int_equal(chown(path, 0, 0), 0);
    print_into(link, sizeof link, "%s/elsewhere", dir); /* our folder, another's link to it */
    assert_int_equal(rename(path, link), 0);
    assert_int_equal(symlink(link, path), 0);
    check_project("a", "/a", NULL);
    assert_int_equal(lchown(path, 65534, 65534), 0);
    check_project("a", "", "/a");
  }
}

TEST_WITH(setup, teardown, the_last_session_is_noted) {
  char log[512], out[PATHS_BYTES], home[512];
  print_into(home, sizeof home, "%s/state", dir);
  set("XDG_STATE_HOME", home);
  assert_false(paths_read_last(NULL, out));
  print_into(log, sizeof log, "%s/one.ndjson", dir);
  paths_note_last(log, NULL);
  assert_true(paths_read_last(NULL, out));
  assert_string_equal(out, log);
  print_into(log, sizeof log, "%s/state", dir);
  paths_note_last(log, NULL);
  assert_true(paths_read_last(NULL, out));
  assert_string_equal(out, log);
  print_into(out, sizeof out, "%s/segue/last.%ld", home, (long)getpid());
  assert_int_equal(access(out, F_OK), -1); /* nothing is left beside it */
}

/* A project is a repository, with its worktrees and what is below it, or else a folder. */
TEST_WITH(setup, teardown, each_project_has_a_last_session) {
  char path[600], text[700], out[PATHS_BYTES], top[PATHS_BYTES], home[512];
  static const char *const folders[] = {
      "repo",  "repo/.git", "repo/.git/worktrees", "repo/.git/worktrees/tree", "repo/sub", "tree",
      "other", "liar"};
  static const struct {
    const char *folder, *project;
  } places[] = {{"repo", "repo"},   {"repo/sub", "repo"}, {"tree", "repo"},
                {"other", "other"}, {"liar", "liar"},     {"", ""}};
  print_into(home, sizeof home, "%s/state", dir);
  set("XDG_STATE_HOME", home);
  for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
    print_into(path, sizeof path, "%s/%s", dir, folders[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  static const char *const files[][2] = {{"tree/.git", "gitdir: %s/repo/.git/worktrees/tree\n"},
                                         {"liar/.git", "gitdir: %s/repo/.git/worktrees/tree\n"},
                                         {"repo/.git/worktrees/tree/gitdir", "%s/tree/.git\n"}};
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    print_into(path, sizeof path, "%s/%s", dir, files[i][0]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    const char *rest = strstr(files[i][1], "%s") + 2;
    assert_true(fprintf(file, "%.*s%s%s", (int)(rest - 2 - files[i][1]), files[i][1], dir, rest) >
                0);
    assert_int_equal(fclose(file), 0);
  }
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    print_into(path, sizeof path, "%s/%s", dir, places[i].folder);
    paths_project(path, out);
    print_into(text, sizeof text, "%s%s%s", dir, places[i].project[0] ? "/" : "",
               places[i].project);
    assert_string_equal(out, text);
  }
  print_into(top, sizeof top, "%s/repo", dir);
  assert_false(paths_read_last(top, out));
  print_into(path, sizeof path, "%s/tree", dir);
  paths_note_last("/log/one", path);
  print_into(path, sizeof path, "%s/other", dir);
  paths_note_last("/log/two", path);
  assert_true(paths_read_last(top, out));
  assert_string_equal(out, "/log/one");
  assert_true(paths_read_last(path, out));
  assert_string_equal(out, "/log/two");
  assert_true(paths_read_last(NULL, out));
  assert_string_equal(out, "/log/two");
  assert_false(paths_read_last(dir, out));
}

TEST_WITH(setup, teardown, a_folder_in_the_place_of_the_note_stays) {
  char path[512], mine[600], log[600], out[PATHS_BYTES];
  set("XDG_STATE_HOME", dir);
  print_into(path, sizeof path, "%s/segue", dir);
  assert_int_equal(mkdir(path, 0700), 0);
  print_into(path, sizeof path, "%s/segue/last", dir);
  assert_int_equal(mkdir(path, 0700), 0);
  print_into(mine, sizeof mine, "%s/mine", path);
  print_into(log, sizeof log, "%s/one.ndjson", dir);
  int fd = open(mine, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  close(fd);
  paths_note_last(log, NULL);
  assert_int_equal(access(mine, F_OK), 0);
  assert_false(paths_read_last(NULL, out));
  print_into(out, sizeof out, "%s.%ld", path, (long)getpid());
  assert_int_equal(access(out, F_OK), -1);
}
