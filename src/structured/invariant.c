/* Checks invariants: expressions, what commands printed, the words of failures. */
#include "structured/invariant_internal.h"

#include "base/utf8.h"
#include "format/json_object.h"
#include "json/scan.h"

#include <assert.h>

/* Adds an error. Takes path, pointer and message. */
static void invariant_add_error(const struct invariant *is, char *path, char *pointer,
                                struct buf *message, struct schema_errors *errs) {
  struct buf place = {0};
  buf_printf(&place, "/invariants/%zu", is->index);
  schema_errors_add(errs, path, pointer, buf_take(&place), INVARIANT_KEYWORD, buf_take(message));
}

static void invariant_put_expression(const struct invariant *is, struct buf *out) {
  size_t n = strlen(is->text), shown = n < 200 ? n : 200;
  while (shown < n && shown > 0 && utf8_is_tail(is->text[shown]))
    shown--;
  for (size_t i = 0; i < shown; i++) /* an expression may be written over several lines */
    buf_putc(out, is->text[i] == '\n' || is->text[i] == '\r' ? ' ' : is->text[i]);
  buf_puts(out, shown < n ? "..." : "");
}

static enum schema_status check_expr(const struct list_entry *entry, const json_t *value,
                                     struct schema_errors *errs) {
  const struct invariant *is = &entry->is;
  struct expr_finding found;
  struct expr_error why;
  struct buf message = {0};
  enum expr_value verdict = expr_explain(entry->expr, value, errs ? &found : NULL, &why);
  if (verdict == EXPR_TRUE)
    return SCHEMA_OK;
  enum schema_status status = why.code == EXPR_TOO_COMPLEX ? SCHEMA_TOO_COMPLEX : SCHEMA_INVALID;
  if (errs == NULL)
    return status;
  if (is->message) {
    buf_puts(&message, is->message);
    buf_puts(&message, " (");
    invariant_put_expression(is, &message);
    buf_puts(&message, ": ");
    buf_puts(&message, found.text);
    buf_puts(&message, ")");
  } else {
    buf_puts(&message, "invariant ");
    invariant_put_expression(is, &message);
    buf_puts(&message, verdict == EXPR_FALSE ? " does not hold: " : " cannot be checked: ");
    buf_puts(&message, found.text);
  }
  free(found.text);
  if (is->pointer) { /* declared: before what was found */
    free(found.path);
    free(found.pointer);
    invariant_place(is->pointer, strlen(is->pointer), value, &found.path, &found.pointer);
  }
  invariant_add_error(is, found.path, found.pointer, &message, errs);
  return status;
}

enum schema_status invariants_check(const struct invariants *invariants, const json_t *value,
                                    struct schema_errors *errs) {
  enum schema_status worst = SCHEMA_OK;
  for (size_t i = 0; i < invariants_count(invariants); i++) {
    const struct list_entry *entry = &invariants->items[i];
    if (entry->is.kind != INVARIANT_EXPR)
      continue;
    enum schema_status status = check_expr(entry, value, errs);
    if (status == SCHEMA_TOO_COMPLEX)
      return status;
    if (status == SCHEMA_INVALID)
      worst = status;
  }
  return worst;
}

/* Puts bytes from outside as one line of a message: bounded, with '?' for controls and what is not
 * UTF-8. */
static void invariant_put_bytes(const char *bytes, size_t n, struct buf *out) {
  size_t shown = 0;
  bool blank = false;
  while (n > 0 && jscan_one_of(" \t\r\n", bytes[n - 1]))
    n--;
  for (size_t i = 0, length; i < n; i += length) {
    unsigned char c = (unsigned char)bytes[i];
    bool space = jscan_one_of(" \t\r\n", (char)c);
    length = utf8_decode(bytes + i, n - i, NULL);
    bool plain = length > 0 && c >= 0x20 && c != 0x7f &&
                 !(c == 0xc2 && ((unsigned char)bytes[i + 1] & 0xe0) == 0x80);
    length = length ? length : 1;
    if (space && (blank || shown == 0))
      continue;
    blank = space;
    if (shown + length > INVARIANT_OUTPUT_MESSAGE_BYTES) {
      buf_puts(out, "...");
      return;
    }
    if (plain && !space)
      buf_append(out, bytes + i, length);
    else
      buf_puts(out, space ? " " : "?");
    shown += plain ? length : 1;
  }
}

static void report_at(const struct invariant *is, const json_t *value, struct str place,
                      struct str reason, bool own_words, struct schema_errors *errs) {
  struct buf message = {0};
  char *path, *pointer;
  if (errs == NULL)
    return;
  if (is->message) {
    buf_puts(&message, is->message);
  } else if (!own_words) {
    buf_puts(&message, "invariant ");
    invariant_put_expression(is, &message);
    buf_puts(&message, " does not hold");
  }
  size_t before = message.n;
  if (is->message)
    buf_puts(&message, " (");
  else if (before > 0)
    buf_puts(&message, ": ");
  size_t start = message.n;
  invariant_put_bytes(reason.p, reason.n, &message);
  if (message.n == start) { /* the message is empty */
    message.n = before;
    buf_puts(&message, "");
  } else if (is->message) {
    buf_puts(&message, ")");
  }
  if (place.n == 0 && is->pointer)
    place = str_from(is->pointer);
  invariant_place(place.p, place.n, value, &path, &pointer);
  invariant_add_error(is, path, pointer, &message, errs);
}

void invariant_report(const struct invariant *invariant, const json_t *value, const char *reason,
                      size_t n, struct schema_errors *errs) {
  report_at(invariant, value, STR(""), (struct str){reason, n}, false, errs);
}

/* --- what a command printed --- */

/* Reads {"path" or "pointer", "message"}; NULL if the line is something else. */
static json_t *invariant_read_line(const char *line, size_t n) {
  struct jscan js;
  struct jscan_result result;
  jscan_init(&js, line, n);
  enum jscan_code code = jscan_value(&js, 0, &result);
  jscan_deinit(&js);
  if (code != JSCAN_OK)
    return NULL;
  while (result.end < n && jscan_one_of(" \t\r\n", line[result.end]))
    result.end++;
  if (result.end == n && json_is_string(json_at(result.value, "message")))
    return result.value;
  json_decref(result.value);
  return NULL;
}

static void report_line(const struct invariant *is, const json_t *value, const json_t *line,
                        struct schema_errors *errs) {
  const json_t *place = json_at(line, "pointer");
  if (!json_is_string(place))
    place = json_at(line, "path");
  report_at(is, value, json_view(place), json_view(json_at(line, "message")), true, errs);
}

/* Turns each line that is an error into one; false if there is none. */
static bool report_lines(const struct invariant *is, const json_t *value, struct str out,
                         struct schema_errors *errs) {
  bool any = false;
  for (struct str rest = out; rest.p != NULL;) {
    struct str text = str_next_line(&rest);
    while (text.n > 0 && jscan_one_of(" \t\r", *text.p)) {
      text.p++;
      text.n--;
    }
    json_t *line = text.n > 0 && *text.p == '{' ? invariant_read_line(text.p, text.n) : NULL;
    if (line == NULL)
      continue;
    any = true;
    report_line(is, value, line, errs);
    json_decref(line);
  }
  return any;
}

bool invariant_command_told(int exit_status) {
  enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, KILLED = 128, LAST_SIGNAL = 31 };
  return exit_status != NOT_EXECUTABLE && exit_status != NOT_FOUND &&
         (exit_status <= KILLED || exit_status > KILLED + LAST_SIGNAL);
}

enum schema_status invariant_command_result(const struct invariant *invariant, const json_t *value,
                                            const struct invariant_output *output,
                                            struct schema_errors *errs) {
  assert(output->out != NULL || output->out_n == 0);
  assert(output->err != NULL || output->err_n == 0);
  if (output->exit_status == 0)
    return SCHEMA_OK;
  struct str out = {output->out, output->out_n};
  if (report_lines(invariant, value, out, errs))
    return SCHEMA_INVALID;
  bool blank = true;
  for (size_t i = 0; i < out.n && blank; i++)
    blank = jscan_one_of(" \t\r\n", out.p[i]);
  if (blank)
    out = (struct str){output->err, output->err_n};
  struct buf words = {0};
  buf_printf(&words, "exit status %d", output->exit_status);
  if (out.n > 0) {
    buf_puts(&words, ": ");
    invariant_put_bytes(out.p, out.n, &words);
  }
  invariant_report(invariant, value, words.p, words.n, errs);
  buf_deinit(&words);
  return SCHEMA_INVALID;
}
