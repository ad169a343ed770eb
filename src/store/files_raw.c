/* Reads the bytes of a log file. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct store_raw {
  int fd;
  char *path;
  off_t bytes; /* when it was opened */
  off_t end;   /* the last read found that the log ends here; 0: not */
};

static int open_log(const char *path, off_t *bytes, struct err *err) {
  struct stat st;
  int fd = fault_fails("open") ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    (void)err_set_errno(err, errno, "cannot open %s", path);
    return -1;
  }
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    *bytes = st.st_size;
    return fd;
  }
  close(fd);
  (void)err_set(err, ERR_IO, "%s is not a regular file", path);
  return -1;
}

struct store_raw *files_raw_open(const struct store_ref *ref, struct err *err) {
  off_t bytes;
  int fd = open_log(ref->name, &bytes, err);
  if (fd < 0)
    return NULL;
  struct store_raw *raw = xmalloc(sizeof *raw);
  *raw = (struct store_raw){.fd = fd, .path = xstrdup(ref->name), .bytes = bytes};
  return raw;
}

/* A read that came to the end with room left has seen the end: the next one there need not ask,
 * once. A shorter one alone does not tell; it may have met a signal, or a bad place of the disk. */
ssize_t files_raw_read(struct store_raw *raw, uint64_t at, char *out, size_t max) {
  ssize_t n;
  assert(max > 0);
  if (fault_fails("read"))
    return -1;
  bool ended = raw->end > 0 && (off_t)at == raw->end;
  raw->end = 0;
  if (ended)
    return 0;
  do
    n = pread(raw->fd, out, max, (off_t)at);
  while (n < 0 && errno == EINTR);
  if (n > 0 && (size_t)n < max && (off_t)at + n == raw->bytes)
    raw->end = raw->bytes;
  return n;
}

uint64_t files_raw_bytes(const struct store_raw *raw) {
  struct stat st;
  return fstat(raw->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

bool files_raw_again(struct store_raw *raw, bool *replaced) {
  struct stat by_fd, by_path;
  struct err err;
  *replaced = false;
  raw->end = 0;
  if (stat(raw->path, &by_path) != 0)
    return false;
  if (fstat(raw->fd, &by_fd) == 0 && by_fd.st_ino == by_path.st_ino)
    return true;
  int fd = open_log(raw->path, &raw->bytes, &err);
  if (fd < 0)
    return false;
  close(raw->fd);
  raw->fd = fd;
  *replaced = true;
  return true;
}

bool files_raw_is_owned(const struct store_raw *raw) {
  return fs_is_locked(raw->fd);
}

void files_raw_close(struct store_raw *raw) {
  close(raw->fd);
  free(raw->path);
  free(raw);
}
