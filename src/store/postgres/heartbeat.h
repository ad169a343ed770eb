/* heartbeat.h - keeps this program's lease as a worker of a shared store, in a thread of its own.
 *
 *   heartbeat_rename(pg)         a fresh id, by which its connections can be ended
 *   heartbeat_start(pg, &err)    begins the lease, then the thread; blocking
 *   heartbeat_join(pg)           from now on it takes sessions, so it hears what other workers do
 *   heartbeat_stop(pg)           ends the thread, and gives back all that is held
 *
 * base_enter and base_join (base.h) call the second and third. The struct is part of its owner;
 * other threads touch only its atomics and what does not change while the thread runs. */
#ifndef SEGUE_STORE_POSTGRES_HEARTBEAT_H
#define SEGUE_STORE_POSTGRES_HEARTBEAT_H

#include "base/err.h"
#include "store/store.h"

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

void heartbeat_rename(struct pg_base *pg);
bool heartbeat_start(struct pg_base *pg, struct err *err) MUST_CHECK;
void heartbeat_join(struct pg_base *pg);
void heartbeat_stop(struct pg_base *pg);

#endif
