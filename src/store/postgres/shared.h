/* shared.h - what the parts of the back end `postgres` share: log.c makes, takes and appends to
 * logs, move.c moves them, commit.c appends many in one go, raw.c reads, names.c finds them and
 * puts the back end together, rest.c has blobs, the ledger and labels, watch.c tells the loop. */
#ifndef SEGUE_STORE_POSTGRES_SHARED_H
#define SEGUE_STORE_POSTGRES_SHARED_H

#include "store/brief.h"
#include "store/postgres/base.h"

struct shared_log {
  struct store_log base; /* its name is ADDRESS#ID */
  struct pg_base *pg;
  char id[STORE_ID_BYTES];
  uint64_t fence;
  unsigned term;      /* of the worker that took it */
  uint64_t pause_ms;  /* nobody takes it for so long after it is let go of */
  struct brief brief; /* of its first record and of stops: where it belongs once it is let go of */
  bool turn_over;     /* a turn ended in the batch, or a person resumed: deaths are counted anew */
  bool ended;         /* its end is durable, and with it it was let go of */
  uint64_t told_seq;  /* of the last batch that `brief` knows */
  size_t line_count;  /* of that batch */
  unsigned deaths;    /* of workers that had it, when it was taken */
  char died[320];     /* the last of them, or "" */
  char asked[16];     /* asked of it when it was taken: cancel, resume or "" */
  bool refuses;       /* that cannot be done */
  bool unmade;        /* the first append makes its row */
  bool in_transit;    /* it is moved here: nobody else may take it yet */
  char *needs;        /* as an array of SQL: labels of who may take it; NULL: the worker's own */
  struct list_node in_base, in_open;
  uv_work_t work; /* of a batch that is too large for a pipeline */
  enum store_result result;
  struct err err;
};

/* A batch as the arguments of segue.append; the texts are the struct's. */
struct append_call {
  char fence[24], seq[24], next[24], bytes[24];
  struct buf ats, lines;
  struct conn_arg args[10];
};

/* The same for segue.release. */
struct leave_call {
  char fence[24], pause[24];
  struct conn_arg args[5];
};

enum { SHARED_ARGS = 10, LEAVE_ARGS = 5 };
extern const char shared_append_sql[], shared_release_sql[];
void leave_call_init(struct leave_call *call, const struct base_leave *leave);
/* Call it before the first append to a log that was made with store_create_later. */
bool shared_make(struct shared_log *log, struct err *err) MUST_CHECK;
void append_call_init(struct append_call *call, struct shared_log *log);
void append_call_deinit(struct append_call *call);
/* Returns where a session belongs once nobody has it, according to its records (and the batch). */
const char *shared_rest_of(const struct brief *brief);
const char *shared_rest(const struct shared_log *log);
/* Does this record count for that? The first one and stops do. */
bool shared_tells_rest(struct str line);
void shared_feed(struct brief *brief, const json_t *record);
/* Reads the batch for that, once. */
void shared_scan_batch(struct shared_log *log);
/* Does the answer that it is there count? asked: what was asked of it elsewhere, or "". */
enum store_result shared_append_is_there(struct shared_log *log, const char *asked,
                                         struct err *err);
/* Takes the server's answer to it. */
enum store_result append_call_over(struct shared_log *log, const PGresult *answer, struct err *err);
/* One batch, tried until it is settled, or until nothing answers for `try_ms`: STORE_FULL. */
enum store_result shared_append_alone(struct shared_log *log, uint64_t try_ms, struct err *err);

struct pg_base *shared_base(const struct store *store, struct err *err);
/* Return the two parts of a reference's name. */
struct pg_base *shared_of(const struct store_ref *ref, char id[STORE_ID_BYTES], struct err *err);
void shared_ref(const struct store *store, const char *id, struct store_ref *ref);
/* How many logs of that id are open here, also such as are just taken. */
unsigned shared_open_count(struct pg_base *pg, const char *id);
/* The claim of that id, marked as attached, or NULL; shared_end_claim removes it. */
struct base_claim *shared_take_claim(struct pg_base *pg, const char *id);
void shared_end_claim(struct pg_base *pg, struct base_claim *claim);
/* Copies the log that came with a claim; false: none did. */
bool shared_claimed_log(struct pg_base *pg, const char *id, struct buf *out);
/* Lets go of a session; repeats the request as long as somebody may wait for the session. Blocking.
 * */
bool shared_release(struct pg_base *pg, const struct base_leave *leave);
/* The next look for work gives it back: who polls has time to wait for the server. */
void shared_release_later(struct pg_base *pg, const struct base_leave *leave);
/* With the next commit. The loop's thread only, while the store is watched. */
void shared_leave(struct pg_base *pg, struct base_leave *owned_leave);

struct shared_log *shared_log_new(struct store *store, struct pg_base *pg, const char *id);
/* Reads the log of a session that was taken, and checks that it is what its row says. */
bool shared_fold(struct shared_log *log, const struct store_ref *ref, const struct base_held *held,
                 store_fold_fn fold, void *ctx, struct err *err) MUST_CHECK;

/* The functions of postgres_ops, by file. */
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
