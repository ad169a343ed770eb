#include "store/reader.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

bool reader_open(struct reader *r, const char *path, struct err *err) {
  struct stat st;
  *r = (struct reader){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (r->fd < 0)
    return err_set_errno(err, errno, "cannot open %s", path);
  if (fstat(r->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    reader_close(r);
    return err_set(err, ERR_IO, "%s is not a regular file", path);
  }
  return true;
}

bool reader_next(struct reader *r, struct str *line) {
  size_t scanned = 0;
  if (r->start > 0) {
    r->offset += r->start;
    memmove(r->buffer.p, r->buffer.p + r->start, r->buffer.n - r->start);
    r->buffer.n -= r->start;
    r->start = 0;
  }
  for (;;) {
    const char *nl =
        r->buffer.n > scanned ? memchr(r->buffer.p + scanned, '\n', r->buffer.n - scanned) : NULL;
    if (nl != NULL) {
      *line = (struct str){r->buffer.p, (size_t)(nl - r->buffer.p)};
      r->start = line->n + 1;
      r->whole = true;
      return true;
    }
    scanned = r->buffer.n;
    if (scanned > LIMIT_LOG_LINE_BYTES) {
      r->too_long = true;
      return false;
    }
    if (r->eof) {
      if (r->buffer.n == 0)
        return false;
      *line = buf_view(&r->buffer);
      r->start = r->buffer.n;
      r->whole = false;
      return true;
    }
    buf_reserve(&r->buffer, CHUNK_BYTES);
    ssize_t n = read(r->fd, r->buffer.p + r->buffer.n, CHUNK_BYTES);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      r->error = errno;
    if (n <= 0)
      r->eof = true;
    else
      r->buffer.n += (size_t)n;
  }
}

void reader_again(struct reader *r) {
  r->eof = false;
  if (!r->whole) /* the half line was given out: it comes again, whole */
    r->start = 0;
}

void reader_close(struct reader *r) {
  if (r->fd >= 0)
    close(r->fd);
  buf_deinit(&r->buffer);
  *r = (struct reader){.fd = -1};
}
