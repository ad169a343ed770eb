#include "structured/render_text.h"

#include <stdio.h>
#include <stdlib.h>

/* The length of the character at `p`; 0 if it is not UTF-8. */
static size_t decode(const char *p, size_t n, uint32_t *cp) {
  const unsigned char *u = (const unsigned char *)p;
  size_t length = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
  if (!length || length > n || u[0] > 0xf4)
    return 0;
  *cp = length == 1 ? u[0] : u[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((u[i] & 0xc0) != 0x80)
      return 0;
    *cp = *cp << 6 | (u[i] & 0x3fu);
  }
  return length;
}

/* Controls, line and paragraph separators, marks without width, and what turns the direction of a
 * text. */
static bool unseen(uint32_t cp) {
  return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp == 0xad || cp == 0x61c ||
         (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
         (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb) ||
         (cp >= 0xe0000 && cp <= 0xe007f);
}

/* Three or more in a row can open or close a code fence. */
static size_t fence_length(const char *p, size_t n) {
  size_t i = 0;
  while (i < n && p[i] == *p)
    i++;
  return (*p == '`' || *p == '~') && i >= 3 ? i : 0;
}

static void add_escape(uint32_t cp, struct text *out) {
  if (cp >= 0x10000)
    schema_text_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)),
                       (unsigned)(0xdc00 + ((cp - 0x10000) & 0x3ff)));
  else
    schema_text_printf(out, "\\u%04x", (unsigned)cp);
}

void render_quoted(const char *bytes, size_t length, struct text *out) {
  schema_text_puts(out, "\"");
  for (size_t i = 0, n; i < length; i += n) {
    uint32_t cp = 0xfffd;
    size_t fence = fence_length(bytes + i, length - i);
    n = decode(bytes + i, length - i, &cp);
    if (fence) {
      n = fence;
      for (size_t k = 0; k < fence; k++)
        add_escape((unsigned char)bytes[i], out);
    } else if (!n) {
      n = 1;
      schema_text_puts(out, "\\ufffd");
    } else if (cp == '"' || cp == '\\') {
      schema_text_printf(out, "\\%c", (char)cp);
    } else if (cp == '\n' || cp == '\t' || cp == '\r') {
      schema_text_printf(out, "\\%c", cp == '\n' ? 'n' : cp == '\t' ? 't' : 'r');
    } else if (unseen(cp)) {
      add_escape(cp, out);
    } else {
      schema_text_add(out, bytes + i, n);
    }
  }
  schema_text_puts(out, "\"");
}

static void real_text(double value, char text[40]) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, 40, "%.*g", digits, value);
    if (strtod(text, NULL) == value)
      break;
  }
}

void render_number(const json_t *value, struct text *out) {
  char text[40];
  if (json_is_integer(value))
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  else
    real_text(json_real_value(value), text);
  schema_text_puts(out, text);
}

void render_json(const json_t *value, bool spaced, struct text *out) {
  bool first = true;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    schema_text_puts(out, "{");
    for (void *at = json_object_iter((json_t *)value); at && !out->failed;
         at = json_object_iter_next((json_t *)value, at)) {
      schema_text_puts(out, first ? "" : spaced ? ", " : ",");
      first = false;
      render_quoted(json_object_iter_key(at), json_object_iter_key_len(at), out);
      schema_text_puts(out, spaced ? ": " : ":");
      render_json(json_object_iter_value(at), spaced, out);
    }
    schema_text_puts(out, "}");
    return;
  case JSON_ARRAY:
    schema_text_puts(out, "[");
    for (size_t i = 0, n = json_array_size(value); i < n && !out->failed; i++) {
      schema_text_puts(out, !i ? "" : spaced ? ", " : ",");
      render_json(json_array_get(value, i), spaced, out);
    }
    schema_text_puts(out, "]");
    return;
  case JSON_STRING:
    render_quoted(json_string_value(value), json_string_length(value), out);
    return;
  case JSON_INTEGER:
    render_number(value, out);
    return;
  case JSON_REAL: {
    char text[40];
    real_text(json_real_value(value), text);
    schema_text_puts(out, text);
    if (!strpbrk(text, ".e"))
      schema_text_puts(out, ".0"); /* a reader may tell 1 and 1.0 apart */
    return;
  }
  case JSON_TRUE:
    schema_text_puts(out, "true");
    return;
  case JSON_FALSE:
    schema_text_puts(out, "false");
    return;
  case JSON_NULL:
    schema_text_puts(out, "null");
    return;
  }
}

static bool plain_name(const char *bytes, size_t length) {
  enum { NAME_BYTES = 200 };
  if (!length || length > NAME_BYTES || bytes[0] == '-' || bytes[0] == '.')
    return false;
  for (size_t i = 0, n; i < length; i += n) {
    uint32_t cp;
    char c = bytes[i];
    n = decode(bytes + i, length - i, &cp);
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                (c && strchr("_-$@/", c));
    bool foreign = n > 1 && !unseen(cp) && cp != 0xa0 && cp != 0x3000 && cp != 0xff1a;
    if (!word && !foreign)
      return false;
  }
  return true;
}

void render_name(const char *bytes, size_t length, struct text *out) {
  if (plain_name(bytes, length))
    schema_text_add(out, bytes, length);
  else
    render_quoted(bytes, length, out);
}

void render_pattern(const char *text, struct text *out) {
  size_t length = strlen(text);
  bool plain = length > 0 && text[0] != '"' && text[0] != ' ' && text[length - 1] != ' ';
  for (size_t i = 0, n; plain && i < length; i += n) {
    uint32_t cp = 0;
    n = decode(text + i, length - i, &cp);
    plain = n && !unseen(cp) && !fence_length(text + i, length - i);
  }
  if (plain)
    schema_text_puts(out, text);
  else
    render_quoted(text, length, out);
}

void render_sentence(const char *text, struct text *out) {
  size_t length = strlen(text);
  bool blank = false, any = false;
  for (size_t i = 0, n; i < length; i += n) {
    uint32_t cp = 0;
    size_t fence = fence_length(text + i, length - i);
    n = decode(text + i, length - i, &cp);
    if (!n || cp == ' ' || unseen(cp)) {
      n = n ? n : 1;
      blank = any;
      continue;
    }
    if (blank)
      schema_text_puts(out, " ");
    blank = false;
    any = true;
    if (fence) {
      n = fence;
      for (size_t k = 0; k < fence; k++)
        schema_text_puts(out, "'");
    } else {
      schema_text_add(out, text + i, n);
    }
  }
}
