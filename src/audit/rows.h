/* rows.h - turns a log into the rows an audit counts: one for each judgment, with its stages, and
 * one for the session. It makes one pass over the bytes, checks each line against the chain and
 * builds no tree.
 *
 *   struct rows rows = {.names = &names, .sink = ..., .ctx = ...};
 *   rows_read(&rows, &ref)     any number of logs; calls the sink for each judgment and each end
 *   rows_deinit(&rows)
 *
 * Each call counts once, as in the session's own sums (core/spend.h). Rows are handed out only
 * after the whole log was found sound (ROWS_SOUND), or sound but for a partial last line
 * (ROWS_TORN); any other log only counts as a log. By then the session's end is known, and each row
 * carries it.
 *
 * Memory: bounded. A log with more than LIMIT_AUDIT_ROW_COUNT judgments is read twice, first to
 * prove it; a line over LIMIT_AUDIT_LINE_BYTES makes it ROWS_UNREADABLE. */
#ifndef SEGUE_AUDIT_ROWS_H
#define SEGUE_AUDIT_ROWS_H

#include "audit/dictionary.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "extract/tag.h"
#include "judge/stage.h"
#include "store/store.h"

enum rows_log {
  ROWS_SOUND,
  ROWS_TORN,
  ROWS_EMPTY,      /* no whole record: killed before it had begun */
  ROWS_TAMPERED,   /* a record is not what was written, or out of sequence */
  ROWS_FOREIGN,    /* it does not begin as a log of segue does, or is a copy of one */
  ROWS_NEWER,      /* a version that this program does not know */
  ROWS_UNREADABLE, /* the system refused, or a bound was met */
  ROWS_LOG_COUNT
};
const char *rows_log_name(enum rows_log state);

/* Sums calls and their use. Tokens, and US dollars / 1e9; see core/spend.h. */
struct row_use {
  int64_t calls, ms, input, output, cost_nano;
  int64_t unpriced; /* calls with tokens whose cost is not known */
};
void row_use_add(struct row_use *sum, const struct row_use *one);

/* Describes a stage of a judgment. Words are numbers of rows.names. */
struct row_stage {
  uint32_t stage, reason; /* reason: why it did not decide; DICTIONARY_NONE: it did */
  uint32_t provider, model;
  uint8_t outcome;    /* enum stage_outcome; OUTCOME_COUNT: unknown */
  uint8_t call_count; /* calls: the first question, and corrections */
  uint32_t rule;      /* the rule it named; 0: none */
  uint8_t vote;       /* number of a panel's vote; the stage without one is their result */
  bool asked;         /* it made a call */
  bool readable;      /* it gave a rule, or said that none holds */
  bool machine;       /* it looks only at the rules, not at a model's words */
  bool shares;        /* it read a reply that an earlier stage asked for and that counts there */
  struct row_use use; /* use by its own calls */
  struct row_use corrections; /* the part of it after the first question */
};

enum row_kind {
  ROW_JUDGMENT,
  ROW_VALUE, /* a movement that must give a value did, or did not: no rule and no stages */
  ROW_REST   /* calls of a turn that no judgment came of: no rule and no stages */
};

struct row {
  enum row_kind kind;
  uint32_t workflow, movement, method, match_method, provider, model, worker, worker_model, schema;
  uint32_t folder, user; /* where its session was begun, and who did; or none */
  uint32_t basis;        /* what its complete session rests on; or none */
  uint32_t outcome;      /* the session's; or stopped, open, running */
  uint32_t failure;      /* without a rule: how the session ends because of it */
  uint32_t rule;         /* 0: none */
  long turn;
  int64_t time_ms; /* real time */
  bool ambiguous;
  bool undecided;   /* no rule: models were asked, and none gave a rule or said that none holds */
  uint8_t mark;     /* enum tag_mark: what became of the turn's mark */
  uint32_t answers; /* number of answers checked for a value */
  bool value, first_pass, mended; /* it has a value; from the first answer; which was repaired */
  struct row_use work;            /* the movement's own calls, not the judges' */
  const struct row_stage *stages;
  size_t stage_first, stage_count;
  /* behind these, calls of judges that no stage used, because the session stopped before it or
   * judged anew; they have a name and a use only */
  size_t rest_count;
};

/* Names the recorded turn that this session judges again (segue rejudge). */
struct row_again {
  char session[40]; /* "": it is no such session */
  long turn, repeat;
  uint32_t name, settings;
};

/* Describes the session as a whole, after its judgments. */
struct row_session {
  struct row_again again;
  uint32_t workflow, folder, user, outcome;
  /* complete:BASIS of a complete session that says what it rests on, see rows_basis */
  uint32_t cause; /* why it is not complete: its outcome, or the reason of its stop with a class */
  char id[40];
  int64_t started_ms;
  int64_t time_ms;           /* time of its end or stop, or else of its last record */
  int64_t unavailable_stops; /* stops because no judge could be asked */
};

struct rows_sink {
  void (*judged)(void *ctx, const struct row *row);
  void (*ended)(void *ctx, const struct row_session *session);
};

struct rows_call { /* a call of a turn not yet judged */
  long turn, call;
  uint32_t stage; /* of a judge's call */
  bool counted;   /* a stage that was read before has it */
  uint32_t provider, model, schema;
  struct row_use use;
};

struct rows_schema { /* a schema in a record; later calls refer to it */
  int64_t seq;
  uint32_t name;
};
enum { ROWS_SCHEMA_COUNT = 64 }; /* schemas of one log; later ones get no name */

struct rows_turn {
  long turn;
  uint32_t movement;
  bool mended;
};

/* Keeps who worked on a turn whose judgment found no rule: a person's verdict on it may follow. */
struct rows_unruled {
  long turn;
  uint32_t movement, worker, worker_model, schema;
};
enum { ROWS_UNRULED_COUNT = 16 }; /* the last ones of a log */

struct rows {
  struct name_list *names;
  struct rows_sink sink;
  void *ctx;
  bool wants_schema; /* name the schema of each movement's value: costs a hash for each call */
  uint64_t bytes;    /* read so far, in all logs */
  struct err err;    /* fault of the last log read */
  /* The rest is internal, for the log being read. */
  struct buf scratch;
  struct row *list;
  size_t count, room;
  struct row_stage *stages;
  size_t stage_count, stage_room;
  struct rows_call *calls;
  size_t call_count, call_room;
  struct rows_turn *turns;
  size_t turn_count, turn_room;
  struct rows_schema schemas[ROWS_SCHEMA_COUNT];
  size_t schema_count;
  struct rows_unruled unruled[ROWS_UNRULED_COUNT];
  size_t unruled_count; /* counts all, kept or not */
  struct row_session session;
  char hash[SHA256_HEX];
  uint64_t records, end;
  bool proven; /* the second pass over a large log: rows go out at once */
  bool spills; /* there are more rows than are kept */
};

/* Says in a word why a stage did not decide; "" if it did. error: its first error; none: a judge
 * said that no rule holds. */
/* Gives a row what its session says. */
void rows_of_session(struct name_list *names, const struct row_session *session, struct row *row);
const char *rows_reason(struct str stage, enum stage_outcome outcome, bool none, struct str error);

enum rows_log rows_read(struct rows *rows, const struct store_ref *ref);
void rows_deinit(struct rows *rows);

#endif
