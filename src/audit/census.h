/* census.h - counts the judgments of many logs: everything that `segue audit` reports.
 *
 *   census = census_new();
 *   census_filter(census, CENSUS_WORKFLOW, "a,b", &err) ...; census->min_stages = 2; ...
 *   census_by(census, "movement,method", &err)
 *   census_read(census, &ref) or census_read_store(census, &store, &err)   any number of times
 *   census_sort(census)              then its tables, or census_group_json, census_totals_json
 *   census_free(census)
 *
 * Memory is bounded whatever the logs hold (limits.h: LIMIT_AUDIT_*). No log stops the count: logs
 * that are torn, tampered with, foreign or unreadable are counted apart, and some are named. */
#ifndef SEGUE_AUDIT_CENSUS_H
#define SEGUE_AUDIT_CENSUS_H

#include "audit/rows.h"
#include "audit/tally.h"
#include "base/err.h"
#include "base/limits.h"

#include <jansson.h>

enum census_word {
  CENSUS_WORKFLOW,
  CENSUS_MOVEMENT,
  CENSUS_METHOD, /* or match method */
  CENSUS_PROVIDER,
  CENSUS_MODEL,
  CENSUS_WORKER,
  CENSUS_OUTCOME,
  CENSUS_WORD_COUNT
};

/* Returns its name in options, queries and addresses: workflow, movement, ... */
const char *census_word_name(enum census_word word);

enum census_table {
  CENSUS_BY,        /* as asked for */
  CENSUS_ALL,       /* one group */
  CENSUS_METHODS,   /* by match method */
  CENSUS_STAGES,    /* by stage */
  CENSUS_FALLS,     /* by stage, next stage and reason; includes stages that decided */
  CENSUS_MOVEMENTS, /* by workflow and movement */
  CENSUS_JUDGES,    /* by provider and model that was asked */
  CENSUS_TABLE_COUNT
};

struct census_cause {
  uint32_t cause;
  uint64_t count;
  char example[40]; /* id of one of its sessions */
};

struct census_apart { /* a log that was not counted, or not in full */
  enum rows_log state;
  char *log;
  char why[160];
};

struct census {
  int64_t since_ms; /* real time; 0: any */
  int64_t min_stages;
  bool ambiguous;
  uint32_t *wanted[CENSUS_WORD_COUNT]; /* terminated by NAMES_NONE; NULL: any */
  struct name_list names;
  struct rows rows;
  struct tally_table tables[CENSUS_TABLE_COUNT];
  struct tally_table *more; /* in a kept census one table for each key (census_kept.h); or NULL */
  size_t more_count;
  size_t memory;
  uint64_t logs[ROWS_LOG_COUNT];
  uint64_t sessions, unavailable, no_match;
  uint32_t no_match_word;
  struct census_cause causes[LIMIT_AUDIT_CAUSE_COUNT];
  size_t cause_count;
  struct census_outcome {
    uint32_t word;
    uint64_t count;
  } outcomes[LIMIT_AUDIT_CAUSE_COUNT]; /* counts of sessions */
  size_t outcome_count;
  struct census_apart apart[LIMIT_AUDIT_APART_COUNT];
  size_t apart_count;
};

struct census *census_new(void);
/* Sets a filter. words: comma-separated; NULL is fine. False: a word is empty, or there is no such
 * method or outcome. */
bool census_filter(struct census *c, enum census_word what, const char *words,
                   struct err *err) MUST_CHECK;
/* Returns whether the filter admits a word. NULL is an unknown word. */
bool census_wants(const struct census *c, enum census_word what, const char *word);
/* Returns whether the row passes all filters. Its words are numbers of c->names. */
bool census_wants_row(const struct census *c, const struct row *row);
/* Does the same for a session, which only some filters concern: since, workflow, outcome. */
bool census_wants_session(const struct census *c, const struct row_session *session);
/* Returns why a session is not complete; NAMES_NONE: it is, or it can continue. */
uint32_t census_cause_of(const struct census *c, const struct row_session *session);
/* Takes filters such as since:7d, movement:"A NAME",NAME, min-stages:2 and ambiguous. */
bool census_filter_text(struct census *c, const char *text, int64_t now_ms,
                        struct err *err) MUST_CHECK;
/* Sets the keys of groups. False: there is no such key; err lists those there are. */
bool census_by(struct census *c, const char *keys, struct err *err) MUST_CHECK;
void census_read(struct census *c, const struct store_ref *ref);
bool census_read_store(struct census *c, const struct store *store, struct err *err) MUST_CHECK;
void census_sort(struct census *c);
void census_free(struct census *c);

/* Return the i-th of "groups" and the "totals" of schemas/audit.json as new references; NULL after
 * the last group. Groups come one at a time, because as trees they take many times their size. */
json_t *census_group_json(const struct census *c, size_t i);
json_t *census_totals_json(const struct census *c);
/* Returns the share of all judgments. */
double census_share(const struct census *c, uint64_t judgments);
/* Appends the groups that census_by asked for, or those by match method, as CSV (RFC 4180) with a
 * header line; durations in ms, costs in US dollars. */
void census_csv(const struct census *c, struct buf *out);
/* Writes a cell, quoted if need be; no text of a log can steer a terminal or be a formula in a
 * spreadsheet. */
void census_csv_cell(struct buf *out, struct str text);
double census_unsure(const struct tally_group *g);
double census_unreadable(const struct tally_group *g);

#endif
