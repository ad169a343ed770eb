/* Walks through a text once, tries each bracket, and chooses. */
#include "extract/extract.h"

#include "base/log.h"
#include "extract/internal.h"
#include "extract/repair.h"
#include "format/json_value.h"
#include "json/scan.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a candidate that is kept; value is owned */
struct extract_slot {
  json_t *value;
  size_t offset, length;
  enum extract_stage stage;
  bool unwrapped, duplicate_key;
  int nearness;
  size_t note; /* index in notes, SIZE_MAX without */
};

/* a place that is not strict JSON but may be repaired */
struct extract_region {
  size_t start,
      limit;   /* limit: where the reasoning section after it starts, SIZE_MAX until known */
  size_t fail; /* offset at which the strict scan gave up */
  bool fenced; /* inside a code fence */
  bool sure;   /* looked like JSON: a member was seen */
  enum jscan_code code;
};

struct extract_pass {
  const char *text;
  size_t n;
  size_t trim_start, trim_end; /* text without the white space around it */
  const struct extract_opts *opts;
  struct extract_result *out;
  struct jscan js;

  bool fence_open;
  size_t fence_start;   /* first byte of the content of the last fence opened, SIZE_MAX without */
  size_t segment_start; /* after the last reasoning section */
  size_t segment_limit; /* where an unclosed reasoning section starts, else n */
  size_t inside_until;  /* candidates before this offset are pieces of a broken value */
  size_t inside_start;  /* where that value starts */
  size_t inside_fail;   /* where that value broke */
  bool inside_fenced;   /* it starts inside a fence */
  bool inside_unclosed; /* its end was not found: a fence ends it too */
  bool broken_seen;     /* there was a broken value: its end may have been misread */
  bool other_seen;      /* another value passed too, or was refused */
  size_t gap_start;     /* after the last sound value or reasoning section */
  bool gap_broken;      /* a broken value starts in the gap */
  bool draft_seen;      /* a valid value was refused because of what follows it */
  size_t draft_offset;
  size_t piece_work;   /* bytes that may still be looked at for the ends of broken pieces */
  size_t repair_work;  /* steps that the repair stage may still take */
  bool reasoning_open; /* ended inside a reasoning section */
  bool echo_seen;

  struct extract_slot valid; /* last that passes the check */
  struct extract_slot plain; /* last not empty (no check) */
  struct extract_slot empty; /* last empty one (no check) */
  struct extract_slot near;  /* nearest that fails the check */
  bool empty_refused;        /* the check has seen an empty object in prose and refused it */
  bool wrong_root_seen;
  size_t wrong_root_offset;

  struct extract_region regions[EXTRACT_REGIONS_MAX]; /* ring */
  size_t region_count;       /* ever added; the newest is at (count - 1) % MAX */
  enum jscan_code hard_code; /* depth or number range met at top level, else OK */
  size_t hard_offset;
};

enum extract_within { EXTRACT_WITHIN_NOTHING, EXTRACT_WITHIN_REFUSED, EXTRACT_WITHIN_VALID };

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

static size_t look_match(const char *text, size_t n, size_t i, const char *word) {
  size_t k = 0;
  while (word[k]) {
    if (i + k >= n || str_lower(text[i + k]) != word[k])
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
  char first = name < n ? str_lower(text[name]) : '\0';
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
static size_t extract_next_mark(const char *text, size_t n, size_t i) {
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

/* Returns true if only white space stands before it on its line. */
static bool extract_line_start(const struct extract_pass *p, size_t i) {
  while (i > 0 && (p->text[i - 1] == ' ' || p->text[i - 1] == '\t'))
    i--;
  return i <= p->trim_start || p->text[i - 1] == '\n' || p->text[i - 1] == '\r' ||
         p->text[i - 1] == '>';
}

/* Returns the end of a comment, // or C's. */
static size_t extract_comment_end(const char *text, size_t n, size_t i) {
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
    if (str_is_space(text[i]))
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
  static const char *const marks[] = {"\"",
                                      "'",
                                      "`",
                                      "\\\"",
                                      "\xC2\xB4",
                                      "\xC2\xAB",
                                      "\xC2\xBB",
                                      "&quot;",
                                      "&#34;",
                                      "&#x22;",
                                      "&apos;",
                                      "&#39;",
                                      "\xEF\xBC\x82",
                                      "\xE3\x80\x8C",
                                      "\xE3\x80\x8D",
                                      "\xE3\x80\x8E",
                                      "\xE3\x80\x8F"};
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
static bool extract_loose_member(const char *text, size_t n, size_t i) {
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
           (str_is_letter(text[k]) || str_is_digit(text[k]) || jscan_one_of("_$-\"", text[k]) ||
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
static bool extract_item_next(const struct extract_pass *p, size_t i) {
  for (i++; i < p->n && (p->text[i] == ' ' || p->text[i] == '\n'); i++)
    ;
  return i < p->n && (p->text[i] == '"' || p->text[i] == '{' || p->text[i] == '[');
}

/* Returns true for the box of "- [ ] to do". */
static bool extract_checkbox(const struct extract_pass *p, size_t i, size_t end) {
  return end - i == 3 && p->text[i] == '[' && p->text[i + 1] == ' ' && i >= 2 &&
         p->text[i - 1] == ' ' && jscan_one_of("-*+.)", p->text[i - 2]) && end < p->n &&
         p->text[end] == ' ';
}

/* Returns true if only words stand between the failure of a value without end and the bracket at i:
 * the value was given up in mid-air, and what starts at i is no part of it. */
static bool extract_prose_between(const struct extract_pass *p, size_t from, size_t i) {
  bool word = false;
  if (i < from || i - from > 256)
    return false;
  for (size_t k = from; k < i; k++) {
    char c = p->text[k];
    bool letter = str_is_letter(c) || ((c & 0x80) && c != '\xEF'); /* EF: full-width marks */
    if (!letter && !str_is_digit(c) && !jscan_one_of(" \t\r\n.!?;-", c))
      return false;
    word = word || letter;
  }
  return word;
}

/* Returns true if the next byte alone shows that the bracket at i is prose: [link], {option}, {
 * color: red }. */
static bool extract_plainly_prose(const struct extract_pass *p, size_t i) {
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
    if (!str_is_letter(c))
      return false;
    while (k < p->n && str_is_letter(p->text[k]))
      k++;
    return k < p->n && p->text[k] == '}' && !extract_line_start(p, i);
  }
  bool letter = str_is_letter(c);
  if (!letter || extract_line_start(p, i))
    return false;
  if (c != 't' && c != 'f' && c != 'n')
    return true;
  static const char second_of[] = "tr fa nu"; /* true, false, null */
  return k + 1 < p->n && p->text[k + 1] != strchr(second_of, c)[1];
}

/* --- broken pieces: where one ends, and whether a text holds a key of the answer --- */

enum { PIECE_KEY_MAX = 128 }; /* the most bytes of a key that are examined */

static size_t space_back(const char *t, size_t from, size_t i) {
  while (i > from && str_is_space(t[i - 1]))
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
    for (start = end; start > from && end - start < PIECE_KEY_MAX && jscan_word_byte(t[start - 1]);)
      start--;
    size_t before = space_back(t, from, start);
    if (before == from || !(t[before - 1] == '{' || (in_piece && t[before - 1] == ',')))
      return false;
  }
  return end > start && p->opts->check->is_key(p->opts->check->ctx, t + start, end - start);
}

/* Returns true if a key of the answer is in [from, to), as a member has it. */
static bool extract_key_between(const struct extract_pass *p, size_t from, size_t to,
                                bool in_piece) {
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
  return i < p->n && (jscan_word_byte(p->text[i]) || p->text[i] == '{' || p->text[i] == '[');
}

/* Returns the end of the broken piece that opens at i and broke at `fail`; SIZE_MAX: unknown. */
static size_t extract_piece_end(struct extract_pass *p, size_t i, size_t fail) {
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

static bool stray_closer(const struct extract_pass *p, size_t from, size_t to) {
  assert(from <= to && to <= p->n);
  return repair_brackets((struct str){p->text + from, to - from}) & REPAIR_STRAY_CLOSER;
}

/* --- which candidate is the answer --- */

static void extract_slot_drop(struct extract_slot *slot) {
  json_decref(slot->value);
  *slot = (struct extract_slot){.note = SIZE_MAX};
}

static bool extract_root_ok(enum extract_want want, const json_t *v) {
  switch (want) {
  case EXTRACT_WANT_ANY:
    return true;
  case EXTRACT_WANT_OBJECT:
    return json_is_object(v);
  case EXTRACT_WANT_ARRAY:
    return json_is_array(v);
  }
  return false;
}

static enum extract_stage extract_stage_of(const struct extract_pass *p, size_t start, size_t end,
                                           bool fenced) {
  if (start <= p->trim_start && end >= p->trim_end)
    return EXTRACT_DIRECT;
  return fenced ? EXTRACT_CODE_BLOCK : EXTRACT_BRACE;
}

static size_t extract_note_add(struct extract_pass *p, size_t start, size_t end,
                               enum extract_stage stage, const char *outcome, size_t error_offset) {
  struct extract_result *out = p->out;
  if (!p->opts->explain)
    return SIZE_MAX;
  if (out->note_count == EXTRACT_NOTES_MAX) {
    out->notes_dropped++;
    return SIZE_MAX;
  }
  if (!out->notes)
    out->notes = xcalloc(EXTRACT_NOTES_MAX, sizeof *out->notes);
  out->notes[out->note_count] = (struct extract_note){.offset = start,
                                                      .length = end > start ? end - start : 0,
                                                      .stage = stage,
                                                      .outcome = outcome,
                                                      .error_offset = error_offset};
  return out->note_count++;
}

static void note_set(struct extract_pass *p, size_t note, const char *outcome) {
  if (note < p->out->note_count)
    p->out->notes[note].outcome = outcome;
}

/* Returns true if v holds a key of the answer itself. The name of a tool call is that of the tool,
 * and an object of nothing but null says nothing. */
static bool holds_key(const struct extract_pass *p, const json_t *v) {
  const struct extract_check *check = p->opts->check;
  bool call = json_object_get(v, "arguments") != NULL || json_object_get(v, "parameters") != NULL;
  bool holds = false, says = false;
  const char *key;
  size_t n;
  json_t *member;
  if (check->is_key == NULL)
    return false;
  json_object_keylen_foreach((json_t *)v, key, n, member) {
    holds = holds || (check->is_key(check->ctx, key, n) && !(call && strcmp(key, "name") == 0));
    says = says || !json_is_null(member);
  }
  return holds && says;
}

static enum extract_within unwrap_at(struct extract_pass *p, json_t *v, int depth,
                                     json_t **owned_found);

static enum extract_within unwrap_string(struct extract_pass *p, const json_t *v, int depth,
                                         json_t **owned_found) {
  struct str s = str_trim((struct str){json_string_value(v), json_string_length(v)});
  struct jscan_result r;
  if (s.n == 0 || (s.p[0] != '{' && s.p[0] != '['))
    return EXTRACT_WITHIN_NOTHING;
  enum extract_within found = EXTRACT_WITHIN_NOTHING;
  if (jscan_whole(s, &r) == JSCAN_OK)
    found = unwrap_at(p, r.value, depth, owned_found);
  json_decref(r.value);
  return found;
}

/* Keeps the later of two findings: what `next` found, if anything. */
static void unwrap_later(enum extract_within *found, json_t **owned_found, enum extract_within next,
                         json_t *owned_next) {
  if (next == EXTRACT_WITHIN_NOTHING)
    return;
  json_decref(*owned_found);
  *owned_found = owned_next;
  *found = next;
}

static enum extract_within unwrap_at(struct extract_pass *p, json_t *v, int depth,
                                     json_t **owned_found) {
  enum extract_within found = EXTRACT_WITHIN_NOTHING;
  *owned_found = NULL;
  if (extract_root_ok(p->opts->want, v) && p->opts->check->valid(p->opts->check->ctx, v)) {
    *owned_found = json_incref(v);
    return EXTRACT_WITHIN_VALID;
  }
  if (json_is_object(v) && holds_key(p, v))
    return EXTRACT_WITHIN_REFUSED; /* it is an answer, and was refused: nothing in it is another */
  if (depth >= EXTRACT_UNWRAP_DEPTH)
    return EXTRACT_WITHIN_NOTHING;
  json_t *inner;
  if (json_is_object(v)) {
    const char *key;
    json_t *member;
    json_object_foreach(v, key, member) {
      enum extract_within next = unwrap_at(p, member, depth + 1, &inner);
      unwrap_later(&found, owned_found, next, inner);
    }
  } else if (json_is_array(v)) {
    for (size_t i = 0; i < json_array_size(v); i++) {
      enum extract_within next = unwrap_at(p, json_array_get(v, i), depth + 1, &inner);
      unwrap_later(&found, owned_found, next, inner);
    }
  } else if (json_is_string(v)) {
    found = unwrap_string(p, v, depth + 1, owned_found);
  }
  return found;
}

/* Finds the last thing in v that passes the check, or holds a key of the answer and does not
 * pass. */
static enum extract_within extract_unwrap(struct extract_pass *p, json_t *v, json_t **owned_found) {
  enum extract_within found = unwrap_at(p, v, 0, owned_found);
  if (found == EXTRACT_WITHIN_VALID && p->opts->whole && *owned_found != v) {
    json_decref(*owned_found);
    *owned_found = NULL;
    found = p->opts->check->is_key ? EXTRACT_WITHIN_REFUSED : EXTRACT_WITHIN_NOTHING;
  }
  return found;
}

static void pick_keep(struct extract_pass *p, struct extract_slot *slot, struct extract_slot next) {
  note_set(p, slot->note, "superseded");
  extract_slot_drop(slot);
  *slot = next;
}

/* A piece with keys of the answer that is not one follows: earlier valid values are drafts. */
static void extract_refuse_drafts(struct extract_pass *p, const char *why) {
  if (p->valid.value) {
    p->draft_seen = true;
    p->draft_offset = p->valid.offset;
    note_set(p, p->valid.note, why);
    extract_slot_drop(&p->valid);
  }
}

static void keep_answer(struct extract_pass *p, const struct extract_slot *s) {
  struct extract_answers *a = p->opts->answers;
  if (a == NULL)
    return;
  if (a->count == EXTRACT_ANSWERS_MAX) {
    a->dropped++;
    return;
  }
  if (a->items == NULL)
    a->items = xcalloc(EXTRACT_ANSWERS_MAX, sizeof *a->items);
  a->items[a->count++] = (struct extract_answer){json_incref(s->value), s->offset, s->length};
}

static void weigh_checked(struct extract_pass *p, struct extract_slot s) {
  const struct extract_check *check = p->opts->check;
  if (check->is_schema_echo && check->is_schema_echo(check->ctx, s.value)) {
    p->echo_seen = true;
    note_set(p, s.note, "schema_echo");
    extract_slot_drop(&s);
    return;
  }
  json_t *found;
  enum extract_within within = extract_unwrap(p, s.value, &found);
  if (within != EXTRACT_WITHIN_NOTHING)
    keep_answer(p, &s);
  if (within == EXTRACT_WITHIN_VALID) {
    s.unwrapped = found != s.value;
    json_decref(s.value);
    s.value = found;
    note_set(p, s.note, s.unwrapped ? "valid_inside" : "valid");
    p->out->ambiguous |= p->valid.value && !json_same(p->valid.value, s.value);
    p->other_seen = p->other_seen || p->out->ambiguous;
    pick_keep(p, &p->valid, s);
    return;
  }
  if (within == EXTRACT_WITHIN_REFUSED) {
    p->other_seen = true;
    extract_refuse_drafts(p, "before_refused");
  }
  if (!extract_root_ok(p->opts->want, s.value)) {
    p->wrong_root_seen = true;
    p->wrong_root_offset = s.offset;
    note_set(p, s.note, "wrong_root");
    extract_slot_drop(&s);
    return;
  }
  note_set(p, s.note, "not_valid");
  s.nearness = check->nearness ? check->nearness(check->ctx, s.value) : 0;
  /* A value without any required key is an answer only if it is the whole text or stands in a
   * fence. */
  if (s.nearness <= 0 && s.stage == EXTRACT_BRACE) {
    p->empty_refused =
        p->empty_refused || (json_is_object(s.value) && json_object_size(s.value) == 0);
    extract_slot_drop(&s);
    return;
  }
  if (p->near.value && s.nearness < p->near.nearness)
    extract_slot_drop(&s);
  else
    pick_keep(p, &p->near, s);
}

static void extract_candidate(struct extract_pass *p, size_t start, const struct jscan_result *read,
                              bool inside) {
  size_t end = read->end;
  struct extract_slot s = {.value = read->value,
                           .offset = start,
                           .length = end - start,
                           .duplicate_key = read->duplicate_key};
  s.stage = extract_stage_of(p, start, end, p->fence_open);
  s.note = extract_note_add(p, start, end, s.stage, inside ? "inside_broken" : "candidate", 0);
  if (s.note < p->out->note_count)
    p->out->notes[s.note].duplicate_key = read->duplicate_key;
  if (inside) {
    extract_slot_drop(&s);
    return;
  }
  if (p->opts->check) {
    weigh_checked(p, s);
    return;
  }
  if (!extract_root_ok(p->opts->want, s.value)) {
    p->wrong_root_seen = true;
    p->wrong_root_offset = start;
    note_set(p, s.note, "wrong_root");
    extract_slot_drop(&s);
  } else if ((json_is_object(s.value) && json_object_size(s.value) == 0) ||
             (json_is_array(s.value) && json_array_size(s.value) == 0)) {
    note_set(p, s.note, "empty");
    pick_keep(p, &p->empty, s);
  } else {
    pick_keep(p, &p->plain, s);
  }
}

const char *extract_stage_name(enum extract_stage stage) {
  static const char *const names[] = {[EXTRACT_NONE] = "none",
                                      [EXTRACT_DIRECT] = "direct",
                                      [EXTRACT_CODE_BLOCK] = "code_block",
                                      [EXTRACT_BRACE] = "brace"};
  return names[stage];
}

const char *extract_code_name(enum extract_code code) {
  static const char *const names[] = {[EXTRACT_ERR_NONE] = "none",
                                      [EXTRACT_ERR_NO_JSON] = "no_json",
                                      [EXTRACT_ERR_SYNTAX] = "syntax",
                                      [EXTRACT_ERR_TRUNCATED] = "truncated",
                                      [EXTRACT_ERR_DEPTH_LIMIT] = "depth_limit",
                                      [EXTRACT_ERR_NUMBER_RANGE] = "number_range",
                                      [EXTRACT_ERR_WRONG_ROOT] = "wrong_root",
                                      [EXTRACT_ERR_NOT_VALID] = "not_valid",
                                      [EXTRACT_ERR_REASONING] = "reasoning_only",
                                      [EXTRACT_ERR_DRAFT] = "draft"};
  return names[code];
}

bool extract_want_parse(const char *name, enum extract_want *want) {
  static const char *const names[] = {"any", "object", "array"};
  int i = str_index(str_from(name), names, ARRAY_LEN(names));
  if (i >= 0)
    *want = (enum extract_want)i;
  return i >= 0;
}

/* Looks at the text between the last sound value and `to`: a key of the answer in it turns what
 * came before into a draft. */
static void extract_gap(struct extract_pass *p, size_t to) {
  if (to > p->gap_start && extract_key_between(p, p->gap_start, to, p->gap_broken))
    extract_refuse_drafts(p, "before_broken");
  p->gap_start = to;
  p->gap_broken = false;
}

/* Leaves the broken value whose end is unknown: from i on, candidates no longer count as its
 * pieces, unless it may be the answer itself and its fence has not ended. */
static void extract_release(struct extract_pass *p, size_t i, bool fence_ends) {
  if (!fence_ends && extract_key_between(p, p->inside_start, i, true))
    return;
  p->inside_until = i;
  p->inside_unclosed = false;
}

/* Returns true if a quoted key and its colon stand before i. */
static bool member_value(const struct extract_pass *p, size_t i) {
  const char *t = p->text;
  bool colon = false;
  for (; i > p->gap_start && (t[i - 1] == ' ' || t[i - 1] == ':' || t[i - 1] == '\n'); i--)
    colon = colon || t[i - 1] == ':';
  return colon && i > p->gap_start && t[i - 1] == '"';
}

/* Returns the offset after white space. */
static size_t skip_past(const struct extract_pass *p, size_t i) {
  while (i < p->n && jscan_one_of(" \t\r\n", p->text[i]))
    i++;
  return i;
}

/* Returns true if a list breaks where data does and prose does not: at a comment after an item, at
 * a quote escaped once too often, or in an object. */
static bool list_breaks(const struct extract_pass *p, size_t i, size_t at) {
  if (at + 1 >= p->n)
    return false;
  if (p->text[at] == '/' && jscan_one_of("/*", p->text[at + 1]))
    return at > skip_past(p, i + 1);
  size_t before = space_back(p->text, i + 1, at);
  return (p->text[at] == '\\' && p->text[at + 1] == '"') ||
         (p->text[before - 1] == '{' && extract_loose_member(p->text, p->n, before - 1));
}

/* Makes candidates before `end` pieces of the broken value at i; SIZE_MAX means that its end is not
 * known. */
static void hide_inside(struct extract_pass *p, size_t i, size_t end, size_t fail) {
  p->inside_unclosed = end == SIZE_MAX;
  if (end == SIZE_MAX) {
    const char *nul = memchr(p->text + i, '\0', p->n - i); /* the text ends there */
    end = nul ? (size_t)(nul - p->text) : p->n;
  }
  p->inside_until = end;
  p->inside_start = i;
  p->inside_fail = fail;
  p->inside_fenced = p->fence_open;
}

/* Remembers the place at i, which is not strict JSON, for repair and for what is inside it. */
static void broken_place(struct extract_pass *p, size_t i, enum jscan_code code,
                         const struct jscan_result *r, bool sure) {
  bool hard = code == JSCAN_DEPTH || code == JSCAN_NUMBER_RANGE;
  size_t end = r->closed ? r->end : SIZE_MAX;
  /* Brackets of prose at the start of a line are a value of their own if they end the line as
   * well. */
  bool block = !sure && p->text[i] == '[' && i == p->trim_start;
  if (!r->closed && sure)
    end = extract_piece_end(p, i, r->offset);
  else if (!r->closed && block)
    end = jscan_skip(&p->js, i, 0);
  if (end != SIZE_MAX && end < r->offset)
    end = r->offset;
  struct extract_region *region = &p->regions[p->region_count++ % EXTRACT_REGIONS_MAX];
  *region = (struct extract_region){.start = i, .limit = SIZE_MAX, .fenced = p->fence_open};
  region->fail = r->offset;
  region->sure = sure;
  region->code = code;
  p->broken_seen = p->broken_seen || sure || r->offset > skip_past(p, i + 1);
  p->gap_broken = p->gap_broken || sure;
  const char *outcome = sure ? "broken" : "not_json";
  if (hard) {
    outcome = jscan_code_name(code);
    p->hard_code = code;
    p->hard_offset = r->offset;
  }
  size_t shown = end == SIZE_MAX ? i : end;
  extract_note_add(p, i, shown, extract_stage_of(p, i, shown, p->fence_open), outcome, r->offset);
  bool fence_next = r->offset + 1 < p->n && jscan_one_of("`~", p->text[r->offset]) &&
                    p->text[r->offset + 1] == p->text[r->offset];
  if (sure || (block && end != SIZE_MAX && end >= p->trim_end && !fence_next))
    hide_inside(p, i, end, r->offset);
}

/* Goes on after a strict attempt at the bracket text[i] has failed. Returns where. */
static size_t extract_broken(struct extract_pass *p, size_t i, enum jscan_code code,
                             const struct jscan_result *r) {
  bool object = p->text[i] == '{';
  bool hard = code == JSCAN_DEPTH || code == JSCAN_NUMBER_RANGE;
  bool loose = !r->member_seen && !hard && object && extract_loose_member(p->text, p->n, i);
  bool sure = r->member_seen || hard || loose || (!object && list_breaks(p, i, r->offset));
  if (i >= p->inside_until) {
    bool cut = code == JSCAN_TRUNCATED && object && extract_item_next(p, i);
    if (cut && p->opts->check && p->opts->check->is_key)
      extract_refuse_drafts(p, "before_broken"); /* whatever its keys were to be */
    if (sure || extract_line_start(p, i) || (!object && extract_item_next(p, i)))
      broken_place(p, i, code, r, sure);
  }
  if (r->closed)
    return r->end;
  if (r->offset + 1 < p->n && p->text[r->offset] == '/' &&
      jscan_one_of("/*", p->text[r->offset + 1]))
    return extract_comment_end(p->text, p->n, r->offset); /* brackets in a comment are words */
  /* A string directly before the failure may have been prose between two quotes, so what is in it
   * is still undecided. Each stretch between quotes is searched at most once like this, because
   * later attempts start after its start. */
  if (!r->member_seen && r->last_string != SIZE_MAX && r->last_string >= i)
    return r->last_string + 1;
  return r->offset > i ? r->offset : i + 1;
}

static void forget_candidates(struct extract_pass *p) {
  if (p->opts->answers)
    extract_answers_deinit(p->opts->answers);
  extract_slot_drop(&p->valid);
  extract_slot_drop(&p->plain);
  extract_slot_drop(&p->empty);
  extract_slot_drop(&p->near);
  for (size_t k = 0; k < p->out->note_count; k++)
    p->out->notes[k].outcome = "reasoning";
  p->region_count = 0;
  p->hard_code = JSCAN_OK;
  p->wrong_root_seen = false;
  p->inside_until = 0;
  p->broken_seen = p->other_seen = p->gap_broken = p->draft_seen = p->out->ambiguous = false;
  p->fence_start = SIZE_MAX;
}

/* Reads a run of three or more ` or ~; returns the offset after it. */
static size_t extract_fence(struct extract_pass *p, size_t i) {
  char c = p->text[i];
  size_t k = i;
  while (k < p->n && p->text[k] == c)
    k++;
  if (k - i < 3 || (c == '~' && !extract_line_start(p, i)))
    return k;
  size_t eol = k;
  while (eol < p->n && p->text[eol] != '\n' && eol - k < 40)
    eol++;
  size_t info = k;
  while (info < eol && (p->text[info] == ' ' || p->text[info] == '\t' || p->text[info] == '\r'))
    info++;
  bool named = info < eol && str_is_letter(p->text[info]);
  p->fence_open = named || !p->fence_open;
  if (p->fence_open) {
    p->fence_start = named ? info : k;
    while (named && p->fence_start < eol && !jscan_one_of(" \t\r\n{[(\"", p->text[p->fence_start]))
      p->fence_start++;
  }
  if (p->inside_unclosed && extract_line_start(p, i) && p->inside_until > i)
    extract_release(p, i, p->inside_fenced && !p->fence_open);
  return k;
}

/* Passes the mark of a reasoning section at *i, or the whole section. Returns false if there is
 * none. */
static bool pass_reasoning(struct extract_pass *p, size_t *i) {
  size_t closed = 0;
  switch (extract_tag_at(p->text, p->n, *i, &closed)) {
  case EXTRACT_TAG_NO:
    return false;
  case EXTRACT_TAG_OPENER: {
    size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
    for (size_t k = 0; k < count; k++)
      if (p->regions[k].limit == SIZE_MAX)
        p->regions[k].limit = *i;
    extract_gap(p, *i);
    if (closed == SIZE_MAX) {
      p->segment_limit = *i;
      p->reasoning_open = true;
      *i = p->n;
      return true;
    }
    break;
  }
  case EXTRACT_TAG_CLOSER:
    forget_candidates(p);
    p->fence_open = false;
    break;
  }
  p->segment_start = p->gap_start = *i = closed;
  p->inside_until = 0;
  return true;
}

/* Reads the bracket at i; returns where to go on. */
static size_t pass_bracket(struct extract_pass *p, size_t i) {
  const char *text = p->text;
  struct jscan_result r;
  /* In a run of braces only the last one can open an object. */
  if (text[i] == '{' && i > 0 && text[i - 1] == '{')
    while (i + 1 < p->n && text[i + 1] == '{')
      i++;
  if (text[i] == '{' && p->empty_refused && !p->fence_open && i + 1 < p->n && text[i + 1] == '}')
    return i + 2; /* one verdict on the empty object is enough */
  if (extract_plainly_prose(p, i))
    return i + 1;
  if (p->inside_unclosed && i < p->inside_until && extract_prose_between(p, p->inside_fail, i))
    extract_release(p, i, false);
  enum jscan_code code = jscan_value(&p->js, i, &r);
  if (code != JSCAN_OK)
    return extract_broken(p, i, code, &r);
  if (extract_checkbox(p, i, r.end)) {
    json_decref(r.value);
    return r.end;
  }
  if (i >= p->inside_until) {
    p->broken_seen = p->broken_seen || member_value(p, i);
    extract_gap(p, i);
    p->gap_start = r.end;
  }
  extract_candidate(p, i, &r, i < p->inside_until);
  return r.end;
}

static void extract_walk(struct extract_pass *p) {
  size_t i = p->trim_start;
  while ((i = extract_next_mark(p->text, p->n, i)) < p->n) {
    char c = p->text[i];
    if (c == '`' || c == '~') {
      bool run = i + 1 >= p->n || p->text[i + 1] == c;
      i = run ? extract_fence(p, i) : i + 1;
    } else if (c != '{' && (i >= p->inside_until || p->inside_unclosed) && pass_reasoning(p, &i)) {
      continue;
    } else if (c == '{' || c == '[') {
      i = pass_bracket(p, i);
    } else {
      i++;
    }
  }
}

/* Reads text from i on that is one string, number or literal. Returns true if it was, whatever came
 * of it. */
static bool direct_scalar(struct extract_pass *p, size_t i) {
  if (i >= p->trim_end || !jscan_one_of("\"-0123456789tfn", p->text[i]) || !p->text[i])
    return false;
  struct jscan_result r;
  enum jscan_code code = jscan_value(&p->js, i, &r);
  if (code != JSCAN_OK)
    return false;
  if (r.end != p->trim_end) {
    json_decref(r.value);
    return false;
  }
  p->gap_start = r.end;
  extract_candidate(p, i, &r, false);
  return true;
}

/* --- the repair stage: what to repair, and whether the repaired value is plausible --- */

/* Holds a repaired candidate. One that passes the check is preferred, then the first found in the
 * order of places. */
struct fix {
  struct repair_result r;
  json_t *value; /* owned: r.value, or what was unwrapped from it */
  size_t start;
  bool fenced, unwrapped;
};

static void fix_drop(struct fix *f) {
  json_decref(f->value);
  repair_result_deinit(&f->r);
  *f = (struct fix){0};
}

/* Returns true if one of these repairs happened. */
static bool has_repair(const struct fix *f, const char *const *names) {
  for (size_t i = 0; i < f->r.repairs_listed; i++)
    if (str_is_one(str_from(f->r.repairs[i].name), names))
      return true;
  return false;
}

/* Returns true if a repaired value looks like data, as it must without a schema: prose and source
 * code have brackets too. */
static bool fix_plausible(const struct extract_pass *p, const struct repair_job *job,
                          const struct fix *f) {
  if (f->r.code_like)
    return false;
  static const char *const stray[] = {"stray_text", NULL}; /* {name} is a placeholder, {} is not */
  static const char *const cut[] = {"dropped_member", NULL};
  bool whole = job->from == p->trim_start && f->r.end >= p->trim_end;
  if (json_is_object(f->value))
    return f->r.key_count > 0 ||
           (whole && (!f->r.truncated || has_repair(f, cut)) && !has_repair(f, stray));
  size_t next = f->r.end;
  /* "[text](link)" and "[1]: a footnote" are no data. */
  if (next < job->limit && job->text[job->from] == '[' &&
      (job->text[next] == '(' || job->text[next] == ':'))
    return false;
  return json_array_size(f->value) > 0 || job->from == p->trim_start;
}

/* Runs the job. Returns true if its value is acceptable and now in *f. */
static bool fix_attempt(struct extract_pass *p, const struct repair_job *job, bool fenced,
                        struct fix *f) {
  struct repair_job own = *job;
  own.last = job->last || (job->text == p->text && job->limit == p->n);
  own.said_only = p->opts->check != NULL; /* a schema may allow null: it would vouch for it */
  *f = (struct fix){.start = job->from, .fenced = fenced};
  own.copy = job->text != p->text;
  bool read = repair_value(&own, p->repair_work, &f->r);
  p->repair_work -= f->r.work_used;
  if (!read) {
    fix_drop(f);
    return false;
  }
  bool ok;
  if (p->opts->check) {
    const struct extract_check *check = p->opts->check;
    bool echo = check->is_schema_echo && check->is_schema_echo(check->ctx, f->r.value);
    ok = !echo && extract_unwrap(p, f->r.value, &f->value) == EXTRACT_WITHIN_VALID;
    f->unwrapped = f->value != f->r.value;
  } else {
    f->value = json_incref(f->r.value);
    ok = extract_root_ok(p->opts->want, f->value) && fix_plausible(p, job, f);
  }
  size_t note =
      extract_note_add(p, job->from, f->r.end, extract_stage_of(p, job->from, f->r.end, fenced),
                       ok ? "repaired" : "repair_refused", 0);
  if (note != SIZE_MAX)
    p->out->notes[note].repaired = true;
  if (!ok)
    fix_drop(f);
  return ok;
}

static size_t skip_blank(const struct extract_pass *p, size_t i, size_t limit) {
  while (i < limit && jscan_one_of(" \t\r\n", p->text[i]) && p->text[i])
    i++;
  return i;
}

static bool fix_by_copy(struct extract_pass *p, const struct repair_job *job,
                        const struct repair_way *way, bool fenced, struct fix *f) {
  /* A semicolon behind a key without quotes may be that of a style or a type. */
  const char *const doubtful[] = {
      "unescaped_quote",
      "missing_quote",
      "unquoted_value",
      "missing_colon",
      "stray_text",
      "wrong_bracket",
      memchr(job->text + job->from, ';', job->limit - job->from) ? "unquoted_key" : NULL,
      NULL};
  struct repair_copy copy = {0};
  size_t work = 4 * (job->limit - job->from);
  if (p->repair_work < work || job->limit > UINT32_MAX)
    return false;
  bool ok = way->copy(&copy, p->text, job->from, job->limit);
  p->repair_work -= ok ? work : work / 4;
  if (ok) {
    struct repair_job inner = *job;
    inner.last = job->limit == p->n;
    inner.text = copy.text.p;
    inner.from = 0;
    inner.limit = copy.text.n;
    ok = fix_attempt(p, &inner, fenced, f);
  }
  if (ok && way->plain && has_repair(f, doubtful)) {
    fix_drop(f);
    ok = false;
  }
  if (ok) {
    /* The offsets of a repair that ran on a copy are translated, and the reason for the copy is the
     * first repair. */
    f->start = job->from;
    f->r.end = copy.at[f->r.end];
    struct extract_repair *told = xcalloc(f->r.repairs_listed + 1, sizeof *told);
    size_t at = 0; /* where the copy is first another text */
    while (at < copy.text.n && copy.at[at] == job->from + at &&
           p->text[job->from + at] == copy.text.p[at])
      at++;
    told[0] = (struct extract_repair){way->name, job->from + at};
    for (size_t k = 0; k < f->r.repairs_listed; k++)
      told[k + 1] = (struct extract_repair){f->r.repairs[k].name, copy.at[f->r.repairs[k].offset]};
    free(f->r.repairs);
    f->r.repairs = told;
    f->r.repairs_listed++;
    f->r.repair_count++;
  }
  buf_deinit(&copy.text);
  free(copy.at);
  return ok;
}

static void fix_take(struct extract_pass *p, struct fix *f) {
  struct extract_result *out = p->out;
  out->value = json_incref(f->value);
  out->valid = true;
  out->repaired = f->r.repair_count > 0;
  out->truncated = f->r.truncated;
  out->unwrapped = f->unwrapped;
  out->offset = f->start;
  out->length = f->r.end - f->start;
  out->stage = extract_stage_of(p, f->start, f->r.end, f->fenced);
  out->repairs = f->r.repairs;
  out->repairs_listed = f->r.repairs_listed;
  out->repair_count = f->r.repair_count;
  f->r.repairs = NULL;
}

static bool quoted_key_at(const struct extract_pass *p, size_t i, size_t limit) {
  if (i >= limit || p->text[i] != '"')
    return false;
  size_t end = limit - i > REPAIR_KEY_MAX ? i + REPAIR_KEY_MAX : limit, k = i + 1;
  while (k < end && p->text[k] != '"' && p->text[k] != '\n')
    k += p->text[k] == '\\' ? 2 : 1;
  if (k >= end || p->text[k] != '"')
    return false;
  k++;
  while (k < end && (p->text[k] == ' ' || p->text[k] == '\t'))
    k++;
  return k < end && p->text[k] == ':';
}

/* Repairs places that no bracket marks: members whose opening brace is lost, a tuple, several
 * values in a row, full-width brackets, the call of a tool. */
static bool fix_text(struct extract_pass *p, size_t from, size_t limit, bool fenced,
                     struct fix *f) {
  from = skip_blank(p, from, limit);
  if (from >= limit)
    return false;
  struct repair_job job = {.text = p->text, .from = from, .limit = limit};
  if (quoted_key_at(p, from, limit)) {
    job.members = true;
    return fix_attempt(p, &job, fenced, f);
  }
  const char *call = memmem(p->text + from, limit - from, LIT("<parameter"));
  if (call != NULL) { /* of a tool; its parameters as texts or, if a schema wants that, as JSON */
    job.from = (size_t)(call - p->text);
    return fix_by_copy(p, &job, &repair_ways[REPAIR_WAY_CALL], fenced, f) ||
           (p->opts->check && fix_by_copy(p, &job, &repair_ways[REPAIR_WAY_CALL + 1], fenced, f));
  }
  if (p->text[from] == '(' && (fenced || from == p->trim_start))
    return fix_attempt(p, &job, fenced, f);
  static const char *const brackets[] = {"\xEF\xBD\x9B", "\xEF\xBC\xBB"}; /* full-width { and [ */
  bool wide = limit - from > 3 && (memcmp(p->text + from, brackets[0], 3) == 0 ||
                                   memcmp(p->text + from, brackets[1], 3) == 0);
  if (wide && (fenced || from == p->trim_start))
    return fix_by_copy(p, &job, &repair_ways[REPAIR_WAY_PUNCTUATION], fenced, f);
  return false;
}

/* Repairs objects one after the other, with nothing else in the text, where an array is wanted. */
static bool fix_sequence(struct extract_pass *p, size_t from, size_t limit, struct fix *f) {
  size_t i = skip_blank(p, from, limit);
  if (i >= limit || !jscan_one_of("{/#\"0123456789", p->text[i]) || !p->text[i])
    return false;
  struct repair_job job = {.text = p->text, .from = i, .limit = limit};
  job.sequence = true;
  if (!fix_attempt(p, &job, false, f))
    return false;
  if (json_is_array(f->value) && json_array_size(f->value) > 1)
    return true;
  fix_drop(f);
  return false;
}

/* Returns true if the text goes on with members or items where the value is said to end: then the
 * end is wrong. Surplus brackets are allowed if only words, or nothing, follow them. */
static bool fix_goes_on(const struct extract_pass *p, const struct fix *f, size_t limit) {
  size_t i = skip_blank(p, f->r.end < limit ? f->r.end : limit, limit);
  bool more = false;
  while (i < limit && jscan_one_of(",:}])", p->text[i])) {
    more = true;
    i = skip_blank(p, i + 1, limit);
  }
  return more && i < limit && jscan_one_of("\"'{[-0123456789", p->text[i]);
}

/* Tries all readings of one place, the likelier ones first. */
static bool fix_place(struct extract_pass *p, struct repair_job *job, bool fenced, struct fix *f) {
  for (size_t k = 0; k < REPAIR_WAY_COUNT; k++)
    if (fix_by_copy(p, job, &repair_ways[k], fenced, f))
      return true;
  if (fix_attempt(p, job, fenced, f))
    return true;
  if (!p->opts->check)
    return false;
  job->zeros = true; /* the schema may want a number where 007 stands */
  return fix_attempt(p, job, fenced, f);
}

/* Returns true if a key of the answer follows what was repaired, which then was a draft. */
static bool fix_is_draft(const struct extract_pass *p, const struct fix *f, size_t limit) {
  size_t end = f->r.end < limit ? f->r.end : limit;
  return extract_key_between(p, end, limit, true) ||
         (limit < p->segment_limit &&
          extract_key_between(p, p->segment_start, p->segment_limit, true));
}

/* Returns true when it filled out->value. */
static bool extract_fix(struct extract_pass *p) {
  struct fix best = {0}, f;
  bool found = false;
  size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
  size_t limit_of_text = p->segment_limit;
  /* All places together have one allowance, so that the whole stays linear. */
  p->repair_work = SIZE_MAX;
  if (p->n <= SIZE_MAX / (2 * REPAIR_WORK_FACTOR))
    p->repair_work = p->n * REPAIR_WORK_FACTOR + REPAIR_WORK_MIN;
  if (p->opts->want == EXTRACT_WANT_ARRAY)
    found = fix_sequence(p, p->segment_start, limit_of_text, &best);
  /* The last place comes first; what is surely JSON before what may be, in a fence before
   * outside. */
  for (int rank = 0; rank < 4 && !found; rank++) {
    for (size_t k = 0; k < count; k++) {
      const struct extract_region *region =
          &p->regions[(p->region_count - 1 - k) % EXTRACT_REGIONS_MAX];
      if (region->sure != (rank < 2) || region->fenced != (rank % 2 == 0))
        continue;
      if (region->code == JSCAN_DEPTH || region->code == JSCAN_NUMBER_RANGE)
        continue;
      struct repair_job job = {.text = p->text, .from = region->start};
      job.limit = region->limit < limit_of_text ? region->limit : limit_of_text;
      if (job.limit <= job.from)
        continue;
      if (fix_place(p, &job, region->fenced, &f)) {
        if (fix_goes_on(p, &f, job.limit) || (p->region_count > k + 1 && f.r.end < job.limit &&
                                              stray_closer(p, f.r.end, job.limit))) {
          fix_drop(&f); /* it is a piece of something larger */
          continue;
        }
        if (fix_is_draft(p, &f, job.limit)) {
          fix_drop(&f);
          return false;
        }
        best = f;
        found = true;
        break;
      }
    }
  }
  if (!found && p->fence_start != SIZE_MAX)
    found = fix_text(p, p->fence_start, limit_of_text, true, &best);
  if (!found)
    found = fix_text(p, p->segment_start, limit_of_text, false, &best);
  if (found && fix_is_draft(p, &best, limit_of_text)) {
    fix_drop(&best);
    return false;
  }
  if (found)
    fix_take(p, &best);
  fix_drop(&best);
  return found;
}

static void extract_give(struct extract_pass *p, struct extract_slot *s, bool valid) {
  struct extract_result *out = p->out;
  out->value = s->value;
  out->stage = s->stage;
  out->valid = valid;
  out->unwrapped = s->unwrapped;
  out->duplicate_key = s->duplicate_key;
  out->offset = s->offset;
  out->length = s->length;
  if (s->note < out->note_count)
    out->notes[s->note].outcome = valid ? "chosen" : "nearest";
  s->value = NULL;
}

static void extract_fail(struct extract_result *out, enum extract_code code, size_t offset,
                         const char *what) {
  out->error.code = code;
  out->error.offset = offset;
  snprintf(out->error.message, sizeof out->error.message, "%s", what);
}

static const char *const root_messages[] = {
    [EXTRACT_WANT_ANY] = "the JSON value does not pass the check",
    [EXTRACT_WANT_OBJECT] = "the JSON value is not an object",
    [EXTRACT_WANT_ARRAY] = "the JSON value is not an array"};

static void explain_failure(struct extract_pass *p) {
  struct extract_result *out = p->out;
  if (p->hard_code == JSCAN_DEPTH) {
    extract_fail(out, EXTRACT_ERR_DEPTH_LIMIT, p->hard_offset,
                 "the value is nested deeper than 256 levels");
    return;
  }
  if (p->hard_code == JSCAN_NUMBER_RANGE) {
    extract_fail(out, EXTRACT_ERR_NUMBER_RANGE, p->hard_offset,
                 "a number is too large for a double-precision value");
    return;
  }
  size_t count = p->region_count < EXTRACT_REGIONS_MAX ? p->region_count : EXTRACT_REGIONS_MAX;
  const struct extract_region *last = NULL;
  for (size_t k = 0; k < count; k++) {
    const struct extract_region *r = &p->regions[(p->region_count - 1 - k) % EXTRACT_REGIONS_MAX];
    if (r->sure) {
      last = r;
      break;
    }
  }
  if (last) {
    bool cut = last->code == JSCAN_TRUNCATED;
    extract_fail(out, cut ? EXTRACT_ERR_TRUNCATED : EXTRACT_ERR_SYNTAX, last->fail, "");
    print_into(out->error.message, sizeof out->error.message,
               "the JSON value that starts at byte %zu is %s (%s)", last->start,
               cut ? "cut off" : "broken", jscan_code_name(last->code));
  } else if (p->wrong_root_seen) {
    extract_fail(out, EXTRACT_ERR_WRONG_ROOT, p->wrong_root_offset, root_messages[p->opts->want]);
  } else if (p->draft_seen) {
    extract_fail(out, EXTRACT_ERR_DRAFT, p->draft_offset,
                 "a value that passes is followed by one that does not: which one is meant?");
  } else if (p->echo_seen) {
    extract_fail(out, EXTRACT_ERR_NOT_VALID, 0, "the text repeats the schema instead of answering");
  } else if (p->reasoning_open) {
    extract_fail(out, EXTRACT_ERR_REASONING, p->segment_limit,
                 "the text ends inside a reasoning section, before any answer");
  } else {
    extract_fail(out, EXTRACT_ERR_NO_JSON, 0, "the text holds no JSON value");
  }
}

static void extract_choose(struct extract_pass *p) {
  const struct extract_opts *opts = p->opts;
  if (!p->reasoning_open)
    extract_gap(p, p->n);
  if (p->valid.value && (p->broken_seen || p->other_seen) &&
      stray_closer(p, p->valid.offset + p->valid.length, p->segment_limit))
    extract_refuse_drafts(p, "inside_broken");
  if (p->plain.value && p->broken_seen &&
      stray_closer(p, p->plain.offset + p->plain.length, p->segment_limit))
    extract_slot_drop(&p->plain);
  if (p->valid.value) {
    extract_give(p, &p->valid, true);
  } else if (!opts->check && p->plain.value) {
    extract_give(p, &p->plain, true);
  } else if (opts->repair && p->hard_code == JSCAN_OK && extract_fix(p)) {
    return;
  } else if (!opts->check && p->empty.value) {
    extract_give(p, &p->empty, true);
  } else if (p->near.value) {
    extract_fail(p->out, EXTRACT_ERR_NOT_VALID, p->near.offset,
                 "the value does not pass the check");
    extract_give(p, &p->near, false);
  } else {
    explain_failure(p);
  }
}

enum extract_status extract(const char *text, size_t n, const struct extract_opts *opts,
                            struct extract_result *out) {
  static const struct extract_opts any = {0};
  struct extract_pass p = {.text = text,
                           .n = n,
                           .opts = opts ? opts : &any,
                           .out = out,
                           .fence_start = SIZE_MAX,
                           .segment_limit = n,
                           .valid.note = SIZE_MAX,
                           .plain.note = SIZE_MAX,
                           .empty.note = SIZE_MAX,
                           .near.note = SIZE_MAX};
  *out = (struct extract_result){0};
  jscan_init(&p.js, text, n);
  p.piece_work = n > SIZE_MAX / 32 ? n : 16 * n + 65536;
  struct str trimmed = extract_trim((struct str){text, n});
  p.trim_start = (size_t)(trimmed.p - text);
  p.trim_end = p.trim_start + trimmed.n;
  p.segment_start = p.trim_start;
  if (!direct_scalar(&p, p.trim_start)) {
    const char *line = memrchr(text + p.trim_start, '\n', p.trim_end - p.trim_start);
    extract_walk(&p);
    size_t last = line ? (size_t)(line - text) + 1 : n;
    if (p.opts->check && !p.valid.value && last >= p.segment_start && last >= p.inside_until &&
        last < n && text[last] == '"')
      (void)direct_scalar(&p, last); /* an answer in a line of its own */
  }
  extract_choose(&p);
  jscan_deinit(&p.js);
  extract_slot_drop(&p.valid);
  extract_slot_drop(&p.plain);
  extract_slot_drop(&p.empty);
  extract_slot_drop(&p.near);
  return out->value ? EXTRACT_OK : EXTRACT_NOT_FOUND;
}

void extract_answers_deinit(struct extract_answers *a) {
  for (size_t i = 0; i < a->count; i++)
    json_decref(a->items[i].value);
  free(a->items);
  *a = (struct extract_answers){0};
}

void extract_result_deinit(struct extract_result *r) {
  json_decref(r->value);
  free(r->repairs);
  free(r->notes);
  *r = (struct extract_result){0};
}
