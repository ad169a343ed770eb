#include "store/files_internal.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/loop.h"
#include "store/line.h"
#include "store/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

unsigned store_pool_threads(void) {
  unsigned threads = 2 * uv_available_parallelism();
  return threads < LIMIT_POOL_THREADS_MIN   ? LIMIT_POOL_THREADS_MIN
         : threads > LIMIT_POOL_THREADS_MAX ? LIMIT_POOL_THREADS_MAX
                                            : threads;
}

bool files_sync_dir(const char *dir) {
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
  if (!files_sync_dir(slash ? parent : ".") &&
      errno != EACCES) /* not ours to open: not ours to sync */
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
bool files_lock(int fd, const char *path, struct err *err) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
    return true;
  if (errno == EAGAIN || errno == EACCES)
    return err_set(err, ERR_LOCKED, "another process owns %s: wait for it, or stop it first", path);
  return err_set_errno(err, errno, "cannot lock %s; its file system must support locks", path);
}

struct store_log *files_log_new(struct store *store, const char *path, int fd) {
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
  if (!files_lock(fd, path, err)) {
    close(fd);
    unlink(path);
    return NULL;
  }
  struct store_log *log = files_log_new(store, path, fd);
  log->sync_dir = true;
  return log;
}

/* --- appending --- */

bool files_write_all(int fd, const char *p, size_t n, uint64_t at) {
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

/* Copies the durable prefix to `to`, checking its chain on the way. By its descriptor: its name may
 * be gone. */
static bool copy_prefix(const struct store_log *log, int to, const char *after, struct err *err) {
  struct reader r;
  struct str line;
  char hash[SHA256_HEX];
  uint64_t at = 0;
  char path[32];
  memcpy(hash, line_first_hash, SHA256_HEX);
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", log->fd);
  if (!reader_open(&r, access(path, F_OK) == 0 ? path : log->path, err))
    return false;
  bool ok = true;
  while (ok && at < log->durable_bytes && reader_next(&r, &line)) {
    struct err why;
    json_t *record = r.whole ? line_parse(line, hash, &why) : NULL;
    ok = record != NULL && files_write_all(to, line.p, line.n, at) &&
         files_write_all(to, "\n", 1, at + line.n);
    json_decref(record);
    at += line.n + 1;
  }
  reader_close(&r);
  if (!ok || at != log->durable_bytes || memcmp(hash, log->hash, SHA256_HEX) != 0)
    return err_set(err, ERR_IO, "after %s %s is not what was written", after, log->path);
  return true;
}

/* Prefix and batch into a new file, which replaces the old one; `after` says what made it needed. */
static bool rewrite(struct store_log *log, const char *after, struct err *err) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s.new", log->path);
  unlink(path);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make %s", path);
  bool ok = files_lock(fd, path, err) && copy_prefix(log, fd, after, err);
  if (ok && (!files_write_all(fd, log->batch.p, log->batch.n, log->durable_bytes) ||
             fault_fails("sync") || fsync(fd) != 0 || rename(path, log->path) != 0 ||
             !files_sync_dir(log->store->dir)))
    ok = err_set_errno(err, errno, "cannot write %s again after %s", log->path, after);
  if (!ok) {
    close(fd);
    unlink(path);
    return false;
  }
  close(log->fd);
  log->fd = fd;
  return true;
}

/* Removed while it grew: what is written to it is lost with its descriptor. */
static bool is_gone(const struct store_log *log) {
  struct stat st;
  return fstat(log->fd, &st) == 0 && st.st_nlink == 0;
}

static bool bring_back(struct store_log *log, struct err *err) {
  struct stat st;
  if (lstat(log->path, &st) == 0) /* it may have an owner of its own by now */
    return err_set(err, ERR_IO, "%s was replaced by another file while the session ran", log->path);
  return rewrite(log, "its removal", err);
}

static enum store_result append_batch(struct store_log *log, struct err *err) {
  FAULT_POINT("append_before");
  if (!files_write_all(log->fd, log->batch.p, log->batch.n, log->durable_bytes)) {
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
  if (!synced && !rewrite(log, "a failed sync", err)) {
    (void)!ftruncate(log->fd,
                     (off_t)log->durable_bytes); /* what is there might never reach the disk */
    return STORE_IO;
  }
  if (log->sync_dir && !files_sync_dir(log->store->dir)) {
    (void)err_set_errno(err, errno, "cannot sync the folder %s", log->store->dir);
    return STORE_IO;
  }
  log->sync_dir = false;
  if (is_gone(log) && !bring_back(log, err))
    return STORE_IO;
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
  loop_work(loop, &log->work, append_work, append_after);
}

enum { BATCH_BYTES = 4096 }; /* at once: most batches need no more */

static void compose_batch(struct store_log *log, uint64_t expected_seq,
                          struct record *const *records, size_t n) {
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
                  struct record *const *records, size_t n, store_done_fn done, void *ctx) {
  compose_batch(log, expected_seq, records, n);
  queue_batch(log, loop, done, ctx);
}

void store_append_again(struct store_log *log, uv_loop_t *loop, store_done_fn done, void *ctx) {
  assert(log->batch.n > 0);
  queue_batch(log, loop, done, ctx);
}

enum store_result store_append_now(struct store_log *log, uint64_t expected_seq,
                                   struct record *const *records, size_t n, struct buf *lines,
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
