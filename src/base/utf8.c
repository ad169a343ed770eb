/* Decodes, writes, counts and cuts UTF-8. */
#include "base/utf8.h"

#include <assert.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

size_t utf8_decode(const char *text, size_t n, uint32_t *cp) {
  const unsigned char *p = (const unsigned char *)text;
  uint32_t c, min;
  size_t len;
  if (n == 0)
    return 0;
  if (p[0] < 0x80) {
    if (cp)
      *cp = p[0];
    return 1;
  }
  if (p[0] >= 0xC2 && p[0] <= 0xDF) {
    len = 2;
    c = p[0] & 0x1Fu;
    min = 0x80;
  } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
    len = 3;
    c = p[0] & 0x0Fu;
    min = 0x800;
  } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    len = 4;
    c = p[0] & 0x07u;
    min = 0x10000;
  } else {
    return 0;
  }
  if (len > n)
    return 0;
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xC0) != 0x80)
      return 0;
    c = c << 6 | (p[i] & 0x3Fu);
  }
  if (c < min || c > UTF8_LAST || utf8_is_surrogate(c))
    return 0;
  if (cp)
    *cp = c;
  return len;
}

/* Returns true if the 64 bytes at p are all ASCII. */
static bool is_ascii_64(const char *p) {
#ifdef __SSE2__
  const __m128i *at = (const __m128i *)(const void *)p;
  __m128i front = _mm_or_si128(_mm_loadu_si128(at), _mm_loadu_si128(at + 1)),
          back = _mm_or_si128(_mm_loadu_si128(at + 2), _mm_loadu_si128(at + 3));
  return _mm_movemask_epi8(_mm_or_si128(front, back)) == 0;
#else
  uint64_t v[8];
  memcpy(v, p, sizeof v);
  return ((v[0] | v[1] | v[2] | v[3] | v[4] | v[5] | v[6] | v[7]) & 0x8080808080808080u) == 0;
#endif
}

bool utf8_valid(const char *p, size_t n) {
  size_t i = 0;
  while (i < n) {
    uint64_t word;
    if (n - i >= 64 && is_ascii_64(p + i)) {
      i += 64;
      continue;
    }
    if (n - i >= sizeof word) {
      memcpy(&word, p + i, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        i += sizeof word;
        continue;
      }
    }
    if ((unsigned char)p[i] < 0x80) {
      i++;
      continue;
    }
    size_t len = utf8_decode(p + i, n - i, NULL);
    if (len == 0)
      return false;
    i += len;
  }
  return true;
}

/* Lists ranges that terminals draw over the cell before, and over two cells (Unicode 15, the blocks
 * that matter; a wrong width only shifts a column). */
static const uint32_t zero_width[][2] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},   {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};
static const uint32_t double_width[][2] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2614, 0x2615},
    {0x26A1, 0x26A1},   {0x2705, 0x2705},   {0x274C, 0x274C},   {0x2E80, 0x303E},
    {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
    {0x20000, 0x3FFFD},
};

static bool in_ranges(uint32_t cp, const uint32_t (*r)[2], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (cp >= r[i][0] && cp <= r[i][1])
      return true;
  return false;
}

int utf8_width(uint32_t cp) {
  if (cp < 0x300)
    return 1;
  if (in_ranges(cp, zero_width, sizeof zero_width / sizeof zero_width[0]))
    return 0;
  return in_ranges(cp, double_width, sizeof double_width / sizeof double_width[0]) ? 2 : 1;
}

size_t utf8_floor(const char *p, size_t n) {
  size_t i = n;
  while (i > 0 && n - i < 4) {
    unsigned char c = (unsigned char)p[i - 1];
    if (c < 0x80)
      return n;
    if (c >= 0xC0) {
      size_t need = 2u + (c >= 0xE0) + (c >= 0xF0);
      return n - (i - 1) >= need ? n : i - 1;
    }
    i--;
  }
  return n;
}

size_t utf8_ceil(const char *p, size_t n, size_t at) {
  assert(at <= n);
  while (at < n && utf8_is_tail(p[at]))
    at++;
  return at;
}

size_t utf8_count(const char *p, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++)
    count += !utf8_is_tail(p[i]);
  return count;
}

size_t utf8_put(char out[UTF8_BYTES_MAX], uint32_t cp) {
  assert(cp <= UTF8_LAST);
  if (utf8_is_surrogate(cp))
    cp = 0xFFFD;
  if (cp < 0x80) {
    out[0] = (char)cp;
    return 1;
  }
  size_t n = 2u + (cp >= 0x800) + (cp >= 0x10000);
  for (size_t i = n - 1; i > 0; i--, cp >>= 6)
    out[i] = (char)(0x80 | (cp & 0x3F));
  static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = (char)(leads[n] | cp);
  return n;
}
