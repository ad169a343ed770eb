/* reachable.h - finds the providers that a session of a workflow may call: for each movement that
 * its rules can lead to, who works there, who judges, who corrects values, and who takes over from
 * each. */
#ifndef SEGUE_HOST_REACHABLE_H
#define SEGUE_HOST_REACHABLE_H

#include "core/workflow.h"
#include "workflow/source_map.h"

enum reachable_role {
  REACHABLE_WORK,
  REACHABLE_JUDGE,
  REACHABLE_VOTE, /* a panel's members: all are asked */
  REACHABLE_CORRECT,
  REACHABLE_ROLE_COUNT
};
const char *reachable_role_name(enum reachable_role role); /* work, judge, vote, correct */

enum { REACHABLE_WHO_COUNT = 16 }; /* the first, and those after it; any more are left out */

struct reachable_who {
  struct str provider; /* empty: nobody is chosen */
  struct str model;    /* may be empty */
};

struct reachable_part { /* everything is borrowed from the workflow and the configuration */
  size_t movement;
  enum reachable_role role;
  struct reachable_who
      who[REACHABLE_WHO_COUNT]; /* the first, then who takes over; or a panel's voters */
  size_t count;
  size_t needed;         /* how many of them must be able to answer */
  const json_t *options; /* options of their calls, by the movement; or NULL */
  const char *section;   /* where they are named: "", "judge." or "structured_output.reask." */
  bool chosen;           /* by a flag or the user's default, not by the file */
};

/* Visits each part. config: as session_start records it. reachable: see workflow_reachable.
 * Commands have no work part. */
void reachable_each(const struct workflow *workflow, const json_t *config, const bool *reachable,
                    void (*fn)(void *ctx, const struct reachable_part *part), void *ctx);

#endif
