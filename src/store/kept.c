/* Keeps results computed from logs as files beside them. */
#include "store/kept.h"

#include "base/limits.h"
#include "store/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool store_kept_path(const struct store *store, const char *name, char *out, size_t size) {
  int n = snprintf(out, size, "%s/audit%s%s", store->where, name[0] ? "/" : "", name);
  return n > 0 && (size_t)n < size;
}

bool store_kept_get(const struct store *store, const char *name, struct buf *bytes) {
  char path[STORE_NAME_BYTES];
  struct stat st;
  if (!store_kept_path(store, name, path, sizeof path))
    return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return false;
  bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
            st.st_size > 0 && st.st_size <= (off_t)LIMIT_INDEX_BYTES;
  size_t size = ok ? (size_t)st.st_size : 0;
  buf_reserve(bytes, size);
  while (ok && bytes->n < size) {
    ssize_t n = pread(fd, bytes->p + bytes->n, size - bytes->n, (off_t)bytes->n);
    ok = n > 0;
    bytes->n += ok ? (size_t)n : 0;
  }
  close(fd);
  return ok;
}

bool store_kept_put(const struct store *store, const char *name, struct str bytes) {
  char folder[STORE_NAME_BYTES];
  if (bytes.n > LIMIT_INDEX_BYTES || !store_kept_path(store, "", folder, sizeof folder) ||
      (mkdir(folder, 0700) != 0 && errno != EEXIST))
    return false;
  int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  int fd = dir < 0 ? -1 : files_fresh_open(dir, name);
  bool ok = fd >= 0 && files_fresh_put(dir, name, fd, files_write_all(fd, bytes.p, bytes.n, 0));
  if (dir >= 0)
    (void)close(dir);
  return ok;
}

void store_kept_prepare(const struct store *store) {
  char folder[STORE_NAME_BYTES];
  if (store_kept_path(store, "", folder, sizeof folder))
    (void)mkdir(folder, 0700); /* whoever puts a file says whether it can be used */
}

int64_t store_kept_stamp(const struct store *store) {
  struct stat st;
  if (stat(store->where, &st) != 0)
    return 0;
  return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}
