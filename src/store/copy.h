/* copy.h - takes sessions from one store to another, byte for byte, whatever back ends they have.
 *
 *   copy_log(&to, &ref, move, &copied, &err)
 *
 * The chain of the log is checked on the way, and a log that is not sound is not copied. Blobs that
 * its records name go first. A session that has not ended can go on in one place only: it is copied
 * with `move` alone, then its source is taken over and set aside. */
#ifndef SEGUE_STORE_COPY_H
#define SEGUE_STORE_COPY_H

#include "store/store.h"

enum copy_result {
  COPY_FAILED,
  COPY_DONE,
  COPY_THERE, /* the same log is there already */
  COPY_LEFT   /* unfinished, and `move` was not said: err tells */
};

enum copy_result copy_log(struct store *to, const struct store_ref *ref, bool move,
                          struct err *err) MUST_CHECK;

#endif
