/* agree.h - how far raters agree on the same turns, in pairs and by movement. Raters are recorded
 * verdicts, stages that read something without deciding, votes of panels, later judgings, and
 * people's labels.
 *
 *   agree = agree_new(aggregate);                 whose filters and names count; borrowed
 *   agree_beside(agree, &store, &err)   labels and later judgings, before its logs are read
 *   agree_read(agree, &ref)             any number of times, also by store_each
 *   agree->pairs[i] ..., kappa_of(&pair->table), agree_advice(...)
 *   agree_free(agree)
 *
 * Raters: "verdict" (what the session went on with), "human" (a person's verdict in its place),
 * "stage NAME", "vote N PROVIDER/MODEL", "rejudge NAME" (repeats end in " #2" and so on), "label
 * BY". A stage is not paired with the verdict. If a person labelled a turn twice, the later label
 * counts. A turn without a rule in which no judge's answer could be used has no verdict, and is
 * counted (`undecided`).
 *
 * In a stratified sample (segue label --sample) a label's weight is the number of judgments in its
 * stratum over the number this person labelled there, so that shares estimate the whole population
 * and intervals fit the design. A person's labels outside their own sample would bias this and are
 * left out (`undrawn`). Memory: LIMIT_AUDIT_PAIR_COUNT pairs. */
#ifndef SEGUE_AUDIT_AGREE_H
#define SEGUE_AUDIT_AGREE_H

#include "audit/aggregate.h"
#include "audit/kappa.h"
#include "audit/rejudged.h"
#include "store/label.h"

/* most strata of one pair; if it has more, its interval ignores them */
enum { AGREE_STRATA_MAX = 32 };

struct agree_pair {
  char *workflow, *movement, *first, *second;
  struct kappa_table table;
  struct kappa_stratum *strata; /* for a pair with a label from a sample */
  uint32_t stratum_of[AGREE_STRATA_MAX];
  size_t stratum_count;
};
struct kappa agree_kappa(const struct agree_pair *pair);

struct agree_stratum { /* the judgments that one person was asked to label */
  uint64_t population, labels;
};

struct agree_turn { /* a turn on which two raters differ; words are valid during the call */
  const char *session;
  long turn;
  const struct agree_pair *pair;
  long first, second; /* verdicts; 0: none */
};

struct agree_rating {
  char rater[160];
  long rule;
  double weight;    /* 0: not from a label */
  uint32_t stratum; /* of agree->strata, from 1; 0: it was not drawn */
};

struct agree {
  const struct aggregate *aggregate;
  /* Takes the ratings of each turn in place of pairs; or NULL. */
  void (*on_rated)(void *ctx, const struct row *row, const struct agree_rating *ratings, size_t n);
  void (*on_differ)(void *ctx, const struct agree_turn *turn); /* may be NULL */
  void *ctx;
  const char *raters; /* comma-separated: only pairs with one of these; NULL: all. Borrowed */
  struct rows rows;
  struct label *labels; /* sorted by session, turn, by after agree_beside */
  size_t label_count, label_room;
  struct rejudged again;
  struct agree_pair **pairs;
  size_t pair_count;
  struct map map;
  struct agree_stratum *strata;
  size_t stratum_count;
  struct map stratum_map;
  struct arena arena;
  uint64_t left_out, undrawn, undecided;
  uint64_t unsound; /* logs that are not intact: they are left out */
};

struct agree *agree_new(struct aggregate *aggregate);
bool agree_beside(void *agree, const struct store *store, struct err *err) MUST_CHECK;
void agree_read(void *agree, const struct store_ref *ref);
void agree_sort(struct agree *a); /* sorts by workflow, movement, raters */
void agree_free(struct agree *a);

/* Returns the person of a pair of a judge and a person, and the judge; NULL: it is no such pair. */
const char *agree_person(const struct agree_pair *pair, const char **judge);
/* Returns whether somebody named the rule, and how judge and person meet at it. */
bool agree_rule(const struct agree_pair *pair, int rule, struct kappa_rule *out);
/* Appends who may stand for whom at 95 % confidence, or how many more labels would tell. */
void agree_advice(const struct agree_pair *pair, struct buf *out);
json_t *agree_pair_json(const struct agree_pair *pair);

#endif
