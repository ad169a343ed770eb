#include "format/json_write.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;

/* How many of the eight bytes, from the first in memory on, are ASCII that needs no escape: not below
 * 0x20, no quote, backslash or DEL. (The usual word tricks: a byte less than n; a byte equal to x.
 * They say yes too often behind a hit; the first hit is right.) */
static size_t plain_bytes(uint64_t word) {
  uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\'), del = word ^ (ones * 0x7F);
  uint64_t hit =
      (word | (word - ones * 0x20) | (quote - ones) | (slash - ones) | (del - ones)) & highs;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return hit == 0 ? 8 : (size_t)__builtin_ctzll(hit) / 8;
#else
  return hit == 0 ? 8 : 0;
#endif
}

/* The short escape of an ASCII byte, NULL when it has none. */
static const char *short_escape(unsigned char c) {
  switch (c) {
  case '"':
    return "\\\"";
  case '\\':
    return "\\\\";
  case '\n':
    return "\\n";
  case '\t':
    return "\\t";
  case '\r':
    return "\\r";
  case '\b':
    return "\\b";
  case '\f':
    return "\\f";
  default:
    return NULL;
  }
}

static bool steers(uint32_t cp) {
  return cp < 0x20 || (cp >= 0x7F && cp <= 0x9F) || cp == 0x061C || cp == 0x200E || cp == 0x200F ||
         (cp >= 0x2028 && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
}

static void write_string(const char *p, size_t n, struct buf *out) {
  size_t from = 0, i = 0;
  buf_reserve(out, n + 2);
  buf_putc(out, '"');
  while (i < n) {
    uint64_t word = ones * ' '; /* what the last bytes of the text do not fill */
    uint32_t cp = 0;
    memcpy(&word, p + i, n - i < sizeof word ? n - i : sizeof word);
    size_t plain = plain_bytes(word);
    i += plain;
    if (i >= n || plain == sizeof word)
      continue;
    size_t length = utf8_decode(p + i, n - i, &cp);
    const char *escape = cp < 0x80 ? short_escape((unsigned char)cp) : NULL;
    if (length == 0) { /* jansson's strings are UTF-8 */
      length = 1;
    } else if (escape != NULL || steers(cp)) {
      buf_append(out, p + from, i - from);
      if (escape != NULL)
        buf_append(out, escape, 2);
      else
        buf_printf(out, "\\u%04X", cp);
      from = i + length;
    }
    i += length;
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
  char *text =
      json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY); /* its rounding and its form */
  if (text == NULL)
    BUG("a real cannot be written");
  buf_puts(out, text);
  free(text);
}

static int append(const char *bytes, size_t n, void *ctx) {
  buf_append(ctx, bytes, n);
  return 0;
}

char *json_dump_text(const json_t *value, size_t flags) {
  struct buf out = {0};
  if (json_dump_callback(value, append, &out, flags) == 0)
    return buf_take(&out);
  buf_deinit(&out);
  return NULL;
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

json_t *json_text(struct str text) {
  size_t whole = utf8_floor(text.p, text.n);
  if (utf8_valid(text.p, whole))
    return json_stringn_nocheck(text.p ? text.p : "", whole);
  struct buf b = {0};
  for (size_t i = 0; i < text.n;) {
    size_t n = utf8_decode(text.p + i, text.n - i, NULL);
    if (n == 0)
      buf_printf(&b, "\\x%02x", (unsigned char)text.p[i]);
    else
      buf_append(&b, text.p + i, n);
    i += n ? n : 1;
  }
  json_t *json = json_stringn_nocheck(buf_c(&b), b.n);
  buf_deinit(&b);
  return json;
}

size_t json_depth(const json_t *value, size_t max) {
  size_t deepest = 0, i;
  const char *key;
  json_t *item;
  if (!json_is_array(value) && !json_is_object(value))
    return 0;
  if (max == 0)
    return 1;
  json_array_foreach(value, i, item) {
    size_t depth = json_depth(item, max - 1);
    deepest = depth > deepest ? depth : deepest;
  }
  json_object_foreach((json_t *)value, key, item) {
    size_t depth = json_depth(item, max - 1);
    deepest = depth > deepest ? depth : deepest;
  }
  return deepest + 1;
}
