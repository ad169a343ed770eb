/* Reads values that were meant to be JSON. */
#include "extract/repair.h"

#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "extract/repair_internal.h"
#include "format/json_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- copies of a stretch of text ---
 *
 * A copy leaves out what covers all of the text, so that it can be read as JSON: a level of
 * escapes, mail quotation, HTML entities, foreign punctuation. False: there is nothing of the kind.
 * c->at has the offset in the text for each byte of the copy and for its end. Linear. A text of
 * 4 GiB or more is not copied. */

/* Puts bytes that stand for what is at `at` in the text; n may be 0, for the end. */
static void copy_put(struct repair_copy *c, const char *p, size_t n, size_t at) {
  c->at = xgrow(c->at, &c->room, c->text.n + n + 1, sizeof *c->at);
  for (size_t i = 0; i < n; i++)
    c->at[c->text.n + i] = (uint32_t)at;
  buf_append(&c->text, p, n);
  c->at[c->text.n] = (uint32_t)at + 1;
}

static void copy_end(struct repair_copy *c, size_t limit) {
  copy_put(c, "", 0, limit);
  c->at[c->text.n] = (uint32_t)limit;
}

/* Returns the byte that \n, \t or \r at text[i] stands for, else NUL. */
static char line_escape(const char *text, size_t i, size_t limit) {
  static const char table[] = "n\nt\tr\r";
  if (i + 1 >= limit || text[i] != '\\' || !jscan_one_of("ntr", text[i + 1]))
    return '\0';
  return strchr(table, text[i + 1])[1];
}

/* {\"a\": \"b\"}: every quote is escaped once too often */
static bool copy_unescaped(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  assert(from < limit);
  const char *quote = memchr(text + from, '"', limit - from);
  size_t i = quote ? (size_t)(quote - text) : from;
  if (i < from + 2 || text[i - 1] != '\\')
    return false;
  size_t before = i - 1;
  while (before > from && (str_is_space(text[before - 1]) ||
                           (before > from + 1 && line_escape(text, before - 2, limit) != '\0')))
    before -= str_is_space(text[before - 1]) ? 1 : 2;
  if (before == from || !jscan_one_of("[{,:", text[before - 1]))
    return false;
  for (i = from; i < limit; i++) {
    char line = line_escape(text, i, limit);
    if (line != '\0') {
      copy_put(c, &line, 1, i++);
    } else if (text[i] == '\\' && i + 1 < limit && jscan_one_of("\"\\/", text[i + 1])) {
      copy_put(c, text + i + 1, 1, i);
      i++;
    } else {
      copy_put(c, text + i, 1, i);
    }
  }
  copy_end(c, limit);
  return true;
}

/* > {"a": 1, > "b": 2}: every line begins with the mark, including the first */
static bool copy_unquoted(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  size_t line = from;
  while (line > 0 && text[line - 1] != '\n')
    line--;
  while (line < from && str_is_space(text[line]))
    line++;
  if (text[line] != '>')
    return false;
  for (size_t i = from; i < limit;) {
    copy_put(c, text + i, 1, i);
    if (text[i++] != '\n')
      continue;
    size_t mark = i;
    while (mark < limit && str_is_space(text[mark]))
      mark++;
    if (mark < limit && text[mark] == '>')
      i = mark + 1;
  }
  copy_end(c, limit);
  return true;
}

/* --- HTML entities --- */

enum { ENTITY_BYTES = 10 };

/* Reads the entity at text[i]: its character goes to `out`, with the length of both. Returns false
 * if there is none. */
static bool entity_at(const char *text, size_t i, size_t limit, char out[UTF8_BYTES_MAX],
                      size_t *out_n, size_t *length) {
  static const struct {
    const char *name;
    char c;
  } names[] = {{"quot", '"'}, {"apos", '\''}, {"amp", '&'}, {"lt", '<'}, {"gt", '>'}};
  char word[ENTITY_BYTES + 1] = "";
  size_t n = 0;
  if (text[i] != '&')
    return false;
  while (i + 1 + n < limit && n < ENTITY_BYTES && text[i + 1 + n] != ';') {
    word[n] = text[i + 1 + n];
    n++;
  }
  if (n == 0 || i + 1 + n >= limit || text[i + 1 + n] != ';')
    return false;
  *length = n + 2;
  *out_n = 1;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (strcmp(names[k].name, word) == 0) {
      out[0] = names[k].c;
      return true;
    }
  if (word[0] != '#')
    return false;
  bool hex = word[1] == 'x' || word[1] == 'X';
  const char *digits = word + (hex ? 2 : 1);
  if (*digits == '\0' || digits[strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789")])
    return false;
  unsigned long cp = strtoul(digits, NULL, hex ? 16 : 10);
  if (cp == 0 || cp > UTF8_LAST)
    return false;
  *out_n = utf8_put(out, (uint32_t)cp);
  return true;
}

/* {&quot;a&quot;: 1} */
static bool copy_entities(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  char out[UTF8_BYTES_MAX];
  size_t i = from, n, length;
  assert(from < limit);
  while (i < limit && !jscan_one_of("\"&", text[i]))
    i++;
  size_t before = i;
  while (before > from && str_is_space(text[before - 1]))
    before--;
  if (i >= limit || before == from || !jscan_one_of("[{,:", text[before - 1]) ||
      !entity_at(text, i, limit, out, &n, &length) || n != 1 || !jscan_one_of("\"'", out[0]))
    return false;
  for (i = from; i < limit;) {
    if (entity_at(text, i, limit, out, &n, &length)) {
      copy_put(c, out, n, i);
      i += length;
    } else {
      copy_put(c, text + i, 1, i);
      i++;
    }
  }
  copy_end(c, limit);
  return true;
}

/* --- punctuation --- */

/* Returns the ASCII punctuation that the bytes at text[i] were meant to be, NUL for none. In a
 * text that begins `wide` any full-width character is one of ASCII. */
static char foreign_mark(const char *text, size_t i, size_t limit, bool wide, size_t *length) {
  static const struct {
    const char *bytes;
    char c;
  } marks[] = {{"\xEF\xBC\x9A", ':'}, {"\xEF\xBC\x8C", ','}, {"\xEF\xBC\x9B", ','},
               {"\xE3\x80\x81", ','}, {"\xEF\xBD\x9B", '{'}, {"\xEF\xBD\x9D", '}'},
               {"\xEF\xBC\xBB", '['}, {"\xEF\xBC\xBD", ']'}, {";", ','}};
  uint32_t cp;
  if (!jscan_one_of(";\\\xEF\xE3", text[i]))
    return '\0';
  for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
    *length = strlen(marks[k].bytes);
    if (limit - i >= *length && memcmp(text + i, marks[k].bytes, *length) == 0)
      return marks[k].c;
  }
  *length = utf8_decode(text + i, limit - i, &cp);
  if (wide && *length == 3 && cp > 0xFF00 && cp < 0xFF5F)
    return (char)(cp - 0xFEE0);
  *length = 2;
  return line_escape(text, i, limit) != '\0' ? ' ' : '\0';
}

/* Returns the offset after the string that opens at text[i], the limit if nothing closes it; i if
 * no string opens there. */
static size_t behind_string(const char *text, size_t i, size_t limit) {
  const struct repair r = {.t = text, .n = limit};
  size_t length;
  enum repair_quote open = repair_quote_at(&r, i, &length);
  if (open == QUOTE_NONE || open == QUOTE_CORNER_END)
    return i;
  for (i += length; i < limit; i++) {
    if (text[i] == '\\')
      i++;
    else if (repair_closes(open, repair_quote_at(&r, i, &length)))
      return i + length;
  }
  return limit;
}

/* Outside of strings, full-width punctuation, semicolons for commas, and \n that was meant to be a
 * line break. */
static bool copy_punctuation(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  size_t changes = 0, depth = 0, first = from, length;
  assert(from < limit);
  bool wide = text[from] == '\xEF';
  while (first < limit && foreign_mark(text, first, limit, wide, &length) == '\0')
    first++;
  if (first == limit)
    return false;
  for (size_t i = from; i < limit;) {
    size_t end = behind_string(text, i, limit);
    if (end > i) {
      for (; i < end; i++)
        copy_put(c, text + i, 1, i);
      continue;
    }
    char mark = foreign_mark(text, i, limit, wide, &length);
    if (mark != '\0') {
      changes++;
      copy_put(c, &mark, 1, i);
    } else {
      mark = text[i];
      length = 1;
      copy_put(c, &mark, 1, i);
    }
    i += length;
    depth += mark == '{' || mark == '[';
    if ((mark == '}' || mark == ']') && (depth == 0 || --depth == 0)) {
      copy_end(c, i); /* another text follows */
      return changes > 0;
    }
  }
  copy_end(c, limit);
  return changes > 0;
}

/* --- JSON within a string, escaped twice --- */

/* Returns the end of the content of the string at text[i], which begins with a bracket and in which
 * each quote has a backslash too many: "{\\"a\\": 1}". Returns 0 if it is none, the limit if
 * nothing ends it. */
static size_t behind_twice_escaped(const char *text, size_t i, size_t limit) {
  enum { BRACKETS = 16 };
  size_t k = i + 1;
  while (text[i] == '"' && k < limit && k - i < BRACKETS && jscan_one_of("[{ ", text[k]))
    k++;
  if (k == i + 1 || limit - k < 4 || memcmp(text + k, LIT("\\\\\"")) != 0 ||
      jscan_one_of(",:]} \n", text[k + 3]))
    return 0;
  for (; k < limit && text[k] != '"'; k++)
    while (k + 1 < limit && text[k] == '\\')
      k += text[k + 1] == '\\' && k + 2 < limit && text[k + 2] == '"' ? 3 : 2;
  return k < limit ? k : limit;
}

static bool copy_twice_escaped(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  bool changed = false, open = false;
  for (size_t i = from; i < limit && !open;) {
    size_t end = behind_twice_escaped(text, i, limit);
    changed = changed || end;
    open = end == limit;
    for (copy_put(c, text + i, 1, i), i++; i < end; i++) {
      i += text[i] == '\\' && i + 1 < end && text[i + 1] == '\\';
      copy_put(c, text + i, 1, i);
    }
  }
  copy_end(c, limit);
  return changed && !open;
}

/* --- calls of tools: elements, and Gemma's marks for quotes --- */

/* Puts the text [from, to) as the content of a string. */
static void copy_quoted(struct repair_copy *c, const char *text, size_t from, size_t to) {
  copy_put(c, "\"", 1, from);
  for (size_t i = from; i < to; i++) {
    char escape[8];
    bool control = (unsigned char)text[i] < 0x20;
    print_into(escape, sizeof escape, "\\u%04x", (unsigned)text[i] & 0x1F);
    copy_put(c, escape, control ? 6 : jscan_one_of("\"\\", text[i]), i);
    copy_put(c, text + i, !control, i);
  }
  copy_put(c, "\"", 1, to);
}

/* call:f{path:<|"|>a.c<|"|>} */
static bool copy_marked_quotes(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  static const char mark[] = "<|\"|>";
  const size_t n = sizeof mark - 1;
  const char *open;
  size_t i = from;
  while ((open = memmem(text + i, limit - i, mark, n)) != NULL) {
    size_t start = (size_t)(open - text) + n;
    const char *close = memmem(text + start, limit - start, mark, n);
    if (close == NULL)
      return false;
    for (; i + n < start; i++)
      copy_put(c, text + i, 1, i);
    copy_quoted(c, text, start, (size_t)(close - text));
    i = (size_t)(close - text) + n;
  }
  bool any = i > from;
  for (; i < limit; i++)
    copy_put(c, text + i, 1, i);
  copy_end(c, limit);
  return any;
}

/* Copies <parameter=path>a.c</parameter> or <parameter name="path">... at *i as a member, and moves
 * behind it. Returns false if it is none. */
static bool copy_parameter(struct repair_copy *c, const char *text, size_t *i, size_t limit,
                           bool typed) {
  static const char end[] = "</parameter>";
  size_t name = *i + sizeof "<parameter" - 1;
  bool attribute = limit - name > 7 && memcmp(text + name, LIT(" name=\"")) == 0;
  const char *from = name < limit ? memchr(text + name, '>', limit - name) : NULL;
  const char *to = from ? memmem(from, (size_t)(text + limit - from), LIT(end)) : NULL;
  name += attribute ? 7 : 1;
  if (to == NULL || from < text + name + 1 + attribute)
    return false;
  struct str value = {from + 1, (size_t)(to - from - 1)};
  if (value.n > 0 && value.p[0] == '\n') /* the line breaks next to the tags are layout */
    value = (struct str){value.p + 1, value.n - 1};
  value.n -= value.n > 0 && value.p[value.n - 1] == '\n';
  copy_put(c, c->text.n > 1 ? "," : "", c->text.n > 1, *i);
  copy_quoted(c, text, name, (size_t)(from - text) - attribute);
  copy_put(c, ":", 1, *i);
  size_t at = (size_t)(value.p - text);
  struct jscan_result r = {0};
  bool json = typed && jscan_whole(str_trim(value), &r) == JSCAN_OK;
  json_decref(r.value);
  for (size_t k = 0; json && k < value.n; k++)
    copy_put(c, value.p + k, 1, at + k);
  if (!json)
    copy_quoted(c, text, at, at + value.n);
  *i = (size_t)(to - text) + sizeof end - 1;
  return true;
}

/* Copies the parameters of the one call that the text holds; false: it is none, or several. */
static bool copy_call(struct repair_copy *c, const char *text, size_t from, size_t limit,
                      bool typed) {
  const char *at;
  size_t i = from;
  if (memcmp(text + from, "<parameter", limit - from < 10 ? limit - from : 10) != 0)
    return false;
  copy_put(c, "{", 1, from);
  while ((at = memmem(text + i, limit - i, LIT("<parameter"))) != NULL) {
    struct str between = {text + i, (size_t)(at - text) - i};
    i += between.n;
    if (str_trim(between).n > 0 || !copy_parameter(c, text, &i, limit, typed))
      return false;
  }
  copy_put(c, "}", 1, i);
  copy_end(c, i);
  return true;
}

static bool copy_call_texts(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  return copy_call(c, text, from, limit, false);
}

static bool copy_call_values(struct repair_copy *c, const char *text, size_t from, size_t limit) {
  return copy_call(c, text, from, limit, true);
}

const struct repair_way repair_ways[] = {
    {copy_unescaped, "escaped_text", false}, {copy_unquoted, "quoted_lines", false},
    {copy_entities, "html_entities", false}, {copy_twice_escaped, "escaped_text", true},
    {copy_punctuation, "punctuation", true}, {copy_marked_quotes, "tool_call", true},
    {copy_call_texts, "tool_call", true},    {copy_call_values, "tool_call", true}};

/* --- numbers, literals and words without quotes --- */

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
  return next > end && jscan_word_byte(r->t[next]) && !str_is_digit(r->t[next]) &&
         !memchr(r->t + end, '\n', next - end) && !repair_key_at(r, next) && r->t[next] != '-';
}

/* Returns the offset after the last group of 1,234 as a member's value, since no key can look like
 * that. Returns `end` itself if no group follows, 0 if the comma makes it text: 105,12. */
static size_t behind_groups(struct repair *r, size_t end) {
  if (end + 1 >= r->n || r->t[end] != ',' || !str_is_digit(r->t[end + 1]) ||
      repair_key_at(r, end + 1))
    return end;
  size_t k = end;
  while (k + 3 < r->n && r->t[k] == ',' && str_is_digit(r->t[k + 1]) && str_is_digit(r->t[k + 2]) &&
         str_is_digit(r->t[k + 3]) && (k + 4 >= r->n || !str_is_digit(r->t[k + 4])))
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
  while (r->zeros && i + 1 < end && r->t[i] == '0' && str_is_digit(r->t[i + 1]))
    i++;
  for (; i < end; i++) /* 1_000 as in programs */
    if ((r->t[i] != '_' && !(grouped && r->t[i] == ',')) || n == 0 || !str_is_digit(copy[n - 1]))
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

/* Reads 0x1F, as programs write numbers; longer ones are rather addresses and hashes. */
static json_t *hex_number(const struct repair *r, size_t from, size_t end) {
  json_int_t value = 0;
  if (end - from < 3 || end - from > 10 || r->t[from] != '0' || str_lower(r->t[from + 1]) != 'x')
    return NULL;
  for (size_t i = from + 2; i < end; i++) {
    if (str_hex_digit(r->t[i]) < 0)
      return NULL;
    value = value * 16 + str_hex_digit(r->t[i]);
  }
  return json_integer(value);
}

/* Returns true for the quote of 12", of which the first quote is missing. */
static bool quote_behind(struct repair *r, size_t end) {
  if (end >= r->n || r->t[end] != '"' || repair_key_at(r, end))
    return false;
  size_t after = repair_junk(r, end + 1, false);
  return after >= r->n || jscan_one_of(",]}", r->t[after]);
}

/* Leaves out [r->i, end) if the text is cut there, so that more of it may be missing. Returns
 * whether it did. */
static bool left_unfinished(struct repair *r, size_t end) {
  if (end != r->cut_at || r->depth == 0)
    return false;
  repair_keep(r, r->i, end);
  r->i = end;
  return r->out->truncated = r->dropped = r->unfinished = true;
}

/* Reads numbers as people write them: +1, .5, 1., 2e. Anything else with digits in it (dates,
 * versions, leading zeros) is left for the caller to read as text. */
static json_t *repair_number(struct repair *r, enum repair_place place) {
  char copy[NUMBER_BYTES + 2];
  size_t from = r->i, end = from;
  while (!ends_token(r, end))
    end++;
  size_t next = repair_junk(r, end, false), ungrouped = end;
  if (words_follow(r, end, next))
    return NULL;
  if (place == REPAIR_MEMBER)
    end = behind_groups(r, end);
  if (end == 0 || end - from > NUMBER_BYTES || left_unfinished(r, end))
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
    v = hex_number(r, from, end);
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
  r->i = end;
  return v;
}

static const struct literal {
  const char *word;
  char value; /* t f n */
} literals[] = {{"true", 't'},     {"false", 'f'},     {"null", 'n'}, {"none", 'n'},
                {"nil", 'n'},      {"undefined", 'n'}, {"nan", 'n'},  {"nul", 'n'},
                {"infinity", 'n'}, {"-infinity", 'n'}};

/* Returns the literal that text[i, end) is, in any case; NUL if it is none. */
static char literal_of(const struct repair *r, size_t i, size_t end) {
  for (size_t w = 0; w < sizeof literals / sizeof *literals; w++) {
    size_t k = 0;
    while (i + k < end && literals[w].word[k] && str_lower(r->t[i + k]) == literals[w].word[k])
      k++;
    if (i + k == end && !literals[w].word[k])
      return literals[w].value;
  }
  return '\0';
}

/* Returns true if text[i, end) begins like a number, or is less than the whole of a literal. */
static bool begins_scalar(const struct repair *r, size_t i, size_t end) {
  bool piece = jscan_one_of("+-.0123456789", r->t[i]);
  for (size_t w = 0; w < sizeof literals / sizeof *literals; w++)
    piece = piece || (end - i < strlen(literals[w].word) &&
                      strncasecmp(literals[w].word, r->t + i, end - i) == 0);
  return piece;
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

static json_t *repair_read(struct repair *r, enum repair_place place);
static void repair_members(struct repair *r, json_t *object, bool without_brace);

/* Reads word( value ): MongoDB's types and JSONP. */
static json_t *repair_call(struct repair *r) {
  size_t i = r->i, len;
  while (i < r->n && (jscan_word_byte(r->t[i]) || r->t[i] == '.'))
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

static bool strict_literal(struct str word) {
  return str_eq_c(word, "true") || str_eq_c(word, "false") || str_eq_c(word, "null");
}

/* Returns the literal that the bare text [from, *stop) is, or begins with where something else
 * follows that is not its comma: true "b": 2. Then *stop is its end. */
static char literal_before(struct repair *r, size_t from, size_t *stop) {
  char literal = literal_of(r, from, *stop);
  size_t word = from, len;
  while (word < *stop && jscan_word_byte(r->t[word]))
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
  /* It is never turned into text. */
  r->failed = r->failed || strict_literal((struct str){r->t + from, word - from});
  return '\0';
}

/* Takes text without quotes. `half_quoted` says that only its first quote is missing. */
static json_t *bare_text(struct repair *r, size_t from, size_t stop, bool half_quoted) {
  repair_note(r, half_quoted ? "missing_quote" : "unquoted_value", from);
  if (memchr(r->t + from, '"', stop - from) ||
      repair_brackets((struct str){r->t + from, stop - from})) {
    r->failed = true; /* more than words has been swallowed */
    return NULL;
  }
  for (size_t k = from; k < stop; k++)
    if (r->t[k] == ';' || (r->t[k] == '(' && k + 1 < stop && r->t[k + 1] == ')'))
      r->out->code_like = true;
  buf_clear(&r->buf);
  if (half_quoted) {
    repair_decode(r, from, stop);
  } else { /* bytes, which may not be UTF-8 */
    for (size_t k = from; k < stop;) {
      size_t len = utf8_decode(r->t + k, stop - k, NULL);
      buf_append(&r->buf, len ? r->t + k : "\xEF\xBF\xBD", len ? len : 3);
      k += len ? len : 1;
    }
  }
  return jscan_made(json_stringn_nocheck(buf_c(&r->buf), r->buf.n));
}

static json_t *repair_bare(struct repair *r, enum repair_place place) {
  json_t *v = repair_call(r);
  if (v || r->failed)
    return v;
  size_t from = r->i, end = bare_end(r, from, place), stop = end;
  while (stop > from && repair_space(r, stop - 1) == 1)
    stop--;
  if (stop == from)
    return NULL;
  if (begins_scalar(r, from, stop) && left_unfinished(r, stop))
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
  if (literal) {
    struct str text = {r->t + from, end - from};
    if (!str_starts(text, "true") && !str_starts(text, "false") && !str_starts(text, "null"))
      repair_note(r, "literal", from);
    return literal == 'n' ? json_null() : json_boolean(literal == 't');
  }
  return bare_text(r, from, stop, half_quoted);
}

/* --- arrays, tuples and sets, whatever closes them --- */

/* Returns true if the brace at r->i, met inside an array that is a member, was meant to be the
 * array's bracket. It was if another member follows and the object around has no object around it
 * to take it. */
static bool brace_for_bracket(struct repair *r) {
  if (r->depth < 2 || r->stack[r->depth - 2] != '{')
    return false;
  size_t next = repair_junk(r, r->i + 1, false);
  if (next >= r->n || r->t[next] != ',')
    return false;
  next = repair_junk(r, next + 1, false);
  return repair_key_at(r, next) && (r->depth < 3 || r->stack[r->depth - 3] != '{');
}

static char closer_of(char kind) {
  if (kind == '[')
    return ']';
  return kind == '(' ? ')' : '}';
}

/* Leaves out an unmatched closer if only closers follow. In the middle it shows that the brackets
 * are out of step, and the repair fails. */
static void repair_extra_bracket(struct repair *r, size_t at) {
  repair_note(r, "extra_bracket", at);
  r->i = at + 1;
  size_t next = at;
  while (next < r->n && (jscan_one_of("]})", r->t[next]) || repair_space(r, next) > 0))
    next++;
  r->failed = r->failed || !(next >= r->n || repair_fence_at(r, next));
}

/* Reads the array's closer at r->i, or one that was meant to be it or closes something around it.
 * Returns true if the array ended. */
static bool array_closes(struct repair *r, char kind, char c) {
  char own = closer_of(kind);
  size_t at = r->i;
  if (c == own) {
    r->i++;
    return true;
  }
  if (c == '}' && brace_for_bracket(r)) {
    repair_note(r, "wrong_bracket", at);
    r->i++;
    return true;
  }
  static const char openers[] = "][)(}{";
  if (repair_in(r, strchr(openers, c)[1])) {
    repair_note(r, "missing_bracket", at);
    return true;
  }
  repair_extra_bracket(r, at);
  return false;
}

/* Returns the first closer from i on that nothing opened after i, 0 if it is far away or
 * missing. */
static char next_closer(struct repair *r, size_t i) {
  size_t depth = 0, k = i, end = r->n - i > 4096 ? i + 4096 : r->n;
  char found = '\0';
  for (; k < end && !found; k++) {
    char c = r->t[k];
    if (c == '"') {
      for (k++; k < end && r->t[k] != '"'; k++)
        if (r->t[k] == '\\')
          k++;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if ((c == '}' || c == ']') && depth-- == 0) {
      found = c;
    }
  }
  repair_spend(r, (k < end ? k : end) - i);
  return found;
}

/* Holds the progress in reading an array. */
struct array_reading {
  json_t *array; /* owned by the caller */
  char kind;
  bool comma;  /* a comma was just read, or nothing yet */
  bool any;    /* an item was read */
  bool commas; /* some commas were read */
  bool closed;
};

/* Reads a comma, an ellipsis or a stray mark between members or items at r->i; false: there is
 * none. *comma: one was just read, or stands for one. */
static bool repair_between(struct repair *r, bool *comma) {
  char c = r->t[r->i];
  size_t len, at = r->i;
  if (c == ',') {
    if (*comma)
      repair_note(r, "extra_comma", at);
    *comma = true;
    r->i++;
  } else if (repair_ellipsis_at(r, at, &len)) {
    repair_note(r, "ellipsis", at);
    r->i += len;
    *comma = true;
  } else if (c == ':' || c == ';' || c == '=') {
    repair_note(r, "stray_text", at);
    r->i++;
  } else {
    return false;
  }
  return true;
}

/* Deals with a mark between items at r->i; returns true if it was one. */
static bool array_mark(struct repair *r, struct array_reading *a) {
  char c = r->t[r->i];
  size_t at = r->i;
  a->commas |= c == ',';
  if (c != ']' && c != '}' && c != ')')
    return repair_between(r, &a->comma);
  a->closed = array_closes(r, a->kind, c);
  if (a->closed && a->any && a->comma && a->kind == '[')
    repair_note(r, "extra_comma", at);
  return true;
}

static void repair_add(json_t *array, json_t *owned_value) {
  if (json_array_append_new(array, owned_value) != 0)
    BUG("out of memory");
}

/* Deals with "key": value at r->i, without braces; returns true if it was that. */
static bool array_member(struct repair *r, struct array_reading *a) {
  size_t at = r->i;
  if (a->kind != '[' || !repair_key_at(r, at))
    return false;
  if (a->any && r->depth > 1 && r->stack[r->depth - 2] == '{' && next_closer(r, at) == '}') {
    repair_note(r, "missing_bracket", at); /* the object around it continues */
    a->closed = true;
    return true;
  }
  repair_note(r, "implicit_object", at);
  json_t *object = jscan_made(json_object());
  repair_add(a->array, object);
  repair_members(r, object, true);
  a->any = true;
  a->comma = false;
  return true;
}

/* Returns whether v is a container that is empty though something was left out: nobody said so. */
static bool repair_emptied(const struct repair *r, const json_t *v) {
  return r->dropped && (json_is_object(v) || json_is_array(v)) &&
         json_object_size(v) + json_array_size(v) == 0;
}

/* Returns true if v, read from `at`, says nothing: a lone quote, or what repair_emptied says. */
static bool says_nothing(struct repair *r, const json_t *v, size_t at) {
  size_t len;
  if (json_is_string(v))
    return r->i >= r->n && json_string_length(v) == 0 &&
           repair_quote_at(r, at, &len) != QUOTE_NONE && r->n - at <= len;
  return r->i >= r->n && repair_emptied(r, v);
}

static void array_item(struct repair *r, struct array_reading *a) {
  size_t at = r->i, have = json_array_size(a->array);
  const json_t *last = have ? json_array_get(a->array, have - 1) : NULL;
  json_t *v = repair_read(r, REPAIR_ITEM);
  if (r->failed) {
    json_decref(v);
    return;
  }
  /* Words after a container, without a comma between, are talk and not an item. */
  if (v && !a->comma && json_is_string(v) && jscan_word_byte(r->t[at]) &&
      (json_is_object(last) || json_is_array(last))) {
    repair_note(r, "stray_text", at);
    json_decref(v);
    return;
  }
  if (v && says_nothing(r, v, at)) {
    json_decref(v);
    v = NULL;
  }
  if (v)
    repair_add(a->array, v);
  else if (r->i == at)
    r->i++;
  else
    repair_note(r, "dropped_item", at);
  a->any = a->any || v;
  a->comma = false;
}

static bool repair_push(struct repair *r, char kind) {
  if (r->depth >= JSCAN_DEPTH_MAX) {
    r->failed = true;
    return false;
  }
  r->stack[r->depth++] = kind;
  return true;
}

/* Moves to the next byte that means something. Returns false at the end; a fence that closes the
 * block is one, too. */
static bool repair_more(struct repair *r) {
  r->i = repair_junk(r, r->i, true);
  if (repair_fence_at(r, r->i))
    r->n = r->i;
  return r->i < r->n && !r->failed;
}

static void repair_cut_off(struct repair *r, const char *name) {
  repair_note(r, name, r->n);
  r->out->truncated = true;
}

/* kind: '[' '(' or 's' for a set in braces */
static json_t *repair_array(struct repair *r, char kind) {
  if (!repair_push(r, kind))
    return NULL;
  size_t open = r->i++;
  struct array_reading a = {.array = jscan_made(json_array()), .kind = kind, .comma = true};
  while (!a.closed && repair_more(r)) {
    if (array_mark(r, &a))
      continue;
    if (a.any && !a.comma)
      repair_note(r, "missing_comma", r->i);
    if (!array_member(r, &a))
      array_item(r, &a);
  }
  if (!a.closed && !r->failed)
    repair_cut_off(r, "missing_bracket");
  r->depth--;
  if (kind != '(' || r->failed)
    return a.array;
  repair_note(r, "tuple", open);
  if (json_array_size(a.array) != 1 || a.commas)
    return a.array;
  json_t *only = json_incref(json_array_get(a.array, 0)); /* (1) is 1, (1,) is a tuple */
  json_decref(a.array);
  return only;
}

/* --- objects, members and values --- */

/* Returns the length of the character at i if it can be part of a word, 0 if it is punctuation or
 * space. */
static size_t word_at(const struct repair *r, size_t i, size_t to) {
  uint32_t cp;
  char c = r->t[i];
  size_t len = utf8_decode(r->t + i, to - i, &cp);
  if (!(c & 0x80))
    return str_is_digit(c) || str_is_letter(c);
  if (len == 0)
    return 1;
  bool mark = cp < 0xC0 || (cp >= 0x2000 && cp < 0x2070) || (cp >= 0x3000 && cp < 0x3004) ||
              (cp >= 0x3008 && cp < 0x3012) || cp == 0xFEFF || (cp >= 0xFF00 && cp < 0xFF10) ||
              (cp >= 0xFF1A && cp < 0xFF21) || (cp >= 0xFF3B && cp < 0xFF41) ||
              (cp >= 0xFF5B && cp < 0xFF66);
  return mark ? 0 : len;
}

/* Returns true if a word in [from, to) is neither in the value nor reported as noise: this is the
 * last gate. */
static bool repair_lost(const struct repair *r, size_t from, size_t to) {
  size_t next = 0;
  for (size_t i = from; i < to;) {
    while (next < r->span_count && r->spans[next].to <= i)
      next++;
    if (next < r->span_count && r->spans[next].from <= i) {
      i = r->spans[next].to;
    } else if (r->t[i] == '\\' && i + 1 < to && jscan_one_of("ntr", r->t[i + 1])) {
      i += 2;
    } else if (word_at(r, i, to) > 0) {
      return true;
    } else {
      i++;
      while (i < to && utf8_is_tail(r->t[i]))
        i++;
    }
  }
  return false;
}

/* Sets a member. If a key is given twice with two values, the last one counts without a schema, and
 * this is reported. Where an answer is asked for, nobody knows which one is meant. */
static void repair_set(struct repair *r, json_t *object, struct str key, json_t *owned_value) {
  const json_t *before = json_object_getn(object, key.p, key.n);
  if (before != NULL && !json_same(before, owned_value)) {
    repair_note(r, "duplicate_key", r->i);
    r->failed = r->failed || r->said_only;
  }
  if (json_object_setn_new_nocheck(object, key.p, key.n, owned_value) != 0)
    BUG("out of memory");
  r->out->key_count++;
}

/* Takes r->buf itself: reading the value begins another. */
static struct buf take_key(struct repair *r) {
  struct buf key = r->buf;
  r->buf = (struct buf){0};
  return key;
}

static bool repair_read_key(struct repair *r) {
  size_t len, from = r->i;
  if (r->t[from] == '\\' || repair_quote_at(r, from, &len) != QUOTE_NONE)
    return repair_string(r, REPAIR_KEY);
  size_t end = from;
  while (end < r->n && end - from < REPAIR_KEY_MAX && !jscan_one_of(":=,{}[]\"'\n", r->t[end]))
    end++;
  size_t stop = end;
  while (stop > from && repair_space(r, stop - 1) == 1)
    stop--;
  if (end - from >= REPAIR_KEY_MAX || stop == from) {
    r->failed = true;
    return false;
  }
  repair_note(r, "unquoted_key", from);
  buf_clear(&r->buf);
  buf_append(&r->buf, r->t + from, stop - from);
  repair_keep(r, from, stop);
  r->i = end;
  if (end == stop && end < r->n && (r->t[end] == '"' || r->t[end] == '\''))
    r->i++;                                                 /* its first quote is missing */
  r->failed = r->failed || !utf8_valid(r->buf.p, r->buf.n); /* a key is text too */
  return !r->failed;
}

/* Reads the colon at r->i, or what stands for it. Returns false if there is none. */
static bool repair_colon(struct repair *r) {
  char c = r->t[r->i];
  if (c != ':' && c != '=')
    return false;
  if (c == '=')
    repair_note(r, "missing_colon", r->i);
  r->i++;
  if (c == '=' && r->i < r->n && r->t[r->i] == '>')
    r->i++;
  return true;
}

/* Returns true if the key has more than punctuation; otherwise the quotes are out of step. */
static bool is_key(struct str key) {
  bool word = key.n == 0 || memchr(key.p, '"', key.n) == NULL;
  for (size_t k = 0; k < key.n; k++)
    word = word || jscan_word_byte(key.p[k]);
  return word;
}

static void drop_member(struct repair *r, size_t at) {
  repair_note(r, "dropped_member", at);
  r->dropped = true;
}

/* Reads what comes behind a key, which began at `at`, into object. A member without a value is left
 * out where the text is cut, or a schema decides what may be missing; elsewhere the repair fails,
 * for the value would have to be made up. */
static void read_value_of(struct repair *r, json_t *object, struct str key, size_t at, bool bare) {
  size_t quote;
  bool here = repair_more(r);
  r->failed = r->failed || !is_key(key);
  if (r->failed)
    return;
  if (here && bare && repair_quote_at(r, r->i, &quote) != QUOTE_NONE && repair_key_at(r, r->i)) {
    repair_note(r, "stray_text", at); /* words before the next key */
    return;
  }
  bool colon = here && repair_colon(r);
  here = here && repair_more(r);
  if (r->failed)
    return;
  if (!here) {
    repair_cut_off(r, "dropped_member");
    r->dropped = true;
    return;
  }
  if (jscan_one_of(",}]", r->t[r->i])) {
    /* A word that is no number or literal is stray; those would be an item that lost its
     * array. */
    if (!colon && bare && key.n > 0 && !strict_literal(key) &&
        !jscan_one_of("-0123456789", key.p[0]))
      repair_note(r, "stray_text", at);
    else if (r->said_only)
      drop_member(r, r->i);
    else
      r->failed = true;
    return;
  }
  if (!colon)
    repair_note(r, "missing_colon", r->i);
  json_t *v = repair_read(r, REPAIR_MEMBER);
  bool emptied = v && r->said_only && r->i >= r->n && repair_emptied(r, v);
  if (r->failed || emptied)
    json_decref(v);
  if (r->failed)
    return;
  if (v && !emptied)
    repair_set(r, object, key, v);
  else if (r->i >= r->n)
    drop_member(r, at);
  else
    r->failed = true;
}

/* Reads one member at r->i into the object. */
static void repair_read_member(struct repair *r, json_t *object) {
  size_t at = r->i, quote;
  bool bare = r->t[at] != '\\' && repair_quote_at(r, at, &quote) == QUOTE_NONE;
  if (!repair_read_key(r))
    return;
  buf_auto_t key = take_key(r);
  read_value_of(r, object, (struct str){buf_c(&key), key.n}, at, bare);
}

/* Returns true if the brace opens a set, such as {1, 2} or {'a', 'b'}, by the first thing in it. */
static bool set_at(struct repair *r) {
  size_t len, i = repair_junk(r, r->i + 1, false);
  if (i >= r->n || repair_key_at(r, i))
    return false;
  if (str_is_digit(r->t[i])) {
    while (i < r->n && (str_is_digit(r->t[i]) || r->t[i] == '.'))
      i++;
  } else {
    enum repair_quote open = repair_quote_at(r, i, &len);
    if (open == QUOTE_NONE)
      return false;
    for (i += len; i < r->n; i++)
      if (repair_closes(open, repair_quote_at(r, i, &len)) || r->t[i] == '\n')
        break;
    repair_spend(r, i - r->i);
    if (i >= r->n || r->t[i] == '\n')
      return false;
    i += len;
  }
  i = repair_junk(r, i, false);
  return i < r->n && (r->t[i] == ',' || r->t[i] == '}');
}

/* Holds the progress in reading an object's members. */
struct members_reading {
  json_t *object;     /* borrowed */
  bool without_brace; /* it ends where the array around it does */
  bool after_member, comma, closed;
};

/* Reads the closer c at r->i. */
static void members_closer(struct repair *r, struct members_reading *m, char c) {
  size_t at = r->i;
  if (c == '}') {
    r->i++;
    m->closed = true;
    if (m->after_member && m->comma)
      repair_note(r, "extra_comma", at);
    if (m->without_brace)
      repair_note(r, "extra_bracket", at);
    return;
  }
  if (m->without_brace || repair_in(r, c == ']' ? '[' : '(')) {
    m->closed = true;
    if (!m->without_brace)
      repair_note(r, "missing_bracket", at);
    return;
  }
  r->i++;
  if (!repair_more(r) && !r->failed) { /* the last byte, so it was meant to be the brace */
    m->closed = true;
    repair_note(r, "wrong_bracket", at);
    return;
  }
  repair_extra_bracket(r, at);
}

/* Deals with a mark between members at r->i; returns true if it was one. */
static bool members_mark(struct repair *r, struct members_reading *m) {
  char c = r->t[r->i];
  if (c == '}' || c == ']' || c == ')')
    members_closer(r, m, c);
  else if (repair_between(r, &m->comma))
    return true;
  else if (c == '[' || c == '(')
    r->failed = true; /* no reading of this is near enough to be trusted */
  else
    return false;
  return true;
}

/* Reads an object at r->i where a member should be. */
static void members_object(struct repair *r, struct members_reading *m) {
  size_t at = r->i;
  if (m->after_member && (m->without_brace || (r->depth > 1 && r->stack[r->depth - 2] == '['))) {
    repair_note(r, "missing_bracket", at);
    m->closed = true; /* the next item has begun */
    return;
  }
  repair_note(r, "merged_object", at);
  json_t *inner = repair_read(r, REPAIR_MEMBER);
  const char *key;
  size_t n;
  json_t *member;
  if (json_is_object(inner))
    json_object_keylen_foreach((json_t *)inner, key, n, member)
      repair_set(r, m->object, (struct str){key, n}, json_incref(member));
  json_decref(inner);
  m->after_member = true;
  m->comma = false;
}

static void members_member(struct repair *r, struct members_reading *m) {
  size_t at = r->i;
  if (m->after_member && m->without_brace && !repair_key_at(r, at)) {
    m->closed = true; /* the array continues with items */
    return;
  }
  if (m->after_member && !m->comma)
    repair_note(r, "missing_comma", at);
  repair_read_member(r, m->object);
  m->after_member = true;
  m->comma = false;
  r->failed = r->failed || r->i == at;
}

/* Reads members up to the closing brace, which is consumed, or, with `without_brace`, up to what
 * closes the array around them. */
static void repair_members(struct repair *r, json_t *object, bool without_brace) {
  struct members_reading m = {.object = object, .without_brace = without_brace, .comma = true};
  while (!m.closed && repair_more(r)) {
    if (members_mark(r, &m))
      continue;
    if (r->t[r->i] == '{')
      members_object(r, &m);
    else
      members_member(r, &m);
  }
  if (!m.closed && !r->failed && !without_brace)
    repair_cut_off(r, "missing_bracket");
}

static json_t *read_object(struct repair *r) {
  if (set_at(r)) {
    repair_note(r, "set", r->i);
    return repair_array(r, 's');
  }
  if (!repair_push(r, '{'))
    return NULL;
  r->i++;
  json_t *object = jscan_made(json_object());
  repair_members(r, object, false);
  r->depth--;
  return object;
}

/* Reads strings joined by +, after the first one has been read into r->buf. */
static bool read_joined(struct repair *r, enum repair_place place) {
  for (;;) {
    size_t len, plus = repair_junk(r, r->i, false);
    if (plus >= r->n || r->t[plus] != '+')
      return !r->failed;
    (void)repair_junk(r, r->i, true);
    repair_note(r, "concatenation", plus);
    size_t next = repair_junk(r, plus + 1, true);
    r->i = next;
    if (next >= r->n || repair_quote_at(r, next, &len) == QUOTE_NONE)
      return !r->failed;
    struct buf first = take_key(r);
    bool ok = repair_string(r, place);
    if (ok) {
      buf_str(&first, buf_view(&r->buf));
      buf_deinit(&r->buf);
      r->buf = first;
    } else {
      buf_deinit(&first);
      return false;
    }
  }
}

/* NULL: no value here, or failed */
static json_t *repair_read(struct repair *r, enum repair_place place) {
  if (!repair_more(r))
    return NULL;
  char c = r->t[r->i];
  size_t len, at = r->i;
  switch (c) {
  case '{':
    return read_object(r);
  case '[':
    return repair_array(r, '[');
  case '(':
    return repair_array(r, '(');
  case ',':
  case ']':
  case '}':
  case ')':
  case ':':
    return NULL;
  default:
    break;
  }
  /* Python has prefixes: u"x", b'x'. */
  if (jscan_one_of("urbfURBF", c) && at + 2 < r->n && jscan_one_of("\"'", r->t[at + 1]) &&
      !jscan_one_of(",:]}", r->t[at + 2])) {
    repair_note(r, "quote_style", at);
    repair_keep(r, at, at + 1);
    c = r->t[at = ++r->i];
  }
  bool escaped = c == '\\' && repair_quote_at(r, at + 1, &len) != QUOTE_NONE;
  if (escaped || repair_quote_at(r, at, &len) != QUOTE_NONE) {
    if (!repair_string(r, place) || !read_joined(r, place))
      return NULL;
    return jscan_made(json_stringn_nocheck(buf_c(&r->buf), r->buf.n));
  }
  if (str_is_digit(c) || c == '-' || c == '+' || c == '.') {
    json_t *v = repair_number(r, place);
    if (v || r->failed || r->i != at)
      return v;
  }
  return repair_bare(r, place);
}

/* Reads values separated by commas or lines, up to the end: {"a":1}\n{"a":2} or 1, 2, 3. */
static json_t *read_sequence(struct repair *r) {
  json_t *array = jscan_made(json_array());
  while (repair_more(r)) {
    size_t at = r->i;
    if (r->t[at] == ',') {
      r->i++;
      continue;
    }
    json_t *v = repair_read(r, REPAIR_ITEM);
    if (!v || r->failed) {
      json_decref(v);
      r->failed = true;
      break;
    }
    if (!json_is_object(v) && !json_is_array(v) &&
        (jscan_word_byte(r->t[at]) && !json_is_number(v)))
      r->failed = true; /* words in a row are prose */
    repair_add(array, v);
  }
  repair_note(r, "sequence", 0);
  return array;
}

static bool strict_already(const struct repair_job *job, struct repair_result *out) {
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r = {0};
  jscan_init(&js, job->text, job->limit);
  bool ok = jscan_value(&js, job->from, &r) == JSCAN_OK && !r.duplicate_key;
  if (!ok)
    json_decref(r.value);
  else
    *out = (struct repair_result){r.value, r.end, .key_count = json_object_size(r.value)};
  return ok;
}

bool repair_value(const struct repair_job *job, size_t work_max, struct repair_result *out) {
  assert(job->from <= job->limit);
  *out = (struct repair_result){0};
  if (job->copy && strict_already(job, out))
    return true;
  struct repair r = {.t = job->text,
                     .n = job->limit,
                     .i = job->from,
                     .out = out,
                     .zeros = job->zeros,
                     .cut_at = job->last ? job->limit : SIZE_MAX,
                     .said_only = job->said_only};
  r.work_left = work_max;
  json_t *v = NULL;
  if (job->sequence) {
    v = read_sequence(&r);
  } else if (job->members) {
    repair_note(&r, "missing_bracket", job->from);
    r.stack[r.depth++] = '{';
    v = jscan_made(json_object());
    repair_members(&r, v, false);
  } else {
    v = repair_read(&r, REPAIR_ITEM);
  }
  buf_deinit(&r.buf);
  if (v != NULL && !r.failed)
    r.failed = repair_lost(&r, job->from, r.i < r.n ? r.i : r.n);
  free(r.spans);
  out->work_used = work_max - r.work_left;
  out->end = r.i < r.n ? r.i : r.n;
  if (!v || r.failed || (repair_emptied(&r, v) && (r.said_only || !r.unfinished))) {
    json_decref(v);
    return false;
  }
  out->value = v;
  return true;
}

void repair_result_deinit(struct repair_result *r) {
  json_decref(r->value);
  free(r->repairs);
  *r = (struct repair_result){0};
}
