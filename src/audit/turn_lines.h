/* turn_lines.h - sums up records in one line a turn: what ran, where it led, which method decided,
 * and why the stages before it did not. It is fed record by record, live and from a log alike. */
#ifndef SEGUE_AUDIT_TURN_LINES_H
#define SEGUE_AUDIT_TURN_LINES_H

#include "base/buf.h"
#include "core/record.h"
#include "core/spend.h"

struct turn_line { /* texts are raw: make them safe before a terminal sees them */
  struct turn_line *next;
  long turn;
  int run; /* number among its movement's runs, from 1 */
  struct buf movement, provider, what, leads_to, method, why;
  struct buf now;    /* present action, such as "claude  judging: asked again"; or "" */
  struct buf tool;   /* last tool of its call, with the argument; or "" */
  struct buf reason; /* the deciding judge's sentence; or "" */
  struct buf hint;   /* what a sandboxed program says that it was denied; put at the end of `why` */
  int64_t started_ms;   /* real time, by its record */
  int64_t heard_ms;     /* time of the last sign of life: a record, or turn_lines_hear */
  int64_t duration_ms;  /* set when it is judged */
  int64_t told_tokens;  /* reported by the running call so far */
  struct spends spends; /* use of its finished calls */
  long calls;
  long group;     /* a child's group (its turn); else 0 */
  long ran, runs; /* a group's children that have finished, and that are running */
  bool away;      /* its call waits for a provider that is away: `now` says since and until when */
  bool judged;
  bool edits;     /* its agent may change files */
  bool tried;     /* `why` begins with what its program tried that only a person may do */
  bool is_held;   /* something confines the program of its call; */
  bool hides;     /* and what is closed to it is not there */
  bool is_child;  /* the turn belongs to a group */
  bool headed;    /* a group that was named above its children's lines (cli/turns.h) */
  bool has_value; /* `what` tells how its value was made */
};

struct turn_lines {
  char session[40];
  struct buf workflow, cwd;
  struct turn_line *open; /* turns that have no judgment yet */
  struct turn_line done;  /* the last judged turn: see turn_lines_feed */
  long turns;
  int64_t duration_ms;  /* sum over judged turns */
  int names;            /* width of the longest movement's name, in columns */
  json_t *methods;      /* match method -> count */
  struct spends spends; /* use of its calls so far; their purposes are unknown */
  json_t *editors;      /* names of movements whose agents may change files; or NULL */
  json_t *spent;        /* as its last stop or end says; or NULL */
  char status[32];      /* running, stopped, or the outcome of its stop or end */
  bool resumable;       /* its last record is a stop */
  bool asks;            /* that stop waits for a person's answer */
  bool answered;        /* a person answered the stop: somebody may be about to continue */
  /* what people said while it ran, {said, text, by, at, call?, read?}; call: the one that has it,
   * in its prompt or read while it ran; or NULL */
  json_t *said;
  struct buf message; /* why it stopped or ended */
  struct buf stop_class;
  struct buf resume_flags; /* see turn_lines_resume_flags */
  struct buf evidence;     /* what its last check shows, lines; or empty */
  char basis[16];          /* what a complete session rests on; "": unknown */
  char started[32], last_ts[32];
};

/* Returns the turn's line if this record is its judgment (valid until the next call), otherwise
 * NULL.
 */
const struct turn_line *turn_lines_feed(struct turn_lines *s, const struct record *record);
/* Does the same for a record that was read back. */
const struct turn_line *turn_lines_feed_json(struct turn_lines *s, const json_t *json);
/* Notes that a piece of that turn's answer came at this (real) time, which no record says. */
void turn_lines_hear(struct turn_lines *s, long turn, int64_t now_ms);
/* Takes what the turn's command has printed: its last line is shown as a tool's use is. Does
 * nothing for an agent's words. */
void turn_lines_output(struct turn_lines *s, long turn, struct str text);
void turn_lines_deinit(struct turn_lines *s);

/* Returns the time of all turns together, including turns without a judgment. */
int64_t turn_lines_duration(const struct turn_lines *s);

/* Appends how a command ended: "exit 1", "exit 137, killed by SIGKILL". signal 0: it was not
 * killed. */
void turn_lines_exit(int status, int signal, struct buf *out);

/* Appends whom a call waits for, since when, its next attempt, its last one. Returns false if the
 * record is not of an outage. */
bool turn_lines_outage(const struct record *record, struct buf *out);

/* Appends one of `said`: "ada said: TEXT (call 7 has read it)". */
void turn_lines_put_said(const json_t *said, struct buf *out);

/* Returns the options that `segue resume` must or can be given after the last stop: "
 * --max-movements N", " --add-budget tokens=N"; or "". Valid until the next record. */
const char *turn_lines_resume_flags(const struct turn_lines *s);

/* Returns the session's use as a new object: from the log, or as added up here. */
json_t *turn_lines_spent(const struct turn_lines *s);

/* Appends "an expression 2  judge's value 1", in the order of first use. */
void turn_lines_methods(const struct turn_lines *s, struct buf *out);

#endif
