/* turns.h - prints the line of one turn and the closing line, for `run`, `resume` and `show`. */
#ifndef SEGUE_CLI_TURNS_H
#define SEGUE_CLI_TURNS_H

#include "audit/summary.h"

#include <stdbool.h>
#include <stdio.h>

/* Says how lines are drawn. */
struct turns_look {
  bool colours;
  bool terminal; /* otherwise a pipe: no width matters */
  int columns;
  int names; /* width of movements' names in columns, where there is room */
};
/* Looks at that descriptor; names is filled in when they are known (summary.names). */
struct turns_look turns_look_of(int fd);

/* Prints the line with duration, tokens and cost at its end; on a terminal without room they get a
 * line of their own. */
void turns_print(FILE *out, const struct turn_line *line, const struct turns_look *look);
/* Prints "COMPLETE  5 turns  when 2 ...  path", and why it stopped, if it did. */
void turns_print_end(FILE *out, const struct summary *s, const char *path,
                     const struct turns_look *look);
/* Appends the live line of a turn on a terminal: spinner, movement, what runs, tool, tokens, how
 * long, and how long ago it was heard. No newline. now_ms: real time. */
void turns_live(struct buf *out, const struct turn_line *line, unsigned tick, int64_t now_ms,
                const struct turns_look *look);
/* Returns the exit status for the session's status. */
int turns_status(const struct summary *s);

#endif
