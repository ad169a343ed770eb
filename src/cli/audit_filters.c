/* Reads the options that say which judgments count. */
#include "cli/audit_filters.h"

#include "cli/resolve_id.h"

bool audit_filters(struct aggregate *c, const struct cli_args *args, bool again, struct err *err) {
  const char *since = cli_value(args, "since"), *least = cli_value(args, "min-stages");
  long n = 0;
  for (int i = 0; i < AGGREGATE_WORD_COUNT; i++) {
    const char *option = aggregate_word_name((enum aggregate_word)i);
    if (again && i == AGGREGATE_PROVIDER)
      option = "was-provider";
    else if (again && i == AGGREGATE_MODEL)
      option = "was-model";
    if (!aggregate_filter(c, (enum aggregate_word)i, cli_value(args, option), err))
      return false;
  }
  if (!aggregate_filter_rules(c, cli_value(args, "rule"), err))
    return false;
  if (least != NULL && (!str_to_long(str_from(least), &n) || n < 1))
    return err_set(err, ERR_USAGE, "--min-stages %.40s: write a number from 1", least);
  c->min_stages = n;
  c->ambiguous = cli_flag(args, "ambiguous");
  return resolve_id_since(since, &c->since_ms, err);
}
