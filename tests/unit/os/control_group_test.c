/* Writes limits into the files of a group's folder: a plain folder with files of those names. */

#include "os/control_group.h"
#include "os/process.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const files[] = {"memory.max", "memory.swap.max", "pids.max", "cpu.max"};

static int folder_with_files(const char *dir, size_t count) {
  char path[300];
  for (size_t i = 0; i < count; i++) {
    print_into(path, sizeof path, "%s/%s", dir, files[i]);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
  }
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(fd >= 0);
  return fd;
}

static void expect_file(int dir, const char *name, const char *wanted) {
  char text[64] = "";
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_true(read(fd, text, sizeof text - 1) >= 0);
  (void)close(fd);
  assert_string_equal(text, wanted);
}

TEST(each_limit_has_its_file) {
  char *dir = folder_make();
  int fd = folder_with_files(dir, sizeof files / sizeof files[0]);
  const struct process_limits limits = {
      .memory_bytes = 4ull << 30, .pids = 512, .milli_cpus = 1500, .by_group = true};
  assert_true(group_limit_folder(fd, &limits));
  expect_file(fd, "memory.max", "4294967296");
  expect_file(fd, "memory.swap.max", "0");
  expect_file(fd, "pids.max", "512");
  expect_file(fd, "cpu.max", "150000 100000");
  (void)close(fd);
  folder_remove(dir);
}

TEST(a_controller_that_is_missing_is_said) {
  char *dir = folder_make();
  int fd = folder_with_files(dir, 2);
  const struct process_limits memory = {.memory_bytes = 1 << 30}, pids = {.pids = 8},
                              cpus = {.milli_cpus = 100}, none = {0};
  assert_true(group_limit_folder(fd, &none));
  assert_true(group_limit_folder(fd, &memory));
  errno = 0;
  assert_false(group_limit_folder(fd, &pids));
  assert_int_equal(errno, ENOENT);
  assert_false(group_limit_folder(fd, &cpus));
  (void)close(fd);
  folder_remove(dir);
}

static void put_file(const char *dir, const char *name, const char *text) {
  char path[300];
  print_into(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "we");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

/* Tells whether a group could hold limits, and leaves each of its files as it was. */
TEST(a_look_changes_nothing) {
  DATA_ROWS("os/control_group/a_look_changes_nothing.yaml", c, controllers, handed_on, type, procs,
            may) {
    const char *names[] = {"cgroup.controllers", "cgroup.subtree_control", "cgroup.type",
                           "cgroup.procs"};
    const char *texts[] = {c.controllers, c.handed_on, c.type, c.procs};
    char *dir = folder_make();
    for (size_t k = 0; k < 4; k++)
      if (texts[k] != NULL)
        put_file(dir, names[k], texts[k]);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (group_may_limit_folder(fd) != data_true(c.may))
      fail_msg("row %zu", c.at);
    if (c.handed_on != NULL)
      expect_file(fd, "cgroup.subtree_control", c.handed_on);
    expect_file(fd, "cgroup.procs", c.procs);
    (void)close(fd);
    folder_remove(dir);
  }
}

/* Before anybody asks to have it made, and after, one answer. */
TEST(what_may_be_is_what_is_made) {
  bool may = group_may_limit();
  assert_int_equal(group_can_limit(), may);
  assert_int_equal(group_may_limit(), may);
}
