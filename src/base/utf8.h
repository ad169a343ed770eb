/* utf8.h - the one place that knows how characters become bytes.
 *
 * Well-formed is what RFC 3629 says: no surrogates, no overlong forms, nothing above U+10FFFF. All
 * lengths are in bytes unless they are called a count. */
#ifndef SEGUE_BASE_UTF8_H
#define SEGUE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_BYTES_MAX = 4, UTF8_LAST = 0x10FFFF };

/* Length of the well-formed sequence at p, which has n bytes; 0 = ill-formed, or n is 0. `cp` may
 * be NULL. */
size_t utf8_decode(const char *p, size_t n, uint32_t *cp);
bool utf8_valid(const char *p, size_t n);
/* Writes one character, returns its length. A surrogate becomes U+FFFD. */
size_t utf8_put(char out[UTF8_BYTES_MAX], uint32_t cp);

/* Columns that a terminal uses for it: 0 for combining marks, 2 for East Asian wide, else 1. */
int utf8_width(uint32_t cp);
/* Counts the characters of well-formed text; in other text, the bytes that begin one. */
size_t utf8_count(const char *p, size_t n);
/* Where text can be cut: the largest length up to n that does not part a sequence, and the
 * smallest offset from `at` at which one may begin. */
size_t utf8_floor(const char *p, size_t n);
size_t utf8_ceil(const char *p, size_t n, size_t at);

/* Is it a byte of a character other than its first? */
static inline bool utf8_is_tail(char c) {
  return ((unsigned char)c & 0xC0) == 0x80;
}

/* Does it change the direction of the text around it? */
static inline bool utf8_is_bidi(uint32_t cp) {
  return cp == 0x061C || cp == 0x200E || cp == 0x200F || (cp >= 0x202A && cp <= 0x202E) ||
         (cp >= 0x2066 && cp <= 0x2069);
}

static inline bool utf8_is_surrogate(uint32_t cp) {
  return cp >= 0xD800 && cp <= 0xDFFF;
}

/* \uD83D\uDE00 in JSON, ECMAScript and expressions: are the two halves of one character, which
 * then is in *cp? */
static inline bool utf8_join(uint32_t high, uint32_t low, uint32_t *cp) {
  if (high < 0xD800 || high > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
    return false;
  *cp = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

#endif
