/* Reads a whole file into memory, within a bound. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read_fd(int fd, const char *name, size_t max, struct buf *out, struct err *err) {
  size_t start = out->n;
  for (;;) {
    if (out->cap - out->n < 2)
      buf_reserve(out, 64 * 1024);
    ssize_t n = read(fd, out->p + out->n, out->cap - out->n - 1);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return err_set_errno(err, errno, "cannot read %s", name);
    if (n == 0)
      break;
    out->n += (size_t)n;
    if (out->n - start > max)
      return err_set(err, ERR_LIMIT, "%s is larger than the limit of %zu bytes", name, max);
  }
  out->p[out->n] = '\0';
  return true;
}

bool file_read(const char *path, size_t max, struct buf *out, struct err *err) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot read %s", path);
  bool ok;
  if (fstat(fd, &st) != 0)
    ok = err_set_errno(err, errno, "cannot read %s", path);
  else if (!S_ISREG(st.st_mode))
    ok = err_set(err, ERR_IO, "%s is %s, not a file", path,
                 S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
  else {
    if (st.st_size > 0 && (size_t)st.st_size <= max) /* at once; a byte more to see its end */
      buf_reserve(out, (size_t)st.st_size + 1);
    ok = file_read_fd(fd, path, max, out, err);
  }
  close(fd);
  return ok;
}

bool file_write_new(const char *path, struct str content, struct err *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  size_t done = 0;
  if (fd < 0)
    return err_set_errno(err, errno, "cannot write %s", path);
  while (done < content.n) {
    ssize_t n = write(fd, content.p + done, content.n - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += (size_t)n;
  }
  int number = errno;
  close(fd);
  return done == content.n || err_set_errno(err, number, "cannot write %s", path);
}

bool file_is_folder(const char *path) {
  struct stat st;
  return path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
