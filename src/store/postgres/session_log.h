/* session_log.h - a session's log at a shared store, and how a worker comes by it.
 *
 * worker.c claims sessions and gives them back; session_log.c makes, takes, appends to and moves
 * logs, one or many at once; session_lookup.c finds and reads them, and makes the table of the back
 * end from all these functions. */
#ifndef SEGUE_STORE_POSTGRES_SESSION_LOG_H
#define SEGUE_STORE_POSTGRES_SESSION_LOG_H

#include "store/postgres/base.h"
#include "store/summary.h"

/* Holds a session's row as it was when the session was taken. */
struct base_held {
  char asked[16]; /* what others ask of the session, or "" */
  uint64_t fence, seq, bytes;
  unsigned deaths; /* workers that died holding it since a turn ended */
  char hash[SHA256_HEX];
  char died[320]; /* name of the last of them, or "" */
};

struct base_claim { /* a session that this worker holds and has not attached, or gives back */
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  struct base_held held;
  unsigned term;
  struct buf log;    /* the whole log, or nothing: then attaching asks for the row again */
  uint64_t at_ms;    /* clock_boot_ms */
  bool attached;     /* being read: the reader removes the claim */
  uint64_t pause_ms; /* how it is given back: see segue.release */
  char *why;         /* or NULL */
  bool refuses;      /* its request cannot be done */
};

struct shared_log {
  struct store_log base; /* its name is ADDRESS#ID */
  struct pg_base *pg;
  char id[STORE_ID_BYTES];
  struct base_held held;  /* the row when it was taken; its fence is that of each append */
  unsigned term;          /* term of the worker when it took it */
  uint64_t pause_ms;      /* nobody takes it for this long after its release */
  struct summary summary; /* fed the first record and stops: where it belongs after its release */
  bool turn_over;    /* a turn ended in the batch, or a person resumed: deaths are counted anew */
  bool ended;        /* its end is durable, which also released it */
  uint64_t told_seq; /* seq of the last batch that `summary` knows */
  bool refuses;      /* held.asked cannot be done */
  bool unmade;       /* the first append makes its row */
  bool in_transit;   /* being moved here: nobody else may take it yet */
  char *needs; /* labels of workers that may take it, as an SQL array; NULL: the worker's own */
  struct list_node in_base, in_open;
  uv_work_t work; /* appends a batch that is too large for a pipeline */
  enum store_result result;
  struct err err;
};

/* --- worker.c --- */

/* Counts the logs of that id that are open here, including any being taken now. */
unsigned shared_open_count(struct pg_base *pg, const char *id);
/* Takes a session for this worker, unless a claim already did; waits up to wait_ms for another one
 * to let go of it. The claim stays until shared_end_claim, with the log that came with it. */
bool shared_take(struct pg_base *pg, const char *id, unsigned wait_ms, struct base_held *held,
                 struct err *err) MUST_CHECK;
void shared_end_claim(struct pg_base *pg, const char *id);
/* Copies the log that came with a claim; false: there was none. */
bool shared_claimed_log(struct pg_base *pg, const char *id, struct buf *out);
/* Reads a row of an answer: fence, seq, bytes and hash are its columns 1 to 4, deaths, died and
 * asked 6 to 8. */
void shared_held_read(const PGresult *answer, int row, struct base_held *held);
/* Says why this worker cannot continue a session now; owned, or NULL. */
char *shared_pause_why(struct pg_base *pg, const char *id);

enum { LEAVE_ARGS = 6 };
/* The arguments of a release, which a pipeline sends with others. */
struct leave_call {
  char fence[ARG_NUMBER_BYTES], pause[ARG_NUMBER_BYTES];
  struct conn_arg args[LEAVE_ARGS];
};
#define SHARED_RELEASE_SQL "SELECT segue.release($1, $2, $3, $4, $5, $6)"
void leave_call_init(struct leave_call *call, const struct pg_base *pg,
                     const struct base_claim *claim);
/* Releases a session. If nothing answers, leaves that to a later claim. Blocking. */
void shared_release(struct pg_base *pg, struct base_claim *owned);
struct base_claim *shared_claim_new(const char *id, uint64_t fence, unsigned term);
void shared_claim_free(struct base_claim *claim);

/* --- session_log.c --- */

/* Returns where a session belongs once nobody has it, according to its records (and the batch). */
const char *shared_rest_of(const struct summary *summary);
/* Feeds a summary what shared_rest_of depends on, which is the first record and stops. */
void shared_feed_line(struct summary *summary, struct str line);

/* These are functions of postgres_ops. */
struct store_log *shared_create(struct store *store, const char *id, struct err *err);
struct store_log *shared_create_later(struct store *store, const char *id);
struct store_log *shared_attach(struct store *store, const struct store_ref *ref,
                                store_fold_fn fold, void *ctx, struct store_mend *mend,
                                struct err *err);
void shared_append(struct store_log *log, uv_loop_t *loop);
enum store_result shared_append_now(struct store_log *log, struct err *err);
struct store_log *shared_move_in(struct store *store, const char *id, const struct store_move *move,
                                 struct err *err);
bool shared_arrive(struct store_log *log, struct err *err);
bool shared_set_aside(struct store_log *log, const char *to, struct err *err);
void shared_close(struct store_log *log);

#endif
