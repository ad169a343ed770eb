/* track.h - keeps a session for its viewers: its view, and the place of each of its records, made
 * in one read and extended while its log grows.
 *
 *   t = track_new(&ref)
 *   track_read(t, &err)      all, or what was appended since; then t->view and t->book count
 *   track_bytes(t)           memory, roughly
 *   track_free(t)
 *
 * One thread at a time, and never on a loop. A log that was damaged, replaced or shortened is read
 * from the start. After a failed read there is no view; the next one starts again. */
#ifndef SEGUE_VIEW_TRACK_H
#define SEGUE_VIEW_TRACK_H

#include "view/session.h"

struct track {
  struct store_ref ref;
  struct book book; /* with places */
  struct view_session view;
  bool read;
  uint64_t bytes, written; /* as the log was when read */
  bool owned;
};

struct track *track_new(const struct store_ref *ref);
bool track_read(struct track *t, struct err *err) MUST_CHECK;
size_t track_bytes(const struct track *t);
void track_free(struct track *t); /* NULL is fine */

#endif
