/* entry.h - one session as the daemon knows it: its state, and how it stands; and how a request
 * gets to it.
 *
 *   api_status_of(&v, sessions, id, &err); api_status_json(&v, sessions); api_status_deinit(&v)
 *   status_snapshot_take(&s, store, word, settles, &err)
 *       blocking; then sessions_update, on the loop
 *   status_snapshot_deinit(&s)                               accepts a zeroed one
 *
 * DESIGN. Every request about one session takes this way:
 *
 *   1. its word (an id, a unique prefix of one, `last`) becomes an id: on the loop with files, in
 *      the pool with a shared store, after which the request is handled again (read_job_find);
 *   2. if memory is newer than the log (api_status_is_in_memory: it waits or runs here, or has
 *       ended),
 *      memory answers;
 *   3. otherwise its log does: the loop reads the first and the last records of a file, but must
 *      not wait for a shared store, so the pool takes a snapshot and sessions_update makes it what
 *      memory has;
 *   4. what is inside of it (turns, calls, records) is read in the pool, see session_api.h.
 *
 * Requests that do something (cancel, resume, answer, fork, watch) go the same way up to 3 and then
 * act on the entry; control.c has them. Lists are another matter, see session_api.h.
 *
 * --- things in the order of their ids ---
 *
 * Things in the order of their ids, found and counted by binary search.
 *
 *   struct thing { char id[STORE_ID_BYTES]; ... };       the id comes first
 *   id_list_add(&list, &thing); id_list_remove(&list, &thing)
 *   id_list_find(&list, id); id_list_before(&list, id)
 *   id_list_deinit(&list)                                frees nothing of the things
 *
 * A zeroed list is empty. The list borrows the things, whose ids must not change meanwhile. Adding
 * an id twice, or removing a thing that is not there, is a bug and aborts.
 *
 * DESIGN. Ids are in the order of submission, so a queue of them grows at its end and shrinks at
 * its beginning: both take O(log n) for the search and move nothing. In between, the pointers on
 * the shorter side move, of ten thousand at most 40 KB. */
#ifndef SEGUE_DAEMON_ENTRY_H
#define SEGUE_DAEMON_ENTRY_H

#include "base/list.h"
#include "daemon/events.h"
#include "daemon/launch.h"
#include "store/predecessor.h"

#include <stddef.h>
#include <uv.h>

/* --- things in the order of their ids --- */

struct id_list {
  void **items;
  size_t first, count; /* items[first] is the smallest; there is room in front of it */
  size_t cap;
};

/* Returns how many ids come before this one, which need not be in the list. */
size_t id_list_before(const struct id_list *list, const char *id);
void *id_list_find(const struct id_list *list, const char *id); /* NULL: it is not there */
void *id_list_at(const struct id_list *list, size_t i);         /* NULL: it has no so many */
void id_list_add(struct id_list *list, void *item);
void id_list_remove(struct id_list *list, const void *item);
void id_list_deinit(struct id_list *list);

struct sessions;
struct daemon_entry;
struct predecessor_entry;

struct after_link { /* from one that waits to one that it waits for */
  struct list_node in_waiting;
  struct predecessor_entry *of; /* NULL: not any more */
  struct daemon_entry *entry;
};

struct deadline {
  char id[STORE_ID_BYTES];
  int64_t due_ms;
};

struct deadlines {
  uv_timer_t timer;
  struct deadline *items; /* in no order */
  size_t count, cap;
  void (*due)(struct sessions *ss, const char *id); /* its time has come, by the wall clock */
};

/* The life of a session here.
 *
 *   submitted                     recovered, claimed
 *       |                                 |
 *       v        its memory is wanted     v
 *   STARTING --> HELD --------------> QUEUED <---- RESUMING, ANSWERING
 *       |         |                   |   |                 ^
 *       v         |                   |   v                 |
 *    FAILED       |                   | OPENING ------------+
 *                 v                   v   |                 |
 *              RUNNING <------------------+               OVER
 *               |   ^
 *               v   |
 *              BROKEN --> QUEUED
 *
 * From each but FAILED it can go OVER; a cancel makes it RUNNING, to its end, from each but
 * STARTING; from OVER it is also queued or opened again.
 *
 * A row is the state, the list it is in, and where it can go. */
#define ENTRY_STATES(X)                                                                            \
  /* submitted here: its first record is on its way to the disk */                                 \
  X(STARTING, WRITING, ES(HELD) | ES(AFTER) | ES(OVER) | ES(FAILED))                               \
  /* an accepted resume is on its way to the disk */                                               \
  X(RESUMING, WRITING, ES(QUEUED) | ES(RUNNING) | ES(BROKEN) | ES(OVER))                           \
  /* an answer is on its way to the disk: its log says where it goes then */                       \
  X(ANSWERING, WRITING, ES(QUEUED) | ES(RUNNING) | ES(BROKEN) | ES(OVER))                          \
  /* it waits for its turn, with its session in memory: it begins without its log being read */    \
  X(HELD, QUEUE, ES(QUEUED) | ES(RUNNING) | ES(BROKEN) | ES(OVER))                                 \
  /* it waits for its turn; a session that is still in memory is about to be freed */              \
  X(QUEUED, QUEUE, ES(ANSWERING) | ES(AFTER) | ES(OPENING) | ES(RUNNING) | ES(BROKEN) | ES(OVER))  \
  /* it is to begin after others, which have yet to end; a session in memory as above */           \
  X(AFTER, AFTER, ES(RESUMING) | ES(ANSWERING) | ES(QUEUED) | ES(RUNNING) | ES(BROKEN) | ES(OVER)) \
  /* shared stores: its log is read back beside the loop, for its turn, its end, or its `ask` */   \
  X(OPENING, OPENING,                                                                              \
    ES(RESUMING) | ES(ANSWERING) | ES(QUEUED) | ES(RUNNING) | ES(BROKEN) | ES(OVER))               \
  X(RUNNING, RUNNING, ES(QUEUED) | ES(BROKEN) | ES(OVER))                                          \
  /* its log failed and will be opened again; its session may still be in memory */                \
  X(BROKEN, BROKEN, ES(QUEUED) | ES(RUNNING) | ES(OVER))                                           \
  /* ended, stopped, or it cannot go on (`trouble`); runs again to be cancelled or resumed */      \
  X(OVER, OVER, ES(RESUMING) | ES(ANSWERING) | ES(QUEUED) | ES(OPENING) | ES(RUNNING))             \
  /* its first record could not be written, as its submitter was told: the loop forgets it */      \
  X(FAILED, OVER, 0)

enum entry_state {
#define ES_ENUM(name, list, next) ENTRY_##name,
  ENTRY_STATES(ES_ENUM)
#undef ES_ENUM
};

/* The lists of sessions, each in the order of the ids. */
enum entry_list {
  LIST_WRITING,
  LIST_QUEUE,
  LIST_AFTER,
  LIST_OPENING,
  LIST_RUNNING,
  LIST_BROKEN,
  LIST_OVER
};

/* Somebody wants this of it, until it is done: it decides what happens at its next turn. The
 * latest wish counts, except that a wish for its end stays until a resume is accepted, or the end
 * turned out not to be this daemon's to make. */
enum entry_wish {
  WISH_NONE,
  WISH_DEADLINE, /* a deadline of its questions has passed: it goes on with the default answers */
  WISH_RESUME,   /* a person wants it to go on, even if a person had stopped it */
  WISH_CANCEL,   /* it must end, even if its log failed meanwhile */
  WISH_LEAVE     /* the same, because its client no longer waits for the answer */
};

/* Who advances it while nothing of it is in memory here, when that was last looked at. */
enum entry_owner {
  OWNER_NONE,   /* nobody, or this daemon at its turn */
  OWNER_ANY,    /* any worker of a shared store may take it: whoever watches it here looks there */
  OWNER_OTHER,  /* another program, or another worker of a shared store */
  OWNER_CLAIMED /* the queue of a shared store gave it to this worker before its last life here was
                   over (after a lost lease): it is queued as soon as that is */
};

/* A client's request to continue a session (steer) or to answer it (said) while it does not run
 * here: its log is read back first. */
struct entry_ask {
  bool answers;
  struct resume_options steer;
  struct parsed_answer said;
  uint64_t question; /* set: the record of the question that is answered */
  enum entry_state
      from; /* set: where it goes back to when that cannot be done, or changes nothing */
  /* From the loop, perhaps at once. err NULL: it is accepted, and being written where it has to be;
   * otherwise as sessions_resume and sessions_answer say. The ask is the caller's again. */
  void (*done)(struct entry_ask *ask, struct daemon_entry *e, const struct err *err);
};

struct daemon_entry {
  char id[STORE_ID_BYTES]; /* first, for id_list_find */
  enum entry_state state;
  enum entry_wish wish;
  enum entry_owner owner;
  struct summary summary; /* of its durable records */
  struct sessions *sessions;
  struct session *session; /* or NULL */
  struct launch launch;
  struct entry_key *key; /* which others may have, or NULL */
  struct list_node in_key;
  struct after_link *after; /* to those that it waits for, in the state AFTER */
  size_t after_count;
  enum predecessor stands; /* whether it may begin, if it is to begin after others */
  char *never;             /* PREDECESSOR_NEVER: why */
  struct list_node in_never;
  struct feed *feed;              /* of those who watch, or NULL */
  char *trouble;                  /* why it cannot go on, or NULL */
  struct list_node in_state;      /* in the list of its state */
  struct daemon_entry *next_dead; /* its session is to be freed */
  uint64_t not_before_ms;         /* by the loop's clock: its log was in other hands, or failed */
  unsigned cancelled_by;          /* the window's browser that asked for it, or 0 */
  unsigned breaks;                /* of its log, in a row */
  long broken_turns;              /* how far it had come at the last break */
  enum entry_state back;   /* ANSWERING: where it goes when something was said that is no answer */
  struct entry_ask *ask;   /* OPENING: what it is opened for; or NULL */
  uint64_t asked_until_ms; /* by the loop's clock: its worker is to end it; 0: nobody is asked */
  uint64_t heard_ms; /* by the loop's clock: when it last reported something, or began; UINT64_MAX:
                        its silence has been reported */
};

struct sessions_claim;

struct sessions {
  struct host *host;
  /* Called for each durable record, and with NULL when the session leaves memory; or NULL. */
  void (*recorded)(void *observer, const struct daemon_entry *e, const struct record *record);
  /* A piece of an answer came; or NULL. */
  void (*said)(void *observer, const struct daemon_entry *e, long turn, long call, bool thinking,
               struct str text);
  void *observer;
  struct launch_env *env;
  struct events *events;
  size_t max_running;
  struct id_list keys;              /* struct entry_key */
  struct id_list all, queue, held;  /* struct daemon_entry; held: of the queue those HELD */
  struct list lists[LIST_OVER + 1]; /* struct daemon_entry, by state */
  struct daemon_entry *dead;
  uv_timer_t soon, later;      /* starts and frees; tries again after a lack of descriptors */
  uv_timer_t looks;            /* at those that another program may run */
  uv_timer_t mends;            /* opens broken ones again */
  struct deadlines deadlines;  /* of stopped ones */
  struct id_list predecessors; /* struct predecessor_entry: those that others are to begin after */
  struct list never;           /* struct daemon_entry: those that wait in vain, to be stopped */
  uv_timer_t looks_after;      /* at predecessors that another program may run */
  bool draining;
  bool asking;                  /* there may be some that are over and wait for a person */
  bool shared;                  /* its store has the queue, for several daemons */
  struct sessions_claim *claim; /* how it is asked */
  struct {
    uint64_t since_ms;    /* by the loop's clock: when the present span began */
    size_t freed, before; /* places that became free in it, and in the one before */
  } pace;
  size_t due_count;               /* whose deadline has come, and which are looked at in the pool */
  struct looking_others *looking; /* at what others run, in the pool; or NULL */
  /* A durable record, for who tells persons; or NULL. */
  void (*news)(void *ctx, const struct daemon_entry *e, const struct record *record);
  void (*changed)(void *ctx, struct daemon_entry *e); /* its state or status changed */
  void *ctx;
};

/* Without an id yet, and in no list, until entry_add. */
struct daemon_entry *entry_make(struct sessions *ss, enum entry_state state);
void entry_add(struct daemon_entry *e, const char *id);
struct daemon_entry *entry_new(struct sessions *ss, const char *id, enum entry_state state);
void entry_free(struct daemon_entry *e);
struct daemon_entry *sessions_find(const struct sessions *ss,
                                   const char *id); /* NULL: not known here */
/* Says that it has this key (unique), or none. */
void entry_set_key(struct daemon_entry *e, const char *key);
/* Finds the session with this key (unique) that is queued or running; NULL: none. A stopped session
 * does not count, whatever it waits for. */
struct daemon_entry *sessions_with_key(const struct sessions *ss, const char *key);
size_t sessions_running(const struct sessions *ss);
size_t sessions_queued(const struct sessions *ss);
/* In a folder of logs, says whether it may begin. PENDING: the end of a session finds it from now
 * on, in O(log n), once it is in the state AFTER. NEVER: it is in ss->never, see e->never. */
enum predecessor entry_look_after(struct daemon_entry *e);
/* Looks at the predecessors that this daemon does not run. False: there are none at all. */
bool sessions_look_after(struct sessions *ss);
/* Notes when the session, as it stands now, goes on without an answer, or that it does not. */
void deadlines_note(struct deadlines *d, const char *id, const struct summary *b);
/* True if another one with its key runs. */
bool entry_waits_for_same(const struct daemon_entry *e);

void entry_set_state(struct daemon_entry *e, enum entry_state state);
/* Is it to end, by whatever wish? */
bool entry_ends(const struct daemon_entry *e);
/* This one is fulfilled, or given up; any other stays. */
void entry_forget_wish(struct daemon_entry *e, enum entry_wish wish);
/* A claim stays until it is taken up. */
void entry_set_owner(struct daemon_entry *e, enum entry_owner owner);
void entry_set_trouble(struct daemon_entry *e, const char *text); /* NULL: there is none any more */

/* True if it waits or runs, so that memory counts; otherwise its log does. */
bool entry_is_live(const struct daemon_entry *e);
/* Returns the status of a live session: queued, running, waiting, paused, stopped or an outcome. */
const char *entry_status(const struct daemon_entry *e);
const char *entry_message(const struct daemon_entry *e); /* why, or NULL */
/* True if it waits, but another program runs it or has taken it further: its log counts. */
bool entry_is_elsewhere(const struct daemon_entry *e);
/* True if it waits for its turn, with its session in memory or without. */
bool entry_waits(const struct daemon_entry *e);
/* True, once per silence, if it works and has been silent for that long; silence_ms: how long. */
bool entry_is_silent(struct daemon_entry *e, uint64_t after_ms, uint64_t *silence_ms);
void entry_ref(const struct daemon_entry *e, struct store_ref *ref);
/* Returns its place in the queue, from 1, whatever waits in O(log n); 0: it does not wait. */
size_t entry_position(const struct daemon_entry *e);

/* The status of a session in its store. */
struct status_snapshot {
  char id[STORE_ID_BYTES];
  bool owned; /* some program or worker has it */
  struct summary summary;
};

/* Finds the whole id of a session in the store. Blocking. */
bool status_snapshot_find(const struct store *store, const char *word, char id[STORE_ID_BYTES],
                          struct err *err) MUST_CHECK;
/* word: as store_find takes it. settles: a session whose last record says that it stopped, and that
 * a worker still has, is about to be let go of, so this waits for that, for a while. ERR_NOT_FOUND:
 * there is no such session. */
bool status_snapshot_take(struct status_snapshot *s, const struct store *store, const char *word,
                          bool settles, struct err *err) MUST_CHECK;
void status_snapshot_deinit(struct status_snapshot *s);

struct api_status {
  const char *id;
  const struct summary *summary;
  const char *status, *message;
  size_t position;
  struct status_snapshot own; /* if it was read from the log */
};

/* False: there is no such session, or no longer. With a shared store, only memory is asked:
 * sessions_update first. */
bool api_status_of(struct api_status *v, const struct sessions *ss, const char *id,
                   struct err *err);
/* True if it can be shown without its log. */
bool api_status_is_in_memory(const struct sessions *ss, const char *id);
json_t *api_status_json(const struct api_status *v, const struct sessions *ss); /* a new object */
void api_status_deinit(struct api_status *v);
/* True if it has neither ended nor stopped. */
bool api_status_is_unfinished(const struct summary *b);

#endif
