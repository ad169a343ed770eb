/* Shortens what an agent reports about a tool so that it fits a log. */
#include "provider/agent/tool_summary.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <ctype.h>

enum { FIRST_LINES = 4, LAST_LINES = 6, LINE_BYTES = 160, HASH_DIGITS = 12, MAX_DEPTH = 8 };

/* Returns how many bytes of a text take at most `most` bytes in JSON. */
static size_t tool_fitting(struct str text, size_t most) {
  size_t n = 0, used = 0;
  while (n < text.n) {
    unsigned char c = (unsigned char)text.p[n];
    size_t bytes = c == '"' || c == '\\' || c == '\n' || c == '\t' ? 2 : 1;
    bytes = c < 0x20 && bytes == 1 ? 6 : bytes;
    if (used + bytes > most)
      return utf8_floor(text.p, n);
    used += bytes;
    n++;
  }
  return n;
}

static void tool_put(json_t *data, const char *key, struct str text, size_t most) {
  size_t n = tool_fitting(text, most);
  if (n > 0)
    json_object_set_new(data, key, json_text((struct str){text.p, n}));
}

/* --- the argument --- */

/* Returns a shell's command: the rest of its input says little. */
static const json_t *command_of(const json_t *input) {
  static const char *const names[] = {"command", "cmd", "script"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    const json_t *command = json_object_get(input, names[i]);
    if (json_is_string(command) || json_array_size(command) > 0)
      return command;
  }
  return input;
}

bool tool_has_argument(const json_t *input) {
  if (json_is_object(input) || json_is_array(input))
    return json_object_size(input) + json_array_size(input) > 0;
  return json_is_string(input) && json_string_length(input) > 0;
}

/* --- the output --- */

/* Gathers a tool's text, which clients wrap in lists and objects of their own. */
static void gather(const json_t *value, int depth, struct buf *out) {
  static const char *const names[] = {"text",    "stdout", "stderr", "output", "aggregated_output",
                                      "content", "error",  "message"};
  const json_t *item;
  size_t i;
  if (depth > MAX_DEPTH)
    return;
  if (json_is_string(value) && json_string_length(value) > 0) {
    if (out->n > 0 && out->p[out->n - 1] != '\n')
      buf_putc(out, '\n');
    buf_str(out, json_view(value));
  }
  json_array_foreach((json_t *)value, i, item)
    gather(item, depth + 1, out);
  for (i = 0; i < ARRAY_LEN(names) && json_is_object(value); i++)
    gather(json_object_get(value, names[i]), depth + 1, out);
}

static void put_output(json_t *data, struct str text) {
  static const char cut[] = "... (cut)";
  buf_auto_t out = {0};
  size_t lines = 0, number = 0;
  text = str_trim(text);
  for (size_t i = 0; i < text.n; i++)
    lines += text.p[i] == '\n';
  lines += text.n > 0;
  for (; number < lines; number++) {
    struct str line = str_next_line(&text);
    bool gap = lines > FIRST_LINES + LAST_LINES && number >= FIRST_LINES;
    if (!gap || number >= lines - LAST_LINES) {
      bool too_long = line.n > LINE_BYTES;
      if (out.n > 0)
        buf_putc(&out, '\n');
      buf_str(&out, (struct str){line.p, too_long ? utf8_floor(line.p, LINE_BYTES) : line.n});
      buf_puts(&out, too_long ? "..." : "");
    }
    if (gap && number == FIRST_LINES)
      buf_printf(&out, "\n... %zu lines", lines - FIRST_LINES - LAST_LINES);
  }
  if (tool_fitting(buf_view(&out), LIMIT_TOOL_OUTPUT_BYTES) < out.n) {
    out.n = tool_fitting(buf_view(&out), LIMIT_TOOL_OUTPUT_BYTES - (sizeof cut - 1));
    buf_puts(&out, cut);
  }
  tool_put(data, "output", buf_view(&out), LIMIT_TOOL_OUTPUT_BYTES);
}

/* Finds an exit status in words, as some clients give it: "Exit code 2" before all else, "Exit
 * Code: 2" on a line. */
static const char *exit_in(struct str text) {
  static const char words[] = "exit code";
  while (text.p != NULL) {
    struct str line = str_next_line(&text);
    size_t n = str_starts_fold(line, words) ? sizeof words - 1 : 0;
    while (n > 0 && n < line.n && (line.p[n] == ':' || line.p[n] == ' '))
      n++;
    if (n > sizeof words - 1 && n < line.n && isdigit((unsigned char)line.p[n]))
      return line.p + n;
  }
  return NULL;
}

static void put_exit(json_t *data, const struct tool_summary *tool, struct str output) {
  const char *told = tool->failed == 1 ? exit_in(output) : NULL;
  long status;
  size_t n = 0;
  if (json_is_integer(tool->exit)) {
    json_object_set(data, "exit", (json_t *)tool->exit);
    return;
  }
  while (told != NULL && told + n < output.p + output.n && isdigit((unsigned char)told[n]))
    n++;
  if (told != NULL && n < 4 && str_to_long((struct str){told, n}, &status))
    json_object_set_new(data, "exit", json_integer(status));
}

json_t *tool_summary_data(const struct tool_summary *tool) {
  json_t *data = json_object();
  buf_auto_t output = {0};
  tool_put(data, "name", tool->name, LIMIT_TOOL_NAME_BYTES);
  tool_put(data, "id", tool->id, LIMIT_TOOL_NAME_BYTES);
  if (tool->state != NULL)
    tool_put(data, "state", str_from(tool->state), LIMIT_TOOL_NAME_BYTES);
  if (tool->failed >= 0)
    json_object_set_new(data, "failed", json_boolean(tool->failed));
  const json_t *value = command_of(tool->input);
  struct buf text = {0}, tail = {0};
  char hex[SHA256_HEX];
  if (tool_has_argument(value)) {
    if (json_is_string(value))
      buf_str(&text, json_view(value));
    else
      json_write(value, &text);
    if (tool_fitting(buf_view(&text), LIMIT_TOOL_ARGUMENT_BYTES) < text.n) {
      sha256_hex(buf_c(&text), text.n, NULL, 0, hex);
      buf_printf(&tail, "... (%zu bytes, sha256 %.*s)", text.n, HASH_DIGITS, hex);
      text.n = tool_fitting(buf_view(&text), LIMIT_TOOL_ARGUMENT_BYTES - tail.n);
      buf_str(&text, buf_view(&tail));
    }
    tool_put(data, "argument", buf_view(&text), LIMIT_TOOL_ARGUMENT_BYTES);
    buf_deinit(&text);
    buf_deinit(&tail);
  }
  output.max = LIMIT_TOOL_SEEN_BYTES;
  gather(tool->output, 0, &output);
  put_exit(data, tool, buf_view(&output));
  put_output(data, buf_view(&output));
  return data;
}
