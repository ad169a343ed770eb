/* linediff.h - how many lines a change added and removed, and which.
 *
 *   linediff_count(before, after, &added, &removed)
 *   lines = linediff_lines(before, after, context, &count)     free() it; it borrows the texts */
#ifndef SEGUE_GIT_LINEDIFF_H
#define SEGUE_GIT_LINEDIFF_H

#include "base/str.h"

/* Counts by the smallest edit script (Myers, "An O(ND) difference algorithm", 1986). If that takes
 * too much work, everything between the common head and tail counts as changed. */
void linediff_count(struct str before, struct str after, long *added, long *removed);

struct linediff_line {
  char sign;       /* ' ' both have it, '-' and '+' one has it, '@' `count` of both are left out */
  struct str text; /* without its newline */
  long count;
};

/* Finds the lines that differ, with `context` common lines around them. The same bound of work. */
struct linediff_line *linediff_lines(struct str before, struct str after, long context,
                                     size_t *count);

#endif
