/* tally.h - counts rows by up to four keys: how many, what came of them, what they cost.
 *
 *   struct tally_table t = {.keys = {TALLY_MOVEMENT}, .key_count = 1, .memory = &memory};
 *   tally_add(&t, names, row) ...; tally_sort(&t, names); t.groups[i] ...; tally_deinit(&t)
 *
 * With a key of stages (TALLY_STAGE, TALLY_REASON) the unit is a judgment's stage, not the
 * judgment; `judgments` then counts the judgments that had such a stage. Values (ROW_VALUE) are
 * counted in the group of their own keys.
 *
 * All tallies of an audit share `memory`; when LIMIT_AUDIT_GROUP_BYTES of it are used, no new group
 * is made and `left_out` counts what would have needed one. */
#ifndef SEGUE_AUDIT_TALLY_H
#define SEGUE_AUDIT_TALLY_H

#include "audit/names.h"
#include "audit/rows.h"
#include "audit/spread.h"

enum tally_key {
  TALLY_METHOD,
  TALLY_MATCH_METHOD,
  TALLY_MOVEMENT,
  TALLY_WORKFLOW,
  TALLY_PROVIDER,
  TALLY_MODEL,
  TALLY_WORKER,
  TALLY_WORKER_MODEL,
  TALLY_SCHEMA,
  TALLY_OUTCOME,
  TALLY_RULE,
  TALLY_DAY,
  TALLY_STAGE,
  TALLY_REASON,
  TALLY_TO, /* the stage that was tried next */
  TALLY_KEY_COUNT
};
enum { TALLY_KEYS_MAX = 4, TALLY_MENDED_COUNT = 6 };

const char *tally_key_name(enum tally_key key);
bool tally_key_from_name(struct str name, enum tally_key *key);

struct tally_group {
  /* numbers of names; for TALLY_RULE the rule, for TALLY_DAY days since 1970 */
  uint32_t keys[TALLY_KEYS_MAX];
  uint64_t judgments, units;   /* units: judgments, or stages */
  uint64_t decided;            /* units: judgments with a rule, or stages that decided */
  uint64_t ambiguous, no_rule; /* judgments */
  uint64_t unsure;             /* judgments in which a stage that reads words did not decide */
  uint64_t outcomes[OUTCOME_COUNT + 1]; /* outcomes of stages, without votes */
  struct row_use use;                   /* use by all stages of the units */
  struct row_use unsure_use;            /* use by stages that did not decide */
  struct row_use work;
  struct spread ms, tokens, cost; /* per unit; cost: only where known, in nanodollars */
  /* Answers that must have a form: those of judges, and those of movements. */
  uint64_t readings, reading_first_pass, reading_mended[TALLY_MENDED_COUNT];
  uint64_t values, value_first_pass, value_mended[TALLY_MENDED_COUNT], value_none, value_repaired;
  uint64_t last_row; /* number of the row counted last here: for `judgments` */
};

struct tally_table {
  enum tally_key keys[TALLY_KEYS_MAX];
  size_t key_count;
  /* with stages: the unit is one question to a judge, each vote its own, without a panel's
   * result */
  bool askings;
  size_t *memory;
  struct tally_group *groups;
  size_t count;
  uint64_t left_out, row;
  struct map map;
  struct arena arena;
};

/* A judgment, or one of its stages, counts once. */
struct tally_unit {
  const struct row *row;
  const struct row_stage *stage; /* NULL: the judgment */
  uint32_t to;                   /* the stage that was tried next */
  struct row_use use, unsure_use;
};

bool tally_by_stage(const struct tally_table *t);
void tally_add(struct tally_table *t, const struct row *row);
/* Calls back for each unit that tally_add counts for a judgment's row. */
void tally_units(const struct tally_table *t, const struct row *row, void *ctx,
                 void (*each)(void *ctx, const struct tally_unit *u));
/* Returns whether a stage of the judgment read a model's words and did not decide. */
bool tally_is_unsure(const struct row *row);
/* Returns the number of the group that a judgment was added to; there is none with keys of stages.
 * SIZE_MAX: it has no group, because there are too many. */
size_t tally_group_of(const struct tally_table *t, const struct row *row);
/* Sorts the groups with most units first, equal ones by their keys' texts. */
void tally_sort(struct tally_table *t, const struct name_list *names);
/* Gives a key of a group as text, "" if it has none. */
void tally_key_text(const struct tally_table *t, const struct tally_group *g, size_t key,
                    const struct name_list *names, struct buf *out);
/* Does the same for a unit. */
void tally_unit_text(const struct tally_table *t, const struct tally_unit *u, size_t key,
                     const struct name_list *names, struct buf *out);
void tally_deinit(struct tally_table *t);

#endif
