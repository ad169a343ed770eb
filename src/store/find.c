#include "store/find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_log(const char *name) {
  size_t n = strlen(name);
  return n == 36 + 7 && strcmp(name + 36, ".ndjson") == 0;
}

/* No session's id begins with it: then it is the name of a file here, if there is one. */
static bool is_file(const char *word, char *out, size_t out_bytes) {
  struct stat st;
  if (strcmp(word, "last") == 0 || stat(word, &st) != 0 || !S_ISREG(st.st_mode))
    return false;
  (void)snprintf(out, out_bytes, "%s", word);
  return true;
}

bool store_find(const char *dir, const char *word, char *out, size_t out_bytes, struct err *err) {
  char best[64] = "";
  int matches = 0;
  bool last = strcmp(word, "last") == 0;
  struct stat st;
  if (strchr(word, '/') != NULL ||
      (strlen(word) > 7 && strcmp(word + strlen(word) - 7, ".ndjson") == 0)) {
    if (stat(word, &st) != 0)
      return err_set_errno(err, errno, "cannot open %s", word);
    (void)snprintf(out, out_bytes, "%s", word);
    return true;
  }
  DIR *d = opendir(dir);
  if (d == NULL && is_file(word, out, out_bytes))
    return true;
  if (d == NULL)
    return err_set_errno(err, errno, "no sessions: cannot read the log folder %s", dir);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (!is_log(e->d_name) || fstatat(dirfd(d), e->d_name, &st, 0) != 0 || st.st_size == 0)
      continue; /* an empty log is a session that had not begun */
    if (last ? strcmp(e->d_name, best) > 0 : strncmp(e->d_name, word, strlen(word)) == 0) {
      (void)snprintf(best, sizeof best, "%.43s", e->d_name);
      matches++;
    }
  }
  closedir(d);
  if (matches == 0 && last)
    return err_set(err, ERR_NOT_FOUND, "there is no session in %s", dir);
  if (matches == 0 && is_file(word, out, out_bytes))
    return true;
  if (matches == 0)
    return err_set(err, ERR_NOT_FOUND, "there is no session in %s whose id begins with \"%s\"", dir,
                   word);
  if (!last && matches > 1)
    return err_set(err, ERR_INVALID, "%d sessions in %s begin with \"%s\": write more of the id",
                   matches, dir, word);
  (void)snprintf(out, out_bytes, "%s/%s", dir, best);
  return true;
}
