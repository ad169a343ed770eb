/* Takes, keeps and gives up the right to edit a folder. */
#include "host/folder_lock.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "git/git.h"
#include "host/paths.h"
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
  buf_auto_t text = {0};
  struct err err;
  json_t *said = NULL;
  if (file_read(file, LIMIT_REPO_FILE_BYTES, &text, &err))
    said = json_loadb(text.p, text.n, 0, NULL);
  return said;
}

/* Returns true if it was kept, and its session is still stopped. */
static bool still_kept(const json_t *said) {
  struct store store;
  struct store_ref ref;
  struct summary summary;
  struct err err;
  if (json_object_get(said, "kept") == NULL)
    return false;
  store_at(&store, json_word_at(said, "logs"));
  store_ref(&store, json_word_at(said, "session"), &ref);
  if (!summary_read(&summary, &ref, &err))
    return false;
  bool stopped = summary_is_stopped(&summary);
  summary_deinit(&summary);
  return stopped;
}

static bool is_held(const char *file) {
  int fd = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  bool held = fd >= 0 && fs_is_locked(fd);
  if (fd >= 0)
    (void)close(fd);
  return held;
}

/* A shared store is never asked here, on the loop: what is kept counts until folder_look, or a
 * program that begins, finds that it need not be. */
static bool counts_as_kept(const json_t *said) {
  if (store_is_address(json_word_at(said, "logs")))
    return json_object_get(said, "kept") != NULL;
  return still_kept(said);
}

/* Examines one right and removes it if nobody has it any more. Returns true if it is in the way. */
static bool examine_right(const char *file, const struct folder_ask *ask,
                          struct folder_holder *holder) {
  json_auto_t *said = folder_read(file);
  const char *session = json_word_at(said, "session"), *path = json_word_at(said, "folder");
  bool own = strcmp(session, ask->session) == 0, held = is_held(file);
  bool kept = !held && !own && counts_as_kept(said);
  bool in_way = !own && (held || kept) && folders_meet(path, ask->path);
  if (in_way) {
    print_into(holder->session, sizeof holder->session, "%s", session);
    print_into(holder->path, sizeof holder->path, "%s", path);
    holder->kept = kept;
  } else if (!held && !kept && !own) {
    (void)unlink(file);
  }
  return in_way;
}

/* Puts the path of the next right. False: there is none. */
static bool next_right(DIR *dir, const char *locks, struct buf *file) {
  const struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    size_t n = strlen(entry->d_name), end = sizeof suffix - 1;
    buf_clear(file);
    buf_printf(file, "%s/%s", locks, entry->d_name);
    if (n > end && strcmp(entry->d_name + n - end, suffix) == 0)
      return true;
  }
  if (dir != NULL)
    closedir(dir);
  return false;
}

/* Returns true if somebody holds the folder; `holder` then says who. */
static bool is_taken(const char *locks, const struct folder_ask *ask,
                     struct folder_holder *holder) {
  DIR *dir = opendir(locks);
  buf_auto_t file = {0};
  while (next_right(dir, locks, &file))
    if (examine_right(buf_c(&file), ask, holder)) {
      closedir(dir);
      return true;
    }
  return false;
}

/* Asks git what is not committed in the folder. */
static const struct git_ask what_is_left = {.words = {"status", "--porcelain", "."}};

/* Returns true if git found nothing. */
static bool nothing_is_left(const struct git_answer *answer) {
  return answer->ran && answer->exit == 0 && answer->out.n == 0;
}

static bool all_committed(const char *folder) {
  struct git_ask ask = what_is_left;
  struct git_answer answer;
  struct err ignored;
  ask.folder = folder;
  if (!git_now(&ask, &answer, &ignored))
    return false;
  bool clean = nothing_is_left(&answer);
  git_answer_deinit(&answer);
  return clean;
}

/* Returns true if a right is kept for changes, and its session does not run. */
static bool kept_for_changes(const char *file, const json_t *said) {
  return strcmp(json_word_at(said, "kept"), "changes") == 0 && !is_held(file);
}

/* Returns true for a right without a process whose session's log, in a shared store, says that it
 * does not stop any more, or is gone. Waits for the server. */
static bool kept_for_nothing(const char *file, const json_t *said) {
  return store_is_address(json_word_at(said, "logs")) && !is_held(file) && !still_kept(said);
}

void folder_drop_unneeded(const char *path) {
  char locks[PATHS_BYTES];
  struct err ignored;
  buf_auto_t file = {0};
  DIR *dir = paths_state("locks", locks, &ignored) ? opendir(locks) : NULL;
  while (next_right(dir, locks, &file)) {
    json_auto_t *said = folder_read(buf_c(&file));
    const char *folder = json_word_at(said, "folder");
    if (folders_meet(folder, path) &&
        ((kept_for_changes(buf_c(&file), said) && all_committed(folder)) ||
         kept_for_nothing(buf_c(&file), said)))
      (void)unlink(buf_c(&file));
  }
}

/* Ends a look: gives up the right if nothing is kept by it. */
static void end_look(struct folder_look *look, bool needless) {
  bool free_now = needless && unlink(look->file) == 0;
  free(look->file);
  json_decref(look->said);
  look->file = NULL;
  look->said = NULL;
  if (free_now)
    look->freed(look->ctx);
}

static void folder_on_looked(void *ctx, struct git_answer *answer) {
  struct folder_look *look = ctx;
  json_auto_t *said = folder_read(look->file); /* its session may have gone on meanwhile */
  end_look(look, nothing_is_left(answer) && kept_for_changes(look->file, said));
}

static bool ask_git(struct folder_look *look) {
  struct err ignored;
  struct git_ask ask = what_is_left;
  ask.folder = json_word_at(look->said, "folder");
  return kept_for_changes(look->file, look->said) &&
         git_ask(&look->git, &ask, folder_on_looked, look, &ignored);
}

static void ask_store(uv_work_t *work) {
  struct folder_look *look = work->data;
  look->needless = kept_for_nothing(look->file, look->said);
}

static void on_store_answered(uv_work_t *work, int status) {
  struct folder_look *look = work->data;
  bool needless = status == 0 && look->needless;
  if (needless || look->ending || !ask_git(look))
    end_look(look, needless);
}

bool folder_look(struct folder_look *look, const struct folder_holder *holder, uv_loop_t *loop) {
  char locks[PATHS_BYTES];
  struct err ignored;
  buf_auto_t file = {0};
  if (look->file != NULL || uv_now(loop) < look->next_ms || !paths_state("locks", locks, &ignored))
    return false;
  look->next_ms = uv_now(loop) + LIMIT_FOLDER_LOOK_MS / 5;
  buf_printf(&file, "%s/%s%s", locks, holder->session, suffix);
  look->said = folder_read(buf_c(&file));
  look->file = buf_take(&file);
  look->store_asked.data = look;
  bool begun = false;
  if (store_is_address(json_word_at(look->said, "logs")))
    begun = uv_queue_work(loop, &look->store_asked, ask_store, on_store_answered) == 0;
  else
    begun = ask_git(look);
  if (!begun)
    end_look(look, false);
  return true;
}

void folder_look_end(struct folder_look *look, uv_loop_t *loop) {
  look->ending = true;
  git_cancel(&look->git);
  while (look->file != NULL)
    uv_run(loop, UV_RUN_ONCE);
  git_deinit(&look->git);
}

static bool folder_write(int fd, json_t *said) {
  char_auto_t *text = json_dump_text(said, JSON_COMPACT);
  size_t n = strlen(text);
  return ftruncate(fd, 0) == 0 && pwrite(fd, text, n, 0) == (ssize_t)n;
}

static struct folder_right *right_make(const char *locks, const struct folder_ask *ask,
                                       struct err *err) {
  buf_auto_t file = buf_of("%s/%s%s", locks, ask->session, suffix);
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
  return NULL;
}

/* Takes the lock under which one may look at all rights and make one. Returns -1 with err set. */
static int lock_all(const char *locks, struct err *err) {
  buf_auto_t file = buf_of("%s/%s", locks, mutex_name);
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
  return fd;
}

struct folder_right *folder_take(const struct folder_ask *ask, struct folder_holder *holder,
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

void folder_give(struct folder_right *owned_right, enum folder_keep keep) {
  /* The file stays, without its lock. */
  if (keep != FOLDER_KEEP_NOT)
    json_object_set_new(owned_right->said, "kept",
                        json_string(keep == FOLDER_KEEP_QUESTION ? "question" : "changes"));
  if (keep == FOLDER_KEEP_NOT || !folder_write(owned_right->fd, owned_right->said))
    (void)unlink(owned_right->file);
  (void)close(owned_right->fd);
  json_decref(owned_right->said);
  free(owned_right->file);
  free(owned_right);
}

bool folder_release(const char *session, struct err *err) {
  char locks[PATHS_BYTES];
  buf_auto_t file = {0};
  if (!paths_state("locks", locks, err))
    return false;
  buf_printf(&file, "%s/%s%s", locks, session, suffix);
  json_auto_t *said = folder_read(buf_c(&file));
  bool ok = true;
  if (is_held(buf_c(&file)))
    ok = err_set(err, ERR_LOCKED, "a process is running it: %s", session);
  else if (!still_kept(said))
    ok = err_set(err, ERR_NOT_FOUND, "%s holds no folder", session);
  else if (unlink(buf_c(&file)) != 0 && errno != ENOENT)
    ok = err_set_errno(err, errno, "cannot remove %s", buf_c(&file));
  return ok;
}
