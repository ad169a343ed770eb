/* Writes a schema's own words so that they stay on their line. */
#include "render/line_text.h"

#include "base/utf8.h"
#include "format/json_write.h"

#include <assert.h>

/* Returns true for controls, line and paragraph separators, marks without width, and what turns the
 * direction of a text. */
static bool unseen(uint32_t cp) {
  return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp == 0xad || cp == 0x61c ||
         (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
         (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb) ||
         (cp >= 0xe0000 && cp <= 0xe007f);
}

/* Returns the length of a code fence, 0 if there is none: three or more marks in a row can open or
 * close one. */
static size_t fence_length(const char *p, size_t n) {
  size_t i = 0;
  while (i < n && p[i] == *p)
    i++;
  return (*p == '`' || *p == '~') && i >= 3 ? i : 0;
}

static void add_escape(uint32_t cp, struct buf *out) {
  if (cp >= 0x10000)
    buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)),
               (unsigned)(0xdc00 + ((cp - 0x10000) & 0x3ff)));
  else
    buf_printf(out, "\\u%04x", (unsigned)cp);
}

void render_quoted(const char *bytes, size_t length, struct buf *out) {
  buf_puts(out, "\"");
  for (size_t i = 0, n; i < length; i += n) {
    uint32_t cp = 0xfffd;
    size_t fence = fence_length(bytes + i, length - i);
    n = utf8_decode(bytes + i, length - i, &cp);
    if (fence) {
      n = fence;
      for (size_t k = 0; k < fence; k++)
        add_escape((unsigned char)bytes[i], out);
    } else if (!n) {
      n = 1;
      buf_puts(out, "\\ufffd");
    } else if (cp == '"' || cp == '\\') {
      buf_printf(out, "\\%c", (char)cp);
    } else if (cp == '\n') {
      buf_puts(out, "\\n");
    } else if (cp == '\t') {
      buf_puts(out, "\\t");
    } else if (cp == '\r') {
      buf_puts(out, "\\r");
    } else if (unseen(cp)) {
      add_escape(cp, out);
    } else {
      buf_append(out, bytes + i, n);
    }
  }
  buf_puts(out, "\"");
}

void render_number(const json_t *value, struct buf *out) {
  char text[STR_REAL_BYTES];
  if (json_is_integer(value))
    str_from_number(text, json_integer_value(value));
  else
    str_from_real(text, json_real_value(value));
  buf_puts(out, text);
}

void render_json(const json_t *value, bool spaced, struct buf *out) {
  assert(out != NULL);
  const char *comma = spaced ? ", " : ",";
  bool first = true;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    buf_puts(out, "{");
    for (void *at = json_object_iter((json_t *)value); at;
         at = json_object_iter_next((json_t *)value, at)) {
      buf_puts(out, first ? "" : comma);
      first = false;
      render_quoted(json_object_iter_key(at), json_object_iter_key_len(at), out);
      buf_puts(out, spaced ? ": " : ":");
      render_json(json_object_iter_value(at), spaced, out);
    }
    buf_puts(out, "}");
    return;
  case JSON_ARRAY:
    buf_puts(out, "[");
    for (size_t i = 0, n = json_array_size(value); i < n; i++) {
      buf_puts(out, i ? comma : "");
      render_json(json_array_get(value, i), spaced, out);
    }
    buf_puts(out, "]");
    return;
  case JSON_STRING:
    render_quoted(json_string_value(value), json_string_length(value), out);
    return;
  case JSON_INTEGER:
  case JSON_REAL: /* 1.0, not 1: a reader may tell them apart */
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    json_write(value, out);
    return;
  }
}

static bool render_plain_name(const char *bytes, size_t length) {
  enum { NAME_BYTES = 200 };
  if (!length || length > NAME_BYTES || bytes[0] == '-' || bytes[0] == '.')
    return false;
  for (size_t i = 0, n; i < length; i += n) {
    uint32_t cp;
    char c = bytes[i];
    n = utf8_decode(bytes + i, length - i, &cp);
    bool word = str_is_letter(c) || str_is_digit(c) || (c && strchr("_-$@/", c));
    bool foreign = n > 1 && !unseen(cp) && cp != 0xa0 && cp != 0x3000 && cp != 0xff1a;
    if (!word && !foreign)
      return false;
  }
  return true;
}

void render_name(const char *bytes, size_t length, struct buf *out) {
  if (render_plain_name(bytes, length))
    buf_append(out, bytes, length);
  else
    render_quoted(bytes, length, out);
}

void render_pattern(const char *text, struct buf *out) {
  size_t length = strlen(text);
  bool plain = length > 0 && text[0] != '"' && text[0] != ' ' && text[length - 1] != ' ';
  for (size_t i = 0, n; plain && i < length; i += n) {
    uint32_t cp = 0;
    n = utf8_decode(text + i, length - i, &cp);
    plain = n && !unseen(cp) && !fence_length(text + i, length - i);
  }
  if (plain)
    buf_puts(out, text);
  else
    render_quoted(text, length, out);
}

void render_sentence(const char *text, struct buf *out) {
  size_t length = strlen(text);
  bool blank = false, any = false;
  for (size_t i = 0, n; i < length; i += n) {
    uint32_t cp = 0;
    size_t fence = fence_length(text + i, length - i);
    n = utf8_decode(text + i, length - i, &cp);
    if (!n || cp == ' ' || unseen(cp)) {
      n = n ? n : 1;
      blank = any;
      continue;
    }
    if (blank)
      buf_puts(out, " ");
    blank = false;
    any = true;
    if (fence) {
      n = fence;
      for (size_t k = 0; k < fence; k++)
        buf_puts(out, "'");
    } else {
      buf_append(out, text + i, n);
    }
  }
}
