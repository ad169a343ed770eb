/* log_ref.h - a log by its path, for tests that made the file themselves. Valid until the next
 * call. */
#ifndef SEGUE_TESTS_LOG_REF_H
#define SEGUE_TESTS_LOG_REF_H

#include "store/store.h"

#include <assert.h>

static inline const struct store_ref *log_ref(const char *path) {
  static struct store_ref ref;
  bool fits = store_ref_named(path, &ref);
  assert(fits);
  (void)fits;
  return &ref;
}

#endif
