/* Keeps both ends of an output that is longer than its bound. */
#include "base/head_tail.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
  MARK_BYTES = 64,  /* room for the line between */
  NEAR_BYTES = 4096 /* so far from the cut a line's end is looked for */
};

void head_tail_init(struct head_tail *h, size_t max) {
  assert(max >= HEAD_TAIL_MIN_BYTES);
  *h = (struct head_tail){.max = max};
}

void head_tail_deinit(struct head_tail *h) {
  buf_deinit(&h->bytes);
  *h = (struct head_tail){0};
}

static size_t head_bytes(const struct head_tail *h) {
  return h->max / 4;
}

void head_tail_append(struct head_tail *h, struct str piece) {
  size_t room = h->max - h->bytes.n, fits = piece.n < room ? piece.n : room;
  h->total += piece.n;
  if (fits > 0) /* an output without a byte costs no memory */
    buf_append(&h->bytes, piece.p, fits);
  piece = (struct str){piece.p + fits, piece.n - fits};
  size_t head = head_bytes(h), ring = h->max - head;
  if (piece.n > ring) { /* the rest of it would be written over at once */
    h->ring_at = (h->ring_at + (piece.n - ring)) % ring;
    piece = (struct str){piece.p + (piece.n - ring), ring};
  }
  while (piece.n > 0) {
    size_t n = ring - h->ring_at < piece.n ? ring - h->ring_at : piece.n;
    memcpy(h->bytes.p + head + h->ring_at, piece.p, n);
    h->ring_at = (h->ring_at + n) % ring;
    piece = (struct str){piece.p + n, piece.n - n};
  }
}

static void reverse(char *p, size_t n) {
  for (size_t i = 0; i < n / 2; i++) {
    char c = p[i];
    p[i] = p[n - 1 - i];
    p[n - 1 - i] = c;
  }
}

/* Moves the bytes from `by` on to the front, in place. */
static void rotate(char *p, size_t n, size_t by) {
  if (by == 0)
    return;
  reverse(p, by);
  reverse(p + by, n - by);
  reverse(p, n);
}

static size_t head_end(const char *p, size_t n) {
  size_t near = n < NEAR_BYTES ? n / 2 : NEAR_BYTES;
  const char *nl = memrchr(p + (n - near), '\n', near);
  return nl ? (size_t)(nl - p) + 1 : utf8_floor(p, n);
}

static size_t tail_start(const char *p, size_t n) {
  enum { CHARACTER_REST = 3 };
  size_t near = n < NEAR_BYTES ? n / 2 : NEAR_BYTES, i = 0;
  const char *nl = memchr(p, '\n', near);
  if (nl != NULL)
    return (size_t)(nl - p) + 1;
  while (i < CHARACTER_REST && i < n && utf8_is_tail(p[i]))
    i++;
  return i;
}

/* Writes the line about the cut; it stands alone after whatever `before` ends with. */
static size_t mark(char out[MARK_BYTES], struct str before, uint64_t missing) {
  int n = snprintf(out, MARK_BYTES, "%s[... %llu bytes were cut here ...]\n",
                   before.n == 0 || before.p[before.n - 1] == '\n' ? "" : "\n",
                   (unsigned long long)missing);
  assert(n > 0 && n < MARK_BYTES);
  return (size_t)n;
}

struct buf head_tail_finish(struct head_tail *h) {
  struct buf out = h->bytes;
  if (h->total > h->max) {
    size_t head = head_bytes(h), ring = h->max - head;
    char line[MARK_BYTES];
    rotate(out.p + head, ring, h->ring_at);
    size_t from = head + tail_start(out.p + head, ring), tail = h->max - from;
    head = head_end(out.p, head - MARK_BYTES);
    out.cut = true;
    out.dropped = h->total - head - tail;
    size_t n = mark(line, (struct str){out.p, head}, out.dropped);
    memcpy(out.p + head, line, n);
    memmove(out.p + head + n, out.p + from, tail);
    out.n = head + n + tail;
    out.p[out.n] = '\0';
  }
  *h = (struct head_tail){.max = h->max};
  return out;
}

void buf_say_cut(struct buf *b) {
  char line[MARK_BYTES];
  if (!b->cut)
    return;
  size_t max = b->max;
  b->max = 0;
  buf_append(b, line, mark(line, buf_view(b), b->dropped));
  b->max = max;
}
