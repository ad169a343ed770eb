/* shared.h - what the parts of the back end `postgres` share: log.c makes, takes and appends to
 * logs, move.c moves them, commit.c appends to many at once, raw.c reads, names.c finds them and
 * puts the back end together, chain.c has the ledger and labels, blob.c blobs, watch.c tells the
 * loop. */
#ifndef SEGUE_STORE_POSTGRES_SHARED_H
#define SEGUE_STORE_POSTGRES_SHARED_H

#include "store/brief.h"
#include "store/postgres/base.h"

struct shared_log {
  struct store_log base; /* its name is ADDRESS#ID */
  struct pg_base *pg;
  char id[STORE_ID_BYTES];
  uint64_t fence;
  unsigned term;      /* term of the worker when it took it */
  uint64_t pause_ms;  /* nobody takes it for this long after its release */
  struct brief brief; /* fed the first record and stops: where it belongs after its release */
  bool turn_over;     /* a turn ended in the batch, or a person resumed: deaths are counted anew */
  bool ended;         /* its end is durable, which also released it */
  uint64_t told_seq;  /* seq of the last batch that `brief` knows */
  size_t line_count;  /* lines of that batch */
  unsigned deaths;    /* workers that had died holding it when it was taken */
  char died[320];     /* name of the last of them, or "" */
  char asked[16];     /* its request when it was taken: cancel, resume or "" */
  bool refuses;       /* that request cannot be done */
  bool unmade;        /* the first append makes its row */
  bool in_transit;    /* being moved here: nobody else may take it yet */
  char *needs; /* labels of workers that may take it, as an SQL array; NULL: the worker's own */
  struct list_node in_base, in_open;
  uv_work_t work; /* appends a batch that is too large for a pipeline */
  enum store_result result;
  struct err err;
};

/* Holds the arguments of segue.release. */
struct leave_call {
  char fence[24], pause[24];
  struct conn_arg args[5];
};

enum { LEAVE_ARGS = 5 };
extern const char shared_release_sql[];
void leave_call_init(struct leave_call *call, const struct base_leave *leave);
/* Returns where a session belongs once nobody has it, according to its records (and the batch). */
const char *shared_rest_of(const struct brief *brief);
const char *shared_rest(const struct shared_log *log);
/* Returns whether shared_rest depends on this record: it does on the first one and on stops. */
bool shared_tells_rest(struct str line);
void shared_feed(struct brief *brief, const json_t *record);
/* Feeds the batch to log->brief, once. */
void shared_scan_batch(struct shared_log *log);
/* Returns whether the answer that the batch is already there counts. asked: the session's request
 * from elsewhere, or "". */
enum store_result shared_append_is_there(struct shared_log *log, const char *asked,
                                         struct err *err);
/* Appends one batch, trying until it is settled. STORE_FULL: nothing has answered for `try_ms`. */
enum store_result shared_append_alone(struct shared_log *log, uint64_t try_ms, struct err *err);

struct pg_base *shared_base(const struct store *store, struct err *err);
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
/* Leaves the release to the next look for work: whoever polls has time to wait for the server. */
void shared_release_later(struct pg_base *pg, const struct base_leave *leave);
/* Releases it with the next commit. Only on the loop's thread, while the store is watched. */
void shared_leave(struct pg_base *pg, struct base_leave *owned_leave);

struct shared_log *shared_log_new(struct store *store, struct pg_base *pg, const char *id);
/* Reads the log of a session that was taken, and checks that it is what its row says. */
bool shared_fold(struct shared_log *log, const struct store_ref *ref, const struct base_held *held,
                 store_fold_fn fold, void *ctx, struct err *err) MUST_CHECK;

/* These are the functions of postgres_ops, by file. */
struct store_log *shared_create(struct store *store, const char *id, struct err *err);
struct store_log *shared_create_later(struct store *store, const char *id);
struct store_log *shared_attach(struct store *store, const struct store_ref *ref,
                                store_fold_fn fold, void *ctx, struct store_mend *mend,
                                struct err *err);
void shared_append(struct store_log *log, uv_loop_t *loop);
enum store_result shared_append_now(struct store_log *log, struct err *err);
bool shared_settle(struct store_log *log, struct err *err);
json_t *shared_read(struct store_log *log, uint64_t seq, struct err *err);
struct store_log *shared_move_in(struct store *store, const char *id, const struct store_move *move,
                                 struct err *err);
bool shared_arrive(struct store_log *log, struct err *err);
bool shared_set_aside(struct store_log *log, const char *to, struct err *err);
bool shared_set_aside_to(const struct store_ref *ref, struct store_ref *aside,
                         char to[STORE_NAME_BYTES]);
enum store_stand shared_stand(const struct store_ref *ref);
void shared_place(const struct store *store, char out[STORE_NAME_BYTES]);
void shared_close(struct store_log *log);

struct store_raw *shared_raw_open(const struct store_ref *ref, struct err *err);
ssize_t shared_raw_read(struct store_raw *raw, uint64_t at, char *out, size_t max);
uint64_t shared_raw_bytes(const struct store_raw *raw);
bool shared_raw_again(struct store_raw *raw, bool *replaced);
bool shared_raw_is_owned(const struct store_raw *raw);
bool shared_raw_due(const struct store_raw *raw, struct reader_due *due);
void shared_raw_close(struct store_raw *raw);
bool shared_look(struct pg_base *pg, const char *id, uint64_t *bytes, bool *owned, bool *begun);

bool shared_blob_put(const struct store *store, struct str bytes, const char *sha256,
                     struct err *err);
bool shared_blob_drop(const struct store *store, const char *sha256, time_t since);
bool shared_blob_get(const struct store *store, const char *sha256, struct buf *out,
                     struct err *err);
void shared_blob_name(const struct store *store, const char *sha256, char out[STORE_NAME_BYTES]);
bool shared_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                          struct err *err);
bool shared_ledger_read(const struct store *store,
                        void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                        struct ledger_end *end, struct err *err);
bool shared_labels_append(const struct store *store, const struct label *labels, size_t n,
                          struct err *err);
bool shared_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err);

/* Removes the lines of a session that is gone, in small transactions. */
bool shared_remove_lines(struct pg_base *pg, const char *id, struct err *err) MUST_CHECK;

#endif
