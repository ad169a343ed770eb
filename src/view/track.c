/* Keeps a session's view while its log grows. */
#include "view/track.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>

struct track *track_new(const struct store_ref *ref) {
  assert(ref != NULL);
  struct track *t = xcalloc(1, sizeof *t);
  t->ref = *ref;
  return t;
}

static void track_clear(struct track *t) {
  view_session_deinit(&t->view);
  book_close(&t->book);
  t->read = false;
}

static bool track_begin(struct track *t, struct err *err) {
  track_clear(t);
  if (!book_open(&t->book, &t->ref, true, err))
    return false;
  t->view.reading = view_reading_new(&t->view);
  return true;
}

/* Returns true if nothing has changed that a log shows. */
static bool is_fresh(const struct track *t, uint64_t bytes, uint64_t written, bool owned) {
  return t->read && bytes == t->bytes && written == t->written && owned == t->owned;
}

/* Returns true for a different log: a log only grows, so one that was written to and is no longer
 * than before is another one. */
static bool is_other(const struct track *t, uint64_t bytes, uint64_t written) {
  return bytes < t->bytes || (bytes == t->bytes && written != t->written);
}

bool track_read(struct track *t, struct err *err) {
  assert(t != NULL);
  uint64_t bytes = 0, written = store_written(&t->ref); /* before the bytes: they may grow */
  bool owned = store_is_owned(&t->ref);
  if (!store_bytes(&t->ref, &bytes)) {
    track_clear(t);
    return err_set(err, ERR_NOT_FOUND, "the log %.200s no longer exists", t->ref.name);
  }
  if (is_fresh(t, bytes, written, owned)) {
    assert(t->view.reading != NULL);
    return true;
  }
  bool more = t->read && !is_other(t, bytes, written) && t->book.state != BOOK_DAMAGED &&
              book_again(&t->book);
  if (!more && !track_begin(t, err))
    return false;
  t->read = view_reading_go_on(t->view.reading, &t->book, err);
  if (more && (!t->read || t->book.state == BOOK_DAMAGED)) {
    /* The records read before may be gone, too. */
    if (!track_begin(t, err))
      return false;
    t->read = view_reading_go_on(t->view.reading, &t->book, err);
  }
  reader_free_buffer(&t->book.reader);
  t->bytes = bytes;
  t->written = written;
  t->owned = owned;
  if (!t->read)
    track_clear(t);
  return t->read;
}

size_t track_bytes(const struct track *t) {
  const struct view_session *v = &t->view;
  size_t spans = 0;
  for (size_t i = 0; i < v->turn_count; i++)
    spans += v->turns[i].span_count * sizeof *v->turns[i].spans;
  return sizeof *t + v->arena.used_bytes + v->turn_count * sizeof *v->turns + spans +
         t->book.place_count * sizeof *t->book.places;
}

void track_free(struct track *t) {
  if (t == NULL)
    return;
  track_clear(t);
  free(t);
}
