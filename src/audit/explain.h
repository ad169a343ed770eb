/* explain.h - explains one judgment in full, as plain text for people: every stage that was tried
 * or skipped, its calls, what was asked, the raw reply, what the extractor and the tag reader found
 * in it, the validator's errors, why the next stage was tried, and the verdict.
 *
 * It uses the log alone: prompts are rebuilt from their parts, and replies are read again with the
 * reader that judged. Texts from the log are made safe for a terminal. Section titles begin in the
 * first column, all other lines with a space.
 *
 *   read the whole log into a book with `places`, then
 *   explain_find(&book, "review#2", false, &found, &err)
 *   explain_turn(&book, found.turn, &opts, &out, &err)   appends to out */
#ifndef SEGUE_AUDIT_EXPLAIN_H
#define SEGUE_AUDIT_EXPLAIN_H

#include "audit/text_writer.h"
#include "audit/verified_reader.h"

struct explain_found {
  long turn;
  long run, runs; /* number of the movement's run, and how many it has */
};

/* Finds a turn by the name that segue show prints: MOVEMENT, "MOVEMENT 2" for an item, and its last
 * run (judged: its last one with a judgment) or #N. ERR_NOT_FOUND names what ran. */
bool explain_find(const struct verified_reader *book, const char *word, bool judged,
                  struct explain_found *found, struct err *err) MUST_CHECK;

struct explain_opts {
  bool full;      /* no text is cut */
  size_t columns; /* longer lines of texts are cut, unless full; 0: never */
  const struct text_writer_sink
      *sink; /* receives everything, uncut and raw, instead of `out`; or NULL */
};

bool explain_turn(const struct verified_reader *book, long turn, const struct explain_opts *opts,
                  struct buf *out, struct err *err) MUST_CHECK;

#endif
