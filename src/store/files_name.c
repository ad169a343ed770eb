/* Knows the names in a log folder: which file is whose log, which logs there are, which rights are
 * held. Also puts the back end together. */
#include "store/files_internal.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".ndjson"
enum { ID_CHARS = STORE_ID_BYTES - 1, SUFFIX_CHARS = sizeof SUFFIX - 1 };

void files_path(const struct store *store, const char *id, char *out, size_t room) {
  (void)snprintf(out, room, "%s/%s" SUFFIX, store->where, id);
}

static void name_ref(const struct store *store, const char *id, struct store_ref *ref) {
  ref->ops = store->ops;
  files_path(store, id, ref->name, sizeof ref->name);
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_log(const char *name) {
  return strlen(name) == ID_CHARS + SUFFIX_CHARS && strcmp(name + ID_CHARS, SUFFIX) == 0 &&
         strspn(name, "0123456789abcdef-") == ID_CHARS;
}

static bool is_log_with(const char *name, const char *behind) {
  char log[ID_CHARS + SUFFIX_CHARS + 1];
  if (strlen(name) != ID_CHARS + SUFFIX_CHARS + strlen(behind) ||
      strcmp(name + ID_CHARS + SUFFIX_CHARS, behind) != 0)
    return false;
  (void)snprintf(log, sizeof log, "%s", name);
  return is_log(log);
}

static bool is_moving_log(const char *name) {
  return is_log_with(name, FILES_MOVING);
}

static bool is_moved_log(const char *name) {
  return is_log_with(name, FILES_MOVED);
}

static void id_of(const struct store_ref *ref, char id[STORE_ID_BYTES]) {
  const char *name = last_part(ref->name);
  (void)snprintf(id, STORE_ID_BYTES, "%.36s", is_log(name) ? name : "");
}

static void files_folder_of(const struct store_ref *ref, struct store *store) {
  const char *slash = strrchr(ref->name, '/');
  size_t n = slash ? (size_t)(slash - ref->name) : 0;
  if (slash == ref->name)
    n = 1;
  if (slash == NULL)
    (void)snprintf(store->where, sizeof store->where, ".");
  else
    (void)snprintf(store->where, sizeof store->where, "%.*s", (int)n, ref->name);
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

/* --- locks --- */

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
  (void)snprintf(out, room, "%s/%s.lock", store->where, right);
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
    (void)err_set_errno(err, errno, "cannot make %s", path);
    return -1;
  }
  if (!fault_fails("lock") && fs_lock(fd))
    return fd;
  int number = errno;
  close(fd);
  if (fs_lock_is_taken(number))
    (void)err_set(err, ERR_LOCKED, "another %s uses the log folder %s", right, store->where);
  else
    (void)err_set_errno(err, number, "cannot lock %s", path);
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
    if (*count == cap) {
      cap = cap ? cap * 2 : 64;
      *ids = xrealloc(*ids, cap * sizeof **ids);
    }
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

static bool is_path(const char *word) {
  size_t n = strlen(word);
  return strchr(word, '/') != NULL ||
         (n > SUFFIX_CHARS && strcmp(word + n - SUFFIX_CHARS, SUFFIX) == 0);
}

static bool find_path(const char *word, struct store_ref *ref, struct err *err) {
  struct stat st;
  if (stat(word, &st) != 0)
    return err_set_errno(err, errno, "cannot open %s", word);
  return store_ref_named(word, ref) || err_set(err, ERR_LIMIT, "the path is too long");
}

static bool find_log(const struct store *store, const char *word, struct store_ref *ref,
                     struct err *err) {
  char best[64] = "", unbegun[64] = "";
  int matches = 0, empty = 0;
  bool moving = false, last = strcmp(word, "last") == 0;
  const char *dir = store->where;
  struct stat st;
  if (is_path(word))
    return find_path(word, ref, err);
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
      (void)snprintf(unbegun, sizeof unbegun, "%.36s", e->d_name);
      empty++;
      continue;
    }
    (void)snprintf(best, sizeof best, "%.36s", e->d_name);
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
