/* reach.h - finds the providers that a session of a workflow may call: for each movement that its
 * rules can lead to, who works there, who judges, who corrects values, and who takes over from
 * each. */
#ifndef SEGUE_HOST_REACH_H
#define SEGUE_HOST_REACH_H

#include "core/workflow.h"
#include "workflow/marks.h"

enum reach_role {
  REACH_WORK,
  REACH_JUDGE,
  REACH_VOTE, /* a panel's members: all are asked */
  REACH_CORRECT,
  REACH_ROLE_COUNT
};
const char *reach_role_name(enum reach_role role); /* work, judge, vote, correct */

enum { REACH_WHO_COUNT = 16 }; /* the first, and those after it; any more are left out */

struct reach_who {
  struct str provider; /* empty: nobody is chosen */
  struct str model;    /* may be empty */
};

struct reach_part { /* everything is borrowed from the workflow and the configuration */
  size_t movement;
  enum reach_role role;
  struct reach_who who[REACH_WHO_COUNT]; /* the first, then who takes over; or a panel's voters */
  size_t count;
  size_t needed;         /* how many of them must be able to answer */
  const json_t *options; /* options of their calls, by the movement; or NULL */
  const char *section;   /* where they are named: "", "judge." or "structured_output.reask." */
  bool chosen;           /* by a flag or the user's default, not by the file */
};

/* Visits each part. config: as session_start records it. reachable: see workflow_reachable.
 * Commands have no work part. */
void reach_each(const struct workflow *workflow, const json_t *config, const bool *reachable,
                void (*fn)(void *ctx, const struct reach_part *part), void *ctx);

#endif
