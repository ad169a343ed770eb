/* audit_filters.h - reads the options that say which judgments count, for all commands that
 * count. */
#ifndef SEGUE_CLI_AUDIT_FILTERS_H
#define SEGUE_CLI_AUDIT_FILTERS_H

#include "audit/aggregate.h"
#include "cli/cli.h"

/* These are rows of a command's table of options. */
#define AUDIT_FILTER_OPTIONS AUDIT_FILTER_ROWS("", "", ", when")
/* These serve a command whose --provider and --model name who is to judge. */
#define AUDIT_FILTER_AGAIN_OPTIONS AUDIT_FILTER_ROWS("was-", "originally ", "")

#define AUDIT_FILTER_ROWS(was, originally, more_methods)                                           \
  {"since", 0, "WHEN", "judged since: 90m, 12h or 7d ago, or a date", false},                      \
      {"workflow", 0, "NAME,...", "in these workflows", false},                                    \
      {"movement", 0, "NAME,...", "in these movements", false},                                    \
      {"method", 0, "METHOD,...",                                                                  \
       "decided by these methods: ai_judge, phase3_tag, tag_fallback" more_methods ", ...",        \
       false},                                                                                     \
      {was "provider", 0, "P,...", originally "judged by these providers", false},                 \
      {was "model", 0, "MODEL,...", originally "judged by these models", false},                   \
      {"worker", 0, "P,...", "for work done by these providers", false},                           \
      {"outcome", 0, "OUTCOME,...", "in sessions with this status: complete, stopped, open, ...",  \
       false},                                                                                     \
      {"min-stages", 0, "N", "that needed at least this many stages", false}, {                    \
    "ambiguous", 0, NULL, "with a stage whose evidence named two rules", false                     \
  }

/* again: the command has the second table. */
bool audit_filters(struct aggregate *c, const struct cli_args *args, bool again,
                   struct err *err) MUST_CHECK;

#endif
