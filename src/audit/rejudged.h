/* rejudged.h - the verdicts of `segue rejudge` on recorded turns, kept as sessions of their own in
 * the store REJUDGED_FOLDER beside the logs.
 *
 *   struct rejudged r = {.names = &names};
 *   rejudged_store(&store, &beside, &err) && rejudged_read(&r, &beside, &err)
 *   i = rejudged_find(&r, session, turn) ... r.list[i]
 *   rejudged_deinit(&r)
 *
 * A judgment that found no rule is a verdict (0), or none (REJUDGED_UNDECIDED) if no judge's answer
 * could be used; a session without a judgment does not count. Unsound logs are only counted.
 * Sessions without an end that nobody runs are `left`. Memory: LIMIT_AUDIT_LABEL_COUNT of both. */
#ifndef SEGUE_AUDIT_REJUDGED_H
#define SEGUE_AUDIT_REJUDGED_H

#include "audit/rows.h"

#define REJUDGED_FOLDER "rejudged"

enum { REJUDGED_UNDECIDED = -1 }; /* in place of a rule's number */

struct rejudged_verdict {
  char session[STORE_ID_BYTES];
  uint32_t name, settings; /* numbers of names */
  long turn, repeat, rule; /* rule 0: none holds; or undecided */
};

struct rejudged_left { /* a session that can be continued */
  char id[STORE_ID_BYTES], session[STORE_ID_BYTES];
  uint32_t name, settings;
  long turn, repeat;
  bool judged;
};

struct rejudged {
  struct name_list *names;
  struct rejudged_verdict *list; /* sorted by session, turn, name, repeat after reading */
  size_t count, room;
  struct rejudged_left *left; /* in the store's order */
  size_t left_count, left_room;
  uint64_t left_out, unsound;
};

/* Gives the store of verdicts. False: its name would be too long, or a shared store has none. */
bool rejudged_store(const struct store *of, struct store *out, struct err *err) MUST_CHECK;
/* Reads the verdicts; a missing store holds none. */
bool rejudged_read(struct rejudged *r, const struct store *store, struct err *err) MUST_CHECK;
/* Returns the index of the first verdict on a turn, or on a later one. */
size_t rejudged_find(const struct rejudged *r, const char *session, long turn);
bool rejudged_is_of(const struct rejudged *r, size_t i, const char *session, long turn);
/* Finds the second judge: the rejudging of this name, or with NULL the one with most verdicts.
 * False: there is none of that name. *name DICTIONARY_NONE: there is none at all. */
bool rejudged_second(const struct rejudged *r, const char *named, uint32_t *name,
                     struct err *err) MUST_CHECK;
/* How a second judge's first verdict stands to a turn's. */
enum rejudged_says { REJUDGED_NOTHING, REJUDGED_SAME, REJUDGED_OTHER };
enum rejudged_says rejudged_says(const struct rejudged *r, uint32_t name, const char *session,
                                 long turn, long rule);
void rejudged_deinit(struct rejudged *r);

#endif
