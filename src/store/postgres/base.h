/* base.h - one shared store as this program knows it: its connections and its worker.
 *
 *   pg = base_of(url, &err)           one for each address, for the life of the program
 *   base_enter(pg, &err)              becomes a worker (base.c)
 *   base_join(pg, &err)               the same, to take sessions or hold them long
 *   answer = base_ask(pg, ...)        on a free connection, again while nothing answers
 *   conn = base_take(pg, ...); base_give(pg, conn)
 *
 * A reference and a store are plain values, so the address leads to what is behind them. Any thread
 * may call these functions; the lock is held only to look at lists, never while the server is
 * asked. */
#ifndef SEGUE_STORE_POSTGRES_BASE_H
#define SEGUE_STORE_POSTGRES_BASE_H

#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "store/backend.h"
#include "store/postgres/conn.h"
#include "store/store.h"
#include "store/worker.h"

#include <pthread.h>
#include <stdatomic.h>

struct pg_base;

enum { HEARTBEAT_NAME_BYTES = 280 };

struct heartbeat {
  pthread_t thread;
  bool runs;
  bool named;                   /* the id was used: the next lease gets another one */
  atomic_bool joined;           /* it takes sessions, so it hears what other workers do */
  int wake[2];                  /* a pipe: something changed */
  _Atomic uint64_t trust_until; /* clock_boot_ms; 0: not a worker */
  atomic_bool answers;          /* the store answered the last request */
  _Atomic unsigned term;        /* changes each time the lease is lost */
  char worker[STORE_ID_BYTES];
  /* previous id, to be told to the store: its worker gave up but lives */
  char former[STORE_ID_BYTES];
  char name[HEARTBEAT_NAME_BYTES]; /* HOST:PID */
  char *needs; /* labels that sessions made here ask for, as an SQL array; for the program's life */
  uint64_t ttl_ms;
  atomic_bool ends;
};

enum { BASE_VERSION = 9, BASE_WHO_BYTES = 48 };

struct news_item {
  struct news_item *next;
  enum worker_news news;
  char id[STORE_ID_BYTES], what[16];
};

struct base_idle {
  struct conn *conn;
  uint64_t since_ms; /* clock_boot_ms */
};

struct commit_slot { /* a commit on its way to the server (commit.c) */
  struct pg_base *pg;
  uv_work_t work;
  struct list logs;   /* struct shared_log */
  struct list leaves; /* struct base_leave */
  bool flies;
};

struct base_blob { /* known to be at the store */
  char sha256[SHA256_HEX];
  uint64_t until_ms; /* clock_boot_ms: until then nobody asks */
};

struct pg_base {
  struct pg_base *next;
  char *url;
  char shown[URL_SHOWN_BYTES];
  struct url_options options;
  pthread_mutex_t lock;
  struct base_idle idle[LIMIT_STORE_IDLE_COUNT]; /* taken from the front */
  int lost[LIMIT_STORE_IDLE_COUNT];              /* the server's processes for broken connections */
  size_t lost_count;
  bool checked;       /* its tables have our version */
  atomic_bool narrow; /* as conn_is_narrow */
  char who[BASE_WHO_BYTES];
  struct heartbeat heartbeat;
  struct base_blob blobs[LIMIT_STORE_BLOB_COUNT]; /* under the lock */
  /* The watcher's members: its loop is below. */
  uv_async_t async;
  worker_told_fn told;
  void *told_ctx;
  struct news_item *news, **news_end;
  struct list claimed; /* struct base_claim, oldest first */
  struct list leaving; /* struct base_leave, for the next commit; under the lock */
  struct list paused;  /* struct base_pause, first noted first */
  struct list open;    /* every struct shared_log; under the lock, like `claimed` */
  struct provider_slots_known
      *known; /* state of the providers as of the last poll; under the lock */
  size_t known_count;
  struct list seats_kept; /* struct provider_slot, to be given back once the store answers */
  _Atomic uint64_t slots; /* last number given to a request for a slot */
  atomic_bool unsure;     /* the store says that we hold more than we know of */
  atomic_bool outdated;   /* the tables have another version, and that was reported */
  struct list waiting;    /* struct shared_log with a batch to append; only on the loop's thread */
  struct commit_slot commits[LIMIT_STORE_COMMIT_COUNT];
  uv_loop_t *loop; /* set while it is watched, with its thread */
  pthread_t loop_thread;
};

/* Holds a session's row as it was when the session was taken. */
struct base_held {
  char asked[16]; /* what others ask of the session, or "" */
  uint64_t fence, seq, bytes;
  unsigned deaths; /* workers that died holding it */
  char hash[SHA256_HEX];
  char died[320]; /* name of the last of them, or "" */
};

struct base_claim { /* held for store_attach */
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  struct base_held held; /* without its fence, if the log came along */
  struct buf log;        /* the whole log, or nothing */
  uint64_t at_ms;        /* clock_boot_ms */
  unsigned term;
  bool attached; /* being read: the reader removes the claim */
};

struct base_leave {
  struct list_node in_base;
  char id[STORE_ID_BYTES];
  uint64_t fence, pause_ms;
  char *why;    /* or NULL */
  bool refuses; /* its request cannot be done */
  unsigned term;
};

struct pg_base *base_of(const char *url, struct err *err);

struct conn *base_take(struct pg_base *pg, enum conn_failure *failure, struct err *err);
void base_give(struct pg_base *pg, struct conn *conn);
/* Closes a connection that may have sent half a request. The server's process for it, which may
 * hold locks on rows and wait for the rest, is ended when another connection is taken. */
void base_drop(struct pg_base *pg, struct conn *conn);
/* Asks, again if need be: only for requests that may be repeated. */
PGresult *base_ask(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   bool binary, enum conn_failure *failure, struct err *err);
/* Pauses before another try, the tries-th. Returns false if `until` (clock_mono_ms) is over. */
bool base_pause(unsigned tries, uint64_t until);
uint64_t base_limit_ms(size_t bytes); /* time for a request of that size */

bool base_enter(struct pg_base *pg, struct err *err) MUST_CHECK;
/* Becomes a worker that takes sessions. Also frees what dead workers held, and learns the state of
 * the providers. */
bool base_join(struct pg_base *pg, struct err *err) MUST_CHECK;
/* Returns whether sessions taken in this term may still be written. */
bool base_trusts(const struct pg_base *pg, unsigned term, struct err *err);
unsigned base_term(const struct pg_base *pg);
/* Gives the store for files of this shared store that stay on this machine. */
bool base_local(const struct store *store, struct store *local, struct err *err);
const struct worker_options *base_options(void);
bool base_label_check(const char *label, struct err *err) MUST_CHECK;
/* worker.c: adds one item to an SQL array whose opening brace is there. */
void base_put_label(struct buf *out, const char *prefix, const char *label);

/* slots.c: learns what segue.poll says about providers. Returns true if that has changed. */
bool provider_slots_learn(struct pg_base *pg, const char *lines);
/* Gives back the places that could not be given back before. Only the heartbeat calls it, since
 * nothing else waits for it. */
void provider_slots_settle(struct pg_base *pg, struct conn *conn);

/* worker.c: says why this worker cannot continue a session now; owned, or NULL. */
char *base_pause_why(struct pg_base *pg, const char *id);

/* base.c: passes news to the loop that watches the store, if any. */
void base_tell(struct pg_base *pg, enum worker_news news, const char *id, const char *what);

static inline struct conn_arg arg_text(const char *text) {
  return (struct conn_arg){.kind = ARG_TEXT, .text = text};
}
/* `room` has to live as long as the argument. */
enum { ARG_NUMBER_BYTES = 24 };
static inline struct conn_arg arg_number(char room[ARG_NUMBER_BYTES], uint64_t n) {
  print_into(room, ARG_NUMBER_BYTES, "%llu", (unsigned long long)n);
  return arg_text(room);
}
static inline struct conn_arg arg_bytes(struct str bytes) {
  return (struct conn_arg){.kind = ARG_BYTES, .bytes = bytes};
}

#endif
