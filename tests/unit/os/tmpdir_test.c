/* Folders of calls: whoever has one keeps others from taking it for what a killed program left. */
#include "os/tmpdir.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/segue-tmpdir-test-XXXXXX";

/* Says whether another program could take all in TMPDIR's folder for left. */
static bool could_be_swept(const char *tmpdir) {
  char folder[256];
  (void)snprintf(folder, sizeof folder, "%s/segue-%ld.tmp", tmpdir, (long)geteuid());
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(fd >= 0);
  bool free_to_take = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (!free_to_take)
    assert_int_equal(errno, EWOULDBLOCK);
  (void)close(fd);
  return free_to_take;
}

TEST(held_while_it_has_one_wherever_tmpdir_leads) {
  struct err err;
  assert_non_null(mkdtemp(top));
  assert_int_equal(setenv("TMPDIR", top, 1), 0);
  char *outer = tmpdir_make(&err);
  assert_non_null(outer);
  assert_false(could_be_swept(top));
  assert_int_equal(setenv("TMPDIR", outer, 1), 0); /* as a program that runs in a call does */
  char *inner = tmpdir_make(&err);
  assert_non_null(inner);
  assert_false(could_be_swept(outer));
  assert_false(could_be_swept(top));
  assert_true(tmpdir_remove(inner, &err));
  assert_false(could_be_swept(top));
  tmpdir_leave();
  assert_int_equal(setenv("TMPDIR", top, 1), 0);
  assert_true(tmpdir_remove(outer, &err));
  tmpdir_leave();
  assert_int_equal(rmdir(top), 0);
  free(inner);
  free(outer);
}

/* Whatever a killed program left goes with the first one that makes one. */
TEST(left_folders_are_swept) {
  char path[256];
  struct err err;
  char again[] = "/tmp/segue-tmpdir-test-XXXXXX";
  assert_non_null(mkdtemp(again));
  assert_int_equal(setenv("TMPDIR", again, 1), 0);
  char *first = tmpdir_make(&err);
  assert_non_null(first);
  assert_true(tmpdir_remove(first, &err));
  (void)snprintf(path, sizeof path, "%s/segue-%ld.tmp/segue-left", again, (long)geteuid());
  assert_int_equal(mkdir(path, 0700), 0);
  char *second = tmpdir_make(&err);
  assert_non_null(second);
  assert_int_equal(access(path, F_OK), -1);
  assert_true(tmpdir_remove(second, &err));
  tmpdir_leave();
  assert_int_equal(rmdir(again), 0);
  free(first);
  free(second);
}
