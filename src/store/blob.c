#include "store/files_internal.h"

#include "base/fault.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool store_blob_put(const struct store *store, struct str bytes, char sha256[SHA256_HEX],
                    struct err *err) {
  char dir[STORE_PATH_BYTES + 8], path[STORE_PATH_BYTES + 128], temp[STORE_PATH_BYTES + 160];
  struct stat st;
  sha256_hex(bytes.p, bytes.n, NULL, 0, sha256);
  (void)snprintf(dir, sizeof dir, "%s/blobs", store->dir);
  (void)snprintf(path, sizeof path, "%s/%s", dir, sha256);
  if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes.n)
    return files_sync_dir(dir) &&
                   files_sync_dir(store->dir) /* its bytes are synced, its name may not be */
               ? true
               : err_set_errno(err, errno, "cannot sync the folder %s", dir);
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
  if (!ok || rename(temp, path) != 0 || !files_sync_dir(dir) || !files_sync_dir(store->dir)) {
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
