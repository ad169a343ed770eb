/* question.h - the answer to a question that a session was, when it is over: of POST /v1/judge the
 * judgment, of /v1/ask the value, with the session's id, under which its log stays. */
#ifndef SEGUE_DAEMON_QUESTION_H
#define SEGUE_DAEMON_QUESTION_H

#include "daemon/sessions.h"

/* Reads the entry's log, which has ended or stopped, and answers. judges: else a value was asked
 * for. */
void question_reply(struct server_request *r, const struct daemon_entry *e, bool judges);

#endif
