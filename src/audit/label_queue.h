/* label_queue.h - the judgments that one person is to label, one after the other.
 *
 *   struct label_queue q = {.by = "ann", .want = 60};      and .even, .keys, .second, .seed
 *   label_queue_draw(&q, &store, aggregate, &err)          applies the aggregate's filters
 *   q.draw.turns[i], unless label_queue_has(&q, i): this person has labelled it in this sample
 *   label_queue_case(&store, session, turn, &case, &err)   what is judged: the work, and the rules
 *   label_queue_label(&q, i, rule, &label), then labels_append
 *   label_queue_deinit(&q)
 *
 * Without `even` the sample is made for asking how often a verdict is wrong (error_rate.h): strata
 * are what a second judge says, the verdict, the stage that decided and what the end rests on. */
#ifndef SEGUE_AUDIT_LABEL_QUEUE_H
#define SEGUE_AUDIT_LABEL_QUEUE_H

#include "audit/rejudge.h"
#include "audit/sample.h"
#include "store/label.h"

enum { LABEL_QUEUE_USUAL = 60 };

struct label_queue {
  const char *by, *seed; /* who labels; seed NULL: none */
  bool even;             /* strata by `keys` alone, an equal number of each */
  const char *keys;      /* with `even`; "": one stratum */
  const char *second;    /* the second judge's rejudging; NULL: the one with most verdicts */
  size_t want;
  struct sample draw;
  struct rejudged again;
  struct map done; /* session, turn and stratum */
  struct arena arena;
};

bool label_queue_draw(struct label_queue *q, const struct store *store, struct aggregate *aggregate,
                      struct err *err) MUST_CHECK;
bool label_queue_has(const struct label_queue *q, size_t i);
void label_queue_label(const struct label_queue *q, size_t i, long rule, struct label *out);
bool label_queue_case(const struct store *store, const char *session, long turn,
                      struct rejudge_case **out, struct err *err) MUST_CHECK;
void label_queue_deinit(struct label_queue *q);

#endif
