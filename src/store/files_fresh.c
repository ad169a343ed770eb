/* Replaces files that are kept beside logs for speed, so that readers see the old one or the new
 * one, whole.
 *
 * DESIGN: the new file has a fixed name and is locked while it is written. So two writers never
 * share it, and what a killed writer left is used by the next one instead of staying for ever. */
#include "os/fs.h"
#include "store/files_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRESH_NAME_BYTES = STORE_NAME_BYTES };

static void fresh_name(const char *name, char out[FRESH_NAME_BYTES]) {
  (void)snprintf(out, FRESH_NAME_BYTES, "%s.new", name);
}

/* Returns whether `fresh` still names the file: its last writer may just have renamed it. */
static bool is_still_fresh(int dir, const char *fresh, int fd) {
  struct stat named, own;
  return fstatat(dir, fresh, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &own) == 0 &&
         S_ISREG(own.st_mode) && named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

int files_fresh_open(int dir, const char *name) {
  char fresh[FRESH_NAME_BYTES];
  fresh_name(name, fresh);
  int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0 || (fs_lock(fd) && is_still_fresh(dir, fresh, fd) && ftruncate(fd, 0) == 0))
    return fd;
  (void)close(fd);
  return -1;
}

bool files_fresh_put(int dir, const char *name, int fd, bool whole) {
  char fresh[FRESH_NAME_BYTES];
  fresh_name(name, fresh);
  bool ok = whole && renameat(dir, fresh, dir, name) == 0;
  if (!ok)
    (void)unlinkat(dir, fresh, 0);
  (void)close(fd);
  return ok;
}
