/* Reads a string whose quotes cannot be trusted. */
#include "extract/repair_internal.h"

#include <string.h>

/* Returns the offset before the white space, and the `stop` characters besides, that end at i. */
static size_t string_back(const struct repair *r, size_t start, size_t i, char stop) {
  while (i > start && (repair_space(r, i - 1) == 1 || r->t[i - 1] == stop))
    i--;
  return i;
}

/* Returns where the string ends if its quote was lost before a line that starts something new;
 * SIZE_MAX if there is no such line. */
static size_t lost_before_line(struct repair *r, const struct repair_reading *s) {
  for (size_t k = s->start; k < r->n; k++) {
    if (r->t[k] != '\n')
      continue;
    size_t len, next = repair_junk(r, k, false);
    if (next >= r->n)
      break;
    if (repair_fence_at(r, next)) {
      r->n = k;
      break;
    }
    char c = r->t[next];
    bool closer = (c == '}' || c == ']') && repair_in(r, c == '}' ? '{' : '[') &&
                  repair_closer_fits(r, next + 1);
    if (closer || (s->place == REPAIR_MEMBER && repair_key_at(r, next)) ||
        (s->place == REPAIR_ITEM && repair_quote_at(r, next, &len) == s->open))
      return string_back(r, s->start, k, ',');
    k = next - 1;
  }
  return SIZE_MAX;
}

/* Returns true if the closers in [from, to) close containers that are open, innermost first. */
static bool closes_open(const struct repair *r, size_t from, size_t to) {
  size_t depth = r->depth;
  for (size_t k = from; k < to && depth; k++) {
    if (repair_space(r, k) == 1)
      continue;
    char kind = r->stack[depth - 1];
    if ((r->t[k] == '}') != (kind == '{' || kind == 's'))
      break;
    depth--;
  }
  return depth < r->depth;
}

/* Returns the comma before `end` at which the next item or member starts on the same line, or `end`
 * itself. A comma of prose has a space after it. */
static size_t lost_before_comma(struct repair *r, const struct repair_reading *s, size_t end) {
  for (size_t k = s->start; k < end; k++) {
    if (r->t[k] != ',')
      continue;
    bool next = s->place == REPAIR_MEMBER && repair_key_at(r, repair_junk(r, k + 1, false));
    if (s->place == REPAIR_ITEM)
      next = k > s->start && !repair_space(r, k + 1);
    if (next)
      return k;
  }
  return end;
}

/* Returns where a string ends that no quote ends: the lost quote stood before a line that starts
 * something new, or before the closers that end the text, or the text itself is cut off. */
static size_t lost_end(struct repair *r, const struct repair_reading *s) {
  size_t line = lost_before_line(r, s);
  if (line != SIZE_MAX) {
    repair_note(r, "missing_quote", line);
    return line;
  }
  size_t cut = string_back(r, s->start, r->n, '`'), first = cut;
  while (first > s->start &&
         (jscan_one_of("}]", r->t[first - 1]) || repair_space(r, first - 1) == 1))
    first--;
  if (!closes_open(r, first, cut)) {
    r->out->truncated = true;
    repair_note(r, "truncated", r->n);
    return r->n;
  }
  first = string_back(r, s->start, first, ' ');
  if (first > s->start + 1 && r->t[first - 1] == '+' && repair_space(r, first - 2) == 1)
    first -= 2; /* the operator of a concatenation that has no right side */
  first = lost_before_comma(r, s, first);
  repair_note(r, "missing_quote", first);
  return first;
}

/* Returns the length of "" or """ as a delimiter at i, 1 if neither is there. */
static size_t quote_run(const struct repair *r, size_t i) {
  size_t k = i;
  while (k < r->n && k - i < 3 && r->t[k] == r->t[i])
    k++;
  if (k - i == 3)
    return 3;
  if (k - i == 2 && k < r->n && (repair_word_byte(r->t[k]))) {
    for (size_t j = k; j + 1 < r->n && j - k < REPAIR_KEY_MAX && r->t[j] != '\n'; j++)
      if (r->t[j] == r->t[i] && r->t[j + 1] == r->t[i])
        return 2;
  }
  return 1;
}

/* Returns true if the quote at k, the first inside a string, closes something that nothing opened.
 * Inches and such stand after a digit. */
static bool closes_only(const struct repair *r, const struct repair_reading *s, size_t k,
                        size_t len) {
  char before = k > s->start ? r->t[k - 1] : ' ', after = k + len < r->n ? r->t[k + len] : ' ';
  bool digit = before >= '0' && before <= '9';
  for (size_t i = s->start, n; i < k; i++)
    if (repair_quote_at(r, i, &n) == QUOTE_CURLY2)
      return false; /* it closes that one */
  if (k == s->start)
    return jscan_one_of(",:]}", after); /* an empty string */
  if (jscan_one_of(" \t\r\n([{<=:,;'\"`", before))
    return false;
  return jscan_one_of(",:;]}", after) || (!digit && repair_space(r, k + len) > 0);
}

/* Notes the quotes that are content. If the first of them can only be a closing quote, the string
 * ended there and what follows was swallowed: better no repair. */
static void note_inner_quotes(struct repair *r, const struct repair_reading *s, size_t end) {
  bool first = true;
  for (size_t k = s->start, len; k < end; k++) {
    if (r->t[k] == '\\') {
      k++;
    } else if (repair_closes(s->open, repair_quote_at(r, k, &len))) {
      repair_note(r, "unescaped_quote", k);
      r->failed = r->failed || (first && s->open == QUOTE_DOUBLE && closes_only(r, s, k, len));
      first = false;
    }
  }
}

/* Returns true if a string without a trustworthy end has swallowed what follows it. Then it holds a
 * closer that it did not open, or, where its quote is lost, a comma and the start of another
 * value. */
static bool repair_swallowed(const char *t, size_t n, bool lost) {
  if (repair_unbalanced(t, n))
    return true;
  for (size_t i = 0; lost && i < n; i++) {
    if (t[i] != ',')
      continue;
    size_t k = i + 1;
    while (k < n && jscan_one_of(" \t\r\n", t[k]))
      k++;
    if (k < n &&
        (jscan_one_of("\"{[", t[k]) || (t[k] >= '0' && t[k] <= '9') ||
         (t[k] == '-' && k + 1 < n && t[k + 1] >= '0' && t[k + 1] <= '9') ||
         (n - k >= 4 && (memcmp(t + k, LIT("true")) == 0 || memcmp(t + k, LIT("null")) == 0)) ||
         (n - k >= 5 && memcmp(t + k, LIT("false")) == 0)))
      return true;
  }
  return false;
}

/* Reads a string in two or three quotes at r->i, with as many at its end. Returns false if it is
 * none. */
static bool read_run(struct repair *r) {
  size_t run = quote_run(r, r->i);
  if (run < 2)
    return false;
  repair_note(r, "quote_style", r->i);
  for (size_t k = r->i + run; k + run <= r->n; k++)
    if (memcmp(r->t + k, r->t + r->i, run) == 0) {
      repair_decode(r, r->i + run, k);
      repair_spend(r, k - r->i);
      r->i = k + run;
      return true;
    }
  repair_spend(r, r->n - r->i); /* it was looked for in vain */
  return false;
}

/* Looks at the backslash at i: C:\dir\" may be the end of a string after all. */
static void look_at_escape(struct repair *r, struct repair_reading *s, size_t i) {
  size_t len;
  if (i + 2 >= r->n || s->escaped_end != SIZE_MAX ||
      !repair_closes(s->open, repair_quote_at(r, i + 1, &len)))
    return;
  size_t next = repair_junk(r, i + 1 + len, false);
  if (next < r->n && ((r->t[next] == ':' && s->place == REPAIR_KEY) ||
                      (r->t[next] == '}' && repair_closer_fits(r, next + 1))))
    s->escaped_end = i;
}

static void count_bracket(const struct repair *r, struct repair_reading *s, size_t i) {
  if (r->t[i] == '{' || r->t[i] == '[') {
    size_t next = i + 1;
    while (next < r->n && repair_space(r, next) == 1)
      next++;
    s->inner_brackets += next < r->n && r->t[next] == '"';
  } else if ((r->t[i] == '}' || r->t[i] == ']') && s->inner_brackets) {
    s->inner_brackets--;
  }
}

/* Looks at the quote at i, of `len` bytes, which could close the string. */
static void look_at_quote(struct repair *r, struct repair_reading *s, size_t i, size_t len) {
  size_t next = repair_junk(r, i + len, false), missed = 0;
  enum repair_verdict v;
  if (s->place == REPAIR_KEY)
    v = repair_judge_key(r, s, i, next, &missed);
  else
    v = repair_judge_value(r, s, i, i + len, next, &missed);
  switch (v) {
  case REPAIR_END:
    s->end = i;
    s->after = i + len;
    break;
  case REPAIR_MISSED:
    repair_note(r, "missing_quote", missed);
    s->end = s->after = missed;
    break;
  case REPAIR_PERHAPS:
    s->perhaps = i;
    s->perhaps_after = i + len;
    s->inner_quotes++;
    break;
  case REPAIR_INNER:
    s->inner_quotes++;
    break;
  }
}

/* Looks for the end of the string; s->end stays SIZE_MAX when no quote is surely its end. */
static void find_end(struct repair *r, struct repair_reading *s) {
  size_t i = s->start, len;
  while (i < r->n && s->end == SIZE_MAX && repair_spend(r, 1)) {
    if (r->t[i] == '\\') {
      look_at_escape(r, s, i);
      i += 2;
      continue;
    }
    if (r->t[i] == ':' && s->colon == SIZE_MAX)
      s->colon = i;
    count_bracket(r, s, i);
    enum repair_quote quote = repair_quote_at(r, i, &len);
    if (quote != QUOTE_NONE && repair_closes(s->open, quote)) {
      look_at_quote(r, s, i, len);
      i += len;
    } else {
      i++;
    }
  }
}

/* Settles the end when no quote was surely it. Returns false if it is the backslash before one:
 * then all is read. */
static bool settle_end(struct repair *r, struct repair_reading *s) {
  if (s->perhaps != SIZE_MAX) {
    s->end = s->perhaps;
    s->after = s->perhaps_after;
  } else if (s->escaped_end != SIZE_MAX) {
    repair_note(r, "bad_escape", s->escaped_end);
    repair_decode(r, s->start, s->escaped_end);
    buf_putc(&r->buf, '\\');
    r->i = s->escaped_end + 2;
    return false;
  } else if (s->place == REPAIR_KEY && s->colon != SIZE_MAX) {
    repair_note(r, "missing_quote", s->colon);
    s->end = s->after = s->colon;
  } else {
    s->end = s->after = lost_end(r, s);
  }
  return true;
}

/* Trims a line break before the closing quote of a key: it is layout. */
static void trim_key(struct repair *r, struct repair_reading *s) {
  size_t stop = string_back(r, s->start, s->end, ' ');
  if (repair_line_break(r, stop, s->end)) {
    repair_note(r, "control_character", stop);
    s->end = stop;
  }
}

bool repair_string(struct repair *r, enum repair_place place) {
  size_t len;
  buf_clear(&r->buf);
  if (r->t[r->i] == '\\') {
    repair_note(r, "bad_escape", r->i);
    r->i++;
  }
  struct repair_reading s = {.place = place,
                             .open_at = r->i,
                             .colon = SIZE_MAX,
                             .end = SIZE_MAX,
                             .perhaps = SIZE_MAX,
                             .escaped_end = SIZE_MAX};
  s.open = repair_quote_at(r, r->i, &len);
  if (s.open != QUOTE_DOUBLE)
    repair_note(r, "quote_style", r->i);
  if (s.open <= QUOTE_SINGLE && read_run(r))
    return !r->failed;
  s.start = r->i + len;
  find_end(r, &s);
  if (s.end == SIZE_MAX && !settle_end(r, &s))
    return !r->failed;
  if (s.inner_quotes == 1 && repair_closes(s.open, repair_quote_at(r, s.start, &len)) &&
      s.after > s.end) {
    repair_note(r, "extra_quote", s.start); /* ""value": the opening quote stands there twice */
    s.start += len;
    s.inner_quotes = 0;
  }
  if (s.after > s.end && place == REPAIR_KEY)
    trim_key(r, &s);
  if (s.inner_quotes)
    note_inner_quotes(r, &s, s.end);
  bool lost = s.after == s.end && !r->out->truncated;
  if ((s.inner_quotes || lost) && repair_swallowed(r->t + s.start, s.end - s.start, lost))
    r->failed = true;
  repair_decode(r, s.start, s.end);
  r->i = s.after;
  return !r->failed;
}
