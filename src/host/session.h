/* session.h - one session: hands events to the core, makes its decisions durable and carries out
 * their effects; internal to the host.
 *
 * host.c starts, opens and ends sessions. A batch goes session_flush -> session_run_effects -> a
 * provider -> session_call_done -> session_event -> session_flush, and so on. */
#ifndef SEGUE_HOST_SESSION_H
#define SEGUE_HOST_SESSION_H

#include "base/list.h"
#include "core/budget.h"
#include "core/call.h"
#include "core/workflow.h"
#include "host/changes.h"
#include "host/host.h"
#include "os/process.h"

#include <uv.h>

/* Holds a decision's records and the effects that wait for them. */
struct session_batch {
  struct record **records; /* while in flight, kept only for a watcher: the store has their lines */
  size_t record_count;
  struct effect *effects;
  size_t effect_count;
  bool follows; /* it has what follows at once from the end of a call in a tree */
};

struct open_call { /* a started call */
  struct list_node in_session;
  struct session *session;
  long call;
  struct provider_run *run;
  const struct provider *provider;
  bool admitted; /* holds a place at the gate */
  bool probe;    /* it tries whether its provider is back */
  bool direct;   /* it did not wait for that */
  struct call_request request;
  char *provider_session;   /* the request's; the state's may change while the call runs */
  struct changes *changes;  /* changes that it makes in the working tree, or NULL: not tracked */
  char *own_folder;         /* what was below .segue before it; or NULL: it is not asked */
  struct head_watch *head;  /* where HEAD is before and after it, or NULL: it is not asked */
  bool awaits_tree;         /* its worktree is being made again */
  long tree;                /* the turn whose worktree that is, or 0 */
  bool cancelled;           /* cancelled before its provider was started */
  enum error_class ends_as; /* class of a cancel that the core asked for; or CLASS_NONE */
  struct provider_env *env; /* the session's, or its movement's folder's */
  const char *top;          /* top of what it may change: the session's folder, or its worktree's */
  int64_t started_ms;       /* real time */
  uint64_t steered;  /* record of the last thing that a person said and its backend was told */
  bool looks, tells; /* its changes have to be found out; its provider reports them */
  bool follows;      /* it begins in the step in which another one ended */
  uv_timer_t late;
  struct event_away away;    /* what the gate knew at its end */
  struct call_result result; /* while its blobs are written */
  struct err *blob_err;      /* why a blob could not be written */
  uint64_t full_since;       /* like the session's, for its blobs */
};

struct grant { /* the gate admitted a queued call; it starts when the record of that is durable */
  struct list_node in_session;
  long call;
  char *provider;
  bool probe;
  enum error_class gave_up; /* it must not go: its provider was away for too long */
};

struct work_place { /* a folder other than the session's that a movement works in */
  struct work_place *next;
  char *cwd;
  struct provider_env env;
};

struct wait { /* a timer for a call's next attempt */
  struct list_node in_session;
  struct session *session;
  long call;
  uv_timer_t timer;
};

#define SESSION_LIVES(X)                                                                           \
  /* within host_start, host_open or host_go: nobody is told anything yet */                       \
  X(OPENING, SL(RUNNING) | SL(FINISHED))                                                           \
  X(RUNNING, SL(OPENING) | SL(STOPPING) | SL(FINISHING) | SL(BROKEN))                              \
  /* somebody wants it to end, or waits for its answer: do not wait for a full disk any longer */  \
  X(STOPPING, SL(FINISHING) | SL(BROKEN))                                                          \
  /* its last record is durable; what is under way is being cancelled */                           \
  X(FINISHING, SL(BROKEN) | SL(FINISHED))                                                          \
  /* its log failed: the same, and nothing more leaves it */                                       \
  X(BROKEN, SL(FINISHED))                                                                          \
  /* its watcher was told */                                                                       \
  X(FINISHED, 0)

enum session_life {
#define SL_ENUM(name, next) LIFE_##name,
  SESSION_LIVES(SL_ENUM)
#undef SL_ENUM
};

struct session {
  struct host *host;
  enum session_life life;
  struct core core;
  uint64_t recovered_seq;       /* seq of the last record that was read back; 0 in a new session */
  struct store_log *log;        /* NULL: not kept */
  bool hurries;                 /* a person resumed it: its next call tries a refused login */
  bool recalled;                /* the prompts of open calls are in memory */
  bool may_have_leftovers;      /* read back: its last owner may have been killed with its shims */
  uint64_t sealed_seq;          /* seq of the last record that went to the ledger */
  struct ledger_entry cut_head; /* last record that was left then */
  /* The part that a person cut off its end, or NULL; session_resume records it. */
  json_t *cut;
  struct session_setup setup;
  const struct provider_registry *registry;
  const char *own_folders[2]; /* the logs; NULL-terminated */
  struct provider_env env;
  size_t scenario_used;
  const struct watcher *watcher;
  void *watcher_ctx;
  struct session_batch filling, flying;
  bool in_flight;
  uint64_t full_since; /* uv_now when the disk was first found full; 0: it is not */
  char *paused;        /* message of that time */
  bool paused_full;    /* the disk is full; else a shared store did not answer */
  struct work_place *places;
  struct folder_right *folder;   /* right to edit; NULL: it has none, or needs none */
  bool folder_free;              /* its folder has no rights, so it edits without one */
  json_t *reports_written;       /* file -> SHA-256 as last written; or NULL */
  bool follows;                  /* runs the effects of such a batch */
  struct changes_seen seen;      /* what stood in its folder after its last call */
  char *unseen;                  /* why its calls' changes are no longer tracked, or NULL */
  struct budget_hit cap_hit;     /* cap of a shared store that was reached; limit 0: none was */
  struct list calls;             /* struct open_call */
  struct list waits;             /* struct wait */
  struct list grants;            /* struct grant */
  struct hidden_run *hidden;     /* its hidden tests, while they run; or NULL */
  struct list jobs;              /* struct git_job */
  struct evidence_job *evidence; /* the one under way, or NULL */
  uv_timer_t disk_timer;         /* the next try on a full disk */
  uv_timer_t soon; /* reports from the loop what ended while OPENING; gathers batches */
  enum store_result now_result; /* result of an append on the loop's thread, until `soon` */
  struct buf now_lines;
  struct err *now_err;
  uint64_t append_us;    /* when the one in flight began */
  unsigned pool_appends; /* further appends that go to the pool: the disk was slow */
  int open_handles;
  unsigned delivering; /* calls that ended and are being reported; and one while it hears */
  /* The last thing that was said to it elsewhere, as its store keeps it, and the record of that. */
  char *heard;
  uint64_t heard_seq;
  bool hears;
  struct err *broken_err; /* why it is BROKEN, or was before it was FINISHED */
};

struct session *session_new(struct host *host, const struct watcher *watcher, void *ctx);
/* Starts the core, and sends the first batch on its way. */
void session_begin(struct session *s, const struct core_params *params);
void session_set_life(struct session *s, enum session_life life);
/* Returns true if nothing new begins in it. */
bool session_is_leaving(const struct session *s);
/* Hands the core an event; what it decides joins the batch being filled. */
void session_event(struct session *s, struct event *ev);
/* Breaks the session: from now on nothing leaves it, and the log is all there is. append_over: no
 * append will call back. */
void session_break(struct session *s, const struct err *err, bool append_over);
static inline void session_trouble(const struct session *s, const char *message) {
  if (s->watcher && s->watcher->trouble)
    s->watcher->trouble(s->watcher_ctx, message);
}
/* Gives the durable record that its log ends with. */
void session_head(const struct session *s, enum ledger_kind kind, struct ledger_entry *head);

/* Tells the watcher that the session is over, once nothing of it is under way. */
void session_maybe_finish(struct session *s);

struct open_call *session_open_call(struct session *s, long id);
/* Takes the result of a provider's call. Texts that a log cannot hold inline go to blobs first;
 * without a store they are rendered readable. */
void session_call_done(void *open_call, struct call_result *result);
/* Takes the gate's answer: a waiting call was admitted, or must go elsewhere. */
void session_on_gate(void *session, long id, enum admission_answer answer,
                     const struct admission_why *why);

#endif
