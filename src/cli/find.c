#include "cli/find.h"

#include "daemon/client.h"
#include "host/paths.h"
#include "store/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A daemon may keep its logs elsewhere. */
static bool ask_daemon(const char *word, char path[FIND_PATH_BYTES]) {
  struct client_reply reply = {0};
  struct err ignored;
  char request[80];
  if (strlen(word) > 36 || strspn(word, "0123456789abcdef-") != strlen(word))
    return false;
  (void)snprintf(request, sizeof request, "/v1/sessions/%s", word);
  bool ok = client_ask(NULL, "GET", request, NULL, &reply, &ignored) && reply.status == 200;
  const char *log = json_string_value(json_object_get(reply.value, "log"));
  ok = ok && log != NULL && strlen(log) < FIND_PATH_BYTES;
  if (ok)
    (void)snprintf(path, FIND_PATH_BYTES, "%s", log);
  client_reply_deinit(&reply);
  return ok;
}

bool find_session(const char *word, const char *logs, char path[FIND_PATH_BYTES], struct err *err) {
  char dir[PATHS_BYTES];
  if (strcmp(word, "last") == 0 && logs == NULL && getenv("SEGUE_LOGS") == NULL &&
      paths_read_last(path))
    return true;
  if (!paths_logs(logs, dir, err))
    return false;
  return store_find(dir, word, path, FIND_PATH_BYTES, err) ||
         (logs == NULL && err->code == ERR_NOT_FOUND && ask_daemon(word, path));
}

const char *find_shown(const char *path) {
  char cwd[PATHS_BYTES];
  if (getcwd(cwd, sizeof cwd) == NULL)
    return path;
  size_t n = strlen(cwd);
  return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}
