/* heartbeat.h - keeps this program's lease as a worker of a shared store, in a thread of its own.
 *
 *   heartbeat_begin(pg, &err)   becomes a worker: the lease first, then the thread
 *   heartbeat_join(pg, &err)    the same, to take sessions or hold them long
 *   heartbeat_trusts(pg, term, &err)  before and after each append
 *   worker_leave_all()          (store/worker.h) ends the thread, and gives back all that is held
 *
 * The struct is part of its owner, struct pg_base; other threads touch only its atomics and what
 * does not change while the thread runs. */
#ifndef SEGUE_STORE_POSTGRES_HEARTBEAT_H
#define SEGUE_STORE_POSTGRES_HEARTBEAT_H

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct pg_base;

enum { HEARTBEAT_HOST_BYTES = 256, HEARTBEAT_NAME_BYTES = 280 };

struct heartbeat {
  pthread_t thread;
  bool runs;
  bool named;                   /* the word was used: the next lease gets another one */
  atomic_bool joined;           /* it takes sessions, so it hears what other workers do */
  int wake[2];                  /* a pipe: something changed */
  _Atomic uint64_t trust_until; /* clock_boot_ms; 0: not a worker */
  atomic_bool answers;          /* the store answered the last request */
  _Atomic unsigned term;        /* changes each time the lease is lost */
  char word[STORE_ID_BYTES];    /* only the store is told: who has it is this worker */
  char worker[STORE_ID_BYTES];  /* its id, which everybody may read: the word's hash (segue.who) */
  /* previous word, to be told to the store: its worker gave up but lives */
  char former[STORE_ID_BYTES];
  char name[HEARTBEAT_NAME_BYTES]; /* HOST:PID */
  char *needs; /* labels that sessions made here ask for, as an SQL array; for the program's life */
  uint64_t ttl_ms;
  atomic_bool ends;
};

bool heartbeat_begin(struct pg_base *pg, struct err *err) MUST_CHECK;
/* Also frees what dead workers held, and learns the state of the providers. */
bool heartbeat_join(struct pg_base *pg, struct err *err) MUST_CHECK;
/* Returns whether sessions taken in this term may still be written. */
bool heartbeat_trusts(const struct pg_base *pg, unsigned term, struct err *err);
unsigned heartbeat_term(const struct pg_base *pg);

/* Names this machine, as in the label host=NAME. */
void heartbeat_host(char host[HEARTBEAT_HOST_BYTES]);
/* Appends the labels of this worker as an SQL array: its machine, and those of worker_be. */
void heartbeat_put_labels(struct buf *out);

#endif
