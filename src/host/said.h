/* said.h - reads a person's answer to a question, from a request or from flags.
 *
 *   said_parse(&said, body, says, &err)      members of POST .../answer, .../approve, .../reject
 *   host_reply(session, &said.core, &err)
 *   said_deinit(&said)                       accepts a zeroed one
 *
 * The answer counts as given by the user that this process runs as; `name` in the body is the name
 * that the person gives, such as the sender of a mail. */
#ifndef SEGUE_HOST_SAID_H
#define SEGUE_HOST_SAID_H

#include "core/answer.h"

struct said {
  struct core_answer core; /* borrows from below */
  json_t *body, *by;
};

/* Reads a body. says: SAYS_TEXT for an answer of either kind. ERR_INVALID: the body is wrong. */
bool said_parse(struct said *said, const json_t *body, enum answer_says says,
                struct err *err) MUST_CHECK;
void said_deinit(struct said *said);

#endif
