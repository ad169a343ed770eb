/* base.h - one shared store as this program knows it: its address, its connections, and what its
 * threads share.
 *
 *   pg = base_of(url, &err)           one for each address, for the life of the program
 *   answer = base_ask(pg, ...)        on a free connection, again while nothing answers
 *   conn = base_take(pg, ...); base_give(pg, conn)
 *
 * The files of the back end, from the bottom up; each one calls only those before it:
 *
 *   url.c             what an address may say
 *   conn.c            one connection: statements and pipelines
 *   base.c            the connections of a store, and requests that are repeated
 *   slots.c           places at providers
 *   caps.c            what calls use of the caps of a day
 *   heartbeat.c       the lease of this program as a worker
 *   worker.c          which sessions the worker has claimed, gives back or leaves alone
 *   session_log.c     the log of a session: made, taken, appended to, moved
 *   session_lookup.c  finds, lists and reads logs; blobs, ledger and labels; the table of it all
 *   admin.c           makes the tables and looks after them
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
#include "store/postgres/heartbeat.h"
#include "store/store.h"
#include "store/worker.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BASE_VERSION = 13 };
enum { BASE_WHO_BYTES = 48, BASE_WORD_BYTES = 48 };

struct news_item {
  struct list_node in_base;
  enum worker_news news;
  char id[STORE_ID_BYTES], what[16];
};

struct base_idle {
  struct conn *conn;
  uint64_t since_ms; /* clock_boot_ms */
};

struct commit_slot { /* a commit on its way to the server (session_log.c) */
  struct pg_base *pg;
  uv_work_t work;
  struct list logs;   /* struct shared_log */
  struct list leaves; /* struct base_claim */
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
  atomic_int version; /* of its tables, once it is one that this program can use; before that 0 */
  atomic_bool narrow; /* as conn_is_narrow */
  char who[BASE_WHO_BYTES];
  struct heartbeat heartbeat;
  struct base_blob blobs[LIMIT_STORE_BLOB_COUNT]; /* under the lock */
  /* The watcher's members: its loop is below. */
  uv_async_t async;
  worker_told_fn told;
  void *told_ctx;
  struct list news;    /* struct news_item, for the watcher's loop; under the lock */
  struct list claimed; /* struct base_claim, oldest first */
  struct list leaving; /* struct base_claim, for the next commit; under the lock */
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

struct pg_base *base_of(const char *url, struct err *err);
struct pg_base *base_of_store(const struct store *store); /* NULL: it is none, or one of files */
struct pg_base *base_first(void);                         /* of all; `next` leads on */
/* Return the two parts of a reference's name, ADDRESS#ID, and make such a name. */
struct pg_base *base_of_ref(const struct store_ref *ref, char id[STORE_ID_BYTES], struct err *err);
void base_ref(const struct store *store, const char *id, struct store_ref *ref);
/* Returns what worker_be was given; the defaults before that. */
struct worker_options *base_options(void);

/* Opens a connection that the caller keeps. failure: here and below NULL is fine. */
struct conn *base_connect(struct pg_base *pg, enum conn_failure *failure, struct err *err);
/* Gives this program a fresh word and the name that follows from it, by which the server tells its
 * connections apart and can end them, and closes those that have the old one. */
void base_rename(struct pg_base *pg);
struct conn *base_take(struct pg_base *pg, enum conn_failure *failure, struct err *err);
/* Returns NULL where a connection would have to be opened. */
struct conn *base_take_idle(struct pg_base *pg);
/* Gives a connection back, lost or not; NULL is fine. */
void base_give(struct pg_base *pg, struct conn *conn);
/* Closes idle connections that nobody has needed since then; the first `keep` stay. */
void base_close_idle(struct pg_base *pg, size_t keep, uint64_t since_ms);

/* Counts the tries of one request, which may take until `until` (clock_mono_ms). */
struct base_tries {
  uint64_t until;
  unsigned count;
  bool told;
};
/* Pauses before another try. Returns false if time is up. why: reported once if the tries take
 * longer than a moment; NULL: never. */
bool base_again(struct base_tries *tries, const struct err *why);
uint64_t base_limit_ms(size_t bytes); /* time for a request of that size */

/* Asks, again if need be: only for requests that may be repeated. pg: NULL gives NULL, and err
 * says why already. */
PGresult *base_ask(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   struct err *err);
/* Does the same for bytea columns, as conn_ask with `binary`. */
PGresult *base_ask_bytes(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                         struct err *err);
/* Asks for one value, and copies it; "" without a row. Returns false without an answer. */
bool base_ask_word(struct pg_base *pg, const char *sql, const struct conn_arg *args, int n,
                   char word[BASE_WORD_BYTES], struct err *err) MUST_CHECK;

/* Passes news to the loop that watches the store, if any. */
void base_tell(struct pg_base *pg, enum worker_news news, const char *id, const char *what);

/* Adds one item to an SQL array whose opening brace is there. */
void base_put_label(struct buf *out, const char *prefix, const char *label);

/* slots.c: learns what segue.poll says about providers. Returns true if that has changed. */
bool provider_slots_learn(struct pg_base *pg, const char *lines);
/* Gives back the places that could not be given back before. Only the heartbeat calls it, since
 * nothing else waits for it. */
void provider_slots_settle(struct pg_base *pg, struct conn *conn);

static inline void list_move_all(struct list *to, struct list *from) {
  while (from->first != NULL) {
    struct list_node *node = from->first;
    list_remove(from, node);
    list_push_back(to, node);
  }
}

static inline struct conn_arg arg_text(const char *text) {
  return (struct conn_arg){.kind = ARG_TEXT, .text = text};
}
/* `room` has to live as long as the argument. */
enum { ARG_NUMBER_BYTES = 24 };
static inline struct conn_arg arg_number(char room[ARG_NUMBER_BYTES], uint64_t n) {
  print_into(room, ARG_NUMBER_BYTES, "%llu", (unsigned long long)n);
  return arg_text(room);
}
/* A list that conn_list_begin has begun; borrowed. */
static inline struct conn_arg arg_list(enum conn_kind kind, const struct buf *list) {
  return (struct conn_arg){.kind = kind, .bytes = buf_view(list)};
}

#endif
