/* tool_summary.h - shortens for a log what an agent reports of its tool use.
 *
 * It becomes the data of the news NEWS_TOOL: {"name", "id", "state", "failed"?, "argument"?,
 * "exit"?, "output"?}. The argument is the command of a shell tool, else the input as JSON, cut at
 * LIMIT_TOOL_ARGUMENT_BYTES; a cut one ends with its length and its hash, so that two can be
 * distinguished. The output keeps its first and last lines. Secrets in the input lines have been
 * hidden already. */
#ifndef SEGUE_PROVIDER_AGENT_TOOL_SUMMARY_H
#define SEGUE_PROVIDER_AGENT_TOOL_SUMMARY_H

#include "base/str.h"

#include <jansson.h>

struct tool_summary { /* all borrowed */
  struct str name, id;
  const char *state;   /* "start" or "end"; NULL: not said */
  int failed;          /* 0, 1, or -1: not said */
  const json_t *input; /* its argument, in any shape; an empty object or NULL: not said */
  const json_t *output;
  const json_t *exit; /* an integer; otherwise it is looked for in a failure's output */
};

/* Returns the data, new. */
json_t *tool_summary_data(const struct tool_summary *tool);
/* Returns whether the input has any argument. */
bool tool_has_argument(const json_t *input);

#endif
