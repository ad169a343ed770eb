/* turns.h - the line of one turn and the closing line, as `run`, `resume` and `show` print them. */
#ifndef SEGUE_CLI_TURNS_H
#define SEGUE_CLI_TURNS_H

#include "audit/summary.h"

#include <stdbool.h>
#include <stdio.h>

void turns_print(FILE *out, const struct turn_line *line, bool colours, int columns);
/* "COMPLETE  5 turns  when 2 ...  path" and why it stopped, if it did. */
void turns_print_end(FILE *out, const struct summary *s, const char *path, bool colours,
                     int columns);
/* The live line of a terminal: spinner, what runs, elapsed. No newline. */
void turns_live(struct buf *out, const struct summary *s, unsigned tick, double seconds,
                bool colours, int columns);
/* "8.0 s", "12 min 3 s", "2 h 5 min". Appends. */
void turns_put_time(struct buf *out, int64_t ms);
/* The exit status for how the session stands. */
int turns_status(const struct summary *s);

#endif
