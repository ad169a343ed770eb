/* copy.h - copies sessions from one store to another, byte for byte, whatever their back ends.
 *
 *   copy_log(&to, &ref, move, &copied, &err)
 *
 * The log's chain is checked on the way, and a damaged log is not copied. Blobs that its records
 * name go first. A session that has not ended can continue in only one place, so it is copied only
 * with `move`, and then its source is taken over and set aside. */
#ifndef SEGUE_STORE_COPY_H
#define SEGUE_STORE_COPY_H

#include "store/store.h"

enum copy_result {
  COPY_FAILED,
  COPY_DONE,
  COPY_THERE, /* the same log is there already */
  COPY_LEFT   /* unfinished, and without `move`: err says so */
};

enum copy_result copy_log(struct store *to, const struct store_ref *ref, bool move,
                          struct err *err) MUST_CHECK;

#endif
