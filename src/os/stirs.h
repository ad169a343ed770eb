/* stirs.h - what changes in a folder, told by the kernel (inotify), so that who has read it once
 * need not read it again.
 *
 *   stirs_begin(&s, path)          false: here the kernel does not tell of all changes
 *   stirs_take(&s, each, ctx)      false: some may have been lost, and it has ended
 *   stirs_end(&s)                  accepts a zeroed one
 *
 * Begin first and read the folder then: no change is missed. A file counts as changed once for each
 * write that has returned. Network and stacked file systems tell only of what was done through
 * them, so they are refused. Memory is the kernel's, and bounded by it. */
#ifndef SEGUE_OS_STIRS_H
#define SEGUE_OS_STIRS_H

#include <stdbool.h>
#include <sys/types.h>

struct stirs {
  bool on;
  int fd;
  dev_t dev; /* of the folder */
  ino_t ino;
  const char *path; /* borrowed */
};

enum stir { STIR_CAME, STIR_WENT, STIR_CHANGED };

bool stirs_begin(struct stirs *s, const char *path);
/* Takes all that was told so far, in order. */
bool stirs_take(struct stirs *s, void (*each)(void *ctx, const char *name, enum stir what),
                void *ctx);
void stirs_end(struct stirs *s);

#endif
