/* Looks at a text without reading values: marks, what stands around a bracket, broken pieces. */
#include "extract/internal.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* --- reasoning sections, and the bytes at which anything may begin --- */

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

/* --- what stands around a bracket: is it prose, or may it open a value? --- */

bool extract_line_start(const struct extract_pass *p, size_t i) {
  while (i > 0 && (p->text[i - 1] == ' ' || p->text[i - 1] == '\t'))
    i--;
  return i <= p->trim_start || p->text[i - 1] == '\n' || p->text[i - 1] == '\r' ||
         p->text[i - 1] == '>';
}

size_t extract_comment_end(const char *text, size_t n, size_t i) {
  const char *end;
  assert(i + 1 < n);
  if (text[i + 1] == '/')
    end = memchr(text + i, '\n', n - i);
  else if ((end = memmem(text + i + 2, n - i - 2, LIT("*/"))) != NULL)
    end += 2;
  return end ? (size_t)(end - text) : n;
}

/* Returns the offset after white space, comments, and line breaks written as \n. */
static size_t look_past(const char *text, size_t end, size_t i) {
  while (i < end) {
    if (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))
      i++;
    else if (i + 1 < end && text[i] == '\\' && jscan_one_of("nrt", text[i + 1]))
      i += 2;
    else if (text[i] == '#')
      while (i < end && text[i] != '\n')
        i++;
    else if (i + 1 < end && text[i] == '/' && jscan_one_of("/*", text[i + 1]))
      i = extract_comment_end(text, end, i);
    else
      return i;
  }
  return end;
}

/* Returns the length of the quotation mark at i, in all the ways in which it comes out wrong; 0 for
 * none. */
static size_t look_quote(const char *text, size_t end, size_t i) {
  static const char *const marks[] = {"\"",       "'",        "`",           "\\\"",  "\xC2\xB4",
                                      "\xC2\xAB", "\xC2\xBB", "&quot;",      "&#34;", "&#x22;",
                                      "&apos;",   "&#39;",    "\xEF\xBC\x82"};
  unsigned char first = (unsigned char)text[i];
  if (first < '"' || (first > '\'' && first < '\\') || (first > '`' && first < 0xC2))
    return 0; /* most text is none of these */
  for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
    size_t n = strlen(marks[k]);
    if (end - i >= n && memcmp(text + i, marks[k], n) == 0)
      return n;
  }
  bool curly = end - i >= 3 && memcmp(text + i, LIT("\xE2\x80")) == 0 &&
               (unsigned char)text[i + 2] >= 0x98 && (unsigned char)text[i + 2] <= 0x9F;
  return curly ? 3 : 0;
}

/* Returns true if a brace opens something like an object although the strict scan refused its first
 * key: {step: 1, {'a': 1, {“a”: 1, {"a" {. Looks at no more than LOOK_BYTES. */
bool extract_loose_member(const char *text, size_t n, size_t i) {
  enum { LOOK_BYTES = 256 };
  size_t end = n - i > LOOK_BYTES ? i + LOOK_BYTES : n;
  i = look_past(text, end, i + 1);
  if (i >= end)
    return false;
  size_t k = i, quote = look_quote(text, end, i);
  if (quote) {
    k += quote;
    while (k < end && look_quote(text, end, k) == 0 && !jscan_one_of("\n{}", text[k]))
      k++;
    if (k >= end || look_quote(text, end, k) == 0)
      return false;
    k += look_quote(text, end, k);
  } else {
    while (k < end &&
           ((text[k] >= 'a' && text[k] <= 'z') || (text[k] >= 'A' && text[k] <= 'Z') ||
            (text[k] >= '0' && text[k] <= '9') || jscan_one_of("_$-\"", text[k]) ||
            (text[k] == '\\' && k + 1 < end && text[k + 1] == '_') ||
            ((text[k] & 0x80) && !(end - k >= 2 && memcmp(text + k, LIT("\xEF\xBC")) == 0))))
      k++;
    if (k == i)
      return false;
  }
  k = look_past(text, end, k);
  if (k + 1 >= end)
    return false;
  if (text[k] == ':')
    return text[k + 1] != ':';
  if (end - k >= 3 && memcmp(text + k, LIT("\xEF\xBC\x9A")) == 0) /* full-width */
    return true;
  if (quote == 0)
    return false;
  return jscan_one_of("{[=-0123456789", text[k]) ||
         (end - k > 5 &&
          (memcmp(text + k, LIT("true")) == 0 || memcmp(text + k, LIT("false")) == 0 ||
           memcmp(text + k, LIT("null")) == 0));
}

/* Returns true if a string or a container follows the bracket. */
bool extract_item_next(const struct extract_pass *p, size_t i) {
  for (i++; i < p->n && (p->text[i] == ' ' || p->text[i] == '\n'); i++)
    ;
  return i < p->n && (p->text[i] == '"' || p->text[i] == '{' || p->text[i] == '[');
}

/* Returns true for the box of "- [ ] to do". */
bool extract_checkbox(const struct extract_pass *p, size_t i, size_t end) {
  return end - i == 3 && p->text[i] == '[' && p->text[i + 1] == ' ' && i >= 2 &&
         p->text[i - 1] == ' ' && jscan_one_of("-*+.)", p->text[i - 2]) && end < p->n &&
         p->text[end] == ' ';
}

/* Returns true if only words stand between the failure of a value without end and the bracket at i:
 * the value was given up in mid-air, and what starts at i is no part of it. */
bool extract_prose_between(const struct extract_pass *p, size_t from, size_t i) {
  bool word = false;
  if (i < from || i - from > 256)
    return false;
  for (size_t k = from; k < i; k++) {
    char c = p->text[k];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
    if (!letter && !(c >= '0' && c <= '9') && !jscan_one_of(" \t\r\n.!?;-", c))
      return false;
    word = word || letter;
  }
  return word;
}

/* Returns true if the next byte alone shows that the bracket at i is prose: [link], {option}, {
 * color: red }. */
bool extract_plainly_prose(const struct extract_pass *p, size_t i) {
  size_t k = i + 1;
  while (k < p->n &&
         (p->text[k] == ' ' || p->text[k] == '\n' || p->text[k] == '\r' || p->text[k] == '\t'))
    k++;
  if (k >= p->n)
    return false;
  char c = p->text[k];
  if (p->text[i] == '{' && (c == '{' || c == '['))
    return !extract_line_start(p, i);
  if (p->text[i] == '{') { /* bare words may still be an object that lost its quotes */
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return false;
    while (k < p->n &&
           ((p->text[k] >= 'a' && p->text[k] <= 'z') || (p->text[k] >= 'A' && p->text[k] <= 'Z')))
      k++;
    return k < p->n && p->text[k] == '}' && !extract_line_start(p, i);
  }
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (!letter || extract_line_start(p, i))
    return false;
  if (c != 't' && c != 'f' && c != 'n')
    return true;
  static const char second_of[] = "tr fa nu"; /* true, false, null */
  return k + 1 < p->n && p->text[k + 1] != strchr(second_of, c)[1];
}

/* --- broken pieces: where one ends, and whether a text holds a key of the answer --- */

enum { PIECE_KEY_MAX = 128 }; /* the most bytes of a key that are examined */

static bool piece_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t space_back(const char *t, size_t from, size_t i) {
  while (i > from && piece_space(t[i - 1]))
    i--;
  return i;
}

/* Returns the length of the quotation mark that ends at i, straight, curly or an accent; 0 if none
 * does. */
static size_t quote_back(const char *t, size_t from, size_t i) {
  if (i > from && jscan_one_of("\"'`", t[i - 1]))
    return 1;
  if (i >= from + 3 && memcmp(t + i - 3, LIT("\xE2\x80")) == 0 && (unsigned char)t[i - 1] >= 0x98 &&
      (unsigned char)t[i - 1] <= 0x9F)
    return 3;
  return i >= from + 2 && memcmp(t + i - 2, LIT("\xC2\xB4")) == 0 ? 2 : 0;
}

static bool piece_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '-' || (c & 0x80);
}

/* Returns true if the text that ends at i, before a colon, is a key of the answer. Without quotes
 * it is one only after a brace, or after a comma in a piece that is known to be broken. */
static bool key_before(const struct extract_pass *p, size_t from, size_t i, bool in_piece) {
  const char *t = p->text;
  i = space_back(t, from, i);
  size_t quote = quote_back(t, from, i), end = i - quote, start;
  if (quote) {
    if (end > from && t[end - 1] == '\\')
      end--;
    for (start = end; start > from && end - start < PIECE_KEY_MAX; start--)
      if (quote_back(t, from, start))
        break;
    if (!quote_back(t, from, start))
      return false;
  } else {
    for (start = end; start > from && end - start < PIECE_KEY_MAX && piece_word(t[start - 1]);)
      start--;
    size_t before = space_back(t, from, start);
    if (before == from || !(t[before - 1] == '{' || (in_piece && t[before - 1] == ',')))
      return false;
  }
  return end > start && p->opts->check->is_key(p->opts->check->ctx, t + start, end - start);
}

bool extract_key_between(const struct extract_pass *p, size_t from, size_t to, bool in_piece) {
  assert(from <= to && to <= p->n);
  if (p->opts->check == NULL || p->opts->check->is_key == NULL)
    return false;
  for (size_t i = from; i < to; i++) {
    bool wide = (unsigned char)p->text[i] == 0xEF && to - i >= 3 &&
                memcmp(p->text + i, LIT("\xEF\xBC\x9A")) == 0; /* a full-width colon */
    if ((p->text[i] == ':' || p->text[i] == '=' || wide) && key_before(p, from, i, in_piece))
      return true;
  }
  return false;
}

/* Names the ways to count brackets. A broken piece breaks some of the rules that they rest on, so
 * its end is known only where all of them agree. */
enum piece_reading { PIECE_STRINGS_AND_COMMENTS, PIECE_STRINGS, PIECE_PLAIN, PIECE_READINGS };

/* Returns the offset after the string or comment at i, i itself if there is none. */
static size_t piece_opaque(const char *t, size_t n, size_t i, enum piece_reading how) {
  if (t[i] == '"' && how != PIECE_PLAIN) {
    for (i++; i < n && t[i] != '"'; i++)
      if (t[i] == '\\')
        i++;
    return i < n ? i + 1 : n;
  }
  if (how != PIECE_STRINGS_AND_COMMENTS)
    return i;
  if (t[i] == '#' || (t[i] == '/' && i + 1 < n && t[i + 1] == '/')) {
    const char *line = memchr(t + i, '\n', n - i);
    return line ? (size_t)(line - t) : n;
  }
  if (t[i] == '/' && i + 1 < n && t[i + 1] == '*') {
    for (i += 2; i + 1 < n && !(t[i] == '*' && t[i + 1] == '/');)
      i++;
    return i + 1 < n ? i + 2 : n;
  }
  return i;
}

/* Returns the offset after the closer of the bracket at i, SIZE_MAX if the text ends first or a
 * closer is of another kind than its opener. Sets *plain if no string or comment was passed, so
 * that all readings agree. */
static size_t piece_closed(struct extract_pass *p, size_t i, enum piece_reading how, bool *plain) {
  char stack[JSCAN_DEPTH_MAX];
  const char *t = p->text;
  size_t depth = 0, end = SIZE_MAX, from = i;
  size_t n = p->n - i > p->piece_work ? i + p->piece_work : p->n;
  *plain = true;
  while (i < n) {
    size_t after = piece_opaque(t, n, i, how);
    if (after > i) {
      i = after;
      *plain = false;
      continue;
    }
    char c = t[i++];
    if (c == '{' || c == '[') {
      if (depth == JSCAN_DEPTH_MAX)
        break;
      stack[depth++] = c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (stack[--depth] != c)
        break;
      if (depth == 0) {
        end = i;
        break;
      }
    }
  }
  p->piece_work -= i - from;
  return end;
}

/* Returns true if only blanks, a fence or markup follow on the line. */
static bool piece_ends_line(const struct extract_pass *p, size_t i) {
  while (i < p->n && (p->text[i] == ' ' || p->text[i] == '\t' || p->text[i] == '\r'))
    i++;
  return i >= p->n || p->text[i] == '\n' || p->text[i] == '`' || p->text[i] == '~' ||
         p->text[i] == '<';
}

/* Returns true if a word or another value starts at i. */
static bool starts_other(const struct extract_pass *p, size_t i) {
  return i < p->n && (piece_word(p->text[i]) || p->text[i] == '{' || p->text[i] == '[');
}

size_t extract_piece_end(struct extract_pass *p, size_t i, size_t fail) {
  assert(i < p->n && (p->text[i] == '{' || p->text[i] == '['));
  bool plain, ignored;
  size_t end = piece_closed(p, i, PIECE_STRINGS_AND_COMMENTS, &plain);
  for (int how = PIECE_STRINGS; how < PIECE_READINGS && end != SIZE_MAX && !plain; how++)
    if (piece_closed(p, i, (enum piece_reading)how, &ignored) != end)
      end = SIZE_MAX;
  if (end == SIZE_MAX || end < fail)
    return SIZE_MAX;
  bool over = piece_ends_line(p, end);
  if (p->opts->check == NULL || p->opts->check->is_key == NULL) /* any word may be a value */
    over = over || starts_other(p, end + (end < p->n && p->text[end] == ' '));
  return over ? end : SIZE_MAX;
}

bool extract_stray_closer(const struct extract_pass *p, size_t from, size_t to) {
  size_t braces = 0, brackets = 0;
  assert(from <= to && to <= p->n);
  for (size_t i = from; i < to; i++) {
    char c = p->text[i];
    if ((c == '}' && braces == 0) || (c == ']' && brackets == 0))
      return true;
    braces += (c == '{') - (size_t)(c == '}');
    brackets += (c == '[') - (size_t)(c == ']');
  }
  return false;
}
