/* Takes, keeps and gives up the right to edit a folder. */
#include "host/folder_lock.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/paths.h"
#include "host/session.h"
#include "os/fs.h"
#include "store/summary.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the right --- */

struct folder_ask { /* borrowed */
  const char *session;
  const char *path; /* absolute */
  const char *logs; /* the folder of its log */
};

struct folder_holder {
  char session[STORE_ID_BYTES];
  char path[STORE_PATH_BYTES];
  bool kept; /* kept while its session waits for a person */
};

struct folder_right {
  int fd;
  char *file;
  json_t *said; /* its contents */
};

static const char suffix[] = ".lock";
static const char mutex_name[] = "all";

/* Returns whether the two folders are the same, or one is inside the other. */
static bool folders_meet(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  const char *longer = n > m ? a : b;
  size_t shorter = n > m ? m : n;
  if (strncmp(a, b, shorter) != 0)
    return false;
  return longer[shorter] == '\0' || longer[shorter] == '/' || shorter == 1;
}

static json_t *folder_read(const char *file) {
  struct buf text = {0};
  struct err err;
  json_t *said = NULL;
  if (file_read(file, LIMIT_REPO_FILE_BYTES, &text, &err))
    said = json_loadb(text.p, text.n, 0, NULL);
  buf_deinit(&text);
  return said;
}

static const char *folder_word(const json_t *said, const char *key) {
  const char *word = json_string_value(json_object_get(said, key));
  return word ? word : "";
}

/* Returns true if its session still waits for a person, and nobody has resumed it. */
static bool still_waits(const json_t *said) {
  struct store store;
  struct store_ref ref;
  struct summary summary;
  struct err err;
  if (!json_is_true(json_object_get(said, "kept")))
    return false;
  store_at(&store, folder_word(said, "logs"));
  store_ref(&store, folder_word(said, "session"), &ref);
  if (!summary_read(&summary, &ref, &err))
    return false;
  bool waits = session_stop_asks(str_from(summary.stop_reason));
  summary_deinit(&summary);
  return waits;
}

static bool is_held(const char *file) {
  int fd = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  bool held = fd >= 0 && fs_is_locked(fd);
  if (fd >= 0)
    (void)close(fd);
  return held;
}

/* Examines one right and removes it if nobody has it any more. Returns true if it is in the way. */
static bool examine_right(const char *file, const struct folder_ask *ask,
                          struct folder_holder *holder) {
  json_t *said = folder_read(file);
  const char *session = folder_word(said, "session"), *path = folder_word(said, "folder");
  bool own = strcmp(session, ask->session) == 0, held = is_held(file);
  bool waits = !held && !own && still_waits(said);
  bool in_way = !own && (held || waits) && folders_meet(path, ask->path);
  if (in_way) {
    print_into(holder->session, sizeof holder->session, "%s", session);
    print_into(holder->path, sizeof holder->path, "%s", path);
    holder->kept = waits;
  } else if (!held && !waits && !own) {
    (void)unlink(file);
  }
  json_decref(said);
  return in_way;
}

/* Returns true if somebody holds the folder; `holder` then says who. */
static bool is_taken(const char *locks, const struct folder_ask *ask,
                     struct folder_holder *holder) {
  DIR *dir = opendir(locks);
  const struct dirent *entry;
  bool taken = false;
  while (dir != NULL && !taken && (entry = readdir(dir)) != NULL) {
    struct buf file = {0};
    buf_printf(&file, "%s/%s", locks, entry->d_name);
    size_t n = strlen(entry->d_name), end = sizeof suffix - 1;
    taken = n > end && strcmp(entry->d_name + n - end, suffix) == 0 &&
            examine_right(buf_c(&file), ask, holder);
    buf_deinit(&file);
  }
  if (dir != NULL)
    closedir(dir);
  return taken;
}

static bool folder_write(int fd, json_t *said) {
  char *text = json_dump_text(said, JSON_COMPACT);
  size_t n = strlen(text);
  bool ok = ftruncate(fd, 0) == 0 && pwrite(fd, text, n, 0) == (ssize_t)n;
  free(text);
  return ok;
}

static struct folder_right *right_make(const char *locks, const struct folder_ask *ask,
                                       struct err *err) {
  struct buf file = {0};
  buf_printf(&file, "%s/%s%s", locks, ask->session, suffix);
  int fd = open(buf_c(&file), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  json_t *said =
      json_pack("{ss ss* ss*}", "session", ask->session, "folder", ask->path, "logs", ask->logs);
  if (fd >= 0 && said != NULL && fs_lock(fd) && folder_write(fd, said)) {
    struct folder_right *right = xcalloc(1, sizeof *right);
    *right = (struct folder_right){.fd = fd, .file = buf_take(&file), .said = said};
    return right;
  }
  err_set_errno(err, errno, "cannot lock %s", buf_c(&file));
  if (fd >= 0)
    (void)close(fd);
  json_decref(said);
  buf_deinit(&file);
  return NULL;
}

/* Takes the lock under which one may look at all rights and make one. Returns -1 with err set. */
static int lock_all(const char *locks, struct err *err) {
  struct buf file = {0};
  buf_printf(&file, "%s/%s", locks, mutex_name);
  int fd = open(buf_c(&file), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0 && !fs_lock(fd)) {
    int number = errno;
    (void)close(fd);
    fd = -1;
    errno = number;
    if (fs_lock_is_taken(number))
      err_set(err, ERR_LOCKED, "%s is being looked at", locks);
    else
      err_set_errno(err, number, "cannot lock %s", buf_c(&file));
  } else if (fd < 0) {
    err_set_errno(err, errno, "cannot make %s", buf_c(&file));
  }
  buf_deinit(&file);
  return fd;
}

/* Takes a folder. NULL with holder->session set: it is taken. NULL with err set: ERR_LOCKED, ask
 * again in a moment; any other code, there can be no rights here. */
static struct folder_right *folder_take(const struct folder_ask *ask, struct folder_holder *holder,
                                        struct err *err) {
  char locks[PATHS_BYTES];
  struct folder_right *right = NULL;
  assert(ask->path[0] == '/');
  *holder = (struct folder_holder){0};
  if (!paths_state("locks", locks, err))
    return NULL;
  int all = lock_all(locks, err);
  if (all < 0)
    return NULL;
  if (!is_taken(locks, ask, holder))
    right = right_make(locks, ask, err);
  (void)close(all);
  return right;
}

static void right_free(struct folder_right *right) {
  (void)close(right->fd);
  json_decref(right->said);
  free(right->file);
  free(right);
}

bool folder_release(const char *session, struct err *err) {
  char locks[PATHS_BYTES];
  struct buf file = {0};
  if (!paths_state("locks", locks, err))
    return false;
  buf_printf(&file, "%s/%s%s", locks, session, suffix);
  json_t *said = folder_read(buf_c(&file));
  bool ok = true;
  if (is_held(buf_c(&file)))
    ok = err_set(err, ERR_LOCKED, "a process is running it: %s", session);
  else if (!still_waits(said))
    ok = err_set(err, ERR_NOT_FOUND, "%s holds no folder", session);
  else if (unlink(buf_c(&file)) != 0 && errno != ENOENT)
    ok = err_set_errno(err, errno, "cannot remove %s", buf_c(&file));
  json_decref(said);
  buf_deinit(&file);
  return ok;
}

/* --- sessions that wait for their folder --- */

struct folder_waiter {
  struct list_node in_queue;
  struct session *session;
  long call;
  unsigned round;               /* the round in which it was last asked for */
  char told_of[STORE_ID_BYTES]; /* whom its session was told to wait for; "": nobody yet */
};

static void folder_on_timer(uv_timer_t *timer);

void folder_queue_init(struct folder_queue *q, uv_loop_t *loop) {
  *q = (struct folder_queue){.timer = xcalloc(1, sizeof *q->timer)};
  uv_timer_init(loop, q->timer);
  q->timer->data = q;
}

static void folder_on_closed(uv_handle_t *handle) {
  free(handle);
}

void folder_queue_deinit(struct folder_queue *q) {
  if (q->timer == NULL)
    return;
  assert(q->waiters.count == 0);
  uv_close((uv_handle_t *)q->timer, folder_on_closed);
  *q = (struct folder_queue){0};
}

static void folder_arm(struct folder_queue *q, uint64_t ms) {
  if (q->waiters.count == 0)
    uv_timer_stop(q->timer);
  else
    uv_timer_start(q->timer, folder_on_timer, ms, 0);
}

enum folder_answer { FOLDER_MINE, FOLDER_TAKEN, FOLDER_SOON };

/* Asks for the right to the folder. If there is no place for rights, the session goes on and is
 * told so once. */
static enum folder_answer folder_ask_for(struct session *s, struct folder_holder *holder) {
  struct err err = {0};
  char *real = realpath(s->env.cwd, NULL);
  const struct folder_ask ask = {.session = s->core.session,
                                 .path = real ? real : s->env.cwd,
                                 .logs = s->host->store ? s->host->store->where : NULL};
  s->folder = folder_take(&ask, holder, &err);
  free(real);
  if (s->folder != NULL)
    return FOLDER_MINE;
  if (holder->session[0] != '\0')
    return FOLDER_TAKEN;
  if (err.code == ERR_LOCKED)
    return FOLDER_SOON;
  char text[LIMIT_ERROR_TEXT_BYTES];
  print_into(text, sizeof text,
             "cannot keep other sessions from editing here at the same time: %.300s", err.text);
  session_trouble(s, text);
  s->folder_free = true;
  return FOLDER_MINE;
}

static void tell_folder(struct session *s, long call, enum admission_answer answer,
                        const char *message) {
  struct event ev = {.kind = EVENT_ADMISSION,
                     .call = call,
                     .admission = answer,
                     .reason = "folder",
                     .message = message};
  session_event(s, &ev);
}

static void tell_wait(struct session *s, long call, const struct folder_holder *holder) {
  char text[LIMIT_ERROR_TEXT_BYTES];
  print_into(text, sizeof text, "session %s %s %.300s", holder->session,
             holder->kept ? "waits for a person and keeps" : "edits", holder->path);
  tell_folder(s, call, ADMISSION_WAIT, text);
}

/* Asks once more for one that waits, which this may free. */
static void ask_again(struct folder_queue *q, struct folder_waiter *w) {
  struct folder_holder holder = {0};
  struct session *s = w->session;
  long call = w->call;
  enum folder_answer answer = FOLDER_MINE;
  if (s->folder == NULL && !s->folder_free)
    answer = folder_ask_for(s, &holder);
  if (answer == FOLDER_MINE) {
    bool told = w->told_of[0] != '\0';
    list_remove(&q->waiters, &w->in_queue);
    free(w);
    struct effect start = {.kind = EFFECT_START_CALL, .call = call};
    const struct session_batch batch = {.effects = &start, .effect_count = 1};
    if (told)
      tell_folder(s, call, ADMISSION_ADMITTED, NULL);
    else
      session_run_effects(s, &batch);
  } else if (answer == FOLDER_TAKEN && strcmp(w->told_of, holder.session) != 0) {
    memcpy(w->told_of, holder.session, sizeof w->told_of);
    tell_wait(s, call, &holder);
  }
}

/* Asks for each waiter's folder. A session may do anything when told, so the list is searched from
 * its start each time. */
static void folder_on_timer(uv_timer_t *timer) {
  struct folder_queue *q = timer->data;
  bool more = true;
  q->round++;
  while (more) {
    more = false;
    LIST_EACH(struct folder_waiter, w, in_queue, &q->waiters)
      if (w->round != q->round) {
        w->round = q->round;
        ask_again(q, w);
        more = true;
        break;
      }
  }
  folder_arm(q, LIMIT_FOLDER_POLL_MS);
}

bool session_takes_folder(struct session *s, long call) {
  struct folder_queue *q = &s->host->folders;
  struct folder_holder holder = {0};
  /* only a session that edits here and was not told to ignore others needs it */
  if (!s->core.edits || s->folder != NULL || s->folder_free || s->env.cwd == NULL ||
      s->core.worktree.made || json_is_false(json_at(s->core.config, "lock")))
    return true;
  enum folder_answer answer = folder_ask_for(s, &holder);
  if (answer == FOLDER_MINE)
    return true;
  struct folder_waiter *w = xcalloc(1, sizeof *w);
  *w = (struct folder_waiter){.session = s, .call = call, .round = q->round};
  list_push_back(&q->waiters, &w->in_queue);
  folder_arm(q, answer == FOLDER_SOON ? LIMIT_FOLDER_SOON_MS : LIMIT_FOLDER_POLL_MS);
  if (answer == FOLDER_TAKEN) {
    memcpy(w->told_of, holder.session, sizeof w->told_of);
    tell_wait(s, call, &holder);
  }
  return false;
}

void session_leave_folder(struct session *s, long call) {
  struct folder_queue *q = &s->host->folders;
  LIST_EACH(struct folder_waiter, w, in_queue, &q->waiters)
    if (w->session == s && (call == 0 || w->call == call)) {
      list_remove(&q->waiters, &w->in_queue);
      free(w);
    }
  if (q->timer != NULL && q->waiters.count == 0)
    uv_timer_stop(q->timer);
}

void session_give_folder(struct session *s) {
  struct folder_queue *q = &s->host->folders;
  bool asks = s->core.status == SESSION_STOPPED && s->host->store != NULL &&
              session_stop_asks(buf_view(&s->core.stop_reason));
  struct folder_right *right = s->folder;
  if (right == NULL)
    return;
  s->folder = NULL;
  if (asks) {
    char text[LIMIT_ERROR_TEXT_BYTES];
    print_into(text, sizeof text,
               "this session keeps the folder while it waits for you; segue resume %s "
               "--release releases it",
               s->core.session);
    /* The file stays, without its lock. */
    json_object_set_new(right->said, "kept", json_true());
    if (!folder_write(right->fd, right->said))
      (void)unlink(right->file);
    right_free(right);
    session_trouble(s, text);
  } else if (right != NULL) {
    (void)unlink(right->file);
    right_free(right);
  }
  folder_arm(q, 0);
}
