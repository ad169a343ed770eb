/* Keeps what stands beside the logs of a folder, as files: two chains of lines (the ledger and
 * people's labels), reports, and blobs. */
#include "store/sidecar.h"

#include "base/fault.h"
#include "base/limits.h"
#include "core/record.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "os/fs.h"
#include "store/reader.h"
#include "store/record_line.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- files --- */

bool files_sync_dir(const char *dir) {
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return false;
  bool ok = fsync(fd) == 0;
  close(fd);
  return ok;
}

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

/* --- chains --- */

enum { PATH_BYTES = STORE_PATH_BYTES + 32, TAIL_BYTES = 4096 };

static const char heads_name[] = "ledger/heads.log";

static void chain_path(const struct store *store, const char *name, char path[PATH_BYTES]) {
  print_into(path, PATH_BYTES, "%s/%s", store->where, name);
}

/* Finds where the next entry goes, after the last whole line, and that line's number and hash. A
 * crash can leave a partial line, which is overwritten. */
static bool chain_end(int fd, uint64_t *at, uint64_t *number, char hash[SHA256_HEX]) {
  char tail[TAIL_BYTES];
  struct stat st;
  memcpy(hash, record_line_first_hash, SHA256_HEX);
  *number = 0;
  if (fstat(fd, &st) != 0)
    return false;
  uint64_t size = (uint64_t)st.st_size, from = size > sizeof tail ? size - sizeof tail : 0;
  ssize_t n = pread(fd, tail, sizeof tail, (off_t)from);
  if (n < 0)
    return false;
  size_t end = (size_t)n;
  while (end > 0 && tail[end - 1] != '\n')
    end--;
  *at = from + end;
  if (end == 0)
    return from == 0;
  size_t begin = end - 1;
  while (begin > 0 && tail[begin - 1] != '\n')
    begin--;
  json_auto_t *line = json_loadb(tail + begin, end - begin, 0, NULL);
  const char *last = json_string_value(json_object_get(line, "hash"));
  if (last != NULL && strlen(last) == SHA256_HEX - 1)
    memcpy(hash, last, SHA256_HEX);
  *number = (uint64_t)json_integer_value(json_object_get(line, "n"));
  return true;
}

/* Opens and locks the file; makes it and its folder if missing. -1: err says why. */
static int chain_open(const struct store *store, const char *name, struct err *err) {
  char path[PATH_BYTES];
  chain_path(store, name, path);
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) {
    char *slash = strrchr(path, '/');
    *slash = '\0';
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    *slash = '/';
    fd = made ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    *slash = '\0';
    if (fd >= 0 && (!files_sync_dir(path) || !files_sync_dir(store->where))) {
      close(fd);
      fd = -1;
    }
    *slash = '/';
  }
  if (fd < 0)
    err_set_errno(err, errno, "cannot open %s", path);
  else if (!fs_lock_within(fd, LIMIT_LEDGER_LOCK_MS)) {
    err_set_errno(err, errno, "cannot lock %s", path);
    close(fd);
    fd = -1;
  }
  return fd;
}

static bool chain_extend(const struct store *store, const char *name, const char *what,
                         const void *items, size_t count, chain_fn compose, struct err *err) {
  buf_auto_t lines = {0};
  uint64_t at = 0, number = 0;
  char hash[SHA256_HEX];
  int fd = chain_open(store, name, err);
  if (fd < 0)
    return false;
  bool found = chain_end(fd, &at, &number, hash), ok = found;
  for (size_t i = 0; ok && i < count; i++)
    compose(items, i, ++number, &lines, hash);
  ok = ok && ftruncate(fd, (off_t)at) == 0 && !fault_fails("ledger") &&
       files_write_all(fd, lines.p, lines.n, at) && fdatasync(fd) == 0;
  if (!ok) {
    err_set_errno(err, errno, "cannot write the %s of %s", what, store->where);
    if (found)
      (void)!ftruncate(fd, (off_t)at); /* also after a failed sync: the lines then come later */
  }
  close(fd);
  return ok;
}

/* Opens the file to read it. *missing: it does not exist yet. */
static bool chain_read_open(const struct store *store, const char *name, struct log_reader *r,
                            struct store_ref *ref, bool *missing, struct err *err) {
  char path[PATH_BYTES];
  chain_path(store, name, path);
  *missing = access(path, F_OK) != 0 && errno == ENOENT;
  return !*missing && store_ref_named(path, ref) && reader_open(r, ref, err);
}

/* --- chains: the ledger --- */

void ledger_compose(const void *entries, size_t i, uint64_t number, struct buf *out,
                    char hash[SHA256_HEX]) {
  const struct ledger_entry *e = (const struct ledger_entry *)entries + i;
  char now[32];
  size_t start = out->n;
  record_time(clock_real_ms(), now);
  json_t *entry =
      json_pack("{si sI ss ss ss sI ss so*}", "v", 1, "n", (json_int_t)number, "ts", now, "type",
                ledger_kind_name(e->kind), "session", e->session, "seq", (json_int_t)e->seq, "head",
                e->hash, "late", e->late ? json_true() : NULL);
  json_write(entry, out);
  json_decref(entry);
  record_line_close(out, start, hash);
}

bool files_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                         struct err *err) {
  FAULT_POINT("ledger_before");
  bool ok = chain_extend(store, heads_name, "ledger", entries, n, ledger_compose, err);
  FAULT_POINT("ledger_after");
  return ok;
}

static bool ledger_take(const json_t *line, struct ledger_entry *e) {
  const char *session = json_string_value(json_object_get(line, "session"));
  const char *head = json_string_value(json_object_get(line, "head"));
  const char *type = json_string_value(json_object_get(line, "type"));
  if (session == NULL || head == NULL || type == NULL || strlen(session) != STORE_ID_BYTES - 1 ||
      strlen(head) != SHA256_HEX - 1)
    return false;
  *e = (struct ledger_entry){.late = json_is_true(json_object_get(line, "late")),
                             .seq = (uint64_t)json_integer_value(json_object_get(line, "seq"))};
  memcpy(e->session, session, STORE_ID_BYTES);
  memcpy(e->hash, head, SHA256_HEX);
  for (int kind = LEDGER_END; kind <= LEDGER_HELD; kind++)
    if (strcmp(type, ledger_kind_name((enum ledger_kind)kind)) == 0) {
      e->kind = (enum ledger_kind)kind;
      return true;
    }
  return false;
}

bool ledger_next(struct str text, struct ledger_end *end,
                 void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx) {
  struct ledger_entry entry;
  json_auto_t *line = record_line_parse(text, end->hash, &end->why);
  bool sound = line != NULL && ledger_take(line, &entry) &&
               json_integer_value(json_object_get(line, "n")) == (json_int_t)end->entries + 1;
  if (sound) {
    entry.number = ++end->entries;
    memcpy(entry.self, end->hash, SHA256_HEX);
    each(ctx, &entry);
  } else if (line != NULL) {
    err_set(&end->why, ERR_CORRUPT, "it is not the next entry");
  }
  end->damaged = !sound;
  return sound;
}

bool files_ledger_read(const struct store *store,
                       void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                       struct ledger_end *end, struct err *err) {
  struct log_reader r;
  struct store_ref ref;
  struct str text;
  bool missing;
  *end = (struct ledger_end){0};
  memcpy(end->hash, record_line_first_hash, SHA256_HEX);
  if (!chain_read_open(store, heads_name, &r, &ref, &missing, err))
    return missing;
  while (reader_next(&r, &text) && r.whole && ledger_next(text, end, each, ctx))
    ;
  reader_close(&r);
  return true;
}

/* --- chains: labels --- */

static const char labels_name[] = "labels/labels.log";

void label_compose(const void *labels, size_t i, uint64_t number, struct buf *out,
                   char hash[SHA256_HEX]) {
  const struct label *l = (const struct label *)labels + i;
  char now[RECORD_TIME_BYTES];
  size_t start = out->n;
  record_time(clock_real_ms(), now);
  if (l->dismissed > 0) {
    json_auto_t *line = json_pack("{si sI ss ss ss sI ss ss}", "v", 1, "n", (json_int_t)number,
                                  "ts", now, "type", "dismissal", "session", l->session, "seq",
                                  (json_int_t)l->dismissed, "by", l->by, "why", l->stratum);
    json_write(line, out);
    record_line_close(out, start, hash);
    return;
  }
  json_t *line = json_pack("{si sI ss ss ss sI sI ss sb}", "v", 1, "n", (json_int_t)number, "ts",
                           now, "type", "label", "session", l->session, "turn", (json_int_t)l->turn,
                           "rule", (json_int_t)l->rule, "by", l->by, "blind", l->blind);
  if (l->population > 0) {
    json_object_set_new(line, "stratum", json_text(str_from(l->stratum)));
    json_object_set_new(line, "population", json_integer((json_int_t)l->population));
  }
  json_write(line, out);
  json_decref(line);
  record_line_close(out, start, hash);
}

bool files_labels_append(const struct store *store, const struct label *labels, size_t n,
                         struct err *err) {
  return chain_extend(store, labels_name, "labels", labels, n, label_compose, err);
}

static bool label_take(const json_t *line, struct label *l) {
  const char *session = json_string_value(json_object_get(line, "session"));
  const char *by = json_string_value(json_object_get(line, "by"));
  const char *stratum = json_string_value(json_object_get(line, "stratum"));
  json_int_t population = json_integer_value(json_object_get(line, "population"));
  if (session == NULL || by == NULL || strlen(session) >= sizeof l->session ||
      strlen(by) >= sizeof l->by)
    return false;
  *l = (struct label){.turn = (long)json_integer_value(json_object_get(line, "turn")),
                      .rule = (long)json_integer_value(json_object_get(line, "rule")),
                      .blind = json_is_true(json_object_get(line, "blind"))};
  memcpy(l->session, session, strlen(session) + 1);
  memcpy(l->by, by, strlen(by) + 1);
  json_int_t dismissed = json_integer_value(json_object_get(line, "seq"));
  if (dismissed > 0) {
    const char *why = json_string_value(json_object_get(line, "why"));
    l->dismissed = (uint64_t)dismissed;
    print_into(l->stratum, sizeof l->stratum, "%s", why ? why : "");
    return true;
  }
  if (stratum != NULL && strlen(stratum) < sizeof l->stratum && population > 0 &&
      population < (json_int_t)1 << 40) {
    memcpy(l->stratum, stratum, strlen(stratum) + 1);
    l->population = (uint64_t)population;
  }
  return true;
}

bool label_next(struct str text, uint64_t number, char hash[SHA256_HEX], label_fn each, void *ctx,
                struct err *err) {
  struct label label;
  json_t *line = record_line_parse(text, hash, err);
  if (line == NULL)
    return err_wrap(err, "label %llu", (unsigned long long)number);
  if (label_take(line, &label)) {
    label.number = number;
    each(ctx, &label);
  }
  json_decref(line);
  return true;
}

bool files_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err) {
  char hash[SHA256_HEX];
  struct log_reader r;
  struct store_ref ref;
  struct str text;
  bool missing, ok = true;
  memcpy(hash, record_line_first_hash, SHA256_HEX);
  if (!chain_read_open(store, labels_name, &r, &ref, &missing, err))
    return missing;
  for (uint64_t n = 1; ok && reader_next(&r, &text) && r.whole; n++)
    ok = label_next(text, n, hash, each, ctx, err) || err_wrap(err, "%s", ref.name);
  reader_close(&r);
  return ok;
}

/* --- reports: reports/<session>/<file> --- */

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
  buf_auto_t bytes = {.max = LIMIT_REPORT_FILE_BYTES};
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
    print_into(path, sizeof path, "%s/reports/%s", store.where, session);
    (void)rmdir(path);
  } else if (folder >= 0) {
    (void)close(folder);
  }
}

/* --- blobs: blobs/<sha256> --- */

enum { SHA_CHARS = SHA256_HEX - 1 };

void files_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]) {
  print_into(out, STORE_NAME_BYTES, "%s/blobs/%s", store->where, sha256);
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
  print_into(dir, sizeof dir, "%s/blobs", store->where);
  print_into(path, sizeof path, "%s/%s", dir, sha256);
  /* The new time tells a sweep that the blob is in use; if a sweep took it meanwhile, it is
   * rewritten. */
  if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes.n &&
      utimensat(AT_FDCWD, path, NULL, 0) == 0)
    return (files_sync_dir(dir) && files_sync_dir(store->where)) || /* its name may not be synced */
           err_set_errno(err, errno, "cannot sync the folder %s", dir);
  if (mkdir(dir, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", dir);
  print_into(temp, sizeof temp, "%s/.%s.%ld.%p", dir, sha256, (long)getpid(), (void *)&st);
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
  print_into(aside, sizeof aside, "%s.%ld", path, (long)getpid());
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

/* --- blobs: what killed processes left --- */

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
  print_into(sha256, sizeof sha256, "%.64s", name);
  if (linkat(dir, name, dir, sha256, 0) != 0 && errno != EEXIST)
    return;
  (void)unlinkat(dir, name, 0);
  if (found != NULL)
    json_object_set_new(found, sha256, json_true());
}

void files_blobs_tidy(const struct store *store, json_t *found) {
  char path[STORE_PATH_BYTES + 8];
  print_into(path, sizeof path, "%s/blobs", store->where);
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
