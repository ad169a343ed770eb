#include "cli/find.h"

#include "daemon/client.h"
#include "host/paths.h"
#include "store/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A daemon may keep its logs elsewhere. */
static bool ask_daemon(const char *socket, const char *word, char path[FIND_PATH_BYTES],
                       struct err *err) {
  struct client_reply reply = {0};
  char request[80];
  bool is_id = strlen(word) <= 36 && strspn(word, "0123456789abcdef-") == strlen(word);
  if (!is_id && strcmp(word, "last") != 0)
    return err_set(err, ERR_NOT_FOUND, "\"%.80s\" is not a session's id", word);
  (void)snprintf(request, sizeof request, "/v1/sessions/%s", word);
  bool ok = client_ask(socket, "GET", request, NULL, &reply, err) && !client_problem(&reply, err);
  const char *log = json_string_value(json_object_get(reply.value, "log"));
  ok = ok && log != NULL && strlen(log) < FIND_PATH_BYTES;
  if (ok)
    (void)snprintf(path, FIND_PATH_BYTES, "%s", log);
  client_reply_deinit(&reply);
  return ok;
}

bool find_session(const char *word, const char *logs, const char *socket,
                  char path[FIND_PATH_BYTES], struct err *err) {
  char dir[PATHS_BYTES];
  struct err ignored;
  if (socket != NULL)
    return ask_daemon(socket, word, path, err);
  if (strcmp(word, "last") == 0 && logs == NULL && getenv("SEGUE_LOGS") == NULL &&
      paths_read_last(path))
    return true;
  if (!paths_logs(logs, dir, err))
    return false;
  return store_find(dir, word, path, FIND_PATH_BYTES, err) ||
         (logs == NULL && err->code == ERR_NOT_FOUND && ask_daemon(NULL, word, path, &ignored));
}

const char *find_shown(const char *path) {
  char cwd[PATHS_BYTES];
  if (getcwd(cwd, sizeof cwd) == NULL)
    return path;
  size_t n = strlen(cwd);
  return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}
