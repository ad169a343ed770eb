#include "store/store.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/line.h"
#include "store/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

unsigned store_pool_threads(void) {
  unsigned threads = 2 * uv_available_parallelism();
  return threads < LIMIT_POOL_THREADS_MIN   ? LIMIT_POOL_THREADS_MIN
         : threads > LIMIT_POOL_THREADS_MAX ? LIMIT_POOL_THREADS_MAX
                                            : threads;
}

struct store_log {
  struct store *store;
  char *path;
  int fd;
  uint64_t durable_bytes; /* what a sync has confirmed */
  uint64_t seq;           /* of the last durable record */
  char hash[SHA256_HEX];  /* of the last durable record */
  bool sync_dir;          /* the file is new: its name is not durable yet */
  bool broken;
  uint64_t syncs;
  uint64_t *offsets; /* by seq - 1, of an attached log: for store_read */
  size_t offset_count;
  uint64_t folded_bytes; /* where the last of them ends */
  /* the batch in flight, or kept after STORE_FULL */
  struct buf batch;
  uint64_t batch_seq;
  char batch_hash[SHA256_HEX];
  bool in_flight;
  uv_work_t work;
  enum store_result result;
  struct err *err; /* of the last append, NULL when it went well */
  store_done_fn done;
  void *done_ctx;
};

static bool sync_dir(const char *dir) {
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool ok = fsync(fd) == 0;
  close(fd);
  return ok;
}

/* One folder; a new one's name is synced, or a power cut could take all that was synced in it. */
static bool make_dir(const char *path, struct err *err) {
  char parent[STORE_PATH_BYTES];
  if (mkdir(path, 0700) != 0)
    return errno == EEXIST ? true : err_set_errno(err, errno, "cannot make the folder %s", path);
  (void)snprintf(parent, sizeof parent, "%s", path);
  char *slash = strrchr(parent, '/');
  if (slash != NULL)
    slash[slash == parent ? 1 : 0] = '\0';
  if (!sync_dir(slash ? parent : ".") && errno != EACCES) /* not ours to open: not ours to sync */
    return err_set_errno(err, errno, "cannot sync the folder %s", parent);
  return true;
}

static bool make_dirs(const char *dir, struct err *err) {
  char path[STORE_PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s", dir);
  for (char *p = path + 1; *p; p++)
    if (*p == '/') {
      *p = '\0';
      if (!make_dir(path, err))
        return false;
      *p = '/';
    }
  return make_dir(path, err);
}

static int set_lock(int fd) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (!fault_fails("lock"))
    return fcntl(fd, F_OFD_SETLK, &lock);
  return -1;
}

/* On a nameless file: a second descriptor must be refused what the first one holds. Some network and
 * user-space file systems know no locks, others grant every one. */
static bool locks_work(const char *dir, struct err *err) {
  char path[STORE_PATH_BYTES + 40], again[40];
  (void)snprintf(path, sizeof path, "%s/.locks.%ld", dir, (long)getpid());
  (void)unlink(path); /* of a process that died just there */
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make a file in the log folder %s", dir);
  (void)unlink(path);
  (void)snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
  int second = open(again, O_RDWR | O_CLOEXEC);
  if (second < 0) { /* without /proc */
    int number = errno;
    close(fd);
    return number == ENOENT || err_set_errno(err, number, "cannot use the log folder %s", dir);
  }
  bool held = set_lock(fd) == 0;
  int number = errno;
  bool refused = held && set_lock(second) != 0;
  close(fd);
  close(second);
  if (!held)
    return err_set_errno(err, number,
                         "the file system of the log folder %s has no locks: choose another folder",
                         dir);
  return refused || err_set(err, ERR_IO,
                            "locks do not work on the file system of the log folder %s, so two "
                            "programs could write one log: choose another folder",
                            dir);
}

bool store_open(struct store *store, const char *dir, struct err *err) {
  struct stat st;
  *store = (struct store){0};
  if (strlen(dir) >= sizeof store->dir - 80)
    return err_set(err, ERR_LIMIT, "the path of the log folder is too long");
  (void)snprintf(store->dir, sizeof store->dir, "%s", dir);
  if (!make_dirs(store->dir, err))
    return false;
  if (stat(store->dir, &st) != 0)
    return err_set_errno(err, errno, "cannot use the log folder %s", dir);
  if (!S_ISDIR(st.st_mode))
    return err_set(err, ERR_IO, "the log folder %s is not a folder", dir);
  if (access(store->dir, W_OK | X_OK) != 0)
    return err_set_errno(err, errno, "cannot write to the log folder %s", dir);
  return locks_work(dir, err);
}

/* The lock dies with the descriptor, so with its owner. */
static bool lock_log(int fd, const char *path, struct err *err) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
    return true;
  if (errno == EAGAIN || errno == EACCES)
    return err_set(err, ERR_LOCKED, "another process owns %s: wait for it, or stop it first", path);
  return err_set_errno(err, errno, "cannot lock %s; its file system must support locks", path);
}

static struct store_log *log_new(struct store *store, const char *path, int fd) {
  struct store_log *log = xcalloc(1, sizeof *log);
  log->store = store;
  log->path = xstrdup(path);
  log->fd = fd;
  memcpy(log->hash, line_first_hash, SHA256_HEX);
  return log;
}

struct store_log *store_create(struct store *store, const char *id, struct err *err) {
  char path[STORE_PATH_BYTES + STORE_ID_BYTES + 16];
  (void)snprintf(path, sizeof path, "%s/%s.ndjson", store->dir, id);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    (void)err_set_errno(err, errno, "cannot make the log %s", path);
    return NULL;
  }
  if (!lock_log(fd, path, err)) {
    close(fd);
    unlink(path);
    return NULL;
  }
  struct store_log *log = log_new(store, path, fd);
  log->sync_dir = true;
  return log;
}

/* --- attaching --- */

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
  if (!lock_log(fd, path, err)) {
    close(fd);
    return NULL;
  }
  /* The log may have been replaced between open and lock. */
  if (stat(path, &by_path) != 0 || by_fd.st_ino != by_path.st_ino) {
    close(fd);
    (void)err_set(err, ERR_LOCKED, "%s is being replaced by its owner", path);
    return NULL;
  }
  struct store_log *log = log_new(store, path, fd);
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

/* --- appending --- */

static bool write_all(int fd, const char *p, size_t n, uint64_t at) {
  while (n > 0) {
    if (fault_fails("write"))
      return false;
    ssize_t done = pwrite(fd, p, n, (off_t)at);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return false;
    p += done;
    n -= (size_t)done;
    at += (uint64_t)done;
  }
  return true;
}

/* Copies the durable prefix to `to`, checking its chain on the way. */
static bool copy_prefix(const struct store_log *log, int to, struct err *err) {
  struct reader r;
  struct str line;
  char hash[SHA256_HEX];
  uint64_t at = 0;
  memcpy(hash, line_first_hash, SHA256_HEX);
  if (!reader_open(&r, log->path, err))
    return false;
  bool ok = true;
  while (ok && at < log->durable_bytes && reader_next(&r, &line)) {
    struct err why;
    json_t *record = r.whole ? line_parse(line, hash, &why) : NULL;
    ok = record != NULL && write_all(to, line.p, line.n, at) && write_all(to, "\n", 1, at + line.n);
    json_decref(record);
    at += line.n + 1;
  }
  reader_close(&r);
  if (!ok || at != log->durable_bytes || memcmp(hash, log->hash, SHA256_HEX) != 0)
    return err_set(err, ERR_IO, "after a failed sync %s is not what was written", log->path);
  return true;
}

/* After a failed sync: prefix and batch into a new file, which replaces the old one. */
static bool rewrite(struct store_log *log, struct err *err) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s.new", log->path);
  unlink(path);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make %s", path);
  bool ok = lock_log(fd, path, err) && copy_prefix(log, fd, err);
  if (ok &&
      (!write_all(fd, log->batch.p, log->batch.n, log->durable_bytes) || fault_fails("sync") ||
       fsync(fd) != 0 || rename(path, log->path) != 0 || !sync_dir(log->store->dir)))
    ok = err_set_errno(err, errno, "cannot write %s again after a failed sync", log->path);
  if (!ok) {
    close(fd);
    unlink(path);
    return false;
  }
  close(log->fd);
  log->fd = fd;
  return true;
}

static enum store_result append_batch(struct store_log *log, struct err *err) {
  FAULT_POINT("append_before");
  if (!write_all(log->fd, log->batch.p, log->batch.n, log->durable_bytes)) {
    (void)err_set_errno(err, errno, "cannot write %s", log->path);
    bool cut = ftruncate(log->fd, (off_t)log->durable_bytes) == 0;
    return err->code == ERR_FULL && cut ? STORE_FULL : STORE_IO;
  }
  FAULT_POINT("append_after");
  FAULT_POINT("sync_before");
  bool synced = !fault_fails("sync") && fdatasync(log->fd) == 0;
  int number = errno;
  log->syncs++;
  if (!synced && number == ENOSPC) { /* delayed allocation: the space was missing after all */
    (void)err_set_errno(err, number, "cannot sync %s", log->path);
    return ftruncate(log->fd, (off_t)log->durable_bytes) == 0 ? STORE_FULL : STORE_IO;
  }
  if (!synced && !rewrite(log, err)) {
    (void)!ftruncate(log->fd,
                     (off_t)log->durable_bytes); /* what is there might never reach the disk */
    return STORE_IO;
  }
  if (log->sync_dir && !sync_dir(log->store->dir)) {
    (void)err_set_errno(err, errno, "cannot sync the folder %s", log->store->dir);
    return STORE_IO;
  }
  log->sync_dir = false;
  FAULT_POINT("sync_after");
  return STORE_OK;
}

static void append_work(uv_work_t *work) {
  struct store_log *log = work->data;
  struct err err = {0};
  log->result = append_batch(log, &err);
  if (log->result != STORE_OK) {
    log->err = xmalloc(sizeof *log->err);
    *log->err = err;
  }
}

/* What the work came to, taken over on the loop. The batch's bytes are given to the caller. */
static struct buf append_taken(struct store_log *log) {
  struct buf batch = log->batch;
  if (log->result == STORE_OK) {
    log->durable_bytes += batch.n;
    log->seq = log->batch_seq;
    memcpy(log->hash, log->batch_hash, SHA256_HEX);
    log->batch = (struct buf){0};
  } else if (log->result == STORE_IO) {
    log->broken = true;
  }
  return batch;
}

static void append_after(uv_work_t *work, int status) {
  struct store_log *log = work->data;
  assert(status == 0); /* works are never cancelled */
  log->in_flight = false;
  enum store_result result = log->result;
  struct err *err = log->err;
  struct buf batch = append_taken(log);
  log->err = NULL;
  log->done(log->done_ctx, result, buf_view(&batch), err);
  if (result == STORE_OK)
    buf_deinit(&batch);
  free(err);
}

static void queue_batch(struct store_log *log, uv_loop_t *loop, store_done_fn done, void *ctx) {
  assert(!log->in_flight);
  assert(!log->broken);
  log->in_flight = true;
  log->done = done;
  log->done_ctx = ctx;
  log->work.data = log;
  if (uv_queue_work(loop, &log->work, append_work, append_after) != 0)
    BUG("the pool takes no work");
}

enum { BATCH_BYTES = 4096 }; /* at once: most batches need no more */

static void compose_batch(struct store_log *log, uint64_t expected_seq, json_t *const *records,
                          size_t n) {
  assert(n > 0);
  assert(expected_seq == log->seq + 1);
  assert(log->batch.n == 0);
  memcpy(log->batch_hash, log->hash, SHA256_HEX);
  buf_reserve(&log->batch, BATCH_BYTES);
  for (size_t i = 0; i < n; i++)
    line_compose(records[i], &log->batch, log->batch_hash);
  log->batch_seq = log->seq + n;
}

void store_append(struct store_log *log, uv_loop_t *loop, uint64_t expected_seq,
                  json_t *const *records, size_t n, store_done_fn done, void *ctx) {
  compose_batch(log, expected_seq, records, n);
  queue_batch(log, loop, done, ctx);
}

void store_append_again(struct store_log *log, uv_loop_t *loop, store_done_fn done, void *ctx) {
  assert(log->batch.n > 0);
  queue_batch(log, loop, done, ctx);
}

enum store_result store_append_now(struct store_log *log, uint64_t expected_seq,
                                   json_t *const *records, size_t n, struct buf *lines,
                                   struct err **err) {
  assert(!log->in_flight);
  assert(!log->broken);
  compose_batch(log, expected_seq, records, n);
  log->work.data = log;
  append_work(&log->work);
  enum store_result result = log->result;
  struct buf batch = append_taken(log);
  if (result == STORE_OK)
    *lines = batch;
  *err = log->err;
  log->err = NULL;
  return result;
}

const char *store_log_path(const struct store_log *log) {
  return log->path;
}

uint64_t store_log_seq(const struct store_log *log) {
  return log->seq;
}

uint64_t store_log_bytes(const struct store_log *log) {
  return log->durable_bytes;
}

uint64_t store_log_syncs(const struct store_log *log) {
  return log->syncs;
}

void store_close(struct store_log *log) {
  if (log == NULL)
    return;
  assert(!log->in_flight);
  close(log->fd);
  buf_deinit(&log->batch);
  free(log->path);
  free(log->err);
  free(log->offsets);
  free(log);
}

/* --- blobs --- */

bool store_blob_put(const struct store *store, struct str bytes, char sha256[SHA256_HEX],
                    struct err *err) {
  char dir[STORE_PATH_BYTES + 8], path[STORE_PATH_BYTES + 128], temp[STORE_PATH_BYTES + 160];
  struct stat st;
  sha256_hex(bytes.p, bytes.n, NULL, 0, sha256);
  (void)snprintf(dir, sizeof dir, "%s/blobs", store->dir);
  (void)snprintf(path, sizeof path, "%s/%s", dir, sha256);
  if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes.n)
    return sync_dir(dir) && sync_dir(store->dir) /* its bytes are synced, its name may not be */
               ? true
               : err_set_errno(err, errno, "cannot sync the folder %s", dir);
  if (mkdir(dir, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", dir);
  (void)snprintf(temp, sizeof temp, "%s/.%s.%ld.%p", dir, sha256, (long)getpid(), (void *)&st);
  int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make %s", temp);
  FAULT_POINT("append_before");
  bool ok = write_all(fd, bytes.p, bytes.n, 0);
  FAULT_POINT("sync_before");
  ok = ok && !fault_fails("sync") && fsync(fd) == 0;
  int number = errno;
  FAULT_POINT("sync_after");
  ok = close(fd) == 0 && ok;
  if (!ok || rename(temp, path) != 0 || !sync_dir(dir) || !sync_dir(store->dir)) {
    number = ok ? errno : number;
    unlink(temp);
    return err_set_errno(err, number, "cannot write the blob %s", path);
  }
  return true;
}

bool store_blob_get(const char *dir, const char *sha256, struct buf *out, struct err *err) {
  char path[STORE_PATH_BYTES + 128], found[SHA256_HEX];
  struct stat st;
  if (strspn(sha256, "0123456789abcdef") != 64 || sha256[64] != '\0')
    return err_set(err, ERR_CORRUPT, "\"%.80s\" is not the name of a blob", sha256);
  (void)snprintf(path, sizeof path, "%s/blobs/%s", dir, sha256);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot open the blob %s", path);
  bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < (1 << 30);
  buf_clear(out);
  if (ok) {
    size_t n = (size_t)st.st_size;
    buf_reserve(out, n);
    while (out->n < n) {
      ssize_t got = read(fd, out->p + out->n, n - out->n);
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        break;
      out->n += (size_t)got;
    }
    out->p[out->n] = '\0';
    ok = out->n == n;
  }
  close(fd);
  if (!ok)
    return err_set(err, ERR_CORRUPT, "the blob %s cannot be read", path);
  sha256_hex(out->p, out->n, NULL, 0, found);
  if (memcmp(found, sha256, 64) != 0)
    return err_set(err, ERR_CORRUPT, "the blob %s is not what was written", path);
  return true;
}
