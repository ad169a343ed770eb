/* flaws.h - answers that were not what was asked for, from many sessions, grouped by what is wrong
 * and written out as cases. They are answers that had to give a value (check records), and judges'
 * answers that no stage could use (stage records: unreadable, invalid, out_of_range, hidden,
 * ambiguous), also those that the judge then corrected.
 *
 *   flaws = flaws_new(census);              whose filters count; borrowed
 *   flaws->on_case = ...                    each answer as a case: see flaw_case
 *   flaws_read(flaws, &ref) or flaws_read_store(flaws, &store, &err)     any number of times
 *   flaws_sort(flaws); flaws->groups ... or flaws_json(flaws)
 *   flaws_free(flaws)
 *
 * A log counts only if it is sound, or sound but for its end. Memory is bounded: at most
 * LIMIT_AUDIT_FLAW_COUNT answers are kept from a log, and as many groups in all; `left_out` counts
 * the rest.
 *
 * A case: {"id": "SESSION/TURN/CALL", "text": the answer, "schema"?: what it had to follow,
 * "data"?: the answer's value where it is nothing but JSON, "prompt_sha256"?, "errors": [{"path",
 * "keyword", "message"}], "workflow", "movement", "provider", "model"?; of a judge's answer also
 * "stage", "rules" and "report": the agent's text that was judged}. */
#ifndef SEGUE_AUDIT_FLAWS_H
#define SEGUE_AUDIT_FLAWS_H

#include "audit/census.h"
#include "judge/chain.h"

struct flaw_group {
  char *stage; /* judge's stage; NULL: it is a movement's value */
  char *path, *keyword;
  const char *shape;  /* the answer's form: flaws_shape */
  char *message;      /* first such message */
  char example[80];   /* "SESSION/TURN/CALL" of an example */
  uint64_t count;     /* number of errors */
  uint64_t answers;   /* number of answers with such an error */
  uint64_t last_seen; /* number of the last answer counted */
};

struct flaw_log;
struct flaws {
  const struct census *census;
  void (*on_case)(void *ctx, json_t *item); /* NULL: not wanted; item is borrowed */
  void *ctx;
  struct flaw_group *groups;
  size_t count;
  struct map map;
  struct arena arena;
  uint64_t answers, errors, left_out;
  uint64_t logs[ROWS_LOG_COUNT];
  struct flaw_log *log;         /* the log being read; owned */
  struct chain_schemas schemas; /* of judges' answers */
  bool has_schemas;
};

struct flaws *flaws_new(const struct census *census);
void flaws_read(struct flaws *f, const struct store_ref *ref);
bool flaws_read_store(struct flaws *f, const struct store *store, struct err *err) MUST_CHECK;
void flaws_sort(struct flaws *f); /* most frequent first */
json_t *flaws_json(const struct flaws *f);
void flaws_free(struct flaws *f);

/* Returns empty, json, json_cut (begins as JSON and breaks off), fenced, json_in_prose or prose. */
const char *flaws_shape(struct str text);

#endif
