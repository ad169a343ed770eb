/* Does file operations that only Linux has. */
#include "os/fs.h"

#include "base/limits.h"
#include "base/str.h"
#include "os/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- beneath a folder --- */

enum { CREATED_MODE = 0644 };

int fs_open_folder(const char *path) {
  assert(path != NULL);
  return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Opens one part of a path, `name`, without following links. */
static int open_part(int folder, const char *name, int flags) {
  if (strcmp(name, "..") == 0) {
    errno = EXDEV;
    return -1;
  }
  return openat(folder, name, flags | O_NOFOLLOW, CREATED_MODE);
}

static int open_by_steps(int root, const char *path, int flags) {
  int folder = dup(root);
  while (folder >= 0) {
    char name[NAME_MAX + 1];
    size_t n = strcspn(path, "/");
    const char *rest = path + n + strspn(path + n, "/");
    bool last = *rest == '\0';
    int next = -1;
    errno = n == 0 ? EXDEV : ENAMETOOLONG;
    if (n > 0 && n <= NAME_MAX) {
      memcpy(name, path, n);
      name[n] = '\0';
      next = open_part(folder, name, last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    fs_close(folder);
    if (last || next < 0)
      return next;
    folder = next;
    path = rest;
  }
  return -1;
}

int fs_open_beneath(int folder, const char *path, int flags) {
  assert(folder >= 0);
  assert(path != NULL);
  flags |= O_CLOEXEC;
  if ((flags & O_PATH) == 0) /* O_PATH takes no other flags */
    flags |= O_NONBLOCK | O_NOCTTY;
  struct open_how how = {.flags = (unsigned long long)flags,
                         .mode = flags & O_CREAT ? CREATED_MODE : 0,
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  long fd;
  unsigned tries = 0;
  do /* a rename anywhere while it looks at ".." makes the kernel give up: openat2(2) */
    fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
  while (fd < 0 && errno == EAGAIN && ++tries < LIMIT_OPEN_TRIES);
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return open_by_steps(folder, path, flags);
  return (int)fd;
}

int fs_open_folder_beneath(int folder, const char *path) {
  return fs_open_beneath(folder, path, O_PATH | O_DIRECTORY);
}

/* --- locks --- */

long fs_holder(const char *path) {
  glob_t found = {0};
  char target[PATH_MAX];
  long pid = 0;
  (void)glob("/proc/[0-9]*/fd/*", GLOB_NOSORT, NULL, &found);
  for (size_t i = 0; i < found.gl_pathc && pid == 0; i++) {
    ssize_t n = readlink(found.gl_pathv[i], target, sizeof target);
    if (n == (ssize_t)strlen(path) && memcmp(target, path, (size_t)n) == 0)
      pid = strtol(found.gl_pathv[i] + strlen("/proc/"), NULL, 10);
  }
  globfree(&found);
  return pid;
}

enum { LOCK_LOOK_MS = 5 };

bool fs_lock(int fd) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool fs_lock_within(int fd, unsigned wait_ms) {
  uint64_t begin = clock_mono_ms();
  while (!fs_lock(fd)) {
    int number = errno;
    if (!fs_lock_is_taken(number) || clock_mono_ms() - begin >= wait_ms) {
      errno = number;
      return false;
    }
    (void)poll(NULL, 0, LOCK_LOOK_MS);
  }
  return true;
}

bool fs_lock_is_taken(int number) {
  return number == EAGAIN || number == EACCES;
}

bool fs_is_locked(int fd) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* --- names --- */

bool fs_is_named(int fd, const char *path, bool follow) {
  struct stat open_file, named;
  return fstat(fd, &open_file) == 0 &&
         fstatat(AT_FDCWD, path, &named, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

void fs_path_of(int fd, char path[FS_PATH_BYTES]) {
  assert(fd >= 0);
  print_into(path, FS_PATH_BYTES, "/proc/self/fd/%d", fd);
}

bool fs_own_program(char *path, size_t size) {
  assert(size > 0);
  ssize_t n = readlink("/proc/self/exe", path, size);
  if (n <= 0 || (size_t)n >= size)
    return false;
  path[n] = '\0';
  return true;
}

void fs_sync_begin(int fd, uint64_t from, uint64_t n) {
  (void)sync_file_range(fd, (off_t)from, (off_t)n, SYNC_FILE_RANGE_WRITE);
}

bool fs_is_of_this_machine(const char *path) {
  static const unsigned long good[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                       TMPFS_MAGIC, F2FS_SUPER_MAGIC};
  struct statfs fs;
  if (statfs(path, &fs) != 0)
    return false;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if ((unsigned long)fs.f_type == good[i])
      return true;
  return false;
}

void fs_close(int fd) {
  int number = errno;
  if (fd >= 0)
    (void)close(fd);
  errno = number;
}

int fs_above_shim(int fd) {
  if (fd < 0 || fd >= FD_ABOVE_SHIM)
    return fd;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE_SHIM);
  fs_close(fd);
  return high;
}

const char *fs_below(const char *path, const char *above) {
  size_t n = strlen(above);
  while (n > 0 && above[n - 1] == '/') /* "/" itself is above all */
    n--;
  bool below = strncmp(path, above, n) == 0 && (path[n] == '\0' || path[n] == '/');
  return below ? path + n : NULL;
}

bool fs_swap(const char *a, const char *b) {
  return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
}
