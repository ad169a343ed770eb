#include "repair_internal.h"

#include <string.h>

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool ends_token(const struct repair *r, size_t i) {
  size_t len;
  return i >= r->n || jscan_one_of(",]}):=\"'`{[", r->t[i]) || repair_space(r, i) ||
         (r->t[i] == '/' && i + 1 < r->n && (r->t[i + 1] == '/' || r->t[i + 1] == '*')) ||
         repair_quote_at(r, i, &len) != QUOTE_NONE;
}

/* Numbers as people write them: +1, .5, 1., 2e, - at a cut. Anything else with digits in it (dates,
 * versions, leading zeros) is left for the caller to read as text. */
json_t *repair_number(struct repair *r, enum repair_place place) {
  size_t from = r->i, end = from;
  while (!ends_token(r, end))
    end++;
  size_t next = repair_junk(r, end, false);
  /* "2 apples": text, unless what follows is a key or something else that can follow a number */
  if (next > end && next < r->n && repair_word_byte(r->t[next]) &&
      !(r->t[next] >= '0' && r->t[next] <= '9') && !memchr(r->t + end, '\n', next - end) &&
      !repair_key_at(r, next) && r->t[next] != '-')
    return NULL;
  if (next < r->n && r->t[next] == ':')
    return NULL;        /* a key, or a time of day */
  bool grouped = false; /* 1,234 as a value of a member: a key cannot look like that */
  if (place == REPAIR_MEMBER && end + 1 < r->n && r->t[end] == ',' && is_digit(r->t[end + 1]) &&
      !repair_key_at(r, end + 1)) {
    size_t k = end;
    while (k + 3 < r->n && r->t[k] == ',' && is_digit(r->t[k + 1]) && is_digit(r->t[k + 2]) &&
           is_digit(r->t[k + 3]) && (k + 4 >= r->n || !is_digit(r->t[k + 4])))
      k += 4;
    if (k == end)
      return NULL; /* 105,12 stays text */
    end = k;
    grouped = true;
  }
  char copy[400];
  size_t n = 0, i = from;
  if (end - from > 380)
    return NULL;
  if (r->t[i] == '+' || r->t[i] == '-') {
    if (r->t[i] == '-')
      copy[n++] = '-';
    i++;
  }
  if (i < end && r->t[i] == '.')
    copy[n++] = '0';
  while (r->zeros && i + 1 < end && r->t[i] == '0' && r->t[i + 1] >= '0' && r->t[i + 1] <= '9')
    i++;
  for (; i < end; i++) /* 1_000 as in programs */
    if ((r->t[i] != '_' && !(grouped && r->t[i] == ',')) || n == 0 || copy[n - 1] < '0' ||
        copy[n - 1] > '9')
      copy[n++] = r->t[i];
  while (n && jscan_one_of("eE+-.", copy[n - 1]))
    n--; /* an exponent or a fraction that has no digits */
  if (!n) {
    if (end - from > 1 || r->t[from] != '-')
      return NULL;
    if (next >= r->n &&
        place == REPAIR_ITEM) { /* a lone minus at the end of the text says nothing */
      r->i = r->n;
      return NULL;
    }
    copy[n++] = '0';
  }
  json_t *v = NULL;
  size_t stop;
  enum jscan_code code = jscan_number(copy, n, 0, &v, &stop);
  if (code == JSCAN_OUT_OF_MEMORY)
    r->oom = true;
  if (code == JSCAN_NUMBER_RANGE)
    r->failed = true;
  if (code != JSCAN_OK)
    return NULL;
  if (stop != n) {
    json_decref(v);
    return NULL;
  }
  if (end < r->n && r->t[end] == '"' &&
      !repair_key_at(r, end)) { /* 12", of which the first quote is missing */
    size_t after = repair_junk(r, end + 1, false);
    if (after >= r->n || jscan_one_of(",]}", r->t[after])) {
      repair_note(r, "extra_quote", end);
      r->i = end + 1;
      return v;
    }
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
} literals[] = {{"true", 't'}, {"false", 'f'},     {"null", 'n'}, {"none", 'n'},
                {"nil", 'n'},  {"undefined", 'n'}, {"nan", 'n'},  {"nul", 'n'}};

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* the literal that text[i, end) is, in any case; a cut one when it ends the text */
static char literal_of(const struct repair *r, size_t i, size_t end) {
  for (size_t w = 0; w < sizeof literals / sizeof *literals; w++) {
    size_t k = 0;
    while (i + k < end && literals[w].word[k] && lower(r->t[i + k]) == literals[w].word[k])
      k++;
    if (i + k == end && (!literals[w].word[k] || (end == r->n && w < 4)))
      return literals[w].value;
  }
  return '\0';
}

/* Where unquoted text that starts at i ends. Commas inside are kept when no key, closer or end
 * follows them. */
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

/* word( value ): MongoDB's types and JSONP */
static json_t *call(struct repair *r) {
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
  r->stack[r->depth++] = '(';
  r->i = arg;
  json_t *v = repair_read(r, REPAIR_ITEM);
  r->depth--;
  r->i = repair_junk(r, r->i, false);
  if (r->i < r->n && r->t[r->i] == ')')
    r->i++;
  if (r->i < r->n && r->t[r->i] == ';')
    r->i++;
  return v;
}

json_t *repair_bare(struct repair *r, enum repair_place place) {
  json_t *v = call(r);
  if (v || r->oom || r->failed)
    return v;
  size_t from = r->i, end = bare_end(r, from, place), stop = end;
  while (stop > from && repair_space(r, stop - 1) == 1)
    stop--;
  if (stop == from)
    return NULL;
  char literal = literal_of(r, from, stop);
  if (!literal) { /* a literal may be followed by something that is not its comma: true "b": 2 */
    size_t word = from;
    while (word < stop && repair_word_byte(r->t[word]))
      word++;
    size_t next = repair_junk(r, word, false);
    size_t len;
    if (word < stop && word > from && literal_of(r, from, word) && next > word &&
        (repair_key_at(r, next) || repair_quote_at(r, next, &len) != QUOTE_NONE)) {
      literal = literal_of(r, from, word);
      end = word;
    }
  }
  if (end < r->n && r->t[end] == '"' && !repair_key_at(r, end))
    r->i = end + 1;
  else
    r->i = end;
  if (literal) {
    size_t len = end - from;
    if (!((len >= 4 && memcmp(r->t + from, "true", 4) == 0) ||
          (len >= 5 && memcmp(r->t + from, "false", 5) == 0) ||
          (len >= 4 && memcmp(r->t + from, "null", 4) == 0)))
      repair_note(r, "literal", from);
    if (end >= r->n)
      r->out->truncated = true;
    return literal == 't' ? json_true() : literal == 'f' ? json_false() : json_null();
  }
  repair_note(r, r->i == end + 1 ? "missing_quote" : "unquoted_value", from);
  for (size_t k = from; k < stop; k++)
    if (r->t[k] == ';' || (r->t[k] == '(' && k + 1 < stop && r->t[k + 1] == ')'))
      r->out->code_like = true;
  if (end >= r->n)
    r->out->truncated = true;
  r->buf_len = 0;
  for (size_t k = from; k < stop;) {
    size_t len = jscan_utf8(r->t, stop, k);
    repair_append(r, len ? r->t + k : "\xEF\xBF\xBD", len ? len : 3);
    if (r->oom || r->failed)
      return NULL;
    k += len ? len : 1;
  }
  v = json_stringn_nocheck(r->buf, r->buf_len);
  r->oom = r->oom || !v;
  return v;
}
