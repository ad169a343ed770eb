/* Asks the daemon to do something to one session. */
#include "cli/session_post.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool session_post(const char *socket, const char *word, const char *action,
                  struct client_reply *reply, struct err *err) {
  assert(word != NULL);
  assert(action != NULL);
  char path[256];
  bool plain = strspn(word, "0123456789abcdef-") == strlen(word) || strcmp(word, "last") == 0;
  *reply = (struct client_reply){0};
  if (!plain || strlen(word) == 0 || strlen(word) > 36)
    return err_set(err, ERR_USAGE, "\"%.80s\" is not a session's id", word);
  (void)snprintf(path, sizeof path, "/v1/sessions/%s/%s", word, action);
  return client_ask(socket, "POST", path, NULL, reply, err) && !client_problem(reply, err);
}

const char *session_post_id(const struct client_reply *reply) {
  const char *id = json_string_value(json_object_get(reply->value, "id"));
  return id ? id : "";
}
