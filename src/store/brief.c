#include "store/brief.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_CHARS = 36, HEAD_BYTES = 16 * 1024, TAIL_BYTES = 8 * 1024 };

/* --- records --- */

static const char *word(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static void keep(char **slot, const char *text) {
  free(*slot);
  *slot = text[0] ? xstrdup(text) : NULL;
}

/* Cut to what there is room for. */
static void copy_word(char *out, size_t room, const char *text) {
  size_t n = strnlen(text, room - 1);
  memcpy(out, text, n);
  out[n] = '\0';
}

/* Of most records nothing but these is wanted, and a daemon sees all records of all sessions. */
static bool matters(enum record_type type) {
  return type == RECORD_SESSION_START || type == RECORD_SESSION_STOP ||
         type == RECORD_SESSION_RESUME || type == RECORD_SESSION_END || type == RECORD_TURN_START;
}

static bool is_time(const char *text) {
  int64_t ms;
  return record_time_parse(text, &ms);
}

static void wait_for(struct brief *b, const char *what, const struct record *record,
                     const char *since) {
  const char *until = record_text_c(record, MEMBER_UNTIL);
  b->wait = xcalloc(1, sizeof *b->wait);
  copy_word(b->wait->what, sizeof b->wait->what, what);
  copy_word(b->wait->provider, sizeof b->wait->provider, record_text_c(record, MEMBER_PROVIDER));
  copy_word(b->wait->since, sizeof b->wait->since, since);
  copy_word(b->wait->until, sizeof b->wait->until, is_time(until) ? until : "");
}

/* Whatever it tells next, it waits no more; but it can be told to wait for something else. */
static void feed_wait(struct brief *b, const struct record *record) {
  char since[sizeof b->updated];
  int64_t now;
  bool told =
      record->type == RECORD_ADMISSION && str_eq_c(record_text(record, MEMBER_ANSWER), "wait");
  memcpy(since, told && b->wait ? b->wait->since : b->updated, sizeof since);
  free(b->wait);
  b->wait = NULL;
  if (told && is_time(since)) {
    wait_for(b, record_text_c(record, MEMBER_REASON), record, since);
  } else if (record_get(record, MEMBER_RETRY_IN_MS) != NULL && record_time_parse(since, &now)) {
    wait_for(b, word(record_tree(record, MEMBER_ERROR), "class"), record, since);
    int64_t ms = record_number(record, MEMBER_RETRY_IN_MS); /* from a file: it may say anything */
    record_time(now + (ms > 0 && ms < LIMIT_RESET_WAIT_MS ? ms : 0), b->wait->until);
  }
}

void brief_feed(struct brief *b, const struct record *record) {
  b->seq = record->seq;
  copy_word(b->updated, sizeof b->updated, record->ts.p);
  if (b->wait != NULL || record->type == RECORD_ADMISSION || record->type == RECORD_CALL_END)
    feed_wait(b, record);
  if (!b->partial && !matters(record->type))
    return;
  long turn = (long)record_number(record, MEMBER_TURN);
  b->turns = turn > b->turns ? turn : b->turns;
  if (record->type == RECORD_SESSION_START) {
    copy_word(b->session, sizeof b->session, record_text_c(record, MEMBER_SESSION));
    copy_word(b->started, sizeof b->started, record->ts.p);
    copy_word(b->status, sizeof b->status, "running");
    keep(&b->workflow, word(record_tree(record, MEMBER_WORKFLOW), "name"));
    b->submitted = json_is_true(json_object_get(record_tree(record, MEMBER_CONFIG), "submitted"));
  } else if (record->type == RECORD_TURN_START) {
    keep(&b->movement, record_text_c(record, MEMBER_MOVEMENT));
  } else if (record->type == RECORD_SESSION_STOP) {
    copy_word(b->status, sizeof b->status, "stopped");
    copy_word(b->stop_reason, sizeof b->stop_reason, record_text_c(record, MEMBER_REASON));
    keep(&b->message, record_text_c(record, MEMBER_MESSAGE));
  } else if (record->type == RECORD_SESSION_RESUME) {
    copy_word(b->status, sizeof b->status, "running");
    b->stop_reason[0] = '\0';
    keep(&b->message, "");
  } else if (record->type == RECORD_SESSION_END) {
    copy_word(b->status, sizeof b->status, record_text_c(record, MEMBER_OUTCOME));
    b->stop_reason[0] = '\0';
    keep(&b->message, record_text_c(record, MEMBER_MESSAGE));
  }
}

void brief_deinit(struct brief *b) {
  free(b->workflow);
  free(b->movement);
  free(b->message);
  free(b->wait);
  *b = (struct brief){0};
}

static void set_text(json_t *object, const char *key, const char *text) {
  json_object_set_new(object, key, text ? json_text(str_from(text)) : json_null());
}

const char *brief_status(const struct brief *b) {
  return b->wait != NULL && strcmp(b->status, "running") == 0 ? "waiting" : b->status;
}

static void say_wait(const struct brief_wait *w, struct buf *out) {
  if (strcmp(w->what, "concurrency") == 0)
    buf_printf(out, "all places at %s are taken", w->provider);
  else if (strcmp(w->what, "cooldown") == 0)
    buf_printf(out, "%s asked to be left alone until %s", w->provider, w->until);
  else if (strcmp(w->what, "circuit_open") == 0)
    buf_printf(out, "%s does not answer: asked again %s%s", w->provider,
               w->until[0] ? "at " : "soon", w->until);
  else
    buf_printf(out, "%s: asked again at %s", w->what, w->until);
}

static json_t *wait_json(const struct brief_wait *w) {
  json_t *object = json_object();
  set_text(object, "for", w->what);
  set_text(object, "provider", w->provider[0] ? w->provider : NULL);
  set_text(object, "since", w->since);
  set_text(object, "until", w->until[0] ? w->until : NULL);
  return object;
}

json_t *brief_json(const struct brief *b, const char *id, const char *log, const char *status,
                   const char *message, size_t position) {
  json_t *object = json_pack("{ss ss ss}", "id", id, "status", status, "origin",
                             b->submitted ? "daemon" : "run");
  set_text(object, "workflow", b->workflow);
  set_text(object, "movement", b->movement);
  bool waits = strcmp(status, "waiting") == 0 && b->wait != NULL;
  struct buf why = {0};
  if (waits)
    say_wait(b->wait, &why);
  set_text(object, "message", waits ? buf_c(&why) : message);
  buf_deinit(&why);
  json_object_set_new(object, "turns", json_integer(b->turns));
  json_object_set_new(object, "seq", json_integer((json_int_t)b->seq));
  set_text(object, "started", b->started);
  set_text(object, "updated", b->updated);
  if (position > 0)
    json_object_set_new(object, "position", json_integer((json_int_t)position));
  if (waits)
    json_object_set_new(object, "waiting", wait_json(b->wait));
  set_text(object, "log", log);
  return object;
}

bool brief_wanted(const char *filter, const char *status) {
  size_t n = strlen(status);
  for (const char *at = filter; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
    if (strncmp(at, status, n) == 0 && (at[n] == ',' || at[n] == '\0'))
      return true;
  return filter == NULL;
}

bool brief_filter_check(const char *filter, struct err *err) {
  static const char *const statuses[] = {
      "queued", "running",       "waiting",       "paused",    "stopped", "open", "complete",
      "abort",  "rule_no_match", "max_movements", "cancelled", "failed",  NULL};
  for (const char *at = filter; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
    size_t n = strcspn(at, ",");
    bool known = false;
    for (size_t i = 0; statuses[i]; i++)
      known = known || (strlen(statuses[i]) == n && strncmp(statuses[i], at, n) == 0);
    if (!known)
      return err_set(err, ERR_USAGE, "there is no status \"%.*s\"", (int)(n < 40 ? n : 40), at);
  }
  return true;
}

bool brief_goes_on(const struct brief *b) {
  bool by_user =
      strcmp(b->stop_reason, "interrupted") == 0 || strcmp(b->stop_reason, "terminated") == 0;
  bool open = strcmp(b->status, "running") == 0 || strcmp(b->status, "stopped") == 0;
  return b->submitted && open && !by_user;
}

/* --- files --- */

static bool read_at(int fd, uint64_t from, size_t n, struct buf *out) {
  buf_clear(out);
  buf_reserve(out, n);
  while (out->n < n) {
    ssize_t got = pread(fd, out->p + out->n, n - out->n, (off_t)(from + out->n));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    out->n += (size_t)got;
  }
  return out->n == n;
}

/* The first line; grows until it is whole. */
static bool feed_head(struct brief *b, int fd, uint64_t size, struct buf *text) {
  const char *end = NULL;
  for (size_t n = HEAD_BYTES; end == NULL; n *= 8) {
    size_t have = n < size ? n : (size_t)size;
    if (!read_at(fd, 0, have, text))
      return false;
    end = memchr(text->p, '\n', text->n);
    if (end == NULL && (have == size || n > LIMIT_LOG_LINE_BYTES))
      return false;
  }
  json_t *record = json_loadb(text->p, (size_t)(end - text->p), JSON_ALLOW_NUL, NULL);
  struct record_draft d;
  record_read(&d, record);
  bool ok = d.record.type == RECORD_SESSION_START;
  if (ok)
    brief_feed(b, &d.record);
  record_drop(&d);
  json_decref(record);
  return ok;
}

static bool feed_line(struct brief *b, struct str line) {
  json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  struct record_draft d;
  record_read(&d, record);
  const char *movement = record_text_c(&d.record, MEMBER_MOVEMENT);
  bool names = movement[0] != '\0';
  if (record != NULL)
    brief_feed(b, &d.record);
  if (names)
    keep(&b->movement, movement);
  record_drop(&d);
  json_decref(record);
  return names;
}

/* The last whole lines; more of them until one names the movement, or all are read. */
static bool feed_tail(struct brief *b, int fd, uint64_t size, struct buf *text) {
  b->partial = true;
  for (uint64_t want = TAIL_BYTES;; want *= 8) {
    uint64_t from = want < size ? size - want : 0;
    if (!read_at(fd, from, (size_t)(size - from), text))
      return false;
    size_t end = text->n;
    while (end > 0 && text->p[end - 1] != '\n')
      end--;
    b->bytes = from + end;
    const char *begin = from == 0 ? text->p : memchr(text->p, '\n', end);
    if (from > 0 && begin != NULL)
      begin++;
    struct str rest = {begin, begin ? (size_t)(text->p + end - begin) : 0};
    bool names = false;
    while (rest.p != NULL && rest.n > 0)
      names = feed_line(b, str_next_line(&rest)) || names;
    if (from == 0 || names || want > LIMIT_LOG_LINE_BYTES)
      return true;
  }
}

/* Readers count on times, also of a damaged log: its name tells when it was begun. */
static void mend_times(struct brief *b, const char *path) {
  unsigned long long high = 0, low = 0;
  const char *name = strrchr(path, '/');
  if (!is_time(b->started)) {
    (void)sscanf(name ? name + 1 : path, "%8llx-%4llx-", &high, &low);
    record_time((int64_t)(high << 16 | low), b->started);
  }
  if (!is_time(b->updated))
    copy_word(b->updated, sizeof b->updated, b->started);
}

bool brief_read(struct brief *b, const char *path, struct err *err) {
  struct stat st;
  struct buf text = {0};
  *b = (struct brief){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set_errno(err, errno, "cannot open %s", path);
  bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  ok = ok && feed_head(b, fd, (uint64_t)st.st_size, &text) &&
       feed_tail(b, fd, (uint64_t)st.st_size, &text);
  close(fd);
  buf_deinit(&text);
  b->partial = false;
  if (ok)
    mend_times(b, path);
  if (!ok) {
    brief_deinit(b);
    return err_set(err, ERR_NOT_FOUND, "%s holds no session yet", path);
  }
  return true;
}

bool brief_owned(const char *path) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return false;
  bool owned = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(fd);
  return owned;
}

/* --- folders --- */

static bool is_log(const char *name) {
  return strlen(name) == ID_CHARS + 7 && strcmp(name + ID_CHARS, ".ndjson") == 0 &&
         strspn(name, "0123456789abcdef-") == ID_CHARS;
}

static int newest_first(const void *a, const void *b) {
  return strcmp(((const struct brief_id *)b)->id, ((const struct brief_id *)a)->id);
}

bool brief_list(const char *dir, struct brief_id **ids, size_t *count, struct err *err) {
  size_t cap = 0;
  *ids = NULL;
  *count = 0;
  DIR *d = opendir(dir);
  if (d == NULL)
    return err_set_errno(err, errno, "cannot read the log folder %s", dir);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (!is_log(e->d_name))
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
