/* rejudging.h - judges recorded turns again, several at once, for `segue rejudge`. Each judgment is
 * a session of its own in the store `into`.
 *
 *   struct rejudging r = {...}; rejudging_run(&r, &err)
 *
 * Turns that already have a verdict in `verdicts` are skipped. Unfinished sessions come first: they
 * are continued, or cancelled if their text is missing or another has judged. After a limit is
 * reached or a signal came, no new session begins; a signal also stops the running ones, otherwise
 * they finish. */
#ifndef SEGUE_CLI_REJUDGING_H
#define SEGUE_CLI_REJUDGING_H

#include "audit/rejudge.h"
#include "audit/rejudged.h"
#include "base/list.h"
#include "cli/rejudge_turns.h"
#include "cli/setup.h"
#include "host/several.h"

/* Stand in for a rule's number; unreadable: it was tried, and is not tried again. */
enum { REJUDGE_OPEN = -2, REJUDGE_UNREADABLE = REJUDGED_UNDECIDED };

struct rejudging_left { /* a session in `into` */
  char id[STORE_ID_BYTES];
  size_t turn; /* in `turns` */
  long repeat;
  bool judged; /* it lacks only its end */
};

struct rejudging {
  const struct setup *setup;
  struct store source;
  char into[STORE_PATH_BYTES];
  struct rejudge_as as;
  const char *name, *settings;
  long repeat;
  bool permute;
  size_t concurrency;
  int64_t max_calls, max_cost_nano; /* 0: no limit */
  const struct rejudge_turn *turns; /* sorted by session */
  size_t count;
  long *verdicts; /* `repeat` for each turn */
  const struct rejudging_left *left;
  size_t left_count;
  /* Is told of each finished judgment. method NULL: the turn could not be judged; why then says why
   * not. */
  void (*told)(void *ctx, size_t turn, long repeat, const char *method, const char *why);
  void *ctx;
  /* The rest is internal. */
  struct several several;
  struct watcher watcher;
  struct list jobs, cases;
  size_t left_next;
  struct rejudge_reading *reading; /* the log that is being read, or NULL */
  long *numbers;                   /* its turns that are to be judged, owned */
  size_t *places;                  /* and where each stands in `turns`, owned */
  size_t next;                     /* first turn whose log was not opened yet */
  int64_t calls, cost_nano;
  int64_t waits_until_ms; /* real time; end of the last wait reported */
  uint64_t unsound;       /* turns of logs that could not be read */
  bool bounded, stopped, closing;
  struct err failed;
};

/* Returns false if it could not continue; what was already judged stays. */
bool rejudging_run(struct rejudging *r, struct err *err) MUST_CHECK;

#endif
