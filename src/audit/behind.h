/* behind.h - finds the judgments behind one number of an audit: as many as the number says.
 *
 *   struct behind b = {.table = CENSUS_FALLS, .what = BEHIND_LEFT, .keys = {...}, .max = 200};
 *   behind_read_store(&b, census, &store, &err)       applies the census's filters; with the table
 *   b.units[i] ... b.count of b.total; behind_deinit(&b)
 *
 * In a table of stages each stage of a judgment counts, and in BEHIND_CAUSES each session. Newest
 * sessions come first. Memory: b.max units. */
#ifndef SEGUE_AUDIT_BEHIND_H
#define SEGUE_AUDIT_BEHIND_H

#include "audit/census.h"

enum behind_what {
  BEHIND_ALL,
  BEHIND_DECIDED, /* decided by a rule; stages: by this stage */
  BEHIND_LEFT,    /* the others */
  BEHIND_AMBIGUOUS,
  BEHIND_UNSURE,
  BEHIND_UNREADABLE, /* only stages */
  BEHIND_WHAT_COUNT
};
enum { BEHIND_CAUSES = CENSUS_TABLE_COUNT, BEHIND_TABLES };

/* Return their words in addresses, such as "falls", "left". The readers return false for an unknown
 * word. */
const char *behind_table_name(int table);
const char *behind_what_name(enum behind_what what);
bool behind_table_read(const char *word, int *table);
bool behind_what_read(const char *word, enum behind_what *what);

/* Describes one judgment, stage or session. Words are numbers of the census's names. */
struct behind_unit {
  char session[STORE_ID_BYTES];
  uint32_t workflow, outcome; /* outcome: the session's */
  int64_t time_ms;
  long turn; /* 0: a session, and nothing below is known */
  uint32_t movement, rule, method, match_method, provider, model;
  bool ambiguous;
  uint32_t stage, reason, to; /* set for a stage: `stage` is not NAMES_NONE */
};

struct behind {
  int table; /* enum census_table, or BEHIND_CAUSES */
  enum behind_what what;
  struct str keys[TALLY_KEYS_MAX]; /* the group's keys as texts */
  uint64_t from;                   /* number of units to skip */
  size_t max;
  struct behind_unit *units;
  size_t count, room;
  uint64_t total;
  const struct census *census;
  const struct tally_table *keyed;
  struct rows rows;
};

bool behind_read_store(struct behind *b, struct census *c, const struct store *store,
                       struct err *err) MUST_CHECK;
/* Appends the units as CSV (RFC 4180) with a header line, and as a list of objects. */
void behind_csv(const struct behind *b, struct buf *out);
void behind_json(const struct behind *b, struct buf *out);
void behind_deinit(struct behind *b);

#endif
