/* Reads numbers, literals and words without quotes. */
#include "base/str.h"
#include "base/utf8.h"
#include "extract/repair_internal.h"

#include <string.h>

static bool repair_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool ends_token(const struct repair *r, size_t i) {
  size_t len;
  return i >= r->n || jscan_one_of(",]}):=\"'`{[", r->t[i]) || repair_space(r, i) ||
         (r->t[i] == '/' && i + 1 < r->n && (r->t[i + 1] == '/' || r->t[i + 1] == '*')) ||
         repair_quote_at(r, i, &len) != QUOTE_NONE;
}

/* Returns true if what follows makes it text, as in "2 apples", unless that is a key or something
 * else that can follow a number. A key, or a time of day, is no number either. */
static bool words_follow(struct repair *r, size_t end, size_t next) {
  if (next >= r->n)
    return false;
  if (r->t[next] == ':')
    return true;
  return next > end && repair_word_byte(r->t[next]) && !repair_digit(r->t[next]) &&
         !memchr(r->t + end, '\n', next - end) && !repair_key_at(r, next) && r->t[next] != '-';
}

/* Returns the offset after the last group of 1,234 as a member's value, since no key can look like
 * that. Returns `end` itself if no group follows, 0 if the comma makes it text: 105,12. */
static size_t behind_groups(struct repair *r, size_t end) {
  if (end + 1 >= r->n || r->t[end] != ',' || !repair_digit(r->t[end + 1]) ||
      repair_key_at(r, end + 1))
    return end;
  size_t k = end;
  while (k + 3 < r->n && r->t[k] == ',' && repair_digit(r->t[k + 1]) && repair_digit(r->t[k + 2]) &&
         repair_digit(r->t[k + 3]) && (k + 4 >= r->n || !repair_digit(r->t[k + 4])))
    k += 4;
  return k == end ? 0 : k;
}

enum { NUMBER_BYTES = 380 }; /* those of a number that is mended */

/* Writes the number at [from, end) as JSON does, without what has no digits. Returns its length. */
static size_t plain_number(const struct repair *r, size_t from, size_t end, bool grouped,
                           char copy[NUMBER_BYTES + 2]) {
  size_t n = 0, i = from;
  if (r->t[i] == '-')
    copy[n++] = '-';
  if (r->t[i] == '+' || r->t[i] == '-')
    i++;
  if (i < end && r->t[i] == '.')
    copy[n++] = '0';
  while (r->zeros && i + 1 < end && r->t[i] == '0' && repair_digit(r->t[i + 1]))
    i++;
  for (; i < end; i++) /* 1_000 as in programs */
    if ((r->t[i] != '_' && !(grouped && r->t[i] == ',')) || n == 0 || !repair_digit(copy[n - 1]))
      copy[n++] = r->t[i];
  while (n && jscan_one_of("eE+-.", copy[n - 1]))
    n--;
  return n;
}

static json_t *number_of(struct repair *r, const char *copy, size_t n) {
  json_t *v = NULL;
  size_t stop;
  enum jscan_code code = jscan_number(copy, n, 0, &v, &stop);
  r->failed = r->failed || code == JSCAN_NUMBER_RANGE;
  if (code == JSCAN_OK && stop == n)
    return v;
  if (code == JSCAN_OK)
    json_decref(v);
  return NULL;
}

/* Returns true for the quote of 12", of which the first quote is missing. */
static bool quote_behind(struct repair *r, size_t end) {
  if (end >= r->n || r->t[end] != '"' || repair_key_at(r, end))
    return false;
  size_t after = repair_junk(r, end + 1, false);
  return after >= r->n || jscan_one_of(",]}", r->t[after]);
}

/* Reads numbers as people write them: +1, .5, 1., 2e, - at a cut. Anything else with digits in it
 * (dates, versions, leading zeros) is left for the caller to read as text. */
json_t *repair_number(struct repair *r, enum repair_place place) {
  char copy[NUMBER_BYTES + 2];
  size_t from = r->i, end = from;
  while (!ends_token(r, end))
    end++;
  size_t next = repair_junk(r, end, false), ungrouped = end;
  if (words_follow(r, end, next))
    return NULL;
  if (place == REPAIR_MEMBER)
    end = behind_groups(r, end);
  if (end == 0 || end - from > NUMBER_BYTES)
    return NULL;
  size_t n = plain_number(r, from, end, end > ungrouped, copy);
  if (n == 0) {
    if (end - from > 1 || r->t[from] != '-')
      return NULL;
    if (next >= r->n)
      r->i = r->n; /* a lone minus at the end of the text says nothing */
    else
      r->failed = true;
    return NULL;
  }
  json_t *v = number_of(r, copy, n);
  if (v == NULL)
    return NULL;
  repair_keep(r, from, end);
  if (quote_behind(r, end)) {
    repair_note(r, "extra_quote", end);
    r->i = end + 1;
    return v;
  }
  if (n != end - from || memcmp(copy, r->t + from, n) != 0)
    repair_note(r, "number", from);
  if (end >= r->n)
    r->out->truncated = true; /* 12 may have been 123 */
  r->i = end;
  return v;
}

static const struct literal {
  const char *word;
  char value; /* t f n */
} literals[] = {{"true", 't'},     {"false", 'f'},     {"null", 'n'}, {"none", 'n'},
                {"nil", 'n'},      {"undefined", 'n'}, {"nan", 'n'},  {"nul", 'n'},
                {"infinity", 'n'}, {"-infinity", 'n'}};

static char repair_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns the literal that text[i, end) is, in any case, also a cut one if it ends the text; NUL if
 * it is none. */
static char literal_of(const struct repair *r, size_t i, size_t end) {
  for (size_t w = 0; w < sizeof literals / sizeof *literals; w++) {
    size_t k = 0;
    while (i + k < end && literals[w].word[k] && repair_lower(r->t[i + k]) == literals[w].word[k])
      k++;
    if (i + k == end && (!literals[w].word[k] || (end == r->n && w < 4)))
      return literals[w].value;
  }
  return '\0';
}

/* Returns where unquoted text that starts at i ends. Commas inside are kept if no key, closer or
 * end follows them. */
static size_t bare_end(struct repair *r, size_t i, enum repair_place place) {
  size_t parens = 0, squares = 0, start = i, len;
  for (; i < r->n && repair_spend(r, 1); i++) {
    char c = r->t[i];
    if (c == '(') {
      parens++;
    } else if (c == ')') {
      if (!parens && repair_in(r, '('))
        return i;
      parens -= parens > 0;
    } else if ((c == '[' || c == '{') && place == REPAIR_MEMBER) {
      squares++;
    } else if ((c == ']' || c == '}') && squares) {
      squares--;
    } else if (c == '}' || c == ']') {
      return i;
    } else if (c == '{' && place == REPAIR_ITEM) {
      return i;
    } else if (c == ',' && !parens) {
      if (place != REPAIR_MEMBER)
        return i;
      size_t next = repair_junk(r, i + 1, false);
      if (next >= r->n || jscan_one_of(",}]", r->t[next]) || repair_key_at(r, next) ||
          repair_quote_at(r, next, &len) != QUOTE_NONE)
        return i;
    } else if (c == '\n') {
      size_t next = repair_junk(r, i, false);
      if (next >= r->n || r->t[next] == '}' || r->t[next] == ']' || repair_fence_at(r, next))
        return i;
      if (place == REPAIR_MEMBER && repair_key_at(r, next))
        return i;
      if (place == REPAIR_ITEM && r->depth)
        return i;
    } else if (c == '"') {
      /* the closing half of a pair whose first quote is missing */
      size_t next = repair_junk(r, i + 1, false);
      if (next >= r->n || jscan_one_of(",}]", r->t[next]))
        return i;
      if (repair_key_at(r, i) && i > start)
        return i;
    } else if (c == '/' && i + 1 < r->n &&
               (r->t[i + 1] == '*' ||
                (r->t[i + 1] == '/' && i > start && repair_space(r, i - 1)))) {
      return i;
    } else if (repair_fence_at(r, i)) {
      return i;
    }
  }
  return r->n;
}

/* Reads word( value ): MongoDB's types and JSONP. */
static json_t *repair_call(struct repair *r) {
  size_t i = r->i, len;
  while (i < r->n && (repair_word_byte(r->t[i]) || r->t[i] == '.'))
    i++;
  if (i >= r->n || r->t[i] != '(' || i == r->i || r->depth >= JSCAN_DEPTH_MAX)
    return NULL;
  size_t arg = repair_junk(r, i + 1, false);
  if (arg >= r->n ||
      !(repair_quote_at(r, arg, &len) != QUOTE_NONE || jscan_one_of("{[-0123456789", r->t[arg])))
    return NULL;
  repair_note(r, "function_call", r->i);
  repair_keep(r, r->i, i);
  r->stack[r->depth++] = '(';
  r->i = arg;
  json_t *v = repair_read(r, REPAIR_ITEM);
  r->depth--;
  r->i = repair_junk(r, r->i, true);
  if (r->i < r->n && r->t[r->i] == ')')
    r->i++;
  if (r->i < r->n && r->t[r->i] == ';')
    r->i++;
  return v;
}

bool repair_unbalanced(const char *t, size_t n) {
  size_t braces = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    if ((t[i] == '}' && braces == 0) || (t[i] == ']' && squares == 0))
      return true;
    braces += (t[i] == '{') - (size_t)(t[i] == '}');
    squares += (t[i] == '[') - (size_t)(t[i] == ']');
  }
  return braces + squares > 0;
}

static bool strict_literal(const struct repair *r, size_t from, size_t to) {
  static const char *const words[] = {"true", "false", "null"};
  for (size_t w = 0; w < 3; w++)
    if (to - from == strlen(words[w]) && memcmp(r->t + from, words[w], to - from) == 0)
      return true;
  return false;
}

/* Returns the literal that the bare text [from, *stop) is, or begins with where something else
 * follows that is not its comma: true "b": 2. Then *stop is its end. */
static char literal_before(struct repair *r, size_t from, size_t *stop) {
  char literal = literal_of(r, from, *stop);
  size_t word = from, len;
  while (word < *stop && repair_word_byte(r->t[word]))
    word++;
  if (literal || word == *stop || word == from)
    return literal;
  size_t next = repair_junk(r, word, false);
  bool apart =
      next > word && (repair_key_at(r, next) || repair_quote_at(r, next, &len) != QUOTE_NONE);
  if (literal_of(r, from, word) && (apart || (next < *stop && r->t[next] == ','))) {
    *stop = word;
    return literal_of(r, from, word);
  }
  r->failed = r->failed || strict_literal(r, from, word); /* it is never turned into text */
  return '\0';
}

static json_t *bare_literal(struct repair *r, size_t from, size_t end, char literal) {
  struct str text = {r->t + from, end - from};
  if (!str_starts(text, "true") && !str_starts(text, "false") && !str_starts(text, "null"))
    repair_note(r, "literal", from);
  return literal == 'n' ? json_null() : json_boolean(literal == 't');
}

/* Puts bytes, which may not be UTF-8. */
static void put_words(struct repair *r, size_t from, size_t to) {
  for (size_t k = from; k < to;) {
    size_t len = utf8_decode(r->t + k, to - k, NULL);
    buf_append(&r->buf, len ? r->t + k : "\xEF\xBF\xBD", len ? len : 3);
    k += len ? len : 1;
  }
}

/* Takes text without quotes. `half_quoted` says that only its first quote is missing. */
static json_t *bare_text(struct repair *r, size_t from, size_t stop, bool half_quoted) {
  repair_note(r, half_quoted ? "missing_quote" : "unquoted_value", from);
  if (memchr(r->t + from, '"', stop - from) || repair_unbalanced(r->t + from, stop - from)) {
    r->failed = true; /* more than words has been swallowed */
    return NULL;
  }
  for (size_t k = from; k < stop; k++)
    if (r->t[k] == ';' || (r->t[k] == '(' && k + 1 < stop && r->t[k + 1] == ')'))
      r->out->code_like = true;
  buf_clear(&r->buf);
  if (half_quoted)
    repair_decode(r, from, stop);
  else
    put_words(r, from, stop);
  return jscan_made(json_stringn_nocheck(buf_c(&r->buf), r->buf.n));
}

json_t *repair_bare(struct repair *r, enum repair_place place) {
  json_t *v = repair_call(r);
  if (v || r->failed)
    return v;
  size_t from = r->i, end = bare_end(r, from, place), stop = end;
  while (stop > from && repair_space(r, stop - 1) == 1)
    stop--;
  if (stop == from)
    return NULL;
  size_t whole = stop;
  char literal = literal_before(r, from, &stop);
  if (r->failed)
    return NULL;
  if (stop < whole)
    end = stop;
  bool half_quoted = end < r->n && r->t[end] == '"' && !repair_key_at(r, end);
  r->i = end + half_quoted;
  repair_keep(r, from, stop);
  if (end >= r->n)
    r->out->truncated = true;
  if (literal)
    return bare_literal(r, from, end, literal);
  return bare_text(r, from, stop, half_quoted);
}
