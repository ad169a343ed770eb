/* Writes JSON values as YAML. */
#include "format/yaml_write.h"

#include "base/str.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <string.h>

enum { STEP = 2, FLOW_COLUMNS = 70 };

/* Returns whether every reader of YAML takes the text as one without quotes: letters, digits and a
 * few signs, and nothing that means a number, a truth or nothing. */
static bool is_bare(struct str s) {
  static const char *const words = "null true false yes no on off y n";
  char lower[6] = "";
  if (s.n == 0 || !(str_is_letter(s.p[0]) || s.p[0] == '_') || s.p[s.n - 1] == ' ')
    return false;
  for (size_t i = 0; i < s.n; i++) {
    if (!str_is_letter(s.p[i]) && !str_is_digit(s.p[i]) && strchr(" _./()+=&-", s.p[i]) == NULL)
      return false;
    if (i < sizeof lower - 1)
      lower[i] = str_lower(s.p[i]);
  }
  return s.n >= sizeof lower || !str_among((struct str){lower, s.n}, words);
}

/* A character that YAML does not take as it is, or that a reader may take as a line's end. */
static bool is_special(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
         (c & 0xfffe) == 0xfffe;
}

static bool is_block(struct str s) {
  bool lines = false;
  for (size_t at = 0; at < s.n;) {
    uint32_t c;
    at += utf8_decode(s.p + at, s.n - at, &c);
    lines = lines || c == '\n';
    if (c != '\n' && c != '\t' && is_special(c))
      return false;
  }
  return lines && !str_is_space(s.p[0]);
}

static void put_in_quotes(struct str s, struct buf *out) {
  buf_putc(out, '"');
  for (size_t at = 0; at < s.n;) {
    uint32_t c;
    size_t n = utf8_decode(s.p + at, s.n - at, &c);
    if (c == '\n')
      buf_puts(out, "\\n");
    else if (c == '"' || c == '\\')
      buf_printf(out, "\\%c", (char)c);
    else if (is_special(c))
      buf_printf(out, "\\U%08x", (unsigned)c);
    else
      buf_append(out, s.p + at, n);
    at += n;
  }
  buf_putc(out, '"');
}

static void put_block(struct str s, size_t indent, struct buf *out) {
  size_t ends = 0;
  while (ends < s.n && s.p[s.n - ends - 1] == '\n')
    ends++;
  buf_puts(out, (const char *const[]){"|-", "|", "|+"}[ends > 2 ? 2 : ends]);
  for (struct str rest = {s.p, s.n - ends}; rest.p != NULL;) {
    struct str line = str_cut(&rest, '\n');
    buf_printf(out, line.n > 0 ? "\n%*s" : "\n", (int)indent, "");
    buf_str(out, line);
  }
  for (; ends > 1; ends--)
    buf_putc(out, '\n');
}

static void put_scalar(const json_t *value, size_t indent, struct buf *out) {
  struct str s = json_view(value);
  if (!json_is_string(value)) {
    json_write(value, out);
  } else if (is_bare(s)) {
    buf_str(out, s);
  } else if (is_block(s)) {
    put_block(s, indent, out);
  } else {
    put_in_quotes(s, out);
  }
}

static bool is_flow(const json_t *value) {
  size_t columns = 0;
  if (json_is_object(value))
    return json_object_size(value) == 0;
  JSON_EACH((json_t *)value, i, item) {
    struct str s = json_view(item);
    columns += s.n + 4;
    if (json_is_array(item) || json_is_object(item) || is_block(s))
      return false;
  }
  return columns <= FLOW_COLUMNS;
}

static void yaml_put(const json_t *value, size_t indent, bool in_list, struct buf *out) {
  bool first = true;
  if (json_is_array(value) && is_flow(value)) {
    buf_puts(out, in_list ? "[" : " [");
    JSON_EACH((json_t *)value, i, item) {
      buf_puts(out, i > 0 ? ", " : "");
      put_scalar(item, indent, out);
    }
    buf_putc(out, ']');
  } else if (json_is_object(value) && is_flow(value)) {
    buf_puts(out, in_list ? "{}" : " {}");
  } else if (json_is_array(value)) {
    JSON_EACH((json_t *)value, i, item) {
      if (!in_list || i > 0)
        buf_printf(out, "\n%*s", (int)indent, "");
      buf_puts(out, "- ");
      yaml_put(item, indent + STEP, true, out);
    }
  } else if (json_is_object(value)) {
    JSON_MEMBERS(value, key, member) {
      if (!in_list || !first)
        buf_printf(out, "\n%*s", (int)indent, "");
      if (is_bare(str_from(key)))
        buf_puts(out, key);
      else
        put_in_quotes(str_from(key), out);
      buf_putc(out, ':');
      yaml_put(member, indent + STEP, false, out);
      first = false;
    }
  } else {
    buf_puts(out, in_list ? "" : " ");
    put_scalar(value, indent, out);
  }
}

void yaml_write(const json_t *value, struct buf *out) {
  yaml_put(value, 0, true, out);
  buf_putc(out, '\n');
}
