/* copy.h - copies sessions from one store to another, byte for byte, whatever their back ends.
 *
 *   copy_log(&to, &ref, move, &copied, &err)
 *
 * The log's chain is checked on the way, and a damaged log is not copied. Blobs that its records
 * name go first. A session that has not ended can continue in only one place, so it is copied only
 * with `move`: its source is taken over, the copy kept in transit, where nobody can go on with it,
 * the source set aside, and only then the copy released. The same call again finishes a move that
 * was cut off. */
#ifndef SEGUE_STORE_COPY_H
#define SEGUE_STORE_COPY_H

#include "store/store.h"

enum copy_result {
  COPY_FAILED,
  COPY_DONE,
  COPY_THERE, /* the same log is there already */
  COPY_LEFT,  /* unfinished, and without `move`: err says so */
  COPY_GONE   /* it was moved to another place before: err says so */
};

enum copy_result copy_log(struct store *to, const struct store_ref *ref, bool move,
                          struct err *err) MUST_CHECK;

/* The ids of sessions that store_list leaves out: those that were moved away, and those that are
 * just being moved there; free() the array. */
bool copy_list_aside(const struct store *store, struct store_id **ids, size_t *count,
                     struct err *err) MUST_CHECK;
bool copy_list_in_transit(const struct store *store, struct store_id **ids, size_t *count,
                          struct err *err) MUST_CHECK;

#endif
