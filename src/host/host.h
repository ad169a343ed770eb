/* host.h - runs sessions on one loop: appends records, and runs effects only once they are durable.
 *
 *   host_init(&host, loop, store, registry, &err)
 *   s = host_start(&host, &params, &watcher, ctx, &err)       a new session
 *   s = host_open(&host, &ref, &watcher, ctx, &err)           one from its log; then
 *       host_go or host_cancel
 *   host_stop(s, reason, message) / host_cancel(s)            from signals and requests
 *   uv_run(loop, UV_RUN_DEFAULT)
 *   watcher.finished(ctx, s)                                  stopped, ended or broken; then
 *   session_free(s)                                           (not from within a watcher call)
 *   host_deinit(&host)                                        all sessions freed
 *
 * DESIGN, durability. The records of a decision are kept in a batch with their effects. Each log
 * has one batch in flight; what is decided meanwhile gathers in the next. When the sync has
 * returned, watchers see the records, and then the effects run in order. On a full disk the batch
 * is kept, watcher.trouble says so, and it is tried again every LIMIT_DISK_RETRY_MS for at most
 * disk_full_wait_ms. After that, or after any other failed append, the session is broken: nothing
 * more leaves it, its calls are cancelled, and its log ends at the last durable record, from which
 * it can be resumed.
 *
 * --- workflows that sessions share ---
 *
 * Keeps one workflow in memory for all sessions that run it.
 *
 * The key is the SHA-256 of the resolved document, as session_start records it; a hit is compared
 * with the document itself. Workflows that no session uses any more are dropped when another one is
 * put in. From any thread. */
#ifndef SEGUE_HOST_HOST_H
#define SEGUE_HOST_HOST_H

#include "base/list.h"
#include "core/decide.h"
#include "core/workflow.h"
#include "host/call_queue.h"
#include "host/daily_usage.h"
#include "host/folder_lock.h"
#include "host/ledger_writer.h"
#include "os/process.h"
#include "provider/registry.h"
#include "store/store.h"

#include <uv.h>

struct session;
struct core_answer;

/* Sessions that wait for the right to edit their folder. */
struct folder_queue {
  struct list waiters;
  uv_timer_t *timer; /* allocated by itself: it closes after the queue is gone */
  struct folder_look look;
  unsigned round;
};

struct workflow_cache;

/* Counts how long batches took from decision to durability. */
enum { HOST_APPEND_BUCKETS = 10 };
struct host_appends {
  uint64_t count, sum_us;
  uint64_t buckets[HOST_APPEND_BUCKETS + 1]; /* up to host_append_bounds_ms[i]; the last: above */
};
extern const double host_append_bounds_ms[HOST_APPEND_BUCKETS];

struct host {
  uv_loop_t *loop;
  struct store *store; /* NULL: nothing is kept (segue judge without --logs) */
  struct process_table *processes;
  struct ruleset_cache *sandboxes;
  struct api *api;
  const struct provider_registry *registry; /* for sessions that begin now; borrowed by them */
  struct call_queue gate;                   /* what all its sessions share of the providers */
  struct daily_usage day;                   /* what the user's sessions used today */
  struct folder_queue folders;              /* for sessions that edit */
  struct list trees;                        /* that calls change: see changes.h */
  struct ledger_writer sealer;              /* for sessions that stop and end */
  struct chain_schemas schemas;
  struct prompt_templates *templates;
  uint64_t disk_full_wait_ms;
  uint64_t wait_for_kept_ms; /* how long for a folder that a stopped session keeps */
  bool sync_now; /* one session only: sync on the loop's thread while that takes few milliseconds */
  bool draining; /* no new calls: then host_drain each session */
  bool attended; /* a person sees questions and can answer: no session stops for them */
  const char *cut_by;               /* who asked to cut damaged ends off logs; NULL: nobody */
  struct workflow_cache *workflows; /* sessions of one workflow share it */
  uint64_t id_ms;                   /* time of the last id: ids only grow */
  unsigned id_count;
  size_t session_count;
  size_t logged_since_trim; /* bytes */
  struct host_appends appends;
  unsigned char entropy[256]; /* random bytes for later events: one getrandom for all of them */
  size_t entropy_left;
};

/* Any member may be NULL. Called from the loop; for records, once they are durable. */
struct watcher {
  /* `line` includes its newline; both are borrowed. */
  void (*record)(void *ctx, const struct record *record, struct str line);
  void (*trouble)(void *ctx, const char *message); /* disk full, torn tail, ... */
  /* Gets a piece of an answer or of its reasoning as it comes; not durable. */
  void (*delta)(void *ctx, long turn, long call, bool thinking, struct str text);
  void (*finished)(void *ctx, struct session *s);
};

/* Holds everything that a session runs with and its records do not have; borrowed until
 * session_free. */
struct session_setup {
  const char *cwd; /* absolute */
  const char *const *pass_env;
  const struct scenario *scenario;
};

struct session_params {
  struct session_setup setup;
  struct workflow *workflow;
  const char *workflow_path;
  struct str task;
  const char
      *task_blob; /* the blob that has the task already; "" or NULL: it is made where needed */
  json_t *config; /* see core_params */
  json_t *facets; /* see core_params */
  const struct core_parent *parent; /* for a fork; or NULL */
  bool hold;                        /* write only its beginning; host_begin continues */
};

bool host_init(struct host *host, uv_loop_t *loop, struct store *store,
               const struct provider_registry *registry, struct err *err) MUST_CHECK;
void host_deinit(struct host *host); /* then run the loop once more: handles close */

struct session *host_start(struct host *host, const struct session_params *params,
                           const struct watcher *watcher, void *ctx, struct err *err);

/* Receives the first record's config and fills the setup (scenario, cwd); false refuses. */
typedef bool (*setup_fn)(void *ctx, const json_t *config, struct session_setup *setup,
                         struct err *err);
/* Folds the log and does nothing else; session_core says how a finished session ended.
 * session_free may follow at once. */
struct session *host_open(struct host *host, const struct store_ref *ref,
                          const struct watcher *watcher, void *ctx, struct err *err);
/* Does the same in the pool; `opened` comes from the loop, with NULL and err if host_open would
 * fail. The session counts as one of the host's from now on. */
typedef void (*host_opened_fn)(void *ctx, struct session *s, const struct err *err);
void host_open_later(struct host *host, const struct store_ref *ref, const struct watcher *watcher,
                     void *ctx, host_opened_fn opened);
/* Lets an opened session continue as soon as the loop runs; a finished one stays as it is. A
 * session whose config says `submitted` and that has only its first record begins; all others get a
 * session_resume. steer: what a person says with it, see core_steer_check, or NULL; its config, if
 * it has one, is given to `choose`. False: the session cannot continue and err says why; call
 * session_free. */
bool host_go(struct session *s, setup_fn choose, void *choose_ctx, const char *reason,
             const struct core_steer *steer, struct err *err) MUST_CHECK;
/* Continues a session that was started with `hold`, once its first record was seen. */
void host_begin(struct session *s);
/* Records that a stopped session goes on, and does nothing else: for a session that will wait for
 * its turn, between host_open and session_free. When it is opened again, host_go adds no second
 * record. Does not wait for a full disk. */
void host_accept(struct session *s, const char *reason, const struct core_steer *steer);

/* Gives a person's answer, see core_answer_settle. Between host_open and host_go, and while the
 * session's stop is being written, it is only recorded: host_go has to follow. *question: the
 * record of the question, which, like the answer, may not be durable yet. With SAYS_STEER it is
 * said to a session that need not ask anything, and *question is the record of that. False: it is
 * not an answer, or ERR_LOCKED: the session is just stopping. */
bool host_reply(struct session *s, struct core_answer *answer, uint64_t *question,
                struct err *err) MUST_CHECK;

/* Takes what was said to it elsewhere on a shared store (WORKER_ASKED, steer). */
void host_hear(struct session *s);

/* Ends what is under way and records nothing of it, since another owner may continue the
 * session. */
void host_lost(struct session *s, const char *why);
void host_stop(struct session *s, const char *reason, const char *message);
/* Instead of host_go: stops a session that brought down too many workers. False: it did not. */
bool host_stop_poison(struct session *s);
void host_cancel(struct session *s, const char *message); /* also for a stopped one */
void host_drain(
    struct session *s); /* after host.draining was set: stops it when no call is running */

/* To judge one text: feeds `text` as the answer of the open execute call instead of starting a
 * provider. Only before the loop runs. */
void host_answer(struct session *s, struct str text);
/* The same with the whole result of the work: exit, tests and files. Takes the result. */
void host_answer_with(struct session *s, struct call_result *result);

const struct core *session_core(const struct session *s);
const char *session_log_name(const struct session *s);     /* "" without a store */
const struct err *session_broken(const struct session *s); /* NULL unless its log failed */
/* Why it waits for space on the disk, or NULL. */
const char *session_paused(const struct session *s);
/* A request from elsewhere, in a shared store, when it was opened: cancel, resume, or "". */
const char *session_asked(const struct session *s);
void session_refuse(struct session *s);              /* that cannot be done */
uint64_t session_log_bytes(const struct session *s); /* durable ones, 0 without a store */
/* Cuts the log of a broken session back to what is certainly durable, before it is freed. */
bool session_settle(struct session *s, struct err *err) MUST_CHECK;
uint64_t session_recovered(const struct session *s); /* records that were read back */
void session_free(struct session *s);

/* A UUID version 7 (RFC 9562), 36 characters, greater than each one given out before. */
void session_id_new(struct host *host, char out[STORE_ID_BYTES]);
/* From now on ids are also greater than this one (of an existing log). */
void session_ids_after(struct host *host, const char *id);

/* --- workflows that sessions share --- */

struct workflow_cache;

struct workflow_cache *workflow_cache_new(void);
void workflow_cache_free(struct workflow_cache *cache);

/* Finds the workflow of a session_start record: a reference, or NULL if it is not cached. */
struct workflow *workflow_cache_find(struct workflow_cache *cache, const json_t *start);
void workflow_cache_put(struct workflow_cache *cache, const json_t *start, struct workflow *wf);

/* Returns the cached workflow of the same document instead of `wf`, whose reference it takes. */
struct workflow *workflow_cache_share(struct workflow_cache *cache, struct workflow *wf);

#endif
