/* linediff.h - how many lines a change added and removed. */
#ifndef SEGUE_TREE_LINEDIFF_H
#define SEGUE_TREE_LINEDIFF_H

#include "base/str.h"

/* Smallest edit script by lines (Myers, "An O(ND) difference algorithm", 1986); beyond a bound of
 * work everything between the common head and tail counts as changed. */
void linediff_count(struct str before, struct str after, long *added, long *removed);

#endif
