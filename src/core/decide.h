/* decide.h - the pure core: makes records and effects from an event and the state.
 *
 *   core_start(&core, &params, &ev, &env, &out)    a new session
 *   core_decide(&core, &ev, &env, &out)            everything after
 *   -> append out.records (already applied) and make them durable,
 *   -> then, and only then, run out.effects in order
 *
 * No clock, no random source, no I/O: each event carries its time and its random bytes. After a
 * crash, whatever is not in the log is decided again from the same state, so the same records come
 * out. */
#ifndef SEGUE_CORE_DECIDE_H
#define SEGUE_CORE_DECIDE_H

#include "core/capability.h"
#include "core/prompt.h"
#include "core/record.h"
#include "core/state.h"
#include "judge/chain.h"

struct judging_turn {
  struct chain_spec spec;
  json_t *env; /* for when(...); NULL if no rule has one */
  struct chain_reply replies[TURN_JUDGE_CALLS];
  size_t count;
};

/* Returns false while a judge's call is not over; then there is nothing to free. */
bool judging_of(struct judging_turn *j, const struct core *core, const struct turn *turn,
                const struct chain_schemas *schemas);
void judging_deinit(struct judging_turn *j);

enum event_kind {
  EVENT_CALL_END,  /* call, result */
  EVENT_CALL_NEWS, /* call, news_kind, news: a report before its end */
  EVENT_ADMISSION, /* call, admission, reason, until_ms: the host's answer to the call */
  EVENT_TIMER,     /* call: its wait is over; 0: a person's deadline may have passed */
  /* answer: a person's, settled; a stopped session may get one too and stays stopped */
  EVENT_ANSWER,
  /* message, by: what a person says to it; reason: its key, if it came from elsewhere, or NULL;
   * call: the running one whose backend can be told, or 0. A stopped session stays stopped. */
  EVENT_STEER,
  EVENT_CANCEL, /* somebody wants the session gone: final */
  EVENT_STOP,   /* reason: a resumable stop (signal, disk) */
  EVENT_RESUME, /* reason, steer: first event after recovery or a stop */
  /* reason, steer: will be resumed, which is recorded; EVENT_RESUME continues */
  EVENT_ACCEPT,
  EVENT_BEGIN,    /* begins a session that was held after its first record */
  EVENT_WORKTREE, /* call: the child's turn, or 0; news: its outcome; message: why it failed */
  EVENT_HIDDEN,   /* news: what the hidden tests said, see hidden_tests.h */
  EVENT_EVIDENCE, /* call: the turn whose check it is about, or 0; news: the result */
  EVENT_DRAIN,    /* env.draining was set: stops the session when no call is running */
};

/* A person who resumes a session may say this too. All borrowed; NULL: not said. */
struct core_steer {
  const json_t *by;      /* {uid, name}; NULL: nobody, the program itself continues */
  const json_t *config;  /* resolved again, replacing the session's */
  const json_t *changed; /* the settings in it that the person named: {max_movements: 30} */
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
  struct event_away {  /* with CALL_END, ADMISSION and TIMER: what the host knows of an outage */
    int64_t since_ms;  /* wall clock; 0: nothing */
    int tries;         /* attempts of all sessions that failed since */
    int64_t waited_ms; /* how long the call has waited for it, by a clock that nobody sets */
    /* The login is refused, which somebody was told already: the call waits for the next probe. */
    bool held;
  } away;
  const json_t *by; /* with EVENT_STEER; borrowed */
  const struct core_answer *answer;
  bool hold;                      /* with EVENT_ANSWER: make only its record */
  const struct core_steer *steer; /* with EVENT_RESUME and EVENT_ACCEPT; or NULL */
  json_t *cut;    /* with EVENT_RESUME: the part that a person cut off the log, or NULL; borrowed */
  json_t *worker; /* with EVENT_RESUME: the worker that continues, or NULL; borrowed */
};

enum effect_kind {
  EFFECT_START_CALL,  /* call: state has what to send */
  EFFECT_CANCEL_CALL, /* call */
  EFFECT_END_CALL,    /* call, class: cancel it; its EVENT_CALL_END will have this class */
  EFFECT_STEER,       /* call: its backend is told what core_steer_next has */
  EFFECT_TIMER,       /* call, delay_ms: EVENT_TIMER then */
  EFFECT_WORKTREE,    /* call: the child's turn, or 0: do what its struct worktree asks for */
  EFFECT_HIDDEN,      /* run the hidden tests, unless they run already */
  EFFECT_EVIDENCE,    /* call: the turn whose check is looked at, or 0: see core/evidence.h */
  EFFECT_REPORTS,     /* reports are to be files: core/report_file.h has them */
  EFFECT_FINISHED,    /* the session stopped or ended: see the state */
};

struct effect {
  enum effect_kind kind;
  long call;
  int64_t delay_ms;
  enum error_class class;
};

/* Belongs to the caller: the records, each with record_free, and both lists. */
struct core_out {
  struct record **records;
  size_t record_count;
  struct effect *effects;
  size_t effect_count;
};

struct budget_hit;
struct spend;

struct core_env { /* constant, shared by all sessions; all borrowed */
  const struct capability *providers;
  const struct chain_schemas *schemas;
  struct prompt_templates *templates; /* or NULL */
  /* Returns what makes a call repeatable (which scripted reply, which provider session id): a new
   * reference, or NULL. It is pure. token_counts: how often this provider's tokens were used in
   * this session. */
  json_t *(*prepare)(void *ctx, const struct call_request *request, const json_t *token_counts,
                     const unsigned char entropy[16]);
  /* Returns true, with the limit that was reached, if after all that the user's sessions used today
   * no call of this provider may start; else the call is counted as begun. begun: this is the next
   * attempt of a call already counted. NULL: a day has no limit. */
  bool (*day_refuses)(void *ctx, struct str provider, bool begun, struct budget_hit *hit);
  /* Notes that the call's attempt ended with this use. */
  void (*day_count)(void *ctx, const struct call *call, const struct spend *used);
  /* Returns true, once a day, when four fifths of a limit are used. */
  bool (*day_notes)(void *ctx, struct str provider, struct budget_hit *hit);
  /* Returns true if a call of this provider, with the settings that it has now, was ever answered.
   * NULL: the session's own log alone tells. */
  bool (*has_answered)(void *ctx, struct str provider);
  void *ctx;
  bool attended; /* a person is here to be asked, so questions do not stop the session */
  bool draining; /* no new calls; once none is running, the session stops resumably */
};

/* Describes the session that another is forked from, as it was before its waiting movement was
 * entered. All borrowed. */
struct core_parent {
  const struct core *core;
  const char *hash;        /* hash of its last record */
  const struct text *text; /* its last answer */
};

struct core_params {                /* begins a session; all borrowed */
  const struct core_parent *parent; /* or NULL */
  const char *session;
  struct workflow *workflow;
  const char *workflow_path; /* or NULL */
  const struct text *task;
  json_t *config; /* resolved, without secrets: see schemas/session-log.json */
  bool hold;      /* make only the first record; EVENT_BEGIN continues */
  json_t *facets; /* files that facets came from (workflow/facets.h); empty or NULL: none */
};

void core_start(struct core *core, const struct core_params *params, const struct event *ev,
                const struct core_env *env, struct core_out *out);
void core_decide(struct core *core, const struct event *ev, const struct core_env *env,
                 struct core_out *out);

/* Returns whether a session that is not over can be resumed this way. ERR_USAGE says what to write
 * instead. */
bool core_steer_check(const struct core *core, const struct core_steer *steer,
                      struct err *err) MUST_CHECK;

/* Returns whether a person can say this to the session. */
bool core_steer_text_check(const struct core *core, struct str text, struct err *err) MUST_CHECK;
/* Returns true if that was said already which came with the key. */
bool core_steer_has(const struct core *core, const char *key);
/* Returns the running call of an agent's work, the oldest if there are several, and its turn; or
 * NULL. */
struct call *core_steer_call(const struct core *core, struct turn **turn);
/* Returns the call that will have in its prompt what was not read: one that is tried again, or that
 * a movement begins with. 0: nobody knows yet. */
long core_steer_will(const struct core *core);
/* Returns what was said next to that call after the record `after`, and was not read; or NULL. */
const json_t *core_steer_next(const struct core *core, long call, uint64_t after);

/* Gives the backend that this call is for, before any takeover; model may be empty. */
void core_first_backend(const struct core *core, const struct turn *turn, const struct call *call,
                        struct str *provider, struct str *model);
/* Returns the provider that takes over when this call's provider cannot continue; empty: none. Each
 * is tried once. */
struct str core_next_backend(const struct core *core, const struct turn *turn,
                             const struct call *call);

/* Returns whether the call waits for its provider if that is away. */
bool core_waits_for_outage(const struct core *core, const struct call *call);

/* Gives the request of an open call, for its provider. Borrowed from the state. */
void core_request(const struct core *core, const struct turn *turn, const struct call *call,
                  struct call_request *out);

/* Returns the configured model of a provider, for calls that name no model; perhaps empty. */
struct str core_model_of(const json_t *config, struct str provider);
/* Chooses a movement's backend from flags, file and the user's default; model may be empty. */
void core_backend(const struct workflow *wf, const json_t *config, size_t movement,
                  struct str *provider, struct str *model);
/* Does the same for corrections of its value; provider is empty if a command has nobody to ask. */
void core_reask_backend(const struct workflow *wf, const json_t *config, size_t movement,
                        struct str *provider, struct str *model);
/* Returns whether a movement's prompt must show its schema because one of its backends does not
 * enforce it. */
bool core_prompt_schema(const struct workflow *wf, const json_t *config, size_t movement,
                        const struct capability *providers);
/* Chooses its judge's backend; provider is empty if nothing can judge. */
void core_judge_backend(const struct workflow *wf, const json_t *config, size_t movement,
                        struct str *provider, struct str *model);
/* Gives the judge with that vote (from 1) in a movement's panel. */
void core_panel_backend(const struct workflow *wf, const json_t *config, size_t movement, int vote,
                        struct str *provider, struct str *model);
/* Lists the providers that can take over from `first`, in order, for the judge or else for the
 * work; or NULL. Borrowed. */
const json_t *core_takers(const struct workflow *wf, const json_t *config, size_t movement,
                          bool judges, struct str first);
/* Returns true if the judge, and every provider that takes over with the same prompt, has a tool
 * for its value. vote 0: there is no panel. */
bool core_judges_by_tool(const struct workflow *wf, const json_t *config, size_t movement, int vote,
                         const struct capability *providers);

#endif
