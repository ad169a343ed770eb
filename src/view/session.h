/* session.h - one session as pages, reports and `show --as view` show it, read from its log in one
 * pass, with each record checked against the chain.
 *
 *   view_session_read(&v, &ref, &err)     reads; takes as long as the log is big: never on a loop
 *   view_session_json(&v)                 as schemas/view.json says
 *   view_session_deinit(&v)               accepts a zeroed one
 *
 * All texts are raw, as the log has them, and live in the view's arena; a writer makes them safe
 * for where it writes. One longer than LIMIT_VIEW_TEXT_BYTES is cut and says so at its end; of the
 * task, task_more_bytes says it. Times are real ones in ms since 1970. Records after a damaged one
 * are in the view too, marked `unproven`: nothing vouches for them. */
#ifndef SEGUE_VIEW_SESSION_H
#define SEGUE_VIEW_SESSION_H

#include "audit/book.h"
#include "base/arena.h"
#include "base/err.h"
#include "core/spend.h"
#include "core/workflow.h"
#include "store/store.h"

#include <jansson.h>

/* A turn's time is spent on these. */
enum view_span_kind {
  VIEW_WORK,
  VIEW_JUDGING,
  VIEW_WAITING, /* for a place at its provider */
  VIEW_RETRY,   /* an attempt failed, or its provider is to be left alone: it is not due yet */
  VIEW_PERSON,  /* for an answer */
  VIEW_SPAN_KINDS
};
const char *view_span_name(enum view_span_kind kind); /* work, judging, waiting, retry, person */

struct view_span {
  enum view_span_kind kind;
  int64_t from_ms, to_ms;
};

struct view_stage {
  struct str stage, outcome;
  struct str why;      /* its first error, else the class of its error; or empty */
  struct str provider; /* the one asked; or empty */
  long vote;           /* of a panel, from 1; 0: none */
  long calls;
  int64_t duration_ms;
};

/* An open turn does this, or waits for it. */
struct view_doing {
  enum view_span_kind kind;   /* VIEW_SPAN_KINDS: it is between two calls */
  int64_t since_ms, until_ms; /* 0: not known */
  struct str waits_for;       /* of a wait: the reason, or the class of the error; or empty */
  long waiting;               /* its calls that wait for a place */
  int64_t told_tokens;        /* by the call that runs, so far */
};

struct view_turn {
  long turn, run; /* run: of its movement, from 1 */
  long parent;    /* the turn of its group; 0: none */
  struct str movement, provider;
  struct str what;      /* what its call did, in a few words */
  struct str leads_to;  /* the next movement, "-"; while it is open: what it does now, or empty */
  struct str method;    /* the match method; of one without a rule why it has none */
  struct str why;       /* why the stages before did not decide */
  struct str condition; /* condition of its rule */
  long rule;            /* 0: none */
  bool over;            /* it was judged, or ended without */
  bool judged;          /* by a rule */
  bool ambiguous, unproven;
  long failed_calls; /* attempts that ended with an error; those that were cancelled do not count */
  int64_t started_ms, duration_ms;
  struct view_doing *doing; /* of an open one; NULL: it is over */
  struct spend spend;
  long files; /* changed by its calls, counted for each call */
  struct view_span *spans;
  size_t span_count;
  struct view_stage *stages;
  size_t stage_count;
};

struct view_rule {
  struct str condition, next;
  long taken;
};

struct view_movement {
  struct str name, who; /* who: the command, or the provider that it names; or empty */
  long runs;
  bool open; /* a turn of it is open now */
  int64_t duration_ms;
  struct spend spend;
  struct view_rule *rules;
  size_t rule_count;
};

/* True if one of its calls failed, no rule was found for it, or it led to ABORT. */
bool view_turn_failed(const struct view_turn *t);

/* A session would be stopped by one of these, see view/bounds.h. */
enum view_bound_kind {
  VIEW_BOUND_MOVEMENTS,
  VIEW_BOUND_BUDGET,
  VIEW_BOUND_LOOP,          /* rounds of a watched cycle, until it is judged */
  VIEW_BOUND_SAME_MOVEMENT, /* entered so often in a row; then it stops */
  VIEW_BOUND_SAME_FAILURE,  /* its command failed so often alike; then it stops */
  VIEW_BOUND_SAME_TOOL,     /* used so often alike by its call, which then is ended */
  VIEW_BOUND_CALL,          /* budget of its open call, with all its attempts */
  VIEW_BOUND_TIMEOUT,       /* of its running call */
  VIEW_BOUND_DEADLINE,      /* of a question; then its default is taken */
  VIEW_BOUND_KINDS
};
const char *view_bound_name(enum view_bound_kind kind); /* movements, budget, ... */
bool view_bound_has_time(enum view_bound_kind kind);    /* it has until_ms, and no numbers */

enum { VIEW_BOUND_COUNT = 64 };

struct view_bound {
  enum view_bound_kind kind;
  enum budget_unit unit; /* of movements and budgets */
  struct str of;         /* the movement, the cycle's movements; empty: the session */
  int64_t used, limit;   /* in the unit; rounds */
  int64_t until_ms;      /* of a deadline or a timeout */
};

enum view_chain { VIEW_SOUND, VIEW_TORN, VIEW_BAD };
const char *view_chain_name(enum view_chain chain); /* sound, torn, bad */

struct view_reading;
struct view_session {
  struct arena arena;
  struct view_reading *reading; /* has what is told of open turns; owned */
  char id[40];
  struct str log; /* its log, as a person names it */
  struct str workflow, workflow_path, task, message;
  size_t task_more_bytes; /* of the task, which are not here */
  uint64_t task_seq;      /* the record that has all of it, at /task */
  struct str forked_from; /* the id of the session that it was forked from; or empty */
  struct str status;      /* running, waiting, stopped, open, or how it ended */
  bool resumable, submitted;
  bool newer;              /* a record is of a later version than this program knows */
  struct str resume_flags; /* what `segue resume` must or can be given; or empty */
  bool asked;              /* a person was asked something, whether or not that was answered */
  int64_t started_ms, last_ms;
  int64_t turns_ms; /* sum over its turns */
  struct view_turn *turns;
  size_t turn_count;
  const size_t *open; /* the turns that are open, oldest first: where they stand in `turns` */
  size_t open_count;
  struct view_bound *bounds; /* none when it is over */
  size_t bound_count;
  long turns_left_out;             /* beyond LIMIT_VIEW_TURN_COUNT */
  struct view_movement *movements; /* none: its workflow cannot be built by this program */
  size_t movement_count;
  json_t *spent;   /* as session_end tells it */
  json_t *methods; /* match method -> count; or NULL */
  enum view_chain chain;
  uint64_t records; /* sound ones */
  uint64_t torn_bytes;
  struct str damage; /* what is wrong with record `records` + 1; or empty */
};

bool view_session_is_over(const struct view_session *v); /* for good */

/* False: it cannot be opened, or holds no record that begins a session. */
bool view_session_read(struct view_session *v, const struct store_ref *ref,
                       struct err *err) MUST_CHECK;

/* The same from a book that is open at its start, and again each time book_again found more:
 *   v->reading = view_reading_new(v); view_reading_go_on(v->reading, &book, &err); ...
 * What it says of open turns is renewed each time. A damaged book is read only once. */
struct view_reading *view_reading_new(struct view_session *v);
bool view_reading_go_on(struct view_reading *r, struct book *book, struct err *err) MUST_CHECK;
json_t *view_session_json(const struct view_session *v);
void view_session_deinit(struct view_session *v);

#endif
