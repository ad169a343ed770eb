/* live.h - draws the live part of the terminal while a session runs: a line for each open turn,
 * redrawn in place, and with -v the agent's words above them.
 *
 *   live_init(&live, &look, verbose)   off unless look is a terminal
 *   live_draw(&live, &summary)         again and again
 *   live_text(&live, ...)              a piece of an answer came
 *   live_clear(&live)                  before anything else is printed there
 *   live_deinit(&live) */
#ifndef SEGUE_CLI_LIVE_H
#define SEGUE_CLI_LIVE_H

#include "cli/turns.h"

struct live {
  const struct turns_look *look; /* borrowed */
  bool on, verbose;
  int rows; /* drawn; the cursor is in the last one */
  unsigned tick;
  struct buf words; /* words without a line end yet */
  long call;        /* the call that they are from */
};

void live_init(struct live *live, const struct turns_look *look, bool verbose);
void live_deinit(struct live *live);
void live_clear(struct live *live);
void live_draw(struct live *live, const struct summary *s);
/* Takes an agent's words as they come: whole lines are printed, the last one is drawn while it
 * grows. Does nothing without -v. */
void live_text(struct live *live, long call, struct str text);
/* Notes that the call has no more words: an unfinished line is printed. */
void live_text_over(struct live *live);

#endif
