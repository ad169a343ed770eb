/* Keeps reports as files: reports/<session>/<file> beside the logs. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void files_report_folder(const struct store *store, const char *session,
                         char out[STORE_NAME_BYTES]) {
  char whole[PATH_MAX];
  const char *where = realpath(store->where, whole) != NULL ? whole : store->where;
  if (snprintf(out, STORE_NAME_BYTES, "%s/reports/%s", where, session) >= STORE_NAME_BYTES)
    out[0] = '\0';
}

/* Opens the session's folder, and makes it if `make`. -1: errno says why. */
static int open_reports(const struct store *store, const char *session, bool make) {
  int top = open(store->where, O_RDONLY | O_DIRECTORY | O_CLOEXEC), all = -1, own = -1;
  if (top >= 0 && make && mkdirat(top, "reports", 0700) != 0 && errno != EEXIST)
    make = false;
  if (top >= 0)
    all = openat(top, "reports", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (all >= 0 && make && mkdirat(all, session, 0700) != 0 && errno != EEXIST)
    make = false;
  if (all >= 0)
    own = openat(all, session, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  int number = errno;
  if (top >= 0)
    (void)close(top);
  if (all >= 0)
    (void)close(all);
  errno = number;
  return own;
}

bool files_report_put(const struct store *store, const char *session, const char *file,
                      struct str bytes, struct err *err) {
  static const char temp[] = ".report.part";
  int folder = open_reports(store, session, true);
  int fd = -1;
  if (folder >= 0)
    fd = openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  FAULT_POINT("report_before");
  bool ok = fd >= 0 && files_write_all(fd, bytes.p, bytes.n, 0);
  int number = errno;
  if (fd >= 0)
    ok = close(fd) == 0 && ok;
  if (ok && renameat(folder, temp, folder, file) != 0) {
    number = errno;
    ok = false;
  }
  FAULT_POINT("report_after");
  if (folder >= 0)
    (void)close(folder);
  return ok || err_set_errno(err, number, "cannot write the report %s", file);
}

bool files_report_sha256(const struct store *store, const char *session, const char *file,
                         char sha256[SHA256_HEX]) {
  struct buf bytes = {.max = LIMIT_REPORT_FILE_BYTES};
  char piece[16384];
  struct stat st;
  int folder = open_reports(store, session, false);
  int fd = folder < 0 ? -1 : openat(folder, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  ssize_t n = 0;
  while (ok && (n = read(fd, piece, sizeof piece)) > 0)
    buf_append(&bytes, piece, (size_t)n);
  ok = ok && n == 0 && bytes.n > 0;
  if (ok)
    sha256_hex(bytes.p, bytes.n, NULL, 0, sha256);
  buf_deinit(&bytes);
  if (fd >= 0)
    (void)close(fd);
  if (folder >= 0)
    (void)close(folder);
  return ok;
}

void files_reports_remove(const struct store_ref *ref) {
  struct store store;
  char session[STORE_ID_BYTES], path[STORE_NAME_BYTES];
  const struct dirent *entry;
  store_of(ref, &store);
  store_ref_id(ref, session);
  int folder = session[0] == '\0' ? -1 : open_reports(&store, session, false);
  DIR *dir = folder < 0 ? NULL : fdopendir(folder);
  while (dir != NULL && (entry = readdir(dir)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      (void)unlinkat(folder, entry->d_name, 0);
  if (dir != NULL) {
    (void)closedir(dir);
    (void)snprintf(path, sizeof path, "%s/reports/%s", store.where, session);
    (void)rmdir(path);
  } else if (folder >= 0) {
    (void)close(folder);
  }
}
