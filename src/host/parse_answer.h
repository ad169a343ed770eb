/* parse_answer.h - reads a person's answer to a question, from a request or from flags.
 *
 *   parsed_answer_parse(&said, body, says, &err)
 *       members of POST .../answer, .../approve, .../reject
 *   host_reply(session, &said.core, &err)
 *   parsed_answer_deinit(&said)                       accepts a zeroed one
 *
 * The answer counts as given by the user that this process runs as; `name` in the body is the name
 * that the person gives, such as the sender of a mail. */
#ifndef SEGUE_HOST_PARSE_ANSWER_H
#define SEGUE_HOST_PARSE_ANSWER_H

#include "core/answer.h"

struct parsed_answer {
  struct core_answer core; /* borrows from below */
  json_t *body, *by;
};

/* Reads a body. says: SAYS_TEXT for an answer of either kind. ERR_INVALID: the body is wrong. */
bool parsed_answer_parse(struct parsed_answer *said, const json_t *body, enum answer_says says,
                         struct err *err) MUST_CHECK;
void parsed_answer_deinit(struct parsed_answer *said);

#endif
