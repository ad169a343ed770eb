/* ask_batch.h - answers many questions from NDJSON: lines {"id","prompt","schema"?} in, lines
 * {"id","value","raw","attempts",...} out, in the same order, a few at once; also reports how often
 * the first answer was right. `schema` is a schema or the name of a preset. */
#ifndef SEGUE_CLI_ASK_BATCH_H
#define SEGUE_CLI_ASK_BATCH_H

#include "cli/setup.h"

struct ask_batch_spec { /* all borrowed */
  const char *path;     /* "-": standard input */
  const char *logs;     /* or NULL */
  size_t jobs;
  bool json;                 /* print the rates as a last line on stdout */
  struct workflow *workflow; /* for lines without a schema; NULL: every line must have one */
  /* Makes the workflow for a line's own schema; NULL with err set. */
  struct workflow *(*workflow_of)(void *ctx, json_t *schema, struct err *err);
  void *ctx;
};

/* Returns the exit status. */
int ask_batch(const struct setup *setup, const struct ask_batch_spec *spec);

#endif
