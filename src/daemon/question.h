/* question.h - answers a question once the session that served it is over: for POST /v1/judge with
 * the judgment, for /v1/ask with the value, and with the id of the session, whose log stays. */
#ifndef SEGUE_DAEMON_QUESTION_H
#define SEGUE_DAEMON_QUESTION_H

#include "daemon/reading.h"
#include "daemon/sessions.h"

/* Reads the entry's log, which has ended or stopped, in the pool, and answers. judges: false if a
 * value was asked for. */
void question_take(struct readings *rs, struct server_request *r, const struct daemon_entry *e,
                   bool judges);

#endif
