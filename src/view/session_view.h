/* session_view.h - reads one session as pages, reports and `show --as view` show it, from its log
 * in one pass, with each record checked against the chain.
 *
 *   view_session_read(&v, &ref, &err)     takes time in proportion to the log: never on a loop
 *   view_session_json(&v)                 as schemas/view.json says
 *   view_session_deinit(&v)               accepts a zeroed one
 *
 * All texts are raw, as the log has them, and live in the view's arena; a writer makes them safe
 * for its own output. A text longer than LIMIT_VIEW_TEXT_BYTES is cut and says so at its end; for
 * the task, task_more_bytes says so. Times are real times in ms since 1970. Records after a damaged
 * one are in the view too, marked `unproven`: nothing vouches for them. */
#ifndef SEGUE_VIEW_SESSION_VIEW_H
#define SEGUE_VIEW_SESSION_VIEW_H

#include "audit/verified_reader.h"
#include "base/arena.h"
#include "base/err.h"
#include "core/spend.h"
#include "core/workflow.h"
#include "store/store.h"

#include <jansson.h>

/* A turn spends its time on these. */
enum view_span_kind {
  VIEW_WORK,
  VIEW_JUDGING,
  VIEW_WAITING, /* waits for a place at its provider */
  /* waits for the next attempt, after a failure or while its provider must be left alone */
  VIEW_RETRY,
  VIEW_PERSON, /* waits for an answer */
  VIEW_SPAN_KINDS
};
const char *view_span_name(enum view_span_kind kind); /* work, judging, waiting, retry, person */

struct view_span {
  enum view_span_kind kind;
  int64_t from_ms, to_ms;
};

struct view_stage {
  struct str stage, outcome;
  struct str why;      /* its first error, or else the class of its error; or empty */
  struct str provider; /* the provider asked, or empty */
  long vote;           /* number in a panel, from 1; 0: no vote */
  long calls;
  int64_t duration_ms;
};

/* Says what an open turn does or waits for. */
struct view_doing {
  enum view_span_kind kind;     /* VIEW_SPAN_KINDS: the turn is between two calls */
  int64_t since_ms, until_ms;   /* 0: not known */
  int64_t away_ms, gives_up_ms; /* of an outage: since when, until when; 0: there is none */
  struct str waits_for;         /* reason of a wait, or the class of the error; or empty */
  long waiting;                 /* number of its calls that wait for a place */
  int64_t told_tokens;          /* reported by its running call so far */
};

struct view_turn {
  long turn, run; /* run: number among the movement's runs, from 1 */
  long parent;    /* the group's turn; 0: none */
  struct str movement, provider;
  struct str what; /* describes in a few words what its call did */
  /* the next movement, or "-"; while it is open its present action, or empty */
  struct str leads_to;
  struct str method;    /* the match method; without a rule the reason for that */
  struct str why;       /* says why the earlier stages did not decide */
  struct str reason;    /* the deciding judge's sentence, or empty */
  struct str condition; /* the rule's condition */
  long rule;            /* 0: none */
  bool over;            /* it was judged, or ended without a judgment */
  bool judged;          /* a rule was chosen */
  bool ambiguous, unproven;
  bool tried;        /* `why` begins with what its program tried that only a person may do */
  long failed_calls; /* attempts that ended with an error, except cancelled ones */
  int64_t started_ms, duration_ms;
  struct view_doing *doing; /* for an open turn; NULL: it is over */
  struct spend spend;
  long files; /* files changed, counted once for each call */
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
  struct str name, who; /* who: the command, or the provider named; or empty */
  long runs;
  bool open; /* one of its turns is open */
  int64_t duration_ms;
  struct spend spend;
  struct view_rule *rules; /* after the rules the entries of on_error, with a class as condition */
  size_t rule_count, error_count;
};

/* Returns true if a call of the turn failed, no rule was found for it, or it led to ABORT. */
bool view_turn_failed(const struct view_turn *t);

/* Each of these would stop a session. */
enum view_bound_kind {
  VIEW_BOUND_MOVEMENTS,
  VIEW_BOUND_BUDGET,
  VIEW_BOUND_LOOP,          /* rounds of a watched cycle before it is judged */
  VIEW_BOUND_SAME_MOVEMENT, /* entries in a row before it stops */
  VIEW_BOUND_SAME_FAILURE,  /* equal failures of its command before it stops */
  VIEW_BOUND_SAME_TOOL,     /* equal uses by its call before that is ended */
  VIEW_BOUND_CALL,          /* the open call's budget, over all attempts */
  VIEW_BOUND_TIMEOUT,       /* the running call's */
  VIEW_BOUND_STALL,         /* silence, in ms, after which its running call is ended */
  VIEW_BOUND_DEADLINE,      /* a question's, after which its default is taken */
  VIEW_BOUND_KINDS
};
const char *view_bound_name(enum view_bound_kind kind); /* movements, budget, ... */
bool view_bound_has_time(enum view_bound_kind kind);    /* it has until_ms, not numbers */

enum { VIEW_BOUND_COUNT = 64 };

struct view_bound {
  enum view_bound_kind kind;
  enum budget_unit unit; /* for movements and budgets */
  struct str of;         /* the movement, or the cycle's movements; empty: the session */
  int64_t used, limit;   /* in the unit, or in rounds */
  int64_t until_ms;      /* end of a deadline or a timeout */
};

enum view_chain { VIEW_SOUND, VIEW_TORN, VIEW_BAD };
const char *view_chain_name(enum view_chain chain); /* sound, torn, bad */

struct view_reading;
struct view_session {
  struct arena arena;
  struct view_reading *reading; /* holds what is said of open turns; owned */
  char id[40];
  struct str log; /* its log, by the name that people use */
  struct str workflow, workflow_path, task, message;
  size_t task_more_bytes; /* rest of the task, which is left out */
  uint64_t task_seq;      /* the record that has the whole task, at /task */
  struct str forked_from; /* id of the session that it was forked from, or empty */
  struct str status;      /* running, waiting, stopped, open, or how it ended */
  struct str basis;       /* what a complete session rests on, or empty */
  struct str evidence;    /* what its last check shows: lines, or empty */
  bool resumable, submitted;
  bool misnamed;           /* its log has the name of another session's */
  bool newer;              /* a record is of a later version than this program knows */
  struct str resume_flags; /* options that `segue resume` must or can be given, or empty */
  bool asked;              /* a person was asked something, answered or not */
  int64_t started_ms, last_ms;
  int64_t turns_ms; /* sum over its turns */
  struct view_turn *turns;
  size_t turn_count;
  const size_t *open; /* its open turns, oldest first, as indexes into `turns` */
  size_t open_count;
  struct view_bound *bounds; /* none when it is over */
  size_t bound_count;
  long turns_left_out;             /* turns beyond LIMIT_VIEW_TURN_COUNT */
  struct view_movement *movements; /* none: this program cannot build its workflow */
  size_t movement_count;
  json_t *spent;   /* as session_end says */
  json_t *methods; /* match method -> count; or NULL */
  json_t *said;    /* what people said while it ran, as struct turn_lines has it; or NULL */
  enum view_chain chain;
  uint64_t records; /* number of sound records */
  uint64_t torn_bytes;
  struct str damage; /* fault of record `records` + 1; or empty */
};

bool view_session_is_over(const struct view_session *v); /* it has ended for good */

/* Reads a session. False: its log cannot be opened, or holds no record that begins a session. */
bool view_session_read(struct view_session *v, const struct store_ref *ref,
                       struct err *err) MUST_CHECK;

/* The same from a book that is open at its start, and again each time verified_again found
 * more:
 *   v->reading = view_reading_new(v); view_reading_go_on(v->reading, &book, &err); ...
 * What it says of open turns is renewed each time. A damaged book is read only once. */
struct view_reading *view_reading_new(struct view_session *v);
bool view_reading_go_on(struct view_reading *r, struct verified_reader *book,
                        struct err *err) MUST_CHECK;
json_t *view_session_json(const struct view_session *v);
void view_session_deinit(struct view_session *v);

#endif
