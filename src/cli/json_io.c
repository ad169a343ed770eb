/* Reads and writes JSON as commands do. */
#include "cli/json_io.h"

#include "base/file.h"
#include "base/utf8.h"
#include "format/json_write.h"
#include "format/yaml.h"
#include "schema/upgrade.h"
#include "json/scan.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

static size_t after_space(struct str text, size_t i) {
  while (i < text.n &&
         (text.p[i] == ' ' || text.p[i] == '\t' || text.p[i] == '\n' || text.p[i] == '\r'))
    i++;
  return i;
}

static json_t *json_io_refuse(const char *name, struct str text, size_t offset, const char *why,
                              struct err *err) {
  int line = 1, column = 1;
  for (size_t i = 0; i < offset && i < text.n; i++) {
    if (text.p[i] == '\n') {
      line++;
      column = 1;
    } else if (!utf8_is_tail(text.p[i])) { /* columns count characters */
      column++;
    }
  }
  err_set_at(err, ERR_FILE, name, line, column, "%s", why);
  return NULL;
}

static const char *const reasons[] = {
    [JSCAN_SYNTAX] = "this is not JSON: something else is expected here",
    [JSCAN_TRUNCATED] = "this is not JSON: it ends inside a value",
    [JSCAN_CONTROL] =
        "this is not JSON: a control character in a string must be written as an escape",
    [JSCAN_ESCAPE] = "this is not JSON: unknown or incomplete escape in a string",
    [JSCAN_UTF8] = "this is not JSON: a string is not UTF-8",
    [JSCAN_DEPTH] = "the value is nested too deeply",
    [JSCAN_NUMBER_RANGE] = "the number is too large for a double-precision value",
};

json_t *json_io_parse(const char *name, struct str text, struct err *err) {
  assert(name != NULL);
  struct jscan js;
  struct jscan_result r = {0};
  size_t from = str_starts(text, "\xEF\xBB\xBF") ? 3 : 0;
  from = after_space(text, from);
  if (from == text.n)
    return json_io_refuse(name, text, from, "this is not JSON: it is empty", err);
  jscan_init(&js, text.p, text.n);
  enum jscan_code code = jscan_value(&js, from, &r);
  jscan_deinit(&js);
  if (code == JSCAN_DEPTH) {
    json_error_t why;
    json_t *deep = json_loadb(text.p + from, text.n - from, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    return deep ? deep : json_io_refuse(name, text, r.offset, reasons[code], err);
  }
  if (code != JSCAN_OK)
    return json_io_refuse(name, text, r.offset, reasons[code], err);
  size_t end = after_space(text, r.end);
  if (end < text.n) {
    json_decref(r.value);
    return json_io_refuse(name, text, end, "this is not JSON: there is more text after the value",
                          err);
  }
  return r.value;
}

json_t *json_io_text(const char *name, struct str text, enum json_io_kind kind, struct err *err) {
  bool yaml = str_ends(str_from(name), ".yaml") || str_ends(str_from(name), ".yml");
  if (!yaml && kind == JSON_IO_SCHEMA && !str_ends(str_from(name), ".json")) {
    size_t i = after_space(text, 0);
    yaml = i < text.n && text.p[i] != '{' && text.p[i] != '[' && text.p[i] != '"';
  }
  json_t *value = yaml ? yaml_load(name, text, JSON_IO_BYTES, err) : json_io_parse(name, text, err);
  if (kind == JSON_IO_SCHEMA)
    schema_upgrade(value);
  return value;
}

bool json_io_read(const char *path, size_t max, struct buf *out, struct err *err) {
  if (strcmp(path, "-") == 0)
    return file_read_fd(STDIN_FILENO, "standard input", max, out, err);
  return file_read(path, max, out, err);
}

json_t *json_io_file(const char *path, enum json_io_kind kind, struct err *err) {
  assert(path != NULL);
  buf_auto_t text = {0};
  json_t *value = NULL;
  if (json_io_read(path, JSON_IO_BYTES, &text, err))
    value = json_io_text(path, buf_view(&text), kind, err);
  return value;
}

static void new_line(struct buf *out, int level) {
  if (level < 0)
    return;
  buf_putc(out, '\n');
  for (int i = 0; i < level; i++)
    buf_puts(out, "  ");
}

/* Writes a value; on one line if level < 0. */
static void write_value(const json_t *value, int level, struct buf *out) {
  int inner = level < 0 ? level : level + 1;
  bool first = true;
  size_t i, key_n;
  const char *key;
  json_t *item;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    buf_putc(out, '{');
    json_object_keylen_foreach((json_t *)value, key, key_n, item) {
      json_auto_t *name = json_stringn_nocheck(key, key_n);
      if (name == NULL)
        die("out of memory");
      if (!first)
        buf_putc(out, ',');
      first = false;
      new_line(out, inner);
      json_write(name, out);
      buf_puts(out, level < 0 ? ":" : ": ");
      write_value(item, inner, out);
    }
    if (!first)
      new_line(out, level);
    buf_putc(out, '}');
    break;
  case JSON_ARRAY:
    buf_putc(out, '[');
    json_array_foreach(value, i, item) {
      if (i > 0)
        buf_putc(out, ',');
      new_line(out, inner);
      write_value(item, inner, out);
    }
    if (json_array_size(value) > 0)
      new_line(out, level);
    buf_putc(out, ']');
    break;
  case JSON_STRING:
  case JSON_REAL:
  case JSON_INTEGER:
  case JSON_TRUE:
  case JSON_FALSE:
  case JSON_NULL:
    json_write(value, out);
    break;
  }
}

/* Returns true for characters that a reader of lines may take for the end of a line and, on a
 * terminal, also for those that buf_safe removes. JSON already escapes ASCII controls except
 * DEL. */
static bool must_escape(uint32_t cp, enum json_io_form form) {
  if (cp == 0x85 || cp == 0x2028 || cp == 0x2029)
    return true;
  return form == JSON_IO_TERMINAL && ((cp >= 0x7F && cp <= 0x9F) || utf8_is_bidi(cp));
}

void json_io_write(const json_t *value, enum json_io_form form, struct buf *out) {
  assert(value != NULL);
  buf_auto_t text = {0};
  size_t from = 0, n;
  write_value(value, form == JSON_IO_TERMINAL ? 0 : -1, &text);
  for (size_t i = 0; i < text.n; i += n) {
    uint32_t cp = (unsigned char)text.p[i];
    n = cp < 0x7F ? 1 : utf8_decode(text.p + i, text.n - i, &cp);
    if (n == 0) {
      n = 1;
    } else if (cp >= 0x7F && must_escape(cp, form)) {
      buf_append(out, text.p + from, i - from);
      buf_printf(out, "\\u%04X", (unsigned)cp);
      from = i + n;
    }
  }
  buf_append(out, text.p + from, text.n - from);
}

json_t *json_io_string(const char *text) {
  assert(text != NULL);
  buf_auto_t safe = {0};
  if (!utf8_valid(text, strlen(text)))
    buf_safe(&safe, str_from(text), true);
  json_t *string = json_string(safe.n > 0 ? safe.p : text);
  if (string == NULL)
    die("out of memory");
  return string;
}

void json_io_print(const json_t *value, enum json_io_form form) {
  buf_auto_t line = {0};
  json_io_write(value, form, &line);
  buf_putc(&line, '\n');
  fwrite(line.p, 1, line.n, stdout);
}

void json_io_put(json_t *owned_value) {
  json_io_print(owned_value, JSON_IO_COMPACT);
  json_decref(owned_value);
}
