/* Finds other names of hidden folders in the list of mounts. */
#include "os/sandbox_mounts.h"

#include "base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct identity {
  dev_t device;
  ino_t inode;
};

struct identities {
  struct identity *items;
  size_t n, room;
};

static bool identity_of(const char *path, struct identity *out) {
  struct stat st;
  int fd = open(path, O_PATH | O_CLOEXEC);
  bool ok = fd >= 0 && fstat(fd, &st) == 0;
  if (fd >= 0)
    (void)close(fd);
  if (ok)
    *out = (struct identity){st.st_dev, st.st_ino};
  return ok;
}

static bool identities_have(const struct identities *set, struct identity one) {
  for (size_t i = 0; i < set->n; i++)
    if (set->items[i].device == one.device && set->items[i].inode == one.inode)
      return true;
  return false;
}

/* Adds a path and each folder above it. */
static void identities_add(struct identities *set, const char *hidden) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s", hidden) >= (int)sizeof path)
    return;
  for (;;) {
    struct identity one;
    if (identity_of(path, &one)) {
      if (identities_have(set, one))
        return; /* and everything above is there, too */
      if (set->n == set->room) {
        set->room = set->room ? set->room * 2 : 32;
        set->items = xrealloc(set->items, set->room * sizeof *set->items);
      }
      set->items[set->n++] = one;
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL || path[1] == '\0')
      return;
    slash[slash == path] = '\0';
  }
}

/* Returns true if one of `hides` is known by the name `path`, or by a name below it. */
static bool is_first_name(const char *const *hides, const char *path) {
  size_t n = strcmp(path, "/") == 0 ? 0 : strlen(path);
  for (size_t i = 0; hides[i] != NULL; i++)
    if (strncmp(hides[i], path, n) == 0 && (hides[i][n] == '/' || hides[i][n] == '\0'))
      return true;
  return false;
}

/* Decodes \040 and the like: the kernel escapes space, tab, newline and backslash. */
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; to++) {
    if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
      *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = '\0';
}

static bool on_known_device(const struct identities *set, const char *device) {
  unsigned number[2];
  if (sscanf(device, "%u:%u", &number[0], &number[1]) != 2)
    return false;
  for (size_t i = 0; i < set->n; i++)
    if (set->items[i].device == makedev(number[0], number[1]))
      return true;
  return false;
}

/* Reads a line "36 35 98:0 /root /where ...". Only mounts of a hidden path's own device are looked
 * at, so that a dead server is not asked. */
static void look_at_mount(const struct identities *set, const char *const *hides, char *line,
                          void (*each)(void *ctx, const char *path), void *ctx) {
  char *rest = NULL, *field = strtok_r(line, " ", &rest), *device = NULL;
  for (int i = 0; field != NULL && i < 4; i++) {
    if (i == 2)
      device = field;
    field = strtok_r(NULL, " ", &rest);
  }
  if (field == NULL || device == NULL || !on_known_device(set, device))
    return;
  struct identity one;
  unescape(field);
  if (!is_first_name(hides, field) && identity_of(field, &one) && identities_have(set, one))
    each(ctx, field);
}

void sandbox_other_names(const char *const *hides, void (*each)(void *ctx, const char *path),
                         void *ctx) {
  struct identities set = {0};
  char *line = NULL;
  size_t room = 0;
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  for (size_t i = 0; mounts != NULL && hides[i] != NULL; i++)
    identities_add(&set, hides[i]);
  while (mounts != NULL && getline(&line, &room, mounts) > 0)
    look_at_mount(&set, hides, line, each, ctx);
  if (mounts != NULL)
    (void)fclose(mounts);
  free(line);
  free(set.items);
}
