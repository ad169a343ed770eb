/* invariants_in.h - invariants for commands, from --invariant and --invariants, run on a value.
 *
 * invariants_in_load, invariants_in_check any number of times, invariants_in_deinit (a zeroed one
 * is fine). Commands are run, because the caller named them or the file that holds them; what comes
 * with the data (a line of a batch) may contain only expressions. */
#ifndef SEGUE_CLI_INVARIANTS_IN_H
#define SEGUE_CLI_INVARIANTS_IN_H

#include "cli/cli.h"
#include "structured/invariant.h"

struct invariants_in {
  struct invariants *compiled; /* owned; NULL: none */
};

/* Loads all of --invariants FILE (JSON or YAML, a list), then all of --invariant EXPR. Questions to
 * a model are refused: `why` says what to do instead. Prints the faults of an expression and
 * returns false with err set. */
bool invariants_in_load(struct invariants_in *in, const struct cli_args *args,
                        struct err *err) MUST_CHECK;
void invariants_in_deinit(struct invariants_in *in);

/* Compiles a list from data. NULL, with an error in `errs`: it is not a list of expressions. */
struct invariants *invariants_in_of_line(const json_t *list, struct schema_errors *errs) MUST_CHECK;

/* Runs the expressions and then, if those and the schema hold, the commands one by one. SCHEMA_OK,
 * SCHEMA_INVALID or SCHEMA_TOO_COMPLEX as invariants_check has it. False: a command could not be
 * run, err says which and why. Out of memory ends the program. */
bool invariants_in_check(const struct invariants *invariants, const json_t *value,
                         bool schema_holds, enum schema_status *status, struct schema_errors *errs,
                         struct err *err) MUST_CHECK;

#endif
