/* Makes private folders, and removes them whatever a program left inside. */
#include "os/tmpdir.h"

#include "base/buf.h"
#include "base/limits.h"
#include "os/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *parent_dir(void) {
  const char *parent = getenv("TMPDIR");
  return parent != NULL && parent[0] == '/' ? parent : "/tmp";
}

/* Names the folder that one user's programs share. Others cannot enter it, even if they may write
 * in the folder above. */
static void tmpdir_folder(struct buf *out) {
  buf_printf(out, "%s/segue-%ld.tmp", parent_dir(), (long)geteuid());
}

/* Programs with something in the folder hold it together (flock); whoever has it alone finds only
 * what others have left that were killed. There are several if TMPDIR is changed in between. */
enum { HOLDS_MAX = 4 };
static struct {
  pthread_mutex_t lock;
  unsigned count;         /* of ours in them */
  int folders[HOLDS_MAX]; /* open; 0: none */
} hold = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool remove_all(const char *path, bool *there, struct err *err);

static void tmpdir_sweep(const char *folder) {
  DIR *all = opendir(folder);
  buf_auto_t path = {0};
  for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL; buf_clear(&path)) {
    struct err ignored;
    bool there;
    buf_printf(&path, "%s/%s", folder, e->d_name);
    if (strncmp(e->d_name, "segue-", strlen("segue-")) == 0)
      (void)!remove_all(path.p, &there, &ignored);
  }
  if (all != NULL)
    closedir(all);
}

/* Returns whether the folder is held, and a place for it if not: a free one, or that of a folder
 * which somebody has removed. NULL: there is none. */
static bool holds_already(const struct stat *st, int **place) {
  *place = NULL;
  for (size_t i = 0; i < HOLDS_MAX; i++) {
    struct stat held;
    bool open = hold.folders[i] > 0 && fstat(hold.folders[i], &held) == 0 && held.st_nlink > 0;
    if (open && held.st_ino == st->st_ino && held.st_dev == st->st_dev)
      return true;
    if (!open)
      *place = &hold.folders[i];
  }
  return false;
}

static void give_up(int *folder) {
  if (*folder > 0)
    (void)close(*folder);
  *folder = 0;
}

/* For one that is about to be made. */
static void tmpdir_hold(const char *folder, const struct stat *st) {
  int *place;
  (void)pthread_mutex_lock(&hold.lock);
  hold.count++;
  if (!holds_already(st, &place) && place != NULL) {
    give_up(place);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd > 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
      tmpdir_sweep(folder);
    if (fd > 0)
      (void)flock(fd, LOCK_SH);
    *place = fd > 0 ? fd : 0;
  }
  (void)pthread_mutex_unlock(&hold.lock);
}

static void tmpdir_release(void) {
  (void)pthread_mutex_lock(&hold.lock);
  if (hold.count > 0 && --hold.count == 0)
    for (size_t i = 0; i < HOLDS_MAX; i++)
      give_up(&hold.folders[i]);
  (void)pthread_mutex_unlock(&hold.lock);
}

/* Makes the user's own folder. Returns false if somebody else has its name. */
static bool tmpdir_enter(struct buf *out) {
  struct stat st;
  tmpdir_folder(out);
  bool ok = (mkdir(out->p, 0700) == 0 || errno == EEXIST) && lstat(out->p, &st) == 0 &&
            S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
  if (ok)
    tmpdir_hold(out->p, &st);
  return ok;
}

/* Tries twice: another program that ends may remove the empty folder between two of our steps. */
char *tmpdir_make(struct err *err) {
  struct buf path = {0};
  for (int i = 0; i < 2; i++) {
    buf_deinit(&path);
    if (!tmpdir_enter(&path))
      break;
    buf_puts(&path, "/segue-XXXXXX");
    if (mkdtemp(path.p) != NULL) /* mode 0700 */
      return buf_take(&path);
    tmpdir_release();
  }
  buf_deinit(&path);
  buf_printf(&path, "%s/segue-XXXXXX", parent_dir());
  if (mkdtemp(path.p) != NULL)
    return buf_take(&path);
  err_set_errno(err, errno, "cannot make a temporary directory in '%s'", parent_dir());
  buf_deinit(&path);
  return NULL;
}

bool tmpdir_check(struct err *err) {
  buf_auto_t own = {0};
  struct stat st;
  tmpdir_folder(&own);
  bool ok = (lstat(own.p, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid()) ||
            (stat(parent_dir(), &st) == 0 && S_ISDIR(st.st_mode) &&
             access(parent_dir(), W_OK | X_OK) == 0);
  return ok || err_set(err, ERR_IO,
                       "no temporary directory can be made in %.300s: set TMPDIR to a folder that "
                       "you can write to",
                       parent_dir());
}

static bool tmpdir_make_anew(const char *path) {
  struct stat st;
  struct err ignored;
  bool there;
  if (mkdir(path, 0700) == 0)
    return true;
  return errno == EEXIST && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
         st.st_uid == geteuid() && remove_all(path, &there, &ignored) && mkdir(path, 0700) == 0;
}

char *tmpdir_make_named(const char *name, struct err *err) {
  struct buf path = {0};
  for (int i = 0; i < 2; i++) {
    buf_deinit(&path);
    if (!tmpdir_enter(&path))
      break;
    buf_printf(&path, "/%s", name);
    if (tmpdir_make_anew(path.p))
      return buf_take(&path);
    tmpdir_release();
  }
  buf_deinit(&path);
  return tmpdir_make(err);
}

void tmpdir_leave(void) {
  buf_auto_t path = {0};
  tmpdir_folder(&path);
  (void)rmdir(path.p);
}

struct removal {
  dev_t device;
  int top;             /* the whole, open */
  unsigned long moved; /* directories that were too deep and are now below top */
  const char *path;    /* the whole's, for messages */
  struct err *err;
  bool ok;
};

static void tmpdir_failed(struct removal *r, int number, const char *name) {
  if (r->ok)
    err_set_errno(r->err, number, "cannot remove '%s' in '%s'", name, r->path);
  r->ok = false;
}

/* Opens a directory for removal, never through a link, and makes it ours to change. Returns -1 with
 * errno set if it cannot. */
static int open_dir(int parent, const char *name, struct stat *st) {
  char self[64];
  int handle = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (handle < 0)
    return -1;
  print_into(self, sizeof self, "/proc/self/fd/%d", handle);
  if (fstat(handle, st) == 0 && (st->st_mode & S_IRWXU) != S_IRWXU)
    (void)chmod(self, S_IRWXU); /* the directory that is open, whatever its name is now */
  int fd = openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  fs_close(handle);
  return fd;
}

static void remove_content(struct removal *r, int fd, unsigned depth);

static void remove_dir(struct removal *r, int parent, const char *name, unsigned depth) {
  struct stat st = {0};
  int fd = open_dir(parent, name, &st);
  if (fd < 0) {
    tmpdir_failed(r, errno, name);
    return;
  }
  if (st.st_dev != r->device)
    (void)close(fd); /* a mount point; the rmdir below says so */
  else if (depth > LIMIT_TMPDIR_DEPTH) {
    (void)close(fd);
    /* Moves what is too deep to the top, to be removed later: each level keeps a descriptor open.
     * */
    char to[40];
    int rc;
    do
      print_into(to, sizeof to, "segue-deep-%lu", r->moved++);
    while ((rc = renameat2(parent, name, r->top, to, RENAME_NOREPLACE)) != 0 && errno == EEXIST);
    if (rc != 0)
      tmpdir_failed(r, errno, name);
    return;
  } else
    remove_content(r, fd, depth);
  if (unlinkat(parent, name, AT_REMOVEDIR) != 0)
    tmpdir_failed(r, errno, name);
}

/* Removes the content, closes fd. Only directories are entered: unlinkat removes a link itself. */
static void remove_content(struct removal *r, int fd, unsigned depth) {
  DIR *dir = fdopendir(fd);
  struct dirent *entry;
  if (dir == NULL) {
    tmpdir_failed(r, errno, ".");
    (void)close(fd);
    return;
  }
  while ((entry = readdir(dir)) != NULL) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
      continue;
    if (unlinkat(fd, name, 0) == 0)
      continue;
    if (errno == EISDIR)
      remove_dir(r, fd, name, depth + 1);
    else if (errno != ENOENT)
      tmpdir_failed(r, errno, name);
  }
  (void)closedir(dir);
}

static bool remove_all(const char *path, bool *there, struct err *err) {
  struct removal r = {.path = path, .err = err, .ok = true};
  struct stat st;
  unsigned round = 0;
  r.top = open_dir(AT_FDCWD, path, &st);
  *there = r.top >= 0;
  if (r.top < 0)
    return errno == ENOENT || err_set_errno(err, errno, "cannot remove '%s'", path);
  r.device = st.st_dev;
  unsigned long before;
  do {
    before = r.moved;
    int fd = openat(r.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
      tmpdir_failed(&r, errno, ".");
    else
      remove_content(&r, fd, 0);
  } while (r.ok && r.moved > before && ++round < LIMIT_TMPDIR_ROUNDS);
  (void)close(r.top);
  if (r.ok && rmdir(path) != 0)
    tmpdir_failed(&r, errno, ".");
  return r.ok;
}

bool tmpdir_remove(const char *path, struct err *err) {
  buf_auto_t folder = {0};
  bool there, ok = remove_all(path, &there, err);
  tmpdir_folder(&folder);
  if (there && fs_below(path, buf_c(&folder)) != NULL)
    tmpdir_release();
  return ok;
}
