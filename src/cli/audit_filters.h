/* audit_filters.h - the options that say which judgments count, for all commands that count. */
#ifndef SEGUE_CLI_AUDIT_FILTERS_H
#define SEGUE_CLI_AUDIT_FILTERS_H

#include "audit/census.h"
#include "cli/cli.h"

/* Rows of a command's table of options. */
#define AUDIT_FILTER_OPTIONS                                                                       \
  {"since", 0, "WHEN", "judged since: 90m, 12h, 7d ago, or a date", false},                        \
      {"workflow", 0, "NAME,...", "of these workflows", false},                                    \
      {"movement", 0, "NAME,...", "of these movements", false},                                    \
      {"method", 0, "METHOD,...", "decided so: ai_judge, phase3_tag, tag_fallback, when, ...",     \
       false},                                                                                     \
      {"provider", 0, "P,...", "judged by these providers", false},                                \
      {"model", 0, "MODEL,...", "judged by these models", false},                                  \
      {"worker", 0, "P,...", "of work done by these providers", false},                            \
      {"outcome", 0, "OUTCOME,...",                                                                \
       "of sessions that ended or stand so: complete, stopped, open, ...", false},                 \
      {"min-stages", 0, "N", "that needed at least so many stages", false}, {                      \
    "ambiguous", 0, NULL, "with a stage whose evidence named two rules", false                     \
  }

/* The same for a command whose --provider and --model name who is to judge. */
#define AUDIT_FILTER_AGAIN_OPTIONS                                                                 \
  {"since", 0, "WHEN", "judged since: 90m, 12h, 7d ago, or a date", false},                        \
      {"workflow", 0, "NAME,...", "of these workflows", false},                                    \
      {"movement", 0, "NAME,...", "of these movements", false},                                    \
      {"method", 0, "METHOD,...", "decided so: ai_judge, phase3_tag, tag_fallback, ...", false},   \
      {"was-provider", 0, "P,...", "judged by these providers then", false},                       \
      {"was-model", 0, "MODEL,...", "judged by these models then", false},                         \
      {"worker", 0, "P,...", "of work done by these providers", false},                            \
      {"outcome", 0, "OUTCOME,...", "of sessions that ended or stand so", false},                  \
      {"min-stages", 0, "N", "that needed at least so many stages", false}, {                      \
    "ambiguous", 0, NULL, "with a stage whose evidence named two rules", false                     \
  }

bool audit_filters(struct census *c, const struct cli_args *args, struct err *err) MUST_CHECK;
bool audit_filters_again(struct census *c, const struct cli_args *args, struct err *err) MUST_CHECK;

#endif
