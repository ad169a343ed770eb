/* copy.h - copies sessions from one store to another, byte for byte, whatever their back ends.
 *
 *   copy_log(&to, &ref, move, &copied, &err)
 *
 * The log's chain is checked on the way, and a damaged log is not copied. Blobs that its records
 * name go first. The copy is kept in transit, where nobody takes it for a log, until it is whole. A
 * session that has not ended can continue in only one place, so it is copied only with `move`: its
 * source is taken over, and set aside before the copy arrives. The same call again finishes what
 * was cut off. */
#ifndef SEGUE_STORE_COPY_H
#define SEGUE_STORE_COPY_H

#include "store/store.h"

enum copy_result {
  COPY_FAILED,
  COPY_DONE,
  COPY_THERE, /* the target already has the same log */
  COPY_LEFT,  /* not ended, and without `move`: err says so */
  COPY_GONE   /* moved to another place earlier: err says so */
};

enum copy_result copy_log(struct store *to, const struct store_ref *ref, bool move,
                          struct err *err) MUST_CHECK;

/* Lists the ids of sessions that store_list leaves out: those that were moved away, or those in
 * transit, which are being copied there now; free() the array. */
bool copy_list_moved(const struct store *store, bool in_transit, struct store_id **ids,
                     size_t *count, struct err *err) MUST_CHECK;

#endif
