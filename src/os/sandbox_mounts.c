/* Finds other names of hidden folders in the list of mounts.
 *
 * DESIGN. The list says of each mount which path of its file system is seen where. So a hidden path
 * is first turned into such a path, by the mount that it lies in; then each other mount of the same
 * file system is compared with it, by name alone. No mount is looked at, so a dead server is not
 * asked, and it does not matter whether files report the device of their mount (btrfs). */
#include "os/sandbox_mounts.h"

#include "base/log.h"
#include "os/fs.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mount {
  char *device, *root, *point; /* "8:1", the path within its file system, where that is seen */
};

struct mount_list {
  struct mount *items;
  size_t n, room;
};

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

/* Takes a line "36 35 98:0 /root /where ...". */
static void mount_list_add(struct mount_list *list, char *line) {
  enum { DEVICE = 2, ROOT, POINT, FIELDS };
  char *fields[FIELDS], *rest = NULL;
  fields[0] = strtok_r(line, " ", &rest);
  for (size_t i = 1; i < FIELDS; i++)
    fields[i] = fields[i - 1] ? strtok_r(NULL, " ", &rest) : NULL;
  if (fields[POINT] == NULL)
    return;
  unescape(fields[ROOT]);
  unescape(fields[POINT]);
  list->items = xgrow(list->items, &list->room, list->n + 1, sizeof *list->items);
  list->items[list->n++] =
      (struct mount){xstrdup(fields[DEVICE]), xstrdup(fields[ROOT]), xstrdup(fields[POINT])};
}

/* Writes the path without symbolic links, also of one whose end does not exist yet. */
static bool path_resolve(const char *path, char real[PATH_MAX]) {
  char start[PATH_MAX];
  if (snprintf(start, sizeof start, "%s", path) >= (int)sizeof start)
    return false;
  while (realpath(start, real) == NULL) {
    char *slash = strrchr(start, '/');
    if (slash == NULL || slash == start)
      return false;
    *slash = '\0';
  }
  size_t n = strcmp(real, "/") == 0 ? 0 : strlen(real);
  return snprintf(real + n, PATH_MAX - n, "%s", path + strlen(start)) < (int)(PATH_MAX - n);
}

/* Finds the mount that a path is seen through: the innermost one, and of those the last. */
static const struct mount *mount_of(const struct mount_list *list, const char *path) {
  const struct mount *found = NULL;
  for (size_t i = 0; i < list->n; i++) {
    const struct mount *m = &list->items[i];
    if (fs_below(path, m->point) != NULL &&
        (found == NULL || strlen(m->point) >= strlen(found->point)))
      found = m;
  }
  return found;
}

/* Returns true if one of `hides` is known by the name `path` or by a name below it, or hides it. */
static bool is_first_name(const char *const *hides, const char *path) {
  for (size_t i = 0; hides[i] != NULL; i++)
    if (fs_below(hides[i], path) != NULL || fs_below(path, hides[i]) != NULL)
      return true;
  return false;
}

/* Writes what the mounts of its file system call a hidden path. NULL: nothing is known of it. */
static const struct mount *hidden_within(const struct mount_list *list, const char *hidden,
                                         char within[PATH_MAX]) {
  char real[PATH_MAX];
  if (!path_resolve(hidden, real))
    return NULL;
  const struct mount *m = mount_of(list, real);
  if (m == NULL)
    return NULL;
  const char *root = strcmp(m->root, "/") == 0 ? "" : m->root;
  int n = snprintf(within, PATH_MAX, "%s%s", root, fs_below(real, m->point));
  return n < PATH_MAX ? m : NULL;
}

void sandbox_other_names(const char *const *hides, void (*each)(void *ctx, const char *path),
                         void *ctx) {
  struct mount_list list = {0};
  char *line = NULL;
  size_t room = 0;
  FILE *file = fopen("/proc/self/mountinfo", "re");
  while (file != NULL && getline(&line, &room, file) > 0)
    mount_list_add(&list, line);
  if (file != NULL)
    (void)fclose(file);
  free(line);
  bool *told = xcalloc(list.n + 1, sizeof *told);
  char within[PATH_MAX];
  for (size_t i = 0; hides[i] != NULL; i++) {
    const struct mount *own = hidden_within(&list, hides[i], within);
    for (size_t k = 0; own != NULL && k < list.n; k++) {
      const struct mount *m = &list.items[k];
      if (told[k] || strcmp(m->device, own->device) != 0 ||
          (fs_below(within, m->root) == NULL && fs_below(m->root, within) == NULL) ||
          is_first_name(hides, m->point))
        continue;
      told[k] = true;
      each(ctx, m->point);
    }
  }
  free(told);
  for (size_t i = 0; i < list.n; i++) {
    free(list.items[i].device);
    free(list.items[i].root);
    free(list.items[i].point);
  }
  free(list.items);
}
