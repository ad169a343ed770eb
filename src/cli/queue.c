/* Asks those who have a queue about one session in it. */
#include "cli/queue.h"

#include "cli/cli.h"
#include "daemon/client.h"
#include "format/json_object.h"
#include "store/shared.h"
#include "store/store.h"

#include <stdio.h>

bool queue_ask_daemon(const char *socket, const char *session, char status[QUEUE_STATUS_BYTES],
                      struct buf *message) {
  struct client_reply reply = {0};
  struct err err;
  char path[80];
  (void)snprintf(path, sizeof path, "/v1/sessions/%.40s", session);
  bool ok = client_ask(socket, "GET", path, NULL, &reply, &err) && reply.status == 200;
  struct str word = json_view(json_object_get(reply.value, "status"));
  ok = ok && word.n > 0;
  if (ok) {
    (void)snprintf(status, QUEUE_STATUS_BYTES, "%s", word.p);
    buf_str(message, json_view(json_object_get(reply.value, "message")));
  }
  client_reply_deinit(&reply);
  return ok;
}

bool queue_why(const struct store *store, const char *session, struct buf *why) {
  struct err ignored;
  if (!store_is_address(store->where))
    return false;
  json_t *places = shared_places(store->where, &ignored);
  buf_str(why, json_view(json_object_get(json_object_get(places, session), "waits")));
  json_decref(places);
  return why->n > 0;
}

void queue_say(const char *what, const struct buf *why) {
  fprintf(stderr, "segue show: %s: ", what);
  cli_put_safe(stderr, buf_c(why));
  fputc('\n', stderr);
}
