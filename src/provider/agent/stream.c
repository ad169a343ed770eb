/* Reads the output of one run by its profile's rules: the exec driver. */
#include "provider/agent/stream_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "provider/agent/evidence.h"
#include "json/scan.h"

#include <stdlib.h>
#include <string.h>

struct driver *stream_open(const struct profile *profile, const struct agent_call *call,
                           const struct driver_host *host) {
  struct driver *d = xcalloc(1, sizeof *d);
  d->profile = profile;
  d->value = stream_event;
  d->is_text = profile->dialect == DIALECT_TEXT;
  d->ends_by_exit = profile->ends_by_exit;
  d->text_of_all = profile->text_of_all;
  d->client_retries = profile->client_retries;
  d->host = *host;
  d->schema_asked = call->schema != NULL;
  d->resumed = call->session[0] != '\0';
  d->before = call->request ? call->request->conversation : NULL;
  d->secrets = host->secrets;
  redactor_init(&d->of_text, d->secrets);
  redactor_init(&d->of_thinking, d->secrets);
  head_tail_init(&d->printed, LIMIT_OUTPUT_BYTES);
  d->told.max = d->last.max = d->all.max = d->text.max = LIMIT_OUTPUT_BYTES;
  d->retry.max = d->denied.max = d->trouble.message.max = LIMIT_EVIDENCE_BYTES;
  d->trouble.kinds.max = d->trouble.log.max = d->last_id.max = LIMIT_EVIDENCE_BYTES;
  return d;
}

void stream_close(struct driver *d) {
  struct buf *const bufs[] = {&d->line,    &d->err_line,  &d->whole,         &d->told,
                              &d->last,    &d->all,       &d->last_id,       &d->text,
                              &d->retry,   &d->denied,    &d->trouble.kinds, &d->trouble.message,
                              &d->tool_id, &d->tool_name, &d->trouble.log};
  for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
    buf_deinit(bufs[i]);
  head_tail_deinit(&d->printed);
  json_decref(d->structured);
  json_decref(d->usage);
  pattern_scratch_deinit(&d->scratch);
  free(d->own);
  redactor_deinit(&d->of_text);
  redactor_deinit(&d->of_thinking);
  free(d);
}

static void one_value(struct driver *d, const json_t *value) {
  d->event_count++;
  d->value(d, value);
}

/* Trims from both ends what a terminal does not show: white space, other control characters, a byte
 * order mark. */
static struct str bare(struct str text) {
  if (str_starts(text, "\xEF\xBB\xBF"))
    text = (struct str){text.p + 3, text.n - 3};
  while (text.n > 0 && ((unsigned char)text.p[0] <= ' ' || text.p[0] == 0x7F))
    text = (struct str){text.p + 1, text.n - 1};
  while (text.n > 0 && ((unsigned char)text.p[text.n - 1] <= ' ' || text.p[text.n - 1] == 0x7F))
    text.n--;
  return text;
}

/* Reads JSON as clients write it. They cut text between the two halves of a surrogate pair and
 * write each half as an escape. jansson's reader refuses that, and integers of more than 64 bits;
 * ours does not. jansson's comes first because it takes eight times as many levels. */
json_t *stream_read_json(struct str text) {
  json_t *value = json_loadb(text.p ? text.p : "", text.n, JSON_ALLOW_NUL, NULL);
  struct jscan scan;
  struct jscan_result result;
  if (value != NULL || text.n == 0 || (text.p[0] != '{' && text.p[0] != '['))
    return value;
  jscan_init(&scan, text.p, text.n);
  bool ok = jscan_value(&scan, 0, &result) == JSCAN_OK;
  jscan_deinit(&scan);
  if (ok && str_trim((struct str){text.p + result.end, text.n - result.end}).n == 0)
    return result.value;
  json_decref(result.value);
  return NULL;
}

bool stream_read_value(struct driver *d, struct str text) {
  struct str trimmed = bare(text);
  const char *over = NULL;
  if (trimmed.n > 0 && trimmed.p[0] != '{' && trimmed.p[0] != '[')
    over = memrchr(trimmed.p, '\r', trimmed.n);
  if (over != NULL) /* overwritten, as the line of a progress display is */
    trimmed = bare((struct str){over, trimmed.n - (size_t)(over - trimmed.p)});
  if (trimmed.n == 0 || (trimmed.p[0] != '{' && trimmed.p[0] != '['))
    return false;
  json_t *value = stream_read_json(trimmed);
  if (value == NULL)
    return false;
  if (json_is_object(value))
    one_value(d, value);
  for (size_t i = 0; i < json_array_size(value); i++)
    if (json_is_object(json_array_get(value, i)))
      one_value(d, json_array_get(value, i));
  json_decref(value);
  return true;
}

/* --- bytes --- */

/* Turns each byte that is not text into U+FFFD: the line is still worth keeping. */
static void mend_utf8(struct buf *line) {
  struct buf out = {0};
  for (size_t i = 0; i < line->n;) {
    uint32_t cp;
    size_t n = utf8_decode(line->p + i, line->n - i, &cp);
    if (n > 0)
      buf_append(&out, line->p + i, n);
    else
      buf_puts(&out, "\xEF\xBF\xBD");
    i += n > 0 ? n : 1;
  }
  buf_deinit(line);
  *line = out;
}

/* Drops escape sequences: JSON never holds an ESC, and no answer needs one. Bytes that are not text
 * stay. */
static void drop_escapes(struct driver *d) {
  if (!d->is_text || utf8_valid(d->line.p, d->line.n))
    d->line.n = escapes_drop(d->line.p, d->line.n);
}

/* Reports text without lines in pieces. A character or sequence that may be cut at the end of a
 * piece waits. */
static void tell_part_of_line(struct driver *d) {
  enum { SEQUENCE_BYTES = 64 };
  struct buf rest = {0};
  size_t n = utf8_floor(d->line.p, d->line.n);
  const char *escape = memrchr(d->line.p, 0x1B, n);
  if (escape != NULL && (size_t)(d->line.p + n - escape) < SEQUENCE_BYTES)
    n = (size_t)(escape - d->line.p);
  buf_append(&rest, d->line.p + n, d->line.n - n);
  d->line.n = n;
  d->line.p[n] = '\0';
  drop_escapes(d);
  stream_tell_piece(d, buf_view(&d->line));
  buf_deinit(&d->line);
  d->line = rest;
}

static void stream_whole_line(struct driver *d) {
  bool text = d->is_text;
  if (d->line_too_long || (!text && str_trim(buf_view(&d->line)).n == 0)) {
    buf_clear(&d->line);
    return;
  }
  drop_escapes(d);
  if (text) {
    buf_putc(&d->line, '\n');
    stream_tell_piece(d, buf_view(&d->line));
    buf_clear(&d->line);
    return;
  }
  (void)secrets_hide(d->secrets, &d->line);
  if (!utf8_valid(d->line.p, d->line.n))
    mend_utf8(&d->line);
  if (!stream_read_value(d, buf_view(&d->line))) {
    d->garbage_count++;
    if (d->event_count == 0 && d->whole.n + d->line.n < LIMIT_AGENT_LINE_BYTES) {
      buf_str(&d->whole, buf_view(&d->line));
      buf_putc(&d->whole, '\n');
    }
  }
  if (d->line.cap > LIMIT_INLINE_TEXT_BYTES) /* one long line must not hold memory to the end */
    buf_deinit(&d->line);
  buf_clear(&d->line);
}

static void stderr_line(struct driver *d) {
  d->err_line.n = escapes_drop(d->err_line.p, d->err_line.n);
  (void)secrets_hide(d->secrets, &d->err_line);
  struct str line = str_trim(buf_view(&d->err_line));
  for (size_t i = 0; line.n > 0 && i < d->profile->stderr_rule_count; i++) {
    const struct profile_stderr *rule = &d->profile->stderr_rules[i];
    if (pattern_match(rule->pattern, &d->scratch, line.p, line.n) != PATTERN_MATCH)
      continue;
    const char *words =
        rule->after ? memmem(line.p, line.n, rule->after, strlen(rule->after)) : NULL;
    if (words != NULL) {
      words += strlen(rule->after);
      line = str_trim((struct str){words, line.n - (size_t)(words - line.p)});
    }
    json_t *data = json_object();
    switch (rule->kind) {
    case STDERR_RETRY:
      if (evidence_status(line) > 0)
        json_object_set_new(data, "status", json_integer(evidence_status(line)));
      stream_retry_noted(d, evidence_status(line), line);
      stream_put_text(data, "reason", line);
      stream_tell(d, NEWS_RETRY, (struct str){0}, data);
      break;
    case STDERR_PERMISSION:
      buf_clear(&d->denied);
      buf_str(&d->denied, line);
      stream_put_text(data, "message", line);
      json_object_set_new(data, "answer", json_string("denied"));
      stream_tell(d, NEWS_PERMISSION, (struct str){0}, data);
      break;
    case STDERR_NOTE:
      stream_put_text(data, "text", line);
      stream_tell(d, NEWS_NOTE, (struct str){0}, data);
      break;
    }
    break;
  }
  buf_clear(&d->err_line);
}

static void take_stderr(struct driver *d, struct str bytes) {
  if (d->profile->stderr_rule_count == 0)
    return;
  while (bytes.n > 0) {
    const char *end = memchr(bytes.p, '\n', bytes.n);
    size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
    if (d->err_line.n + n <= LIMIT_EVIDENCE_BYTES)
      buf_append(&d->err_line, bytes.p, n);
    if (end == NULL)
      return;
    stderr_line(d);
    bytes = (struct str){end + 1, bytes.n - n - 1};
  }
}

void stream_output(struct driver *d, int fd, struct str bytes) {
  if (fd != 1) {
    take_stderr(d, bytes);
    return;
  }
  while (bytes.n > 0 && !d->line_too_long) {
    const char *end = memchr(bytes.p, '\n', bytes.n);
    size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
    if (d->line.n + n > LIMIT_AGENT_LINE_BYTES && !d->is_text) {
      d->line_too_long = true;
      buf_deinit(&d->line);
      if (d->host.give_up != NULL)
        d->host.give_up(d->host.ctx);
      return;
    }
    buf_append(&d->line, bytes.p, n);
    bool piece = d->is_text && d->line.n >= LIMIT_PIPE_PIECE_BYTES;
    if (end == NULL && !piece)
      return;
    if (end == NULL) {
      tell_part_of_line(d);
      return;
    }
    stream_whole_line(d);
    bytes = (struct str){end + 1, bytes.n - n - 1};
  }
}

void stream_take_rest(struct driver *d) {
  if (d->line.n > 0 && d->is_text) {
    drop_escapes(d);
    stream_tell_piece(d, buf_view(&d->line)); /* as it is: no newline of ours */
    buf_clear(&d->line);
  }
  if (d->line.n > 0)
    stream_whole_line(d);
  if (d->err_line.n > 0)
    stderr_line(d);
  if (d->event_count == 0 && d->whole.n > 0 && stream_read_value(d, buf_view(&d->whole)))
    d->garbage_count = 0;
  buf_deinit(&d->whole);
  stream_tell_held(d);
}

const struct driver_ops driver_exec = {.name = "exec",
                                       .transport = TRANSPORT_EXEC,
                                       .open = stream_open,
                                       .output = stream_output,
                                       .end = stream_end,
                                       .close = stream_close};
