/* classify.h - finds the class of an error from vendors' statuses and words, the same way for every
 * backend.
 *
 * Pure. Exit statuses do not count: clients exit with 0 after errors, or with 1 after any error. */
#ifndef SEGUE_PROVIDER_AGENT_CLASSIFY_H
#define SEGUE_PROVIDER_AGENT_CLASSIFY_H

#include "base/str.h"
#include "core/call.h"
#include "provider/words.h"

struct failure_said {         /* texts may be empty */
  enum error_class by_status; /* what the backend's status means; CLASS_NONE: it named none */
  struct str codes;           /* words of the error's fields, one a line */
  struct str message, param;  /* words for people; the parameter that it names */
};

struct meaning {
  enum error_class class;      /* CLASS_NONE: nothing is known */
  const struct words_row *row; /* by which it was found, or NULL */
  bool elsewhere; /* with bad_request: it names neither the prompt's length nor its content */
};

/* Classes an HTTP status; CLASS_NONE below 400. */
enum error_class classify_of_status(int status);
/* Classes a failure: by its words where they decide, then by its status, then by all its words. */
struct meaning classify_failure(const struct failure_said *failure);
/* Classes a message by its words alone. */
enum error_class classify_of_words(struct str text);
/* Finds when a failure passes, in its text where *wait_ms is not known yet (0), and makes a limit
 * of money that comes again. row: what decided its class, or NULL. */
void classify_wait(const struct words_row *row, struct str text, int64_t now_ms,
                   enum error_class *class, int64_t *wait_ms);
/* Completes the result of an agent's call: an answer that is the client's own report becomes an
 * error; a limit gets its time. now_ms: wall clock. */
void classify_settle(struct call_result *result, int64_t now_ms);
/* Returns the HTTP status that a message names ("unexpected status 401", "API Error: 403", "401 Bad
 * key"), or 0. */
int classify_status(struct str text);
/* Appends what the last line with `word` in a log (stderr) says: the unquoted value of the key
 * `error` if the line is logfmt (error=text, error="a text"), otherwise the line; nothing if no
 * line has the word. */
void classify_logged(struct str log, struct str word, struct buf *out);
#endif
