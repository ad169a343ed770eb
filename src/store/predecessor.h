/* predecessor.h - how sessions stand for those that are to begin after them.
 *
 *   predecessor_of(&summary, any_end)        one whose summary is known
 *   predecessor_read(&store, id, any_end, &status)   one by its log
 *   predecessors_read(&store, &summary, &why)   all that a session waits for (summary->after)
 *
 * A session lets others begin when it is complete; with any_end also when it has ended otherwise,
 * or has stopped with an outcome (no rule matched, no turn left, failed). Another stop is no end:
 * the session can still complete. One that is gone, or has ended otherwise, never lets them begin.
 * Blocking. */
#ifndef SEGUE_STORE_PREDECESSOR_H
#define SEGUE_STORE_PREDECESSOR_H

#include "store/summary.h"

enum predecessor { PREDECESSOR_PENDING, PREDECESSOR_DONE, PREDECESSOR_NEVER };

enum predecessor predecessor_of(const struct summary *b, bool any_end);
/* status: as it was read, "removed", or "" if it cannot be read now. */
enum predecessor predecessor_read(const struct store *store, const char *id, bool any_end,
                                  char status[sizeof((struct summary *)NULL)->status]);
/* NEVER, with `why`, if one of them never lets it begin. */
enum predecessor predecessors_read(const struct store *store, const struct summary *b,
                                   struct buf *why);
/* Writes the sentence for a session that never begins by itself. */
void predecessor_why(const char *id, const char *status, struct buf *why);
/* Makes whole ids of words (each an id, a unique prefix of one, or `last`) that mean sessions of
 * the store: a new array. NULL: err says which means none. */
json_t *predecessors_find(const struct store *store, const json_t *words,
                          struct err *err) MUST_CHECK;

#endif
