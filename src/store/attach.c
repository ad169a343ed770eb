#include "store/files_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/line.h"
#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Appends the bytes from `offset` to <log>.torn, so that nothing that was there is thrown away. */
static bool keep_torn(const struct store_log *log, uint64_t offset, struct err *err) {
  char path[PATH_MAX], chunk[64 * 1024];
  (void)snprintf(path, sizeof path, "%s.torn", log->path);
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot write %s", path);
  ssize_t n;
  off_t at = (off_t)offset;
  bool ok = true;
  while (ok && (n = pread(log->fd, chunk, sizeof chunk, at)) > 0) {
    ok = write(fd, chunk, (size_t)n) == n;
    at += n;
  }
  if (!ok)
    (void)err_set_errno(err, errno, "cannot write %s", path);
  close(fd);
  return ok;
}

/* Blocks that never reached the disk: NULs from the end of what was synced, or from a block's start,
 * to a block's end or the end of the file. A lone NUL is damage. */
static bool has_hole(struct str line, uint64_t offset) {
  enum { BLOCK_BYTES = 512 };
  const char *nul = line.n > 0 ? memchr(line.p, '\0', line.n) : NULL;
  while (nul != NULL) {
    size_t from = (size_t)(nul - line.p), to = from;
    while (to < line.n && line.p[to] == '\0')
      to++;
    if ((from == 0 || (offset + from) % BLOCK_BYTES == 0) && (offset + to) % BLOCK_BYTES == 0)
      return true;
    nul = to < line.n ? memchr(line.p + to, '\0', line.n - to) : NULL;
  }
  return false;
}

/* An attempt of a call. */
struct attempt {
  json_int_t call, number;
};

static struct attempt attempt_of(const json_t *record) {
  return (struct attempt){json_integer_value(json_object_get(record, "call")),
                          json_integer_value(json_object_get(record, "attempt"))};
}

static bool is_type(const json_t *record, const char *type) {
  const char *own = json_string_value(json_object_get(record, "type"));
  return own != NULL && strcmp(own, type) == 0;
}

/* Does a record follow, whatever its hash? Then what stands before it was once sound. Behind a hole
 * only a record of a later batch says so: a resume, and the end of an attempt whose start is not
 * durable yet (`open` is the last that is): what an attempt tells can be in one batch with its end. */
static bool record_follows(struct reader *r, uint64_t seq, bool hole, struct attempt open) {
  struct str line;
  while (reader_next(r, &line)) {
    json_t *record = r->whole ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
    struct attempt attempt = attempt_of(record);
    bool begins = is_type(record, "session_resume") ||
                  (is_type(record, "call_end") &&
                   (attempt.call != open.call || attempt.number != open.number));
    bool found = json_integer_value(json_object_get(record, "seq")) > (json_int_t)seq &&
                 json_string_length(json_object_get(record, "hash")) == 64 && (begins || !hole);
    json_decref(record);
    if (found)
      return true;
  }
  return false;
}

static bool read_failed(const struct store_log *log, const struct reader *r, struct err *err) {
  if (r->error != 0)
    return !err_set_errno(err, r->error, "cannot read %s", log->path);
  if (r->too_long)
    return !err_set(err, ERR_CORRUPT, "a line of %s is over the limit of %u bytes", log->path,
                    LIMIT_LOG_LINE_BYTES);
  return false;
}

static bool fold_lines(struct store_log *log, struct reader *r, store_fold_fn fold, void *ctx,
                       char *notice, size_t notice_bytes, struct err *err) {
  struct str line;
  struct attempt open = {0, 0};
  uint64_t good_end = 0, file_bytes = (uint64_t)lseek(log->fd, 0, SEEK_END);
  while (reader_next(r, &line)) {
    struct err why = {0};
    char hash[SHA256_HEX];
    memcpy(hash, log->hash, SHA256_HEX);
    json_t *record = r->whole ? line_parse(line, hash, &why) : NULL;
    if (record == NULL) {
      uint64_t offset = r->offset;
      bool hole = has_hole(line, offset);
      if (read_failed(log, r, err))
        return false;
      if (log->seq == 0)
        return err_set(err, ERR_CORRUPT, "%s has no whole first record: %s", log->path,
                       r->whole ? why.text : "it is cut off");
      if (record_follows(r, log->seq, hole, open))
        return err_set(err, ERR_CORRUPT, "record %llu of %s is damaged: %s",
                       (unsigned long long)log->seq + 1, log->path, why.text);
      if (read_failed(log, r, err))
        return false;
      if (!keep_torn(log, offset, err))
        return false;
      (void)snprintf(notice, notice_bytes,
                     "a torn tail of %llu bytes was cut off the log (kept in %s.torn)",
                     (unsigned long long)(file_bytes - offset), log->path);
      break;
    }
    bool ok = fold(ctx, record, err);
    if (is_type(record, "call_start"))
      open = attempt_of(record);
    json_decref(record);
    if (!ok)
      return false;
    if (log->offset_count % 256 == 0)
      log->offsets = xrealloc(log->offsets, (log->offset_count + 256) * sizeof *log->offsets);
    log->offsets[log->offset_count++] = r->offset;
    memcpy(log->hash, hash, SHA256_HEX);
    log->seq++;
    good_end = r->offset + line.n + 1;
  }
  if (read_failed(log, r, err))
    return false;
  if (log->seq == 0)
    return err_set(err, ERR_CORRUPT, "%s holds no record: the session had not begun; run it again",
                   log->path);
  if (good_end < file_bytes && ftruncate(log->fd, (off_t)good_end) != 0)
    return err_set_errno(err, errno, "cannot cut the torn tail off %s", log->path);
  log->durable_bytes = log->folded_bytes = good_end;
  /* Recovery acts on what it read, so that must not be in the page cache only. */
  if (fdatasync(log->fd) != 0)
    return err_set_errno(err, errno, "cannot sync %s", log->path);
  return true;
}

struct store_log *store_attach(struct store *store, const char *path, store_fold_fn fold, void *ctx,
                               char *notice, size_t notice_bytes, struct err *err) {
  struct stat by_fd, by_path;
  struct reader reader;
  notice[0] = '\0';
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    (void)err_set_errno(err, errno, "cannot open %s", path);
    return NULL;
  }
  if (fstat(fd, &by_fd) != 0 || !S_ISREG(by_fd.st_mode)) {
    close(fd);
    (void)err_set(err, ERR_IO, "%s is not a regular file", path);
    return NULL;
  }
  if (!files_lock(fd, path, err)) {
    close(fd);
    return NULL;
  }
  /* The log may have been replaced between open and lock. */
  if (stat(path, &by_path) != 0 || by_fd.st_ino != by_path.st_ino) {
    close(fd);
    (void)err_set(err, ERR_LOCKED, "%s is being replaced by its owner", path);
    return NULL;
  }
  struct store_log *log = files_log_new(store, path, fd);
  if (!reader_open(&reader, path, err)) {
    store_close(log);
    return NULL;
  }
  bool ok = fold_lines(log, &reader, fold, ctx, notice, notice_bytes, err);
  reader_close(&reader);
  if (!ok) {
    store_close(log);
    return NULL;
  }
  return log;
}

json_t *store_read(struct store_log *log, uint64_t seq, struct err *err) {
  if (seq == 0 || seq > log->offset_count) {
    (void)err_set(err, ERR_CORRUPT, "%s has no record %llu", log->path, (unsigned long long)seq);
    return NULL;
  }
  uint64_t start = log->offsets[seq - 1];
  uint64_t end = seq < log->offset_count ? log->offsets[seq] : log->folded_bytes;
  size_t n = (size_t)(end - start);
  char *bytes = xmalloc(n);
  json_t *record = NULL;
  if (pread(log->fd, bytes, n, (off_t)start) == (ssize_t)n)
    record = json_loadb(bytes, n - 1, JSON_ALLOW_NUL, NULL);
  free(bytes);
  if (record == NULL)
    (void)err_set(err, ERR_CORRUPT, "record %llu of %s cannot be read back",
                  (unsigned long long)seq, log->path);
  return record;
}
