/* group_by.h - counts rows by up to four keys: how many, what came of them, what they cost.
 *
 *   struct group_by_table t = {.keys = {GROUP_BY_MOVEMENT}, .key_count = 1, .memory = &memory};
 *   group_by_add(&t, names, row) ...; group_by_sort(&t, names); t.groups[i] ...;
 *       group_by_deinit(&t)
 *
 * With a key of stages (GROUP_BY_STAGE, GROUP_BY_REASON) the unit is a judgment's stage, not the
 * judgment; `judgments` then counts the judgments that had such a stage. Values (ROW_VALUE), and
 * the use of turns that were never judged (ROW_REST), are counted in the group of their own keys.
 *
 * All tallies of an audit share `memory`; when LIMIT_AUDIT_GROUP_BYTES of it are used, no new group
 * is made and `left_out` counts what would have needed one. */
#ifndef SEGUE_AUDIT_GROUP_BY_H
#define SEGUE_AUDIT_GROUP_BY_H

#include "audit/dictionary.h"
#include "audit/percentiles.h"
#include "audit/rows.h"

enum group_by_key {
  GROUP_BY_METHOD,
  GROUP_BY_MATCH_METHOD,
  GROUP_BY_MOVEMENT,
  GROUP_BY_WORKFLOW,
  GROUP_BY_PROVIDER,
  GROUP_BY_MODEL,
  GROUP_BY_WORKER,
  GROUP_BY_WORKER_MODEL,
  GROUP_BY_SCHEMA,
  GROUP_BY_OUTCOME,
  GROUP_BY_BASIS,
  GROUP_BY_RULE,
  GROUP_BY_MARK,
  GROUP_BY_DAY,
  GROUP_BY_STAGE,
  GROUP_BY_REASON,
  GROUP_BY_TO, /* the stage that was tried next */
  GROUP_BY_KEY_COUNT
};
enum { GROUP_BY_KEYS_MAX = 4, GROUP_BY_MENDED_COUNT = 6 };

const char *group_by_key_name(enum group_by_key key);
bool group_by_key_from_name(struct str name, enum group_by_key *key);

struct group_by_row {
  /* numbers of names; for GROUP_BY_RULE the rule, for GROUP_BY_MARK what became of it, for
   * GROUP_BY_DAY days since 1970 */
  uint32_t keys[GROUP_BY_KEYS_MAX];
  uint64_t judgments, units;   /* units: judgments, or stages */
  uint64_t decided;            /* units: judgments with a rule, or stages that decided */
  uint64_t ambiguous, no_rule; /* judgments */
  uint64_t unsure;             /* judgments in which a stage that reads words did not decide */
  uint64_t outcomes[OUTCOME_COUNT + 1]; /* outcomes of stages, without votes */
  struct row_use use;        /* of judges: by all stages of the units, and by calls that none has */
  struct row_use unsure_use; /* the part that no judge would have used, had each stage decided */
  struct row_use work;
  uint64_t marks[TAG_MARK_COUNT];      /* judgments by what became of their turn's mark */
  uint64_t again;                      /* questions to judges that were asked more than once */
  struct row_use again_use;            /* the part of `use` that did so */
  struct percentiles ms, tokens, cost; /* per unit; cost: only where known, in nanodollars */
  /* Answers that must have a form: those of judges, and those of movements. */
  uint64_t readings, reading_first_pass, reading_mended[GROUP_BY_MENDED_COUNT];
  uint64_t values, value_first_pass, value_mended[GROUP_BY_MENDED_COUNT], value_none,
      value_repaired;
  uint64_t last_row; /* number of the row counted last here: for `judgments` */
};

struct group_by_table {
  enum group_by_key keys[GROUP_BY_KEYS_MAX];
  size_t key_count;
  /* with stages: the unit is one question to a judge, each vote its own, without a panel's
   * result */
  bool askings;
  size_t *memory;
  struct group_by_row *groups;
  size_t count, last; /* last: the group that was counted in last, mostly the next one as well */
  uint64_t left_out, row;
  struct map map;
  struct arena arena;
};

/* A judgment, or one of its stages, counts once. */
struct group_by_unit {
  const struct row *row;
  const struct row_stage *stage; /* NULL: the judgment */
  uint32_t to;                   /* the stage that was tried next */
  struct row_use use, unsure_use, again_use;
};

bool group_by_stage(const struct group_by_table *t);
void group_by_add(struct group_by_table *t, const struct row *row);
/* Calls back for each unit that group_by_add counts for a judgment's row. */
void group_by_units(const struct group_by_table *t, const struct row *row, void *ctx,
                    void (*each)(void *ctx, const struct group_by_unit *u));
/* Returns whether a stage of the judgment read a model's words and did not decide. */
bool group_by_is_unsure(const struct row *row);
/* Returns the number of the group that a judgment was added to; there is none with keys of stages.
 * SIZE_MAX: it has no group, because there are too many. */
size_t group_by_row_of(const struct group_by_table *t, const struct row *row);
/* Sorts the groups with most units first, equal ones by their keys' texts. */
void group_by_sort(struct group_by_table *t, const struct name_list *names);
/* Gives a key of a group as text, "" if it has none. */
void group_by_key_text(const struct group_by_table *t, const struct group_by_row *g, size_t key,
                       const struct name_list *names, struct buf *out);
/* Gives it as people read it: a stage or a method in words, and "-" if there is none. */
void group_by_key_words(const struct group_by_table *t, const struct group_by_row *g, size_t key,
                        const struct name_list *names, struct buf *out);
/* Gives a unit's key as text. */
void group_by_unit_text(const struct group_by_table *t, const struct group_by_unit *u, size_t key,
                        const struct name_list *names, struct buf *out);
void group_by_deinit(struct group_by_table *t);

#endif
