#include "format/json_write.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool plain(unsigned char c) {
  return c >= 0x20 && c != '"' && c != '\\';
}

/* Is one of the eight bytes below 0x20, a quote or a backslash? (The usual word tricks: a byte less
 * than n; a byte equal to x. May say yes too often for bytes from 0x80, which is only slower.) */
static bool needs_escape(uint64_t word) {
  const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
  uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
  return (((word - ones * 0x20) | (quote - ones) | (slash - ones)) & ~word & highs) != 0;
}

static void write_string(const char *p, size_t n, struct buf *out) {
  size_t from = 0;
  buf_reserve(out, n + 2);
  buf_putc(out, '"');
  for (size_t i = 0; i < n; i++) {
    uint64_t word;
    while (i + sizeof word <= n) { /* eight bytes at a time that need no escape */
      memcpy(&word, p + i, sizeof word);
      if (needs_escape(word))
        break;
      i += sizeof word;
    }
    if (i == n)
      break;
    unsigned char c = (unsigned char)p[i];
    if (plain(c))
      continue;
    buf_append(out, p + from, i - from);
    from = i + 1;
    const char *short_form = c == '"'    ? "\\\""
                             : c == '\\' ? "\\\\"
                             : c == '\n' ? "\\n"
                             : c == '\t' ? "\\t"
                             : c == '\r' ? "\\r"
                             : c == '\b' ? "\\b"
                             : c == '\f' ? "\\f"
                                         : NULL;
    if (short_form)
      buf_append(out, short_form, 2);
    else
      buf_printf(out, "\\u%04X", c);
  }
  buf_append(out, p + from, n - from);
  buf_putc(out, '"');
}

static void write_integer(json_int_t value, struct buf *out) {
  char digits[24];
  size_t at = sizeof digits;
  unsigned long long rest =
      value < 0 ? 0ull - (unsigned long long)value : (unsigned long long)value;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (value < 0)
    digits[--at] = '-';
  buf_append(out, digits + at, sizeof digits - at);
}

static void write_real(const json_t *value, struct buf *out) {
  char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY); /* its rounding and its form */
  if (text == NULL)
    BUG("a real cannot be written");
  buf_puts(out, text);
  free(text);
}

void json_write(const json_t *value, struct buf *out) {
  size_t i;
  json_t *item;
  const char *key;
  size_t key_n;
  bool first = true;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    buf_putc(out, '{');
    json_object_keylen_foreach((json_t *)value, key, key_n, item) {
      if (!first)
        buf_putc(out, ',');
      first = false;
      write_string(key, key_n, out);
      buf_putc(out, ':');
      json_write(item, out);
    }
    buf_putc(out, '}');
    break;
  case JSON_ARRAY:
    buf_putc(out, '[');
    json_array_foreach(value, i, item) {
      if (i > 0)
        buf_putc(out, ',');
      json_write(item, out);
    }
    buf_putc(out, ']');
    break;
  case JSON_STRING:
    write_string(json_string_value(value), json_string_length(value), out);
    break;
  case JSON_INTEGER:
    write_integer(json_integer_value(value), out);
    break;
  case JSON_REAL:
    write_real(value, out);
    break;
  case JSON_TRUE:
    buf_puts(out, "true");
    break;
  case JSON_FALSE:
    buf_puts(out, "false");
    break;
  case JSON_NULL:
    buf_puts(out, "null");
    break;
  }
}
