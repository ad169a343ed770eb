/* kept_test - results that are kept beside logs are read back whole; a killed writer leaves nothing
 * that stays, and one that is at work keeps others away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "os/fs.h"
#include "store/kept.h"
#include "support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
  char *dir, fresh[600];
  struct store store;
};

static int setup(void **state) {
  static struct fixture f;
  f = (struct fixture){.dir = folder_make()};
  store_at(&f.store, f.dir);
  (void)snprintf(f.fresh, sizeof f.fresh, "%s/audit/counts.new", f.dir);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  folder_remove(f->dir);
  return 0;
}

static void expect_kept(const struct fixture *f, const char *text) {
  struct buf found = {0};
  assert_true(store_kept_get(&f->store, "counts", &found));
  assert_true(str_eq_c(buf_view(&found), text));
  buf_deinit(&found);
}

static int files_in(const struct fixture *f) {
  char path[600];
  int count = 0;
  (void)snprintf(path, sizeof path, "%s/audit", f->dir);
  DIR *d = opendir(path);
  assert_non_null(d);
  while (readdir(d) != NULL)
    count++;
  (void)closedir(d);
  return count - 2; /* the folder itself and the one above */
}

static void the_last_is_kept(void **state) {
  const struct fixture *f = *state;
  struct buf none = {0};
  assert_false(store_kept_get(&f->store, "counts", &none));
  assert_true(store_kept_put(&f->store, "counts", STR("the first, and longer")));
  expect_kept(f, "the first, and longer");
  assert_true(store_kept_put(&f->store, "counts", STR("the second")));
  expect_kept(f, "the second");
  assert_int_equal(files_in(f), 1);
  assert_false(store_kept_put(&f->store, "counts", (struct str){"", LIMIT_INDEX_BYTES + 1}));
  buf_deinit(&none);
}

static void what_a_killed_writer_left_goes(void **state) {
  const struct fixture *f = *state;
  assert_true(store_kept_put(&f->store, "counts", STR("old")));
  int fd = open(f->fresh, O_WRONLY | O_CREAT, 0600);
  assert_int_equal(write(fd, "half of something much longer", 29), 29);
  assert_int_equal(close(fd), 0);
  expect_kept(f, "old");
  assert_true(store_kept_put(&f->store, "counts", STR("new")));
  expect_kept(f, "new");
  assert_int_equal(files_in(f), 1);
}

static void one_writer_at_a_time(void **state) {
  const struct fixture *f = *state;
  assert_true(store_kept_put(&f->store, "counts", STR("old")));
  int fd = open(f->fresh, O_WRONLY | O_CREAT, 0600);
  assert_true(fs_lock(fd));
  assert_false(store_kept_put(&f->store, "counts", STR("new")));
  expect_kept(f, "old");
  assert_int_equal(access(f->fresh, F_OK), 0);
  assert_int_equal(close(fd), 0);
  assert_true(store_kept_put(&f->store, "counts", STR("new")));
  expect_kept(f, "new");
}

static void no_link_is_followed(void **state) {
  const struct fixture *f = *state;
  char other[600];
  struct stat st;
  (void)snprintf(other, sizeof other, "%s/other", f->dir);
  assert_true(store_kept_put(&f->store, "counts", STR("old")));
  int fd = open(other, O_WRONLY | O_CREAT, 0600);
  assert_int_equal(write(fd, "precious", 8), 8);
  assert_int_equal(close(fd), 0);
  assert_int_equal(symlink(other, f->fresh), 0);
  assert_false(store_kept_put(&f->store, "counts", STR("new")));
  assert_int_equal(stat(other, &st), 0);
  assert_int_equal(st.st_size, 8);
  expect_kept(f, "old");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_last_is_kept),
      TEST(what_a_killed_writer_left_goes),
      TEST(one_writer_at_a_time),
      TEST(no_link_is_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
