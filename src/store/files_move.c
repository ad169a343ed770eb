/* Copies and moves logs. In transit a log is ID.ndjson.moving, which is not the name of a log. Set
 * aside it is ID.ndjson.moved, and ID.ndjson.moved.to says where it continues. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool files_move_check(const char *name, struct err *err) {
  struct str s = str_from(name);
  if (str_ends(s, ".ndjson" FILES_MOVING))
    return err_set(err, ERR_INVALID,
                   "%s was being copied here: repeat that segue store export with the same options",
                   name);
  if (str_ends(s, ".ndjson" FILES_MOVED))
    return err_set(err, ERR_INVALID, "%s was moved to another store: it continues there", name);
  return true;
}

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
    (void)err_set_errno(err, errno, "cannot make %s", moving);
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

struct store_log *files_move_in(struct store *store, const char *id, const struct store_move *move,
                                struct err *err) {
  struct store_ref ref;
  struct store_mend mend = {0};
  char path[STORE_PATH_BYTES + STORE_ID_BYTES + 16];
  files_path(store, id, path, sizeof path);
  ref.ops = store->ops;
  (void)snprintf(ref.name, sizeof ref.name, "%s" FILES_MOVING, path);
  if (move->begins)
    return begin_move(store, path, ref.name, move->bytes, err);
  return files_take(store, &ref, NULL, NULL, &mend, err);
}

bool files_arrive(struct store_log *log, struct err *err) {
  char path[PATH_MAX];
  size_t n = strlen(log->name) - strlen(FILES_MOVING);
  (void)snprintf(path, sizeof path, "%.*s", (int)n, log->name);
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

/* --- the source --- */

static bool write_to(const char *path, const char *to, struct err *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool ok = fd >= 0 && files_write_all(fd, to, strlen(to), 0) && fsync(fd) == 0;
  if (!ok)
    (void)err_set_errno(err, errno, "cannot write %s", path);
  if (fd >= 0)
    close(fd);
  return ok;
}

bool files_set_aside(struct store_log *log, const char *to, struct err *err) {
  char path[PATH_MAX], note[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s" FILES_MOVED, log->name);
  (void)snprintf(note, sizeof note, "%s" FILES_MOVED ".to", log->name);
  FAULT_POINT("aside_before");
  if (!write_to(note, to, err))
    return false;
  if (!files_sync_dir(log->store->where))
    return err_set_errno(err, errno, "cannot sync the folder %s", log->store->where);
  FAULT_POINT("aside_noted");
  if (rename(log->name, path) != 0 || !files_sync_dir(log->store->where))
    return err_set_errno(err, errno, "cannot set %s aside", log->name);
  FAULT_POINT("aside_after");
  return true;
}

bool files_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
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
  (void)snprintf(note, sizeof note, "%s.to", aside->name);
  int fd = open(note, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = fd >= 0 ? read(fd, to, STORE_NAME_BYTES - 1) : 0;
  if (fd >= 0)
    close(fd);
  to[n > 0 ? n : 0] = '\0';
  return true;
}

static bool is_with(const char *name, const char *behind) {
  char path[STORE_NAME_BYTES + 16];
  (void)snprintf(path, sizeof path, "%s%s", name, behind);
  return access(path, F_OK) == 0;
}

enum store_stand files_stand(const struct store_ref *ref) {
  if (is_with(ref->name, ""))
    return STAND_GOES_ON;
  if (is_with(ref->name, FILES_MOVING))
    return STAND_IN_TRANSIT;
  return is_with(ref->name, FILES_MOVED) ? STAND_SET_ASIDE : STAND_NONE;
}

/* Adds the machine's name: the same path may be another folder elsewhere. */
void files_place(const struct store *store, char out[STORE_NAME_BYTES]) {
  char host[256] = "", whole[PATH_MAX];
  if (gethostname(host, sizeof host - 1) != 0)
    host[0] = '\0';
  (void)snprintf(out, STORE_NAME_BYTES, "%s:%.1700s", host,
                 realpath(store->where, whole) != NULL ? whole : store->where);
}
