/* capability.h - describes what a provider can do, as data for lint to check and for the core to
 * decide by.
 *
 * The provider room fills one for each backend; other rooms only read them. Static, never freed. */
#ifndef SEGUE_CORE_CAPABILITY_H
#define SEGUE_CORE_CAPABILITY_H

#include "base/buf.h"
#include "core/call.h"

#include <stdbool.h>

/* Each option of a workflow's `options:` (sampling and effort) has one bit. */
enum option_bit {
  OPTION_TEMPERATURE = 1u << 0, /* number, 0 to 2 */
  OPTION_SEED = 1u << 1,        /* integer */
  OPTION_MAX_TOKENS = 1u << 2,  /* integer > 0 */
  OPTION_EFFORT = 1u << 3,      /* low, medium, high (or the backend's own word) */
};
#define OPTION_ALL (OPTION_TEMPERATURE | OPTION_SEED | OPTION_MAX_TOKENS | OPTION_EFFORT)

extern const char *const option_names[]; /* in bit order, NULL-terminated */

/* Says which programs that may write a backend can be allowed to run while it edits. */
enum held_run {
  HELD_RUN_NAMED, /* only those that the movement names */
  HELD_RUN_ANY,   /* all, within bounds of the backend's own, such as a sandbox */
  HELD_RUN_NONE,
};

/* Says how a backend enforces the permissions readonly, edit and full (core/call.h). */
struct held {
  bool looks; /* short of full it can still run programs that only read */
  bool edits; /* it can change files at all */
  enum held_run run;
  bool served;                       /* a server that segue talks to over the machine's network */
  const char *but[PERMISSION_COUNT]; /* how it departs from each permission; NULL: not at all */
};

struct capability {
  const char *name;         /* the word that selects the backend */
  const char *summary;      /* one line for people */
  unsigned options;         /* OPTION_* bits that it takes */
  bool can_judge;           /* can answer a judge's question at all */
  bool takes_model;         /* `model:` means something to it */
  bool sessions;            /* can continue one of its conversations by id */
  bool forks;               /* can continue a copy of one, under a new id */
  const char *structured;   /* its way to enforce a schema: native, grammar, tool, prompt, none */
  const char *judge_effort; /* default effort of its judges; NULL: none */
  /* It reports neither tokens nor cost, so its calls count for nothing in budgets. */
  bool tells_no_tokens;
  bool tells_cost;         /* it reports dollars */
  bool touches_files;      /* runs programs that may change the working tree */
  const struct held *held; /* NULL: permissions mean nothing to it (script, command) */
};

/* Returns NULL if no provider has that name. `table` ends with a NULL name. */
const struct capability *capability_find(const struct capability *table, struct str name);

/* Returns the default effort of a judge's call; NULL: none is sent. A backend that finds it refused
 * leaves it out. `c` may be NULL. */
const char *capability_judge_effort(const struct capability *c);

/* Writes to `out`, in words, how this backend departs from a movement's permission;
 * `names_programs`: the movement has `run`. False: it enforces the permission, and nothing is
 * written. */
bool capability_gap(const struct capability *c, enum permission permission, bool names_programs,
                    struct buf *out);

#endif
