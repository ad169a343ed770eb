/* log_book.h - the log of a whole session, and its book, read to the end; for tests of what is
 * shown of it. A group has both from its setup on. */
#ifndef SEGUE_TESTS_LOG_BOOK_H
#define SEGUE_TESTS_LOG_BOOK_H

#include "audit/verified_reader.h"
#include "support/audit_log.h"
#include "support/log_ref.h"

static inline void log_book_open(struct verified_reader *book, const char *path) {
  struct err err;
  json_t *record;
  assert_true(verified_open(book, log_ref(path), true, &err));
  while ((record = verified_next(book)) != NULL)
    json_decref(record);
}

static struct drive drive;
static struct verified_reader log_book;

static int log_book_setup(void **state) {
  (void)state;
  drive_everything(&drive);
  drive_write(&drive);
  log_book_open(&log_book, drive.path);
  return 0;
}

static int log_book_teardown(void **state) {
  (void)state;
  verified_close(&log_book);
  drive_deinit(&drive);
  return 0;
}

#endif
