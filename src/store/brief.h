/* brief.h - a log at a glance: whose it is, how far it got, its status.
 *
 *   brief_feed(&b, record)               live, record by record from the first
 *   brief_read(&b, &ref, &err)           from a log: its first record and the last ones only
 *   brief_deinit(&b)                     accepts a zeroed one
 *
 * Nothing is proven here: no hash is checked and the middle of the log is not read (segue verify
 * does both). Texts are raw: make them safe before a terminal sees them. */
#ifndef SEGUE_STORE_BRIEF_H
#define SEGUE_STORE_BRIEF_H

#include "base/err.h"
#include "core/record.h"
#include "store/store.h"

#include <jansson.h>
#include <stdint.h>

struct heads;

/* The reason that keeps it from making its next call. */
struct brief_wait {
  char what[24]; /* concurrency, seats, cooldown, circuit_open, folder, or the class of an error */
  char message[512];         /* more of it, or "" */
  char provider[48];         /* "": not in the record that says so */
  char since[32], until[32]; /* until "": when a place comes free */
};

struct brief {
  char session[40];
  char *workflow;          /* its name */
  char *movement;          /* entered last, NULL before the first */
  char *message;           /* why it stopped or ended, or NULL */
  char status[24];         /* running, stopped, or the outcome of its end or stop */
  json_t *spent;           /* what it has used, as its last stop or end says; or NULL */
  json_t *methods;         /* how its judgments were decided, as its end says; or NULL */
  json_t *outputs;         /* what it returns, once it is complete; or NULL */
  struct brief_wait *wait; /* while it runs, NULL: nothing keeps it */
  json_t *questions;       /* that wait for a person, see core_question_item; or NULL */
  char stop_reason[32];    /* of session_stop; "" otherwise */
  char started[32], updated[32];
  long turns;
  uint64_t seq;          /* of the last record */
  uint64_t bytes;        /* of the log, up to its last whole line; brief_read only */
  char hash[SHA256_HEX]; /* of that record, as it says; brief_read only */
  char *unique;          /* the key of sessions that run one at a time, or NULL */
  char not_after[32];    /* it does not begin later; "" for none */
  bool partial;          /* while a log's last records are read: the first of them is any */
  bool answered;         /* a person's answer came since it stopped */
  bool submitted;        /* to a daemon, which goes on with it */
};

void brief_feed(struct brief *b, const struct record *record);
/* ERR_NOT_FOUND: the log is gone or holds no whole record yet. */
bool brief_read(struct brief *b, const struct store_ref *ref, struct err *err) MUST_CHECK;
/* Says what a list shows of a log that brief_read cannot read; its times are that in its name.
 * Status "empty": killed before its first record was whole. "bad": its beginning was changed, or
 * the ledger knows records of it
 * (heads; NULL: it is not asked). False: it is gone, or its owner has yet to write. */
bool brief_unread(struct brief *b, const struct store_ref *ref,
                  const struct heads *heads) MUST_CHECK;
void brief_deinit(struct brief *b);

/* The earliest deadline of its questions (wall clock, ms); 0: none has one. */
int64_t brief_due_ms(const struct brief *b);
/* Does it ask the question of that record? */
bool brief_asks(const struct brief *b, uint64_t question);

/* Returns "waiting" for a session that would run except for its `wait`, otherwise its status. */
const char *brief_status(const struct brief *b);
/* A session as the control API and `ls --json` show it (schemas/api.json, Session). message may be
 * NULL, position 0: it is not in the queue. */
json_t *brief_json(const struct brief *b, const char *id, const char *log, const char *status,
                   const char *message, size_t position);
/* Is `status` one of the comma-separated words of a filter? NULL holds all. */
bool brief_wanted(const char *filter, const char *status);
/* Can the filter match a session that has ended, or a bad one, whatever the ledger says about it?
 * */
bool brief_wants_ended(const char *filter);
/* False: it has a word that is no status. NULL is fine. */
bool brief_filter_check(const char *filter, struct err *err) MUST_CHECK;

/* It has ended for good; it has stopped and can be resumed. */
bool brief_is_over(const struct brief *b);
bool brief_is_stopped(const struct brief *b);
/* True if it continues by itself when a daemon starts: submitted, not ended, and not stopped by or
 * for a user. */
bool brief_goes_on(const struct brief *b);

#endif
