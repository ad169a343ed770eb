/* Makes, shares and removes files that keep a program from creating its own at their paths. */
#include "provider/placeholder.h"

#include "base/log.h"
#include "os/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACEHOLDER_BYTES = 8, PLACEHOLDER_TRIES = 8 };

struct placeholder {
  struct placeholder *next;
  int fd; /* locked */
  struct str text;
  char *path;
};

static bool placeholder_has_text(int fd, struct str text) {
  char bytes[PLACEHOLDER_BYTES];
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == (off_t)text.n &&
         pread(fd, bytes, sizeof bytes, 0) == (ssize_t)text.n && memcmp(bytes, text.p, text.n) == 0;
}

/* Fills a file that is new. Returns false if it is somebody else's. */
static bool placeholder_write(int fd, struct str text) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    return false;
  if (st.st_size == 0 && text.n > 0 && pwrite(fd, text.p, text.n, 0) != (ssize_t)text.n)
    return false;
  return placeholder_has_text(fd, text);
}

static int placeholder_open(const char *path, struct str text) {
  for (int i = 0; i < PLACEHOLDER_TRIES; i++) {
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0)
      return -1;
    bool locked = flock(fd, LOCK_SH) == 0;
    if (locked && fs_is_named(fd, path, false) && placeholder_write(fd, text))
      return fd;
    /* Another call may have removed it between its opening and its locking. */
    bool gone = locked && !fs_is_named(fd, path, false);
    (void)close(fd);
    if (!gone)
      return -1;
  }
  return -1;
}

void placeholder_add(struct placeholder **list, const char *path, struct str text) {
  int fd = placeholder_open(path, text);
  if (fd < 0)
    return;
  struct placeholder *one = xcalloc(1, sizeof *one);
  *one = (struct placeholder){.next = *list, .fd = fd, .text = text, .path = xstrdup(path)};
  *list = one;
}

void stand_ins_free(struct placeholder *list) {
  while (list != NULL) {
    struct placeholder *one = list;
    list = one->next;
    if (flock(one->fd, LOCK_EX | LOCK_NB) == 0 && fs_is_named(one->fd, one->path, false) &&
        placeholder_has_text(one->fd, one->text))
      (void)unlink(one->path);
    (void)close(one->fd);
    free(one->path);
    free(one);
  }
}
