/* Makes, shares and removes files that keep a program from creating its own at their paths. */
#include "provider/stand_in.h"

#include "base/log.h"
#include "os/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAND_IN_BYTES = 8, STAND_IN_TRIES = 8 };

struct stand_in {
  struct stand_in *next;
  int fd; /* locked */
  struct str text;
  char *path;
};

static bool stand_in_has_text(int fd, struct str text) {
  char bytes[STAND_IN_BYTES];
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == (off_t)text.n &&
         pread(fd, bytes, sizeof bytes, 0) == (ssize_t)text.n && memcmp(bytes, text.p, text.n) == 0;
}

/* Fills a file that is new. Returns false if it is somebody else's. */
static bool stand_in_write(int fd, struct str text) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    return false;
  if (st.st_size == 0 && text.n > 0 && pwrite(fd, text.p, text.n, 0) != (ssize_t)text.n)
    return false;
  return stand_in_has_text(fd, text);
}

static int stand_in_open(const char *path, struct str text) {
  for (int i = 0; i < STAND_IN_TRIES; i++) {
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0)
      return -1;
    bool locked = flock(fd, LOCK_SH) == 0;
    if (locked && fs_is_named(fd, path, false) && stand_in_write(fd, text))
      return fd;
    /* Another call may have removed it between its opening and its locking. */
    bool gone = locked && !fs_is_named(fd, path, false);
    (void)close(fd);
    if (!gone)
      return -1;
  }
  return -1;
}

void stand_in_add(struct stand_in **list, const char *path, struct str text) {
  int fd = stand_in_open(path, text);
  if (fd < 0)
    return;
  struct stand_in *one = xcalloc(1, sizeof *one);
  *one = (struct stand_in){.next = *list, .fd = fd, .text = text, .path = xstrdup(path)};
  *list = one;
}

static void stand_in_remove(const struct stand_in *one) {
  if (flock(one->fd, LOCK_EX | LOCK_NB) == 0 && fs_is_named(one->fd, one->path, false) &&
      stand_in_has_text(one->fd, one->text))
    (void)unlink(one->path);
}

void stand_ins_free(struct stand_in *list) {
  while (list != NULL) {
    struct stand_in *one = list;
    list = one->next;
    stand_in_remove(one);
    (void)close(one->fd);
    free(one->path);
    free(one);
  }
}
