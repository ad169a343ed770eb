/* record_index.h - keeps a session for its viewers: its view, and the place of each of its records,
 * made in one read and extended while its log grows.
 *
 *   t = record_index_new(&ref)
 *   record_index_read(t, &err)      all, or what was appended since; then t->view and t->book count
 *   record_index_bytes(t)           memory, roughly
 *   record_index_free(t)
 *
 * One thread at a time, and never on a loop. A log that was damaged, replaced or shortened is read
 * from the start. After a failed read there is no view; the next one starts again. */
#ifndef SEGUE_VIEW_RECORD_INDEX_H
#define SEGUE_VIEW_RECORD_INDEX_H

#include "view/session_view.h"

struct record_index {
  struct store_ref ref;
  struct verified_reader book; /* with places */
  struct view_session view;
  bool read;
  uint64_t bytes, written; /* as the log was when read */
  bool owned;
};

struct record_index *record_index_new(const struct store_ref *ref);
bool record_index_read(struct record_index *t, struct err *err) MUST_CHECK;
size_t record_index_bytes(const struct record_index *t);
void record_index_free(struct record_index *t); /* NULL is fine */

#endif
