/* summary.h - sums up records in one line a turn: what ran, where it led, which method decided, and
 * why the stages before it did not. It is fed record by record, live and from a log alike. */
#ifndef SEGUE_AUDIT_SUMMARY_H
#define SEGUE_AUDIT_SUMMARY_H

#include "base/buf.h"
#include "core/record.h"
#include "core/spend.h"

struct turn_line { /* texts are raw: make them safe before a terminal sees them */
  struct turn_line *next;
  long turn;
  int run; /* number among its movement's runs, from 1 */
  struct buf movement, provider, what, leads_to, method, why;
  struct buf now;  /* present action, such as "claude  judging: phase3_tag"; "" between two calls */
  struct buf tool; /* last tool of its call, with the argument; or "" */
  int64_t started_ms;   /* real time, by its record */
  int64_t heard_ms;     /* time of the last sign of life: a record, or summary_hear */
  int64_t duration_ms;  /* set when it is judged */
  int64_t told_tokens;  /* reported by the running call so far */
  struct spends spends; /* use of its finished calls */
  long calls;
  long group;     /* a child's group (its turn); else 0 */
  long ran, runs; /* a group's children that have finished, and that are running */
  bool judged;
  bool is_child;  /* the turn belongs to a group */
  bool has_value; /* `what` tells how its value was made */
};

struct summary {
  char session[40];
  struct buf workflow;
  struct turn_line *open; /* turns that have no judgment yet */
  struct turn_line done;  /* the last judged turn: see summary_feed */
  long turns;
  int64_t duration_ms;  /* sum over judged turns */
  int names;            /* width of the longest movement's name, in columns */
  json_t *methods;      /* match method -> count */
  struct spends spends; /* use of its calls so far; their purposes are unknown */
  json_t *spent;        /* as its last stop or end says; or NULL */
  char status[32];      /* running, stopped, or the outcome of its stop or end */
  bool resumable;       /* its last record is a stop */
  bool asks;            /* that stop waits for a person's answer */
  bool answered;        /* a person answered the stop: somebody may be about to continue */
  struct buf message;   /* why it stopped or ended */
  struct buf stop_class;
  struct buf resume_flags; /* see summary_resume_flags */
  char started[32], last_ts[32];
};

/* Returns the turn's line if this record is its judgment (valid until the next call), otherwise
 * NULL.
 */
const struct turn_line *summary_feed(struct summary *s, const struct record *record);
/* Does the same for a record that was read back. */
const struct turn_line *summary_feed_json(struct summary *s, const json_t *json);
/* Notes that a piece of that turn's answer came at this (real) time, which no record says. */
void summary_hear(struct summary *s, long turn, int64_t now_ms);
void summary_deinit(struct summary *s);

/* Returns the time of all turns together, including turns without a judgment. */
int64_t summary_duration(const struct summary *s);

/* Appends how a command ended: "exit 1", "exit 137, killed by SIGKILL". signal 0: it was not
 * killed. */
void summary_exit(int status, int signal, struct buf *out);

/* Returns the options that `segue resume` must or can be given after the last stop: "
 * --max-movements N", " --add-budget tokens=N"; or "". Valid until the next record. */
const char *summary_resume_flags(const struct summary *s);

/* Returns the session's use as a new object: from the log, or as added up here. */
json_t *summary_spent(const struct summary *s);

/* Appends "when 2  structured_output 1", in the order of first use. */
void summary_methods(const struct summary *s, struct buf *out);

#endif
