/* drilldown.h - finds the judgments behind one number of an audit: as many as the number says.
 *
 *   struct drilldown b = {.table = AGGREGATE_FALLS, .what = DRILLDOWN_LEFT, .keys = {...}, .max =
 *       200};
 *   drilldown_read_store(&b, aggregate, &store, &err)
 *       applies the aggregate's filters; with the table
 *   b.units[i] ... b.count of b.total; drilldown_deinit(&b)
 *
 * In a table of stages each stage of a judgment counts, and in DRILLDOWN_CAUSES each session.
 * Newest sessions come first. Memory: b.max units. */
#ifndef SEGUE_AUDIT_DRILLDOWN_H
#define SEGUE_AUDIT_DRILLDOWN_H

#include "audit/aggregate.h"

enum drilldown_what {
  DRILLDOWN_ALL,
  DRILLDOWN_DECIDED, /* decided by a rule; stages: by this stage */
  DRILLDOWN_LEFT,    /* the others */
  DRILLDOWN_AMBIGUOUS,
  DRILLDOWN_UNSURE,
  DRILLDOWN_UNREADABLE, /* only stages */
  DRILLDOWN_WHAT_COUNT
};
enum { DRILLDOWN_CAUSES = AGGREGATE_TABLE_COUNT, DRILLDOWN_TABLES };

/* Return their words in addresses, such as "falls", "left". The readers return false for an unknown
 * word. */
const char *drilldown_table_name(int table);
const char *drilldown_what_name(enum drilldown_what what);
bool drilldown_table_read(const char *word, int *table);
bool drilldown_what_read(const char *word, enum drilldown_what *what);

/* Describes one judgment, stage or session. Words are numbers of the aggregate's names. */
struct drilldown_unit {
  char session[STORE_ID_BYTES];
  uint32_t workflow, outcome; /* outcome: the session's */
  int64_t time_ms;
  long turn; /* 0: a session, and nothing below is known */
  uint32_t movement, rule, method, match_method, provider, model;
  bool ambiguous;
  uint32_t stage, reason, to; /* set for a stage: `stage` is not DICTIONARY_NONE */
};

struct drilldown {
  int table; /* enum aggregate_table, or DRILLDOWN_CAUSES */
  enum drilldown_what what;
  struct str keys[GROUP_BY_KEYS_MAX]; /* the group's keys as texts */
  uint64_t from;                      /* number of units to skip */
  size_t max;
  struct drilldown_unit *units;
  size_t count, room;
  uint64_t total;
  const struct aggregate *aggregate;
  const struct group_by_table *keyed;
  struct rows rows;
};

bool drilldown_read_store(struct drilldown *b, struct aggregate *c, const struct store *store,
                          struct err *err) MUST_CHECK;
/* Appends the units as CSV (RFC 4180) with a header line, and as a list of objects. */
void drilldown_csv(const struct drilldown *b, struct buf *out);
void drilldown_json(const struct drilldown *b, struct buf *out);
void drilldown_deinit(struct drilldown *b);

#endif
