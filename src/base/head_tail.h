/* head_tail.h - keeps a long output within a bound: its beginning and its end, since programs print
 * their outcome last.
 *
 *   head_tail_init, head_tail_append any number of times, head_tail_finish; head_tail_deinit
 *
 * An output that fits is kept whole. A longer one keeps the first quarter of the bound and, in a
 * ring, what came last; between them head_tail_finish puts a line that says how many bytes are
 * missing. Both sides are cut at a line's end if one is near, otherwise at a whole character. An
 * append costs time for its own bytes only. */
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

/* Appends the same line to a text of which only the beginning was kept (`cut`). */
void buf_say_cut(struct buf *b);

#endif
