/* sandbox_internal.h - a sandbox from inside: for the files of sandbox_* and for process_start. */
#ifndef SEGUE_OS_SANDBOX_INTERNAL_H
#define SEGUE_OS_SANDBOX_INTERNAL_H

#include "base/arena.h"
#include "os/sandbox.h"

struct sandbox {
  int reads, writes;           /* rulesets; -1: none */
  struct warm_shim *warm_shim; /* a shim that has taken on both already; or NULL */
  unsigned held;
  struct arena arena;
  const char *const *words; /* put before the program's; NULL: none */
  const char *const *envp;  /* NULL: the program's own */
};

/* Makes one that is another program's words, which are put into its arena. held: of enum
 * shim_held. */
struct sandbox *sandbox_without_rules(unsigned held);

#endif
