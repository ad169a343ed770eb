/* Finds the marks of reasoning sections, and the bytes at which anything may begin. */
#include "extract/internal.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Lists the reasoning markers of models in use: tags of DeepSeek, Qwen and many others, of Seed, of
 * Mistral ([THINK]), of Kimi (white triangles), of the open-thought family, and the analysis
 * channel of the harmony format. They are compared without regard to ASCII case. */
static const struct marker {
  const char *open, *close[3];
  bool closer_is_next; /* the closer starts what follows, so it is not skipped */
} markers[] = {
    {"<think>", {"</think>"}, false},
    {"<thinking>", {"</thinking>"}, false},
    {"<thought>", {"</thought>"}, false},
    {"<thoughts>", {"</thoughts>"}, false},
    {"<reasoning>", {"</reasoning>"}, false},
    {"<seed:think>", {"</seed:think>"}, false},
    {"[think]", {"[/think]"}, false},
    {"\xE2\x97\x81think\xE2\x96\xB7", {"\xE2\x97\x81/think\xE2\x96\xB7"}, false},
    {"<|begin_of_thought|>", {"<|end_of_thought|>"}, false},
    {"<|channel|>analysis", {"<|end|>", "<|start|>", "<|channel|>"}, true},
};

static char look_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t look_match(const char *text, size_t n, size_t i, const char *word) {
  size_t k = 0;
  while (word[k]) {
    if (i + k >= n || look_lower(text[i + k]) != word[k])
      return 0;
    k++;
  }
  return k;
}

static size_t find_close(const char *text, size_t n, size_t i, const struct marker *m) {
  while (i < n) {
    const char *at = memchr(text + i, m->close[0][0], n - i);
    if (!at)
      return SIZE_MAX;
    i = (size_t)(at - text);
    for (size_t k = 0; k < 3 && m->close[k]; k++) {
      size_t len = look_match(text, n, i, m->close[k]);
      if (len)
        return m->closer_is_next ? i : i + len;
    }
    i++;
  }
  return SIZE_MAX;
}

enum extract_tag extract_tag_at(const char *text, size_t n, size_t i, size_t *closed) {
  /* Most marks of prose begin no tag: the first letter of its name shows that. */
  size_t name = i + 1 < n && text[i + 1] == '/' ? i + 2 : i + 1;
  char first = name < n ? look_lower(text[name]) : '\0';
  bool angle = text[i] == '<' && (first == 'r' || first == 's' || first == '|');
  if (first != 't' && !angle && text[i] != '\xE2')
    return EXTRACT_TAG_NO;
  for (size_t k = 0; k < sizeof markers / sizeof *markers; k++) {
    const struct marker *m = &markers[k];
    if (text[i] != m->open[0])
      continue;
    size_t len = look_match(text, n, i, m->open);
    if (len) {
      *closed = find_close(text, n, i + len, m);
      return EXTRACT_TAG_OPENER;
    }
    if (m->closer_is_next)
      continue;
    len = look_match(text, n, i, m->close[0]);
    if (len) {
      *closed = i + len;
      return EXTRACT_TAG_CLOSER;
    }
  }
  return EXTRACT_TAG_NO;
}

/* The marks are { [ < ` and ~, and the byte pair E2 97 (the triangle of Kimi's tags). E2 alone
 * would stop at each typographic quote. */
size_t extract_next_mark(const char *text, size_t n, size_t i) {
#if defined(__SSE2__)
  const __m128i brace = _mm_set1_epi8('{'), bracket = _mm_set1_epi8('[');
  const __m128i less = _mm_set1_epi8('<'), tick = _mm_set1_epi8('`');
  const __m128i tilde = _mm_set1_epi8('~');
  const __m128i e2 = _mm_set1_epi8((char)0xE2), x97 = _mm_set1_epi8((char)0x97);
  while (i + 17 <= n) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
    __m128i w = _mm_loadu_si128((const __m128i *)(const void *)(text + i + 1));
    __m128i a = _mm_or_si128(_mm_cmpeq_epi8(v, brace), _mm_cmpeq_epi8(v, bracket));
    __m128i b = _mm_or_si128(_mm_cmpeq_epi8(v, less), _mm_cmpeq_epi8(v, tick));
    __m128i c = _mm_and_si128(_mm_cmpeq_epi8(v, e2), _mm_cmpeq_epi8(w, x97));
    c = _mm_or_si128(c, _mm_cmpeq_epi8(v, tilde));
    int mask = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), c));
    if (mask)
      return i + (size_t)__builtin_ctz((unsigned)mask);
    i += 16;
  }
#endif
  for (; i < n; i++) {
    char c = text[i];
    if (c == '{' || c == '[' || c == '<' || c == '`' || c == '~')
      return i;
    if (c == (char)0xE2 && i + 1 < n && text[i + 1] == (char)0x97)
      return i;
  }
  return n;
}
