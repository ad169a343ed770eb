/* Reads the reply of a model API as its bytes come. */
#include "provider/api/reply.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "format/json_write.h"
#include "provider/api/failure.h"
#include "json/scan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool reply_on_event(void *ctx, struct str type, struct str data);
static bool reply_on_line(void *ctx, struct str line);

void reply_init(struct reply *r, const struct dialect *dialect, int64_t wall_ms,
                reply_watch_fn watch, void *ctx) {
  assert(dialect != NULL);
  *r = (struct reply){.dialect = dialect,
                      .watch = watch,
                      .ctx = ctx,
                      .wall_ms = wall_ms,
                      .input = -1,
                      .output = -1,
                      .cached = -1,
                      .reasoning = -1,
                      .cost_usd = -1,
                      .wait = {.retry_after_ms = -1, .should_retry = -1}};
  r->text.max = r->tool.max = LIMIT_OUTPUT_BYTES;
  r->refusal.max = LIMIT_ERROR_TEXT_BYTES;
  r->document.max = LIMIT_HTTP_BODY_BYTES;
}

void reply_deinit(struct reply *r) {
  sse_deinit(&r->sse);
  ndjson_deinit(&r->lines);
  buf_deinit(&r->document);
  buf_deinit(&r->text);
  buf_deinit(&r->tool);
  buf_deinit(&r->refusal);
  redactor_deinit(&r->of_text);
  redactor_deinit(&r->of_thinking);
  redactor_deinit(&r->of_tool);
  *r = (struct reply){0};
}

void reply_redact(struct reply *r, const struct secrets *secrets) {
  redactor_init(&r->of_text, secrets);
  redactor_init(&r->of_thinking, secrets);
  redactor_init(&r->of_tool, secrets);
}

void reply_fail(struct reply *r, enum error_class class, const char *fmt, ...) {
  va_list ap;
  if (r->class != CLASS_NONE)
    return;
  r->class = class;
  va_start(ap, fmt);
  (void)vsnprintf(r->message, sizeof r->message, fmt, ap);
  va_end(ap);
}

/* --- what the dialects say --- */

/* Keeps the piece (in `keep`, which may be NULL) and tells it, without secrets. */
static void reply_pass(struct reply *r, struct redactor *redactor, bool thinking, struct str piece,
                       struct buf *keep, bool last) {
  struct buf clean = {0};
  struct str view = piece;
  if (piece.n == 0 && !last)
    return;
  if (!secrets_are_empty(redactor->secrets)) {
    redactor_push(redactor, piece, &clean);
    if (last)
      redactor_flush(redactor, &clean);
    view = buf_view(&clean);
  }
  if (view.n > 0) {
    if (keep != NULL)
      buf_str(keep, view);
    if (r->watch != NULL && keep != &r->tool)
      r->watch(r->ctx, thinking, view);
  }
  buf_deinit(&clean);
}

static void on_part(void *ctx, bool thinking, struct str piece) {
  struct reply *r = ctx;
  r->thought |= thinking;
  reply_pass(r, thinking ? &r->of_thinking : &r->of_text, thinking, piece,
             thinking ? NULL : &r->text, false);
}

static struct str string_of(const json_t *piece) {
  if (!json_is_string(piece))
    return STR("");
  return (struct str){json_string_value(piece), json_string_length(piece)};
}

void reply_text(struct reply *r, const json_t *piece) {
  struct str s = string_of(piece);
  if (s.n > 0)
    think_push(&r->think, s, on_part, r);
}

void reply_thinking(struct reply *r, const json_t *piece) {
  struct str s = string_of(piece);
  if (s.n > 0)
    on_part(r, true, s);
}

void reply_tool(struct reply *r, const json_t *piece) {
  r->has_tool = true;
  reply_pass(r, &r->of_tool, false, string_of(piece), &r->tool, false);
}

void reply_tool_value(struct reply *r, const json_t *value) {
  struct buf text = {0};
  json_write(value, &text);
  r->has_tool = true;
  reply_pass(r, &r->of_tool, false, buf_view(&text), &r->tool, false);
  buf_deinit(&text);
}

void reply_refusal(struct reply *r, const json_t *piece) {
  buf_str(&r->refusal, string_of(piece));
}

static bool reply_is_count(const json_t *n) {
  return json_is_integer(n) && json_integer_value(n) >= 0 &&
         json_integer_value(n) <= LIMIT_USAGE_TOKENS;
}

json_t *reply_sum(const json_t *const *counts, size_t n) {
  json_int_t sum = 0;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    if (counts[i] == NULL || json_is_null(counts[i]))
      continue;
    if (!reply_is_count(counts[i]))
      return NULL;
    sum += json_integer_value(counts[i]);
    any = true;
  }
  return any ? json_integer(sum) : NULL;
}

static void set_count(int64_t *out, const json_t *n) {
  if (reply_is_count(n))
    *out = json_integer_value(n);
}

void reply_usage(struct reply *r, const json_t *input, const json_t *output, const json_t *cached) {
  set_count(&r->input, input);
  set_count(&r->output, output);
  set_count(&r->cached, cached);
}

void reply_reasoning(struct reply *r, const json_t *tokens) {
  set_count(&r->reasoning, tokens);
}

void reply_cost(struct reply *r, const json_t *usd) {
  double cost = json_number_value(usd);
  if (json_is_number(usd) && cost >= 0 && cost < LIMIT_COST_USD)
    r->cost_usd = cost;
}

static void reply_keep(char *out, size_t size, struct str value) {
  size_t n = value.n < size ? value.n : size - 1;
  memcpy(out, value.p, n);
  out[n] = '\0';
}

void reply_stop(struct reply *r, const json_t *word, enum error_class class) {
  assert(r->dialect != NULL);
  struct str s = string_of(word);
  r->over = true;
  if (s.n > 0)
    reply_keep(r->stop, sizeof r->stop, s);
  if (class == CLASS_LENGTH)
    reply_fail(r, class, "the answer was cut off by the limit of tokens (%s): raise max_tokens",
               r->stop);
  else if (class == CLASS_REFUSED)
    reply_fail(r, class, "the model refused (%s)", r->stop);
  else if (class != CLASS_NONE)
    reply_fail(r, class, "the backend ended the answer: %s", r->stop);
}

void reply_close(struct reply *r) {
  r->over = r->closed = true;
}

enum error_class reply_word_class(const struct reply_word *table, const json_t *word,
                                  enum error_class otherwise) {
  struct str s = string_of(word);
  for (; table->word; table++)
    if (s.n > 0 && str_eq_c(s, table->word))
      return table->class;
  return otherwise;
}

json_t *reply_usage_json(const struct reply *r) {
  const struct {
    const char *name;
    int64_t n;
  } counts[] = {{"input", r->input},
                {"output", r->output},
                {"cached", r->cached},
                {"reasoning", r->reasoning}};
  if (r->input < 0 && r->output < 0)
    return NULL;
  json_t *usage = json_object();
  for (size_t i = 0; i < ARRAY_LEN(counts); i++)
    if (counts[i].n >= 0)
      json_object_set_new(usage, counts[i].name, json_integer(counts[i].n));
  if (r->cost_usd >= 0)
    json_object_set_new(usage, "cost_usd", json_real(r->cost_usd));
  return usage;
}

/* --- bytes to documents --- */

/* Copies a text with U+FFFD in place of what is not UTF-8. */
static void mend(struct str s, struct buf *out) {
  for (size_t i = 0; i < s.n;) {
    size_t n = utf8_decode(s.p + i, s.n - i, NULL);
    if (n > 0)
      buf_append(out, s.p + i, n);
    else
      buf_puts(out, "\xEF\xBF\xBD");
    i += n ? n : 1;
  }
}

static enum jscan_code reply_scan(struct str text, json_t **value) {
  struct jscan js;
  struct jscan_result result;
  jscan_init(&js, text.p, text.n);
  enum jscan_code code = jscan_value(&js, 0, &result);
  jscan_deinit(&js);
  *value = result.value;
  if (code == JSCAN_OK && str_trim((struct str){text.p + result.end, text.n - result.end}).n > 0) {
    json_decref(result.value);
    *value = NULL;
    return JSCAN_SYNTAX;
  }
  return code;
}

/* Returns a new reference, NULL if the text is not JSON. */
static json_t *reply_parse(struct reply *r, struct str text) {
  json_t *value = NULL;
  text = str_trim(text);
  if (reply_scan(text, &value) == JSCAN_UTF8) {
    struct buf mended = {0};
    mend(text, &mended);
    r->mended = reply_scan(buf_view(&mended), &value) == JSCAN_OK;
    buf_deinit(&mended);
  }
  return value;
}

static bool on_document(struct reply *r, struct str type, struct str text) {
  if (r->closed)
    return true;
  json_t *doc = reply_parse(r, text);
  if (doc == NULL) {
    if (!r->ending) /* the last one was cut off: not whole, rather than wrong */
      reply_fail(r, CLASS_PROTOCOL, "an event of the reply is not JSON: %.*s",
                 (int)utf8_floor(text.p, text.n < 80 ? text.n : 80), text.p);
    return r->ending;
  }
  if (json_is_object(json_object_get(doc, "error")) ||
      json_is_string(json_object_get(doc, "error")))
    reply_error(r, doc);
  else if (json_is_object(doc))
    r->dialect->event(r, type, doc);
  json_decref(doc);
  return true;
}

static bool reply_on_event(void *ctx, struct str type, struct str data) {
  struct reply *r = ctx;
  if (str_eq_c(str_trim(data), "[DONE]")) {
    reply_close(r);
    return true;
  }
  return data.n == 0 || on_document(r, type, data);
}

static bool reply_on_line(void *ctx, struct str line) {
  return on_document(ctx, STR(""), line);
}

static enum reply_form form_of(const struct reply *r, unsigned char first) {
  if (r->status < 200 || r->status > 299)
    return REPLY_DOCUMENT; /* an error, or something reported as one */
  if (first == '{' || first == '[')
    return r->dialect->lines ? REPLY_LINES : REPLY_DOCUMENT;
  if (first == 0xEF || (first != '\0' && strchr(":deir", first) != NULL))
    return REPLY_EVENTS;
  return REPLY_UNREADABLE;
}

void reply_header(struct reply *r, struct str name, struct str value) {
  if (str_eq_fold(name, "content-type"))
    reply_keep(r->content_type, sizeof r->content_type, value);
  else if (str_eq_fold(name, "location"))
    reply_keep(r->location, sizeof r->location, value);
  else if (name.n > 9) /* the shortest name that says when to come back */
    failure_header(&r->wait, r->wall_ms, name, value);
}

void reply_head(struct reply *r, int status) {
  r->status = status;
  if (status < 200 || status > 299)
    r->document.max = LIMIT_HTTP_ERROR_BYTES;
}

bool reply_body(struct reply *r, struct str bytes) {
  assert(!r->ending);
  while (r->form == REPLY_UNKNOWN && bytes.n > 0) {
    unsigned char first = (unsigned char)bytes.p[0];
    if (first == ' ' || first == '\n' || first == '\r' || first == '\t') {
      bytes = (struct str){bytes.p + 1, bytes.n - 1};
      continue;
    }
    r->form = form_of(r, first);
    if (r->form == REPLY_EVENTS)
      sse_init(&r->sse, LIMIT_HTTP_EVENT_BYTES, reply_on_event, r);
    else if (r->form == REPLY_LINES)
      ndjson_init(&r->lines, LIMIT_HTTP_EVENT_BYTES, reply_on_line, r);
  }
  switch (r->form) {
  case REPLY_UNKNOWN:
    return true;
  case REPLY_EVENTS:
    if (!sse_feed(&r->sse, bytes) && r->sse.over_max)
      reply_fail(r, CLASS_PROTOCOL, "an event of the reply is larger than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    return !r->sse.stopped && !r->sse.over_max;
  case REPLY_LINES:
    if (!ndjson_feed(&r->lines, bytes) && r->lines.over_max)
      reply_fail(r, CLASS_PROTOCOL, "a line of the reply is longer than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    return !r->lines.stopped && !r->lines.over_max;
  case REPLY_DOCUMENT:
    buf_str(&r->document, bytes);
    return !r->document.cut;
  case REPLY_UNREADABLE:
    buf_append(&r->document, bytes.p, bytes.n < 80 ? bytes.n : 80);
    return r->document.n < 80; /* enough to tell what it is */
  }
  return false;
}

/* --- the end --- */

static void end_document(struct reply *r, bool whole) {
  json_t *doc = reply_parse(r, buf_view(&r->document));
  if (doc == NULL)
    reply_fail(r, whole ? CLASS_PROTOCOL : CLASS_NETWORK,
               whole ? "the reply is not JSON" : "the connection broke before the reply was whole");
  else if (json_object_get(doc, "error") && !json_is_null(json_object_get(doc, "error")))
    reply_error(r, doc);
  else if (json_is_object(doc))
    r->dialect->whole(r, doc);
  else
    reply_fail(r, CLASS_PROTOCOL, "the reply is not a JSON object");
  json_decref(doc);
}

static void end_success(struct reply *r, bool whole) {
  r->ending = true;
  switch (r->form) {
  case REPLY_UNKNOWN:
    if (whole)
      reply_fail(r, CLASS_NETWORK, "the reply is empty (HTTP %d)", r->status);
    break;
  case REPLY_EVENTS:
    if (!sse_end(&r->sse) && whole && r->sse.over_max)
      reply_fail(r, CLASS_PROTOCOL, "an event of the reply is larger than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    break;
  case REPLY_LINES:
    if (!ndjson_end(&r->lines) && whole && r->lines.over_max)
      reply_fail(r, CLASS_PROTOCOL, "a line of the reply is longer than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    break;
  case REPLY_DOCUMENT:
    end_document(r, whole);
    break;
  case REPLY_UNREADABLE: {
    struct buf shown = {0};
    buf_safe(&shown, buf_view(&r->document), false);
    reply_fail(r, CLASS_PROTOCOL,
               "the reply is neither JSON nor an event stream (%s): is base_url right? It begins: "
               "%.*s",
               r->content_type[0] ? r->content_type : "no content type",
               (int)utf8_floor(buf_c(&shown), shown.n < 100 ? shown.n : 100), buf_c(&shown));
    buf_deinit(&shown);
    break;
  }
  }
  think_flush(&r->think, on_part, r);
  reply_pass(r, &r->of_text, false, STR(""), &r->text, true);
  reply_pass(r, &r->of_thinking, true, STR(""), NULL, true);
  reply_pass(r, &r->of_tool, false, STR(""), &r->tool, true);
  size_t bare = 0;
  if (r->dialect->local && r->think.state == THINK_OUTSIDE && !r->thought)
    bare = think_bare_end(buf_view(&r->text));
  if (bare > 0) {
    r->thought = true;
    memmove(r->text.p, r->text.p + bare, r->text.n - bare + 1);
    r->text.n -= bare;
  }
  if (r->class == CLASS_NONE && !r->over)
    reply_fail(r, CLASS_NETWORK, "the reply ended before the model had finished");
  if (r->class == CLASS_NONE && r->refusal.n > 0 && r->text.n == 0)
    reply_fail(r, CLASS_REFUSED, "the model refused");
}

void reply_end(struct reply *r, bool whole) {
  if (r->status >= 200 && r->status <= 299)
    end_success(r, whole);
  else
    failure_status(r, reply_parse(r, buf_view(&r->document)));
  if (r->class == CLASS_REFUSED && r->refusal.n > 0) {
    struct buf shown = {0};
    buf_safe(&shown, buf_view(&r->refusal), false);
    (void)snprintf(r->message, sizeof r->message, "the model refused: %.*s",
                   (int)utf8_floor(shown.p, shown.n < 300 ? shown.n : 300), shown.p);
    buf_deinit(&shown);
  }
  failure_wait(r);
}
