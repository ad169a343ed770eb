/* ls_filter.h - which sessions `segue ls` shows, beside their status.
 *
 * Time and name are in every row. Who judged how and who answered stand in the log only, which is
 * read for it, so these two are asked last. */
#ifndef SEGUE_CLI_LS_FILTER_H
#define SEGUE_CLI_LS_FILTER_H

#include "cli/cli.h"

struct ls_filter {
  int64_t since_ms;     /* real time; 0: any */
  const char *workflow; /* these are NULL where anything will do */
  const char *method, *provider;
};

/* "90m", "12h", "3d", "2w" before now; or a date, or a time of RFC 3339. */
bool ls_filter_since(const char *text, int64_t *since_ms, struct err *err) MUST_CHECK;
/* From --since, --workflow, --method and --provider. */
bool ls_filter_read(struct ls_filter *filter, const struct cli_args *args,
                    struct err *err) MUST_CHECK;
bool ls_filter_is_set(const struct ls_filter *filter); /* does it leave any out? */
/* session: as the control API tells it. */
bool ls_filter_wants(const struct ls_filter *filter, const json_t *session);

#endif
