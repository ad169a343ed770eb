/* Keeps a session's view while its log grows. */
#include "view/record_index.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>

struct record_index *record_index_new(const struct store_ref *ref) {
  assert(ref != NULL);
  struct record_index *t = xcalloc(1, sizeof *t);
  t->ref = *ref;
  return t;
}

static void record_index_clear(struct record_index *t) {
  view_session_deinit(&t->view);
  verified_close(&t->book);
  t->read = false;
}

static bool record_index_begin(struct record_index *t, struct err *err) {
  record_index_clear(t);
  if (!verified_open(&t->book, &t->ref, true, err))
    return false;
  t->view.reading = view_reading_new(&t->view);
  return true;
}

bool record_index_read(struct record_index *t, struct err *err) {
  assert(t != NULL);
  uint64_t bytes = 0, written = store_written(&t->ref); /* before the bytes: they may grow */
  bool owned = store_is_owned(&t->ref);
  if (!store_bytes(&t->ref, &bytes)) {
    record_index_clear(t);
    return err_set(err, ERR_NOT_FOUND, "the log %.200s no longer exists", t->ref.name);
  }
  if (t->read && bytes == t->bytes && written == t->written && owned == t->owned) {
    assert(t->view.reading != NULL);
    return true;
  }
  /* A log only grows: one that was written to and is no longer than before is another one. */
  bool grew = bytes > t->bytes || (bytes == t->bytes && written == t->written);
  bool more = t->read && grew && t->book.state != VERIFIED_DAMAGED && verified_again(&t->book);
  if (!more && !record_index_begin(t, err))
    return false;
  t->read = view_reading_go_on(t->view.reading, &t->book, err);
  if (more && (!t->read || t->book.state == VERIFIED_DAMAGED)) {
    /* The records read before may be gone, too. */
    if (!record_index_begin(t, err))
      return false;
    t->read = view_reading_go_on(t->view.reading, &t->book, err);
  }
  reader_free_buffer(&t->book.reader);
  t->bytes = bytes;
  t->written = written;
  t->owned = owned;
  if (!t->read)
    record_index_clear(t);
  return t->read;
}

size_t record_index_bytes(const struct record_index *t) {
  const struct view_session *v = &t->view;
  size_t spans = 0;
  for (size_t i = 0; i < v->turn_count; i++)
    spans += v->turns[i].span_count * sizeof *v->turns[i].spans;
  return sizeof *t + v->arena.used_bytes + v->turn_count * sizeof *v->turns + spans +
         t->book.place_count * sizeof *t->book.places;
}

void record_index_free(struct record_index *t) {
  if (t == NULL)
    return;
  record_index_clear(t);
  free(t);
}
