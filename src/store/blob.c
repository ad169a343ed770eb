/* Keeps blobs as files: blobs/<sha256> beside the logs. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SHA_CHARS = SHA256_HEX - 1 };

void files_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]) {
  (void)snprintf(out, STORE_NAME_BYTES, "%s/blobs/%s", store->where, sha256);
}

/* Makes the file that a blob is written to before it gets its name. The lock tells files_blobs_tidy
 * that its writer lives. A file that was removed before it was locked is made again. -1: errno. */
static int make_part(const char *path) {
  enum { TRIES = 8, LOCK_MS = 1000 };
  for (int tries = 0;; tries++) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
      return -1;
    bool held = fs_lock_within(fd, LOCK_MS) && fs_is_named(fd, path, false);
    if (held || tries == TRIES) /* some file systems have no locks or no lasting numbers */
      return fd;
    close(fd);
  }
}

bool files_blob_put(const struct store *store, struct str bytes, const char *sha256,
                    struct err *err) {
  char dir[STORE_PATH_BYTES + 8], path[STORE_PATH_BYTES + 128], temp[STORE_PATH_BYTES + 160];
  struct stat st;
  (void)snprintf(dir, sizeof dir, "%s/blobs", store->where);
  (void)snprintf(path, sizeof path, "%s/%s", dir, sha256);
  /* The new time tells a sweep that the blob is in use; if a sweep took it meanwhile, it is
   * rewritten. */
  if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes.n &&
      utimensat(AT_FDCWD, path, NULL, 0) == 0)
    return (files_sync_dir(dir) && files_sync_dir(store->where)) || /* its name may not be synced */
           err_set_errno(err, errno, "cannot sync the folder %s", dir);
  if (mkdir(dir, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", dir);
  (void)snprintf(temp, sizeof temp, "%s/.%s.%ld.%p", dir, sha256, (long)getpid(), (void *)&st);
  int fd = make_part(temp);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot make %s", temp);
  FAULT_POINT("append_before");
  bool ok = files_write_all(fd, bytes.p, bytes.n, 0);
  FAULT_POINT("sync_before");
  ok = ok && !fault_fails("sync") && fsync(fd) == 0;
  int number = errno;
  FAULT_POINT("sync_after");
  ok = close(fd) == 0 && ok;
  if (!ok || rename(temp, path) != 0 || !files_sync_dir(dir) || !files_sync_dir(store->where)) {
    number = ok ? errno : number;
    unlink(temp);
    return err_set_errno(err, number, "cannot write the blob %s", path);
  }
  return true;
}

/* Renames the blob before looking at its time: whoever puts it after that writes it anew, and an
 * earlier put shows in its time. */
bool files_blob_drop(const struct store *store, const char *sha256, time_t since) {
  char path[STORE_NAME_BYTES], aside[STORE_NAME_BYTES + 16];
  struct stat st;
  files_blob_name(store, sha256, path);
  (void)snprintf(aside, sizeof aside, "%s.%ld", path, (long)getpid());
  if (stat(path, &st) != 0)
    return true;
  if (st.st_mtime >= since || rename(path, aside) != 0)
    return false;
  bool young = stat(aside, &st) == 0 && st.st_mtime >= since;
  if (young && link(aside, path) != 0 && errno != EEXIST)
    return false; /* it is not lost, only set aside */
  (void)unlink(aside);
  return !young;
}

/* --- what killed processes left --- */

static bool blob_is_sha(const char *name) {
  return strspn(name, "0123456789abcdef") == SHA_CHARS;
}

static bool blob_is_number(const char *text) {
  return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Returns whether it has long been unchanged. `aside`: a later rename counts as a change too. */
static bool blob_is_old(const struct stat *st, bool aside) {
  time_t last = aside ? st->st_ctime : st->st_mtime;
  return S_ISREG(st->st_mode) && last < (time_t)((clock_real_ms() - LIMIT_BLOB_PART_MS) / 1000);
}

/* Removes a file that was to become a blob, if its writer is gone. The age limit spares files of
 * older versions, which do not lock them. */
static void tidy_part(int dir, const char *name) {
  struct stat st;
  int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return;
  if (fstat(fd, &st) == 0 && blob_is_old(&st, false) && fs_lock(fd))
    (void)unlinkat(dir, name, 0);
  close(fd);
}

/* Renames a blob back whose removal was interrupted: a log may have named it meanwhile. */
static void tidy_aside(int dir, const char *name, json_t *found) {
  char sha256[SHA256_HEX];
  struct stat st;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !blob_is_old(&st, true))
    return;
  (void)snprintf(sha256, sizeof sha256, "%.64s", name);
  if (linkat(dir, name, dir, sha256, 0) != 0 && errno != EEXIST)
    return;
  (void)unlinkat(dir, name, 0);
  if (found != NULL)
    json_object_set_new(found, sha256, json_true());
}

void files_blobs_tidy(const struct store *store, json_t *found) {
  char path[STORE_PATH_BYTES + 8];
  (void)snprintf(path, sizeof path, "%s/blobs", store->where);
  DIR *d = opendir(path);
  if (d == NULL)
    return;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    const char *name = e->d_name;
    if (name[0] == '.' && blob_is_sha(name + 1) && name[1 + SHA_CHARS] == '.')
      tidy_part(dirfd(d), name);
    else if (blob_is_sha(name) && name[SHA_CHARS] == '.' && blob_is_number(name + SHA_CHARS + 1))
      tidy_aside(dirfd(d), name, found);
  }
  closedir(d);
}

bool files_blob_get(const struct store *store, const char *sha256, struct buf *out,
                    struct err *err) {
  char path[STORE_NAME_BYTES], found[SHA256_HEX];
  struct stat st;
  files_blob_name(store, sha256, path);
  int fd = fault_fails("blob") ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
