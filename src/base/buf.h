/* buf.h - a growing byte buffer, always NUL-terminated, with a maximum.
 *
 * `struct buf b = {0};` is a valid empty buffer without a maximum; set `max` (bytes) before the
 * first append for outside data. An append beyond the maximum keeps what fits, sets `cut` and
 * counts what was dropped. buf_deinit leaves a zeroed buffer and accepts one. */
#ifndef SEGUE_BASE_BUF_H
#define SEGUE_BASE_BUF_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct buf {
  char *p; /* NULL while empty and never used; see buf_c */
  size_t n, cap;
  size_t max;       /* bytes, 0 = none */
  bool cut;         /* something did not fit */
  uint64_t dropped; /* bytes that did not fit */
};

/* Declares a buffer that is freed at the end of its block. */
#define buf_auto_t AUTO(buf_deinit) struct buf

void buf_append(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, struct str s);
void buf_puts(struct buf *b, const char *s);
static inline void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct buf buf_of(const char *fmt, ...) PRINTF_LIKE(1, 2); /* a new one */
/* The size of a text in words: "1 byte", "1.2 KiB", "3.0 MiB". */
void buf_put_size(struct buf *b, size_t bytes);
static inline void buf_reserve(struct buf *b, size_t extra);
void buf_clear(struct buf *b);             /* keeps the memory */
void buf_set(struct buf *b, struct str s); /* clears it and appends */
/* Appends a text with U+FFFD in place of each byte that is not UTF-8. */
void buf_mended(struct buf *b, struct str s);
/* Appends a text with its percent escapes decoded; what is no escape stays. */
void buf_percent_decoded(struct buf *b, struct str text);
void buf_base64(struct buf *b, struct str s); /* RFC 4648, with padding */
void buf_deinit(struct buf *b);
const char *buf_c(const struct buf *b); /* never NULL, NUL-terminated */
struct str buf_view(const struct buf *b);
char *buf_take(struct buf *b); /* gives the bytes away (free() them); leaves an empty buffer */

void buf_grow(struct buf *b, size_t extra); /* the slow path of buf_reserve */

static inline void buf_reserve(struct buf *b, size_t extra) {
  if (b->cap - b->n <= extra)
    buf_grow(b, extra);
}

static inline void buf_putc(struct buf *b, char c) {
  if (b->max == 0 && b->n + 2 <= b->cap) {
    b->p[b->n++] = c;
    b->p[b->n] = '\0';
  } else {
    buf_append(b, &c, 1);
  }
}

/* Text for a terminal or a message: control characters, C1, bidi controls and ill-formed UTF-8
 * become visible escapes, so that model output can never steer a terminal. Newline and tab stay
 * when `lines` is set, else they become a space. */
void buf_safe(struct buf *b, struct str s, bool lines);
/* Appends one word for a shell, in quotes. */
void buf_quoted(struct buf *b, struct str word);

/* Removes a terminal's escape sequences from n bytes and the NUL after them, in place: CSI, OSC and
 * the other strings (up to BEL or ESC \; only the first two bytes of one that never ends), and the
 * short ones. An ESC that begins no sequence stays. Returns how many bytes are left before the
 * NUL. */
size_t escapes_drop(char *p, size_t n);

#endif
