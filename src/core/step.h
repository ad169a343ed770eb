/* step.h - defines one decision in the making, shared by its parts; internal to the core.
 *
 * decide.c dispatches events and makes a movement's value. Every record goes out through step_emit:
 * made, applied, appended, in this order. */
#ifndef SEGUE_CORE_STEP_H
#define SEGUE_CORE_STEP_H

#include "core/budget.h"
#include "core/decide.h"
#include "core/prompt.h"
#include "core/record.h"

/* Returns a new reference; NULL if the workflow has no outputs. `view` may be any movement's. */
json_t *outputs_make(const struct prompt_view *view);

/* Holds everything a decision reads and writes. */
struct step {
  struct core *core;
  const struct event *ev;
  const struct core_env *env;
  struct core_out *out;
  struct workflow *workflow;    /* for a session that starts */
  const struct text *task;      /* likewise */
  const struct text *carried;   /* likewise for a forked session: its parent's last answer */
  char time[RECORD_TIME_BYTES]; /* time of all records of this decision */
  struct step_halt {            /* a turn that cannot continue; reason NULL: there is none */
    const char *reason;
    const struct turn *turn;
    enum error_class class;
    struct buf message;
    json_t *question;
    json_t *budget; /* the used-up budget, or NULL */
  } halt;
  bool refused; /* a budget kept a call from starting */
  bool asks;    /* a turn waits only for a person */
};

/* These begin a record with the event's time; the second also with its turn. */
void step_record(const struct step *s, struct record_draft *d, enum record_type type);
void step_turn_record(const struct step *s, struct record_draft *d, enum record_type type,
                      const struct turn *turn);
/* Puts the text inline, or its rendering with the blob that holds it. */
void step_put_text(struct record_draft *d, enum member key, const struct text *text);
/* Keeps the record, applies it and appends it. */
void step_emit(struct step *s, struct record_draft *d);
void step_effect(struct step *s, enum effect_kind kind, long call, int64_t delay_ms);

/* Ends the session, or stops it resumably; running calls are cancelled. message may be NULL or
 * empty; question is for a person, taken, or NULL. step_fail stops because the turn has no rule. */
void step_end(struct step *s, enum session_outcome outcome, const char *message);
void step_fail(struct step *s, const struct turn *turn);
/* Ends the turn for an error of that class if the movement's on_error says where it leads, unless
 * protected files were changed or too many turns before failed, too. Returns false if it does
 * not. */
bool step_take_error_way(struct step *s, struct turn *turn, enum error_class class,
                         struct str message);
/* Halts this turn until somebody resumes, unless its error leads on. What its siblings have begun
 * is finished first; once nothing is running, the session stops for the first turn that halted. A
 * child whose provider failed is no reason to stop: its turn ends. Returns whether a record was
 * made; takes the question. */
bool step_halt(struct step *s, const char *reason, struct turn *turn, enum error_class class,
               struct str message, json_t *question);
void step_forget_halt(struct step *s);
/* Ends a child's turn: with its rule (outcome NULL), or with that outcome and its message. Calls of
 * siblings that are no longer wanted are cancelled. */
void step_end_child(struct step *s, struct turn *turn, const char *outcome, struct str message,
                    enum error_class class);
void step_stop(struct step *s, const char *reason, const struct turn *turn, enum error_class class,
               struct str message, json_t *question);

/* Halts the turn and returns true if its budget, or the user's for the day, lets no call of it
 * start at that provider (call: the one to be repeated, wherever it now goes). */
bool step_over_budget(struct step *s, struct turn *turn, const struct call *call,
                      struct str provider);
/* Returns the provider that a repeated call goes to. */
struct str step_next_place(const struct call *call);
/* Stops the session for a used-up budget. */
void step_stop_budget(struct step *s, const struct turn *turn, const struct budget_hit *hit);

/* Gathers what a prompt of this turn can show. nonce: for judge prompts, or NULL. */
void step_view(const struct step *s, const struct turn *turn, const char *nonce,
               struct prompt_view *view);

/* --- calls --- */

/* Holds the parts of a call to be made, which take their ownership along. */
struct step_call {
  enum call_purpose purpose;
  enum judge_stage stage;
  int vote;                     /* number in a panel, from 1; else 0 */
  int invariant;                /* checked invariant, from 1 */
  int report;                   /* report asked for, from 1 */
  const char *provider_session; /* conversation that a report's call continues; or NULL */
  struct str provider, model;
  struct str mark;          /* the word that it asks for; or empty */
  struct str fence;         /* the random word around a judged report; or empty */
  json_t *options, *schema; /* taken; may be NULL */
  uint64_t timeout_ms;
  struct prompt prompt; /* taken */
  json_t *said;         /* records in front of it that a person said, see steer.h: taken; or NULL */
};
void step_start_call(struct step *s, struct turn *turn, struct step_call *n);
void step_drop_call(struct step_call *n); /* frees what one has that is not to be made */
/* Returns how many milliseconds the next call of the movement's work may take: what its time budget
 * leaves, at least 1 and at most `most`. */
int64_t step_time_left(const struct step *s, const struct turn *turn, int64_t most);
/* Starts the same call again. `repeats`: the last attempt may have been sent (a crash), so it keeps
 * its token; otherwise the wait after a failure is over and the provider prepares again. */
void step_restart_call(struct step *s, struct turn *turn, struct call *call, bool repeats);
/* Returns the program of a command movement, or of an invariant that is a command; else NULL. */
const char *const *step_argv(const struct movement *m, enum call_purpose purpose, int invariant);
bool step_is_command(const struct core *core, const struct turn *turn, const struct call *call);

/* Handles EVENT_CALL_END: records the result, or waits for another attempt. */
void step_call_end(struct step *s);
/* Handles EVENT_ADMISSION: the host makes the call wait, lets it start, or sends it elsewhere. */
void step_admission(struct step *s);
/* Handles EVENT_CALL_NEWS: reports of a call before its end; beyond the bound they are left out. */
void step_call_news(struct step *s);

#endif
