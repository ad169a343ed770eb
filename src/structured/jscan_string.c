#include "jscan.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Unicode 15, table 3-7 */
size_t jscan_utf8(const char *text, size_t n, size_t i) {
  const unsigned char *s = (const unsigned char *)text + i;
  size_t left = n - i;
  if (!left)
    return 0;
  if (s[0] < 0x80)
    return 1;
  if (s[0] < 0xC2)
    return 0;
  if (left < 2 || (s[1] & 0xC0) != 0x80)
    return 0;
  if (s[0] < 0xE0)
    return 2;
  if (left < 3 || (s[2] & 0xC0) != 0x80)
    return 0;
  if (s[0] < 0xF0) {
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))
      return 0;
    return 3;
  }
  if (s[0] > 0xF4 || left < 4 || (s[3] & 0xC0) != 0x80)
    return 0;
  if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
    return 0;
  return 4;
}

size_t jscan_put_utf8(char out[4], unsigned cp) {
  if (cp >= 0xD800 && cp <= 0xDFFF)
    cp = 0xFFFD;
  if (cp < 0x80) {
    out[0] = (char)cp;
    return 1;
  }
  if (cp < 0x800) {
    out[0] = (char)(0xC0 | (cp >> 6));
    out[1] = (char)(0x80 | (cp & 0x3F));
    return 2;
  }
  if (cp < 0x10000) {
    out[0] = (char)(0xE0 | (cp >> 12));
    out[1] = (char)(0x80 | ((cp >> 6) & 0x3F));
    out[2] = (char)(0x80 | (cp & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | (cp >> 18));
  out[1] = (char)(0x80 | ((cp >> 12) & 0x3F));
  out[2] = (char)(0x80 | ((cp >> 6) & 0x3F));
  out[3] = (char)(0x80 | (cp & 0x3F));
  return 4;
}

/* first byte from i that is a quote, a backslash, a control character or not ASCII */
static size_t plain_run(const char *text, size_t n, size_t i) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
  const __m128i space = _mm_set1_epi8(0x20);
  while (i + 16 <= n) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
    /* signed compare: bytes from 0x80 count as negative, so they are below space too */
    __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                               _mm_cmplt_epi8(v, space));
    int mask = _mm_movemask_epi8(hit);
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

static bool scratch_append(struct jscan *js, size_t *used, const char *p, size_t len) {
  if (len > SIZE_MAX / 4 || *used > SIZE_MAX / 4)
    return false;
  if (*used + len > js->scratch_size) {
    size_t size = js->scratch_size ? js->scratch_size : 256;
    while (size < *used + len)
      size *= 2;
    char *grown = jscan_realloc(js->scratch, size);
    if (!grown)
      return false;
    js->scratch = grown;
    js->scratch_size = size;
  }
  if (len)
    memcpy(js->scratch + *used, p, len);
  *used += len;
  return true;
}

static int hex4(const char *text, size_t n, size_t i) {
  if (n - i < 4)
    return -1;
  int v = 0;
  for (size_t k = 0; k < 4; k++) {
    char c = text[i + k];
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : -1;
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* what the byte after a backslash stands for; 0 when it is u or nothing */
static char simple_escape(char c) {
  switch (c) {
  case '"':
  case '\\':
  case '/':
    return c;
  case 'b':
    return '\b';
  case 'f':
    return '\f';
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  default:
    return '\0';
  }
}

/* text[*i] is the byte after the backslash; moves *i behind the escape */
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
  unsigned cp = (unsigned)v;
  *i += 5;
  if (cp >= 0xD800 && cp <= 0xDBFF && n - *i >= 6 && text[*i] == '\\' && text[*i + 1] == 'u') {
    int low = hex4(text, n, *i + 2);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      cp = 0x10000 + ((cp - 0xD800) << 10) + ((unsigned)low - 0xDC00);
      *i += 6;
    }
  }
  *len = jscan_put_utf8(out, cp);
  return JSCAN_OK;
}

enum jscan_code jscan_string(struct jscan *js, size_t from, const char **p, size_t *len,
                             size_t *end) {
  const char *text = js->text;
  size_t n = js->n, i = from, copied = from, used = 0;
  bool decoded = false;
  for (;;) {
    i = plain_run(text, n, i);
    *end = i;
    if (i >= n)
      return JSCAN_TRUNCATED;
    unsigned char c = (unsigned char)text[i];
    if (c == '"')
      break;
    if (c < 0x20)
      return JSCAN_CONTROL;
    if (c >= 0x80) {
      size_t k = jscan_utf8(text, n, i);
      if (!k)
        return JSCAN_UTF8;
      i += k;
      while (i < n && (unsigned char)text[i] >= 0x80) { /* text that is not ASCII comes in runs */
        k = jscan_utf8(text, n, i);
        if (!k)
          break;
        i += k;
      }
      continue;
    }
    /* room for the run before it: then escape after escape is decoded in place */
    while (i + 1 < n && text[i] == '\\' && used + (i - copied) < js->scratch_size) {
      char plain = simple_escape(text[i + 1]);
      if (!plain)
        break;
      memcpy(js->scratch + used, text + copied, i - copied);
      used += i - copied;
      js->scratch[used++] = plain;
      decoded = true;
      i = copied = i + 2;
    }
    if (i >= n || text[i] != '\\')
      continue;
    char out[4];
    size_t out_len = 0;
    size_t at = i + 1;
    enum jscan_code code = read_escape(text, n, &at, out, &out_len);
    if (code != JSCAN_OK)
      return code;
    if (!scratch_append(js, &used, text + copied, i - copied) ||
        !scratch_append(js, &used, out, out_len))
      return JSCAN_OUT_OF_MEMORY;
    decoded = true;
    i = copied = at;
  }
  if (decoded) {
    if (!scratch_append(js, &used, text + copied, i - copied))
      return JSCAN_OUT_OF_MEMORY;
    *p = js->scratch;
    *len = used;
  } else {
    *p = text + from;
    *len = i - from;
  }
  *end = i + 1;
  return JSCAN_OK;
}
