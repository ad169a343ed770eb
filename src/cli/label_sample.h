/* label_sample.h - `segue label --sample`: asks a person for the right rule of each judgment in a
 * sample, one screen each.
 *
 * Keys: a rule's number, 0 for no rule, s to skip one for now, q to end. Each answer is durable
 * before the next question; judgments that this person has labelled in the sample are not asked
 * again. */
#ifndef SEGUE_CLI_LABEL_SAMPLE_H
#define SEGUE_CLI_LABEL_SAMPLE_H

#include "audit/draw.h"
#include "store/label.h"

struct label_sample {
  const struct draw *draw;
  const struct store *store;
  const char *by; /* who answers */
  bool blind;     /* show the verdict only afterwards */
};

bool label_sample_run(const struct label_sample *s, struct err *err) MUST_CHECK;

#endif
