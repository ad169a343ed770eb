#include "repair_internal.h"

#include <string.h>

bool repair_append(struct repair *r, const char *p, size_t len) {
  if (len > SIZE_MAX / 4 || r->buf_len > SIZE_MAX / 4) {
    r->failed = true;
    return false;
  }
  if (r->buf_len + len + 1 > r->buf_size) {
    size_t size = r->buf_size ? r->buf_size : 128;
    while (size < r->buf_len + len + 1)
      size *= 2;
    char *grown = jscan_realloc(r->buf, size);
    if (!grown) {
      r->oom = true;
      return false;
    }
    r->buf = grown;
    r->buf_size = size;
  }
  if (len)
    memcpy(r->buf + r->buf_len, p, len);
  r->buf_len += len;
  r->buf[r->buf_len] = '\0';
  return true;
}

static int hex_digits(const char *s, size_t count) {
  int v = 0;
  for (size_t k = 0; k < count; k++) {
    char c = s[k];
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : -1;
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* the escape after the backslash at i, which ends before `end`; returns the offset after it */
static size_t decode_escape(struct repair *r, size_t i, size_t end) {
  static const char from[] = "\"\\/bfnrt'`", to[] = "\"\\/\b\f\n\r\t'`";
  const char *t = r->t;
  char out[4];
  if (i + 1 >= end) { /* cut in the middle of an escape */
    repair_note(r, "bad_escape", i);
    return end;
  }
  char c = t[i + 1];
  const char *at = c ? strchr(from, c) : NULL;
  if (at) {
    if (c == '\'' || c == '`')
      repair_note(r, "bad_escape", i);
    repair_append(r, &to[at - from], 1);
    return i + 2;
  }
  size_t digits = c == 'u' ? 4 : c == 'x' ? 2 : 0;
  if (digits) {
    int v = end - i - 2 >= digits ? hex_digits(t + i + 2, digits) : -1;
    if (v >= 0) {
      unsigned cp = (unsigned)v;
      size_t next = i + 2 + digits;
      if (cp >= 0xD800 && cp <= 0xDBFF && end - next >= 6 && t[next] == '\\' &&
          t[next + 1] == 'u') {
        int low = hex_digits(t + next + 2, 4);
        if (low >= 0xDC00 && low <= 0xDFFF) {
          cp = 0x10000 + ((cp - 0xD800) << 10) + ((unsigned)low - 0xDC00);
          next += 6;
        }
      }
      repair_append(r, out, jscan_put_utf8(out, cp));
      if (c == 'x')
        repair_note(r, "bad_escape", i);
      return next;
    }
    repair_note(r, "bad_escape", i);
    size_t k = i + 2; /* cut off by the end of the text? then it says nothing */
    while (k < end && hex_digits(t + k, 1) >= 0)
      k++;
    if (k == end)
      return end;
  }
  repair_note(r, "bad_escape", i);
  if (c == '\n' || c == '\r') /* a line continued in the way of JavaScript: keep the line break */
    return i + 1;
  repair_append(r, "\\", 1);
  return i + 1;
}

void repair_decode(struct repair *r, size_t i, size_t end) {
  bool control = false;
  repair_spend(r, end - i);
  while (i < end && !r->oom && !r->failed) {
    unsigned char c = (unsigned char)r->t[i];
    size_t k = i;
    while (k < end && (unsigned char)r->t[k] >= 0x20 && (unsigned char)r->t[k] < 0x80 &&
           r->t[k] != '\\')
      k++;
    if (k > i) {
      repair_append(r, r->t + i, k - i);
      i = k;
    } else if (c == '\\') {
      i = decode_escape(r, i, end);
    } else if (c < 0x20) {
      if (!control)
        repair_note(r, "control_character", i);
      control = true;
      repair_append(r, r->t + i++, 1);
    } else {
      size_t len = jscan_utf8(r->t, end, i);
      if (!len) {
        repair_note(r, "bad_utf8", i);
        repair_append(r, "\xEF\xBF\xBD", 3);
      } else {
        repair_append(r, r->t + i, len);
      }
      i += len ? len : 1;
    }
  }
}
