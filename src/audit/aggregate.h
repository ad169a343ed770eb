/* aggregate.h - counts the judgments of many logs: everything that `segue audit` reports.
 *
 *   aggregate = aggregate_new();
 *   aggregate_filter(aggregate, AGGREGATE_WORKFLOW, "a,b", &err) ...; aggregate->min_stages = 2;
 *       ...
 *   aggregate_by(aggregate, "movement,method", &err)
 *   aggregate_read(aggregate, &ref) or aggregate_read_store(aggregate, &store, &err)
 *       any number of times
 *   aggregate_sort(aggregate)  then its tables, or aggregate_group_json, aggregate_totals_json
 *   aggregate_free(aggregate)
 *
 * Memory is bounded whatever the logs hold (limits.h: LIMIT_AUDIT_*). No log stops the count: logs
 * that are torn, tampered with, foreign or unreadable are counted apart, and some are named. */
#ifndef SEGUE_AUDIT_AGGREGATE_H
#define SEGUE_AUDIT_AGGREGATE_H

#include "audit/group_by.h"
#include "audit/rows.h"
#include "base/err.h"
#include "base/limits.h"

#include <jansson.h>

enum aggregate_word {
  AGGREGATE_WORKFLOW,
  AGGREGATE_MOVEMENT,
  AGGREGATE_METHOD, /* or match method */
  AGGREGATE_PROVIDER,
  AGGREGATE_MODEL,
  AGGREGATE_WORKER,
  AGGREGATE_OUTCOME,
  AGGREGATE_WORD_COUNT
};

/* Returns its name in options, queries and addresses: workflow, movement, ... */
const char *aggregate_word_name(enum aggregate_word word);

enum aggregate_table {
  AGGREGATE_BY,        /* as asked for */
  AGGREGATE_ALL,       /* one group */
  AGGREGATE_METHODS,   /* by match method */
  AGGREGATE_STAGES,    /* by stage */
  AGGREGATE_FALLS,     /* by stage, next stage and reason; includes stages that decided */
  AGGREGATE_MOVEMENTS, /* by workflow and movement */
  AGGREGATE_JUDGES,    /* by provider and model that was asked */
  AGGREGATE_MARKS,     /* by provider and model that worked */
  AGGREGATE_TABLE_COUNT
};

struct aggregate_count { /* of sessions */
  uint32_t word;
  uint64_t count;
  char example[40]; /* id of one of its sessions */
};

struct aggregate_apart { /* a log that was not counted, or not in full */
  enum rows_log state;
  char *log, why[160];
};

struct aggregate {
  int64_t since_ms; /* real time; 0: any */
  int64_t min_stages;
  uint64_t rules; /* bit N: verdicts of rule N, 0 for none, count; 0: all do */
  bool ambiguous;
  bool only_by; /* only AGGREGATE_BY and AGGREGATE_ALL are wanted, which takes half the time */
  uint32_t *wanted[AGGREGATE_WORD_COUNT]; /* terminated by DICTIONARY_NONE; NULL: any */
  struct name_list names;
  struct rows rows;
  struct group_by_table tables[AGGREGATE_TABLE_COUNT];
  size_t memory;
  uint64_t logs[ROWS_LOG_COUNT], sessions, unavailable, no_match;
  uint32_t no_match_word;
  struct aggregate_count causes[LIMIT_AUDIT_CAUSE_COUNT], outcomes[LIMIT_AUDIT_CAUSE_COUNT];
  size_t cause_count, outcome_count;
  struct aggregate_apart apart[LIMIT_AUDIT_APART_COUNT];
  size_t apart_count;
};

struct aggregate *aggregate_new(void);
/* Sets a filter. words: comma-separated; NULL is fine. False: a word is empty, or there is no such
 * method or outcome. */
bool aggregate_filter(struct aggregate *c, enum aggregate_word what, const char *words,
                      struct err *err) MUST_CHECK;
/* Does the same for verdicts: "1,2"; NULL is fine. */
bool aggregate_filter_rules(struct aggregate *c, const char *words, struct err *err) MUST_CHECK;
/* Returns whether the filter admits a word. NULL is an unknown word. */
bool aggregate_wants(const struct aggregate *c, enum aggregate_word what, const char *word);
/* Returns whether the row passes all filters. Its words are numbers of c->names. */
bool aggregate_wants_row(const struct aggregate *c, const struct row *row);
/* Returns true if a stage of it asked somebody. */
bool aggregate_needs_judge(const struct row *row);
/* Does the same for a session, which only some filters concern: since, workflow, outcome. */
bool aggregate_wants_session(const struct aggregate *c, const struct row_session *session);
/* Returns why a session is not complete; DICTIONARY_NONE: it is, or it can continue. */
uint32_t aggregate_cause_of(const struct aggregate *c, const struct row_session *session);
/* Takes filters such as since:7d, movement:"A NAME",NAME, rule:1, min-stages:2 and ambiguous. */
bool aggregate_filter_text(struct aggregate *c, const char *text, int64_t now_ms,
                           struct err *err) MUST_CHECK;
/* Sets the keys of groups. False: there is no such key; err lists those there are. */
bool aggregate_by(struct aggregate *c, const char *keys, struct err *err) MUST_CHECK;
/* Returns what the log is. */
enum rows_log aggregate_read(struct aggregate *c, const struct store_ref *ref);
void aggregate_on_log(void *aggregate, const struct store_ref *ref); /* the same, for store_each */
bool aggregate_read_store(struct aggregate *c, const struct store *store,
                          struct err *err) MUST_CHECK;
/* Count what was read before (aggregate_cache.h). Words are numbers of c->names. */
void aggregate_take_row(struct aggregate *c, const struct row *row);
void aggregate_take_session(struct aggregate *c, const struct row_session *session);
void aggregate_sort(struct aggregate *c);
void aggregate_free(struct aggregate *c);

/* Return the i-th of "groups" and the "totals" of schemas/audit.json as new references; NULL after
 * the last group. Groups come one at a time, because as trees they take many times their size. */
json_t *aggregate_group_json(const struct aggregate *c, size_t i);
json_t *aggregate_totals_json(const struct aggregate *c);
/* Returns the share of all judgments. */
double aggregate_share(const struct aggregate *c, uint64_t judgments);
/* Appends the groups that aggregate_by asked for, or those by match method, as CSV (RFC 4180) with
 * a header line; durations in ms, costs in US dollars. */
void aggregate_csv(const struct aggregate *c, struct buf *out);
/* Writes a cell, quoted if need be; no text of a log can steer a terminal or be a formula in a
 * spreadsheet. */
void aggregate_csv_cell(struct buf *out, struct str text);
double aggregate_unsure(const struct group_by_row *g);
/* Counts the judgments whose turn was asked for a mark. */
uint64_t aggregate_marked(const struct group_by_row *g);

/* A client's own tags are worth trusting once this many turns carried their mark at this rate. */
enum { AGGREGATE_TURNS_WANTED = 200, AGGREGATE_PERCENT_WANTED = 95 };
struct aggregate_client {
  struct str name;
  uint64_t turns, present; /* that were asked for a mark, and that carried it */
};
/* Gives the next client from *at (0 at first) on. Scenarios and commands are none. False: there is
 * no further one. */
bool aggregate_next_client(const struct aggregate *c, size_t *at, struct aggregate_client *out);
/* Says how many of the turns that are wanted there are, and how many carried their mark. */
void aggregate_client_text(const struct aggregate_client *client, struct buf *out);
double aggregate_unreadable(const struct group_by_row *g);

#endif
