/* summary.h - a log at a glance: whose it is, how far it got, its status.
 *
 *   summary_feed(&b, record)               live, record by record from the first
 *   summary_read(&b, &ref, &err)  from a log: reads only its first record and the last ones
 *   summary_deinit(&b)                     accepts a zeroed one
 *
 * Nothing is proven here: no hash is checked and the middle of the log is not read (segue verify
 * does both). Texts are raw: make them safe before a terminal sees them. */
#ifndef SEGUE_STORE_SUMMARY_H
#define SEGUE_STORE_SUMMARY_H

#include "base/buf.h"
#include "base/err.h"
#include "core/record.h"
#include "store/store.h"

#include <jansson.h>
#include <stdint.h>

struct heads;

/* Says what keeps a session from making its next call. */
struct summary_wait {
  /* concurrency, seats, cooldown, folder, after, or the class of an error; in older logs
   * circuit_open */
  char what[24];
  char message[512];         /* details, or "" */
  char provider[48];         /* "": the record does not name it */
  char since[32], until[32]; /* until "": until a place comes free */
  char gives_up[32];         /* an outage's last attempt; "": a login is waited for, or nothing */
  int tries;                 /* failed attempts of an outage; 0: it is none */
};

struct summary {
  char session[40];
  char *workflow;            /* workflow's name */
  char *folder, *user;       /* where it was begun, and who began it; or NULL */
  char *movement;            /* last movement entered; NULL before the first */
  char *message;             /* why it stopped or ended, or NULL */
  char status[24];           /* running, stopped, or the outcome of its stop or end */
  json_t *spent;             /* usage, as its last stop or end says; or NULL */
  json_t *methods;           /* how it was judged, as its end says; or NULL */
  char basis[16];            /* what a complete session rests on; "": unknown */
  json_t *outputs;           /* outputs of a complete session; or NULL */
  struct summary_wait *wait; /* NULL: nothing keeps a running session */
  json_t *questions;         /* open questions to a person, see core_question_item; or NULL */
  char stop_reason[32];      /* reason in session_stop; "" otherwise */
  char stop_of[12];          /* what the budget bounds that it was stopped for, or "" */
  char stop_class[24];       /* its class of error, or "" */
  long broken_turn;          /* where its program was lost last, from outside; 0: nowhere */
  unsigned broken_count;     /* and how often in a row */
  char *stop_provider;       /* the provider that failed, or NULL */
  char started[32], updated[32];
  long turns;
  uint64_t seq;          /* seq of the last record */
  uint64_t bytes;        /* bytes of the log up to its last whole line; summary_read only */
  char hash[SHA256_HEX]; /* hash that the record states; summary_read only */
  char *unique;          /* key by which sessions run one at a time, or NULL */
  char not_after[32];    /* time after which it does not begin; "" for none */
  json_t *after;         /* ids of the sessions that it waits for before it begins; or NULL */
  bool after_any_end;    /* whatever their end */
  bool partial;   /* only the last records of a log are being read: the first one fed may be any */
  bool answered;  /* a person has answered since it stopped */
  bool submitted; /* submitted to a daemon, which continues it */
};

void summary_feed(struct summary *b, const struct record *record);
/* Reads a log. ERR_NOT_FOUND: the log is gone or holds no whole record yet. */
bool summary_read(struct summary *b, const struct store_ref *ref, struct err *err) MUST_CHECK;
/* Reads the questions of a log that summary_read has read: if its last word is not a stop, they can
 * be anywhere in it. */
void summary_look(struct summary *b, const struct store_ref *ref);
/* Says what a list shows of a log that summary_read cannot read; its times come from its name.
 * Status "empty": it was killed before its first record was whole. "bad": its beginning was
 * changed, or the ledger knows records of it (heads; NULL: it is not asked). Returns false if the
 * log is gone, or its owner has yet to write. */
bool summary_unread(struct summary *b, const struct store_ref *ref,
                    const struct heads *heads) MUST_CHECK;
void summary_deinit(struct summary *b);

/* Returns the earliest deadline of its questions (wall clock, ms); 0: none has one. */
int64_t summary_due_ms(const struct summary *b);
/* Returns whether the question of that record is open. */
bool summary_asks(const struct summary *b, uint64_t question);

/* Returns "waiting" for a session that would run except for its `wait`, otherwise its status. */
const char *summary_status(const struct summary *b);
/* Returns the status of a session that nobody runs, in a shared store or not. */
const char *summary_idle_status(const struct summary *b, bool shared);
/* Says what keeps it, which it must have (`wait`): what for, since when, the next try and the
 * last. */
void summary_say_wait(const struct summary *b, struct buf *out);
/* Returns a session as the control API and `ls --json` show it (schemas/api.json, Session). message
 * may be NULL; position 0: it is not in the queue. */
json_t *summary_json(const struct summary *b, const char *id, const char *log, const char *status,
                     const char *message, size_t position);
/* Returns whether `status` is among the comma-separated words of a filter. NULL matches all. */
bool summary_wanted(const char *filter, const char *status);
/* Returns whether the filter can match an ended or bad session, whatever the ledger says about
 * it. */
bool summary_wants_ended(const char *filter);

/* The first returns whether it has ended for good, the second whether it has stopped and can be
 * resumed. */
bool summary_is_over(const struct summary *b);
bool summary_is_stopped(const struct summary *b);
/* Returns whether it has not begun, because it is to begin after others (store/predecessor.h). */
bool summary_waits(const struct summary *b);
/* Returns whether it runs, and waits until its provider accepts a login. */
bool summary_waits_for_login(const struct summary *b);
/* Returns whether a person goes on with it: it has stopped, neither on purpose nor with an answer
 * since. */
bool summary_needs_person(const struct summary *b);
/* Returns whether a starting daemon continues it: it was submitted, has not ended, and was not
 * stopped by or for a user. In a shared store the next claim is at once, so that what broke would
 * break again without end: there a stop goes on by itself only if its worker left. */
bool summary_goes_on(const struct summary *b, bool shared);

#endif
