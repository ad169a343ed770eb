/* Finds the log that a word on the command line means. */
#include "cli/resolve_id.h"

#include "base/file.h"
#include "base/utf8.h"
#include "daemon/client.h"
#include "host/paths.h"
#include "host/worktree_changes.h"
#include "os/clock.h"
#include "store/filter.h"
#include "store/summary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool resolve_id_since(const char *text, int64_t *since_ms, struct err *err) {
  struct err why;
  return text == NULL || filter_since(text, clock_real_ms(), since_ms, &why) ||
         err_set(err, why.code, "--%s", why.text);
}

/* Asks the daemon, which may keep its logs elsewhere. */
static bool resolve_id_ask_daemon(const char *socket, const char *word, struct store_ref *ref,
                                  struct err *err) {
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  char request[80];
  bool is_id = strlen(word) <= 36 && strspn(word, "0123456789abcdef-") == strlen(word);
  if (!is_id && strcmp(word, "last") != 0)
    return err_set(err, ERR_NOT_FOUND, "\"%.80s\" is not a session's id", word);
  print_into(request, sizeof request, "/v1/sessions/%s", word);
  bool ok = client_ask(socket, "GET", request, NULL, &reply, err) && !client_problem(&reply, err);
  const char *log = json_string_value(json_object_get(reply.value, "log"));
  return ok && log != NULL && store_ref_named(log, ref);
}

bool resolve_id_store(const char *logs, struct store *store, struct err *err) {
  char where[PATHS_BYTES];
  if (!paths_logs(logs, where, err))
    return false;
  store_at(store, where);
  return true;
}

/* Finds the session that was started last, in a project or of all (NULL), in whatever store. */
static bool noted_last(const char *project, struct store_ref *ref) {
  char name[PATHS_BYTES];
  return paths_read_last(project, name) && store_ref_named(name, ref) && store_is_there(ref);
}

bool resolve_id_session(const char *word, const char *logs, const char *socket,
                        struct store_ref *ref, struct err *err) {
  assert(word != NULL);
  assert(ref != NULL);
  struct store store;
  struct err ignored;
  if (socket != NULL)
    return resolve_id_ask_daemon(socket, word, ref, err);
  if (strcmp(word, "last") == 0 && logs == NULL && getenv("SEGUE_LOGS") == NULL) {
    char project[PATHS_BYTES];
    paths_project(".", project);
    if (noted_last(project, ref))
      return true;
    if (noted_last(NULL, ref)) {
      char id[STORE_ID_BYTES];
      store_ref_id(ref, id);
      return err_set(err, ERR_NOT_FOUND,
                     "no session of this project (%.300s) was started here; the last one of all is "
                     "%.40s: name it by its id, or use --logs",
                     project, id);
    }
  }
  if (!resolve_id_store(logs, &store, err))
    return false;
  return store_find(&store, word, ref, err) || (logs == NULL && err->code == ERR_NOT_FOUND &&
                                                resolve_id_ask_daemon(NULL, word, ref, &ignored));
}

bool resolve_id_sure(const struct cli_args *args, const struct store_ref *ref, struct err *err) {
  enum { TASK_BYTES = 60 };
  AUTO(summary_deinit) struct summary b = {0};
  AUTO(trees_deinit) struct trees t = {0};
  struct err ignored;
  char here[PATHS_BYTES], there[PATHS_BYTES];
  if (!summary_read(&b, ref, &ignored) || !trees_read(&t, ref, &ignored))
    return true; /* the command itself says what is wrong */
  size_t n = strlen(t.task), most = n > TASK_BYTES ? utf8_floor(t.task, TASK_BYTES) : n;
  if (!cli_flag(args, "json") && !cli_flag(args, "quiet"))
    cli_say(stderr, "%s  %s: %.*s%s  in %s\n", args->command->name, b.workflow, (int)most, t.task,
            most < n ? "..." : "", t.cwd);
  paths_project(".", here);
  paths_project(t.cwd, there);
  return strcmp(here, there) == 0 || cli_flag(args, "yes") ||
         cli_asks("this session is another folder's: go on?") != CLI_SAID_NO ||
         err_set(err, ERR_USAGE, "nothing was done");
}

bool resolve_id_is_store(const char *word) {
  return store_is_address(word) ? strchr(word, '#') == NULL : file_is_folder(word);
}

static bool resolve_id_take_logs(const struct store *store, const struct resolve_id_each *each,
                                 struct err *err) {
  return (each->store == NULL || each->store(each->ctx, store, err)) &&
         store_each(store, each->ctx, each->log, err);
}

bool resolve_id_take(const char *word, const char *logs, const struct resolve_id_each *each,
                     struct err *err) {
  struct store_ref ref;
  struct store store;
  if (resolve_id_is_store(word)) {
    store_at(&store, word);
    return resolve_id_take_logs(&store, each, err);
  }
  if (!resolve_id_session(word, logs, NULL, &ref, err))
    return false;
  store_of(&ref, &store);
  if (each->store != NULL && !each->store(each->ctx, &store, err))
    return false;
  each->log(each->ctx, &ref);
  return true;
}

bool resolve_id_take_all(char *const *words, size_t count, const char *logs,
                         const struct resolve_id_each *each, struct err *err) {
  struct store store;
  for (size_t i = 0; i < count; i++)
    if (!resolve_id_take(words[i], logs, each, err))
      return false;
  if (count > 0)
    return true;
  if (!resolve_id_store(logs, &store, err))
    return false;
  return (logs == NULL && !store_exists(&store)) || resolve_id_take_logs(&store, each, err);
}

const char *resolve_id_shown(const char *path) {
  char cwd[PATHS_BYTES];
  if (getcwd(cwd, sizeof cwd) == NULL)
    return path;
  size_t n = strlen(cwd);
  return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

const char *resolve_id_word_for(const char *path, char id[STORE_ID_BYTES]) {
  enum { SHORT_ID_BYTES = 18 };
  char where[PATHS_BYTES];
  struct store_ref ref;
  struct store store;
  struct err ignored;
  if (!store_ref_named(path, &ref) || !paths_logs(NULL, where, &ignored))
    return resolve_id_shown(path);
  store_of(&ref, &store);
  store_ref_id(&ref, id);
  if (id[0] == '\0' || strcmp(store.where, where) != 0)
    return resolve_id_shown(path);
  id[SHORT_ID_BYTES] = '\0';
  return id;
}
