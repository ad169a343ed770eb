/* worker.h - this program as a worker of a shared store: its lease, its labels, and the news for
 * it.
 *
 *   worker_be(&options)                  before a store is opened; else as LIMIT_STORE_* says
 *   worker_watch(&store, loop, told, ctx)  what happens to its sessions is told from this loop
 *   worker_unwatch(&store)               before the loop is closed
 *   worker_leave_all()                   at the end of the program: what it holds is let go of
 *
 * A program becomes a worker with the first session that it takes. It has a lease, which a thread
 * renews. It trusts the lease for five sixths of its length after it sent the last renewal that was
 * answered, by a clock that counts while the machine sleeps. When the trust ends, others may take
 * its sessions.
 *
 * With files there are no workers, and these functions do nothing. */
#ifndef SEGUE_STORE_WORKER_H
#define SEGUE_STORE_WORKER_H

#include "store/store.h"

struct worker_options {
  uint64_t lease_ms;
  const char *const *labels; /* NULL-terminated, borrowed for good; besides host=NAME */
  const char *local;         /* folder for what stays on this machine; NULL: in the state folder */
};

/* Returns false if a label is too long, there are too many, or the lease is out of bounds. */
bool worker_be(const struct worker_options *options, struct err *err) MUST_CHECK;

enum worker_news {
  WORKER_ASKED,   /* somebody elsewhere asks something (what) of a session held here; steer: says;
                     hurry: of any session */
  WORKER_READY,   /* the store's queue may have something */
  WORKER_SEATS,   /* the state of a provider changed: store/slots.h */
  WORKER_LOST,    /* the lease is no longer trusted: nothing is held any more */
  WORKER_OUTDATED /* the tables have a new version (what): take nothing more, and end */
};
typedef void (*worker_told_fn)(void *ctx, enum worker_news news, const char *id, const char *what);

/* Returns false if it is no shared store, or the worker cannot begin (err). */
bool worker_watch(struct store *store, uv_loop_t *loop, worker_told_fn told, void *ctx,
                  struct err *err) MUST_CHECK;
void worker_unwatch(struct store *store);
/* While set for a thread, asking a shared store there is a bug, and test builds abort. It is for an
 * event loop, for which others wait. Returns what was set before. */
bool worker_asks_nobody(bool nobody);
/* Takes the next sessions of the queue, at most `max`, and holds them from now on: store_attach
 * them. Even with 0 it gives back those that came in a lost answer. Blocking; from any thread. */
bool worker_claim(struct store *store, size_t max, struct store_id *ids, size_t *count,
                  struct err *err) MUST_CHECK;
/* Returns whether the store answered this worker's last request: an event loop must not wait for a
 * silent store. With files: true. */
bool worker_answers(const struct store *store, struct err *err) MUST_CHECK;
/* Notes that this worker cannot continue a session (its folder is not here). It does not claim that
 * session for a while, twice as long each time, but another worker may. why: told to whoever asks
 * why the session waits. */
void worker_pause(struct store *store, const char *id, const char *why);
/* Notes that a request from elsewhere cannot be done: it is forgotten when the log is closed. */
void worker_refuse(struct store_log *log);
/* Sets the labels that a worker must have to take the session, an array of texts; the default is
 * host=NAME, this machine. Call it before the first append to a log that was made with
 * store_create_later. */
void worker_place(struct store_log *log, const json_t *labels);
/* Returns the label of this machine, which a session of a shared store asks for unless a person
 * named others: a new array; NULL with files. */
json_t *worker_home(const struct store *store);
/* Returns whether they are valid as such labels. */
bool worker_labels_check(const json_t *labels, struct err *err) MUST_CHECK;
/* Returns whether this program has the labels that the session asks of its worker; with files it
 * does. Blocking. */
bool worker_fits(const struct store_ref *ref, struct err *err) MUST_CHECK;
/* Returns whether this program has all of these labels. */
bool worker_has(const json_t *labels);
/* Returns the request that the session had when it was attached: cancel, resume, or "". */
const char *worker_asked(const struct store_log *log);
/* Counts the workers that died holding the session after its last finished turn, when it was
 * attached; *died: the last one's name, borrowed from the log, or "". */
unsigned worker_deaths(const struct store_log *log, const char **died);
/* Says who continues the session, as in session_resume: {"name"}, and if workers died holding it
 * after its last finished turn, {"after", "deaths", "why"}. New; NULL with files. */
json_t *worker_json(const struct store_log *log);
void worker_leave_all(void);

/* Makes a request to the owner of a session, wherever it is, or to the one who takes it next; the
 * request is durable once this returns. Returns the state of the session: ready, held, ended; idle:
 * somebody has to take it; "gone"; or "going": it runs, and there is nothing to resume. */
bool worker_ask(const struct store_ref *ref, const char *what, char state[16],
                struct err *err) MUST_CHECK;

/* Tells the worker that has a session that a person resumed it: it tries the login that the session
 * waits for, as WORKER_ASKED "hurry". A hint, which is kept nowhere. */
bool worker_hurry(const struct store_ref *ref, struct err *err) MUST_CHECK;

/* Keeps what a person says to a session, {"text", "by"}, for its owner, or for the one who takes it
 * next; durable once this returns. Returns false if it has ended, or with files. */
bool worker_say(const struct store_ref *ref, const json_t *said, struct err *err) MUST_CHECK;
/* Forgets what was said up to the line `heard`, which is recorded ("": nothing), and appends the
 * rest: a line each, with a key before the JSON. Blocking. */
bool worker_said(struct store_log *log, const char *heard, struct buf *out,
                 struct err *err) MUST_CHECK;

#endif
