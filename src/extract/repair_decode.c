/* Decodes the content of a string, good escapes and bad ones. */
#include "base/str.h"
#include "base/utf8.h"
#include "extract/repair_internal.h"

#include <string.h>

static int repair_hex_digits(const char *s, size_t count) {
  int v = 0;
  for (size_t k = 0; k < count; k++) {
    int d = str_hex_digit(s[k]);
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* Decodes the escape after the backslash at i, which ends before `end`. Returns the offset after
 * it. */
static size_t decode_escape(struct repair *r, size_t i, size_t end) {
  static const char from[] = "\"\\/bfnrt'`", to[] = "\"\\/\b\f\n\r\t'`";
  const char *t = r->t;
  char out[UTF8_BYTES_MAX];
  if (i + 1 >= end) { /* it was cut within an escape */
    repair_note(r, "bad_escape", i);
    return end;
  }
  char c = t[i + 1];
  const char *at = c ? strchr(from, c) : NULL;
  if (at) {
    if (c == '\'' || c == '`')
      repair_note(r, "bad_escape", i);
    buf_append(&r->buf, &to[at - from], 1);
    return i + 2;
  }
  size_t digits = c == 'u' ? 4 : 0;
  if (c == 'x')
    digits = 2;
  if (digits) {
    int v = end - i - 2 >= digits ? repair_hex_digits(t + i + 2, digits) : -1;
    if (v >= 0) {
      uint32_t cp = (uint32_t)v;
      size_t next = i + 2 + digits;
      if (end - next >= 6 && t[next] == '\\' && t[next + 1] == 'u') {
        int low = repair_hex_digits(t + next + 2, 4);
        if (low >= 0 && utf8_join(cp, (uint32_t)low, &cp))
          next += 6;
      }
      buf_append(&r->buf, out, utf8_put(out, cp));
      if (c == 'x')
        repair_note(r, "bad_escape", i);
      return next;
    }
    repair_note(r, "bad_escape", i);
    size_t k = i + 2; /* cut off by the end of the text? then it says nothing */
    while (k < end && repair_hex_digits(t + k, 1) >= 0)
      k++;
    if (k == end)
      return end;
  }
  repair_note(r, "bad_escape", i);
  if (c == '\n' || c == '\r') /* a line continued in the way of JavaScript: keep the line break */
    return i + 1;
  buf_append(&r->buf, LIT("\\"));
  return i + 1;
}

/* Returns false for a pattern or a formula, which keeps its backslashes. */
static bool no_letter_escapes(const struct repair *r, size_t i, size_t end) {
  for (; i + 1 < end; i++) {
    if (r->t[i] == '$')
      return false;
    if (r->t[i] != '\\')
      continue;
    char c = r->t[++i];
    if (((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !jscan_one_of("bfnrtu", c))
      return false;
  }
  return true;
}

void repair_decode(struct repair *r, size_t i, size_t end) {
  bool control = false, plain = no_letter_escapes(r, i, end);
  repair_keep(r, i, end);
  repair_spend(r, end - i);
  while (i < end && !r->failed) {
    unsigned char c = (unsigned char)r->t[i];
    size_t k = i;
    while (k < end && (unsigned char)r->t[k] >= 0x20 && (unsigned char)r->t[k] < 0x80 &&
           r->t[k] != '\\')
      k++;
    if (k > i) {
      buf_append(&r->buf, r->t + i, k - i);
      i = k;
    } else if (c == '\\') {
      if (plain && i + 1 < end && jscan_one_of("_*#~", r->t[i + 1])) {
        repair_note(r, "bad_escape", i++); /* Markdown's */
        buf_putc(&r->buf, r->t[i++]);
      } else {
        i = decode_escape(r, i, end);
      }
    } else if (c < 0x20) {
      if (!control)
        repair_note(r, "control_character", i);
      control = true;
      buf_append(&r->buf, r->t + i++, 1);
    } else {
      size_t len = utf8_decode(r->t + i, end - i, NULL);
      if (!len) {
        repair_note(r, "bad_utf8", i);
        buf_append(&r->buf, LIT("\xEF\xBF\xBD"));
      } else {
        buf_append(&r->buf, r->t + i, len);
      }
      i += len ? len : 1;
    }
  }
}
