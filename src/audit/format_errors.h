/* format_errors.h - answers that were not what was asked for, from many sessions, grouped by what
 * is wrong and written out as cases. They are answers that had to give a value (check records), and
 * judges' answers that no stage could use (stage records: unreadable, invalid, out_of_range,
 * hidden, ambiguous), also those that the judge then corrected.
 *
 *   format_errors = format_errors_new(aggregate);              whose filters count; borrowed
 *   format_errors->on_case = ...                    each answer as a case: see format_error_case
 *   format_errors_read(format_errors, &ref)         any number of times, also by store_each
 *   format_errors_sort(format_errors); format_errors->groups ... or
 *       format_errors_json(format_errors)
 *   format_errors_free(format_errors)
 *
 * A log counts only if it is sound, or sound but for its end. Memory is bounded: at most
 * LIMIT_AUDIT_FLAW_COUNT answers are kept from a log, and as many groups in all; `left_out` counts
 * the rest.
 *
 * A case: {"id": "SESSION/TURN/CALL", "text": the answer, "schema"?: what it had to follow,
 * "data"?: the answer's value where it is nothing but JSON, "prompt_sha256"?, "errors": [{"path",
 * "keyword", "message"}], "workflow", "movement", "provider", "model"?; of a judge's answer also
 * "stage", "rules" and "report": the agent's text that was judged}. */
#ifndef SEGUE_AUDIT_FORMAT_ERRORS_H
#define SEGUE_AUDIT_FORMAT_ERRORS_H

#include "audit/aggregate.h"
#include "judge/chain.h"

struct format_error_group {
  char *stage; /* judge's stage; NULL: it is a movement's value */
  char *path, *keyword;
  const char *shape;  /* the answer's form: empty, json, json_cut, fenced, json_in_prose, prose */
  char *message;      /* first such message */
  char example[80];   /* "SESSION/TURN/CALL" of an example */
  uint64_t count;     /* number of errors */
  uint64_t answers;   /* number of answers with such an error */
  uint64_t last_seen; /* number of the last answer counted */
};

struct format_error_log;
struct format_errors {
  const struct aggregate *aggregate;
  void (*on_case)(void *ctx, json_t *item); /* NULL: not wanted; item is borrowed */
  void *ctx;
  struct format_error_group *groups;
  size_t count, room;
  struct map map;
  struct arena arena;
  uint64_t answers, errors, left_out, logs[ROWS_LOG_COUNT];
  struct format_error_log *log; /* the log being read; owned */
  struct chain_schemas schemas; /* of judges' answers */
  bool has_schemas;
};

struct format_errors *format_errors_new(const struct aggregate *aggregate);
void format_errors_read(void *format_errors, const struct store_ref *ref);
void format_errors_sort(struct format_errors *f); /* most frequent first */
json_t *format_errors_json(const struct format_errors *f);
void format_errors_free(struct format_errors *f);

#endif
