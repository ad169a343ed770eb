/* Checking: expressions, what commands printed, the words of failures. */
#include "structured/invariant_internal.h"
#include "structured/jscan.h"

/* Adds one error; takes what is given, any of which may be NULL for want of memory. */
static enum schema_status add_error(const struct invariant *is, char *path, char *pointer,
                                    struct text *message, struct schema_errors *errs) {
  struct text place = {0};
  schema_text_printf(&place, "/invariants/%zu", is->index);
  return schema_errors_add(errs, path, pointer, schema_text_take(&place), INVARIANT_KEYWORD,
                           schema_text_take(message))
             ? SCHEMA_INVALID
             : SCHEMA_OUT_OF_MEMORY;
}

static void put_expression(const struct invariant *is, struct text *out) {
  size_t n = strlen(is->text), shown = n < 200 ? n : 200;
  while (shown < n && shown > 0 && ((unsigned char)is->text[shown] & 0xc0) == 0x80)
    shown--;
  for (size_t i = 0; i < shown; i++) /* an expression may be written over several lines */
    schema_text_add(out, is->text[i] == '\n' || is->text[i] == '\r' ? " " : is->text + i, 1);
  schema_text_puts(out, shown < n ? "..." : "");
}

static enum schema_status check_expr(const struct list_entry *entry, const json_t *value,
                                     struct schema_errors *errs) {
  const struct invariant *is = &entry->is;
  struct expr_finding found;
  struct expr_error why;
  struct text message = {0};
  if (errs == NULL) {
    enum expr_value verdict = expr_eval(entry->expr, value, &why);
    return verdict == EXPR_TRUE             ? SCHEMA_OK
           : verdict == EXPR_FALSE          ? SCHEMA_INVALID
           : why.code == EXPR_TOO_COMPLEX   ? SCHEMA_TOO_COMPLEX
           : why.code == EXPR_OUT_OF_MEMORY ? SCHEMA_OUT_OF_MEMORY
                                            : SCHEMA_INVALID;
  }
  enum expr_value verdict = expr_explain(entry->expr, value, &found, &why);
  if (verdict == EXPR_TRUE)
    return SCHEMA_OK;
  if (why.code == EXPR_OUT_OF_MEMORY)
    return SCHEMA_OUT_OF_MEMORY;
  if (is->message) {
    schema_text_puts(&message, is->message);
    schema_text_puts(&message, " (");
    put_expression(is, &message);
    schema_text_puts(&message, ": ");
    schema_text_puts(&message, found.text);
    schema_text_puts(&message, ")");
  } else {
    schema_text_puts(&message, "invariant ");
    put_expression(is, &message);
    schema_text_puts(&message, verdict == EXPR_FALSE ? " does not hold: " : " cannot be checked: ");
    schema_text_puts(&message, found.text);
  }
  schema_release(found.text);
  if (is->pointer) { /* declared: before what was found */
    schema_release(found.path);
    schema_release(found.pointer);
    if (!invariant_place(is->pointer, strlen(is->pointer), value, &found.path, &found.pointer)) {
      schema_text_deinit(&message);
      return SCHEMA_OUT_OF_MEMORY;
    }
  }
  enum schema_status status = add_error(is, found.path, found.pointer, &message, errs);
  return status == SCHEMA_INVALID && why.code == EXPR_TOO_COMPLEX ? SCHEMA_TOO_COMPLEX : status;
}

enum schema_status invariants_check(const struct invariants *invariants, const json_t *value,
                                    struct schema_errors *errs) {
  enum schema_status worst = SCHEMA_OK;
  for (size_t i = 0; i < invariants_count(invariants); i++) {
    const struct list_entry *entry = &invariants->items[i];
    if (entry->is.kind != INVARIANT_EXPR)
      continue;
    enum schema_status status = check_expr(entry, value, errs);
    if (status == SCHEMA_OUT_OF_MEMORY || status == SCHEMA_TOO_COMPLEX)
      return status;
    worst = status > worst ? status : worst;
  }
  return worst;
}

/* Bytes from outside as one line of a message: bounded, controls and what is not UTF-8 as '?'. */
static void put_bytes(const char *bytes, size_t n, struct text *out) {
  size_t shown = 0;
  bool blank = false;
  while (n > 0 && jscan_one_of(" \t\r\n", bytes[n - 1]))
    n--;
  for (size_t i = 0, length; i < n; i += length) {
    unsigned char c = (unsigned char)bytes[i];
    bool space = jscan_one_of(" \t\r\n", (char)c);
    length = jscan_utf8(bytes, n, i);
    bool plain = length > 0 && c >= 0x20 && c != 0x7f &&
                 !(c == 0xc2 && ((unsigned char)bytes[i + 1] & 0xe0) == 0x80);
    length = length ? length : 1;
    if (space && (blank || shown == 0))
      continue;
    blank = space;
    if (shown + length > INVARIANT_OUTPUT_MESSAGE_BYTES) {
      schema_text_puts(out, "...");
      return;
    }
    if (plain && !space)
      schema_text_add(out, bytes + i, length);
    else
      schema_text_puts(out, space ? " " : "?");
    shown += plain ? length : 1;
  }
}

static enum schema_status report_at(const struct invariant *is, const json_t *value,
                                    const char *place, size_t place_n, const char *reason, size_t n,
                                    bool own_words, struct schema_errors *errs) {
  struct text message = {0};
  char *path, *pointer;
  if (errs == NULL)
    return SCHEMA_INVALID;
  if (is->message) {
    schema_text_puts(&message, is->message);
  } else if (!own_words) {
    schema_text_puts(&message, "invariant ");
    put_expression(is, &message);
    schema_text_puts(&message, " does not hold");
  }
  size_t before = message.length;
  schema_text_puts(&message, is->message ? " (" : before ? ": " : "");
  size_t start = message.length;
  put_bytes(reason, n, &message);
  if (message.length == start && !message.failed && message.bytes) { /* nothing was said */
    message.length = before;
    message.bytes[before] = '\0';
  } else if (is->message) {
    schema_text_puts(&message, ")");
  }
  if (place_n == 0 && is->pointer) {
    place = is->pointer;
    place_n = strlen(place);
  }
  if (!invariant_place(place, place_n, value, &path, &pointer)) {
    schema_text_deinit(&message);
    return SCHEMA_OUT_OF_MEMORY;
  }
  return add_error(is, path, pointer, &message, errs);
}

enum schema_status invariant_report(const struct invariant *invariant, const json_t *value,
                                    const char *reason, size_t n, struct schema_errors *errs) {
  return report_at(invariant, value, "", 0, reason, n, false, errs);
}

/* --- what a command printed --- */

/* {"path" or "pointer", "message"}; false if the line is something else, or for want of memory. */
static bool read_line(const char *line, size_t n, json_t **out, bool *out_of_memory) {
  struct jscan js;
  struct jscan_result result;
  jscan_init(&js, line, n);
  enum jscan_code code = jscan_value(&js, 0, &result);
  jscan_deinit(&js);
  *out_of_memory = code == JSCAN_OUT_OF_MEMORY;
  if (code != JSCAN_OK)
    return false;
  while (result.end < n && jscan_one_of(" \t\r\n", line[result.end]))
    result.end++;
  if (result.end == n && json_is_string(json_object_get(result.value, "message"))) {
    *out = result.value;
    return true;
  }
  json_decref(result.value);
  return false;
}

static enum schema_status report_line(const struct invariant *is, const json_t *value,
                                      const json_t *line, struct schema_errors *errs) {
  const json_t *message = json_object_get(line, "message"),
               *place = json_object_get(line, "pointer");
  if (!json_is_string(place))
    place = json_object_get(line, "path");
  return report_at(is, value, json_is_string(place) ? json_string_value(place) : "",
                   json_string_length(place), json_string_value(message),
                   json_string_length(message), true, errs);
}

bool invariant_command_told(int exit_status) {
  enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, KILLED = 128, LAST_SIGNAL = 31 };
  return exit_status != NOT_EXECUTABLE && exit_status != NOT_FOUND &&
         (exit_status <= KILLED || exit_status > KILLED + LAST_SIGNAL);
}

enum schema_status invariant_command_result(const struct invariant *invariant, const json_t *value,
                                            const struct invariant_output *output,
                                            struct schema_errors *errs) {
  bool any = false, out_of_memory = false;
  if (output->exit_status == 0)
    return SCHEMA_OK;
  for (size_t i = 0, end; i < output->out_n; i = end + 1) {
    const char *newline = memchr(output->out + i, '\n', output->out_n - i);
    json_t *line = NULL;
    end = newline ? (size_t)(newline - output->out) : output->out_n;
    while (i < end && jscan_one_of(" \t\r", output->out[i]))
      i++;
    if (i == end || output->out[i] != '{' ||
        !read_line(output->out + i, end - i, &line, &out_of_memory)) {
      if (out_of_memory)
        return SCHEMA_OUT_OF_MEMORY;
      continue;
    }
    any = true;
    enum schema_status status = report_line(invariant, value, line, errs);
    json_decref(line);
    if (status != SCHEMA_INVALID)
      return status;
  }
  if (any)
    return SCHEMA_INVALID;
  bool use_out = false;
  for (size_t i = 0; i < output->out_n && !use_out; i++)
    use_out = !jscan_one_of(" \t\r\n", output->out[i]);
  const char *bytes = use_out ? output->out : output->err;
  size_t n = use_out ? output->out_n : output->err_n;
  struct text words = {0};
  schema_text_printf(&words, "exit status %d", output->exit_status);
  schema_text_puts(&words, n ? ": " : "");
  if (n)
    put_bytes(bytes, n, &words);
  if (words.failed) {
    schema_text_deinit(&words);
    return SCHEMA_OUT_OF_MEMORY;
  }
  enum schema_status status = invariant_report(invariant, value, words.bytes, words.length, errs);
  schema_text_deinit(&words);
  return status;
}
