/* Reads which judgments count. */
#include "cli/audit_filters.h"

#include "cli/find.h"

static bool read_filters(struct census *c, const struct cli_args *args, bool again,
                         struct err *err) {
  static const struct {
    const char *option, *again;
    enum census_word what;
  } words[] = {
      {"workflow", "workflow", CENSUS_WORKFLOW}, {"movement", "movement", CENSUS_MOVEMENT},
      {"method", "method", CENSUS_METHOD},       {"provider", "was-provider", CENSUS_PROVIDER},
      {"model", "was-model", CENSUS_MODEL},      {"worker", "worker", CENSUS_WORKER},
      {"outcome", "outcome", CENSUS_OUTCOME}};
  const char *since = cli_value(args, "since");
  const char *least = cli_value(args, "min-stages");
  long n = 0;
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (!census_filter(c, words[i].what, cli_value(args, again ? words[i].again : words[i].option),
                       err))
      return false;
  if (least != NULL && (!str_to_long(str_from(least), &n) || n < 1))
    return err_set(err, ERR_USAGE, "--min-stages %.40s: write a number from 1", least);
  c->min_stages = n;
  c->ambiguous = cli_flag(args, "ambiguous");
  return find_since(since, &c->since_ms, err);
}

bool audit_filters(struct census *c, const struct cli_args *args, struct err *err) {
  return read_filters(c, args, false, err);
}

bool audit_filters_again(struct census *c, const struct cli_args *args, struct err *err) {
  return read_filters(c, args, true, err);
}
