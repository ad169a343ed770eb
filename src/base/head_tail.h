/* head_tail.h - a long output within a bound: its beginning and its end, for the outcome of a
 * program stands at the end of what it prints.
 *
 *   head_tail_init, head_tail_append as often as wanted, head_tail_finish; head_tail_deinit
 *
 * An output that fits is kept as it is. Of a longer one the first quarter of the bound and, in a
 * ring, what came last are kept; between them head_tail_finish puts a line of its own that says
 * how many bytes are missing. Both sides end at a line's end where one is near, else at a whole
 * character. An append costs its own bytes, whatever came before. */
#ifndef SEGUE_BASE_HEAD_TAIL_H
#define SEGUE_BASE_HEAD_TAIL_H

#include "base/buf.h"

struct head_tail {
  struct buf bytes; /* the head, then the ring */
  size_t max, ring_at;
  uint64_t total; /* bytes appended */
};

enum { HEAD_TAIL_MIN_BYTES = 256 };

/* max: bytes kept, the line included; at least HEAD_TAIL_MIN_BYTES. */
void head_tail_init(struct head_tail *h, size_t max);
void head_tail_append(struct head_tail *h, struct str piece);
/* The text, for buf_deinit, without a maximum; its `cut` and `dropped` say what is missing. h is
 * empty afterwards, as after head_tail_init. */
struct buf head_tail_finish(struct head_tail *h);
void head_tail_deinit(struct head_tail *h); /* accepts a zeroed one */

/* The same line behind a text of which only the beginning was kept (`cut`); nothing otherwise. */
void buf_say_cut(struct buf *b);

#endif
