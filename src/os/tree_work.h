/* tree_work.h - says whether a program and what it has started do anything, though they say
 * nothing: whether they used the processor, wrote something, or began or ended processes.
 *
 *   tree_work_measure(pid, &before); ... a while later ... tree_work_measure(pid, &now);
 *   if (tree_work_idles(&before, &now, ms)) ...
 *
 * Read from /proc: a tree that cannot be seen there (of a container, or gone) never idles. */
#ifndef SEGUE_OS_TREE_WORK_H
#define SEGUE_OS_TREE_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_work {
  unsigned processes;  /* 0: nothing is known */
  uint64_t cpu_ms;     /* of all, and of children that they have waited for */
  uint64_t written;    /* bytes, to whatever */
  uint64_t identities; /* a sum of their numbers */
  unsigned stopped;    /* of them, held by SIGSTOP or a debugger */
};

void tree_work_measure(pid_t root, struct tree_work *out);
/* Returns true if nothing happened in these `ms` but what any client's own timers do. */
bool tree_work_idles(const struct tree_work *before, const struct tree_work *now, uint64_t ms);

#endif
