/* spend.h - sums what a session has used so far: time, tokens and money, over all its calls, and
 * separately by movement, provider and purpose. Pure; values from a log are bounded. */
#ifndef SEGUE_CORE_SPEND_H
#define SEGUE_CORE_SPEND_H

#include "core/call.h"

#include <jansson.h>

struct spend {
  int64_t calls, duration_ms;
  int64_t input, output, cached, reasoning; /* tokens; the last two are parts of the first two */
  int64_t cost_nano;                        /* US dollars / 1e9: sums stay exact */
  int64_t priced;                           /* calls whose cost is known */
  int64_t uncounted;                        /* calls that reported no tokens, or only some */
  int64_t unpriced;                         /* calls with tokens whose cost is not known */
  int64_t silent;                           /* calls that answered and reported nothing */
  int64_t begun;                            /* calls, each once; `calls` counts attempts */
};

enum spend_kind { SPEND_WORK, SPEND_JUDGING, SPEND_CORRECTIONS, SPEND_KINDS };

struct spend_entry {
  char *name;
  struct spend spend;
};

struct spend_list {
  struct spend_entry *entries;
  size_t count;
};

struct spends {
  struct spend all, kinds[SPEND_KINDS];
  struct spend_list movements, providers;
};

void spends_deinit(struct spends *spends);
/* Counts a call that begins, at its first attempt. */
void spends_begin(struct spends *spends, struct str movement, struct str provider);
/* Counts an answer that came without any report of its use. */
void spends_silent(struct spends *spends, struct str provider);
/* Returns the sum for one movement or one provider; all zero if nothing began there. */
struct spend spends_of(const struct spend_list *list, struct str name);
/* Adds an attempt that is over. usage: as in its call_end, or NULL. */
void spends_add(struct spends *spends, enum call_purpose purpose, struct str movement,
                struct str provider, const json_t *usage, int64_t duration_ms);
/* Returns the use of a single attempt. */
struct spend spend_of(const json_t *usage, int64_t duration_ms);
/* Returns the sums as session_end has them. A new reference. */
json_t *spends_json(const struct spends *spends);

/* Adds what one session used to a sum of the same form, in a log's units: nothing is lost. */
void spend_sum(json_t *sum, const json_t *spent);

/* US dollars for a million tokens; below 0: not known. */
enum price_kind {
  PRICE_INPUT,
  PRICE_OUTPUT,
  PRICE_CACHED,      /* read from a cache; not known: as PRICE_INPUT */
  PRICE_CACHE_WRITE, /* written to one; the same */
  PRICE_REASONING,   /* not known: as PRICE_OUTPUT */
  PRICE_KINDS
};
struct price {
  double of[PRICE_KINDS];
};
extern const char
    *const price_names[]; /* in that order, NULL-ended: keys of `prices` in config.yaml */

/* Returns true if it tells tokens and no cost. */
bool spend_lacks_cost(const json_t *usage);
/* Returns such a usage with its cost at this price. from: prices, the user's own, or list, whose
 * name and date `list` has. A new reference. */
json_t *spend_at_price(const json_t *usage, const struct price *price, const char *from,
                       const char *list);
/* Returns the usage with its cost by the user's own prices (model -> dollars per million tokens),
 * if it lacks a cost and they have the model; otherwise unchanged. A new reference; NULL for
 * NULL. */
json_t *spend_priced(const json_t *usage, const json_t *prices, struct str model);
/* Appends "12,345 tokens, $0.0123" and what is not known; nothing if no model was asked. spent: one
 * object of session_end's `spent`, or NULL. */
void spend_print(const json_t *spent, struct buf *out);

#endif
