#include "cli/find.h"

#include "host/paths.h"
#include "store/find.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool find_session(const char *word, const char *logs, char path[FIND_PATH_BYTES], struct err *err) {
  char dir[PATHS_BYTES];
  if (strcmp(word, "last") == 0 && logs == NULL && getenv("SEGUE_LOGS") == NULL &&
      paths_read_last(path))
    return true;
  return paths_logs(logs, dir, err) && store_find(dir, word, path, FIND_PATH_BYTES, err);
}

const char *find_shown(const char *path) {
  char cwd[PATHS_BYTES];
  if (getcwd(cwd, sizeof cwd) == NULL)
    return path;
  size_t n = strlen(cwd);
  return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}
