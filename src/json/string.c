/* Reads the content of strings: plain runs, escapes and text that is not ASCII. */
#include "json/scan.h"

#include "base/str.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__SSE2__)
/* Returns a bit for each byte that is a quote, a backslash, a control character or not ASCII. */
static int plain_ends(__m128i v) {
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
  /* The comparison is signed: bytes from 0x80 on count as negative, so they are below a space,
   * too. */
  return _mm_movemask_epi8(
      _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                   _mm_cmplt_epi8(v, _mm_set1_epi8(0x20))));
}
#endif

/* Returns the first byte from i that is a quote, a backslash, a control character or not ASCII. */
static size_t jscan_plain_run(const char *text, size_t n, size_t i) {
#if defined(__SSE2__)
  while (i + 16 <= n) {
    int mask = plain_ends(_mm_loadu_si128((const __m128i *)(const void *)(text + i)));
    if (mask)
      return i + (size_t)__builtin_ctz((unsigned)mask);
    i += 16;
  }
#endif
  for (; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80)
      break;
  }
  return i;
}

enum { PLAIN_BLOCK = 16 };

/* Copies what is plain of the next block, for which there is room. Returns how much that was. */
static size_t copy_plain(const char *text, size_t n, char *out) {
#if defined(__SSE2__)
  if (n >= PLAIN_BLOCK) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)text);
    int mask = plain_ends(v);
    _mm_storeu_si128((__m128i *)(void *)out, v);
    return mask ? (size_t)__builtin_ctz((unsigned)mask) : PLAIN_BLOCK;
  }
#endif
  size_t k = jscan_plain_run(text, n < PLAIN_BLOCK ? n : PLAIN_BLOCK, 0);
  memcpy(out, text, k);
  return k;
}

/* Returns the value of four hexadecimal digits at text[i], or -1. */
static int hex4(const char *text, size_t n, size_t i) {
  if (n - i < 4)
    return -1;
  int v = 0;
  for (size_t k = 0; k < 4; k++) {
    int d = str_hex_digit(text[i + k]);
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* Returns what the byte after a backslash stands for, 0 for u or an unknown one. */
static char simple_escape(char c) {
  static const char plain[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                  ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
  return plain[(unsigned char)c];
}

/* Reads an escape; text[*i] is the byte after the backslash. Moves *i past the escape. */
static enum jscan_code read_escape(const char *text, size_t n, size_t *i, char out[4],
                                   size_t *len) {
  if (*i >= n)
    return JSCAN_TRUNCATED;
  char c = text[*i];
  char plain = simple_escape(c);
  if (plain) {
    out[0] = plain;
    *len = 1;
    ++*i;
    return JSCAN_OK;
  }
  if (c != 'u')
    return JSCAN_ESCAPE;
  int v = hex4(text, n, *i + 1);
  if (v < 0)
    return n - *i < 5 ? JSCAN_TRUNCATED : JSCAN_ESCAPE;
  uint32_t cp = (uint32_t)v;
  *i += 5;
  if (n - *i >= 6 && text[*i] == '\\' && text[*i + 1] == 'u') {
    int low = hex4(text, n, *i + 2);
    if (low >= 0 && utf8_join(cp, (uint32_t)low, &cp))
      *i += 6;
  }
  *len = utf8_put(out, cp);
  return JSCAN_OK;
}

/* Returns the end of the run of text that is not ASCII at text[i], i itself if it is ill-formed
 * there. */
static size_t wide_run(const char *text, size_t n, size_t i) {
  while (i < n && (unsigned char)text[i] >= 0x80) {
    size_t k = utf8_decode(text + i, n - i, NULL);
    if (k == 0)
      break;
    i += k;
  }
  return i;
}

/* Decodes plain runs and escapes of one byte, one after the other, from the run [*copied, i) on, as
 * long as there is room. Returns the offset behind the last. */
static size_t simple_run(struct jscan *js, size_t i, size_t *copied) {
  struct buf *b = &js->decoded;
  if (b->n + (i - *copied) + 1 >= b->cap)
    return i;
  if (i > *copied)
    memcpy(b->p + b->n, js->text + *copied, i - *copied);
  b->n += i - *copied;
  *copied = i;
  while (i + 1 < js->n && b->n + PLAIN_BLOCK < b->cap) {
    if (js->text[i] == '\\') {
      char plain = simple_escape(js->text[i + 1]);
      if (!plain)
        break;
      b->p[b->n++] = plain;
      i += 2;
      continue;
    }
    size_t k = copy_plain(js->text + i, js->n - i, b->p + b->n);
    if (k == 0)
      break;
    b->n += k;
    i += k;
  }
  *copied = i;
  return i;
}

enum jscan_code jscan_string(struct jscan *js, size_t from, const char **p, size_t *len,
                             size_t *end) {
  const char *text = js->text;
  size_t n = js->n, i = from, copied = from;
  assert(from <= n);
  js->decoded.n = 0;
  for (;;) {
    i = jscan_plain_run(text, n, i);
    *end = i;
    if (i >= n)
      return JSCAN_TRUNCATED;
    unsigned char c = (unsigned char)text[i];
    if (c == '"')
      break;
    if (c < 0x20)
      return JSCAN_CONTROL;
    if (c >= 0x80) {
      i = wide_run(text, n, i);
      if (i == *end)
        return JSCAN_UTF8;
      continue;
    }
    i = simple_run(js, i, &copied);
    if (i >= n || text[i] != '\\')
      continue;
    char out[UTF8_BYTES_MAX];
    size_t out_len = 0;
    size_t at = i + 1;
    enum jscan_code code = read_escape(text, n, &at, out, &out_len);
    *end = i;
    if (code != JSCAN_OK)
      return code;
    buf_append(&js->decoded, text + copied, i - copied);
    buf_append(&js->decoded, out, out_len);
    i = copied = at;
  }
  if (copied > from) {
    buf_append(&js->decoded, text + copied, i - copied);
    *p = js->decoded.p;
    *len = js->decoded.n;
  } else {
    *p = text + from;
    *len = i - from;
  }
  *end = i + 1;
  return JSCAN_OK;
}

/* Passes what is plain and the escapes of one byte, as long as there are whole blocks. */
static size_t cross_blocks(const char *text, size_t n, size_t i, bool *escaped) {
#if defined(__SSE2__)
  while (n - i > PLAIN_BLOCK) {
    int mask = plain_ends(_mm_loadu_si128((const __m128i *)(const void *)(text + i)));
    if (mask == 0) {
      i += PLAIN_BLOCK;
      continue;
    }
    i += (size_t)__builtin_ctz((unsigned)mask);
    if (text[i] != '\\' || !simple_escape(text[i + 1]))
      break;
    *escaped = true;
    i += 2;
  }
#else
  (void)escaped; /* jscan_cross meets each escape itself */
#endif
  return jscan_plain_run(text, n, i);
}

size_t jscan_cross(const char *text, size_t n, size_t from, bool *escaped) {
  *escaped = false;
  for (size_t i = cross_blocks(text, n, from, escaped); i < n;
       i = cross_blocks(text, n, i, escaped)) {
    unsigned char c = (unsigned char)text[i];
    size_t at = i + 1, len;
    char out[UTF8_BYTES_MAX];
    if (c == '"')
      return at;
    if (c == '\\') {
      *escaped = true;
      if (read_escape(text, n, &at, out, &len) != JSCAN_OK)
        return 0;
    } else {
      at = wide_run(text, n, i);
      if (at == i) /* a control character stops there, too */
        return 0;
    }
    i = at;
  }
  return 0;
}

/* Copies up to the next backslash of a string that was crossed, or all of it. Returns how much.
 * There is room for a block more. */
static size_t copy_to_escape(const char *text, size_t n, char *out) {
  size_t i = 0;
#if defined(__SSE2__)
  const __m128i slash = _mm_set1_epi8('\\');
  for (; n - i >= PLAIN_BLOCK; i += PLAIN_BLOCK) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
    int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(v, slash));
    _mm_storeu_si128((__m128i *)(void *)(out + i), v);
    if (mask)
      return i + (size_t)__builtin_ctz((unsigned)mask);
  }
#endif
  for (; i < n && text[i] != '\\'; i++)
    out[i] = text[i];
  return i;
}

void jscan_decode(struct str raw, struct buf *out) {
  buf_reserve(out, raw.n + PLAIN_BLOCK);
  char *to = out->p + out->n;
  for (size_t i = 0; i < raw.n;) {
    size_t k = copy_to_escape(raw.p + i, raw.n - i, to);
    to += k;
    i += k;
    char plain = i + 1 < raw.n ? simple_escape(raw.p[i + 1]) : '\0';
    if (i < raw.n && plain) {
      *to++ = plain;
      i += 2;
    } else if (i < raw.n) {
      size_t at = i + 1;
      if (read_escape(raw.p, raw.n, &at, to, &k) == JSCAN_OK)
        to += k;
      i = at;
    }
  }
  out->n = (size_t)(to - out->p);
  out->p[out->n] = '\0';
}
