/* decide.h - the pure core: an event and the state give records and effects.
 *
 *   core_start(&core, &params, &ev, &env, &out)    a new session
 *   core_decide(&core, &ev, &env, &out)            everything after
 *   -> append out.records (already applied) and make them durable,
 *   -> then, and only then, run out.effects in order
 *   core_out_deinit(&out)
 *
 * No clock, no random source, no I/O: each event carries its time and its random bytes. After a
 * crash, what is not in the log is decided again from the same state, so the same records come
 * out. */
#ifndef SEGUE_CORE_DECIDE_H
#define SEGUE_CORE_DECIDE_H

#include "core/capability.h"
#include "core/prompt.h"
#include "core/record.h"
#include "core/state.h"
#include "judge/chain.h"

enum event_kind {
  EVENT_CALL_END,  /* call, result */
  EVENT_CALL_NEWS, /* call, news_kind, news: what it reports before its end */
  EVENT_ADMISSION, /* call, admission, reason, until_ms: may it go to its provider now? */
  EVENT_TIMER,     /* call: its wait is over; 0: a person's deadline may have passed */
  /* answer: a person's, settled; a stopped session may get one too and stays stopped */
  EVENT_ANSWER,
  EVENT_CANCEL, /* somebody wants the session gone: final */
  EVENT_STOP,   /* reason: a resumable stop (signal, disk) */
  EVENT_RESUME, /* reason, steer: first event after recovery or a stop */
  /* reason, steer: it will be resumed; this is recorded, and EVENT_RESUME goes on */
  EVENT_ACCEPT,
  EVENT_BEGIN,    /* a session that was held after its first record begins */
  EVENT_WORKTREE, /* call: the child's turn, or 0; news: what came of it, or message: why not */
  EVENT_DRAIN,    /* env.draining was set: stops the session when no call is running */
};

/* A person who resumes a session may say this too. All borrowed; NULL: nothing. */
struct core_steer {
  const json_t *by;      /* who: {uid, name}; NULL: nobody, the program itself goes on */
  const json_t *config;  /* resolved again, replacing the session's */
  const json_t *changed; /* what of it the person named: {max_movements: 30} */
  int rule;              /* the verdict for the turn without one; 0: none given */
  const char *why;
};

struct core_answer;

struct event {
  enum event_kind kind;
  int64_t time_ms;           /* wall clock */
  unsigned char entropy[16]; /* fresh random bytes: fences, jitter, provider session ids */
  long call;
  struct call_result *result; /* borrowed; its texts may be taken */
  enum admission_answer admission;
  int64_t until_ms;      /* wall clock; 0: not known */
  const char *news_kind; /* session, tool, usage, retry, permission, note */
  const json_t *news;    /* object or NULL; borrowed */
  const char *reason;
  const char *message;
  const struct core_answer *answer;
  bool hold;                      /* with EVENT_ANSWER: only its record is made */
  const struct core_steer *steer; /* of EVENT_RESUME and EVENT_ACCEPT; or NULL */
  json_t *cut;    /* with EVENT_RESUME: what a person cut off the log, or NULL; borrowed */
  json_t *worker; /* with EVENT_RESUME: the worker that goes on, or NULL; borrowed */
};

enum effect_kind {
  EFFECT_START_CALL,  /* call: state has what to send */
  EFFECT_CANCEL_CALL, /* call */
  EFFECT_END_CALL,    /* call, class: it is cancelled, and its EVENT_CALL_END says this class */
  EFFECT_TIMER,       /* call, delay_ms: EVENT_TIMER then */
  EFFECT_WORKTREE,    /* call: the child's turn, or 0: what its struct worktree asks for */
  EFFECT_REPORTS,     /* reports are to be files: core/kept.h has them */
  EFFECT_FINISHED,    /* the session stopped or ended: see the state */
};

struct effect {
  enum effect_kind kind;
  long call;
  int64_t delay_ms;
  enum error_class class;
};

struct core_out {
  struct record **records; /* owned */
  size_t record_count;
  struct effect *effects;
  size_t effect_count;
};
void core_out_deinit(struct core_out *out);

struct budget_hit;
struct spend;

struct core_env { /* constant, shared by all sessions; all borrowed */
  const struct capability *providers;
  const struct chain_schemas *schemas;
  struct prompt_templates *templates; /* or NULL */
  /* Pure: returns what makes a call repeatable (which scripted reply, which provider session id).
   * token_counts: how often this provider's tokens were used in this session. New reference or
   * NULL. */
  json_t *(*prepare)(void *ctx, const struct call_request *request, const json_t *token_counts,
                     const unsigned char entropy[16]);
  /* True, with the limit that was reached: after all that the user's sessions used today, no call
   * of this provider may start. begun: this is the next attempt of a call already counted. NULL: a
   * day is not bounded. */
  bool (*day_refuses)(void *ctx, struct str provider, bool begun, struct budget_hit *hit);
  /* A call of this provider begins (begun: 1), or an attempt ended having used this. */
  void (*day_count)(void *ctx, struct str provider, const struct spend *used);
  /* Four fifths of a limit are used by now: true once a day. */
  bool (*day_notes)(void *ctx, struct str provider, struct budget_hit *hit);
  void *ctx;
  bool attended; /* a person is here to be asked, so questions do not stop the session */
  bool draining; /* no new calls; once none is running, the session stops resumably */
};

/* The session that another is forked from, as it was before its waiting movement was entered. All
 * borrowed. */
struct core_parent {
  const struct core *core;
  const char *hash;        /* of its last record */
  const struct text *text; /* its last answer */
};

struct core_params {                /* of a new session; all borrowed */
  const struct core_parent *parent; /* or NULL */
  const char *session;
  struct workflow *workflow;
  const char *workflow_path; /* or NULL */
  const struct text *task;
  json_t *config; /* resolved, without secrets: see schemas/session-log.json */
  bool hold;      /* makes only the first record; EVENT_BEGIN goes on */
  json_t *facets; /* the files that facets came from (workflow/facets.h); empty or NULL: none */
};

void core_start(struct core *core, const struct core_params *params, const struct event *ev,
                const struct core_env *env, struct core_out *out);
void core_decide(struct core *core, const struct event *ev, const struct core_env *env,
                 struct core_out *out);

/* Can a session that is not over be resumed this way? ERR_USAGE says what to write instead. */
bool core_steer_check(const struct core *core, const struct core_steer *steer,
                      struct err *err) MUST_CHECK;

/* The key of the conversation of a movement with a provider, in core.sessions. */
void core_session_key(const struct movement *m, struct str provider, bool common, struct buf *out);
/* Whom this call is for, before anybody took over; model may be empty. */
void core_first_backend(const struct core *core, const struct turn *turn, const struct call *call,
                        struct str *provider, struct str *model);
/* Names of parameters that this model refused in the session so far, or NULL; and adds one. */
const json_t *core_refused(const struct core *core, struct str provider, struct str model);
void core_refuse(struct core *core, const struct call *call, const json_t *name);
/* The provider that takes over when this call's cannot go on; empty: none. Each is tried once. */
struct str core_next_backend(const struct core *core, const struct turn *turn,
                             const struct call *call);

/* The request of a call that is open: what to hand to its provider. Borrowed from the state. */
void core_request(const struct core *core, const struct turn *turn, const struct call *call,
                  struct call_request *out);

/* Chooses what a movement runs on, after flags, file and the user's default; model may be empty. */
void core_backend(const struct workflow *wf, const json_t *config, size_t movement,
                  struct str *provider, struct str *model);
/* The same for the corrections of its value; provider is empty when a command has no one to ask. */
void core_reask_backend(const struct workflow *wf, const json_t *config, size_t movement,
                        struct str *provider, struct str *model);
/* Must a movement's prompt show its schema because one of its backends does not enforce it? */
bool core_prompt_schema(const struct workflow *wf, const json_t *config, size_t movement,
                        const struct capability *providers);
/* The same for its judge; provider is empty when nothing can judge. */
void core_judge_backend(const struct workflow *wf, const json_t *config, size_t movement,
                        struct str *provider, struct str *model);
/* The judge with that vote (from 1) in a movement's panel. */
void core_panel_backend(const struct workflow *wf, const json_t *config, size_t movement, int vote,
                        struct str *provider, struct str *model);
/* Lists the providers that can take over from `first`, in order, for the judge or else for the
 * work; or NULL. Borrowed. */
const json_t *core_takers(const struct workflow *wf, const json_t *config, size_t movement,
                          bool judges, struct str first);
/* True if the judge, and every provider that takes over with the same prompt, have a tool for its
 * value. vote 0: there is no panel. */
bool core_judges_by_tool(const struct workflow *wf, const json_t *config, size_t movement, int vote,
                         const struct capability *providers);

#endif
