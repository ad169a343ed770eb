/* base.h - one shared store, as this program knows it: its connections and its worker.
 *
 *   pg = base_of(url, &err)           one for each address, for the life of the program
 *   base_enter(pg, &err)              it becomes a worker: base.c; keeper.c keeps its lease
 *   base_join(pg, &err)               the same, for one that takes sessions or has them for long
 *   answer = base_ask(pg, ...)        on a free connection, again while nothing answers
 *   conn = base_take(pg, ...); base_give(pg, conn)
 *
 * A reference and a store are plain values, so what is behind them is found by the address. Any
 * thread may call these; the lock is held only to look at lists, never while the server is asked.
 * */
#ifndef SEGUE_STORE_POSTGRES_BASE_H
#define SEGUE_STORE_POSTGRES_BASE_H

#include "base/limits.h"
#include "base/list.h"
#include "store/backend.h"
#include "store/postgres/conn.h"
#include "store/worker.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BASE_VERSION = 8, BASE_WHO_BYTES = 48 };

struct news_item {
  struct news_item *next;
  enum worker_news news;
  char id[STORE_ID_BYTES], what[16];
};

enum { KEEPER_NAME_BYTES = 280 };

struct keeper {
  pthread_t thread;
  bool runs;
  bool named;                   /* the id was used: the next lease has another one */
  atomic_bool joined;           /* it takes sessions: it hears of what others do */
  int wake[2];                  /* a pipe: something changed */
  _Atomic uint64_t trust_until; /* clock_boot_ms; 0: not a worker */
  atomic_bool answers;          /* it did when it was asked last */
  _Atomic unsigned term;        /* another one each time that the lease was lost */
  char worker[STORE_ID_BYTES];
  char former[STORE_ID_BYTES];  /* the id before, to be told to the store: it gave up, and lives */
  char name[KEEPER_NAME_BYTES]; /* HOST:PID */
  char *needs; /* of sessions that are made here, as an array of SQL; for the program's life */
  uint64_t ttl_ms;
  atomic_bool ends;
};

struct base_idle {
  struct conn *conn;
  uint64_t since_ms; /* clock_boot_ms */
};

struct commit_slot { /* commit.c: what is on its way to the server */
  struct pg_base *pg;
  uv_work_t work;
  struct list logs;   /* struct shared_log */
  struct list leaves; /* struct base_leave */
  bool flies;
};

struct pg_base {
  struct pg_base *next;
  char *url;
  char shown[URL_SHOWN_BYTES];
  struct url_options options;
  pthread_mutex_t lock;
  struct base_idle idle[LIMIT_STORE_IDLE_COUNT]; /* the first ones are taken first */
  int lost[LIMIT_STORE_IDLE_COUNT]; /* the server's processes for connections that broke */
  size_t lost_count;
  bool checked;       /* its tables are ours */
  atomic_bool narrow; /* as conn_is_narrow */
  char who[BASE_WHO_BYTES];
  struct keeper keeper;
  /* who watches: loop, thread of the loop */
  uv_async_t async;
  worker_told_fn told;
  void *told_ctx;
  struct news_item *news, **news_end;
  struct list claimed; /* struct base_claim, the oldest in front */
  struct list leaving; /* struct base_leave, to go with the next commit; under the lock */
  struct list paused;  /* struct base_pause, the one that was noted first in front */
  struct list open;    /* struct shared_log, all that there are; under the lock, as `claimed` */
  struct seats_known *known; /* how providers stand, as the last poll told; under the lock */
  size_t known_count;
  struct list seats_kept; /* struct seat, to be given back once the store answers */
  _Atomic uint64_t seats; /* last number given to a request for a seat */
  atomic_bool unsure;     /* the store says that more is held here than is known */
  atomic_bool outdated;   /* the tables have another version now, and that was told */
  struct list waiting;    /* struct shared_log, to be appended; the loop's thread only */
  struct commit_slot commits[LIMIT_STORE_COMMIT_COUNT];
  uv_loop_t *loop; /* while it is watched ... */
  pthread_t loop_thread;
};

/* A session's row as it was taken. */
struct base_held {
  char asked[16]; /* what others ask of the session, or "" */
  uint64_t fence, seq, bytes;
  unsigned deaths; /* of workers that had it */
  char hash[SHA256_HEX];
  char died[320]; /* the last of them, or "" */
};

struct base_claim { /* held for store_attach */
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  struct base_held held; /* but for its fence, when the log came along */
  struct buf log;        /* all of it, or nothing */
  uint64_t at_ms;        /* clock_boot_ms */
  unsigned term;
  bool attached; /* it is just being read; who does that removes it */
};

struct base_leave {
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  uint64_t fence, pause_ms;
  char *why;    /* or NULL */
  bool refuses; /* what was asked of it cannot be done */
  unsigned term;
};

struct pg_base *base_of(const char *url, struct err *err);

struct conn *base_take_idle(struct pg_base *pg); /* one that is open and free, or NULL */
struct conn *base_take(struct pg_base *pg, enum conn_failure *failure, struct err *err);
void base_give(struct pg_base *pg, struct conn *conn);
/* Closes a connection that may have sent half a request. The server's end of it, which may keep
 * rows locked and wait for the rest, is ended too when another connection is taken. */
void base_drop(struct pg_base *pg, struct conn *conn);
/* Closes connections that nobody has needed for a while; one stays. */
void base_trim(struct pg_base *pg);
/* Closes all that are idle: the next ones have the worker's name, by which they can be ended. */
void base_drop_idle(struct pg_base *pg);
/* A new one, for who keeps it. */
struct conn *base_connect(struct pg_base *pg, enum conn_failure *failure, struct err *err);
/* Only for what may be asked twice. */
PGresult *base_ask(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   bool binary, enum conn_failure *failure, struct err *err);
/* Pauses before the tries-th further try; false: `until` (clock_mono_ms) is over. */
bool base_pause(unsigned tries, uint64_t until);
/* Says once that it is tried again, when that takes longer than a moment. */
void base_tell_trying(unsigned tries, uint64_t until, bool *told, const struct err *err);
uint64_t base_limit_ms(size_t bytes); /* for a request that moves so much */

bool base_enter(struct pg_base *pg, struct err *err) MUST_CHECK;
/* It also frees what dead workers held, and learns the state of the providers. */
bool base_join(struct pg_base *pg, struct err *err) MUST_CHECK;
/* Can this term's sessions be written? */
bool base_trusts(const struct pg_base *pg, unsigned term, struct err *err);
unsigned base_term(const struct pg_base *pg);
/* Where files of this machine are. */
bool base_local(const struct pg_base *pg, struct store *local, struct err *err);
const struct worker_options *base_options(void);
bool base_label_check(const char *label, struct err *err) MUST_CHECK;
/* place.c: one more item of an array of SQL, which begins with its brace. */
void base_put_label(struct buf *out, const char *prefix, const char *label);

/* seats.c: takes what segue.poll says about providers; true if that has changed. */
bool seats_learn(struct pg_base *pg, const char *lines);
/* Gives back what could not be given back before. Only the keeper calls it; nothing else waits for
 * it. */
void seats_settle(struct pg_base *pg, struct conn *conn);

/* watch.c: those that are not claimed now, as an array of SQL. */
void base_put_paused(struct pg_base *pg, struct buf *out);
/* Says why this worker cannot continue a session now; owned, or NULL. */
char *base_pause_why(struct pg_base *pg, const char *id);

/* keeper.c: a fresh id, by which connections can be ended; begins the lease, then the thread. */
void keeper_rename(struct pg_base *pg);
bool keeper_start(struct pg_base *pg, struct err *err) MUST_CHECK;
void keeper_join(struct pg_base *pg);
void keeper_stop(struct pg_base *pg);
void base_tell(struct pg_base *pg, enum worker_news news, const char *id, const char *what);

static inline struct conn_arg arg_text(const char *text) {
  return (struct conn_arg){.kind = ARG_TEXT, .text = text};
}
static inline struct conn_arg arg_bytes(struct str bytes) {
  return (struct conn_arg){.kind = ARG_BYTES, .bytes = bytes};
}

#endif
