/* Writes how far raters agree on the same turns. */
#include "audit/agree.h"
#include "audit/kappa.h"
#include "web/parts.h"

enum { AGREE_PAIRS = 50 };

static void put_interval(struct html *h, double value, double low, double high) {
  html_printf(h, "%.2f", value);
  HTML(h, " <span class=dim>");
  html_printf(h, "%.2f to %.2f", low, high);
  HTML(h, "</span>");
}

/* Writes the cells of the matrix in which they differ, such as "1 against 2: 7". */
static void put_differing(struct html *h, const struct kappa_table *t) {
  const char *gap = "";
  for (int i = 0; i < KAPPA_CATEGORIES; i++)
    for (int j = 0; j < KAPPA_CATEGORIES; j++)
      if (i != j && t->cell[i][j] > 0) {
        html_printf(h, "%s%d against %d: %.6g", gap, i, j, t->cell[i][j]);
        gap = "; ";
      }
}

static void put_agree_pair(struct html *h, const struct agree_pair *pair) {
  struct kappa k = agree_kappa(pair);
  struct buf advice = {0};
  HTML(h, "<tr><th scope=row>");
  html_said(h, str_from(pair->movement));
  HTML(h, "<br><span class=dim>");
  html_said(h, str_from(pair->workflow));
  HTML(h, "</span></th><td>");
  html_said(h, str_from(pair->first));
  HTML(h, "</td><td>");
  html_said(h, str_from(pair->second));
  HTML(h, "</td><td class=n>");
  html_printf(h, "%lu", k.n);
  HTML(h, "</td><td>");
  put_interval(h, k.agreement, k.agreement_low, k.agreement_high);
  HTML(h, "</td><td>");
  if (k.known)
    put_interval(h, k.kappa, k.low, k.high);
  else
    HTML(h, "-");
  HTML(h, "</td><td>");
  put_differing(h, &pair->table);
  HTML(h, "</td><td>");
  agree_advice(pair, &advice);
  html_said(h, buf_view(&advice));
  HTML(h, "</td></tr>");
  buf_deinit(&advice);
}

void part_agree(struct html *h, const struct agree *a) {
  HTML(h, "<h2>Agreement</h2><p class=dim>Verdicts, people's labels and later judgments of the "
          "same turns, with 95 % intervals. Rule 0 means no rule.</p><div class=wide tabindex=0 "
          "role=region aria-label=Agreement><table><thead><tr><th scope=col>movement</th>"
          "<th scope=col>one</th><th scope=col>other</th><th scope=col class=n>turns</th>"
          "<th scope=col>same rule</th><th scope=col>kappa</th>"
          "<th scope=col>differences</th><th scope=col>advice</th></tr></thead><tbody>");
  for (size_t i = 0; i < a->pair_count && i < AGREE_PAIRS; i++)
    put_agree_pair(h, a->pairs[i]);
  HTML(h, "</tbody></table></div>");
  if (a->pair_count > AGREE_PAIRS) {
    HTML(h, "<p class=dim>");
    html_printf(h, "%zu more pairs: segue agree lists them.", a->pair_count - AGREE_PAIRS);
    HTML(h, "</p>");
  }
}
