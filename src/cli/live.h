/* live.h - what stands below the finished lines of a terminal while a session runs: a line for each
 * open turn, drawn anew in place; and with -v the agent's words above them.
 *
 *   live_init(&live, &look, verbose)   off where look is no terminal
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
  int rows; /* drawn; the cursor stands in the last one */
  unsigned tick;
  struct buf words; /* that have no line end yet */
  long call;        /* whose they are */
};

void live_init(struct live *live, const struct turns_look *look, bool verbose);
void live_deinit(struct live *live);
void live_clear(struct live *live);
void live_draw(struct live *live, const struct summary *s);
/* Words of an agent, as they come: whole lines are printed, the last one is drawn while it grows.
 * Nothing without -v. */
void live_text(struct live *live, long call, struct str text);
/* No more words of that call: what has no line end is printed. */
void live_text_over(struct live *live);

#endif
