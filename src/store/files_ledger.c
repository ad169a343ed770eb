/* Keeps the ledger as a file: ledger/heads.log below the logs. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "os/fs.h"
#include "store/line.h"
#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = STORE_PATH_BYTES + 32, TAIL_BYTES = 4096 };

static const char heads_name[] = "ledger/heads.log";

static void chain_path(const struct store *store, const char *name, char path[PATH_BYTES]) {
  (void)snprintf(path, PATH_BYTES, "%s/%s", store->where, name);
}

/* Finds where the next entry goes, after the last whole line, and that line's number and hash. A
 * crash can leave a partial line, which is overwritten. */
bool files_chain_end(int fd, uint64_t *at, uint64_t *number, char hash[SHA256_HEX]) {
  char tail[TAIL_BYTES];
  struct stat st;
  memcpy(hash, line_first_hash, SHA256_HEX);
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
  json_t *line = json_loadb(tail + begin, end - begin, 0, NULL);
  const char *last = json_string_value(json_object_get(line, "hash"));
  if (last != NULL && strlen(last) == SHA256_HEX - 1)
    memcpy(hash, last, SHA256_HEX);
  *number = (uint64_t)json_integer_value(json_object_get(line, "n"));
  json_decref(line);
  return true;
}

void ledger_compose(const struct ledger_entry *e, uint64_t number, struct buf *out,
                    char hash[SHA256_HEX]) {
  char now[32];
  size_t start = out->n;
  record_time(clock_real_ms(), now);
  json_t *entry =
      json_pack("{si sI ss ss ss sI ss so*}", "v", 1, "n", (json_int_t)number, "ts", now, "type",
                ledger_kind_name(e->kind), "session", e->session, "seq", (json_int_t)e->seq, "head",
                e->hash, "late", e->late ? json_true() : NULL);
  json_write(entry, out);
  json_decref(entry);
  line_close(out, start, hash);
}

/* Opens and locks the file; makes it and its folder if missing. -1: err says why. */
int files_chain_open(const struct store *store, const char *name, struct err *err) {
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
    (void)err_set_errno(err, errno, "cannot open %s", path);
  else if (!fs_lock_within(fd, LIMIT_LEDGER_LOCK_MS)) {
    (void)err_set_errno(err, errno, "cannot lock %s", path);
    close(fd);
    fd = -1;
  }
  return fd;
}

bool files_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                         struct err *err) {
  struct buf lines = {0};
  uint64_t at = 0, number = 0;
  char hash[SHA256_HEX];
  int fd = files_chain_open(store, heads_name, err);
  if (fd < 0)
    return false;
  FAULT_POINT("ledger_before");
  bool ok = files_chain_end(fd, &at, &number, hash);
  for (size_t i = 0; ok && i < n; i++)
    ledger_compose(&entries[i], ++number, &lines, hash);
  ok = ok && ftruncate(fd, (off_t)at) == 0 && !fault_fails("ledger") &&
       files_write_all(fd, lines.p, lines.n, at) && fdatasync(fd) == 0;
  FAULT_POINT("ledger_after");
  if (!ok) {
    (void)err_set_errno(err, errno, "cannot write the ledger of %s", store->where);
    (void)!ftruncate(fd, (off_t)at); /* also after a failed sync: the entries then come later */
  }
  close(fd);
  buf_deinit(&lines);
  return ok;
}

bool ledger_take(const json_t *line, struct ledger_entry *e) {
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
  for (int kind = LEDGER_END; kind <= LEDGER_REMOVED; kind++)
    if (strcmp(type, ledger_kind_name((enum ledger_kind)kind)) == 0) {
      e->kind = (enum ledger_kind)kind;
      return true;
    }
  return false;
}

bool files_ledger_read(const struct store *store,
                       void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                       struct ledger_end *end, struct err *err) {
  char path[PATH_BYTES];
  struct log_reader r;
  struct store_ref ref;
  struct str text;
  *end = (struct ledger_end){0};
  memcpy(end->hash, line_first_hash, SHA256_HEX);
  chain_path(store, heads_name, path);
  if (access(path, F_OK) != 0 && errno == ENOENT)
    return true;
  if (!store_ref_named(path, &ref) || !reader_open(&r, &ref, err))
    return false;
  while (!end->damaged && reader_next(&r, &text) && r.whole) {
    struct ledger_entry entry;
    json_t *line = line_parse(text, end->hash, &end->why);
    if (line != NULL && ledger_take(line, &entry) &&
        json_integer_value(json_object_get(line, "n")) == (json_int_t)end->entries + 1) {
      entry.number = ++end->entries;
      memcpy(entry.self, end->hash, SHA256_HEX);
      each(ctx, &entry);
    } else {
      if (line != NULL)
        (void)err_set(&end->why, ERR_CORRUPT, "it is not the next entry");
      end->damaged = true;
    }
    json_decref(line);
  }
  reader_close(&r);
  return true;
}
