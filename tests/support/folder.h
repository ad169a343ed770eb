/* folder.h - a folder of its own for a test, and the files that are put into it.
 *
 *   char *dir = folder_make();                    private, in $TMPDIR
 *   folder_put(dir, "a/b.txt", STR("bytes"));     with the folders that lead there
 *   open(folder_path(dir, "a/b.txt"), ...)        good for the next three calls
 *   folder_remove(dir);                           with all that is in it
 *
 * Each asserts that it worked. */
#ifndef SEGUE_TESTS_FOLDER_H
#define SEGUE_TESTS_FOLDER_H

#include "base/str.h"
#include "os/tmpdir.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline char *folder_make(void) {
  struct err err = {0};
  char *dir = tmpdir_make(&err);
  if (dir == NULL)
    fail_msg("%s", err.text);
  return dir;
}

static inline void folder_remove(char *dir) {
  struct err err = {0};
  if (!tmpdir_remove(dir, &err))
    fail_msg("%s", err.text);
  free(dir);
}

static inline const char *folder_path(const char *dir, const char *name) {
  static char paths[4][1024];
  static unsigned next;
  char *path = paths[next++ % 4];
  assert_true(snprintf(path, sizeof paths[0], "%s/%s", dir, name) < (int)sizeof paths[0]);
  return path;
}

/* The bytes of a file, which is new or replaced. */
static inline void folder_write(const char *path, struct str bytes) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
  assert_int_equal(close(fd), 0);
}

/* Makes a folder, and those that lead there. */
static inline void folder_add(const char *dir, const char *name) {
  char path[1024];
  print_into(path, sizeof path, "%s/", folder_path(dir, name));
  for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    (void)mkdir(path, 0700);
    *slash = '/';
  }
  assert_int_equal(access(path, F_OK), 0);
}

static inline void folder_put(const char *dir, const char *name, struct str bytes) {
  const char *slash = strrchr(name, '/');
  char way[1024];
  print_into(way, sizeof way, "%.*s", slash ? (int)(slash - name) : 0, name);
  if (slash != NULL)
    folder_add(dir, way);
  folder_write(folder_path(dir, name), bytes);
}

#endif
