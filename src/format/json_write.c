/* Writes JSON as compact text. */
#include "format/json_write.h"

#include "base/utf8.h"
#include "format/json_object.h"

#include <assert.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Returns true for ASCII that stands in a JSON string as it is. */
static bool is_plain(unsigned char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

#ifdef __SSE2__
/* Returns a bit for each of 16 bytes that is not plain. */
static inline unsigned special_bytes(const char *p) {
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), del = _mm_set1_epi8(0x7F),
                space = _mm_set1_epi8(0x20);
  __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
  __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                             /* The comparison is signed: what is not ASCII is below a space,
                              * too. */
                             _mm_or_si128(_mm_cmpeq_epi8(v, del), _mm_cmplt_epi8(v, space)));
  return (unsigned)_mm_movemask_epi8(hit);
}
#endif

/* Returns how many bytes from the first on are plain. */
static size_t plain_run(const char *p, size_t n) {
  size_t i = 0;
#ifdef __SSE2__
  for (; n - i >= 16; i += 16) {
    unsigned hit = special_bytes(p + i);
    if (hit != 0)
      return i + (size_t)__builtin_ctz(hit);
  }
#endif
  while (i < n && is_plain((unsigned char)p[i]))
    i++;
  return i;
}

/* Returns the short escape of an ASCII byte, NULL if it has none. */
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

/* Does what buf_append does, without a call if there is room. */
static inline void json_write_put(struct buf *out, const char *p, size_t n) {
  if (out->max != 0 || out->cap - out->n <= n) {
    buf_append(out, p, n);
    return;
  }
  memcpy(out->p + out->n, p, n);
  out->n += n;
  out->p[out->n] = '\0';
}

/* Writes from the first byte on that may need an escape. */
static void write_rest(const char *p, size_t n, struct buf *out) {
  size_t from = 0, i = 0;
  while (i < n) {
    uint32_t cp = 0;
    i += plain_run(p + i, n - i);
    if (i == n)
      break;
    size_t length = utf8_decode(p + i, n - i, &cp);
    const char *escape = cp < 0x80 ? short_escape((unsigned char)cp) : NULL;
    if (length == 0) { /* jansson's strings are UTF-8 */
      length = 1;
    } else if (escape != NULL || steers(cp)) {
      json_write_put(out, p + from, i - from);
      if (escape != NULL)
        json_write_put(out, escape, 2);
      else
        buf_printf(out, "\\u%04X", cp);
      from = i + length;
    }
    i += length;
  }
  json_write_put(out, p + from, n - from);
}

/* Writes a string with the byte `after` behind it (0: none). */
static inline void write_string(const char *p, size_t n, struct buf *out, char after) {
  buf_reserve(out, n + n / 16 + 20);
#ifdef __SSE2__
  enum { SHORT_BYTES = 128 };
  if (n < SHORT_BYTES && out->max == 0) { /* copied first: there, reading past its end is safe */
    char *at = out->p + out->n;
    unsigned hit = 0;
    size_t plain = 0;
    *at++ = '"';
    memcpy(at, p, n);
    while (plain < n && (hit = special_bytes(at + plain)) == 0)
      plain += 16;
    if (hit != 0)
      plain += (size_t)__builtin_ctz(hit);
    if (plain >= n) {
      at[n] = '"';
      at[n + 1] = after;
      at[n + 2] = '\0';
      out->n += n + 2 + (after != 0);
      return;
    }
    out->n += 1 + plain;
    write_rest(p + plain, n - plain, out);
    buf_putc(out, '"');
    if (after != 0)
      buf_putc(out, after);
    return;
  }
#endif
  buf_putc(out, '"');
  write_rest(p, n, out);
  buf_putc(out, '"');
  if (after != 0)
    buf_putc(out, after);
}

void json_write_string(struct str text, struct buf *out) {
  assert(out != NULL);
  write_string(text.p, text.n, out, 0);
}

void json_write_real(double value, struct buf *out) {
  char text[STR_REAL_BYTES];
  str_from_real(text, value);
  buf_puts(out, text);
  if (strpbrk(text, ".e") == NULL)
    buf_puts(out, ".0");
}

static int append(const char *bytes, size_t n, void *ctx) {
  buf_append(ctx, bytes, n);
  return 0;
}

char *json_dump_text(const json_t *value, size_t flags) {
  buf_auto_t out = {0};
  if (json_dump_callback(value, append, &out, flags) == 0)
    return buf_take(&out);
  return NULL;
}

/* Writes the members, with `before` in front of the first one and a comma in front of the
 * others. */
static void write_members(const json_t *object, char before, struct buf *out) {
  for (void *at = json_object_iter((json_t *)object); at;
       at = json_object_iter_next((json_t *)object, at)) { /* the foreach looks each key up */
    if (before != 0)
      buf_putc(out, before);
    before = ',';
    write_string(json_object_iter_key(at), json_object_iter_key_len(at), out, ':');
    json_write(json_object_iter_value(at), out);
  }
}

void json_write_members(const json_t *object, struct buf *out) {
  write_members(object, ',', out);
}

void json_write(const json_t *value, struct buf *out) {
  assert(out != NULL);
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    buf_putc(out, '{');
    write_members(value, 0, out);
    buf_putc(out, '}');
    break;
  case JSON_ARRAY:
    buf_putc(out, '[');
    JSON_EACH(value, i, item) {
      if (i > 0)
        buf_putc(out, ',');
      json_write(item, out);
    }
    buf_putc(out, ']');
    break;
  case JSON_STRING:
    write_string(json_string_value(value), json_string_length(value), out, 0);
    break;
  case JSON_INTEGER: {
    char digits[STR_NUMBER_BYTES];
    json_write_put(out, digits, str_from_number(digits, json_integer_value(value)));
  } break;
  case JSON_REAL:
    json_write_real(json_real_value(value), out);
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
  buf_auto_t b = {0};
  for (size_t i = 0; i < text.n;) {
    size_t n = utf8_decode(text.p + i, text.n - i, NULL);
    if (n == 0)
      buf_printf(&b, "\\x%02x", (unsigned char)text.p[i]);
    else
      buf_append(&b, text.p + i, n);
    i += n ? n : 1;
  }
  return json_stringn_nocheck(buf_c(&b), b.n);
}

void json_put_text(json_t *object, const char *key, struct str text) {
  if (text.n > 0)
    json_object_set_new_nocheck(object, key, json_text(text));
}

void json_put_count(json_t *object, const char *key, json_int_t count) {
  if (count > 0)
    json_object_set_new_nocheck(object, key, json_integer(count));
}

void json_put_true(json_t *object, const char *key, bool value) {
  if (value)
    json_object_set_new_nocheck(object, key, json_true());
}

size_t json_depth(const json_t *value, size_t max) {
  size_t deepest = 0;
  if (!json_is_array(value) && !json_is_object(value))
    return 0;
  if (max == 0)
    return 1;
  JSON_EACH(value, i, item) {
    size_t depth = json_depth(item, max - 1);
    deepest = depth > deepest ? depth : deepest;
  }
  JSON_MEMBERS(value, key, item) {
    size_t depth = json_depth(item, max - 1);
    deepest = depth > deepest ? depth : deepest;
  }
  return deepest + 1;
}

/* --- the size of a text before it is read --- */

/* Returns the place after the string's closing quote: the first one with an even number of
 * backslashes before it. `from` is after the opening quote. */
static const char *skip_string(const char *from, const char *end) {
  for (const char *p = from; (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
    const char *slash = p;
    while (slash > from && slash[-1] == '\\')
      slash--;
    if ((p - slash) % 2 == 0)
      return p + 1;
  }
  return end;
}

struct json_size json_size(struct str text, size_t max_depth, size_t max_values) {
  struct json_size size = {0, 1};
  const char *p = text.p, *end = text.p + text.n;
  size_t depth = 0;
  while (p < end && size.depth <= max_depth && size.values <= max_values) {
    switch (*p++) {
    case '"':
      p = skip_string(p, end);
      break;
    case '[':
    case '{':
      size.values++;
      depth++;
      size.depth = depth > size.depth ? depth : size.depth;
      break;
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    case ',':
      size.values++;
      break;
    default:
      break;
    }
  }
  return size;
}
