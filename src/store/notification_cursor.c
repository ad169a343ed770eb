/* Keeps how far a person was notified of sessions, and finds what is still missing. */
#include "store/notification_cursor.h"

#include "base/file.h"
#include "base/limits.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "store/notification.h"
#include "store/reader.h"
#include "store/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTIFICATION_CURSOR_NAME "notified"
enum { SLACK_MS = 5000, KEEP_MS = 3600000 }; /* KEEP_MS: after the last notice */

static void notification_cursor_path(const struct store *store, const char *end,
                                     char out[STORE_NAME_BYTES]) {
  print_into(out, STORE_NAME_BYTES, "%s/" NOTIFICATION_CURSOR_NAME "%s", store->where, end);
}

static int64_t stat_ms(const struct stat *st) {
  return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

/* --- the file --- */

void notification_cursor_load(struct notification_cursor *n, const struct store *store) {
  char path[STORE_NAME_BYTES];
  buf_auto_t text = {0};
  struct err ignored;
  struct stat st;
  *n = (struct notification_cursor){0};
  notification_cursor_path(store, "", path);
  if (stat(path, &st) == 0) /* even if it cannot be read */
    n->saved_ms = stat_ms(&st);
  if (file_read(path, LIMIT_NOTIFIED_BYTES, &text, &ignored)) {
    json_auto_t *all = json_loadb(buf_c(&text), text.n, 0, NULL);
    n->sessions = json_incref(json_object_get(all, "sessions"));
  }
  if (!json_is_object(n->sessions)) {
    json_decref(n->sessions);
    n->sessions = json_object();
  }
}

static bool put_whole(const char *path, const char *temp, struct str text) {
  int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool ok = fd >= 0 && files_write_all(fd, text.p, text.n, 0) && fsync(fd) == 0;
  int number = errno;
  if (fd >= 0)
    (void)close(fd);
  if (ok && rename(temp, path) != 0) {
    number = errno;
    ok = false;
  }
  errno = number;
  return ok;
}

bool notification_cursor_save(struct notification_cursor *n, const struct store *store,
                              int64_t now_ms, struct err *err) {
  char path[STORE_NAME_BYTES], temp[STORE_NAME_BYTES];
  if (store->ops != &files_ops) /* nothing is kept for a shared store: a notice may be lost there */
    return true;
  const char *id;
  json_t *entry;
  void *next;
  json_object_foreach_safe(n->sessions, next, id, entry) {
    json_int_t at = json_integer_value(json_at(entry, "at"));
    if (at > 0 && now_ms - at > KEEP_MS)
      json_object_del(n->sessions, id);
  }
  json_auto_t *all = json_pack("{si sO}", "v", 1, "sessions", n->sessions);
  buf_auto_t text = {0};
  json_write(all, &text);
  notification_cursor_path(store, "", path);
  notification_cursor_path(store, ".part", temp);
  bool ok = put_whole(path, temp, buf_view(&text));
  if (!ok)
    err_set_errno(err, errno, "%s cannot be written", path);
  else
    n->saved_ms = now_ms;
  return ok;
}

void notification_cursor_forget(const struct store *store) {
  char path[STORE_NAME_BYTES];
  notification_cursor_path(store, "", path);
  (void)unlink(path);
}

void notification_cursor_deinit(struct notification_cursor *n) {
  json_decref(n->sessions);
  *n = (struct notification_cursor){0};
}

/* --- counting --- */

void notification_cursor_expect(struct notification_cursor *n, const char *id, uint64_t seq) {
  json_t *entry = json_object_get(n->sessions, id);
  if (entry == NULL) {
    entry = json_object();
    json_put(entry, "told", json_integer((json_int_t)seq - 1));
    json_object_set_new(n->sessions, id, entry);
  }
  json_put(entry, "at", json_integer(0));
}

void notification_cursor_told(struct notification_cursor *n, const char *id, uint64_t seq,
                              uint64_t next, int64_t now_ms) {
  json_t *entry = json_object_get(n->sessions, id);
  if (entry == NULL)
    return;
  json_put(entry, "told", json_integer((json_int_t)(next > 0 ? next - 1 : seq)));
  json_put(entry, "at", json_integer(next > 0 ? 0 : now_ms));
}

/* --- missed notices --- */

struct missed {
  const struct notification_cursor *n;
  const char *id;
  void (*each)(void *ctx, const char *id, json_t *notification, uint64_t seq);
  void *ctx;
};

/* Returns whether it was told; without knowledge of the session, whether it is old. */
static bool notification_cursor_is_told(const struct missed *m, const struct record *record) {
  const json_t *entry = json_object_get(m->n->sessions, m->id);
  int64_t at_ms;
  if (entry != NULL)
    return (json_int_t)record->seq <= json_integer_value(json_at(entry, "told"));
  return !record_time_parse(record->ts.p, &at_ms) || at_ms < m->n->saved_ms - KEEP_MS;
}

static void notification_cursor_feed(const struct missed *m, struct summary *b, struct str line) {
  json_t *object = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL), *notifications = json_array();
  struct record_draft d;
  record_read(&d, object);
  if (object != NULL) {
    summary_feed(b, &d.record);
    if (b->submitted && !notification_cursor_is_told(m, &d.record))
      notification_of(b, &d.record, notifications);
  }
  JSON_EACH(notifications, i, notification)
    m->each(m->ctx, m->id, notification, d.record.seq);
  record_drop(&d);
  json_decref(notifications);
  json_decref(object);
}

static void notification_cursor_read(const struct missed *m, const struct store_ref *ref) {
  AUTO(summary_deinit) struct summary b = {0};
  struct log_reader r;
  struct str line;
  struct err ignored;
  if (!reader_open(&r, ref, &ignored))
    return;
  while (reader_next(&r, &line) && r.whole)
    notification_cursor_feed(m, &b, line);
  reader_close(&r);
}

void notification_cursor_missed(const struct notification_cursor *n, const struct store *store,
                                void (*each)(void *ctx, const char *id, json_t *notification,
                                             uint64_t seq),
                                void *ctx) {
  struct store_id *ids = NULL;
  size_t count = 0;
  struct err ignored;
  if (n->saved_ms == 0 || !store_list(store, &ids, &count, &ignored))
    return;
  for (size_t i = count; i-- > 0;) { /* oldest first */
    const struct missed m = {n, ids[i].id, each, ctx};
    struct store_ref ref;
    struct stat st;
    store_ref(store, ids[i].id, &ref);
    if (json_object_get(n->sessions, ids[i].id) != NULL ||
        (stat(ref.name, &st) == 0 && stat_ms(&st) >= n->saved_ms - SLACK_MS))
      notification_cursor_read(&m, &ref);
  }
  free(ids);
}
