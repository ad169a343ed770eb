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
#include "store/sidecar.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "os/fs.h"
#include "os/loop.h"
#include "store/reader.h"
#include "store/record_line.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct files_log {
  struct store_log base; /* its name is a path */
  int fd;                /* -1: its first append makes the file */
  bool sync_dir;         /* the file is new: its name is not durable yet */
  uint64_t *offsets;     /* by seq - 1, of an attached log: for files_read */
  size_t offset_count;
  uint64_t folded_bytes; /* where the last folded record ends */
  uv_work_t work;
  enum store_result result;
  struct err *err; /* error of the work, NULL when it went well */
};

#define FILES_SUFFIX ".ndjson"
#define FILES_MOVING ".moving" /* behind the name of a log in transit */
#define FILES_MOVED  ".moved"  /* behind that of a log that was set aside */
enum { ID_CHARS = STORE_ID_BYTES - 1, SUFFIX_CHARS = sizeof FILES_SUFFIX - 1 };

/* --- the folder and its locks --- */

/* Makes one folder and syncs its name: otherwise a power cut could take all that was synced in
 * it. */
static bool make_dir(const char *path, struct err *err) {
  char parent[STORE_PATH_BYTES];
  if (mkdir(path, 0700) != 0)
    return errno == EEXIST ||
           err_set_errno(err, errno, "cannot make the folder %s, of --logs or SEGUE_LOGS", path);
  print_into(parent, sizeof parent, "%s", path);
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
  print_into(path, sizeof path, "%s", dir);
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
  print_into(path, sizeof path, "%s/.locks.%ld", dir, (long)getpid());
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

/* These are the functions of files_ops, by file. */
static bool files_open(struct store *store, struct err *err) {
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
static bool files_lock(int fd, unsigned wait_ms, const char *path, struct err *err) {
  if (fs_lock_within(fd, wait_ms))
    return true;
  if (fs_lock_is_taken(errno))
    return err_set(err, ERR_LOCKED, "another process owns %s: wait for it, or stop it first", path);
  return err_set_errno(err, errno, "cannot lock %s; its file system must support locks", path);
}

static struct files_log *files_log_new(struct store *store, const char *path, int fd) {
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
    err_set_errno(err, number, "cannot make the log %s", path);
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

static void files_path(const struct store *store, const char *id, char *out, size_t room) {
  print_into(out, room, "%s/%s" FILES_SUFFIX, store->where, id);
}

static struct store_log *files_create_later(struct store *store, const char *id) {
  char path[STORE_PATH_BYTES + STORE_ID_BYTES + 16];
  files_path(store, id, path, sizeof path);
  return &files_log_new(store, path, -1)->base;
}

static struct store_log *files_create(struct store *store, const char *id, struct err *err) {
  struct store_log *log = files_create_later(store, id);
  if (make_file((struct files_log *)log, err))
    return log;
  store_close(log);
  return NULL;
}

/* --- appending --- */

/* Copies the durable prefix to `to`, checking its chain on the way. It reads by descriptor, since
 * the log's name may be gone. */
static bool copy_prefix(const struct files_log *log, int to, const char *after, struct err *err) {
  struct log_reader r;
  struct str line;
  char hash[SHA256_HEX];
  uint64_t at = 0;
  char path[FS_PATH_BYTES];
  struct store_ref ref;
  memcpy(hash, record_line_first_hash, SHA256_HEX);
  fs_path_of(log->fd, path);
  (void)store_ref_named(access(path, F_OK) == 0 ? path : log->base.name, &ref);
  if (!reader_open(&r, &ref, err))
    return false;
  bool ok = true;
  while (ok && at < log->base.bytes && reader_next(&r, &line)) {
    struct err why;
    json_auto_t *record = r.whole ? record_line_parse(line, hash, &why) : NULL;
    ok = record != NULL && files_write_all(to, line.p, line.n, at) &&
         files_write_all(to, "\n", 1, at + line.n);
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
  print_into(path, sizeof path, "%s.new", log->base.name);
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

static enum store_result write_batch(struct files_log *log, struct err *err) {
  if (log->fd < 0 && !make_file(log, err))
    return err->code == ERR_FULL ? STORE_FULL : STORE_IO;
  FAULT_POINT("append_before");
  if (!files_write_all(log->fd, log->base.batch.p, log->base.batch.n, log->base.bytes)) {
    err_set_errno(err, errno, "cannot write %s", log->base.name);
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
    err_set_errno(err, number, "cannot sync %s", log->base.name);
    return ftruncate(log->fd, (off_t)log->base.bytes) == 0 ? STORE_FULL : STORE_IO;
  }
  if (!synced && !rewrite(log, "a failed sync", err)) {
    (void)!ftruncate(log->fd, (off_t)log->base.bytes); /* it might never reach the disk */
    return STORE_IO;
  }
  if (log->sync_dir && !files_sync_dir(log->base.store->where)) {
    err_set_errno(err, errno, "cannot sync the folder %s", log->base.store->where);
    return STORE_IO;
  }
  log->sync_dir = false;
  /* If the file was removed while it grew, what is written to it is lost. */
  struct stat st;
  if (fstat(log->fd, &st) == 0 && st.st_nlink == 0) {
    if (lstat(log->base.name, &st) == 0) { /* the new file may have its own owner */
      err_set(err, ERR_IO, "%s was replaced by another file while the session ran", log->base.name);
      return STORE_IO;
    }
    if (!rewrite(log, "its removal", err))
      return STORE_IO;
  }
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

static void files_append(struct store_log *base, uv_loop_t *loop) {
  struct files_log *log = (struct files_log *)base;
  log->work.data = log;
  loop_work_soon(loop, &log->work, append_begin, append_work, after_append);
}

static enum store_result files_append_now(struct store_log *base, struct err *err) {
  struct files_log *log = (struct files_log *)base;
  enum store_result result = write_batch(log, err);
  return result == STORE_OK ? sync_batch(log, err) : result;
}

/* Compares the file with what was durable: after a failed write or sync nobody knows how much of
 * the batch is on the disk, and the kernel may show bytes that never will be. */
static bool files_settle(struct store_log *log, struct err *err) {
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

static void files_close(struct store_log *base) {
  struct files_log *log = (struct files_log *)base;
  if (log->fd >= 0)
    close(log->fd);
  free(log->err);
  free(log->offsets);
  free(log);
}

/* --- reading a log back for its owner --- */

/* Copies the bytes from `offset` to <log>.torn, so that nothing is lost. */
static bool keep_torn(const struct files_log *log, uint64_t offset, struct err *err) {
  char path[PATH_MAX], chunk[64 * 1024];
  print_into(path, sizeof path, "%s.torn", log->base.name);
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
    err_set_errno(err, errno, "cannot write %s", path);
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

/* Returns whether a record follows, whatever its hash: then everything before it was once sound.
 * After a hole only a record of a later batch proves that: a resume, or the end of an attempt whose
 * start is not yet durable (`open` is the last durable one), since an attempt's reports can be in
 * the same batch as its end. */
static bool record_follows(struct log_reader *r, uint64_t seq, bool hole, struct attempt open) {
  struct str line;
  while (reader_next(r, &line)) {
    json_auto_t *record = r->whole ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
    struct attempt attempt = attempt_of(record);
    struct str type = json_view(json_at(record, "type"));
    bool begins = str_eq_c(type, "session_resume") ||
                  (str_eq_c(type, "call_end") &&
                   (attempt.call != open.call || attempt.number != open.number));
    bool found = json_integer_value(json_object_get(record, "seq")) > (json_int_t)seq &&
                 json_string_length(json_object_get(record, "hash")) == 64 && (begins || !hole);
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
  if (record_line_ends_well(line))
    return true;
  json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  return json_string_length(json_object_get(record, "hash")) == 64 &&
         json_integer_value(json_object_get(record, "seq")) > 0;
}

/* Notes what a person had cut off, for the record that will say so. */
static bool note_cut(const struct files_log *log, uint64_t offset, uint64_t bytes,
                     struct store_mend *mend, struct err *err) {
  if (bytes > LIMIT_CUT_BYTES)
    return err_set(err, ERR_LIMIT, "more than %u bytes of %s would be cut off", LIMIT_CUT_BYTES,
                   log->base.name);
  char_auto_t *tail = xmalloc(bytes);
  bool read = pread(log->fd, tail, bytes, (off_t)offset) == (ssize_t)bytes;
  if (read) {
    mend->cut_bytes = bytes;
    sha256_hex(tail, bytes, NULL, 0, mend->cut_sha256);
    for (uint64_t i = 0; i < bytes; i++)
      mend->cut_records += tail[i] == '\n' || i == bytes - 1;
  }
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
  print_into(mend->notification, sizeof mend->notification,
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
    json_t *record = r->whole ? record_line_parse(line, hash, &why) : NULL;
    if (record == NULL) {
      if (!mend_tail(log, r, line, open, &why, mend, err))
        return false;
      break;
    }
    bool ok = fold == NULL || fold(ctx, record, err);
    if (str_eq_c(json_view(json_at(record, "type")), "call_start"))
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

/* Does the same, also for a log in transit. */
static struct store_log *files_take(struct store *store, const struct store_ref *ref,
                                    store_fold_fn fold, void *ctx, struct store_mend *mend,
                                    struct err *err) {
  struct stat st;
  struct log_reader reader;
  const char *path = ref->name;
  int fd = fault_fails("attach") ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    err_set_errno(err, errno, "cannot open %s", path);
    return NULL;
  }
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    err_set(err, ERR_IO, "%s is not a regular file", path);
    return NULL;
  }
  if (!files_lock(fd, store->lock_wait_ms, path, err)) {
    close(fd);
    return NULL;
  }
  /* The log may have been replaced between open and lock. */
  if (!fs_is_named(fd, path, true)) {
    close(fd);
    err_set(err, ERR_LOCKED, "%s is being replaced by its owner", path);
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

/* Returns false, with err, for the name of a file that is in transit or was set aside. */
static bool files_move_check(const char *name, struct err *err) {
  struct str s = str_from(name);
  if (str_ends(s, ".ndjson" FILES_MOVING))
    return err_set(err, ERR_INVALID,
                   "%s was being copied here: repeat that segue store export with the same options",
                   name);
  if (str_ends(s, ".ndjson" FILES_MOVED))
    return err_set(err, ERR_INVALID, "%s was moved to another store: it continues there", name);
  return true;
}

static struct store_log *files_attach(struct store *store, const struct store_ref *ref,
                                      store_fold_fn fold, void *ctx, struct store_mend *mend,
                                      struct err *err) {
  if (!files_move_check(ref->name, err))
    return NULL;
  return files_take(store, ref, fold, ctx, mend, err);
}

static json_t *files_read(struct store_log *base, uint64_t seq, struct err *err) {
  const struct files_log *log = (const struct files_log *)base;
  if (seq == 0 || seq > log->offset_count) {
    err_set(err, ERR_CORRUPT, "%s has no record %llu", base->name, (unsigned long long)seq);
    return NULL;
  }
  uint64_t start = log->offsets[seq - 1];
  uint64_t end = seq < log->offset_count ? log->offsets[seq] : log->folded_bytes;
  size_t n = (size_t)(end - start);
  char_auto_t *bytes = xmalloc(n);
  json_t *record = NULL;
  if (pread(log->fd, bytes, n, (off_t)start) == (ssize_t)n)
    record = json_loadb(bytes, n - 1, JSON_ALLOW_NUL, NULL);
  if (record == NULL)
    err_set(err, ERR_CORRUPT, "record %llu of %s cannot be read back", (unsigned long long)seq,
            base->name);
  return record;
}

/* --- reading bytes --- */

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
    err_set_errno(err, errno, "cannot open %s", path);
    return -1;
  }
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    *bytes = st.st_size;
    return fd;
  }
  close(fd);
  err_set(err, ERR_IO, "%s is not a regular file", path);
  return -1;
}

static struct store_raw *files_raw_open(const struct store_ref *ref, struct err *err) {
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
static ssize_t files_raw_read(struct store_raw *raw, uint64_t at, char *out, size_t max) {
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

static uint64_t files_raw_bytes(const struct store_raw *raw) {
  struct stat st;
  return fstat(raw->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool files_raw_again(struct store_raw *raw, bool *replaced) {
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

static bool files_raw_is_owned(const struct store_raw *raw) {
  return fs_is_locked(raw->fd);
}

static void files_raw_close(struct store_raw *raw) {
  close(raw->fd);
  free(raw->path);
  free(raw);
}

/* --- moving: the target --- */

/* In transit a log is ID.ndjson.moving, which is not the name of a log. Set aside it is
 * ID.ndjson.moved, and ID.ndjson.moved.to says where it continues. */

/* Removes the part of a log that an older copy left under the log's name: the source continues. */
static bool drop_part(const char *path, uint64_t bytes, struct err *err) {
  struct stat st;
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return errno == ENOENT || err_set_errno(err, errno, "cannot open %s", path);
  bool ok = files_lock(fd, 0, path, err);
  if (ok && (fstat(fd, &st) != 0 || (uint64_t)st.st_size != bytes || !fs_is_named(fd, path, false)))
    ok = err_set(err, ERR_LOCKED, "%s is not as it was a moment ago", path);
  if (ok && unlink(path) != 0)
    ok = err_set_errno(err, errno, "cannot remove %s", path);
  close(fd);
  return ok;
}

/* Starts over, on what an earlier move left. Only the owner of its lock may rename it. */
static struct store_log *begin_move(struct store *store, const char *path, const char *moving,
                                    uint64_t bytes, struct err *err) {
  int fd = open(moving, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    err_set_errno(err, errno, "cannot make %s", moving);
    return NULL;
  }
  bool ok = files_lock(fd, 0, moving, err);
  if (ok && !fs_is_named(fd, moving, false))
    ok = err_set(err, ERR_LOCKED, "%s was renamed by another process", moving);
  if (ok && ftruncate(fd, 0) != 0)
    ok = err_set_errno(err, errno, "cannot write %s", moving);
  if (!ok || !drop_part(path, bytes, err)) {
    if (ok) /* it is ours, and empty */
      (void)unlink(moving);
    close(fd);
    return NULL;
  }
  struct files_log *log = files_log_new(store, moving, fd);
  log->sync_dir = true;
  return &log->base;
}

static struct store_log *files_move_in(struct store *store, const char *id,
                                       const struct store_move *move, struct err *err) {
  struct store_ref ref;
  struct store_mend mend = {0};
  char path[STORE_PATH_BYTES + STORE_ID_BYTES + 16];
  files_path(store, id, path, sizeof path);
  ref.ops = store->ops;
  print_into(ref.name, sizeof ref.name, "%s" FILES_MOVING, path);
  if (move->begins)
    return begin_move(store, path, ref.name, move->bytes, err);
  return files_take(store, &ref, NULL, NULL, &mend, err);
}

static bool files_arrive(struct store_log *log, struct err *err) {
  char path[PATH_MAX];
  size_t n = strlen(log->name) - strlen(FILES_MOVING);
  print_into(path, sizeof path, "%.*s", (int)n, log->name);
  FAULT_POINT("arrive_before");
  if (!fs_is_named(((struct files_log *)log)->fd, log->name, false))
    return err_set(err, ERR_LOCKED, "%s was replaced by another process", log->name);
  if (access(path, F_OK) == 0)
    return err_set(err, ERR_INVALID, "%s already exists", path);
  if (rename(log->name, path) != 0 || !files_sync_dir(log->store->where))
    return err_set_errno(err, errno, "cannot make the log %s", path);
  FAULT_POINT("arrive_after");
  return true;
}

/* --- moving: the source --- */

static bool files_set_aside(struct store_log *log, const char *to, struct err *err) {
  char path[PATH_MAX], note[PATH_MAX];
  print_into(path, sizeof path, "%s" FILES_MOVED, log->name);
  print_into(note, sizeof note, "%s" FILES_MOVED ".to", log->name);
  FAULT_POINT("aside_before");
  int fd = open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool ok = fd >= 0 && files_write_all(fd, to, strlen(to), 0) && fsync(fd) == 0;
  if (!ok)
    err_set_errno(err, errno, "cannot write %s", note);
  if (fd >= 0)
    close(fd);
  if (!ok)
    return false;
  if (!files_sync_dir(log->store->where))
    return err_set_errno(err, errno, "cannot sync the folder %s", log->store->where);
  FAULT_POINT("aside_noted");
  if (rename(log->name, path) != 0 || !files_sync_dir(log->store->where))
    return err_set_errno(err, errno, "cannot set %s aside", log->name);
  FAULT_POINT("aside_after");
  return true;
}

static bool files_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
                               char to[STORE_NAME_BYTES]) {
  char note[STORE_NAME_BYTES + 16];
  struct stat st;
  aside->ops = ref->ops;
  to[0] = '\0';
  if (stat(ref->name, &st) == 0 || errno != ENOENT ||
      snprintf(aside->name, sizeof aside->name, "%s" FILES_MOVED, ref->name) >=
          (int)sizeof aside->name ||
      stat(aside->name, &st) != 0)
    return false;
  print_into(note, sizeof note, "%s.to", aside->name);
  int fd = open(note, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = fd >= 0 ? read(fd, to, STORE_NAME_BYTES - 1) : 0;
  if (fd >= 0)
    close(fd);
  to[n > 0 ? n : 0] = '\0';
  return true;
}

static bool is_with(const char *name, const char *behind) {
  char path[STORE_NAME_BYTES + 16];
  print_into(path, sizeof path, "%s%s", name, behind);
  return access(path, F_OK) == 0;
}

static enum store_stand files_stand(const struct store_ref *ref) {
  if (is_with(ref->name, ""))
    return STAND_GOES_ON;
  if (is_with(ref->name, FILES_MOVING))
    return STAND_IN_TRANSIT;
  return is_with(ref->name, FILES_MOVED) ? STAND_SET_ASIDE : STAND_NONE;
}

/* Adds the machine's name: the same path may be another folder elsewhere. */
static void files_place(const struct store *store, char out[STORE_NAME_BYTES]) {
  char host[256] = "", whole[PATH_MAX];
  if (gethostname(host, sizeof host - 1) != 0)
    host[0] = '\0';
  print_into(out, STORE_NAME_BYTES, "%s:%.1700s", host,
             realpath(store->where, whole) != NULL ? whole : store->where);
}

/* --- names --- */

static void name_ref(const struct store *store, const char *id, struct store_ref *ref) {
  ref->ops = store->ops;
  files_path(store, id, ref->name, sizeof ref->name);
}

static bool is_log(const char *name) {
  return strlen(name) == ID_CHARS + SUFFIX_CHARS && strcmp(name + ID_CHARS, FILES_SUFFIX) == 0 &&
         strspn(name, "0123456789abcdef-") == ID_CHARS;
}

static bool is_log_with(const char *name, const char *behind) {
  char log[ID_CHARS + SUFFIX_CHARS + 1];
  if (strlen(name) != ID_CHARS + SUFFIX_CHARS + strlen(behind) ||
      strcmp(name + ID_CHARS + SUFFIX_CHARS, behind) != 0)
    return false;
  print_into(log, sizeof log, "%s", name);
  return is_log(log);
}

static bool is_moving_log(const char *name) {
  return is_log_with(name, FILES_MOVING);
}

static bool is_moved_log(const char *name) {
  return is_log_with(name, FILES_MOVED);
}

static void id_of(const struct store_ref *ref, char id[STORE_ID_BYTES]) {
  const char *slash = strrchr(ref->name, '/');
  const char *name = slash ? slash + 1 : ref->name;
  print_into(id, STORE_ID_BYTES, "%.36s", is_log(name) ? name : "");
}

static void files_folder_of(const struct store_ref *ref, struct store *store) {
  const char *slash = strrchr(ref->name, '/');
  size_t n = slash ? (size_t)(slash - ref->name) : 0;
  if (slash == ref->name)
    n = 1;
  if (slash == NULL)
    print_into(store->where, sizeof store->where, ".");
  else
    print_into(store->where, sizeof store->where, "%.*s", (int)n, ref->name);
}

static bool is_there(const struct store_ref *ref) {
  return access(ref->name, R_OK) == 0;
}

static bool folder_exists(const struct store *store) {
  return access(store->where, F_OK) == 0;
}

static bool bytes_of(const struct store_ref *ref, uint64_t *bytes) {
  struct stat st;
  if (stat(ref->name, &st) != 0)
    return false;
  *bytes = (uint64_t)st.st_size;
  return true;
}

static uint64_t written_of(const struct store_ref *ref) {
  struct stat st;
  if (stat(ref->name, &st) != 0)
    return 0;
  return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec +
         ((uint64_t)st.st_ino << 20);
}

static void remove_log(const struct store_ref *ref) {
  files_reports_remove(ref);
  (void)unlink(ref->name);
}

/* --- who holds a log or a right --- */

static bool path_is_owned(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return false;
  bool owned = fs_is_locked(fd);
  close(fd);
  return owned;
}

static bool is_owned(const struct store_ref *ref) {
  return path_is_owned(ref->name);
}

static void right_path(const struct store *store, const char *right, char *out, size_t room) {
  print_into(out, room, "%s/%s.lock", store->where, right);
}

static bool right_is_held(const struct store *store, const char *right) {
  char path[STORE_PATH_BYTES + 64];
  right_path(store, right, path, sizeof path);
  return path_is_owned(path);
}

static int hold_right(const struct store *store, const char *right, struct err *err) {
  char path[STORE_PATH_BYTES + 64];
  right_path(store, right, path, sizeof path);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    err_set_errno(err, errno, "cannot make %s", path);
    return -1;
  }
  char pid[32] = "";
  if (!fault_fails("lock") && fs_lock(fd)) {
    print_into(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || write(fd, pid, strlen(pid)) < 0)
      log_warn("cannot write %s", path); /* it only tells others who holds it */
    return fd;
  }
  int number = errno;
  long holder = read(fd, pid, sizeof pid - 1) > 0 ? strtol(pid, NULL, 10) : 0;
  close(fd);
  if (fs_lock_is_taken(number))
    err_set(err, ERR_LOCKED,
            "another %s uses the log folder %s (process %ld): stop that one, or give other --logs",
            right, store->where, holder);
  else
    err_set_errno(err, number, "cannot lock %s", path);
  return -1;
}

static void yield_right(int held) {
  close(held);
}

/* --- lists --- */

static int newest_first(const void *a, const void *b) {
  return strcmp(((const struct store_id *)b)->id, ((const struct store_id *)a)->id);
}

static bool list_named(const struct store *store, bool (*wanted)(const char *name),
                       struct store_id **ids, size_t *count, struct err *err) {
  size_t cap = 0;
  DIR *d = fault_fails("list") ? NULL : opendir(store->where);
  if (d == NULL)
    return err_set_errno(err, errno, "cannot read the log folder %s", store->where);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (!wanted(e->d_name))
      continue;
    *ids = xgrow(*ids, &cap, *count + 1, sizeof **ids);
    memcpy((*ids)[*count].id, e->d_name, ID_CHARS);
    (*ids)[(*count)++].id[ID_CHARS] = '\0';
  }
  closedir(d);
  if (*count > 1)
    qsort(*ids, *count, sizeof **ids, newest_first);
  return true;
}

static bool list_logs(const struct store *store, struct store_id **ids, size_t *count,
                      struct err *err) {
  return list_named(store, is_log, ids, count, err);
}

/* Lists what `list` leaves out. The folder may have such a log again, under its own name. */
static bool list_stand(const struct store *store, enum store_stand stand, struct store_id **ids,
                       size_t *count, struct err *err) {
  return list_named(store, stand == STAND_IN_TRANSIT ? is_moving_log : is_moved_log, ids, count,
                    err);
}

/* Takes a word that begins no session's id as the name of a file, if there is one. */
static bool is_file(const char *word, struct store_ref *ref) {
  struct stat st;
  return strcmp(word, "last") != 0 && stat(word, &st) == 0 && S_ISREG(st.st_mode) &&
         store_ref_named(word, ref);
}

static bool find_log(const struct store *store, const char *word, struct store_ref *ref,
                     struct err *err) {
  char best[64] = "", unbegun[64] = "";
  int matches = 0, empty = 0;
  bool moving = false, last = strcmp(word, "last") == 0;
  const char *dir = store->where;
  struct stat st;
  size_t n = strlen(word);
  if (strchr(word, '/') != NULL ||
      (n > SUFFIX_CHARS && strcmp(word + n - SUFFIX_CHARS, FILES_SUFFIX) == 0)) {
    if (stat(word, &st) != 0)
      return err_set_errno(err, errno, "cannot open %s", word);
    return store_ref_named(word, ref) || err_set(err, ERR_LIMIT, "the path is too long");
  }
  DIR *d = fault_fails("list") ? NULL : opendir(dir);
  int number = errno; /* is_file asks for something else */
  if (d == NULL && is_file(word, ref))
    return true;
  if (d == NULL && number == ENOENT)
    return err_set(err, ERR_NOT_FOUND, "there is no session yet: there is no log folder %s", dir);
  if (d == NULL)
    return err_set_errno(err, number, "no sessions: cannot read the log folder %s", dir);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    bool fits = last ? strcmp(e->d_name, best) > 0 : strncmp(e->d_name, word, strlen(word)) == 0;
    moving = moving || (fits && !last && is_moving_log(e->d_name));
    if (!fits || !is_log(e->d_name) || fstatat(dirfd(d), e->d_name, &st, 0) != 0)
      continue;
    if (st.st_size == 0) { /* the log of a session that had not begun */
      print_into(unbegun, sizeof unbegun, "%.36s", e->d_name);
      empty++;
      continue;
    }
    print_into(best, sizeof best, "%.36s", e->d_name);
    matches++;
  }
  closedir(d);
  if (matches == 0 && !last && empty > 0) {
    memcpy(best, unbegun, sizeof best);
    matches = empty;
  }
  if (matches == 0 && last)
    return err_set(err, ERR_NOT_FOUND, "there is no session in %s", dir);
  if (matches == 0 && is_file(word, ref))
    return true;
  if (matches == 0 && moving)
    return err_set(
        err, ERR_NOT_FOUND,
        "session %s was being copied to %s: repeat that segue store export with the same "
        "options",
        word, dir);
  if (matches == 0)
    return err_set(err, ERR_NOT_FOUND,
                   "there is no session in %s whose id begins with \"%s\": segue ls lists them",
                   dir, word);
  if (!last && matches > 1)
    return err_set(err, ERR_INVALID, "%d sessions in %s begin with \"%s\": write more of the id",
                   matches, dir, word);
  name_ref(store, best, ref);
  return true;
}

const struct store_ops files_ops = {
    .open = files_open,
    .exists = folder_exists,
    .list = list_logs,
    .hold = hold_right,
    .yield = yield_right,
    .is_held = right_is_held,
    .ref = name_ref,
    .find = find_log,
    .of = files_folder_of,
    .ref_id = id_of,
    .is_there = is_there,
    .is_owned = is_owned,
    .bytes = bytes_of,
    .written = written_of,
    .remove = remove_log,
    .create = files_create,
    .create_later = files_create_later,
    .attach = files_attach,
    .append = files_append,
    .append_now = files_append_now,
    .settle = files_settle,
    .move_in = files_move_in,
    .set_aside = files_set_aside,
    .arrive = files_arrive,
    .set_aside_to = files_set_aside_to,
    .stand = files_stand,
    .place = files_place,
    .list_stand = list_stand,
    .read = files_read,
    .close = files_close,
    .raw_open = files_raw_open,
    .raw_read = files_raw_read,
    .raw_bytes = files_raw_bytes,
    .raw_again = files_raw_again,
    .raw_is_owned = files_raw_is_owned,
    .raw_close = files_raw_close,
    .ledger_append = files_ledger_append,
    .ledger_read = files_ledger_read,
    .labels_append = files_labels_append,
    .labels_read = files_labels_read,
    .report_put = files_report_put,
    .report_sha256 = files_report_sha256,
    .report_folder = files_report_folder,
    .blob_put = files_blob_put,
    .blob_drop = files_blob_drop,
    .blobs_tidy = files_blobs_tidy,
    .blob_get = files_blob_get,
    .blob_name = files_blob_name,
};
