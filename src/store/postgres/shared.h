/* shared.h - what the parts of the back end `postgres` share: session_log.c makes, takes and
 * appends to logs, one or many at once, and moves them; session_lookup.c finds them, reads their
 * bytes, has the ledger, labels and blobs, and puts the back end together; worker.c what a worker
 * does. */
#ifndef SEGUE_STORE_POSTGRES_SHARED_H
#define SEGUE_STORE_POSTGRES_SHARED_H

#include "store/postgres/base.h"
#include "store/summary.h"

struct shared_log {
  struct store_log base; /* its name is ADDRESS#ID */
  struct pg_base *pg;
  char id[STORE_ID_BYTES];
  uint64_t fence;
  unsigned term;          /* term of the worker when it took it */
  uint64_t pause_ms;      /* nobody takes it for this long after its release */
  struct summary summary; /* fed the first record and stops: where it belongs after its release */
  bool turn_over;    /* a turn ended in the batch, or a person resumed: deaths are counted anew */
  bool ended;        /* its end is durable, which also released it */
  uint64_t told_seq; /* seq of the last batch that `brief` knows */
  size_t line_count; /* lines of that batch */
  unsigned deaths;   /* workers that had died holding it when it was taken */
  char died[320];    /* name of the last of them, or "" */
  char asked[16];    /* its request when it was taken: cancel, resume or "" */
  bool refuses;      /* that request cannot be done */
  bool unmade;       /* the first append makes its row */
  bool in_transit;   /* being moved here: nobody else may take it yet */
  char *needs; /* labels of workers that may take it, as an SQL array; NULL: the worker's own */
  struct list_node in_base, in_open;
  uv_work_t work; /* appends a batch that is too large for a pipeline */
  enum store_result result;
  struct err err;
};

/* Returns where a session belongs once nobody has it, according to its records (and the batch). */
const char *shared_rest_of(const struct summary *summary);
/* Returns whether shared_rest depends on this record: it does on the first one and on stops. */
bool shared_tells_rest(struct str line);
void shared_feed(struct summary *summary, const json_t *record);

/* Return the two parts of a reference's name. */
struct pg_base *shared_of(const struct store_ref *ref, char id[STORE_ID_BYTES], struct err *err);
void shared_ref(const struct store *store, const char *id, struct store_ref *ref);
/* Counts the logs of that id that are open here, including any being taken now. */
unsigned shared_open_count(struct pg_base *pg, const char *id);
/* Returns the claim of that id and marks it attached, or NULL; shared_end_claim removes it. */
struct base_claim *shared_take_claim(struct pg_base *pg, const char *id);
void shared_end_claim(struct pg_base *pg, struct base_claim *claim);
/* Copies the log that came with a claim; false: there was none. */
bool shared_claimed_log(struct pg_base *pg, const char *id, struct buf *out);
/* Releases a session; repeats the request as long as somebody may wait for the session.
 * Blocking. */
bool shared_release(struct pg_base *pg, const struct base_leave *leave);

/* These are the functions of postgres_ops, by file. */
struct store_log *shared_create(struct store *store, const char *id, struct err *err);
struct store_log *shared_create_later(struct store *store, const char *id);
struct store_log *shared_attach(struct store *store, const struct store_ref *ref,
                                store_fold_fn fold, void *ctx, struct store_mend *mend,
                                struct err *err);
void shared_append(struct store_log *log, uv_loop_t *loop);
enum store_result shared_append_now(struct store_log *log, struct err *err);
bool shared_settle(struct store_log *log, struct err *err);
struct store_log *shared_move_in(struct store *store, const char *id, const struct store_move *move,
                                 struct err *err);
bool shared_arrive(struct store_log *log, struct err *err);
bool shared_set_aside(struct store_log *log, const char *to, struct err *err);
bool shared_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
                         char to[STORE_NAME_BYTES]);
enum store_stand shared_stand(const struct store_ref *ref);
void shared_place(const struct store *store, char out[STORE_NAME_BYTES]);
void shared_close(struct store_log *log);

/* Removes the lines of a session that is gone, in small transactions. */
bool shared_remove_lines(struct pg_base *pg, const char *id, struct err *err) MUST_CHECK;

#endif
