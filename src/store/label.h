/* label.h - what people say of sessions, kept beside the logs and never in them: which rule should
 * have been chosen, or that the inbox need not list one any more.
 *
 *   labels_append(&store, labels, n, &err)      durable
 *   labels_read(&store, each, ctx, &err)        all in order; a later one of the same person counts
 *
 * The labels of a store are one chain, as a log is. With files it is labels/labels.log. */
#ifndef SEGUE_STORE_LABEL_H
#define SEGUE_STORE_LABEL_H

#include "store/store.h"

enum { LABEL_BY_BYTES = 64, LABEL_STRATUM_BYTES = 160 };

struct label {
  char session[STORE_ID_BYTES];
  long turn;
  long rule; /* 0: no rule holds */
  char by[LABEL_BY_BYTES];
  /* Not 0: a dismissal, which has no turn and rule: until the log goes on after this record, the
   * inbox does not list the session. `stratum` then says why. */
  uint64_t dismissed;
  /* The stratum that it was drawn from, and how many judgments that has; "" and 0: not drawn. */
  char stratum[LABEL_STRATUM_BYTES];
  uint64_t population;
  uint64_t number; /* set when read: its number, from 1 */
  bool blind;      /* the person had not seen the verdict */
};

typedef void (*label_fn)(void *ctx, const struct label *label);

bool labels_append(const struct store *store, const struct label *labels, size_t n,
                   struct err *err) MUST_CHECK;
/* Reads all labels. Returns false if they cannot be read, or somebody changed them; earlier ones
 * were passed on. */
bool labels_read(const struct store *store, label_fn each, void *ctx, struct err *err) MUST_CHECK;

#endif
