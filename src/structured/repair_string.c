#include "repair_internal.h"

#include <string.h>

/* no quote ends it: the lost quote stood before a line that starts something new, or before the
 * closers that end the text, or the text itself is cut off */
static size_t lost_end(struct repair *r, const struct repair_reading *s) {
  size_t end = r->n;
  const char *t = r->t;
  for (size_t k = s->start; k < end; k++) {
    if (t[k] != '\n')
      continue;
    size_t next = repair_junk(r, k, false);
    if (next >= r->n)
      break;
    if (repair_fence_at(r, next)) {
      r->n = end = k;
      break;
    }
    char c = t[next];
    size_t len;
    bool closer = (c == '}' || c == ']') && repair_in(r, c == '}' ? '{' : '[') &&
                  repair_closer_fits(r, next + 1);
    if (closer || (s->place == REPAIR_MEMBER && repair_key_at(r, next)) ||
        (s->place == REPAIR_ITEM && repair_quote_at(r, next, &len) == s->open)) {
      while (k > s->start && (repair_space(r, k - 1) == 1 || t[k - 1] == ','))
        k--;
      repair_note(r, "missing_quote", k);
      return k;
    }
    k = next - 1;
  }
  size_t cut = end, depth = r->depth;
  while (cut > s->start && (repair_space(r, cut - 1) == 1 || t[cut - 1] == '`'))
    cut--;
  /* count closers backwards: as many as containers are open, innermost first */
  size_t first = cut;
  while (first > s->start &&
         (t[first - 1] == '}' || t[first - 1] == ']' || repair_space(r, first - 1) == 1))
    first--;
  for (size_t k = first; k < cut && depth; k++) {
    if (repair_space(r, k) == 1)
      continue;
    char kind = r->stack[depth - 1];
    if ((t[k] == '}') != (kind == '{' || kind == 's'))
      break;
    depth--;
  }
  if (depth < r->depth) {
    while (first > s->start && repair_space(r, first - 1) == 1)
      first--;
    if (first > s->start + 1 && t[first - 1] == '+' && repair_space(r, first - 2) == 1)
      first -= 2; /* the operator of a concatenation that has no right side */
    /* the next item or member is on the same line; a comma of prose has a space behind it */
    for (size_t k = s->start; k < first; k++) {
      if (t[k] != ',')
        continue;
      if (s->place == REPAIR_ITEM
              ? k > s->start && !repair_space(r, k + 1)
              : s->place == REPAIR_MEMBER && repair_key_at(r, repair_junk(r, k + 1, false))) {
        first = k;
        break;
      }
    }
    repair_note(r, "missing_quote", first);
    return first;
  }
  r->out->truncated = true;
  repair_note(r, "truncated", end);
  return end;
}

/* "" and """ as delimiters; returns their length or 1 */
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

bool repair_string(struct repair *r, enum repair_place place) {
  const char *t = r->t;
  size_t len;
  r->buf_len = 0;
  if (t[r->i] == '\\') {
    repair_note(r, "bad_escape", r->i);
    r->i++;
  }
  struct repair_reading s = {.place = place, .open_at = r->i, .colon = SIZE_MAX};
  s.open = repair_quote_at(r, r->i, &len);
  if (s.open != QUOTE_DOUBLE)
    repair_note(r, "quote_style", r->i);
  if (s.open <= QUOTE_SINGLE) {
    size_t run = quote_run(r, r->i);
    if (run > 1) {
      repair_note(r, "quote_style", r->i);
      for (size_t k = r->i + run; k + run <= r->n; k++)
        if (memcmp(t + k, t + r->i, run) == 0) {
          repair_decode(r, r->i + run, k);
          repair_spend(r, k - r->i);
          r->i = k + run;
          return !r->oom && !r->failed;
        }
      repair_spend(r, r->n - r->i); /* it was looked for in vain */
    }
  }
  s.start = r->i + len;
  size_t end = SIZE_MAX, after = SIZE_MAX;      /* of the content; where to go on */
  size_t perhaps = SIZE_MAX, perhaps_after = 0; /* the last quote that might end it */
  size_t escaped_end = SIZE_MAX;                /* \" that looks like the end: C:\dir\" */
  size_t i = s.start;
  while (i < r->n && end == SIZE_MAX && repair_spend(r, 1)) {
    char c = t[i];
    enum repair_quote quote;
    if (c == '\\') {
      if (i + 2 < r->n && escaped_end == SIZE_MAX &&
          repair_closes(s.open, repair_quote_at(r, i + 1, &len))) {
        size_t next = repair_junk(r, i + 1 + len, false);
        if (next < r->n && (t[next] == ':' ? place == REPAIR_KEY
                                           : t[next] == '}' && repair_closer_fits(r, next + 1)))
          escaped_end = i;
      }
      i += 2;
      continue;
    }
    if (c == ':' && s.colon == SIZE_MAX)
      s.colon = i;
    if (c == '{' || c == '[') {
      size_t next = i + 1;
      while (next < r->n && repair_space(r, next) == 1)
        next++;
      if (next < r->n && t[next] == '"')
        s.inner_brackets++;
    } else if ((c == '}' || c == ']') && s.inner_brackets) {
      s.inner_brackets--;
    }
    quote = repair_quote_at(r, i, &len);
    if (quote == QUOTE_NONE || !repair_closes(s.open, quote)) {
      i++;
      continue;
    }
    size_t q_after = i + len, next = repair_junk(r, q_after, false), missed = 0;
    enum repair_verdict v = place == REPAIR_KEY
                                ? repair_judge_key(r, &s, i, next, &missed)
                                : repair_judge_value(r, &s, i, q_after, next, &missed);
    switch (v) {
    case REPAIR_END:
      end = i;
      after = q_after;
      break;
    case REPAIR_MISSED:
      repair_note(r, "missing_quote", missed);
      end = after = missed;
      break;
    case REPAIR_PERHAPS:
      perhaps = i;
      perhaps_after = q_after;
      s.inner_quotes++;
      break;
    case REPAIR_INNER:
      s.inner_quotes++;
      break;
    }
    i = q_after;
  }
  if (end == SIZE_MAX && perhaps != SIZE_MAX) {
    end = perhaps;
    after = perhaps_after;
  } else if (end == SIZE_MAX && escaped_end != SIZE_MAX) {
    repair_note(r, "bad_escape", escaped_end);
    repair_decode(r, s.start, escaped_end);
    repair_append(r, "\\", 1);
    r->i = escaped_end + 2;
    return !r->oom && !r->failed;
  } else if (end == SIZE_MAX && place == REPAIR_KEY && s.colon != SIZE_MAX) {
    repair_note(r, "missing_quote", s.colon);
    end = after = s.colon;
  } else if (end == SIZE_MAX) {
    end = after = lost_end(r, &s);
  }
  if (s.inner_quotes == 1 && repair_closes(s.open, repair_quote_at(r, s.start, &len)) &&
      after > end) {
    repair_note(r, "extra_quote", s.start); /* ""value": the opening quote stands there twice */
    s.start += len;
    s.inner_quotes = 0;
  }
  if (after > end) { /* a line break before the closing quote is layout */
    size_t stop = end;
    while (stop > s.start && repair_space(r, stop - 1) == 1)
      stop--;
    if (repair_line_break(r, stop, end)) {
      repair_note(r, "control_character", stop);
      end = stop;
    }
  }
  if (s.inner_quotes && end > s.start) {
    for (size_t k = s.start; k < end; k++)
      if (t[k] == '\\')
        k++;
      else if (repair_closes(s.open, repair_quote_at(r, k, &len)))
        repair_note(r, "unescaped_quote", k);
  }
  repair_decode(r, s.start, end);
  r->i = after;
  return !r->oom && !r->failed;
}
