/* The sweep after processes that were killed at work on a blob: it takes nothing that a living one
 * writes, and no blob that a log may name. */

#include "store/store.h"
#include "support/folder.h"
#include "support/leave.h"
#include "support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In the place of the C library's: nothing can be given an older time of change. */
static time_t ahead_s;

int clock_gettime(clockid_t id, struct timespec *now) {
  int rc = (int)syscall(SYS_clock_gettime, id, now);
  now->tv_sec += id == CLOCK_REALTIME ? ahead_s : 0;
  return rc;
}

static char *dir;
static struct store store;
static char sha256[SHA256_HEX];

static int setup(void **state) {
  struct err err;
  (void)state;
  dir = folder_make();
  return !store_open(&store, dir, &err) || !store_blob_put(&store, STR("a blob"), sha256, &err);
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

/* Gives every unfinished blob a time of an hour ago, and counts them. */
static int parts(bool make_old) {
  const struct timespec times[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
  DIR *d = opendir(folder_path(dir, "blobs"));
  int n = 0;
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] != '.' || strlen(e->d_name) < 64)
      continue;
    n++;
    if (make_old)
      assert_int_equal(utimensat(dirfd(d), e->d_name, times, 0), 0);
  }
  closedir(d);
  return n;
}

static bool is_there(const char *name) {
  return access(folder_path(dir, name), F_OK) == 0;
}

static const char *name_of(const char *before, const char *after) {
  static char name[128];
  print_into(name, sizeof name, "blobs/%s%s%s", before, sha256, after);
  return name;
}

TEST_WITH(setup, teardown, an_old_part_goes) {
  folder_put(dir, name_of(".", ".12.0xabc"), STR("half of"));
  folder_put(dir, name_of("", ".txt"), STR("a person's"));
  store_blobs_tidy(&store, NULL);
  assert_int_equal(parts(true), 1); /* it is young: an older version does not lock it */
  store_blobs_tidy(&store, NULL);
  assert_int_equal(parts(false), 0);
  assert_true(is_there(name_of("", "")));
  assert_true(is_there(name_of("", ".txt")));
}

TEST_WITH(setup, teardown, a_sweep_begins_with_it) {
  struct err err;
  size_t kept;
  json_auto_t *none = json_object();
  folder_put(dir, name_of(".", ".12.0xabc"), STR("half of"));
  assert_int_equal(parts(true), 1);
  assert_true(store_blobs_sweep(&store, none, &kept, &err));
  assert_int_equal(parts(false), 0);
}

/* Renamed by a removal that was killed: it stays what it is while that may still live, then it is a
 * blob again, which the next sweep looks at. */
TEST_WITH(setup, teardown, a_blob_aside_comes_back) {
  json_auto_t *found = json_object();
  char aside[128];
  print_into(aside, sizeof aside, "%s", folder_path(dir, name_of("", ".77")));
  assert_int_equal(rename(folder_path(dir, name_of("", "")), aside), 0);
  store_blobs_tidy(&store, found);
  assert_true(is_there(name_of("", ".77")));
  assert_false(is_there(name_of("", "")));
  assert_int_equal(json_object_size(found), 0);
  ahead_s = 3600;
  store_blobs_tidy(&store, found);
  ahead_s = 0;
  assert_false(is_there(name_of("", ".77")));
  assert_true(is_there(name_of("", "")));
  assert_non_null(json_object_get(found, sha256));
}

#ifdef SEGUE_FAULTS
static pid_t put_in_child(const char *fault) {
  (void)fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    struct err err;
    char name[SHA256_HEX];
    (void)setenv("SEGUE_FAULT", fault, 1);
    leave(store_blob_put(&store, str_from(fault), name, &err) ? 0 : 1);
  }
  return pid;
}

TEST_WITH(setup, teardown, a_killed_writers_part_goes) {
  static const char *const faults[] = {"exit:append_before:1", "exit:sync_before:1",
                                       "exit:sync_after:1"};
  for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
    int status;
    pid_t pid = put_in_child(faults[i]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 99);
    assert_int_equal(parts(true), 1);
    store_blobs_tidy(&store, NULL);
    assert_int_equal(parts(false), 0);
  }
}

TEST_WITH(setup, teardown, a_living_writers_part_stays) {
  static const char *const faults[] = {"stop:append_before:1", "stop:sync_after:1"};
  for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
    int status;
    pid_t pid = put_in_child(faults[i]);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(parts(true), 1);
    store_blobs_tidy(&store, NULL);
    assert_int_equal(parts(false), 1);
    assert_int_equal(kill(pid, i == 0 ? SIGCONT : SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(i == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
    (void)parts(true);
    store_blobs_tidy(&store, NULL);
    assert_int_equal(parts(false), 0);
  }
}
#endif
