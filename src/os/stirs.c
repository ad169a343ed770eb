/* Asks the kernel what changed in a folder. */
#include "os/stirs.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

static const uint32_t asked = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                              IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/* Returns true for file systems that only this machine can change, and only through the kernel that
 * tells of it. */
static bool stirs_are_told(const char *path) {
  static const unsigned long good[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                       TMPFS_MAGIC, F2FS_SUPER_MAGIC};
  struct statfs fs;
  if (statfs(path, &fs) != 0)
    return false;
  for (size_t i = 0; i < ARRAY_LEN(good); i++)
    if ((unsigned long)fs.f_type == good[i])
      return true;
  return false;
}

bool stirs_begin(struct stirs *s, const char *path) {
  struct stat st;
  *s = (struct stirs){.path = path};
  if (!stirs_are_told(path))
    return false;
  s->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  s->on = s->fd >= 0;
  if (s->on && inotify_add_watch(s->fd, path, asked) >= 0 && stat(path, &st) == 0) {
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    return true;
  }
  stirs_end(s);
  return false;
}

void stirs_end(struct stirs *s) {
  if (s->on)
    close(s->fd);
  *s = (struct stirs){0};
}

static enum stir stir_of(uint32_t mask) {
  if (mask & (IN_CREATE | IN_MOVED_TO))
    return STIR_CAME;
  return mask & (IN_DELETE | IN_MOVED_FROM) ? STIR_WENT : STIR_CHANGED;
}

/* Hands on the events of one read. Returns false if the folder itself went, or events were lost. */
static bool stirs_hand_on(const char *at, size_t n,
                          void (*each)(void *ctx, const char *name, enum stir what), void *ctx) {
  const uint32_t lost = IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF;
  struct inotify_event event;
  while (n >= sizeof event) {
    memcpy(&event, at, sizeof event);
    if (event.mask & lost)
      return false;
    if (event.len > 0)
      each(ctx, at + sizeof event, stir_of(event.mask));
    at += sizeof event + event.len;
    n -= sizeof event + event.len;
  }
  return true;
}

/* Returns true if the path is still that of the folder: one above it may have been renamed. */
static bool is_same_folder(const struct stirs *s) {
  struct stat st;
  return stat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

bool stirs_take(struct stirs *s, void (*each)(void *ctx, const char *name, enum stir what),
                void *ctx) {
  assert(s->on);
  bool ok = is_same_folder(s);
  char *chunk = xmalloc(CHUNK_BYTES);
  for (size_t taken = 0; ok;) {
    ssize_t n = read(s->fd, chunk, CHUNK_BYTES);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      ok = n < 0 && errno == EAGAIN;
      break;
    }
    taken += (size_t)n;
    ok = taken <= LIMIT_STIRS_BYTES && stirs_hand_on(chunk, (size_t)n, each, ctx);
  }
  free(chunk);
  if (!ok)
    stirs_end(s);
  return ok;
}
