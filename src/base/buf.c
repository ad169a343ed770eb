/* Grows a buffer of bytes, and makes text safe for a terminal. */
#include "base/buf.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_grow(struct buf *b, size_t extra) {
  size_t need = b->n + extra + 1;
  assert(need > extra);
  size_t cap = b->cap ? b->cap : 64;
  while (cap < need)
    cap = cap < (1u << 20) ? cap * 2 : cap + cap / 2;
  b->p = xrealloc(b->p, cap);
  b->p[b->n] = '\0'; /* also for one that was never used */
  b->cap = cap;
}

void buf_append(struct buf *b, const void *p, size_t n) {
  if (b->max != 0 && n > b->max - b->n) {
    size_t fits = b->max - b->n;
    b->cut = true;
    b->dropped += n - fits;
    n = fits;
  }
  buf_reserve(b, n);
  if (n > 0)
    memcpy(b->p + b->n, p, n);
  b->n += n;
  b->p[b->n] = '\0';
}

void buf_str(struct buf *b, struct str s) {
  buf_append(b, s.p, s.n);
}

void buf_puts(struct buf *b, const char *s) {
  buf_append(b, s, strlen(s));
}

__attribute__((format(printf, 2, 0))) static void append_formatted(struct buf *b, const char *fmt,
                                                                   va_list ap) {
  char small[256];
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(small, sizeof small, fmt, ap);
  assert(n >= 0);
  if ((size_t)n < sizeof small) {
    buf_append(b, small, (size_t)n);
  } else {
    char_auto_t *big = xmalloc((size_t)n + 1);
    (void)vsnprintf(big, (size_t)n + 1, fmt, again);
    buf_append(b, big, (size_t)n);
  }
  va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  append_formatted(b, fmt, ap);
  va_end(ap);
}

struct buf buf_of(const char *fmt, ...) {
  struct buf b = {0};
  va_list ap;
  va_start(ap, fmt);
  append_formatted(&b, fmt, ap);
  va_end(ap);
  return b;
}

void buf_put_size(struct buf *b, size_t bytes) {
  if (bytes < 1024)
    buf_printf(b, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
  else if (bytes < 1024 * 1024)
    buf_printf(b, "%.1f KiB", (double)bytes / 1024);
  else
    buf_printf(b, "%.1f MiB", (double)bytes / (1024 * 1024));
}

void buf_clear(struct buf *b) {
  b->n = 0;
  b->cut = false;
  b->dropped = 0;
  if (b->p)
    b->p[0] = '\0';
}

void buf_set(struct buf *b, struct str s) {
  buf_clear(b);
  buf_str(b, s);
}

void buf_mended(struct buf *b, struct str s) {
  while (s.n > 0) {
    size_t n = utf8_decode(s.p, s.n, NULL);
    buf_append(b, n > 0 ? s.p : "\xEF\xBF\xBD", n > 0 ? n : 3);
    n = n > 0 ? n : 1;
    s = (struct str){s.p + n, s.n - n};
  }
}

void buf_percent_decoded(struct buf *b, struct str text) {
  buf_append(b, "", 0);
  for (size_t i = 0; i < text.n; i++) {
    int high = text.p[i] == '%' && i + 2 < text.n ? str_hex_digit(text.p[i + 1]) : -1;
    int low = high >= 0 ? str_hex_digit(text.p[i + 2]) : -1;
    buf_putc(b, low >= 0 ? (char)(high * 16 + low) : text.p[i]);
    i += low >= 0 ? 2 : 0;
  }
}

void buf_base64(struct buf *b, struct str s) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < s.n; i += 3) {
    unsigned group = 0;
    for (size_t k = 0; k < 3; k++)
      group = group << 8 | (i + k < s.n ? (unsigned char)s.p[i + k] : 0u);
    for (size_t k = 0; k < 4; k++)
      buf_putc(b, i + k > s.n ? '=' : digits[group >> (18 - 6 * k) & 63]);
  }
}

void buf_deinit(struct buf *b) {
  free(b->p);
  *b = (struct buf){0};
}

const char *buf_c(const struct buf *b) {
  return b->p ? b->p : "";
}

struct str buf_view(const struct buf *b) {
  return (struct str){buf_c(b), b->n};
}

char *buf_take(struct buf *b) {
  char *p = b->p ? b->p : xcalloc(1, 1);
  *b = (struct buf){.max = b->max};
  return p;
}

static bool steers_terminal(uint32_t cp) {
  return cp < 0x20 || (cp >= 0x7F && cp <= 0x9F) || utf8_is_bidi(cp) || cp == 0x2028 ||
         cp == 0x2029;
}

static bool is_between(char c, char from, char to) {
  return c >= from && c <= to;
}

/* Returns the length of the sequence that begins at p[0], an ESC; 0 if none does. */
static size_t escape_at(const char *p, size_t n) {
  size_t i = 2;
  if (n < 2)
    return 0;
  if (p[1] == '[') {
    while (i < n && is_between(p[i], 0x20, 0x3F))
      i++;
    return i < n && is_between(p[i], 0x40, 0x7E) ? i + 1 : i;
  }
  if (strchr("]PX^_", p[1]) != NULL && p[1] != '\0') {
    while (i < n && (unsigned char)p[i] >= 0x20 && p[i] != 0x7F)
      i++;
    bool ends = i < n && (p[i] == '\a' || (p[i] == 0x1B && i + 1 < n && p[i + 1] == '\\'));
    if (!ends)
      return 2;
    return p[i] == '\a' ? i + 1 : i + 2;
  }
  for (i = 1; i < n && is_between(p[i], 0x20, 0x2F);)
    i++;
  return i < n && is_between(p[i], 0x30, 0x7E) ? i + 1 : 0;
}

size_t escapes_drop(char *p, size_t n) {
  size_t to = 0;
  for (size_t i = 0; i < n;) {
    const char *next = memchr(p + i, 0x1B, n - i);
    size_t plain = next ? (size_t)(next - p) - i : n - i;
    if (to != i)
      memmove(p + to, p + i, plain);
    to += plain;
    i += plain;
    size_t sequence = i < n ? escape_at(p + i, n - i) : 0;
    i += sequence;
    if (i < n && sequence == 0)
      p[to++] = p[i++];
  }
  if (to < n)
    p[to] = '\0';
  return to;
}

void buf_safe(struct buf *b, struct str s, bool lines) {
  size_t i = 0;
  while (i < s.n) {
    uint32_t cp;
    size_t len = utf8_decode(s.p + i, s.n - i, &cp);
    if (len == 0) {
      buf_printf(b, "\\x%02x", (unsigned char)s.p[i]);
      i++;
      continue;
    }
    if (cp == '\n' || cp == '\t')
      buf_putc(b, lines ? (char)cp : ' ');
    else if (cp == '\r' && i + 1 < s.n && s.p[i + 1] == '\n')
      ; /* CRLF is a line end */
    else if (cp == 0x1B)
      buf_puts(b, "\\e");
    else if (steers_terminal(cp))
      buf_printf(b, cp < 0x100 ? "\\x%02x" : "\\u%04x", cp);
    else
      buf_append(b, s.p + i, len);
    i += len;
  }
}

void buf_quoted(struct buf *b, struct str word) {
  buf_putc(b, '\'');
  for (size_t i = 0; i < word.n; i++)
    if (word.p[i] == '\'')
      buf_puts(b, "'\\''");
    else
      buf_putc(b, word.p[i]);
  buf_putc(b, '\'');
}
