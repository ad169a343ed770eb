/* whole_reply.h - reads a judge's reply as a single answer rather than as a text to search.
 *
 *   struct whole_reply s;
 *   whole_reply_read(&s, reply, &check, report)      report.p NULL: there is no text to echo
 *   ... s.outcome, s.value, s.places ...
 *   whole_reply_deinit(&s)
 *
 * Only a reply that is one value and nothing else is an answer. Apart from it may stand white
 * space, reasoning sections, and at most WHOLE_REPLY_WRAPPERS of: one fence, one element such as
 * <tool_call>, a list of one item, a tool call's arguments, JSON in a string. A value that stands
 * in the report too is an echo; one with a blank text, or the placeholder of a form (<why>, ...),
 * is no answer. In any other reply the extractor looks for what could be one, to say where it is:
 * text around a value is never read for its meaning.
 *
 * check->is_key must be there. Only a value that passes as a whole is valid. Nothing is repaired.
 * Offsets and lengths are bytes of the reply. Work is linear in both texts. */
#ifndef SEGUE_EXTRACT_WHOLE_REPLY_H
#define SEGUE_EXTRACT_WHOLE_REPLY_H

#include "base/str.h"
#include "extract/extract.h"

enum { WHOLE_REPLY_WRAPPERS = 4 };

enum whole_reply_outcome {
  WHOLE_REPLY_VALID,
  WHOLE_REPLY_REFUSED,     /* the one answer does not pass: s.value, to name the errors */
  WHOLE_REPLY_AMBIGUOUS,   /* two that differ: both in s.places; or one with a key given twice */
  WHOLE_REPLY_WORDS,       /* a value among words */
  WHOLE_REPLY_ECHO,        /* the value stands in the report too */
  WHOLE_REPLY_PLACEHOLDER, /* a form that nobody filled in */
  WHOLE_REPLY_BROKEN,      /* JSON that is broken, cut off, or a draft before such */
  WHOLE_REPLY_NOTHING      /* no JSON that could be an answer */
};

struct whole_reply_place {
  json_t *value; /* owned */
  size_t offset, length;
};

struct whole_reply {
  enum whole_reply_outcome outcome;
  json_t *value;            /* owned; of VALID and REFUSED, else NULL */
  enum extract_stage stage; /* where value was found */
  /* The pieces that the outcome is about, in the order of the reply: one, or the two of AMBIGUOUS;
   * none if no sound value was found. */
  struct whole_reply_place places[2];
  size_t place_count;
  bool alone;             /* the reply is that value and nothing else */
  bool duplicate_key;     /* a key of the answer was given twice */
  enum extract_code code; /* in BROKEN and NOTHING: what the extractor says */
};

void whole_reply_read(struct whole_reply *s, struct str reply, const struct extract_check *check,
                      struct str report);
void whole_reply_deinit(struct whole_reply *s);

/* Returns whether a text of the object is blank, or the words of a form such as "<why>". */
bool whole_reply_placeholder(const json_t *value);

/* --- a reply that says nothing --- */

/* Reasoning (<think> and its relatives, see extract/extract.c) at the start that never ends counts
 * as reasoning alone. Work is linear in the text's length. */
bool extract_says_nothing(struct str text);

#endif
