/* Keeps blobs as files: blobs/<sha256> beside the logs. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void files_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]) {
  (void)snprintf(out, STORE_NAME_BYTES, "%s/blobs/%s", store->where, sha256);
}

bool files_blob_put(const struct store *store, struct str bytes, const char *sha256,
                    struct err *err) {
  char dir[STORE_PATH_BYTES + 8], path[STORE_PATH_BYTES + 128], temp[STORE_PATH_BYTES + 160];
  struct stat st;
  (void)snprintf(dir, sizeof dir, "%s/blobs", store->where);
  (void)snprintf(path, sizeof path, "%s/%s", dir, sha256);
  /* The new time tells a sweep that it is in use; if one took it meanwhile, it is written anew. */
  if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes.n &&
      utimensat(AT_FDCWD, path, NULL, 0) == 0)
    return (files_sync_dir(dir) && files_sync_dir(store->where)) || /* its name may not be synced */
           err_set_errno(err, errno, "cannot sync the folder %s", dir);
  if (mkdir(dir, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", dir);
  (void)snprintf(temp, sizeof temp, "%s/.%s.%ld.%p", dir, sha256, (long)getpid(), (void *)&st);
  int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
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

/* Renames the blob before looking at its time: whoever puts it meanwhile writes it anew, and an
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
