/* Derives the options of the command that continues a session from how it stopped. */
#include "audit/resume_flags.h"

#include "format/json_object.h"

/* Appends nothing for a call's budget, which begins anew with the next call, or for a day's, which
 * ends by itself. */
static void put_budget(const json_t *budget, struct buf *out) {
  struct str of = json_view(json_object_get(budget, "of"));
  if (!str_eq_c(of, "session") && !str_eq_c(of, "movement"))
    return;
  struct str movement = json_view(json_object_get(budget, "movement"));
  buf_puts(out, " --add-budget ");
  if (movement.n > 0)
    buf_printf(out, STR_FMT ".", STR_ARG(movement));
  buf_str(out, json_view(json_object_get(budget, "unit")));
  buf_puts(out, "=N");
}

void resume_flags(struct str status, const json_t *budget, struct buf *out) {
  if (budget != NULL)
    put_budget(budget, out);
  else if (str_eq_c(status, "max_movements"))
    buf_puts(out, " --max-movements N");
  else if (str_eq_c(status, "rule_no_match") || str_eq_c(status, "failed"))
    buf_puts(out, " (or with your verdict: --rule N)");
}
