/* session_post.h - one request about one session of the daemon, for the commands that make it. */
#ifndef SEGUE_CLI_SESSION_POST_H
#define SEGUE_CLI_SESSION_POST_H

#include "daemon/client.h"

/* POST /v1/sessions/WORD/ACTION. socket: --socket or NULL. False: err says why, also what the
 * daemon said against it. Deinit the reply in any case. */
bool session_post(const char *socket, const char *word, const char *action,
                  struct client_reply *reply, struct err *err) MUST_CHECK;
/* The id in its answer, "" for none. */
const char *session_post_id(const struct client_reply *reply);

#endif
