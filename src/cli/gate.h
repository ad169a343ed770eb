/* gate.h - ends a command with 1 where its figures are not what a build asks for (--fail-if), and
 * writes what it found as JUnit XML (--junit).
 *
 *   gate_begin(&gate, "audit", args, true, &err)
 *   gate_case(&gate, name, NULL) ...           a test case of the file; why: it failed
 *   gate_check(&gate, name, figures) ...       takes the figures; holds the expression against them
 *   status = gate_end(&gate, status)
 *
 * An expression (EXPR_INVARIANT) that is true fails, and one that cannot be told does, too: what is
 * not known is not passed. A name that is no figure is bad usage. */
#ifndef SEGUE_CLI_GATE_H
#define SEGUE_CLI_GATE_H

#include "base/arena.h"
#include "cli/cli.h"
#include "expr/expr.h"

#include <jansson.h>
#include <stdio.h>

struct gate {
  const char *command, *text, *path; /* text: of the expression, or NULL; path: of the file */
  const struct expr *expr;
  struct arena arena;
  FILE *out, *cases; /* NULL: none is wanted; cases wait, because counts come first */
  size_t count, failures, skipped;
  bool failed, misused;
};

struct gate_case { /* texts may be NULL; with `skipped`, or without `why`, it did not fail */
  const char *class, *name, *type, *why, *body, *skipped;
};

bool gate_begin(struct gate *g, const char *command, const struct cli_args *args,
                struct err *err) MUST_CHECK;
void gate_put(struct gate *g, const struct gate_case *one);
void gate_case(struct gate *g, const char *name, const char *why);
void gate_check(struct gate *g, const char *name, json_t *owned_figures);
/* Writes the file, and returns the status that the command ends with. */
int gate_end(struct gate *g, int status);

#endif
