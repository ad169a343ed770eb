/* Makes, locks and appends to log files: the back end for one folder on one machine.
 *
 * DESIGN, durability. A batch is written after the last durable byte and synced; only then does its
 * append return STORE_OK. If there is no space, the file is cut back to the last durable byte, and
 * the caller keeps the batch and tries again. After a failed sync nobody knows what reached the
 * disk, and the descriptor is not trusted again: the file is reopened, its chain is compared up to
 * the last durable record, and prefix and batch go to a new file that replaces the old one. The
 * same happens if the file was removed under its owner (a cleaned folder); if another file replaced
 * it, that is an error. Appending runs in the loop's pool, where each work touches only its own
 * log. The lock belongs to the open file description. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/fs.h"
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

bool files_sync_dir(const char *dir) {
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool ok = fsync(fd) == 0;
  close(fd);
  return ok;
}

/* Makes one folder and syncs its name: otherwise a power cut could take all that was synced in
 * it. */
static bool make_dir(const char *path, struct err *err) {
  char parent[STORE_PATH_BYTES];
  if (mkdir(path, 0700) != 0)
    return errno == EEXIST ? true : err_set_errno(err, errno, "cannot make the folder %s", path);
  (void)snprintf(parent, sizeof parent, "%s", path);
  char *slash = strrchr(parent, '/');
  if (slash != NULL)
    slash[slash == parent ? 1 : 0] = '\0';
  if (!files_sync_dir(slash ? parent : ".") &&
      errno != EACCES) /* not ours to open, so not ours to sync */
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

static bool set_lock(int fd) {
  return !fault_fails("lock") && fs_lock(fd);
}

/* Tests locks on a nameless file: a second descriptor must be refused what the first one holds.
 * Some network and user-space file systems have no locks, others grant every one. */
static bool locks_work(const char *dir, struct err *err) {
  char path[STORE_PATH_BYTES + 40], again[FS_PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s/.locks.%ld", dir, (long)getpid());
  (void)unlink(path); /* left by a process that died just there */
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make a file in the log folder %s", dir);
  (void)unlink(path);
  fs_path_of(fd, again);
  int second = open(again, O_RDWR | O_CLOEXEC);
  if (second < 0) { /* there is no /proc */
    int number = errno;
    close(fd);
    return number == ENOENT || err_set_errno(err, number, "cannot use the log folder %s", dir);
  }
  bool held = set_lock(fd);
  int number = errno;
  bool refused = held && !set_lock(second);
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

bool files_open(struct store *store, struct err *err) {
  const char *dir = store->where;
  struct stat st;
  if (!make_dirs(dir, err))
    return false;
  if (stat(dir, &st) != 0)
    return err_set_errno(err, errno, "cannot use the log folder %s", dir);
  if (!S_ISDIR(st.st_mode))
    return err_set(err, ERR_IO, "the log folder %s is not a folder", dir);
  if (access(dir, W_OK | X_OK) != 0)
    return err_set_errno(err, errno, "cannot write to the log folder %s", dir);
  return locks_work(dir, err);
}

/* The lock dies with the descriptor, so with its owner. */
bool files_lock(int fd, unsigned wait_ms, const char *path, struct err *err) {
  if (fs_lock_within(fd, wait_ms))
    return true;
  if (fs_lock_is_taken(errno))
    return err_set(err, ERR_LOCKED, "another process owns %s: wait for it, or stop it first", path);
  return err_set_errno(err, errno, "cannot lock %s; its file system must support locks", path);
}

struct files_log *files_log_new(struct store *store, const char *path, int fd) {
  struct files_log *log = xcalloc(1, sizeof *log);
  store_log_init(&log->base, store, path);
  log->fd = fd;
  return log;
}

/* Makes the file of a log that has none yet. */
static bool make_file(struct files_log *log, struct err *err) {
  const char *path = log->base.name;
  int fd = fault_fails("create") ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    int number = errno;
    (void)err_set_errno(err, number, "cannot make the log %s", path);
    if (number == EMFILE || number == ENFILE) /* it can be made later */
      err->code = ERR_LIMIT;
    return false;
  }
  if (!files_lock(fd, 0, path, err)) {
    close(fd);
    unlink(path);
    return false;
  }
  log->fd = fd;
  log->sync_dir = true;
  return true;
}

struct store_log *files_create_later(struct store *store, const char *id) {
  char path[STORE_PATH_BYTES + STORE_ID_BYTES + 16];
  files_path(store, id, path, sizeof path);
  return &files_log_new(store, path, -1)->base;
}

struct store_log *files_create(struct store *store, const char *id, struct err *err) {
  struct store_log *log = files_create_later(store, id);
  if (make_file((struct files_log *)log, err))
    return log;
  store_close(log);
  return NULL;
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

/* Copies the durable prefix to `to`, checking its chain on the way. It reads by descriptor, since
 * the log's name may be gone. */
static bool copy_prefix(const struct files_log *log, int to, const char *after, struct err *err) {
  struct log_reader r;
  struct str line;
  char hash[SHA256_HEX];
  uint64_t at = 0;
  char path[FS_PATH_BYTES];
  struct store_ref ref;
  memcpy(hash, line_first_hash, SHA256_HEX);
  fs_path_of(log->fd, path);
  (void)store_ref_named(access(path, F_OK) == 0 ? path : log->base.name, &ref);
  if (!reader_open(&r, &ref, err))
    return false;
  bool ok = true;
  while (ok && at < log->base.bytes && reader_next(&r, &line)) {
    struct err why;
    json_t *record = r.whole ? line_parse(line, hash, &why) : NULL;
    ok = record != NULL && files_write_all(to, line.p, line.n, at) &&
         files_write_all(to, "\n", 1, at + line.n);
    json_decref(record);
    at += line.n + 1;
  }
  reader_close(&r);
  if (!ok || at != log->base.bytes || memcmp(hash, log->base.hash, SHA256_HEX) != 0)
    return err_set(err, ERR_IO, "after %s %s is not what was written", after, log->base.name);
  return true;
}

/* Writes prefix and batch to a new file that replaces the old one; `after` names the cause. */
static bool rewrite(struct files_log *log, const char *after, struct err *err) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s.new", log->base.name);
  unlink(path);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make %s", path);
  bool ok = files_lock(fd, 0, path, err) && copy_prefix(log, fd, after, err);
  if (ok && (!files_write_all(fd, log->base.batch.p, log->base.batch.n, log->base.bytes) ||
             fault_fails("sync") || fsync(fd) != 0 || rename(path, log->base.name) != 0 ||
             !files_sync_dir(log->base.store->where)))
    ok = err_set_errno(err, errno, "cannot write %s again after %s", log->base.name, after);
  if (!ok) {
    close(fd);
    unlink(path);
    return false;
  }
  close(log->fd);
  log->fd = fd;
  return true;
}

/* Returns true if the file was removed while it grew: what is written to it then is lost. */
static bool is_gone(const struct files_log *log) {
  struct stat st;
  return fstat(log->fd, &st) == 0 && st.st_nlink == 0;
}

static bool bring_back(struct files_log *log, struct err *err) {
  struct stat st;
  if (lstat(log->base.name, &st) == 0) /* the new file may have its own owner */
    return err_set(err, ERR_IO, "%s was replaced by another file while the session ran",
                   log->base.name);
  return rewrite(log, "its removal", err);
}

static enum store_result write_batch(struct files_log *log, struct err *err) {
  if (log->fd < 0 && !make_file(log, err))
    return err->code == ERR_FULL ? STORE_FULL : STORE_IO;
  FAULT_POINT("append_before");
  if (!files_write_all(log->fd, log->base.batch.p, log->base.batch.n, log->base.bytes)) {
    (void)err_set_errno(err, errno, "cannot write %s", log->base.name);
    bool cut = ftruncate(log->fd, (off_t)log->base.bytes) == 0;
    return err->code == ERR_FULL && cut ? STORE_FULL : STORE_IO;
  }
  FAULT_POINT("append_after");
  return STORE_OK;
}

static enum store_result sync_batch(struct files_log *log, struct err *err) {
  FAULT_POINT("sync_before");
  bool synced = !fault_fails("sync") && fdatasync(log->fd) == 0;
  int number = errno;
  log->base.syncs++;
  if (!synced && number == ENOSPC) { /* delayed allocation: there was no space after all */
    (void)err_set_errno(err, number, "cannot sync %s", log->base.name);
    return ftruncate(log->fd, (off_t)log->base.bytes) == 0 ? STORE_FULL : STORE_IO;
  }
  if (!synced && !rewrite(log, "a failed sync", err)) {
    (void)!ftruncate(log->fd, (off_t)log->base.bytes); /* it might never reach the disk */
    return STORE_IO;
  }
  if (log->sync_dir && !files_sync_dir(log->base.store->where)) {
    (void)err_set_errno(err, errno, "cannot sync the folder %s", log->base.store->where);
    return STORE_IO;
  }
  log->sync_dir = false;
  if (is_gone(log) && !bring_back(log, err))
    return STORE_IO;
  FAULT_POINT("sync_after");
  return STORE_OK;
}

static void note_result(struct files_log *log, enum store_result result, const struct err *err) {
  log->result = result;
  if (result == STORE_OK)
    return;
  log->err = xmalloc(sizeof *log->err);
  *log->err = *err;
}

/* Writes, and has the disk begin: while it works, the batches of other logs are written. */
static void append_begin(uv_work_t *work) {
  struct files_log *log = work->data;
  struct err err = {0};
  note_result(log, write_batch(log, &err), &err);
  if (log->result == STORE_OK)
    fs_sync_begin(log->fd, log->base.bytes, log->base.batch.n);
}

static void append_work(uv_work_t *work) {
  struct files_log *log = work->data;
  struct err err = {0};
  if (log->result == STORE_OK)
    note_result(log, sync_batch(log, &err), &err);
}

static void after_append(uv_work_t *work, int status) {
  struct files_log *log = work->data;
  assert(status == 0); /* works are never cancelled */
  struct err *err = log->err;
  log->err = NULL;
  store_append_over(&log->base, log->result, err);
  free(err);
}

void files_append(struct store_log *base, uv_loop_t *loop) {
  struct files_log *log = (struct files_log *)base;
  log->work.data = log;
  loop_work_soon(loop, &log->work, append_begin, append_work, after_append);
}

enum store_result files_append_now(struct store_log *base, struct err *err) {
  struct files_log *log = (struct files_log *)base;
  enum store_result result = write_batch(log, err);
  return result == STORE_OK ? sync_batch(log, err) : result;
}

/* Compares the file with what was durable: after a failed write or sync nobody knows how much of
 * the batch is on the disk, and the kernel may show bytes that never will be. */
bool files_settle(struct store_log *log, struct err *err) {
  struct stat st;
  const char *path = log->name;
  if (stat(path, &st) != 0)
    return err_set_errno(err, errno, "cannot look at %s", path);
  if ((uint64_t)st.st_size < log->bytes)
    return err_set(err, ERR_CORRUPT, "%s has lost records", path);
  if ((uint64_t)st.st_size > log->bytes && truncate(path, (off_t)log->bytes) != 0)
    return err_set_errno(err, errno, "cannot cut %s back to its confirmed part", path);
  return true;
}

void files_close(struct store_log *base) {
  struct files_log *log = (struct files_log *)base;
  if (log->fd >= 0)
    close(log->fd);
  free(log->err);
  free(log->offsets);
  free(log);
}
