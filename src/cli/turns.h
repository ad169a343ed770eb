/* turns.h - prints the line of one turn and the closing line, for `run`, `resume` and `show`. */
#ifndef SEGUE_CLI_TURNS_H
#define SEGUE_CLI_TURNS_H

#include "audit/turn_lines.h"

#include <stdbool.h>
#include <stdio.h>

/* Says how lines are drawn. */
struct turns_look {
  bool colours;
  bool terminal; /* otherwise a pipe: no width matters */
  int columns;
  int names; /* width of movements' names in columns, where there is room */
  bool own;  /* the session runs in this process: Ctrl-C stops it */
};
#define LOOK_HOW_TO_LEAVE " (Ctrl-C stops, segue resume goes on)"
/* Looks at that descriptor; names is filled in when they are known (summary.names). */
struct turns_look turns_look_of(int fd);

/* Prints the line with duration, tokens and cost at its end; on a terminal without room they get a
 * line of their own. */
void turns_print(FILE *out, const struct turn_line *line, const struct turns_look *look);
/* Prints the line that turn_lines_feed gave; above the first of a group's children the group's
 * name. */
void turns_print_next(FILE *out, const struct turn_lines *s, const struct turn_line *line,
                      const struct turns_look *look);
/* Prints "COMPLETE  5 turns  when 2 ...  path", and why it stopped, if it did. */
void turns_print_end(FILE *out, const struct turn_lines *s, const char *path,
                     const struct turns_look *look);
/* Returns the exit status for the session's status. */
int turns_status(const struct turn_lines *s);

/* Draws the live part of the terminal while a session runs: a line for each open turn, redrawn in
 * place, and with -v the agent's words above them.
 *
 *   live_init(&live, &look, verbose)   off unless look is a terminal
 *   live_draw(&live, &summary)         again and again
 *   live_text(&live, ...)              a piece of an answer came
 *   live_clear(&live)                  before anything else is printed there
 *   live_deinit(&live) */
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
void live_draw(struct live *live, const struct turn_lines *s);
/* Takes an agent's words as they come: whole lines are printed, the last one is drawn while it
 * grows. Does nothing without -v. */
void live_text(struct live *live, long call, struct str text);
/* Notes that the call has no more words: an unfinished line is printed. */
void live_text_over(struct live *live);

#endif
