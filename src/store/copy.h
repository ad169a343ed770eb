/* copy.h - copies sessions from one store to another, byte for byte, whatever their back ends.
 *
 *   copy_log(&to, &ref, move, &copied, &err)
 *
 * The chain of the log is checked on the way, and a log that is not sound is not copied. Blobs that
 * its records name go first. A session that has not ended can go on in only one place: it is copied
 * only with `move`, and then its source is taken over and set aside. */
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
