/* Reads a log file back for its owner and cuts off a torn end. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/fs.h"
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

/* Copies the bytes from `offset` to <log>.torn, so that nothing is lost. */
static bool keep_torn(const struct files_log *log, uint64_t offset, struct err *err) {
  char path[PATH_MAX], chunk[64 * 1024];
  (void)snprintf(path, sizeof path, "%s.torn", log->base.name);
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

/* Finds blocks that never reached the disk: NULs from the end of what was synced, or from the start
 * of a block, to the end of a block or of the file. A lone NUL is damage. */
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

/* Identifies an attempt of a call. */
struct attempt {
  json_int_t call, number;
};

static struct attempt attempt_of(const json_t *record) {
  return (struct attempt){json_integer_value(json_object_get(record, "call")),
                          json_integer_value(json_object_get(record, "attempt"))};
}

static bool attach_is_type(const json_t *record, const char *type) {
  const char *own = json_string_value(json_object_get(record, "type"));
  return own != NULL && strcmp(own, type) == 0;
}

/* Returns whether a record follows, whatever its hash: then everything before it was once sound.
 * After a hole only a record of a later batch proves that: a resume, or the end of an attempt whose
 * start is not yet durable (`open` is the last durable one), since an attempt's reports can be in
 * the same batch as its end. */
static bool record_follows(struct log_reader *r, uint64_t seq, bool hole, struct attempt open) {
  struct str line;
  while (reader_next(r, &line)) {
    json_t *record = r->whole ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
    struct attempt attempt = attempt_of(record);
    bool begins = attach_is_type(record, "session_resume") ||
                  (attach_is_type(record, "call_end") &&
                   (attempt.call != open.call || attempt.number != open.number));
    bool found = json_integer_value(json_object_get(record, "seq")) > (json_int_t)seq &&
                 json_string_length(json_object_get(record, "hash")) == 64 && (begins || !hole);
    json_decref(record);
    if (found)
      return true;
  }
  return false;
}

static bool read_failed(const struct files_log *log, const struct log_reader *r, struct err *err) {
  if (r->error != 0)
    return !err_set_errno(err, r->error, "cannot read %s", log->base.name);
  if (r->too_long)
    return !err_set(err, ERR_CORRUPT, "a line of %s is over the limit of %u bytes", log->base.name,
                    LIMIT_LOG_LINE_BYTES);
  return false;
}

/* Returns true for a whole record, whatever its bytes are now: its end says so, or it is JSON. No
 * crash leaves that, so somebody changed it. */
static bool is_whole_record(const struct log_reader *r, struct str line, bool hole) {
  if (!r->whole || hole)
    return false;
  if (line_ends_well(line))
    return true;
  json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  bool whole = json_string_length(json_object_get(record, "hash")) == 64 &&
               json_integer_value(json_object_get(record, "seq")) > 0;
  json_decref(record);
  return whole;
}

/* Notes what a person had cut off, for the record that will say so. */
static bool note_cut(const struct files_log *log, uint64_t offset, uint64_t bytes,
                     struct store_mend *mend, struct err *err) {
  if (bytes > LIMIT_CUT_BYTES)
    return err_set(err, ERR_LIMIT, "more than %u bytes of %s would be cut off", LIMIT_CUT_BYTES,
                   log->base.name);
  char *tail = xmalloc(bytes);
  bool read = pread(log->fd, tail, bytes, (off_t)offset) == (ssize_t)bytes;
  if (read) {
    mend->cut_bytes = bytes;
    sha256_hex(tail, bytes, NULL, 0, mend->cut_sha256);
    for (uint64_t i = 0; i < bytes; i++)
      mend->cut_records += tail[i] == '\n' || i == bytes - 1;
  }
  free(tail);
  return read || err_set(err, ERR_IO, "cannot read %s", log->base.name);
}

/* Sets aside everything from a damaged line on, if it looks like what a crash leaves, or a person
 * asked for it. */
static bool mend_tail(struct files_log *log, struct log_reader *r, struct str line,
                      struct attempt open, const struct err *why, struct store_mend *mend,
                      struct err *err) {
  uint64_t offset = r->offset, bytes = (uint64_t)lseek(log->fd, 0, SEEK_END) - offset;
  bool hole = has_hole(line, offset);
  if (read_failed(log, r, err))
    return false;
  if (log->base.seq == 0)
    return err_set(err, ERR_CORRUPT, "%s has no whole first record: %s", log->base.name,
                   r->whole ? why->text : "it is cut off");
  bool damaged = is_whole_record(r, line, hole) || record_follows(r, log->base.seq, hole, open);
  if (damaged && !mend->cut)
    return err_set(err, ERR_CORRUPT,
                   "record %llu of %s is damaged: %s; segue resume --cut continues before it",
                   (unsigned long long)log->base.seq + 1, log->base.name, why->text);
  if (!damaged && read_failed(log, r, err))
    return false;
  if ((damaged && !note_cut(log, offset, bytes, mend, err)) || !keep_torn(log, offset, err))
    return false;
  (void)snprintf(mend->notice, sizeof mend->notice,
                 "a %s tail of %llu bytes was cut off the log (kept in %s.torn)",
                 damaged ? "damaged" : "torn", (unsigned long long)bytes, log->base.name);
  return true;
}

static bool fold_lines(struct files_log *log, struct log_reader *r, store_fold_fn fold, void *ctx,
                       struct store_mend *mend, struct err *err) {
  struct str line;
  struct attempt open = {0, 0};
  uint64_t good_end = 0, file_bytes = (uint64_t)lseek(log->fd, 0, SEEK_END);
  while (reader_next(r, &line)) {
    struct err why = {0};
    char hash[SHA256_HEX];
    memcpy(hash, log->base.hash, SHA256_HEX);
    json_t *record = r->whole ? line_parse(line, hash, &why) : NULL;
    if (record == NULL) {
      if (!mend_tail(log, r, line, open, &why, mend, err))
        return false;
      break;
    }
    bool ok = fold == NULL || fold(ctx, record, err);
    if (attach_is_type(record, "call_start"))
      open = attempt_of(record);
    json_decref(record);
    if (!ok)
      return false;
    if (log->offset_count % 256 == 0)
      log->offsets = xrealloc(log->offsets, (log->offset_count + 256) * sizeof *log->offsets);
    log->offsets[log->offset_count++] = r->offset;
    memcpy(log->base.hash, hash, SHA256_HEX);
    log->base.seq++;
    good_end = r->offset + line.n + 1;
  }
  if (read_failed(log, r, err))
    return false;
  if (log->base.seq == 0)
    return err_set(err, ERR_CORRUPT, "%s has no records: the session had not started; run it again",
                   log->base.name);
  if (good_end < file_bytes && ftruncate(log->fd, (off_t)good_end) != 0)
    return err_set_errno(err, errno, "cannot cut the torn tail off %s", log->base.name);
  log->base.bytes = log->folded_bytes = good_end;
  /* Recovery acts on what it read, so neither that nor the log's name may be only in the page
   * cache: the writer may have died before a sync. */
  if (fdatasync(log->fd) != 0 || !files_sync_dir(log->base.store->where))
    return err_set_errno(err, errno, "cannot sync %s", log->base.name);
  return true;
}

struct store_log *files_take(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                             void *ctx, struct store_mend *mend, struct err *err) {
  struct stat st;
  struct log_reader reader;
  const char *path = ref->name;
  int fd = fault_fails("attach") ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    (void)err_set_errno(err, errno, "cannot open %s", path);
    return NULL;
  }
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    (void)err_set(err, ERR_IO, "%s is not a regular file", path);
    return NULL;
  }
  if (!files_lock(fd, store->lock_wait_ms, path, err)) {
    close(fd);
    return NULL;
  }
  /* The log may have been replaced between open and lock. */
  if (!fs_is_named(fd, path, true)) {
    close(fd);
    (void)err_set(err, ERR_LOCKED, "%s is being replaced by its owner", path);
    return NULL;
  }
  struct files_log *log = files_log_new(store, path, fd);
  bool ok = reader_open(&reader, ref, err);
  if (ok) {
    ok = fold_lines(log, &reader, fold, ctx, mend, err);
    reader_close(&reader);
  }
  if (!ok) {
    store_close(&log->base);
    return NULL;
  }
  return &log->base;
}

struct store_log *files_attach(struct store *store, const struct store_ref *ref, store_fold_fn fold,
                               void *ctx, struct store_mend *mend, struct err *err) {
  if (!files_move_check(ref->name, err))
    return NULL;
  return files_take(store, ref, fold, ctx, mend, err);
}

json_t *files_read(struct store_log *base, uint64_t seq, struct err *err) {
  const struct files_log *log = (const struct files_log *)base;
  if (seq == 0 || seq > log->offset_count) {
    (void)err_set(err, ERR_CORRUPT, "%s has no record %llu", base->name, (unsigned long long)seq);
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
                  (unsigned long long)seq, base->name);
  return record;
}
