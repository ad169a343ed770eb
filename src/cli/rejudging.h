/* rejudging.h - judges recorded turns again, several at once: the running part of `segue rejudge`.
 * Each judgment is a session of its own in the store `into`.
 *
 *   struct rejudging r = {...}; rejudging_run(&r, &err)
 *
 * Turns that already have a verdict in `verdicts` are skipped. Sessions that were left unfinished
 * come first: they go on, or are cancelled when their text is missing or another has judged. After
 * a bound is met or a signal came, no new session begins; a signal also stops the running ones,
 * otherwise they finish. */
#ifndef SEGUE_CLI_REJUDGING_H
#define SEGUE_CLI_REJUDGING_H

#include "audit/rejudge.h"
#include "audit/rejudged.h"
#include "base/list.h"
#include "cli/rejudge_turns.h"
#include "cli/setup.h"
#include "host/several.h"

/* instead of a rule's number; unreadable: it was tried, and is not tried again */
enum { REJUDGE_OPEN = -2, REJUDGE_UNREADABLE = REJUDGED_UNDECIDED };

struct rejudging_left { /* a session in `into` */
  char id[STORE_ID_BYTES];
  size_t turn; /* in `turns` */
  long repeat;
  bool judged; /* it lacks nothing but its end */
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
  int64_t max_calls, max_cost_nano; /* 0: without */
  const struct rejudge_turn *turns; /* by session */
  size_t count;
  long *verdicts; /* `repeat` for each turn */
  const struct rejudging_left *left;
  size_t left_count;
  /* One more is done. method: NULL if it could not be judged; why then says why not. */
  void (*told)(void *ctx, size_t turn, long repeat, const char *method, const char *why);
  void *ctx;
  /* from here on its own */
  struct several several;
  struct watcher watcher;
  struct list jobs, cases;
  size_t left_next;
  size_t next; /* turn whose log was not read yet */
  int64_t calls, cost_nano;
  int64_t waits_until_ms; /* real time; the last wait that was told */
  uint64_t unsound;       /* turns of logs that could not be read */
  bool bounded, stopped, closing;
  struct err failed;
};

/* False: it could not continue; what was already judged stays. */
bool rejudging_run(struct rejudging *r, struct err *err) MUST_CHECK;

#endif
